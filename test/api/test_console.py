"""The console's files and headers, compressed answers, and the overview: contents, rights, search, order."""
import concurrent.futures, gzip, json, re
from urllib.parse import quote

import pytest

from client import NO_ID, Wire, bare, leave, ok, pass_time, refused, unique, until
from test_clusters import body, path as clusters

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; "
	  "frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
GUARDS = {'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer',
	  'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Resource-Policy': 'same-origin', 'X-Frame-Options': 'DENY'}
HOSTILE = ['<script>alert(1)</script>', '"};alert(1)//', 'javascript:alert(1)', '\u202e<img src=x onerror=1>', '${7*7}{{7*7}}']


class Browser:
	"""Asks for paths beside the API as a browser does."""

	def __init__(self, server):
		self.server = server

	def ask(self, method, path, **headers):
		return self.server.anonymous.request(method, self.server.base_url + path, allow_redirects=False,
						     headers={'Accept-Encoding': 'gzip, deflate, br', **headers})

	def get(self, path, **headers):
		return self.ask('GET', path, **headers)


@pytest.fixture(scope='module')
def browser(module_server):
	return Browser(module_server)


@pytest.fixture(autouse=True)
def full(module_server):
	module_server.refill()


@pytest.fixture(scope='module')
def page(browser):
	r = browser.get('/console/')
	if r.status_code == 404 and r.json()['errorCode'] == 'CONSOLE_NOT_BUILT':
		assert 'script/npm-packages' in r.json()['detail']
		pytest.skip('this program was built without the console: its libraries could not be fetched')
	assert r.status_code == 200
	return r


def guarded(r):
	for name, value in GUARDS.items():
		assert r.headers.get(name) == value, (name, dict(r.headers))
	policy = r.headers['Permissions-Policy']
	assert 'camera=()' in policy and 'publickey-credentials-get=(self)' in policy
	return r


def test_the_page(browser, page):
	assert guarded(page).headers['Content-Type'] == 'text/html; charset=utf-8' and page.headers['Cache-Control'] == 'no-cache'
	assert not re.search(r'<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|{{|<!-- preload', page.text), 'nothing inline'
	for path in ('/console/projects/%s/clusters' % NO_ID, '/console/reset/abc', '/console/x.js'):
		assert guarded(browser.get(path)).text == page.text, path
	head = guarded(browser.ask('HEAD', '/console/'))
	assert head.status_code == 200 and not head.content
	assert refused(browser.ask('POST', '/console/'), 405) and refused(browser.ask('DELETE', '/console/projects'), 405)
	for path in ('/', '/console'):
		lead = guarded(browser.get(path))
		assert (lead.status_code, lead.headers['Location']) == (302, '/console/')


def test_its_files(browser, page):
	"""Everything that the page names is there, compressed, kept for ever below one hash; another hash is not the page."""
	named = re.findall(r'(?:href|src)="(/console/([0-9a-f]{16})/([^"]+))"', page.text)
	assert len({x[1] for x in named}) == 1 and 'js/main.js' in {x[2] for x in named}
	sizes = int(page.headers['Content-Length'])
	for path, _, name in set(named):
		r = guarded(browser.get(path))
		assert r.status_code == 200 and r.headers['Content-Encoding'] == 'gzip' and r.headers['Vary'] == 'accept-encoding'
		assert r.headers['Cache-Control'] == 'public, max-age=31536000, immutable'
		assert r.headers['Content-Type'].split(';')[0] in ('text/javascript', 'text/css', 'application/json', 'image/svg+xml')
		sizes += int(r.headers['Content-Length'])
		plain = browser.get(path, **{'Accept-Encoding': 'identity'})
		assert plain.content == r.content and 'Content-Encoding' not in plain.headers
		refused(browser.get(path.replace(path.split('/')[2], '0' * 16)), 404, 'RESOURCE_NOT_FOUND')
	assert sizes <= 60 << 10, 'the first load'
	base = '/console/%s/' % named[0][1]
	for wrong in ('', 'js', 'js/', 'js/main.js/', 'package.json', '%2e%2e/main.js', 'js/main.js%00'):
		refused(browser.get(base + wrong), 404)
	assert browser.get(base + 'lib/uplot.css').status_code == browser.get(base + 'lib/LICENSES.txt').status_code == 200


def test_tokens_are_not_logged(start_server):
	server = start_server('--log-format', 'json')
	for kind in ('first', 'reset', 'invitations'):
		assert Browser(server).get('/console/%s/SECRETSECRETSECRET' % kind).status_code in (200, 404)
	server.stop()
	assert 'SECRETSECRET' not in server.stderr and '/console/first/' in server.stderr


# Compressed answers

def test_gzip_of_large_answers(module_server):
	server = module_server
	projects = [server.project(unique('gz%02d-' % i)) for i in range(12)]
	with Wire(server, server.token()) as wire:
		whole = wire.one('GET', '/api/svc/v2/groups')
		assert len(whole.body) > 4096 and whole.header('vary') == 'accept-encoding' and not whole.header('content-encoding')
		for accepts, packed in (('gzip', True), ('br, gzip;q=0.5', True), ('*', True), ('GZIP', True), ('deflate', False), ('identity', False),
					('gzip;q=0', False), ('gzip;q=0.0, *', False), ('*;q=0', False)):
			r = wire.one('GET', '/api/svc/v2/groups', headers={'Accept-Encoding': accepts})
			assert (r.header('content-encoding') == 'gzip') == packed, accepts
			assert r.header('vary') == 'accept-encoding'
			assert (gzip.decompress(r.body) if packed else r.body) == whole.body, accepts
			assert not packed or len(r.body) < len(whole.body) / 3
		head = wire.one('HEAD', '/api/svc/v2/groups', headers={'Accept-Encoding': 'gzip'})
		assert head.status == 200 and not head.body
		small = wire.one('GET', '/api/svc/v2/groups/%s/limits/svc.project.deployment.clusters' % projects[0]['id'], headers={'Accept-Encoding': 'gzip'})
		assert small.status == 200 and not small.header('content-encoding') and not small.header('vary')
		refusal = wire.one('GET', '/api/svc/v2/groups/' + NO_ID, headers={'Accept-Encoding': 'gzip'})
		assert refusal.status == 404 and not refusal.header('content-encoding')
	document = Browser(server).get('/openapi.json')
	assert document.headers['Content-Encoding'] == 'gzip' and document.json()['openapi']
	for p in projects:
		ok(server.delete('/groups/' + p['id']), 204)


# The overview

OVERVIEW = '/api/console/overview'


@pytest.fixture(scope='module')
def fleet(module_server):
	"""Two organizations; in the first two projects with clusters."""
	server = module_server
	one, two = server.seed(
		{'name': unique('fleet'), 'projects': ['alpha', 'beta'], 'principals': [
			{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, {'type': 'serviceAccount', 'roles': ['ORG_MEMBER']}]},
		{'name': unique('other'), 'projects': ['gamma'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	one['api'], two['api'] = server.api_for(one['principals'][0]), server.api_for(two['principals'][0])
	groups = {p['name']: p['id'] for o in (one, two) for p in ok(o['api'].get('/orgs/%s/groups' % o['id']))['results']}
	for org, group, name, more in ((one, 'alpha', 'orders', {'backupEnabled': True}), (one, 'alpha', 'Archive', {}), (one, 'beta', 'orders-eu', {}),
				       (two, 'gamma', 'secret', {})):
		ok(org['api'].post(clusters(groups[group]), json=body(name, **more)), 201)
	pass_time(server, lambda: all(x['stateName'] == 'IDLE' for o in (one, two) for x in seen(o['api'])['results']), 5)
	yield {'server': server, 'one': one, 'two': two, 'groups': groups}
	for org, group in ((one, 'alpha'), (one, 'beta'), (two, 'gamma')):
		leave(server, groups[group])


def seen(api, **query):
	return ok(api.get(OVERVIEW, params=query))


def names(api, **query):
	return [x['name'] for x in seen(api, **query)['results']]


def test_overview_rows(fleet):
	api, groups = fleet['one']['api'], fleet['groups']
	fleet['server'].advance(180)
	r = seen(api)
	assert r['totalCount'] == 3 and [x['name'] for x in r['results']] == ['Archive', 'orders', 'orders-eu']
	row = r['results'][1]
	cluster = ok(api.get(clusters(groups['alpha'], 'orders')))
	assert {k: row[k] for k in ('id', 'name', 'groupId', 'groupName', 'orgId', 'stateName', 'paused', 'clusterType', 'instanceSize', 'backupEnabled')} == {
		'id': cluster['id'], 'name': 'orders', 'groupId': groups['alpha'], 'groupName': 'alpha', 'orgId': fleet['one']['id'], 'stateName': 'IDLE',
		'paused': False, 'clusterType': 'REPLICASET', 'instanceSize': 'M10', 'backupEnabled': True}
	assert cluster['dbVersion'] == row['version'] and row['nodesTotal'] == row['nodesUp'] == 3 == len(row['nodes'])
	assert sorted(n['role'] for n in row['nodes']) == ['PRIMARY', 'STANDBY', 'STANDBY']
	assert row['primary'] == next(n['name'] for n in row['nodes'] if n['role'] == 'PRIMARY')
	assert row['diskBytes'] > 0 and row['lagSeconds'] >= 0
	assert len(r['activity']) == 20 or len(r['activity']) > 3
	assert {e['orgId'] for e in r['activity']} == {fleet['one']['id']}
	assert r['activity'] == sorted(r['activity'], key=lambda e: e['created'], reverse=True)


def test_overview_rights(fleet):
	server, one, two = fleet['server'], fleet['one'], fleet['two']
	assert names(two['api']) == ['secret'] and names(two['api'], q='orders') == []
	# Whether another's organization or project is there, nobody is told: not by a role in a project of one's own, either.
	own = server.seed({'name': unique('guest'), 'projects': ['delta'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'delta', 'roles': ['GROUP_OWNER']}]}]})[0]
	guest = server.api_for(own['principals'][0])
	assert names(guest, orgId=own['id']) == [] == names(guest, groupId=own['projects'][0]['id'])
	for api in (two['api'], guest):
		for name, code, theirs in (('orgId', 'ORG_NOT_FOUND', one['id']), ('groupId', 'GROUP_NOT_FOUND', fleet['groups']['alpha'])):
			foreign, missing = (refused(api.get(OVERVIEW, params={name: x}), 404, code) for x in (theirs, NO_ID))
			assert json.loads(json.dumps(foreign).replace(theirs, NO_ID)) == missing
	refused(server.anonymous.get(OVERVIEW), 401)
	refused(two['api'].post(OVERVIEW, json={}), 405)
	# A member of the organization sees the projects that it has a role in; with the next call after that.
	member = server.api_for(one['principals'][1])
	assert seen(member)['results'] == [] and not any('clusterName' in e for e in seen(member)['activity'])
	account = one['principals'][1]
	account = account.get('clientId') or account['id']
	ok(one['api'].post('/groups/%s/serviceAccounts/%s:invite' % (fleet['groups']['beta'], account), json={'roles': ['GROUP_READ_ONLY']}))
	assert names(member) == ['orders-eu']


def test_overview_search_and_order(fleet):
	api, groups = fleet['one']['api'], fleet['groups']
	assert names(api, q='ORD') == ['orders', 'orders-eu'] and names(api, q='beta') == ['orders-eu'] and names(api, q='%') == []
	assert names(api, groupId=groups['alpha']) == ['Archive', 'orders'] and len(names(api, orgId=fleet['one']['id'])) == 3
	assert names(api, sort='-name') == ['orders-eu', 'orders', 'Archive']
	assert names(api, sort='-groupName') == ['orders-eu', 'Archive', 'orders']
	for order in ('stateName', 'version', 'instanceSize', 'lastBackupAt', 'created', 'attention', '-attention'):
		assert sorted(names(api, sort=order)) == ['Archive', 'orders', 'orders-eu'], order
	page = seen(api, itemsPerPage=2, pageNum=2)
	assert [x['name'] for x in page['results']] == ['orders-eu'] and page['totalCount'] == 3
	assert seen(api, pageNum=9)['results'] == []
	refused(api.get(OVERVIEW, params={'sort': 'color'}), 400, 'VALIDATION_ERROR', 'sort')
	refused(api.get(OVERVIEW, params={'colour': 'red'}), 400, 'VALIDATION_ERROR', 'colour')
	refused(api.get(OVERVIEW, params={'groupId': 'x'}), 404, 'GROUP_NOT_FOUND')


def test_overview_follows(fleet):
	"""What changed is there with the next call: names, states, clusters that came and went."""
	server, api, groups = fleet['server'], fleet['one']['api'], fleet['groups']
	ok(api.post(clusters(groups['beta']), json=body('passing')), 201)
	row = next(x for x in seen(api)['results'] if x['name'] == 'passing')
	assert row['stateName'] == 'CREATING'
	pass_time(server, lambda: seen(api, q='passing')['results'][0]['stateName'] == 'IDLE', 5)
	ok(api.patch(clusters(groups['beta'], 'passing'), json={'paused': True}))
	assert seen(api, q='passing')['results'][0]['paused'] is True
	ok(api.delete(clusters(groups['beta'], 'passing')), 202)
	pass_time(server, lambda: names(api, q='passing') == [], 5)
	# The name of a project may come a second later; without another commit, too.
	for name in ('beta-2', 'beta'):
		ok(api.patch('/groups/' + groups['beta'], json={'name': name}))
		until(lambda: seen(api, q='orders-eu')['results'][0]['groupName'] == name, what='the new name')


def test_overview_shows_each_their_own_writes(fleet):
	"""Those who ask at once share the work, and each sees what it has written before."""
	server, group = fleet['server'], fleet['groups']['beta']

	def work(mark):
		api = server.api_for(fleet['one']['principals'][0])
		for n in range(3):
			name = '%s-%d' % (mark, n)
			ok(api.post(clusters(group), json=body(name)), 201)
			assert names(api, q=name) == [name]
			ok(api.delete(clusters(group, name)), 202)
			assert [x['stateName'] for x in seen(api, q=name)['results']] in ([], ['DELETING'])
	with concurrent.futures.ThreadPoolExecutor(3) as pool:
		list(pool.map(work, ('own-a', 'own-b', 'own-c')))
	pass_time(server, lambda: names(fleet['one']['api'], q='own-') == [], 5)


def test_attention(fleet):
	"""An alert, with its reason and what to do, until it ends; all that need attention first where that is asked for."""
	server, api, group = fleet['server'], fleet['one']['api'], fleet['groups']['alpha']
	assert names(api, attention='true') == [] and seen(api)['attentionCount'] == 0
	ok(api.post('/groups/%s/alertConfigs' % group, json={'enabled': True, 'eventTypeName': 'HOST_DOWN', 'notifications': [
		{'typeName': 'GROUP', 'intervalMin': 5, 'delayMin': 0, 'emailEnabled': True}]}))
	of = {'groupId': group, 'clusterName': 'orders', 'hostname': 'n0.example.com', 'port': 5432}
	server.control('events', {**of, 'eventTypeName': 'HOST_DOWN'})
	r = seen(api, sort='attention', itemsPerPage=1)
	assert r['attentionCount'] == 1 and r['results'][0]['name'] == 'orders' and r['totalCount'] == 3
	need, = r['results'][0]['attention']
	assert need['code'] == 'ALERT_OPEN' and 'HOST_DOWN' in need['text'] and need['nextStep'] and need['operationId'] == 'acknowledgeAlert'
	alert = ok(api.get('/groups/%s/alerts/%s' % (group, need['alertId'])))
	assert alert['clusterName'] == 'orders' and alert['status'] == 'OPEN'
	told = {**need, 'clusterName': 'orders', 'groupId': group, 'groupName': 'alpha', 'orgId': fleet['one']['id']}
	assert seen(api, q='Archive', attention='false')['attention'] == [] and seen(api, pageNum=3)['attention'] == r['attention'] == [told]
	assert names(api, attention='true') == ['orders'] and seen(fleet['two']['api'])['attention'] == []
	server.control('events', {**of, 'eventTypeName': 'HOST_UP'})
	assert seen(api)['attentionCount'] == 0
	# The events are shown with their cluster, whatever it is called.
	server.control('events', {**of, 'clusterName': 'x"},{"y', 'eventTypeName': 'HOST_DOWN'})
	assert seen(api)['activity'][0]['clusterName'] in ('x"},{"y', 'orders') and seen(api, groupId=group)['activity']


def test_hostile_names_stay_data(fleet):
	server, one = fleet['server'], fleet['one']
	made = []
	for name in HOSTILE:
		r = one['api'].post('/groups', json={'name': name, 'orgId': one['id']})
		if r.status_code in (200, 201):
			made.append((name, r.json()['id']))
	for name, group in made:
		ok(one['api'].post(clusters(group), json=body('h')), 201)
	r = one['api'].get(OVERVIEW, params={'q': 'h', 'itemsPerPage': 500})
	assert r.headers['Content-Type'] == 'application/json' and r.headers['X-Content-Type-Options'] == 'nosniff'
	assert {x['groupName'] for x in r.json()['results'] if x['name'] == 'h'} == {name for name, _ in made}
	for name in HOSTILE:
		assert one['api'].get(OVERVIEW, params={'q': name}).status_code == 200
		assert name.encode() not in Browser(server).get('/console/' + quote(name, safe='')).content
	for _, group in made:
		leave(server, group)


def test_overview_refuses_like_others(server):
	"""Recorded beside the catalog: a success and a refusal."""
	assert 'results' in ok(server.get(OVERVIEW))
	refused(server.get(OVERVIEW, params={'itemsPerPage': 0}), 400)
	assert json.loads(server.get(OVERVIEW, params={'itemsPerPage': 1}).text)['totalCount'] >= 0


# Lists by name and in order

def test_lists_by_name_and_in_order(server):
	"""The lists of projects, organizations, teams, users and clusters, with ?q= and ?sort=; pages and counts are of what was found."""
	mark = unique('zq')
	made = [server.project('%s-%s' % (mark, x)) for x in ('beta', 'Alpha', 'gamma')]
	for path in ('/groups', '/orgs/%s/groups' % server.org):
		listed = lambda **query: [p['name'][len(mark) + 1:] for p in ok(server.get(path, params={'q': mark.upper(), **query}))['results']]
		assert listed() == ['beta', 'Alpha', 'gamma'] == listed(sort='created')
		assert listed(sort='name') == ['Alpha', 'beta', 'gamma'] and listed(sort='-name') == ['gamma', 'beta', 'Alpha']
		assert listed(sort='-created') == ['gamma', 'Alpha', 'beta']
		page = ok(server.get(path, params={'q': mark, 'sort': 'name', 'itemsPerPage': 2, 'pageNum': 2}))
		assert [p['id'] for p in page['results']] == [made[2]['id']] and page['totalCount'] == 3
		assert bare(page['results'][0]) == bare(ok(server.get('/groups/' + made[2]['id'])))
		first = ok(server.get(path, params={'q': mark, 'itemsPerPage': 2}))
		assert any(x['rel'] == 'next' and 'q=' + mark in x['href'] for x in first['links'])
		assert ok(server.get(path, params={'q': 'no-such-name-anywhere'}))['results'] == []
		assert len(ok(server.get(path, params={'sort': 'name', 'itemsPerPage': 500}))['results']) >= 3
		refused(server.get(path, params={'sort': 'size'}), 400, None, 'sort')
		refused(server.get(path, params={'q': 'x' * 101}), 400, None, 'q')
	assert ok(server.get('/orgs/%s/groups' % server.org, params={'name': mark, 'q': 'alpha'}))['totalCount'] == 1
	org = ok(server.get('/orgs/' + server.org))
	assert org['id'] in [o['id'] for o in ok(server.get('/orgs', params={'q': org['name'][1:], 'sort': '-name'}))['results']]
	teams = '/orgs/%s/teams' % server.org
	for x in ('t2', 'T1'):
		ok(server.post(teams, json={'name': '%s-%s' % (mark, x), 'usernames': []}))
	assert [t['name'][-2:] for t in ok(server.get(teams, params={'q': mark, 'sort': 'name'}))['results']] == ['T1', 't2']
	group = '/groups/' + made[0]['id']
	for x in ('cc', 'bb'):
		ok(server.post(group + '/clusters', json=body('%s-%s' % (x, mark))), 201)
	assert [c['name'][:2] for c in ok(server.get(group + '/clusters', params={'q': mark, 'sort': 'name'}))['results']] == ['bb', 'cc']
	leave(server, made[0]['id'])
	users = '/orgs/%s/users' % server.org
	for x in ('zoe', 'Ann'):
		ok(server.post(users, json={'username': '%s.%s@example.com' % (x, mark), 'roles': {'orgRoles': ['ORG_READ_ONLY']}}), 201)
	found = lambda **query: [u['username'].split('.')[0] for u in ok(server.get(users, params={'q': mark, **query}))['results']]
	assert found(sort='username') == ['ann', 'zoe'] and found(sort='-username') == ['zoe', 'ann'] and found(orgMembershipStatus='ACTIVE') == []
	ok(server.get('/groups/%s/users' % made[1]['id'], params={'q': mark, 'sort': 'username', 'includeOrgUsers': 'true'}))


def test_sizes_and_hosts(fleet):
	"""What a size means here, for those who could make or change a cluster; hosts for the operator alone."""
	server, api = fleet['server'], fleet['one']['api']
	sizes = {s['name']: s for s in ok(api.get('/api/console/sizes', params={'groupId': fleet['groups']['alpha']}))['results']}
	assert [sizes[s]['diskGB'] for s in ('M0', 'M10', 'M20', 'M30', 'M50', 'M200')] == [10, 10, 20, 40, 160, 1500], 'what a cluster of that size gets'
	assert sizes['M10']['cores'] < sizes['M50']['cores'] and sizes['M30']['memoryBytes'] == 8 << 30 and 'M0' in sizes
	assert ok(server.get('/api/console/sizes'))['results']
	other, = server.seed({'name': unique('sizes'), 'projects': ['p'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_READ_ONLY']}, {
		'type': 'serviceAccount', 'roles': ['ORG_MEMBER'], 'projectRoles': [{'project': 'p', 'roles': ['GROUP_CLUSTER_MANAGER']}]}]})
	refused(server.api_for(other['principals'][0]).get('/api/console/sizes'), 403, 'INSUFFICIENT_ROLE')
	assert ok(server.api_for(other['principals'][1]).get('/api/console/sizes'))['results']
	hosts = ok(server.get('/api/console/hosts'))
	assert hosts['totalCount'] == len(hosts['results']) == 1 and hosts['results'][0]['alive'] is True and hosts['results'][0]['cores'] > 0
	refused(api.get('/api/console/hosts'), 403, 'INSUFFICIENT_ROLE')
	for path in ('sizes', 'hosts'):
		refused(server.anonymous.get('/api/console/' + path), 401)
		refused(server.get('/api/console/%s?colour=red' % path), 400)
