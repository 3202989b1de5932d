"""Clusters on the simulated engine: shapes, states, older versions, what may be done to them, and restarts."""
import calendar, concurrent.futures, gzip, json, time

import pytest

import dialect
from client import NO_ID, bare, leave, links, ok, pass_time, refused, unique, until

V1 = {'Accept': 'application/vnd.svc.2023-01-01+json'}
V2 = {'Accept': 'application/vnd.svc.2023-02-01+json'}
POINT = 0.01


def region(name='US_EAST_1', nodes=3, priority=7, provider='AWS', size='M10', **more):
	out = {'providerName': provider, 'regionName': name, 'electableSpecs': {'instanceSize': size, 'nodeCount': nodes}}
	if priority is not None:
		out['priority'] = priority
	return {**out, **more}


def body(name=None, *shards, **more):
	shards = shards or ([region()],)
	out = {'name': name or unique('c'), 'clusterType': 'REPLICASET' if len(shards) == 1 else 'SHARDED',
	       'replicationSpecs': [{'regionConfigs': list(s)} for s in shards]}
	return {**out, **more}


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	yield group
	leave(server, group)


def path(group, name=None):
	return '/groups/%s/clusters%s' % (group, '/' + name if name else '')


def state(server, group, name):
	r = server.get(path(group, name))
	return None if r.status_code == 404 else ok(r)['stateName']


def settle(server, group, name, seconds=5):
	"""Time passes, and the cluster is what it shall be."""
	pass_time(server, lambda: state(server, group, name) in ('IDLE', None), seconds)


def create(server, group, *args, **more):
	doc = ok(server.post(path(group), json=body(*args, **more)), 201)
	settle(server, group, doc['name'])
	return ok(server.get(path(group, doc['name'])))


def test_create_takes_its_time_and_ends_idle(server, group):
	wanted = body()
	r = server.post(path(group), json=wanted)
	doc = ok(r, 201)
	assert r.headers['Location'].endswith(path(group, wanted['name']))
	assert doc['stateName'] == 'CREATING' and doc['groupId'] == group and doc['clusterType'] == 'REPLICASET'
	assert doc['replicationSpecs'][0]['zoneName'] == 'Zone 1' and doc['replicationSpecs'][0]['id']
	assert doc['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs']['diskSizeGB'] == 10
	status = server.get(path(group, doc['name']) + '/status')
	assert ok(status)['changeStatus'] == 'PENDING'
	assert '%' in until(lambda: server.get(path(group, doc['name']) + '/status').headers.get('X-Steward-Progress'))
	time.sleep(0.2)
	assert state(server, group, doc['name']) == 'CREATING', 'the virtual clock stood still'
	server.advance(4)
	until(lambda: state(server, group, doc['name']) == 'IDLE')
	ready = ok(server.get(path(group, doc['name'])))
	assert ready['dbVersion'].count('.') == 2 and ready['dbVersion'].startswith(ready['dbMajorVersion'] + '.')
	assert ok(server.get(path(group, doc['name']) + '/status'))['changeStatus'] == 'APPLIED'
	assert ok(server.get('/groups/' + group))['clusterCount'] == 1
	assert [c['name'] for c in ok(server.get(path(group)))['results']] == [doc['name']]
	types = [e['eventTypeName'] for e in ok(server.get('/groups/%s/events?clusterNames=%s' % (group, doc['name'])))['results']]
	assert types[:2] == ['CLUSTER_READY', 'CLUSTER_CREATED']


def test_connection_strings(server, group):
	doc = create(server, group, None, [region(), ])
	strings = doc['connectionStrings']
	hosts = strings['standard'].split('://')[1].split('/')[0].split(',')
	assert strings['standard'].startswith('postgresql://') and len(hosts) == 3
	label, rest = hosts[0].split('-', 1)
	assert len(label) == 6 and label.isalnum()
	node, project, domain = rest.split('.', 2)
	assert node == 'shard-00-00' and domain == 'steward.local:27017' and project.isalnum()
	assert strings['standardSrv'] == 'postgresql+srv://%s.%s.steward.local' % (label, project)
	assert 'target_session_attrs=read-write' in strings['standard']
	other = create(server, group)
	assert other['connectionStrings']['standardSrv'] != strings['standardSrv']


def test_delete(server, group):
	doc = create(server, group)
	refused(server.delete('/groups/' + group), 409, 'CANNOT_CLOSE_GROUP_ACTIVE_SVC_CLUSTERS')
	r = server.delete(path(group, doc['name']))
	assert r.status_code == 202
	assert state(server, group, doc['name']) == 'DELETING'
	refused(server.delete(path(group, doc['name'])), 409, 'CLUSTER_ALREADY_REQUESTED_DELETION', doc['name'])
	refused(server.patch(path(group, doc['name']), json={'paused': True}), 409)
	settle(server, group, doc['name'])
	refused(server.get(path(group, doc['name'])), 404)
	assert ok(server.get(path(group)))['totalCount'] == 0
	assert ok(server.get('/groups/' + group))['clusterCount'] == 0
	events = ok(server.get('/groups/%s/events' % group))['results']
	assert [e['eventTypeName'] for e in events][:2] == ['CLUSTER_DELETED', 'CLUSTER_DELETE_SUBMITTED']
	assert server.delete('/groups/' + group).status_code == 204


def test_delete_while_it_is_made(server, group):
	doc = ok(server.post(path(group), json=body()), 201)
	progress = lambda: server.get(path(group, doc['name'])).headers.get('X-Steward-Progress', '')  # none: it is gone
	until(lambda: 'making' in progress())
	assert server.delete(path(group, doc['name'])).status_code == 202
	assert 'making' not in progress(), 'the words are of what is wanted now'
	settle(server, group, doc['name'])
	refused(server.get(path(group, doc['name'])), 404)


def test_termination_protection(server, group):
	doc = create(server, group, terminationProtectionEnabled=True)
	refused(server.delete(path(group, doc['name'])), 409, 'CANNOT_TERMINATE_CLUSTER_WHEN_TERMINATION_PROTECTION_ENABLED')
	doc = ok(server.patch(path(group, doc['name']), json={'terminationProtectionEnabled': False}))
	assert doc['stateName'] == 'IDLE', 'nothing for the engine to do'
	assert server.delete(path(group, doc['name'])).status_code == 202


@pytest.mark.parametrize('shards', [
	[[region(nodes=1)]], [[region(nodes=5)]], [[region(nodes=7)]],
	[[region(nodes=3), region('US_WEST_2', 2, 6)]],
	[[region(nodes=3), region('EU_WEST_1', 2, 6), region('AP_SOUTH_1', 2, 5)]],
	[[region(nodes=2), region('EASTERN_US', 1, 6, 'GCP')]],
	[[region(readOnlySpecs={'nodeCount': 2}, analyticsSpecs={'instanceSize': 'M20', 'nodeCount': 1})]],
	[[region(), region('EU_WEST_1', 0, 0, readOnlySpecs={'nodeCount': 1})]],
	[[region()], [region()]],
	[[region(size='M30')], [region(size='M40')]],
])
def test_shapes(server, group, shards):
	doc = create(server, group, None, *shards)
	asked = sum(c.get(k, {}).get('nodeCount', 0) for s in doc['replicationSpecs'] for c in s['regionConfigs']
		    for k in ('electableSpecs', 'readOnlySpecs', 'analyticsSpecs'))
	detail = next(c for g in ok(server.get('/clusters?itemsPerPage=500'))['results'] if g['groupId'] == group
		      for c in g['clusters'])
	assert detail['nodeCount'] == asked + (len(shards) > 1)
	assert detail['type'] == ('SHARDED_CLUSTER' if len(shards) > 1 else 'REPLICA_SET')
	assert detail['availability'] == 'available' and detail['clusterId'] == doc['id']


def spec(*configs, **more):
	return body('x', list(configs), **more)


FAULTS = [
	({'replicationSpecs': [{'regionConfigs': [region()]}]}, 'name'),
	({'name': 'x'}, 'replicationSpecs'),
	({'name': 'x', 'replicationSpecs': []}, 'replicationSpecs'),
	({'name': 'x', 'replicationSpecs': [{}]}, 'replicationSpecs[0].regionConfigs'),
	({'name': 'x' * 65, 'replicationSpecs': [{'regionConfigs': [region()]}]}, 'name'),
	(spec(region(nodes=2)), 'replicationSpecs[0].regionConfigs'),
	(spec(region(nodes=3), region('US_WEST_2', 3, 6)), 'replicationSpecs[0].regionConfigs'),
	(spec(region(nodes=3), region('US_WEST_2', 2, 7)), 'replicationSpecs[0].regionConfigs[1].priority'),
	(spec(region(nodes=3), region('US_WEST_2', 2, None)), 'replicationSpecs[0].regionConfigs[1].priority'),
	(spec(region(priority=5)), 'replicationSpecs[0].regionConfigs[0].priority'),
	(spec(region(nodes=3), region('US_EAST_1', 2, 6)), 'replicationSpecs[0].regionConfigs[1].regionName'),
	(spec(region('EASTERN_US')), 'replicationSpecs[0].regionConfigs[0].regionName'),
	(spec(region(size='M90')), 'replicationSpecs[0].regionConfigs[0].electableSpecs.instanceSize'),
	(spec(region(readOnlySpecs={'instanceSize': 'M20', 'nodeCount': 1})),
	 'replicationSpecs[0].regionConfigs[0].readOnlySpecs.instanceSize'),
	(spec({**region(), 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3, 'diskSizeGB': 5}}),
	 'replicationSpecs[0].regionConfigs[0].electableSpecs.diskSizeGB'),
	(spec(region(), dbMajorVersion='9'), 'dbMajorVersion'),
	(spec(region(), paused=True), 'paused'),
	(spec(region(), pitEnabled=True), 'pitEnabled'),
	(spec(region(), tags=[{'key': 'a', 'value': '1'}, {'key': 'a', 'value': '2'}]), 'tags[1].key'),
	(spec(region(), encryptionAtRestProvider='AWS'), 'encryptionAtRestProvider'),
	(spec(region(autoScaling={'compute': {'enabled': True}})),
	 'replicationSpecs[0].regionConfigs[0].autoScaling.compute.maxInstanceSize'),
	(spec(region(), stateName='IDLE'), 'stateName'),
	*([] if dialect.spoken else  # which ignores what the service alone sets
	  [(spec(region(effectiveElectableSpecs={'nodeCount': 3})), 'replicationSpecs[0].regionConfigs[0].effectiveElectableSpecs')]),
	({**body('x', [region()], [region()]), 'clusterType': 'REPLICASET'}, 'replicationSpecs'),
]


@pytest.mark.parametrize('wanted,where', FAULTS, ids=[w for _, w in FAULTS])
def test_what_is_wrong_is_named_by_its_path(server, group, wanted, where):
	refused(server.post(path(group), json=wanted), 400, None, where)


def test_names_are_unique_and_stay(server, group):
	doc = create(server, group)
	refused(server.post(path(group), json=body(doc['name'])), 409, 'DUPLICATE_CLUSTER_NAME', doc['name'])
	refused(server.patch(path(group, doc['name']), json={'name': 'other'}), 400, None, 'name')
	ok(server.patch(path(group, doc['name']), json={'name': doc['name']}))
	refused(server.get(path(group, 'nothing')), 404)
	refused(server.patch(path(group, 'nothing'), json={'paused': True}), 404)
	refused(server.delete(path(group, 'nothing')), 404)


def test_limit_of_clusters(server, group):
	limit = '/groups/%s/limits/svc.project.deployment.clusters' % group
	ok(server.patch(limit, json={'value': 1}))
	create(server, group)
	refused(server.post(path(group), json=body()), 400, 'PROJECT_LIMIT_EXCEEDED')


def hosts(doc):
	return doc['connectionStrings']['standard'].split('://')[1].split('/')[0].split(',')


def test_scaling_keeps_nodes(server, group):
	doc = create(server, group)
	before = hosts(doc)
	more = ok(server.patch(path(group, doc['name']), json={
		'replicationSpecs': [{'regionConfigs': [region(size='M20'), region('US_WEST_2', 2, 6, size='M20')]}]}))
	assert more['stateName'] == 'UPDATING' and more['replicationSpecs'][0]['id'] == doc['replicationSpecs'][0]['id']
	assert more['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs']['diskSizeGB'] == 10, 'a disk stays'
	settle(server, group, doc['name'])
	after = ok(server.get(path(group, doc['name'])))
	assert hosts(after)[:3] == before and len(hosts(after)) == 5
	ok(server.patch(path(group, doc['name']), json={'replicationSpecs': [{'regionConfigs': [region(size='M20', nodes=1)]}]}))
	settle(server, group, doc['name'])
	assert hosts(ok(server.get(path(group, doc['name'])))) == before[:1]
	events = [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']]
	assert 'CLUSTER_UPDATE_SUBMITTED' in events and 'CLUSTER_UPDATE_COMPLETED' in events


def test_to_shards_and_not_back(server, group):
	doc = create(server, group)
	ok(server.patch(path(group, doc['name']), json={'clusterType': 'SHARDED', 'replicationSpecs': [
		{'regionConfigs': [region()]}, {'regionConfigs': [region()]}]}))
	settle(server, group, doc['name'])
	sharded = ok(server.get(path(group, doc['name'])))
	assert len(sharded['replicationSpecs']) == 2 and '-router-00.' in hosts(sharded)[0]
	assert sharded['replicationSpecs'][0]['zoneId'] == sharded['replicationSpecs'][1]['zoneId']
	refused(server.patch(path(group, doc['name']), json={'clusterType': 'REPLICASET', 'replicationSpecs': [
		{'regionConfigs': [region()]}]}), 400, None, 'clusterType')


def test_zones(server, group):
	wanted = body(None, [region()], [region('EU_WEST_1')])
	wanted['clusterType'] = 'GEOSHARDED'
	wanted['replicationSpecs'][1]['zoneName'] = 'Europe'
	doc = ok(server.post(path(group), json=wanted), 201)
	zones = [s['zoneId'] for s in doc['replicationSpecs']]
	assert zones[0] != zones[1]


def test_pause_and_resume(server, group):
	doc = create(server, group)
	assert ok(server.patch(path(group, doc['name']), json={'paused': True}))['stateName'] == 'UPDATING'
	settle(server, group, doc['name'])
	assert ok(server.get(path(group, doc['name'])))['paused'] is True
	refused(server.patch(path(group, doc['name']), json={'dbMajorVersion': '17', 'backupEnabled': True}), 409,
		'CANNOT_UPDATE_PAUSED_CLUSTER')
	ok(server.patch(path(group, doc['name']), json={'tags': [{'key': 'a', 'value': 'b'}]}))
	refused(server.post(path(group, doc['name']) + '/restartPrimaries'), 409)
	ok(server.patch(path(group, doc['name']), json={'paused': False}))
	settle(server, group, doc['name'])
	assert ok(server.get(path(group, doc['name'])))['paused'] is False


def test_versions_go_up_only(server, group):
	doc = create(server, group, dbMajorVersion='15')
	assert doc['dbVersion'].startswith('15.')
	ok(server.patch(path(group, doc['name']), json={'dbMajorVersion': '16.0'}))
	settle(server, group, doc['name'])
	doc = ok(server.get(path(group, doc['name'])))
	assert doc['dbMajorVersion'] == '16' and doc['dbVersion'].startswith('16.') and doc['featureCompatibilityVersion'] == '16'
	refused(server.patch(path(group, doc['name']), json={'dbMajorVersion': '15'}), 400, None, 'dbMajorVersion')


def test_etag(server, group):
	doc = create(server, group)
	tag = server.get(path(group, doc['name'])).headers['ETag']
	ok(server.patch(path(group, doc['name']), json={'tags': [{'key': 'a', 'value': 'b'}]}, headers={'If-Match': tag}))
	refused(server.patch(path(group, doc['name']), json={'tags': []}, headers={'If-Match': tag}), 412)
	refused(server.delete(path(group, doc['name']), headers={'If-Match': tag}), 412)


def test_process_args(server, group):
	doc = create(server, group)
	args = path(group, doc['name']) + '/processArgs'
	first = ok(server.get(args))
	assert first['javascriptEnabled'] is True and first['minimumEnabledTlsProtocol'] == 'TLS1_2'
	set_ = ok(server.patch(args, json={'defaultMaxTimeMS': 5000, 'minimumEnabledTlsProtocol': 'TLS1_3', 'oplogSizeMB': 2048}))
	assert set_['defaultMaxTimeMS'] == 5000 and state(server, group, doc['name']) == 'UPDATING'
	settle(server, group, doc['name'])
	assert ok(server.get(args))['oplogSizeMB'] == 2048
	assert ok(server.get(path(group, doc['name'])))['advancedConfiguration']['minimumEnabledTlsProtocol'] == 'TLS1_3'
	assert ok(server.patch(args, json={'oplogSizeMB': None}))['oplogSizeMB'] is None
	refused(server.patch(args, json={'oplogSizeMB': 1}), 400, None, 'oplogSizeMB')
	refused(server.patch(args, json={'nothing': 1}), 400, None, 'nothing')
	refused(server.get(path(group, 'nothing') + '/processArgs'), 404)


@pytest.fixture
def old(older_server):
	"""(server, id of a project) for what has another form in an older version."""
	older_server.control('engine', {})
	return older_server, older_server.project()['id']


def test_older_process_args(old):
	server, group = old
	args = path(group, create(server, group)['name']) + '/processArgs'
	assert ok(server.get(args, headers=V1))['defaultReadConcern'] == 'available'
	assert ok(server.patch(args, json={'failIndexKeyTooLong': False}, headers=V1))['failIndexKeyTooLong'] is False


def test_version_2023_02_01(old):
	server, group = old
	wanted = {'name': unique('c'), 'clusterType': 'SHARDED', 'diskSizeGB': 40,
		  'replicationSpecs': [{'numShards': 2, 'regionConfigs': [region()]}]}
	doc = ok(server.post(path(group), json=wanted, headers=V2), 201)
	assert doc['diskSizeGB'] == 40 and doc['replicationSpecs'][0]['numShards'] == 2
	assert 'diskSizeGB' not in doc['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs']
	settle(server, group, doc['name'])
	now = ok(server.get(path(group, doc['name'])))
	assert len(now['replicationSpecs']) == 2
	assert now['replicationSpecs'][1]['regionConfigs'][0]['electableSpecs']['diskSizeGB'] == 40
	mode = path(group, doc['name']) + '/autoScalingConfiguration'
	assert ok(server.get(mode))['autoScalingMode'] == 'CLUSTER_WIDE_SCALING'
	doc = ok(server.patch(path(group, doc['name']), json={'diskSizeGB': 60}, headers=V2))
	assert doc['diskSizeGB'] == 60
	assert ok(server.get(path(group), headers=V2))['results'][0]['diskSizeGB'] == 60
	refused(server.post(path(group), json={'name': 'x', 'diskSizeGB': 20}, headers=V2), 400, None, 'replicationSpecs')


def test_version_2023_01_01(old):
	server, group = old
	wanted = {'name': unique('c'), 'diskSizeGB': 20, 'providerBackupEnabled': True,
		  'providerSettings': {'providerName': 'AWS', 'instanceSizeName': 'M20', 'regionName': 'EU_WEST_1'}}
	doc = ok(server.post(path(group), json=wanted, headers=V1), 201)
	assert doc['replicationFactor'] == 3 and doc['providerSettings']['regionName'] == 'EU_WEST_1'
	assert doc['replicationSpec'] == {'EU_WEST_1': {'analyticsNodes': 0, 'electableNodes': 3, 'priority': 7, 'readOnlyNodes': 0}}
	settle(server, group, doc['name'])
	old = ok(server.get(path(group, doc['name']), headers=V1))
	assert old['srvAddress'].startswith('postgresql+srv://') and old['dbURIWithOptions'].startswith(old['dbURI'])
	now = ok(server.get(path(group, doc['name'])))
	assert now['backupEnabled'] is True
	assert now['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs']['instanceSize'] == 'M20'
	changed = ok(server.patch(path(group, doc['name']), headers=V1,
				  json={'providerSettings': {'providerName': 'AWS', 'instanceSizeName': 'M30'}}))
	assert changed['providerSettings']['instanceSizeName'] == 'M30' and changed['diskSizeGB'] == 20
	two = ok(server.patch(path(group, doc['name']), headers=V1, json={'replicationSpecs': [{'numShards': 1, 'zoneName': 'Zone 1', 'regionsConfig': {
		'EU_WEST_1': {'electableNodes': 3, 'priority': 7}, 'EU_CENTRAL_1': {'electableNodes': 0, 'priority': 0, 'readOnlyNodes': 1}}}]}))
	assert two['replicationSpec']['EU_CENTRAL_1']['readOnlyNodes'] == 1
	assert ok(server.get(path(group), headers=V1))['results'][0]['name'] == doc['name']
	refused(server.post(path(group), json={'name': 'x'}, headers=V1), 400, None, 'replicationSpecs')


def test_shards_in_another_order_are_the_same(server, group):
	"""The order is that of the list as it stands: no zone gets another's servers, and nothing is done."""
	zones = {'zoneName': 'America', 'regionConfigs': [region(nodes=1)]}, {'zoneName': 'Europe', 'regionConfigs': [region('EU_WEST_1', nodes=1)]}
	doc = ok(server.post(path(group), json={**body(), 'clusterType': 'GEOSHARDED', 'replicationSpecs': list(zones)}), 201)
	settle(server, group, doc['name'])
	where, shown = path(group, doc['name']), lambda d: [(s['zoneName'], s['id'], s['zoneId'], s['regionConfigs'][0]['regionName']) for s in d['replicationSpecs']]
	before = ok(server.get(where))
	turned = ok(server.patch(where, json={'replicationSpecs': list(zones[::-1])}))
	assert shown(turned) == shown(before) and turned['stateName'] == 'IDLE'
	# A third, in front of them, is new; and what is said of one is about that one.
	new = {'zoneName': 'Asia', 'regionConfigs': [region('AP_SOUTHEAST_2', nodes=1)]}
	larger = {**zones[1], 'regionConfigs': [region('EU_WEST_1', nodes=1, size='M20')]}
	grown = ok(server.patch(where, json={'replicationSpecs': [new, larger, zones[0]]}))
	assert shown(grown)[:2] == shown(before) and shown(grown)[2][0] == 'Asia' and shown(grown)[2][1] not in str(shown(before))
	assert [s['regionConfigs'][0]['electableSpecs']['instanceSize'] for s in grown['replicationSpecs']] == ['M10', 'M20', 'M10']
	# A place in an error is that of the request.
	refused(server.patch(where, json={'replicationSpecs': [{**larger, 'regionConfigs': [region('EU_WEST_1', nodes=2)]}, zones[0]]}), 400, None,
		'replicationSpecs[0].regionConfigs')
	settle(server, group, doc['name'])
	# Servers and data of a zone in the middle would become the next one's.
	why = refused(server.patch(where, json={'replicationSpecs': [new, larger]}), 400, None, 'replicationSpecs')['detail']
	assert 'only the last shards can be left out' in why
	left = ok(server.patch(where, json={'replicationSpecs': [larger, zones[0]]}))
	assert [s[:3] for s in shown(left)] == [s[:3] for s in shown(grown)[:2]]


def test_the_oldest_version_knows_shards_by_ids(old):
	server, group = old
	regions = lambda name: {name: {'electableNodes': 3, 'priority': 7}}
	zones = [{'zoneName': 'a', 'numShards': 1, 'regionsConfig': regions('US_EAST_1')}, {'zoneName': 'b', 'numShards': 2, 'regionsConfig': regions('EU_WEST_1')}]
	doc = ok(server.post(path(group), headers=V1, json={'name': unique('c'), 'clusterType': 'GEOSHARDED', 'replicationSpecs': zones,
		'providerSettings': {'providerName': 'AWS', 'instanceSizeName': 'M10', 'regionName': 'US_EAST_1'}}), 201)
	settle(server, group, doc['name'])
	ids = [s['id'] for s in doc['replicationSpecs']]
	shards = lambda: [(s['id'], s['regionConfigs'][0]['electableSpecs']['instanceSize']) for s in ok(server.get(path(group, doc['name'])))['replicationSpecs']]
	before = shards()
	renamed = [{**zones[1], 'id': ids[1], 'zoneName': 'a2'}, {**zones[0], 'id': ids[0]}]
	changed = ok(server.patch(path(group, doc['name']), headers=V1, json={'replicationSpecs': renamed}))
	assert [(s['id'], s['zoneName'], s['numShards']) for s in changed['replicationSpecs']] == [(ids[0], 'a', 1), (ids[1], 'a2', 2)]
	assert shards() == before
	# Those of one zone with sizes of their own, in the other order.
	settle(server, group, doc['name'])
	specs = ok(server.get(path(group, doc['name'])))['replicationSpecs']
	sized = [{'zoneName': s['zoneName'], 'regionConfigs': [region(s['regionConfigs'][0]['regionName'], nodes=3, size=size)]}
		for s, size in zip(specs, ('M10', 'M10', 'M20'))]
	ok(server.patch(path(group, doc['name']), json={'replicationSpecs': sized}))
	settle(server, group, doc['name'])
	before = shards()
	assert [size for _, size in before] == ['M10', 'M10', 'M20']
	shown = ok(server.get(path(group, doc['name']), headers=V1))['replicationSpecs']
	assert len(shown) == 3
	ok(server.patch(path(group, doc['name']), headers=V1, json={'replicationSpecs': [
		{k: s[k] for k in ('id', 'zoneName', 'numShards', 'regionsConfig')} for s in shown[::-1]]}))
	assert shards() == before


def test_two_kinds_of_backups_of_the_oldest_version(old):
	"""It is shown what was asked for; the databases have one kind."""
	server, group = old
	settings = {'providerName': 'AWS', 'instanceSizeName': 'M10', 'regionName': 'US_EAST_1'}
	make = lambda **more: ok(server.post(path(group), headers=V1, json={'name': unique('c'), 'providerSettings': settings, **more}), 201)
	kinds = lambda doc: (doc['backupEnabled'], doc['providerBackupEnabled'])
	now = lambda name: (kinds(ok(server.get(path(group, name), headers=V1))), ok(server.get(path(group, name)))['backupEnabled'])
	name = make(backupEnabled=True)['name']
	assert now(name) == ((True, False), True)
	settle(server, group, name)
	def change(version=V1, **fields):
		ok(server.patch(path(group, name), headers=version, json=fields))
		settle(server, group, name)
		return now(name)
	assert change(backupEnabled=True) == ((True, False), True)
	assert change(paused=False) == ((True, False), True)
	assert change({}, backupEnabled=False) == ((False, False), False)
	assert change({}, backupEnabled=True) == ((False, True), True), 'by a later version'
	assert change(backupEnabled=True, providerBackupEnabled=False) == ((True, False), True)
	assert change(backupEnabled=False) == ((False, False), False)
	assert change(providerBackupEnabled=True) == ((False, True), True)
	assert change(backupEnabled=False) == ((False, True), True), 'as it was shown'
	assert change({}, backupEnabled=False) == ((False, False), False)
	assert change({}, backupEnabled=True) == ((False, True), True)
	assert kinds(make(backupEnabled=False, providerBackupEnabled=True)) == (False, True)
	assert kinds(make(backupEnabled=True, providerBackupEnabled=False)) == (True, False)
	assert kinds(make()) == (False, False)


def test_shared_tier_and_its_upgrade(server, group):
	tenant = {'providerName': 'TENANT', 'backingProviderName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		  'electableSpecs': {'instanceSize': 'M0'}}
	doc = create(server, group, None, [tenant])
	refused(server.patch(path(group, doc['name']), json={'paused': True}), 400, None, 'paused')
	upgrade = '/groups/%s/clusters/tenantUpgrade' % group
	settings = {'providerName': 'AWS', 'instanceSizeName': 'M10', 'regionName': 'US_EAST_1'}
	up = ok(server.post(upgrade, json={'name': doc['name'], 'providerSettings': settings}))
	assert up['providerSettings']['instanceSizeName'] == 'M10' and up['stateName'] == 'UPDATING'
	settle(server, group, doc['name'])
	assert len(hosts(ok(server.get(path(group, doc['name']))))) == 3
	refused(server.post(upgrade, json={'name': doc['name'], 'providerSettings': settings}), 400, None, 'name')
	refused(server.post(upgrade, json={'name': 'nothing', 'providerSettings': settings}), 404)


def test_the_lifetime_of_an_upgraded_tenant(old):
	server, group = old
	upgrade, settings = '/groups/%s/clusters/tenantUpgrade' % group, {'providerName': 'AWS', 'instanceSizeName': 'M10', 'regionName': 'US_EAST_1'}
	tenant = {'providerName': 'TENANT', 'backingProviderName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		  'electableSpecs': {'instanceSize': 'M0'}}
	other = create(server, group, None, [tenant])['name']
	refused(server.post(upgrade, json={'name': other, 'providerSettings': settings, 'deleteAfterCreationHours': 0}), 400, None, 'deleteAfterCreationHours')
	up = ok(server.post(upgrade, json={'name': other, 'providerSettings': settings, 'deleteAfterCreationHours': 5}))
	assert up['deleteAfterCreationHours'] == 5 and up['deleteAfterDate'] > up['createDate']
	settle(server, group, other)
	assert ok(server.get(path(group, other), headers=V1))['deleteAfterCreationHours'] == 5


def test_effective_fields(server, group):
	doc = create(server, group)
	assert doc['effectiveReplicationSpecs'] == doc['replicationSpecs']
	assert 'effectiveElectableSpecs' not in doc['replicationSpecs'][0]['regionConfigs'][0]
	shown = ok(server.get(path(group, doc['name']), headers={'Use-Effective-Instance-Fields': 'true',
								  'Use-Effective-Fields-Replication-Specs': 'true'}))
	config = shown['replicationSpecs'][0]['regionConfigs'][0]
	for kind in ('Electable', 'ReadOnly', 'Analytics'):
		assert config['effective%sSpecs' % kind] == config[kind[0].lower() + kind[1:] + 'Specs']
	assert ok(server.get(path(group, doc['name']) + '/autoScalingConfiguration'))['autoScalingMode'] == 'INDEPENDENT_SHARD_SCALING'
	refused(server.get(path(group, 'nothing') + '/autoScalingConfiguration'), 404)
	refused(server.get(path(group, 'nothing') + '/status'), 404)


def test_provider_regions(server, group):
	regions = ok(server.get('/groups/%s/clusters/provider/regions' % group))
	assert [r['provider'] for r in regions['results']] == ['AWS', 'AZURE', 'GCP'] and regions['totalCount'] == 3
	some = ok(server.get('/groups/%s/clusters/provider/regions?providers=GCP&tier=M10' % group))['results']
	assert [r['provider'] for r in some] == ['GCP'] and [s['name'] for s in some[0]['instanceSizes']] == ['M10']
	assert any(r['default'] for r in some[0]['instanceSizes'][0]['availableRegions'])
	refused(server.get('/groups/%s/clusters/provider/regions' % NO_ID), 404)


def test_validate(server, group):
	check = '/groups/%s/clusterConfigurations:validate' % group
	good = ok(server.post(check, json={'editing': False, 'clusterDescription': body()}))
	assert good == {'valid': True, 'errors': []}
	bad = ok(server.post(check, json={'editing': False, 'clusterDescription': body('x', [region(nodes=2)])}))
	assert not bad['valid'] and 'electable' in bad['errors'][0]['validationIssue']
	doc = create(server, group)
	assert ok(server.post(check, json={'editing': True, 'clusterName': doc['name'], 'clusterDescription': {'paused': True}}))['valid']
	assert not ok(server.post(check, json={'editing': True, 'clusterName': 'nothing', 'clusterDescription': body()}))['valid']
	refused(server.post(check, json={'editing': True}), 400, None, 'clusterDescription')


def test_restart_primaries(server, group):
	doc = create(server, group)
	r = server.post(path(group, doc['name']) + '/restartPrimaries')
	assert r.status_code == 200 and not r.content
	until(lambda: ok(server.get(path(group, doc['name']) + '/status'))['changeStatus'] == 'APPLIED')
	assert state(server, group, doc['name']) == 'IDLE'
	for _ in range(3):
		ok(server.post(path(group, doc['name']) + '/restartPrimaries'))
	until(lambda: state(server, group, doc['name']) == 'IDLE')
	refused(server.post(path(group, 'nothing') + '/restartPrimaries'), 404)


def instant(server, seconds):
	now = server.control('clock', method='GET')['now']
	at = calendar.timegm(time.strptime(now, '%Y-%m-%dT%H:%M:%SZ')) + seconds
	return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))


def test_employee_access(server, group):
	doc = create(server, group)
	grant = path(group, doc['name']) + ':grantVendorEmployeeAccess'
	wanted = {'grantType': 'CLUSTER_DATABASE_LOGS', 'expirationTime': instant(server, 3600)}
	assert server.post(grant, json=wanted).status_code == 204
	assert ok(server.get(path(group, doc['name'])))['vendorEmployeeAccessGrant'] == wanted
	server.advance(3601)
	assert 'vendorEmployeeAccessGrant' not in ok(server.get(path(group, doc['name'])))
	refused(server.post(grant, json=wanted), 400, None, 'expirationTime')
	assert server.post(grant, json={**wanted, 'expirationTime': instant(server, 60)}).status_code == 204
	assert server.post(path(group, doc['name']) + ':revokeVendorEmployeeAccess').status_code == 204
	assert 'vendorEmployeeAccessGrant' not in ok(server.get(path(group, doc['name'])))
	refused(server.post(path(group, 'nothing') + ':revokeVendorEmployeeAccess'), 404)


def test_pin(server, group):
	doc = create(server, group, dbMajorVersion='15')
	pin, unpin = (path(group, doc['name']) + ':%sFeatureCompatibilityVersion' % w for w in ('pin', 'unpin'))
	refused(server.post(unpin), 400, 'FEATURE_COMPATIBILITY_VERSION_NOT_PINNED')
	assert server.post(pin).status_code == 204
	assert ok(server.get(path(group, doc['name'])))['featureCompatibilityVersionExpirationDate']
	ok(server.patch(path(group, doc['name']), json={'dbMajorVersion': '16'}))
	settle(server, group, doc['name'])
	assert ok(server.get(path(group, doc['name'])))['featureCompatibilityVersion'] == '15'
	assert server.post(pin, json={'expirationDate': instant(server, 86400)}).status_code == 204
	refused(server.post(pin, json={'expirationDate': instant(server, 86400 * 60)}), 400, None, 'expirationDate')
	assert server.post(unpin).status_code == 204
	assert ok(server.get(path(group, doc['name'])))['featureCompatibilityVersion'] == '16'


def test_sample_dataset(server, group):
	doc = create(server, group)
	load = ok(server.post('/groups/%s/sampleDatasetLoad/%s' % (group, doc['name'])), 201)
	assert load['state'] == 'WORKING' and load['clusterName'] == doc['name']
	refused(server.post('/groups/%s/sampleDatasetLoad/%s' % (group, doc['name'])), 409, 'SAMPLE_DATASET_LOAD_IN_PROGRESS')
	where = '/groups/%s/sampleDatasetLoad/%s' % (group, load['_id'])
	assert ok(server.get(where))['state'] == 'WORKING'

	def done():
		server.advance(1)
		time.sleep(POINT)
		return ok(server.get(where))['state'] == 'COMPLETED'
	until(done)
	assert ok(server.get(where))['completeDate']
	refused(server.get('/groups/%s/sampleDatasetLoad/%s' % (server.group, load['_id'])), 404)
	refused(server.post('/groups/%s/sampleDatasetLoad/nothing' % group), 404)


def test_an_outage_leaves_every_shard_a_node_and_clients_a_router(server, group):
	geo = create(server, group, None, [region(nodes=1)], [region('EU_WEST_1', nodes=1)], clusterType='GEOSHARDED')
	for name in ('US_EAST_1', 'EU_WEST_1'):
		refused(server.post(path(group, geo['name']) + '/outageSimulation', json={
			'outageFilters': [{'cloudProvider': 'AWS', 'regionName': name}]}), 400, None, 'outageFilters')
	shard = [region(nodes=2), region('US_WEST_2', nodes=1, priority=6)]
	both = create(server, group, None, shard, shard)
	ok(server.post(path(group, both['name']) + '/outageSimulation', json={
		'outageFilters': [{'cloudProvider': 'AWS', 'regionName': 'US_EAST_1'}]}))
	settle(server, group, both['name'])
	types = [p['typeName'] for p in ok(server.get('/groups/%s/processes' % group))['results'] if p['userAlias'].startswith(both['name'])]
	assert types.count('NO_DATA') == 4 and types.count('SHARD_ROUTER') == 1, types


def test_a_type_that_was_never_reached_can_be_taken_back(server, group):
	doc = create(server, group, None, [region(nodes=1)])
	server.control('engine', {'fail': 'update', 'times': 1000})
	ok(server.patch(path(group, doc['name']), json={'clusterType': 'SHARDED'}))
	pass_time(server, lambda: state(server, group, doc['name']) == 'REPAIRING', 60)
	server.control('engine', {})
	ok(server.patch(path(group, doc['name']), json={'clusterType': 'REPLICASET'}))
	settle(server, group, doc['name'])
	assert ok(server.get(path(group, doc['name'])))['clusterType'] == 'REPLICASET'
	ok(server.patch(path(group, doc['name']), json={'clusterType': 'SHARDED'}))
	settle(server, group, doc['name'])
	refused(server.patch(path(group, doc['name']), json={'clusterType': 'REPLICASET'}), 400, None, 'clusterType')


def test_outage_simulation(server, group):
	doc = create(server, group, None, [region(nodes=3), region('US_WEST_2', 2, 6)])
	outage = path(group, doc['name']) + '/outageSimulation'
	one = {'outageFilters': [{'cloudProvider': 'AWS', 'regionName': 'US_WEST_2', 'type': 'REGION'}]}
	refused(server.get(outage), 404)
	refused(server.delete(outage), 404)
	refused(server.post(outage, json={'outageFilters': [{'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1'}]}), 400, None,
		'outageFilters[0].regionName')
	refused(server.post(outage, json={'outageFilters': [{'cloudProvider': 'AWS', 'regionName': r}
							     for r in ('US_EAST_1', 'US_WEST_2')]}), 400, None, 'outageFilters')
	assert ok(server.post(outage, json=one))['state'] == 'START_REQUESTED'
	refused(server.post(outage, json=one), 400, 'CANNOT_START_OUTAGE_SIMULATION')
	settle(server, group, doc['name'])
	assert ok(server.get(outage))['state'] == 'SIMULATING'
	assert ok(server.delete(outage))['state'] == 'RECOVERY_REQUESTED'
	settle(server, group, doc['name'])
	assert ok(server.get(outage))['state'] == 'COMPLETE'
	refused(server.delete(outage), 400, 'OUTAGE_SIMULATION_NOT_ACTIVE')
	ok(server.post(outage, json=one))
	settle(server, group, doc['name'])
	server.advance(49 * 3600)
	until(lambda: ok(server.get(outage))['state'] != 'SIMULATING')
	settle(server, group, doc['name'])
	assert ok(server.get(outage))['state'] == 'COMPLETE', 'its time was over'


def test_the_primary_is_where_the_priority_is_highest(server, group):
	doc = create(server, group, None, [region(nodes=3), region('US_WEST_2', 2, 6)])
	outage = path(group, doc['name']) + '/outageSimulation'

	def primary():
		settle(server, group, doc['name'])
		found, = [p['userAlias'] for p in ok(server.get('/groups/%s/processes' % group))['results']
			  if p['typeName'] == 'REPLICA_PRIMARY']
		return 'east' if int(found.split('.')[0][-2:]) < 3 else 'west'
	assert primary() == 'east'
	ok(server.post(outage, json={'outageFilters': [{'cloudProvider': 'AWS', 'regionName': 'US_EAST_1'}]}))
	assert primary() == 'west'
	ok(server.delete(outage))
	assert primary() == 'east', 'its region is back'
	ok(server.patch(path(group, doc['name']), json={'replicationSpecs': [{'regionConfigs': [
		region(nodes=3, priority=6), region('US_WEST_2', 2, 7)]}]}))
	assert primary() == 'west', 'its region is preferred now'


def test_logs(server, group):
	doc = create(server, group)
	host = hosts(doc)[0].split(':')[0]
	log = '/groups/%s/clusters/%s/logs/%s.gz' % (group, host, 'db')
	r = server.get(log)
	assert r.status_code == 200 and 'gzip' in r.headers['Content-Type']
	line, = [x for x in map(json.loads, gzip.decompress(r.content).splitlines()) if 'is ready' in x['message']]
	assert host.split('.')[0] in line['message']
	assert gzip.decompress(server.get(log + '?endDate=1300000000').content) == b''
	head = server.head(log)
	assert head.status_code == 200 and head.headers['Content-Type'] == r.headers['Content-Type']
	assert 'Content-Length' not in head.headers and not head.content
	refused(server.get(log + '?startDate=1900000000&endDate=1800000000'), 400, None, 'startDate')
	refused(server.get('/groups/%s/clusters/%s/logs/db.gz' % (server.group, host)), 404)
	refused(server.get(log.replace(host, 'nothing')), 404)
	r = server.get(log.replace('db.gz', 'postgres.gz'))
	refused(r, 404)
	assert all(name in r.json()['detail'] for name in ('logName', 'db,', 'dbs,', 'db-audit-log', 'dbs-audit-log')), r.text


def test_failures_are_tried_again_and_then_told(server, group):
	server.control('engine', {'seconds': 0, 'fail': 'create', 'times': 2})
	doc = create(server, group)
	assert doc['stateName'] == 'IDLE', 'the third attempt'
	server.control('engine', {'seconds': 0, 'fail': 'create'})
	bad = ok(server.post(path(group), json=body()), 201)

	def failed():
		server.advance(17)  # less than until it is tried again
		time.sleep(POINT)
		return state(server, group, bad['name']) == 'REPAIRING'
	until(failed)
	assert server.get(path(group, bad['name'])).headers['X-Steward-Progress'].startswith('failed: the test control')
	server.control('engine', {'fail': None})
	assert server.delete(path(group, bad['name'])).status_code == 202
	settle(server, group, bad['name'])
	refused(server.get(path(group, bad['name'])), 404)
	server.control('engine', {})


def test_repair_goes_on_by_itself(server, group):
	server.control('engine', {'seconds': 0, 'fail': 'create'})
	bad = ok(server.post(path(group), json=body()), 201)

	def after(seconds, wanted):
		def check():
			server.advance(seconds)
			time.sleep(POINT)
			return state(server, group, bad['name']) == wanted
		until(check)
	after(17, 'REPAIRING')
	server.control('engine', {'fail': None})  # the cause is gone
	after(30, 'IDLE')
	assert 'X-Steward-Progress' not in server.get(path(group, bad['name'])).headers
	types = [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']]
	assert types.count('CLUSTER_CREATED') == 1
	assert server.delete(path(group, bad['name'])).status_code == 202
	settle(server, group, bad['name'])
	server.control('engine', {})


def test_details_show_only_what_the_caller_sees(server):
	a, b = server.seed({'name': unique('A'), 'projects': ['one', 'two'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'two', 'roles': ['GROUP_OWNER']}]}]},
		{'name': unique('B'), 'projects': ['three'], 'principals': []})
	member = server.api_for(a['principals'][0])
	seen = ok(member.get('/clusters'))['results']
	assert [g['groupName'] for g in seen] == ['two'] and seen[0]['clusters'] == []
	refused(server.anonymous.get('/clusters'), 401)


def test_roles(server):
	org, = server.seed({'name': unique('A'), 'projects': ['one'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'one', 'roles': ['GROUP_READ_ONLY']}]}]})
	reader, group = server.api_for(org['principals'][0]), org['projects'][0]['id']
	assert ok(reader.get(path(group)))['results'] == []
	refused(reader.post(path(group), json=body()), 403)
	refused(server.anonymous.get(path(group)), 401)


def test_restart_in_the_middle(start_server):
	"""Killed while clusters are made, changed and deleted: each ends as if nothing had happened, and only once."""
	s = start_server()
	project = s.project()['id']
	create(s, project, 'stays')
	create(s, project, 'grows')
	create(s, project, 'goes')
	strings = ok(s.get(path(project, 'stays')))['connectionStrings']
	ok(s.post(path(project), json=body('comes')), 201)
	ok(s.patch(path(project, 'grows'), json={'replicationSpecs': [{'regionConfigs': [region(nodes=5)]}]}))
	assert s.delete(path(project, 'goes')).status_code == 202
	s.kill()
	s = start_server(data_dir=s.data_dir)
	for name in ('comes', 'grows', 'goes', 'stays'):
		settle(s, project, name)
	assert sorted(c['name'] for c in ok(s.get(path(project)))['results']) == ['comes', 'grows', 'stays']
	assert len(hosts(ok(s.get(path(project, 'grows'))))) == 5
	assert ok(s.get(path(project, 'stays')))['connectionStrings'] == strings
	assert ok(s.get('/groups/' + project))['clusterCount'] == 3
	events = [e['eventTypeName'] for e in ok(s.get('/groups/%s/events?itemsPerPage=500' % project))['results']]
	assert events.count('CLUSTER_READY') == 4 and events.count('CLUSTER_DELETED') == 1
	s.control('reset')
	assert ok(s.get('/groups/%s/clusters' % s.group))['results'] == []


def test_versions_by_other_names(start_server):
	"""What the operator's table says runs; what was asked for is shown."""
	s = start_server('--db-version', '8.0=16', '--db-version', '7.0=15', '--db-scheme', 'mongodb', '--simulated-seconds', 0)
	group = s.project()['id']
	doc = create(s, group, dbMajorVersion='7.0')
	assert doc['dbMajorVersion'] == doc['featureCompatibilityVersion'] == '7.0' and doc['dbVersion'].startswith('15.')
	assert doc['connectionStrings']['standard'].startswith('mongodb://')
	assert doc['connectionStrings']['standardSrv'].startswith('mongodb+srv://')
	ok(s.patch(path(group, doc['name']), json={'dbMajorVersion': '8.0'}))
	settle(s, group, doc['name'])
	doc = ok(s.get(path(group, doc['name'])))
	assert doc['dbMajorVersion'] == '8.0' and doc['dbVersion'].startswith('16.')
	refused(s.patch(path(group, doc['name']), json={'dbMajorVersion': '7.0'}), 400, None, 'dbMajorVersion')
	assert '8.0' in refused(s.patch(path(group, doc['name']), json={'dbMajorVersion': '6.0'}), 400, None, 'dbMajorVersion')['detail']
	assert create(s, group)['dbMajorVersion'] not in ('7.0', '8.0')
	offered = {v['version'] for v in ok(s.get('/groups/%s/dbVersions' % group, params={'itemsPerPage': 500}))['results']}
	assert {n for n, of in (('8.0', '16'), ('7.0', '15')) if of in offered} == offered & {'8.0', '7.0'}


def test_many_at_once(start_server):
	s = start_server('--simulated-seconds', 0)
	ok(s.patch('/groups/%s/limits/svc.project.deployment.clusters' % s.group,
		   json={'value': 1000}))
	names = ['c%d' % i for i in range(60)]
	s.token()

	def live(name):
		ok(s.post(path(s.group), json=body(name)), 201)
		until(lambda: state(s, s.group, name) == 'IDLE', 180)
		ok(s.patch(path(s.group, name), json={'replicationSpecs': [{'regionConfigs': [region(nodes=1)]}]}))
		until(lambda: state(s, s.group, name) == 'IDLE', 180)
		assert s.delete(path(s.group, name)).status_code == 202
		until(lambda: state(s, s.group, name) is None, 180)
	with concurrent.futures.ThreadPoolExecutor(8) as pool:
		list(pool.map(live, names))
	assert ok(s.get(path(s.group)))['totalCount'] == 0
	assert ok(s.get('/groups/' + s.group))['clusterCount'] == 0


def test_every_event_of_a_cluster_names_it(server, group):
	"""Those of the service too, which tell that something is done."""
	doc = create(server, group)
	ok(server.patch(path(group, doc['name']), json={'replicationSpecs': [{'regionConfigs': [region(size='M20')]}]}))
	settle(server, group, doc['name'])
	assert server.delete(path(group, doc['name'])).status_code == 202
	settle(server, group, doc['name'])
	found = ok(server.get('/groups/%s/events?includeRaw=true&itemsPerPage=500' % group))['results']
	found = [e for e in found if e['eventTypeName'].startswith('CLUSTER_')]
	assert {e['eventTypeName'] for e in found} >= {'CLUSTER_CREATED', 'CLUSTER_READY', 'CLUSTER_UPDATE_SUBMITTED',
		'CLUSTER_UPDATE_COMPLETED', 'CLUSTER_DELETE_SUBMITTED', 'CLUSTER_DELETED'}
	for e in found:
		assert 'clusterName: ' + doc['name'] in e['raw']['description'], e
