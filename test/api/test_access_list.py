"""The project's IP access list."""
import datetime, time

import pytest

from client import bare, links, ok, refused, until


@pytest.fixture
def url(server):
	return '/groups/%s/accessList' % server.project()['id']


def values(listed):
	return [e.get('cidrBlock') or e['awsSecurityGroup'] for e in listed['results']]


def now(server):
	return datetime.datetime.fromisoformat(server.control('clock', method='GET')['now'].replace('Z', '+00:00'))


def after(server, **kw):
	return (now(server) + datetime.timedelta(**kw)).strftime('%Y-%m-%dT%H:%M:%SZ')


def test_add_list_get_delete(server, url):
	listed = ok(server.post(url, json=[{'ipAddress': '192.0.2.15', 'comment': 'the office'}, {'cidrBlock': '10.1.2.3/8'},
					   {'cidrBlock': '2001:db8:0:0:0:0:0:7/64'}, {'awsSecurityGroup': 'sg-0a1b2c3d'}]))
	assert values(listed) == ['192.0.2.15/32', '10.0.0.0/8', '2001:db8:0:0:0:0:0:0/64', 'sg-0a1b2c3d']
	assert listed['totalCount'] == 4
	first = listed['results'][0]
	assert first['ipAddress'] == '192.0.2.15' and first['comment'] == 'the office' and first['groupId'] in url
	assert ok(server.get(url))['results'] == listed['results']
	one = ok(server.get(links(first)['self']))
	assert bare(one) == bare(first) and any(rel.endswith('/status') for rel in links(one))
	assert ok(server.get(links(first)['self'] + '/status'))['STATUS'] == 'ACTIVE'
	ok(server.delete(url + '/192.0.2.15'), 204)
	refused(server.delete(url + '/192.0.2.15'), 404)
	refused(server.get(url + '/192.0.2.15'), 404)
	refused(server.get(url + '/192.0.2.15/status'), 404)
	refused(server.get(url + '/nonsense'), 404)
	ok(server.delete(url + '/sg-0a1b2c3d'), 204)
	assert ok(server.get(url + '?itemsPerPage=1&pageNum=2'))['totalCount'] == 2


def test_networks_in_paths(module_server):
	"""Not recorded: the check of recordings takes %2F for a slash."""
	s = module_server
	url = '/groups/%s/accessList' % s.project()['id']
	listed = ok(s.post(url, json=[{'ipAddress': '192.0.2.15'}, {'cidrBlock': '10.1.2.3/8'}, {'ipAddress': '2001:db8:0:0:0:0:0:1'},
				      {'cidrBlock': '2001:db8:0:0:0:0:0:7/64'}, {'cidrBlock': '192.0.2.0%2F24'},
				      {'awsSecurityGroup': '123456789012/sg-0123456789abcdef0'}]))
	assert len(listed['results']) == 6
	for e in listed['results']:
		assert bare(ok(s.get(links(e)['self']))) == bare(e)
		ok(s.get(links(e)['self'] + '/status'))
	ok(s.get(url + '/192.0.2.15%2F32'))
	for e in listed['results']:
		ok(s.delete(links(e)['self']), 204)
	assert ok(s.get(url))['totalCount'] == 0


def test_adding_again_changes(server, url):
	ok(server.post(url, json=[{'ipAddress': '192.0.2.15', 'comment': 'one'}]))
	listed = ok(server.post(url, json=[{'cidrBlock': '192.0.2.15/32', 'comment': 'two'}]))
	assert [e['comment'] for e in listed['results']] == ['two']


@pytest.mark.parametrize('entry, path', [
	({}, '[0]'), ({'comment': 'x'}, '[0]'), ({'ipAddress': '192.0.2.1', 'cidrBlock': '192.0.2.1/32'}, '[0]'),
	({'ipAddress': '192.0.2.1', 'awsSecurityGroup': 'sg-0a1b2c3d'}, '[0]'),
	({'cidrBlock': '300.0.2.1/32'}, '[0].cidrBlock'), ({'cidrBlock': '192.0.2.1/33'}, '[0].cidrBlock'),
	({'cidrBlock': '192.0.2.1/24 '}, '[0].cidrBlock'), ({'ipAddress': '192.0.2'}, '[0].ipAddress'),
	({'awsSecurityGroup': 'sg-'}, '[0].awsSecurityGroup'), ({'awsSecurityGroup': 'sg-123'}, '[0].awsSecurityGroup'),
	({'awsSecurityGroup': '1/sg-0a1b2c3d'}, '[0].awsSecurityGroup'),
	({'ipAddress': '192.0.2.1', 'comment': 'x' * 81}, '[0].comment'),
	({'ipAddress': '192.0.2.1', 'deleteAfterDate': 'tomorrow'}, '[0].deleteAfterDate'),
	({'ipAddress': '192.0.2.1', 'deleteAfterDate': '2020-01-01T00:00:00Z'}, '[0].deleteAfterDate'),
	({'ipAddress': '192.0.2.1', 'groupId': '0' * 24}, '[0].groupId'),
])
def test_refuses(server, url, entry, path):
	refused(server.post(url, json=[entry]), 400, None, path)
	assert ok(server.get(url))['results'] == []


def test_refuses_all_at_once(server, url):
	doc = refused(server.post(url, json=[{'ipAddress': '192.0.2.1'}, {'cidrBlock': '192.0.2.1/99'}, {}]), 400)
	assert doc['parameters'] == ['[1].cidrBlock', '[2]']
	refused(server.post(url, json=[]), 400)
	refused(server.post(url, json={}), 400)


def test_roles(server):
	project = server.seed({'name': 'Roles', 'projects': ['p'], 'principals': [
		{'type': 'apiKey', 'projectRoles': [{'project': 'p', 'roles': [role]}]}
		for role in ('GROUP_READ_ONLY', 'GROUP_NETWORK_ACCESS_MANAGER')]})[0]
	reader, manager = map(server.api_for, project['principals'])
	url = '/groups/%s/accessList' % project['projects'][0]['id']
	refused(reader.post(url, json=[{'ipAddress': '192.0.2.1'}]), 403)
	ok(manager.post(url, json=[{'ipAddress': '192.0.2.1'}]))
	ok(reader.get(url + '/192.0.2.1'))
	refused(reader.delete(url + '/192.0.2.1'), 403)
	refused(server.get(url), 401)


def test_limit(server, url):
	limit = url.replace('/accessList', '/limits/svc.project.security.networkAccess.entries')
	ok(server.patch(limit, json={'value': 3}))
	ok(server.post(url, json=[{'ipAddress': '192.0.2.1'}, {'ipAddress': '192.0.2.2'}]))
	doc = refused(server.post(url, json=[{'ipAddress': '192.0.2.1'}, {'ipAddress': '192.0.2.3'}, {'ipAddress': '192.0.2.4'}]),
		      400, 'PROJECT_LIMIT_EXCEEDED')
	assert doc['parameters'] == ['svc.project.security.networkAccess.entries', '2', '3']
	assert '2 of at most 3' in doc['detail']
	ok(server.post(url, json=[{'ipAddress': '192.0.2.1'}, {'ipAddress': '192.0.2.3'}]))
	assert ok(server.get(limit))['currentUsage'] == 3


def test_temporary_entries(start_server):
	s = start_server()
	url = '/groups/%s/accessList' % s.group
	limit = url.replace('/accessList', '/limits/svc.project.security.networkAccess.entries')
	ok(s.post(url, json=[{'ipAddress': '192.0.2.1'}, {'ipAddress': '192.0.2.2', 'deleteAfterDate': after(s, hours=1)},
			     {'ipAddress': '192.0.2.3', 'deleteAfterDate': after(s, days=7)}]))
	refused(s.post(url, json=[{'ipAddress': '192.0.2.4', 'deleteAfterDate': after(s, days=7, minutes=1)}]), 400, None,
		'[0].deleteAfterDate')
	s.advance(3599)
	assert ok(s.get(url))['totalCount'] == 3
	s.advance(1)
	assert values(ok(s.get(url))) == ['192.0.2.1/32', '192.0.2.3/32'] and ok(s.get(url))['totalCount'] == 2
	refused(s.get(url + '/192.0.2.2'), 404)
	refused(s.delete(url + '/192.0.2.2'), 404)
	until(lambda: ok(s.get(limit))['currentUsage'] == 2, what='the sweep')
	# It can come back, and what was temporary can be made to stay.
	ok(s.post(url, json=[{'ipAddress': '192.0.2.2', 'deleteAfterDate': after(s, hours=1)}, {'ipAddress': '192.0.2.3'}]))
	s.advance(8 * 86400)
	assert values(ok(s.get(url))) == ['192.0.2.1/32', '192.0.2.3/32']


def test_it_goes_with_its_project(start_server):
	s = start_server()
	group = s.project()['id']
	ok(s.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1', 'deleteAfterDate': after(s, hours=1)}]))
	ok(s.delete('/groups/' + group), 204)
	s.advance(3700)
	time.sleep(1.5)
	ok(s.get('/groups'))
