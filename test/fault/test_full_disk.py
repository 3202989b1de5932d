"""No room: changes are refused with 503 and leave nothing, reads go on, and it is over by itself when there is room again. And a
flush that fails is never acknowledged."""
import os, pathlib, shutil, subprocess

import pytest

import client, database
from client import metric, ok, refused, until

ROOT = os.geteuid() == 0


class Disk:
	"""A small disk, with a file on it that takes what is left."""

	def __init__(self, folder, megabytes):
		self.folder, self.ballast = pathlib.Path(folder), pathlib.Path(folder) / 'ballast'
		subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%dm,mode=0700' % megabytes, 'tmpfs', str(folder)], check=True)

	def fill(self, leave=0):
		with open(self.ballast, 'wb', buffering=0) as f:
			try:
				while True:
					f.write(b'\0' * 65536)
			except OSError:
				pass
		os.truncate(self.ballast, max(0, self.ballast.stat().st_size - leave))

	def free(self):
		self.ballast.unlink()

	def close(self):
		subprocess.run(['umount', '-l', str(self.folder)], check=False)


@pytest.fixture
def disk(tmp_path):
	made = []

	def make(folder, megabytes):
		made.append(Disk(folder, megabytes))
		return made[-1]
	yield make
	for d in made:
		d.close()


@pytest.fixture
def start():
	made = []

	def run(*args, **kw):
		made.append(client.Server(*args, clock='real', control=False, **kw))
		return made[-1]
	yield run
	for s in made:
		s.kill()


def project(s):
	return s.post('/groups', json={'name': client.unique(), 'orgId': s.org})


def refused_for_room(answer):
	doc = refused(answer, 503, 'STORE_FULL')
	assert int(answer.headers['Retry-After']) >= 1 and 'room' in doc['detail'], doc
	return doc


def until_full(s, kept):
	"""Projects are made until there is no room; the ids of those that were acknowledged."""
	for _ in range(5000):
		r = project(s)
		if r.status_code != 200:
			refused_for_room(r)
			return
		kept.append(r.json()['id'])
	raise AssertionError('there is always room')


def everything(s):
	out, page = set(), 1
	while True:
		rows = ok(s.get('/groups?itemsPerPage=500&pageNum=%d' % page))['results']
		out |= {p['id'] for p in rows}
		if len(rows) < 500:
			return out
		page += 1


def reads_go_on(s, kept):
	assert everything(s) == set(kept) | {s.group}
	ok(s.get('/groups/' + s.group))
	ok(s.digest.get('/groups/' + s.group))
	assert s.anonymous.get('/healthz').status_code == 200


@pytest.mark.skipif(not ROOT, reason='needs root, to mount a small disk')
def test_the_disk_of_the_embedded_store(start, disk, tmp_path):
	folder = tmp_path / 'small'
	folder.mkdir()
	small = disk(folder, 24)
	s = start('--record', folder / 'recording', '--config', limits(folder), data_dir=folder / 'data')
	kept = [ok(project(s))['id']]
	small.fill(leave=400000)
	until_full(s, kept)
	reads_go_on(s, kept)
	ready = refused(s.anonymous.get('/readyz'), 503, 'STORE_FULL')
	assert 'room' in ready['detail'] and metric(s, 'steward_store_full') == 1
	refused_for_room(s.delete('/groups/' + kept[0]))
	refused_for_room(s.patch('/groups/' + kept[0], json={'name': 'other'}))
	small.free()
	until(lambda: s.anonymous.get('/readyz').status_code == 200, what='the recovery, without a write')
	assert metric(s, 'steward_store_full') == 0
	kept.append(ok(project(s))['id'])
	ok(s.delete('/groups/' + kept.pop(0)), 204)
	reads_go_on(s, kept)
	s.kill()
	t = start(data_dir=folder / 'data')
	reads_go_on(t, kept)
	t.stop()
	assert 'clean' in client.cli('check', '--data', folder / 'data').stdout


def limits(folder):
	"""Many calls in a short time."""
	file = folder / 'config'
	file.write_text('limit.* = 1000000/1000000\n')
	return file


@pytest.mark.skipif(not shutil.which('prlimit'), reason='no prlimit')
def test_files_that_may_not_grow(start, tmp_path):
	"""A limit of the process instead of a disk: the same, and no death by SIGXFSZ. The log may be such a file too."""
	s = start('--config', limits(tmp_path), prefix=['prlimit', '--fsize=2500000:'])
	kept = []
	until_full(s, kept)
	reads_go_on(s, kept)
	refused(s.anonymous.get('/readyz'), 503, 'STORE_FULL')
	subprocess.run(['prlimit', '--pid', str(s.pid), '--fsize=unlimited:'], check=True)
	until(lambda: s.anonymous.get('/readyz').status_code == 200, what='the recovery')
	kept.append(ok(project(s))['id'])
	reads_go_on(s, kept)


@pytest.mark.skipif(not ROOT, reason='needs root, to mount a small disk')
def test_the_disk_of_a_shared_store(start, disk, tmp_path):
	"""A tablespace without room: PostgreSQL's own log has some, so that it says 53100 and goes on."""
	db = database.Database()
	folder = db.dir / 'small'
	folder.mkdir()
	small = disk(folder, 48)
	try:
		(folder / 'space').mkdir()
		shutil.chown(folder, database.USER)
		shutil.chown(folder / 'space', database.USER)
		db.sql("CREATE TABLESPACE small LOCATION '%s'" % (folder / 'space'), database='postgres')
		db.sql('CREATE DATABASE narrow TABLESPACE small', database='postgres')
		s = start('--store', db.url().rsplit('/', 1)[0] + '/narrow', '--config', limits(tmp_path))
		kept = [ok(project(s))['id']]
		small.fill(leave=300000)
		until_full(s, kept)
		reads_go_on(s, kept)

		def told():
			"""Nodes share it: a balancer must not leave them all out. What was too large may leave room for what the service tries itself."""
			until_full(s, kept)
			return ok(s.anonymous.get('/readyz'))['store'].startswith('full')
		until(told, 60, 'a store that is full to be told')
		small.free()
		until(lambda: ok(s.anonymous.get('/readyz'))['store'] == 'ok', what='the recovery')
		kept.append(ok(project(s))['id'])
		reads_go_on(s, kept)
		s.stop()
	finally:
		db.stop()  # what is mounted below its folder goes before that
		small.close()
		db.close()


@pytest.mark.skipif('asan' in client.binary() or 'tsan' in client.binary(), reason='a preloaded library before the sanitizer')
def test_a_flush_that_fails(start, tmp_path):
	"""What was not flushed is not acknowledged, and the process does not go on with what the system believes to be on disk."""
	library, mark = tmp_path / 'flush_fails.so', tmp_path / 'now'
	subprocess.run(['cc', '-shared', '-fPIC', '-o', library, pathlib.Path(__file__).with_name('flush_fails.c')], check=True)
	s = start(env={'LD_PRELOAD': str(library), 'FLUSH_FAILS': str(mark)})
	kept = [ok(project(s))['id'] for _ in range(5)]
	mark.touch()
	with pytest.raises(client.requests.exceptions.ConnectionError):
		answer = project(s)
		assert answer.status_code >= 500, 'acknowledged, and not on disk'
	assert s.process.wait(60) != 0 and 'did not take what was flushed' in s.stderr
	s.kill()
	mark.unlink()
	t = start(data_dir=s.data_dir)
	found = everything(t)
	assert found >= set(kept) | {t.group} and len(found) <= len(kept) + 2
	t.stop()
