"""Limits in a Redis that is reached with TLS: shared by nodes as without it, and by no Redis but the one that was meant."""
import contextlib, shutil, socket, threading, time

import pytest

import client, database, redis_server
from directory import Authority, openssl
from test_nodes_limits import CAPACITY, SLOW, Limited, exactly, granted

pytestmark = [pytest.mark.skipif(not shutil.which('redis-server'), reason='Redis is not installed'),
	      pytest.mark.filterwarnings('ignore:Unverified HTTPS request')]
RIGHTS = '~steward:* +eval +evalsha +script|load +select +time +hmget +hset +pexpire'.split()  # as docs/scaling.md has them
USER, PASSWORD = 'steward', 'pass word/%&?#'
ENCODED = 'pass%20word%2F%25%26%3F%23'


class TlsRedis(redis_server.Redis):
	"""Which wants a user's password on its TLS port, and a certificate where it is told to; the tests use the plain one."""

	def __init__(self, folder):
		self.ca = Authority(folder / 'ca')
		self.server = self.ca.issue('server', '/CN=redis', 'subjectAltName = IP:127.0.0.1, DNS:redis.test')
		self.client = self.ca.issue('client', '/CN=steward')
		self.tls_port = database.free_port()
		super().__init__(options=['--tls-port', self.tls_port, '--tls-cert-file', self.server[0], '--tls-key-file', self.server[1],
					  '--tls-ca-cert-file', self.ca.file, '--tls-auth-clients', 'no'])

	def start(self):
		super().start()
		self.say('ACL', 'SETUSER', USER, 'on', '>' + PASSWORD, *RIGHTS)

	def tls_url(self, credentials=USER + ':' + ENCODED, host='127.0.0.1'):
		return 'rediss://%s%s:%d/1' % (credentials and credentials + '@', host, self.tls_port)


@pytest.fixture(scope='module')
def tls_redis(tmp_path_factory):
	with contextlib.closing(TlsRedis(tmp_path_factory.mktemp('redis'))) as made:
		yield made


@pytest.fixture
def redis(tls_redis):
	"""As it was made, whatever the test before has set, and wherever that ended."""
	tls_redis.say('CONFIG', 'SET', 'tls-auth-clients', 'no', 'tls-cert-file', str(tls_redis.server[0]),
		      'tls-key-file', str(tls_redis.server[1]))
	return tls_redis


class Nodes(Limited):
	"""Whose connections to Redis are what `options` say; no proxy is in between."""

	def __init__(self, redis, count, *options):
		self.options, self.own = options, redis
		super().__init__(count)
		self.redis.close()  # the other one

	def start_node(self, i, *args):
		return super(Limited, self).start_node(i, *self.options, *args)


def all_take_from_one_bucket(nodes, redis):
	"""On a machine that is busy a Redis may be slower than nodes wait for it: then it is tried again."""
	sessions = [nodes.session(i) for i in range(2)]
	away = lambda: sum(n.stderr.count('redis is away') for n in nodes.nodes)
	for attempt in range(5):
		nodes.until(lambda: all(nodes.shares(i) is True for i in range(2)), SLOW)
		redis.say('FLUSHALL')
		before, began = away(), time.monotonic()
		count = granted([nodes.take(sessions[k % 2]) for k in range(2 * CAPACITY)])
		if away() == before:
			return exactly(count, CAPACITY, began)
	pytest.fail('redis was away five times')


def test_shared_over_tls(redis, tmp_path):
	"""Two nodes, with the password in a file, and with certificates of both sides; a Redis that was restarted is found again."""
	secret = tmp_path / 'password'
	secret.write_text(PASSWORD + '\n')
	redis.say('CONFIG', 'SET', 'tls-auth-clients', 'yes')
	nodes = Nodes(redis, 2, '--limits', redis.tls_url(USER), '--limits-password-file', secret, '--limits-ca', redis.ca.file,
		      '--limits-cert', redis.client[0], '--limits-key', redis.client[1])
	with contextlib.closing(nodes):
		for i in range(2):
			nodes.start_node(i)
		assert [nodes.shares(i) for i in range(2)] == [True] * 2, nodes.nodes[0].stderr
		all_take_from_one_bucket(nodes, redis)
		redis.say('CLIENT', 'KILL', 'TYPE', 'normal')  # idle connections that were closed are no reason
		assert granted([nodes.take(nodes.session(i)) for i in range(2)]) < 2
		redis.stop()
		nodes.until(lambda: nodes.shares(0) is False, SLOW)
		redis.start()
		nodes.until(lambda: all(nodes.shares(i) is True for i in range(2)), SLOW)
		redis.say('CONFIG', 'SET', 'tls-auth-clients', 'no')
		all_take_from_one_bucket(nodes, redis)
		log = nodes.nodes[0].stderr + nodes.nodes[1].stderr
	assert 'keeps the buckets, over TLS' in log
	assert PASSWORD not in log and ENCODED not in log


class Hanging:
	"""Takes connections and answers a handshake with nothing, or with a byte now and then."""

	def __init__(self, drips):
		self.drips, self.closed = drips, threading.Event()
		self.socket = socket.create_server(('127.0.0.1', 0))
		self.port = self.socket.getsockname()[1]
		threading.Thread(target=self.serve, daemon=True).start()

	def serve(self):
		with contextlib.suppress(OSError):
			while True:
				with self.socket.accept()[0] as s, contextlib.suppress(OSError):
					for byte in b'\x16\x03\x03\x40\x00' + bytes(1000):  # a record that would be long
						if self.closed.wait(0.1):
							return
						s.sendall(bytes([byte]) if self.drips else b'')

	def close(self):
		self.closed.set()
		self.socket.close()


def starts(start_server, *args, **kw):
	"""A node that starts without its Redis, serves, and says so; what it wrote. It may not wait for Redis long."""
	server = start_server(*args, **kw)
	ready = server.anonymous.get('/readyz')
	assert ready.status_code == 200 and 'redis is away' in ready.json()['limits'], ready.text
	assert server.get('/groups/' + server.group).status_code == 200
	assert PASSWORD not in server.stderr and ENCODED not in server.stderr
	return server


def expired(ca, folder):
	"""Of the same authority, and it ended yesterday."""
	cert, key = ca.issue('expired', '/CN=redis', 'subjectAltName = IP:127.0.0.1')
	openssl('x509', '-req', '-in', ca.folder / 'expired.csr', '-CA', ca.file, '-CAkey', ca.key, '-CAcreateserial', '-days', '-1', '-out', cert,
		'-extfile', ca.folder / 'expired.ext')
	return cert, key


def test_not_the_redis_that_was_meant(redis, tmp_path, start_server):
	other, here = Authority(tmp_path / 'other'), ['--limits', redis.tls_url(), '--limits-ca', redis.ca.file]
	for args, why in (
			([*here[:3], other.file], 'its certificate is refused: '),  # of nobody that is trusted
			(here[:2], 'its certificate is refused: '),  # nor by the system
			(['--limits', redis.tls_url(host='localhost'), *here[2:]], 'its certificate is refused: hostname mismatch'),
			(['--limits', 'rediss://127.0.0.1:%d' % redis.port, *here[2:]], 'no TLS handshake with it'),  # a plain one
			(['--limits', redis.tls_url('steward:wrong'), *here[2:]], 'it refuses the user or the password: WRONGPASS')):
		server = starts(start_server, *args)
		assert 'limits: redis at ' in server.stderr and why in server.stderr, (args, server.stderr)
		server.kill()
	cert, key = expired(redis.ca, tmp_path)
	redis.say('CONFIG', 'SET', 'tls-cert-file', str(cert), 'tls-key-file', str(key))
	server = starts(start_server, *here)
	assert 'its certificate is refused: certificate has expired' in server.stderr
	redis.say('CONFIG', 'SET', 'tls-cert-file', str(redis.server[0]), 'tls-key-file', str(redis.server[1]))
	client.until(lambda: server.anonymous.get('/readyz').json()['limits'] == 'redis')  # which needs no restart


@pytest.mark.parametrize('drips', [False, True])
def test_a_handshake_that_hangs(drips, start_server):
	"""A byte now and then does not prolong it."""
	with contextlib.closing(Hanging(drips)) as hanging:
		server = starts(start_server, '--limits', 'rediss://127.0.0.1:%d' % hanging.port)
		client.until(lambda: 'no TLS handshake with it: it hangs, or does not speak TLS' in server.stderr)
		assert server.stderr.count('limits: redis') <= 3, server.stderr
		server.stop(30)


def test_a_renamed_auth_quotes_no_password(tmp_path, start_server):
	"""Redis names the arguments of a command that it does not know."""
	with contextlib.closing(redis_server.Redis(options=['--rename-command', 'AUTH', 'LETMEIN'])) as plain:
		server = starts(start_server, '--limits', 'redis://:%s@127.0.0.1:%d' % (ENCODED, plain.port))
		assert 'it refuses the password: is one set there?' in server.stderr


@pytest.mark.parametrize('args, why', [
	(['--limits', 'redis://127.0.0.1', '--limits-ca', 'FILE'], '--limits-ca means nothing without --limits rediss://HOST'),
	(['--limits', 'rediss://127.0.0.1', '--limits-ca', 'FILE'], '--limits-ca: FILE: '),
	(['--limits', 'rediss://127.0.0.1', '--limits-cert', 'FILE'], '--limits-key is missing'),
	(['--limits', 'rediss://127.0.0.1', '--limits-cert', 'FILE', '--limits-key', 'FILE'], '--limits-cert: FILE: '),
	(['--limits-password-file', 'FILE'], '--limits-password-file means nothing without --limits'),
	(['--limits', 'rediss://u:%s@127.0.0.1' % ENCODED, '--limits-password-file', 'FILE'], '--limits has a password too'),
	(['--limits', 'rediss://u@127.0.0.1'], 'a user without a password'),
	(['--limits', 'rediss://u:%s@127.0.0.1/x' % ENCODED], '--limits is not redis[s]://')])
def test_refused_at_the_start(args, why, tmp_path):
	file = tmp_path / 'file'
	file.write_text('no certificate\n')
	done = client.cli('serve', '--data', tmp_path / 'data', '--listen', '127.0.0.1:0', *[a.replace('FILE', str(file)) for a in args], check=False)
	assert done.returncode != 0 and why.replace('FILE', str(file)) in done.stderr, done.stderr
	assert ENCODED not in done.stderr and PASSWORD not in done.stderr
