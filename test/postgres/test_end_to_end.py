"""From nothing to rows: a cluster of three nodes, a user and an access-list entry through the API, psql through the API's
own connection string at once, and all of it found again in events, logs and access data."""
import gzip, json, pathlib, re, socket, ssl

import pytest

from client import in_force, ok, refused
from databases import shape, until
from place import Elsewhere, psql

USER, PASSWORD, WRONG = 'app', 'correct horse 4 battery', 'wrong horse 4 battery'
HERE, STRANGER = '127.0.0.1', '127.0.0.9'
AUDITED = bool(list(pathlib.Path('/usr/lib/postgresql').glob('*/lib/pgaudit.so')))


class World:
	"""The service, its cluster, and how a client gets there."""

	def __init__(self, place):
		self.place, self.server = place, place.server
		self.cluster = self.path('clusters/shop')
		if AUDITED:
			text = json.dumps({'atype': 'authCheck', 'param.command': {'$in': ['insert', 'find']}})
			ok(self.server.patch(self.path('auditLog'), json={'enabled': True, 'auditAuthorizationSuccess': True, 'auditFilter': text}))
		ok(self.server.post(self.path('clusters'), json={'name': 'shop', **shape(3)}), 201)
		self.user(USER)
		ok(self.server.post(self.path('accessList'), json=[{'ipAddress': HERE, 'comment': 'the tests'}]))
		self.document = place.wait(self.cluster)
		self.string = self.document['connectionStrings']['standard']

	def path(self, what):
		return '/groups/%s/%s' % (self.server.group, what)

	def user(self, name):
		ok(self.server.post(self.path('databaseUsers'), json={
			'username': name, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.server.group,
			'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)

	@property
	def reading(self):
		"""The string for readers, of which a standby is the place."""
		assert self.string.count('target_session_attrs=read-write') == 1
		return self.string.replace('target_session_attrs=read-write', 'target_session_attrs=standby')

	def can(self, statement, string=None, user=USER, password=PASSWORD):
		worked, said = psql(string or self.string, statement, user, password)
		assert worked, said
		return said

	def cannot(self, why, string=None, user=USER, password=PASSWORD):
		worked, said = psql(string or self.string, 'select 1', user, password)
		assert not worked and why in said, said

	def log(self, name, *wanted):
		"""Lines of all nodes' logs that have all these texts, by host."""
		found = {}
		for host in (p['hostname'] for p in ok(self.server.get(self.path('processes')))['results']):
			r = self.server.get(self.path('clusters/%s/logs/%s.gz' % (host, name)))
			assert r.status_code == 200 and r.headers['Content-Type'].endswith('+gzip'), r.text
			lines = [json.loads(line) for line in gzip.decompress(r.content).splitlines()]
			hits = [line for line in lines if all(w in json.dumps(line) for w in wanted)]
			if hits:
				found[host] = hits
		return found

	def events(self, more=''):
		return ok(self.server.get(self.path('events?itemsPerPage=500' + more)))['results']


@pytest.fixture(scope='module')
def world(start_place):
	return World(start_place())


def test_psql_connects_at_once_and_writes(world):
	"""No wait between the first sight of IDLE and this."""
	assert world.can('create table orders(what text); insert into orders values (\'tea\'); select what from orders') == 'tea'
	assert world.can('select pg_is_in_recovery()') == 'f' and world.string.count('-shard-00-0') == 3
	world.user('second')
	assert world.can('select what from orders', user='second') == 'tea', 'when the call has returned, the user is there'


def test_a_standby_reads(world):
	until(lambda: psql(world.reading, 'select what from orders', USER, PASSWORD) == (True, 'tea'), what='the row on a standby')
	assert world.can('select pg_is_in_recovery()', world.reading) == 't'
	worked, said = psql(world.reading, 'insert into orders values (\'milk\')', USER, PASSWORD)
	assert not worked and 'read-only transaction' in said


def test_another_address_is_refused(world):
	with Elsewhere(HERE, world.string) as near:
		assert world.can('select what from orders', near.string) == 'tea', 'it is not the way that is refused'
	with Elsewhere(STRANGER, world.string) as far:
		world.cannot('no pg_hba.conf entry for host "%s"' % STRANGER, far.string)
		entry = world.path('accessList/' + STRANGER)
		refused(world.server.get(entry), 404)
		ok(world.server.post(world.path('accessList'), json=[{'ipAddress': STRANGER}]))
		until(lambda: ok(world.server.get(entry + '/status'))['STATUS'] == 'ACTIVE', what='what was saved to be in force')
		assert world.can('select what from orders', far.string) == 'tea', 'listed, it is let in at once'
		in_force(world.server, world.server.delete(entry), 204)
		world.cannot('no pg_hba.conf entry for host "%s"' % STRANGER, far.string)


def test_a_wrong_password_is_refused(world):
	world.cannot('password authentication failed', password=WRONG)
	world.cannot('password authentication failed', user='nobody')


def test_it_is_in_the_events(world):
	events = world.events()
	types = [e['eventTypeName'] for e in reversed(events)]
	# It is ready when it is: the calls after its creation do not wait for that, and on a slow machine take longer.
	for order in (['CLUSTER_CREATED', 'DB_USER_ADDED', 'NETWORK_PERMISSION_ENTRY_ADDED', 'NETWORK_PERMISSION_ENTRY_REMOVED'],
		      ['CLUSTER_CREATED', 'CLUSTER_READY', 'NETWORK_PERMISSION_ENTRY_REMOVED']):
		assert [types.index(t) for t in order] == sorted(types.index(t) for t in order), types
	users = [e for e in events if e['eventTypeName'] == 'DB_USER_ADDED']
	assert {e['dbUserUsername'] for e in users} == {USER, 'second'} and all(e['remoteAddress'] == HERE for e in users)
	entries = [e for e in events if e['eventTypeName'].startswith('NETWORK_PERMISSION_ENTRY_')]
	assert [e['whitelistEntry'] for e in reversed(entries)] == [HERE + '/32', STRANGER + '/32', STRANGER + '/32'], entries
	assert [e['eventTypeName'] for e in reversed(world.events('&clusterNames=shop'))] == ['CLUSTER_CREATED', 'CLUSTER_READY']
	assert PASSWORD not in json.dumps(events)


def test_it_is_in_the_logs(world):
	types = {p['hostname']: p['typeName'] for p in ok(world.server.get(world.path('processes')))['results']}
	assert sorted(types.values()) == ['REPLICA_PRIMARY'] + 2 * ['REPLICA_SECONDARY']
	until(lambda: {types[h] for h in world.log('db', 'connection authorized', 'user=' + USER)} == set(types.values()), what='the logins in the logs')
	until(lambda: world.log('db', 'no pg_hba.conf entry for host \\"%s\\"' % STRANGER, '"remote_host": "%s"' % STRANGER), what='the stranger')
	until(lambda: world.log('db', 'password authentication failed for user \\"%s\\"' % USER), what='the wrong password')
	assert not world.log('db', PASSWORD) and not world.log('db', WRONG)
	if AUDITED:
		writes = world.log('db-audit-log', 'insert into orders values', "'tea'")
		assert {types[h] for h in writes} == {'REPLICA_PRIMARY'} and {x['user'] for x in sum(writes.values(), [])} == {USER}
		assert 'REPLICA_SECONDARY' in {types[h] for h in world.log('db-audit-log', 'select what from orders')}


def test_logs_without_what_clients_sent(world):
	"""At once, and also of what was logged before."""
	worked, said = psql(world.string, "select 'a secret thing'::int", USER, PASSWORD)
	assert not worked and 'invalid input syntax' in said
	until(lambda: world.log('db', 'a secret thing'), 60, 'the fault in the log')
	ok(world.server.patch(world.cluster, json={'redactClientLogData': True}))
	assert not world.log('db', 'a secret thing') and world.log('db', '"message": "redacted"', '"state_code": "22P02"', USER)
	assert world.log('db', 'connection authorized', 'user=' + USER)
	ok(world.server.patch(world.cluster, json={'redactClientLogData': False}))
	assert world.log('db', 'a secret thing')


def tls12(string, ciphers):
	"""What is agreed on with the first node by a client that speaks TLS 1.2 with these ciphers; None: nothing."""
	port, address = re.search(r':(\d+)[,/]', string).group(1), re.search('hostaddr=([^,&]*)', string).group(1)
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
	context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
	context.maximum_version = ssl.TLSVersion.TLSv1_2
	context.set_ciphers(ciphers)
	with socket.create_connection((address, int(port)), timeout=10) as plain:
		plain.sendall(bytes.fromhex('0000000804d2162f'))  # PostgreSQL's question for TLS
		assert plain.recv(1) == b'S'
		try:
			with context.wrap_socket(plain) as s:
				return s.cipher()[0]
		except ssl.SSLError:
			return None


def test_chosen_ciphers_are_the_only_ones(world):
	aes128, both = 'ECDHE+AES128+AESGCM', 'ECDHE+AESGCM'
	assert 'AES128' in tls12(world.string, aes128)
	ok(world.server.patch(world.cluster + '/processArgs', json={
		'tlsCipherConfigMode': 'CUSTOM', 'customOpensslCipherConfigTls12': ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384']}))
	world.place.wait(world.cluster)
	assert tls12(world.string, aes128) is None and 'AES256' in tls12(world.string, both)
	assert world.can('select 1') == '1'
	ok(world.server.patch(world.cluster + '/processArgs', json={'tlsCipherConfigMode': 'DEFAULT'}))
	world.place.wait(world.cluster)
	assert 'AES128' in tls12(world.string, aes128)


def test_sample_tables_are_the_writers(world):
	"""Loaded, they are tables like any that a writer of the database made: read, written, altered and dropped."""
	load = ok(world.server.post(world.path('sampleDatasetLoad/shop')), 201)
	until(lambda: ok(world.server.get(world.path('sampleDatasetLoad/' + load['_id'])))['state'] == 'COMPLETED', 120, 'the load')
	for name, role in (('sampler', 'readWrite'), ('looker', 'read')):
		ok(world.server.post(world.path('databaseUsers'), json={
			'username': name, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': world.server.group,
			'roles': [{'roleName': role, 'databaseName': 'sample_shop'}]}), 201)
	string = world.string.replace('/postgres?', '/sample_shop?')
	assert string != world.string
	assert world.can('select count(*) from customers', string, 'looker') == '2000'
	worked, said = psql(string, 'alter table customers add column nick text', 'looker', PASSWORD)
	assert not worked and 'must be owner' in said
	for user in ('sampler', USER):
		world.can('insert into customers select max(id) + 1, \'New\', \'DE\', now() from customers', string, user)
		world.can('alter table customers add column %s text' % user, string, user)
		world.can('create index on orders(quantity)', string, user)
	world.can('drop table orders', string, 'sampler')
	world.can('drop table products', string)


def test_no_node_ended_meanwhile(world):
	assert 'has ended' not in world.server.stderr


def test_it_is_in_the_access_data(world):
	user = ok(world.server.get(world.path('databaseUsers/admin/' + USER)))
	assert user['roles'] == [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}] and 'password' not in user
	assert ok(world.server.get(world.path('databaseUsers')))['totalCount'] == 4
	entry, = ok(world.server.get(world.path('accessList')))['results']
	assert entry['ipAddress'] == HERE and entry['comment'] == 'the tests'
	until(lambda: ok(world.server.get(world.path('accessList/%s/status' % HERE)))['STATUS'] == 'ACTIVE', what='what was saved to be in force')
