"""script/never-returned: what it lists, and what its check complains about."""
import json
import pathlib
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = runpy.run_path(str(ROOT / 'script' / 'never-returned'))
SCHEMAS = {
	'Thing': {'type': 'object', 'allOf': [{'$ref': 'Base'}], 'properties': {
		'parts': {'type': 'array', 'items': {'$ref': 'Part'}}, 'words': {'type': 'array', 'items': {'type': 'string'}},
		'map': {'type': 'object', 'additionalProperties': {'$ref': 'Part'}}, 'inner': {'type': 'object', 'properties': {'deep': {'type': 'string'}}}}},
	'Base': {'type': 'object', 'properties': {'id': {'type': 'string'}}},
	'Part': {'type': 'object', 'properties': {'kind': {'type': 'string'}}, 'oneOf': [{'$ref': 'Big'}, {'$ref': 'Small'}],
		 'discriminator': {'propertyName': 'kind', 'mapping': {'big': 'Big', 'small': 'Small'}}},
	'Big': {'type': 'object', 'properties': {'kind': {'type': 'string'}, 'size': {'type': 'integer'}}},
	'Small': {'type': 'object', 'properties': {'kind': {'type': 'string'}, 'name': {'type': 'string'}}},
	'Old': {'type': 'object', 'properties': {'id': {'type': 'string'}, 'was': {'type': 'string'}}}}
OPERATION = {'operationId': 'getThing', 'method': 'GET', 'path': '/things/{id}', 'handler': 'get', 'produces': ['json'], 'response': {'$ref': 'Thing'},
	     'olderVersions': {'2023-01-01': {'response': {'$ref': 'Old'}}}}


@pytest.fixture
def rows(tmp_path):
	(tmp_path / 'things.json').write_text(json.dumps({'schemas': SCHEMAS, 'operations': [OPERATION]}))
	return NAMES['Rows'](tmp_path)


def answer(body, date='2024-08-05', query='', status=200):
	return {'method': 'GET', 'url': '/api/svc/v2/things/a%2Fb' + query, 'status': status, 'responseBody': body,
		'responseHeaders': {'Content-Type': 'application/vnd.svc.%s+json' % date}}


OLD = answer({'id': 'a', 'was': 'b'}, '2023-01-01')


def never(rows, *answers):
	found, silent = NAMES['never_returned'](rows, answers)
	return set(found), silent


def test_nothing_was_asked(rows):
	assert never(rows) == (set(), ['getThing', 'getThing of 2023-01-01'])
	assert never(rows, answer({'id': 'a'}, status=404))[1] == ['getThing', 'getThing of 2023-01-01']


def test_fields_at_every_depth(rows):
	assert never(rows, OLD, answer({}))[0] == {'Thing.parts', 'Thing.words', 'Thing.map', 'Thing.inner', 'Base.id'}
	assert never(rows, OLD, answer({'id': 'a', 'parts': [], 'words': [], 'map': {}, 'inner': {}}))[0] == {
		'Thing.parts[]', 'Thing.map{}', 'Thing.inner.deep'}, 'a list of texts has no fields'
	whole = {'id': 'a', 'parts': [{'kind': 'big'}], 'words': ['x'], 'map': {'y': {'kind': 'big', 'size': 1}}, 'inner': {'deep': None}}
	assert never(rows, OLD, answer(whole)) == ({'Part|Small'}, [])
	assert never(rows, OLD, answer({'content': whole, 'status': 200}, query='?envelope=true')) == ({'Part|Small'}, [])
	small = {**whole, 'parts': [{'kind': 'small'}]}
	assert never(rows, OLD, answer(whole), answer(small))[0] == {'Small.name'}


def test_each_form_has_fields_of_its_own(rows):
	found, silent = never(rows, answer({'id': 'a'}, '2023-01-01'))
	assert found == {'Old.was'} and silent == ['getThing']


def reasons(tmp_path, never=None, at_times=None):
	file = tmp_path / 'reasons.json'
	file.write_text(json.dumps({'never': never or {}, 'atTimes': at_times or {}}))
	return NAMES['Reasons'](file)


def test_the_check(rows, tmp_path):
	exchanges = [OLD, answer({'id': 'a', 'parts': [], 'words': [], 'map': {}, 'inner': {}})]
	check = lambda *given: NAMES['check'](rows, exchanges, reasons(tmp_path, *given))
	assert [x.split(':')[0] for x in check()] == ['Thing.inner.deep', 'Thing.map{}', 'Thing.parts[]']
	assert check({'nobody has parts': ['Thing.parts[]', 'Thing.map{}'], 'too deep': ['*.deep']}) == []
	stale = check({'all': ['Thing.*'], 'gone': ['Thing.words', 'Other.*']})
	assert len(stale) == 2 and 'Other.*' in stale[0] and 'Thing.words' in stale[1]
	assert check({'all': ['Thing.*']}, {'it depends': ['Thing.words']}) == [], 'what is returned at times may be returned'
	assert [x.split(':')[0] for x in NAMES['check'](rows, [OLD], reasons(tmp_path))] == ['getThing']


def test_the_reasons_are_of_fields_that_there_are():
	"""Whatever the tests exchange: a pattern of a schema that does not exist is a slip."""
	data = json.loads((ROOT / 'api' / 'reasons' / 'never_returned.json').read_text())
	schemas = NAMES['Rows']().schemas
	for pattern in [p for part in data.values() for patterns in part.values() for p in patterns]:
		name = pattern.replace('|', '.').split('.')[0]
		assert '*' in name or name in schemas or pattern.split(' ')[0] in {op['operationId'] for op in NAMES['Rows']().built}, pattern
