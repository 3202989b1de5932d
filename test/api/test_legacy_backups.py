"""The older views of backups on the simulated engine: checkpoints, the schedule, snapshots and restore jobs."""
import datetime, io, tarfile

import pytest

from client import links, ok, pass_time, refused, unique, until
from test_backups import DAY, NEVER, cluster, create, group, idle, path, remove, restore, seconds, take, types  # noqa: F401 (group is a fixture)

SCHEDULE = '/snapshotSchedule'
BASE = 1199145600
WHOLE = {'clusterCheckpointIntervalMin': 15, 'pointInTimeWindowHours': 0, 'snapshotIntervalHours': 6, 'snapshotRetentionDays': 5,
	'dailySnapshotRetentionDays': 7, 'weeklySnapshotRetentionWeeks': 4, 'monthlySnapshotRetentionMonths': 12}


def moment(text):
	return int(datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp())


def listed(server, group, name, below, query=''):
	return ok(server.get(cluster(group, name, below) + query))['results']


def window(server, group, name):
	"""Until there is a window to restore from, and an hour of it."""
	pass_time(server, lambda: [s for s in listed(server, group, name, '/backup/snapshots') if s['status'] == 'completed'])
	server.advance(3600)


def job(server, group, name, method='AUTOMATED_RESTORE', target=None, more=None, **body):
	delivery = {'methodName': method, **({'targetClusterName': target} if target else {}), **(more or {})}
	return server.post(cluster(group, name, '/restoreJobs'), json={'delivery': delivery, **body})


def finished(server, group, name, id):
	def over():
		doc = ok(server.get(cluster(group, name, '/restoreJobs/' + id)))
		return doc['statusName'] != 'IN_PROGRESS' and doc
	return pass_time(server, over)


def change(server, group, name, **fields):
	"""A PATCH of the schedule has all of it."""
	shown = server.get(cluster(group, name, SCHEDULE)).json()
	body = {k: v for k, v in shown.items() if k not in ('links', 'groupId')}
	return server.patch(cluster(group, name, SCHEDULE), json={**body, **fields})


# Checkpoints

def test_checkpoints(server, group):
	name = create(server, group, pitEnabled=True)
	window(server, group, name)
	found = listed(server, group, name, '/backupCheckpoints')
	assert 4 <= len(found) <= 6, 'one for each quarter of an hour'
	times = [c['timestamp'] for c in found]
	assert times == sorted(times, reverse=True) and len({moment(t) // 900 for t in times}) == len(times)
	one = ok(server.get(cluster(group, name, '/backupCheckpoints/' + found[1]['id'])))
	assert one['clusterId'] == ok(server.get(cluster(group, name)))['id'] and one['groupId'] == group and one['restorable'] is True
	part, = one['parts']
	assert part['typeName'] == 'REPLICA_SET' and part['replicaSetName'].endswith('-shard-0') and part['tokenDiscovered'] is True
	assert part['tokenTimestamp']['date'] == one['timestamp'] and part['tokenTimestamp']['increment'] > BASE
	assert links(one)['self'].endswith('/backupCheckpoints/' + one['id'])
	page = ok(server.get(cluster(group, name, '/backupCheckpoints?itemsPerPage=2&pageNum=2')))
	assert [c['id'] for c in page['results']] == [c['id'] for c in found[2:4]] and page['totalCount'] == len(found)
	ok(change(server, group, name, clusterCheckpointIntervalMin=60))
	assert len(listed(server, group, name, '/backupCheckpoints')) <= 2
	for bad in (NEVER, '0' * 24, one['id'][:8] + 'f' * 16):
		refused(server.get(cluster(group, name, '/backupCheckpoints/' + bad)), 404)
	refused(server.get(cluster(group, 'nothing', '/backupCheckpoints')), 404)


def test_checkpoints_without_a_window(server, group):
	name = create(server, group)
	take(server, group, name)
	server.advance(3600)
	assert listed(server, group, name, '/backupCheckpoints') == [], 'pitEnabled keeps them'


def test_checkpoints_of_shards(server, group):
	name = create(server, group, shards=2, pitEnabled=True)
	window(server, group, name)
	one = listed(server, group, name, '/backupCheckpoints')[0]
	assert [p['replicaSetName'][-8:] for p in one['parts']] == ['-shard-0', '-shard-1']
	done = ok(job(server, group, name, target=name, checkpointId=one['id']))['results'][0]
	assert done['timestamp']['date'] == one['timestamp'] and done['batchId'] == done['id']
	assert finished(server, group, name, done['id'])['statusName'] == 'FINISHED'


# The schedule

def test_schedule(server, group):
	name = create(server, group)
	where = cluster(group, name, SCHEDULE)
	doc = ok(server.get(where))
	bare = {k: v for k, v in doc.items() if k not in ('links', 'clusterId', 'groupId')}
	assert bare == WHOLE
	assert doc['groupId'] == group and doc['clusterId'] == ok(server.get(cluster(group, name)))['id']
	changed = ok(change(server, group, name, snapshotIntervalHours=12, snapshotRetentionDays=2, weeklySnapshotRetentionWeeks=0,
		monthlySnapshotRetentionMonths=36, clusterCheckpointIntervalMin=30))
	assert changed['snapshotIntervalHours'] == 12 and changed['snapshotRetentionDays'] == 2 and changed['weeklySnapshotRetentionWeeks'] == 0
	assert changed['monthlySnapshotRetentionMonths'] == 36 and changed['clusterCheckpointIntervalMin'] == 30
	assert ok(server.get(where)) == changed
	items = ok(server.get(path(group, name, '/schedule')))['policies'][0]['policyItems']
	assert {(i['frequencyType'], i['frequencyInterval'], i['retentionValue'], i['retentionUnit']) for i in items} == {
		('hourly', 12, 2, 'days'), ('daily', 1, 7, 'days'), ('monthly', 40, 36, 'months')}
	again = ok(change(server, group, name, weeklySnapshotRetentionWeeks=2))
	assert again['weeklySnapshotRetentionWeeks'] == 2
	days = ok(change(server, group, name, snapshotIntervalHours=24))
	assert days['snapshotIntervalHours'] == 24 and days['dailySnapshotRetentionDays'] == 7
	items = ok(server.get(path(group, name, '/schedule')))['policies'][0]['policyItems']
	assert {i['frequencyType'] for i in items} == {'daily', 'weekly', 'monthly'}
	assert 'CPS_SNAPSHOT_SCHEDULE_UPDATED_AUDIT' in types(server, group)


def test_schedule_takes_snapshots(server, group):
	name = create(server, group)
	ok(change(server, group, name, snapshotIntervalHours=12, snapshotRetentionDays=2))
	server.advance(DAY)
	found = pass_time(server, lambda: listed(server, group, name, '/snapshots'))
	assert all(s['complete'] for s in found)


def test_schedule_shows_what_it_can(server, group):
	name = create(server, group)
	ok(server.patch(path(group, name, '/schedule'), json={'policies': [{'policyItems': [
		{'frequencyType': 'hourly', 'frequencyInterval': 1, 'retentionUnit': 'days', 'retentionValue': 4},
		{'frequencyType': 'daily', 'frequencyInterval': 1, 'retentionUnit': 'days', 'retentionValue': 29},
		{'frequencyType': 'yearly', 'frequencyInterval': 1, 'retentionUnit': 'years', 'retentionValue': 5}]}]}))
	doc = ok(server.get(cluster(group, name, SCHEDULE)))
	assert (doc['snapshotIntervalHours'], doc['snapshotRetentionDays'], doc['dailySnapshotRetentionDays']) == (6, 4, 15)
	assert doc['weeklySnapshotRetentionWeeks'] == doc['monthlySnapshotRetentionMonths'] == 0
	ok(change(server, group, name, dailySnapshotRetentionDays=30))
	items = ok(server.get(path(group, name, '/schedule')))['policies'][0]['policyItems']
	assert [(i['frequencyType'], i['frequencyInterval'], i['retentionValue']) for i in items] == [
		('hourly', 1, 4), ('daily', 1, 30), ('yearly', 1, 5)], 'what the older form cannot say stays'


def test_schedule_window(server, group):
	name = create(server, group, pitEnabled=True)
	where = cluster(group, name, SCHEDULE)
	assert ok(server.get(where))['pointInTimeWindowHours'] == 7 * 24
	assert ok(change(server, group, name, pointInTimeWindowHours=49))['pointInTimeWindowHours'] == 72, 'whole days'
	assert ok(server.get(path(group, name, '/schedule')))['restoreWindowDays'] == 3
	for bad in (0, -1, 8761):
		refused(change(server, group, name, pointInTimeWindowHours=bad), 400, None, 'pointInTimeWindowHours')


@pytest.mark.parametrize('wanted, field', [
	({'snapshotIntervalHours': 7}, 'snapshotIntervalHours'), ({'snapshotRetentionDays': 6}, 'snapshotRetentionDays'),
	({'clusterCheckpointIntervalMin': 10}, 'clusterCheckpointIntervalMin'), ({'clusterId': NEVER}, 'clusterId'),
	({'pointInTimeWindowHours': 24}, 'pointInTimeWindowHours'), ({'dailySnapshotRetentionDays': 8}, 'dailySnapshotRetentionDays'),
	({'dailySnapshotRetentionDays': 3}, 'dailySnapshotRetentionDays'), ({'weeklySnapshotRetentionWeeks': 9}, 'weeklySnapshotRetentionWeeks'),
	({'dailySnapshotRetentionDays': 360}, 'weeklySnapshotRetentionWeeks')])
def test_schedule_rules(server, group, wanted, field):
	name = create(server, group)
	before = ok(server.get(path(group, name, '/schedule')))
	refused(change(server, group, name, **wanted), 400, None, field)
	assert ok(server.get(path(group, name, '/schedule')))['policies'] == before['policies']


def test_schedule_is_there_only_with_backups(server, group):
	name = create(server, group, backupEnabled=False)
	refused(server.get(cluster(group, name, SCHEDULE)), 404, 'CLUSTER_BACKUP_NOT_ENABLED', name)
	refused(server.patch(cluster(group, name, SCHEDULE), json={**WHOLE, 'clusterId': NEVER}), 404, 'CLUSTER_BACKUP_NOT_ENABLED', name)
	refused(server.get(cluster(group, 'nothing', SCHEDULE)), 404)


# Snapshots

def test_snapshots(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	one = ok(server.get(cluster(group, name, '/snapshots/' + doc['id'])))
	assert one['complete'] is True and one['expires'] == doc['expiresAt'] and one['created']['date'] == doc['createdAt']
	assert one['clusterName'] == name and one['groupId'] == group and one['doNotDelete'] is False
	part, = one['parts']
	assert part['typeName'] == 'REPLICA_SET' and part['replicaSetName'] == doc['replicaSetName'] and part['dbVersion'] == doc['dbVersion']
	assert part['dataSizeBytes'] == doc['storageSizeBytes'] >= part['storageSizeBytes'] > 0 and part['encryptionEnabled'] is True
	assert part['replicaState'] == 'SECONDARY' and doc['createdAt'] <= part['completedTime']
	assert [s['id'] for s in listed(server, group, name, '/snapshots')] == [doc['id']]
	server.control('engine', {'fail': 'snapshot'})
	bad = ok(server.post(path(group, name), json={}))['id']
	pass_time(server, lambda: ok(server.get(path(group, name, '/snapshots/' + bad)))['status'] == 'failed', step=60)
	server.control('engine', {})
	assert [s['id'] for s in listed(server, group, name, '/snapshots', '?completed=true')] == [doc['id']]
	failed, = listed(server, group, name, '/snapshots', '?completed=false')
	assert failed['id'] == bad and failed['parts'] == [] and 'lastOplogAppliedTimestamp' not in failed
	assert {s['id'] for s in listed(server, group, name, '/snapshots', '?completed=all')} == {doc['id'], bad}
	refused(server.get(cluster(group, name, '/snapshots?completed=maybe')), 400, None, 'completed')
	refused(server.get(cluster(group, name, '/snapshots/' + NEVER)), 404)
	refused(server.get(cluster(group, 'nothing', '/snapshots')), 404)


def test_sharded_snapshots(server, group):
	name = create(server, group, shards=2)
	doc = take(server, group, name)
	one = ok(server.get(cluster(group, name, '/snapshots/' + doc['id'])))
	assert [p['replicaSetName'][-8:] for p in one['parts']] == ['-shard-0', '-shard-1']
	assert sum(p['dataSizeBytes'] for p in one['parts']) == doc['storageSizeBytes'] and all(
		p['dataSizeBytes'] == p['fileSizeBytes'] >= p['storageSizeBytes'] > 0 for p in one['parts'])


def test_position_of_a_snapshot(server, group):
	"""The pair that a snapshot names is restored as a position: neither before nor after it."""
	name = create(server, group, pitEnabled=True)
	window(server, group, name)
	at = listed(server, group, name, '/snapshots')[0]['lastOplogAppliedTimestamp']
	assert at['increment'] > BASE
	done, = ok(job(server, group, name, target=name, oplogTs=at['date'], oplogInc=at['increment']))['results']
	assert done['timestamp'] == at
	assert finished(server, group, name, done['id'])['statusName'] == 'FINISHED'
	idle(server, group, name)
	modern = ok(server.get(path(group, name, '/restoreJobs/' + done['id'])))
	assert modern['oplogTs'] == moment(at['date']) and modern['oplogInc'] == at['increment'] and modern['deliveryType'] == 'pointInTime'


def test_expiry_and_protection(server, group):
	name = create(server, group)
	ok(server.delete(path(group, name, '/schedule')))
	doc = take(server, group, name, retentionInDays=1)
	where = cluster(group, name, '/snapshots/' + doc['id'])
	later = datetime.datetime.utcfromtimestamp(seconds(server) + 3 * DAY).strftime('%Y-%m-%dT%H:%M:%SZ')
	assert ok(server.patch(where, json={'expires': later}))['expires'] == later
	assert ok(server.get(path(group, name, '/snapshots/' + doc['id'])))['expiresAt'] == later
	for bad in (doc['createdAt'], '2999-01-01T00:00:00Z'):
		refused(server.patch(where, json={'expires': bad}), 400, None, 'expires')
	refused(server.patch(where, json={'expires': later, 'doNotDelete': True}), 400, None, 'expires')
	kept = ok(server.patch(where, json={'doNotDelete': True}))
	assert kept['doNotDelete'] is True and 'expires' not in kept
	refused(server.patch(where, json={'expires': later}), 400, None, 'expires')
	for call in (lambda: server.delete(where), lambda: server.delete(path(group, name, '/snapshots/' + doc['id'])),
			lambda: server.patch(path(group, name, '/snapshots/' + doc['id']), json={'retentionUnit': 'DAYS', 'retentionValue': 1})):
		refused(call(), 409, 'SNAPSHOT_PROTECTED', doc['id'])
	server.advance(30 * DAY)
	second = take(server, group, name)
	assert [s['id'] for s in listed(server, group, name, '/snapshots')] == [doc['id'], second['id']], 'it does not expire'
	free = ok(server.patch(where, json={'doNotDelete': False}))
	assert moment(free['expires']) > seconds(server), 'it is not gone at once'
	server.advance(DAY + 60)
	until(lambda: doc['id'] not in [s['id'] for s in listed(server, group, name, '/snapshots')], what='the expiry')
	assert 'CPS_SNAPSHOT_RETENTION_MODIFIED_AUDIT' in types(server, group)


def test_protection_from_a_schedule(server, group):
	name = create(server, group)
	server.advance(DAY)
	found = pass_time(server, lambda: listed(server, group, name, '/snapshots'))
	keep = cluster(group, name, '/snapshots/' + found[0]['id'])
	ok(server.patch(keep, json={'doNotDelete': True}))
	ok(server.patch(path(group, name, '/schedule'), json={'policies': [{'policyItems': []}], 'deleteSnapshots': True}))
	assert [s['id'] for s in listed(server, group, name, '/snapshots')] == [found[0]['id']]


def test_deletion(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	where = cluster(group, name, '/snapshots/' + doc['id'])
	refused(server.delete(where, headers={'If-Match': '"99"'}), 412)
	assert server.delete(where).status_code == 204
	refused(server.delete(where), 404)
	refused(server.get(path(group, name, '/snapshots/' + doc['id'])), 404)
	assert 'CPS_SNAPSHOT_DELETED_AUDIT' in types(server, group)


def test_of_a_cluster_that_is_gone(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	remove(server, group, name, '?retainBackups=true')
	assert [s['id'] for s in listed(server, group, name, '/snapshots')] == [doc['id']]
	target = create(server, group)
	done, = ok(job(server, group, name, target=target, snapshotId=doc['id']))['results']
	assert finished(server, group, name, done['id'])['statusName'] == 'FINISHED'


# Restore jobs

def test_restore_by_snapshot(server, group):
	name, other = create(server, group), create(server, group)
	doc = take(server, group, name)
	id = ok(server.get(cluster(group, other)))['id']
	server.control('engine', {'seconds': 30})
	r = job(server, group, name, target=other, snapshotId=doc['id'])
	one, = ok(r)['results']
	assert one['statusName'] == 'IN_PROGRESS' and one['snapshotId'] == doc['id'] and one['hashes'] == [] and 'batchId' not in one
	to = one['delivery']
	assert to['methodName'] == 'AUTOMATED_RESTORE' and to['statusName'] in ('NOT_STARTED', 'IN_PROGRESS')
	assert (to['targetClusterId'], to['targetClusterName'], to['targetGroupId']) == (id, other, group)
	refused(job(server, group, name, target=other, snapshotId=doc['id']), 409, 'CLUSTER_RESTORE_IN_PROGRESS', other)
	done = finished(server, group, name, one['id'])
	assert done['statusName'] == 'FINISHED' and done['delivery']['statusName'] == 'READY'
	idle(server, group, other)
	server.control('engine', {})
	second, = ok(job(server, group, name, more={'targetClusterId': id, 'targetGroupId': group}, snapshotId=doc['id']))['results']
	assert second['delivery']['targetClusterName'] == other
	finished(server, group, name, second['id'])
	assert [j['id'] for j in listed(server, group, name, '/restoreJobs')] == [one['id'], second['id']]
	assert listed(server, group, name, '/restoreJobs', '?batchId=' + one['id']) == []
	idle(server, group, other)
	third = restore(server, group, name, deliveryType='automated', snapshotId=doc['id'], targetClusterName=other, targetGroupId=group)
	assert server.delete(path(group, name, '/restoreJobs/' + third['id'])).status_code in (204, 409)
	assert finished(server, group, name, third['id'])['statusName'] in ('KILLED', 'FINISHED')


def test_a_restore_that_fails(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	server.control('engine', {'fail': 'restore'})
	one, = ok(job(server, group, name, target=name, snapshotId=doc['id']))['results']
	done = pass_time(server, lambda: (lambda d: d['statusName'] != 'IN_PROGRESS' and d)(
		ok(server.get(cluster(group, name, '/restoreJobs/' + one['id'])))), step=60)
	server.control('engine', {})
	assert done['statusName'] == 'BROKEN' and done['delivery']['statusName'] == 'FAILED'


def test_restore_by_time(server, group):
	name = create(server, group, pitEnabled=True)
	window(server, group, name)
	now = seconds(server)
	one, = ok(job(server, group, name, target=name, pointInTimeUTCMillis=(now - 60) * 1000 + 250))['results']
	assert moment(one['timestamp']['date']) == now - 60 and 'snapshotId' not in one
	assert finished(server, group, name, one['id'])['statusName'] == 'FINISHED'
	assert ok(server.get(path(group, name, '/restoreJobs/' + one['id'])))['pointInTimeUTCSeconds'] == now - 60
	idle(server, group, name)
	refused(job(server, group, name, target=name, pointInTimeUTCMillis=2 ** 63 - 1), 400, 'POINT_IN_TIME_NOT_RESTORABLE', 'pointInTimeUTCMillis')
	early = refused(job(server, group, name, target=name, pointInTimeUTCMillis=(now - DAY) * 1000), 400, 'POINT_IN_TIME_NOT_RESTORABLE',
		'pointInTimeUTCMillis')
	assert 'nearest' in early['detail']
	refused(job(server, group, name, target=name, oplogTs='2999-01-01T00:00:00Z', oplogInc=1), 400, None, 'oplogTs')


def test_restore_by_checkpoint(server, group):
	name = create(server, group, pitEnabled=True)
	window(server, group, name)
	point = listed(server, group, name, '/backupCheckpoints')[1]
	one, = ok(job(server, group, name, target=name, checkpointId=point['id']))['results']
	assert one['timestamp']['date'] == point['timestamp'] and 'checkpointId' not in one
	assert finished(server, group, name, one['id'])['statusName'] == 'FINISHED'
	idle(server, group, name)
	refused(job(server, group, name, target=name, checkpointId=NEVER), 404, 'CHECKPOINT_NOT_FOUND', NEVER)
	assert ok(server.get(cluster(group, name, '/backupCheckpoints/' + point['id'])))['restorable'], 'what was before is still there'


def test_download(server, group):
	name = create(server, group)
	doc = take(server, group, name)
	one, = ok(job(server, group, name, 'HTTP', more={'expirationHours': 2, 'maxDownloads': 2}, snapshotId=doc['id']))['results']
	to = one['delivery']
	assert one['statusName'] == 'FINISHED' and to['statusName'] == 'READY' and to['url'] == to['urlV2']
	assert to['expirationHours'] == to['maxDownloads'] == 2 and moment(to['expires']) - moment(one['created']) == 7200
	assert server.anonymous.head(to['url']).status_code == 200
	for _ in range(2):
		r = server.anonymous.get(to['url'])
		assert r.status_code == 200
		with tarfile.open(fileobj=io.BytesIO(r.content)) as tar:
			assert doc['id'] in tar.extractfile('backup_label').read().decode()
	refused(server.anonymous.get(to['url']), 404, 'MAX_DOWNLOADS_EXCEEDED')
	spent = ok(server.get(cluster(group, name, '/restoreJobs/' + one['id'])))['delivery']
	assert spent['statusName'] == 'MAX_DOWNLOADS_EXCEEDED' and 'url' not in spent
	two, = ok(job(server, group, name, 'HTTP', more={'expirationHours': 2}, snapshotId=doc['id']))['results']
	assert 'maxDownloads' not in two['delivery']
	server.advance(7201)
	refused(server.anonymous.get(two['delivery']['url']), 404, 'DOWNLOAD_EXPIRED')
	assert ok(server.get(cluster(group, name, '/restoreJobs/' + two['id'])))['delivery']['statusName'] == 'EXPIRED'
	three = restore(server, group, name, deliveryType='download', snapshotId=doc['id'])
	assert ok(server.get(cluster(group, name, '/restoreJobs/' + three['id'])))['delivery']['url'] == three['deliveryUrl'][0]
	assert server.delete(path(group, name, '/restoreJobs/' + three['id'])).status_code == 204
	gone = ok(server.get(cluster(group, name, '/restoreJobs/' + three['id'])))
	assert gone['statusName'] == 'KILLED' and gone['delivery']['statusName'] == 'INTERRUPTED'


def test_download_of_shards_is_a_batch(server, group):
	name = create(server, group, shards=2)
	doc = take(server, group, name)
	jobs = ok(job(server, group, name, 'HTTP', snapshotId=doc['id']))['results']
	assert len(jobs) == 2 and {j['batchId'] for j in jobs} == {jobs[0]['id']}
	sets = set()
	for j in jobs:
		r = server.anonymous.get(j['delivery']['url'])
		with tarfile.open(fileobj=io.BytesIO(r.content)) as tar:
			sets.add(tar.extractfile('backup_label').read().decode().split('SET: ')[1].strip())
	assert sets == {'0', '1'}
	other, = ok(job(server, group, name, target=name, snapshotId=doc['id']))['results']
	assert [j['id'] for j in listed(server, group, name, '/restoreJobs', '?batchId=' + jobs[0]['id'])] == [j['id'] for j in jobs]
	finished(server, group, name, other['id'])


@pytest.mark.parametrize('method, delivery, body, field', [
	('SCP', {}, {'snapshotId': NEVER}, 'delivery.methodName'), ('QUERY', {}, {'snapshotId': NEVER}, 'delivery.methodName'),
	('HTTP', {}, {}, 'snapshotId'), ('HTTP', {'targetClusterName': 'x'}, {'snapshotId': NEVER}, 'delivery.targetClusterName'),
	('HTTP', {}, {'checkpointId': NEVER}, 'checkpointId'), ('HTTP', {'expirationHours': 169}, {'snapshotId': NEVER}, 'delivery.expirationHours'),
	('HTTP', {'maxDownloads': 0}, {'snapshotId': NEVER}, 'delivery.maxDownloads'),
	('AUTOMATED_RESTORE', {}, {'snapshotId': NEVER}, 'delivery.targetClusterName'),
	('AUTOMATED_RESTORE', {'targetClusterName': 'x', 'maxDownloads': 1}, {'snapshotId': NEVER}, 'delivery.maxDownloads'),
	('AUTOMATED_RESTORE', {'targetClusterName': 'x'}, {'snapshotId': NEVER, 'checkpointId': NEVER}, 'checkpointId'),
	('AUTOMATED_RESTORE', {'targetClusterName': 'x'}, {'oplogTs': '2026-01-01T00:00:00Z'}, 'oplogInc'),
	('AUTOMATED_RESTORE', {'targetClusterName': 'x'}, {'oplogInc': 1}, 'oplogTs')])
def test_restore_rules(server, group, method, delivery, body, field):
	refused(server.post(cluster(group, 'any', '/restoreJobs'), json={'delivery': {'methodName': method, **delivery}, **body}), 400, None, field)


def test_restore_targets(server, group):
	name, wide = create(server, group), create(server, group, shards=2)
	doc = take(server, group, name)
	refused(job(server, group, name, target='nothing', snapshotId=doc['id']), 404, 'CLUSTER_NOT_FOUND', 'nothing')
	refused(job(server, group, name, target=wide, snapshotId=doc['id']), 400, None, 'delivery.targetClusterName')
	refused(job(server, group, name, target=name, snapshotId=NEVER), 404, 'SNAPSHOT_NOT_FOUND', NEVER)
	refused(job(server, group, name, more={'targetClusterId': NEVER}, snapshotId=doc['id']), 404, 'CLUSTER_NOT_FOUND')
	id = ok(server.get(cluster(group, wide)))['id']
	refused(job(server, group, name, target=name, more={'targetClusterId': id}, snapshotId=doc['id']), 404, 'CLUSTER_NOT_FOUND', id)
	refused(job(server, group, 'nothing', target=name, snapshotId=doc['id']), 404)
	refused(job(server, group, 'nothing', target=name, checkpointId=NEVER), 404)
	refused(server.get(cluster(group, name, '/restoreJobs/' + NEVER)), 404)
	refused(server.get(cluster(group, 'nothing', '/restoreJobs')), 404)


def test_another_tenant_learns_nothing(server, group):
	name = create(server, group, pitEnabled=True)
	window(server, group, name)
	doc, point = listed(server, group, name, '/snapshots')[0], listed(server, group, name, '/backupCheckpoints')[0]
	one, = ok(job(server, group, name, 'HTTP', snapshotId=doc['id']))['results']
	other = server.project()['id']
	there = create(server, other)
	id = ok(server.get(cluster(group, name)))['id']
	for below in ('/snapshots/' + doc['id'], '/restoreJobs/' + one['id'], '/backupCheckpoints/' + point['id']):
		refused(server.get(cluster(other, there, below)), 404)
		refused(server.get(cluster(other, name, below)), 404)
	refused(server.delete(cluster(other, there, '/snapshots/' + doc['id'])), 404)
	refused(server.patch(cluster(other, there, '/snapshots/' + doc['id']), json={'doNotDelete': True}), 404)
	refused(job(server, other, there, target=there, snapshotId=doc['id']), 404, 'SNAPSHOT_NOT_FOUND')
	refused(job(server, other, there, target=there, checkpointId=point['id']), 404, 'CHECKPOINT_NOT_FOUND')
	stranger = server.seed({'name': unique('o'), 'projects': ['p'], 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})[0]
	api, theirs = server.api_for(stranger['principals'][0]), stranger['projects'][0]['id']
	for more in ({'targetGroupId': group, 'targetClusterName': name}, {'targetGroupId': group, 'targetClusterId': id}):
		mine = server.post(cluster(theirs, 'x', '/restoreJobs'), json={'delivery': {'methodName': 'AUTOMATED_RESTORE', **more},
			'snapshotId': doc['id']})
		refused(mine, 401)
	refused(api.get(cluster(group, name, '/snapshots')), 401)
	mine = create(server, other)
	own = take(server, other, mine)
	refused(job(server, other, mine, more={'targetClusterId': ok(api.get('/groups/' + theirs))['id']}, snapshotId=own['id']), 404)
	refused(job(server, other, mine, target='x', more={'targetGroupId': theirs}, snapshotId=own['id']), 404, 'GROUP_NOT_FOUND', theirs)
