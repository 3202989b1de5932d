"""Jobs of several nodes: what a node had claimed when it was killed goes to the others, and no job is two nodes' at once."""
import shutil, signal, subprocess, time

import pytest

import client
from nodes import Nodes

LEASE = 5  # seconds without a sign of life after which a node's jobs are free
SLACK = 60  # what a slow machine needs
CREATION = 2  # of a cluster, by the simulated engine
# What is metered of each cluster: three nodes and their disks, once; and what has ended of that: nothing.
METERED = '''SELECT string_agg(DISTINCT (SELECT count(*) FROM json_object_keys(body::json->'open'))::text, ',') || ' ' || count(*) || ' ' ||
	(SELECT count(*) FROM steward.doc WHERE kind = 'meter') FROM steward.doc WHERE kind = 'meter_open' '''
LOCK = 1398036292  # of the store: one batch of writes at a time
pytestmark = [pytest.mark.skipif(not shutil.which('haproxy'), reason='haproxy is not installed'),
	      pytest.mark.filterwarnings('ignore:Unverified HTTPS request')]

# Every claim, with what the job was before, and for how long its owner had been silent.
WATCH = '''
CREATE TABLE public.claim (n BIGSERIAL, at TIMESTAMPTZ DEFAULT clock_timestamp(), job TEXT, was TEXT, before TEXT, owner TEXT,
	steps BIGINT, silence FLOAT8);
CREATE FUNCTION public.claim_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO public.claim (job, was, before, owner, steps, silence) VALUES (NEW.id, OLD.state, OLD.lease_owner,
		NEW.lease_owner, NEW.fence - OLD.fence, (SELECT extract(epoch FROM clock_timestamp() - alive) FROM steward.node
		WHERE id = OLD.lease_owner));
	RETURN NEW; END $$;
CREATE TRIGGER claim_note AFTER UPDATE ON steward.job FOR EACH ROW WHEN (NEW.state = 'running' AND NEW.fence <> OLD.fence)
	EXECUTE FUNCTION public.claim_note();
'''
# The node with the most claims on clusters, and all that it has.
HELD = '''SELECT coalesce((SELECT lease_owner || ':' || string_agg(id, ',') FROM
	(SELECT id, lease_owner, subject IN (SELECT id FROM steward.doc WHERE kind = 'cluster') AS cluster FROM steward.job
	WHERE state = 'running') j GROUP BY lease_owner HAVING bool_or(cluster)
	ORDER BY count(*) FILTER (WHERE cluster) DESC LIMIT 1), '-');'''


class Locked:
	"""A session that holds up all writes for a moment."""

	def __init__(self, db):
		self.psql = subprocess.Popen([db.bin / 'psql', '-h', db.dir, '-p', str(db.port), '-U', 'steward', '-d', 'steward', '-qAtX'],
					     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

	def say(self, sql):
		self.psql.stdin.write(sql + '\n')
		self.psql.stdin.flush()

	def ask(self, sql):
		"""The one line that the lock's holder sees."""
		self.say('BEGIN; DO $$BEGIN PERFORM pg_advisory_xact_lock(%d); END$$;' % LOCK)
		self.say(sql.replace('\n', ' '))
		return self.psql.stdout.readline().strip()

	def release(self):
		self.say('COMMIT;')

	def close(self):
		self.psql.stdin.close()
		self.psql.wait(60)
		self.psql.stdout.close()


@pytest.fixture
def nodes():
	made = Nodes()
	start_node = made.start_node
	made.start_node = lambda i, *args: start_node(i, '--engine', 'simulated', '--simulated-seconds', str(CREATION), *args)
	made.start()
	yield made
	made.close()


def clusters_create(nodes, projects=3, each=8):
	"""Paths of clusters that are being made, asked for on all nodes."""
	paths = []
	for p in range(projects):
		group = client.ok(nodes.caller(p % 3).post('/groups', json={'name': client.unique('jobs'), 'orgId': nodes.org}))['id']
		for i in range(each):
			body = {'name': 'c%d' % i, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
				{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
				 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}
			client.ok(nodes.caller(i % 3).post('/groups/%s/clusters' % group, json=body), 201)
			paths.append('/groups/%s/clusters/c%d' % (group, i))
	return paths


def holder_end(nodes, how=signal.SIGKILL):
	"""Ends a node between a claim and what follows: the store's lock keeps it from writing. Its number, and its jobs."""
	names = [(nodes.home / ('n%d' % i) / 'node.id').read_text().strip() for i in range(3)]
	locked, until = Locked(nodes.db), time.monotonic() + 60
	try:
		while True:
			held = locked.ask(HELD)
			if held != '-':
				owner, jobs = held.split(':')
				victim = names.index(owner)
				if how == signal.SIGKILL:
					nodes.nodes[victim].kill()
				else:
					nodes.nodes[victim].signal(how)
				return victim, owner, jobs.split(',')
			locked.release()
			assert time.monotonic() < until, 'no node was seen with a claim'
			time.sleep(0.005)
	finally:
		locked.release()
		locked.close()


def test_claims_of_a_killed_node(nodes):
	nodes.db.sql(WATCH)
	paths = clusters_create(nodes)
	victim, name, held = holder_end(nodes)
	killed = time.monotonic()
	caller = nodes.caller((victim + 1) % 3)
	state = lambda path: client.ok(caller.get(path))['stateName']
	for path in paths:
		nodes.until(lambda: state(path) == 'IDLE', LEASE + CREATION + SLACK - (time.monotonic() - killed))
	rows = [r.split('|') for r in nodes.db.sql('SELECT job, was, before, owner, steps, silence FROM public.claim ORDER BY n').split('\n')]
	taken = [r for r in rows if r[1] != 'queued']
	# Only what the dead node had was taken from somebody, once, by another, and not before its time was over.
	assert sorted(r[0] for r in taken) == sorted(held), (taken, held)
	for job, was, before, owner, steps, silence in taken:
		assert was == 'running' and before == name and owner != name and float(silence) >= LEASE, (job, was, before, owner, silence)
	assert all(r[4] == '1' for r in rows), 'a fence that is not one more than the last'
	assert {r[3] for r in rows} == {(nodes.home / ('n%d' % i) / 'node.id').read_text().strip() for i in range(3)}, 'a node had no job'
	for path in paths:
		project, cluster = path.split('/')[2], path.split('/')[4]
		events = client.ok(caller.get('/groups/%s/events?eventType=CLUSTER_READY&clusterNames=%s' % (project, cluster)))
		assert events['totalCount'] == 1, (path, events)
	assert nodes.db.sql(METERED) == '6 %d 0' % len(paths)
	assert nodes.db.sql("SELECT count(*) FROM steward.job WHERE state = 'failed' OR lease_owner = '%s' AND state = 'running'" % name) == '0'
	nodes.start_node(victim)
	assert state(paths[0]) == 'IDLE'
	assert client.cli('check', nodes.db.url()).returncode == 0


def test_claims_of_a_node_that_stood_still(nodes):
	"""It goes on where it stood, when others have done its work long since: what it would write is refused."""
	paths = clusters_create(nodes)
	victim, name, held = holder_end(nodes, signal.SIGSTOP)
	try:
		caller = nodes.caller((victim + 1) % 3)
		for path in paths:
			nodes.until(lambda: client.ok(caller.get(path))['stateName'] == 'IDLE', LEASE + CREATION + 2 * SLACK)
	finally:
		nodes.nodes[victim].signal(signal.SIGCONT)
	nodes.until(lambda: nodes.caller(victim).post('/groups', json={'name': client.unique(), 'orgId': nodes.org}).status_code == 200, SLACK)
	time.sleep(CREATION)
	for path in paths:
		assert client.ok(nodes.caller(victim).get(path))['stateName'] == 'IDLE'
		project, cluster = path.split('/')[2], path.split('/')[4]
		events = client.ok(caller.get('/groups/%s/events?eventType=CLUSTER_READY&clusterNames=%s' % (project, cluster)))
		assert events['totalCount'] == 1, (path, events)
	assert nodes.db.sql("SELECT count(*) FROM steward.job WHERE state = 'failed'") == '0'
	assert client.cli('check', nodes.db.url()).returncode == 0
