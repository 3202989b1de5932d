"""A PostgreSQL of our own for a store: started in a temporary folder, ended by its own process id."""
import atexit, collections, os, pathlib, pwd, random, shutil, signal, socket, subprocess, tempfile, time

import psycopg2
from psycopg2.extensions import new_type, register_type, string_types

USER = 'steward'  # who it runs as when we are root: PostgreSQL refuses to be root
running = []
# Values as the server writes them.
WRITTEN = new_type(tuple(string_types), 'WRITTEN', lambda value, _: value)
held = collections.deque(maxlen=200)  # the names of the ports that were given away last
# Where databases lie: names of sockets are short, and the databases' system users pass through. script/test has a directory of its own
# for what its tests leave there, unless all of /var/tmp is theirs.
SHORT = os.path.join(os.environ.get('STEWARD_TEST_RUN', '/nonexistent'), 'var')
if not os.path.isdir(SHORT):
	SHORT = '/var/tmp'
template = None  # of a data directory: initdb takes longer than a copy of what it makes


@atexit.register
def clean_up():
	for d in list(running):
		d.close()
	if template:
		shutil.rmtree(template.parent, ignore_errors=True)


def folder():
	found = sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin/initdb'), key=lambda p: int(p.parts[4]))
	if not found:
		raise RuntimeError('no PostgreSQL server is installed')
	return found[-1].parent


def free_port(address='127.0.0.1'):
	"""For a listener that starts later, or more than once. Below the ports that the system gives away by itself, so that no
	connection gets it meanwhile; and held by name, so that no other test does, of this run or of one beside it."""
	while True:
		port = random.SystemRandom().randrange(10000, 20000)
		name = socket.socket(socket.AF_UNIX)
		try:
			name.bind('\0steward-test-port-%d' % port)
			with socket.socket() as s:
				s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
				s.bind((address, port))
			held.append(name)
			return port
		except OSError:
			name.close()


def own_folder():
	made = pathlib.Path(tempfile.mkdtemp(prefix='sw-pg-', dir=SHORT))
	os.chmod(made, 0o755)
	if os.getuid() == 0:
		shutil.chown(made, USER)
	return made


class Database:
	"""One server with the database `steward` in it. On a loopback address, with a socket in its folder beside."""
	kept = None  # a database's name and a connection to it

	def __init__(self, host='127.0.0.1', **settings):
		self.bin = folder()
		self.dir = own_folder()
		self.data = self.dir / 'data'
		self.host, self.port = host, free_port()
		self.process = None
		running.append(self)
		# Plans that are kept: to plan a statement anew takes longer than to run it on so few rows. And nobody looks through hundreds
		# of databases all the time for what to vacuum.
		self.settings = {'listen_addresses': host, 'port': self.port, 'unix_socket_directories': self.dir,
				 'max_connections': 200, 'fsync': 'off', 'log_min_messages': 'warning',
				 'plan_cache_mode': 'force_generic_plan', 'autovacuum': 'off', **settings}
		self.make()
		with open(self.data / 'pg_hba.conf', 'a') as f:
			f.write('host all all 0.0.0.0/0 trust\n')
		self.start()
		self.sql('CREATE DATABASE steward', database='postgres')

	def make(self):
		global template
		if not template:
			made = own_folder() / 'data'
			self.run('initdb', '-D', made, '-U', 'steward', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync')
			template = made
		subprocess.run(['cp', '-a', template, self.data], check=True)

	def as_user(self):
		return {'user': USER, 'group': pwd.getpwnam(USER).pw_gid, 'extra_groups': []} if os.getuid() == 0 else {}

	def run(self, tool, *args):
		done = subprocess.run([self.bin / tool, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
				      text=True, cwd=self.dir, **self.as_user())
		assert done.returncode == 0, done.stdout
		return done.stdout

	def start(self):
		log = open(self.dir / 'log', 'ab')
		options = [w for k, v in self.settings.items() for w in ('-c', '%s=%s' % (k, v))]
		self.process = subprocess.Popen([self.bin / 'postgres', '-D', self.data, *map(str, options)], stdout=log,
						stderr=log, cwd=self.dir, **self.as_user())
		log.close()
		until = time.monotonic() + 120
		while subprocess.run([self.bin / 'pg_isready', '-q', '-h', self.dir, '-p', str(self.port)]).returncode:
			assert self.process.poll() is None and time.monotonic() < until, (self.dir / 'log').read_text()[-3000:]
			time.sleep(0.05)

	def stop(self, how=signal.SIGINT):
		"""SIGINT: fast; SIGQUIT: as if it had crashed."""
		self.forget()
		if self.process:
			self.process.send_signal(how)
			self.process.wait(120)
			self.process = None

	def url(self, database='steward'):
		return 'postgresql://steward@%s:%d/%s' % (self.host, self.port, database)

	def rows(self, text, database='steward', kept=False):
		"""What the last statement gives, each value as the server writes it; none as an empty text. On a connection of its own, or
		on one that is kept for whoever asks the same database again and again."""
		if kept and self.kept and self.kept[0] == database:
			connection = self.kept[1]
		else:
			connection = psycopg2.connect(host=str(self.dir), port=self.port, user='steward', dbname=database)
			connection.autocommit = True
			register_type(WRITTEN, connection)
			if kept:
				self.forget()
				self.kept = database, connection
		try:
			cursor = connection.cursor()
			cursor.execute(text)
			return [tuple(v or '' for v in row) for row in cursor.fetchall()] if cursor.description else []
		except psycopg2.Error:
			self.forget()
			raise
		finally:
			if not kept:
				connection.close()

	def forget(self):
		"""A database that somebody is connected to cannot be copied."""
		if self.kept:
			self.kept[1].close()
			self.kept = None

	def sql(self, text, database='steward'):
		"""The same as lines."""
		return '\n'.join('|'.join(row) for row in self.rows(text, database)).strip()

	def fresh(self, template='template1'):
		"""The URL of an empty database, or of a copy of one that is not in use."""
		self.made = getattr(self, 'made', 0) + 1
		name = 'steward_%d' % self.made
		self.forget()
		# Newer servers write all of them to the log unless told to copy the files.
		strategy = ' STRATEGY file_copy' if int(self.bin.parts[4]) >= 15 else ''
		self.sql('CREATE DATABASE %s TEMPLATE %s%s' % (name, template, strategy), database='postgres')
		return self.url(name)

	def close(self):
		if self in running:
			running.remove(self)
			self.stop()
			shutil.rmtree(self.dir, ignore_errors=True)
