"""The API's data files, api/*.json, are whole: everything they name exists, once, and reads well."""
import collections
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = ROOT.parent / 'shared' / 'api'
PARAMETERS = ('pathParams', 'queryParams', 'headerParams')
OPERATION_KEYS = [
	'operationId', 'set', 'method', 'path', 'tag', 'summary', 'handler', 'roles', *PARAMETERS, 'request',
	'requestRequired', 'response', 'success', 'otherSuccess', 'versions', 'olderVersions', 'sunset', 'deprecated',
	'preview', 'paginated', 'produces', 'errors',
]


def load(path):
	return json.loads(path.read_text(encoding='utf-8'))


FAMILIES = {path.stem: load(path) for path in sorted((ROOT / 'api').glob('*.json')) if path.stem != 'roles'}
ROLES = load(ROOT / 'api' / 'roles.json')
OPERATIONS = [operation for family in FAMILIES.values() for operation in family['operations']]
SETS = [bucket for family in FAMILIES.values() for bucket in family['sets']]
SCHEMAS = {name: schema for family in FAMILIES.values() for name, schema in family['schemas'].items()}


def twice(values):
	return [value for value, count in collections.Counter(values).items() if count > 1]


def references(value):
	"""Every schema name that a piece of data refers to, by $ref or as the target of a discriminator."""
	if isinstance(value, dict):
		if isinstance(value.get('$ref'), str):
			yield value['$ref']
		discriminator = value.get('discriminator')
		if isinstance(discriminator, dict) and isinstance(discriminator.get('mapping'), dict):
			yield from discriminator['mapping'].values()
		value = list(value.values())
	if isinstance(value, list):
		for member in value:
			yield from references(member)


def reachable(names):
	found, waiting = set(), list(names)
	while waiting:
		name = waiting.pop()
		if name not in found:
			found.add(name)
			waiting.extend(references(SCHEMAS.get(name, {})))
	return found


def is_line(text, longest):
	return (isinstance(text, str) and text == text.strip() and 0 < len(text) <= longest
			and text.isprintable() and not text.endswith('.'))


def test_each_file_names_its_family():
	for name, family in FAMILIES.items():
		assert family['family'] == name
		assert is_line(family['title'], 60), name
		assert is_line(family['description'], 110), name


def test_numbers_of_operations_and_sets():
	assert len(OPERATIONS) == 447
	assert len(SETS) == 67
	assert FAMILIES['common']['operations'] == FAMILIES['common']['sets'] == []


def test_names_are_unique():
	assert not twice(operation['operationId'] for operation in OPERATIONS)
	assert not twice((operation['method'], operation['path']) for operation in OPERATIONS)
	assert not twice(bucket['id'] for bucket in SETS)
	assert not twice(name for family in FAMILIES.values() for name in family['schemas'])


def test_an_operation_and_its_set_live_in_the_same_file():
	for name, family in FAMILIES.items():
		ids = {bucket['id'] for bucket in family['sets']}
		assert ids == {operation['set'] for operation in family['operations']}, name


def test_sets_are_buckets():
	for bucket in SETS:
		assert bucket['name'] and bucket['scope'] in ('ORGANIZATION', 'GROUP', 'USER', 'IP'), bucket['id']
		for key in ('capacity', 'refillRate', 'refillDurationSeconds'):
			assert type(bucket[key]) is int and bucket[key] > 0, bucket['id']


def test_operations_have_their_keys_in_order():
	for operation in OPERATIONS:
		known = [key for key in operation if key in OPERATION_KEYS]
		assert known == [key for key in OPERATION_KEYS if key in operation], operation['operationId']
		assert operation['handler'], operation['operationId']


def test_path_parameters_are_those_of_the_path():
	for operation in OPERATIONS:
		names = re.findall(r'\{(\w+)\}', operation['path'])
		assert names == [parameter['name'] for parameter in operation['pathParams']], operation['operationId']


def test_references_resolve():
	dangling = {name for name in references(list(FAMILIES.values())) if name not in SCHEMAS}
	assert not dangling


def test_each_schema_is_used_and_lives_where_it_is_used():
	users = collections.defaultdict(set)
	for name, family in FAMILIES.items():
		for schema in reachable(references(family['operations'])):
			users[schema].add(name)
	for name, family in FAMILIES.items():
		for schema in family['schemas']:
			assert users[schema], '%s in api/%s.json is used by no operation' % (schema, name)
			home = 'common' if len(users[schema]) > 1 else next(iter(users[schema]))
			assert home == name, '%s belongs into api/%s.json' % (schema, home)


def test_roles_exist():
	roles = {**ROLES['organization'], **ROLES['project']}
	assert len(roles) == len(ROLES['organization']) + len(ROLES['project'])
	for operation in OPERATIONS:
		assert set(operation['roles']) <= set(roles), operation['operationId']
	for name, role in roles.items():
		assert is_line(role['description'], 110), name
		assert set(role['includes']) | set(role.get('inEveryProject', [])) <= set(roles), name


def test_summaries():
	assert not twice(operation['summary'].lower() for operation in OPERATIONS)
	for operation in OPERATIONS:
		assert is_line(operation['summary'], 110), operation['operationId']
		assert operation['summary'][0].isupper(), operation['operationId']


def test_parameters_and_schemas_are_described():
	for operation in OPERATIONS:
		for parameter in (parameter for key in PARAMETERS for parameter in operation.get(key, [])):
			assert is_line(parameter['description'], 110), (operation['operationId'], parameter['name'])
	for name, schema in SCHEMAS.items():
		assert is_line(schema['description'], 110), name


def test_files_are_formatted():
	check = subprocess.run([sys.executable, ROOT / 'script' / 'api-format', '--check'], capture_output=True, text=True)
	assert check.returncode == 0, check.stderr


# What a schema says about a value. Where the reference does not say such a thing, neither may we; other keys are ours.
FACTS = {
	'$ref', 'type', 'format', 'enum', 'pattern', 'default', 'minimum', 'maximum', 'exclusiveMinimum',
	'exclusiveMaximum', 'multipleOf', 'minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems', 'minProperties',
	'maxProperties', 'items', 'properties', 'additionalProperties', 'required', 'allOf', 'oneOf', 'anyOf', 'not',
	'discriminator', 'readOnly', 'writeOnly', 'nullable', 'deprecated', 'name',
}


def differences(ours, theirs, where):
	"""Where a schema or a parameter states other facts than the reference."""
	for key in sorted((FACTS & set(ours)) | set(theirs)):
		place = '%s/%s' % (where, key)
		if key not in ours or key not in theirs:
			yield place
		elif key == 'properties':
			if list(ours[key]) != list(theirs[key]):
				yield place
			for name in set(ours[key]) & set(theirs[key]):
				yield from differences(ours[key][name], theirs[key][name], '%s/%s' % (place, name))
		elif key in ('allOf', 'oneOf', 'anyOf'):
			if len(ours[key]) != len(theirs[key]):
				yield place
			for number, (our, their) in enumerate(zip(ours[key], theirs[key])):
				yield from differences(our, their, '%s/%d' % (place, number))
		elif key in ('items', 'additionalProperties', 'not') and isinstance(theirs[key], dict):
			if isinstance(ours[key], dict):
				yield from differences(ours[key], theirs[key], place)
			else:
				yield place
		elif ours[key] != theirs[key] or isinstance(ours[key], bool) != isinstance(theirs[key], bool):
			yield place


def parameter_differences(ours, theirs, where):
	if [parameter['name'] for parameter in ours] != [parameter['name'] for parameter in theirs]:
		yield where
		return
	for our, their in zip(ours, theirs):
		yield from differences(our, their, '%s/%s' % (where, their['name']))


# Where the reference is wrong, and why we say otherwise. It has readOnly on two named schemas, as if nobody could ever give
# a value of them; then no cluster could have read-only or analytics nodes, or auto-scaling. What is read-only are the
# fields that tell of sizes in effect. And its pattern of a user's name in a path leaves out names that it lets users have
# (capital letters, a host without a domain): nobody would find them.
CORRECTED = {
	'getUserByName/pathParams/userName/pattern', 'getUserByName/pathParams/userName/format',
	'DedicatedHardwareSpec20240805/readOnly', 'BaseCloudProviderInstanceSize/readOnly',
	*('%sRegionConfig20240805/allOf/1/properties/effective%sSpecs/readOnly' % (provider, kind)
      for provider in ('AWS', 'Azure', 'GCP') for kind in ('Analytics', 'Electable', 'ReadOnly')),
	'ServerlessProviderSettings/properties/effectiveInstanceSizeName/readOnly',
}


@pytest.mark.skipif(not REFERENCE.is_dir(), reason='the reference is not here')
def test_facts_are_those_of_the_reference():
	catalog, schemas = load(REFERENCE / 'catalog.json'), load(REFERENCE / 'schemas.json')
	roles = load(REFERENCE / 'roles.json')
	wrong = []

	for key in ('basePath', 'currentVersion'):
		if FAMILIES['common'][key] != catalog[key]:
			wrong.append(key)

	theirs = {bucket['id']: bucket for bucket in catalog['sets']}
	ours = {bucket['id']: bucket for bucket in SETS}
	assert set(ours) == set(theirs)
	for name, bucket in theirs.items():
		wrong += ['%s/%s' % (name, key) for key in bucket if key != 'endpoints' and bucket[key] != ours[name].get(key)]

	theirs = {row['operationId']: {**row, 'set': bucket['id']} for bucket in catalog['sets']
		  for row in bucket['endpoints']}
	ours = {operation['operationId']: operation for operation in OPERATIONS}
	assert set(ours) == set(theirs)
	for name, row in theirs.items():
		for key in OPERATION_KEYS:
			place = '%s/%s' % (name, key)
			if key in ('summary', 'handler'):
				continue
			if (key in row) != (key in ours[name]):
				wrong.append(place)
			elif key in PARAMETERS:
				wrong += parameter_differences(ours[name].get(key, []), row.get(key, []), place)
			elif row.get(key) != ours[name].get(key):
				wrong.append(place)
		wrong += ['%s/%s' % (name, key) for key in row if key not in OPERATION_KEYS]

	for name in SCHEMAS:
		wrong += differences(SCHEMAS[name], schemas[name], name) if name in schemas else [name]

	for scope in ('organization', 'project'):
		assert set(ROLES[scope]) == set(roles[scope])
		for name, role in roles[scope].items():
			wrong += ['%s/%s' % (name, key) for key in ('includes', 'inEveryProject')
				  if role.get(key) != ROLES[scope][name].get(key)]

	assert set(wrong) == CORRECTED
