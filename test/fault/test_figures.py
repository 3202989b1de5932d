"""A known load on a real cluster, with a failover and a restart of the service within it, and beside the service an observer
that counts the same by itself each second: each minute of each metric that has a source must agree within 5%. Run by
`script/test figures`, which takes a quarter of an hour and writes the table in docs/metrics.md.

The observer is no part of the service: what clients did is counted by the clients, what a host does is read from /proc, and what
only a server knows is asked of it each second on a session of the observer's own. STEWARD_FIGURES=FILE: where the table goes."""
import calendar, json, os, pathlib, random, signal, sys, threading, time
from contextlib import suppress

import psycopg2
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'postgres'))
import place
from client import ok
from databases import until
from test_measurements_postgres import World, as_engine

MINUTES = int(os.environ.get('STEWARD_MINUTES', 6))
FAILOVER, RESTART = 2, 4  # the minutes in which these happen
MOST = 0.05
FEW = 12  # rows, blocks, files: a difference of so many in a minute is none
BEGIN, END = '<!-- figures: written by script/test figures -->\n', '<!-- end of the figures -->\n'
TICK = os.sysconf('SC_CLK_TCK')
KERNEL = {'USER': 0, 'NICE': 1, 'KERNEL': 2, 'IOWAIT': 4, 'IRQ': 5, 'SOFTIRQ': 6, 'STEAL': 7, 'GUEST': 8}

ASK = """select sum(blks_read)::float8, sum(tup_returned)::float8, sum(tup_fetched)::float8, sum(temp_files)::float8,
	(select (buffers_checkpoint + buffers_clean + buffers_backend)::float8 from pg_stat_bgwriter),
	(select case when pg_is_in_recovery() then pg_last_wal_receive_lsn() - '0/0' else wal_bytes end::float8 from pg_stat_wal),
	(select count(*)::float8 from pg_stat_activity where backend_type = 'client backend' and usename <> 'steward_engine'),
	(select count(*)::float8 from pg_locks where not granted and mode in ('AccessShareLock', 'RowShareLock')),
	(select count(*)::float8 from pg_locks where not granted and mode not in ('AccessShareLock', 'RowShareLock')),
	(select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - count(*)
		from pg_stat_activity where backend_type = 'client backend')::float8,
	(select wal_write::float8 from pg_stat_wal),
	(select (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end - '0/0')::float8),
	(not pg_is_in_recovery())::int::float8
	from pg_stat_database"""
NAMES = ('read', 'returned', 'fetched', 'temp', 'written', 'log', 'clients', 'readers', 'writers', 'free', 'log_writes', 'position', 'leads')
# What takes longer, each five seconds.
ASK_SLOW = """select (select sum(pg_database_size(oid))::float8 from pg_database where not datistemplate),
	sum(case when relkind = 'r' then pg_table_size(c.oid) end)::float8, sum(case when relkind = 'i' then pg_relation_size(c.oid) end)::float8,
	count(*) filter (where relkind = 'r')::float8, count(*) filter (where relkind = 'i')::float8,
	(select sum(idx_blks_hit)::float8 from pg_statio_all_tables), (select sum(idx_blks_read)::float8 from pg_statio_all_tables),
	(select pg_database_size('postgres')::float8)
	from pg_class c join pg_namespace n on n.oid = relnamespace where nspname !~ '^pg_' and nspname <> 'information_schema'"""
SLOW = ('storage', 'data', 'indexes', 'tables', 'index_count', 'idx_hit', 'idx_read', 'own_storage')


def of_memory(leads):
	"""Pages of a server's processes: what each has by itself, and what they share once."""
	with open('/proc/%d/task/%d/children' % (leads, leads)) as f:
		children = [int(x) for x in f.read().split()]
	own = shared = virtual = 0
	for p in [leads] + children:
		with suppress(FileNotFoundError, ProcessLookupError):
			size, resident, common = [int(x) * 4096 for x in open('/proc/%d/statm' % p).read().split()[:3]]
			own, shared, virtual = own + resident - common, max(shared, common), max(virtual, size)
	return {'resident': own + shared, 'virtual': virtual, 'mapped': shared}


def of_files(folder):
	"""What the files of a node take."""
	taken = 0
	for at, _, names in os.walk(folder):
		for n in names:
			with suppress(OSError):
				taken += os.lstat(os.path.join(at, n)).st_blocks * 512
	return {'files': taken}


def of_processes(leads):
	"""Processor time and memory of a server's processes: of those that ended, too, as their parent has it."""
	with open('/proc/%d/task/%d/children' % (leads, leads)) as f:
		children = [int(x) for x in f.read().split()]
	user = kernel = own_user = own_kernel = 0
	for p in [leads] + children:
		with suppress(FileNotFoundError, ProcessLookupError):
			x = [int(v) for v in open('/proc/%d/stat' % p).read().rsplit(')', 1)[1].split()[11:15]]
			user += x[0] + (x[2] if p == leads else 0)
			kernel += x[1] + (x[3] if p == leads else 0)
			if p == leads:
				own_user, own_kernel = x[0], x[1]
	return {'cpu_user': user / TICK, 'cpu_kernel': kernel / TICK, 'child_user': (user - own_user) / TICK, 'child_kernel': (kernel - own_kernel) / TICK}


def of_host():
	cpu = [int(x) / TICK for x in open('/proc/stat').readline().split()[1:]]
	cpu[0] -= cpu[8]
	memory = {k: int(v.split()[0]) * 1024 for k, v in (x.split(':') for x in open('/proc/meminfo'))}
	net = [[int(v) for v in line.split(':')[1].split()] for line in open('/proc/net/dev').read().splitlines()[2:] if line.split(':')[0].strip() != 'lo']
	return {**{'sys_' + k: cpu[i] for k, i in KERNEL.items()}, 'net_in': sum(n[0] for n in net), 'net_out': sum(n[8] for n in net),
	        'available': memory['MemAvailable'], 'mem_free': memory['MemFree'], 'mem_used': memory['MemTotal'] - memory['MemAvailable'],
	        'swap_free': memory['SwapFree'], 'swap_used': memory['SwapTotal'] - memory['SwapFree']}


class Observer(threading.Thread):
	"""What one node says and does, each second, in a list of {"t": ..., name: value}."""

	def __init__(self, world, process, stop):
		super().__init__()
		self.world, self.process, self.stop_at, self.rows, self.slow, self.next = world, process, stop, [], [], 0
		self.folder = world.place.data / 'engine' / world.id / process.split('.')[0]

	def look_slowly(self, cursor, pid):
		t = time.time()
		cursor.execute(ASK_SLOW)
		self.slow.append({**dict(zip(SLOW, cursor.fetchone())), **of_memory(pid), **of_files(self.folder), 't': t, 'pid': pid})

	def look(self, cursor):
		book = (self.folder / 'data' / 'postmaster.pid').read_text().split('\n')
		if time.time() >= self.next:
			self.next = time.time() + 5
			self.look_slowly(cursor, int(book[0]))
		t = time.time()
		cursor.execute(ASK)
		row = dict(zip(NAMES, cursor.fetchone()), t=(t + time.time()) / 2, pid=int(book[0]))
		row.update(of_processes(row['pid']))
		self.rows.append(row)

	def run(self):
		c = None
		while not self.stop_at.wait(0.5):
			try:
				if not c:
					c = as_engine(self.world, process=self.process)
					c.cursor().execute("set track_counts = off; set application_name = 'observer'")
				self.look(c.cursor())
			except (psycopg2.Error, OSError, IndexError, ValueError):
				with suppress(Exception):
					c.close()
				c = None


class Host(threading.Thread):
	def __init__(self, stop, place):
		super().__init__()
		self.stop_at, self.rows, self.place = stop, [], place

	def run(self):
		while not self.stop_at.wait(0.5):
			v = os.statvfs(self.place)
			free, used = v.f_bavail * v.f_frsize, (v.f_blocks - v.f_bfree) * v.f_frsize
			share = {'percent_free': 100 * free / (free + used), 'percent_used': 100 * used / (free + used)}
			self.rows.append({'t': time.time(), **of_host(), **share, 'space_free': free, 'space_used': used})


class Client(threading.Thread):
	"""Transactions, and when each of them was done, by the client's own clock: what was not answered is in `unknown`."""

	def __init__(self, world, stop, number):
		super().__init__()
		self.world, self.stop_at, self.number, self.done, self.unknown = world, stop, number, [], []

	def one(self, c, dice):
		kind = dice.choice(('insert', 'update', 'select', 'all'))
		counts = {'xacts': 1, 'insert': 0, 'update': 0, 'delete': 0, 'select': 0}
		cursor = c.cursor()
		if kind in ('insert', 'all'):
			cursor.execute("insert into ledger select g, 'x' || g from generate_series(1, 3) g")
			counts['insert'] += 3
		if kind in ('update', 'all'):
			cursor.execute('update counters set n = n + 1 where id = %s', (self.number,))
			counts['update'] += 1
		if kind in ('select', 'all'):
			cursor.execute('select count(*) from counters where id between 1 and 100')
			counts['select'] += 1
		if kind == 'all':
			cursor.execute('insert into passing values (%s)', (self.number,))
			cursor.execute('delete from passing where id = %s', (self.number,))
			counts['insert'] += 1
			counts['delete'] += 1
		c.commit()
		return counts

	def run(self):
		c, dice = None, random.Random(self.number)
		while not self.stop_at.wait(0.05):
			begin = time.time()
			try:
				if not c:
					c = self.world.connect()
					c.autocommit = False
					continue
				counts = self.one(c, dice)
				self.done.append((time.time(), counts))
			except psycopg2.Error:
				self.unknown.append((begin, time.time()))
				with suppress(Exception):
					c.close()
				c = None
				time.sleep(0.2)


# What is told, what was counted, and how the two are compared.

RATES = {'CACHE_BYTES_READ_INTO': ('read', 8192), 'GLOBAL_ACCESSES_NOT_IN_MEMORY': ('read', 1), 'QUERY_EXECUTOR_SCANNED_OBJECTS': ('returned', 1),
         'QUERY_EXECUTOR_SCANNED': ('fetched', 1), 'QUERY_SPILL_TO_DISK_DURING_SORT': ('temp', 1), 'CACHE_BYTES_WRITTEN_FROM': ('written', 8192),
         'JOURNALING_WRITE_DATA_FILES_MB': ('written', 8192e-6), 'JOURNALING_MB': ('log', 1e-6), 'OPLOG_RATE_GB_PER_HOUR': ('log', 3600e-9),
         'PROCESS_CPU_USER': ('cpu_user', 100), 'PROCESS_CPU_KERNEL': ('cpu_kernel', 100), 'PROCESS_CPU_CHILDREN_USER': ('child_user', 100),
         'PROCESS_CPU_CHILDREN_KERNEL': ('child_kernel', 100)}
GAUGES = {'CONNECTIONS': 'clients', 'GLOBAL_LOCK_CURRENT_QUEUE_READERS': 'readers', 'GLOBAL_LOCK_CURRENT_QUEUE_WRITERS': 'writers',
          'TICKETS_AVAILABLE_READS': 'free', 'TICKETS_AVAILABLE_WRITE': 'free'}
SLOW_GAUGES = {'DB_STORAGE_TOTAL': 'storage', 'DB_DATA_SIZE_TOTAL': 'data', 'MEMORY_RESIDENT': 'resident', 'MEMORY_VIRTUAL': 'virtual',
               'MEMORY_MAPPED': 'mapped'}
DATABASE = {'DATABASE_DATA_SIZE': 'data', 'DATABASE_INDEX_SIZE': 'indexes', 'DATABASE_STORAGE_SIZE': 'own_storage', 'DATABASE_COLLECTION_COUNT': 'tables',
            'DATABASE_INDEX_COUNT': 'index_count'}
SLOW_RATES = {'INDEX_COUNTERS_BTREE_HITS': ('idx_hit', 1), 'INDEX_COUNTERS_BTREE_MISSES': ('idx_read', 1)}
DISK_GAUGES = {'DISK_PARTITION_SPACE_FREE': 'space_free', 'DISK_PARTITION_SPACE_USED': 'space_used', 'DISK_PARTITION_SPACE_PERCENT_FREE': 'percent_free',
               'DISK_PARTITION_SPACE_PERCENT_USED': 'percent_used'}
HOST_RATES = {**{'SYSTEM_CPU_' + k: ('sys_' + k, 100) for k in KERNEL}, 'SYSTEM_NETWORK_IN': ('net_in', 1), 'SYSTEM_NETWORK_OUT': ('net_out', 1)}
HOST_GAUGES = {'SYSTEM_MEMORY_AVAILABLE': 'available', 'SYSTEM_MEMORY_FREE': 'mem_free', 'SYSTEM_MEMORY_USED': 'mem_used',
               'SWAP_USAGE_FREE': 'swap_free', 'SWAP_USAGE_USED': 'swap_used'}
CLIENTS = {'OPCOUNTER_CMD': 'xacts', 'OPCOUNTER_INSERT': 'insert', 'OPCOUNTER_UPDATE': 'update', 'OPCOUNTER_DELETE': 'delete', 'OPCOUNTER_QUERY': 'select',
           'DOCUMENT_METRICS_INSERTED': 'insert', 'DOCUMENT_METRICS_UPDATED': 'update', 'DOCUMENT_METRICS_DELETED': 'delete'}


def at(rows, t, name, most=2):
	"""The value then, between the two looks around it; None where nothing was seen for so many seconds."""
	low, high = 0, len(rows)
	while low < high:
		middle = (low + high) // 2
		low, high = (middle + 1, high) if rows[middle]['t'] < t else (low, middle)
	if low == 0 or low == len(rows):
		return None
	a, b = rows[low - 1], rows[low]
	if b['t'] - a['t'] > most or a[name] is None or b[name] is None or a.get('pid') != b.get('pid') or a.get('leads') != b.get('leads'):
		return None
	return a[name] + (b[name] - a[name]) * (t - a['t']) / (b['t'] - a['t'])


def rate(rows, minute, name, scale, most=2):
	a, b = at(rows, minute, name, most), at(rows, minute + 60, name, most)
	same = a is not None and b is not None and len({(r.get('pid'), name == 'log' and r.get('leads')) for r in rows if minute <= r['t'] < minute + 60}) == 1
	return (b - a) / 60 * scale if same else None


def peak(rows, minute, name, scale):
	"""The greatest of its ten seconds."""
	ends = [at(rows, minute + 10 * i, name) for i in range(7)]
	return max(b - a for a, b in zip(ends, ends[1:])) / 10 * scale if None not in ends else None


def mean(rows, minute, name, most=2):
	"""Of the moments at which a sample is taken."""
	values = [at(rows, minute + 10 * i + 0.05, name, most) for i in range(6)]
	return sum(values) / 6 if None not in values else None


def lag(rows, primary, minute):
	"""How long ago the primary was where the standby is, by the looks at both; milliseconds, the mean of the samples' moments."""
	found = []
	for i in range(6):
		t = minute + 10 * i
		here = at(rows, t, 'position')
		then = [r['t'] for r in primary if r['leads'] and r['t'] <= t and here is not None and r['position'] <= here]
		if here is None or not then:
			return None
		ahead = [r['t'] for r in primary if r['leads'] and r['t'] <= t and r['position'] > here]
		found.append(1000 * (t - then[-1]) if ahead else 0)
	return sum(found) / 6


def differs(told, counted, floor):
	"""As a share of what was counted; a difference below the floor is none."""
	if told is None or counted is None:
		return None
	return 0 if abs(told - counted) <= floor else abs(told - counted) / max(abs(counted), floor)


@pytest.mark.skipif(not os.environ.get('STEWARD_FIGURES'), reason='takes ten minutes: script/test figures')
def test_figures():
	p = place.Place()
	p.start()
	try:
		figures(p)
	finally:
		p.end()


class Table:
	def __init__(self):
		self.rows = {}

	def add(self, metric, where, minute, told, counted, floor=0.0):
		d = differs(told, counted, floor)
		if d is not None:
			self.rows.setdefault(metric, []).append((d, where, minute, told, counted))

	def worst(self):
		return {m: max(rows) for m, rows in self.rows.items()}


def told_of(w, process, below=''):
	found = ok(w.get(process, 'granularity=PT1M&period=PT1H', below))['measurements']
	return {m['name']: {calendar.timegm(time.strptime(q['timestamp'], '%Y-%m-%dT%H:%M:%SZ')): q.get('value') for q in m['dataPoints']} for m in found}


def events(w, start):
	"""A failover in one minute, a service that is killed and started again in another."""
	time.sleep(max(0, start + 60 * FAILOVER + 20 - time.time()))
	old, = w.processes('REPLICA_PRIMARY')
	book = w.place.data / 'engine' / w.id / old.split('.')[0] / 'data' / 'postmaster.pid'
	os.kill(int(book.read_text().split()[0]), signal.SIGKILL)
	until(lambda: [x for x in w.processes('REPLICA_PRIMARY') if x != old], 60)
	time.sleep(max(0, start + 60 * RESTART + 20 - time.time()))
	w.server.kill()
	w.server = w.place.start()
	until(lambda: w.processes('REPLICA_PRIMARY'), 60)
	time.sleep(max(0, start + 60 * MINUTES + 75 - time.time()))


def compare_node(t, o, observers, host, mine, start):
	cores = os.cpu_count()
	for i in range(MINUTES):
		minute = start + 60 * i
		add = lambda name, counted, floor=0.0: t.add(name, o.process, i, mine.get(name, {}).get(minute), counted, floor)
		# In the minute of the restart there is another beginning: ten seconds are others, and what is looked at once was twice.
		anew = i == RESTART
		for name, (column, scale) in RATES.items():
			few = (2 / TICK if name.startswith('PROCESS_CPU') else FEW) * scale / 60
			add(name, rate(o.rows, minute, column, scale), few)
			add('MAX_' + name, None if anew else peak(o.rows, minute, column, scale), few * 6)
			if name.startswith('PROCESS_CPU'):
				add(name.replace('PROCESS_CPU', 'PROCESS_NORMALIZED_CPU'), rate(o.rows, minute, column, scale / cores), few)
		for name, column in GAUGES.items():
			add(name, mean(o.rows, minute, column), 0.2)
		for name, column in SLOW_GAUGES.items():
			add(name, mean(o.slow, minute, column, 12) if anew else at(o.slow, minute + 0.5, column, 12))
		for name, (column, scale) in SLOW_RATES.items():
			add(name, rate(o.slow, minute, column, scale, 12), FEW * scale / 60)
		for name, (column, scale) in HOST_RATES.items():
			few = (2 * cores / TICK if name.startswith('SYSTEM_CPU') else 1000) * scale / 60
			add(name, rate(host.rows, minute, column, scale), few)
			add('MAX_' + name, None if anew else peak(host.rows, minute, column, scale), few * 6)
			if name.startswith('SYSTEM_CPU'):
				add(name.replace('SYSTEM_CPU', 'SYSTEM_NORMALIZED_CPU'), rate(host.rows, minute, column, scale / cores), few)
		for name, column in HOST_GAUGES.items():
			add(name, mean(host.rows, minute, column))
		for name, column in DATABASE.items():
			add(name, mean(o.slow, minute, column, 12) if anew else at(o.slow, minute + 0.5, column, 12))
		leads = [x for x in observers if mean(x.rows, minute, 'leads') == 1]
		if len(leads) == 1:
			add('OPLOG_REPLICATION_LAG', 0 if leads[0] is o else lag(o.rows, leads[0].rows, minute), 1000)


def compare(w, start, observers, host, clients):
	t, told = Table(), {}
	for o in observers:
		mine = told[o.process] = {**told_of(w, o.process), **told_of(w, o.process, '/databases/postgres')}
		compare_node(t, o, observers, host, mine, start)
		names = [d['partitionName'] for d in ok(w.server.get(w.path('processes/%s/disks' % o.process)))['results']]
		disk = {n: told_of(w, o.process, '/disks/' + n) for n in names}
		for i in range(MINUTES):
			minute = start + 60 * i
			for name, column in DISK_GAUGES.items():
				t.add(name, names[-1], i, disk[names[-1]][name].get(minute), mean(host.rows, minute, column))
			t.add('DISK_PARTITION_SPACE_USED, node', o.process, i, disk['node']['DISK_PARTITION_SPACE_USED'].get(minute), mean(o.slow, minute, 'files', 12))
			t.add('DISK_PARTITION_IOPS_READ, node', o.process, i, disk['node']['DISK_PARTITION_IOPS_READ'].get(minute), rate(o.rows, minute, 'read', 1), FEW / 60)
			both = [{**r, 'writes': r['written'] + r['log_writes']} for r in o.rows]
			t.add('DISK_PARTITION_IOPS_WRITE, node', o.process, i, disk['node']['DISK_PARTITION_IOPS_WRITE'].get(minute), rate(both, minute, 'writes', 1), FEW / 60)
	for i in range(MINUTES):
		minute = start + 60 * i
		for name, column in CLIENTS.items():
			done = sum(counts[column] for c in clients for when, counts in c.done if minute <= when < minute + 60)
			known = [told[o.process][name].get(minute) for o in observers]
			t.add(name, 'all', i, sum(x for x in known if x is not None) * 60, done, 1)
	return t


def source_of(metric):
	host = 'SYSTEM_' in metric or 'SWAP_' in metric or metric in DISK_GAUGES
	by = 'the clients, of all nodes' if metric in CLIENTS else '`/proc` of the host' if host else \
	     '`/proc` of its processes' if 'PROCESS_' in metric or 'MEMORY_' in metric else 'files' if metric.startswith('DISK_PARTITION_SPACE_USED,') else \
	     'the server'
	return by


def table_write(page, t):
	"""In the place of the table that stands between the marks, or into a file of its own."""
	lines = ['| metric | counted by | minutes | mean difference | greatest |', '|---|---|---|---|---|']
	for m, rows in sorted(t.rows.items()):
		of = [r[0] for r in rows]
		lines.append('| `%s` | %s | %d | %.2f%% | %.2f%% |' % (m, source_of(m), len(of), 100 * sum(of) / len(of), 100 * max(of)))
	table = '\n'.join(lines) + '\n'
	text = page.read_text() if page.exists() else BEGIN + END
	before, rest = text.split(BEGIN)
	page.write_text(before + BEGIN + table + END + rest.split(END, 1)[1])


def figures(p):
	w = World(p, 'figures')
	with w.connect() as c, c.cursor() as cursor:
		cursor.execute('create table ledger (id int, text text)')
		cursor.execute('create table passing (id int)')
		cursor.execute('create table counters (id int primary key, n bigint)')
		cursor.execute('insert into counters select g, 0 from generate_series(1, 1000) g')
	stop = threading.Event()
	observers = [Observer(w, x, stop) for x in w.processes()]
	clients = [Client(w, stop, i + 1) for i in range(4)]
	host = Host(stop, p.data)
	threads = [*observers, *clients, host]
	for x in threads:
		x.start()
	try:
		start = (int(time.time()) + 20) // 60 * 60 + 60
		events(w, start)
		t = compare(w, start, observers, host, clients)
	finally:
		stop.set()
		for x in threads:
			x.join(60)
	if os.environ.get('STEWARD_FIGURES_RAW'):
		pathlib.Path(os.environ['STEWARD_FIGURES_RAW']).write_text(json.dumps(t.rows))
	table_write(pathlib.Path(os.environ['STEWARD_FIGURES']), t)
	far = {m: r for m, r in t.worst().items() if r[0] > MOST}
	for m, r in sorted(t.worst().items(), key=lambda x: -x[1][0]):
		print('%-40s %6.2f%%  minute %d of %s: told %.6g, counted %.6g' % (m, r[0] * 100, r[2], r[1], r[3], r[4]))
	assert not far, far
