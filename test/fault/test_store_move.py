"""A living service with real databases moves from its own store to one that several nodes share, and back: clusters stay with
the host that has them, whoever is first there, and the store that was left is refused."""
import shutil

import pytest

import client, database, databases
from client import cli, ok, until
from databases import PASSWORD, allow, shape, working_in

pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')
ONE = shape(nodes=1)
BAD = ('VOLUME_IMPAIRED', 'CLUSTER_MARKED_UNHEALTHY')


class Move:
	def __init__(self, site):
		self.site, self.nodes = site, [site.server]
		self.folders = [site.data, site.root / 'n1', site.root / 'n2']

	def start(self, i, *args):
		"""Node i, on what it is given, or on the store of its own."""
		folder = self.folders[i]
		if not folder.exists():
			folder.mkdir(mode=0o711)
			for f in ('secret.key', 'bootstrap.json'):
				shutil.copy(self.folders[0] / f, folder)
			shutil.copytree(self.folders[0] / 'tls', folder / 'tls')
		s = client.Server('--engine', 'postgres', '--config', self.site.root / 'limits.conf', '--log-level', 'warn', *args,
				  data_dir=folder, clock=None)
		self.nodes.append(s)
		return s

	def stop(self):
		for n in self.nodes:
			if not n.ended:
				n.stop()
		self.nodes = []


@pytest.fixture
def move(site):
	s = site()
	s.start()
	m = Move(s)
	yield m
	for n in m.nodes:
		if not n.ended:
			n.stop()


def log_in(cluster, server, user=databases.USER):
	c = databases.psycopg2.connect(ok(server.get(cluster.path))['connectionStrings']['standard'], user=user, password=PASSWORD,
				       dbname='postgres', connect_timeout=20)
	try:
		cursor = c.cursor()
		cursor.execute('select n from kept')
		return cursor.fetchall()
	finally:
		c.close()


def events(server):
	found = ok(server.get('/groups/%s/events?itemsPerPage=500' % server.group))['results']
	return [e['eventTypeName'] for e in found]


def test_to_three_nodes_and_back(move):
	site, db = move.site, database.Database()
	try:
		there_and_back(move, site, db)
	finally:
		move.stop()
		db.close()


def there_and_back(move, site, db):
	server = site.server
	allow(server)
	kept, ended = site.cluster('kept', **ONE), site.cluster('ended', **ONE)
	for c in (kept, ended):
		c.settled().ask('create table kept(n int); insert into kept values (1)')
	id_, pid = (site.data / 'node.id').read_text(), kept.pid(kept.primary())
	server.kill()  # with its jobs as they were
	url = db.fresh()
	name = url.rsplit('/', 1)[1]
	assert 'moved' in cli('store', 'copy', '--from', site.data, '--to', url).stdout

	# The store that was left: refused, and it says where to and how to come back.
	left = cli('serve', '--data', site.data, '--listen', '127.0.0.1:0', check=False)
	assert left.returncode and 'was moved to' in left.stderr and name in left.stderr and 'store reopen' in left.stderr, left.stderr

	# The others first: they have a minute's worth of jobs before the host of the clusters is there.
	second, third = move.start(1, '--store', url), move.start(2, '--store', url)
	hostless = "SELECT count(*) FROM steward.job WHERE host = '' AND (subject ~ '%s|%s' OR kind IN ('meter', 'backup_sweep'))"
	assert db.sql(hostless % (kept.id, ended.id), database=name) == '0'
	bound = "SELECT string_agg(DISTINCT id, ',') FROM steward.ref WHERE kind = 'job_host'"
	assert db.sql(bound, database=name) == id_
	# A job that has lost its host all the same, as those of an older copy, is given to it and not run by others.
	db.sql("UPDATE steward.job SET host = '' WHERE subject = '%s'" % kept.id, database=name)
	ok(second.delete(ended.path), 202)
	db.sql("UPDATE steward.job SET host = '' WHERE subject = '%s'; DELETE FROM steward.ref WHERE kind = 'job_host'" % ended.id,
	       database=name)
	waiting = "SELECT count(*) FROM steward.job WHERE host <> '%s' AND subject IN ('%s', '%s')" % (id_, kept.id, ended.id)
	until(lambda: db.sql(waiting, database=name) == '0')
	assert ok(third.get(ended.path))['stateName'] == 'DELETING' and working_in(site.data / 'engine' / ended.id)

	first = move.start(0, '--store', url)
	assert db.sql(bound, database=name) == id_, 'a copy of an older version is bound at the start'
	until(lambda: third.get(ended.path).status_code == 404)
	assert not working_in(site.data / 'engine' / ended.id), 'who was deleted lets nobody in'
	client.in_force(second, second.post('/groups/%s/databaseUsers' % second.group, json={
		'username': 'later', 'password': PASSWORD, 'databaseName': 'admin', 'groupId': second.group,
		'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
	until(lambda: ok(second.get(kept.path))['stateName'] == 'IDLE')
	for n in (first, second, third):
		assert log_in(kept, n) == log_in(kept, n, 'later') == [(1,)]
	assert kept.pid(kept.primary()) == pid and not set(events(third)) & set(BAD), events(third)
	move.stop()

	# And back: into a new file beside what the host has.
	aside = site.root / 'aside'
	aside.mkdir()
	for f in site.data.glob('steward.db*'):
		shutil.move(f, aside)
	until(lambda: cli('store', 'copy', '--from', url, '--to', site.data, check=False).returncode == 0)
	left = cli('serve', '--data', move.folders[1], '--store', url, '--listen', '127.0.0.1:0', check=False)
	assert left.returncode and 'was moved to' in left.stderr and str(site.data) in left.stderr, left.stderr
	site.server = server = move.start(0)
	assert 'clean' in cli('check', '--data', site.data).stdout
	until(lambda: kept.state() == 'IDLE')
	assert log_in(kept, server, 'later') == [(1,)] and kept.pid(kept.primary()) == pid
	assert not server.rows("SELECT subject FROM job WHERE subject LIKE '%@%'")
	assert not set(events(server)) & set(BAD), events(server)
	kept.delete()
	kept.deleted()
