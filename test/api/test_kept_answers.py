"""Answers that are given again as they were: never after something has changed that they show, and never to others than before. Each
reader's view of a project, a cluster and a list is read until it is kept; then something changes, and the next read has to show it."""
import contextlib, re

import pytest

from client import REMOTE, links, metric, ok, pass_time, refused
from test_clusters import body, create, instant, path, region, settle
from test_revocation import Tenant

# A header of the service itself: its answer is made anew.
FRESH = {'X-Steward-Fresh': '1'}
DIALECT = '/api/atlas/v2'


@pytest.fixture
def server(older_server):
	"""Recorded apart: many of these answers have an older version's form."""
	return older_server


@pytest.fixture
def tenant(server):
	server.control('engine', {})
	t = Tenant(server)
	yield t
	t.server.control('engine', {})
	for c in t.api.get(path(t.group)).json().get('results', []):
		t.api.delete(path(t.group, c['name']))


def views(group, name):
	"""Path and headers of all that is kept, in all its forms."""
	accept = lambda date, stem='svc': {'Accept': 'application/vnd.%s.%s+json' % (stem, date)}
	for where in ('/groups/' + group, path(group, name), path(group)):
		yield where, {}
		yield where + '?pretty=true', {}
		yield where + '?envelope=true', {}
		yield '/api/svc/v2%s?envelope=true&pretty=true' % where, accept('2023-01-01')
		yield DIALECT + where, accept('2025-03-12', 'atlas')
	for where in (path(group, name), path(group)):
		yield where, accept('2023-02-01')
		yield where, {'Use-Effective-Instance-Fields': 'true'}
	for query in ('?itemsPerPage=1', '?itemsPerPage=1&pageNum=2', '?includeCount=false', '?q=' + name, '?sort=-name'):
		yield path(group) + query, {}


def read(api, where, headers):
	"""As it is written: the session of a suite that speaks a dialect would turn it."""
	url = api.server.base_url + (where if where.startswith('/api') else '/api/svc/v2' + where)
	r = api.session.get(url, headers=headers, timeout=60)
	return r.status_code, r.text, r.headers.get('ETag'), r.headers.get('Content-Type'), r.headers.get('X-Steward-Progress')


def same(api, where, headers):
	"""What the next read shows, which is what is shown again and what is made anew. A job that is at work may come in between."""
	for _ in range(5):
		first, again, fresh = read(api, where, headers), read(api, where, headers), read(api, where, {**headers, **FRESH})
		if first == again == fresh:
			return first
		assert re.search('CREATING|UPDATING', first[1] + fresh[1]), (where, first, again, fresh)
	raise AssertionError(where)


def seen(api, group, name):
	return {(where, tuple(headers.items())): same(api, where, headers) for where, headers in views(group, name)}


@contextlib.contextmanager
def changes(api, group, name, *what):
	"""Whether the views of these paths differ before and after: at once, and all of them but those of a part of a list."""
	before = seen(api, group, name)
	yield
	after = seen(api, group, name)
	for key in before:
		where = key[0].partition('?')[0].replace('/api/svc/v2', '').replace(DIALECT, '')
		if where in what and not re.search('itemsPerPage|q=', key[0]):
			assert before[key] != after[key], key


def test_each_change_is_seen_at_once(tenant, server):
	api, group = tenant.api, tenant.group
	server.refill()
	first = create(Owner(server, api), group, 'first')
	create(Owner(server, api), group, 'second')
	one, all_of, project = path(group, 'first'), path(group), '/groups/' + group
	served = metric(server, 'steward_answers_kept_total')
	for patch in ({'tags': [{'key': 'a', 'value': 'b'}]}, {'labels': [{'key': 'c', 'value': 'd'}]}, {'terminationProtectionEnabled': True}):
		with changes(api, group, 'first', all_of, one):
			ok(api.patch(one, json=patch))
	assert REMOTE or metric(server, 'steward_answers_kept_total') > served + 20, 'nothing was kept'
	with changes(api, group, 'first', project):
		ok(api.patch(project, json={'name': group + '-renamed'}))
	server.refill()
	with changes(api, group, 'first', all_of, one):
		ok(api.patch(one, json={'replicationSpecs': body('x', [region(size='M20')])['replicationSpecs']}))
	assert read(api, one, {})[4], 'no progress is told'
	with changes(api, group, 'first', all_of, one):
		settle(Owner(server, api), group, 'first')
	assert first['id'] in read(api, one, {})[1]
	with changes(api, group, 'first', all_of, project):
		ok(api.post(all_of, json=body('third')), 201)
	server.refill()


class Owner:
	"""A server whose caller is the tenant, for the helpers of the clusters' tests."""

	def __init__(self, server, api):
		self.server, self.api = server, api

	def __getattr__(self, name):
		return getattr(self.api if name in ('get', 'post', 'patch', 'delete') else self.server, name)


def test_what_lies_beside_a_cluster(tenant, server):
	"""Its links and headers come from other documents, which leave its revision as it is."""
	api, group = tenant.api, tenant.group
	own = Owner(server, api)
	doc = create(own, group, 'c', [region(nodes=2), region('US_WEST_2', 1, 6)])
	one = path(group, 'c')
	get = lambda: [read(api, one, {}) for _ in range(3)] and links(ok(api.get(one)))
	assert 'sampleDatasetLoad' not in str(get())
	load = ok(api.post('/groups/%s/sampleDatasetLoad/c' % group), 201)
	assert load['_id'] in str(get())
	pass_time(server, lambda: ok(api.get('/groups/%s/sampleDatasetLoad/%s' % (group, load['_id'])))['state'] == 'COMPLETED')
	assert not any(rel.endswith('outageSimulation') for rel in get())
	ok(api.post(one + '/outageSimulation', json={'outageFilters': [{'cloudProvider': 'AWS', 'regionName': 'US_WEST_2'}]}))
	assert any(rel.endswith('outageSimulation') for rel in get())
	settle(own, group, 'c')
	assert not any(rel.endswith('backupSchedule') for rel in get())
	ok(api.patch(one, json={'backupEnabled': True}))
	settle(own, group, 'c')
	assert any(rel.endswith('/backupSchedule') for rel in get())
	assert ok(api.get(one))['id'] == doc['id']


def test_time_alone(tenant, server):
	"""What ends by itself, while nothing is written."""
	api, group = tenant.api, tenant.group
	create(Owner(server, api), group, 'c')
	one = path(group, 'c')
	wanted = {'grantType': 'CLUSTER_DATABASE_LOGS', 'expirationTime': instant(server, 600)}
	assert api.post(one + ':grantVendorEmployeeAccess', json=wanted).status_code == 204
	for where in (one, path(group)):
		assert all('"vendorEmployeeAccessGrant"' in read(api, where, {})[1] for _ in range(4))
	server.advance(601)
	for where in (one, path(group)):
		assert '"vendorEmployeeAccessGrant"' not in read(api, where, {})[1]


def test_other_readers(tenant, server):
	"""A kept answer is found by who may have it, in that caller's view, under whatever name the service was reached."""
	api, group = tenant.api, tenant.group
	create(Owner(server, api), group, 'c')
	account, reader = tenant.account(roles=['ORG_MEMBER'])
	refused(reader.get('/groups/' + group), 403)
	for where in ('/groups/' + group, path(group, 'c'), path(group)):
		owned = [ok(api.get(where)) for _ in range(3)][-1]
		assert reader.get(where).status_code in (401, 403)
		assert ok(api.get(where, headers={'Host': 'elsewhere.example'})) == owned
	accounts = '/groups/%s/serviceAccounts/%s' % (group, account['clientId'])
	ok(api.post(accounts + ':invite', json={'roles': ['GROUP_READ_ONLY']}))
	for where in ('/groups/' + group, path(group, 'c')):
		owned, other = ok(api.get(where)), [ok(reader.get(where)) for _ in range(3)][-1]
		assert {**owned, 'links': 0} == {**other, 'links': 0} and set(links(other)) < set(links(owned))
		told = reader.get(where, headers={'X-Steward-Describe-Caller': '1'})
		assert where != '/groups/' + group or 'GROUP_READ_ONLY' in told.headers['X-Steward-Caller-Roles']
	ok(api.patch(accounts, json={'roles': ['GROUP_CLUSTER_MANAGER']}))
	assert len(links(ok(reader.get('/groups/' + group)))) >= len(links(other))
	ok(api.delete(accounts), 204)
	for where in ('/groups/' + group, path(group, 'c'), path(group)):
		assert reader.get(where).status_code in (401, 403)
