"""Every operation that changes something about identity and access tells it: the type is of the schemas' lists, the event
says who, from where, and what it was about. One walk over all of them, in an organization of its own."""
import json

import pytest

from client import ROOT, ok, unique
from test_invitations import ACCEPT, answer
from test_users import NUMBER, account, fresh, group_role, name, org_role  # noqa: F401 (fresh is a fixture)

FAMILIES = ('orgs', 'projects', 'users', 'teams', 'api_keys', 'service_accounts', 'access_list', 'federation', 'policies')
# Changes nothing.
SILENT = {'validateResourcePolicies'}


def operations():
	for family in FAMILIES:
		for op in json.loads((ROOT / 'api' / (family + '.json')).read_text())['operations']:
			if op['method'] != 'GET':
				yield op['operationId']


class Log:
	"""What the organization and its projects have told since the last look."""

	def __init__(self, api, *paths):
		self.api, self.paths, self.seen, self.told = api, list(paths), set(), {}
		self.new()

	def new(self):
		found = {}
		for path in self.paths:
			r = self.api.get(path + '/events', params={'itemsPerPage': 500, 'includeRaw': 'true'})
			for e in r.json()['results'] if r.status_code == 200 else []:
				if e['id'] not in self.seen:
					found[e['id']] = e
		self.seen |= set(found)
		return list(found.values())


def words(event):
	return json.dumps({k: v for k, v in event.items() if k != 'links'})


@pytest.fixture
def walk(server, fresh):
	log = Log(fresh['owner'], fresh['path'], fresh['group'], '/groups/' + fresh['b'])

	def step(operation, method, path, body=None, about=()):
		server.refill()
		r = fresh['owner'].request(method, path, json=body)
		assert r.status_code < 300, '%s: %d %s' % (operation, r.status_code, r.text)
		events = log.new()
		log.told.setdefault(operation, []).extend(events)
		assert events or operation in SILENT, operation + ' told nothing'
		for e in events:
			assert e['remoteAddress'] == '127.0.0.1' and e['publicKey'] == fresh['principals'][0]['clientId'], e
		document = r.json() if r.content else {}
		for text in [about] if isinstance(about, str) else about:
			text = document[text[1:]] if text.startswith('=') else text
			assert any(text in words(e) for e in events), '%s: nothing of %s in %s' % (operation, text, events)
		return document
	step.log = log
	return step


def people(walk, org):
	path, group = org['path'] + '/users', org['group']
	guest = name('guest')
	roles = {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [{'groupId': org['a'], 'groupRoles': ['GROUP_READ_ONLY']}]}
	u = walk('createOrgUser', 'POST', path, {'username': guest, 'roles': roles}, (guest, 'INVITED_TO_GROUP'))['id']
	walk('addOrgRole', 'POST', '%s/%s:addRole' % (path, u), {'orgRole': 'ORG_READ_ONLY'}, (guest, 'ORG_READ_ONLY'))
	walk('removeOrgRole', 'POST', '%s/%s:removeRole' % (path, u), {'orgRole': 'ORG_READ_ONLY'}, (guest, 'ORG_MEMBER'))
	walk('updateOrgUserRoles', 'PUT', '%s/%s/roles' % (path, u), {'orgRoles': ['ORG_BILLING_ADMIN']}, 'ORG_BILLING_ADMIN')
	walk('removeOrgUser', 'DELETE', '%s/%s' % (path, u), None, (guest, 'ORG_INVITATION_DELETED', 'GROUP_INVITATION_DELETED'))
	ada = name('ada')
	v = walk('createUser', 'POST', '/users', {
		'username': ada, 'password': 'correct horse', 'firstName': 'A', 'lastName': 'B', 'country': 'GB', 'mobileNumber': NUMBER,
		'roles': [org_role(org), group_role(org)]}, ('INVITED_TO_ORG', 'INVITED_TO_GROUP', ada))['id']
	ok(answer(org['owner'].server, ada, body={'password': 'correct horse'}))
	assert {e['eventTypeName'] for e in walk.log.new()} == {'JOINED_ORG', 'JOINED_GROUP'}
	walk('removeGroupUser', 'DELETE', '%s/users/%s' % (group, v), None, ada)
	walk('addGroupUsers', 'POST', group + '/users', {'username': ada, 'roles': ['GROUP_READ_ONLY']}, (ada, 'JOINED_GROUP'))
	walk('addGroupUserRole', 'POST', '%s/users/%s:addRole' % (group, v), {'groupRole': 'GROUP_OWNER'}, (ada, 'GROUP_OWNER'))
	walk('removeGroupUserRole', 'POST', '%s/users/%s:removeRole' % (group, v), {'groupRole': 'GROUP_OWNER'}, ada)
	walk('updateGroupUserRoles', 'PUT', '%s/users/%s/roles' % (group, v), {'groupRoles': ['GROUP_INDEX_MANAGER']}, 'GROUP_INDEX_MANAGER')
	return v, ada


def invitations(walk, org):
	path, group = org['path'] + '/invites', org['group'] + '/invites'
	who, other = name('one'), name('two')
	i = walk('createOrgInvite', 'POST', path, {'username': who, 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': [
		{'groupId': org['a'], 'roles': ['GROUP_READ_ONLY']}]}, (who, 'INVITED_TO_ORG', 'INVITED_TO_GROUP'))['id']
	walk('updateOrgInviteById', 'PATCH', path + '/' + i, {'groupRoleAssignments': []}, (who, 'GROUP_INVITATION_DELETED'))
	walk('updateOrgInvites', 'PATCH', path, {'username': who, 'roles': ['ORG_OWNER']}, (who, 'ORG_OWNER'))
	walk('deleteOrgInvite', 'DELETE', path + '/' + i, None, who)
	i = walk('createGroupInvite', 'POST', group, {'username': other, 'roles': ['GROUP_READ_ONLY']}, other)['id']
	walk('updateInviteById', 'PATCH', group + '/' + i, {'roles': ['GROUP_OWNER']}, other)
	walk('updateGroupInvites', 'PATCH', group, {'username': other, 'roles': ['GROUP_READ_ONLY']}, other)
	walk('deleteGroupInvite', 'DELETE', group + '/' + i, None, other)
	walk('addGroupUser', 'POST', org['group'] + '/access', {'username': other, 'roles': ['GROUP_READ_ONLY']}, other)


def teams(walk, org, user, username):
	path, group = org['path'] + '/teams', org['group'] + '/teams'
	t = walk('createOrgTeam', 'POST', path, {'name': unique('t'), 'usernames': [username]}, ('=id', 'JOINED_TEAM', username))['id']
	walk('renameOrgTeam', 'PATCH', path + '/' + t, {'name': unique('t')}, t)
	walk('updateOrgUser', 'PATCH', '%s/users/%s' % (org['path'], user), {'teamIds': []}, ('REMOVED_FROM_TEAM', t, username))
	walk('addOrgTeamUser', 'POST', '%s/%s:addUser' % (path, t), {'id': user}, (username, t))
	walk('removeOrgTeamUser', 'POST', '%s/%s:removeUser' % (path, t), {'id': user}, (username, t))
	walk('addTeamUsers', 'POST', '%s/%s/users' % (path, t), [{'id': user}], (username, t))
	walk('removeUserFromTeam', 'DELETE', '%s/%s/users/%s' % (path, t, user), None, (username, t))
	walk('addGroupTeams', 'POST', group, [{'teamId': t, 'roleNames': ['GROUP_OWNER']}], ('TEAM_ADDED_TO_GROUP', t, 'GROUP_OWNER'))
	walk('addGroupTeams', 'POST', group, [{'teamId': t, 'roleNames': ['GROUP_READ_ONLY']}], ('TEAM_ROLES_MODIFIED', t))
	walk('updateGroupTeam', 'PATCH', group + '/' + t, {'teamId': t, 'roleNames': ['GROUP_OWNER']}, (t, 'GROUP_OWNER'))
	walk('removeGroupTeam', 'DELETE', group + '/' + t, None, t)
	walk('deleteOrgTeam', 'DELETE', path + '/' + t, None, t)


def keys(walk, org):
	path, group = org['path'] + '/apiKeys', org['group'] + '/apiKeys'
	k = walk('createOrgApiKey', 'POST', path, {'desc': 'd', 'roles': ['ORG_MEMBER']}, ('=publicKey', 'ORG_MEMBER'))
	one, public = k['id'], k['publicKey']
	walk('updateOrgApiKey', 'PATCH', path + '/' + one, {'roles': ['ORG_READ_ONLY']}, (public, 'ORG_READ_ONLY'))
	walk('createOrgAccessEntry', 'POST', '%s/%s/accessList' % (path, one), [{'ipAddress': '10.7.7.7'}], (public, '10.7.7.7'))
	walk('deleteAccessEntry', 'DELETE', '%s/%s/accessList/10.7.7.7' % (path, one), None, (public, '10.7.7.7'))
	walk('addGroupApiKey', 'POST', group + '/' + one, [{'roles': ['GROUP_READ_ONLY']}], (public, 'GROUP_READ_ONLY'))
	walk('updateApiKeyRoles', 'PATCH', group + '/' + one, {'roles': ['GROUP_OWNER']}, (public, 'GROUP_OWNER'))
	walk('removeGroupApiKey', 'DELETE', group + '/' + one, None, public)
	walk('deleteOrgApiKey', 'DELETE', path + '/' + one, None, public)
	walk('createGroupApiKey', 'POST', group, {'desc': 'd', 'roles': ['GROUP_READ_ONLY']}, ('=publicKey', 'GROUP_READ_ONLY'))


def accounts(walk, org):
	new = {'name': 'n', 'description': 'd', 'secretExpiresAfterHours': 8}
	one = walk('createOrgServiceAccount', 'POST', org['path'] + '/serviceAccounts', {**new, 'roles': ['ORG_MEMBER']},
		   ('=clientId', 'ORG_MEMBER'))['clientId']
	for operation, path in (('Org', '%s/serviceAccounts/%s' % (org['path'], one)),
				('Group', '%s/serviceAccounts/%s' % (org['group'], one))):
		in_group = operation == 'Group'
		if in_group:
			walk('inviteGroupServiceAccount', 'POST', path + ':invite', {'roles': ['GROUP_READ_ONLY']}, (one, 'GROUP_READ_ONLY'))
		roles = ['GROUP_OWNER' if in_group else 'ORG_READ_ONLY']
		walk('update%sServiceAccount' % operation, 'PATCH', path, {'roles': roles}, (one, roles[0]))
		s = walk('create%sSecret' % operation, 'POST', path + '/secrets', {'secretExpiresAfterHours': 8}, (one, '=id'))['id']
		walk('delete%sSecret' % operation, 'DELETE', '%s/secrets/%s' % (path, s), None, (one, s))
		walk('createAccessList' if in_group else 'createOrgAccessList', 'POST', path + '/accessList',
		     [{'ipAddress': '10.7.7.8'}, {'cidrBlock': '10.8.0.0/16'}], (one, '10.7.7.8', '10.8.0.0/16'))
		for entry in ('10.7.7.8', '10.8.0.0%252F16'):
			walk('delete%sAccessEntry' % operation, 'DELETE', '%s/accessList/%s' % (path, entry), None, (one, entry[:6]))
	walk('deleteGroupServiceAccount', 'DELETE', path, None, one)
	walk('deleteOrgServiceAccount', 'DELETE', '%s/serviceAccounts/%s' % (org['path'], one), None, one)
	walk('createGroupServiceAccount', 'POST', org['group'] + '/serviceAccounts', {**new, 'roles': ['GROUP_READ_ONLY']}, '=clientId')


def policies(walk, org):
	path = org['path'] + '/resourcePolicies'
	body = {'name': unique('p'), 'policies': [{'body': 'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", '
							   'resource) when { context.cluster.nodeCount > 50 };'}]}
	walk('validateResourcePolicies', 'POST', path + ':validate', body)
	p = walk('createOrgResourcePolicy', 'POST', path, body, '=id')['id']
	walk('updateOrgResourcePolicy', 'PATCH', path + '/' + p, {'description': 'x'}, p)
	walk('deleteOrgResourcePolicy', 'DELETE', path + '/' + p, None, p)


def federation(walk, org):
	settings = ok(org['owner'].get(org['path'] + '/federationSettings'))['id']
	path = '/federationSettings/' + settings
	config = '%s/connectedOrgConfigs/%s' % (path, org['id'])
	walk('updateConnectedOrgConfig', 'PATCH', config, {'domainRestrictionEnabled': True, 'domainAllowList': ['example.com']}, settings)
	m = walk('createRoleMapping', 'POST', config + '/roleMappings', {
		'externalGroupName': 'staff', 'roleAssignments': [{'orgId': org['id'], 'role': 'ORG_MEMBER'}]}, 'staff')['id']
	walk('updateRoleMapping', 'PUT', config + '/roleMappings/' + m, {'externalGroupName': 'crew', 'roleAssignments': []}, 'crew')
	walk('deleteRoleMapping', 'DELETE', config + '/roleMappings/' + m, None, 'crew')
	i = walk('createIdentityProvider', 'POST', path + '/identityProviders', {
		'displayName': unique('idp'), 'description': 'd', 'issuerUri': 'https://127.0.0.1:1/x', 'protocol': 'OIDC',
		'idpType': 'WORKFORCE', 'clientId': 'c', 'audience': 'a', 'authorizationType': 'GROUP', 'groupsClaim': 'g',
		'userClaim': 'u'}, ('=id', '=displayName'))['id']
	provider = '%s/identityProviders/%s' % (path, i)
	walk('updateIdentityProvider', 'PATCH', provider, {'description': 'other'}, i)
	walk('revokeIdentityProviderJwks', 'DELETE', provider + '/jwks', None, i)
	walk('deleteIdentityProvider', 'DELETE', provider, None, i)
	second = ok(org['owner'].post('/orgs', json={'name': unique('o'), 'federationSettingsId': settings}), 201)['organization']['id']
	walk.log.paths.append('/orgs/' + second)
	walk.log.new()
	walk('removeConnectedOrgConfig', 'DELETE', '%s/connectedOrgConfigs/%s' % (path, second), None, settings)
	walk('deleteFederationSetting', 'DELETE', path, None, settings)
	return second


def projects(walk, org, user, username, second):
	group = org['group']
	walk('createAccessListEntry', 'POST', group + '/accessList', [{'ipAddress': '10.7.7.9'}], '10.7.7.9')
	walk('deleteAccessListEntry', 'DELETE', group + '/accessList/10.7.7.9', None, '10.7.7.9')
	walk('updateGroup', 'PATCH', group, {'name': unique('renamed')}, 'GROUP_NAME_CHANGED')
	walk('updateGroup', 'PATCH', group, {'tags': [{'key': 'k', 'value': 'v'}]}, 'GROUP_TAGS_MODIFIED')
	limit = 'svc.project.deployment.clusters'
	walk('setGroupLimit', 'PATCH', '%s/limits/%s' % (group, limit), {'value': 30}, limit)
	walk('deleteGroupLimit', 'DELETE', '%s/limits/%s' % (group, limit), None, limit)
	walk('updateGroupSettings', 'PATCH', group + '/settings', {'isDataExplorerEnabled': False}, 'DATA_EXPLORER_DISABLED')
	made = ok(org['owner'].post('/groups?projectOwnerId=' + user, json={'name': unique('p'), 'orgId': org['id']}))['id']
	walk.log.paths.append('/groups/' + made)
	told = walk.log.told['createGroup'] = walk.log.new()
	assert sorted(e['eventTypeName'] for e in told) == ['GROUP_CREATED', 'JOINED_GROUP'] and username in words(told[0]) + words(told[1])
	walk('migrateGroup', 'POST', '/groups/%s:migrate' % made, {'destinationOrgId': second}, ('GROUP_MOVED_FROM_ORG', 'GROUP_MOVED', second))
	walk('deleteGroup', 'DELETE', '/groups/' + org['b'], None, 'GROUP_DELETED')


def organizations(walk, org, user, username):
	walk('updateOrg', 'PATCH', org['path'], {'name': unique('o')}, 'ORG_RENAMED')
	walk('updateOrgSettings', 'PATCH', org['path'] + '/settings', {'genAIFeaturesEnabled': False}, 'ORG_SETTINGS_UPDATED')
	made = ok(org['owner'].post('/orgs', json={
		'name': unique('o'), 'orgOwnerId': user, 'apiKey': {'desc': 'd', 'roles': ['ORG_OWNER']},
		'serviceAccount': {'name': 'n', 'description': 'd', 'roles': ['ORG_MEMBER'], 'secretExpiresAfterHours': 8}}), 201)
	path = '/orgs/' + made['organization']['id']
	walk.log.paths.append(path)
	told = {e['eventTypeName']: words(e) for e in walk.log.new()}
	walk.log.told['createOrg'] = told
	assert sorted(told) == ['API_KEY_CREATED', 'INVITED_TO_ORG', 'ORG_CREATED', 'SERVICE_ACCOUNT_CREATED']
	assert username in told['INVITED_TO_ORG'] and made['apiKey']['publicKey'] in told['API_KEY_CREATED']
	assert made['serviceAccount']['clientId'] in told['SERVICE_ACCOUNT_CREATED']
	return made['organization']['id']


def test_every_operation_tells(server, fresh, walk):
	user, username = people(walk, fresh)
	invitations(walk, fresh)
	teams(walk, fresh, user, username)
	keys(walk, fresh)
	accounts(walk, fresh)
	policies(walk, fresh)
	second = federation(walk, fresh)
	projects(walk, fresh, user, username, second)
	gone = organizations(walk, fresh, user, username)
	# Its own list goes with an organization; the log keeps what happened.
	ok(fresh['owner'].delete('/orgs/' + gone), 204)
	kept = server.rows("SELECT type FROM event WHERE org_id = '%s'" % gone)
	assert ('ORG_DELETED',) in kept
	assert set(operations()) - set(walk.log.told) == {'deleteOrg'}


def test_a_project_learns_who_came_through_the_organization(server, fresh):
	"""Roles in a project that an owner of the organization gives are in the project's own list."""
	user = account(fresh['owner'], org_role(fresh))
	path = '%s/users/%s' % (fresh['path'], user['id'])
	log = Log(fresh['owner'], fresh['group'])

	def told(roles, **more):
		groups = [{'groupId': fresh['a'], 'groupRoles': roles}] if roles else []
		ok(fresh['owner'].patch(path, json={'roles': {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': groups}}))
		return [(e['eventTypeName'], e['targetUsername']) for e in log.new()]
	assert told(['GROUP_OWNER']) == [('JOINED_GROUP', user['username'])]
	assert told(['GROUP_READ_ONLY']) == [('USER_ROLES_CHANGED_AUDIT', user['username'])]
	assert told(['GROUP_READ_ONLY']) == []
	assert told([]) == [('REMOVED_FROM_GROUP', user['username'])]
	told(['GROUP_OWNER'])
	ok(fresh['owner'].delete(path), 204)
	assert [e['eventTypeName'] for e in log.new()] == ['REMOVED_FROM_GROUP']


def test_accepting_tells_the_teams(server, fresh):
	team = ok(fresh['owner'].post(fresh['path'] + '/teams', json={'name': unique('t'), 'usernames': []}))['id']
	guest = name('guest')
	ok(fresh['owner'].post(fresh['path'] + '/invites', json={'username': guest, 'roles': ['ORG_MEMBER'], 'teamIds': [team]}))
	log = Log(fresh['owner'], fresh['path'])
	ok(answer(server, guest, body=ACCEPT))
	told = {e['eventTypeName']: e for e in log.new()}
	assert set(told) == {'JOINED_ORG', 'JOINED_TEAM'}
	assert told['JOINED_TEAM']['username'] == told['JOINED_TEAM']['targetUsername'] == guest and team in words(told['JOINED_TEAM'])


def test_a_long_name_is_told_whole(server, fresh):
	guest = unique('a' * 40) + '@' + 'b' * 40 + '.example'
	ok(fresh['owner'].post(fresh['path'] + '/invites', json={'username': guest, 'roles': ['ORG_MEMBER']}))
	ok(answer(server, guest, body=ACCEPT))
	joined = ok(fresh['owner'].get(fresh['path'] + '/events?eventType=JOINED_ORG'))['results'][0]
	assert joined['username'] == joined['targetUsername'] == guest
