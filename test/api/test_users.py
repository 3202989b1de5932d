"""Users: accounts, members of organizations and of projects, active and invited."""
import re

import pytest

import client
from client import BASE, ID, NO_ID, bare, cli, links, ok, refused, unique

OLD = {'Accept': 'application/vnd.svc.2023-01-01+json'}
LINK = re.compile(r'https://\S+?(/invitations/([0-9a-f]{24}[\w-]{43}))')
NUMBER = '+1 212 555 1234'


def name(prefix='someone'):
	return '%s@example.com' % unique(prefix)


def made(api, *roles, username=None, **more):
	"""Somebody made by the API, who has not answered yet."""
	body = {'username': username or name(), 'password': 'a stranger chose it', 'firstName': 'Ada', 'lastName': 'Byron',
		'country': 'GB', 'mobileNumber': NUMBER, 'roles': list(roles), **more}
	return ok(api.post('/users', json=body))


TOKENS = {}  # by the invitation's id: another link ends the one before


def token(server, username):
	"""Of the newest invitation of somebody, whose id the log has."""
	lines = [x for x in server.stderr.splitlines() if 'invitation: %s may accept' % username in x]
	id = re.search('invitation-link ([0-9a-f]{24})', lines[-1]).group(1)
	if id not in TOKENS:
		TOKENS[id] = LINK.search(client.cli('invitation-link', '--data', server.data_dir, id).stdout).group(2)
	return TOKENS[id]


def accept(server, user):
	"""By the owner of the address."""
	ok(server.anonymous.post('/api/invitations/' + token(server, user['username']), json={'password': 'correct horse'}))


def account(api, *roles, **more):
	"""A new account, as its document: made by the API, and accepted by its owner."""
	user = made(api, *roles, **more)
	accept(getattr(api, 'server', api), user)
	return ok(api.get('/users/' + user['id']))


@pytest.fixture
def fresh(server):
	"""An organization with two projects, an owner, a member, and somebody who manages access to the first project."""
	org, = server.seed({'name': unique('org'), 'projects': ['a', 'b'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, {'type': 'serviceAccount', 'roles': ['ORG_MEMBER']},
		{'type': 'serviceAccount', 'roles': [], 'projectRoles': [{'project': 'a', 'roles': ['GROUP_ACCESS_MANAGER']}]},
		{'type': 'serviceAccount', 'roles': [], 'projectRoles': [{'project': 'a', 'roles': ['GROUP_OWNER']}]}]})
	org['owner'], org['member'], org['manager'], org['groupOwner'] = [server.api_for(p) for p in org['principals']]
	org['path'] = '/orgs/' + org['id']
	org['a'], org['b'] = [x['id'] for x in org['projects']]
	org['group'] = '/groups/' + org['a']
	return org


def org_role(org, role='ORG_MEMBER'):
	return {'orgId': org['id'], 'roleName': role}


def group_role(org, role='GROUP_READ_ONLY', project='a'):
	return {'groupId': org[project], 'roleName': role}


def invite(org, username=None, roles=('ORG_MEMBER',), groups=(), **more):
	body = {'username': username or name('guest'), 'roles': {'orgRoles': list(roles), 'groupRoleAssignments': [
		{'groupId': g, 'groupRoles': r} for g, r in groups]}, **more}
	return ok(org['owner'].post(org['path'] + '/users', json=body), 201)


def events(org, kind, project=None):
	path = '/groups/%s/events' % project if project else org['path'] + '/events'
	answer = org['owner'].get(path, params={'eventType': kind})
	return ok(answer)['results']


# Accounts.

def test_create(server, fresh):
	username = 'Mixed.Case-' + unique() + '@Example.com'
	doc = account(fresh['owner'], org_role(fresh, 'ORG_OWNER'), group_role(fresh), username=username)
	assert doc['username'] == doc['emailAddress'] == username.lower() and ID.match(doc['id'])
	assert doc['firstName'] == 'Ada' and doc['country'] == 'GB' and doc['mobileNumber'] == NUMBER
	assert doc['roles'] == [org_role(fresh, 'ORG_OWNER'), group_role(fresh)] and doc['teamIds'] == []
	assert set(doc['password']) == {'*'}
	got = ok(fresh['owner'].get('/users/' + doc['id']))
	assert got == doc
	assert links(got)['self'] == server.base_url + BASE + '/users/' + doc['id']
	assert bare(ok(fresh['owner'].get('/users/byName/' + username.lower()))) == bare(doc)
	member = ok(fresh['owner'].get(fresh['path'] + '/users/' + doc['id']))
	assert member['orgMembershipStatus'] == 'ACTIVE' and member['roles']['orgRoles'] == ['ORG_OWNER']
	assert member['roles']['groupRoleAssignments'] == [{'groupId': fresh['a'], 'groupRoles': ['GROUP_READ_ONLY']}]
	assert server.base_url + BASE + '/users/' + doc['id'] in [x['href'] for x in member['links']]
	assert events(fresh, 'JOINED_ORG')[0]['targetUsername'] == username.lower()
	assert events(fresh, 'JOINED_GROUP', fresh['a'])[0]['targetUsername'] == username.lower()


def test_project_role_makes_a_member(fresh):
	doc = account(fresh['groupOwner'], group_role(fresh, 'GROUP_CLUSTER_MANAGER'))
	assert doc['roles'] == [group_role(fresh, 'GROUP_CLUSTER_MANAGER')]  # the caller is not of the organization
	member = ok(fresh['owner'].get(fresh['path'] + '/users/' + doc['id']))
	assert member['roles']['orgRoles'] == ['ORG_MEMBER']


def test_create_refusals(server, fresh):
	owner = fresh['owner']
	good = {'username': name(), 'password': 'correct horse', 'firstName': 'A', 'lastName': 'B', 'country': 'GB',
		'mobileNumber': NUMBER, 'roles': [org_role(fresh)]}
	for field in good:
		refused(owner.post('/users', json={k: v for k, v in good.items() if k != field}), 400, None, field)
	for field, bad in (('password', 'short'), ('country', 'gb'), ('mobileNumber', '1234'), ('username', 'nobody'), ('roles', 'x')):
		refused(owner.post('/users', json={**good, field: bad}), 400, None, field)
	for roles in ([], [{'roleName': 'ORG_OWNER'}], [{'orgId': fresh['id'], 'roleName': 'KING'}],
		      [{'orgId': fresh['id'], 'roleName': 'GROUP_OWNER'}], [{'groupId': fresh['a'], 'roleName': 'ORG_OWNER'}],
		      [{'orgId': fresh['id'], 'groupId': fresh['a'], 'roleName': 'ORG_OWNER'}], [{'orgId': fresh['id']}]):
		refused(owner.post('/users', json={**good, 'roles': roles}), 400, None, 'roles')
	refused(owner.post('/users', json={**good, 'id': NO_ID}), 400, None, 'id')
	refused(owner.post('/users', json={**good, 'password': 'x' * 300}), 400, None, 'password')
	for api in (fresh['member'], fresh['groupOwner'], server):
		refused(api.post('/users', json=good), 403)
	for roles in ([{'orgId': NO_ID, 'roleName': 'ORG_MEMBER'}], [{'groupId': NO_ID, 'roleName': 'GROUP_OWNER'}],
		      [org_role(fresh), {'orgId': server.org, 'roleName': 'ORG_MEMBER'}]):
		refused(owner.post('/users', json={**good, 'roles': roles}), 403)
	refused(fresh['groupOwner'].post('/users', json={**good, 'roles': [group_role(fresh, project='b')]}), 403)
	refused(server.anonymous.post('/users', json=good), 401)
	ok(owner.post('/users', json=good))
	refused(owner.post('/users', json={**good, 'username': good['username'].upper()}), 409, 'USER_ALREADY_EXISTS')


def test_who_may_read(server, fresh):
	other, = server.seed({'name': unique('other'), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	stranger = server.api_for(other['principals'][0])
	doc = account(fresh['owner'], org_role(fresh), group_role(fresh, project='b'))
	assert ok(fresh['member'].get('/users/' + doc['id']))['roles'] == doc['roles']
	refused(stranger.get('/users/' + doc['id']), 404)
	refused(stranger.get('/users/byName/' + doc['username']), 404)
	refused(fresh['groupOwner'].get('/users/' + doc['id']), 404)  # shares neither the organization nor the project
	refused(server.anonymous.get('/users/' + doc['id']), 401)
	refused(server.anonymous.get('/users/byName/' + doc['username']), 401)
	refused(fresh['owner'].get('/users/' + NO_ID), 404)
	refused(fresh['owner'].get('/users/byName/' + name()), 404)
	# In two organizations, each sees its own.
	ok(fresh['owner'].patch(fresh['path'] + '/users/' + doc['id'], json={'roles': {'orgRoles': ['ORG_READ_ONLY']}}))
	assert org_role(fresh, 'ORG_READ_ONLY') in ok(fresh['member'].get('/users/' + doc['id']))['roles']


def test_first_owner(server):
	doc = ok(server.get('/users/' + server.bootstrap['userId']))
	assert doc['username'] == server.bootstrap['username'] and {'orgId': server.org, 'roleName': 'ORG_OWNER'} in doc['roles']
	member = ok(server.get('/orgs/%s/users/%s' % (server.org, doc['id'])))
	assert member['orgMembershipStatus'] == 'ACTIVE' and member['firstName'] and 'country' not in member


# Members of an organization.

def test_invite(server, fresh):
	username = name('guest')
	answer = fresh['owner'].post(fresh['path'] + '/users', json={'username': username.upper(), 'roles': {
		'orgRoles': ['ORG_READ_ONLY', 'ORG_GROUP_CREATOR'], 'groupRoleAssignments': [
			{'groupId': fresh['a'], 'groupRoles': ['GROUP_OWNER']}]}})
	doc = ok(answer, 201)
	path = fresh['path'] + '/users/' + doc['id']
	assert answer.headers['Location'] == server.base_url + BASE + path
	assert doc['username'] == username and doc['orgMembershipStatus'] == 'PENDING' and 'firstName' not in doc
	assert set(doc['roles']['orgRoles']) == {'ORG_READ_ONLY', 'ORG_GROUP_CREATOR'}
	assert re.match(r'.+@.+', doc['inviterUsername']) and doc['invitationCreatedAt'] < doc['invitationExpiresAt']
	assert ok(fresh['owner'].get(path)) == doc
	assert bare(ok(fresh['owner'].get(fresh['path'] + '/users', params={'username': username}))['results'][0]) == bare(doc)
	assert events(fresh, 'INVITED_TO_ORG')[0]['targetUsername'] == username
	refused(fresh['owner'].get('/users/' + doc['id']), 404)  # no account yet
	refused(fresh['owner'].post(fresh['path'] + '/users', json={'username': username, 'roles': {'orgRoles': ['ORG_MEMBER']}}), 409,
		'USER_ALREADY_INVITED')
	refused(fresh['member'].post(fresh['path'] + '/users', json={'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}}), 403)


def test_invite_refusals(server, fresh):
	path, owner = fresh['path'] + '/users', fresh['owner']
	good = {'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}}
	refused(owner.post(path, json={'username': name()}), 400, None, 'roles')
	refused(owner.post(path, json={**good, 'username': 'nobody'}), 400, None, 'username')
	refused(owner.post(path, json={**good, 'roles': {'orgRoles': []}}), 400, None, 'roles.orgRoles')
	refused(owner.post(path, json={**good, 'roles': {'orgRoles': ['KING']}}), 400, None, 'roles.orgRoles[0]')
	refused(owner.post(path, json={**good, 'teamIds': [NO_ID]}), 400, None, 'teamIds[0]')
	groups = lambda *g: {**good, 'roles': {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': list(g)}}
	refused(owner.post(path, json=groups({'groupId': server.group, 'groupRoles': ['GROUP_OWNER']})), 400, None,
		'roles.groupRoleAssignments[0].groupId')
	refused(owner.post(path, json=groups({'groupId': fresh['a'], 'groupRoles': ['GROUP_OWNER']}, {'groupId': NO_ID})), 400, None,
		'roles.groupRoleAssignments[1].groupId')
	refused(owner.post(path, json=groups({'groupId': fresh['a'], 'groupRoles': ['ORG_OWNER']})), 400, None,
		'roles.groupRoleAssignments[0].groupRoles[0]')
	refused(owner.post(path, json=groups({'groupId': fresh['a'], 'groupRoles': []})), 400, None,
		'roles.groupRoleAssignments[0].groupRoles')
	member = account(owner, org_role(fresh))
	refused(owner.post(path, json={**good, 'username': member['username']}), 409, 'USER_ALREADY_IN_ORG', member['username'])
	refused(server.post(path, json=good), 401)
	refused(server.post('/orgs/%s/users' % NO_ID, json=good), 404)


def test_list_org(server, fresh):
	path, owner = fresh['path'] + '/users', fresh['owner']
	assert ok(owner.get(path))['totalCount'] == 0
	people = [account(owner, org_role(fresh))['id'] for _ in range(3)] + [invite(fresh)['id'] for _ in range(3)]
	doc = ok(fresh['member'].get(path))
	assert doc['totalCount'] == 6 and [x['id'] for x in doc['results']] == people
	assert [list(links(x)) for x in doc['results']] == [['self']] * 6
	assert links(doc['results'][5])['self'] == server.base_url + BASE + path + '/' + people[5]
	seen = []
	for page in (1, 2, 3, 4):
		part = ok(owner.get(path, params={'itemsPerPage': 2, 'pageNum': page}))
		assert part['totalCount'] == 6 and ('next' in links(part)) == (page < 3)
		seen += [x['id'] for x in part['results']]
	assert seen == people
	for status, expected in (('ACTIVE', people[:3]), ('PENDING', people[3:]), ('INVITATION_EXPIRED', [])):
		doc = ok(owner.get(path, params={'orgMembershipStatus': status}))
		assert [x['id'] for x in doc['results']] == expected and doc['totalCount'] == len(expected)
		assert [x['id'] for x in ok(owner.get(path, params={'orgMembershipStatuses': status}))['results']] == expected
	assert ok(owner.get(path + '?orgMembershipStatuses=ACTIVE&orgMembershipStatuses=PENDING'))['totalCount'] == 6
	part = ok(owner.get(path, params={'orgMembershipStatuses': 'PENDING', 'itemsPerPage': 2, 'pageNum': 2}))
	assert [x['id'] for x in part['results']] == people[5:] and part['totalCount'] == 3
	assert ok(owner.get(path, params={'username': name()}))['results'] == []
	refused(owner.get(path, params={'orgMembershipStatus': 'AWAY'}), 400, None, 'orgMembershipStatus')
	refused(owner.get(path, params={'username': 'nobody'}), 400, None, 'username')
	refused(server.get(path), 401)
	one = path + '/' + people[5]
	ok(owner.get(one, params={'orgMembershipStatuses': 'PENDING'}))
	refused(owner.get(one, params={'orgMembershipStatuses': 'ACTIVE'}), 404)
	refused(owner.get(path + '/' + NO_ID), 404)


def test_expired_invitation(start_server):
	s = start_server()
	path = '/orgs/%s/users' % s.org
	body = {'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}}
	doc = ok(s.post(path, json=body), 201)
	s.advance(30 * 86400 - 2)
	assert ok(s.get(path + '/' + doc['id']))['orgMembershipStatus'] == 'PENDING'
	s.advance(3)
	assert ok(s.get(path + '/' + doc['id']))['orgMembershipStatus'] == 'INVITATION_EXPIRED'
	assert [x['id'] for x in ok(s.get(path, params={'orgMembershipStatus': 'INVITATION_EXPIRED'}))['results']] == [doc['id']]
	assert ok(s.get('/orgs/%s/invites' % s.org)) == []
	again = ok(s.post(path, json=body), 201)
	assert again['id'] == doc['id'] and again['orgMembershipStatus'] == 'PENDING'
	assert ok(s.get(path))['totalCount'] == 2


def test_update_org_user(server, fresh):
	owner = fresh['owner']
	for user in (account(owner, org_role(fresh), group_role(fresh)), invite(fresh, groups=[(fresh['a'], ['GROUP_READ_ONLY'])])):
		path = fresh['path'] + '/users/' + user['id']
		doc = ok(owner.patch(path, json={'roles': {'orgRoles': ['ORG_BILLING_ADMIN']}}))
		assert doc['roles']['orgRoles'] == ['ORG_BILLING_ADMIN']
		assert doc['roles']['groupRoleAssignments'] == [{'groupId': fresh['a'], 'groupRoles': ['GROUP_READ_ONLY']}]
		doc = ok(owner.patch(path, json={'roles': {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [
			{'groupId': fresh['b'], 'groupRoles': ['GROUP_OWNER']}]}}))
		assert doc['roles'] == {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [
			{'groupId': fresh['b'], 'groupRoles': ['GROUP_OWNER']}]}
		assert ok(owner.get(path))['roles'] == doc['roles']
		assert user['id'] not in [x['id'] for x in ok(owner.get(fresh['group'] + '/users'))['results']]
		assert user['id'] in [x['id'] for x in ok(owner.get('/groups/%s/users' % fresh['b']))['results']]
		assert ok(owner.patch(path, json={}))['roles'] == doc['roles']
		refused(owner.patch(path, json={'roles': {'orgRoles': ['KING']}}), 400, None, 'roles.orgRoles[0]')
		refused(owner.patch(path, json={'roles': {}}), 400, None, 'roles.orgRoles')
		refused(owner.patch(path, json={'username': name()}), 400, None, 'username')
		refused(owner.patch(path, json={'teamIds': [NO_ID]}), 400, None, 'teamIds[0]')
		refused(fresh['member'].patch(path, json={}), 403)
	refused(owner.patch(fresh['path'] + '/users/' + NO_ID, json={}), 404)
	assert events(fresh, 'USER_ROLES_CHANGED_AUDIT')


def test_teams_of_a_member(server, fresh):
	owner = fresh['owner']
	user, guest = account(owner, org_role(fresh)), invite(fresh)
	team = ok(owner.post(fresh['path'] + '/teams', json={'name': unique('team'), 'usernames': [user['username']]}))['id']
	ok(owner.post(fresh['group'] + '/teams', json=[{'teamId': team, 'roleNames': ['GROUP_CLUSTER_MANAGER']}]))
	path = fresh['path'] + '/users/'
	assert ok(owner.get(path + user['id']))['teamIds'] == [team]
	assert ok(owner.get('/users/' + user['id']))['teamIds'] == [team]
	assert ok(owner.patch(path + guest['id'], json={'teamIds': [team]}))['teamIds'] == [team]
	users = fresh['group'] + '/users'
	assert ok(owner.get(users))['totalCount'] == 0
	found, = ok(owner.get(users, params={'flattenTeams': 'true'}))['results']
	assert found['id'] == user['id'] and found['roles'] == ['GROUP_CLUSTER_MANAGER']
	assert ok(owner.get(users + '/' + user['id']))['roles'] == ['GROUP_CLUSTER_MANAGER']
	refused(owner.delete(users + '/' + user['id']), 409, 'USER_NOT_IN_GROUP_DIRECTLY')
	ok(owner.post(users + '/%s:addRole' % user['id'], json={'groupRole': 'GROUP_READ_ONLY'}))
	found, = ok(owner.get(users, params={'flattenTeams': 'true'}))['results']
	assert set(found['roles']) == {'GROUP_CLUSTER_MANAGER', 'GROUP_READ_ONLY'}
	assert ok(owner.patch(path + user['id'], json={'teamIds': []}))['teamIds'] == []
	assert ok(owner.get(users, params={'flattenTeams': 'true'}))['results'][0]['roles'] == ['GROUP_READ_ONLY']


def test_org_roles(server, fresh):
	owner = fresh['owner']
	for user in (account(owner, org_role(fresh)), invite(fresh)):
		path = fresh['path'] + '/users/' + user['id']
		doc = ok(owner.post(path + ':addRole', json={'orgRole': 'ORG_READ_ONLY'}))
		assert set(doc['roles']['orgRoles']) == {'ORG_MEMBER', 'ORG_READ_ONLY'}
		refused(owner.post(path + ':addRole', json={'orgRole': 'ORG_READ_ONLY'}), 409, 'ROLE_ALREADY_HELD', 'ORG_READ_ONLY')
		doc = ok(owner.post(path + ':removeRole', json={'orgRole': 'ORG_MEMBER'}))
		assert doc['roles']['orgRoles'] == ['ORG_READ_ONLY']
		refused(owner.post(path + ':removeRole', json={'orgRole': 'ORG_MEMBER'}), 409, 'ROLE_NOT_HELD')
		refused(owner.post(path + ':removeRole', json={'orgRole': 'ORG_READ_ONLY'}), 409, 'LAST_ROLE')
		doc = ok(owner.put(path + '/roles', json={'orgRoles': ['ORG_MEMBER', 'ORG_BILLING_ADMIN']}))
		assert set(doc['orgRoles']) == {'ORG_MEMBER', 'ORG_BILLING_ADMIN'}
		assert set(ok(owner.get(path))['roles']['orgRoles']) == {'ORG_MEMBER', 'ORG_BILLING_ADMIN'}
		for operation in (':addRole', ':removeRole'):
			refused(owner.post(path + operation, json={'orgRole': 'KING'}), 400, None, 'orgRole')
			refused(fresh['member'].post(path + operation, json={'orgRole': 'ORG_OWNER'}), 403)
			refused(owner.post(fresh['path'] + '/users/' + NO_ID + operation, json={'orgRole': 'ORG_OWNER'}), 404)
		refused(owner.put(path + '/roles', json={'orgRoles': []}), 400, None, 'orgRoles')
		refused(owner.put(path + '/roles', json={}), 400, None, 'orgRoles')
		refused(fresh['member'].put(path + '/roles', json={'orgRoles': ['ORG_OWNER']}), 403)
		refused(owner.put(fresh['path'] + '/users/%s/roles' % NO_ID, json={'orgRoles': ['ORG_OWNER']}), 404)


def test_last_owner(server, fresh):
	owner = fresh['owner']
	first = account(owner, org_role(fresh, 'ORG_OWNER'), org_role(fresh, 'ORG_MEMBER'))
	path = fresh['path'] + '/users/' + first['id']
	invite(fresh, roles=['ORG_OWNER'])  # does not count: nobody has accepted
	refused(owner.delete(path), 409, 'LAST_ORG_OWNER', first['username'])
	refused(owner.post(path + ':removeRole', json={'orgRole': 'ORG_OWNER'}), 409, 'LAST_ORG_OWNER')
	refused(owner.put(path + '/roles', json={'orgRoles': ['ORG_MEMBER']}), 409, 'LAST_ORG_OWNER')
	refused(owner.patch(path, json={'roles': {'orgRoles': ['ORG_MEMBER']}}), 409, 'LAST_ORG_OWNER')
	assert 'ORG_OWNER' in ok(owner.get(path))['roles']['orgRoles']
	second = account(owner, org_role(fresh, 'ORG_OWNER'))
	ok(owner.put(path + '/roles', json={'orgRoles': ['ORG_MEMBER']}))
	refused(owner.delete(fresh['path'] + '/users/' + second['id']), 409, 'LAST_ORG_OWNER')
	ok(owner.post(path + ':addRole', json={'orgRole': 'ORG_OWNER'}))
	ok(owner.delete(fresh['path'] + '/users/' + second['id']), 204)


def test_remove_org_user(server, fresh):
	owner = fresh['owner']
	user = account(owner, org_role(fresh), group_role(fresh), group_role(fresh, 'GROUP_OWNER', 'b'))
	path = fresh['path'] + '/users/'
	refused(fresh['member'].delete(path + user['id']), 403)
	team = ok(owner.post(fresh['path'] + '/teams', json={'name': unique('team'), 'usernames': [user['username']]}))['id']
	ok(owner.delete(path + user['id']), 204)
	refused(owner.get(path + user['id']), 404)
	refused(owner.delete(path + user['id']), 404)
	refused(owner.get('/users/' + user['id']), 404)
	for project in 'ab':
		assert ok(owner.get('/groups/%s/users' % fresh[project]))['totalCount'] == 0
	assert ok(owner.get(fresh['path'] + '/teams/%s/users' % team))['totalCount'] == 0
	assert events(fresh, 'REMOVED_FROM_ORG')[0]['targetUsername'] == user['username']
	# The account is still there: invited again, it has the same id.
	assert invite(fresh, user['username'])['id'] == user['id']
	ok(owner.delete(path + user['id']), 204)
	assert events(fresh, 'ORG_INVITATION_DELETED')[0]['targetUsername'] == user['username']
	assert ok(owner.get(fresh['path'] + '/invites')) == []


# Members of a project.

def test_add_to_group(server, fresh):
	users, owner = fresh['group'] + '/users', fresh['owner']
	member = account(owner, org_role(fresh))
	answer = fresh['manager'].post(users, json={'username': member['username'].upper(), 'roles': ['GROUP_CLUSTER_MANAGER']})
	doc = ok(answer, 201)
	assert doc['orgMembershipStatus'] == 'ACTIVE' and doc['roles'] == ['GROUP_CLUSTER_MANAGER'] and doc['firstName'] == 'Ada'
	assert answer.headers['Location'] == server.base_url + BASE + users + '/' + member['id']
	assert ok(owner.get(users + '/' + member['id'])) == doc
	refused(fresh['manager'].post(users, json={'username': name(), 'roles': ['GROUP_OWNER']}), 403, 'CANNOT_GRANT_ROLE')
	refused(owner.post(users, json={'username': member['username'], 'roles': ['GROUP_OWNER']}), 409, 'USER_ALREADY_IN_GROUP')
	# Somebody new is invited to the organization, with the project.
	username = name('guest')
	guest = ok(fresh['manager'].post(users, json={'username': username, 'roles': ['GROUP_READ_ONLY']}), 201)
	assert guest['orgMembershipStatus'] == 'PENDING' and guest['roles'] == ['GROUP_READ_ONLY']
	pending = ok(owner.get(fresh['path'] + '/users/' + guest['id']))
	assert pending['roles'] == {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [
		{'groupId': fresh['a'], 'groupRoles': ['GROUP_READ_ONLY']}]}
	# Somebody invited to the organization gets the project added.
	other = invite(fresh)
	assert ok(owner.post(users, json={'username': other['username'], 'roles': ['GROUP_OWNER']}), 201)['id'] == other['id']
	refused(owner.post(users, json={'username': other['username'], 'roles': ['GROUP_OWNER']}), 409)
	assert [x['id'] for x in ok(owner.get(users))['results']] == [member['id'], guest['id'], other['id']]
	assert events(fresh, 'JOINED_GROUP', fresh['a'])[0]['targetUsername'] == member['username']
	assert {x['targetUsername'] for x in events(fresh, 'INVITED_TO_GROUP', fresh['a'])} == {username, other['username']}
	refused(owner.post(users, json={'username': name(), 'roles': []}), 400, None, 'roles')
	refused(owner.post(users, json={'username': name(), 'roles': ['ORG_OWNER']}), 400, None, 'roles[0]')
	refused(owner.post(users, json={'roles': ['GROUP_OWNER']}), 400, None, 'username')
	refused(server.post(users, json={'username': name(), 'roles': ['GROUP_OWNER']}), 401)


def test_list_group(server, fresh):
	users, owner = fresh['group'] + '/users', fresh['owner']
	boss = account(owner, org_role(fresh, 'ORG_OWNER'))['id']
	reader = account(owner, org_role(fresh, 'ORG_READ_ONLY'), group_role(fresh, 'GROUP_CLUSTER_MANAGER'))['id']
	account(owner, org_role(fresh, 'ORG_BILLING_ADMIN'))
	guest = invite(fresh, groups=[(fresh['a'], ['GROUP_READ_ONLY'])])
	invite(fresh)
	assert [x['id'] for x in ok(fresh['groupOwner'].get(users))['results']] == [reader, guest['id']]
	doc = ok(owner.get(users, params={'includeOrgUsers': 'true'}))
	assert [x['id'] for x in doc['results']] == [boss, reader, guest['id']] and doc['totalCount'] == 3
	assert [x['roles'] for x in doc['results']][0] == ['GROUP_OWNER']
	assert set(doc['results'][1]['roles']) == {'GROUP_CLUSTER_MANAGER', 'GROUP_READ_ONLY'}
	page = ok(owner.get(users, params={'includeOrgUsers': 'true', 'itemsPerPage': 2, 'pageNum': 2}))
	assert [x['id'] for x in page['results']] == [guest['id']]
	assert [x['id'] for x in ok(owner.get(users, params={'orgMembershipStatus': 'PENDING'}))['results']] == [guest['id']]
	assert [x['id'] for x in ok(owner.get(users, params={'orgMembershipStatuses': 'ACTIVE'}))['results']] == [reader]
	assert ok(owner.get(users, params={'username': guest['username']}))['totalCount'] == 1
	assert ok(owner.get(users, params={'username': name()}))['totalCount'] == 0
	refused(owner.get(users, params={'flattenTeams': 'perhaps'}), 400, None, 'flattenTeams')
	refused(server.get(users), 401)
	assert ok(owner.get(users + '/' + boss))['roles'] == ['GROUP_OWNER']
	refused(owner.get(users + '/' + NO_ID), 404)
	refused(owner.get(users + '/' + guest['id'], params={'orgMembershipStatuses': 'ACTIVE'}), 404)
	assert ok(owner.get('/groups/%s/users' % fresh['b']))['results'] == []


def test_group_roles(server, fresh):
	users, owner, manager = fresh['group'] + '/users', fresh['owner'], fresh['manager']
	for user in (account(owner, org_role(fresh), group_role(fresh)), invite(fresh, groups=[(fresh['a'], ['GROUP_READ_ONLY'])])):
		path = users + '/' + user['id']
		doc = ok(manager.post(path + ':addRole', json={'groupRole': 'GROUP_CLUSTER_MANAGER'}))
		assert set(doc['roles']) == {'GROUP_READ_ONLY', 'GROUP_CLUSTER_MANAGER'}
		refused(manager.post(path + ':addRole', json={'groupRole': 'GROUP_CLUSTER_MANAGER'}), 409, 'ROLE_ALREADY_HELD')
		refused(manager.post(path + ':addRole', json={'groupRole': 'GROUP_OWNER'}), 403, 'CANNOT_GRANT_ROLE')
		assert ok(manager.post(path + ':removeRole', json={'groupRole': 'GROUP_READ_ONLY'}))['roles'] == ['GROUP_CLUSTER_MANAGER']
		refused(manager.post(path + ':removeRole', json={'groupRole': 'GROUP_READ_ONLY'}), 409, 'ROLE_NOT_HELD')
		refused(manager.post(path + ':removeRole', json={'groupRole': 'GROUP_CLUSTER_MANAGER'}), 409, 'LAST_ROLE')
		assert ok(owner.put(path + '/roles', json={'groupRoles': ['GROUP_OWNER']}))['groupRoles'] == ['GROUP_OWNER']
		assert ok(owner.get(path))['roles'] == ['GROUP_OWNER']
		refused(manager.put(path + '/roles', json={'groupRoles': ['GROUP_READ_ONLY']}), 403)
		refused(manager.delete(path), 403, 'CANNOT_GRANT_ROLE')
		refused(owner.put(path + '/roles', json={'groupRoles': []}), 400, None, 'groupRoles')
		refused(owner.put(path + '/roles', json={'groupRoles': ['KING']}), 400, None, 'groupRoles[0]')
		for operation in (':addRole', ':removeRole'):
			refused(owner.post(path + operation, json={'groupRole': 'ORG_OWNER'}), 400, None, 'groupRole')
			refused(owner.post(path + operation, json={}), 400, None, 'groupRole')
			refused(owner.post(users + '/' + NO_ID + operation, json={'groupRole': 'GROUP_OWNER'}), 404)
			refused(server.post(path + operation, json={'groupRole': 'GROUP_OWNER'}), 401)
		refused(owner.put(users + '/%s/roles' % NO_ID, json={'groupRoles': ['GROUP_OWNER']}), 404)
		ok(owner.delete(path), 204)
		refused(owner.get(path), 404)
		refused(owner.delete(path), 404)
		assert ok(owner.get(fresh['path'] + '/users/' + user['id']))['roles']['groupRoleAssignments'] == []
	assert len(events(fresh, 'REMOVED_FROM_GROUP', fresh['a'])) == 1
	assert len(events(fresh, 'GROUP_INVITATION_DELETED', fresh['a'])) == 1


def test_invitation_through_a_project_goes_with_it(server, fresh):
	owner = fresh['owner']
	guest = ok(fresh['manager'].post(fresh['group'] + '/users', json={'username': name(), 'roles': ['GROUP_READ_ONLY']}), 201)
	ok(fresh['manager'].delete(fresh['group'] + '/users/' + guest['id']), 204)
	refused(owner.get(fresh['path'] + '/users/' + guest['id']), 404)
	guest = ok(fresh['manager'].post(fresh['group'] + '/users', json={'username': name(), 'roles': ['GROUP_READ_ONLY']}), 201)
	kept = invite(fresh, groups=[(fresh['a'], ['GROUP_READ_ONLY'])])
	ok(owner.delete(fresh['group']), 204)
	refused(owner.get(fresh['path'] + '/users/' + guest['id']), 404)
	assert ok(owner.get(fresh['path'] + '/users/' + kept['id']))['roles']['groupRoleAssignments'] == []


def test_older_version(start_server):
	s = start_server(record=client.OLDER)
	user = account(s, {'orgId': s.org, 'roleName': 'ORG_MEMBER'}, {'groupId': s.group, 'roleName': 'GROUP_READ_ONLY'})
	ok(s.post('/orgs/%s/users' % s.org, json={'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	doc = ok(s.get('/orgs/%s/users' % s.org, headers=OLD))
	assert [x['username'] for x in doc['results']] == [s.bootstrap['username'], user['username']] and doc['totalCount'] == 2
	for item in doc['results']:
		assert {'country', 'emailAddress', 'firstName', 'lastName', 'mobileNumber', 'password', 'roles', 'username'} <= set(item)
		assert links(item)['self'] == s.base_url + BASE + '/users/' + item['id']
	assert doc['results'][1]['roles'] == user['roles']
	doc = ok(s.get('/groups/%s/users' % s.group, headers=OLD))
	assert [bare(x) for x in doc['results']] == [bare(user)]


def test_passwords_stay_inside(start_server):
	s = start_server(record=None, control=False)  # where passwords are hashed as they are for people
	password = unique('very-secret')
	user = account(s, {'orgId': s.org, 'roleName': 'ORG_MEMBER'}, password=password)
	assert password not in s.get('/users/' + user['id']).text and password not in s.stderr
	ok(s.post('/orgs/%s/users' % s.org, json={'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [
		{'groupId': s.group, 'groupRoles': ['GROUP_OWNER']}]}}), 201)
	ok(s.delete('/orgs/%s/users/%s' % (s.org, user['id'])), 204)
	s.stop()
	cli('check', '--data', s.data_dir)
	kept = str(s.rows('SELECT body, secret FROM doc'))
	assert password not in kept and '$scrypt$ln=15,r=8,p=3$' in kept
