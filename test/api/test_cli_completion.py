"""Completion: what `steward __complete` answers, and that real shells show it when TAB is pressed."""
import json, os, pathlib, pty, re, select, shutil, signal, subprocess

import pytest

import client, derive
from client import SANITIZER, binary, cli, environment, ok, until

OPERATIONS = derive.Api().ops
HANDS = ('serve', 'clusters', 'connect', 'api', 'login', 'logout', 'config', 'logs', 'events', 'completion')


@pytest.fixture(scope='module')
def service():
	import conftest
	s = client.Server('--engine', 'simulated', clock='real')
	s.control('engine', {'seconds': 0})
	yield s
	conftest.end(s)


@pytest.fixture(scope='module')
def things(service):
	"""What there is to complete."""
	made = {'cluster': client.unique('compl'), 'user': client.unique('compl')}
	cli('clusters', 'create', made['cluster'], '--wait', '--data', service.data_dir)
	assert service.post('/groups/%s/databaseUsers' % service.group, json={'username': made['user'], 'password': 'long enough to be one',
		'databaseName': 'admin', 'groupId': service.group, 'roles': [{'roleName': 'readAnyDatabase', 'databaseName': 'admin'}]}).ok
	assert service.post('/groups/%s/accessList' % service.group, json=[{'cidrBlock': '10.7.0.0/16'}]).ok
	return made


@pytest.fixture
def env(service, tmp_path):
	return {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': str(service.data_dir), 'TERM': 'dumb',
		'STEWARD_PROJECT': '', 'STEWARD_ORG': ''}


@pytest.fixture
def complete(env, tmp_path, commands):
	"""The candidates for the last word, with their descriptions."""
	def call(*words, **more):
		done = commands.run('__complete', *words, env={**env, **more}, cwd=tmp_path)
		return dict(line.split('\t', 1) if '\t' in line else (line, '') for line in done.stdout.splitlines())
	return call


def test_commands(complete):
	first = complete('')
	rows = [op['command'] for op in OPERATIONS]
	assert set(HANDS) <= set(first) and {c.split()[0] for c in rows} <= set(first)
	assert all(first[x] for x in HANDS), 'each is explained'
	assert set(complete('data')) == {x for x in first if x.startswith('data')}
	assert complete('help', 'conn') == {'connect': first['connect']}
	assert complete('nonsense', '') == {} and complete('--x') == {}


def test_the_way_to_every_command(complete):
	"""Word by word."""
	ways = {}
	for op in OPERATIONS:
		words = op['command'].split()
		for i in range(1, len(words)):
			ways.setdefault(tuple(words[:i]), set()).add(words[i])
	for before, after in ways.items():
		assert after <= set(complete(*before, '')), before


@pytest.mark.parametrize('part', range(4))
def test_flags_of_every_operation(complete, part):
	"""No service is asked for them."""
	for op in OPERATIONS[part::4]:
		flags = complete(*op['command'].split(), '--', STEWARD_DATA='/nonexistent')
		assert {'--help', '--output', '--project'} <= set(flags), op['command']
		for p in op.get('queryParams', []):
			assert '--' + kebab(p['name']) in flags, (op['command'], p['name'])


def kebab(name):
	return re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])', '-', name.lstrip('_')).replace('_', '-').lower()


def test_flags_and_values(complete):
	flags = complete('database-users', 'create', '--')
	assert flags['--username'].startswith('required') and '--roles.0.role-name' in flags
	assert set(complete('projects', 'list', '-o', '')) == {'table', 'wide', 'json', 'yaml', 'name'}
	assert set(complete('projects', 'list', '--output=')) == {'--output=' + x for x in ('table', 'wide', 'json', 'yaml', 'name')}
	assert set(complete('clusters', 'update', 'x', '--replication-specs.3.region-configs.1.provider-name', 'A')) >= {'AWS', 'AZURE'}
	assert set(complete('projects', 'list', '--include-count', '')) <= {'true', 'false'}
	assert set(complete('events', '--scope', '')) == {'project', 'organization'}
	assert complete('login', '--ca-file', '') == {':files': ''} and complete('clusters', 'create', 'x', '--body', '') == {':files': ''}
	assert set(complete('config', '')) == {'list', 'use', 'get', 'set', 'unset', 'path'}
	assert 'project' in complete('config', 'set', '') and complete('config', 'set', 'project', '') == {}
	assert set(complete('completion', '')) == {'bash', 'zsh', 'fish'}
	assert 'pause' in complete('clusters', 'p') and 'process-args' in complete('clusters', 'p')


def test_names_from_the_service(service, things, complete):
	cluster = things['cluster']
	for words in (['connect'], ['logs'], ['clusters', 'get'], ['clusters', 'pause'], ['clusters', 'outage', 'start'], ['clusters', 'update'],
		      ['clusters', 'get', '-o', 'json'], ['events', '--cluster']):
		assert cluster in complete(*words, ''), words
		assert list(complete(*words, cluster[:8])) == [cluster] and complete(*words, 'zzz') == {}, words
	assert complete('clusters', 'get', cluster, '') == {}, 'one is enough'
	assert things['user'] in complete('database-users', 'get', 'admin', '')
	assert '10.7.0.0/16' in complete('access-list', 'remove', '')
	assert cluster in complete('clusters', 'sample-data', 'load', '') and 'owner@localhost' in complete('users', 'get-by-name', '')
	assert ok(service.get('/groups/' + service.group))['name'] in complete('projects', 'get-by-name', '')
	user = ok(service.get('/orgs/%s/users' % service.org))['results'][0]
	assert complete('users', 'get', '')[user['id']] == 'owner@localhost', 'an id says whose it is'
	assert ok(service.get('/groups/' + service.group))['name'] in complete('clusters', 'list', '--project', '')
	assert service.org in complete('clusters', 'list', '--org', '')
	hosts = complete('clusters', 'logs', 'download', '')
	assert hosts and all('-shard-' in x for x in hosts)
	assert set(complete('clusters', 'logs', 'download', next(iter(hosts)), '')) == {'db', 'dbs', 'db-audit-log', 'dbs-audit-log'}


def test_values_from_the_service(service, things, complete):
	"""What the service has: sizes, regions, versions, snapshots, nodes, users, types of events."""
	cluster, group = things['cluster'], '/groups/%s' % service.group
	regions = ok(service.get(group + '/clusters/provider/regions'))['results']
	sizes = {s['name'] for p in regions for s in p['instanceSizes']}
	places = {r['name'] for p in regions for s in p['instanceSizes'] for r in s['availableRegions']}
	assert {'M10', 'M30'} <= sizes and 'US_EAST_1' in places
	assert sizes == set(complete('clusters', 'create', 'x', '--size', '')) == set(complete('clusters', 'scale', cluster, '--size', ''))
	assert set(complete('clusters', 'create', 'x', '--size=M3')) == {'--size=' + s for s in sizes if s.startswith('M3')}
	assert places == set(complete('clusters', 'create', 'x', '--region', ''))
	assert places <= set(complete('clusters', 'update', cluster, '--replication-specs.0.region-configs.0.region-name', '')), 'a flag of the API'
	assert {'M10', 'M30'} <= set(complete('clusters', 'update', cluster, '--replication-specs.0.region-configs.0.electable-specs.instance-size', ''))
	versions = {v['version'] for v in ok(service.get(group + '/dbVersions'))['results']}
	assert versions and versions == set(complete('clusters', 'create', 'x', '--version', ''))
	assert {'AWS', 'AZURE', 'GCP'} <= set(complete('clusters', 'create', 'x', '--provider', ''))
	ok(service.patch(group + '/clusters/' + cluster, json={'backupEnabled': True}))
	taken = until(lambda: (lambda r: r.ok and r.json())(service.post('%s/clusters/%s/backup/snapshots' % (group, cluster), json={'retentionInDays': 1})), what='a snapshot')
	for words in (['backups', 'restore', cluster, '--snapshot'], ['backups', 'show', cluster, '--snapshot'], ['backups', 'restores', 'create', cluster, '--snapshot-id']):
		assert taken['id'] in complete(*words, ''), words
	assert set(complete('logs', cluster, '--node', '')) == {'00-00', '00-01', '00-02'}
	assert things['user'] in complete('connect', cluster, '--user', '')
	assert 'CLUSTER_READY' in complete('events', '--type', 'CLUSTER_R') and cluster in complete('backups', 'restore', cluster, '--target', '')


def test_a_service_that_is_away_says_nothing(complete):
	assert complete('clusters', 'get', '', STEWARD_DATA='/nonexistent') == {}
	assert 'get' in complete('clusters', '', STEWARD_DATA='/nonexistent')


def test_scripts():
	for shell in ('bash', 'zsh', 'fish'):
		assert cli('completion', shell).stdout.count('__complete')
	for wrong in ([], ['tcsh'], ['bash', 'zsh']):
		assert cli('completion', *wrong, check=False).returncode == 2
	assert 'source' in cli('completion', '--help').stdout


class Shell:
	"""A shell on a terminal, where keys are typed."""

	def __init__(self, command, env, cwd):
		folder = pathlib.Path(cwd) / 'bin'
		folder.mkdir(exist_ok=True)
		if not (folder / 'steward').exists():
			(folder / 'steward').symlink_to(binary())
		whole = environment({**env, 'PATH': '%s:%s' % (folder, os.environ['PATH']), 'PS1': '$ ', 'LC_ALL': 'C.UTF-8', 'COLUMNS': '200',
				     'ZDOTDIR': str(cwd)})
		self.pid, self.master = pty.fork()
		if self.pid == 0:
			os.chdir(cwd)
			os.execvpe(command[0], command, whole)
		self.seen = ''

	def read(self):
		while select.select([self.master], [], [], 0.05)[0]:
			try:
				more = os.read(self.master, 65536)
			except OSError:
				return self.seen
			if not more:
				return self.seen
			self.seen += more.decode(errors='replace')
		return self.seen

	def type(self, keys):
		os.write(self.master, keys.encode())

	def wait(self, text, seconds=60):
		until(lambda: text in self.read(), seconds, 'the terminal shows %r; it shows %r' % (text, self.seen[-2000:]))

	def end(self):
		os.kill(self.pid, signal.SIGKILL)
		os.waitpid(self.pid, 0)
		os.close(self.master)


SHELLS = {
	'bash': (['bash', '--norc', '--noprofile', '-i'], "bind 'set show-all-if-ambiguous on'; source <(steward completion bash)"),
	'zsh': (['zsh', '-f', '-i'], 'autoload -U compinit; compinit -u -D; unsetopt list_ambiguous; source <(steward completion zsh)'),
}


@pytest.mark.parametrize('name', SHELLS)
def test_in_a_real_shell(name, things, env, tmp_path):
	if not shutil.which(name):
		pytest.skip('no %s' % name)
	command, setup = SHELLS[name]
	shell = Shell(command, env, tmp_path)
	try:
		shell.type(setup + '; echo rea""dy\n')
		shell.wait('ready')
		# A verb, a name of the service, and what the line does then.
		shell.type('echo steward clu\x15')
		shell.type('steward clusters outa\t')
		shell.wait('outage ')
		shell.type('\x15steward clusters get %s\t' % things['cluster'][:9])
		shell.wait(things['cluster'])
		shell.type('-o json | grep -c stateName; echo do""ne\n')
		shell.wait('done')
		assert re.search(r'^1\r?$', shell.read(), re.M), shell.seen[-1500:]
		# Several candidates are shown.
		shell.type('steward config \t\t')
		for word in ('unset', 'path', 'list'):
			shell.wait(word)
		# A value behind "=".
		shell.type('\x15steward projects list --output=ya\t')
		shell.wait('--output=yaml')
		shell.type('; echo en""ded\n')
		shell.wait('ended')
		assert 'results:' in shell.read(), shell.seen[-1500:]
	finally:
		shell.end()


@pytest.mark.skipif(not shutil.which('fish'), reason='no fish')
def test_in_fish(things, env, tmp_path):
	def asked(line):
		folder = tmp_path / 'bin'
		folder.mkdir(exist_ok=True)
		if not (folder / 'steward').exists():
			(folder / 'steward').symlink_to(binary())
		done = subprocess.run(['fish', '-c', 'steward completion fish | source; complete -C %s' % json.dumps(line)], capture_output=True,
			text=True, timeout=60, env=environment({**env, 'PATH': '%s:%s' % (folder, os.environ['PATH'])}), cwd=tmp_path)
		assert done.returncode == 0, done
		return [x.split('\t')[0] for x in done.stdout.splitlines()]
	assert 'outage' in asked('steward clusters out')
	assert things['cluster'] in asked('steward clusters get ')
	assert 'unset' in asked('steward config ')
