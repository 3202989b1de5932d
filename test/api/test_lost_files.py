"""What is missing at a start is not made anew where something was there: the start is refused, and changes nothing."""
import os, shutil

import pytest

import client
from client import cli, ok


@pytest.fixture(scope='module')
def used():
	"""A data directory that was in use."""
	s = client.Server(clock=None, control=False)
	ok(s.post('/groups', json={'name': 'kept', 'orgId': s.org}))
	s.stop()
	return s.data_dir


@pytest.fixture
def data(used, tmp_path):
	client.clone(used, tmp_path / 'data')
	return tmp_path / 'data'


def tree(folder):
	"""Without what a start may leave: the lock, and the log of a store that was opened."""
	files = [p for p in folder.rglob('*') if p.is_file() and not p.name.startswith('steward.db') and p.name != 'lock']
	return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def start_refused(data, *words):
	before = tree(data)
	done = cli('serve', '--data', data, '--listen', '127.0.0.1:0', '--engine', 'simulated', check=False)
	assert done.returncode == 1 and 'ready' not in done.stdout, done
	for word in words:
		assert word in done.stderr, done.stderr
	assert tree(data) == before
	return done


def started(start_server, data):
	s = start_server(data_dir=data, clock=None, control=False)
	assert {p['name'] for p in ok(s.get('/groups'))['results']} == {'Project0', 'kept'}
	return s


def test_the_key(start_server, data):
	key = data / 'secret.key'
	kept = key.read_bytes()
	key.unlink()
	start_refused(data, 'secret.key is missing', 'Bring the file back')
	assert not list(data.glob('secret.key*'))
	client.execute(data, "DELETE FROM meta WHERE key = 'secret_key'")  # as before the store remembered its key
	start_refused(data, 'secret.key is missing')
	key.write_bytes(kept)
	key.chmod(0o600)
	started(start_server, data)


def test_another_key(data):
	key = data / 'secret.key'
	key.write_bytes(bytes(reversed(key.read_bytes())))
	start_refused(data, 'is not the key of this store')


@pytest.mark.skipif(client.REMOTE, reason='a file')
def test_the_store(start_server, data, tmp_path):
	away = tmp_path / 'away'
	away.mkdir()
	for f in list(data.glob('steward.db*')):
		shutil.move(f, away / f.name)
	start_refused(data, 'the store is empty', 'bootstrap.json', 'another --data')
	for f in list(data.glob('steward.db*')):
		f.unlink()
	(data / 'bootstrap.json').rename(away / 'bootstrap.json')  # deleted, as the docs say
	databases = data / 'engine' / ('a' * 24)
	databases.mkdir(parents=True)
	(databases / 'state.json').write_text('{}')
	start_refused(data, 'the store is empty', 'state.json')
	shutil.rmtree(data / 'engine')
	for f in away.iterdir():
		shutil.move(f, data / f.name)
	started(start_server, data)


def test_the_authority(start_server, data):
	"""The CA that callers trust is gone, its key is not; and both."""
	tls, kept = data / 'tls', {p.name: p.read_bytes() for p in (data / 'tls').iterdir()}
	(tls / 'ca.crt').unlink()
	start_refused(data, 'ca.crt is missing', 'bring it back')
	(tls / 'ca.key').unlink()
	start_refused(data, 'ca.crt is missing')
	(tls / 'ca.crt').write_bytes(kept['ca.crt'])  # the key may be kept elsewhere
	started(start_server, data).stop()
	assert not (tls / 'ca.key').exists()
	shutil.rmtree(tls)  # a copy of the store in a new directory
	s = started(start_server, data)
	assert 'must be told to trust' in s.stderr and (tls / 'ca.crt').read_bytes() != kept['ca.crt']


def test_the_first_credentials(start_server, data):
	"""Deleting them is what the docs say: nothing is made anew, and the service starts."""
	kept = (data / 'bootstrap.json').read_text()
	(data / 'bootstrap.json').unlink()
	done = client.subprocess.Popen([client.binary(), 'serve', '--data', str(data), '--listen', '127.0.0.1:0', '--engine',
		'simulated', *(['--store', client.store_of(data)] if client.REMOTE else [])], stdout=client.subprocess.PIPE, text=True,
		env=client.environment())
	try:
		lines = []
		while not any(x.startswith('steward: ready') for x in lines):
			lines.append(done.stdout.readline())
			assert lines[-1], lines
		assert not any('first start' in x for x in lines) and not (data / 'bootstrap.json').exists()
	finally:
		done.terminate()
		assert done.wait(60) == 0
	(data / 'bootstrap.json').write_text(kept)
	started(start_server, data)


@pytest.mark.skipif(not client.REMOTE, reason='of nodes that share a store')
def test_the_name_of_a_node(start_server, data):
	name = data / 'node.id'
	kept = name.read_text()
	databases = data / 'engine' / ('a' * 24)
	databases.mkdir(parents=True)
	(databases / 'state.json').write_text('{}')
	name.unlink()
	start_refused(data, 'node.id is missing', 'job_host')
	name.write_text(kept)
	started(start_server, data)
