"""Backups of real databases through the API: what was there at a snapshot or at a moment is there again, and nothing else."""
import io, os, shutil, subprocess, tarfile, tempfile, time

import pytest

import client
from client import ok, refused, unique, until

pytestmark = pytest.mark.skipif(not (os.path.isdir('/usr/lib/postgresql') and shutil.which('psql')), reason='PostgreSQL is not installed')
SECONDS = 300
PASSWORD = 'correct-horse-battery'


class World:
	def __init__(self, server):
		self.server, self.group = server, server.project()['id']
		self.base = '/groups/' + self.group
		ok(server.post(self.base + '/databaseUsers', json={'username': 'ann', 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.group,
			'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
		assert server.post(self.base + '/accessList', json=[{'cidrBlock': '127.0.0.0/8'}]).status_code < 300

	def create(self, shards=1, nodes=1, **more):
		config = {'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
			  'electableSpecs': {'instanceSize': 'M10' if shards == 1 else 'M30', 'nodeCount': nodes}}
		name = unique('b')
		ok(self.server.post(self.base + '/clusters', json={'name': name, 'clusterType': 'REPLICASET' if shards == 1 else 'SHARDED',
			'backupEnabled': True, **more, 'replicationSpecs': [{'regionConfigs': [config]}] * shards}), 201)
		self.idle(name)
		return name

	def cluster(self, name):
		return '%s/clusters/%s' % (self.base, name)

	def backup(self, name, below=''):
		return self.cluster(name) + '/backup' + below

	def idle(self, name):
		return until(lambda: (lambda d: d['stateName'] == 'IDLE' and d)(ok(self.server.get(self.cluster(name)))), SECONDS, 'it', 0.5)

	def sql(self, name, text):
		url = ok(self.server.get(self.cluster(name)))['connectionStrings']['standard'].replace('://', '://ann:%s@' % PASSWORD)
		done = subprocess.run(['psql', url, '-Atc', text], capture_output=True, text=True)
		assert done.returncode == 0, done.stderr
		return done.stdout.strip()

	def delete(self, name):
		"""Its test is over. Nobody waits for the end."""
		assert self.server.delete(self.cluster(name)).status_code == 202

	def take(self, name):
		r = self.server.post(self.backup(name, '/snapshots'), json={})
		if r.status_code == 501:
			pytest.skip('the engine takes no snapshots')
		where = self.backup(name, '/snapshots/' + ok(r)['id'])
		done = until(lambda: (lambda d: d['status'] in ('completed', 'failed') and d)(ok(self.server.get(where))), SECONDS, 'it', 0.5)
		assert done['status'] == 'completed', self.server.get(where).headers.get('X-Steward-Progress')
		return done

	def reachable(self, name, at):
		"""Waits until that moment can be restored: the log that leads to it has to be in the repository."""
		where = self.backup(name, '/snapshots?pointInTimeUtcSeconds=%d' % at)
		until(lambda: ok(self.server.get(where))['results'], SECONDS, 'what was done in the archive', 0.5)

	def settled(self, name):
		"""Waits for the snapshots that are being taken, also for the one that a restore begins."""
		where = self.backup(name, '/snapshots')
		until(lambda: all(s['status'] == 'completed' for s in ok(self.server.get(where))['results']), SECONDS, 'they', 0.5)

	def restore(self, name, target=None, **body):
		job = ok(self.server.post(self.backup(name, '/restoreJobs'), json={'targetClusterName': target or name, 'targetGroupId': self.group, **body}))
		where = self.backup(name, '/restoreJobs/' + job['id'])
		done = until(lambda: (lambda d: 'finishedAt' in d and d)(ok(self.server.get(where))), SECONDS, 'it', 0.5)
		assert done['failed'] is False, self.server.get(where).headers.get('X-Steward-Progress')
		self.idle(target or name)


@pytest.fixture(scope='module')
def world():
	"""One service for all: to start one and to prepare its databases takes as long as a test."""
	import conftest
	folder = tempfile.mkdtemp(prefix='sw-', dir=client.SHORT)
	os.chmod(folder, 0o711)
	try:
		made = World(start(folder + '/d'))
		yield made
		conftest.end(made.server)
	finally:
		client.folder_end(folder)


def start(data):
	return client.Server('--engine', 'postgres', data_dir=data, clock='real')


def now():
	"""A moment that what was done before is before of, and what is done after it is after."""
	time.sleep(1.1)
	at = int(time.time())
	time.sleep(1.1)
	return at


def test_snapshots_moments_and_downloads(world):
	name = world.create(nodes=3, pitEnabled=True)
	world.sql(name, 'create table t (i int); insert into t select generate_series(1, 1000)')
	first = world.take(name)
	assert first['storageSizeBytes'] > 1 << 20 and first['dbVersion'].count('.') == 2
	world.sql(name, 'insert into t select generate_series(1, 500)')
	then = now()
	world.sql(name, 'delete from t')
	world.reachable(name, then)
	world.restore(name, deliveryType='pointInTime', pointInTimeUTCSeconds=then)
	assert world.sql(name, 'select count(*) from t') == '1500'
	world.restore(name, deliveryType='automated', snapshotId=first['id'])
	assert world.sql(name, 'select count(*) from t') == '1000'
	world.reachable(name, then)  # the last of the log that the first restore put aside
	world.restore(name, deliveryType='pointInTime', pointInTimeUTCSeconds=then)
	assert world.sql(name, 'select count(*) from t') == '1500', 'what was before a restore can still be had'
	refused(world.server.post(world.backup(name, '/restoreJobs'), json={'deliveryType': 'pointInTime', 'targetClusterName': name,
		'pointInTimeUTCSeconds': then - 86400}), 400, 'POINT_IN_TIME_NOT_RESTORABLE')
	job = ok(world.server.post(world.backup(name, '/restoreJobs'), json={'deliveryType': 'download', 'snapshotId': first['id']}))
	url, = job['deliveryUrl']
	answer = world.server.anonymous.get(url)
	assert answer.status_code == 200
	with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
		assert {'PG_VERSION', 'backup_label', 'backup_manifest'} <= {n.lstrip('./') for n in tar.getnames()}
	# A standby's copy begins with an older checkpoint than the archive of what came by a restore: that is nothing to warn of.
	world.settled(name)
	world.take(name)
	assert 'not in the archive' not in world.server.stderr
	world.delete(name)


def test_a_moment_of_standing_still_outlives_a_restore(world):
	"""Nothing was written after it, so that no mark of the log tells of it: what was offered is offered after the restore, too."""
	name = world.create(pitEnabled=True)
	world.sql(name, 'create table t (i int); insert into t select generate_series(1, 10)')
	world.take(name)
	time.sleep(8)  # what a snapshot leaves in the log is over
	then = now()
	world.reachable(name, then)
	world.restore(name, deliveryType='pointInTime', pointInTimeUTCSeconds=then)
	world.sql(name, 'delete from t')
	world.reachable(name, then)
	world.restore(name, deliveryType='pointInTime', pointInTimeUTCSeconds=then)
	assert world.sql(name, 'select count(*) from t') == '10'
	world.settled(name)
	world.delete(name)


def test_drill_and_stop(world):
	"""A snapshot is proven by a server of its own; and a service that stops does not wait for one that is being taken."""
	name = world.create()
	world.sql(name, 'create table t (i int primary key, x text)')
	first = world.take(name)
	store = ['--store', client.store_of(world.server.data_dir)] if client.REMOTE else []
	asked = client.cli('repository', 'prove', '--data', world.server.data_dir, *store, name)
	assert first['id'] in asked.stdout
	second = ok(world.server.post(world.backup(name, '/snapshots'), json={}))['id']  # its job wakes the service
	where = world.backup(name, '/snapshots/' + first['id'])
	proven = until(lambda: (lambda t: t != 'never' and t)(world.server.get(where).headers['X-Steward-Proven']), SECONDS, 'it', 0.5)
	assert proven.startswith('20'), proven
	until(lambda: not os.listdir(str(world.server.data_dir) + '/engine/throwaway'), SECONDS)
	where = world.backup(name, '/snapshots/' + second)
	until(lambda: ok(world.server.get(where))['status'] == 'completed', SECONDS, 'it', 0.5)
	world.sql(name, 'insert into t select i, repeat(md5(i::text), 20) from generate_series(1, 300000) i')  # so that the next takes a while
	third = ok(world.server.post(world.backup(name, '/snapshots'), json={}))['id']
	where = world.backup(name, '/snapshots/' + third)
	until(lambda: ok(world.server.get(where))['status'] != 'queued', SECONDS, 'it', 0.01)
	world.server.stop(60)
	assert not [line for line in world.server.stderr.split('\n') if 'job backup_snapshot' in line and 'attempt' in line]
	client.shown.remove(world.server)
	world.server = start(world.server.data_dir)
	until(lambda: ok(world.server.get(where))['status'] == 'completed', SECONDS, 'it', 0.5)
	world.delete(name)


def test_what_a_deleted_cluster_had(world):
	name = world.create()
	world.sql(name, 'create table t as select 42 as i')
	doc = world.take(name)
	assert world.server.delete(world.cluster(name) + '?retainBackups=true').status_code in (202, 204)
	until(lambda: world.server.get(world.cluster(name)).status_code == 404, SECONDS, 'it', 0.5)
	other = world.create()
	world.restore(name, target=other, deliveryType='automated', snapshotId=doc['id'])
	assert world.sql(other, 'select i from t') == '42'
	world.delete(other)


def test_shards(world):
	name = world.create(shards=2, pitEnabled=True)
	world.sql(name, 'create table t (i int primary key, t text)')
	world.sql(name, "insert into t select n, 'x' from generate_series(1, 1000) n")
	doc = world.take(name)
	one = ok(world.server.get(world.backup(name, '/snapshots/shardedCluster/' + doc['id'])))
	assert len(one['members']) == 2
	world.sql(name, 'delete from t where i > 10')
	world.restore(name, deliveryType='automated', snapshotId=doc['id'])
	assert world.sql(name, 'select count(*) from t') == '1000'
