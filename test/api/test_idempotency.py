"""Idempotency-Key on POST: a repeat gets the first answer, and nothing is done twice."""
import pathlib, threading

import pytest

from client import BASE, Api, Bearer, Wire, metric, ok, refused, unique, until


def created(server, key, body, path='/groups', caller=None):
	return (caller or server.owner).post(path, json=body, headers={'Idempotency-Key': key})


def test_a_repeat_gets_the_first_answer(server):
	key, body = unique('key'), {'name': unique(), 'orgId': server.org}
	first, again = created(server, key, body), created(server, key, body)
	assert ok(first) == ok(again)
	assert first.headers['Content-Type'] == again.headers['Content-Type']
	assert again.headers['X-Request-Id'] != first.headers['X-Request-Id']
	names = [x['name'] for x in ok(server.get('/groups?itemsPerPage=500'))['results']]
	assert names.count(body['name']) == 1


def test_without_a_key_it_is_done_twice(server):
	body = {'name': unique(), 'orgId': server.org}
	ok(server.post('/groups', json=body))
	refused(server.post('/groups', json=body), 409)


def test_another_body_is_refused(server):
	key = unique('key')
	ok(created(server, key, {'name': unique(), 'orgId': server.org}))
	other = {'name': unique(), 'orgId': server.org}
	refused(created(server, key, other), 422)
	assert server.get('/groups/byName/' + other['name']).status_code == 404


def test_another_path_is_refused(server):
	key, body = unique('key'), {'name': unique()}
	ok(created(server, key, body, '/orgs'), 201)
	assert created(server, key, body, '/orgs?pretty=true').status_code in (201, 422)
	refused(created(server, key, {'name': unique(), 'orgId': server.org}), 422)


def test_another_version_is_refused(older_server):
	"""The kept answer has the form of one version."""
	server, key, name = older_server, unique('key'), unique('v')
	body = {'name': name, 'description': 'd', 'roles': ['ORG_MEMBER'], 'secretExpiresAfterHours': 8}

	def post(version):
		return server.post('/orgs/%s/serviceAccounts' % server.org, json=body, headers={
			'Idempotency-Key': key, 'Accept': 'application/vnd.svc.%s+json' % version})
	ok(post('2024-08-05'), 201)
	ok(post('2025-03-12'), 201)  # the same one serves
	key, body = unique('key'), {'name': unique('c'), 'clusterType': 'REPLICASET', 'replicationSpecs': [
		{'regionConfigs': [{'providerName': 'AWS', 'priority': 7, 'regionName': 'US_EAST_1',
						    'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}

	def make(version):
		return server.post('/groups/%s/clusters' % server.group, json=body, headers={
			'Idempotency-Key': key, 'Accept': 'application/vnd.svc.%s+json' % version})
	ok(make('2023-02-01'), 201)
	refused(make('2024-08-05'), 422, 'IDEMPOTENCY_KEY_REUSED')


def test_one_key_at_a_time(server):
	name = unique()
	with Wire(server, server.token()) as wire:
		a = wire.one('POST', BASE + '/groups', {'Idempotency-Key': 'a', 'idempotency-key': 'b'}, {'name': name, 'orgId': server.org})
	assert a.status == 400 and a.json()['parameters'] == ['Idempotency-Key']
	assert server.get('/groups/byName/' + name).status_code == 404


def test_keys_belong_to_the_caller(server):
	key = unique('key')
	org, = server.seed({'name': unique('caller'), 'principals': [{'type': 'serviceAccount',
			'roles': ['ORG_OWNER']}]})
	mine = ok(created(server, key, {'name': unique(), 'orgId': server.org}))
	theirs = ok(created(server, key, {'name': unique(), 'orgId': org['id']},
			caller=server.api_for(org['principals'][0])))
	assert mine['id'] != theirs['id']


def test_created_status_and_location_are_repeated(server):
	key, body = unique('key'), {'name': unique('org')}
	first, again = created(server, key, body, '/orgs'), created(server, key, body, '/orgs')
	assert first.status_code == again.status_code == 201
	assert first.headers['Location'] == again.headers['Location']
	assert first.json() == again.json()


def test_a_refusal_before_the_write_does_not_use_the_key_up(server):
	key = unique('key')
	refused(created(server, key, {'name': 'not/good', 'orgId': server.org}), 400)
	ok(created(server, key, {'name': unique(), 'orgId': server.org}))


@pytest.mark.parametrize('key', ['', 'x' * 300, 'with\ttab'])
def test_bad_keys(server, key):
	r = server.post('/groups', json={'name': unique(), 'orgId': server.org}, headers={'Idempotency-Key': key})
	assert r.status_code in (200, 400)
	if len(key) == 300:
		refused(r, 400)


def test_after_a_restart(start_server, tmp_path):
	s = start_server(data_dir=tmp_path / 'data')
	key, body = unique('key'), {'name': unique('org'), 'apiKey': {'desc': 'k', 'roles': ['ORG_OWNER']}}
	first = ok(created(s, key, body, '/orgs'), 201)
	s.stop()
	t = start_server(data_dir=tmp_path / 'data')
	again = created(t, key, body, '/orgs')
	doc = ok(again, 201)
	assert doc['organization']['id'] == first['organization']['id']
	assert doc['apiKey']['privateKey'] == first['apiKey']['privateKey']
	refused(created(t, key, {**body, 'name': unique()}, '/orgs'), 422)


def test_in_flight(start_server):
	s = start_server()
	s.fault('createGroup', delayMs=4000, times=1)
	key, body, answers = unique('key'), {'name': unique(), 'orgId': s.org}, []
	token, before = s.token(), metric(s, 'steward_bucket_tokens_total')

	def run():
		answers.append(created(s, key, body, caller=Api(s, Bearer(token))))
	t = threading.Thread(target=run)
	t.start()
	until(lambda: metric(s, 'steward_bucket_tokens_total') > before, what='the first call')
	refused(created(s, key, body), 409)
	t.join()
	doc = ok(answers[0])
	assert ok(created(s, key, body))['id'] == doc['id']


def test_many_at_once(start_server):
	s = start_server()
	key, body, answers, token = unique('key'), {'name': unique(), 'orgId': s.org}, [], s.token()

	def run():
		answers.append(created(s, key, body, caller=Api(s, Bearer(token))))
	threads = [threading.Thread(target=run) for _ in range(12)]
	[t.start() for t in threads]
	[t.join() for t in threads]
	assert {r.status_code for r in answers} <= {200, 409}
	good = [r.json()['id'] for r in answers if r.status_code == 200]
	assert good and len(set(good)) == 1
	assert ok(s.get('/orgs/%s/groups' % s.org, params={'name': body['name']}))['totalCount'] == 1


def test_forgotten_after_a_day(start_server):
	s = start_server()
	key, body = unique('key'), {'name': unique(), 'orgId': s.org}
	ok(created(s, key, body))
	s.advance(25 * 3600)
	refused(created(s, key, body), 409)


def in_clear(folder, *secrets):
	found = []
	for file in pathlib.Path(folder).rglob('*'):
		if file.is_file():
			content = file.read_bytes()
			found += [(file.name, s) for s in secrets if s.encode() in content]
	return found


def test_secrets_are_not_kept_in_clear(start_server):
	s = start_server()
	body = {'name': unique('org'), 'apiKey': {'desc': 'k', 'roles': ['ORG_OWNER']}, 'serviceAccount': {
		'name': 'robot', 'description': 'd', 'roles': ['ORG_OWNER'], 'secretExpiresAfterHours': 8}}
	key = unique('key')
	doc = ok(created(s, key, body, '/orgs'), 201)
	private, secret = doc['apiKey']['privateKey'], doc['serviceAccount']['secrets'][0]['secret']
	assert ok(created(s, key, body, '/orgs'), 201)['apiKey']['privateKey'] == private
	assert not in_clear(s.data_dir, private, secret)
	s.stop()
	assert not in_clear(s.data_dir, private, secret)
	boot = s.bootstrap
	hits = in_clear(s.data_dir, boot['apiKey']['privateKey'], boot['serviceAccount']['clientSecret'])
	assert {f for f, _ in hits} == {'bootstrap.json'}, hits
