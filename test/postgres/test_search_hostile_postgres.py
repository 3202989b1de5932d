"""Search against tenants who mean harm: patterns and texts that explode, texts of hundreds of megabytes, fields without number. Nobody holds a server for
longer than a statement may take, and nothing that an index searches keeps its owner from writing."""
import contextlib, json, time

import psycopg2, psycopg2.errors, pytest

from client import refused
from test_search_postgres import READER, SECRET, World

LIMIT = 2  # seconds of a statement: what explodes has no end within any limit, and each second of it is a second of the suite


@pytest.fixture(scope='module')
def world(start_place):
	w = World(start_place('--index-wait', '30'))
	w.sql('create table lure(id int, tag text, body text)')
	w.sql("insert into lure select n, repeat('a', 400 + n % 100) || 'c', repeat('a', 2000) || ' ' || repeat('ab ', 300) from generate_series(1, 3000) n")
	w.built('lure', 'lure', {'tag': [{'type': 'token'}, {'type': 'autocomplete'}], 'body': [{'type': 'string'}, {'type': 'autocomplete'}]})
	return w


def bounded(world, index, query):
	"""It has an answer, is refused, or ends at the limit; never later, and never with its server."""
	with contextlib.closing(world.cluster.connect(user=READER, password=SECRET)) as c, c.cursor() as cursor:
		cursor.execute('select pg_backend_pid()')
		before = cursor.fetchone()
		cursor.execute("set statement_timeout = '%ds'" % LIMIT)
		began, ended = time.monotonic(), None
		try:
			cursor.execute('select steward_search.count(%s, %s)', (index, json.dumps(query)))
		except (psycopg2.errors.QueryCanceled, psycopg2.errors.InvalidParameterValue, psycopg2.errors.StatementTooComplex) as e:
			ended = e
		except psycopg2.errors.InvalidRegularExpression as e:  # so it says when it is cancelled while a pattern is made ready
			assert 'operation cancelled' in str(e), query
			ended = e
		assert time.monotonic() - began < LIMIT + 60, query  # it is cancelled; how soon is the machine's affair
		c.rollback()
		cursor.execute('select pg_backend_pid()')
		assert cursor.fetchone() == before
		return ended


@pytest.mark.parametrize('pattern', ['(a*)*b', '(a|aa)+b', '((a+)+)+b', '(a?){250}a{250}b', '(a|a?)+b', '(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x', '(((a{1,200}){1,200}){1,200}){1,200}',
				     '(' * 200 + 'a' + ')*' * 200, '[a-z]' * 90, '(a{1,255}){1,255}', 'a{0,255}' * 50, '|'.join('a' * n for n in range(1, 30)) + 'b'])
def test_patterns_that_explode(world, pattern):
	bounded(world, 'lure', {'regex': {'path': 'tag', 'query': pattern}})
	bounded(world, 'lure', {'regex': {'path': 'body', 'query': pattern, 'allowAnalyzedField': True}})


@pytest.mark.parametrize('pattern', ['*a' * 100 + 'b', '?' * 499 + '*', '*' * 500, '*?' * 200 + 'b', 'a*' * 200 + 'b'])
def test_wildcards_that_explode(world, pattern):
	bounded(world, 'lure', {'wildcard': {'path': 'tag', 'query': pattern}})
	bounded(world, 'lure', {'wildcard': {'path': 'body', 'query': pattern, 'allowAnalyzedField': True}})


def test_queries_that_explode(world):
	"""Many words, many texts, comments without an end, all kinds of nearness."""
	words = ' '.join('a%d' % n for n in range(1500))
	text = lambda **q: {'text': {'path': 'body', **q}}
	for query in (text(query=['<!--' * 1900] * 20), text(query=[words] * 20), text(query=words, fuzzy={'maxEdits': 2}), text(query='a' * 199, fuzzy={}),
		      {'phrase': {'path': 'body', 'query': 'ab ' * 200, 'slop': 1000}}, {'phrase': {'path': 'body', 'query': 'ab ' * 2000}},
		      {'moreLikeThis': {'like': [{'body': 'ab ' * 6000}] * 10}}, {'autocomplete': {'path': 'body', 'query': 'ab ' * 2000, 'tokenOrder': 'sequential'}},
		      {'autocomplete': {'path': ['tag', 'body'], 'query': ['aa aa aa'] * 100}}, {'in': {'path': 'tag', 'value': ['a' * 7000] * 25}},
		      {'compound': {'should': [{'compound': {'should': [text(query='ab')] * 100}}] * 100}},
		      {'queryString': {'defaultPath': 'body', 'query': '(' * 1000 + 'ab'}}, {'queryString': {'defaultPath': 'body', 'query': 'NOT ' * 190 + 'ab'}}):
		bounded(world, 'lure', query)
	assert world.count('lure', text(query='ab')) == 3000


def test_texts_of_hundreds_of_megabytes(world):
	"""They are written as ever, and found by what they begin with. One is just longer than the 256 MB that lower() can take."""
	world.sql('create table vast(id int, body text, tag text, doc jsonb)')
	world.built('vast', 'vast', {'body': [{'type': 'string'}, {'type': 'autocomplete'}], 'tag': [{'type': 'token'}, {'type': 'token', 'normalizer': 'lowercase'}][1:],
				     'doc': [{'type': 'string'}, {'type': 'document', 'fields': {'a': [{'type': 'string'}, {'type': 'autocomplete'}]}}]})
	world.sql("insert into vast select 1, b, b, null from (select 'Amber ' || repeat('cedar ', 45000000) b) s")
	world.sql("insert into vast select 2, null, null, jsonb_build_object('a', repeat('cedar ', 15000000))")
	assert world.sql('select length(body), length(tag) from vast where id = 1') == [(270000006,) * 2]
	assert world.count('vast', {'text': {'query': 'amber', 'path': 'body'}}) == 1
	assert world.count('vast', {'autocomplete': {'query': 'amb ced', 'path': 'body'}}) == 1
	assert world.count('vast', {'text': {'query': 'cedar', 'path': 'doc'}}) == 0


def test_fields_without_number(world):
	"""A definition of ten thousand, a table of sixteen hundred columns, a document with a hundred thousand names."""
	fields = {'f%d' % n: {'type': 'string'} for n in range(10000)}
	refused(world.ask('wide', 'lure', fields), 400, 'VALIDATION_ERROR', 'definition.mappings.fields.f32')
	world.sql('create table wide(%s)' % ', '.join('c%d int' % n for n in range(1600)))
	refused(world.ask('wide', 'wide'), 400, 'VALIDATION_ERROR', 'definition.mappings.dynamic')
	world.sql('create table deep(id int, doc jsonb)')
	world.built('deep', 'deep', {'doc': {'type': 'string'}})
	world.sql("insert into deep select 1, jsonb_object_agg('n' || n, 'amber') from generate_series(1, 10000) n")
	world.sql("insert into deep select 2, jsonb_object_agg('n' || n, 'amber') from generate_series(1, 100000) n")
	world.sql("insert into deep values (3, %s)", '{"a":' * 2000 + '"amber"' + '}' * 2000)
	assert {d['id'] for d, _, _ in world.find('deep', {'text': {'query': 'amber', 'path': 'doc'}}, {'project': ['id']})} == {1, 3}


@pytest.mark.parametrize('text', ['<!--', '@1a', 'a_', 'x@1'])
def test_texts_that_a_parser_explodes_on(world, text):
	"""PostgreSQL's needs minutes for one of them, in which nothing cancels it. They are written and searched as others are."""
	world.sql('create table if not exists thorny(id int, body text, doc jsonb)')
	if world.sql("select count(*) from steward_search.indexes where name = 'thorny'") == [(0,)]:
		world.built('thorny', 'thorny', {'body': {'type': 'string', 'multi': {'own': {'type': 'string', 'analyzer': 'own'}}}, 'doc': [{'type': 'string'}, {
			'type': 'document', 'fields': {'a': {'type': 'string'}}}]}, analyzers=[{'name': 'own', 'tokenizer': {'type': 'standard'}}])
	world.sql('delete from thorny')
	limit = "set statement_timeout = '100s'; "  # far more than it takes, and far less than it would
	world.sql(limit + "insert into thorny select 1, 'amber ' || left(t, 99000) || ' basin', jsonb_build_object('a', 'cedar ' || left(t, 99000), 'b', 'delta') from repeat('%s', 50000) t" % text)
	for query in ({'text': {'query': 'amber', 'path': 'body'}}, {'phrase': {'query': 'cedar', 'path': ['doc', 'doc.a']}}, {'text': {'query': 'delta', 'path': 'doc'}},
		      {'text': {'query': 'amber', 'path': {'value': 'body', 'multi': 'own'}}}):
		assert [d['id'] for d, _, _ in world.find('thorny', query)] == [1], query
	assert world.find('thorny', {'text': {'query': 'amber', 'path': 'body'}}, {'highlight': {'path': 'body'}})[0][2]
	bounded(world, 'thorny', {'text': {'query': [(text * 8000)[:7990]] * 20, 'path': 'body'}})
	bounded(world, 'thorny', {'moreLikeThis': {'like': {'body': (text * 100000)[:190000]}}})


def test_words_without_a_blank(world):
	"""Only where 255 characters have none do "@" and "_" count as one: shorter addresses stay whole."""
	world.sql('create table strung(id int, body text, doc jsonb)')
	world.built('strung', 'strung', {'body': {'type': 'string'}, 'doc': {'type': 'string'}})
	for n, word in enumerate(('a_b@example.com', 'y' * 400, 'z' * 250 + '_b@tail')):
		world.sql('insert into strung values (%s, %s, %s)', n, 'amber\t' + word + ' basin', json.dumps(['amber ' + word, {'z_' * 300: 'b"\\\n_' * 200}, 1e300]))
		for path in ('body', 'doc'):
			assert [d['id'] for d, _, _ in world.find('strung', {'phrase': {'query': 'amber ' + word, 'path': path}})] == [n], (word, path)
	assert [d['id'] for d, _, _ in world.find('strung', {'text': {'query': 'tail', 'path': ['body', 'doc']}})] == [2]
	assert world.count('strung', {'text': {'query': 'example', 'path': 'body'}}) == 0
