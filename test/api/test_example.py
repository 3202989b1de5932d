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
	refused(example.get(notes + '/absent'), 404, 'NOTE_NOT_FOUND')
	refused(example.get(notes.replace('/notes', 'x/notes')), 404, 'CLUSTER_NOT_FOUND')


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


def test_a_reference_to_what_is_leaving(example, notes):
	"""It would name nothing a moment later."""
	add(example, notes, 'first')
	add(example, notes, 'second')
	ok(example.delete(notes + '/first'), 202)
	refused(example.post(notes, json={'name': 'third', 'follows': 'first'}), 400, 'NOTE_NOT_FOUND', 'follows')
	refused(example.patch(notes + '/second', json={'follows': 'first'}), 400, 'NOTE_NOT_FOUND', 'follows')


def test_a_note_may_follow_itself(example, notes):
	add(example, notes, 'first')
	assert ok(example.patch(notes + '/first', json={'follows': 'first'}))['follows'] == 'first'
	ok(example.delete(notes + '/first'), 202)


def test_notes_of_a_flex_cluster(example, group):
	name = unique('f')
	path, of = '/groups/%s/flexClusters/%s' % (group, name), '/groups/%s/clusters/%s' % (group, name)
	ok(example.post(path.rsplit('/', 1)[0], json={'name': name, 'providerSettings': {
		'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}}), 201)
	pass_time(example, lambda: ok(example.get(path))['stateName'] == 'IDLE')
	ids = [add(example, of + '/notes', 'first')['id'], comment(example, of + '/notes', 'first')]
	ready(example, of + '/notes', 'first')
	event, = ok(example.get('/groups/%s/events' % group, params={'eventType': 'ONLINE_ARCHIVE_ACTIVE',
		'includeRaw': 'true'}))['results']
	assert 'clusterName: ' + name in event['raw']['description']
	refused(example.get(of + '/processArgs'), 400, 'CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API', name)  # which lies below the others only
	ok(example.delete(path), 204)
	pass_time(example, lambda: example.get(path).status_code == 404)
	assert stored(example, *ids) == 0


# The second family, of a project: tags and their rules, sets of tags, boards that show sets.


class Tags:
	def __init__(self, example, group):
		self.example, self.group = example, '/groups/' + group
		self.tags, self.sets, self.boards = (self.group + '/' + word for word in ('labels', 'labelSets', 'labelBoards'))

	def tag(self, name, **more):
		return ok(self.example.post(self.tags, json={'name': name, 'pin': 'very-secret', **more}), 201)

	def set(self, name, **more):
		return ok(self.example.post(self.sets, json={'name': name, **more}), 201)

	def board(self, *sets):
		return ok(self.example.post(self.boards, json={'shows': [{'set': name} for name in sets]}), 201)

	def names(self, **filters):
		return [tag['name'] for tag in ok(self.example.get(self.tags, params=filters))['results']]

	def has(self, *sets):
		return [self.example.get(self.sets + '/' + name).status_code == 200 for name in sets]

	def pass_until_gone(self, tag):
		pass_time(self.example, lambda: self.example.get('%s/%s' % (self.tags, tag['id'])).status_code == 404)


@pytest.fixture
def tags(example, group):
	return Tags(example, group)


def sealed_of(example, doc):
	return example.rows("SELECT secret FROM doc WHERE id = '%s'" % doc['id'])[0][0]


def test_filters(tags):
	for name, color in (('one', 'RED'), ('two', 'BLUE'), ('three', 'GREEN'), ('Other', 'BLUE')):
		tags.tag(name, color=color)
	assert tags.names(color='BLUE') == ['two', 'Other']
	assert tags.names(color='BLUE,GREEN') == ['two', 'three', 'Other']
	assert tags.names(name='T') == ['two', 'three'] and tags.names(name='o', color='BLUE') == ['Other']
	assert tags.names(color='PINK') == []


def test_an_older_version(tags):
	old, body = {'Accept': 'application/vnd.svc.2023-01-01+json'}, {'name': 'one', 'pin': 'very-secret'}
	refused(tags.example.post(tags.tags, json={**body, 'color': 'BLUE'}, headers=old), 400, 'VALIDATION_ERROR', 'color')
	doc = ok(tags.example.post(tags.tags, json=body, headers=old), 201)
	assert set(doc) == {'createdBy', 'id', 'links', 'name'} and set(doc['createdBy']) == {'id'}
	assert ok(tags.example.get(tags.tags + '/' + doc['id']))['color'] == 'RED'


def test_project_limit(tags):
	for i in range(6):
		tags.tag('t%d' % i)
	refused(tags.example.post(tags.tags, json={'name': 'more', 'pin': 'very-secret'}), 400, 'PROJECT_LIMIT_EXCEEDED', '6',
		'svc.project.example.tags')


def test_by_name(tags):
	doc = tags.tag('one')
	assert ok(tags.example.get(tags.tags + '/byName/one'))['id'] == doc['id']
	refused(tags.example.get(tags.tags + '/byName/' + doc['id']), 404, 'TAG_NOT_FOUND')


def test_replace_keeps_what_is_the_services(tags):
	doc = tags.tag('one', color='BLUE')
	path = tags.tags + '/' + doc['id']
	now = ok(tags.example.put(path, json={'name': 'uno', 'pin': 'new-secret'}))
	assert (now['name'], now['color']) == ('uno', 'RED')
	assert all(now[field] == doc[field] for field in ('id', 'created', 'createdBy', 'state'))
	pass_time(tags.example, lambda: ok(tags.example.get(path))['state'] == 'ACTIVE')  # it still walks
	ok(tags.example.put(path, json={'name': 'uno', 'pin': 'new-secret'}))
	assert ok(tags.example.delete(path), 202)['state'] == 'DELETING'


@pytest.mark.parametrize('field', ['id', 'created', 'createdBy', 'state', 'links'])
def test_nobody_sets_what_is_the_services(tags, field):
	doc = tags.tag('one')
	value = {'state': 'DELETING', 'createdBy': {'id': 'me'}, 'links': []}.get(field, doc[field])
	for send in (tags.example.patch, tags.example.put):
		for given in (value, None):
			refused(send(tags.tags + '/' + doc['id'], json={'name': 'one', 'pin': 'very-secret', field: given}), 400)
	assert bare(ok(tags.example.get(tags.tags + '/' + doc['id']))) == bare(doc)


def test_a_sealed_field_that_is_required(tags):
	"""A change without it keeps it, and what is changed is still valid as a whole."""
	doc = tags.tag('one', hint='my-hint')
	path, both = tags.tags + '/' + doc['id'], sealed_of(tags.example, doc)
	ok(tags.example.patch(path, json={'color': 'BLUE'}))
	assert len(sealed_of(tags.example, doc)) == len(both)
	refused(tags.example.put(path, json={'name': 'one'}), 400, 'VALIDATION_ERROR', 'pin')
	refused(tags.example.patch(path, json={'pin': None}), 400)
	refused(tags.example.patch(path, json={'pin': 'x'}), 400, None, 'pin')  # too short for the whole
	ok(tags.example.patch(path, json={'hint': None}))
	assert len(sealed_of(tags.example, doc)) < len(both)  # it is gone
	assert len(sealed_of(tags.example, tags.tag('two'))) == len(sealed_of(tags.example, doc))


def test_sealed_fields_are_nowhere(tmp_path):
	"""Not in answers, refusals, events, logs, recordings or the store, whatever is sent."""
	from conftest import end
	s = client.Server(program=program(), record=tmp_path / 'calls')
	try:
		tags, word = Tags(s, s.project()['id']), 'Xyzzy'
		doc = tags.tag('one', pin=word + '1', hint=word + '2')
		path = tags.tags + '/' + doc['id']
		two, once = {'name': 'two', 'pin': word + '6'}, {'Idempotency-Key': 'again'}
		answers = [
			s.get(path), s.get(tags.tags),
			s.patch(path, json={'pin': word + '3', 'color': 'BLUE'}),
			s.patch(path, json={'pin': word * 9}), s.patch(path, json={'pin': [word]}), s.patch(path, json={'hint': {'a': word}}),
			s.put(path, json={'name': 'one', 'pin': word + '4', 'other': 1}),
			s.put(path, data='{"pin": "%s" oops' % word, headers={'Content-Type': 'application/json'}),
			s.post(tags.tags, json={'name': 'one', 'pin': word + '5'}),
			s.post(tags.tags, json=two, headers=once), s.post(tags.tags, json=two, headers=once),
			s.delete(path), s.get(tags.group + '/events', params={'includeRaw': 'true'})]
		assert [a.status_code for a in answers] == [200, 200, 200, 400, 400, 400, 400, 400, 409, 201, 201, 202, 200]
		for answer in answers:
			assert word not in answer.text, answer.text
		pass_time(s, lambda: s.get(path).status_code == 404)
	finally:
		end(s)
	assert word not in s.stderr + s.stdout
	recorded = [p for p in tmp_path.rglob('*') if p.is_file()]
	assert recorded and 'labels' in recorded[0].read_text()
	for file in [*recorded, *(p for p in s.data_dir.rglob('*') if p.is_file())]:
		assert word.encode() not in file.read_bytes(), file


def test_references_cascade(tags):
	one, two = tags.tag('one'), tags.tag('two')
	tags.set('a', tags=[two['id'], one['id']])
	tags.set('b', like='a')
	tags.set('c', tags=[two['id']])
	ok(tags.example.delete('%s/%s' % (tags.tags, one['id'])), 202)
	assert tags.has('a', 'b', 'c') == [False, False, True]  # also what names what went along
	refused(tags.example.post(tags.sets, json={'name': 'd', 'tags': [one['id']]}), 400, 'NO_SUCH_TAG', 'tags[0]')
	tags.pass_until_gone(one)
	assert tags.has('c') == [True]


def test_a_refusal_behind_a_cascade(tags):
	"""Nothing goes when something that would go along may not."""
	one = tags.tag('one')
	tags.set('a', tags=[one['id']])
	tags.set('b', like='a')
	board = tags.board('b')
	doc = refused(tags.example.delete('%s/%s' % (tags.tags, one['id'])), 409, 'SET_IS_SHOWN', 'b', board['id'])
	assert doc['detail'] == 'The board "%s" shows "b".' % board['id']
	refused(tags.example.delete(tags.sets + '/a'), 409, 'SET_IS_SHOWN')
	assert tags.has('a', 'b') == [True, True] and ok(tags.example.get('%s/%s' % (tags.tags, one['id'])))['state'] == 'NEW'
	ok(tags.example.delete('%s/%s' % (tags.boards, board['id'])), 204)
	ok(tags.example.delete(tags.sets + '/a'), 204)
	assert tags.has('a', 'b') == [False, False]


def test_a_long_chain_of_references(tags):
	tags.set('s0')
	for i in range(1, 200):
		tags.set('s%d' % i, like='s%d' % (i - 1))
	refused(tags.example.post(tags.sets, json={'name': 'one-more'}), 400, 'TOO_MANY_SETS')
	ok(tags.example.delete(tags.sets + '/s1'), 204)
	assert [s['name'] for s in ok(tags.example.get(tags.sets))['results']] == ['s0']


def test_a_circle_of_references(tags):
	tags.set('a')
	tags.set('b', like='a')
	ok(tags.example.put(tags.sets + '/a', json={'name': 'a', 'like': 'b'}))
	tags.set('self')
	ok(tags.example.put(tags.sets + '/self', json={'name': 'self', 'like': 'self'}))
	for name in ('a', 'self'):
		ok(tags.example.delete(tags.sets + '/' + name), 204)
	assert tags.has('a', 'b', 'self') == [False] * 3


@pytest.mark.parametrize('name', ['with "quotes"', 'back\\slash', 'new\nline', 'ümlaut', '%41'])
def test_names_that_json_writes_otherwise(tags, name):
	from urllib.parse import quote
	tags.set(name)
	board = tags.board(name)
	path = tags.sets + '/' + quote(name, safe='')
	refused(tags.example.delete(path), 409, 'SET_IS_SHOWN', name)
	ok(tags.example.delete('%s/%s' % (tags.boards, board['id'])), 204)
	ok(tags.example.delete(path), 204)


@pytest.mark.parametrize('name', ['.', '..'])
def test_names_that_no_path_has(tags, name):
	"""A client makes the link to its parent of the link to such a one."""
	refused(tags.example.post(tags.sets, json={'name': name}), 400, 'VALIDATION_ERROR', 'name')
	tags.set('a')
	refused(tags.example.put(tags.sets + '/a', json={'name': name}), 400, 'VALIDATION_ERROR', 'name')


def test_what_is_named_keeps_its_name(tags):
	tags.set('a')
	tags.set('b', like='a')
	refused(tags.example.put(tags.sets + '/a', json={'name': 'c'}), 409, 'RESOURCE_IN_USE', 'a', 'b')
	assert ok(tags.example.put(tags.sets + '/b', json={'name': 'c', 'like': 'a'}))['name'] == 'c'  # nothing names that
	board = tags.board('c')
	refused(tags.example.put(tags.sets + '/c', json={'name': 'd'}), 409, 'SET_IS_SHOWN', 'c', board['id'])


def test_references_stay_within_the_parent(example, tags):
	other = Tags(example, example.project()['id'])
	theirs = other.tag('theirs')
	other.set('theirs')
	for body, code in (({'tags': [theirs['id']]}, 'NO_SUCH_TAG'), ({'like': 'theirs'}, 'NO_SUCH_SET'),
			({'tags': [NO_ID]}, 'NO_SUCH_TAG'), ({'tags': ['no id']}, 'NO_SUCH_TAG')):
		refused(example.post(tags.sets, json={'name': 'mine', **body}), 400, code)
	refused(example.post(tags.boards, json={'shows': [{'set': 'theirs'}]}), 400, 'NO_SUCH_SET', 'shows[0].set')
	assert ok(example.get(tags.sets))['results'] == []


def test_events_of_what_lies_deep(tags):
	doc = tags.tag('one')
	path = '%s/%s/rules' % (tags.tags, doc['id'])
	rule = ok(tags.example.post(path, json={'text': 'x'}), 201)
	pass_time(tags.example, lambda: ok(tags.example.get(path + '/' + rule['id']))['state'] == 'FINISHED')
	found = ok(tags.example.get(tags.group + '/events', params={'eventType': 'ONLINE_ARCHIVE_ACTIVE',
		'includeRaw': 'true'}))['results']
	assert sum('ruleId: ' + rule['id'] in e['raw']['description'] for e in found) == 1


def test_a_project_goes_with_all_of_it(example, tags):
	doc = tags.tag('one')
	tags.set('a', tags=[doc['id']])
	board = tags.board('a')
	rule = ok(example.post('%s/%s/rules' % (tags.tags, doc['id']), json={'text': 'x'}), 201)
	assert example.delete(tags.group).status_code in (200, 204)
	assert stored(example, doc['id'], board['id'], rule['id']) == 0
	assert example.rows("SELECT count(*) FROM doc WHERE parent = '%s'" % tags.group.split('/')[2])[0][0] in (0, '0')


def at_once(count, call):
	"""The answers to calls from as many connections."""
	from concurrent.futures import ThreadPoolExecutor
	with ThreadPoolExecutor(count) as pool:
		return sorted(answer.status_code for answer in pool.map(call, range(count)))


def test_races(example, tags):
	got = at_once(12, lambda i: example.post(tags.tags, json={'name': 'same', 'pin': 'very-secret'}))
	assert got == [201] + [409] * 11
	got = at_once(12, lambda i: example.post(tags.tags, json={'name': 'n%d' % i, 'pin': 'very-secret'}))
	assert got == [201] * 5 + [400] * 7 and len(tags.names()) == 6  # the limit
	victim = ok(example.get(tags.tags))['results'][0]['id']
	at_once(12, lambda i: example.delete('%s/%s' % (tags.tags, victim)) if i == 5 else
		example.post(tags.sets, json={'name': 's%d' % i, 'tags': [victim]}))
	assert ok(example.get(tags.sets))['results'] == []  # made before it was deleted, and gone with it; or refused


def test_crashes(tmp_path):
	"""Killed in every state: it goes on from there, and says each thing once."""
	from conftest import end
	data, seen = tmp_path / 'data', {}
	s = client.Server(program=program(), data_dir=data)
	group = s.project()['id']
	doc = Tags(s, group).tag('one')
	state = lambda answer: answer.json()['state'] if answer.status_code == 200 else None
	for wanted in ('ACTIVE', None):
		s.kill()
		s = client.Server(program=program(), data_dir=data)
		tags = Tags(s, group)
		path = tags.tags + '/' + doc['id']
		pass_time(s, lambda: state(s.get(path)) == wanted)
		s.kill()
		s = client.Server(program=program(), data_dir=data)
		if wanted:
			ok(s.delete(path), 202)
	s.advance(60)
	for event in ok(s.get('/groups/%s/events' % group, params={'itemsPerPage': 100}))['results']:
		seen[event['eventTypeName']] = seen.get(event['eventTypeName'], 0) + 1
	end(s)
	assert [seen.get('ONLINE_ARCHIVE_' + word) for word in ('CREATED', 'ACTIVE', 'DELETED')] == [1, 1, 1]
