"""Memory that clients can make the server hold without taking it back: bounded, shared fairly, and given back.

Resident memory is what the kernel says of the process; the budget is what /metrics says."""
import re, socket, ssl, time

from client import BASE, Wire, binary, metric, ok, scraping, unique, until
from hostile import Crowd, Hostile, PREFACE, context, frame, get_block

MB = 1 << 20
LIMIT = 256 * MB


def memory(server, what='VmRSS'):
	text = open('/proc/%d/status' % server.process.pid).read()
	return int(re.search(what + r':\s+(\d+) kB', text).group(1)) * 1024


def is_sanitized():
	return b'__asan_init' in open(binary(), 'rb').read()


def started(start_server, tmp_path, *more):
	config = tmp_path / 'limits.conf'
	config.write_text('limit.* = 1000000/1000000\n')
	return start_server('--config', config, '--log-level', 'error', *more, clock=None, control=False)


def grown(server, before):
	"""By how much memory has grown. A sanitizer's own is many times what is asked for: there only the rest is tried."""
	return 0 if is_sanitized() else memory(server, 'VmHWM') - before


def test_metrics_that_nobody_takes_are_one_page(start_server, tmp_path):
	server = started(start_server, tmp_path)
	assert server.anonymous.get('/metrics').status_code == 200
	before = memory(server)
	h, held = Hostile(server.host, server.port, 'windows', 0), []
	request = PREFACE + frame(4, 0, 0, b'\0\4\0\0\0\0') + b''.join(
		frame(1, 5, 2 * i + 1, get_block(b'/metrics', scraping(server.data_dir)['Authorization'].encode())) for i in range(100))
	served = metric(server, 'steward_http_requests_total')
	for _ in range(40):
		one = h.connect()
		one[1] = request
		held.append(one)
	until(lambda: all(h.send(one) for one in held) and not any(one[1] for one in held), what='all is sent')
	until(lambda: metric(server, 'steward_http_requests_total') - served >= 4000, what='all are answered')
	assert grown(server, before) < 100 * MB
	for one in held:
		one[0].close()


def test_headers_count_as_they_are_kept(start_server, tmp_path):
	"""One that is in the table of the compression takes a byte, and kilobytes where it is unpacked."""
	server = started(start_server, tmp_path)
	h, served = Hostile(server.host, server.port, 'windows', 0), metric(server, 'steward_http_requests_total')
	page = get_block(b'/healthz')
	blocks = [page + b'\x40\x03x-a\x7f\xbd\x1d' + b'v' * 3900] + [page + b'\xbe' * 8] * 99
	one = h.connect()
	one[1] = PREFACE + frame(4, 0, 0, b'\0\4\0\0\0\0') + b''.join(frame(1, 5, 2 * i + 1, b) for i, b in enumerate(blocks))
	until(lambda: h.send(one) and not one[1], what='all is sent')
	until(lambda: metric(server, 'steward_http_requests_total') - served >= 100, what='all are answered')
	assert metric(server, 'steward_buffer_bytes') > 99 * 8 * 3900
	one[0].close()
	until(lambda: metric(server, 'steward_buffer_bytes') < MB, what='all is given back')


def test_trailers_count_too(start_server, tmp_path):
	server, held = started(start_server, tmp_path), []
	for _ in range(20):
		s = context('http/1.1').wrap_socket(socket.create_connection((server.host, server.port)), server_hostname='localhost')
		s.sendall(b'POST /api/oauth/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: ' + b't' * 15000)
		held.append(s)
	until(lambda: metric(server, 'steward_buffer_bytes') > 20 * (9 * 1024 + 15000), what='all is counted')
	for s in held:
		s.close()


def test_bodies_without_credentials_are_not_kept(start_server, tmp_path):
	server = started(start_server, tmp_path)
	before = memory(server)
	held, size = [], MB - 1
	for i in range(200):
		raw = socket.create_connection((server.host, server.port))
		s = context('http/1.1').wrap_socket(raw, server_hostname='localhost')
		s.settimeout(30)
		s.sendall(b'POST %s/groups HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n' % (BASE.encode(), size))
		# The answer is there before any of the body.
		assert s.recv(4096).startswith(b'HTTP/1.1 401 ')
		s.sendall(b' ' * (size - 1))
		held.append(s)
	assert metric(server, 'steward_buffer_bytes') < 8 * MB
	assert grown(server, before) < 100 * MB
	# And once the body has come, the connection is as good as new.
	held[0].sendall(b' GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
	text = b''
	while b'"ok"' not in text:
		text += held[0].recv(4096)
	assert b'HTTP/1.1 200 ' in text
	for s in held:
		s.close()


def test_a_budget_is_kept_and_given_back(start_server, tmp_path):
	"""Bodies of a tenant, from one address: beyond its share they are refused, and others are not."""
	server = started(start_server, tmp_path, '--buffer-memory', 16)
	token, held, refused = server.token(), [], 0
	for i in range(60):
		raw = socket.socket()
		raw.bind(('127.0.1.7', 0))
		raw.connect((server.host, server.port))
		s = context('http/1.1').wrap_socket(raw, server_hostname='localhost')
		s.settimeout(30)
		s.sendall(b'POST %s/groups HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n'
			b'Content-Length: 1000000\r\n\r\n' % (BASE.encode(), token.encode()))
		assert s.recv(4096).startswith(b'HTTP/1.1 100 ')
		try:
			s.sendall(b' ' * 900000)
			s.settimeout(0.2)
			answer = s.recv(4096)
		except (ssl.SSLWantReadError, TimeoutError, socket.timeout):
			held.append(s)
			continue
		except OSError:  # closed while we were sending
			refused += 1
			continue
		assert answer.startswith(b'HTTP/1.1 503 ') and b'Retry-After: 1' in answer, answer
		refused += 1

	def sorted_out():
		"""On a slow machine answers come late."""
		nonlocal refused
		for s in list(held):
			s.settimeout(0)
			try:
				answer = s.recv(4096)
			except (ssl.SSLWantReadError, BlockingIOError):
				continue
			except OSError:
				answer = b''
			assert not answer or (answer.startswith(b'HTTP/1.1 503 ') and b'Retry-After: 1' in answer), answer
			held.remove(s)
			refused += 1
		return len(held) <= 8
	until(sorted_out, what='the answers')
	assert refused >= 40 and 3 <= len(held) <= 8
	assert 3 * MB < metric(server, 'steward_buffer_bytes') < 8 * MB
	assert metric(server, 'steward_buffer_refusals_total') >= refused
	for _ in range(20):
		ok(server.owner.get(BASE + '/groups'))
		server.owner.project()
	for s in held:
		s.close()
	until(lambda: metric(server, 'steward_buffer_bytes') < MB, what='all is given back')


def calls(server, seconds):
	"""One caller's reads and writes for a while: their times, in order. All must succeed."""
	times, wires = [], [Wire(server, server.token()) for _ in range(4)]
	until_, n = time.perf_counter() + seconds, 0
	while time.perf_counter() < until_ or n < 100:
		w, n = wires[n % len(wires)], n + 1
		began = time.perf_counter()
		a = w.one('GET', '%s/groups/%s' % (BASE, server.group))
		times.append(time.perf_counter() - began)
		assert a.status == 200, a.body
		if n % 20 == 0:
			a = w.one('POST', BASE + '/groups', body={'name': unique(), 'orgId': server.org})
			assert a.status in (200, 201), a.body
	for w in wires:
		w.close()
	return sorted(times)


def p99(times):
	return times[len(times) * 99 // 100] * 1e3


def test_two_thousand_hostile_connections(start_server, tmp_path):
	# Long deadlines: all of them at once is the worst that they can do.
	server = started(start_server, tmp_path, *[w for what in ('header', 'body', 'send') for w in ('--%s-seconds' % what, 90)])
	calls(server, 0.5)
	quiet = calls(server, 0.7)
	crowd = Crowd(server, 2000, server.token())
	try:
		crowd.ready()
		loud, seen = [], []
		for _ in range(3):
			loud += calls(server, 0.7)
			seen.append(metric(server, 'steward_buffer_bytes'))
		# Those that ask for more than their share are cut off, and come back: all have been there.
		assert metric(server, 'steward_connections_accepted_total') > 2000
		assert metric(server, 'steward_connections_open') > 500
		assert max(seen) <= LIMIT * 1.1
		print('\nRSS %d MB (most %d MB), buffers %d MB, p99 %.2f ms, undisturbed %.2f ms' % (memory(server) / MB,
			memory(server, 'VmHWM') / MB, max(seen) / MB, p99(sorted(loud)), p99(quiet)), end='')
		assert is_sanitized() or memory(server, 'VmHWM') < 400 * MB
	finally:
		crowd.stop()
	until(lambda: metric(server, 'steward_buffer_bytes') < MB, what='all is given back')
