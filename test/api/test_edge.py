"""The HTTP edge of the real binary, spoken to byte by byte: TLS, HTTP/1.1, HTTP/2, limits, deadlines, attacks."""
import json, re, socket, ssl, time

import h2.config, h2.connection, h2.errors, h2.events, h2.exceptions, h2.settings
import pytest

from client import metric, until

SMALL = '/healthz'
LARGE = '/openapi.json'
TAKES_BODY = '/api/oauth/token'
HEX_ID = re.compile(r'^[0-9a-f]{24}$')


@pytest.fixture(scope='module')
def edge(module_server):
	return module_server


def context(server, alpn=None, lowest=None, highest=None):
	c = ssl.create_default_context(cafile=server.ca_file)
	c.check_hostname = False
	if alpn:
		c.set_alpn_protocols(alpn)
	if lowest:
		c.minimum_version = lowest
	if highest:
		c.maximum_version = highest
	return c


def plain(server, timeout=60, receive_buffer=None):
	s = socket.socket()
	s.settimeout(timeout)
	if receive_buffer:
		s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
	s.connect((server.host, server.port))
	return s


def tls(server, timeout=60, session=None, receive_buffer=None, **kw):
	c = kw.pop('context', None) or context(server, **kw)
	return c.wrap_socket(plain(server, timeout, receive_buffer), server_hostname='localhost', session=session,
			     suppress_ragged_eofs=True)


class Answer:
	def __init__(self, status, headers, body):
		self.status, self.headers, self.body = status, headers, body

	def json(self):
		return json.loads(self.body)


class Reader:
	"""Answers off one HTTP/1.1 connection, in their order."""

	def __init__(self, s):
		self.s, self.b = s, b''

	def more(self):
		got = self.s.recv(65536)
		if not got:
			raise EOFError
		self.b += got

	def until(self, mark):
		while mark not in self.b:
			self.more()
		head, self.b = self.b.split(mark, 1)
		return head

	def exactly(self, n):
		parts, have = [self.b], len(self.b)
		while have < n:
			got = self.s.recv(65536)
			if not got:
				raise EOFError
			parts.append(got)
			have += len(got)
		whole = b''.join(parts)
		self.b = whole[n:]
		return whole[:n]

	def answer(self, head_only=False):
		lines = self.until(b'\r\n\r\n').decode('latin-1').split('\r\n')
		version, status = lines[0].split(' ')[:2]
		assert version == 'HTTP/1.1'
		headers = {}
		for line in lines[1:]:
			name, value = line.split(': ', 1)
			headers[name.lower()] = value
		body = b''
		if not head_only and headers.get('transfer-encoding') == 'chunked':
			while True:
				n = int(self.until(b'\r\n'), 16)
				body += self.exactly(n)
				assert self.exactly(2) == b'\r\n'
				if n == 0:
					break
		elif not head_only and status not in ('204', '304'):
			body = self.exactly(int(headers.get('content-length', 0)))
		return Answer(int(status), headers, body)

	def closed(self):
		"""The server has ended the connection and said nothing more."""
		try:
			return self.b == b'' and self.s.recv(1) == b''
		except (ConnectionError, ssl.SSLError):
			return True


def talk(server, *parts, **kw):
	s = tls(server, **kw)
	for p in parts:
		s.sendall(p)
	return Reader(s)


def get(path=SMALL, extra=b'', version=b'HTTP/1.1'):
	return b'GET ' + path.encode() + b' ' + version + b'\r\nHost: localhost\r\n' + extra + b'\r\n'


def is_problem(answer, status, code=None):
	assert answer.status == status, (answer.status, answer.body[:300])
	assert answer.headers['content-type'].startswith('application/json')
	d = answer.json()
	assert set(d) >= {'detail', 'error', 'errorCode', 'parameters', 'reason'}
	assert d['error'] == status
	assert code is None or d['errorCode'] == code
	has_common_headers(answer.headers)


def has_common_headers(headers):
	assert HEX_ID.match(headers['x-request-id'])
	assert headers['x-content-type-options'] == 'nosniff'
	assert headers['cache-control'] == 'no-store'
	assert headers['referrer-policy'] == 'no-referrer'
	assert headers['strict-transport-security'].startswith('max-age=')
	assert re.match(r'^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$', headers['date'])


def alive(server):
	assert talk(server, get()).answer().status == 200


def takes_one_more(server):
	"""Whether there is a place for a connection."""
	try:
		return talk(server, get()).answer().status == 200
	except (OSError, EOFError):
		return False


# TLS

@pytest.mark.parametrize('version', [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_versions(edge, version):
	s = tls(edge, lowest=version, highest=version)
	s.sendall(get())
	assert Reader(s).answer().status == 200
	assert s.version() == {'TLSv1_2': 'TLSv1.2', 'TLSv1_3': 'TLSv1.3'}[version.name]


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_old_tls_is_refused(edge):
	c = context(edge)
	c.set_ciphers('DEFAULT:@SECLEVEL=0')
	c.minimum_version = ssl.TLSVersion.TLSv1
	c.maximum_version = ssl.TLSVersion.TLSv1_1
	with pytest.raises((ssl.SSLError, ConnectionError)):
		tls(edge, context=c)


@pytest.mark.parametrize('version', [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_resume(edge, version):
	c = context(edge, lowest=version, highest=version)
	first = tls(edge, context=c)
	first.sendall(get())
	assert Reader(first).answer().status == 200
	kept = first.session
	assert not first.session_reused
	first.close()
	for _ in range(4):  # whichever loop it lands on
		again = tls(edge, context=c, session=kept)
		again.sendall(get())
		assert Reader(again).answer().status == 200
		assert again.session_reused
		again.close()


def test_alpn(edge):
	assert tls(edge, alpn=['h2', 'http/1.1']).selected_alpn_protocol() == 'h2'
	assert tls(edge, alpn=['http/1.1']).selected_alpn_protocol() == 'http/1.1'
	assert tls(edge).selected_alpn_protocol() is None
	with pytest.raises((ssl.SSLError, ConnectionError)):
		tls(edge, alpn=['spdy/3'])


@pytest.mark.parametrize('first', [b'GET / HTTP/1.1\r\nHost: a\r\n\r\n', b'POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\n',
				   b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', b'G'])
def test_plain_http_is_told_so(edge, first):
	s = plain(edge)
	s.sendall(first)
	r = Reader(s)
	a = r.answer()
	is_problem(a, 400, 'HTTPS_ONLY')
	assert 'HTTPS only' in a.json()['detail']
	assert a.headers['connection'] == 'close'
	assert r.closed()


def test_garbage_is_closed_quietly(edge):
	for bytes_ in (b'\0' * 100, b'\xff\xfe\xfd', b'garbage', b'SSH-2.0-x\r\n', b'\x16\x03\x01\x00\x05hello' + b'x' * 50,
		       b'\x80\x2e\x01\x00\x02', b'\n'):
		s = plain(edge)
		s.sendall(bytes_)
		try:
			got = s.recv(1000)
			# Nothing, or a TLS alert.
			assert got == b'' or got[0] == 0x15
		except ConnectionError:
			pass
	alive(edge)


# HTTP/1.1

def test_answers_carry_the_common_headers(edge):
	a = talk(edge, get()).answer()
	has_common_headers(a.headers)
	assert int(a.headers['content-length']) == len(a.body)


def test_ids_differ(edge):
	r = talk(edge, get() * 20)
	assert len({r.answer().headers['x-request-id'] for _ in range(20)}) == 20


def test_keep_alive_and_close(edge):
	s = tls(edge)
	r = Reader(s)
	for _ in range(3):
		s.sendall(get())
		assert r.answer().status == 200
	s.sendall(get(extra=b'Connection: close\r\n'))
	a = r.answer()
	assert a.headers['connection'] == 'close'
	assert r.closed()


def test_http_1_0(edge):
	r = talk(edge, b'GET ' + SMALL.encode() + b' HTTP/1.0\r\n\r\n')
	assert r.answer().status == 200
	assert r.closed()
	r = talk(edge, get(extra=b'Connection: keep-alive\r\n', version=b'HTTP/1.0') * 2)
	assert [r.answer().status, r.answer().status] == [200, 200]


def test_pipelining_keeps_the_order(edge):
	s = tls(edge)
	paths = [SMALL, '/no/such/path/1', TAKES_BODY, SMALL, '/no/such/path/2', LARGE, '/no/such/path/3']
	s.sendall(b''.join(get(p) for p in paths * 3))
	r = Reader(s)
	seen = [r.answer() for _ in paths * 3]
	for i, a in enumerate(seen):
		want = paths[i % len(paths)]
		if want in (SMALL, LARGE):
			assert a.status == 200
		elif 'such' in want:
			assert a.status == 404
			assert want in a.body.decode()
		else:
			assert a.status == 405


def test_a_request_byte_by_byte(edge):
	s = tls(edge)
	text = b'POST ' + TAKES_BODY.encode() + b' HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello' + get()
	for i in range(len(text)):
		s.sendall(text[i:i + 1])
	r = Reader(s)
	assert 400 <= r.answer().status < 500
	assert r.answer().status == 200


def test_an_empty_body_may_be_announced(edge):
	s = tls(edge)
	s.sendall(P + b'Content-Length: 0\r\n\r\n' + get(extra=b'Content-Length: 0\r\n') + get(
		extra=b'Connection: Upgrade\r\nUpgrade: h2c\r\n'))
	r = Reader(s)
	assert 400 <= r.answer().status < 500
	assert [r.answer().status, r.answer().status] == [200, 200]


def test_chunked_body(edge):
	s = tls(edge)
	s.sendall(b'POST ' + TAKES_BODY.encode() + b' HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
		  b'3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n' + get())
	r = Reader(s)
	assert 400 <= r.answer().status < 500
	assert r.answer().status == 200


def test_expect_continue(edge):
	s = tls(edge)
	s.sendall(b'POST ' + TAKES_BODY.encode() + b' HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n')
	r = Reader(s)
	assert r.until(b'\r\n\r\n') == b'HTTP/1.1 100 Continue'
	s.sendall(b'hello')
	assert 400 <= r.answer().status < 500
	r = talk(edge, get(extra=b'Expect: tea\r\n'))
	is_problem(r.answer(), 417)


def test_head(edge):
	for path in (SMALL, LARGE):
		s = tls(edge)
		s.sendall(get(path) + b'HEAD ' + path.encode() + b' HTTP/1.1\r\nHost: a\r\n\r\n' + get())
		r = Reader(s)
		full, head = r.answer(), r.answer(head_only=True)
		assert head.status == 200
		if 'content-length' in head.headers:
			assert head.headers['content-length'] == str(len(full.body))
		assert r.answer().status == 200  # no byte of a body came between


def test_absolute_form(edge):
	r = talk(edge, b'GET https://localhost' + SMALL.encode() + b' HTTP/1.1\r\nHost: localhost\r\n\r\n')
	assert r.answer().status == 200
	r = talk(edge, b'GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n')
	is_problem(r.answer(), 400)


def test_half_closed_client_gets_its_answers(edge):
	c = context(edge)
	s = plain(edge)
	incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
	o = c.wrap_bio(incoming, outgoing, server_hostname='localhost')

	def pump(step):
		while True:
			try:
				got = step()
			except ssl.SSLWantReadError:
				got = None
			if outgoing.pending:
				s.sendall(outgoing.read())
			if got is not None:
				return got
			data = s.recv(65536)
			if data:
				incoming.write(data)
			else:
				incoming.write_eof()

	pump(lambda: o.do_handshake() or True)
	o.write(get() * 2)
	s.sendall(outgoing.read())
	s.shutdown(socket.SHUT_WR)
	text = b''
	while text.count(b'HTTP/1.1 200 OK') < 2:
		text += pump(lambda: o.read(65536))
	alive(edge)


def test_gone_client_hurts_nobody(edge):
	for _ in range(30):
		s = tls(edge)
		s.sendall(get(LARGE) * 3)
		s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
		s.close()
	alive(edge)


P = b'POST ' + TAKES_BODY.encode() + b' HTTP/1.1\r\nHost: localhost\r\n'
SMUGGLING = [
	P + b'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
	P + b'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n',
	P + b'Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello',
	P + b'Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello',
	P + b'Content-Length: 5, 5\r\n\r\nhello',
	P + b'Content-Length: +5\r\n\r\nhello',
	P + b'Content-Length: 0x5\r\n\r\nhello',
	P + b'Content-Length: -1\r\n\r\n',
	P + b'Content-Length: 99999999999999999999999\r\n\r\n',
	P + b'Content-Length : 5\r\n\r\nhello',
	P + b'Content-Length\t: 5\r\n\r\nhello',
	P + b' Content-Length: 5\r\n\r\nhello',
	P + b'X: y\r\n Content-Length: 5\r\n\r\nhello',
	P + b'X: y\r\n\tz\r\n\r\n',
	P + b'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
	P + b'Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
	P + b'Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n',
	P + b'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
	P + b'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
	P + b'Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n',
	P + b'Transfer-Encoding:\r\n\r\n0\r\n\r\n',
	P + b'Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n',
	P + b'Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n',
	P + b'Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n',
	P + b'Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n',
	b'POST ' + TAKES_BODY.encode() + b' HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
	b'GET / HTTP/1.1\nHost: a\n\n',
	b'GET / HTTP/1.1\r\nHost: a\n\r\n',
	b'GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n',
	b'GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n',
	b'GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n',
	b'GET / HTTP/1.1\r\n\r\n',
	b'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
	b'GET / HTTP/1.1\r\nHost: a, b\r\n\r\n',
	b'GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n',
	b'GET / HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n',
	b'GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n',
	b'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n',
	b'GET  / HTTP/1.1\r\nHost: a\r\n\r\n',
	b'GET / HTTP/1.1 \r\nHost: a\r\n\r\n',
	b'GET /\r\nHost: a\r\n\r\n',
	b'GET a HTTP/1.1\r\nHost: a\r\n\r\n',
	b'\x01\x02\x03\r\n\r\n',
]


@pytest.mark.parametrize('n', range(len(SMUGGLING)))
def test_smuggling_is_refused(edge, n):
	r = talk(edge, SMUGGLING[n] + get('/smuggled'))
	a = r.answer()
	is_problem(a, 400)
	assert a.headers['connection'] == 'close'
	assert r.closed()


def test_versions_and_methods(edge):
	is_problem(talk(edge, b'GET / HTTP/2.0\r\nHost: a\r\n\r\n').answer(), 505)
	is_problem(talk(edge, b'GET / HTTP/1.7\r\nHost: a\r\n\r\n').answer(), 505)
	is_problem(talk(edge, b'BREW / HTTP/1.1\r\nHost: a\r\n\r\n').answer(), 501)
	is_problem(talk(edge, b'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n').answer(), 501)


def test_oversize(edge):
	r = talk(edge, get('/' + 'x' * 9000))
	is_problem(r.answer(), 414)
	assert r.closed()
	r = talk(edge, b'GET /', b'x' * 20000)  # and no end of line at all
	is_problem(r.answer(), 414)
	is_problem(talk(edge, get(extra=b'X: ' + b'y' * 40000 + b'\r\n')).answer(), 431)
	is_problem(talk(edge, get(extra=b'X: y\r\n' * 200)).answer(), 431)
	assert talk(edge, get('/' + 'x' * 8000)).answer().status in (401, 404)


def test_a_large_body_is_refused_before_it_comes(edge):
	r = talk(edge, P + b'Content-Length: 500000000\r\n\r\n')
	a = r.answer()
	is_problem(a, 413)
	assert a.headers['connection'] == 'close'
	assert r.closed()
	# A client that sends it all the same can still read the answer.
	s = tls(edge)
	s.sendall(P + b'Content-Length: 3000000\r\n\r\n')
	try:
		s.sendall(b'x' * 1000000)
	except (ConnectionError, ssl.SSLError):
		pass
	is_problem(Reader(s).answer(), 413)
	s = tls(edge)
	s.sendall(P + b'Transfer-Encoding: chunked\r\n\r\n' + b'4000\r\n' + b'x' * 0x4000 + b'\r\n')
	try:
		for _ in range(800):
			s.sendall(b'4000\r\n' + b'x' * 0x4000 + b'\r\n')
	except (ConnectionError, ssl.SSLError):
		pass
	is_problem(Reader(s).answer(), 413)


# Deadlines, limits, slow readers

def test_deadlines(start_server):
	server = start_server('--header-seconds', 3, '--body-seconds', 3, '--idle-seconds', 4)
	# The quickest of a few: one alone may have had a slow moment.
	assert any(seconds_until_cut(server) < 9 for _ in range(3)), 'not those that hold where nothing is said'
	alive(server)


def seconds_until_cut(server):
	silent = plain(server)
	shaking = plain(server)
	shaking.sendall(b'\x16\x03\x01')
	header = tls(server)
	header.sendall(b'GET / HT')
	body = tls(server)
	body.sendall(P + b'Content-Length: 1000\r\n\r\nabc')
	idle = tls(server)
	idle.sendall(get())
	assert Reader(idle).answer().status == 200
	began, readers = time.monotonic(), [Reader(header), Reader(body)]
	while not all(r.b for r in readers):  # activity does not help
		for r in readers:
			try:
				r.s.settimeout(0.1)
				r.b or r.more()
			except socket.timeout:
				r.s.sendall(b'x')
	seconds = time.monotonic() - began
	for r in readers:
		r.s.settimeout(60)
		is_problem(r.answer(), 408)
	for s in (silent, shaking):
		try:
			assert s.recv(100)[:1] in (b'', b'\x15')
		except ConnectionError:
			pass
	assert Reader(idle).closed()
	assert time.monotonic() - began < 60
	return seconds


def test_many_slow_clients_do_not_disturb_others(start_server):
	server = start_server('--header-seconds', 60)
	slow = []
	for i in range(150):
		s = plain(server)
		s.sendall(b'\x16\x03\x01' if i % 2 else b'')
		slow.append(s)
	s, worst = tls(server), 0
	r = Reader(s)
	for _ in range(100):
		began = time.monotonic()
		s.sendall(get())
		assert r.answer().status == 200
		worst = max(worst, time.monotonic() - began)
	assert worst < 20, 'nobody waits for them'
	for s in slow:
		s.close()


def test_slow_reader_waits_and_others_do_not(edge):
	s = tls(edge, receive_buffer=4096)
	count = 30
	s.sendall(get(LARGE) * count)
	time.sleep(0.3)
	alive(edge)
	r = Reader(s)
	sizes = {len(r.answer().body) for _ in range(count)}
	assert len(sizes) == 1


def test_reader_that_takes_nothing_is_cut(start_server):
	server = start_server('--send-seconds', 1)
	s = tls(server, receive_buffer=4096)
	s.settimeout(10)
	try:
		for _ in range(20):
			s.sendall(get(LARGE) * 10)
	except (ConnectionError, ssl.SSLError, socket.timeout):
		pass
	until(lambda: metric(server, 'steward_http_timeouts_total'), what='the cut')
	s.settimeout(60)
	total = 0
	with pytest.raises((EOFError, ConnectionError, ssl.SSLError)):
		while True:
			got = s.recv(65536)
			if not got:
				raise EOFError
			total += len(got)
	one = len(talk(server, get(LARGE)).answer().body)
	assert total < 200 * one
	alive(server)


def test_connections_per_address(start_server):
	server = start_server('--connections-per-address', 10)
	held = [tls(server) for _ in range(8)]
	refused = 0
	for _ in range(6):
		try:
			held.append(tls(server))
		except (ConnectionError, ssl.SSLError, OSError):
			refused += 1
	assert refused >= 4
	for s in held:
		s.close()
	until(lambda: takes_one_more(server), what='a place')


def test_connections_in_all(start_server):
	server = start_server('--connections-max', 10)
	held, refused = [], 0
	for _ in range(16):
		try:
			held.append(tls(server))
		except (ConnectionError, ssl.SSLError, OSError):
			refused += 1
	assert 6 <= refused <= 8
	for s in held:
		s.close()
	until(lambda: takes_one_more(server), what='a place')


def test_one_thread_serves_too(start_server):
	server = start_server('--threads', 1)
	connections = [tls(server) for _ in range(20)]
	for s in connections:
		s.sendall(get())
	assert [Reader(s).answer().status for s in connections] == [200] * 20


def test_drain_finishes_what_is_under_way(start_server):
	server = start_server()
	s = tls(server)
	r = Reader(s)
	s.sendall(get())
	assert r.answer().status == 200
	server.stop()
	assert r.closed()


# HTTP/2

class H2:
	def __init__(self, server, timeout=60):
		self.s = tls(server, timeout=timeout, alpn=['h2'])
		assert self.s.selected_alpn_protocol() == 'h2'
		self.c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding='utf-8',
									       validate_outbound_headers=False,
									       normalize_outbound_headers=False))
		self.c.initiate_connection()
		self.flush()
		self.status, self.headers, self.body, self.ended, self.reset = {}, {}, {}, set(), {}
		self.goaway, self.over = None, False

	def flush(self):
		data = self.c.data_to_send()
		if data:
			self.s.sendall(data)

	def ask(self, method='GET', path=SMALL, extra=(), body=None, end=True):
		n = self.c.get_next_available_stream_id()
		self.c.send_headers(n, [(':method', method), (':scheme', 'https'), (':authority', 'localhost'), (':path', path),
				*extra], end_stream=end and body is None)
		if body is not None:
			self.c.send_data(n, body, end_stream=end)
		self.flush()
		return n

	def step(self, seconds=60):
		"""Takes what comes within this time. What is sent in answer has all the time that it needs: a frame that was cut short
		would be a fault of ours."""
		try:
			self.s.settimeout(seconds)
			data = self.s.recv(65536)
		except (ConnectionError, ssl.SSLError):
			data = b''
		finally:
			self.s.settimeout(60)
		if not data:
			self.over = True
			return
		try:
			events = self.c.receive_data(data)
		except h2.exceptions.ProtocolError:  # raw frames were sent that the library does not know of
			self.over = True
			return
		for e in events:
			if isinstance(e, h2.events.ResponseReceived):
				self.headers[e.stream_id] = dict(e.headers)
				self.status[e.stream_id] = int(dict(e.headers)[':status'])
			elif isinstance(e, h2.events.DataReceived):
				self.body[e.stream_id] = self.body.get(e.stream_id, b'') + e.data
				if e.flow_controlled_length:
					self.c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
			elif isinstance(e, h2.events.StreamEnded):
				self.ended.add(e.stream_id)
			elif isinstance(e, h2.events.StreamReset):
				self.reset[e.stream_id] = e.error_code
			elif isinstance(e, h2.events.ConnectionTerminated):
				self.goaway = e.error_code
		try:
			self.flush()
		except (ConnectionError, ssl.SSLError):
			self.over = True

	def wait(self, condition):
		end = time.monotonic() + 60
		while not condition() and not self.over:
			assert time.monotonic() < end
			self.step()

	def finish(self, *streams):
		self.wait(lambda: all(n in self.ended or n in self.reset for n in streams))
		return [self.status.get(n) for n in streams]


def test_h2_basics(edge):
	c = H2(edge)
	streams = [c.ask(), c.ask(path='/no/such'), c.ask('HEAD'), c.ask(path=LARGE), c.ask('POST', TAKES_BODY, body=b'x')]
	status = c.finish(*streams)
	assert status[0] == 200 and status[1] == 404 and status[2] == 200 and status[3] == 200 and 400 <= status[4] < 500
	has_common_headers(c.headers[streams[0]])
	assert c.body.get(streams[2], b'') == b''
	assert json.loads(c.body[streams[1]])['error'] == 404
	assert c.body[streams[3]] == talk(edge, get(LARGE)).answer().body
	settings = c.c.remote_settings
	assert settings.max_concurrent_streams <= 1000
	assert settings.max_header_list_size


def test_h2_many_streams(edge):
	c = H2(edge)
	streams = [c.ask(path=SMALL if i % 2 else '/no/such/%d' % i) for i in range(90)]
	assert c.finish(*streams) == [200 if i % 2 else 404 for i in range(90)]


@pytest.mark.parametrize('extra', [[('connection', 'close')], [('transfer-encoding', 'chunked')], [('upgrade', 'x')],
				   [('X-Upper', 'a')], [('x', 'a\r\nb')], [('te', 'gzip')], [(':path', '/again')]])
def test_h2_malformed_messages_are_reset(edge, extra):
	c = H2(edge)
	n = c.ask(extra=extra)
	c.wait(lambda: n in c.reset or n in c.ended or c.goaway is not None)
	assert n in c.reset or c.goaway is not None or c.status[n] == 400
	alive(edge)


def test_h2_content_length_must_match(edge):
	for length in ('3', '10'):
		c = H2(edge)
		n = c.ask('POST', TAKES_BODY, extra=[('content-length', length)], body=b'12345')
		c.wait(lambda: n in c.reset or c.over)
		assert n in c.reset


def test_h2_limits_are_told(edge):
	c = H2(edge)
	n = c.ask(path='/' + 'x' * 9000)
	assert c.finish(n) == [414]
	n = c.ask(extra=[('x-%d' % i, 'y') for i in range(150)])
	assert c.finish(n) == [431]
	assert json.loads(c.body[n])['error'] == 431
	n = c.ask('POST', TAKES_BODY, extra=[('content-length', '500000000')], end=False)
	assert c.finish(n) == [413]
	n = c.ask('BREW')
	assert c.finish(n) == [501]
	n = c.ask()
	assert c.finish(n) == [200]  # the connection lives on


def calmed(c):
	c.wait(lambda: c.goaway is not None)
	return c.over or c.goaway == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM


def send_until_refused(c, one):
	try:
		for i in range(3000):
			one(i)
			c.flush()
			if i % 50 == 49:
				try:
					c.step(0.001)
				except socket.timeout:
					pass
				if c.goaway is not None or c.over:
					return
	except (ConnectionError, ssl.SSLError, h2.exceptions.ProtocolError):
		pass


def test_h2_rapid_reset(edge):
	c = H2(edge)

	def one(i):
		n = c.ask(path='/no/such')
		c.c.reset_stream(n, h2.errors.ErrorCodes.CANCEL)

	send_until_refused(c, one)
	assert calmed(c)
	alive(edge)


def test_h2_ping_flood(edge):
	c = H2(edge)
	send_until_refused(c, lambda i: c.c.ping(b'12345678'))
	assert calmed(c)
	alive(edge)


def frame(kind, flags, stream, payload):
	return len(payload).to_bytes(3, 'big') + bytes([kind, flags]) + stream.to_bytes(4, 'big') + payload


def test_h2_continuation_flood(edge):
	c = H2(edge)
	try:
		c.s.sendall(frame(1, 0, 1, b'\x82\x87\x84\x41\x01a'))
		for _ in range(2000):
			c.s.sendall(frame(9, 0, 1, b'\x00\x04name\x7f\x86\x01' + b'v' * 261) * 4)
	except (ConnectionError, ssl.SSLError, socket.timeout):
		pass
	c.wait(lambda: c.goaway is not None or c.over)
	alive(edge)


def test_h2_header_bomb(edge):
	"""A table entry of 3 KB, then thousands of one-byte references to it."""
	c = H2(edge)
	entry = b'\x40\x01x\x7f' + bytes([0x80 | (3000 - 127) % 128, (3000 - 127) // 128]) + b'v' * 3000
	try:
		c.s.sendall(frame(1, 5, 1, b'\x82\x87\x84\x41\x01a' + entry + b'\xbe' * 10000))
	except (ConnectionError, ssl.SSLError):
		pass
	c.wait(lambda: c.goaway is not None or 1 in c.ended or 1 in c.reset or c.over)
	assert c.status.get(1) in (None, 431)
	alive(edge)


def test_h2_garbage(edge):
	for data in (b'GET / HTTP/1.1\r\n\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\xff' * 100, b'\0' * 200):
		s = tls(edge, alpn=['h2'])
		try:
			s.sendall(data)
			while s.recv(65536):
				pass
		except (ConnectionError, ssl.SSLError):
			pass
	for data in (frame(0, 0, 0, b'x'), frame(1, 4, 2, b''), frame(8, 0, 0, b'\0\0\0\0'), frame(4, 0, 1, b''),
		     frame(0, 0, 99, b'x' * 10), frame(9, 4, 1, b'x'), frame(6, 0, 0, b'short'), frame(3, 0, 5, b'\0\0\0\0')):
		c = H2(edge)
		c.s.sendall(data)
		c.wait(lambda: c.goaway is not None or c.over)
	alive(edge)


def test_h2_body_deadline(start_server):
	server = start_server('--body-seconds', 3, '--header-seconds', 3)
	c = H2(server)
	n = c.ask('POST', TAKES_BODY, body=b'x', end=False)
	assert c.finish(n) == [408]

	def seconds():
		c = H2(server)
		c.s.sendall(frame(1, 0, 1, b'\x82'))  # a header block that never ends
		began = time.monotonic()
		c.wait(lambda: c.goaway is not None or c.over)
		return time.monotonic() - began
	assert any(seconds() < 9 for _ in range(3)), 'not the deadline that holds where nothing is said'


def test_h2_flow_control_is_kept(edge):
	"""A client that opens no window gets no more than it has, and others are served."""
	c = H2(edge)
	n = c.c.get_next_available_stream_id()
	c.c.acknowledge_received_data = lambda *a: None
	c.ask(path=LARGE)
	c.wait(lambda: c.body.get(n))
	try:
		while True:
			c.step(0.5)
	except socket.timeout:
		pass
	assert 0 < len(c.body[n]) <= 65535
	alive(edge)
