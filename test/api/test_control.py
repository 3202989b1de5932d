"""The test control: each call does what it says and nothing else, and what it does not know it refuses by name. A field that
is misspelt and ignored makes a test of our users' pass that tests nothing."""
import json, re, time

import pytest

from client import ok, refused, unique, until
from test_users import account

CALLS = [('GET', 'clock'), ('POST', 'clock'), ('POST', 'reset'), ('POST', 'buckets/reset'), ('POST', 'faults'), ('DELETE', 'faults'),
	 ('POST', 'engine'), ('POST', 'passwords'), ('POST', 'seed')]
SHAPE = {'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1',
	'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}


@pytest.fixture(scope='module')
def control(module_server):
	def call(path, body=None, method='POST'):
		return module_server.anonymous.request(method, '/api/test/' + path, json=body)
	call.server = module_server
	return call


@pytest.fixture(autouse=True)
def clean(control):
	yield
	ok(control('engine', {}), 204)
	ok(control('faults', method='DELETE'), 204)


def wrong(answer, field):
	"""Refused, and the field is named: in the words, and for programs."""
	doc = refused(answer, 400)
	assert field in doc['detail'] and field in doc['parameters'], doc
	return doc


@pytest.mark.parametrize('method, path', CALLS)
def test_unknown_fields_are_refused_everywhere(control, method, path):
	doc = wrong(control(path, {'sconds': 1}, method), 'sconds')
	assert 'unknown field' in doc['detail']


@pytest.mark.parametrize('method, path', CALLS)
def test_what_is_no_object_is_refused_everywhere(control, method, path):
	for text in ('[]', '1', '"x"', '{', '{"times": 1, "times": 2}'):
		r = control.server.anonymous.request(method, '/api/test/' + path, data=text, headers={'Content-Type': 'application/json'})
		assert 'must be a JSON object' in refused(r, 400)['detail']


GOOD = {'operationId': 'getGroup', 'status': 503}
WRONG = [('clock', {}, 'advanceSeconds')]
WRONG += [('clock', {'advanceSeconds': v}, 'advanceSeconds') for v in (-1, 1e11, '1', True, None)]
WRONG += [('engine', {'seconds': v}, 'seconds') for v in (-0.1, 86401, '1', None, True)]
WRONG += [('engine', {'fail': v}, 'fail') for v in ('creation', '', 1, True, ['create'])]
WRONG += [('engine', {'fail': 'create', 'times': v}, 'times') for v in (0, -1, 1.5, '2', 1000001, None)]
WRONG += [('engine', {'patch': v}, 'patch') for v in (-1, 1001, '1', 1.5, None)]
WRONG += [('engine', b, 'times') for b in ({'times': 2}, {'fail': None, 'times': 2})]
WRONG += [('faults', {'status': 500}, 'operationId'), ('faults', {'operationId': 'getGroup'}, 'status')]
WRONG += [('faults', {**GOOD, 'operationId': v}, 'operationId') for v in ('getNothing', '', 1, None)]
WRONG += [('faults', {**GOOD, 'status': v}, 'status') for v in (0, 200, 399, 600, '503', 500.5, None)]
WRONG += [('faults', {**GOOD, 'delayMs': v}, 'delayMs') for v in (0, -1, 60001, '1', 0.5)]
WRONG += [('faults', {**GOOD, 'times': v}, 'times') for v in (0, -1, '1', 1.5, 1000001)]
WRONG += [('faults', {**GOOD, 'retryAfterSeconds': v}, 'retryAfterSeconds') for v in (-1, 86401, '1', 1.5)]
WRONG += [('faults', {**GOOD, 'status': 500, 'retryAfterSeconds': 1}, 'retryAfterSeconds')]


@pytest.mark.parametrize('path, body, field', WRONG, ids=lambda v: json.dumps(v)[:60] if isinstance(v, dict) else None)
def test_wrong_values_are_refused_by_name(control, path, body, field):
	wrong(control(path, body), field)


A = {'type': 'serviceAccount'}
SEEDS = [({'projectCount': -1}, 'projectCount'), ({'teamCount': '1'}, 'teamCount'), ({'userCount': 10**9}, 'userCount'),
	 ({'name': 1}, 'name'), ({'nmae': 'x'}, 'nmae'), ({'projects': 'one'}, 'projects'), ({'projects': [1]}, 'projects[0]'),
	 ({'projects': ['']}, 'projects[0]'), ({'apiAccessListRequired': 'yes'}, 'apiAccessListRequired'), ({'principals': {}}, 'principals'),
	 ({'principals': ['x']}, 'principals[0]'), ({'principals': [A, {}]}, 'principals[1].type'),
	 ({'principals': [{'type': 'robot'}]}, 'principals[0].type'), ({'principals': [{'type': 'user'}]}, 'principals[0].username'),
	 ({'principals': [{**A, 'role': []}]}, 'principals[0].role'), ({'principals': [{**A, 'username': 'x'}]}, 'principals[0].username'),
	 ({'principals': [{**A, 'roles': ['ORG_OWNER', 'ORG_OWNR']}]}, 'principals[0].roles[1]'),
	 ({'principals': [{**A, 'roles': ['GROUP_OWNER']}]}, 'principals[0].roles[0]'),
	 ({'projects': ['p'], 'principals': [{**A, 'projectRoles': [{'project': 'q', 'roles': []}]}]}, 'principals[0].projectRoles[0].project'),
	 ({'projects': ['p'], 'principals': [{**A, 'projectRoles': [{'project': 'p', 'roles': ['ORG_OWNER']}]}]},
	  'principals[0].projectRoles[0].roles[0]'),
	 ({'principals': [{**A, 'accessList': ['10.0.0.0/33']}]}, 'principals[0].accessList[0]'),
	 ({'principals': [{'type': 'user', 'username': 'a@b.example', 'accessList': ['10.0.0.0/8']}]}, 'principals[0].accessList')]


@pytest.mark.parametrize('organization, field', SEEDS, ids=lambda v: v if isinstance(v, str) else None)
def test_seeding_refuses_by_name_and_makes_nothing(control, organization, field):
	name = unique('seed')
	wrong(control('seed', {'organizations': [{'name': name}, organization]}), 'organizations[1].' + field)
	assert not [row for row in control.server.rows('select body from doc where kind = \'org\'') if name in str(row)]


def test_seeding_names_all_that_is_wrong(control):
	doc = refused(control('seed', {'organizations': [{'nmae': 'x', 'projectCount': -1}]}), 400)
	assert {'organizations[0].nmae', 'organizations[0].projectCount'} <= set(doc['parameters'])
	refused(control('seed', {}), 400, None, 'organizations')


def test_a_name_that_is_taken_is_a_conflict(control):
	user = {'type': 'user', 'username': unique('u') + '@example.com', 'firstName': 'Ada', 'roles': ['ORG_MEMBER']}
	ok(control('seed', {'organizations': [{'principals': [user]}]}))
	refused(control('seed', {'organizations': [{'projects': ['p', 'p']}]}), 409)


def test_the_methods_of_a_path(control):
	r = control('reset', method='GET')
	refused(r, 405)
	assert r.headers['Allow'] == 'POST'
	refused(control('nothing'), 404)


def cluster(s, group):
	name = unique('c')
	ok(s.post('/groups/%s/clusters' % group, json={'name': name, **SHAPE}), 201)
	return lambda: ok(s.get('/groups/%s/clusters/%s' % (group, name)))['stateName']


def test_a_failure_leaves_the_seconds_alone_and_they_leave_it(control):
	"""On a clock that stands still only 0 seconds ever pass."""
	s = control.server
	group = s.project()['id']
	ok(control('engine', {'seconds': 0}), 204)
	ok(control('engine', {'fail': 'delete', 'times': 1}), 204)
	state = cluster(s, group)
	until(lambda: state() == 'IDLE', 60, 'a creation at once: the seconds are still 0')
	ok(control('engine', {'fail': 'create'}), 204)
	ok(control('engine', {'seconds': 0}), 204)
	state = cluster(s, group)

	def tried(wanted):
		s.advance(17)
		time.sleep(0.02)
		return state() == wanted
	until(lambda: tried('REPAIRING'), what='the failure, which the seconds did not take back')
	ok(control('engine', {'fail': None}), 204)
	until(lambda: tried('IDLE'), what='the end of the failures')


def test_an_empty_object_is_how_it_was_started(start_server):
	s = start_server('--simulated-seconds', '50')
	group = s.group
	s.control('engine', {'seconds': 0, 'fail': 'create'})
	s.control('engine', {})
	state = cluster(s, group)
	for _ in range(10):  # 30 seconds: more than the 3 of the default
		s.advance(3)
		time.sleep(0.02)
		assert state() == 'CREATING'

	def done():
		s.advance(10)
		return state() == 'IDLE'
	until(done)


@pytest.mark.parametrize('status', [429, 503])
def test_an_injected_refusal_says_when_to_come_again(control, status):
	s = control.server
	ok(control('faults', {'operationId': 'getGroup', 'status': status}), 204)
	ok(control('faults', {'operationId': 'getGroup', 'status': status, 'retryAfterSeconds': 7}), 204)
	answers = [s.get('/groups/' + s.group) for _ in range(3)]
	assert [a.status_code for a in answers] == [status, status, 200]
	assert [a.headers.get('Retry-After') for a in answers] == ['1', '7', None]
	refused(answers[0], status, 'INJECTED_FAULT')


def test_a_fault_may_be_slow(control):
	s = control.server
	ok(control('faults', {'operationId': 'getGroup', 'status': 500, 'delayMs': 600}), 204)
	began = time.monotonic()
	r = s.get('/groups/' + s.group)
	refused(r, 500, 'INJECTED_FAULT')
	assert time.monotonic() - began >= 0.6 and 'Retry-After' not in r.headers
	ok(s.get('/groups/' + s.group))


def test_more_faults_than_are_kept_are_refused(control):
	answers = [control('faults', GOOD).status_code for _ in range(65)]
	assert answers == [204] * 64 + [409]
	ok(control('faults', method='DELETE'), 204)
	ok(control.server.get('/groups/' + control.server.group))


def test_passwords(control):
	"""Cheap ones, unless they are asked for as people's are. Either verify whatever is asked for later."""
	s, role = control.server, {'orgId': control.server.org, 'roleName': 'ORG_MEMBER'}
	user = account(s, role)
	with s.slow_passwords():
		other = account(s, role)
	costs = [re.search(r'ln=\d+,r=8,p=\d+', str(s.rows("SELECT secret FROM doc WHERE kind = 'user' AND id = '%s'" % u['id']))).group() for u in (user, other)]
	assert costs == ['ln=4,r=8,p=1', 'ln=15,r=8,p=3']
	for u in (user, other):
		sign_in = lambda password: s.anonymous.post('/api/session/password', json={'username': u['username'], 'password': password},
			headers={'Origin': s.base_url, 'Sec-Fetch-Site': 'same-origin'}).status_code
		assert (sign_in('correct horse'), sign_in('wrong horse')) == (200, 401)
	wrong(control('passwords', {}), 'cheap')


def test_a_move_of_the_clock_is_waited_for(control):
	"""What was asked for before it has begun before, and what is due then is done when it is answered: there is nothing to
	wait for, and nothing to look for twice. (Of 10 creations, 7 were still CREATING.)"""
	s = control.server
	ok(control('engine', {'seconds': 300}), 204)
	for _ in range(10):
		path = '/groups/%s/clusters' % s.group
		name = ok(s.post(path, json={'name': unique('c'), **SHAPE}), 201)['name']
		s.advance(600)
		assert ok(s.get(path + '/' + name))['stateName'] == 'IDLE'
		ok(s.delete(path + '/' + name), 202)
		s.advance(600)
		refused(s.get(path + '/' + name), 404)


def test_the_states_of_a_creation_that_fails(control):
	"""As docs/testing.md has them."""
	s, path = control.server, '/groups/%s/clusters' % control.server.group
	ok(control('engine', {'seconds': 0, 'fail': 'create'}), 204)
	path += '/' + ok(s.post(path, json={'name': unique('c'), **SHAPE}), 201)['name']
	states = []
	for _ in range(5):
		states.append(ok(s.get(path))['stateName'])
		s.advance(60)
	assert states == ['CREATING'] * 5 and ok(s.get(path))['stateName'] == 'REPAIRING'
	s.advance(30)
	assert ok(s.get(path))['stateName'] == 'REPAIRING'
	ok(control('engine', {'fail': None}), 204)
	s.advance(900)  # at the latest
	assert ok(s.get(path))['stateName'] == 'IDLE'
	ok(s.delete(path), 202)
	s.advance(600)
	refused(s.get(path), 404)
