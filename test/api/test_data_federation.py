"""Federated database instances on the simulated engine: what a configuration may be, states, limits that refuse and end queries, the
log, private endpoints, who may ask. There each user in turn asks each table in turn, one query every ten minutes: a cluster's
table reads 1 MiB, a source of objects 32 MiB."""
import calendar, gzip, json, pathlib, sys, time

import pytest

import client, clouds, conftest, derive, versions
import test_archives as archives
import test_provider_access as access
from client import NO_ID, jobs_done, leave, ok, pass_time, refused, unique
from test_clusters import create
from test_database_users import user

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import s3_server  # noqa: E402

MIB = 1 << 20
EVERY = 600  # seconds from one query to the next
DAY = 86400
CLUSTER = {'name': 'live', 'provider': 'svc', 'clusterName': 'federated'}
PUBLIC = {'name': 'files', 'provider': 's3', 'bucket': 'some-bucket', 'region': 'US_EAST_1', 'public': True, 'prefix': 'in/', 'delimiter': '/'}
LIVE = {'storeName': 'live', 'database': 'shop', 'collection': 'orders'}
FILES = {'storeName': 'files', 'path': '/sales/{year int}/{month int:[0-9]{2}}/*', 'defaultFormat': '.parquet'}


def base(group, name=None, rest=''):
	return '/groups/%s/dataFederation%s%s' % (group, '/' + name if name else '', rest)


def storage(*tables, stores=(CLUSTER, PUBLIC), **database):
	return {'stores': list(stores), 'databases': [{'name': 'all', 'collections': list(tables), **database}]}


def table(*sources, name='orders'):
	return {'name': name, 'dataSources': list(sources)}


def make(server, group, kept=None, **more):
	"""One that is in force."""
	name = unique('fed')
	made = ok(server.post(base(group), json={'name': name, **({'storage': kept} if kept else {}), **more}))
	assert made['state'] == 'UNVERIFIED'
	return reached(server, group, name)


def reached(server, group, name, state='ACTIVE'):
	return pass_time(server, lambda: (lambda d: d['state'] == state and d)(ok(server.get(base(group, name)))))


def dropped(server, group, name):
	assert server.delete(base(group, name)).status_code == 204
	pass_time(server, lambda: server.get(base(group, name)).status_code == 404)


def limit(server, group, name, span, value=None, policy=None):
	path = base(group, name, '/limits/bytesProcessed.' + span)
	if value is None:
		return ok(server.get(path))
	answer = ok(server.patch(path, json={'value': value, **({'overrunPolicy': policy} if policy else {})}))
	jobs_done(server)
	return answer


def used(server, group, name, span='monthly'):
	return limit(server, group, name, span)['currentUsage']


def lines(server, group, name, query=''):
	r = server.get(base(group, name, '/queryLogs.gz' + query))
	assert r.status_code == 200 and r.headers['Content-Type'].endswith('+gzip')
	return [json.loads(line) for line in gzip.decompress(r.content).splitlines()]


def queried(server, group, name, more=1, wanted=lambda line: True):
	"""The lines of the log that are new, once there are so many that are wanted."""
	before = len(lines(server, group, name, '?startDate=1199145600'))
	def look():
		new = [line for line in lines(server, group, name, '?startDate=1199145600')[before:] if wanted(line)]
		return len(new) >= more and new
	return pass_time(server, look, step=EVERY)


def told(server, group, kind):
	return [e for e in ok(server.get('/groups/%s/events?includeRaw=true&itemsPerPage=500' % group))['results'] if e['eventTypeName'] == kind]


def now(server):
	return calendar.timegm(time.strptime(server.control('clock', method='GET')['now'][:19], '%Y-%m-%dT%H:%M:%S'))


@pytest.fixture(scope='module')
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'federated')
	ok(server.post('/groups/%s/databaseUsers' % group, json=user(group, 'reader')), 201)
	yield group
	leave(server, group)


def test_an_instance(server, group):
	name = unique('fed')
	made = ok(server.post(base(group), json={'name': name, 'storage': storage(table(LIVE, FILES))}))
	assert (made['name'], made['state'], made['groupId']) == (name, 'UNVERIFIED', group)
	assert len(made['hostnames']) == 1 and made['privateEndpointHostnames'] == []
	found = reached(server, group, name)
	assert found['hostnames'] == made['hostnames']
	assert found['storage']['stores'][0]['projectId'] == group
	assert found['storage']['databases'][0]['maxWildcardCollections'] == 100
	assert found['storage']['databases'][0]['collections'][0]['dataSources'][1]['path'] == FILES['path']
	assert 'address=' in server.get(base(group, name)).headers['X-Steward-Endpoint']
	assert name in [d['name'] for d in ok(server.get(base(group)))]
	assert name in [d['name'] for d in ok(server.get(base(group) + '?type=USER'))]
	assert ok(server.get(base(group) + '?type=ONLINE_ARCHIVE')) == []
	dropped(server, group, name)
	for kind in ('CREATED', 'REMOVED'):
		assert [e for e in told(server, group, 'FEDERATED_DATABASE_' + kind) if name in str(e)], kind
	# The name is free again.
	ok(server.post(base(group), json={'name': name}))
	dropped(server, group, name)


def test_a_change(server, group):
	found = make(server, group, storage(table(LIVE)), dataProcessRegion={'cloudProvider': 'AWS', 'region': 'DUBLIN_IRL'})
	at = base(group, found['name'])
	changed = ok(server.patch(at + '?skipRoleValidation=false', json={'storage': storage(table(FILES, name='files'))}))
	assert [t['name'] for t in changed['storage']['databases'][0]['collections']] == ['files']
	assert changed['dataProcessRegion'] == found['dataProcessRegion'] and changed['state'] == 'ACTIVE'
	assert all('"files"' in line['statement'] for line in queried(server, group, found['name'], 2, lambda line: line['files']))
	refused(server.patch(at + '?skipRoleValidation=true', json={'name': 'other'}), 400, 'VALIDATION_ERROR', 'name')
	refused(server.patch(at, json={}), 400, 'VALIDATION_ERROR', 'skipRoleValidation')
	refused(server.patch(at + '?skipRoleValidation=true', json={}, headers={'If-Match': '"1"'}), 412)
	assert [e for e in told(server, group, 'FEDERATED_DATABASE_UPDATED') if found['name'] in str(e)]
	dropped(server, group, found['name'])


def test_what_is_not_there(server, group):
	for path in (base(group, 'nowhere'), base(group, 'nowhere', '/limits'), base(group, 'nowhere', '/limits/bytesProcessed.query'),
	             base(group, 'nowhere', '/queryLogs.gz')):
		refused(server.get(path), 404, 'DATA_FEDERATION_TENANT_NOT_FOUND_FOR_NAME')
	refused(server.delete(base(group, 'nowhere')), 404, 'DATA_FEDERATION_TENANT_NOT_FOUND_FOR_NAME')
	refused(server.patch(base(group, 'nowhere') + '?skipRoleValidation=true', json={}), 404, 'DATA_FEDERATION_TENANT_NOT_FOUND_FOR_NAME')
	refused(server.patch(base(group, 'nowhere', '/limits/bytesProcessed.daily'), json={'value': 1}), 404, 'DATA_FEDERATION_TENANT_NOT_FOUND_FOR_NAME')


def test_names_are_taken_once(server, group):
	found = make(server, group)
	refused(server.post(base(group), json={'name': found['name']}), 400, 'DATA_FEDERATION_TENANT_ALREADY_EXISTS')
	dropped(server, group, found['name'])


STORES, TABLE = 'storage.stores[0].', 'storage.databases[0].collections[0].'
SOURCE, VIEW = TABLE + 'dataSources[0].', 'storage.databases[0].views[0].'
HTTP = {'name': 'web', 'provider': 'http'}
DLS = {'name': 'old', 'provider': 'dls:aws', 'region': 'US_EAST_1'}


def store(**more):
	return {'storage': storage(stores=[{k: v for k, v in {**PUBLIC, **more}.items() if v is not None}])}


def source(of=LIVE, stores=(CLUSTER, PUBLIC), name='orders', **more):
	return {'storage': storage(table({k: v for k, v in {**of, **more}.items() if v is not None}, name=name), stores=stores)}


def view(**more):
	return {'storage': storage(table(LIVE), views=[{'name': 'v', 'source': 'orders', 'pipeline': '[]', **more}])}


@pytest.mark.parametrize('body,field', [
	({'name': ''}, 'name'), ({'name': '-x'}, 'name'), ({'name': 'x' * 65}, 'name'), ({'name': None}, 'name'),
	({'state': 'ACTIVE'}, 'state'), ({'hostnames': []}, 'hostnames'),
	({'dataProcessRegion': {'cloudProvider': 'AWS', 'region': 'IOWA_USA'}}, 'dataProcessRegion.region'),
	({'dataProcessRegion': {'cloudProvider': 'AWS'}}, 'dataProcessRegion.region'),
	({'cloudProviderConfig': {'aws': {'roleId': NO_ID, 'testS3Bucket': 'b'}}}, 'cloudProviderConfig.aws.roleId'),
	({'cloudProviderConfig': {'aws': {'roleId': NO_ID}}}, 'cloudProviderConfig.aws.testS3Bucket'),
	({'cloudProviderConfig': {'gcp': {'roleId': NO_ID}}}, 'cloudProviderConfig.gcp.roleId'),
	# Stores.
	(store(name=''), STORES + 'name'), (store(name='x' * 64), STORES + 'name'),
	({'storage': storage(stores=[PUBLIC, PUBLIC])}, 'storage.stores[1].name'),
	(store(bucket=None), STORES + 'bucket'), (store(bucket='Capital'), STORES + 'bucket'), (store(bucket='../x'), STORES + 'bucket'),
	(store(prefix='a/../b'), STORES + 'prefix'), (store(delimiter='|'), STORES + 'delimiter'), (store(public=False), STORES + 'public'),
	(store(includeTags=True), STORES + 'includeTags'), (store(provider='ftp'), STORES + 'provider'),
	({'storage': storage(stores=[{**CLUSTER, 'clusterName': 'nowhere'}])}, STORES + 'clusterName'),
	({'storage': storage(stores=[{'name': 'x', 'provider': 'svc'}])}, STORES + 'clusterName'),
	({'storage': storage(stores=[{'name': 'a', 'provider': 'azure', 'containerName': 'box', 'public': True}])}, STORES + 'serviceURL'),
	({'storage': storage(stores=[{'name': 'a', 'provider': 'azure', 'containerName': 'box', 'public': True,
				      'serviceURL': 'https://127.0.0.1/'}])}, STORES + 'serviceURL'),
	({'storage': storage(stores=[{'name': 'g', 'provider': 'gcs', 'bucket': 'x', 'public': True}])}, STORES + 'bucket'),
	({'storage': storage(stores=[{**HTTP, 'urls': ['https://a.example/x.csv', 'http://a.example/x.csv']}])}, STORES + 'urls[1]'),
	({'storage': storage(stores=[{**HTTP, 'urls': ['file:///etc/passwd']}])}, STORES + 'urls[0]'),
	({'storage': storage(stores=[{**HTTP, 'urls': ['https://me:word@a.example/']}])}, STORES + 'urls[0]'),
	({'storage': storage(stores=[{**CLUSTER, 'name': 'n%d' % n} for n in range(51)])}, 'storage.stores'),
	# Databases and collections.
	({'storage': {'databases': [{'name': ''}]}}, 'storage.databases[0].name'),
	({'storage': {'databases': [{'name': 'a'}, {'name': 'a'}]}}, 'storage.databases[1].name'),
	({'storage': {'databases': [{'name': 'a', 'maxWildcardCollections': 1001}]}}, 'storage.databases[0].maxWildcardCollections'),
	({'storage': storage(table(LIVE), table(LIVE))}, 'storage.databases[0].collections[1].name'),
	({'storage': storage(table(LIVE, name='quo"te'))}, TABLE + 'name'), ({'storage': storage(table())}, TABLE + 'dataSources'),
	# Sources.
	(source(storeName=None), SOURCE + 'storeName'), (source(storeName='nowhere'), SOURCE + 'storeName'),
	(source(database=None), SOURCE + 'database'), (source(collection=None), SOURCE + 'collection'),
	(source(databaseRegex='^a'), SOURCE + 'databaseRegex'), (source(collectionRegex='^a'), SOURCE + 'collectionRegex'),
	(source(collection=None, collectionRegex='(a'), SOURCE + 'collectionRegex'),
	(source(collection=None, collectionRegex='(a{1,255}){1,255}'), SOURCE + 'collectionRegex'),
	(source(path='/x'), SOURCE + 'path'), (source(urls=[]), SOURCE + 'urls'), (source(datasetName='x'), SOURCE + 'datasetName'),
	(source(name='*'), SOURCE + 'collection'), (source(provenanceFieldName='x' * 64), SOURCE + 'provenanceFieldName'),
	(source(FILES, path='/a/{year}'), SOURCE + 'path'), (source(FILES, path='/a/{year decimal}'), SOURCE + 'path'),
	(source(FILES, path='/a/{year int'), SOURCE + 'path'), (source(FILES, path='/a}'), SOURCE + 'path'),
	(source(FILES, path='/{a int}/{a int}'), SOURCE + 'path'), (source(FILES, path='/{a string:[}'), SOURCE + 'path'),
	(source(FILES, path='/***'), SOURCE + 'path'), (source(FILES, path='x' * 1025), SOURCE + 'path'),
	(source(FILES, path='/{collectionName()}/*'), SOURCE + 'path'), (source(FILES, name='*'), SOURCE + 'path'),
	(source(FILES, database='shop'), SOURCE + 'database'), (source(FILES, defaultFormat='.orc'), SOURCE + 'defaultFormat'),
	(source(FILES, defaultFormat='.xls'), SOURCE + 'defaultFormat'),
	(source({'storeName': 'web'}, stores=[HTTP]), SOURCE + 'urls'),
	(source({'storeName': 'web', 'urls': ['http://a.example/x.csv']}, stores=[HTTP]), SOURCE + 'urls[0]'),
	(source({'storeName': 'old'}, stores=[DLS]), SOURCE + 'datasetName'),
	(source({'storeName': 'old', 'datasetName': 'archive-' + NO_ID}, stores=[DLS]), SOURCE + 'datasetName'),
	(source({'storeName': 'old', 'datasetName': 'x', 'datasetPrefix': 'y'}, stores=[DLS]), SOURCE + 'datasetPrefix'),
	(source({'storeName': 'old', 'datasetPrefix': 'a', 'trimLevel': 1}, stores=[DLS]), SOURCE + 'trimLevel'),
	# Views.
	(view(name=''), VIEW + 'name'), (view(name='orders'), VIEW + 'name'), (view(source='nowhere'), VIEW + 'source'),
	(view(pipeline='{}'), VIEW + 'pipeline'), (view(pipeline='[{"$lookup": {}}]'), VIEW + 'pipeline'),
	(view(pipeline='[{"$match": {"a": {"$regex": "b"}}}]'), VIEW + 'pipeline'), (view(pipeline='[{"$limit": -1}]'), VIEW + 'pipeline'),
	(view(pipeline='[{"$sort": {"a": 2}}]'), VIEW + 'pipeline'), (view(pipeline='[{"$project": {"a": "b"}}]'), VIEW + 'pipeline'),
])
def test_refusals(server, group, body, field):
	whole = {k: v for k, v in {'name': unique('fed'), **body}.items() if v is not None}
	refused(server.post(base(group), json=whole), 400, 'VALIDATION_ERROR', field)
	assert whole.get('name') not in [d['name'] for d in ok(server.get(base(group)))]


def test_all_kinds_of_stores(server, group):
	"""With wildcards, views and every way to name a source; and a path that has each kind of part."""
	archive = ok(server.post(archives.base(group, 'federated'), json=archives.wish('aged')))
	stores = [{**CLUSTER, 'readConcern': {'level': 'MAJORITY'}, 'readPreference': {'mode': 'nearest', 'maxStalenessSeconds': 0, 'tagSets': []}},
		  {**PUBLIC, 'additionalStorageClasses': ['STANDARD_IA']},
		  {'name': 'blobs', 'provider': 'azure', 'containerName': 'box', 'serviceURL': 'https://acct.blob.core.windows.net', 'public': True,
		   'region': 'EUROPE_WEST', 'prefix': 'x/', 'delimiter': '/'},
		  {'name': 'google', 'provider': 'gcs', 'bucket': 'some-bucket', 'public': True, 'region': 'CENTRAL_US', 'prefix': 'x/', 'delimiter': '/'},
		  {**HTTP, 'urls': ['https://files.example/a.json.gz'], 'defaultFormat': '.json.gz'}, DLS,
		  {'name': 'old2', 'provider': 'dls:azure', 'region': 'EUROPE_WEST'}, {'name': 'old3', 'provider': 'dls:gcp', 'region': 'CENTRAL_US'}]
	whole = [table(LIVE, FILES, {'storeName': 'blobs', 'path': 'x/', 'provenanceFieldName': 'origin'},
		       {'storeName': 'google', 'path': '{who string}/{min(at) isodate}_{max(at) isodate}.csv', 'defaultFormat': '.csv'},
		       {'storeName': 'web', 'urls': ['https://files.example/b.json']}, {'storeName': 'web'},
		       {'storeName': 'old', 'datasetName': 'archive-' + archive['_id']}, {'storeName': 'old', 'datasetPrefix': 'archive-', 'trimLevel': 0}),
		 table({'storeName': 'live', 'databaseRegex': '^shop', 'collectionRegex': r'^(a|b)\d+$'}, name='some')]
	many = [table({'storeName': 'live', 'database': 'shop'}, {'storeName': 'files', 'path': '/{collectionName()}/**/*.parquet'}, name='*')]
	views = [{'name': 'few', 'source': 'orders', 'pipeline': '[{"$match": {"a": {"$gt": 1}}}, {"$project": {"a": 1, "b": "$c.d"}}, {"$sort": {"a": -1}}, {"$limit": 5}]'},
		 {'name': 'fewer', 'source': 'few', 'pipeline': ''}]
	found = make(server, group, {'stores': stores, 'databases': [{'name': 'all', 'collections': whole, 'views': views}, {'name': 'wild', 'collections': many}, {'name': 'empty'}]})
	assert [s['provider'] for s in found['storage']['stores']] == ['svc', 's3', 'azure', 'gcs', 'http', 'dls:aws', 'dls:azure', 'dls:gcp']
	new = queried(server, group, found['name'], 3)
	# 1 cluster, 3 stores of objects, 2 URLs, an archive by its name and by its prefix.
	assert max(line['bytesProcessed'] for line in new) == (1 + 3 * 32 + 2 + 2 * 2) * MIB
	dropped(server, group, found['name'])


def test_a_cluster_that_goes(server, group):
	"""Its queries fail with a sentence, the others do not."""
	create(server, group, 'leaving')
	two = storage(table(LIVE), table({**LIVE, 'storeName': 'other'}, name='other'), stores=[CLUSTER, {**CLUSTER, 'name': 'other', 'clusterName': 'leaving'}])
	found = make(server, group, two)
	assert not [line for line in queried(server, group, found['name'], 4) if 'error' in line]
	server.delete('/groups/%s/clusters/leaving' % group)
	failed = queried(server, group, found['name'], 3, lambda line: 'error' in line)
	assert all('"other" has no cluster' in line['error'] and line['bytesProcessed'] == 0 and not line['limited'] for line in failed)
	assert queried(server, group, found['name'], 1, lambda line: 'error' not in line)
	dropped(server, group, found['name'])


# Limits.

def test_limits(server, group):
	found = make(server, group, storage(table(LIVE)))
	name = found['name']
	assert ok(server.get(base(group, name, '/limits'))) == []
	refused(server.get(base(group, name, '/limits/bytesProcessed.daily')), 404, 'LIMIT_NOT_FOUND')
	refused(server.delete(base(group, name, '/limits/bytesProcessed.daily')), 404, 'LIMIT_NOT_FOUND')
	one = limit(server, group, name, 'monthly', 1000 * MIB)
	assert (one['name'], one['value'], one['overrunPolicy'], one['tenantName']) == ('bytesProcessed.monthly', 1000 * MIB, 'BLOCK', name)
	assert one['currentUsage'] == 0 and one['maximumLimit'] == 1 << 53 and one['lastModifiedDate']
	assert limit(server, group, name, 'monthly', 2000 * MIB, 'BLOCK_AND_KILL')['overrunPolicy'] == 'BLOCK_AND_KILL'
	limit(server, group, name, 'query', 5 * MIB)
	assert sorted(l['name'] for l in ok(server.get(base(group, name, '/limits')))) == ['bytesProcessed.monthly', 'bytesProcessed.query']
	for wrong in (0, -1, (1 << 53) + 1):
		refused(server.patch(base(group, name, '/limits/bytesProcessed.query'), json={'value': wrong}), 400, 'LIMIT_OUT_OF_RANGE', 'value')
	refused(server.patch(base(group, name, '/limits/bytesProcessed.yearly'), json={'value': 1}), 404, 'LIMIT_NOT_FOUND')
	refused(server.patch(base(group, name, '/limits/bytesProcessed.query'), json={'value': 1, 'overrunPolicy': 'ASK'}), 400, 'VALIDATION_ERROR', 'overrunPolicy')
	assert server.delete(base(group, name, '/limits/bytesProcessed.query')).status_code == 204
	assert [l['name'] for l in ok(server.get(base(group, name, '/limits')))] == ['bytesProcessed.monthly']
	for kind in ('CONFIGURED', 'DELETED'):
		assert told(server, group, 'DATA_FEDERATION_QUERY_LIMIT_' + kind)
	dropped(server, group, name)


def test_a_limit_refuses(server, group):
	"""BLOCK: the query that goes past it runs to its end, the next ones are refused."""
	name = make(server, group, storage(table(FILES)))['name']
	limit(server, group, name, 'monthly', 10 * MIB, 'BLOCK')
	blocked = queried(server, group, name, 2, lambda line: line['limited'])
	assert all(line['bytesProcessed'] == 0 and 'was reached before' in line['error'] and 'the month' in line['error'] for line in blocked)
	assert used(server, group, name) == sum(line['bytesProcessed'] for line in lines(server, group, name, '?startDate=1199145600'))
	assert used(server, group, name) % (32 * MIB) == 0 and used(server, group, name) >= 32 * MIB
	# With a larger limit they go on.
	limit(server, group, name, 'monthly', 10000 * MIB, 'BLOCK')
	assert queried(server, group, name, 1, lambda line: not line['limited'])
	dropped(server, group, name)


def test_a_limit_ends_queries(server, group):
	"""BLOCK_AND_KILL: not a byte more than it says is counted. A query's own limit ends that query, and no other."""
	name = make(server, group, storage(table(FILES)))['name']
	limit(server, group, name, 'query', 5 * MIB)
	assert queried(server, group, name, 2, lambda line: line['limited'] and line['bytesProcessed'] == 5 * MIB)
	before = used(server, group, name, 'query')
	assert before <= 32 * MIB
	assert server.delete(base(group, name, '/limits/bytesProcessed.query')).status_code == 204
	counted = limit(server, group, name, 'monthly', 1 << 50)['currentUsage']
	limit(server, group, name, 'monthly', counted + 100 * MIB, 'BLOCK_AND_KILL')
	queried(server, group, name, 3, lambda line: line['limited'] and line['bytesProcessed'] == 0)
	assert used(server, group, name) == counted + 100 * MIB
	dropped(server, group, name)


def test_days_begin_anew(server, group):
	name = make(server, group, storage(table(FILES)))['name']
	limit(server, group, name, 'daily', 40 * MIB)
	queried(server, group, name, 1, lambda line: line['limited'])
	assert used(server, group, name, 'daily') == 64 * MIB
	server.advance(DAY - now(server) % DAY + 1)
	assert used(server, group, name, 'daily') == 0
	assert queried(server, group, name, 1, lambda line: not line['limited'])
	dropped(server, group, name)


def test_the_projects_limit(server, group):
	"""It counts all instances of the project together."""
	one, two = make(server, group, storage(table(FILES)))['name'], make(server, group, storage(table(FILES)))['name']
	ok(server.patch('/groups/%s/limits/dataFederation.bytesProcessed.daily' % group, json={'value': 33 * MIB}))
	ok(server.patch(base(group, one) + '?skipRoleValidation=true', json={}))
	ok(server.patch(base(group, two) + '?skipRoleValidation=true', json={}))
	for name in (one, two):
		stopped = queried(server, group, name, 1, lambda line: line['limited'])
		assert 'of the project' in stopped[0]['error']
	assert server.delete('/groups/%s/limits/dataFederation.bytesProcessed.daily' % group).status_code == 204
	for name in (one, two):
		dropped(server, group, name)


def test_a_limit_waits_for_nothing(server, group):
	"""It holds, also while the rest of what is wanted cannot be brought in force."""
	name = make(server, group, storage(table(LIVE)))['name']
	queried(server, group, name)
	server.control('engine', {'fail': 'federation', 'times': 1000})
	limit(server, group, name, 'query', 1)
	assert queried(server, group, name, 1, lambda line: line['limited'] and line['bytesProcessed'] == 1)
	assert 'the test control' in server.get(base(group, name)).headers['X-Steward-Reason']
	server.control('engine', {})
	pass_time(server, lambda: 'X-Steward-Reason' not in server.get(base(group, name)).headers)
	dropped(server, group, name)


# The log, and who asks.

def test_query_log(server, group):
	name = make(server, group, storage(table(LIVE)))['name']
	line = queried(server, group, name, 2)[0]
	assert line['username'] == 'reader' and line['database'] == 'all' and line['bytesProcessed'] == MIB and line['rows'] and line['durationMillis']
	assert '"orders"' in line['statement'] and line['limited'] is False and 'error' not in line and line['queryId'] and line['date']
	end = now(server)
	assert len(lines(server, group, name)) >= 2
	assert lines(server, group, name, '?startDate=%d&endDate=%d' % (end - 30 * DAY, end - 29 * DAY)) == []
	assert lines(server, group, name, '?endDate=%d' % (end + 1))
	refused(server.get(base(group, name, '/queryLogs.gz?startDate=%d&endDate=%d' % (end, end - 10))), 400, 'VALIDATION_ERROR', 'startDate')
	refused(server.get(base(group, name, '/queryLogs.gz?startDate=12')), 400, 'VALIDATION_ERROR', 'startDate')
	dropped(server, group, name)


def test_scopes(server, group):
	"""A user of other clusters or instances alone does not get in; one that comes later does."""
	name = make(server, group, storage(table(LIVE)))['name']
	users = '/groups/%s/databaseUsers' % group
	ok(server.post(users, json=user(group, 'here', scopes=[{'name': name, 'type': 'DATA_LAKE'}])), 201)
	ok(server.post(users, json=user(group, 'there', scopes=[{'name': name, 'type': 'CLUSTER'}, {'name': 'other', 'type': 'DATA_LAKE'}])), 201)
	jobs_done(server)
	queried(server, group, name, 3, lambda line: line['username'] == 'here')
	assert {line['username'] for line in lines(server, group, name)} == {'reader', 'here'}
	for one in ('here', 'there'):
		assert server.delete('%s/admin/%s' % (users, one)).status_code in (200, 204)
	jobs_done(server)
	assert {line['username'] for line in queried(server, group, name, 3)} == {'reader'}
	dropped(server, group, name)


def test_a_failure_is_told(server, group):
	server.control('engine', {'fail': 'federation', 'times': 3})
	name = unique('fed')
	ok(server.post(base(group), json={'name': name}))
	why = pass_time(server, lambda: server.get(base(group, name)).headers.get('X-Steward-Reason'))
	assert 'the test control' in why
	reached(server, group, name)
	assert 'X-Steward-Reason' not in server.get(base(group, name)).headers
	server.control('engine', {})
	dropped(server, group, name)


def test_most(server):
	group = server.project()['id']
	for n in range(25):
		ok(server.post(base(group), json={'name': 'fed%d' % n}))
	refused(server.post(base(group), json={'name': 'more'}), 400, 'TOO_MANY_DATA_FEDERATION_TENANTS')
	# They go with their project.
	assert server.delete('/groups/%s' % group).status_code in (200, 204)
	refused(server.get(base(group)), 404)


def test_a_new_start(start_server):
	"""The instances of before are brought back, with what was wanted of them last, before anybody asks."""
	server = start_server(clock='virtual')
	server.control('engine', {'seconds': 0})
	group = server.project()['id']
	create(server, group, 'federated')
	ok(server.post('/groups/%s/databaseUsers' % group, json=user(group, 'reader')), 201)
	name = make(server, group, storage(table(LIVE)))['name']
	queried(server, group, name)
	server.stop()
	server = start_server(clock='virtual', data_dir=server.data_dir)
	assert ok(server.get(base(group, name)))['state'] == 'ACTIVE'
	jobs_done(server)
	assert queried(server, group, name)[0]['username'] == 'reader'
	limit(server, group, name, 'query', MIB // 2)
	assert queried(server, group, name, 1, lambda line: line['limited'] and line['bytesProcessed'] == MIB // 2)
	dropped(server, group, name)


# Private endpoints.

def endpoints(group, name=None):
	return '/groups/%s/privateNetworkSettings/endpointIds%s' % (group, '/' + name if name else '')


def test_private_endpoints(server, group):
	fed = make(server, group)['name']
	one, two = 'vpce-3bf78b0ddee411ba1', 'vpce-3bf78b0ddee411ba2'
	page = ok(server.post(endpoints(group), json={'endpointId': one, 'comment': 'first'}), 201)
	entry, = page['results']
	assert entry == {'endpointId': one, 'comment': 'first', 'provider': 'AWS', 'type': 'DATA_LAKE', 'status': 'PENDING'}
	assert page['totalCount'] == 1
	assert ok(server.get(base(group, fed)))['privateEndpointHostnames'] == []
	ok(server.post(endpoints(group), json={'endpointId': two, 'region': 'US_EAST_1', 'customerEndpointDNSName': 'x.vpce.example', 'customerEndpointIPAddress': '10.1.2.3'}), 201)
	assert pass_time(server, lambda: ok(server.get(endpoints(group, one)))['status'] == 'OK')
	names = pass_time(server, lambda: (lambda l: len(l) == 2 and l)(ok(server.get(base(group, fed)))['privateEndpointHostnames']))
	assert {n['privateEndpoint'] for n in names} == {one, two} and len({n['hostname'] for n in names}) == 2
	# The same again changes what it says.
	page = ok(server.post(endpoints(group), json={'endpointId': one, 'comment': 'second'}), 201)
	assert [e['comment'] for e in page['results'] if e['endpointId'] == one] == ['second'] and page['totalCount'] == 2
	assert ok(server.get(endpoints(group) + '?itemsPerPage=1'))['totalCount'] == 2
	refused(server.get(endpoints(group) + '?itemsPerPage=0'), 400, None, 'itemsPerPage')
	assert server.delete(endpoints(group, one)).status_code == 204
	assert pass_time(server, lambda: server.get(endpoints(group, one)).status_code == 404)
	assert [n['privateEndpoint'] for n in ok(server.get(base(group, fed)))['privateEndpointHostnames']] == [two]
	refused(server.get(endpoints(group, one)), 404, 'DATA_FEDERATION_PRIVATE_ENDPOINT_NOT_FOUND')
	refused(server.delete(endpoints(group, one)), 404, 'DATA_FEDERATION_PRIVATE_ENDPOINT_NOT_FOUND')
	assert server.delete(endpoints(group, two)).status_code == 204
	for kind in ('ADDED', 'UPDATED', 'REMOVED'):
		assert told(server, group, 'PRIVATE_NETWORK_ENDPOINT_ENTRY_' + kind), kind
	dropped(server, group, fed)


@pytest.mark.parametrize('body,field', [
	({}, 'endpointId'), ({'endpointId': 'vpce-1'}, 'endpointId'), ({'endpointId': 'vpce-3bf78b0ddee411bAA'}, 'endpointId'),
	({'comment': 'x' * 1001}, 'comment'), ({'status': 'OK'}, 'status'), ({'errorMessage': 'x'}, 'errorMessage'), ({'provider': 'GCP'}, 'provider'),
	({'customerEndpointIPAddress': '300.1.1.1'}, 'customerEndpointIPAddress'),
])
def test_private_endpoint_refusals(server, group, body, field):
	whole = body if field == 'endpointId' else {'endpointId': 'vpce-3bf78b0ddee411ba9', **body}
	refused(server.post(endpoints(group), json=whole), 400, 'VALIDATION_ERROR', field)


# Roles at providers.

@pytest.fixture(scope='module')
def cloud():
	c = clouds.Clouds()
	yield c
	c.stop()
	assert not c.bad, c.bad


@pytest.fixture(scope='module')
def roled(cloud, tmp_path_factory):
	stores = s3_server.Running('--token', 'short-lived-session==')
	s = client.Server('--export-buckets', 'roles', '--s3-endpoint', stores.endpoint, *cloud.options(tmp_path_factory.mktemp('keys')),
			  record=client.EXCHANGES)
	s.versions = versions.Named(derive.Api())
	s.stores = stores
	yield s
	conftest.end(s)
	stores.stop()


def test_roles(roled, cloud):
	group = roled.project()['id']
	role = access.assumable(roled, cloud, group)
	bucket = unique('bucket')
	config = {'cloudProviderConfig': {'aws': {'roleId': role['roleId'], 'testS3Bucket': bucket}}}
	private = {'storage': storage(table(FILES), stores=[{**PUBLIC, 'public': False, 'bucket': bucket}])}
	refused(roled.post(base(group), json={'name': 'fed', **private}), 400, 'VALIDATION_ERROR', 'storage.stores[0].public')
	why = refused(roled.post(base(group), json={'name': 'fed', **private, **config}), 400, 'DATA_FEDERATION_ROLE_VALIDATION_FAILED',
		      'cloudProviderConfig.aws.testS3Bucket')
	assert 'skipRoleValidation' in why['detail']
	made = ok(roled.post(base(group) + '?skipRoleValidation=true', json={'name': 'fed', **private, **config}))
	shown = made['cloudProviderConfig']['aws']
	assert shown == {'roleId': role['roleId'], 'iamAssumedRoleARN': role['iamAssumedRoleArn'], 'iamUserARN': clouds.ARN,
			 'externalId': role['svcAssumedRoleExternalId']}
	uses = ok(roled.get(access.access(group, role['roleId'])))['featureUsages']
	assert [u['featureType'] for u in uses] == ['SVC_DATA_LAKE']
	refused(access.removed(roled, group, role), 409)
	unready = access.make(roled, group, 'AWS')
	refused(roled.patch(base(group, 'fed') + '?skipRoleValidation=true', json={'cloudProviderConfig': {'aws': {'roleId': unready['roleId'], 'testS3Bucket': bucket}}}),
		400, 'VALIDATION_ERROR', 'cloudProviderConfig.aws.roleId')
	dropped(roled, group, 'fed')
	assert access.removed(roled, group, role).status_code == 204


def test_roles_elsewhere(roled, cloud):
	"""Azure and Google: their identities are asked for, and shown."""
	group = roled.project()['id']
	cloud.principals[access.TENANT] = access.PRINCIPAL
	azure = access.make(roled, group, 'AZURE', tenantId=access.TENANT, servicePrincipalId=access.PRINCIPAL, svcAzureAppId=clouds.APP)
	ok(access.authorize(roled, group, azure))
	google = access.settled(roled, group, access.make(roled, group, 'GCP'))
	ok(access.authorize(roled, group, google))
	config = {'azure': {'roleId': azure['_id']}, 'gcp': {'roleId': google['roleId']}}
	before = len(cloud.calls)
	made = ok(roled.post(base(group), json={'name': 'fed', 'cloudProviderConfig': config}))
	assert len(cloud.calls) > before
	assert made['cloudProviderConfig'] == {
		'azure': {'roleId': azure['_id'], 'svcAppId': clouds.APP, 'servicePrincipalId': access.PRINCIPAL, 'tenantId': access.TENANT},
		'gcp': {'roleId': google['roleId'], 'gcpServiceAccount': google['gcpServiceAccountForSvc']}}
	cloud.principals[access.TENANT] = access.OTHER
	refused(roled.patch(base(group, 'fed') + '?skipRoleValidation=false', json={'cloudProviderConfig': config}), 400,
		'DATA_FEDERATION_ROLE_VALIDATION_FAILED', 'cloudProviderConfig.azure.roleId')
	refused(roled.post(base(group), json={'name': 'wrong', 'cloudProviderConfig': {'azure': {'roleId': google['roleId']}}}), 400,
		'VALIDATION_ERROR', 'cloudProviderConfig.azure.roleId')
	dropped(roled, group, 'fed')
	cloud.principals[access.TENANT] = access.PRINCIPAL
	for role in (azure, google):
		assert access.removed(roled, group, role).status_code == 204
