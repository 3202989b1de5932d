"""Tables that are spread over the shards of a real cluster behave as tables: what is changed on the router is changed on
every shard, or is refused with the way to do it. And nobody gets further through the router than its tables."""
import os, subprocess, zlib

import psycopg2, pytest

from client import in_force, ok
from databases import PASSWORD, USER, allow, shape

ROLES = ['readAnyDatabase', 'readWriteAnyDatabase', 'dbAdminAnyDatabase', 'clusterMonitor', 'backup', 'enableSharding', 'svcAdmin',
	 'read', 'readWrite', 'dbAdmin']


@pytest.fixture(scope='module')
def c(start_place):
	place = start_place()
	allow(place.server)
	for role in ROLES:
		ok(place.server.post('/groups/%s/databaseUsers' % place.server.group, json={
			'username': 'u-' + role, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': place.server.group,
			'roles': [{'roleName': role, 'databaseName': 'admin' if 'ny' in role or role in ROLES[3:7] else 'postgres'}]}), 201)
	return place.cluster('spread', **shape(3, shards=2)).settled()


class Session:
	def __init__(self, c, user=USER, autocommit=True):
		self.conn = c.connect(user=user)
		self.conn.autocommit = autocommit

	def __call__(self, sql, *args):
		cursor = self.conn.cursor()
		cursor.execute(sql, args or None)
		return cursor.fetchall() if cursor.description else None

	def refused(self, sql, *words):
		with pytest.raises(psycopg2.Error) as e:
			self(sql)
		assert all(w in str(e.value) for w in words), str(e.value)

	def __enter__(self):
		return self

	def __exit__(self, *args):
		self.conn.close()


@pytest.fixture
def ask(c):
	with Session(c) as s:
		yield s


def on_shards(c, sql):
	"""The same question to each shard, as the service asks: over its socket, as the superuser."""
	out = []
	for shard in range(2):
		n = c.nodes()[c.primary(shard)]
		run = (c.site.data / 'engine' / 'run' / str(n['slot'])).resolve()
		command = ['psql', '-XAtq', '-h', str(run), '-p', str(n['port']), '-U', 'steward_engine', '-d', 'postgres', '-c', sql]
		out.append(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
					  env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent'}).stdout.strip())
	return out


def remote(ask, name):
	"""The table's name on the shards."""
	(options,), = ask("select ftoptions from pg_foreign_table f join pg_inherits on inhrelid = ftrelid where inhparent = %s::regclass limit 1", name)
	return 'sharded.' + next(o.split('=')[1] for o in options if o.startswith('table_name='))


def columns(c, table):
	return on_shards(c, "select string_agg(attname || case when attnotnull then '!' else '' end, ' ' order by attnum) from pg_attribute "
			 "where attrelid = '%s'::regclass and attnum > 0 and not attisdropped" % table)


def indexes(c, table):
	return on_shards(c, "select string_agg(substring(pg_get_indexdef(indexrelid) from 'USING .*'), '; ' order by indexrelid) from pg_index "
			 "where indrelid = '%s'::regclass" % table)


def test_indexes_come_along(c, ask):
	ask('create table a(id int, k int, note text, primary key (id, k))')
	ask('create index a_note on a(lower(note) desc) where k > 3; create index "a \' USING x" on a using hash (note)')
	assert ask("select steward.shard_table('a', 'k')") == [(2,)]
	there = indexes(c, remote(ask, 'a'))
	assert there == ['USING btree (id, k); USING btree (lower(note) DESC) WHERE (k > 3); USING hash (note)'] * 2, there
	assert ask("select indexname from pg_indexes where tablename = 'a' order by 1") == [("a ' USING x",), ('a_note',)]


def test_an_index_reaches_every_shard_and_goes(c, ask):
	ask("create table b(k int, v int); select steward.shard_table('b', 'k')")
	ask('insert into b select n, n from generate_series(1, 500) n')
	t = remote(ask, 'b')
	ask('create index on b(v)')
	assert indexes(c, t) == ['USING btree (v)'] * 2
	ask('alter index b_v_idx rename to other')
	assert indexes(c, t) == ['USING btree (v)'] * 2
	ask('drop index other')
	assert indexes(c, t) == [''] * 2
	ask.refused('create unique index on b(v)', 'unique')


def test_columns_follow(c, ask):
	ask("create table d(k int, v text); select steward.shard_table('d', 'k'); insert into d values (1, 'one'), (2, 'two'), (3, 'three')")
	t = remote(ask, 'd')
	ask('alter table d add column n int not null default 7, add column w text')
	assert columns(c, t) == ['k v n! w'] * 2
	assert ask('select sum(n), count(w) from d') == [(21, 0)]
	ask('alter table d rename v to "a ""b"";--"')
	assert columns(c, t) == ['k a "b";-- n! w'] * 2 and ask('select "a ""b"";--" from d where k = 2') == [('two',)]
	ask('alter table d drop column w, alter n drop not null, alter "a ""b"";--" set not null')
	assert columns(c, t) == ['k a "b";--! n'] * 2
	ask.refused('insert into d values (4, null, 1)', 'null value')
	ask('alter table d alter n set default 9; insert into d(k, "a ""b"";--") values (4, $$four$$)')
	assert ask('select n from d where k = 4') == [(9,)]
	ask.refused("insert into d values (5, 'five', 'x')")
	ask.refused('alter table d alter n type bigint', 'type of column n', 'HINT')
	ask.refused('alter table d add column r float default random()', 'default of column r', 'HINT')
	ask.refused('alter table d add column s serial', 'default of column s', 'HINT')
	assert columns(c, t) == ['k a "b";--! n'] * 2


def test_checks_follow(c, ask):
	ask("create table e(k int check (k > 0), v int, g int generated always as (k * 2) stored, i int generated always as identity)")
	ask("select steward.shard_table('e', 'k'); insert into e(k, v) values (1, 10), (2, 20)")
	assert ask('select k, g, i from e order by k') == [(1, 2, 1), (2, 4, 2)]
	ask.refused('insert into e(k) values (-1)', 'e_k_check')
	ask('alter table e add constraint small check (v < 100)')
	ask.refused('insert into e(k, v) values (3, 100)', 'small')
	ask.refused('alter table e add constraint smaller check (v < 20)', 'smaller')
	ask('alter table e rename v to w; alter table e drop constraint small; insert into e(k, w) values (3, 100)')
	assert ask('select count(*) from e') == [(3,)]


def test_all_of_it_or_nothing(c, ask):
	ask("create table f(k int, v int); select steward.shard_table('f', 'k'); insert into f values (1, 1), (2, 2), (3, 3)")
	t = remote(ask, 'f')
	with Session(c, autocommit=False) as s:
		s('insert into f values (4, 4)')
		s('alter table f add column w int')
		s('savepoint a')
		s('create index on f(v)')
		s('alter table f drop column v')
		s('rollback to a')
		s('insert into f values (5, 5, 5)')
		assert s('select sum(w) from f') == [(5,)]
		s.conn.rollback()
	assert columns(c, t) == ['k v'] * 2 and indexes(c, t) == [''] * 2 and ask('select count(*) from f') == [(3,)]
	# One shard refuses: the table there has a row that the check does not allow. The other one keeps nothing either.
	key = next(k for k, in ask('select k from f') if on_shards(c, 'select count(*) from %s where k = %d' % (t, k))[1] == '1')
	ask('update f set v = 1000 where k = %s', key)
	ask.refused('alter table f add column x int, add check (v < 1000)', 'violated')
	assert columns(c, t) == ['k v'] * 2
	# What a crash between two commits leaves is put right by the next change.
	on_shards(c, 'alter table %s rename v to renamed; alter table %s add column left_over int' % (t, t))
	ask('alter table f add column x int')
	assert columns(c, t) == ['k v x'] * 2 and ask('select sum(v) from f') == [(1000 + 6 - key,)]


def test_names_schemas_truncate_and_drop(c, ask):
	ask('create schema "s; p"; create table "s; p"."t\'""1" (k int, "Ü x" serial)')
	ask('create index "i \'""1" on "s; p"."t\'""1" ("Ü x"); comment on table "s; p"."t\'""1" is $$said$$')
	ask("""select steward.shard_table('"s; p"."t''""1"', 'k'); insert into "s; p"."t'""1" values (1), (2), (3)""")
	t = remote(ask, '"s; p"."t\'""1"')
	assert ask("""select obj_description('"s; p"."t''""1"'::regclass)""") == [('said',)]
	ask('alter table "s; p"."t\'""1" rename to plain; alter table "s; p".plain set schema public; drop schema "s; p"')
	assert ask('select count(*) from plain') == [(3,)]
	ask('alter table plain add y int')
	assert columns(c, t) == ['k Ü x! y'] * 2
	ask('truncate plain')
	assert on_shards(c, 'select count(*) from ' + t) == ['0', '0']
	ask.refused('alter table plain detach partition steward_parts.' + t.split('.')[1] + '_0', 'permission denied for schema')
	ask.refused('alter table plain detach partition steward_parts.' + t.split('.')[1] + '_0 concurrently', 'HINT')
	for evil in ("options (set table_name 't1')", "options (set schema_name 'public')", "alter k options (column_name 'y')"):
		ask.refused('alter foreign table steward_parts.%s_1 %s' % (t.split('.')[1], evil), 'permission denied for schema')
	ask.refused('drop foreign table steward_parts.%s_1' % t.split('.')[1], 'permission denied for schema')
	ask('drop table plain')
	assert on_shards(c, "select to_regclass('%s') is null" % t) == ['t', 't']
	assert ask("select count(*) from pg_class where relname like '%%Ü x_seq'") == [(0,)], 'its sequence goes with it'


def test_statistics(c, ask):
	ask("create table h(k int, v int); select steward.shard_table('h', 'k'); insert into h select n, n % 5 from generate_series(1, 1000) n")
	t = remote(ask, 'h')
	ask("select steward.analyze_table('h')")
	assert ask("select n_distinct from pg_stats where tablename = 'h' and attname = 'v'") == [(5.0,)]
	assert all(int(n) > 100 for n in on_shards(c, "select reltuples from pg_class where oid = '%s'::regclass" % t))
	ask('delete from h where v = 1')
	ask("select steward.vacuum_table('h')")
	ask("select steward.reindex_table('h')")
	assert sum(int(n) for n in on_shards(c, "select reltuples from pg_class where oid = '%s'::regclass" % t)) == 800
	assert all(int(n) >= 1 for n in on_shards(c, "select vacuum_count from pg_stat_user_tables where relid = '%s'::regclass" % t))
	with Session(c, 'u-readAnyDatabase') as reader:
		for f in 'analyze', 'vacuum', 'reindex':
			reader.refused("select steward.%s_table('h')" % f, 'owner')
	ask.refused("select steward.analyze_table('pg_class')", 'owner')


@pytest.mark.parametrize('evil', [
	"create table %s(k int check (query_to_xml('delete from sharded.shapes', true, false, '') is null)); select steward.shard_table('%s', 'k')",
	"create table %s(k int); create function f_%s(int) returns int immutable language sql as 'select 1'; "
	"create index on %s(f_%s(k)); select steward.shard_table('%s', 'k')",
	"create table %s(k int); select steward.shard_table('%s', 'k'); alter table %s add check (pg_read_file('/etc/passwd') is null)",
	"create table %s(k int); select steward.shard_table('%s', 'k'); alter table %s add x xml default table_to_xml('pg_class', true, false, '')",
	"create table %s(k int); select steward.shard_table('%s', 'k'); alter table %s add x name default current_user",
	"create table %s(k int); select steward.shard_table('%s', 'k'); create function f_%s() returns int immutable language sql as "
	"'select 1'; alter table %s add x int default f_%s()"], ids=['check', 'index', 'file', 'xml', 'user', 'default'])
def test_code_of_users_does_not_reach_the_shards(ask, evil):
	name = 'evil%d' % zlib.crc32(evil.encode())
	ask.refused(evil.replace('%s', name))


def test_nobody_opens_connections(c, ask):
	"""Every role, against every function and right that reaches another server."""
	ask('create table bait(k int)')
	ask("select steward.shard_table('bait', 'k')")
	for user in [USER] + ['u-' + r for r in ROLES]:
		with Session(c, user) as s:
			assert s("select p.oid::regprocedure::text from pg_proc p join pg_depend d on d.objid = p.oid and d.classid = 'pg_proc'::regclass "
				 "join pg_extension e on e.oid = d.refobjid and d.refclassid = 'pg_extension'::regclass where extname in "
				 "('dblink', 'postgres_fdw') and has_function_privilege(p.oid, 'execute')") == [], user
			assert s("select oid::regprocedure::text from pg_proc where pronamespace in (select oid from pg_namespace where nspname = "
				 "'steward_parts') and has_function_privilege(oid, 'execute')") == [], user
			assert s("select srvname from pg_foreign_server where has_server_privilege(oid, 'usage')") == [], user
			assert s("select fdwname from pg_foreign_data_wrapper where has_foreign_data_wrapper_privilege(oid, 'usage')") == [], user
			assert not [o for o, in s('select umoptions from pg_user_mappings') if o], user
			for evil in ("select steward_parts.dblink_connect('host=127.0.0.1 port=1 password=x')",
				     "select * from steward_parts.dblink('shard_0', 'select 1') as t(a int)",
				     "select steward_parts.dblink_exec('shard_0', 'drop schema sharded cascade')",
				     "select steward_parts.dblink_connect_u('host=127.0.0.1 port=1')",
				     'select steward_parts.postgres_fdw_disconnect_all()',
				     """select steward_parts.send('shard_0', '{"t": "t1", "do": "drop"}')""",
				     'create server x foreign data wrapper postgres_fdw options (host $$127.0.0.1$$)',
				     'create server x foreign data wrapper dblink_fdw options (host $$127.0.0.1$$)',
				     'create user mapping for current_user server shard_0 options (user $$steward_engine$$)',
				     'alter server shard_0 options (set port $$1$$)',
				     "create foreign table x_peek(a int) server shard_0 options (schema_name 'sharded', table_name 'shapes')",
				     'import foreign schema sharded from server shard_0 into public',
				     "alter foreign table steward_parts.%s_0 options (set table_name 't1')" % remote(ask, 'bait').split('.')[1],
				     'create extension dblink schema public', 'create extension postgres_fdw schema public',
				     'insert into steward_parts.spread values (1)', 'select count(*) from steward_parts.spread'):
				s.refused(evil)


def test_users_come_to_the_router_alone(c):
	for name in c.nodes():
		if 'router' in name:
			c.ask('select 1', name)
		else:
			with pytest.raises(psycopg2.OperationalError, match='no pg_hba.conf entry'):
				c.ask('select 1', name)


def test_a_definer_function_ends_with_its_author_on_routers(c, ask):
	"""REASSIGN OWNED leaves it to the writers' group without an event trigger."""
	ask('create table till(a int)')
	with Session(c, 'u-readWrite') as author, Session(c, 'u-read') as reader:
		author("create function door(s text) returns void security definer language plpgsql as 'begin execute s; end'")
		author('reassign owned by "u-readWrite" to "steward:o:postgres"')
		reader("select door('insert into till values (1)')")
		in_force(c.site.server, c.site.server.delete('/groups/%s/databaseUsers/admin/u-readWrite' % c.site.server.group), 204)
		reader.refused("select door('insert into till values (2)')", 'permission denied')
	assert ask('select a from till') == [(1,)]
