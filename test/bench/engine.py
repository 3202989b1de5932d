"""What real databases cost: a cluster of three nodes beside the same made by hand with PostgreSQL's own programs, and an
API with many clusters beside one with none. Data lies in a short directory below /var/tmp, which the databases' system
user can reach."""
import contextlib, os, pathlib, shutil, signal, sqlite3, statistics, subprocess, tempfile, time

from servers import BASE, Steward, Trouble, wait_for
from tools import Progress, load, ratio

USER, PASSWORD = 'app', 'correct horse 4 battery'
SECONDS_WANTED, TIMES_WANTED = 3, 2
MANY_RATIO_WANTED, ADOPTED_WANTED = 1.2, 2
LATENCY_ROUNDS = 7
AS_USER = 'steward'  # whom the service takes for the databases when it is root


def programs():
	"""Where the newest PostgreSQL is."""
	found = sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin/initdb'), key=lambda p: float(p.parts[-3]))
	if not found or not shutil.which('psql'):
		raise Trouble('PostgreSQL is missing: apt-get install postgresql')
	return found[-1].parent


def shape(name, nodes):
	return {'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': nodes}}]}]}


def psql(string, statement, seconds=60, **env):
	done = subprocess.run(['psql', '-XAtqw', '-d', string, '-c', statement], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
			      text=True, timeout=seconds, env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent', **env})
	return done.stdout.strip() if done.returncode == 0 else None


def working_in(folder):
	found = []
	for p in pathlib.Path('/proc').glob('[0-9]*'):
		with contextlib.suppress(OSError):
			if os.readlink(p / 'cwd').startswith(str(folder) + '/'):
				found.append(int(p.name))
	return found


@contextlib.contextmanager
def site():
	"""A directory for databases. What still works in it at the end is ended."""
	folder = pathlib.Path(tempfile.mkdtemp(prefix='swb-', dir='/var/tmp'))
	os.chmod(folder, 0o711)
	try:
		yield folder
	finally:
		for pid in working_in(folder):
			with contextlib.suppress(ProcessLookupError):
				os.kill(pid, signal.SIGKILL)
		shutil.rmtree(folder, ignore_errors=True)


class Service:
	"""Our side: a service with the PostgreSQL engine, a user and an access-list entry."""

	def __init__(self, bench, folder):
		self.bench, self.folder = bench, folder
		self.start()
		self.server.raise_limits()
		self.group = '/groups/' + self.server.bootstrap['groupId']
		self.server.api('POST', self.group + '/accessList', json=[{'ipAddress': '127.0.0.1'}])
		self.server.api('POST', self.group + '/databaseUsers', json={
			'username': USER, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.server.bootstrap['groupId'],
			'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]})

	def start(self):
		self.server = Steward(self.bench.workshop, '--engine', 'postgres', data=self.folder / 'd')

	def clusters(self):
		return self.server.api('GET', self.group + '/clusters?itemsPerPage=500').json()['results']

	def create(self, name, nodes):
		self.server.api('POST', self.group + '/clusters', json=shape(name, nodes))

	def connect(self, name):
		"""Once it is IDLE, through its own string."""
		path = '%s/clusters/%s' % (self.group, name)
		document = wait_for(name, lambda: (lambda d: d if d['stateName'] == 'IDLE' else None)(
			self.server.api('GET', path).json()), 120)
		said = psql(document['connectionStrings']['standard'], 'select 1', PGUSER=USER, PGPASSWORD=PASSWORD)
		if said != '1':
			raise Trouble('%s is IDLE, but takes no connection' % name)

	def remove_all(self):
		for c in self.clusters():
			self.server.api('DELETE', '%s/clusters/%s' % (self.group, c['name']))
		wait_for('the deletion', lambda: not self.clusters(), 300)

	def three(self, name):
		"""Seconds until three nodes are there and take a connection."""
		began = time.perf_counter()
		self.create(name, 3)
		self.connect(name)
		took = time.perf_counter() - began
		self.remove_all()
		return took


class ByHand:
	"""The other side: the same three nodes with PostgreSQL's own programs and nothing else."""

	def __init__(self, folder):
		self.bin, self.folder = programs(), folder
		self.drop = ['runuser', '-u', AS_USER, '--'] if os.geteuid() == 0 else []

	def run(self, program, *words):
		done = subprocess.run([*self.drop, str(self.bin / program), *map(str, words)], stdin=subprocess.DEVNULL,
				      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120, cwd='/')
		if done.returncode:
			raise Trouble('%s: %s' % (program, done.stderr[-1000:]))

	def serve(self, data):
		options = "-c listen_addresses='' -c unix_socket_directories=%s -c shared_buffers=16MB" % data.parent
		self.run('pg_ctl', '-D', data, '-w', '-l', data.parent / 'log', '-o', options, 'start')

	def ask(self, node, statement):
		return psql('host=%s dbname=postgres user=postgres' % node, statement)

	def three(self):
		"""Seconds for initdb, a start, two base backups, and two standbys that stream from it; flushed once, at the end."""
		home = pathlib.Path(tempfile.mkdtemp(prefix='h-', dir=self.folder))
		nodes = [home / str(i) for i in range(3)]
		for n in nodes:
			n.mkdir()
		if self.drop:
			for n in (home, *nodes):
				shutil.chown(n, AS_USER, AS_USER)
		try:
			began = time.perf_counter()
			self.run('initdb', '-D', nodes[0] / 'd', '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '-k', '-N')
			self.serve(nodes[0] / 'd')
			for n in nodes[1:]:
				self.run('pg_basebackup', '-D', n / 'd', '-h', nodes[0], '-U', 'postgres', '-R', '-c', 'fast', '--no-sync')
				self.serve(n / 'd')
			streaming = "select count(*) from pg_stat_replication where state = 'streaming'"
			wait_for('streaming', lambda: self.ask(nodes[0], streaming) == '2', 60)
			subprocess.run(['sync', '-f', str(home)], check=True)
			return time.perf_counter() - began
		finally:
			for n in reversed(nodes):
				if (n / 'd' / 'postmaster.pid').exists():
					self.run('pg_ctl', '-D', n / 'd', '-w', '-m', 'immediate', 'stop')
			shutil.rmtree(home, ignore_errors=True)


def figure_clusters(bench, pair):
	count = 3 if bench.quick else 10
	with site() as folder:
		ours, theirs = Service(bench, folder), ByHand(folder)
		rounds, bar = [], Progress('clusters of three nodes')
		try:
			ours.three('first')  # what is prepared at the first start is there from now on
			for i in range(count):
				sides = [('steward', lambda: ours.three('c%d' % i)), ('byHand', theirs.three)]
				one = {name: round(measure(), 3) for name, measure in (sides if i % 2 == 0 else reversed(sides))}
				rounds.append(one)
				bar.show((i + 1) / count)
			bar.end()
		finally:
			ours.server.stop()
	middle = {name: round(statistics.median(r[name] for r in rounds), 3) for name in ('steward', 'byHand')}
	result = {'rounds': rounds, 'medians': middle, 'ratio': ratio(middle['steward'], middle['byHand']),
		  'wanted': {'secondsAtMost': SECONDS_WANTED, 'ratioAtMost': TIMES_WANTED}}
	return result, [('three nodes, POST until IDLE and connected, %d times' % count,
			 '%.2f s (%.2f times initdb, start and two base backups by hand: %.2f s)' % (
				 middle['steward'], result['ratio'], middle['byHand']),
			 'at most %d s and %d times' % (SECONDS_WANTED, TIMES_WANTED))]


def latency(bench, service):
	"""Microseconds of a GET of a project, in rounds."""
	server = service.server
	return [load(bench, server, BASE + service.group, 60, bearer=server.token(), connections=1, threads=1, count=500)['p50us']
		for _ in range(LATENCY_ROUNDS)]


def is_adopted(service, count):
	"""Every node is known to run, and no job of the start is left."""
	found = service.server.api('GET', service.group + '/processes?itemsPerPage=500').json()['results']
	if sum(p['typeName'] == 'REPLICA_PRIMARY' for p in found) != count:
		return False
	with contextlib.closing(sqlite3.connect('file:%s/steward.db?mode=ro' % service.server.data, uri=True)) as store:
		return store.execute("select count(*) from job where kind = 'cluster'").fetchone()[0] == 0


def servers_of(folder):
	"""Process ids of the databases that run: what they forked comes and goes."""
	found = {int(f.read_text().split()[0]) for f in folder.glob('d/engine/*/*/data/postmaster.pid')}
	return found & set(working_in(folder))


def adoption(bench, service, count):
	"""Seconds from the start of the program until all is adopted; the databases stay the same processes."""
	before = servers_of(service.folder)
	service.server.stop()
	service.start()
	wait_for('the adoption', lambda: is_adopted(service, count), 60)
	took = round(time.perf_counter() - service.server.began, 3)
	if len(before) != count or servers_of(service.folder) != before:
		bench.fault('databases ended with the service')
	return took


def figure_many(bench, pair):
	count = 20 if bench.quick else 60
	result = {'clusters': count}
	programs()
	with site() as folder:
		service = Service(bench, folder)
		try:
			service.server.api('PATCH', service.group + '/limits/svc.project.deployment.clusters', json={'value': 100})
			result['before'] = latency(bench, service)
			bar, began = Progress('%d clusters' % count), time.monotonic()
			for i in range(count):
				service.create('c%d' % i, 1)
			idle = lambda: sum(c['stateName'] == 'IDLE' for c in service.clusters())
			while idle() < count:
				if time.monotonic() - began > 300:
					raise Trouble('%d of %d clusters are IDLE after 300 s' % (idle(), count))
				bar.show(idle() / count)
				time.sleep(0.1)
			bar.end()
			result['createSeconds'] = round(time.monotonic() - began, 1)
			service.connect('c%d' % (count - 1))
			time.sleep(2)  # checkpoints of new servers
			result['with'] = latency(bench, service)
			result['adoptionSeconds'] = [adoption(bench, service, count) for _ in range(3)]
			service.connect('c0')
			service.remove_all()
			time.sleep(2)
			result['after'] = latency(bench, service)
		finally:
			service.server.stop()
	none = statistics.median(result['before'] + result['after'])
	some = statistics.median(result['with'])
	adopted = statistics.median(result['adoptionSeconds'])
	result.update(medians={'none': none, 'with': some}, ratio=ratio(some, none),
		      wanted={'ratioAtMost': MANY_RATIO_WANTED, 'adoptionSecondsAtMost': ADOPTED_WANTED})
	return result, [('GET of one project with %d clusters running' % count,
			 '%.2f times with none (%.0f and %.0f us)' % (result['ratio'], some, none),
			 'within %.1f times' % MANY_RATIO_WANTED),
			('%d clusters adopted after a restart' % count, '%.2f s' % adopted, 'within %d s' % ADOPTED_WANTED)]
