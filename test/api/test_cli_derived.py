"""The client's derived commands: one for each operation of api/*.json. What a command should send is worked out here from the
data, by code of its own; the live part runs commands against a real server."""
import ctypes, json, os, pty, re, select, shlex, subprocess, time
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

import client, derive
from client import SANITIZER, binary, environment, ok, until

DONE, NOT_DONE, USAGE, UNREACHED, TIMEOUT = 0, 1, 2, 3, 4
API = derive.Api()
GROUP, ORG = '5f0000000000000000000011', '5f0000000000000000000022'
SECRET = re.compile(r'(password|secret|apikey|accesskey|accountkey|privatekey|sslkey|token)$', re.I)
PAGES = [{'name': 'pageNum', 'type': 'integer'}, {'name': 'itemsPerPage', 'type': 'integer'},
	 {'name': 'includeCount', 'type': 'boolean'}]
OWN = {'body', 'set', 'output', 'query', 'all', 'wait', 'watch', 'timeout', 'dry-run', 'yes', 'profile', 'data', 'project', 'org',
       'help'}


def kebab(name):
	name = re.sub(r'([a-z0-9])([A-Z])', r'\1-\2', name.lstrip('_'))
	return re.sub(r'([A-Z])([A-Z][a-z])', r'\1-\2', name).replace('_', '-').lower()


def scalar(value):
	return value if isinstance(value, str) else json.dumps(value)


def body_flags(value, path=''):
	"""A body as somebody would type it."""
	if isinstance(value, dict) and value:
		return [x for k, v in value.items() for x in body_flags(v, path + '.' + kebab(k) if path else kebab(k))]
	if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
		return [x for i, v in enumerate(value) for x in body_flags(v, '%s.%d' % (path, i) if path else str(i))]
	if isinstance(value, list) and value:
		return ['--%s=%s' % (path, scalar(v)) for v in value]
	if isinstance(value, (dict, list)) or value is None:
		return ['--set', '%s:=%s' % (path, json.dumps(value))]
	text = scalar(value)
	return ['--%s' % path, text] if text and not text.startswith('--') else ['--%s=%s' % (path, text)]


def masked(op, value, name=''):
	if isinstance(value, dict):
		return {k: masked(op, v, k) for k, v in value.items()}
	if isinstance(value, list):
		return [masked(op, v) for v in value]
	return '***' if isinstance(value, str) and SECRET.search(name) else value


def words_of(op):
	return op['command'].split()


def path_values(op):
	out = {}
	for p in op['pathParams']:
		value = API.minimal(p)
		out[p['name']] = {'groupId': GROUP, 'orgId': ORG}.get(p['name'], value)
	return out


def params_of(op):
	return op.get('queryParams', []) + (PAGES if op.get('paginated') else [])


def param_values(p):
	value = API.minimal(p)
	if isinstance(value, list):
		item = API.minimal(p.get('items', {}))
		return [scalar(item)]
	return [scalar(value)]


@pytest.fixture(scope='module')
def home(tmp_path_factory):
	"""A profile of a service that is not there: --dry-run calls nobody."""
	folder = tmp_path_factory.mktemp('home')
	path = folder / '.config' / 'steward' / 'profiles' / 'default'
	path.parent.mkdir(parents=True)
	path.write_text('base-url = https://127.0.0.1:1\nclient-id = nobody\nclient-secret = very-secret\n'
			'project = %s\norganization = %s\n' % (GROUP, ORG))
	path.chmod(0o600)
	return folder


@pytest.fixture(scope='module')
def dry(home, commands):
	def call(*args, check=True, **env):
		env = {'HOME': str(home), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': '', **env}
		return commands.run(*args, check=check, env=env, cwd=home)
	return call


def shown(text):
	"""(method, URL, headers, body) of what --dry-run prints."""
	head, _, body = text.partition('\n\n')
	first, *lines = head.strip().split('\n')
	method, url = first.split(' ', 1)
	return method, urlsplit(url), dict(line.split(': ', 1) for line in lines), json.loads(body) if body else None


def ids(ops):
	return [op['operationId'] for op in ops]


@pytest.mark.parametrize('op', API.ops, ids=ids(API.ops))
def test_request(dry, op):
	"""The right path, query, headers and body."""
	values, query, headers, args = path_values(op), [], {}, []
	for p in params_of(op):
		for value in param_values(p):
			query.append((p['name'], value))
			args += ['--' + kebab(p['name']), value]
	for p in op.get('headerParams', []):
		headers[p['name']] = param_values(p)[0]
		args += ['--' + kebab(p['name']), headers[p['name']]]
	body = API.good(op, **{**values, 'groupId': GROUP, 'orgId': ORG, 'teamId': derive.HEX24})
	if body == []:
		body = API.full(op['request'])
	args += body_flags(body) if body is not None else []
	words = [v for n, v in values.items() if n not in ('groupId', 'orgId')]
	named = op['method'] == 'DELETE' and re.search(r'\{(groupId|orgId)\}$', op['path'])
	whole = dry(*words_of(op), *values.values(), *args, '--dry-run', check=False)
	done = whole if named else dry(*words_of(op), *words, *args, '--dry-run')
	if words == list(values.values()) or words_of(op)[0] in ('projects', 'orgs') or list(values)[0] not in ('groupId', 'orgId'):
		assert whole.stdout == done.stdout, 'a command about a project or an organization takes it as a word too'
	elif op['method'] != 'POST':  # where a word may be the name of what is made
		assert whole.returncode == USAGE and 'a word too many' in whole.stderr
	method, url, sent, document = shown(done.stdout)
	path = op['path']
	for name, value in values.items():
		path = path.replace('{%s}' % name, quote(value, safe=''))
	assert method == op['method'] and url.path == client.BASE + path
	assert sorted(parse_qsl(url.query, keep_blank_values=True)) == sorted(query)
	assert {k: v for k, v in sent.items() if k in headers} == headers
	assert document == masked(op, body)
	assert 'very-secret' not in done.stdout + done.stderr and sent['Authorization'] == 'Bearer ***'


@pytest.mark.parametrize('op', API.ops, ids=ids(API.ops))
def test_help(dry, op):
	text = dry(*words_of(op), '--help').stdout
	flat = ' '.join(text.split())
	assert 'Usage: steward ' + op['command'] in text and op['summary'] in flat
	assert 'Calls %s %s%s' % (op['method'], client.BASE, op['path']) in text
	for p in params_of(op) + op.get('headerParams', []):
		assert re.search(r'^  --%s\b' % kebab(p['name']), text, re.M), p['name']
	fields, required, _ = API.merged(API.resolve(op['request'])) if 'request' in op else ({}, [], None)
	for name in required:
		if not API.read_only(fields[name]) and not API.resolve(fields[name]).get('deprecated'):
			assert re.search(r'^  --%s\b' % kebab(name), text, re.M), name
	assert max(map(len, text.splitlines())) <= 160
	assert dry('help', *words_of(op)).stdout in text


def fields_of(schema, depth=0):
	"""Of any branch."""
	s = API.resolve(schema)
	s = API.resolve(s['items']) if s.get('type') == 'array' else s
	fields = API.merged(s)[0]
	for _, branch in API.branches(s) if depth < 3 else []:
		fields = {**fields_of(branch, depth + 1), **fields}
	return fields


def flags_of(op):
	fields = fields_of(op['request']) if 'request' in op else {}
	return [kebab(p['name']) for p in params_of(op)] + [kebab(n) for n, f in fields.items() if not API.read_only(f)]


@pytest.mark.parametrize('op', API.ops, ids=ids(API.ops))
def test_unknown_flags_get_the_nearest(dry, op):
	known = [n for n in flags_of(op) if len(n) > 5] or ['output']
	name = max(known, key=len)
	typed = name[:3] + name[4:]
	words = [v for n, v in path_values(op).items() if n not in ('groupId', 'orgId')]
	r = dry(*words_of(op), *words, '--' + typed, 'x', '--dry-run', check=False)
	if op['operationId'] == 'withStreamSampleConnections':  # a body that may have any field
		assert shown(r.stdout)[3] == {typed: 'x'}
		return
	assert r.returncode == USAGE and 'did you mean --%s?' % name in r.stderr and r.stdout == '', (typed, r)


def test_commands_are_told_apart():
	"""Unique, also as aliases; none hides the client's own options."""
	every = [c for op in API.ops for c in [op['command'], *op.get('commandAliases', [])]]
	assert len(API.ops) == 447 and len(set(every)) == len(every)
	for op in API.ops:
		assert not set(flags_of(op)) & OWN, op['operationId']


def test_aliases(dry):
	for op in API.ops:
		for alias in op.get('commandAliases', []):
			assert dry(*alias.split(), '--help').stdout == dry(*words_of(op), '--help').stdout


def test_help_has_the_options_that_fit(dry):
	"""What a command would refuse does not stand in its help; flags of pages come after those of the body."""
	has = lambda option, *words: re.search(r'^  --%s\b' % option, dry(*words, '--help').stdout, re.M) is not None
	for option, yes, no in (('all', 'projects list', 'projects get'), ('body', 'projects create', 'projects list'), ('yes', 'projects delete', 'projects get'),
				('wait', 'flex-clusters create', 'teams create'), ('watch', 'projects get', 'teams create')):
		assert has(option, *yes.split()) and not has(option, *no.split()), option
	text = dry('access-list', 'add', '--help').stdout
	assert text.index('--cidr-block') < text.index('--page-num')


def test_families(dry):
	every = dry('--help').stdout
	assert 'Others:' not in every and len(re.findall(r'^\S.*:$', every, re.M)) > 8, 'each family has its subject'
	for family in sorted({op['command'].split()[0] for op in API.ops}):
		assert re.search(r'^  %s\b' % family, every, re.M)
		text = dry(family, '--help').stdout
		for op in API.ops:
			if op['command'].startswith(family + ' '):
				assert op['command'][len(family) + 1:] in text, op['command']
		if family != 'clusters' and family != 'events':
			assert dry(family, check=False).returncode == USAGE


@pytest.mark.parametrize('args, said', [
	(['projcts', 'list'], 'did you mean "steward projects"'), (['projects', 'lst'], 'did you mean "steward projects list"'),
	(['backups', 'snapshots', 'lst'], 'did you mean "steward backups snapshots list"'),
	(['backups', 'nothing'], 'backups --help'), (['backups', 'snapshots', 'list'], 'steward backups snapshots list CLUSTER'),
	(['projects', 'list', 'a', 'b'], 'a word too many'), (['teams', 'create', 'ops', 'more'], 'a word too many'), (['teams', 'create', 'ops', '--name', 'ops'], '"ops" is a word too many: --name was given too'), (['projects', 'delete'], 'say which one: steward projects delete PROJECT'),
	(['orgs', 'delete'], 'say which one'), (['projects', 'list', '--wait'], '--wait'), (['projects', 'get', '--all'], '--all'),
	(['policies', 'create', '--watch'], '--watch'), (['projects', 'list', '-o', 'xml'], '--output'),
	(['projects', 'list', '--query', 'a..b'], '--query'), (['projects', 'list', '--items-per-page', '501'], '--items-per-page: '),
	(['projects', 'list', '--items-per-page'], 'needs a value'), (['projects', 'list', '-x'], 'no such option'),
	(['projects', 'list', '--body', '{}'], 'takes no body'), (['projects', 'list', '--set', 'a=b'], 'takes no body'),
	(['projects', 'create', '--name'], 'needs a value'), (['projects', 'create', '--body', '/nonexistent'], '--body'),
	(['projects', 'create', '--name', 'x', '--id', 'y'], 'is filled in by the service'),
	(['projects', 'create', '--name', 'x', '--set', 'nothing'], 'PATH=VALUE'),
	(['projects', 'create', '--name', 'x', '--set', 'tags:=['], 'is not JSON'),
	(['projects', 'create', '--name', 'x', '--tags.0.kee', 'y'], 'did you mean --tags.0.key?'),
	(['projects', 'create', '--name', 'x', '--name.first', 'y'], '--name.first'),
	(['projects', 'create', '--name', 'x', '--with-default-alerts-settings', '--tags', 'y'], '--tags'),
	(['backups', 'private-endpoints', 'list', 'MARS'], 'AWS'),
	(['projects', 'describe'], 'did you mean "steward projects get"'),
	(['teams', 'members'], '"steward teams members add", "steward teams members remove"'),
	(['users', 'list'], '"steward org-users list"'), (['keys', 'list'], 'did you mean "steward api-keys"'),
	(['--nothing', 'x', 'projects', 'list'], 'options stand after the command'), (['projects', 'list', '-oxml'], '"xml" is not one of'),
	(['pause', 'c'], 'did you mean "steward clusters pause"'), (['version'], 'did you mean "steward --version"'),
	(['clusters', 'resize', 'c'], 'did you mean "steward clusters scale"'), (['clusters', 'stop', 'c'], 'did you mean "steward clusters pause"'),
	(['clusters', 'lst'], 'did you mean "steward clusters list"'), (['clusters', 'scale', 'c'], '--size, --nodes or --disk'),
	(['clusters', 'scale', 'c', '--region', 'X'], 'create only'), (['clusters', 'update', 'c', '--size', 'M20'], 'did you mean "steward clusters scale"?'),
	(['access-list', 'add', '--cidr', 'x'], 'did you mean --cidr-block?'), (['api-keys', 'create', '--name', 'x'], 'did you mean --desc?'),
	(['clusters', 'update', 'c', '--region', 'x'], 'did you mean --replication-specs.0.region-configs.0.region-name?'),
	(['access-list', 'add'], '--body FILE'), (['projects', 'get', ''], 'empty'),
])
def test_what_is_wrong_is_said(dry, args, said):
	r = dry(*args, '--dry-run', check=False)
	assert r.returncode == USAGE and said in r.stderr and r.stdout == '', r


def test_missing_flags_are_told_at_once(dry):
	r = dry('teams', 'create', '--dry-run', check=False)
	assert r.returncode == USAGE and '--name: is required' in r.stderr and '--usernames: is required' in r.stderr
	r = dry('database-users', 'create', '--dry-run', check=False)
	assert r.returncode == USAGE and '--username: is required' in r.stderr
	assert 'group-id' not in r.stderr and '--database-name' not in r.stderr, 'the project is known, the database has a default'
	assert '--roles.0.role-name: is required' in r.stderr, 'what is missing is told as it can be given'
	r = dry('policies', 'create', '--name', 'x', '--dry-run', check=False)
	assert r.returncode == USAGE and r.stderr == 'steward: --policies.0.body: is required\n'
	role = {'roleName': 'read', 'databaseName': 'a'}
	made = dry('database-users', 'create', '--username', 'u', *body_flags({'roles': [role]}), '--dry-run')
	assert shown(made.stdout)[3] == {'databaseName': 'admin', 'groupId': GROUP, 'username': 'u', 'roles': [role]}


def test_forms_of_flags(dry):
	def body(*args):
		return shown(dry(*args, '--dry-run').stdout)[3]
	assert body('projects', 'create', '--name', 'shop', '--no-with-default-alerts-settings') == {
		'name': 'shop', 'orgId': ORG, 'withDefaultAlertsSettings': False}
	assert body('projects', 'create', '--name=shop', '--with-default-alerts-settings', '--tags.0.key', 'a', '--tags.0.value=b',
		    '--tags.1.key', 'c', '--tags.1.value', 'd')['tags'] == [{'key': 'a', 'value': 'b'}, {'key': 'c', 'value': 'd'}]
	assert body('projects', 'create', '--set', 'name=x', '--set', 'tags:=[{"key":"k","value":"v"}]')['tags'] == [
		{'key': 'k', 'value': 'v'}]
	assert body('access-list', 'add', '--cidr-block', '10.0.0.0/8', '--comment', 'ours') == [
		{'cidrBlock': '10.0.0.0/8', 'comment': 'ours'}]
	assert body('access-list', 'add', '--ip-address', '10.0.0.1', '--1.ip-address', '10.0.0.2') == [
		{'ipAddress': '10.0.0.1'}, {'ipAddress': '10.0.0.2'}]
	user = body('database-users', 'update', 'admin', 'app', '--roles.role-name', 'read', '--roles.database-name', 'shop')
	assert user == {'databaseName': 'admin', 'username': 'app', 'groupId': GROUP,
			'roles': [{'roleName': 'read', 'databaseName': 'shop'}]}
	assert body('org-users', 'invite', '--username', 'a@example.com', '--roles.org-roles', 'ORG_MEMBER', '--roles.org-roles',
		    'ORG_READ_ONLY')['roles'] == {'orgRoles': ['ORG_MEMBER', 'ORG_READ_ONLY']}
	region = '--replication-specs.0.region-configs.0.'
	cluster = body('clusters', 'create', '--name', 'c', '--cluster-type', 'REPLICASET', region + 'provider-name', 'AWS',
		       region + 'region-name', 'US_EAST_1', region + 'priority', '7', region + 'electable-specs.node-count', '3',
		       region + 'electable-specs.instance-size', 'M10')
	assert cluster == {**derive.CLUSTER, 'name': 'c'}


def test_which_project(dry):
	def path(*args, **env):
		return shown(dry('access-list', 'list', *args, '--dry-run', **env).stdout)[1].path
	other = '5f0000000000000000000033'
	assert GROUP in path() and other in path('--project', other) and other in path(STEWARD_PROJECT=other)
	assert GROUP in path('--project', GROUP, STEWARD_PROJECT=other), 'a flag is stronger than the environment'
	assert other in shown(dry('teams', 'list', '--org', other, '--dry-run').stdout)[1].path
	both = dry('teams', 'list', '--profile', 'x', '--data', 'y', check=False)
	assert both.returncode == USAGE and 'not both' in both.stderr


def test_bodies_from_files(dry, home):
	file = home / 'project.json'
	file.write_text('{"name": "of the file", "orgId": "%s"}' % ORG)
	assert shown(dry('projects', 'create', '--body', file, '--dry-run').stdout)[3]['name'] == 'of the file'
	assert shown(dry('projects', 'create', '--body', file, '--name', 'other', '--dry-run').stdout)[3]['name'] == 'other'
	r = subprocess.run([binary(), 'projects', 'create', '--body', '-', '--dry-run'], input=file.read_text(), text=True,
			   capture_output=True, env=environment({'HOME': str(home), 'XDG_CONFIG_HOME': ''}), cwd=home)
	assert r.returncode == DONE and shown(r.stdout)[3]['name'] == 'of the file', r


def test_dry_run_as_curl(dry):
	line = dry('projects', 'create', '--name', "it's", '--dry-run=curl').stdout
	assert line.startswith('curl ') and '-X POST' in line and "it'\\''s" in line and 'https://127.0.0.1:1/api/svc/v2/groups' in line
	words = subprocess.run(['bash', '-c', 'set -- %s; printf "%%s\\n" "$@"' % line.strip()], capture_output=True,
			       text=True).stdout.split('\n')
	assert json.loads(words[words.index('-d') + 1]) == {'name': "it's", 'orgId': ORG}


def test_secrets(home):
	"""Asked for with "-", warned of on the command line, never shown."""
	def run(*args, **more):
		return subprocess.run([binary(), 'database-users', 'create', '--username', 'u', '--database-name', 'admin',
				       '--roles.role-name', 'read', '--roles.database-name', 'a', *args, '--dry-run'], text=True,
				      capture_output=True, env=environment({'HOME': str(home), 'XDG_CONFIG_HOME': ''}), cwd=home, **more)
	r = run('--password', '-', input='long-and-secret\n')
	assert r.returncode == DONE and r.stderr == '' and 'long-and-secret' not in r.stdout and shown(r.stdout)[3]['password'] == '***'
	r = run('--password', 'long-and-secret')
	assert r.returncode == DONE and 'other users' in r.stderr and 'long-and-secret' not in r.stdout + r.stderr
	r = run('--set', 'password=long-and-secret')
	assert r.returncode == DONE and '--password: other users' in r.stderr and 'long-and-secret' not in r.stdout + r.stderr
	r = run('--password', '-', input='')
	assert r.returncode == USAGE


# Against a service.

@pytest.fixture(scope='module')
def service():
	import conftest
	s = client.Server('--engine', 'simulated', clock='real')
	s.control('engine', {'seconds': 0.4})
	yield s
	conftest.end(s)


@pytest.fixture
def run(service, tmp_path, commands):
	service.refill()

	def call(*args, check=True, **env):
		env = {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': '', **env}
		return commands.run(*args, '--data', service.data_dir, check=check, env=env, cwd=tmp_path)
	return call


def doc(done):
	return json.loads(done.stdout)


def test_life_of_a_project(run, service):
	made = doc(run('projects', 'create', '--name', client.unique('cli'), '-o', 'json'))
	assert made['orgId'] == service.org
	assert run('projects', 'get', made['id'], '-o', 'name').stdout.strip() == made['name']
	assert doc(run('projects', 'get', made['name'], '-o', 'json'))['id'] == made['id'], 'by name too'
	assert doc(run('projects', 'get-by-name', made['name'], '-o', 'json'))['id'] == made['id']
	assert doc(run('projects', 'update', made['id'], '--name', made['name'] + '-2', '-o', 'json'))['name'] == made['name'] + '-2'
	assert made['id'] in run('projects', 'list', '--all', '-o', 'json').stdout
	settings = doc(run('projects', 'settings', 'update', made['id'], '--is-data-explorer-enabled=false', '-o', 'json'))
	assert settings['isDataExplorerEnabled'] is False
	assert run('projects', 'delete', made['id'], '--yes').stdout == ''
	gone = run('projects', 'get', made['id'], check=False)
	assert gone.returncode == NOT_DONE and '404' in gone.stderr and gone.stdout == ''


def test_access(run, service):
	"""Access entry, database user, custom role, team with a member, key with an access list, policy: no JSON is typed."""
	assert '10.7.0.0/16' in run('access-list', 'add', '--cidr-block', '10.7.0.0/16', '--comment', 'office').stdout
	listed = run('access-list', 'list').stdout
	assert re.search(r'^10\.7\.0\.0/16\b.*office', listed, re.M)
	assert doc(run('access-list', 'get', '10.7.0.0/16', '-o', 'json'))['comment'] == 'office'
	run('access-list', 'remove', '10.7.0.0/16')
	name = client.unique('u')
	run('database-roles', 'create', '--role-name', name + 'r', '--actions.action', 'FIND', '--actions.resources.db', 'shop',
	    '--actions.resources.collection', '', '--actions.resources.cluster=false')
	user = doc(run('database-users', 'create', '--username', name, '--password', 'a-long-password-1', '--database-name', 'admin',
		       '--roles.role-name', name + 'r', '--roles.database-name', 'admin', '-o', 'json'))
	assert user['roles'] == [{'roleName': name + 'r', 'databaseName': 'admin'}] and 'password' not in user
	assert re.search(r'^%s +admin' % name, run('database-users', 'list').stdout, re.M)
	assert doc(run('database-users', 'list', '-o', 'json', '--query', 'results.*.username')).count(name) == 1
	run('database-users', 'update', 'admin', name, '--roles.role-name', 'read', '--roles.database-name', 'shop')
	run('database-users', 'delete', 'admin', name, '--yes')
	run('database-roles', 'delete', name + 'r', '--yes')
	me = doc(run('org-users', 'list', '-o', 'json'))['results'][0]
	team = doc(run('teams', 'create', '--name', client.unique('t'), '--usernames', me['username'], '-o', 'json'))
	assert me['username'] in run('teams', 'users', 'list', team['id']).stdout
	run('project-teams', 'add', '--team-id', team['id'], '--role-names', 'GROUP_READ_ONLY')
	assert team['id'] in run('project-teams', 'list').stdout
	run('teams', 'delete', team['id'], '--yes')
	key = doc(run('api-keys', 'create', '--desc', 'of the test', '--roles', 'ORG_MEMBER', '-o', 'json'))
	run('api-keys', 'access-list', 'add', key['id'], '--ip-address', '192.0.2.7')
	assert '192.0.2.7' in run('api-keys', 'access-list', 'list', key['id']).stdout
	run('api-keys', 'delete', key['id'], '--yes')
	policy = doc(run('policies', 'create', '--name', client.unique('p'), '--policies.body', derive.POLICY['policies'][0]['body'],
			 '-o', 'json'))
	assert re.search(r'^%s +%s' % (policy['name'], policy['id']), run('policies', 'list').stdout, re.M)
	run('policies', 'delete', policy['id'], '--yes')


def test_forms_of_output(run, service):
	one = doc(run('orgs', 'get', '-o', 'json'))
	assert one['id'] == service.org and run('orgs', 'get', '-o', 'name').stdout.strip() == one['name']
	assert ('id: %s' % service.org) in run('orgs', 'get', '-o', 'yaml').stdout.replace('"', '').replace("'", '')
	assert run('orgs', 'get', '--query', 'id').stdout.strip().strip('"') == service.org
	table = run('rate-limits', 'list').stdout
	assert re.match(r'ENDPOINT', table) and len(table.splitlines()) > 60


def test_all_pages(run, service):
	group = service.project()['id']
	for i in range(7):
		run('access-list', 'add', '--project', group, '--ip-address', '10.9.0.%d' % i)
	page = run('access-list', 'list', '--project', group, '--items-per-page', '2')
	assert len(page.stdout.splitlines()) == 3 and '2 of 7; --all prints all' in page.stderr
	every = run('access-list', 'list', '--project', group, '--items-per-page', '2', '--all', '-o', 'json')
	assert len(doc(every)['results']) == doc(every)['totalCount'] == 7 and '100%' in every.stderr
	wrong = run('access-list', 'list', '--project', group, '--all', '--page-num', '2', check=False)
	assert wrong.returncode == USAGE


def test_waiting(run, service):
	name = client.unique('flex')
	service.control('engine', {'seconds': 2})
	flags = ['--name', name, '--provider-settings.backing-provider-name', 'AWS', '--provider-settings.region-name', 'US_EAST_1']
	made = run('flex-clusters', 'create', *flags, '--wait', '-o', 'json')
	assert doc(made)['stateName'] == 'IDLE' and '%s 100%% done' % name in made.stderr
	assert doc(run('flex-clusters', 'get', name, '--wait', '-o', 'json'))['stateName'] == 'IDLE'
	service.control('engine', {'seconds': 0.4})
	gone = run('flex-clusters', 'delete', name, '--wait', '--yes')
	assert '100% done' in gone.stderr
	assert run('flex-clusters', 'get', name, check=False).returncode == NOT_DONE


def test_watching(run, service):
	name = client.unique('flex')
	service.control('engine', {'seconds': 2})
	flags = ['--name', name, '--provider-settings.backing-provider-name', 'AWS', '--provider-settings.region-name', 'US_EAST_1']
	states = run('flex-clusters', 'create', *flags, '--watch', '--query', 'stateName').stdout.split()
	assert [s.strip('"') for s in states] == ['CREATING', 'IDLE']
	service.control('engine', {'seconds': 0.4})
	run('flex-clusters', 'delete', name, '--wait', '--yes')
	group = service.project()['id']
	seen = run('access-list', 'list', '--project', group, '--watch', '--timeout', '1', '-o', 'json')
	assert doc(seen)['results'] == []


def test_a_wait_ends(run, service):
	name = client.unique('flex')
	service.control('engine', {'seconds': 3600})
	flags = ['--name', name, '--provider-settings.backing-provider-name', 'AWS', '--provider-settings.region-name', 'US_EAST_1']
	r = run('flex-clusters', 'create', *flags, '--wait', '--timeout', '1', check=False)
	assert r.returncode == TIMEOUT and 'not done after 1 s' in r.stderr
	service.control('engine', {'seconds': 0.4})


def test_unbuilt_is_no_outage(run):
	r = run('live-migrations', 'projects', 'list', check=False)
	assert r.returncode == NOT_DONE and '501' in r.stderr and 'trying again will not help' in r.stderr


def test_a_name_where_an_id_is_wanted(run, service):
	r = run('teams', 'get', 'crew', check=False)
	assert r.returncode == NOT_DONE and 'TEAM is an id, which "crew" is not; "steward teams list" shows ids' in r.stderr


def test_a_refused_field_names_its_flag(run, service):
	"""Also where only the service can tell that it is wrong; what it refuses besides has no flag."""
	tags = ['--tags.%d.%s=%s' % (i, k, v) for i in (0, 1) for k, v in (('key', 'team'), ('value', 'x'))]
	r = run('projects', 'create', '--name', client.unique('cli'), *tags, check=False)
	assert r.returncode == NOT_DONE and re.search(r'^steward: 400 DUPLICATE_TAG: tags\[1\]\.key: ', r.stderr, re.M), r.stderr
	assert re.search(r'^steward: --tags\.1\.key sets tags\[1\]\.key$', r.stderr, re.M), r.stderr
	r = run('projects', 'update', client.NO_ID, '--name', 'x', check=False)
	assert r.returncode == NOT_DONE and ' sets ' not in r.stderr, r.stderr


def test_forms_joined_to_their_letter(run, service):
	clusters = '/groups/%s/clusters' % service.group
	until(lambda: {c['stateName'] for c in ok(service.get(clusters))['results']} <= {'IDLE'}, what='the end of what others have begun')
	for family in ('projects', 'clusters'):
		for form in ('json', 'yaml', 'name', 'table'):
			said = run(family, 'list', '-o', form).stdout
			assert run(family, 'list', '-o' + form).stdout == said == run(family, 'list', '-o=' + form).stdout, (family, form)


def test_clusters_both_ways(run, service):
	"""The hand-written commands, and the same with flags of the API."""
	name = client.unique('c')
	run('clusters', 'create', name, '--wait')
	changed = doc(run('clusters', 'update', name, '--no-backup-enabled', '--tags.key', 'a', '--tags.value', 'b', '--wait', '-o', 'json'))
	assert changed['tags'] == [{'key': 'a', 'value': 'b'}] and changed['stateName'] == 'IDLE'
	assert re.search(r'^name: "?%s"?$' % name, run('clusters', 'get', name, '-o', 'yaml').stdout, re.M)
	assert run('clusters', 'get', name, '--query', 'stateName').stdout.strip().strip('"') == 'IDLE'
	assert name in run('clusters', 'list', '--all').stdout and name in run('clusters', 'list', '-o', 'name').stdout
	assert doc(run('clusters', 'status', name, '-o', 'json'))['changeStatus'] == 'APPLIED'
	dry = run('clusters', 'create', 'another', '--nodes', '5', '--dry-run').stdout
	assert shown(dry)[0] == 'POST' and shown(dry)[3]['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs']['nodeCount'] == 5
	assert shown(run('clusters', 'pause', name, '--dry-run').stdout)[3] == {'paused': True}
	assert run('clusters', 'delete', name, '--yes', '--wait').stdout == name + ' is deleted\n'


def test_an_archive(run, service):
	name = client.unique('c')
	made = doc(run('clusters', 'create', name, '--wait', '-o', 'json'))
	host = re.search(r'://([^:]+):', made['connectionStrings']['standard']).group(1)
	r = subprocess.run([binary(), 'clusters', 'logs', 'download', host, 'db', '--data', str(service.data_dir)],
			   capture_output=True, env=environment())
	assert r.returncode == DONE and r.stdout[:2] == b'\x1f\x8b', r
	run('clusters', 'delete', name, '--yes')


def typed(args, keys, env, seconds=60):
	"""Runs steward on a terminal and answers its question; (exit code, what the terminal saw)."""
	outer, inner = pty.openpty()
	p = subprocess.Popen([binary(), *map(str, args)], stdout=inner, stderr=inner, stdin=inner, env=environment(env))
	os.close(inner)
	seen, sent, end = b'', False, time.monotonic() + seconds
	while time.monotonic() < end:
		if select.select([outer], [], [], 0.1)[0]:
			try:
				more = os.read(outer, 4096)
			except OSError:
				break
			if not more:
				break
			seen += more
		if not sent and b'[y/N]' in seen:
			os.write(outer, keys)
			sent = True
	p.wait(timeout=seconds)
	os.close(outer)
	assert not SANITIZER.search(seen.decode()), seen
	return p.returncode, seen.decode()


def test_deletes_are_confirmed_on_a_terminal(run, service, tmp_path):
	env = {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': ''}
	run('access-list', 'add', '--ip-address', '10.11.0.1')
	args = ['access-list', 'remove', '10.11.0.1', '--data', service.data_dir]
	code, seen = typed(args, b'n\n', env)
	assert code == NOT_DONE and 'nothing was done' in seen and '10.11.0.1' in seen
	assert run('access-list', 'get', '10.11.0.1').returncode == DONE
	code, seen = typed([*args, '--yes'], b'', env)
	assert code == DONE and '[y/N]' not in seen
	run('access-list', 'add', '--ip-address', '10.11.0.1')
	code, seen = typed(args, b'y\n', env)
	assert code == DONE and run('access-list', 'get', '10.11.0.1', check=False).returncode == NOT_DONE
	code, seen = typed(['clusters', 'restart-primaries', 'nobody', '--data', service.data_dir], b'n\n', env)
	assert code == NOT_DONE and 'nothing was done' in seen  # the row says that it is dangerous


@pytest.fixture
def body_of(dry):
	return lambda *words: shown(dry(*words, '--dry-run').stdout)[3]


def test_what_is_made_is_named_by_a_word(body_of):
	assert body_of('projects', 'create', 'shop') == body_of('projects', 'create', '--name', 'shop')
	assert body_of('access-list', 'add', '10.0.0.0/8') == [{'cidrBlock': '10.0.0.0/8'}]
	assert body_of('access-list', 'add', '10.1.2.3', '--comment', 'mine') == [{'ipAddress': '10.1.2.3', 'comment': 'mine'}]


def test_one_grammar_for_clusters(dry, body_of):
	"""Flags for the shape of a cluster and flags of the API stand beside each other, in any form of output."""
	usual = body_of('clusters', 'create', 'c')
	assert usual['name'] == 'c' and usual['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs'] == {'instanceSize': 'M10', 'nodeCount': 3}
	for more in (['-o', 'name'], ['--query', 'id'], ['--watch']):
		assert body_of('clusters', 'create', 'c', *more) == usual
	more = body_of('clusters', 'create', 'c', '--size', 'M30', '--nodes', '5', '--backup-enabled', '--tags.key', 'a', '--tags.value', 'b')
	assert more['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs'] == {'instanceSize': 'M30', 'nodeCount': 5}
	assert more['backupEnabled'] is True and more['tags'] == [{'key': 'a', 'value': 'b'}] and more['name'] == 'c'
	own = body_of('clusters', 'create', 'c', '--cluster-type', 'REPLICASET', '--replication-specs.zone-name', 'z')
	assert own['replicationSpecs'] == [{'zoneName': 'z'}], 'nodes that are said one by one are no others'
	refusal = dry('clusters', 'create', 'c', '--body', '{}', '--size', 'M30', '--backup-enabled', check=False)
	assert refusal.returncode == USAGE and '--body is the whole request' in refusal.stderr


@pytest.mark.parametrize('given, meant', [
	(['--org', ORG, 'teams', 'list'], ['teams', 'list', '--org', ORG]), (['-o', 'json', '--all', 'projects', 'ls'], ['projects', 'list', '-o', 'json', '--all']),
	(['clusters', 'ls', '--all'], ['clusters', 'list', '--all']),
	(['clusters', 'ls'], ['clusters', 'list']), (['clusters', 'rm', 'c', '--yes'], ['clusters', 'delete', 'c', '--yes']),
	(['--yes', 'teams', 'users', 'rm', derive.HEX24, derive.HEX24], ['teams', 'users', 'remove', derive.HEX24, derive.HEX24, '--yes'])])
def test_options_before_the_command_and_words_of_shells(dry, given, meant):
	assert dry(*given, '--dry-run').stdout == dry(*meant, '--dry-run').stdout != ''


PLACES = {'-': 'secret-secret', 'ID': derive.HEX24, 'SERVICE_ID': derive.HEX24, 'ROLE_ID': derive.HEX24, 'HASH': derive.HEX24, 'OLD': GROUP, 'NEW': ORG, 'HOST:PORT': 'db.example.com:5432'}


def lines_of_pages(program):
	"""(page, words) of each line of that program in a block of a page, without comments, redirections and what it is piped into."""
	for page in sorted((client.ROOT / 'docs').glob('**/*.md')) + [client.ROOT / 'README.md']:
		if 'decisions' in page.parts or page.name == 'tutorial.md':  # which test/postgres/test_tutorial.py runs
			continue
		text = page.read_text()
		blocks = re.findall(r'^    (?:\$ |sudo )?((?:build/)?%s (?:\\\n|.)*)' % program, text, re.M)
		blocks += re.findall(r'^((?:build/)?%s (?:\\\n|.)*)' % program, ''.join(re.findall(r'^```sh.*?\n(.*?)^```', text, re.M | re.S)), re.M)
		for line in blocks:
			line = re.sub(r'\s*<<<.*|\s+(?:[|<>]|&&).*|\s+>\S.*|\s+<\S.*', '', line.replace('\\\n', ' '))
			try:
				words = shlex.split(line, comments=True)
			except ValueError:  # a quotation goes on in the next line
				words = line.split()
			if len(words) > 1:
				yield page, words[1:]


def commands_of_pages():
	"""Those of the API; of a body that is given whole nothing but the command is looked at."""
	families = {op['command'].split()[0] for op in API.ops}
	for page, words in lines_of_pages('steward'):
		if '--body' in words:
			words = words[:words.index('--body')] + ['--body', '{}']
		if words[0] in families and words[:2] not in (['clusters', 'ca'], ['search-indexes', 'try']) and words[0] != 'events':
			yield pytest.param([PLACES.get(w, w) for w in words], id='%s: %s' % (page.name, ' '.join(words)))


def others_of_pages():
	families = {op['command'].split()[0] for op in API.ops}
	seen = set()
	for page, words in lines_of_pages('steward'):
		if (words[0] not in families or words[0] in ('events', 'clusters', 'backups', 'advisor') or words[:2] == ['search-indexes', 'try']) and (page.name, *words) not in seen:
			seen.add((page.name, *words))
			yield pytest.param(words, id='%s: %s' % (page.name, ' '.join(words)))


@pytest.mark.parametrize('words', others_of_pages())
def test_other_commands_of_pages_are_commands(dry, words):
	"""The operator's, and those that are written by hand: there is such a command, and it has each of these options."""
	if words[0].startswith('-') or words[0] == 'help' or words[0].isupper():
		assert words[0] in ('--help', '--version', 'help', 'FAMILY', 'COMMAND'), words
		return
	known = dry(words[0], '--help').stdout
	if len(words) > 1 and not words[1].startswith('-'):
		part = dry(words[0], words[1], '--help', check=False)
		known += part.stdout if part.returncode == DONE else ''
	for word in words[1:]:
		name = re.match(r'--[a-z][a-z0-9-]*', word)
		if name and not (words[0] == 'api' and word == '--'):
			flag = re.sub(r'^--no-', '--', name.group()) if name.group() not in known else name.group()
			assert re.search(r'(^|[\s\[|])%s\b' % re.escape(flag), known, re.M) or words[0] in ('clusters', 'backups', 'advisor'), (flag, words)


def test_options_in_tables_of_pages_are_those_of_serve(dry):
	"""The client's page has tables of its own options; all others are about `steward serve`."""
	known, seen = set(re.findall(r'--[a-z][a-z0-9-]+', dry('serve', '--help').stdout)), set()
	for page in sorted((client.ROOT / 'docs').glob('*.md')):
		for cell in re.findall(r'^\| ([^|]*`--[^|]*) \|', page.read_text(), re.M) if page.name != 'cli.md' else []:
			for option in re.findall(r'(?<![\w-])--[a-z][a-z0-9-]+', cell):
				seen.add(option)
				assert option in known, (page.name, option)
	assert len(seen) > 40


CURLED = ('/api/oauth/token', '/api/oauth/device', '/openapi.json', '/metrics', '/healthz', '/readyz', '/ca', '/api/test/', '/api/console/', '/api/session', '/feeds/', '/prometheus/')


def test_calls_of_pages_are_operations():
	"""What the pages have curl call is there."""
	calls = 0
	for page, words in lines_of_pages('curl'):
		urls = [w for w in words if re.match(r"https://[^/]+/", w)]
		for url in urls:
			path = re.sub(r'^https://[^/]+', '', url).split('?')[0]
			if not path.startswith('/api/svc/v2'):
				assert path.startswith(CURLED) or 'example.com' in url and page.name in ('log-export.md', 'integrations.md'), (page.name, url)
				continue
			calls += 1
			method = words[words.index('-X') + 1] if '-X' in words else 'POST' if '-d' in words or '--data' in words else 'GET'
			known = re.sub(r'\$\{?\w+\}?|\{\w+\}|<\w+>|\b[A-Z][A-Z_]*\b', derive.HEX24, path[len('/api/svc/v2'):]) or ''
			assert API.match(method, known or '/') or not known.strip('/') or known.endswith('/events:stream'), (page.name, method, url)
	assert calls > 3


def strings_of_pages():
	"""(page, string): what psql is given on a page, and connection strings that stand alone. What a command in it prints is a string of a cluster."""
	cluster = 'postgresql://a.example:1,b.example:2/postgres?hostaddr=192.0.2.1,192.0.2.2&sslmode=require&target_session_attrs=read-write'
	for page in sorted((client.ROOT / 'docs').glob('**/*.md')) + [client.ROOT / 'README.md']:
		text = page.read_text() if 'decisions' not in page.parts else ''
		for found in re.findall(r'psql "((?:\$\([^)]*\)|[^"])+)"', text) + re.findall(r'^    (postgresql://\S+)$', text, re.M):
			yield page.name, re.sub(r'^(?:\$\([^)]*\)|STRING)', lambda _: cluster, found)


def test_connection_strings_of_pages_are_taken_by_libpq():
	libpq = ctypes.CDLL('libpq.so.5')
	libpq.PQconninfoParse.restype, fault, seen = ctypes.c_void_p, ctypes.c_char_p(), 0
	for page, string in strings_of_pages():
		assert libpq.PQconninfoParse(string.encode(), ctypes.byref(fault)), (page, string, fault.value)
		seen += 1
	assert seen >= 5


@pytest.mark.parametrize('words', commands_of_pages())
def test_commands_of_pages_are_commands(dry, words):
	"""Some have to ask the service first, which is not there."""
	done = dry(*words, '--dry-run', check=False)
	assert done.returncode in (DONE, UNREACHED), done.stderr
