"""Lists that have much to look at: they are answered by a worker, and say the same as everywhere else."""
import pytest

from client import ok, refused, unique

PROJECTS, USERS, TEAMS = 2500, 3000, 12


@pytest.fixture(scope='module')
def large(module_server):
	server = module_server
	org, = server.seed({'name': unique('large'), 'projects': ['event-%04d' % i for i in range(2100)],
			    'projectCount': PROJECTS, 'userCount': USERS, 'teamCount': TEAMS,
			    'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	org['owner'] = server.api_for(org['principals'][0])
	org['path'], org['group'] = '/orgs/' + org['id'], '/groups/' + org['firstProjectId']
	return org


@pytest.fixture(autouse=True)
def full(module_server):
	module_server.refill()


def everything(api, path, **query):
	"""All pages: the ids in order, each page as long as asked for, the count the same on each."""
	found, number = [], 1
	while True:
		page = ok(api.get(path, params={**query, 'itemsPerPage': 500, 'pageNum': number}))
		found += [x['id'] for x in page['results']]
		if not any(x['rel'] == 'next' for x in page['links']):
			assert page['totalCount'] == len(found)
			return found
		assert len(page['results']) == 500
		number += 1


def test_seeded(large):
	assert ok(large['owner'].get(large['path'] + '/groups'))['totalCount'] == PROJECTS + 2100
	assert ok(large['owner'].get(large['path'] + '/users'))['totalCount'] == USERS
	assert ok(large['owner'].get(large['path'] + '/teams'))['totalCount'] == TEAMS
	team = ok(large['owner'].get('%s/teams/%s/users' % (large['path'], large['firstTeamId'])))
	assert team['totalCount'] == USERS // TEAMS
	user = ok(large['owner'].get('%s/users/%s' % (large['path'], large['firstUserId'])))
	assert user['roles']['orgRoles'] == ['ORG_READ_ONLY'] and user['teamIds'] == [large['firstTeamId']]
	assert user['roles']['groupRoleAssignments'] == [{'groupId': large['firstProjectId'], 'groupRoles': ['GROUP_READ_ONLY']}]


@pytest.mark.parametrize('body', [{'projectCount': -1}, {'userCount': 10**9}, {'principals': [{'type': 'user'}]}])
def test_seed_refuses(module_server, body):
	refused(module_server.anonymous.post('/api/test/seed', json={'organizations': [body]}), 400)


def test_events_by_type(large):
	path = large['path'] + '/events'
	made = everything(large['owner'], path, eventType='GROUP_CREATED')
	assert len(made) == 2100
	assert everything(large['owner'], path, eventType='GROUP_CREATED', minDate='2020-01-01T00:00:00Z') == made
	assert everything(large['owner'], path, eventType='API_KEY_DELETED') == []
	refused(large['owner'].get(path, params={'minDate': '2030-01-01T00:00:00Z', 'maxDate': '2020-01-01T00:00:00Z'}), 400)


def test_projects_by_name(large):
	found = ok(large['owner'].get(large['path'] + '/groups', params={'name': 'event-20', 'itemsPerPage': 500}))
	assert found['totalCount'] == 100 and len(found['results']) == 100
	assert {x['name'] for x in found['results']} == {'event-20%02d' % i for i in range(100)}


def test_users_of_a_project(large):
	"""All ways into a project that has many: each user once, in one order."""
	users, owner = large['group'] + '/users', large['owner']
	own = everything(owner, users)
	assert len(own) == 2  # USERS over PROJECTS, and the first once more
	readers = everything(owner, users, includeOrgUsers='true')
	assert len(readers) == len(set(readers)) and readers[:USERS // 10] == readers[:300]
	assert set(own) <= set(readers)
	teams = [x['id'] for x in ok(owner.get(large['path'] + '/teams'))['results']]
	ok(owner.post(large['group'] + '/teams', json=[{'teamId': t, 'roleNames': ['GROUP_READ_ONLY']} for t in teams]))
	flat = everything(owner, users, flattenTeams='true')
	assert len(flat) == len(set(flat)) == USERS and flat[:2] == own
	both = everything(owner, users, flattenTeams='true', includeOrgUsers='true')
	assert sorted(both) == sorted(flat) and both[:300] == readers[:300]
	assert both == everything(owner, users, flattenTeams='true', includeOrgUsers='true')


def test_non_compliant(large):
	body = ('forbid(principal, action == ResourcePolicy::Action::"project.ipAccessList.modify", resource)\n'
		'when { context.project.ipAccessList.contains(ip("0.0.0.0/0")) };')
	ok(large['owner'].post(large['group'] + '/accessList', json=[{'cidrBlock': '0.0.0.0/0'}]))
	ok(large['owner'].post(large['path'] + '/resourcePolicies', json={'name': 'x', 'policies': [{'body': body}]}), 201)
	found = ok(large['owner'].get(large['path'] + '/nonCompliantResources'))
	assert [x['resourceId'] for x in found] == [large['firstProjectId']]


def test_a_caller_with_many_single_projects(module_server):
	"""Names are found, and lists are whole, without a role in the organization too."""
	names = ['single-%04d' % i for i in range(2100)]
	roles = [{'project': n, 'roles': ['GROUP_READ_ONLY']} for n in names[:-1]]
	org, = module_server.seed({'name': unique('singles'), 'projects': names, 'principals': [
		{'type': 'serviceAccount', 'roles': [], 'projectRoles': roles},
		{'type': 'user', 'username': unique('u') + '@example.com', 'projectRoles': roles}]})
	ids = {p['name']: p['id'] for p in org['projects']}
	for principal in org['principals']:
		caller = module_server.api_for(principal)
		assert ok(caller.get('/groups/byName/single-2000'))['id'] == ids['single-2000']
		refused(caller.get('/groups/byName/single-2099'), 404)
		refused(caller.get('/groups/byName/nothing'), 404)
		assert set(everything(caller, '/groups')) == {ids[n] for n in names[:-1]}
