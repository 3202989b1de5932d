"""The client against a peer that means it ill: bounded in memory and time, told clearly, and no secret given away."""
import base64, json, os, pathlib, re, resource, socket, ssl, stat, subprocess, threading, time

import pytest

import client
from client import SANITIZER, binary, environment

DONE, NOT_DONE, USAGE, UNREACHED, TIMEOUT = 0, 1, 2, 3, 4
CONTROLS = re.compile(b'[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?<![\xc2-\xf4])[\x80-\x9f](?![\x80-\xbf])|\xe2\x80[\xaa-\xae]')
BAD = 'x\x1b[2Jy\u009b31m\x07\x7f\u202ez'
SECRET = 'mdb_sa_sk_verysecret'
TOKEN = b'{"access_token":"t0ken"}'
ID = '6740a1b2c3d4e5f601234567'


def whole(body, status=200, *headers):
	"""An answer as it should be."""
	body = body if isinstance(body, bytes) else json.dumps(body).encode()
	head = [b'HTTP/1.1 %d X' % status, b'Content-Length: %d' % len(body), *headers]
	return b'\r\n'.join(head) + b'\r\n\r\n' + body


class Peer:
	"""A TLS server of bytes: `answer(request)` gives those of one request, whole or in pieces. Tokens are given out."""

	def __init__(self, certificate, key):
		self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
		self.context.load_cert_chain(certificate, key)
		self.socket = socket.create_server(('127.0.0.1', 0))
		self.requests, self.answer, self.token = [], lambda request: whole({}), lambda request: whole(TOKEN)
		self.url = 'https://127.0.0.1:%d' % self.socket.getsockname()[1]
		threading.Thread(target=self.accept, daemon=True).start()

	def accept(self):
		while True:
			try:
				one, _ = self.socket.accept()
			except OSError:
				return
			threading.Thread(target=self.serve, args=(one,), daemon=True).start()

	def request(self, stream):
		text = b''
		while b'\r\n\r\n' not in text:
			more = stream.recv(65536)
			if not more:
				return None
			text += more
		length = re.search(rb'(?im)^content-length: (\d+)', text)
		while length and len(text.split(b'\r\n\r\n', 1)[1]) < int(length[1]):
			text += stream.recv(65536)
		return text.decode('latin-1')

	def serve(self, plain):
		try:
			with self.context.wrap_socket(plain, server_side=True) as stream:
				while (request := self.request(stream)) is not None:
					self.requests.append(request)
					answer = (self.token if '/oauth/' in request.split('\r\n')[0] else self.answer)(request)
					for piece in [answer] if isinstance(answer, bytes) else answer:
						if piece is None:
							return
						stream.sendall(piece)
		except (OSError, ValueError):
			pass

	def paths(self):
		return [r.split(' ')[1] for r in self.requests]

	def close(self):
		self.socket.close()


@pytest.fixture(scope='module')
def service():
	import conftest
	s = client.Server('--engine', 'simulated')
	yield s
	conftest.end(s)


@pytest.fixture
def peer(service):
	p = Peer(service.data_dir / 'tls' / 'server.crt', service.data_dir / 'tls' / 'server.key')
	yield p
	p.close()


def profile_text(service, peer, **more):
	lines = {'base-url': peer.url, 'ca-file': service.ca_file, 'client-id': 'mdb_sa_id_a', 'client-secret': SECRET, 'project': ID,
		 'organization': ID, **more}
	return ''.join('%s = %s\n' % (k, v) for k, v in lines.items() if v)


@pytest.fixture
def env(tmp_path):
	return {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': '', 'TERM': 'xterm'}


@pytest.fixture
def run(service, peer, env, tmp_path, commands):
	"""Runs the client with a profile for the peer; measures its memory and time; whatever happens, no secret is told."""
	file = tmp_path / '.config/steward/profiles/default'
	file.parent.mkdir(parents=True)
	file.write_text(profile_text(service, peer))
	file.chmod(0o600)

	def call(*args, stdin=b'', most=20, megabytes=700):
		heap = lambda: resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20,) * 2)
		begin = time.monotonic()
		if commands.socket:
			done = commands.give(args, stdin, env, tmp_path)
		else:
			done = subprocess.run([binary(), *map(str, args)], input=stdin, capture_output=True, cwd=tmp_path, timeout=120,
					      env=environment(env), preexec_fn=heap if 'asan' not in binary() else None)
		done.seconds = time.monotonic() - begin
		text = done.stdout + done.stderr
		assert done.seconds < most, (args, done.seconds)
		assert not SANITIZER.search(text.decode(errors='replace')) and SECRET.encode() not in text, text[-3000:]
		assert done.returncode in (DONE, NOT_DONE, USAGE, UNREACHED, TIMEOUT), done.returncode
		return done
	return call


def told(done, code, *words):
	text = done.stderr.decode()
	assert done.returncode == code and all(w in text for w in words), (done.returncode, text[-2000:])
	assert not CONTROLS.search(done.stderr), done.stderr


LOOKS = [('projects', 'list'), ('projects', 'list', '--all'), ('projects', 'get'), ('clusters', 'list'), ('clusters', 'get', 'c'),
	 ('clusters', 'wait', 'c'), ('clusters', 'pause', 'c'), ('clusters', 'scale', 'c', '--size', 'M20'), ('teams', 'list'),
	 ('events',), ('events', '--scope', 'organization'), ('logs', 'c'), ('connect', 'c', '-c', 'select 1'), ('access-list', 'list'),
	 ('clusters', 'get', 'c', '-o', 'yaml'), ('rate-limits', 'list')]


def ids(looks):
	return ['-'.join(a).replace('--', '') for a in looks]


@pytest.mark.parametrize('args', LOOKS, ids=ids(LOOKS))
def test_what_is_no_json(peer, run, args):
	"""Neither a page of a proxy nor its escapes are printed, and it is not taken for an empty answer."""
	for body in (b'<html>\x1b[2J</html>', b'{"results": [', b'\xff\xfe\x00', b'"text"'):
		peer.answer = lambda request: whole(body, 200, b'X-Steward-Progress: 10% \x1b]0;t\x07')
		done = run(*args)
		assert done.returncode in (NOT_DONE, UNREACHED) and done.stderr and not done.stdout, (body, done)
		assert not CONTROLS.search(done.stderr)
	if 'connect' not in args and 'logs' not in args:
		told(run(*args), UNREACHED, 'not as the API does')


@pytest.mark.parametrize('args', LOOKS, ids=ids(LOOKS))
def test_escapes_in_every_field_and_header(peer, run, args):
	def any_document(depth=0):
		names = ('id', 'name', 'stateName', 'created', 'eventTypeName', 'username', 'createDate', 'clusterType', 'dbVersion', 'detail', 'errorCode',
			 'cidrBlock', 'hostname', 'userAlias', 'instanceSize', 'providerName', 'regionName', 'standard', BAD)
		doc = {n: BAD for n in names}
		if depth < 3:
			doc.update({n: any_document(depth + 1) for n in ('connectionStrings', 'electableSpecs', 'raw')})
			doc.update({n: [any_document(depth + 2)] for n in ('results', 'replicationSpecs', 'regionConfigs')})
		return doc
	evil = BAD.encode()
	headers = (b'X-Steward-Progress: 50% ' + evil + b'\x9b2J', b'Retry-After: ' + evil, b'Location: ' + evil, b'Content-Type: ' + evil)
	for status in (200, 302, 403, 404, 409, 500):
		peer.answer = lambda request: whole(any_document(), status, *headers)
		done = run(*args)
		assert not CONTROLS.search(done.stdout + done.stderr), (status, CONTROLS.search(done.stdout + done.stderr), done)
		assert status == 200 or done.returncode == NOT_DONE, (status, done)


def test_raw_answers_on_a_terminal(peer, run, env, tmp_path):
	"""`steward api` prints what comes; a terminal gets it without escapes, a pipe as it is."""
	evil = BAD.encode() + b'\x9b\x1bc\nsecond line\n'
	peer.answer = lambda request: whole(evil, 200, b'X-Evil: \x1b[2J')
	for args in (['api', 'GET', '/groups'], ['api', 'GET', '/groups', '-i'], ['clusters', 'ca']):
		seen, code = client.on_terminal(args, {**env, 'NO_COLOR': '1'}, tmp_path)
		assert code == DONE and b'second line' in seen and not CONTROLS.search(seen), (args, seen)
	assert run('api', 'GET', '/groups').stdout == evil
	peer.answer = lambda request: whole(b'a,b\n\x1b[2J,2\n')
	seen, code = client.on_terminal(['invoices', 'download', ID], {**env, 'NO_COLOR': '1'}, tmp_path)
	assert code == DONE and b'a,b\n' in seen and not CONTROLS.search(seen), seen


def test_a_large_answer(peer, run):
	"""100 MB in one answer, as text and as the smallest values that there are."""
	def pieces(begin, piece, count):
		yield b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n' % (len(begin), begin)
		for _ in range(count):
			yield b'%x\r\n%s\r\n' % (len(piece), piece)
		yield b'0\r\n\r\n'
	peer.answer = lambda request: pieces(b'{"results": ["', b'a' * 1048576, 100)
	told(run('projects', 'list', most=60), UNREACHED, 'larger than')
	told(run('clusters', 'list', most=60), UNREACHED, 'larger than')
	small = b'{},' * 300000
	peer.answer = lambda request: pieces(b'{"results": [', small, 30)
	told(run('projects', 'list', most=60), UNREACHED, 'larger than')
	peer.answer = lambda request: whole(b'[' * 5000 + b']' * 5000)
	told(run('projects', 'list'), UNREACHED)
	peer.answer = lambda request: whole({}, 200, *[b'X-H%d: %s' % (i, b'v' * 1000) for i in range(200)])
	told(run('projects', 'list'), UNREACHED)


def test_endless_pages(peer, run):
	"""A list that never ends is given up, whether its pages differ or not."""
	links = [{'rel': 'next', 'href': peer.url + '/api/svc/v2/groups?pageNum=1'}]
	peer.answer = lambda request: whole({'results': [{'id': 'x', 'name': 'same'}] * 500, 'links': links})
	for args in (('projects', 'list', '--all'), ('clusters', 'list')):
		told(run(*args, most=60), NOT_DONE, 'the same page')
	# By its bytes, and by its parts, of which there is room for many in a few.
	count = iter(range(10 ** 9))
	for args, item in ((('projects', 'list', '--all'), {'x': ['y' * 100000] * 100}), (('clusters', 'list'), {'x': [True] * 400000})):
		text = json.dumps({'results': [{'id': '%s', **item}], 'totalCount': 10 ** 15})
		peer.answer = lambda request: whole((text % next(count)).encode())
		done = run(*args, most=100, megabytes=1500)
		told(done, NOT_DONE, 'more pages')
		assert not done.stdout
	peer.answer = lambda request: whole({'results': 5})
	told(run('projects', 'list', '--all'), UNREACHED, 'not as the API does')


@pytest.mark.parametrize('key', [False, True])
def test_redirects_are_not_followed(service, peer, run, tmp_path, key):
	"""Whoever stands behind the address in a redirect gets nothing, and the user is told where it led."""
	other = Peer(service.data_dir / 'tls' / 'server.crt', service.data_dir / 'tls' / 'server.key')
	if key:
		who = {'client-id': '', 'client-secret': '', 'public-key': 'abc', 'private-key': SECRET}
		(tmp_path / '.config/steward/profiles/default').write_text(profile_text(service, peer, **who))
	for status in (301, 302, 307, 308):
		away = lambda request: whole(b'', status, b'Location: %s/api/oauth/token' % other.url.encode())
		peer.answer, peer.token = away, lambda request: whole(TOKEN)
		for args in (('projects', 'list'), ('projects', 'create', '--name', 'x'), ('api', 'GET', '/groups'), ('clusters', 'get', 'c'), ('events',)):
			told(run(*args), NOT_DONE, other.url, 'not followed')
		peer.token = away
		if not key:
			told(run('projects', 'list'), NOT_DONE, 'not followed')
	assert other.requests == []
	other.close()


def test_slow_and_broken(peer, run):
	"""An answer that drips ends with --timeout; one that is cut off is an error and not what came of it."""
	def drip(request):
		yield b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n'
		while True:
			time.sleep(0.2)
			yield b' '
	peer.answer = drip
	told(run('projects', 'list', '--timeout', '2', most=30), UNREACHED, 'timed out')
	def header_drip(request):
		yield b'HTTP/1.1 200 OK\r\nX-A: '
		while True:
			time.sleep(0.2)
			yield b'a'
	peer.answer = header_drip
	told(run('projects', 'list', '--timeout', '2', most=30), UNREACHED, 'timed out')
	told(run('clusters', 'wait', 'c', '--timeout', '2', most=30), TIMEOUT, 'not done')
	assert run('__complete', 'clusters', 'get', '', most=30).stdout == b''
	peer.token, peer.answer = drip, lambda request: whole({})
	told(run('projects', 'list', '--timeout', '2', most=30), UNREACHED, 'timed out')
	peer.token = lambda request: whole(TOKEN)
	for answer in ([b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"results": []', None],
		       [b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}', None],
		       [b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"results": []}', None],
		       [b'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{"results": []}', None],
		       [b'nonsense\r\n\r\n', None], [b'', None]):
		peer.answer = lambda request: answer
		done = run('projects', 'list', '-o', 'json')
		told(done, UNREACHED)
		assert done.stdout == b'', answer
		assert run('api', 'GET', '/groups').returncode == UNREACHED
	peer.answer = lambda request: [b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{"results": []}', None]
	told(run('projects', 'list'), UNREACHED, 'not as the API does')


def test_refusals_without_end(service, peer, run, tmp_path):
	"""A 401 is answered once with a new token; challenges without end are not; a far Retry-After is not obeyed."""
	peer.answer = lambda request: whole({'errorCode': 'INVALID_CREDENTIALS', 'detail': 'no'}, 401)
	told(run('projects', 'list'), NOT_DONE, '401')
	assert len(peer.requests) <= 4
	peer.answer = lambda request: whole({}, 503, b'Retry-After: 999999999999')
	told(run('clusters', 'wait', 'c', '--timeout', '2', most=30), TIMEOUT)
	peer.answer = lambda request: whole({}, 503, b'Retry-After: 86400')
	told(run('clusters', 'wait', 'c', '--timeout', '2', most=30), TIMEOUT)
	assert run('projects', 'list', '--watch', '--timeout', '2', most=30).returncode == DONE
	peer.token = lambda request: whole({'access_token': 'a\r\nX-Injected: b'})
	peer.requests.clear()
	told(run('projects', 'list'), UNREACHED, 'not as the API does')
	assert not any('X-Injected' in r for r in peer.requests)
	who = {'client-id': '', 'client-secret': '', 'public-key': 'abc', 'private-key': SECRET}
	(tmp_path / '.config/steward/profiles/default').write_text(profile_text(service, peer, **who))
	peer.requests.clear()
	nonces = iter(range(10 ** 6))
	peer.answer = lambda request: whole({}, 401, b'WWW-Authenticate: Digest realm="r", nonce="%d", stale=true, qop="auth"' % next(nonces))
	assert run('projects', 'list').returncode in (NOT_DONE, UNREACHED) and len(peer.requests) < 10
	peer.answer = lambda request: whole({}, 401, b'WWW-Authenticate: Basic realm="r"')
	peer.requests.clear()
	told(run('projects', 'list'), NOT_DONE, '401')
	sent = '\n'.join(peer.requests)
	assert SECRET not in sent and base64.b64encode(('abc:' + SECRET).encode()).decode() not in sent and 'Basic' not in sent


def test_a_certificate_that_changed(service, run, env, tmp_path):
	"""After a login only the authority that was pinned is trusted: nothing is sent to who has another certificate."""
	key, crt = tmp_path / 'k.pem', tmp_path / 'c.pem'
	subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key, '-out', crt,
			'-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2'], check=True, capture_output=True)
	other = Peer(crt, key)
	file = tmp_path / '.config/steward/profiles/default'
	file.write_text(profile_text(service, other))
	for args in (('projects', 'list'), ('clusters', 'list'), ('events',), ('api', 'GET', '/groups')):
		told(run(*args), UNREACHED, 'not trusted', 'steward login')
	assert run('__complete', 'clusters', 'get', '').stdout == b'' and other.requests == []
	other.close()


def test_profiles_that_are_no_files(service, peer, run, tmp_path):
	"""Modes, links, pipes and values that would break out of a header."""
	file = tmp_path / '.config/steward/profiles/default'
	for mode in (0o644, 0o640, 0o604, 0o660):
		file.chmod(mode)
		told(run('projects', 'list'), USAGE, 'chmod 600')
	file.chmod(0o600)
	open_file = tmp_path / 'open'
	open_file.write_text(file.read_text())
	open_file.chmod(0o644)
	text = file.read_text()
	file.unlink()
	file.symlink_to(open_file)
	told(run('projects', 'list'), USAGE, 'chmod 600')
	file.unlink()
	os.mkfifo(file, 0o600)
	told(run('projects', 'list', most=5), USAGE, 'is no file')
	file.unlink()
	file.mkdir(mode=0o700)
	told(run('projects', 'list'), USAGE, 'is no file')
	file.rmdir()
	peer.answer = lambda request: whole({'results': []})
	file.write_bytes(text.replace('\n', '\r\n').encode())
	file.chmod(0o600)
	assert run('projects', 'list').returncode == DONE
	assert not any('\r' in line for r in peer.requests for line in r.split('\r\n'))
	file.write_text(text.replace('project = ', 'project = a\rb'))
	assert run('clusters', 'list').returncode in (NOT_DONE, USAGE, UNREACHED)
	assert all(re.match('^[!-~]+$', p) for p in peer.paths())


def test_login_leaves_what_a_link_points_to(service, run, env, tmp_path):
	"""A profile that is a link is replaced, not written through."""
	file, target = tmp_path / '.config/steward/profiles/default', tmp_path / 'target'
	target.write_text('mine')
	file.unlink()
	file.symlink_to(target)
	who = service.bootstrap['serviceAccount']
	done = run('login', '--url', service.base_url, '--ca-file', service.ca_file, '--client-id', who['clientId'], stdin=who['clientSecret'].encode())
	assert done.returncode == DONE, done
	assert target.read_text() == 'mine' and not file.is_symlink() and stat.S_IMODE(file.stat().st_mode) == 0o600


def test_secrets_are_not_told(peer, run, tmp_path):
	"""Neither in what a dry run prints nor in what is said about wrong usage, nor kept by completion."""
	typed = 'hunter2hunter2'
	user = ('database-users', 'create', '--username', 'u', '--roles.role-name', 'read', '--roles.database-name', 'a')
	for args in ((*user, '--password', typed), (*user, '--set', 'password=' + typed), (*user, '--set', 'password:="%s"' % typed),
		     (*user, '--body', json.dumps({'password': typed})), (*user, '--set', 'passwrd=' + typed),
		     (*user, '--set', 'password:=' + typed), (*user, '--password', typed, '--nothing', 'x')):
		for how in ('--dry-run', '--dry-run=curl'):
			done = run(*args, how)
			assert typed.encode() not in done.stdout + done.stderr, (args, done)
	before = sorted(tmp_path.rglob('*'))
	run('__complete', *user, '--password', typed, '--')
	assert sorted(tmp_path.rglob('*')) == before
	peer.answer = lambda request: whole({'errorCode': 'X', 'detail': 'no'}, 400)
	assert typed.encode() not in run(*user, '--password', '-', stdin=typed.encode()).stderr


def command_line(pid):
	return pathlib.Path('/proc/%d/cmdline' % pid).read_bytes() + pathlib.Path('/proc/%d/environ' % pid).read_bytes()


def test_secrets_are_not_in_the_process_list(peer, run, env, tmp_path):
	"""What stands in the profile or came from standard input is in no argument while a call is under way."""
	seen, looked = [], threading.Event()
	def slow(request):
		seen.append(request)
		looked.wait(60)
		return whole({})
	peer.answer = slow
	p = subprocess.Popen([binary(), 'database-users', 'create', '--username', 'u', '--password', '-', '--roles.role-name', 'read',
			      '--roles.database-name', 'a'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=environment(env))
	p.stdin.write(b'hunter2hunter2\n')
	p.stdin.close()
	client.until(lambda: seen, what='the call')
	text = command_line(p.pid)
	looked.set()
	assert text and p.wait(timeout=60) == DONE and 'hunter2hunter2' in seen[0]
	assert b'hunter2' not in text and SECRET.encode() not in text and b't0ken' not in text
	p.stdout.close()


def test_values_that_are_odd(peer, run):
	"""Positions out of order, empty texts, unicode, what begins with dashes, what is very long."""
	def body(*args, **more):
		done = run('projects', 'create', '--name', 'n', *args, '--dry-run', **more)
		return json.loads(done.stdout.split(b'\n\n', 1)[1]) if done.returncode == DONE else done
	tag = lambda i: ('--tags.%d.key' % i, 'k%d' % i, '--tags.%d.value' % i, 'v')
	assert [t['key'] for t in body(*tag(1), *tag(0))['tags']] == ['k0', 'k1']
	told(body(*tag(2)), USAGE, '--tags.0')
	told(body('--tags.1000.key', 'x'), USAGE)
	told(body('--tags.key=', '--tags.value='), USAGE, '--tags.0.key')
	for comment, args in (('', ['--comment=']), ('é\u4e2d\U0001f600', ['--comment', 'é\u4e2d\U0001f600']), ('--x', ['--comment=--x']),
			      ('a=b', ['--comment', 'a=b']), ('a=b', ['--set', '0.comment=a=b']), ('1', ['--comment', '1']), ('null', ['--comment', 'null'])):
		entry = run('access-list', 'add', '--cidr-block', '10.0.0.0/8', *args, '--dry-run')
		assert json.loads(entry.stdout.split(b'\n\n', 1)[1]) == [{'cidrBlock': '10.0.0.0/8', 'comment': comment}], args
	told(run('projects', 'create', '--name', os.fsdecode(b'\xff\xfe'), '--dry-run'), USAGE, 'UTF-8')
	long = 'a' * 100000
	done = run('access-list', 'add', '--cidr-block', '10.0.0.0/8', '--set', '0.comment=' + long, '--dry-run')
	assert done.returncode in (DONE, USAGE) and len(done.stderr) < 1000
	assert json.loads(run('projects', 'create', '--body', '-', '--dry-run', stdin=b'{"name": "x"}').stdout.split(b'\n\n', 1)[1]) == {'name': 'x'}
	told(run('projects', 'create', '--body', '-', '--dry-run', stdin=b'{"name"'), USAGE, 'is not JSON')
	told(run('projects', 'create', '--body', '-', '--dry-run', stdin=b''), USAGE, 'is not JSON')
	assert b'/clusters/--help' in run('clusters', 'update', '--dry-run', '--paused', '--', '--help').stdout
	told(run('projects', 'create', '--name', 'x', '--with-default-alerts-settings', 'yes', '--dry-run'), USAGE, 'yes')


def test_a_pipe_that_closes(service, peer, env, run, tmp_path):
	"""A reader that has seen enough ends the client quietly, as other programs are ended."""
	peer.answer = lambda request: whole({'results': [{'id': str(i), 'name': 'n' * 200} for i in range(5000)], 'totalCount': 5000})
	for form in ('table', 'json', 'yaml', 'name'):
		line = '%s projects list -o %s | head -n 1; echo ${PIPESTATUS[0]}' % (binary(), form)
		done = subprocess.run(['bash', '-c', line], capture_output=True, env=environment(env), cwd=tmp_path, timeout=60)
		assert done.stdout.split()[-1] in (b'141', b'1') and len(done.stderr) < 200, (form, done)
