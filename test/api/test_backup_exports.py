"""Export buckets, exports and automatic exports: what is written to the bucket, what is refused, and who is kept out."""
import gzip, hashlib, json, os, shutil

import pytest

from client import NO_ID, jobs_done, links, ok, pass_time, refused, unique
from test_backup_schedule import DAY, item, policy, schedule, settle
from test_backups import create, group, ids, path, remove, take, types  # noqa: F401 (group is a fixture)

OLDER = {'Accept': 'application/vnd.svc.2023-01-01+json'}
ROLE = '5f0000000000000000000001'


def buckets(group, bucket=''):
	return '/groups/%s/backup/exportBuckets%s' % (group, bucket and '/' + bucket)


def wanted(name=None, provider='AWS', **more):
	own = {'AWS': {'iamRoleId': ROLE}, 'GCP': {'roleId': ROLE},
	       'AZURE': {'roleId': ROLE, 'serviceUrl': 'https://example.blob.core.windows.net/x'}}[provider]
	return {'bucketName': name or unique('bucket-').lower(), 'cloudProvider': provider, **own, **more}


def bucket(server, group, name=None, **more):
	return ok(server.post(buckets(group), json=wanted(name, **more)))


def exports(group, name, export=''):
	return path(group, name, '/exports%s' % (export and '/' + export))


def whole(answer):
	"""With the prefix, which a header has."""
	return {**ok(answer), 'prefix': answer.headers['X-Steward-Export-Prefix']}


def begin(server, group, name, snapshot, to, **more):
	return whole(server.post(exports(group, name), json={'snapshotId': snapshot, 'exportBucketId': to, **more}))


def over(server, group, name, export):
	def look():
		doc = whole(server.get(exports(group, name, export)))
		return 'finishedAt' in doc and doc
	return pass_time(server, look)


def month(server, group, name):
	"""Days pass, each with all that it brings, until there is an automatic export: the first, whatever day the clock shows."""
	for _ in range(35):
		server.advance(DAY)
		jobs_done(server)
		if ok(server.get(exports(group, name)))['results']:
			return
	pass_time(server, lambda: ok(server.get(exports(group, name)))['results'])


def events(server, group):
	return [t for t in types(server, group) if 'EXPORT' in t]


# Buckets

def test_buckets(server, group):
	made = {p: bucket(server, group, provider=p) for p in ('AWS', 'AZURE', 'GCP')}
	for provider, doc in made.items():
		assert doc['cloudProvider'] == provider and (server.exports / doc['bucketName']).is_dir()
		assert {k: v for k, v in ok(server.get(buckets(group, doc['_id']))).items() if k != 'links'} == \
			{k: v for k, v in doc.items() if k != 'links'}
		assert links(doc)['self'].endswith(buckets(group, doc['_id']))
	assert all(set(doc) == {'_id', 'bucketName', 'cloudProvider', 'links'} for doc in made.values()), 'the form that all have'
	assert [b['_id'] for b in ok(server.get(buckets(group)))['results']] == [d['_id'] for d in made.values()]
	assert not list((server.exports / made['AWS']['bucketName']).rglob('access-*')), 'the probe is taken away'
	changed = ok(server.patch(buckets(group, made['AWS']['_id']), json={'requirePrivateNetworking': True}))
	assert changed['requirePrivateNetworking'] is True and changed['iamRoleId'] == ROLE
	refused(server.patch(buckets(group, made['GCP']['_id']), json={'requirePrivateNetworking': True}), 400, None, 'requirePrivateNetworking')
	for doc in made.values():
		assert server.delete(buckets(group, doc['_id'])).status_code == 204
		refused(server.get(buckets(group, doc['_id'])), 404)
	assert (server.exports / made['AWS']['bucketName']).is_dir(), 'what is in a bucket stays'


def test_the_older_version_knows_aws_only(older_server):
	server, group = older_server, older_server.project()['id']
	aws, gcp = bucket(server, group), bucket(server, group, provider='GCP')
	own = ok(server.post(buckets(group), json=wanted(), headers=OLDER))
	assert own['iamRoleId'] == ROLE
	assert [b['_id'] for b in ok(server.get(buckets(group), headers=OLDER))['results']] == [aws['_id'], own['_id']]
	assert ok(server.get(buckets(group, aws['_id']), headers=OLDER))['_id'] == aws['_id']
	refused(server.get(buckets(group, gcp['_id']), headers=OLDER), 404)
	refused(server.post(buckets(group), json=wanted(provider='GCP'), headers=OLDER), 400)


@pytest.mark.parametrize('name', ['../out', '..', 'a/b', '/etc', 'Upper', '.hidden', 'ends.', 'a b', 'sp\u00e4t', 'x' * 64, 'ab'])
def test_names_of_buckets(server, group, name):
	refused(server.post(buckets(group), json=wanted(name)), 400, None, 'bucketName')
	assert ok(server.get(buckets(group)))['results'] == []


def test_refusals_of_buckets(server, group):
	doc = bucket(server, group)
	refused(server.post(buckets(group), json=wanted(doc['bucketName'])), 409, 'DUPLICATE_EXPORT_BUCKET', doc['bucketName'])
	refused(server.post(buckets(group), json={'cloudProvider': 'AZURE', 'roleId': ROLE, 'serviceUrl': 'https://example.blob.core.windows.net/x'}),
		400, None, 'bucketName')
	blocked = unique('blocked-').lower()
	(server.exports / blocked).write_text('no directory')
	refused(server.post(buckets(group), json=wanted(blocked)), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')
	other = server.project()['id']
	refused(server.get(buckets(other, doc['_id'])), 404)
	refused(server.delete(buckets(other, doc['_id'])), 404)
	assert bucket(server, other, doc['bucketName'])['_id'] != doc['_id'], 'projects of one organization may share one'


def test_without_a_place_for_buckets(start_server):
	server = start_server()
	doc = refused(server.post(buckets(server.group), json=wanted()), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')
	assert 'operator' in doc['detail']


def test_other_tenants(server, group):
	"""Neither a bucket's name nor its id lets another organization write to it."""
	org, = server.seed({'name': unique('tenant'), 'projects': ['theirs'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	stranger, theirs = server.api_for(org['principals'][0]), org['projects'][0]['id']
	doc = bucket(server, group)
	refused(stranger.post(buckets(theirs), json=wanted(doc['bucketName'])), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')
	# Nor is it touched for them: whether it could be written to is not looked at.
	place = server.exports / doc['bucketName']
	shutil.rmtree(place)
	place.write_text('no directory')
	answer = refused(stranger.post(buckets(theirs), json=wanted(doc['bucketName'])), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')
	assert 'another organization' in answer['detail']
	place.unlink()
	assert server.delete(buckets(group, doc['_id'])).status_code == 204
	refused(stranger.post(buckets(theirs), json=wanted(doc['bucketName'])), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')
	again = bucket(server, group, doc['bucketName'])
	for call in (stranger.get, stranger.delete):
		refused(call(buckets(group, again['_id'])), 401)
	name = create(stranger, theirs)
	snapshot = take(stranger, theirs, name)['id']
	refused(stranger.post(exports(theirs, name), json={'snapshotId': snapshot, 'exportBucketId': again['_id']}), 404,
		'EXPORT_BUCKET_NOT_FOUND', again['_id'])
	mine = create(server, group)
	refused(server.post(exports(group, mine), json={'snapshotId': snapshot, 'exportBucketId': again['_id']}), 404, 'SNAPSHOT_NOT_FOUND')
	job = begin(server, group, mine, take(server, group, mine)['id'], again['_id'])
	refused(stranger.get(exports(group, mine, job['id'])), 401)
	refused(stranger.get(exports(theirs, name, job['id'])), 404)
	over(server, group, mine, job['id'])


# Exports

def objects(server, bucket, prefix):
	root = server.exports / bucket['bucketName'] / prefix.lstrip('/')
	return {str(f.relative_to(root)): f.read_bytes() for f in root.rglob('*') if f.is_file()}


def test_an_export(server, group):
	name, to = create(server, group), bucket(server, group)
	snapshot = take(server, group, name)
	labels = [{'key': 'why', 'value': 'audit'}, {'key': 'who', 'value': 'ada'}]
	server.control('engine', {'seconds': 30})
	doc = begin(server, group, name, snapshot['id'], to['_id'], customData=labels)
	assert doc['state'] == 'Queued' and doc['exportBucketId'] == to['_id'] and doc['snapshotId'] == snapshot['id']
	assert doc['customData'] == labels and doc['exportStatus'] == {'exportedCollections': 0, 'totalCollections': 0}
	seen = []

	def look():
		now = whole(server.get(exports(group, name, doc['id'])))
		seen.append(now['state'])
		return 'finishedAt' in now and now
	done = pass_time(server, look, step=1)
	assert seen == sorted(seen, key=['Queued', 'InProgress', 'Successful'].index) and 'InProgress' in seen
	assert done['exportStatus'] == {'exportedCollections': 2, 'totalCollections': 2} and 'stateReason' not in done
	parts = done['prefix'].split('/')
	assert parts[:2] == ['', 'exported_snapshots'] and parts[4] == name and parts[5] == snapshot['createdAt'][:16].replace(':', '')
	assert len(parts) == 7 and int(parts[6])
	found = objects(server, to, done['prefix'])
	assert set(found) == {'.complete', 'manifest.json', 'metadata.json', 'postgres/public.customers.0.json.gz',
		'postgres/public.orders.0.json.gz'}
	assert found['.complete'].decode() == hashlib.sha256(found['manifest.json']).hexdigest()
	manifest, metadata = json.loads(found['manifest.json']), json.loads(found['metadata.json'])
	assert metadata['customData'] == labels and metadata['exportId'] == doc['id']
	assert manifest['snapshotId'] == snapshot['id'] and manifest['dbVersion'] == snapshot['dbVersion']
	for table in manifest['tables']:
		stored = found[table['object']]
		rows = gzip.decompress(stored)
		assert hashlib.sha256(stored).hexdigest() == table['sha256'] and len(stored) == table['storedBytes'] and len(rows) == table['bytes']
		assert len([json.loads(row) for row in rows.splitlines()]) == table['rows'] == 2
	assert {t['table'] for t in manifest['tables']} == {'customers', 'orders'}
	assert ids(server, exports(group, name)) == [doc['id']] and events(server, group) == ['CPS_EXPORT_SUCCESSFUL']
	again = over(server, group, name, begin(server, group, name, snapshot['id'], to['_id'])['id'])
	assert again['prefix'] != done['prefix'] and again['state'] == 'Successful'


def test_of_a_sharded_cluster(server, group):
	name, to = create(server, group, shards=2), bucket(server, group)
	done = over(server, group, name, begin(server, group, name, take(server, group, name)['id'], to['_id'])['id'])
	assert [c['replicaSetName'][-8:] for c in done['components']] == ['-shard-0', '-shard-1']


def test_refusals(server, group):
	name, to = create(server, group), bucket(server, group)
	snapshot = take(server, group, name)['id']
	where, body = exports(group, name), {'snapshotId': snapshot, 'exportBucketId': to['_id']}
	refused(server.post(where, json={**body, 'snapshotId': NO_ID}), 404, 'SNAPSHOT_NOT_FOUND', NO_ID)
	refused(server.post(where, json={**body, 'exportBucketId': NO_ID}), 404, 'EXPORT_BUCKET_NOT_FOUND', NO_ID)
	refused(server.post(where, json={'snapshotId': snapshot}), 400, None, 'exportBucketId')
	refused(server.post(where, json={**body, 'customData': [{'value': 'x'}]}), 400, None, 'customData[0].key')
	refused(server.post(where, json={**body, 'customData': [{'key': 'a'}, {'key': 'a'}]}), 400, None, 'customData[1].key')
	refused(server.post(exports(group, 'nothing'), json=body), 404)
	refused(server.get(exports(group, name, NO_ID)), 404)
	refused(server.get(exports(group, 'nothing-of-that-name')), 404)
	refused(server.get('/groups/%s/backup/exportBuckets' % NO_ID), 404)
	server.control('engine', {'seconds': 3000})
	young = take(server, group, name, wait=False)['id']
	refused(server.post(where, json={**body, 'snapshotId': young}), 409, 'SNAPSHOT_NOT_COMPLETE', young)
	job = begin(server, group, name, snapshot, to['_id'])
	refused(server.post(where, json=body), 409, 'EXPORT_IN_PROGRESS', job['id'])
	refused(server.delete(buckets(group, to['_id'])), 409, 'EXPORT_BUCKET_IN_USE', to['bucketName'])
	refused(server.delete(path(group, name, '/snapshots/' + snapshot)), 409, 'SNAPSHOT_IN_USE', snapshot)
	server.control('engine', {'seconds': 1})
	server.advance(4000)
	over(server, group, name, job['id'])
	assert server.delete(path(group, name, '/snapshots/' + snapshot)).status_code == 204
	assert server.delete(buckets(group, to['_id'])).status_code == 204


def test_a_bucket_that_is_lost(server, group):
	name, to = create(server, group), bucket(server, group)
	snapshot = take(server, group, name)['id']
	place = server.exports / to['bucketName']
	shutil.rmtree(place)
	place.write_text('in the way')
	job = begin(server, group, name, snapshot, to['_id'])
	pass_time(server, lambda: 'export %s waits for its bucket' % job['id'] in server.stderr)
	server.advance(DAY - 600)  # it is waited for for a day
	jobs_done(server)
	assert ok(server.get(exports(group, name, job['id'])))['state'] == 'InProgress'
	server.advance(600)
	done = over(server, group, name, job['id'])
	assert done['state'] == 'Failed' and done['stateReason']['errorCode'] == 'EXPORT_FAILED' and done['stateReason']['message']
	assert events(server, group) == ['CPS_EXPORT_FAILED']
	os.unlink(place)
	assert over(server, group, name, begin(server, group, name, snapshot, to['_id'])['id'])['state'] == 'Successful'


def test_names_in_a_prefix(server):
	"""Whatever a project is called, its exports stay in their own part of the bucket."""
	group = server.project('..(\u00e9)@' + unique())['id']
	name, to = create(server, group), bucket(server, group)
	done = over(server, group, name, begin(server, group, name, take(server, group, name)['id'], to['_id'])['id'])
	assert done['state'] == 'Successful' and len(done['prefix'].split('/')) == 7 and '..' not in done['prefix']
	assert objects(server, to, done['prefix'])['.complete']


def test_private_networking(server, group):
	name, to = create(server, group), bucket(server, group, requirePrivateNetworking=True)
	body = {'snapshotId': take(server, group, name)['id'], 'exportBucketId': to['_id']}
	refused(server.post(exports(group, name), json=body), 409, 'PRIVATE_ENDPOINT_REQUIRED', to['bucketName'])
	where = '/groups/%s/backup/AWS/privateEndpoints' % group
	ok(server.post(where, json={'regionName': 'US_EAST_1'}), 201)
	pass_time(server, lambda: ok(server.get(where))['results'][0]['status'] == 'ACTIVE')
	over(server, group, name, ok(server.post(exports(group, name), json=body))['id'])


def test_automatic_without_a_private_endpoint(server, group):
	name, to = create(server, group), bucket(server, group, requirePrivateNetworking=True)
	ok(server.patch(schedule(group, name), json=policy(item('daily'), item('monthly', 40, 'months', 1), autoExportEnabled=True,
		export={'exportBucketId': to['_id'], 'frequencyType': 'monthly'})))
	month(server, group, name)
	done = over(server, group, name, ok(server.get(exports(group, name)))['results'][0]['id'])
	assert done['state'] == 'Failed' and 'private endpoint' in done['stateReason']['message']
	assert not objects(server, to, done['prefix'])
	assert 'CPS_AUTO_EXPORT_FAILED' in events(server, group)


def test_automatic(server, group):
	name, to = create(server, group), bucket(server, group)
	doc = ok(server.patch(schedule(group, name), json=policy(item('daily'), item('monthly', 40, 'months', 1), autoExportEnabled=True,
		export={'exportBucketId': to['_id'], 'frequencyType': 'monthly'})))
	assert doc['export'] == {'exportBucketId': to['_id'], 'frequencyType': 'monthly'}
	refused(server.delete(buckets(group, to['_id'])), 409, 'EXPORT_BUCKET_IN_USE', to['bucketName'])
	month(server, group, name)
	job, = ok(server.get(exports(group, name)))['results']
	done = over(server, group, name, job['id'])
	assert done['state'] == 'Successful' and done['prefix'].split('/')[2:4] == [server.org, group], 'ids, unless the schedule asks for names'
	assert objects(server, to, done['prefix'])['.complete']
	taken = ok(server.get(path(group, name, '/snapshots/' + done['snapshotId'])))
	assert taken['frequencyType'] == 'monthly'
	ok(server.patch(schedule(group, name), json=policy(item('daily'), autoExportEnabled=False)))
	assert server.delete(buckets(group, to['_id'])).status_code == 204
	assert 'export' not in ok(server.patch(schedule(group, name), json=policy(item('daily', value=9))))


def test_exports_outlive_their_cluster(server, group):
	name, to = create(server, group), bucket(server, group)
	job = begin(server, group, name, take(server, group, name)['id'], to['_id'])
	over(server, group, name, job['id'])
	remove(server, group, name, '?retainBackups=true')
	assert ids(server, exports(group, name)) == [job['id']]


def test_after_a_crash(start_server):
	server = start_server(exports=True)
	group = server.project()['id']
	name, to = create(server, group), bucket(server, group)
	snapshot = take(server, group, name)['id']
	server.control('engine', {'seconds': 300})
	job = begin(server, group, name, snapshot, to['_id'])
	pass_time(server, lambda: ok(server.get(exports(group, name, job['id'])))['state'] == 'InProgress')
	server.kill()
	again = start_server('--export-buckets', server.exports, data_dir=server.data_dir)
	again.control('engine', {'seconds': 1})
	done = over(again, group, name, job['id'])
	assert done['state'] == 'Successful' and done['prefix'] == job['prefix']
	found = {str(f.relative_to(server.exports / to['bucketName'])) for f in (server.exports / to['bucketName']).rglob('.complete')}
	assert found == {done['prefix'].lstrip('/') + '/.complete'}
