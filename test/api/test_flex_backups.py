"""Backups of flex clusters on the simulated engine: a snapshot each day by itself, restores, downloads."""
import io, tarfile

import pytest

from client import links, ok, pass_time, refused, unique
from test_backups import DAY, NEVER, create as dedicated, path as of_dedicated, take, types
from test_flex import create, flex, group, settle  # noqa: F401 (group is a fixture)


def path(group, name, below='/snapshots'):
	return flex(group, name) + '/backup' + below


def daily(server, group, name, count=1):
	"""Lets days pass until there are so many snapshots; the list of them."""
	for _ in range(count):
		before = {s['id'] for s in ok(server.get(path(group, name)))['results']}
		server.advance(DAY)

		def over():
			found = ok(server.get(path(group, name)))['results']
			return found and found[-1]['id'] not in before and found[-1]['status'] == 'COMPLETED' and found
		found = pass_time(server, over)
	return found


def finished(server, group, name, job):
	def over():
		doc = ok(server.get(path(group, name, '/restoreJobs/' + job)))
		return doc['status'] in ('COMPLETED', 'FAILED') and doc
	return pass_time(server, over)


def test_daily_snapshots(server, group):
	name = create(server, group)['name']
	assert ok(server.get(path(group, name)))['results'] == []
	one, = daily(server, group, name)
	assert one['scheduledTime'] <= one['startTime'] <= one['finishTime'] < one['expiration'] and one['dbVersion'].count('.') == 2
	assert links(one)['self'].endswith(path(group, name, '/snapshots/' + one['id']))
	alone = ok(server.get(path(group, name, '/snapshots/' + one['id'])))
	assert {k: v for k, v in alone.items() if k != 'links'} == {k: v for k, v in one.items() if k != 'links'}
	daily(server, group, name, 9)

	def none_is_over():
		"""The list, when nothing in it has expired: until then there may be one less at any moment."""
		found, at = ok(server.get(path(group, name)))['results'], server.control('clock', method='GET')['now']
		return all(s['expiration'] > at for s in found) and found
	found = pass_time(server, none_is_over)
	assert one['id'] not in [s['id'] for s in found]
	assert 7 <= len(found) <= 9, 'kept for eight days'
	page = ok(server.get(path(group, name) + '?itemsPerPage=2&pageNum=2'))
	assert [s['id'] for s in page['results']] == [s['id'] for s in found[2:4]] and page['totalCount'] == len(found)
	refused(server.get(path(group, name, '/snapshots/' + NEVER)), 404)
	refused(server.get(path(group, 'nothing')), 404)
	refused(server.get(path(group, 'nothing', '/restoreJobs')), 404)


def test_states(server, group):
	name = create(server, group)['name']
	server.control('engine', {'seconds': 600})
	server.advance(DAY)
	seen = []

	def over():
		found = ok(server.get(path(group, name)))['results']
		seen.extend(s['status'] for s in found)
		return found and found[0]['status'] == 'COMPLETED'
	pass_time(server, over, step=10)
	assert 'RUNNING' in seen and set(seen) <= {'QUEUED', 'RUNNING', 'COMPLETED'}
	server.control('engine', {'fail': 'snapshot'})
	server.advance(DAY)
	pass_time(server, lambda: ok(server.get(path(group, name)))['results'][-1]['status'] == 'FAILED', step=60)
	failed = ok(server.get(path(group, name)))['results'][-1]
	assert 'finishTime' not in failed
	server.control('engine', {})
	refused(server.post(path(group, name, '/restoreJobs'), json={'snapshotId': failed['id'], 'targetDeploymentItemName': name}), 409,
		'SNAPSHOT_NOT_COMPLETE', failed['id'])


def test_restore(server, group):
	name, other = create(server, group)['name'], create(server, group)['name']
	one, = daily(server, group, name)
	server.control('engine', {'seconds': 30})
	job = ok(server.post(path(group, name, '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': name}))
	assert job['deliveryType'] == 'RESTORE' and job['status'] in ('PENDING', 'RUNNING') and job['snapshotId'] == one['id']
	assert job['instanceName'] == job['targetDeploymentItemName'] == name and job['projectId'] == job['targetProjectId'] == group
	assert job['snapshotFinishedDate'] == one['finishTime'] and 'restoreFinishedDate' not in job and 'snapshotUrl' not in job
	assert ok(server.get(flex(group, name)))['stateName'] == 'UPDATING'
	refused(server.post(path(group, name, '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': name}), 409,
		'CLUSTER_RESTORE_IN_PROGRESS', name)
	done = finished(server, group, name, job['id'])
	assert done['status'] == 'COMPLETED' and done['restoreFinishedDate'] > done['restoreScheduledDate']
	settle(server, flex(group, name))
	server.control('engine', {})
	second = ok(server.post(path(group, name, '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': other}))
	assert finished(server, group, name, second['id'])['status'] == 'COMPLETED'
	assert [j['id'] for j in ok(server.get(path(group, name, '/restoreJobs')))['results']] == [job['id'], second['id']]
	assert ok(server.get(path(group, other, '/restoreJobs')))['results'] == []
	settle(server, flex(group, other))
	server.control('engine', {'fail': 'restore'})
	third = ok(server.post(path(group, name, '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': other}))
	assert pass_time(server, lambda: ok(server.get(path(group, name, '/restoreJobs/' + third['id'])))['status'] == 'FAILED', step=60)
	server.control('engine', {})
	assert 'TENANT_RESTORE_REQUESTED_AUDIT' in types(server, group)


def test_restore_into_another_kind(server, group):
	name, large = create(server, group)['name'], dedicated(server, group)
	one, = daily(server, group, name)
	job = ok(server.post(path(group, name, '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': large}))
	assert finished(server, group, name, job['id'])['status'] == 'COMPLETED'


def test_refusals(server, group):
	name = create(server, group)['name']
	one, = daily(server, group, name)
	wide = dedicated(server, group, shards=2)
	where = path(group, name, '/restoreJobs')
	refused(server.post(where, json={'snapshotId': NEVER, 'targetDeploymentItemName': name}), 404, 'SNAPSHOT_NOT_FOUND', NEVER)
	refused(server.post(where, json={'snapshotId': one['id'], 'targetDeploymentItemName': 'nothing'}), 404, 'CLUSTER_NOT_FOUND', 'nothing')
	refused(server.post(where, json={'snapshotId': one['id'], 'targetDeploymentItemName': wide}), 400, None, 'targetDeploymentItemName')
	refused(server.post(where, json={'targetDeploymentItemName': name}), 400, None, 'snapshotId')
	refused(server.post(where, json={'snapshotId': one['id']}), 400, None, 'targetDeploymentItemName')
	refused(server.post(where, json={'snapshotId': one['id'], 'targetDeploymentItemName': name, 'targetProjectId': NEVER}), 404,
		'GROUP_NOT_FOUND', NEVER)
	refused(server.post(path(group, 'nothing', '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': name}), 404)
	refused(server.post(path(group, name, '/download'), json={'snapshotId': NEVER}), 404, 'SNAPSHOT_NOT_FOUND', NEVER)
	refused(server.get(where + '/' + NEVER), 404)


def test_download(server, group):
	name = create(server, group)['name']
	one, = daily(server, group, name)
	job = ok(server.post(path(group, name, '/download'), json={'snapshotId': one['id']}))
	assert job['deliveryType'] == 'DOWNLOAD' and job['status'] == 'COMPLETED' and 'targetProjectId' not in job
	r = server.anonymous.get(job['snapshotUrl'])
	assert r.status_code == 200
	with tarfile.open(fileobj=io.BytesIO(r.content)) as tar:
		assert one['id'] in tar.extractfile('backup_label').read().decode()
	assert ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))['snapshotUrl'] == job['snapshotUrl']
	server.advance(4 * 3600 + 1)
	refused(server.anonymous.get(job['snapshotUrl']), 404, 'DOWNLOAD_EXPIRED')
	later = ok(server.get(path(group, name, '/restoreJobs/' + job['id'])))
	assert 'snapshotUrl' not in later and later['status'] == 'COMPLETED'
	assert 'TENANT_SNAPSHOT_DOWNLOAD_REQUESTED_AUDIT' in types(server, group)


def test_a_link_holds_for_who_may_only_export(server):
	project = unique('d')
	org = server.seed({'name': unique('o'), 'projects': [project], 'principals': [
		{'type': 'apiKey', 'roles': ['ORG_OWNER']},
		{'type': 'apiKey', 'projectRoles': [{'project': project, 'roles': ['GROUP_BACKUP_EXPORT_OPERATOR']}]},
		{'type': 'apiKey', 'projectRoles': [{'project': project, 'roles': ['GROUP_READ_ONLY']}]}]})[0]
	group, owner, key = org['projects'][0]['id'], server.api_for(org['principals'][0]), server.api_for(org['principals'][1])
	server.control('engine', {})
	name = unique('f')
	ok(owner.post(flex(group), json={'name': name, 'providerSettings': {'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}}), 201)
	pass_time(server, lambda: ok(owner.get(flex(group, name)))['stateName'] == 'IDLE')
	server.advance(DAY)
	one, = pass_time(server, lambda: [s for s in ok(owner.get(path(group, name)))['results'] if s['status'] == 'COMPLETED'])
	assert key.post(path(group, name, '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': name}).status_code == 403
	job = ok(key.post(path(group, name, '/download'), json={'snapshotId': one['id']}))
	assert server.anonymous.get(job['snapshotUrl']).status_code == 200
	reader = server.api_for(org['principals'][2])
	seen = ok(reader.get(path(group, name, '/restoreJobs/' + job['id'])))
	assert seen['id'] == job['id'] and 'snapshotUrl' not in seen, 'who may look has no right to the data'
	assert job['snapshotUrl'] not in reader.get(path(group, name, '/restoreJobs')).text


def test_other_lists_do_not_show_them(server, group):
	name = create(server, group)['name']
	one, = daily(server, group, name)
	job = ok(server.post(path(group, name, '/download'), json={'snapshotId': one['id']}))
	for below in ('/snapshots', '/snapshots/' + one['id'], '/restoreJobs', '/restoreJobs/' + job['id'], '/schedule'):
		refused(server.get(of_dedicated(group, name, below)), 400, 'CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API', name)
	refused(server.delete(of_dedicated(group, name, '/snapshots/' + one['id'])), 400, 'CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API', name)
	large = dedicated(server, group)
	snapshot = take(server, group, large)
	refused(server.get(path(group, large)), 400, 'CANNOT_USE_NON_FLEX_CLUSTER_IN_FLEX_API', large)
	refused(server.get(path(group, name, '/snapshots/' + snapshot['id'])), 404, 'SNAPSHOT_NOT_FOUND')
	refused(server.post(path(group, name, '/download'), json={'snapshotId': snapshot['id']}), 404, 'SNAPSHOT_NOT_FOUND')


def test_another_tenant_learns_nothing(server, group):
	name = create(server, group)['name']
	one, = daily(server, group, name)
	job = ok(server.post(path(group, name, '/download'), json={'snapshotId': one['id']}))
	other = server.project()['id']
	there = create(server, other)['name']
	for below in ('/snapshots/' + one['id'], '/restoreJobs/' + job['id']):
		refused(server.get(path(other, there, below)), 404)
		refused(server.get(path(other, name, below)), 404)
	refused(server.post(path(other, there, '/download'), json={'snapshotId': one['id']}), 404, 'SNAPSHOT_NOT_FOUND')
	refused(server.post(path(other, there, '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': there}), 404,
		'SNAPSHOT_NOT_FOUND')
	stranger = server.seed({'name': unique('o'), 'projects': ['p'], 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})[0]
	api, theirs = server.api_for(stranger['principals'][0]), stranger['projects'][0]['id']
	refused(server.post(path(group, name, '/restoreJobs'), json={'snapshotId': one['id'], 'targetDeploymentItemName': 'x',
		'targetProjectId': theirs}), 404)
	refused(api.get(path(group, name)), 401)


def test_upgrade_keeps_them(server, group):
	name = create(server, group)['name']
	one, = daily(server, group, name)
	ok(server.post(flex(group) + ':tenantUpgrade', json={'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
		{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}))
	pass_time(server, lambda: (lambda r: r.status_code == 200 and r.json()['stateName'] == 'IDLE')(
		server.get('/groups/%s/clusters/%s' % (group, name))))
	refused(server.get(path(group, name)), 400, 'CANNOT_USE_NON_FLEX_CLUSTER_IN_FLEX_API', name)
	assert ok(server.get(of_dedicated(group, name, '/snapshots/' + one['id'])))['status'] == 'completed'
