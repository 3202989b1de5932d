"""npm's mongodb-atlas-api-client on base path v2, each function of it: digest authentication, plain JSON, no dates."""
import json, pathlib
from urllib.parse import quote

import pytest

import programs
from client import ID, ok, pass_time, unique

# What cannot work there, by thing or function, and why.
CANNOT = {
	'projectWhitelist': 'v2 has no whitelist: accessList took its place',
	'dataLake': 'v2 has no dataLakes: dataFederation took their place',
	'atlasUser.update': 'v2 has no PATCH of a user',
	'atlasSearch': 'v2 has no list of analyzers; the others are not tried here',
}
HARDWARE = {'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1',
	'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}


class Client(programs.Program):
	def __init__(self, server, key, project):
		super().__init__(server, pathlib.Path(__file__).with_name('calls.mjs'), programs.package('mongodb-atlas-api-client'),
				server.base_url + '/api/atlas/v2', key['publicKey'], key['privateKey'], project)
		self.called, self.key = set(), key

	def ask(self, **what):
		self.send(what)
		answer = self.receive()
		assert 'thrown' not in answer, answer
		return answer['value']

	def answer(self, function, *args):
		"""What a function returns; it tells neither a status nor a failure but in the document."""
		since = programs.lines()
		value = self.ask(call=function.split('.'), **{'with': args})
		self.called.add(function)
		assert 'svc' not in json.dumps(value).lower(), 'a word of ours: %s' % value
		exchange = programs.recorded(since)
		assert exchange['url'].startswith('/api/atlas/v2/'), exchange['url']
		return value, exchange['status']

	def __call__(self, function, *args):
		value, status = self.answer(function, *args)
		assert 200 <= status < 300, (function, status, value)
		return value

	def refused(self, function, *args):
		value, status = self.answer(function, *args)
		assert status >= 400 and (value is True or value['error'] == status), (function, status, value)
		return status


@pytest.fixture(scope='module')
def org(clients_server):
	"""An organization of its own, with a key that owns it."""
	found, = clients_server.seed({'name': unique('org'), 'projects': ['one'], 'principals': [
		{'type': 'apiKey', 'roles': ['ORG_OWNER']}, {'type': 'user', 'username': unique('ada') + '@example.com', 'roles': ['ORG_MEMBER'],
			'projectRoles': [{'project': 'one', 'roles': ['GROUP_READ_ONLY']}]}]})
	return found


@pytest.fixture(scope='module')
def api(clients_server, org):
	c = Client(clients_server, org['principals'][0], org['projects'][0]['id'])
	yield c
	c.end()


@pytest.fixture(autouse=True)
def full_buckets(clients_server):
	clients_server.refill()


def test_database_users(org, api):
	made = api('user.create', {'groupId': org['projects'][0]['id'], 'databaseName': 'admin', 'username': 'ada', 'password': 'correct horse battery',
		'roles': [{'roleName': 'atlasAdmin', 'databaseName': 'admin'}]})
	assert made['roles'] == [{'roleName': 'atlasAdmin', 'databaseName': 'admin'}] and 'password' not in made
	assert api('user.get', 'ada')['username'] == 'ada'
	assert api('user.update', 'ada', {'roles': [{'roleName': 'read', 'databaseName': 'shop'}]})['roles'][0]['roleName'] == 'read'
	assert api('user.getAll', {'itemsPerPage': 10, 'pretty': True})['totalCount'] == 1
	wrapped = api('user.get', 'ada', {'envelope': True})
	assert wrapped['status'] == 200 and wrapped['content']['username'] == 'ada'
	assert api('user.delete', 'ada') is True
	assert api.refused('user.get', 'ada') == 404


def test_custom_roles(api):
	actions = [{'action': 'FIND', 'resources': [{'db': 'shop', 'collection': 'orders', 'cluster': False}]}]
	assert api('customDbRole.create', {'roleName': 'buyer', 'actions': actions})['roleName'] == 'buyer'
	assert [r['roleName'] for r in api('customDbRole.getAll')] == ['buyer']
	changed = api('customDbRole.update', 'buyer', {'actions': [{**actions[0], 'action': 'INSERT'}]})
	assert changed['actions'][0]['action'] == 'INSERT'
	assert api('customDbRole.get', 'buyer')['actions'] == changed['actions']
	assert api('customDbRole.delete', 'buyer') is True
	assert api.refused('customDbRole.get', 'buyer') == 404


def test_access_list(api):
	assert api('projectAccesslist.create', [{'cidrBlock': '198.51.100.0/24', 'comment': 'first'}])['totalCount'] == 1
	assert api('projectAccesslist.update', [{'ipAddress': '192.0.2.7'}])['totalCount'] == 2
	entry = quote('198.51.100.0/24', safe='')
	assert api('projectAccesslist.get', entry)['comment'] == 'first'
	assert {e['cidrBlock'] for e in api('projectAccesslist.getAll')['results']} == {'198.51.100.0/24', '192.0.2.7/32'}
	assert api('projectAccesslist.delete', entry) is True
	assert api.refused('projectAccesslist.get', entry) == 404


def test_clusters_and_backups(clients_server, api):
	def settled(**fields):
		def look():
			c = api('cluster.get', 'c0')
			return c['stateName'] == 'IDLE' and all(c[k] == v for k, v in fields.items()) and c
		return pass_time(clients_server, look)

	made = api('cluster.create', {'name': 'c0', 'backupEnabled': True, **HARDWARE})
	assert made['stateName'] == 'CREATING' and 'mongoDBMajorVersion' in made
	assert settled()['mongoDBVersion'].startswith(made['mongoDBMajorVersion'].split('.')[0])
	assert [c['name'] for c in api('cluster.getAll')['results']] == ['c0']
	assert api('cluster.updateAdvanceConfiguration', 'c0', {'javascriptEnabled': False})['javascriptEnabled'] is False
	assert api('cluster.getAdvanceConfiguration', 'c0')['javascriptEnabled'] is False
	settled()
	api('cluster.update', 'c0', {'terminationProtectionEnabled': True})
	settled(terminationProtectionEnabled=True)
	api('cluster.update', 'c0', {'terminationProtectionEnabled': False})
	settled(terminationProtectionEnabled=False)
	api('cluster.testPrimaryFailOver', 'c0')
	settled()

	group = made['groupId']
	snapshot = ok(clients_server.api_for(api.key).post('/groups/%s/clusters/c0/backup/snapshots' % group, json={'retentionInDays': 1}))
	done = pass_time(clients_server, lambda: (lambda s: s['status'] == 'completed' and s)(
		api('cloudBackup.getReplicaSetCloudBackup', 'c0', snapshot['id'])))
	assert done['mongodVersion']
	assert api('cloudBackup.getAllReplicaSetCloudBackups', 'c0')['results'][0]['id'] == snapshot['id']
	job = api('cloudBackup.createSnapshotRestoreJob', 'c0', {'deliveryType': 'automated', 'snapshotId': snapshot['id'],
		'targetClusterName': 'c0', 'targetGroupId': group})
	pass_time(clients_server, lambda: api('cloudBackup.getSnapshotRestoreJob', 'c0', job['id']).get('finishedAt'))

	assert api('cluster.delete', 'c0') is True
	pass_time(clients_server, lambda: api.answer('cluster.get', 'c0')[1] == 404)
	assert api.refused('cluster.getAdvanceConfiguration', 'c0') == 404


def test_projects(clients_server, org, api):
	name = unique()
	made = api('project.create', {'name': name, 'orgId': org['id']})
	assert ID.match(made['id']) and made['clusterCount'] == 0
	assert api('project.getById', made['id'])['name'] == name == api('project.getByName', name)['name']
	assert made['id'] in {p['id'] for p in api('project.getAll')['results']}
	owner = clients_server.api_for(api.key)
	team = ok(owner.post('/orgs/%s/teams' % org['id'], json={'name': unique(), 'usernames': [org['principals'][1]['username']]}))
	assert api('project.assignTeams', made['id'], [{'teamId': team['id'], 'roleNames': ['GROUP_OWNER']}])['totalCount'] == 1
	assert api('project.getTeamsByProjectId', made['id'])['results'][0]['teamId'] == team['id']
	person = api('atlasUser.getByName', org['principals'][1]['username'])
	assert api('project.removeUserFromProject', org['projects'][0]['id'], person['id']) is True
	assert api('project.delete', made['id']) is True
	assert api.refused('project.getById', made['id']) in (401, 403, 404)


def test_organizations_and_people(org, api):
	where = org['id']
	assert where in {o['id'] for o in api('organization.getAll')['results']}
	assert api('organization.rename', where, {'name': 'another'})['name'] == 'another' == api('organization.getById', where)['name']
	assert api('organization.getAllProjectsForOrganization', where)['totalCount'] >= 1
	people = api('organization.getAllUsersForOrganization', where)['results']
	assert org['principals'][1]['username'] in {p['username'] for p in people}
	invited = api('organization.invite', where, {'username': unique() + '@example.com', 'roles': ['ORG_MEMBER']})
	assert invited['orgId'] == where
	person = api('atlasUser.getByName', org['principals'][1]['username'])
	assert api('atlasUser.getById', person['id'])['emailAddress'] == person['emailAddress']
	assert isinstance(api('atlasUser.getAll')['results'], list)
	new = api('atlasUser.create', {'username': unique() + '@example.com', 'password': 'correct horse battery', 'firstName': 'Bob',
		'lastName': 'Builder', 'country': 'US', 'mobileNumber': '2125550198', 'roles': [{'orgId': where, 'roleName': 'ORG_MEMBER'}]})
	assert new['firstName'] == 'Bob'


def test_events_and_alerts(clients_server, org, api):
	group = org['projects'][0]['id']
	events = api('event.getAll', {'itemsPerPage': 5})['results']
	assert api('event.get', events[0]['id'])['eventTypeName'] == events[0]['eventTypeName']
	events = api('event.getAllByOrganizationId', org['id'], {'itemsPerPage': 5})['results']
	assert api('event.getByOrganizationId', org['id'], events[0]['id'])['id'] == events[0]['id']
	owner = clients_server.api_for(api.key)
	ok(owner.post('/groups/%s/alertConfigs' % group, json={'eventTypeName': 'CLUSTER_ROUTER_IS_MISSING', 'enabled': True,
		'notifications': [{'typeName': 'EMAIL', 'emailAddress': 'ada@example.com'}]}))
	clients_server.control('events', {'groupId': group, 'eventTypeName': 'CLUSTER_ROUTER_IS_MISSING', 'clusterName': 'c0', 'hostname': 'n0',
		'port': 5432})
	alert, = pass_time(clients_server, lambda: api('alert.getAll', {'status': 'OPEN'})['results'])
	assert api('alert.get', alert['id'])['eventTypeName'] == 'CLUSTER_MONGOS_IS_MISSING'
	known = api('alert.acknowledge', alert['id'], {'acknowledgedUntil': '2099-01-01T00:00:00Z', 'acknowledgementComment': 'seen'})
	assert known['acknowledgementComment'] == 'seen'


def test_provider_access(api):
	"""The service of these tests has no identity at any provider."""
	assert api('cloudProviderAccess.getAll') == {'awsIamRoles': [], 'azureServicePrincipals': [], 'gcpServiceAccounts': []}
	assert api.refused('cloudProviderAccess.create', {'providerName': 'AWS'}) == 400
	wanted = {'providerName': 'AWS', 'iamAssumedRoleArn': 'arn:aws:iam::123456789012:role/exports'}
	assert api.refused('cloudProviderAccess.update', 'f' * 24, wanted) == 404
	assert api.refused('cloudProviderAccess.delete', 'AWS', 'f' * 24) == 404


def test_every_function_is_called(org, api):
	"""And what cannot work is refused as it should be."""
	assert api.refused('projectWhitelist.getAll') == 404
	assert api.refused('dataLake.getAll') == 404
	assert api.refused('atlasUser.update', 'f' * 24, {'firstName': 'Bob'}) == 405
	assert api.refused('atlasSearch.getAllAnalyzers', 'c0') == 404
	assert api('project.delete', org['projects'][0]['id']) is True
	assert api('organization.delete', org['id']) is True
	never = set(api.ask(functions=True)) - api.called
	assert {f for f in never if f not in CANNOT and f.split('.')[0] not in CANNOT} == set()
