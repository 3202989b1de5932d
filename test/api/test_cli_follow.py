"""steward logs and steward events: what they print, and that they go on."""
import json, os, re, signal, subprocess

import pytest

import client
from client import SANITIZER, binary, cli, environment, ok, until
from database import free_port


@pytest.fixture(scope='module')
def service():
	import conftest
	s = client.Server('--engine', 'simulated', clock='real')
	s.control('engine', {'seconds': 0})
	yield s
	conftest.end(s)


@pytest.fixture(autouse=True)
def full(service):
	service.refill()


@pytest.fixture
def run(service, tmp_path, commands):
	def call(*args, check=True):
		env = {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': ''}
		return commands.run(*args, '--data', service.data_dir, check=check, env=env, cwd=tmp_path)
	return call


class Following:
	"""A command that goes on, and what it has printed."""

	def __init__(self, service, *args):
		self.process = subprocess.Popen([binary(), *args, '--data', str(service.data_dir)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
						stdin=subprocess.DEVNULL, env=environment({'STEWARD_PROFILE': '', 'HOME': '/nonexistent'}),
						preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a shell's "&" ignores it
		os.set_blocking(self.process.stdout.fileno(), False)
		self.out = ''

	def has(self, text):
		self.out += (self.process.stdout.read() or b'').decode()
		assert self.process.poll() is None, (self.out, self.process.stderr.read())
		return text in self.out

	def end(self):
		self.process.send_signal(signal.SIGINT)
		out, err = self.process.communicate(timeout=60)
		assert not SANITIZER.search(err.decode()), err
		return self.out + out.decode()


@pytest.fixture
def follow(service):
	made = []

	def start(*args):
		made.append(Following(service, *args))
		return made[-1]
	yield start
	for f in made:
		if f.process.poll() is None:
			f.process.kill()
			f.process.wait()


def asked_again(service, path, times=1):
	"""Two further questions, whose answers have the same again."""
	before = service.stderr.count(path)
	until(lambda: service.stderr.count(path) >= before + 2 * times)


def test_events(service, run):
	n = client.unique('c')
	run('clusters', 'create', n, '--wait')
	until(lambda: 'CLUSTER_READY' in run('events', '--cluster', n).stdout)
	lines = run('events', '--cluster', n).stdout.splitlines()
	assert all(re.match(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  [A-Z_]+ ', x) for x in lines)
	types = [x.split()[1] for x in lines]
	assert types.index('CLUSTER_CREATED') < types.index('CLUSTER_READY'), 'the oldest first'
	assert {x.split()[1] for x in run('events', '--type', 'CLUSTER_CREATED').stdout.splitlines()} == {'CLUSTER_CREATED'}
	silent = run('events', '--cluster', n + 'x')
	assert silent.stdout == '' and silent.stderr == 'steward: no event, and the project has no cluster "%sx"; did you mean "%s"?\n' % (n, n)
	docs = [json.loads(x) for x in run('events', '--cluster', n, '-o', 'json').stdout.splitlines()]
	assert [d['eventTypeName'] for d in docs] == types and all(d['groupId'] == service.group for d in docs)
	assert len(run('events', '--limit', '1').stdout.splitlines()) == 1
	assert run('events', '--since', '2099-01-01').stdout == ''
	assert 'ORG_CREATED' in run('events', '--scope', 'organization').stdout
	for args, word in ((['--since', 'soon'], '--since'), (['--limit', '0'], 'whole number'), (['--scope', 'world'], 'one of'),
			   (['--scope', 'organization', '--cluster', 'x'], '--cluster'), (['x'], 'too many')):
		r = run('events', *args, check=False)
		assert r.returncode == 2 and word in r.stderr and r.stdout == '', r
	assert run('events', '--project', client.NO_ID, check=False).returncode == 1


def test_events_are_followed(service, follow):
	f = follow('events', '--follow', '--limit', '1')
	until(lambda: f.has('Z  '))
	first, second = client.unique('c'), client.unique('c')
	for n in (first, second):
		assert cli('clusters', 'create', n, '--wait', '--data', service.data_dir)
		until(lambda: f.has(n))
	asked_again(service, '/events')
	out = f.end().splitlines()
	for n in (first, second):
		assert sum(n in x and 'CLUSTER_CREATED' in x for x in out) == 1, 'each once'


def test_following_survives_a_restart(start_server):
	"""The service is away for a while, and answers 503 once; what happened since is shown, and nothing twice."""
	address = '127.0.0.1:%d' % free_port()
	s = start_server('--engine', 'simulated', clock='real', listen=address)
	f = Following(s, 'events', '--follow')
	try:
		until(lambda: f.has('GROUP_CREATED'))
		s.stop()
		again = start_server('--engine', 'simulated', clock='real', data_dir=s.data_dir, listen=address)
		again.fault('listGroupEvents', status=503, retryAfterSeconds=1, times=1)
		name = client.unique('c')
		cli('clusters', 'create', name, '--data', again.data_dir)
		until(lambda: f.has(name))
		assert re.search(r' 503 GET \S+/events', again.stderr), 'the fault was met'
	finally:
		out = f.end()
	assert out.count('GROUP_CREATED') == 1, out


def begun(text):
	"""The lines that tell of a node's start. From time to time somebody logs in, too."""
	return [x for x in text.splitlines() if 'is ready' in x]


def test_logs(service, run):
	n = client.unique('c')
	run('clusters', 'create', n, '--wait')
	starts = lambda *args: begun(run('logs', n, *args).stdout)
	lines = starts()
	assert len(lines) == 3 and all(re.match(r'%s-shard-00-0\d  \d{4}-\S+  LOG +simulated node' % n, x) for x in lines), lines
	one = starts('--node', '00-01')
	assert len(one) == 1 and re.match(r'\d{4}-\S+  LOG ', one[0]), 'one node is not named'
	docs = [json.loads(x) for x in starts('-o', 'json')]
	assert len(docs) == 3 and docs[0]['error_severity'] == 'LOG'
	assert run('logs', n, '--audit').stdout == ''
	for args, code, word in (([], 2, 'name is missing'), ([n, '--node', 'x'], 2, 'there are'), ([n, '--since', 'soon'], 2, '--since'),
				 (['nothing'], 1, '404'), ([n, '-o', 'yaml'], 2, 'one of')):
		r = run('logs', *args, check=False)
		assert r.returncode == code and word in r.stderr and r.stdout == '', r


def test_logs_are_followed(service, run, follow):
	n = client.unique('c')
	run('clusters', 'create', n, '--wait')
	f = follow('logs', n, '--follow')
	until(lambda: f.has('00-02'))
	asked_again(service, '/logs/db.gz', 3)
	out = f.end()
	assert len(begun(out)) == 3 and len(set(out.splitlines())) == len(out.splitlines()), 'nothing comes twice'
