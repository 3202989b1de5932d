"""One organization against all: each rate is played to its limit by one tenant, family by family, while another reads and writes.

The greedy one calls every operation of the family, as fast as it can on CALLERS connections, until the set's bucket is empty; then it does
what attacks have done: deletes projects that wide invitations name, asks for their list without reading it, and provokes refusals. The other
changes and reads its project all the while. Both stores, some five minutes each. What is wanted: its 99th percentile under 100 ms, and the
memory that docs/operations.md promises. The callers are processes of low priority: what is measured is the service, not the machine's share
of Python. A machine that is busy with something else stalls everybody: each measurement stands beside that of the same tenant alone, just
before it, and beside the longest time for which one batch held the store's writer (the bound of its bucket) and the round trips of its writes."""
import contextlib, http.client, json, multiprocessing, os, pathlib, re, ssl, threading, time

import nodes
from plays import Plays, merged, play
from servers import ACCEPT, BASE, Steward
from tools import say

CALLERS, PROJECTS, PLACES, INVITED, UNREAD = 16, 240, 230, 200, 40
P99_WANTED_MS, RSS_WANTED = 100, (256 + 150) << 20
SECONDS_MAX = 8  # for one family: where all its rates are played to their limit, it ends before
SITE_SECONDS = 400  # for one store: families that it has no time for are named
ALONE_SECONDS = 0.7


class Caller:
	"""One connection, which comes back when it was closed."""

	def __init__(self, port, token):
		self.port, self.connection = port, None
		self.headers = {'Authorization': 'Bearer ' + token, 'Accept': ACCEPT, 'Content-Type': ACCEPT}

	def call(self, method, path, body=None):
		for attempt in (0, 1):
			if not self.connection:
				self.connection = http.client.HTTPSConnection('127.0.0.1', self.port, timeout=120, context=ssl._create_unverified_context())
			try:
				self.connection.request(method, path, body=body if body is None or isinstance(body, str) else json.dumps(body), headers=self.headers)
				answer = self.connection.getresponse()
				return answer.status, answer.read()
			except (OSError, http.client.HTTPException):
				self.connection.close()
				self.connection = None
		return 0, b''


def player(port, token, orders, results):
	"""A process of its own, with one connection for the whole run."""
	os.nice(10)
	caller = Caller(port, token)
	for calls, until in iter(orders.get, None):
		results.put(play(caller.call, calls, until, time.time))


@contextlib.contextmanager
def apart(prepare, act):
	"""A process of low priority that has done prepare() and waits; what is given lets it do act() with the result, and returns when it is done.
	A hundred threads and their handshakes in the process of the measurement would be measured too."""
	ready, go = multiprocessing.Event(), multiprocessing.Event()

	def run():
		os.nice(10)
		prepared = prepare()
		ready.set()
		go.wait(120)
		act(prepared)
	p = multiprocessing.Process(target=run, daemon=True)
	p.start()
	ready.wait(120)

	def let_go():
		go.set()
		p.join(120)
	try:
		yield let_go
	finally:
		if p.is_alive():
			p.kill()
		p.join()


class Greedy:
	"""The greedy tenant's callers."""

	def __init__(self, server, token):
		self.results, self.orders = multiprocessing.Queue(), [multiprocessing.Queue() for _ in range(CALLERS)]
		self.processes = [multiprocessing.Process(target=player, args=(server.port, token, orders, self.results), daemon=True) for orders in self.orders]
		for p in self.processes:
			p.start()

	def play(self, calls, seconds=SECONDS_MAX):
		until = time.time() + seconds
		for i, orders in enumerate(self.orders):
			orders.put(((calls[i::CALLERS] or calls[:1]), until))
		return merged(self.results.get(timeout=120) for _ in self.orders)

	def stop(self):
		for orders, p in zip(self.orders, self.processes):
			orders.put(None)
			p.join(10)
			if p.is_alive():
				p.kill()


class Other(threading.Thread):
	"""The other tenant: a write and a read by turns, with a pause, and how long each took."""

	def __init__(self, server, token, group):
		super().__init__(daemon=True)
		self.caller, self.path, self.over = Caller(server.port, token), '%s/groups/%s' % (BASE, group), False
		self.writes, self.reads, self.faults = [], [], 0

	def run(self):
		number = 0
		while not self.over:
			number += 1
			for times, method, body in ((self.writes, 'PATCH', {'name': 'other-%d' % number}), (self.reads, 'GET', None)):
				began = time.perf_counter()
				status, _ = self.caller.call(method, self.path, body)
				times.append((time.perf_counter() - began) * 1000)
				self.faults += status not in (200, 429)
			time.sleep(0.02)

	def end(self):
		self.over = True
		self.join()
		at = lambda times, part: round(sorted(times)[min(len(times) - 1, int(len(times) * part))], 1)
		return {'writes': len(self.writes), 'writeP50Ms': at(self.writes, 0.5), 'writeP99Ms': at(self.writes, 0.99), 'writeMaxMs': at(self.writes, 1),
			'readP99Ms': at(self.reads, 0.99), 'readMaxMs': at(self.reads, 1), 'faults': self.faults}


def memory(server, what):
	text = pathlib.Path('/proc/%d/status' % server.process.pid).read_text()
	return int(re.search(what + r':\s+(\d+) kB', text).group(1)) * 1024


class Site:
	def __init__(self, server):
		self.server = server
		self.greedy, self.other = self.control('seed', {'organizations': [
			{'name': 'greedy', 'projects': ['g%d' % i for i in range(PROJECTS)], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]},
			{'name': 'other', 'projects': ['o'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]}]})['organizations']
		self.token, self.groups = self.greedy['principals'][0]['accessToken'], [p['id'] for p in self.greedy['projects']]
		self.callers, self.until = Greedy(server, self.token), time.monotonic() + SITE_SECONDS
		self.plays = Plays(Caller(server.port, self.token).call, {'orgId': self.greedy['id'], 'groupId': self.groups[0]})
		self.plays.prepare()

	def control(self, path, body=None):
		return self.server.call('POST', '/api/test/' + path, json=body or {}, timeout=600).json()

	def refill(self):
		self.server.call('POST', '/api/test/buckets/reset')

	def figures(self):
		text = self.server.call('GET', '/metrics', headers={'Authorization': 'Bearer ' + (self.server.data / 'metrics.token').read_text()}).text
		found = {name: float(re.search(r'^steward_store_%s_total (\S+)$' % name, text, re.M).group(1)) for name in ('writes', 'commits', 'commit_seconds', 'round_trips')}
		return found, {bound: int(n) for bound, n in re.findall(r'^steward_store_batch_seconds_bucket\{le="(\S+)"\} (\d+)$', text, re.M)}

	def measured(self, act, least=60):
		"""What the other sees while act() goes on."""
		self.refill()
		before, batches_before = self.figures()
		other = Other(self.server, self.other['principals'][0]['accessToken'], self.other['projects'][0]['id'])
		other.start()
		began = time.monotonic()
		try:
			act()
			while len(other.writes) < least and time.monotonic() - began < 15:
				time.sleep(0.05)
		finally:
			found = other.end()
		now, batches = self.figures()
		store = {name: round(now[name] - before[name], 3) for name in now}
		# The buckets add up: the longest lies in the first that has all.
		store['longestBatchSecondsUnder'] = next((bound for bound in batches if batches[bound] - batches_before[bound] == batches['+Inf'] - batches_before['+Inf']), None)
		return {**found, 'store': store, 'seconds': round(time.monotonic() - began, 1), 'rssPeak': memory(self.server, 'VmHWM'), 'rss': memory(self.server, 'VmRSS')}

	def family(self, operations):
		calls, played = self.plays.calls(operations), []
		found = self.measured(lambda: played.append(self.callers.play(calls)))
		return {**found, 'sets': played[0], 'calls': sum(one[0] for one in played[0].values())}

	def writes(self):
		"""Changes that are kept, and refusals after a change (names that are taken)."""
		calls = []
		for i in range(400):
			group = self.groups[i % 50]
			for path, body in (('/groups/%s/accessList' % group, [{'ipAddress': '10.1.%d.%d' % (i // 250, i % 250 + 1)}]),
					('/groups', {'name': 'g%d' % (i % PROJECTS), 'orgId': self.greedy['id']}),
					('/orgs/%s/teams' % self.greedy['id'], {'name': 't%d' % (i % 20), 'usernames': []}),
					('/orgs/%s/apiKeys' % self.greedy['id'], {'desc': 'k%d' % i, 'roles': ['ORG_MEMBER']})):
				calls.append((path, 'POST', BASE + path, json.dumps(body)))
		return self.measured(lambda: self.callers.play(calls, 8))

	def invite(self):
		places = [{'groupId': g, 'roles': ['GROUP_READ_ONLY']} for g in self.groups[:PLACES]]
		path = '%s/orgs/%s/invites' % (BASE, self.greedy['id'])
		calls = [('POST', path, {'username': 'p%d@example.com' % i, 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': places}) for i in range(INVITED)]

		def once(caller):
			until = time.monotonic() + 25
			for one in calls:
				status, _ = caller.call(*one)
				if status == 429:
					caller.call('POST', '/api/test/buckets/reset')
				if time.monotonic() > until:
					break
		with apart(lambda: Caller(self.server.port, self.token), once) as act:
			return self.measured(act)

	def unread(self):
		"""Lists without pages, asked for on many connections and not read."""
		path = '%s/orgs/%s/invites' % (BASE, self.greedy['id'])

		def act():
			with contextlib.ExitStack() as stack:
				for _ in range(UNREAD):
					c = Caller(self.server.port, self.token)
					c.call('GET', BASE + '/groups/' + self.groups[0])
					c.connection.request('GET', path, headers=c.headers)
					stack.callback(c.connection.close)
				time.sleep(6)
		return self.measured(act)

	def deletions(self):
		"""A hundred projects at once, which all invitations name."""
		def connected():
			callers = [Caller(self.server.port, self.token) for _ in range(100)]
			for one in callers:
				one.call('GET', BASE + '/groups/' + self.groups[0])
			return callers

		def delete(callers):
			ones = [threading.Thread(target=caller.call, args=('DELETE', '%s/groups/%s' % (BASE, g)))
				for caller, g in zip(callers, self.groups[100:200])]
			for one in ones:
				one.start()
			for one in ones:
				one.join()
		with apart(connected, delete) as act:
			return self.measured(act)


def site_measure(server, quick):
	site, out = Site(server), {}

	def step(name, measure):
		# Beside the same tenant alone, just before: a busy machine slows both.
		alone = site.measured(lambda: time.sleep(ALONE_SECONDS), least=20)
		out[name] = {**measure(), 'aloneP99Ms': alone['writeP99Ms'], 'aloneMaxMs': alone['writeMaxMs']}
		say('  %3.0f s left  %-18s %s' % (site.until - time.monotonic(), name, json.dumps(out[name])))
	try:
		out['nobody'] = site.measured(lambda: time.sleep(3))
		for name in ('writes', 'invite', 'unread', 'deletions'):
			step(name, getattr(site, name))
		left = [] if quick else list(site.plays.families().items())
		while left and time.monotonic() < site.until:
			name, operations = left.pop(0)
			step(name, lambda: site.family(operations))
		if left:
			out['notMeasured'] = [name for name, _ in left]
			say('  no time for: ' + ', '.join(out['notMeasured']))
	finally:
		site.callers.stop()
	time.sleep(3)
	out['afterwards'] = {'rss': memory(server, 'VmRSS')}
	return out


def lines_of(store, found):
	measured = {name: one for name, one in found.items() if 'writeP99Ms' in one}
	worst = max(measured, key=lambda name: measured[name]['writeP99Ms'])
	reads = max(measured, key=lambda name: measured[name]['readP99Ms'])
	peak = max(one['rssPeak'] for one in measured.values())
	over = sorted(name for name, one in measured.items() if max(one['writeP99Ms'], one['readP99Ms']) >= P99_WANTED_MS)
	sets = merged(one['sets'] for one in measured.values() if 'sets' in one)
	full = sorted(name for name, one in sets.items() if not one[2])
	return [('what one tenant does that others feel (%s)' % store, ', '.join(over) or 'nothing', 'nothing over %d ms' % P99_WANTED_MS),
		('rates that were played to their limit (%s)' % store, '%d of %d, %d calls, %d of them changed or read something%s' % (len(sets) - len(full), len(sets),
			sum(one[0] for one in sets.values()), sum(one[1] for one in sets.values()), '; not: ' + ', '.join(full) if full else ''), 'all'),
		("another's writes beside one tenant's %s (%s), p99" % (worst, store), '%.0f ms; alone %.0f ms' % (found[worst]['writeP99Ms'], found[worst].get('aloneP99Ms', found['nobody']['writeP99Ms'])), 'under %d ms' % P99_WANTED_MS),
		("another's reads beside one tenant's %s (%s), p99" % (reads, store), '%.0f ms' % found[reads]['readP99Ms'], 'under %d ms' % P99_WANTED_MS),
		('memory at its peak, and afterwards (%s)' % store, '%d, %d MB' % (peak >> 20, found['afterwards']['rss'] >> 20), 'at most %d MB' % (RSS_WANTED >> 20))]


def figure_fairness(bench, pair):
	result, lines = {'wanted': {'p99MsUnder': P99_WANTED_MS, 'rssAtMost': RSS_WANTED}}, []
	with nodes.site() as (folder, db):
		for store, args in (('sqlite', ()), ('postgresql', ('--store', db.fresh()))):
			server = Steward(bench.workshop, '--test-control', *args)
			try:
				result[store] = site_measure(server, bench.quick)
			finally:
				server.stop()
			lines += lines_of(store, result[store])
	return result, lines


FIGURES = {'fairness': figure_fairness}
