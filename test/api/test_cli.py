"""The client in the binary: clusters and any call, signed in from bootstrap.json or a profile, against a real server."""
import http.server, json, os, pathlib, pty, re, select, socket, ssl, subprocess, threading, time

import pytest
import requests

import client, derive
from client import NO_ID, SANITIZER, binary, cli, environment, ok, until

DONE, NOT_DONE, USAGE, UNREACHED, TIMEOUT = 0, 1, 2, 3, 4


@pytest.fixture(scope='module')
def service():
	"""Real time, so that something is under way; not recorded."""
	import conftest
	s = client.Server('--engine', 'simulated', clock='real')
	yield s
	conftest.end(s)


@pytest.fixture(autouse=True)
def quick(service):
	service.control('engine', {'seconds': 0.4})
	service.refill()


@pytest.fixture
def run(service, tmp_path, commands):
	"""Runs steward signed in from the service's bootstrap.json; no profile of ours is seen, and no ./data."""
	def call(*args, check=True, data=True, **env):
		env = {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': '', **env}
		return commands.run(*args, *(['--data', service.data_dir] if data else []), check=check, env=env, cwd=tmp_path)
	return call


def name():
	return client.unique('c')


def profile(tmp_path, text, file='default', mode=0o600):
	path = tmp_path / '.config' / 'steward' / 'profiles' / file
	path.parent.mkdir(parents=True, exist_ok=True)
	path.write_text(text)
	path.chmod(mode)
	return path


def account_text(s, **more):
	a = s.bootstrap['serviceAccount']
	return ''.join('%s = %s\n' % x for x in {'base-url': s.base_url, 'ca-file': s.ca_file, 'client-id': a['clientId'],
		'client-secret': a['clientSecret'], 'project': s.group, **more}.items())


def key_text(s, **more):
	k = s.bootstrap['apiKey']
	return ''.join('%s = "%s"\n' % x for x in {'base-url': s.base_url, 'ca-file': s.ca_file, 'public-key': k['publicKey'],
		'private-key': k['privateKey'], 'project': s.group, **more}.items())


def test_life_of_a_cluster(service, run):
	n = name()
	service.control('engine', {'seconds': 3})  # long enough to be seen under way
	made = run('clusters', 'create', n, '--wait')
	assert re.search(r'^name +%s$' % n, made.stdout, re.M) and re.search(r'^state +IDLE$', made.stdout, re.M)
	assert 'postgresql://' in made.stdout and '\r' not in made.stderr
	lines = made.stderr.splitlines()
	assert any('%s 100%% done' % n in x for x in lines) and all(x.startswith('steward: ' + n) for x in lines)
	assert any('CREATING' in x for x in lines), 'how far it was'
	service.control('engine', {'seconds': 0.4})
	doc = json.loads(run('clusters', 'get', n, '-o', 'json').stdout)
	assert doc['name'] == n and doc['stateName'] == 'IDLE'
	assert [x['name'] for x in json.loads(run('clusters', 'list', '-o', 'json').stdout)].count(n) == 1
	assert re.search(r'^%s +IDLE +REPLICASET +\S+ +3 +M10$' % n, run('clusters', 'list').stdout, re.M)
	run('clusters', 'pause', n, '--wait')
	assert re.search(r'^%s +PAUSED ' % n, run('clusters', 'list').stdout, re.M)
	assert json.loads(run('clusters', 'resume', n, '--wait', '-o', 'json').stdout)['paused'] is False
	gone = run('clusters', 'delete', n, '--wait', '--yes')
	assert gone.stdout == n + ' is deleted\n'
	again = run('clusters', 'get', n, check=False)
	assert again.returncode == NOT_DONE and again.stdout == '' and '404' in again.stderr


def test_scaling(service, run):
	"""All that the cluster has stays, but for what was said; in every form of output."""
	c = name()
	run('clusters', 'create', c, '--size', 'M10', '--nodes', '3', '--region', 'EU_WEST_1', '--wait')
	before = json.loads(run('clusters', 'get', c, '-o', 'json').stdout)
	assert run('clusters', 'scale', c, '--size', 'M30', '--wait', '-o', 'name').stdout == c + '\n'
	after = json.loads(run('clusters', 'get', c, '-o', 'json').stdout)
	wanted = before['replicationSpecs'][0]['regionConfigs'][0]
	for kind in ('electableSpecs', 'readOnlySpecs', 'analyticsSpecs'):
		wanted[kind]['instanceSize'] = 'M30'
	assert after['replicationSpecs'][0]['regionConfigs'][0] == wanted and after['replicationSpecs'][0]['id'] == before['replicationSpecs'][0]['id']
	run('clusters', 'scale', c, '--nodes', '5', '--disk', '40', '--wait')
	specs = json.loads(run('clusters', 'get', c, '-o', 'json').stdout)['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs']
	assert (specs['nodeCount'], specs['diskSizeGB'], specs['instanceSize']) == (5, 40, 'M30')
	shown = run('clusters', 'scale', c, '--size', 'M40', '--dry-run').stdout
	assert shown.startswith('PATCH ') and '"M40"' in shown and '"M30"' not in shown
	r = run('clusters', 'scale', c + 'x', '--size', 'M40', check=False)
	assert r.returncode == NOT_DONE and '404' in r.stderr
	run('clusters', 'delete', c, '--wait', '--yes')
	run('clusters', 'create', c, '--size', 'M0', '--wait')
	run('clusters', 'scale', c, '--size', 'M10', '--wait')
	config = json.loads(run('clusters', 'get', c, '-ojson').stdout)['replicationSpecs'][0]['regionConfigs'][0]
	assert config['providerName'] == 'AWS' and config['electableSpecs']['nodeCount'] == 3 and 'backingProviderName' not in config
	run('clusters', 'delete', c, '--wait', '--yes')


def test_scaling_of_several_regions(service, run):
	"""The size is that of all of them; how many nodes each has is not guessed."""
	c, region = name(), lambda n, p: {'providerName': 'AWS', 'regionName': n, 'priority': p, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': p - 5}}
	body = {'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [region('US_EAST_1', 7), region('EU_WEST_1', 6)]}]}
	run('clusters', 'create', c, '--body', json.dumps(body), '--wait')
	r = run('clusters', 'scale', c, '--nodes', '5', check=False)
	assert r.returncode == USAGE and 'several regions' in r.stderr
	run('clusters', 'scale', c, '--size', 'M20', '--wait')
	configs = json.loads(run('clusters', 'get', c, '-o', 'json').stdout)['replicationSpecs'][0]['regionConfigs']
	assert [(x['regionName'], x['priority'], x['electableSpecs']['instanceSize'], x['electableSpecs']['nodeCount']) for x in configs] == [
		('US_EAST_1', 7, 'M20', 2), ('EU_WEST_1', 6, 'M20', 1)]
	run('clusters', 'delete', c, '--wait', '--yes')


def test_a_shared_size_becomes_flex(service, run):
	"""It lies elsewhere then: the wait follows it."""
	n = name()
	run('clusters', 'create', n, '--size', 'M0', '--wait')
	settings = json.dumps({'name': n, 'providerSettings': {'providerName': 'FLEX', 'instanceSizeName': 'FLEX'}})
	done = run('clusters', 'upgrade', '--body', settings, '--wait', '--yes', '-o', 'json')
	doc = json.loads(done.stdout)
	assert doc['name'] == n and doc['stateName'] == 'IDLE' and doc['providerSettings']['providerName'] == 'FLEX' and doc['backupSettings'] == {'enabled': True}
	assert 'flex' not in done.stderr and n in run('flex-clusters', 'list').stdout
	run('flex-clusters', 'delete', n, '--wait', '--yes')


def test_a_shared_size(service, run):
	n = name()
	shown = run('clusters', 'create', n, '--size', 'M0', '--wait').stdout
	assert 'nodes     1\nsize      M0\nplace     TENANT US_EAST_1' in shown
	few = run('clusters', 'create', name(), '--size', 'M0', '--nodes', '3', check=False)
	assert few.returncode == 2 and '--nodes: a cluster of the size M0 has one node' in few.stderr
	run('clusters', 'delete', n, '--wait', '--yes')


def test_without_wait(service, run):
	n = name()
	assert json.loads(run('clusters', 'create', n, '--nodes', '5', '--size', 'M20', '-o', 'json').stdout)['stateName'] == 'CREATING'
	assert 'state     IDLE' in run('clusters', 'wait', n).stdout
	doc = ok(service.get('/groups/%s/clusters/%s' % (service.group, n)))
	spec = doc['replicationSpecs'][0]['regionConfigs'][0]['electableSpecs']
	assert spec['nodeCount'] == 5 and spec['instanceSize'] == 'M20'
	assert run('clusters', 'delete', n, '--yes').stdout == n + ' is being deleted\n'


def test_shapes(service, run, tmp_path):
	n = name()
	doc = json.loads(run('clusters', 'create', n, '--shards', '2', '--provider', 'GCP', '--region', 'WESTERN_EUROPE', '--version',
		'16', '--disk', '20', '--wait', '-o', 'json').stdout)
	assert doc['clusterType'] == 'SHARDED' and len(doc['replicationSpecs']) == 2 and doc['dbMajorVersion'] == '16'
	config = doc['replicationSpecs'][1]['regionConfigs'][0]
	assert (config['providerName'], config['regionName']) == ('GCP', 'WESTERN_EUROPE')
	assert config['electableSpecs']['diskSizeGB'] == 20
	whole = tmp_path / 'cluster.json'
	whole.write_text(json.dumps({'name': 'other', 'clusterType': 'REPLICASET', 'tags': [{'key': 'a', 'value': 'b'}],
		'replicationSpecs': [{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'EU_WEST_1', 'priority': 7,
		'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}))
	m = name()
	doc = json.loads(run('clusters', 'create', m, '--body', str(whole), '-o', 'json').stdout)
	assert doc['name'] == m and doc['tags'] == [{'key': 'a', 'value': 'b'}]
	r = run('clusters', 'create', m, '--body', '@%s' % whole, '--nodes', '3', check=False)
	assert r.returncode == USAGE and '--nodes' in r.stderr


def test_timeout(service, run):
	service.control('engine', {'seconds': 3600})

	def told():
		r = run('clusters', 'create', name(), '--wait', '--timeout', '1', check=False)
		assert r.returncode == TIMEOUT, r
		return 'not done after 1 s' in r.stderr
	assert any(told() for _ in range(4)), 'on a slow machine, a call that takes a second may end it first'


def on_terminal(args, env, seconds=120):
	"""Runs steward with a terminal as its stderr; returns (exit code, stdout, what the terminal saw)."""
	outer, inner = pty.openpty()
	p = subprocess.Popen([binary(), *map(str, args)], stdout=subprocess.PIPE, stderr=inner, stdin=subprocess.DEVNULL,
			     env=environment(env))
	os.close(inner)
	seen, end = b'', time.monotonic() + seconds
	while time.monotonic() < end:
		if select.select([outer], [], [], 0.1)[0]:
			try:
				more = os.read(outer, 4096)
			except OSError:
				break
			if not more:
				break
			seen += more
	out = p.communicate(timeout=seconds)[0].decode()
	os.close(outer)
	assert not SANITIZER.search(seen.decode()), seen
	return p.returncode, out, seen.decode()


def test_bar_on_a_terminal(service):
	n = name()
	service.control('engine', {'seconds': 3})
	code, out, seen = on_terminal(['clusters', 'create', n, '--wait', '--data', service.data_dir], {})
	assert code == DONE and n in out
	assert seen.count('\r[') >= 2 and re.search(r'\[#{40}\] 100% done', seen) and seen.endswith('\n')
	assert 'CREATING' in seen


def test_api(service, run):
	doc = json.loads(run('api', 'get', '/groups').stdout)
	assert service.group in [g['id'] for g in doc['results']]
	page = json.loads(run('api', 'GET', '/groups', '--query', 'itemsPerPage=1', '--query', 'includeCount=false').stdout)
	assert len(page['results']) == 1 and 'totalCount' not in page
	made = json.loads(run('api', 'POST', '/groups', '--body', json.dumps({'name': 'cli&project', 'orgId': service.org})).stdout)
	assert made['name'] == 'cli&project'
	assert json.loads(run('api', 'GET', '/groups/byName/cli%26project').stdout)['id'] == made['id']
	assert json.loads(run('api', 'GET', made['links'][0]['href']).stdout)['id'] == made['id'], 'a link of the service'
	assert json.loads(run('api', 'GET', '/groups/{groupId}').stdout)['id'] == service.group
	assert json.loads(run('api', 'GET', '/groups/{groupId}', '--project', 'cli&project').stdout)['id'] == made['id']
	assert json.loads(run('api', 'GET', '/orgs/{orgId}').stdout)['id'] == service.org
	told = run('api', '-i', 'GET', '/groups/{groupId}', '--header', 'X-Steward-Describe-Caller: true').stdout
	assert 'x-steward-caller-address: 127.0.0.1' in told.lower()
	assert run('api', 'GET', '/groups', '--header', 'nothing', check=False).returncode == USAGE
	assert json.loads(run('api', 'PATCH', '/groups/' + made['id'], '--body', '{"name": "cli-two"}').stdout)['name'] == 'cli-two'
	assert run('api', 'DELETE', '/groups/' + made['id']).stdout == ''
	assert run('api', 'GET', '/').stdout.startswith('{') and run('api', 'GET', '/healthz').returncode == DONE
	listed = json.loads(run('api', 'GET', '/groups/{groupId}/clusters', '--query', 'pretty=true').stdout)
	assert 'results' in listed


def test_api_headers_bodies_versions(service, run, tmp_path):
	r = run('api', 'HEAD', '/groups')
	assert r.stdout.startswith('HTTP/') and 'x-request-id:' in r.stdout.lower()
	r = run('api', 'GET', '/groups', '-i', '--accept', 'application/vnd.svc.2023-01-01+json')
	head, _, body = r.stdout.partition('\n\n') if '\n\n' in r.stdout else r.stdout.partition('\r\n\r\n')
	assert 'vnd.svc.2023-01-01+json' in head and json.loads(body)['results']
	file = tmp_path / 'body.json'
	file.write_text('[{"cidrBlock": "10.1.0.0/16", "comment": "from a file"}]')
	made = json.loads(run('api', 'POST', '/groups/{groupId}/accessList', '--body', '@%s' % file).stdout)
	assert '10.1.0.0/16' in [e['cidrBlock'] for e in made['results']]
	done = subprocess.run([binary(), 'api', 'POST', '/groups/{groupId}/accessList', '--body', '@-', '--data', str(service.data_dir)],
		input='[{"cidrBlock": "10.2.0.0/16"}]', capture_output=True, text=True, env=environment())
	assert done.returncode == DONE and '10.2.0.0/16' in done.stdout, done.stderr
	for wrong in ('{', '@%s/nothing' % tmp_path, '@%s' % tmp_path):
		r = run('api', 'POST', '/groups', '--body', wrong, check=False)
		assert r.returncode == USAGE and '--body' in r.stderr, r


def test_ids_stand_in_bodies_too(service, run):
	"""As whole values only; a body without them goes out as it was given."""
	made = json.loads(run('api', 'POST', '/groups', '--body', json.dumps({'name': name(), 'orgId': '{orgId}'})).stdout)
	assert made['orgId'] == service.org
	n = name()
	users = '/groups/{groupId}/databaseUsers'
	run('api', 'POST', users, '--body', json.dumps({'username': n, 'password': 'long {groupId} enough', 'databaseName': 'admin',
		'groupId': '{groupId}', 'description': 'of {groupId}', 'labels': [{'key': 'org', 'value': '{orgId}'}],
		'roles': [{'roleName': 'readAnyDatabase', 'databaseName': 'admin'}]}))
	doc = ok(service.get('/groups/%s/databaseUsers/admin/%s' % (service.group, n)))
	assert doc['description'] == 'of {groupId}' and doc['labels'] == [{'key': 'org', 'value': service.org}]
	ok(service.delete('/groups/%s/databaseUsers/admin/%s' % (service.group, n)), 204)
	ok(service.delete('/groups/' + made['id']), 204)
	bare = run('api', 'POST', '/groups', '--body', '{"name": "x", "orgId": "{orgId}"}', check=False, data=False,
		   STEWARD_PROFILE=str(profile(pathlib.Path(service.data_dir), account_text(service), 'bare')))
	assert bare.returncode == USAGE and 'which organization?' in bare.stderr


def test_api_pipes_archives(service, run):
	n = name()
	doc = json.loads(run('clusters', 'create', n, '--wait', '-o', 'json').stdout)
	host = re.search(r'://([^:]+):', doc['connectionStrings']['standard']).group(1)
	done = subprocess.run([binary(), 'api', 'GET', '/groups/{groupId}/clusters/%s/logs/db.gz' % host, '--data',
		str(service.data_dir)], capture_output=True, env=environment())
	assert done.returncode == DONE and done.stdout[:2] == b'\x1f\x8b', (done.stdout[:300], done.stderr)


def test_refusals_say_what_to_do(service, run):
	r = run('api', 'GET', '/groups/' + NO_ID, check=False)
	assert r.returncode == NOT_DONE and json.loads(r.stdout)['error'] == 404, 'the document too, for programs'
	assert r.stderr.startswith('steward: 404 ')
	r = run('clusters', 'create', 'bad_name', check=False)
	assert r.returncode == NOT_DONE and '400' in r.stderr and 'name' in r.stderr
	for args, word in ((['api'], 'METHOD PATH'), (['api', 'GET'], 'METHOD PATH'), (['api', 'FETCH', '/groups'], 'no method'),
			   (['api', 'GET', 'groups'], 'slash'), (['api', 'GET', '/a b'], 'percent-encode'),
			   (['api', 'GET', '/groups', '--query', 'x'], 'NAME=VALUE'),
			   (['api', 'GET', '/groups'] + 33 * ['--query', 'a=b'], 'more than 32 times'), (['clusters'], 'say list'),
			   (['clusters', 'shrink'], 'clusters scale'), (['clusters', 'get'], 'name is missing'),
			   (['clusters', 'create'], 'name is missing'), (['clusters', 'get', 'x', '--nodes', '3'], 'create and scale only'),
			   (['clusters', 'list', 'x'], 'shows one'), (['clusters', 'list', '--wait'], '--wait'),
			   (['clusters', 'list', '--profile', 'x'], 'not both'),
			   (['clusters', 'create', 'x', '--nodes', 'many'], 'whole number')):
		r = run(*args, check=False)
		assert r.returncode == USAGE and word in r.stderr and r.stdout == '', (args, r)


def test_profiles(service, run, tmp_path):
	r = run('clusters', 'list', check=False, data=False)
	assert r.returncode == USAGE and '--data DIR' in r.stderr and '--profile NAME' in r.stderr
	profile(tmp_path, account_text(service))
	profile(tmp_path, key_text(service) + '# a comment\n', 'key')

	def names(*args, **more):
		"""Not their states: one may be under way."""
		return [c['name'] for c in json.loads(run('clusters', 'list', '-o', 'json', *args, data=False, **more).stdout)]
	until(lambda: 'DELETING' not in [c['stateName'] for c in ok(service.get('/groups/%s/clusters' % service.group))['results']])
	listed = names()
	assert names('--profile', 'key') == listed
	assert names(STEWARD_PROFILE='key') == listed
	assert names('--profile', tmp_path / '.config/steward/profiles/key') == listed
	assert names(STEWARD_DATA=str(service.data_dir), HOME='/nonexistent') == listed
	n = name()  # digest, with bodies
	doc = json.loads(run('clusters', 'create', n, '--wait', '-o', 'json', '--profile', 'key', data=False).stdout)
	assert doc['stateName'] == 'IDLE'
	run('clusters', 'delete', n, '--profile', 'key', '--yes', data=False)
	r = run('clusters', 'list', '--profile', 'nothing', check=False, data=False)
	assert r.returncode == USAGE and 'steward login nothing' in r.stderr


def test_profiles_that_are_wrong(service, run, tmp_path):
	secret = service.bootstrap['serviceAccount']['clientSecret']

	def refused_(text, code, *words, mode=0o600):
		profile(tmp_path, text, 'wrong', mode)
		r = run('clusters', 'list', '--profile', 'wrong', check=False, data=False)
		assert r.returncode == code, r
		for w in words:
			assert w in r.stderr, r
		assert secret not in r.stderr + r.stdout
	good = account_text(service)
	refused_(good, USAGE, 'chmod 600', mode=0o644)
	refused_('client-id = x\nclient-secret = y\n', USAGE, 'base-url')
	refused_('base-url = %s\n' % service.base_url, USAGE, 'client-id')
	refused_('base-url = http://127.0.0.1:1\n', USAGE, 'https://')
	refused_(good.replace('client-secret', 'client-secet'), USAGE, 'did you mean')
	refused_('\n'.join(x for x in good.split('\n') if 'client-secret' not in x), USAGE, 'go together')
	refused_('\n'.join(x for x in good.split('\n') if 'project' not in x), USAGE, '--project')
	refused_(account_text(service, project='nowhere'), USAGE, 'nowhere')
	refused_('\n'.join(x for x in good.split('\n') if 'ca-file' not in x), UNREACHED, 'not trusted', 'ca-file')
	refused_(account_text(service, **{'base-url': 'https://127.0.0.1:1'}), UNREACHED, 'cannot be reached')
	refused_(account_text(service, **{'client-secret': 'mdb_sa_sk_' + 'x' * 40}), NOT_DONE, 'client-secret')
	refused_(key_text(service, **{'private-key': '00000000-0000-0000-0000-000000000000'}), NOT_DONE, '401', 'wrong')


def while_time_passes(s, *args, step):
	"""Runs steward while the service's clock moves on, from each of its calls to the next: none shall take hours."""
	p = subprocess.Popen([binary(), *args, '--data', str(s.data_dir)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
			     env=environment())
	end, calls = time.monotonic() + 120, 0
	while p.poll() is None and time.monotonic() < end:
		if s.stderr.count('/clusters') > calls:
			calls = s.stderr.count('/clusters')
			s.advance(step)
			s.refill()
		time.sleep(0.1)
	if p.poll() is None:
		p.kill()
	out, err = p.communicate(timeout=60)
	assert not SANITIZER.search(err), err
	return p.returncode, out, err


def test_failure_ends_the_wait(start_server):
	s = start_server('--engine', 'simulated')
	s.control('engine', {'seconds': 0, 'fail': 'create', 'times': 1000})
	code, out, err = while_time_passes(s, 'clusters', 'create', 'broken', '--wait', step=60)
	assert code == NOT_DONE and 'REPAIRING' in err and 'asked for this failure' in err and out == '', (out, err)
	code, out, err = while_time_passes(s, 'clusters', 'get', 'broken', step=60)
	assert code == DONE and 'state     REPAIRING' in out and re.search('^status    failed: .*asked for this failure', out, re.M), out
	s.control('engine', {'fail': None})
	code, out, err = while_time_passes(s, 'clusters', 'delete', 'broken', '--wait', '--yes', step=60)
	assert code == DONE and out == 'broken is deleted\n', err


def test_token_is_renewed(start_server):
	"""A wait may outlive a token."""
	s = start_server('--engine', 'simulated', '--simulated-seconds', '7300')
	code, out, err = while_time_passes(s, 'clusters', 'create', 'slow', '--wait', step=1500)
	assert code == DONE and 'IDLE' in out, err
	assert len(re.findall(r'/api/oauth/token', s.stderr)) > 1


def test_certificate_authority(service, run):
	"""What clients verify the databases by; no credentials are needed for it."""
	group = service.project()['id']
	none = run('clusters', 'ca', '--project', group, check=False)
	assert none.returncode == NOT_DONE and 'first cluster' in none.stderr and none.stdout == ''
	run('clusters', 'create', name(), '--project', group)
	pem = run('clusters', 'ca', '--project', group).stdout
	assert pem.startswith('-----BEGIN CERTIFICATE-----') and 'PRIVATE' not in pem
	nobody = requests.Session()
	nobody.verify, nobody.trust_env = service.ca_file, False
	url = service.base_url + '/ca/'
	r = nobody.get(url + group)
	assert r.status_code == 200 and r.text == pem and r.headers['Content-Type'] == 'application/x-pem-file'
	for wrong in (NO_ID, '', group + '/', group[:-1], '%2e%2e'):
		assert nobody.get(url + wrong).json()['errorCode'] == 'RESOURCE_NOT_FOUND', wrong
	r = nobody.post(url + group)
	assert r.status_code == 405 and r.headers['Allow'] == 'GET, HEAD'
	assert run('api', 'GET', '/ca/' + group).stdout == pem
	assert run('clusters', 'ca', 'x', check=False).returncode == USAGE


@pytest.fixture
def impostor(service, tmp_path):
	"""A service that says what it likes, with a certificate that is trusted: a function from path to (status, headers, body)."""
	class Handler(http.server.BaseHTTPRequestHandler):
		def do_GET(self):
			status, headers, text = (200, {}, '{"access_token":"t"}') if 'oauth' in self.path else server.answer(self.path)
			self.rfile.read(int(self.headers.get('Content-Length') or 0))
			self.send_response(status)
			for header in headers.items():
				self.send_header(*header)
			self.send_header('Content-Length', str(len(text.encode())))
			self.end_headers()
			self.wfile.write(text.encode())
		do_POST = do_GET

		def log_message(self, *args):
			pass

	server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(service.data_dir / 'tls' / 'server.crt', service.data_dir / 'tls' / 'server.key')
	server.socket = context.wrap_socket(server.socket, server_side=True)
	profile(tmp_path, account_text(service, **{'base-url': 'https://127.0.0.1:%d' % server.server_port}))
	threading.Thread(target=server.serve_forever, daemon=True).start()
	yield server
	server.shutdown()
	server.server_close()


def test_nothing_moves_the_cursor(impostor, run):
	"""Neither in what is shown nor in what went wrong: no escape, in either spelling."""
	bad = 'x\x1b[2Jy\u009b31m\x07'
	impostor.answer = lambda path: (200, {'X-Steward-Progress': 'failed: \x1b]0;title\x07'}, json.dumps(
		{'name': bad, 'stateName': 'REPAIRING', 'dbVersion': bad, 'connectionStrings': {'standard': bad}}))
	shown = run('clusters', 'get', 'c', data=False)
	told = run('clusters', 'wait', 'c', data=False, check=False)
	assert 'x [2Jy' in shown.stdout and 'status    failed:' in shown.stdout and told.returncode == NOT_DONE and ']0;title' in told.stderr
	impostor.answer = lambda path: (409, {}, json.dumps({'errorCode': bad, 'detail': bad}))
	refusal = run('clusters', 'get', 'c', data=False, check=False)
	assert refusal.returncode == NOT_DONE
	for text in (shown.stdout, told.stderr, refusal.stderr):
		assert not re.search('[\x00-\x09\x0b-\x1f\x7f-\x9f]', text), repr(text)


def test_a_derived_wait_goes_by_the_state(impostor, run):
	"""Moving states are waited for, failures end it, and an answer that names nothing cannot be waited for."""
	states = iter(['PENDING', 'PENDING', 'ACTIVE'])
	impostor.answer = lambda path: (200, {}, json.dumps({'_id': 'a', 'state': next(states)}))
	done = run('online-archives', 'get', 'c', 'a', '--wait', '--project', NO_ID, '-o', 'json', data=False)
	assert json.loads(done.stdout)['state'] == 'ACTIVE' and next(states, None) is None
	impostor.answer = lambda path: (200, {}, '{"id": "s", "status": "failed"}')
	failed = run('backups', 'snapshots', 'get', 'c', 's', '--wait', '--project', NO_ID, data=False, check=False)
	assert failed.returncode == NOT_DONE and 's is failed' in failed.stderr and failed.stdout == ''
	impostor.answer = lambda path: (200, {}, '{"stateName": "CREATING"}')
	lost = run('flex-clusters', 'create', '--name', 'c', '--provider-settings.backing-provider-name', 'AWS',
		   '--provider-settings.region-name', 'US_EAST_1', '--wait', '--project', NO_ID, data=False, check=False)
	assert lost.returncode == NOT_DONE and 'does not say what to wait for' in lost.stderr


def test_pages_without_end(impostor, run):
	"""A list that says how many there are is read until they are there, one that does not until a page is empty."""
	pages = iter([2, 1])
	impostor.answer = lambda path: (200, {}, json.dumps({'results': next(pages) * [{'id': 'x'}], 'totalCount': 3}))
	assert len(json.loads(run('projects', 'list', '--all', '-o', 'json', data=False).stdout)['results']) == 3
	several = iter([2, 2, 0])
	impostor.answer = lambda path: (200, {}, json.dumps({'results': next(several) * [{'id': 'x'}]}))
	assert len(json.loads(run('projects', 'list', '--all', '-o', 'json', data=False).stdout)['results']) == 4


@pytest.mark.parametrize('status, code, said, unsaid', [
	(403, 'INSUFFICIENT_ROLE', 'lack a role', 'policy'), (403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST', 'from this address', 'role'),
	(403, 'RESOURCE_POLICY_VIOLATION', 'no role would help', 'lack a role'), (403, 'CANNOT_GRANT_ROLE', 'an owner can', 'address'),
	(501, 'NOT_IMPLEMENTED', 'trying again will not help', 'try again in a while'),
	(501, 'METHOD_NOT_IMPLEMENTED', 'trying again will not help', 'try again in a while'),
	(500, 'UNEXPECTED_ERROR', 'try again in a while', 'role'), (503, 'STORE_UNAVAILABLE', 'try again in a while', 'role'),
	(500, 'NEVER_HEARD_OF', 'try again in a while', 'role'), (401, 'INVALID_CREDENTIALS', 'the credentials come from', 'role'),
	(400, 'CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API', 'steward flex-clusters get', 'role'),
	(400, 'CANNOT_USE_NON_FLEX_CLUSTER_IN_FLEX_API', 'steward clusters get', 'role'),
	(429, 'RATE_LIMITED_TOKEN_BUCKET', 'rate-limits list', 'role'), (503, 'INJECTED_FAULT', '--test-control', 'log has more')])
def test_hints_follow_the_error_code(impostor, run, status, code, said, unsaid):
	"""One status has several causes: a policy's refusal is no missing role, and a 501 is no outage."""
	impostor.answer = lambda path: (status, {}, json.dumps({'error': status, 'errorCode': code, 'detail': 'x'}))
	told = run('api', 'GET', '/groups', data=False, check=False).stderr
	assert 'steward: %d %s: x\n' % (status, code) in told and said in told and unsaid not in told, told


def test_what_the_answer_says_is_enough(impostor, run):
	for status, code in ((403, 'SOMETHING_NEW'), (404, 'RESOURCE_NOT_FOUND'), (409, 'DUPLICATE_NAME')):
		impostor.answer = lambda path: (status, {}, json.dumps({'error': status, 'errorCode': code, 'detail': 'x'}))
		assert run('api', 'GET', '/groups', data=False, check=False).stderr == 'steward: %d %s: x\n' % (status, code)


def test_a_policy_and_an_unbuilt_operation(service, run):
	"""The same from a real service."""
	policy = ok(service.post('/orgs/%s/resourcePolicies' % service.org, json={'name': name(), 'policies': [{'body':
		'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource);'}]}), 201)
	r = run('clusters', 'create', name(), check=False)
	assert '403 RESOURCE_POLICY_VIOLATION' in r.stderr and 'no role would help' in r.stderr and 'lack a role' not in r.stderr, r
	assert policy['id'] in run('api', 'GET', '/orgs/{orgId}/resourcePolicies').stdout, 'as the hint says'
	ok(service.delete('/orgs/%s/resourcePolicies/%s' % (service.org, policy['id'])))
	for op in derive.Api().ops:
		if op['handler'] == 'unbuilt' and op['method'] == 'GET' and re.findall('{(.*?)}', op['path']) == ['groupId']:
			r = run('api', 'GET', op['path'], check=False)
			assert '501 NOT_IMPLEMENTED' in r.stderr and 'trying again will not help' in r.stderr, r
			break


def test_connect_needs_a_database(service, run):
	n = name()
	run('clusters', 'create', n, '--wait')
	shown = run('clusters', 'get', n).stdout
	assert 'steward connect' not in shown and 'postgresql://' in shown
	listed = ok(service.get('/groups/%s/accessList' % service.group))['results']
	r = run('connect', n, '-c', 'select 1', check=False)
	assert r.returncode == NOT_DONE and 'no database to connect to' in r.stderr and 'simulated' in r.stderr and r.stdout == ''
	assert ok(service.get('/groups/%s/databaseUsers' % service.group))['results'] == []
	assert ok(service.get('/groups/%s/accessList' % service.group))['results'] == listed
	run('clusters', 'delete', n, '--yes')


def test_a_project_tells_callers_what_they_are(service):
	"""By this the client knows which rights it may hand on, and which address to let in."""
	org, = service.seed({'name': 'o', 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_DATA_ACCESS_READ_WRITE']}]},
		{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})
	path = '/groups/' + org['projects'][0]['id']
	ask = {'X-Steward-Describe-Caller': 'true'}
	few, many = (service.api_for(p).get(path, headers=ask).headers for p in org['principals'])
	assert set(few['X-Steward-Caller-Roles'].split(', ')) == {'GROUP_DATA_ACCESS_READ_WRITE', 'GROUP_DATA_ACCESS_READ_ONLY', 'GROUP_READ_ONLY'}
	assert {'GROUP_OWNER', 'GROUP_DATABASE_ACCESS_ADMIN'} <= set(many['X-Steward-Caller-Roles'].split(', '))
	assert few['X-Steward-Caller-Address'] == many['X-Steward-Caller-Address'] == '127.0.0.1'
	assert 'X-Steward-Caller-Roles' not in service.anonymous.get(path, headers=ask).headers
	assert 'X-Steward-Caller-Roles' not in service.get(path).headers


def test_a_silent_service_does_not_outlast_the_timeout(service, run, tmp_path):
	with socket.socket() as silent:
		silent.bind(('127.0.0.1', 0))
		silent.listen()
		profile(tmp_path, account_text(service, **{'base-url': 'https://127.0.0.1:%d' % silent.getsockname()[1]}))
		done = run('clusters', 'wait', 'c', '--timeout', '2', data=False, check=False)
		assert done.returncode == TIMEOUT, done.stderr


def test_no_service_is_no_wrong_usage(service, run, tmp_path):
	profile(tmp_path, account_text(service, **{'base-url': 'https://127.0.0.1:1', 'project': 'by name'}))
	for args in (('api', 'GET', '/groups/{groupId}'), ('clusters', 'list')):
		assert run(*args, data=False, check=False).returncode == UNREACHED


def test_output_that_does_not_arrive_is_an_error(service, run):
	for args in (('clusters', 'list', '-o', 'json'), ('clusters', 'list'), ('api', 'GET', '/groups'), ('api', 'GET', '/groups', '-i')):
		with open('/dev/full', 'w') as full:
			done = subprocess.run([binary(), *args, '--data', str(service.data_dir)], stdout=full, stderr=subprocess.PIPE,
					      text=True, env=environment())
		assert done.returncode in (NOT_DONE, UNREACHED) and 'cannot be written' in done.stderr, (args, done)


def test_help():
	text = cli('--help').stdout
	assert 'clusters' in text and 'api' in text and cli('-h').stdout == text
	for command, word in (('clusters', '--wait'), ('api', 'client-secret'), ('connect', '--read-only')):
		assert word in cli(command, '--help').stdout and word in cli('help', command).stdout
