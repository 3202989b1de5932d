"""steward store copy: both ways, broken off and gone on with, and what it refuses."""
import shutil, subprocess

import pytest

import client, database
from client import cli, ok, unique, until


@pytest.fixture(scope='module')
def postgres():
	d = database.Database()
	yield d
	d.close()


@pytest.fixture(scope='module')
def source(tmp_path_factory):
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
	one, two = hashed(source), hashed(back)
	assert one == two
	data = tmp_path / 'node'
	shutil.copytree(back, data)
	assert hashed(data, url) == one


def test_broken_off(source, postgres):
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
	cli('store', 'copy', '--from', source, '--to', url)
	assert 'clean' in cli('check', '--store', url, '--data', source).stdout


def test_refusals(source, postgres, tmp_path):
	url = postgres.fresh()
	cli('store', 'copy', '--from', source, '--to', url)
	for args, words in ((('--from', source, '--to', url), 'not empty'), (('--from', source), '--to'),
			    (('--from', tmp_path / 'none', '--to', url), 'no store'),
			    (('--from', source, '--to', 'postgresql://127.0.0.1:1/x'), 'cannot')):
		done = cli('store', 'copy', *args, check=False)
		assert done.returncode and words in done.stderr, (args, done.stderr)
