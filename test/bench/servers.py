"""What is measured: our server and nginx as its peer, each on a free loopback port, in a directory that goes away."""
import contextlib, json, os, pathlib, re, shutil, signal, socket, subprocess, tempfile, time
from urllib.parse import urlsplit

import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / 'build'
BASE = '/api/svc/v2'
ACCEPT = 'application/vnd.svc.2025-03-12+json'
ALIAS, ALIAS_ACCEPT = '/api/atlas/v2', 'application/vnd.atlas.2025-03-12+json'  # the same in a dialect
THREADS = 2
UNLIMITED = '1000000000'

running = []


class Trouble(Exception):
	"""A sentence for the user."""


def free_port():
	with socket.socket() as s:
		s.bind(('127.0.0.1', 0))
		return s.getsockname()[1]


def wait_for(what, until, seconds, process=None, log=None):
	end = time.monotonic() + seconds
	while True:
		found = until()
		if found:
			return found
		if process and process.poll() is not None:
			raise Trouble('%s ended with %d:\n%s' % (what, process.returncode, tail(log)))
		if time.monotonic() > end:
			raise Trouble('%s was not ready after %d s:\n%s' % (what, seconds, tail(log)))
		time.sleep(0.005)


def tail(file):
	return pathlib.Path(file).read_text(errors='replace')[-3000:] if file and pathlib.Path(file).exists() else ''


def accepts(port):
	with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', port), timeout=1):
		return True
	return False


class Workshop:
	"""The temporary directory, the certificate of both sides, and the tools that are compiled for the bench."""

	def __init__(self):
		BUILD.mkdir(exist_ok=True)
		# Below build/, not in /tmp: what is durable has to be measured on a disk.
		self.dir = pathlib.Path(tempfile.mkdtemp(prefix='bench-', dir=BUILD))
		self.cert, self.key = self.dir / 'server.crt', self.dir / 'server.key'
		self.load, self.slow_flush = self.dir / 'load', self.dir / 'slow_flush.so'

	def certify(self):
		self.run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
			 '-nodes', '-days', '30', '-subj', '/CN=localhost',
			 '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', self.key, '-out', self.cert)

	def setup(self):
		self.certify()
		compile = [os.environ.get('CC', 'cc'), '-std=gnu17', '-O2', '-D_GNU_SOURCE', '-pthread', '-Wall',
			   '-Wextra', '-include', ROOT / 'src/base/banned.h']
		parts = [HERE / name for name in ('load.c', 'link.c', 'speak.c', 'streams.c')]
		self.run(*compile, *parts, '-o', self.load, '-lssl', '-lcrypto', '-lnghttp2')
		self.run(*compile, '-shared', '-fPIC', HERE / 'slow_flush.c', '-o', self.slow_flush, '-ldl')

	def run(self, *command):
		done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
				      text=True, timeout=120)
		if done.returncode:
			raise Trouble('%s failed:\n%s' % (command[0], done.stdout[-3000:]))
		return done.stdout

	def slow(self, micros):
		"""The environment in which a flush takes so much longer."""
		return {'LD_PRELOAD': str(self.slow_flush), 'FLUSH_MICROS': str(micros)}

	def close(self):
		shutil.rmtree(self.dir, ignore_errors=True)


class Process:
	def start(self, command, log, env=None):
		self.log = log
		with open(log, 'ab') as out:
			# A session of its own, as databases have: a busy machine may be shared by sessions.
			self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out,
							stderr=out, env={**os.environ, **(env or {})},
							start_new_session=True)
		running.append(self)

	def stop(self):
		if self not in running:
			return
		running.remove(self)
		self.process.send_signal(signal.SIGTERM)
		try:
			self.process.wait(20)
		except subprocess.TimeoutExpired:
			self.process.kill()
			self.process.wait()

	def pids(self):
		"""The process and its children."""
		pid = self.process.pid
		children = pathlib.Path('/proc/%d/task/%d/children' % (pid, pid)).read_text().split()
		return [pid] + list(map(int, children))

	def pss(self):
		"""Bytes of memory, what is shared counted by its share."""
		text = ''.join(pathlib.Path('/proc/%d/smaps_rollup' % pid).read_text() for pid in self.pids())
		return sum(map(int, re.findall(r'^Pss:\s+(\d+) kB', text, re.M))) * 1024

	def cpu_seconds(self):
		ticks = 0
		for pid in self.pids():
			fields = pathlib.Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()
			ticks += int(fields[11]) + int(fields[12])
		return ticks / os.sysconf('SC_CLK_TCK')


def stop_all():
	for one in list(reversed(running)):
		one.stop()


NGINX = '''
daemon off;
{user}
worker_processes {threads};
worker_rlimit_nofile {files};
error_log {dir}/error.log warn;
pid {dir}/pid;
events {{ worker_connections 4096; }}
http {{
	access_log off;
	default_type application/json;
	sendfile on;
	tcp_nopush on;
	tcp_nodelay on;
	keepalive_timeout 75;
	keepalive_requests 1000000000;
	open_file_cache max=100 inactive=3600s;
	open_file_cache_valid 3600s;
	client_body_temp_path {dir}/t1;
	proxy_temp_path {dir}/t2;
	fastcgi_temp_path {dir}/t3;
	uwsgi_temp_path {dir}/t4;
	scgi_temp_path {dir}/t5;
	ssl_certificate {cert};
	ssl_certificate_key {key};
	ssl_protocols TLSv1.2 TLSv1.3;
	ssl_session_cache shared:SSL:10m;
	server {{
		listen 127.0.0.1:{port} ssl http2 reuseport;
		root {dir}/www;
	}}
}}
'''


class Nginx(Process):
	"""nginx with static files: what a server costs that does nothing but serve."""
	name = 'nginx'

	def __init__(self, workshop, files_max):
		self.dir = pathlib.Path(tempfile.mkdtemp(prefix='nginx-', dir=workshop.dir))
		self.www = self.dir / 'www'
		self.www.mkdir()
		self.port = free_port()
		config = self.dir / 'nginx.conf'
		# Workers as whoever runs this: the directory is nobody else's to read.
		user = 'user root;' if os.geteuid() == 0 else ''
		config.write_text(NGINX.format(user=user, threads=THREADS, dir=self.dir, files=files_max,
					       cert=workshop.cert, key=workshop.key, port=self.port))
		binary = shutil.which('nginx', path=os.environ.get('PATH', '') + ':/usr/sbin')
		if not binary:
			raise Trouble('nginx is missing: apt-get install nginx-light')
		errors = self.dir / 'error.log'
		self.start([binary, '-p', self.dir, '-e', errors, '-c', config], self.dir / 'output.log')
		wait_for('nginx', lambda: accepts(self.port), 10, self.process, errors)

	def serve(self, name, body):
		(self.www / name).write_bytes(body)
		return '/' + name


def binary():
	given = os.environ.get('STEWARD_BIN')
	for path in [given] if given else [BUILD / 'release/steward', BUILD / 'release/src/steward']:
		if os.access(path, os.X_OK):
			return str(path)
	raise Trouble('no steward binary in build/release: run script/bench, or name one in STEWARD_BIN')


class Steward(Process):
	name = 'steward'

	def binary(self):
		return binary()

	def __init__(self, workshop, *args, data=None, port=None, env=None, wait=True):
		self.workshop = workshop
		self.data = pathlib.Path(data or tempfile.mkdtemp(prefix='data-', dir=workshop.dir))
		self.port = port or free_port()
		self.base_url = 'https://127.0.0.1:%d' % self.port
		self.output = pathlib.Path(tempfile.mkdtemp(prefix='steward-', dir=workshop.dir)) / 'output.log'
		self.store = args[args.index('--store') + 1] if '--store' in args else None
		self.began = time.perf_counter()
		self.start([self.binary(), 'serve', '--data', self.data, '--listen', '127.0.0.1:%d' % self.port,
			    '--tls-cert', workshop.cert, '--tls-key', workshop.key, '--threads', THREADS,
			    *(() if '--log-level' in args else ('--log-level', 'warn')),
			    *(() if '--engine' in args else ('--engine', 'simulated')), *args], self.output, env)
		self.session = requests.Session()
		self.session.trust_env = False
		self.session.verify = str(workshop.cert)
		self._token = None
		if wait:
			wait_for('steward', lambda: re.search(r'^steward: ready ', tail(self.output), re.M), 60,
				 self.process, self.output)
			self.bootstrap = json.loads((self.data / 'bootstrap.json').read_text())

	def token(self):
		if not self._token:
			account = self.bootstrap['serviceAccount']
			answer = self.call('POST', '/api/oauth/token', data={'grant_type': 'client_credentials'},
					   auth=(account['clientId'], account['clientSecret']))
			self._token = answer.json()['access_token']
		return self._token

	def call(self, method, path, **kw):
		kw.setdefault('timeout', 30)
		answer = self.session.request(method, self.base_url + path, **kw)
		if answer.status_code >= 300:
			raise Trouble('%s %s: %d %s' % (method, path, answer.status_code, answer.text[:500]))
		return answer

	def headers(self, token=None):
		return {'Authorization': 'Bearer ' + (token or self.token()), 'Accept': ACCEPT}

	def api(self, method, path, token=None, **kw):
		return self.call(method, BASE + path, headers=self.headers(token), **kw)

	def raise_limits(self):
		"""Buckets that no run can empty; in force within a second."""
		self.workshop.run(self.binary(), 'limits', 'set', '--data', self.data, *(('--store', self.store) if self.store else ()),
				  '--all', '--capacity', UNLIMITED, '--refill', UNLIMITED)
		limit = lambda: self.api('GET', '/groups').headers.get('RateLimit-Limit')
		wait_for('the raised limit', lambda: limit() == UNLIMITED, 10)

	def disk_bytes(self):
		return sum(f.stat().st_size for f in self.data.rglob('*') if f.is_file())
