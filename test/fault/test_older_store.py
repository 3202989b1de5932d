"""A service that is started on an older copy of its store: snapshots that were taken since then stay, are named, and come back into
the catalogue."""
import contextlib, os, pathlib, shutil, sqlite3, time

import pytest

import databases
from client import REMOTE, cli, metric, ok
from databases import allow, shape, until
from ledger import take

pytestmark = [pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed'),
	      pytest.mark.skipif(REMOTE, reason='copies the file of the store')]


def age(folder):
	"""Sweeps leave what is young."""
	for where, _, names in os.walk(folder):
		for name in names:
			at = os.path.join(where, name)
			os.utime(at, (os.stat(at).st_atime, os.stat(at).st_mtime - 7200))


def test_newer_snapshots_outlive_an_older_store(site, tmp_path):
	s = site()
	allow(s.start())
	c = s.cluster('source', backupEnabled=True, **shape(1)).settled()
	known = take(c)['id']
	s.server.stop()
	shutil.copy(s.data / 'steward.db', tmp_path / 'older')
	s.start()
	newer = take(c)['id']
	dropped = take(c)['id']
	assert s.server.delete('%s/backup/snapshots/%s' % (c.path, dropped)).status_code in (200, 204)
	# By os.walk(), which lets things go away meanwhile.
	manifests = lambda: {pathlib.Path(where).name for where, _, names in os.walk(s.data / 'backups') if names and '/manifests/' in where}
	until(lambda: dropped not in manifests(), what='the deletion')
	records = lambda: {n: pathlib.Path(where) / n for where, _, names in os.walk(s.data / 'backups') if '/catalogue/' in where for n in names}
	until(lambda: set(records()) == {known, newer}, what='what the catalogue says of each beside it')
	s.server.stop()
	records()[known].unlink()
	for end in ('-wal', '-shm'):
		(s.data / ('steward.db' + end)).unlink(missing_ok=True)
	shutil.copy(tmp_path / 'older', s.data / 'steward.db')
	with contextlib.closing(sqlite3.connect(s.data / 'steward.db')) as db:  # it is due within an hour
		db.execute("UPDATE job SET due_ms = 0 WHERE kind = 'backup_sweep'")
		db.commit()
	age(s.data / 'backups')
	s.start()
	try:
		until(lambda: metric(s.server, 'steward_backup_unknown_snapshots') == 1, what='the sweep')
	except AssertionError as e:
		raise AssertionError('%s: %s\n%s' % (e, manifests(), s.server.stderr[-3000:])) from e
	assert set(records()) == {known, newer}  # a sweep writes those that are missing, and leaves strangers'
	assert manifests() == {known, newer} and '%s/%s' % (c.id, newer) in s.server.stderr
	listed = cli('repository', 'unknown', '--data', s.data, check=False)
	assert listed.returncode == 1 and newer in listed.stdout and known not in listed.stdout, listed
	shown = lambda: {d['id']: d for d in ok(s.server.get(c.path + '/backup/snapshots'))['results']}
	assert newer not in shown()
	done = cli('repository', 'adopt', '--data', s.data)
	assert 'is in the catalogue again' in done.stdout, done
	assert shown()[newer]['status'] == 'completed' and shown()[newer]['storageSizeBytes'] > 1000000
	assert 'has all snapshots' in cli('repository', 'unknown', '--data', s.data).stdout
	job = ok(s.server.post(c.path + '/backup/restoreJobs', json={
		'deliveryType': 'automated', 'snapshotId': newer, 'targetClusterName': c.name, 'targetGroupId': s.server.group}))['id']
	over = until(lambda: (lambda d: 'finishedAt' in d and d)(ok(s.server.get('%s/backup/restoreJobs/%s' % (c.path, job)))), 240, 'the restore')
	assert over['failed'] is False, s.server.stderr[-2000:]
	c.settled()
	c.delete()
	c.deleted()


def test_a_window_that_did_not_begin_is_begun_again(site):
	"""A snapshot that was taken before the log's first mark began nothing, though it was told as a success: it is seen within a
	minute, told, and another is taken."""
	s = site()
	allow(s.start())
	c = s.cluster('late', backupEnabled=True, pitEnabled=True, **shape(1)).settled()
	completed = lambda: [d['id'] for d in ok(s.server.get(c.path + '/backup/snapshots'))['results'] if d['status'] == 'completed']
	first, = until(completed, 120, 'the snapshot that begins the window')
	s.server.stop()
	with contextlib.closing(sqlite3.connect(s.data / 'steward.db')) as db, db:
		assert db.execute("UPDATE doc SET secret = json_set(secret, '$.at', json_extract(secret, '$.at') - 60000) WHERE id = ?",
				  (first,)).rowcount == 1
		db.execute("UPDATE doc SET body = json_remove(body, '$.begun') WHERE kind = 'backup_line'")
	s.start()
	again = until(lambda: set(completed()) - {first}, 90, 'another snapshot').pop()
	told = lambda: {e['eventTypeName'] for e in ok(s.server.get('/groups/%s/events' % s.server.group))['results']}
	assert 'CPS_OPLOG_BEHIND' in told()
	until(lambda: 'CPS_OPLOG_CAUGHT_UP' in told(), 60, 'the window')
	now = int(time.time())
	base = lambda: [d['id'] for d in ok(s.server.get('%s/backup/snapshots?pointInTimeUtcSeconds=%d' % (c.path, now)))['results']]
	assert until(base, 60, 'the moment to be offered', longest=1) == [again]
	c.delete()
	c.deleted()
