"""Query shapes on the simulated engine: six shapes on every node, whose figures are a function of the clock."""
import hashlib, re

import pytest

from client import NO_ID, ok, refused
from test_clusters import create, path, region, settle

HASH = re.compile('^[0-9a-f]{64}$')
NOBODY = '0' * 64
SERIES = {'TOTAL_EXECUTION_TIME': 'totalWorkingMillis', 'AVG_EXECUTION_TIME': 'avgWorkingMillis', 'EXECUTION_COUNT': 'execCount',
	  'DOCS_RETURNED': 'docsReturned', 'TOTAL_TIME_TO_RESPONSE': 'totalTimeToResponseMicros', 'BYTES_READ': 'bytesRead',
	  'LAST_EXECUTION_TIME': 'lastExecMicros', 'P50_EXECUTION_TIME': 'p50ExecMicros', 'P90_EXECUTION_TIME': 'p90ExecMicros',
	  'P99_EXECUTION_TIME': 'p99ExecMicros'}
WORDS = {'command', 'namespace', 'queryShape', 'queryShapeHash', 'systemQuery'}


@pytest.fixture(scope='module')
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'asked')
	server.advance(3600)
	return group


def base(group, name='asked'):
	return path(group, name) + '/queryShapes'


def insights(server, group, query='', name='asked'):
	return ok(server.get(path(group, name) + '/queryShapeInsights/summaries' + query))['summaries']


def details(server, group, hash_, query=''):
	return server.get('%s/queryShapeInsights/%s/details%s' % (path(group, 'asked'), hash_, query))


def change(server, group, hash_, status, name='asked'):
	return server.patch('%s/%s' % (base(group, name), hash_), json={'status': status})


def rejected(server, group, name='asked'):
	page = ok(server.get(base(group, name)))
	assert page['totalCount'] == len(page['results']) and all(x['status'] == 'REJECTED' for x in page['results'])
	return [x['queryShapeHash'] for x in page['results']]


def events(server, group, kind):
	return [e for e in ok(server.get('/groups/%s/events?itemsPerPage=500&eventType=%s' % (group, kind)))['results']]


def test_summaries(server, group):
	found = insights(server, group)
	assert len(found) == 6
	for one in found:
		assert set(one) == WORDS | set(SERIES.values()) and HASH.match(one['queryShapeHash'])
		assert one['command'] in ('find', 'distinct', 'aggregate') and one['namespace'].startswith('postgres.')
		assert one['execCount'] > 0 and one['systemQuery'] is False
		assert one['avgWorkingMillis'] == pytest.approx(one['totalWorkingMillis'] / one['execCount'])
		assert one['totalTimeToResponseMicros'] == pytest.approx(1000 * one['totalWorkingMillis'])
		assert 0 < one['p50ExecMicros'] <= one['p90ExecMicros'] <= one['p99ExecMicros'] <= 5 * one['lastExecMicros']
		assert one['p99ExecMicros'] >= 1000 * one['avgWorkingMillis'] * 0.999999, 'of what is simulated one call in a hundred takes longer than the mean'
	times = [one['totalWorkingMillis'] for one in found]
	assert times == sorted(times, reverse=True), 'what took most comes first'
	assert insights(server, group) == found, 'the same whenever it is asked'
	assert hashlib.sha256(b'0a1c5e7f20b3d481').hexdigest() in [one['queryShapeHash'] for one in found]


def test_what_is_asked_for(server, group):
	everything = insights(server, group)
	assert insights(server, group, '?nSummaries=2') == everything[:2]
	for command in ('find', 'distinct', 'aggregate'):
		assert insights(server, group, '?commands=' + command) == [x for x in everything if x['command'] == command]
	assert insights(server, group, '?namespaces=postgres.events') == [x for x in everything if x['namespace'] == 'postgres.events']
	assert insights(server, group, '?namespaces=postgres.nothing') == []
	two = [x['queryShapeHash'] for x in everything[1:3]]
	assert insights(server, group, '?queryShapeHashes=%s&queryShapeHashes=%s' % tuple(two)) == everything[1:3]
	for name, field in SERIES.items():
		assert set(insights(server, group, '?series=' + name)[0]) == WORDS | {field}
	assert set(insights(server, group, '?series=KEYS_EXAMINED')[0]) == WORDS, 'there is no source for it'


def test_processes(server, group):
	process = ok(server.get('/groups/%s/processes' % group))['results'][0]['id']
	one, every = insights(server, group, '?processIds=' + process)[0], insights(server, group)[0]
	assert one['queryShapeHash'] == every['queryShapeHash'] and 3 * one['execCount'] == every['execCount']
	assert insights(server, group, '?processIds=elsewhere.example.org:27017') == []


def test_a_period_selects(server, group):
	now = details(server, group, insights(server, group)[0]['queryShapeHash']).json()['lastSeen']['timestamp']
	assert insights(server, group, '?until=1199145600000') == []
	assert insights(server, group, '?since=%d' % (now + 10 ** 9)) == []
	assert len(insights(server, group, '?since=%d&until=%d' % (now - 60000, now))) == 6
	refused(server.get(path(group, 'asked') + '/queryShapeInsights/summaries?since=1299145600000&until=1199145600000'), 400)
	refused(server.get(path(group, 'asked') + '/queryShapeInsights/summaries?since=1'), 400)
	refused(server.get(path(group, 'asked') + '/queryShapeInsights/summaries?nSummaries=101'), 400)
	refused(server.get(path(group, 'asked') + '/queryShapeInsights/summaries?commands=delete'), 400)


def test_details(server, group):
	one = insights(server, group)[0]
	doc = ok(details(server, group, one['queryShapeHash']))
	assert doc['queryStats'] == one and doc['firstSeen']['timestamp'] <= doc['lastSeen']['timestamp']
	assert doc['firstSeen']['applicationName'] == 'simulated'
	assert ok(details(server, group, one['queryShapeHash'].upper())) == doc
	refused(details(server, group, NOBODY), 404)
	refused(details(server, group, one['queryShapeHash'], '?until=1199145600000'), 404)
	refused(details(server, group, 'abc'), 404)


def test_one_that_is_not_rejected(server, group):
	one = insights(server, group)[1]
	r = server.get('%s/%s' % (base(group), one['queryShapeHash']))
	assert ok(r) == {'command': one['command'].upper(), 'namespace': one['namespace'], 'queryShape': one['queryShape'],
			 'queryShapeHash': one['queryShapeHash'], 'status': 'UNREJECTED'}
	assert r.headers['X-Steward-Refusals'] == '0'
	refused(server.get('%s/%s' % (base(group), NOBODY)), 404)


def test_reject_and_take_back(server, group):
	hashes = [x['queryShapeHash'] for x in insights(server, group)][:2]
	assert rejected(server, group) == []
	doc = ok(change(server, group, hashes[0].upper(), 'REJECTED'))
	assert doc['status'] == 'REJECTED' and doc['queryShapeHash'] == hashes[0] and doc['queryShape'] and doc['command']
	assert ok(change(server, group, hashes[0], 'REJECTED')) == doc, 'again changes nothing'
	assert ok(server.get('%s/%s' % (base(group), hashes[0]))) == doc
	ok(change(server, group, hashes[1], 'REJECTED'))
	assert rejected(server, group) == hashes
	page = ok(server.get(base(group) + '?itemsPerPage=1&pageNum=2&status=REJECTED'))
	assert [x['queryShapeHash'] for x in page['results']] == hashes[1:] and page['totalCount'] == 2
	assert ok(change(server, group, hashes[0], 'UNREJECTED'))['status'] == 'UNREJECTED'
	assert ok(change(server, group, hashes[0], 'UNREJECTED')) == {**doc, 'status': 'UNREJECTED'}
	assert rejected(server, group) == hashes[1:]
	ok(change(server, group, hashes[1], 'UNREJECTED'))
	assert rejected(server, group) == []
	assert [len(events(server, group, k)) for k in ('QUERY_SHAPE_BLOCKED', 'QUERY_SHAPE_UNBLOCKED')] == [2, 2]


def test_refusals(server, group):
	known = insights(server, group)[0]['queryShapeHash']
	refused(change(server, group, NOBODY, 'REJECTED'), 404)
	refused(change(server, group, NOBODY, 'UNREJECTED'), 404)
	refused(change(server, group, known, 'HALF'), 400)
	refused(server.patch('%s/%s' % (base(group), known), json={}), 400)
	refused(change(server, group, known, 'REJECTED', 'nothing'), 404)
	refused(server.get(base(group, 'nothing')), 404)
	refused(server.get(path(group, 'nothing') + '/queryShapeInsights/summaries'), 404)
	refused(server.get(base(NO_ID)), 404)
	refused(server.get(base(group) + '?status=UNREJECTED'), 400)


def test_a_paused_cluster_tells_nothing(server, group):
	create(server, group, 'sleeps')
	known = insights(server, group, name='sleeps')[0]['queryShapeHash']
	ok(change(server, group, known, 'REJECTED', 'sleeps'))
	ok(server.patch(path(group, 'sleeps'), json={'paused': True}))
	settle(server, group, 'sleeps')
	refused(server.get(path(group, 'sleeps') + '/queryShapeInsights/summaries'), 409)
	assert rejected(server, group, 'sleeps') == [known]
	assert ok(server.get('%s/%s' % (base(group, 'sleeps'), known)))['status'] == 'REJECTED', 'what is kept is told'
	assert ok(change(server, group, known, 'UNREJECTED', 'sleeps'))['status'] == 'UNREJECTED'


def test_it_goes_with_its_cluster(server, group):
	create(server, group, 'goes')
	known = insights(server, group, name='goes')[0]['queryShapeHash']
	ok(change(server, group, known, 'REJECTED', 'goes'))
	assert server.delete(path(group, 'goes')).status_code == 202
	settle(server, group, 'goes')
	create(server, group, 'goes')
	assert rejected(server, group, 'goes') == []


def test_clients_come_to_routers(server, group):
	create(server, group, 'wide', [region()], [region()])
	server.advance(60)
	processes = ok(server.get('/groups/%s/processes?itemsPerPage=500' % group))['results']
	wide = [p for p in processes if p['userAlias'].startswith('wide-')]
	for p in wide:
		found = insights(server, group, '?processIds=' + p['id'], 'wide')
		assert (len(found) == 6) == (p['typeName'] == 'SHARD_ROUTER'), p
