"""Search indexes on real databases: built, changed, dropped and built again; what queries find, held against an implementation of its
own; readers' rights, hostile owners, definitions and texts."""
import concurrent.futures, contextlib, json, random

import psycopg2, psycopg2.errors, pytest

import searching
from client import cli, ok, refused, until
from databases import USER, allow, shape

FIELDS = {
	'title': [{'type': 'string', 'multi': {'english': {'type': 'string', 'analyzer': 'lucene.english'}}}, {'type': 'autocomplete', 'minGrams': 2}], 'body': {'type': 'string'}, 'stock': {'type': 'number'},
	'price': {'type': 'number'}, 'live': {'type': 'boolean'}, 'tag': {'type': 'token'},
	'doc': {'type': 'document', 'fields': {
		'city': {'type': 'string'}, 'tags': [{'type': 'token'}, {'type': 'autocomplete'}], 'n': {'type': 'number'},
		'deep': {'type': 'document', 'fields': {'word': {'type': 'string'}}}}}}
SYNONYMS = [{'name': 'alike', 'analyzer': 'lucene.standard', 'source': {'collection': 'alike'}}]
READER, SECRET = 'reader', 'another horse 5 battery'


class World:
	def __init__(self, place, nodes=3):
		self.place = place
		allow(place.server)
		ok(place.server.post('/groups/%s/databaseUsers' % place.server.group, json={
			'username': READER, 'password': SECRET, 'databaseName': 'admin', 'groupId': place.server.group,
			'roles': [{'roleName': 'readAnyDatabase', 'databaseName': 'admin'}]}), 201)
		self.cluster = place.cluster('shop', **shape(nodes)).settled()
		self.base = self.cluster.path + '/search/indexes'

	@property
	def server(self):
		return self.place.server

	def sql(self, sql, *args, **who):
		c = self.cluster.connect(**who)
		try:
			cursor = c.cursor()
			cursor.execute(sql, args or None)
			return cursor.fetchall() if cursor.description else None
		finally:
			c.close()

	def ask(self, name, table, fields=None, **more):
		definition = {'mappings': {'fields': fields} if fields else {'dynamic': True}, **more}
		return self.server.post(self.base, json={'name': name, 'database': 'postgres', 'collectionName': table, 'type': 'search',
							 'definition': definition})

	def get(self, index):
		return ok(self.server.get('%s/%s' % (self.base, index)))

	def reached(self, index, *states, seconds=240):
		def look():
			document = self.get(index)
			assert document['status'] in states or document['status'] != 'FAILED', document
			return document if document['status'] in states else None
		return until(look, seconds, 'the state %s of %s' % (states, index), longest=0.5)

	def built(self, name, table, fields=None, **more):
		index = ok(self.ask(name, table, fields, **more), 201)['indexID']
		self.reached(index, 'READY')
		return index

	def find(self, index, query, options=None, **who):
		return self.sql('select document, score, highlights from steward_search.query(%s, %s, %s)', index, json.dumps(query),
				json.dumps(options or {'limit': 10000}), **who)

	def count(self, index, query, **who):
		return self.sql('select steward_search.count(%s, %s)', index, json.dumps(query), **who)[0][0]

	def indexes(self):
		return {r[0] for r in self.sql("select relname from pg_class where relname ~ '^steward_(search|build)_' and relkind = 'i'")}


@pytest.fixture(scope='module')
def world(start_place):
	w = World(start_place('--index-wait', '2'))
	w.sql('create table articles(id int primary key, title text, body varchar(2000), stock int, price numeric, live boolean, tag text, doc jsonb)')
	for at in range(0, len(ROWS), 500):
		w.sql('insert into articles select * from jsonb_populate_recordset(null::articles, %s)', json.dumps(ROWS[at:at + 500]))
	w.sql('create table alike(mapping_type text, input text[], synonyms jsonb)')
	for kind, given, same in searching.ALIKE:
		w.sql('insert into alike values (%s, %s, %s)', kind, given, json.dumps(same))
	w.articles = w.built('main', 'articles', FIELDS, synonyms=SYNONYMS)
	return w


ROWS = searching.rows(1500)
TEXT = {'text': {'query': 'amber', 'path': 'title'}}


def counted(world, name, seconds=120):
	"""Once the service has counted the words of an index."""
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		def look():
			cursor.execute('select c.at from steward_search.counted c join steward_search.indexes i using (build) where i.name = %s', (name,))
			return cursor.fetchone()
		return until(look, seconds, 'the count of ' + name)[0]


def test_operators_find_what_they_should(world):
	"""Each query by itself, and in all kinds of compounds: the same rows as an implementation that knows nothing of PostgreSQL, and
	the same scores."""
	r = random.Random(11)
	searching.EVERY[:] = ROWS
	counted(world, 'main')
	c = world.cluster.connect()
	cursor, found, kinds = c.cursor(), 0, set()
	for _ in range(400):
		query = searching.some_query(r)
		cursor.execute('select (document->>%s)::int, score from steward_search.query(%s, %s, %s)',
			       ('id', 'main', json.dumps(query), json.dumps({'limit': 10000, 'project': ['id']})))
		have = dict(cursor.fetchall())
		want = {row['id']: score for row in ROWS for hit, score in [searching.evaluate(query, row)] if hit}
		assert set(have) == set(want), (query, sorted(set(have) ^ set(want))[:5])
		for n, score in want.items():
			assert abs(have[n] - score) < 1e-5 * max(1, score), (query, n, have[n], score)
		found += bool(want)
		kinds |= set(query)
	c.close()
	assert found > 150 and kinds == set(searching.OPERATORS)


def test_what_is_shown(world):
	two = world.find('main', TEXT, {'limit': 2, 'project': ['id', 'title'], 'highlight': {'path': 'title'}})
	assert len(two) == 2 and two[0][1] >= two[1][1] > 0
	document, _, highlights = two[0]
	assert set(document) == {'id', 'title'} and highlights[0]['path'] == 'title'
	assert {'type': 'hit', 'value': 'amber'} in highlights[0]['texts']
	assert ''.join(t['value'] for t in highlights[0]['texts']) == document['title']
	rest = world.find('main', TEXT, {'limit': 10000, 'skip': 2})
	assert len(rest) == world.count('articles.main', TEXT) - 2
	assert set(rest[0][0]) == {'id', 'title', 'body', 'stock', 'price', 'live', 'tag', 'doc'}
	assert rest[0][0] == next(row for row in ROWS if row['id'] == rest[0][0]['id'])


def tried(world, *words, fails=False):
	return cli('search-indexes', 'try', 'shop', *words, '--data', world.server.data_dir, check=not fails, env={'PSQLRC': '/dev/null'})


def test_from_the_command_line(world):
	"""Words, and queries as they are, are looked for by a user that can only read, who is gone afterwards."""
	said = tried(world, 'main', 'amber', '--path', 'title', '--limit', '2').stdout
	assert '(2 rows)' in said and said.count('amber') >= 2
	hostile = "amber'; drop table articles; -- \\' \\"
	assert '(3 rows)' in tried(world, 'articles.main', hostile, '--path', 'title', '--limit', '3').stdout
	whole = {'compound': {'must': [{'equals': {'path': 'stock', 'value': 7}}]}}
	want = sum(row['stock'] == 7 for row in ROWS)
	assert '(%d row' % want in tried(world, 'main', json.dumps(whole), '--limit', '1000').stdout
	assert 'steward_search.query(' in tried(world, 'main', 'amber', '--print').stdout
	assert 'text.path' in tried(world, 'main', 'amber', '--path', 'stock', fails=True).stderr
	assert 'no search index "other"' in tried(world, 'other', 'amber', fails=True).stderr
	assert tried(world, 'main', fails=True).returncode == 2
	users = ok(world.server.get('/groups/%s/databaseUsers' % world.server.group))['results']
	assert not [u for u in users if u['username'].startswith('connect-')]


def test_scores_follow_the_table(world):
	"""Words are counted anew when the table has changed; who sees some rows alone, or not the column, learns nothing of the others."""
	world.sql('create table scored(id int, word text, other text)')
	world.sql("insert into scored select n, case when n <= 3 then 'rare' else 'common' end || ' word' from generate_series(1, 300) n")
	world.built('scored', 'scored', {'word': {'type': 'string'}})
	first = counted(world, 'scored')
	score = lambda word, **who: world.find('scored', {'text': {'query': word, 'path': 'word'}}, {'limit': 1}, **who)[0][1]
	before = score('rare')
	assert before > 20 * score('common')
	assert score('word') < score('common') < before
	world.sql("insert into scored select n, 'rare word' from generate_series(1, 600) n")
	until(lambda: counted(world, 'scored') != first, 120, 'another count')
	assert score('rare') < before / 5
	reader = dict(user=READER, password=SECRET)
	known = "select count(*) from steward_search.statistics s join steward_search.indexes i using (build) where i.name = 'scored'"
	assert world.sql(known, **reader)[0][0] == 4 and score('rare', **reader) == score('rare')
	world.sql('alter table scored enable row level security')
	world.sql('create policy few on scored using (id <= 3)')
	assert world.sql(known, **reader) == [(0,)]
	assert score('rare', **reader) == score('word', **reader)
	for table in ('statistics', 'counted'):
		for who in ({}, reader):
			with pytest.raises(psycopg2.errors.InsufficientPrivilege):
				world.sql('delete from steward_search.%s' % table, **who)


def test_words_are_not_counted_where_the_planner_would_run_code(world):
	"""An immutable function with constants is evaluated by whoever plans a statement over the table: never the service, whose rights are all."""
	world.sql('create table planned(id int, word text)')
	world.sql("insert into planned select n, 'some word' from generate_series(1, 300) n")
	world.sql('create table ran(who name)')
	world.sql('grant insert on ran to public')
	world.sql("create function public.ran_by() returns void language sql as 'insert into public.ran values (current_user)'")
	world.sql('create function public.ran_in(int) returns int language plpgsql immutable as $$ begin perform public.ran_by(); return $1; end $$')
	count = "select steward_search.recount(build) from steward_search.indexes where name = 'planned'"
	for s in 'create index planned_i on planned ((id + public.ran_in(1)))', 'create statistics planned_s on id, (id + public.ran_in(2)) from planned':
		world.sql(s)
		if 'index' in s:
			world.built('planned', 'planned', {'word': {'type': 'string'}})
		with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
			cursor.execute(count)
			assert cursor.fetchone() == (False,)
		world.sql('drop index if exists planned_i')
	assert world.find('planned', {'text': {'query': 'word', 'path': 'word'}}, {'limit': 1})[0][1] > 0, 'each word counts the same'
	assert world.sql("select count(*) > 0, count(*) filter (where who = 'steward_engine') from ran") == [(True, 0)]


def test_facets(world):
	query = {'range': {'path': 'stock', 'lt': 100}}
	some = [row for row in ROWS if row['stock'] < 100]
	facets = {'tag': {'type': 'string', 'path': 'tag', 'numBuckets': 5}, 'tags': {'type': 'string', 'path': 'doc.tags', 'numBuckets': 100},
		  'price': {'type': 'number', 'path': 'price', 'boundaries': [0, 10, 30], 'default': 'other'}}
	(have,), = world.sql('select steward_search.facets(%s, %s, %s)', 'main', json.dumps(query), json.dumps(facets))
	assert have['count'] == len(some)
	counts = {}
	for row in some:
		if row['tag']:
			counts[row['tag']] = counts.get(row['tag'], 0) + 1
	best = sorted(counts.items(), key=lambda x: (-x[1], x[0]))[:5]
	assert [(b['_id'], b['count']) for b in have['facet']['tag']['buckets']] == best
	assert {b['_id']: b['count'] for b in have['facet']['tags']['buckets']}['amber'] == sum('amber' in row['doc']['tags'] for row in some)
	assert [b['count'] for b in have['facet']['price']['buckets']] == [
		sum(row['price'] < 10 for row in some), sum(10 <= row['price'] < 30 for row in some), sum(row['price'] >= 30 for row in some)]


def test_query_strings(world):
	for text, query in (
		('amber', TEXT),
		('amber OR cedar', {'compound': {'should': [TEXT, {'text': {'query': 'cedar', 'path': 'title'}}]}}),
		('amber AND NOT body:cedar', {'compound': {'must': [TEXT], 'mustNot': [{'text': {'query': 'cedar', 'path': 'body'}}]}}),
		('"amber basin" body:(cedar AND delta)', {'compound': {'should': [{'phrase': {'query': 'amber basin', 'path': 'title'}}, {
			'text': {'query': 'cedar delta', 'path': 'body', 'matchCriteria': 'all'}}]}})):
		have = {d['id'] for d, _, _ in world.find('main', {'queryString': {'defaultPath': 'title', 'query': text}})}
		assert have == {row['id'] for row in ROWS if searching.evaluate(query, row)[0]}, text


def test_synonyms_follow_their_table(world):
	"""What is written into it counts from the next query on; whoever cannot read it is told so; what is no such table is refused."""
	world.sql('create table told(word text)')
	world.sql("insert into told values ('amber'), ('cedar'), ('golden road')")
	world.sql('create table said(mapping_type varchar, synonyms text[])')
	named = [{'name': 's', 'analyzer': 'lucene.standard', 'source': {'collection': 'public.said'}}]
	index = world.built('told', 'told', {'word': {'type': 'string'}}, synonyms=named)
	query = {'text': {'query': 'amber', 'path': 'word', 'synonyms': 's'}}
	assert world.count('told', query) == 1
	world.sql("insert into said values ('equivalent', '{amber,cedar,Golden Roads}'), ('equivalent', null), (null, '{x}'), ('equivalent', '{}')")
	assert world.count('told', query) == 2
	world.sql("update said set synonyms = '{amber,golden road}' where mapping_type = 'equivalent' and cardinality(synonyms) = 3")
	assert {d['word'] for d, _, _ in world.find('told', query)} == {'amber', 'golden road'}
	hit = world.find('told', query, {'highlight': {'path': 'word'}})
	assert {'type': 'hit', 'value': 'road'} in [t for _, _, h in hit for t in h[0]['texts']]
	world.sql('alter table said rename to silent')
	with pytest.raises(psycopg2.errors.InvalidParameterValue, match='text.synonyms: the table .* is gone'):
		world.count('told', query)
	world.sql('create table said(mapping_type text, synonyms point)')
	with pytest.raises(psycopg2.errors.InvalidParameterValue, match='other columns'):
		world.count('told', query)
	assert world.count('told', {'text': {'query': 'amber', 'path': 'word'}}) == 1
	for table in ('said', 'nothing', 'looked_at'):
		refused(world.ask('bad', 'told', {'word': {'type': 'string'}}, synonyms=[{**named[0], 'source': {'collection': table}}]), 400, 'VALIDATION_ERROR',
			'definition.synonyms[0].source.collection')
	assert world.server.delete('%s/%s' % (world.base, index)).status_code == 204


def test_the_index_is_used(world):
	c = world.cluster.connect()
	cursor = c.cursor()
	cursor.execute('set enable_seqscan = off')
	name, = [n for n in world.indexes() if n.startswith('steward_search_')][:1]
	for query in (TEXT, {'equals': {'path': 'tag', 'value': 'Amber'}}, {'range': {'path': 'stock', 'lt': 3}}, {'equals': {'path': 'doc.n', 'value': 3}},
		      {'autocomplete': {'query': 'amb', 'path': 'title'}}, {'text': {'query': 'ambre', 'path': 'title', 'fuzzy': {'prefixLength': 2}}},
		      {'phrase': {'query': 'amber cedar', 'path': 'body', 'slop': 3}}, {'moreLikeThis': {'like': {'title': 'amber'}}}, {'phrase': {'query': 'amber cedar', 'path': 'body'}}):
		cursor.execute('select steward_search.explain(%s, %s)', ('main', json.dumps(query)))
		plan = json.dumps(cursor.fetchone()[0])
		assert 'Bitmap Index Scan' in plan and 'steward_search_' in plan, (query, plan)
	c.close()
	assert name


@pytest.mark.parametrize('query, place', [
	({'geoWithin': {}}, 'geoWithin'), ({'moreLikeThis': {'like': {}}}, 'moreLikeThis.like'), ({'moreLikeThis': {'like': 'x'}}, 'moreLikeThis.like'),
	({'moreLikeThis': {'like': {'title': 'a'}, 'path': 'title'}}, 'moreLikeThis.path'), ({}, ''), ([], ''), ({'text': {}, 'phrase': {}}, ''),
	({'text': {'query': 'a', 'path': 'title', 'fuzzy': {'maxEdits': 3}}}, 'text.fuzzy.maxEdits'), ({'text': {'query': 'a', 'path': 'title', 'fuzzy': 1}}, 'text.fuzzy'),
	({'text': {'query': 'a', 'path': 'title', 'fuzzy': {'maxExpansions': 5}}}, 'text.fuzzy.maxExpansions'),
	({'text': {'query': 'a', 'path': 'title', 'fuzzy': {}, 'synonyms': 'alike'}}, 'text.synonyms'), ({'text': {'query': 'a', 'path': 'title', 'synonyms': 'x'}}, 'text.synonyms'),
	({'text': {'query': 'a', 'path': {'value': 'title', 'multi': 'english'}, 'synonyms': 'alike'}}, 'text.synonyms'),
	({'text': {'query': 'a', 'path': {'value': 'title', 'multi': 'x'}}}, 'text.path'), ({'text': {'query': 'a', 'path': {'value': 'title'}}}, 'text.path[0]'),
	({'text': {'query': 'a', 'path': 'nothing'}}, 'text.path'), ({'text': {'query': 'a', 'path': 'stock'}}, 'text.path'),
	({'text': {'query': 'a'}}, 'text.path'), ({'text': {'query': 1, 'path': 'title'}}, 'text.query'),
	({'text': {'query': 'a', 'path': 'title', 'score': {'function': {}}}}, 'text.score.function'),
	({'phrase': {'query': 'a b', 'path': 'title', 'slop': -1}}, 'phrase.slop'), ({'phrase': {'query': 'a b', 'path': 'title', 'slop': 1.5}}, 'phrase.slop'),
	({'compound': {}}, 'compound'), ({'compound': {'must': [{'text': {'query': 'a', 'path': 'x'}}]}}, 'compound.must[0].text.path'),
	({'compound': {'should': [TEXT], 'minimumShouldMatch': 2}}, 'compound.minimumShouldMatch'),
	({'range': {'path': 'stock'}}, 'range'), ({'range': {'path': 'stock', 'gt': 'x'}}, 'range.path'),
	({'range': {'path': 'live', 'gt': True}}, 'range.path'), ({'in': {'path': 'stock', 'value': 3}}, 'in.value'),
	({'regex': {'path': 'tag', 'query': '('}}, 'regex.query'), ({'regex': {'path': 'tag', 'query': r'(a)\1'}}, 'regex.query'),
	({'regex': {'path': 'tag', 'query': '(?=a)b'}}, 'regex.query'), ({'wildcard': {'path': 'title', 'query': 'a*'}}, 'wildcard.path'),
	({'queryString': {'defaultPath': 'title', 'query': 'a AND'}}, 'queryString.query'),
	({'queryString': {'defaultPath': 'title', 'query': '(a'}}, 'queryString.query'),
	({'queryString': {'defaultPath': 'title', 'query': 'a~2'}}, 'queryString.query'),
	({'near': {'path': 'stock', 'origin': 1}}, 'near.pivot')])
def test_refused_by_name_and_place(world, query, place):
	with pytest.raises(psycopg2.errors.InvalidParameterValue) as e:
		world.count('main', query)
	assert str(e.value).startswith(place + ':'), e.value


def test_deep_queries_and_hostile_words(world):
	query = TEXT
	for _ in range(12):
		query = {'compound': {'must': [query]}}
	with pytest.raises(psycopg2.errors.InvalidParameterValue):
		world.count('main', query)
	for words in ("'; drop table articles; --", "a' & b | !c <-> '", '\\', '%s %I %L %1$s', '$1 $$', '"', "''", '\x02\x01', 'é中😀'):
		for query in ({'text': {'query': words, 'path': 'title'}}, {'phrase': {'query': words, 'path': ['title', 'doc.city']}},
			      {'equals': {'path': ['tag', 'doc.tags'], 'value': words}}, {'autocomplete': {'query': words, 'path': 'title'}},
			      {'wildcard': {'path': ['tag', 'doc.tags'], 'query': words}}, {'range': {'path': 'tag', 'gte': words, 'lt': words}}):
			assert world.count('main', query) == 0, query
	assert world.count('main', {'exists': {'path': 'title'}}) == len(ROWS)


def test_a_changed_definition(world):
	"""It is built beside the old one, which answers meanwhile; afterwards nothing of that is left."""
	world.sql('create table changing(id int, word text, other text)')
	world.sql("insert into changing select n, 'amber ' || n, 'cedar' from generate_series(1, 2000) n")
	index = world.built('changing', 'changing', {'word': {'type': 'string'}})
	assert world.count('changing', {'text': {'query': 'amber', 'path': 'word'}}) == 2000
	before = world.indexes()
	ok(world.server.patch('%s/%s' % (world.base, index), json={'definition': {'mappings': {'fields': {'other': {'type': 'string'}}}}}))
	while True:
		document = world.get(index)
		assert document['queryable'] is True
		if document['status'] == 'READY':
			break
	assert document['statusDetail'][0]['mainIndex']['definitionVersion']['version'] == 1
	assert world.count('changing', {'text': {'query': 'cedar', 'path': 'other'}}) == 2000
	with pytest.raises(psycopg2.errors.InvalidParameterValue):
		world.count('changing', {'text': {'query': 'amber', 'path': 'word'}})
	until(lambda: len(world.indexes()) == len(before) and world.indexes() != before, 120)
	assert world.server.delete('%s/%s' % (world.base, index)).status_code == 204
	until(lambda: world.server.get('%s/%s' % (world.base, index)).status_code == 404, 120)
	assert len(world.indexes()) == len(before) - 1
	with pytest.raises(psycopg2.errors.UndefinedObject):
		world.count('changing', TEXT)


def engine(world):
	"""The superuser on the primary, as the service is it."""
	n = world.cluster.nodes()[world.cluster.primary()]
	run = next(l for l in (world.cluster.directory(n['name']).parent / 'conf' / 'postgresql.conf').read_text().split('\n')
		   if l.startswith('unix_socket_directories')).split("'")[1]
	c = psycopg2.connect(host=run, port=n['port'], user='steward_engine', dbname='postgres')
	c.autocommit = True
	return c


def functions(world):
	return {r[0] for r in world.sql("select proname from pg_proc p where pronamespace = 'steward_search'::regnamespace and not exists ("
					"select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype = 'e')")}


def test_newer_functions_beside_what_stands_on_the_old(world):
	"""Views of a tenant's keep no newer functions out, and go on: with the new one where it is called the same way, else with the old."""
	current = functions(world)
	world.sql("create view counted as select steward_search.count('main', '%s') as n" % json.dumps(TEXT))
	want = world.sql('select n from counted')
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		cursor.execute("drop function steward_search.explain(text, jsonb, jsonb); create function steward_search.explain(text, jsonb, o jsonb "
			       "default '{}') returns text language sql as $$ select 'as of old' $$")
		cursor.execute("create function steward_search.facets(text, jsonb) returns text language sql as $$ select 'with less' $$")
		cursor.execute("create function steward_search.outdated() returns text language sql as $$ select 'outdated' $$")
		cursor.execute("create function steward_search.unused() returns text language sql as $$ select 'unused' $$")
		world.sql("create view explained as select steward_search.explain('main', '{}') as e, steward_search.outdated() as o, "
			  "steward_search.facets('main', '{}') as f")
		cursor.execute("comment on schema steward_search is 'search 0'")
		version = "select obj_description('steward_search'::regnamespace, 'pg_namespace')"
		until(lambda: world.sql(version) != [('search 0',)], 60, 'the newer functions')
	assert world.sql('select n from counted') == want
	assert world.sql('select e, o, f from explained') == [('as of old', 'outdated', 'with less')]
	more = functions(world) - current
	assert len(more) == 3 and {n.split('_')[0] for n in more} == {'explain', 'facets', 'outdated'}, more
	assert current <= functions(world)
	assert world.sql('select steward_search.explain(%s, %s)', 'main', json.dumps(TEXT))[0][0][0]['Plan']
	assert world.get(world.articles)['status'] == 'READY'
	world.sql('drop view explained, counted')


def test_strays(world):
	"""What builds have left that nobody knows of goes, in all databases; what is a tenant's own stays."""
	ids = ['%024x' % n for n in range(1, 5)]
	world.sql('create table strewn(word text)')
	world.sql('create database beside')
	with contextlib.closing(world.cluster.connect(database='beside')) as c, c.cursor() as cursor:
		cursor.execute('create table strewn(word text)')
		cursor.execute('create index steward_build_%s on strewn(word)' % ids[0])
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		cursor.execute('create index steward_build_%s on strewn(word)' % ids[1])
		cursor.execute("update pg_index set indisvalid = false where indexrelid = 'steward_build_%s'::regclass" % ids[1])
		cursor.execute('create index steward_search_%s on strewn(word)' % ids[2])
		cursor.execute("comment on index steward_search_%s is 'built by Steward (%s)'" % (ids[2], ids[2]))
		cursor.execute('create index steward_search_%s on strewn(word)' % ids[3])
	def left(database):
		with contextlib.closing(world.cluster.connect(database=database)) as c, c.cursor() as cursor:
			cursor.execute("select relname from pg_class where relkind = 'i' and relname ~ '0{16}'")
			return {r[0] for r in cursor.fetchall()}
	until(lambda: not left('beside') and len(left('postgres')) == 1, 150, 'the end of the strays')
	assert left('postgres') == {'steward_search_' + ids[3]}
	assert world.count('main', TEXT) > 0
	world.sql('drop table strewn')


def test_a_snapshot_in_the_middle_of_a_build(world):
	"""What it had under way goes after it was restored, and the index is as it is wanted by now."""
	cluster = world.place.cluster('brief', backupEnabled=True, **shape(1)).settled()
	base = cluster.path + '/search/indexes'
	cluster.ask("create table words(word text, other text); insert into words select 'amber', 'cedar' from generate_series(1, 100)")
	names = lambda: [r[0] for r in cluster.ask("select relname from pg_class where relname ~ '^steward_(search|build)_' and relkind = 'i'")]
	defined = lambda field: {'mappings': {'fields': {field: {'type': 'string'}}}}
	index = ok(world.server.post(base, json={'name': 'brief', 'database': 'postgres', 'collectionName': 'words', 'type': 'search',
						 'definition': defined('word')}), 201)['indexID']
	place = '%s/%s' % (base, index)
	reached = lambda *states: until(lambda: (lambda state: state in states and state)(ok(world.server.get(place))['status']), 240, ' or '.join(states))
	reached('READY')
	with contextlib.closing(cluster.connect()) as c, c.cursor() as cursor:
		cursor.execute("begin; insert into words values ('amber', 'cedar')")
		ok(world.server.patch(place, json={'definition': defined('other')}))
		until(lambda: len(names()) == 2, 60, 'the staged index')
		snapshot = ok(world.server.post(cluster.path + '/backup/snapshots', json={}))['id']
		until(lambda: ok(world.server.get('%s/backup/snapshots/%s' % (cluster.path, snapshot)))['status'] == 'completed', 120, 'the snapshot')
		cursor.execute('commit')
	if reached('READY', 'FAILED') == 'FAILED':  # the snapshot took longer than it may wait for the transaction
		ok(world.server.patch(place, json={'definition': defined('other')}))
		reached('READY')
	until(lambda: len(names()) == 1, 60, 'the end of the old index')
	body = {'deliveryType': 'automated', 'snapshotId': snapshot, 'targetClusterName': 'brief', 'targetGroupId': world.server.group}
	job = ok(world.server.post(cluster.path + '/backup/restoreJobs', json=body))['id']
	until(lambda: ok(world.server.get('%s/backup/restoreJobs/%s' % (cluster.path, job))).get('finishedAt'), 240, 'the restore')
	cluster.settled()
	query = json.dumps({'text': {'query': 'cedar', 'path': 'other'}})
	def right():
		try:
			return len(names()) == 1 and cluster.ask("select steward_search.count('brief', '%s')" % query) == [(100,)]
		except psycopg2.Error:
			return False
	until(right, 240, 'the index as it is wanted')
	cluster.delete()


def test_a_row_of_another_cluster(world):
	"""A restored database says what another cluster's index was: the new one of that name is the only one."""
	world.sql('create table restored(word text)')
	world.sql("insert into restored values ('amber')")
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		for name in ('restored', 'another'):
			cursor.execute("insert into steward_search.indexes select %s, 'old', %s, 'restored', 'restored'::regclass, '[]'", (name, name))
	world.built('restored', 'restored', {'word': {'type': 'string'}})
	assert world.count('restored', {'text': {'query': 'amber', 'path': 'word'}}) == 1
	assert world.sql("select name, count(*) from steward_search.indexes where namespace = 'restored' group by 1 order by 1") == [
		('another', 1), ('restored', 1)]


def test_a_deletion_while_a_change_is_built(world):
	"""The index that answered until then goes too, though its document is gone before."""
	world.sql('create table doomed(word text, other text)')
	before = world.indexes()
	index = world.built('doomed', 'doomed', {'word': {'type': 'string'}})
	place = '%s/%s' % (world.base, index)
	with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
		cursor.execute("begin; insert into doomed values ('amber', 'cedar')")
		ok(world.server.patch(place, json={'definition': {'mappings': {'fields': {'other': {'type': 'string'}}}}}))
		world.reached(index, 'BUILDING')
		assert world.server.delete(place).status_code == 204
		cursor.execute('commit')
	until(lambda: world.server.get(place).status_code == 404, 120)
	until(lambda: world.indexes() <= before, 60)


def test_dynamic(world):
	world.sql('create table mixed(id int, word varchar, at timestamptz, u uuid, flag boolean, doc jsonb, raw json, spot point)')
	world.sql("insert into mixed values (1, 'amber', '2024-02-01', '0f8fad5b-d9cb-469f-a165-70867728950e', true, '{\"a\": [\"cedar delta\"]}')")
	world.built('mixed', 'mixed')
	for query in ({'equals': {'path': 'id', 'value': 1}}, {'text': {'query': 'amber', 'path': 'word'}}, {'text': {'query': 'cedar', 'path': 'doc'}},
		      {'range': {'path': 'at', 'gte': '2024-01-31T23:59:59Z', 'lt': '2024-02-03'}}, {'equals': {'path': 'flag', 'value': True}},
		      {'equals': {'path': 'u', 'value': '0F8FAD5B-D9CB-469F-A165-70867728950E'}}, {'text': {'query': 'delta', 'path': {'wildcard': '*'}}}):
		assert world.count('mixed', query) == 1, query


def test_languages(world):
	world.sql('create table worded(en text, de text, doc jsonb)')
	world.sql("insert into worded values ('running shoes', 'die Häuser', '{\"t\": \"les chevaux\"}')")
	world.built('worded', 'worded', {'en': {'type': 'string', 'analyzer': 'lucene.english'}, 'doc': {'type': 'document', 'fields': {
		't': {'type': 'string', 'analyzer': 'lucene.french'}}}, 'de': {'type': 'string'}}, analyzer='lucene.german')
	for path, words in (('en', 'run shoe'), ('de', 'Haus Häuser'), ('doc.t', 'cheval chevaux')):
		assert world.count("worded", {"text": {"query": words.split()[-1], "path": path}}) == 1, (path, world.sql("select de, to_tsvector('german', de), steward_search.words_query('german', %s, false)::text, current_setting('server_encoding'), current_setting('lc_ctype'), current_setting('client_encoding') from worded", words), world.sql("select fields from steward_search.indexes"))


def test_refusals(world):
	world.sql('create view looked as select 1 as a')
	world.sql('create materialized view kept as select 1 as a')
	world.sql('create domain short as text')
	world.sql('create table other(a int, b json, c short, d text[], e text)')
	for table, fields, field in (
		('nothing', {'a': {'type': 'number'}}, 'collectionName'), ('looked', {'a': {'type': 'number'}}, 'collectionName'),
		('kept', {'a': {'type': 'number'}}, 'collectionName'),
		('pg_catalog.pg_class', {'relname': {'type': 'string'}}, 'collectionName'),
		('other', {'x': {'type': 'string'}}, 'definition.mappings.fields.x'), ('other', {'a': {'type': 'string'}}, 'definition.mappings.fields.a'),
		('other', {'e': {'type': 'number'}}, 'definition.mappings.fields.e'), ('other', {'b': {'type': 'string'}}, 'definition.mappings.fields.b'),
		('other', {'c': {'type': 'string'}}, 'definition.mappings.fields.c'), ('other', {'d': {'type': 'string'}}, 'definition.mappings.fields.d'),
		('other', {'e': {'type': 'document', 'fields': {'x': {'type': 'number'}}}}, 'definition.mappings.fields.e.fields.x')):
		refused(world.ask('refused', table, fields), 400, 'VALIDATION_ERROR', field)
	assert ok(world.ask('fine', 'other', {'e': {'type': 'string'}}), 201)


def test_what_befalls_the_table(world):
	"""An index says when its column or table is gone, and comes back with them."""
	world.sql('create table fleeting(id int, word text)')
	world.sql("insert into fleeting values (1, 'amber')")
	query = {'text': {'query': 'amber', 'path': 'word'}}
	index = world.built('fleeting', 'fleeting', {'word': {'type': 'string'}})
	world.sql('alter table fleeting rename word to term')
	stale = world.reached(index, 'STALE')
	assert stale['queryable'] is False and 'word' in stale['statusDetail'][0]['mainIndex']['message']
	with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState):
		world.count('fleeting', query)
	world.sql('alter table fleeting rename term to word')
	world.reached(index, 'READY')
	world.sql('drop table fleeting')
	assert world.reached(index, 'DOES_NOT_EXIST')['queryable'] is False
	with pytest.raises(psycopg2.errors.UndefinedTable):
		world.count('fleeting', query)
	world.sql('create table fleeting(word text)')
	world.sql("insert into fleeting values ('amber'), ('amber')")
	world.reached(index, 'READY')
	assert until(lambda: world.count('fleeting', query) == 2, 60)


def test_readers_rights(world):
	"""The functions have no rights of their own: privileges and row policies hold."""
	world.sql('create table guarded(id int, word text)')
	world.sql("insert into guarded select n, 'amber' from generate_series(1, 10) n")
	world.built('guarded', 'guarded', {'word': {'type': 'string'}})
	reader, query = dict(user=READER, password=SECRET), {'text': {'query': 'amber', 'path': 'word'}}
	assert world.count('guarded', query, **reader) == 10
	world.sql('alter table guarded enable row level security')
	world.sql('create policy few on guarded using (id <= 3)')
	assert world.count('guarded', query, **reader) == 3
	assert len(world.find('guarded', query, **reader)) == 3
	with pytest.raises(psycopg2.errors.InsufficientPrivilege):
		world.sql("update steward_search.indexes set fields = '[]'", **reader)
	for who in ({}, reader):
		with pytest.raises((psycopg2.errors.InsufficientPrivilege, AssertionError)):
			world.sql("insert into steward_search.indexes values ('x', 'x', 'x', 'x', 1, '[]')", **who)
			raise AssertionError('it was written')
		with pytest.raises(psycopg2.errors.InsufficientPrivilege):
			world.sql('create function steward_search.mine() returns int language sql as $$select 1$$', **who)


def test_a_hostile_owner(world):
	"""Functions, operators, casts and tables of the same names, in public and in pg_temp; types whose cast would run as the reader; a table
	that turns into a view."""
	world.sql('create table spied(who name)')
	world.sql('grant insert on spied to public')
	world.sql('create table lure(id int, word text, pair int)')
	world.sql("insert into lure select n, 'amber', n from generate_series(1, 5) n")
	world.sql('''create function public.note() returns boolean language plpgsql as $$ begin insert into public.spied values (current_user); return true; end $$''')
	world.sql('''create function public.to_tsvector(regconfig, text) returns tsvector language plpgsql immutable as $$ begin perform public.note(); return '' ; end $$''')
	world.sql('''create function public.at_at(tsvector, tsquery) returns boolean language plpgsql immutable as $$ begin perform public.note(); return true; end $$''')
	world.sql('create operator public.@@ (leftarg = tsvector, rightarg = tsquery, function = public.at_at)')
	index = world.built('lure', 'lure', {'word': {'type': 'string'}})
	query = {'text': {'query': 'amber', 'path': 'word'}}
	c = world.cluster.connect(user=READER, password=SECRET)
	cursor = c.cursor()
	cursor.execute('set search_path = public, pg_catalog')
	cursor.execute('select count(*) from steward_search.query(%s, %s)', ('lure', json.dumps(query)))
	assert cursor.fetchone() == (5,)
	# A type of the owner's, with a cast of the owner's.
	world.sql('create type couple as (a int)')
	world.sql('create function couple_json(couple) returns jsonb language plpgsql as $$ begin perform public.note(); return \'1\'; end $$')
	world.sql('create function couple_text(couple) returns text language plpgsql immutable as $$ begin perform public.note(); return \'1\'; end $$')
	world.sql('create cast (couple as jsonb) with function couple_json(couple) as implicit')
	world.sql('create cast (couple as text) with function couple_text(couple) as implicit')
	world.sql('alter table lure alter pair type couple using row(pair)::couple')
	cursor.execute('select document from steward_search.query(%s, %s)', ('lure', json.dumps(query)))
	assert cursor.fetchone()[0]['pair'] == '(1)'
	world.sql('truncate lure')
	world.sql('alter table lure alter word type couple using null')
	with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState):
		cursor.execute('select steward_search.count(%s, %s)', ('lure', json.dumps(query)))
	world.reached(index, 'STALE')
	# An empty table with such a rule is a view from then on.
	world.sql('create table turning(word text)')
	world.built('turning', 'turning', {'word': {'type': 'string'}})
	world.sql("do $$ declare n name; begin select indexrelid::regclass into n from pg_index where indrelid = 'turning'::regclass; "
		  "execute format('drop index %s', n); end $$")
	world.sql('vacuum turning')  # by which the server notices that it has no indexes
	world.sql("create rule \"_RETURN\" as on select to turning do instead select 'amber'::text as word where public.note()")
	with pytest.raises(psycopg2.Error):
		cursor.execute('select steward_search.count(%s, %s)', ('turning', json.dumps(query)))
	c.close()
	assert world.sql("select count(*) from spied where who <> %s", USER) == [(0,)]


@pytest.mark.parametrize('change', (
	"alter table {0} rename other to before; alter table {0} add other {0}_kind default 'a'",
	"alter table {0} rename to {0}_before; create view {0} as select tableoid, ctid, word, other from {0}_before where {0}_note(); "
	"grant select on {0} to public"))
def test_a_hostile_owner_and_a_long_transaction(world, change):
	"""What the catalogs show a repeatable-read transaction is older than what its statements use."""
	table = 'bait%d' % len(change)
	world.sql('create table {0}(word text, other text); create table {0}_spied(who name); grant insert on {0}_spied to public'.format(table))
	world.sql("insert into {0} values ('amber', 'a'); create type {0}_kind as enum ('a')".format(table))
	for kind in ('function {0}_note() returns boolean', 'function {0}_json({0}_kind) returns json'):
		world.sql(('create ' + kind + " language plpgsql as $$ begin insert into public.{0}_spied values (current_user); return 'true'; "
			   'end $$').format(table))
	world.sql('create cast ({0}_kind as json) with function {0}_json({0}_kind)'.format(table))
	world.built(table, table, {'word': {'type': 'string'}})
	ask = 'select document from steward_search.query(%s, %s)', (table, json.dumps({'text': {'query': 'amber', 'path': 'word'}}))
	with contextlib.closing(world.cluster.connect(user=READER, password=SECRET)) as c, c.cursor() as cursor:
		cursor.execute('begin isolation level repeatable read')
		cursor.execute(*ask)
		assert cursor.fetchall() == [({'word': 'amber', 'other': 'a'},)]
		cursor.execute('rollback')
		cursor.execute('begin isolation level repeatable read')
		cursor.execute('select 1')
		world.sql(change.format(table))
		with pytest.raises((psycopg2.errors.SerializationFailure, psycopg2.errors.UndefinedTable)):
			cursor.execute(*ask)
			cursor.execute('commit')
	assert world.sql('select count(*) from %s_spied' % table) == [(0,)]


def test_values_without_an_end(world):
	"""What one row has keeps nobody from finding the others."""
	columns = {'d': 'date', 'ts': 'timestamp', 'tz': 'timestamptz', 'x': 'numeric', 'f': 'float8'}
	world.sql('create table endless(id int, %s)' % ', '.join('%s %s' % c for c in columns.items()))
	world.sql("insert into endless select n, day, day, day, n, n from generate_series(1, 3) n, lateral (select date '2024-01-01' + n as day) s")
	for values in ("'infinity', 'infinity', 'infinity', 'NaN', 'NaN'", "'-infinity', '-infinity', '-infinity', 'Infinity', 'Infinity'",
		       "'5874897-12-31', '294276-12-31', '294276-12-31', 1e400, 1.7e308", "'4713-01-01 BC', '4713-01-01 BC', '4713-01-01 BC', -1e400, '-Infinity'",
		       'null, null, null, null, null'):
		world.sql('insert into endless values (4, %s)' % values)
	world.built('endless', 'endless', {c: {'type': 'number' if c in 'xf' else 'date'} for c in columns})
	for c in columns:
		near = {'near': {'path': c, 'pivot': 1, 'origin': 2}} if c in 'xf' else {'near': {'path': c, 'pivot': 86400000, 'origin': '2024-01-03'}}
		found = [(document['id'], score) for document, score, _ in world.find('endless', near)]
		assert found[0] == (2, 1) and found[3:] == [(4, 0)] * 4 and {i: s for i, s in found[1:3]} == {1: 0.5, 3: 0.5}, c
		bounds = [1, 4] if c in 'xf' else ['2024-01-01', '2024-02-01']
		facet = {'a': {'type': 'number' if c in 'xf' else 'date', 'path': c, 'boundaries': bounds, 'default': 'else'}}
		(counted,), = world.sql('select steward_search.facets(%s, %s, %s)', 'endless', json.dumps({'exists': {'path': c}}), json.dumps(facet))
		assert [b['count'] for b in counted['facet']['a']['buckets']] == [3, 4], c


def test_large_texts(world):
	"""What cannot be a tsvector or a key is no obstacle to whoever writes it."""
	world.sql('create table large(id int, body text, tag text, doc jsonb)')
	world.built('large', 'large', {'body': [{'type': 'string'}, {'type': 'autocomplete'}], 'tag': {'type': 'token'}, 'doc': [{'type': 'string'}, {
		'type': 'document', 'fields': {'a': [{'type': 'string'}, {'type': 'token'}, {'type': 'autocomplete'}]}}]})
	world.sql("insert into large select 1, b, b, jsonb_build_object('a', b) from (select string_agg('word' || n, ' ') b from generate_series(1, 400000) n) s")
	world.sql("insert into large select 2, b, b, jsonb_build_object('a', b) from (select string_agg(chr(128512 + n % 60) || chr(20000 + n % 20000), ' ') b from generate_series(1, 300000) n) s")
	world.sql("insert into large values (3, repeat('x', 5000000), repeat('x', 5000000), null)")
	assert world.count('large', {'text': {'query': 'word5', 'path': 'body'}}) == 1
	assert world.count('large', {'equals': {'path': 'tag', 'value': 'x' * 500}}) == 0
	assert world.sql('select count(*) from large') == [(3,)]


def test_more_words_than_fit_in_temporary_files(world):
	"""The place of each word is sorted when an index is looked through at the end of its build: clients' temporary files have less room than that."""
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		cursor.execute("alter role steward_engine set temp_file_limit = '24MB'")
		try:
			world.sql('create table wordy(id int, body text)')
			world.sql("insert into wordy select n, w from generate_series(1, 80000) n, (select string_agg('w' || i, ' ') w from generate_series(1, 60) i) x")
			world.built('wordy', 'wordy', {'body': {'type': 'string'}})
		finally:
			cursor.execute('alter role steward_engine reset temp_file_limit')
	assert world.count('wordy', {'text': {'query': 'w7', 'path': 'body'}}) == 80000
	world.sql('drop table wordy')


def test_a_count_keeps_no_build_waiting(world):
	"""The service's own count of another index's words is ended for a build, and done again."""
	world.sql('create table prompt(id int, body text)')
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor, concurrent.futures.ThreadPoolExecutor(1) as other:
		counting = other.submit(cursor.execute, "select steward_search.recount('none'), pg_sleep(120)")
		def sleeping():
			with contextlib.closing(engine(world)) as seeing, seeing.cursor() as look:
				look.execute("select count(*) from pg_stat_activity where wait_event = 'PgSleep'")
				return look.fetchone() == (1,)
		until(sleeping, 30)
		world.built('prompt', 'prompt', {'body': {'type': 'string'}})
		with pytest.raises(psycopg2.OperationalError):
			counting.result()


def test_a_standby_and_a_restart(world):
	"""Standbys have the index and the functions; a service that was killed goes on with what it was about."""
	name = next(n for n in world.cluster.nodes() if n != world.cluster.primary())
	want = world.count('main', TEXT)
	until(lambda: world.cluster.ask("select steward_search.count('main', '%s')" % json.dumps(TEXT), name) == [(want,)], 60)
	world.sql('create table killed(id int, word text)')
	world.sql("insert into killed select n, md5(n::text) || ' amber' from generate_series(1, 60000) n")
	index = ok(world.ask('killed', 'killed', {'word': [{'type': 'string'}, {'type': 'autocomplete'}]}), 201)['indexID']
	world.place.kill()
	world.place.start()
	world.reached(index, 'READY')
	assert world.count('killed', {'text': {'query': 'amber', 'path': 'word'}}) == 60000
	until(lambda: not [n for n in world.indexes() if n.startswith('steward_build_')], 120)


def test_search_nodes(world):
	"""Standbys of their own kind: they answer searches, and go without the others noticing."""
	place, before = world.cluster.path + '/search/deployment', set(world.cluster.nodes())
	ok(world.server.post(place, json={'specs': [{'instanceSize': 'S10_HIGHCPU', 'nodeCount': 2}]}))
	world.cluster.settled()
	assert ok(world.server.get(place))['stateName'] == 'IDLE'
	added = set(world.cluster.nodes()) - before
	assert len(added) == 2 and len(world.cluster.nodes()) == len(before) + 2
	want = world.count('main', TEXT)
	for name in added:
		until(lambda: world.cluster.ask("select pg_is_in_recovery(), steward_search.count('main', '%s')" % json.dumps(TEXT), name) == [(True, want)], 60)
	assert len(world.get(world.articles)['statusDetail']) == 5
	assert world.server.delete(place).status_code == 200
	world.cluster.settled()
	assert set(world.cluster.nodes()) == before
