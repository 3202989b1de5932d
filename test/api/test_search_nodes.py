"""Search nodes on the simulated engine: made, scaled, moved and taken away without touching the others; refusals; paused clusters."""
import json

import pytest

from client import ok, refused
from test_clusters import create, path, settle
from test_search import told
from test_versions import each


def place(group, name='noded'):
	return path(group, name) + '/search/deployment'


def wish(size='S20_HIGHCPU_NVME', count=2, **more):
	return {'specs': [{'instanceSize': size, 'nodeCount': count, **more}]}


def processes(server, group):
	return {p['id'] for p in ok(server.get('/groups/%s/processes' % group))['results']}


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'noded')
	return group


def test_they_come_scale_and_go(server, group):
	before = processes(server, group)
	refused(server.get(place(group)), 404, 'SEARCH_DEPLOYMENT_NOT_FOUND')
	refused(server.patch(place(group), json=wish()), 404, 'SEARCH_DEPLOYMENT_NOT_FOUND')
	refused(server.delete(place(group)), 404, 'SEARCH_DEPLOYMENT_NOT_FOUND')
	made = ok(server.post(place(group), json=wish()))
	assert made['stateName'] == 'UPDATING' and made['groupId'] == group and made['encryptionAtRestProvider'] == 'NONE'
	assert made['effectiveSpecs'] == [{'cloudProvider': 'AWS', 'regionName': 'US_EAST_1', 'instanceSize': 'S20_HIGHCPU_NVME', 'nodeCount': 2}]
	refused(server.post(place(group), json=wish()), 409, 'SEARCH_DEPLOYMENT_ALREADY_EXISTS')
	settle(server, group, 'noded')
	assert ok(server.get(place(group)))['stateName'] == 'IDLE'
	with_nodes = processes(server, group)
	assert len(with_nodes) == 5 and before < with_nodes
	scaled = ok(server.patch(place(group), json={'specs': [{'instanceSize': 'S20_HIGHCPU_NVME'}], 'defaultNodeCount': 4}))
	assert scaled['effectiveSpecs'][0]['nodeCount'] == 4 and scaled['id'] == made['id']
	settle(server, group, 'noded')
	assert len(processes(server, group)) == 7 and with_nodes < processes(server, group)
	# What is changed of the cluster leaves them alone.
	ok(server.patch(path(group, 'noded'), json={'tags': [{'key': 'a', 'value': 'b'}]}))
	settle(server, group, 'noded')
	assert len(processes(server, group)) == 7
	assert server.delete(place(group)).status_code == 200
	settle(server, group, 'noded')
	assert processes(server, group) == before
	refused(server.get(place(group)), 404, 'SEARCH_DEPLOYMENT_NOT_FOUND')
	for kind in ('CREATED', 'UPDATED', 'DELETED'):
		assert told(server, group, 'SEARCH_DEPLOYMENT_' + kind)


@pytest.mark.parametrize('body, field', [
	({'specs': []}, 'specs'),
	({'specs': [{'instanceSize': 'S20_HIGHCPU_NVME'}]}, 'specs[0].nodeCount'),
	(wish(count=1), 'specs[0].nodeCount'),
	(wish(size='M10'), 'specs[0].instanceSize'),
	(wish(regionName='EU_WEST_1'), 'specs[0].regionName'),
	(wish(cloudProvider='GCP'), 'specs[0].regionName'),
	({'specs': wish()['specs'] * 2}, 'specs[1].regionName'),
])
def test_refusals(server, group, body, field):
	refused(server.post(place(group), json=body), 400, 'VALIDATION_ERROR', field)


def test_a_sharded_cluster(server):
	"""Each shard gets them, as far as the plan can hold them."""
	server.control('engine', {})
	group = server.project()['id']
	region = {'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 3}}
	create(server, group, 'noded', clusterType='SHARDED', replicationSpecs=[{'regionConfigs': [region]} for _ in range(5)])
	refused(server.post(place(group), json=wish(count=32)), 400, 'VALIDATION_ERROR', 'specs')
	before = len(processes(server, group))
	ok(server.post(place(group), json=wish(count=2)))
	settle(server, group, 'noded')
	assert len(processes(server, group)) == before + 10


def planned(server, group):
	(plan,), = server.rows("SELECT secret FROM doc WHERE kind = 'cluster' AND parent = '%s'" % group)
	return json.loads(plan)


def test_a_region_of_readers(server):
	"""Its search nodes have the disk of the shard's first nodes, and they count where the cluster's nodes do."""
	server.control('engine', {})
	group = server.project()['id']
	readers = {'providerName': 'AWS', 'regionName': 'EU_WEST_1', 'priority': 0, 'readOnlySpecs': {'instanceSize': 'M10', 'nodeCount': 1}}
	voters = {'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		  'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3, 'diskSizeGB': 20}}
	create(server, group, 'noded', replicationSpecs=[{'regionConfigs': [voters, readers]}])
	ok(server.post(place(group), json=wish(regionName='EU_WEST_1')))
	assert [n['disk'] for n in planned(server, group)['nodes'] if n['kind'] == 'search'] == [20, 20]


def test_too_many_with_shards(server):
	"""A shard that is added brings its search nodes."""
	server.control('engine', {})
	group = server.project()['id']
	region = {'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 3}}
	create(server, group, 'noded', clusterType='SHARDED', replicationSpecs=[{'regionConfigs': [region]} for _ in range(3)])
	ok(server.post(place(group), json=wish(count=32)))
	settle(server, group, 'noded')
	grown = {'replicationSpecs': [{'regionConfigs': [region]} for _ in range(4)]}
	refused(server.patch(path(group, 'noded'), json=grown), 400, 'VALIDATION_ERROR', 'replicationSpecs')
	ok(server.patch(place(group), json=wish(count=28)))
	settle(server, group, 'noded')
	ok(server.patch(path(group, 'noded'), json=grown))


def test_a_paused_cluster(server, group):
	ok(server.post(place(group), json=wish()))
	settle(server, group, 'noded')
	ok(server.patch(path(group, 'noded'), json={'paused': True}))
	settle(server, group, 'noded')
	assert ok(server.get(place(group)))['stateName'] == 'PAUSED'
	refused(server.patch(place(group), json=wish(count=3)), 409)


def test_each_version(server, group):
	for call in each(server, 'getClusterSearchDeployment'):
		call('GET', place(group), status=404)
	ok(server.post(place(group), json=wish()))
	for call in each(server, 'getClusterSearchDeployment'):
		assert call('GET', place(group))['specs'] == [{'instanceSize': 'S20_HIGHCPU_NVME', 'nodeCount': 2}]
	for call in each(server, 'updateClusterSearchDeployment'):
		call('PATCH', place(group), wish(count=1), status=400)
		assert call('PATCH', place(group), wish(count=3))['specs'][0]['nodeCount'] == 3
