"""A living service with many real clusters moves from its own store to three nodes on PostgreSQL and back, under load, and each node
is killed once on the way: no cluster changes its state, no right is lost or kept, nothing is metered or billed twice.

Takes minutes, so it runs by itself: script/test move (STEWARD_MOVE_CLUSTERS, 20). test_store_move.py moves a small one in each run."""
import contextlib, json, os, shutil, socket, sqlite3, struct, threading, time, uuid

import psycopg2, pytest, requests

import client, database, databases, nodes
from client import cli, ok, until
from databases import PASSWORD, USER, allow, shape
from test_store_move import BAD, Move, events

COUNT = int(os.environ.get('STEWARD_MOVE_CLUSTERS') or 0)
pytestmark = pytest.mark.skipif(not COUNT or not databases.installed(), reason='script/test move')
AWS = 'vpce-0123456789abcdef0'
CONSUMER, STRANGER = '127.0.0.1', '127.81.9.9'
SSL_REQUEST = struct.pack('!ii', 8, 80877103)
BACK_SECONDS = 40 * 86400  # so that a month is over
LASTING = ('node/', 'disk/', 'private_endpoint')
SECONDS = 120
BEGAN = time.monotonic()
DAILY = {'frequencyType': 'daily', 'frequencyInterval': 1, 'retentionUnit': 'days', 'retentionValue': 7}


class Living(Move):
	"""The service, one process or three, and what it is known to have."""

	def __init__(self, site):
		super().__init__(site)
		self.url = self.db = self.name = None

	def options(self, i):
		return ('--private-endpoints', '127.8%d.0.1:1024-1200' % (i + 1), '--backups', self.site.root / 'backups')

	def start(self, i, *args):
		return super().start(i, *(('--store', self.url) if self.url else ()), *self.options(i), *args)

	def alive(self):
		return [n for n in self.nodes if not n.ended]

	def rows(self, sql):
		if self.url:
			return self.db.rows('SET search_path TO steward; ' + sql, self.name)
		return self.alive()[0].rows(sql)

	def bodies(self, kind):
		return {id_: json.loads(body) for id_, body in self.rows("SELECT id, body FROM doc WHERE kind = '%s'" % kind)}

	def lasting(self):
		"""What is metered and goes on: subject and key -> which measurement, of what, since when."""
		return {(s, k): (m['id'], m['sku'], m['amount'], m['from']) for s, doc in self.bodies('meter_open').items()
			for k, m in doc['open'].items() if k.startswith(LASTING)}

	def ended(self):
		return list(self.bodies('meter').values())

	def invoice_now(self):
		"""The hourly job runs once more, out of its time. In a store of one process that was said before its start: invoices_due()."""
		if self.url:
			self.db.sql("UPDATE steward.job SET due_ms = 0 WHERE kind = 'invoices'", database=self.name)
		until(lambda: self.rows("SELECT 1 FROM job WHERE kind = 'invoices' AND due_ms > 0 AND state = 'queued'"), SECONDS)


class Load:
	"""Beside everything else: calls to whichever node is there, and a session to each database that nothing may end."""

	def __init__(self, living, clusters):
		self.living, self.stopped, self.faults, self.calls, self.projects = living, threading.Event(), [], 0, {}
		self.sessions, self.written = {c.name: c.connect() for c in clusters}, {c.name: 1 for c in clusters}
		self.names = set(self.sessions)
		self.token = living.alive()[0].token()
		self.threads = [threading.Thread(target=self.guarded, args=(work,), daemon=True) for work in (self.call, self.call, self.write)]
		for t in self.threads:
			t.start()

	def guarded(self, work):
		while not self.stopped.wait(0.05):
			try:
				work()
			except Exception as e:  # whatever it is, it is reported by the test
				self.faults.append(repr(e))
				return

	def ask(self, method, path, **kw):
		"""None: there is nobody, it was killed meanwhile, or it cannot answer now."""
		alive = self.living.alive()
		if not alive:
			return None
		self.calls += 1
		server = alive[self.calls % len(alive)]
		try:
			r = nodes.Caller(server.base_url, self.token).call(method, path, **kw)
		except requests.RequestException:
			assert self.is_over(server), 'a node that lives gave no answer'
			return None
		return None if r.status_code == 503 else r

	def is_over(self, server):
		"""It was killed, or is in this moment."""
		with contextlib.suppress(AssertionError):
			return until(lambda: server.ended or server.process.poll() is not None, 5)
		return False

	def call(self):
		r = self.ask('GET', '/groups/%s/clusters?itemsPerPage=500' % self.living.group)
		if r is not None:
			states = {c['name']: c['stateName'] for c in ok(r)['results']}
			assert states == {n: 'IDLE' for n in self.names}, states
		name, key, made = client.unique('load'), uuid.uuid4().hex, None
		while made is None and not self.stopped.wait(0.05):
			r = self.ask('POST', '/groups', json={'name': name, 'orgId': self.living.org}, headers={'Idempotency-Key': key})
			made = ok(r)['id'] if r is not None else None
		if made:
			self.projects[name] = made

	def write(self):
		for name, session in self.sessions.items():
			with session.cursor() as cursor:
				cursor.execute('insert into kept values (%d)' % (self.written[name] + 1))
			self.written[name] += 1

	def stop(self):
		self.stopped.set()
		for t in self.threads:
			t.join(120)
		for s in self.sessions.values():
			s.close()
		assert not self.faults, self.faults

	def verify(self, server):
		found, page = {}, 1
		while page:
			results = ok(server.get('/groups?itemsPerPage=500&pageNum=%d' % page))['results']
			for g in results:
				assert g['name'] not in found, 'made twice: ' + g['name']
				found[g['name']] = g['id']
			page = page + 1 if len(results) == 500 else 0
		lost = {n: i for n, i in self.projects.items() if found.get(n) != i}
		assert self.projects and not lost, lost


def gets_in(string, user):
	try:
		c = psycopg2.connect(string, user=user, password=PASSWORD, dbname='postgres', connect_timeout=20)
	except psycopg2.OperationalError:
		return False
	with contextlib.closing(c), c.cursor() as cursor:
		cursor.execute('select count(*) from kept')
		return cursor.fetchone()[0] > 0


def answers(address, port, source):
	"""Whether a database answers through a relay to who comes from there."""
	try:
		with socket.create_connection((address, port), 20, (source, 0)) as s:
			s.sendall(SSL_REQUEST)
			return s.recv(1) == b'S'
	except OSError:
		return False


class Rights:
	"""Who may what, as it was said; verified on every cluster and every node."""

	def __init__(self, living, clusters):
		self.living, self.clusters = living, clusters
		self.users, self.accounts = {USER: True}, {}
		self.endpoint, self.relays = True, {}  # whether there is one; where each cluster's relay listened last

	def path(self, what):
		return '/groups/%s/%s' % (self.living.group, what)

	def user_add(self, server, name):
		self.said(server, server.post(self.path('databaseUsers'), json={
			'username': name, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.living.group,
			'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
		self.users[name] = True

	def user_remove(self, server, name):
		self.said(server, server.delete(self.path('databaseUsers/admin/' + name)), 204)
		self.users[name] = False

	def said(self, server, answer, status):
		"""Saved; in force now, or with the jobs of it."""
		assert answer.status_code == status or client.is_late(answer), answer.text
		until(lambda: not self.living.rows("SELECT 1 FROM job WHERE kind = 'access'"), SECONDS, 'what was saved to be in force')

	def account_add(self, server, name):
		made = ok(server.post('/orgs/%s/serviceAccounts' % self.living.org, json={
			'name': name, 'description': name, 'secretExpiresAfterHours': 8, 'roles': ['ORG_READ_ONLY']}), 201)
		account = {'clientId': made['clientId'], 'clientSecret': made['secrets'][0]['secret']}
		self.accounts[name] = {**account, 'token': server.token(account), 'valid': True}

	def account_remove(self, server, name):
		r = server.delete('/orgs/%s/serviceAccounts/%s' % (self.living.org, self.accounts[name]['clientId']))
		assert r.status_code == 204, r.text
		self.accounts[name]['valid'] = False

	def verify(self):
		servers = self.living.alive()
		for s in servers:
			for name, a in self.accounts.items():
				r = client.Api(s, client.Bearer(a['token'])).get('/orgs/' + self.living.org)
				assert r.status_code == (200 if a['valid'] else 401), (name, r.text)
		for c in self.clusters:
			strings = ok(servers[0].get(c.path))['connectionStrings']
			for user, valid in self.users.items():
				assert gets_in(strings['standard'], user) == valid, (c.name, user, valid)
			private = (strings.get('privateEndpoint') or [{}])[0].get('connectionString')
			if private:
				self.relays[c.name] = relay_of(private)
			assert bool(private) == self.endpoint, (c.name, strings)
			place = self.relays[c.name]
			until(lambda: answers(*place, CONSUMER) == self.endpoint, SECONDS, 'the relay of %s' % c.name)
			assert not answers(*place, STRANGER)
			if self.endpoint:
				assert gets_in(private, USER)


def relay_of(string):
	"""Address and port of a private string."""
	host = string.split('://')[1].split('/')[0]
	return string.split('hostaddr=')[1].split('&')[0], int(host.rsplit(':', 1)[1])


def plain(doc):
	"""Without links, which have each node's own address."""
	if isinstance(doc, dict):
		return {k: plain(v) for k, v in doc.items() if k != 'links'}
	return [plain(v) for v in doc] if isinstance(doc, list) else doc


class Books:
	"""What was metered and billed at first, and is so ever after."""

	def __init__(self, living):
		self.living, self.today = living, time.strftime('%Y-%m-%dT00:00:00Z', time.gmtime())
		self.meter, self.bills, self.over = living.lasting(), self.invoices(), []
		assert [i['statusName'] for i in self.bills.values()].count('PENDING') == 1 < len(self.bills), self.bills
		assert all(i['lineItems'] for i in self.bills.values()), self.bills

	def invoices(self):
		"""All, with the lines of days that were over at the beginning."""
		server, found = self.living.alive()[0], {}
		for one in ok(server.get('/orgs/%s/invoices' % self.living.org))['results']:
			whole = plain(ok(server.get('/orgs/%s/invoices/%s' % (self.living.org, one['id']))))
			lines = [x for x in whole['lineItems'] if x['startDate'] < self.today]
			kept = whole if whole['statusName'] != 'PENDING' else {'statusName': 'PENDING'}
			found[one['id']] = {**kept, 'lineItems': sorted(lines, key=json.dumps)}
		return found

	def end(self, prefix):
		"""One thing that was metered is no more: what it had is written down month by month, from its begin on, once."""
		self.over = [self.meter.pop(k)[3] for k in list(self.meter) if k[1].startswith(prefix)]

	def verify(self):
		self.living.invoice_now()
		now = self.living.lasting()
		assert now == self.meter, 'metered otherwise: %s' % (set(now.items()) ^ set(self.meter.items()))
		ended = self.living.ended()
		once = [(m['cluster'], m['key'], m['from']) for m in ended]
		assert len(set(once)) == len(once), once
		lasted = sorted((m['from'], m['to']) for m in ended if m['key'].startswith(LASTING))
		assert [f for f, _ in lasted] == self.over[:1] + [t for _, t in lasted[:-1]], 'a gap or a double: %s' % lasted
		assert self.invoices() == self.bills


def schedules(server, clusters):
	return [plain(ok(server.get(c.path + '/backup/schedule'))) for c in clusters if c.made['backupEnabled']]


def snapshots(server, clusters):
	return sorted(s['id'] for c in clusters if c.made['backupEnabled'] for s in ok(server.get(c.path + '/backup/snapshots'))['results'])


def clusters_make(site):
	"""Every fourth with backups and a schedule."""
	made = [site.cluster('c%02d' % i, **shape(nodes=1), backupEnabled=i % 4 == 0) for i in range(COUNT)]
	for c in made:
		c.settled(600).ask('create table kept(n int); insert into kept values (1)')
	for i, c in enumerate(made):
		if c.made['backupEnabled']:
			ok(c.server.patch(c.path + '/backup/schedule', json={
				'referenceHourOfDay': (time.gmtime().tm_hour + 12) % 24, 'referenceMinuteOfHour': 30 + i,
				'policies': [{'policyItems': [DAILY]}]}))
	return made


def endpoint_make(living, server):
	links = '/groups/%s/privateEndpoint/' % living.group
	service = ok(server.post(links + 'endpointService', json={'providerName': 'AWS', 'region': 'US_EAST_1'}))['id']
	path = '%sAWS/endpointService/%s' % (links, service)
	until(lambda: ok(server.get(path))['status'] == 'WAITING_FOR_USER', SECONDS, 'the service')
	ok(server.post(path + '/endpoint', json={'id': AWS}))
	cli('accept-endpoint', '--data', server.data_dir, AWS, '--address', CONSUMER)
	until(lambda: ok(server.get(path))['status'] == 'AVAILABLE', SECONDS, 'the endpoint')
	return '%s/endpoint/%s' % (path, AWS)


def month_pass(site):
	"""What runs is found to run for forty days: so there is an invoice that is closed, and one of days that are over."""
	with contextlib.closing(sqlite3.connect(site.data / 'steward.db')) as store:
		for id_, body in store.execute("SELECT id, body FROM doc WHERE kind = 'meter_open'").fetchall():
			doc = json.loads(body)
			for m in doc['open'].values():
				m['from'] -= BACK_SECONDS
			store.execute("UPDATE doc SET body = ?, sum = NULL WHERE kind = 'meter_open' AND id = ?", (json.dumps(doc), id_))
		store.execute("UPDATE doc SET created_ms = created_ms - ?, sum = NULL WHERE kind = 'org'", (BACK_SECONDS * 1000,))
		store.commit()
	invoices_due(site)


def invoices_due(site):
	with contextlib.closing(sqlite3.connect(site.data / 'steward.db')) as store:
		store.execute("UPDATE job SET due_ms = 0 WHERE kind = 'invoices'")
		store.commit()


def store_aside(site):
	aside = site.root / ('aside-%d' % len(list(site.root.iterdir())))
	aside.mkdir()
	for f in site.data.glob('steward.db*'):
		shutil.move(f, aside)


def said(what):
	print('%6.1f s: %s' % (time.monotonic() - BEGAN, what), flush=True)


def test_a_living_service_moves(site):
	place = site('--private-endpoints', '127.81.0.1:1024-1200')
	place.args += ('--backups', place.root / 'backups')
	living = Living(place)
	db = living.db = database.Database()
	try:
		there_and_back(living, place, db)
	finally:
		for n in living.alive():
			n.kill()
		db.close()


def there_and_back(living, site, db):
	server = site.start()
	living.nodes, living.group, living.org = [server], server.group, server.org
	allow(server)
	clusters = clusters_make(site)
	rights = Rights(living, clusters)
	endpoint = endpoint_make(living, server)
	for name in ('gone', 'brief'):
		rights.user_add(server, name)
		rights.account_add(server, name)
	rights.account_add(server, 'kept')
	rights.user_remove(server, 'gone')
	rights.account_remove(server, 'gone')
	taken = next(c for c in clusters if c.made['backupEnabled'])
	ok(server.post(taken.path + '/backup/snapshots', json={}))
	until(lambda: all(s['status'] == 'completed' for s in ok(server.get(taken.path + '/backup/snapshots'))['results']), SECONDS)
	until(lambda: len(living.lasting()) == 2 * COUNT + 1, 60, 'all to be metered')
	said('%d clusters' % COUNT)
	living.nodes = []
	server.stop()
	month_pass(site)
	site.server = server = living.start(0)
	living.invoice_now()
	books, planned, kept = Books(living), schedules(server, clusters), snapshots(server, clusters)
	pids = {c.name: c.pid(c.primary()) for c in clusters}
	rights.verify()
	said('a month is billed')

	def verify(what):
		node = living.alive()[0]
		rights.verify()
		books.verify()
		assert schedules(node, clusters) == planned and snapshots(node, clusters) == kept
		assert {c.name: c.pid(c.primary()) for c in clusters} == pids, 'a database was started anew'
		assert not set(events(node)) & set(BAD), events(node)
		said(what)

	load = Load(living, clusters)
	try:
		time.sleep(2)
		living.nodes = []
		server.kill()
		living.url = db.fresh()
		living.name = living.url.rsplit('/', 1)[1]
		assert 'moved' in cli('store', 'copy', '--from', site.data, '--to', living.url).stdout
		said('copied')
		for i in (1, 2, 0):  # the host of the clusters comes last
			living.start(i)
		verify('on three nodes')
		rights.user_add(living.nodes[0], 'later')
		rights.user_remove(living.nodes[1], 'brief')
		rights.account_add(living.nodes[0], 'later')
		rights.account_remove(living.nodes[1], 'brief')
		verify('rights were changed')
		for i in (1, 2, 0):
			node = living.nodes.pop(0)
			node.kill()
			time.sleep(3)  # calls and writes without it
			living.start(i)
			verify('node %d was killed and is back' % i)
		gone = living.nodes[0].delete(endpoint)
		rights.endpoint = False
		assert gone.status_code in (200, 202, 204) or client.is_late(gone), gone.text
		until(lambda: living.nodes[0].get(endpoint).status_code == 404, SECONDS, 'the end of the endpoint')
		books.end('private_endpoint')
		for n in living.alive():
			living.nodes.remove(n)
			n.kill()
		store_aside(site)
		until(lambda: cli('store', 'copy', '--from', living.url, '--to', site.data, check=False).returncode == 0, 120)
		living.url = None
		said('copied back')
		invoices_due(site)
		site.server = server = living.start(0)
		verify('on one process again')
		load.stop()
	finally:
		load.stopped.set()
	load.verify(server)
	for c in clusters:
		assert c.ask('select count(*), max(n) from kept') == [(load.written[c.name],) * 2], c.name
	assert 'clean' in cli('check', '--data', site.data).stdout
	said('%d calls, %d projects, %d rows' % (load.calls, len(load.projects), sum(load.written.values())))
	for c in clusters:
		c.delete()
	for c in clusters:
		c.deleted()
