"""The front door, for every operation of the catalog: what is refused, in which order, and with which words.

One test a check; each goes over all operations and reports all that fail. Runs against servers of its own, because
operations whose family is still to come answer 501 here."""
import collections, concurrent.futures, hashlib, json, random, re, sys

import pytest

import client
from client import BASE, NO_ID, Wire, assert_problem, basic, ok, refused, unique
from derive import ROOT, Api

sys.path.append(str(ROOT / 'script'))
import not_found  # noqa: E402

api = Api()
PUBLIC = {'listControlPlaneAddresses'}
SCOPES = {'federationSettingsId': 'FEDERATION_SETTINGS_NOT_FOUND', 'orgId': 'ORG_NOT_FOUND', 'groupId': 'GROUP_NOT_FOUND'}
# The cluster and the flex cluster of the samples share a name: whichever is there.
ELSEWHERE = {'CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API', 'CANNOT_USE_NON_FLEX_CLUSTER_IN_FLEX_API'}
NO_VERSION = {'Accept': 'application/vnd.svc.1999-01-01+json'}  # takes a token, and does nothing


def scoped(op):
	return any('{%s}' % x in op['path'] for x in ('groupId', 'orgId', 'federationSettingsId'))


def name(op):
	return '%s %s (%s)' % (op['method'], op['path'] or '/', op['operationId'])


class Failures(list):
	def add(self, op, text):
		self.append('%s: %s' % (name(op) if isinstance(op, dict) else op, text))

	def check(self, op, condition, text):
		if not condition:
			self.add(op, text)
		return condition

	def document(self, op, answer, status):
		"""The answer has that status and, when it is an error, the error document."""
		if not self.check(op, answer.status == status, 'status %d instead of %d: %s' % (answer.status, status,
												answer.body[:300])):
			return None
		try:
			doc = answer.json()
			assert_problem(doc, status)
			return doc
		except (ValueError, AssertionError) as e:
			self.add(op, 'no error document: %s' % e)

	def none(self):
		shown = '\n'.join(self[:60]) + ('\n(+%d more)' % (len(self) - 60) if len(self) > 60 else '')
		assert not self, '%d failures\n%s' % (len(self), shown)


@pytest.fixture
def failures():
	f = Failures()
	yield f
	f.none()


class World:
	"""A server with two organizations that know nothing of each other."""

	def __init__(self, record):
		# A role is made without asking its provider.
		self.server = client.Server('--provider-aws-arn', 'arn:aws:iam::123456789012:user/steward', '--provider-aws-key-id', 'AKIAEXAMPLE',
			'--provider-aws-endpoint', 'http://127.0.0.1:9', env={'STEWARD_PROVIDER_AWS_SECRET': 'none'}, record=record, leaks=True,
			exports=True)
		self.home_name, self.project_name, self.other = unique('home'), unique('hidden'), unique('other')
		self.roles = [r for r in api.org_roles] + [r for r in api.project_roles]
		principals = [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]
		for r in self.roles:
			if r in api.org_roles:
				principals.append({'type': 'serviceAccount', 'roles': [r]})
			else:
				principals.append({'type': 'serviceAccount', 'roles': ['ORG_MEMBER'],
						   'projectRoles': [{'project': self.project_name, 'roles': [r]}]})
		home, away = self.server.seed(
			{'name': self.home_name, 'projects': [self.project_name],
			'principals': principals},
			{'name': self.other, 'projects': [unique('away')],
			 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
		self.org, self.group, self.federation = home['id'], home['projects'][0]['id'], home['federationSettingsId']
		self.owner = home['principals'][0]['accessToken']
		self.by_role = {r: p['accessToken'] for r, p in zip(self.roles, home['principals'][1:])}
		self.stranger = away['principals'][0]['accessToken']

	def path(self, op, **values):
		return api.path(op, **{'groupId': self.group, 'orgId': self.org,
				'federationSettingsId': self.federation, **values})


@pytest.fixture(scope='module')
def world():
	from conftest import end
	w = World(client.SWEEP)
	yield w
	end(w.server)


@pytest.fixture
def wire(world):
	world.server.refill()
	with Wire(world.server, world.owner) as w:
		yield w


def test_catalog_is_whole():
	assert len(api.ops) == 447 and len(api.by_id) == 447 and len(api.sets) == 67


def test_no_credentials(world, wire, failures):
	for op, a in zip(api.ops, wire.batch([(op['method'], world.path(op), None, None, None) for op in api.ops])):
		if op['operationId'] in PUBLIC:
			failures.check(op, a.status == 200, 'public, but status %d' % a.status)
			continue
		failures.document(op, a, 401)
		challenges = a.headers('www-authenticate')
		failures.check(op, challenges and challenges[0].startswith('Digest ') and
			       all(x in challenges[0] for x in ('realm=', 'nonce=', 'qop="auth"')),
			'challenges %r' % challenges)


@pytest.mark.parametrize('header', [
	'Bearer wrong', 'Bearer ', 'Bearer a.b.c', 'Basic d3Jvbmc6d3Jvbmc=', 'Nonsense', 'Digest username="abcdefgh"',
	'Digest username="abcdefgh", realm="Steward", nonce="x", uri="/", response="00000000000000000000000000000000"'])
def test_wrong_credentials(world, wire, failures, header):
	every = api.ops if header == 'Bearer wrong' else api.ops[::12]
	answers = wire.batch([(op['method'], world.path(op), {'Authorization': header}, None, None) for op in every])
	for op, a in zip(every, answers):
		if op['operationId'] not in PUBLIC:
			failures.document(op, a, 401)
			failures.check(op, a.headers('www-authenticate'), 'no WWW-Authenticate')


def test_changed_token(world, wire, failures):
	for _ in range(40):
		i = random.randrange(len(world.owner))
		other = random.choice([c for c in 'ABCabc019' if c != world.owner[i]])
		a = wire.one('GET', BASE + '/groups/' + world.group, token=world.owner[:i] + other + world.owner[i
				+ 1:])
		# base64 has spare bits in its last character; no other change may pass
		if i < len(world.owner) - 1:
			failures.document('character %d' % i, a, 401)


def test_stranger(world, wire, failures):
	secrets = [world.home_name, world.project_name, world.org, world.group, world.federation]
	ops = [op for op in api.ops if op['operationId'] not in PUBLIC]
	answers = wire.batch([(op['method'], world.path(op) + api.query(op), None,
			       api.full(op['request']) if 'request' in op and scoped(op) else None, world.stranger)
			      for op in ops if scoped(op)])
	for op, a in zip([op for op in ops if scoped(op)], answers):
		failures.document(op, a, 401)
		text = a.body.decode() + str(a.lines)
		for s in secrets:
			failures.check(op, s not in text or s in world.path(op), 'reveals %s' % s)
		failures.check(op, not a.header('ratelimit-limit'), 'reveals the state of a bucket')
	for path in ('/orgs', '/groups', '/orgs?name=' + world.home_name, '/rateLimits?groupId=' + world.group,
			'/clusters',
		     '/groups/byName/' + world.project_name):
		a = wire.one('GET', BASE + path, token=world.stranger)
		for s in secrets:
			failures.check(path, s not in a.body.decode() or s in path, 'reveals %s' % s)
		failures.check(path, a.status in (200, 401, 404, 501), 'status %d' % a.status)


def test_method_not_allowed(world, wire, failures):
	calls = []
	for path, ops in api.paths.items():
		# a path may also fit another row, whose parameter stands where this one has a word: then that row's methods count too
		url = world.path(ops[0])
		also = {op['method'] for op in api.fitting(url[len(BASE):])}
		own = {op['method'] for op in ops}
		for method in {'GET', 'POST', 'PUT', 'PATCH', 'DELETE'} - also:
			calls.append((method, url, own, also))
	head = lambda methods: methods | ({'HEAD'} if 'GET' in methods else set())
	for (method, url, own, also), a in zip(calls, wire.batch([c[:2] for c in calls])):
		failures.document('%s %s' % (method, url), a, 405)
		got = {x.strip() for x in (a.header('allow') or '').split(',') if x.strip()}
		failures.check('%s %s' % (method, url), got in (head(own), head(also)),
				'Allow is %s instead of %s' % (got, head(own)))
	for method in ('OPTIONS', 'TRACE'):
		failures.document(method, wire.one(method, BASE + '/groups'), 405)
	failures.document('PROPFIND', wire.one('PROPFIND', BASE + '/groups'), 501)


def test_limit_header(world, failures):
	"""RateLimit-Limit is the set's capacity, on what passes and on what a later gate refuses."""
	world.server.refill()
	with Wire(world.server, world.owner) as wire:
		spent = collections.Counter()
		for op, a in zip(api.ops, wire.batch([(op['method'], world.path(op), NO_VERSION) for op in api.ops])):
			failures.document(op, a, 406)
			spent[op['set']] += 1
			failures.check(op, a.header('ratelimit-limit') == str(op['limits']['capacity']),
				       'RateLimit-Limit is %s' % a.header('ratelimit-limit'))
			failures.check(op, a.header('ratelimit-remaining') == str(op['limits']['capacity'] - spent[op['set']]),
				       'RateLimit-Remaining is %s' % a.header('ratelimit-remaining'))
			failures.check(op, a.header('retry-after') is None, 'Retry-After although there are tokens')


@pytest.mark.parametrize('accept', ['application/vnd.svc.2022-12-31+json', 'text/html', 'application/vnd.svc.+json',
				    'application/vnd.svc.2023-13-45+json', 'application/vnd.other.2023-01-01+json',
				'image/*'])
def test_not_acceptable(world, wire, failures, accept):
	every = api.ops if '2022' in accept else api.ops[::9]
	for op, a in zip(every, wire.batch([(op['method'], world.path(op), {'Accept': accept}) for op in every])):
		failures.document(op, a, 406)


def test_limited(world, failures):
	"""Empties every bucket with as many requests as it has tokens; then each operation of its set is refused. A server whose Redis
	was too slow has limited by itself meanwhile: it is asked once more, and only then."""
	for _ in range(3):
		found, alone = limited()
		if not alone:
			break
	assert not alone, 'redis was away three times'
	failures += found


def limited():
	"""What fails, and whether the server limited by itself."""
	failures, server = Failures(), client.Server()
	from conftest import end
	try:
		org, = server.seed({'name': 'limited', 'projects': ['limited'],
				    'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
		ids = {'groupId': org['projects'][0]['id'], 'orgId': org['id'],
		       'federationSettingsId': org['federationSettingsId']}

		def some(sets):
			with Wire(server, org['principals'][0]['accessToken']) as wire:
				for set_id, s in sets:
					drain(wire, set_id, s, ids, failures)
		sets = sorted(api.sets.items())
		with concurrent.futures.ThreadPoolExecutor(4) as pool:
			list(pool.map(some, [sets[i::4] for i in range(4)]))
		return failures, 'redis is away' in server.stderr
	finally:
		end(server)


def drain(wire, set_id, s, ids, failures):
	capacity, refill, seconds = s['capacity'], s['refillRate'], s['refillDurationSeconds']
	op = s['ops'][0]
	one = wire.encode(op['method'], api.path(op, **ids), NO_VERSION)
	for start in range(0, capacity, 100):
		n = min(100, capacity - start)
		found, wanted = wire.flood(one, n), [(406, str(capacity - start - i - 1)) for i in range(n)]
		if found != wanted:
			failures.add(set_id, 'from request %d: %s' % (start, [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:3]))
			return
	for op, a in zip(s['ops'], wire.batch([(op['method'], api.path(op, **ids)) for op in s['ops']])):
		doc = failures.document(op, a, 429)
		if not doc:
			continue
		path, wait = api.path(op, **ids), seconds
		failures.check(op, doc == {
			'detail': 'Rate limit exceeded for %s. Please retry after %d seconds. Request capacity: %d. '
				  'Refill rate: %d per %d seconds.' % (path, wait, capacity, refill, seconds),
			'error': 429, 'errorCode': 'RATE_LIMITED_TOKEN_BUCKET', 'reason': 'Too Many Requests',
			'parameters': [path, wait, capacity, refill, seconds]}, 'document %r' % doc)
		failures.check(op, a.header('retry-after') == str(wait), 'Retry-After is %s' % a.header('retry-after'))
		failures.check(op, a.header('ratelimit-limit') == str(capacity), 'RateLimit-Limit on the 429')
		failures.check(op, a.header('ratelimit-remaining') == '0', 'RateLimit-Remaining on the 429')


def test_roles(world, failures):
	"""Every role against every operation. A query parameter that does not exist stops what is permitted at the next gate."""
	ops = [op for op in api.ops if op['roles'] and scoped(op)]
	no_outsider = 0
	refusals = set()
	for role, token in world.by_role.items():
		world.server.refill()
		with Wire(world.server, token) as wire:
			answers = wire.batch([(op['method'], world.path(op) + '?noSuchParameter=1', None,
					       api.minimal(op['request']) if 'request' in op else None) for op in ops])
		for op, a in zip(ops, answers):
			if api.permitted(op, role):
				doc = failures.document(op, a, 400)
				failures.check(op, not doc or 'noSuchParameter' in doc['parameters'], '%s: %s' % (role,
						doc))
			else:
				refusals.add(op['operationId'])
				if not failures.document(op, a, 403):
					failures.add(op, 'with %s' % role)
	for op in ops:
		if op['operationId'] not in refusals:
			# every member of the organization holds the role: there is nobody whom it could refuse
			failures.check(op, 'ORG_MEMBER' in op['roles'], 'no role was refused')
			no_outsider += 1
	print('%d operations are open to every member' % no_outsider)


def test_open_operations_need_no_role(world, failures):
	"""Rows without roles, and those open to any member, let the least caller through to the parameters."""
	world.server.refill()
	with Wire(world.server, world.by_role['ORG_MEMBER']) as wire:
		for op in api.ops:
			if scoped(op) or op['operationId'] in PUBLIC:
				continue
			if op['roles'] and 'ORG_MEMBER' not in op['roles']:
				continue
			a = wire.one(op['method'], world.path(op) + '?noSuchParameter=1', None,
				     api.minimal(op['request']) if 'request' in op else None)
			failures.document(op, a, 400)


def test_unknown_query_parameter(world, wire, failures):
	answers = wire.batch([(op['method'], world.path(op) + (api.query(op) + '&' if api.query(op)
			else '?') + 'noSuchParameter=1', None,
			       api.minimal(op['request']) if 'request' in op else None) for op in api.ops])
	for op, a in zip(api.ops, answers):
		doc = failures.document(op, a, 400)
		failures.check(op, not doc or 'noSuchParameter' in doc['parameters']
				and 'noSuchParameter' in doc['detail'], doc)


def test_query_parameters(world, wire, failures):
	"""Values that a parameter's schema does not take; required ones left out."""
	calls = []
	for op in api.ops:
		body = api.minimal(op['request']) if 'request' in op else None
		params = op.get('queryParams', [])
		for p in params:
			others = '&'.join('%s=%s' % (x['name'], api.parameter(x)) for x in params if x.get('required')
					and x is not p)
			if p.get('required') and 'default' not in p:
				calls.append((op, p['name'], others, body))
			kind = p.get('type')
			bad = {'integer': 'x', 'number': 'x', 'boolean': 'perhaps'}.get(kind)
			if kind == 'string' and 'enum' in p:
				bad = 'NO_SUCH_VALUE'
			elif kind == 'string' and 'pattern' in p and not api.pattern(p['pattern']).search('%'):
				bad = '%25'
			elif kind == 'string' and p.get('format') in ('date-time', 'date'):
				bad = 'yesterday'
			if bad:
				calls.append((op, p['name'], others + '&%s=%s' % (p['name'], bad), body))
	answers = wire.batch([(op['method'], world.path(op) + '?' + q.lstrip('&'), None, body) for op, p, q,
			body in calls])
	for (op, p, q, body), a in zip(calls, answers):
		doc = failures.document('%s ?%s' % (name(op), q), a, 400)
		failures.check(op, not doc or p in doc['parameters'] and p in doc['detail'], '?%s: %s' % (q, doc))
	assert len(calls) > 50


def test_common_parameters(world, wire, failures):
	for op in api.ops:
		if op['method'] != 'GET':
			continue
		bad = ['envelope=maybe', 'pretty=1']
		if op.get('paginated'):
			bad += ['pageNum=0', 'pageNum=-1', 'pageNum=x', 'itemsPerPage=0', 'itemsPerPage=501',
					'itemsPerPage=1.5',
				'includeCount=no', 'pageNum=99999999999999999999']
		query = api.query(op)
		for b in bad:
			a = wire.one('GET', world.path(op) + (query + '&' if query else '?') + b)
			doc = failures.document('%s ?%s' % (name(op), b), a, 400)
			failures.check(op, not doc or b.split('=')[0] in doc['parameters'], '?%s: %s' % (b, doc))
			if int(a.header('ratelimit-remaining', '9')) < 3:
				world.server.refill()
	world.server.refill()


def in_batches(world, wire, calls, failures, hold):
	"""calls: (op, label, path, headers, body). Buckets are filled again before one runs out."""
	for i in range(0, len(calls), 200):
		part = calls[i:i + 200]
		tight = [c for c in part if c[0]['limits']['capacity'] <= 10]
		world.server.refill()
		answers = wire.batch([(c[0]['method'], c[2], c[3], c[4]) for c in part if c not in tight])
		for c, a in zip([c for c in part if c not in tight], answers):
			hold(c, a)
		for j, c in enumerate(tight):
			if j % 8 == 0:
				world.server.refill()
			hold(c, wire.one(c[0]['method'], c[2], c[3], c[4]))


BODIES = [op for op in api.ops if 'request' in op]


def test_spoiled_bodies(world, wire, failures):
	"""Unknown field, wrong type, missing required field, read-only field, enum, pattern, bounds: each named by its path."""
	calls, kinds = [], collections.Counter()
	for op in BODIES:
		for what, path, body in api.spoiled(op['request'], api.full(op['request'])):
			if what == 'missing' and path in {p['name'] for p in op['pathParams']}:
				continue  # it is what the path says
			if op.get('asRead') and (what == 'read-only' or what == 'missing' and '.' not in path):
				continue  # what was read may come back, and in part
			calls.append((op, (what, path, body), world.path(op) + api.query(op), None, body))
			kinds[what] += 1

	def hold(call, a):
		op, (what, path, body) = call[0], call[1]
		label = '%s %s of %s' % (op['operationId'], what, path)
		doc = failures.document(label, a, 400)
		if doc:
			failures.check(label, path in doc['parameters'] and path in doc['detail'],
				       'not named for %s: %s' % (json.dumps(body)[:200], json.dumps(doc)[:400]))
	in_batches(world, wire, calls, failures, hold)
	print(dict(kinds))
	for op in BODIES:
		# an object without fields of its own takes any; everything else must have been spoiled in both ways
		if api.merged(api.resolve(op['request']))[0] or api.branches(api.resolve(op['request'])):
			for what in ('unknown', 'type'):
				failures.check(op, any(c[0] is op and c[1][0] == what for c in calls),
						'no %s was tried' % what)


def test_bodies_that_are_none(world, wire, failures):
	calls = []
	for op in BODIES:
		wrong_root = {} if api.kind(op['request']) == 'array' else []
		for label, headers, body in (('cut off', None, b'{"name": '), ('a list or object', None, wrong_root),
					     ('a number', None, 5), ('empty', None, b''), ('two documents', None,
					b'{}{}'),
					     ('no UTF-8', None, b'{"name": "\xff\xfe"}'), ('NUL', None,
					b'{"name": "a\\u0000b"}\0'),
					     ('deep', None, b'[' * 5000)):
			if label != 'empty' or op['requestRequired']:
				calls.append((op, label, world.path(op) + api.query(op), headers, body))

	def hold(call, a):
		failures.document('%s with a body: %s' % (name(call[0]), call[1]), a, 400)
	in_batches(world, wire, calls, failures, hold)


def test_content_type(world, wire, failures):
	calls = [(op, None, world.path(op) + api.query(op), {'Content-Type': t}, b'name=x') for op in BODIES
		 for t in ('text/plain', 'application/x-www-form-urlencoded')]
	in_batches(world, wire, calls, failures, lambda c, a: failures.document(c[0], a, 415))
	for t in ('application/json', 'application/json; charset=utf-8', 'application/vnd.svc.2024-08-05+json',
			'APPLICATION/JSON'):
		a = wire.one('PATCH', '%s/groups/%s' % (BASE, world.group), {'Content-Type': t}, {})
		failures.check(t, a.status == 200, 'status %d: %s' % (a.status, a.body[:200]))


def test_all_faults_are_named(world, wire):
	a = wire.one('POST', BASE + '/groups', None, {'name': 5, 'orgId': 'x', 'tags': [{'key': 1}, {}], 'noSuch': 1,
			'id': world.group})
	doc = a.json()
	assert a.status == 400
	for path in ('name', 'orgId', 'tags[0].key', 'tags[0].value', 'tags[1].key', 'tags[1].value', 'noSuch', 'id'):
		assert path in doc['parameters'], (path, doc)
		assert path in doc['detail']


def test_no_such_scope(world, wire, failures):
	for op in api.ops:
		for missing in (NO_ID, 'x', NO_ID.upper()):
			values = {}
			for scope, code in SCOPES.items():
				if '{%s}' % scope in op['path']:
					values = {scope: missing}
					break
			if not values or (missing != NO_ID and api.ops.index(op) % 5):
				continue
			path = world.path(op, **values)
			doc = failures.document(op, wire.one(op['method'], path), 404)
			failures.check(op, not doc or (doc['errorCode'], doc['parameters'], doc['detail'],
					doc['reason']) == (
				code, [path], 'Cannot find resource %s.' % path, 'Not Found'), doc)


def test_codes_tell_what_is_missing(world, wire, failures):
	"""The first thing of the path that is not there, by the row of its kind."""
	codes, seen = not_found.NotFound(api.resources, api.not_found), set()
	for op in api.built():
		own = [p for p in op['pathParams'] if p['name'] not in SCOPES and 'enum' not in p]
		if op['method'] != 'GET' or not own or '{orgId}/roleMappings' in op['path']:
			continue
		values = {p['name']: NO_ID for p in own if re.search(p.get('pattern', ''), NO_ID)}
		doc = failures.document(op, wire.one('GET', world.path(op, **values) + api.query(op),
				body=api.good(op) if op.get('requestRequired') else None), 404)
		first = own[-1] if op.get('resource') == 'database_user' else own[0]
		code = codes.parameter(op, first)
		failures.check(op, not doc or doc['errorCode'] == code, '%s: %s' % (code, doc))
		seen.add(code)
	failures.check('all', len(seen) > 25 and 'RESOURCE_NOT_FOUND' not in seen, seen)


def test_no_such_path(world, wire, failures):
	for path in ('/nothing', '/groups/%s/nothing' % world.group, '/groups/', '//groups',
			'/groups/%s/clusters/a/b/c/d/e' % world.group,
		     '/groups/%2e%2e', '/orgs/%s/settings/x' % world.org):
		for token in (world.owner, None):
			a = wire.one('GET', BASE + path, token=token)
			if path in ('/groups/', ) and a.status in (200, 401):
				continue  # a slash at the end may be forgiven
			failures.check(path, a.status in (404, 400) or token is None and a.status == 401,
					'status %d' % a.status)
			if a.status == 404:
				doc = a.json()
				failures.check(path, doc['detail'] == 'Cannot find resource %s.' % doc['parameters'][0],
						doc)
	for path in ('/api', '/api/svc', '/api/svc/v3', '/api/svc/v2x', '/index.html', '/favicon.ico'):
		failures.document(path, wire.one('GET', path), 404)


def test_federation_of_another_organization(world, wire, failures):
	"""Membership in a connected organization is not membership in the organization of the path."""
	path = '%s/federationSettings/%s/connectedOrgConfigs/%s' % (BASE, world.federation, world.server.org)
	a = wire.one('GET', path)
	failures.check(path, a.status in (401, 404), 'status %d' % a.status)


# The credentials themselves

def digest_header(key, method, uri, challenge, nc=1, algorithm='MD5', cnonce='0123abcd', password=None, qop='auth',
		user=None):
	h = hashlib.md5 if algorithm == 'MD5' else hashlib.sha256
	field = lambda n: re.search(n + r'="?([^",]*)"?', challenge).group(1)
	hex_ = lambda text: h(text.encode()).hexdigest()
	a1 = hex_('%s:%s:%s' % (user or key['publicKey'], field('realm'), password or key['privateKey']))
	count = '%08x' % nc
	response = hex_(':'.join([a1, field('nonce'), count, cnonce, qop, hex_('%s:%s' % (method, uri))]))
	opaque = re.search(r'opaque="([^"]*)"', challenge)
	return ('Digest username="%s", realm="%s", nonce="%s", uri="%s", algorithm=%s, response="%s", qop=%s, nc=%s, cnonce="%s"'
		% (user or key['publicKey'], field('realm'), field('nonce'), uri, algorithm, response, qop, count,
				cnonce)
		+ (', opaque="%s"' % opaque.group(1) if opaque else ''))


@pytest.fixture(scope='module')
def auth():
	from conftest import end
	s = client.Server(record=client.SWEEP)
	yield s
	end(s)


def challenges_of(server):
	with Wire(server) as w:
		found = w.one('GET', BASE).headers('www-authenticate')
	return {('SHA-256' if 'SHA-256' in c else 'MD5') if c.startswith('Digest') else 'Bearer': c for c in found}


@pytest.mark.parametrize('algorithm', ['MD5', 'SHA-256'])
def test_digest(auth, algorithm):
	key, path = auth.bootstrap['apiKey'], BASE + '/groups?itemsPerPage=1'
	challenge = challenges_of(auth)[algorithm]
	with Wire(auth) as w:
		good = digest_header(key, 'GET', path, challenge, 1, algorithm)
		assert w.one('GET', path, {'Authorization': good}).status == 200
		again = w.one('GET', path, {'Authorization': good})
		assert again.status == 401, 'a replay was let in'
		assert w.one('GET', path, {'Authorization': digest_header(key, 'GET', path, challenge, 2,
				algorithm)}).status == 200
		# the counter may arrive out of order on parallel connections, but no count twice
		assert w.one('GET', path, {'Authorization': digest_header(key, 'GET', path, challenge, 9,
				algorithm)}).status == 200
		for bad in (digest_header(key, 'GET', path, challenge, 20, algorithm, password='wrong'),
			    digest_header(key, 'GET', path, challenge, 21, algorithm, user='zzzzzzzz'),
			    digest_header(key, 'POST', path, challenge, 22, algorithm),
			    digest_header(key, 'GET', BASE + '/orgs', challenge, 23, algorithm),
			    digest_header(key, 'GET', path, challenge.replace('nonce="', 'nonce="x'), 24, algorithm),
			    digest_header(key, 'GET', path, challenge, 25, algorithm, qop='auth-int')):
			a = w.one('GET', path, {'Authorization': bad})
			assert a.status in (400, 401), (bad, a.body)
			assert_problem(a.json(), a.status)
		assert w.one('GET', path, {'Authorization': digest_header(key, 'GET', path, challenge, 26,
				algorithm)}).status == 200


def test_digest_through_a_client(auth):
	for _ in range(3):
		assert ok(auth.digest.get('/groups'))['results']
	api_ = auth.digest
	for _ in range(5):
		ok(api_.get('/groups'))
	key = auth.bootstrap['apiKey']
	wrong = client.Api(auth, client.requests.auth.HTTPDigestAuth(key['publicKey'], 'wrong'))
	refused(wrong.get('/groups'), 401)


def test_digest_nonce_grows_stale(start_server):
	s = start_server()
	key, path = s.bootstrap['apiKey'], BASE + '/groups'
	challenge = challenges_of(s)['MD5']
	s.advance(24 * 3600)
	with Wire(s) as w:
		a = w.one('GET', path, {'Authorization': digest_header(key, 'GET', path, challenge)})
		assert a.status == 401
		assert re.search(r'stale="?true', a.headers('www-authenticate')[0], re.I)
		fresh = a.headers('www-authenticate')[0]
		assert w.one('GET', path, {'Authorization': digest_header(key, 'GET', path, fresh)}).status == 200


def test_token(auth):
	account = auth.bootstrap['serviceAccount']
	url = auth.base_url + '/api/oauth/token'
	post = lambda **kw: client.requests.post(url, verify=auth.ca_file, timeout=30, **kw)
	r = post(data={'grant_type': 'client_credentials'}, auth=(account['clientId'], account['clientSecret']))
	assert r.status_code == 200, r.text
	doc = r.json()
	assert doc['token_type'].lower() == 'bearer' and doc['expires_in'] == 3600 and doc['access_token']
	assert 'no-store' in r.headers['Cache-Control']
	from urllib.parse import quote
	coded = basic(quote(account['clientId'], safe=''), quote(account['clientSecret'], safe=''))
	assert post(data='grant_type=client_credentials', headers={'Authorization': coded,
			'Content-Type': 'application/x-www-form-urlencoded'}).status_code == 200
	wrong = post(data={'grant_type': 'client_credentials'}, auth=(account['clientId'], 'wrong'))
	refused(wrong, 401)
	refused(post(data={'grant_type': 'client_credentials'}, auth=('nobody', 'wrong')), 401)
	refused(post(data={'grant_type': 'client_credentials'}), 401)
	refused(post(data={'grant_type': 'password'}, auth=(account['clientId'], account['clientSecret'])), 400)
	refused(post(data={}, auth=(account['clientId'], account['clientSecret'])), 400)
	refused(client.requests.get(url, verify=auth.ca_file), 405)


def test_token_expires(start_server):
	s = start_server()
	token = s.token()
	caller = client.Api(s, client.Bearer(token))
	ok(caller.get('/groups'))
	s.advance(3590)
	ok(caller.get('/groups'))
	s.advance(11)
	refused(caller.get('/groups'), 401)
	ok(s.get('/groups'))


def test_token_revoked(auth):
	account = auth.bootstrap['serviceAccount']
	token, other = auth.token(account), auth.token(account)
	caller = client.Api(auth, client.Bearer(token))
	ok(caller.get('/groups'))
	r = client.requests.post(auth.base_url + '/api/oauth/revoke', data={'token': token}, verify=auth.ca_file,
				 auth=(account['clientId'], account['clientSecret']))
	assert r.status_code == 200, r.text
	refused(caller.get('/groups'), 401)
	ok(client.Api(auth, client.Bearer(other)).get('/groups'))
	# an unknown token is no error (RFC 7009), wrong credentials are
	assert client.requests.post(auth.base_url + '/api/oauth/revoke', data={'token': 'x'}, verify=auth.ca_file,
				    auth=(account['clientId'], account['clientSecret'])).status_code == 200
	refused(client.requests.post(auth.base_url + '/api/oauth/revoke', data={'token': other}, verify=auth.ca_file,
				     auth=(account['clientId'], 'wrong')), 401)


@pytest.mark.parametrize('kind', ['serviceAccount', 'apiKey'])
def test_access_list(auth, kind):
	near, far, demanded = auth.seed(
		{'name': unique('near'), 'principals': [{'type': kind, 'roles': ['ORG_OWNER'],
		'accessList': ['127.0.0.0/8']}]},
		{'name': unique('far'), 'principals': [{'type': kind, 'roles': ['ORG_OWNER'],
		'accessList': ['192.0.2.0/24', '::1/128']}]},
		{'name': unique('none'), 'apiAccessListRequired': True, 'principals': [
			{'type': kind, 'roles': ['ORG_OWNER']},
			{'type': kind, 'roles': ['ORG_OWNER'], 'accessList': ['127.0.0.1/32']}]})
	ok(auth.api_for(near['principals'][0]).get('/orgs/' + near['id']))
	doc = refused(auth.api_for(far['principals'][0]).get('/orgs/' + far['id']), 403)
	assert far['name'] not in json.dumps(doc)
	refused(auth.api_for(demanded['principals'][0]).get('/orgs/' + demanded['id']), 403)
	ok(auth.api_for(demanded['principals'][1]).get('/orgs/' + demanded['id']))


def test_order_of_the_gates(world, wire):
	"""Who, where, membership, bucket, version, role, parameters, body: the first that says no answers."""
	path = '%s/orgs/%s/settings' % (BASE, world.org)
	spoiled = {'noSuchField': 1}
	assert wire.one('PATCH', path + '?x=1', NO_VERSION, spoiled, None).status == 401
	assert wire.one('PATCH', path + '?x=1', NO_VERSION, spoiled, world.stranger).status == 401
	member = world.by_role['ORG_MEMBER']
	assert wire.one('PATCH', path + '?x=1', NO_VERSION, spoiled, member).status == 406
	assert wire.one('PATCH', path + '?x=1', None, spoiled, member).status == 403
	doc = wire.one('PATCH', path + '?x=1', None, spoiled)
	assert doc.status == 400 and 'x' in doc.json()['parameters']
	doc = wire.one('PATCH', path, None, spoiled)
	assert doc.status == 400 and 'noSuchField' in doc.json()['parameters']
	for _ in range(20):
		last = wire.one('PATCH', path + '?x=1', NO_VERSION, spoiled, member)
	assert last.status == 429
	# refused before the bucket: no token is taken
	world.server.refill()
	for _ in range(30):
		wire.one('GET', path, token=world.stranger)
		wire.one('GET', path, token=None)
	a = wire.one('GET', path)
	assert a.status == 200 and a.header('ratelimit-remaining') == '9'


def test_everything_with_good_input(world, failures):
	"""A good request of the owner passes all gates of every operation; HEAD has GET's status. Nothing is a 5xx but 501.

	Runs late in the file, because what is built is really done; what deletes comes last."""
	world.server.refill()
	binds = 'updateCompliancePolicy'  # whatever comes after it, and nobody but the operator ends it
	order = sorted(api.ops, key=lambda op: (op['method'] == 'DELETE', op['operationId'] == binds, -len(op['path'])))
	kinds = collections.Counter()
	with Wire(world.server, world.owner) as wire:
		team = wire.one('POST', '%s/orgs/%s/teams' % (BASE, world.org), None, {'name': 'sample', 'usernames': []}).json()
		ids = {'orgId': world.org, 'groupId': world.group, 'teamId': team['id']}
		for i, op in enumerate(order):
			if i % 100 == 0:
				world.server.refill()
			path = world.path(op) + api.query(op)
			body = api.good(op, **ids)
			if op['method'] == 'GET':
				head = wire.one('HEAD', path, None, body)
				a = wire.one('GET', path, None, body)
				failures.check(op, head.status == a.status and not head.body,
						'HEAD %d, GET %d' % (head.status, a.status))
				failures.check(op, head.header('content-type') == a.header('content-type'),
						'HEAD has another Content-Type')
			else:
				a = wire.one(op['method'], path, None, body)
			kinds[a.status] += 1
			if op['handler'] == 'unbuilt':
				failures.document(op, a, 501)
			else:
				failures.check(op, a.status < 500 and a.status not in (400, 401, 403, 405, 406, 415,
						429) or op['operationId'] == 'disableCompliancePolicy' or
						a.json()['errorCode'] in ELSEWHERE,
					       'status %d for %s: %s' % (a.status, body, a.body[:300]))
	print(dict(kinds))


def test_no_server_error_was_seen():
	bad = collections.Counter()
	n = 0
	with open(client.SWEEP) as f:
		for line in f:
			x = json.loads(line)
			n += 1
			if x['status'] >= 500 and x['status'] != 501:
				bad['%s %s -> %d' % (x['method'], re.sub('[0-9a-f]{24}', '<id>', x['url']),
						x['status'])] += 1
	assert n > 5000
	assert not bad, bad
