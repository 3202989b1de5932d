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


def test_commands():
	"""Each operation has one of its own, in words that people type; each first word is described where it is used."""
	commands = [command for operation in OPERATIONS for command in [operation['command'], *operation.get('commandAliases', [])]]
	assert not twice(commands)
	for command in commands:
		assert re.fullmatch(r'[a-z0-9-]+( [a-z0-9-]+){1,2}', command), command
	families = {word: text for family in FAMILIES.values() for word, text in family.get('commandFamilies', {}).items()}
	assert {command.split()[0] for command in commands} == set(families)
	for word, text in families.items():
		assert is_line(text, 80) and text[0].isupper(), word


def without_command(tmp_path, change):
	for path in (ROOT / 'api').glob('*.json'):
		data = load(path)
		if path.stem == 'teams':
			change(data)
		(tmp_path / path.name).write_text(json.dumps(data), encoding='utf-8')
	return subprocess.run([ROOT / 'script/gen-catalog', tmp_path / 'out.c', tmp_path / 'out.h', *sorted(tmp_path.glob('*.json'))],
		capture_output=True, text=True, timeout=60).stderr


@pytest.mark.parametrize('key, value, said', [
	('command', None, 'has no command'), ('command', 'projects list', 'is that of'), ('command', 'teams', 'two or three words'),
	('command', 'Teams list', 'two or three words'), ('command', 'a b c d', 'two or three words'),
	('command', 'nowhere list', 'describes nowhere'), ('command', 'projects list twice', 'begins with another command'),
	('columns', ['nothing'], 'column nothing'), ('waitOn', 'listGroups', 'no GET with a state'),
])
def test_the_build_refuses_commands(tmp_path, key, value, said):
	assert said in without_command(tmp_path, lambda data: data['operations'][0].update({key: value}))


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


def as_text(pattern):
	"""A pattern without the backslashes that Unicode expressions do not allow, and the reference has: before a colon or a hyphen."""
	return re.sub(r'\\([:-])', r'\1', pattern)


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
		elif key == 'pattern':
			if as_text(ours[key]) != as_text(theirs[key]):
				yield place
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
# (capital letters, a host without a domain): nobody would find them. Some patterns let no real value pass (see SENSIBLE):
# the place of an exported snapshot is a template's text; New Relic's accounts have numbers, and its keys letters; ids of Azure
# have slashes, which are decoded before a path's parameter is looked at. And the reference knows no event of a store that is
# damaged. An export bucket's answer is held to what buckets of all providers have, whatever its discriminator maps to. And the
# options of an index lack the one that makes it unique. A container of Google Cloud without regions is for all of them, as
# clients make it; the answer has the list, empty. And groups of private endpoints at Google have names, by which they are found;
# an endpoint service's answer is held to what services of all providers have. And mappings of search indexes: clients send true for
# dynamic ones, and a list for a field that is searched in several ways.
CORRECTED = {
	'SearchMappings/properties/dynamic/type', 'Fields/type',
	'GCPCloudProviderContainer/required', 'AWSPrivateLinkConnection/required',
	'IndexOptions/properties',
	'OrgEventTypeViewForOrg/enum', 'EventTypeForOrg/oneOf/9/enum', 'DiskBackupSnapshotExportBucketResponse/discriminator',
	'DiskBackupExportJob/properties/prefix/pattern', 'NewRelic/properties/accountId/pattern',
	'NewRelic/properties/licenseKey/pattern', 'AzurePrivateEndpoint/properties/privateEndpointConnectionName/pattern',
	'getPrivateEndpoint/pathParams/endpointId/pattern', 'deletePrivateEndpoint/pathParams/endpointId/pattern',
	'getUserByName/pathParams/userName/pattern', 'getUserByName/pathParams/userName/format',
	'DedicatedHardwareSpec20240805/readOnly', 'BaseCloudProviderInstanceSize/readOnly',
	*('%sRegionConfig20240805/allOf/1/properties/effective%sSpecs/readOnly' % (provider, kind)
      for provider in ('AWS', 'Azure', 'GCP') for kind in ('Analytics', 'Electable', 'ReadOnly')),
	'ServerlessProviderSettings/properties/effectiveInstanceSizeName/readOnly',
	# Blanks inside, but not at the ends, where nobody sees them.
	*('%s/pattern' % place for place in (
		'GroupInvitation/properties/groupName', 'OrgGroup/properties/groupName', 'OrgGroup/properties/orgName', 'Group/properties/name',
		'FlexBackupRestoreJob20241113/properties/targetDeploymentItemName', 'SvcOrganization/properties/name',
		'FlexBackupRestoreJobCreate20241113/properties/targetDeploymentItemName', 'CreateOrganizationRequest/properties/name',
		'OrganizationInvitation/properties/orgName')),
}


# What it does not have: lists in which something is looked for by its name, and that come in another order.
ADDED = {'q', 'sort'}
SEARCHED = {'listGroups', 'getOrgGroups', 'listOrgs', 'listClusters', 'listOrgUsers', 'listGroupUsers', 'listOrgTeams'}


def without_added(operation):
	"""The operation as the reference could have it."""
	kept = [p for p in operation.get('queryParams', []) if p['name'] not in ADDED]
	assert (len(kept) < len(operation.get('queryParams', []))) == (operation['operationId'] in SEARCHED)
	return {**{k: v for k, v in operation.items() if k != 'queryParams'}, **({'queryParams': kept} if kept else {})}


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
	ours = {operation['operationId']: without_added(operation) for operation in OPERATIONS}
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


# What people would write, for each pattern that a value of theirs or ours must match.
HEX, UUID = '32b6e34b3d91647abb20e7b8', '0f8fad5b-d9cb-469f-a165-70867728950e'
AZURE = '/subscriptions/%s/resourceGroups/my-group/providers/Microsoft.Network/privateEndpoints/my-endpoint' % UUID
SENSIBLE = {
	'^([a-f0-9]{24})$': [HEX],
	'^[a-fA-F0-9]{24}$': [HEX],
	'^([a-f0-9]{20})$': [HEX[:20]],
	'^([a-f0-9]{8,32})$': [HEX],
	'^([a-fA-F0-9]{64})$': [HEX * 2 + HEX[:16]],
	'[0-9a-f]+': [HEX],
	'^[a-zA-Z0-9][a-zA-Z0-9-]*$': ['Cluster0', 'orders-2024'],
	'^((25[0-5]|(2[0-4]|1\\d|[1-9]|)\\d)(\\.(?!$)|$)){4}|([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$':
		['192.0.2.1', '10.0.0.255', '2001:db8:0:0:0:0:0:1'],
	'^([0-9]{1,3}\\.){3}[0-9]{1,3}(%2[fF][0-9]{1,3})?|([0-9a-f]{1,4}\\:){7}[0-9a-f]{1,4}(%2[fF][0-9]{1,3})?|([0-9a-f]{1,4}\\:){1,6}\\:'
	'(%2[fF][0-9]{1,3})|(sg\\-[a-f0-9]{8})?$': ['192.0.2.1', '10.0.0.0/8', '10.0.0.0%2F8', 'sg-903004f8'],
	'^([0-9]{1,3}\\.){3}[0-9]{1,3}(%2[fF][0-9]{1,3})?|([0-9a-f]{1,4}\\:){7}[0-9a-f]{1,4}(%2[fF][0-9]{1,3})?|([0-9a-f]{1,4}\\:){1,6}\\:'
	'(%2[fF][0-9]{1,3})?$': ['192.0.2.1', '10.0.0.0/8', '192.0.2.0/24'],
	'^((([0-9]{1,3}\\.){3}[0-9]{1,3})|(:{0,2}([0-9a-f]{1,4}:){0,7}[0-9a-f]{1,4}[:]{0,2}))((%2[fF]|/)[0-9]{1,3})+$':
		['192.0.2.0/24', '2001:db8::/32', '10.0.0.0%2F8'],
	'^([0-9]*/)?sg-([0-9]*)': ['sg-903004f8', '123456789012/sg-903004f8'],
	'^([0-9]{1,3}\\.){3}[0-9]{1,3}|([0-9a-f]{1,4}\\:){7}([0-9a-f]{1,4})|(([a-z0-9]+\\.){1,10}[a-z]+)?(\\:[0-9]{4,5})$':
		['192.0.2.1:27017', 'db.example.com:27017', 'cluster0-shard-00-00.ab12c.example.com:27017'],
	'^([0-9]{1,3}\\.){3}[0-9]{1,3}|([0-9a-f]{1,4}:){7}([0-9a-f]{1,4})|(([a-z0-9]+\\.){1,10}[a-z]+)?$':
		['192.0.2.1', 'db.example.com', 'cluster0-shard-00-00.ab12c.example.com'],
	'^vpce-[0-9a-f]{17}$': ['vpce-07496bfe3bbd1b8d6'],
	'^vpc-[0-9a-f]{17}$': ['vpc-0a1b2c3d4e5f60718'],
	'^[0-9]{12}$': ['123456789012'],
	'^arn:aws:kafka': ['arn:aws:kafka:us-east-1:123456789012:cluster/events/' + UUID],
	'^com\\.amazonaws\\.vpce\\.[a-z-0-9]+\\.vpce-svc-[0-9a-f]{17}': ['com.amazonaws.vpce.us-east-1.vpce-svc-0705499aae25ef1f5'],
	'([\\d]+\\.[\\d]+\\.[\\d]+)': ['8.0.4'],
	"^(?! )(?!.* $)[\\p{L}\\p{N}\\-_.(),:&@+' ]{1,64}$": ['Project0', 'München-2', 'My first project'],
	"^[\\p{L}\\p{N}\\-_.,' ]*$": ['The deployer of our shop', 'Zoë, on call'],
	'^([A-Z]{2})$': ['GB'],
	'^mdb_sa_id_[a-fA-F\\d]{24}$': ['mdb_sa_id_' + HEX],
	'1199145600': [],  # of integers, where it says nothing
	'^(?:(?<cn>CN=(?<name>[^,]*)),)?(?:(?<path>(?:(?:CN|OU)=[^,]+,?)+),)?(?<domain>(?:DC=[^,]+,?)+)$':
		['CN=Admin,OU=Staff,DC=example,DC=com', 'CN=binder,CN=Users,DC=example,DC=com'],
	'^[0-9]+$': ['3141592'],
	'^[0-9a-zA-Z]{40}$': ['0123456789abcdef' * 2 + '01234567', '0123456789abcdef' * 2 + 'FFFFNRAL'],
	'^([-\\w._()])+$': ['my-network', 'my_group.2'],
	'^p-[0-9a-z]{24}$': ['p-' + HEX],
	'^nt-[0-9a-f]{24}-[0-9a-z]{8}$': ['nt-%s-%s' % (HEX, HEX[:8])],
	'^[a-z][0-9a-z-]{4,28}[0-9a-z]{1}': ['my-project-123'],
	'[a-z]([-a-z0-9]{0,62}[a-z0-9]{0,1})?': ['default', 'my-network'],
	'^pls_[0-9a-f]{24}$': ['pls_' + HEX],
	'https:\\/\\/([a-z0-9\\.]+)+\\.[a-z]{2,}(\\/[a-z0-9\\-]+)+\\/projects\\/p-[a-z0-9]+\\/regions\\/[a-z\\-0-9]+\\/serviceAttachments\\/'
	'[a-z0-9\\-]+': ['https://www.googleapis.com/compute/v1/projects/p-abc123/regions/us-east1/serviceAttachments/sa-us-east1'],
	'^db-svc-[0-9a-z]{16}@p-[0-9a-z]{24}.iam.gserviceaccount.com$':
		['db-svc-%s@p-%s.iam.gserviceaccount.com' % (HEX[:16], HEX)],
}
SENSIBLE = {as_text(pattern): values for pattern, values in SENSIBLE.items()}
# Long ones, found by how they begin.
SENSIBLE_LONG = {
	'(?:(?:\\+?1\\s*': ['202-555-0100', '+1 202 555 0100', '2025550100'],
	'^(?:[1-9]\\d{3}-(?:': ['2024-06-01T12:30:00Z', '2024-02-29T23:59:59.123+02:00'],
	'^vpce-[0-9a-f]{17}|^(': ['vpce-07496bfe3bbd1b8d6', AZURE, AZURE.replace('/', '%2F'), 'my-group'],
	'^[0-9a-f]{8}-[0-9a-f]{4}-': ['%s/my-endpoint/my-connection' % UUID],
	'^\\/subscriptions\\/': [AZURE],
}


def patterns(value):
	if isinstance(value, dict):
		if isinstance(value.get('pattern'), str):
			yield value['pattern'], value
		for member in value.values():
			yield from patterns(member)
	elif isinstance(value, list):
		for member in value:
			yield from patterns(member)


def compiled(pattern):
	"""Python's way to write the same."""
	return re.compile(pattern.replace('(?<', '(?P<').replace('(?P<!', '(?<!').replace('\\p{L}\\p{N}', '\\w').replace('$', '\\Z'))


def test_every_pattern_lets_sensible_values_pass():
	"""Two patterns of the reference let nothing pass, because a backslash too many had come in."""
	found = {pattern: schema for pattern, schema in patterns(list(FAMILIES.values()))}
	for pattern, schema in found.items():
		values = SENSIBLE.get(as_text(pattern))
		if values is None:
			values = next((v for begin, v in SENSIBLE_LONG.items() if pattern.startswith(begin)), None)
		assert values is not None, 'add to SENSIBLE what people would write for %s' % pattern
		assert values or schema['type'] != 'string', pattern
		for value in values:
			assert compiled(pattern).search(value), (pattern, value)
	assert not set(SENSIBLE) - {as_text(pattern) for pattern in found}, 'patterns that are no more'


def test_every_pattern_has_its_rule_in_words():
	"""What refuses a value says what it wants to people, and not by the regular expression. (A missing one stops the build.)"""
	found, rules = {pattern for pattern, _ in patterns(list(FAMILIES.values()))}, FAMILIES['common']['words']['rules']
	assert set(rules) == found
	for pattern, rule in rules.items():
		assert re.match('must (be|have|begin) ', rule) and rule[-1] != '.', rule
		assert not re.search(r'[\[\]{}|^$\\]|\(\?', rule), rule


def test_bounds_leave_room():
	"""No schema asks for what cannot be, and a default is a value of its own schema."""
	def walk(schema, where):
		for least, most in (('minLength', 'maxLength'), ('minimum', 'maximum'), ('minItems', 'maxItems')):
			assert least not in schema or most not in schema or schema[least] <= schema[most], where
		if 'default' in schema:
			value = schema['default']
			assert 'enum' not in schema or value in schema['enum'], where
			assert not isinstance(value, str) or 'pattern' not in schema or compiled(schema['pattern']).search(value), where
			assert not isinstance(value, (int, float)) or schema.get('minimum', value) <= value <= schema.get('maximum', value), where
		for key, member in schema.items():
			if isinstance(member, dict) and key not in ('default', 'discriminator'):
				for name, inner in member.items() if key == 'properties' else [(key, member)]:
					if isinstance(inner, dict):
						walk(inner, '%s/%s' % (where, name))
			elif key in ('allOf', 'oneOf', 'anyOf'):
				for inner in member:
					walk(inner, '%s/%s' % (where, key))
	for name, schema in SCHEMAS.items():
		walk(schema, name)
	for operation in OPERATIONS:
		for parameter in (parameter for key in PARAMETERS for parameter in operation.get(key, [])):
			walk(parameter, operation['operationId'] + '/' + parameter['name'])
