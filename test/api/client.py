"""Starts the real binary and talks to it.

Two ways of talking: Api (requests, one call at a time, what a user's tool would do) and Wire (a socket with pipelined
HTTP/1.1, for the sweeps over all operations, where requests would cost more than the server)."""
import atexit, base64, calendar, contextlib, functools, json, os, pathlib, pty, re, select, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading, time, uuid
from urllib.parse import unquote, urlsplit

import database, dialect, direct, redis_server
import psycopg2, requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT = database.SHORT
BUILD = pathlib.Path(os.environ.get('STEWARD_BUILD', ROOT / 'build'))
EXCHANGES = BUILD / 'exchanges.jsonl'
OLDER = BUILD / 'older-versions.jsonl'  # in forms that only an older version has; the reference knows the newest alone
SWEEP = BUILD / 'sweep.jsonl'
BASE = '/api/svc/v2'
BASE_V1 = '/api/svc/v1.0'
ID = re.compile(r'^[0-9a-f]{24}$')
NO_ID = 'ffffffff0123456789abcdef'
TOKEN_SECONDS = 3600
SANITIZER = re.compile(r'ERROR: (Address|Leak|Memory)Sanitizer|runtime error:|WARNING: ThreadSanitizer|Assertion .* failed')

FLOODED = re.compile(rb'HTTP/1\.1 (\d+)(?:[^\n]*\n(?!\r\n))*?ratelimit-remaining: *(\d+)', re.I)

# STEWARD_TEST_STORE=postgresql runs the suite on a PostgreSQL that it starts: each data directory has a database there.
REMOTE = os.environ.get('STEWARD_TEST_STORE') == 'postgresql'
# STEWARD_TEST_LIMITS=redis has the buckets in a Redis that the run starts; servers with different keys do not meet there.
SHARED = os.environ.get('STEWARD_TEST_LIMITS') == 'redis'
redis = None
stores = {}  # data directory -> URL
running = []  # every server that was started and not yet ended
shown = []    # those whose log a failing test should show
elsewhere = set()  # where databases lie whose data directory was no place for them
stopping = False  # the tests were interrupted: what a fixture finds is what they had not come to
folders = []  # what they wrote; kept after the run where STEWARD_KEEP is set


def interrupted(number, _):
	"""The tests end as if by hand: fixtures are torn down, and clean_up() runs. Once, since that must not be interrupted itself."""
	global stopping
	stopping = True
	for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
		signal.signal(s, signal.SIG_IGN)
	raise KeyboardInterrupt


# By itself Python dies of SIGTERM without a word, and does not hear SIGINT where a shell has put it into the background.
if threading.current_thread() is threading.main_thread():
	for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
		signal.signal(_number, interrupted)


def working_in(directory):
	"""Processes that work below a directory: servers and all that they forked."""
	found = []
	for p in pathlib.Path('/proc').glob('[0-9]*'):
		try:
			if os.readlink(p / 'cwd').startswith(str(directory) + '/') and (p / 'stat').read_text().rsplit(')', 1)[1][1] != 'Z':
				found.append(int(p.name))
		except OSError:
			continue
	return found


def processes_end(directory):
	"""Ends what works there. SIGQUIT first: a database server that dies of SIGKILL leaves its shared memory on the machine. Those that
	are stopped hear SIGKILL alone."""
	for number, seconds in ((signal.SIGQUIT, 5), (signal.SIGKILL, 20)):
		end = time.monotonic() + seconds
		for pid in working_in(directory):
			with contextlib.suppress(OSError):
				os.kill(pid, number)
		while working_in(directory) and time.monotonic() < end:
			time.sleep(0.02)


def databases_end(engine):
	"""Real databases outlive their service, and may lie elsewhere: what a failed test has left of them is ended."""
	if not engine.exists():
		return
	real = str(engine.resolve())
	processes_end(real)
	if engine.is_symlink():
		shutil.rmtree(real, ignore_errors=True)


def elsewhere_note(data_dir):
	engine = pathlib.Path(data_dir) / 'engine'
	if engine.is_symlink():
		elsewhere.add(engine.resolve())


@atexit.register
def clean_up():
	for s in list(running):
		s.kill()
	for e in elsewhere:
		databases_end(e)
		shutil.rmtree(e, ignore_errors=True)
	for f in folders:
		if not os.environ.get('STEWARD_KEEP'):
			databases_end(f / 'data' / 'engine')
			shutil.rmtree(f, ignore_errors=True)


def binary():
	given = os.environ.get('STEWARD_BIN')
	for path in [given] if given else [BUILD / 'asan' / 'steward', BUILD / 'steward']:
		if path and os.access(path, os.X_OK):
			return os.path.abspath(path)
	raise RuntimeError('no steward binary: build it, or name it in STEWARD_BIN')


def environment(env=None, leaks=False):
	"""Leaks are looked for where it is asked for: the search at the exit of a sanitized process takes seconds. Of who has allocated
	what, as many callers are written down as a report needs to be understood: a third of the time to allocate goes there."""
	out = {**os.environ, **(env or {})}
	out['ASAN_OPTIONS'] = ':'.join(filter(None, ['malloc_context_size=10', out.get('ASAN_OPTIONS'), 'detect_leaks=%d' % leaks]))
	return out


def store_of(data_dir):
	"""The URL of a data directory's store; None: it is in the directory."""
	global postgres
	if not REMOTE:
		return None
	if not stores:
		postgres = database.Database()
	key = os.path.abspath(data_dir)
	if key not in stores:  # the first service makes its tables itself
		stores[key] = postgres.fresh(template=with_tables()) if stores else postgres.fresh()
	return stores[key]


@functools.cache
def with_tables():
	"""The name of a database in which the store's tables are made, and nothing is in them."""
	url = postgres.fresh()
	cli('limits', 'list', '--data', os.devnull, '--store', url)
	return url.rsplit('/', 1)[1]


def limits_url():
	global redis
	if not redis:
		redis = redis_server.Redis()
	return redis.url()


def clone(data_dir, copy):
	"""A stopped service's data directory again, with its store."""
	shutil.copytree(data_dir, copy)
	if REMOTE:
		stores[os.path.abspath(copy)] = postgres.fresh(template=store_of(data_dir).rsplit('/', 1)[1])


def execute(data_dir, sql):
	"""Behind the store's back."""
	if REMOTE:
		postgres.sql('SET search_path TO steward; ' + sql, database=store_of(data_dir).rsplit('/', 1)[1])
		return
	with contextlib.closing(sqlite3.connect(pathlib.Path(data_dir) / 'steward.db')) as db, db:
		db.execute(sql)


def unique(prefix='p'):
	return prefix + '-' + uuid.uuid4().hex[:12]


def on_terminal(args, env=None, cwd=None):
	"""Runs the binary once on a terminal of its own: what that saw, and the exit code."""
	program, env = os.path.abspath(binary()), environment(env)
	pid, master = pty.fork()
	if pid == 0:
		os.chdir(cwd or '.')
		os.execve(program, [program, *map(str, args)], env)
	seen = b''
	while select.select([master], [], [], 60)[0]:
		try:
			more = os.read(master, 65536)
		except OSError:
			break
		if not more:
			break
		seen += more
	os.close(master)
	_, status = os.waitpid(pid, 0)
	return seen.replace(b'\r\n', b'\n'), os.waitstatus_to_exitcode(status)


def cli(*args, check=True, timeout=180, env=None, cwd=None):
	"""Runs the binary once, as an operator would."""
	data = [os.path.abspath(b) for a, b in zip(args, args[1:]) if a == '--data']
	if data and data[0] in stores:
		env = {'STEWARD_STORE': stores[data[0]], **(env or {})}
	done = subprocess.run([binary(), *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
			      timeout=timeout, env=environment(env), cwd=cwd)
	if data and args[0] == 'serve':  # it may have prepared databases before it ended
		elsewhere_note(data[0])
	assert not SANITIZER.search(done.stderr), done.stderr
	if check:
		assert done.returncode == 0, 'steward %s: exit %d\n%s%s' % (' '.join(map(str, args)), done.returncode,
									    done.stdout, done.stderr)
	return done


def database_processes(folder):
	"""Process id -> the file that it runs, of the database servers whose data lies there."""
	out = {}
	for p in pathlib.Path('/proc').glob('[0-9]*'):
		try:
			words = (p / 'cmdline').read_bytes().split(b'\0')
			if words[0].endswith(b'/postgres') and any(w.startswith(os.fsencode(folder)) for w in words):
				out[int(p.name)] = os.readlink(p / 'exe')
		except OSError:
			pass
	return out


def folder_end(folder):
	"""Removes a folder with data directories, after it has ended the services there, and then what a test that failed has left of their
	databases: those go on when the service ends, and are started again while it does not."""
	there = [s for s in running if str(s.data_dir).startswith(str(folder) + '/')]
	try:
		for s in there:
			s.stop()
	finally:
		for s in there:
			s.kill()
		processes_end(folder)
		shutil.rmtree(folder, ignore_errors=True)


class Commands:
	"""Runs commands as cli() does, in processes that are forked from one that has started; see cli_server.c. Where that is not built,
	each program is started."""

	def __init__(self):
		path = pathlib.Path(binary()).parent / 'test' / 'cli_server'
		self.socket = None
		if os.access(path, os.X_OK):
			self.socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
			self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 19)
			self.process = subprocess.Popen([path, str(other.fileno())], pass_fds=[other.fileno()], env=environment())
			other.close()
			self.socket.settimeout(180)

	def give(self, args, stdin=b'', env=None, cwd='.'):
		"""As subprocess.run() does, in bytes. Only with a socket."""
		words = [binary(), *map(str, args)]
		text = [str(cwd), str(len(words)), *words, *('%s=%s' % x for x in environment(env).items())]
		with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
			given.write(stdin)
			given.seek(0)
			socket.send_fds(self.socket, [b''.join(os.fsencode(w) + b'\0' for w in text)], [f.fileno() for f in (given, out, err)])
			try:
				code = os.waitstatus_to_exitcode(int.from_bytes(self.socket.recv(8), sys.byteorder))
			except TimeoutError:  # its answer would be taken for the next one's
				self.socket.close()
				self.socket = None
				raise
			out.seek(0)
			err.seek(0)
			return subprocess.CompletedProcess(words, code, out.read(), err.read())

	def run(self, *args, check=True, env=None, cwd='.'):
		if not self.socket:
			return cli(*args, check=check, env=env, cwd=cwd)
		done = self.give(args, env=env, cwd=cwd)
		done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
		assert not SANITIZER.search(done.stderr), done.stderr
		if check:
			assert done.returncode == 0, 'steward %s: exit %d\n%s%s' % (' '.join(done.args[1:]), done.returncode, done.stdout, done.stderr)
		return done

	def close(self):
		if self.socket:
			self.socket.close()
			assert self.process.wait(60) == 0


class Bearer(requests.auth.AuthBase):
	def __init__(self, token):
		self.token = token

	def __call__(self, request):
		request.headers['Authorization'] = 'Bearer ' + (self.token() if callable(self.token) else self.token)
		return request


def scraping(data_dir):
	"""What a Prometheus shows to a service with that data directory."""
	return {'Authorization': 'Bearer ' + (pathlib.Path(data_dir) / 'metrics.token').read_text().strip()}


class Api:
	"""One caller's session. Paths without /api are below the v2 base."""

	def __init__(self, server, auth=None):
		self.server = server
		self.session = requests.Session()
		self.session.trust_env = False
		self.session.verify = server.ca_file
		self.session.auth = auth
		self.session.headers.clear()
		self.session.mount('https://', server.lines)
		server.sessions.append(self.session)

	def request(self, method, path, **kw):
		if not path.startswith(('/api', 'https:', '/healthz', '/readyz', '/metrics', '/openapi')):
			path = BASE + path
		url = path if path.startswith('https:') else self.server.base_url + path
		kw.setdefault('timeout', 60)
		below = urlsplit(url).path
		if path == '/metrics' and 'headers' not in kw:
			kw['headers'] = scraping(self.server.data_dir)
		named = self.server.versions.headers(method, unquote(below[len(BASE):]), kw.get('json')) \
			if self.server.versions and 'headers' not in kw and below.startswith(BASE) else None
		if named:
			kw['headers'] = named[1]
		r = dialect.ask(self.session, method, url, **kw)
		if named:
			self.server.versions.note(named[0], r.status_code)
		return r

	def get(self, path, **kw):
		return self.request('GET', path, **kw)

	def head(self, path, **kw):
		return self.request('HEAD', path, **kw)

	def post(self, path, json=None, **kw):
		return self.request('POST', path, json=json, **kw)

	def put(self, path, json=None, **kw):
		return self.request('PUT', path, json=json, **kw)

	def patch(self, path, json=None, **kw):
		return self.request('PATCH', path, json=json, **kw)

	def delete(self, path, **kw):
		return self.request('DELETE', path, **kw)

	def project(self, name=None, org=None, **more):
		"""A new project, as its document."""
		body = {'name': name or unique(), 'orgId': org or self.server.org, **more}
		return ok(self.post('/groups', json=body))


def until(check, seconds=120, what='it', longest=0.1):
	"""What check() gives once it is true of something. longest: pause between two looks; where a look is dear, a longer one. What
	takes seconds is looked at less often: asking must not use up the buckets, which a virtual clock does not fill."""
	begun = time.monotonic()
	pause = longest / 10
	while True:
		value = check()
		if value:
			return value
		waited = time.monotonic() - begun
		assert waited < seconds, '%s did not happen in %d s' % (what, seconds)
		time.sleep(pause)
		pause = min(pause * 1.2, max(longest, min(waited / 20, 0.5)))


def jobs_due(server, now):
	"""How many jobs are to run at that moment, at which the virtual clock stands. It tells no milliseconds: the last job has them."""
	at = calendar.timegm(time.strptime(now, '%Y-%m-%dT%H:%M:%SZ')) * 1000
	sql = "SELECT count(*) FROM job j WHERE state = 'running' OR (state = 'queued' AND due_ms <= %d + (SELECT coalesce(max(updated_ms), 0) " \
		"%% 1000 FROM job) AND (subject = '' OR NOT EXISTS (SELECT 1 FROM job b WHERE b.subject = j.subject AND b.%s < j.%s " \
		"AND b.state IN ('queued', 'running'))))" % (at, *2 * ['n' if REMOTE else 'rowid'])
	try:
		return int(server.rows(sql, kept=True)[0][0])
	except (sqlite3.Error, psycopg2.Error):  # its store is elsewhere: nobody knows
		return 1


def jobs_done(server, seconds=5):
	"""Waits for the jobs that are due. Those that wait for others are not waited for long."""
	jobs_wait(server, server.control('clock', method='GET')['now'], seconds)


def jobs_wait(server, now, seconds):
	"""Whether none is due any more."""
	end = time.monotonic() + seconds
	while jobs_due(server, now):
		if time.monotonic() > end:
			return False
		time.sleep(0.01)
	return True


def pass_time(server, check, step=2, seconds=240):
	"""The virtual clock moves on until check() gives something. More than once, because what an engine does begins when its
	job is claimed, and that may be after the clock was moved."""
	end, moves = time.monotonic() + seconds, 0
	while True:
		now = server.advance(step)['now']
		for _ in range(3):
			value = check()
			if value:
				return value
			time.sleep(0.02)
			if jobs_wait(server, now, 0.03):  # which is cheaper than to look
				value = check()
				if value:
					return value
				break  # nothing will happen by itself
		assert time.monotonic() < end, 'it did not happen in %d s' % seconds
		moves += 1
		if moves % 10 == 0:  # so many looks use up buckets faster than the clock fills them
			server.refill()


def leave(server, group):
	"""Ends the clusters of a project whose test is over: a schedule that stays would have work at every move of the clock."""
	server.control('engine', {})
	for kind in ('clusters', 'flexClusters'):
		where = '/groups/%s/%s' % (group, kind)
		for c in server.get(where + '?itemsPerPage=500').json().get('results', []):
			server.delete('%s/%s' % (where, c['name']))


def metric(server, name):
	"""The sum of what /metrics has of that name. A call is counted, logged and recorded after its answer was sent: wait for it."""
	text = server.anonymous.get('/metrics').text
	return sum(float(line.rsplit(' ', 1)[1]) for line in text.splitlines() if re.match(name + '[ {]', line))


def ok(answer, status=200):
	"""The document of an answer that must have this status."""
	assert answer.status_code == status, '%s %s -> %d: %s' % (answer.request.method, answer.request.url,
								   answer.status_code, answer.text[:2000])
	return answer.json() if answer.content else None


def is_late(answer):
	"""Whether it says that the change is saved, and not yet in force on real databases."""
	return answer.status_code == 503 and answer.json()['errorCode'] == 'ACCESS_NOT_IN_FORCE'


def in_force(server, answer, status=200):
	"""ok() of what gives rights on real databases, or takes them away. An answer waits 5 s for that; on a busy machine it may say that
	the change is saved and not yet in force, and then that is waited for. Where its attempts fail, it is for the test to say so."""
	doc = None if is_late(answer) else ok(answer, status)
	if not is_late(answer) and not (answer.request.method == 'POST' and 'X-Steward-Progress' in answer.headers):
		return doc
	failures = metric(server, 'steward_access_failures_total')
	until(lambda: not server.rows("SELECT 1 FROM job WHERE kind = 'access'") or metric(server, 'steward_access_failures_total') > failures + 1,
	      120, 'what was saved to be in force')
	return doc


def refused(answer, status, code=None, *parameters):
	"""The error document of an answer that must be refused with this status; parameters are ones that it must name."""
	assert answer.status_code == status, '%s %s -> %d: %s' % (answer.request.method, answer.request.url,
								   answer.status_code, answer.text[:2000])
	doc = answer.json()
	(assert_oauth_problem if '/api/oauth/' in answer.request.url else assert_problem)(doc, status)
	if code:
		assert doc['errorCode'] == code, doc
	for p in parameters:
		assert p in doc['parameters'], doc
	if status == 401:
		assert answer.headers.get('WWW-Authenticate'), 'a 401 without WWW-Authenticate'
	return doc


OAUTH_WORDS = {400: {'invalid_request', 'unsupported_grant_type', 'unauthorized_client'}, 401: {'invalid_client'},
	       403: {'access_denied'}, 405: {'invalid_request'}, 429: {'temporarily_unavailable'}, 500: {'server_error'},
	       503: {'temporarily_unavailable'}}


def assert_oauth_problem(doc, status):
	"""RFC 6749, 5.2, beside our own fields: `error` is its word, not the status."""
	assert doc['error'] in OAUTH_WORDS[status], doc
	assert re.fullmatch(r'[ !#-\[\]-~]+', doc['error_description']), doc
	assert_problem({**doc, 'error': status}, status)


def assert_problem(doc, status):
	assert isinstance(doc, dict), doc
	for field, kind in (('detail', str), ('error', int), ('errorCode', str), ('parameters', list), ('reason', str)):
		assert isinstance(doc.get(field), kind), 'error document: %s is %r in %r' % (field, doc.get(field), doc)
	assert doc['error'] == status, doc
	assert doc['detail'] and doc['errorCode'] == doc['errorCode'].upper() and doc['reason'], doc


def bare(doc):
	"""Without its links."""
	return {k: v for k, v in doc.items() if k != 'links'}


def links(doc):
	return {x['rel']: x['href'] for x in doc['links']}


class Server:
	def __init__(self, *args, env=None, data_dir=None, record=None, clock='virtual', control=True,
			listen='127.0.0.1:0',
		     cwd=None, start_seconds=120, leaks=False, prefix=(),
		     engine='simulated', program=None, exports=False):
		self.tmp = pathlib.Path(tempfile.mkdtemp(prefix='steward-test-'))
		self.data_dir = pathlib.Path(data_dir) if data_dir else self.tmp / 'data'
		self.stderr_file, self.stdout_file = self.tmp / 'stderr', self.tmp / 'stdout'
		command = [*prefix, program or binary(), 'serve', '--data', str(self.data_dir), '--listen', listen]
		if clock:
			command += ['--clock', clock]
		if control:
			command.append('--test-control')
		if record:
			command += ['--record', str(record)]
		if '--name-server' not in args:  # nobody outside is asked whose a domain is
			command += ['--name-server', 'none']
		if REMOTE and '--store' not in args:
			command += ['--store', store_of(self.data_dir)]
		if SHARED and '--limits' not in args:
			command += ['--limits', limits_url()]
		if engine and '--engine' not in args:  # real databases are for the tests that name them
			command += ['--engine', engine]
		self.exports = self.tmp / 'exports'  # a directory for each bucket
		if exports:
			command += ['--export-buckets', str(self.exports)]
		command += list(map(str, args))
		with open(self.stderr_file, 'wb') as err, open(self.stdout_file, 'wb') as out:
			self.process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
					cwd=cwd,
							env=environment(env, leaks))
		self.pid, self.killed, self.ended, self.sessions = self.process.pid, False, False, []
		self.lines = direct.Direct()  # connections that all of its callers share
		self.versions = None  # or versions.Named: calls name theirs
		self._token, self._token_age = None, 0
		running.append(self)
		shown.append(self)
		folders.append(self.tmp)
		self._wait_ready(start_seconds)

	def _wait_ready(self, seconds):
		until = time.monotonic() + seconds
		while True:
			ready = re.search(r'^steward: ready (https://\S+)$', self.stdout, re.M)
			if ready:
				break
			if self.process.poll() is not None:
				self._over()
				raise AssertionError('steward serve ended with %d\n%s%s' % (self.process.returncode,
						self.stdout,
											    self.stderr))
			assert time.monotonic() < until, 'steward serve is not ready after %d s\n%s%s' % (seconds,
					self.stdout,
													self.stderr)
			time.sleep(0.004)
		self.base_url = ready.group(1)
		parts = urlsplit(self.base_url)
		self.host, self.port = parts.hostname, parts.port
		self.bootstrap = json.loads((self.data_dir / 'bootstrap.json').read_text())
		self.ca_file = self.bootstrap['caFile']
		if not os.path.isabs(self.ca_file):
			self.ca_file = str(self.data_dir / self.ca_file)
		self.org, self.group = self.bootstrap['orgId'], self.bootstrap['groupId']
		self.owner = Api(self, Bearer(self.token))
		self.anonymous = Api(self)
		for name in ('get', 'head', 'post', 'put', 'patch', 'delete', 'request', 'project'):
			setattr(self, name, getattr(self.owner, name))

	@property
	def stdout(self):
		return self.stdout_file.read_text(errors='replace')

	@property
	def stderr(self):
		return self.stderr_file.read_text(errors='replace')

	@property
	def digest(self):
		key = self.bootstrap['apiKey']
		return Api(self, requests.auth.HTTPDigestAuth(key['publicKey'], key['privateKey']))

	def token(self, account=None):
		"""An access token of the bootstrap's service account (kept), or of the given one (new)."""
		if account is None and self._token:
			return self._token
		a = account or self.bootstrap['serviceAccount']
		for _ in range(10):  # as any client does that is told to try again: a store that is a server may be slow to be reached
			r = self.anonymous.session.post(self.base_url + '/api/oauth/token', data={'grant_type': 'client_credentials'},
							auth=(a['clientId'], a['clientSecret']), timeout=60)
			if r.status_code != 503 or r.json().get('errorCode') != 'STORE_UNAVAILABLE':
				break
			time.sleep(int(r.headers.get('Retry-After', 1)))
		assert r.status_code == 200, r.text
		if account is None:
			self._token, self._token_age = r.json()['access_token'], 0
			return self._token
		return r.json()['access_token']

	def api_for(self, principal):
		"""A session for a principal that seed() made."""
		if principal['type'] == 'apiKey':
			return Api(self, requests.auth.HTTPDigestAuth(principal['publicKey'], principal['privateKey']))
		return Api(self, Bearer(principal['accessToken']))

	def rows(self, sql, kept=False):
		"""What the store itself says, whichever it is. An empty text may stand for none. kept: it will be asked again soon."""
		if REMOTE:
			return postgres.rows('SET search_path TO steward; ' + sql, store_of(self.data_dir).rsplit('/', 1)[1], kept)
		with contextlib.closing(sqlite3.connect('file:%s?mode=ro' % (self.data_dir / 'steward.db'), uri=True)) as db:
			return db.execute(sql).fetchall()

	def control(self, path, body=None, method='POST', timeout=60):
		r = self.anonymous.request(method, '/api/test/' + path, json=body, timeout=timeout)
		assert r.status_code in (200, 204), '%s: %d %s' % (path, r.status_code, r.text)
		return r.json() if r.content else None

	def seed(self, *organizations):
		return self.control('seed', {'organizations': list(organizations)}, timeout=600)['organizations']

	def refill(self):
		self.control('buckets/reset')

	def advance(self, seconds):
		self._token_age += seconds
		if self._token_age > TOKEN_SECONDS / 2:
			self._token = None
		return self.control('clock', {'advanceSeconds': seconds})

	@contextlib.contextmanager
	def slow_passwords(self):
		"""What is made meanwhile is hashed as it is for people."""
		self.control('passwords', {'cheap': False})
		try:
			yield
		finally:
			self.control('passwords', {'cheap': True})

	def fault(self, operation, **what):
		self.control('faults', {'operationId': operation, **what})

	def signal(self, number):
		self.process.send_signal(number)

	def stop(self, seconds=300):
		"""SIGTERM, and a clean end. Where leaks are looked for, on a busy machine, that takes minutes."""
		if self.ended:
			return
		self.process.send_signal(signal.SIGTERM)
		for s in self.sessions:
			s.close()
		try:
			self.process.wait(seconds)
		except subprocess.TimeoutExpired:
			self.kill()
			raise AssertionError('the server had not ended %d s after SIGTERM' % seconds)
		self._over()
		assert self.process.returncode == 0, 'exit %d after SIGTERM\n%s' % (self.process.returncode,
				self.stderr[-6000:])
		assert not SANITIZER.search(self.stderr), self.stderr[-6000:]

	def kill(self):
		if self.ended:
			return
		self.killed = True
		self.process.kill()
		self.process.wait()
		self._over()

	def _over(self):
		self.ended = True
		elsewhere_note(self.data_dir)
		if self in running:
			running.remove(self)


class Answer:
	__slots__ = ('status', 'lines', 'body')

	def __init__(self, status, lines, body):
		self.status, self.lines, self.body = status, lines, body

	def header(self, name, default=None):
		values = self.headers(name)
		return values[0] if values else default

	def headers(self, name):
		return [v for k, v in self.lines if k == name]

	def json(self):
		return json.loads(self.body)


class Wire:
	"""A TLS connection with HTTP/1.1, on which requests can be pipelined."""

	def __init__(self, server, token=None):
		self.server, self.token = server, token
		raw = socket.create_connection((server.host, server.port), timeout=60)
		raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
		self.socket = direct.context(server.ca_file).wrap_socket(raw, server_hostname=server.host)
		self.buffer = b''

	def close(self):
		self.socket.close()

	def __enter__(self):
		return self

	def __exit__(self, *args):
		self.close()

	def encode(self, method, path, headers=None, body=None, token=''):
		token = self.token if token == '' else token
		lines = ['%s %s HTTP/1.1' % (method, path), 'Host: %s:%d' % (self.server.host, self.server.port)]
		if token:
			lines.append('Authorization: Bearer ' + token)
		for k, v in (headers or {}).items():
			lines.append('%s: %s' % (k, v))
		data = b''
		if body is not None:
			data = body if isinstance(body, bytes) else json.dumps(body).encode()
			if not any(k.lower() == 'content-type' for k in headers or ()):
				lines.append('Content-Type: application/json')
		if body is not None or method in ('POST', 'PUT', 'PATCH'):
			lines.append('Content-Length: %d' % len(data))
		return '\r\n'.join(lines).encode() + b'\r\n\r\n' + data

	def _more(self):
		data = self.socket.recv(65536)
		if not data:
			raise ConnectionError('the server closed the connection; left over: %r' % self.buffer[:200])
		self.buffer += data

	def read(self, method='GET'):
		while b'\r\n\r\n' not in self.buffer:
			self._more()
		head, _, self.buffer = self.buffer.partition(b'\r\n\r\n')
		lines = head.decode('latin-1').split('\r\n')
		status = int(lines[0].split(' ')[1])
		fields = [(k.lower(), v.strip()) for k, _, v in (x.partition(':') for x in lines[1:])]
		length, chunked = 0, False
		for k, v in fields:
			if k == 'content-length':
				length = int(v)
			elif k == 'transfer-encoding':
				chunked = 'chunked' in v
		if method == 'HEAD' or status in (204, 304):
			return Answer(status, fields, b'')
		if chunked:
			return Answer(status, fields, self._chunks())
		while len(self.buffer) < length:
			self._more()
		body, self.buffer = self.buffer[:length], self.buffer[length:]
		return Answer(status, fields, body)

	def _chunks(self):
		out = b''
		while True:
			while b'\r\n' not in self.buffer:
				self._more()
			size, _, self.buffer = self.buffer.partition(b'\r\n')
			n = int(size.split(b';')[0], 16)
			while len(self.buffer) < n + 2:
				self._more()
			out, self.buffer = out + self.buffer[:n], self.buffer[n + 2:]
			if n == 0:
				return out

	def one(self, method, path, headers=None, body=None, token=''):
		self.socket.sendall(self.encode(method, path, headers, body, token))
		return self.read(method)

	def flood(self, request, count):
		"""(status, RateLimit-Remaining) of the answers to the same encoded request, sent so often. They are not taken apart one
		by one: that would cost more than to answer them."""
		self.socket.sendall(request * count)
		while self.buffer.count(b'HTTP/1.1 ') < count:
			self._more()
		end = self.buffer.rindex(b'HTTP/1.1 ')
		text, self.buffer = self.buffer[:end], self.buffer[end:]
		last = self.read()
		found = [(int(status), remaining.decode()) for status, remaining in FLOODED.findall(text)]
		return found + [(last.status, last.header('ratelimit-remaining'))]

	def batch(self, requests_, depth=24):
		"""Answers to (method, path[, headers[, body[, token]]]) tuples, in order."""
		out = []
		for i in range(0, len(requests_), depth):
			part = requests_[i:i + depth]
			self.socket.sendall(b''.join(self.encode(*r) for r in part))
			out += [self.read(r[0]) for r in part]
		return out


def basic(user, password):
	return 'Basic ' + base64.b64encode(('%s:%s' % (user, password)).encode()).decode()
