"""Online archives on the simulated engine: what an archive may be, its states, schedules, what it moves and ends, its log, and what is
left when it goes. A simulated table has a row for each hour of the last 10,000."""
import calendar, gzip, json, time

import pytest

import dialect
from client import NO_ID, Api, leave, ok, pass_time, refused, until
from test_clusters import create, path

HOURS = 10000
WHOLE = {'X-Steward-Whole': 'true'}
DAY = 86400
BY_DATE = {'type': 'DATE', 'dateField': 'created', 'expireAfterDays': 30}
BY_QUERY = {'type': 'CUSTOM', 'query': '{"status": "done"}'}


def base(group, name='archived'):
	return path(group, name) + '/onlineArchives'


def wish(table='orders', **more):
	return {'dbName': 'shop', 'collName': table, 'criteria': BY_DATE, **more}


def place(group, archive, name='archived'):
	return '%s/%s' % (base(group, name), archive['_id'])


def read(server, group, archive, name='archived'):
	return ok(server.get(place(group, archive, name)))


def reached(server, group, archive, state='ACTIVE', name='archived'):
	return pass_time(server, lambda: (lambda d: d['state'] == state and d)(read(server, group, archive, name)))


def made(server, group, table, **more):
	return reached(server, group, ok(server.post(base(group), json=wish(table, **more))))


def held(server, group, archive, name='archived'):
	"""What it has, as its headers tell."""
	text = server.get(place(group, archive, name)).headers['X-Steward-Archived']
	return {k: int(v) for k, v in (one.split('=') for one in text.split(', '))}


def filled(server, group, archive, least=1, name='archived'):
	return pass_time(server, lambda: (lambda h: h['rows'] >= least and h)(held(server, group, archive, name)), step=20)


def gone(server, group, archive):
	pass_time(server, lambda: server.get(place(group, archive)).status_code == 404)


def told(server, group, kind):
	found = ok(server.get('/groups/%s/events?includeRaw=true&itemsPerPage=500' % group))['results']
	return [e for e in found if e['eventTypeName'] == kind]


def lines(server, group, query='', name='archived'):
	r = server.get(base(group, name) + '/queryLogs.gz' + query)
	assert r.status_code == 200 and r.headers['Content-Type'].endswith('+gzip')
	return [json.loads(line) for line in gzip.decompress(r.content).splitlines()]


def now(server):
	return calendar.timegm(time.strptime(server.control('clock', method='GET')['now'][:19], '%Y-%m-%dT%H:%M:%S'))


@pytest.fixture(scope='module')
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'archived')
	yield group
	leave(server, group)


def test_an_archive(server, group):
	first = ok(server.post(base(group), json=wish('first')))
	assert first['state'] == 'PENDING' and first['paused'] is False and first['collectionType'] == 'STANDARD'
	assert first['criteria'] == {'type': 'DATE'} and first['schedule'] == {'type': 'DEFAULT'}
	assert first['partitionFields'] == [{'fieldName': 'created', 'order': 0, 'fieldType': 'date'}]
	assert first['dataProcessRegion'] == {'cloudProvider': 'AWS'}
	assert (first['dbName'], first['collName'], first['clusterName'], first['groupId']) == ('shop', 'first', 'archived', group)
	reached(server, group, first)
	# All that is older than 30 days, and nothing twice.
	assert filled(server, group, first, HOURS - 30 * 24)['rows'] in range(HOURS - 30 * 24, HOURS - 30 * 24 + 3)
	for kind in ('CREATED', 'ACTIVE'):
		assert [e for e in told(server, group, 'ONLINE_ARCHIVE_' + kind) if first['_id'] in str(e)]


def test_lists_have_pages(server, group):
	here = [made(server, group, 'page%d' % n)['_id'] for n in range(3)]
	seen = []
	for page in range(1, 9):
		answer = ok(server.get('%s?itemsPerPage=2&pageNum=%d' % (base(group), page)))
		seen += [a['_id'] for a in answer['results']]
		assert answer['totalCount'] >= 3
	assert set(here) <= set(seen) and len(seen) == len(set(seen))
	refused(server.get(base(group, 'nowhere')), 404, 'CLUSTER_NOT_FOUND')


def test_what_is_not_there(server, group):
	for call in (server.get, server.delete):
		refused(call('%s/%s' % (base(group), NO_ID)), 404, 'ONLINE_ARCHIVE_NOT_FOUND')
	refused(server.patch('%s/%s' % (base(group), NO_ID), json={'paused': True}), 404, 'ONLINE_ARCHIVE_NOT_FOUND')
	refused(server.post(base(group, 'nowhere'), json=wish()), 404, 'CLUSTER_NOT_FOUND')
	refused(server.get(base(group, 'nowhere') + '/queryLogs.gz'), 404, 'CLUSTER_NOT_FOUND')


@pytest.mark.parametrize('more,field', [
	({'criteria': {}}, 'criteria.type'),
	({'criteria': {'type': 'DATE', 'expireAfterDays': 30}}, 'criteria.dateField'),
	({'criteria': {'type': 'DATE', 'dateField': 'created'}}, 'criteria.expireAfterDays'),
	({'criteria': {**BY_DATE, 'expireAfterDays': -1}}, 'criteria.expireAfterDays'),
	({'criteria': {**BY_DATE, 'dateFormat': 'RFC822'}}, 'criteria.dateFormat'),
	({'criteria': {**BY_DATE, 'query': '{}'}}, 'criteria.query'),
	({'criteria': {'type': 'CUSTOM'}}, 'criteria.query'),
	({'criteria': {'type': 'CUSTOM', 'query': '{"a": {"$regex": "b"}}'}}, 'criteria.query'),
	({'criteria': {'type': 'CUSTOM', 'query': 'status ='}}, 'criteria.query'),
	({'criteria': BY_QUERY, 'collectionType': 'TIMESERIES'}, 'criteria.type'),
	({'dbName': ''}, 'dbName'), ({'dbName': 'x' * 65}, 'dbName'), ({'collName': ''}, 'collName'),
	({'partitionFields': []}, 'partitionFields'),
	({'partitionFields': [{'fieldName': 'f%d' % n, 'order': n} for n in range(5)]}, 'partitionFields'),
	({'partitionFields': [{'fieldName': 'a', 'order': 0}, {'fieldName': 'b', 'order': 0}]}, 'partitionFields[1].order'),
	({'partitionFields': [{'fieldName': 'a', 'order': 0}, {'fieldName': 'b', 'order': 2}]}, 'partitionFields[1].order'),
	({'partitionFields': [{'fieldName': 'a', 'order': 0}, {'fieldName': 'a', 'order': 1}]}, 'partitionFields[1].fieldName'),
	({'partitionFields': [{'fieldName': 'a', 'order': 0, 'fieldType': 'int'}]}, 'partitionFields[0].fieldType'),
	({'schedule': {'type': 'YEARLY'}}, 'schedule.type'),
	({'schedule': {'type': 'WEEKLY', 'startHour': 1, 'endHour': 3}}, 'schedule.dayOfWeek'),
	({'schedule': {'type': 'WEEKLY', 'dayOfWeek': 8}}, 'schedule.dayOfWeek'),
	({'schedule': {'type': 'MONTHLY', 'startHour': 1, 'endHour': 3}}, 'schedule.dayOfMonth'),
	({'schedule': {'type': 'MONTHLY', 'dayOfMonth': 32}}, 'schedule.dayOfMonth'),
	({'schedule': {'type': 'DAILY', 'startHour': 1}}, 'schedule.endHour'),
	({'schedule': {'type': 'DAILY', 'startHour': 1, 'endHour': 24}}, 'schedule.endHour'),
	({'schedule': {'type': 'DAILY', 'dayOfWeek': 1}}, 'schedule.dayOfWeek'),
	({'dataExpirationRule': {'expireAfterDays': 6}}, 'dataExpirationRule.expireAfterDays'),
	({'dataExpirationRule': {'expireAfterDays': 30}}, 'dataExpirationRule.expireAfterDays'),
	({'dataProcessRegion': {'cloudProvider': 'AWS', 'region': 'MOON_1'}}, 'dataProcessRegion.region'),
	({'paused': 'yes'}, 'paused'), ({'state': 'ACTIVE'}, 'state'),
	# What the database says of it.
	({'dbName': 'missing'}, 'dbName'), ({'collName': 'missing'}, 'collName'),
	({'criteria': {**BY_DATE, 'dateField': 'missing'}}, 'criteria.dateField'),
	({'criteria': {'type': 'CUSTOM', 'query': '{"missing": 1}'}}, 'criteria.query'),
	({'partitionFields': [{'fieldName': 'created', 'order': 1}, {'fieldName': 'missing', 'order': 0}]}, 'partitionFields[0].fieldName'),
])
def test_refusals(server, group, more, field):
	refused(server.post(base(group), json=wish(**more)), 400, 'VALIDATION_ERROR', field)


def test_refused_changes(server, group):
	here = place(group, made(server, group, 'refusing', dataExpirationRule={'expireAfterDays': 60}))
	for change, field in (({'criteria': {'expireAfterDays': 60}}, 'dataExpirationRule.expireAfterDays'),
			      ({'criteria': {'dateField': 'missing'}}, 'criteria.dateField'),
			      ({'criteria': {'type': 'CUSTOM'}}, 'criteria.query'), ({'schedule': {'type': 'WEEKLY'}}, 'schedule.dayOfWeek'),
			      ({'dbName': 'other'}, 'dbName'), ({'partitionFields': [{'fieldName': 'a', 'order': 0}]}, 'partitionFields')):
		refused(server.patch(here, json=change), 400, 'VALIDATION_ERROR', field)


def test_criteria_without_their_query(server, group):
	"""Also of an archive that has one: criteria of a type are named whole."""
	here = place(group, made(server, group, 'asking', criteria=BY_QUERY))
	for change in ({'type': 'CUSTOM'}, {'type': 'CUSTOM', 'query': ''}, {'type': 'CUSTOM', 'query': None}):
		refused(server.patch(here, json={'criteria': change}), 400, 'VALIDATION_ERROR', 'criteria.query')


def test_the_same_twice(server, group):
	made(server, group, 'twice')
	refused(server.post(base(group), json=wish('twice')), 409, 'ONLINE_ARCHIVE_ALREADY_EXISTS', 'criteria')
	other = made(server, group, 'twice', criteria=BY_QUERY)
	refused(server.patch(place(group, other), json={'criteria': BY_DATE}), 409, 'ONLINE_ARCHIVE_ALREADY_EXISTS', 'criteria')


def test_by_a_query(server, group):
	archive = made(server, group, 'queried', criteria=BY_QUERY, partitionFields=[{'fieldName': 'b', 'order': 1}, {'fieldName': 'a', 'order': 0}])
	assert archive['criteria'] == {'type': 'CUSTOM'} and [f['fieldName'] for f in archive['partitionFields']] == ['b', 'a']
	assert filled(server, group, archive, HOURS // 10)['rows'] in range(HOURS // 10, HOURS // 10 + 3)
	without = made(server, group, 'queried', criteria={'type': 'CUSTOM', 'query': '{}'})
	assert 'partitionFields' not in without


def test_pausing(server, group):
	archive = made(server, group, 'pausing')
	r = ok(server.patch(place(group, archive), json={'paused': True}))
	assert r['state'] == 'PAUSING' and r['paused'] is True
	reached(server, group, archive, 'PAUSED')
	before = filled(server, group, archive)['rows']
	server.advance(3 * DAY)
	pass_time(server, lambda: server.get(place(group, archive)).status_code == 200)
	assert held(server, group, archive)['rows'] == before
	r = ok(server.patch(place(group, archive), json={'paused': False}))
	assert r['state'] == 'ACTIVE' and r['paused'] is False
	filled(server, group, archive, before + 3 * 24 - 1)
	for kind in ('PAUSE_REQUESTED', 'PAUSED', 'ACTIVE'):
		assert [e for e in told(server, group, 'ONLINE_ARCHIVE_' + kind) if archive['_id'] in str(e)], kind


def test_paused_from_the_beginning(server, group):
	archive = ok(server.post(base(group), json=wish('sleeping', paused=True)))
	assert archive['state'] == 'PAUSING' and archive['paused'] is True
	reached(server, group, archive, 'PAUSED')
	assert held(server, group, archive)['rows'] == 0
	ok(server.patch(place(group, archive), json={'paused': False}))
	filled(server, group, archive)


def test_a_change(server, group):
	archive = made(server, group, 'changing', criteria={**BY_DATE, 'expireAfterDays': 300})
	before = filled(server, group, archive, HOURS - 300 * 24)['rows']
	changed = ok(server.patch(place(group, archive), json={'criteria': {'expireAfterDays': 200}}))
	assert changed['criteria'] == {'type': 'DATE'} and changed['state'] == 'ACTIVE'
	filled(server, group, archive, before + 100 * 24)
	# What was read is taken again, and changes nothing.
	same = {k: changed[k] for k in ('criteria', 'schedule', 'paused')}
	assert ok(server.patch(place(group, archive), json=same)) == changed
	changed = ok(server.patch(place(group, archive), json={'criteria': BY_QUERY}))
	assert changed['criteria'] == {'type': 'CUSTOM'}
	assert [e for e in told(server, group, 'ONLINE_ARCHIVE_UPDATED') if archive['_id'] in str(e)]


@pytest.mark.parametrize('provider,region', [('AWS', 'EU_WEST_1'), ('AZURE', 'EUROPE_WEST'), ('GCP', 'WESTERN_EUROPE')])
def test_where_it_lies(server, group, provider, region):
	made_there = made(server, group, 'in_' + provider.lower(), dataProcessRegion={'cloudProvider': provider, 'region': region})
	assert made_there['dataProcessRegion'] == {'cloudProvider': provider}
	filled(server, group, made_there)


def test_schedules(server, group):
	"""One of another type replaces what was there; of one of the same type, the rest stays."""
	archive = made(server, group, 'timed', paused=False)
	weekly = {'type': 'WEEKLY', 'dayOfWeek': 7, 'startHour': 22, 'startMinute': 30, 'endHour': 1, 'endMinute': 0}
	assert ok(server.patch(place(group, archive), json={'schedule': weekly}))['schedule'] == weekly
	assert ok(server.patch(place(group, archive), json={'schedule': {'dayOfWeek': 1, 'type': 'WEEKLY'}}))['schedule'] == {**weekly, 'dayOfWeek': 1}
	monthly = {'type': 'MONTHLY', 'dayOfMonth': 31, 'startHour': 1, 'startMinute': 15, 'endHour': 5, 'endMinute': 45}
	assert ok(server.patch(place(group, archive), json={'schedule': monthly}))['schedule'] == monthly
	assert ok(server.patch(place(group, archive), json={'schedule': {'type': 'DEFAULT'}}))['schedule'] == {'type': 'DEFAULT'}


def test_the_whole(module_server):
	"""What the reference leaves out of answers, which are shown what all kinds of criteria share: whoever asks for it gets it, and may
	send it back. Not recorded, because the reference's form has no place for it."""
	server = module_server
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'archived')
	archive = ok(server.post(base(group), json=wish(), headers=WHOLE))
	assert archive['criteria'] == {**BY_DATE, 'dateFormat': 'ISODATE'}
	assert archive['dataProcessRegion'] == {'cloudProvider': 'AWS', 'region': 'US_EAST_1'}
	archive = reached(server, group, archive)
	def whole():
		return ok(server.get(place(group, archive), headers=WHOLE))
	for change, criteria in (({'expireAfterDays': 60, 'type': 'DATE'}, {**BY_DATE, 'expireAfterDays': 60, 'dateFormat': 'ISODATE'}),
				 ({'dateFormat': 'OBJECT_ID'}, {**BY_DATE, 'expireAfterDays': 60, 'dateFormat': 'OBJECT_ID'}),
				 (BY_QUERY, BY_QUERY), ({**BY_DATE, 'dateFormat': 'EPOCH_MILLIS'}, {**BY_DATE, 'dateFormat': 'EPOCH_MILLIS'})):
		ok(server.patch(place(group, archive), json={'criteria': change}))
		assert whole()['criteria'] == criteria
		ok(server.patch(place(group, archive), json={k: whole()[k] for k in ('criteria', 'schedule')}))
		assert whole()['criteria'] == criteria
	assert ok(server.get(base(group), headers=WHOLE))['results'] == [whole()]
	elsewhere = ok(server.post(base(group), json=wish('far', dataProcessRegion={'cloudProvider': 'AZURE', 'region': 'US_EAST_2'}), headers=WHOLE))
	assert elsewhere['dataProcessRegion'] == {'cloudProvider': 'AZURE', 'region': 'US_EAST_2'}


def test_expiration(server, group):
	archive = made(server, group, 'ending')
	most = filled(server, group, archive, HOURS - 30 * 24)['rows']
	ruled = ok(server.patch(place(group, archive), json={'dataExpirationRule': {'expireAfterDays': 40}}))
	assert ruled['dataExpirationRule'] == {'expireAfterDays': 40} and held(server, group, archive)['rows'] == most
	server.advance(12 * DAY)
	pass_time(server, lambda: held(server, group, archive)['rows'] < most / 2)
	ended = [line for line in lines(server, group, '?startDate=1199145600&archiveOnly=true') if line['archiveId'] == archive['_id']]
	assert ended and {line['operation'] for line in ended} == {'EXPIRE'} and sum(line['rows'] for line in ended) > most / 2
	assert ok(server.patch(place(group, archive), json={'dataExpirationRule': {'expireAfterDays': 50}}))['dataExpirationRule'] == {'expireAfterDays': 50}
	assert 'dataExpirationRule' not in ok(server.patch(place(group, archive), json={'dataExpirationRule': {}}))
	for what in ('ENABLED', 'UPDATED', 'DISABLED'):
		assert [e for e in told(server, group, 'ONLINE_ARCHIVE_DATA_EXPIRATION_RULE_' + what) if archive['_id'] in str(e)], what


def test_a_daily_window(server, group):
	"""Nothing moves outside of it; what came since moves in the next."""
	start = (time.gmtime(now(server)).tm_hour + 5) % 24
	archive = made(server, group, 'nightly', schedule={'type': 'DAILY', 'startHour': start, 'startMinute': 0, 'endHour': (start + 2) % 24, 'endMinute': 30})
	assert archive['schedule']['startHour'] == start
	server.advance(2 * 3600)
	assert held(server, group, archive)['rows'] == 0
	server.advance(4 * 3600)
	first = filled(server, group, archive, HOURS - 30 * 24)['rows']
	server.advance(12 * 3600)
	assert held(server, group, archive)['rows'] == first
	server.advance(12 * 3600)
	filled(server, group, archive, first + 20)


def test_the_log(server, group):
	archive = made(server, group, 'logged')
	rows = filled(server, group, archive, HOURS - 30 * 24)['rows']
	mine = until(lambda: [line for line in lines(server, group) if line['archiveId'] == archive['_id']])
	assert mine[0]['operation'] == 'ARCHIVE' and mine[0]['namespace'] == 'shop.logged' and mine[0]['archivedOnly'] is False
	assert mine[0]['rows'] == rows and mine[0]['files'] == held(server, group, archive)['files']
	assert not [line for line in lines(server, group, '?archiveOnly=true') if line['archiveId'] == archive['_id']]
	assert not lines(server, group, '?startDate=1199145600&endDate=1199145601')
	refused(server.get(base(group) + '/queryLogs.gz?startDate=1300000000&endDate=1200000000'), 400, 'VALIDATION_ERROR', 'startDate')
	refused(server.get(base(group) + '/queryLogs.gz?startDate=1'), 400, 'VALIDATION_ERROR', 'startDate')


def test_deletion(server, group):
	archive = made(server, group, 'deleted')
	filled(server, group, archive)
	assert server.delete(place(group, archive)).status_code == 204
	gone(server, group, archive)
	assert [line for line in lines(server, group) if line['archiveId'] == archive['_id'] and line['operation'] == 'DELETE']
	assert [e for e in told(server, group, 'ONLINE_ARCHIVE_DELETED') if archive['_id'] in str(e)]
	refused(server.delete(place(group, archive)), 404, 'ONLINE_ARCHIVE_NOT_FOUND')
	made(server, group, 'deleted')


def test_a_deletion_under_way(server, group):
	"""Before its job has run: it can be seen, and neither be changed nor be deleted again."""
	archive = made(server, group, 'leaving')
	ok(server.patch(path(group, 'archived'), json={'paused': True}))
	refused(server.post(base(group), json=wish('resting')), 409)
	assert server.delete(place(group, archive)).status_code == 204
	assert read(server, group, archive)['state'] == 'DELETED'
	refused(server.patch(place(group, archive), json={'paused': True}), 409, 'ONLINE_ARCHIVE_IS_DELETED')
	refused(server.delete(place(group, archive)), 404, 'ONLINE_ARCHIVE_NOT_FOUND')
	ok(server.patch(path(group, 'archived'), json={'paused': False}))
	gone(server, group, archive)


def test_a_failed_batch_is_tried_again(server, group):
	server.control('engine', {'fail': 'archive', 'times': 2})
	archive = made(server, group, 'failing')
	filled(server, group, archive, HOURS - 30 * 24)
	server.control('engine', {})


def test_how_many(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'full')
	for n in range(50):
		ok(server.post(base(group, 'full'), json=wish('t%d' % n, paused=True)))
	refused(server.post(base(group, 'full'), json=wish('more')), 400, 'TOO_MANY_ONLINE_ARCHIVES')


def test_a_cluster_takes_them_along(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'brief')
	archive = reached(server, group, ok(server.post(base(group, 'brief'), json=wish())), name='brief')
	filled(server, group, archive, name='brief')
	ok(server.delete(path(group, 'brief')), 202)
	pass_time(server, lambda: server.get(path(group, 'brief')).status_code == 404)
	refused(server.get(base(group, 'brief')), 404, 'CLUSTER_NOT_FOUND')
	create(server, group, 'brief')
	assert ok(server.get(base(group, 'brief')))['results'] == [] and lines(server, group, name='brief') == []


def test_a_table_that_is_gone(module_server):
	"""ORPHANED: it can be seen, says why, and goes on when the table is there again. Not recorded: what fails is whatever asks next, and
	on this server that is nobody else."""
	server = module_server
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'archived')
	archive = made(server, group, 'dropped')
	first = filled(server, group, archive, HOURS - 30 * 24)['rows']
	server.control('engine', {'fail': 'table', 'times': 2})
	server.advance(3600)
	orphan = reached(server, group, archive, 'ORPHANED')
	assert orphan['criteria'] == archive['criteria'] and held(server, group, archive)['rows'] >= first
	assert 'no such table' in server.get(place(group, archive)).headers['X-Steward-Reason']
	server.advance(600)
	reached(server, group, archive, 'ACTIVE')
	assert 'X-Steward-Reason' not in server.get(place(group, archive)).headers
	assert [e for e in told(server, group, 'ONLINE_ARCHIVE_ORPHANED') if archive['_id'] in str(e)]
	assert len([e for e in told(server, group, 'ONLINE_ARCHIVE_ACTIVE') if archive['_id'] in str(e)]) == 2


beside = pytest.mark.skipif(bool(dialect.NAME), reason='a dialect has nothing beside the reference')


@pytest.fixture(scope='module')
def apart(module_server):
	"""A cluster whose exchanges are not recorded: the reference has no such paths."""
	module_server.control('engine', {})
	group = module_server.project()['id']
	create(module_server, group, 'archived')
	return module_server, group


@beside
def test_a_preview(apart):
	server, group = apart
	ask = base(group) + ':preview?dbName=shop&collName=looked&'
	rows = HOURS - 30 * 24
	found = ok(server.get(ask + 'dateField=created&expireAfterDays=30'))
	assert found == {'rows': found['rows'], 'bytes': 128 * found['rows'], 'estimated': False} and found['rows'] in range(rows, rows + 3)
	assert ok(server.get(ask + 'query={"status": "done"}'))['rows'] in range(HOURS // 10, HOURS // 10 + 3)
	assert ok(server.get(base(group)))['results'] == [], 'nothing was made'
	archive = made(server, group, 'looked', paused=False)
	filled(server, group, archive, rows)
	server.advance(5 * 3600)
	server.patch(place(group, archive), json={'criteria': {'expireAfterDays': 20}, 'paused': True})
	assert ok(server.get(place(group, archive) + ':preview'))['rows'] >= 10 * 24
	for query, field in (('', 'dateField'), ('dateField=created', 'expireAfterDays'), ('dateField=created&expireAfterDays=-1', 'expireAfterDays'),
			('dateField=created&expireAfterDays=x', 'expireAfterDays'), ('dateField=created&expireAfterDays=1&dateFormat=ISO', 'dateFormat'), ('query={', 'query'),
			('query={}&dateField=created', 'query'), ('query={"missing": 1}', 'query'), ('dateField=missing&expireAfterDays=1', 'dateField')):
		refused(server.get(ask + query), 400, 'VALIDATION_ERROR', field)
	refused(server.get(base(group) + ':preview?collName=looked&dateField=created&expireAfterDays=1'), 400, 'VALIDATION_ERROR', 'dbName')
	refused(server.get(base(group) + ':preview?dbName=shop&collName=missing&dateField=created&expireAfterDays=1'), 400, 'VALIDATION_ERROR', 'collName')
	refused(server.get(ask + 'query={}&pretend=1'), 400)
	refused(server.get(base(group, 'nowhere') + ':preview?dbName=shop&collName=looked&query={}'), 404, 'CLUSTER_NOT_FOUND')
	refused(server.get('%s/%s:preview' % (base(group), NO_ID)), 404, 'ONLINE_ARCHIVE_NOT_FOUND')
	refused(Api(server).get(ask + 'query={}'), 401)
	assert server.post(ask + 'query={}').status_code == 405


def brought(server, group, archive, query=''):
	return server.post(place(group, archive) + ':bringBack' + query)


@beside
def test_rows_come_back(apart):
	server, group = apart
	archive = made(server, group, 'returning')
	rows = filled(server, group, archive, HOURS - 30 * 24)['rows']
	refused(brought(server, group, archive), 409, 'ONLINE_ARCHIVE_MUST_BE_PAUSED')
	ok(server.patch(place(group, archive), json={'paused': True}))
	reached(server, group, archive, 'PAUSED')
	refused(brought(server, group, archive, '?query={'), 400, 'VALIDATION_ERROR', 'query')
	refused(brought(server, group, archive, '?pretend=1'), 400)
	refused(Api(server).post(place(group, archive) + ':bringBack'), 401)
	refused(server.post('%s/%s:bringBack' % (base(group), NO_ID)), 404, 'ONLINE_ARCHIVE_NOT_FOUND')
	# Some of each file: this engine has a tenth of it for every query.
	def over(kinds):
		return [line for line in lines(server, group) if line['archiveId'] == archive['_id'] and line['operation'] == 'BRING_BACK'][kinds - 1:]
	files = held(server, group, archive)['files']
	ok(brought(server, group, archive, '?query={"status": "done"}'), 202)
	refused(brought(server, group, archive), 409, 'ONLINE_ARCHIVE_BRINGS_BACK')
	(line,) = pass_time(server, lambda: over(1))
	left = held(server, group, archive)
	assert line['files'] == files == left['files'] and line['rows'] == rows - left['rows'] in range(rows // 10 - files, rows // 10 + 1)
	assert [e for e in told(server, group, 'ONLINE_ARCHIVE_UPDATED') if archive['_id'] in str(e)]
	# All that is left.
	ok(brought(server, group, archive), 202)
	(line,) = pass_time(server, lambda: over(2))
	assert line['rows'] == left['rows'] and held(server, group, archive) == {'files': 0, 'rows': 0, 'bytes': 0}
	assert 'X-Steward-Brought-Back' not in server.get(place(group, archive)).headers
	assert ok(server.get(place(group, archive) + ':preview'))['rows'] >= rows
	# Nothing is there to come back; and what is resumed leaves again.
	ok(brought(server, group, archive), 202)
	(line,) = pass_time(server, lambda: over(3))
	assert line['rows'] == 0
	ok(server.patch(place(group, archive), json={'paused': False}))
	filled(server, group, archive, rows)


@beside
def test_rows_do_not_come_back_when_the_archive_is_resumed(apart):
	server, group = apart
	archive = made(server, group, 'resumed')
	filled(server, group, archive, HOURS - 30 * 24)
	ok(server.patch(place(group, archive), json={'paused': True}))
	reached(server, group, archive, 'PAUSED')
	server.control('engine', {'fail': 'archive', 'times': 1000})
	ok(brought(server, group, archive), 202)
	assert server.get(place(group, archive)).headers['X-Steward-Brought-Back'] == 'files=0, rows=0, bytes=0'
	ok(server.patch(place(group, archive), json={'paused': False}))
	assert 'X-Steward-Brought-Back' not in server.get(place(group, archive)).headers
	server.control('engine', {})


@beside
def test_rows_do_not_come_back_to_a_table_that_is_gone(apart):
	server, group = apart
	archive = made(server, group, 'nowhere')
	before = filled(server, group, archive, HOURS - 30 * 24)
	ok(server.patch(place(group, archive), json={'paused': True}))
	reached(server, group, archive, 'PAUSED')
	ok(brought(server, group, archive, '?query={"missing": 1}'), 202)
	pass_time(server, lambda: 'X-Steward-Brought-Back' not in server.get(place(group, archive)).headers)
	assert 'missing is no column' in server.get(place(group, archive)).headers['X-Steward-Reason'] and held(server, group, archive) == before


def metered(server, archive):
	"""What is open in the meter, and what has ended."""
	key = 'archive/' + archive['_id']
	opened = [json.loads(body)['open'].get(key) for (body,) in server.rows("SELECT body FROM doc WHERE kind = 'meter_open'")]
	ended = [json.loads(body) for (body,) in server.rows("SELECT body FROM doc WHERE kind = 'meter'")]
	return [o for o in opened if o], [e for e in ended if e['key'] == key]


def test_it_is_metered(server, group):
	archive = made(server, group, 'metered')
	bytes_ = filled(server, group, archive, HOURS - 30 * 24)['bytes']
	[opened] = pass_time(server, lambda: metered(server, archive)[0], step=60)
	assert opened['sku'] == 'AWS_ONLINE_ARCHIVE_STORAGE' and opened['region'] == 'US_EAST_1' and opened['amount'] == (bytes_ + 999) // 1000
	server.advance(DAY)
	pass_time(server, lambda: metered(server, archive)[0][0]['amount'] > opened['amount'], step=60)
	assert sum(e['amount'] == opened['amount'] for e in metered(server, archive)[1]) == 1
	assert server.delete(place(group, archive)).status_code == 204
	gone(server, group, archive)
	assert metered(server, archive)[0] == []
	assert ok(server.get('/skus/AWS_ONLINE_ARCHIVE_STORAGE'))['id'] == 'AWS_ONLINE_ARCHIVE_STORAGE'
