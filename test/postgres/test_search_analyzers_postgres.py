"""Analyzers of a definition's own on real databases: held against an implementation of its own, word by word and place by place; what
queries find by them; texts that would be too much; what is refused."""
import contextlib, json, random

import psycopg2, psycopg2.errors, pytest

import analysis
from client import ok, refused, until
from test_search_postgres import World, engine

STANDARD = {'type': 'standard'}
ANALYZERS = [
	{'name': 'html', 'charFilters': [{'type': 'htmlStrip'}], 'tokenizer': STANDARD, 'tokenFilters': [{'type': 'lowercase'}, {'type': 'porterStemming'}]},
	{'name': 'folded', 'tokenizer': STANDARD, 'tokenFilters': [{'type': 'icuFolding'}, {'type': 'stopword', 'tokens': ['the', 'of']}]},
	{'name': 'prefixes', 'tokenizer': {'type': 'keyword'}, 'tokenFilters': [{'type': 'lowercase'}, {'type': 'edgeGram', 'minGram': 2, 'maxGram': 10}]},
	{'name': 'whole', 'tokenizer': {'type': 'keyword'}, 'tokenFilters': [{'type': 'lowercase'}]},
	{'name': 'inside', 'tokenizer': {'type': 'nGram', 'minGram': 3, 'maxGram': 3}, 'tokenFilters': [{'type': 'lowercase'}]},
	{'name': 'german', 'tokenizer': STANDARD, 'tokenFilters': [{'type': 'lowercase'}, {'type': 'snowballStemming', 'stemmerName': 'german'}]},
	{'name': 'urls', 'tokenizer': {'type': 'uaxUrlEmail'}, 'tokenFilters': [{'type': 'lowercase'}]}]


@pytest.fixture(scope='module')
def world(start_place):
	return World(start_place('--index-wait', '60'))


def named(analyzer, **more):
	return {'type': 'string', 'analyzer': analyzer, **more}


def found(world, index, query, **options):
	return {d['id'] for d, _, _ in world.find(index, query, {'limit': 1000, **options})}


def test_words_and_places(world):
	"""Some hundred analyzers, and texts with everything in them."""
	r = random.Random(5)
	world.sql('create table pieces(id int, word text, doc jsonb)')
	some = [{'name': 'a%d' % n, **analysis.some_analyzer(r)} for n in range(120)]
	with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
		for at in range(0, len(some), 30):
			part = some[at:at + 30]
			world.built('pieces%d' % at, 'pieces', {'word': {'type': 'string', 'multi': {a['name']: named(a['name']) for a in part}}}, analyzers=part)
			(fields,), = world.sql('select fields from steward_search.indexes where name = %s', 'pieces%d' % at)
			for a in part:
				id, = {f['language'] for f in fields if f.get('multi') == a['name']}
				texts = [analysis.some_text(r) for _ in range(40)]
				cursor.execute('select (select json_object_agg(lexeme, positions) from unnest(steward_search.analyzed(%s, t)) u(lexeme, positions, weights)) '
					       'from unnest(%s::text[]) with ordinality x(t, n) order by n', (id, texts))
				for text, (have,) in zip(texts, cursor.fetchall()):
					assert (have or {}) == analysis.analyzed(a, text), (a, text)


def test_what_queries_find(world):
	world.sql('create table own(id int, body text, title text, doc jsonb)')
	for row in ((1, '<p>Running <b>sho</b>es &amp; more</p>', 'The Café of Zoë', {'t': ['Schöne Häuser', 'am Fjord'], 'u': 'See https://a.example/x?y=1 or Me@b.example'}),
		    (2, '<script>running()</script>calm', 'Cafeteria', {'t': 'Haus'}), (3, None, 'the of', {})):
		world.sql('insert into own values (%s, %s, %s, %s)', *row[:3], json.dumps(row[3]))
	world.built('own', 'own', {
		'body': named('html'), 'title': named('folded', multi={'begins': named('prefixes', searchAnalyzer='whole'), 'inside': named('inside'), 'asis': named('lucene.keyword'),
			    'spaced': named('lucene.whitespace'), 'letters': named('lucene.simple')}),
		'doc': {'type': 'document', 'fields': {'t': named('german'), 'u': named('urls')}}}, analyzers=ANALYZERS, storedSource={'include': ['id', 'title']})
	text = lambda words, path, **more: {'text': {'query': words, 'path': path, **more}}
	multi = lambda name: {'value': 'title', 'multi': name}
	for query, want in (
		(text('run', 'body'), {1}), (text('shoe', 'body'), {1}), (text('p', 'body'), set()), (text('cafe', 'title'), {1}), (text('CAFÉ zoe', 'title', matchCriteria='all'), {1}),
		(text('the', 'title'), set()), (text('caf', multi('begins')), {2}), (text('the c', multi('begins')), {1}), (text('ete', multi('inside')), {2}),
		(text('Cafeteria', multi('asis')), {2}), (text('cafeteria', multi('asis')), set()), (text('of', multi('spaced')), {1, 3}), (text('zo', multi('letters')), set()),
		(text('häusern', 'doc.t'), {1, 2}), (text('Fjorden', 'doc.t'), {1}), (text('https://a.example/x?y=1', 'doc.u'), {1}), (text('me@b.example', 'doc.u'), {1}),
		({'phrase': {'query': 'cafe of zoe', 'path': 'title'}}, {1}), ({'phrase': {'query': 'zoe cafe', 'path': 'title'}}, set()),
		({'phrase': {'query': 'Häuser am', 'path': 'doc.t'}}, set()), (text('kafe', 'title', fuzzy={'maxEdits': 1}), {1}),
		({'moreLikeThis': {'like': {'doc': {'t': 'schöne'}}}}, {1})):
		assert found(world, 'own', query) == want, query
	(document, score, marks), = world.find('own', text('run shoes', 'body'), {'highlight': {'path': 'body'}, 'returnStoredSource': True})
	assert document == {'id': 1, 'title': 'The Café of Zoë'} and score > 0
	assert {'type': 'hit', 'value': 'Running'} in marks[0]['texts'] and ''.join(t['value'] for t in marks[0]['texts']).startswith('<p>Running <b>')
	name, = world.sql("select 'steward_search_' || build from steward_search.indexes where name = 'own'")[0]
	with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
		cursor.execute('set enable_seqscan = off')
		cursor.execute('select steward_search.explain(%s, %s)', ('own', json.dumps(text('cafe', 'title'))))
		assert name in json.dumps(cursor.fetchone()[0])


def test_stored_source(world):
	world.sql('create table kept(id int, a text, b text)')
	world.sql("insert into kept values (1, 'amber', 'cedar')")
	world.built('kept', 'kept', {'a': {'type': 'string'}}, storedSource={'exclude': ['b']})
	world.built('all', 'kept', {'a': {'type': 'string'}})
	query = {'text': {'query': 'amber', 'path': 'a'}}
	assert world.find('kept', query)[0][0] == {'id': 1, 'a': 'amber', 'b': 'cedar'}
	assert world.find('kept', query, {'returnStoredSource': True})[0][0] == {'id': 1, 'a': 'amber'}
	for index, options, place in (('all', {'returnStoredSource': True}, 'options.returnStoredSource'), ('kept', {'returnStoredSource': 1}, 'options.returnStoredSource'),
				      ('kept', {'returnStoredSource': True, 'project': ['a']}, 'options.project')):
		with pytest.raises(psycopg2.errors.InvalidParameterValue, match=place + ':'):
			world.find(index, query, options)
	refused(world.ask('x', 'kept', {'a': {'type': 'string'}}, storedSource={'include': ['id', 'x']}), 400, 'VALIDATION_ERROR', 'definition.storedSource.include[1]')


def test_refusals(world):
	world.sql('create table plain(word text)')
	for pattern in ('(', 'a)(b', '*a', '[b-a]', 'x{3,2}', '(((((((a{1,200}){1,200}){1,200}){1,200}){1,200})))'):
		refused(world.ask('bad', 'plain', {'word': named('x')}, analyzers=[{'name': 'x', 'tokenizer': {'type': 'regexSplit', 'pattern': pattern}}]), 400, 'VALIDATION_ERROR',
			'definition.analyzers[0].tokenizer.pattern')


def test_texts_that_are_too_much(world):
	"""They can be written, and are searched as far as it goes."""
	own = [{'name': 'grams', 'tokenizer': {'type': 'nGram', 'minGram': 1, 'maxGram': 50}}, {'name': 'edges', 'tokenizer': {'type': 'whitespace'}, 'tokenFilters': [
		{'type': 'nGram', 'minGram': 1, 'maxGram': 50, 'termNotInBounds': 'include'}]}, {'name': 'html', 'charFilters': [{'type': 'htmlStrip'}], 'tokenizer': {'type': 'keyword'}},
	       {'name': 'grown', 'charFilters': [{'type': 'mapping', 'mappings': {'x': 'word ' * 50}}] * 3, 'tokenizer': STANDARD, 'tokenFilters': [
		       {'type': 'shingle', 'minShingleSize': 2, 'maxShingleSize': 10}]},
	       {'name': 'exploding', 'tokenizer': {'type': 'regexCaptureGroup', 'pattern': '((x*)*(x*)*)*y', 'group': 2}, 'tokenFilters': [
		       {'type': 'regex', 'pattern': '(x|xx|xxx)*(x+x+)+y', 'replacement': '', 'matches': 'all'}]}]
	world.sql('create table much(id int, word text, doc jsonb)')
	world.built('much', 'much', {'word': {'type': 'string', 'multi': {a['name']: named(a['name']) for a in own}}, 'doc': {'type': 'document', 'fields': {
		'a': {'type': 'string', 'multi': {'edges': named('edges'), 'grown': named('grown')}}}}}, analyzers=own)
	for n, text in enumerate(("repeat('x', 1000000)", "repeat('<!--', 100000)", "repeat(chr(20013) || ' ', 1000000)",
				  "(select string_agg(md5(n::text), ' ') from generate_series(1, 20000) n)", "repeat('xy', 50000)")):
		with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
			cursor.execute("set statement_timeout = '600s'")  # what took seconds a text would take hours if it were quadratic
			cursor.execute('insert into much select %s, %s' % (n, text))
			cursor.execute("insert into much select %d, null, jsonb_build_object('a', to_jsonb(string_to_array(left(%s, 80000), ' ')))" % (n, text))
	assert world.count('much', {'text': {'query': 'x', 'path': {'value': 'word', 'multi': 'grams'}}}) == 2
	assert world.sql('select count(*) from much') == [(10,)]


def test_who_may_change_what_they_mean(world):
	"""Nobody; and a row is read by who writes rows to a table, whatever their session says of row security."""
	world.sql('create table guarded(word text)')
	world.built('guarded', 'guarded', {'word': named('lucene.whitespace')})
	for statement in ("update steward_search.analyses set how = '{}'", 'delete from steward_search.analyses', "insert into steward_search.analyses values ('#', '{}')"):
		with pytest.raises((psycopg2.errors.InsufficientPrivilege, AssertionError)):
			before = world.sql('select count(*), min(how::text) from steward_search.analyses')
			world.sql(statement)
			assert world.sql('select count(*), min(how::text) from steward_search.analyses') != before
	with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
		cursor.execute("set row_security = off; set search_path = pg_temp, public; insert into public.guarded values ('Amber Road')")
	assert world.count('guarded', {'text': {'query': 'Amber', 'path': 'word'}}) == 1
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		cursor.execute("select count(*) from pg_ts_dict where dictnamespace = 'steward_search'::regnamespace and dictname ~ '^stem_'")
		assert cursor.fetchone()[0] > 20


def test_a_transaction_that_is_older_than_the_index(world):
	"""It does not see what the steps are, and writes nothing rather than other words."""
	world.sql('create table older(word text)')
	with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
		cursor.execute('begin isolation level repeatable read')
		cursor.execute('select 1')
		index = world.ask('older', 'older', {'word': named('own')}, analyzers=[{'name': 'own', 'tokenizer': {'type': 'keyword'}, 'tokenFilters': [{'type': 'reverse'}]}])
		until(lambda: world.sql("select 1 from pg_index where indrelid = 'older'::regclass and indisready"), 60)
		with pytest.raises(psycopg2.errors.SerializationFailure):
			cursor.execute("insert into older values ('amber')")
		cursor.execute('rollback')
	world.reached(ok(index, 201)['indexID'], 'READY')
	world.sql("insert into older values ('amber')")
	assert world.count('older', {'text': {'query': 'amber', 'path': 'word'}}) == 1
