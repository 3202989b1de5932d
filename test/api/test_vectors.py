"""Indexes of the type vectorSearch on the simulated engine: the calls in both forms, their refusals, states and changes."""
import pytest

from client import ok, pass_time, refused
from test_clusters import create
from test_search import WHOLE, base, building, gone, older, ready, told

VECTOR = {'type': 'vector', 'path': 'embedding', 'numDimensions': 1536, 'similarity': 'cosine'}
FIELDS = [{**VECTOR, 'quantization': 'scalar'}, {'type': 'filter', 'path': 'tag'}, {'type': 'filter', 'path': 'doc.city'}]


def wish(name='vectors', fields=None, **more):
	return {'name': name, 'database': 'shop', 'collectionName': 'orders', 'type': 'vectorSearch', 'definition': {'fields': fields or FIELDS, **more}}


@pytest.fixture(scope='module')
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'searched')
	return group


@pytest.fixture(scope='module')
def apart(module_server):
	"""Where exchanges are not recorded: whole answers have more than the reference shows of both types."""
	module_server.control('engine', {})
	group = module_server.project()['id']
	create(module_server, group, 'searched')
	return module_server, group


def test_both_forms(server, group):
	"""From its creation to its end, as the reference shows it."""
	index = ok(server.post(base(group), json=wish('shown')), 201)
	place, old = '%s/%s' % (base(group), index['indexID']), '%s/%s' % (older(group), index['indexID'])
	ready(server, group, index['indexID'])
	assert ok(server.get(old))['status'] == 'STEADY' and ok(server.get(place))['type'] == 'vectorSearch'
	ok(server.patch(place, json={'definition': {'fields': [{**VECTOR, 'numDimensions': 3}]}}))
	assert ready(server, group, index['indexID'])['latestDefinitionVersion']['version'] == 1
	assert server.delete(place).status_code == 204
	gone(server, group, index['indexID'])


def test_an_index(apart):
	"""From its creation to its end; what is shown of it in each form."""
	server, group = apart
	first = ok(server.post(base(group), json=wish('first')), 201)
	assert first['status'] == 'PENDING' and first['queryable'] is False and first['type'] == 'vectorSearch'
	place = '%s/%s' % (base(group), first['indexID'])
	building(server, group, first['indexID'])
	index = ready(server, group, first['indexID'])
	assert index['queryable'] is True and index['latestDefinitionVersion']['version'] == 0 and 'fields' not in index['latestDefinition']
	whole = ok(server.get(place, headers=WHOLE))
	assert whole['latestDefinition'] == {'fields': FIELDS, 'numPartitions': 1}
	assert all(h['mainIndex']['definition']['fields'] == FIELDS for h in whole['statusDetail'])
	old = ok(server.get('%s/%s' % (older(group), first['indexID']), headers=WHOLE))
	assert old['fields'] == FIELDS and old['status'] == 'STEADY' and old['type'] == 'vectorSearch' and 'analyzer' not in old
	assert told(server, group, 'FTS_INDEX_CREATED') and told(server, group, 'FTS_INDEX_BUILD_COMPLETE')
	assert server.delete(place).status_code == 204
	gone(server, group, first['indexID'])


def test_a_change(apart):
	"""It is built beside the old one, which answers meanwhile."""
	server, group = apart
	index = ok(server.post(base(group), json=wish('changed')), 201)
	ready(server, group, index['indexID'])
	place, fields = '%s/%s' % (base(group), index['indexID']), [{**VECTOR, 'numDimensions': 3, 'similarity': 'dotProduct'}]
	ok(server.patch(place, json={'definition': {'fields': fields}}))
	staged = building(server, group, index['indexID'])
	assert staged['queryable'] is True and staged['statusDetail'][0]['stagedIndex']['status'] == 'BUILDING'
	ready(server, group, index['indexID'])
	whole = ok(server.get(place, headers=WHOLE))
	assert whole['latestDefinition']['fields'] == fields and whole['statusDetail'][0]['mainIndex']['definitionVersion']['version'] == 1
	for definition in ({'mappings': {'dynamic': True}}, {'fields': []}, {'fields': [{**VECTOR, 'path': 'missing'}]}):
		refused(server.patch(place, json={'definition': definition}), 400)
	assert ok(server.get(place))['status'] == 'READY'


def test_a_failure(server, group):
	"""What the database says of a build that failed is shown."""
	server.control('engine', {'fail': 'index', 'times': 1000})  # indexes of other tests may be tried again meanwhile
	index = ok(server.post(base(group), json=wish('failing')), 201)
	failed = ready(server, group, index['indexID'], 'FAILED')
	server.control('engine', {})
	assert failed['queryable'] is False and 'test control' in failed['statusDetail'][0]['stagedIndex']['message']


def test_a_type_stays(server, group):
	index = ok(server.post(base(group), json={**wish('words'), 'type': 'search', 'definition': {'mappings': {'dynamic': True}}}), 201)
	ready(server, group, index['indexID'])
	refused(server.patch('%s/%s' % (base(group), index['indexID']), json={'definition': {'fields': FIELDS}}), 400, 'VALIDATION_ERROR', 'definition')


def test_the_older_form(server, group):
	body = {k: v for k, v in wish('older').items() if k != 'definition'}
	index = ok(server.post(older(group), json={**body, 'fields': FIELDS}))
	assert index['type'] == 'vectorSearch' and index['status'] == 'IN_PROGRESS'
	pass_time(server, lambda: ok(server.get('%s/%s' % (older(group), index['indexID'])))['status'] == 'STEADY')
	refused(server.post(older(group), json={**body, 'fields': FIELDS}), 409, 'SEARCH_INDEX_ALREADY_EXISTS')
	refused(server.post(older(group), json={**body, 'name': 'o', 'fields': [{'type': 'vector'}]}), 400, 'VALIDATION_ERROR', 'fields[0].path')


def test_without_a_type(server, group):
	body = wish('untyped')
	del body['type']
	assert ok(server.post(base(group), json=body), 201)['type'] == 'vectorSearch'


@pytest.mark.parametrize('fields, place', [
	([], 'definition.fields'),
	([{'type': 'filter', 'path': 'a'}], 'definition.fields'),
	([{**VECTOR, 'type': 'knnVector'}], 'definition.fields[0].type'),
	([{k: v for k, v in VECTOR.items() if k != 'path'}], 'definition.fields[0].path'),
	([{**VECTOR, 'path': 'a..b'}], 'definition.fields[0].path'),
	([{**VECTOR, 'path': 'doc.embedding'}], 'definition.fields[0].path'),
	([{**VECTOR, 'path': 'missing'}], 'definition.fields[0].path'),
	([{**VECTOR, 'numDimensions': 0}], 'definition.fields[0].numDimensions'),
	([{**VECTOR, 'numDimensions': 8193}], 'definition.fields[0].numDimensions'),
	([{**VECTOR, 'numDimensions': '3'}], 'definition.fields[0].numDimensions'),
	([{**VECTOR, 'similarity': 'manhattan'}], 'definition.fields[0].similarity'),
	([{k: v for k, v in VECTOR.items() if k != 'similarity'}], 'definition.fields[0].similarity'),
	([{**VECTOR, 'quantization': 'ternary'}], 'definition.fields[0].quantization'),
	([{**VECTOR, 'hnswOptions': {'maxEdges': 16}}], 'definition.fields[0].hnswOptions'),
	([VECTOR, {**VECTOR, 'path': 'other'}], 'definition.fields[1]'),
	([VECTOR, {'type': 'filter', 'path': 'missing'}], 'definition.fields[1].path'),
	([VECTOR, {'type': 'filter', 'path': 'a', 'x': 1}], 'definition.fields[1].x'),
	([VECTOR, {'type': 'filter', 'path': 'a'}, {'type': 'filter', 'path': 'a'}], 'definition.fields[2].path'),
	([VECTOR] + [{'type': 'filter', 'path': 'f%d' % i} for i in range(32)], 'definition.fields[32]'),
])
def test_refusals(server, group, fields, place):
	body = wish('refused')
	body['definition']['fields'] = fields
	refused(server.post(base(group), json=body), 400, 'VALIDATION_ERROR', place)


@pytest.mark.parametrize('more, place', [
	({'nestedRoot': 'a'}, 'definition.nestedRoot'), ({'numPartitions': 2}, 'definition.numPartitions'),
	({'storedSource': {'include': ['a']}}, 'definition.storedSource'), ({'mappings': {}}, 'definition.mappings')])
def test_refused_options(server, group, more, place):
	refused(server.post(base(group), json=wish('refused', **more)), 400, 'VALIDATION_ERROR', place)
