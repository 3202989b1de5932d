"""Network containers, peering connections, custom DNS, private IP mode and the addresses of clusters."""
import re, time

import pytest

from client import NO_ID, bare, execute, leave, links, ok, pass_time, refused, unique, until

AWS_PEER = {'providerName': 'AWS', 'accepterRegionName': 'us-east-1', 'awsAccountId': '123456789012',
	    'routeTableCidrBlock': '10.200.0.1', 'vpcId': 'vpc-0123456789abcdef0'}
AZURE_PEER = {'providerName': 'AZURE', 'azureDirectoryId': '12345678-1234-4234-8234-123456789012',
	      'azureSubscriptionId': '12345678-1234-4234-8234-123456789013', 'resourceGroupName': 'group', 'vnetName': 'net'}
GCP_PEER = {'providerName': 'GCP', 'gcpProjectId': 'my-project-1', 'networkName': 'default'}


def aws(block='10.8.0.0/21', region='US_EAST_1'):
	return {'providerName': 'AWS', 'svcCidrBlock': block, 'regionName': region}


def azure(block='10.16.0.0/21', region='US_EAST_2'):
	return {'providerName': 'AZURE', 'svcCidrBlock': block, 'region': region}


def gcp(block='10.64.0.0/18', *regions):
	return {'providerName': 'GCP', 'svcCidrBlock': block, 'regions': list(regions)}


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	yield group
	leave(server, group)


def containers(group, id_=None):
	return '/groups/%s/containers%s' % (group, '/' + id_ if id_ else '')


def peers(group, id_=None):
	return '/groups/%s/peers%s' % (group, '/' + id_ if id_ else '')


def cluster(server, group, provider='AWS', region='US_EAST_1', name=None):
	name = name or unique('c')
	ok(server.post('/groups/%s/clusters' % group, json={'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [
		{'regionConfigs': [{'providerName': provider, 'regionName': region, 'priority': 7,
			'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}), 201)
	return name


def get_cluster(server, group, name):
	return ok(server.get('/groups/%s/clusters/%s' % (group, name)))


def settle(server, group, name):
	return pass_time(server, lambda: (lambda d: d if d['stateName'] == 'IDLE' else None)(get_cluster(server, group, name)))


def remove_cluster(server, group, name):
	assert server.delete('/groups/%s/clusters/%s' % (group, name)).status_code == 202
	pass_time(server, lambda: server.get('/groups/%s/clusters/%s' % (group, name)).status_code == 404)


def types(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']]


def state(peer):
	return peer.get('statusName') or peer.get('status')


def peer_in(server, group, id_, wanted):
	return until(lambda: (lambda d: d if state(d) == wanted else None)(ok(server.get(peers(group, id_)))))


def test_container_life(server, group):
	doc = ok(server.post(containers(group), json=aws()))
	assert bare(doc) == {**aws(), 'id': doc['id'], 'provisioned': False}
	assert bare(ok(server.get(containers(group, doc['id'])))) == bare(doc)
	changed = ok(server.patch(containers(group, doc['id']), json=aws('10.8.8.0/22', 'US_WEST_2')))
	assert changed['svcCidrBlock'] == '10.8.8.0/22' and changed['regionName'] == 'US_WEST_2'
	refused(server.patch(containers(group, doc['id']), json=azure()), 400, None)
	refused(server.patch(containers(group, NO_ID), json=aws()), 404)
	assert server.delete(containers(group, doc['id'])).status_code == 204
	refused(server.get(containers(group, doc['id'])), 404)
	refused(server.delete(containers(group, doc['id'])), 404)
	assert types(server, group)[:3] == ['CONTAINER_DELETED'] + 2 * ['CONTAINER_SUBNETS_UPDATE_REQUESTED']


def test_containers_are_listed_by_provider(server, group):
	made = [ok(server.post(containers(group), json=b))['id'] for b in (aws(), azure(), aws('10.9.0.0/24', 'EU_WEST_1'), gcp())]
	list_ = ok(server.get(containers(group) + '?providerName=AWS'))
	assert [d['id'] for d in list_['results']] == [made[0], made[2]] and list_['totalCount'] == 2
	page = ok(server.get(containers(group) + '?providerName=AWS&itemsPerPage=1&pageNum=2'))
	assert [d['id'] for d in page['results']] == [made[2]] and page['totalCount'] == 2
	assert [d['id'] for d in ok(server.get(containers(group) + '?providerName=GCP'))['results']] == [made[3]]
	assert [d['id'] for d in ok(server.get(containers(group, 'all')))['results']] == made
	assert [d['id'] for d in ok(server.get(containers(group)))['results']] == [d['id'] for d in list_['results']]
	refused(server.get(containers(NO_ID, 'all')), 404)
	refused(server.get(containers(NO_ID)), 404)


@pytest.mark.parametrize('body', [aws('10.8.0.0/20'), aws('10.8.0.0/25'), aws('10.8.0.1/24'), aws('8.8.8.0/24'),
	aws('172.32.0.0/24'), azure('192.168.0.0/20'), gcp('10.64.0.0/19'), aws('300.8.0.0/24'), aws('10.8.0.0/99')])
def test_block_rules(server, group, body):
	refused(server.post(containers(group), json=body), 400, None, 'svcCidrBlock')
	assert ok(server.get(containers(group, 'all')))['totalCount'] == 0


def test_blocks_do_not_overlap(server, group):
	first = ok(server.post(containers(group), json=aws('10.8.0.0/21')))
	refused(server.post(containers(group), json=azure('10.8.4.0/24')), 409, 'OVERLAPPING_CIDR_BLOCK', 'svcCidrBlock')
	refused(server.post(containers(group), json=gcp('10.0.0.0/12')), 409, 'OVERLAPPING_CIDR_BLOCK')
	second = ok(server.post(containers(group), json=azure('10.8.8.0/21')))
	refused(server.patch(containers(group, second['id']), json=azure('10.8.0.0/24')), 409, 'OVERLAPPING_CIDR_BLOCK')
	ok(server.patch(containers(group, second['id']), json=azure('10.8.8.0/24')))
	refused(server.post(containers(group), json=aws('10.12.0.0/21')), 409, 'CONTAINER_ALREADY_EXISTS', first['id'])
	ok(server.post(containers(group), json=gcp('10.64.0.0/18', 'CENTRAL_US')))
	refused(server.post(containers(group), json=gcp('10.192.0.0/18', 'EASTERN_US')), 409, 'CONTAINER_ALREADY_EXISTS')
	# Another project's networks are none of its business.
	ok(server.post(containers(server.project()['id']), json=aws('10.8.0.0/21')))


def test_a_block_is_chosen(server, group):
	ok(server.post(containers(group), json=azure('192.168.248.0/21')))
	doc = ok(server.post(containers(group), json={'providerName': 'AWS', 'regionName': 'US_EAST_1'}))
	assert doc['svcCidrBlock'] == '192.168.240.0/21'
	refused(server.post(containers(group), json={'providerName': 'TENANT', 'regionName': 'US_EAST_1'}), 400)


def test_container_comes_with_the_first_cluster(server, group):
	name = cluster(server, group)
	doc, = ok(server.get(containers(group, 'all')))['results']
	assert doc['providerName'] == 'AWS' and doc['regionName'] == 'US_EAST_1' and doc['provisioned'] is False
	settle(server, group, name)
	doc = until(lambda: (lambda d: d if d['provisioned'] else None)(ok(server.get(containers(group, doc['id'])))))
	assert re.match(r'^vpc-[0-9a-f]{17}$', doc['vpcId'])
	other = cluster(server, group)
	assert ok(server.get(containers(group, 'all')))['totalCount'] == 1
	refused(server.delete(containers(group, doc['id'])), 409, 'CONTAINERS_IN_USE', name)
	refused(server.patch(containers(group, doc['id']), json=aws('10.99.0.0/21')), 409, 'CONTAINERS_IN_USE')
	settle(server, group, other)
	for n in (name, other):
		remove_cluster(server, group, n)
	assert server.delete(containers(group, doc['id'])).status_code == 204


def test_containers_of_other_providers(server, group):
	made = ok(server.post(containers(group), json=gcp('10.64.0.0/18', 'CENTRAL_US')))
	names = [cluster(server, group, 'AZURE', 'US_EAST_2'), cluster(server, group, 'GCP', 'EASTERN_US')]
	for n in names:
		settle(server, group, n)
	by = until(lambda: (lambda r: r if all(d['provisioned'] for d in r.values()) else None)(
		{d['providerName']: d for d in ok(server.get(containers(group, 'all')))['results']}))
	assert by['GCP']['id'] == made['id'] and by['GCP']['regions'] == ['CENTRAL_US', 'EASTERN_US']
	assert by['GCP']['networkName'].startswith('nt-' + made['id']) and by['GCP']['gcpProjectId']
	assert by['AZURE']['region'] == 'US_EAST_2' and by['AZURE']['vnetName'] and by['AZURE']['azureSubscriptionId']


def test_a_container_for_all_regions(server, group):
	body = {k: v for k, v in gcp().items() if k != 'regions'}
	made = ok(server.post(containers(group), json=body))
	assert made['regions'] == []
	refused(server.post(containers(group), json=gcp('10.128.0.0/18', 'CENTRAL_US')), 409, 'CONTAINER_ALREADY_EXISTS', made['id'])
	changed = ok(server.patch(containers(group, made['id']), json={**body, 'svcCidrBlock': '10.128.0.0/18'}))
	assert changed['regions'] == [] and changed['svcCidrBlock'] == '10.128.0.0/18'


@pytest.mark.parametrize('container, peer, way, events', [
	(aws(), AWS_PEER, ['INITIATING', 'PENDING_ACCEPTANCE', 'FINALIZING', 'AVAILABLE', 'TERMINATING'], ['PEER_CREATED', 'PEER_DELETED']),
	(azure(), AZURE_PEER, ['ADDING_PEER', 'AVAILABLE', 'DELETING'], ['AZURE_PEER_CREATED', 'AZURE_PEER_ACTIVE', 'AZURE_PEER_DELETED']),
	(gcp(), GCP_PEER, ['ADDING_PEER', 'WAITING_FOR_USER', 'AVAILABLE', 'DELETING'],
	 ['GCP_PEER_CREATED', 'GCP_PEER_ACTIVE', 'GCP_PEER_DELETED'])])
def test_peer_life(server, group, container, peer, way, events):
	c = ok(server.post(containers(group), json=container))
	body = {**peer, 'containerId': c['id']}
	doc = ok(server.post(peers(group), json=body))
	assert {k: doc[k] for k in body} == body and state(doc) == way[0]
	time.sleep(0.1)
	assert state(ok(server.get(peers(group, doc['id'])))) == way[0], 'the virtual clock stood still'
	for s in way[1:-1]:
		server.advance(1)
		now = peer_in(server, group, doc['id'], s)
	assert ('connectionId' in now) == (peer is AWS_PEER)
	assert ok(server.get(containers(group, c['id'])))['provisioned'] is True
	assert [d['id'] for d in ok(server.get(peers(group) + '?providerName=' + peer['providerName']))['results']] == [doc['id']]
	refused(server.delete(containers(group, c['id'])), 409, 'CONTAINERS_IN_USE', doc['id'])
	r = server.delete(peers(group, doc['id']))
	assert ok(r, 202) == {}
	assert state(ok(server.get(peers(group, doc['id'])))) == way[-1]
	refused(server.delete(peers(group, doc['id'])), 409, 'PEER_ALREADY_REQUESTED_DELETION', doc['id'])
	refused(server.patch(peers(group, doc['id']), json=body), 409, 'PEER_ALREADY_REQUESTED_DELETION')
	server.advance(1)
	until(lambda: server.get(peers(group, doc['id'])).status_code == 404)
	assert server.delete(containers(group, c['id'])).status_code == 204
	told = types(server, group)
	assert [t for t in reversed(told) if 'PEER' in t] == events


def test_peer_rules(server, group):
	c = ok(server.post(containers(group), json=aws()))
	body = {**AWS_PEER, 'containerId': c['id']}
	refused(server.post(peers(group), json={**body, 'containerId': NO_ID}), 404, 'CLOUD_PROVIDER_CONTAINER_NOT_FOUND', NO_ID)
	refused(server.post(peers(group), json={**AZURE_PEER, 'containerId': c['id']}), 400, None, 'containerId')
	refused(server.post(peers(group), json={**body, 'accepterRegionName': 'atlantis-1'}), 400, None, 'accepterRegionName')
	refused(server.post(peers(group), json={**body, 'routeTableCidrBlock': '10.8.1.1'}), 409, 'OVERLAPPING_CIDR_BLOCK')
	doc = ok(server.post(peers(group), json=body))
	refused(server.post(peers(group), json=body), 409, 'PEER_ALREADY_EXISTS', doc['id'])
	refused(server.post(peers(group), json={**body, 'vpcId': 'vpc-0123456789abcdef1'}), 409, 'OVERLAPPING_CIDR_BLOCK')
	ok(server.post(peers(group), json={**body, 'vpcId': 'vpc-0123456789abcdef1', 'routeTableCidrBlock': '10.201.0.1'}))
	other_network = {**body, 'vpcId': 'vpc-0123456789abcdef2', 'routeTableCidrBlock': '10.202.0.0/16'}  # as people write it
	assert ok(server.post(peers(group), json=other_network))['routeTableCidrBlock'] == '10.202.0.0/16'
	refused(server.post(peers(group), json={**other_network, 'routeTableCidrBlock': 'everywhere'}), 400, None, 'routeTableCidrBlock')
	refused(server.post(containers(group), json=azure('10.200.0.0/21')), 409, 'OVERLAPPING_CIDR_BLOCK')
	other = ok(server.post(containers(group), json=aws('10.50.0.0/21', 'EU_WEST_1')))
	ok(server.post(peers(group), json={**body, 'containerId': other['id']}))  # one network, two of ours
	refused(server.patch(peers(group, doc['id']), json={**body, 'containerId': other['id']}), 400, None, 'containerId')
	server.advance(1)
	peer_in(server, group, doc['id'], 'PENDING_ACCEPTANCE')
	changed = ok(server.patch(peers(group, doc['id']), json={**body, 'awsAccountId': '999999999999'}))
	assert changed['awsAccountId'] == '999999999999' and changed['statusName'] == 'INITIATING'
	refused(server.get(peers(group, NO_ID)), 404)
	refused(server.get(peers(group) + '?providerName=MOON'), 400, None, 'providerName')
	refused(server.delete(peers(group, NO_ID)), 404)


def test_policies_are_asked(server):
	org = server.seed({'name': unique('net'), 'projects': ['one'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})[0]
	api, group = server.api_for(org['principals'][0]), org['projects'][0]['id']
	c = ok(api.post(containers(group), json=aws()))
	rule = 'forbid (principal, action == ResourcePolicy::Action::"project.vpcPeering.modify", resource) ' \
		'unless { context.vpcPeering has accountId && context.vpcPeering.accountId == "123456789012" };'
	ok(api.post('/orgs/%s/resourcePolicies' % org['id'], json={'name': 'peers', 'policies': [{'body': rule}]}), 201)
	body = {**AWS_PEER, 'containerId': c['id']}
	refused(api.post(peers(group), json={**body, 'awsAccountId': '999999999999'}), 403, 'RESOURCE_POLICY_VIOLATION')
	assert ok(api.get(peers(group)))['totalCount'] == 0
	doc = ok(api.post(peers(group), json=body))
	refused(api.patch(peers(group, doc['id']), json={**body, 'awsAccountId': '999999999999'}), 403, 'RESOURCE_POLICY_VIOLATION')


def strings(server, group, name):
	return set(get_cluster(server, group, name)['connectionStrings'])


def test_private_strings(server, group):
	name = cluster(server, group)
	settle(server, group, name)
	standard = strings(server, group, name)
	assert standard == {'privateEndpoint', 'standard', 'standardSrv'}
	c, = ok(server.get(containers(group, 'all')))['results']
	dns = '/groups/%s/providerCustomDNS' % group
	assert bare(ok(server.get(dns))) == {'enabled': False}
	peer = ok(server.post(peers(group), json={**AWS_PEER, 'containerId': c['id']}))
	for _ in range(3):
		before = state(ok(server.get(peers(group, peer['id']))))
		server.advance(1)
		until(lambda: state(ok(server.get(peers(group, peer['id'])))) != before)
	time.sleep(0.1)
	assert strings(server, group, name) == standard, 'names at AWS resolve to private addresses by themselves'
	assert bare(ok(server.patch(dns, json={'enabled': True}))) == {'enabled': True}
	both = until(lambda: (lambda s: s if 'private' in s else None)(get_cluster(server, group, name)['connectionStrings']))
	assert '-pri.' in both['privateSrv'] and all('-pri.' in h for h in both['private'].split('://')[1].split('/')[0].split(','))
	assert get_cluster(server, group, name)['stateName'] == 'IDLE'
	ok(server.patch(dns, json={'enabled': False}))
	until(lambda: strings(server, group, name) == standard)
	ok(server.patch('/groups/%s/privateIpMode' % group, json={'enabled': True}))
	assert bare(ok(server.get('/groups/%s/privateIpMode' % group))) == {'enabled': True}
	until(lambda: 'private' in strings(server, group, name))
	ok(server.delete(peers(group, peer['id'])), 202)
	until(lambda: strings(server, group, name) == standard)
	refused(server.patch(dns, json={}), 400, None, 'enabled')
	for setting in ('providerCustomDNS', 'privateIpMode'):
		refused(server.get('/groups/%s/%s' % (NO_ID, setting)), 404)
		refused(server.patch('/groups/%s/%s' % (group, setting), json={'enabled': 'yes'}), 400, None, 'enabled')


def test_addresses(server, group):
	name = cluster(server, group)
	settle(server, group, name)
	doc = ok(server.get('/groups/%s/ipAddresses' % group))
	assert doc['groupId'] == group
	entry, = doc['services']['clusters']
	assert entry['clusterName'] == name and set(entry) == {'clusterName', 'inbound', 'outbound', 'futureInbound', 'futureOutbound'}
	remove_cluster(server, group, name)
	assert ok(server.get('/groups/%s/ipAddresses' % group))['services']['clusters'] == []
	refused(server.get('/groups/%s/ipAddresses' % NO_ID), 404)


def test_roles(server, group):
	org = server.seed({'name': unique('net'), 'projects': ['one'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'one', 'roles': ['GROUP_READ_ONLY']}]}]})[0]
	api, own = server.api_for(org['principals'][0]), org['projects'][0]['id']
	assert ok(api.get(containers(own, 'all')))['results'] == []
	refused(api.post(containers(own), json=aws()), 403)
	refused(api.post(peers(own), json={**AWS_PEER, 'containerId': NO_ID}), 403)
	refused(api.get(containers(group, 'all')), 401)
	doc = ok(server.get('/groups/' + group))
	assert any(h.endswith('/providerCustomDNS') for h in links(doc).values())


def test_networks_go_with_their_project(server, group):
	c = ok(server.post(containers(group), json=aws()))
	ok(server.post(peers(group), json={**AWS_PEER, 'containerId': c['id']}))
	assert server.delete('/groups/' + group).status_code == 204
	server.advance(5)  # their jobs find nothing
	refused(server.get(containers(group, c['id'])), 404)


def test_killed_on_the_way(start_server):
	"""Also with the jobs of a version that had a kind of its own for networks."""
	s = start_server()
	group = s.project()['id']
	c = ok(s.post(containers(group), json=azure()))
	peer = ok(s.post(peers(group), json={**AZURE_PEER, 'containerId': c['id']}))
	assert s.rows("SELECT tenant FROM job WHERE kind = 'lifecycle'") == 2 * [(s.org,)]
	for old in (False, True):
		s.kill()
		if old:
			execute(s.data_dir, "UPDATE job SET kind = 'network', args = '{}' WHERE kind = 'lifecycle'")
		s = start_server(data_dir=s.data_dir)
		pass_time(s, lambda: ok(s.get(containers(group, c['id'])))['provisioned'])
		pass_time(s, lambda: state(ok(s.get(peers(group, peer['id'])))) == 'AVAILABLE')
		assert types(s, group).count('AZURE_PEER_ACTIVE') == 1 + old
		peer = ok(s.patch(peers(group, peer['id']), json={**AZURE_PEER, 'vnetName': 'other%d' % old, 'containerId': c['id']}))
	assert not s.rows("SELECT 1 FROM job WHERE kind IN ('network', 'lifecycle') AND state = 'failed'")
