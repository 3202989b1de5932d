"""The worked example of docs/architecture.md: test/example/api/notes.json is a family in data alone, with no line of C, and
everything that its rows promise happens. Its program is the service with this family added."""
import os

import pytest

import client
from client import NO_ID, bare, links, ok, pass_time, refused, unique

HERE = 'test/example/api/steward-example'  # below the folder that a build with tests is in


def program():
	given = os.environ.get('STEWARD_EXAMPLE_BIN')
	for path in [given] if given else [os.path.join(os.path.dirname(client.binary()), HERE), client.BUILD / 'asan' / HERE]:
		if os.access(path, os.X_OK):
			return os.path.abspath(path)
	pytest.skip('no steward-example: it is built with -Dtests=true (build/asan), or named in STEWARD_EXAMPLE_BIN')


@pytest.fixture(scope='module')
def example():
	"""Not recorded: the reference does not know these operations."""
	from conftest import end
	s = client.Server(program=program())
	yield s
	end(s)


@pytest.fixture
def group(example):
	example.refill()
	return example.project()['id']


def cluster(example, group):
	name = unique('c')
	ok(example.post('/groups/%s/clusters' % group, json={'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [
		{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
			'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}), 201)
	path = '/groups/%s/clusters/%s' % (group, name)
	pass_time(example, lambda: ok(example.get(path))['stateName'] == 'IDLE')
	return path


@pytest.fixture
def notes(example, group):
	return cluster(example, group) + '/notes'


def add(example, notes, name, **more):
	return ok(example.post(notes, json={'name': name, **more}), 201)


def state(example, notes, name):
	answer = example.get(notes + '/' + name)
	return ok(answer)['state'] if answer.status_code != 404 else None


def ready(example, notes, name):
	pass_time(example, lambda: state(example, notes, name) == 'READY')


def stored(example, *ids):
	"""How many of these documents the store still has."""
	return int(example.rows("SELECT count(*) FROM doc WHERE id IN (%s)" % ', '.join("'%s'" % i for i in ids))[0][0])


def test_fields(example, group, notes):
	answer = example.post(notes, json={'name': 'first', 'text': 'hello', 'pin': 'very secret'})
	doc = ok(answer, 201)
	assert doc['name'] == 'first' and doc['text'] == 'hello' and doc['state'] == 'PENDING'
	assert doc['groupId'] == group and doc['created'] and doc['updated'] and doc['updatedBy'] and client.ID.match(doc['id'])
	assert answer.headers['Location'] == links(doc)['self']
	assert bare(ok(example.get(notes + '/first'))) == bare(doc)
	assert add(example, notes, 'second')['text'] == ''  # the schema's default
	refused(example.post(notes, json={'name': 'no spaces'}), 400)
	refused(example.post(notes, json={'name': 'third', 'state': 'READY'}), 400, 'VALIDATION_ERROR', 'state')  # the service's
	refused(example.get(notes + '/absent'), 404)
	refused(example.get(notes.replace('/notes', 'x/notes')), 404)


def test_sealed(example, notes):
	made = example.post(notes, json={'name': 'first', 'pin': 'very secret'})
	ok(made, 201)
	changed = example.patch(notes + '/first', json={'pin': 'quite secret'})
	ok(changed)
	for answer in (made, changed, example.get(notes), example.get(notes + '/first')):
		assert 'pin' not in answer.text and 'secret' not in answer.text
	body, = example.rows("SELECT body FROM doc WHERE kind = 'note' AND id = '%s'" % made.json()['id'])
	assert 'secret' not in str(body)


def test_pages(example, notes):
	for i in range(3):
		add(example, notes, 'n%d' % i)
	page = ok(example.get(notes, params={'itemsPerPage': 2}))
	assert [n['name'] for n in page['results']] == ['n0', 'n1'] and page['totalCount'] == 3 and 'next' in links(page)
	last = ok(example.get(links(page)['next']))
	assert [n['name'] for n in last['results']] == ['n2'] and 'next' not in links(last)


def test_update(example, notes):
	add(example, notes, 'first', text='old')
	etag = example.get(notes + '/first').headers['ETag']
	doc = ok(example.patch(notes + '/first', json={'text': 'new'}, headers={'If-Match': etag}))
	assert doc['text'] == 'new' and doc['name'] == 'first'
	refused(example.patch(notes + '/first', json={'text': 'late'}, headers={'If-Match': etag}), 412, 'PRECONDITION_FAILED')
	assert ok(example.get(notes + '/first'))['text'] == 'new'


def test_touch(example, notes):
	doc = add(example, notes, 'first')
	example.advance(60)
	later = ok(example.patch(notes + '/first', json={'text': 'new'}))
	assert later['created'] == doc['created'] and later['updated'] > doc['updated']


def test_unique_name(example, group, notes):
	add(example, notes, 'first')
	refused(example.post(notes, json={'name': 'first'}), 409, 'NOTE_EXISTS', 'first')
	add(example, cluster(example, group) + '/notes', 'first')  # within its cluster


def test_limit(example, notes):
	for i in range(5):
		add(example, notes, 'n%d' % i)
	doc = refused(example.post(notes, json={'name': 'n5'}), 400, 'TOO_MANY_NOTES', '5')
	assert doc['detail'] == 'The cluster has 5 notes of 5. Delete one first.'


def test_events(example, group, notes):
	id_ = add(example, notes, 'first')['id']
	ready(example, notes, 'first')
	ok(example.patch(notes + '/first', json={'text': 'new'}))
	ok(example.delete(notes + '/first'), 202)
	types = ['ONLINE_ARCHIVE_' + word for word in ('CREATED', 'ACTIVE', 'UPDATED', 'DELETED')]
	found = ok(example.get('/groups/%s/events' % group, params={'eventType': types, 'includeRaw': 'true'}))['results']
	assert [e['eventTypeName'] for e in reversed(found)] == types
	for event in found:
		text = event['raw']['description']
		assert 'noteId: ' + id_ in text and 'clusterName: ' + notes.split('/')[4] in text
		assert ('note: first' in text) == (event['eventTypeName'] != 'ONLINE_ARCHIVE_ACTIVE')  # that one is no call's


def test_states(example, notes):
	add(example, notes, 'first')
	assert state(example, notes, 'first') == 'PENDING'
	ready(example, notes, 'first')
	assert ok(example.patch(notes + '/first', json={'text': 'new'}))['state'] == 'PENDING'
	ready(example, notes, 'first')
	assert ok(example.delete(notes + '/first'), 202)['state'] == 'DELETING'
	doc = refused(example.delete(notes + '/first'), 409, 'NOTE_IS_BUSY', 'first')
	assert doc['detail'] == 'The note "first" is DELETING.'
	refused(example.patch(notes + '/first', json={'text': 'late'}), 409, 'NOTE_IS_BUSY')
	pass_time(example, lambda: state(example, notes, 'first') is None)


def test_reference(example, notes):
	refused(example.post(notes, json={'name': 'second', 'follows': 'first'}), 400, 'NOTE_NOT_FOUND', 'follows')
	add(example, notes, 'first')
	add(example, notes, 'second', follows='first')
	refused(example.patch(notes + '/first', json={'follows': 'absent'}), 400, 'NOTE_NOT_FOUND')
	doc = refused(example.delete(notes + '/first'), 409, 'NOTE_IN_USE', 'first', 'second')
	assert doc['detail'] == 'The note "second" follows "first". Delete it first.'
	for name in ('second', 'first'):
		ok(example.delete(notes + '/' + name), 202)
		pass_time(example, lambda: state(example, notes, name) is None)


def comment(example, notes, name):
	return ok(example.post('%s/%s/comments' % (notes, name), json={'text': 'well said'}), 201)['id']


def test_comments(example, notes):
	add(example, notes, 'first')
	add(example, notes, 'second')
	path = notes + '/first/comments/'
	id_ = comment(example, notes, 'first')
	assert ok(example.get(path + id_))['text'] == 'well said'
	assert [c['id'] for c in ok(example.get(path[:-1]))['results']] == [id_]
	refused(example.get(notes + '/second/comments/' + id_), 404)  # of another note
	refused(example.get(path + NO_ID), 404)
	assert links(ok(example.get(notes + '/first')))
	ok(example.delete(path + id_), 204)
	refused(example.get(path + id_), 404)


def test_cascade_from_the_note(example, notes):
	ids = [add(example, notes, 'first')['id'], comment(example, notes, 'first'), comment(example, notes, 'first')]
	kept = [add(example, notes, 'second')['id'], comment(example, notes, 'second')]
	ok(example.delete(notes + '/first'), 202)
	assert stored(example, *ids) == 3  # on its way
	pass_time(example, lambda: stored(example, *ids) == 0)
	assert stored(example, *kept) == 2


def test_cascade_from_the_cluster(example, group, notes):
	ids = [add(example, notes, 'first')['id'], comment(example, notes, 'first')]
	other = cluster(example, group) + '/notes'
	kept = [add(example, other, 'first')['id'], comment(example, other, 'first')]
	path = notes[:-len('/notes')]
	refused(example.delete('/groups/' + group), 409)  # it has clusters
	for remove in (path, other[:-len('/notes')]):
		ok(example.delete(remove), 202)
		pass_time(example, lambda: example.get(remove).status_code == 404)
		assert stored(example, *ids) == 0
		assert stored(example, *kept) == (2 if remove == path else 0)
	example.advance(60)  # jobs of notes that went find nothing to do
	assert example.delete('/groups/' + group).status_code in (200, 204)
	refused(example.get(notes), 404)


def test_roles(example):
	org, = example.seed({'name': unique('o'), 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': [role]}]}
		for role in ('GROUP_READ_ONLY', 'GROUP_CLUSTER_MANAGER')]})
	reader, manager = (example.api_for(p) for p in org['principals'])
	path = '/groups/%s/clusters/absent/notes' % org['projects'][0]['id']
	refused(reader.post(path, json={'name': 'first'}), 403)
	refused(manager.post(path, json={'name': 'first'}), 404)  # through the gates: there is no such cluster
	refused(reader.get(path), 404)
	refused(example.anonymous.get(path), 401)


def test_openapi(example):
	doc = ok(example.anonymous.get('/openapi.json'))
	found = {p: set(item) for p, item in doc['paths'].items() if '/notes' in p}
	assert {p.split('/notes')[1] for p in found} == {'', '/{noteName}', '/{noteName}/comments',
							 '/{noteName}/comments/{commentId}'}, found
	assert {'get', 'post'} <= next(v for p, v in found.items() if p.endswith('/notes'))
	note = doc['components']['schemas']['Note']
	assert note['properties']['pin']['writeOnly'] and note['properties']['state']['enum'] == ['PENDING', 'READY', 'DELETING']
