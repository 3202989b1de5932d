"""Federation: settings, connected organizations, role mappings, identity providers, SAML metadata, signing keys."""
import contextlib, http.server, json, re, socket, ssl, subprocess, threading, time
import xml.etree.ElementTree as ET
from urllib.parse import urlsplit

import pytest

from client import BASE, ID, NO_ID, bare, links, ok, refused, unique, until

OKTA = re.compile(r'^[0-9a-f]{20}$')
OLD = {'Accept': 'application/vnd.svc.2023-01-01+json'}
DEAD = 'https://127.0.0.1:9'  # nobody listens there
MD = '{urn:oasis:names:tc:SAML:2.0:metadata}'


class Org:
	def __init__(self, server, doc):
		self.server, self.id, self.federation = server, doc['id'], doc['federationSettingsId']
		self.owner, self.member = [server.api_for(p) for p in doc['principals'][:2]]
		self.projects = [p['id'] for p in doc['projects']]
		self.base = '/federationSettings/' + self.federation
		self.config = self.base + '/connectedOrgConfigs/' + self.id
		self.mappings = self.config + '/roleMappings'
		self.providers = self.base + '/identityProviders'

	def oidc(self, **more):
		body = {'displayName': unique('oidc'), 'issuerUri': DEAD + '/' + unique(), 'protocol': 'OIDC', 'idpType': 'WORKFORCE',
			'audience': 'steward', 'clientId': 'steward', **more}
		if body['idpType'] == 'WORKLOAD':
			del body['clientId']
		return ok(self.owner.post(self.providers, json=body))

	def saml(self):
		return ok(self.owner.get(self.providers))['results'][0]

	def path(self, provider):
		return self.providers + '/' + (provider['oktaIdpId'] or provider['id'])

	def events(self, *types):
		if not types:
			return [e['eventTypeName'] for e in ok(self.owner.get('/orgs/%s/events' % self.id))['results']]
		return [e for e in ok(self.owner.get('/orgs/%s/events' % self.id, params={'eventType': ','.join(types)}))['results']]


def make(server, projects=('one', 'two')):
	doc, = server.seed({'name': unique('fed'), 'projects': list(projects), 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, {'type': 'serviceAccount', 'roles': ['ORG_READ_ONLY']}]})
	return Org(server, doc)


@pytest.fixture
def org(server):
	return make(server)


def connected(org):
	"""A second organization, made by the first one's owner, in the same federation."""
	doc = ok(org.owner.post('/orgs', json={'name': unique('second'), 'federationSettingsId': org.federation}), 201)
	assert doc['federationSettingsId'] == org.federation
	return doc['organization']['id']


def openssl(*args, cwd):
	subprocess.run(['openssl', *args], check=True, cwd=cwd, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


@pytest.fixture(scope='module')
def certificates(tmp_path_factory):
	"""(in force, expired, with an exponent that makes signatures slow to verify) as PEM."""
	folder = tmp_path_factory.mktemp('certs')
	new = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=idp', '-keyout', 'key.pem']
	openssl(*new, '-x509', '-days', '400', '-out', 'good.pem', cwd=folder)
	(folder / 'ca.conf').write_text('[ca]\ndefault_ca=a\n[a]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\n'
					'policy=p\n[p]\nCN=supplied\n')
	(folder / 'index').write_text('')
	(folder / 'serial').write_text('01\n')
	openssl(*new, '-out', 'request.pem', cwd=folder)
	openssl('ca', '-config', 'ca.conf', '-batch', '-selfsign', '-keyfile', 'key.pem', '-in', 'request.pem', '-startdate',
		'20200101000000Z', '-enddate', '20210101000000Z', '-notext', '-out', 'bad.pem', cwd=folder)
	openssl('req', '-newkey', 'rsa:2048', '-pkeyopt', 'rsa_keygen_pubexp:8589934609', '-nodes', '-subj', '/CN=idp', '-keyout', 'key.pem', '-x509', '-days',
		'400', '-out', 'slow.pem', cwd=folder)
	return tuple((folder / name).read_text() for name in ('good.pem', 'bad.pem', 'slow.pem'))


# Settings

def test_settings(server, org):
	doc = ok(org.owner.get('/orgs/%s/federationSettings' % org.id))
	assert doc['id'] == org.federation and doc['federatedDomains'] == [] and doc['hasRoleMappings'] is False
	assert 'identityProviderId' not in doc
	hrefs = links(doc)
	assert hrefs['self'].endswith('/orgs/%s/federationSettings' % org.id)
	assert {server.base_url + BASE + x for x in (org.providers, org.base + '/connectedOrgConfigs')} <= set(hrefs.values())
	refused(org.member.get('/orgs/%s/federationSettings' % org.id), 403)
	refused(server.get('/orgs/%s/federationSettings' % org.id), 401)
	ok(server.get('/orgs/%s/federationSettings' % server.org))


def test_new_organization_has_settings(server):
	doc = ok(server.post('/orgs', json={'name': unique('own')}), 201)
	assert ID.match(doc['federationSettingsId'])
	got = ok(server.get('/orgs/%s/federationSettings' % doc['organization']['id']))
	assert got['id'] == doc['federationSettingsId']


def test_join_only_own_federation(server, org):
	for federation in (org.federation, NO_ID):
		doc = refused(server.post('/orgs', json={'name': unique(), 'federationSettingsId': federation}), 400,
			      'INVALID_FEDERATION', 'federationSettingsId')
		assert org.id not in json.dumps(doc)


def test_settings_delete(server, org):
	second = connected(org)
	refused(org.owner.delete(org.base), 409, 'FEDERATION_HAS_CONNECTED_ORGS', '1')
	ok(org.owner.delete(org.base + '/connectedOrgConfigs/' + second), 204)
	provider = org.oidc()
	ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'dataAccessIdentityProviderIds': [provider['id']]}))
	refused(org.owner.delete(org.base), 409, 'FEDERATION_HAS_ACTIVE_IDENTITY_PROVIDERS', '1')
	ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'dataAccessIdentityProviderIds': []}))
	refused(org.member.delete(org.base), 403)
	refused(server.delete(org.base), 401)
	saml = org.saml()['oktaIdpId']
	ok(org.owner.delete(org.base), 204)
	refused(org.owner.delete(org.base), 404)
	refused(org.owner.get(org.providers + '/' + provider['id']), 404)
	assert org.events('FEDERATION_SETTINGS_DELETED')
	# The organization starts over.
	doc = ok(org.owner.get('/orgs/%s/federationSettings' % org.id))
	assert doc['id'] != org.federation
	path = '/federationSettings/%s/identityProviders' % doc['id']
	assert ok(org.owner.get(path, params={'protocol': 'OIDC'}))['totalCount'] == 0
	first, = ok(org.owner.get(path))['results']
	assert first['oktaIdpId'] != saml
	refused(org.owner.get('%s/%s' % (path, saml)), 404)


# Connected organizations

def test_config(server, org):
	doc = ok(org.owner.get(org.config))
	assert bare(doc) == {'orgId': org.id, 'domainRestrictionEnabled': False, 'domainAllowList': [], 'roleMappings': [],
			     'dataAccessIdentityProviderIds': [], 'postAuthRoleGrants': [], 'userConflicts': [],
			     'instantUserProvisioningDisabled': False}
	assert any(href.endswith('/roleMappings') for href in links(doc).values())
	refused(org.member.get(org.config), 403)
	refused(server.get(org.config), 401)
	refused(org.owner.get(org.base + '/connectedOrgConfigs/' + server.org), 404)


def test_config_update(org):
	saml, oidc = org.saml(), org.oidc()
	answer = org.owner.patch(org.config, json={
		'domainRestrictionEnabled': True, 'domainAllowList': ['Example.COM', 'sub.example.org'],
		'identityProviderId': saml['oktaIdpId'], 'dataAccessIdentityProviderIds': [oidc['id']],
		'postAuthRoleGrants': ['ORG_MEMBER', 'ORG_READ_ONLY'], 'instantUserProvisioningDisabled': True,
		'roleMappings': [{'externalGroupName': 'dev', 'roleAssignments': [{'groupId': org.projects[0], 'role': 'GROUP_OWNER'}]}]})
	doc = ok(answer)
	assert doc['domainAllowList'] == ['example.com', 'sub.example.org'] and doc['domainRestrictionEnabled'] is True
	assert doc['identityProviderId'] == saml['oktaIdpId'] and doc['dataAccessIdentityProviderIds'] == [oidc['id']]
	assert set(doc['postAuthRoleGrants']) == {'ORG_MEMBER', 'ORG_READ_ONLY'} and doc['instantUserProvisioningDisabled'] is True
	assert [m['externalGroupName'] for m in doc['roleMappings']] == ['dev'] and ID.match(doc['roleMappings'][0]['id'])
	assert bare(ok(org.owner.get(org.config))) == bare(doc)
	settings = ok(org.owner.get('/orgs/%s/federationSettings' % org.id))
	assert settings['identityProviderId'] == saml['oktaIdpId'] and settings['identityProviderStatus'] == 'INACTIVE'
	assert settings['hasRoleMappings'] is True
	assert ok(org.owner.get(org.path(saml)))['associatedOrgs'][0]['orgId'] == org.id
	types = org.events()
	for t in ('RESTRICT_ORG_MEMBERSHIP_ENABLED', 'OIDC_IDENTITY_PROVIDER_ENABLED', 'ROLE_MAPPING_CREATED',
		  'FEDERATION_SETTINGS_UPDATED'):
		assert t in types, t
	# One field at a time; null takes away; what was sent back unchanged is accepted.
	refused(org.owner.patch(org.config, json={'domainRestrictionEnabled': False}, headers={'If-Match': '"1"'}), 412)
	doc = ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'identityProviderId': None,
						   'instantUserProvisioningDisabled': None},
				 headers={'If-Match': answer.headers['ETag']}))
	assert 'identityProviderId' not in doc and doc['instantUserProvisioningDisabled'] is False
	assert doc['domainAllowList'] == ['example.com', 'sub.example.org'] and len(doc['roleMappings']) == 1
	assert 'RESTRICT_ORG_MEMBERSHIP_DISABLED' in org.events()


def test_config_update_refusals(server, org):
	saml, oidc, other = org.saml(), org.oidc(), make(server)
	patch = lambda **more: org.owner.patch(org.config, json={'domainRestrictionEnabled': False, **more})
	refused(org.owner.patch(org.config, json={}), 400, None, 'domainRestrictionEnabled')
	refused(patch(orgId=org.id), 400, None, 'orgId')
	refused(patch(domainAllowList=['ok.example', 'no domain', '10.0.0.1', 'a', '-x.com', 'OK.example']), 400, None,
		'domainAllowList[1]', 'domainAllowList[2]', 'domainAllowList[3]', 'domainAllowList[4]', 'domainAllowList[5]')
	refused(patch(identityProviderId='0' * 20), 400, None, 'identityProviderId')
	refused(patch(identityProviderId=other.saml()['oktaIdpId']), 400, None, 'identityProviderId')
	refused(patch(identityProviderId=oidc['id']), 400, None, 'identityProviderId')
	refused(patch(dataAccessIdentityProviderIds=[oidc['id'], saml['id'], NO_ID]), 400, None,
		'dataAccessIdentityProviderIds[1]', 'dataAccessIdentityProviderIds[2]')
	refused(patch(postAuthRoleGrants=['KING']), 400, None, 'postAuthRoleGrants[0]')
	refused(patch(userConflicts=[{'emailAddress': 'a@b.example', 'federationSettingsId': org.federation, 'firstName': 'a',
				      'lastName': 'b'}]), 400, None, 'userConflicts')
	ok(patch(userConflicts=[]))
	mapping = lambda *roles: {'externalGroupName': 'g', 'roleAssignments': list(roles)}
	refused(patch(roleMappings=[mapping({'groupId': org.projects[0], 'role': 'ORG_OWNER'})]), 400, None,
		'roleMappings[0].roleAssignments[0].role')
	refused(patch(roleMappings=[mapping(), mapping({'orgId': org.id, 'role': 'ORG_OWNER'})]), 409, 'DUPLICATE_NAME', 'g')
	refused(org.member.patch(org.config, json={'domainRestrictionEnabled': False}), 403)
	refused(server.patch(org.config, json={'domainRestrictionEnabled': False}), 401)


def test_config_replaces_mappings(org):
	mapping = lambda name, role: {'externalGroupName': name, 'roleAssignments': [{'orgId': org.id, 'role': role}]}
	put = lambda *list: ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'roleMappings': list_of(list)}))
	list_of = lambda x: [*x]
	first = {m['externalGroupName']: m['id'] for m in put(mapping('a', 'ORG_MEMBER'), mapping('b', 'ORG_OWNER'))['roleMappings']}
	doc = put(mapping('b', 'ORG_READ_ONLY'), mapping('c', 'ORG_OWNER'))
	second = {m['externalGroupName']: m['id'] for m in doc['roleMappings']}
	assert set(second) == {'b', 'c'} and second['b'] == first['b']
	assert {m['externalGroupName']: m['roleAssignments'][0]['role'] for m in doc['roleMappings']} == \
		{'b': 'ORG_READ_ONLY', 'c': 'ORG_OWNER'}
	for t in ('ROLE_MAPPING_CREATED', 'ROLE_MAPPING_UPDATED', 'ROLE_MAPPING_DELETED'):
		assert t in org.events(), t


def test_connected_list_and_disconnect(server, org):
	second = connected(org)
	path = org.base + '/connectedOrgConfigs'
	doc = ok(org.owner.get(path))
	assert [x['orgId'] for x in doc['results']] == [org.id, second] and doc['totalCount'] == 2
	page = ok(org.owner.get(path, params={'itemsPerPage': 1, 'pageNum': 2}))
	assert [x['orgId'] for x in page['results']] == [second] and 'previous' in links(page) and 'next' not in links(page)
	assert 'totalCount' not in ok(org.owner.get(path, params={'includeCount': 'false'}))
	refused(org.member.get(path), 403)
	refused(server.get(path), 401)
	# Both see the same providers; settings name the same federation.
	assert ok(org.owner.get('/orgs/%s/federationSettings' % second))['id'] == org.federation
	ok(org.owner.post(org.base + '/connectedOrgConfigs/%s/roleMappings' % second,
			  json={'externalGroupName': 'g', 'roleAssignments': [{'orgId': second, 'role': 'ORG_OWNER'}]}))
	refused(org.member.delete(path + '/' + second), 401)
	refused(org.member.delete(org.config), 403)
	ok(org.owner.delete(path + '/' + second), 204)
	refused(org.owner.get(path + '/' + second), 404)
	own = ok(org.owner.get('/orgs/%s/federationSettings' % second))
	assert own['id'] != org.federation and own['hasRoleMappings'] is False
	refused(org.owner.delete(org.config), 409, 'CANNOT_DISCONNECT_LAST_ORG', org.id)
	refused(org.owner.delete(path + '/' + second), 404)


def test_owner_of_one_part_sees_only_that(org):
	second = connected(org)
	key = ok(org.owner.post('/orgs', json={'name': unique('third'), 'federationSettingsId': org.federation, 'apiKey': {
		'desc': 'k', 'roles': ['ORG_OWNER']}}), 201)
	narrow = org.server.api_for({'type': 'apiKey', **key['apiKey']})
	third = key['organization']['id']
	oidc = org.oidc()
	for x in (org.id, third):
		ok(org.owner.patch(org.base + '/connectedOrgConfigs/' + x,
				   json={'domainRestrictionEnabled': False, 'dataAccessIdentityProviderIds': [oidc['id']]}))
	assert [x['orgId'] for x in ok(narrow.get(org.base + '/connectedOrgConfigs'))['results']] == [third]
	assert [x['orgId'] for x in ok(narrow.get(org.path(oidc)))['associatedOrgs']] == [third]
	assert {x['orgId'] for x in ok(org.owner.get(org.path(oidc)))['associatedOrgs']} == {org.id, third}
	refused(narrow.get(org.base + '/connectedOrgConfigs/' + second), 401)
	refused(narrow.delete(org.path(oidc)), 409, 'IDENTITY_PROVIDER_IN_USE')
	# It signs in people of both: who owns one part could lead those of the other to an issuer of their own.
	evil = {'issuerUri': DEAD + '/' + unique('evil')}
	refused(narrow.patch(org.path(oidc), json=evil), 409, 'IDENTITY_PROVIDER_IN_USE')
	ok(org.owner.patch(org.base + '/connectedOrgConfigs/' + org.id,
			   json={'domainRestrictionEnabled': False, 'dataAccessIdentityProviderIds': []}))
	ok(narrow.patch(org.path(oidc), json=evil))


def test_deleted_organization_leaves(org):
	second = connected(org)
	ok(org.owner.delete('/orgs/' + second), 204)
	assert [x['orgId'] for x in ok(org.owner.get(org.base + '/connectedOrgConfigs'))['results']] == [org.id]


def test_domain_restriction(server, org):
	user = lambda domain: {'username': '%s@%s' % (unique('u'), domain), 'roles': {'orgRoles': ['ORG_MEMBER']}}
	path = '/orgs/%s/users' % org.id
	assert org.owner.post(path, json=user('anywhere.example')).status_code in (200, 201)
	ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': True, 'domainAllowList': ['corp.example']}))
	refused(org.owner.post(path, json=user('anywhere.example')), 400, 'USER_DOMAIN_NOT_ALLOWED')
	assert org.owner.post(path, json=user('CORP.example')).status_code in (200, 201)
	# The provider's own domains count too.
	saml = org.saml()
	ok(org.owner.patch(org.path(saml), json={'ssoDebugEnabled': False, 'associatedDomains': ['idp.example']}))
	ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': True, 'identityProviderId': saml['oktaIdpId']}))
	assert org.owner.post(path, json=user('idp.example')).status_code in (200, 201)
	assert ok(org.owner.get('/orgs/%s/federationSettings' % org.id))['federatedDomains'] == ['idp.example']


def test_conflicts(server):
	"""The first organization's owner has an address of no domain."""
	base = '/federationSettings/%s/connectedOrgConfigs/%s' % (
		ok(server.get('/orgs/%s/federationSettings' % server.org))['id'], server.org)
	doc = ok(server.patch(base, json={'domainRestrictionEnabled': True, 'domainAllowList': ['corp.example']}))
	try:
		mine = [x for x in doc['userConflicts'] if x['userId'] == server.bootstrap['userId']]
		assert mine and mine[0]['emailAddress'] == 'owner@localhost'
	finally:
		ok(server.patch(base, json={'domainRestrictionEnabled': False, 'domainAllowList': []}))
	assert ok(server.get(base))['userConflicts'] == []


# Role mappings

def test_role_mappings(server, org):
	body = {'externalGroupName': 'dev/ops', 'roleAssignments': [
		{'orgId': org.id, 'role': 'ORG_MEMBER'}, {'groupId': org.projects[0], 'role': 'GROUP_DATA_ACCESS_ADMIN'}]}
	doc = ok(org.owner.post(org.mappings, json=body))
	assert ID.match(doc['id']) and {k: doc[k] for k in body} == body
	path = org.mappings + '/' + doc['id']
	assert bare(ok(org.owner.get(path))) == bare(doc)
	listed = ok(org.owner.get(org.mappings))
	assert [bare(x) for x in listed['results']] == [bare(doc)] and listed['totalCount'] == 1
	refused(org.owner.post(org.mappings, json=body), 409, None, 'dev/ops')
	other = ok(org.owner.post(org.mappings, json={'externalGroupName': 'qa', 'roleAssignments': []}))
	refused(org.owner.put(path, json={**body, 'externalGroupName': 'qa'}), 409, None, 'qa')
	changed = ok(org.owner.put(path, json={'externalGroupName': 'dev', 'roleAssignments': [{'orgId': org.id, 'role': 'ORG_OWNER'}]}))
	assert changed['id'] == doc['id'] and changed['externalGroupName'] == 'dev' and len(changed['roleAssignments']) == 1
	assert len(ok(org.owner.get(org.config))['roleMappings']) == 2
	ok(org.owner.delete(org.mappings + '/' + other['id']), 204)
	refused(org.owner.delete(org.mappings + '/' + other['id']), 404)
	for method, at in (('GET', org.mappings), ('GET', path), ('DELETE', path)):
		refused(org.member.request(method, at), 403)
		refused(server.request(method, at), 401)
	refused(org.member.post(org.mappings, json=body), 403)
	refused(org.member.put(path, json=body), 403)
	refused(org.owner.get(org.mappings + '/' + NO_ID), 404)
	for t in ('ROLE_MAPPING_CREATED', 'ROLE_MAPPING_UPDATED', 'ROLE_MAPPING_DELETED'):
		assert org.events(t), t


def test_role_mapping_refusals(server, org):
	other = make(server)
	post = lambda *roles: org.owner.post(org.mappings, json={'externalGroupName': unique(), 'roleAssignments': list(roles)})
	at = lambda i, field='': 'roleAssignments[%d]%s' % (i, field)
	refused(post({'orgId': org.id, 'role': 'KING'}), 400, None, at(0, '.role'))
	refused(post({'orgId': org.id, 'role': 'GROUP_OWNER'}), 400, None, at(0, '.role'))
	refused(post({'groupId': org.projects[0], 'role': 'ORG_OWNER'}), 400, None, at(0, '.role'))
	refused(post({'orgId': org.id}), 400, None, at(0, '.role'))
	refused(post({'role': 'ORG_OWNER'}), 400, None, at(0))
	refused(post({'orgId': org.id, 'groupId': org.projects[0], 'role': 'ORG_OWNER'}), 400, None, at(0))
	refused(post({'orgId': other.id, 'role': 'ORG_OWNER'}), 400, None, at(0, '.orgId'))
	refused(post({'orgId': org.id, 'role': 'ORG_OWNER'}, {'groupId': other.projects[0], 'role': 'GROUP_OWNER'},
		     {'groupId': NO_ID, 'role': 'GROUP_OWNER'}), 400, None, at(1, '.groupId'), at(2, '.groupId'))
	refused(org.owner.post(org.mappings, json={'externalGroupName': 'x'}), 400, None, 'roleAssignments')
	refused(org.owner.post(org.mappings, json={'externalGroupName': 'x' * 201, 'roleAssignments': []}), 400, None, 'externalGroupName')
	assert ok(org.owner.get(org.mappings))['totalCount'] == 0


def test_role_mappings_forget_a_deleted_project(org):
	doc = ok(org.owner.post(org.mappings, json={'externalGroupName': 'g', 'roleAssignments': [
		{'groupId': org.projects[0], 'role': 'GROUP_OWNER'}, {'groupId': org.projects[1], 'role': 'GROUP_OWNER'}]}))
	ok(org.owner.delete('/groups/' + org.projects[0]), 204)
	left = ok(org.owner.get(org.mappings + '/' + doc['id']))['roleAssignments']
	assert [x['groupId'] for x in left] == [org.projects[1]]


def test_role_mappings_are_bounded(org):
	made = [{'externalGroupName': 'g%d' % i, 'roleAssignments': []} for i in range(100)]
	ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'roleMappings': made}))
	assert len(ok(org.owner.get(org.mappings))['results']) == 100
	refused(org.owner.post(org.mappings, json={'externalGroupName': 'one more', 'roleAssignments': []}), 409, 'TOO_MANY_ROLE_MAPPINGS')
	refused(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'roleMappings': made + [
		{'externalGroupName': 'one more', 'roleAssignments': []}]}), 409, 'TOO_MANY_ROLE_MAPPINGS')


# Identity providers

def test_saml_lifecycle(server, org, certificates):
	good, expired, _ = certificates
	doc = org.saml()
	assert doc['protocol'] == 'SAML' and doc['idpType'] == 'WORKFORCE' and doc['status'] == 'INACTIVE'
	assert ID.match(doc['id']) and OKTA.match(doc['oktaIdpId']) and doc['associatedOrgs'] == []
	path = org.providers + '/' + doc['oktaIdpId']
	assert bare(ok(org.owner.get(path))) == bare(ok(org.owner.get(org.providers + '/' + doc['id']))) == bare(doc)
	refused(org.owner.patch(path, json={'ssoDebugEnabled': False, 'status': 'ACTIVE'}), 400, None, 'issuerUri', 'ssoUrl',
		'pemFileInfo.certificates')
	refused(org.owner.patch(path, json={'displayName': 'x'}), 400, None, 'ssoDebugEnabled')
	body = {'ssoDebugEnabled': True, 'displayName': 'Corp', 'description': 'Sign in here', 'issuerUri': 'urn:example:idp',
		'ssoUrl': 'https://idp.example/sso?x=1', 'requestBinding': 'HTTP-REDIRECT', 'responseSignatureAlgorithm': 'SHA-256',
		'slug': unique('slug'), 'associatedDomains': ['Corp.Example'],
		'pemFileInfo': {'fileName': 'idp.pem', 'certificates': [{'content': expired}]}}
	got = ok(org.owner.patch(path, json=body))
	for field in ('displayName', 'description', 'issuerUri', 'ssoUrl', 'requestBinding', 'slug', 'ssoDebugEnabled'):
		assert got[field] == body[field], field
	assert got['associatedDomains'] == ['corp.example'] and got['updatedAt'] and got['status'] == 'INACTIVE'
	refused(org.owner.patch(path, json={'ssoDebugEnabled': True, 'status': 'ACTIVE'}), 400, None, 'pemFileInfo.certificates')
	got = ok(org.owner.patch(path, json={'ssoDebugEnabled': False, 'status': 'ACTIVE', 'description': None, 'pemFileInfo': {
		'fileName': 'idp.pem', 'certificates': [{'content': expired}, {'content': good, 'notAfter': '2001-01-01T00:00:00Z'}]}}))
	assert got['status'] == 'ACTIVE' and 'description' not in got and got['pemFileInfo']['fileName'] == 'idp.pem'
	dates = got['pemFileInfo']['certificates']
	assert [set(x) for x in dates] == [{'notBefore', 'notAfter'}] * 2 and dates[1]['notAfter'] > '2026'
	end = subprocess.run(['openssl', 'x509', '-noout', '-enddate', '-dateopt', 'iso_8601'], input=good, text=True, check=True,
			     stdout=subprocess.PIPE).stdout.split('=')[1].strip().replace(' ', 'T')
	assert dates[1]['notAfter'] == end
	assert got['acsUrl'].startswith(server.base_url + '/') and got['audienceUri'].startswith(server.base_url + '/')
	refused(org.owner.patch(path, json={'ssoDebugEnabled': False, 'pemFileInfo': {'certificates': []}}), 400, None,
		'pemFileInfo.certificates')
	refused(org.owner.delete(org.base), 409, 'FEDERATION_HAS_ACTIVE_IDENTITY_PROVIDERS')
	assert ok(org.owner.patch(path, json={'ssoDebugEnabled': False, 'status': 'INACTIVE'}))['status'] == 'INACTIVE'
	types = org.events()
	for t in ('IDENTITY_PROVIDER_UPDATED', 'IDENTITY_PROVIDER_ACTIVATED', 'IDENTITY_PROVIDER_DEACTIVATED', 'DOMAINS_ASSOCIATED'):
		assert t in types, t


def test_saml_refusals(server, org, certificates):
	path = org.path(org.saml())
	patch = lambda **more: org.owner.patch(path, json={'ssoDebugEnabled': False, **more})
	refused(patch(issuerUri='no uri'), 400, None, 'issuerUri')
	refused(patch(ssoUrl='http://idp.example/'), 400, None, 'ssoUrl')
	refused(patch(ssoUrl='https://user:secret@idp.example/'), 400, None, 'ssoUrl')
	refused(patch(slug='Not A Slug'), 400, None, 'slug')
	refused(patch(associatedDomains=['x']), 400, None, 'associatedDomains[0]')
	refused(patch(protocol='OIDC'), 400, None, 'protocol')
	refused(patch(idpType='WORKLOAD'), 400, None, 'idpType')
	refused(patch(displayName=''), 400, None, 'displayName')
	refused(patch(clientId='x'), 400, None, 'clientId')
	for content in ('', 'rubbish', certificates[2], certificates[0] * 2, certificates[0].replace('\n', '\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,'
			'00112233445566778899AABBCCDDEEFF\n\n', 1), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'):
		refused(patch(pemFileInfo={'certificates': [{'content': content}]}), 400, None, 'pemFileInfo.certificates[0].content')
	refused(patch(pemFileInfo={'certificates': [{}]}), 400, None, 'pemFileInfo.certificates[0].content')
	refused(patch(pemFileInfo={'certificates': [{'content': certificates[0]}] * 11}), 400, None, 'pemFileInfo.certificates')
	slug, other = unique('slug'), make(server)
	ok(patch(slug=slug))
	refused(other.owner.patch(other.path(other.saml()), json={'ssoDebugEnabled': False, 'slug': slug}), 409, None, slug)
	ok(patch(slug=unique('slug')))
	ok(other.owner.patch(other.path(other.saml()), json={'ssoDebugEnabled': False, 'slug': slug}))
	refused(org.member.patch(path, json={'ssoDebugEnabled': False}), 403)
	refused(other.owner.patch(path, json={'ssoDebugEnabled': False}), 401)
	refused(org.owner.patch(org.providers + '/' + other.saml()['oktaIdpId'], json={'ssoDebugEnabled': False}), 404)
	refused(org.owner.delete(path + '/jwks'), 400)


def test_more_saml_providers(org):
	doc = ok(org.owner.post(org.providers, json={'displayName': 'Second', 'protocol': 'SAML'}))
	assert doc['protocol'] == 'SAML' and OKTA.match(doc['oktaIdpId'])
	assert ok(org.owner.get(org.path(doc)))['status'] == 'INACTIVE'
	refused(org.owner.post(org.providers, json={'displayName': 'Second', 'protocol': 'SAML'}), 409, None, 'Second')
	refused(org.owner.post(org.providers, json={'displayName': 'x', 'protocol': 'SAML', 'clientId': 'y'}), 400, None, 'clientId')
	refused(org.owner.post(org.providers, json={'displayName': 'x', 'protocol': 'SAML', 'idpType': 'WORKLOAD'}), 400, None, 'idpType')
	domains = {'ssoDebugEnabled': False, 'associatedDomains': ['a.example']}
	ok(org.owner.patch(org.path(org.saml()), json=domains))
	refused(org.owner.patch(org.path(doc), json=domains), 409, None, 'a.example')
	ok(org.owner.delete(org.path(doc)), 204)
	refused(org.owner.get(org.path(doc)), 404)


def test_oidc_workforce(server, org):
	body = {'displayName': unique(), 'description': 'd', 'issuerUri': DEAD + '/realm', 'protocol': 'OIDC', 'idpType': 'WORKFORCE',
		'audience': 'aud', 'clientId': 'cid', 'authorizationType': 'USER', 'userClaim': 'email', 'groupsClaim': 'roles',
		'requestedScopes': ['openid', 'profile'], 'associatedDomains': ['Corp.Example']}
	doc = ok(org.owner.post(org.providers, json=body))
	assert {k: doc[k] for k in body} == {**body, 'associatedDomains': ['corp.example']}
	assert doc['oktaIdpId'] is None and doc['associatedOrgs'] == [] and doc['createdAt'] and 'updatedAt' not in doc
	path = org.path(doc)
	got = ok(org.owner.get(path))
	assert bare(got) == bare(doc) and links(got)['self'].endswith(path) and len(got['links']) == 1
	refused(org.owner.post(org.providers, json={**body, 'associatedDomains': [], 'displayName': 'other'}), 409, None, body['issuerUri'])
	refused(org.owner.post(org.providers, json={**body, 'issuerUri': DEAD}), 409, None, body['displayName'])
	refused(org.owner.post(org.providers, json={**body, 'displayName': 'x', 'issuerUri': DEAD}), 409, None, 'corp.example')
	changed = ok(org.owner.patch(path, json={'displayName': 'New', 'issuerUri': DEAD + '/other', 'description': None}))
	assert changed['displayName'] == 'New' and changed['issuerUri'] == DEAD + '/other' and changed['updatedAt']
	assert 'description' not in changed and changed['clientId'] == 'cid'
	for t in ('IDENTITY_PROVIDER_CREATED', 'OIDC_IDENTITY_PROVIDER_UPDATED', 'DOMAINS_ASSOCIATED'):
		assert (t in org.events()) == (t != 'DOMAINS_ASSOCIATED'), t
	ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'dataAccessIdentityProviderIds': [doc['id']]}))
	assert [x['orgId'] for x in ok(org.owner.get(path))['associatedOrgs']] == [org.id]
	refused(org.owner.delete(path), 409, 'IDENTITY_PROVIDER_IN_USE')
	ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'dataAccessIdentityProviderIds': []}))
	refused(org.member.delete(path), 403)
	ok(org.owner.delete(path), 204)
	refused(org.owner.delete(path), 404)
	assert org.events('IDENTITY_PROVIDER_DELETED')


def test_oidc_workload(org):
	doc = org.oidc(idpType='WORKLOAD')
	assert doc['idpType'] == 'WORKLOAD' and doc['userClaim'] == 'sub' and 'associatedDomains' not in doc
	ok(org.owner.get(org.path(doc)))
	refused(org.owner.patch(org.path(doc), json={'clientId': 'x'}), 400, None, 'clientId')
	refused(org.owner.patch(org.path(doc), json={'idpType': 'WORKFORCE'}), 400, None, 'idpType')
	assert ok(org.owner.patch(org.path(doc), json={'audience': 'new'}))['audience'] == 'new'
	refused(org.owner.post(org.providers, json={'displayName': 'x', 'issuerUri': DEAD, 'idpType': 'WORKLOAD', 'clientId': 'c'}), 400,
		None, 'clientId')


def test_oidc_refusals(server, org):
	post = lambda **body: org.owner.post(org.providers, json=body)
	refused(post(), 400, None, 'displayName', 'issuerUri')
	for issuer in ('http://x.example', 'ftp://x.example', 'x', 'https://', 'https://x.example/?q=1', 'https://x.example/#f',
		       'https://u:p@x.example'):
		refused(post(displayName='x', issuerUri=issuer), 400, None, 'issuerUri')
	refused(post(displayName='x', issuerUri=DEAD, userClaim=''), 400, None, 'userClaim')
	refused(post(displayName='x', issuerUri=DEAD, audience='x' * 1025), 400, None, 'audience')
	refused(post(displayName='x', issuerUri=DEAD, requestedScopes=['a b']), 400, None, 'requestedScopes[0]')
	refused(post(displayName='x', issuerUri=DEAD, nonsense=1), 400, None, 'nonsense')
	body = {'displayName': 'x', 'issuerUri': DEAD}
	refused(org.member.post(org.providers, json=body), 403)
	refused(server.post(org.providers, json=body), 401)


def test_provider_list(server, org):
	workforce, workload = org.oidc(), org.oidc(idpType='WORKLOAD')
	ids = lambda **params: [x['id'] for x in ok(org.owner.get(org.providers, params=params))['results']]
	saml = org.saml()['id']
	assert ids() == [saml]
	assert ids(protocol='OIDC') == [workforce['id']]
	assert ids(protocol='OIDC', idpType='WORKLOAD') == [workload['id']]
	assert ids(protocol=['SAML', 'OIDC'], idpType=['WORKFORCE', 'WORKLOAD']) == [saml, workforce['id'], workload['id']]
	assert ids(protocol='SAML,OIDC', itemsPerPage=1, pageNum=2) == [workforce['id']]
	doc = ok(org.owner.get(org.providers, params={'protocol': 'SAML,OIDC', 'itemsPerPage': 1}))
	assert doc['totalCount'] == 2 and 'next' in links(doc)
	refused(org.owner.get(org.providers, params={'protocol': 'LDAP'}), 400, None, 'protocol')
	refused(org.member.get(org.providers), 403)
	refused(server.get(org.providers), 401)


def test_providers_are_bounded(org):
	for i in range(49):
		ok(org.owner.post(org.providers, json={'displayName': 'p%d' % i, 'protocol': 'SAML'}))
	refused(org.owner.post(org.providers, json={'displayName': 'one more', 'protocol': 'SAML'}), 409, 'TOO_MANY_IDENTITY_PROVIDERS')


def test_older_version(org):
	saml, oidc = org.saml(), org.oidc()
	doc = org.owner.get(org.path(saml), headers=OLD)
	assert ok(doc)['protocol'] == 'SAML' and '2023-01-01' in doc.headers['Content-Type'] and 'Sunset' in doc.headers
	refused(org.owner.get(org.path(oidc), headers=OLD), 404)
	assert ok(org.owner.patch(org.path(saml), json={'ssoDebugEnabled': True}, headers=OLD))['ssoDebugEnabled'] is True
	refused(org.owner.patch(org.path(saml), json={'displayName': 'x'}, headers=OLD), 400, None, 'ssoDebugEnabled')
	refused(org.owner.patch(org.path(oidc), json={'ssoDebugEnabled': True}, headers=OLD), 404)


def test_events_reach_every_part(org):
	second = connected(org)
	org.oidc()
	for x in (org.id, second):
		types = [e['eventTypeName'] for e in ok(org.owner.get('/orgs/%s/events' % x))['results']]
		assert types.count('IDENTITY_PROVIDER_CREATED') == 1


# Metadata

def test_metadata(server, org):
	saml = ok(org.owner.get(org.path(org.saml())))
	href, = [h for r, h in links(saml).items() if r.endswith('metadata.xml')]
	answer = org.owner.get(href)
	assert answer.status_code == 200 and re.match(r'application/vnd\.svc\.2023-01-01\+json', answer.headers['Content-Type'])
	root = ET.fromstring(answer.json())
	assert root.tag == MD + 'EntityDescriptor' and root.get('entityID') == saml['audienceUri']
	sp = root.find(MD + 'SPSSODescriptor')
	assert sp.get('protocolSupportEnumeration') == 'urn:oasis:names:tc:SAML:2.0:protocol' and sp.get('WantAssertionsSigned') == 'true'
	assert [x.tag for x in sp] == [MD + 'NameIDFormat'] * 2 + [MD + 'AssertionConsumerService']
	acs = sp.find(MD + 'AssertionConsumerService')
	assert acs.get('Location') == saml['acsUrl'] and acs.get('index') == '0'
	assert acs.get('Binding') == 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST'
	wrapped = ok(org.owner.get(href + '?envelope=true'))
	assert wrapped['status'] == 200 and wrapped['content'] == answer.json()
	assert ok(org.owner.head(href)) is None
	refused(org.owner.get(org.providers + '/%s/metadata.xml' % org.oidc()['id']), 404)
	refused(org.owner.get(org.providers + '/%s/metadata.xml' % ('0' * 20)), 404)
	refused(org.member.get(href), 403)
	refused(server.get(href), 401)


# Signing keys

class Issuer:
	"""An OpenID provider with a certificate of its own, as far as it publishes its keys."""

	def __init__(self, folder):
		self.asked, self.keys, self.status, self.named = [], [], 200, None
		self.answers = threading.Event()  # clear: whoever asks is held until it is set
		self.answers.set()
		self.cert = folder / 'issuer.pem'
		openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=issuer',
			'-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', 'key.pem', '-out', 'issuer.pem', cwd=folder)
		issuer = self

		class Handler(http.server.BaseHTTPRequestHandler):
			def do_GET(self):
				issuer.asked.append(self.path)
				body = issuer.answer(self.path)
				issuer.answers.wait(60)
				data = body if isinstance(body, bytes) else json.dumps(body).encode()
				with contextlib.suppress(OSError):
					self.send_response(issuer.status)
					if issuer.status == 302:
						self.send_header('Location', issuer.url + '/elsewhere')
					self.send_header('Content-Length', str(len(data)))
					self.end_headers()
					self.wfile.write(data)

			def log_message(self, *args):
				pass

		self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
		self.server.daemon_threads = True
		context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
		context.load_cert_chain(self.cert, folder / 'key.pem')
		self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
		self.url = 'https://127.0.0.1:%d' % self.server.server_port
		self.allowed = ['--inner-networks', '127.0.0.0/8']
		self.trusted = ['--identity-ca', self.cert, *self.allowed]
		threading.Thread(target=self.server.serve_forever, daemon=True).start()

	def answer(self, path):
		if path.endswith('/.well-known/openid-configuration'):
			return {'issuer': self.named or self.url, 'jwks_uri': self.url + '/keys'}
		return {'keys': self.keys} if isinstance(self.keys, list) else self.keys

	def close(self):
		self.answers.set()
		self.server.shutdown()
		self.server.server_close()


@pytest.fixture
def issuer(tmp_path):
	made = Issuer(tmp_path)
	yield made
	made.close()


def key(kid):
	return {'kty': 'RSA', 'kid': kid, 'use': 'sig', 'alg': 'RS256', 'n': 'AQAB', 'e': 'AQAB'}


def kept(server, kind):
	"""Documents of a kind, by id, as the store has them."""
	return {i: json.loads(b) for i, b in server.rows("SELECT id, body FROM doc WHERE kind = '%s'" % kind)}


def failure(server):
	"""The last of a fetch. Lines of calls come when they come."""
	return [x for x in server.stderr.splitlines() if 'cannot be fetched' in x][-1]


def test_keys_are_fetched_and_revoked(start_server, issuer):
	server = start_server(*issuer.trusted)
	org = make(server)
	issuer.keys = [{**key('one'), 'd': 'private'}, {'kty': 'oct', 'k': 'secret'}, {**key('enc'), 'use': 'enc'}, 'rubbish',
		       {'kty': 'EC', 'kid': 'two', 'crv': 'P-256', 'x': 'AA', 'y': 'AA'}]
	doc = org.oidc(issuerUri=issuer.url)
	until(lambda: kept(server, 'idp_jwks'))
	assert issuer.asked == ['/.well-known/openid-configuration', '/keys']
	got = kept(server, 'idp_jwks')[doc['id']]
	assert got['issuerUri'] == issuer.url and [k['kid'] for k in got['keys']] == ['one', 'two'] and 'd' not in got['keys'][0]
	assert not kept(server, 'jwks_due')
	issuer.keys = [key('three')]
	issuer.answers.clear()
	ok(org.owner.delete(org.path(doc) + '/jwks'), 204)
	assert not kept(server, 'idp_jwks')  # gone with the answer, not with the next fetch
	issuer.answers.set()
	until(lambda: kept(server, 'idp_jwks'))
	assert [k['kid'] for k in kept(server, 'idp_jwks')[doc['id']]['keys']] == ['three']
	assert org.events('IDENTITY_PROVIDER_JWKS_REVOKED')
	ok(org.owner.delete(org.path(doc)), 204)
	assert not kept(server, 'idp_jwks') and not kept(server, 'jwks_due')


def test_keys_of_before_a_revocation_do_not_come_back(start_server, issuer):
	server = start_server(*issuer.trusted)
	org = make(server)
	issuer.keys = [key('old')]

	def answer(path):
		"""The old keys are on their way, and held up there."""
		if path == '/keys' and issuer.asked.count(path) == 1:
			issuer.answers.clear()
			held.set()
		return Issuer.answer(issuer, path)
	held, issuer.answer = threading.Event(), answer
	doc = org.oidc(issuerUri=issuer.url)
	assert held.wait(60)
	issuer.keys = [key('new')]
	ok(org.owner.delete(org.path(doc) + '/jwks'), 204)
	issuer.answers.set()
	until(lambda: kept(server, 'idp_jwks'))
	assert [k['kid'] for k in kept(server, 'idp_jwks')[doc['id']]['keys']] == ['new']
	assert issuer.asked.count('/keys') == 2


def test_keys_that_cannot_be_fetched(start_server, issuer):
	server = start_server(*issuer.trusted)
	org = make(server)
	issuer.keys = [key('one')]
	doc = None

	def attempt(why):
		nonlocal doc
		before = server.stderr.count('cannot be fetched')
		if doc is None:
			doc = org.oidc(issuerUri=issuer.url)
		else:
			ok(org.owner.delete(org.path(doc) + '/jwks'), 204)
		until(lambda: server.stderr.count('cannot be fetched') > before)
		assert why in failure(server), failure(server)
		until(lambda: [x['failures'] for x in kept(server, 'jwks_due').values()] == [1])
		assert not kept(server, 'idp_jwks')

	issuer.named = 'https://elsewhere.example'
	attempt('names another issuer')
	issuer.named, issuer.status = None, 302
	attempt('answered 302')
	assert not any('elsewhere' in x for x in issuer.asked)
	issuer.status = 500
	attempt('answered 500')
	issuer.status, issuer.keys = 200, b'x' * 300000
	attempt('')
	issuer.keys = b'no json'
	attempt('no JSON')
	issuer.keys = [{'kty': 'oct', 'k': 'x'}]
	attempt('no key')
	# It is tried again when the time has come, and then it works.
	issuer.keys = [key('one')]
	time.sleep(1.2)
	assert not kept(server, 'idp_jwks')
	server.advance(11)
	until(lambda: kept(server, 'idp_jwks'))


def test_untrusted_issuer_and_own_addresses(start_server, issuer):
	server = start_server(*issuer.allowed)  # does not know the issuer's certificate
	org = make(server)
	issuer.keys = [key('one')]
	org.oidc(issuerUri=issuer.url)
	until(lambda: 'cannot be fetched' in server.stderr)
	assert 'certificate' in failure(server) and not issuer.asked
	org.oidc(issuerUri='https://169.254.169.254')
	until(lambda: '169.254.169.254: cannot be fetched' in server.stderr)
	assert 'time' not in failure(server).split('fetched:')[1].lower(), 'it is not even tried'


def test_an_issuer_in_an_inner_network(start_server, issuer):
	"""Why a fetch failed told which ports of the operator's own machines are open. Now none is tried, and all fail alike."""
	server = start_server('--identity-ca', issuer.cert)
	org = make(server)
	issuer.keys = [key('one')]
	with socket.socket() as closed:
		closed.bind(('127.0.0.1', 0))
		shut = 'https://127.0.0.1:%d' % closed.getsockname()[1]
		for url in (issuer.url, shut, 'https://10.255.255.1', 'https://[::1]:%d' % urlsplit(issuer.url).port,
				issuer.url.replace('127.0.0.1', 'localhost')):
			org.oidc(issuerUri=url, audience=unique('a'))
			until(lambda: url + ': cannot be fetched' in server.stderr)
			why = [x for x in server.stderr.splitlines() if url + ': cannot be fetched' in x][-1].split('fetched: ')[1]
			assert 'its address may not be reached' in why, why
	assert not issuer.asked


def test_slow_issuers_hold_up_nobody(start_server, issuer):
	server = start_server(*issuer.trusted)
	issuer.keys = [key('one')]
	issuer.answers.clear()
	slow, quick = make(server), make(server)
	for i in range(6):
		slow.oidc(issuerUri=issuer.url, audience='a%d' % i)
	until(lambda: issuer.asked)
	quick.oidc()  # refused at once by its address
	until(lambda: DEAD in server.stderr)
	assert issuer.url + ': cannot' not in server.stderr, 'the slow one is still waited for: its time is 10 s'
	assert len(issuer.asked) == 1  # one at a time for a federation
	server.stop(30)  # in the middle of it


def test_keys_survive_a_restart(start_server, issuer, tmp_path):
	data = tmp_path / 'data'
	server = start_server(*issuer.allowed, data_dir=data)  # cannot trust the issuer
	org = make(server)
	issuer.keys = [key('one')]
	doc = org.oidc(issuerUri=issuer.url)
	until(lambda: 'cannot be fetched' in server.stderr)
	until(lambda: kept(server, 'jwks_due'))
	server.stop()
	server = start_server(*issuer.trusted, data_dir=data)
	server.advance(60)
	until(lambda: doc['id'] in kept(server, 'idp_jwks'))


def test_revoke_refusals(server, org):
	doc = org.oidc()
	ok(org.owner.delete(org.path(doc) + '/jwks'), 204)
	refused(org.member.delete(org.path(doc) + '/jwks'), 403)
	refused(server.delete(org.path(doc) + '/jwks'), 401)
	refused(org.owner.delete(org.providers + '/%s/jwks' % NO_ID), 404)
