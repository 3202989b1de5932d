"""Indexes that are built beside running work on real databases: every kind, hostile names and types, locks, failures, crashes of
the service, spread tables. And what a Prometheus gets of the same databases."""
import json, os, signal, time

import pytest

from client import ok, refused, until
from databases import USER, allow, shape
from test_integrations import Scraper, values
from test_spread_tables import on_shards

DONE, FAILED = 'ROLLING_INDEX_SUCCESS_INDEX_BUILD', 'ROLLING_INDEX_FAILED_INDEX_BUILD'
EVIL = '''o"rd'ers; drop table kept; --'''
COLUMN = '''a" b'; select 1; --'''
WAIT = 2


def quoted(name):
	return '"%s"' % name.replace('"', '""')


class World:
	def __init__(self, place):
		self.place = place
		allow(place.server)
		self.cluster = place.cluster('shop', **shape(3)).settled()

	@property
	def server(self):
		return self.place.server

	def ask(self, **wish):
		return self.server.post(self.cluster.path + '/index', json={'db': 'postgres', **wish})

	def sql(self, sql, *args):
		c = self.cluster.connect()
		try:
			cursor = c.cursor()
			cursor.execute(sql, args or None)
			return cursor.fetchall() if cursor.description else None
		finally:
			c.close()

	def idle(self, seconds=240):
		self.cluster.settled(seconds)

	def events(self, kind):
		found = ok(self.server.get('/groups/%s/events?includeRaw=true&itemsPerPage=500&eventType=%s' % (self.server.group, kind)))
		return [json.dumps(e) for e in found['results']]

	def failed(self, index):
		"""The event of a build that has failed."""
		return until(lambda: [e for e in self.events(FAILED) if index in e], 240, 'the failure of ' + index)[0]

	def built(self, left=False, **wish):
		"""The definition of an index that must be built."""
		name = wish.setdefault('options', {}).setdefault('name', 'i_%d' % len(self.events(DONE)))
		r = self.ask(**wish)
		assert r.status_code == 202, r.text
		self.idle()
		assert any(json.dumps(name)[1:-1] in e for e in self.events(DONE)), self.events(FAILED)
		(valid, definition), = self.sql('select indisvalid, pg_get_indexdef(indexrelid) from pg_index join pg_class on oid = indexrelid '
						'where relname = %s', name)
		assert valid and (left or not self.remains())
		return definition

	def remains(self):
		return self.sql("select relname from pg_class where relname ~ '^steward_build_'")

	def restart(self, wait, *more):
		self.place.kill()
		self.place.args = ('--index-wait', str(wait), *more)
		self.place.start()


@pytest.fixture(scope='module')
def world(start_place):
	w = World(start_place('--index-wait', str(WAIT)))
	w.sql('create table kept(id int)')
	w.sql('create table %s (id int, %s text, doc jsonb, spot point, at timestamptz, raw json)' % (quoted(EVIL), quoted(COLUMN)))
	w.sql("insert into %s select n, 'word ' || n, jsonb_build_object('a', jsonb_build_object('b', n)), point(n, n), now() from "
	      'generate_series(1, 500) n' % quoted(EVIL))
	w.sql('create schema sales')
	w.sql('create table sales.orders(id int, state text)')
	return w


@pytest.mark.parametrize('keys, more, words', [
	([{'id': '1'}, {COLUMN: '-1'}], {}, ['USING btree', 'DESC']),
	([{'id': 'hashed'}], {}, ['USING hash (id)']),
	([{COLUMN: 'text'}], {'options': {'default_language': 'german'}}, ['USING gin', "to_tsvector('german'"]),
	([{'spot': '2d'}], {}, ['USING gist (spot)']),
	([{'doc.$**': '1'}], {}, ['USING gin (doc)']),
	([{'doc.a.b': '1'}], {}, ["->> 'b'"]),
	([{'id': '1'}], {'options': {'sparse': True}}, ['WHERE (id IS NOT NULL)']),
	([{'id': '1'}], {'options': {'unique': True}}, ['CREATE UNIQUE INDEX']),
	([{'id': '1'}], {'options': {'partialFilterExpression': {'id': {'$gt': 5, '$lte': 400}, COLUMN: {'$in': ["it's", '"']}, 'doc.a': {
		'$exists': True}, 'at': {'$lt': '2020-01-01'}}}}, ['id > 5', 'id <= 400', "'it''s'", 'IS NOT NULL', '2020']),
	([{COLUMN: '1'}], {'collation': {'locale': 'de'}}, ['COLLATE "de-x-icu"']),
	([{COLUMN: '1'}, {'id': '1'}], {'collation': {'locale': 'de_AT', 'strength': 1, 'numericOrdering': True}},
		['COLLATE "de-AT-u-kn-true-ks-level1"', ', id)']),
	([{COLUMN: '1'}], {'collation': {'locale': 'simple'}}, ['COLLATE "C"']),
])
def test_kinds(world, keys, more, words):
	definition = world.built(collection=EVIL, keys=keys, **json.loads(json.dumps(more)))
	assert all(w in definition for w in words), definition
	assert world.sql('select count(*) from kept') == [(0,)]


def test_names(world):
	assert 'sales.orders' in world.built(collection='sales.orders', keys=[{'state': '1'}])
	evil = '''i"x'; drop table kept; --'''
	assert quoted(evil) in world.built(collection=EVIL, keys=[{'id': '1'}], options={'name': evil})
	refused(world.ask(collection=EVIL, keys=[{'id': '1'}], options={'name': evil}), 409, 'INDEX_ALREADY_EXISTS', 'options.name')
	assert world.ask(collection='sales.orders', keys=[{'id': '1'}, {'state': '-1'}]).status_code == 202
	world.idle()
	assert world.sql("select 1 from pg_indexes where schemaname = 'sales' and indexname = 'sales.orders_id_1_state_-1'") == [(1,)]
	# Standbys have it too.
	name = next(n for n in world.cluster.nodes() if n != world.cluster.primary())
	until(lambda: world.cluster.ask("select count(*) from pg_indexes where indexname = 'sales.orders_id_1_state_-1'", name) == [(1,)])


def test_refusals(world):
	world.sql('create view looked as select 1 as a')
	world.sql('create table parted(a int) partition by range (a)')
	for wish, field in (({'db': 'nothing'}, 'db'), ({'db': 'template1'}, 'db'), ({'collection': 'nothing'}, 'collection'),
			    ({'collection': 'pg_catalog.pg_class'}, 'collection'), ({'collection': 'looked'}, 'collection'),
			    ({'collection': 'parted', 'keys': [{'a': '1'}]}, 'collection'), ({'keys': [{'nothing': '1'}]}, 'keys[0]'),
			    ({'keys': [{'id': '1'}, {'spot': '1'}]}, 'keys[1]'), ({'keys': [{'raw': 'hashed'}]}, 'keys[0]'),
			    ({'keys': [{'id': 'text'}]}, 'keys[0]'), ({'keys': [{'id': '2d'}]}, 'keys[0]'),
			    ({'keys': [{COLUMN: '1'}], 'collation': {'locale': 'en', 'strength': 1, 'alternate': 'shifted', 'backwards': True,
				'caseLevel': True, 'caseFirst': 'upper', 'normalization': True, 'numericOrdering': True}}, 'collation'),
			    ({'keys': [{'id.a': '1'}]}, 'keys[0]'), ({'keys': [{'raw.$**': '1'}]}, 'keys[0]'),
			    ({'options': {'partialFilterExpression': {'id': {'$gt': 'word'}}}}, 'options.partialFilterExpression.id'),
			    ({'options': {'partialFilterExpression': {'gone': {'$gt': 1}}}}, 'options.partialFilterExpression.gone')):
		refused(world.ask(**{'collection': EVIL, 'keys': [{'id': '1'}], **wish}), 400, 'VALIDATION_ERROR', field)
	assert world.cluster.state() == 'IDLE'


def test_code_of_tenants_is_not_run_by_the_service(world):
	"""Operators and casts that fit better than PostgreSQL's own, checks of domains: none of them is called, or it is called as the
	table's owner."""
	world.sql('create table leak(who name)')
	world.sql('''create function spy(a int, b int) returns boolean language plpgsql immutable as
		$$ begin insert into public.leak values (current_user); return a OPERATOR(pg_catalog.>) b; end $$''')
	world.sql('create operator public.> (leftarg = int, rightarg = int, function = spy)')
	world.sql('''create function spied(a int) returns boolean language plpgsql as
		$$ begin insert into public.leak values (current_user); return true; end $$''')
	world.sql('create domain watched as int check (spied(value))')
	world.sql("create type pair as (a int, b int)")
	world.sql('''create function pair_text(pair) returns text language plpgsql immutable as
		$$ begin insert into public.leak values (current_user); return 'x'; end $$''')
	world.sql('create cast (pair as text) with function pair_text(pair) as implicit')
	world.sql("create type mood as enum ('bad', 'good')")
	world.sql('create table hostile(id int, w watched, p pair, m mood)')
	world.sql("insert into hostile select n, n, row(n, n)::pair, 'good' from generate_series(1, 50) n")
	world.sql('delete from leak')
	world.built(collection='hostile', keys=[{'w': '1'}, {'p': '1'}, {'m': '-1'}],
		    options={'partialFilterExpression': {'id': {'$gt': 1}, 'w': {'$gt': 2}, 'm': {'$exists': True}}})
	refused(world.ask(collection='hostile', keys=[{'p': 'text'}]), 400, 'VALIDATION_ERROR', 'keys[0]')
	# Constants are read before the server becomes the owner. Under the name of an enumeration there can be another type by then.
	for column in ('p', 'm'):
		refused(world.ask(collection='hostile', keys=[{'id': '1'}], options={'partialFilterExpression': {column: {'$eq': 'good'}}}),
			400, 'VALIDATION_ERROR', 'options.partialFilterExpression.' + column)
	assert world.sql("select count(*) from leak where who = 'steward_engine'") == [(0,)]


def test_constants_are_whole(world):
	"""Of types that are one character or bit long, unless they say how long."""
	world.sql('create table fixed(c char(4), b bit(3))')
	definition = world.built(collection='fixed', keys=[{'c': '1'}],
				 options={'partialFilterExpression': {'c': {'$eq': 'OPEN'}, 'b': {'$eq': '101'}}})
	assert "'OPEN'" in definition and "'101'" in definition, definition


def test_equal_keys_cannot_be_unique(world):
	world.sql('create table twice as select 1 as id from generate_series(1, 2)')
	assert world.ask(collection='twice', keys=[{'id': '1'}], options={'name': 'no_two', 'unique': True}).status_code == 202
	assert 'equal keys' in world.failed('no_two')
	world.idle()
	until(lambda: not world.remains())
	assert world.sql("select count(*) from pg_indexes where tablename = 'twice'") == [(0,)]


def test_somebody_in_the_way(world):
	"""A transaction that writes and does not end: the build gives up and says who it was; what is left goes once it has ended."""
	world.sql('create table busy(id int)')
	writer = world.cluster.connect()
	writer.autocommit = False
	try:
		writer.cursor().execute('insert into busy values (1)')
		assert world.ask(collection='busy', keys=[{'id': '1'}], options={'name': 'in_the_way'}).status_code == 202
		why = world.failed('in_the_way')
		assert 'more than %d seconds' % WAIT in why and USER in why
		world.idle()
		# Others are not in the way of each other meanwhile; nor is what is left in the way of other builds.
		world.sql('insert into busy values (2)')
		assert 'orders' in world.built(left=True, collection='sales.orders', keys=[{'id': '-1'}], options={'name': 'elsewhere'})
	finally:
		writer.rollback()
		writer.close()
	until(lambda: not world.remains(), 120)
	assert 'busy' in world.built(collection='busy', keys=[{'id': '1'}], options={'name': 'no_more'})


def test_a_service_that_is_killed(world):
	"""In the middle of a build: what it left is taken away by the next one, which builds it."""
	told = lambda: [int((p or '0%').split('%')[0]) for p, in world.server.rows("SELECT progress FROM job WHERE kind = 'index_build'")]
	world.restart(wait=120)
	world.sql('create table slow as select n as id from generate_series(1, 1000) n')
	writer = world.cluster.connect()
	writer.autocommit = False
	try:
		writer.cursor().execute('insert into slow values (1)')
		assert world.ask(collection='slow', keys=[{'id': '1'}], options={'name': 'killed'}).status_code == 202
		until(world.remains)
		until(lambda: world.server.get(world.cluster.path).headers.get('X-Steward-Progress', '').endswith('that write'))
		seen = told()
		world.restart(wait=120)
		assert world.cluster.state() == 'UPDATING'
		seen += told()
	finally:
		writer.rollback()
		writer.close()
	while world.cluster.state() == 'UPDATING':
		seen += told()
	assert seen[0] > 0 and seen == sorted(seen), 'progress never runs backwards, not by a restart either'
	world.idle()
	assert len([e for e in world.events(DONE) if 'killed' in e]) == 1 and not world.remains()
	assert world.sql("select indisvalid from pg_index where indexrelid = 'killed'::regclass") == [(True,)]


def test_a_long_build_keeps_no_worker_and_has_a_bound(world):
	"""The one worker that there is does other work meanwhile; then the build has taken too long."""
	world.restart(120, '--index-limit', '10', '--job-threads', '1')
	world.sql('create table endless(id int)')
	writer = world.cluster.connect()
	writer.autocommit = False
	try:
		writer.cursor().execute('insert into endless values (1)')
		assert world.ask(collection='endless', keys=[{'id': '1'}], options={'name': 'given_up'}).status_code == 202
		until(world.remains)
		ok(world.server.post('/groups/%s/databaseUsers' % world.server.group, json={
			'groupId': world.server.group, 'username': 'meanwhile', 'password': 'correct horse battery', 'databaseName': 'admin',
			'roles': [{'roleName': 'readAnyDatabase', 'databaseName': 'admin'}]}), 201)
		until(lambda: world.sql("select 1 from pg_roles where rolname = 'meanwhile'"))
		assert not [e for e in world.events(FAILED) if 'given_up' in e], 'it is still under way'
		assert 'longer than the 10 seconds' in world.failed('given_up')
	finally:
		writer.rollback()
		writer.close()
	world.idle()
	until(lambda: not world.remains(), 120)
	world.restart(120)


def test_a_name_that_is_taken_meanwhile(world):
	writer = world.cluster.connect()
	writer.autocommit = False
	world.sql('create table taken(id int)')
	try:
		writer.cursor().execute('insert into taken values (1)')
		assert world.ask(collection='taken', keys=[{'id': '1'}], options={'name': 'first_come'}).status_code == 202
		until(world.remains)
		world.sql('create table first_come()')
	finally:
		writer.rollback()
		writer.close()
	assert 'first_come' in world.failed('first_come')
	world.idle()
	until(lambda: not world.remains())
	assert world.sql("select relkind from pg_class where relname = 'first_come'") == [('r',)]


def test_a_failover_in_the_middle(world):
	"""The new primary has what the old one had begun: it is dropped there, and built anew."""
	world.sql('create table moved as select n as id from generate_series(1, 1000) n')
	writer = world.cluster.connect()
	writer.autocommit = False
	try:
		writer.cursor().execute('insert into moved values (1)')
		assert world.ask(collection='moved', keys=[{'id': '1'}], options={'name': 'survived'}).status_code == 202
		until(world.remains)
		first = world.cluster.primary()
		os.kill(world.cluster.pid(first), signal.SIGKILL)
		until(lambda: world.cluster.primary() != first)
	finally:
		writer.close()
	until(lambda: [e for e in world.events(DONE) if 'survived' in e], 240, 'the index')
	world.cluster.whole(3)
	world.idle()
	assert world.sql("select indisvalid from pg_index where indexrelid = 'survived'::regclass") == [(True,)] and not world.remains()


def test_prometheus_gets_what_was_sampled(world):
	"""Of the process, its databases and its disks; the figures are those of the server."""
	base = '/groups/%s/integrations/PROMETHEUS' % world.server.group
	ok(world.server.post(base, json={'enabled': True, 'serviceDiscovery': 'http', 'username': 'scraper', 'password': 'correct horse'}))
	scraper = Scraper(world.server, world.server.group, password='correct horse')
	there = {'steward_process_connections', 'steward_process_memory_resident', 'steward_database_storage_size{database="postgres"}'}

	def found():
		all_of = [values(scraper.metrics(t)) for t in scraper.targets()]
		return all_of if all(there <= set(v) and any(n.startswith('steward_disk_space_free{') for n in v) for v in all_of) else None
	pages = until(found, 200, 'samples of all', longest=1)
	assert len(pages) == 3 and all(v['steward_process_up'] == 1 for v in pages)
	primary, = (v for v in pages if v['steward_process_primary'])
	size, = world.sql("select pg_database_size('postgres')")[0]
	assert 0.5 < primary['steward_database_storage_size{database="postgres"}'] / size < 2
	assert ok(world.server.delete(base), 204) is None


@pytest.fixture(scope='module')
def spread(world):
	c = world.place.cluster('spread', **shape(3, shards=2)).settled()
	c.ask('create table orders(id int primary key, customer int, state text)')
	c.ask("select steward.shard_table('orders', 'id')")
	c.ask("insert into orders select n, n % 50, 'open' from generate_series(1, 2000) n")
	return c


def test_a_spread_table(world, spread):
	"""One shard after the other, then the router; each shard has one index more, valid and without a name of the build."""
	count = "select count(*) from pg_index where indrelid::regclass::text ~ '^sharded.t[0-9]+$' and indisvalid"
	before = on_shards(spread, count)
	body = {'db': 'postgres', 'collection': 'orders', 'keys': [{'customer': '1'}, {'id': '-1'}], 'options': {
		'name': 'by_customer', 'partialFilterExpression': {'customer': {'$gt': 3}, 'state': {'$eq': 'open'}}}}
	r = world.server.post(spread.path + '/index', json=body)
	assert r.status_code == 202, r.text
	spread.settled()
	assert any('by_customer' in e for e in world.events(DONE)), world.events(FAILED)
	assert [int(n) for n in on_shards(spread, count)] == [int(n) + 1 for n in before]
	assert on_shards(spread, "select count(*) from pg_class where relname ~ '^steward_build_'") == ['0', '0']
	# Made valid in one transaction and named in another: it was built ahead, beside running work, and not by the router.
	assert on_shards(spread, "select c.xmin <> i.xmin from pg_class c join pg_index i on indexrelid = c.oid where relname ~ "
			 "'^t[0-9]+_i[0-9]+$'") == ['t', 't']
	assert all('customer' in d and 'DESC' in d and 'WHERE' in d for d in on_shards(
		spread, "select pg_get_indexdef(oid) from pg_class where relname ~ '^t[0-9]+_i[0-9]+$'"))
	assert spread.ask("select indexname from pg_indexes where tablename = 'orders' and indexname = 'by_customer'") == [('by_customer',)]
	refused(world.server.post(spread.path + '/index', json={**body, 'options': {'unique': True}}), 400, 'VALIDATION_ERROR', 'options.unique')
	refused(world.server.post(spread.path + '/index', json={**body, 'options': {}, 'collation': {'locale': 'de', 'strength': 1}}), 400,
		'VALIDATION_ERROR', 'collation')
	refused(world.server.post(spread.path + '/index', json={**body, 'options': {}, 'keys': [{'state': 'text'}]}), 400, 'VALIDATION_ERROR',
		'options.default_language')
	# The router may change the table afterwards as any other.
	spread.ask('drop index by_customer')
	assert on_shards(spread, count) == before


def test_writers_of_a_spread_table_do_not_wait(world, spread):
	"""Somebody's transaction on the router keeps the last statement waiting: others go on writing."""
	world.restart(wait=120)
	holder = spread.connect()
	holder.autocommit = False
	try:
		holder.cursor().execute('lock table orders in row exclusive mode')
		r = world.server.post(spread.path + '/index', json={'db': 'postgres', 'collection': 'orders', 'keys': [{'state': '-1'}],
								    'options': {'name': 'patient'}})
		assert r.status_code == 202, r.text
		until(lambda: on_shards(spread, "select count(*) from pg_index join pg_class on oid = indexrelid where indisvalid and relname "
					"~ '^steward_build_'") == ['1', '1'])
		for n in range(9100, 9110):
			began = time.monotonic()
			spread.ask("insert into orders values (%d, 1, 'open')" % n)
			assert time.monotonic() - began < 15
			time.sleep(0.3)
	finally:
		holder.rollback()
		holder.close()
	spread.settled()
	assert any('patient' in e for e in world.events(DONE)), world.events(FAILED)


def test_a_spread_table_keeps_nothing_of_a_failure(world, spread):
	"""Built on the shards, and then not on the router, where the name is taken by now."""
	writer = spread.connect()
	writer.autocommit = False
	try:
		writer.cursor().execute("insert into orders values (9001, 1, 'open'), (9002, 1, 'open'), (9003, 1, 'open')")
		r = world.server.post(spread.path + '/index', json={'db': 'postgres', 'collection': 'orders', 'keys': [{'state': '1'}],
								    'options': {'name': 'too_late'}})
		assert r.status_code == 202, r.text
		building = "select count(*) from pg_class where relname ~ '^steward_build_'"
		until(lambda: '1' in on_shards(spread, building))
		spread.ask('create table too_late()')
	finally:
		writer.rollback()
		writer.close()
	assert 'too_late' in world.failed('too_late')
	spread.settled()
	until(lambda: on_shards(spread, building) == ['0', '0'])
