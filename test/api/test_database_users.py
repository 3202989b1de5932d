"""Database users: what they may be, how they come and go, and that the answer waits for the clusters."""
import datetime, pathlib, threading, time

import pytest

from client import NO_ID, bare, links, metric, ok, refused, unique, until

PASSWORD = 'correct horse battery'


@pytest.fixture
def group(server):
	return server.project()['id']


def path(group, name=None, database='admin'):
	return '/groups/%s/databaseUsers%s' % (group, '/%s/%s' % (database, name) if name else '')


def user(group, name=None, **more):
	out = {'username': name or unique('u'), 'databaseName': 'admin', 'groupId': group, 'password': PASSWORD,
	       'roles': [{'roleName': 'readWrite', 'databaseName': 'shop'}], **more}
	return {k: v for k, v in out.items() if v is not None}


def external(group, name, **more):
	return user(group, name, databaseName='$external', password=None, **more)


def patch(group, name, database='admin', **more):
	"""The schema wants these in every update."""
	return {'username': name, 'databaseName': database, 'groupId': group,
		'roles': [{'roleName': 'readWrite', 'databaseName': 'shop'}], **more}


def after(server, **kw):
	now = datetime.datetime.fromisoformat(server.control('clock', method='GET')['now'].replace('Z', '+00:00'))
	return (now + datetime.timedelta(**kw)).strftime('%Y-%m-%dT%H:%M:%SZ')


def cluster(server, group, name='c0'):
	"""A running cluster."""
	body = {'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}
	ok(server.post('/groups/%s/clusters' % group, json=body), 201)
	def idle():
		server.advance(1)
		return ok(server.get('/groups/%s/clusters/%s' % (group, name)))['stateName'] == 'IDLE'
	until(idle)
	return name


def test_create_list_get_update_delete(server, group):
	assert ok(server.get(path(group)))['totalCount'] == 0
	answer = server.post(path(group), json=user(group, 'anna', description='the shop', labels=[{'key': 'team', 'value': 'x'}],
						    scopes=[{'name': 'c0', 'type': 'CLUSTER'}]))
	made = ok(answer, 201)
	assert answer.headers['Location'] == links(made)['self'] and links(made)['self'].endswith(path(group, 'anna'))
	assert 'password' not in made and made['groupId'] == group and made['x509Type'] == 'NONE'
	assert made['labels'] == [{'key': 'team', 'value': 'x'}] and made['scopes'] == [{'name': 'c0', 'type': 'CLUSTER'}]
	assert bare(ok(server.get(links(made)['self']))) == bare(made)
	listed = ok(server.get(path(group)))
	assert listed['totalCount'] == 1 and bare(listed['results'][0]) == bare(made)
	assert links(listed['results'][0])['self'] == links(made)['self']
	changed = ok(server.patch(path(group, 'anna'), json=patch(group, 'anna', description='another', scopes=[],
								  roles=[{'roleName': 'read', 'databaseName': 'shop', 'collectionName': 'orders'}])))
	assert changed['description'] == 'another' and changed['scopes'] == [] and changed['labels'] == made['labels']
	assert changed['roles'] == [{'roleName': 'read', 'databaseName': 'shop', 'collectionName': 'orders'}]
	refused(server.get(path(group, 'anna', '$external')), 404)
	refused(server.delete(path(group, 'anna', '$external')), 404)
	ok(server.delete(path(group, 'anna')), 204)
	for call in (server.get, server.delete):
		refused(call(path(group, 'anna')), 404)
	refused(server.patch(path(group, 'anna'), json=patch(group, 'anna')), 404)
	refused(server.get(path(NO_ID)), 404)
	events = ok(server.get('/groups/%s/events' % group))['results']
	assert [e['eventTypeName'] for e in events][:3] == ['DB_USER_DELETED', 'DB_USER_UPDATED', 'DB_USER_ADDED']
	assert all(e['dbUserUsername'] == 'anna' for e in events[:3])


def test_names_in_links(module_server):
	"""Not recorded: the check of recordings takes %2F for a slash."""
	s = module_server
	group = s.project()['id']
	for name in ('a b', 'a/b', 'ä', 'a%b', "o'x\\\"y"):
		made = ok(s.post(path(group), json=user(group, name)), 201)
		assert ok(s.get(links(made)['self']))['username'] == name
		ok(s.delete(links(made)['self']), 204)


def test_a_name_is_taken_once(server, group):
	ok(server.post(path(group), json=user(group, 'CN=anna')), 201)
	refused(server.post(path(group), json=user(group, 'CN=anna')), 409, 'USER_ALREADY_EXISTS', 'CN=anna')
	refused(server.post(path(group), json=external(group, 'CN=anna', x509Type='MANAGED')), 409)
	ok(server.post(path(group), json=user(group, 'cn=anna')), 201)
	other = server.project()['id']
	ok(server.post(path(other), json=user(other, 'CN=anna')), 201)


@pytest.mark.parametrize('change, where', [
	({'username': ''}, 'username'), ({'username': 'x' * 64}, 'username'), ({'username': 'x' * 1025}, 'username'),
	({'username': 'a\nb'}, 'username'), ({'username': ' a'}, 'username'), ({'username': 'pg_a'}, 'username'),
	({'username': 'steward_engine'}, 'username'), ({'username': 'postgres'}, 'username'),
	({'username': '/x'}, 'username'), ({'username': '..'}, 'username'), ({'username': 'certs'}, 'username'),
	({'username': 'a"b', 'x509Type': 'MANAGED', 'databaseName': '$external', 'password': None}, 'username'),
	({'password': 'short'}, 'password'), ({'password': 'x' * 257}, 'password'), ({'password': 'pässword1'}, 'password'),
	({'password': 'tab\ttab\ttab'}, 'password'), ({'password': None}, 'password'), ({'username': 'same-same', 'password': 'Same-Same'}, 'password'),
	({'databaseName': '$external'}, 'databaseName'), ({'databaseName': 'shop'}, 'databaseName'),
	({'groupId': NO_ID}, 'groupId'), ({'roles': None}, 'roles'), ({'roles': []}, 'roles'),
	({'roles': [{'roleName': 'nobody', 'databaseName': 'admin'}]}, 'roles[0].roleName'),
	({'roles': [{'roleName': '<a custom role name>', 'databaseName': 'admin'}]}, 'roles[0].roleName'),
	({'roles': [{'roleName': 'read', 'databaseName': 'a'}, {'roleName': 'svcAdmin', 'databaseName': 'shop'}]}, 'roles[1].databaseName'),
	({'roles': [{'roleName': 'read', 'databaseName': ''}]}, 'roles[0].databaseName'),
	({'roles': [{'roleName': 'read', 'databaseName': 'template1'}]}, 'roles[0].databaseName'),
	({'roles': [{'roleName': 'read', 'databaseName': 'x' * 53}]}, 'roles[0].databaseName'),
	({'roles': [{'roleName': 'dbAdmin', 'databaseName': 'shop', 'collectionName': 'c'}]}, 'roles[0].collectionName'),
	({'roles': [{'roleName': 'read', 'databaseName': 'shop', 'collectionName': 'a"b'}]}, 'roles[0].collectionName'),
	({'roles': [{'roleName': 'read', 'databaseName': 'shop'}] * 101}, 'roles'),
	({'deleteAfterDate': '2001-01-01T00:00:00Z'}, 'deleteAfterDate'), ({'deleteAfterDate': '2999-01-01T00:00:00Z'}, 'deleteAfterDate'),
	({'x509Type': 'MANAGED'}, 'databaseName'), ({'x509Type': 'MANAGED', 'databaseName': '$external'}, 'password'),
	({'x509Type': 'MANAGED', 'ldapAuthType': 'USER', 'databaseName': '$external', 'password': None}, 'x509Type'),
	({'x509Type': 'CUSTOMER', 'databaseName': '$external', 'password': None, 'username': 'anna'}, 'username'),
	({'awsIAMType': 'USER', 'databaseName': '$external', 'password': None, 'username': 'anna'}, 'username'),
	({'awsIAMType': 'ROLE', 'databaseName': '$external', 'password': None, 'username': 'arn:aws:iam::123456789012:user/anna'}, 'username'),
	({'oidcAuthType': 'USER', 'databaseName': '$external', 'password': None, 'username': 'anna'}, 'username'),
	({'oidcAuthType': 'IDP_GROUP', 'databaseName': '$external', 'password': None, 'username': 'idp/anna'}, 'databaseName'),
	({'scopes': [{'name': 'c0', 'type': 'SHED'}]}, 'scopes[0].type'), ({'description': 'x' * 101}, 'description'),
])
def test_what_is_wrong_is_named_by_its_path(server, group, change, where):
	refused(server.post(path(group), json=user(group, **{'username': 'anna', **change})), 400, None, where)
	assert ok(server.get(path(group)))['totalCount'] == 0


def test_several_faults_at_once(server, group):
	refused(server.post(path(group), json=user(group, 'pg_x', password='short123', databaseName='$external',
						   roles=[{'roleName': 'none', 'databaseName': 'x'}])), 400, None,
		'username', 'databaseName', 'roles[0].roleName')


@pytest.mark.parametrize('name, more', [
	('CN=anna,OU=shop,DC=example', {'x509Type': 'CUSTOMER'}), ('anna', {'x509Type': 'MANAGED'}),
	('anna', {'ldapAuthType': 'USER'}), ('CN=group,DC=example', {'ldapAuthType': 'GROUP'}),
	('arn:aws:iam::123456789012:user/anna', {'awsIAMType': 'USER'}), ('arn:aws:iam::123456789012:role/anna', {'awsIAMType': 'ROLE'}),
	('32b6e34b3d91647abb20e7b8/anna', {'oidcAuthType': 'USER'}),
	('32b6e34b3d91647abb20e7b8/' + 'x' * 900, {'oidcAuthType': 'IDP_GROUP', 'databaseName': 'admin'}),
])
def test_other_ways_to_authenticate(module_server, name, more):
	s = module_server
	group = s.project()['id']
	made = ok(s.post(path(group), json={**external(group, name), **more}), 201)
	for field in ('awsIAMType', 'ldapAuthType', 'oidcAuthType', 'x509Type'):
		assert made[field] == more.get(field, 'NONE')
	refused(s.patch(links(made)['self'], json=patch(group, name, made['databaseName'], password=PASSWORD)), 400, None, 'password')
	ok(s.patch(links(made)['self'], json=patch(group, name, made['databaseName'], description='x')))


def test_what_an_update_cannot_change(server, group):
	ok(server.post(path(group), json=user(group, 'anna')), 201)
	for change, where in (({'username': 'berta'}, 'username'), ({'databaseName': '$external'}, 'databaseName'), ({'groupId': NO_ID}, 'groupId'),
			      ({'x509Type': 'MANAGED'}, 'x509Type'), ({'roles': [{'roleName': 'x', 'databaseName': 'admin'}]}, 'roles[0].roleName'),
			      ({'password': 'short'}, 'password'), ({'deleteAfterDate': '2001-01-01T00:00:00Z'}, 'deleteAfterDate')):
		refused(server.patch(path(group, 'anna'), json={**patch(group, 'anna'), **change}), 400, None, where)
	body = patch(group, 'anna')
	del body['roles']
	refused(server.patch(path(group, 'anna'), json=body), 400, None, 'roles')


def test_what_the_path_says_need_not_be_repeated(server, group):
	body = user(group, 'anna')
	del body['groupId']
	assert ok(server.post(path(group), json=body), 201)['groupId'] == group
	body = patch(group, 'anna', description='known by the path')
	for field in ('username', 'databaseName', 'groupId'):
		del body[field]
	assert ok(server.patch(path(group, 'anna'), json=body))['description'] == 'known by the path'
	refused(server.post(path(group), json={**user(group, 'berta'), 'groupId': None}), 400, None, 'groupId')
	refused(server.post(path(group), json={**user(group, 'berta'), 'groupId': NO_ID}), 400, None, 'groupId')
	assert ok(server.get(path(group)))['totalCount'] == 1


def test_custom_roles(module_server):
	"""Not recorded: the check of recordings takes the place holder for custom names literally."""
	s = module_server
	group = s.project()['id']
	mine = [{'roleName': 'mine', 'databaseName': 'admin'}]
	refused(s.post(path(group), json=user(group, 'anna', roles=mine)), 400, None, 'roles[0].roleName')
	ok(s.post('/groups/%s/customDBRoles/roles' % group, json={'roleName': 'mine', 'actions': [
		{'action': 'FIND', 'resources': [{'db': 'shop', 'collection': '', 'cluster': False}]}]}), 202)
	assert ok(s.post(path(group), json=user(group, 'anna', roles=mine)), 201)['roles'] == mine
	refused(s.post(path(group), json=user(group, 'berta', roles=[{'roleName': 'mine', 'databaseName': 'shop'}])), 400, None, 'roles[0].databaseName')
	refused(s.post(path(group), json=user(group, 'berta', roles=[{**mine[0], 'collectionName': 'x'}])), 400, None, 'roles[0].collectionName')
	other = s.project()['id']
	refused(s.post(path(other), json=user(other, 'anna', roles=mine)), 400, None, 'roles[0].roleName')


def test_limit(server, group):
	limit = '/groups/%s/limits/svc.project.security.databaseAccess.users' % group
	ok(server.patch(limit, json={'value': 2}))
	for i in range(2):
		ok(server.post(path(group), json=user(group)), 201)
	refused(server.post(path(group), json=user(group)), 400, 'PROJECT_LIMIT_EXCEEDED')
	assert ok(server.get(limit))['currentUsage'] == 2


def test_temporary_users_vanish(server, group):
	made = ok(server.post(path(group), json=user(group, 'soon', deleteAfterDate=after(server, minutes=5))), 201)
	assert made['deleteAfterDate'] == after(server, minutes=5)
	ok(server.post(path(group), json=user(group, 'later', deleteAfterDate=after(server, minutes=5))), 201)
	ok(server.post(path(group), json=user(group, 'stays')), 201)
	ok(server.patch(path(group, 'later'), json=patch(group, 'later', deleteAfterDate=after(server, days=2))))
	server.advance(301)
	until(lambda: server.get(path(group, 'soon')).status_code == 404)
	gone = ok(server.get('/groups/%s/events?eventType=DB_USER_DELETED' % group))['results']
	assert [e['dbUserUsername'] for e in gone] == ['soon']
	ok(server.get(path(group, 'later')))
	server.advance(2 * 86400)
	until(lambda: server.get(path(group, 'later')).status_code == 404)
	assert ok(server.get(path(group)))['totalCount'] == 1


def test_the_password_is_kept_nowhere(start_server):
	s = start_server('--log-level', 'debug', '--log-format', 'json', record=None)
	group = s.group
	secret = 'S3cret-' + unique()
	ok(s.post(path(group), json=user(group, 'anna', password=secret), headers={'Idempotency-Key': 'k1'}), 201)
	ok(s.patch(path(group, 'anna'), json=patch(group, 'anna', password=secret + '2')))
	refused(s.post(path(group), json=user(group, 'anna', password=secret)), 409)
	events = s.get('/groups/%s/events?includeRaw=true' % group).text
	assert secret not in events and 'SCRAM' not in events and secret not in s.get(path(group, 'anna')).text
	s.stop()
	for file in pathlib.Path(s.data_dir).rglob('*'):
		if file.is_file():
			content = file.read_bytes()
			assert secret.encode() not in content, file
			assert b'SCRAM-SHA-256$' not in content, 'a verifier that is not sealed in %s' % file
	assert secret not in s.stderr


def test_roles_needed(server):
	org, = server.seed({'name': unique('o'), 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_READ_ONLY']}]},
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_DATABASE_ACCESS_ADMIN']}]}]})
	group = org['projects'][0]['id']
	reader, admin = (server.api_for(p) for p in org['principals'])
	ok(admin.post(path(group), json=user(group, 'anna')), 201)
	assert ok(reader.get(path(group)))['totalCount'] == 1
	refused(reader.post(path(group), json=user(group)), 403)
	refused(reader.patch(path(group, 'anna'), json=patch(group, 'anna')), 403)
	refused(reader.delete(path(group, 'anna')), 403)
	refused(server.anonymous.get(path(group)), 401)


def test_revisions_and_idempotency(server, group):
	key = unique('k')
	body = user(group, 'anna')
	first = server.post(path(group), json=body, headers={'Idempotency-Key': key})
	again = server.post(path(group), json=body, headers={'Idempotency-Key': key})
	assert ok(first, 201) == ok(again, 201)
	refused(server.delete(path(group, 'anna'), headers={'If-Match': '"99"'}), 412)
	ok(server.patch(path(group, 'anna'), json=patch(group, 'anna'), headers={'If-Match': first.headers['ETag']}))
	refused(server.patch(path(group, 'anna'), json=patch(group, 'anna'), headers={'If-Match': first.headers['ETag']}), 412)


def test_many_at_once(server, group):
	"""Each of them once, whoever was first."""
	cluster(server, group)
	codes = []
	def run(i):
		codes.append(server.post(path(group), json=user(group, 'u%d' % (i % 8))).status_code)
	threads = [threading.Thread(target=run, args=(i,)) for i in range(24)]
	for t in threads:
		t.start()
	for t in threads:
		t.join()
	assert codes.count(201) == 8 and codes.count(409) == 16
	assert ok(server.get(path(group)))['totalCount'] == 8


# What the clusters have of it.

def entry_status(s, group):
	return ok(s.get('/groups/%s/accessList/192.0.2.1/status' % group))['STATUS']


HELD = 4.5  # seconds; an answer waits for 5, and then comes without the clusters


def timed(call):
	start = time.monotonic()
	call()
	return time.monotonic() - start


def quick(s, group, call):
	"""Whether the answer came before it had to. Then it is with the clusters. One call alone may have had a slow moment, in
	which an answer comes without them: a few are tried."""
	seconds = timed(call)
	assert entry_status(s, group) == 'ACTIVE' or seconds > HELD
	until(lambda: entry_status(s, group) == 'ACTIVE')
	return seconds < HELD


def test_the_answer_waits_for_the_clusters(module_server):
	s = module_server
	group = s.project()['id']
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}]))
	cluster(s, group)
	calls = (lambda: ok(s.post(path(group), json=user(group, 'anna')), 201), lambda: ok(s.delete(path(group, 'anna')), 204),
		 lambda: ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.2'}])),
		 lambda: ok(s.delete('/groups/%s/accessList/192.0.2.2' % group), 204))
	slow = set(calls)
	for _ in range(4):
		slow -= {c for c in calls if quick(s, group, c)} if slow else set()
	assert not slow


def test_an_engine_that_fails_holds_the_answer_only_so_long(start_server):
	s = start_server('--engine', 'simulated', clock='real')
	group = s.group
	s.control('engine', {'seconds': 0})
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}]))
	body = {'name': 'c0', 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}
	ok(s.post('/groups/%s/clusters' % group, json=body), 201)
	until(lambda: ok(s.get('/groups/%s/clusters/c0' % group))['stateName'] == 'IDLE')

	def post():
		ok(s.post(path(group), json=user(group)), 201)

	def once():
		s.control('engine', {'seconds': 0, 'fail': 'access', 'times': 1})
		began = time.monotonic()
		return quick(s, group, post) and time.monotonic() - began > 0.8
	assert any(once() for _ in range(3)), 'mended within the time that the answer waits'


def test_a_change_does_not_wait_for_the_next_attempt(start_server):
	s = start_server()
	group = s.group
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}]))
	cluster(s, group)

	def post():
		ok(s.post(path(group), json=user(group)), 201)

	def failed():
		s.advance(20)
		return entry_status(s, group) == 'FAILED'

	def next_change():
		s.control('engine', {'seconds': 0, 'fail': 'access'})
		assert 4 < timed(post) < 25
		assert entry_status(s, group) in ('PENDING', 'FAILED')
		until(failed)
		s.control('engine', {'fail': None})
		return quick(s, group, post)
	assert any(next_change() for _ in range(3)), 'it brings everything, though the clock stands still'


def test_a_cluster_under_work_is_not_waited_for_on_a_virtual_clock(module_server):
	s = module_server
	group = s.project()['id']
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}]))
	name = cluster(s, group)
	ok(s.patch('/groups/%s/clusters/%s' % (group, name), json={'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 5}}]}]}))
	# The quickest of a few: one alone may have had a slow moment.
	assert any(timed(lambda: ok(s.post(path(group), json=user(group)), 201)) < HELD for _ in range(5))
	assert entry_status(s, group) == 'PENDING'
	def active():
		s.advance(1)
		return entry_status(s, group) == 'ACTIVE'
	until(active)


def test_only_clusters_in_scope_are_asked(start_server):
	s = start_server()
	group = s.group
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}]))
	cluster(s, group)
	s.control('engine', {'seconds': 0, 'fail': 'access'})
	ok(s.post(path(group), json=user(group, 'anna', scopes=[{'name': 'other', 'type': 'CLUSTER'}])), 201)
	assert entry_status(s, group) == 'ACTIVE'
	# The change of a scope concerns the clusters of before and of now.
	seconds = timed(lambda: refused(s.patch(path(group, 'anna'), json=patch(group, 'anna', scopes=[{'name': 'c0', 'type': 'CLUSTER'}])),
					503, 'ACCESS_NOT_IN_FORCE'))
	assert seconds > 4 and entry_status(s, group) == 'PENDING'
	s.control('engine', {'fail': None})


def test_rights_that_may_still_be_had_are_no_success(start_server):
	"""What takes rights away and is not in force says so; it is saved all the same, and comes into force."""
	s = start_server('--engine', 'simulated', clock='real')
	group = s.group
	s.control('engine', {'seconds': 0})
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}, {'ipAddress': '192.0.2.2'}]))
	ok(s.post(path(group), json=user(group, 'anna')), 201)
	body = {'name': 'c0', 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}
	ok(s.post('/groups/%s/clusters' % group, json=body), 201)
	until(lambda: ok(s.get('/groups/%s/clusters/c0' % group))['stateName'] == 'IDLE')
	s.control('engine', {'seconds': 0, 'fail': 'access'})
	answers = []
	calls = [lambda: s.delete(path(group, 'anna')), lambda: s.delete('/groups/%s/accessList/192.0.2.2' % group)]
	threads = [threading.Thread(target=lambda c=c: answers.append(c())) for c in calls]
	for t in threads:
		t.start()
	for t in threads:
		t.join()
	for answer in answers:
		told = refused(answer, 503, 'ACCESS_NOT_IN_FORCE')
		assert 'c0' in told['detail'] and 'the test control asked' in told['detail'] and answer.headers['Retry-After'], told
	refused(s.get(path(group, 'anna')), 404)
	refused(s.get('/groups/%s/accessList/192.0.2.2' % group), 404)
	until(lambda: metric(s, 'steward_access_unconfirmed_total') == 2 and metric(s, 'steward_access_behind') == 1)
	until(lambda: ok(s.get('/groups/%s/events?eventType=HOST_SECURITY_CHECKUP_NOT_MET' % group))['totalCount'] >= 1)
	assert 'test control' in s.get('/groups/%s/clusters/c0/status' % group).headers['X-Steward-Progress']
	s.control('engine', {'fail': None})
	until(lambda: entry_status(s, group) == 'ACTIVE')
	until(lambda: metric(s, 'steward_access_behind') == 0)


def test_a_crash_loses_nothing(start_server):
	s = start_server()
	group = s.group
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}]))
	cluster(s, group)
	s.control('engine', {'seconds': 0, 'fail': 'access'})
	ok(s.post(path(group), json=user(group, 'anna', deleteAfterDate=after(s, hours=1))), 201)
	assert entry_status(s, group) == 'PENDING'
	s.kill()
	again = start_server(data_dir=s.data_dir)
	def active():
		again.advance(1)
		return entry_status(again, group) == 'ACTIVE'
	until(active)
	again.advance(2 * 3600)
	until(lambda: again.get(path(group, 'anna')).status_code == 404)


def test_an_answer_that_is_held_leaves_before_the_end(start_server):
	def seconds_held():
		s = start_server()
		group, answers = s.group, []
		cluster(s, group)
		s.control('engine', {'seconds': 0, 'fail': 'access'})

		def ask():
			began = time.monotonic()
			answers.append((s.post(path(group), json=user(group, 'anna')).status_code, time.monotonic() - began))
		t = threading.Thread(target=ask)
		t.start()
		until(lambda: ok(s.get(path(group)))['totalCount'] == 1)
		s.stop()
		t.join()
		(code, seconds), = answers
		assert code == 201
		return seconds
	# The quickest of a few: one alone may have had a slow moment.
	assert any(seconds_held() < HELD for _ in range(4))


def test_expired_entries_of_the_access_list_reach_the_clusters(start_server):
	s = start_server()
	group = s.group
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}, {'ipAddress': '192.0.2.2', 'deleteAfterDate': after(s, minutes=5)}]))
	cluster(s, group)
	s.control('engine', {'seconds': 0, 'fail': 'access'})
	s.advance(301)
	until(lambda: entry_status(s, group) == 'PENDING')
	assert ok(s.get('/groups/%s/accessList' % group))['totalCount'] == 1
