"""What organizations share is shared fairly: one that fills a pool with slow work leaves room for the others."""
import socket, ssl, threading

import pytest

import directory
from client import REMOTE, Api, Bearer, Wire, metric, ok, refused, until
from database import free_port

SLOW = 66


@pytest.fixture(scope='module')
def tenants(module_server):
	"""Two organizations that know nothing of each other."""
	s = module_server
	s.greedy, s.other = s.seed(*[{'name': n, 'projects': [n + str(i) for i in range(8)],
		'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]} for n in ('greedy', 'other')])
	return s


def token(org):
	return org['principals'][0]['accessToken']


def user(group, name):
	return {'username': name, 'password': 'long-enough-' + name, 'databaseName': 'admin', 'groupId': group,
		'roles': [{'roleName': 'read', 'databaseName': 'x'}]}


def send(server, bearer, method, path, bodies):
	"""Each on a connection of its own, and all at once; nobody reads the answers yet."""
	wires = [Wire(server, bearer) for _ in bodies]
	before, looks = metric(server, 'steward_http_requests_total'), 0

	def under_way():
		nonlocal looks
		looks += 1  # each is a request itself
		return metric(server, 'steward_http_requests_total') - before - looks >= len(wires)
	for w, body in zip(wires, bodies):
		w.socket.sendall(w.encode(method, path, body=body))
	until(under_way, what='all are under way')
	return wires


def answered(wires):
	"""How many have an answer by now."""
	for w in wires:
		w.socket.settimeout(0)
		try:
			w.buffer += w.socket.recv(65536)
		except ssl.SSLWantReadError:
			pass
		w.socket.settimeout(60)
	return sum(bool(w.buffer) for w in wires)


def statuses(wires, method):
	out = [w.read(method).status for w in wires]
	for w in wires:
		w.close()
	return out


def test_slow_calls_of_one_leave_room_for_another(tenants):
	"""64 threads prepare writes. All of them for one tenant, 98 of 99 writes of another got 503."""
	s = tenants
	greedy, other = token(s.greedy), token(s.other)
	mine, theirs = s.greedy['projects'][0]['id'], s.other['projects'][0]['id']
	s.fault('createDatabaseUser', delayMs=3000, times=SLOW)
	wires = send(s, greedy, 'POST', '/api/svc/v2/groups/%s/databaseUsers' % mine,
		[user(mine, 'slow%d' % i) for i in range(SLOW)])
	got = []

	def write(part):
		with Wire(s, other) as w:
			for i in range(11):
				got.append(w.one('POST', '/api/svc/v2/groups/%s/databaseUsers' % theirs,
					body=user(theirs, 'quick%d-%d' % (part, i))).status)
	threads = [threading.Thread(target=write, args=(n,)) for n in range(9)]
	for t in threads:
		t.start()
	for t in threads:
		t.join()
	assert got == [201] * 99
	# And the slow ones are all served in the end.
	assert statuses(wires, 'POST') == [201] * SLOW


def test_slow_reads_of_one_leave_a_thread_for_another(tenants):
	s = tenants
	s.fault('getNonCompliantResources', delayMs=500, times=40)
	path = '/api/svc/v2/orgs/%s/nonCompliantResources'
	wires = send(s, token(s.greedy), 'GET', path % s.greedy['id'], [None] * 40)
	with Wire(s, token(s.other)) as w:
		assert w.one('GET', path % s.other['id']).status == 200
		assert answered(wires) < 30  # by turns: without them, all forty go first
		for _ in range(2):
			assert w.one('GET', path % s.other['id']).status == 200
	assert statuses(wires, 'GET') == [200] * 40


def test_slow_jobs_of_one_leave_a_worker_for_another(tenants):
	"""Checks of a directory that never answers take job threads for seconds each; a project has one at a time."""
	s = tenants
	host = directory.loopback()
	with socket.create_server((host, 0), backlog=64) as silent:
		check = lambda port: {'hostname': host, 'port': port, 'bindUsername': 'CN=x,DC=a', 'bindPassword': 'y'}
		greedy, other = Api(s, Bearer(token(s.greedy))), Api(s, Bearer(token(s.other)))
		path = '/groups/%s/userSecurity/ldap/verify'
		slow = []
		for p in s.greedy['projects']:
			asked = ok(greedy.post(path % p['id'], json=check(silent.getsockname()[1])))
			slow.append((path % p['id'], asked['requestId']))
		mine = path % s.other['projects'][0]['id']
		asked = ok(other.post(mine, json=check(free_port())))  # nobody is there
		until(lambda: ok(other.get('%s/%s' % (mine, asked['requestId'])))['status'] == 'FAIL', what='its job is done')
		pending = [ok(greedy.get('%s/%s' % one))['status'] == 'PENDING' for one in slow]
		assert sum(pending) >= 5


def test_a_right_that_is_lost_before_the_body_comes_is_gone(tenants):
	"""Who calls is asked when the headers are there, and again when the body is."""
	s = tenants
	org, = s.seed({'name': 'leaving', 'projects': ['l'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, {'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	owner = Api(s, Bearer(token(org)))
	account = org['principals'][1]
	body = b'{"name": "made-too-late", "orgId": "%s"}' % org['id'].encode()
	with Wire(s, account['accessToken']) as w, Wire(s, 'nonsense') as stranger:
		for wire in (w, stranger):
			wire.socket.sendall(wire.encode('POST', '/api/svc/v2/groups', body=body)[:-len(body)])
		assert stranger.read('POST').status == 401  # before any of the body
		ok(owner.delete('/orgs/%s/serviceAccounts/%s' % (org['id'], account['clientId'])), 204)
		w.socket.sendall(body)
		assert w.read('POST').status == 401
		# The connection goes on behind the body that nobody read.
		stranger.socket.sendall(body)
		assert stranger.one('GET', '/healthz').status == 200
	assert ok(owner.get('/groups'))['totalCount'] == 1


MANY, PLACES, INVITED, LONG = 120, 115, 10, 52  # projects, of each invitation, invitations
ROLES = ['GROUP_OWNER', 'GROUP_READ_ONLY', 'GROUP_DATA_ACCESS_ADMIN', 'GROUP_CLUSTER_MANAGER', 'GROUP_DATA_ACCESS_READ_ONLY']


@pytest.fixture(scope='module')
def crowded(module_server):
	"""An organization whose invitations name many projects: a list without pages of half a megabyte."""
	s = module_server
	org, = s.seed({'name': 'crowded', 'projects': ['c%d' % i for i in range(MANY)],
		'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	org['owner'] = Api(s, Bearer(token(org)))
	org['path'] = '/orgs/%s/invites' % org['id']
	places = [{'groupId': p['id'], 'roles': ROLES} for p in org['projects'][:PLACES]]
	for i in range(INVITED):
		ok(org['owner'].post(org['path'], json={'username': 'crowd%d@example.com' % i, 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': places}))
	return org


def test_a_deleted_project_is_in_no_invitation(crowded):
	"""A hundred deletions that rewrote 200 invitations of 230 places each stopped all writes for 86 s: now what an invitation says of a
	project that is gone counts for nothing, and wide ones are not rewritten."""
	owner, gone = crowded['owner'], crowded['projects'][0]['id']
	kept = crowded['projects'][1]['id']
	ids = [doc['id'] for doc in ok(owner.get(crowded['path']))]
	tags = lambda: [owner.get('%s/%s' % (crowded['path'], one)).headers['ETag'] for one in ids]
	before = tags()
	assert len(ok(owner.get('/groups/%s/invites' % gone))) == INVITED
	ok(owner.delete('/groups/' + gone), 204)
	assert before == tags(), 'to parse and write a wide invitation takes the writer a millisecond'
	for doc in ok(owner.get(crowded['path'])):
		named = {a['groupId'] for a in doc['groupRoleAssignments']}
		assert gone not in named and kept in named and len(named) == PLACES - 1
	assert len(ok(owner.get('/groups/%s/invites' % kept))) == INVITED
	assert gone not in str(ok(owner.patch('%s/%s' % (crowded['path'], ids[0]), json={'roles': ['ORG_READ_ONLY']})))


def test_an_invitation_has_a_bound(crowded):
	owner = crowded['owner']
	places = [{'groupId': p['id'], 'roles': ROLES + ['GROUP_DATA_ACCESS_READ_WRITE', 'GROUP_SEARCH_INDEX_EDITOR',
		'GROUP_STREAM_PROCESSING_OWNER', 'GROUP_BACKUP_MANAGER']} for p in crowded['projects'][1:]]
	body = {'username': 'wide@example.com', 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': places}
	refused(owner.post(crowded['path'], json=body), 400, 'TOO_MANY_ROLE_ASSIGNMENTS', '1000')
	body['groupRoleAssignments'] = places[:100]
	doc = ok(owner.post(crowded['path'], json=body))
	refused(owner.patch('%s/%s' % (crowded['path'], doc['id']), json={'groupRoleAssignments': places}), 400, 'TOO_MANY_ROLE_ASSIGNMENTS', '1000')
	ok(owner.delete('%s/%s' % (crowded['path'], doc['id'])), 204)


@pytest.mark.skipif(not REMOTE, reason='a store of files has no round trips')
def test_a_wide_write_asks_a_remote_store_little(crowded, module_server):
	"""All writes of all tenants wait for the one that runs: one that names a hundred projects or addresses used to ask two to four
	times for each, and each question was a round trip."""
	owner, groups = crowded['owner'], [p['id'] for p in crowded['projects'][2:102]]
	trips = lambda: metric(module_server, 'steward_store_round_trips_total')
	org = '/orgs/' + crowded['id']

	def few(answer, status=200):
		now = trips()
		assert now - before < len(groups) / 2, '%s %s: %d round trips' % (answer.request.method, answer.request.url, now - before)
		return ok(answer, status)
	places = [{'groupId': g, 'roles': ['GROUP_READ_ONLY']} for g in groups]
	before = trips()
	invitation = org + '/invites/' + few(owner.post(org + '/invites', json={'username': 'trips@example.com', 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': places}))['id']
	before = trips()
	few(owner.patch(invitation, json={'groupRoleAssignments': places[:50]}))
	before = trips()
	few(owner.patch(invitation, json={'groupRoleAssignments': places}))
	assert len(ok(owner.get('/groups/%s/invites' % groups[99]))) > 0
	before = trips()
	few(owner.delete(invitation), 204)
	entries = [{'ipAddress': '10.0.%d.1' % i} for i in range(100)]
	before = trips()
	assert few(owner.post('/groups/%s/accessList' % groups[0], json=entries))['totalCount'] == 100
	before = trips()
	assert few(owner.post('/groups/%s/accessList' % groups[0], json=entries + [{'ipAddress': '10.1.0.1'}]))['totalCount'] == 101
	key = ok(owner.post(org + '/apiKeys', json={'desc': 'trips', 'roles': ['ORG_MEMBER']}))['id']
	before = trips()
	few(owner.post('%s/apiKeys/%s/accessList' % (org, key), json=entries))
	for g in groups[:30]:
		ok(owner.post('/groups/%s/apiKeys/%s' % (g, key), json=[{'roles': ['GROUP_READ_ONLY']}]), 204)
	before = trips()
	few(owner.delete('%s/apiKeys/%s' % (org, key)), 204)
	# Each kind that a project may have was a question, and each place of its invitations two statements.
	before = trips()
	few(owner.delete('/groups/' + groups[1]), 204)
	before = trips()
	few(owner.delete('/groups/' + groups[0]), 204)


def test_an_answer_is_counted_while_it_is_made(start_server):
	"""500 invitations were one answer of 16 MB, and forty that nobody read 2.9 GB: an address that has no room gets 503 instead."""
	s = start_server('--buffer-memory', '8')  # of which one address alone gets less than a third
	org, = s.seed({'name': 'long', 'projects': ['l%d' % i for i in range(MANY)], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	owner, path = Api(s, Bearer(token(org))), '/orgs/%s/invites' % org['id']
	places = [{'groupId': p['id'], 'roles': ROLES} for p in org['projects'][:PLACES]]
	before = metric(s, 'steward_buffer_refusals_total')
	for i in range(LONG):
		ok(owner.post(path, json={'username': 'long%d@example.com' % i, 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': places}))
		if i == 5:
			assert len(ok(owner.get(path))) == 6
	r = owner.get(path)
	refused(r, 503, 'SERVICE_BUSY')
	assert r.headers['Retry-After'] == '1'
	assert metric(s, 'steward_buffer_refusals_total') == before + 1
	# Nothing of it stays counted, and short answers are given as before.
	until(lambda: metric(s, 'steward_buffer_bytes') < 200000, what='the room is free again')
	assert len(ok(owner.get(path, params={'username': 'long3@example.com'}))) == 1
	assert len(ok(owner.get('/groups/%s/invites' % org['projects'][0]['id']))) == LONG
