"""What is taken away is gone with the answer, whatever the cluster is about: each kind of right in each of ten states.

Every right is tried from the moment of a 2xx on, without a pause and on every node, through the rest of the transition and
until the cluster is whole again. An answer that is no 2xx must say that the right may still be had, and soon it is not."""
import contextlib, json, os, pathlib, signal, socket, ssl, struct, subprocess, threading, time

import psycopg2
import pytest
import requests

import client
from client import Api, Bearer, in_force, metric, ok, refused, unique
from databases import shape, until
from test_revocation import People

PASSWORD, OTHER = 'correct horse 4 battery', 'another horse 5 battery'
STATES = ['idle', 'creating', 'updating', 'paused', 'pausing', 'resuming', 'repairing', 'node-down', 'killed', 'failover']
KINDS = ['user', 'password', 'role', 'network', 'certificate', 'scope']
ROLE = {'roleName': 'read', 'databaseName': 'shop'}


def source_of(state):
	return '127.0.1.%d' % (STATES.index(state) + 1)


class World:
	def __init__(self, place, folder):
		self.place, self.folder = place, folder
		self.path = '/groups/%s/' % place.server.group
		self.post('accessList', [{'ipAddress': a} for a in ['127.0.0.1', *map(source_of, STATES)]])
		self.user('boss', [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}])
		# Before there is a cluster: nobody waits for them.
		for state in STATES:
			for kind in KINDS:
				self.user('%s-%s' % (kind, state), x509='MANAGED' if kind == 'certificate' else None)
			pem = self.pem(state)
			pem.touch(0o600)
			pem.write_text(ok(self.server.post(self.path + 'databaseUsers/certificate-%s/certs' % state, json={}), 201))
		self.post('clusters', {'name': 'c0', **shape(3)}, 201)
		self.id = self.get('clusters/c0')['id']
		self.whole()

	@property
	def server(self):
		return self.place.server

	def get(self, what):
		return ok(self.server.get(self.path + what))

	def post(self, what, body, status=200):
		return ok(self.server.post(self.path + what, json=body), status)

	def change(self, **what):
		ok(self.server.patch(self.path + 'clusters/c0', json=what))

	def user(self, name, roles=(ROLE,), x509=None):
		body = {'username': name, 'groupId': self.server.group, 'roles': list(roles)}
		body.update({'databaseName': '$external', 'x509Type': x509} if x509 else {'databaseName': 'admin', 'password': PASSWORD})
		self.post('databaseUsers', body, 201)

	def pem(self, state):
		return self.folder / (state + '.pem')

	def book(self, id_=None):
		try:
			return json.loads((self.place.data / 'engine' / (id_ or self.id) / 'state.json').read_text())
		except (OSError, ValueError):
			return {'nodes': [], 'sets': []}

	def nodes(self):
		"""Of all clusters, as soon as there is a place for them."""
		engine = self.place.data / 'engine'
		found = os.listdir(engine) if engine.is_dir() else []
		return [n for d in found if len(d) == 24 for n in self.book(d)['nodes']]

	def primary(self):
		return self.book()['sets'][0]['primary']

	def standby(self):
		return next(n['name'] for n in self.book()['nodes'] if n['name'] != self.primary())

	def data(self, node):
		return self.place.data / 'engine' / self.id / node / 'data'

	def kill(self, node):
		os.kill(int((self.data(node) / 'postmaster.pid').read_text().split()[0]), signal.SIGKILL)

	def whole(self, seconds=120):
		"""It is as wanted, and each node takes clients."""
		self.place.wait(self.path + 'clusters/c0', seconds=seconds)
		until(lambda: all(login(n, 'boss', database='postgres') for n in self.book()['nodes']), seconds, 'a whole cluster')

	def superuser(self, node, sql):
		n = next(n for n in self.book()['nodes'] if n['name'] == node)
		with contextlib.closing(psycopg2.connect(host='%s/engine/run/%d' % (self.place.data.resolve(), n['slot']), port=n['port'],
							 user='steward_engine', dbname='postgres')) as c:
			c.autocommit = True
			cursor = c.cursor()
			cursor.execute(sql)
			return cursor.fetchall() if cursor.description else None


def login(node, user, password=PASSWORD, database='shop', **more):
	try:
		psycopg2.connect(host=node['address'], port=node['port'], user=user, dbname=database, sslmode='require', connect_timeout=5,
				 **(more or {'password': password})).close()
		return True
	except psycopg2.Error:
		return False


def is_asked(node, source, user):
	"""Whether a client at this address is asked for its password: its network is admitted."""
	try:
		with socket.create_connection((node['address'], node['port']), 5, (source, 0)) as plain:
			plain.sendall(struct.pack('!ii', 8, 80877103))
			if plain.recv(1) != b'S':
				return False
			context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
			context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
			with context.wrap_socket(plain) as s:
				words = b'user\0' + user.encode() + b'\0database\0shop\0\0'
				s.sendall(struct.pack('!ii', 8 + len(words), 196608) + words)
				return s.recv(1) == b'R'
	except OSError:
		return False


class Right:
	"""One right, how it is taken away, and how it is tried."""

	def __init__(self, world, kind, state):
		self.world, self.kind, self.state, self.name = world, kind, state, '%s-%s' % (kind, state)
		self.answer, self.answered, self.misused, self.tries = None, threading.Event(), [], 0

	def works(self, node):
		if self.kind == 'network':
			return is_asked(node, source_of(self.state), self.name)
		if self.kind == 'certificate':
			pem = str(self.world.pem(self.state))
			return login(node, self.name, sslcert=pem, sslkey=pem)
		return login(node, self.name)

	def take(self, api):
		w = self.world
		user = w.path + 'databaseUsers/admin/' + self.name
		body = {'username': self.name, 'databaseName': 'admin', 'groupId': w.server.group, 'roles': [ROLE]}
		if self.kind == 'user':
			return api.delete(user)
		if self.kind == 'password':
			return api.patch(user, json={**body, 'password': OTHER})
		if self.kind == 'role':
			return api.patch(user, json={**body, 'roles': [{'roleName': 'read', 'databaseName': 'other'}]})
		if self.kind == 'network':
			return api.delete(w.path + 'accessList/' + source_of(self.state))
		if self.kind == 'certificate':
			return api.delete(w.path + 'databaseUsers/$external/' + self.name)
		return api.patch(user, json={**body, 'scopes': [{'name': 'elsewhere', 'type': 'CLUSTER'}]})

	def run(self, over):
		api = Api(self.world.server, Bearer(self.world.server.token))
		try:
			self.answer = self.take(api)
		except requests.ConnectionError:  # the service was killed
			pass
		self.answered.set()
		while self.answer is not None and self.answer.status_code < 300 and not over.is_set():
			for node in self.world.nodes():
				self.tries += 1
				if self.works(node):
					self.misused.append(node['name'])


# --- the states: what is done before the rights are taken away, while, and after all was answered


def idle(w, rights):
	yield
	time.sleep(0.3)


def creating(w, rights):
	w.post('clusters', {'name': 'c1', **shape(3)}, 201)
	yield
	w.place.wait(w.path + 'clusters/c1')
	ok(w.server.delete(w.path + 'clusters/c1'), 202)
	w.place.wait(w.path + 'clusters/c1', None)


def updating(w, rights):
	w.change(replicationSpecs=shape(3, 'M20')['replicationSpecs'])
	assert w.get('clusters/c0')['stateName'] == 'UPDATING'
	yield


def paused(w, rights):
	w.change(paused=True)
	w.place.wait(w.path + 'clusters/c0')
	yield
	assert answered(rights) == {}, 'no node runs, so there is nothing to wait for'
	w.change(paused=False)


def pausing(w, rights):
	w.change(paused=True)
	yield
	w.place.wait(w.path + 'clusters/c0')
	w.change(paused=False)


def resuming(w, rights):
	w.change(paused=True)
	w.place.wait(w.path + 'clusters/c0')
	w.change(paused=False)
	yield


def answered(rights):
	return {r.kind: r.answer.text for r in rights if r.answer.status_code >= 300}


def repairing(w, rights):
	"""A node shall come for which there is no place."""
	blocked = w.data(w.primary()[:-1] + '3').parent
	blocked.touch()
	w.change(replicationSpecs=shape(5, 'M20')['replicationSpecs'])
	w.place.wait(w.path + 'clusters/c0', 'REPAIRING')
	yield
	assert answered(rights) == {}, 'all nodes run, and can be told'
	blocked.unlink()
	w.change(replicationSpecs=shape(3, 'M20')['replicationSpecs'])


def node_down(w, rights):
	"""A standby that does not come up again until it is let: it has all that has happened since to replay."""
	node = w.standby()
	os.chmod(w.data(node), 0)
	w.kill(node)
	at = next(n for n in w.book()['nodes'] if n['name'] == node)
	until(lambda: not login(at, 'boss', database='postgres'), what='the end of ' + node)
	yield
	assert answered(rights) == {}, 'the others can be told'
	with contextlib.closing(psycopg2.connect(host=next(n for n in w.book()['nodes'] if n['name'] == w.primary())['address'],
						 port=at['port'], user='boss', password=PASSWORD, dbname='shop')) as c:
		c.cursor().execute('create table much as select n from generate_series(1, 300000) n')
		c.commit()
	os.chmod(w.data(node), 0o700)


def killed(w, rights):
	"""With the answers of some under way, and with databases that end while nobody looks after them."""
	yield 1
	w.place.server.kill()
	for node in (w.standby(), w.primary()):
		w.kill(node)
	time.sleep(0.2)
	w.place.start()


def failover(w, rights):
	w.kill(w.primary())
	yield


@pytest.fixture(scope='module')
def world(start_place, tmp_path_factory):
	folder = tmp_path_factory.mktemp('revocation')
	config = folder / 'limits.conf'
	config.write_text('limit.* = 1000000/1000000\n')
	return World(start_place('--config', config), folder)


def callers(server):
	"""Credentials of the API: (how each is taken away, how it is tried)."""
	p = People(server)
	key, by_key = p.key()
	account, by_account = p.account()
	holder, by_token = p.account()
	q = People(server)
	token = by_token.session.auth.token
	return [(lambda: p.api.delete(p.keys + '/' + key['id']), lambda: by_key.get('/orgs')),
		(lambda: p.api.delete(p.accounts + '/' + account['clientId']), lambda: by_account.get('/orgs')),
		(lambda: server.anonymous.request('POST', '/api/oauth/revoke', data={'token': token},
						  auth=(holder['clientId'], holder['secrets'][0]['secret'])), lambda: by_token.get('/orgs')),
		(lambda: p.api.delete('/orgs/%s/teams/%s/users/%s' % (p.org, p.team, p.user['id'])), lambda: p.user_api.get(p.project)),
		(lambda: q.api.delete('/orgs/%s/users/%s' % (q.org, q.user['id'])), lambda: q.user_api.get('/orgs/' + q.org))]


People.keys = property(lambda self: '/orgs/%s/apiKeys' % self.org)
People.accounts = property(lambda self: '/orgs/%s/serviceAccounts' % self.org)


@pytest.mark.parametrize('state', STATES)
def test_what_is_taken_away_is_gone_with_the_answer(world, state):
	w, over = world, threading.Event()
	rights = [Right(w, kind, state) for kind in KINDS]
	primary = next(n for n in w.book()['nodes'] if n['name'] == w.primary())
	until(lambda: all(r.works(primary) for r in rights), what='something to take away')
	calls = callers(w.server)
	course = globals()[state.replace('-', '_')](w, rights)
	enough = next(course) or len(rights)
	threads = [threading.Thread(target=r.run, args=(over,)) for r in rights]
	for t in threads:
		t.start()
	for take, use in calls:
		assert take().status_code < 300 and use().status_code in (401, 403)
	until(lambda: sum(r.answered.is_set() for r in rights) >= enough, what='the answers')
	next(course, None)
	w.whole()
	over.set()
	for t in threads:
		t.join()
	for _, use in calls:  # also after a crash
		again = use().status_code if state != 'killed' else 401
		assert again in (401, 403)
	assert {r.kind: r.misused[:3] for r in rights if r.misused} == {}
	for r in rights:
		if r.answer is not None and r.answer.status_code >= 300:
			refused(r.answer, 503, 'ACCESS_NOT_IN_FORCE')
	assert state in ('creating', 'updating', 'resuming', 'pausing', 'failover', 'killed') or all(r.tries for r in rights)
	# In the end all is in force: what was not answered with a success, too.
	if state != 'killed':
		until(lambda: not any(r.works(n) for r in rights for n in w.book()['nodes']), what='the end of all rights')


def is_out(w, name):
	return not any(login(n, name) for n in w.book()['nodes'])


def patch_password(w, name):
	in_force(w.server, w.server.patch(w.path + 'databaseUsers/admin/' + name, json={
		'username': name, 'databaseName': 'admin', 'password': OTHER, 'groupId': w.server.group, 'roles': [ROLE]}))


def test_a_standby_that_lags_takes_no_clients(world):
	"""Its replay can be held up by any reader."""
	w, node = world, world.standby()
	w.user('lag-user')
	at = next(n for n in w.book()['nodes'] if n['name'] == node)
	until(lambda: login(at, 'lag-user'), what='a user on a standby')
	w.superuser(node, 'select pg_wal_replay_pause()')
	until(lambda: w.superuser(node, 'select pg_get_wal_replay_pause_state()') == [('paused',)])
	in_force(w.server, w.server.delete(w.path + 'databaseUsers/admin/lag-user'), 204)
	assert is_out(w, 'lag-user') and not login(at, 'boss', database='postgres')
	w.superuser(node, 'select pg_wal_replay_resume()')
	until(lambda: login(at, 'boss', database='postgres'), what='the way back')
	assert is_out(w, 'lag-user')
	w.whole()


def test_a_failover_to_a_node_without_the_last_change_lets_nobody_in(world):
	w = world
	w.user('lost-user')
	standbys = [n for n in w.book()['nodes'] if n['name'] != w.primary()]
	until(lambda: all(login(n, 'lost-user') for n in standbys), what='a user on all nodes')
	for n in standbys:  # they get nothing from here on
		w.superuser(n['name'], "alter system set primary_conninfo = ''")
		w.superuser(n['name'], 'select pg_reload_conf()')
		until(lambda: w.superuser(n['name'], 'select count(*) from pg_stat_wal_receiver') == [(0,)])
	patch_password(w, 'lost-user')
	over, misused = threading.Event(), []

	def watch():
		while not over.is_set():
			misused.extend(n['name'] for n in w.book()['nodes'] if login(n, 'lost-user'))
	t = threading.Thread(target=watch)
	t.start()
	before = w.primary()
	w.kill(before)
	until(lambda: w.primary() != before, what='another primary')
	for n in standbys:
		w.superuser(n['name'], 'alter system reset primary_conninfo')
		w.superuser(n['name'], 'select pg_reload_conf()')
	w.whole()
	over.set()
	t.join()
	assert not misused, misused[:3]
	until(lambda: all(login(n, 'lost-user', OTHER) for n in w.book()['nodes']), what='the new password on all nodes')


def below(pid):
	return [int(child) for child in pathlib.Path('/proc/%d/task/%d/children' % (pid, pid)).read_text().split()]


@pytest.mark.parametrize('what', ['server', 'all'])
def test_a_primary_that_is_stopped_keeps_no_right_in_force(world, what):
	"""It was asked five times, three seconds each: it was only then that its standbys were shut, and that it was replaced."""
	w, name, primary = world, 'stopped-' + what, world.primary()
	w.user(name)
	nodes = w.book()['nodes']
	until(lambda: all(login(n, name) for n in nodes), what='a user on all nodes')
	sessions = {n['name']: psycopg2.connect(host=n['address'], port=n['port'], user=name, password=PASSWORD, dbname='shop', sslmode='require') for n in nodes}
	pid = int((w.data(primary) / 'postmaster.pid').read_text().split()[0])
	stopped = [pid] + (below(pid) if what == 'all' else [])
	for one in stopped:
		os.kill(one, signal.SIGSTOP)
	try:
		answer = w.server.delete(w.path + 'databaseUsers/admin/' + name)
		for n in nodes:
			if answer.status_code == 204 or n['name'] != primary:
				assert not login(n, name), n['name']
				with pytest.raises(psycopg2.Error):
					sessions[n['name']].cursor().execute('select 1')
	finally:
		for one in stopped:
			with contextlib.suppress(OSError):
				os.kill(one, signal.SIGCONT)
	in_force(w.server, answer, 204)
	assert is_out(w, name)
	w.whole()
