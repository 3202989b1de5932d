"""Live events with 1,000 clients that listen, and the console's pages with many projects and clusters.

live: from the call that makes an event to the moment at which each of the clients has it; memory and processor time of the server.
console: the time that the server takes for a page of each list and of the overview."""
import asyncio, concurrent.futures, ssl, statistics, time

from servers import BASE, Steward, Trouble
from tools import load, say

LISTENERS, CALLERS, EVENTS = 1000, 4, 40
P99_WANTED_MS, PAGE_WANTED_MS = 1000, 50
PROJECTS, CLUSTERS, PAGE = 10000, 2000, 100


class Listener(asyncio.Protocol):
	"""One client: when it got which event."""

	def __init__(self, request, got):
		self.request, self.got, self.rest, self.open = request, got, b'', None

	def connection_made(self, transport):
		self.transport = transport
		transport.write(self.request)

	def data_received(self, data):
		now = time.perf_counter()
		self.rest += data
		if self.open is None and b'\r\n\r\n' in self.rest:
			self.open = self.rest.startswith(b'HTTP/1.1 200 ')
		while b'\ndata: ' in self.rest:
			_, _, self.rest = self.rest.partition(b'\ndata: ')
			self.got.append(now)

	def connection_lost(self, error):
		self.open = False


def request_of(server, path, token):
	return ('GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n' % (
		path, server.port, token)).encode()


async def listeners_open(server, path, tokens, got):
	context = ssl.create_default_context(cafile=str(server.workshop.cert))
	made = []
	for at in range(0, LISTENERS, 50):
		made += await asyncio.gather(*(asyncio.get_running_loop().create_connection(
			lambda i=i: Listener(request_of(server, path, tokens[i % len(tokens)]), got), '127.0.0.1', server.port, ssl=context)
			for i in range(at, at + 50)))
	end = time.monotonic() + 60
	while any(protocol.open is None for _, protocol in made) and time.monotonic() < end:
		await asyncio.sleep(0.05)
	if not all(protocol.open for _, protocol in made):
		raise Trouble('%d streams are not open' % sum(not protocol.open for _, protocol in made))
	return made


def post_of(server, token, group):
	"""Makes one event, and says when its answer came."""
	def post(value):
		server.api('PATCH', '/groups/%s/limits/svc.project.deployment.clusters' % group, token=token, json={'value': value})
		return time.perf_counter()
	return post


async def events_time(server, post, got):
	"""Milliseconds from the call to each receipt, of all events; and to its own answer."""
	all_, own = [], []
	loop = asyncio.get_running_loop()
	for number in range(EVENTS):
		got.clear()
		began = time.perf_counter()
		answered = await loop.run_in_executor(None, post, 30 + number)
		end = time.monotonic() + 30
		while len(got) < LISTENERS:
			if time.monotonic() > end:
				raise Trouble('event %d reached %d of %d' % (number, len(got), LISTENERS))
			await asyncio.sleep(0.002)
		own.append((answered - began) * 1000)
		all_ += [(at - began) * 1000 for at in got]
		await asyncio.sleep(0.1)
	return all_, own


async def live_measure(bench, server, org):
	group, tokens = org['projects'][0]['id'], [p['accessToken'] for p in org['principals']]
	got, result = [], {'listeners': LISTENERS, 'pssBefore': server.pss()}
	made = await listeners_open(server, '/api/console/events', tokens, got)
	await asyncio.sleep(1)
	result['pssOpen'] = server.pss()
	seconds, began = (5 if bench.quick else 31), server.cpu_seconds()
	await asyncio.sleep(seconds)
	result['cpuIdle'] = (server.cpu_seconds() - began) / seconds
	began = server.cpu_seconds()
	took, own = await events_time(server, post_of(server, tokens[0], group), got)
	result['cpuMsPerEvent'] = (server.cpu_seconds() - began) * 1000 / EVENTS
	result['pssAfter'] = server.pss()
	took.sort()
	result.update(p50Ms=statistics.median(took), p99Ms=took[len(took) * 99 // 100], maxMs=took[-1], answerMs=statistics.median(own))
	for transport, _ in made:
		transport.abort()
	return result


def figure_live(bench, pair):
	server = Steward(bench.workshop, '--test-control')
	try:
		server.raise_limits()
		org, = server.call('POST', '/api/test/seed', json={'organizations': [{'name': 'live', 'projects': ['one'], 'principals': [
			{'type': 'serviceAccount', 'roles': ['ORG_OWNER']} for _ in range(CALLERS)]}]}).json()['organizations']
		result = asyncio.run(live_measure(bench, server, org))
	finally:
		server.stop()
	each = (result['pssAfter'] - result['pssBefore']) / LISTENERS
	result.update(bytesEach=each, wanted={'p99MsAtMost': P99_WANTED_MS})
	return result, [
		('event to 1,000 clients, p50 / p99 / last', '%.0f / %.0f / %.0f ms (the write\'s own answer: %.1f ms)' % (
			result['p50Ms'], result['p99Ms'], result['maxMs'], result['answerMs']), 'p99 at most %d ms' % P99_WANTED_MS),
		('memory of a client that listens', '%.0f KB' % (each / 1024), '-'),
		('processor time of 1,000 silent listeners / of an event to all', '%.2f%% of a core / %.0f ms' % (
			result['cpuIdle'] * 100, result['cpuMsPerEvent']), '-')]


# The console's pages.


def clusters_make(server, token, groups):
	body = lambda n: {'name': 'c%d' % n, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [{
		'priority': 7, 'providerName': 'AWS', 'regionName': 'US_EAST_1', 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}
	with concurrent.futures.ThreadPoolExecutor(8) as pool:
		list(pool.map(lambda n: server.api('POST', '/groups/%s/clusters' % groups[n], token=token, json=body(n)), range(CLUSTERS)))


def settle(server):
	"""Until the work that the calls have left behind is done."""
	for _ in range(120):
		before = server.cpu_seconds()
		time.sleep(1)
		if server.cpu_seconds() - before < 0.03:
			return
	raise Trouble('the server is still at work after two minutes')


def console_seed(server):
	body = {'organizations': [{'name': 'console', 'projectCount': PROJECTS, 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]}]}
	org = server.call('POST', '/api/test/seed', json=body, timeout=600).json()['organizations'][0]
	token, groups = org['principals'][0]['accessToken'], []
	for page in range(1, CLUSTERS // 500 + 1):
		groups += [g['id'] for g in server.api('GET', '/orgs/%s/groups?itemsPerPage=500&pageNum=%d' % (org['id'], page),
				token=token).json()['results']]
	say('  %d clusters ...' % CLUSTERS)
	clusters_make(server, token, groups)
	settle(server)
	return org['id'], groups, token


def console_paths(org, groups):
	many = 'itemsPerPage=%d' % PAGE
	return {
		'overview, first page': '/api/console/overview?' + many,
		'overview, last page': '/api/console/overview?%s&pageNum=%d' % (many, CLUSTERS // PAGE),
		'overview, searched': '/api/console/overview?%s&q=c19' % many,
		'overview, sorted by name': '/api/console/overview?%s&sort=name' % many,
		'projects, first page': '%s/groups?%s' % (BASE, many),
		'projects, last page': '%s/groups?%s&pageNum=%d' % (BASE, many, PROJECTS // PAGE),
		'projects of the organization': '%s/orgs/%s/groups?%s' % (BASE, org, many),
		'clusters of all projects': '%s/clusters?%s' % (BASE, many),
		'clusters of a project': '%s/groups/%s/clusters' % (BASE, groups[0]),
		'events of the organization': '%s/orgs/%s/events?%s' % (BASE, org, many),
		'alerts of a project': '%s/groups/%s/alerts?%s' % (BASE, groups[0], many),
	}


def figure_console(bench, pair):
	server = Steward(bench.workshop, '--test-control')
	try:
		server.raise_limits()
		org, groups, token = console_seed(server)
		pages = {}
		for name, path in console_paths(org, groups).items():
			answer = server.call('GET', path, headers=server.headers(token))
			before = server.cpu_seconds()
			one = load(bench, server, path, 60, bearer=token, connections=1, threads=1, count=50 if bench.quick else 200)
			pages[name] = {'p50Ms': one['p50us'] / 1000, 'p99Ms': one['p99us'] / 1000, 'bytes': len(answer.content),
				       'cpuMs': (server.cpu_seconds() - before) * 1000 / one['requests']}
		result = {'projects': PROJECTS, 'clusters': CLUSTERS, 'pages': pages, 'pssBytes': server.pss(),
			  'wanted': {'p99MsAtMost': PAGE_WANTED_MS}}
	finally:
		server.stop()
	return result, [('%s (p50 / p99, processor)' % name, '%.1f / %.1f ms, %.1f ms' % (one['p50Ms'], one['p99Ms'], one['cpuMs']),
			 'at most %d ms' % PAGE_WANTED_MS)
			for name, one in pages.items()]


FIGURES = {'live': figure_live, 'console': figure_console}
