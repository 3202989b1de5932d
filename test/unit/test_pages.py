"""What people see of the API's data is whole: each operation has its page, secrets are marked, and what the data says about it is
checked."""
import copy
import gzip
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'script'))

import commands  # noqa: E402
import console_data  # noqa: E402
import pages  # noqa: E402

MOST_BYTES = 100 * 1000  # of all data, compressed
FILES = console_data.files(ROOT / 'api')
TABLES = {name: json.loads(content) for name, content in FILES.items()}
DATA = console_data.Data(ROOT / 'api')
ROWS = {row[0]: row for rows in TABLES['data/operations.json'].values() for row in rows}
OPERATIONS = {op['operationId']: op for op in DATA.operations}
PAGES = {name: (table['nodes'], page) for path, table in TABLES.items() if path.startswith('data/f/')
	 for name, page in table['operations'].items()}


def test_each_operation_has_a_page():
	assert len(OPERATIONS) == 447
	assert set(OPERATIONS) == set(PAGES) == set(ROWS) == {row[0] for row in TABLES['data/index.json']}
	for name, (_, page) in PAGES.items():
		op = OPERATIONS[name]
		assert [p[0] for p in page.get('p', [])] == [p['name'] for p in op['pathParams']], name
		assert [p[0] for p in page.get('q', [])] == [p['name'] for p in op.get('queryParams', [])], name
		assert not {p[0] for p in page.get('p', [])} & {p[0] for p in page.get('q', [])}, name  # both stand in one URL
		assert ('b' in page) == ('request' in op), name


def test_lists_have_columns():
	for name, (_, page) in PAGES.items():
		entry = DATA.made.entries(OPERATIONS[name])
		if OPERATIONS[name]['method'] == 'GET' and entry is not None and DATA.made.fields(entry):
			assert page['c'], name


def nodes_in(node, nodes, seen):
	if isinstance(node, int):
		assert 0 <= node < len(nodes)
		if node in seen:
			return
		seen.add(node)
		node = nodes[node]
	yield node
	inner = [field[1] for field in node.get('k', [])] + [option[1] for option in node.get('O', [])] + ([node['i']] if 'i' in node else [])
	for one in inner:
		yield from nodes_in(one, nodes, seen)


def test_forms_are_whole():
	raw = set()
	for name, (nodes, page) in PAGES.items():
		for node in nodes_in(page['b'], nodes, set()) if 'b' in page else ():
			assert node['t'] in 'sinboamux', name
			assert (node['t'] == 'o') == ('k' in node) and (node['t'] == 'u') == ('O' in node), name
			assert (node['t'] in 'am') == ('i' in node), name
			names = [field[0] for field in node.get('k', [])]
			assert len(set(names)) == len(names) and 'links' not in names, name
		if 'b' in page:
			body = page['b'] if isinstance(page['b'], dict) else nodes[page['b']]
			raw |= {name} if body['t'] == 'x' else set()
	assert len(raw) <= 7, raw


def test_the_order_of_fields():
	nodes, page = PAGES['createDatabaseUser']
	fields = nodes[page['b']]['k']
	assert [f[0] for f in fields[:4]] == ['username', 'password', 'databaseName', 'roles']
	assert next(f for f in fields if f[0] == 'x509Type')[2] & pages.ADVANCED
	assert next(f for f in fields if f[0] == 'password')[1]['f'] == 'p'
	for name, (nodes, page) in PAGES.items():
		for node in nodes_in(page['b'], nodes, set()) if 'b' in page else ():
			for field in node.get('k', []):
				flags = field[2] if len(field) > 2 else 0
				assert not (flags & pages.REQUIRED and flags & pages.ADVANCED), (name, field[0])


def test_dangers():
	dangers = {name: pages.danger(op) for name, op in OPERATIONS.items()}
	assert all(dangers[name] != 'none' for name, op in OPERATIONS.items() if op['method'] == 'DELETE')
	for name in ('deleteCluster', 'deleteFlexCluster', 'deleteGroup', 'deleteOrg', 'deleteClusterBackupSnapshot'):
		assert dangers[name] == 'name'
	assert dangers['restartPrimaries'] == 'confirm' and dangers['createCluster'] == 'none'
	assert ROWS['deleteCluster'][4] == 'name' and len(ROWS['createCluster']) == 4


def test_rows_lead_to_what_they_are():
	assert PAGES['listDatabaseUsers'][1]['v'] == {'databaseName': 'databaseName', 'username': 'username'}
	assert PAGES['listClusters'][1]['v'] == {'clusterName': 'name'}
	assert PAGES['listAccessListEntries'][1]['v'] == {'entryValue': 'awsSecurityGroup|cidrBlock|ipAddress'}
	assert PAGES['listClusterSearchIndexes'][1]['v']['indexId'] == 'indexID'


def test_secrets_that_are_shown_once():
	once = {row[0] for row in TABLES['data/index.json'] if len(row) > 4 and row[4] & console_data.ONCE}
	assert {'createOrgApiKey', 'createOrgServiceAccount', 'createOrgSecret', 'createOrg'} <= once
	assert 'createDatabaseUser' not in once


def test_sizes():
	total = sum(len(gzip.compress(content, 9)) for content in FILES.values())
	assert total <= MOST_BYTES, total
	assert console_data.files(ROOT / 'api') == FILES


def faults(change):
	operations, named, shown = copy.deepcopy(DATA.operations), copy.deepcopy(DATA.named), copy.deepcopy(DATA.pages)
	change({op['operationId']: op for op in operations}, named, shown)
	families = {word: '' for op in operations for word in [op['command'].split(' ')[0], *(a.split(' ')[0] for a in op.get('commandAliases', []))]}
	made = pages.Pages(operations, DATA.resources, named, DATA.words, shown, commands.Commands(operations, families, DATA.states, named, console_data.stop))
	return ['%s: %s' % fault for fault in made.faults()]


def test_nothing_is_wrong():
	assert faults(lambda ops, named, shown: None) == []


@pytest.mark.parametrize('change, text', [
	(lambda ops, named, shown: named['CloudDatabaseUser']['properties']['password'].pop('secret'),
	 'CloudDatabaseUser.password: has the name of a secret'),
	(lambda ops, named, shown: named['ApiKeyUserDetails']['properties']['privateKey'].pop('secret'), 'ApiKeyUserDetails.privateKey: has the name'),
	(lambda ops, named, shown: named['Group']['properties']['clusterCount'].update(secret=True), 'Group.clusterCount: secret: is for texts'),
	(lambda ops, named, shown: shown['notSecret'].append('CloudDatabaseUser.password'), 'CloudDatabaseUser.password: is secret, and stands in notSecret too'),
	(lambda ops, named, shown: shown['notSecret'].append('Group.token'), 'pages: notSecret: no field Group.token'),
	(lambda ops, named, shown: named['Group'].update(first=['nmae']), 'Group: first: no field nmae'),
	(lambda ops, named, shown: ops['createCluster'].update(danger='much'), 'createCluster: danger: must be one of'),
	(lambda ops, named, shown: ops['listOrgs'].update(danger='confirm'), 'listOrgs: danger: a GET has none'),
	(lambda ops, named, shown: ops['createOrg'].update(danger='name'), 'createOrg: danger: has no parameter whose name could be typed'),
	(lambda ops, named, shown: shown['labels'].update(nothing='Nothing'), 'pages: labels: no field or parameter nothing'),
	(lambda ops, named, shown: shown['references'].update(groupId={'list': 'getGroup', 'value': 'id'}), 'pages: references: groupId: no operation getGroup that lists'),
	(lambda ops, named, shown: shown['references'].update(groupId={'list': 'listGroups', 'value': 'ident'}), 'pages: references: groupId: no field ident'),
	(lambda ops, named, shown: shown.update(colour='red'), 'pages: colour: nobody knows this key'),
])
def test_faults_are_found(change, text):
	assert any(fault.startswith(text) for fault in faults(change)), faults(change)
