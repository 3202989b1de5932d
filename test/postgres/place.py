"""A service with real databases, clients as users have them, and the look for what stays behind.

What a place has started is known by where it works, where it listened and which shared memory it had, so that nothing
else that runs on the machine is taken for its own."""
import grp, os, pathlib, pwd, re, socket, subprocess, threading, time

import client, databases
from client import ok
from databases import listening, until, working_in

TRUST = ('/etc/ssl/certs', '/usr/local/share/ca-certificates')
CERTIFICATES = ('.crt', '.key', '.pem', '.crl')
KEPT = {'pool', 'run', 'ca', 'throwaway', 'lib', 'federation'}  # of the engine: prepared directories and what is empty when nothing runs


def machine():
	"""What a service must not add to."""
	return {'users': {u.pw_name for u in pwd.getpwall()}, 'groups': {g.gr_name for g in grp.getgrall()},
		'trusted certificates': {str(f) for d in TRUST for f in pathlib.Path(d).glob('*')}}


def names_of(folder):
	return set(os.listdir(folder)) if os.path.isdir(folder) else set()


def files_below(folder, *ends):
	"""Also while others are taken away there."""
	return [os.path.join(at, n) for at, _, names in os.walk(folder) for n in names if n.endswith(ends)]


class Place(databases.Site):
	def __init__(self, *args, clock=None):
		super().__init__(*args, clock=clock)
		self.memory = set()

	def start(self):
		"""With the limits that the API has, because exchanges are recorded."""
		self.pool_in()
		self.server = client.Server('--engine', 'postgres', *self.args, data_dir=self.data, clock=self.clock)
		return self.server

	def wait(self, path, state='IDLE', seconds=240):
		"""The document, once it is in this state; None, once it is gone."""
		end, pause = time.monotonic() + seconds, 0.02
		while True:
			self.pass_time()
			r = self.server.get(path)
			if state is None and r.status_code == 404:
				return None
			if state and ok(r)['stateName'] == state:
				self.look()
				return r.json()
			assert time.monotonic() < end, '%s: not %s within %d s: %s %s' % (
				path, state, seconds, r.headers.get('X-Steward-Progress'), r.text)
			time.sleep(pause)
			pause = pause if self.clock else min(pause * 1.1, 0.2)

	def look(self):
		"""Remembers where the databases listen and which shared memory they have."""
		for pid in working_in(self.root):
			try:
				maps = pathlib.Path('/proc/%d/maps' % pid).read_text()
			except OSError:
				continue
			self.memory |= set(re.findall(r'/dev/shm/\S+', maps))
		for file in files_below(self.data / 'engine', 'postmaster.pid'):
			try:
				lines = open(file).read().split('\n')
				self.places.add('%s:%s' % (lines[5], lines[3]))
				self.memory.add('shm %s' % lines[6].split()[1])
			except (OSError, IndexError):
				continue  # it starts or ends just now

	def clusters(self):
		"""Paths of all that there are."""
		s, found = self.server, []
		for group in ok(s.get('/groups?itemsPerPage=500'))['results']:
			for kind in ('clusters', 'flexClusters'):
				base = '/groups/%s/%s' % (group['id'], kind)
				found += ['%s/%s' % (base, c['name']) for c in ok(s.get(base))['results']]
		return found

	def end(self):
		"""Takes all down as users do, and looks whether anything of it is left."""
		self.look()
		try:
			if self.server and not self.server.ended:
				there = self.clusters()
				for path in there:
					assert self.server.delete(path).status_code in (202, 204, 409), path
				for path in there:
					self.wait(path, None)
				self.server.stop()
			left = self.left()
		finally:
			self.wipe()
		assert not left, 'left behind: ' + ', '.join(left)
		assert not self.root.exists()

	def left(self):
		engine, out = self.data / 'engine', []
		out += ['process %d' % p for p in working_in(self.root)]
		out += ['directory %s' % (engine / n) for n in names_of(engine) - KEPT]
		out += ['in %s: %s' % (d, n) for d in ('run', 'throwaway', 'federation') for n in names_of(engine / d)]
		out += ['directory %s' % os.path.realpath(engine)] if engine.is_symlink() else []
		out += ['certificate %s' % f for f in files_below(engine, *CERTIFICATES)]
		out += ['port %s' % p for p in self.places & listening()]
		segments = {'shm ' + line.split()[1] for line in open('/proc/sysvipc/shm').read().splitlines()[1:]}
		out += ['shared memory %s' % m for m in self.memory if m in segments or os.path.exists(m)]
		assert self.places, 'no database was ever seen'
		return out


def psql(string, statement, user, password, prefix=(), **settings):
	"""(whether it worked, what was said) with a connection string as the API gives it."""
	env = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'PGUSER': user, 'PGPASSWORD': password,
	       'PGCONNECT_TIMEOUT': '30', **settings}
	done = subprocess.run([*prefix, 'psql', '-XAtqw', '-v', 'ON_ERROR_STOP=1', '-d', string, '-c', statement], stdout=subprocess.PIPE,
			      stderr=subprocess.STDOUT, text=True, timeout=180, env=env)
	return done.returncode == 0, done.stdout.strip()


class Elsewhere:
	"""Clients at another address: connections are passed on from there, since psql cannot choose where it comes from.
	TLS goes through unopened, from psql to the server."""

	def __init__(self, source, string):
		self.source, self.sockets = source, []
		hosts = string.split('://')[1].split('/')[0].split(',')
		targets = [(a, int(h.rsplit(':', 1)[1])) for h, a in zip(hosts, re.search('hostaddr=([^&]*)', string).group(1).split(','))]
		places = [self._listen(t) for t in targets]
		there = ','.join('%s:%d' % (h.rsplit(':', 1)[0], port) for h, port in zip(hosts, places))
		string = string.replace(','.join(hosts), there)
		self.string = re.sub('hostaddr=[^&]*', 'hostaddr=' + ','.join(['127.0.0.1'] * len(hosts)), string)

	def _listen(self, target):
		listener = socket.create_server(('127.0.0.1', 0))
		self.sockets.append(listener)
		threading.Thread(target=self._accept, args=(listener, target), daemon=True).start()
		return listener.getsockname()[1]

	def _accept(self, listener, target):
		while True:
			try:
				near = listener.accept()[0]
			except OSError:
				return
			try:
				far = socket.create_connection(target, source_address=(self.source, 0))
			except OSError:
				near.close()
				continue
			self.sockets += [near, far]
			for a, b in ((near, far), (far, near)):
				threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

	@staticmethod
	def _pass(a, b):
		try:
			while data := a.recv(65536):
				b.sendall(data)
			b.shutdown(socket.SHUT_WR)
		except OSError:
			pass

	def __enter__(self):
		return self

	def __exit__(self, *args):
		for s in self.sockets:
			try:
				s.shutdown(socket.SHUT_RDWR)
			except OSError:
				pass
			s.close()
