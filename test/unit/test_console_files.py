"""script/gen-console: the same input makes the same output, what is not there stops it or leaves the console out; and
script/npm-packages, which takes no archive but the one that the lock file names."""
import base64
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def generate(root, good=True):
	done = subprocess.run(['/usr/bin/python3', ROOT / 'script/gen-console', root, root / 'out.c', root / 'out.d'], stdout=subprocess.PIPE,
			      stderr=subprocess.STDOUT, text=True, check=False)
	assert (done.returncode == 0) == good, done.stdout
	return done.stdout


@pytest.fixture
def tree(tmp_path):
	"""A copy of what the console is made of, with the libraries where they are here."""
	shutil.copytree(ROOT / 'api', tmp_path / 'api')
	shutil.copytree(ROOT / 'console', tmp_path / 'console', ignore=shutil.ignore_patterns('node_modules'))
	(tmp_path / 'script').symlink_to(ROOT / 'script')
	if (ROOT / 'console/node_modules/htm').exists():
		(tmp_path / 'console/node_modules').symlink_to(ROOT / 'console/node_modules')
	return tmp_path


@pytest.fixture
def whole(tree):
	if not (tree / 'console/node_modules').exists():
		pytest.skip('the libraries could not be fetched')
	return tree


def test_without_libraries_the_console_is_left_out(tree):
	(tree / 'console/node_modules').unlink(missing_ok=True)
	assert 'script/npm-packages' in generate(tree)
	assert 'console_file_count = 0;' in (tree / 'out.c').read_text()


def test_same_input_same_output(whole, tmp_path_factory):
	assert 'first load' in generate(whole)
	first, depends = (whole / 'out.c').read_text(), (whole / 'out.d').read_text()
	assert 'console/js/main.js' in depends and 'api/clusters.json' in depends and 'package-lock.json' in depends
	stamp = (whole / 'out.c').stat().st_mtime_ns
	generate(whole)
	assert (whole / 'out.c').stat().st_mtime_ns == stamp, 'nothing changed, so nothing is compiled again'
	elsewhere = tmp_path_factory.mktemp('elsewhere') / 'x'
	shutil.copytree(whole, elsewhere, symlinks=True)
	(elsewhere / 'out.c').unlink()
	generate(elsewhere)
	assert (elsewhere / 'out.c').read_text() == first


@pytest.mark.parametrize('name, change, said', [
	('js/main.js', lambda text: text + "\nimport './nowhere.js';\n", 'nowhere.js'),
	('js/main.js', lambda text: text + "\nimport {noSuchName} from './api.js';\nnoSuchName();\n", 'noSuchName'),
	('index.html', lambda text: text.replace('css/console.css', 'css/none.css'), 'css/none.css'),
	('texts/screens.en.json', lambda text: json.dumps({**json.loads(text), next(iter(json.loads((ROOT / 'console/texts/en.json').read_text()))): 'x'}), 'stands in'),
	('css/console.css', lambda text: text + ''.join('.x%s{color:red}' % hashlib.sha256(str(i).encode()).hexdigest() for i in range(3000)), 'the first load is')])
def test_what_stops_it(whole, name, change, said):
	path = whole / 'console' / name
	path.write_text(change(path.read_text(encoding='utf-8')), encoding='utf-8')
	assert said in generate(whole, good=False)


class Registry(http.server.BaseHTTPRequestHandler):
	def do_GET(self):
		self.server.asked.append(self.path)
		self.send_response(200)
		self.end_headers()
		self.wfile.write(self.server.archive)

	def log_message(self, *args):
		pass


def test_libraries_are_those_of_the_lock_file(tmp_path):
	packed = io.BytesIO()
	with tarfile.open(fileobj=packed, mode='w:gz') as tar:
		for name in ('package/x.js', 'package/../../out.js', 'package/bin/y'):
			entry = tarfile.TarInfo(name)
			entry.size, entry.mode = 2, 0o755
			tar.addfile(entry, io.BytesIO(b'ok'))
		link = tarfile.TarInfo('package/link')
		link.type, link.linkname = tarfile.SYMTYPE, '/etc/passwd'
		tar.addfile(link)
	server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Registry)
	server.archive, server.asked = packed.getvalue(), []
	threading.Thread(target=server.serve_forever, daemon=True).start()
	digest = 'sha512-' + base64.b64encode(hashlib.sha512(server.archive).digest()).decode()
	lock = {'packages': {'': {}, 'node_modules/@a/b': {'version': '1.2.3', 'integrity': digest},
			     'node_modules/@a/b/node_modules/c': {'version': '2.0.0', 'integrity': digest},
			     'node_modules/other': {'version': '1.0.0', 'integrity': digest, 'cpu': ['mips'], 'os': ['linux']},
			     'node_modules/spare': {'version': '1.0.0', 'integrity': digest, 'optional': True},
			     'node_modules/chosen': {'version': '1.0.0', 'integrity': digest, 'optional': True}}}
	lock['packages']['']['optionalDependencies'] = {'chosen': '1.0.0'}
	(tmp_path / 'package-lock.json').write_text(json.dumps(lock))
	env = {**os.environ, 'npm_config_registry': 'http://127.0.0.1:%d' % server.server_address[1], 'no_proxy': '*'}
	fetch = lambda: subprocess.run(['/usr/bin/python3', ROOT / 'script/npm-packages', tmp_path], stderr=subprocess.PIPE, text=True, env=env, check=False)
	assert fetch().returncode == 0 and fetch().returncode == 0
	assert sorted(server.asked) == ['/@a/b/-/b-1.2.3.tgz', '/c/-/c-2.0.0.tgz', '/chosen/-/chosen-1.0.0.tgz'], 'once'
	for inside in ('node_modules/chosen', 'node_modules/@a/b/node_modules/c'):
		assert sorted(p.name for p in (tmp_path / inside).rglob('*') if p.is_file()) == ['.integrity', 'x.js', 'y']
	assert {p.name for p in (tmp_path / 'node_modules/@a/b').iterdir()} == {'.integrity', 'x.js', 'bin', 'node_modules'}
	assert not list(tmp_path.rglob('out.js')) and os.access(tmp_path / 'node_modules/@a/b/bin/y', os.X_OK)
	# Another archive under the same name is not taken, and what was there stays.
	lock['packages']['node_modules/@a/b']['integrity'] = 'sha512-' + 'A' * 86 + '=='
	(tmp_path / 'package-lock.json').write_text(json.dumps(lock))
	refused = fetch()
	assert refused.returncode == 1 and 'sha512' in refused.stderr and (tmp_path / 'node_modules/@a/b/x.js').exists()
	server.shutdown()
	server.server_close()
	assert fetch().returncode == 1
