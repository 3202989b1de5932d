"""Statistics of collections on the simulated engine, whose values are a function of the clock and the names; and pinned namespaces."""
import pytest

import derive
from client import NO_ID, links, ok, refused
from test_clusters import create, path, settle
from test_measurements import nodes, seconds, stamp

data = derive.Api()
METRICS = next(p for p in data.by_id['listCollStatMeasurements']['queryParams'] if p['name'] == 'metrics')['items']['enum']
KINDS = ('READS', 'WRITES', 'COMMANDS', 'TOTAL_OPS')
TABLES = ['accounts', 'addresses', 'articles', 'audit.trail', 'audit.visits', 'authors', 'carts', 'comments', 'contacts', 'customers',
	  'deliveries', 'devices', 'documents', 'employees', 'invoices', 'items', 'messages', 'orders', 'payments', 'prices', 'products',
	  'reviews', 'sessions', 'suppliers']
VIEWS = ('PRIMARY', 'SECONDARY', 'INDIVIDUAL_PROCESS')


@pytest.fixture(scope='module')
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'counted')
	server.advance(3 * 3600)
	return group


class Stats:
	"""What is told of the tables of a process, or of a view of a cluster."""

	def __init__(self, server, base):
		self.server, self.base = server, base

	def namespaces(self, query='period=PT1H'):
		return ok(self.server.get('%s/collStats/namespaces?%s' % (self.base, query)))['rankedNamespaces']

	def get(self, query='', table='orders', database='postgres'):
		return self.server.get('%s/%s/%s/collStats/measurements?%s' % (self.base, database, table, query))

	def points(self, metric, query='period=PT1H', **more):
		"""What is known, by time."""
		one, = ok(self.get('metrics=%s&%s' % (metric, query), **more))['measurements']
		return {p['timestamp']: p['value'] for p in one['dataPoints'] if 'value' in p}

	def values(self, metric, query='period=PT1H', **more):
		one, = ok(self.get('metrics=%s&%s' % (metric, query), **more))['measurements']
		assert one['name'] == metric
		return [p.get('value') for p in one['dataPoints']]


def view(server, group, name, cluster='counted'):
	return Stats(server, '%s/%s' % (path(group, cluster), name))


def process(server, group, **of):
	return Stats(server, nodes(server, group, **of)[0].base)


def pins(server, group, cluster='counted'):
	return path(group, cluster) + '/collStats/pinned'


def test_metrics(server, group):
	doc = ok(server.get('/groups/%s/collStats/metrics' % group))
	assert [m['metricName'] for m in doc['metrics']] == METRICS and doc['groupId'] == group and len(METRICS) == 24
	assert {m['metricName'] for m in doc['metrics'] if m['units'] is None} == {k.replace('_OPS', '') + '_OPS' for k in KINDS}
	assert links(doc)['self'].endswith('/groups/%s/collStats/metrics' % group)
	refused(server.get('/groups/%s/collStats/metrics' % NO_ID), 404)


def test_the_document(server, group):
	primary = nodes(server, group, typeName='REPLICA_PRIMARY')[0]
	one = ok(Stats(server, primary.base).get('period=PT1H'))
	assert set(one) == {'collectionName', 'databaseName', 'end', 'granularity', 'groupId', 'links', 'measurements', 'processId', 'start'}
	assert (one['databaseName'], one['collectionName'], one['granularity']) == ('postgres', 'orders', 'PT1M')
	assert one['groupId'] == group and one['processId'] == primary.id and seconds(one['end']) - seconds(one['start']) == 3600
	assert [m['name'] for m in one['measurements']] == METRICS
	assert {m['name']: m['units'] for m in one['measurements']} == {
		n: 'SCALAR_PER_SECOND' if n.endswith('_OPS') else 'MILLISECONDS' for n in METRICS}
	for m in one['measurements']:
		times = [seconds(p['timestamp']) for p in m['dataPoints']]
		assert len(times) in (60, 61) and times == sorted(times) and all(t % 60 == 0 for t in times)
	assert ok(server.get(links(one)['self'])) == one, 'a link to itself, with all that was asked for'
	whole = ok(view(server, group, 'PRIMARY').get('period=PT1H'))
	assert whole['clusterView'] == 'PRIMARY' and whole['clusterId'] == ok(server.get(path(group, 'counted')))['id']
	assert whole['processId'] == primary.id and whole['measurements'] == one['measurements'], 'one process leads'
	plain = ok(view(server, group, 'PRIMARY').get())
	assert plain['measurements'] == one['measurements'], 'the last hour, where nothing is said'
	assert '?' not in links(plain)['self'].rsplit('/', 1)[1] and ok(server.get(links(plain)['self'])) == plain
	again = ok(view(server, group, 'PRIMARY').get('start=%s&end=%s' % (one['start'], one['end'])))
	assert again['measurements'] == one['measurements']


def test_values(server, group):
	"""Sums add up, an average is one, and percentiles are in order and around it."""
	found = {m['name']: [p['value'] for p in m['dataPoints']]
		 for m in ok(view(server, group, 'PRIMARY').get('period=PT1H'))['measurements']}
	for what in ('OPS', 'LATENCY'):
		for total, *parts in zip(*(found['%s_%s' % (k, what)] for k in ('TOTAL', 'READS', 'WRITES', 'COMMANDS'))):
			assert total == pytest.approx(sum(parts), rel=1e-5) and min(parts) > 0
	for kind in KINDS:
		of = kind.replace('TOTAL_OPS', 'TOTAL')
		for ops, ms, mean, p50, p95, p99 in zip(found[of + '_OPS'], found[of + '_LATENCY'], found['AVERAGE_%s_LATENCY' % kind],
				*(found['%s_P%d_VALUE' % (kind, p)] for p in (50, 95, 99))):
			assert ms / ops == pytest.approx(mean, rel=1e-5)
			assert 0 < p50 < p95 <= p99 and p50 / 4 < mean < p99


def test_views(server, group):
	"""A view is the sum of its processes; standbys do not write."""
	first, second = nodes(server, group, typeName='REPLICA_SECONDARY')
	parts = [Stats(server, n.base).values('READS_OPS') for n in (first, second)]
	both = view(server, group, 'SECONDARY').values('READS_OPS')
	assert both == [pytest.approx(a + b, rel=1e-5) for a, b in zip(*parts)] and parts[0] != parts[1]
	every = view(server, group, 'INDIVIDUAL_PROCESS').values('READS_OPS')
	assert every == [pytest.approx(a + b, rel=1e-5) for a, b in zip(both, view(server, group, 'PRIMARY').values('READS_OPS'))]
	assert set(view(server, group, 'SECONDARY').values('WRITES_OPS')) == {0.0}
	assert set(view(server, group, 'SECONDARY').values('AVERAGE_WRITES_LATENCY')) == {None}, 'of nothing there is no mean'
	assert set(view(server, group, 'SECONDARY').values('WRITES_P99_VALUE')) == {None}
	assert 'processId' not in ok(view(server, group, 'SECONDARY').get())


def test_coarser_percentiles_are_true(server, group):
	"""Of the hour's statements, not the mean of minutes' percentiles: within those of its minutes."""
	one = view(server, group, 'PRIMARY')
	end = seconds(ok(one.get('period=PT1M'))['end']) // 3600 * 3600
	wide = 'start=%s&end=%s' % (stamp(end - 90 * 86400), stamp(end))
	assert ok(one.get(wide))['granularity'] == 'P1D'
	for period, granularity in (('PT12H', 'PT1M'), ('PT13H', 'PT5M'), ('P2D', 'PT5M'), ('P3D', 'PT1H'), ('P31D', 'PT1H'), ('P32D', 'P1D')):
		assert ok(one.get('period=' + period))['granularity'] == granularity
	assert ok(one.get('start=%s&end=%s' % (stamp(end - 5 * 86400), stamp(end - 5 * 86400 + 60))))['granularity'] == 'PT5M', 'no minutes of then'
	hour = 'start=%s&end=%s' % (stamp(end - 3600), stamp(end))
	fine = one.values('TOTAL_OPS_P95_VALUE', hour)
	five = [v for v in one.values('TOTAL_OPS_P95_VALUE', 'period=PT13H') if v is not None]
	assert len(fine) == 60 and min(fine) < max(fine)
	assert min(fine) / 1.5 < five[-1] < max(fine) * 1.5


def test_namespaces(server, group):
	primary = process(server, group, typeName='REPLICA_PRIMARY')
	found = view(server, group, 'PRIMARY').namespaces()
	assert len(found) == len(set(found)) == 20 and found == primary.namespaces(), 'the first of more'
	assert all(n.startswith('postgres.') for n in found)
	took = [sum(primary.values('TOTAL_LATENCY', table=n.split('.', 1)[1])) for n in found]
	assert took == sorted(took, reverse=True)
	doc = ok(server.get(path(group, 'counted') + '/PRIMARY/collStats/namespaces'))
	assert doc['rankedNamespaces'] == found and doc['groupId'] == group
	assert doc['identifierId'] == ok(server.get(path(group, 'counted')))['id']
	one = nodes(server, group)[0]
	assert ok(server.get(one.base + '/collStats/namespaces'))['identifierId'] == one.id
	assert view(server, group, 'PRIMARY').namespaces('start=2020-01-01T00:00:00Z&end=2020-01-02T00:00:00Z') == [], 'before there was any'
	schema = Stats(server, path(group, 'counted') + '/PRIMARY')
	assert len(schema.values('READS_OPS', table='audit.trail')) > 50, 'a table of a schema'


def test_pins(server, group):
	"""Added, replaced and taken away; those that are there come beyond the first twenty."""
	one, at = view(server, group, 'PRIMARY'), pins(server, group)
	doc = ok(server.get(at))
	assert doc == {'clusterId': ok(server.get(path(group, 'counted')))['id'], 'groupId': group, 'pinnedNamespaces': []}
	first = one.namespaces()
	added = ok(server.patch(at, json={'namespaces': ['postgres.orders', 'shop.later']}))
	assert added['pinnedNamespaces'] == ['postgres.orders', 'shop.later']
	assert ok(server.patch(at, json={'namespaces': ['shop.later', 'a.b.c']}))['pinnedNamespaces'] == ['postgres.orders', 'shop.later', 'a.b.c']
	assert one.namespaces() == first, 'names of no table are not shown'
	put = ok(server.put(at, json={'namespaces': ['a.b']}))
	assert put['pinnedNamespaces'] == ['a.b'] == ok(server.get(at))['pinnedNamespaces']
	out = path(group, 'counted') + '/collStats/unpin'
	assert ok(server.patch(out, json={'namespaces': ['a.b', 'never.was']}))['pinnedNamespaces'] == []
	assert ok(server.patch(out, json={}))['pinnedNamespaces'] == []


def test_a_pinned_namespace_is_shown(server, group):
	every = view(server, group, 'PRIMARY')
	first = every.namespaces()
	names = [n for n in TABLES if 'postgres.' + n not in first]
	assert len(names) == 4 and len(TABLES) == 24
	ok(server.put(pins(server, group), json={'namespaces': ['postgres.' + names[0]]}))
	assert every.namespaces() == first + ['postgres.' + names[0]]
	ok(server.put(pins(server, group), json={'namespaces': []}))
	assert every.namespaces() == first


def test_what_pins_may_be(server, group):
	at = pins(server, group)
	for bad in ('orders', '.orders', 'orders.', '', 'x.' + 'y' * 200):
		refused(server.patch(at, json={'namespaces': ['a.b', bad]}), 400, 'VALIDATION_ERROR', 'namespaces[1]')
		refused(server.patch(path(group, 'counted') + '/collStats/unpin', json={'namespaces': [bad]}), 400)
	refused(server.put(at, json={'namespaces': ['a.b', 'a.b']}), 400)
	refused(server.put(at, json={'namespaces': 'a.b'}), 400)
	refused(server.put(at, json={'pinnedNamespaces': ['a.b']}), 400)
	many = ['db.t%d' % i for i in range(21)]
	refused(server.put(at, json={'namespaces': many}), 400, 'VALIDATION_ERROR', 'namespaces')
	assert len(ok(server.put(at, json={'namespaces': many[:20]}))['pinnedNamespaces']) == 20
	refused(server.patch(at, json={'namespaces': many}), 400, 'VALIDATION_ERROR', 'namespaces')
	assert len(ok(server.get(at))['pinnedNamespaces']) == 20
	ok(server.put(at, json={'namespaces': []}))


def test_pins_go_with_their_cluster(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'brief')
	ok(server.put(pins(server, group, 'brief'), json={'namespaces': ['a.b']}))
	ok(server.delete(path(group, 'brief')), 202)
	settle(server, group, 'brief')
	refused(server.get(pins(server, group, 'brief')), 404)
	create(server, group, 'brief')
	assert ok(server.get(pins(server, group, 'brief')))['pinnedNamespaces'] == []


@pytest.mark.parametrize('query, field', [
	('start=2026-01-01T00:00:00Z', 'period'), ('end=2026-01-01T00:00:00Z', 'period'), ('period=soon', 'period'),
	('period=PT1H&start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z', 'period'),
	('start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z', 'start'),
])
def test_what_is_refused(server, group, query, field):
	one = view(server, group, 'PRIMARY')
	refused(one.get(query), 400, 'VALIDATION_ERROR', field)
	refused(server.get('%s/collStats/namespaces?%s' % (one.base, query)), 400, 'VALIDATION_ERROR', field)


def test_what_is_not_there(server, group):
	for base in (path(group, 'counted') + '/PRIMARY', nodes(server, group)[0].base):
		one = Stats(server, base)
		refused(one.get(table='nothing'), 404, 'COLLECTION_NOT_FOUND')
		refused(one.get(database='nothing'), 404)
		refused(one.get(table='x' * 300), 404)
		refused(one.get('metrics=NOTHING'), 400)
		refused(one.get('metrics=READS_OPS&metrics=READS_OPS'), 400)
	refused(server.get(path(group, 'counted') + '/EVERY/collStats/namespaces'), 404)
	for base in (path(group, 'none') + '/PRIMARY', '/groups/%s/processes/x:27017' % group):
		refused(server.get(base + '/collStats/namespaces'), 404)
		refused(Stats(server, base).get(), 404)
	for call in (server.get, lambda at: server.put(at, json={'namespaces': []}), lambda at: server.patch(at, json={'namespaces': []})):
		refused(call(pins(server, group, 'none')), 404)
	refused(server.patch(path(group, 'none') + '/collStats/unpin', json={'namespaces': []}), 404)


def test_others_see_nothing(server, group):
	"""Another project's path does not lead to the tables, and who may not read the project is told nothing."""
	other = server.project()['id']
	primary = nodes(server, group, typeName='REPLICA_PRIMARY')[0]
	for base in ('/groups/%s/processes/%s' % (other, primary.id), path(other, 'counted') + '/PRIMARY'):
		refused(server.get(base + '/collStats/namespaces'), 404)
		refused(Stats(server, base).get(), 404)
	refused(server.get(pins(server, other)), 404)
	refused(server.anonymous.get(primary.base + '/collStats/namespaces'), 401)
	refused(server.anonymous.put(pins(server, group), json={'namespaces': []}), 401)


def test_a_paused_cluster_keeps_what_it_had(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'rests')
	server.advance(1800)
	ok(server.patch(path(group, 'rests'), json={'paused': True}))
	settle(server, group, 'rests')
	server.advance(1200)
	one = view(server, group, 'INDIVIDUAL_PROCESS', 'rests')
	values = one.values('TOTAL_OPS', 'period=PT40M')
	assert None in values and any(values) and all(v is None for v in values[-10:])
	assert len(one.namespaces('period=PT40M')) == 20 and one.namespaces('period=PT5M') == []
	refused(one.get(table='nothing'), 404)


def test_a_switchover_moves_the_view(server):
	"""The primary's values are those of who led at the time."""
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'moves')
	server.advance(1200)
	before = nodes(server, group, typeName='REPLICA_PRIMARY')[0]
	ok(server.post(path(group, 'moves') + '/restartPrimaries'))
	settle(server, group, 'moves')
	server.advance(1200)
	after = nodes(server, group, typeName='REPLICA_PRIMARY')[0]
	assert after.id != before.id
	old, new, led = (x.points('WRITES_OPS') for x in (
		Stats(server, before.base), Stats(server, after.base), view(server, group, 'PRIMARY', 'moves')))
	first, *_, last = [t for t in led if t in old and t in new]
	assert led[first] == old[first] > 0 == new[first] and led[last] == new[last] > 0 == old[last]


def test_links(server, group):
	rel = server.base_url + '/rels/'
	found = links(ok(server.get(path(group, 'counted'))))
	for name in VIEWS:
		assert 'rankedNamespaces' in ok(server.get(found[rel + name + '/collStats/namespaces']))
	assert ok(server.get(found[rel + 'collStats/pinned']))['groupId'] == group
	assert 'rankedNamespaces' in ok(server.get(links(ok(server.get(nodes(server, group)[0].base)))[rel + 'collStats/namespaces']))
