"""The backup compliance policy: what it may say, whom it holds (everybody), and how it ends."""
import datetime

import pytest

from client import cli, ok, pass_time, refused, unique
from test_backup_schedule import DAY, item, moment, now, policy, schedule, snapshots
from test_backups import cluster, create, group, idle, ids, path, remove, restore, restored, seconds, spec, take, types  # noqa: F401 (group is a fixture)

OLDER = {'Accept': 'application/vnd.svc.2023-01-01+json'}


def where(group):
	return '/groups/%s/backupCompliancePolicy' % group


def wanted(*items, on_demand=None, **more):
	body = {'authorizedEmail': 'ada@example.com', 'authorizedUserFirstName': 'Ada', 'authorizedUserLastName': 'Byron',
		'scheduledPolicyItems': list(items), **more}
	if on_demand:
		body['onDemandPolicyItem'] = item('ondemand', 0, 'days', on_demand)
	return body


def enable(server, group, *items, query='', **more):
	doc = ok(server.put(where(group) + query, json=wanted(*items, **more)))
	active(server, group)
	return doc


def active(server, group):
	return pass_time(server, lambda: (lambda doc: doc['state'] == 'ACTIVE' and doc)(ok(server.get(where(group)))))


def told(server, group):
	return [t for t in types(server, group) if 'DATA_PROTECTION' in t]


def test_a_policy(server, group):
	refused(server.get(where(group)), 404, 'BACKUP_COMPLIANCE_POLICY_NOT_FOUND')
	refused(server.delete(where(group)), 404)
	body = wanted(item('daily', 1, 'days', 10), item('weekly', 6, 'weeks', 4), on_demand=5, copyProtectionEnabled=True, pitEnabled=True,
		restoreWindowDays=3)
	doc = ok(server.put(where(group), json=body))
	assert doc['state'] == 'ENABLING' and doc['deletable'] is False and doc['projectId'] == group and doc['updatedDate']
	done = active(server, group)
	for field, value in body.items():
		if field not in ('scheduledPolicyItems', 'onDemandPolicyItem'):
			assert done[field] == value, field
	assert [{k: v for k, v in i.items() if k != 'id'} for i in done['scheduledPolicyItems']] == body['scheduledPolicyItems']
	kept = [i['id'] for i in done['scheduledPolicyItems']]
	assert len(set(kept)) == 2 and done['onDemandPolicyItem']['retentionValue'] == 5 and done['encryptionAtRestEnabled'] is False
	body['scheduledPolicyItems'] = [item('daily', 1, 'days', 12), item('weekly', 6, 'weeks', 4), item('monthly', 40, 'months', 2)]
	changed = ok(server.put(where(group), json=body))
	assert changed['state'] == 'UPDATING' and [i['id'] for i in changed['scheduledPolicyItems']][:2] == kept
	active(server, group)
	assert told(server, group) == ['CPS_DATA_PROTECTION_UPDATED', 'CPS_DATA_PROTECTION_UPDATE_REQUESTED', 'CPS_DATA_PROTECTION_ENABLED',
		'CPS_DATA_PROTECTION_ENABLE_REQUESTED']


def test_the_older_version(older_server):
	group = older_server.project()['id']
	doc = ok(older_server.put(where(group), json={'authorizedEmail': 'ada@example.com'}, headers=OLDER))
	assert doc['authorizedEmail'] == 'ada@example.com'
	assert ok(older_server.get(where(group), headers=OLDER))['projectId'] == group
	refused(older_server.put(where(group), json={'authorizedEmail': 'ada@example.com'}), 400, None, 'authorizedUserFirstName')


@pytest.mark.parametrize('body, field', [
	({'authorizedEmail': 'nobody'}, 'authorizedEmail'),
	({'projectId': '5f00000000000000000000ff'}, 'projectId'),
	({'scheduledPolicyItems': [item('daily', 2)]}, 'scheduledPolicyItems[0].frequencyInterval'),
	({'scheduledPolicyItems': [item('daily', value=0)]}, 'scheduledPolicyItems[0].retentionValue'),
	({'scheduledPolicyItems': [item('daily'), item('daily')]}, 'scheduledPolicyItems[1].frequencyType'),
	({'scheduledPolicyItems': [item('daily', value=30), item('weekly', 1, value=20)]}, 'scheduledPolicyItems[1].retentionValue'),
	({'onDemandPolicyItem': item('ondemand', 0, 'days', -1)}, 'onDemandPolicyItem.retentionValue'),
	({'pitEnabled': True, 'restoreWindowDays': 9999}, 'restoreWindowDays'),
	({'restoreWindowDays': 3}, 'restoreWindowDays'),
	({'state': 'ACTIVE'}, 'state'), ({'deletable': True}, 'deletable')])
def test_rules(server, group, body, field):
	r = server.put(where(group), json={**wanted(), **body})
	if field in ('state', 'deletable') and r.status_code == 200:  # what is read-only may come back as it was read, and counts for nothing
		assert r.json()['state'] == 'ENABLING' and r.json()['deletable'] is False
		return
	refused(r, 400, None, field)
	refused(server.get(where(group)), 404)


@pytest.mark.parametrize('change, field', [
	({'scheduledPolicyItems': []}, 'scheduledPolicyItems'),
	({'scheduledPolicyItems': [item('hourly', 6, 'days', 7), item('daily', 1, 'days', 9)]}, 'scheduledPolicyItems'),
	({'scheduledPolicyItems': [item('hourly', 12, 'days', 7), item('daily', 1, 'days', 10)]}, 'scheduledPolicyItems'),
	({'onDemandPolicyItem': item('ondemand', 0, 'days', 4)}, 'onDemandPolicyItem'),
	({'onDemandPolicyItem': None}, 'onDemandPolicyItem'),
	({'copyProtectionEnabled': False}, 'copyProtectionEnabled'), ({'pitEnabled': False, 'restoreWindowDays': 0}, 'pitEnabled'),
	({'restoreWindowDays': 2}, 'restoreWindowDays'), ({'authorizedEmail': 'eve@example.com'}, 'authorizedEmail')])
def test_it_is_never_made_weaker(server, group, change, field):
	body = wanted(item('hourly', 6, 'days', 7), item('daily', 1, 'days', 10), on_demand=5, copyProtectionEnabled=True, pitEnabled=True,
		restoreWindowDays=3)
	ok(server.put(where(group), json=body))
	before = active(server, group)
	new = {k: v for k, v in {**body, **change}.items() if v is not None}
	refused(server.put(where(group), json=new), 400, None, field)
	assert ok(server.get(where(group))) == before


def test_snapshots_are_held(server, group):
	"""Those that were there before it too; until their time is over, then they go by themselves."""
	name = create(server, group)
	old = take(server, group, name, retentionInDays=1)
	enable(server, group, on_demand=5)
	one = path(group, name, '/snapshots/' + old['id'])
	assert moment(ok(server.get(one))['expiresAt']) - moment(old['createdAt']) == datetime.timedelta(days=5)
	refused(server.delete(one), 409, 'SNAPSHOT_PROTECTED_BY_COMPLIANCE_POLICY', old['id'])
	refused(server.patch(one, json={'retentionUnit': 'DAYS', 'retentionValue': 4}), 400, None, 'retentionValue')
	refused(server.post(path(group, name), json={'retentionInDays': 4}), 400, None, 'retentionInDays')
	new = take(server, group, name)
	ok(server.patch(path(group, name, '/snapshots/' + new['id']), json={'retentionUnit': 'DAYS', 'retentionValue': 30}))
	for _ in range(4):
		server.advance(DAY)
	assert old['id'] in {s['id'] for s in snapshots(server, group, name)}
	server.advance(DAY + 3600)
	pass_time(server, lambda: old['id'] not in {s['id'] for s in snapshots(server, group, name)}, step=600)
	assert new['id'] in {s['id'] for s in snapshots(server, group, name)}
	assert server.delete(path(group, name, '/snapshots/' + new['id'])).status_code == 204, 'its five days are over'


def test_rarer_items_do_not_hide_snapshots_from_it(server, group):
	"""One that falls together with a weekly item counts as weekly, and is the daily one all the same."""
	name = create(server, group)
	enable(server, group, item('daily', 1, 'days', 10))
	ok(server.patch(schedule(group, name), json=policy(item('daily', 1, 'days', 10), *[item('weekly', d, 'days', 10) for d in range(1, 8)])))
	server.advance(DAY)
	one, = pass_time(server, lambda: [s for s in snapshots(server, group, name) if s['status'] == 'completed'])
	assert one['frequencyType'] == 'weekly'
	where = path(group, name, '/snapshots/' + one['id'])
	refused(server.delete(where), 409, 'SNAPSHOT_PROTECTED_BY_COMPLIANCE_POLICY', one['id'])
	refused(server.patch(where, json={'retentionUnit': 'DAYS', 'retentionValue': 1}), 400, None, 'retentionValue')


def test_a_schedule_without_a_policy_is_raised(server, group):
	name = create(server, group)
	doc = ok(server.patch(schedule(group, name), json={'policies': []}))
	assert doc['policies'][0]['policyItems'] == []
	enable(server, group, item('daily', 1, 'days', 10))
	assert [i['frequencyType'] for i in ok(server.get(schedule(group, name)))['policies'][0]['policyItems']] == ['daily']


def test_the_window_is_held(server, group):
	"""What its restores begin with stays, though no item asks for it."""
	name = create(server, group, pitEnabled=True)
	base, = pass_time(server, lambda: [s for s in snapshots(server, group, name) if s['status'] == 'completed'])
	enable(server, group, pitEnabled=True, restoreWindowDays=3)
	idle(server, group, name)
	more = take(server, group, name)
	where = path(group, name, '/snapshots/' + base['id'])
	refused(server.delete(where), 409, 'SNAPSHOT_PROTECTED_BY_COMPLIANCE_POLICY', base['id'])
	refused(server.delete(cluster(group, name, '/snapshots/' + base['id'])), 409, 'SNAPSHOT_PROTECTED_BY_COMPLIANCE_POLICY')
	ok(server.patch(where, json={'retentionUnit': 'DAYS', 'retentionValue': 1}))
	server.advance(2 * DAY)
	pass_time(server, lambda: True)
	assert base['id'] in {s['id'] for s in snapshots(server, group, name)}
	assert server.delete(path(group, name, '/snapshots/' + more['id'])).status_code == 204, 'nothing needs it'


def test_schedules_are_raised_and_held(server, group):
	name = create(server, group)
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 12, 'days', 2), item('weekly', 6, 'weeks', 1), restoreWindowDays=1)))
	idle(server, group, name)
	enable(server, group, item('hourly', 6, 'days', 3), item('daily', 1, 'days', 20), pitEnabled=True, restoreWindowDays=4)
	doc = ok(server.get(schedule(group, name)))
	assert [(i['frequencyType'], i['frequencyInterval'], i['retentionValue'], i['retentionUnit']) for i in doc['policies'][0]['policyItems']] == [
		('hourly', 6, 3, 'days'), ('weekly', 6, 20, 'days'), ('daily', 1, 20, 'days')]
	assert doc['restoreWindowDays'] == 4
	idle(server, group, name)
	assert ok(server.get(cluster(group, name)))['pitEnabled'] is True
	good = [item('hourly', 6, 'days', 3), item('daily', 1, 'days', 20)]
	for items, more, field in (
			(good[:1], {}, 'policies[0].policyItems'), ([], {}, 'policies[0].policyItems'),
			([item('hourly', 8, 'days', 3), good[1]], {}, 'policies[0].policyItems'),
			([good[0], item('daily', 1, 'days', 19)], {}, 'policies[0].policyItems[1].retentionValue'),
			(good, {'restoreWindowDays': 3}, 'restoreWindowDays')):
		refused(server.patch(schedule(group, name), json=policy(*items, **more)), 400, None, field)
	refused(server.delete(schedule(group, name)), 400, None, 'policies')
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 4, 'days', 3), item('daily', 1, 'days', 21))))
	assert ok(server.get(schedule(group, create(server, group, pitEnabled=True))))['restoreWindowDays'] >= 4, 'a new one complies'


def test_without_overwriting(server, group):
	name, plain = create(server, group), unique('n')
	ok(server.post('/groups/%s/clusters' % group, json={'name': plain, 'clusterType': 'REPLICASET', 'replicationSpecs': spec()}), 201)
	idle(server, group, plain)
	query = '?overwriteBackupPolicies=false'
	refused(server.put(where(group) + query, json=wanted(item('daily', 1, 'days', 30))), 400, 'CLUSTERS_VIOLATE_BACKUP_COMPLIANCE_POLICY', name, plain)
	refused(server.get(where(group)), 404)
	refused(server.put(where(group), json=wanted(encryptionAtRestEnabled=True)), 400, 'CLUSTERS_VIOLATE_BACKUP_COMPLIANCE_POLICY', name, plain)
	refused(server.put(where(group) + query, json=wanted(item('daily', 1, 'days', 7))), 400, 'CLUSTERS_VIOLATE_BACKUP_COMPLIANCE_POLICY', plain)
	enable(server, group, item('daily', 1, 'days', 7), item('weekly', 6, 'weeks', 4))
	idle(server, group, plain)
	assert ok(server.get(cluster(group, plain)))['backupEnabled'] is True
	assert ok(server.get(schedule(group, plain)))['policies'][0]['policyItems']
	ok(server.put(where(group) + query, json=wanted(item('daily', 1, 'days', 7), item('weekly', 6, 'weeks', 4))))


def test_clusters_are_held(server, group):
	name = create(server, group, pitEnabled=True)
	enable(server, group, item('daily', 1, 'days', 7), pitEnabled=True, restoreWindowDays=2)
	idle(server, group, name)
	refused(server.patch(cluster(group, name), json={'backupEnabled': False}), 400, None, 'backupEnabled')
	refused(server.patch(cluster(group, name), json={'pitEnabled': False}), 400, None, 'pitEnabled')
	refused(server.post('/groups/%s/clusters' % group, json={'name': unique('n'), 'clusterType': 'REPLICASET', 'replicationSpecs': spec()}), 400,
		None, 'backupEnabled', 'pitEnabled')
	ok(server.patch(cluster(group, name), json={'tags': [{'key': 'a', 'value': 'b'}]}))
	kept = take(server, group, name)['id']
	remove(server, group, name, '?retainBackups=false')
	assert kept in {s['id'] for s in snapshots(server, group, name)}, 'kept, whatever was asked for'
	refused(server.delete('/groups/' + group), 409, 'CANNOT_CLOSE_GROUP_ACTIVE_BACKUP_COMPLIANCE_POLICY', group)
	assert ok(server.get(path(group, name, '/snapshots/' + kept)))['id'] == kept


def test_the_log_of_a_cluster_that_is_gone(server, group):
	"""It stays for as long as the policy's window reaches back to it, with the snapshot that it goes on from."""
	name, other = create(server, group, pitEnabled=True), create(server, group, pitEnabled=True)
	base, = pass_time(server, lambda: [s for s in snapshots(server, group, name) if s['status'] == 'completed'])
	enable(server, group, pitEnabled=True, restoreWindowDays=2)
	idle(server, group, name)
	idle(server, group, other)
	ok(server.patch(path(group, name, '/snapshots/' + base['id']), json={'retentionUnit': 'DAYS', 'retentionValue': 1}))
	server.advance(3600)
	then = seconds(server) - 600
	body = {'deliveryType': 'pointInTime', 'targetClusterName': other, 'targetGroupId': group, 'pointInTimeUTCSeconds': then}
	remove(server, group, name, '?retainBackups=false')
	for _ in range(6):
		server.advance(6 * 3600)
		pass_time(server, lambda: True)
	assert ids(server, path(group, name) + '?pointInTimeUtcSeconds=%d' % then) == [base['id']], 'it has expired, and is needed'
	idle(server, group, other)
	job = restore(server, group, name, **body)
	assert restored(server, group, name, job['id'])['failed'] is False
	for _ in range(8):
		server.advance(6 * 3600)
		pass_time(server, lambda: True)
	pass_time(server, lambda: server.post(path(group, name, '/restoreJobs'), json=body).status_code in (400, 404), step=600)
	pass_time(server, lambda: base['id'] not in {s['id'] for s in server.get(path(group, name)).json().get('results', [])}, step=600)


def test_copies_are_held(server, group):
	name = create(server, group)
	zone = ok(server.get(cluster(group, name)))['replicationSpecs'][0]['zoneId']
	to = {'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'zoneId': zone, 'frequencies': ['ON_DEMAND', 'DAILY']}
	doc = ok(server.get(schedule(group, name)))
	items = [{k: v for k, v in i.items() if k != 'id'} for i in doc['policies'][0]['policyItems']]
	ok(server.patch(schedule(group, name), json=policy(*items, copySettings=[to])))
	one = path(group, name, '/snapshots/' + take(server, group, name)['id'])
	pass_time(server, lambda: ok(server.get(one))['copyRegions'] == ['EU_WEST_1'])
	enable(server, group, on_demand=3, copyProtectionEnabled=True)
	gone = policy(*items, copySettings=[], deleteCopiedBackups=[{'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'zoneId': zone}])
	refused(server.patch(schedule(group, name), json=gone), 400, None, 'deleteCopiedBackups')
	assert ok(server.get(one))['copyRegions'] == ['EU_WEST_1']


def test_who_may(server, group):
	org, = server.seed({'name': unique('tenant'), 'projects': ['theirs'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	stranger = server.api_for(org['principals'][0])
	enable(server, group, on_demand=3)
	before = ok(server.get(where(group)))
	for call in (lambda: stranger.get(where(group)), lambda: stranger.delete(where(group)), lambda: stranger.put(where(group), json=wanted(on_demand=9))):
		refused(call(), 401)
	refused(server.delete(where(group)), 400, 'BACKUP_COMPLIANCE_POLICY_NOT_DELETABLE')
	assert ok(server.get(where(group))) == before


def test_its_end(server, group):
	"""The operator approves, an owner disables; until it is gone it holds."""
	name = create(server, group)
	snapshot = take(server, group, name)['id']
	enable(server, group, on_demand=30)
	data = ('--data', server.data_dir)
	shown = cli('release-policy', *data, group, check=False)
	assert shown.returncode == 1 and 'ada@example.com' in shown.stdout and 'Nothing was changed' in shown.stdout
	refused(server.delete(where(group)), 400, 'BACKUP_COMPLIANCE_POLICY_NOT_DELETABLE')
	assert cli('release-policy', *data, '5f00000000000000000000ff', '--yes', check=False).returncode == 1
	cli('release-policy', *data, group, '--yes')
	assert 'clean' in cli('check', *data).stdout
	assert cli('release-policy', *data, group, '--yes', check=False).returncode == 1
	assert ok(server.get(where(group)))['deletable'] is True
	refused(server.delete(path(group, name, '/snapshots/' + snapshot)), 409)
	assert server.delete(where(group)).status_code == 204
	refused(server.put(where(group), json=wanted(on_demand=30)), 409, 'BACKUP_COMPLIANCE_POLICY_BUSY')
	pass_time(server, lambda: server.get(where(group)).status_code == 404)
	assert told(server, group)[:3] == ['CPS_DATA_PROTECTION_DISABLED', 'CPS_DATA_PROTECTION_DISABLE_REQUESTED',
		'CPS_DATA_PROTECTION_APPROVED_FOR_DISABLEMENT']
	assert server.delete(path(group, name, '/snapshots/' + snapshot)).status_code == 204
	ok(server.patch(cluster(group, name), json={'backupEnabled': False}))
