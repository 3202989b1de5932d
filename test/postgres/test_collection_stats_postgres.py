"""Statistics of the tables of real servers: statements are counted with the time that they took, standbys have their own, pinned
tables are kept beyond the first ones, and what was dropped is gone. The clock is moved by hand, a minute at a time."""
import json, pathlib, re, time

import psycopg2
import pytest

import client
from client import ok, refused
from databases import until
from test_measurements_postgres import PASSWORD, USER, Ticks

TOP = 20
MODULE = pathlib.Path(client.binary()).parent / 'src' / 'module' / 'steward.so'
counted = pytest.mark.skipif(not MODULE.exists(), reason='the node module is not built')


class Tables(Ticks):
	def minute(self, count=1):
		"""The samples of another minute are there, of all three nodes: the round after it has begun."""
		for _ in range(count):
			self.server.advance(62 - int(self.now()) % 60)
			self.tick(4)

	def view(self, name='PRIMARY'):
		return '%s/%s' % (self.cluster, name)

	def namespaces(self, base=None, query='period=PT1H'):
		return ok(self.server.get('%s/collStats/namespaces?%s' % (base or self.view(), query)))['rankedNamespaces']

	def stats(self, table, base=None, database='postgres'):
		return self.server.get('%s/%s/%s/collStats/measurements?period=PT1H' % (base or self.view(), database, table))

	def figures(self, table, base=None, database='postgres'):
		"""Of each metric, the values that are known, by time."""
		found = ok(self.stats(table, base, database))['measurements']
		return {m['name']: {p['timestamp']: p['value'] for p in m['dataPoints'] if 'value' in p} for m in found}

	def last(self, table, base=None):
		"""The figures of the last minute that has some."""
		found = self.figures(table, base)
		at = max(found['TOTAL_OPS'])
		return {name: values.get(at) for name, values in found.items()}

	def run(self, *statements, times=1, standby=False, **where):
		"""On the primary, or on the standby of which this returns the process."""
		string = self.string.replace('=read-write', '=standby') if standby else self.string
		c = psycopg2.connect(string, user=USER, password=PASSWORD, **where)
		c.autocommit = True
		with c.cursor() as cursor:
			for _ in range(times):
				for s in statements:
					cursor.execute(s)
			cursor.execute('select host(inet_server_addr())')
			address = cursor.fetchone()[0]
		c.close()
		hosts, addresses = (re.search(x, string).group(1).split(',') for x in ('@?([^/@?]*:[0-9]+)/', 'hostaddr=([^&]*)'))
		return hosts[addresses.index(address)]


@pytest.fixture(scope='module')
def world(start_place):
	w = Tables(start_place(clock='virtual'), 'tables')
	w.minute()
	w.run('create table fast (id int primary key)', 'create table slow (id int)', 'insert into slow values (1)',
	      'create schema sales', 'create table sales.orders (id int)', 'create table "a.b" (id int)')
	w.minute()
	return w


@pytest.mark.skipif(MODULE.exists(), reason='the node module is built')
def test_without_the_module_there_is_nothing(world):
	world.run('select * from fast', times=5)
	world.minute()
	assert world.namespaces() == []
	doc = ok(world.stats('fast'))
	assert len(doc['measurements']) == 24 and all(m['dataPoints'] == [] for m in doc['measurements'])


@counted
def test_statements_are_counted(world):
	w = world
	w.run('insert into fast select generate_series(1, 10)', 'insert into sales.orders values (1)', 'select * from "a.b"')
	w.minute()
	minute = time.strftime('%Y-%m-%dT%H:%M:00Z', time.gmtime(w.now()))
	w.run('select * from fast where id = 1', times=30)
	w.run('select pg_sleep(0.2) from slow', times=10)
	w.run('insert into fast values (generate_series(11, 20))', 'update sales.orders set id = 2', 'alter table sales.orders add x int')
	w.minute()
	fast, slow, orders = (w.last(t) for t in ('fast', 'slow', 'sales.orders'))
	assert max(w.figures('fast')['TOTAL_OPS']) == minute, 'the minute in which it was done'
	assert fast['READS_OPS'] == pytest.approx(3 * slow['READS_OPS'], rel=1e-4) and slow['READS_OPS'] > 0
	assert fast['WRITES_OPS'] * 30 == pytest.approx(fast['READS_OPS'], rel=1e-4)
	assert orders['WRITES_OPS'] > 0 < orders['COMMANDS_OPS'] and orders['READS_OPS'] == 0 and orders['AVERAGE_READS_LATENCY'] is None
	for one, kinds in ((fast, ('READS', 'WRITES', 'TOTAL_OPS')), (slow, ('READS', 'TOTAL_OPS')), (orders, ('COMMANDS',))):
		for kind in kinds:
			p50, p95, p99 = (one['%s_P%d_VALUE' % (kind, p)] for p in (50, 95, 99))
			assert 0 < p50 <= p95 <= p99 and one['AVERAGE_%s_LATENCY' % kind] > 0
	assert 130 <= slow['READS_P50_VALUE'] < 5000 and slow['AVERAGE_READS_LATENCY'] >= 200 > fast['READS_P50_VALUE']
	assert slow['TOTAL_LATENCY'] == slow['READS_LATENCY'] > fast['TOTAL_LATENCY'] > 0


@counted
def test_percentiles_are_within_a_tenth(world):
	"""Of a statement that ran once, every percentile is its time, which the sum of times tells exactly."""
	w, times = world, (0.003, 0.017, 0.1, 0.585, 1.2)
	w.run(*['create table once_%d as select 1 as x' % i for i in range(len(times))])
	w.minute()
	w.run(*['select pg_sleep(%s) from once_%d' % (t, i) for i, t in enumerate(times)])
	w.minute()
	for i, t in enumerate(times):
		one = w.last('once_%d' % i)
		assert one['AVERAGE_READS_LATENCY'] >= 1000 * t
		for p in (50, 95, 99):
			assert one['READS_P%d_VALUE' % p] == pytest.approx(one['AVERAGE_READS_LATENCY'], rel=0.1), (t, p)
	w.run(*['drop table once_%d' % i for i in range(len(times))])


@counted
def test_writes_take_as_long_as_their_commit(world):
	"""What a client waits for when it writes, alone or as the last of a transaction."""
	w = world
	w.run('create table slow_commits (id int)', 'create table quick (id int)',
	      "create function sleeps() returns trigger language plpgsql as $$ begin perform pg_sleep(0.3); return null; end $$",
	      'create constraint trigger waits after insert on slow_commits deferrable initially deferred for each row execute function sleeps()')
	w.minute()
	w.run('insert into slow_commits values (1)', 'insert into quick values (1)', times=2)
	w.minute()
	slow, quick = w.last('slow_commits'), w.last('quick')
	assert 300 <= slow['AVERAGE_WRITES_LATENCY'] < 5000 and slow['WRITES_OPS'] == pytest.approx(quick['WRITES_OPS'], rel=1e-4)
	assert 0 < quick['AVERAGE_WRITES_LATENCY'] < slow['AVERAGE_WRITES_LATENCY']
	w.run('drop table slow_commits', 'drop table quick', 'drop function sleeps')


@counted
def test_names(world):
	"""By time, without the schema where that is public; the service's own and catalogs are not there."""
	found = world.namespaces()
	assert found[0] == 'postgres.slow' and {'postgres.fast', 'postgres.sales.orders', 'postgres.public.a.b'} <= set(found)
	assert not [n for n in found if 'steward' in n or 'pg_' in n]
	primary, = world.processes('REPLICA_PRIMARY')
	assert world.namespaces(world.path('processes/' + primary)) == found
	for table in ('none', 'pg_class', 'pg_catalog.pg_class', 'steward.none'):
		refused(world.stats(table), 404)
	refused(world.stats('fast', database='none'), 404)
	assert ok(world.stats('public.a.b'))['collectionName'] == 'public.a.b'


@counted
def test_standbys_have_their_own(world):
	w = world
	for _ in range(2):
		process = w.run('select count(*) from fast', times=20, standby=True)
		w.minute()
	assert process in w.processes('REPLICA_SECONDARY')
	one = w.last('fast', w.path('processes/' + process))
	assert one['READS_OPS'] > 0 == one['WRITES_OPS']
	assert w.last('fast', w.view('SECONDARY'))['READS_OPS'] == pytest.approx(one['READS_OPS'], rel=1e-4)
	assert w.namespaces(w.view('SECONDARY')) == ['postgres.fast']
	assert w.last('fast')['READS_OPS'] == 0, 'the primary had nothing to do'
	assert 'postgres.slow' in w.namespaces(w.view('INDIVIDUAL_PROCESS'))


@counted
def test_another_database(world):
	w = world
	w.run('create database shop')
	w.minute()
	w.run('create table items (id int)', 'insert into items values (1)', dbname='shop')
	w.minute()
	assert 'shop.items' in w.namespaces()
	assert max(w.figures('items', database='shop')['WRITES_OPS'].values()) > 0
	refused(w.stats('items'), 404)


@counted
def test_pinned_tables_are_kept(world):
	w, pins = world, world.cluster + '/collStats/pinned'
	names = ['t%02d' % i for i in range(TOP + 2)]
	w.run(*('create table %s as select 1' % n for n in names), 'create table light (id int)')
	w.run(*('select pg_sleep(0.01) from ' + n for n in names), times=2)
	w.run('select * from light')
	w.minute(2)
	found = w.namespaces()
	assert len(found) == TOP and 'postgres.light' not in found
	assert all(m['dataPoints'] == [] for m in ok(w.stats('light'))['measurements']), 'it is there, and not measured'
	primary = w.processes('REPLICA_PRIMARY')[0].split('.')[0]
	assert len(list(w.series.glob(primary + '.table.*'))) == TOP

	ok(w.server.patch(pins, json={'namespaces': ['postgres.light', 'shop.nothing']}))
	w.minute()
	w.run('select * from light', times=3)
	w.minute()
	assert w.namespaces()[-1] == 'postgres.light' and len(w.namespaces()) == TOP + 1
	assert w.last('light')['READS_OPS'] > 0
	assert 'postgres.light' in json.loads((w.series / (primary + '.tables')).read_text())

	ok(w.server.patch(w.cluster + '/collStats/unpin', json={'namespaces': ['postgres.light']}))
	w.minute()
	assert 'postgres.light' not in w.namespaces() and len(list(w.series.glob(primary + '.table.*'))) == TOP
	sizes = {f.stat().st_size for f in w.series.glob('*.table.*')}
	assert len(sizes) == 1 and sizes.pop() < 12 << 20, 'whatever their age'
	w.run(*('drop table ' + n for n in names), 'drop table light')


@counted
def test_a_dropped_table_is_gone(world):
	w = world
	w.run('select pg_sleep(0.05) from slow')
	w.minute()
	assert w.namespaces()[0] == 'postgres.slow'
	w.run('drop table slow')
	assert 'postgres.slow' not in w.namespaces()
	refused(w.stats('slow'), 404)
	w.minute()
	assert not [n for f in w.series.glob('*.tables') for n in json.loads(f.read_text()) if n == 'postgres.slow']
	w.run('alter table sales.orders rename to bills')
	w.minute()
	assert 'postgres.sales.orders' not in w.namespaces()
	refused(w.stats('sales.orders'), 404)


@counted
def test_others_see_nothing(world):
	"""Another project has a cluster of the same name, and finds its own tables there: none."""
	w, other = world, world.server.project()['id']
	process = w.processes()[0]
	for base in ('/groups/%s/clusters/tables/PRIMARY' % other, '/groups/%s/processes/%s' % (other, process)):
		refused(w.server.get(base + '/collStats/namespaces'), 404)
		refused(w.stats('fast', base), 404)
	refused(w.server.put('/groups/%s/clusters/tables/collStats/pinned' % other, json={'namespaces': []}), 404)


@counted
def test_a_failover_moves_the_view(world):
	w = world
	old, = w.processes('REPLICA_PRIMARY')
	w.run('select * from fast', times=10)
	w.minute()
	ok(w.server.post(w.cluster + '/restartPrimaries'))
	until(lambda: (w.place.pass_time(), [p for p in w.processes('REPLICA_PRIMARY') if p != old])[1], 120, 'another primary')
	w.place.wait(w.cluster)
	w.minute()
	for _ in range(2):
		w.run('insert into fast select max(id) + 1 from fast', times=5)
		w.minute()
	new, = w.processes('REPLICA_PRIMARY')
	found = w.figures('fast')['WRITES_OPS']
	assert found[max(found)] == w.figures('fast', w.path('processes/' + new))['WRITES_OPS'][max(found)] > 0
	assert min(found) in w.figures('fast', w.path('processes/' + old))['WRITES_OPS'], 'what was, is the old one\'s'
	for name, values in w.figures('fast').items():
		assert min(values.values(), default=0) >= 0, name


@counted
def test_a_restarted_service_goes_on(world):
	w = world
	w.server.kill()
	w.server = w.place.start()
	until(lambda: w.processes('REPLICA_PRIMARY'), 60)
	w.minute()
	w.run('select * from fast')
	w.minute()
	assert 'postgres.fast' in w.namespaces() and w.last('fast')['READS_OPS'] > 0
