"""Three processes that share a store, each the host of a real cluster: any of them answers for all, nobody else can use the
way between them, and new clusters go where labels and room say."""
import asyncio, base64, concurrent.futures, datetime, gzip, json, os, pathlib, re, select, shutil, signal, socket, ssl, subprocess, tempfile, threading, time

import psycopg2, pytest, urllib3

import client, database, databases, redis_server
from client import scraping
from nodes import Between, Caller, Nodes, call, unverified

pytestmark = [pytest.mark.skipif(not shutil.which('haproxy'), reason='haproxy is not installed'),
	      pytest.mark.skipif(not shutil.which('redis-server'), reason='Redis is not installed'),
	      pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed'),
	      pytest.mark.filterwarnings('ignore:Unverified HTTPS request')]

REGIONS = ['US_EAST_1', 'EU_WEST_1', 'AP_SOUTHEAST_2']
MEMORY_GB = 12  # of each host: two clusters of three M10
MOVE = "UPDATE steward.doc SET body = replace(body, '%s:%d', '%s:%d') WHERE kind = 'host'"
API = pathlib.Path(__file__).parents[2] / 'api'


class Hosts(Nodes):
	"""Host i is named h<i>, labeled with a region of its own, and has the cluster c<i>."""

	store_address = seen_as = '127.0.0.1'  # of PostgreSQL and Redis; and of the tests, as hosts see them
	folder = client.SHORT

	def __init__(self, count=3, **kw):
		super().__init__(count, **kw)
		shutil.rmtree(self.home)
		self.home = pathlib.Path(tempfile.mkdtemp(prefix='swh-', dir=self.folder))
		os.chmod(self.home, 0o711)
		client.folders.append(self.home)
		# Limits as they are: they are looked at here.
		(self.home / 'config').write_text('limit.* = 100000/1\nproxies = %s\n' % ','.join(sorted(set(self.sources.values()))))
		self.redis = redis_server.Redis(self.store_address)
		self.group = None

	def start_node(self, i, *args):
		return super().start_node(i, '--engine', 'postgres', '--db-address', self.host_of(i), '--db-ports',
					  '%d-%d' % (21000 + 500 * i, 21499 + 500 * i), '--host-name', 'h%d' % i,
					  '--label', 'provider=AWS', '--label', 'region=' + REGIONS[i], '--host-memory-gb', MEMORY_GB,
					  '--limits', self.redis.url(), *(['--dialects', 'none'] if i == 2 else []), *args)

	def create(self, name, region, i=None, nodes=3, group=None):
		body = {'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
			{'providerName': 'AWS', 'regionName': region, 'priority': 7,
			 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': nodes}}]}]}
		return self.caller(i).post('/groups/%s/clusters' % (group or self.group), json=body)

	def state(self, name):
		r = self.caller(0).get('/groups/%s/clusters/%s' % (self.group, name))
		return r.json()['stateName'] if r.status_code == 200 else r.status_code

	def populate(self):
		self.group = client.ok(self.caller(0).post('/groups', json={'name': client.unique('hosts'), 'orgId': self.org}))['id']
		for i in range(3):
			client.ok(self.create('c%d' % i, REGIONS[i], i=(i + 1) % 3), 201)  # called on another host
		for i in range(3):
			self.until(lambda: self.state('c%d' % i) == 'IDLE', 180)
		return self

	def cli(self, *words, check=True):
		return client.cli('hosts', *words, '--data', self.home / 'n0', '--store', self.db.url(), check=check)

	def listed(self):
		return {h['name']: h for h in json.loads(self.cli('list', '-o', 'json').stdout)}

	def processes(self, i=0):
		return client.ok(self.caller(i).get('/groups/%s/processes' % self.group))['results']

	def shows_all(self, i):
		"""Whether host i shows the processes of every host."""
		r = self.caller(i).get('/groups/%s/processes' % self.group)
		return r.status_code == 200 and 'X-Steward-Hosts-Away' not in r.headers

	def shows_others(self, name):
		"""Host 0 shows the processes of the hosts that answer, and names the one that does not: its cluster has its number."""
		r = self.caller(0).get('/groups/%s/processes' % self.group)
		assert not any(p['userAlias'].startswith('c%s-' % name[1:]) for p in client.ok(r)['results']), r.text
		assert client.ok(r)['totalCount'] == 6 and r.headers['X-Steward-Hosts-Away'] == name, r.headers

	def process_of(self, name):
		"""A process of the cluster of that name."""
		return next(p for p in self.processes() if p['userAlias'].startswith(name + '-'))

	def close(self):
		faults = []
		for n in self.nodes:
			if n:
				if n.process.poll() is None:
					os.kill(n.pid, signal.SIGCONT)
				n.kill()
				found = client.SANITIZER.search(n.stderr)
				if found:
					faults.append(n.stderr[found.start():][:6000])
		for i in range(len(self.nodes)):
			client.databases_end(self.home / ('n%d' % i) / 'engine')
		if self.proxy:
			self.proxy.close()
		self.db.close()
		self.redis.close()
		shutil.rmtree(self.home, ignore_errors=True)
		assert not faults, '\n'.join(faults)


@pytest.fixture(scope='module')
def hosts():
	made = Hosts()
	try:
		made.start()
		made.populate()
		yield made
	finally:
		made.close()


def test_known_to_each_other(hosts):
	listed = hosts.listed()
	assert sorted(listed) == ['h0', 'h1', 'h2']
	for i in range(3):
		h = listed['h%d' % i]
		assert h['alive'] and not h['cordoned'] and h['labels'] == {'provider': 'AWS', 'region': REGIONS[i]}
		assert h['capacity']['cores'] == os.cpu_count() and h['capacity']['memoryMB'] > 100 and h['capacity']['diskMB'] > 100
		assert h['bound'] == {'cores': 0, 'memoryMB': MEMORY_GB * 1024, 'diskMB': 0}
		assert h['used']['memoryMB'] == 6144 and h['used']['cores'] == 6 and h['clusterCount'] == 1, h
		shown = json.loads(hosts.cli('show', 'h%d' % i, '-o', 'json').stdout)
		assert [c['name'] for c in shown['clusters']] == ['c%d' % i], 'placed by its region, not by who was called'
	hosts.until(lambda: all('memoryMB' in h.get('usage', {}) for h in hosts.listed().values()), 30)
	text = hosts.cli('list').stdout
	assert re.search(r'^h1 +ready +1 +6/\d+\* +6144/12288 ', text, re.M), text
	assert hosts.cli('show', 'nobody', check=False).returncode == 1


WINDOW = '?granularity=PT1M&start=%s&end=%s%s'


def built_gets():
	"""Every GET below a project that is built and that the service alone can name all parameters of."""
	known = {'groupId', 'clusterName', 'processId', 'hostName', 'hostname', 'logName', 'databaseName', 'partitionName'}
	for file in sorted(API.glob('*.json')):
		for row in json.loads(file.read_text()).get('operations', []):
			parameters = set(re.findall(r'{(\w+)}', row['path']))
			if row['method'] == 'GET' and row.get('handler') != 'unbuilt' and 'groupId' in parameters and parameters <= known:
				yield row['operationId'], row['path']


def told(answer):
	"""What must be the same whoever is asked; the moment of a look and of a call is not."""
	body = answer.content
	if 'json' in answer.headers.get('Content-Type', ''):
		body = re.sub(rb'"lastPing"\s*:\s*"[^"]*"|/feeds/[^"]*', b'', body)
	return (answer.status_code, answer.headers.get('Content-Type'), answer.headers.get('ETag'),
		answer.headers.get('X-Steward-Progress'), answer.headers.get('Content-Length') if b'lastPing' not in answer.content
		else None, body)


def test_every_get_is_the_same(hosts):
	asked, forwarded = 0, set()
	end = int(time.time()) - 1  # of logs: what is written meanwhile is in none
	for name in ('c0', 'c1', 'c2'):
		process = hosts.process_of(name)
		base = '/groups/%s/processes/%s' % (hosts.group, process['id'])
		database_name = client.ok(hosts.caller(0).get(base + '/databases'))['results'][0]['databaseName']
		partition = client.ok(hosts.caller(0).get(base + '/disks'))['results'][0]['partitionName']
		for operation, path in built_gets():
			path = path.format(groupId=hosts.group, clusterName=name, processId=process['id'], hostName=process['hostname'],
					   hostname=process['hostname'], logName='db', databaseName=database_name, partitionName=partition)
			if operation == 'downloadClusterLog':
				path += '?endDate=%d' % end
			elif 'easurements' in operation:
				path += WINDOW % (*(time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(t)) for t in (end - 3600, end - end % 60)),
						  '&metrics=PAGE_FAULTS' if '/fts/' in path else '')
			for _ in range(3):  # what happens by itself between two calls does not happen each time
				answers = [hosts.caller(i).get(path) for i in range(3)]
				if operation == 'downloadClusterLog' or len({told(a) for a in answers}) == 1:
					break
			if operation == 'downloadClusterLog':
				assert len({gzip.decompress(a.content) for a in answers}) == 1 and answers[0].status_code == 200
			else:
				first = told(answers[0])
				for i, a in enumerate(answers):
					assert told(a) == first, '%s on h%d: %s\n%s' % (path, i, told(a), first)
			assert 'X-Request-Id' in answers[0].headers
			asked += 1
			if 'processId' in operation or 'rocess' in operation or 'Log' in operation:
				forwarded.add(operation)
	assert asked > 60 and len(forwarded) >= 6, (asked, forwarded)
	everything = [[(p['id'], p['typeName']) for p in hosts.processes(i)] for i in range(3)]
	assert len(everything[0]) == 9 and everything[0] == everything[1] == everything[2]
	# Pages, envelopes, pretty printing and older versions too.
	process = hosts.process_of('c2')
	for path, headers in (('/groups/%s/processes?itemsPerPage=2&pageNum=2' % hosts.group, {}),
			      ('/groups/%s/processes/%s?envelope=true&pretty=true' % (hosts.group, process['id']), {}),
			      ('/groups/%s/processes/%s/databases?includeCount=false' % (hosts.group, process['id']), {}),
			      ('/groups/%s/processes/%s' % (hosts.group, process['id']),
			       {'Accept': 'application/vnd.svc.2023-01-01+json'}),
			      ('/groups/%s/processes/%s/databases/none-such' % (hosts.group, process['id']), {})):
		answers = [hosts.caller(i).get(path, headers=headers) for i in range(3)]
		assert len({told(a) for a in answers}) == 1, [told(a) for a in answers]
	for i in range(3):
		r = hosts.caller(i).call('HEAD', '/groups/%s/processes/%s' % (hosts.group, process['id']))
		assert r.status_code == 200 and not r.content and int(r.headers['Content-Length']) > 100
	# And the overview, which asks the hosts of its page.
	for i in range(3):
		assert overview(hosts, i) == {'c0': 3, 'c1': 3, 'c2': 3}


def overview(hosts, i):
	"""How many nodes of each cluster are seen from there."""
	page = client.ok(call('GET', 'https://%s/api/console/overview?groupId=%s' % (hosts.addresses[i], hosts.group), headers=hosts.caller(i).headers))
	assert all(len(c['nodes']) in (0, c['nodesTotal']) for c in page['results'])
	return {c['name']: len(c['nodes']) for c in page['results']}


def test_a_shape_is_rejected_through_another_host(hosts):
	"""Only c1's own host can say which shape has the hash; whoever is asked, c1's databases refuse it then."""
	base, path = '/groups/' + hosts.group, '/groups/%s/clusters/c1' % hosts.group
	client.ok(hosts.caller(0).post(base + '/accessList', json=[{'ipAddress': hosts.seen_as}]), 200)
	databases_user = {'username': databases.USER, 'password': databases.PASSWORD, 'databaseName': 'admin', 'groupId': hosts.group,
			  'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}
	client.ok(hosts.caller(0).post(base + '/databaseUsers', json=databases_user), 201)
	string = client.ok(hosts.caller(0).get(path))['connectionStrings']['standard']

	def connected():
		try:
			return psycopg2.connect(string, user=databases.USER, password=databases.PASSWORD)
		except psycopg2.OperationalError:  # an answer waits so long for what it gives to be in force, and no longer
			return None
	c = client.until(connected)
	c.autocommit = True
	with c.cursor() as cursor:
		cursor.execute('select 1 as one, 2 as two')
		found = [client.ok(hosts.caller(i).get(path + '/queryShapeInsights/summaries'))['summaries'] for i in range(3)]
		assert found[0] == found[1] == found[2] and len(found[0]) == 1
		shape = '%s/queryShapes/%s' % (path, found[0][0]['queryShapeHash'])

		def change(i, status):
			"""On a busy machine it may be saved and not yet in force: then it is asked for again."""
			answer = client.until(lambda: (lambda r: None if client.is_late(r) else r)(hosts.caller(i).call('PATCH', shape, json={'status': status})))
			assert client.ok(answer)['status'] == status
		for i in range(3):
			change(i, 'REJECTED')
			with pytest.raises(psycopg2.errors.InsufficientPrivilege):
				cursor.execute('select 3 as one, 4 as two')
			change((i + 1) % 3, 'UNREJECTED')
			cursor.execute('select 5, 6')
			assert hosts.caller(i).call('PATCH', shape[:-4] + '0000', json={'status': 'REJECTED'}).status_code == 404
	c.close()
	# And a session there, or its statement alone, is ended through any of them.
	primary, = [p['id'] for p in hosts.processes() if p['userAlias'].startswith('c1-') and 'PRIMARY' in p['typeName']]
	where = '%s/processes/%s:activity' % (base, primary)
	for i in range(3):
		held = connected()
		pid = held.info.backend_pid

		def sleep():
			with pytest.raises(psycopg2.errors.QueryCanceled):
				held.cursor().execute('select pg_sleep(600)')
		with concurrent.futures.ThreadPoolExecutor(1) as pool:
			slept = pool.submit(sleep)
			seen, = client.until(lambda: [s for s in client.ok(hosts.caller(i).get(where))['sessions'] if s['pid'] == pid and s['state'] == 'active'])
			start = seen['sessionStart']
			end = lambda more='': hosts.caller((i + 1) % 3).delete('%s?pid=%d&sessionStart=%s%s' % (where, pid, start, more))
			assert end('&statementStart=2026-01-02T03:04:05Z').status_code == 404
			assert end('&statementStart=' + seen['statementStart']).status_code == 204
			slept.result(60)
		held.rollback()
		held.cursor().execute('select 1')
		assert held.info.backend_pid == pid
		assert end().status_code == 204
		with pytest.raises(psycopg2.OperationalError):
			client.until(lambda: held.cursor().execute('select 1'))
		assert end().status_code == 404


def test_rows_are_archived_through_another_host(hosts):
	"""c1's own host looks at its table, moves its rows and brings them back, whoever is asked."""
	base, path = '/groups/' + hosts.group, '/groups/%s/clusters/c1' % hosts.group
	user = {'username': 'keeper', 'password': databases.PASSWORD, 'databaseName': 'admin', 'groupId': hosts.group,
		'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}
	client.ok(hosts.caller(0).post(base + '/accessList', json=[{'ipAddress': hosts.seen_as}]))
	client.ok(hosts.caller(0).post(base + '/databaseUsers', json=user), 201)
	string = client.ok(hosts.caller(0).get(path))['connectionStrings']['standard']

	def connected():
		try:
			return psycopg2.connect(string, user='keeper', password=databases.PASSWORD)
		except psycopg2.OperationalError:
			return None
	c = client.until(connected)
	c.autocommit = True
	cursor = c.cursor()
	cursor.execute("create table kept as select n as id, now() - n * interval '1 day' as at from generate_series(1, 105) n")

	def left():
		cursor.execute('select count(*) from kept')
		return cursor.fetchone()[0]
	criteria = {'type': 'DATE', 'dateField': 'at', 'expireAfterDays': 5}
	asking = '%s/onlineArchives:preview?dbName=postgres&dateField=at&expireAfterDays=5&collName=' % path
	for i in range(3):
		nowhere = {'dbName': 'postgres', 'collName': 'nowhere', 'criteria': criteria}
		client.refused(hosts.caller(i).post(path + '/onlineArchives', json=nowhere), 400, 'VALIDATION_ERROR', 'collName')
		assert client.ok(hosts.caller(i).get(asking + 'kept'))['rows'] in (100, 101)
		client.refused(hosts.caller(i).get(asking + 'nowhere'), 400, 'VALIDATION_ERROR', 'collName')
	made = client.ok(hosts.caller(0).post(path + '/onlineArchives', json={'dbName': 'postgres', 'collName': 'kept', 'criteria': criteria}))
	where = '%s/onlineArchives/%s' % (path, made['_id'])
	for i in range(3):
		hosts.until(lambda: re.search('rows=10[01],', hosts.caller(i).get(where).headers['X-Steward-Archived']), 60)
	assert left() in (4, 5) and list(hosts.home.glob('n1/**/rows/%s/*.parquet' % made['_id']))
	client.ok(hosts.caller(2).call('PATCH', where, json={'paused': True}))
	hosts.until(lambda: client.ok(hosts.caller(0).get(where))['state'] == 'PAUSED', 60)
	client.ok(hosts.caller(2).post(where + ':bringBack'), 202)
	hosts.until(lambda: left() == 105, 60)
	hosts.until(lambda: 'rows=0,' in hosts.caller(0).get(where).headers['X-Steward-Archived'], 60)
	assert hosts.caller(0).call('DELETE', where).status_code == 204
	hosts.until(lambda: hosts.caller(2).get(where).status_code == 404, 60)
	c.close()


def resident(pid):
	return int(re.search(r'VmRSS:\s+(\d+)', pathlib.Path('/proc/%d/status' % pid).read_text()).group(1)) * 1024


def test_scrapes_and_indexes(hosts):
	"""Any host tells a Prometheus about all processes, and knows of tables elsewhere."""
	body = {'enabled': True, 'serviceDiscovery': 'http', 'username': 'scraper', 'password': 'correct horse'}
	client.ok(hosts.caller(0).post('/groups/%s/integrations/PROMETHEUS' % hosts.group, json=body))
	ids, auth = {p['id'] for p in hosts.processes()}, ('scraper', 'correct horse')
	for i in range(3):
		base = 'https://' + hosts.addresses[i]
		found = client.ok(call('GET', '%s/prometheus/v1.0/groups/%s/discovery' % (base, hosts.group), auth=auth, timeout=60))
		assert {t['labels']['instance'] for t in found} == ids and len(ids) == 9
		for t in found:
			r = call('GET', base + t['labels']['__metrics_path__'], auth=auth, timeout=60)
			assert r.status_code == 200 and 'steward_process_up 1\n' in r.text, r.text[:1000]
		path = '/groups/%s/clusters/c%d/index' % (hosts.group, (i + 1) % 3)
		wish = {'db': 'postgres', 'collection': 'nothing', 'keys': [{'a': '1'}]}
		client.refused(hosts.caller(i).post(path, json=wish), 400, 'VALIDATION_ERROR', 'collection')


LOG_MB = 28


def swell(hosts, process):
	"""So much more in the log of a process of h1, of which a packer leaves three quarters. The time that the lines have."""
	node = process['hostname'].split('.')[0]
	logs = [f for f in (hosts.home / 'n1/engine').glob('**/*.json') if node in str(f) and '/log/' in str(f)]
	now = datetime.datetime.utcnow().strftime('%Y-%m-%d %H:%M:%S')
	with open(max(logs, key=lambda f: f.stat().st_mtime), 'a') as f:
		for i in range(LOG_MB):
			f.write('{"timestamp":"%s.000 UTC","message":"%s"}\n' % (now, base64.b64encode(os.urandom(768 << 10)).decode()))
	return now


def test_a_dialect_that_the_host_does_not_serve(hosts):
	"""Who is called decides which dialects there are; what it passes on is understood by all."""
	host = hosts.process_of('c2')['hostname']
	path = '/api/atlas/v2/groups/%s/clusters/%s/logs/mongodb.gz' % (hosts.group, host)
	for i in range(3):
		r = call('GET', 'https://%s%s' % (hosts.addresses[i], path), headers=hosts.caller().headers)
		assert r.status_code == (404 if i == 2 else 200), (i, r.text)
		assert i == 2 or gzip.decompress(r.content) and r.headers['Content-Type'].startswith('application/vnd.atlas.')


def test_a_log_is_streamed(hosts):
	"""A log that is larger than what may be held, read slowly through another host: neither process keeps it, and every byte
	arrives."""
	process = hosts.process_of('c1')
	now = swell(hosts, process)
	path = client.BASE + '/groups/%s/clusters/%s/logs/db.gz' % (hosts.group, process['hostname'])
	before = [resident(n.pid) for n in hosts.nodes]
	most, got = [0] * 3, b''
	with unverified() as s:
		r = s.get('https://%s%s' % (hosts.addresses[0], path), headers=hosts.caller().headers, stream=True, timeout=60)
		assert r.status_code == 200, r.text
		got = [r.raw.read(1 << 20)]
		time.sleep(1.5)  # everybody waits for this reader
		for piece in iter(lambda: r.raw.read(1 << 20), b''):
			got.append(piece)
			most = [max(m, resident(n.pid) - b) for m, n, b in zip(most, hosts.nodes, before)]
	assert 'asan' in client.binary() or 'tsan' in client.binary() or max(most) < 16 << 20, most
	text = gzip.decompress(b''.join(got))
	assert len(text) > LOG_MB << 20 and text.count(b'"timestamp":"%s' % now.encode()) >= LOG_MB
	direct = hosts.caller(1).get(path[len(client.BASE):]).content
	assert len(gzip.decompress(direct)) >= len(text)


def test_a_reader_who_leaves(hosts):
	"""Downloads that are broken off leave nothing behind: as many can be begun as before. There are 64 places for them."""
	process = hosts.process_of('c1')
	path = client.BASE + '/groups/%s/clusters/%s/logs/db.gz' % (hosts.group, process['hostname'])
	for _ in range(67):
		with unverified() as s:
			r = s.get('https://%s%s' % (hosts.addresses[0], path), headers=hosts.caller().headers, stream=True, timeout=60)
			assert r.status_code == 200, r.text
			r.raw.read(1000)
	assert hosts.caller(0).get(path[len(client.BASE):]).status_code == 200


def test_an_answer_that_breaks_off(hosts):
	"""The host that reads the log ends in the middle: the caller sees that it is not all. The host that passes it on ends as
	asked, with what is under way."""
	process = hosts.process_of('c1')
	swell(hosts, process)
	path = client.BASE + '/groups/%s/clusters/%s/logs/db.gz' % (hosts.group, process['hostname'])
	for host, stop in ((0, 'stop'), (1, 'kill')):
		with unverified() as s:
			r = s.get('https://%s%s' % (hosts.addresses[0], path), headers=hosts.caller().headers, stream=True, timeout=60)
			assert r.status_code == 200
			got = [r.raw.read(1000)]
			ending = threading.Thread(target=getattr(hosts.nodes[host], stop))
			ending.start()
			began = time.monotonic()
			time.sleep(0.3)
			try:
				for piece in iter(lambda: r.raw.read(1 << 20), b''):
					got.append(piece)
				whole = True
			except (urllib3.exceptions.HTTPError, OSError):
				whole = False
			late = time.monotonic() - began > 20  # who stops waits for 25 s
			assert whole == (stop == 'stop') or late
			if whole:
				assert len(gzip.decompress(b''.join(got))) > LOG_MB << 20
		ending.join()
		hosts.start_node(host)
		hosts.until(lambda: all(hosts.shows_all(i) for i in range(3)), 60)


def timed(call):
	"""What it gives, and how long it took."""
	start = time.monotonic()
	return call(), time.monotonic() - start


def away(hosts, path, name, asked=0):
	"""Told within two seconds; a busy machine has a few tries."""
	all_took = []
	for _ in range(4):
		r, took = timed(lambda: hosts.caller(asked).get(path))
		doc = client.refused(r, 503, 'HOST_UNAVAILABLE', name)
		assert int(r.headers['Retry-After']) > 0 and name in doc['detail']
		all_took.append(took)
		if took < 2:
			return
	raise AssertionError('longer than 2 s each time: %s' % all_took)


def test_a_host_that_is_away(hosts):
	process = hosts.process_of('c2')
	one = '/groups/%s/processes/%s' % (hosts.group, process['id'])
	client.ok(hosts.caller(0).get(one))
	for stop in (signal.SIGSTOP, signal.SIGKILL):
		os.kill(hosts.nodes[2].pid, stop)
		for path in (one, one + '/databases', '/groups/%s/ipAddresses' % hosts.group, one,
			     '/groups/%s/clusters/%s/logs/db.gz' % (hosts.group, process['hostname'])):
			away(hosts, path, 'h2')
			client.ok(hosts.caller(0).get('/groups/%s/clusters/c2' % hosts.group))  # what the store knows
			assert overview(hosts, 0) == {'c0': 3, 'c1': 3, 'c2': 0}
			hosts.shows_others('h2')
			client.ok(hosts.caller(0).get('/groups/%s/processes/%s' % (hosts.group, hosts_local(hosts))))
		if stop == signal.SIGSTOP:
			os.kill(hosts.nodes[2].pid, signal.SIGCONT)
		else:
			hosts.until(lambda: not hosts.listed()['h2']['alive'], 30)
			away(hosts, one, 'h2')
			hosts.nodes[2].kill()
			hosts.start_node(2)
		hosts.until(lambda: hosts.caller(0).get(one).status_code == 200, 30)
	assert hosts.listed()['h2']['used']['memoryMB'] == 6144, 'counted anew at the start'
	page = call('GET', 'https://%s/metrics' % hosts.addresses[0], headers=scraping(hosts.nodes[0].data_dir), timeout=60).text
	assert 'steward_hosts{state="alive"} 3' in page and re.search(r'steward_host_calls_total{result="failed"} [1-9]', page)


def test_many_wait_for_a_host_that_hangs(hosts):
	"""All of them are told, by what one handshake shows, and calls to another host go on meanwhile."""
	hung, other = ('/groups/%s/processes/%s' % (hosts.group, hosts.process_of(name)['id']) for name in ('c2', 'c1'))
	client.ok(hosts.caller(0).get(hung))

	def ask():
		answers = []
		threads = [threading.Thread(target=lambda: answers.append(hosts.caller(0).get(hung))) for i in range(30)]
		[t.start() for t in threads]
		client.ok(hosts.caller(0).get(other))
		[t.join() for t in threads]
		return answers
	all_took = []
	while not all_took or (min(all_took) >= 6 and len(all_took) < 3):  # a busy machine has a few tries
		os.kill(hosts.nodes[2].pid, signal.SIGSTOP)
		try:
			answers, took = timed(ask)
		finally:
			os.kill(hosts.nodes[2].pid, signal.SIGCONT)
		assert len(answers) == 30 and all('h2' in client.refused(a, 503, 'HOST_UNAVAILABLE', 'h2')['detail'] for a in answers)
		all_took.append(took)
		hosts.until(lambda: hosts.caller(0).get(hung).status_code == 200, 30)
	assert min(all_took) < 6, all_took


def test_a_full_public_port_keeps_no_host_out(hosts):
	one = '/groups/%s/processes/%s' % (hosts.group, hosts.process_of('c1')['id'])
	hosts.nodes[1].stop()
	hosts.start_node(1, '--connections-per-address', '20', '--header-seconds', '60')
	host, port = hosts.addresses[1].rsplit(':', 1)
	filling = [socket.create_connection((host, int(port)), timeout=5) for _ in range(30)]
	try:
		hosts.until(lambda: hosts.caller(0).get(one).status_code == 200, 40)
		# Which of them are turned away is for the loops that accept them to say: ten at least.
		hosts.until(lambda: len(select.select(filling, [], [], 0)[0]) >= 10, 15)
	finally:
		[s.close() for s in filling]
	hosts.nodes[1].stop()
	hosts.start_node(1)
	hosts.until(lambda: all(hosts.caller(i).get(one).status_code == 200 for i in range(3)), 60)


def hosts_local(hosts):
	label = client.ok(hosts.caller(0).get('/groups/%s/clusters/c0' % hosts.group))['connectionStrings']['standard']
	host = re.search(r'@?([a-z0-9]+-shard-00-00[^:,/]*):(\d+)', label)
	return '%s:%s' % host.groups()


def counted(hosts, i):
	text = call('GET', 'https://%s/metrics' % hosts.addresses[i], headers=scraping(hosts.nodes[i].data_dir), timeout=60).text
	return sum(float(line.rsplit(' ', 1)[1]) for line in text.splitlines()
		   if line.startswith('steward_requests_total{') and '"getGroupProcess"' in line)


def test_identity_and_limits(hosts):
	process = hosts.process_of('c1')
	one = '/groups/%s/processes/%s' % (hosts.group, process['id'])
	log = '/groups/%s/clusters/%s/logs/db.gz' % (hosts.group, process['hostname'])
	# Roles: a reader sees processes and no logs, wherever it asks.
	account = client.ok(hosts.caller(0).post('/groups/%s/serviceAccounts' % hosts.group, json={'name': client.unique(),
			'description': 'x', 'roles': ['GROUP_READ_ONLY'], 'secretExpiresAfterHours': 24}), 201)
	token = call('POST', 'https://%s/api/oauth/token' % hosts.addresses[1], data={'grant_type': 'client_credentials'},
		     auth=(account['clientId'], account['secrets'][0]['secret']), timeout=60).json()['access_token']
	callers = [Caller('https://' + a, token) for a in hosts.addresses]
	for c in callers:
		client.ok(c.get(one))
		client.refused(c.get(log), 403)
	# One token for a call, whoever answers it.
	def taken():
		left = [int(callers[i].get(one).headers['RateLimit-Remaining']) for i in (0, 0, 1, 2, 0)]
		return left == list(range(left[0], left[0] - 5, -1)), left
	first = taken()
	assert first[0] or taken()[0], first  # one comes back each minute, perhaps just then
	# The caller's address: a list with another one keeps it out, everywhere.
	entries = '/groups/%s/serviceAccounts/%s/accessList' % (hosts.group, account['clientId'])
	client.ok(hosts.caller(0).post(entries, json=[{'ipAddress': '203.0.113.9'}]), 200)
	for c in callers:
		hosts.until(lambda: c.get(one).status_code == 403, 60)
	client.ok(hosts.caller(0).post(entries, json=[{'ipAddress': hosts.seen_as}]), 200)
	for c in callers:
		hosts.until(lambda: c.get(one).status_code == 200, 60)
	# One request id, in the logs of both.
	r = callers[0].get(one)
	hosts.until(lambda: all(r.headers['X-Request-Id'] in hosts.nodes[i].stderr for i in (0, 1)), 60)
	assert r.headers['X-Request-Id'] not in hosts.nodes[2].stderr
	# And it is counted once, where it was asked.
	before = [counted(hosts, i) for i in range(3)]
	for _ in range(5):
		client.ok(callers[0].get(one))
	hosts.until(lambda: [counted(hosts, i) - before[i] for i in range(3)] == [5, 0, 0], 60)
	# Who is gone is refused everywhere.
	assert hosts.caller(1).delete('/orgs/%s/serviceAccounts/%s' % (hosts.org, account['clientId'])).status_code == 204
	for c in callers:
		hosts.until(lambda: c.get(one).status_code == 401, 60)
	# A write is a row, whichever host runs its work: a repeat on another host gives the first answer.
	key = {'Idempotency-Key': client.unique()}
	body = {'name': client.unique('same'), 'orgId': hosts.org}
	made = [client.ok(hosts.caller(i).post('/groups', json=body, headers=key))['id'] for i in range(3)]
	assert len(set(made)) == 1


def inner_port(hosts, i):
	host, port = hosts.listed()['h%d' % i]['address'].rsplit(':', 1)
	return host, int(port)


def try_inner(hosts, i, context, request, raw=None):
	"""What comes back on the port between hosts; b'' when nothing does."""
	with socket.create_connection(inner_port(hosts, i), timeout=5) as s:
		try:
			if raw is not None:
				s.sendall(raw)
				return s.recv(65536)
			with context.wrap_socket(s, server_hostname='x') as t:
				t.sendall(request)
				return t.recv(65536)
		except (OSError, ssl.SSLError):
			return b''


def openssl(*words, cwd):
	subprocess.run(['openssl', *words], cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_attacks_on_the_way_between(hosts, tmp_path):
	process = hosts.process_of('c1')
	path = client.BASE + '/groups/%s/processes/%s' % (hosts.group, process['id'])
	account = client.ok(hosts.caller(0).get('/orgs/%s/serviceAccounts' % hosts.org))['results'][0]
	ident = hosts.db.sql("SELECT id FROM steward.doc WHERE kind = 'service_account' LIMIT 1")
	assert account and client.ID.match(ident)
	node = (hosts.home / 'n0/node.id').read_text()
	forged = ('GET %s HTTP/1.1\r\nHost: x\r\nX-Steward-Caller: 1/%s\r\nX-Steward-Peer: 127.0.0.1\r\n\r\n'
		  % (path, ident)).encode()

	def context(cert=None, key=None):
		c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
		c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
		if cert:
			c.load_cert_chain(str(cert), str(key))
		return c

	# Nobody; the public certificate, which every node has; a certificate of one's own authority in a host's name.
	curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
	openssl('req', '-x509', *curve, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/O=Steward/CN=Steward hosts', '-days', '30', cwd=tmp_path)
	openssl('req', *curve, '-keyout', 'own.key', '-out', 'own.csr', '-subj', '/O=Steward/CN=' + node, cwd=tmp_path)
	(tmp_path / 'ext').write_text('extendedKeyUsage=clientAuth\nbasicConstraints=CA:FALSE\n')
	openssl('x509', '-req', '-in', 'own.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-out', 'own.crt',
		'-days', '30', '-extfile', 'ext', cwd=tmp_path)
	tls = hosts.home / 'n0/tls'
	for c in (context(), context(tls / 'server.crt', tls / 'server.key'), context(tmp_path / 'own.crt', tmp_path / 'own.key')):
		assert try_inner(hosts, 1, c, forged) == b''
	old = context(tmp_path / 'own.crt', tmp_path / 'own.key')
	old.maximum_version = ssl.TLSVersion.TLSv1_2
	assert try_inner(hosts, 1, old, forged) == b''
	assert not try_inner(hosts, 1, None, None, raw=forged).startswith(b'HTTP/1.1 2')  # without TLS at all

	# The headers mean nothing on the public port, alone or beside credentials.
	headers = {'X-Steward-Caller': '1/' + ident, 'X-Steward-Peer': '127.0.0.1'}
	for i in range(3):
		url = 'https://%s%s' % (hosts.addresses[i], path)
		assert call('GET', url, headers=headers, timeout=60).status_code == 401
		assert call('GET', 'https://%s/hosts/clusters?%s' % (hosts.addresses[i], node), headers=headers,
			    timeout=60).status_code == 404
		assert call('GET', 'https://%s/hosts/session?%s,x,1,1,0' % (hosts.addresses[i], node), headers=headers, timeout=60).status_code == 404
		weak = client.ok(hosts.caller(0).post('/orgs/%s/serviceAccounts' % hosts.org, json={'name': client.unique(),
				'description': 'x', 'roles': ['ORG_MEMBER'], 'secretExpiresAfterHours': 24}), 201)
		token = call('POST', 'https://%s/api/oauth/token' % hosts.addresses[0], data={'grant_type': 'client_credentials'},
			     auth=(weak['clientId'], weak['secrets'][0]['secret']), timeout=60).json()['access_token']
		r = call('GET', url, headers={**headers, 'Authorization': 'Bearer ' + token}, timeout=60)
		assert r.status_code in (401, 403), r.text
	# And the public port takes no certificate of a host's for a caller's credentials.
	assert call('GET', 'https://%s%s' % (hosts.addresses[1], path), timeout=60).status_code == 401


class Recorder(Between):
	"""Passes everything on, and keeps what the first side sent."""

	def __init__(self, port):
		self.sent = b''
		super().__init__(port)

	async def serve(self, reader, writer):
		far, up = await asyncio.open_connection('127.0.0.1', self.target)

		async def pump(a, b, keep):
			while data := await a.read(65536):
				if keep:
					self.sent += data
				b.write(data)
				await b.drain()
			b.close()
		await asyncio.gather(pump(reader, up, True), pump(far, writer, False), return_exceptions=True)


def test_replay(hosts):
	"""What was overheard on the way between hosts opens nothing."""
	host, port = inner_port(hosts, 1)
	tap = Recorder(port)
	try:
		hosts.db.sql(MOVE % (host, port, host, tap.port))
		one = '/groups/%s/processes/%s' % (hosts.group, hosts.process_of('c1')['id'])
		hosts.until(lambda: hosts.caller(2).get(one).status_code == 200 and len(tap.sent) > 500, 30)
		sent = tap.sent
		assert one.encode() not in sent and b'X-Steward' not in sent  # it is secret
		with socket.create_connection((host, port), timeout=5) as s:
			s.sendall(sent)
			answer = b''
			try:
				while data := s.recv(65536):
					answer += data
			except OSError:
				pass
		assert b'HTTP/1.1' not in answer
		assert call('GET', 'https://%s/healthz' % hosts.addresses[1], timeout=60).status_code == 200
	finally:
		hosts.db.sql(MOVE % (host, tap.port, host, port))
		time.sleep(1.5)
		tap.close()


def authority(hosts):
	return hosts.db.sql("SELECT body FROM steward.doc WHERE kind = 'hosts_ca'")


def test_a_new_authority(hosts):
	"""The store loses the authority: one host makes another, all follow, and one that starts later is no stranger."""
	one = '/groups/%s/processes/%s' % (hosts.group, hosts.process_of('c1')['id'])
	before = authority(hosts)
	hosts.db.sql("WITH gone AS (DELETE FROM steward.doc WHERE kind = 'hosts_ca') DELETE FROM steward.list WHERE kind = 'hosts_ca'")
	hosts.until(lambda: authority(hosts), 30)
	after = authority(hosts)
	assert 'CERTIFICATE' in after and after != before
	hosts.nodes[1].stop()
	hosts.start_node(1)
	hosts.until(lambda: all(hosts.caller(i).get(one).status_code == 200 for i in range(3)), 60)
	assert authority(hosts) == after, 'it was made once'


def test_placement(hosts):
	# A region that no host is labeled for.
	doc = client.refused(hosts.create('far', 'SA_EAST_1'), 409, 'NO_HOST_HAS_ROOM')
	assert all('h%d is for %s' % (i, REGIONS[i]) in doc['detail'] for i in range(3)), doc
	# A host that was set apart.
	hosts.cli('cordon', 'h0')
	doc = client.refused(hosts.create('more', REGIONS[0]), 409, 'NO_HOST_HAS_ROOM')
	assert 'h0 is cordoned' in doc['detail']
	hosts.cli('uncordon', 'h0')
	# Room for one more: of many that come at once, on all hosts, one gets it.
	answers = []
	threads = [threading.Thread(target=lambda i=i: answers.append(hosts.create('race%d' % i, REGIONS[0], i=i % 3)))
		   for i in range(9)]
	[t.start() for t in threads]
	[t.join() for t in threads]
	assert sorted(a.status_code for a in answers) == [201] + [409] * 8
	lost = [a.json() for a in answers if a.status_code == 409]
	assert all(d['errorCode'] == 'NO_HOST_HAS_ROOM' and 'h0 lacks memory' in d['detail'] and '6144 MB' in d['detail']
		   for d in lost), lost
	won = next(a.json()['name'] for a in answers if a.status_code == 201)
	used = hosts.listed()['h0']
	assert used['used']['memoryMB'] == MEMORY_GB * 1024 and used['clusterCount'] == 2
	# Nor can one grow into room that there is not.
	r = hosts.caller(2).call('PATCH', '/groups/%s/clusters/c0' % hosts.group, json={'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': REGIONS[0], 'priority': 7,
		 'electableSpecs': {'instanceSize': 'M20', 'nodeCount': 3}}]}]})
	assert 'h0, where the cluster is, lacks memory' in client.refused(r, 409, 'NO_HOST_HAS_ROOM')['detail']
	# What goes gives its room back.
	hosts.until(lambda: hosts.state(won) == 'IDLE', 180)
	assert hosts.caller(1).delete('/groups/%s/clusters/%s' % (hosts.group, won)).status_code in (202, 204)
	hosts.until(lambda: hosts.listed()['h0']['used']['memoryMB'] == 6144, 180)
	assert hosts.listed()['h0']['clusterCount'] == 1
	# A host without the label takes any region.
	hosts.cli('label', 'h2', 'region=', 'provider=')
	assert hosts.listed()['h2']['labels'] == {}
	made = client.ok(hosts.create('far', 'SA_EAST_1', i=0), 201)
	assert made['name'] in [c['name'] for c in json.loads(hosts.cli('show', 'h2', '-o', 'json').stdout)['clusters']]
	hosts.until(lambda: hosts.state('far') == 'IDLE', 180)
	assert hosts.caller(1).delete('/groups/%s/clusters/far' % hosts.group).status_code in (202, 204)
	hosts.until(lambda: hosts.state('far') == 404, 180)
	hosts.cli('label', 'h2', 'region=' + REGIONS[2], 'provider=AWS', 'zone=b')
	assert hosts.listed()['h2']['labels'] == {'provider': 'AWS', 'region': REGIONS[2], 'zone': 'b'}


def test_the_operators_word_is_an_event(hosts):
	def events(kind):
		found = client.ok(hosts.caller(1).get('/orgs/%s/events?eventType=%s&includeRaw=true' % (hosts.org, kind)))['results']
		return [e['raw']['description'] for e in found]
	kinds = ['SERVICE_HOST_CORDONED', 'SERVICE_HOST_UNCORDONED', 'SERVICE_HOST_LABELED']
	before = {k: len(events(k)) for k in kinds}
	hosts.cli('cordon', 'h1')
	hosts.cli('cordon', 'h1')  # as before: no second event
	hosts.cli('uncordon', 'h1')
	hosts.cli('label', 'h1', 'zone=c')
	hosts.cli('label', 'h1', 'zone=c')
	after = {k: events(k) for k in kinds}
	assert {k: len(after[k]) - before[k] for k in kinds} == dict.fromkeys(kinds, 1)
	assert 'host: h1' in after['SERVICE_HOST_CORDONED'][0] and '"zone":"c"' in after['SERVICE_HOST_LABELED'][0]
	for words in (('label', 'h1', 'zone'), ('label', 'h1', 'a b=c'), ('label', 'h1'), ('cordon',), ('list', 'h1'),
		      ('hide', 'h1')):
		assert hosts.cli(*words, check=False).returncode == 2, words
	client.cli('check', '--data', hosts.home / 'n0', '--store', hosts.db.url())  # the chain is signed all the same


def test_a_host_is_removed(hosts):
	"""One that is alive, or has clusters, is not; by force it is, and it is back with its process."""
	def refused(*words):
		r = hosts.cli('remove', *words, check=False)
		assert r.returncode == 1, r.stderr
		return r.stderr

	def removals():
		found = client.ok(hosts.caller(0).get('/orgs/%s/events?eventType=SERVICE_HOST_REMOVED&includeRaw=true' % hosts.org))
		return [e['raw']['description'] for e in found['results']]
	before = len(removals())
	one, ident = '/groups/%s/processes/%s' % (hosts.group, hosts.process_of('c2')['id']), hosts.listed()['h2']['id']
	assert 'h2 is alive' in refused('h2') and 'h2 is alive' in refused('h2', '--force')
	assert 'no host "nobody"' in refused('nobody')
	assert hosts.cli('cordon', 'h2', '--force', check=False).returncode == 2
	hosts.nodes[2].stop()
	text = refused('h2')
	assert 'h2 has clusters (c2)' in text and '--force' in text
	assert 'h2' in hosts.listed() and len(removals()) == before
	assert 'out of reach without it: c2' in hosts.cli('remove', 'h2', '--force').stdout
	assert sorted(hosts.listed()) == ['h0', 'h1'] and len(removals()) == before + 1 and 'host: h2' in removals()[0]
	hosts.until(lambda: ident in hosts.caller(0).get(one).text, 60)  # others forget its name
	away(hosts, one, ident)
	assert 'h2' not in client.refused(hosts.create('none', REGIONS[2]), 409, 'NO_HOST_HAS_ROOM')['detail']
	client.cli('check', '--data', hosts.home / 'n0', '--store', hosts.db.url())
	hosts.start_node(2)
	hosts.until(lambda: all(hosts.caller(i).get(one).status_code == 200 for i in range(3)), 30)
	back = hosts.listed()['h2']
	assert back['id'] == ident and back['used']['memoryMB'] == 6144 and back['clusterCount'] == 1
	# One without clusters goes without force.
	spare = hosts.home / 'spare'
	shutil.copytree(hosts.home / 'n0', spare, ignore=shutil.ignore_patterns('node.id', 'engine'))
	s = client.Server('--store', hosts.db.url(), '--host-name', 'spare', '--limits', hosts.redis.url(), data_dir=spare,
			  clock='real', control=False)
	assert 'spare is alive' in refused('spare')
	s.stop()
	assert hosts.cli('remove', 'spare').stdout == 'spare: removed\n' and sorted(hosts.listed()) == ['h0', 'h1', 'h2']


def test_the_one_host_of_an_embedded_store(start_server):
	s = start_server('--host-name', 'solo', '--label', 'region=US_EAST_1', '--host-cores', 8)

	def listed():
		return json.loads(client.cli('hosts', 'list', '-o', 'json', '--data', s.data_dir).stdout)
	one, = listed()
	assert one['name'] == 'solo' and one['alive'] and one['labels'] == {'region': 'US_EAST_1'} and one['bound']['cores'] == 8
	assert one['id'] == (s.data_dir / 'node.id').read_text()
	client.cli('hosts', 'cordon', 'solo', '--data', s.data_dir)
	assert listed()[0]['cordoned']
	assert len(client.ok(s.get('/orgs/%s/events?eventType=SERVICE_HOST_CORDONED' % s.org))['results']) == 1
	assert client.cli('hosts', 'remove', 'solo', '--force', '--data', s.data_dir, check=False).returncode == 1
	assert len(listed()) == 1
	for words in (('--label', 'region'), ('--label', '=x'), ('--host-name', 'No Name'), ('--host-address', 'nowhere')):
		assert client.cli('serve', '--data', s.data_dir / 'none', *words, check=False).returncode == 2, words
	assert client.cli('hosts', 'list', '--data', s.data_dir / 'none', check=False).returncode == 2
