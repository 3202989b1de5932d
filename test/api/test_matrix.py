"""Every operation of the catalog with every role: who may, who may not, and what a stranger learns.

The expected decision is computed here, from api/roles.json and the row's roles, and shares nothing with the server's
tables. A query parameter that does not exist stops a permitted call behind the role's gate, before anything can change;
a read is asked for as it is."""
import concurrent.futures, json

import pytest

import client
from client import BASE, ROOT, Wire, cli, unique
from derive import Api

api = Api()
ROLES = json.loads((ROOT / 'api' / 'roles.json').read_text())
ORG, PROJECT = ROLES['organization'], ROLES['project']
THREADS = 4
SPOILED = 'noSuchParameter=1'


def closed(held):
	"""All that a set of roles includes: until nothing more comes."""
	while True:
		more = set(held)
		for role in held:
			more |= set({**ORG, **PROJECT}[role].get('includes', []))
		more |= {'ORG_MEMBER'} if any(r in ORG for r in more) else set()
		more |= {'GROUP_READ_ONLY'} if any(r in PROJECT for r in more) else set()
		if more == held:
			return held
		held = more


def inherited(held):
	"""What roles in an organization give in each of its projects."""
	return closed({r for role in held for r in ORG[role].get('inEveryProject', [])})


def test_closure_of_roles():
	assert len(ORG) + len(PROJECT) >= 29
	assert closed({'ORG_OWNER'}) >= {'ORG_MEMBER', 'ORG_READ_ONLY', 'ORG_GROUP_CREATOR'}
	assert inherited(closed({'ORG_OWNER'})) >= {'GROUP_OWNER', 'GROUP_READ_ONLY'}
	assert inherited({'ORG_MEMBER'}) == set()


class Caller:
	"""Holds one role: in the organization, or in one of its two projects."""

	def __init__(self, role, token):
		self.role, self.token = role, token
		self.org = closed({role}) if role in ORG else set()
		self.project = closed({role}) if role in PROJECT else set()

	def decision(self, op, own=True):
		"""401, 403 or 'through', in the project of its role or (own false) in the other."""
		path = op['path']
		if path.startswith('/unauth/'):
			return 'through'
		if '{groupId}' in path:
			held = self.org | inherited(self.org) | (self.project if own else set())
		elif '{federationSettingsId}' in path or '{orgId}' in path:
			held = self.org
		else:
			return 'through' if op.get('open') or (self.org | self.project) & set(op['roles']) else 403
		if not held:
			return 401
		return 'through' if op.get('open') or held & set(op['roles']) else 403


class World:
	def __init__(self):
		self.server = client.Server('--log-level', 'warn')
		cli('limits', 'set', '--data', self.server.data_dir, '--all', '--capacity', 100000000, '--refill', 100000000)
		self.names = {k: unique(k) for k in ('home', 'own', 'other', 'away', 'abroad')}
		n = self.names
		roles = list(ORG) + list(PROJECT)
		home, away = self.server.seed({'name': n['home'], 'projects': [n['own'], n['other']],
			'principals': [{'type': 'serviceAccount', 'roles': [r]} if r in ORG else {'type': 'serviceAccount',
				'projectRoles': [{'project': n['own'], 'roles': [r]}]} for r in roles]},
			{'name': n['away'], 'projects': [n['abroad']], 'principals': [
				{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, {'type': 'serviceAccount'}]})
		self.home = home
		self.callers = [Caller(r, p['accessToken']) for r, p in zip(roles, home['principals'])]
		self.owner = self.callers[0]
		self.stranger, self.nobody = [p['accessToken'] for p in away['principals']]
		self.values = {'orgId': home['id'], 'groupId': home['projects'][0]['id'],
			'federationSettingsId': home['federationSettingsId']}
		self.other_values = {**self.values, 'groupId': home['projects'][1]['id']}

	def run(self, jobs):
		"""[(token, [request])] -> [[answer]], on a few connections at once."""
		def one(job):
			with Wire(self.server, job[0]) as wire:
				return wire.batch(job[1])
		with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
			return list(pool.map(one, jobs))

	def state(self):
		"""What the owner sees."""
		paths = [BASE + p for p in ('/orgs/' + self.home['id'], '/orgs/%s/settings' % self.home['id'],
			'/orgs/%s/groups' % self.home['id'], '/groups/' + self.values['groupId'],
			'/orgs/%s/events?itemsPerPage=500' % self.home['id'],
			'/groups/%s/events?itemsPerPage=500' % self.values['groupId'])]
		with Wire(self.server, self.owner.token) as wire:
			return [(a.status, a.body) for a in wire.batch([('GET', p) for p in paths])]


@pytest.fixture(scope='module')
def world():
	from conftest import end
	w = World()
	# Overrides are in force within a second.
	for _ in range(100):
		with Wire(w.server, w.owner.token) as wire:
			if wire.one('GET', BASE + '/orgs/' + w.home['id']).header('ratelimit-limit') == '100000000':
				break
	yield w
	end(w.server)


def body_of(op):
	return api.minimal(op['request']) if 'request' in op else None


def spoiled(op, values):
	return (op['method'], api.path(op, **values) + '?' + SPOILED, None, body_of(op))


def plain(op, values):
	return (op['method'], api.path(op, **values) + api.query(op), None, body_of(op))


def code(answer):
	return '%d %s' % (answer.status, answer.body[:160].decode(errors='replace'))


def wrong_decisions(op, expected, answer, exact):
	if expected == 'through':
		good = answer.status == 400 and SPOILED[:-2] in answer.json()['parameters'] if exact else \
				answer.status not in (401, 403) and (answer.status < 500 or answer.status == 501)
	else:
		good = answer.status == expected
	return [] if good else ['%s %s: expected %s, got %s' % (op['method'], op['path'], expected, code(answer))]


def compare(world, ops, request, exact, values, own=True):
	jobs = [(c.token, [request(op, values) for op in ops]) for c in world.callers]
	wrong, count = [], 0
	for caller, answers in zip(world.callers, world.run(jobs)):
		for op, answer in zip(ops, answers):
			count += 1
			wrong += [caller.role + ': ' + w for w in wrong_decisions(op, caller.decision(op, own), answer, exact)]
	assert not wrong, '%d of %d decisions are wrong\n%s' % (len(wrong), count, '\n'.join(wrong[:40]))
	return count


def test_every_operation_with_every_role(world):
	before = world.state()
	count = compare(world, api.ops, spoiled, True, world.values)
	assert count == 447 * (len(ORG) + len(PROJECT)) and world.state() == before


def test_every_read_with_every_role(world):
	"""The same through to the handler: none of them says no on its own."""
	compare(world, [op for op in api.ops if op['method'] == 'GET'], plain, False, world.values)


def test_a_role_in_one_project_is_none_in_another(world):
	ops = [op for op in api.ops if '{groupId}' in op['path']]
	compare(world, ops, spoiled, True, world.other_values, own=False)


def test_who_may_make_projects(world):
	"""The organization stands in the body: a name that is taken stops those who may."""
	body = {'name': world.names['own'], 'orgId': world.home['id']}
	answers = world.run([(c.token, [('POST', BASE + '/groups', None, body)]) for c in world.callers])
	roles = set(api.by_id['createGroup']['bodyScope']['roles'])
	for caller, (answer,) in zip(world.callers, answers):
		expected = 401 if not caller.org else 409 if caller.org & roles else 403
		assert answer.status == expected, (caller.role, code(answer))


@pytest.mark.parametrize('who', ['stranger', 'nobody'])
def test_a_stranger_learns_nothing(world, who):
	"""An owner of another organization, and one who has no role anywhere, with requests that would do something."""
	before = world.state()
	ops = [op for op in api.ops if any(p in op['path'] for p in ('{orgId}', '{groupId}', '{federationSettingsId}'))]
	assert len(ops) > 400
	secrets = [world.names[k] for k in ('home', 'own', 'other')] + [world.other_values['groupId']] + [
			p['clientId'] for p in world.home['principals']] + [p['id'] for p in world.home['principals']]
	answers, = world.run([(getattr(world, who), [plain(op, world.values) for op in ops])])
	for op, a in zip(ops, answers):
		assert a.status == 401, (op['operationId'], code(a))
		told = a.body.decode() + str(a.lines)
		assert not [s for s in secrets if s in told], (op['operationId'], told)
		assert a.json()['parameters'] == [] and not a.header('etag') and not a.header('ratelimit-limit'), told
	assert world.state() == before
	same = {(json.dumps(a.json(), sort_keys=True)) for a in answers}
	assert len(same) == 1, same
