"""Hosts with a network of their own each (networks.py): what test_hosts.py holds on one loopback holds between machines, the
databases are reached from other machines at the addresses that the API tells, and a cut between hosts is told and mended.
The tests that are imported run here as they are, on these hosts."""
import gzip, os, shutil, signal, subprocess, time

import pytest

import client, database, databases, networks
from nodes import unverified
from test_hosts import (LOG_MB, REGIONS, Hosts, away, counted, resident, swell, test_attacks_on_the_way_between,
			test_every_get_is_the_same, test_identity_and_limits)

pytestmark = [pytest.mark.skipif(not shutil.which('haproxy'), reason='haproxy is not installed'),
	      pytest.mark.skipif(not shutil.which('redis-server'), reason='Redis is not installed'),
	      pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed'),
	      pytest.mark.filterwarnings('ignore:Unverified HTTPS request')]


class Machines(Hosts):
	def __init__(self, network):
		self.network, self.store_address, self.seen_as = network, network.service, network.service
		self.folder = network.folder
		super().__init__(3, host_of=network.address, prefix_of=network.inside, db=database.Database(host=network.service),
				 sources={network.address(i): network.proxy for i in range(3)})

	def populate(self):
		super().populate()
		client.ok(self.caller(2).post('/groups/%s/databaseUsers' % self.group, json={
			'username': databases.USER, 'password': databases.PASSWORD, 'databaseName': 'admin', 'groupId': self.group,
			'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
		self.allow(0, 1)
		self.paths = ['/groups/%s/processes/%s' % (self.group, self.process_of('c%d' % i)['id']) for i in range(3)]
		return self

	def answers_all(self):
		"""Every host, and the proxy, answers for the clusters of all."""
		return all(self.shows_all(i) and all(self.caller(i).get(p).status_code == 200 for p in self.paths) for i in (0, 1, 2, None))

	def servers(self, i):
		"""The databases on a host: process ids."""
		return {int(f.read_text().split()[0]) for f in (self.home / ('n%d' % i) / 'engine').glob('*/*/data/postmaster.pid')}

	def psql(self, i, name, sql):
		"""On host i, with the string that the API has for a cluster."""
		strings = client.ok(self.caller(0).get('/groups/%s/clusters/%s' % (self.group, name)))['connectionStrings']
		return subprocess.run([*self.network.inside(i), 'psql', strings['standard'], '-U', databases.USER, '-qAt', '-c', sql],
				      env={**os.environ, 'PGPASSWORD': databases.PASSWORD, 'PGCONNECT_TIMEOUT': '5'},
				      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

	def allow(self, *hosts):
		"""To the databases, from these hosts."""
		client.ok(self.caller(0).post('/groups/%s/accessList' % self.group,
					      json=[{'ipAddress': self.network.address(i)} for i in hosts]))


@pytest.fixture(scope='module')
def hosts():
	network = networks.Network(3)
	made = None
	try:
		made = Machines(network)
		made.start()
		made.populate()
		yield made
	finally:
		try:
			if made:
				made.close()
		finally:
			network.close()


def test_each_has_a_network_of_its_own(hosts):
	spaces = [hosts.network.inode(i) for i in range(3)]
	assert len({*spaces, os.stat('/proc/self/ns/net').st_ino}) == 4
	listed = hosts.listed()
	for i in range(3):
		assert listed['h%d' % i]['address'].startswith(hosts.network.address(i) + ':')
		servers = hosts.servers(i)
		assert len(servers) == 3
		assert {os.stat('/proc/%d/ns/net' % p).st_ino for p in {hosts.nodes[i].pid, *servers}} == {spaces[i]}


def test_behind_the_proxy(hosts):
	"""Calls for one cluster, spread over all hosts by haproxy, are answered the same."""
	path, before = hosts.paths[1], [counted(hosts, i) for i in range(3)]
	answers = [client.bare(client.ok(hosts.caller().get(path))) for _ in range(9)]
	for a in answers:
		a.pop('lastPing', None)
	assert all(a == answers[0] for a in answers)
	hosts.until(lambda: sum(counted(hosts, i) - before[i] for i in range(3)) == 9, 60)
	assert all(counted(hosts, i) > before[i] for i in range(3)), 'each had its part'


def test_databases_from_another_host(hosts):
	"""Each cluster is reached where the API says, from hosts that its access list has and from no other."""
	address = hosts.network.address
	asked = 'SELECT host(inet_server_addr()), host(inet_client_addr()), pg_is_in_recovery()'
	for i in range(3):
		hosts.until(lambda: hosts.psql(1, 'c%d' % i, 'SELECT 1').returncode == 0, 60)
		assert hosts.psql(1, 'c%d' % i, asked).stdout.strip() == '%s|%s|f' % (address(i), address(1))
	refused = hosts.psql(2, 'c0', asked)
	assert refused.returncode != 0 and 'pg_hba' in refused.stderr and address(2) in refused.stderr, refused.stderr
	hosts.allow(2)
	hosts.until(lambda: hosts.psql(2, 'c0', asked).stdout.strip() == '%s|%s|f' % (address(0), address(2)), 60)
	for i in range(3):
		hosts.until(lambda: hosts.state('c%d' % i) == 'IDLE', 60)


def test_a_cut_between_two_hosts(hosts):
	"""h0 and h2 do not reach each other, in silence, and both reach the store and h1: each names the other, h1 answers for
	both, and nobody counts as gone."""
	paths, start = hosts.paths, time.monotonic()
	hosts.network.apart((0, 2), True)
	try:
		for _ in range(2):
			away(hosts, paths[2], 'h2')
			away(hosts, paths[0], 'h0', asked=2)
		hosts.shows_others('h2')
		for i in range(3):
			client.ok(hosts.caller(i).get(paths[1]))
			client.ok(hosts.caller(1).get(paths[i]))
			client.ok(hosts.caller(i).get('/groups/%s/clusters/c2' % hosts.group))  # what the store knows
		time.sleep(max(0, start + 6 - time.monotonic()))  # a host that the store does not hear for 5 s is away
		assert all(h['alive'] for h in hosts.listed().values())
		away(hosts, paths[2], 'h2')
	finally:
		hosts.network.apart((0, 2), False)
	hosts.until(hosts.answers_all, 60)


def test_a_host_without_its_network(hosts):
	"""The wire of h2 is out: the others say so and go on, also behind the proxy; it is back with its wire, and its databases
	never stopped."""
	path, servers = hosts.paths[2], hosts.servers(2)
	name = client.unique('cut')
	hosts.network.plug(2, False)
	try:
		away(hosts, path, 'h2')
		hosts.until(lambda: all(hosts.caller().get('/groups/%s/clusters/c2' % hosts.group).status_code == 200
					for _ in range(6)), 60)
		made = client.ok(hosts.caller().post('/groups', json={'name': name, 'orgId': hosts.org}))
		hosts.until(lambda: not hosts.listed()['h2']['alive'], 30)
		away(hosts, path, 'h2')
		doc = client.refused(hosts.create('none', REGIONS[2], i=0), 409, 'NO_HOST_HAS_ROOM')
		assert 'h2 is away' in doc['detail'], doc
		assert hosts.psql(0, 'c1', 'SELECT 1').returncode == 0
		assert hosts.servers(2) == servers
		# An operator takes it for lost. It is not, and says so once it can, with what its clusters stand for.
		assert 'h2 has clusters (c2)' in hosts.cli('remove', 'h2', check=False).stderr
		hosts.cli('remove', 'h2', '--force')
		assert sorted(hosts.listed()) == ['h0', 'h1']
	finally:
		hosts.network.plug(2, True)
	hosts.until(hosts.answers_all, 60)
	hosts.until(lambda: hosts.listed()['h2']['clusterCount'] == 1, 60)
	assert hosts.listed()['h2']['alive'] and hosts.listed()['h2']['used']['memoryMB'] == 6144
	assert client.ok(hosts.caller(2).get('/groups/' + made['id']))['name'] == name
	assert hosts.servers(2) == servers and hosts.psql(0, 'c2', 'SELECT 1').returncode == 0


def test_a_log_is_streamed_through_a_cut(hosts):
	"""A log that is larger than what may be held, of another host: neither process keeps it, and every byte arrives, although
	the two do not reach each other for a while in its middle."""
	process = hosts.process_of('c1')
	now = swell(hosts, process)
	url = 'https://%s%s/groups/%s/clusters/%s/logs/db.gz' % (hosts.addresses[0], client.BASE, hosts.group, process['hostname'])
	before, most = [resident(n.pid) for n in hosts.nodes], [0] * 3
	with unverified() as s:
		r = s.get(url, headers=hosts.caller().headers, stream=True, timeout=60)
		assert r.status_code == 200, r.text
		got = [r.raw.read(1 << 20)]
		hosts.network.apart((0, 1), True)
		try:
			time.sleep(1.5)
		finally:
			hosts.network.apart((0, 1), False)
		for piece in iter(lambda: r.raw.read(1 << 20), b''):
			got.append(piece)
			most = [max(m, resident(n.pid) - b) for m, n, b in zip(most, hosts.nodes, before)]
	assert 'asan' in client.binary() or 'tsan' in client.binary() or max(most) < 16 << 20, most
	text = gzip.decompress(b''.join(got))
	assert len(text) > LOG_MB << 20 and text.count(b'"timestamp":"%s' % now.encode()) >= LOG_MB


def test_a_host_that_is_stopped_or_killed(hosts):
	"""It is named within two seconds, its databases serve other hosts all the while, and it is back with its process."""
	servers = hosts.servers(1)
	for stop in (signal.SIGSTOP, signal.SIGKILL):
		os.kill(hosts.nodes[1].pid, stop)
		try:
			away(hosts, hosts.paths[1], 'h1')
			away(hosts, hosts.paths[1], 'h1', asked=2)
			hosts.shows_others('h1')
			client.ok(hosts.caller(0).get(hosts.paths[2]))
			assert hosts.psql(0, 'c1', 'SELECT 1').returncode == 0
		finally:
			if stop == signal.SIGSTOP:
				os.kill(hosts.nodes[1].pid, signal.SIGCONT)
		if stop == signal.SIGKILL:
			hosts.nodes[1].kill()
			hosts.start_node(1)
		hosts.until(hosts.answers_all, 60)
	assert hosts.servers(1) == servers
