"""Ways around the rules, each tried by somebody who would gain from it: roles, tenants, links, lists and policies."""
import re

import requests

import pytest

from client import NO_ID, Api, Bearer, links, ok, refused, unique
from derive import Api as Data
from test_invitations import ACCEPT, answer, token
from test_policies import create, org  # noqa: F401 (org is a fixture)
from test_users import NUMBER, account, fresh, group_role, invite, name, org_role  # noqa: F401 (fresh is a fixture)

CLUSTER = {'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [{
	'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
	'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}


@pytest.fixture
def stranger(server):
	"""Another tenant: its organization, its owner and one of its people."""
	made, = server.seed({'name': unique('stranger'), 'projects': ['s'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	made['owner'] = server.api_for(made['principals'][0])
	made['user'] = account(made['owner'], org_role(made))
	return made


# Other tenants' people.

def test_a_project_cannot_be_given_to_somebody_elses_user(fresh, stranger):
	user = stranger['user']['id']
	body = {'name': unique(), 'orgId': fresh['id']}
	refused(fresh['owner'].post('/groups?projectOwnerId=' + user, json=body), 400, 'INVALID_USER_ID', 'projectOwnerId')
	refused(fresh['owner'].get('/users/' + user), 404)
	# No more is told of one that exists than of one that does not.
	known = refused(fresh['owner'].post('/groups?projectOwnerId=' + NO_ID, json=body), 400)
	assert known['detail'] == refused(fresh['owner'].post('/groups?projectOwnerId=' + user, json=body), 400)['detail']
	own = account(fresh['owner'], org_role(fresh))
	made = ok(fresh['owner'].post('/groups?projectOwnerId=' + own['id'], json=body))
	assert [u['roles'] for u in ok(fresh['owner'].get('/groups/%s/users' % made['id']))['results']] == [['GROUP_OWNER']]


def test_an_organization_cannot_be_given_to_somebody_elses_user(fresh, stranger):
	user = stranger['user']['id']
	refused(fresh['owner'].post('/orgs', json={'name': unique(), 'orgOwnerId': user}), 400, 'INVALID_USER_ID', 'orgOwnerId')
	refused(fresh['owner'].get('/users/' + user), 404)
	own = account(fresh['owner'], org_role(fresh))
	made = ok(fresh['owner'].post('/orgs', json={'name': unique(), 'orgOwnerId': own['id']}), 201)
	member, = ok(fresh['owner'].get('/orgs/%s/users' % made['organization']['id']))['results']
	assert member['id'] == made['orgOwnerId'] == own['id'] and member['roles']['orgRoles'] == ['ORG_OWNER']
	assert member['orgMembershipStatus'] == 'PENDING'  # nobody owns what it was not asked about


# Those who manage access.

def test_access_managers_unmake_no_owner_keys(server, fresh):
	key = ok(fresh['owner'].post(fresh['path'] + '/apiKeys', json={'desc': 'mine', 'roles': ['ORG_OWNER']}))
	path = fresh['group'] + '/apiKeys/' + key['id']
	ok(fresh['owner'].post(path, json=[{'roles': ['GROUP_OWNER']}]), 204)
	refused(fresh['manager'].patch(path, json={'roles': ['GROUP_READ_ONLY']}), 403, 'CANNOT_GRANT_ROLE', 'GROUP_OWNER')
	refused(fresh['manager'].delete(path), 403, 'CANNOT_GRANT_ROLE', 'GROUP_OWNER')
	held = ok(fresh['owner'].get(fresh['path'] + '/apiKeys/' + key['id']))['roles']
	assert {'groupId': fresh['a'], 'roleName': 'GROUP_OWNER'} in held
	ok(fresh['groupOwner'].patch(path, json={'roles': ['GROUP_READ_ONLY']}))
	ok(fresh['manager'].delete(path), 204)


def test_a_project_does_not_rewrite_the_organizations_keys(fresh):
	key = ok(fresh['owner'].post(fresh['path'] + '/apiKeys', json={'desc': 'mine', 'roles': ['ORG_OWNER']}))
	path = fresh['group'] + '/apiKeys/' + key['id']
	ok(fresh['groupOwner'].post(path, json=[{'roles': ['GROUP_READ_ONLY']}]), 204)
	for who in (fresh['manager'], fresh['groupOwner']):
		refused(who.patch(path, json={'desc': 'theirs'}), 403, 'API_KEY_NOT_OF_PROJECT')
		refused(who.patch(path, json={'desc': 'theirs', 'roles': ['GROUP_CLUSTER_MANAGER']}), 403)
	doc = ok(fresh['owner'].get(fresh['path'] + '/apiKeys/' + key['id']))
	assert doc['desc'] == 'mine' and {'groupId': fresh['a'], 'roleName': 'GROUP_READ_ONLY'} in doc['roles']
	own = ok(fresh['manager'].post(fresh['group'] + '/apiKeys', json={'desc': 'x', 'roles': ['GROUP_READ_ONLY']}))
	assert ok(fresh['manager'].patch(fresh['group'] + '/apiKeys/' + own['id'], json={'desc': 'y'}))['desc'] == 'y'


def test_access_managers_unmake_no_owner_teams(fresh):
	team = ok(fresh['owner'].post(fresh['path'] + '/teams', json={'name': unique('team'), 'usernames': []}))['id']
	path = fresh['group'] + '/teams'
	ok(fresh['owner'].post(path, json=[{'teamId': team, 'roleNames': ['GROUP_OWNER']}]))
	less = {'teamId': team, 'roleNames': ['GROUP_READ_ONLY']}
	refused(fresh['manager'].post(path, json=[less]), 403, 'CANNOT_GRANT_ROLE', 'GROUP_OWNER')
	refused(fresh['manager'].patch(path + '/' + team, json=less), 403, 'CANNOT_GRANT_ROLE', 'GROUP_OWNER')
	refused(fresh['manager'].delete(path + '/' + team), 403, 'CANNOT_GRANT_ROLE', 'GROUP_OWNER')
	assert ok(fresh['owner'].get(path + '/' + team))['roleNames'] == ['GROUP_OWNER']
	ok(fresh['groupOwner'].patch(path + '/' + team, json=less))
	ok(fresh['manager'].patch(path + '/' + team, json={'teamId': team, 'roleNames': ['GROUP_CLUSTER_MANAGER']}))
	ok(fresh['manager'].delete(path + '/' + team), 204)


# Links.

def test_a_projects_invitation_ends_with_the_membership(server, fresh):
	"""Who left and came back as a member has no owner's link in the drawer."""
	user = account(fresh['owner'], org_role(fresh))
	body = {'username': user['username'], 'roles': ['GROUP_OWNER']}
	ok(fresh['owner'].post(fresh['group'] + '/invites', json=body))
	link, password = token(server, user['username']), {'password': 'correct horse'}
	ok(fresh['owner'].put('%s/users/%s/roles' % (fresh['path'], user['id']), json={'orgRoles': ['ORG_READ_ONLY']}))
	ok(server.anonymous.get('/api/invitations/' + link))  # other roles are the same membership
	ok(fresh['owner'].delete(fresh['path'] + '/users/' + user['id']), 204)
	refused(server.anonymous.get('/api/invitations/' + link), 404)
	invite(fresh, user['username'])
	ok(answer(server, user['username'], body=password))
	refused(server.anonymous.get('/api/invitations/' + link), 404)
	refused(answer(server, None, of=link, body=password), 404)
	assert ok(fresh['owner'].get(fresh['group'] + '/invites')) == []
	again = ok(fresh['owner'].get(fresh['path'] + '/users/' + user['id']))
	assert again['roles'] == {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': []}
	# Nothing is left that would be in the way of asking again.
	ok(fresh['owner'].post(fresh['group'] + '/invites', json=body))
	refused(fresh['owner'].post(fresh['group'] + '/invites', json=body), 409, 'USER_ALREADY_IN_GROUP')
	ok(answer(server, user['username'], body=password))


def test_domains_hold_for_those_who_were_invited_before(server, fresh):
	guest = invite(fresh, '%s@elsewhere.example' % unique('guest'))
	settings = ok(fresh['owner'].get(fresh['path'] + '/federationSettings'))['id']
	config = '/federationSettings/%s/connectedOrgConfigs/%s' % (settings, fresh['id'])
	ok(fresh['owner'].patch(config, json={'domainRestrictionEnabled': True, 'domainAllowList': ['example.com']}))
	refused(answer(server, guest['username']), 400, 'USER_DOMAIN_NOT_ALLOWED', guest['username'])
	assert ok(fresh['owner'].get(fresh['path'] + '/users/' + guest['id']))['orgMembershipStatus'] == 'PENDING'
	ok(fresh['owner'].patch(config, json={'domainRestrictionEnabled': False}))
	ok(answer(server, guest['username']))


# Access lists.

def test_an_organization_that_demands_lists_demands_them_of_all(server):
	"""Also of a credential of another organization: whoever made this one owns it."""
	made = ok(server.post('/orgs', json={'name': unique('listed'), 'apiKey': {'desc': 'k', 'roles': ['ORG_OWNER']}}), 201)
	path, key = '/orgs/' + made['organization']['id'], made['apiKey']
	own = Api(server, requests.auth.HTTPDigestAuth(key['publicKey'], key['privateKey']))
	group = ok(server.post('/groups', json={'name': unique(), 'orgId': made['organization']['id']}))
	refused(server.patch(path + '/settings', json={'apiAccessListRequired': True}), 409, 'WOULD_LOCK_OUT_CALLER')
	ok(own.post('%s/apiKeys/%s/accessList' % (path, key['id']), json=[{'ipAddress': '127.0.0.1'}]))
	ok(own.patch(path + '/settings', json={'apiAccessListRequired': True}))
	code = 'IP_ADDRESS_NOT_ON_ACCESS_LIST'
	refused(server.get(path), 403, code, '127.0.0.1')
	refused(server.get(path + '/users'), 403, code)
	refused(server.get('/groups/' + group['id']), 403, code)
	refused(server.patch(path + '/settings', json={'apiAccessListRequired': False}), 403, code)
	refused(server.post('/groups', json={'name': unique(), 'orgId': made['organization']['id']}), 403, code)
	refused(server.get('/groups/byName/' + group['name']), 404)
	assert made['organization']['id'] not in [x['id'] for x in ok(server.get('/orgs?itemsPerPage=500'))['results']]
	ok(server.get('/orgs/' + server.org))  # its own demands none
	ok(own.get('/groups/' + group['id']))
	ok(own.patch(path + '/settings', json={'apiAccessListRequired': False}))
	ok(server.get('/groups/' + group['id']))


# Secrets.

@pytest.mark.parametrize('hours', [1, 7, 8761, 2147483647])
def test_the_first_account_of_an_organization_has_no_longer_secret(server, hours):
	body = {'name': 'a', 'description': 'd', 'roles': ['ORG_OWNER'], 'secretExpiresAfterHours': hours}
	refused(server.post('/orgs', json={'name': unique(), 'serviceAccount': body}), 400, None,
		'serviceAccount.secretExpiresAfterHours')


def test_a_token_says_when_it_ends(start_server):
	s = start_server()
	made = ok(s.post('/orgs/%s/serviceAccounts' % s.org, json={
		'name': 'a', 'description': 'd', 'roles': ['ORG_MEMBER'], 'secretExpiresAfterHours': 8}), 201)

	def issue():
		return ok(requests.post(s.base_url + '/api/oauth/token', data={'grant_type': 'client_credentials'},
			auth=(made['clientId'], made['secrets'][0]['secret']), verify=s.ca_file, timeout=30))
	assert issue()['expires_in'] == 3600
	s.advance(8 * 3600 - 600)
	given = issue()
	assert 595 <= given['expires_in'] <= 600
	s.advance(given['expires_in'] + 1)
	refused(Api(s, Bearer(given['access_token'])).get('/orgs'), 401)


# Bounds, by every way in.

def test_bounds_of_a_members_bodies(fresh):
	group = {'groupId': fresh['a'], 'groupRoles': ['GROUP_READ_ONLY']}
	body = {'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [group] * 1001}}
	refused(fresh['owner'].post(fresh['path'] + '/users', json=body), 400, None, 'roles.groupRoleAssignments')
	body['roles']['groupRoleAssignments'] = [group, {**group, 'groupRoles': ['GROUP_OWNER']}] * 500
	made = ok(fresh['owner'].post(fresh['path'] + '/users', json=body), 201)
	assert made['roles']['groupRoleAssignments'] == [{'groupId': fresh['a'], 'groupRoles': ['GROUP_OWNER', 'GROUP_READ_ONLY']}]
	tags = [{'key': 'k%d' % i, 'value': 'v'} for i in range(51)]
	refused(fresh['owner'].patch(fresh['group'], json={'tags': tags}), 400, None, 'tags')
	refused(fresh['owner'].post('/groups', json={'name': unique(), 'orgId': fresh['id'], 'tags': tags}), 400, None, 'tags')
	assert len(ok(fresh['owner'].patch(fresh['group'], json={'tags': tags[:50]}))['tags']) == 50


def test_a_user_is_in_a_hundred_teams_at_most(module_server):
	s = module_server
	org, = s.seed({'name': unique('teams'), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	org['path'], org['owner'] = '/orgs/' + org['id'], s.api_for(org['principals'][0])
	teams = [ok(org['owner'].post(org['path'] + '/teams', json={'name': unique('t'), 'usernames': []}))['id'] for _ in range(101)]
	s.refill()
	user = account(org['owner'], org_role(org))
	path = '%s/users/%s' % (org['path'], user['id'])
	refused(org['owner'].patch(path, json={'teamIds': teams}), 400, 'USER_TEAMS_LIMIT_EXCEEDED', '100')
	assert len(ok(org['owner'].patch(path, json={'teamIds': teams[:100]}))['teamIds']) == 100
	body = {'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}, 'teamIds': teams}
	refused(org['owner'].post(org['path'] + '/users', json=body), 400, 'USER_TEAMS_LIMIT_EXCEEDED')
	refused(org['owner'].post(org['path'] + '/invites', json={'username': name(), 'roles': ['ORG_MEMBER'], 'teamIds': teams}),
		400, 'USER_TEAMS_LIMIT_EXCEEDED')


# Policies.

def forbid(action, when):
	return 'forbid(principal, action == ResourcePolicy::Action::"%s", resource) when { %s };' % (action, when)


def test_policies_hold_for_process_arguments(org):
	clusters = '/groups/%s/clusters' % org['first']
	made = ok(org['owner'].post(clusters, json={**CLUSTER, 'name': unique('c'), 'advancedConfiguration': {
		'minimumEnabledTlsProtocol': 'TLS1_3'}}), 201)['name']
	create(org, forbid('cluster.modify', 'context.cluster has minimumTlsProtocol && '
			   'context.cluster.minimumTlsProtocol != "TLS1_3"'))
	path = '%s/%s/processArgs' % (clusters, made)
	refused(org['owner'].patch(path, json={'minimumEnabledTlsProtocol': 'TLS1_2'}), 403, 'RESOURCE_POLICY_VIOLATION')
	assert ok(org['owner'].get(path))['minimumEnabledTlsProtocol'] == 'TLS1_3'
	assert ok(org['owner'].patch(path, json={'noTableScan': True}))['noTableScan'] is True


def test_policies_know_the_organizations_name(org):
	create(org, forbid('project.ipAccessList.modify', 'ResourcePolicy::Organization::"%s".name == "%s"' % (org['id'], org['name'])))
	body = [{'ipAddress': '10.0.0.1'}]
	refused(org['owner'].post('/groups/%s/accessList' % org['first'], json=body), 403, 'RESOURCE_POLICY_VIOLATION')


def test_peerings_and_flex_clusters_that_break_policies(server, org):
	group = '/groups/' + org['first']
	container = ok(org['owner'].post(group + '/containers', json={
		'providerName': 'AWS', 'regionName': 'EU_WEST_1', 'svcCidrBlock': '10.8.0.0/21'}))['id']
	ok(org['owner'].post(group + '/peers', json={
		'providerName': 'AWS', 'accepterRegionName': 'eu-west-1', 'awsAccountId': '123456789012', 'containerId': container,
		'routeTableCidrBlock': '192.168.0.1', 'vpcId': 'vpc-0123456789abcdef0'}))
	ok(org['owner'].post(group + '/accessList', json=[{'cidrBlock': '10.1.0.0/16'}]))
	flex = ok(org['owner'].post(group + '/flexClusters', json={'name': unique('f'), 'providerSettings': {
		'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}}), 201)
	peering = create(org, forbid('project.vpcPeering.modify', 'context.vpcPeering has accountId && '
				     'context.vpcPeering.accountId == "123456789012"'))
	create(org, forbid('project.vpcPeering.modify', 'context.vpcPeering.cloudProvider == ResourcePolicy::CloudProvider::"gcp"'))
	regions = create(org, forbid('cluster.modify', 'context.cluster.regions.contains(ResourcePolicy::Region::"aws:us-east-1")'))
	found = ok(org['owner'].get('/orgs/%s/nonCompliantResources' % org['id']))
	broken = {x['resourceName']: [p['resourcePolicyId'] for p in x['resourcePoliciesCausingNonCompliance']] for x in found}
	assert broken == {'first': [peering['id']], flex['name']: [regions['id']]}
	for x in found:
		assert ok(org['owner'].get(links(x)['self']))['id'] == x['resourceId']


def test_validation_says_what_a_create_would(org):
	body = {'name': unique('policy'), 'policies': [{'body': forbid('cluster.modify', 'context.cluster.nodeCount > 7')}]}
	for _ in range(50):
		create(org, body['policies'][0]['body'])
	refused(org['owner'].post(org['path'] + ':validate', json=body), 409, 'RESOURCE_POLICY_LIMIT_EXCEEDED')
	refused(org['owner'].post(org['path'], json=body), 409, 'RESOURCE_POLICY_LIMIT_EXCEEDED')


# Logs and recordings.

def test_the_link_of_a_feed_is_in_no_log(start_server, tmp_path):
	"""Who has it reads the feed without credentials."""
	s = start_server(record=tmp_path / 'record.jsonl')
	link = ok(s.get('/groups/%s/activityFeed' % s.group))['link']
	feed = requests.get(link, verify=s.ca_file, timeout=30)
	assert feed.status_code == 200 and link in feed.text
	s.stop()
	secret, kept = link.rsplit('/', 1)[1], (tmp_path / 'record.jsonl').read_text()
	assert secret not in s.stderr and secret not in kept
	assert kept.count('/feeds/(redacted)') == 3 and ' /feeds/(redacted) ' in s.stderr


# Ids in queries and bodies.

def strangers_ids(server, stranger):
	"""Something of another tenant for each kind of id."""
	owner, org = stranger['owner'], '/orgs/' + stranger['id']
	return {'userId': stranger['user']['id'], 'orgId': stranger['id'], 'groupId': stranger['projects'][0]['id'],
		'keyId': ok(owner.post(org + '/apiKeys', json={'desc': 'k', 'roles': ['ORG_MEMBER']}))['id'],
		'accountId': stranger['principals'][0]['id'],
		'teamId': ok(owner.post(org + '/teams', json={'name': unique('t'), 'usernames': []}))['id'],
		'federationId': ok(owner.get(org + '/federationSettings'))['id'],
		'containerId': ok(owner.post('/groups/%s/containers' % stranger['projects'][0]['id'], json={
			'providerName': 'AWS', 'regionName': 'EU_WEST_1', 'svcCidrBlock': '10.8.0.0/21'}))['id']}


# (operation, field) -> the kinds of ids that it takes, and the call with one.
QUERIES = {
	('listRateLimits', 'userId'): (('userId', 'keyId', 'accountId'), lambda f, i: f['owner'].get('/rateLimits?userId=' + i)),
	('getRateLimit', 'userId'): (('userId', 'keyId', 'accountId'), lambda f, i: f['owner'].get('/rateLimits/S17?userId=' + i)),
	('listRateLimits', 'orgId'): (('orgId',), lambda f, i: f['owner'].get('/rateLimits?orgId=' + i)),
	('getRateLimit', 'orgId'): (('orgId',), lambda f, i: f['owner'].get('/rateLimits/S17?orgId=' + i)),
	('listRateLimits', 'groupId'): (('groupId',), lambda f, i: f['owner'].get('/rateLimits?groupId=' + i)),
	('getRateLimit', 'groupId'): (('groupId',), lambda f, i: f['owner'].get('/rateLimits/S17?groupId=' + i)),
	('createGroup', 'projectOwnerId'): (('userId',), lambda f, i: f['owner'].post(
		'/groups?projectOwnerId=' + i, json={'name': 'x', 'orgId': f['id']})),
	('listTeamUsers', 'userId'): (('userId',), lambda f, i: f['owner'].get('%s/teams/%s/users?userId=%s' % (f['path'], f['team'], i))),
}
USER = {'username': 'x@example.com', 'password': 'correct horse', 'firstName': 'A', 'lastName': 'B', 'country': 'GB',
	'mobileNumber': NUMBER}
MAPPINGS = lambda f: '/federationSettings/%s/connectedOrgConfigs/%s' % (f['federation'], f['id'])
BODIES = {
	('addGroupTeams', 'teamId'): ('teamId', lambda f, i: f['owner'].post(f['group'] + '/teams', json=[
		{'teamId': i, 'roleNames': ['GROUP_READ_ONLY']}])),
	('addTeamUsers', 'id'): ('userId', lambda f, i: f['owner'].post('%s/teams/%s/users' % (f['path'], f['team']), json=[{'id': i}])),
	('addOrgTeamUser', 'id'): ('userId', lambda f, i: f['owner'].post('%s/teams/%s:addUser' % (f['path'], f['team']), json={'id': i})),
	('removeOrgTeamUser', 'id'): ('userId', lambda f, i: f['owner'].post(
		'%s/teams/%s:removeUser' % (f['path'], f['team']), json={'id': i})),
	('createOrgInvite', 'teamIds'): ('teamId', lambda f, i: f['owner'].post(f['path'] + '/invites', json={
		'username': 'x@example.com', 'roles': ['ORG_MEMBER'], 'teamIds': [i]})),
	('createOrgInvite', 'groupId'): ('groupId', lambda f, i: f['owner'].post(f['path'] + '/invites', json={
		'username': 'x@example.com', 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': [{'groupId': i, 'roles': ['GROUP_OWNER']}]})),
	('createOrgUser', 'teamIds'): ('teamId', lambda f, i: f['owner'].post(f['path'] + '/users', json={
		'username': 'x@example.com', 'roles': {'orgRoles': ['ORG_MEMBER']}, 'teamIds': [i]})),
	('createOrgUser', 'groupId'): ('groupId', lambda f, i: f['owner'].post(f['path'] + '/users', json={
		'username': 'x@example.com', 'roles': {'orgRoles': ['ORG_MEMBER'], 'groupRoleAssignments': [
			{'groupId': i, 'groupRoles': ['GROUP_OWNER']}]}})),
	('createUser', 'orgId'): ('orgId', lambda f, i: f['owner'].post('/users', json={
		**USER, 'roles': [{'orgId': i, 'roleName': 'ORG_MEMBER'}]})),
	('createUser', 'groupId'): ('groupId', lambda f, i: f['owner'].post('/users', json={
		**USER, 'roles': [{'groupId': i, 'roleName': 'GROUP_OWNER'}]})),
	('createOrg', 'orgOwnerId'): ('userId', lambda f, i: f['owner'].post('/orgs', json={'name': 'x', 'orgOwnerId': i})),
	('createOrg', 'federationSettingsId'): ('federationId', lambda f, i: f['owner'].post('/orgs', json={
		'name': 'x', 'federationSettingsId': i})),
	('createRoleMapping', 'groupId'): ('groupId', lambda f, i: f['owner'].post(MAPPINGS(f) + '/roleMappings', json={
		'externalGroupName': 'g', 'roleAssignments': [{'groupId': i, 'role': 'GROUP_OWNER'}]})),
	('createRoleMapping', 'orgId'): ('orgId', lambda f, i: f['owner'].post(MAPPINGS(f) + '/roleMappings', json={
		'externalGroupName': 'g', 'roleAssignments': [{'orgId': i, 'role': 'ORG_OWNER'}]})),
	('createGroupPeer', 'containerId'): ('containerId', lambda f, i: f['owner'].post(f['group'] + '/peers', json={
		'providerName': 'AWS', 'accepterRegionName': 'eu-west-1', 'awsAccountId': '123456789012', 'containerId': i,
		'routeTableCidrBlock': '192.168.0.0/24', 'vpcId': 'vpc-0123456789abcdef0'})),
}


def test_every_query_with_an_id_is_tried():
	asked = {(op['operationId'], p['name']) for op in Data().built() for p in op.get('queryParams', [])
		 if re.search(r'(group|org|user|team|owner|key|account)Id$', p['name'], re.I)}
	assert asked == set(QUERIES)


@pytest.mark.parametrize('operation, field', sorted([*QUERIES, *BODIES]))
def test_ids_of_strangers_are_ids_of_nobody(server, fresh, stranger, operation, field):
	fresh['team'] = ok(fresh['owner'].post(fresh['path'] + '/teams', json={'name': unique('t'), 'usernames': []}))['id']
	fresh['federation'] = ok(fresh['owner'].get(fresh['path'] + '/federationSettings'))['id']
	kinds, call = (QUERIES.get((operation, field)) or BODIES[operation, field])
	theirs = strangers_ids(server, stranger)
	nobody = call(fresh, NO_ID)
	for kind in [kinds] if isinstance(kinds, str) else kinds:
		got = call(fresh, theirs[kind])
		assert got.status_code == nobody.status_code and got.status_code >= 400 or field == 'userId' and operation == 'listTeamUsers'
		assert got.text.replace(theirs[kind], '') == nobody.text.replace(NO_ID, '')


def test_limits_of_those_whom_the_caller_knows(server, fresh):
	user = account(fresh['owner'], org_role(fresh))
	for who in (user['id'], fresh['principals'][0]['id'], fresh['principals'][1]['id']):
		assert ok(fresh['owner'].get('/rateLimits?userId=' + who))['totalCount'] > 0
	assert ok(fresh['groupOwner'].get('/rateLimits?userId=' + fresh['principals'][3]['id']))['totalCount'] > 0
	refused(fresh['groupOwner'].get('/rateLimits?userId=' + user['id']), 404)
