"""Recorded exchanges held against the API's data: whether each fits, which operations were used, and what the reference
checker says where there is one."""
import collections, json, os, pathlib, re
from urllib.parse import parse_qs, unquote, urlsplit

import client
from client import BASE, assert_problem
from derive import Api

api = Api()


def exchanges(file=client.EXCHANGES):
	def whole():
		text = file.read_text()
		return text.endswith('\n') and text
	# An exchange is written down after its answer was sent: the last line may be on its way.
	text = client.until(whole, what='the last line of ' + file.name) if file.stat().st_size else ''
	return [json.loads(line) for line in text.split('\n') if line.strip()]


def body_of(x, query):
	"""The body without its envelope; faults of the envelope itself."""
	body = x.get('responseBody')
	if query.get('envelope') == 'true' and isinstance(body, dict):
		if body.get('status') != x['status']:
			return body, ['envelope: status is %r' % body.get('status')]
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


def of_version(op, headers):
	"""The row as it is in the version of an answer."""
	date = re.search(r'\d{4}-\d\d-\d\d', headers.get('content-type', ''))
	return {**op, **op.get('olderVersions', {}).get(date.group() if date else None, {})}


def success_faults(x, op, body, headers, query):
	if op is None:
		return ['a success on a path that does not exist']
	op, out = of_version(op, headers), []
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
	for x in recorded:
		url = urlsplit(x['url'])
		path, query = unquote(url.path), {k: v[-1] for k, v in parse_qs(url.query).items()}
		if not path.startswith(BASE):
			continue
		op = api.match(x['method'], path[len(BASE):])
		headers = {k.lower(): v for k, v in x['responseHeaders'].items()}
		body, found = body_of(x, query) if x['method'] != 'HEAD' else (x.get('responseBody'), [])
		found += error_faults(x, body, headers) if x['status'] >= 400 else success_faults(x, op, body, headers, query)
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


def reference():
	"""The reference checker, where one lies beside the checkout."""
	given = os.environ.get('STEWARD_CONFORMANCE', client.ROOT.parent / 'shared' / 'conformance' / 'check')
	return pathlib.Path(given)


def reference_check(recorded):
	"""(what it finds wrong, operations with a valid success)"""
	file = reference()
	names = {'__file__': str(file), '__name__': 'reference_check'}
	exec(compile(file.read_text(), str(file), 'exec'), names)  # not imported: that would leave a cache beside it
	bad, good = collections.Counter(), set()
	for x in recorded:
		r = names['hold'](x, lambda s: bad.update([re.sub(r'[0-9a-f]{24}', '<id>', s)]))
		if r and r[0] and r[1] < 300 and r[2]:
			good.add(r[0])
	return counted(bad), good
