"""Databases that the store does not know, because an older copy of it was put in place: found, named, left alone, and ended by
the operator's word only."""
import shutil

import pytest

import databases
from client import cli, metric, until
from databases import allow, shape, working_in

pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')


def test_an_older_store(site):
	s = site(clock='virtual')
	server = s.start()
	allow(server)
	old = s.cluster('old', **shape(nodes=1)).settled()
	cli('backup', '--data', s.data, s.root / 'older.db')
	new = s.cluster('new', **shape(nodes=1)).settled()
	assert metric(server, 'steward_clusters_orphaned') == 0
	lies = s.data / 'engine' / new.id
	server.stop()
	for f in s.data.glob('steward.db*'):
		f.unlink()
	shutil.copy(s.root / 'older.db', s.data / 'steward.db')
	check = cli('check', '--data', s.data, check=False)
	assert check.returncode and new.id in check.stdout and old.id not in check.stdout, check.stdout

	server = s.start()
	assert metric(server, 'steward_clusters_orphaned') == 1
	assert 'cluster %s (new of project %s)' % (new.id, server.group) in server.stderr and old.id + ' (' not in server.stderr
	listed = cli('orphans', 'list', '--data', s.data).stdout
	assert new.id in listed and '1 of 1 nodes ran' in listed and old.id not in listed
	for args, words in ((('end', new.id), 'Nothing was changed'), (('end', old.id, '--yes'), 'among those'), (('end',), 'say list')):
		r = cli('orphans', *args, '--data', s.data, check=False)
		assert r.returncode and words in r.stdout + r.stderr, (args, r)
	server.advance(120)
	assert working_in(lies), 'it runs on until the operator says otherwise'
	cli('orphans', 'end', new.id, '--data', s.data, '--yes')
	until(lambda: server.advance(60) and not lies.exists())
	until(lambda: metric(server, 'steward_clusters_orphaned') == 0)
	assert not working_in(lies) and 'none' in cli('orphans', 'list', '--data', s.data).stdout
	assert 'clean' in cli('check', '--data', s.data).stdout
	old.settled()
	old.delete()
	old.deleted()
