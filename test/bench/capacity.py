#!/usr/bin/env python3
"""How many real clusters a machine carries, and what they take of it: the table of docs/operations.md, "Many clusters on one machine".

    STEWARD_BIN=build/release/steward test/bench/capacity.py [--clusters 500] [--size M10] [--idle 60] [--reserve-gb 2] [--json]

Makes clusters of one node each, with nobody connected, until there are so many or less memory than the reserve is available;
then looks at memory, descriptors, ports and the processor's time while nothing happens; stops the service and starts it again; kills it
and every database at once, as when the power fails, and starts it again; signs in to every one of them; and deletes them all. What it
starts lies in a directory of its own below /var/tmp, and nothing of it is left, also when it is broken off. It says how far it is on
stderr. Wants a machine without other work: time is measured."""
import argparse, contextlib, json, os, pathlib, re, resource, signal, subprocess, sys, time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / d) for d in ('api', 'fault')]
import databases, psycopg2
from client import ok, until
from databases import PASSWORD, USER, Site

EACH = 25  # clusters in a project: as many as it may have
AT_ONCE = 20  # creations that are waited for together
MINUTES = 30  # for any of the steps
MB = 1 << 20


def said(text, *words):
	print('%s %s' % (time.strftime('%H:%M:%S'), text % words), file=sys.stderr, flush=True)


def memory_available():
	return int(re.search(r'MemAvailable:\s+(\d+)', pathlib.Path('/proc/meminfo').read_text()).group(1)) * 1024


def pss(pids):
	"""Bytes, where pages that processes share are counted once in all."""
	total = 0
	for pid in pids:
		with contextlib.suppress(OSError, AttributeError):
			total += int(re.search(r'^Pss:\s+(\d+)', pathlib.Path('/proc/%d/smaps_rollup' % pid).read_text(), re.M).group(1)) * 1024
	return total


def descriptors(pids):
	total = 0
	for pid in pids:
		with contextlib.suppress(OSError):
			total += len(os.listdir('/proc/%d/fd' % pid))
	return total


def seconds_used(pids):
	"""Of the processor, with children that have ended."""
	ticks = 0
	for pid in pids:
		with contextlib.suppress(OSError):
			words = pathlib.Path('/proc/%d/stat' % pid).read_text().rsplit(')', 1)[1].split()
			ticks += sum(map(int, words[11:15]))
	return ticks / os.sysconf('SC_CLK_TCK')


class Fleet:
	"""A service, its projects, and the clusters in them."""

	def __init__(self, size):
		self.site, self.size, self.groups, self.count = Site('--job-threads', '4'), size, [], 0
		self.site.start_seconds = MINUTES * 60

	@property
	def server(self):
		return self.site.server

	def project(self):
		group = self.server.project()['id']
		ok(self.server.post('/groups/%s/accessList' % group, json=[{'ipAddress': '127.0.0.1'}]))
		ok(self.server.post('/groups/%s/databaseUsers' % group, json={
			'username': USER, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': group,
			'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
		self.groups.append(group)

	def add(self, count):
		for _ in range(count):
			if self.count % EACH == 0:
				self.project()
			ok(self.server.post('/groups/%s/clusters' % self.groups[-1], json={
				'name': 'c%04d' % self.count, **databases.shape(nodes=1, size=self.size)}), 201)
			self.count += 1
		self.settle()

	def documents(self):
		return [(g, c) for g in self.groups for c in ok(self.server.get('/groups/%s/clusters?itemsPerPage=500' % g))['results']]

	def settle(self):
		idle = lambda: all(c['stateName'] == 'IDLE' for _, c in self.documents())
		until(idle, MINUTES * 60, 'all clusters to be IDLE', longest=0.5)

	def run(self):
		"""How many run in the service's eyes."""
		found = [p for g in self.groups for p in ok(self.server.get('/groups/%s/processes?itemsPerPage=500' % g))['results']]
		return sum('PRIMARY' in p['typeName'] for p in found)

	def begin(self):
		"""Starts the service. Seconds until it answers, and until every cluster runs in its eyes."""
		began = time.monotonic()
		self.site.start()
		ready = time.monotonic() - began
		until(lambda: self.run() == self.count, MINUTES * 60, 'all clusters to run', longest=0.25)
		return ready, time.monotonic() - began

	def sign_in(self):
		"""To each of them, by its own string."""
		for _, c in self.documents():
			with contextlib.closing(psycopg2.connect(c['connectionStrings']['standard'], user=USER, password=PASSWORD, dbname='postgres',
								 connect_timeout=60)) as one, one.cursor() as cursor:
				cursor.execute('select 1')

	def databases(self):
		return databases.working_in(self.site.root)

	def postmasters(self):
		found = []
		for f in (self.site.data / 'engine').glob('*/*/data/postmaster.pid'):
			with contextlib.suppress(OSError, ValueError, IndexError):
				found.append((int(f.read_text().split('\n')[0]), f.read_text().split('\n')[6].split()))
		return found

	def places(self):
		"""Addresses and ports of the clusters' nodes."""
		books = [json.loads(f.read_text()) for f in (self.site.data / 'engine').glob('*/state.json')]
		return {'%s:%d' % (n['address'], n['port']) for b in books for n in b['nodes']}

	def cut_power(self):
		"""Service first, so that it notices nothing of the others' end."""
		self.server.kill()
		left = self.databases()
		while left:
			for pid in left:
				with contextlib.suppress(ProcessLookupError):
					os.kill(pid, signal.SIGKILL)
			left = self.databases()

	def remove(self):
		for g, c in self.documents():
			assert self.server.delete('/groups/%s/clusters/%s' % (g, c['name'])).status_code == 202
		until(lambda: not self.documents(), MINUTES * 60, 'the deletion of all', longest=0.5)
		self.site.end()

	def wipe(self):
		"""By force: also the segments of shared memory of servers that were killed."""
		segments = [words[1] for _, words in self.postmasters() if len(words) == 2]
		self.site.wipe()
		for id_ in segments:
			subprocess.run(['ipcrm', '-m', id_], stderr=subprocess.DEVNULL)


def fill(fleet, count, reserve):
	"""Seconds that it took, and the memory before."""
	fleet.site.start()
	before, began = memory_available(), time.monotonic()
	while fleet.count < count:
		if memory_available() < reserve:
			said('%d clusters leave %d MB: no more are made', fleet.count, memory_available() // MB)
			break
		fleet.add(min(AT_ONCE, count - fleet.count))
		said('%d clusters, %d MB available', fleet.count, memory_available() // MB)
	return time.monotonic() - began, before


def look(fleet, idle):
	"""What they take while nothing happens."""
	time.sleep(min(idle, 30))  # checkpoints of new servers are over
	service, servers = [fleet.server.pid], fleet.databases()
	heads = [pid for pid, _ in fleet.postmasters()]
	out = {'memoryUsed': memory_available(), 'processes': len(servers), 'databasesPss': pss(servers), 'servicePss': pss(service),
	       'serviceDescriptors': descriptors(service), 'databasesDescriptors': descriptors(servers),
	       'systemDescriptors': int(pathlib.Path('/proc/sys/fs/file-nr').read_text().split()[0]), 'listening': len(fleet.places() & databases.listening()),
	       'diskBytes': int(subprocess.run(['du', '-sxB1', str(fleet.site.data)], stdout=subprocess.PIPE, text=True).stdout.split()[0])}
	before = seconds_used(service), seconds_used(set(servers) | set(heads))
	time.sleep(idle)
	out['serviceCpuPercent'] = 100 * (seconds_used(service) - before[0]) / idle
	out['databasesCpuPercent'] = 100 * (seconds_used(set(servers) | set(heads)) - before[1]) / idle
	return out


def measure(count, size, idle, reserve):
	fleet, out = Fleet(size), {'size': size, 'processors': os.cpu_count(), 'machineBytes': os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')}
	try:
		out['madeSeconds'], before = fill(fleet, count, reserve)
		out['clusters'] = fleet.count
		out.update(look(fleet, idle))
		out['memoryUsed'] = before - out['memoryUsed']
		said('a restart of the service')
		fleet.server.stop()
		out['restartReady'], out['restartRuns'] = fleet.begin()
		said('a power cut')
		fleet.cut_power()
		out['cutReady'], out['cutRuns'] = fleet.begin()
		fleet.settle()
		fleet.sign_in()
		said('the deletion')
		began = time.monotonic()
		fleet.remove()
		out['deletedSeconds'] = time.monotonic() - began
	finally:
		fleet.wipe()
	return out


def table(r):
	n = r['clusters']
	each = lambda key: r[key] / n
	rows = [
		('clusters, of one node of the size %s, nobody connected' % r['size'], '%d' % n),
		('made, %d at a time' % AT_ONCE, '%.0f s (%.2f s each)' % (r['madeSeconds'], each('madeSeconds'))),
		('memory that is not available any more', '%.1f GB (%.1f MB each)' % (r['memoryUsed'] / 1e9, each('memoryUsed') / 1e6)),
		('of that, the databases (PSS)', '%.1f GB (%.1f MB each)' % (r['databasesPss'] / 1e9, each('databasesPss') / 1e6)),
		('the service (PSS)', '%.0f MB' % (r['servicePss'] / 1e6)),
		('processes of databases', '%d (%.1f each)' % (r['processes'], each('processes'))),
		('descriptors of the service', '%d (%.1f each)' % (r['serviceDescriptors'], each('serviceDescriptors'))),
		('descriptors of the databases', '%d (%.0f each)' % (r['databasesDescriptors'], each('databasesDescriptors'))),
		('open files of the machine (`/proc/sys/fs/file-nr`)', '%d' % r['systemDescriptors']),
		('ports of databases', '%d' % r['listening']),
		('disk', '%.1f GB (%.0f MB each)' % (r['diskBytes'] / 1e9, each('diskBytes') / 1e6)),
		('processor, idle: the service', '%.1f%% of one' % r['serviceCpuPercent']),
		('processor, idle: the databases', '%.1f%% of one' % r['databasesCpuPercent']),
		('the service restarted: it answers, and all are adopted', '%.1f s, %.1f s' % (r['restartReady'], r['restartRuns'])),
		('after a power cut: it answers, and all run', '%.1f s, %.1f s' % (r['cutReady'], r['cutRuns'])),
		('all deleted', '%.0f s' % r['deletedSeconds']),
	]
	head = '%d processors, %.0f GB of memory' % (r['processors'], r['machineBytes'] / (1 << 30))
	return '\n'.join(['| %s | |' % head, '|---|---|'] + ['| %s | %s |' % row for row in rows])


def main():
	parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	parser.add_argument('--clusters', type=int, default=500)
	parser.add_argument('--size', default='M10')
	parser.add_argument('--idle', type=int, default=60)
	parser.add_argument('--reserve-gb', type=float, default=2)
	parser.add_argument('--json', action='store_true')
	given = parser.parse_args()
	if not databases.installed():
		sys.exit('PostgreSQL is not installed: run script/bootstrap')
	signal.signal(signal.SIGTERM, lambda *_: sys.exit('broken off'))
	hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
	resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the service has what the unit gives it
	r = measure(given.clusters, given.size, given.idle, given.reserve_gb * 1e9)
	print(json.dumps(r) if given.json else table(r))


if __name__ == '__main__':
	main()
