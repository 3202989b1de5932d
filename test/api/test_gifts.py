"""Who gives which roles to whom, by every operation that gives any.

Which operations these are, and where in the body the roles stand, is said by their rows ("gives"); which roles give, by
api/roles.json. The expected decision is computed here from both. A row with roles in its body that says nothing about gifts
fails, and so does one that gives and has no way here."""
import itertools, json, re

import pytest

import client
from client import BASE, ROOT, Api as Caller, Wire, cli, ok, refused, unique
from derive import Api
from test_matrix import ORG, PROJECT, closed, inherited
from test_users import name

api = Api()
OWNERS = {r for r in {**ORG, **PROJECT} if {**ORG, **PROJECT}[r].get('gives') == 'any'}
MANAGERS = {r for r in {**ORG, **PROJECT} if {**ORG, **PROJECT}[r].get('gives') == 'toOthers'}

# Fields called roles that give nobody anything in organizations and projects.
NO_GIFTS = {
	'createCustomDbRole': 'roles of databases', 'updateCustomDbRole': 'roles of databases',
	'createDatabaseUser': 'roles of databases', 'updateDatabaseUser': 'roles of databases',
	'createAlertConfig': 'who is told', 'updateAlertConfig': 'who is told',
	'removeGroupUserRole': 'takes', 'removeOrgRole': 'takes',
	**dict.fromkeys(['updateEncryptionAtRest', 'createGroupLogIntegration', 'updateGroupLogIntegration', 'updateLogExport',
			 'createLogExport', 'createDataFederation', 'updateDataFederation', 'createStreamConnection',
			 'updateStreamConnection', 'createFailoverConnection', 'updateStreamFailoverConnection'],
			'roles of a cloud provider or of databases'),
}


def role_fields(schema, seen=(), path=''):
	"""Paths of what a caller may send under a name that has to do with roles."""
	if '$ref' in schema:
		if schema['$ref'] in seen:
			return
		yield from role_fields(api.schemas[schema['$ref']], seen + (schema['$ref'],), path)
	for field, inner in schema.get('properties', {}).items():
		if inner.get('readOnly'):
			continue
		if re.search('role', field, re.I):
			yield path + field
		yield from role_fields(inner, seen, path + field + '.')
	for part in itertools.chain(*(schema.get(k, []) for k in ('allOf', 'oneOf', 'anyOf'))):
		yield from role_fields(part, seen, path)
	if 'items' in schema:
		yield from role_fields(schema['items'], seen, path + '[].')


def test_every_operation_with_roles_says_whether_it_gives_them():
	silent = [op['operationId'] for op in api.ops if op['method'] != 'GET' and op.get('request')
		  and list(role_fields(op['request'])) and 'gives' not in op and op['operationId'] not in NO_GIFTS]
	assert silent == []
	assert not [i for i in NO_GIFTS if 'gives' in api.by_id[i]]
	for op in api.ops:
		for path in op.get('gives', {}).get('roles', []):
			plain = lambda text: re.sub(r'[][.]+', '.', text).strip('.')
			assert plain(path) in [plain(f) for f in role_fields(op['request'])], (op['operationId'], path)


def permitted(held, given, to_self):
	"""By somebody whose roles in the scope are these, all that they include and what they inherit too."""
	if held & OWNERS:
		return True
	if given in OWNERS:
		return False
	return given in held or bool(held & MANAGERS and not to_self)


def test_the_rule():
	assert OWNERS == {'ORG_OWNER', 'GROUP_OWNER'} and MANAGERS == {'GROUP_ACCESS_MANAGER'}
	manager = closed({'GROUP_ACCESS_MANAGER'})
	assert permitted(manager, 'GROUP_CLUSTER_MANAGER', False) and not permitted(manager, 'GROUP_CLUSTER_MANAGER', True)
	assert not permitted(manager, 'GROUP_OWNER', False) and permitted(manager, 'GROUP_READ_ONLY', True)
	assert not permitted(closed({'GROUP_CLUSTER_MANAGER'}), 'GROUP_BACKUP_MANAGER', False)


class World:
	"""An organization with somebody for each role, and others for them to give roles to."""

	def __init__(self, server):
		self.server = server
		cli('limits', 'set', '--data', server.data_dir, '--all', '--capacity', 100000000, '--refill', 100000000)
		roles = [*ORG, *PROJECT]
		people = [{'type': 'user', 'username': name('other'), 'firstName': 'O', 'lastName': 'T', 'roles': ['ORG_MEMBER'],
			   'projectRoles': [{'project': 'p', 'roles': ['GROUP_READ_ONLY']}]} for _ in range(1)] + [
			  {'type': 'user', 'username': name('boss'), 'roles': ['ORG_OWNER']}]  # so that no other is the last
		self.org, = server.seed({'name': unique('gifts'), 'projects': ['p'], 'principals': people + [
			{'type': 'serviceAccount', 'roles': [r]} if r in ORG else {'type': 'serviceAccount', 'projectRoles': [
				{'project': 'p', 'roles': [r]}]} for r in roles]})
		self.user, _, *callers = self.org['principals']
		self.tokens = dict(zip(roles, (p['accessToken'] for p in callers)))
		self.owner = server.api_for(callers[roles.index('ORG_OWNER')])
		self.ids = {'orgId': self.org['id'], 'groupId': self.org['projects'][0]['id'], 'userId': self.user['id'],
			    'federationSettingsId': self.org['federationSettingsId']}
		owner, ids = self.owner, self.ids
		org, group = '/orgs/' + ids['orgId'], '/groups/' + ids['groupId']
		ids['teamId'] = ok(owner.post(org + '/teams', json={'name': unique('t'), 'usernames': []}))['id']
		ok(owner.post(group + '/teams', json=[{'teamId': ids['teamId'], 'roleNames': ['GROUP_READ_ONLY']}]))
		ids['apiUserId'] = ok(owner.post(org + '/apiKeys', json={'desc': 'k', 'roles': ['ORG_MEMBER']}))['id']
		ok(owner.post('%s/apiKeys/%s' % (group, ids['apiUserId']), json=[{'roles': ['GROUP_READ_ONLY']}]), 204)
		account = {'name': 'a', 'description': 'a', 'secretExpiresAfterHours': 8, 'roles': ['ORG_MEMBER']}
		ids['clientId'] = ok(owner.post(org + '/serviceAccounts', json=account), 201)['clientId']
		ok(owner.post('%s/serviceAccounts/%s:invite' % (group, ids['clientId']), json={'roles': ['GROUP_READ_ONLY']}))
		self.guest = name('guest')
		mapping = ok(owner.post('/federationSettings/%s/connectedOrgConfigs/%s/roleMappings' % (
			ids['federationSettingsId'], ids['orgId']), json={'externalGroupName': 'g', 'roleAssignments': []}))
		ids['id'] = mapping['id']
		self.org_guest = name('guest')
		ids['orgInvitation'] = ok(owner.post(org + '/invites', json={'username': self.org_guest, 'roles': ['ORG_MEMBER']}))['id']
		ids['groupInvitation'] = ok(owner.post(group + '/invites', json={'username': self.guest, 'roles': ['GROUP_READ_ONLY']}))['id']

		self.wires = {role: Wire(server, token) for role, token in self.tokens.items()}

	def undo(self, op, made):
		"""The receiver as it was: what somebody has already is no gift."""
		org, group, ids = '/orgs/' + self.ids['orgId'], '/groups/' + self.ids['groupId'], self.ids
		reader, member = {'roles': ['GROUP_READ_ONLY']}, {'roles': ['ORG_MEMBER']}
		if op['operationId'] == 'createRoleMapping':
			ok(self.owner.delete(place(self, op) + '/' + made.json()['id']), 204)
		elif 'nvite' in op['operationId'] and op['method'] == 'PATCH':
			ok(self.owner.patch(org + '/invites', json={'username': self.org_guest, **member, 'groupRoleAssignments': []}))
			ok(self.owner.patch(group + '/invites', json={'username': self.guest, **reader}))
		elif op['gives']['to'] == 'user' and '{userId}' in op['path']:
			ok(self.owner.patch('%s/users/%s' % (org, ids['userId']), json={'roles': {
				'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [{'groupId': ids['groupId'], 'groupRoles': ['GROUP_READ_ONLY']}]}}))
		elif op['gives']['to'] == 'team':
			ok(self.owner.patch('%s/teams/%s' % (group, ids['teamId']), json={'teamId': ids['teamId'], 'roleNames': ['GROUP_READ_ONLY']}))
		elif op['gives']['to'] == 'key':
			ok(self.owner.patch('%s/apiKeys/%s' % (group, ids['apiUserId']), json=reader))
			ok(self.owner.patch('%s/apiKeys/%s' % (org, ids['apiUserId']), json=member))
		elif op['gives']['to'] == 'account':
			ok(self.owner.patch('%s/serviceAccounts/%s' % (group, ids['clientId']), json=reader))
			ok(self.owner.patch('%s/serviceAccounts/%s' % (org, ids['clientId']), json=member))


@pytest.fixture(scope='module')
def world():
	from conftest import end
	server = client.Server('--log-level', 'warn')
	w = World(server)
	# Overrides are in force within a second.
	client.until(lambda: w.owner.get('/orgs/' + w.ids['orgId']).headers['ratelimit-limit'] == '100000000')
	yield w
	end(server)


SECRET = {'name': 'x', 'description': 'x', 'secretExpiresAfterHours': 8}
# What a body has beside the roles; in_org: the path of roles that are about the organization.
WAYS = {
	'addGroupTeams': lambda w, r: [{'teamId': w.ids['teamId'], 'roleNames': [r]}],
	'updateGroupTeam': lambda w, r: {'teamId': w.ids['teamId'], 'roleNames': [r]},
	'addGroupUser': lambda w, r: {'username': name(), 'roles': [r]},
	'addGroupUsers': lambda w, r: {'username': name(), 'roles': [r]},
	'createGroupInvite': lambda w, r: {'username': name(), 'roles': [r]},
	'updateGroupInvites': lambda w, r: {'username': w.guest, 'roles': [r]},
	'updateInviteById': lambda w, r: {'roles': [r]},
	'createGroupServiceAccount': lambda w, r: {**SECRET, 'roles': [r]},
	'updateGroupServiceAccount': lambda w, r: {'roles': [r]},
	'inviteGroupServiceAccount': lambda w, r: {'roles': [r]},
	'addGroupUserRole': lambda w, r: {'groupRole': r},
	'updateGroupUserRoles': lambda w, r: {'groupRoles': [r]},
	'createGroupApiKey': lambda w, r: {'desc': 'x', 'roles': [r]},
	'updateApiKeyRoles': lambda w, r: {'roles': [r]},
	'addGroupApiKey': lambda w, r: [{'roles': [r]}],
	'createOrgServiceAccount': lambda w, r: {**SECRET, 'roles': [r]},
	'updateOrgServiceAccount': lambda w, r: {'roles': [r]},
	'createOrgApiKey': lambda w, r: {'desc': 'x', 'roles': [r]},
	'updateOrgApiKey': lambda w, r: {'roles': [r]},
	'addOrgRole': lambda w, r: {'orgRole': r},
	'updateOrgUserRoles': lambda w, r: {'orgRoles': [r]},
	'createOrgUser': lambda w, r: {'username': name(), 'roles': in_org(r) if r in ORG else {
		'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [{'groupId': w.ids['groupId'], 'groupRoles': [r]}]}},
	'updateOrgUser': lambda w, r: {'roles': in_org(r) if r in ORG else {
		'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [{'groupId': w.ids['groupId'], 'groupRoles': [r]}]}},
	'createOrgInvite': lambda w, r: {'username': name(), **invited(w, r)},
	'updateOrgInvites': lambda w, r: {'username': w.org_guest, **invited(w, r)},
	'updateOrgInviteById': lambda w, r: invited(w, r),
	'updateConnectedOrgConfig': lambda w, r: {'domainRestrictionEnabled': False, **({'postAuthRoleGrants': [r]} if r in ORG else {
		'roleMappings': [{'externalGroupName': 'g', 'roleAssignments': mapped(w, r)}]})},
	'createRoleMapping': lambda w, r: {'externalGroupName': unique('g'), 'roleAssignments': mapped(w, r)},
	'updateRoleMapping': lambda w, r: {'externalGroupName': 'g', 'roleAssignments': mapped(w, r)},
	'createUser': lambda w, r: {'username': name(), 'password': 'correct horse', 'firstName': 'A', 'lastName': 'B', 'country': 'GB',
				    'mobileNumber': api.minimal(api.schemas['CloudAppUser']['properties']['mobileNumber']),
				    'roles': [{'orgId' if r in ORG else 'groupId': w.ids['orgId' if r in ORG else 'groupId'], 'roleName': r}]},
}
NEW = {'createOrg': 'the maker owns it', 'createGroup': 'the maker owns it'}


def in_org(role):
	return {'orgRoles': [role]}


def invited(w, role):
	if role in ORG:
		return {'roles': [role]}
	return {'roles': ['ORG_MEMBER'], 'groupRoleAssignments': [{'groupId': w.ids['groupId'], 'roles': [role]}]}


def mapped(w, role):
	return [{'orgId' if role in ORG else 'groupId': w.ids['orgId' if role in ORG else 'groupId'], 'role': role}]


def test_every_gift_has_a_way_here():
	assert {op['operationId'] for op in api.ops if op.get('gives', {}).get('roles')} == set(WAYS) | {'createOrg'}
	assert {op['operationId'] for op in api.ops if op.get('gives', {}).get('to') == 'newScope'} == set(NEW)


def place(w, op):
	ids = dict(w.ids)
	ids['invitationId'] = ids['groupInvitation' if '{groupId}' in op['path'] else 'orgInvitation']
	return api.path(op, **ids)


def kinds_of(op):
	if op['path'].startswith('/groups/'):
		return [PROJECT]
	given = op['gives']['roles']
	return [ORG, PROJECT] if len(given) > 1 or 'ole' in given[0].split('.')[-1] and '[]' in given[0] else [ORG]


def expected(op, giver, role):
	"""Whether it comes to the gift and the gift is allowed."""
	org = closed({giver}) if giver in ORG else set()
	project = inherited(org) | (closed({giver}) if giver in PROJECT else set())
	scope = org if role in ORG else project
	if op['operationId'] == 'createUser':
		return bool(scope & OWNERS)
	held = org | project if '{groupId}' in op['path'] else org
	shown = op['gives']['to'] in ('newCredential', 'mapping')
	return bool(held & set(op['roles'])) and permitted(scope, role, shown)


@pytest.mark.parametrize('way', sorted(WAYS))
def test_every_role_gives_every_role(world, way):
	op, wrong = api.by_id[way], []
	for role in [r for kind in kinds_of(op) for r in kind]:
		for giver in world.tokens:
			may = expected(op, giver, role)
			if role in ('GROUP_READ_ONLY', 'ORG_MEMBER') and may:
				continue  # the receiver has it already
			a = world.wires[giver].one(op['method'], place(world, op), None, WAYS[way](world, role))
			if (a.status < 300) != may or not may and a.status not in (401, 403):
				wrong.append('%s gives %s: expected %s, got %d %s' % (giver, role, may, a.status, a.body[:200]))
			if a.status < 300:
				world.undo(op, a)
	assert not wrong, '\n'.join(wrong[:20])


# Oneself.

def manager_of(world, kind='serviceAccount', roles=('GROUP_ACCESS_MANAGER',), **more):
	"""A manager of access to a project of a new organization."""
	org, = world.server.seed({'name': unique('self'), 'projects': ['p', 'q'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': kind, **({'username': name('manager')} if kind == 'user' else {}), 'roles': ['ORG_MEMBER'], 'projectRoles': [
			{'project': 'p', 'roles': list(roles)}], **more}]})
	org['owner'], org['manager'] = [world.server.api_for(p) for p in org['principals']]
	org['me'] = org['principals'][1]
	org['group'] = '/groups/' + org['projects'][0]['id']
	return org


def key_api(world, key):
	return Caller(world.server, client.requests.auth.HTTPDigestAuth(key['publicKey'], key['privateKey']))


def may_not(answer, role):
	refused(answer, 403, 'CANNOT_GRANT_ROLE', role)


@pytest.mark.parametrize('role', sorted(set(PROJECT) - {'GROUP_READ_ONLY', 'GROUP_ACCESS_MANAGER'}))
def test_managers_never_raise_themselves(world, role):
	"""Their user, their key, their team, a key that they are shown, and one that they made before."""
	mine = manager_of(world, 'user')
	me, path = mine['me'], mine['group']
	may_not(mine['manager'].post('%s/users/%s:addRole' % (path, me['id']), json={'groupRole': role}), role)
	ok(mine['owner'].delete('%s/users/%s' % (path, me['id'])), 204)
	team = ok(mine['owner'].post('/orgs/%s/teams' % mine['id'], json={'name': 't', 'usernames': [me['username']]}))['id']
	ok(mine['owner'].post(path + '/teams', json=[{'teamId': team, 'roleNames': ['GROUP_ACCESS_MANAGER']}]))
	may_not(mine['manager'].post(path + '/users', json={'username': me['username'], 'roles': [role]}), role)
	more = {'teamId': team, 'roleNames': ['GROUP_ACCESS_MANAGER', role]}
	may_not(mine['manager'].patch('%s/teams/%s' % (path, team), json=more), role)
	may_not(mine['manager'].post(path + '/teams', json=[more]), role)
	may_not(mine['manager'].post(path + '/apiKeys', json={'desc': 'x', 'roles': [role]}), role)
	made = ok(mine['manager'].post(path + '/apiKeys', json={'desc': 'x', 'roles': ['GROUP_ACCESS_MANAGER']}))
	other = ok(mine['manager'].post(path + '/apiKeys', json={'desc': 'x', 'roles': ['GROUP_READ_ONLY']}))
	may_not(mine['manager'].patch('%s/apiKeys/%s' % (path, other['id']), json={'roles': [role]}), role)
	with_key = key_api(world, made)
	for key in (made, other):  # itself, and another of the same maker
		may_not(with_key.patch('%s/apiKeys/%s' % (path, key['id']), json={'roles': [role]}), role)
	may_not(with_key.post(path + '/users', json={'username': me['username'], 'roles': [role]}), role)
	may_not(with_key.patch('%s/teams/%s' % (path, team), json=more), role)
	# An owner may; and to others the manager may, but for owners' roles.
	ok(mine['owner'].patch('%s/apiKeys/%s' % (path, other['id']), json={'roles': [role]}))
	answer = mine['manager'].post(path + '/users', json={'username': name(), 'roles': [role]})
	may_not(answer, role) if role in OWNERS else ok(answer, 201)


def test_keys_that_an_owner_made_are_two(world):
	"""One for the manager, one for somebody else: also when the key that made them is gone."""
	org = manager_of(world, 'apiKey', roles=['GROUP_OWNER'])
	path = org['group']
	manager, other = [ok(org['manager'].post(path + '/apiKeys', json={'desc': 'x', 'roles': [r]}))
			  for r in ('GROUP_ACCESS_MANAGER', 'GROUP_READ_ONLY')]
	change = lambda r: key_api(world, manager).patch('%s/apiKeys/%s' % (path, other['id']), json={'roles': [r]})
	ok(change('GROUP_CLUSTER_MANAGER'))
	ok(org['owner'].delete('/orgs/%s/apiKeys/%s' % (org['id'], org['me']['id'])), 204)
	ok(change('GROUP_BACKUP_MANAGER'))
	may_not(change('GROUP_OWNER'), 'GROUP_OWNER')


def test_a_deleted_key_leaves_its_makers_one(world):
	"""A key that a manager's key made is the manager's, also when the one between them is gone."""
	org = manager_of(world, 'apiKey')
	path, role = org['group'], 'GROUP_DATABASE_ACCESS_ADMIN'
	make = lambda by: ok(by.post(path + '/apiKeys', json={'desc': 'x', 'roles': ['GROUP_ACCESS_MANAGER']}))
	between = make(org['manager'])
	last = make(key_api(world, between))
	ok(org['owner'].delete('/orgs/%s/apiKeys/%s' % (org['id'], between['id'])), 204)
	for by, to in ((org['manager'], last['id']), (key_api(world, last), org['me']['id'])):
		may_not(by.patch('%s/apiKeys/%s' % (path, to), json={'roles': ['GROUP_ACCESS_MANAGER', role]}), role)


def test_an_owner_elsewhere_is_a_manager_here(world):
	"""Who made a key as the owner of one project does not raise it in another, where it only manages access."""
	org = manager_of(world, 'apiKey')
	p, q = ['/groups/' + x['id'] for x in org['projects']]
	ok(org['owner'].post('%s/apiKeys/%s' % (q, org['me']['id']), json=[{'roles': ['GROUP_OWNER']}]), 204)
	made = ok(org['manager'].post(q + '/apiKeys', json={'desc': 'x', 'roles': ['GROUP_READ_ONLY']}))
	ok(org['owner'].post('%s/apiKeys/%s' % (p, made['id']), json=[{'roles': ['GROUP_READ_ONLY']}]), 204)
	may_not(org['manager'].patch('%s/apiKeys/%s' % (p, made['id']), json={'roles': ['GROUP_CLUSTER_MANAGER']}), 'GROUP_CLUSTER_MANAGER')
	ok(org['manager'].patch('%s/apiKeys/%s' % (q, made['id']), json={'roles': ['GROUP_CLUSTER_MANAGER']}))


def test_the_way_to_the_databases_is_closed(world):
	"""A manager of access that wanted a database user of its own."""
	org = manager_of(world, 'apiKey')
	path, me = org['group'], org['me']['id']
	may_not(org['manager'].patch('%s/apiKeys/%s' % (path, me), json={
		'roles': ['GROUP_ACCESS_MANAGER', 'GROUP_DATABASE_ACCESS_ADMIN']}), 'GROUP_DATABASE_ACCESS_ADMIN')
	refused(org['manager'].post(path + '/databaseUsers', json={
		'databaseName': 'admin', 'groupId': org['projects'][0]['id'], 'username': 'me', 'password': 'a-long-password-1',
		'roles': [{'databaseName': 'admin', 'roleName': 'svcAdmin'}]}), 403, 'INSUFFICIENT_ROLE')
	held = ok(org['owner'].get('/orgs/%s/apiKeys/%s' % (org['id'], me)))['roles']
	assert {x['roleName'] for x in held} == {'ORG_MEMBER', 'GROUP_ACCESS_MANAGER'}
	# What it has already it may be given again, and less it may have.
	ok(org['manager'].patch('%s/apiKeys/%s' % (path, me), json={'roles': ['GROUP_ACCESS_MANAGER', 'GROUP_READ_ONLY']}))


def test_a_refused_gift_leaves_nothing(world):
	org = manager_of(world)
	before = ok(org['owner'].get(org['group'] + '/apiKeys'))['totalCount']
	may_not(org['manager'].post(org['group'] + '/apiKeys', json={'desc': 'x', 'roles': ['GROUP_BACKUP_MANAGER']}), 'GROUP_BACKUP_MANAGER')
	guest = name('guest')
	may_not(org['manager'].post(org['group'] + '/users', json={'username': guest, 'roles': ['GROUP_OWNER']}), 'GROUP_OWNER')
	assert ok(org['owner'].get(org['group'] + '/apiKeys'))['totalCount'] == before
	assert ok(org['owner'].get('/orgs/%s/invites' % org['id'])) == []
	assert guest not in world.server.stderr
