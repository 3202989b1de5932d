"""The API in the words of another service: api/dialects/atlas.json. That everything else is right there too, and that nothing leaks, is
what the whole suite shows when it runs in the dialect (dialect.py)."""
import json, re

import pytest
import requests

import client, conftest
from client import BASE, Wire, ok, refused, unique, until
from test_backup_exports import ROLE

V2, V1 = '/api/atlas/v2', '/api/atlas/v1.0'
OURS = re.compile(r'/api/svc/|vnd\.svc\.|"(db(Major)?Version|svc\w*|SVC_\w+|vendorEmployeeAccessGrant)"')
SPECS = [{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
			     'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]


class Alias:
	"""Calls as they are written here, whatever dialect the rest of the suite speaks."""

	def __init__(self, api):
		self.session, self.base_url = api.session, api.server.base_url

	def __call__(self, method, path, **kw):
		answer = self.session.request(method, self.base_url + path, timeout=60, **kw)
		assert not OURS.search(answer.text) or 'dbVersion' in str(kw) or 'svc' in str(kw).lower() + path, answer.text[:2000]
		return answer


@pytest.fixture(scope='module')
def atlas(server):
	return Alias(server.owner)


@pytest.fixture(scope='module')
def group(server):
	return server.project()['id']


def test_links_and_media_types(server, atlas, group):
	answer = atlas('GET', V2 + '/groups/' + group)
	doc = ok(answer)
	assert answer.headers['Content-Type'] == 'application/vnd.atlas.2023-01-01+json'
	hrefs = [l['href'] for l in doc['links']]
	assert hrefs[0] == server.base_url + V2 + '/groups/' + group and all(V2 in h for h in hrefs)
	assert server.base_url + V2 + '/groups/%s/awsCustomDNS' % group in hrefs
	assert {l['rel'] for l in doc['links']} >= {server.base_url + '/rels/awsCustomDNS', server.base_url + '/rels/mongoDBVersions'}
	for href in hrefs:
		if 'auditLog' not in href:
			assert atlas('GET', href[len(server.base_url):]).status_code in (200, 404, 409), href
	page = ok(atlas('GET', V2 + '/groups?itemsPerPage=1&pageNum=2'))
	assert [l['href'] for l in page['links'] if l['rel'] == 'previous'] == [server.base_url + V2 + '/groups?itemsPerPage=1&pageNum=1']
	made = atlas('POST', V2 + '/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.7'}])
	assert ok(made)['results'][0]['links'][0]['href'] == server.base_url + V2 + '/groups/%s/accessList/192.0.2.7' % group


@pytest.mark.parametrize('accept, status', [('application/vnd.atlas.2024-08-05+json', 200), ('application/json', 200), ('*/*', 200),
	('application/vnd.svc.2024-08-05+json', 406), ('application/vnd.atlas.2001-01-01+json', 406), ('application/vnd.atlas.preview+json', 406)])
def test_accept(atlas, accept, status):
	answer = atlas('GET', V2 + '/groups', headers={'Accept': accept})
	assert answer.status_code == status
	assert 'svc' not in answer.text


def test_content_types(atlas, group):
	path = V2 + '/groups/%s/accessList' % group
	body = json.dumps([{'ipAddress': '192.0.2.8'}])
	ok(atlas('POST', path, data=body, headers={'Content-Type': 'application/vnd.atlas.2023-01-01+json'}))
	doc = refused(atlas('POST', path, data=body, headers={'Content-Type': 'text/plain'}), 415, 'UNSUPPORTED_MEDIA_TYPE')
	assert 'application/vnd.atlas.2023-01-01+json' in doc['detail']
	refused(atlas('POST', path, data=body, headers={'Content-Type': 'application/vnd.' + 'svc.2023-01-01+json'}), 415)


def test_fields_and_values(server, atlas, group):
	"""What we call otherwise is theirs there; what callers wrote stays."""
	name, path = unique('c'), V2 + '/groups/%s/clusters' % group
	tags = [{'key': 'a', 'value': 'ROUTER'}, {'key': 'b', 'value': 'mongoDBVersion'}, {'key': 'c', 'value': 'MONGOS'}]
	sent = {'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': SPECS, 'configServerManagementMode': 'ATLAS_MANAGED', 'tags': tags}
	made = atlas('POST', path, json=sent)
	doc = ok(made, 201)
	assert made.headers['Location'] == server.base_url + path + '/' + name
	assert doc['configServerManagementMode'] == 'ATLAS_MANAGED' and doc['mongoDBMajorVersion'] and doc['tags'] == tags
	own = ok(server.owner.session.get('%s%s/groups/%s/clusters/%s' % (server.base_url, BASE, group, name)))
	assert own['configServerManagementMode'] == 'SVC_MANAGED' and own['dbMajorVersion'] == doc['mongoDBMajorVersion'] and own['tags'] == tags
	# Envelope, indentation and HEAD go through the same end.
	text = atlas('GET', path + '/' + name + '?envelope=true&pretty=true').text
	assert '\n    "configServerManagementMode": "ATLAS_MANAGED"' in text and json.loads(text)['status'] == 200
	assert atlas('HEAD', path + '/' + name).status_code == 200
	# Our words mean nothing here, and theirs nothing in our own.
	wrong = refused(atlas('POST', path, json={**sent, 'name': unique('c'), 'configServerManagementMode': 'SVC_MANAGED', 'dbMajorVersion': '16'}),
			400, 'VALIDATION_ERROR', 'dbMajorVersion', 'configServerManagementMode')
	assert 'must be one of ATLAS_MANAGED' in wrong['detail'] and 'dbMajorVersion: unknown field' in wrong['detail']
	own = server.owner.session.post('%s%s/groups/%s/clusters' % (server.base_url, BASE, group), json={**sent, 'mongoDBMajorVersion': '16'})
	assert 'must be one of SVC_MANAGED' in refused(own, 400)['detail']
	near = refused(atlas('PATCH', path + '/' + name, json={'dbMajorVersio': '16'}), 400)
	assert near['detail'] == 'dbMajorVersio: unknown field (did you mean mongoDBMajorVersion?).'
	refused(atlas('PATCH', path + '/' + name, json={'mongoDBMajorVersion': '3'}), 400, None, 'mongoDBMajorVersion')
	server.owner.session.delete('%s%s/groups/%s/clusters/%s' % (server.base_url, BASE, group, name))


def test_paths_and_parameters(atlas, group):
	path = V2 + '/groups/%s/' % group
	limit = ok(atlas('GET', path + 'limits/atlas.project.deployment.clusters'))
	assert limit['name'] == 'atlas.project.deployment.clusters' and limit['links'][0]['href'].endswith('/limits/atlas.project.deployment.clusters')
	assert {l['name'].split('.')[0] for l in ok(atlas('GET', path + 'limits'))} <= {'atlas', 'dataFederation'}
	refused(atlas('GET', path + 'limits/svc.project.deployment.clusters'), 404)
	ok(atlas('GET', path + 'mongoDBVersions'))
	refused(atlas('GET', path + 'dbVersions'), 404)
	assert 'mongodb, mongos' in refused(atlas('GET', path + 'clusters/h/logs/nothing.gz'), 404)['detail']
	ok(atlas('GET', path + 'events?eventType=MONGODB_USER_ADDED&eventType=ATLAS_MAINTENANCE_DEFERRED,JOINED_GROUP'))
	refused(atlas('GET', path + 'events?eventType=DB_USER_ADDED'), 400, None, 'eventType')
	ok(atlas('POST', path + 'databaseUsers', json={'groupId': group, 'databaseName': 'admin', 'username': 'somebody', 'password': 'a-long-password-1',
		'roles': [{'roleName': 'atlasAdmin', 'databaseName': 'admin'}]}), 201)
	assert 'MONGODB_USER_ADDED' in {e['eventTypeName'] for e in ok(atlas('GET', path + 'events?eventType=MONGODB_USER_ADDED'))['results']}
	refused(atlas('POST', path + 'databaseUsers', json={'groupId': group, 'databaseName': 'admin', 'username': 'other', 'password': 'a-long-password-1',
		'roles': [{'roleName': 'svcAdmin', 'databaseName': 'admin'}]}), 400)
	paths = {e['path'] for s in ok(atlas('GET', V2 + '/rateLimits?itemsPerPage=500'))['results'] for e in s['endpoints']}
	assert V2 + '/groups/{groupId}/mongoDBVersions' in paths and all(p.startswith(V2) for p in paths)
	assert ok(atlas('GET', V2))['appName'] == 'MongoDB Atlas'


def test_names_of_built_in_roles(atlas, group):
	"""Given to somebody, a role of that name would be the built-in one."""
	actions = [{'action': 'FIND', 'resources': [{'db': 'shop', 'collection': '', 'cluster': False}]}]
	path = V2 + '/groups/%s/customDBRoles/roles' % group
	for name in ('atlasAdmin', 'read'):
		refused(atlas('POST', path, json={'roleName': name, 'actions': actions}), 400, None, 'roleName')


def test_names_in_errors(module_server):
	"""Of things that somebody else has named, and that this request does not. Not recorded: see test_custom_roles."""
	server = module_server
	session, base = server.owner.session, server.base_url + V2 + '/groups/' + server.project()['id']
	ok(session.post(base + '/customDBRoles/roles', json={'roleName': 'r', 'actions': [
		{'action': 'FIND', 'resources': [{'db': 'shop', 'collection': '', 'cluster': False}]}]}), 202)
	ok(session.post(base + '/databaseUsers', json={'databaseName': 'admin', 'username': 'dbVersion', 'groupId': base[-24:],
		'password': 'a-long-password-1', 'roles': [{'roleName': 'r', 'databaseName': 'admin'}]}), 201)
	told = refused(session.delete(base + '/customDBRoles/roles/r'), 409, 'CUSTOM_ROLE_IN_USE', 'r', 'dbVersion')
	assert '"dbVersion"' in told['detail']
	# Of a container, by a cluster.
	ok(session.post(base + '/clusters', json={'name': 'svcAdmin', 'clusterType': 'REPLICASET', 'replicationSpecs': SPECS}), 201)
	container = ok(session.get(base + '/containers/all'))['results'][0]['id']
	told = refused(session.delete(base + '/containers/' + container), 409, 'CONTAINERS_IN_USE', 'svcAdmin')
	assert told['detail'].endswith('is in use by "svcAdmin".')


def test_raw_events(server, atlas):
	base = V2 + '/groups/' + server.project()['id']
	ok(atlas('PATCH', base + '/limits/atlas.project.deployment.clusters', json={'value': 20}))
	raw = ok(atlas('GET', base + '/events?includeRaw=true&eventType=PROJECT_LIMIT_UPDATED'))['results'][0]['raw']
	assert raw['description'] == 'Project limit updated; limitName: atlas.project.deployment.clusters; fields: value'


def test_names_in_events(module_server):
	"""They stay, whatever they are called. Not recorded, as above."""
	server = module_server
	session, base = server.owner.session, server.base_url + V2 + '/groups/' + server.project()['id']
	for name in ('dbVersion', 'svcAdmin', 'mongoDBVersion'):
		user = {'groupId': base[-24:], 'databaseName': 'admin', 'username': name, 'password': 'a-long-password-1',
			'roles': [{'roleName': 'read', 'databaseName': 'svcAdmin'}]}
		assert ok(session.post(base + '/databaseUsers', json=user), 201)['roles'] == user['roles']
		assert ok(session.delete(base + '/databaseUsers/admin/' + name), 204) is None
	told = ok(session.get(base + '/events?includeRaw=true&eventType=MONGODB_USER_DELETED'))['results']
	assert [e['raw']['description'] for e in told] == ['Mongodb user deleted; databaseName: admin; username: ' + name
		for name in ('mongoDBVersion', 'svcAdmin', 'dbVersion')]


def test_descriptions_of_events(server, atlas):
	"""Our words for types and fields are not seen."""
	base = V2 + '/groups/' + server.project()['id']
	ok(atlas('PATCH', base + '/maintenanceWindow', json={'dayOfWeek': 3}))
	told = ok(atlas('GET', base + '/events?includeRaw=true&eventType=ATLAS_MAINTENANCE_WINDOW_ADDED'))['results'][0]['raw']
	assert told['description'].startswith('Atlas maintenance window added')
	types = [t for n in (1, 2) for t in ok(atlas('GET', V2 + '/eventTypes?itemsPerPage=500&pageNum=%d' % n))['results']]
	assert all(t['description'] == t['eventType'].replace('_', ' ').capitalize() for t in types) and len(types) > 900


def test_a_check_of_a_cluster_has_their_words(atlas, group):
	said = ok(atlas('POST', V2 + '/groups/%s/clusterConfigurations:validate' % group, json={'editing': False, 'clusterDescription': {
		'name': 'c', 'clusterType': 'REPLICASET', 'replicationSpecs': SPECS, 'mongoDBMajorVersion': '3'}}))
	assert [e['validationIssue'].split(':')[0] for e in said['errors']] == ['mongoDBMajorVersion']


def test_codes(server, atlas):
	"""Clients branch on them: a project that cannot be closed yet is tried again, what is gone is made anew."""
	group = server.project()['id']
	path = V2 + '/groups/' + group
	refused(atlas('GET', path + '/customDBRoles/roles/nobody'), 404, 'ATLAS_CUSTOM_ROLE_NOT_FOUND')
	refused(atlas('GET', path + '/accessList/192.0.2.99'), 404, 'ATLAS_NETWORK_PERMISSION_ENTRY_NOT_FOUND')
	ok(atlas('POST', path + '/clusters', json={'name': 'c', 'clusterType': 'REPLICASET', 'replicationSpecs': SPECS}), 201)
	refused(atlas('DELETE', path), 409, 'CANNOT_CLOSE_GROUP_ACTIVE_ATLAS_CLUSTERS')
	own = '%s%s/groups/%s/' % (server.base_url, BASE, group)
	refused(server.owner.session.get(own + 'customDBRoles/roles/nobody'), 404, 'SVC_CUSTOM_ROLE_NOT_FOUND')
	ok(atlas('DELETE', path + '/clusters/c'), 202)


def test_leniency(server, atlas, group):
	"""What SDKs send along is ignored; our own dialect refuses it."""
	body = {'name': unique(), 'orgId': server.org, 'clusterCount': 0, 'created': '2026-01-01T00:00:00Z', 'tags': None, 'id': None}
	made = ok(atlas('POST', V2 + '/groups', json=body))
	assert made['created'] != body['created'] and made['tags'] == []
	own = requests.post(server.base_url + BASE + '/groups', json={**body, 'name': unique()}, verify=server.ca_file,
			    headers={'Authorization': 'Bearer ' + server.token()}, timeout=60)
	refused(own, 400, None, 'clusterCount', 'created', 'tags')
	path = V2 + '/groups/%s/databaseUsers' % made['id']
	user = {'groupId': made['id'], 'databaseName': 'admin', 'username': 'a', 'password': 'a-long-password-1', 'roles': [{'roleName': 'read', 'databaseName': 'x'}]}
	ok(atlas('POST', path, json=user), 201)
	refused(atlas('POST', V2 + '/groups', json={**body, 'name': unique(), 'nonsense': 1}), 400, None, 'nonsense')
	ok(atlas('DELETE', V2 + '/groups/' + made['id']), 204)


def test_digest(server, group):
	"""The uri that is hashed is the one that was sent."""
	key = server.bootstrap['apiKey']
	session = Alias(server.digest)
	ok(session('GET', V2 + '/groups/%s/mongoDBVersions?itemsPerPage=1' % group))
	with Wire(server) as wire:
		answer = wire.one('GET', V2 + '/groups', {'Accept': 'application/json'}, token=None)
		assert answer.status == 401 and 'Digest' in answer.header('www-authenticate'), key['publicKey']


def test_the_old_prefix_has_the_oldest_versions(server, atlas, group):
	own = ok(atlas('GET', V1 + '/groups/' + group))
	assert own['links'][0]['href'] == server.base_url + V1 + '/groups/' + group and len(own['links']) > 20
	assert atlas('GET', V1 + '/groups/%s/clusters' % group).headers['Content-Type'] == 'application/vnd.atlas.2023-01-01+json'


@pytest.mark.parametrize('accept', ['text/html, image/gif', 'application/vnd.atlas.2001-01-01+json', 'application/vnd.atlas.x+json', 'application/xml',
	'*/*;q=0', 'application/vnd.svc.2023-01-01+json', 'nonsense', 'text/csv', 'application/vnd.atlas.2024-08-05+json'])
def test_the_old_prefix_answers_whatever_is_accepted(atlas, group, accept):
	"""Its clients send what their libraries do."""
	answer = atlas('GET', V1 + '/groups/%s/clusters' % group, headers={'Accept': accept})
	assert ok(answer)['totalCount'] >= 0 and answer.headers['Content-Type'] == 'application/vnd.atlas.2023-01-01+json'
	assert atlas('GET', V2 + '/groups/%s/clusters' % group, headers={'Accept': accept}).status_code == (200 if '2024' in accept else 406)


def test_what_clients_ask_beside_the_api(server):
	get = lambda path, method='GET', **kw: requests.request(method, server.base_url + path, verify=server.ca_file, timeout=60, **kw)
	assert ok(get('/api/private/ipinfo')) == {'currentIpv4Address': '127.0.0.1'}
	assert re.fullmatch(r'\d+\.\d+\.\d+', get('/api/private/unauth/version').text)
	major = get('/api/private/unauth/nds/defaultMongoDBMajorVersion')
	assert re.fullmatch(r'\d+\.\d+', major.text) and major.headers['Content-Type'].startswith('text/plain')
	for path in ('/api/private/unauth/telemetry/events', '/api/private/v1.0/telemetry/events'):
		assert get(path, 'POST', json=[{'source': 'x'}]).status_code == 200
		assert get(path).headers['Allow'] == 'POST'
	assert get('/api/private/unauth/version', 'HEAD').status_code == 200
	refused(get('/api/private/nothing'), 404)


def test_dialects_can_be_switched_off(start_server, tmp_path):
	s = start_server('--dialects', 'none')
	for path in (V2 + '/groups', V1 + '/groups', '/api/private/ipinfo'):
		assert s.owner.session.get(s.base_url + path).status_code == 404
	assert s.owner.session.get(s.base_url + BASE + '/groups').status_code == 200
	with pytest.raises(AssertionError, match='--dialects: "nonsense" is no list of dialects'):
		start_server('--dialects', 'nonsense')


def test_the_old_prefix_takes_from_the_same_buckets(server, group):
	"""Our own v1 has none; a dialect's has all operations, and their limits."""
	answer = server.owner.session.get(server.base_url + V1 + '/groups/' + group)
	left = int(answer.headers['RateLimit-Remaining'])
	assert int(server.owner.session.get(server.base_url + V2 + '/groups/' + group).headers['RateLimit-Remaining']) == left - 1


# What clients send is what they read: a difference is a plan to replace it. Not recorded: the reference's checker knows the common forms.

@pytest.fixture(scope='module')
def apart():
	s = client.Server(exports=True)
	yield s
	conftest.end(s)


@pytest.mark.parametrize('event, sent, number', [
	('REPLICATION_OPLOG_WINDOW_RUNNING_OUT', {'operator': 'LESS_THAN', 'threshold': 2, 'units': 'DAYS'}, 48),
	('REPLICATION_OPLOG_WINDOW_RUNNING_OUT', {'operator': 'LESS_THAN', 'threshold': 3, 'units': 'HOURS'}, 3),
	('TOO_MANY_ELECTIONS', {'operator': 'GREATER_THAN', 'threshold': 3, 'units': 'RAW'}, 3)])
def test_thresholds_are_whole(apart, event, sent, number):
	server, atlas, group = apart, Alias(apart.owner), apart.group
	path = V2 + '/groups/%s/alertConfigs' % group
	body = {'eventTypeName': event, 'enabled': True, 'threshold': sent, 'notifications': [{'typeName': 'GROUP', 'intervalMin': 5, 'emailEnabled': True}]}
	made = ok(atlas('POST', path, json=body))
	one = path + '/' + made['id']
	again = ok(atlas('PUT', one, json={**body, 'threshold': made['threshold']}))
	listed = next(c for c in ok(atlas('GET', path))['results'] if c['id'] == made['id'])
	assert made['threshold'] == again['threshold'] == ok(atlas('GET', one))['threshold'] == listed['threshold'] == sent
	assert ok(atlas('PATCH', one, json={'enabled': False}))['threshold'] == sent
	own = '%s%s/groups/%s/alertConfigs/%s' % (server.base_url, BASE, group, made['id'])
	assert ok(server.owner.session.get(own))['threshold'] == {'threshold': number}
	# One that was written with the number alone is shown with what that means.
	ok(server.owner.session.put(own, json={**body, 'threshold': {'threshold': number}}))
	assert ok(atlas('GET', one))['threshold'] == {**sent, 'threshold': number, 'units': 'RAW' if sent['units'] == 'RAW' else 'HOURS'}


@pytest.mark.parametrize('provider, own', [('AWS', {'iamRoleId': ROLE, 'requirePrivateNetworking': False}), ('GCP', {'roleId': ROLE}),
	('AZURE', {'roleId': ROLE, 'serviceUrl': 'https://example.blob.core.windows.net/x'})])
def test_buckets_are_whole(apart, provider, own):
	atlas, group = Alias(apart.owner), apart.group
	path = V2 + '/groups/%s/backup/exportBuckets' % group
	sent = {'bucketName': unique('bucket-').lower(), 'cloudProvider': provider, **own}
	made = ok(atlas('POST', path, json=sent))
	shown, listed = ok(atlas('GET', '%s/%s' % (path, made['_id']))), next(b for b in ok(atlas('GET', path))['results'] if b['_id'] == made['_id'])
	for doc in (made, shown, listed):
		assert {**doc, **sent} == doc and ('tenantId' in doc) == (provider == 'AZURE')


def test_archives_are_whole(apart):
	server, atlas, group = apart, Alias(apart.owner), apart.group
	path = '%s/groups/%s/clusters' % (V2, group)
	name = ok(atlas('POST', path, json={'name': unique('c'), 'clusterType': 'REPLICASET', 'replicationSpecs': SPECS}), 201)['name']
	until(lambda: server.advance(60) or ok(atlas('GET', '%s/%s' % (path, name)))['stateName'] == 'IDLE')
	sent = {'criteria': {'type': 'DATE', 'dateField': 'made', 'dateFormat': 'ISODATE', 'expireAfterDays': 30},
		'dataProcessRegion': {'cloudProvider': 'AWS', 'region': 'EU_WEST_1'}}
	archives = '%s/%s/onlineArchives' % (path, name)
	made = ok(atlas('POST', archives, json={'dbName': 'shop', 'collName': 'orders', **sent}))
	for doc in (made, ok(atlas('GET', '%s/%s' % (archives, made['_id']))), ok(atlas('GET', archives))['results'][0]):
		assert {**doc, **sent} == doc


def test_every_answer_of_v1_can_be_decoded(server, atlas, group):
	path = '/groups/%s/clusters' % group
	name = ok(atlas('POST', V2 + path, json={'name': unique('c'), 'clusterType': 'REPLICASET', 'replicationSpecs': SPECS}), 201)['name']
	until(lambda: server.advance(60) or ok(atlas('GET', '%s%s/%s' % (V2, path, name)))['stateName'] == 'IDLE')
	assert ok(atlas('POST', '%s%s/%s/restartPrimaries' % (V1, path, name))) == {}
	answer = atlas('POST', '%s%s/%s/restartPrimaries' % (V2, path, name))
	assert answer.status_code in (200, 409) and (answer.content == b'') == (answer.status_code == 200)
