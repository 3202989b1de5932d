"""Teams: their users, and the roles that they have in projects."""
import pytest

from client import NO_ID, links, ok, refused, unique
from test_users import accept

NUMBER = '+1 212 555 1234'
OLD = {'Accept': 'application/vnd.svc.2023-01-01+json'}


def email(prefix='user'):
	return unique(prefix) + '@example.com'


def make_user(server, role='ORG_MEMBER', org=None):
	"""An account, active in the organization."""
	name = email()
	user = ok(server.post('/users', json={'username': name, 'password': 'correct horse battery', 'firstName': 'Ada',
					      'lastName': 'Lovelace', 'country': 'GB', 'mobileNumber': NUMBER,
					      'roles': [{'orgId': org or server.org, 'roleName': role}]}))
	accept(server, user)
	return user


def invite(server, **more):
	return ok(server.post('/orgs/%s/users' % server.org,
			      json={'username': email('pending'), 'roles': {'orgRoles': ['ORG_MEMBER']}, **more}), 201)


@pytest.fixture(scope='module')
def url(server):
	return '/orgs/%s/teams' % server.org


def make(server, url, *users, name=None):
	return ok(server.post(url, json={'name': name or unique('team'), 'usernames': [u['username'] for u in users]}))


def names(listed):
	return [u['username'] for u in listed['results']]


@pytest.fixture(scope='module')
def member(server):
	"""A caller that may read, and change nothing."""
	key = ok(server.post('/orgs/%s/apiKeys' % server.org, json={'desc': 'member', 'roles': ['ORG_MEMBER']}))
	return server.api_for({'type': 'apiKey', **key})


@pytest.fixture(scope='module')
def other(server):
	return server.seed({'name': 'Other', 'projects': ['p'], 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})[0]


# Teams.

def test_create_get_list_rename_delete(server, url, member):
	user = make_user(server)
	team = make(server, url, user)
	one = ok(member.get('%s/%s' % (url, team['id'])))
	assert (one['id'], one['name']) == (team['id'], team['name'])
	assert {rel.rsplit('/', 1)[-1] for rel in links(one)} == {'self', 'users', 'byName'}
	assert ok(member.get('%s/byName/%s' % (url, team['name'])))['id'] == team['id']
	assert team['id'] in [t['id'] for t in ok(member.get(url + '?itemsPerPage=500'))['results']]
	new = unique('renamed')
	assert ok(server.patch('%s/%s' % (url, team['id']), json={'name': new}))['name'] == new
	refused(server.get('%s/byName/%s' % (url, team['name'])), 404)
	assert ok(server.get('%s/byName/%s' % (url, new)))['id'] == team['id']
	assert names(ok(server.get('%s/%s/users' % (url, team['id'])))) == [user['username']]
	refused(member.patch('%s/%s' % (url, team['id']), json={'name': 'x'}), 403)
	refused(member.delete('%s/%s' % (url, team['id'])), 403)
	refused(member.post(url, json={'name': 'x', 'usernames': []}), 403)
	ok(server.delete('%s/%s' % (url, team['id'])), 204)
	for answer in (server.get('%s/%s' % (url, team['id'])), server.delete('%s/%s' % (url, team['id'])),
		       server.get('%s/%s/users' % (url, team['id'])), server.patch('%s/%s' % (url, team['id']), json={'name': 'x'})):
		refused(answer, 404)
	assert ok(server.get('/orgs/%s/users/%s' % (server.org, user['id'])))['teamIds'] == []


def test_names_are_unique(server, url):
	one, two = make(server, url), make(server, url)
	refused(server.post(url, json={'name': one['name'], 'usernames': []}), 409, 'TEAM_ALREADY_EXISTS', one['name'])
	refused(server.patch('%s/%s' % (url, two['id']), json={'name': one['name']}), 409)
	ok(server.patch('%s/%s' % (url, two['id']), json={'name': two['name']}))


@pytest.mark.parametrize('body, path', [
	({'name': 'x'}, 'usernames'), ({'usernames': []}, 'name'), ({'name': '', 'usernames': []}, 'name'),
	({'name': ' ', 'usernames': []}, 'name'), ({'name': 'x' * 129, 'usernames': []}, 'name'),
	({'name': 'x', 'usernames': ['nobody']}, 'usernames[0]'), ({'name': 'x', 'usernames': ['n@example.com']}, 'usernames[0]'),
	({'name': 'x', 'usernames': [], 'id': '0' * 24}, 'id'),
])
def test_create_refuses(server, url, body, path):
	refused(server.post(url, json=body), 400, None, path)


def test_users_of_another_organization(server, url, other):
	"""Nobody comes into a team who is not in its organization."""
	owner = server.api_for(other['principals'][0])
	stranger = ok(owner.post('/users', json={'username': email(), 'password': 'correct horse battery', 'firstName': 'A',
						 'lastName': 'B', 'country': 'GB', 'mobileNumber': NUMBER,
						 'roles': [{'orgId': other['id'], 'roleName': 'ORG_MEMBER'}]}))
	refused(server.post(url, json={'name': unique(), 'usernames': [stranger['username']]}), 400, None, 'usernames[0]')
	team = make(server, url)
	refused(server.post('%s/%s/users' % (url, team['id']), json=[{'id': stranger['id']}]), 400, None, '[0].id')
	refused(server.post('%s/%s:addUser' % (url, team['id']), json={'id': stranger['id']}), 400, None, 'id')
	refused(owner.get('/orgs/%s/teams/%s' % (other['id'], team['id'])), 404)
	refused(owner.get('%s/%s' % (url, team['id'])), 401)
	refused(owner.get(url), 401)


# Their users.

def test_add_and_remove_users(server, url):
	one, two = make_user(server), make_user(server)
	team = make(server, url)
	at = '%s/%s' % (url, team['id'])
	assert names(ok(server.post(at + '/users', json=[{'id': one['id']}, {'id': two['id']}, {'id': one['id']}]))) == [
		one['username'], two['username']]
	assert ok(server.get(at + '/users'))['totalCount'] == 2
	ok(server.delete('%s/users/%s' % (at, one['id'])), 204)
	refused(server.delete('%s/users/%s' % (at, one['id'])), 404)
	answer = ok(server.post(at + ':addUser', json={'id': one['id']}))
	assert answer['username'] == one['username'] and answer['teamIds'] == [team['id']]
	ok(server.post(at + ':addUser', json={'id': one['id']}))
	assert ok(server.get('/orgs/%s/users/%s' % (server.org, one['id'])))['teamIds'] == [team['id']]
	assert ok(server.post(at + ':removeUser', json={'id': one['id']}))['teamIds'] == []
	refused(server.post(at + ':removeUser', json={'id': one['id']}), 400, None, 'id')
	refused(server.post('%s/%s:removeUser' % (url, NO_ID), json={'id': one['id']}), 404)
	refused(server.post('%s/%s:addUser' % (url, NO_ID), json={'id': one['id']}), 404)
	refused(server.post('%s/%s/users' % (url, NO_ID), json=[{'id': one['id']}]), 404)
	assert names(ok(server.get(at + '/users'))) == [two['username']]


def test_filters(server, url):
	one, two = make_user(server), make_user(server)
	team = make(server, url, one, two)
	at = '%s/%s/users' % (url, team['id'])
	waiting = invite(server, teamIds=[team['id']])
	assert names(ok(server.get(at))) == [one['username'], two['username'], waiting['username']]
	assert names(ok(server.get(at + '?username=' + two['username']))) == [two['username']]
	assert names(ok(server.get(at + '?userId=' + one['id']))) == [one['username']]
	assert names(ok(server.get(at + '?orgMembershipStatus=PENDING'))) == [waiting['username']]
	assert names(ok(server.get(at + '?orgMembershipStatuses=ACTIVE,INVITATION_EXPIRED'))) == [one['username'], two['username']]
	assert names(ok(server.get(at + '?itemsPerPage=1&pageNum=2'))) == [two['username']]
	assert ok(server.get(at + '?username=nobody@example.com'))['results'] == []
	refused(server.get(at + '?orgMembershipStatus=NONSENSE'), 400, None, 'orgMembershipStatus')


def test_the_older_form(older_server):
	"""Accounts, active ones only."""
	s = older_server
	user, url = make_user(s), '/orgs/%s/teams' % s.org
	team = make(s, url, user)
	invite(s, teamIds=[team['id']])
	old = ok(s.get('%s/%s/users' % (url, team['id']), headers=OLD))
	assert names(old) == [user['username']] and old['totalCount'] == 1
	assert old['results'][0]['emailAddress'] == user['username'] and old['results'][0]['teamIds'] == [team['id']]


def test_pending_users(server, url):
	team, waiting = make(server, url), invite(server)
	at = '%s/%s' % (url, team['id'])
	answer = ok(server.post(at + ':addUser', json={'id': waiting['id']}))
	assert answer['orgMembershipStatus'] == 'PENDING' and answer['teamIds'] == [team['id']]
	assert names(ok(server.get(at + '/users'))) == [waiting['username']]
	ok(server.post(at + ':removeUser', json={'id': waiting['id']}))
	assert ok(server.get(at + '/users'))['results'] == []
	# The older way takes them, and shows accounts only.
	assert ok(server.post(at + '/users', json=[{'id': waiting['id']}]))['results'] == []
	assert names(ok(server.get(at + '/users'))) == [waiting['username']]
	ok(server.post(at + ':removeUser', json={'id': waiting['id']}))
	ok(server.post(at + ':addUser', json={'id': waiting['id']}))
	ok(server.delete(at), 204)
	assert ok(server.get('/orgs/%s/users/%s' % (server.org, waiting['id'])))['teamIds'] == []


def test_who_leaves_the_organization_leaves_its_teams(server, url):
	user = make_user(server)
	team = make(server, url, user)
	ok(server.delete('/orgs/%s/users/%s' % (server.org, user['id'])), 204)
	assert ok(server.get('%s/%s/users' % (url, team['id'])))['results'] == []


# In projects.

def test_assign_change_remove(server, url):
	group = server.project()['id']
	one, two = make(server, url), make(server, url)
	at = '/groups/%s/teams' % group
	listed = ok(server.post(at, json=[{'teamId': one['id'], 'roleNames': ['GROUP_OWNER']},
					  {'teamId': two['id'], 'roleNames': ['GROUP_READ_ONLY', 'GROUP_CLUSTER_MANAGER']}]))
	assert [t['teamId'] for t in listed['results']] == [one['id'], two['id']]
	assert sorted(listed['results'][1]['roleNames']) == ['GROUP_CLUSTER_MANAGER', 'GROUP_READ_ONLY']
	assert ok(server.get(at))['totalCount'] == 2
	assert ok(server.get(links(listed['results'][0])['self']))['roleNames'] == ['GROUP_OWNER']
	changed = ok(server.patch('%s/%s' % (at, one['id']), json={'roleNames': ['GROUP_READ_ONLY'], 'teamId': one['id']}))
	assert changed['results'][0]['roleNames'] == ['GROUP_READ_ONLY']
	refused(server.patch('%s/%s' % (at, one['id']), json={'roleNames': [], 'teamId': one['id']}), 400, None, 'roleNames')
	refused(server.patch('%s/%s' % (at, one['id']), json={'roleNames': ['ORG_OWNER'], 'teamId': one['id']}), 400, None, 'roleNames[0]')
	refused(server.patch('%s/%s' % (at, one['id']), json={'roleNames': ['GROUP_OWNER'], 'teamId': two['id']}), 400, None,
		'teamId')
	ok(server.delete('%s/%s' % (at, one['id'])), 204)
	refused(server.delete('%s/%s' % (at, one['id'])), 404)
	refused(server.get('%s/%s' % (at, one['id'])), 404)
	refused(server.patch('%s/%s' % (at, one['id']), json={'roleNames': ['GROUP_OWNER'], 'teamId': one['id']}), 404)
	# A team that is deleted is gone from its projects.
	ok(server.delete('%s/%s' % (url, two['id'])), 204)
	assert ok(server.get(at))['results'] == []


def test_assign_refuses(server, url, other, member):
	at, team = '/groups/%s/teams' % server.group, make(server, url)
	owner = server.api_for(other['principals'][0])
	theirs = ok(owner.post('/orgs/%s/teams' % other['id'], json={'name': unique(), 'usernames': []}))
	refused(server.post(at, json=[]), 400)
	refused(server.post(at, json=[{'teamId': theirs['id'], 'roleNames': ['GROUP_OWNER']}]), 400, 'INVALID_TEAM_ID', '[0].teamId')
	refused(server.post(at, json=[{'teamId': team['id'], 'roleNames': ['GROUP_OWNER']},
				      {'teamId': team['id'], 'roleNames': ['NONSENSE']}]), 400, None, '[1].roleNames[0]')
	assert team['id'] not in [t['teamId'] for t in ok(server.get(at))['results']]
	refused(owner.get(at), 401)
	refused(member.post(at, json=[{'teamId': team['id'], 'roleNames': ['GROUP_OWNER']}]), 403)


def test_only_owners_make_owners(server, url):
	"""Who manages access cannot raise a team that it is in."""
	group, team = server.project()['id'], make(server, url)
	key = ok(server.post('/groups/%s/apiKeys' % group, json={'desc': 'x', 'roles': ['GROUP_ACCESS_MANAGER']}))
	manager = server.api_for({'type': 'apiKey', **key})
	at = '/groups/%s/teams' % group
	ok(manager.post(at, json=[{'teamId': team['id'], 'roleNames': ['GROUP_CLUSTER_MANAGER']}]))
	refused(manager.post(at, json=[{'teamId': team['id'], 'roleNames': ['GROUP_OWNER']}]), 403, 'CANNOT_GRANT_ROLE')
	refused(manager.patch('%s/%s' % (at, team['id']), json={'roleNames': ['GROUP_OWNER'], 'teamId': team['id']}), 403,
		'CANNOT_GRANT_ROLE')


def test_limits(server, url):
	team = make(server, url)
	at = '/groups/%s/teams' % server.project()['id']
	refused(server.post(at, json=[{'teamId': team['id'], 'roleNames': ['GROUP_OWNER']}] * 101), 400)
	user = make_user(server)
	for _ in range(100):
		make(server, url, user)
	server.refill()
	doc = refused(server.post('%s/%s:addUser' % (url, team['id']), json={'id': user['id']}), 400, 'USER_TEAMS_LIMIT_EXCEEDED', '100')
	assert '100 of at most 100' in doc['detail']
