"""Random organizations and callers: the gates' decisions against a second evaluator, written from api/roles.json and the
rules in words.

A world is a few organizations with projects, teams, users, keys and service accounts, a federation, and a history of
grants, changes, moves and deletions. role_batch.c plays the history on a store with the product's own functions; here it is played
on plain sets. Then callers ask for operations of the whole catalog; status and roles held must agree.

The rules: a scope that does not exist is a 404. Somebody without any role in the organization of the path, or in the project
of the path or its organization, is a stranger: 401. A member needs one of the operation's roles, or one that includes it:
403. A user has the roles of its teams. A role in an organization gives what inEveryProject says in each of its projects."""
import glob, json, os, random

DECIDED = (0, 401, 403, 404)


class Data:
	def __init__(self, folder):
		roles = json.load(open(os.path.join(folder, 'roles.json')))
		self.org, self.project = roles['organization'], roles['project']
		self.every = {**self.org, **self.project}
		self.ops = []
		for file in sorted(glob.glob(os.path.join(folder, '*.json'))):
			for op in json.load(open(file)).get('operations', []):
				self.ops.append(op)

	def included(self, role):
		"""The role and all that it includes; every project role reads, every organization role is a member."""
		found = {role, 'ORG_MEMBER' if role in self.org else 'GROUP_READ_ONLY'}
		for inner in self.every[role]['includes']:
			found |= self.included(inner)
		return found

	def spread(self, roles):
		return set().union(*(self.included(r) for r in roles)) if roles else set()


class World:
	"""What the history has left, as plain sets."""

	def __init__(self, data):
		self.data, self.steps = data, []
		self.orgs, self.groups, self.callers = set(), {}, []
		self.grants = {}      # (grantee, scope) -> roles as given
		self.scope_is_org = {}
		self.members = set()  # (team, user)
		self.teams, self.federations, self.gone = [], {}, set()

	def step(self, *words):
		self.steps.append(list(words))

	def grant(self, who, grantee, in_org, scope, names):
		self.step('grant', who, grantee, in_org, scope, names)
		known = self.data.org if in_org else self.data.project
		kept = {n for n in names if n in known}
		self.grants.pop((grantee, scope), None)
		if kept:
			self.grants[grantee, scope] = (who, kept)

	def roles_in(self, kind, caller, scope):
		"""Closed roles that the caller has in the scope itself, by its own grants and its teams'."""
		names = set(self.grants.get((caller, scope), (None, set()))[1])
		if kind == 'user':
			for team, user in self.members:
				if user == caller:
					names |= self.grants.get((team, scope), (None, set()))[1]
		return self.data.spread(names)

	def org_roles(self, kind, caller, org):
		return {r for r in self.roles_in(kind, caller, org) if r in self.data.org}

	def group_roles(self, kind, caller, org, group):
		roles = {r for r in self.roles_in(kind, caller, group) if r in self.data.project}
		for role in self.org_roles(kind, caller, org):
			roles |= self.data.spread(self.data.org[role].get('inEveryProject', []))
		return roles

	# The decision: (status, roles held when it was made).

	def decide(self, question, op):
		kind, caller = question['caller']
		path, params = op['path'], question['params']
		if path.startswith('/unauth/'):
			return 0, set()
		if caller in self.gone:
			return 401, set()
		status, roles = self.member(kind, caller, path, params)
		if status:
			return status, roles
		if not op.get('open') and not roles & set(op['roles']):
			return 403, roles
		return self.body(kind, caller, op, question, roles)

	def member(self, kind, caller, path, params):
		if '{groupId}' in path:
			org = self.groups.get(params['groupId'])
			if org is None:
				return 404, set()
			roles = self.org_roles(kind, caller, org) | self.group_roles(kind, caller, org, params['groupId'])
			return (0 if roles else 401), roles
		if '{federationSettingsId}' in path:
			return self.federated(kind, caller, '{orgId}' in path, params)
		if '{orgId}' in path:
			if params['orgId'] not in self.orgs:
				return 404, set()
			roles = self.org_roles(kind, caller, params['orgId'])
			return (0 if roles else 401), roles
		return 0, set().union(*[self.roles_in(kind, caller, s) for s in self.scope_is_org] or [set()])

	def federated(self, kind, caller, names_org, params):
		connected = self.federations.get(params['federationSettingsId'])
		if connected is None or (names_org and params['orgId'] not in self.orgs):
			return 404, set()
		anywhere = set().union(*[self.org_roles(kind, caller, o) for o in connected] or [set()])
		if not anywhere:
			return 401, set()
		if not names_org:
			return 0, anywhere
		if params['orgId'] not in connected:
			return 404, set()
		roles = self.org_roles(kind, caller, params['orgId'])
		return (0 if roles else 401), roles

	def body(self, kind, caller, op, question, roles):
		wanted = op.get('bodyScope')
		if not wanted:
			return 0, roles
		org = question['body'][wanted['field']]
		if org not in self.orgs:
			return 404, roles
		roles = self.org_roles(kind, caller, org)
		if not roles:
			return 401, question['before']
		return (0 if roles & set(wanted['roles']) else 403), roles


def new_id():
	return '%024x' % R.getrandbits(96)


def some_roles(data, in_org):
	names = R.sample(sorted(data.org if in_org else data.project), R.choice([1, 1, 1, 2, 3]))
	if R.random() < 0.1:  # of the other kind, or of none: they give nothing
		names.append(R.choice(['NONSENSE', *(data.project if in_org else data.org)]))
	return names if R.random() > 0.1 else []


def make_world(data):
	w = World(data)
	for _ in range(R.randint(1, 3)):
		org = new_id()
		w.step('put', 'org', org, '', '{}')
		w.orgs.add(org)
		w.scope_is_org[org] = True
		for _ in range(R.randint(0, 3)):
			group = new_id()
			w.step('put', 'project', group, org, '{}')
			w.groups[group] = org
			w.scope_is_org[group] = False
	orgs = sorted(w.orgs)
	for kind, stored in (('user', 'user'), ('key', 'api_key'), ('account', 'service_account'), ('user', 'user')):
		for _ in range(R.randint(1, 2)):
			caller = new_id()
			body = {'username': 'u', 'publicKey': 'k', 'clientId': 'c'}
			w.step('put', stored, caller, '' if kind == 'user' else R.choice(orgs), json.dumps(body))
			w.callers.append((kind, caller))
	w.teams = [new_id() for _ in range(R.randint(0, 3))]
	if R.random() < 0.7:
		federation, connected = new_id(), R.sample(orgs, R.randint(0, len(orgs)))
		w.step('put', 'federation', federation, '', json.dumps({'orgIds': connected}))
		w.federations[federation] = connected
	for _ in range(R.randint(5, 60)):
		change(w)
	return w


def change(w):
	"""One more piece of history."""
	users = [c for k, c in w.callers if k == 'user']
	grantees = w.callers + [('team', t) for t in w.teams] * 2
	what = R.choices(['grant', 'join', 'leave', 'drop', 'clear', 'move', 'delete'], [30, 12, 2, 1, 1, 1, 1])[0]
	if what == 'grant':
		scope = R.choice(sorted(w.scope_is_org))
		who, grantee = R.choice(grantees)
		w.grant(who, grantee, w.scope_is_org[scope], scope, some_roles(w.data, w.scope_is_org[scope]))
	elif what == 'join' and w.teams:
		pair = R.choice(w.teams), R.choice(users)
		w.step('join', *pair)
		w.members.add(pair)
	elif what == 'leave' and w.members:
		pair = R.choice(sorted(w.members))
		w.step('leave', *pair)
		w.members.discard(pair)
	elif what == 'drop':
		who, grantee = R.choice(grantees)
		w.step('drop', who, grantee)
		w.grants = {k: v for k, v in w.grants.items() if k[0] != grantee}
	elif what == 'clear':
		scope = R.choice(sorted(w.scope_is_org))
		w.step('clear', w.scope_is_org[scope], scope)
		w.grants = {k: v for k, v in w.grants.items() if k[1] != scope}
	elif what == 'move' and w.groups:
		group, org = R.choice(sorted(w.groups)), R.choice(sorted(w.orgs))
		if org != w.groups[group]:
			w.step('move', group, org)
			w.groups[group] = org
	elif what == 'delete' and len(w.gone) < 2:
		kind, caller = R.choice(w.callers)
		if caller not in w.gone:
			w.step('delete', {'user': 'user', 'key': 'api_key', 'account': 'service_account'}[kind], caller)
			w.gone.add(caller)


def pick(known):
	return R.choice(sorted(known)) if known and R.random() > 0.03 else R.choice([new_id(), 'no-id'])


def make_question(w, op):
	q = {'caller': list(R.choice(w.callers)), 'op': op['operationId'], 'params': {
		'groupId': pick(w.groups), 'orgId': pick(w.orgs), 'federationSettingsId': pick(w.federations)}}
	if op.get('bodyScope'):
		q['body'] = {op['bodyScope']['field']: pick(w.orgs)}
	return q


def run(api, cases=100000, seed=20261115):
	global R
	data = Data(api)
	R = random.Random(seed)
	scoped = [op for op in data.ops if '{groupId}' in op['path'] or '{orgId}' in op['path']
		  or '{federationSettingsId}' in op['path'] or op.get('bodyScope')]
	lines, expected, each = [], [], 200
	for _ in range(-(-cases // each)):
		w = make_world(data)
		asked = [make_question(w, op) for op in R.choices(scoped, k=each - 10) + R.choices(data.ops, k=10)]
		lines.append(json.dumps({'steps': w.steps, 'questions': asked}))
		by_id = {op['operationId']: op for op in data.ops}
		for q in asked:
			q['before'] = set()
			if by_id[q['op']].get('bodyScope') and q['caller'][1] not in w.gone:
				q['before'] = w.member(*q['caller'], by_id[q['op']]['path'], q['params'])[1]
			expected.append((w.decide(q, by_id[q['op']]), q, w))
	out = yield '\n'.join(lines) + '\n'
	names, *got = out.split('\n')[:-1]
	names = names.split(' ')
	assert set(names) == set(data.every) and len(got) == len(expected), (len(got), len(expected))
	wrong, tally = 0, {}
	for line, ((status, roles), q, w) in zip(got, expected):
		tally[status] = tally.get(status, 0) + 1
		mask = sum(1 << i for i, n in enumerate(names) if n in roles)
		if line == '%d %x' % (status, mask):
			continue
		if wrong < 3:
			print('--- seed %d: the gates say %s, the second evaluator %d %s\n%s\n%s' % (
				seed, line, status, sorted(roles), {**q, 'before': None}, json.dumps(w.steps)))
		wrong += 1
	print('%d cases, %d disagree; %s' % (len(got), wrong, ' '.join('%d: %d' % x for x in sorted(tally.items()))))
	# a run that never gets anywhere proves nothing
	assert all(tally.get(s, 0) > cases / 100 for s in DECIDED), tally
	assert not wrong, wrong
