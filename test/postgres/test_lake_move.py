"""Rows that leave a table for Parquet files (engine/postgres/lake), on a server without a cluster. Whatever is killed when: table and
files together are exactly what was written. The files are read by DuckDB as it comes from npm."""
import datetime, json, os, pathlib, random, shutil, signal, subprocess, threading, time

import psycopg2
import pytest

import client
from client import until
from database import Database
from duck import Duck

ARCHIVE = '65f00000000000000000aa01'
BUILD = pathlib.Path(client.binary()).parent
PROGRAMS = BUILD / 'test/lake_move', BUILD / 'steward-lake'
CUT = datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)
CUT_MS = int(CUT.timestamp() * 1000)
ISO, SECONDS, MILLIS, NANOS, OBJECT_ID = range(5)
EVENTS = "create table events (id bigint, at timestamptz, word text)"


@pytest.fixture(scope='module')
def database(tmp_path_factory):
	"""A server, and the programs beside each other, as they are installed."""
	if not all(p.exists() for p in PROGRAMS):
		pytest.skip('lake_move or steward-lake is not built')
	d = Database(autovacuum='on')
	d.sql('create role steward_engine superuser login')
	d.programs = tmp_path_factory.mktemp('programs')
	for p in PROGRAMS:
		shutil.copy(p, d.programs / p.name)
	yield d
	d.close()


class Place:
	"""A database with a table, and a directory for files."""

	def __init__(self, database, root):
		self.server, self.store = database, root / 'store'
		self.store.mkdir()
		self.name = database.fresh().rpartition('/')[2]
		self.duck = Duck()

	def sql(self, text):
		return self.server.sql(text, self.name)

	def command(self, *args):
		return [self.server.programs / 'lake_move', self.server.dir, str(self.server.port), self.name, self.store, *args]

	def wish(self, **more):
		return json.dumps({'archive': ARCHIVE, 'table': 'events', 'field': 'at', 'format': ISO, 'beforeMs': CUT_MS, 'order': [], 'rows': 20000,
			'bytes': 256 << 20, **more})

	def start(self, **more):
		return subprocess.Popen(self.command(self.wish(**more)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

	def move(self, **more):
		"""What it says of each batch: rows, bytes."""
		done = subprocess.run(self.command(self.wish(**more)), capture_output=True, text=True, timeout=300)
		assert done.returncode == 0, done.stderr
		return [int(line.split()[0]) for line in done.stdout.splitlines()]

	def refused(self, **more):
		done = subprocess.run(self.command(self.wish(**more)), capture_output=True, text=True, timeout=300)
		assert done.returncode == 1
		return done.stderr

	def sweep(self, oldest='never', now=None):
		env = {**os.environ, **({'NOW_MS': str(now)} if now else {})}
		done = subprocess.run(self.command('sweep', ARCHIVE, str(oldest)), capture_output=True, text=True, timeout=300, env=env)
		assert done.returncode == 0, done.stderr
		return int(done.stdout)

	def files(self):
		return sorted(p.name.partition('.')[0] for p in self.store.glob('**/*.parquet'))

	def named(self):
		return sorted(filter(None, self.sql('select file from steward_archive.files').split('\n')))

	def archived(self, columns):
		"""The rows of the files that the manifest names."""
		paths = ', '.join("'%s'" % (self.store / ARCHIVE / (f + '.parquet')) for f in self.named())
		names = ', '.join('"%s"' % c for c in columns.split(', '))
		return self.duck.query('select %s from read_parquet([%s])' % (names, paths)) if paths else []


@pytest.fixture
def place(database, tmp_path):
	return Place(database, tmp_path)


def fill(place, count, before=None):
	"""Rows 1 to `count`, of which the first are old."""
	before = count if before is None else before
	place.sql("insert into events select n, timestamptz '2025-01-01Z' + case when n <= %d then -1 else 1 end * n * interval '1 second', "
		"md5(n::text) from generate_series(1, %d) n" % (before, count))


def test_old_rows_move_and_no_others(place):
	place.sql(EVENTS)
	fill(place, 50000, 30000)
	place.sql("insert into events values (-1, null, 'no date'), (-2, '-infinity', 'no end'), (-3, '2025-01-01Z', 'on the edge'), (-4, '2024-12-31 23:59:59.999Z', 'just before')")
	assert sum(place.move(order=['word'])) == 30001
	assert place.sql('select count(*), min(id), count(*) filter (where id <= 30000 and id > 0) from events') == '20003|-3|0'
	got = place.archived('id, at, word')
	assert {int(r[0]) for r in got} == {-4, *range(1, 30001)} and len(got) == 30001
	told = place.sql("select sum(rows), count(*), bool_and(bytes > 0) from steward_archive.files").split('|')
	assert told[0] == '30001' and int(told[1]) == len(place.files()) > 1 and place.files() == place.named()
	for line in place.sql('select file, rows, bytes, sha256 from steward_archive.files').split('\n'):
		file, rows, size, sha256 = line.split('|')
		path = place.store / ARCHIVE / (file + '.parquet')
		assert path.stat().st_size == int(size) and subprocess.run(['sha256sum', path], capture_output=True, text=True).stdout.split()[0] == sha256
		words = [w for (w,) in place.duck.query("select word from '%s'" % path)]
		assert len(words) == int(rows) and words == sorted(words)
	assert sum(place.move()) == 0 and place.sweep() == 0


def test_every_type_comes_back_as_it_was(place):
	"""What a file has is what the server reads again as the same value."""
	place.sql("create type mood as enum ('glad', 'sad'); create type pair as (a int, b text); create domain small as int check (value < 100); "
		"create domain priced as numeric(10,2)")
	columns = ['b bool', 'i2 int2', 'i4 int4', 'i8 int8', 'f4 float4', 'f8 float8', 'n numeric', 'p numeric(38,6)', 'neg numeric(3,-2)', 'd date', 't time', 'tz timetz',
		'ts timestamp', 'u uuid', 'by bytea', 'c char(5)', 'v varchar', 'j json', 'jb jsonb', 'a int[]', 'r int4range', 'iv interval', 'ip inet', 'm mood',
		'pr pair', 's small', 'bi bit(3)', 'x xml', 'pt point', 'mo priced', 'g int generated always as (i4 * 2) stored']
	names = [c.split()[0] for c in columns]
	place.sql('create table events (id bigint, at timestamptz, %s)' % ', '.join(columns))
	given = [n for n in names if n != 'g']
	place.sql("insert into events (id, at, %s) values (1, '2020-01-01', true, -32768, 7, 9007199254740993, 1.5e-10, 'NaN', 123456789012345678901234567890.5, "
		"-12345678901234567890123456789012.123456, 12300, '4713-01-01 BC', '24:00', '10:00+02', '-infinity', '00112233-4455-6677-8899-aabbccddeeff', '\\x00ff', 'ab', "
		"'ä''\"', '{\"b\": 1,  \"a\": [null]}', '{\"z\": 1.10}', '{1,null,3}', '[1,5)', '1 year 2 mons -3 days 04:05:06.7', '10.0.0.0/8', 'sad', '(1,\"x,y\")', 42, b'101', '<a/>', '(1,2)', 9.99), "
		"(2, '2020-01-01'%s), (3, '2020-01-01'%s)" % (', '.join(given), ', null' * len(given), ', null' * len(given)))
	place.sql("update events set pr = row(null, null) where id = 3")
	place.sql("create table before as select * from events")
	assert sum(place.move()) == 3
	types = {c['name']: c['type'] for c in json.loads(place.sql('select columns from steward_archive.files'))}
	assert types['p'] == 'decimal(38,6)' and types['n'] == types['neg'] == types['jb'] == types['pr'] == 'text' and types['s'] == 'integer' and types['mo'] == 'decimal(10,2)'
	assert types['g'] == 'integer' and types['ts'] == 'timestamp' and types['c'] == 'text'
	got = place.archived(', '.join(['id', *names]))
	blob = names.index('by') + 1
	for values in got:
		values[names.index('d') + 1] = (values[names.index('d') + 1] or '').replace(' (BC)', ' BC') or None  # as DuckDB shows it
		if values[blob] is not None:
			values[blob] = '\\x' + ''.join('%02x' % b for b in values[blob].encode().decode('unicode_escape').encode('latin1'))
	place.sql('create table after (id bigint, %s)' % ', '.join(c.partition(' generated')[0] for c in columns))
	connection = psycopg2.connect(host=str(place.server.dir), port=place.server.port, user='steward', dbname=place.name)
	with connection, connection.cursor() as cursor:
		for values in got:
			cursor.execute('insert into after values (%s)' % ', '.join(['%s'] * len(values)), values)
	connection.close()
	# To the letter, as the server shows it; of a whole row, too, so that a value of nothing but NULLs is not NULL.
	shown = ', '.join("format('%%s', %s)" % n for n in names)
	assert place.sql('select id, %s from before order by id' % shown) == place.sql('select id, %s from after order by id' % shown)
	whole_row = 'select id, (select x::text from (select %s) x) from %s order by id'
	assert place.sql(whole_row % (', '.join(names), 'before')) == place.sql(whole_row % (', '.join(names), 'after'))


@pytest.mark.parametrize('kind,value,form', [
	('timestamptz', "%s", ISO), ('timestamp', "%s::timestamptz at time zone 'UTC'", ISO), ('date', "(%s::timestamptz at time zone 'UTC')::date", ISO),
	('text', "to_char(%s::timestamptz at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')", ISO),
	('bigint', "extract(epoch from %s::timestamptz)", SECONDS), ('numeric', "extract(epoch from %s::timestamptz) * 1000", MILLIS),
	('double precision', "extract(epoch from %s::timestamptz) * 1000000000", NANOS), ('bigint', "extract(epoch from %s::timestamptz) * 1000000000", NANOS),
	('text', "lpad(to_hex(extract(epoch from %s::timestamptz)::bigint), 8, '0') || '0123456789abcdef'", OBJECT_ID),
	('bytea', "decode(lpad(to_hex(extract(epoch from %s::timestamptz)::bigint), 8, '0') || '0123456789abcdef', 'hex')", OBJECT_ID),
])
def test_dates_in_every_form(place, kind, value, form):
	place.sql('create table events (id bigint, at %s)' % kind)
	for i, at in enumerate(["'2024-12-30Z'", "'1999-12-31Z'", "'2025-01-02Z'", "'2031-01-01Z'"]):
		place.sql('insert into events values (%d, %s)' % (i, value % at))
	place.sql('insert into events values (9, null)')
	place.move(format=form)
	assert place.sql('select string_agg(id::text, \',\' order by id) from events') == '2,3,9'


@pytest.mark.parametrize('form,old,young', [
	(ISO, '"2024-12-31T23:59:59Z"', '"2025-01-01T00:00:00.5Z"'), (ISO, '"2024-12-31T23:59:59.999+00:00"', '"2025-01-01T00:00:00Z"'),
	(SECONDS, str(CUT_MS // 1000 - 1), str(CUT_MS // 1000)), (MILLIS, '"%d"' % (CUT_MS - 1), '%d.5' % CUT_MS), (NANOS, str(CUT_MS * 10**6 - 1), str(CUT_MS * 10**6)),
	(OBJECT_ID, '"%08xffffffffffffffff"' % (CUT_MS // 1000 - 1), '"%08X0000000000000000"' % (CUT_MS // 1000)),
])
@pytest.mark.parametrize('kind', ['json', 'jsonb'])
def test_dates_in_documents(place, kind, form, old, young):
	"""Whatever else stands there is no date, and fails nothing."""
	place.sql('create table events (id bigint, doc %s)' % kind)
	others = ['null', '{}', '[]', '"x"', '1e300', 'true', '"2024-13-45T99:99:99Z x"', '"2024-01-01"', '"' + 'f' * 24 + '"', '"\'"', '{"b": "2020-01-01T00:00:00Z"}']
	for i, value in enumerate([old, young, *others]):
		place.sql("insert into events values (%d, '%s')" % (i, ('{"a": {"its": %s}}' % value).replace("'", "''")))
	place.sql("insert into events values (90, '{\"a\": 3}'), (91, '[]'), (92, null)")
	place.move(field='doc.a.its', format=form)
	assert set(place.sql('select id from events').split()) == {'1', *map(str, range(2, 2 + len(others))), '90', '91', '92'}


@pytest.mark.parametrize('setup,why', [
	('create table events (id int primary key, at timestamptz); create table lines (event int references events)', 'foreign keys point at'),
	('create table events (id int, at timestamptz) partition by range (at)', 'is a partitioned table'),
	('create table whole (id int, at timestamptz) partition by range (at); create table events partition of whole default', 'is a partition of a table'),
	('create table events (id int, at timestamptz); create table more () inherits (events)', 'inherit from it'),
	('create table events (id int, at timestamptz); create rule r as on delete to events do instead nothing', 'has rules'),
	("create table events (id int, at timestamptz); create function f() returns trigger language plpgsql as 'begin return old; end'; "
		'create trigger t before delete on events for each row execute function f()', 'has a trigger'),
	("create table events (id int, at timestamptz); create function f() returns trigger language plpgsql as 'begin return null; end'; "
		'create trigger t after update or delete on events execute function f()', 'has a trigger'),
	('create view events as select 1 as id, now() as at', 'is no table'), ('select 1', 'is not there'), ('create table events (id int)', 'at is no column'),
	('create table events (id int, at int)', 'must be a column of type timestamp'), ('create table events (id int, at tstzrange)', 'must be a column of type'),
	('create schema steward_x; create table steward_x.events (id int, at timestamptz)', 'is not there'),
])
def test_tables_that_cannot_be_archived(place, setup, why):
	"""A deletion that runs a tenant's code as the service, or changes other tables, or that has no date to go by, does not happen."""
	place.sql(setup)
	assert why in place.refused() and place.files() == []


def test_a_trigger_for_what_is_written_does_not_matter(place):
	place.sql(EVENTS + "; create function f() returns trigger language plpgsql as 'begin return new; end'; "
		'create trigger t before insert or update on events for each row execute function f()')
	fill(place, 10)
	assert sum(place.move()) == 10


def test_nothing_of_a_tenant_runs(place):
	"""Casts, operators and functions with the names of PostgreSQL's own: the deletion is by the service's role."""
	place.sql("create table ran (what text); create type mood as enum ('glad'); "
		"create function f(mood) returns text language plpgsql as $$ begin insert into ran values ('cast'); return 'x'; end $$; "
		'create cast (mood as text) with function f(mood) as implicit; '
		"create function g(timestamptz, timestamptz) returns bool language plpgsql as $$ begin insert into ran values ('operator'); return true; end $$; "
		'create operator public.< (leftarg = timestamptz, rightarg = timestamptz, function = g); '
		"create function format(text, mood) returns text language plpgsql as $$ begin insert into ran values ('format'); return 'x'; end $$; "
		"create table events (id int, at timestamptz, m mood); insert into events values (1, '2020-01-01', 'glad'); "
		"alter database %s set search_path = public, pg_catalog" % place.name)
	place.sql('alter table events enable row level security; alter table events force row level security')
	assert sum(place.move()) == 1
	assert place.sql('select count(*) from ran') == '0' and place.archived('m') == [['glad']]


RAN = ("create table ran (who name); create function note() returns void language sql as 'insert into public.ran values (current_user)'; "
	"create function taken(int) returns int language plpgsql immutable as $$ begin perform public.note(); return $1; end $$; " + EVENTS + "; ")


@pytest.mark.parametrize('setup', [
	'create index on events ((id + taken(1)))', 'create index on events (id) where id > taken(-100)', 'create statistics s on id, (id + taken(1)) from events',
	"create function plain(int8) returns int8 language sql immutable as 'select $1 + public.taken(1)'; create index on events (plain(id))",
	"create function added(int, int) returns int language plpgsql immutable as $$ begin perform public.note(); return $1; end $$; "
		"create operator <+> (leftarg = int, rightarg = int, function = added); create index on events ((id + (1 <+> 2)))"])
def test_what_the_planner_would_run(place, setup):
	"""An immutable function with constants is evaluated by whoever plans a statement over the table, and what it calls may do anything."""
	place.sql(RAN + setup)
	fill(place, 10)
	assert 'made by functions of users' in place.refused() and place.files() == []
	assert place.sql("select count(*) from ran where who = 'steward_engine'") == '0'


def test_checks_and_indexes_that_the_planner_may_see(place):
	"""What is made of PostgreSQL's own functions alone does not matter, nor do checks, whatever the database's owner has set."""
	place.sql(RAN + "alter table events add check (id > taken(1) - 100); create index on events (lower(word)) where id > abs(-1); alter database %s set "
		'constraint_exclusion = on' % place.name)
	fill(place, 10)
	assert sum(place.move()) == 10
	assert place.sql("select count(*) from ran where who = 'steward_engine'") == '0'


def test_a_manifest_of_a_tenant(place):
	"""Whoever may make schemas made one of that name before: with triggers, which would run as the service."""
	place.sql(RAN + "create role tenant%s; create schema steward_archive; create table steward_archive.files (number bigint generated always as identity, archive "
		"text, file text primary key, columns jsonb, rows bigint, bytes bigint, sha256 text, moved timestamptz); create table steward_archive.unnamed (archive text, "
		"file text primary key, since timestamptz); create function f() returns trigger language plpgsql as $$ begin perform public.note(); return new; end $$; "
		"create trigger t before insert on steward_archive.files for each row execute function f(); alter schema steward_archive owner to tenant%s" % (place.name, place.name))
	fill(place, 10)
	assert sum(place.move()) == 10 and place.files() == place.named() != []
	assert place.sql('select count(*) from ran') == '0'


def test_rows_that_a_file_cannot_hold_stay(place):
	place.sql("create table events (id int, at timestamptz, p numeric(4,1), ts timestamp); "
		"insert into events values (1, '2020-01-01', 'NaN', null), (2, '2020-01-01', 1, '294276-12-31'), (3, '2020-01-01', 1, 'infinity'), (4, '2020-01-01', null, null)")
	assert sum(place.move()) == 2
	assert place.sql('select id from events order by id') == '1\n2' and place.archived('id, ts') == [['3', 'infinity'], ['4', None]]


def test_rows_that_somebody_holds_stay(place):
	place.sql(EVENTS)
	fill(place, 100)
	connection = psycopg2.connect(host=str(place.server.dir), port=place.server.port, user='steward', dbname=place.name)
	cursor = connection.cursor()
	cursor.execute("update events set word = 'changed' where id <= 10")
	cursor.execute('select from events where id between 11 and 20 for update')
	assert sum(place.move()) == 80
	connection.commit()
	connection.close()
	assert place.sql("select count(*), count(*) filter (where word = 'changed') from events") == '20|10'
	assert sum(place.move()) == 20 and place.sql('select count(*) from events') == '0'
	assert len({r[0] for r in place.archived('id')}) == len(place.archived('id')) == 100


def test_rows_that_are_too_large(place):
	place.sql(EVENTS)
	fill(place, 100)
	assert 'File too large' in place.refused(bytes=1000) and place.files() == []
	assert 'a row has more than 10 bytes' in place.refused(bytes=10, rows=1) and place.sql('select count(*) from events') == '100'
	assert sum(place.move(bytes=1000, rows=5)) == 100


def test_rows_that_need_too_much_memory(place):
	"""What the library cannot sort at once is too large, so that fewer are tried; it was a failure, again and again."""
	place.sql('create table events (id bigint, at timestamptz, word text)')
	place.sql("insert into events select g, '2020-01-01', repeat(md5(g::text), 3200) from generate_series(1, 2400) g")
	assert 'File too large' in place.refused(order=['word']) and place.files() == []
	assert sum(place.move(order=['word'], rows=400)) == 2400


def backends(place, condition='true'):
	return [int(p) for p in place.sql("select pid from pg_stat_activity where usename = 'steward_engine' and datname = '%s' and %s" % (place.name, condition)).split()]


def test_killed_between_the_file_and_the_commit(place):
	"""The file is there and has no name: the rows are in the table, and the sweep takes it."""
	place.sql(EVENTS)
	fill(place, 1000)
	assert place.move(beforeMs=0) == [0]
	held = psycopg2.connect(host=str(place.server.dir), port=place.server.port, user='steward', dbname=place.name)
	held.cursor().execute('lock table steward_archive.files in access exclusive mode')
	process = place.start()
	until(lambda: backends(place, "wait_event_type = 'Lock'"), what='it is about to name the file')
	assert len(place.files()) == 1
	process.kill()
	process.wait()
	held.rollback()
	held.close()
	until(lambda: not backends(place), what='the server sees that it is gone')
	assert place.sql('select count(*) from events') == '1000' and place.named() == []
	lost = place.files()
	assert sum(place.move()) == 1000 and place.sql('select count(*) from events') == '0'
	assert len(place.archived('id')) == 1000 and set(place.files()) == {*lost, *place.named()}
	assert place.sweep() == 1 and place.files() == place.named()


def test_while_one_moves_rows_nobody_else_does(place):
	place.sql(EVENTS)
	fill(place, 1000)
	place.move(beforeMs=0)
	held = psycopg2.connect(host=str(place.server.dir), port=place.server.port, user='steward', dbname=place.name)
	held.cursor().execute('lock table steward_archive.files in access exclusive mode')
	process = place.start()
	try:
		until(lambda: backends(place, "wait_event_type = 'Lock'"), what='it is about to name the file')
		assert 'Resource temporarily unavailable' in place.refused()
		done = subprocess.run(place.command('sweep', ARCHIVE, 'never'), capture_output=True, text=True, timeout=60)
		assert done.returncode == 1 and 'temporarily' in done.stderr and len(place.files()) == 1
	finally:
		held.rollback()
		held.close()
		process.communicate(timeout=60)
	assert process.returncode == 0 and len(place.archived('id')) == 1000


def test_the_file_cannot_be_put(place):
	place.sql(EVENTS)
	fill(place, 1000)
	(place.store / ARCHIVE).write_text('in its way')
	place.refused()
	assert place.sql('select count(*) from events') == '1000' and place.named() == []
	(place.store / ARCHIVE).unlink()
	assert sum(place.move()) == 1000


def test_the_program_that_writes_files_is_killed(place):
	place.sql(EVENTS)
	fill(place, 200000)
	killed = 0
	for delay in (0, 0.02, 0.05, 0.1, 0.2):
		process = place.start(rows=200000)
		until(lambda: children(process.pid) or process.poll() is not None, what='it is started')
		time.sleep(delay)
		for pid in children(process.pid):
			try:
				os.kill(pid, signal.SIGKILL)
			except ProcessLookupError:
				pass
		process.communicate(timeout=120)
		killed += process.returncode != 0
		assert whole(place) == 200000
	assert killed
	place.move()
	assert place.sql('select count(*) from events') == '0' and whole(place) == 200000


def children(pid):
	try:
		return [int(p) for p in pathlib.Path('/proc/%d/task/%d/children' % (pid, pid)).read_text().split()]
	except OSError:
		return []


def whole(place):
	"""How many rows there are, in the table and in named files, as one snapshot shows it: each once."""
	connection = psycopg2.connect(host=str(place.server.dir), port=place.server.port, user='steward', dbname=place.name)
	connection.set_session(isolation_level='REPEATABLE READ', readonly=True)
	cursor = connection.cursor()
	cursor.execute("select coalesce(array_agg(id), '{}'), count(*) filter (where word is distinct from md5(id::text)) from events")
	rows, wrong = cursor.fetchone()
	cursor.execute("select to_regclass('steward_archive.files')")
	if cursor.fetchone()[0]:
		cursor.execute('select file from steward_archive.files')
		paths = ', '.join("'%s'" % (place.store / ARCHIVE / (f + '.parquet')) for (f,) in cursor.fetchall())
		if paths:  # as one text: to ask for hundreds of thousands of values one by one takes longer than all else of a look
			(ids, bad), = place.duck.query("select string_agg(coalesce(id::text, 'none'), ','), count(*) filter (where word is distinct from md5(id::text)) from read_parquet([%s])" % paths)
			rows += map(int, ids.split(',')) if ids else []
			wrong += int(bad)
	connection.close()
	assert not wrong, '%d rows are not as they were written' % wrong
	assert len(set(rows)) == len(rows), 'a row is there twice'
	return len(rows)


def test_a_file_that_a_restore_may_need_is_not_rubbish(place):
	"""A database that is put back to before the batch has the rows, and nobody names the file; put forward again, it is named."""
	place.sql(EVENTS)
	fill(place, 100)
	place.move(beforeMs=0)
	place.server.forget()
	earlier = Place.__new__(Place)
	earlier.__dict__.update(place.__dict__, name=place.server.fresh(place.name).rpartition('/')[2])
	assert sum(place.move()) == 100
	later = Place.__new__(Place)
	later.__dict__.update(place.__dict__, name=place.server.fresh(place.name).rpartition('/')[2])
	assert earlier.sql('select count(*) from events') == '100' and earlier.sweep(oldest=1000, now=5000) == 0
	assert earlier.sweep(oldest=5000, now=6000) == 0 and len(place.files()) == 1, 'it was named until 5000'
	assert later.sweep(oldest=9000, now=9000) == 0 and len(later.archived('id')) == 100
	assert earlier.sweep(oldest=5001, now=9000) == 1 and place.files() == []


def test_names_in_the_manifest_lead_nowhere_else(place):
	place.sql(EVENTS)
	fill(place, 10)
	place.move()
	(place.store / 'other.parquet').write_text('of another')
	place.sql("insert into steward_archive.unnamed values ('%s', '../other', 'epoch'), ('%s', '/etc/passwd', 'epoch')" % (ARCHIVE, ARCHIVE))
	place.sweep()
	assert (place.store / 'other.parquet').exists() and place.files()


def test_nothing_is_lost_or_twice_whatever_is_killed(place, database):
	"""Rows are written all the time, and moved; the mover, the helper, its server process and the whole server are killed. At every look
	table and files together are what was written."""
	place.sql(EVENTS)
	written, over, rng, allowed = [0], threading.Event(), random.Random(7), threading.Semaphore(0)

	def write():
		while not over.is_set():
			if not allowed.acquire(timeout=0.1):
				continue
			try:
				low = written[0]
				place.sql("insert into events select n, timestamptz '2024-06-01Z' + n * interval '1 second', md5(n::text) from generate_series(%d, %d) n" % (low + 1, low + 500))
				written[0] = low + 500
			except psycopg2.Error:
				until(lambda: alive(place), what='the server is back')
				written[0] = known(place, written[0])

	writer = threading.Thread(target=write)
	writer.start()
	kills = {'mover': 0, 'helper': 0, 'backend': 0, 'server': 0}
	try:
		for turn in range(18):
			allowed.release(8)  # as many on a slow machine: each look reads all that was written
			process = place.start(rows=3000)
			what = ['mover', 'helper', 'backend', 'mover', 'helper', 'server'][turn % 6]
			look = {'mover': lambda: [process.pid], 'helper': lambda: children(process.pid), 'backend': lambda: backends(place), 'server': lambda: []}[what]
			pids = look()
			while not pids and what != 'server' and process.poll() is None:
				pids = look()
			time.sleep(rng.random() * (0.05 if what in ('helper', 'backend') else 0.5))  # those live for a batch
			if what == 'server':
				database.stop(signal.SIGQUIT)
				kills[what] += 1
				database.start()
			for pid in pids:
				try:
					os.kill(pid, signal.SIGKILL)
					kills[what] += 1
				except ProcessLookupError:
					pass
			process.communicate(timeout=120)
			until(lambda: alive(place), what='the server is back')
			low = written[0]
			assert low <= whole(place) <= written[0] + 500
	finally:
		over.set()
		writer.join()
	assert all(kills.values()), kills
	until(lambda: alive(place) and not backends(place), what='what was killed has ended')
	place.move()
	assert whole(place) == written[0] > 0 and place.sql('select count(*) from events') == '0'
	place.sweep()
	assert place.files() == place.named() and whole(place) == written[0]


def alive(place):
	try:
		return place.sql('select 1') == '1'
	except psycopg2.Error:
		return False


def known(place, low):
	"""Whether the rows that were being written when the connection broke are there: all, or none."""
	try:
		there = place.sql('select 1 from events where id = %d limit 1' % (low + 1)) == '1' or whole(place) > low
	except psycopg2.Error:
		until(lambda: alive(place), what='the server is back')
		return known(place, low)
	return low + 500 if there else low


QUERIED = "create table events (id int, n int, f float8, p numeric, w text, b bool, at timestamptz, ts timestamp, d date, u uuid, j json, jb jsonb, a int[])"


def conditions(place, queries):
	done = subprocess.run(place.command('where', 'events'), input='\n'.join(queries) + '\n', capture_output=True, text=True, timeout=120)
	assert done.returncode == 0, done.stderr
	return done.stdout.splitlines()


def meets(document, path, want):
	"""What the query language says, of a document whose lists are values like any other. Absent is not the same as null to $exists alone."""
	there, value = True, document
	for part in path:
		there = isinstance(value, dict) and part in value
		value = value[part] if there else None
	kind = lambda v: 'number' if isinstance(v, (int, float)) and not isinstance(v, bool) else type(v).__name__
	same = lambda w: kind(value) == kind(w) and value == w
	before = {'$lt': lambda w: value < w, '$lte': lambda w: value <= w, '$gt': lambda w: value > w, '$gte': lambda w: value >= w}
	if not isinstance(want, dict):
		return same(want)
	for name, w in want.items():
		if name in before:
			got = kind(value) == kind(w) and before[name](w)
		elif name in ('$in', '$nin'):
			got = any(same(one) for one in w)
		elif name == '$exists':
			got = there == bool(w)
		elif name == '$not':
			got = meets(document, path, w)
		else:
			got = same(w)
		if got == (name in ('$ne', '$nin', '$not')):
			return False
	return True


def takes(document, query):
	for name, want in query.items():
		if name == '$and':
			got = all(takes(document, q) for q in want)
		elif name in ('$or', '$nor'):
			got = any(takes(document, q) for q in want) == (name == '$or')
		else:
			got = meets(document, name.split('.')[1:], want)
		if not got:
			return False
	return True


def test_queries_mean_the_same_as_in_the_language(place):
	rng = random.Random(11)
	values = [None, True, False, 0, 1, -1, 2.5, 12345678901, '', '1', 'true', "it's", 'é', 'Z', 'a', [], [1], {}, {'x': 1}]
	comparable = [v for v in values if not isinstance(v, (list, dict))]
	documents = [{k: rng.choice([*values, {'b': rng.choice(values)}]) for k in 'ab' if rng.random() < 0.8} for _ in range(120)] + [[], 'text', 3, None]

	def condition(depth=0):
		name = rng.choice(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$exists', '$not'][:10 if depth < 3 else 9])
		ordered = [v for v in comparable if isinstance(v, (int, float, str)) and not isinstance(v, bool)]
		return {name: {'$in': lambda: rng.sample(comparable, 3), '$nin': lambda: rng.sample(comparable, 3), '$exists': lambda: rng.choice([True, False, 0, 1]),
			'$not': lambda: condition(depth + 1)}.get(name, lambda: rng.choice(comparable if name in ('$eq', '$ne') else ordered))()}

	def query(kind, depth=0):
		if depth < 3 and rng.random() < 0.3:
			return {rng.choice(['$and', '$or', '$nor']): [query(kind, depth + 1) for _ in range(rng.randint(0, 3))]}
		field = rng.choice(['%s.a', '%s.b', '%s.a.b', '%s.a.b.c']) % kind
		return {field: rng.choice(comparable) if rng.random() < 0.3 else {**condition(), **(condition() if rng.random() < 0.3 else {})}}

	place.sql(QUERIED)
	for i, document in enumerate(documents):
		text = json.dumps(document, ensure_ascii=False).replace("'", "''")
		place.sql("insert into events (id, j, jb) values (%d, '%s', '%s')" % (i, text, text))
	for kind in ('j', 'jb'):
		queries = [query(kind) for _ in range(400)]
		found = set()
		for q, sql in zip(queries, conditions(place, [json.dumps(q, ensure_ascii=False) for q in queries])):
			assert not sql.startswith('!'), (q, sql)
			got = {int(i) for i in place.sql('select id from events where %s' % sql).split()}
			assert got == {i for i, d in enumerate(documents) if takes(d, q)}, (q, sql)
			found.add(len(got))
		assert len(found) > 20
	assert place.sql("select count(*) from events where (%s) is null" % conditions(place, ['{"j.a": {"$gt": 1}, "w": {"$ne": "x"}, "at": {"$lt": "2020-01-01"}}'])[0]) == '0'


@pytest.mark.parametrize('query,ids', [
	('{}', '1,2,3'), ('', '1,2,3'), ('{n: 1}', '1'), ('{n: {$gt: 1}}', '2'), ('{n: {$ne: 1}}', '2,3'), ('{n: null}', '3'), ('{n: {$exists: true}}', '1,2'), ('{n: {$lte: 1.5}}', '1'),
	('{f: {$gte: 2.5}}', '2'), ('{p: {$in: [1, 7]}}', '1'), ("{w: 'it\\'s'}", '1'), ('{"w": "it\'s"}', '1'), ('{w: {$lt: "j"}}', '1'), ('{b: true}', '1'), ('{b: {$ne: true}}', '2,3'),
	('{at: {$lt: "2025-01-01"}}', '1'), ('{at: {$gte: "2025-01-01T00:00:00.5Z"}}', '2'), ('{ts: {$lt: "2025-01-01T00:00:00+01:00"}}', '1'), ('{d: {$lte: "2024-12-31"}}', '1'),
	('{u: "00112233-4455-6677-8899-AABBCCDDEEFF"}', '1'), ('{$or: [{n: 1}, {w: "other"}]}', '1,2'), ('{$nor: [{n: 1}]}', '2,3'), ('{n: {$not: {$gt: 1}}}', '1,3'), ('{n: 1, b: false}', ''),
	('{"jb.x.y": 3, n: {$gt: 0}}', '1'), ('{a: null}', '3'),
])
def test_queries_on_columns(place, query, ids):
	place.sql(QUERIED)
	place.sql("insert into events values (1, 1, 1.5, 1.0, 'it''s', true, '2024-12-31', '2024-12-31', '2024-12-31', '00112233-4455-6677-8899-aabbccddeeff', '{}', '{\"x\": {\"y\": 3}}', '{1}'), "
		"(2, 2, 2.5, 2.0, 'other', false, '2025-01-01 00:00:00.5Z', '2025-01-01', '2025-01-01', '10112233-4455-6677-8899-aabbccddeeff', '[]', '3', '{2}')")
	place.sql('insert into events values (3)')
	assert place.sql("select coalesce(string_agg(id::text, ',' order by id), '') from events where %s" % conditions(place, [query])[0]) == ids
	if ids:
		assert sum(place.move(query=query)) == len(ids.split(',')) and {r[0] for r in place.archived('id')} == set(ids.split(','))


@pytest.mark.parametrize('query,why', [
	('{', 'must be a JSON object'), ('[1]', 'must be a JSON object'), ('{m: 1}', 'm is no column of the table'), ('{"n.x": 1}', 'n.x is no field of a json'), ('{n: "1"}', 'n is a column that is not compared with text'),
	('{n: true}', 'n is a column that is not compared with true or false'), ('{w: 1}', 'w is a column that is not compared with numbers'), ('{at: "soon"}', 'at must be compared with a date and time'),
	('{d: "2024-01-01T00:00:00Z"}', 'd must be compared with a date (YYYY-MM-DD)'), ('{u: "x"}', 'u must be compared with a UUID'), ('{n: {$gt: null}}', 'n is neither before nor after null'),
	('{n: {$regex: "x"}}', 'must use only the operators'), ('{n: {x: 1}}', 'n must be compared by'), ('{n: [1]}', 'n must be compared with text, a number'), ('{n: {$in: [[1]]}}', 'n must be compared with text, a number'),
	('{b: {$gt: true}}', 'b is a column that is not compared with true'), ('{a: 1}', 'a is a column that is not compared with numbers'), ('{"$elemMatch": {}}', '$elemMatch is no column'),
	('{"w\\u0000": 1}', 'must be a JSON object'), ('{"n\\" or true --": 1}', 'is no column of the table'),
])
def test_queries_that_say_nothing_of_the_table(place, query, why):
	place.sql(QUERIED)
	assert why in conditions(place, [query])[0] and conditions(place, [query])[0].startswith('! ')
	assert why in place.refused(query=query)
