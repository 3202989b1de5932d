"""Private endpoints: services and endpoints of each provider through their states, what operators say of them, and the
connection strings that clusters get by them. Databases are not there: test/postgres/test_private_endpoints_postgres.py."""
import json

import pytest

import client
from client import NO_ID, cli, leave, ok, pass_time, refused, unique, until
from test_backups import seconds

AZURE_ID = '/subscriptions/12345678-1234-4234-8234-123456789012/resourceGroups/group/providers/Microsoft.Network/privateEndpoints/%s'
ENDPOINTS = {
	'AWS': {'id': 'vpce-0123456789abcdef0'},
	'AZURE': {'id': AZURE_ID % 'mine', 'privateEndpointIPAddress': '10.0.0.4'},
	'GCP': {'endpointGroupName': 'my-group', 'gcpProjectId': 'p-0123456789abcdef01234567',
		'endpoints': [{'endpointName': 'first', 'ipAddress': '10.0.0.5'}, {'endpointName': 'second', 'ipAddress': '10.0.0.6'}]}}
NAMES = {'AWS': 'vpce-0123456789abcdef0', 'AZURE': AZURE_ID % 'mine', 'GCP': 'my-group'}
REGIONS = {'AWS': 'US_EAST_1', 'AZURE': 'US_EAST_2', 'GCP': 'CENTRAL_US'}
LISTS = {'AWS': 'interfaceEndpoints', 'AZURE': 'privateEndpoints', 'GCP': 'endpointGroupNames'}
WAYS = {'AWS': ['PENDING_ACCEPTANCE', 'PENDING', 'AVAILABLE'], 'AZURE': ['INITIATING', 'AVAILABLE'],
	'GCP': ['INITIATING', 'VERIFIED', 'AVAILABLE']}


def ask_for(server, whole):
	for session in server.sessions:
		session.headers['X-Steward-Whole'] = whole


def project(server, whole):
	server.control('engine', {'seconds': 0})
	ask_for(server, whole)
	yield server.project()['id']
	for session in server.sessions:
		session.headers.pop('X-Steward-Whole', None)


@pytest.fixture
def group(server):
	"""Recorded: answers in the reference's form, which has what all providers have."""
	for group in project(server, 'false'):
		yield group
		leave(server, group)


@pytest.fixture
def place(module_server):
	"""(server, project), not recorded: answers with what each provider's form adds."""
	module_server.refill()
	for group in project(module_server, 'true'):
		yield module_server, group
		leave(module_server, group)


def base(group, what=''):
	return '/groups/%s/privateEndpoint/%s' % (group, what)


def at(group, provider, service=None, endpoint=None):
	path = base(group, provider + '/endpointService')
	path += '/' + service if service else ''
	return path + ('/endpoint' + ('/' + endpoint.replace('/', '%2F') if endpoint is not True else '') if endpoint else '')


def make(server, group, provider='AWS', region=None, **more):
	return ok(server.post(base(group, 'endpointService'), json={'providerName': provider, 'region': region or REGIONS[provider], **more}))


def service_in(server, group, provider, id_, state):
	return pass_time(server, lambda: (lambda d: d if d['status'] == state else None)(ok(server.get(at(group, provider, id_)))))


def ready(server, group, provider='AWS', **more):
	return service_in(server, group, provider, make(server, group, provider, **more)['id'], 'WAITING_FOR_USER')['id']


def state(endpoint):
	return endpoint.get('connectionStatus') or endpoint.get('status')


def endpoint_in(server, group, provider, service, wanted, name=None):
	"""In the whole form, which alone tells."""
	path = at(group, provider, service, name or NAMES[provider])
	return pass_time(server, lambda: (lambda d: d if state(d) == wanted else None)(ok(server.get(path))), step=1)


def connect(server, group, provider, service, **more):
	"""Until the service says that it is connected."""
	ok(server.post(at(group, provider, service, True), json={**ENDPOINTS[provider], **more}))
	return service_in(server, group, provider, service, 'AVAILABLE')


def cluster(server, group, provider='AWS', shards=0, name=None):
	name, one = name or unique('c'), {'regionConfigs': [{'providerName': provider, 'regionName': REGIONS[provider], 'priority': 7,
		'electableSpecs': {'instanceSize': 'M30' if shards else 'M10', 'nodeCount': 3}}]}
	ok(server.post('/groups/%s/clusters' % group, json={
		'name': name, 'clusterType': 'SHARDED' if shards else 'REPLICASET', 'replicationSpecs': [one] * max(1, shards)}), 201)
	pass_time(server, lambda: ok(server.get('/groups/%s/clusters/%s' % (group, name)))['stateName'] == 'IDLE')
	return name


def strings(server, group, name, count):
	"""The connection strings of a cluster, once it has so many ways."""
	path = '/groups/%s/clusters/%s' % (group, name)
	return pass_time(server, lambda: (lambda s: s if len(s['privateEndpoint']) == count else None)(ok(server.get(path))['connectionStrings']))


def endpoint_id(server, group):
	"""Ours, which no answer of the reference's form has."""
	return server.rows("SELECT e.id FROM doc e JOIN doc s ON e.parent = s.id WHERE e.kind = 'private_endpoint' AND s.parent = '%s'" % group)[0][0]


def metered(server, group, kind):
	"""Measurements of the project's endpoints: [(SKU, region, seconds)], or those that are open: the seconds count from 1970."""
	docs = [json.loads(body) for body, in server.rows("SELECT body FROM doc WHERE kind = '%s'" % kind)]
	things = [t for d in docs if d['group'] == group for t in d.get('open', {None: d}).values()]
	return [(t['sku'], t['region'], t.get('to', 0) - t['from']) for t in things if 'PRIVATE' in t['sku']]


def types(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']]


def test_regional_mode(server, group):
	assert ok(server.get(base(group, 'regionalMode'))) == {'enabled': False}
	assert ok(server.patch(base(group, 'regionalMode'), json={'enabled': True})) == {'enabled': True}
	first = make(server, group)['id']
	second = make(server, group)['id']
	refused(server.patch(base(group, 'regionalMode'), json={'enabled': False}), 409, 'REGIONALIZED_PRIVATE_ENDPOINT_MODE_IN_USE', 'enabled')
	ok(server.delete(at(group, 'AWS', second)), 204)
	pass_time(server, lambda: server.get(at(group, 'AWS', second)).status_code == 404)
	assert ok(server.patch(base(group, 'regionalMode'), json={'enabled': False})) == {'enabled': False}
	refused(server.post(base(group, 'endpointService'), json={'providerName': 'AWS', 'region': 'us-east-1'}), 409,
		'PRIVATE_ENDPOINT_SERVICE_ALREADY_EXISTS_FOR_REGION', first)
	assert [t for t in types(server, group) if 'MODE' in t] == [
		'REGIONALIZED_PRIVATE_ENDPOINT_MODE_DISABLED', 'REGIONALIZED_PRIVATE_ENDPOINT_MODE_ENABLED']
	refused(server.get(base(NO_ID, 'regionalMode')), 404)
	refused(server.patch(base(group, 'regionalMode'), json={'enabled': 1}), 400)


@pytest.mark.parametrize('provider', ['AWS', 'GCP'])
def test_answers_of_the_reference(server, group, provider):
	"""Every operation, as whoever knows the reference alone sees it. An id of Azure has slashes, which a path's recording loses."""
	made = make(server, group, provider)
	assert made == {'id': made['id'], 'cloudProvider': provider, 'regionName': REGIONS[provider], 'status': 'INITIATING'}
	path = at(group, provider, made['id'])
	refused(server.post(path + '/endpoint', json=ENDPOINTS[provider]), 409, 'PRIVATE_ENDPOINT_SERVICE_NOT_READY')
	service_in(server, group, provider, made['id'], 'WAITING_FOR_USER')
	new = ok(server.post(path + '/endpoint', json=ENDPOINTS[provider]))
	assert new == {'cloudProvider': provider, 'deleteRequested': False}
	name = NAMES[provider]
	assert ok(server.get('%s/endpoint/%s' % (path, name))) == new
	refused(server.delete(path), 409, 'PRIVATE_ENDPOINT_SERVICE_HAS_ENDPOINTS')
	doc = service_in(server, group, provider, made['id'], 'AVAILABLE')
	assert doc == {**made, 'status': 'AVAILABLE'} and ok(server.get(at(group, provider))) == [doc]
	if provider == 'AWS':
		assert ok(server.patch(base(group, 'endpointService/' + made['id']), json={'cloudProvider': 'AWS', 'supportedRemoteRegions': []})) == doc
	cli('accept-endpoint', '--data', server.data_dir, endpoint_id(server, group), '--reject', 'nobody here knows it')
	until(lambda: ok(server.get('%s/endpoint/%s' % (path, name))).get('errorMessage') == 'nobody here knows it')
	ok(server.delete('%s/endpoint/%s' % (path, name)), 204)
	assert ok(server.get('%s/endpoint/%s' % (path, name)))['deleteRequested'] is True
	refused(server.delete('%s/endpoint/%s' % (path, name)), 409, 'PRIVATE_ENDPOINT_BUSY')
	pass_time(server, lambda: server.get('%s/endpoint/%s' % (path, name)).status_code == 404)
	refused(server.delete('%s/endpoint/%s' % (path, name)), 404, 'PRIVATE_ENDPOINT_NOT_FOUND')
	ok(server.delete(path), 204)
	pass_time(server, lambda: server.get(path).status_code == 404)
	refused(server.delete(path), 404, 'PRIVATE_ENDPOINT_SERVICE_NOT_FOUND')
	refused(server.get(at(group, 'NOWHERE')), 404, 'PROVIDER_NOT_FOUND')


@pytest.mark.parametrize('provider', ['AWS', 'AZURE', 'GCP'])
def test_life(place, provider):
	"""A service, an endpoint and a cluster's strings, from the first call to the last."""
	server, group = place
	name, other = cluster(server, group, provider), next(p for p in REGIONS if p != provider)
	made = make(server, group, provider)
	path = at(group, provider, made['id'])
	assert made == {'id': made['id'], 'cloudProvider': provider, 'regionName': REGIONS[provider], 'status': 'INITIATING', LISTS[provider]: [],
			**({'portMappingEnabled': False} if provider == 'GCP' else {})}
	refused(server.post(at(group, provider, made['id'], True), json=ENDPOINTS[provider]), 409, 'PRIVATE_ENDPOINT_SERVICE_NOT_READY')
	doc = service_in(server, group, provider, made['id'], 'WAITING_FOR_USER')
	assert set(doc) - set(made) == {'AWS': {'endpointServiceName'}, 'AZURE': {'privateLinkServiceName', 'privateLinkServiceResourceId'},
					'GCP': {'serviceAttachmentNames'}}[provider]
	assert ok(server.get(at(group, provider))) == [doc] and ok(server.get(at(group, other))) == []
	refused(server.get(at(group, other, made['id'])), 404, 'PRIVATE_ENDPOINT_SERVICE_NOT_FOUND')
	refused(server.get(at(group, 'NOWHERE')), 404, 'PROVIDER_NOT_FOUND')

	new = ok(server.post(path + '/endpoint', json={**ENDPOINTS[provider], 'cloudProvider': provider}))
	assert state(new) == WAYS[provider][0] and new['deleteRequested'] is False and 'consumers' not in new
	refused(server.post(path + '/endpoint', json=ENDPOINTS[provider]), 409, 'PRIVATE_ENDPOINT_ALREADY_EXISTS', NAMES[provider])
	assert ok(server.get('/groups/%s/clusters/%s' % (group, name)))['connectionStrings']['privateEndpoint'] == []
	refused(server.delete(path), 409, 'PRIVATE_ENDPOINT_SERVICE_HAS_ENDPOINTS')
	began = seconds(server)
	for wanted in WAYS[provider][1:]:
		doc = endpoint_in(server, group, provider, made['id'], wanted)
	assert set(doc) >= set(new)
	if provider == 'GCP':
		assert [e['status'] for e in doc['endpoints']] == ['AVAILABLE'] * 2 and [e['ipAddress'] for e in doc['endpoints']] == ['10.0.0.5', '10.0.0.6']
	service = ok(server.get(path))
	assert service['status'] == 'AVAILABLE' and len(service[LISTS[provider]]) == 1
	assert provider == 'AWS' or service[LISTS[provider]] == [NAMES[provider]]

	found = strings(server, group, name, 1)
	way, location = found['privateEndpoint'][0], REGIONS[provider].lower().replace('_', '-')
	assert way['type'] == 'DB' and way['endpoints'] == [{'endpointId': NAMES[provider], 'providerName': provider, 'region': REGIONS[provider]}]
	host = way['connectionString'].split('://')[1].split('/')[0]
	assert host.startswith('pl-0-%s.' % location) and int(host.rsplit(':')[-1]) >= 1024 and 'hostaddr' not in way['connectionString']
	assert way['srvConnectionString'] == 'postgresql+srv://' + host.rsplit(':')[0]
	assert 'srvShardOptimizedConnectionString' not in way
	assert found.get('awsPrivateLink') == ({NAMES['AWS']: way['connectionString']} if provider == 'AWS' else None)

	assert [t[:2] for t in metered(server, group, 'meter_open')] == [(provider + '_PRIVATE_ENDPOINT', REGIONS[provider])]
	server.advance(500)
	ok(server.delete(at(group, provider, made['id'], NAMES[provider])), 204)
	(sku, region, lasted), = metered(server, group, 'meter')
	assert (sku, region) == (provider + '_PRIVATE_ENDPOINT', REGIONS[provider]) and not metered(server, group, 'meter_open')
	assert 500 <= lasted <= seconds(server) - began + 1
	leaving = ok(server.get(at(group, provider, made['id'], NAMES[provider])))
	assert state(leaving) == 'DELETING' and leaving['deleteRequested'] is True
	refused(server.delete(at(group, provider, made['id'], NAMES[provider])), 409, 'PRIVATE_ENDPOINT_BUSY')
	strings(server, group, name, 0)
	pass_time(server, lambda: server.get(at(group, provider, made['id'], NAMES[provider])).status_code == 404)
	refused(server.delete(at(group, provider, made['id'], NAMES[provider])), 404, 'PRIVATE_ENDPOINT_NOT_FOUND')
	assert ok(server.get(path))['status'] == 'WAITING_FOR_USER'
	ok(server.delete(path), 204)
	assert ok(server.get(path))['status'] == 'DELETING'
	refused(server.delete(path), 409, 'PRIVATE_ENDPOINT_SERVICE_BUSY')
	pass_time(server, lambda: server.get(path).status_code == 404)
	refused(server.delete(path), 404)
	assert [t for t in types(server, group) if 'ENDPOINT' in t] == [
		'ENDPOINT_SERVICE_DELETED', 'INTERFACE_ENDPOINT_DELETED', 'INTERFACE_ENDPOINT_CREATED', 'ENDPOINT_SERVICE_CREATED']


@pytest.mark.parametrize('provider', ['AWS', 'AZURE', 'GCP'])
def test_an_endpoint_is_available_when_its_clusters_say_how(place, provider):
	"""Not before, however long a cluster's own job takes; and with the last of them at once. One that goes is not waited for."""
	server, group = place
	first, gone, service = cluster(server, group, provider), cluster(server, group, provider), ready(server, group, provider)
	path, endpoint = '/groups/%s/clusters/' % group, at(group, provider, service, NAMES[provider])
	regions = ok(server.get(path + first))['replicationSpecs'][0]['regionConfigs']
	regions[0]['electableSpecs']['instanceSize'] = 'M20'
	server.control('engine', {'seconds': 60})
	ok(server.patch(path + first, json={'replicationSpecs': [{'regionConfigs': regions}]}))
	ok(server.delete(path + gone), 202)
	ok(server.post(at(group, provider, service, True), json=ENDPOINTS[provider]))

	def seen():
		shown, found = state(ok(server.get(endpoint))), ok(server.get(path + first))['connectionStrings']['privateEndpoint']
		assert found or shown != 'AVAILABLE', 'a state without strings'
		return shown == 'AVAILABLE'
	try:
		pass_time(server, seen, step=1, seconds=60)
	finally:
		server.control('engine', {})
	assert 'opening' not in server.get(endpoint).text


def test_each_cluster_has_a_name_and_a_port(server, group):
	"""Also those that come later, shards have routers behind them, and a region's mode changes the SRV names."""
	first = cluster(server, group)
	service = ready(server, group)
	connect(server, group, 'AWS', service)
	second, elsewhere = cluster(server, group, shards=2), cluster(server, group, 'AZURE')
	ways = [strings(server, group, name, 1)['privateEndpoint'][0] for name in (first, second)]
	assert ok(server.get('/groups/%s/clusters/%s' % (group, elsewhere)))['connectionStrings']['privateEndpoint'] == []
	hosts = [w['connectionString'].split('://')[1].split('/')[0] for w in ways]
	assert [h.split('.')[0] for h in hosts] == ['pl-0-us-east-1', 'pl-1-us-east-1'] and len({h.split(':')[1] for h in hosts}) == 2
	assert [w['type'] for w in ways] == ['DB', 'ROUTER']
	assert '://pl-1-lb-us-east-1.' in ways[1]['srvShardOptimizedConnectionString']
	ok(server.post(at(group, 'AWS', service, True), json={'id': 'vpce-1123456789abcdef0'}))
	assert set(strings(server, group, first, 2)['awsPrivateLinkSrv']) == {'vpce-0123456789abcdef0', 'vpce-1123456789abcdef0'}
	ok(server.patch(base(group, 'regionalMode'), json={'enabled': True}))
	pass_time(server, lambda: ('://%s-pl-0-us-east-1.' % first) in strings(server, group, first, 2)['privateEndpoint'][0]['srvConnectionString'])
	ok(server.delete('/groups/%s/clusters/%s' % (group, first)), 202)
	pass_time(server, lambda: server.get('/groups/%s/clusters/%s' % (group, first)).status_code == 404)
	third = cluster(server, group)
	assert hosts[0] in strings(server, group, third, 2)['privateEndpoint'][0]['connectionString'], 'what is free is given again'
	# Nodes of the region are counted: two shards, and the third cluster.
	limit, path = 'svc.project.deployment.nodesPerPrivateLinkRegion', '/groups/%s/clusters' % group
	ok(server.patch('/groups/%s/limits/%s' % (group, limit), json={'value': 9}))
	region = {'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}
	one = {'name': unique('c'), 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [region]}]}
	refused(server.post(path, json=one), 400, 'PROJECT_LIMIT_EXCEEDED', limit, '9')
	grown = {'replicationSpecs': [{'regionConfigs': [{**region, 'readOnlySpecs': {'instanceSize': 'M10', 'nodeCount': 1}}]}]}
	refused(server.patch('%s/%s' % (path, third), json=grown), 400, 'PROJECT_LIMIT_EXCEEDED', limit, '9')
	ok(server.patch('/groups/%s/limits/%s' % (group, limit), json={'value': 8}))
	ok(server.patch('%s/%s' % (path, third), json={'terminationProtectionEnabled': False, 'replicationSpecs': [{'regionConfigs': [region]}]}))
	refused(server.post(base(group, 'endpointService'), json={'providerName': 'AWS', 'region': 'us-east-1'}), 400, 'PROJECT_LIMIT_EXCEEDED', limit, '8')
	ok(server.delete('/groups/%s/limits/%s' % (group, limit)), 204)
	make(server, group)


def test_an_organization_has_a_share_of_the_ports(module_server):
	"""64,512 ports are for all tenants, and one could take them all."""
	server = module_server
	org = server.seed({'name': unique('o'), 'projects': ['p'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})[0]
	owner, group = server.api_for(org['principals'][0]), org['projects'][0]['id']
	server.control('engine', {'seconds': 0})
	where = "kind = 'private_link_share' AND parent = '%s'" % org['id']

	def share():
		return sum(json.loads(body)['ports'] for body, in server.rows('SELECT body FROM doc WHERE ' + where))

	def pretend(ports):
		client.execute(server.data_dir, """UPDATE doc SET body = '{"ports":%d}'%s WHERE %s""" % (ports, '' if client.REMOTE else ', sum = NULL', where))

	def small(name, provider):
		ok(owner.post('/groups/%s/clusters' % group, json={'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
			{'providerName': provider, 'regionName': REGIONS[provider], 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}), 201)
	small('first', 'AWS')
	small('second', 'AZURE')
	make(owner, group)
	assert share() == 1
	pretend(4096)
	refused(owner.post(base(group, 'endpointService'), json={'providerName': 'AZURE', 'region': REGIONS['AZURE']}), 409, 'TOO_MANY_PRIVATE_LINKS')
	small('third', 'AWS')  # is made, and has no link
	assert share() == 4096
	pretend(1)
	pass_time(server, lambda: all(c['stateName'] == 'IDLE' for c in ok(owner.get('/groups/%s/clusters' % group))['results']))
	for name in ('third', 'second', 'first'):
		ok(owner.delete('/groups/%s/clusters/%s' % (group, name)), 202)
	pass_time(server, lambda: share() == 0)


def test_services_are_changed(place):
	server, group = place
	service = ready(server, group, supportedRemoteRegions=['us-west-2'])
	path = base(group, 'endpointService/' + service)
	assert ok(server.get(at(group, 'AWS', service)))['supportedRemoteRegions'] == ['US_WEST_2']
	doc = ok(server.patch(path, json={'cloudProvider': 'AWS', 'supportedRemoteRegions': ['EU_WEST_1', 'eu-central-1']}))
	assert doc['supportedRemoteRegions'] == ['EU_WEST_1', 'EU_CENTRAL_1'] and doc['status'] == 'WAITING_FOR_USER'
	assert 'supportedRemoteRegions' not in ok(server.patch(path, json={'cloudProvider': 'AWS', 'supportedRemoteRegions': None}))
	refused(server.patch(path, json={'cloudProvider': 'AWS', 'supportedRemoteRegions': ['mars']}), 400, 'VALIDATION_ERROR', 'supportedRemoteRegions[0]')
	refused(server.patch(base(group, 'endpointService/' + NO_ID), json={'cloudProvider': 'AWS'}), 404, 'PRIVATE_ENDPOINT_SERVICE_NOT_FOUND')
	azure = make(server, group, 'AZURE')['id']
	refused(server.patch(base(group, 'endpointService/' + azure), json={'cloudProvider': 'AWS'}), 400, 'VALIDATION_ERROR', 'cloudProvider')


@pytest.mark.parametrize('provider, body, field', [
	('AWS', {'id': 'vpce-1'}, 'id'), ('AWS', ENDPOINTS['AZURE'], None), ('AWS', {**ENDPOINTS['AWS'], 'cloudProvider': 'GCP'}, None),
	('AZURE', {'id': '/mine', 'privateEndpointIPAddress': '10.0.0.4'}, 'id'), ('AZURE', {'id': AZURE_ID % 'mine'}, None),
	('GCP', {**ENDPOINTS['GCP'], 'endpointGroupName': 'Not/One'}, 'endpointGroupName')])
def test_endpoints_that_make_no_sense(place, provider, body, field):
	server, group = place
	service = ready(server, group, provider)
	refused(server.post(at(group, provider, service, True), json=body), 400, None, *([field] if field else []))
	assert ok(server.get(at(group, provider, service)))[LISTS[provider]] == []


def test_refusals(server, group):
	refused(server.post(base(group, 'endpointService'), json={'providerName': 'AWS', 'region': 'mars'}), 400, 'VALIDATION_ERROR', 'region')
	refused(server.post(base(group, 'endpointService'), json={'providerName': 'AZURE', 'region': 'US_EAST_2', 'supportedRemoteRegions': ['US_EAST_2']}),
		400, 'VALIDATION_ERROR', 'supportedRemoteRegions')
	refused(server.post(at(group, 'AWS', NO_ID, True), json=ENDPOINTS['AWS']), 404, 'PRIVATE_ENDPOINT_SERVICE_NOT_FOUND')
	refused(server.get(at(group, 'AWS', NO_ID, NAMES['AWS'])), 404, 'PRIVATE_ENDPOINT_SERVICE_NOT_FOUND')
	refused(server.patch(base(group, 'endpointService/' + NO_ID), json={'cloudProvider': 'AWS'}), 404, 'PRIVATE_ENDPOINT_SERVICE_NOT_FOUND')
	service = make(server, group)['id']
	refused(server.get(at(group, 'AWS', service, NAMES['AWS'])), 404, 'PRIVATE_ENDPOINT_NOT_FOUND')
	make(server, group, 'GCP', 'WESTERN_EUROPE')
	org, broken = '/orgs/%s/resourcePolicies' % server.org, '/orgs/%s/nonCompliantResources' % server.org
	policy = ok(server.post(org, json={'name': unique('links'), 'policies': [{'body': 'forbid (principal, action == ResourcePolicy::Action::'
		'"project.privateEndpoint.modify", resource) when { context.privateEndpoint.cloudProvider == ResourcePolicy::CloudProvider::"gcp" };'}]}), 201)
	try:
		refused(server.post(base(group, 'endpointService'), json={'providerName': 'GCP', 'region': 'CENTRAL_US'}), 403, 'RESOURCE_POLICY_VIOLATION')
		assert group in server.get(broken).text, 'what was there before breaks it'
	finally:
		ok(server.delete('%s/%s' % (org, policy['id'])))
	assert group not in server.get(broken).text


@pytest.mark.parametrize('provider', ['AWS', 'AZURE', 'GCP'])
def test_operators_reject_and_accept(place, provider):
	server, group = place
	service, data, mine = ready(server, group, provider), ('--data', server.data_dir), {
		'AWS': {'id': 'vpce-%017x' % int(group[-12:], 16)}, 'AZURE': {**ENDPOINTS['AZURE'], 'id': AZURE_ID % group},
		'GCP': {**ENDPOINTS['GCP'], 'endpointGroupName': 'g' + group}}[provider]
	name = mine.get('id') or mine['endpointGroupName']
	ok(server.post(at(group, provider, service, True), json=mine))
	shown = cli('accept-endpoint', *data, name, check=False)
	assert shown.returncode == 1 and group in shown.stdout and 'Nothing was changed' in shown.stdout
	assert cli('accept-endpoint', *data, 'vpce-none', '--address', '10.0.0.1', check=False).returncode == 1
	for everybody in ('0.0.0.0/0', '::/8'):
		assert cli('accept-endpoint', *data, name, '--address', everybody, check=False).returncode == 2
	assert cli('accept-endpoint', *data, name, '--address', '10.0.0.1', '--reject', 'no', check=False).returncode == 2
	cli('accept-endpoint', *data, name, '--address', '10.9.0.0/16,10.8.0.1')
	until(lambda: 'INTERFACE_ENDPOINT_PATCHED' in types(server, group))
	endpoint_in(server, group, provider, service, 'AVAILABLE', name)
	cli('accept-endpoint', *data, name, '--reject', 'nobody here knows it')
	bad = until(lambda: (lambda d: d if state(d) in ('REJECTED', 'FAILED') else None)(ok(server.get(at(group, provider, service, name)))))
	assert bad['errorMessage'] == 'nobody here knows it'
	assert ok(server.get(at(group, provider, service)))['status'] == 'WAITING_FOR_USER'
	assert cli('accept-endpoint', *data, name, '--address', '10.0.0.1', check=False).returncode == 1
	ok(server.delete(at(group, provider, service, name)), 204)


@pytest.mark.parametrize('wrong', [{'privateEndpointIPAddress': '0.0.0.0'}, {'privateEndpointIPAddress': '255.255.255.255'},
	{'privateEndpointIPAddress': '2001:db8:0:0:0:0:0:1'}, {'id': (AZURE_ID % 'mine').replace('1234-4', 'ABCD-4')}, {'id': (AZURE_ID % 'mine').upper()}])
def test_endpoints_that_nobody_could_use_or_delete(place, wrong):
	server, group = place
	path = at(group, 'AZURE', ready(server, group, 'AZURE'), True)
	assert server.post(path, json={**ENDPOINTS['AZURE'], **wrong}).status_code == 400


def test_a_wrong_address_fails_the_service(start_server):
	"""And is tried again, by a call or a new beginning."""
	server = start_server('--private-endpoints', '192.0.2.77:2000-2001', record=client.EXCHANGES)
	ask_for(server, 'false')
	group = server.group
	for provider in REGIONS:
		service = make(server, group, provider)['id']
		doc = service_in(server, group, provider, service, 'FAILED')
		assert '192.0.2.77' in doc['errorMessage']
		refused(server.post(at(group, provider, service, True), json=ENDPOINTS[provider]), 409, 'PRIVATE_ENDPOINT_SERVICE_NOT_READY')
		if provider == 'AWS':
			doc = ok(server.patch(base(group, 'endpointService/' + service), json={'cloudProvider': 'AWS'}))
			assert doc['status'] == 'INITIATING' and 'errorMessage' not in doc
			service_in(server, group, provider, service, 'FAILED')
		ok(server.delete(at(group, provider, service)), 204)


@pytest.mark.parametrize('value', ['127.0.0.1', '0.0.0.0', '10.0.0.0/24', 'here', '10.0.0.1:5', '10.0.0.1:9-5', '10.0.0.1:1-70000', '::1'])
def test_addresses_that_are_refused(value, tmp_path):
	done = cli('serve', '--data', tmp_path / 'data', '--private-endpoints', value, check=False)
	assert done.returncode == 2 and '--private-endpoints' in done.stderr
