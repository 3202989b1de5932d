"""TLS session tickets: they resume a session for as long as their key lives, which is an hour as the newest and another as
the one before."""
import signal, socket, ssl, time

import pytest

from client import ok, until

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope='module')
def clocked(module_server):
	return module_server


class Client:
	def __init__(self, server, version):
		self.server = server
		self.context = ssl.create_default_context(cafile=server.ca_file)
		self.context.minimum_version = self.context.maximum_version = version

	def connect(self, session=None):
		"""One call; whether the session was resumed, and the session for the next time."""
		raw = socket.create_connection((self.server.host, self.server.port), timeout=60)
		with self.context.wrap_socket(raw, server_hostname=self.server.host, session=session) as s:
			s.sendall(b'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
			answer = b''
			while True:
				piece = s.recv(65536)
				if not piece:
					break
				answer += piece
			assert answer.startswith(b'HTTP/1.1 200'), answer[:200]
			return s.session_reused, s.session


def advance(server, seconds):
	ok(server.anonymous.post('/api/test/clock', json={'advanceSeconds': seconds}))


@pytest.mark.parametrize('version', VERSIONS, ids=lambda v: v.name)
def test_a_ticket_lives_as_long_as_its_key(clocked, version):
	client = Client(clocked, version)
	reused, session = client.connect()
	assert not reused and session.has_ticket
	assert client.connect(session)[0]
	# The key has been replaced, and still opens what it sealed.
	advance(clocked, 3700)
	reused, renewed = client.connect(session)
	assert reused
	# Another hour: it is gone. What was sealed again on the way is sealed with the next one.
	advance(clocked, 3700)
	assert not client.connect(session)[0]
	assert client.connect(renewed)[0]


@pytest.mark.parametrize('version', VERSIONS, ids=lambda v: v.name)
def test_a_long_silence_ends_all(clocked, version):
	client = Client(clocked, version)
	_, session = client.connect()
	advance(clocked, 8 * 3600)
	assert not client.connect(session)[0]
	assert client.connect(client.connect()[1])[0]


@pytest.mark.parametrize('version', VERSIONS, ids=lambda v: v.name)
def test_a_ticket_outlives_a_reload(clocked, version):
	client = Client(clocked, version)
	_, session = client.connect()
	before = clocked.stderr.count('reload: certificate')
	clocked.process.send_signal(signal.SIGHUP)
	until(lambda: clocked.stderr.count('reload: certificate') > before, what='the reload')
	time.sleep(0.3)  # that line is its beginning
	assert client.connect(session)[0]
