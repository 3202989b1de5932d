"""Bodies become flags and bodies again: random bodies of every operation that takes one, made here from api/*.json.
Run by properties.py."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / 'api'))
import derive  # noqa: E402

# Texts that could be taken for something else.
TEXTS = ['x', 'true', 'false', 'null', '5', '-5', '1e3', '0.5', '', ' ', 'a b', '-', '--x', '=', 'a=b', 'a.b', 'a:b',
	 'a:=b',
	 '[1]', '[', '{"a":1}', '{}', '"q"', 'é\u4e2d', "it's", 'back\\slash', '\t', '0', 'KEY', 'no-x']
KEYS = ['a', 'plainKey', 'with.dot', 'with=sign', 'with:colon', 'back\\slash', '0', '17', 'UPPER', 'under_score', 'ü',
	'a b', 'kebab-key']


class Bodies:
	def __init__(self, api, seed):
		self.api, self.random = api, random.Random(seed)

	def any(self, depth):
		pick = self.random.randrange(8 if depth < 4 else 6)
		if pick == 6:
			return [self.any(depth + 1) for _ in range(self.random.randrange(3))]
		if pick == 7:
			return {self.random.choice(KEYS): self.any(depth + 1) for _ in range(self.random.randrange(3))}
		number = self.random.randrange(-9, 10 ** 9)
		return [None, True, number, self.random.random() * 100, self.random.choice(TEXTS), 'x'][pick]

	def text(self, s):
		if 'pattern' in s or s.get('format') in ('date-time', 'date', 'email', 'uuid', 'uri', 'ipv4'):
			return self.api.text(s)
		fits = [t for t in TEXTS if s.get('minLength', 0) <= len(t) <= s.get('maxLength', 1000)]
		return self.random.choice(fits) if fits else self.api.text(s)

	def number(self, s, whole):
		low, high = s.get('minimum', -1000 if 'maximum' not in s else s['maximum'] - 1000), s.get('maximum')
		high = low + 10 ** 6 if high is None else high
		low += 1 if s.get('exclusiveMinimum') else 0
		return self.random.randint(int(low), int(max(low, high))) if whole else self.random.uniform(low, high)

	def value(self, s, depth=0):
		s = self.api.resolve(s)
		branches = self.api.branches(s)
		if branches:
			key, branch = self.random.choice(branches)
			if branch == s or depth > 12:
				return self.object(s, depth)
			value = self.value_of_branch(s, key, branch, depth)
			return value
		if s.get('nullable') and self.random.random() < 0.05:
			return None
		if 'enum' in s:
			return self.random.choice([v for v in s['enum'] if v is not None])
		kind = s.get('type')
		if kind == 'string':
			return self.text(s)
		if kind in ('integer', 'number'):
			return self.number(s, kind == 'integer')
		if kind == 'boolean':
			return self.random.random() < 0.5
		if kind == 'array':
			least = s.get('minItems', 0)
			many = self.random.randint(least, min(s.get('maxItems', least + 3), least + 3)) if depth < 8 else least
			out = []
			for _ in range(many):
				item = self.value(s.get('items', {}), depth + 1)
				if not s.get('uniqueItems') or item not in out:
					out.append(item)
			return out
		if kind == 'object' or 'properties' in s or 'allOf' in s:
			return self.object(s, depth)
		return self.any(depth)

	def value_of_branch(self, s, key, branch, depth):
		resolved = self.api.resolve(branch)
		# A branch of a discriminator may name its parent as a part: then it has no branches of its own here.
		value = self.object(resolved, depth + 1) if key is not None or 'properties' in resolved or 'allOf' in resolved \
			else self.value(branch, depth + 1)
		if isinstance(value, dict):
			if s.get('properties'):
				value = {**self.object(s, depth), **value}
			if key is not None:
				value = self.api._discriminated(s, branch, key, value)
		return value

	def object(self, s, depth):
		fields, required, more = self.api.merged(s)
		often = 0.5 / (1 + depth)
		out = {n: self.value(f, depth + 1) for n, f in fields.items()
		       if not self.api.read_only(f) and (n in required or self.random.random() < often)}
		if not fields and more is not False:
			for _ in range(self.random.randrange(3)):
				inner = more if isinstance(more, dict) and more != {'type': 'object'} else None
				out[self.random.choice(KEYS)] = self.value(inner, depth + 1) if inner else self.any(depth + 1)
		return out


def run(folder, cases=60):
	api = derive.Api(folder)
	ops = [op for op in api.ops if 'request' in op]
	lines = []
	for op in ops:
		bodies = Bodies(api, op['operationId'])
		lines += [{'operation': op['operationId'], 'body': bodies.value(op['request'])} for _ in range(cases)]
	out = yield ''.join(json.dumps(line) + '\n' for line in lines)
	answers = [json.loads(line) for line in out.splitlines()]
	assert len(answers) == len(lines)
	flags = plain = valid = 0
	for line, answer in zip(lines, answers):
		assert answer['fault'] is None, (line, answer)
		assert same(answer['body'], line['body']), (line, answer)
		flags += len(answer['arguments'])
		plain += sum(not a.startswith('--set=') for a in answer['arguments'])
		valid += answer['faults'] == 0
	print('%d bodies of %d operations, %d valid; %d flags, %d of them plain' % (len(lines), len(ops), valid, flags, plain))
	assert valid > len(lines) // 2, 'bodies that are not valid tell less'
	assert plain > flags * 0.8, 'flags should be what people write'


def same(a, b):
	"""Equal, and of the same types: true is not 1."""
	if isinstance(a, dict) and isinstance(b, dict):
		return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
	if isinstance(a, list) and isinstance(b, list):
		return len(a) == len(b) and all(map(same, a, b))
	return type(a) is type(b) and a == b
