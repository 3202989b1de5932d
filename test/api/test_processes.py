"""Database processes, their databases and disks: on the simulated engine, recorded, and on real servers."""
import os, re, shutil, subprocess, tempfile

import pytest

import dialect
from client import NO_ID, Api, bare, cli, leave, links, ok, refused
from test_clusters import body, create, path, region, settle, until

KEYS = {'created', 'groupId', 'hostname', 'id', 'lastPing', 'port', 'replicaSetName', 'typeName', 'userAlias', 'version'}


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	yield group
	leave(server, group)


def processes(server, group, query=''):
	return ok(server.get('/groups/%s/processes%s' % (group, query)))


def test_replica_set(server, group):
	assert processes(server, group)['results'] == []
	doc = create(server, group, 'Orders')
	page = processes(server, group)
	assert page['totalCount'] == 3 and len(page['results']) == 3
	hosts = doc['connectionStrings']['standard'].split('://')[1].split('/')[0].split(',')
	assert [p['id'] for p in page['results']] == hosts
	assert sorted(p['typeName'] for p in page['results']) == ['REPLICA_PRIMARY'] + 2 * ['REPLICA_SECONDARY']
	one = page['results'][1]
	assert set(one) == KEYS | {'links'}
	assert one['id'] == '%s:%d' % (one['hostname'], one['port']) and one['groupId'] == group
	assert one['version'] == doc['dbVersion'] and one['hostname'].startswith(one['replicaSetName'] + '-01.')
	assert one['userAlias'] == 'orders-shard-00-01.' + one['hostname'].split('.', 1)[1]
	assert one['created'] == doc['createDate'] and list(links(one)) == ['self']
	r = server.get('/groups/%s/processes/%s' % (group, one['id']))
	assert bare(ok(r)) == {**bare(one), 'lastPing': r.json()['lastPing']}
	below = {h.rsplit('/', 1)[1] for h in links(r.json()).values()}
	assert {'databases', 'disks'} <= below, 'the entity leads to what lies below it'


@pytest.mark.skipif(bool(dialect.NAME), reason='a dialect has nothing beside the reference')
def test_what_lies_beside_a_process(module_server):
	"""Only below a process, for those who may read slow statements; this engine has none of it. Not recorded: the reference has no such path."""
	server = module_server
	group = server.group
	create(server, group, 'Orders')
	one = '/groups/%s/processes/%s' % (group, processes(server, group)['results'][0]['id'])
	for part in ('activity', 'vacuum'):
		assert server.get('%s:%s' % (one, part)).status_code == 501
		refused(server.get('/groups/%s/processes/none:1:%s' % (group, part)), 404)
		refused(server.get('%s:%s?pretend=1' % (one, part)), 400)
		refused(Api(server).get('%s:%s' % (one, part)), 401)
		name = 'somebody:' + part
		ok(server.post('/groups/%s/databaseUsers' % group, json={'username': name, 'password': 'correct horse 4', 'databaseName': 'admin',
			'groupId': group, 'roles': [{'roleName': 'read', 'databaseName': 'shop'}]}), 201)
		assert ok(server.get('/groups/%s/databaseUsers/admin/%s' % (group, name)))['username'] == name, 'names can end so'
	ending = one + ':activity?pid=77&sessionStart=2026-01-02T03:04:05Z'
	assert server.delete(ending).status_code == server.delete(ending + '&statementStart=2026-01-02T03:04:05Z').status_code == 501
	refused(Api(server).delete(ending), 401)
	refused(server.delete(ending.replace(one, '/groups/%s/processes/none:1' % group)), 404)
	for wrong in ('?pid=77', '?sessionStart=2026-01-02T03:04:05Z', '?pid=x&sessionStart=2026-01-02T03:04:05Z', '?pid=77&sessionStart=then', '?pid=77&sessionStart=2026-01-02T03:04:05Z&force=1',
	              '?pid=77&statementStart=2026-01-02T03:04:05Z', '?pid=77&sessionStart=2026-01-02T03:04:05Z&statementStart=', '?pid=77&sessionStart=2026-01-02T03:04:05Z&statementStart=then', ''):
		refused(server.delete(one + ':activity' + wrong), 400)
	for method in (server.post, server.put, server.patch):
		assert method(ending).status_code == 405
	assert server.delete(one + ':vacuum').status_code == 405


def test_pages_go_over_clusters(server, group):
	for name in ('one', 'two'):
		create(server, group, name)
	everything = [p['id'] for p in processes(server, group)['results']]
	assert len(set(everything)) == 6
	pages = [processes(server, group, '?itemsPerPage=4&pageNum=%d' % n) for n in (1, 2, 3)]
	assert [[p['id'] for p in x['results']] for x in pages] == [everything[:4], everything[4:], []]
	assert [x['totalCount'] for x in pages] == [6, 6, 6]
	assert 'next' in links(pages[0]) and 'next' not in links(pages[1])


def test_shards_and_routers(server, group):
	create(server, group, 'big', [region()], [region()])
	found = processes(server, group)['results']
	assert len(found) == 7
	routers = [p for p in found if p['typeName'] == 'SHARD_ROUTER']
	assert len(routers) == 1 and 'replicaSetName' not in routers[0] and 'shardName' not in routers[0]
	sets = {p['shardName'] for p in found if p not in routers}
	assert len(sets) == 2 and sets == {p['replicaSetName'] for p in found if p not in routers}
	assert sum(p['typeName'] == 'SHARD_PRIMARY' for p in found) == 2


def test_flex_clusters_run_somewhere_too(server, group):
	ok(server.post('/groups/%s/flexClusters' % group, json={'name': 'small', 'providerSettings': {'backingProviderName': 'AWS',
		'regionName': 'US_EAST_1'}}), 201)
	until(lambda: server.advance(5) and processes(server, group)['results'])
	found = processes(server, group)['results']
	assert {p['userAlias'].split('-shard')[0] for p in found} == {'small'}
	assert [p['typeName'] for p in found].count('REPLICA_PRIMARY') == 1 and not any('shardName' in p for p in found)


def test_a_new_node_is_younger(server, group):
	doc = create(server, group, 'grows', [region(nodes=3)])
	server.advance(3600)
	ok(server.patch(path(group, 'grows'), json={'replicationSpecs': [{'regionConfigs': [region(nodes=5)]}]}))
	settle(server, group, 'grows')
	created = [p['created'] for p in processes(server, group)['results']]
	assert created[:3] == 3 * [doc['createDate']] and all(c > doc['createDate'] for c in created[3:]) and len(created) == 5


def test_paused(server, group):
	create(server, group, 'rests')
	ok(server.patch(path(group, 'rests'), json={'paused': True}))
	settle(server, group, 'rests')
	found = processes(server, group)['results']
	assert {p['typeName'] for p in found} == {'NO_DATA'} and not any('lastPing' in p for p in found)
	base = '/groups/%s/processes/%s' % (group, found[0]['id'])
	refused(server.get(base + '/databases'), 409, 'PROCESS_NOT_AVAILABLE', found[0]['id'])
	refused(server.get(base + '/databases/postgres'), 409)
	assert ok(server.get(base + '/disks'))['totalCount'] == 1, 'the disk is there'


def test_databases_and_disks(server, group):
	create(server, group)
	base = '/groups/%s/processes/%s' % (group, processes(server, group)['results'][0]['id'])
	for kind, field, name in (('databases', 'databaseName', 'postgres'), ('disks', 'partitionName', 'data')):
		page = ok(server.get('%s/%s' % (base, kind)))
		assert [x[field] for x in page['results']] == [name] and page['totalCount'] == 1
		one = ok(server.get('%s/%s/%s' % (base, kind, name)))
		assert bare(one) == {field: name} and links(one)['self'] == links(page['results'][0])['self']
		assert ok(server.get('%s/%s?pageNum=2&includeCount=false' % (base, kind)))['results'] == []
		refused(server.get('%s/%s/nothing' % (base, kind)), 404, 'DATABASE_NOT_FOUND' if kind == 'databases' else 'DEVICE_NOT_FOUND')
		assert ok(server.get('%s/%s/%s?envelope=true' % (base, kind, name)))['content'][field] == name
		assert server.head('%s/%s' % (base, kind)).status_code == 200


def test_what_is_not_there(server, group):
	doc = create(server, group)
	other = server.project()['id']
	found = processes(server, group)['results'][0]
	base = '/groups/%s/processes/' % group
	for wrong in ('zzzzzz-shard-00-00.abcdef.steward.local:27017', found['hostname'] + ':27018', 'x:27017',
		      found['id'].replace('-00.', '-09.'), '127.0.0.1:27017'):
		for tail in ('', '/databases', '/databases/postgres', '/disks', '/disks/data'):
			refused(server.get(base + wrong + tail), 404)
	refused(server.get('/groups/%s/processes/%s' % (other, found['id'])), 404)
	refused(server.get('/groups/%s/processes' % NO_ID), 404)
	refused(server.anonymous.get('/groups/%s/processes' % group), 401)
	server.delete(path(group, doc['name']))
	settle(server, group, doc['name'])
	refused(server.get(base + found['id']), 404)
	assert processes(server, group)['totalCount'] == 0


def test_roles(server):
	org = server.seed({'name': 'processes-roles', 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_READ_ONLY']}]},
		{'type': 'serviceAccount', 'roles': ['ORG_MEMBER']}]})[0]
	url = '/groups/%s/processes' % org['projects'][0]['id']
	assert ok(server.api_for(org['principals'][0]).get(url))['results'] == []
	assert server.api_for(org['principals'][1]).get(url).status_code in (401, 403)


# Real servers.

needs_postgres = pytest.mark.skipif(not os.path.isdir('/usr/lib/postgresql') or not shutil.which('psql'),
				    reason='PostgreSQL is not installed')


@pytest.fixture(scope='module')
def postgres():
	import client, conftest
	folder = tempfile.mkdtemp(prefix='sw-', dir=client.SHORT)
	os.chmod(folder, 0o711)
	s = client.Server('--engine', 'postgres', data_dir=folder + '/d', clock='real')
	try:
		yield s
		for c in ok(s.get(path(s.group)))['results']:
			s.delete(path(s.group, c['name']))
		until(lambda: ok(s.get(path(s.group)))['totalCount'] == 0, 180)
		conftest.end(s)
	finally:
		client.folder_end(folder)


def started(s, *args, **more):
	doc = ok(s.post(path(s.group), json=body(*args, **more)), 201)
	until(lambda: ok(s.get(path(s.group, doc['name'])))['stateName'] == 'IDLE', 180)
	return ok(s.get(path(s.group, doc['name'])))


@needs_postgres
def test_real_processes(postgres):
	s = postgres
	doc = started(s, 'real')
	found = processes(s, s.group)['results']
	assert sorted(p['typeName'] for p in found) == ['REPLICA_PRIMARY'] + 2 * ['REPLICA_SECONDARY']
	assert {p['version'] for p in found} == {doc['dbVersion']}
	for p in found:
		base = '/groups/%s/processes/%s' % (s.group, p['id'])
		assert 'postgres' in [d['databaseName'] for d in ok(s.get(base + '/databases'))['results']]
		refused(s.get(base + '/databases/template0'), 404)
		disk, _ = ok(s.get(base + '/disks'))['results']
		assert ok(s.get(base + '/disks/' + disk['partitionName']))['partitionName'] == disk['partitionName']


def psql(string, *args, user='app', password='right-pass-1', **env):
	env = {**os.environ, 'PGUSER': user, 'PGPASSWORD': password, 'PGCONNECT_TIMEOUT': '30', 'HOME': '/nonexistent', **env}
	return subprocess.run(['psql', string, '-XAtq', *args], capture_output=True, text=True, env=env, timeout=180)


@needs_postgres
def test_psql_takes_the_string(postgres):
	"""As it is: all nodes by their addresses, TLS, and the node that takes writes."""
	s = postgres
	strings = started(s, 'strings')['connectionStrings']
	nobody = psql(strings['standard'], '-c', 'SELECT 1', user='nobody')
	assert nobody.returncode != 0 and 'FATAL' in nobody.stderr, 'a server was reached, and refused'
	ok(s.post('/groups/%s/accessList' % s.group, json=[{'cidrBlock': '127.0.0.0/8'}]))
	ok(s.post('/groups/%s/databaseUsers' % s.group, json={'groupId': s.group, 'databaseName': 'admin', 'username': 'app', 'password': 'right-pass-1',
		'roles': [{'databaseName': 'admin', 'roleName': 'dbAdminAnyDatabase'}, {'databaseName': 'admin', 'roleName': 'readWriteAnyDatabase'}]}), 201)
	look = "SELECT pg_is_in_recovery(), (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid())"
	standard = strings['standard']
	assert standard.count('-shard-00-0') == 3 and len(re.findall(r'[=,]127(?:\.\d+){3}', standard)) == 3
	found = until(lambda: (lambda r: r if r.returncode == 0 else None)(psql(standard, '-c', look)))
	assert found.stdout.strip() == 'f|t'
	assert 'password authentication failed' in psql(standard, '-c', look, password='wrong-pass-1').stderr
	reading = standard.replace('target_session_attrs=read-write', 'target_session_attrs=prefer-standby')
	until(lambda: psql(reading, '-c', look).stdout.strip() == 't|t', what='the user on a standby')
	ca = s.data_dir.parent / 'project.crt'
	ca.write_text(cli('clusters', 'ca', '--data', s.data_dir).stdout)
	strict = standard + '&sslmode=verify-full&sslrootcert=%s' % ca
	assert psql(strict, '-c', look).stdout.strip() == 'f|t', psql(strict, '-c', look).stderr
	private = re.sub(r'(-shard-\d\d-\d\d)\.', r'\1-pri.', strict)
	assert psql(private, '-c', look).stdout.strip() == 'f|t', 'the certificates stand for the private names too'
	wrong = strict.replace('.steward.local', '.elsewhere.local')
	assert 'does not match host name' in psql(wrong, '-c', look).stderr
