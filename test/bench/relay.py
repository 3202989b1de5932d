"""What the way through a private endpoint costs: pgbench by the private string beside the same on the cluster's own, by turns. Both
speak TLS with the same server."""
import os, re, statistics, subprocess

from engine import PASSWORD, USER, Service, programs, site
from servers import Steward, Trouble, binary, wait_for
from tools import Progress, ratio

WANTED = 0.90
RELAY, ENDPOINT = '127.73.0.1', 'vpce-0123456789abcdef0'
LOADS = {'select': ['-S'], 'tpcb': []}
CLIENTS = 4


class Relayed(Service):
	def start(self):
		self.server = Steward(self.bench.workshop, '--engine', 'postgres', '--private-endpoints', RELAY, data=self.folder / 'd')

	def way(self):
		"""The private string of a cluster, once it has one."""
		links = self.group + '/privateEndpoint/'
		service = self.server.api('POST', links + 'endpointService', json={'providerName': 'AWS', 'region': 'US_EAST_1'}).json()['id']
		path = '%sAWS/endpointService/%s' % (links, service)
		wait_for('the service', lambda: self.server.api('GET', path).json()['status'] == 'WAITING_FOR_USER', 60)
		self.server.api('POST', path + '/endpoint', json={'id': ENDPOINT})
		subprocess.run([binary(), 'accept-endpoint', '--data', str(self.folder / 'd'), ENDPOINT, '--address', '127.0.0.1'],
			       check=True, stdout=subprocess.DEVNULL)
		return wait_for('the string', lambda: (self.strings().get('privateEndpoint') or [{}])[0].get('connectionString'), 60)

	def strings(self):
		return self.server.api('GET', self.group + '/clusters/bench').json()['connectionStrings']


def pgbench(string, *words):
	done = subprocess.run([str(programs() / 'pgbench'), *words, string], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
			      stderr=subprocess.STDOUT, text=True, timeout=300,
			      env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'PGUSER': USER, 'PGPASSWORD': PASSWORD})
	if done.returncode:
		raise Trouble('pgbench: ' + done.stdout[-1000:])
	return done.stdout


def rate(server, string, seconds, words):
	"""Transactions a second, and microseconds of the processor that the service takes for one: those are less a matter of what
	else the machine does."""
	before = server.cpu_seconds()
	said = pgbench(string, '-n', '-c', str(CLIENTS), '-j', '2', '-M', 'prepared', '-T', str(seconds), *words)
	used, count = server.cpu_seconds() - before, int(re.search(r'actually processed: ([0-9]+)', said).group(1))
	return float(re.search(r'tps = ([0-9.]+)', said).group(1)), 1e6 * used / max(count, 1)


def figure_relay(bench, pair):
	rounds, seconds = (5, 2) if bench.quick else (11, 5)
	result, lines = {'clients': CLIENTS, 'wanted': {'ratioAtLeast': WANTED}}, []
	with site() as folder:
		service = Relayed(bench, folder)
		service.create('bench', 1)
		service.connect('bench')
		ways = {'direct': service.strings()['standard'], 'relay': service.way()}
		pgbench(ways['direct'], '-i', '-q', '-s', '10')
		for load, words in LOADS.items():
			bar, found = Progress('pgbench ' + load), {'direct': [], 'relay': []}
			for i in range(rounds):
				for name in sorted(found, reverse=i % 2 == 0):
					found[name].append(rate(service.server, ways[name], seconds, words))
				bar.show((i + 1) / rounds)
			bar.end()
			cpu = round(statistics.median(us for _, us in found['relay']), 1)
			found = {name: [r for r, _ in both] for name, both in found.items()}
			middle = {name: round(statistics.median(rates)) for name, rates in found.items()}
			pairs = [ratio(a, b) for a, b in zip(found['relay'], found['direct'])]
			result[load] = {'rates': found, 'medians': middle, 'ratio': statistics.median(pairs), 'serviceCpuUs': cpu}
			lines.append(('pgbench%s through a private endpoint' % ''.join(' ' + w for w in words or ['(TPC-B)']),
				      '%.2f of the direct rate (%d and %d /s); %.1f us of the processor in the service' % (
					      result[load]['ratio'], middle['relay'], middle['direct'], cpu),
				      'at least %.2f' % WANTED))
		service.remove_all()
		service.server.stop()
	return result, lines
