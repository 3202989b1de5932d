"""A Redis of our own for the limits: started in a temporary folder on a loopback port, or another address of the
machine beside it, ended by its own process id."""
import atexit, pathlib, shutil, signal, socket, subprocess, tempfile, time

import database

running = []


@atexit.register
def clean_up():
	for r in list(running):
		r.close()


class Redis:
	def __init__(self, host='127.0.0.1', options=()):
		self.host, self.options = host, list(map(str, options))
		self.dir = pathlib.Path(tempfile.mkdtemp(prefix='steward-redis-'))
		self.port, self.process = database.free_port(), None
		running.append(self)
		self.start()

	def start(self):
		"""Keeps nothing on disk: after a restart it is empty."""
		program = shutil.which('redis-server')
		if not program:
			raise RuntimeError('no Redis server is installed')
		self.process = subprocess.Popen([program, '--bind', '127.0.0.1', *({self.host} - {'127.0.0.1'}),
						 '--protected-mode', 'no', '--port', str(self.port), '--dir', str(self.dir),
						 '--save', '', '--appendonly', 'no', '--daemonize', 'no', '--logfile', 'log', *self.options],
						stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
						cwd=self.dir)
		until = time.monotonic() + 60
		while not self.answers():
			assert self.process.poll() is None and time.monotonic() < until, 'Redis did not start'
			time.sleep(0.02)

	def answers(self):
		try:
			with socket.create_connection(('127.0.0.1', self.port), timeout=1) as s:
				s.sendall(b'PING\r\n')
				return s.recv(16).startswith(b'+PONG')
		except OSError:
			return False

	def say(self, *words, password=None):
		"""One command, as an operator would give it. It must be taken."""
		command = lambda *words: ''.join(['*%d\r\n' % len(words)] + ['$%d\r\n%s\r\n' % (len(w), w) for w in words]).encode()
		with socket.create_connection(('127.0.0.1', self.port), timeout=5) as s:
			for c in ([command('AUTH', password)] if password else []) + [command(*words)]:
				s.sendall(c)
				answer = s.recv(65536).decode()
				assert not answer.startswith('-'), answer

	def url(self):
		return 'redis://%s:%d' % (self.host, self.port)

	def stop(self, how=signal.SIGTERM):
		if self.process:
			self.process.send_signal(how)
			self.process.wait(60)
			self.process = None

	def close(self):
		if self in running:
			running.remove(self)
			self.stop(signal.SIGKILL)
			shutil.rmtree(self.dir, ignore_errors=True)
