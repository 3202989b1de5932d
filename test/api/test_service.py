"""The root, the rate limits as a resource, the control plane's addresses, event types."""
import ipaddress

from client import BASE, links, ok, refused, unique
from derive import Api as Data

data = Data()


def test_root(server):
	doc = ok(server.get(''))
	assert doc['appName'] == 'Service' and doc['build'] and doc['throttling'] is False
	assert links(doc)['self'] == server.base_url + BASE
	assert 'apiKey' not in doc, 'the caller is a service account'
	refused(server.anonymous.get(''), 401)
	refused(server.delete(''), 405)


def test_root_names_the_key(server):
	doc = ok(server.digest.get(''))
	assert doc['apiKey']['publicKey'] == server.bootstrap['apiKey']['publicKey']
	assert {'orgId': server.org, 'roleName': 'ORG_OWNER'} in doc['apiKey']['roles']
	assert doc['apiKey']['accessList'] == []
	assert 'privateKey' not in str(doc)


def test_rate_limits(server):
	doc = ok(server.get('/rateLimits'))
	assert doc['totalCount'] == 67 == len(doc['results'])
	for x in doc['results']:
		s = data.sets[x['endpointSetId']]
		assert (x['endpointSetName'], x['scope'], x['capacity'], x['refillRate'],
				x['refillDurationSeconds']) == (
			s['name'], s['scope'], s['capacity'], s['refillRate'], s['refillDurationSeconds'])
		got = {(e['method'], e['path'].split(BASE)[-1]) for e in x['endpoints']}
		assert got == {(op['method'], op['path']) for op in s['ops']}, x['endpointSetId']
		assert [l['rel'] for l in x['links']] == ['self']


def test_rate_limits_pages(server):
	doc = ok(server.get('/rateLimits?itemsPerPage=50&pageNum=2'))
	assert len(doc['results']) == 17 and doc['totalCount'] == 67


def test_rate_limits_filters(server):
	ids = lambda **q: {x['endpointSetId'] for x in ok(server.get('/rateLimits', params=q))['results']}
	by_scope = lambda s: {k for k, v in data.sets.items() if v['scope'] == s}
	assert ids(groupId=server.group) == by_scope('GROUP')
	assert ids(orgId=server.org) == by_scope('ORGANIZATION')
	assert ids(ipAddress='127.0.0.1') == by_scope('IP')
	assert ids(userId=server.bootstrap['userId']) == by_scope('USER')
	assert ids(name='Clusters') >= {'S17'} and 'S01' not in ids(name='Clusters')
	assert 'S17' in ids(endpointPath='/groups/{groupId}/clusters') or 'S17' in ids(endpointPath=BASE
			+ '/groups/{groupId}/clusters')
	assert ids(name='no set has this name') == set()


def test_rate_limits_refusals(server):
	refused(server.get('/rateLimits?groupId=x'), 400, None, 'groupId')
	refused(server.get('/rateLimits?ipAddress=300.1.1.1'), 400, None, 'ipAddress')
	refused(server.get('/rateLimits?what=1'), 400, None, 'what')
	refused(server.anonymous.get('/rateLimits'), 401)
	refused(server.get('/rateLimits/S99'), 404, 'RATE_LIMIT_NOT_FOUND')
	refused(server.get('/rateLimits/S17?what=1'), 400, None, 'what')
	refused(server.anonymous.get('/rateLimits/S17'), 401)


def test_one_rate_limit(server):
	doc = ok(server.get('/rateLimits/S17'))
	assert doc['endpointSetId'] == 'S17' and doc['capacity'] == 10000 and doc['refillRate'] == 5000
	assert links(doc)['self'].startswith(server.base_url + BASE + '/rateLimits/S17')


def test_limits_of_a_scope_that_is_not_ones_own(server):
	org, = server.seed({'name': unique('other'), 'projects': ['p']})
	assert server.get('/rateLimits?groupId=' + org['projects'][0]['id']).status_code in (401, 404)
	assert server.get('/rateLimits?orgId=' + org['id']).status_code in (401, 404)


def test_control_plane_addresses(server):
	r = server.anonymous.get('/unauth/controlPlaneIPAddresses')
	doc = ok(r)
	assert r.headers['RateLimit-Limit'] == '400'
	for direction in ('inbound', 'outbound'):
		for provider, regions in doc[direction].items():
			assert provider in ('aws', 'azure', 'gcp')
			for addresses in regions.values():
				for a in addresses:
					ipaddress.ip_network(a)
	refused(server.anonymous.get('/unauth/controlPlaneIPAddresses?x=1'), 400, None, 'x')
	refused(server.anonymous.post('/unauth/controlPlaneIPAddresses', json={}), 405)
	# credentials are not needed, but wrong ones do not matter either
	assert server.anonymous.get('/unauth/controlPlaneIPAddresses',
			headers={'Authorization': 'Bearer x'}).status_code in (200, 401)


def test_event_types(server):
	doc = ok(server.get('/eventTypes?itemsPerPage=500'))
	names = [x['eventType'] for x in doc['results']]
	assert len(names) == len(set(names)) == min(doc['totalCount'], 500) > 20
	assert all(isinstance(x['alertable'], bool) and x['description'] for x in doc['results'])
	first = ok(server.get('/eventTypes?itemsPerPage=2&pageNum=2'))
	assert [x['eventType'] for x in first['results']] == names[2:4]
	refused(server.anonymous.get('/eventTypes'), 401)
	refused(server.get('/eventTypes?x=1'), 400, None, 'x')
