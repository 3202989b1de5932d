"""The words of dialects: random bodies of every schema, made here in our words and in the dialect's at once from api/*.json and
api/dialects/*.json, must become each other, as text and as values. Texts that callers write freely are words of either side,
and must stay. Run by properties.py."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'api'))
import derive  # noqa: E402


class Pairs:
	"""Values in both words: (ours, theirs)."""

	def __init__(self, api, dialect, seed):
		self.api, self.random, self.words = api, random.Random(seed), 0
		self.values = {k: dialect['values'][v] if isinstance(v, str) else v for k, v in dialect['values'].items()}
		self.fields = {ours: theirs for theirs, ours in dialect['fields'].items() if isinstance(ours, str)}
		self.fields_in = {(s, ours['for']): theirs for theirs, ours in dialect['fields'].items() if isinstance(ours, dict) for s in ours['in']}
		self.everywhere, self.when = set(dialect['everywhere']), dialect['when']
		self.free = sorted({w for pairs in self.values.values() for pair in pairs.items() for w in pair} |
				   {w for pair in self.fields.items() for w in pair}) + ['x', 'a "b" \\', 'é\u4e2d\n', '{"dbVersion":', '']

	def swap(self, field, text):
		pairs = self.values.get(field, {})
		turned = {**pairs, **{o: t for t, o in pairs.items()}}
		self.words += text in turned
		return turned.get(text, text)

	def any(self, depth):
		pick = self.random.randrange(7 if depth < 3 else 5)
		if pick == 5:
			return [self.any(depth + 1) for _ in range(self.random.randrange(3))]
		if pick == 6:
			return {self.random.choice(self.free): self.any(depth + 1) for _ in range(self.random.randrange(3))}
		return [None, True, self.random.randrange(10 ** 6), 0.5, self.random.choice(self.free)][pick]

	def same(self, value):
		return value, value

	def value(self, s, field=None, place=None, depth=0):
		name, s = s.get('$ref'), self.api.resolve(s)
		branches = self.api.branches(s)
		if branches and depth < 12:
			key, branch = self.random.choice(branches)
			if branch != s:
				return self.of_branch(s, name, key, branch, field, depth)
		if 'enum' in s:
			text = self.random.choice(s['enum'])
			return self.same(text) if not isinstance(text, str) else (text, self.swap(field or self.listed(text), text))
		kind = s.get('type')
		if kind == 'string' and place in self.everywhere:
			text = self.random.choice(sorted(self.values[field].values()) + ['x'])
			return text, self.swap(field, text)
		if kind == 'string':
			return self.same(self.api.text(s) if 'pattern' in s or 'format' in s else self.random.choice(self.free))
		if kind in ('integer', 'number', 'boolean'):
			return self.same({'integer': 7, 'number': 0.25, 'boolean': True}[kind])
		if kind == 'array':
			items = [self.value(s.get('items', {}), field, place, depth + 1) for _ in range(self.random.randrange(3) if depth < 9 else 0)]
			return [o for o, _ in items], [t for _, t in items]
		if kind == 'object' or 'properties' in s or 'allOf' in s:
			return self.object(s, name, depth)
		return self.same(self.any(depth))

	def listed(self, text):
		"""The field whose values have the text, for what has no field."""
		return next((f for f, pairs in self.values.items() if text in pairs.values()), None)

	def of_branch(self, s, name, key, branch, field, depth):
		resolved = self.api.resolve(branch)
		ours, theirs = self.object(resolved, branch.get('$ref'), depth + 1) if key is not None or 'properties' in resolved or 'allOf' in resolved \
			else self.value(branch, field, None, depth + 1)
		if isinstance(ours, dict):
			if s.get('properties'):
				more = self.object(s, name, depth)
				ours, theirs = {**more[0], **ours}, {**more[1], **theirs}
			if key is not None:
				at = s['discriminator']['propertyName']
				ours, theirs = {**ours, at: key}, {**theirs, at: self.swap(at, key)}
			self.beside(ours, theirs)
		return ours, theirs

	def beside(self, ours, theirs):
		"""Values that are words only beside others."""
		for field, rule in self.when.items():
			(other, listed), = rule.items()
			if isinstance(ours.get(field), str):
				theirs[field] = self.swap(field, ours[field]) if ours.get(other) in listed else ours[field]

	def object(self, s, name, depth):
		fields, required, more = self.api.merged(s)
		ours, theirs = {}, {}
		for field, schema in fields.items():
			if self.random.random() < (0.9 if field in self.fields or field in self.values else 0.6 / (1 + depth / 3)):
				o, t = self.value(schema, field, '%s.%s' % (name, field), depth + 1)
				ours[field] = o
				word = self.fields_in.get((name, field)) or self.fields.get(field)
				self.words += word is not None
				theirs[word or field] = t
		self.beside(ours, theirs)
		if more not in (None, False) or not fields:
			inner = more if isinstance(more, dict) and set(more) - {'type', 'readOnly'} else None
			for i in range(self.random.randrange(3)):
				o, t = self.value(inner, None, None, depth + 1) if inner else self.same(self.any(depth + 1))
				ours['key%d' % i], theirs['key%d' % i] = o, t
		return ours, theirs


def bodies(op):
	for date in op['versions']:
		form = {**op, **op.get('olderVersions', {}).get(date, {})}
		for part in ('request', 'response'):
			if form.get(part):
				yield date, part, form[part]


def run(folder, cases=12):
	api = derive.Api(folder)
	lines, wanted, words = [], [], 0
	for file in sorted(folder.glob('dialects/*.json')):
		dialect = json.loads(file.read_text())
		for op in api.ops:
			for date, part, schema in bodies(op):
				made = Pairs(api, dialect, op['operationId'] + date + part)
				for i in range(4 * cases):
					ours, theirs = made.value(schema)
					# Both ways: what comes from outside is in their words.
					for one, other in ((ours, theirs), (theirs, ours)):
						lines.append({'dialect': dialect['name'], 'operation': op['operationId'], 'date': date, 'part': part, 'body': one})
						wanted.append(other)
					if i >= cases and not made.words:
						break
				words += made.words
	out = yield ''.join(json.dumps(line) + '\n' for line in lines)
	answers = [json.loads(line) for line in out.splitlines()]
	assert len(answers) == len(lines)
	for line, want, answer in zip(lines, wanted, answers):
		assert answer['value'] == want, ('as a value', line, want, answer['value'])
		assert json.loads(answer['text']) == want, ('as text', line, want, answer['text'])
		assert list_keys(json.loads(answer['text'])) == list_keys(answer['value']), ('another order', line, answer)
		assert json.loads(answer['back']) == line['body'] and list_keys(json.loads(answer['back'])) == list_keys(line['body']), ('back', line, answer)
	assert words > 1000, words
	print('%d bodies, %d words' % (len(lines), words))


def list_keys(value):
	"""The keys in their order, at every depth."""
	if isinstance(value, dict):
		return [(k, list_keys(v)) for k, v in value.items()]
	return [list_keys(v) for v in value] if isinstance(value, list) else None

