"""Flex clusters: their own list and form, the same machinery; upgrades between kinds; one on real databases."""
import os, shutil, tempfile, time

import pytest

import client
from client import NO_ID, bare, leave, links, ok, pass_time, refused, unique, until

SETTINGS = {'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}
SERVERLESS = {'Accept': 'application/vnd.svc.2023-01-01+json'}


def body(name=None, **more):
	return {'name': name or unique('f'), 'providerSettings': SETTINGS, **more}


def dedicated(name, nodes=3, region='US_EAST_1', **more):
	return {'name': name, 'clusterType': 'REPLICASET', **more, 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': region, 'priority': 7,
		 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': nodes}}]}]}


def shared(name):
	return {'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'TENANT', 'backingProviderName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		 'electableSpecs': {'instanceSize': 'M0'}}]}]}


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	yield group
	leave(server, group)


def flex(group, name=None):
	return '/groups/%s/flexClusters%s' % (group, '/' + name if name else '')


def plain(group, name=None):
	return '/groups/%s/clusters%s' % (group, '/' + name if name else '')


def settle(server, path, gone=False):
	def settled():
		r = server.get(path)
		return r.status_code == 404 if gone else ok(r)['stateName'] == 'IDLE' and r.json()
	return pass_time(server, settled)


def names(server, path):
	return [d['name'] for d in ok(server.get(path))['results']]


def types(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']]


def create(server, group, **more):
	doc = ok(server.post(flex(group), json=body(**more)), 201)
	return settle(server, flex(group, doc['name']))


def test_life(server, group):
	wanted = body(tags=[{'key': 'a', 'value': 'b'}])
	r = server.post(flex(group), json=wanted)
	doc = ok(r, 201)
	assert r.headers['Location'].endswith(flex(group, wanted['name'])) and links(doc)['self'].endswith(flex(group, wanted['name']))
	assert doc['stateName'] == 'CREATING' and doc['clusterType'] == 'REPLICASET' and doc['versionReleaseSystem'] == 'LTS'
	assert doc['providerSettings'] == {**SETTINGS, 'providerName': 'FLEX', 'diskSizeGB': 5}
	assert doc['tags'] == wanted['tags'] and doc['terminationProtectionEnabled'] is False
	ready = settle(server, flex(group, doc['name']))
	assert set(ready['connectionStrings']) == {'standard', 'standardSrv'} and ready['dbVersion'].count('.') == 2
	assert ready['connectionStrings']['standard'].count(':27017') == 1, 'one node'
	assert ok(server.get('/groups/' + group))['clusterCount'] == 1
	changed = ok(server.patch(flex(group, doc['name']), json={'terminationProtectionEnabled': True}))
	assert changed['terminationProtectionEnabled'] is True and changed['stateName'] == 'IDLE'
	refused(server.delete(flex(group, doc['name'])), 409,
		'CANNOT_TERMINATE_CLUSTER_WHEN_TERMINATION_PROTECTION_ENABLED', doc['name'])
	ok(server.patch(flex(group, doc['name']), json={'terminationProtectionEnabled': False, 'tags': []}))
	refused(server.delete('/groups/' + group), 409, 'CANNOT_CLOSE_GROUP_ACTIVE_SVC_CLUSTERS')
	assert server.delete(flex(group, doc['name'])).status_code == 204
	assert ok(server.get(flex(group, doc['name'])))['stateName'] == 'DELETING'
	refused(server.delete(flex(group, doc['name'])), 409, 'CLUSTER_ALREADY_REQUESTED_DELETION')
	refused(server.patch(flex(group, doc['name']), json={'tags': []}), 409)
	settle(server, flex(group, doc['name']), gone=True)
	assert names(server, flex(group)) == [] and ok(server.get('/groups/' + group))['clusterCount'] == 0
	told = types(server, group)
	assert [t for t in told if t in ('CLUSTER_CREATED', 'CLUSTER_READY', 'CLUSTER_DELETE_SUBMITTED', 'CLUSTER_DELETED')] == \
		['CLUSTER_DELETED', 'CLUSTER_DELETE_SUBMITTED', 'CLUSTER_READY', 'CLUSTER_CREATED']


def test_two_lists_one_name(server, group):
	small = create(server, group)['name']
	large = unique('c')
	ok(server.post(plain(group), json=dedicated(large)), 201)
	assert names(server, flex(group)) == [small] and names(server, plain(group)) == [large]
	refused(server.post(plain(group), json=dedicated(small)), 409, 'DUPLICATE_CLUSTER_NAME', small)
	refused(server.post(flex(group), json=body(large)), 409, 'DUPLICATE_CLUSTER_NAME', large)
	for r in (server.get(plain(group, small)), server.patch(plain(group, small), json={'tags': []}), server.delete(plain(group, small)),
			*(server.get(plain(group, small) + below) for below in ('/processArgs', '/status', '/backup/schedule', '/backup/snapshots',
				'/backup/snapshots/' + NO_ID, '/backup/restoreJobs', '/backup/restoreJobs/' + NO_ID, '/backup/exports/' + NO_ID)),
			server.post('/groups/%s/clusters/tenantUpgrade' % group, json={'name': small, 'providerSettings': {'providerName': 'AWS'}})):
		refused(r, 400, 'CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API', small)
	for r in (server.get(flex(group, large)), server.patch(flex(group, large), json={'tags': []}), server.delete(flex(group, large)),
			*(server.get(flex(group, large) + '/backup/' + below) for below in ('snapshots', 'snapshots/' + NO_ID, 'restoreJobs/' + NO_ID))):
		refused(r, 400, 'CANNOT_USE_NON_FLEX_CLUSTER_IN_FLEX_API', large)
	for path in (plain(group), flex(group)):
		for below in ('', '/backup/snapshots', '/backup/snapshots/' + NO_ID):
			refused(server.get('%s/%s%s' % (path, unique('none'), below)), 404, 'CLUSTER_NOT_FOUND')
	assert ok(server.get('/groups/' + group))['clusterCount'] == 2
	addresses = ok(server.get('/groups/%s/ipAddresses' % group))['services']['clusters']
	assert {a['clusterName'] for a in addresses} == {small, large}


def test_pages(server, group):
	made = [ok(server.post(flex(group), json=body()), 201)['name'] for _ in range(3)]
	page = ok(server.get(flex(group) + '?itemsPerPage=2&pageNum=2'))
	assert [d['name'] for d in page['results']] == made[2:] and page['totalCount'] == 3
	refused(server.get(flex(NO_ID)), 404)


@pytest.mark.parametrize('change, field', [({'providerSettings': {**SETTINGS, 'regionName': 'CENTRAL_US'}}, 'providerSettings.regionName'),
	({'tags': [{'key': 'a', 'value': 'b'}, {'key': 'a', 'value': 'c'}]}, 'tags[1].key'), ({'name': 'x' * 65}, 'name'),
	({'providerSettings': {'regionName': 'US_EAST_1'}}, 'providerSettings.backingProviderName')])
def test_rules(server, group, change, field):
	refused(server.post(flex(group), json={**body(), **change}), 400, None, field)
	assert names(server, flex(group)) == []


def test_limit_counts_both_kinds(server, group):
	limit = '/groups/%s/limits/svc.project.deployment.clusters' % group
	ok(server.patch(limit, json={'value': 3}))
	for made in range(3):
		assert ok(server.get(limit))['currentUsage'] == made
		create(server, group) if made else ok(server.post(plain(group), json=dedicated(unique('c'))), 201)
	assert ok(server.get(limit))['currentUsage'] == 3 == ok(server.get('/groups/' + group))['clusterCount']
	for r in (server.post(flex(group), json=body()), server.post(plain(group), json=dedicated(unique('c')))):
		refused(r, 400, 'PROJECT_LIMIT_EXCEEDED')
		assert r.json()['parameters'][1:] == ['3', '3'] and 'has 3 of at most 3; 1 more' in r.json()['detail']


def test_policies_know_them(server):
	org = server.seed({'name': unique('flex'), 'projects': ['one'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})[0]
	api, group = server.api_for(org['principals'][0]), org['projects'][0]['id']
	rule = 'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource) unless { context.cluster.isDedicated };'
	name = ok(api.post(flex(group), json=body()), 201)['name']
	ok(api.post('/orgs/%s/resourcePolicies' % org['id'], json={'name': 'no flex', 'policies': [{'body': rule}]}), 201)
	refused(api.post(flex(group), json=body()), 403, 'RESOURCE_POLICY_VIOLATION')
	assert names(api, flex(group)) == [name]
	assert [r['resourceName'] for r in ok(api.get('/orgs/%s/nonCompliantResources' % org['id']))] == [name]


def test_upgrade(server, group):
	doc = create(server, group)
	up = '/groups/%s/flexClusters:tenantUpgrade' % group
	refused(server.post(up, json={'name': doc['name']}), 400, None, 'replicationSpecs')
	refused(server.post(up, json=shared(doc['name'])), 400, None, 'replicationSpecs[0].regionConfigs[0].providerName')
	refused(server.post(up, json=dedicated(doc['name'], 2)), 400, None, 'replicationSpecs[0].regionConfigs')
	refused(server.post(up, json=dedicated(unique('none'))), 404)
	assert names(server, flex(group)) == [doc['name']], 'a refusal has changed nothing'
	last = ok(server.post(up, json=dedicated(doc['name'])))
	assert last['stateName'] == 'UPDATING' and last['providerSettings'] == doc['providerSettings'] and last['id'] == doc['id']
	assert names(server, flex(group)) == [] and names(server, plain(group)) == [doc['name']]
	ready = settle(server, plain(group, doc['name']))
	assert ready['id'] == doc['id'] and ready['connectionStrings']['standardSrv'] == doc['connectionStrings']['standardSrv']
	node = doc['connectionStrings']['standard'].split('://')[1].split(':')[0]
	assert node in ready['connectionStrings']['standard'] and ready['connectionStrings']['standard'].count(':27017') == 3
	spec = ready['replicationSpecs'][0]['regionConfigs'][0]
	assert spec['providerName'] == 'AWS' and 'backingProviderName' not in spec and spec['electableSpecs']['diskSizeGB'] == 10
	refused(server.post(up, json=dedicated(doc['name'])), 400, 'CANNOT_USE_NON_FLEX_CLUSTER_IN_FLEX_API', doc['name'])
	assert 'FLEX_UPGRADE_STARTED' in types(server, group)


def test_shared_tier_to_serverless(server, group):
	name, up = unique('m0'), plain(group, 'tenantUpgradeToServerless')
	ok(server.post(plain(group), json=shared(name)), 201)
	old = settle(server, plain(group, name))
	wanted = {'name': name, 'providerSettings': SETTINGS}
	refused(server.post(up, json={'providerSettings': SETTINGS}, headers=SERVERLESS), 400, None, 'name')
	doc = ok(server.post(up, json=wanted, headers=SERVERLESS))
	assert doc['id'] == old['id'] and doc['providerSettings']['providerName'] == 'SERVERLESS'
	assert doc['providerSettings']['effectiveProviderName'] == 'FLEX' and doc['stateName'] == 'UPDATING'
	assert names(server, plain(group)) == []
	assert settle(server, flex(group, name))['connectionStrings'].items() <= old['connectionStrings'].items()
	large = unique('c')
	ok(server.post(plain(group), json=dedicated(large)), 201)
	refused(server.post(up, json={**wanted, 'name': large}, headers=SERVERLESS), 400, None, 'name')
	refused(server.post(up, json={**wanted, 'name': unique('none')}, headers=SERVERLESS), 404)


def test_shared_tier_to_flex(server, group):
	"""By the clusters' way to larger tiers, in its older form. What the settings leave out stays."""
	name, up = unique('m0'), '/groups/%s/clusters/tenantUpgrade' % group
	ok(server.post(plain(group), json=shared(name)), 201)
	old = settle(server, plain(group, name))
	settings = {'providerName': 'FLEX', 'instanceSizeName': 'FLEX', **{k: SETTINGS[k] for k in ('backingProviderName', 'regionName')}}
	wrong = {**settings, 'regionName': 'NOWHERE'}
	refused(server.post(up, json={'name': name, 'providerSettings': wrong}), 400)
	doc = ok(server.post(up, json={'name': name, 'providerSettings': {'providerName': 'FLEX'}}))
	assert doc['id'] == old['id'] and doc['providerSettings'] == settings and doc['stateName'] == 'UPDATING'
	assert links(doc)['self'].endswith('/flexClusters/' + name)
	ready = settle(server, flex(group, name))
	assert ready['providerSettings'] == {**SETTINGS, 'providerName': 'FLEX', 'diskSizeGB': 5}
	assert ready['connectionStrings'] == {k: old['connectionStrings'][k] for k in ready['connectionStrings']}
	refused(server.get(plain(group, name)), 400, 'CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API', name)
	refused(server.post(up, json={'name': name, 'providerSettings': settings}), 400, 'CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API', name)


def test_what_is_wrong_with_one_that_is_idle(server, group):
	"""Beside a flex cluster there is no status: what the service has to say of it stands in its own answer."""
	path = flex(group, create(server, group)['name'])
	assert 'X-Steward-Progress' not in server.get(path).headers
	server.control('engine', {'fail': 'access'})
	server.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}])
	r = until(lambda: (lambda r: r if 'X-Steward-Progress' in r.headers else None)(server.get(path)))
	assert ok(r)['stateName'] == 'IDLE' and r.headers['X-Steward-Progress'].startswith('access: '), r.headers
	server.control('engine', {})


def test_restart_keeps_them(start_server, tmp_path):
	first = start_server(data_dir=tmp_path / 'data')
	group = first.project()['id']
	doc = create(first, group)
	first.stop()
	again = start_server(data_dir=tmp_path / 'data')
	assert bare(ok(again.get(flex(group, doc['name'])))) == bare(doc)
	assert ok(again.get(flex(group)))['totalCount'] == 1


def postgres_is_here():
	return os.path.isdir('/usr/lib/postgresql') and shutil.which('psql')


@pytest.mark.skipif(not postgres_is_here(), reason='PostgreSQL is not installed')
def test_on_real_databases(start_server):
	folder = tempfile.mkdtemp(prefix='sw-', dir=client.SHORT)
	os.chmod(folder, 0o711)
	try:
		server = start_server('--engine', 'postgres', data_dir=folder + '/d', clock='real')
		group = server.project()['id']

		def idle(path, seconds=180):
			end = time.monotonic() + seconds
			while time.monotonic() < end:
				r = server.get(path)
				if ok(r)['stateName'] == 'IDLE':
					return r.json()
				time.sleep(0.1)
			raise AssertionError(r.headers.get('X-Steward-Progress', '') + r.text)
		name = ok(server.post(flex(group), json=body()), 201)['name']
		doc = idle(flex(group, name))
		entry, = ok(server.get('/groups/%s/ipAddresses' % group))['services']['clusters']
		assert len(entry['inbound']) == 1 and entry['inbound'][0] in doc['connectionStrings']['standard']
		ok(server.post('/groups/%s/flexClusters:tenantUpgrade' % group, json=dedicated(name)))
		large = idle(plain(group, name))
		hosts = large['connectionStrings']['standard'].split('://')[1].split('/')[0].split(',')
		assert len(hosts) == 3 and doc['connectionStrings']['standard'].split('://')[1].split('/')[0] in hosts
		entry, = ok(server.get('/groups/%s/ipAddresses' % group))['services']['clusters']
		assert 1 <= len(entry['inbound']) <= 3
		server.delete(plain(group, name))
		end = time.monotonic() + 180
		while server.get(plain(group, name)).status_code != 404:
			assert time.monotonic() < end, 'it was not removed'
			time.sleep(0.1)
		assert client.database_processes(folder) == {}
	finally:
		client.folder_end(folder)
