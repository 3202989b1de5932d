"""What goes wrong between nodes and the store they share without anything being cut: connections that say nothing any more,
hosts that are gone, sessions that the server has ended, a process that stood still."""
import asyncio, contextlib, os, pathlib, shutil, signal, tempfile, threading, time

import pytest

import client, database
from nodes import Between, Caller, Load, Nodes, call

REVOKED = 1  # second, after which no node takes a credential that is gone
RECOVERY = 5
pytestmark = pytest.mark.filterwarnings('ignore:Unverified HTTPS request')


class Wire(Between):
	"""Passes on what nodes and the store say, until one of them is not to be heard any more."""

	def __init__(self, port):
		self.open, self.hushed, self.gone = set(), None, False
		super().__init__(port)

	async def pump(self, reader, writer, said):
		try:
			while data := await reader.read(65536):
				said += data[:4096 - len(said)]
				if self.hushed and self.hushed in said:
					await asyncio.sleep(3600)
				writer.write(data)
				await writer.drain()
		except OSError:
			pass
		finally:
			writer.transport.abort()

	async def serve(self, reader, writer):
		if self.gone:
			return await asyncio.sleep(3600)
		far, up = await asyncio.open_connection('127.0.0.1', self.target)
		said = bytearray()  # by the node, at first
		self.open |= {writer, up}
		await asyncio.gather(self.pump(reader, up, said), self.pump(far, writer, said))
		self.open -= {writer, up}

	def hush(self, word):
		"""Connections on which a node has said this are dead, and nobody is told."""
		self.hushed = word

	def lose(self):
		"""The host is gone: what was connected breaks, and who connects hears nothing."""
		self.gone = True
		self.loop.call_soon_threadsafe(lambda: [w.transport.abort() for w in self.open])


@pytest.fixture
def wired():
	"""Two nodes; the second reaches the store by a wire."""
	nodes = Nodes(2)
	wire = Wire(nodes.db.port)
	nodes.url_of = lambda i: nodes.db.url().replace(':%d/' % nodes.db.port, ':%d/' % wire.port) if i else nodes.db.url()
	nodes.wire = wire
	try:
		for i in range(2):
			nodes.start_node(i)
		yield nodes
	finally:
		nodes.close()
		wire.close()


@pytest.fixture
def alone():
	with contextlib.closing(Nodes(1)) as nodes:
		nodes.start_node(0)
		yield nodes


def account(nodes):
	"""A service account that node 1 knows well, and what takes it away on node 0."""
	made = client.ok(nodes.caller(0).post('/orgs/%s/serviceAccounts' % nodes.org, json={'name': client.unique(), 'description': 'x',
			'roles': ['ORG_OWNER'], 'secretExpiresAfterHours': 24}), 201)
	r = call('POST', 'https://%s/api/oauth/token' % nodes.addresses[1], data={'grant_type': 'client_credentials'},
		 auth=(made['clientId'], made['secrets'][0]['secret']), timeout=30)
	caller = Caller('https://' + nodes.addresses[1], r.json()['access_token'])
	for _ in range(50):  # every thread remembers it
		client.ok(caller.get('/groups'))

	def revoke():
		r = nodes.caller(0).delete('/orgs/%s/serviceAccounts/%s' % (nodes.org, made['clientId']))
		assert r.status_code == 204, r.text
	return caller, revoke


def refused_in_time(caller, revoked):
	"""From REVOKED on every call is refused; before, either may be. A busy machine gets what calls need on it anyway."""
	last = 0
	while time.monotonic() < revoked + REVOKED + 3 * last:
		began = time.monotonic()
		assert caller.get('/groups').status_code in (200, 401)
		last = time.monotonic() - began
	taken = 0
	for _ in range(40):
		taken += caller.get('/groups').status_code != 401
		time.sleep(0.05)
	assert not taken, '%d of 40 calls were taken after a second' % taken


def test_revoked_while_nothing_is_heard(wired):
	"""The connection that listens says nothing any more, and was not closed: a firewall has forgotten it, or its host is gone."""
	caller, revoke = account(wired)
	wired.wire.hush(b'LISTEN steward')
	time.sleep(0.4)
	revoke()
	refused_in_time(caller, time.monotonic())


def test_revoked_while_it_stood_still(wired):
	"""A node that was stopped for a while trusts nothing of what it remembers when it goes on."""
	caller, revoke = account(wired)
	node = wired.nodes[1]
	node.signal(signal.SIGSTOP)
	try:
		revoke()
		time.sleep(2)
		answers, threads = [], []
		for _ in range(8):
			t = threading.Thread(target=lambda: answers.append(caller.get('/groups').status_code))
			t.start()
			threads.append(t)
		time.sleep(0.5)
	finally:
		node.signal(signal.SIGCONT)
	for t in threads:
		t.join(30)
	assert answers == [401] * 8, answers


def recovers(nodes, i=0):
	def answered():
		return nodes.until(lambda: nodes.caller(i).get('/groups').status_code == 200, 60) + nodes.until(lambda: nodes.caller(i).post(
			'/groups', json={'name': client.unique('after'), 'orgId': nodes.org}).status_code == 200, 60)
	seconds, usual = answered(), max(answered() for _ in range(3))  # a busy machine gets what the calls need on it with nothing wrong
	assert seconds < RECOVERY + 3 * usual, (seconds, usual)


def test_the_first_host_is_gone():
	"""Of two hosts in the URL the first goes without a word, as a machine does: the other is used, by readers and writer."""
	nodes = Nodes(1)
	wire = Wire(nodes.db.port)
	nodes.url_of = lambda i: 'postgresql://steward@127.0.0.1:%d,127.0.0.1:%d/steward' % (wire.port, nodes.db.port)
	try:
		nodes.start_node(0)
		recovers(nodes)
		wire.lose()
		recovers(nodes)
		for _ in range(40):  # and every thread
			client.ok(nodes.caller(0).get('/groups'))
		nodes.nodes[0].stop()
		nodes.start_node(0)  # also from the start
		recovers(nodes)
	finally:
		nodes.close()
		wire.close()


def test_sessions_ended_by_the_server(alone):
	"""By a bound on idle sessions, as many services set one: nobody sees more of that than a new connection."""
	if int(alone.db.bin.parts[-2]) < 14:
		pytest.skip('idle_session_timeout is of PostgreSQL 14')
	caller = alone.caller(0)
	for _ in range(30):
		client.ok(caller.get('/groups'))
	alone.db.sql("ALTER SYSTEM SET idle_session_timeout = '2s'")
	alone.db.sql('SELECT pg_reload_conf()')
	for _ in range(3):
		time.sleep(3)  # a bound near what a busy machine takes between two statements would be met within a call
		client.ok(caller.get('/groups'))
		client.ok(caller.post('/groups', json={'name': client.unique(), 'orgId': alone.org}))


def test_plans_that_fit_no_more(alone):
	"""A newer version has changed a column's type while this one runs: what it has prepared is prepared again."""
	caller = alone.caller(0)
	for _ in range(50):
		client.ok(caller.get('/groups/' + alone.nodes[0].group))
		client.ok(caller.post('/groups', json={'name': client.unique(), 'orgId': alone.org}))
	alone.db.sql('ALTER TABLE steward.doc ALTER COLUMN body TYPE varchar; ALTER TABLE steward.meta ALTER COLUMN value TYPE varchar')
	for _ in range(30):
		client.ok(caller.get('/groups/' + alone.nodes[0].group))
		client.ok(caller.post('/groups', json={'name': client.unique(), 'orgId': alone.org}))


def test_no_password_in_the_log(alone, tmp_path):
	for url in ('postgresql://steward:hidden%zz@127.0.0.1:1/steward', 'postgresql://steward:hidden@127.0.0.1:1/steward?a=b',
		    'postgresql://steward:hid den%@127.0.0.1:1/steward', 'postgresql://steward:hidden@127.0.0.1:x/steward'):
		done = client.cli('serve', '--data', tmp_path / 'd', '--listen', '127.0.0.1:0', '--store', url, check=False)
		assert done.returncode and 'hid' not in done.stdout + done.stderr, done.stderr


def test_a_node_copied_with_its_name(alone):
	"""A data directory that was copied as a whole: two nodes under one name would take each other's batches and jobs."""
	folder = alone.home / 'twin'
	shutil.copytree(alone.home / 'n0', folder)
	command = ('serve', '--data', folder, '--listen', '127.0.0.1:0', '--store', alone.db.url(), '--engine', 'simulated')
	done = client.cli(*command, check=False)
	assert done.returncode and 'node.id' in done.stderr, done.stderr
	client.ok(alone.caller(0).post('/groups', json={'name': client.unique(), 'orgId': alone.org}))
	(folder / 'node.id').unlink()
	client.Server('--store', alone.db.url(), data_dir=folder, clock='real', control=False).stop()

	def back():
		"""One that was killed has its name back at once."""
		alone.nodes[0].kill()
		began = time.monotonic()
		alone.start_node(0)
		return time.monotonic() - began < RECOVERY
	assert any(back() for _ in range(4)), 'on a slow machine a start alone may take so long'


def test_kept_only_where_the_standby_has_it(alone):
	"""A commit that waits for a standby is on this server's disk already. When the server is restarted meanwhile, the batch is
	found, and yet nobody may be told that it is safe."""
	caller, answers = alone.caller(0), []
	caller.seconds = 180
	client.ok(caller.post('/groups', json={'name': client.unique(), 'orgId': alone.org}))
	alone.db.sql("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
	alone.db.sql('SELECT pg_reload_conf()')
	time.sleep(0.3)
	name = client.unique('waits')
	post = lambda: caller.post('/groups', json={'name': name, 'orgId': alone.org}, headers={'Idempotency-Key': name})
	thread = threading.Thread(target=lambda: answers.append(post()))
	thread.start()
	client.until(lambda: alone.db.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") != '0')
	time.sleep(2)  # another write may be the one that waits: this one then follows
	alone.db.stop()
	alone.db.start()
	thread.join(180)
	client.refused(answers[0], 503)
	assert 'it is not known whether a batch of writes was kept' in alone.nodes[0].stderr
	alone.db.sql('ALTER SYSTEM RESET synchronous_standby_names')
	alone.db.sql('SELECT pg_reload_conf()')
	recovers(alone)
	assert client.ok(post())['name'] == name, 'the first answer'
	assert alone.db.sql("SELECT count(*) FROM steward.doc WHERE name = '%s'" % name) == '1'


class Standby(database.Database):
	"""Follows another one."""

	def __init__(self, primary):
		self.bin, self.host, self.port, self.process = primary.bin, primary.host, database.free_port(), None
		self.dir = pathlib.Path(tempfile.mkdtemp(prefix='sw-pg-', dir=client.SHORT))
		self.data = self.dir / 'data'
		self.settings = {**primary.settings, 'port': self.port, 'unix_socket_directories': self.dir,
				 'synchronous_standby_names': ''}
		os.chmod(self.dir, 0o755)
		if os.getuid() == 0:
			shutil.chown(self.dir, database.USER)
		self.run('pg_basebackup', '-D', self.data, '-h', primary.dir, '-p', primary.port, '-U', 'steward', '-R', '-c', 'fast',
			 '--no-sync')
		database.running.append(self)
		self.start()


@pytest.mark.skipif(not shutil.which('haproxy'), reason='haproxy is not installed')
def test_failed_over():
	"""The primary is killed under load, and its standby takes over: by the URL's other host, and nothing is lost."""
	nodes = Nodes(2)
	standby = Standby(nodes.db)
	nodes.url_of = lambda i: 'postgresql://steward@127.0.0.1:%d,127.0.0.1:%d/steward' % (nodes.db.port, standby.port)
	try:
		nodes.db.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
		nodes.db.sql('SELECT pg_reload_conf()')
		nodes.start()
		load = Load(nodes)
		time.sleep(2)
		nodes.db.stop(signal.SIGKILL)
		time.sleep(1)
		standby.run('pg_ctl', 'promote', '-w', '-D', standby.data)
		for i in range(2):
			recovers(nodes, i)
		time.sleep(1)
		load.stop()
		load.verify()
		url = 'postgresql://steward@127.0.0.1:%d/steward' % standby.port
		assert client.cli('check', url).returncode == 0
	finally:
		nodes.close()
		standby.close()


def test_why_it_cannot_connect(alone, tmp_path):
	"""The operator is told what the server said, not only that there was no more time."""
	for url, words in ((alone.db.url().replace('steward@', 'nobody@'), 'role "nobody" does not exist'),
			   (alone.db.url('none'), 'database "none" does not exist')):
		done = client.cli('serve', '--data', tmp_path / 'd', '--listen', '127.0.0.1:0', '--store', url, check=False)
		assert done.returncode and words in done.stderr, done.stderr
