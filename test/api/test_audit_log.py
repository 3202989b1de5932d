"""Database auditing: its settings, its filters, and what they do to clusters."""
import json

import pytest

from client import NO_ID, leave, ok, pass_time, refused, unique

DEFAULTS = {'auditAuthorizationSuccess': False, 'auditFilter': '', 'configurationType': 'NONE', 'enabled': False}


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	yield group
	leave(server, group)


def path(group):
	return '/groups/%s/auditLog' % group


def test_defaults(server, group):
	assert ok(server.get(path(group))) == DEFAULTS
	refused(server.get(path(NO_ID)), 404)


def test_settings_are_kept(server, group):
	text = json.dumps({'atype': 'authenticate'})
	made = ok(server.patch(path(group), json={'enabled': True, 'auditFilter': text}))
	assert made == {'auditAuthorizationSuccess': False, 'auditFilter': text, 'configurationType': 'FILTER_JSON', 'enabled': True}
	assert ok(server.get(path(group))) == made
	more = ok(server.patch(path(group), json={'auditAuthorizationSuccess': True}))
	assert more == {**made, 'auditAuthorizationSuccess': True}
	off = ok(server.patch(path(group), json={'enabled': False, 'auditFilter': ''}))
	assert off == {**DEFAULTS, 'auditAuthorizationSuccess': True}
	assert [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']].count(
		'AUDIT_LOG_CONFIGURATION_UPDATED') == 3


@pytest.mark.parametrize('text', ["{'atype': 'authenticate'}", '{atype: "authenticate"}', "{ $or : [{'users.user': 'o\\'neill'}, {a: {$in: ['x', null]}}]}"])
def test_filters_in_single_quotes_and_with_bare_keys(server, group, text):
	"""As the shells of document databases take them; they are kept as they were sent."""
	assert ok(server.patch(path(group), json={'auditFilter': text}))['auditFilter'] == text == ok(server.get(path(group)))['auditFilter']


@pytest.mark.parametrize('text', [
	"{'a': 'x}", "{'a\": 1}", "{a b: 1}", "{a: b}", "{'a': 1, a: 2}", "{$where: 'x'}", '{', '[]', '"atype"', '{"atype": {"$where": "1"}}', '{"$and": {}}', '{"$or": [1]}', '{"atype": {"$in": "x"}}',
	'{"users": {"$elemMatch": []}}', '{"a": 1, "a": 2}', '{"a": ' * 20 + '1' + '}' * 20, json.dumps({'a': 'x' * 17000})])
def test_filters_that_are_none(server, group, text):
	refused(server.patch(path(group), json={'auditFilter': text}), 400, None, 'auditFilter')
	assert ok(server.get(path(group))) == DEFAULTS


def test_what_cannot_be_set(server, group):
	refused(server.patch(path(group), json={'configurationType': 'FILTER_JSON'}), 400, None, 'configurationType')
	refused(server.patch(path(group), json={'enabled': 'yes'}), 400, None, 'enabled')
	refused(server.patch(path(group), json={'filter': '{}'}), 400, None, 'filter')
	refused(server.patch(path(NO_ID), json={'enabled': True}), 404)


def test_roles(server):
	org, = server.seed({'name': unique('org'), 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_DATABASE_ACCESS_ADMIN']}]}]})
	group, api = org['projects'][0]['id'], server.api_for(org['principals'][0])
	refused(api.get(path(group)), 403)
	refused(api.patch(path(group), json={'enabled': True}), 403)


def test_clusters_are_changed(server, group):
	body = {'name': 'c0', 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}

	def state():
		return ok(server.get('/groups/%s/clusters/c0' % group))['stateName']

	def settle():
		pass_time(server, lambda: state() == 'IDLE')

	ok(server.post('/groups/%s/clusters' % group, json=body), 201)
	settle()
	ok(server.patch(path(group), json={'enabled': True, 'auditFilter': '{"atype": "createCollection"}'}))
	assert state() == 'UPDATING'
	settle()
	ok(server.patch(path(group), json={'enabled': True}))
	assert state() == 'IDLE'
