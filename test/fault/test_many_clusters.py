"""Two thousand simulated clusters, made, listed, changed and deleted by fifty clients at once, and five hundred twice after them."""
import concurrent.futures, sqlite3, time

from client import BASE, Wire, cli, unique, until

CLIENTS, EACH = 50, 40
IN_PROJECT = 20  # a project has at most 25


def resident(server):
	for line in open('/proc/%d/status' % server.pid):
		if line.startswith('VmRSS'):
			return int(line.split()[1]) * 1024
	raise AssertionError('no VmRSS')


def shape(name, size='M10'):
	region = {'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		  'electableSpecs': {'instanceSize': size, 'nodeCount': 3}}
	return {'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [region]}]}


def rows(server, query):
	with sqlite3.connect('file:%s/steward.db?mode=ro' % server.data_dir, uri=True) as store:
		return store.execute(query).fetchall()


def jobs(server):
	return sorted(rows(server, 'SELECT kind, subject FROM job'))


class Client:
	"""Its own projects, its own connection: a bare one, so that the clients take less of the machine than the server."""

	def __init__(self, server, token, groups, each):
		self.wire, self.groups = Wire(server, token), groups
		self.names = [(groups[n // IN_PROJECT], unique('c')) for n in range(each)]

	def call(self, status, method, path, body=None):
		a = self.wire.one(method, BASE + path, body=body)
		assert a.status == status, '%s %s -> %d: %s' % (method, path, a.status, a.body[:2000])
		return a.json() if a.body else None

	def states(self):
		seen = {}
		for g in self.groups:
			page = self.call(200, 'GET', '/groups/%s/clusters?itemsPerPage=100' % g)
			assert page['totalCount'] == len(page['results'])
			seen.update({c['name']: c['stateName'] for c in page['results']})
		return seen

	def last_is(self, *states):
		"""Whether the one that was asked for last is in one of these states; None: it is gone. A look at it is a look at one of forty."""
		a = self.wire.one('GET', '%s/groups/%s/clusters/%s' % (BASE, *self.names[-1]))
		assert a.status in (200, 404), a.body
		return (a.json()['stateName'] if a.status == 200 else None) in states

	def all_idle(self):
		if not self.last_is('IDLE'):
			return False
		seen = self.states()
		return len(seen) == len(self.names) and set(seen.values()) == {'IDLE'}

	def run(self):
		for g, name in self.names:
			self.call(201, 'POST', '/groups/%s/clusters' % g, shape(name))
		until(self.all_idle, 600, 'all being IDLE after their creation', longest=2)
		for g, name in self.names:
			self.call(200, 'PATCH', '/groups/%s/clusters/%s' % (g, name), shape(name, 'M20'))
		until(self.all_idle, 600, 'all being IDLE after their change', longest=2)
		g, name = self.names[-1]
		specs = self.call(200, 'GET', '/groups/%s/clusters/%s' % (g, name))['replicationSpecs']
		assert specs[0]['regionConfigs'][0]['electableSpecs']['instanceSize'] == 'M20'
		for g, name in self.names:
			self.call(202, 'DELETE', '/groups/%s/clusters/%s' % (g, name))
		until(lambda: self.last_is(None) and not self.states(), 600, 'the removal of all', longest=2)
		self.wire.close()


def test_two_thousand(start_server):
	server = start_server('--simulated-seconds', 0, '--connections-per-address', 5000, clock=None)
	cli('limits', 'set', '--data', server.data_dir, '--all', '--capacity', 1000000, '--refill', 1000000)
	until(lambda: server.get('/groups').headers['RateLimit-Limit'] == '1000000', 60, 'the raising of the limits')
	groups = [server.project()['id'] for _ in range(CLIENTS * EACH // IN_PROJECT)]
	used, before = [], jobs(server)  # before: those that come again by themselves, such as the scan for maintenance
	per = EACH // IN_PROJECT
	for each in (EACH, EACH // 4, EACH // 4):
		clients = [Client(server, server.token(), groups[i * per:(i + 1) * per], each) for i in range(CLIENTS)]
		began = time.monotonic()
		with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
			for done in [pool.submit(c.run) for c in clients]:
				done.result()
		used.append(resident(server))
		print('%d clusters: %.1f s, %.1f MB' % (CLIENTS * each, time.monotonic() - began, used[-1] / 1e6))
		assert jobs(server) == before and rows(server, "SELECT id FROM doc WHERE kind = 'cluster'") == []
	# The first round fills caches and the allocator's pools; after that nothing may grow.
	assert used[2] < used[1] + (3 << 20), used
