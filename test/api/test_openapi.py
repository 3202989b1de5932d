"""The OpenAPI document of every version date, held against the OpenAPI Initiative's own schema (Debian package
openapi-specification) and, for the current one, against JSON::Validator, which also resolves every reference. What
neither looks at (parameters against paths, names that occur twice) is looked at here."""
import json, pathlib, re, subprocess

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


@pytest.mark.parametrize('date', DATES)
def test_document_is_valid(fetch, date):
	schema = json.loads(OFFICIAL.read_text())
	check = jsonschema.validators.validator_for(schema)(schema)
	faults = ['%s: %s' % ('/'.join(map(str, e.absolute_path)), e.message[:300])
		  for e in check.iter_errors(fetch(date))]
	assert not faults, '\n'.join(faults[:20])


def test_document_is_valid_to_another_validator(fetch, tmp_path):
	file = tmp_path / 'openapi.json'
	file.write_text(json.dumps(fetch('')))
	run = subprocess.run(['perl', '-e', PERL, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
			     timeout=300)
	assert (run.returncode, run.stdout, run.stderr) == (0, '', '')


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
