"""What befalls clusters by itself stands in the project's events, once each, whenever the service dies in between; and
/metrics tells clusters, nodes, lag, failovers and jobs."""
import os, random, re, signal, time

import pytest

import databases
from client import ok
from databases import Site, allow, shape, until

pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')
TOLD = ('HOST_DOWN', 'HOST_UP', 'PRIMARY_ELECTED')


@pytest.fixture(scope='module')
def cluster():
	site = Site()
	allow(site.start())
	c = site.cluster('watched', **shape(3)).settled()
	c.whole(3)
	yield c
	c.delete()
	c.deleted()
	site.end()


def told(c, after=0):
	"""(type, description) in the order in which it happened."""
	found = ok(c.server.get('/groups/%s/events?itemsPerPage=500&includeRaw=true&clusterNames=%s' % (c.server.group, c.name)))
	return [(e['eventTypeName'], e) for e in reversed(found['results']) if e['eventTypeName'] in TOLD][after:]


def types(c, after=0):
	return [t for t, _ in told(c, after)]


def settled(c):
	"""Everything that was counted was told."""
	def check():
		book, found = c.book(), types(c)
		ends = sum(n['ends'] for n in book['nodes'])
		terms = sum(s['term'] - 1 for s in book['sets'])
		return not any(n['down'] for n in book['nodes']) and found.count('HOST_DOWN') == found.count('HOST_UP') == ends and \
			found.count('PRIMARY_ELECTED') == terms
	until(check, 60, 'all to be told')


def test_a_standby_ends_and_is_back(cluster):
	before, host = len(told(cluster)), next(n for n in cluster.nodes() if n != cluster.primary())
	os.kill(cluster.pid(host), signal.SIGKILL)
	until(lambda: len(told(cluster)) == before + 2)
	(down, d), (up, u) = told(cluster, before)
	assert (down, up) == ('HOST_DOWN', 'HOST_UP')
	for e in (d, u):
		assert e['port'] == cluster.nodes()[host]['port'] and e['replicaSetName'] == host.rsplit('-', 1)[0]
		assert 'clusterName: watched' in e['raw']['description'] and 'hostname: %s.' % host in e['raw']['description']
	assert (d['raw']['severity'], u['raw']['severity']) == ('WARNING', 'INFO')
	cluster.whole(3)
	settled(cluster)


def test_a_failover(cluster):
	before, old = len(told(cluster)), cluster.primary()
	os.kill(cluster.pid(old), signal.SIGKILL)
	until(lambda: len(told(cluster)) >= before + 3)
	cluster.whole(3)
	assert sorted(types(cluster, before)) == ['HOST_DOWN', 'HOST_UP', 'PRIMARY_ELECTED'] and types(cluster, before)[0] == 'HOST_DOWN'
	e, = [e for t, e in told(cluster, before) if t == 'PRIMARY_ELECTED']
	assert 'primary: %s.' % cluster.primary() in e['raw']['description'] and 'the former primary ended' in e['raw']['description']
	settled(cluster)


def test_a_planned_change(cluster):
	before = len(told(cluster))
	ok(cluster.server.post(cluster.path + '/restartPrimaries'))
	until(lambda: len(told(cluster)) > before)
	cluster.settled().whole(3)
	assert types(cluster, before) == ['PRIMARY_ELECTED'] and 'planned' in told(cluster, before)[0][1]['raw']['description']
	settled(cluster)


def test_what_happens_while_the_service_is_away(cluster):
	before, host = len(told(cluster)), next(n for n in cluster.nodes() if n != cluster.primary())
	cluster.site.kill()
	os.kill(cluster.pid(host), signal.SIGKILL)
	cluster.site.start()
	until(lambda: len(told(cluster)) >= before + 2)
	cluster.whole(3)
	settled(cluster)
	assert types(cluster, before) == ['HOST_DOWN', 'HOST_UP']
	cluster.site.kill()
	cluster.site.start()
	cluster.settled()
	settled(cluster)
	assert len(told(cluster)) == before + 2, 'another start tells nothing twice'


def test_the_service_dies_in_between(cluster):
	"""Killed at some moment of a failover and what follows it: nothing is told twice, nothing is left out."""
	chance = random.Random(os.environ.get('STEWARD_SEED', '11'))
	for _ in range(4):
		before, terms = len(told(cluster)), cluster.book()['sets'][0]['term']
		os.kill(cluster.pid(cluster.primary()), signal.SIGKILL)
		time.sleep(chance.random() * 0.3)
		cluster.site.kill()
		cluster.site.start()
		cluster.settled()
		until(lambda: cluster.book()['sets'][0]['term'] > terms or cluster.writable(), 60)
		cluster.whole(3)
		settled(cluster)
		assert len(told(cluster)) > before


def metric(server, name, **labels):
	"""The sum of the series that have these labels."""
	found = []
	for line in server.anonymous.get('/metrics').text.splitlines():
		m = re.match(r'%s(?:\{(.*)\})? (\S+)$' % name, line)
		if m and all('%s="%s"' % i in (m.group(1) or '') for i in labels.items()):
			found.append(float(m.group(2)))
	return sum(found) if found else None


def test_metrics(cluster):
	s = cluster.server
	until(lambda: metric(s, 'steward_clusters', state='IDLE') == 1)
	until(lambda: metric(s, 'steward_nodes', role='primary', state='running') == 1 and
	      metric(s, 'steward_nodes', role='standby', state='running') == 2)
	failovers, ends = metric(s, 'steward_failovers_total', kind='failover'), metric(s, 'steward_node_ends_total')
	assert failovers is not None and metric(s, 'steward_replication_lag_bytes') is not None
	assert metric(s, 'steward_replication_lag_seconds') is not None
	until(lambda: metric(s, 'steward_standbys_streaming') == 2)
	os.kill(cluster.pid(cluster.primary()), signal.SIGKILL)
	until(lambda: metric(s, 'steward_failovers_total', kind='failover') == failovers + 1)
	until(lambda: metric(s, 'steward_node_ends_total') == ends + 1)
	cluster.whole(3)
	assert metric(s, 'steward_job_steps_total') > 0 and metric(s, 'steward_jobs', state='waiting', kind='maintenance_scan') == 1
	cluster.change(paused=True)
	cluster.settled()
	until(lambda: metric(s, 'steward_nodes', state='stopped') == 3 and metric(s, 'steward_nodes', state='running') == 0)
	cluster.change(paused=False)
	cluster.settled()
