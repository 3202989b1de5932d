"""Recorded exchanges held against the API's data: whether each fits, which operations were used, and what the reference
checker says where there is one."""
import collections, json, os, pathlib, re
from urllib.parse import parse_qs, unquote, urlsplit

import client, dialect, versions
from client import BASE, assert_problem
from derive import Api

api = Api()
# What differs each time and is looked at by its form alone: ids, dates, random parts of names, what is left in a bucket.
VARIES = re.compile(r'(?P<sized>[0-9a-f]{24}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|(?<=-)[0-9a-f]{12}\b)|(?<="ratelimit-remaining":")\d+|'
		    r'(?<="requestHeaders":){[^{}]*}')


# What lies beside the catalog, below a path of it: no row has its form.
BESIDE = re.compile(r':(activity|vacuum|preview|bringBack)$')


def form(text):
	"""The same for texts that differ only in that."""
	return hash(VARIES.sub(lambda m: '<%d>' % len(m.group()) if m.lastgroup else '<>', text))


def each_form(recorded):
	"""One exchange of each form: most are asked again and again, until something has happened."""
	return {x['form']: x for x in reversed(recorded)}.values()


def accept(x):
	return next((v for k, v in x['requestHeaders'].items() if k.lower() == 'accept'), None)


read = {}  # file -> its text and its exchanges: several tests ask for the same


def exchanges(file=client.EXCHANGES):
	def whole():
		text = file.read_text()
		return text.endswith('\n') and text
	# An exchange is written down after its answer was sent: the last line may be on its way.
	text = client.until(whole, what='the last line of ' + file.name) if file.stat().st_size else ''
	if file not in read or read[file][0] != text:
		turned = dialect.spoken.exchange_in if dialect.spoken else lambda x: x
		found = [(turned(json.loads(line)), form(line)) for line in text.split('\n') if line.strip()]
		read[file] = text, [{**x, 'form': (f, accept(x))} for x, f in found if not BESIDE.search(unquote(urlsplit(x['url']).path))]
	return read[file][1]


def body_of(x, op, query):
	"""The body without its envelope, where that is not the answer's own; faults of the envelope itself."""
	body = x.get('responseBody')
	if query.get('envelope') == 'true' and isinstance(body, dict):
		if body.get('status') != x['status']:
			return body, ['envelope: status is %r' % body.get('status')]
		if x['status'] < 400 and op and {'content', 'status'} <= set(api.merged(op.get('response', {}))[0]):
			return body, []
		return body['content'] if 'content' in body else {k: v for k, v in body.items() if k != 'status'}, []
	return body, []


def error_faults(x, body, headers):
	if x['status'] >= 500:
		return ['a server error']
	if x['method'] == 'HEAD':
		return []
	try:
		assert_problem(body, x['status'])
	except AssertionError as e:
		return [str(e)]
	return ['429 without Retry-After'] if x['status'] == 429 and 'retry-after' not in headers else []


def version_faults(x, op, version, headers):
	"""Of an answer that does not say which version it is, or not how long that lives."""
	told, end = (headers.get('deprecation'), headers.get('sunset')), versions.ending(op, version)
	if x['status'] >= 400:  # what is refused before a version was chosen tells nothing
		return [] if told in (end, (None, None)) else ['Deprecation and Sunset are %s, %s' % told]
	date = versions.DATED.match(headers.get('content-type', ''))
	out = [] if told == end else ['Deprecation and Sunset are %s, %s' % told]
	return out + (['version %s instead of %s' % (date.group(1), version)] if date and date.group(1) != version else [])


def success_faults(x, op, version, body, headers, query):
	if op is None:
		return ['a success on a path that does not exist']
	op, out = versions.row(op, version), []
	if x['status'] not in [op['success']] + op.get('otherSuccess', []):
		out.append('status is not %d' % op['success'])
	if headers.get('ratelimit-limit') != str(op['limits']['capacity']):
		out.append('RateLimit-Limit is %s' % headers.get('ratelimit-limit'))
	if x['method'] == 'HEAD':
		return out + (['HEAD with a body'] if body else [])
	if body is not None and not re.match(r'application/vnd\.svc\.\d{4}-\d\d-\d\d\+(json|gzip|csv)',
			headers.get('content-type', '')):
		out.append('Content-Type is %s' % headers.get('content-type'))
	if 'response' not in op:
		return out + (['a body where none is due'] if body else [])
	if body is None:
		return out + (['no body'] if x['status'] != 204 else [])
	if headers.get('content-type', '').split(';')[0].endswith('+csv'):
		return out
	out += api.faults(op['response'], body)
	if isinstance(body, dict) and 'links' in api.merged(op['response'])[0] and not any(
			l.get('rel') == 'self' for l in body.get('links', [])):
		out.append('no self link')
	if op.get('paginated') and isinstance(body, dict) and 'results' in api.merged(op['response'])[0]:
		if 'totalCount' in api.merged(op['response'])[0] and ('totalCount' in body) != (query.get('includeCount') != 'false'):
			out.append('totalCount')
		if len(body.get('results', [])) > int(query.get('itemsPerPage', 100)):
			out.append('more than a page')
	return out


def counted(bad):
	return '\n'.join('%dx %s' % (n, k) for k, n in bad.most_common(40))


def faults(recorded):
	"""What does not fit, as text; empty when all does."""
	bad = collections.Counter()
	for x in each_form(recorded):
		url = urlsplit(x['url'])
		path, query = unquote(url.path), {k: v[-1] for k, v in parse_qs(url.query).items()}
		if not path.startswith(BASE):
			continue
		op = api.match(x['method'], path[len(BASE):])
		headers = {k.lower(): v for k, v in x['responseHeaders'].items()}
		version = versions.asked(op, accept(x))[0] if op else None
		body, found = body_of(x, op, query) if x['method'] != 'HEAD' else (x.get('responseBody'), [])
		found += version_faults(x, op, version, headers) if op else []
		found += error_faults(x, body, headers) if x['status'] >= 400 else \
			success_faults(x, op, version, body, headers, query)
		for f in found:
			bad[re.sub('[0-9a-f]{24}', '<id>', '%s %s -> %d: %s' % (x['method'], x['url'][:100], x['status'], f))] += 1
	return counted(bad)


def used(recorded):
	"""Operations that have a success, and those that have a refusal."""
	good, refused = set(), set()
	for x in recorded:
		path = unquote(urlsplit(x['url']).path)
		op = api.match(x['method'], path[len(BASE):]) if path.startswith(BASE) and x['method'] != 'HEAD' else None
		if op:
			(good if x['status'] < 300 else refused).add(op['operationId'])
	return good, refused


def used_versions(recorded):
	"""(operation, version) of calls that named the version: those with a success, and those that it refused itself, not
	one of the gates before it."""
	good, refused = set(), set()
	for x in recorded:
		path = unquote(urlsplit(x['url']).path)
		op = api.match(x['method'], path[len(BASE):]) if path.startswith(BASE) and x['method'] != 'HEAD' else None
		version, named = versions.asked(op, accept(x)) if op else (None, False)
		told = tuple(x['responseHeaders'].get(k) for k in ('deprecation', 'sunset'))
		if named and version and told == versions.ending(op, version) and x['status'] not in (401, 406, 429):
			(good if x['status'] < 300 else refused).add((op['operationId'], version))
	return good, refused


def reference():
	"""The reference checker, where one lies beside the checkout."""
	given = os.environ.get('STEWARD_CONFORMANCE', client.ROOT.parent / 'shared' / 'conformance' / 'check')
	return pathlib.Path(given)


def hasten(names):
	"""The checker's answers to questions that it asks itself thousands of times, kept. They are the same."""
	if not {'flat', 'match', 'ops'} <= names.keys():
		return
	flat, kept, routes = names['flat'], {}, {}

	def flat_kept(s, seen=()):
		if seen:
			return flat(s, seen)
		if id(s) not in kept:
			kept[id(s)] = s, flat(s)  # with the schema, so that no other gets its id
		return kept[id(s)][1]

	def match(method, path):
		for e in routes.get(('GET' if method == 'HEAD' else method, path.count('/')), []):
			if e['_rx'].match(path):
				return e

	for e in names['ops']:
		routes.setdefault((e['method'], e['path'].count('/')), []).append(e)
	names.update(flat=flat_kept, match=match)


def reference_check(recorded):
	"""(what it finds wrong, operations with a valid success)"""
	file = reference()
	names = {'__file__': str(file), '__name__': 'reference_check'}
	exec(compile(file.read_text(), str(file), 'exec'), names)  # not imported: that would leave a cache beside it
	hasten(names)
	bad, good = collections.Counter(), set()
	newest = names['match']
	for x in each_form(recorded):
		def match(method, path, x=x):
			"""It knows the newest form of a body, and is given the row as that is in the exchange's version."""
			e = newest(method, path)
			return e and versions.row(e, versions.asked(e, accept(x))[0])
		names['match'] = match
		r = names['hold'](x, lambda s: bad.update([re.sub(r'[0-9a-f]{24}', '<id>', s)]))
		if r and r[0] and r[1] < 300 and r[2]:
			good.add(r[0])
	return counted(bad), good
