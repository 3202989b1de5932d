"""Search indexes on the simulated engine: the calls in both forms, their refusals, states, changes, failures and events."""
import pytest

from client import NO_ID, ok, pass_time, refused, until
from test_clusters import create, path, settle

FIELDS = {'title': {'type': 'string', 'analyzer': 'lucene.english'}, 'tag': [{'type': 'token'}, {'type': 'autocomplete'}],
	  'doc': {'type': 'document', 'fields': {'n': {'type': 'number'}}}}
DEFINITION = {'analyzer': 'lucene.german', 'mappings': {'fields': {'title': {'type': 'string'}}}}
WHOLE = {'X-Steward-Whole': 'true'}


def base(group, name='searched'):
	return path(group, name) + '/search/indexes'


def older(group, name='searched'):
	return path(group, name) + '/fts/indexes'


def wish(name='words', **more):
	return {'name': name, 'database': 'shop', 'collectionName': 'orders', 'type': 'search', 'definition': DEFINITION, **more}


def made(server, group, name='words', **more):
	"""A search index that answers queries."""
	index = ok(server.post(base(group), json=wish(name, **more)), 201)
	return ready(server, group, index['indexID'])


def ready(server, group, index, status='READY'):
	return pass_time(server, lambda: (lambda d: d['status'] == status and d)(ok(server.get('%s/%s' % (base(group), index)))))


def building(server, group, index):
	"""Without a virtual clock that moves on it stays so."""
	return until(lambda: (lambda d: d['status'] == 'BUILDING' and d)(ok(server.get('%s/%s' % (base(group), index)))))


def gone(server, group, index):
	pass_time(server, lambda: server.get('%s/%s' % (base(group), index)).status_code == 404)


def told(server, group, kind):
	found = ok(server.get('/groups/%s/events?includeRaw=true&itemsPerPage=500' % group))['results']
	return [e for e in found if e['eventTypeName'] == kind]


@pytest.fixture(scope='module')
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'searched')
	return group


def test_an_index(server, group):
	first = ok(server.post(base(group), json=wish('first')), 201)
	assert first['status'] == 'PENDING' and first['queryable'] is False and first['type'] == 'search'
	assert {k: first[k] for k in ('name', 'database', 'collectionName')} == {'name': 'first', 'database': 'shop', 'collectionName': 'orders'}
	assert first['latestDefinitionVersion']['version'] == 0
	building(server, group, first['indexID'])
	index = ready(server, group, first['indexID'])
	assert index['queryable'] is True and len(index['statusDetail']) == 3
	host = index['statusDetail'][0]
	assert host['status'] == 'READY' and host['mainIndex']['queryable'] is True and 'stagedIndex' not in host
	hosts = {p['hostname'] for p in ok(server.get('/groups/%s/processes' % group))['results']}
	assert {h['hostname'] for h in index['statusDetail']} == hosts
	assert [e for e in told(server, group, 'FTS_INDEX_BUILD_COMPLETE') if 'first' in str(e) and 'shop.orders' in str(e)]
	assert told(server, group, 'FTS_INDEX_CREATED')


def test_both_ways_to_it(server, group):
	"""By id and by name, in lists of the cluster and of a collection."""
	index = made(server, group, 'ways')
	made(server, group, 'ways', collectionName='others')
	by_name = '%s/shop/orders/ways' % base(group)
	assert ok(server.get(by_name)) == ok(server.get('%s/%s' % (base(group), index['indexID'])))
	assert {i['collectionName'] for i in ok(server.get(base(group))) if i['name'] == 'ways'} == {'orders', 'others'}
	assert [i['collectionName'] for i in ok(server.get(base(group) + '/shop/others'))] == ['others']
	assert ok(server.get(base(group) + '/shop/nothing')) == []
	refused(server.get(base(group) + '/shop/orders/nothing'), 404, 'SEARCH_INDEX_NOT_FOUND')
	refused(server.get('%s/%s' % (base(group), NO_ID)), 404, 'SEARCH_INDEX_NOT_FOUND')
	refused(server.get(base(group, 'nowhere')), 404)
	ok(server.patch(by_name, json={'definition': DEFINITION}))
	ready(server, group, index['indexID'])
	assert server.delete(by_name).status_code == 204
	gone(server, group, index['indexID'])
	refused(server.delete(by_name), 404, 'SEARCH_INDEX_NOT_FOUND')


def test_a_name_twice(server, group):
	index = made(server, group, 'twice')
	refused(server.post(base(group), json=wish('twice')), 409, 'SEARCH_INDEX_ALREADY_EXISTS', 'name')
	body = {k: v for k, v in wish('twice').items() if k != 'definition'}
	refused(server.post(older(group), json={**body, **DEFINITION}), 409, 'SEARCH_INDEX_ALREADY_EXISTS', 'name')
	assert server.delete('%s/%s' % (base(group), index['indexID'])).status_code == 204
	gone(server, group, index['indexID'])
	made(server, group, 'twice')


def test_what_is_not_there(server, group):
	"""In both forms, by id and by name; and a cluster that is not there has no list."""
	for call in (server.get, server.delete):
		refused(call('%s/%s' % (base(group), NO_ID)), 404)
		refused(call('%s/%s' % (older(group), NO_ID)), 404)
		refused(call('%s/shop/orders/nothing' % base(group)), 404)
	refused(server.patch(base(group) + '/shop/orders/nothing', json={'definition': DEFINITION}), 404)
	refused(server.get(base(group, 'nowhere') + '/shop/orders'), 404)
	refused(server.get(older(group, 'nowhere') + '/shop/orders'), 404)


def test_a_changed_definition(server, group):
	"""It is built beside the one that answers queries."""
	index = made(server, group, 'changed')
	place = '%s/%s' % (base(group), index['indexID'])
	changed = ok(server.patch(place, json={'definition': {'mappings': {'dynamic': {}}}}))
	assert changed['latestDefinitionVersion']['version'] == 1 and changed['status'] == 'PENDING' and changed['queryable'] is True
	under_way = building(server, group, index['indexID'])
	assert under_way['queryable'] is True
	for host in under_way['statusDetail']:
		assert host['mainIndex']['status'] == 'READY' and host['mainIndex']['definitionVersion']['version'] == 0
		assert host['stagedIndex']['status'] == 'BUILDING' and host['stagedIndex']['definitionVersion']['version'] == 1
	until(lambda: 'X-Steward-Progress' in server.get(place).headers)
	after = ready(server, group, index['indexID'])
	assert after['statusDetail'][0]['mainIndex']['definitionVersion']['version'] == 1
	assert 'stagedIndex' not in after['statusDetail'][0] and told(server, group, 'FTS_INDEX_UPDATED')


def test_a_change_while_one_is_built(server, group):
	"""The last definition is the one that stays, and nothing of the others."""
	index = made(server, group, 'hasty')
	place = '%s/%s' % (base(group), index['indexID'])
	ok(server.patch(place, json={'definition': {'mappings': {'dynamic': {}}}}))
	building(server, group, index['indexID'])
	for _ in range(3):
		ok(server.patch(place, json={'definition': DEFINITION}))
	after = ready(server, group, index['indexID'])
	assert after['statusDetail'][0]['mainIndex']['definitionVersion']['version'] == 4


def test_many_changes_while_one_is_built(module_server):
	"""One build waits behind the one that is under way, however often the index is changed; it takes the newest definition. Not
	recorded, for the same reason as the whole definition."""
	server = module_server
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'searched')
	index = ok(server.post(base(group), json=wish('busy')), 201)
	place = '%s/%s' % (base(group), index['indexID'])
	cluster = ok(server.get(path(group, 'searched')))['id']
	building(server, group, index['indexID'])
	for n in range(20):
		ok(server.patch(place, json={'definition': {'mappings': {'fields': {'field%d' % n: {'type': 'string'}}}}}))
	assert len(server.rows("SELECT kind FROM job WHERE kind = 'search_build' AND subject LIKE '%%/%s'" % cluster)) == 2
	after = ready(server, group, index['indexID'])
	assert after['statusDetail'][0]['mainIndex']['definitionVersion']['version'] == 20
	fields = ok(server.get(place, headers=WHOLE))['statusDetail'][0]['mainIndex']['definition']['mappings']['fields']
	assert set(fields) == {'field19'}
	assert len([e for e in told(server, group, 'FTS_INDEX_BUILD_COMPLETE') if 'busy' in str(e)]) == 2


def test_a_failure(server, group):
	server.control('engine', {'fail': 'index', 'times': 1})
	index = ok(server.post(base(group), json=wish('failing')), 201)
	failed = ready(server, group, index['indexID'], 'FAILED')
	assert failed['queryable'] is False and 'test control' in failed['statusDetail'][0]['stagedIndex']['message']
	one, = told(server, group, 'FTS_INDEX_BUILD_FAILED')
	assert 'failing' in str(one) and 'test control' in str(one)
	place = '%s/%s' % (base(group), index['indexID'])
	ok(server.patch(place, json={'definition': DEFINITION}))
	assert ready(server, group, index['indexID'])['queryable'] is True
	server.control('engine', {'fail': 'index', 'times': 1})
	ok(server.patch(place, json={'definition': DEFINITION}))
	assert ready(server, group, index['indexID'], 'FAILED')['queryable'] is True


def test_a_deletion_while_it_is_built(server, group):
	index = ok(server.post(base(group), json=wish('short')), 201)
	building(server, group, index['indexID'])
	place = '%s/%s' % (base(group), index['indexID'])
	assert server.delete(place).status_code == 204
	assert ok(server.get(place))['status'] == 'DELETING'
	assert server.delete(place).status_code == 204
	refused(server.patch(place, json={'definition': DEFINITION}), 409, 'SEARCH_INDEX_IS_DELETED')
	gone(server, group, index['indexID'])
	assert told(server, group, 'FTS_INDEX_DELETED')


def test_the_older_form(server, group):
	body = {'name': 'elder', 'database': 'shop', 'collectionName': 'orders', **DEFINITION}
	index = ok(server.post(older(group), json=body))
	assert index['status'] == 'IN_PROGRESS' and 'definition' not in index and 'latestDefinition' not in index
	ready(server, group, index['indexID'])
	place = '%s/%s' % (older(group), index['indexID'])
	assert ok(server.get(place))['status'] == 'STEADY'
	assert [i['indexID'] for i in ok(server.get(older(group) + '/shop/orders')) if i['name'] == 'elder'] == [index['indexID']]
	refused(server.patch(place, json={**body, 'name': 'other'}), 400, 'VALIDATION_ERROR', 'name')
	ok(server.patch(place, json=body))
	assert ready(server, group, index['indexID'])['latestDefinitionVersion']['version'] == 1
	refused(server.post(older(group), json={**body, 'mappings': {'fields': {'a': {'type': 'geo'}}}}), 400, 'VALIDATION_ERROR',
		'mappings.fields.a.type')
	assert server.delete(place).status_code == 204
	gone(server, group, index['indexID'])
	refused(server.get(place), 404, 'SEARCH_INDEX_NOT_FOUND')


def test_the_whole_definition(module_server):
	"""What text indexes have alone is shown to whoever asks for it. Clients send true, and lists of types. Not recorded: the
	reference's checker knows the common forms."""
	server = module_server
	group = server.project()['id']
	create(server, group, 'searched')
	definition = {'mappings': {'dynamic': True, 'fields': FIELDS}}
	index = made(server, group, 'whole', definition=definition)
	place = '%s/%s' % (base(group), index['indexID'])
	assert 'mappings' not in index['latestDefinition']
	whole = ok(server.get(place, headers=WHOLE))
	assert whole['latestDefinition']['mappings'] == definition['mappings'] and whole['latestDefinition']['numPartitions'] == 1
	assert whole['statusDetail'][0]['mainIndex']['definition']['mappings'] == definition['mappings']
	old = ok(server.get('%s/%s' % (older(group), index['indexID']), headers=WHOLE))
	assert old['analyzer'] == 'lucene.standard' and old['mappings'] == definition['mappings']


@pytest.mark.parametrize('change, field', [
	({'name': ''}, 'name'),
	({'name': '..'}, 'name'),
	({'name': 'n' * 128}, 'name'),
	({'database': ''}, 'database'),
	({'collectionName': 'missing'}, 'collectionName'),
	({'type': 'vectorSearch'}, 'definition.mappings'),
	({'type': 'other'}, 'type'),
	({'definition': {}}, 'definition.mappings'),
	({'definition': {'mappings': {}}}, 'definition.mappings'),
	({'definition': {'mappings': {'fields': {'missing': {'type': 'string'}}}}}, 'definition.mappings.fields.missing'),
	({'definition': {'mappings': {'fields': {'a': {'type': 'geo'}}}}}, 'definition.mappings.fields.a.type'),
	({'definition': {'mappings': {'fields': {'a': [{'type': 'string'}, {'type': 'number', 'x': 1}]}}}}, 'definition.mappings.fields.a[1].x'),
	({'definition': {**DEFINITION, 'analyzer': 'lucene.kuromoji'}}, 'definition.analyzer'),
	({'definition': {**DEFINITION, 'analyzer': 'klingon'}}, 'definition.analyzer'),
	({'definition': {**DEFINITION, 'numPartitions': 2}}, 'definition.numPartitions'),
	({'definition': {**DEFINITION, 'synonyms': [{'name': 's', 'analyzer': 'lucene.english', 'source': {'collection': 'c'}}] * 2}},
		'definition.synonyms[1].name'),
	({'definition': {**DEFINITION, 'synonyms': [{'name': 's', 'analyzer': 'lucene.morfologik', 'source': {'collection': 'c'}}]}},
		'definition.synonyms[0].analyzer'),
	({'definition': {'mappings': {'fields': {'a': {'type': 'string', 'multi': {'b': {'type': 'token'}}}}}}}, 'definition.mappings.fields.a.multi.b'),
	({'definition': {**DEFINITION, 'analyzers': [{'name': 'a', 'tokenizer': {}}]}}, 'definition.analyzers[0].tokenizer.type'),
	({'definition': {**DEFINITION, 'analyzers': [{'name': 'a', 'tokenizer': {'type': 'standard'}, 'tokenFilters': [
		{'type': 'lowercase'}, {'type': 'stempel'}]}]}}, 'definition.analyzers[0].tokenFilters[1].type'),
	({'definition': {**DEFINITION, 'storedSource': {'include': 'a'}}}, 'definition.storedSource'),
	({'definition': {'mappings': {'fields': {'f%d' % i: {'type': 'number'} for i in range(33)}}}}, 'definition.mappings.fields.f32'),
])
def test_refusals(server, group, change, field):
	refused(server.post(base(group), json={**wish('refused'), **change}), 400, 'VALIDATION_ERROR', field)
	assert not [i for i in ok(server.get(base(group))) if i['name'] == 'refused']


OWN = {'name': 'own', 'charFilters': [{'type': 'mapping', 'mappings': {'&': ' and '}}], 'tokenizer': {'type': 'edgeGram', 'minGram': 2, 'maxGram': 5},
       'tokenFilters': [{'type': 'lowercase'}]}


def test_analyzers_of_ones_own(server, group):
	"""In both forms, whose schemas are not the same."""
	mappings = {'fields': {'a': {'type': 'string', 'analyzer': 'own'}}}
	made(server, group, 'own', definition={'mappings': mappings, 'analyzers': [OWN]})
	body = {'name': 'own too', 'database': 'shop', 'collectionName': 'orders', 'mappings': mappings, 'analyzers': [OWN]}
	ready(server, group, ok(server.post(older(group), json=body))['indexID'])
	refused(server.post(older(group), json={**body, 'name': 'x', 'analyzers': [{**OWN, 'tokenFilters': [{'type': 'kStemming'}]}]}), 400,
		'VALIDATION_ERROR', 'analyzers[0].tokenFilters[0].type')


def test_stored_source(server, group):
	source = {'include': ['title', 'tag']}
	index = made(server, group, 'stored', definition={**DEFINITION, 'storedSource': source})
	assert index['latestDefinition']['storedSource'] == source
	body = {'name': 'stored too', 'database': 'shop', 'collectionName': 'orders', 'storedSource': {'exclude': ['body']}, **DEFINITION}
	made_too = ok(server.post(older(group), json=body))
	assert made_too['storedSource'] == {'exclude': ['body']}
	ready(server, group, made_too['indexID'])


def test_without_a_type(server, group):
	body = wish('untyped')
	del body['type']
	index = ok(server.post(base(group), json=body), 201)
	assert index['type'] == 'search'
	refused(server.post(base(group), json={**body, 'name': 'u', 'definition': {'mappings': {}, 'x': 1}}), 400, 'VALIDATION_ERROR', 'definition.x')


def test_a_paused_cluster(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'searched')
	index = made(server, group)
	ok(server.patch(path(group, 'searched'), json={'paused': True}))
	settle(server, group, 'searched')
	refused(server.post(base(group), json=wish('other')), 409)
	assert ok(server.get('%s/%s' % (base(group), index['indexID'])))['queryable'] is False
	assert ok(server.get('%s/%s' % (older(group), index['indexID'])))['status'] == 'PAUSED'


def test_they_go_with_their_cluster(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'searched')
	made(server, group)
	ok(server.post(base(group), json=wish('more')), 201)
	cluster = ok(server.get(path(group, 'searched')))['id']
	server.delete(path(group, 'searched'))
	pass_time(server, lambda: server.get(path(group, 'searched')).status_code == 404)
	assert not server.rows("SELECT kind FROM job WHERE kind LIKE 'search_%%' AND subject LIKE '%%/%s'" % cluster)


def test_a_hundred(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'searched')
	for i in range(100):
		ok(server.post(base(group), json=wish('index %d' % i)), 201)
	refused(server.post(base(group), json=wish('one more')), 400, 'TOO_MANY_SEARCH_INDEXES')
