"""Speaks a dialect for the test client: requests into its words, answers and recordings back into ours, by the names of fields
alone. The server goes by schemas; this does not know them, so that the two can be held against each other.

STEWARD_TEST_DIALECT=atlas runs the API tests so. What an answer has of our own words is found here, and fails the test."""
import functools, json, os, re
from urllib.parse import quote, unquote

NAME = os.environ.get('STEWARD_TEST_DIALECT')
OURS, OURS_V1 = '/api/svc/v2', '/api/svc/v1.0'
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')


# Whose answers are whole in a dialect and not in ours: here they are those that the reference has. test_dialects.py looks at the others.
CUT = re.compile(r'/(exportBuckets|alertConfigs|snapshots|onlineArchives|(search|fts)/indexes)\b')


class Leak(AssertionError):
	pass


class Dialect:
	def __init__(self, name):
		with open(os.path.join(ROOT, 'api', 'dialects', name + '.json'), encoding='utf-8') as f:
			data = json.load(f)
		self.base, self.base_v1, self.media = data['base'], data.get('baseV1'), data['media']
		self.paths, self.when = data['paths'], data['when']
		self.values = {k: data['values'][v] if isinstance(v, str) else v for k, v in data['values'].items()}
		self.fields = {theirs: ours['for'] if isinstance(ours, dict) else ours for theirs, ours in data['fields'].items()}
		self.other_fields = {ours: theirs for theirs, ours in data['fields'].items() if isinstance(ours, str)}
		self.other_values = {field: {o: t for t, o in pairs.items()} for field, pairs in self.values.items()}
		self.codes, self.partial = data['codes'], data['partial']
		self.query = {field: self.values['eventTypeName'] for field in ('eventType', 'excludedEventType')}
		self.other_query = {field: {o: t for t, o in pairs.items()} for field, pairs in self.query.items()}
		# Of these no answer may have one, but as a part of what the caller wrote.
		plain = {o for pairs in self.other_values.values() for o in pairs if '_' in o or '.' in o or o == 'svcAdmin'}
		words = {*self.other_fields, *plain, *self.codes.values()}
		self.secret = re.compile(r'(?<![\w-])(%s)(?![\w-])|/api/svc/|vnd\.svc\.' % '|'.join(map(re.escape, words)))
		self.secret_parts = ['/api/svc/', 'vnd.svc.', *words]
		self.other_paths = {o: t for t, o in self.paths.items()}
		self.sentence = self.words_in()

	# Bodies.
	def turned(self, value, fields, values, field=None, beside=None):
		if isinstance(value, dict):
			return {fields.get(k, k): self.turned(v, fields, values, fields.get(k, k) if k in self.fields else k, value) for k, v in value.items()}
		if isinstance(value, list):
			return [self.turned(v, fields, values, field, beside) for v in value]
		when = self.when.get(field)
		if when and not any(isinstance(beside, dict) and beside.get(k) in listed for k, listed in when.items()):
			return value
		if isinstance(value, str):
			return values.get(field, {}).get(value, value)
		return value

	def body_out(self, value):
		return self.turned(value, self.other_fields, self.other_values)

	def body_in(self, value):
		if isinstance(value, list) and all(isinstance(v, str) for v in value):  # without a field: names of fields
			return [self.values['fieldName'].get(v, v) for v in value]
		return self.turned(value, self.fields, self.values)

	# Paths and queries.
	def segment(self, segment, before, words, limits, logs):
		if before == 'limits' and not segment.startswith('{'):
			return quote(limits.get(unquote(segment), unquote(segment)), safe="-._~!$&'()*+,;=:@%")
		if before == 'logs' and segment.endswith('.gz'):
			return logs.get(segment[:-3], segment[:-3]) + '.gz'
		for one, other in words.items():
			if segment == one or (':' in segment and segment.endswith(one)):
				return segment[:-len(one)] + other
		return segment

	def path(self, path, words, values):
		parts = path.split('/')
		return '/'.join(self.segment(part, parts[i - 1] if i else None, words, values['limitName'], values['logName'])
				for i, part in enumerate(parts))

	def url_turned(self, url, bases, words, values, query):
		"""A URL or what follows its host; others stay."""
		head, mark, tail = url.partition('?')
		for one, other in bases:
			at = head.find(one)
			if at >= 0 and (at + len(one) == len(head) or head[at + len(one)] == '/') and (at == 0 or head.startswith('https://')):
				head = head[:at] + other + self.path(head[at + len(one):], words, values)
				break
		else:
			return url
		pairs = []
		for pair in tail.split('&') if mark else []:
			name, equals, value = pair.partition('=')
			if name in query:
				value = ','.join(query[name].get(v, v) for v in value.split(','))
			if name == 'endpointPath':
				value = quote(self.url_turned(unquote(value), bases, words, values, query), safe='/')
			pairs.append(name + equals + value)
		return head + mark + '&'.join(pairs)

	def url_out(self, url):
		return self.url_turned(url, [(OURS_V1, self.base_v1), (OURS, self.base)], self.other_paths, self.other_values, self.other_query)

	@functools.lru_cache(4096)
	def url_in(self, url):
		return self.url_turned(url, [(self.base_v1, OURS_V1), (self.base, OURS)], self.paths, self.values, self.query)

	def is_theirs(self, url):
		return re.search(r'^(https://[^/]+)?(%s|%s)([/?]|$)' % (re.escape(self.base), re.escape(self.base_v1)), url) is not None

	def params_out(self, params):
		if isinstance(params, dict):
			return {k: [self.other_query.get(k, {}).get(x, x) for x in v] if isinstance(v, list) else
				','.join(self.other_query[k].get(x, x) for x in v.split(',')) if k in self.other_query and isinstance(v, str) else v
				for k, v in params.items()}
		return params

	def media_out(self, text):
		return re.sub(r'vnd\.svc\.', self.media[len('application/'):], text, flags=re.I) if isinstance(text, str) else text

	def media_in(self, text):
		return text.replace(self.media, 'application/vnd.svc.')

	# Answers.
	def links_in(self, value):
		if isinstance(value, dict):
			if isinstance(value.get('raw'), dict) and 'description' in value['raw']:  # of an event
				value = {**value, 'raw': {**value['raw'], 'description': self.sentence_in(value['raw']['description'])}}
			return {k: self.rel_in(v) if k == 'rel' and isinstance(v, str) else self.url_in(v) if k in ('href', 'path') and isinstance(v, str)
				else self.links_in(v) for k, v in value.items()}
		return [self.links_in(v) for v in value] if isinstance(value, list) else value

	@functools.lru_cache(4096)
	def rel_in(self, rel):
		head, mark, tail = rel.partition('/rels/')
		return head + mark + self.path(tail, self.paths, self.values) if mark else rel

	def words_in(self):
		"""What sentence_in() puts in the place of what, one after the other: (a part of it, the whole, ours)."""
		out = [(theirs, re.compile(r'(?<![\w-])%s(?![\w-])' % re.escape(theirs)), ours)
		       for theirs, ours in sorted(self.fields.items(), key=lambda x: -len(x[0]))]
		for pairs in self.values.values():
			for theirs, ours in pairs.items():
				if '_' in theirs or '.' in theirs or theirs in ('atlasAdmin', 'MONGOD', 'MONGOS') or ours in ('db', 'dbs', 'db-audit-log', 'dbs-audit-log'):
					out.append((theirs, re.compile(r'(?<![\w.-])%s(?![\w-])' % re.escape(theirs)), ours))
		return out

	def sentence_in(self, text):
		for theirs, whole, ours in self.sentence:
			if theirs in text:  # most are not, and this is the cheaper look
				text = whole.sub(ours, text)
		text = self.media_in(text).replace(self.base_v1, OURS_V1)
		# Paths in it end with a colon, a comma, a dot or a space.
		return re.sub(r'%s(/[^\s"]*[^\s",.:])?' % re.escape(self.base), lambda m: self.url_in(m.group()), text)

	def problem_in(self, doc):
		return {k: self.codes.get(v, v) if k == 'errorCode' else self.sentence_in(v) if k == 'detail' else [self.sentence_in(p) if isinstance(p, str) else p for p in v] if k == 'parameters' else v
			for k, v in doc.items()}

	def shapes_in(self, value):
		"""Rate limits have objects for numbers there; what is raw of an event has a sentence."""
		if isinstance(value, list):
			return [self.shapes_in(v) for v in value]
		if not isinstance(value, dict):
			return value
		if 'endpointSetId' in value:
			return {k: v['value'] if isinstance(v, dict) and 'value' in v else v for k, v in value.items()}
		return {k: {**v, 'description': self.sentence_in(v['description'])} if k == 'raw' and isinstance(v, dict) and 'description' in v
			else self.shapes_in(v) for k, v in value.items()}

	def answer_in(self, doc, status):
		if isinstance(doc, dict) and {'error', 'errorCode', 'detail'} <= doc.keys():
			return self.problem_in(doc)
		if isinstance(doc, dict) and isinstance(doc.get('content'), dict) and 'errorCode' in doc['content']:
			return {**doc, 'content': self.problem_in(doc['content'])}
		return self.links_in(self.shapes_in(self.body_in(doc)))

	def leaks(self, text, said):
		"""Our words in an answer that the caller has not written, and that are nobody's names: those stand in quotes."""
		if not any(part in text for part in self.secret_parts):  # a cheaper look than the expression's
			return []
		names = re.findall(r'\\"([^"\\\\]+)\\"', text)
		return [m.group() for m in self.secret.finditer(text) if m.group() not in said and m.group() not in names]

	def exchange_in(self, x):
		"""A recorded exchange in our words."""
		if not self.is_theirs(x['url']):
			return x
		said = x['url'] + json.dumps(x.get('requestBody'))
		found = self.leaks(json.dumps(x.get('responseBody'), ensure_ascii=False), said)
		if found:
			raise Leak('%s %s: %s' % (x['method'], x['url'], found))
		return {**x, 'translated': True, 'url': self.url_in(x['url']), 'requestBody': self.body_in(x.get('requestBody')),
			'responseBody': self.answer_in(x.get('responseBody'), x['status']),
			'requestHeaders': {k: self.media_in(v) if isinstance(v, str) else v for k, v in x['requestHeaders'].items()},
			'responseHeaders': {k: self.media_in(self.url_in(v)) for k, v in x['responseHeaders'].items()}}


spoken = Dialect(NAME) if NAME else None


def lenient(method, url, body):
	"""Whether the dialect takes what our own refuses in it: fields that are read-only, or null, or a part of a document."""
	from recordings import api
	head = url.split('?')[0]
	op = api.match(method, unquote(head[head.find(OURS) + len(OURS):]))

	def loose(schema, value):
		schema = api.resolve(schema)
		if isinstance(value, list):
			return any(loose(schema.get('items', {}), v) for v in value)
		if not isinstance(value, dict):
			return False
		fields = dict(api.merged(schema)[0])
		for _, branch in api.branches(schema):
			fields = {**api.merged(branch)[0], **fields}
		return any(v is None or api.resolve(fields.get(k, {})).get('readOnly') or loose(fields.get(k, {}), v) for k, v in value.items())
	forms = [op, *op.get('olderVersions', {}).values()] if op else []

	def lacks(schema):
		fields, needed = api.merged(schema)[:2]
		return any(k not in body and not api.resolve(fields.get(k, {})).get('readOnly') for k in needed)
	if op and op['operationId'] in spoken.partial and isinstance(body, dict) and any(lacks(form['request']) for form in forms):
		return True
	return any(loose(form['request'], body) for form in forms if 'request' in form)


def ask(session, method, url, **kw):
	"""As session.request(); in the dialect where one is spoken."""
	d = spoken
	if not d or d.is_theirs(url) or d.url_out(url) == url:
		return session.request(method, url, **kw)
	body = kw.get('json')
	if body is None and isinstance(kw.get('data'), (str, bytes)):
		try:
			body = json.loads(kw['data'])
		except ValueError:
			pass
	if body is not None and lenient(method, url, body):
		return session.request(method, url, **kw)
	said = json.dumps([kw.get('json'), str(kw.get('data')), str(kw.get('params'))], default=str, ensure_ascii=False) + url
	if kw.get('json') is not None:
		kw['json'] = d.body_out(body)
	if kw.get('params'):
		kw['params'] = d.params_out(kw['params'])
	if isinstance(kw.get('data'), (str, bytes)):
		if body is not None and d.body_out(body) != body:
			kw['data'] = json.dumps(d.body_out(body), ensure_ascii=False).encode()
	if kw.get('headers'):
		kw['headers'] = {k: d.media_out(v) for k, v in kw['headers'].items()}
	if CUT.search(url) and 'X-Steward-Whole' not in session.headers:
		kw['headers'] = {'X-Steward-Whole': 'false', **(kw.get('headers') or {})}
	answer = session.request(method, d.url_out(url), **kw)
	for name in ('content-type', 'location'):
		if name in answer.headers:
			answer.headers[name] = d.media_in(d.url_in(answer.headers[name]))
	if not kw.get('stream') and 'json' in answer.headers.get('content-type', '') and answer.content:
		found = d.leaks(answer.text, said)
		if found:
			raise Leak('%s %s: %s in %s' % (method, answer.request.url, found, answer.text[:2000]))
		doc = json.loads(answer.content)
		turned = d.answer_in(doc, answer.status_code)
		if turned != doc:
			pretty = answer.content.startswith((b'{\n', b'[\n'))
			answer._content = json.dumps(turned, ensure_ascii=False, indent=2 if pretty else None,
						     separators=None if pretty else (',', ':')).encode() + (b'\n' if pretty else b'')
	return answer
