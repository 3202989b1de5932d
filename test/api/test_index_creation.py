"""Index builds on the simulated engine: the call, its refusals, the cluster's state, events, failures, restarts."""
import pytest

from client import NO_ID, ok, pass_time, refused, until
from test_clusters import create, path, settle, state

DONE, FAILED = 'ROLLING_INDEX_SUCCESS_INDEX_BUILD', 'ROLLING_INDEX_FAILED_INDEX_BUILD'


def wish(**more):
	return {'db': 'shop', 'collection': 'orders', 'keys': [{'customer': '1'}, {'placed': '-1'}], **more}


def ask(server, group, name='indexed', **more):
	return server.post(path(group, name) + '/index', json=wish(**more))


def told(server, group, kind):
	found = ok(server.get('/groups/%s/events?includeRaw=true&itemsPerPage=500' % group))['results']
	return [e for e in found if e['eventTypeName'] == kind]


def jobs(server, cluster):
	return server.rows("SELECT kind FROM job WHERE subject = 'index/%s'" % cluster)


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'indexed')
	return group


def test_a_build(server, group):
	"""The cluster is UPDATING until it is there; then an event says what was built, and for whom."""
	r = ask(server, group, options={'name': 'by_customer', 'sparse': True, 'unique': True}, collation={'locale': 'de', 'strength': 1})
	assert r.status_code == 202 and not r.content, r.text
	assert state(server, group, 'indexed') == 'UPDATING'
	assert not told(server, group, DONE)
	until(lambda: 'X-Steward-Progress' in server.get(path(group, 'indexed')).headers)
	settle(server, group, 'indexed')
	one, = told(server, group, DONE)
	assert 'by_customer' in str(one) and 'shop.orders' in str(one)
	assert server.bootstrap['serviceAccount']['clientId'] in str(one)
	assert not told(server, group, FAILED)
	assert 'X-Steward-Progress' not in server.get(path(group, 'indexed')).headers


def test_several_wait_for_each_other(server, group):
	for i in range(20):
		assert ask(server, group, options={'name': 'index %d' % i}).status_code == 202
	refused(ask(server, group), 409, 'TOO_MANY_INDEX_BUILDS')
	pass_time(server, lambda: state(server, group, 'indexed') == 'IDLE', 20)
	assert len(told(server, group, DONE)) == 20


def test_a_failure(server, group):
	cluster = ok(server.get(path(group, 'indexed')))['id']
	server.control('engine', {'fail': 'index', 'times': 1})
	assert ask(server, group).status_code == 202
	settle(server, group, 'indexed')
	one, = told(server, group, FAILED)
	assert 'test control' in str(one) and not told(server, group, DONE)
	assert ask(server, group).status_code == 202
	settle(server, group, 'indexed')
	assert len(told(server, group, DONE)) == 1
	pass_time(server, lambda: not jobs(server, cluster))


@pytest.mark.parametrize('change, field', [
	({'keys': []}, 'keys'),
	({'keys': [{'c%d' % i: '1'} for i in range(33)]}, 'keys'),
	({'keys': [{'a': '2'}]}, 'keys[0]'),
	({'keys': [{'a': '2dsphere'}]}, 'keys[0]'),
	({'keys': [{'a': 'geoHaystack'}]}, 'keys[0]'),
	({'keys': [{'a': 'columnstore'}]}, 'keys[0]'),
	({'keys': [{'$**': '1'}]}, 'keys[0]'),
	({'keys': [{'a': '1'}, {'b': 'text'}]}, 'keys[1]'),
	({'keys': [{'a': 'hashed'}, {'b': 'hashed'}]}, 'keys[1]'),
	({'collection': ''}, 'collection'),
	({'collection': 'missing'}, 'collection'),
	({'db': 'x' * 200}, 'db'),
	({'options': {'name': 'n' * 64}}, 'options.name'),
	({'options': {'name': ''}}, 'options.name'),
	({'options': {'name': 'steward_build_x'}}, 'options.name'),
	({'options': {'hidden': True}}, 'options.hidden'),
	({'options': {'expireAfterSeconds': 60}}, 'options.expireAfterSeconds'),
	({'options': {'bits': 20}}, 'options.bits'),
	({'options': {'bucketSize': 1}}, 'options.bucketSize'),
	({'options': {'textIndexVersion': 2}}, 'options.textIndexVersion'),
	({'options': {'weights': {'a': {}}}}, 'options.weights'),
	({'options': {'storageEngine': {'a': {}}}}, 'options.storageEngine'),
	({'options': {'language_override': 'tongue'}}, 'options.language_override'),
	({'options': {'default_language': 'klingon'}}, 'options.default_language'),
	({'options': {'unique': True}, 'keys': [{'a': 'text'}]}, 'options.unique'),
	({'collation': {'locale': 'de'}, 'keys': [{'a': 'hashed'}]}, 'collation'),
	({'collation': {'locale': 'tlh'}}, 'collation.locale'),
	({'options': {'partialFilterExpression': {'a': {'$ne': 1}}}}, 'options.partialFilterExpression.a'),
	({'options': {'partialFilterExpression': {'a': {}}}}, 'options.partialFilterExpression.a'),
	({'options': {'partialFilterExpression': {'a': {'$exists': 1}}}}, 'options.partialFilterExpression.a'),
	({'options': {'partialFilterExpression': {'a': {'$gt': [1]}}}}, 'options.partialFilterExpression.a'),
	({'options': {'partialFilterExpression': {'a': {'$in': []}}}}, 'options.partialFilterExpression.a'),
	({'options': {'partialFilterExpression': {'$and': {'$eq': 1}}}}, 'options.partialFilterExpression.$and'),
	({'options': {'unknown': 1}}, 'options.unknown'),
])
def test_refusals(server, refusing, change, field):
	refused(ask(server, refusing, **change), 400, 'VALIDATION_ERROR', field)
	assert state(server, refusing, 'indexed') == 'IDLE'


@pytest.fixture(scope='module')
def refusing(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'indexed')
	return group


def test_usual_values_are_taken(server, group):
	assert ask(server, group, options={'bits': 26, 'min': -180, 'max': 180, 'textIndexVersion': 3, '2dsphereIndexVersion': 3,
		'background': True, 'hidden': False, 'language_override': 'language', 'weights': {},
		'partialFilterExpression': {'a': {'$gt': 1, '$lte': 2.5}, 'b': {'$in': ['x', True]}, 'c': {'$exists': False}, 'd': {'$eq': None}}},
		).status_code == 202
	settle(server, group, 'indexed')
	assert len(told(server, group, DONE)) == 1


def test_no_such_cluster_or_not_now(server, group):
	refused(ask(server, group, 'nothing'), 404)
	refused(ask(server, NO_ID), 404)
	ok(server.patch(path(group, 'indexed'), json={'paused': True}))
	refused(ask(server, group), 409, 'CANNOT_UPDATE_PAUSED_CLUSTER')
	settle(server, group, 'indexed')
	assert server.delete(path(group, 'indexed')).status_code == 202
	refused(ask(server, group), 409, 'CLUSTER_ALREADY_REQUESTED_DELETION')


def test_a_pause_ends_a_build(server, group):
	assert ask(server, group).status_code == 202
	ok(server.patch(path(group, 'indexed'), json={'paused': True}))
	settle(server, group, 'indexed')
	assert len(told(server, group, FAILED)) == 1 and ok(server.get(path(group, 'indexed')))['paused']


def test_a_deletion_takes_the_builds_along(server, group):
	cluster = ok(server.get(path(group, 'indexed')))['id']
	for _ in range(3):
		assert ask(server, group).status_code == 202
	assert jobs(server, cluster)
	server.delete(path(group, 'indexed'))
	settle(server, group, 'indexed')
	pass_time(server, lambda: not jobs(server, cluster))
	assert not told(server, group, DONE)


def test_a_build_goes_on_after_a_crash(start_server):
	server = start_server()
	create(server, server.group, 'indexed')
	assert ask(server, server.group).status_code == 202
	until(lambda: 'X-Steward-Progress' in server.get(path(server.group, 'indexed')).headers)
	server.kill()
	server = start_server(data_dir=server.data_dir)
	assert state(server, server.group, 'indexed') == 'UPDATING'
	settle(server, server.group, 'indexed')
	assert len(told(server, server.group, DONE)) == 1
