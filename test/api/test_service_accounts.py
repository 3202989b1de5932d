"""Service accounts of organizations and projects: roles, secrets, access lists."""
import re

import pytest

from client import Api, Bearer, NO_ID, links, ok, refused, unique, until

BODY = {'name': 'deployer', 'description': 'rolls out', 'roles': ['ORG_MEMBER'], 'secretExpiresAfterHours': 24}


def make(server, api=None, org=None, **more):
	return ok((api or server).post('/orgs/%s/serviceAccounts' % (org or server.org), json={**BODY, **more}), 201)


def make_in_project(server, group, api=None, **more):
	body = {**BODY, 'roles': ['GROUP_READ_ONLY'], **more}
	return ok((api or server).post('/groups/%s/serviceAccounts' % group, json=body), 201)


def token(server, account, secret=None):
	return server.token({'clientId': account['clientId'], 'clientSecret': secret or account['secrets'][0]['secret']})


def caller(server, account):
	return Api(server, Bearer(token(server, account)))


def url_of(server, account, org=None):
	return '/orgs/%s/serviceAccounts/%s' % (org or server.org, account['clientId'])


@pytest.fixture
def group(server):
	return server.project()['id']


@pytest.fixture(scope='module')
def other(server):
	return server.seed({'name': 'Other', 'projects': ['p'], 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})[0]


# In the organization.

def test_create_shows_the_secret_once(server):
	answer = server.post('/orgs/%s/serviceAccounts' % server.org, json=BODY)
	account = ok(answer, 201)
	assert re.fullmatch('mdb_sa_id_[0-9a-f]{24}', account['clientId']) and account['roles'] == ['ORG_MEMBER']
	assert answer.headers['Location'].endswith(url_of(server, account))
	(secret,) = account['secrets']
	assert secret['secret'].startswith('mdb_sa_sk_')
	again = ok(server.get(url_of(server, account)))
	assert 'secret' not in again['secrets'][0]
	assert again['secrets'][0]['maskedSecretValue'] == 'mdb_sa_sk_****' + secret['secret'][-4:]
	assert secret['secret'] not in server.get('/orgs/%s/serviceAccounts' % server.org).text
	assert {rel.rsplit('/', 1)[-1] for rel in links(again)} == {'self', 'accessList', 'groups'}
	ok(caller(server, account).get('/orgs/%s' % server.org))


def test_list(server):
	made = [make(server)['clientId'] for _ in range(3)]
	page = ok(server.get('/orgs/%s/serviceAccounts?itemsPerPage=2&includeSystemManaged=true' % server.org))
	assert len(page['results']) == 2 and page['totalCount'] >= 4 and 'next' in links(page)
	every = ok(server.get('/orgs/%s/serviceAccounts?itemsPerPage=500' % server.org))['results']
	assert [a['clientId'] for a in every][-3:] == made


@pytest.mark.parametrize('change, path', [
	({'roles': []}, 'roles'), ({'roles': ['GROUP_OWNER']}, 'roles[0]'), ({'name': ''}, 'name'),
	({'name': 'a<b'}, 'name'), ({'name': 'x' * 65}, 'name'), ({'description': ''}, 'description'),
	({'secretExpiresAfterHours': 7}, 'secretExpiresAfterHours'), ({'secretExpiresAfterHours': 0}, 'secretExpiresAfterHours'),
	({'secretExpiresAfterHours': 8761}, 'secretExpiresAfterHours'), ({'clientId': 'x'}, 'clientId'),
])
def test_create_refuses(server, change, path):
	refused(server.post('/orgs/%s/serviceAccounts' % server.org, json={**BODY, **change}), 400, None, path)


def test_the_organization_bounds_the_life_of_secrets(start_server):
	s = start_server()
	account = make(s, secretExpiresAfterHours=8760)
	ok(s.patch('/orgs/%s/settings' % s.org, json={'maxServiceAccountSecretValidityInHours': 100}))
	doc = refused(s.post('/orgs/%s/serviceAccounts' % s.org, json={**BODY, 'secretExpiresAfterHours': 101}), 400, None,
		      'secretExpiresAfterHours')
	assert 'from 8 to 100' in doc['detail'] and 'not 101' in doc['detail']
	make(s, secretExpiresAfterHours=100)
	refused(s.post(url_of(s, account) + '/secrets', json={'secretExpiresAfterHours': 101}), 400)
	refused(s.post('/groups/%s/serviceAccounts' % s.group,
		       json={**BODY, 'roles': ['GROUP_OWNER'], 'secretExpiresAfterHours': 101}), 400)


def test_update(server):
	account = make(server)
	api, url = caller(server, account), url_of(server, account)
	changed = ok(server.patch(url, json={'name': 'other', 'description': None}))
	assert (changed['name'], changed['description'], changed['roles']) == ('other', 'rolls out', ['ORG_MEMBER'])
	changed = ok(server.patch(url, json={'roles': ['ORG_OWNER', 'ORG_BILLING_ADMIN']}))
	assert set(changed['roles']) == {'ORG_OWNER', 'ORG_BILLING_ADMIN'} and changed['name'] == 'other'
	ok(api.patch(url, json={'description': 'changed by itself'}))
	refused(server.patch(url, json={'roles': []}), 400, None, 'roles')
	refused(server.patch(url, json={'secrets': []}), 400, None, 'secrets')
	refused(caller(server, make(server)).patch(url, json={'name': 'x'}), 403)


def test_delete(server):
	account = make(server)
	api, url = caller(server, account), url_of(server, account)
	ok(api.get('/orgs'))
	ok(server.delete(url), 204)
	refused(api.get('/orgs'), 401)
	refused(server.get(url), 404)
	refused(server.delete(url), 404)


def test_another_organization_has_nothing_of_it(server, other):
	stranger = server.api_for(other['principals'][0])
	account = make(server)
	refused(stranger.get(url_of(server, account)), 401)
	refused(stranger.get('/orgs/%s/serviceAccounts' % server.org), 401)
	refused(stranger.get('/groups/%s/serviceAccounts' % server.group), 401)
	mine, theirs = url_of(server, account, other['id']), '/groups/%s/serviceAccounts/%s' % (other['projects'][0]['id'],
												  account['clientId'])
	for path in (mine, mine + '/accessList', mine + '/groups', theirs, theirs + '/accessList'):
		refused(stranger.get(path), 404)
	for path in (mine, mine + '/secrets/' + account['secrets'][0]['id'], theirs):
		refused(stranger.delete(path), 404)
	refused(stranger.post(theirs + ':invite', json={'roles': ['GROUP_OWNER']}), 404)
	refused(stranger.post(mine + '/secrets', json={'secretExpiresAfterHours': 8}), 404)
	refused(stranger.patch(mine, json={'name': 'x'}), 404)


# Secrets.

def test_several_secrets(server):
	account = make(server)
	url = url_of(server, account) + '/secrets'
	answer = server.post(url, json={'secretExpiresAfterHours': 48})
	second = ok(answer, 201)
	assert answer.headers['Location'].endswith(url + '/' + second['id']) and second['expiresAt'] > second['createdAt']
	old = Api(server, Bearer(token(server, account)))
	new = Api(server, Bearer(token(server, account, second['secret'])))
	refused(server.post(url, json={'secretExpiresAfterHours': 48}), 400, 'TOO_MANY_SECRETS', '2')
	ok(old.get('/orgs'))
	ok(server.delete(url + '/' + account['secrets'][0]['id']), 204)
	refused(old.get('/orgs'), 401)
	ok(new.get('/orgs'))
	refused(server.delete(url + '/' + account['secrets'][0]['id']), 404)
	ok(server.post(url, json={'secretExpiresAfterHours': 48}), 201)
	assert len(ok(server.get(url_of(server, account)))['secrets']) == 2


def test_a_secret_of_another_account(server):
	one, two = make(server), make(server)
	refused(server.delete('%s/secrets/%s' % (url_of(server, one), two['secrets'][0]['id'])), 404)
	token(server, two)


def test_expired_secrets_make_room(start_server):
	s = start_server()
	account = make(s, secretExpiresAfterHours=8)
	url = url_of(s, account) + '/secrets'
	ok(s.post(url, json={'secretExpiresAfterHours': 8}), 201)
	refused(s.post(url, json={'secretExpiresAfterHours': 8}), 400)
	s.advance(8 * 3600)
	ok(s.post(url, json={'secretExpiresAfterHours': 8}), 201)
	assert len(ok(s.get(url_of(s, account)))['secrets']) == 1


def test_last_use_of_a_secret(server):
	account = make(server)
	assert 'lastUsedAt' not in account['secrets'][0]
	token(server, account)
	secret = lambda: ok(server.get(url_of(server, account)))['secrets'][0]
	until(lambda: 'lastUsedAt' in secret())
	secret = secret()
	assert secret['lastUsedAt'] >= secret['createdAt']


# In projects.

def test_create_in_a_project(server, group):
	answer = server.post('/groups/%s/serviceAccounts' % group, json={**BODY, 'roles': ['GROUP_CLUSTER_MANAGER']})
	account = ok(answer, 201)
	url = '/groups/%s/serviceAccounts/%s' % (group, account['clientId'])
	assert account['roles'] == ['GROUP_CLUSTER_MANAGER'] and answer.headers['Location'].endswith(url)
	assert ok(server.get(url_of(server, account)))['roles'] == ['ORG_MEMBER']
	api = caller(server, account)
	ok(api.get('/groups/' + group))
	refused(api.get('/groups/' + server.group), 403)
	refused(api.patch('/groups/' + group, json={'name': unique()}), 403)
	listed = ok(server.get('/groups/%s/serviceAccounts' % group))
	assert [a['clientId'] for a in listed['results']] == [account['clientId']] and listed['totalCount'] == 1
	assert 'secret' not in ok(server.get(links(listed['results'][0])['self']))['secrets'][0]
	for roles, path in (([], 'roles'), (['ORG_OWNER'], 'roles[0]'), (['NONSENSE'], 'roles[0]')):
		refused(server.post('/groups/%s/serviceAccounts' % group, json={**BODY, 'roles': roles}), 400, None, path)
	refused(api.post('/groups/%s/serviceAccounts' % group, json={**BODY, 'roles': ['GROUP_READ_ONLY']}), 403)


def test_invite_change_remove(server, group):
	account = make(server)
	url, api = '/groups/%s/serviceAccounts/%s' % (group, account['clientId']), caller(server, account)
	refused(api.get('/groups/' + group), 403)
	refused(server.get(url), 404)
	refused(server.delete(url), 404)
	refused(server.patch(url, json={'roles': ['GROUP_OWNER']}), 404)
	refused(server.post(url + ':invite', json={'roles': ['ORG_OWNER']}), 400, None, 'roles[0]')
	refused(server.post('/groups/%s/serviceAccounts/mdb_sa_id_%s:invite' % (group, NO_ID), json={'roles': ['GROUP_OWNER']}), 404)
	assert ok(server.post(url + ':invite', json={'roles': ['GROUP_READ_ONLY']}))['roles'] == ['GROUP_READ_ONLY']
	ok(api.get('/groups/' + group))
	assert ok(server.get(url))['roles'] == ['GROUP_READ_ONLY']
	where = ok(server.get(url_of(server, account) + '/groups'))
	assert [(g['groupId'], g['roles']) for g in where['results']] == [(group, ['GROUP_READ_ONLY'])]
	assert where['totalCount'] == 1 and links(where['results'][0])['self'].endswith(url)
	assert ok(server.patch(url, json={'roles': ['GROUP_OWNER'], 'name': 'renamed'}))['roles'] == ['GROUP_OWNER']
	assert ok(server.get(url_of(server, account)))['name'] == 'renamed'
	ok(api.patch('/groups/' + group, json={'name': unique()}))
	refused(server.patch(url, json={'roles': []}), 400, None, 'roles')
	ok(server.delete(url), 204)
	refused(api.get('/groups/' + group), 403)
	assert ok(server.get(url_of(server, account) + '/groups'))['results'] == []
	ok(api.get('/orgs/%s' % server.org))


def test_only_the_organization_owner_invites(server, group):
	owner = caller(server, make_in_project(server, group, roles=['GROUP_OWNER']))
	account = make(server)
	refused(owner.post('/groups/%s/serviceAccounts/%s:invite' % (group, account['clientId']),
			   json={'roles': ['GROUP_READ_ONLY']}), 403)


def test_a_project_owner_manages_the_accounts_of_the_project(server, group):
	owner = caller(server, make_in_project(server, group, roles=['GROUP_OWNER']))
	account = make_in_project(server, group, api=owner)
	url = '/groups/%s/serviceAccounts/%s' % (group, account['clientId'])
	second = ok(owner.post(url + '/secrets', json={'secretExpiresAfterHours': 8}), 201)
	ok(Api(server, Bearer(token(server, account, second['secret']))).get('/groups/' + group))
	ok(owner.delete(url + '/secrets/' + second['id']), 204)
	refused(owner.delete(url + '/secrets/' + second['id']), 404)
	refused(owner.post(url + '/secrets', json={'secretExpiresAfterHours': 7}), 400)
	assert ok(owner.patch(url, json={'name': 'renamed'}))['name'] == 'renamed'
	ok(owner.post(url + '/accessList', json=[{'ipAddress': '192.0.2.1'}]))
	ok(owner.get(url + '/accessList'))
	ok(owner.delete(url + '/accessList/192.0.2.1'), 204)
	refused(owner.delete(url + '/accessList/192.0.2.1'), 404)
	refused(owner.post(url + '/accessList', json=[{}]), 400, None, '[0]')


def test_a_project_owner_cannot_become_an_organization_owner(server, group):
	"""Who makes a secret of an account is the account."""
	owner = caller(server, make_in_project(server, group, roles=['GROUP_OWNER']))
	powerful = make(server, roles=['ORG_OWNER'])
	url = '/groups/%s/serviceAccounts/%s' % (group, powerful['clientId'])
	ok(server.post(url + ':invite', json={'roles': ['GROUP_READ_ONLY']}))
	secret = powerful['secrets'][0]['id']
	refused(owner.post(url + '/secrets', json={'secretExpiresAfterHours': 8}), 403, 'SERVICE_ACCOUNT_NOT_OF_PROJECT')
	refused(owner.delete(url + '/secrets/' + secret), 403)
	refused(owner.patch(url, json={'name': 'x'}), 403)
	refused(owner.post(url + '/accessList', json=[{'ipAddress': '192.0.2.1'}]), 403)
	# Its roles in the project are the project's.
	ok(owner.patch(url, json={'roles': ['GROUP_CLUSTER_MANAGER']}))
	# One of another project is not this project's either.
	second = server.project()['id']
	theirs = make_in_project(server, second)
	url = '/groups/%s/serviceAccounts/%s' % (group, theirs['clientId'])
	refused(owner.get(url), 404)
	ok(server.post(url + ':invite', json={'roles': ['GROUP_READ_ONLY']}))
	refused(owner.post(url + '/secrets', json={'secretExpiresAfterHours': 8}), 403)
	ok(server.post(url + '/secrets', json={'secretExpiresAfterHours': 8}), 201)


# Access lists.

def test_access_list(server):
	account = make(server)
	url = url_of(server, account) + '/accessList'
	listed = ok(server.post(url, json=[{'ipAddress': '192.0.2.15', 'cidrBlock': None}, {'cidrBlock': '198.51.100.7/24'}]))
	assert [e['cidrBlock'] for e in listed['results']] == ['192.0.2.15/32', '198.51.100.0/24']
	assert all(e['requestCount'] == 0 and e['createdAt'] for e in listed['results']) and listed['totalCount'] == 2
	again = ok(server.post(url, json=[{'cidrBlock': '192.0.2.15/32'}]))
	assert again['results'] == listed['results']
	ok(server.delete(url + '/192.0.2.15'), 204)
	refused(server.delete(url + '/192.0.2.15'), 404)
	assert ok(server.get(url))['totalCount'] == 1
	refused(server.post(url, json=[{'cidrBlock': '192.0.2.0/40'}]), 400, None, '[0].cidrBlock')
	refused(server.post(url, json=[{'ipAddress': '192.0.2.1', 'requestCount': 4}]), 400, None, '[0].requestCount')
	refused(caller(server, make(server, roles=['ORG_READ_ONLY'])).post(url, json=[{'ipAddress': '192.0.2.1'}]), 403)
	refused(server.get('/orgs/%s/serviceAccounts/mdb_sa_id_%s/accessList' % (server.org, NO_ID)), 404)


def test_uses_are_counted(server):
	account = make(server)
	url, api = url_of(server, account) + '/accessList', caller(server, account)
	ok(server.post(url, json=[{'cidrBlock': '127.0.0.0/8'}]))
	for _ in range(3):
		ok(api.get('/orgs'))
	until(lambda: ok(server.get(url))['results'][0]['requestCount'] == 3, what='the count')
	entry = ok(server.get(url))['results'][0]
	assert entry['lastUsedAddress'] == '127.0.0.1' and entry['lastUsedAt'] >= entry['createdAt']
