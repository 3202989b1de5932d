"""Clients that mean harm, in a process of their own: this file, run as a script.

  hostile.py HOST PORT KIND COUNT [TOKEN]

Each kind holds COUNT connections, from a hundred addresses of the loopback network, and does what costs a server memory:

  windows   HTTP/2, a hundred requests for large answers and no window to send them through
  readers   HTTP/1.1, a pipeline of requests for large answers, of which nothing is read
  bodies    half a body each: a third to calls without credentials, a third with a tenant's, a third to what asks for none
  headers   header blocks of 30 KB that do not end

"ready" is printed when all of them have sent; who is cut off comes back. The process ends when its input does."""
import os, resource, socket, ssl, struct, subprocess, sys, threading, time

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
ADDRESSES = 100
BODY = 1 << 20


def frame(kind, flags, stream, payload):
	return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


def get_block(path, authorization=b''):
	"""GET https://x/path, in HPACK without a table."""
	more = b'\x0f\x08' + bytes([len(authorization)]) + authorization if authorization else b''
	return b'\x82\x87\x04' + bytes([len(path)]) + path + b'\x01\x01x' + more


def context(alpn):
	c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
	c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
	c.set_alpn_protocols([alpn])
	return c


class Hostile:
	def __init__(self, host, port, kind, count, token=''):
		self.host, self.port, self.kind, self.count, self.token = host, port, kind, int(count), token
		self.context = context('h2' if kind == 'windows' else 'http/1.1')
		self.made = 0

	def words(self, n):
		"""What the n-th connection says."""
		if self.kind == 'windows':
			settings = frame(4, 0, 0, struct.pack('>HI', 4, 0))
			paths = [b'/metrics', b'/openapi.json']
			return PREFACE + settings + b''.join(frame(1, 5, 2 * i + 1, get_block(paths[i % 2])) for i in range(100))
		if self.kind == 'readers':
			return (b'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n' + b'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n') * 50
		if self.kind == 'headers':
			return b'GET /api/svc/v2/groups HTTP/1.1\r\nHost: x\r\n' + b'X-Slow: ' + b'a' * 7000 + b'\r\nX-More: ' + b'b' * 23000
		path = ['/api/svc/v2/groups', '/api/svc/v2/groups', '/api/oauth/token'][n % 3]
		length = BODY if n % 3 < 2 else 16000
		head = 'POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n' % (path, length)
		if n % 3 == 1:
			head += 'Authorization: Bearer %s\r\n' % self.token
		return head.encode() + b'\r\n' + b' ' * (length // 2)

	def connect(self):
		n, self.made = self.made, self.made + 1
		raw = socket.socket()
		raw.settimeout(20)
		raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
		raw.bind(('127.0.1.%d' % (n % ADDRESSES + 1), 0))
		raw.connect((self.host, self.port))
		s = self.context.wrap_socket(raw, server_hostname='localhost')
		s.setblocking(False)
		return [s, self.words(n)]

	def send(self, one):
		"""As much as the server takes. False when it has hung up."""
		s, rest = one
		try:
			while one[1]:
				one[1] = one[1][s.send(one[1][:16384]):]
			if self.kind in ('headers', 'bodies'):
				return bool(s.recv(4096))
		except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
			return True
		except OSError:
			return False
		return True

	def gone(self, s):
		"""Whether the server has closed it, without reading what it sent."""
		try:
			return not socket.socket(fileno=os.dup(s.fileno())).recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
		except BlockingIOError:
			return False
		except OSError:
			return True

	def run(self):
		held, told = [], False
		until = time.monotonic() + 120
		while True:
			for one in [one for one in held if told or one[1]]:
				if not self.send(one) or (told and self.kind in ('windows', 'readers') and self.gone(one[0])):
					held.remove(one)
					one[0].close()
			for _ in range(min(50, self.count - len(held))):
				try:
					held.append(self.connect())
				except OSError:
					if not told and time.monotonic() > until:
						raise
			# Some are refused again and again: that is as it should be.
			if self.made >= self.count and len(held) >= self.count * 0.9 and not told:
				told = True
				os.nice(19)
				print('ready', flush=True)
			if told:
				time.sleep(0.5)


class Crowd:
	"""All four kinds at once, seen from a test."""

	def __init__(self, server, connections=2000, token='', kinds=('windows', 'readers', 'bodies', 'headers')):
		self.processes = [subprocess.Popen([sys.executable, __file__, server.host, str(server.port), kind,
			str(connections // len(kinds)), token], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
			for kind in kinds]

	def ready(self):
		for p in self.processes:
			assert p.stdout.readline().strip() == 'ready', 'the hostile clients did not start'

	def stop(self):
		for p in self.processes:
			p.kill()
			p.wait()


def main(words):
	most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
	resource.setrlimit(resource.RLIMIT_NOFILE, (most if most == resource.RLIM_INFINITY else min(most, 8192), most))
	threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
	Hostile(words[0], int(words[1]), *words[2:]).run()


if __name__ == '__main__':
	main(sys.argv[1:])
