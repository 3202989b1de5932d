"""What samples cost: of sixty real clusters whose tables are in use, and of two thousand simulated ones with alert configurations, in
processor time, which means the same on a busy machine; and a series' file, its size and the time of a month of one metric."""
import contextlib, json, os, pathlib, signal, subprocess, time

from engine import PASSWORD, USER, Service, programs, servers_of, shape, site, working_in
from servers import HERE, ROOT, Steward, Trouble, wait_for
from tools import Progress

REAL_WANTED, SIMULATED_WANTED, MONTH_WANTED = 3, 20, 10
SERIES_PARTS = ('arena', 'buf', 'clock', 'file', 'id', 'log', 'nolink', 'str')
TABLES = ('orders', 'customers', 'events')


def ran(path):
	"""Seconds of the processor that a process or thread has used; 0 where it is gone."""
	with contextlib.suppress(OSError, IndexError):
		return int((path / 'schedstat').read_text().split()[0]) / 1e9
	return 0


def kept(service):
	"""The thread that takes samples, and the sessions that it keeps."""
	pid = service.server.process.pid
	found = [t for t in pathlib.Path('/proc/%d/task' % pid).iterdir() if (t / 'comm').read_text().strip() == 'samples']
	for one in working_in(service.folder):
		with contextlib.suppress(OSError):
			if 'steward_engine postgres [local]' in pathlib.Path('/proc/%d/cmdline' % one).read_text():
				found.append(pathlib.Path('/proc/%d' % one))
	return {str(p): ran(p) for p in found}


def ended(service):
	"""Seconds that the servers' children have used that are gone: looks into databases, and the servers' own vacuum."""
	ticks = 0
	for pid in servers_of(service.folder):
		words = pathlib.Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()
		ticks += int(words[13]) + int(words[14])
	return ticks / os.sysconf('SC_CLK_TCK')


class Clients:
	"""A session in each cluster, which uses its tables."""

	def __init__(self, strings):
		self.all = [subprocess.Popen(['psql', '-XAtqw', '-d', s], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
					     stderr=subprocess.DEVNULL, text=True,
					     env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'PGUSER': USER, 'PGPASSWORD': PASSWORD})
			    for s in strings]
		self.say(*('create table %s(id int)' % t for t in TABLES))

	def say(self, *statements):
		for one in self.all:
			one.stdin.write(''.join(s + ';\n' for s in statements))
			one.stdin.flush()

	def use(self, seconds):
		"""For so long, as something that goes on."""
		until = time.monotonic() + seconds
		while time.monotonic() < until:
			self.say(*('insert into %s values (1); select count(*) from %s' % (t, t) for t in TABLES))
			time.sleep(min(10, max(0, until - time.monotonic())))

	def end(self):
		for one in self.all:
			with contextlib.suppress(OSError):
				one.stdin.close()
			one.wait(20)


def series_bytes(service):
	return {str(f): f.stat().st_size for f in (service.folder / 'd/series').rglob('*') if f.is_file() and f.suffix != '.tables'}


def asleep(service, clients, seconds=60):
	"""What ended children take in each second while the service does nothing: the servers' own vacuum."""
	os.kill(service.server.process.pid, signal.SIGSTOP)
	try:
		time.sleep(5)  # sessions that were under way end
		began, before = time.monotonic(), ended(service)
		clients.use(seconds)
		return (ended(service) - before) / (time.monotonic() - began)
	finally:
		os.kill(service.server.process.pid, signal.SIGCONT)


def real_measure(service, seconds):
	strings = [c['connectionStrings']['standard'] for c in service.clusters()]
	clients = Clients(strings)
	try:
		clients.use(75)  # all are connected, and were looked into once
		files, before, gone, began = series_bytes(service), kept(service), ended(service), time.monotonic()
		clients.use(seconds)
		after, gone, took = kept(service), ended(service) - gone, time.monotonic() - began
		others = asleep(service, clients)
	finally:
		clients.end()
	now = series_bytes(service)
	used = lambda thread: 100 * sum(v - before[k] for k, v in after.items() if k in before and ('/task/' in k) == thread) / took
	tables = [f for f in now if '.table.' in f]
	return {'seconds': round(took), 'thread': round(used(True), 2), 'sessions': round(used(False), 2),
		'ended': round(100 * max(0, gone / took - others), 2), 'vacuum': round(100 * others, 2),
		'keptSessions': sum('/task/' not in k for k in after), 'files': len(now), 'tableFiles': len(tables),
		'grown': sum(now[f] != files[f] for f in files if f in now), 'bytes': sum(now.values())}


def real(bench, count, seconds):
	programs()
	with site() as folder:
		service = Service(bench, folder)
		try:
			service.server.api('PATCH', service.group + '/limits/svc.project.deployment.clusters', json={'value': 100})
			bar = Progress('%d clusters' % count)
			for i in range(count):
				service.create('c%d' % i, 1)
			idle = lambda: sum(c['stateName'] == 'IDLE' for c in service.clusters())
			wait_for('the clusters', lambda: bar.show(idle() / count) or idle() == count, 300)
			bar.end()
			return {'clusters': count, **real_measure(service, seconds)}
		finally:
			service.server.stop()


THRESHOLD = {'eventTypeName': 'OUTSIDE_METRIC_THRESHOLD', 'enabled': True,
	     'notifications': [{'typeName': 'EMAIL', 'emailAddress': 'a@example.com'}],
	     'metricThreshold': {'metricName': 'CONNECTIONS', 'operator': 'GREATER_THAN', 'threshold': 1000000}}


def simulated(bench, count, seconds):
	server = Steward(bench.workshop, '--engine', 'simulated', '--simulated-seconds', '1')
	try:
		server.raise_limits()
		bar = Progress('%d simulated clusters' % count)
		groups = []
		for i in range(count):
			if i % 100 == 0:
				org = server.bootstrap['orgId']
				groups.append('/groups/' + server.api('POST', '/groups', json={'name': 'p%d' % i, 'orgId': org}).json()['id'])
				server.api('PATCH', groups[-1] + '/limits/svc.project.deployment.clusters', json={'value': 100})
				server.api('POST', groups[-1] + '/alertConfigs', json=THRESHOLD)
			server.api('POST', groups[-1] + '/clusters', json=shape('c%d' % i, 3))
			bar.show(i / count)
		bar.end()
		states = lambda g: {c['stateName'] for c in server.api('GET', g + '/clusters?itemsPerPage=500').json()['results']}
		wait_for('the simulated clusters', lambda: all(states(g) == {'IDLE'} for g in groups), 300)
		time.sleep(5)
		began, before = time.monotonic(), server.cpu_seconds()
		time.sleep(seconds)
		took = time.monotonic() - began
		return {'clusters': count, 'seconds': round(took), 'percent': round(100 * (server.cpu_seconds() - before) / took, 2)}
	finally:
		server.stop()


def series(bench):
	program = bench.workshop.dir / 'bench_series'
	source = [HERE / 'series.c', *sorted((ROOT / 'src/series').glob('*.c')), ROOT / 'src/engine/measures.c',
		  *(ROOT / 'src/base' / (p + '.c') for p in SERIES_PARTS)]
	bench.workshop.run(os.environ.get('CC', 'cc'), '-std=gnu17', '-O2', '-D_GNU_SOURCE', '-funsigned-char', '-I', ROOT / 'src', *source,
			   '-o', program, '-lm', '-lcrypto', '-ljansson', '-ldeflate')
	return json.loads(bench.workshop.run(program, bench.workshop.dir))


def figure_sampling(bench, pair):
	seconds = 60 if bench.quick else 180
	result = {'series': series(bench), 'simulated': simulated(bench, 400 if bench.quick else 2000, seconds),
		  'real': real(bench, 12 if bench.quick else 60, seconds)}
	r, s = result['real'], result['simulated']
	if not r['tableFiles']:
		raise Trouble('no table was sampled')
	all_of = r['thread'] + r['sessions'] + r['ended']
	result['wanted'] = {'realPercentAtMost': REAL_WANTED, 'simulatedPercentAtMost': SIMULATED_WANTED, 'monthMsAtMost': MONTH_WANTED}
	return result, [
		('samples of %d real clusters, of a core' % r['clusters'],
		 '%.2f%%: thread %.2f, kept sessions %.2f, sessions that ended %.2f' % (all_of, r['thread'], r['sessions'], r['ended']),
		 'at most %d%%' % REAL_WANTED),
		('a service with %d simulated clusters, of a core' % s['clusters'], '%.2f%%' % s['percent'], 'at most %d%%' % SIMULATED_WANTED),
		('%d files of series (%d of tables), %.1f MB' % (r['files'], r['tableFiles'], r['bytes'] / 1e6), '%d have grown' % r['grown'], 'none'),
		('a month of one metric by the hour', '%.3f ms' % result['series']['month_ms'], 'at most %d ms' % MONTH_WANTED)]
