"""One database or one table of a snapshot or a moment, brought back beside what serves or in its place: data, code, rights. What users have
written into it is evaluated with no rights beyond it; nothing of it is there before it is whole, whenever the service is killed."""
import os, random, signal, time

import psycopg2, pytest

from client import ok, refused
from databases import PASSWORD, USER, allow, shape, until

OTHER = 'reader'
# Takes whatever whoever evaluates it has: each part by itself, because one that is refused must not hide another. What indexes are made of must
# be called immutable, and such a function changes nothing itself; what it calls does.
TAKE = """create function take(how text) returns void language plpgsql as $$
declare s text;
begin
  foreach s in array array['alter role %s superuser', 'create role evil superuser', 'create table public.' || how || '_stolen as select 1 x',
    'grant pg_read_server_files to %s', 'set role none', 'reset role', 'set role steward_engine', 'set session authorization steward_engine',
    'alter role %s superuser', 'grant "steward:restore" to %s', 'alter table public.kept add column stolen int', 'delete from public.kept',
    'insert into public.kept values (-1)'] loop
    begin execute s; exception when others then null; end;
  end loop;
end $$""" % (USER, USER, USER, USER)
GRAB = """create function grab(i int, how text) returns int language plpgsql immutable as $$
begin
  perform public.take(how);
  return i;
end $$"""
HOSTILE = ['create domain trap as int check (grab(value, \'domain\') is not null)',
	   'create type pair as (a int)', "create function pair_of(int) returns pair language sql immutable as $$ select row(public.grab($1, 'cast'))::public.pair $$",
	   'create cast (int as pair) with function pair_of(int) as implicit',
	   """create table t(id serial primary key, n int default grab(7, 'default') check (grab(n, 'check') is not null), d trap,
		g int generated always as (grab(n, 'generated')) stored, p pair generated always as (n::pair) stored, name text)""",
	   "create index t_grab on t (grab(n, 'index')) where grab(n, 'predicate') > 0", 'create unique index on t (name)',
	   "create function fired() returns trigger language plpgsql as $$ begin perform grab(1, 'trigger'); return new; end $$",
	   'create trigger tr before insert or update on t for each row execute function fired()',
	   'create view seen as select id, grab(n, \'view\') from t', "create materialized view kept_view as select grab(n, 'matview') m from t",
	   "create statistics t_stat on n, (grab(n, 'statistics')) from t",
	   'alter table t enable row level security', 'create policy mine on t using (grab(n, \'policy\') > 0)',
	   "create function definer() returns int language sql security definer as $$ select grab(1, 'definer') $$"]


@pytest.fixture(scope='module')
def place(start_place):
	p = start_place()
	allow(p.server)
	ok(p.server.post('/groups/%s/databaseUsers' % p.server.group, json={'username': OTHER, 'password': PASSWORD, 'databaseName': 'admin',
		'groupId': p.server.group, 'roles': [{'roleName': 'read', 'databaseName': d} for d in ('shop', 'trap', 'books')]}), 201)
	return p


@pytest.fixture(scope='module')
def c(place):
	return place.cluster('pieces', backupEnabled=True, pitEnabled=True, **shape(1)).settled()


def take(c):
	made = ok(c.server.post(c.path + '/backup/snapshots', json={}))
	path = '%s/backup/snapshots/%s' % (c.path, made['id'])
	return until(lambda: (lambda d: d['status'] == 'completed' and d)(ok(c.server.get(path))), 240, 'the snapshot')['id']


def begin(c, only, replace=None, **body):
	headers = {'X-Steward-Restore-Only': only, **({'X-Steward-Restore-Replace': replace} if replace else {})}
	return c.server.post(c.path + '/backup/restoreJobs', json={'targetClusterName': c.name, 'targetGroupId': c.server.group, **body}, headers=headers)


def end(c, job):
	path = '%s/backup/restoreJobs/%s' % (c.path, job)
	until(lambda: ok(c.server.get(path)).get('finishedAt'), 300, 'the restore')
	c.settled()
	answer = c.server.get(path)
	return answer.json(), answer.headers


def bring(c, only, replace=None, **body):
	"""The name that it got."""
	job, headers = end(c, ok(begin(c, only, replace, **body))['id'])
	assert job['failed'] is False, (headers.get('X-Steward-Progress'), c.server.stderr[-3000:])
	assert headers['X-Steward-Restore-Only'] == only
	return headers['X-Steward-Restore-As'].rpartition('/')[2].rpartition('.')[2]


def fails(c, only, replace=None, **body):
	job, headers = end(c, ok(begin(c, only, replace, **body))['id'])
	assert job['failed'] is True, job
	clean(c)
	return headers['X-Steward-Progress']


def clean(c):
	"""Nothing of it is left, and nobody has won anything."""
	assert c.ask("select datname from pg_database where datname ~ '^steward'") == []
	assert c.ask("select rolname from pg_roles where (rolsuper and rolname not in ('steward_engine')) or rolname = 'evil'") == []
	assert c.ask("select m.rolname from pg_auth_members k join pg_roles r on r.oid = roleid join pg_roles m on m.oid = member where r.rolname ="
		" 'steward:restore' or m.rolname = 'steward:restore' or r.rolname = 'pg_read_server_files' and m.rolname <> 'pg_monitor'") == []
	# In a database that has come back its own code could do what it liked with the rest of that.
	for database, in c.ask("select datname from pg_database where datallowconn and not datistemplate and datname !~ '_restored_'"):
		assert c.ask("select nspname from pg_namespace where nspname = 'steward_restoring'", database=database) == []
		assert c.ask("select count(*) from pg_shdepend k join pg_roles r on r.oid = refobjid where rolname = 'steward:restore'", database=database) == [(0,)]
		assert c.ask("select relname from pg_class where relname ~ '_stolen$'", database=database) == [], database
		assert c.ask("select attrelid::regclass from pg_attribute where attname = 'stolen' and not attisdropped", database=database) == []
	assert c.ask("select rolcanlogin from pg_roles where rolname = 'steward:restore'") in ([], [(False,)])


def snapshot(id):
	return {'deliveryType': 'automated', 'snapshotId': id}


def test_a_table_beside_and_in_place(c):
	for s in ("create table items(id serial primary key, name text unique not null, n int check (n > 0) default 7, s text generated always as (name || '!') stored)",
		  "insert into items(name, n) select 'i' || g, g from generate_series(1, 1000) g", 'create index on items (n) where n > 5',
		  "comment on table items is 'what is sold'", 'create table plain(a int)', 'create table "odd.Näme ""x"""(a text)',
		  'insert into "odd.Näme ""x""" values (\'x\')'):
		c.ask(s, database='shop')
	until(lambda: c.ask("select count(*) from pg_class where relname = 'items' and pg_get_userbyid(relowner) = 'steward:o:shop'", database='shop') == [(1,)], 60, 'it')
	first = take(c)
	c.ask('delete from items where id > 10; grant update (name) on items to reader', database='shop')
	name = bring(c, 'shop/public.items', **snapshot(first))
	assert name.startswith('items_restored_20')
	assert c.ask('select count(*), sum(n), max(s) from %s' % name, database='shop') == [(1000, 500500, 'i999!')]
	assert c.ask('select count(*) from items', database='shop') == [(10,)], 'the one of now goes on'
	assert c.ask("select pg_get_userbyid(relowner), obj_description(oid) from pg_class where relname = '%s'" % name, database='shop') == [
		('steward:o:shop', 'what is sold')]
	assert c.ask('insert into %s(name) values (\'new\') returning id, n' % name, database='shop') == [(1001, 7)]
	with pytest.raises(psycopg2.errors.CheckViolation):
		c.ask("insert into %s(name, n) values ('bad', 0)" % name, database='shop')
	assert c.ask('select count(*) from %s' % name, database='shop', user=OTHER) == [(1001,)], 'who reads the database reads it'
	with pytest.raises(psycopg2.errors.InsufficientPrivilege):
		c.ask('delete from %s' % name, database='shop', user=OTHER)
	assert c.ask("select has_column_privilege('reader', '%s', 'name', 'update'), has_column_privilege('reader', '%s', 'n', 'update')" % (name, name),
		     database='shop') == [(True, False)], 'as on the one of now'
	assert 'is there already' in fails(c, 'shop/public.items', **snapshot(first))
	assert c.ask('select count(*) from items', database='shop') == [(10,)]
	assert bring(c, 'shop/public.items', 'true', **snapshot(first)) == 'items'
	assert c.ask('select count(*) from items', database='shop') == [(1000,)]
	assert c.ask("select indexname from pg_indexes where tablename = 'items' order by 1", database='shop') == [('items_n_idx',), ('items_name_key',), ('items_pkey',)]
	assert c.ask('select count(*) from %s' % name, database='shop') == [(1001,)]
	assert c.ask("select has_column_privilege('reader', 'items', 'name', 'update')", database='shop') == [(True,)]
	odd = bring(c, 'shop/public.odd%2EN%C3%A4me%20%22x%22', **snapshot(first))
	assert 'odd%2EN%C3%A4me%20%22x%22_restored_' in odd or odd
	assert c.ask("select count(*) from pg_class where relname like 'odd.Näme \"x\"_restored_%'", database='shop') == [(1,)]
	clean(c)


def test_what_cannot_be(c):
	c.ask('create table if not exists other(a int primary key); create table if not exists child(a int references other)', database='shop')
	c.ask('create table if not exists parts(a int) partition by list (a)', database='shop')
	last = take(c)
	assert 'no database "none" at that moment' in fails(c, 'none', **snapshot(last))
	assert 'no table shop/public.none at that moment' in fails(c, 'shop/public.none', **snapshot(last))
	assert 'no plain table' in fails(c, 'shop/public.parts', **snapshot(last))
	assert 'foreign keys' in fails(c, 'shop/public.child', 'true', **snapshot(last))
	assert 'foreign keys' in fails(c, 'shop/public.other', 'true', **snapshot(last))
	c.ask('drop table child', database='shop')
	assert 'foreign keys' in fails(c, 'shop/public.child', 'true', **snapshot(last))
	beside = bring(c, 'shop/public.child', **snapshot(last))
	assert c.ask("select count(*) from pg_constraint where conrelid = '%s'::regclass and contype = 'f'" % beside, database='shop') == [(0,)]
	c.ask('create table viewed(a int); create view viewer as select * from viewed', database='shop')
	late = take(c)
	assert 'depend' in fails(c, 'shop/public.viewed', 'true', **snapshot(late))
	assert c.ask('select count(*) from viewer', database='shop') == [(0,)]


def test_hostile_pieces(c):
	"""Checks, defaults, generated columns, domains, casts, indexes, statistics, triggers, policies: as nobody."""
	c.ask('create table kept(a int); insert into kept values (1)', database='trap')
	c.ask("create function grab(i int, how text) returns int language sql immutable as $$ select i $$", database='trap')
	for s in HOSTILE:
		c.ask(s, database='trap')
	c.ask("insert into t(n, d, name) select g, g, 'n' || g from generate_series(1, 50) g; refresh materialized view kept_view", database='trap')
	c.ask(TAKE, database='trap')
	c.ask(GRAB.replace('create function', 'create or replace function'), database='trap')
	last = take(c)
	name = bring(c, 'trap/public.t', **snapshot(last))
	assert c.ask('select count(*), sum(g) from %s' % name, database='trap') == [(50, 1275)]
	assert c.ask('select a from kept', database='trap') == [(1,)]
	clean(c)
	# Its own functions come with the database, and take nothing either.
	beside = bring(c, 'trap', **snapshot(last))
	assert c.ask('select a from kept', database='trap') == [(1,)]
	clean(c)
	assert c.ask("select prosecdef, pg_get_userbyid(proowner) from pg_proc where proname = 'definer'", database=beside) == [(True, USER)]
	c.ask('drop table %s; drop table t cascade' % name, database='trap')
	bring(c, 'trap/public.t', 'true', **snapshot(last))
	assert c.ask('select count(*), sum(g) from t', database='trap') == [(50, 1275)]
	assert c.ask('select a from kept', database='trap') == [(1,)]
	assert c.ask("select tgname from pg_trigger where tgrelid = 't'::regclass and not tgisinternal", database='trap') == [('tr',)]
	assert c.ask("select polname from pg_policy where polrelid = 't'::regclass", database='trap') == [('mine',)]
	clean(c)


def test_a_database_beside_and_in_place(c):
	for s in ('create schema own', 'create extension pgcrypto', 'create extension hstore schema own', 'create type own.mood as enum (\'sad\', \'fine\')',
		  'create table own.a(id bigint generated always as identity primary key, m own.mood, h own.hstore, x bytea default public.digest(\'x\', \'sha256\'))',
		  "insert into own.a(m, h) select 'fine', 'a=>1' from generate_series(1, 500)", 'create table b(a bigint references own.a, t timestamptz)',
		  'insert into b select id, now() from own.a', 'create view v as select * from own.a join b on id = a', 'create sequence s start 40',
		  "select nextval('s')", 'create materialized view mv as select count(*) from b', 'create table p(a int) partition by range (a)',
		  'create table p1 partition of p for values from (0) to (10)', 'insert into p values (5)', "select lo_from_bytea(4242, '\\x010203')",
		  'create function secret() returns int language sql security definer as \'select 1\'', 'revoke execute on function secret() from public',
		  'grant execute on function secret() to reader', 'grant update (t) on b to reader', "comment on table b is 'b''s'"):
		c.ask(s, database='books')
	last = take(c)
	c.ask('drop table b cascade; delete from own.a', database='books')
	beside = bring(c, 'books', **snapshot(last))
	assert beside.startswith('books_restored_20')
	for query, answer in (('select count(*) from v', 500), ('select count(*) from mv', 1), ('select sum(a) from p', 5), ("select nextval('s')", 41),
			      ("select convert_from(lo_get(4242), 'latin1')", '\x01\x02\x03'), ('select secret()', 1),
			      ("select obj_description('b'::regclass)", "b's"), ("select has_function_privilege('reader', 'secret()', 'execute')", True),
			      ("select has_column_privilege('reader', 'b', 't', 'update')", True), ("select prosecdef from pg_proc where proname = 'secret'", True),
			      ("select count(*) from pg_class where relname = 'b' and pg_get_userbyid(relowner) = 'steward:o:%s'" % beside, 1),
			      ("select count(*) from own.a where h operator(own.->) 'a' = '1'", 500)):
		assert c.ask(query, database=beside) == [(answer,)], query
	with pytest.raises(psycopg2.Error):  # who reads books
		c.ask('select 1', database=beside, user=OTHER)
	assert c.ask('select count(*) from own.a', database='books') == [(0,)], 'the one of now goes on'
	assert 'is there already' in fails(c, 'books', **snapshot(last))
	busy = c.connect(database='books')
	assert bring(c, 'books', 'true', **snapshot(last)) == 'books'
	with pytest.raises(psycopg2.Error):
		busy.cursor().execute('select 1')
	assert c.ask('select count(*) from v', database='books') == [(500,)]
	assert c.ask('insert into p values (6); select count(*) from p', database='books') == [(2,)]
	clean(c)


def test_what_an_owner_has_set(c):
	"""A database that a user has made: it stays the user's, with its settings, but for those that need more than an owner."""
	c.ask('create database mine')
	for s in ("alter database mine set work_mem = '8MB'", 'alter database mine set search_path = own, public', 'create schema own', 'create table own.t(a int)'):
		c.ask(s, database='mine')
	last = take(c)
	beside = bring(c, 'mine', **snapshot(last))
	assert c.ask("show work_mem", database=beside) == [('8MB',)]
	assert c.ask("select count(*) from t", database=beside) == [(0,)], 'by its search_path'
	assert c.ask("select pg_get_userbyid(datdba) from pg_database where datname = '%s'" % beside) == [(USER,)]
	assert bring(c, 'mine', 'true', **snapshot(last)) == 'mine'
	assert c.ask("select count(*) from t", database='mine') == [(0,)]
	clean(c)


def test_a_search_path_before_postgresqls_own(c):
	"""What an owner has set is tried by the superuser, who sets it for the new one: by then names mean what that owner likes."""
	c.ask('create database path')
	for s in ('create table kept(a int)', TAKE, 'create schema own', "alter database path set search_path = own, public, pg_catalog",
		  "create function own.current_database() returns name language plpgsql as $$ begin perform public.take('database'); return 'path'; end $$",
		  "create function own.format(text, name, text) returns text language plpgsql as $$ begin perform public.take('format'); return 'select 1'; end $$",
		  "create function own.set_config(text, text, bool) returns text language plpgsql as $$ begin perform public.take('set'); return ''; end $$",
		  "create function own.current_setting(text) returns text language plpgsql as $$ begin perform public.take('setting'); return ''; end $$",
		  'create table own.t(a int)', "alter database path set work_mem = '8MB'"):
		c.ask(s, database='path')
	beside = bring(c, 'path', **snapshot(take(c)))
	clean(c)
	assert c.ask('select setconfig from pg_db_role_setting s join pg_database d on d.oid = setdatabase where datname = \'%s\'' % beside) == [
		(['search_path=own, public, pg_catalog', 'work_mem=8MB'],)]
	assert c.ask("select relname from pg_class where relname ~ '_stolen$'", database=beside) == []


def test_archived_rows_are_not_forgotten(c):
	"""Rows in files are named by a list of the service's in the database, which is in no dump."""
	c.ask('create database filed')
	n = c.nodes()[c.primary()]
	run = next(l for l in (c.directory(n['name']).parent / 'conf' / 'postgresql.conf').read_text().split('\n') if l.startswith('unix_socket_directories')).split("'")[1]
	engine = psycopg2.connect(host=run, port=n['port'], user='steward_engine', dbname='filed', application_name='keeper')
	engine.autocommit = True
	with engine.cursor() as cursor:
		cursor.execute('create schema steward_archive; create table steward_archive.files(file text); insert into steward_archive.files values (1)')
		last = take(c)
		assert 'has archived rows' in fails(c, 'filed', 'true', **snapshot(last))
		cursor.execute('delete from steward_archive.files')
	engine.close()
	assert bring(c, 'filed', 'true', **snapshot(last)) == 'filed'
	clean(c)


def test_a_moment(c):
	c.ask('create table moments(n int); insert into moments select generate_series(1, 10)', database='shop')
	take(c)
	c.ask('insert into moments select generate_series(11, 25)', database='shop')
	time.sleep(1.2)
	then = int(time.time())
	time.sleep(1.2)
	c.ask('drop table moments', database='shop')
	where = '%s/backup/snapshots?pointInTimeUtcSeconds=%d' % (c.path, then)
	until(lambda: ok(c.server.get(where))['results'], 240, 'what was done in the archive')
	wanted = {'deliveryType': 'pointInTime', 'pointInTimeUTCSeconds': then}
	assert bring(c, 'shop/public.moments', 'true', **wanted) == 'moments'
	assert c.ask('select count(*) from moments', database='shop') == [(25,)]
	assert c.ask('select count(*) from ' + bring(c, 'shop/public.moments', **wanted), database='shop') == [(25,)]
	clean(c)


def test_a_service_that_is_killed(place, c):
	"""Whenever: the piece comes as a whole, once, and nothing else is left."""
	c.ask("create table big as select g n, repeat('x', 200) t from generate_series(1, 60000) g; create index on big (n)", database='shop')
	seconds = lambda: random.choice([0.3, 1, 1.5, 2, 2.5, 3, 4])
	for only, database in (('shop/public.big', 'shop'), ('shop', None)) * 2:
		job = ok(begin(c, only, **snapshot(take(c))))['id']
		for _ in range(2):
			time.sleep(seconds())
			place.kill()
			place.start()
		job, headers = end(c, job)
		assert job['failed'] is False, (headers.get('X-Steward-Progress'), c.server.stderr[-3000:])
		name = headers['X-Steward-Restore-As'].rpartition('/')[2].rpartition('.')[2]
		assert c.ask('select count(*) from %s' % (name if database else 'big'), database=database or name) == [(60000,)]
		clean(c)
