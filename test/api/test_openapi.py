"""The OpenAPI document of every version date, held against the OpenAPI Initiative's own schema (Debian package
openapi-specification) and, for the current one, against JSON::Validator, which also resolves every reference. What
neither looks at (parameters against paths, names that occur twice) is looked at here."""
import json, os, pathlib, re, subprocess

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OFFICIAL = pathlib.Path('/usr/share/openapi-specification/schemas/v3.0/schema.json')
METHODS = ('get', 'post', 'put', 'patch', 'delete', 'head')
PERL = '''
use JSON::Validator;
my $schema = JSON::Validator->new->schema("file://$ARGV[0]")->schema;
die "not taken for OpenAPI 3\\n" unless ref $schema eq "JSON::Validator::Schema::OpenAPIv3";
print "$_\\n" for @{$schema->errors};
'''


def dates():
	found = set()
	for file in (ROOT / 'api').glob('*.json'):
		for op in json.loads(file.read_text()).get('operations', []):
			found.update(op['versions'])
	return sorted(found)


DATES = dates()


def operations_at(date):
	"""Operation id -> the version that the document must show."""
	found = {}
	for file in (ROOT / 'api').glob('*.json'):
		for op in json.loads(file.read_text()).get('operations', []):
			older = [v for v in op['versions'] if v <= date]
			if older:
				found[op['operationId']] = max(older)
	return found


def each_operation(doc):
	for path, item in doc['paths'].items():
		for method in METHODS:
			if method in item:
				yield path, method, item[method]


def walk(node):
	yield node
	for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
		yield from walk(child)


@pytest.fixture(scope='module')
def fetch(server):
	kept = {}

	def fetched(date):
		if date not in kept:
			query = '?version=' + date if date else ''
			answer = server.anonymous.get('/openapi.json' + query, timeout=120)
			assert answer.status_code == 200, answer.text
			kept[date] = answer.json()
		return kept[date]

	return fetched


def checker():
	"""check(document): what the schema has against it. It looks at each path and component by itself, and most are the same at
	many dates: those that were right are left out."""
	schema, right = json.loads(OFFICIAL.read_text()), set()
	validator = jsonschema.validators.validator_for(schema)(schema)

	def check(doc):
		new = set()

		def unknown(kind, items):
			keys = {name: (kind, name, json.dumps(item, sort_keys=True)) for name, item in items.items()}
			new.update(keys.values())
			return {name: items[name] for name, key in keys.items() if key not in right}
		parts = {kind: unknown(kind, items) for kind, items in doc['components'].items()}
		faults = ['%s: %s' % ('/'.join(map(str, e.absolute_path)), e.message[:300])
			  for e in validator.iter_errors({**doc, 'paths': unknown('paths', doc['paths']), 'components': parts})]
		if not faults:
			right.update(new)
		return faults

	return check


@pytest.fixture(scope='module')
def official():
	return checker()


def test_a_part_that_is_wrong_is_found(fetch, official):
	"""Also in a document of which all else was right before."""
	check, doc = official, fetch(DATES[-1])
	assert not check(doc)
	path, item = next(iter(doc['paths'].items()))
	name, part = next(iter(doc['components']['schemas'].items()))
	assert check({**doc, 'paths': {**doc['paths'], path: {**item, 'nonsense': 1}}})
	assert check({**doc, 'components': {**doc['components'], 'schemas': {**doc['components']['schemas'], name: {**part, 'type': 1}}}})
	assert check({**doc, 'nonsense': 1}) and check({**doc, 'components': {**doc['components'], 'nonsense': {}}})
	assert not check(doc)


@pytest.mark.parametrize('date', DATES)
def test_document_is_valid(fetch, official, date):
	faults = official(fetch(date))
	assert not faults, '\n'.join(faults[:20])


def test_document_is_valid_to_another_validator(fetch, tmp_path):
	file = tmp_path / 'openapi.json'
	file.write_text(json.dumps(fetch('')))
	run = subprocess.run(['perl', '-e', PERL, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
			     timeout=300)
	assert (run.returncode, run.stdout, run.stderr) == (0, '', '')


def test_document_tells_what_is_secret_and_what_is_dangerous(fetch):
	doc = fetch(DATES[-1])
	for schema, field in (('ApiKeyUserDetails', 'privateKey'), ('CloudDatabaseUser', 'password'), ('PagerDuty', 'serviceKey')):
		assert doc['components']['schemas'][schema]['properties'][field]['format'] == 'password', field
	dangers = {op['operationId']: op.get('x-steward-danger') for _, _, op in each_operation(doc)}
	assert dangers['deleteCluster'] == 'name' and dangers['restartPrimaries'] == dangers['deleteOrgTeam'] == 'confirm'
	assert dangers['createCluster'] is None


@pytest.mark.parametrize('date', DATES)
def test_document_holds_together(fetch, date):
	doc = fetch(date)
	assert doc['openapi'] == '3.0.3'
	assert doc['info']['version'] == date

	shapes = [re.sub(r'\{[^}]*\}', '{}', path) for path in doc['paths']]
	assert len(shapes) == len(set(shapes)), 'two paths differ only in the names of parameters'

	expected = operations_at(date)
	seen = {}
	for path, method, op in each_operation(doc):
		where = '%s %s' % (method, path)
		assert op['operationId'] not in seen, where
		seen[op['operationId']] = op['x-steward-version']
		named = [p['name'] for p in op['parameters'] if p.get('in') == 'path']
		assert named == re.findall(r'\{([^}]*)\}', path), where
		keys = [(p['in'], p['name']) for p in op['parameters'] if 'name' in p]
		assert len(keys) == len(set(keys)), where
		media = 'application/vnd.svc.%s+' % op['x-steward-version']
		for answer in op['responses'].values():
			assert all(kind.startswith(media) for kind in answer.get('content', {})), where
		assert '429' in op['responses'] and '500' in op['responses'], where
	assert seen == expected

	used = {n['$ref'] for n in walk(doc) if isinstance(n, dict) and isinstance(n.get('$ref'), str)}
	used |= {ref for n in walk(doc) if isinstance(n, dict) and isinstance(n.get('discriminator'), dict)
		 for ref in n['discriminator'].get('mapping', {}).values()}
	for ref in used:
		part = doc
		for step in ref[2:].split('/'):
			assert step in part, ref
			part = part[step]
	for kind in ('schemas', 'parameters', 'responses', 'headers'):
		for name in doc['components'][kind]:
			assert '#/components/%s/%s' % (kind, name) in used, 'nothing uses %s %s' % (kind, name)


def test_current_version_is_the_default(fetch):
	assert fetch('') == fetch(fetch('')['info']['version'])
	assert len(list(each_operation(fetch('')))) == 447


def test_dates_between_and_wrong_dates(server, fetch):
	later = server.anonymous.get('/openapi.json?version=2999-01-01', timeout=120)
	assert later.json()['info']['version'] == DATES[-1]
	for wrong in ('1999-01-01', 'yesterday', '', 'zzzzzzzzzz', '2025-99-99', '2025-W01-1', '2025-02-30'):
		answer = server.anonymous.get('/openapi.json?version=' + wrong)
		assert answer.status_code == 400, wrong
		assert answer.json()['parameters'] == ['version']


# Words and examples

@pytest.fixture(scope='module')
def current(fetch):
	return fetch('')


def plain(schema, request):
	"""As JSON schema has it: null, what is not sent or not shown, and patterns as Python writes them."""
	if isinstance(schema, list):
		return [plain(s, request) for s in schema]
	if not isinstance(schema, dict):
		return schema
	out = {k: plain(v, request) for k, v in schema.items() if k not in ('example', 'examples', 'discriminator')}
	if isinstance(schema.get('discriminator'), dict) and 'oneOf' in out:  # the word says which: branches overlap
		name, mapping = schema['discriminator']['propertyName'], schema['discriminator']['mapping']
		del out['oneOf']
		out['allOf'] = [{'anyOf': [{'not': {'properties': {name: {'enum': [word]}}, 'required': [name]}}, {'$ref': ref}]}
				for word, ref in mapping.items()]
		out['anyOf'] = [{'properties': {name: {'enum': list(mapping)}}, 'required': [name]}]
	if isinstance(out.get('pattern'), str):
		out['pattern'] = re.sub(r'\(\?<(?![=!])', '(?P<', out['pattern']).replace('\\p{L}\\p{N}', '\\w')
	if isinstance(out.get('enum'), list) and any(isinstance(v, str) and v.startswith('<') for v in out['enum']):
		del out['enum']  # names that only a family knows
	if isinstance(out.get('required'), list) and isinstance(out.get('properties'), dict):
		hidden = 'readOnly' if request else 'writeOnly'
		out['required'] = [n for n in out['required'] if not out['properties'].get(n, {}).get(hidden)] or None
		if not out['required']:
			del out['required']
	if out.get('nullable'):
		return {'anyOf': [{'type': 'null'}, {k: v for k, v in out.items() if k != 'nullable'}]}
	return out


def test_everything_is_described(current):
	for path, method, op in each_operation(current):
		where = (method, path)
		assert op['summary'] and len(op['description']) > len(op['summary']) + 40, where
		for p in op['parameters']:
			p = current['components']['parameters'][p['$ref'].rsplit('/', 1)[1]] if '$ref' in p else p
			assert p['description'] and ('example' in p or p['schema'].get('type') == 'array'), (where, p)
		if 'requestBody' in op:
			assert op['requestBody']['description'], where
		for status, r in op['responses'].items():
			r = current['components']['responses'][r['$ref'].rsplit('/', 1)[1]] if '$ref' in r else r
			assert r['description'], (where, status)
	assert all(t['description'] for t in current['tags'])


def test_examples_are_valid(current, tmp_path):
	cases = []
	resolvers = {request: jsonschema.RefResolver('', {'components': {'schemas': plain(current['components']['schemas'], request)}})
		     for request in (True, False)}
	count = 0

	def check(value, schema, request, where):
		nonlocal count
		count += 1
		cases.append({'where': str(where), 'schema': plain(schema, request), 'request': str(request).lower(), 'value': value})
		errors = list(jsonschema.Draft4Validator(plain(schema, request), resolver=resolvers[request]).iter_errors(value))
		assert not errors, '%s: %s\n%s' % (where, errors[0].message[:300], json.dumps(value)[:600])

	def content(body, request, where):
		for media, m in body.get('content', {}).items():
			for e in m.get('examples', {}).values():
				e = current['components']['examples'][e['$ref'].rsplit('/', 1)[1]] if '$ref' in e else e
				check(e['value'], m['schema'], request, (where, media))
			empty = m['schema'] == {} or m['schema'].get('type') == 'string' or 'json' not in media
			assert empty or 'examples' in m or where in BARE, (where, media)
	for path, method, op in each_operation(current):
		for p in op['parameters']:
			if 'example' in p:
				check(p['example'], p['schema'], True, (op['operationId'], p['name']))
		content(op.get('requestBody', {}), True, op['operationId'])
		for r in op['responses'].values():
			if '$ref' not in r:
				content(r, False, op['operationId'])
	assert count > 1500
	if LINTERS.exists():
		assert not ajv(current, cases, tmp_path / 'cases.json')


def ajv(current, cases, file):
	"""What another validator has against patterns, which it takes for Unicode expressions, and examples."""
	patterns = sorted({n['pattern'] for n in walk(current) if isinstance(n, dict) and isinstance(n.get('pattern'), str)})
	schemas = {str(request).lower(): plain(current['components']['schemas'], request) for request in (True, False)}
	text = json.dumps({'patterns': patterns, 'schemas': schemas, 'cases': cases})
	file.write_text(text.replace('(?P<', '(?<'))  # plain() writes groups as Python has them
	done = subprocess.run(['node', ROOT / 'test' / 'openapi' / 'ajv.js', LINTERS, file], capture_output=True, text=True, timeout=300)
	assert done.returncode == 0, done.stderr
	return json.loads(done.stdout)[:10]


BARE = {'getCostExplorerUsage', 'deleteGroupPeer', 'withStreamSampleConnections'}  # the schema of their body has no field to show


LINTERS = ROOT / 'build' / 'linters' / 'node_modules'
PROGRAMS = {'redocly': LINTERS / '@redocly' / 'cli' / 'bin' / 'cli.js', 'spectral': LINTERS / '@stoplight' / 'spectral-cli' / 'dist' / 'index.js'}


@pytest.mark.skipif(not LINTERS.exists(), reason='script/bootstrap --test installs them')
@pytest.mark.parametrize('linter', PROGRAMS)
def test_linters_have_nothing_to_say(current, tmp_path, linter):
	file, rules = tmp_path / 'openapi.json', ROOT / 'test' / 'openapi'
	file.write_text(json.dumps(current))
	command = {'redocly': ['lint', '--config', rules / 'redocly.yaml', '--format=json', file],
		   'spectral': ['lint', '--ruleset', rules / 'spectral.yaml', '--format=json', '--quiet', '--fail-severity=hint', file]}
	done = subprocess.run(['node', PROGRAMS[linter], *map(str, command[linter])], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
			      text=True, timeout=600, cwd=tmp_path, env={**os.environ, 'REDOCLY_TELEMETRY': 'off', 'CI': '1'})
	said = json.loads(done.stdout)
	said = said['problems'] if linter == 'redocly' else said
	assert done.returncode == 0 and not said, json.dumps(said, indent=1)[:3000] + done.stderr[-2000:]
