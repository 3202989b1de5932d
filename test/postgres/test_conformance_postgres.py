"""Every operation on clusters, their users, networks and maintenance with real databases behind it: one success and one
refusal at least of each, recorded, and at the end held against the API's data as the recordings of the other tests are."""
import datetime, gzip, json, time

import pytest

import client, recordings
from client import NO_ID, bare, in_force, is_late, ok, refused
from databases import region, shape, until
from directory import Authority
from recordings import api

FILE = client.BUILD / 'exchanges-postgres.jsonl'
SETS = 'S01 S10 S15 S16 S17 S18 S20 S22 S29 S33 S36 S38 S42 S43 S52 S67'.split()
SERVERLESS = {'Accept': 'application/vnd.svc.2023-01-01+json'}
SETTINGS = {'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}
PASSWORD = 'correct horse 4 battery'
CERTIFICATE_DAYS = 397
WANTED = [op for op in api.built() if op['set'] in SETS]


def shared(name):
	return {'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'TENANT', 'backingProviderName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		 'electableSpecs': {'instanceSize': 'M0'}}]}]}


class World:
	"""All clusters are asked for at once, and each test waits for its own."""

	def __init__(self, place):
		self.place, self.server = place, place.server
		two = {**shape(2), 'replicationSpecs': [{'regionConfigs': [region(2), {**region(1), 'regionName': 'US_WEST_2', 'priority': 6}]}]}
		self.post('clusters', {'name': 'main', **two}, 201)
		self.post('flexClusters', {'name': 'small', 'providerSettings': SETTINGS}, 201)
		for name in ('grows', 'bends'):
			self.post('clusters', shared(name), 201)

	def path(self, what):
		return '/groups/%s/%s' % (self.server.group, what)

	def get(self, what):
		return ok(self.server.get(self.path(what)))

	def post(self, what, body=None, status=200, **kw):
		return ok(self.server.post(self.path(what), json=body, **kw), status)

	def patch(self, what, body, status=200):
		return self.succeeds(lambda: self.server.patch(self.path(what), json=body), status, lambda: None)

	def delete(self, what, status=204, again=None):
		"""again() makes it anew, where that is needed."""
		return self.succeeds(lambda: self.server.delete(self.path(what)), status, again)

	def succeeds(self, call, status, again):
		"""On a busy machine a change may be saved and not yet in force, which is no success: then it is made once more."""
		answer = call()
		for _ in range(5):
			if not is_late(answer) or not again:
				break
			in_force(self.server, answer)
			again()
			answer = call()
		return ok(answer, status)

	def no(self, method, what, status, body=None, **kw):
		refused(self.server.request(method, self.path(what), json=body, **kw), status)

	def primary(self):
		found, = [p['userAlias'] for p in self.get('processes')['results']
			  if p['typeName'] == 'REPLICA_PRIMARY' and p['userAlias'].startswith('main-')]
		return found.split('.')[0]

	def idle(self, what):
		return self.place.wait(self.path(what))

	def gone(self, what):
		self.place.wait(self.path(what), None)

	def peer_gone(self, id_):
		until(lambda: self.server.get(self.path('peers/' + id_)).status_code == 404, what='the end of the connection')


@pytest.fixture(scope='module')
def world(start_place):
	client.BUILD.mkdir(parents=True, exist_ok=True)
	FILE.write_text('')
	return World(start_place('--record', FILE))


def test_networks(world):
	"""While the clusters are made."""
	assert bare(world.get('providerCustomDNS')) == {'enabled': False}
	world.patch('providerCustomDNS', {'enabled': True})
	world.no('PATCH', 'providerCustomDNS', 400, {'enabled': 'yes'})
	world.get('privateIpMode')
	world.patch('privateIpMode', {'enabled': False})
	world.no('PATCH', 'privateIpMode', 400, {})
	mine = world.post('containers', {'providerName': 'AWS', 'svcCidrBlock': '10.8.0.0/21', 'regionName': 'EU_WEST_1'})
	container = 'containers/' + mine['id']
	world.no('POST', 'containers', 409, {'providerName': 'AWS', 'svcCidrBlock': '10.8.0.0/24', 'regionName': 'EU_WEST_2'})
	assert world.get(container)['provisioned'] is False
	world.patch(container, {'providerName': 'AWS', 'svcCidrBlock': '10.9.0.0/21', 'regionName': 'EU_WEST_1'})
	world.no('PATCH', container, 400, {'providerName': 'AWS', 'svcCidrBlock': '8.8.8.0/24', 'regionName': 'EU_WEST_1'})
	assert world.get('containers?providerName=AWS')['totalCount'] == 3 == world.get('containers/all')['totalCount']
	world.no('GET', 'containers?providerName=MOON', 400)
	body = {'providerName': 'AWS', 'accepterRegionName': 'eu-west-1', 'awsAccountId': '123456789012', 'containerId': mine['id'],
		'routeTableCidrBlock': '10.200.0.1', 'vpcId': 'vpc-0123456789abcdef0'}
	peer = world.post('peers', body)['id']
	world.no('POST', 'peers', 409, body)
	world.no('DELETE', container, 409)
	until(lambda: world.get('peers/' + peer)['statusName'] == 'AVAILABLE', what='the connection')
	assert [p['id'] for p in world.get('peers')['results']] == [peer]
	world.patch('peers/' + peer, {**body, 'awsAccountId': '999999999999'})
	world.no('PATCH', 'peers/' + NO_ID, 404, body)
	world.delete('peers/' + peer, 202)
	world.peer_gone(peer)
	world.no('DELETE', 'peers/' + peer, 404)
	world.no('GET', 'peers/' + peer, 404)
	world.delete(container)
	world.no('GET', container, 404)


def test_clusters(world):
	main = world.idle('clusters/main')
	assert 'main' in [c['name'] for c in world.get('clusters')['results']]
	world.no('POST', 'clusters', 409, {'name': 'main', **shape(1)})
	world.no('POST', 'clusters', 400, {'name': 'two', **shape(2)})
	everything = {c['name'] for g in ok(world.server.get('/clusters'))['results'] for c in g['clusters']}
	assert 'main' in everything
	refused(world.server.anonymous.get('/clusters'), 401)
	addresses, = [c['inbound'] for c in world.get('ipAddresses')['services']['clusters'] if c['clusterName'] == 'main']
	assert len(addresses) == 3 and all(a in main['connectionStrings']['standard'] for a in addresses)
	assert world.get('clusters/provider/regions')['totalCount'] == 3
	assert world.post('clusterConfigurations:validate', {'editing': False, 'clusterDescription': {'name': 'x', **shape(1)}})['valid']
	world.no('POST', 'clusterConfigurations:validate', 400, {'editing': False})
	assert world.get('clusters/main/autoScalingConfiguration')['autoScalingMode']
	assert world.get('clusters/main/status')['changeStatus'] == 'APPLIED'
	assert world.get('clusters/main/processArgs')['minimumEnabledTlsProtocol'] == 'TLS1_2'
	assert world.patch('clusters/main/processArgs', {'oplogSizeMB': 1234})['oplogSizeMB'] == 1234
	world.no('PATCH', 'clusters/main/processArgs', 400, {'oplogSizeMB': 1})
	world.idle('clusters/main')
	world.patch('clusters/main', {'terminationProtectionEnabled': True})
	world.no('DELETE', 'clusters/main', 409)
	world.patch('clusters/main', {'terminationProtectionEnabled': False})
	world.no('PATCH', 'clusters/main', 400, {'name': 'other'})


def test_what_is_done_to_a_cluster(world):
	world.idle('clusters/main')
	before = [p['hostname'] for p in world.get('processes')['results'] if p['typeName'] == 'REPLICA_PRIMARY']
	world.post('clusters/main/restartPrimaries')
	assert world.get('clusters/main')['stateName'] == 'UPDATING', 'as long as its primaries change'
	until(lambda: [p['hostname'] for p in world.get('processes')['results'] if p['typeName'] == 'REPLICA_PRIMARY'] != before, 120,
	      'another primary')
	until(lambda: world.get('clusters/main/status')['changeStatus'] == 'APPLIED', 120, 'the switchover')
	assert world.get('clusters/main')['stateName'] == 'IDLE'
	load = world.post('sampleDatasetLoad/main', None, 201)
	world.no('POST', 'sampleDatasetLoad/none', 404)
	until(lambda: world.get('sampleDatasetLoad/' + load['_id'])['state'] == 'COMPLETED', 180, 'the sample data')
	hour = (datetime.datetime.utcnow() + datetime.timedelta(hours=1)).strftime('%Y-%m-%dT%H:%M:%SZ')
	world.post('clusters/main:grantVendorEmployeeAccess', {'grantType': 'CLUSTER_DATABASE_LOGS', 'expirationTime': hour}, 204)
	world.no('POST', 'clusters/main:grantVendorEmployeeAccess', 400, {'grantType': 'NONE', 'expirationTime': hour})
	world.post('clusters/main:revokeVendorEmployeeAccess', None, 204)
	world.no('POST', 'clusters/main:unpinFeatureCompatibilityVersion', 400)
	world.post('clusters/main:pinFeatureCompatibilityVersion', None, 204)
	world.post('clusters/main:unpinFeatureCompatibilityVersion', None, 204)


def test_an_outage(world):
	outage = 'clusters/main/outageSimulation'
	west = {'outageFilters': [{'cloudProvider': 'AWS', 'regionName': 'US_WEST_2', 'type': 'REGION'}]}
	world.idle('clusters/main')
	world.no('GET', outage, 404)
	world.no('DELETE', outage, 404)
	world.post(outage, west)
	world.no('POST', outage, 400, west)
	until(lambda: world.get(outage)['state'] == 'SIMULATING', 180, 'the outage')
	assert [p['typeName'] for p in world.get('processes')['results'] if p['userAlias'].startswith('main-')].count('NO_DATA') == 1
	world.delete(outage, 200)
	until(lambda: world.get(outage)['state'] == 'COMPLETE', 180, 'the end of the outage')
	world.idle('clusters/main')
	home = world.primary()
	world.post(outage, {'outageFilters': [{'cloudProvider': 'AWS', 'regionName': 'US_EAST_1', 'type': 'REGION'}]})
	until(lambda: world.get(outage)['state'] == 'SIMULATING', 180, 'the outage of the primary')
	assert world.primary() == 'main-shard-00-02' != home
	world.delete(outage, 200)
	until(lambda: world.get(outage)['state'] == 'COMPLETE', 180, 'the end of the outage')
	world.idle('clusters/main')
	assert world.primary() in ('main-shard-00-00', 'main-shard-00-01'), 'back in the region of the highest priority'


def test_processes_and_logs(world):
	world.idle('clusters/main')
	process = next(p for p in world.get('processes')['results'] if p['userAlias'].startswith('main-'))
	base = 'processes/' + process['id']
	assert world.get(base)['version'].startswith(world.get('clusters/main')['dbMajorVersion'])
	assert 'postgres' in [d['databaseName'] for d in world.get(base + '/databases')['results']]
	assert world.get(base + '/databases/postgres')['databaseName'] == 'postgres'
	world.no('GET', base + '/databases/nothing', 404)
	disks = [d['partitionName'] for d in world.get(base + '/disks')['results']]
	assert len(disks) == 2 and disks[0] == 'node'
	for name in disks:
		world.get(base + '/disks/' + name)
	world.no('GET', base + '/disks/nothing', 404)
	window, search = '/measurements?granularity=PT1M&period=PT1H', 'hosts/%s/fts/metrics' % process['id']
	until(lambda: any('value' in p for p in world.get(base + window + '&m=CONNECTIONS')['measurements'][0]['dataPoints']), 60, 'a sample')
	for below, metric in (('', 'MEMORY_RESIDENT'), ('/databases/postgres', 'DATABASE_STORAGE_SIZE'),
			      ('/disks/' + disks[0], 'DISK_PARTITION_SPACE_FREE')):
		assert world.get(base + below + window + '&m=' + metric)['measurements'][0]['name'] == metric
		world.no('GET', base + below + window.replace('PT1M', 'PT2M'), 400)
	assert len(world.get(search)['indexMetrics']) == 10
	world.no('GET', 'hosts/x:27017/fts/metrics', 404)
	for below, metric in (('', 'PAGE_FAULTS'), ('/indexes/postgres/t', 'REPLICATION_LAG'), ('/indexes/postgres/t/i', 'REPLICATION_LAG')):
		world.get(search + below + window + '&metrics=' + metric)
		world.no('GET', search + below + window + '&metrics=NONE', 400)
	r = world.server.get(world.path('clusters/%s/logs/db.gz' % process['hostname']))
	assert r.status_code == 200
	assert any('ready to accept' in json.loads(line)['message'] for line in gzip.decompress(r.content).splitlines())
	world.no('GET', 'clusters/%s/logs/other.gz' % process['hostname'], 404)


def test_users_and_roles(world):
	resources = [{'db': 'shop', 'collection': '', 'cluster': False}]
	world.post('customDBRoles/roles', {'roleName': 'finder', 'actions': [{'action': 'FIND', 'resources': resources}],
					   'inheritedRoles': []}, 202)
	world.no('POST', 'customDBRoles/roles', 400, {'roleName': 'read', 'actions': [], 'inheritedRoles': []})
	world.patch('customDBRoles/roles/finder', {'actions': [{'action': 'INSERT', 'resources': resources}]})
	world.no('PATCH', 'customDBRoles/roles/none', 404, {'inheritedRoles': []})
	assert [r['roleName'] for r in world.get('customDBRoles/roles')] == ['finder'] == [world.get('customDBRoles/roles/finder')['roleName']]
	user = {'username': 'anna', 'databaseName': 'admin', 'groupId': world.server.group,
		'roles': [{'roleName': 'readWrite', 'databaseName': 'shop'}]}
	world.post('databaseUsers', {**user, 'password': PASSWORD}, 201)
	world.no('POST', 'databaseUsers', 409, {**user, 'password': PASSWORD})
	world.patch('databaseUsers/admin/anna', {**user, 'description': 'hers'})
	world.no('PATCH', 'databaseUsers/admin/anna', 400, {**user, 'roles': []})
	assert world.get('databaseUsers')['totalCount'] == 1 and world.get('databaseUsers/admin/anna')['description'] == 'hers'
	world.delete('databaseUsers/admin/anna', again=lambda: world.post('databaseUsers', {**user, 'password': PASSWORD}, 201))
	world.no('GET', 'databaseUsers/admin/anna', 404)
	world.delete('customDBRoles/roles/finder')
	world.no('DELETE', 'customDBRoles/roles/finder', 404)


def test_access_list(world):
	entry = lambda: world.post('accessList', [{'ipAddress': '127.0.0.7', 'comment': 'one'}])
	listed = entry()
	assert listed['totalCount'] == 1 == world.get('accessList')['totalCount']
	world.no('POST', 'accessList', 400, [{'ipAddress': '127.0.0'}])
	assert world.get('accessList/127.0.0.7')['comment'] == 'one'
	assert world.get('accessList/127.0.0.7/status')['STATUS'] in ('ACTIVE', 'PENDING')
	world.delete('accessList/127.0.0.7', again=entry)
	world.no('GET', 'accessList/127.0.0.7/status', 404)


def test_user_security(world, tmp_path):
	world.get('userSecurity')
	world.patch('userSecurity', {'customerX509': {'cas': Authority(tmp_path).pem}}, 202)
	world.no('PATCH', 'userSecurity', 400, {'customerX509': {'cas': 'none'}})
	for what in ('userSecurity/customerX509', 'userSecurity/ldap/userToDNMapping'):
		world.delete(what, 202, again=lambda: None)
	bind = {'hostname': 'localhost.', 'port': 1, 'bindUsername': 'CN=admin,DC=example,DC=org', 'bindPassword': 'x'}
	check = world.post('userSecurity/ldap/verify', bind)['requestId']
	world.no('POST', 'userSecurity/ldap/verify', 400, {**bind, 'port': 0})
	until(lambda: world.get('userSecurity/ldap/verify/' + check)['status'] == 'FAIL', what='the end of the check')
	user = lambda: world.post('databaseUsers', {'username': 'xena', 'databaseName': '$external', 'groupId': world.server.group,
						    'x509Type': 'MANAGED', 'roles': [{'roleName': 'read', 'databaseName': 'shop'}]}, 201)
	user()
	assert 'BEGIN CERTIFICATE' in world.post('databaseUsers/xena/certs', {'monthsUntilExpiration': 1}, 201)
	world.no('POST', 'databaseUsers/xena/certs', 400, {'monthsUntilExpiration': 99})
	assert world.get('databaseUsers/xena/certs')['totalCount'] == 1
	world.delete('databaseUsers/$external/xena', again=user)


def test_audit_log(world):
	world.idle('clusters/main')
	assert world.get('auditLog')['enabled'] is False
	world.patch('auditLog', {'auditFilter': json.dumps({'atype': 'createCollection'})})
	world.no('PATCH', 'auditLog', 400, {'auditFilter': '{'})


def test_maintenance_window(world):
	world.get('maintenanceWindow')
	world.patch('maintenanceWindow', {'dayOfWeek': 4, 'hourOfDay': 22})
	world.no('PATCH', 'maintenanceWindow', 400, {'dayOfWeek': 8})
	world.post('maintenanceWindow/autoDefer')
	world.no('POST', 'maintenanceWindow/defer', 409)
	world.delete('maintenanceWindow')


def test_flex_clusters_and_upgrades(world):
	world.idle('flexClusters/small')
	assert [c['name'] for c in world.get('flexClusters')['results']] == ['small']
	world.no('POST', 'flexClusters', 409, {'name': 'small', 'providerSettings': SETTINGS})
	world.patch('flexClusters/small', {'tags': [{'key': 'a', 'value': 'b'}]})
	world.no('PATCH', 'flexClusters/small', 400, {'tags': [{'key': 'a', 'value': 'b'}] * 2})
	world.post('flexClusters:tenantUpgrade', {'name': 'small', **shape(1)})
	world.no('POST', 'flexClusters:tenantUpgrade', 404, {'name': 'none', **shape(1)})
	world.idle('clusters/bends')
	world.post('clusters/tenantUpgradeToServerless', {'name': 'bends', 'providerSettings': SETTINGS}, headers=SERVERLESS)
	world.no('POST', 'clusters/tenantUpgradeToServerless', 404, {'name': 'none', 'providerSettings': SETTINGS}, headers=SERVERLESS)
	world.idle('clusters/grows')
	settings = {'providerName': 'AWS', 'instanceSizeName': 'M10', 'regionName': 'US_EAST_1'}
	world.post('clusters/tenantUpgrade', {'name': 'grows', 'providerSettings': settings})
	world.no('POST', 'clusters/tenantUpgrade', 404, {'name': 'none', 'providerSettings': settings})
	for name in ('clusters/small', 'flexClusters/bends', 'clusters/grows'):
		world.idle(name)
	world.delete('flexClusters/bends')
	r = world.server.delete(world.path('flexClusters/bends'))
	refused(r, 404 if r.status_code == 404 else 409)  # it may be gone already
	world.delete('clusters/small', 202)
	world.delete('clusters/grows', 202)
	for name in ('flexClusters/bends', 'clusters/small', 'clusters/grows'):
		world.gone(name)


def test_a_project_that_is_none(world):
	"""Whatever is asked of it."""
	for op in WANTED:
		if '{groupId}' not in op['path']:
			continue
		path = api.path(op, groupId=NO_ID) + api.query(op)
		versions = {'Accept': 'application/vnd.svc.%s+json' % op['versions'][0]} if op['operationId'] == 'upgradeClusterToServerless' else None
		r = world.server.request(op['method'], path, json=api.good(op, groupId=NO_ID), headers=versions)
		assert r.status_code == 404, '%s: %d %s' % (op['operationId'], r.status_code, r.text)


def test_a_maintenance_is_put_off(start_place):
	"""Certificates of nodes that end soon make one pending: on the virtual clock, because nobody waits a year."""
	s = start_place('--record', FILE, clock='virtual')
	server, window = s.server, '/groups/%s/maintenanceWindow' % s.server.group
	ok(server.post('/groups/%s/clusters' % server.group, json={'name': 'old', **shape(1)}), 201)
	s.wait('/groups/%s/clusters/old' % server.group)
	refused(server.post(window + '/defer'), 409, 'MAINTENANCE_NOT_SCHEDULED')
	server.advance((CERTIFICATE_DAYS - 29) * 86400)
	server.owner.session.auth = server.digest.session.auth  # the account's secret has ended meanwhile

	def announced():
		events = ok(server.get('/groups/%s/events' % server.group))['results']
		return 'PROJECT_SCHEDULED_MAINTENANCE' in [e['eventTypeName'] for e in events]
	until(announced, what='the announcement')
	ok(server.post(window + '/defer'))
	assert ok(server.get(window))['numberOfDeferrals'] == 1
	time.sleep(0.1)
	assert ok(server.get('/groups/%s/clusters/old' % server.group))['stateName'] == 'IDLE', 'it was put off'


# The last: what all of the above has recorded.


@pytest.fixture(scope='module')
def recorded():
	# What was saved and not yet in force was made once more.
	found = [x for x in (recordings.exchanges(FILE) if FILE.exists() else []) if x['status'] != 503 or 'ACCESS_NOT_IN_FORCE' not in str(x)]
	if len(found) < 2 * len(WANTED):
		pytest.skip('the tests before this have not run')
	return found


def test_every_exchange_fits(recorded):
	bad = recordings.faults(recorded)
	assert not bad, bad


def test_every_operation_was_used(recorded):
	assert len(WANTED) >= 83, 'operations have been lost'
	good, no = recordings.used(recorded)
	wanted = {op['operationId'] for op in WANTED}
	assert not wanted - good, 'no success: %s' % sorted(wanted - good)
	assert not wanted - no, 'no refusal: %s' % sorted(wanted - no)


@pytest.mark.skipif(not recordings.reference().exists(), reason='no reference checker beside the checkout')
def test_reference_rules(recorded):
	bad, good = recordings.reference_check(recorded)
	assert not bad, bad
	missing = {op['operationId'] for op in WANTED} - good
	assert not missing, 'no valid success: %s' % sorted(missing)
