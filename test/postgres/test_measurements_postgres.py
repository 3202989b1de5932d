"""Measurements of real servers: under pgbench they say what pg_stat_* says; what was stopped is a gap, what failed over has no
negative rate, and what is gone leaves no file."""
import datetime, os, pathlib, shutil, signal, subprocess, tempfile, threading, time
from contextlib import closing, suppress

import psycopg2
import pytest
from requests.auth import HTTPDigestAuth

import client
from client import Api, ok, refused
from databases import shape, until, working_in
from test_measurements import DISK, PROCESS

USER, PASSWORD = 'app', 'correct horse 4 battery'
CLIENTS = 4
MODULE = pathlib.Path(client.binary()).parent / 'src' / 'module' / 'steward.so'
counted = pytest.mark.skipif(not MODULE.exists(), reason='the node module is not built')


def seconds(text):
	return datetime.datetime.strptime(text, '%Y-%m-%dT%H:%M:%SZ').replace(tzinfo=datetime.timezone.utc).timestamp()


class World:
	def __init__(self, place, name, nodes=3):
		self.place, self.server, self.name = place, place.server, name
		self.cluster = self.path('clusters/' + name)
		self.id = ok(self.server.post(self.path('clusters'), json={'name': name, **shape(nodes)}), 201)['id']
		ok(self.server.post(self.path('databaseUsers'), json={
			'username': USER, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.server.group,
			'roles': [{'roleName': r, 'databaseName': 'admin'} for r in ('readWriteAnyDatabase', 'dbAdminAnyDatabase')]}), 201)
		ok(self.server.post(self.path('accessList'), json=[{'ipAddress': '127.0.0.1'}]))
		self.string = place.wait(self.cluster)['connectionStrings']['standard']
		self.series = place.data / 'series' / self.id
		until(self.knows_us, 60, 'its user')
		self.watched = {}

	def knows_us(self):
		with suppress(psycopg2.OperationalError):
			self.connect().close()
			return True

	def path(self, what):
		return '/groups/%s/%s' % (self.server.group, what)

	def processes(self, kind=None):
		found = ok(self.server.get(self.path('processes')))['results']
		return [p['id'] for p in found if kind in (None, p['typeName'])]

	def get(self, process, query, below=''):
		return self.server.get(self.path('processes/%s%s/measurements?%s' % (process, below, query)))

	def points(self, process, metric, below='', query='granularity=PT1M&period=PT1H'):
		one, = ok(self.get(process, '%s&m=%s' % (query, metric), below))['measurements']
		return {seconds(p['timestamp']): p.get('value') for p in one['dataPoints']}

	def folder(self, process):
		return self.place.data / 'engine' / self.id / process.split('.')[0] / 'data'

	def connect(self):
		c = psycopg2.connect(self.string, user=USER, password=PASSWORD)
		c.autocommit = True
		return c

	def bench(self, *args):
		env = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'PGUSER': USER, 'PGPASSWORD': PASSWORD}
		return subprocess.Popen(['pgbench', *args, self.string], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

	def now(self):
		return seconds(self.server.control('clock', method='GET')['now'][:19] + 'Z')

	def watch(self, metric, bound, operator='GREATER_THAN', **more):
		self.watched[metric] = ok(self.server.post(self.path('alertConfigs'), json={
			'eventTypeName': 'OUTSIDE_METRIC_THRESHOLD', 'enabled': True, 'notifications': [{'typeName': 'EMAIL', 'emailAddress': 'a@example.com'}],
			'metricThreshold': {'metricName': metric, 'operator': operator, 'threshold': bound}, **more},
			headers={'X-Steward-Close-After': 'PT1M'}))['id']  # the first minute within

	def alerts(self, metric, *statuses):
		found = ok(self.server.get(self.path('alertConfigs/%s/alerts' % self.watched[metric])))['results']
		return [a for a in found if not statuses or a['status'] in statuses]

	def clean(self):
		for process in self.processes():
			for m in ok(self.get(process, 'granularity=PT1M&period=PT1H'))['measurements']:
				for p in m['dataPoints']:
					assert p.get('value', 0) >= 0, (process, m['name'], p)


@pytest.fixture(scope='module')
def world(start_place):
	return World(start_place(), 'shop')


def processors(folder):
	"""Seconds that the server in there and its children have used, and those that have ended."""
	leads, found = int((folder / 'postmaster.pid').read_text().split()[0]), 0
	for p in [leads] + [int(c) for c in open('/proc/%d/task/%d/children' % (leads, leads)).read().split()]:
		with suppress(FileNotFoundError, ProcessLookupError):
			fields = open('/proc/%d/stat' % p).read().rsplit(')', 1)[1].split()
			found += sum(int(x) for x in fields[11:15 if p == leads else 13])
	return found / os.sysconf('SC_CLK_TCK')


class Load:
	"""pgbench for a while, and what it says itself of each of its transactions. JOURNALING_MB is what the server says each second."""

	def __init__(self, world):
		"""Over a whole minute."""
		world.bench('-i', '-q', '-s', '2').wait(120)
		self.rows, self.seconds, self.world, self.nodes = [], [], world, world.processes()
		self.minute = (int(time.time()) + 5) // 60 * 60 + 60
		self.folder = tempfile.mkdtemp()
		self.process = world.bench('-n', '-c', str(CLIENTS), '-R', '150', '-T', str(self.minute + 72 - int(time.time())), '-l', '--log-prefix=%s/log' % self.folder)
		self.thread = threading.Thread(target=self.look)
		self.thread.start()

	def look(self):
		with self.world.connect().cursor() as c:
			while self.process.poll() is None:
				c.execute('select extract(epoch from clock_timestamp()), wal_bytes from pg_stat_wal')
				self.rows.append([float(x) for x in c.fetchone()])
				self.seconds.append([time.time()] + [processors(self.world.folder(p)) for p in self.nodes])
				time.sleep(0.5)

	def end(self):
		said = self.process.communicate(timeout=300)[0]
		self.thread.join(60)
		assert self.process.returncode == 0, said
		ends = [line.split()[4:6] for f in pathlib.Path(self.folder).iterdir() for line in f.read_text().splitlines()]
		self.transactions = [int(s) + int(us) / 1e6 for s, us in ends]
		shutil.rmtree(self.folder)

	def within(self, times):
		return sum(self.minute <= t < self.minute + 60 for t in times)

	def at(self, t, column, rows=None):
		rows = rows or self.rows
		after = next(i for i, r in enumerate(rows) if r[0] >= t)
		a, b = rows[after - 1], rows[after]
		return a[column] + (b[column] - a[column]) * (t - a[0]) / (b[0] - a[0])


@pytest.fixture(scope='module')
def load(world):
	world.watch('CONNECTIONS', CLIENTS - 0.5, matchers=[{'fieldName': 'TYPE_NAME', 'operator': 'EQUALS', 'value': 'PRIMARY'}])
	world.watch('DISK_PARTITION_SPACE_USED_DATA', 100.5)
	world.watch('SYSTEM_MEMORY_PERCENT_USED', 0.1)
	world.watch('GLOBAL_LOCK_PERCENTAGE', 1e-6)
	until(lambda: (world.series / (world.processes()[0].split('.')[0] + '.process')).exists(), 60)
	one = Load(world)
	one.end()
	return one


@counted
def test_it_agrees_with_what_was_done(world, load):
	"""Not each minute of a machine that has other things to do is one in which the load is the same all the time."""
	for last in (False, False, True):
		try:
			return agrees(world, load)
		except AssertionError:
			if last:
				raise
		load.__init__(world)
		load.end()


def agrees(world, load):
	"""Of a minute stands what was done from its first second to its last, by whom it was done."""
	primary, = world.processes('REPLICA_PRIMARY')
	done, looks = load.within(load.transactions), load.within(r[0] for r in load.rows)
	assert done > 1000
	for name, want in (('OPCOUNTER_CMD', done + looks), ('OPCOUNTER_INSERT', done), ('OPCOUNTER_UPDATE', 3 * done), ('OPCOUNTER_DELETE', 0),
	                   ('OPCOUNTER_QUERY', done + looks), ('DOCUMENT_METRICS_INSERTED', done)):
		assert world.points(primary, name)[load.minute] * 60 == pytest.approx(want, rel=0.01, abs=0.5), name
	grown = (load.at(load.minute + 60, 1) - load.at(load.minute, 1)) / 60 / 1e6
	assert world.points(primary, 'JOURNALING_MB')[load.minute] == pytest.approx(grown, rel=0.05)
	assert world.points(primary, 'CONNECTIONS')[load.minute] == pytest.approx(CLIENTS + 1, rel=0.05)
	assert world.points(primary, 'PROCESS_CPU_USER')[load.minute] > 0
	assert world.points(primary, 'OP_EXECUTION_TIME_COMMANDS')[load.minute] > 0
	for process in world.processes('REPLICA_SECONDARY'):
		for name in ('OPCOUNTER_CMD', 'OPCOUNTER_QUERY', 'OPCOUNTER_INSERT'):
			assert world.points(process, name)[load.minute] == 0, 'nobody but the service is there'


def test_values_raise_alerts(world, load):
	"""While the load lasts, of the primary; it ends with it."""
	until(lambda: world.alerts('CONNECTIONS'), 150)
	alert, = world.alerts('CONNECTIONS')
	primary, = world.processes('REPLICA_PRIMARY')
	assert alert['hostnameAndPort'] == primary and alert['clusterName'] == world.name
	assert any(v == pytest.approx(alert['currentValue']['number'], abs=0.01) for v in world.points(primary, 'CONNECTIONS').values() if v) \
		or alert['status'] == 'CLOSED'
	until(lambda: world.alerts('CONNECTIONS', 'CLOSED'), 150)
	assert {a['hostnameAndPort'] for a in world.alerts('SYSTEM_MEMORY_PERCENT_USED', 'OPEN')} == set(world.processes())
	assert all(0.1 < a['currentValue']['number'] <= 100 for a in world.alerts('SYSTEM_MEMORY_PERCENT_USED'))
	assert {a['hostnameAndPort'] for a in world.alerts('GLOBAL_LOCK_PERCENTAGE', 'OPEN')} == set(world.processes())
	assert all(1e-6 < a['currentValue']['number'] < 1 for a in world.alerts('GLOBAL_LOCK_PERCENTAGE')), 'few transaction ids are used'
	assert world.alerts('DISK_PARTITION_SPACE_USED_DATA') == []


def test_standbys_follow(world, load):
	for process in world.processes('REPLICA_SECONDARY'):
		assert 0 <= world.points(process, 'OPLOG_REPLICATION_LAG')[load.minute] < 5000
		mine, theirs = (world.points(p, 'JOURNALING_MB')[load.minute] for p in (process, *world.processes('REPLICA_PRIMARY')))
		assert mine == pytest.approx(theirs, rel=0.05), 'what is made there is received here'
	assert set(world.points(world.processes('REPLICA_PRIMARY')[0], 'OPLOG_REPLICATION_LAG').values()) <= {None, 0.0}


def test_disks_and_databases(world, load):
	primary, = world.processes('REPLICA_PRIMARY')
	own, name = [d['partitionName'] for d in ok(world.server.get(world.path('processes/%s/disks' % primary)))['results']]
	room = os.statvfs(world.place.data)
	points = world.points(primary, 'DISK_PARTITION_SPACE_FREE', '/disks/' + name)
	assert points[load.minute] == pytest.approx(room.f_bavail * room.f_frsize, rel=0.05)
	for disk in (own, name):
		assert [m['name'] for m in ok(world.get(primary, 'granularity=PT1M&period=PT5M', '/disks/' + disk))['measurements']] == DISK
	with world.connect().cursor() as c:
		c.execute("select pg_database_size('postgres'), count(*), sum(pg_table_size(oid)) from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace")
		size, tables, data = c.fetchone()
	for metric, want in (('STORAGE_SIZE', size), ('COLLECTION_COUNT', tables), ('DATA_SIZE', data)):
		found = world.points(primary, 'DATABASE_' + metric, '/databases/postgres')
		assert found[load.minute] == pytest.approx(float(want), rel=0.05), metric
	refused(world.get(primary, 'granularity=PT1M&period=PT5M', '/databases/none'), 404)


def test_all_metrics(world, load):
	for process in world.processes():
		doc = ok(world.get(process, 'granularity=PT1M&period=PT5M'))
		assert [m['name'] for m in doc['measurements']] == PROCESS
	world.clean()


def blocks(folder):
	"""What du counts."""
	found = 0
	for at, _, files in os.walk(folder):
		for f in files:
			with suppress(FileNotFoundError):
				found += os.lstat(os.path.join(at, f)).st_blocks * 512
	return found


def test_a_node_has_its_own_figures(world, load):
	"""All are on one host: the time of processors is that of the node's processes, and its disk what its files take."""
	primary, = world.processes('REPLICA_PRIMARY')
	value = lambda p, metric, below='': world.points(p, metric, below).get(load.minute)
	for i, p in enumerate(load.nodes):
		used = load.at(load.minute + 60, i + 1, load.seconds) - load.at(load.minute, i + 1, load.seconds)
		told = sum(value(p, 'PROCESS_CPU_' + kind) for kind in ('USER', 'KERNEL')) / 100 * 60
		assert told == pytest.approx(used, rel=0.15, abs=0.5), p
		assert value(p, 'PROCESS_NORMALIZED_CPU_USER') == pytest.approx(value(p, 'PROCESS_CPU_USER') / os.cpu_count(), rel=0.01)
		known = lambda: [v for v in world.points(p, 'DISK_PARTITION_SPACE_USED', '/disks/node').values() if v is not None]
		until(lambda: known()[-1] == pytest.approx(blocks(world.folder(p)), rel=0.05), 150, 'what du counts')
	# Each transaction writes the log at least once, but for those that share a write.
	done = load.within(load.transactions) / 60
	assert done / CLIENTS / 2 < value(primary, 'DISK_PARTITION_IOPS_WRITE', '/disks/node') < 20 * done
	assert value(primary, 'DISK_PARTITION_THROUGHPUT_WRITE', '/disks/node') >= value(primary, 'JOURNALING_MB') * 0.99e6
	hosts = {value(p, 'SYSTEM_CPU_USER') for p in load.nodes}
	assert max(hosts) == pytest.approx(min(hosts), rel=0.05), 'the host is one'


# On a clock that is moved by hand: rounds of samples in moments.


class Ticks(World):
	def tick(self, count=1):
		"""Ten seconds, and the samples of that moment are there."""
		files = [self.series / (p.split('.')[0] + '.process') for p in self.processes()]
		for _ in range(count):
			before = {f: f.stat().st_mtime_ns for f in files if f.exists()}
			self.server.advance(10)
			end = time.monotonic() + 20
			while time.monotonic() < end and not any(f.exists() and f.stat().st_mtime_ns != before.get(f) for f in files):
				time.sleep(0.02)


	def moment(self, process, metric):
		"""The value of one sample: the only one of a minute."""
		self.server.advance(62 - int(self.now()) % 60)
		minute = int(self.now()) // 60 * 60
		return until(lambda: [v for t, v in self.points(process, metric).items() if t == minute and v is not None], 60, metric)[0]


@pytest.fixture(scope='module')
def ticks(start_place):
	return Ticks(start_place(clock='virtual'), 'clocked')


def test_a_failover_has_no_negative_rate(ticks):
	w = ticks
	w.bench('-i', '-q', '-s', '1').wait(120)
	load = w.bench('-n', '-c', '2', '-R', '50', '-T', '600')
	try:
		w.tick(14)
		old, = w.processes('REPLICA_PRIMARY')
		book = w.place.data / 'engine' / w.id / old.split('.')[0] / 'data' / 'postmaster.pid'
		os.kill(int(book.read_text().split()[0]), signal.SIGKILL)
		new = until(lambda: [p for p in w.processes('REPLICA_PRIMARY') if p != old], 60)[0]
		until(lambda: old in w.processes('REPLICA_SECONDARY'), 60, 'its return')
		w.tick(14)
	finally:
		load.kill()
		load.wait()
	w.clean()
	inserts = [v for v in w.points(new, 'OPCOUNTER_INSERT').values() if v is not None]
	assert inserts and min(inserts) >= 0
	lags = [v for v in w.points(new, 'OPLOG_REPLICATION_LAG').values()]
	assert lags[-1] == 0, 'it leads now'
	for process in w.processes('REPLICA_SECONDARY'):
		until(lambda: w.moment(process, 'OPLOG_REPLICATION_LAG') == 0, 60, 'all of the new primary to be replayed by ' + process)
	assert max(v for v in w.points(old, 'RESTARTS_IN_LAST_HOUR').values() if v is not None) >= 1
	assert any(v for v in w.points(old, 'CONNECTIONS').values()), 'the series goes on with its node'


def test_a_hung_session_delays_nobody(ticks):
	"""The session that samples one node is stopped: that node alone has none, until another session is there."""
	w = ticks
	stuck, *others = w.processes()
	folder = w.place.data / 'engine' / w.id / stuck.split('.')[0]
	kept = [p for p in working_in(folder) if 'steward_engine postgres [local]' in open('/proc/%d/cmdline' % p).read()]
	assert kept
	for p in kept:
		os.kill(p, signal.SIGSTOP)
	try:
		begin = w.now()
		w.tick(3)
		for process in others:
			assert any(v is not None for t, v in w.points(process, 'CONNECTIONS').items() if t >= begin - 60)

		def told_again():
			"""Of the last whole minute. Rounds are over when one node has told: this one may take longer."""
			w.tick(6)
			return [v is not None for v in w.points(stuck, 'CONNECTIONS').values()][-2]
		w.tick(6)
		until(told_again, 120, 'another session to tell again')
	finally:
		for p in kept:
			os.kill(p, signal.SIGCONT)
	w.clean()


def as_engine(w, database='postgres', process=None):
	"""A session as the service has them, on the primary or that process."""
	node = (process or w.processes('REPLICA_PRIMARY')[0]).split('.')[0]
	book = (w.place.data / 'engine' / w.id / node / 'data' / 'postmaster.pid').read_text().split('\n')
	c = psycopg2.connect(host=book[4], port=int(book[3]), user='steward_engine', dbname=database)
	c.autocommit = True
	return c


def test_lag_is_the_time_since_the_primary_was_there(ticks):
	"""A standby whose replay stands: not the age of the last transaction, which is that of an idle primary."""
	w = ticks
	primary, standby = w.processes('REPLICA_PRIMARY')[0], w.processes('REPLICA_SECONDARY')[0]
	lag = lambda process=standby: w.moment(process, 'OPLOG_REPLICATION_LAG') / 1000

	def behind():
		"""Bytes, by the primary itself."""
		with closing(as_engine(w)) as c, c.cursor() as sql:
			sql.execute('select pg_current_wal_lsn() - replay_lsn from pg_stat_replication where application_name = %s', (standby.split('.')[0],))
			return float(sql.fetchone()[0])
	with closing(w.connect()) as c, c.cursor() as sql:
		sql.execute('create table lagging (n int)')
	until(lambda: behind() == 0, 60, 'the standby to have replayed all')
	replayed = time.monotonic()
	with closing(as_engine(w, process=standby)) as c, c.cursor() as sql:
		assert lag() == 0 == lag(primary)
		sql.execute('select pg_wal_replay_pause()')
		try:
			until(lambda: time.monotonic() > replayed + 12, 60, 'an idle while')
			assert lag() == 0 or behind() > 0, 'nothing is behind, however long ago the last transaction was'
			before = time.monotonic()
			with closing(w.connect()) as other, other.cursor() as write:
				write.execute('insert into lagging select generate_series(1, 2000)')
			after = time.monotonic()
			until(lambda: time.monotonic() > after + 4, 60, 'a lag')
			asked = time.monotonic()
			least, told, done = behind(), lag(), time.monotonic()
			# The primary is asked each second; a machine that has other things to do may be late, but not by as long as the idle while.
			assert asked - after - 1 <= told <= done - before + 6, (told, asked - after)
			assert lag(primary) == 0
			owed = [float(l.split()[1]) for l in w.server.anonymous.get('/metrics').text.splitlines() if l.startswith('steward_replication_lag_')]
			assert least <= owed[0] <= behind() and least > 50000 and owed[1] >= told
		finally:
			sql.execute('select pg_wal_replay_resume()')
	until(lambda: lag() == 0, 60, 'all to be replayed')


@counted
def test_only_clients_count(ticks):
	"""51 transactions are 51: not the workers of parallel queries, the beginnings of sessions, or the service's own questions."""
	w = ticks
	columns = ('transactions', 'reads', 'inserted', 'updated', 'deleted')

	def counters():
		with closing(as_engine(w)) as c, c.cursor() as sql:
			sql.execute('select %s, (select sum(xact_commit + xact_rollback) from pg_stat_database) from steward.operations()' % ', '.join(columns))
			return [int(x) for x in sql.fetchone()]
	with closing(w.connect()) as c, c.cursor() as sql:
		sql.execute("create table wide as select n, repeat(md5(n::text), 400) as t from generate_series(1, 500) n")
	w.tick(6)
	before = counters()
	with closing(w.connect()) as c, c.cursor() as sql:
		sql.execute("set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2")
		for _ in range(40):
			sql.execute('select count(*) from wide where n > 3')
		sql.execute("insert into wide select n, repeat(md5(n::text), 4000) from generate_series(1, 100) n")
		sql.execute('with gone as (delete from wide where n <= 10 returning n) update wide set t = null where n between 41 and 60')
		c.autocommit = False
		sql.execute('insert into wide values (1), (2)')
		sql.execute('select 1')
		c.rollback()
		c.autocommit = True
		for wrong in ('select 1/0', 'select * from nowhere', 'selec'):
			with pytest.raises(psycopg2.Error):
				sql.execute(wrong)
		for _ in range(4):
			sql.execute('select 1')
	grown = [b - a for a, b in zip(before, counters())]
	# Of rows 1 to 100 there are two each; what is rolled back was written.
	assert dict(zip(columns, grown)) == {'transactions': 51, 'reads': 45, 'inserted': 102, 'updated': 40, 'deleted': 20}, grown
	assert grown[-1] > 51, 'the server itself counts more'


@counted
def test_what_was_done_stands_at_its_minute(ticks):
	"""In its last seconds, by a session that stays open: not at the next one."""
	w = ticks
	primary, = w.processes('REPLICA_PRIMARY')
	for _ in range(2):
		w.moment(primary, 'CONNECTIONS')
	w.tick(5)
	minute = int(w.now()) // 60 * 60
	assert w.now() - minute > 50
	with closing(w.connect()) as c, c.cursor() as sql:
		for _ in range(10):
			sql.execute('create temp table if not exists mine (n int)')
			sql.execute('insert into mine values (1)')
		w.tick(8)
		for name in ('OPCOUNTER_CMD', 'OPCOUNTER_INSERT'):
			found = until(lambda: [w.points(primary, name).get(minute + 60 * i) for i in (-1, 0, 1)], 60)
			assert found[1] > 0 == found[2] and not found[0], (name, found)
		five = w.points(primary, 'OPCOUNTER_INSERT', query='granularity=PT5M&period=PT1H')
		assert five[minute // 300 * 300] > 0


def test_what_the_service_asks_is_its_own(ticks):
	"""A session of the service's that others wait for is there, without its statement."""
	w = ticks
	primary, = w.processes('REPLICA_PRIMARY')
	conf = (w.folder(primary).parent / 'conf' / 'postgresql.conf').read_text()
	run = next(l for l in conf.split('\n') if l.startswith('unix_socket_directories')).split("'")[1]
	with closing(w.connect()) as c, c.cursor() as cursor:
		cursor.execute('create table held (id int)')
	with closing(psycopg2.connect(host=run, port=primary.rsplit(':', 1)[1], user='steward_engine', dbname='postgres')) as ours, \
			closing(w.connect()) as theirs:
		holder, waiter = ours.info.backend_pid, theirs.info.backend_pid
		ours.cursor().execute('lock table held')
		thread = threading.Thread(target=lambda: theirs.cursor().execute('select 1 from held'))
		thread.start()
		look = lambda: {s['pid']: s for s in ok(w.server.get(w.path('processes/%s:activity' % primary)))['sessions']}
		until(lambda: look().get(waiter, {}).get('blockedBy'), 30)
		found = look()
		ours.rollback()
		thread.join(60)
	assert found[waiter]['statement'] == 'select 1 from held'
	assert not found[holder].get('statement')


def test_who_waits_for_whom(ticks):
	"""Sessions by what they wait for, over time; who waits for whom, now and in the last hour."""
	w = ticks
	primary, = w.processes('REPLICA_PRIMARY')
	where = w.path('processes/%s:activity' % primary)
	look = lambda: ok(w.server.get(where))
	with closing(w.connect()) as c, c.cursor() as cursor:
		cursor.execute('create table queue (id int primary key, n int)')
		cursor.execute('insert into queue values (1, 0)')
	first, second, third = (w.connect() for _ in range(3))
	pids = [x.info.backend_pid for x in (first, second, third)]
	first.autocommit = False
	first.cursor().execute('update queue set n = 1')
	threads = []
	for x in (second, third):
		threads.append(threading.Thread(target=lambda x=x: x.cursor().execute('update queue set n = n + 1 where id = 1')))
		threads[-1].start()
		until(lambda: [s for s in look()['sessions'] if s['pid'] == x.info.backend_pid and s['blockedBy']], 30)
	found = look()
	by = {s['pid']: s for s in found['sessions']}
	assert by[pids[1]]['blockedBy'] == [pids[0]] and by[pids[2]]['blockedBy'] == [pids[1]] and by[pids[0]]['blockedBy'] == []
	assert by[pids[0]]['state'] == 'idle in transaction' and by[pids[1]]['waitEventType'] == 'Lock'
	assert by[pids[1]]['user'] == USER and by[pids[1]]['statement'].startswith('update queue') and by[pids[1]]['database'] == 'postgres'
	assert found['blocking'] == [{'pid': pids[0], 'waiting': [{'pid': pids[1], 'waiting': [{'pid': pids[2], 'waiting': []}]}]}]
	w.server.advance(62 - int(w.now()) % 60)
	minute = time.strftime('%Y-%m-%dT%H:%M:00Z', time.gmtime(w.now()))
	w.tick(4)
	values = lambda: {m['name']: {p['timestamp']: p.get('value') for p in m['dataPoints']}.get(minute) for m in look()['measurements']}
	until(lambda: values()['SESSIONS_WAITING_LOCK'] == 2, 30)
	seen = values()
	assert seen['SESSIONS_ACTIVE'] == 2 and seen['SESSIONS_IDLE_IN_TRANSACTION'] == 1 and seen['SESSIONS_ON_CPU'] == 0
	assert seen['OLDEST_TRANSACTION'] > 0 and 0 < seen['TRANSACTION_ID_AGE'] < 1e6
	assert seen['TRANSACTION_ID_PERCENT_USED'] == pytest.approx(100 * seen['TRANSACTION_ID_AGE'] / 2 ** 31, rel=1e-3)
	first.rollback()
	for t in threads:
		t.join(60)
	for x in (first, second, third):
		x.close()
	until(lambda: not look()['sessions'] and not look()['blocking'], 30)
	found = look()
	past = {(b['pid'], b['blockedBy']): b for b in found['blocked']}
	assert {(pids[1], pids[0]), (pids[2], pids[1])} <= set(past)
	assert past[pids[1], pids[0]]['user'] == past[pids[1], pids[0]]['blockedByUser'] == USER
	assert past[pids[1], pids[0]]['longestMillis'] > 0
	assert [e for e in found['waitEvents'] if e['type'] == 'Lock' and e['sessions'] > 0]
	refused(w.server.get(w.path('processes/none:1:activity')), 404)
	refused(w.server.get(where + '?period=x'), 400)
	refused(w.server.get(where + '?pretend=1'), 400)


def test_a_session_is_ended(ticks):
	"""By who may reject shapes of queries, one that was seen, and none of the service's."""
	w = ticks
	primary, = w.processes('REPLICA_PRIMARY')
	where = w.path('processes/%s:activity' % primary)
	look = lambda: {s['pid']: s for s in ok(w.server.get(where))['sessions']}
	end = lambda by, pid, start: by.delete('%s?pid=%s&sessionStart=%s' % (where, pid, start))
	with closing(w.connect()) as held:
		held.autocommit = False
		held.cursor().execute('create table half (n int)')
		pid = held.info.backend_pid
		start = look()[pid]['sessionStart']
		keys = {role: ok(w.server.post(w.path('apiKeys'), json={'desc': role, 'roles': [role]})) for role in
			('GROUP_DATA_ACCESS_READ_WRITE', 'GROUP_CLUSTER_MANAGER', 'GROUP_DATA_ACCESS_ADMIN')}
		callers = [Api(w.server, HTTPDigestAuth(key['publicKey'], key['privateKey'])) for key in keys.values()]
		for caller in callers[:2]:
			refused(end(caller, pid, start), 403)
		refused(end(w.server, pid, '2026-01-02T03:04:05Z'), 404, 'SESSION_NOT_FOUND')
		refused(end(w.server, 2 ** 31 + pid, start), 404, 'SESSION_NOT_FOUND')
		refused(end(w.server, 0, start), 404, 'SESSION_NOT_FOUND')
		assert look()[pid]['state'] == 'idle in transaction'
		with closing(as_engine(w)) as ours, ours.cursor() as sql:
			sql.execute('select to_char(backend_start at time zone $$UTC$$, $$YYYY-MM-DD"T"HH24:MI:SS"Z"$$) from pg_stat_activity where pid = pg_backend_pid()')
			refused(end(w.server, ours.info.backend_pid, sql.fetchone()[0]), 404, 'SESSION_NOT_FOUND')
			sql.execute('select 1')
		ended = end(callers[2], pid, start)
		assert ended.status_code == 204 and not ended.content
		with pytest.raises(psycopg2.OperationalError):
			until(lambda: held.cursor().execute('select 1'), 30)
		refused(end(w.server, pid, start), 404, 'SESSION_NOT_FOUND')
	with closing(w.connect()) as c, c.cursor() as cursor:
		cursor.execute("select to_regclass('half')")
		assert cursor.fetchone() == (None,), 'what was not committed is undone'
	told, = [e for e in ok(w.server.get(w.path('events?includeRaw=true&eventType=ATTEMPT_KILLSESSION_AUDIT')))['results']]
	assert told['publicKey'] == keys['GROUP_DATA_ACCESS_ADMIN']['publicKey'] and 'pid: %d' % pid in told['raw']['description'] and 'user: ' + USER in told['raw']['description']
	assert 'clusterName: ' + w.name in told['raw']['description']


def test_a_statement_is_cancelled(ticks):
	"""That alone: the session and its settings stay, and a statement that was not seen goes on."""
	w = ticks
	primary, = w.processes('REPLICA_PRIMARY')
	where = w.path('processes/%s:activity' % primary)
	look = lambda: {s['pid']: s for s in ok(w.server.get(where))['sessions']}
	with closing(w.connect()) as one, closing(w.connect()) as idle:
		one.autocommit = True
		one.cursor().execute("set application_name = 'patient'")
		idle.autocommit = False
		idle.cursor().execute('select 1')
		pid, said = one.info.backend_pid, []

		def wait():
			try:
				one.cursor().execute('select pg_sleep(600)')
			except psycopg2.Error as e:
				said.append(e.pgcode)
		thread = threading.Thread(target=wait)
		thread.start()
		seen = until(lambda: look().get(pid), 30)
		end = lambda pid, session, statement: w.server.delete('%s?pid=%s&sessionStart=%s&statementStart=%s' % (where, pid, session, statement))
		for other in ('2026-01-02T03:04:05Z', '1970-01-01T00:00:00Z'):
			refused(end(pid, seen['sessionStart'], other), 404)
			refused(end(pid, other, seen['statementStart']), 404, 'STATEMENT_NOT_FOUND')
		resting = look()[idle.info.backend_pid]
		refused(end(idle.info.backend_pid, resting['sessionStart'], resting['statementStart']), 404, 'STATEMENT_NOT_FOUND')
		assert thread.is_alive() and pid in look()
		assert end(pid, seen['sessionStart'], seen['statementStart']).status_code == 204
		thread.join(60)
		assert said == ['57014'], 'query_canceled'
		with one.cursor() as cursor:
			cursor.execute("select pg_backend_pid(), current_setting('application_name')")
			assert cursor.fetchone() == (pid, 'patient'), 'the session is the same'
		idle.cursor().execute('select 1')
		refused(end(pid, seen['sessionStart'], seen['statementStart']), 404, 'STATEMENT_NOT_FOUND')
	told, = [e for e in ok(w.server.get(w.path('events?includeRaw=true&eventType=ATTEMPT_KILLOP_AUDIT')))['results']]
	assert 'pid: %d' % pid in told['raw']['description'] and 'user: ' + USER in told['raw']['description']


def test_how_vacuum_keeps_up(ticks):
	w = ticks
	primary, = w.processes('REPLICA_PRIMARY')
	look = lambda: ok(w.server.get(w.path('processes/%s:vacuum' % primary)))
	# Each in a session of its own, which tells what it has done when it ends.
	for sql in ('create table bloated with (autovacuum_enabled = off) as select g as id, repeat(md5(g::text), 4) as text from generate_series(1, 20000) g',
	            'analyze bloated', 'delete from bloated where id % 4 > 0'):
		with closing(w.connect()) as c:
			c.cursor().execute(sql)
	with closing(w.connect()) as c, c.cursor() as cursor:
		cursor.execute("select age(datfrozenxid) from pg_database where datname = 'postgres'")
		age = cursor.fetchone()[0]
		found = until(lambda: [t for t in look()['tables'] if t['table'] == 'bloated' and t['deadRows'] == 15000], 30)[0]
		cursor.execute("select pg_relation_size('bloated')")
		size = cursor.fetchone()[0]
		assert found['database'] == 'postgres' and found['liveRows'] == 5000 and found['bytes'] == size and 'analyzed' in found and 'vacuumed' not in found
		assert found['wastedBytes'] == pytest.approx(size * 0.75, rel=0.1)
		cursor.execute('vacuum full analyze bloated')
		assert until(lambda: [t for t in look()['tables'] if t['table'] == 'bloated' and t['deadRows'] == 0], 30)[0]['wastedBytes'] < size * 0.05
		cursor.execute('drop table bloated')
	doc = look()
	assert doc['whole'] and doc['running'] == [] and doc['freezeAge'] == 200000000
	own, = [d for d in doc['databases'] if d['database'] == 'postgres']
	assert 0 <= own['transactionIdAge'] - age < 1000 and own['transactionIdPercentUsed'] == pytest.approx(own['transactionIdAge'] / 2**31 * 100, rel=0.01)


def test_databases_that_come_and_go(ticks):
	"""One that takes no connections keeps its history, one that is locked is a gap beside others, one that is gone has none."""
	w = ticks
	primary, = w.processes('REPLICA_PRIMARY')
	file = w.series / ('%s.db.%s' % (primary.split('.')[0], b'side'.hex()))
	points = lambda metric, name='side': w.points(primary, 'DATABASE_' + metric, '/databases/' + name)
	last = lambda metric, name='side': [v for v in points(metric, name).values()][-1]
	with closing(as_engine(w)) as c, c.cursor() as sql:
		sql.execute('create database side')
		w.tick(8)
		until(lambda: file.exists() or w.tick(), 60)
		assert any(v is not None for v in points('COLLECTION_COUNT').values())
		# Nobody can look into it while somebody holds it: a gap, but for its size, and postgres goes on.
		with closing(as_engine(w, 'side')) as held, held.cursor() as lock:
			with closing(as_engine(w, 'side')) as other:  # what it has done is counted when it ends
				other.cursor().execute('create table changed (n int); insert into changed select 1')
			held.autocommit = False
			lock.execute('lock table pg_class in access exclusive mode')
			until(lambda: (w.tick(6), last('COLLECTION_COUNT') is None)[1], 120, 'a gap')
			assert last('STORAGE_SIZE') > 0 and last('COLLECTION_COUNT', 'postgres') is not None
			held.rollback()
		sql.execute('alter database side allow_connections false')
		before = {t: v for t, v in points('COLLECTION_COUNT').items() if v is not None}
		w.tick(14)
		after = points('COLLECTION_COUNT')
		assert before and all(after[t] == v for t, v in before.items() if t in after), 'what was known stays'
		sql.execute('drop database side')
		until(lambda: (w.tick(6), not file.exists())[1], 60, 'the end of its series')
	w.clean()


def test_the_kept_session_looks_into_postgres(ticks):
	"""None begins for it while its tables are few. A table that is locked is a gap of this database, and samples go on."""
	w = ticks
	primary, = w.processes('REPLICA_PRIMARY')
	last = lambda metric: [v for v in w.points(primary, 'DATABASE_' + metric, '/databases/postgres').values()][-1]

	def change(*statements):
		"""In a session that ends: what it has done is counted then."""
		with closing(w.connect()) as c, c.cursor() as sql:
			for one in statements:
				sql.execute(one)

	def looking():
		"""The sessions of the service whose last question was a look, and that did not begin for it."""
		change('insert into seen select 1')
		begun = time.time()
		w.tick()
		with closing(as_engine(w)) as c, c.cursor() as sql:
			sql.execute("""select pid from pg_stat_activity where datname = 'postgres' and application_name = 'steward'
				and state = 'idle' and backend_start < to_timestamp(%s) and query ~ 'pg_stat_get_numscans|strpos.c.relname'""", (begun,))
			return [pid for pid, in sql]
	change('create table seen (n int)')
	kept, = until(looking, 120, 'a look by a session that stays')
	# A session keeps what it has learnt of tables: it is not to learn of many.
	change(*('create table many_%d (n int)' % i for i in range(310)))
	until(lambda: not os.path.exists('/proc/%d' % kept) or w.tick(), 120, 'the end of a session that has learnt much')
	until(lambda: (w.tick(6), (last('COLLECTION_COUNT') or 0) > 310)[1], 120, 'the number of tables')
	for _ in range(8):
		assert not looking()
	change(*('drop table many_%d' % i for i in range(310)))
	until(looking, 120, 'a look by a session that stays, again')
	with closing(w.connect()) as held, held.cursor() as lock:
		held.autocommit = False
		lock.execute('lock table seen in access exclusive mode')
		change('create table beside (n int)')
		until(lambda: (w.tick(6), last('COLLECTION_COUNT') is None)[1], 120, 'a gap')
		begin = w.now()
		w.tick(7)
		until(lambda: (last('STORAGE_SIZE') or 0) > 0, 60, 'the size of a database that cannot be looked into')
		assert any(v is not None for t, v in w.points(primary, 'CONNECTIONS').items() if t >= begin)
	w.clean()


@pytest.mark.skipif(os.geteuid() != 0, reason='needs to mount a small disk')
def test_a_full_disk_is_a_gap(ticks):
	"""Series have no place to be written to: the service goes on, what was written stays whole, and samples come back."""
	w = ticks
	process = w.processes()[0]
	before = {t: v for t, v in w.points(process, 'CONNECTIONS').items() if v is not None}
	subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k,mode=0700', 'tmpfs', str(w.series)], check=True)
	try:
		until(lambda: w.server.advance(10) and 'there will be gaps' in w.server.stderr, 60, 'its warning')
		assert len(ok(w.server.get(w.path('processes')))['results']) == 3
	finally:
		until(lambda: subprocess.run(['umount', str(w.series)], stderr=subprocess.DEVNULL).returncode == 0, 60)
	w.tick(14)
	after = w.points(process, 'CONNECTIONS')
	assert before and all(after[t] == v for t, v in list(before.items())[:-1] if t in after)
	assert [v is not None for v in after.values()][-2]
	w.clean()


def test_a_stopped_node_is_a_gap(ticks):
	w = ticks
	ok(w.server.patch(w.cluster, json={'paused': True}))
	w.place.wait(w.cluster)
	w.server.advance(600)
	ok(w.server.patch(w.cluster, json={'paused': False}))
	w.place.wait(w.cluster)
	w.tick(14)
	for process in w.processes():
		known = [v is not None for v in w.points(process, 'CONNECTIONS').values()]
		first, last = known.index(True), len(known) - known[::-1].index(True)
		assert known[first:last].count(False) >= 9, 'ten minutes without it, between what it had and what it has'
	w.clean()


def test_a_killed_service_goes_on(ticks):
	w = ticks
	process = w.processes()[0]
	before = {t: v for t, v in w.points(process, 'CONNECTIONS').items() if v is not None}
	w.server.kill()
	w.server = w.place.start()
	until(lambda: w.processes('REPLICA_PRIMARY'), 60)
	after = w.points(process, 'CONNECTIONS', query='granularity=PT1M&period=P1D')
	lost = [t for t in before if t in after and after[t] is None]
	assert len(before) > 5 and not lost
	w.tick(8)
	w.clean()


def test_what_is_gone_leaves_nothing(ticks):
	w = ticks
	assert w.series.is_dir() and list(w.series.glob('*.db.*')) and list(w.series.glob('*.disk.*'))
	sizes = {f.stat().st_size for f in w.series.glob('*.process')}
	assert len(sizes) == 1 and sizes.pop() < 4 << 20
	ok(w.server.delete(w.cluster), 202)
	w.place.wait(w.cluster, None)
	until(lambda: not w.series.exists(), 60, 'the end of its series')
