"""Dated versions: which date chooses which, what each says of its end, and each operation in the form of each of its
versions. What is refused, and every version that has a body of its own, is derived from the rows."""
import datetime

import pytest

import versions
from client import NO_ID, Wire, bare, leave, ok, pass_time, refused, unique
from derive import Api
from test_backups import create as backed_up
from test_teams import make as make_team
from test_users import account

api = Api()
LATER, EARLIER = datetime.timedelta(1), datetime.timedelta(-1)


def of(operation):
	return api.by_id[operation]['versions']


def day(date, shift):
	return (datetime.date.fromisoformat(date) + shift).isoformat()


class Caller:
	"""Calls in one version, and looks at what the answer says of it."""

	def __init__(self, server, date, caller=None):
		self.server, self.date, self.api = server, date, caller or server.owner

	def __call__(self, method, path, json=None, status=None):
		op = api.match(method, path.split('?')[0])
		accept = versions.media(op, self.date)
		headers = {'Accept': accept, **({'Content-Type': accept} if json is not None else {})}
		r = self.api.request(method, path, json=json, headers=headers)
		version = versions.chosen(op, self.date)
		told = r.headers.get('Deprecation'), r.headers.get('Sunset')
		assert told == versions.ending(op, version), (op['operationId'], version, r.status_code, r.text)
		if status and status >= 400:
			return refused(r, status)
		assert r.status_code == (status or op['success']), (op['operationId'], version, r.status_code, r.text)
		if not r.content:
			return None
		assert r.headers['Content-Type'] == versions.media(op, version)
		if 'json' not in op['produces']:
			return r.content
		doc = r.json()
		assert not api.faults(versions.row(op, version)['response'], doc), (op['operationId'], version)
		return doc


def each(server, operation, caller=None):
	"""A caller for each version of an operation but the newest, which all other tests speak."""
	return [Caller(server, date, caller) for date in of(operation)[:-1]]


def writable(schema, value):
	"""What of an answer can be sent back."""
	schema = api.resolve(schema)
	if isinstance(value, list):
		return [writable(schema.get('items', {}), x) for x in value]
	if not isinstance(value, dict):
		return value
	fields = dict(api.merged(schema)[0])
	for key, branch in api.branches(schema):
		if key is None or value.get(schema['discriminator']['propertyName']) == key:
			fields.update(api.merged(branch)[0])
	if not fields:
		return value
	return {k: writable(fields[k], v) for k, v in value.items() if k in fields and not api.read_only(fields[k])}


# Which version

class World:
	def __init__(self, server):
		doc, = server.seed({'name': unique('dated'), 'projects': ['p'], 'principals': [
			{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
		self.server, self.token = server, doc['principals'][0]['accessToken']
		self.ids = {'groupId': doc['projects'][0]['id'], 'orgId': doc['id'],
			    'federationSettingsId': doc['federationSettingsId']}

	def sweep(self, calls):
		"""The answers to (operation, path, headers, body), in order. Buckets are filled before one runs out."""
		spent, out, part = {}, [], []
		with Wire(self.server, self.token) as wire:
			for op, *call in calls:
				if spent.setdefault(op['set'], op['limits']['capacity']) == 0:
					out += wire.batch(part)
					self.server.refill()
					spent, part = {op['set']: op['limits']['capacity']}, []
				spent[op['set']] -= 1
				part.append((op['method'], *call))
			out += wire.batch(part)
		self.server.refill()
		return out


def wrong_query(op, world):
	"""A path that the version refuses itself: what comes before it is right."""
	query = api.query(op)
	return api.path(op, **world.ids) + query + ('&' if query else '?') + 'pretty=maybe'


@pytest.fixture(scope='module')
def world(older_server):
	return World(older_server)


def test_a_date_chooses_the_newest_version_not_after_it(world):
	"""Of every operation, built or not: at its own dates, the day before and the day after, long after, and before
	there was any. The query is wrong, so that the version refuses it, and tells its end."""
	calls, expected = [], []
	for op in api.ops:
		path = wrong_query(op, world)
		days = {d for v in op['versions'] for d in (v, day(v, EARLIER), day(v, LATER))}
		days |= {'2999-12-31', '1999-12-31'}
		for date in sorted(days) + ['preview', 'upcoming']:
			calls.append((op, path, {'Accept': versions.media(op, date)}, None))
			expected.append((op, date, versions.chosen(op, date) if date[0].isdigit() else None))
	wrong = []
	for (op, date, version), a in zip(expected, world.sweep(calls)):
		doc, told = a.json(), (a.header('deprecation'), a.header('sunset'))
		if version:
			fits = a.status == 400 and doc['parameters'] == ['pretty'] and told == versions.ending(op, version)
		else:
			code = 'VERSION_NOT_AVAILABLE' if date[0].isdigit() else 'INVALID_VERSION_DATE'
			fits = a.status == 406 and doc['parameters'] == op['versions'] and doc['errorCode'] == code and \
				told == (None, None)
		if not fits:
			wrong.append((op['operationId'], date, version, a.status, told, doc))
	assert len(calls) > 3000 and not wrong, '%d: %s' % (len(wrong), wrong[:5])


def test_a_version_has_the_forms_of_its_operation(world):
	"""JSON, gzip or CSV, whatever the date; another form is none of its versions."""
	calls = [(op, wrong_query(op, world), {'Accept': versions.media(op, date, form)}, None)
		for op in api.built() for date in op['versions'] for form in ('json', 'gzip', 'csv')
		if len(op['produces']) > 1 or op['produces'] != ['json'] or versions.chosen(op) != date]
	for call, a in zip(calls, world.sweep(calls)):
		has = call[2]['Accept'].rsplit('+', 1)[1] in call[0]['produces']
		assert a.status == (400 if has else 406), (call, a.status, a.body)
	assert len({call[0]['operationId'] for call in calls}) > 20


def fields(schema):
	"""Names of all fields, in whichever branch."""
	schema = api.resolve(schema)
	return set(api.merged(schema)[0]).union(*(api.merged(b)[0] for _, b in api.branches(schema)))


def test_a_version_takes_the_fields_that_it_has(world):
	"""Where versions take different bodies: a field of one of them is unknown to those that do not have it."""
	calls, expected = [], []
	for op in api.built():
		if 'request' not in op or 'olderVersions' not in op:
			continue
		forms = {date: fields(versions.row(op, date)['request']) for date in op['versions']}
		for date in forms:
			for name in sorted(set().union(*forms.values()) - {'links'}):
				calls.append((op, api.path(op, **world.ids) + api.query(op),
					      {'Accept': versions.media(op, date)}, {name: [[]]}))
				expected.append((op, date, name, name in forms[date]))
	for (op, date, name, known), a in zip(expected, world.sweep(calls)):
		unknown = a.status == 400 and '%s: unknown field' % name in a.json()['detail']
		# One that only some branch has may be unknown to the branch that was meant.
		apart = known and name not in api.merged(api.resolve(versions.row(op, date)['request']))[0]
		assert apart or unknown != known, (op['operationId'], date, name, a.status, a.body)
	assert sum(not e[3] for e in expected) > 10


# Each operation in the form of each of its versions

def spec(**hardware):
	return [{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
				    'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3, **hardware}}]}]


OLDEST = {'providerSettings': {'providerName': 'AWS', 'instanceSizeName': 'M10', 'regionName': 'US_EAST_1'}}
CREATES = {'2023-01-01': {**OLDEST, 'diskSizeGB': 20}, '2023-02-01': {'replicationSpecs': spec(), 'diskSizeGB': 20},
	   '2024-08-05': {'replicationSpecs': spec(diskSizeGB=20)}}
CHANGES = {'2023-01-01': {'diskSizeGB': 30}, '2023-02-01': {'diskSizeGB': 30},
	   '2024-08-05': {'replicationSpecs': spec(diskSizeGB=30)}}


@pytest.fixture
def group(older_server):
	older_server.control('engine', {})
	group = older_server.project()['id']
	yield group
	leave(older_server, group)


def settle(server, path):
	pass_time(server, lambda: (lambda r: r.status_code == 404 or r.json()['stateName'] == 'IDLE')(server.get(path)))


def disk(server, path):
	return ok(server.get(path))['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs']['diskSizeGB']


def test_clusters(older_server, group):
	server, clusters = older_server, '/groups/%s/clusters' % group
	for call in each(server, 'createCluster'):
		doc = call('POST', clusters, {'name': unique('c'), 'clusterType': 'REPLICASET', **CREATES[call.date]})
		path = '%s/%s' % (clusters, doc['name'])
		settle(server, path)
		assert disk(server, path) == 20
		assert call('GET', path)['id'] == doc['id']
		assert [c['id'] for c in call('GET', clusters)['results']] == [doc['id']]
		call('PATCH', path, CHANGES[call.date])
		settle(server, path)
		assert disk(server, path) == 30
		host = ok(server.get('/groups/%s/processes' % group))['results'][0]['hostname']
		assert call('GET', '%s/%s/logs/db.gz' % (clusters, host))[:2] == b'\x1f\x8b'
		call('POST', path + '/restartPrimaries')
		settle(server, path)
		assert call('PATCH', path + '/processArgs', {'javascriptEnabled': False})['javascriptEnabled'] is False
		assert call('GET', path + '/processArgs')['javascriptEnabled'] is False
		assert not call('DELETE', path)
		settle(server, path)
		call('POST', clusters, {'name': 5}, status=400)
		call('GET', path, status=404)


def test_a_cluster_for_some_hours(older_server, group):
	"""Only the oldest version can say it."""
	server, clusters, oldest = older_server, '/groups/%s/clusters' % group, Caller(older_server, of('createCluster')[0])
	kinds = {}
	for kind, more in (('short', {}), ('longer', {}), ('kept', {'terminationProtectionEnabled': True})):
		wanted = {'name': unique(kind), **OLDEST, **more, 'deleteAfterCreationHours': 2}
		kinds[kind] = '%s/%s' % (clusters, oldest('POST', clusters, wanted)['name'])
	for path in kinds.values():
		settle(server, path)
	doc = oldest('GET', kinds['short'])
	lives = [datetime.datetime.fromisoformat(doc[k].replace('Z', '+00:00')) for k in ('createDate', 'deleteAfterDate')]
	assert doc['deleteAfterCreationHours'] == 2 and lives[1] - lives[0] == datetime.timedelta(hours=2)
	assert not {'deleteAfterCreationHours', 'deleteAfterDate'} & set(ok(server.get(kinds['short'])))
	oldest('PATCH', kinds['longer'], {'deleteAfterCreationHours': 50})
	oldest('PATCH', kinds['longer'], {'deleteAfterCreationHours': 0}, status=400)
	# The end that is to come holds nothing up.
	assert ok(server.get(kinds['longer'] + '/status'))['changeStatus'] == 'APPLIED'
	ok(server.patch(kinds['longer'], json={'paused': True}))
	settle(server, kinds['longer'])
	server.advance(2 * 3600)
	pass_time(server, lambda: server.get(kinds['short']).status_code == 404)
	assert [ok(server.get(kinds[k]))['stateName'] for k in ('longer', 'kept')] == ['IDLE', 'IDLE']
	events = '/groups/%s/events?eventType=CLUSTER_DELETE_SUBMITTED&clusterNames=' % group
	assert [len(ok(server.get(events + kinds[k].rsplit('/', 1)[1]))['results']) for k in kinds] == [1, 0, 0]
	ok(server.patch(kinds['kept'], json={'terminationProtectionEnabled': False}))


def test_who_may_set_a_clusters_end(older_server):
	"""Only who may delete it, never into the past, and an event tells of it."""
	server, date = older_server, of('updateCluster')[0]
	doc, = server.seed({'name': unique('o'), 'projects': ['p'], 'principals': [
		{'type': 'apiKey', 'roles': ['ORG_OWNER']},
		{'type': 'apiKey', 'roles': ['ORG_MEMBER'], 'projectRoles': [{'project': 'p', 'roles': ['GROUP_CLUSTER_MANAGER']}]}]})
	owner, manager = (Caller(server, date, server.api_for(p)) for p in doc['principals'])
	group = doc['projects'][0]['id']
	path = '/groups/%s/clusters/%s' % (group, owner('POST', '/groups/%s/clusters' % group, {'name': 'c', **OLDEST})['name'])
	server.advance(3 * 3600)
	assert manager('PATCH', path, {'deleteAfterCreationHours': 50}, status=403)['errorCode'] == 'INSUFFICIENT_ROLE'
	owner('PATCH', path, {'deleteAfterCreationHours': 2}, status=400)
	assert 'deleteAfterDate' not in owner('GET', path)
	told = lambda: ok(owner.api.get('/groups/%s/events?eventType=CLUSTER_UPDATE_SUBMITTED' % group))['totalCount']
	before = told()
	owner('PATCH', path, {'deleteAfterCreationHours': 50})
	assert told() == before + 1
	# What was read can be sent back.
	assert manager('PATCH', path, {'deleteAfterCreationHours': 50})['deleteAfterDate'] and told() == before + 1


def test_shards_that_differ_stay_so(older_server, group):
	"""Older versions have one size of disk, the oldest one size of all nodes: what they show of shards that differ can be sent back,
	with numbers written in either way, and with regions that change."""
	server, clusters = older_server, '/groups/%s/clusters' % group
	spec = lambda size, disk: {'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs':
				   {'instanceSize': size, 'nodeCount': 3, 'diskSizeGB': disk}}]}
	path = '%s/%s' % (clusters, ok(server.post(clusters, json={'name': unique('c'), 'clusterType': 'SHARDED',
		'replicationSpecs': [spec('M30', 40), spec('M40', 80)]}), 201)['name'])
	settle(server, path)

	def sizes(name='electableSpecs'):
		nodes = [s['regionConfigs'][0][name] for s in ok(server.get(path))['replicationSpecs']]
		return [(n['instanceSize'], n['nodeCount'], n['diskSizeGB']) for n in nodes]

	for call in each(server, 'updateCluster')[:2]:
		shown = call('GET', path)
		schema = versions.row(api.by_id['updateCluster'], call.date)['request']
		for disk in (40, 40.0):
			call('PATCH', path, {**writable(schema, shown), 'diskSizeGB': disk})
			assert sizes() == [('M30', 3, 40), ('M40', 3, 80)], (call.date, disk)
	oldest = Caller(server, of('updateCluster')[0])
	specs = oldest('GET', path)['replicationSpecs']
	for one in specs:
		one['regionsConfig']['US_EAST_1']['readOnlyNodes'] = 1
	oldest('PATCH', path, {'replicationSpecs': specs})
	assert sizes() == [('M30', 3, 40), ('M40', 3, 80)] and [n[1] for n in sizes('readOnlySpecs')] == [1, 1]
	# A size that is said anew is all shards'.
	Caller(server, of('updateCluster')[1])('PATCH', path, {'diskSizeGB': 100})
	assert [n[2] for n in sizes()] == [100, 100]
	settle(server, path)


def test_what_a_version_shows_it_takes_back(older_server, group):
	"""And nothing is changed by it, also where the version has no word for what is there: two providers, two nodes in a
	region, a size of the analytics nodes' own."""
	server, clusters = older_server, '/groups/%s/clusters' % group
	configs = [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		    'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 3, 'diskSizeGB': 40}},
		   {'providerName': 'GCP', 'regionName': 'CENTRAL_US', 'priority': 6,
		    'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 2, 'diskSizeGB': 40}},
		   {'providerName': 'AWS', 'regionName': 'EU_WEST_1', 'priority': 5,
		    'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 2, 'diskSizeGB': 40},
		    'analyticsSpecs': {'instanceSize': 'M50', 'nodeCount': 1, 'diskSizeGB': 40}}]
	name = ok(server.post(clusters, json={'name': unique('c'), 'clusterType': 'REPLICASET', 'backupEnabled': True,
					      'replicationSpecs': [{'regionConfigs': configs}]}), 201)['name']
	path = '%s/%s' % (clusters, name)
	settle(server, path)
	for suffix, operation, method in (('', 'updateCluster', 'PATCH'), ('/processArgs', 'updateProcessArgs', 'PATCH'),
					  ('/backup/schedule', 'updateBackupSchedule', 'PATCH')):
		for call in [*each(server, operation), Caller(server, api.current)]:
			before = bare(ok(server.get(path + suffix)))
			row = versions.row(api.by_id[operation], versions.chosen(api.by_id[operation], call.date))
			call(method, path + suffix, writable(row['request'], call('GET', path + suffix)))
			settle(server, path)
			assert bare(ok(server.get(path + suffix))) == before, (operation, call.date)


def test_backup_schedules(older_server, group):
	server, name = older_server, backed_up(older_server, group)
	path = '/groups/%s/clusters/%s/backup/schedule' % (group, name)
	zone = ok(server.get('/groups/%s/clusters/%s' % (group, name)))['replicationSpecs'][0]['zoneId']
	copy = {'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'frequencies': ['DAILY'], 'shouldCopyOplogs': False}
	daily = {'policies': [{'policyItems': [
		{'frequencyType': 'daily', 'frequencyInterval': 1, 'retentionUnit': 'days', 'retentionValue': 7}]}]}
	for call in each(server, 'updateBackupSchedule'):
		call('PATCH', path, {**daily, 'copySettings': [copy]})  # where the copy belongs is left open
		assert ok(server.get(path))['copySettings'] == [{**copy, 'zoneId': zone, 'copyPolicyItems': []}]
		assert call('GET', path)['clusterName'] == name
		call('PATCH', path, {**daily, 'copySettings': [{**copy, 'zoneId': zone}]}, status=400)
		assert call('DELETE', path)['policies'][0]['policyItems'] == []


def test_export_buckets(older_server, group):
	path = '/groups/%s/backup/exportBuckets' % group
	for call in each(older_server, 'createExportBucket'):
		doc = call('POST', path, {'bucketName': unique('bucket'), 'cloudProvider': 'AWS', 'iamRoleId': NO_ID})
		assert call('GET', path + '/' + doc['_id'])['_id'] == doc['_id']
		assert doc['_id'] in [b['_id'] for b in call('GET', path)['results']]
		call('POST', path, {'bucketName': 5}, status=400)
		call('GET', path + '/' + NO_ID, status=404)


def test_compliance_policies(older_server):
	for call in each(older_server, 'updateCompliancePolicy'):
		path = '/groups/%s/backupCompliancePolicy' % older_server.project()['id']
		call('PUT', path, {'authorizedEmail': 'ada@example.com'})
		assert call('GET', path)['authorizedEmail'] == 'ada@example.com'
		ok(older_server.get(path))  # the newest form has names, whoever made it
		call('PUT', path, {'authorizedEmail': 5}, status=400)


def test_alerts(older_server):
	s, host = older_server, unique('n') + '.example.com'
	ok(s.post('/groups/%s/alertConfigs' % s.group, json={'eventTypeName': 'HOST_DOWN', 'enabled': True,
		'notifications': [{'typeName': 'EMAIL', 'emailAddress': 'a@example.com'}]}))
	s.control('events', {'groupId': s.group, 'eventTypeName': 'HOST_DOWN', 'clusterName': 'c', 'hostname': host,
			     'port': 5432})
	found = ok(s.get('/groups/%s/alerts' % s.group))['results']
	path = '/groups/%s/alerts/%s' % (s.group, next(a['id'] for a in found if host in a.get('hostnameAndPort', '')))
	until = {'acknowledgedUntil': '2099-01-01T00:00:00Z'}
	for call in each(s, 'acknowledgeAlert'):
		assert call('PATCH', path, until).items() >= until.items()
		call('PATCH', path, {'acknowledgedUntil': 'soon'}, status=400)


def test_identity_providers(older_server):
	doc, = older_server.seed({'name': unique('fed'), 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	owner = older_server.api_for(doc['principals'][0])
	path = '/federationSettings/%s/identityProviders' % doc['federationSettingsId']
	path += '/' + ok(owner.get(path))['results'][0]['oktaIdpId']
	for call in each(older_server, 'updateIdentityProvider', owner):
		assert call('GET', path)['protocol'] == 'SAML'
		assert call('PATCH', path, {'ssoDebugEnabled': True})['ssoDebugEnabled'] is True
		call('PATCH', path, {'ssoDebugEnabled': 'yes'}, status=400)


def test_people(older_server):
	s = older_server
	for call in each(s, 'listOrgUsers'):
		user = account(s, {'orgId': s.org, 'roleName': 'ORG_MEMBER'},
			       {'groupId': s.group, 'roleName': 'GROUP_READ_ONLY'})
		team = '/orgs/%s/teams/%s/users' % (s.org, make_team(s, '/orgs/%s/teams' % s.org, user)['id'])
		assert [x['id'] for x in call('GET', team)['results']] == [user['id']]
		for base in ('/groups/' + s.group, '/orgs/' + s.org):
			assert user['id'] in [x['id'] for x in call('GET', base + '/users?itemsPerPage=500')['results']]
			assert not call('DELETE', '%s/users/%s' % (base, user['id']))
			call('DELETE', '%s/users/%s' % (base, user['id']), status=404)
