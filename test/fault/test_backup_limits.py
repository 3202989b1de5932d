"""No room for the log of backups: of what waits for a repository that is away, on the databases' disk, in a cluster's own bound.
Somebody is told first, then what can be restored ends there; the databases go on, and the next snapshot begins another window."""
import os

import psycopg2, pytest

import databases
from client import refused
from databases import allow, shape, until
from ledger import Repository, ask_point, completed, events, leads_to, moment, restored, snapshots

WAIT_MB = 64
TOLD = ('CPS_OPLOG_BEHIND', 'CPS_OPLOG_CAUGHT_UP')
ROOT = os.geteuid() == 0
pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')


@pytest.fixture
def backed(site):
	made = []

	def make(*args, disk=0):
		s = site(*args)
		made.append(Repository(s.root))
		s.args = (*s.args, '--backups', made[-1].path)
		if disk:
			s.disk(disk)
		allow(s.start())
		return s, made[-1]
	yield make
	for r in made:
		r.close()


def begin(s, **more):
	c = s.cluster('source', backupEnabled=True, pitEnabled=True, **{**shape(1), **more}).settled()
	until(lambda: completed(c), 240, 'the first snapshot', longest=0.5)
	c.ask('create table kept(n int); create table bulk(t text); alter table bulk alter t set storage external')
	return c


def spooled(c):
	"""Bytes that wait."""
	folder = c.site.data / 'engine' / c.id
	total = 0
	for f in list(folder.glob('*/spool/*/*')) + list(folder.glob('spool/*/*/*/*')):
		try:
			total += f.stat().st_blocks * 512
		except FileNotFoundError:
			pass
	return total


def handed_on(c):
	"""Whether all whole segments lie in the spool, or did."""
	return not list((c.directory(c.primary()) / 'pg_wal' / 'archive_status').glob('*.ready'))


def write(c, megabytes):
	"""Log, and no more data than before."""
	conn = c.connect()
	for _ in range(megabytes // 4):
		conn.cursor().execute("insert into bulk select repeat(md5(n::text), 100) from generate_series(1, 1200) n; truncate bulk")
	conn.close()


def given_up(s):
	return 'they are given up' in s.server.stderr


def offered(c, point, target, seconds=180):
	answers = []

	def asked():
		answers[:] = [ask_point(c, point, target)]
		return answers[0].status_code == 200
	try:
		until(asked, seconds, 'the point to be offered', longest=1)
	except AssertionError as e:
		raise AssertionError('%d: %s' % (point, answers[0].text)) from e
	return restored(c, answers[0].json(), target)


def kept(c):
	return sorted(n for n, in c.ask('select n from kept'))


def ended_and_begun(s, c, repository, before, taken):
	"""What is to be seen after the log was given up."""
	c.ask('insert into kept values (2)')  # the database goes on
	between = moment()
	failed = sum(d['status'] == 'failed' for d in snapshots(c))
	assert not failed, 'snapshots are tried although their repository is away'
	repository.back()
	until(lambda: completed(c) > taken, 240, 'the snapshot that begins another window', longest=0.5)
	until(lambda: events(c, *TOLD) == list(TOLD), 180, 'the event that it is over', longest=0.5)
	c.ask('insert into kept values (3)')
	after = moment()
	target = s.cluster('target', **shape(1)).settled()
	offered(c, after, target)
	assert kept(target) == [1, 2, 3]
	refused(ask_point(c, between, target), 400, 'POINT_IN_TIME_NOT_RESTORABLE')
	offered(c, before, target)
	assert kept(target) == [1]
	for one in (c, target):
		one.delete()
	for one in (c, target):
		one.deleted()


def test_more_log_waits_than_may(backed):
	s, repository = backed('--backup-spool', str(WAIT_MB))
	c = begin(s)
	c.ask('insert into kept values (1)')
	before = moment()
	until(lambda: leads_to(c, before), 120, 'the log in the repository', longest=1)
	taken = completed(c)
	repository.away()
	until(lambda: c.server.get('%s/backup/snapshots?pointInTimeUtcSeconds=%d' % (c.path, before)).status_code == 503, 60)
	# More than half of it: somebody is told, and all of it still waits.
	while spooled(c) < WAIT_MB * 5 << 17:
		write(c, 4)
		until(lambda: handed_on(c), 60, 'the archiver')
	until(lambda: events(c, *TOLD) == ['CPS_OPLOG_BEHIND'], 180, 'the event', longest=0.5)
	assert not given_up(s) and spooled(c) >= WAIT_MB << 19
	# More than all of it.
	until(lambda: (write(c, 16), given_up(s))[1], 180, 'the end of the window')
	until(lambda: spooled(c) < WAIT_MB << 20, 180, 'the spool to be emptied')
	# And it does not grow again without end.
	write(c, 2 * WAIT_MB)
	until(lambda: spooled(c) < WAIT_MB * 5 << 18, 180, 'the bound')
	ended_and_begun(s, c, repository, before, taken)


@pytest.mark.skipif(not ROOT, reason='needs root, to mount a small disk')
def test_the_disk_of_the_databases_fills(backed):
	"""The log that waits is given up before it takes the databases' last room."""
	s, repository = backed(disk=640)
	c = begin(s)
	c.ask('insert into kept values (1)')
	before = moment()
	until(lambda: leads_to(c, before), 120, 'the log in the repository', longest=1)
	taken = completed(c)
	repository.away()
	told = False
	while not given_up(s):
		disk = os.statvfs(s.mounted)
		left, spare, waits = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize // 10, spooled(c)
		if left < spare:
			until(lambda: given_up(s), 180, 'the end of the window')
		elif not told and waits > (waits + left - spare) * 0.6:
			until(lambda: events(c, *TOLD), 180, 'the event', longest=0.5)
			told = True
			assert not given_up(s)
		else:
			write(c, 4)  # never refused
	assert told and events(c, *TOLD) == ['CPS_OPLOG_BEHIND']
	write(c, 32)
	s.disk(1500)  # there is to be room for another cluster
	ended_and_begun(s, c, repository, before, taken)


def test_a_full_cluster_goes_on_being_archived(backed):
	"""It is read-only; each moment of it can be restored, also the one before it was full."""
	s, _ = backed('--db-disk-mb', '25')
	c = begin(s)
	c.ask('insert into kept values (1)')
	before = moment()
	with pytest.raises(psycopg2.Error):
		for _ in range(400):
			c.ask("insert into bulk select repeat(md5(n::text), 100) from generate_series(1, 1200) n")
	until(lambda: c.why() and 'disk full' in c.why(), 120, 'the status')
	full = moment()
	until(lambda: leads_to(c, full), 120, 'the moment at which it is full', longest=1)
	assert not events(c, *TOLD)
	offered(c, before, c)
	until(lambda: not c.why() or 'disk full' not in c.why(), 120, 'room')
	until(lambda: writes(c), 60, 'writes')
	assert kept(c) == [1, 4]
	c.delete()
	c.deleted()


def writes(c):
	try:
		c.ask('insert into kept values (4)')
		return True
	except psycopg2.Error:
		return False
