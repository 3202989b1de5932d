"""Federated instances through the engine's own operations (engine/federation.h), over clusters that it has made: who reads what, what is
pushed down, what is counted and bounded, and what is left when servers and services are killed."""
import contextlib, json, os, pathlib, shutil, signal, subprocess, tempfile

import psycopg2
import pytest

import client
from client import until

BUILD = pathlib.Path(client.binary()).parent
PROGRAM, MODULE = BUILD / 'test/federation_engine', BUILD / 'src/module/steward.so'
FIRST, SECOND, INSTANCE = '65f0000000000000000000a1', '65f0000000000000000000a3', '65f0000000000000000000f1'
USERS = ('boss', 'writer', 'app reader', 'app"writer', "o'ne")


class Place:
	"""A service at a time: each call is one that begins, does one thing, and ends."""

	def __init__(self, folder):
		(folder / 'src/module').mkdir(parents=True)
		shutil.copy(PROGRAM, folder / PROGRAM.name)
		shutil.copy(MODULE, folder / 'src/module')  # beside the program, as it was built
		self.program = folder / PROGRAM.name
		self.dir = pathlib.Path(tempfile.mkdtemp(prefix='steward-pg-', dir='/tmp'))
		self.clusters = {}

	def start(self, *args):
		return subprocess.Popen([self.program, 'at', self.dir, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

	def run(self, *args):
		process = self.start(*args)
		out, err = process.communicate(timeout=300)
		return subprocess.CompletedProcess(args, process.returncode, out, err.strip())

	def cluster(self, id, nodes='1'):
		made = self.run('cluster', id, nodes)
		assert made.returncode == 0, made.stderr
		host, port = made.stdout.split()
		self.clusters[id] = {'host': host, 'port': port}

	def connect(self, where, user='boss', database='postgres'):
		return psycopg2.connect(**where, user=user, password='correct horse', dbname=database, sslmode='require', connect_timeout=10)

	def sql(self, where, text, user='boss', database='postgres'):
		with contextlib.closing(self.connect(where, user, database)) as connection:
			connection.autocommit = True
			with connection.cursor() as cursor:
				cursor.execute(text)
				return cursor.fetchall() if cursor.description else None

	def close(self):
		ended = [self.run('destroy', json.dumps({"id": INSTANCE}))] + [self.run('drop', id) for id in self.clusters]
		left = list((self.dir / 'engine').glob('65f*')) + list((self.dir / 'engine/federation').glob('*'))
		shutil.rmtree(self.dir)
		assert all(e.returncode == 0 for e in ended), [e.stderr for e in ended]
		assert not left


class Instance:
	generation = 0

	def __init__(self, place):
		self.place = place

	def wish(self, **more):
		return {'id': INSTANCE, 'stores': [{'name': 'first', 'cluster': FIRST}, {'name': 'second', 'cluster': SECOND}], **more}

	def apply(self, part=None, **more):
		Instance.generation += 1
		done = self.place.run('apply', json.dumps({**self.wish(**more), 'generation': Instance.generation}))
		assert done.returncode == 0, done.stderr
		assert (part in done.stderr) if part else done.stderr == '', done.stderr
		status = self.ask('observe')[0]
		assert status['exists'] and status['running'] and status['generation'] == Instance.generation
		self.at = {'host': status['address'], 'port': status['port']}

	def ask(self, command, **more):
		done = self.place.run(command, json.dumps(self.wish(**more)))
		assert done.returncode == 0, done.stderr
		return [json.loads(line) for line in done.stdout.splitlines()]

	def sql(self, text, user='boss', database='shop'):
		return self.place.sql(self.at, text, user, database)

	def fails(self, text, user='boss', database='shop'):
		with pytest.raises(psycopg2.Error) as failed:
			self.sql(text, user, database)
		return str(failed.value).strip()

	def plan(self, text):
		return '\n'.join(line for (line,) in self.sql('explain (verbose, costs off) ' + text))


def table(name, *sources, database='shop', **more):
	return {'database': database, 'name': name, 'sources': [dict(zip(('store', 'database', 'table'), s)) if isinstance(s, tuple) else s for s in sources], **more}


TABLES = [table('orders', (0, 'app', 'orders')), table('clients', (1, 'app', 'clients')), table('secrets', (0, 'app', 'secrets')),
	table('solo', (0, 'app', 'solo')), table('all_orders', (0, 'app', 'orders'), (1, 'app', 'old.orders')), table('typed', (0, 'app', 'typed'))]


@pytest.fixture(scope='module')
def place(tmp_path_factory):
	if not PROGRAM.exists() or not MODULE.exists():
		pytest.skip('federation_engine or steward.so is not built')
	p = Place(tmp_path_factory.mktemp('programs'))
	p.cluster(FIRST)
	p.cluster(SECOND)
	first, second = p.clusters[FIRST], p.clusters[SECOND]
	p.sql(first, "create table orders (id bigint primary key, client int, amount numeric(10, 2), word text, at timestamptz)", database='app')
	p.sql(first, "insert into orders select n, n %% 100, n * 1.5, repeat('x', 100), '2025-01-01Z' from generate_series(1, 20000) n".replace('%%', '%'), database='app')
	p.sql(first, "create table solo (n int); insert into solo values (1); create table secrets (word text); insert into secrets values ('hidden')", database='app')
	p.sql(first, "create type mood as enum ('sad'); create domain price as numeric(6, 2); "
		"create table typed (id int, m mood, p price, l int[], j jsonb, \"odd \"\"name\" varchar(10))", database='app')
	p.sql(first, "insert into typed values (1, 'sad', 2.5, '{1,2}', '{\"a\": 1}', 'it''s')", database='app')
	p.sql(second, "create table clients (id int, name text); insert into clients select n, 'client ' || n from generate_series(0, 99) n", database='app')
	p.sql(second, "create schema old", database='app')
	p.sql(second, "create table old.orders (id bigint, client int, amount numeric(10, 2), word text, gone int)", database='app')
	p.sql(second, "insert into old.orders values (-1, 5, 10, 'old', 0)", database='app')
	yield p
	p.close()


@pytest.fixture
def instance(place):
	i = Instance(place)
	i.apply(tables=TABLES)
	return i


def test_clusters_are_read_together(instance):
	assert instance.sql('select count(*), sum(amount) from orders') == [(20000, 20000 * 20001 // 2 * 3 / 2)]
	assert instance.sql('select c.name, count(*) from orders o join clients c on c.id = o.client where o.id <= 500 and c.id = 7 group by 1') == [('client 7', 5)]
	# Several sources: the columns that all have.
	assert instance.sql('select count(*), min(id) from all_orders') == [(20001, -1)]
	assert [c for (c,) in instance.sql("select attname from pg_attribute where attrelid = 'all_orders'::regclass and attnum > 0 order by attnum")] == ['id', 'client', 'amount', 'word']
	# What the endpoint does not know is left out, and the rest is as it was.
	assert instance.sql('select * from typed') == [(1, 2.5, [1, 2], {'a': 1}, "it's")]
	assert instance.sql('select "odd ""name" from typed where p = 2.5 and l @> array[2] and j @> \'{"a": 1}\'') == [("it's",)]


def test_the_clusters_do_their_part(instance):
	aggregate = instance.plan("select client, count(*), sum(amount) from orders where at >= '2025-01-01' group by 1")
	assert 'Remote SQL: SELECT client, count(*), sum(amount) FROM public.orders WHERE' in aggregate and 'GROUP BY 1' in aggregate
	assert 'LIMIT' in instance.plan('select id from orders where client = 5 order by id limit 3')
	assert 'SELECT id FROM public.orders' in instance.plan('select id from orders')  # that column alone


def test_everybody_reads_as_themselves(instance):
	# By the endpoint's names, and by the cluster's own rights.
	assert 'permission denied' in instance.fails('select * from orders', user="o'ne")
	instance.apply(tables=TABLES + [table('orders', (0, 'app', 'orders'), database='app'), table('solo', (0, 'app', 'solo'), database='app')])
	assert instance.sql('select count(*) from orders', user='app reader', database='app') == [(20000,)]
	assert instance.sql('select * from solo', user="o'ne", database='app') == [(1,)]
	assert 'permission denied' in instance.fails('select * from orders', user="o'ne", database='app')
	assert 'permission denied' in instance.fails('select 1', user='app reader', database='shop')
	assert instance.sql('select count(*) from orders', user='app"writer', database='app') == [(20000,)]
	# Who may read it here, and not there: the cluster refuses, and sees who it is.
	first = instance.place.clusters[FIRST]
	instance.place.sql(first, "create table whose (who name); alter table whose enable row level security; create policy own on whose using (who = current_user); "
		"insert into whose values ('writer'), ('app reader'); create view me as select current_user who", user='writer', database='app')
	instance.apply(tables=[table(t, (0, 'app', t), database='app') for t in ('whose', 'orders', 'me')])
	assert instance.sql('select who from whose', user='app reader', database='app') == [('app reader',)]
	for user in ('boss', 'writer', 'app reader', 'app"writer'):
		assert instance.sql('select who from me', user=user, database='app') == [(user,)]
	instance.place.sql(first, 'revoke select on orders from "steward:r:app", "steward:any:r"', user='writer', database='app')
	assert 'permission denied for table orders' in instance.fails('select * from orders', user='app reader', database='app')
	instance.place.sql(first, 'grant select on orders to "steward:r:app", "steward:any:r"', user='writer', database='app')


def test_nothing_is_written(instance):
	for statement in ('insert into orders (id) values (0)', 'update orders set amount = 0', 'delete from orders', 'truncate orders', 'drop foreign table orders',
			'create table mine (n int)', 'create schema mine', 'create view mine as select 1', 'create function mine() returns int language sql as $$select 1$$',
			'alter foreign table orders add column n int', "alter foreign table orders options (set table_name 'secrets')", 'create database mine',
			'insert into all_orders (id) values (0)', 'import foreign schema public from server s0_0 into public'):
		for user in USERS:
			assert any(w in instance.fails(statement, user=user) for w in ('permission denied', 'must be owner', 'cannot')), statement
	assert instance.place.sql(instance.place.clusters[FIRST], 'select count(*), sum(amount) from orders', database='app')[0][0] == 20000


def test_no_user_makes_a_way_of_their_own(instance):
	servers = [s for (s,) in instance.sql('select srvname from pg_foreign_server')]
	assert len(servers) == 2
	for user in ('boss', 'writer'):
		for statement in ("create server mine foreign data wrapper steward_cluster options (host '/tmp')", "create server mine foreign data wrapper postgres_fdw options (host '/tmp')",
				"create user mapping for current_user server %s options (user 'steward_engine', password_required 'false')" % servers[0],
				"create user mapping for public server %s options (user 'steward_engine')" % servers[0],
				"alter user mapping for current_user server %s options (set user 'steward_engine')" % servers[0], 'drop user mapping for current_user server %s' % servers[0],
				"alter server %s options (set host '127.0.0.1')" % servers[0], 'create foreign table pg_temp.mine (n int) server %s' % servers[0],
				"create foreign table mine (n int) server %s options (table_name 'secrets')" % servers[0], 'create extension dblink', 'create extension file_fdw',
				'create foreign data wrapper mine handler steward.cluster_handler', 'select steward.cluster_handler()', 'set role steward_engine',
				'set session authorization steward_engine', "copy orders to program 'id'", "copy orders to '/tmp/x'", "select pg_read_file('postgresql.conf')"):
			instance.fails(statement, user=user)
		# Nobody's name at a cluster but one's own, and no secret anywhere.
		mappings = instance.sql('select umoptions from pg_user_mappings where usename <> current_user', user=user)
		assert mappings and all(m == (None,) for m in mappings)
		assert 'permission denied' in instance.fails('select * from pg_user_mapping', user=user)
		assert 'password' not in str(instance.sql('select srvoptions from pg_foreign_server', user=user))
	# The roles that endpoints come by are nobody's way in: not from the network, and not by a password that one of them was given.
	first = instance.place.clusters[FIRST]
	[(shadow,)] = instance.place.sql(first, "select r.rolname from pg_roles r join pg_auth_members m on m.member = r.oid join pg_roles o on o.oid = m.roleid where o.rolname = 'writer'")
	assert shadow.startswith('steward_as_')
	with pytest.raises(psycopg2.OperationalError, match='rejects connection'):
		instance.place.connect(first, user=shadow)
	# Nor are they anybody in another cluster, which may have the socket of one that is gone.
	assert instance.place.sql(instance.place.clusters[SECOND], "select count(*) from pg_roles where rolname = '%s'" % shadow) == [(0,)]
	assert instance.place.sql(instance.place.clusters[SECOND], "select count(*) from pg_roles where rolname ~ '^steward_as_'") == [(len(USERS),)]
	# What a tenant plants on a cluster runs there as who reads it, and becomes nobody else.
	instance.place.sql(first, "create function plant() returns name language plpgsql volatile as $$ begin set role boss; return current_user; exception when others then return session_user; end $$; "
		"create view planted as select plant() who", user='writer', database='app')
	instance.apply(tables=[table('planted', (0, 'app', 'planted'))])
	assert 'boss' not in str(instance.sql('select who from planted', user='writer'))
	instance.place.sql(first, 'drop view planted; drop function plant()', user='writer', database='app')


def test_what_one_cannot_lose_is_told_in_part(instance):
	instance.apply(part='no table nowhere in app', tables=TABLES + [table('lost', (0, 'app', 'nowhere'))])
	assert instance.sql('select count(*) from orders') == [(20000,)]
	instance.apply(part='cannot be read here', stores=[{'name': 'first', 'cluster': FIRST}, {'name': 'bucket', 'kind': 1}], tables=TABLES[:1])
	instance.apply(part='another host', stores=[{'name': 'first', 'cluster': FIRST}, {'name': 'gone', 'cluster': '65f0000000000000000000a9'}], tables=TABLES[:1])
	assert instance.sql('select count(*) from orders') == [(20000,)]


def test_wildcards_and_databases(instance):
	instance.apply(tables=[table('*', {'store': 0, 'database': 'app', 'tablePattern': '^(orders|solo)$'}, max=10), table('*', {'store': 1, 'databasePattern': '^app$'}, database='*', max=10)],
		databases=['empty', 'shop'])
	assert instance.sql("select relname from pg_class where relkind = 'f' order by 1") == [('orders',), ('solo',)]
	assert instance.sql('select count(*) from old.orders', database='app') == [(1,)] and instance.sql('select count(*) from clients', database='app', user='app reader') == [(100,)]
	assert {d for (d,) in instance.sql("select datname from pg_database where not datistemplate")} == {'postgres', 'empty', 'shop', 'app'}
	instance.apply(part='more than 1 tables', tables=[table('*', {'store': 0, 'database': 'app'}, max=1)])
	instance.apply(tables=TABLES)
	assert {d for (d,) in instance.sql("select datname from pg_database where not datistemplate")} == {'postgres', 'shop'}


def test_views(instance):
	def view(name, source, *pipeline):
		return {'database': 'shop', 'name': name, 'source': source, 'pipeline': json.dumps(pipeline)}

	views = [view('few', 'large', {'$sort': {'id': -1}}, {'$skip': 1}, {'$limit': 2}),
		view('large', 'orders', {'$match': {'id': {'$gt': 19000}, 'client': 5}}, {'$project': {'id': 1, 'whose': '$client', 'amount': 1}}),
		view('short', 'all_orders', {'$project': {'word': 0}})]
	instance.apply(tables=TABLES, views=views)
	assert instance.sql('select count(*), min(whose), max(id) from large') == [(10, 5, 19905)]
	assert instance.sql('select id from few') == [(19805,), (19705,)]
	assert [c for (c,) in instance.sql("select attname from pg_attribute where attrelid = 'short'::regclass and attnum > 0 order by attnum")] == ['id', 'client', 'amount']
	assert 'SELECT id, client FROM public.orders WHERE ((id < 19500))' in instance.plan('select id from large where id < 19500')
	assert 'permission denied' in instance.fails('select * from large', user='app reader')
	instance.apply(part='view shop.bad: pipeline[0]: nothing is no column', tables=TABLES, views=[view('bad', 'orders', {'$sort': {'nothing': 1}})])
	instance.apply(part='view shop.bad: nowhere is not there', tables=TABLES, views=[view('bad', 'nowhere')])
	instance.apply(part='there is a table of that name', tables=TABLES, views=[view('solo', 'orders')])
	instance.apply(part='is no stage', tables=TABLES, views=[view('bad', 'orders', {'$out': 'x'})])


def test_bytes_are_counted_and_bounded(instance):
	before = instance.ask('used')[0]
	rows = instance.sql('select word from orders where id <= 1000')
	after = instance.ask('used')[0]
	read = after['bytes'][1] - before['bytes'][1]
	assert len(rows) == 1000 and 100000 < read < 120000 and after['queries'] - before['queries'] == 1
	assert after['bytes'][1:] == after['project'][1:] and after['bytes'][3] >= after['bytes'][1] >= after['bytes'][0] >= read
	# Pushed down, it is one row.
	instance.sql('select count(*) from orders')
	assert 0 < instance.ask('used')[0]['bytes'][1] - after['bytes'][1] < 100
	[told] = [line for (line,) in instance.sql('explain (analyze, costs off, timing off) select word from orders where id <= 1000') if 'Bytes Read' in line]
	assert told.strip() == 'Bytes Read: %d' % read
	after = instance.ask('used')[0]
	# A query that is over its limit ends; whatever carries it.
	instance.ask('bound', limits=[{'span': 0, 'bytes': 50000}])
	for statement in ('select word from orders', 'copy (select word from orders) to stdout', 'explain analyze select word from orders',
			'create temp table t as select word from orders', "do $$ declare r record; begin for r in select word from orders loop end loop; end $$"):
		if statement.startswith('copy'):
			with contextlib.closing(instance.place.connect(instance.at, database='shop')) as c, c.cursor() as cursor, pytest.raises(psycopg2.Error, match='limit of 50000 bytes for a query'):
				cursor.copy_expert(statement, open(os.devnull, 'w'))
		else:
			assert 'the limit of 50000 bytes for a query is reached' in instance.fails(statement)
	assert len(instance.sql('select word from orders where id <= 100')) == 100
	[used] = instance.ask('used')
	assert used['refused'] == after['refused'] + 5
	# Of a day: nothing more is begun, and nothing that has begun goes on where it shall not. It holds when the endpoint was killed.
	instance.ask('bound', limits=[{'span': 1, 'bytes': used['bytes'][1] + 200000, 'kill': True, 'project': True}])
	assert 'for a day of the project is reached' in instance.fails('select word from orders')
	kill(instance)
	assert 'for a day of the project is reached' in instance.fails('select id from orders where id = 1')
	assert instance.ask('used')[0]['bytes'][1] >= used['bytes'][1] + 200000
	assert 'for a day' not in instance.plan('select id from orders')
	instance.ask('bound', limits=[])
	assert len(instance.sql('select word from orders')) == 20000


def test_queries_are_logged(instance):
	before = len(instance.ask('queries'))
	instance.sql("select id as \"it's\", 'hidden' /* hidden */ from orders where word <> 'hidden' and id < 12345 -- hidden\n", user='writer')
	assert 'division by zero' in instance.fails("select id / (id - id) + random() from orders where word > $q$hidden$q$")
	instance.sql('select 1')  # has read nothing
	first, second = instance.ask('queries')[before:]
	assert first['user'] == 'writer' and first['database'] == 'shop' and first['client'].startswith('127.') and first['rows'] == 12344 and first['bytes'] == 12344 * 8
	assert first['statement'].strip() == 'select id as "it\'s", ?   from orders where word <> ? and id < ?' and first['fault'] is None and not first['limited']
	assert second['fault'] == 'division by zero' and 'hidden' not in second['statement'] and first['id'] != second['id']


def postmaster(instance):
	return int((instance.place.dir / 'engine' / INSTANCE).glob('*/data/postmaster.pid').__next__().read_text().split()[0])


def kill(instance):
	os.kill(postmaster(instance), signal.SIGKILL)

	def back():
		instance.ask('observe')  # a service that looks after it
		try:
			return instance.sql('select 1') == [(1,)]
		except psycopg2.Error:
			return False

	until(back, what='the endpoint is back')


def test_it_comes_back_as_it_was(instance):
	before = instance.ask('observe')[0]['ends']
	kill(instance)
	assert instance.sql('select count(*) from orders', user='writer') == [(20000,)] and instance.ask('observe')[0]['ends'] == before + 1
	assert instance.ask('known') == [{'instances': [INSTANCE], 'clusters': 2}]
	# The service is killed while it changes it, at any moment.
	for turn in range(6):
		process = instance.place.start('apply', json.dumps({**instance.wish(tables=TABLES[:turn + 1]), 'generation': 100 + turn}))
		try:
			process.wait(timeout=0.02 + 0.07 * turn)
		except subprocess.TimeoutExpired:
			process.kill()
		process.communicate()
	instance.apply(tables=TABLES)
	assert instance.sql('select count(*) from all_orders') == [(20001,)]


def test_a_cluster_that_does_not_answer_fails_its_queries(instance):
	folder = instance.place.dir / 'engine' / SECOND
	pid = int(next(folder.glob('*/data/postmaster.pid')).read_text().split()[0])
	os.kill(pid, signal.SIGKILL)
	assert 'could not connect to server "s1_' in instance.fails('select count(*) from clients')
	assert instance.sql('select count(*) from orders') == [(20000,)]

	def back():
		instance.ask('observe')
		try:
			return instance.sql('select count(*) from clients') == [(100,)]
		except psycopg2.Error:
			return False

	until(back, what='the cluster is back')


def test_who_goes_is_out(instance):
	with contextlib.closing(instance.place.connect(instance.at, 'writer', 'shop')) as open_one:
		open_one.autocommit = True
		with open_one.cursor() as cursor:
			cursor.execute('select count(*) from orders')
		instance.apply(tables=TABLES, who='first')
		with pytest.raises(psycopg2.Error):
			instance.place.connect(instance.at, 'boss', 'shop')
		with open_one.cursor() as cursor:
			cursor.execute('select count(*) from orders')
			assert cursor.fetchall() == [(20000,)]
	assert instance.place.run('access', FIRST, 'first').returncode == 0
	assert instance.place.run('access', FIRST, 'all').returncode == 0
	instance.apply(tables=TABLES)
	assert instance.sql('select count(*) from orders') == [(20000,)]


def test_pause_and_the_end(instance):
	instance.ask('pause')
	[status] = instance.ask('observe')
	assert status['exists'] and not status['running']
	with pytest.raises(psycopg2.Error):
		instance.sql('select 1')
	instance.apply(tables=TABLES)
	assert instance.sql('select count(*) from orders') == [(20000,)]
	instance.ask('destroy')
	instance.ask('destroy')
	assert not instance.ask('observe')[0]['exists'] and instance.ask('known') == [{'instances': [], 'clusters': 2}]
	engine = instance.place.dir / 'engine'
	assert not (engine / INSTANCE).exists() and not list((engine / 'federation').glob('*'))
	for id in (FIRST, SECOND):
		assert instance.place.sql(instance.place.clusters[id], "select count(*) from pg_roles where rolname ~ '^steward_as_'") == [(0,)]
	instance.apply(tables=TABLES)
	assert instance.ask('used')[0]['bytes'] == [0, 0, 0, 0]
