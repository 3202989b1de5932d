"""The figures. Each is a function of the bench and the pair of servers, and returns what was measured (for bench.json)
and the rows of the table: (figure, measured, wanted)."""
import contextlib, http.client, json, os, re, ssl, statistics, subprocess, sys, threading, time, types

# After our own: both folders have a nodes.py.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'fault'))
from engine import figure_clusters, figure_many
from hostile import Crowd
from identity import figure_identity
from servers import ALIAS, BASE, Nginx, Steward, Trouble, free_port, wait_for
from tools import Progress, flush_cost, h2load, load, ratio, say, wrk

LIST = '?itemsPerPage=100'
MANY_CONNECTIONS = 1000
HOSTILE_CONNECTIONS = 2000
SLOW_FLUSH_US = 2000


class Pair:
	"""Our server with 101 projects and nginx with the same bodies as files; started when first asked for."""
	kind = Steward

	def __init__(self, workshop, files_max):
		self.workshop, self.files_max = workshop, files_max
		self._steward = self._nginx = None

	@property
	def steward(self):
		if not self._steward:
			s = self._steward = self.kind(self.workshop)
			s.raise_limits()
			for i in range(100):
				s.api('POST', '/groups', json={'name': 'bench-%03d' % i, 'orgId': s.bootstrap['orgId']})
		return self._steward

	@property
	def nginx(self):
		if not self._nginx:
			self._nginx = Nginx(self.workshop, self.files_max)
		return self._nginx

	def sides(self, path, name):
		"""The same body from both."""
		body = self.steward.api('GET', path).content
		return {'steward': {'server': self.steward, 'path': BASE + path},
			'nginx': {'server': self.nginx, 'path': self.nginx.serve(name, body)}}, len(body)

	def project(self):
		return self.sides('/groups/' + self.steward.bootstrap['groupId'], 'project.json')

	def list(self):
		return self.sides('/orgs/%s/groups%s' % (self.steward.bootstrap['orgId'], LIST), 'list.json')

	def clusters(self):
		"""The path of a project with 100 clusters that have nothing to do any more."""
		return clusters_make(self.steward)


def versus(result, what='/s'):
	m, c = result['medians'], result['cpuMicrosPerRequest']
	a, b = list(m)[:2]
	return '%s of %s (%s and %s %s; %.0f and %.0f us of CPU each)' % (
		times(result['ratio']), b, thousands(m[a]), thousands(m[b]), what, c[a], c[b])


def times(x):
	return '%.2f' % x if x is not None else '-'


def thousands(x):
	return '{:,.0f}'.format(x)


def figure_project(bench, pair):
	sides, size = pair.project()
	token = pair.steward.token()
	result = bench.alternate(sides, lambda side, s: wrk(bench, side['server'], side['path'], token, s))
	result.update(bodyBytes=size, connections=64, wanted={'ratioAtLeast': 0.95})
	return result, [('GET of one project, TLS, 64 connections', versus(result), 'at least 0.95 of nginx')]


def figure_h2(bench, pair):
	sides, size = pair.project()
	token = pair.steward.token()
	result = bench.alternate(sides, lambda side, s: h2load(bench, side['server'], side['path'], token, s))
	result.update(bodyBytes=size, connections=16, streams=32, wanted={'ratioAtLeast': 1.4})
	return result, [('GET of one project, HTTP/2, 16 x 32 streams', versus(result), 'at least 1.4 of nginx')]


def figure_list(bench, pair):
	sides, size = pair.list()
	document = pair.steward.call('GET', sides['steward']['path'], headers=pair.steward.headers()).json()
	if len(document['results']) != 100:
		raise Trouble('the list has not 100 projects')
	token = pair.steward.token()
	result = bench.alternate(sides, lambda side, s: wrk(bench, side['server'], side['path'], token, s))
	result.update(bodyBytes=size, connections=64, wanted={'ratioAtLeast': 0.6})
	return result, [('list of 100 projects (%.0f KB), 64 connections' % (size / 1e3), versus(result),
			 'at least 0.60 of nginx')]


def figure_digest(bench, pair):
	server, key = pair.steward, pair.steward.bootstrap['apiKey']
	path = BASE + '/groups/' + server.bootstrap['groupId']
	sides = {'digest': {'server': server, 'auth': {'user': key['publicKey'], 'password': key['privateKey']}},
		 'bearer': {'server': server, 'auth': {'bearer': server.token()}}}
	result = bench.alternate(sides, lambda side, s: load(bench, server, path, s, connections=16, **side['auth']), pieces=5)
	result.update(connections=16, wanted={'ratioAtLeast': 0.9})
	return result, [('digest calls, 16 connections', versus(result), 'at least 0.90 of bearer')]


CLUSTER = {'name': 'bench', 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
	{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}


def clusters_make(server):
	"""100 simulated clusters in the first project, once; its path."""
	group, count = '/groups/' + server.bootstrap['groupId'], 100
	clusters = lambda: server.api('GET', group + '/clusters' + LIST).json()['results']
	if len(clusters()) < count:
		server.api('PATCH', group + '/limits/svc.project.deployment.clusters', json={'value': count})
		for i in range(count):
			server.api('POST', group + '/clusters', json={**CLUSTER, 'name': 'bench-%03d' % i})
		wait_for('100 clusters', lambda: all(c['stateName'] == 'IDLE' for c in clusters()), 120)
	return group


def figure_cluster(bench, pair):
	"""One of a hundred, and all of them, as a client sees them that asks again and again."""
	group, token, results, rows = pair.clusters(), pair.steward.token(), {}, []
	for name, what, path, least in (('cluster', 'GET of one cluster', '/clusters/bench-000', 0.7),
					('clusters', 'list of 100 clusters', '/clusters' + LIST, 0.5)):
		sides, size = pair.sides(group + path, name + '.json')
		one = results[name] = bench.alternate(sides, lambda side, s: wrk(bench, side['server'], side['path'], token, s))
		one.update(bodyBytes=size, connections=64, wanted={'ratioAtLeast': least})
		rows.append(('%s (%.0f KB), 64 connections' % (what, size / 1e3), versus(one), 'at least %.2f of nginx' % least))
	return results, rows


def figure_dialect(bench, pair):
	"""A project, whose answer has no word of a dialect but its links, and a cluster, which has some."""
	server, token = pair.steward, pair.steward.token()
	group = pair.clusters()
	results, rows = {}, []
	for what, path in (('project', group), ('cluster', group + '/clusters/bench-000')):
		sides = {'dialect': {'server': server, 'path': ALIAS + path}, 'own': {'server': server, 'path': BASE + path}}
		results[what] = bench.alternate(sides, lambda side, s: wrk(bench, side['server'], side['path'], token, s))
		results[what].update(connections=64, wanted={'ratioAtLeast': 0.85})
		rows.append(('GET of one %s in a dialect, 64 connections' % what, versus(results[what]), 'at least 0.85 of our own'))
	return results, rows


def figure_handshakes(bench, pair):
	sides, _ = pair.project()
	token = pair.steward.token()
	how = {'connections': 16, 'bearer': token, 'reconnect': 'yes'}
	measure = lambda side, s: load(bench, side['server'], side['path'], s, **how)
	result = bench.alternate(sides, measure)
	result.update(connections=16, tls={name: result['rounds'][0][name]['tls'] for name in sides})
	return result, [('full TLS handshakes with one request each', versus(result), '-')]


@contextlib.contextmanager
def held(bench, server, path, token):
	"""Many connections that have each been answered once and are now idle."""
	command = [bench.workshop.load, '127.0.0.1', server.port, path, 'bearer', token,
		   'connections', MANY_CONNECTIONS, 'hold', 'yes']
	client = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
	try:
		line = client.stdout.readline()
		if not line or json.loads(line)['held'] != MANY_CONNECTIONS:
			raise Trouble('%s did not hold %d connections' % (server.name, MANY_CONNECTIONS))
		time.sleep(1)
		yield
	finally:
		client.stdin.close()
		end = client.stdout.read()
		client.wait(30)
		if end and json.loads(end)['broken']:
			bench.fault('%s closed idle connections' % server.name)


def memory_of(bench, server, path, token):
	time.sleep(1)
	result = {'idle': server.pss()}
	with held(bench, server, path, token):
		result['connections1000'] = server.pss()
	wrk(bench, server, path, token, 1 if bench.quick else 3)
	time.sleep(1)
	result['afterLoad'] = server.pss()
	return result


def figure_memory(bench, pair):
	"""Of a server that was started on an existing store: what it holds after other figures says more about them."""
	sides, size = pair.project()
	first, token = pair.steward, pair.steward.token()
	path = sides['steward']['path']
	first.stop()
	again = Steward(bench.workshop, data=first.data)
	try:
		again.api('GET', '/groups', token=token)
		result = {'steward': memory_of(bench, again, path, token)}
	finally:
		again.stop()
		pair._steward = Steward(bench.workshop, data=first.data)
	nginx = Nginx(bench.workshop, pair.files_max)
	try:
		result['nginx'] = memory_of(bench, nginx, nginx.serve('project.json', b' ' * size), token)
	finally:
		nginx.stop()
	result['wanted'] = {'idleBytesAtMost': 30e6}
	ours, theirs = result['steward'], result['nginx']
	show = lambda name: '%.1f MB (nginx: %.1f MB)' % (ours[name] / 1e6, theirs[name] / 1e6)
	return result, [('memory, idle (PSS)', show('idle'), 'at most 30 MB'),
			('memory, 1,000 idle TLS connections', show('connections1000'), '-'),
			('memory, after load', show('afterLoad'), '-')]


def first_answer(bench, data, path, token):
	"""Seconds from exec to the first complete answer to an authorized call. The server is stopped afterwards."""
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
	context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
	server = Steward(bench.workshop, data=data, port=free_port(), wait=False)
	try:
		end = server.began + 60
		while time.perf_counter() < end:
			connection = http.client.HTTPSConnection('127.0.0.1', server.port, timeout=30, context=context)
			with contextlib.suppress(ConnectionError, ssl.SSLError):
				connection.request('GET', path, headers={'Authorization': 'Bearer ' + token})
				answer = connection.getresponse()
				answer.read()
				if answer.status == 200:
					return time.perf_counter() - server.began
			connection.close()
			time.sleep(0.0005)
		raise Trouble('no answer within 60 s of the start')
	finally:
		server.stop()


def starts(bench, data, path, token, count):
	return sorted(round(1000 * first_answer(bench, data, path, token), 2) for _ in range(count))


def figure_start(bench, pair):
	server, token = pair.steward, pair.steward.token()
	path = BASE + '/groups/' + server.bootstrap['groupId']
	server.stop()
	try:
		rounds = starts(bench, server.data, path, token, 5 if bench.quick else 20)
	finally:
		pair._steward = Steward(bench.workshop, data=server.data)
	middle = statistics.median(rounds)
	return {'milliseconds': rounds, 'median': middle, 'wanted': {'millisecondsAtMost': 300}}, [
		('start to first answer, %d starts' % len(rounds), '%.0f ms' % middle, 'at most 300 ms')]


def store_counts(server):
	"""Writes, commits and the seconds spent in commits, as the server counts them."""
	text = server.call('GET', '/metrics', headers={'Authorization': 'Bearer ' + (server.data / 'metrics.token').read_text()}).text
	names = ('writes', 'commits', 'commit_seconds')
	return [float(re.search(r'^steward_store_%s_total (\S+)$' % name, text, re.M).group(1)) for name in names]


CALLERS = {'connections': 16, 'streams': 32}  # as in the figure of HTTP/2


def creates(bench, env, callers):
	"""Creates by many callers, flushes shared and one each: two servers, alternately."""
	flush = flush_cost(bench, bench.workshop.dir, env)  # before the load: afterwards the disk still writes back
	shared = Steward(bench.workshop, env=env)
	single = Steward(bench.workshop, '--store-batch', '1', env=env)
	run = [0]

	def measure(side, seconds):
		server, run[0] = side['server'], run[0] + 1
		body = json.dumps({'name': 'p-{n}', 'orgId': server.bootstrap['orgId']})
		before = store_counts(server)
		result = load(bench, server, BASE + '/groups', seconds, bearer=server.token(), post=body, run=run[0],
			      **callers)
		writes, commits, spent = (b - a for a, b in zip(before, store_counts(server)))
		return {**result, 'createsPerCommit': round(writes / max(1, commits), 1),
			'commitMicros': round(1e6 * spent / max(1, commits), 1)}

	try:
		for server in (shared, single):
			server.raise_limits()
		result = bench.alternate({'shared': {'server': shared}, 'onePerCreate': {'server': single}}, measure)
	finally:
		shared.stop()
		single.stop()
	result.update(flushMicros=flush, callers=callers, wanted={'ratioAtLeast': 5})
	return result


def figure_creates(bench, pair):
	result, rows = {}, []
	slow = bench.workshop.slow(SLOW_FLUSH_US)
	for name, label, env, callers in (
			('thisDisk', 'this disk, 512 callers, HTTP/2', {}, CALLERS),
			('slowDisk', 'flushes made %d us longer' % SLOW_FLUSH_US, slow, CALLERS),
			('http1', 'this disk, 64 callers, HTTP/1.1', {}, {'connections': 64})):
		one = result[name] = creates(bench, env, callers)
		rates = [thousands(one['medians'][side]) for side in ('shared', 'onePerCreate')]
		shared = statistics.median(r['shared']['createsPerCommit'] for r in one['rounds'])
		rows.append(('durable creates, %s (append and flush: %s us)' % (label, thousands(one['flushMicros'])),
			     '%s times one flush each (%s and %s /s; %.0f share a flush)' % (
				     times(one['ratio']), *rates, shared),
			     '' if name == 'http1' else 'at least 5 times'))
	return result, rows


def seed(server, name, count, bytes_each=0):
	"""An organization with so many projects; its id and a token of its owner."""
	body = {'organizations': [{'name': name, 'projectCount': count,
				   'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]}]}
	answer, before = {}, server.disk_bytes()

	def post():
		try:
			done = server.call('POST', '/api/test/seed', json=body, timeout=600)
			answer['made'] = done.json()['organizations'][0]
		except Exception as e:
			answer['fault'] = e

	thread = threading.Thread(target=post, daemon=True)
	thread.start()
	bar = Progress('%s projects' % thousands(count)) if bytes_each else None
	while thread.is_alive():
		thread.join(0.2)
		if bar:
			bar.show(min(0.99, (server.disk_bytes() - before) / (bytes_each * count)))
	if 'fault' in answer:
		raise Trouble('seeding %d projects: %s' % (count, answer['fault']))
	if bar:
		bar.end()
	return answer['made']['id'], answer['made']['principals'][0]['accessToken']


def page_targets(server, few, many):
	"""(name, path, token) of the first page and of one at 90 % depth, with few and with many projects."""
	before = server.disk_bytes()
	seed(server, 'sample', 20000)
	each = max(1, (server.disk_bytes() - before) / 20000)
	small, large = seed(server, 'few', few), seed(server, 'many', many, each)
	targets = []
	for name, (org, token), count in (('few', small, few), ('many', large, many)):
		for depth, page in (('first', 1), ('deep', count * 9 // 10 // 100)):
			path = '/orgs/%s/groups%s&pageNum=%d' % (org, LIST, page)
			document = server.api('GET', path, token=token).json()
			shown, total = len(document['results']), document.get('totalCount')
			if shown != 100 or total != count:
				raise Trouble('%s: %d results, totalCount %s' % (path, shown, total))
			targets.append((name + '.' + depth, BASE + path, token))
	return targets


def page_micros(bench, server, path, token):
	return load(bench, server, path, 60, bearer=token, connections=1, threads=1, count=300)['p50us']


def figure_pages(bench, pair):
	few, many = 1000, 100000 if bench.quick else 1000000
	server = Steward(bench.workshop, '--test-control')
	try:
		server.raise_limits()
		began = time.monotonic()
		targets = page_targets(server, few, many)
		result = {'few': few, 'many': many, 'seedSeconds': round(time.monotonic() - began, 1),
			  'storeBytes': server.disk_bytes()}
		result['rounds'] = [{name: page_micros(bench, server, path, token) for name, path, token in targets}
				    for _ in range(bench.rounds)]
		result['pssBytes'] = server.pss()
		path, token = targets[2][1:]
	finally:
		server.stop()
	result['startMilliseconds'] = starts(bench, server.data, path, token, 3 if bench.quick else 5)
	middle = {name: statistics.median(r[name] for r in result['rounds']) for name in result['rounds'][0]}
	result['medians'] = middle
	result['ratios'] = {name: ratio(us, middle['few.first']) for name, us in middle.items()}
	result['wanted'] = {'many.first': 1.5, 'many.deep': 5}
	show = lambda name: '%s times (%s us)' % (times(result['ratios'][name]), thousands(middle[name]))
	row = lambda name, label, wanted: (label, show(name), wanted)
	return result, [row('few.first', 'page 1 of %s projects' % thousands(few), '-'),
			row('few.deep', 'page at 90 %% of %s projects' % thousands(few), '-'),
			row('many.first', 'page 1 of %s projects' % thousands(many), 'within 1.5 times'),
			row('many.deep', 'page at 90 %% of %s projects' % thousands(many), 'within 5 times'),
			('start to first answer with %s projects' % thousands(many),
			 '%.0f ms' % statistics.median(result['startMilliseconds']), '-')]


def figure_disturbance(bench, pair):
	"""One caller's p99 beside 2,000 connections that mean harm, against the same without them; and what they cost in memory."""
	server, token = Steward(bench.workshop), None
	try:
		server.raise_limits()
		token = server.token()
		path = '%s/groups/%s' % (BASE, server.bootstrap['groupId'])
		p99 = lambda seconds: load(bench, server, path, seconds, bearer=token, connections=4)['p99us']
		seconds = 2 if bench.quick else 5
		p99(1)
		quiet = statistics.median(p99(seconds) for _ in range(3))
		crowd = Crowd(types.SimpleNamespace(host='127.0.0.1', port=server.port), HOSTILE_CONNECTIONS, token)
		try:
			crowd.ready()
			loud = statistics.median(p99(seconds) for _ in range(3))
			memory = server.pss()
		finally:
			crowd.stop()
	finally:
		server.stop()
	result = {'p99us': {'quiet': quiet, 'disturbed': loud}, 'ratio': loud / quiet, 'memoryBytes': memory,
		  'connections': HOSTILE_CONNECTIONS, 'wanted': {'ratioAtMost': 3, 'memoryBytesAtMost': 400e6}}
	return result, [('p99 beside 2,000 hostile connections', '%.2f ms, undisturbed %.2f ms: %.1f times' % (
				loud / 1e3, quiet / 1e3, loud / quiet), 'at most 3 times'),
			('memory with 2,000 hostile connections', '%.0f MB' % (memory / 1e6), 'at most 400 MB')]


FIGURES = {'project': figure_project, 'h2': figure_h2, 'cluster': figure_cluster, 'digest': figure_digest, 'dialect': figure_dialect, 'list': figure_list,
	   'handshakes': figure_handshakes, 'memory': figure_memory, 'start': figure_start, 'creates': figure_creates,
	   'pages': figure_pages, 'identity': figure_identity, 'clusters': figure_clusters, 'many': figure_many,
	   'disturbance': figure_disturbance}
