"""Private endpoints with real databases: the accepted consumer gets there by the private string, with the certificate verified
by name; nobody else does, and after the endpoint's end nobody at all. In network namespaces, or, where those are out of
reach, from loopback addresses."""
import contextlib
import os
import signal
import socket
import subprocess
import threading

import pytest

import networks
from client import cli, is_late, metric, ok, refused
from databases import shape, until
from place import Elsewhere, psql

USER, PASSWORD = 'app', 'correct horse 4 battery'
AWS, AZURE = 'vpce-0123456789abcdef0', '/subscriptions/12345678-1234-4234-8234-123456789012/resourceGroups/g/providers/' \
	'Microsoft.Network/privateEndpoints/mine'


class Namespaces:
	"""Two consumers, each a network of its own; the relay has an address of the wire between them."""

	def __init__(self):
		self.net = networks.Network(2)
		self.relay, self.consumers = self.net.proxy, [self.net.address(0), self.net.address(1)]

	def psql(self, i, string, statement):
		return psql(string, statement, USER, PASSWORD, prefix=self.net.inside(i))

	def session(self, i, string):
		return subprocess.Popen([*self.net.inside(i), 'psql', '-XAtqw', '-d', string], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
			stderr=subprocess.STDOUT, text=True, env={'PATH': '/usr/bin:/bin', 'PGUSER': USER, 'PGPASSWORD': PASSWORD, 'HOME': '/nonexistent'})

	def close(self):
		self.net.close()


class Loopback:
	relay, consumers = '127.72.0.1', ['127.72.1.1', '127.72.1.2']

	def psql(self, i, string, statement):
		with Elsewhere(self.consumers[i], string) as way:
			return psql(way.string, statement, USER, PASSWORD)

	def session(self, i, string):
		self.way = Elsewhere(self.consumers[i], string)
		return subprocess.Popen(['psql', '-XAtqw', '-d', self.way.string], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
			stderr=subprocess.STDOUT, text=True, env={'PATH': '/usr/bin:/bin', 'PGUSER': USER, 'PGPASSWORD': PASSWORD, 'HOME': '/nonexistent'})

	def close(self):
		pass


@pytest.fixture(scope='module')
def wires():
	try:
		made = Namespaces()
	except pytest.skip.Exception:
		made = Loopback()
	yield made
	made.close()


class World:
	def __init__(self, place, wires):
		self.place, self.server, self.wires = place, place.server, wires
		self.cluster = self.path('clusters/shop')
		ok(self.server.post(self.path('clusters'), json={'name': 'shop', **shape(3)}), 201)
		ok(self.server.post(self.path('databaseUsers'), json={
			'username': USER, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.server.group,
			'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
		self.service = ok(self.server.post(self.path('privateEndpoint/endpointService'), json={'providerName': 'AWS', 'region': 'US_EAST_1'}))['id']
		self.endpoints = self.path('privateEndpoint/AWS/endpointService/%s/endpoint' % self.service)
		place.wait(self.cluster)
		until(lambda: ok(self.server.get(self.endpoints.rsplit('/', 1)[0]))['status'] == 'WAITING_FOR_USER')
		self.ca = place.root / 'project.pem'
		self.ca.write_bytes(self.server.anonymous.get('%s/ca/%s' % (self.server.base_url, self.server.group)).content)

	def path(self, what):
		return '/groups/%s/%s' % (self.server.group, what)

	def strings(self):
		return ok(self.server.get(self.cluster))['connectionStrings']

	def accept(self, *consumers, name=AWS):
		cli('accept-endpoint', '--data', self.server.data_dir, name, '--address', ','.join(consumers))

	def string(self):
		"""The private one, as the API gives it, with the certificate to be verified by its name."""
		plain = until(lambda: (self.strings().get('privateEndpoint') or [{}])[0].get('connectionString'), what='a private string')
		assert plain.count('sslmode=require') == 1
		return plain.replace('sslmode=require', 'sslmode=verify-full&sslrootcert=%s' % self.ca)

	def gets(self, i, string):
		worked, said = self.wires.psql(i, string, 'select 42')
		assert worked and said == '42', said

	def gets_not(self, i, string):
		worked, said = self.wires.psql(i, string, 'select 42')
		assert not worked and '42' not in said.split('\n'), said
		return said


@pytest.fixture(scope='module')
def world(start_place, wires):
	return World(start_place('--private-endpoints', '%s:1024-1100' % wires.relay), wires)


def primary(world):
	"""None while there is none."""
	found = [p['hostname'] for p in ok(world.server.get(world.path('processes')))['results'] if p['typeName'] == 'REPLICA_PRIMARY']
	return found[0] if found else None


def test_only_who_is_accepted(world):
	"""An endpoint at AWS waits for the operator; who is accepted gets there, and nobody else."""
	ok(world.server.post(world.endpoints, json={'id': AWS}))
	endpoint = ok(world.server.get(world.endpoints + '/' + AWS, headers={'X-Steward-Whole': 'true'}))
	assert endpoint['connectionStatus'] == 'PENDING_ACCEPTANCE'
	assert world.strings()['privateEndpoint'] == []
	world.accept(world.wires.consumers[0])

	def available():
		shown = ok(world.server.get(world.endpoints + '/' + AWS, headers={'X-Steward-Whole': 'true'}))['connectionStatus']
		return shown == 'AVAILABLE'
	until(available)
	assert world.strings()['privateEndpoint'], 'available, and nobody says how to get there'
	string = world.string()
	assert ':1024/' in string and 'hostaddr=' + world.wires.relay in string and '://pl-0-us-east-1.' in string
	world.gets(0, string)
	said = world.gets_not(1, string)
	assert 'pg_hba' not in said, 'it does not even get to the database'
	direct = world.strings()['standard']
	assert not psql(direct, 'select 42', USER, PASSWORD)[0], 'the access list holds for all others'
	worked, said = world.wires.psql(0, string, "select host(client_addr) || ' ' || pg_is_in_recovery() from pg_stat_activity where pid = pg_backend_pid()")
	assert worked and said == '%s false' % world.wires.relay, 'the databases see the relay, and it leads to the primary: ' + said
	assert metric(world.server, 'steward_relay_refused_total') >= 1 and metric(world.server, 'steward_relays') == 1


def test_a_failover_is_a_reconnect(world):
	string, before = world.string(), until(lambda: primary(world))
	session = world.wires.session(0, string)
	session.stdin.write('select 1;\n')
	session.stdin.flush()
	assert session.stdout.readline().strip() == '1'
	ok(world.server.post(world.cluster + '/restartPrimaries'))
	until(lambda: primary(world) not in (None, before), seconds=120, what='another primary')
	until(lambda: world.wires.psql(0, string, 'create table if not exists t(i int); select 42') == (True, '42'), seconds=120, what='a reconnect')
	session.stdin.write('select 2;\n')
	said = session.communicate()[0]
	assert '2' not in said.split(), said
	world.place.wait(world.cluster)


def test_a_restart_opens_it_again(world):
	string = world.string()
	world.server.stop()
	world.server = world.place.start()
	until(lambda: world.wires.psql(0, string, 'select 42') == (True, '42'), seconds=120, what='the relay after a restart')
	world.gets_not(1, string)
	assert world.string() == string


def test_other_consumers_take_the_place(world):
	string = world.string()
	world.accept(world.wires.consumers[1])
	until(lambda: world.wires.psql(1, string, 'select 42') == (True, '42'), what='the other consumer')
	world.gets_not(0, string)
	world.accept(world.wires.consumers[0])
	until(lambda: world.wires.psql(0, string, 'select 42') == (True, '42'), what='the first consumer again')


def test_a_port_that_is_taken(world):
	"""It fails the service, which stays so until the port is free, although another cluster's works."""
	service = world.endpoints.rsplit('/', 1)[0]
	with socket.create_server((world.wires.relay, 1025)):
		ok(world.server.post(world.path('clusters'), json={'name': 'side', **shape(1)}), 201)
		failed = until(lambda: (lambda d: d if d['status'] == 'FAILED' else None)(ok(world.server.get(service))), seconds=120)
		assert ':1025' in failed['errorMessage']
		world.place.wait(world.path('clusters/side'))
		until(lambda: world.strings()['privateEndpoint'] == [], what='strings without it')
		assert all(ok(world.server.get(service))['status'] == 'FAILED' for _ in range(50))
	ok(world.server.patch(world.path('privateEndpoint/endpointService/' + world.service), json={'cloudProvider': 'AWS'}))
	until(lambda: ok(world.server.get(service))['status'] == 'AVAILABLE', seconds=60, what='a retry')
	world.gets(0, world.string())
	ok(world.server.delete(world.path('clusters/side')), 202)
	until(lambda: world.server.get(world.path('clusters/side')).status_code == 404, seconds=120, what='the end of the other cluster')


def standbys(world):
	"""Of each standby its server, and the process that replays the log."""
	rows = [line.split(None, 2) for line in subprocess.run(['ps', '-eo', 'pid=,ppid=,args='], capture_output=True, text=True).stdout.splitlines()]
	servers = {pid for pid, _, args in rows if str(world.server.data_dir) in args and 'postgres -D' in args}
	return [(int(parent), int(pid)) for pid, parent, args in rows if parent in servers and ': startup' in args]


@contextlib.contextmanager
def hanging(world, servers):
	"""The standbys do nothing, nor does what is started in their place: neither their servers, where these are asked for, nor the replay."""
	over, stopped = threading.Event(), set()

	def stop(pid):
		with contextlib.suppress(ProcessLookupError):  # the service ends a server that hangs
			os.kill(pid, signal.SIGSTOP)
			stopped.add(pid)

	def keep():
		while not over.wait(0.2):
			for _, replay in standbys(world):
				stop(replay)
	found = until(lambda: (lambda f: f if len(f) == 2 else None)(standbys(world)), what='two standbys')
	for pid in [pid for pair in found for pid in pair[0 if servers else 1:]]:
		stop(pid)
	thread = threading.Thread(target=keep)
	thread.start()
	try:
		yield
	finally:
		over.set()
		thread.join()
		for pid in stopped:
			with contextlib.suppress(ProcessLookupError):
				os.kill(pid, signal.SIGCONT)


def ends(session):
	session.stdin.write('select 2;\n')
	said = session.communicate()[0]
	assert '2' not in said.split(), said


def patched(world):
	return ok(world.server.get(world.path('events'), params={'eventType': 'INTERFACE_ENDPOINT_PATCHED'}))['totalCount']


@pytest.mark.parametrize('servers', [True, False], ids=['servers', 'replay'])
def test_who_is_out_does_not_wait_for_a_node_that_hangs(world, servers):
	"""A deletion comes while the standbys hang, and is in force while they do: the jobs for the change before it, the starts of
	other servers in their place and what waits for their replay keep nobody in."""
	string, before = world.string(), patched(world)
	session = world.wires.session(0, string)
	session.stdin.write('select 1;\n')
	session.stdin.flush()
	assert session.stdout.readline().strip() == '1'

	def told():
		"""Whatever the cluster's own job is about."""
		until(lambda: not world.server.rows("SELECT 1 FROM job WHERE kind = 'access'"), seconds=25, what='what was saved to be in force')
	with hanging(world, servers):
		session.stdin.write('set synchronous_commit = local; create table if not exists behind(i int); insert into behind values (1);\n')
		session.stdin.flush()
		world.accept(*world.wires.consumers)
		until(lambda: patched(world) > before)
		told()
		answer = world.server.delete(world.endpoints + '/' + AWS)
		ends(session)
		assert answer.status_code == 204 or is_late(answer), answer.text
		told()  # a busy machine may be late
		for i in range(2):
			world.gets_not(i, string)
	until(lambda: world.server.get(world.endpoints + '/' + AWS).status_code == 404, seconds=60)
	ok(world.server.post(world.endpoints, json={'id': AWS}))
	world.accept(world.wires.consumers[0])
	until(lambda: world.wires.psql(0, string, 'select 42') == (True, '42'), seconds=60, what='another endpoint in its place')


def test_after_the_end_nobody(world):
	"""When DELETE has answered, what was open has ended, and nothing new gets in."""
	string = world.string()
	session = world.wires.session(0, string)
	session.stdin.write('select 1;\n')
	session.stdin.flush()
	assert session.stdout.readline().strip() == '1'
	ok(world.server.delete(world.endpoints + '/' + AWS), 204)
	ends(session)
	for i in range(2):
		world.gets_not(i, string)
	until(lambda: world.strings()['privateEndpoint'] == [], what='strings without it')
	until(lambda: world.server.get(world.endpoints + '/' + AWS).status_code == 404)
	ok(world.server.delete(world.endpoints.rsplit('/', 1)[0]), 204)
	assert metric(world.server, 'steward_relays') == 0


def test_an_address_that_the_tenant_says(world):
	"""At Azure the consumer's address comes with the endpoint, and nobody else has to be asked."""
	service = ok(world.server.post(world.path('privateEndpoint/endpointService'), json={'providerName': 'AZURE', 'region': 'US_EAST_2'}))['id']
	path = world.path('privateEndpoint/AZURE/endpointService/' + service)
	until(lambda: ok(world.server.get(path))['status'] == 'WAITING_FOR_USER')
	ok(world.server.post(path + '/endpoint', json={'id': AZURE, 'privateEndpointIPAddress': world.wires.consumers[0]}))
	until(lambda: ok(world.server.get(path))['status'] == 'AVAILABLE')
	assert world.strings()['privateEndpoint'] == [], 'the cluster is in another region'


def test_without_an_address_it_is_refused(world):
	world.server.stop()
	world.place.args = ()
	world.server = world.place.start()
	why = refused(world.server.post(world.path('privateEndpoint/endpointService'), json={'providerName': 'AWS', 'region': 'EU_WEST_1'}),
		400, 'PRIVATE_ENDPOINTS_NOT_CONFIGURED')
	assert '--private-endpoints' in why['detail']
