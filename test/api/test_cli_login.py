"""steward login, logout and config: profiles that work, an authority that is pinned, and secrets that stay where they are."""
import http.server, json, os, pathlib, pty, re, select, ssl, stat, subprocess, threading, time

import pytest

import client
from client import SANITIZER, binary, environment, ok

DONE, NOT_DONE, USAGE, UNREACHED = 0, 1, 2, 3


@pytest.fixture(scope='module')
def service():
	import conftest
	s = client.Server('--engine', 'simulated', clock='real')
	yield s
	conftest.end(s)


@pytest.fixture
def home(tmp_path):
	"""The environment of somebody who has nothing set up."""
	return {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': '', 'STEWARD_URL': '',
		'STEWARD_CLIENT_ID': '', 'STEWARD_PUBLIC_KEY': '', 'STEWARD_CLIENT_SECRET': '', 'STEWARD_PRIVATE_KEY': '',
		'STEWARD_PROJECT': '', 'STEWARD_ORG': '', 'STEWARD_CA_FILE': '', 'STEWARD_CA_FINGERPRINT': ''}


@pytest.fixture
def run(home, tmp_path):
	def call(*args, check=True, stdin='', **env):
		done = subprocess.run([binary(), *map(str, args)], input=stdin, capture_output=True, text=True, cwd=tmp_path, timeout=120,
				      env=environment({**home, **env}))
		assert not SANITIZER.search(done.stderr), done.stderr
		assert not check or done.returncode == DONE, done
		return done
	return call


def fingerprint(file):
	out = subprocess.run(['openssl', 'x509', '-noout', '-fingerprint', '-sha256', '-in', file], capture_output=True, text=True, check=True)
	return out.stdout.strip().split('=')[1]


def account(s):
	a = s.bootstrap['serviceAccount']
	return a['clientId'], a['clientSecret']


def sign_in(run, s, *args, **more):
	who, secret = account(s)
	return run('login', *args, '--url', s.base_url, '--client-id', who, '--ca-fingerprint', fingerprint(s.ca_file), stdin=secret + '\n',
		   **more)


def folder(tmp_path):
	return tmp_path / '.config' / 'steward'


def test_login_with_a_service_account(service, run, tmp_path):
	done = sign_in(run, service)
	who, secret = account(service)
	assert re.search('^signed in as +service account %s$' % who, done.stdout, re.M)
	assert service.org in done.stdout and secret not in done.stdout + done.stderr
	file = folder(tmp_path) / 'profiles' / 'default'
	assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
	assert json.loads(run('clusters', 'list', '-o', 'json', '--project', service.group).stdout) == []
	pinned = run('config', 'get', 'ca-file').stdout.strip()
	assert pinned.startswith(str(folder(tmp_path))) and fingerprint(pinned) == fingerprint(service.ca_file)
	assert run('logout').stdout == 'the profile default is removed\n'
	assert not file.exists() and not os.path.exists(pinned)
	assert run('clusters', 'list', check=False).returncode == USAGE


def test_login_with_a_key_and_a_project(service, run, tmp_path):
	key = service.bootstrap['apiKey']
	project = service.project(name='login&more')
	done = run('login', 'work', '--url', service.base_url + '/', '--public-key', key['publicKey'], '--ca-file', service.ca_file, '--project',
		   'login&more', '--org', service.org, STEWARD_PRIVATE_KEY=key['privateKey'])
	assert 'API key %s' % key['publicKey'] in done.stdout and 'login&more (%s)' % project['id'] in done.stdout
	assert run('config', 'get', 'project').stdout.strip() == project['id']
	assert run('config', 'get', 'base-url').stdout.strip() == service.base_url
	assert json.loads(run('api', 'GET', '/groups/{groupId}').stdout)['name'] == 'login&more'
	assert json.loads(run('api', 'GET', '/orgs/{orgId}').stdout)['id'] == service.org
	ok(service.delete('/groups/' + project['id']), 204)


def test_several_services(service, run, tmp_path, start_server):
	other = start_server('--engine', 'simulated')
	sign_in(run, service, 'one')
	sign_in(run, other, 'two')
	listed = {p['name']: p for p in json.loads(run('config', 'list', '-o', 'json').stdout)}
	assert listed['one']['base-url'] == service.base_url and listed['two']['current'] and not listed['one']['current']
	assert account(service)[1] not in run('config', 'list', '-o', 'yaml').stdout
	org = lambda *args: json.loads(run('api', 'GET', '/orgs', *args).stdout)['results'][0]['id']
	assert org() == other.org and org('--profile', 'one') == service.org
	assert run('config', 'use', 'one').stdout == 'commands use the profile one\n'
	assert org() == service.org
	assert re.search(r'^one +true +%s' % service.base_url, run('config', 'list').stdout, re.M)
	assert run('config', 'list', '-o', 'name').stdout == 'one\ntwo\n'
	run('logout', 'one')
	assert run('config', 'use', 'one', check=False).returncode == USAGE
	assert run('logout', 'one', check=False).returncode == USAGE


def test_settings(service, run, tmp_path):
	sign_in(run, service)
	file = pathlib.Path(run('config', 'path').stdout.strip())
	file.write_text('# mine\n' + file.read_text())
	run('config', 'set', 'project', service.group)
	assert run('config', 'get', 'project').stdout == service.group + '\n'
	assert file.read_text().startswith('# mine\n') and stat.S_IMODE(file.stat().st_mode) == 0o600
	run('config', 'set', 'project', 'another one')
	assert file.read_text().count('project =') == 1
	run('config', 'unset', 'project')
	assert run('config', 'get', 'project', check=False).returncode == NOT_DONE and 'project' not in file.read_text()
	shown = run('config', 'get').stdout
	assert 'client-secret (not shown)' in shown and account(service)[1] not in shown
	for args, word in ((['get', 'client-secret'], 'secret'), (['set', 'client-secret', 'x'], 'steward login'), (['set', 'colour', 'x'], 'there are'),
			   (['set', 'base-url', 'http://x'], 'https://'), (['set', 'project', 'a"b'], 'character'), (['use'], 'say list'),
			   (['frob'], 'say list'), ([], 'say list'), (['use', '../x'], 'no profile'), (['set', 'project'], 'say list')):
		r = run('config', *args, check=False)
		assert r.returncode == USAGE and word in r.stderr and r.stdout == '', (args, r)


def test_nothing_is_kept_of_a_login_that_fails(service, run, tmp_path):
	who, secret = account(service)
	print_ = fingerprint(service.ca_file)
	base = ['login', '--url', service.base_url]
	trust = ['--ca-fingerprint', print_]

	def refused(code, *args, word, stdin=secret + '\n'):
		r = run(*args, check=False, stdin=stdin)
		assert r.returncode == code and word in r.stderr and secret not in r.stderr + r.stdout, r
		left = [p for p in folder(tmp_path).rglob('*') if p.is_file()] if folder(tmp_path).exists() else []
		assert not left, left
	refused(NOT_DONE, *base, '--client-id', who, *trust, word='gives no token', stdin='mdb_sa_sk_' + 'x' * 40 + '\n')
	refused(NOT_DONE, *base, '--public-key', 'abcdefgh', *trust, word='401', stdin='00000000-0000-0000-0000-000000000000\n')
	refused(UNREACHED, *base, '--client-id', who, '--ca-fingerprint', 'AB' * 32, word='another fingerprint')
	refused(UNREACHED, *base, '--client-id', who, word=print_)
	refused(UNREACHED, 'login', '--url', 'https://127.0.0.1:1', '--client-id', who, word='cannot be reached')
	refused(NOT_DONE, *base, '--client-id', who, *trust, '--org', client.NO_ID, word='40')
	refused(USAGE, *base, '--client-id', who, *trust, '--project', 'nowhere', word='nowhere')
	refused(USAGE, *base, *trust, word='--client-id')
	refused(USAGE, *base, '--client-id', who, *trust, word='secret', stdin='')
	refused(USAGE, 'login', word='--url')
	refused(USAGE, 'login', '../x', '--url', service.base_url, word='name of a profile')
	refused(USAGE, *base, '--client-id', who, '--public-key', 'x', *trust, word='not both')
	refused(USAGE, *base, '--client-id', who, '--ca-file', str(service.data_dir / 'tls' / 'ca.key'), word='certificates')
	refused(USAGE, *base, '--client-id', who, '--ca-file', service.ca_file, '--ca-fingerprint', 'AB' * 32, word='fingerprint')


def test_a_failed_login_leaves_the_old_profile(service, run, tmp_path):
	sign_in(run, service)
	before = {p: p.read_bytes() for p in folder(tmp_path).rglob('*') if p.is_file()}
	assert run('login', '--url', service.base_url, '--client-id', account(service)[0], '--ca-fingerprint', fingerprint(service.ca_file),
		   stdin='wrong\n', check=False).returncode == NOT_DONE
	assert {p: p.read_bytes() for p in folder(tmp_path).rglob('*') if p.is_file()} == before
	run('clusters', 'list', '--project', service.group)


def test_fingerprints_in_other_spellings(service, run):
	who, secret = account(service)
	run('login', '--url', service.base_url, '--client-id', who, '--ca-fingerprint', fingerprint(service.ca_file).replace(':', '').lower(),
	    stdin=secret + '\n')


def test_the_pin_holds(service, run, tmp_path, start_server):
	"""After the login nothing else is trusted: another service in its place is refused, though it has a certificate of its own."""
	sign_in(run, service)
	other = start_server('--engine', 'simulated')
	run('config', 'set', 'base-url', other.base_url)
	r = run('clusters', 'list', '--project', service.group, check=False)
	assert r.returncode == UNREACHED and 'not trusted' in r.stderr


def test_no_secret_reaches_a_stranger(service, run, tmp_path):
	"""Whoever answers in the service's place before it is trusted gets a question for /ca, and nothing that says who asks."""
	asked = []

	class Handler(http.server.BaseHTTPRequestHandler):
		def do_GET(self):
			asked.append((self.path, dict(self.headers)))
			self.send_response(404)
			self.end_headers()
		do_POST = do_GET

		def log_message(self, *args):
			pass
	server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(service.data_dir / 'tls' / 'server.crt', service.data_dir / 'tls' / 'server.key')
	server.socket = context.wrap_socket(server.socket, server_side=True)
	threading.Thread(target=server.serve_forever, daemon=True).start()
	who, secret = account(service)
	r = run('login', '--url', 'https://127.0.0.1:%d' % server.server_port, '--client-id', who, stdin=secret + '\n', check=False)
	server.shutdown()
	server.server_close()
	assert r.returncode == USAGE and '--ca-file' in r.stderr
	assert [path for path, _ in asked] == ['/ca'] and who not in str(asked) and 'Authorization' not in str(asked)


def test_the_service_names_its_authority(service, start_server, tmp_path):
	answer = service.anonymous.session.get(service.base_url + '/ca', timeout=60)
	assert answer.status_code == 200 and answer.text == pathlib.Path(service.ca_file).read_text()
	assert answer.headers['Content-Type'] == 'application/x-pem-file' and 'PRIVATE' not in answer.text
	assert service.anonymous.session.post(service.base_url + '/ca', timeout=60).status_code == 405
	given = start_server('--tls-cert', service.data_dir / 'tls' / 'server.crt', '--tls-key', service.data_dir / 'tls' / 'server.key')
	given.anonymous.session.verify = service.ca_file
	assert given.anonymous.session.get(given.base_url + '/ca', timeout=60).status_code == 404


def on_terminal(args, env, cwd, answers, seconds=60):
	"""Runs steward on a terminal and answers its questions, each after its prompt: (exit code, what the terminal showed)."""
	program, env = binary(), environment(env)
	pid, master = pty.fork()
	if pid == 0:
		os.chdir(cwd)
		os.execve(program, [program, *map(str, args)], env)
	seen, end, answers = '', time.monotonic() + seconds, list(answers)
	at = 0
	while time.monotonic() < end:
		if not select.select([master], [], [], 0.2)[0]:
			continue
		try:
			more = os.read(master, 4096).decode(errors='replace')
		except OSError:
			break
		if not more:
			break
		seen += more
		while answers and answers[0][0] in seen[at:]:
			at = seen.index(answers[0][0], at) + len(answers[0][0])
			os.write(master, (answers.pop(0)[1] + '\n').encode())
	os.close(master)
	_, status = os.waitpid(pid, 0)
	assert not SANITIZER.search(seen), seen
	return os.waitstatus_to_exitcode(status), seen


def test_questions_on_a_terminal(service, home, run, tmp_path):
	who, secret = account(service)
	code, seen = on_terminal(['login'], home, tmp_path, [('URL of the service: ', service.base_url), ('[y/N] ', 'y'),
		('Client id of a service account', who), ('Its secret (not shown): ', secret)])
	assert code == DONE and fingerprint(service.ca_file) in seen and 'signed in as' in seen, seen
	assert secret not in seen, 'it is not shown'
	run('clusters', 'list', '--project', service.group)


def test_a_stranger_is_refused_on_a_terminal(service, home, tmp_path):
	code, seen = on_terminal(['login', '--url', service.base_url], home, tmp_path, [('[y/N] ', 'no')])
	assert code == UNREACHED and 'nothing is kept' in seen and not folder(tmp_path).exists()
