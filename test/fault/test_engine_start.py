"""Which engine a start chooses, and where its databases lie."""
import os, pathlib, re, shutil, subprocess, tempfile

import pytest

import client, databases

pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')
ELSEWHERE = pathlib.Path('/var/lib/steward')


@pytest.fixture
def place():
	d = pathlib.Path(tempfile.mkdtemp(prefix='swe-', dir=client.SHORT))
	os.chmod(d, 0o711)
	yield d
	shutil.rmtree(d, ignore_errors=True)


def start(data, *args, clock=None):
	"""Starts and stops; answers with the engine and why, as the start tells them."""
	s = client.Server('--log-level', 'info', *args, data_dir=data, clock=clock, engine=None)
	try:
		ready = s.anonymous.get('/readyz').json()['engine']
		told = re.search(r'^steward: engine (\w+): (.+)$', s.stdout, re.M)
		assert told and told.group(1) == ready
		s.stop()
		return told.group(1), told.group(2), s.stderr
	finally:
		s.kill()


def test_real_databases_by_default_and_the_same_again(place):
	name, why, _ = start(place / 'd')
	assert name == 'postgres' and re.match(r'PostgreSQL \d+ is installed', why)
	assert start(place / 'd')[:2] == ('postgres', 'as before on this data directory')
	assert start(place / 'v', clock='virtual')[:2] == ('simulated', 'databases do not follow a virtual clock')
	assert start(place / 'v')[:2] == ('simulated', 'as before on this data directory')
	name, why, log = start(place / 'v', '--engine', 'postgres')
	assert (name, why) == ('postgres', 'as asked for') and 'made by the engine simulated' in log


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to have another user than the databases')
@pytest.mark.parametrize('what', ['closed', 'deep'])
def test_databases_lie_elsewhere_when_they_must(place, what):
	above = place / ('closed' if what == 'closed' else 'x' * 90)
	above.mkdir(mode=0o700 if what == 'closed' else 0o755)
	link = above / 'd' / 'engine'
	try:
		name, _, log = start(above / 'd', '--engine', 'postgres')
		assert name == 'postgres' and 'so they lie in /var/lib/steward/' in log
		first = link.resolve()
		assert link.is_symlink() and ELSEWHERE in first.parents
		name, _, log = start(above / 'd', '--engine', 'postgres')
		assert link.resolve() == first and 'so they lie in' not in log, 'the second start goes there again'
	finally:
		client.databases_end(link)


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to be somebody else')
def test_a_deep_path_is_refused_where_nothing_else_can_be_done(place):
	deep = place / ('x' * 90)
	deep.mkdir()
	os.chown(deep, 65534, 65534)
	binary = place / 'steward'
	shutil.copy(client.binary(), binary)
	r = subprocess.run(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', str(binary), 'serve', '--data',
			    str(deep / 'd'), '--listen', '127.0.0.1:0', '--engine', 'postgres'], stdout=subprocess.PIPE,
			   stderr=subprocess.PIPE, text=True, timeout=180, env=client.environment())
	assert r.returncode != 0 and 'path is too long' in r.stderr and 'Choose another --data' in r.stderr
