"""Indexes of vectors on real databases: what they find, held against the exact answer computed here, also after writes, vacuum, a crash
and a failover; filters, readers' rights, vectors that are none, changed definitions."""
import contextlib, json, math, os, random, signal, threading

import psycopg2, psycopg2.errors, pytest

from client import ok, refused, until
from databases import USER
from test_search_postgres import READER, SECRET, World, engine, tried

WIDTH, COUNT, TAGS = 24, 4000, ['amber', 'basin', 'cedar', 'delta']
FIELDS = [{'type': 'filter', 'path': p} for p in ('tag', 'n', 'price', 'live', 'at', 'u', 'doc.city', 'doc.size')]


def vectors(r, count):
	"""Around a few points, as the vectors of a model are."""
	points = [[r.gauss(0, 1) for _ in range(WIDTH)] for _ in range(40)]
	return [[x + r.gauss(0, 0.4) for x in r.choice(points)] for _ in range(count)]


def near(kind, a, b):
	dot = sum(x * y for x, y in zip(a, b))
	if kind == 'euclidean':
		return 1 / (1 + math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b))))
	if kind == 'cosine':
		dot /= math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
	return (1 + dot) / 2


def text(v):
	return '{%s}' % ','.join(map(repr, v))


class Vectors(World):
	def ask_vector(self, name, table, path='v', similarity='cosine', dimensions=WIDTH, fields=(), **more):
		return self.server.post(self.base, json={
			'name': name, 'database': 'postgres', 'collectionName': table, 'type': 'vectorSearch',
			'definition': {'fields': [{'type': 'vector', 'path': path, 'numDimensions': dimensions, 'similarity': similarity, **more}, *fields]}})

	def built_vector(self, name, table, *args, **more):
		index = ok(self.ask_vector(name, table, *args, **more), 201)['indexID']
		self.reached(index, 'READY')
		return index

	def nearest(self, index, query, options=None, **who):
		return self.sql("select (document->>'id')::int, score, document from steward_search.vector(%s, %s::real[], %s)", index, text(query),
				json.dumps(options or {}), **who)

	def recall(self, index, queries, **who):
		"""Of what the exact answer has, how much is found; what is found is scored as it."""
		hits = 0
		for q in queries:
			exact = {i: s for i, s, _ in self.nearest(index, q, {'exact': True}, **who)}
			have = {i: s for i, s, _ in self.nearest(index, q, **who)}
			assert len(exact) == len(have) == 10 and all(have[i] == exact[i] for i in have if i in exact)
			hits += len(set(have) & set(exact))
		return hits / len(queries) / 10


@pytest.fixture(scope='module')
def world(start_place):
	w, r = Vectors(start_place('--index-wait', '2')), random.Random(5)
	w.sql('create table items(id int primary key, v real[], tag text, n int, price numeric, live boolean, at timestamptz, u uuid, doc jsonb)')
	w.rows = [{'id': i, 'v': v, 'tag': r.choice(TAGS) if r.random() < 0.9 else None, 'n': r.randint(0, 100), 'price': round(r.uniform(0, 9), 2),
		   'live': r.random() < 0.5, 'at': '2024-01-%02dT00:00:00Z' % r.randint(1, 28), 'u': '00000000-0000-0000-0000-%012d' % (i % 7),
		   'doc': {'city': r.choice(TAGS), **({'size': r.randint(0, 9)} if r.random() < 0.7 else {})}} for i, v in enumerate(vectors(r, COUNT))]
	for at in range(0, COUNT, 500):
		w.sql('insert into items select * from jsonb_populate_recordset(null::items, %s)', json.dumps([
			{**row, 'v': text(row['v'])} for row in w.rows[at:at + 500]]))
	w.queries = vectors(random.Random(5), COUNT + 30)[COUNT:]  # around the same points
	w.items = w.built_vector('items', 'items', fields=FIELDS)
	return w


def exact(world, kind, q, count, fits=lambda row: True):
	return sorted(((near(kind, row['v'], q), row['id']) for row in world.rows if fits(row)), reverse=True)[:count]


@pytest.mark.parametrize('kind', ['cosine', 'euclidean', 'dotProduct'])
def test_the_nearest(world, kind):
	"""What is exact is as it is computed here, to the digits that 32-bit floats have; the index finds nearly all of it."""
	name = 'items' if kind == 'cosine' else kind
	if kind != 'cosine':
		world.built_vector(name, 'items', similarity=kind, quantization='binary')
	for q in world.queries[:5]:
		want = exact(world, kind, q, 10)
		have = world.nearest(name, q, {'exact': True})
		assert [h[0] for h in have] == [i for _, i in want] and all(abs(h[1] - s) < 1e-5 for h, (s, _) in zip(have, want))
	assert world.recall(name, world.queries) >= 0.95
	assert len(world.nearest(name, world.queries[0], {'limit': 300, 'numCandidates': 10000})) == 300
	assert [h[0] for h in world.nearest(name, world.queries[0], {'numCandidates': 10000})] == [i for _, i in exact(world, kind, world.queries[0], 10)]


def test_it_is_divided_and_used(world):
	"""The table is in many cells, of which a search with few candidates looks at few."""
	build, = [f['version'] for f, in world.sql("select f from steward_search.indexes, jsonb_array_elements(fields) f where name = 'items'") if f['type'] == 'vector']
	cells = world.sql('select count(distinct steward_vectors.cell(%s, v)), count(*) from items', build)[0]
	assert cells[0] > 40 and cells[1] == COUNT
	with contextlib.closing(world.cluster.connect()) as c, c.cursor() as cursor:
		cursor.execute('set enable_seqscan = off')
		cursor.execute('explain (format json) select from only items t where steward_vectors.cell(%s, t.v) = any (%s)', (build, [1, 2, 3]))
		assert 'steward_search_' + build in json.dumps(cursor.fetchone()[0])


def version_of(world, name):
	return world.sql("select build from steward_search.indexes where name = %s", name)[0][0]


NEAR = "select steward_vectors.near(%s, %s::real[], steward_vectors.cells(%s, %s::real[]), %s)"


def near_by(world, name, query, most, **who):
	"""The rows that the index itself says are nearest, by their numbers; None: it does not say."""
	version, (table,) = version_of(world, name), world.sql("select namespace from steward_search.indexes where name = %s", name)[0]
	with contextlib.closing(world.cluster.connect(**who)) as c, c.cursor() as cursor:
		cursor.execute('begin isolation level repeatable read')
		cursor.execute(NEAR, (version, text(query), version, text(query), most))
		tids, = cursor.fetchone()
		if tids is None:
			return None
		cursor.execute('select u.place, t.id from unnest(%s::tid[]) with ordinality u(tid, place) left join only %s t on t.ctid = u.tid order by 1' % ('%s', table), (tids,))
		found = [i for _, i in cursor.fetchall()]
		assert None not in found and len(set(found)) == len(found)
		return found


@pytest.mark.parametrize('quantization, enough', [('none', 12), ('scalar', 12), ('binary', 100)])
def test_copies_of_vectors(world, quantization, enough):
	"""The index finds the nearest by its copies alone: the finer these are, the fewer rows it has to name."""
	name = 'copied_' + quantization
	for similarity in ('cosine', 'euclidean', 'dotProduct'):
		index = world.built_vector(name, 'items', similarity=similarity, quantization=quantization)
		hits = sum(len({i for _, i in exact(world, similarity, q, 10)} & set(near_by(world, name, q, enough))) for q in world.queries)
		assert hits >= 9.5 * len(world.queries)
		assert sorted(near_by(world, name, world.queries[0], 10000)) == list(range(COUNT))
		assert world.server.delete('%s/%s' % (world.base, index)).status_code == 204
		until(lambda: world.server.get('%s/%s' % (world.base, index)).status_code == 404, 120)


def test_the_longest_vectors(world):
	"""Copies of more dimensions than fit into the index with a byte each are of signs."""
	world.sql('create table long(id int, v real[])')
	index = world.built_vector('long', 'long', dimensions=8192)
	world.sql('insert into long select n, array(select sin(n * i) from generate_series(1, 8192) i) from generate_series(1, 20) n')
	for n in (1, 20):
		query, = world.sql('select v from long where id = %s', n)[0]
		assert world.nearest('long', query, {'limit': 1})[0][0] == n == near_by(world, 'long', query, 5)[0]
	world.built_vector('wide', 'long', dimensions=2560)
	world.sql('insert into long select 100 + n, array(select sin(n * i) from generate_series(1, 2560) i) from generate_series(1, 20) n')
	query, = world.sql('select v from long where id = 107')[0]
	assert near_by(world, 'wide', query, 5)[0] == 107
	world.sql('insert into long values (200, array_fill(1::real, array[2560])), (201, array_fill(-1::real, array[2560]))')  # which PostgreSQL compresses
	assert near_by(world, 'wide', [1.0] * 2560, 100)[0] == 200 and near_by(world, 'wide', [-1.0] * 2560, 100)[0] == 201


@pytest.mark.parametrize('given, fits', [
	({'tag': 'amber'}, lambda r: r['tag'] == 'amber'),
	({'tag': {'$ne': 'amber'}}, lambda r: r['tag'] != 'amber'),
	({'tag': None}, lambda r: r['tag'] is None),
	({'tag': {'$exists': True}, 'n': {'$gte': 20, '$lt': 60}}, lambda r: r['tag'] and 20 <= r['n'] < 60),
	({'n': {'$in': [1, 2, 3]}}, lambda r: r['n'] in (1, 2, 3)),
	({'n': {'$nin': list(range(90))}}, lambda r: r['n'] >= 90),
	({'n': {'$not': {'$gt': 5}}}, lambda r: r['n'] <= 5),
	({'price': {'$lte': 1.5}, 'live': True}, lambda r: r['price'] <= 1.5 and r['live']),
	({'at': {'$gt': '2024-01-20'}}, lambda r: r['at'] > '2024-01-20T00:00:00Z'),
	({'u': '00000000-0000-0000-0000-000000000003'}, lambda r: r['id'] % 7 == 3),
	({'doc.city': 'cedar'}, lambda r: r['doc']['city'] == 'cedar'),
	({'doc.size': {'$gt': 7}}, lambda r: r['doc'].get('size', 0) > 7),
	({'doc.size': {'$exists': False}}, lambda r: 'size' not in r['doc']),
	({'$or': [{'tag': 'amber'}, {'n': {'$lt': 10}}], '$nor': [{'live': True}]}, lambda r: (r['tag'] == 'amber' or r['n'] < 10) and not r['live']),
	({'$and': [{'tag': 'amber'}, {'tag': {'$ne': 'basin'}}]}, lambda r: r['tag'] == 'amber'),
	({'n': 77, 'tag': 'cedar'}, lambda r: r['n'] == 77 and r['tag'] == 'cedar'),
	({'n': {'$gt': 1000}}, lambda r: False)])
def test_filters(world, given, fits):
	"""However few rows they let through: those are found."""
	for q in world.queries[:3]:
		want = exact(world, 'cosine', q, 10, fits)
		assert [h[0] for h in world.nearest('items', q, {'filter': given, 'exact': True})] == [i for _, i in want]
		have = world.nearest('items', q, {'filter': given})
		assert len(have) == len(want) and all(fits(world.rows[h[0]]) for h in have)
		assert len({h[0] for h in have} & {i for _, i in want}) >= 0.8 * len(want)


@pytest.mark.parametrize('options, place', [
	({'x': 1}, 'options.x'), ({'limit': 0}, 'options.limit'), ({'limit': 2.5}, 'options.limit'), ({'limit': 'a'}, 'options.limit'),
	({'numCandidates': 5}, 'options.numCandidates'), ({'numCandidates': 10001}, 'options.numCandidates'),
	({'exact': True, 'numCandidates': 50}, 'options.numCandidates'), ({'exact': 1}, 'options.exact'), ({'project': ['x']}, 'options.project'),
	({'filter': {}}, 'options.filter'), ({'filter': []}, 'options.filter'), ({'filter': {'id': 1}}, 'options.filter.id'),
	({'filter': {'v': 1}}, 'options.filter.v'), ({'filter': {'n': {'$near': 1}}}, 'options.filter.n.$near'), ({'filter': {'$where': '1'}}, 'options.filter.$where'),
	({'filter': {'n': 'x'}}, 'options.filter'), ({'filter': {'n': {'$in': []}}}, 'options.filter.n.$in'), ({'filter': {'n': {'$in': [None]}}}, 'options.filter.n.$in'),
	({'filter': {'n': [1]}}, 'options.filter.n'), ({'filter': {'tag': {'$exists': 1}}}, 'options.filter.tag.$exists'), ({'filter': {'$or': []}}, 'options.filter.$or')])
def test_refused_by_place(world, options, place):
	with pytest.raises(psycopg2.errors.InvalidParameterValue) as e:
		world.nearest('items', world.queries[0], options)
	assert str(e.value).startswith(place), e.value


def test_queries_that_are_none(world):
	for query in ([1.0] * (WIDTH - 1), [0.0] * WIDTH, [float('nan')] * WIDTH, [float('inf')] * WIDTH):
		with pytest.raises(psycopg2.errors.InvalidParameterValue):
			world.sql("select steward_search.vector('items', %s::real[])", [query])
	for query in ('{}', '{{1,2},{3,4}}', '{%s}' % ','.join(['null'] * WIDTH)):
		with pytest.raises(psycopg2.errors.InvalidParameterValue):
			world.sql("select steward_search.vector('items', %s::real[])", query)
	with pytest.raises(psycopg2.errors.UndefinedObject):
		world.nearest('nothing', world.queries[0])


def test_from_the_command_line(world):
	"""A vector as JSON or as PostgreSQL has it; what is neither is the server's to refuse."""
	near_by = world.nearest('items', world.queries[0], {'limit': 2})
	for vector in (json.dumps(world.queries[0]), text(world.queries[0])):
		said = tried(world, 'items', vector, '--limit', '2').stdout
		assert '(2 rows)' in said and all('"id": %d,' % h[0] in said for h in near_by)
	assert 'steward_search.vector(' in tried(world, 'items.items', '[1]', '--print').stdout
	for vector in ('[1, 2]', "{1}'); drop table items; --", 'words'):
		assert tried(world, 'items', vector, fails=True).returncode
	assert world.sql('select count(*) from items') == [(COUNT,)]


def test_vectors_that_are_none(world):
	"""Whoever writes them has no error; they are not found until they are vectors."""
	world.sql('create table odd(id int, v real[])')
	world.built_vector('odd', 'odd', dimensions=3)
	world.sql("insert into odd values (1, null), (2, '{}'), (3, '{1,2}'), (4, '{1,2,3,4}'), (5, '{1,null,3}'), (6, '{NaN,1,2}'), (7, '{0,0,0}'), "
		  "(8, '{Infinity,1,2}'), (9, '{3e38,3e38,3e38}'), (10, '{{1,2,3}}'), (11, '{1,2,3}'), (12, '[7:9]={3,2,1}')")
	for options in ({}, {'exact': True}):
		assert [i for i, _, _ in world.nearest('odd', [1, 2, 3], options)] == [11, 12]
	world.sql("update odd set v = '{1,2,3.1}' where id in (1, 5)")
	world.sql("update odd set v = null where id = 12")
	assert {i for i, _, _ in world.nearest('odd', [1, 2, 3])} == {1, 5, 11}


def test_readers_rights(world):
	"""Privileges and row policies hold, and a reader who is subject to one is answered from the index."""
	world.sql('create table guarded(id int, v real[], tag text)')
	world.sql('insert into guarded select id, v, tag from items')
	world.built_vector('guarded', 'guarded')
	reader = dict(user=READER, password=SECRET)
	world.sql('alter table guarded enable row level security')
	world.sql("create policy few on guarded using (tag = 'amber')")
	for q in world.queries[:5]:
		want = [i for _, i in exact(world, 'cosine', q, 10, lambda r: r['tag'] == 'amber')]
		assert [h[0] for h in world.nearest('guarded', q, {'exact': True}, **reader)] == want
		have = [h[0] for h in world.nearest('guarded', q, **reader)]
		assert len(set(have) & set(want)) >= 8 and all(world.rows[i]['tag'] == 'amber' for i in have)
	assert near_by(world, 'guarded', world.queries[0], 10) and near_by(world, 'guarded', world.queries[0], 10, **reader) is None
	world.sql('alter table guarded force row level security')
	assert near_by(world, 'guarded', world.queries[0], 10) is None
	world.sql('alter table guarded no force row level security')
	build = world.sql("select fields->0->>'version' from steward_search.indexes where name = 'guarded'")[0][0]
	with contextlib.closing(world.cluster.connect(**reader)) as c, c.cursor() as cursor:
		cursor.execute('set enable_seqscan = off')
		cursor.execute('explain select from only guarded t where steward_vectors.cell(%s, t.v) = any (%s)', (build, [1, 2]))
		assert 'steward_search_' + build in str(cursor.fetchall())
	for sql in ('select * from steward_vectors.lists', "select steward_vectors.divide('items'::regclass, 'v', 'c', 3)",
		    "select steward_vectors.make('x', 'items'::regclass, 'v', 'c', 3, 's')", "delete from steward_vectors.lists",
		    'create table steward_vectors.mine()'):
		for who in ({}, reader):
			with pytest.raises(psycopg2.errors.InsufficientPrivilege):
				world.sql(sql, **who)


def test_asked_directly(world):
	"""Whatever anybody asks the function that reads the index: it gives rows of the table to those who may read the column, or nothing."""
	world.sql('create table asked(id int, v real[], w real[])')
	world.sql('insert into asked select id, v, v from items')
	world.built_vector('asked', 'asked')
	reader, version, query = dict(user=READER, password=SECRET), version_of(world, 'asked'), text(world.queries[0])
	def near(*args, **who):
		return world.sql('select steward_vectors.near(%s, %s::real[], %s::int[], %s)', *args, **who)[0][0]
	assert near(version, query, [0, 1, 2], 5, **reader)
	for args in ((None, query, [1], 5), (version, None, [1], 5), (version, query, None, 5), (version, query, [1], None), ('', query, [1], 5),
		     ('x' * 100, query, [1], 5), (version[:-1], query, [1], 5), (version, '{}', [1], 5), (version, '{1,2}', [1], 5),
		     (version, text([float('nan')] * WIDTH), [1], 5), (version, text([float('inf')] * WIDTH), [1], 5), (version, text([0.0] * WIDTH), [1], 5),
		     (version, '{%s}' % ','.join(['null'] * WIDTH), [1], 5), (version, query, [None], 5), (version, query, [[1], [2]], 5), (version, query, [], 5)):
		assert near(*args, **reader) is None, args
	assert near(version, query, [-1, 1000000, 2 ** 31 - 1, -2 ** 31], 5, **reader) == '{}'
	assert len(near(version, query, [0], -2 ** 31, **reader).split(',')) == 2  # the two numbers of one place
	assert len(near(version, query, list(range(10000)), 2 ** 31 - 1, **reader).split('","')) == COUNT
	assert near(version, query, [1] * 100000, 5, **reader)
	with contextlib.closing(world.cluster.connect(**reader)) as c, c.cursor() as cursor:
		cursor.execute("set statement_timeout = '300ms'")
		with pytest.raises(psycopg2.errors.QueryCanceled):
			cursor.execute('select steward_vectors.near(%s, %s::real[], array_fill(1, array[30000000]), 10000)', (version, query))
		cursor.execute("select count(*) from pg_locks where pid = pg_backend_pid() and relation = 'asked'::regclass")
		assert cursor.fetchone() == (0,)
	# What the owner makes of the table: only the index over the column itself counts, and only while it has all rows.
	steward = 'steward_search_' + version
	world.sql("create index lure_part on asked(steward_vectors.cell('%s', v), steward_vectors.code('%s', v)) where id < 5" % (version, version))
	world.sql("create index lure_mix on asked(steward_vectors.cell('%s', v), steward_vectors.code('%s', w))" % (version, version))
	world.sql("create index lure_turn on asked(steward_vectors.code('%s', v), steward_vectors.cell('%s', v))" % (version, version))
	world.sql("create index lure_hash on asked using hash (steward_vectors.code('%s', v))" % version)
	for n in range(5):  # more than a session keeps, computed when the server looks at the index
		world.built_vector('lure_%d' % n, 'asked')
		world.sql("create index lure_%d on asked((coalesce(steward_vectors.cell('%s', '%s'::real[]), id)))" % (n, version_of(world, 'lure_%d' % n), query))
	assert near(version, query, [0, 1, 2], 5, **reader)
	world.sql('revoke all on asked from public')
	world.sql('drop index ' + steward)
	assert near(version, query, [0, 1, 2], 5, **reader) is None
	world.sql("create index mine on asked(steward_vectors.cell('%s', v), steward_vectors.code('%s', v))" % (version, version))
	if near(version, query, [0, 1, 2], 5, **reader) is not None:  # until the service has built another one
		world.sql('alter table asked rename column w to x')
	world.sql('drop table asked')
	with contextlib.suppress(psycopg2.Error):
		assert near(version, query, [0, 1, 2], 5, **reader) is None
	world.sql('create table private(id int, v real[])')
	world.built_vector('private', 'private')
	world.sql('insert into private select id, v from items limit 100')
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		cursor.execute('create role stranger login')
		version = version_of(world, 'private')
		cursor.execute('set session authorization stranger')
		for sql in ('select steward_vectors.near(%s, %s::real[], array[0, 1], 5)', 'select steward_vectors.near(%s, %s::real[], array[0, 1], 5) from pg_class'):
			with pytest.raises(psycopg2.errors.InsufficientPrivilege):
				cursor.execute(sql, (version, query))
		cursor.execute('reset session authorization')
		cursor.execute('grant select (id) on private to stranger')
		cursor.execute('set session authorization stranger')
		cursor.execute('select steward_vectors.near(%s, %s::real[], array[0, 1], 5)', (version, query))
		assert cursor.fetchone() == (None,)
		cursor.execute('reset session authorization')
		cursor.execute('grant select (v) on private to stranger')
		cursor.execute('set session authorization stranger')
		cursor.execute('select steward_vectors.near(%s, %s::real[], array[0, 1], 5)', (version, query))
		assert cursor.fetchone()[0]
		cursor.execute('reset session authorization; drop owned by stranger; drop role stranger')


def test_asked_while_the_table_changes(world):
	"""Whatever its owner does to the table and the index meanwhile: those who search have an answer or a plain refusal, and no session ends."""
	world.sql('create table restless(id int, v real[]) with (autovacuum_enabled = off)')
	world.sql('insert into restless select id, v from items')
	index = world.built_vector('restless', 'restless')
	faults, answers, stopping, query = [], [], threading.Event(), text(world.queries[0])

	def ask():
		with contextlib.closing(world.cluster.connect(user=READER, password=SECRET)) as c, c.cursor() as cursor:
			while not stopping.is_set():
				try:
					cursor.execute('select build from steward_search.indexes where name = %s', ('restless',))
					for version, in cursor.fetchall():
						cursor.execute(NEAR, (version, query, version, query, random.choice([1, 50, 10000])))
						cursor.execute("select count(*) from steward_search.vector('restless', %s::real[])", (query,))
						answers.append(cursor.fetchone()[0])
				except psycopg2.errors.ObjectNotInPrerequisiteState:
					pass  # the index is gone, or was just built again
				except psycopg2.Error as e:
					faults.append('%s %s' % (e.pgcode, e))
					return

	askers = [threading.Thread(target=ask) for _ in range(3)]
	for t in askers:
		t.start()
	try:
		for _ in range(2):
			name = 'steward_search_' + version_of(world, 'restless')
			for sql in ('update restless set v = (select array_agg(x * 1.01 order by o) from unnest(v) with ordinality u(x, o)) where id % 3 = 0', 'vacuum restless',
				    'reindex index concurrently ' + name, 'delete from restless where id % 2 = 0', 'vacuum full restless', 'reindex table restless',
				    'truncate restless', 'insert into restless select id, v from items', 'alter table restless rename v to w', 'alter table restless rename w to v',
				    'cluster restless using ' + name, 'drop index concurrently ' + name):
				world.sql(sql)
			until(lambda: version_of(world, 'restless') not in name and world.get(index)['status'] == 'READY', 120)
	finally:
		stopping.set()
		for t in askers:
			t.join(60)
	assert not faults and max(answers) == 10, faults
	assert world.recall('restless', world.queries) >= 0.95


def test_written_through_a_view(world):
	"""By somebody who has no privilege on the table itself."""
	world.sql('create table behind(id int, v real[])')
	world.built_vector('behind', 'behind', dimensions=2)
	world.sql('create view front as select * from behind')
	world.sql('grant insert on front to public')
	world.sql('revoke all on behind from public')
	world.sql("insert into front values (1, '{1,2}')", user=READER, password=SECRET)
	assert [h[0] for h in world.nearest('behind', [1, 2])] == [1]


def test_refusals(world):
	world.sql('create table kinds(id int, w float8[], t text, j jsonb, p point)')
	world.sql('create domain embedding as real[]')
	world.sql('alter table kinds add column d embedding')
	for table, path, fields, field in (
		('nothing', 'v', (), 'collectionName'), ('kinds', 'x', (), 'definition.fields[0].path'), ('kinds', 'w', (), 'definition.fields[0].path'),
		('kinds', 'd', (), 'definition.fields[0].path'), ('kinds', 'j', (), 'definition.fields[0].path'),
		('items', 'v', ['x'], 'definition.fields[1].path'), ('items', 'v', ['tag.x'], 'definition.fields[1].path'),
		('items', 'v', ['doc'], 'definition.fields[1].path'), ('items', 'v', ['v'], 'definition.fields[1].path')):
		refused(world.ask_vector('refused', table, path, fields=[{'type': 'filter', 'path': p} for p in fields]), 400, 'VALIDATION_ERROR', field)
	with pytest.raises(psycopg2.errors.InvalidParameterValue):
		world.count('items', {'text': {'query': 'a', 'path': 'v'}})
	world.built('words', 'items', {'tag': {'type': 'string'}})
	with pytest.raises(psycopg2.errors.WrongObjectType):
		world.nearest('words', world.queries[0])


def lists(world):
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		cursor.execute('select version from steward_vectors.lists')
		return {r[0] for r in cursor.fetchall()}


def test_a_changed_definition(world):
	"""It is built beside the old one, which answers meanwhile; afterwards nothing of that is left, nor of one that is deleted."""
	world.sql('create table changing(id int, v real[], w real[])')
	world.sql('insert into changing select id, v, v[1:3] from items')
	index, before = world.built_vector('changing', 'changing'), (world.indexes(), lists(world))
	place = '%s/%s' % (world.base, index)
	ok(world.server.patch(place, json={'definition': {'fields': [{'type': 'vector', 'path': 'w', 'numDimensions': 3, 'similarity': 'euclidean'}]}}))
	while True:
		document = world.get(index)
		assert document['queryable'] is True
		if document['status'] == 'READY':
			break
		with contextlib.suppress(psycopg2.errors.InvalidParameterValue, psycopg2.errors.ObjectNotInPrerequisiteState):
			assert len(world.nearest('changing', world.queries[0])) == 10
	assert len(world.nearest('changing', [1, 2, 3])) == 10
	until(lambda: len(world.indexes()) == len(before[0]) and world.indexes() != before[0], 120)
	until(lambda: len(lists(world)) == len(before[1]) and lists(world) != before[1], 60)
	assert world.server.delete(place).status_code == 204
	until(lambda: world.server.get(place).status_code == 404, 120)
	assert len(world.indexes()) == len(before[0]) - 1 and len(lists(world)) == len(before[1]) - 1
	with pytest.raises(psycopg2.errors.UndefinedObject):
		world.nearest('changing', [1, 2, 3])


def test_an_index_without_copies(world):
	"""As an older service has built it: it answers, and another one is built beside it."""
	world.sql('create table older(id int, v real[])')
	world.sql('insert into older select id, v from items')
	index = world.built_vector('older', 'older')
	version = version_of(world, 'older')
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		cursor.execute('update steward_vectors.lists set coding = null where version = %s', (version,))
	while version_of(world, 'older') == version:
		assert near_by(world, 'older', world.queries[0], 10) is None or version_of(world, 'older') != version
		assert [h[0] for h in world.nearest('older', world.queries[0])] == [i for _, i in exact(world, 'cosine', world.queries[0], 10)]
		assert world.get(index)['queryable'] is True
	until(lambda: world.get(index)['status'] == 'READY' and version not in lists(world), 120)
	assert near_by(world, 'older', world.queries[0], 10)


def test_what_nobody_divides_by(world):
	"""A restore brings back what a build had under way: its index, and what it has divided vectors by, also where it had begun no index yet."""
	ids = ['%024x' % n for n in range(1, 4)]
	world.sql('create table strewn(id int, v real[])')
	with contextlib.closing(engine(world)) as c, c.cursor() as cursor:
		for version in ids:
			cursor.execute("select steward_vectors.make(%s, 'strewn'::regclass, 'v', 'c', 3, 's')", (version,))
		cursor.execute("create index steward_build_%s on strewn(steward_vectors.cell('%s', v), steward_vectors.code('%s', v))" % ((ids[0],) * 3))
		cursor.execute("create index steward_search_%s on strewn(steward_vectors.cell('%s', v))" % ((ids[1],) * 2))
		cursor.execute("comment on index steward_search_%s is 'built by Steward (%s)'" % ((ids[1],) * 2))
	before = lists(world) - set(ids)
	until(lambda: lists(world) == before and not any(i[-24:] in ids for i in world.indexes()), 150, 'the end of the strays')
	world.sql('drop table strewn')


def test_a_hostile_owner(world):
	"""Functions and operators of the same names, in the way of names that are looked for."""
	world.sql('create table spied(who name)')
	world.sql('grant insert on spied to public')
	world.sql('create table lure(id int, v real[])')
	world.sql("insert into lure select n, array[n, 1, 2] from generate_series(1, 50) n")
	world.sql('''create function public.note() returns boolean language plpgsql as $$ begin insert into public.spied values (current_user); return true; end $$''')
	world.sql('''create function public.score("char", real[], real[]) returns float8 language plpgsql as $$ begin perform public.note(); return 1; end $$''')
	world.sql('''create function public.cardinality(real[]) returns int language plpgsql as $$ begin perform public.note(); return 1; end $$''')
	world.sql('''create function public.later(tid, tid) returns boolean language plpgsql as $$ begin perform public.note(); return true; end $$''')
	world.sql('create operator public.< (leftarg = tid, rightarg = tid, function = public.later)')
	index = world.built_vector('lure', 'lure', dimensions=3)
	with contextlib.closing(world.cluster.connect(user=READER, password=SECRET)) as c, c.cursor() as cursor:
		cursor.execute('set search_path = public, pg_catalog')
		cursor.execute("select count(*) from steward_search.vector('lure', '{1,1,2}')")
		assert cursor.fetchone() == (10,)
		world.sql('alter table lure alter v type float8[]')
		with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState):
			cursor.execute("select count(*) from steward_search.vector('lure', '{1,1,2}')")
	assert world.reached(index, 'STALE')['queryable'] is False
	assert world.sql('select count(*) from spied where who <> %s', USER) == [(0,)]
	world.sql('alter table lure alter v type real[]')
	world.reached(index, 'READY')


def test_what_the_planner_would_run(world):
	"""An immutable function with constants is evaluated by whoever plans a statement over the table: never the service, whose rights are all."""
	world.sql('create table planned(id int, v real[])')
	world.sql('insert into planned select id, v from items where id < 100')
	world.sql('create table ran(who name)')
	world.sql('grant insert on ran to public')
	world.sql("create function public.ran_by() returns void language sql as 'insert into public.ran values (current_user)'")
	world.sql('create function public.ran_in(int) returns int language plpgsql immutable as $$ begin perform public.ran_by(); return $1; end $$')
	world.sql('create index on planned ((id + public.ran_in(1))) where id > public.ran_in(-1)')
	world.sql('create statistics planned_s on id, (id + public.ran_in(2)) from planned')
	world.built_vector('planned', 'planned')
	assert world.nearest('planned', world.queries[0])
	assert world.sql('select count(*) > 0, count(*) filter (where who = %s) from ran', 'steward_engine') == [(True, 0)]


def test_a_table_that_grows(world):
	"""An index over an empty table is one cell; it is divided when there is something to divide, and answers meanwhile."""
	world.sql('create table grown(id int, v real[])')
	index = world.built_vector('grown', 'grown')
	world.sql('insert into grown select id, v from items')
	assert [h[0] for h in world.nearest('grown', world.queries[0])] == [i for _, i in exact(world, 'cosine', world.queries[0], 10)]
	build, = [r[0] for r in world.sql("select build from steward_search.indexes where name = 'grown'")]
	world.sql('insert into grown select id + 10000, v from items')
	world.sql('analyze grown')
	until(lambda: world.sql("select build from steward_search.indexes where name = 'grown'") != [(build,)] and world.get(index)['status'] == 'READY', 120)
	build, = [r[0] for r in world.sql("select build from steward_search.indexes where name = 'grown'")]
	assert world.sql('select count(distinct steward_vectors.cell(%s, v)) from grown', build)[0][0] > 40
	assert world.recall('grown', world.queries) >= 0.95 and world.get(index)['queryable'] is True


def test_writes_crash_and_failover(world):
	"""After each, what the index finds is held against the exact answer over the rows as they are."""
	world.sql('create table living(id int primary key, v real[], n int default 0) with (fillfactor = 60, autovacuum_enabled = off)')
	world.sql('insert into living select id, v from items')
	world.built_vector('living', 'living')
	assert world.recall('living', world.queries) >= 0.95
	for _ in range(3):  # rows whose entries in the index lead to their later versions
		world.sql('update living set n = n + 1')
		assert world.recall('living', world.queries) >= 0.95
	for _ in range(4):  # entries of deleted rows, more than are first looked at
		world.sql('update living set v = (select array_agg(x * 1.001 order by o) from unnest(v) with ordinality u(x, o))')
	assert world.recall('living', world.queries) >= 0.95 and len(near_by(world, 'living', world.queries[0], 200)) == 200
	world.sql('vacuum living')
	assert world.recall('living', world.queries) >= 0.95
	for at, v in enumerate(vectors(random.Random(5), COUNT + 130)[COUNT + 30:]):
		world.sql('insert into living values (%s, %s::real[])', COUNT + at, text(v))
	world.sql('delete from living where id % 3 = 0')
	world.sql('update living set v = (select i.v from items i where i.id = living.id + 1) where id % 3 = 1 and id < 3000')
	assert world.recall('living', world.queries) >= 0.95
	world.sql('vacuum living')
	world.sql('insert into living select id, v from items where id % 3 = 0')
	world.sql('vacuum full living')
	assert world.recall('living', world.queries) >= 0.95
	assert len(near_by(world, 'living', world.queries[0], 200)) == 200
	everything = {h[0] for h in world.nearest('living', world.queries[0], {'limit': 10000, 'numCandidates': 10000})}
	assert everything == {i for i, in world.sql('select id from living')}
	first = world.cluster.primary()
	os.kill(world.cluster.pid(first), signal.SIGKILL)
	until(lambda: world.cluster.primary() != first, 240)
	world.cluster.whole(3)
	assert world.recall('living', world.queries) >= 0.95
	assert {h[0] for h in world.nearest('living', world.queries[0], {'limit': 10000, 'numCandidates': 10000})} == everything
	world.sql('insert into living values (-1, %s::real[])', text(world.queries[0]))
	assert world.nearest('living', world.queries[0])[0][0] == -1
	standby = next(n for n in world.cluster.nodes() if n != world.cluster.primary())
	ask = "select document->>'id' from steward_search.vector('living', '%s')" % text(world.queries[0])
	until(lambda: world.cluster.ask(ask, standby) == world.cluster.ask(ask, world.cluster.primary()), 60)
	until(lambda: world.cluster.ask("select cardinality(steward_vectors.near(build, '%s', array[0, 1, 2, 3], 5)) from steward_search.indexes where name = 'living'" % text(
		world.queries[0]), standby) == [(5,)], 60)
