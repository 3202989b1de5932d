#!/usr/bin/env python3
"""Many real clusters at once on one machine: what the API pays for them, and how soon they are found again.

    STEWARD_BIN=build/release/steward test/bench/engine_many.py [--clusters 60] [--seconds 3] [--samples 120] [--json]

Measures the time of one caller's reads with no cluster, makes the clusters (single nodes), measures again, and what samples
take of a core, in the service and in the servers; kills the service, starts it and waits until it answers and every
cluster runs in its eyes, and deletes everything. Exits with 1 when a promise is broken: reads within 1.2 times, adoption
within 2 seconds, samples within 3% of a core."""
import argparse, json, os, pathlib, statistics, sys, time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / d) for d in ('api', 'fault')]
import databases
from client import BASE, Wire, ok
from databases import Site, until

RATIO, ADOPTION_SECONDS, SAMPLES_PERCENT = 1.2, 2.0, 3.0
EACH = 10  # clusters in a project
SINGLE = {'providerName': 'TENANT', 'backingProviderName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
	  'electableSpecs': {'instanceSize': 'M5'}}


def latency(server, seconds):
	"""Median of reads of the kind that everybody does: a project, and its list of clusters."""
	path, times = '%s/groups/%s' % (BASE, server.group), []
	with Wire(server, server.token()) as wire:
		for _ in range(200):
			wire.one('GET', path)
		until_ = time.perf_counter() + seconds
		while time.perf_counter() < until_:
			began = time.perf_counter()
			a = wire.one('GET', path)
			times.append(time.perf_counter() - began)
			assert a.status == 200
	return statistics.median(times)


def states(server, groups):
	return [c['stateName'] for g in groups for c in ok(server.get('/groups/%s/clusters' % g))['results']]


def running(server, groups):
	"""Processes that the service sees running."""
	found = [p for g in groups for p in ok(server.get('/groups/%s/processes' % g))['results']]
	return sum(1 for p in found if 'PRIMARY' in p['typeName'])


def ticks(stat):
	"""Of the processor, from a file of /proc; 0 where it is gone."""
	try:
		words = stat.read_text().rsplit(')', 1)[1].split()
		return int(words[11]) + int(words[12])
	except OSError:
		return 0


def sampled(site):
	"""Processor time of the thread that takes samples, and of the sessions that it keeps."""
	threads = [t for t in pathlib.Path('/proc/%d/task' % site.server.pid).iterdir() if (t / 'comm').read_text().strip() == 'samples']
	sessions = []
	for pid in databases.working_in(site.root):
		try:
			words = pathlib.Path('/proc/%d/cmdline' % pid).read_text()
		except OSError:
			continue
		if 'steward_engine postgres [local]' in words:
			sessions.append(pathlib.Path('/proc/%d' % pid))
	return {str(p): ticks(p / 'stat') for p in threads + sessions}


def samples(site, seconds):
	"""Per cent of a core over whole minutes. Sessions that end within are not counted: the kept ones do the work."""
	time.sleep(20)  # all are connected
	before = sampled(site)
	time.sleep(seconds)
	after = sampled(site)
	used = sum(after[k] - before[k] for k in after if k in before) / os.sysconf('SC_CLK_TCK')
	ours = sum(after[k] - before[k] for k in after if k in before and '/task/' in k) / os.sysconf('SC_CLK_TCK')
	return {'samplesPercent': 100 * used / seconds, 'samplesServicePercent': 100 * ours / seconds, 'samplesSessions': len(after) - 1}


def measure(count, seconds, sample_seconds):
	site, out = Site('--job-threads', '4'), {'clusters': count}
	try:
		server = site.start()
		groups = [server.project()['id'] for _ in range((count + EACH - 1) // EACH)]
		latency(server, 0.5)
		out['quietUs'] = min(latency(server, seconds) for _ in range(3)) * 1e6
		began = time.monotonic()
		for n in range(count):
			ok(server.post('/groups/%s/clusters' % groups[n // EACH], json={
				'name': 'many-%03d' % n, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [SINGLE]}]}), 201)
		until(lambda: states(server, groups) == ['IDLE'] * count, 600, 'all clusters')
		out['madeSeconds'] = time.monotonic() - began
		time.sleep(3)  # the pool fills up, checkpoints end
		out['crowdedUs'] = min(latency(server, seconds) for _ in range(3)) * 1e6
		out['ratio'] = out['crowdedUs'] / out['quietUs']
		out.update(samples(site, sample_seconds))
		site.kill()
		began = time.monotonic()
		server = site.start()
		out['startSeconds'] = time.monotonic() - began
		until(lambda: running(server, groups) == count, 60, 'the adoption')
		out['adoptionSeconds'] = time.monotonic() - began
		for n in range(count):
			assert server.delete('/groups/%s/clusters/many-%03d' % (groups[n // EACH], n)).status_code == 202
		until(lambda: states(server, groups) == [], 300, 'the deletion')
		site.end()
	finally:
		site.wipe()
	return out


def main():
	parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	parser.add_argument('--clusters', type=int, default=60)
	parser.add_argument('--seconds', type=float, default=3)
	parser.add_argument('--samples', type=int, default=120)
	parser.add_argument('--json', action='store_true')
	given = parser.parse_args()
	if not databases.installed():
		sys.exit('PostgreSQL is not installed: run script/bootstrap')
	r = measure(given.clusters, given.seconds, given.samples)
	if given.json:
		print(json.dumps(r))
	else:
		print('%(clusters)d clusters made in %(madeSeconds).1f s; a read takes %(crowdedUs).0f us, with none %(quietUs).0f us '
		      '(%(ratio).2f times); adopted %(adoptionSeconds).2f s after the start; '
		      'samples take %(samplesPercent).2f%% of a core, %(samplesServicePercent).2f%% of them in the service' % r)
	sys.exit(r['ratio'] > RATIO or r['adoptionSeconds'] > ADOPTION_SECONDS or r['samplesPercent'] > SAMPLES_PERCENT)


if __name__ == '__main__':
	main()
