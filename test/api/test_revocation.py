"""What is taken away is gone with the next request: live tokens and live digest sessions too."""
import pytest
from requests.auth import HTTPDigestAuth

from client import Api, Bearer, ok, refused, unique


class Tenant:
	"""An organization of its own, with its owner as `api`."""

	def __init__(self, server, **more):
		self.server = server
		seeded = server.seed({'name': unique('Org'), 'projects': ['p'],
				      'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}], **more})[0]
		self.org, self.group = seeded['id'], seeded['projects'][0]['id']
		self.api = server.api_for(seeded['principals'][0])
		self.keys, self.accounts = '/orgs/%s/apiKeys' % self.org, '/orgs/%s/serviceAccounts' % self.org

	def key(self, roles=('ORG_OWNER',)):
		key = ok(self.api.post(self.keys, json={'desc': 'x', 'roles': list(roles)}))
		api = Api(self.server, HTTPDigestAuth(key['publicKey'], key['privateKey']))
		ok(api.get('/orgs'))
		assert not api.get('/orgs').history, 'the session is not live'
		return key, api

	def account(self, roles=('ORG_OWNER',), hours=8):
		account = ok(self.api.post(self.accounts, json={'name': 'x', 'description': 'x', 'roles': list(roles),
								'secretExpiresAfterHours': hours}), 201)
		api = Api(self.server, Bearer(self.server.token({'clientId': account['clientId'],
								  'clientSecret': account['secrets'][0]['secret']})))
		ok(api.get('/orgs'))
		return account, api


@pytest.fixture
def tenant(server):
	return Tenant(server)


def test_key_deleted(tenant):
	key, api = tenant.key()
	ok(tenant.api.delete(tenant.keys + '/' + key['id']), 204)
	refused(api.get('/orgs'), 401)


def test_key_deletes_itself(tenant):
	key, api = tenant.key()
	ok(api.delete(tenant.keys + '/' + key['id']), 204)
	refused(api.get('/orgs'), 401)


def test_account_deleted(tenant):
	account, api = tenant.account()
	ok(tenant.api.delete(tenant.accounts + '/' + account['clientId']), 204)
	refused(api.get('/orgs'), 401)


def test_secret_deleted(tenant):
	account, api = tenant.account()
	ok(tenant.api.delete('%s/%s/secrets/%s' % (tenant.accounts, account['clientId'], account['secrets'][0]['id'])), 204)
	refused(api.get('/orgs'), 401)


def test_secret_expired(start_server):
	"""A token does not outlive the secret it was got with."""
	s = start_server()
	account, _ = Tenant(s).account(hours=8)
	s.advance(8 * 3600 - 60)
	api = Api(s, Bearer(s.token({'clientId': account['clientId'], 'clientSecret': account['secrets'][0]['secret']})))
	ok(api.get('/orgs'))
	s.advance(59)
	ok(api.get('/orgs'))
	s.advance(1)
	refused(api.get('/orgs'), 401)


def test_access_list_of_a_key_narrowed(tenant):
	key, api = tenant.key()
	url = '%s/%s/accessList' % (tenant.keys, key['id'])
	ok(tenant.api.post(url, json=[{'ipAddress': '127.0.0.1'}, {'ipAddress': '192.0.2.1'}]))
	ok(api.get('/orgs'))
	ok(tenant.api.delete(url + '/127.0.0.1'), 204)
	refused(api.get('/orgs'), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST', '127.0.0.1')
	ok(tenant.api.post(url, json=[{'ipAddress': '127.0.0.1'}]))
	ok(api.get('/orgs'))


def test_access_list_of_an_account_narrowed(tenant):
	account, api = tenant.account()
	url = '%s/%s/accessList' % (tenant.accounts, account['clientId'])
	# An owner may shut itself out.
	ok(api.post(url, json=[{'ipAddress': '192.0.2.1'}]))
	refused(api.get('/orgs'), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST')
	ok(tenant.api.delete(url + '/192.0.2.1'), 204)
	ok(api.get('/orgs'))


def test_access_list_required(tenant):
	_, key = tenant.key()
	_, account = tenant.account()
	me, api = tenant.account()
	ok(api.post('%s/%s/accessList' % (tenant.accounts, me['clientId']), json=[{'ipAddress': '127.0.0.1'}]))
	ok(api.patch('/orgs/%s/settings' % tenant.org, json={'apiAccessListRequired': True}))
	refused(key.get('/orgs'), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST')
	refused(account.get('/orgs'), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST')


@pytest.mark.parametrize('kind', ['key', 'account'])
def test_role_removed(tenant, kind):
	who, api = tenant.key() if kind == 'key' else tenant.account()
	ok(api.patch('/orgs/' + tenant.org, json={'name': unique('Org')}))
	url = tenant.keys + '/' + who['id'] if kind == 'key' else tenant.accounts + '/' + who['clientId']
	ok(tenant.api.patch(url, json={'roles': ['ORG_MEMBER']}))
	refused(api.patch('/orgs/' + tenant.org, json={'name': unique('Org')}), 403)


@pytest.mark.parametrize('kind', ['key', 'account'])
def test_removed_from_project(tenant, kind):
	who, api = tenant.key(['ORG_MEMBER']) if kind == 'key' else tenant.account(['ORG_MEMBER'])
	if kind == 'key':
		url = '/groups/%s/apiKeys/%s' % (tenant.group, who['id'])
		ok(tenant.api.post(url, json=[{'roles': ['GROUP_OWNER']}]), 204)
	else:
		url = '/groups/%s/serviceAccounts/%s' % (tenant.group, who['clientId'])
		ok(tenant.api.post(url + ':invite', json={'roles': ['GROUP_OWNER']}))
	ok(api.patch('/groups/' + tenant.group, json={'name': unique()}))
	ok(tenant.api.delete(url), 204)
	refused(api.get('/groups/' + tenant.group), 403)


def test_project_role_narrowed(tenant):
	key, api = tenant.key(['ORG_MEMBER'])
	url = '/groups/%s/apiKeys/%s' % (tenant.group, key['id'])
	ok(tenant.api.post(url, json=[{'roles': ['GROUP_OWNER']}]), 204)
	ok(api.patch('/groups/' + tenant.group, json={'name': unique()}))
	ok(tenant.api.patch(url, json={'roles': ['GROUP_READ_ONLY']}))
	ok(api.get('/groups/' + tenant.group))
	refused(api.patch('/groups/' + tenant.group, json={'name': unique()}), 403)


def test_token_revoked(tenant):
	account, api = tenant.account()
	token = api.session.auth.token
	answer = tenant.server.anonymous.request('POST', '/api/oauth/revoke', data={'token': token},
						 auth=(account['clientId'], account['secrets'][0]['secret']))
	ok(answer)
	refused(api.get('/orgs'), 401)
	event = ok(tenant.api.get('/orgs/%s/events' % tenant.org))['results'][0]
	assert event['eventTypeName'] == 'OAUTH_TOKEN_REVOKED' and event['publicKey'] == account['clientId']
	assert token not in str(event)
	# once is enough
	ok(tenant.server.anonymous.request('POST', '/api/oauth/revoke', data={'token': token},
					   auth=(account['clientId'], account['secrets'][0]['secret'])))
	assert ok(tenant.api.get('/orgs/%s/events' % tenant.org,
				 params={'eventType': 'OAUTH_TOKEN_REVOKED'}))['totalCount'] == 1


class People(Tenant):
	"""Somebody who has signed in and is in a team that has a role in the project."""

	def __init__(self, server, roles=('ORG_MEMBER',)):
		user = {'type': 'user', 'username': unique('ada') + '@example.com', 'roles': list(roles)}
		seeded, = server.seed({'name': unique('Org'), 'projects': ['p'], 'principals': [
			{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, user]})
		self.server, self.org, self.group = server, seeded['id'], seeded['projects'][0]['id']
		self.api, self.user_api = [server.api_for(p) for p in seeded['principals']]
		self.user = seeded['principals'][1]
		self.project = '/groups/' + self.group
		self.team = ok(self.api.post('/orgs/%s/teams' % self.org, json={'name': unique('team'), 'usernames':
				[user['username']]}))['id']
		self.assign('GROUP_CLUSTER_MANAGER')

	def assign(self, role):
		ok(self.api.post(self.project + '/teams', json=[{'teamId': self.team, 'roleNames': [role]}]))


@pytest.fixture
def people(server):
	return People(server)


def test_team_emptied(people):
	ok(people.user_api.get(people.project))
	ok(people.api.delete('/orgs/%s/teams/%s/users/%s' % (people.org, people.team, people.user['id'])), 204)
	refused(people.user_api.get(people.project), 403)  # a member of the organization, and no more
	ok(people.user_api.get('/orgs/' + people.org))


def test_team_role_narrowed(people):
	rename = lambda: people.user_api.patch(people.project, json={'name': unique()})
	people.assign('GROUP_OWNER')
	ok(rename())
	people.assign('GROUP_READ_ONLY')
	refused(rename(), 403)


def test_team_unassigned_and_deleted(people):
	ok(people.api.delete(people.project + '/teams/' + people.team), 204)
	refused(people.user_api.get(people.project), 403)
	people.assign('GROUP_READ_ONLY')
	ok(people.user_api.get(people.project))
	ok(people.api.delete('/orgs/%s/teams/%s' % (people.org, people.team)), 204)
	refused(people.user_api.get(people.project), 403)


def test_user_removed(people):
	ok(people.user_api.get('/orgs/' + people.org))
	ok(people.api.delete('/orgs/%s/users/%s' % (people.org, people.user['id'])), 204)
	refused(people.user_api.get('/orgs/' + people.org), 401)
	refused(people.user_api.get(people.project), 401)


def test_organization_deleted(tenant):
	_, key = tenant.key()
	_, account = tenant.account()
	ok(tenant.api.delete('/groups/' + tenant.group), 204)
	ok(tenant.api.delete('/orgs/' + tenant.org), 204)
	for api in (tenant.api, key, account):
		refused(api.get('/orgs/' + tenant.org), 401)
		refused(api.get('/orgs'), 401)


def test_project_deleted(tenant):
	key, api = tenant.key(['ORG_MEMBER'])
	ok(tenant.api.post('/groups/%s/apiKeys/%s' % (tenant.group, key['id']), json=[{'roles': ['GROUP_OWNER']}]), 204)
	ok(api.get('/groups/' + tenant.group))
	ok(tenant.api.delete('/groups/' + tenant.group), 204)
	refused(api.get('/groups/' + tenant.group), 404)
	assert ok(api.get('/groups'))['results'] == []
	assert [r for r in ok(tenant.api.get(tenant.keys + '/' + key['id']))['roles'] if 'groupId' in r] == []
