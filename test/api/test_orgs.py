"""Organizations: create, list, get, update, delete, their projects and settings."""
import pytest

import client
from client import BASE, ID, NO_ID, Api, Bearer, links, ok, refused, unique
from derive import Api as Data

data = Data()


@pytest.fixture
def fresh(server):
	"""An organization with an owner and a plain member."""
	org, = server.seed({'name': unique('org'), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
								    {'type': 'serviceAccount', 'roles': ['ORG_MEMBER']}]})
	org['owner'], org['member'] = [server.api_for(p) for p in org['principals']]
	org['path'] = '/orgs/' + org['id']
	return org


def test_create(server):
	name = unique('Größe')
	doc = ok(server.post('/orgs', json={'name': name}), 201)
	assert doc['organization']['name'] == name and ID.match(doc['organization']['id'])
	path = '/orgs/' + doc['organization']['id']
	got = ok(server.get(path))
	assert got['name'] == name and got['isDeleted'] is False and links(got)['self'] == server.base_url + BASE + path
	assert doc['organization']['id'] in [x['id'] for x in ok(server.get('/orgs?itemsPerPage=500'))['results']]


def test_create_with_api_key(server):
	doc = ok(server.post('/orgs', json={'name': unique('keyed'), 'apiKey': {'desc': 'first key',
			'roles': ['ORG_OWNER']}}), 201)
	key, org = doc['apiKey'], doc['organization']['id']
	assert len(key['publicKey']) == 8 and key['privateKey'] and key['desc'] == 'first key'
	caller = Api(server, client.requests.auth.HTTPDigestAuth(key['publicKey'], key['privateKey']))
	assert ok(caller.get('/orgs/' + org))['id'] == org
	assert [x['id'] for x in ok(caller.get('/orgs'))['results']] == [org]
	refused(caller.get('/orgs/' + server.org), 401)


def test_create_with_service_account(server):
	doc = ok(server.post('/orgs', json={'name': unique('account'), 'serviceAccount': {
		'name': 'robot', 'description': 'does things', 'roles': ['ORG_READ_ONLY'],
		'secretExpiresAfterHours': 8}}), 201)
	account, org = doc['serviceAccount'], doc['organization']['id']
	secret = account['secrets'][0]['secret']
	caller = Api(server, Bearer(server.token({'clientId': account['clientId'], 'clientSecret': secret})))
	ok(caller.get('/orgs/' + org))
	refused(caller.patch('/orgs/' + org, json={'name': unique()}), 403)


def test_create_refusals(server):
	refused(server.post('/orgs', json={}), 400, None, 'name')
	for name in (' a', 'a ', ' ', 'a\tb'):
		refused(server.post('/orgs', json={'name': name}), 400, None, 'name')
	assert server.post('/orgs', json={'name': 'My first organization'}).status_code == 201
	refused(server.post('/orgs', json={'name': unique(), 'id': NO_ID}), 400, None, 'id')
	refused(server.post('/orgs', json={'name': unique(), 'apiKey': {'desc': 'x'}}), 400, None, 'apiKey.roles')
	refused(server.post('/orgs', json={'name': unique(), 'apiKey': {'desc': 'x', 'roles': []}}), 400, None,
			'apiKey.roles')
	refused(server.post('/orgs', json={'name': unique(), 'apiKey': {'desc': 'x', 'roles': ['KING']}}), 400, None,
			'apiKey.roles[0]')
	refused(server.post('/orgs', json={'name': unique(), 'serviceAccount': {'name': 'x', 'description': 'y',
			'roles': ['ORG_OWNER'],
		'secretExpiresAfterHours': -1}}), 400, None, 'serviceAccount.secretExpiresAfterHours')
	refused(server.anonymous.post('/orgs', json={'name': unique()}), 401)
	assert server.post('/orgs', json={'name': unique(), 'orgOwnerId': NO_ID}).status_code in (400, 404)


def test_secrets_are_shown_once(server):
	doc = ok(server.post('/orgs', json={'name': unique('once'), 'apiKey': {'desc': 'k', 'roles': ['ORG_OWNER']}}),
			201)
	text = server.get('/orgs/' + doc['organization']['id']).text + server.get('').text
	assert doc['apiKey']['privateKey'] not in text


def test_list(server, fresh):
	assert [x['id'] for x in ok(fresh['owner'].get('/orgs'))['results']] == [fresh['id']]
	assert [x['id'] for x in ok(fresh['member'].get('/orgs'))['results']] == [fresh['id']]
	assert fresh['id'] not in [x['id'] for x in ok(server.get('/orgs?itemsPerPage=500'))['results']]
	doc = ok(fresh['owner'].get('/orgs', params={'name': fresh['name']}))
	assert doc['totalCount'] == 1
	assert ok(fresh['owner'].get('/orgs', params={'name': 'nothing'}))['results'] == []
	refused(fresh['owner'].get('/orgs?nme=x'), 400, None, 'nme')


def test_list_filter_counts(server):
	names = [unique('filter') for _ in range(3)]
	for n in names:
		ok(server.post('/orgs', json={'name': n}), 201)
	doc = ok(server.get('/orgs', params={'name': names[1]}))
	assert [x['name'] for x in doc['results']] == [names[1]] and doc['totalCount'] == 1


def test_get_refusals(server, fresh):
	refused(server.get('/orgs/' + NO_ID), 404, 'ORG_NOT_FOUND')
	refused(server.get('/orgs/x'), 404, 'ORG_NOT_FOUND')
	assert fresh['name'] not in str(refused(server.get(fresh['path']), 401))
	ok(fresh['member'].get(fresh['path']))


def test_update(fresh):
	name = unique('renamed')
	assert ok(fresh['owner'].patch(fresh['path'], json={'name': name}))['name'] == name
	assert ok(fresh['owner'].get(fresh['path']))['name'] == name
	doc = ok(fresh['owner'].patch(fresh['path'], json={'name': name, 'skipDefaultAlertsSettings': True}))
	assert doc['name'] == name and doc['skipDefaultAlertsSettings'] is True


def test_update_refusals(fresh):
	refused(fresh['member'].patch(fresh['path'], json={'name': unique()}), 403)
	refused(fresh['owner'].patch(fresh['path'], json={'name': unique(), 'isDeleted': True}), 400, None, 'isDeleted')
	refused(fresh['owner'].patch(fresh['path'], json={'name': unique(), 'id': NO_ID}), 400, None, 'id')
	refused(fresh['owner'].patch(fresh['path'], json={'name': ''}), 400, None, 'name')
	refused(fresh['owner'].patch('/orgs/' + NO_ID, json={'name': unique()}), 404)


def test_delete(server, fresh):
	p = fresh['owner'].project(org=fresh['id'])
	refused(fresh['member'].delete(fresh['path']), 403)
	doc = refused(fresh['owner'].delete(fresh['path']), 409)
	assert ok(fresh['owner'].get(fresh['path']))['isDeleted'] is False, doc
	assert fresh['owner'].delete('/groups/' + p['id']).status_code == 204
	r = fresh['owner'].delete(fresh['path'])
	assert r.status_code == 204 and r.content == b''
	# its own credentials are gone with it; to others it does not exist
	assert fresh['owner'].get(fresh['path']).status_code in (401, 404)
	refused(server.get(fresh['path']), 404)


def test_delete_an_organization_of_ones_own(server):
	org = ok(server.post('/orgs', json={'name': unique('short')}), 201)['organization']['id']
	before = ok(server.get('/orgs'))['totalCount']
	assert server.delete('/orgs/' + org).status_code == 204
	refused(server.get('/orgs/' + org), 404)
	refused(server.delete('/orgs/' + org), 404)
	assert ok(server.get('/orgs'))['totalCount'] == before - 1


def test_projects_of_an_organization(server, fresh):
	names = ['alpha', 'beta', 'gamma']
	ids = [fresh['owner'].project(name=n, org=fresh['id'])['id'] for n in names]
	doc = ok(fresh['owner'].get(fresh['path'] + '/groups'))
	assert [x['id'] for x in doc['results']] == ids and doc['totalCount'] == 3
	assert all(x['orgId'] == fresh['id'] for x in doc['results'])
	assert [x['name'] for x in ok(fresh['owner'].get(fresh['path'] + '/groups?name=beta'))['results']] == ['beta']
	assert ok(fresh['owner'].get(fresh['path'] + '/groups?name=delta'))['totalCount'] == 0
	doc = ok(fresh['member'].get(fresh['path'] + '/groups'))
	assert doc['results'] == [], 'a member sees the projects in which it holds a role'
	refused(server.get(fresh['path'] + '/groups'), 401)
	refused(server.get('/orgs/%s/groups' % NO_ID), 404)


def test_settings(server, fresh):
	path = fresh['path'] + '/settings'
	doc = ok(fresh['owner'].get(path))
	assert doc['apiAccessListRequired'] is False and doc['multiFactorAuthRequired'] in (True, False)
	changed = ok(fresh['owner'].patch(path, json={'multiFactorAuthRequired': not doc['multiFactorAuthRequired'],
						       'securityContact': 'security@example.com'}))
	assert changed == {**doc, 'multiFactorAuthRequired': not doc['multiFactorAuthRequired'],
			   'securityContact': 'security@example.com'}
	assert ok(fresh['member'].get(path)) == changed
	refused(fresh['member'].patch(path, json={'restrictEmployeeAccess': True}), 403)
	refused(fresh['owner'].patch(path, json={'maxServiceAccountSecretValidityInHours': 7}), 400, None,
		'maxServiceAccountSecretValidityInHours')
	refused(fresh['owner'].patch(path, json={'customSessionTimeouts': {'idleSessionTimeoutInSeconds': 'x'}}), 400,
			None,
		'customSessionTimeouts.idleSessionTimeoutInSeconds')


def test_settings_refusals(server, fresh):
	path = fresh['path'] + '/settings'
	refused(fresh['owner'].patch(path, json={'noSuchSetting': True}), 400, None, 'noSuchSetting')
	refused(server.get(path), 401)
	refused(server.get('/orgs/%s/settings' % NO_ID), 404)


def test_access_list_can_be_demanded(server, fresh):
	"""The next request of a caller without a list is refused: settings take effect at once."""
	path = fresh['path'] + '/settings'
	org, = server.seed({'name': unique('listed'), 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER'], 'accessList': ['127.0.0.1']},
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	listed, unlisted = [server.api_for(p) for p in org['principals']]
	path = '/orgs/%s/settings' % org['id']
	ok(unlisted.get(path))
	ok(listed.patch(path, json={'apiAccessListRequired': True}))
	refused(unlisted.get(path), 403)
	ok(listed.patch(path, json={'apiAccessListRequired': False}))
	ok(unlisted.get(path))


# Who makes organizations, and how many.

def made_by(api, **more):
	return api.post('/orgs', json={'name': unique('more'), **more})


def test_owners_make_organizations(server):
	"""Any role but the owner's, in an organization or a project, makes none."""
	roles = data.roles
	org, = server.seed({'name': unique('org'), 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'roles': [r]} for r in roles['organization']] + [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': [r]}]} for r in roles['project']] + [
		{'type': 'user', 'username': unique() + '@example.com', 'roles': ['ORG_OWNER']}]})
	names = [*roles['organization'], *roles['project'], 'ORG_OWNER']
	for role, who in zip(names, org['principals']):
		if role == 'ORG_OWNER':
			ok(made_by(server.api_for(who)), 201)
		else:
			refused(made_by(server.api_for(who)), 403, 'ORG_CREATION_NOT_PERMITTED', 'ORG_OWNER')


def test_the_number_of_organizations_is_bounded(start_server):
	s = start_server('--orgs-per-caller', '3', '--orgs-max', '6')
	first = ok(made_by(s, apiKey={'desc': 'k', 'roles': ['ORG_OWNER']}), 201)
	key = first['apiKey']
	child = Api(s, client.requests.auth.HTTPDigestAuth(key['publicKey'], key['privateKey']))
	ok(made_by(child), 201)  # counts for who made its organization
	last = ok(made_by(s.digest), 201)['organization']['id']
	for api in (s, s.digest, child):
		said = refused(made_by(api), 403, 'TOO_MANY_ORGANIZATIONS', '3')
		assert '--orgs-per-caller' in said['detail']
	# A new key or account of the same organization begins no new count, a deleted organization gives room.
	fresh = ok(s.post('/orgs/%s/apiKeys' % s.org, json={'desc': 'k', 'roles': ['ORG_OWNER']}))
	refused(made_by(Api(s, client.requests.auth.HTTPDigestAuth(fresh['publicKey'], fresh['privateKey']))), 403, 'TOO_MANY_ORGANIZATIONS')
	ok(s.digest.delete('/orgs/' + last), 204)
	ok(made_by(s), 201)
	other, = s.seed({'name': unique('org'), 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})
	ok(made_by(s.api_for(other['principals'][0])), 201)
	said = refused(made_by(s.api_for(other['principals'][0])), 403, 'TOO_MANY_ORGANIZATIONS', '6')
	assert '--orgs-max' in said['detail']


@pytest.mark.parametrize('who, status', [('any', 201), ('none', 403)])
def test_the_operator_says_who_makes_organizations(start_server, who, status):
	s = start_server('--org-creation', who)
	org, = s.seed({'name': unique('org'), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_MEMBER']}]})
	for api in (s, s.digest, s.api_for(org['principals'][0])):
		answer = made_by(api)
		ok(answer, 201) if status == 201 else refused(answer, 403, 'ORG_CREATION_NOT_PERMITTED')
