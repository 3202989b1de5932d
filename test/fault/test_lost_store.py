"""The store is lost: with secret.key and the repository alone the catalogue is made again, and a restore works from it."""
import contextlib, os, shutil, signal

import pytest

import database, databases, reflinks
from client import REMOTE, cli, ok, refused
from databases import allow, shape, until
from ledger import ask_point, leads_to, moment, restored, snapshots, take
from test_encryption_files import keys, name_key

pytestmark = [pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed'),
	      pytest.mark.skipif(REMOTE, reason='deletes the file of the store')]


def lose_everything(s):
	"""But for secret.key and the repository: as on a new machine."""
	s.server.stop()
	for p in databases.working_in(s.root):
		with contextlib.suppress(ProcessLookupError):
			os.kill(p, signal.SIGKILL)
	until(lambda: not databases.working_in(s.root), what='the end of the databases')
	kept = s.root / 'kept'
	kept.mkdir()
	for name in ('secret.key', 'backups'):
		(s.data / name).rename(kept / name)
	if s.mounted:
		reflinks.unmount(s.mounted)
		s.mounted = None
	shutil.rmtree(s.data)
	s.data.mkdir(mode=0o711)
	for name in ('secret.key', 'backups'):
		(kept / name).rename(s.data / name)


def records(s):
	return {p.name: p for p in (s.data / 'backups').glob('*/*/catalogue/*/*')}


def restore(s, project, source, snapshot, target, **headers):
	jobs = '/groups/%s/clusters/%s/backup/restoreJobs' % (project, source)
	job = ok(s.server.post(jobs, json={'deliveryType': 'automated', 'snapshotId': snapshot, 'targetClusterName': target.name,
					   'targetGroupId': s.server.group}, headers=headers))['id']
	over = until(lambda: (lambda d: 'finishedAt' in d and d)(ok(s.server.get('%s/%s' % (jobs, job)))), 240, 'the restore')
	assert over['failed'] is False, s.server.stderr[-2000:]
	target.settled()


def test_rebuilt_from_the_repository_alone(site):
	s = site()
	allow(s.start())
	project, name = s.server.group, ok(s.server.get('/groups/' + s.server.group))['name']
	c = s.cluster('orders', backupEnabled=True, pitEnabled=True, **shape(1)).settled()
	c.ask('CREATE TABLE t AS SELECT g, md5(g::text) FROM generate_series(1, 1000) g')
	early = take(c)
	c.ask('INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1001, 3000) g')
	late = take(c)
	c.ask('INSERT INTO t SELECT g, md5(g::text) FROM generate_series(3001, 4000) g')
	at = moment()
	expected = c.ask('SELECT count(*), sum(hashtext(t::text)) FROM t WHERE g <= 3000')
	c.ask('DROP TABLE t')
	until(lambda: leads_to(c, at), 120, 'the log')
	were = {d['id'] for d in snapshots(c)}  # one more has begun the window
	assert set(records(s)) == were and len(were) == 3
	assert 'clean' in cli('repository', 'check', '--data', s.data).stdout
	records(s)[early['id']].unlink()  # as of an earlier version, which wrote none
	lose_everything(s)
	done = cli('repository', 'rebuild', '--data', s.data, check=False)
	assert done.returncode == 2 and 'start it once' in done.stderr, done
	allow(s.start())
	assert s.server.get('/groups/' + project).status_code == 404
	refused = cli('repository', 'adopt', '--data', s.data, check=False)
	assert refused.returncode == 1 and 'repository rebuild' in refused.stdout, refused
	done = cli('repository', 'rebuild', '--data', s.data)
	assert done.stdout.count('is in the catalogue again') == 3 and name in done.stdout, done
	assert 'has all snapshots' in cli('repository', 'unknown', '--data', s.data).stdout
	cli('check', '--data', s.data)
	shown = {d['id']: d for d in snapshots(c)}
	assert set(shown) == were
	same = lambda d: {k: v for k, v in d.items() if k not in ('expiresAt', 'links')}
	assert same(shown[late['id']]) == same(late) and shown[late['id']]['expiresAt'] > late['expiresAt']
	by_manifest = shown[early['id']]
	assert by_manifest['description'] == 'found in the repository' and by_manifest['storageSizeBytes'] == early['storageSizeBytes']
	target = s.cluster('again', backupEnabled=False, **shape(1)).settled()
	restore(s, project, 'orders', late['id'], target)
	assert target.ask('SELECT count(*), sum(hashtext(t::text)) FROM t') == expected
	restored(c, ok(ask_point(c, at, target)), target)  # the log behind it is there too
	assert target.ask('SELECT count(*) FROM t') == [(4000,)]
	target.delete()
	target.deleted()


def test_sealed_snapshots_come_back_with_their_wrapped_keys(request, site, keys):
	"""Their manifests open with the project's key alone; what the catalogue needs lies beside them, and so does the key, wrapped."""
	s = site('--keys-local', keys)
	if not s.encrypting(600):
		pytest.skip('no file system with encryption can be made here')
	allow(s.start())
	project = s.server.group
	ok(name_key(s.server, 'one'))
	c = s.cluster('vault', encryptionAtRestProvider='AWS', backupEnabled=True, **shape(1)).settled()
	c.ask('CREATE TABLE t AS SELECT g FROM generate_series(1, 500) g')
	early, late = take(c)['id'], take(c)['id']
	records(s)[early].unlink()
	lose_everything(s)
	db = database.Database()  # the new store may be the other one
	request.addfinalizer(db.close)
	s.args += '--store', db.url()
	allow(s.start())
	done = cli('repository', 'rebuild', '--data', s.data, '--store', db.url(), check=False)
	assert done.returncode == 1, done
	assert "%s/%s: it is sealed with the project's own key, and an earlier version took it" % (c.id, early) in done.stdout, done
	assert '%s/%s: is in the catalogue again' % (c.id, late) in done.stdout and 'is known again' in done.stdout, done
	target = s.cluster('again', **shape(1)).settled()
	refused(s.server.post('/groups/%s/clusters/vault/backup/restoreJobs' % project, json={
		'deliveryType': 'automated', 'snapshotId': late, 'targetClusterName': 'again', 'targetGroupId': s.server.group}), 409, 'RESTORE_WOULD_DECRYPT')
	restore(s, project, 'vault', late, target, **{'X-Steward-Restore-Decrypted': 'true'})
	assert target.ask('SELECT count(*) FROM t') == [(500,)]
	target.delete()
	target.deleted()
	s.server.stop()  # before its store
