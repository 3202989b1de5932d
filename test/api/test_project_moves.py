"""Projects that move to another organization, and the database versions that they can have."""
import pathlib

import pytest

import client
from client import BASE, NO_ID, Api, cli, links, ok, refused, unique
from derive import Api as Data

data = Data()


@pytest.fixture
def pair(server):
	"""Two organizations: one with a project that moves, one where it can go."""
	here, there = server.seed({'name': unique('here'), 'projects': ['moves', 'stays'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'serviceAccount', 'roles': ['ORG_READ_ONLY'], 'projectRoles': [{'project': 'moves', 'roles': [
			'GROUP_OWNER']}]},
		{'type': 'apiKey', 'projectRoles': [{'project': 'moves', 'roles': ['GROUP_OWNER']}]}]},
		{'name': unique('there'), 'projects': ['first'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'apiKey', 'roles': ['ORG_OWNER']}, {'type': 'apiKey', 'roles': ['ORG_GROUP_CREATOR']},
		{'type': 'apiKey', 'roles': ['ORG_OWNER'], 'accessList': ['10.0.0.0/8']}]})
	for org in (here, there):
		org['api'] = [server.api_for(p) for p in org['principals']]
		org['path'] = '/orgs/' + org['id']
	here['project'] = '/groups/' + here['projects'][0]['id']
	return here, there


def body(there, key=1, **more):
	key = there['principals'][key]
	return {'destinationOrgId': there['id'], 'destinationOrgPublicApiKey': key['publicKey'],
		'destinationOrgPrivateApiKey': key['privateKey'], **more}


def names(api, org):
	doc = ok(api.get(org['path'] + '/groups'))
	assert doc['totalCount'] == len(doc['results'])
	return [p['name'] for p in doc['results']]


def types(api, path):
	return [e['eventTypeName'] for e in ok(api.get(path + '/events'))['results']]


def test_move_with_a_key_of_the_destination(server, pair):
	here, there = pair
	owner, member, key = here['api']
	ok(owner.patch(here['project'] + '/settings', json={'isSchemaAdvisorEnabled': False}))
	doc = ok(owner.post(here['project'] + ':migrate', json=body(there)))
	assert doc['orgId'] == there['id'] and doc['name'] == 'moves' and doc['id'] == here['projects'][0]['id']
	new = there['api'][0]
	got = ok(new.get(here['project']))
	assert client.bare(got) == client.bare(doc)
	assert names(new, there) == ['first', 'moves'] and names(owner, here) == ['stays']
	assert ok(new.get(here['project'] + '/settings'))['isSchemaAdvisorEnabled'] is False
	# From the next request on, the old organization has nothing to say.
	for api in (owner, member, key):
		refused(api.get(here['project']), 401)
	assert ok(new.get('/groups/byName/moves'))['id'] == doc['id']
	refused(owner.get('/groups/byName/moves'), 404)
	# Told on both sides.
	assert types(owner, here['path'])[0] == 'GROUP_MOVED_FROM_ORG'
	assert types(new, there['path'])[0] == 'GROUP_MOVED' == types(new, here['project'])[0]
	left = ok(owner.get(here['path'] + '/events'))['results'][0]
	assert left['groupId'] == doc['id'] and left['orgId'] == here['id'] and left['apiKeyId'] == here['principals'][0]['id']
	# The name is free again, and it can come back.
	owner.project('moves', here['id'])
	refused(new.post(here['project'] + ':migrate', json={'destinationOrgId': here['id']}), 403)


def test_move_by_an_owner_of_both(server):
	"""Who made both organizations owns both. Members of the new one keep what they had in the project."""
	made = [ok(server.post('/orgs', json={'name': unique('both')}), 201)['organization']['id'] for _ in range(2)]
	project = server.project(org=made[0])
	path = '/groups/' + project['id']
	doc = ok(server.post(path + ':migrate', json={'destinationOrgId': made[1]}))
	assert doc['orgId'] == made[1] and ok(server.get(path))['orgId'] == made[1]
	ok(server.patch(path, json={'name': unique()}))
	ok(server.post(path + ':migrate', json={'destinationOrgId': made[0]}))
	assert [p['id'] for p in ok(server.get('/orgs/%s/groups' % made[0]))['results']] == [project['id']]
	assert ok(server.get('/orgs/%s/groups' % made[1]))['totalCount'] == 0


def test_grants_of_members_of_both_stay(server, pair):
	here, there = pair
	owner, member, key = here['api']
	# The key makes an organization of its own, where it is the owner, and the project goes there.
	ok(owner.patch('/orgs/%s/apiKeys/%s' % (here['id'], here['principals'][2]['id']), json={'roles': ['ORG_OWNER']}))
	own = ok(key.post('/orgs', json={'name': unique('own'), 'apiKey': {'desc': 'k', 'roles': ['ORG_OWNER']}}), 201)
	pair_of_keys = {'destinationOrgId': own['organization']['id'],
		'destinationOrgPublicApiKey': own['apiKey']['publicKey'],
		'destinationOrgPrivateApiKey': own['apiKey']['privateKey']}
	ok(owner.patch('/orgs/%s/apiKeys/%s' % (here['id'], here['principals'][2]['id']), json={'roles': ['ORG_MEMBER']}))
	ok(owner.post(here['project'] + ':migrate', json=pair_of_keys))
	ok(key.get(here['project']))
	refused(member.get(here['project']), 401)
	refused(owner.get(here['project']), 401)


def test_keys_are_not_guessed_here_either(server, pair):
	"""A wrong pair is a failed sign-in of that key from that address."""
	here, there = pair
	right, path = body(there), here['project'] + ':migrate'
	move = lambda pair: refused(here['api'][0].post(path, json=pair), 403, 'INVALID_DESTINATION_API_KEY')
	for _ in range(20):
		move({**right, 'destinationOrgPrivateApiKey': right['destinationOrgPrivateApiKey'][::-1]})
	move(right)  # not even looked at
	refused(there['api'][1].get('/orgs'), 429, 'TOO_MANY_FAILED_ATTEMPTS')


def test_refusals(server, pair):
	here, there = pair
	owner, member, key = here['api']
	path = here['project'] + ':migrate'
	refused(owner.post(path, json={}), 400, None, 'destinationOrgId')
	refused(owner.post(path, json={'destinationOrgId': 'x'}), 400, None, 'destinationOrgId')
	refused(owner.post(path, json={'destinationOrgId': NO_ID}), 404, 'ORG_NOT_FOUND', NO_ID)
	refused(owner.post(path, json={'destinationOrgId': there['id']}), 403, 'INSUFFICIENT_ROLE')
	refused(owner.post(path, json={'destinationOrgId': here['id']}), 409, 'GROUP_ALREADY_IN_ORG', 'destinationOrgId')
	wrong = body(there)
	private = wrong['destinationOrgPrivateApiKey']
	for bad in ({**wrong, 'destinationOrgPrivateApiKey': private[::-1]}, body(there, 2), body(there, 3),
			{**wrong, 'destinationOrgPublicApiKey': 'zzzzzzzz'},
			{**body(there), 'destinationOrgPublicApiKey': here['principals'][2]['publicKey'],
				'destinationOrgPrivateApiKey': here['principals'][2]['privateKey']}):
		doc = refused(owner.post(path, json=bad), 403, 'INVALID_DESTINATION_API_KEY', 'destinationOrgPublicApiKey')
		assert private not in str(doc) and there['name'] not in str(doc)
	for part in ('destinationOrgPublicApiKey', 'destinationOrgPrivateApiKey'):
		refused(owner.post(path, json={k: v for k, v in wrong.items() if k != part}), 400, None, part)
	refused(member.post(path, json=body(there)), 403)
	refused(key.post(path, json=body(there)), 403)
	refused(server.post(path, json=body(there)), 401)
	refused(owner.post('/groups/%s:migrate' % NO_ID, json=body(there)), 404)
	assert names(owner, here) == ['moves', 'stays'] and names(there['api'][0], there) == ['first']
	assert types(owner, here['path'])[0] == 'GROUP_CREATED'


def test_a_name_that_is_taken(server, pair):
	here, there = pair
	there['api'][0].project('moves', there['id'])
	refused(here['api'][0].post(here['project'] + ':migrate', json=body(there)), 409, 'GROUP_ALREADY_EXISTS', 'moves')
	ok(here['api'][0].get(here['project']))


def test_the_key_is_written_nowhere(server, pair):
	here, there = pair
	ok(here['api'][0].post(here['project'] + ':migrate', json=body(there)))
	private = there['principals'][1]['privateKey']
	log = '\n'.join(''.join(map(str, row)) for row in server.rows('SELECT body, raw FROM event'))
	assert private not in log and private not in server.stderr and private not in client.EXCHANGES.read_text()


def test_counts_stay_right(start_server):
	"""Lists long enough to have counted blocks, moved from the front, the middle and the end."""
	s = start_server()
	here, there = s.seed({'name': unique('long'), 'projectCount': 1100, 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]}, {'name': unique('short'), 'principals': [
		{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})
	owner = s.api_for(here['principals'][0])
	cli('limits', 'set', '--data', s.data_dir, '--all', '--capacity', 100000, '--refill', 100000)
	page = lambda n: [p['id'] for p in ok(owner.get('/orgs/%s/groups' % here['id'], params={'itemsPerPage': 500,
			'pageNum': n}))['results']]
	ids = page(1) + page(2) + page(3)
	assert len(ids) == 1100
	moved = [ids[0], ids[511], ids[512], ids[700], ids[1099]]
	for i in moved:
		ok(owner.post('/groups/%s:migrate' % i, json=body(there, 0)))
	assert page(1) + page(2) + page(3) == [i for i in ids if i not in moved]
	new = s.api_for(there['principals'][0])
	assert [p['id'] for p in ok(new.get('/orgs/%s/groups' % there['id']))['results']] == moved
	cli('check', '--data', s.data_dir)


# Versions


def test_versions(server):
	path = '/groups/%s/dbVersions' % server.group
	doc = ok(server.get(path, params={'itemsPerPage': 500}))
	installed = sorted(int(p.name) for p in pathlib.Path('/usr/lib/postgresql').glob('*') if p.name.isdigit() and
		(p / 'bin' / 'postgres').exists()) or [15]
	sizes = [len(b['enum']) for b in data.schemas['BaseCloudProviderInstanceSize']['oneOf']]
	assert doc['totalCount'] == (sum(sizes) + 1) * len(installed)
	versions = {v['version'] for v in doc['results']}
	assert versions == {str(v) for v in installed}
	defaults = ok(server.get(path, params={'defaultStatus': 'DEFAULT', 'itemsPerPage': 500}))
	assert {v['version'] for v in defaults['results']} == {str(max(installed))}
	assert all(v['defaultStatus'] == 'DEFAULT' for v in defaults['results'])
	only = ok(server.get(path, params={'cloudProvider': 'AZURE', 'instanceSize': 'M90'}))
	assert [(v['cloudProvider'], v['instanceSize']) for v in only['results']] == [('AZURE', 'M90')] * len(installed)
	assert ok(server.get(path, params={'cloudProvider': 'AWS', 'instanceSize': 'M90'}))['results'] == []
	small = ok(server.get(path, params={'instanceSize': 'M10'}))['results']
	assert {v['cloudProvider'] for v in small} == {'AWS', 'AZURE', 'GCP'}
	page = ok(server.get(path, params={'itemsPerPage': 10, 'pageNum': 2}))
	assert page['results'] == doc['results'][10:20] and {'next', 'previous', 'self'} == set(links(page))
	assert all(list(links(v)) == ['self'] for v in page['results'])


def test_versions_refusals(server, pair):
	path = '/groups/%s/dbVersions' % server.group
	refused(server.get(path, params={'cloudProvider': 'MOON'}), 400, None, 'cloudProvider')
	refused(server.get(path, params={'defaultStatus': 'NOT_DEFAULT'}), 400, None, 'defaultStatus')
	refused(pair[0]['api'][0].get(path), 401)
	refused(server.get('/groups/%s/dbVersions' % NO_ID), 404)
