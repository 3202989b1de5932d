"""Data that should be there and is not: it is told, it is found again when it is put back, and an empty database never takes
its place unless the operator gives it up."""
import os, shutil, signal

import psycopg2, pytest

import databases
from client import cli, ok
from databases import allow, shape, until, working_in

pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')
FLEX = {'providerSettings': {'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}}


def down(site):
	"""Service and servers end, as with the machine."""
	site.kill()
	end(site.data)


def end(directory):
	"""Whatever works there."""
	for pid in working_in(directory):
		try:
			os.kill(pid, signal.SIGKILL)
		except ProcessLookupError:
			pass
	until(lambda: not working_in(directory))


def events(cluster, *types):
	found = ok(cluster.server.get('/groups/%s/events?itemsPerPage=500&includeRaw=true&clusterNames=%s' % (
		cluster.server.group, cluster.name)))['results']
	return [e for e in reversed(found) if e['eventTypeName'] in types]


def repairing(cluster, *words):
	until(lambda: cluster.state() == 'REPAIRING', 60, '%s to be REPAIRING' % cluster.name)
	for w in words:
		assert w in cluster.why(), cluster.why()
	return cluster


def rows(cluster):
	return cluster.ask('select n from kept order by n')


def reaches(cluster):
	"""Nodes whose state was lost listen elsewhere: the API tells so once the cluster was looked at."""
	try:
		return cluster.ask('select true')
	except psycopg2.OperationalError:
		return False


def fill(cluster):
	cluster.settled().ask('create table kept(n int); insert into kept values (1), (2)')
	return cluster


class Flex(databases.Cluster):
	def __init__(self, site, name):
		self.site, self.name = site, name
		self.path = '/groups/%s/flexClusters/%s' % (site.server.group, name)
		self.id = ok(site.server.post('/groups/%s/flexClusters' % site.server.group, json={'name': name, **FLEX}), 201)['id']

	def why(self):
		return self.server.get(self.path).headers.get('X-Steward-Progress')


def test_a_copy_of_the_store_alone(site, tmp_path):
	"""steward backup, put into an empty directory: every cluster says what is missing, and none is made anew."""
	old, new = site(), site()
	allow(old.start())
	clusters = [old.cluster(name, **shape(1)) for name in ('kept', 'dropped', 'given', 'paused')] + [Flex(old, 'flex')]
	for c in clusters:
		fill(c)
	kept, dropped, given, paused, flex = clusters
	paused.change(paused=True)
	paused.settled()
	told = cli('backup', '--data', old.data, tmp_path / 'copy.db').stdout
	assert 'the databases of the clusters' in told and 'are not in it' in told
	down(old)
	new.data.mkdir()
	shutil.copy(tmp_path / 'copy.db', new.data / 'steward.db')
	for name in ('secret.key', 'bootstrap.json'):
		shutil.copy(old.data / name, new.data)
	new.start()
	for c in clusters:
		c.site = new
		repairing(c, 'the data of shard 0 is missing', 'steward give-up')
		told, = events(c, 'VOLUME_IMPAIRED')
		assert 'clusterName: %s' % c.name in told['raw']['description'] and 'missing' in told['raw']['description']
		assert told['raw']['severity'] == 'CRITICAL'
	for c in clusters:
		assert not (new.data / 'engine' / c.id).exists()
	revision = new.server.get(kept.path).headers['ETag']
	# Deleted.
	for c in (dropped, flex):
		assert c.server.delete(c.path).status_code in (202, 204)
		until(lambda: c.state() is None, 60)
	# Given up, by whoever keeps the machine.
	r = cli('give-up', '--data', new.data, 'nothing', check=False)
	assert r.returncode == 1 and 'no cluster "nothing"' in r.stderr
	r = cli('give-up', '--data', new.data, 'given', check=False)
	assert r.returncode == 1 and 'Nothing was changed' in r.stdout and 'missing' in r.stdout
	assert given.state() == 'REPAIRING'
	r = cli('connect', 'given', '--data', new.data, '--timeout', '1', '-c', 'select 1', check=False)
	assert r.returncode == 4 and 'given: failed: the data of shard 0 is missing' in r.stderr
	cli('give-up', '--data', new.data, given.id, '--yes')
	given.settled()
	with pytest.raises(psycopg2.errors.UndefinedTable):
		rows(given)
	assert [e['eventTypeName'] for e in events(given, 'VOLUME_IMPAIRED_RESOLVED', 'QUEUED_ADMIN_ACTION_COMPLETED')] == [
		'VOLUME_IMPAIRED_RESOLVED', 'QUEUED_ADMIN_ACTION_COMPLETED']
	r = cli('give-up', '--data', new.data, 'given', '--yes', check=False)
	assert r.returncode == 1 and 'is missing; nothing is given up' in r.stderr
	# Looked for again and again, which changes nothing; a restart neither.
	assert new.server.get(kept.path).headers['ETag'] == revision
	new.kill()
	new.start()
	assert kept.state() == 'REPAIRING' and given.settled()
	# Put back, under the eyes of the service.
	for c in (kept, paused):
		shutil.move(old.data / 'engine' / c.id, new.data / 'engine' / c.id)
		c.settled()
		assert len(events(c, 'VOLUME_IMPAIRED')) == 1 and len(events(c, 'VOLUME_IMPAIRED_RESOLVED')) == 1
	assert rows(kept) == [(1,), (2,)]
	paused.change(paused=False)
	assert rows(paused.settled()) == [(1,), (2,)]
	for c in (kept, given, paused):
		c.delete()
	for c in (kept, given, paused):
		c.deleted()
	shutil.rmtree(old.data / 'engine')


def test_parts_of_a_set(site):
	"""As long as one node has the data, the others get it from there."""
	s = site()
	allow(s.start())
	c = fill(s.cluster('set', **shape(3)))
	c.whole(3)
	# The primary's: a standby leads, and the other follows it.
	lost = c.primary()
	down(s)
	shutil.rmtree(c.directory(lost))
	s.start()
	c.whole(3)
	assert c.primary() != lost and rows(c) == [(1,), (2,)]
	# A standby's, while it runs.
	pid = c.pid(lost)
	os.rename(c.directory(lost), s.root / 'lost')
	os.kill(pid, signal.SIGKILL)
	until(lambda: (c.directory(lost) / 'PG_VERSION').exists(), 60, 'the standby to be copied anew')
	c.settled().whole(3)
	assert rows(c) == [(1,), (2,)]
	# What the engine knows of the cluster.
	leader, state = c.primary(), s.data / 'engine' / c.id / 'state.json'
	down(s)
	state.unlink()
	s.start()
	until(state.exists, 60)
	c.settled().whole(3)
	until(lambda: reaches(c), 60, 'the new addresses to be told')
	assert c.primary() == leader and rows(c) == [(1,), (2,)]
	# The same while the servers run.
	s.kill()
	state.unlink()
	s.start()
	until(state.exists, 60)
	c.settled().whole(3)
	until(lambda: reaches(c), 60, 'the new addresses to be told')
	assert c.primary() == leader and rows(c) == [(1,), (2,)]
	# All of it, while the service runs.
	aside = s.root / 'aside'
	os.rename(s.data / 'engine' / c.id, aside)
	end(aside)
	repairing(c, 'the data of shard 0 is missing')
	os.rename(aside, s.data / 'engine' / c.id)
	c.settled().whole(3)
	assert rows(c) == [(1,), (2,)]
	c.delete()
	c.deleted()


def test_the_data_of_another(site):
	s = site()
	allow(s.start())
	one, two = fill(s.cluster('one', **shape(1))), fill(s.cluster('two', **shape(1)))
	one.ask('truncate kept')
	down(s)
	mine, others = (c.directory(c.primary()) for c in (one, two))
	aside = s.root / 'aside'
	os.rename(others, aside)
	shutil.copytree(mine, others, symlinks=True)
	for path in [others, *others.rglob('*')]:
		shutil.chown(path, mine.stat().st_uid, mine.stat().st_gid)
	s.start()
	repairing(two, "another database's data", str(others))
	assert one.settled() and not working_in(others.parent)
	os.rename(others, s.root / 'foreign')  # in one step: the service looks there while it goes
	others.mkdir()
	until(lambda: 'the data of shard 0 is missing' in two.why(), 60)
	others.rmdir()
	os.rename(aside, others)
	assert rows(two.settled()) == [(1,), (2,)]
	for c in (one, two):
		c.delete()
	for c in (one, two):
		c.deleted()


def test_parts_of_a_sharded_cluster(site):
	s = site()
	allow(s.start())
	c = s.cluster('spread', **shape(1, 'M30', shards=2)).settled()
	c.ask('create table kept(n int); insert into kept values (1), (2)')
	c.ask('create table spread(n int); select steward.shard_table(\'spread\', \'n\')')
	c.ask('insert into spread select generate_series(1, 100)')
	router = next(n for n, x in c.nodes().items() if x['kind'] == 3)
	shard = next(n for n, x in c.nodes().items() if x['kind'] != 3 and x['shard'] == 1)
	aside = s.root / 'aside'
	for node, words in ((shard, 'the data of shard 1'), (router, 'the data of the router ' + router)):
		down(s)
		os.rename(c.directory(node), aside)
		s.start()
		repairing(c, words + ' is missing')
		assert not c.directory(node).exists()
		os.rename(aside, c.directory(node))
		assert rows(c.settled()) == [(1,), (2,)] and c.ask('select count(*) from spread') == [(100,)]
	# A shard's given up: the rest stays.
	down(s)
	shutil.rmtree(c.directory(router))
	s.start()
	repairing(c, 'the data of the router')
	cli('give-up', '--data', s.data, 'spread', '--yes')
	c.settled()
	with pytest.raises(psycopg2.errors.UndefinedTable):
		rows(c)
	c.delete()
	c.deleted()


def answers(cluster):
	try:
		return rows(cluster)
	except psycopg2.OperationalError:
		return None


def test_servers_whose_sockets_are_gone(site):
	"""Removed with the directory that held them, while the servers went on: they cannot be reached, and are started anew."""
	s = site()
	allow(s.start())
	c = fill(s.cluster('deaf', **shape(1)))
	sockets = s.data / 'engine' / 'run'
	for d in sockets.iterdir():
		shutil.rmtree(d)
	until(lambda: list(sockets.glob('*/.s.PGSQL.*')), 60, 'a server that can be reached')
	until(lambda: answers(c), 60, 'it to take clients')
	assert rows(c.settled()) == [(1,), (2,)] and c.why() is None
	c.delete()
	c.deleted()
