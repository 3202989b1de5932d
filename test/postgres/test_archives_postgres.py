"""Online archives through the API, with real databases: rows leave a table for files that DuckDB reads by itself, and table and files
together are what was written, whatever the archive goes through. What a database's users make of their tables does not run with the
service's rights. The clock is moved by hand."""
import json, pathlib, threading, time
from contextlib import closing

import psycopg2
import pytest

import client
from client import ok, pass_time, refused
from duck import Duck
from test_archives import BY_DATE, DAY, base, gone, held, lines, now, place, reached, told, wish
from test_measurements_postgres import World

NAME = 'archived'
OLD = 30  # days
HOUR = 3600
KINDS = ('id', 'kind', 'amount', 'doc')

pytestmark = pytest.mark.skipif(not (pathlib.Path(client.binary()).parent / 'steward-lake').exists(), reason='steward-lake is not built')


class Archives(World):
	def __init__(self, place):
		super().__init__(place, NAME, nodes=1)
		self.group, self.duck = self.server.group, Duck()

	def sql(self, text, *values):
		with closing(self.connect()) as c, c.cursor() as cursor:
			cursor.execute(text, values or None)
			return cursor.fetchall() if cursor.description else None

	def inside(self, text):
		"""As the service itself: nobody else sees the manifest."""
		port = self.sql("show port")[0][0]
		[socket] = (self.place.data / 'engine/run').glob('*/.s.PGSQL.' + port)
		with closing(psycopg2.connect(host=str(socket.parent), port=port, user='steward_engine', dbname='postgres')) as c, c.cursor() as cursor:
			cursor.execute(text)
			return cursor.fetchall()

	def table(self, name, count, more=''):
		"""Rows of the days before now, one after the other, from the first to the hundredth: returned as they were written."""
		self.sql('create table %s (id bigint primary key, at timestamptz, kind text, amount numeric(10,2), doc jsonb%s)' % (name, more))
		return self.write(name, 1, count)

	def write(self, name, first, last):
		self.sql("insert into %s (id, at, kind, amount, doc) select n, to_timestamp(%d) - (n %% 100 + 0.5) * interval '1 day', 'k' || n %% 3, n / 7.0, "
			"jsonb_build_object('n', n, 'words', jsonb_build_array('it''s', n)) from generate_series(%d, %d) n" % (name, now(self.server), first, last))
		return {row[0]: row for row in self.rows(name) if first <= int(row[0]) <= last}

	def rows(self, name):
		return [row for row in self.sql('select %s from %s' % (', '.join('%s::text' % k for k in KINDS), name))]

	def ran_as_super(self):
		return self.sql('select distinct who, what from ran left join pg_roles on rolname = who where rolsuper is not false')

	def files(self, archive):
		"""Those that the list names."""
		named = {f for (f,) in self.inside("select file from steward_archive.files where archive = '%s'" % archive['_id'])}
		return [f for f in self.objects(archive) if f.stem in named]

	def objects(self, archive):
		return sorted(self.place.data.glob('**/rows/%s/*.parquet' % archive['_id']))

	def archived(self, archive):
		"""The rows of all files, as DuckDB reads them."""
		paths = ', '.join("'%s'" % f for f in self.files(archive))
		return [tuple(r) for r in self.duck.query('select %s from read_parquet([%s])' % (', '.join(KINDS), paths))] if paths else []

	def whole(self, archive, name, written):
		"""Nothing is lost, nothing twice, nothing changed; and what the API says of it is true."""
		left, away = self.rows(name), self.archived(archive)
		assert len(left) + len(away) == len(written)
		assert {r[0]: r for r in left + away} == written
		files = self.files(archive)
		assert held(self.server, self.group, archive) == {'files': len(files), 'rows': len(away), 'bytes': sum(f.stat().st_size for f in files)}
		return len(away)

	def made(self, name, **more):
		return self.reached(ok(self.server.post(base(self.group), json=wish(name, dbName='postgres', **more))))

	def change(self, archive, **what):
		return ok(self.server.patch(place(self.group, archive), json=what))

	def reached(self, archive, state='ACTIVE'):
		return reached(self.server, self.group, archive, state)

	def until_held(self, archive, check):
		return pass_time(self.server, lambda: (lambda h: check(h) and h)(held(self.server, self.group, archive)), seconds=60)

	def quiet(self):
		"""A table that nobody archives anything of."""
		if not self.sql("select to_regclass('quiet')")[0][0]:
			self.table('quiet', 10)

	def hour(self):
		self.server.advance(HOUR + 60)


@pytest.fixture(scope='module')
def world(start_place):
	w = Archives(start_place(clock='virtual'))
	# Somebody was there before the service: whatever is in a schema of that name is not the manifest.
	w.sql("create table ran (who name, what text); grant all on ran to public; create function note(what text) returns void language sql as "
		"'insert into public.ran values (current_user, $1)'; create function taken(int) returns int language plpgsql immutable as "
		"$$ begin perform public.note('planned'); return $1; end $$")
	return w


def old(written):
	"""Those that are older than so many days, of what table() wrote."""
	return sum(int(i) % 100 + 0.5 > OLD for i in written)


def test_rows_by_their_date_while_others_are_written(world):
	w = world
	written = w.table('orders', 3000)
	archive = w.made('orders', criteria={**BY_DATE, 'dateField': 'at'}, partitionFields=[{'fieldName': 'kind', 'order': 0}, {'fieldName': 'at', 'order': 1}])
	over, added = threading.Event(), {}

	def write():
		for first in range(10001, 12001, 50):
			if over.is_set():
				break
			w.sql("insert into orders select n, to_timestamp(0), 'new', n, '{}' from generate_series(%d, %d) n" % (first, first + 49))
			w.sql("update orders set kind = 'changed' where id = %d" % (first - 10000))  # if it is still there
			added.update({str(n): (str(n), 'new', '%d.00' % n, '{}') for n in range(first, first + 50)})
			time.sleep(0.01)

	writer = threading.Thread(target=write)
	writer.start()
	try:
		w.until_held(archive, lambda h: h['rows'] >= old(written))
		w.hour()
		w.until_held(archive, lambda h: h['rows'] >= old(written) + 50)
	finally:
		over.set()
		writer.join()
	w.hour()
	w.until_held(archive, lambda h: h['rows'] == old(written) + len(added))
	left, away = w.rows('orders'), w.archived(archive)
	for row in left + away:  # one of the two that it was
		assert row == {**written, **added}[row[0]] or (row[1] == 'changed' and int(row[0]) <= 2000), row
	assert w.whole(archive, 'orders', {r[0]: r for r in left + away}) == old(written) + len(added)
	assert {r[0] for r in left + away} == {*written, *added}
	files = w.files(archive)
	assert all(kinds == sorted(kinds) for kinds in ([k for (k,) in w.duck.query("select kind from '%s'" % f)] for f in files))
	mine = [line for line in lines(w.server, w.group, '?startDate=1199145600') if line['archiveId'] == archive['_id']]
	assert sum(line['rows'] for line in mine) == len(away) and sum(line['files'] for line in mine) == len(files)
	assert {line['operation'] for line in mine} == {'ARCHIVE'} and mine[0]['namespace'] == 'postgres.orders'


def test_rows_by_a_query(world):
	w = world
	written = w.table('invoices', 500)
	query = '{"$or": [{"doc.n": {"$gt": 100, "$lte": 300}}, {"kind": "k1", "amount": {"$lt": 5}}], "at": {"$lt": "2999-01-01T00:00:00Z"}}'
	wanted = {i for i, r in written.items() if 100 < int(i) <= 300 or (r[1] == 'k1' and float(r[2]) < 5)}
	archive = w.made('invoices', criteria={'type': 'CUSTOM', 'query': query})
	w.until_held(archive, lambda h: h['rows'] >= len(wanted))
	assert w.whole(archive, 'invoices', written) == len(wanted) and {r[0] for r in w.archived(archive)} == wanted
	# Another query takes others along, and leaves what is archived where it is.
	w.change(archive, criteria={'type': 'CUSTOM', 'query': '{"kind": {"$in": ["k2", "it\'s"]}}'})
	wanted |= {i for i, r in written.items() if r[1] == 'k2'}
	w.until_held(archive, lambda h: h['rows'] >= len(wanted))
	assert w.whole(archive, 'invoices', written) == len(wanted) and {r[0] for r in w.archived(archive)} == wanted


@pytest.mark.parametrize('more,field', [
	({'dbName': 'nowhere'}, 'dbName'), ({'collName': 'nowhere'}, 'collName'), ({'collName': 'ran"; drop table ran; --'}, 'collName'),
	({'collName': 'pg_catalog.pg_class'}, 'collName'), ({'collName': 'steward_archive.files'}, 'collName'),
	({'criteria': {**BY_DATE, 'dateField': "at' or true --"}}, 'criteria.dateField'), ({'criteria': {**BY_DATE, 'dateField': 'amount'}}, 'criteria.dateField'),
	({'criteria': {'type': 'CUSTOM', 'query': '{"kind\\" or true --": 1}'}}, 'criteria.query'),
	({'criteria': {'type': 'CUSTOM', 'query': '{"nothing": 1}'}}, 'criteria.query'), ({'criteria': {'type': 'CUSTOM', 'query': '{"kind": 1}'}}, 'criteria.query'),
	({'partitionFields': [{'fieldName': 'kind"', 'order': 0}]}, 'partitionFields[0].fieldName')])
def test_what_cannot_be_is_refused_by_its_field(world, more, field):
	w = world
	w.quiet()
	asked = wish('quiet', **{'dbName': 'postgres', 'criteria': {**BY_DATE, 'dateField': 'at'}, **more})
	refused(w.server.post(base(w.group), json=asked), 400, 'VALIDATION_ERROR', field)


BEFORE = '1900-01-01T00:00:00Z'


@pytest.mark.parametrize('criteria,column,value', [
	({**BY_DATE, 'dateField': 'kind'}, 'kind', BEFORE), ({**BY_DATE, 'dateField': "doc.a' or '1'='1"}, 'doc', {"a' or '1'='1": BEFORE}),
	(' or true --', 'kind', "' or true --"), ('"kind": "\\\\\' or true --"', 'kind', "\\' or true --"),
	('"doc.a\' or true --": 3', 'doc', {"a' or true --": 3})], ids=range(5))
def test_what_looks_like_a_statement_is_a_value(world, criteria, column, value):
	"""The row that has it leaves the table, and no other."""
	w = world
	w.quiet()
	if isinstance(criteria, str):
		criteria = {'type': 'CUSTOM', 'query': '{%s}' % criteria if criteria[0] == '"' else json.dumps({'kind': value})}
	w.sql('insert into quiet (id, %s) values (0, %%s)' % column, value if column == 'kind' else json.dumps(value))
	archive = w.made('quiet', criteria=criteria)
	w.until_held(archive, lambda h: h['rows'] > 0)
	assert [r[0] for r in w.archived(archive)] == ['0'] and w.sql('select count(*) from quiet') == [(10,)]
	assert w.server.delete(place(w.group, archive)).status_code == 204
	gone(w.server, w.group, archive)


def test_pausing_resuming_expiring_deleting(world):
	w = world
	written = w.table('events', 1000)
	archive = w.made('events', criteria={**BY_DATE, 'dateField': 'at'})
	w.until_held(archive, lambda h: h['rows'] >= old(written))
	assert w.change(archive, paused=True)['state'] == 'PAUSING'
	w.reached(archive, 'PAUSED')
	w.server.advance(5 * DAY)
	written.update(w.write('events', 2001, 2100))
	assert w.whole(archive, 'events', written) == old(range(1, 1001))
	assert w.change(archive, paused=False)['state'] == 'ACTIVE'
	# Those of five days more, and of the new ones.
	moved = sum(int(i) % 100 + 0.5 > OLD - 5 for i in range(1, 1001)) + old(range(2001, 2101))
	w.until_held(archive, lambda h: h['rows'] >= moved)
	assert w.whole(archive, 'events', written) == moved
	# The first files end, forty days after the youngest of their rows; also while nothing moves.
	w.change(archive, paused=True, dataExpirationRule={'expireAfterDays': 40})
	w.reached(archive, 'PAUSED')
	w.server.advance(6 * DAY)
	left = w.until_held(archive, lambda h: h['rows'] < moved)
	away = w.archived(archive)
	assert len(away) == left['rows'] == moved - old(range(1, 1001)) and {r[0] for r in away} | {r[0] for r in w.rows('events')} <= set(written)
	ended = [line for line in lines(w.server, w.group, '?startDate=1199145600&archiveOnly=true') if line['archiveId'] == archive['_id']]
	assert {line['operation'] for line in ended} == {'EXPIRE'} and sum(line['rows'] for line in ended) == old(range(1, 1001))
	# Deleting it gives its rows up; the table keeps what it has.
	table = sorted(w.rows('events'))
	assert w.server.delete(place(w.group, archive)).status_code == 204
	gone(w.server, w.group, archive)
	pass_time(w.server, lambda: not w.objects(archive))
	assert sorted(w.rows('events')) == table
	assert w.inside("select count(*) from steward_archive.files where archive = '%s'" % archive['_id']) == [(0,)]


def test_a_preview_and_rows_that_come_back(world):
	w = world
	written = w.table('returning_', 600)
	ask = base(w.group) + ':preview?dbName=postgres&collName=returning_&'
	would = ok(w.server.get(ask + 'dateField=at&expireAfterDays=%d' % OLD))
	assert would['rows'] == old(written) and not would['estimated'] and 60 * would['rows'] < would['bytes'] < 300 * would['rows']
	assert ok(w.server.get(ask + 'query={"kind": "k1"}'))['rows'] == sum(r[1] == 'k1' for r in written.values())
	refused(w.server.get(ask + 'query={"nothing": 1}'), 400, 'VALIDATION_ERROR', 'query')
	archive = w.made('returning_', criteria={**BY_DATE, 'dateField': 'at'})
	w.until_held(archive, lambda h: h['rows'] >= old(written))
	assert ok(w.server.get(place(w.group, archive) + ':preview')) == {'rows': 0, 'bytes': 0, 'estimated': False}
	w.change(archive, paused=True)
	w.reached(archive, 'PAUSED')

	def bring(query=''):
		ok(w.server.post(place(w.group, archive) + ':bringBack' + query), 202)
		pass_time(w.server, lambda: 'X-Steward-Brought-Back' not in w.server.get(place(w.group, archive)).headers, seconds=60)
		return w.server.get(place(w.group, archive)).headers.get('X-Steward-Reason')
	assert bring('?query={"id": {"$lte": 300}}') is None
	assert w.whole(archive, 'returning_', written) == old(range(301, 601))
	# A row is in its way: nothing comes, and it says why.
	taken = next(i for i in range(301, 601) if i % 100 + 0.5 > OLD)
	w.sql('insert into returning_ (id) values (%d)' % taken)
	assert 'duplicate key' in bring() and held(w.server, w.group, archive)['rows'] == old(range(301, 601))
	w.sql('delete from returning_ where id = %d' % taken)
	assert bring() is None
	assert w.whole(archive, 'returning_', written) == 0 and {r[0]: r for r in w.rows('returning_')} == written
	mine = [line for line in lines(w.server, w.group, '?startDate=1199145600') if line['archiveId'] == archive['_id'] and line['operation'] == 'BRING_BACK']
	assert [line['rows'] for line in mine] == [old(range(1, 301)), 0, old(range(301, 601))]
	w.change(archive, paused=False)
	w.hour()
	w.until_held(archive, lambda h: h['rows'] >= old(written))
	assert w.whole(archive, 'returning_', written) >= old(written)


def test_a_table_that_is_gone_or_another(world):
	w = world
	written = w.table('brief', 200)
	archive = w.made('brief', criteria={**BY_DATE, 'dateField': 'at'})
	w.until_held(archive, lambda h: h['rows'] >= old(written))
	for undo, why in (('alter table brief rename at to since', 'at is no column'), ('drop table brief', 'brief is not there')):
		before = held(w.server, w.group, archive)
		w.sql(undo)
		w.hour()
		w.reached(archive, 'ORPHANED')
		r = w.server.get(place(w.group, archive))
		assert why in r.headers['X-Steward-Reason'] and held(w.server, w.group, archive) == before
		assert len(w.archived(archive)) == before['rows'], 'what is archived stays readable'
		w.sql('alter table brief rename since to at' if 'rename' in undo else 'create table brief (id bigint primary key, at timestamptz, kind text, amount numeric(10,2), doc jsonb)')
		w.server.advance(610)
		w.reached(archive)
	assert 'X-Steward-Reason' not in w.server.get(place(w.group, archive)).headers
	w.write('brief', 3001, 3100)
	w.hour()
	w.until_held(archive, lambda h: h['rows'] == old(written) + old(range(3001, 3101)))
	assert len([e for e in told(w.server, w.group, 'ONLINE_ARCHIVE_ORPHANED') if archive['_id'] in str(e)]) == 2


def test_nothing_of_a_database_user_runs_with_more_rights(world):
	"""All that a user can hang on a table, but what would run with a deletion or with its plan: none of it runs."""
	w = world
	w.sql("create type mood as enum ('glad', 'sad'); create function shown(mood) returns text language plpgsql as $$ begin perform note('cast'); return 'x'; end $$; "
		"create function format(text, mood) returns text language plpgsql as $$ begin perform note('format'); return 'x'; end $$; "
		"create function less(timestamptz, timestamptz) returns bool language plpgsql as $$ begin perform note('operator'); return true; end $$; "
		"create operator public.< (leftarg = timestamptz, rightarg = timestamptz, function = less); "
		"create function even(bigint) returns bool language plpgsql immutable as $$ begin perform note('even'); return true; end $$; "
		"create function writing() returns trigger language plpgsql as $$ begin perform note('trigger'); return new; end $$; "
		"create domain named as text check (even(length(value)))")
	written = w.table('hung', 300, more=", m mood default 'glad', d named default 'x', e bool default even(1), g bool generated always as (even(id)) stored, check (even(id))")
	w.sql("alter table hung enable row level security; alter table hung force row level security; create policy p on hung using (even(id)) with check (even(id)); "
		"create trigger t before insert or update on hung for each row execute function writing(); truncate ran")
	seen = {r[0] for r in w.rows('hung')}
	archive = w.made('hung', criteria={**BY_DATE, 'dateField': 'at'}, partitionFields=[{'fieldName': 'm', 'order': 0}, {'fieldName': 'd', 'order': 1}])
	w.until_held(archive, lambda h: h['rows'] >= old(written))
	assert seen == set(written) and w.whole(archive, 'hung', written) == old(written)
	assert w.duck.query("select distinct m, d, e, g from '%s'" % w.files(archive)[0]) == [['glad', 'x', 'true', 'true']]
	by_query = w.made('hung', criteria={'type': 'CUSTOM', 'query': '{"d": "x", "g": true, "at": {"$lt": "2999-01-01"}}'})
	w.until_held(by_query, lambda h: h['rows'] >= len(written) - old(written))
	assert w.rows('hung') == []
	assert w.ran_as_super() == []


@pytest.mark.parametrize('setup,undo,why', [
	("create function deleting() returns trigger language plpgsql as $$ begin perform note('trigger'); return null; end $$; "
		'create trigger t after delete on trap for each row execute function deleting()', 'drop trigger t on trap', 'has a trigger'),
	("create rule r as on delete to trap do also select note('rule')", 'drop rule r on trap', 'has rules'),
	('create index planned on trap ((id + taken(1)))', 'drop index planned', 'made by functions of users'),
	('create index planned on trap (id) where id > taken(-1)', 'drop index planned', 'made by functions of users'),
	('create statistics planned on id, (id + taken(1)) from trap', 'drop statistics planned', 'made by functions of users'),
	('create table lines (trap bigint references trap on delete cascade)', 'drop table lines', 'foreign keys point at'),
	('create table more () inherits (trap)', 'drop table more', 'inherit from it')])
def test_what_would_run_with_a_deletion_is_refused(world, setup, undo, why):
	"""Before the archive is made, and when it is there: rows stay, with a reason, until the table is right again."""
	w = world
	if not w.sql("select to_regclass('trap')")[0][0]:
		w.table('trap', 100)
	w.sql('truncate ran')
	archive = w.made('trap', criteria={**BY_DATE, 'dateField': 'at', 'expireAfterDays': 36000})
	count = w.sql('select count(*) from trap')[0][0]
	w.sql(setup)
	w.sql("insert into trap (id, at) values (%d, '1900-01-01')" % -count)
	r = w.server.post(base(w.group), json=wish('trap', dbName='postgres', criteria={**BY_DATE, 'dateField': 'at'}))
	assert why in refused(r, 400, 'VALIDATION_ERROR', 'collName')['detail']
	w.hour()
	w.reached(archive, 'ORPHANED')
	assert why in w.server.get(place(w.group, archive)).headers['X-Steward-Reason'] and w.archived(archive) == []
	assert w.ran_as_super() == []
	w.sql(undo)
	w.server.advance(610)
	w.reached(archive)
	w.until_held(archive, lambda h: h['rows'] == 1)
	assert [r[0] for r in w.archived(archive)] == [str(-count)] and w.sql('select count(*) from trap') == [(count,)]
	assert w.server.delete(place(w.group, archive)).status_code == 204
	gone(w.server, w.group, archive)


def test_nobody_but_the_service_reaches_the_list_of_files(world):
	w = world
	assert w.inside('select count(*) > 0 from steward_archive.files') == [(True,)]
	for statement in ('select * from steward_archive.files', 'delete from steward_archive.files', "insert into steward_archive.unnamed values ('a', 'b', now())",
			'create table steward_archive.mine ()', 'drop schema steward_archive cascade', 'alter schema steward_archive rename to mine'):
		with pytest.raises(psycopg2.Error) as e:
			w.sql(statement)
		assert e.value.pgcode == '42501', (statement, e.value)
