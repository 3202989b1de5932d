"""What backups cost, each beside a peer in the same run: PostgreSQL's own programs, Debian's pgBackRest, or the same
without backups. Real databases and the real service; sides take turns, and medians are compared. Data lies below
/var/tmp. `--only backups` is all of it; its parts have names of their own."""
import calendar, contextlib, json, os, pathlib, re, resource, shutil, signal, statistics, subprocess, sys
import tempfile, time

from engine import AS_USER, PASSWORD, USER, ByHand, Service, psql, site, working_in
from servers import Steward, Trouble, binary, wait_for
from tools import Progress, ratio

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'fault'))
import reflinks  # noqa: E402

SUPER = 'steward_engine'
CLIENTS = 8
TPS_ROUNDS = 7
LEAST_ROUNDS = 3
PATIENCE = 300
SERVER = '''listen_addresses = ''
unix_socket_directories = '{home}'
shared_buffers = 64MB
wal_level = logical
max_wal_size = 1GB
max_connections = 400
max_worker_processes = 16
max_wal_senders = 64
max_replication_slots = 64
'''
REST = '''[global]
repo1-path={repo}
repo1-cipher-type=aes-256-cbc
repo1-cipher-pass=correct horse
repo1-retention-full=2
compress-type=zst
process-max=2
start-fast=y
archive-check=n
lock-path={home}/lock
spool-path={home}/spool
log-level-console=error
log-level-file=off
[bench]
pg1-path={data}
pg1-socket-path={run}
pg1-port={port}
pg1-user={user}
pg1-database=postgres
'''
ROWS = '''insert into pgbench_branches select i, 0 from generate_series(1, {scale}) i;
insert into pgbench_tellers select i, (i - 1) / 10 + 1, 0 from generate_series(1, {scale} * 10) i;
insert into pgbench_accounts select i, (i - 1) / 100000 + 1, (random() * 100000)::int, md5(i::text)
	from generate_series(1, {scale} * 100000) i;'''
CHANGE = 'update pgbench_accounts set abalance = abalance + 1 where '
PAGES = '''ctid = any(array(select format('(%%s,1)', p)::tid from generate_series(%d, (select relpages - 1 from pg_class
	where relname = 'pgbench_accounts'), 100) p))'''
PAIRS = '''\\set n random(1, 1000000000)
begin;
insert into pairs values (:n, 1);
insert into pairs values (:n + 1, 2);
commit;
'''


def shape(name, shards=1, **more):
	one = {'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
				  'electableSpecs': {'instanceSize': 'M40', 'nodeCount': 1}}]}
	return {'name': name, 'clusterType': 'REPLICASET' if shards == 1 else 'SHARDED', 'backupEnabled': True,
		'replicationSpecs': [one] * shards, **more}


def bytes_of(*places):
	return sum(f.stat().st_size for p in places for f in pathlib.Path(p).rglob('*') if f.is_file())


def said(*words, seconds=0, env=None):
	"""What a program prints."""
	done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
			      stderr=subprocess.PIPE, text=True, timeout=seconds + PATIENCE, cwd='/', env=env)
	if done.returncode:
		raise Trouble('%s: %s' % (' '.join(map(str, words[:6])), (done.stdout + done.stderr)[-1000:]))
	return done.stdout.strip()


def pid_times(pid, first):
	"""Seconds of the processor: of the process itself (11), or of its children that have ended (13)."""
	fields = pathlib.Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()
	return (int(fields[first]) + int(fields[first + 1])) / os.sysconf('SC_CLK_TCK')


def median(rounds, *names):
	def one(r):
		for n in names:
			r = r[n]
		return r
	return statistics.median(one(r) for r in rounds)


class Keeper(Service):
	"""The service with its repository in a place that can be another one after each start."""

	def __init__(self, bench, folder):
		self.place = folder / 'r0'
		super().__init__(bench, folder)

	def start(self):
		self.server = Steward(self.bench.workshop, '--engine', 'postgres', '--backups', self.place,
				      '--log-level', 'debug', data=self.folder / 'd')

	def move(self, place):
		"""To an empty repository; databases run on."""
		self.server.stop()
		shutil.rmtree(self.place, ignore_errors=True)
		self.place = place
		(place / '~put').mkdir(parents=True)  # it expects backups where there were some: this says that none are meant
		self.start()

	def path(self, name, *more):
		return '/'.join(('%s/clusters/%s' % (self.group, name), *more))

	def make(self, name, shards=1, **more):
		self.server.api('POST', self.group + '/clusters', json=shape(name, shards, **more))
		self.connect(name)

	def string(self, name):
		return self.server.api('GET', self.path(name)).json()['connectionStrings']['standard']

	def ask(self, name, statement):
		return self.client('psql', '-XAtqw', '-d', self.string(name), '-c', statement)

	def client(self, *words, seconds=0):
		env = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'PGUSER': USER, 'PGPASSWORD': PASSWORD}
		return said(*words, seconds=seconds, env=env)

	def pgbench(self, name, *words, seconds=0):
		return self.client('pgbench', *words, self.string(name), seconds=seconds)

	def tps(self, name, seconds):
		out = self.pgbench(name, '-n', '-c', CLIENTS, '-j', 2, '-T', seconds, seconds=seconds)
		return float(re.search(r'^tps = ([\d.]+)', out, re.M).group(1))

	def fill(self, name, scale):
		"""pgbench's tables, with room in each page, so that a row can change where it is, and with text that is not all
		blanks: what it writes itself compresses as nobody's data does."""
		self.pgbench(name, '-i', '-q', '-I', 'dt', '-F', 90)
		self.ask(name, ROWS.format(scale=scale))
		self.pgbench(name, '-i', '-q', '-I', 'vp')

	def over(self, path, is_over, patience=PATIENCE):
		end = time.monotonic() + patience
		while time.monotonic() < end:
			document = self.server.api('GET', path).json()
			if is_over(document):
				return document
			time.sleep(0.02)
		raise Trouble('%s is not over after %d s' % (path, patience))

	def snapshot(self, name):
		"""Until it is completed."""
		path = self.path(name, 'backup/snapshots')
		stored, cpu, began = bytes_of(self.place), pid_times(self.server.process.pid, 11), time.perf_counter()
		made = self.server.api('POST', path, json={}).json()['id']
		done = self.over('%s/%s' % (path, made), lambda d: d['status'] in ('completed', 'failed'))
		took = time.perf_counter() - began
		if done['status'] != 'completed':
			raise Trouble('the snapshot of %s failed' % name)
		return {'id': made, 'seconds': took, 'cpu': pid_times(self.server.process.pid, 11) - cpu,
			'stored': bytes_of(self.place) - stored}

	def settled(self, name):
		"""No snapshot that is taken by itself is under way."""
		path = self.path(name, 'backup/snapshots')
		self.over(path, lambda d: d['results'] and all(s['status'] == 'completed' for s in d['results']))

	def restore(self, name, target, **body):
		"""Until the target takes clients again."""
		body = {'targetClusterName': target, 'targetGroupId': self.server.bootstrap['groupId'], **body}
		began = time.perf_counter()
		job = self.server.api('POST', self.path(name, 'backup/restoreJobs'), json=body).json()
		job = self.over(self.path(name, 'backup/restoreJobs', job['id']), lambda d: d.get('finishedAt'))
		if job.get('failed'):
			raise Trouble('the restore of %s failed' % name)
		self.connect(target)
		return time.perf_counter() - began

	def check(self):
		"""Seconds for a look at every byte that is stored."""
		began = time.perf_counter()
		out = said(binary(), 'repository', 'check', '--data', self.folder / 'd', '--backups', self.place)
		took = time.perf_counter() - began
		if 'clean' not in out:
			raise Trouble('repository check: %s' % out)
		return took

	def node(self, name):
		return Node(self, name)

	def phases(self):
		"""Milliseconds of the last restore, as the service tells them."""
		found = re.findall(r'restored: files (\d+) ms, recovery (\d+), flush (\d+), change of places (\d+), nodes (\d+)',
				   self.server.output.read_text(errors='replace'))
		return dict(zip(('files', 'recovery', 'flush', 'change', 'nodes'), map(int, found[-1]))) if found else {}


class Node(ByHand):
	"""A cluster's only database as its system user reaches it, and what PostgreSQL's programs do with it."""

	def __init__(self, keeper, name):
		super().__init__(keeper.folder)
		engine = keeper.server.data / 'engine'
		home = engine / keeper.server.api('GET', keeper.path(name)).json()['id']
		node = json.loads((home / 'state.json').read_text())['nodes'][0]
		self.data, self.port = home / node['name'] / 'data', node['port']
		self.socket = engine / 'run' / str(node['slot'])
		self.there = ('-h', self.socket, '-p', self.port, '-U', SUPER, '-w')

	def own(self, prefix):
		"""A new directory of the databases' user."""
		made = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=self.folder))
		if self.drop:
			shutil.chown(made, AS_USER, AS_USER)
		return made

	def sql(self, statement):
		return said(*self.drop, 'psql', '-XAtq', *self.there, '-d', 'postgres', '-c', statement)

	def postmaster(self):
		return int((self.data / 'postmaster.pid').read_text().split()[0])

	def spent(self):
		"""By sessions that are over, and by programs that we have run."""
		used = resource.getrusage(resource.RUSAGE_CHILDREN)
		return pid_times(self.postmaster(), 13) + used.ru_utime + used.ru_stime

	def base(self):
		"""pg_basebackup, compressed by the server."""
		to = self.own('b-')
		cpu, began = self.spent(), time.perf_counter()
		said(*self.drop, self.bin / 'pg_basebackup', '-D', to / 't', *self.there, '-Ft', '--compress=server-zstd:1',
		     '-X', 'fetch', '-c', 'fast')
		took = time.perf_counter() - began
		return {'seconds': took, 'cpu': self.spent() - cpu, 'stored': bytes_of(to), 'place': to}

	def unpack(self, base, log=()):
		"""A directory to start from. `log`: files that lie in its pg_wal besides."""
		home = self.own('u-')
		script = 'mkdir -m 700 "$2/d" && zstd -dcq "$1/t/base.tar.zst" | tar -x -C "$2/d"'
		said(*self.drop, 'sh', '-ec', script, 'sh', base, home)
		texts = {'postgresql.conf': SERVER.format(home=home), 'pg_hba.conf': 'local all all trust\n', 'pg_ident.conf': ''}
		for name, text in texts.items():
			(home / 'd' / name).write_text(text)
		for file in log:
			shutil.copy(file, home / 'd/pg_wal' / file.name)
		if self.drop:
			for file in (*(home / 'd').glob('*.conf'), *(home / 'd/pg_wal').glob('0*')):
				shutil.chown(file, AS_USER, AS_USER)
		return home

	def begin(self, home):
		"""Until it takes clients."""
		self.run('pg_ctl', '-D', home / 'd', '-W', '-l', home / 'log', 'start')
		asked = 'host=%s dbname=postgres user=%s' % (home, SUPER)
		answers = lambda: time.sleep(0.03) or psql(asked, 'select 1') == '1'
		wait_for('the server', answers, PATIENCE, log=home / 'log')

	def end(self, home):
		if (home / 'd/postmaster.pid').exists():
			self.run('pg_ctl', '-D', home / 'd', '-w', '-m', 'immediate', 'stop')
		shutil.rmtree(home, ignore_errors=True)

	def unpack_begin(self, base):
		began, home = time.perf_counter(), None
		try:
			home = self.unpack(base)
			self.begin(home)
			return time.perf_counter() - began
		finally:
			if home:
				self.end(home)

	def replay(self, base, log):
		"""Seconds of a start, everything unpacked and on disk before."""
		home = self.unpack(base, log)
		try:
			subprocess.run(['sync', '-f', str(home)], check=True)
			began = time.perf_counter()
			self.begin(home)
			return time.perf_counter() - began
		finally:
			self.end(home)


class Rest:
	"""pgBackRest with a repository of its own, as its manual has it: zstd, encrypted, two processes."""

	def __init__(self, node):
		self.node, self.home = node, node.own('p-')
		self.repo, self.conf = self.home / 'repo', self.home / 'conf'
		self.conf.write_text(REST.format(repo=self.repo, home=self.home, data=node.data, run=node.socket,
						 port=node.port, user=SUPER))
		os.chmod(self.conf, 0o644)
		self.run('stanza-create')

	def run(self, *words):
		said(*self.node.drop, 'pgbackrest', '--config=%s' % self.conf, '--stanza=bench', *words)

	def backup(self, kind):
		stored, cpu, began = bytes_of(self.repo), self.node.spent(), time.perf_counter()
		self.run('backup', '--type=' + kind)
		took = time.perf_counter() - began
		return {'seconds': took, 'cpu': self.node.spent() - cpu, 'stored': bytes_of(self.repo) - stored}

	def restore(self):
		"""Its files alone."""
		to = self.node.own('q-')
		began = time.perf_counter()
		self.run('restore', '--pg1-path=%s' % to, '--type=none')
		took = time.perf_counter() - began
		shutil.rmtree(to, ignore_errors=True)
		return took

	def close(self):
		shutil.rmtree(self.home, ignore_errors=True)


def turned(sides, number):
	return list(sides) if number % 2 == 0 else list(reversed(sides))


class Snapshots:
	"""One round: a first copy by each, what changed by two, and each back again."""

	def __init__(self, keeper, rest):
		self.keeper, self.rest = keeper, rest

	def first(self, number):
		keeper, node, one = self.keeper, self.keeper.node('orders'), {}
		keeper.move(keeper.folder / ('r%d' % (number + 1)))
		keeper.connect('orders')
		rest = Rest(node) if self.rest else None
		node.sql('checkpoint')
		sides = {'steward': lambda: keeper.snapshot('orders'), 'base': node.base}
		if rest:
			sides['rest'] = lambda: rest.backup('full')
		for side in turned(sides, number):
			one[side] = sides[side]()
		return one, node, rest

	def again(self, rest, statement, one, name, number):
		"""After a change, which is on disk before anybody looks."""
		self.keeper.ask('orders', statement)
		self.keeper.node('orders').sql('checkpoint')
		sides = {'steward': lambda: self.keeper.snapshot('orders')}
		if rest:
			sides['rest'] = lambda: rest.backup('incr')
		one[name] = {side: sides[side]() for side in turned(sides, number)}

	def round(self, number, rows):
		one, node, rest = self.first(number)
		try:
			one['check'] = self.keeper.check()
			some, of = rows // 100, number * rows // 10 + 1
			self.again(rest, CHANGE + 'aid between %d and %d' % (of, of + some - 1), one, 'rows', number)
			self.again(rest, CHANGE + PAGES % number, one, 'pages', number)
			back = {'steward': lambda: self.keeper.restore('orders', 'orders', deliveryType='automated',
								       snapshotId=one['steward']['id']),
				'base': lambda: node.unpack_begin(one['base']['place'])}
			if rest:
				back['rest'] = rest.restore
			one['restore'] = {side: back[side]() for side in turned(back, number)}
			one['phases'] = self.keeper.phases()
		finally:
			if rest:
				rest.close()
			shutil.rmtree(one['base'].pop('place'), ignore_errors=True)
		return one


def snapshots_rows(result, megabytes, rest):
	rounds, mb = result['rounds'], lambda n: n / 1e6
	m = lambda *names: median(rounds, *names)
	r = result['ratios'] = {}
	r['snapshot'] = ratio(m('steward', 'seconds'), m('base', 'seconds'))
	r['verification'] = ratio(m('check'), m('steward', 'seconds'))
	r['restore'] = ratio(m('restore', 'steward'), m('restore', 'base'))
	rows = [('snapshot of %.0f MB' % megabytes,
		 '%.2f of pg_basebackup to server-side zstd (%.1f and %.1f s; %.1f and %.1f s of CPU; %.1f and %.1f MB)' % (
			 r['snapshot'], m('steward', 'seconds'), m('base', 'seconds'), m('steward', 'cpu'), m('base', 'cpu'),
			 mb(m('steward', 'stored')), mb(m('base', 'stored'))), 'at most 1.1')]
	for name, label in (('rows', '1% of the rows changed'), ('pages', 'a row of every 100th page changed')):
		stored, cpu = (ratio(m(name, 'steward', what), m('steward', what)) for what in ('stored', 'cpu'))
		r[name] = {'stored': stored, 'cpu': cpu}
		rows.append(('the next snapshot, %s' % label,
			     '%.1f%% of the bytes and %.2f of the CPU of the first (%.1f MB, %.1f s)' % (
				     100 * stored, cpu, mb(m(name, 'steward', 'stored')), m(name, 'steward', 'cpu')),
			     'at most 5% and 0.6'))
	rows += [('verification of all that is stored', '%.2f of the snapshot (%.1f s)' % (
			r['verification'], m('check')), 'at most 1'),
		 ('restore, until it takes clients',
		  '%.2f of unpacking pg_basebackup\'s and starting it (%.1f and %.1f s)' % (
			 r['restore'], m('restore', 'steward'), m('restore', 'base')), 'at most 1.2')]
	return rows + (rest_rows(result, m, mb) if rest else [])


def rest_rows(result, m, mb):
	r, rows = result['ratios'], []
	for name, label, ours, theirs in (('full', 'first', ('steward',), ('rest',)),
					  ('rows', '1% of the rows changed', ('rows', 'steward'), ('rows', 'rest')),
					  ('pages', 'every 100th page', ('pages', 'steward'), ('pages', 'rest'))):
		took, stored, cpu = (ratio(m(*ours, w), m(*theirs, w)) for w in ('seconds', 'stored', 'cpu'))
		r['rest.' + name] = {'seconds': took, 'stored': stored, 'cpu': cpu}
		rows.append(('beside pgBackRest: %s' % label,
			     '%.2f of its time, %.2f of its CPU, %.2f of its bytes (%.1f and %.1f s, %.1f and %.1f MB)' % (
				     took, cpu, stored, m(*ours, 'seconds'), m(*theirs, 'seconds'), mb(m(*ours, 'stored')),
				     mb(m(*theirs, 'stored'))), 'faster and smaller'))
	both = [m(side, 'stored') + m('rows', side, 'stored') + m('pages', side, 'stored') for side in ('steward', 'rest')]
	r['rest.all'] = ratio(*both)
	rows.append(('beside pgBackRest: all three together', '%.2f of its bytes (%.1f and %.1f MB)' % (
		r['rest.all'], *map(mb, both)), 'smaller'))
	back = r['rest.restore'] = ratio(m('restore', 'steward'), m('restore', 'rest'))
	rows.append(('beside pgBackRest: restore, its files alone', '%.2f of its time (%.1f and %.1f s)' % (
		back, m('restore', 'steward'), m('restore', 'rest')), 'faster'))
	return rows


def figure_snapshots(bench, pair):
	scale, count = 10 if bench.quick else 40, 1 if bench.quick else max(LEAST_ROUNDS, bench.rounds)
	rest = shutil.which('pgbackrest')
	if not rest:
		bench.fault('pgBackRest is missing: apt-get install pgbackrest')
	with site() as folder:
		keeper, bar = Keeper(bench, folder), Progress('snapshots and restores')
		try:
			keeper.make('orders')
			keeper.fill('orders', scale)
			node = keeper.node('orders')
			megabytes = int(node.sql('select sum(pg_database_size(oid)) from pg_database')) / 1e6
			one, result = Snapshots(keeper, rest), {'megabytes': megabytes, 'rounds': []}
			for number in range(count):
				result['rounds'].append(one.round(number, scale * 100000))
				bar.show((number + 1) / count)
			bar.end()
		finally:
			keeper.server.stop()
	result['wanted'] = {'snapshotAtMost': 1.1, 'nextBytesAtMost': 0.05, 'nextCpuAtMost': 0.6,
			    'verificationAtMost': 1, 'restoreAtMost': 1.2, 'restAtMost': 1}
	return result, snapshots_rows(result, megabytes, rest)


@contextlib.contextmanager
def shared_site():
	"""A site on a file system whose files can share blocks; None: this machine has none."""
	with site() as folder:
		at = folder / 'x'
		at.mkdir()
		if not reflinks.mount(folder / 'disk', at, 8 << 10):
			yield None
			return
		try:
			yield at
		finally:
			for pid in working_in(at):
				with contextlib.suppress(ProcessLookupError):
					os.kill(pid, signal.SIGKILL)
			wait_for('the end of all in %s' % at, lambda: not working_in(at), PATIENCE)
			reflinks.unmount(at)


def figure_clone(bench, pair):
	"""The newest snapshot into another cluster, until that takes clients."""
	scale, count, result = 10 if bench.quick else 60, 1 if bench.quick else max(LEAST_ROUNDS, bench.rounds), {'rounds': []}
	with shared_site() as folder:
		if not folder:
			bench.fault('no file system with reflinks can be made here: that takes root and xfsprogs or btrfs-progs')
			return result, []
		keeper = Keeper(bench, folder)
		try:
			keeper.make('orders')
			keeper.make('copy')
			keeper.fill('orders', scale)
			node = keeper.node('orders')
			result['megabytes'] = int(node.sql('select sum(pg_database_size(oid)) from pg_database')) / 1e6
			for number in range(count):
				taken = keeper.snapshot('orders')
				took = keeper.restore('orders', 'copy', deliveryType='automated', snapshotId=taken['id'])
				result['rounds'].append({'seconds': took, 'snapshot': taken['seconds'], 'phases': keeper.phases()})
			if keeper.ask('copy', 'select count(*) from pgbench_accounts') != str(scale * 100000):
				raise Trouble('the clone lacks rows')
		finally:
			keeper.server.stop()
	took = median(result['rounds'], 'seconds')
	result.update(wanted={'secondsAtMost': 1.5})
	return result, [('clone of %.0f MB on a file system with reflinks' % result['megabytes'],
			 '%.2f s until it takes clients' % took, 'at most 1.5 s for 1 GB')]


def log_write(keeper, node, scale, wanted):
	"""So much log: changes by the hundred thousand rows, and transactions as clients make them."""
	position = lambda: int(node.sql("select (pg_current_wal_lsn() - '0/0')::bigint"))
	first, number, end = position(), 0, time.monotonic() + 60
	while position() - first < wanted and time.monotonic() < end:
		at = number % scale * 100000
		keeper.ask('kept', CHANGE + 'aid between %d and %d' % (at + 1, at + 100000))
		number += 1
	keeper.tps('kept', 2)
	return position() - first


def log_offered(keeper, name, second):
	"""Something is committed after the second, and the archive has all of it."""
	time.sleep(max(0, second + 1.2 - time.time()))
	keeper.ask(name, 'create table if not exists later(n int); insert into later values (1)')
	path = keeper.path(name, 'backup/snapshots?pointInTimeUtcSeconds=%d' % (second + 1))
	keeper.over(path, lambda d: d['results'], 60)


def replay_measure(keeper, node, scale, count, wanted, result):
	node.sql("select pg_create_physical_replication_slot('bench', true)")
	taken, base, copy = keeper.snapshot('kept'), node.base(), node.own('w-')
	result['logBytes'] = log_write(keeper, node, scale, wanted)
	second = int(time.time()) + 1
	log_offered(keeper, 'kept', second)
	node.sql('select pg_switch_wal()')
	log = sorted(f for f in (node.data / 'pg_wal').glob('0*') if len(f.name) == 24)
	for file in log:
		shutil.copy(file, copy / file.name)
	node.sql("select pg_drop_replication_slot('bench')")
	log = sorted(copy.iterdir())
	snapshot = {'deliveryType': 'automated', 'snapshotId': taken['id']}
	point = {'deliveryType': 'pointInTime', 'pointInTimeUTCSeconds': second}
	sides = {'steward.with': lambda: keeper.restore('kept', 'plain', **point),
		 'steward.without': lambda: keeper.restore('kept', 'plain', **snapshot),
		 'base.with': lambda: node.replay(base['place'], log),
		 'base.without': lambda: node.replay(base['place'], ())}
	sides['steward.without']()  # what the target held before has nothing left to write
	result['replay'], result['phases'], bar = [], [], Progress('replays')
	for number in range(count):
		one = {}
		for side in turned(sides, number):
			one[side] = sides[side]()
			if side == 'steward.with':
				result['phases'].append(keeper.phases())
		result['replay'].append(one)
		bar.show((number + 1) / count)
	bar.end()
	found = keeper.ask('plain', 'select count(*) from pgbench_history')
	if number % 2 == 1 and found != keeper.ask('kept', 'select count(*) from pgbench_history'):
		raise Trouble('the restored cluster has %s rows of history' % found)


def figure_log(bench, pair):
	"""With the log kept and without; and how fast it comes back."""
	scale, count = 10, 1 if bench.quick else max(LEAST_ROUNDS, bench.rounds)
	seconds, turns = (2, 3) if bench.quick else (4, TPS_ROUNDS)
	result = {'tps': []}
	with site() as folder:
		keeper, bar = Keeper(bench, folder), Progress('transactions with and without')
		try:
			for name, kept in (('plain', False), ('kept', True)):
				keeper.make(name, pitEnabled=kept)
				keeper.fill(name, scale)
			keeper.settled('kept')
			for name in ('plain', 'kept'):
				keeper.tps(name, 2)
			for number in range(turns):
				sides = turned(('kept', 'plain'), number)
				result['tps'].append({name: keeper.tps(name, seconds) for name in sides})
				bar.show((number + 1) / turns)
			bar.end()
			replay_measure(keeper, keeper.node('kept'), scale, count, 100e6 if bench.quick else 400e6, result)
		finally:
			keeper.server.stop()
	m = lambda name: median(result['tps'], name)
	result['tpsRatio'] = ratio(m('kept'), m('plain'))
	# What the log costs: with it, less the same without it.
	each = {side: median(result['replay'], side + '.with') - median(result['replay'], side + '.without')
		for side in ('steward', 'base')}
	rates = {side: result['logBytes'] / 1e6 / max(0.001, spent) for side, spent in each.items()}
	result.update(replaySeconds=each, replayRatio=ratio(rates['steward'], rates['base']),
		      wanted={'tpsAtLeast': 0.95, 'replayAtLeast': 0.8})
	return result, [('pgbench, %d clients, its log kept' % CLIENTS, '%.2f of without (%.0f and %.0f /s)' % (
				result['tpsRatio'], m('kept'), m('plain')), 'at least 0.95'),
			('replay of %.0f MB of log from the repository' % (result['logBytes'] / 1e6),
			 '%.2f of log that lies in pg_wal (%.0f and %.0f MB/s)' % (
				 result['replayRatio'], rates['steward'], rates['base']), 'at least 0.8')]


POINT = re.compile(r'^(\S{19})Z +debug .*a point of (\d+) sets: writers waited (\d+) us$', re.M)


def points_read(text):
	"""(second, how long writers were held, in ms) of each point that all shards share."""
	return [(calendar.timegm(time.strptime(at, '%Y-%m-%dT%H:%M:%S')), int(us) / 1e3)
		for at, sets, us in POINT.findall(text) if int(sets) > 1]


def slowest(folder):
	"""By second of its end, the slowest transaction, in ms."""
	found = {}
	for file in folder.glob('points.*'):
		for line in file.read_text().splitlines():
			words = line.split()
			second = int(words[4])
			found[second] = max(found.get(second, 0), int(words[2]) / 1e3)
	return found


def figure_shards(bench, pair):
	"""A point that all shards share is made every ten seconds: how long are writers held?"""
	seconds, result = 25 if bench.quick else 65, {}
	with site() as folder:
		keeper = Keeper(bench, folder)
		try:
			keeper.make('sharded', 2, pitEnabled=True)
			keeper.ask('sharded', "create table pairs(n bigint, side int)")
			keeper.ask('sharded', "select steward.shard_table('pairs', 'n')")
			keeper.settled('sharded')
			script = folder / 'pairs.sql'
			script.write_text(PAIRS)
			began = time.time()
			out = keeper.pgbench('sharded', '-n', '-c', 4, '-j', 1, '-T', seconds, '-f', script, '-l',
					     '--log-prefix=%s' % (folder / 'points'), seconds=seconds)
			points = points_read(keeper.server.output.read_text(errors='replace'))
			held = [p for p in points if p[0] >= began]
			worst = slowest(folder)
		finally:
			keeper.server.stop()
	if not held:
		raise Trouble('no point was made in %d s' % seconds)
	near = {at + d for at, _ in held for d in (0, 1)}
	there = [worst[s] for s in near if s in worst]
	apart = [ms for s, ms in worst.items() if s not in near]
	held = [ms for _, ms in held]
	result.update(heldMilliseconds=held, tps=float(re.search(r'^tps = ([\d.]+)', out, re.M).group(1)),
		      slowestThere=sorted(there), slowestApart=sorted(apart), wanted={'millisecondsAtMost': 20})
	return result, [('sharded: writers held at a common point, %d points' % len(held),
			 '%.1f ms, at most %.1f (slowest transaction of such a second %.0f ms, of others %.0f; %.0f /s)' % (
				 statistics.median(held), max(held), statistics.median(there or [0]),
				 statistics.median(apart or [0]), result['tps']), 'at most 20 ms')]


FIGURES = {'backups-snapshots': figure_snapshots, 'backups-clone': figure_clone, 'backups-log': figure_log,
	   'backups-shards': figure_shards}
