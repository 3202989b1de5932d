"""Projects: create, list, get, by name, update, delete, settings, limits, database versions, private IP mode."""
import threading

import pytest

from client import BASE, ID, NO_ID, Bearer, Api, bare, links, ok, refused, unique
from derive import Api as Data

CLUSTERS = 'svc.project.deployment.clusters'


@pytest.fixture(scope='module')
def crew(server):
	"""An organization with one caller for each kind of member."""
	server.refill()
	name = unique('crew')
	org, = server.seed({'name': name, 'projects': ['first', 'second'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'serviceAccount', 'roles': ['ORG_MEMBER'], 'projectRoles': [{'project': 'first',
		'roles': ['GROUP_READ_ONLY']}]},
		{'type': 'serviceAccount', 'roles': ['ORG_GROUP_CREATOR']},
		{'type': 'serviceAccount', 'roles': ['ORG_MEMBER'], 'projectRoles': [{'project': 'second',
		'roles': ['GROUP_OWNER']}]},
		{'type': 'apiKey', 'roles': ['ORG_READ_ONLY']}]})
	org['first'], org['second'] = [p['id'] for p in org['projects']]
	for who, p in zip(('owner', 'reader', 'creator', 'second_owner', 'auditor'), org['principals']):
		org[who] = server.api_for(p)
	return org


def test_create(server):
	name = unique('new')
	r = server.post('/groups', json={'name': name, 'orgId': server.org, 'tags': [{'key': 'stage',
			'value': 'test'}]})
	doc = ok(r)
	assert ID.match(doc['id']) and doc['name'] == name and doc['orgId'] == server.org
	assert doc['clusterCount'] == 0 and doc['tags'] == [{'key': 'stage', 'value': 'test'}]
	assert doc['withDefaultAlertsSettings'] is True if 'withDefaultAlertsSettings' in doc else True
	got = ok(server.get('/groups/' + doc['id']))
	assert bare(got) == bare(doc)
	assert links(got)['self'] == '%s%s/groups/%s' % (server.base_url, BASE, doc['id'])
	last = (ok(server.get('/groups?itemsPerPage=1'))['totalCount'] - 1) // 500 + 1
	assert doc['id'] in [r['id'] for r in ok(server.get('/groups?itemsPerPage=500&pageNum=%d' % last))['results']]


@pytest.mark.parametrize('name', ['plain', 'Größe-Ω', '项目', 'проект_1', "a.b(c),d:e&f@g+h'i", 'x', 'y' * 64, 'ﬁ',
		'한국어', 'My first shop'])
def test_names_in_any_script(server, name):
	org, = server.seed({'name': unique('script'), 'principals': [{'type': 'serviceAccount',
			'roles': ['ORG_OWNER']}]})
	caller = server.api_for(org['principals'][0])
	doc = caller.project(name=name, org=org['id'])
	assert doc['name'] == name
	from urllib.parse import quote
	assert ok(caller.get('/groups/byName/' + quote(name, safe='')))['id'] == doc['id']
	assert ok(caller.get('/orgs/%s/groups' % org['id'], params={'name': name}))['results'][0]['id'] == doc['id']


@pytest.mark.parametrize('name', ['', 'y' * 65, 'a/b', 'a\nb', 'quote"', 'semi;colon', '😀', '<script>'])
def test_bad_names(server, name):
	refused(server.post('/groups', json={'name': name, 'orgId': server.org}), 400, None, 'name')
	p = server.project()
	refused(server.patch('/groups/' + p['id'], json={'name': name}), 400, None, 'name')
	assert ok(server.get('/groups/' + p['id']))['name'] == p['name']


def test_create_refusals(server, crew):
	refused(server.post('/groups', json={'name': unique()}), 400, None, 'orgId')
	refused(server.post('/groups', json={'orgId': server.org}), 400, None, 'name')
	refused(server.post('/groups', json={'name': unique(), 'orgId': server.org, 'clusterCount': 3}), 400, None,
			'clusterCount')
	refused(server.post('/groups', json={'name': unique(), 'orgId': server.org, 'regionUsageRestrictions': 'MOON'}),
			400, None,
		'regionUsageRestrictions')
	refused(server.post('/groups', json={'name': unique(), 'orgId': server.org, 'tags': [{'key': 'k'}]}), 400, None,
			'tags[0].value')
	assert server.post('/groups', json={'name': unique(), 'orgId': NO_ID}).status_code in (400, 401, 404)
	# the organization is in the body: membership and role are asked there
	stranger = refused(server.post('/groups', json={'name': unique(), 'orgId': crew['id']}), 401)
	assert crew['name'] not in str(stranger)
	refused(crew['reader'].post('/groups', json={'name': unique(), 'orgId': crew['id']}), 403)
	ok(crew['creator'].post('/groups', json={'name': unique(), 'orgId': crew['id']}))


def test_creator_owns_the_project(crew):
	p = crew['creator'].project(org=crew['id'])
	assert ok(crew['creator'].get('/groups/' + p['id']))['id'] == p['id']
	assert crew['creator'].delete('/groups/' + p['id']).status_code == 204


def test_name_is_unique_in_the_organization(server, crew):
	p = server.project()
	refused(server.post('/groups', json={'name': p['name'], 'orgId': server.org}), 409)
	other = server.project()
	refused(server.patch('/groups/' + other['id'], json={'name': p['name']}), 409)
	assert ok(server.get('/groups/' + other['id']))['name'] == other['name']
	# its own name again is no conflict, and after a delete the name is free
	ok(server.patch('/groups/' + p['id'], json={'name': p['name']}))
	assert server.delete('/groups/' + p['id']).status_code == 204
	ok(server.patch('/groups/' + other['id'], json={'name': p['name']}))
	ok(server.post('/groups', json={'name': other['name'], 'orgId': server.org}))


def test_only_one_of_many_creates_wins(server):
	name, statuses = unique('race'), []

	def create():
		statuses.append(Api(server, Bearer(server.token())).post('/groups', json={'name': name,
				'orgId': server.org}).status_code)
	threads = [threading.Thread(target=create) for _ in range(12)]
	[t.start() for t in threads]
	[t.join() for t in threads]
	assert sorted(statuses) == [200] + [409] * 11


def test_get_refusals(server, crew):
	refused(server.get('/groups/' + NO_ID), 404, 'GROUP_NOT_FOUND')
	refused(server.get('/groups/nothing'), 404, 'GROUP_NOT_FOUND')
	doc = refused(server.get('/groups/' + crew['first']), 401)
	assert 'first' not in doc['detail']
	ok(crew['reader'].get('/groups/' + crew['first']))
	refused(crew['reader'].get('/groups/' + crew['second']), 403)
	ok(crew['auditor'].get('/groups/' + crew['second']))


def test_by_name(server, crew):
	p = server.project()
	assert ok(server.get('/groups/byName/' + p['name']))['id'] == p['id']
	refused(server.get('/groups/byName/' + unique('none')), 404)
	assert server.get('/groups/byName/' + 'x' * 65).status_code in (400, 404)
	r = server.get('/groups/byName/first')
	assert r.status_code in (401, 404) and crew['first'] not in r.text


def test_list_shows_what_the_caller_is_member_of(server, crew):
	ids = lambda who, path='/groups': {r['id'] for r in ok(who.get(path + '?itemsPerPage=500'))['results']}
	assert {crew['first'], crew['second']} <= ids(crew['owner'])
	assert ids(crew['reader']) == {crew['first']}
	assert ids(crew['second_owner']) == {crew['second']}
	assert {crew['first'], crew['second']} <= ids(crew['auditor'])
	assert crew['first'] not in ids(server.owner) and server.group in ids(server.owner)
	assert server.group not in ids(crew['owner'])
	for who in ('owner', 'reader', 'second_owner'):
		doc = ok(crew[who].get('/groups'))
		assert doc['totalCount'] == len(doc['results'])


def test_update(server):
	p = server.project(tags=[{'key': 'a', 'value': '1'}])
	name = unique('renamed')
	doc = ok(server.patch('/groups/' + p['id'], json={'name': name}))
	assert doc['name'] == name and doc['id'] == p['id'] and doc['tags'] == p['tags'] and doc['created'] == p['created']
	doc = ok(server.patch('/groups/' + p['id'], json={'tags': [{'key': 'b', 'value': 'ü'}, {'key': 'c',
			'value': '3'}]}))
	assert doc['name'] == name and [t['key'] for t in doc['tags']] == ['b', 'c']
	assert ok(server.patch('/groups/' + p['id'], json={'tags': []})).get('tags', []) == []
	got = ok(server.patch('/groups/' + p['id'], json={}))
	assert got['name'] == name
	refused(server.get('/groups/byName/' + p['name']), 404)
	assert ok(server.get('/groups/byName/' + name))['id'] == p['id']


def test_update_refusals(server, crew):
	p = server.project()
	path = '/groups/' + p['id']
	for field, value in (('id', p['id']), ('orgId', server.org), ('created', p['created']), ('clusterCount', 0),
			('unknown', 1)):
		refused(server.patch(path, json={field: value}), 400, None, field)
	refused(server.patch(path, json={'tags': [{'key': '', 'value': 'x'}]}), 400, None, 'tags[0].key')
	refused(server.patch(path, json={'tags': [{'key': 'k', 'value': 'x' * 256}]}), 400, None, 'tags[0].value')
	refused(server.patch(path, json={'tags': 'x'}), 400, None, 'tags')
	refused(crew['reader'].patch('/groups/' + crew['first'], json={'name': unique()}), 403)
	refused(server.patch('/groups/' + NO_ID, json={'name': unique()}), 404)


def test_delete(server, crew):
	p = server.project()
	before = ok(server.get('/groups'))['totalCount']
	r = server.delete('/groups/' + p['id'])
	assert r.status_code == 204 and r.content == b''
	refused(server.get('/groups/' + p['id']), 404)
	refused(server.delete('/groups/' + p['id']), 404)
	refused(server.get('/groups/%s/settings' % p['id']), 404)
	assert ok(server.get('/groups'))['totalCount'] == before - 1
	refused(crew['reader'].delete('/groups/' + crew['first']), 403)
	refused(server.anonymous.delete('/groups/' + server.group), 401)


def test_settings(server, crew):
	p = server.project()
	path = '/groups/%s/settings' % p['id']
	doc = ok(server.get(path))
	assert doc['isDataExplorerEnabled'] in (True, False)
	flipped = not doc['isDataExplorerEnabled']
	changed = ok(server.patch(path, json={'isDataExplorerEnabled': flipped}))
	assert changed == {**doc, 'isDataExplorerEnabled': flipped}
	assert ok(server.get(path)) == changed
	refused(server.patch(path, json={'isDataExplorerEnabled': 'yes'}), 400, None, 'isDataExplorerEnabled')
	refused(server.patch(path, json={'isNothing': True}), 400, None, 'isNothing')
	refused(crew['reader'].patch('/groups/%s/settings' % crew['first'], json={'isSchemaAdvisorEnabled': False}),
			403)
	ok(crew['reader'].get('/groups/%s/settings' % crew['first']))
	refused(server.get('/groups/%s/settings' % NO_ID), 404)


def test_limits(server, crew):
	p = server.project()
	path = '/groups/%s/limits' % p['id']
	found = ok(server.get(path))
	assert isinstance(found, list) and found
	by_name = {x['name']: x for x in found}
	assert CLUSTERS in by_name
	one = ok(server.get('%s/%s' % (path, CLUSTERS)))
	assert one['name'] == CLUSTERS and isinstance(one['value'], int) and one['defaultLimit'] > 0
	assert one['currentUsage'] == 0 and one['maximumLimit'] >= one['defaultLimit'] == one['value']
	changed = ok(server.patch('%s/%s' % (path, CLUSTERS), json={'value': one['defaultLimit'] + 1}))
	assert changed['value'] == one['defaultLimit'] + 1 and changed['defaultLimit'] == one['defaultLimit']
	assert ok(server.get('%s/%s' % (path, CLUSTERS)))['value'] == one['defaultLimit'] + 1
	assert {x['name']: x for x in ok(server.get(path))}[CLUSTERS]['value'] == one['defaultLimit'] + 1
	assert server.delete('%s/%s' % (path, CLUSTERS)).status_code == 204
	assert ok(server.get('%s/%s' % (path, CLUSTERS)))['value'] == one['defaultLimit']


def test_limits_refusals(server, crew):
	p = server.project()
	path = '/groups/%s/limits/%s' % (p['id'], CLUSTERS)
	most = ok(server.get(path))['maximumLimit']
	assert str(most) in refused(server.patch(path, json={'value': most + 1}), 400, None, 'value')['detail']
	refused(server.patch(path, json={'value': -1}), 400, None, 'value')
	refused(server.patch(path, json={'value': 'many'}), 400, None, 'value')
	refused(server.patch(path, json={'value': 1.5}), 400, None, 'value')
	refused(server.patch(path, json={}), 400, None, 'value')
	refused(server.patch(path, json={'value': 5, 'currentUsage': 1}), 400, None, 'currentUsage')
	missing = '/groups/%s/limits/no.such.limit' % p['id']
	for r in (server.get(missing), server.patch(missing, json={'value': 1}), server.delete(missing)):
		refused(r, 404, 'LIMIT_NOT_FOUND')
	refused(crew['reader'].patch('/groups/%s/limits/%s' % (crew['first'], CLUSTERS), json={'value': 3}), 403)
	refused(crew['reader'].delete('/groups/%s/limits/%s' % (crew['first'], CLUSTERS)), 403)
	refused(server.get('/groups/%s/limits' % NO_ID), 404)


def test_limits_of_two_projects_are_apart(server):
	a, b = server.project(), server.project()
	ok(server.patch('/groups/%s/limits/%s' % (a['id'], CLUSTERS), json={'value': 3}))
	assert ok(server.get('/groups/%s/limits/%s' % (b['id'], CLUSTERS)))['value'] != 3


def test_database_versions(server, crew):
	if Data().by_id['getDbVersions']['handler'] == 'unbuilt':
		pytest.skip('still to come')
	path = '/groups/%s/dbVersions' % server.group
	doc = ok(server.get(path))
	assert doc['results'] and doc['totalCount'] >= len(doc['results'])
	for provider in ('AWS', 'AZURE', 'GCP'):
		for x in ok(server.get(path, params={'cloudProvider': provider}))['results']:
			assert x['cloudProvider'] == provider
	for x in ok(server.get(path, params={'defaultStatus': 'DEFAULT'}))['results']:
		assert x['defaultStatus'] == 'DEFAULT'
	refused(server.get(path, params={'cloudProvider': 'MOON'}), 400, None, 'cloudProvider')


def test_private_ip_mode(server, crew):
	p = server.project()
	path = '/groups/%s/privateIpMode' % p['id']
	assert bare(ok(server.get(path))) == {'enabled': False}
	assert bare(ok(server.patch(path, json={'enabled': True}))) == {'enabled': True}
	assert bare(ok(server.get(path))) == {'enabled': True}
	assert bare(ok(server.patch(path, json={'enabled': False}))) == {'enabled': False}
	refused(server.patch(path, json={}), 400, None, 'enabled')
	refused(server.patch(path, json={'enabled': 1}), 400, None, 'enabled')
	refused(server.patch(path, json={'enabled': None}), 400, None, 'enabled')
	refused(server.patch(path, json={'enabled': True, 'links': []}), 400, None, 'links')
	refused(crew['reader'].patch('/groups/%s/privateIpMode' % crew['first'], json={'enabled': True}), 403)
	assert bare(ok(crew['reader'].get('/groups/%s/privateIpMode' % crew['first']))) == {'enabled': False}
	refused(server.get('/groups/%s/privateIpMode' % NO_ID), 404)


def test_project_owner_of_a_create(server):
	refused(server.post('/groups?projectOwnerId=x', json={'name': unique(), 'orgId': server.org}), 400, None,
			'projectOwnerId')
	r = server.post('/groups?projectOwnerId=' + server.bootstrap['userId'], json={'name': unique(),
			'orgId': server.org})
	ok(r)
	assert server.post('/groups?projectOwnerId=' + NO_ID, json={'name': unique(),
			'orgId': server.org}).status_code in (400, 404)


def test_what_was_written_survives_a_restart(start_server, tmp_path):
	s = start_server(data_dir=tmp_path / 'data')
	p = s.project(name='Überlebt', tags=[{'key': 'k', 'value': 'v'}])
	ok(s.patch('/groups/%s/limits/%s' % (p['id'], CLUSTERS), json={'value': 4}))
	ok(s.patch('/groups/%s/privateIpMode' % p['id'], json={'enabled': True}))
	before, tag = ok(s.get('/groups/' + p['id'])), s.get('/groups/' + p['id']).headers['ETag']
	s.stop()
	t = start_server(data_dir=tmp_path / 'data')
	assert t.bootstrap['apiKey'] == s.bootstrap['apiKey'] and t.org == s.org
	after = ok(t.get('/groups/' + p['id']))
	before.pop('links'), after.pop('links')
	assert before == after
	assert t.get('/groups/' + p['id']).headers['ETag'] == tag
	assert ok(t.get('/groups/%s/limits/%s' % (p['id'], CLUSTERS)))['value'] == 4
	assert bare(ok(t.get('/groups/%s/privateIpMode' % p['id']))) == {'enabled': True}
