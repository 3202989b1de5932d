"""How answers are printed, on a terminal and elsewhere, from a service that may say anything."""
import http.server, json, re, ssl, subprocess, threading

import pytest

import client
from client import SANITIZER, binary, environment

ESCAPE = '\x1b['


@pytest.fixture(scope='module')
def service():
	import conftest
	s = client.Server('--engine', 'simulated')
	yield s
	conftest.end(s)


@pytest.fixture
def env(service, tmp_path):
	return {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': str(service.data_dir), 'TERM': 'xterm',
		'NO_COLOR': ''}


def on_terminal(args, env):
	"""What a terminal sees."""
	seen, code = client.on_terminal(args, env)
	assert code == 0 and not SANITIZER.search(seen.decode()), seen
	return seen.decode()


def test_colours_are_for_terminals(service, env):
	service.refill()
	assert ESCAPE in on_terminal(['projects', 'list'], env)
	for quiet in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}):
		seen = on_terminal(['projects', 'list'], {**env, **quiet})
		assert ESCAPE not in seen and 'NAME' in seen, quiet
	piped = subprocess.run([binary(), 'projects', 'list'], capture_output=True, text=True, env=environment(env))
	assert ESCAPE not in piped.stdout and piped.stdout.startswith('NAME')
	for form in ('json', 'yaml', 'name'):
		assert ESCAPE not in on_terminal(['projects', 'list', '-o', form], env), form


def test_long_cells_are_whole_in_a_pipe(service, env):
	service.refill()
	text = 'long ' * 30
	made = service.project(name=client.unique('p'))
	assert service.post('/groups/%s/accessList' % made['id'], json=[{'cidrBlock': '10.0.0.0/8', 'comment': text[:80].strip()}]).ok
	args = ['access-list', 'list', '--project', made['id']]
	piped = subprocess.run([binary(), *args], capture_output=True, text=True, env=environment(env)).stdout
	assert text[:80].strip() in piped
	seen = on_terminal(args, env)
	assert text[:80].strip() not in seen and '...' in seen and '10.0.0.0/8' in seen


@pytest.fixture
def impostor(service, tmp_path):
	"""A service with a certificate that is trusted, which says what it likes."""
	class Handler(http.server.BaseHTTPRequestHandler):
		def do_GET(self):
			self.rfile.read(int(self.headers.get('Content-Length') or 0))
			text = json.dumps({'access_token': 't'} if 'oauth' in self.path else server.document).encode()
			self.send_response(200)
			self.send_header('Content-Length', str(len(text)))
			self.end_headers()
			self.wfile.write(text)
		do_POST = do_GET

		def log_message(self, *args):
			pass
	server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(service.data_dir / 'tls' / 'server.crt', service.data_dir / 'tls' / 'server.key')
	server.socket = context.wrap_socket(server.socket, server_side=True)
	threading.Thread(target=server.serve_forever, daemon=True).start()
	file = tmp_path / 'profile'
	file.write_text('base-url = https://127.0.0.1:%d\nca-file = %s\nclient-id = a\nclient-secret = b\nproject = %s\norganization = %s\n' % (
		server.server_port, service.ca_file, service.group, service.org))
	file.chmod(0o600)
	server.profile = str(file)
	yield server
	server.shutdown()
	server.server_close()


BAD = 'x\x1b[2Jy\u009b31m\x07\r\n\x7f'


@pytest.mark.parametrize('document', [{'results': [{'name': BAD, 'id': BAD, BAD: BAD}], 'totalCount': 1}, {'name': BAD, BAD: {BAD: [BAD]}}, [BAD]])
def test_no_form_lets_a_control_character_through(impostor, env, document):
	impostor.document = document
	for form in ('table', 'json', 'yaml', 'name'):
		done = subprocess.run([binary(), 'projects', 'list', '-o', form, '--profile', impostor.profile], capture_output=True,
				      env=environment(env))
		text = done.stdout.decode() + done.stderr.decode()
		assert done.returncode == 0 and not SANITIZER.search(text), done
		assert not re.search('[\x00-\x09\x0b-\x1f\x7f-\x9f]', text), (form, repr(text))
		if form == 'json':
			assert json.loads(done.stdout) == document


def test_events_and_completion_let_none_through(impostor, env):
	impostor.document = {'results': [{'created': BAD, 'eventTypeName': BAD, 'id': BAD, 'name': BAD, 'username': BAD, 'raw': {'description': BAD}}]}
	for args in (['events'], ['events', '-o', 'json'], ['__complete', 'clusters', 'get', '--profile', impostor.profile, '']):
		args = args if '--profile' in args else [*args, '--profile', impostor.profile]
		done = subprocess.run([binary(), *args], capture_output=True, env=environment(env))
		text = done.stdout.decode() + done.stderr.decode()
		assert done.returncode == 0 and not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f]', text), (args, repr(text))
