"""All operators and scores over many rows, held against searching.py, which knows nothing of PostgreSQL. Rows are made again from their numbers wherever
they are needed, so that a million of them need no memory.

  script/test search-oracle

is the long form, of a million rows, which prints figures. Each query is asked for some thousand rows in a block, and for the best of all rows."""
import contextlib, csv, functools, io, itertools, json, os, random, statistics, time

import searching
from test_search_postgres import FIELDS, SYNONYMS, World, counted

import pytest

COUNT = int(os.environ.get('STEWARD_SEARCH_ROWS', 20000))
QUERIES = int(os.environ.get('STEWARD_SEARCH_QUERIES', 100))
BLOCK, BEST, EVERY_WHOLE = 1000, 20, 5
SYLLABLES = 'bok zug mak tov lim dur pax gob nim fuz kob rap wug hob jat vak yod qub lod hax'.split()
# Frequent words first: the ones that synonyms and stems are known of are in all parts.
VOCABULARY = [''.join(s) for s in itertools.product(SYLLABLES, SYLLABLES, SYLLABLES)]
random.Random(3).shuffle(VOCABULARY)
for n, word in enumerate(searching.WORDS):
	VOCABULARY.insert(n * 290 + 20, word)


@functools.lru_cache(20000)  # to make a row takes longer than to look for one in it
def row(n):
	r = random.Random(n)
	return searching.row_of(r, n, lambda k: [VOCABULARY[int(len(VOCABULARY) * r.random() ** 3)] for _ in range(k)])


def fill(cursor):
	for at in range(1, COUNT + 1, 20000):
		text = io.StringIO()
		out = csv.writer(text)
		for n in range(at, min(at + 20000, COUNT + 1)):
			out.writerow(['' if v is None else json.dumps(v) if isinstance(v, dict) else v for v in row(n).values()])
		text.seek(0)
		cursor.copy_expert("copy many from stdin (format csv)", text)


class Counts:
	"""What the service has counted, which is a sample of a large table: near what there is, and what scores go by from then on."""

	def __init__(self, cursor):
		cursor.execute("select f->>'path', f->>'multi', s.word, s.rows, s.words from steward_search.indexes i join steward_search.statistics s using (build), "
			       "lateral (select i.fields->(s.field - 1)) x(f) where i.name = 'many'")
		self.fields = {}
		for path, multi, word, rows, words in cursor.fetchall():
			key = json.dumps({'value': path, 'multi': multi} if multi else path)
			having, all_of = self.fields.setdefault(key, ({}, {}))
			if word:
				having[word] = rows
			else:
				all_of['rows'], all_of['words'] = rows, words
		# Stems by the words that searching.py has for them.
		cursor.execute("select w, (tsvector_to_array(to_tsvector('english', w)))[1] from unnest(%s::text[]) w", (VOCABULARY,))
		key = json.dumps({'value': 'title', 'multi': 'english'})
		having, all_of = self.fields[key]
		self.fields[key] = {searching.STEMS.get(w, w): having[stem] for w, stem in cursor.fetchall() if stem in having}, all_of

	def counted(self, path):
		having, all_of = self.fields[path]
		return all_of['rows'], all_of['words'], searching.collections.Counter(having)

	def near(self, sample):
		"""Held against some thousand rows."""
		for path in ('"title"', '"body"', '"doc.city"'):
			rows, words, having = self.counted(path)
			texts = [searching.words_of(r, json.loads(path)) for r in sample]
			for word in VOCABULARY[:20]:
				share = sum(word in t for t in texts) / len(texts)
				assert abs(having[word] / COUNT - share) < 0.03 + 0.1 * share, (path, word)
			assert abs(words / rows - statistics.mean(sum(w is not None for w in t) for t in texts)) < 0.5


@pytest.fixture(scope='module')
def world(start_place):
	w = World(start_place('--index-wait', '2'), nodes=1 if COUNT > 100000 else 3)
	w.sql('create table many(id int primary key, title text, body varchar(2000), stock int, price numeric, live boolean, tag text, doc jsonb)')
	with contextlib.closing(w.cluster.connect()) as c, c.cursor() as cursor:
		fill(cursor)
		cursor.execute('analyze many')
	w.sql('create table alike(mapping_type text, input text[], synonyms jsonb)')
	for kind, given, same in searching.ALIKE:
		w.sql('insert into alike values (%s, %s, %s)', kind, given, json.dumps(same))
	began = time.monotonic()
	index = w.ask('many', 'many', {'id': {'type': 'number'}, **FIELDS}, synonyms=SYNONYMS).json()['indexID']
	w.reached(index, 'READY', seconds=3600)
	print('%d rows: the index was built in %.0f s' % (COUNT, time.monotonic() - began), flush=True)
	counted(w, 'many', 600)
	return w


def whole_table(query):
	"""Whether it looks at each row, for words that are nearly right in any letter."""
	return any('fuzzy' in q and not q['fuzzy'].get('prefixLength') for q in parts(query))


def parts(query):
	(name, q), = query.items()
	return [q] + [x for k in ('must', 'mustNot', 'should', 'filter') for one in (q.get(k, []) if name == 'compound' else []) for x in parts(one)]


def same(have, rows, query):
	want = {r['id']: score for r in rows for hit, score in [searching.evaluate(query, r)] if hit}
	assert set(have) == set(want), (query, sorted(set(have) ^ set(want))[:5])
	for n, score in want.items():
		assert abs(have[n] - score) < 1e-5 * max(1, score), (query, n, have[n], score)
	return len(want)


def test_all_operators(world, monkeypatch):
	r, found, kinds, took = random.Random(13), 0, set(), []
	monkeypatch.setattr(searching, 'WORDS', VOCABULARY)
	with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
		def ask(query, limit):
			cursor.execute("select (document->>'id')::int, score from steward_search.query('many', %s, %s)",
				       (json.dumps(query), json.dumps({'limit': limit, 'project': ['id']})))
			return cursor.fetchall()
		# English knows those as one word that the implementation in Python does, and no others.
		cursor.execute("select array_agg(w order by w) from unnest(%s::text[]) w group by to_tsvector('english', w) having count(*) > 1 or to_tsvector('english', w) = ''", (VOCABULARY,))
		assert cursor.fetchall() == [(sorted([s, w]),) for w, s in searching.STEMS.items()]
		counts = Counts(cursor)
		counts.near([row(r.randint(1, COUNT)) for _ in range(3000)])
		monkeypatch.setattr(searching, 'counted', counts.counted)
		for n in range(QUERIES):
			query = searching.some_query(r)
			first = r.randint(1, max(1, COUNT - BLOCK))
			block = {'range': {'path': 'id', 'gte': first, 'lt': first + BLOCK}}
			rows = [row(i) for i in range(first, min(first + BLOCK, COUNT + 1))]
			found += same(dict(ask({'compound': {'must': [query], 'filter': [block]}}, 10000)), rows, query) > 0
			kinds |= set(query)
			if n % EVERY_WHOLE or (COUNT > 100000 and whole_table(query)):
				continue
			began = time.monotonic()
			best = ask(query, BEST)
			took.append(time.monotonic() - began)
			assert [s for _, s in best] == sorted((s for _, s in best), reverse=True)
			same(dict(best), [row(i) for i, _ in best], query)
	print('%d queries, %d with rows; the best %d of all: median %.0f ms, longest %.0f ms' % (
		QUERIES, found, BEST, 1000 * statistics.median(took), 1000 * max(took)))
	assert found > QUERIES / 3 and kinds == set(searching.OPERATORS)


def test_times(world):
	"""Words that some rows have, beside a scan by the same expression. Only the long form says anything: a scan of few rows is quick."""
	expression = "to_tsvector('simple', left(body::text, 100000))"
	query, scan = [], []
	with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
		for word in VOCABULARY[2000:8000:1000]:
			began = time.monotonic()
			cursor.execute("select document from steward_search.query('many', %s)", (json.dumps({'text': {'query': word, 'path': 'body'}}),))
			have = cursor.fetchall()
			query.append(time.monotonic() - began)
			cursor.execute('set enable_bitmapscan = off')
			began = time.monotonic()
			cursor.execute('select id from many where %s @@ %%s::tsquery order by ts_rank(%s, %%s::tsquery) desc limit 10' % (expression, expression), (word, word))
			assert len(cursor.fetchall()) == len(have)
			scan.append(time.monotonic() - began)
			cursor.execute('reset enable_bitmapscan')
	times = statistics.median(scan) / statistics.median(query)
	print('a word: %.1f ms, a scan: %.0f ms: %.0f times' % (1000 * statistics.median(query), 1000 * statistics.median(scan), times))
	assert COUNT < 1000000 or times >= 50
