"""Backup schedules: what they may say, when snapshots are taken, how long they are kept, where they are copied to."""
import calendar, datetime, random

import pytest

from client import jobs_done, ok, pass_time, refused, unique, until
from test_backups import DAY, NEVER, create, group, idle, ids, path, cluster, remove, seconds, spec, take, types  # noqa: F401 (group is a fixture)

HOUR = 3600
OLDER = {'Accept': 'application/vnd.svc.2023-01-01+json'}


def schedule(group, name):
	return path(group, name, '/schedule')


def item(frequency, interval=1, unit='days', value=7):
	return {'frequencyType': frequency, 'frequencyInterval': interval, 'retentionUnit': unit, 'retentionValue': value}


def policy(*items, **more):
	return {'policies': [{'policyItems': list(items)}], **more}


def moment(text):
	return datetime.datetime.fromisoformat(text.replace('Z', '+00:00'))


def now(server):
	return moment(server.control('clock', method='GET')['now'])


def snapshots(server, group, name):
	return ok(server.get(path(group, name) + '?itemsPerPage=500'))['results']


def settle(server, group, name, count):
	"""Until there are so many, and all are complete."""
	def over():
		found = snapshots(server, group, name)
		return len(found) == count and all(s['status'] == 'completed' for s in found) and found
	return pass_time(server, over)


def test_default(server, group):
	name = create(server, group)
	doc = ok(server.get(schedule(group, name)))
	items = doc['policies'][0]['policyItems']
	assert [(i['frequencyType'], i['frequencyInterval'], i['retentionValue'], i['retentionUnit']) for i in items] == [
		('hourly', 6, 7, 'days'), ('daily', 1, 7, 'days'), ('weekly', 6, 4, 'weeks'), ('monthly', 40, 12, 'months')]
	assert len({i['id'] for i in items}) == 4 and doc['clusterName'] == name and doc['restoreWindowDays'] == 7
	assert doc['clusterId'] == ok(server.get(cluster(group, name)))['id'] and doc['copySettings'] == []
	wait = moment(doc['nextSnapshot']) - now(server)
	assert datetime.timedelta(0) < wait <= datetime.timedelta(hours=6)


def test_there_only_with_backups(server, group):
	name = unique('n')
	ok(server.post('/groups/%s/clusters' % group, json={'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': spec()}), 201)
	idle(server, group, name)
	for call in (lambda: server.get(schedule(group, name)), lambda: server.delete(schedule(group, name)),
			lambda: server.patch(schedule(group, name), json=policy(item('daily')))):
		refused(call(), 404, 'CLUSTER_BACKUP_NOT_ENABLED', name)
	refused(server.get(schedule(group, 'nothing')), 404)
	ok(server.patch(cluster(group, name), json={'backupEnabled': True}))
	idle(server, group, name)
	doc = ok(server.get(schedule(group, name)))
	take(server, group, name)
	ok(server.patch(cluster(group, name), json={'backupEnabled': False}))
	idle(server, group, name)
	refused(server.get(schedule(group, name)), 404)
	assert len(ids(server, path(group, name))) == 1, 'what was taken stays'
	ok(server.patch(cluster(group, name), json={'backupEnabled': True}))
	assert ok(server.get(schedule(group, name)))['policies'] != doc['policies']


def test_update(server, group):
	name = create(server, group)
	before = ok(server.get(schedule(group, name)))
	doc = ok(server.patch(schedule(group, name), json=policy(item('daily', 1, 'days', 3), item('yearly', 12, 'years', 2), referenceHourOfDay=5,
		referenceMinuteOfHour=30, restoreWindowDays=2, extraRetentionSettings=[{'frequencyType': 'DAILY', 'retentionDays': 4}])))
	assert doc['policies'][0]['id'] == before['policies'][0]['id']
	daily, yearly = doc['policies'][0]['policyItems']
	assert daily['id'] == before['policies'][0]['policyItems'][1]['id'], 'the same item, kept longer'
	assert yearly['id'] not in {i['id'] for i in before['policies'][0]['policyItems']}
	assert moment(doc['nextSnapshot']).strftime('%H:%M') == '05:30'
	assert (doc['restoreWindowDays'], doc['referenceHourOfDay'], doc['referenceMinuteOfHour']) == (2, 5, 30)
	assert {k: v for k, v in ok(server.get(schedule(group, name))).items() if k != 'links'} == {k: v for k, v in doc.items() if k != 'links'}
	empty = ok(server.delete(schedule(group, name)))
	assert empty['policies'][0]['policyItems'] == [] and 'nextSnapshot' not in empty
	assert types(server, group).count('CPS_SNAPSHOT_SCHEDULE_UPDATED_AUDIT') == 2


@pytest.mark.parametrize('body, field', [
	({'clusterId': NEVER}, 'clusterId'), ({'clusterName': 'another'}, 'clusterName'),
	({'policies': [{'policyItems': [{'id': NEVER, 'retentionValue': 3}]}]}, 'policies[0].policyItems[0].id'),
	({'policies': [{'policyItems': [{'retentionValue': 3}]}]}, 'policies[0].policyItems[0].frequencyType'),
	(policy(item('hourly', 5)), 'policies[0].policyItems[0].frequencyInterval'),
	(policy(item('hourly', 24)), 'policies[0].policyItems[0].frequencyInterval'),
	(policy(item('daily', 2)), 'policies[0].policyItems[0].frequencyInterval'),
	(policy(item('weekly', 8)), 'policies[0].policyItems[0].frequencyInterval'),
	(policy(item('monthly', 29)), 'policies[0].policyItems[0].frequencyInterval'),
	(policy(item('yearly', 13)), 'policies[0].policyItems[0].frequencyInterval'),
	(policy(item('ondemand')), 'policies[0].policyItems[0].frequencyType'),
	(policy(item('daily', value=0)), 'policies[0].policyItems[0].retentionValue'),
	(policy(item('daily', unit='years', value=101)), 'policies[0].policyItems[0].retentionValue'),
	(policy(item('daily'), item('daily')), 'policies[0].policyItems[1].frequencyType'),
	(policy(item('weekly', 1), item('weekly', 1)), 'policies[0].policyItems[1].frequencyType'),
	(policy(item('hourly', 1, value=9), item('daily', value=8)), 'policies[0].policyItems[1].retentionValue'),
	({'policies': [{'id': NEVER, 'policyItems': []}]}, 'policies[0].id'),
	(policy(referenceHourOfDay=24), 'referenceHourOfDay'), (policy(referenceMinuteOfHour=-1), 'referenceMinuteOfHour'),
	(policy(restoreWindowDays=0), 'restoreWindowDays'),
	(policy(extraRetentionSettings=[{'retentionDays': 3}]), 'extraRetentionSettings[0].frequencyType'),
	(policy(extraRetentionSettings=[{'frequencyType': 'DAILY', 'retentionDays': -3}]), 'extraRetentionSettings[0].retentionDays'),
	(policy(autoExportEnabled=True), 'export.exportBucketId'),
	(policy(export={'exportBucketId': NEVER, 'frequencyType': 'monthly'}), 'export.exportBucketId'),
	(policy(copySettings=[{'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'zoneId': NEVER}]), 'copySettings[0].zoneId')])
def test_rules(server, group, body, field):
	name = create(server, group)
	before = ok(server.get(schedule(group, name)))
	refused(server.patch(schedule(group, name), json=body), 400, None, field)
	assert ok(server.get(schedule(group, name)))['policies'] == before['policies']


def test_copies_to_the_regions_of_the_cluster(server, group):
	"""autoCopySettingsEnabled makes the settings, also for a region that comes later; who had one keeps it."""
	name = create(server, group)
	regions = ok(server.get(cluster(group, name)))['replicationSpecs'][0]['regionConfigs']
	doc = ok(server.patch(schedule(group, name), json=policy(autoCopySettingsEnabled=True)))
	assert doc['autoCopySettingsEnabled'] is True and doc['copySettings'] == []
	more = [{**regions[0], 'regionName': r, 'priority': 6 - i, 'electableSpecs': {**regions[0]['electableSpecs'], 'nodeCount': 1}}
		for i, r in enumerate(('EU_WEST_1', 'EU_WEST_2'))]
	ok(server.patch(cluster(group, name), json={'replicationSpecs': [{'regionConfigs': [regions[0], *more]}]}))
	idle(server, group, name)
	made = ok(server.get(schedule(group, name)))['copySettings']
	assert [(s['regionName'], len(s['frequencies']), s['shouldCopyOplogs']) for s in made] == [('EU_WEST_1', 6, False), ('EU_WEST_2', 6, False)]
	snapshot = take(server, group, name)['id']
	pass_time(server, lambda: sorted(ok(server.get(path(group, name, '/snapshots/' + snapshot)))['copyRegions']) == ['EU_WEST_1', 'EU_WEST_2'])
	doc = ok(server.patch(schedule(group, name), json=policy(copySettings=[{**made[0], 'frequencies': ['DAILY']}])))
	assert [len(s['frequencies']) for s in doc['copySettings']] == [1, 6]
	doc = ok(server.patch(schedule(group, name), json=policy(autoCopySettingsEnabled=False, copySettings=[])))
	assert doc['copySettings'] == []


def test_older_form(older_server):
	server = older_server
	server.control('engine', {})
	group = server.project()['id']
	name = create(server, group)
	rs = ok(server.get(cluster(group, name)))['replicationSpecs'][0]
	copy = {'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'frequencies': ['DAILY'], 'shouldCopyOplogs': False}
	doc = ok(server.patch(schedule(group, name), json=policy(item('daily'), copySettings=[{**copy, 'replicationSpecId': rs['id']}]),
		headers=OLDER))
	assert doc['copySettings'] == [{**copy, 'replicationSpecId': rs['id'], 'copyPolicyItems': []}] and 'autoCopySettingsEnabled' not in doc
	assert ok(server.get(schedule(group, name), headers=OLDER))['copySettings'] == doc['copySettings']
	assert ok(server.get(schedule(group, name)))['copySettings'] == [{**copy, 'zoneId': rs['zoneId'], 'copyPolicyItems': []}]
	refused(server.patch(schedule(group, name), json=policy(item('daily'), copySettings=[{**copy, 'replicationSpecId': NEVER}]),
		headers=OLDER), 400, None, 'copySettings[0].replicationSpecId')
	assert ok(server.delete(schedule(group, name), headers=OLDER))['policies'][0]['policyItems'] == []


def to(server, hour, minute=0, earlier=0):
	"""The clock to that many seconds before the next such time."""
	at = now(server)
	then = at.replace(hour=hour, minute=minute, second=0, microsecond=0)
	then += datetime.timedelta(days=then - at < datetime.timedelta(seconds=earlier + 60))
	server.advance(int((then - now(server)).total_seconds()) - earlier)
	return then


def test_one_snapshot_serves_items_that_coincide(server, group):
	then = to(server, 3, earlier=3000)  # while it is made, time passes
	name = create(server, group)
	doc = ok(server.patch(schedule(group, name), json=policy(item('hourly', 12, value=2), item('daily', value=5), referenceHourOfDay=3,
		referenceMinuteOfHour=0)))
	hourly, daily = [i['id'] for i in doc['policies'][0]['policyItems']]
	assert snapshots(server, group, name) == []
	server.advance(int((then - now(server)).total_seconds()) + 30)
	one, = settle(server, group, name, 1)
	assert one['policyItems'] == [hourly, daily] and one['frequencyType'] == 'daily' and one['snapshotType'] == 'scheduled'
	assert moment(one['expiresAt']) - moment(one['createdAt']) == datetime.timedelta(days=5), 'the longest of the two'
	assert abs(moment(one['createdAt']) - then) < datetime.timedelta(minutes=5)
	to(server, 15, earlier=-60)
	_, two = settle(server, group, name, 2)
	assert two['policyItems'] == [hourly] and two['frequencyType'] == 'hourly'


def test_a_missed_time_is_made_up_for_once(server, group):
	name = create(server, group)
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 1, 'weeks', 4))))
	server.advance(2 * DAY + 1800)
	settle(server, group, name, 1)
	pass_time(server, lambda: True, step=60)
	assert len(snapshots(server, group, name)) == 1, 'no stampede'
	server.advance(HOUR)
	settle(server, group, name, 2)


def test_effects_on_what_is_there(server, group):
	name = create(server, group)
	other_day = (now(server).isoweekday() + 2) % 7 + 1  # not the one that the hour leads to
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 1, value=2), item('weekly', other_day, value=20))))
	server.advance(HOUR)
	settle(server, group, name, 1)
	kept = take(server, group, name)
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 1, value=4))))
	first = snapshots(server, group, name)[0]
	assert moment(first['expiresAt']) - moment(first['createdAt']) == datetime.timedelta(days=2), 'only when it is asked for'
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 1, value=5), updateSnapshots=True)))
	first = snapshots(server, group, name)[0]
	assert moment(first['expiresAt']) - moment(first['createdAt']) == datetime.timedelta(days=5)
	ok(server.patch(schedule(group, name), json=policy(deleteSnapshots=True)))
	assert ids(server, path(group, name)) == [kept['id']], 'the snapshots of the item that is gone'


def test_a_window_is_longer_than_what_its_schedule_keeps(start_server):
	server = start_server()  # its days pass for no other cluster
	group = server.project()['id']
	name = create(server, group, pitEnabled=True)
	begun, = pass_time(server, lambda: [s for s in snapshots(server, group, name) if s['status'] == 'completed'])
	first = take(server, group, name, retentionInDays=1)
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 12, value=1), restoreWindowDays=2)))
	assert server.delete(path(group, name, '/snapshots/' + begun['id'])).status_code == 204

	def later(part):
		server.advance(part)
		jobs_done(server)  # one that is due has begun
		pass_time(server, lambda: all(s['status'] == 'completed' for s in snapshots(server, group, name)))
		return [s['id'] for s in snapshots(server, group, name)]
	for part in [DAY // 2] * 4:
		later(part)
	# The next one was taken half a day after it, and so within the window.
	assert first['id'] in later(DAY // 4), 'the window begins with it'
	ok(server.post(path(group, name, '/restoreJobs'), json={'deliveryType': 'pointInTime', 'targetClusterName': name, 'targetGroupId': group,
		'pointInTimeUTCSeconds': seconds(server) - 2 * DAY + 60}))
	idle(server, group, name)
	before = snapshots(server, group, name)
	for part in [DAY // 2] * 16:
		later(part)
	# Another has taken its place.
	pass_time(server, lambda: not {s['id'] for s in before} & {s['id'] for s in snapshots(server, group, name)}, step=600)
	left = snapshots(server, group, name)
	assert now(server) - moment(left[0]['createdAt']) < datetime.timedelta(days=6)


def test_extra_retention(server, group):
	name = create(server, group)
	ok(server.patch(schedule(group, name), json=policy(extraRetentionSettings=[{'frequencyType': 'ON_DEMAND', 'retentionDays': 10}])))
	doc = take(server, group, name, retentionInDays=2)
	assert moment(doc['expiresAt']) - moment(doc['createdAt']) == datetime.timedelta(days=12)


def test_copies(server, group):
	name = create(server, group)
	zone = ok(server.get(cluster(group, name)))['replicationSpecs'][0]['zoneId']
	setting = {'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'zoneId': zone, 'frequencies': ['ON_DEMAND']}
	refused(server.patch(schedule(group, name), json=policy(copySettings=[{**setting, 'regionName': 'US_EAST_1'}])), 400, None,
		'copySettings[0].regionName')
	refused(server.patch(schedule(group, name), json=policy(copySettings=[setting, setting])), 400, None, 'copySettings[1].regionName')
	ok(server.patch(schedule(group, name), json=policy(copySettings=[{**setting, 'lastNumberOfSnapshots': 2}])))
	made = [take(server, group, name)['id'] for _ in range(3)]

	def regions():
		return [s['copyRegions'] for s in snapshots(server, group, name)]
	pass_time(server, lambda: regions() == [[], ['EU_WEST_1'], ['EU_WEST_1']])
	told = [t for t in types(server, group) if t.startswith('CPS_COPY_')]
	assert told.count('CPS_COPY_SNAPSHOT_STARTED') == told.count('CPS_COPY_SNAPSHOT_SUCCESSFUL') == 3
	ok(server.patch(schedule(group, name), json=policy(copySettings=[], deleteCopiedBackups=[
		{'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'zoneId': zone}])))
	assert regions() == [[], [], []] and ids(server, path(group, name)) == made
	rows = "SELECT body FROM doc WHERE kind = 'backup_residue' AND body LIKE '%%%s%%'" % group  # others come and go meanwhile
	before = len(server.rows(rows))
	remove(server, group, name)
	residue = [r[0] for r in server.rows(rows)]
	assert len(residue) == before + 2
	assert any('EU_WEST_1' in r for r in residue) and any('US_EAST_1' in r for r in residue), 'both places are swept'


def test_copies_by_items(server, group):
	name = create(server, group)
	zone = ok(server.get(cluster(group, name)))['replicationSpecs'][0]['zoneId']

	def settings(*regions, days=1):
		return [{'cloudProvider': 'AWS', 'regionName': r, 'zoneId': zone, 'copyPolicyItems': [
			{'frequencyType': 'hourly', 'retentionUnit': 'days', 'retentionValue': days}]} for r in regions]
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 1, value=20), copyPolicyItemsEnabled=True,
		copySettings=settings('EU_WEST_1', 'EU_WEST_2'))))
	server.advance(HOUR)
	first = settle(server, group, name, 1)[0]['id']

	def regions():
		return set(ok(server.get(path(group, name, '/snapshots/' + first)))['copyRegions'])
	pass_time(server, lambda: regions() == {'EU_WEST_1', 'EU_WEST_2'})
	ok(server.patch(schedule(group, name), json=policy(copySettings=settings('EU_WEST_1', days=3), updateCopySnapshots=True,
		deleteCopySnapshots=True)))
	assert regions() == {'EU_WEST_1'}, 'the other region has no setting any more'
	server.advance(2 * DAY)
	pass_time(server, lambda: True)
	assert regions() == {'EU_WEST_1'}
	server.advance(DAY)
	until(lambda: regions() == set(), what='the end of the copy')
	assert ids(server, path(group, name)) == [first], 'the snapshot itself is kept longer'


def test_flex_clusters_have_one_each_day(server, group):
	name = unique('f')
	ok(server.post('/groups/%s/flexClusters' % group, json={'name': name, 'providerSettings': {
		'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}}), 201)
	flex = '/groups/%s/flexClusters/%s' % (group, name)
	pass_time(server, lambda: ok(server.get(flex))['stateName'] == 'IDLE')
	server.advance(DAY + 60)
	pass_time(server, lambda: 'CPS_SNAPSHOT_SUCCESSFUL' in types(server, group))
	assert types(server, group).count('CPS_SNAPSHOT_STARTED') == 1


# When snapshots are due, computed another way

def due(one, reference, after):
	"""The first minute after that moment which fits, by walking days."""
	hour, minute = reference
	day = after.date()
	while True:
		hours = [hour] if one['frequencyType'] != 'hourly' else [h for h in range(24) if (h - hour) % one['frequencyInterval'] == 0]
		fits = {'hourly': True, 'daily': True, 'weekly': day.isoweekday() == one['frequencyInterval'],
			'monthly': day.day == (calendar.monthrange(day.year, day.month)[1] if one['frequencyInterval'] == 40
				else one['frequencyInterval']),
			'yearly': day.day == 1 and day.month == one['frequencyInterval']}[one['frequencyType']]
		for h in hours if fits else []:
			then = datetime.datetime(day.year, day.month, day.day, h, minute, tzinfo=datetime.timezone.utc)
			if then > after:
				return then
		day += datetime.timedelta(days=1)


def test_next_snapshot_is_what_a_calendar_says(start_server):
	server, draw = start_server(), random.Random(14)
	group = server.group
	name = create(server, group)
	choices = {'hourly': [1, 2, 4, 6, 8, 12], 'daily': [1], 'weekly': range(1, 8), 'monthly': [*range(1, 29), 40], 'yearly': range(1, 13)}
	order = list(choices)
	for _ in range(40):
		picked = sorted(draw.sample(order, draw.randint(1, 3)), key=order.index)
		items = [item(f, draw.choice(list(choices[f])), 'years', 3) for f in picked]
		reference = draw.randrange(24), draw.randrange(60)
		ok(server.delete(schedule(group, name)))
		server.advance(draw.randrange(8 * DAY))
		doc = ok(server.patch(schedule(group, name), json=policy(*items, referenceHourOfDay=reference[0], referenceMinuteOfHour=reference[1])))
		wanted = min(due(one, reference, now(server)) for one in items)
		assert moment(doc['nextSnapshot']) == wanted, (items, reference, now(server))


def test_what_was_read_is_sent_back(older_server):
	"""As it was read, and in part: one field, or one item that its id names, leaves the rest."""
	server, group = older_server, older_server.group
	name = create(server, group, pitEnabled=True)
	where, legacy = schedule(group, name), cluster(group, name, '/snapshotSchedule')
	zone = ok(server.get(cluster(group, name)))['replicationSpecs'][0]['zoneId']

	def read():
		return {k: v for k, v in ok(server.get(where)).items() if k != 'nextSnapshot'}
	ok(server.patch(where, json={'extraRetentionSettings': [{'frequencyType': 'DAILY', 'retentionDays': 3}], 'copySettings': [
		{'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'zoneId': zone, 'frequencies': ['DAILY'], 'shouldCopyOplogs': True}]}))
	whole = read()
	assert len(whole['policies'][0]['policyItems']) == 4 and whole['copySettings'] and whole['extraRetentionSettings']
	for at, headers in ((where, {}), (where, OLDER), (legacy, {})):
		answer = ok(server.get(at, headers=headers))
		again = ok(server.patch(at, json=answer, headers=headers))
		assert {**again, 'nextSnapshot': 0} == {**answer, 'nextSnapshot': 0} and read() == whole, (at, headers)
	refused(server.patch(legacy, json={'groupId': NEVER}), 400, None, 'groupId')
	ok(server.patch(where, json={'referenceHourOfDay': 5}))
	whole['referenceHourOfDay'] = 5
	assert read() == whole
	daily = whole['policies'][0]['policyItems'][1]
	ok(server.patch(where, json={'policies': [{'id': whole['policies'][0]['id'], 'policyItems': [{'id': daily['id'], 'retentionValue': 9}]}]}))
	daily['retentionValue'] = 9
	assert read() == whole, 'one item'
	hourly = whole['policies'][0]['policyItems'][0]
	new = item('yearly', 12, 'years', 2)
	ok(server.patch(where, json={'policies': [{'policyItems': [{'id': hourly['id'], 'frequencyInterval': 8}, new]}]}))
	hourly['frequencyInterval'] = 8
	after = read()
	assert after['policies'][0]['policyItems'][:4] == whole['policies'][0]['policyItems'], 'it is the same item, at other times'
	assert after['policies'][0]['policyItems'][4] == {**new, 'id': after['policies'][0]['policyItems'][4]['id']}
	kept = after['policies'][0]['policyItems'][1:3]
	assert ok(server.patch(where, json={'policies': [{'policyItems': kept}]}))['policies'][0]['policyItems'] == kept, 'whole items are the list'
	assert ok(server.patch(where, json={}))['policies'][0]['policyItems'] == kept
