"""No write grows with everybody's documents: whoever walks all documents of a kind is listed here, with the reason why it may.

One tenant's changes of its identity provider walked the sessions of all, on the one writer: others' writes went from 7 to 177 ms."""
import pathlib, re

SRC = pathlib.Path(__file__).resolve().parents[2] / 'src'
READS = 'reads only, with a reader of its own'
START = 'once, before the service takes calls'
OPERATOR = "a command of the operator's"
WALKS = {
	'api/snapshots/drills.c': OPERATOR,
	'api/snapshots/judge.c': READS,
	'api/snapshots/snapshot.c': READS,
	'api/snapshots/sweep.c': READS,
	'api/snapshots/strangers.c': START,
	'api/billing/jobs.c': READS,
	'api/billing/metering.c': READS,
	'api/clusters/collect.c': READS,
	'api/clusters/jobs.c': START,
	'api/clusters/metrics.c': READS,
	'api/clusters/missing.c': OPERATOR,
	'api/clusters/orphans.c': 'of what this host found that the store does not know: few, and none unless an older store was put in place',
	'api/clusters/place.c': START,
	'api/clusters/store.c': 'clusters_walk() itself',
	'api/console/roster.c': READS,
	'api/data_federation/work.c': START,
	'api/federation/domains.c': START,
	'api/log_export/shipper.c': READS,
	'api/maintenance/plan.c': READS,
	'api/metrics/judge.c': READS,
	'api/private_endpoints/verdicts.c': OPERATOR,
	'cli/operator/hosts.c': OPERATOR,
	'cli/operator/orphans.c': OPERATOR,
	'cli/operator/outbox.c': OPERATOR,
	'store/store.c': 'tx_walk_all() itself',
}
CALL = re.compile(r'\b(tx_walk_all|clusters_walk)\(')
# How often: another call in a file that is listed needs a look, too.
TIMES = {'api/clusters/orphans.c': 2, 'api/snapshots/sweep.c': 5, 'api/billing/jobs.c': 4, 'api/clusters/collect.c': 2, 'api/clusters/place.c': 2, 'api/clusters/store.c': 2, 'api/federation/domains.c': 2, 'cli/operator/hosts.c': 2}


def test_walks_are_known():
	found = {}
	for file in sorted(SRC.rglob('*.c')):
		calls = CALL.findall(re.sub(r'/\*.*?\*/', '', file.read_text(), flags=re.S))
		if calls:
			found[str(file.relative_to(SRC))] = len(calls)
	assert found == {name: TIMES.get(name, 1) for name in WALKS}
