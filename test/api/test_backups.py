"""Snapshots and restore jobs on the simulated engine: their states, what is kept and for how long, and who may bring what
back where to."""
import datetime, io, json, tarfile, threading

import pytest

from client import NO_ID, cli, execute, leave, links, ok, pass_time, refused, unique, until

DAY = 86400
NEVER = '5f00000000000000000000ff'


def passing(server, check, **more):
	"""pass_time() for a session as well as for a server."""
	return pass_time(getattr(server, 'server', server), check, **more)


def spec(shards=1, region='US_EAST_1'):
	return [{'regionConfigs': [{'providerName': 'AWS', 'regionName': region, 'priority': 7,
		'electableSpecs': {'instanceSize': 'M10' if shards == 1 else 'M30', 'nodeCount': 3}}]} for _ in range(shards)]


def create(server, group, shards=1, **more):
	name = unique('b')
	ok(server.post('/groups/%s/clusters' % group, json={'name': name, 'clusterType': 'REPLICASET' if shards == 1 else 'SHARDED',
		'replicationSpecs': spec(shards), 'backupEnabled': True, **more}), 201)
	idle(server, group, name)
	return name


def cluster(group, name, below=''):
	return '/groups/%s/clusters/%s%s' % (group, name, below)


def path(group, name, below='/snapshots'):
	return cluster(group, name, '/backup' + below)


def idle(server, group, name, **more):
	return passing(server, lambda: (lambda doc: doc['stateName'] == 'IDLE' and doc)(ok(server.get(cluster(group, name)))), **more)


def remove(server, group, name, query='', **more):
	assert server.delete(cluster(group, name) + query).status_code in (202, 204)
	pass_time(server, lambda: server.get(cluster(group, name)).status_code == 404, **more)


def take(server, group, name, wait=True, **body):
	doc = ok(server.post(path(group, name), json=body))
	return settled(server, group, name, doc['id']) if wait else doc


def settled(server, group, name, snapshot, **more):
	def over():
		doc = ok(server.get(path(group, name, '/snapshots/' + snapshot)))
		return doc['status'] in ('completed', 'failed') and doc
	return passing(server, over, **more)


def restore(server, group, name, **body):
	return ok(server.post(path(group, name, '/restoreJobs'), json=body))


def restored(server, group, name, job):
	def over():
		doc = ok(server.get(path(group, name, '/restoreJobs/' + job)))
		return 'finishedAt' in doc and doc
	return passing(server, over)


def iso(at):
	return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')


def windows(server, where):
	"""The seconds that can be restored, as the list tells who asks: (first, last), the newest data first."""
	answer = server.get(where, headers={'X-Steward-Describe-Window': 'true'})
	ok(answer)
	told = answer.headers['X-Steward-Restore-Window']
	return [] if told == 'none' else [tuple(int(datetime.datetime.fromisoformat(t.replace('Z', '+00:00')).timestamp()) for t in one.split('/'))
		for one in told.split(', ')]


def seconds(server):
	return int(datetime.datetime.fromisoformat(server.control('clock', method='GET')['now'].replace('Z', '+00:00')).timestamp())


def ids(server, where):
	return [s['id'] for s in ok(server.get(where))['results']]


def types(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events?itemsPerPage=500' % group))['results']]


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	yield group
	leave(server, group)


# Snapshots

def test_snapshot_states_and_fields(server, group):
	name = create(server, group)
	server.control('engine', {'seconds': 30})
	r = server.post(path(group, name), json={'description': 'before the release', 'retentionInDays': 3})
	doc = ok(r)
	assert doc['status'] == 'queued' and doc['snapshotType'] == 'onDemand' and doc['description'] == 'before the release'
	assert doc['type'] == 'replicaSet' and doc['storageSizeBytes'] == 0 and doc['policyItems'] == []
	assert links(doc)['self'].endswith(path(group, name, '/snapshots/' + doc['id']))
	seen = []

	def over():
		r = server.get(path(group, name, '/snapshots/' + doc['id']))
		seen.append((ok(r)['status'], r.headers.get('X-Steward-Progress')))
		return ok(r)['status'] == 'completed' and r.json()
	done = pass_time(server, over, step=1)
	states = [s for s, _ in seen]
	assert states == sorted(states, key=['queued', 'inProgress', 'completed'].index) and 'inProgress' in states
	assert any(p and p.endswith('copying data') for s, p in seen if s == 'inProgress'), seen
	assert done['storageSizeBytes'] >= 256 << 20 and done['dbVersion'].count('.') == 2 and done['cloudProvider'] == 'AWS'
	assert done['replicaSetName'].endswith('-shard-0') and done['copyRegions'] == []
	assert 'frequencyType' not in done
	assert ids(server, path(group, name)) == [doc['id']]
	told = types(server, group)
	assert [t for t in told if t.startswith('CPS_')] == [
		'CPS_SNAPSHOT_SUCCESSFUL', 'CPS_SNAPSHOT_STARTED', 'CPS_ON_DEMAND_SNAPSHOT_REQUESTED']


def test_one_at_a_time(server, group):
	name = create(server, group)
	server.control('engine', {'seconds': 30})
	made = [take(server, group, name, wait=False)['id'] for _ in range(3)]

	def states():
		return [s['status'] for s in ok(server.get(path(group, name)))['results']]
	most = 0

	def over():
		nonlocal most
		now = states()
		most = max(most, now.count('inProgress'))
		return now == ['completed'] * 3
	pass_time(server, over)
	assert most == 1 and ids(server, path(group, name)) == made


def test_a_failure_is_told(server, group):
	name = create(server, group)
	server.control('engine', {'fail': 'snapshot'})
	doc = ok(server.post(path(group, name), json={}))
	failed = pass_time(server, lambda: (lambda d: d['status'] == 'failed' and d)(
		ok(server.get(path(group, name, '/snapshots/' + doc['id'])))), step=60)
	assert failed['storageSizeBytes'] == 0
	r = server.get(path(group, name, '/snapshots/' + doc['id']))
	assert 'asked for this failure' in r.headers['X-Steward-Progress']
	assert 'CPS_SNAPSHOT_FAILED' in types(server, group)
	server.control('engine', {})
	assert take(server, group, name)['status'] == 'completed', 'the next one is not held up'
	refused(server.post(path(group, name, '/restoreJobs'), json={'deliveryType': 'download', 'snapshotId': doc['id']}), 409,
		'SNAPSHOT_NOT_COMPLETE', doc['id'])
	assert server.delete(path(group, name, '/snapshots/' + doc['id'])).status_code == 204


def test_refusals(server, group):
	plain = unique('n')
	ok(server.post('/groups/%s/clusters' % group, json={'name': plain, 'clusterType': 'REPLICASET', 'replicationSpecs': spec()}), 201)
	idle(server, group, plain)
	refused(server.post(path(group, plain), json={}), 409, 'CLUSTER_BACKUP_NOT_ENABLED', plain)
	assert ids(server, path(group, plain)) == []
	refused(server.get(path(group, 'nothing')), 404)
	refused(server.post(path(group, 'nothing'), json={}), 404)
	server.control('engine', {'seconds': 60})
	young = unique('y')
	ok(server.post('/groups/%s/clusters' % group, json={'name': young, 'clusterType': 'REPLICASET', 'replicationSpecs': spec(),
		'backupEnabled': True}), 201)
	refused(server.post(path(group, young), json={}), 409, 'CLUSTER_NOT_READY', young)
	server.control('engine', {})
	name, going = create(server, group), create(server, group)
	server.control('engine', {'seconds': 60})
	assert server.delete(cluster(group, going)).status_code in (202, 204)
	refused(server.post(path(group, going), json={}), 409, 'CLUSTER_ALREADY_REQUESTED_DELETION', going)
	refused(server.post(path(group, name), json={'retentionInDays': 0}), 400, None, 'retentionInDays')
	refused(server.post(path(group, name), json={'retentionInDays': 99999}), 400, None, 'retentionInDays')
	refused(server.get(path(group, name, '/snapshots/' + NEVER)), 404)
	refused(server.delete(path(group, name, '/snapshots/' + NEVER)), 404)
	refused(server.patch(path(group, name, '/snapshots/' + NEVER), json={'retentionUnit': 'DAYS', 'retentionValue': 1}), 404)
	for _ in range(12):
		r = server.post(path(group, name), json={})
	refused(r, 409, 'TOO_MANY_SNAPSHOTS_QUEUED')


def test_retention_and_expiry(server, group):
	name = create(server, group)
	first, second = take(server, group, name, retentionInDays=1), take(server, group, name, retentionInDays=1)
	changed = ok(server.patch(path(group, name, '/snapshots/' + first['id']), json={'retentionUnit': 'WEEKS', 'retentionValue': 2}))
	assert changed['expiresAt'] > first['expiresAt'] and changed['createdAt'] == first['createdAt']
	for value in (0, -1, 36526):
		refused(server.patch(path(group, name, '/snapshots/' + first['id']), json={'retentionUnit': 'DAYS', 'retentionValue': value}), 400,
			None, 'retentionValue')
	ok(server.delete(path(group, name, '/schedule')))
	server.advance(DAY + 60)
	until(lambda: ids(server, path(group, name)) == [first['id']], what='the expiry')
	server.advance(13 * DAY)
	until(lambda: ids(server, path(group, name)) == [], what='the expiry')
	refused(server.get(path(group, name, '/snapshots/' + second['id'])), 404)
	assert 'CPS_SNAPSHOT_RETENTION_MODIFIED_AUDIT' in types(server, group)


def test_deletion(server, group):
	name = create(server, group)
	server.control('engine', {'seconds': 30})
	doc = take(server, group, name, wait=False)
	pass_time(server, lambda: ok(server.get(path(group, name, '/snapshots/' + doc['id'])))['status'] == 'inProgress', step=1)
	refused(server.delete(path(group, name, '/snapshots/' + doc['id'])), 409, 'SNAPSHOT_IN_PROGRESS', doc['id'])
	settled(server, group, name, doc['id'])
	assert server.delete(path(group, name, '/snapshots/' + doc['id'])).status_code == 204
	refused(server.delete(path(group, name, '/snapshots/' + doc['id'])), 404)
	assert ids(server, path(group, name)) == [] and 'CPS_SNAPSHOT_DELETED_AUDIT' in types(server, group)


def test_sharded(server, group):
	name = create(server, group, shards=2)
	doc = take(server, group, name)
	assert doc['type'] == 'shardedCluster'
	one = ok(server.get(path(group, name, '/snapshots/shardedCluster/' + doc['id'])))
	assert len(one['members']) == 2 and one['snapshotIds'] == [m['id'] for m in one['members']]
	assert {m['replicaSetName'][-8:] for m in one['members']} == {'-shard-0', '-shard-1'}
	assert one['storageSizeBytes'] >= 512 << 20
	listed = ok(server.get(path(group, name, '/snapshots/shardedClusters')))
	assert [s['id'] for s in listed['results']] == [doc['id']]
	plain = create(server, group)
	small = take(server, group, plain)
	assert ok(server.get(path(group, plain, '/snapshots/shardedClusters')))['results'] == []
	refused(server.get(path(group, plain, '/snapshots/shardedCluster/' + small['id'])), 404)
	refused(server.get(path(group, plain, '/snapshots/shardedCluster/' + doc['id'])), 404)
	refused(server.get(path(group, NO_ID, '/snapshots/shardedClusters')), 404)
	refused(server.delete(path(group, plain, '/snapshots/shardedCluster/' + small['id'])), 404)
	refused(server.post(path(group, name, '/restoreJobs'), json={'deliveryType': 'automated', 'snapshotId': doc['id'],
		'targetClusterName': plain, 'targetGroupId': group}), 400, None, 'targetClusterName')
	job = restore(server, group, name, deliveryType='download', snapshotId=doc['id'])
	assert len(job['deliveryUrl']) == 2 == len(job['components'])
	assert server.delete(path(group, name, '/restoreJobs/' + job['id'])).status_code == 204
	assert server.delete(path(group, name, '/snapshots/shardedCluster/' + doc['id'])).status_code == 204
	refused(server.get(path(group, name, '/snapshots/shardedCluster/' + doc['id'])), 404)


def test_backups_outlive_their_cluster(server, group):
	kept, gone = create(server, group), create(server, group)
	a, b = take(server, group, kept, retentionInDays=2), take(server, group, gone)
	remove(server, group, kept, '?retainBackups=true')
	remove(server, group, gone)
	refused(server.get(path(group, gone)), 404)
	refused(server.get(path(group, gone, '/snapshots/' + b['id'])), 404)
	assert ids(server, path(group, kept)) == [a['id']]
	refused(server.post(path(group, kept), json={}), 404)
	target = create(server, group)
	job = restore(server, group, kept, deliveryType='automated', snapshotId=a['id'], targetClusterName=target, targetGroupId=group)
	assert restored(server, group, kept, job['id'])['failed'] is False
	server.advance(2 * DAY + 60)
	until(lambda: server.get(path(group, kept)).status_code == 404, what='the end of what was kept')


def test_a_new_cluster_of_the_name_shows_both(server, group):
	name = create(server, group)
	old = take(server, group, name)
	remove(server, group, name, '?retainBackups=true')
	ok(server.post('/groups/%s/clusters' % group, json={'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': spec(),
		'backupEnabled': True}), 201)
	idle(server, group, name)
	new = take(server, group, name)
	assert ids(server, path(group, name)) == [old['id'], new['id']]
	assert ok(server.get(path(group, name, '/snapshots/' + old['id'])))['status'] == 'completed'


def test_another_tenant_learns_nothing(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	job = restore(server, group, name, deliveryType='download', snapshotId=doc['id'])
	other = server.project()['id']
	there = create(server, other)
	own = take(server, other, there)
	for below in ('/snapshots/' + doc['id'], '/restoreJobs/' + job['id']):
		refused(server.get(path(other, there, below)), 404)
		refused(server.delete(path(other, there, below)), 404)
		refused(server.get(path(other, name, below)), 404)
	refused(server.patch(path(other, there, '/snapshots/' + doc['id']), json={'retentionUnit': 'DAYS', 'retentionValue': 1}), 404)
	refused(server.post(path(other, there, '/restoreJobs'), json={'deliveryType': 'automated', 'snapshotId': doc['id'],
		'targetClusterName': there, 'targetGroupId': other}), 404, 'SNAPSHOT_NOT_FOUND', doc['id'])
	second = create(server, group)
	refused(server.get(path(group, second, '/snapshots/' + doc['id'])), 404)
	assert ids(server, path(other, there)) == [own['id']]


# Restores

def test_restore_into_itself(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	server.control('engine', {'seconds': 30})
	job = restore(server, group, name, deliveryType='automated', snapshotId=doc['id'], targetClusterName=name, targetGroupId=group)
	assert job['deliveryType'] == 'automated' and 'finishedAt' not in job and job['failed'] is job['cancelled'] is job['expired'] is False
	assert job['timestamp'] and job['snapshotId'] == doc['id']
	assert ok(server.get(cluster(group, name)))['stateName'] == 'UPDATING'
	refused(server.post(path(group, name, '/restoreJobs'), json={'deliveryType': 'automated', 'snapshotId': doc['id'],
		'targetClusterName': name, 'targetGroupId': group}), 409, 'CLUSTER_RESTORE_IN_PROGRESS', name)
	refused(server.delete(path(group, name, '/snapshots/' + doc['id'])), 409, 'SNAPSHOT_IN_USE', doc['id'])
	said = []

	def over():
		r = server.get(path(group, name, '/restoreJobs/' + job['id']))
		said.append(r.headers.get('X-Steward-Progress', ''))
		return 'finishedAt' in ok(r)
	pass_time(server, over)
	assert any('bringing back' in s for s in said), said
	done = ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))
	assert done['failed'] is False and done['cancelled'] is False
	idle(server, group, name)
	assert 'CPS_RESTORE_SUCCESSFUL' in types(server, group) and 'CPS_RESTORE_REQUESTED_AUDIT' in types(server, group)
	assert ids(server, path(group, name, '/restoreJobs')) == [job['id']]
	refused(server.delete(path(group, name, '/restoreJobs/' + job['id'])), 409, 'RESTORE_JOB_IS_OVER', job['id'])
	assert server.delete(path(group, name, '/snapshots/' + doc['id'])).status_code == 204


def test_restore_of_one_table(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	server.control('engine', {'seconds': 30})
	body = {'deliveryType': 'automated', 'snapshotId': doc['id'], 'targetClusterName': name, 'targetGroupId': group}
	where = path(group, name, '/restoreJobs')
	moment = doc['createdAt'][:19].replace('-', '').replace('T', '').replace(':', '')
	for only, replace, named in (('shop/public.items', None, 'shop/public.items_restored_'), ('shop/items', 'true', 'shop/public.items'),
				     ('shop', 'false', 'shop_restored_'), ('a%2Fb/c%2Ed.e%20f', 'true', 'a%2Fb/c%2Ed.e%20f')):
		answer = server.post(where, json=body, headers={'X-Steward-Restore-Only': only, **({'X-Steward-Restore-Replace': replace} if replace else {})})
		job = ok(answer)
		assert answer.headers['X-Steward-Restore-As'].startswith(named)
		assert answer.headers['X-Steward-Restore-As'] == named or len(answer.headers['X-Steward-Restore-As']) == len(named + moment)
		assert ok(server.get(cluster(group, name)))['stateName'] == 'UPDATING'
		refused(server.post(where, json=body), 409, 'CLUSTER_RESTORE_IN_PROGRESS', name)
		assert restored(server, group, name, job['id'])['failed'] is False
		shown = server.get(path(group, name, '/restoreJobs/' + job['id']))
		assert shown.headers['X-Steward-Restore-As'] == answer.headers['X-Steward-Restore-As']
		assert shown.headers['X-Steward-Restore-Only'] == only.replace('/items', '/public.items')
		idle(server, group, name)
	assert 'CPS_RESTORE_SUCCESSFUL' in types(server, group)
	# It is cancelled as any other; and a restore of all has no such header.
	job = ok(server.post(where, json=body, headers={'X-Steward-Restore-Only': 'shop'}))
	assert server.delete(path(group, name, '/restoreJobs/' + job['id'])).status_code == 204
	assert restored(server, group, name, job['id'])['cancelled'] is True
	idle(server, group, name)
	answer = server.post(where, json=body)
	assert 'X-Steward-Restore-As' not in answer.headers
	restored(server, group, name, ok(answer)['id'])
	idle(server, group, name)


@pytest.mark.parametrize('only, replace, field', [
	('', 'true', 'Replace'), ('shop', 'maybe', 'Replace'), ('/items', None, 'Only'), ('shop/', None, 'Only'), ('shop/.items', None, 'Only'),
	('shop/a.', None, 'Only'), ('%zz', None, 'Only'), ('%00', None, 'Only'), ('%ff', None, 'Only'), ('x' * 53, None, 'Only'),
	('shop/' + 'x' * 64, None, 'Only'), ('template1', None, 'Only'), ('shop/pg_catalog.pg_class', None, 'Only'),
	('shop/steward.rights', None, 'Only'), ('steward_restoring_1', None, 'Only'), ('postgres', 'true', 'Replace')])
def test_restore_of_one_table_refused(server, group, only, replace, field):
	headers = {'X-Steward-Restore-Only': only, **({'X-Steward-Restore-Replace': replace} if replace else {})}
	refused(server.post(path(group, 'any', '/restoreJobs'), json={'deliveryType': 'automated', 'snapshotId': NEVER, 'targetClusterName': 'x'},
		headers=headers), 400, None, 'X-Steward-Restore-' + field)


def test_restore_of_one_table_elsewhere(server, group):
	headers = {'X-Steward-Restore-Only': 'shop'}
	refused(server.post(path(group, 'any', '/restoreJobs'), json={'deliveryType': 'download', 'snapshotId': NEVER}, headers=headers), 400, None,
		'X-Steward-Restore-Only')
	name = create(server, group, shards=2)
	doc = take(server, group, name)
	refused(server.post(path(group, name, '/restoreJobs'), json={'deliveryType': 'automated', 'snapshotId': doc['id'], 'targetClusterName': name,
		'targetGroupId': group}, headers=headers), 400, None, 'targetClusterName')


def test_restore_into_another_project(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	there = server.project()['id']
	target = create(server, there)
	job = restore(server, group, name, deliveryType='automated', snapshotId=doc['id'], targetClusterName=target, targetGroupId=there)
	assert restored(server, group, name, job['id'])['targetGroupId'] == there
	idle(server, there, target)
	for g in (group, there):
		assert 'CPS_RESTORE_SUCCESSFUL' in types(server, g)
	names = [unique('a'), unique('b')]
	org = server.seed({'name': unique('o'), 'projects': names, 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': names[0], 'roles': ['GROUP_BACKUP_MANAGER', 'GROUP_CLUSTER_MANAGER']}]},
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'serviceAccount', 'projectRoles': [{'project': names[0], 'roles': ['GROUP_BACKUP_MANAGER', 'GROUP_CLUSTER_MANAGER']},
							    {'project': names[1], 'roles': ['GROUP_READ_ONLY']}]}]})[0]
	own, other = [p['id'] for p in org['projects']]
	outsider, owner, reader = [server.api_for(p) for p in org['principals']]
	mine, theirs = create(owner, own), create(owner, other)
	shot = take(owner, own, mine)
	body = {'deliveryType': 'automated', 'snapshotId': shot['id'], 'targetClusterName': theirs, 'targetGroupId': other}
	refused(outsider.post(path(own, mine, '/restoreJobs'), json=body), 404, 'GROUP_NOT_FOUND', other)
	refused(outsider.post(path(own, mine, '/restoreJobs'), json={**body, 'targetGroupId': NEVER}), 404, 'GROUP_NOT_FOUND', NEVER)
	refused(reader.post(path(own, mine, '/restoreJobs'), json=body), 403, 'INSUFFICIENT_ROLE')
	refused(owner.post(path(own, mine, '/restoreJobs'), json={**body, 'targetClusterName': 'nothing'}), 404, 'CLUSTER_NOT_FOUND')
	assert ok(owner.get(cluster(other, theirs)))['stateName'] == 'IDLE'


@pytest.mark.parametrize('body, field', [
	({'deliveryType': 'automated', 'targetClusterName': 'x'}, 'snapshotId'),
	({'deliveryType': 'automated', 'snapshotId': NEVER}, 'targetClusterName'),
	({'deliveryType': 'download'}, 'snapshotId'),
	({'deliveryType': 'download', 'snapshotId': NEVER, 'targetClusterName': 'x'}, 'targetClusterName'),
	({'deliveryType': 'download', 'snapshotId': NEVER, 'pointInTimeUTCSeconds': 1700000000}, 'pointInTimeUTCSeconds'),
	({'deliveryType': 'pointInTime', 'targetClusterName': 'x'}, 'pointInTimeUTCSeconds'),
	({'deliveryType': 'pointInTime', 'targetClusterName': 'x', 'snapshotId': NEVER, 'pointInTimeUTCSeconds': 1700000000}, 'snapshotId'),
	({'deliveryType': 'pointInTime', 'targetClusterName': 'x', 'oplogTs': 1700000000}, 'oplogInc'),
	({'deliveryType': 'pointInTime', 'targetClusterName': 'x', 'oplogInc': 1}, 'oplogTs'),
	({'deliveryType': 'pointInTime', 'targetClusterName': 'x', 'oplogTs': 1700000000, 'oplogInc': 1, 'pointInTimeUTCSeconds': 1700000000},
	 'oplogTs'),
	({'deliveryType': 'teleport'}, 'deliveryType')])
def test_restore_forms(server, group, body, field):
	refused(server.post(path(group, 'any', '/restoreJobs'), json=body), 400, None, field)


def test_targets_that_cannot_take_it(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	body = {'deliveryType': 'automated', 'snapshotId': doc['id'], 'targetGroupId': group}
	sleeping, busy, older = create(server, group), create(server, group), create(server, group, dbMajorVersion='15')
	ok(server.patch(cluster(group, sleeping), json={'paused': True}))
	idle(server, group, sleeping)
	refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'targetClusterName': sleeping}), 409,
		'CANNOT_UPDATE_PAUSED_CLUSTER', sleeping)
	server.control('engine', {'seconds': 60})
	ok(server.patch(cluster(group, busy), json={'replicationSpecs': spec(region='EU_WEST_1')}))
	refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'targetClusterName': busy}), 409, 'CLUSTER_NOT_READY', busy)
	refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'targetClusterName': older}), 400, None, 'targetClusterName')
	refused(server.get(path(group, name, '/restoreJobs/' + NEVER)), 404)
	refused(server.delete(path(group, name, '/restoreJobs/' + NEVER)), 404)
	refused(server.get(path(group, 'nothing', '/restoreJobs')), 404)


def test_restore_into_a_cluster_that_is_being_made(server, group):
	"""Nobody has to stay until it is there: it is never IDLE and empty."""
	name = create(server, group)
	doc = take(server, group, name)
	server.control('engine', {'seconds': 60})

	def begin():
		target = unique('b')
		ok(server.post('/groups/%s/clusters' % group, json={'name': target, 'clusterType': 'REPLICASET', 'replicationSpecs': spec()}), 201)
		return target, restore(server, group, name, deliveryType='automated', snapshotId=doc['id'], targetClusterName=target, targetGroupId=group)
	target, job = begin()
	assert ok(server.get(cluster(group, target)))['stateName'] == 'CREATING'
	refused(server.post(path(group, name, '/restoreJobs'), json={'deliveryType': 'automated', 'snapshotId': doc['id'],
		'targetClusterName': target, 'targetGroupId': group}), 409, 'CLUSTER_RESTORE_IN_PROGRESS', target)
	seen = []

	def over():
		state, done = ok(server.get(cluster(group, target)))['stateName'], 'finishedAt' in ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))
		seen.append((state, done))
		return state == 'IDLE'
	pass_time(server, over, step=5)
	assert seen[-1] == ('IDLE', True) and {s for s, done in seen if not done} == {'CREATING', 'UPDATING'}, seen
	assert ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))['failed'] is False
	assert types(server, group).count('CLUSTER_READY') == 2
	cancelled, job = begin()
	assert server.delete(path(group, name, '/restoreJobs/' + job['id'])).status_code == 204
	pass_time(server, lambda: ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))['cancelled'], step=5)
	idle(server, group, cancelled)
	gone, job = begin()
	remove(server, group, gone)
	assert ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))['failed'] is True


def test_cancel_and_failure(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	server.control('engine', {'seconds': 600})
	body = {'deliveryType': 'automated', 'snapshotId': doc['id'], 'targetClusterName': name, 'targetGroupId': group}
	job = restore(server, group, name, **body)
	server.advance(5)
	assert server.delete(path(group, name, '/restoreJobs/' + job['id'])).status_code == 204
	# A step that was under way meanwhile looks again when it said that it would.
	done = pass_time(server, lambda: (lambda d: d['cancelled'] and d)(ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))), step=30)
	assert done['failed'] is False and done['finishedAt']
	idle(server, group, name)
	server.control('engine', {'seconds': 1, 'fail': 'restore'})
	job = restore(server, group, name, **body)
	done = pass_time(server, lambda: (lambda d: d['failed'] and d)(ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))), step=30)
	assert 'asked for this failure' in server.get(path(group, name, '/restoreJobs/' + job['id'])).headers['X-Steward-Progress']
	idle(server, group, name)
	assert 'CPS_RESTORE_FAILED' in types(server, group)
	server.control('engine', {})
	job = restore(server, group, name, **body)
	assert restored(server, group, name, job['id'])['failed'] is False


def test_a_change_waits_for_the_restore(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	server.control('engine', {'seconds': 60})
	job = restore(server, group, name, deliveryType='automated', snapshotId=doc['id'], targetClusterName=name)
	ok(server.patch(cluster(group, name), json={'replicationSpecs': spec(region='EU_WEST_1')}))
	restored(server, group, name, job['id'])
	after = idle(server, group, name)
	assert after['replicationSpecs'][0]['regionConfigs'][0]['regionName'] == 'EU_WEST_1'
	second = take(server, group, name)
	assert second['status'] == 'completed'
	gone = restore(server, group, name, deliveryType='automated', snapshotId=second['id'], targetClusterName=name)
	assert server.delete(cluster(group, name) + '?retainBackups=true').status_code in (202, 204)
	pass_time(server, lambda: server.get(cluster(group, name)).status_code == 404)
	assert ok(server.get(path(group, name, '/restoreJobs/' + gone['id'])))['failed'] is True


def test_point_in_time(server, group):
	name = create(server, group, pitEnabled=True)
	other = create(server, group)
	base, = pass_time(server, lambda: [s for s in ok(server.get(path(group, name)))['results'] if s['status'] == 'completed'])
	assert base['snapshotType'] == 'fallback', 'a window begins with a snapshot of its own'
	server.advance(3600)
	now = seconds(server)
	body = {'deliveryType': 'pointInTime', 'targetClusterName': name, 'targetGroupId': group}
	early = refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'pointInTimeUTCSeconds': now - DAY}), 400,
		'POINT_IN_TIME_NOT_RESTORABLE', 'pointInTimeUTCSeconds')
	late = refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'pointInTimeUTCSeconds': now + 60}), 400,
		'POINT_IN_TIME_NOT_RESTORABLE', 'pointInTimeUTCSeconds')
	assert str(now) in late['detail'] and str(now) in early['detail'], 'the nearest window is named'
	(since, until_then), = windows(server, path(group, name))
	assert 'from %s (%d) to %s (%d)' % (iso(since), since, iso(until_then), until_then) in late['detail'] and until_then == now
	assert windows(server, path(group, other)) == []
	refused(server.post(path(group, other, '/restoreJobs'), json={**body, 'pointInTimeUTCSeconds': now}), 400, 'POINT_IN_TIME_NOT_RESTORABLE')
	assert ids(server, path(group, name) + '?pointInTimeUtcSeconds=%d' % now) == [base['id']]
	assert ids(server, path(group, name) + '?pointInTimeUtcSeconds=%d' % (now - DAY)) == []
	assert ids(server, path(group, other) + '?oplogTs=%d&oplogInc=1' % now) == []
	job = restore(server, group, name, **body, pointInTimeUTCSeconds=now - 60)
	assert job['pointInTimeUTCSeconds'] == now - 60 and job['desiredTimestamp']['increment'] > 1199145600
	assert restored(server, group, name, job['id'])['failed'] is False
	idle(server, group, name)
	# What was before the restore can still be had; of the new data the window begins anew.
	pass_time(server, lambda: len([s for s in ok(server.get(path(group, name)))['results'] if s['status'] == 'completed']) == 2)
	(anew, _), (still, ended) = windows(server, path(group, name))
	assert still == since and since < ended <= anew
	for more in ({'pointInTimeUTCSeconds': now - 120}, {'oplogTs': now - 30, 'oplogInc': 5}, {'oplogTs': now - 30, 'oplogInc': 1199145600 + 5}):
		job = restore(server, group, name, **{**body, 'targetClusterName': other}, **more)
		assert restored(server, group, name, job['id'])['failed'] is False
		idle(server, group, other)
	refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'oplogTs': now + 999999, 'oplogInc': 1}), 400, None, 'oplogTs')


def test_who_is_told_the_window(server):
	"""Whoever sees snapshots, and asks; a sharded cluster has it in both of its lists."""
	project = unique('w')
	org = server.seed({'name': unique('o'), 'projects': [project], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'serviceAccount', 'projectRoles': [{'project': project, 'roles': ['GROUP_READ_ONLY']}]}]})[0]
	group, (owner, reader) = org['projects'][0]['id'], [server.api_for(p) for p in org['principals']]
	name = create(owner, group, shards=2, pitEnabled=True)
	pass_time(server, lambda: windows(owner, path(group, name)))
	plain = windows(owner, path(group, name))
	assert plain == windows(owner, path(group, name, '/snapshots/shardedClusters')) == windows(reader, path(group, name))
	assert 'X-Steward-Restore-Window' not in owner.get(path(group, name)).headers
	job = {'deliveryType': 'pointInTime', 'targetClusterName': name, 'targetGroupId': group, 'pointInTimeUTCSeconds': plain[0][0]}
	refused(reader.post(path(group, name, '/restoreJobs'), json=job), 403)
	refused(reader.get(path(group, 'nobody'), headers={'X-Steward-Describe-Window': 'true'}), 404, 'CLUSTER_NOT_FOUND')
	job = restore(owner, group, name, **job)
	assert restored(owner, group, name, job['id'])['failed'] is False, 'the first second that is told can be restored'


def test_window_whose_first_snapshot_fails(start_server):
	"""It is tried again within minutes, not with the schedule's next one."""
	server = start_server(exports=True)  # an own one: the failures are taken by whatever cluster comes first
	server.control('engine', {'seconds': 0, 'fail': 'snapshot', 'times': 3})
	name = create(server, server.group, pitEnabled=True)
	pass_time(server, lambda: 'CPS_SNAPSHOT_FALLBACK_FAILED' in types(server, server.group), step=5)
	failed = seconds(server)
	made, = pass_time(server, lambda: [s for s in ok(server.get(path(server.group, name)))['results'] if s['status'] == 'completed'],
		step=20)
	assert made['snapshotType'] == 'fallback' and seconds(server) - failed < 1800
	assert ok(server.get(path(server.group, name)))['totalCount'] == 2


def test_what_a_cluster_was_before_a_restore(server, group):
	"""Its snapshot stays as long as the window reaches back to it, whatever its own time; then both are gone."""
	name = create(server, group, pitEnabled=True)
	base, = pass_time(server, lambda: [s for s in ok(server.get(path(group, name)))['results'] if s['status'] == 'completed'])
	ok(server.patch(path(group, name, '/schedule'), json={'policies': [], 'restoreWindowDays': 2}))
	idle(server, group, name)
	server.advance(3600)
	then = seconds(server) - 60
	body = {'deliveryType': 'pointInTime', 'targetClusterName': name, 'targetGroupId': group, 'pointInTimeUTCSeconds': then}
	assert restored(server, group, name, restore(server, group, name, **body)['id'])['failed'] is False
	idle(server, group, name)
	ok(server.patch(path(group, name, '/snapshots/' + base['id']), json={'retentionUnit': 'DAYS', 'retentionValue': 1}))
	for _ in range(6):
		server.advance(6 * 3600)
		pass_time(server, lambda: True)
	assert ids(server, path(group, name) + '?pointInTimeUtcSeconds=%d' % then) == [base['id']], 'it has expired, and is needed'
	for _ in range(6):
		server.advance(6 * 3600)
		pass_time(server, lambda: True)
	pass_time(server, lambda: base['id'] not in ids(server, path(group, name) + '?itemsPerPage=500'), step=600)
	refused(server.post(path(group, name, '/restoreJobs'), json=body), 400, 'POINT_IN_TIME_NOT_RESTORABLE')


def test_a_snapshot_that_waits_for_a_restore_is_of_what_came(server, group):
	name = create(server, group, pitEnabled=True)
	base, = pass_time(server, lambda: [s for s in ok(server.get(path(group, name)))['results'] if s['status'] == 'completed'])
	server.control('engine', {'seconds': 20})
	take(server, group, name, wait=False)
	until(lambda: [s for s in ok(server.get(path(group, name)))['results'] if s['status'] == 'inProgress'], what='the first')
	waits = take(server, group, name, wait=False)
	job = restore(server, group, name, deliveryType='automated', snapshotId=base['id'], targetClusterName=name, targetGroupId=group)
	assert restored(server, group, name, job['id'])['failed'] is False
	server.control('engine', {})
	idle(server, group, name)
	assert settled(server, group, name, waits['id'])['status'] == 'completed'
	pass_time(server, lambda: all(s['status'] == 'completed' for s in ok(server.get(path(group, name)))['results']))
	for one in ok(server.get(path(group, name)))['results']:
		if one['id'] not in (base['id'], waits['id']):
			assert server.delete(path(group, name, '/snapshots/' + one['id'])).status_code == 204
	server.advance(3600)
	job = restore(server, group, name, deliveryType='pointInTime', targetClusterName=name, targetGroupId=group,
		pointInTimeUTCSeconds=seconds(server) - 60)
	assert restored(server, group, name, job['id'])['failed'] is False, 'the log of the new data goes on from it'


def test_point_in_time_of_shards(server, group):
	name = create(server, group, shards=2, pitEnabled=True)
	pass_time(server, lambda: [s for s in ok(server.get(path(group, name)))['results'] if s['status'] == 'completed'])
	server.advance(600)
	now = seconds(server)
	body = {'deliveryType': 'pointInTime', 'targetClusterName': name, 'targetGroupId': group}
	refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'oplogTs': now, 'oplogInc': 1}), 400, None, 'oplogTs')
	job = restore(server, group, name, **body, pointInTimeUTCSeconds=now - 30)
	assert job['timestamp'].endswith(':00Z'), 'the sets agree at checkpoints'
	assert restored(server, group, name, job['id'])['failed'] is False


# Downloads

def test_download(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	job = restore(server, group, name, deliveryType='download', snapshotId=doc['id'])
	url, = job['deliveryUrl']
	assert job['finishedAt'] and job['expiresAt'] > job['finishedAt'] and job['components'] == []
	assert ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))['deliveryUrl'] == [url]
	r = server.anonymous.get(url)
	assert r.status_code == 200 and r.headers['Content-Type'] == 'application/x-tar' and name in r.headers['Content-Disposition']
	with tarfile.open(fileobj=io.BytesIO(r.content)) as tar:
		assert tar.getnames() == ['PG_VERSION', 'backup_label']
		assert doc['id'] in tar.extractfile('backup_label').read().decode()
	head = server.anonymous.head(url)
	assert head.status_code == 200 and not head.content
	last = url[-1]
	for bad in (url[:-1] + ('0' if last != '0' else '1'), url[:-10], url.replace(job['id'] + '.0.', job['id'] + '.1.'), url.replace(job['id'] + '.0.', job['id'] + '.x.'),
			url.replace(job['id'], NEVER), url.rsplit('/', 1)[0] + '/'):
		refused(server.anonymous.get(bad), 404)
	assert server.anonymous.request('POST', url).status_code == 405
	token = url.rsplit('.', 1)[1]
	until(lambda: '/downloads/' in server.stderr, what='the log line')
	assert token not in server.stderr and not server.rows("SELECT 1 FROM doc WHERE body LIKE '%%%s%%' OR secret LIKE '%%%s%%'" % (token, token))
	server.advance(4 * 3600 + 1)
	refused(server.anonymous.get(url), 404, 'DOWNLOAD_EXPIRED')
	gone = until(lambda: (lambda d: d['expired'] and d)(ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))), what='the expiry')
	assert gone['deliveryUrl'] == []
	refused(server.delete(path(group, name, '/restoreJobs/' + job['id'])), 409, 'RESTORE_JOB_IS_OVER')
	again = restore(server, group, name, deliveryType='download', snapshotId=doc['id'])
	assert server.delete(path(group, name, '/restoreJobs/' + again['id'])).status_code == 204
	refused(server.anonymous.get(again['deliveryUrl'][0]), 404)
	assert ok(server.get(path(group, name, '/restoreJobs/' + again['id'])))['cancelled'] is True


def test_a_download_goes_on(server, group):
	"""After any byte, and only with the tar that it began with."""
	name = create(server, group)
	doc = take(server, group, name)
	url, = restore(server, group, name, deliveryType='download', snapshotId=doc['id'])['deliveryUrl']
	get = lambda **headers: server.anonymous.get(url, headers={k.replace('_', '-'): v for k, v in headers.items()})
	whole = get()
	size, etag = len(whole.content), whole.headers['ETag']
	assert whole.headers['Accept-Ranges'] == 'bytes' and etag.startswith('"') and doc['id'] in etag
	assert server.anonymous.head(url).headers['ETag'] == etag
	for first, last, asked in ((0, size - 1, 'bytes=0-'), (1, size - 1, 'bytes=1-'), (size - 1, size - 1, 'bytes=%d-' % (size - 1)), (700, 1300, 'bytes=700-1300'),
			(511, 512, 'bytes=511-512'), (size - 5, size - 1, 'bytes=-5'), (5, size - 1, 'bytes=5-%d' % 10 ** 30)):
		part = get(Range=asked, If_Range=etag)
		assert part.status_code == 206 and part.content == whole.content[first:last + 1], asked
		assert part.headers['Content-Range'] == 'bytes %d-%d/%d' % (first, last, size) and part.headers['ETag'] == etag
	for headers in ({'Range': 'bytes=5-', 'If_Range': '"another"'}, {'Range': 'bytes=5-', 'If_Range': 'W/' + etag}, {'Range': 'bytes=1-2,4-5'}, {'Range': 'lines=1-2'},
			{'Range': 'bytes=9-8'}):
		r = get(**headers)
		assert r.status_code == 200 and r.content == whole.content and 'Content-Range' not in r.headers, headers
	for outside in (size, 10 ** 30):
		r = get(Range='bytes=%d-' % outside)
		refused(r, 416, 'RANGE_NOT_SATISFIABLE')
		assert r.headers['Content-Range'] == 'bytes */%d' % size
	refused(server.anonymous.get(url[:-1] + ('0' if url[-1] != '0' else '1'), headers={'Range': 'bytes=5-'}), 404)
	again, = restore(server, group, name, deliveryType='download', snapshotId=doc['id'])['deliveryUrl']
	part = server.anonymous.get(again, headers={'Range': 'bytes=600-', 'If-Range': etag})
	assert part.status_code == 206 and part.content == whole.content[600:], 'a new link is of the same tar'


def test_a_link_ends_with_its_caller(server):
	project = unique('d')
	org = server.seed({'name': unique('o'), 'projects': [project], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'apiKey', 'projectRoles': [{'project': project, 'roles': ['GROUP_BACKUP_MANAGER']}]},
		{'type': 'apiKey', 'projectRoles': [{'project': project, 'roles': ['GROUP_READ_ONLY']}]}]})[0]
	group, owner, key = org['projects'][0]['id'], server.api_for(org['principals'][0]), org['principals'][1]
	server.control('engine', {})
	name = create(owner, group)
	doc = take(owner, group, name)
	url, = restore(server.api_for(key), group, name, deliveryType='download', snapshotId=doc['id'])['deliveryUrl']
	assert server.anonymous.get(url).status_code == 200
	seen, = ok(server.api_for(org['principals'][2]).get(cluster(group, name, '/restoreJobs')))['results']
	assert seen['delivery']['statusName'] == 'READY' and url not in str(seen), 'who may look has no right to the data'
	assert owner.delete('/orgs/%s/apiKeys/%s' % (org['id'], key['id'])).status_code == 204
	refused(server.anonymous.get(url), 403, 'DOWNLOAD_NOT_PERMITTED')


# What goes wrong around it

def kinds(server, like):
	return {k: n for k, n in server.rows("SELECT kind, count(*) FROM doc WHERE kind LIKE '%s' GROUP BY kind" % like)}


def test_a_source_that_goes_lets_its_target_go_on(server, group):
	name, target = create(server, group), create(server, group)
	doc = take(server, group, name)
	server.control('engine', {'seconds': 600})
	restore(server, group, name, deliveryType='automated', snapshotId=doc['id'], targetClusterName=target)
	assert ok(server.get(cluster(group, target)))['stateName'] == 'UPDATING'
	remove(server, group, name, step=60)
	idle(server, group, target, step=60)


def test_a_paused_cluster_is_not_taken_again_and_again(server, group):
	name = create(server, group)
	ok(server.patch(cluster(group, name), json={'paused': True}))
	idle(server, group, name)
	server.advance(DAY)
	assert take(server, group, name)['status'] == 'completed', 'but it can be, when somebody wants it'
	assert len(ids(server, path(group, name))) == 1


def test_nothing_stays_of_a_project(start_server):
	server = start_server()
	group = server.project()['id']
	name = create(server, group, pitEnabled=True)
	doc = take(server, group, name)
	restore(server, group, name, deliveryType='download', snapshotId=doc['id'])
	remove(server, group, name, '?retainBackups=true')
	assert server.delete('/groups/' + group).status_code in (202, 204)
	assert set(kinds(server, 'backup%')) == {'backup_residue'}, 'which the sweep reads'
	server.advance(8 * DAY)
	until(lambda: not kinds(server, 'backup%'), what='the last sweep')


def test_restart(start_server):
	"""What is under way goes on, what is due is taken, and what was taken can be restored."""
	server = start_server()
	group = server.group
	name = create(server, group, pitEnabled=True)
	first = take(server, group, name)
	server.control('engine', {'seconds': 3000})
	slow = take(server, group, name, wait=False)
	pass_time(server, lambda: ok(server.get(path(group, name, '/snapshots/' + slow['id'])))['status'] == 'inProgress', step=1)
	server.stop()
	again = start_server(data_dir=server.data_dir)
	assert settled(again, group, name, slow['id'], step=60)['status'] == 'completed'
	job = restore(again, group, name, deliveryType='automated', snapshotId=first['id'], targetClusterName=name)
	assert restored(again, group, name, job['id'])['failed'] is False
	idle(again, group, name)
	count = len(ids(again, path(group, name)))
	again.advance(6 * 3600)
	pass_time(again, lambda: len(ids(again, path(group, name))) > count)


def test_the_client_waits(start_server):
	server = start_server()
	server.control('engine', {'seconds': 0})
	name = create(server, server.group)
	env = {'STEWARD_URL': server.base_url}
	where = ('--data', server.data_dir, '--project', server.group, '-o', 'json')
	shot = json.loads(cli('backups', 'snapshots', 'take', name, '--description', 'by hand', '--wait', *where, env=env).stdout)
	assert shot['status'] == 'completed' and shot['description'] == 'by hand'
	done = json.loads(cli('backups', 'restores', 'create', name, '--delivery-type', 'automated', '--snapshot-id', shot['id'],
		'--target-cluster-name', name, '--target-group-id', server.group, '--yes', '--wait', *where, env=env).stdout)
	assert done['finishedAt'] and done['failed'] is False
	idle(server, server.group, name)
	server.control('engine', {'fail': 'restore'})
	failed = []

	def wait():
		failed.append(cli('backups', 'restores', 'create', name, '--delivery-type', 'automated', '--snapshot-id', shot['id'],
			'--target-cluster-name', name, '--target-group-id', server.group, '--yes', '--wait', *where, env=env, check=False))
	thread = threading.Thread(target=wait)
	thread.start()
	jobs = path(server.group, name, '/restoreJobs')
	pass_time(server, lambda: failed or any(j['failed'] for j in ok(server.get(jobs))['results']), step=60)
	thread.join()
	assert failed[0].returncode != 0 and 'asked for this failure' in failed[0].stderr


def test_nobody_goes_below_the_compliance_policy(start_server):
	"""The floors, whatever put the policy there."""
	server = start_server()
	group = server.group
	name = create(server, group)
	doc = take(server, group, name, retentionInDays=1)
	server.stop()
	policy = {'onDemandPolicyItem': {'frequencyInterval': 0, 'frequencyType': 'ondemand', 'retentionUnit': 'days', 'retentionValue': 5},
		  'scheduledPolicyItems': [{'frequencyInterval': 1, 'frequencyType': 'daily', 'retentionUnit': 'days', 'retentionValue': 9}]}
	execute(server.data_dir, "INSERT INTO doc (kind, id, parent, seq, rev, created_ms, body) VALUES "
		"('backup_compliance', '%s', '%s', 0, 1, 0, '%s')" % (group, group, json.dumps(policy)))
	server = start_server(data_dir=server.data_dir)
	one = path(group, name, '/snapshots/' + doc['id'])
	refused(server.post(path(group, name), json={'retentionInDays': 4}), 400, 'RETENTION_BELOW_COMPLIANCE_POLICY', 'retentionInDays')
	refused(server.patch(one, json={'retentionUnit': 'DAYS', 'retentionValue': 4}), 400, 'RETENTION_BELOW_COMPLIANCE_POLICY', 'retentionValue')
	refused(server.delete(one), 409, 'SNAPSHOT_PROTECTED_BY_COMPLIANCE_POLICY', doc['id'])
	refused(server.delete(path(group, name, '/schedule')), 400, None, 'policies')
	refused(server.patch(path(group, name, '/schedule'), json={'policies': [{'policyItems': [
		{'frequencyType': 'daily', 'frequencyInterval': 1, 'retentionUnit': 'days', 'retentionValue': 8}]}]}), 400, None,
		'policies[0].policyItems[0].retentionValue')
	assert take(server, group, name)['status'] == 'completed'
	server.advance(2 * DAY)
	pass_time(server, lambda: True)
	assert ok(server.get(one))['id'] == doc['id'], 'its own time is over, the policy keeps it'
	server.advance(3 * DAY + 3700)
	until(lambda: server.get(one).status_code == 404, what='the end of the floor')
