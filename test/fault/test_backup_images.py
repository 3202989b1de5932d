"""Restores on a file system whose files can share blocks: the newest snapshot lies beside the databases, and comes back
without being copied. What is missing there comes from the repository."""
import shutil, subprocess

import pytest

import databases
from client import ok
from databases import allow, shape, until
from ledger import restored, take

pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')


def images(c):
	return sorted(p for p in (c.site.data / 'engine' / c.id / 'images').glob('*/*'))


def bring(c, snapshot, target=None):
	target = target or c
	kind = {'deliveryType': 'automated', 'snapshotId': snapshot}
	job = ok(c.server.post(c.path + '/backup/restoreJobs', json={
		'targetClusterName': target.name, 'targetGroupId': c.server.group, **kind}))
	assert restored(c, job, target)


def table(c):
	"""The file of the table."""
	found, = c.ask("select pg_relation_filepath('t')")[0]
	return c.directory(c.primary()) / found


def shares(file):
	out = subprocess.run(['filefrag', '-v', str(file)], stdout=subprocess.PIPE, text=True, check=True).stdout
	return 'shared' in out


def test_a_restore_shares_blocks_with_the_snapshot(site):
	s = site()
	if not s.reflinks(1600) or not shutil.which('filefrag'):
		pytest.skip('no file system with reflinks can be made here')
	allow(s.start())
	c = s.cluster('source', backupEnabled=True, **shape(1)).settled()
	c.ask("create table t(n int, x text); insert into t select i, md5(i::text) from generate_series(1, 60000) i")
	first = take(c)['id']
	image, = images(c)
	assert image.name == first and image.stat().st_mode & 0o777 == 0o700 and (image / '0/PG_VERSION').exists()
	assert not (image / '0/global/pg_control').exists(), 'read when all other files are there'

	# What happens to the databases since does not happen to it, twice.
	for _ in range(2):
		c.ask('update t set n = -n; delete from t where n < -10; create table later(n int)')
		bring(c, first)
		assert c.ask('select count(*), sum(n) from t') == [(60000, 1800030000)]
		assert c.ask("select to_regclass('later')") == [(None,)]
	assert shares(table(c)), 'it was copied'

	# Into another cluster, with a file missing; and the one that was taken last takes the place of the former.
	c.ask('insert into t values (0)')
	second = take(c)['id']
	image, = images(c)
	assert image.name == second
	lost = image / '0' / c.ask("select pg_relation_filepath('t')")[0][0]
	lost.unlink()
	target = s.cluster('target', **shape(1)).settled()
	bring(c, second, target)
	assert target.ask('select count(*) from t') == [(60001,)]
	assert not shares(table(target)), 'it was not in the image'
	bring(c, first)
	assert c.ask('select count(*) from t') == [(60000,)], 'of which there is no image any more'

	ok(c.server.delete('%s/backup/snapshots/%s' % (c.path, second)), 204)
	until(lambda: not images(c), 60, 'the end of the image of a snapshot that was deleted')
	for one in (c, target):
		one.delete()
	for one in (c, target):
		one.deleted()
