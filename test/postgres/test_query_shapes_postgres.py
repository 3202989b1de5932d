"""Query shapes of real servers: what clients send is counted, a rejected shape is refused on every node, whatever its literals,
parameters and lists, through failover and restart, and nothing else is. And what servers load is out of the users' reach."""
import concurrent.futures, contextlib, itertools, os, signal

import psycopg2
import pytest

import databases
from client import in_force, is_late, ok, refused
from databases import until

ONE = 'select * from goods where id = %d'
OTHER = 'select count(*) from goods where price > %d'


class World(databases.Cluster):
	def shapes(self, query=''):
		return ok(self.server.get(self.path + '/queryShapeInsights/summaries' + query))['summaries']

	def find(self, text):
		"""The shape that has all of these words."""
		found = [s for s in self.shapes() if all(w in s['queryShape'] for w in text.split())]
		return found[0] if found else None

	def set(self, hash_, status):
		change = lambda: self.server.patch('%s/queryShapes/%s' % (self.path, hash_), json={'status': status})
		answer = change()
		if is_late(answer):  # on a busy machine
			in_force(self.server, answer)
			answer = change()
		return answer

	def refuses(self, sql, node=None):
		try:
			self.ask(sql, node)
		except psycopg2.errors.InsufficientPrivilege as e:
			assert 'queries of this shape are rejected' in str(e), e
			return str(e)
		return None

	def service(self, node, sql):
		"""As the service itself asks: over the unix socket."""
		run = self.site.data / 'engine' / 'run' / str(self.nodes()[node]['slot'])
		c = psycopg2.connect(host=str(run), port=self.nodes()[node]['port'], user='steward_engine', dbname='postgres')
		try:
			with c.cursor() as cursor:
				cursor.execute(sql)
				return cursor.fetchall()
		finally:
			c.close()


@pytest.fixture(scope='module')
def world(start_place):
	place = start_place()
	databases.allow(place.server)
	w = World(place, 'shop', databases.shape(3))
	w.settled()
	w.ask('create table goods(id int primary key, price int); insert into goods select i, i from generate_series(1, 500) i')
	w.ask('create table stock(id int); insert into stock values (1)')
	until(lambda: all(w.ask('select count(*) from stock', n) == [(1,)] for n in w.nodes()), 60)
	for node in w.nodes():
		for i in range(4):
			w.ask(ONE % i, node)
		w.ask(OTHER % 7, node)
	w.ask('select distinct price from goods where id < 5')
	return w


def test_everything_is_loaded(world):
	for node in world.nodes():
		loaded, = world.service(node, "select current_setting('shared_preload_libraries')")[0]
		for name in ('pg_stat_statements', 'pg_qualstats', 'auto_explain', 'steward.so'):
			assert name in loaded, (node, loaded)
	# The service's log names nothing that is missing.
	assert ' lacks ' not in world.server.stderr


def test_summaries(world):
	one, other = world.find('goods where id ='), world.find('count goods')
	assert one['command'] == 'find' and one['namespace'] == 'postgres.goods' and one['execCount'] == 12
	assert one['docsReturned'] == 9, 'three of the four ids are there, on each of three nodes'
	assert 'where id = $1' in one['queryShape'] and one['totalWorkingMillis'] > 0 and one['lastExecMicros'] > 0
	assert 0 < one['p50ExecMicros'] <= one['p99ExecMicros'] < 60e6
	assert other['command'] == 'aggregate' and other['execCount'] == 3
	assert world.find('distinct price')['command'] == 'distinct'
	assert not [s for s in world.shapes() if 'pg_' in s['queryShape'] or 'steward' in s['queryShape']], "the service's own are not"
	process = ok(world.server.get('/groups/%s/processes' % world.server.group))['results'][0]['id']
	single = [s for s in world.shapes('?processIds=' + process) if s['queryShapeHash'] == one['queryShapeHash']]
	assert single[0]['execCount'] == 4


def test_details(world):
	hash_ = world.find('goods where id =')['queryShapeHash']
	doc = ok(world.server.get('%s/queryShapeInsights/%s/details' % (world.path, hash_)))
	assert doc['queryStats']['execCount'] == 12 and doc['firstSeen']['timestamp'] <= doc['lastSeen']['timestamp']
	refused(world.server.get('%s/queryShapeInsights/%s/details' % (world.path, '0' * 64)), 404)


def test_literals_parameters_and_lists_are_one(world):
	for sql in ('select * from stock where id in (1)', 'select * from stock where id in (1, 2, 3)',
		    'prepare one as select * from stock where id in ($1, $2); execute one(1, 2)'):
		world.ask(sql)
	found = [s for s in world.shapes() if 'stock where id' in s['queryShape']]
	assert len(found) == 1 and found[0]['execCount'] == 3


CARRIERS = {'by_prepared': 'prepare "as q" (int) as %s; execute "as q"(1)', 'by_declared': 'begin; declare c cursor for %s; fetch all from c',
	    'by_explained': 'explain (analyze, costs off) %s', 'by_created': 'create temp table t as %s', 'by_copied': 'copy (%s) to stdout'}


def test_the_text_of_a_shape_is_the_query(world):
	"""And not the command that carried it, where that was the first to bring it to the node."""
	for table, carrier in CARRIERS.items():
		query = 'select id from %s where id > ' % table
		world.ask('create table %s(id int)' % table)
		try:
			world.ask(carrier % (query + ('$1' if table == 'by_prepared' else '5')))
		except psycopg2.ProgrammingError as e:  # the driver has another call for what COPY sends
			assert table == 'by_copied', e
		world.ask(query + '7')
		texts = [s['queryShape'] for s in world.shapes() if s['namespace'] == 'postgres.' + table]
		assert texts == [query + '$1'], carrier


def test_a_rejected_shape_is_refused_everywhere(world):
	"""And nothing else: on every node, whatever the literals, also prepared, in sessions that were there before."""
	one = world.find('goods where id =')
	before = {n: world.connect(n) for n in world.nodes()}
	with before[world.primary()].cursor() as c:
		c.execute('prepare old as select * from goods where id = $1')
		c.execute('execute old(1)')
	doc = ok(world.set(one['queryShapeHash'], 'REJECTED'))
	assert doc['status'] == 'REJECTED' and doc['command'] == 'FIND' and doc['namespace'] == 'postgres.goods'
	for node in world.nodes():
		with before[node].cursor() as c, pytest.raises(psycopg2.errors.InsufficientPrivilege):
			c.execute(ONE % 77)
		assert one['queryShapeHash'] in world.refuses(ONE % 3, node), 'the refusal names the shape'
		assert world.ask(OTHER % 3, node) and world.ask('select 1', node) == [(1,)]
		assert world.ask('explain ' + ONE % 3, node), 'nothing is executed'
	with before[world.primary()].cursor() as c, pytest.raises(psycopg2.errors.InsufficientPrivilege):
		c.execute('execute old(1)')
	# Query ids that no node has seen before: a parameter, another type, a cursor.
	assert world.refuses("prepare fresh as select * from goods where id = $1; execute fresh(5)")
	assert world.refuses('SELECT  *  FROM goods WHERE id = 5::bigint - 1') is None, 'an expression is another shape'
	assert world.refuses('begin; declare c cursor for select * from goods where id = 9; fetch c')
	assert world.refuses('create table copied as select * from goods where id = 9')
	assert world.refuses('copy (select * from goods where id = 9) to stdout') and world.refuses('explain analyze ' + ONE % 8)
	assert world.ask('create table copied as select * from goods where price = 9; select * from copied') == [(9, 9)]
	for c in before.values():
		c.close()
	r = world.server.get('%s/queryShapes/%s' % (world.path, one['queryShapeHash']))
	assert ok(r)['status'] == 'REJECTED' and int(r.headers['X-Steward-Refusals']) >= 9
	assert [s['queryShapeHash'] for s in ok(world.server.get(world.path + '/queryShapes'))['results']] == [one['queryShapeHash']]


def test_inside_of_other_commands(world):
	"""Query ids that no node has seen, since each list is longer than all before: the text tells."""
	lengths = itertools.count(5)

	def fresh():
		return 'select * from stock where id in (%s)' % ', '.join(map(str, range(next(lengths))))
	hash_ = world.find('stock where id in')['queryShapeHash']
	ok(world.set(hash_, 'REJECTED'))
	for how in ('%s', '/* a /* nested */ one */ %s', 'explain analyze %s', 'explain (analyze, format json) %s', 'explain analyze verbose (%s)',
		    'explain /* "( */ (analyze, costs off) -- (\n %s', 'select 1; explain analyze %s; select 2', 'copy (%s) to stdout',
		    "copy (%s limit 'x' /* ) ' */) to stdout (delimiter ')')", "copy /* ( */ (%s) to stdout with (format csv, quote '(')",
		    "do $$ begin execute '%s'; end $$", "create table copied_too as %s", 'prepare p1 as %s; explain analyze execute p1',
		    'prepare p2 /* x as y /* as */ */ as %s; execute p2', 'explain analyze create table copied_too as %s',
		    'begin; declare "c for" cursor for %s; fetch "c for"',
		    'create function asks() returns setof stock language sql as $$ %s $$; select * from asks()'):
		if 'limit' in how:  # another shape: what is cut out must be whole, for the server to find the fault in it
			with pytest.raises(psycopg2.errors.InvalidTextRepresentation):
				world.ask(how % fresh())
		else:
			assert world.refuses(how % fresh()), how
	many = 'select * from stock where id in (%s)' % ', '.join(map(str, range(30000)))
	assert world.refuses(many) and world.refuses('explain analyze ' + many + ' ')
	assert world.ask('explain analyze select count(*) from stock') and world.ask("do $$ begin execute 'select count(*) from stock'; end $$") is None
	ok(world.set(hash_, 'UNREJECTED'))
	assert world.refuses('explain analyze ' + fresh()) is None


def test_it_outlives_a_new_table(world):
	"""The same text over a table that was made anew has another query id."""
	world.ask('create table brief(id int)')
	world.ask('select * from brief where id = 1')
	hash_ = world.find('brief where id')['queryShapeHash']
	ok(world.set(hash_, 'REJECTED'))
	world.ask('drop table brief; create table brief(id int)')
	assert world.refuses('select * from brief where id = 2')
	ok(world.set(hash_, 'UNREJECTED'))
	assert world.refuses('select * from brief where id = 2') is None


def test_failover_and_restart(world):
	old = world.primary()
	os.kill(world.pid(old), signal.SIGKILL)
	until(lambda: world.primary() != old, 60)
	world.whole(3)
	for node in world.nodes():
		assert world.refuses(ONE % 1, node), node
		assert world.ask(OTHER % 1, node)
	world.site.server.kill()
	world.site.start()
	world.whole(3)
	assert all(world.refuses(ONE % 2, n) for n in world.nodes())


def test_taken_back(world):
	hash_ = ok(world.server.get(world.path + '/queryShapes'))['results'][0]['queryShapeHash']
	assert ok(world.set(hash_, 'UNREJECTED'))['status'] == 'UNREJECTED'
	for node in world.nodes():
		assert world.ask(ONE % 4, node) == [(4, 4)]
	assert ok(world.server.get(world.path + '/queryShapes'))['results'] == []


def test_latency_of_tables(world):
	"""Calls and times for each table: reads, writes, commands."""
	def rows():
		found = world.service(world.primary(), """select c.relname, kind, calls, total_us, buckets from steward.table_latency() t
			join pg_class c on c.oid = relid join pg_database d on d.oid = dbid and datname = 'postgres'""")
		return {(r[0], r[1]): r[2:] for r in found}
	world.ask('create table timed(id int) partition by range (id); create table timed_1 partition of timed for values from (0) to (9)')
	world.ask('insert into timed values (1); insert into timed values (2)')
	world.ask('update timed set id = 3 where id = 2')
	world.ask('select * from timed; select * from timed a join timed b using (id) join stock s using (id)')
	world.ask('analyze timed; lock table timed')
	found = rows()
	assert [found['timed', k][0] for k in 'rwc'] == [2, 3, 2]
	assert found['stock', 'r'][0] >= 1 and ('timed_1', 'r') not in found
	for calls, total, buckets in found.values():
		assert len(buckets) == 85 and sum(buckets) == calls and total >= 0
	assert found['timed', 'w'][1] > 0
	since, lost = world.service(world.primary(), 'select steward.since() <= now(), (select sum(count) from steward.lost())')[0]
	assert since and lost == 0


def test_names_that_are_no_text(world):
	"""A user's database may have any bytes in names, statements and settings: nothing fails for others, and all answers are JSON."""
	world.ask("create database odd encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0")
	world.ask('alter database odd set extra_float_digits = -15')
	c = world.connect(database='odd')
	c.set_client_encoding('SQL_ASCII')
	with c.cursor() as cursor:
		for statement in (b'create table "odd\xff"(id int)', b'create schema "s\xe9"', b'create database "also\xfe"'):
			cursor.execute(statement)
		cursor.execute(b'select id as "n\xfc" from "odd\xff" where id = 7')
	c.close()
	until(lambda: [s for s in world.shapes() if s['namespace'] == 'odd.odd?'], 60)
	assert ok(world.server.get('%s/queryShapeInsights/%s/details' % (world.path, world.shapes()[0]['queryShapeHash'])))
	process = ok(world.server.get('/groups/%s/processes' % world.server.group))['results'][0]['id']
	path = '/groups/%s/processes/%s/databases' % (world.server.group, process)
	until(lambda: {'odd', 'also?'} <= {d['databaseName'] for d in ok(world.server.get(path))['results']}, 60, 'the databases')
	ok(world.server.get('/groups/%s/clusters/shop/PRIMARY/collStats/namespaces' % world.server.group))
	assert 'damaged' not in world.server.stderr and 'no UTF-8' not in world.server.stderr


def test_out_of_reach(world):
	"""Users can neither read the figures nor change what the module does."""
	for sql in ('select * from steward.table_latency()', 'select * from steward.statements()', 'select * from steward.refusals()',
		    'select * from steward.pg_stat_statements', 'select steward.pg_stat_statements_reset()',
		    'select * from steward.pg_qualstats', "set steward.refused = ''", "alter system set steward.refused = ''",
		    "set pg_stat_statements.track = 'none'", 'set compute_query_id = off', "set dynamic_library_path = '/tmp'",
		    "create function mine() returns void language c as 'steward', 'steward_lost'", "load 'steward'",
		    'create extension pg_stat_statements schema public', 'create extension pg_qualstats schema public',
		    'alter role current_user set compute_query_id = off'):
		with pytest.raises(psycopg2.Error) as e:
			world.ask(sql)
		assert e.value.pgcode in ('42501', '55P02', '0A000', '42710'), (sql, e.value.pgcode, str(e.value))


def test_shards_behind_a_router(start_place, world):
	"""Rejected on the router, where clients come; by its own tables' ids."""
	w = World(world.site, 'wide', databases.shape(1, shards=2))
	w.settled()
	router, = [n for n, x in w.nodes().items() if x['kind'] == 3]
	w.ask('create table goods(id int, price int)', router)
	w.ask(ONE % 1, router)
	hash_ = w.find('goods where id =')['queryShapeHash']
	assert world.find('goods where id =')['queryShapeHash'] == hash_, 'the same shape as elsewhere'
	ok(w.set(hash_, 'REJECTED'))
	assert w.refuses(ONE % 2, router)
	assert world.refuses(ONE % 2) is None, 'of this cluster alone'


def plans_of_a_shape(w, place):
	"""The plans of its slow executions, each once, as they changed."""
	ok(place.server.delete('/groups/%s/managedSlowMs/disable' % place.server.group), 204)  # 100 ms, whatever others take
	w.ask('create table far as select n, n % 7 as seven from generate_series(1, 30000) n; create index far_n on far(n); analyze far')
	slow = 'select count(pg_sleep(0.3)) from far where n = %d'

	def plans(count):
		place.server.advance(301)
		hash_ = w.find('pg_sleep far n')['queryShapeHash']
		found = until(lambda: (lambda l: len(l) == count and l)(ok(place.server.get(
			'%s/queryShapeInsights/%s:plans' % (w.path, hash_)))['plans']), 60, 'the plans')
		return hash_, found
	w.ask(slow % 7)
	w.ask(slow % 8)
	_, (one,) = plans(1)
	assert 'using far_n on public.far' in one['plan'] and '7' not in one['plan'] and one['count'] == 2
	assert one['maxMillis'] >= one['avgMillis'] >= 300 and one['firstUsed'] <= one['lastUsed']
	w.ask('drop index far_n')
	w.ask(slow % 9)
	hash_, (now, before) = plans(2)
	assert before['plan'] == one['plan'] and 'Seq Scan on public.far' in now['plan'] and now['count'] == 1
	refused(place.server.anonymous.get('%s/queryShapeInsights/%s:plans' % (w.path, hash_)), 401)
	refused(place.server.get('%s/queryShapeInsights/abc:plans' % w.path), 404)
	assert ok(place.server.get('%s/queryShapeInsights/%s:plans' % (w.path, 'a' * 64)))['plans'] == []


def test_a_period_outlives_its_servers(start_place):
	"""What was counted is kept by periods, through a crash of the servers and the service; figures without a period begin anew."""
	place = start_place(clock='virtual')
	databases.allow(place.server)
	w = World(place, 'kept', databases.shape(1))
	w.settled()
	w.ask('create table goods(id int primary key, price int)')
	since = int(w.ask('select extract(epoch from clock_timestamp()) * 1000')[0][0])
	calls = lambda query: sum(s['execCount'] for s in w.shapes(query) if 'goods where price <' in s['queryShape'])
	period = '?since=%d' % since

	def some(count):
		for n in range(count):
			w.ask('select id from goods where price < %d' % n)
	some(4)
	place.server.advance(301)
	until(lambda: place.server.rows("SELECT count(*) FROM doc WHERE kind = 'shape_period'")[0][0], 60)
	some(3)
	until(lambda: calls(period) == 7, 30)
	assert calls('') == 7 and calls('?until=%d' % (since - 3600000)) == 0
	place.server.advance(301)
	until(lambda: place.server.rows("SELECT max(rev) FROM doc WHERE kind = 'shape_counts'")[0][0] > 1, 60)
	place.server.kill()
	for node in w.nodes():
		os.kill(w.pid(node), signal.SIGKILL)
	place.start()
	until(w.writable, 120, 'the servers')
	some(2)
	until(lambda: calls(period) == 9, 60)
	assert calls('') == 2
	plans_of_a_shape(w, place)
	answer = place.server.get(w.path + '/queryShapeInsights/summaries' + period)
	assert answer.headers['X-Steward-Since'] < answer.headers['X-Steward-Until']


def test_no_constant_of_what_ran_long(start_place):
	"""The server forgets a statement that others push out while it runs, and then keeps its text as the client has sent it."""
	place = start_place()
	databases.allow(place.server)
	w = World(place, 'busy', databases.shape(1))
	w.settled()
	w.ask("create table people(ssn text, age int); insert into people values ('123-45-6789', 4243)")
	functions = ('abs', 'ceil', 'floor', 'round', 'sign', 'trunc')
	with contextlib.closing(w.connect()) as others, concurrent.futures.ThreadPoolExecutor(1) as pool:
		others.cursor().execute('select pg_advisory_lock(7)')
		slow = pool.submit(w.ask, "select pg_advisory_lock(7), age from people where ssn = '123-45-6789' and age > 4242")
		until(lambda: w.ask("select count(*) from pg_locks where locktype = 'advisory' and not granted") == [(1,)], 60)
		for some in itertools.product(functions, repeat=2):
			others.cursor().execute(';'.join('select %s(1.5)))))' % '('.join(some + more) for more in itertools.product(functions, repeat=3)))
		others.cursor().execute('select pg_advisory_unlock(7)')
		assert slow.result(60)[0][1] == 4243
	kept, = w.service(w.primary(), "select query from steward.pg_stat_statements where query ~ 'from people'")
	assert '123-45-6789' in kept[0], 'the server itself has it'
	shown = until(lambda: w.find('people ssn age'), 60)
	assert shown['queryShape'] == 'select pg_advisory_lock($1), age from people where ssn = $2 and age > $3'
