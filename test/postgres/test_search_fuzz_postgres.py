"""Queries, options, facets and filters that nobody would write. The compiler of queries is SQL, in the databases, so that no fuzzer of C reaches it:
here well-formed ones are changed at random, and asked for over rows with every value that is hard to compute with. Each is answered, or refused with the
place in it that is wrong; whatever else PostgreSQL says is a fault of the compiler.

  script/test search-fuzz

does so for ten minutes (STEWARD_FUZZ_SECONDS; otherwise a short while). What failed is printed with all that is needed to ask it again."""
import contextlib, copy, json, os, random, re, time

import psycopg2, psycopg2.errors, pytest

from client import ok
from test_search_postgres import READER, SECRET, World

SECONDS = float(os.environ.get('STEWARD_FUZZ_SECONDS', 10))
SEED = int(os.environ.get('STEWARD_FUZZ_SEED', 0)) or random.randrange(1, 10 ** 9)
LIMIT = '5s'
OWN = [{'name': 'own', 'charFilters': [{'type': 'htmlStrip'}], 'tokenizer': {'type': 'standard'}, 'tokenFilters': [{'type': 'lowercase'}, {'type': 'asciiFolding'}]}]
WORD, GRAM = {'type': 'string'}, lambda kind: {'type': 'autocomplete', 'tokenization': kind, 'minGrams': 1, 'maxGrams': 6}
FIELDS = {
	'title': [{'type': 'string', 'multi': {'english': {'type': 'string', 'analyzer': 'lucene.english'}, 'own': {'type': 'string', 'analyzer': 'own'}}}, GRAM('edgeGram'),
		  {'type': 'token', 'normalizer': 'lowercase'}],
	'tag': [{'type': 'token'}, GRAM('nGram')], 'n': {'type': 'number'}, 'small': {'type': 'number'}, 'f': {'type': 'number'}, 'price': {'type': 'number'}, 'live': {'type': 'boolean'},
	'day': {'type': 'date'}, 'at': {'type': 'date'}, 'moment': {'type': 'date'}, 'u': {'type': 'uuid'},
	'doc': [{'type': 'document', 'fields': {'a': [WORD, {'type': 'token', 'normalizer': 'lowercase'}, GRAM('rightEdgeGram')], 'n': {'type': 'number'}, 'b': {'type': 'boolean'},
						 'd': {'type': 'date'}, 'e "x"': {'type': 'token'}}}]}
PATHS = ['title', 'tag', 'n', 'small', 'f', 'price', 'live', 'day', 'at', 'moment', 'u', 'doc', 'doc.a', 'doc.n', 'doc.b', 'doc.d', 'doc.e "x"', 'nothing', '']
TEXTS = ['amber', 'Amber basin', 'a', '', ' ', '%', '\\', "'", '"', '$$', '$f$', '%s', '%1$s', '%%', '\\\\x', 'x\'::tsquery', '<!-- <b', '<!--' * 50, '&amp;', 'a & !b', ':*', "'a':*", '(', ')',
	 '[', '[^', '***=a', '***:a', '(?i)a', 'a{2,1}', 'a{300}', '\\1', '[[:alpha:]]', '[[.a.]]', '\\m', '\\y', 'a|', '()', '*', '?', 'a**', '\\*', 'title:', 'title:amber', 'amber AND', 'NOT a',
	 'AND OR', 'a OR (b AND c)', 'tag:(a OR "b c")', '""', '"a', 'é中😀', '\u200d\u0301', 'ß', 'İ', '\x01\x02', '\t\n', 'a' * 300, 'a ' * 300, '2024-01-01', '2024-02-30', '0001-01-01', '0000-01-01',
	 '9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59-15:59', '2024-01-01T24:00:00Z', '2024-01-01T00:00:60+14', 'infinity', '00000000-0000-0000-0000-000000000001', 'english', 'own', 'alike',
	 'sequential', 'any', 'all', 'string', 'number', 'date']
NUMBERS = [0, 1, -1, 2, 3, 10, 100, 1000, 10000, 10001, 0.5, -0.0, 1e-9, 1e-320, 5e-324, 1e300, 1.7e308, -1e308, 2 ** 15, 2 ** 31 - 1, 2 ** 31, 2 ** 63, -2 ** 63, 10 ** 400, 1e15 + 0.5]
DATES = ['2024-01-01', '0001-01-01', '9999-12-31T23:59:59.999999Z', '9999-12-31T23:59:59-15:59', '2024-01-01T24:00:00Z', '2024-01-01T00:00:60+14']
TYPED = {'number': ['n', 'small', 'f', 'price', 'doc.n'], 'date': ['day', 'at', 'moment', 'doc.d'], 'boolean': ['live', 'doc.b'], 'token': ['title', 'tag', 'u', 'doc.a', 'doc.e "x"']}
PLACES = re.compile(r'.*: .', re.S)
ANSWERS = {'22023'}  # refused, with a place
BOUNDS = {'54001', '57014'}  # too much for the server's stack, or for the time that a statement may take
ROWS = """
create table odd(id int, title text, tag varchar(400), n int8, small int2, f float8, price numeric, live bool, day date, at timestamp, moment timestamptz, u uuid, doc jsonb, v real[]);
insert into odd select i, (array['Amber basin', 'cedar <b>delta</b>', '', 'a', 'it''s', null])[1 + i % 6], (array['amber', 'A b', '%', '', null])[1 + i % 5],
	(array[0, 9223372036854775807, -9223372036854775808, null, 7])[1 + i % 5], (array[32767, -32768, 0, null])[1 + i % 4],
	(array['NaN', 'infinity', '-infinity', '1e300', '1.7e308', '-1.7e308', '5e-324', '0', '-0', '2.5'])[1 + i % 10]::float8,
	(array['NaN', 'infinity', '-infinity', '1e400', '-1e400', '1e-400', '0', '3.25'])[1 + i % 8]::numeric, (array[true, false, null])[1 + i % 3],
	(array['infinity', '-infinity', '4713-01-01 BC', '5874897-12-31', '2024-01-01', null])[1 + i % 6]::date,
	(array['infinity', '-infinity', '4713-01-01 BC', '294276-12-31 23:59:59', '2024-01-01', null])[1 + i % 6]::timestamp,
	(array['infinity', '-infinity', '4713-01-01 BC', '294276-12-31 23:59:59+0', '2024-01-01', null])[1 + i % 6]::timestamptz,
	(array['00000000-0000-0000-0000-000000000001', null])[1 + i % 2]::uuid,
	(array['{"a": "Amber", "n": 1e400, "b": true, "d": "2024-01-01"}', '{"a": ["x", "y z", 3, null], "n": ["1", 2, {}], "b": [false, 1], "d": ["2024-02-30", "infinity", 5]}', '[]', '3', 'null', '""',
		'{"e \\"x\\"": "amber", "a": {"a": "b"}, "n": -1e-400}', null])[1 + i % 8]::jsonb, array[i, 1, -i % 7, 2]::real[] from generate_series(1, 240) i;
create table alike(mapping_type text, input text[], synonyms jsonb); insert into alike values ('equivalent', null, '["amber", "basin x"]'), ('explicit', '{a}', '["it''s", "&"]');
"""


@pytest.fixture(scope='module')
def world(start_place):
	w = World(start_place('--index-wait', '30'))
	w.sql(ROWS)
	w.built('odd', 'odd', FIELDS, analyzers=OWN, storedSource={'include': ['id', 'tag']}, synonyms=[
		{'name': 'alike', 'analyzer': 'lucene.standard', 'source': {'collection': 'alike'}}])
	made = ok(w.server.post(w.base, json={'name': 'near', 'database': 'postgres', 'collectionName': 'odd', 'type': 'vectorSearch', 'definition': {'fields': [
		{'type': 'vector', 'path': 'v', 'numDimensions': 4, 'similarity': 'cosine'},
		*({'type': 'filter', 'path': p} for p in ('tag', 'n', 'small', 'f', 'price', 'live', 'day', 'at', 'moment', 'u', 'doc.a', 'doc.n'))]}}), 201)['indexID']
	w.reached(made, 'READY')
	return w


class Maker:
	"""Makes queries that are well formed, for the most part, and changes them."""

	def __init__(self, seed):
		self.r = random.Random(seed)

	def value(self, depth=0):
		r = self.r
		return r.choice([lambda: r.choice(TEXTS), lambda: r.choice(TEXTS), lambda: r.choice(NUMBERS), lambda: r.choice([True, False, None]), lambda: r.choice(PATHS),
				 lambda: [self.value(depth + 1) for _ in range(r.randint(0, 3))] if depth < 3 else [], lambda: {r.choice(['value', 'path', 'query', 'a']): self.value(depth + 1)} if depth < 3 else {}])()

	def path(self, *of):
		r = self.r
		return r.choice(of or PATHS) if r.random() < 0.93 else r.choice([{'wildcard': '*'}, {'value': 'title', 'multi': r.choice(['english', 'own', 'x'])}, [r.choice(PATHS) for _ in range(r.randint(0, 3))]])

	def typed(self, *kinds):
		"""A path, and what makes values of its type."""
		kind = self.r.choice(kinds)
		return self.path(*TYPED[kind]), {'number': lambda: self.r.choice(NUMBERS), 'date': lambda: self.r.choice(DATES), 'boolean': lambda: self.r.random() < 0.5,
						 'token': lambda: self.r.choice(TEXTS)}[kind]

	def operator(self, depth=0):
		r, text = self.r, lambda: self.r.choice(TEXTS)
		(path, value), (ordered, bound), (far, origin) = self.typed(*TYPED), self.typed('number', 'date', 'token'), self.typed('number', 'date')
		kind, q = r.choice([
			lambda: ('text', {'query': r.choice([text(), [text(), text()]]), 'path': self.path('title', 'doc.a'), **r.choice([
				{}, {'matchCriteria': r.choice(['any', 'all', 'x'])}, {'fuzzy': r.choice([{}, {'maxEdits': r.choice(NUMBERS)}, {'prefixLength': r.choice(NUMBERS)}])}, {'synonyms': 'alike'}])}),
			lambda: ('phrase', {'query': text(), 'path': self.path('title', 'doc.a'), **r.choice([{}, {'slop': r.choice(NUMBERS)}])}),
			lambda: ('moreLikeThis', {'like': r.choice([{'title': text()}, {'doc': {'a': [text()]}}, [{'title': text()}, {'x': 1}]])}),
			lambda: ('autocomplete', {'query': text(), 'path': self.path('title', 'tag', 'doc.a'), **r.choice([{}, {'tokenOrder': 'sequential'}])}),
			lambda: (r.choice(['wildcard', 'regex']), {'query': text() + r.choice(['', '*', '.', text()]), 'path': self.path('tag', 'title', 'u', 'doc.a', 'doc.e "x"'),
								   **r.choice([{}, {'allowAnalyzedField': True}])}),
			lambda: ('equals', {'path': path, 'value': value()}), lambda: ('in', {'path': path, 'value': [value() for _ in range(r.randint(1, 3))]}),
			lambda: ('range', {'path': ordered, r.choice(['gt', 'gte']): bound(), **r.choice([{}, {r.choice(['lt', 'lte']): bound()}])}),
			lambda: ('exists', {'path': r.choice(PATHS[:-2])}),
			lambda: ('near', {'path': far, 'origin': origin(), 'pivot': abs(r.choice(NUMBERS)) or 1}),
			lambda: ('queryString', {'defaultPath': self.path('title'), 'query': ' '.join(text() for _ in range(r.randint(1, 3)))}),
			lambda: ('compound', {k: [self.operator(depth + 1) for _ in range(r.randint(1, 2))] for k in r.sample(['must', 'mustNot', 'should', 'filter'], r.randint(1, 3))} | r.choice([
				{}, {}, {'minimumShouldMatch': r.choice([0, 1, 2, r.choice(NUMBERS)])}])) if depth < 3 else ('exists', {'path': 'n'})])()
		if r.random() < 0.2:
			q['score'] = {r.choice(['boost', 'constant']): {'value': abs(r.choice(NUMBERS[:17]))}}
		return {kind: q}

	def change(self, q):
		"""At some place of it something is another, gone, or besides."""
		q, places = copy.deepcopy(q), []
		def walk(at):
			for k in (list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()):
				places.append((at, k))
				walk(at[k])
		walk(q)
		for _ in range(self.r.choice([0, 0, 0, 0, 0, 0, 1, 1, 2, 4])):
			if not places:
				break
			at, k = self.r.choice(places)
			with contextlib.suppress(KeyError, IndexError):
				how = self.r.random()
				if how < 0.6:
					at[k] = self.value()
				elif how < 0.7:
					del at[k]
				elif how < 0.85:
					at[k] = [copy.deepcopy(at[k])]
				elif isinstance(at, dict):
					at[self.r.choice(['path', 'query', 'score', 'fuzzy', 'slop', 'value', 'gt', 'must', 'x'])] = self.value()
		return q

	def filter(self, depth=0):
		r = self.r
		kind = r.choice(list(TYPED))
		path = r.choice([p for p in TYPED[kind] if p not in ('title', 'doc.b', 'doc.d', 'doc.e "x"')])
		of = {'number': lambda: r.choice(NUMBERS), 'date': lambda: r.choice(DATES), 'boolean': lambda: r.random() < 0.5, 'token': lambda: r.choice(TEXTS)}[kind]
		def test(deep=0):
			value = of if r.random() < 0.9 else lambda: r.choice([r.choice(TEXTS), r.choice(NUMBERS), True, None])
			return r.choice([value, lambda: {r.choice(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte']): value()}, lambda: {r.choice(['$in', '$nin']): [value(), value()]},
					 lambda: {'$exists': r.choice([True, False, 1])}, lambda: {'$not': test(deep + 1)} if deep < 9 else {}])()
		if depth < 5 and r.random() < 0.3:
			return {r.choice(['$and', '$or', '$nor']): [self.filter(depth + 1) for _ in range(r.randint(1, 2))]}
		return {path if r.random() < 0.95 else 'x': test()}

	def options(self):
		r = self.r
		return self.change({k: v for k, v in {'limit': r.choice([10, 1000, 1.5, r.choice(NUMBERS)]), 'skip': r.choice([0, 1, 100, r.choice(NUMBERS)]), 'project': r.choice([['id'], PATHS[:3], []]),
						      'highlight': {'path': self.path('title')}, 'returnStoredSource': True}.items() if r.random() < 0.2})

	def facets(self):
		r = self.r
		return self.change({r.choice(TEXTS): r.choice([
			lambda: {'type': 'string', 'path': self.path('tag', 'title', 'doc.a'), 'numBuckets': r.choice([1, 5, 1000, r.choice(NUMBERS)])},
			lambda: {'type': 'number', 'path': self.path('n', 'small', 'f', 'price', 'doc.n'), 'boundaries': sorted({*r.sample(NUMBERS, 3), 7}), **r.choice([{}, {'default': 'x'}])},
			lambda: {'type': 'date', 'path': self.path('day', 'at', 'moment', 'doc.d'), 'boundaries': r.choice([['2020-01-01', '2024-01-01', '9999-12-31'], sorted(r.sample(DATES, 2)), [r.choice(TEXTS), r.choice(TEXTS)]])}])()})

	def statement(self):
		"""With its arguments."""
		r, query = self.r, self.change(self.operator())
		kind = r.random()
		if kind < 0.2:
			return 'select steward_search.count(%s, %s)', 'odd', query
		if kind < 0.6:
			return 'select count(score), count(document), count(highlights) from steward_search.query(%s, %s, %s)', 'odd', query, self.options()
		if kind < 0.7:
			return 'select steward_search.explain(%s, %s, %s)', 'odd', query, self.options()
		if kind < 0.85:
			return 'select steward_search.facets(%s, %s, %s)', 'odd', query, self.facets()
		vector = '{%s}' % ','.join(r.choice(['1.5', '0', '3e38', '1e-38', 'nan', 'inf', 'null']) if r.random() < 0.03 else '%f' % r.uniform(-2, 2) for _ in range(4))
		return ("select count(score), count(document) from steward_search.vector(%s, %s::real[], %s)", 'near', vector, self.change({k: v for k, v in {
			'limit': r.choice([1, 10, 50, r.choice(NUMBERS)]), 'numCandidates': r.choice([50, 1000, r.choice(NUMBERS)]), 'filter': self.filter(), 'exact': True}.items() if r.random() < (0.8 if k == 'filter' else 0.2)}))


def said(cursor, statement, *args):
	"""What is wrong with what PostgreSQL says; None: nothing."""
	try:
		cursor.execute(statement, [a if isinstance(a, str) else json.dumps(a) for a in args])
		cursor.fetchall()
		return 'answered', None
	except psycopg2.Error as e:
		if e.pgcode in BOUNDS:
			return 'bounded', None
		if e.pgcode in ANSWERS and PLACES.match(str(e)):
			return 'refused', None
		return 'wrong', '%s %s' % (e.pgcode, str(e).split('CONTEXT')[0])


def test_queries_that_nobody_would_write(world):
	maker, counts, faults, until = Maker(SEED), {}, [], time.monotonic() + SECONDS
	with contextlib.closing(world.cluster.connect(user=READER, password=SECRET)) as c, c.cursor() as cursor:
		c.autocommit = True
		cursor.execute("set statement_timeout = '%s'" % LIMIT)
		cursor.execute('select pg_backend_pid()')
		session = cursor.fetchone()
		while time.monotonic() < until and len(faults) < 20:
			statement, *args = maker.statement()
			how, fault = said(cursor, statement, *args)
			counts[how] = counts.get(how, 0) + 1
			if fault and fault[:30] not in [f[:30] for f, *_ in faults]:
				faults.append((fault, statement, json.dumps(args)))
		cursor.execute('select pg_backend_pid()')
		assert cursor.fetchone() == session
	print('seed %d: %s' % (SEED, ', '.join('%d %s' % (n, how) for how, n in sorted(counts.items()))))
	assert not faults, 'seed %d:\n%s' % (SEED, '\n'.join('  '.join(f) for f in faults))
	assert counts['answered'] > sum(counts.values()) / 10 and counts['refused'] > sum(counts.values()) / 10
	assert world.sql('select count(*) from odd') == [(240,)]
