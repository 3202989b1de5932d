"""The clients: wrk, h2load and our own load client, run once and read."""
import json, os, re, statistics, subprocess, sys, time

from servers import ACCEPT, ALIAS, ALIAS_ACCEPT, Trouble

THREADS = 2


class Bench:
	"""How long and how often; what was found wrong on the way."""

	def __init__(self, workshop, rounds, seconds, quick):
		self.workshop, self.rounds, self.seconds, self.quick = workshop, rounds, seconds, quick
		self.faults = []

	def fault(self, text):
		if text not in self.faults:
			self.faults.append(text)
			say('  ! ' + text)

	def alternate(self, sides, measure, warm=True, pieces=1):
		"""Each side once a round, the order turned around every other round. measure(side, seconds) returns a
		dict with 'rate' and 'requests'. `pieces`: so many times as many rounds, each as much shorter: where there are
		few connections, how chance spreads them over the server's threads decides a round."""
		if warm:
			for side in sides:
				measure(sides[side], 1)
		rounds = []
		for number in range(self.rounds * pieces):
			one = {}
			for name in list(sides) if number % 2 == 0 else list(reversed(sides)):
				one[name] = measured(sides[name], lambda: measure(sides[name], self.seconds / pieces if pieces > 1 else self.seconds))
			rounds.append({name: one[name] for name in sides})
		a, b = list(sides)[:2]
		medians = {name: statistics.median(r[name]['rate'] for r in rounds) for name in sides}
		costs = {name: statistics.median(r[name]['cpuMicros'] for r in rounds) for name in sides}
		return {'rounds': rounds, 'medians': medians, 'cpuMicrosPerRequest': costs,
			'ratio': ratio(medians[a], medians[b]),
			'ratios': [ratio(r[a]['rate'], r[b]['rate']) for r in rounds]}


def ratio(a, b):
	return round(a / b, 3) if b else None


def measured(side, run):
	"""Adds the server's processor time per request: steadier than a rate where the client shares its processors."""
	server = side['server']
	before = server.cpu_seconds()
	result = run()
	result['cpuMicros'] = round((server.cpu_seconds() - before) * 1e6 / max(1, result['requests']), 1)
	return result


def say(text=''):
	print(text, flush=True)


class Progress:
	"""A bar on a terminal, a line now and then elsewhere."""

	def __init__(self, label):
		self.label, self.started, self.last = label, time.monotonic(), 0
		self.terminal = sys.stdout.isatty()

	def show(self, share):
		now = time.monotonic()
		share = max(0, min(1, share))
		marks, passed = '#' * int(30 * share), now - self.started
		text = '  %s [%-30s] %3d%% %4.0f s' % (self.label, marks, 100 * share, passed)
		if self.terminal:
			print('\r' + text, end='', flush=True)
		elif now - self.last > 10:
			self.last = now
			say(text)

	def end(self):
		self.last = 0
		self.show(1)
		if self.terminal:
			say()


def run(command, seconds, env=None):
	done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
			      stderr=subprocess.PIPE, text=True, timeout=seconds + 60, env=env)
	if done.returncode:
		text = (done.stdout + done.stderr)[-1500:]
		raise Trouble('%s failed with %d:\n%s' % (command[0], done.returncode, text))
	return done.stdout


def headers(token, path):
	accept = ALIAS_ACCEPT if path.startswith(ALIAS + '/') else ACCEPT
	return ['-H', 'Authorization: Bearer ' + token, '-H', 'Accept: ' + accept]


def number(pattern, text, what):
	found = re.search(pattern, text)
	if not found:
		raise Trouble('%s printed no such thing as %r:\n%s' % (what, pattern, text[-1500:]))
	return found


def wrk(bench, server, path, token, seconds, connections=64):
	out = run(['wrk', '-t%d' % THREADS, '-c%d' % connections, '-d%ds' % seconds, '--latency', *headers(token, path),
		   'https://127.0.0.1:%d%s' % (server.port, path)], seconds)
	wrong = re.search(r'Non-2xx or 3xx responses: (\d+)', out)
	broken = re.search(r'Socket errors: (.*)', out)
	if wrong or broken:
		bench.fault('wrk on %s%s: %s' % (server.name, path, (wrong or broken).group(0)))
	p50, unit = number(r'50%\s+([\d.]+)(us|ms|s)', out, 'wrk').groups()
	return {'rate': float(number(r'Requests/sec:\s+([\d.]+)', out, 'wrk').group(1)),
		'requests': int(number(r'(\d+) requests in', out, 'wrk').group(1)),
		'p50us': float(p50) * {'us': 1, 'ms': 1e3, 's': 1e6}[unit]}


def h2load(bench, server, path, token, seconds, connections=16, streams=32):
	out = run(['h2load', '-t%d' % THREADS, '-c%d' % connections, '-m%d' % streams, '-D%d' % seconds,
		   *headers(token, path), 'https://127.0.0.1:%d%s' % (server.port, path)], seconds)
	rate = float(number(r'finished in [\d.]+\w+, ([\d.]+) req/s', out, 'h2load').group(1))
	counts = r'requests: (\d+) total, \d+ started, (\d+) done, \d+ succeeded, (\d+) failed'
	total, done, failed = map(int, number(counts, out, 'h2load').groups())
	good = int(number(r'status codes: (\d+) 2xx', out, 'h2load').group(1))
	# What was still under way when the time was over has no status; what has one must be a success.
	if not good or re.search(r', [1-9]\d* [345]xx', out):
		bench.fault('h2load on %s%s: %s' % (server.name, path, re.search(r'status codes: .*', out).group(0)))
	if 'Application protocol: h2' not in out:
		bench.fault('h2load on %s did not speak HTTP/2' % server.name)
	return {'rate': rate, 'requests': done, 'failed': failed, 'total': total}


def load(bench, server, path, seconds, **options):
	"""Our own client; see load.c for the options."""
	words = [word for name, value in options.items() for word in (name, value)]
	out = run([bench.workshop.load, '127.0.0.1', server.port, path, 'accept', ACCEPT, 'seconds', seconds, *words],
		  seconds)
	result = json.loads(out)
	wrong = {status: n for status, n in result['statuses'].items() if not status.startswith('2')}
	if wrong or result['broken'] or not result['requests']:
		bench.fault('load on %s%s: %d answers, %d broken connections, statuses %s' % (
			server.name, path, result['requests'], result['broken'], result['statuses']))
	return result


def flush_cost(bench, directory, env=None):
	"""Microseconds of a flush after an append of 4 KB."""
	out = run([bench.workshop.load, 'flush', directory, 200], 10, {**os.environ, **(env or {})})
	return json.loads(out)['p50us']
