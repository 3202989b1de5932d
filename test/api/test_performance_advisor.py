"""The performance advisor on the simulated engine, whose answers are a function of the clock (docs/advisor.md)."""
import datetime, json, re

import pytest

import derive
from client import NO_ID, cli, links, ok, refused, until
from test_cli import while_time_passes
from test_clusters import body, create, path, settle

EVERY, ORDERS, EVENTS = 600, 'postgres.orders', 'postgres.events'


def milliseconds(server):
	text = server.control('clock', method='GET')['now'][:19]
	return int(datetime.datetime.strptime(text, '%Y-%m-%dT%H:%M:%S').replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)


def expected(since, until, threshold=200):
	"""The slow statements of a period, newest first, by the function of the page: (time, milliseconds, namespace)."""
	found = []
	for k in range((until - 1) // (EVERY * 1000), 0, -1):
		if k * EVERY * 1000 < since:
			return found
		took = 120 + 40 * (k % 10)
		if took >= threshold:
			found.append((k * EVERY * 1000, took, ORDERS if k % 3 else EVENTS))


class Place:
	def __init__(self, server):
		self.server, self.group = server, server.project()['id']
		server.advance(EVERY + 60 - milliseconds(server) // 1000 % EVERY)  # none of the moments is near
		self.cluster = path(self.group, 'advised')
		create(server, self.group, 'advised')
		self.made = milliseconds(server)
		server.advance(5 * 3600)
		found = ok(server.get('/groups/%s/processes' % self.group))['results']
		self.primary, = [p['id'] for p in found if p['typeName'] == 'REPLICA_PRIMARY']
		self.standby = [p['id'] for p in found if p['typeName'] == 'REPLICA_SECONDARY'][0]

	def process(self, what, query='', process=None):
		return self.server.get('/groups/%s/processes/%s/performanceAdvisor/%s?%s' % (self.group, process or self.primary, what, query))

	def advice(self, what, query=''):
		return self.server.get('%s/performanceAdvisor/%s?%s' % (self.cluster, what, query))

	def slow(self, query='', **more):
		return ok(self.process('slowQueryLogs', query, **more))['slowQueries']


@pytest.fixture(scope='module')
def place(server):
	server.control('engine', {})
	return Place(server)


def test_slow_queries(place):
	now = milliseconds(place.server)
	want = expected(place.made + 1000, now)
	found = place.slow('includeMetrics=true&includeOpType=true&includeReplicaState=true')
	assert len(want) > 10 and [q['metrics']['operationExecutionTime'] for q in found] == [w[1] for w in want]
	assert [q['namespace'] for q in found] == [w[2] for w in want]
	for q in found:
		line = json.loads(q['line'])
		assert re.match(r'duration: \d+\.000 ms  plan: (select|update) on ', line['message']) and line['dbname'] == 'postgres'
		assert q['opType'] == {ORDERS: 'select', EVENTS: 'update'}[q['namespace']] and q['replicaState'] == 'PRIMARY'
		m = q['metrics']
		assert m['docsExaminedReturnedRatio'] == m['docsExamined'] / m['docsReturned'] and m['fromUserConnection'] is True
		assert m['hasIndexCoverage'] is False and m['keysExamined'] == 0
	plain = place.slow()
	assert all(set(q) == {'line', 'namespace'} for q in plain) and len(plain) == len(found)
	assert place.slow('includeReplicaState=true&nLogs=1', process=place.standby)[0]['replicaState'] == 'SECONDARY'


def test_which_slow_queries(place):
	now = milliseconds(place.server)
	assert len(place.slow('nLogs=3')) == 3 and place.slow('nLogs=0') == []
	assert {q['namespace'] for q in place.slow('namespaces=' + EVENTS)} == {EVENTS}
	assert {q['namespace'] for q in place.slow('namespaces=%s&namespaces=%s' % (EVENTS, ORDERS))} == {EVENTS, ORDERS}
	assert place.slow('namespaces=postgres.none') == []
	hour = 3600 * 1000
	assert len(place.slow('duration=%d' % hour)) == len(expected(now - hour, now))
	assert len(place.slow('since=%d&duration=%d' % (now - 3 * hour, hour))) == len(expected(now - 3 * hour, now - 2 * hour))
	assert len(place.slow('since=%d' % (now - 2 * hour))) == len(expected(now - 2 * hour, now))
	assert place.slow('since=1199145600000&duration=1000') == [], 'long before there was a process'


def test_slow_namespaces(place):
	found = ok(place.process('namespaces'))
	assert set(found) == {'namespaces'} and sorted(n['namespace'] for n in found['namespaces']) == [EVENTS, ORDERS]
	assert {n['type'] for n in found['namespaces']} == {'collection'}
	assert ok(place.process('namespaces', 'duration=0')) == {'namespaces': []}


def test_suggested_indexes(place):
	doc = ok(place.process('suggestedIndexes'))
	one, = doc['suggestedIndexes']
	shape, = doc['shapes']
	assert one['namespace'] == shape['namespace'] == ORDERS and one['index'] == [{'customer': 1}, {'placed': 1}]
	assert one['impact'] == [shape['id']] and 99 < one['weight'] < 100 and one['avgObjSize'] == 120
	assert shape['count'] == (milliseconds(place.server) - place.made) // (EVERY * 1000) and shape['inefficiencyScore'] == 10000
	assert len(shape['operations']) == 5
	for o in shape['operations']:
		assert o['predicates'] == [{'customer': '='}, {'placed': '>'}] and o['stats']['nScanned'] == 200000 and o['stats']['ms'] >= 200
	assert shape['avgMs'] == pytest.approx(sum(w[1] for w in expected(place.made + 1000, milliseconds(place.server)) if w[2] == ORDERS) /
		len([w for w in expected(place.made + 1000, milliseconds(place.server)) if w[2] == ORDERS]), abs=1)
	assert len(ok(place.process('suggestedIndexes', 'nExamples=2'))['shapes'][0]['operations']) == 2
	assert ok(place.process('suggestedIndexes', 'nIndexes=0')) == {'shapes': [], 'suggestedIndexes': []}
	assert ok(place.process('suggestedIndexes', 'pageNum=2'))['suggestedIndexes'] == []
	assert ok(place.process('suggestedIndexes', 'namespaces=' + EVENTS))['suggestedIndexes'] == []
	assert ok(place.process('suggestedIndexes', 'since=1199145600000&duration=1000'))['suggestedIndexes'] == []
	again = ok(place.process('suggestedIndexes', process=place.standby))
	assert again['suggestedIndexes'][0]['id'] == one['id'], 'the same suggestion has the same id'


def test_suggested_indexes_of_the_cluster(place):
	doc = ok(place.advice('suggestedIndexes'))
	assert doc['status'] == 200 and set(doc) == {'content', 'links', 'locations', 'status'}
	query = 'namespaces=%s' % ORDERS
	assert links(ok(place.advice('suggestedIndexes', query)))['self'].endswith('/performanceAdvisor/suggestedIndexes?' + query)
	mine, = doc['content']['suggestedIndexes']
	theirs, = ok(place.process('suggestedIndexes'))['suggestedIndexes']
	assert mine == theirs
	counts = [ok(place.advice('suggestedIndexes', q))['content']['shapes'][0]['count'] for q in ('', 'processIds=' + place.primary)]
	assert counts[0] == 3 * counts[1]
	now = milliseconds(place.server)
	for query in ('namespaces=postgres.none', 'since=1199145600000&until=1199145600001'):
		assert ok(place.advice('suggestedIndexes', query))['content'] == {'shapes': [], 'suggestedIndexes': []}
	refused(place.advice('suggestedIndexes', 'processIds=nobody.example.com:27017'), 400, 'VALIDATION_ERROR', 'processIds')
	refused(place.advice('suggestedIndexes', 'since=%d&until=%d' % (now, now - 1000)), 400, 'VALIDATION_ERROR', 'since')


def test_indexes_to_drop(place):
	doc = ok(place.advice('dropIndexSuggestions'))
	content = doc['content']
	assert doc['status'] == 200 and set(content) == {'hiddenIndexes', 'redundantIndexes', 'unusedIndexes'}
	assert content['hiddenIndexes'] == [] and content['unusedIndexes'] == [], 'five hours say nothing of a week'
	one, = content['redundantIndexes']
	assert one['name'] == 'orders_product' and one['namespace'] == ORDERS and one['index'] == [{'product': 1}] and one['shards'] == []
	assert one['accessCount'] == 12 and one['sizeBytes'] == 4 << 20
	place.server.advance(7 * 86400)
	unused, = ok(place.advice('dropIndexSuggestions'))['content']['unusedIndexes']
	assert unused['name'] == 'events_kind' and unused['accessCount'] == 0 and unused['index'] == [{'kind': 1}, {'at': -1}]


def test_schema_advice(place):
	doc = ok(place.advice('schemaAdvice'))
	assert doc['status'] == 200
	found = {r['recommendation']: r for r in doc['content']['recommendations']}
	assert set(found) == {'AVOID_UNBOUNDED_ARRAY', 'OPTIMIZE_CASE_INSENSITIVE_REGEX_QUERIES'}
	one, = found['AVOID_UNBOUNDED_ARRAY']['affectedNamespaces']
	assert one == {'namespace': ORDERS, 'triggers': [{'description': 'tags has arrays of 2500 elements', 'triggerType': 'DOCS_CONTAIN_UNBOUNDED_ARRAY'}]}


def test_the_threshold(server, place):
	where = '/groups/%s/managedSlowMs' % place.group
	assert ok(server.get(where)) is True, 'as long as nobody says otherwise'
	assert min(q['metrics']['operationExecutionTime'] for q in place.slow('includeMetrics=true')) == 200
	ok(server.delete(where + '/disable'), 204)
	assert ok(server.get(where)) is False
	until(lambda: min(q['metrics']['operationExecutionTime'] for q in place.slow('includeMetrics=true')) == 120)
	ok(server.delete(where + '/disable'), 204)
	ok(server.post(where + '/enable'), 204)
	assert ok(server.get(where)) is True and ok(server.get(where + '?envelope=true')) == {'content': True, 'status': 200}
	until(lambda: min(q['metrics']['operationExecutionTime'] for q in place.slow('includeMetrics=true')) == 200)
	assert ok(server.get('/groups/%s/managedSlowMs' % server.project()['id'])) is True, "each project's own"
	refused(server.get('/groups/%s/managedSlowMs' % NO_ID), 404)
	refused(server.post('/groups/%s/managedSlowMs/enable' % NO_ID), 404)
	refused(server.delete('/groups/%s/managedSlowMs/disable' % NO_ID), 404)


def test_redacted(server, place):
	"""What clients sent is in no line; which tables were slow stays known."""
	ok(server.patch(place.cluster, json={'redactClientLogData': True}))
	settle(server, place.group, 'advised')
	found = place.slow()
	assert found and all(json.loads(q['line'])['message'] == 'redacted' and 'customer' not in q['line'] for q in found)
	assert {q['namespace'] for q in found} == {ORDERS, EVENTS}
	ok(server.patch(place.cluster, json={'redactClientLogData': False}))
	settle(server, place.group, 'advised')


def test_who_may(server):
	"""Lines have values of the data in them: reading the project is not enough for them, and enough for the rest."""
	roles = 'GROUP_READ_ONLY', 'GROUP_DATA_ACCESS_READ_ONLY', 'GROUP_OBSERVABILITY_VIEWER', 'GROUP_OWNER'
	org, = server.seed({'name': 'Advised', 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': [role]}]} for role in roles] + [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	group = org['projects'][0]['id']
	callers = [server.api_for(p) for p in org['principals']]
	ok(callers[-1].post(path(group), json=body('theirs')), 201)
	until(lambda: (server.advance(2), ok(callers[-1].get(path(group, 'theirs')))['stateName'])[1] == 'IDLE')
	process = ok(callers[-1].get('/groups/%s/processes' % group))['results'][0]['id']
	base, lines = '/groups/%s' % group, '/groups/%s/processes/%s/performanceAdvisor/slowQueryLogs' % (group, process)
	for role, caller in zip(roles, callers):
		if role == 'GROUP_READ_ONLY':
			refused(caller.get(lines), 403)
		else:
			ok(caller.get(lines))
		for what in ('suggestedIndexes', 'dropIndexSuggestions', 'schemaAdvice'):
			ok(caller.get('%s/performanceAdvisor/%s' % (path(group, 'theirs'), what)))
		ok(caller.get('%s/processes/%s/performanceAdvisor/namespaces' % (base, process)))
		ok(caller.get(base + '/managedSlowMs'))
		if role != 'GROUP_OWNER':
			refused(caller.post(base + '/managedSlowMs/enable'), 403)
			refused(caller.delete(base + '/managedSlowMs/disable'), 403)
	refused(server.get(path(server.group, 'theirs') + '/performanceAdvisor/suggestedIndexes'), 404)
	refused(server.get('/groups/%s/processes/%s/performanceAdvisor/namespaces' % (server.group, process)), 404)


@pytest.mark.parametrize('what, query, name', [
	('slowQueryLogs', 'nLogs=20001', 'nLogs'), ('slowQueryLogs', 'nLogs=-1', 'nLogs'), ('slowQueryLogs', 'since=5', 'since'),
	('slowQueryLogs', 'duration=-5', 'duration'), ('suggestedIndexes', 'nExamples=-1', 'nExamples'),
	('suggestedIndexes', 'nIndexes=-1', 'nIndexes'), ('namespaces', 'duration=-1', 'duration')])
def test_what_is_out_of_bounds(place, what, query, name):
	refused(place.process(what, query), 400, 'VALIDATION_ERROR', name)


def test_not_there(server, place):
	for what in ('slowQueryLogs', 'namespaces', 'suggestedIndexes'):
		refused(place.process(what, process='nobody-shard-00-00.example.com:27017'), 404)
	for what in ('suggestedIndexes', 'dropIndexSuggestions', 'schemaAdvice'):
		refused(server.get('%s/performanceAdvisor/%s' % (path(place.group, 'nobody'), what)), 404)


def test_paused(server):
	"""A cluster that does not run has no advice; its log can still be read."""
	group = server.project()['id']
	create(server, group, 'rests')
	ok(server.patch(path(group, 'rests'), json={'paused': True}))
	settle(server, group, 'rests')
	process = ok(server.get('/groups/%s/processes' % group))['results'][0]['id']
	refused(server.get(path(group, 'rests') + '/performanceAdvisor/suggestedIndexes'), 409, 'CLUSTER_NOT_AVAILABLE')
	assert ok(server.get('/groups/%s/processes/%s/performanceAdvisor/slowQueryLogs' % (group, process)))['slowQueries'] == []


def test_build_by_the_client(server, place, tmp_path):
	"""One command looks what is suggested, and asks for it."""
	env = {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': ''}

	def run(*args):
		return cli('advisor', 'build', *args, '--data', server.data_dir, '--project', place.group, check=False, env=env, cwd=tmp_path)
	shown = run('advised', '--dry-run')
	assert shown.returncode == 0 and '/clusters/advised/index' in shown.stdout, shown
	assert json.loads(re.search(r'\{.*\}', shown.stdout, re.S).group(0)) == {
		'db': 'postgres', 'collection': 'orders', 'keys': [{'customer': '1'}, {'placed': '1'}]}
	one = ok(place.advice('suggestedIndexes'))['content']['suggestedIndexes'][0]['id']
	assert run('advised', '--index', one, '--dry-run').stdout == shown.stdout
	none = run('advised', '--namespace', 'postgres.none')
	assert none.returncode == 1 and 'no index is suggested for advised' in none.stderr, none
	other = run('advised', '--index', NO_ID)
	assert other.returncode == 1 and 'is not suggested' in other.stderr, other
	assert run().returncode == 2
	if derive.Api().by_id['createRollingIndex']['handler'] != 'unbuilt':
		made = run('advised')
		assert made.returncode == 0 and 'customer, placed' in made.stdout and one in made.stdout, made


def test_a_build_is_waited_for(module_server):
	"""And one that has failed is told, though the cluster is well."""
	s, place = module_server, Place(module_server)
	code, out, err = while_time_passes(s, 'advisor', 'build', 'advised', '--project', place.group, '--wait', step=60)
	assert code == 0 and re.search('^status +built$', out, re.M) and 'advised 100% done' in err, (out, err)
	s.control('engine', {'fail': 'index', 'times': 1})
	code, out, err = while_time_passes(s, 'advisor', 'build', 'advised', '--project', place.group, '--wait', step=60)
	assert code == 1 and 'the index could not be built' in err and out == '', (out, err)
	s.control('engine', {'fail': None})


def test_an_envelope_is_not_put_into_another(module_server):
	"""Programs that decode the inner one find nothing in it, and no fault. Not recorded: the reference's checker unwraps every one."""
	place = Place(module_server)
	for what in ('suggestedIndexes', 'dropIndexSuggestions', 'schemaAdvice'):
		plain, doc = ok(place.advice(what)), ok(place.advice(what, 'envelope=true'))
		assert set(doc) == {'content', 'links', 'locations', 'status'} and doc['status'] == 200
		assert doc['content'] == plain['content'] and 'content' not in doc['content']
		r = module_server.get('%s/performanceAdvisor/%s?envelope=true' % (path(place.group, 'nobody'), what))
		assert r.status_code == 404 and r.json()['content']['errorCode'] == 'CLUSTER_NOT_FOUND'
