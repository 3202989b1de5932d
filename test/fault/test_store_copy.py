"""steward store copy: both ways, broken off and gone on with, and what it refuses."""
import contextlib, shutil, sqlite3, subprocess

import pytest

import client, database, databases
from client import cli, ok, unique, until


@pytest.fixture(scope='module')
def postgres():
	d = database.Database()
	yield d
	d.close()


@pytest.fixture
def source(kept, tmp_path):
	"""Of its own for each: what was copied is marked as moved."""
	return shutil.copytree(kept, tmp_path / 'source')


@pytest.fixture(scope='module')
def kept():
	"""A stopped service's data directory with lists long enough to have blocks, events, jobs, answers and overrides."""
	s = client.Server()
	org, = s.seed({'name': unique('copied'), 'projectCount': 1700, 'principals': [
		{'type': 'apiKey', 'roles': ['ORG_OWNER'], 'accessList': ['127.0.0.1/32']}]})
	ok(s.post('/groups', json={'name': 'ünï', 'orgId': s.org}, headers={'Idempotency-Key': 'k'}))
	cli('limits', 'set', '--data', s.data_dir, '--all', '--capacity', 5000, '--refill', 5000)
	s.stop()
	return s.data_dir


def hashed(data, *store):
	"""What a service on the store shows."""
	s = client.Server('--store', *store, data_dir=data) if store else client.Server(data_dir=data)
	try:
		shown = [ok(s.get('/groups?itemsPerPage=500&pageNum=%d' % page))['results'] for page in range(1, 5)]
		shown.append(ok(s.get('/orgs/%s/events?itemsPerPage=500' % s.org))['results'])
		again = s.post('/groups', json={'name': 'ünï', 'orgId': s.org}, headers={'Idempotency-Key': 'k'})
		assert again.headers.get('Idempotency-Replayed') == 'true', again.text
		s.stop()
	finally:
		s.kill()
	return [[client.bare(d) for d in page] for page in shown]


def test_there_and_back(source, postgres, tmp_path):
	url, back = postgres.fresh(), tmp_path / 'back'
	there = cli('store', 'copy', '--from', source, '--to', url)
	assert 'rows copied and compared' in there.stdout and 'copy' in there.stderr
	assert 'clean' in cli('check', '--store', url, '--data', source).stdout
	cli('store', 'copy', '--from', url, '--to', back)
	assert 'clean' in cli('check', back).stdout
	for f in ('secret.key', 'bootstrap.json'):
		shutil.copy(source / f, back)
	moved = cli('serve', '--data', source, '--listen', '127.0.0.1:0', check=False)
	assert moved.returncode and 'was moved to ' + url.split('?')[0] in moved.stderr, moved.stderr
	cli('store', 'reopen', '--from', source)
	one, two = hashed(source), hashed(back)
	assert one == two
	data = tmp_path / 'node'
	shutil.copytree(back, data)
	cli('store', 'reopen', '--from', url)
	assert hashed(data, url) == one
	again = cli('store', 'reopen', '--from', url, check=False)
	assert again.returncode and 'not moved' in again.stderr, again.stderr


def test_the_key_of_another_service(source, postgres, tmp_path):
	"""That in ./data counts only where the service itself would take it."""
	url, key = postgres.fresh(), tmp_path / 'data' / 'secret.key'
	cli('store', 'copy', '--from', source, '--to', url)
	key.parent.mkdir()
	key.write_bytes(bytes(reversed((source / 'secret.key').read_bytes())))
	key.chmod(0o600)
	assert 'clean' in cli('check', url, cwd=tmp_path).stdout
	assert 'not signed' in cli('check', '--store', url, cwd=tmp_path, check=False).stdout


def test_broken_off(source, postgres, tmp_path):
	"""Killed while it waits for a table: the next run goes on from there."""
	url = postgres.fresh()
	name = url.rsplit('/', 1)[1]
	cli('limits', 'list', '--store', url)  # makes the tables
	for table in ('list', 'event', 'meta'):
		lock = subprocess.Popen([postgres.bin / 'psql', '-h', postgres.dir, '-p', str(postgres.port), '-U', 'steward', '-d',
			name, '-qc', 'BEGIN; LOCK TABLE steward.%s IN EXCLUSIVE MODE; SELECT pg_sleep(60)' % table])
		locked = "SELECT count(*) FROM pg_locks WHERE mode = '%s' AND relation = 'steward.%s'::regclass"
		until(lambda: int(postgres.sql(locked % ('ExclusiveLock', table), database=name)))
		p = subprocess.Popen([client.binary(), 'store', 'copy', '--from', str(source), '--to', url], stderr=subprocess.DEVNULL)
		until(lambda: int(postgres.sql(locked % ('RowExclusiveLock', table) + ' AND NOT granted', database=name)))
		p.kill()
		p.wait()
		postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = '%s'"
			     % name)
		lock.wait()
	assert 0 < int(postgres.sql('SELECT count(*) FROM steward.doc', database=name))
	# A part of a store is none: nobody serves it, and nobody copies it on.
	half = cli('serve', '--data', tmp_path / 'node', '--store', url, '--listen', '127.0.0.1:0', check=False)
	assert half.returncode and 'broken off' in half.stderr, half.stderr
	half = cli('store', 'copy', '--from', url, '--to', tmp_path / 'half', check=False)
	assert half.returncode and 'broken off' in half.stderr, half.stderr
	cli('store', 'copy', '--from', source, '--to', url)
	assert 'clean' in cli('check', '--store', url, '--data', source).stdout


def test_refusals(source, postgres, tmp_path):
	url = postgres.fresh()
	cli('store', 'copy', '--from', source, '--to', url)
	moved = cli('store', 'copy', '--from', source, '--to', postgres.fresh(), check=False)
	assert moved.returncode and 'was moved to' in moved.stderr, moved.stderr
	cli('store', 'reopen', '--from', source)
	for args, words in ((('--from', source, '--to', url), 'not empty'), (('--from', source), '--to'),
			    (('--from', tmp_path / 'none', '--to', url), 'no store'),
			    (('--from', source, '--to', 'postgresql://127.0.0.1:1/x'), 'cannot')):
		done = cli('store', 'copy', *args, check=False)
		assert done.returncode and words in done.stderr, (args, done.stderr)


def test_in_use(source, postgres, tmp_path):
	"""A service that runs on the source goes on writing what the copy would not have."""
	data, url = tmp_path / 'data', postgres.fresh()
	shutil.copytree(source, data)
	s = client.Server(data_dir=data)
	done = cli('store', 'copy', '--from', data, '--to', url, check=False)
	assert done.returncode and 'stop it first' in done.stderr, done.stderr
	s.stop()
	cli('store', 'copy', '--from', data, '--to', url)
	node = client.Server('--store', url, data_dir=data)
	done = cli('store', 'copy', '--from', url, '--to', tmp_path / 'back', check=False)
	assert done.returncode and 'stop them first' in done.stderr, done.stderr
	node.stop()
	cli('store', 'copy', '--from', url, '--to', tmp_path / 'back')


@contextlib.contextmanager
def held(postgres, name, table, mode, waiting):
	"""A table that nobody gets at until those who are awaited wait for it, and the block is over."""
	lock = subprocess.Popen([postgres.bin / 'psql', '-h', postgres.dir, '-p', str(postgres.port), '-U', 'steward', '-d', name, '-qc',
		'BEGIN; LOCK TABLE steward.%s IN %s MODE; SELECT pg_sleep(60)' % (table, mode)], stderr=subprocess.DEVNULL)
	locks = "SELECT count(*) FROM pg_locks WHERE relation = 'steward.%s'::regclass AND %s"
	until(lambda: int(postgres.sql(locks % (table, 'granted'), database=name)))
	try:
		yield
		until(lambda: int(postgres.sql(locks % (table, 'NOT granted'), database=name)) >= waiting)
	finally:
		lock.kill()
		lock.wait()
		postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%%pg_sleep(60)%%' AND datname = '%s' AND pid <> "
			     'pg_backend_pid()' % name)


def copying(source, target):
	return subprocess.Popen([client.binary(), 'store', 'copy', '--from', str(source), '--to', str(target)], stdout=subprocess.PIPE,
				stderr=subprocess.PIPE, text=True)


def test_two_copies_at_once(source, postgres, tmp_path):
	"""Of one source into two targets: one of them can be used, never both."""
	url, targets = postgres.fresh(), [tmp_path / 'one', tmp_path / 'two']
	cli('store', 'copy', '--from', source, '--to', url)
	with held(postgres, url.rsplit('/', 1)[1], 'answer', 'ACCESS EXCLUSIVE', 2):
		copies = [copying(url, t) for t in targets]
	said = [c.communicate(timeout=60)[1] for c in copies]
	assert sorted(c.returncode == 0 for c in copies) == [False, True], said
	lost = [i for i in (0, 1) if copies[i].returncode][0]
	assert 'was moved to' in said[lost], said
	none = cli('serve', '--data', targets[lost], '--listen', '127.0.0.1:0', check=False)
	assert none.returncode and 'broken off' in none.stderr, none.stderr


def test_a_service_that_starts_meanwhile(source, postgres, tmp_path):
	"""On the source, after the copy has looked whether one runs: the source stays the one that is used."""
	url, target = postgres.fresh(), postgres.fresh()
	cli('store', 'copy', '--from', source, '--to', url)
	cli('limits', 'list', '--store', target)  # makes the tables
	with held(postgres, target.rsplit('/', 1)[1], 'doc', 'ACCESS EXCLUSIVE', 1):
		copy = copying(url, target)
		until(lambda: int(postgres.sql('SELECT count(*) FROM pg_locks WHERE NOT granted', database=target.rsplit('/', 1)[1])))
		node = client.Server('--store', url, data_dir=source)
	said = copy.communicate(timeout=60)[1]
	node.stop()
	assert copy.returncode and ('stop them first' in said or 'differs' in said), said
	assert not int(postgres.sql("SELECT count(*) FROM steward.meta WHERE key = 'store.moved'", database=url.rsplit('/', 1)[1]))
	client.Server('--store', url, data_dir=source).stop()


def test_changed_meanwhile(source, postgres, tmp_path):
	"""Rows that the copy has already, changed in the source before it went on: the comparison finds them."""
	data, url = tmp_path / 'data', postgres.fresh()
	shutil.copytree(source, data)
	name = url.rsplit('/', 1)[1]
	cli('limits', 'list', '--store', url)
	postgres.sql("CREATE FUNCTION steward.no() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'full'; END$$; CREATE TRIGGER no"
		     ' BEFORE INSERT ON steward.event EXECUTE FUNCTION steward.no()', database=name)
	done = cli('store', 'copy', '--from', data, '--to', url, check=False)
	assert done.returncode and 'full' in done.stderr, done.stderr
	postgres.sql('DROP FUNCTION steward.no CASCADE', database=name)
	with contextlib.closing(sqlite3.connect(data / 'steward.db')) as db, db:
		assert db.execute("UPDATE doc SET body = '{}' WHERE seq = 700").rowcount
	done = cli('store', 'copy', '--from', data, '--to', url, check=False)
	assert done.returncode and 'differs in doc' in done.stderr, done.stderr
	half = cli('serve', '--data', tmp_path / 'node', '--store', url, '--listen', '127.0.0.1:0', check=False)
	assert half.returncode and 'broken off' in half.stderr, half.stderr


def test_clusters_keep_their_host(postgres, tmp_path):
	"""Where databases are a host's, clusters and their jobs are bound to it; those of several hosts fit into no store of one
	process. (That real ones go on: test_store_move.py.)"""
	s, url = client.Server(), postgres.fresh()
	name, data = url.rsplit('/', 1)[1], s.data_dir
	for c in ('one', 'two'):
		ok(s.post('/groups/%s/clusters' % s.group, json={'name': c, **databases.shape(nodes=1)}), 201)
	s.stop()
	host = (data / 'node.id').read_text()
	with contextlib.closing(sqlite3.connect(data / 'steward.db')) as db, db:
		assert db.execute("UPDATE meta SET value = 'postgres' WHERE key = 'engine'").rowcount == 1
		ids = [r[0] for r in db.execute("SELECT id FROM doc WHERE kind = 'cluster' ORDER BY name")]
	cli('store', 'copy', '--from', data, '--to', url)
	assert postgres.sql("SELECT string_agg(DISTINCT host, ',') FROM steward.job WHERE subject IN ('%s', '%s')" % tuple(ids),
			    database=name) == host
	assert postgres.sql("SELECT string_agg(value || id, ',' ORDER BY value) FROM steward.ref WHERE kind = 'job_host'",
			    database=name) == ','.join(sorted(i + host for i in ids))
	other = "UPDATE steward.doc SET secret = replace(secret, '%s', '%s') WHERE id = '%s'"
	postgres.sql(other % (host, 'f' * 24, ids[1]), database=name)
	back = cli('store', 'copy', '--from', url, '--to', tmp_path / 'back', check=False)
	assert back.returncode and 'several hosts' in back.stderr and 'two on ' + 'f' * 24 in back.stderr, back.stderr
	half = cli('serve', '--data', tmp_path / 'back', '--listen', '127.0.0.1:0', check=False)
	assert half.returncode and 'broken off' in half.stderr, half.stderr
	# With one host left, the same copy is finished.
	with contextlib.closing(sqlite3.connect(tmp_path / 'back' / 'steward.db')) as db, db:
		assert db.execute('UPDATE doc SET secret = replace(secret, ?, ?) WHERE id = ?', ('f' * 24, host, ids[1])).rowcount == 1
	cli('store', 'copy', '--from', url, '--to', tmp_path / 'back')
	assert 'clean' in cli('check', tmp_path / 'back').stdout
