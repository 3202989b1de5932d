"""Token buckets: how they empty and fill, whose they are, and the operator's overrides. Not recorded: overrides change
RateLimit-Limit."""
import pytest

import client
from client import BASE, Wire, cli, ok, unique, until
from derive import Api as Data

data = Data()
BAD = {'Accept': 'application/vnd.svc.1999-01-01+json'}  # takes a token, and does nothing


def owned(server, **more):
	org, = server.seed({'name': unique('limits'), 'projects': ['a', 'b'], **more,
			    'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
			{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	org['api'], org['other'] = [server.api_for(p) for p in org['principals']]
	return org


def take(caller, path, n=1):
	"""Uses n tokens; the last answer."""
	for _ in range(n):
		r = caller.get(path, headers=BAD)
	return r


def left(r):
	return int(r.headers['RateLimit-Remaining'])


def test_refill_in_steps(start_server):
	"""S45: 10 tokens, 5 more at each full minute since the first use."""
	s = start_server()
	org = owned(s)
	path = '/orgs/%s/settings' % org['id']
	call = lambda: take(client.Api(s, org['api'].session.auth), path)
	assert left(call()) == 9, 'starts full'
	s.advance(10)
	for n in range(8, -1, -1):
		assert left(call()) == n
	r = call()
	assert r.status_code == 429 and r.headers['Retry-After'] == '50'
	assert r.json()['parameters'][1:] == [50, 10, 5, 60]
	s.advance(49)
	assert call().status_code == 429
	assert call().headers['Retry-After'] == '1'
	s.advance(1)
	assert left(call()) == 4, 'five tokens at the full minute'
	for _ in range(4):
		call()
	assert call().headers['Retry-After'] == '60'
	s.advance(59)
	assert call().status_code == 429
	s.advance(1)
	assert left(call()) == 4
	s.advance(60 * 3)
	assert left(call()) == 9, 'never above the capacity'


def test_no_fraction_of_a_step(start_server):
	s = start_server()
	org = owned(s)
	path = '/orgs/%s/settings' % org['id']
	take(org['api'], path, 10)
	for _ in range(5):
		s.advance(11)
		assert take(org['api'], path).status_code == 429
	s.advance(5)
	assert left(take(org['api'], path)) == 4


def test_scopes_are_apart(module_server):
	s = module_server
	org = owned(s)
	a, b = [p['id'] for p in org['projects']]
	assert left(take(org['api'], '/groups/' + a, 5)) == 1195
	assert left(take(org['other'], '/groups/' + a)) == 1194, 'a project has one bucket for all its callers'
	assert left(take(org['api'], '/groups/' + b)) == 1199, 'another project has its own'
	assert left(take(org['api'], '/groups/%s/clusters' % a)) == 9999, 'another set has its own'
	assert left(take(org['api'], '/orgs', 3)) == 297
	assert left(take(org['other'], '/orgs')) == 299, 'a set of scope USER counts each caller'
	assert left(take(org['api'], '/orgs/%s/settings' % org['id'])) == 9
	assert left(take(org['other'], '/orgs/%s/settings' % org['id'])) == 8
	first = left(take(s.anonymous, '/unauth/controlPlaneIPAddresses'))
	assert left(take(org['api'], '/unauth/controlPlaneIPAddresses')) == first - 1, 'one address, one bucket'


def test_methods_of_a_set_share(module_server):
	org = owned(module_server)
	a = org['projects'][0]['id']
	take(org['api'], '/groups/' + a)
	r = org['api'].patch('/groups/%s/settings' % a, json={})
	assert left(r) == 1198
	assert left(org['api'].head('/groups/' + a)) == 1197


def test_the_last_token_among_many_callers(start_server):
	"""Exactly as many calls pass as there are tokens, over several connections at once."""
	import threading
	s = start_server()
	org = owned(s)
	token, path, passed = org['principals'][0]['accessToken'], BASE + '/orgs', []

	def run():
		with Wire(s, token) as w:
			passed.extend(a.status for a in w.batch([('GET', path, BAD)] * 100))
	threads = [threading.Thread(target=run) for _ in range(4)]
	[t.start() for t in threads]
	[t.join() for t in threads]
	assert passed.count(406) == 300 and passed.count(429) == 100


# Overrides

def in_force(server, caller, path, capacity):
	"""Waits until the capacity shows: a second, and what the machine needs."""
	until(lambda: caller.get(path).headers.get('RateLimit-Limit') == str(capacity), 60, 'RateLimit-Limit: %s' % capacity)


def test_overrides(start_server):
	s = start_server()
	org = owned(s)
	a, b = [p['id'] for p in org['projects']]
	limits = lambda *args: cli('limits', *args, '--data', s.data_dir)
	path_a, path_b = '/groups/' + a, '/groups/' + b
	in_force(s, org['api'], path_a, 1200)
	limits('set', '--set', 'S53', '--scope', a, '--capacity', 7, '--refill', 3)
	in_force(s, org['api'], path_a, 7)
	in_force(s, org['api'], path_b, 1200)
	take(org['api'], path_a, 8)
	r = take(org['api'], path_a)
	assert r.status_code == 429
	assert r.json()['parameters'][2:] == [7, 3,
			60] and 'Request capacity: 7. Refill rate: 3 per 60 seconds.' in r.json()['detail']
	limits('set', '--set', 'S53', '--capacity', 50, '--refill', 20)
	in_force(s, org['api'], path_b, 50)
	assert org['api'].get(path_a).headers['RateLimit-Limit'] == '7', 'the more specific one holds'
	limits('set', '--all', '--capacity', 60, '--refill', 30)
	in_force(s, org['api'], '/orgs', 60)
	assert org['api'].get(path_b).headers['RateLimit-Limit'] == '50'
	shown = limits('list').stdout
	for text in ('S53', a, '7', '50', '60'):
		assert text in shown, shown
	# as a resource
	mine = ok(org['api'].get('/rateLimits/S53?groupId=' + a))
	assert (mine['capacity'], mine['refillRate']) == (7, 3)
	assert ok(org['api'].get('/rateLimits/S53?groupId=' + b))['capacity'] == 50
	assert ok(org['api'].get('/rateLimits/S53'))['capacity'] == 50
	listed = {x['endpointSetId']: x for x in ok(org['api'].get('/rateLimits?groupId=' + a))['results']}
	assert listed['S53']['capacity'] == 7 and listed['S17']['capacity'] == 60
	everything = {x['endpointSetId']: x for x in ok(org['api'].get('/rateLimits'))['results']}
	assert everything['S45']['capacity'] == 60
	limits('clear', '--set', 'S53', '--scope', a)
	in_force(s, org['api'], path_a, 50)
	limits('clear', '--set', 'S53')
	in_force(s, org['api'], path_a, 60)
	limits('clear', '--all')
	in_force(s, org['api'], path_a, 1200)
	assert a not in limits('list').stdout


def test_overrides_survive_a_restart(start_server, tmp_path):
	s = start_server(data_dir=tmp_path / 'data')
	cli('limits', 'set', '--data', s.data_dir, '--set', 'S54', '--capacity', 9, '--refill', 1)
	in_force(s, s.owner, '/groups', 9)
	s.stop()
	t = start_server(data_dir=tmp_path / 'data')
	assert t.get('/groups').headers['RateLimit-Limit'] == '9'


def test_a_raised_limit_helps_at_once(start_server):
	s = start_server()
	org = owned(s)
	path = '/orgs/%s/settings' % org['id']
	take(org['api'], path, 10)
	assert take(org['api'], path).status_code == 429
	cli('limits', 'set', '--data', s.data_dir, '--set', 'S45', '--scope', org['id'], '--capacity', 100, '--refill',
			50)
	until(lambda: take(org['api'], path).status_code != 429, 60)


@pytest.mark.parametrize('args', [
	['set', '--set', 'S99', '--capacity', '5', '--refill', '5'], ['set', '--capacity', '5', '--refill', '5'],
	['set', '--set', 'S17', '--capacity', 'x', '--refill', '5'], ['set', '--set', 'S17', '--capacity', '0',
	'--refill', '5'],
	['set', '--set', 'S17', '--capacity', '5'], ['set', '--set', 'S17', '--all', '--capacity', '5', '--refill',
	'5'],
	['nonsense'], []])
def test_bad_limits_commands(module_server, args):
	done = cli('limits', *args, '--data', module_server.data_dir, check=False)
	assert done.returncode != 0 and done.stderr.strip()
	assert len(done.stderr) < 2000


def test_limits_command_without_data(tmp_path):
	done = cli('limits', 'list', '--data', tmp_path / 'nothing', check=False)
	assert done.returncode != 0 and 'nothing' in done.stderr
	assert not (tmp_path / 'nothing').exists()


def test_many_scopes_stay_bounded(start_server):
	"""More scopes than anybody has: every one still gets a right answer."""
	s = start_server()
	org, = s.seed({'name': unique('wide'), 'projectCount': 3000, 'principals': [{'type': 'serviceAccount',
			'roles': ['ORG_OWNER']}]})
	with Wire(s, org['principals'][0]['accessToken']) as w:
		ids = []
		for page in range(1, 7):
			ids += [x['id'] for x in w.one('GET', '%s/orgs/%s/groups?itemsPerPage=500&pageNum=%d' % (BASE,
					org['id'], page)).json()['results']]
		assert len(set(ids)) == 3000
		for a in w.batch([('GET', '%s/groups/%s' % (BASE, i), BAD) for i in ids]):
			assert a.status == 406 and a.header('ratelimit-remaining') == '1199'
