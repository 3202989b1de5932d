"""Measurements of processes, databases, disks and search on the simulated engine, whose values are a function of the clock."""
import datetime, pathlib, re

import pytest

import derive
from client import NO_ID, links, ok, refused
from test_clusters import create, path, settle

data = derive.Api()
DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'metrics.md'
STEPS = {'PT1M': 60, 'PT5M': 300, 'PT1H': 3600, 'P1D': 86400}
KEPT = {'PT1M': 2880, 'PT5M': 4032, 'PT1H': 1488, 'P1D': 732}


def names(operation, parameter='m'):
	return next(p for p in data.by_id[operation]['queryParams'] if p['name'] == parameter)['items']['enum']


PROCESS, DATABASE, DISK = (names(o) for o in ('getProcessMeasurements', 'getDatabaseMeasurements', 'getProcessDiskMeasurements'))
INDEX, HARDWARE = names('listIndexMeasurements', 'metrics'), names('listMeasurements', 'metrics')


def seconds(text):
	return datetime.datetime.strptime(text, '%Y-%m-%dT%H:%M:%SZ').replace(tzinfo=datetime.timezone.utc).timestamp()


def stamp(t):
	return datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')


class Node:
	"""A process of a cluster, and what is measured of it."""

	def __init__(self, server, group, document):
		self.server, self.group, self.document, self.id = server, group, document, document['id']
		self.base = '/groups/%s/processes/%s' % (group, self.id)

	def get(self, query, below=''):
		return self.server.get('%s%s/measurements?%s' % (self.base, below, query))

	def points(self, metric, granularity='PT1M', period='PT1H', below=''):
		doc = ok(self.get('granularity=%s&period=%s&m=%s' % (granularity, period, metric), below))
		one, = doc['measurements']
		assert one['name'] == metric
		return one['dataPoints']

	def values(self, *args, **more):
		return [p.get('value') for p in self.points(*args, **more)]


def nodes(server, group, **of):
	found = [Node(server, group, p) for p in ok(server.get('/groups/%s/processes' % group))['results']]
	return [n for n in found if all(n.document[k] == v for k, v in of.items())]


@pytest.fixture(scope='module')
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'measured')
	server.advance(3 * 3600)
	return group


@pytest.fixture(scope='module')
def primary(server, group):
	return nodes(server, group, typeName='REPLICA_PRIMARY')[0]


@pytest.fixture(scope='module')
def standby(server, group):
	return nodes(server, group, typeName='REPLICA_SECONDARY')[0]


def test_the_document(server, group, primary):
	doc = ok(primary.get('granularity=PT5M&period=PT1H&m=CONNECTIONS&m=OPCOUNTER_CMD'))
	assert set(doc) == {'end', 'granularity', 'groupId', 'hostId', 'links', 'measurements', 'processId', 'start'}
	assert doc['granularity'] == 'PT5M' and doc['groupId'] == group and doc['hostId'] == doc['processId'] == primary.id
	assert seconds(doc['end']) - seconds(doc['start']) == 3600
	assert [m['name'] for m in doc['measurements']] == ['CONNECTIONS', 'OPCOUNTER_CMD']
	assert [m['units'] for m in doc['measurements']] == ['SCALAR', 'SCALAR_PER_SECOND']
	for m in doc['measurements']:
		assert len(m['dataPoints']) in (12, 13) and all(p['value'] >= 0 for p in m['dataPoints'])
		times = [seconds(p['timestamp']) for p in m['dataPoints']]
		assert times == sorted(times) and all(t % 300 == 0 for t in times)
		assert seconds(doc['start']) <= times[0] and times[-1] <= seconds(doc['end'])
	assert links(doc)['self'].endswith('/processes/%s/measurements?granularity=PT5M&period=PT1H&m=CONNECTIONS&m=OPCOUNTER_CMD' % primary.id)
	assert ok(server.get(links(doc)['self'])) == doc, 'a link to itself, with all that was asked for'
	again = ok(primary.get('granularity=PT5M&start=%s&end=%s&m=CONNECTIONS' % (doc['start'], doc['end'])))
	assert again['measurements'][0] == doc['measurements'][0], 'the same whenever it is asked, and by its ends too'
	assert ok(primary.get('granularity=PT1M&period=PT10M&envelope=true'))['content']['processId'] == primary.id


def test_every_metric(primary):
	"""All that the reference names, by name and together, with a unit; those without a source are empty, and the page says so."""
	doc = ok(primary.get('granularity=PT1M&period=PT10M'))
	assert [m['name'] for m in doc['measurements']] == PROCESS
	empty = {m['name'] for m in doc['measurements'] if not m['dataPoints']}
	told = set(re.findall(r'^\| `(\w+)` \| \w+ \| \*\*empty\*\*', DOCS.read_text(), re.M))
	assert empty == told & set(PROCESS) and len(empty) < 40
	for i in range(0, len(PROCESS), 10):
		some = PROCESS[i:i + 10]
		page = ok(primary.get('granularity=PT1M&period=PT10M&' + '&'.join('m=' + n for n in some)))
		assert [m['name'] for m in page['measurements']] == some
		assert page['measurements'] == doc['measurements'][i:i + 10]
	text = DOCS.read_text()
	for name in {*PROCESS, *DATABASE, *DISK, *INDEX, *HARDWARE}:
		assert '| `%s` |' % name in text, name


def test_units_and_relations(primary, standby):
	one = {m['name']: [p.get('value') for p in m['dataPoints']]
	       for m in ok(primary.get('granularity=PT5M&period=PT2H'))['measurements']}
	for name in PROCESS:
		if name.startswith('MAX_') and one[name[4:]] and one[name]:
			assert all(a <= b * 1.00001 for a, b in zip(one[name[4:]], one[name])), name
	for a, b, c in zip(one['PROCESS_CPU_USER'], one['PROCESS_NORMALIZED_CPU_USER'], one['GLOBAL_LOCK_CURRENT_QUEUE_TOTAL']):
		assert a == pytest.approx(2 * b, rel=1e-4) and c >= 0
	for a, b, c in zip(*(one['GLOBAL_LOCK_CURRENT_QUEUE_' + n] for n in ('READERS', 'WRITERS', 'TOTAL'))):
		assert a + b == pytest.approx(c, rel=1e-4)
	assert set(primary.values('OPLOG_REPLICATION_LAG')) == {0.0}, 'who leads is behind nobody'
	assert all(v >= 0 for v in standby.values('OPLOG_REPLICATION_LAG'))
	assert set(standby.values('OPCOUNTER_INSERT')) == {0.0} and min(primary.values('OPCOUNTER_INSERT')) > 0


def test_coarser_is_made_of_finer(server, primary):
	now = seconds(ok(primary.get('granularity=PT1M&period=PT1M&m=CONNECTIONS'))['end'])
	hour = now - now % 3600 - 3600
	ends = 'start=%s&end=%s' % (stamp(hour), stamp(hour + 3600))
	fine = ok(primary.get('granularity=PT1M&m=CONNECTIONS&' + ends))['measurements'][0]['dataPoints']
	five = ok(primary.get('granularity=PT5M&m=CONNECTIONS&' + ends))['measurements'][0]['dataPoints']
	one = ok(primary.get('granularity=PT1H&m=CONNECTIONS&' + ends))['measurements'][0]['dataPoints']
	assert (len(fine), len(five), len(one)) == (60, 12, 1) and one[0]['timestamp'] == stamp(hour)
	for i, p in enumerate(five):
		assert p['value'] == pytest.approx(sum(x['value'] for x in fine[5 * i:5 * i + 5]) / 5, rel=1e-4)
	assert min(x['value'] for x in fine) <= one[0]['value'] <= max(x['value'] for x in fine)


def test_databases_and_disks(server, primary):
	for kind, name, field, metrics in (('databases', 'postgres', 'databaseName', DATABASE), ('disks', 'data', 'partitionName', DISK)):
		doc = ok(primary.get('granularity=PT1M&period=PT30M&' + '&'.join('m=' + m for m in metrics[:9]), '/%s/%s' % (kind, name)))
		assert doc[field] == name and doc['processId'] == primary.id and [m['name'] for m in doc['measurements']] == metrics[:9]
		assert [m['name'] for m in doc['measurements'] if not m['dataPoints']] == (['DATABASE_EXTENT_COUNT'] if kind == 'databases' else [])
		whole = ok(primary.get('granularity=PT1M&period=PT30M', '/%s/%s' % (kind, name)))
		assert [m['name'] for m in whole['measurements']] == metrics
		refused(primary.get('granularity=PT1M&period=PT30M', '/%s/nothing' % kind), 404,
			'DATABASE_NOT_FOUND' if kind == 'databases' else 'DEVICE_NOT_FOUND')
		refused(primary.get('granularity=PT1M&period=PT30M&m=CONNECTIONS', '/%s/%s' % (kind, name)), 400)
	both = [primary.values('DISK_PARTITION_SPACE_PERCENT_' + n, below='/disks/data') for n in ('FREE', 'USED')]
	assert all(a + b == pytest.approx(100, rel=1e-4) for a, b in zip(*both))
	three = [primary.values('DISK_PARTITION_IOPS_' + n, below='/disks/data') for n in ('READ', 'WRITE', 'TOTAL')]
	assert all(a + b == pytest.approx(c, rel=1e-4) for a, b, c in zip(*three))


def test_search(server, group, primary):
	base = '/groups/%s/hosts/%s/fts/metrics' % (group, primary.id)
	doc = ok(server.get(base))
	assert {m['metricName'] for m in doc['indexMetrics']} == set(INDEX) and doc['statusMetrics'] == []
	assert {m['metricName'] for m in doc['hardwareMetrics']} == set(HARDWARE) and doc['processId'] == primary.id
	window = 'granularity=PT1H&period=P1D&metrics='
	doc = ok(server.get('%s/measurements?%s' % (base, window) + '&metrics='.join(HARDWARE[:10])))
	assert [m['name'] for m in doc['hardwareMeasurements']] == HARDWARE[:10] and doc['statusMeasurements'] == []
	for tail, metrics in (('/indexes/postgres/books', INDEX), ('/indexes/postgres/books/by_title', INDEX[:2])):
		doc = ok(server.get('%s%s/measurements?%s' % (base, tail, window) + '&metrics='.join(metrics)))
		assert [m['name'] for m in doc['indexStatsMeasurements']] == metrics and doc['indexIds'] == []
		assert doc['databaseName'] == 'postgres' and doc['collectionName'] == 'books' and doc['granularity'] == 'PT1H'
		assert all(m['dataPoints'] == [] for m in doc['indexStatsMeasurements'])
	nowhere = '/groups/%s/hosts/x:27017/fts/metrics' % group
	for tail in ('', *(t + '/measurements?' + window + INDEX[0] for t in ('/indexes/postgres/books', '/indexes/postgres/books/by_title'))):
		refused(server.get(nowhere + tail), 404)
	refused(server.get('%s/measurements?granularity=PT1H&period=P1D' % base), 400, None, 'metrics')
	refused(server.get('%s/measurements?%sINDEX_SIZE_ON_DISK' % (base, window)), 400)


@pytest.mark.parametrize('query, field', [
	('period=PT1H', 'granularity'), ('granularity=PT2M&period=PT1H', 'granularity'), ('granularity=PT10S&period=PT1H', 'granularity'),
	('granularity=PT1M', 'period'), ('granularity=PT1M&start=2026-01-01T00:00:00Z', 'period'),
	('granularity=PT1M&end=2026-01-01T00:00:00Z', 'period'),
	('granularity=PT1M&period=PT1H&start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z', 'period'),
	('granularity=PT1M&start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z', 'start'),
	('granularity=PT1M&start=yesterday&end=2026-01-01T00:00:00Z', 'start'),
	*(('granularity=PT1M&period=' + p, 'period') for p in ('1H', 'P', 'PT', 'PT0S', 'P1H', 'PT1H1D', 'PT1M1H', '-PT1H', 'PT1.5H', 'P99Y', 'PTT1H')),
])
def test_what_is_refused(primary, query, field):
	refused(primary.get(query), 400, 'VALIDATION_ERROR', field)


def test_bounds(primary):
	refused(primary.get('granularity=PT1M&period=PT1H&m=NOTHING'), 400)
	refused(primary.get('granularity=PT1M&period=PT1H&m=CONNECTIONS&m=CONNECTIONS'), 400)
	refused(primary.get('granularity=PT1M&period=PT1H&' + '&'.join('m=' + m for m in PROCESS[:11])), 400)
	for period in ('PT1S', 'PT90M', 'P1DT2H3M4S', 'P2W', 'P1M', 'P1Y'):
		ok(primary.get('granularity=P1D&m=CONNECTIONS&period=' + period))


def test_it_is_bounded_by_what_is_kept(server):
	"""No more points than the rings have, and none from before the process was there."""
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'kept')
	node = nodes(server, group)[0]
	assert len(node.points('CONNECTIONS', 'PT1M', 'P1Y')) <= 2, 'it is new'
	server.advance(20 * 86400)
	node = nodes(server, group)[0]
	for granularity, step in STEPS.items():
		points = node.points('CONNECTIONS', granularity, 'P1Y')
		want = min(KEPT[granularity], 20 * 86400 // step)
		assert want - 1 <= len(points) <= want + 2, granularity
		assert all('value' in p for p in points[1:]), 'the first one may be of an hour in whose last minutes it came'
	refused(node.get('granularity=PT5M&period=P14D'), 400, None, 'm')
	assert node.values('RESTARTS_IN_LAST_HOUR', 'PT1H', 'P3D')[-1] == 0


def test_a_stopped_node_is_a_gap(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'rests')
	server.advance(1800)
	ok(server.patch(path(group, 'rests'), json={'paused': True}))
	settle(server, group, 'rests')
	server.advance(1200)
	node = nodes(server, group)[0]
	values = node.values('CONNECTIONS', period='PT40M')
	assert None in values and any(v is not None for v in values)
	assert all(v is None for v in values[-10:]), 'points without a value'
	stored = node.values('DATABASE_DATA_SIZE', period='PT40M', below='/databases/postgres')
	assert None in stored and any(stored), 'what it had is still told'


def test_a_switchover_moves_the_lag(server, group):
	"""The series stays with its node; what only a primary or a standby has changes hands."""
	before = nodes(server, group, typeName='REPLICA_PRIMARY')[0]
	server.advance(600)
	ok(server.post(path(group, 'measured') + '/restartPrimaries'))
	settle(server, group, 'measured')
	server.advance(600)
	after = nodes(server, group, typeName='REPLICA_PRIMARY')[0]
	assert after.id != before.id
	assert before.values('OPCOUNTER_INSERT')[-1] == 0 < max(v for v in before.values('OPCOUNTER_INSERT'))
	assert after.values('OPCOUNTER_INSERT')[0] == 0 < after.values('OPCOUNTER_INSERT')[-2]
	assert all(v is None or v >= 0 for n in (before, after) for v in n.values('OPLOG_REPLICATION_LAG'))


def test_who_may(server, group, primary):
	query = '/measurements?granularity=PT1M&period=PT1H'
	refused(server.anonymous.get(primary.base + query), 401)
	refused(server.get('/groups/%s/processes/%s%s' % (NO_ID, primary.id, query)), 404)
	other = server.project()['id']
	refused(server.get('/groups/%s/processes/%s%s' % (other, primary.id, query)), 404)
	refused(server.get('/groups/%s/processes/x:27017%s' % (group, query)), 404)
	found = links(ok(server.get(primary.base)))
	assert found[server.base_url + '/rels/measurements'].startswith(server.base_url)
	assert ok(server.get(found[server.base_url + '/rels/measurements']))['processId'] == primary.id
