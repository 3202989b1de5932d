"""Several nodes that share a PostgreSQL: one state for all, and what happens when a node, the store or the network between
them goes away."""
import os, shutil, signal, socket, ssl, subprocess, threading, time

import pytest

import client, networks
from networks import ip
from nodes import Caller, Cutter, Load, Nodes, call

RECOVERY = 5  # seconds
pytestmark = [pytest.mark.skipif(not shutil.which('haproxy'), reason='haproxy is not installed'),
	      pytest.mark.filterwarnings('ignore:Unverified HTTPS request')]


@pytest.fixture
def nodes():
	made = Nodes().start()
	yield made
	made.close()


@pytest.fixture(scope='module')
def unharmed():
	"""For those who end nothing."""
	made = Nodes().start()
	yield made
	made.close()


def recovers(nodes):
	"""How long it takes until every node that runs reads and writes again."""
	start = time.monotonic()
	for i, n in enumerate(nodes.nodes):
		if n and not n.ended:
			nodes.until(lambda: nodes.caller(i).get('/groups').status_code == 200, 60)
			nodes.until(lambda: nodes.caller(i).post('/groups', json={'name': client.unique('after'),
						'orgId': nodes.org}).status_code == 200, 60)
	return time.monotonic() - start


def kept(nodes, promised, round_):
	"""The promised time is kept, by one of a few rounds at the latest. A machine that is busy with other things gets what the
	calls by which it is measured need on it anyway."""
	took = []
	for _ in range(4):
		seconds = round_()
		took.append((seconds, recovers(nodes)))
		if seconds < promised or (len(took) > 1 and seconds < promised + 3 * took[-1][1]):
			return
	raise AssertionError('longer than %d s, and with nothing wrong: %s' % (promised, took))


def test_one_bootstrap():
	"""Two nodes that start at once on an empty store make one first organization."""
	nodes = Nodes(2)
	try:
		folder = nodes.home / 'n0'
		nodes.start_node(0)
		nodes.nodes[0].stop()
		nodes.db.sql('DROP SCHEMA steward CASCADE')
		for f in ('bootstrap.json', 'node.id'):
			os.unlink(folder / f)
		shutil.copytree(folder, nodes.home / 'n1')
		processes = [subprocess.Popen([client.binary(), 'serve', '--data', str(nodes.home / name), '--listen', '127.0.0.1:0',
					       '--store', nodes.db.url(), '--engine', 'simulated'], stdout=subprocess.PIPE,
					      stderr=subprocess.DEVNULL, text=True) for name in ('n0', 'n1')]
		try:
			for p in processes:
				assert any(line.startswith('steward: ready') for line in p.stdout), 'a node did not start'
		finally:
			for p in processes:
				p.kill()
				p.wait()
				p.stdout.close()
		assert nodes.db.sql("SELECT count(*) FROM steward.doc WHERE kind = 'org'") == '1'
		assert sum((nodes.home / n / 'bootstrap.json').exists() for n in ('n0', 'n1')) == 1
	finally:
		nodes.close()


def test_one_state(unharmed):
	"""What one node has written the next one shows at once; names are unique over all of them; a revoked credential is
	refused everywhere."""
	nodes = unharmed
	for i in range(12):
		made = client.ok(nodes.caller(i % 3).post('/groups', json={'name': 'p%d' % i, 'orgId': nodes.org}))
		for k in range(3):
			client.ok(nodes.caller(k).get('/groups/' + made['id']))
		client.refused(nodes.caller((i + 1) % 3).post('/groups', json={'name': 'p%d' % i, 'orgId': nodes.org}), 409)

	def revoke():
		account = client.ok(nodes.caller(0).post('/orgs/%s/serviceAccounts' % nodes.org, json={'name': client.unique(),
				'description': 'x', 'roles': ['ORG_OWNER'], 'secretExpiresAfterHours': 24}), 201)
		token = call('POST', 'https://%s/api/oauth/token' % nodes.addresses[1], data={'grant_type': 'client_credentials'},
				auth=(account['clientId'], account['secrets'][0]['secret']), timeout=60).json()['access_token']
		callers = [Caller('https://' + a, token) for a in nodes.addresses]
		for c in callers:
			for _ in range(20):  # every thread remembers it
				client.ok(c.get('/groups'))
		assert nodes.caller(2).delete('/orgs/%s/serviceAccounts/%s' % (nodes.org, account['clientId'])).status_code == 204
		revoked = time.monotonic()
		assert callers[2].get('/groups').status_code == 401, 'at once on the node that revoked it'
		for c in callers[:2]:
			nodes.until(lambda: c.get('/groups').status_code == 401, 30)
		took = time.monotonic() - revoked
		for c in callers:
			for _ in range(20):
				assert c.get('/groups').status_code == 401
		return took
	kept(nodes, 1, revoke)


def test_the_caller_behind_the_proxy(unharmed):
	nodes = unharmed
	made = client.ok(nodes.caller().post('/groups', json={'name': 'far', 'orgId': nodes.org}))
	event, = client.ok(nodes.caller(0).get('/groups/%s/events?eventType=GROUP_CREATED' % made['id']))['results']
	assert event['remoteAddress'] == '127.0.0.1'  # and not the proxy's


def test_unique_names_at_once(unharmed):
	"""Of simultaneous creations with one name, on all nodes, one succeeds."""
	nodes = unharmed
	for n in range(5):
		answers, name = [], client.unique('same')

		def create(i):
			answers.append(nodes.caller(i % 3).post('/groups', json={'name': name, 'orgId': nodes.org}).status_code)

		threads = [threading.Thread(target=create, args=(i,)) for i in range(9)]
		[t.start() for t in threads]
		[t.join() for t in threads]
		assert sorted(answers) == [200] + [409] * 8, answers


def test_node_killed(nodes):
	load = Load(nodes)

	def killed():
		for i in (1, 2):
			time.sleep(1.5)
			nodes.nodes[i].kill()
			time.sleep(1.5)
			nodes.start_node(i)
		return recovers(nodes)
	kept(nodes, RECOVERY, killed)
	load.stop()
	load.verify()
	assert client.cli('check', nodes.db.url()).returncode == 0


def test_nobody_is_cut_off():
	"""Who calls while the node ends or hangs is answered, by the proxy if by nobody else: also who is still sending then, and
	who is being connected when the node is left out."""
	nodes = Nodes(1)
	try:
		node = nodes.start().nodes[0]
		token, answers = nodes.kept(), []
		node.signal(signal.SIGSTOP)
		threads = []
		for _ in range(14):  # until two checks have waited for 2 s each, and a little longer
			threads.append(threading.Thread(target=lambda: answers.append(nodes.caller().get('/groups').status_code)))
			threads[-1].start()
			time.sleep(0.4)
		for t in threads:
			t.join()
		node.signal(signal.SIGCONT)
		assert len(answers) == 14 and set(answers) <= {200, 503}, answers
		nodes.until(lambda: nodes.caller().get('/groups').status_code == 200, 60)
		context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
		context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
		with context.wrap_socket(socket.create_connection(('127.0.0.1', nodes.front), timeout=60)) as s:
			s.sendall(('POST %s/groups HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n'
				   'Connection: close\r\nContent-Length: 19\r\n\r\n' % (client.BASE, token)).encode())
			time.sleep(0.5)
			node.signal(signal.SIGSTOP)
			s.sendall(b'{"name":')  # if it comes to the node, it lies there unread: its end is a reset then
			time.sleep(0.5)
			node.kill()
			time.sleep(1.5)  # it is left out by then
			s.sendall(b' "the end"}')
			assert s.recv(100)[:13] in (b'HTTP/1.1 503 ', b'HTTP/1.1 408 ')  # on a slow machine it took too long to come
	finally:
		nodes.close()


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGQUIT], ids=['restarted', 'crashed'])
def test_store_restarted(nodes, how):
	load = Load(nodes)

	def restarted():
		time.sleep(1.5)
		nodes.db.stop(how)
		time.sleep(0.7)
		nodes.db.start()
		return recovers(nodes)
	for _ in range(2):
		kept(nodes, RECOVERY, restarted)
	load.stop()
	load.verify()
	assert client.cli('check', nodes.db.url()).returncode == 0


def test_connections_cut():
	"""Connections that go at any moment, in the middle of a commit too: each batch is there once, or run again."""
	nodes = Nodes()
	cutter = Cutter(nodes.db.port)
	nodes.url_of = lambda i: nodes.db.url().replace(':%d/' % nodes.db.port, ':%d/' % cutter.port)
	try:
		nodes.start()
		load = Load(nodes, threads=6)
		cutter.before, cutter.after = 0.02, 0.1
		start, words = time.monotonic(), {'was kept', 'is run again'}
		while words or time.monotonic() - start < 6:
			logs = ''.join(n.stderr for n in nodes.nodes)
			words = {w for w in words if 'during a commit; the batch ' + w not in logs}
			assert time.monotonic() - start < 240, 'no commit that %s among %d cuts' % (words, cutter.cuts)
			time.sleep(0.5)
		cutter.before = cutter.after = 0
		recovers(nodes)
		load.stop()
		load.verify()
		assert client.cli('check', nodes.db.url()).returncode == 0
	finally:
		nodes.close()
		cutter.close()


@pytest.fixture
def cut_off():
	"""Nodes of which the last has a network of its own: one wire to the proxy, one to the store."""
	networks.needed()
	name = 'sw%d' % (os.getpid() % 10000)
	if not ip('netns', 'add', name, check=False):
		pytest.skip('network namespaces are not permitted here')
	nodes = None
	try:
		ip('netns', 'exec', name, 'ip', 'link', 'set', 'lo', 'up')
		for wire, net in (('c', '10.213.1'), ('s', '10.213.2')):
			ip('link', 'add', name + wire, 'type', 'veth', 'peer', 'name', 'x' + wire, 'netns', name)
			ip('addr', 'add', net + '.1/24', 'dev', name + wire)
			ip('link', 'set', name + wire, 'up')
			ip('netns', 'exec', name, 'ip', 'addr', 'add', net + '.2/24', 'dev', 'x' + wire)
			ip('netns', 'exec', name, 'ip', 'link', 'set', 'x' + wire, 'up')
		ip('addr', 'add', '10.213.1.3/24', 'dev', name + 'c')  # the proxy's
		nodes = Nodes(3, host_of=lambda i: '10.213.1.2' if i == 2 else '127.0.0.1',
			      prefix_of=lambda i: ('ip', 'netns', 'exec', name) if i == 2 else (), listen_addresses='*')
		nodes.url_of = lambda i: nodes.db.url().replace('127.0.0.1', '10.213.2.1') if i == 2 else nodes.db.url()
		nodes.wire = name + 's'
		yield nodes.start()
	finally:
		if nodes:
			nodes.close()
		ip('netns', 'del', name)


def test_network_cut(cut_off):
	nodes = cut_off
	load = Load(nodes)

	def cut(seconds):
		time.sleep(1)
		ip('link', 'set', nodes.wire, 'down')
		time.sleep(seconds)
		# The others go on without it: its batch and its locks do not hold them up.
		start = time.monotonic()
		for i in range(2):
			client.ok(nodes.caller(i).post('/groups', json={'name': client.unique('others'), 'orgId': nodes.org}))
		others = time.monotonic() - start
		ip('link', 'set', nodes.wire, 'up')
		return max(others, recovers(nodes))
	for seconds in (1.5, 6):
		kept(nodes, RECOVERY, lambda: cut(seconds))
	load.stop()
	load.verify()
	assert client.cli('check', nodes.db.url()).returncode == 0
