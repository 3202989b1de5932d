"""What slow, idle and hostile connections do to everybody else's latency.

The disturbers run in a process of their own: this file, run as a script. Quiet and disturbed measurements alternate; the
medians of three are compared. A few milliseconds of absolute slack take the machine's noise out."""
import os, random, re, resource, socket, ssl, statistics, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'api'))
import client

SECONDS = float(os.environ.get('STEWARD_DISTURBANCE_SECONDS', '0.5'))  # of each measurement: thousands of calls
ROUNDS = 3
CONNECTIONS = 400  # at least, of a disturber in a round
SLACK_P50, SLACK_P99 = 0.001, 0.005


context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(['http/1.1'])


def tls(host, port):
	raw = socket.create_connection((host, port), timeout=30)
	return context.wrap_socket(raw, server_hostname=host)


def ready():
	"""All is set up: from now on only what the machine has to spare, so that the server's work is what is measured."""
	os.nice(19)
	print('ready', flush=True)


def slow(host, port, count=500):
	"""Header blocks that never end, a byte at a time; who is cut off comes back."""
	held = []

	def more():
		s = tls(host, port)
		s.sendall(b'GET /api/svc/v2/groups HTTP/1.1\r\nHost: x\r\nX-Slow: ')
		s.settimeout(0)
		held.append(s)
	for _ in range(count):
		more()
	ready()
	while True:
		for s in list(held):
			try:
				s.send(b'a')
				s.recv(100)
			except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
				continue
			except OSError:
				pass
			else:
				continue
			held.remove(s)
			s.close()
			try:
				more()
			except OSError:
				pass
		time.sleep(0.5)


def idle(host, port, count=1000):
	held = [tls(host, port) for _ in range(count)]
	ready()
	while held:
		time.sleep(1)


def garbage(host, port):
	"""Bytes that are no TLS, TLS that carries no HTTP, and HTTP that is none; nobody waits for an answer."""
	ready()
	noise = os.urandom(1 << 16)
	while True:
		dice, n = random.random(), random.randrange(1, 4000)
		try:
			if dice < 0.9:
				with socket.create_connection((host, port), timeout=5) as s:
					s.sendall(noise[n:2 * n] if dice < 0.5 else b'\x16\x03\x01\x02\x00\x01'
							+ noise[n:n + 500])
			else:
				with tls(host, port) as s:
					s.sendall(noise[n:2 * n])
		except OSError:
			pass


class Disturber:
	def __init__(self, kind, server):
		self.process = subprocess.Popen([sys.executable, __file__, kind, server.host, str(server.port)],
				stdout=subprocess.PIPE,
						text=True)
		assert self.process.stdout.readline().strip() == 'ready', 'the disturber did not start'

	def stop(self):
		assert self.process.poll() is None, 'the disturber had ended'
		self.process.kill()
		self.process.wait()


def measure(server, seconds):
	"""p50 and p99 of one caller's requests, over several connections, so that every loop of the server is asked."""
	from client import BASE, Wire
	times, wires, path = [], [Wire(server, server.token()) for _ in range(6)], '%s/groups/%s' % (BASE, server.group)
	for w in wires * 10:
		w.one('GET', path)
	until, n = time.perf_counter() + seconds, 0
	while time.perf_counter() < until:
		w, n = wires[n % len(wires)], n + 1
		began = time.perf_counter()
		a = w.one('GET', path)
		times.append(time.perf_counter() - began)
		assert a.status == 200, a.body
	for w in wires:
		w.close()
	times.sort()
	return times[len(times) // 2], times[len(times) * 99 // 100]


def accepted(server):
	"""Connections so far: shows that the disturbers did disturb."""
	text = server.anonymous.get('/metrics').text
	return sum(float(x.split()[-1])
			for x in text.splitlines() if re.match(r'\w*connections_(accepted|refused)\w*[ {]', x))


def test_others_do_not_suffer(start_server, tmp_path):
	config = tmp_path / 'limits.conf'
	config.write_text('limit.* = 1000000/1000000\n')
	server = start_server('--config', config, '--log-level', 'error', clock=None, control=False)
	measure(server, 0.5)

	def disturbed(kind):
		faults, quiet, loud, before = [], [], [], accepted(server)
		for _ in range(ROUNDS):
			quiet.append(measure(server, SECONDS))
			begun, d = accepted(server), Disturber(kind, server)
			try:
				loud.append(measure(server, SECONDS))
				# On a busy machine the disturber takes longer to be worth the name; it goes on until it is.
				client.until(lambda: accepted(server) - begun > CONNECTIONS, seconds=60,
					what='%d connections of %s' % (CONNECTIONS, kind))
			finally:
				d.stop()
			time.sleep(0.3)
		(q50, q99), (l50, l99) = [[statistics.median(x[i] for x in side) for i in (0, 1)] for side in (quiet,
				loud)]
		print('\n%-8s p50 %.2f -> %.2f ms, p99 %.2f -> %.2f ms, %d connections' % (
			kind, q50 * 1e3, l50 * 1e3, q99 * 1e3, l99 * 1e3, accepted(server) - before), end='')
		if l50 > 2 * q50 + SLACK_P50:
			faults.append('%s: p50 %.2f ms, undisturbed %.2f ms' % (kind, l50 * 1e3, q50 * 1e3))
		if l99 > 2 * q99 + SLACK_P99:
			faults.append('%s: p99 %.2f ms, undisturbed %.2f ms' % (kind, l99 * 1e3, q99 * 1e3))
		return faults
	for kind in ('slow', 'idle', 'garbage'):
		for _ in range(5):  # others disturb the machine too: what is the disturber's doing is there each time
			faults = disturbed(kind)
			if not faults:
				break
		assert not faults, '\n'.join(faults)


if __name__ == '__main__':
	most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
	resource.setrlimit(resource.RLIMIT_NOFILE, (most if most == resource.RLIM_INFINITY else min(most, 8192), most))
	{'slow': slow, 'idle': idle, 'garbage': garbage}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
