"""Online archives through the engine's own operations (engine/lake.h), on a cluster that it has made: rows leave a table for files in the
archive's place of the repository. What becomes of rows and types is in test_lake_move.py."""
import hashlib, json, os, pathlib, random, shutil, signal, subprocess, tempfile, time

import psycopg2
import pytest

import client
from client import until
from duck import Duck

BUILD = pathlib.Path(client.binary()).parent
PROGRAMS = BUILD / 'test/lake_engine', BUILD / 'steward-lake'
GROUP = '65f000000000000000000abc'
CUT_MS = 1735689600000  # 2025-01-01
DAY_MS = 86400000
archives = iter('65f0000000000000000%05x' % n for n in range(1, 1000))


class Cluster:
	"""A service at a time: each call is one that begins, does one thing, and ends."""

	def __init__(self, programs):
		self.programs = programs
		self.dir = pathlib.Path(tempfile.mkdtemp(prefix='steward-pg-', dir='/tmp'))
		made = self.run('make')
		assert made.returncode == 0, made.stderr
		self.host, self.port = made.stdout.split()
		self.duck = Duck()

	def start(self, *args, key=None):
		env = {**os.environ, **({'KEY': key} if key else {})}
		return subprocess.Popen([self.programs / 'lake_engine', 'at', self.dir, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)

	def run(self, *args, key=None, timeout=300):
		process = self.start(*args, key=key)
		out, err = process.communicate(timeout=timeout)
		return subprocess.CompletedProcess(args, process.returncode, out if args[0] == 'read' else out.decode(), err.decode())

	def inside(self):
		"""As the service itself, by the server's socket: nobody else sees the manifest."""
		[socket] = (self.dir / 'engine/run').glob('*/.s.PGSQL.%s' % self.port)
		return psycopg2.connect(host=str(socket.parent), port=self.port, user='steward_engine', dbname='postgres')

	def connect(self):
		return psycopg2.connect(host=self.host, port=self.port, user='boss', password='correct horse', dbname='postgres', sslmode='require')

	def sql(self, text):
		connection = self.connect()
		try:
			with connection, connection.cursor() as cursor:
				cursor.execute(text)
				return cursor.fetchall() if cursor.description else None
		finally:
			connection.close()

	def alive(self):
		try:
			return self.sql('select 1') == [(1,)]
		except psycopg2.Error:
			self.run('held', '{}')  # a service that looks after it
			return False

	def close(self):
		ended = self.run('end')
		shutil.rmtree(self.dir)
		assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
	if not all(p.exists() for p in PROGRAMS):
		pytest.skip('lake_engine or steward-lake is not built')
	programs = tmp_path_factory.mktemp('programs')
	for p in PROGRAMS:
		shutil.copy(p, programs / p.name)
	c = Cluster(programs)
	yield c
	c.close()


class Archive:
	def __init__(self, cluster, key=None):
		self.cluster, self.id, self.key = cluster, next(archives), key
		self.table = 'events_' + self.id[-5:]
		self.place = cluster.dir / 'backups/US_EAST_1' / GROUP / 'rows' / self.id

	def wish(self, **more):
		return json.dumps({'archive': self.id, 'table': self.table, 'beforeMs': CUT_MS, **more})

	def ask(self, command, **more):
		done = self.cluster.run(command, self.wish(**more), key=self.key)
		assert done.returncode == 0, done.stderr
		return [json.loads(line) for line in done.stdout.splitlines()]

	def refused(self, command, **more):
		done = self.cluster.run(command, self.wish(**more), key=self.key)
		assert done.returncode == 1
		return done.stderr.strip()

	def fill(self, old, young=0):
		self.cluster.sql("create table %s (id bigint, at timestamptz, word text)" % self.table)
		self.cluster.sql("insert into %s select n, timestamptz '2025-01-01Z' + case when n <= %d then -1 else 1 end * n * interval '1 second', "
			"md5(n::text) from generate_series(1, %d) n" % (self.table, old, old + young))

	def left(self):
		return self.cluster.sql('select count(*) from %s' % self.table)[0][0]

	def objects(self):
		return sorted(p.name for p in self.place.iterdir()) if self.place.exists() else []

	def whole(self):
		"""Ids in the table and in the files that the manifest names, as one snapshot of the database shows it."""
		connection = self.cluster.inside()
		connection.set_session(isolation_level='REPEATABLE READ', readonly=True)
		cursor = connection.cursor()
		cursor.execute('select id from %s' % self.table)
		ids = [i for (i,) in cursor.fetchall()]
		cursor.execute("select to_regclass('steward_archive.files')")
		if cursor.fetchone()[0]:
			cursor.execute('select file from steward_archive.files where archive = %s', (self.id,))
			paths = ', '.join("'%s'" % (self.place / (f + '.parquet')) for (f,) in cursor.fetchall())
			ids += [int(i) for (i,) in self.cluster.duck.query('select id from read_parquet([%s])' % paths)] if paths else []
		connection.close()
		assert len(ids) == len(set(ids)), 'a row is there twice'
		return len(ids)


@pytest.fixture
def archive(cluster):
	return Archive(cluster)


def test_rows_move_in_bounded_batches(archive):
	archive.fill(30000, 5000)
	[would] = archive.ask('check')
	assert would['rows'] == 30000 and 30000 * 40 < would['bytes'] < 30000 * 200 and not would['estimated']
	assert archive.left() == 35000 and archive.objects() == []
	moved = archive.ask('move', rows=7000, order=['word'])
	assert all(m['rows'] <= 7000 for m in moved) and sum(m['rows'] for m in moved) == 30000 and [m['over'] for m in moved] == [False] * (len(moved) - 1) + [True]
	assert archive.left() == 5000 and archive.whole() == 35000
	[held] = archive.ask('held')
	files = archive.ask('files')
	assert held['files'] == len(files) == 5 and held['rows'] == sum(f['rows'] for f in files) == 30000 and held['bytes'] == sum(f['bytes'] for f in files)
	assert held['oldest'] == files[0]['moved'] and held['newest'] == files[-1]['moved'] and all(f['newest'] == CUT_MS for f in files)
	for f in files:
		assert [c['name'] for c in json.loads(f['columns'])] == ['id', 'at', 'word']
		read = archive.cluster.run('read', archive.wish(file=f['id'])).stdout
		assert read == (archive.place / (f['id'] + '.parquet')).read_bytes() and hashlib.sha256(read).hexdigest() == f['sha256'] and len(read) == f['bytes']
	assert [m['rows'] for m in archive.ask('move')] == [0] and archive.ask('check')[0]['rows'] == 0
	assert [f + '.parquet' for f in sorted(x['id'] for x in files)] == archive.objects()


def test_a_query_chooses(archive):
	archive.fill(1000, 1000)
	query = '{"id": {"$gt": 500, "$lte": 1500}}'
	assert archive.ask('check', query=query)[0]['rows'] == 1000
	assert sum(m['rows'] for m in archive.ask('move', query=query)) == 1000 and archive.left() == 1000
	[file] = archive.ask('files')
	assert file['newest'] == file['moved']


def test_large_rows_make_more_files(archive):
	archive.cluster.sql('create table %s (id bigint, at timestamptz, word text)' % archive.table)
	archive.cluster.sql("insert into %s select n, '2020-01-01', repeat(md5(n::text), 3000) from generate_series(1, 40) n" % archive.table)
	moved = archive.ask('move', bytes=1 << 20)
	assert sum(m['rows'] for m in moved) == 40 and [m['rows'] for m in moved[:4]] == [3] * 4 and archive.whole() == 40
	archive.cluster.sql("insert into %s values (50, '2020-01-01', repeat('x', 2000000))" % archive.table)
	assert 'a row has more than 1048576 bytes' in archive.refused('move', bytes=1 << 20) and archive.left() == 1


@pytest.mark.parametrize('more,field,why', [
	({'database': 'nowhere'}, 'dbName', 'the cluster has no such database'), ({'table': 'nowhere'}, 'collName', 'nowhere is not there'),
	({'field': 'when'}, 'criteria.dateField', 'when is no column of the table'), ({'field': 'id'}, 'criteria.dateField', 'id must be a column of type'),
	({'query': '{'}, 'criteria.query', 'the query must be a JSON object'), ({'query': '{when: 1}'}, 'criteria.query', 'when is no column of the table'),
	({'order': ['word', 'kind']}, 'partitionFields[1].fieldName', 'kind is no column of the table'),
])
def test_what_cannot_be_is_refused_with_its_field(archive, more, field, why):
	archive.fill(10)
	assert '%s: %s' % (field, why) in archive.refused('check', **more)
	assert why in archive.refused('move', **more) and archive.left() == 10 and archive.objects() == []


def test_another_clusters_rows(archive):
	assert 'no running primary' in archive.refused('move', cluster='65f0000000000000000000a9')


def test_a_large_table_is_estimated(archive):
	archive.cluster.sql("create table %s (id bigint, at timestamptz, word text) with (fillfactor = 10)" % archive.table)
	archive.cluster.sql("insert into %s select n, case when n %% 4 = 0 then timestamptz '2020-01-01' end, repeat('x', 700) from generate_series(1, 40000) n" % archive.table)
	assert archive.cluster.sql("select pg_relation_size('%s') / 8192 >= 40000" % archive.table) == [(True,)]
	[would] = archive.ask('check')
	assert would['estimated'] and 8500 < would['rows'] < 11500 and would['bytes'] > 8500 * 700


def test_files_expire_and_are_swept(archive):
	archive.fill(100)
	archive.ask('move', beforeMs=CUT_MS - 50000)
	archive.ask('move')
	old, young = archive.ask('files')
	assert (old['newest'], young['newest']) == (CUT_MS - 50000, CUT_MS)
	assert archive.ask('expire', than=CUT_MS - 50001)[0]['files'] == 0
	[gone] = archive.ask('expire', than=CUT_MS - 50000)
	assert gone['files'] == 1 and gone['rows'] == old['rows'] and [f['id'] for f in archive.ask('files')] == [young['id']]
	assert archive.ask('sweep', than=1) == [{'dropped': 0, 'kept': 1}] and len(archive.objects()) == 2
	assert archive.ask('sweep', than=int(time.time() * 1000) + DAY_MS) == [{'dropped': 1, 'kept': 0}] and archive.objects() == [young['id'] + '.parquet']
	assert 'the archive has no such file' in archive.refused('read', file=old['id'])
	# The archive is deleted.
	assert archive.ask('expire')[0]['files'] == 1 and archive.ask('held')[0]['files'] == 0
	assert archive.ask('sweep') == [{'dropped': 1, 'kept': 0}] and archive.objects() == []


def test_an_archive_whose_cluster_is_gone(archive):
	other = Archive(archive.cluster)
	for a in (archive, other):
		a.fill(10)
		a.ask('move')
	assert archive.ask('erase', cluster='65f0000000000000000000a9') == [] and archive.objects() == [] and len(other.objects()) == 1
	assert archive.ask('erase', cluster='65f0000000000000000000a9') == []


def test_a_table_that_is_dropped_leaves_its_files(archive):
	archive.fill(10)
	archive.ask('move')
	archive.cluster.sql('drop table %s' % archive.table)
	assert 'is not there' in archive.refused('move') and archive.ask('held')[0]['rows'] == 10
	[file] = archive.ask('files')
	assert archive.cluster.run('read', archive.wish(file=file['id'])).stdout[:4] == b'PAR1'


def test_nothing_was_archived(archive):
	assert archive.ask('held') == [{'bytes': 0, 'files': 0, 'newest': 0, 'oldest': 0, 'rows': 0}] and archive.ask('files') == []
	assert archive.ask('expire')[0]['files'] == 0 and archive.ask('sweep') == [{'dropped': 0, 'kept': 0}]


def test_files_are_sealed_with_the_projects_key(cluster):
	archive = Archive(cluster, key='1')
	archive.fill(5000)
	assert sum(m['rows'] for m in archive.ask('move')) == 5000
	[file] = archive.ask('files')
	assert archive.objects() == [file['id'] + '.parquet.sealed']
	stored = (archive.place / archive.objects()[0]).read_bytes()
	assert stored[:4] == b'SWX1' and b'PAR1' not in stored and len(stored) > file['bytes']
	read = cluster.run('read', archive.wish(file=file['id']), key='1').stdout
	assert hashlib.sha256(read).hexdigest() == file['sha256']
	plain = cluster.dir / 'plain.parquet'
	plain.write_bytes(read)
	assert cluster.duck.query("select count(distinct id) from '%s'" % plain) == [['5000']]
	# Damaged, and with the key taken back.
	(archive.place / archive.objects()[0]).write_bytes(stored[:1000] + bytes([stored[1000] ^ 1]) + stored[1001:])
	archive.key = '1'
	assert 'is damaged' in archive.refused('read', file=file['id'])
	archive.key = 'revoked'
	archive.cluster.sql("insert into %s values (7000, '2020-01-01', 'x')" % archive.table)
	assert 'Key has been revoked' in archive.refused('move') and archive.left() == 1
	archive.key = '1'
	assert sum(m['rows'] for m in archive.ask('move')) == 1
	archive.ask('expire')
	assert archive.ask('sweep') == [{'dropped': 2, 'kept': 0}] and archive.objects() == []


def test_a_file_that_was_exchanged_is_not_read(archive):
	archive.fill(10)
	archive.ask('move')
	path = archive.place / archive.objects()[0]
	path.write_bytes(path.read_bytes()[:-1] + b'2')
	assert 'the file is not what was written' in archive.refused('read', file=path.name.partition('.')[0])


def test_the_object_store_takes_nothing(archive):
	archive.fill(100)
	archive.place.parent.mkdir(parents=True, exist_ok=True)
	archive.place.write_text('in its way')
	assert archive.id in archive.refused('move') and archive.left() == 100
	archive.place.unlink()
	assert sum(m['rows'] for m in archive.ask('move')) == 100


def children(pid):
	try:
		return [int(p) for p in pathlib.Path('/proc/%d/task/%d/children' % (pid, pid)).read_text().split()]
	except OSError:
		return []


def backends(cluster):
	try:
		connection = cluster.inside()
		with connection.cursor() as cursor:
			cursor.execute("select pid from pg_stat_activity where application_name = 'steward' and state = 'active' and query like 'copy (delete%'")
			return [p for (p,) in cursor.fetchall()]
	except psycopg2.Error:
		return []


def test_nothing_is_lost_or_twice_whatever_is_killed(archive):
	"""The service, the helper, its process of the server and the whole server: each ends in the middle of a run, at another moment."""
	archive.fill(150000)
	cluster, rng, killed = archive.cluster, random.Random(5), {'service': 0, 'helper': 0, 'backend': 0, 'server': 0}
	for turn in range(12):
		what = list(killed)[turn % 4]
		process = cluster.start('move', archive.wish(rows=1000))
		process.stdout.readline()  # one batch is done
		time.sleep(rng.random() * 0.15)
		if what == 'server':
			pids = [int((next((cluster.dir / 'engine').glob('*/*/data/postmaster.pid'))).read_text().split()[0])]
		else:
			look = {'service': lambda: [process.pid], 'helper': lambda: children(process.pid), 'backend': lambda: backends(cluster)}[what]
			pids = look()
			while not pids and process.poll() is None:
				pids = look()
		for pid in pids:
			try:
				os.kill(pid, signal.SIGKILL)
				killed[what] += 1
			except ProcessLookupError:
				pass
		process.communicate(timeout=120)
		until(cluster.alive, what='the server is back')
		assert archive.whole() == 150000
	assert all(killed.values()), killed
	until(lambda: not backends(cluster), what='what was killed has ended')
	archive.ask('move')
	assert archive.left() == 0 and archive.whole() == 150000
	archive.ask('sweep')
	assert len(archive.objects()) == archive.ask('held')[0]['files'] and archive.whole() == 150000


def sum_of(cluster, table):
	"""Of all rows, as the server shows them."""
	return cluster.sql('select count(*), md5(string_agg(t::text, chr(10) order by t::text)) from %s t' % table)[0]


def test_rows_come_back(archive):
	archive.fill(5000, 100)
	before = sum_of(archive.cluster, archive.table)
	archive.ask('move', rows=2000)
	count = archive.ask('held')[0]['files']
	back = [archive.ask('bring')[0] for _ in range(count)]
	assert sum(b['rows'] for b in back) == 5000 and [b['over'] for b in back] == [False] * (count - 1) + [True]
	assert sum_of(archive.cluster, archive.table) == before and archive.whole() == 5100
	assert archive.ask('held')[0]['files'] == 0 and 'the archive has no such file' in archive.refused('bring')
	assert archive.ask('sweep') == [{'dropped': count, 'kept': 0}]
	assert sum(m['rows'] for m in archive.ask('move')) == 5000 and archive.whole() == 5100


def test_some_rows_come_back(archive):
	archive.fill(3000)
	before = sum_of(archive.cluster, archive.table)
	archive.ask('move', rows=1000, order=['word'])
	files = archive.ask('files')
	rows = [archive.ask('bring', file=f['id'], which='{"id": {"$gt": 500, "$lte": 1500}}', order=['word'])[0]['rows'] for f in files]
	assert sum(rows) == 1000 and archive.left() == 1000 and archive.whole() == 3000
	assert archive.cluster.sql('select min(id), max(id) from %s' % archive.table) == [(501, 1500)]
	left = archive.ask('files')
	assert sum(f['rows'] for f in left) == 2000 == archive.ask('held')[0]['rows']
	same = {f['id'] for f, r in zip(files, rows) if r == 0}
	assert same == {f['id'] for f in files} & {f['id'] for f in left}, 'a file whose rows stay is as it was'
	assert {(f['moved'], f['newest']) for f in left} <= {(f['moved'], f['newest']) for f in files}
	for f in left:
		words = [w for (w,) in archive.cluster.duck.query("select word from '%s'" % (archive.place / (f['id'] + '.parquet')))]
		assert words == sorted(words) and len(words) == f['rows']
		assert hashlib.sha256(archive.cluster.run('read', archive.wish(file=f['id'])).stdout).hexdigest() == f['sha256']
	for f in left:
		archive.ask('bring', file=f['id'])
	assert sum_of(archive.cluster, archive.table) == before


def test_every_type_comes_back(archive):
	c, t = archive.cluster, archive.table
	c.sql("create type mood_%s as enum ('glad', 'very sad')" % t)
	columns = ['b bool', 'i2 int2', 'i4 int4', 'i8 int8', 'f4 float4', 'f8 float8', 'n numeric', 'p numeric(38,6)', 'd date', 'ti time', 'tz timetz', 'ts timestamp',
		'u uuid', 'by bytea', 'c char(5)', 'v varchar(9)', 'tx text', 'j json', 'jb jsonb', 'a int[]', 'at2 text[]', 'r int4range', 'mr int4multirange', 'iv interval', 'ip inet',
		'm mood_%s' % t, 'ma mood_%s[]' % t, 'bi bit(3)', 'x xml', 'pt point', 'g int generated always as (i4 * 2) stored', 'o int generated always as identity']
	c.sql('create table %s (id bigint primary key, at timestamptz, "odd "" name" text, %s)' % (t, ', '.join(columns)))
	names = [x.split()[0] for x in columns if 'generated' not in x]
	nasty = "E'\\\\N \\\\. a\\tb\\nc\\rd \\\\\\\\ \\u2028 ä \\x01'"
	c.sql("insert into %s (id, at, \"odd \"\" name\", %s) values (1, '2020-01-01 00:00:00.000001', %s, true, -32768, 7, 9007199254740993, 1.5e-10, 0.1, 'NaN', "
		"-12345678901234567890123456789012.123456, '4713-01-01 BC', '24:00', '10:00+02', '0044-03-15 10:11:12.5 BC', '00112233-4455-6677-8899-aabbccddeeff', '\\x00ff5c0a', 'ab', "
		"'', %s, '{\"b\": 1,  \"a\": [null]}', '{\"z\": 1.10}', '{1,null,3}', array[%s, null, 'null'], '[1,5)', '{[1,5),[7,9)}', '1 year 2 mons -3 days 04:05:06.7', '10.0.0.0/8', "
		"'very sad', '{glad,\"very sad\"}', b'101', '<a/>', '(1,2)'), "
		"(2, '-infinity', ''%s), (3, '0044-03-15 10:11:12 BC', null%s)" % (t, ', '.join(names), nasty, nasty, nasty, ', null' * len(names), ', null' * len(names)))
	c.sql("update %s set f4 = '-inf', f8 = 'nan', d = 'infinity', ts = '-infinity', p = .000001, ti = '00:00:00.000001', by = '', tx = '', a = '{}' where id = 2" % t)
	c.sql("update %s set d = '5874897-12-31', ts = '294246-12-31 23:59:59.999999', f8 = 1e308, f4 = 1e-38 where id = 3" % t)
	before = sum_of(c, t)
	query = '{"id": {"$gte": 1}}'
	assert sum(m['rows'] for m in archive.ask('move', query=query)) == 3 and archive.left() == 0
	# One by a query: the others are written again.
	assert archive.ask('bring', which='{"id": 2}')[0]['rows'] == 1
	assert archive.ask('bring')[0]['rows'] == 2 and archive.ask('held')[0]['files'] == 0
	assert sum_of(c, t) == before


def test_a_column_that_came_since(archive):
	archive.fill(10)
	archive.ask('move')
	archive.cluster.sql("alter table %s add more int default 7" % archive.table)
	assert archive.ask('bring')[0]['rows'] == 10 and archive.cluster.sql('select distinct more from %s' % archive.table) == [(None,)]


RAN = "create table if not exists ran (who name); grant all on ran to public; " \
	"create or replace function noted() returns void language sql as 'insert into public.ran values (current_user)'; " \
	"create or replace function note(int) returns int language plpgsql immutable as $$ begin perform public.noted(); return $1; end $$; " \
	"create or replace function noting() returns trigger language plpgsql as $$ begin perform public.note(1); return new; end $$; "


@pytest.mark.parametrize('setup,why', [
	('create trigger t before insert on %s for each row execute function noting()', 'has a trigger for rows that are added'),
	('create constraint trigger t after insert on %s deferrable initially deferred for each row execute function noting()', 'has a trigger for rows that are added'),
	('alter table %s add check (note(1) > 0) not valid', 'has checks or generated columns made by'),
	('alter table %s add g int generated always as (note(1)) stored', 'has checks or generated columns made by'),
	('create domain named_%s as text check (note(length(value)) > 0); alter table %s add d named_%s', 'has columns of domains'),
	('create type pair_%s as (a int, b text); alter table %s add p pair_%s[]', 'has columns of domains'),
	('create index on %s (note(id::int))', 'made by functions of users'),
	('create table one_%s (id bigint primary key, n int); create index on one_%s (note(n)); alter table %s add one bigint references one_%s', 'has foreign keys to'),
	('create table parted_%s (id bigint primary key) partition by hash (id); alter table %s add one bigint references parted_%s', 'has foreign keys to'),
	('alter table %s rename word to words', 'no column word any more'), ('alter table %s alter id type int', 'no column id any more'),
	('alter table %s add must int not null', 'violates not-null constraint'), ('alter table %s add check (id > 5)', 'violates check constraint'),
	('drop table %s', 'is not there')])
def test_what_rows_do_not_come_back_to(archive, setup, why):
	"""Nothing of a tenant's runs with them, and all of them are in the file still."""
	archive.fill(10)
	archive.ask('move')
	archive.cluster.sql(RAN + setup.replace('%s', archive.table))
	archive.cluster.sql('truncate ran')
	assert why in archive.refused('bring')
	assert archive.ask('held')[0]['rows'] == 10 and ('drop' in setup or archive.left() == 0)
	assert archive.cluster.sql('select distinct who from ran') == []


def test_rows_whose_key_is_taken(archive):
	c = archive.cluster
	archive.fill(10)
	c.sql('create table if not exists parents (id bigint primary key); insert into parents select generate_series(1, 10) on conflict do nothing')
	c.sql('alter table %s add primary key (id), add foreign key (id) references parents' % archive.table)
	archive.ask('move')
	c.sql("insert into %s values (3, '2030-01-01', 'another')" % archive.table)
	assert 'File exists' in archive.refused('bring') and archive.ask('held')[0]['rows'] == 10
	c.sql('delete from %s; delete from parents where id = 7' % archive.table)
	assert 'violates foreign key' in archive.refused('bring') and archive.left() == 0
	assert archive.ask('bring', which='{"id": {"$ne": 7}}')[0]['rows'] == 9 and archive.whole() == 10
	c.sql('insert into parents values (7)')
	assert archive.ask('bring')[0]['rows'] == 1 and archive.left() == 10


def test_nothing_is_lost_or_twice_when_rows_come_back(archive):
	"""The service, the helper, its process of the server and the whole server: each ends while rows come back."""
	archive.fill(60000)
	cluster, rng, killed = archive.cluster, random.Random(9), {'service': 0, 'helper': 0, 'backend': 0, 'server': 0}
	before = sum_of(cluster, archive.table)
	archive.ask('move', rows=5000)
	for turn in range(12):
		what = list(killed)[turn % 4]
		which = {'which': '{"id": {"$lt": %d}}' % rng.randint(1, 60000)} if rng.random() < 0.5 else {}
		process = cluster.start('bring', archive.wish(**which))
		if what == 'server':
			time.sleep(0.1 + rng.random() * 0.5)
			pids = [int((next((cluster.dir / 'engine').glob('*/*/data/postmaster.pid'))).read_text().split()[0])]
		else:
			look = {'service': lambda: [process.pid], 'helper': lambda: children(process.pid), 'backend': lambda: coming(cluster)}[what]
			if what == 'service':
				time.sleep(0.1 + rng.random() * 0.5)
			pids = look()
			while not pids and process.poll() is None:
				pids = look()
		for pid in pids:
			try:
				os.kill(pid, signal.SIGKILL)
				killed[what] += 1
			except ProcessLookupError:
				pass
		process.communicate(timeout=120)
		until(cluster.alive, what='the server is back')
		assert archive.whole() == 60000
	assert all(killed.values()), killed
	until(lambda: not coming(cluster), what='what was killed has ended')
	while archive.ask('held')[0]['files']:
		archive.ask('bring')
	assert sum_of(cluster, archive.table) == before
	archive.ask('sweep')
	assert archive.objects() == []


def coming(cluster):
	try:
		with cluster.inside() as connection, connection.cursor() as cursor:
			cursor.execute("select pid from pg_stat_activity where application_name = 'steward' and query like '%steward_brought%' and pid <> pg_backend_pid()")
			return [p for (p,) in cursor.fetchall()]
	except psycopg2.Error:
		return []
