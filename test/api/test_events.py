"""Events: who did what, from where and when; filters, pages, feeds; the log's proof against tampering; retention."""
import datetime, json, re, shutil, sqlite3
from xml.etree import ElementTree

import pytest

import client
from client import BASE, ID, NO_ID, ROOT, Api, Bearer, cli, links, ok, refused, unique
from derive import Api as Data

data = Data()
ATOM = '{http://www.w3.org/2005/Atom}'


def enums(schema):
	schema = data.schemas[schema['$ref']] if '$ref' in schema else schema
	found = set(schema.get('enum', []))
	for branch in schema.get('oneOf', []) + schema.get('anyOf', []):
		found |= enums(branch)
	return found


GROUP_TYPES, ORG_TYPES = enums({'$ref': 'EventTypeForNdsGroup'}), enums({'$ref': 'EventTypeForOrg'})


def moment(text):
	return datetime.datetime.fromisoformat(text.replace('Z', '+00:00'))


@pytest.fixture
def tenant(server):
	"""An organization with a project, and some who may read."""
	org, = server.seed({'name': unique('org'), 'projects': ['one', 'two'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, {'type': 'serviceAccount', 'roles': ['ORG_MEMBER']},
		{'type': 'apiKey', 'projectRoles': [{'project': 'one', 'roles': ['GROUP_OWNER']}]}]})
	org['owner'], org['member'], org['key'] = [server.api_for(p) for p in org['principals']]
	org['one'], org['two'] = ['/groups/' + p['id'] for p in org['projects']]
	org['path'] = '/orgs/' + org['id']
	return org


def types(api, path, **query):
	return [e['eventTypeName'] for e in ok(api.get(path + '/events', params=query))['results']]


def newest(api, path, **query):
	return ok(api.get(path + '/events', params=query))['results'][0]


def limit(tenant, value, project='one', api=None):
	return ok((api or tenant['owner']).patch(tenant[project] + '/limits/svc.project.deployment.clusters',
			json={'value': value}))


# What is written


def test_an_event_says_who_what_where_and_when(server, tenant):
	limit(tenant, 30)
	e = newest(tenant['owner'], tenant['one'])
	who = tenant['principals'][0]
	assert e['eventTypeName'] == 'PROJECT_LIMIT_UPDATED' and ID.match(e['id'])
	assert e['orgId'] == tenant['id'] and e['groupId'] == tenant['projects'][0]['id']
	assert e['apiKeyId'] == who['id'] and e['publicKey'] == who['clientId'] and e['remoteAddress'] == '127.0.0.1'
	assert e['isGlobalAdmin'] is False and 'raw' not in e
	assert e['created'] == server.control('clock', method='GET')['now'][:19] + 'Z'
	limit(tenant, 31, api=tenant['key'])
	e = newest(tenant['key'], tenant['one'])
	assert e['publicKey'] == tenant['principals'][2]['publicKey'] and e['apiKeyId'] == tenant['principals'][2]['id']


def test_raw(tenant):
	limit(tenant, 32)
	raw = newest(tenant['owner'], tenant['one'], includeRaw='true')['raw']
	assert raw['gn'] == 'one' and raw['orgName'] == tenant['name'] and raw['orgId'] == tenant['id']
	assert 'svc.project.deployment.clusters' in raw['description'] and raw['severity'] == 'INFO'
	one = newest(tenant['owner'], tenant['one'])
	assert ok(tenant['owner'].get(tenant['one'] + '/events/' + one['id'], params={'includeRaw': 'true'}))['raw'] == raw


def test_a_refused_call_writes_none(tenant):
	before = ok(tenant['owner'].get(tenant['one'] + '/events'))['totalCount']
	refused(tenant['member'].patch(tenant['one'], json={'name': unique()}), 403)
	refused(tenant['owner'].patch(tenant['one'], json={'name': 'two'}), 409)
	refused(tenant['owner'].patch(tenant['one'] + '/limits/svc.project.deployment.clusters',
			json={'value': -1}), 400)
	ok(tenant['owner'].patch(tenant['one'], json={'name': 'one'}))
	assert ok(tenant['owner'].get(tenant['one'] + '/events'))['totalCount'] == before


def test_projects(server, tenant):
	owner, name = tenant['owner'], unique()
	made = owner.project(name, tenant['id'])
	path = '/groups/' + made['id']
	assert types(owner, path) == ['GROUP_CREATED']
	e = newest(owner, tenant['path'])
	assert e['eventTypeName'] == 'GROUP_CREATED' and e['groupId'] == made['id'] and e['orgId'] == tenant['id']
	ok(owner.patch(path, json={'name': unique(), 'tags': [{'key': 'a', 'value': 'b'}]}))
	assert types(owner, path)[:2] == ['GROUP_NAME_CHANGED', 'GROUP_TAGS_MODIFIED']
	tags = ok(owner.get(path + '/events', params={'eventType': 'GROUP_TAGS_MODIFIED'}))['results'][0]
	assert tags['resourceId'] == made['id'] and tags['resourceType'] == 'PROJECT'
	ok(owner.patch(path + '/settings', json={'isDataExplorerEnabled': False, 'isDataValidationEnabled': False,
			'isSchemaAdvisorEnabled': False}))
	assert sorted(types(owner, path)[:3]) == ['DATA_EXPLORER_DISABLED', 'GROUP_AUTOMATION_CONFIG_PUBLISHED',
			'PROJECT_ENABLE_DATA_VALIDATION_UPDATED']
	ok(owner.patch(path + '/settings', json={'isDataExplorerEnabled': True}))
	assert types(owner, path)[0] == 'DATA_EXPLORER_ENABLED'
	ok(owner.patch(path + '/privateIpMode', json={'enabled': True}))
	assert types(owner, path)[0] == 'PEER_UPDATED'
	ok(owner.delete(path), 204)
	e = newest(owner, tenant['path'])
	assert e['eventTypeName'] == 'GROUP_DELETED' and e['groupId'] == made['id']


def test_organizations(server):
	made = ok(server.post('/orgs', json={'name': unique('made')}), 201)['organization']
	path = '/orgs/' + made['id']
	assert types(server, path) == ['ORG_CREATED']
	assert newest(server, path)['apiKeyId'] == server.bootstrap['serviceAccount']['id']
	ok(server.patch(path, json={'name': unique('renamed')}))
	assert types(server, path)[0] == 'ORG_RENAMED'
	ok(server.patch(path + '/settings', json={'multiFactorAuthRequired': True, 'securityContact': 'a@example.com',
			'operationsContact': 'b@example.com', 'restrictEmployeeAccess': True,
			'maxServiceAccountSecretValidityInHours': 24, 'genAIFeaturesEnabled': False, 'customSessionTimeouts': {
			'absoluteSessionTimeoutInSeconds': 7200, 'idleSessionTimeoutInSeconds': 600}}))
	assert sorted(types(server, path)[:7]) == sorted(['ORG_TWO_FACTOR_AUTH_REQUIRED', 'SECURITY_CONTACT_MODIFIED',
			'OPERATIONS_CONTACT_MODIFIED', 'ORG_EMPLOYEE_ACCESS_RESTRICTED', 'CUSTOM_SESSION_TIMEOUT_MODIFIED',
			'ORG_SERVICE_ACCOUNT_MAX_SECRET_VALIDITY_EDITED', 'ORG_SETTINGS_UPDATED'])
	ok(server.patch(path + '/settings', json={'multiFactorAuthRequired': False, 'restrictEmployeeAccess': False}))
	assert sorted(types(server, path)[:2]) == ['ORG_EMPLOYEE_ACCESS_UNRESTRICTED', 'ORG_TWO_FACTOR_AUTH_OPTIONAL']
	ok(server.delete(path), 204)


def test_the_first_start_is_in_the_log(start_server):
	s = start_server()
	assert types(s, '/groups/' + s.group) == ['GROUP_CREATED']
	assert types(s, '/orgs/' + s.org) == ['GROUP_CREATED', 'ORG_CREATED']


def test_an_organization_does_not_tell_what_happens_inside_its_projects(tenant):
	before = ok(tenant['member'].get(tenant['path'] + '/events'))['totalCount']
	limit(tenant, 33)
	e = newest(tenant['owner'], tenant['one'])
	assert ok(tenant['member'].get(tenant['path'] + '/events'))['totalCount'] == before
	refused(tenant['owner'].get(tenant['path'] + '/events/' + e['id']), 404)
	refused(tenant['member'].get(tenant['one'] + '/events'), 403)


def test_every_type_that_rows_and_handlers_name_exists():
	rows = {op['operationId']: op for op in data.built() if 'event' in op}
	assert rows
	for name, op in rows.items():
		allowed = GROUP_TYPES if '{groupId}' in op['path'] else ORG_TYPES if 'orgId' in op['path'] else \
				GROUP_TYPES | ORG_TYPES
		assert op['event'] in allowed or op.get('eventUnlisted'), (name, op['event'])
	for file in sorted((ROOT / 'src').rglob('*.c')):
		for call in re.findall(r'audit_(?:type|service)\(([^;]*)\);', file.read_text()):
			# "ACTIVE" alone is a value that a handler compares with, not a type.
			for found in re.findall(r'"([A-Z0-9]+(?:_[A-Z0-9]+)+)"', call):
				assert found in GROUP_TYPES | ORG_TYPES, (file, found)


def test_secrets_never_appear(server, tenant):
	doc = ok(tenant['owner'].post('/orgs', json={'name': unique('secret'), 'apiKey': {'desc': 'k', 'roles': ['ORG_OWNER']},
		'serviceAccount': {'name': 'robot', 'description': 'd', 'roles': ['ORG_OWNER'],
			'secretExpiresAfterHours': 8}}), 201)
	secrets = [doc['apiKey']['privateKey'], doc['serviceAccount']['secrets'][0]['secret']]
	secrets += [p.get('privateKey') or p['clientSecret'] for p in tenant['principals']]
	log = '\n'.join(''.join(map(str, row)) for row in server.rows('SELECT type, body, cluster, raw FROM event'))
	assert doc['organization']['id'] in log
	assert not [s for s in secrets if s in log]


# Reading


def test_pages_newest_first(server, tenant):
	path = tenant['one'] + '/events'
	for value in range(20, 31):
		limit(tenant, value)
		server.advance(1)
	account = {k: tenant['principals'][0][k] for k in ('clientId', 'clientSecret')}
	tenant['owner'] = Api(server, Bearer(server.token(account)))
	whole = ok(tenant['owner'].get(path, params={'itemsPerPage': 500}))
	ids = [e['id'] for e in whole['results']]
	assert whole['totalCount'] == len(ids) == 12 and [e['created'] for e in whole['results']] == sorted(
			[e['created'] for e in whole['results']], reverse=True)
	pages, url = [], server.base_url + BASE + path + '?itemsPerPage=5'
	while url:
		page = ok(tenant['owner'].get(url))
		assert page['totalCount'] == 12
		pages.append([e['id'] for e in page['results']])
		url = links(page).get('next')
	assert [len(p) for p in pages] == [5, 5, 2] and sum(pages, []) == ids
	assert 'previous' in links(page)
	assert ok(tenant['owner'].get(path, params={'pageNum': 9}))['results'] == []
	page = ok(tenant['owner'].get(path, params={'includeCount': 'false', 'itemsPerPage': 5}))
	assert 'totalCount' not in page and 'next' in links(page)
	assert tenant['owner'].head(path).status_code == 200


def test_filters(server, tenant):
	owner, path = tenant['owner'], tenant['one']
	limit(tenant, 40)
	ok(owner.patch(path, json={'name': unique()}))
	ok(owner.patch(path, json={'tags': [{'key': 'k', 'value': 'v'}]}))
	assert types(owner, path, eventType='PROJECT_LIMIT_UPDATED') == ['PROJECT_LIMIT_UPDATED']
	assert types(owner, path, eventType=['PROJECT_LIMIT_UPDATED', 'GROUP_NAME_CHANGED']) == ['GROUP_NAME_CHANGED',
			'PROJECT_LIMIT_UPDATED']
	assert types(owner, path, eventType='PROJECT_LIMIT_UPDATED,GROUP_NAME_CHANGED') == ['GROUP_NAME_CHANGED',
			'PROJECT_LIMIT_UPDATED']
	assert types(owner, path, excludedEventType=['GROUP_CREATED', 'GROUP_NAME_CHANGED']) == ['GROUP_TAGS_MODIFIED',
			'PROJECT_LIMIT_UPDATED']
	assert types(owner, path, eventType='CLUSTER_CREATED') == []
	assert types(owner, path, clusterNames='none') == []
	page = ok(owner.get(path + '/events', params={'excludedEventType': 'GROUP_CREATED', 'itemsPerPage': 2}))
	assert page['totalCount'] == 3 and len(page['results']) == 2 and 'next' in links(page)
	assert types(owner, tenant['path'], eventType='ORG_CREATED') == ['ORG_CREATED']


def test_dates(server, tenant):
	owner, path = tenant['owner'], tenant['two']
	limit(tenant, 40, 'two')
	e = newest(owner, path)
	at = moment(e['created'])
	zone = datetime.timezone(datetime.timedelta(hours=-9, minutes=-30))
	other, later = at.astimezone(zone).isoformat(), (at + datetime.timedelta(seconds=1)).isoformat()
	both = ['PROJECT_LIMIT_UPDATED', 'GROUP_CREATED']
	assert types(owner, path, minDate=e['created'], maxDate=e['created']) == both
	assert types(owner, path, minDate=other, maxDate=other) == both
	assert types(owner, path, minDate=later) == []
	assert types(owner, path, minDate=at.strftime('%Y-%m-%dT%H:%M:%S')) == both
	assert types(owner, path, maxDate=(at - datetime.timedelta(seconds=1)).isoformat()) == []
	assert types(owner, path, minDate='2020-01-01') == both
	refused(owner.get(path + '/events', params={'minDate': later, 'maxDate': other}), 400, None, 'minDate')
	refused(owner.get(path + '/events', params={'minDate': 'yesterday'}), 400, None, 'minDate')


def test_single_events(server, tenant):
	limit(tenant, 41)
	e = newest(tenant['owner'], tenant['one'])
	got = ok(tenant['owner'].get(tenant['one'] + '/events/' + e['id']))
	assert client.bare(got) == client.bare(e) and links(e) == {'self': server.base_url + BASE + tenant['one'] +
			'/events/' + e['id']}
	made = newest(tenant['member'], tenant['path'])
	assert ok(tenant['member'].get(tenant['path'] + '/events/' + made['id']))['id'] == made['id']
	refused(tenant['owner'].get(tenant['two'] + '/events/' + e['id']), 404)
	refused(tenant['owner'].get(tenant['one'] + '/events/' + NO_ID), 404)
	refused(tenant['owner'].get(tenant['one'] + '/events/x'), 404)
	refused(server.get(tenant['one'] + '/events/' + e['id']), 401)
	refused(server.get(tenant['path'] + '/events/' + made['id']), 401)
	refused(server.get('/orgs/%s/events/%s' % (server.org, made['id'])), 404)


def test_list_refusals(server, tenant):
	refused(tenant['owner'].get(tenant['one'] + '/events', params={'eventType': 'ORG_CREATED'}), 400, None, 'eventType')
	refused(tenant['owner'].get(tenant['path'] + '/events', params={'eventType': 'NO_SUCH'}), 400, None, 'eventType')
	refused(tenant['owner'].get(tenant['path'] + '/events', params={'excludedEventType': 'ORG_CREATED'}), 400)
	refused(tenant['owner'].get(tenant['one'] + '/events', params={'includeRaw': 'perhaps'}), 400, None, 'includeRaw')
	refused(tenant['owner'].get(tenant['one'] + '/events', params={'clusterNames': 'a b'}), 400)
	refused(server.get(tenant['path'] + '/events'), 401)
	refused(server.get('/groups/%s/events' % NO_ID), 404)
	refused(server.anonymous.get(tenant['one'] + '/events'), 401)


# Feeds


def feed(server, link, status=200):
	r = Api(server).get(link)
	assert r.status_code == status, r.text
	if status != 200:
		return refused(r, status)
	assert r.headers['Content-Type'].startswith('application/atom+xml')
	return ElementTree.fromstring(r.content)


def entries(root):
	return [e.find(ATOM + 'category').get('term') for e in root.findall(ATOM + 'entry')]


def test_feed_of_a_project(server, tenant):
	limit(tenant, 42)
	ok(tenant['owner'].patch(tenant['one'], json={'name': unique()}))
	doc = ok(tenant['owner'].get(tenant['one'] + '/activityFeed'))
	root = feed(server, doc['link'])
	assert root.tag == ATOM + 'feed' and entries(root) == ['GROUP_NAME_CHANGED', 'PROJECT_LIMIT_UPDATED', 'GROUP_CREATED']
	for element in [root] + root.findall(ATOM + 'entry'):
		assert element.find(ATOM + 'id').text.startswith('urn:') and element.find(ATOM + 'title').text
		moment(element.find(ATOM + 'updated').text)
		assert element.find(ATOM + 'author').find(ATOM + 'name').text
	hrefs = [e.find(ATOM + 'link').get('href') for e in root.findall(ATOM + 'entry')]
	assert [ok(tenant['owner'].get(h))['eventTypeName'] for h in hrefs] == entries(root)
	assert root.find(ATOM + 'link').get('href') == doc['link']
	limit(tenant, 43)
	assert entries(feed(server, doc['link']))[0] == 'PROJECT_LIMIT_UPDATED'
	assert Api(server).head(doc['link']).status_code == 200
	assert Api(server).post(doc['link']).status_code == 405


def test_feed_filters(server, tenant):
	ok(tenant['owner'].patch(tenant['one'], json={'name': unique('<&">')}), 400)
	ok(tenant['owner'].patch(tenant['one'], json={'name': unique(), 'tags': [{'key': 'k', 'value': 'v'}]}))
	path, owner = tenant['one'] + '/activityFeed', tenant['owner']
	link = ok(owner.get(path, params={'eventType': ['GROUP_CREATED', 'GROUP_TAGS_MODIFIED']}))['link']
	assert entries(feed(server, link)) == ['GROUP_TAGS_MODIFIED', 'GROUP_CREATED']
	assert entries(feed(server, ok(owner.get(path, params={'clusterName': 'none'}))['link'])) == []
	assert entries(feed(server, ok(owner.get(path, params={'maxDate': '2020-01-01T00:00:00Z'}))['link'])) == []
	assert len(entries(feed(server, ok(owner.get(path, params={'minDate': '2020-01-01T00:00:00+02:00'}))['link']))) == 3
	refused(owner.get(path, params={'eventType': 'ORG_CREATED'}), 400, None, 'eventType')
	refused(owner.get(path, params={'clusterName': 'x' * 200}), 400, None, 'clusterName')
	refused(server.get(path), 401)


def test_feed_of_an_organization(server, tenant):
	path = tenant['path'] + '/activityFeed'
	link = ok(tenant['member'].get(path))['link']
	assert entries(feed(server, link))[-1] == 'ORG_CREATED'
	link = ok(tenant['owner'].get(path, params={'eventType': 'ORG_CREATED'}))['link']
	assert entries(feed(server, link)) == ['ORG_CREATED']
	refused(tenant['key'].get(path), 401)
	refused(server.get('/orgs/%s/activityFeed' % NO_ID), 404)


def test_feed_links_cannot_be_made_up(server, tenant):
	link = ok(tenant['owner'].get(tenant['one'] + '/activityFeed'))['link']
	head, _, token = link.rpartition('/')
	text, _, signature = token.partition('.')
	for bad in ('', 'x', '.', text, text + '.', '.' + signature, text[:-2] + 'AA.' + signature,
			text + '.' + ('A' if signature[0] != 'A' else 'B') + signature[1:], token + 'x', 'A' * 6000 + '.x'):
		assert Api(server).get(head + '/' + bad).status_code == 404, bad


def test_feed_ends_with_its_caller(start_server):
	s = start_server()
	org, = s.seed({'name': unique('org'), 'projects': ['one'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'one', 'roles': ['GROUP_READ_ONLY']}]},
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER'], 'accessList': ['127.0.0.1']}]})
	owner, reader, listed = map(s.api_for, org['principals'])
	path = '/groups/%s/activityFeed' % org['projects'][0]['id']
	link, listed_link = ok(reader.get(path))['link'], ok(listed.get(path))['link']
	feed(s, link)
	feed(s, listed_link)
	ok(listed.patch('/orgs/%s/settings' % org['id'], json={'apiAccessListRequired': True}))
	feed(s, link, 403)
	feed(s, listed_link)
	ok(listed.delete('/groups/' + org['projects'][0]['id']), 204)
	feed(s, listed_link, 404)
	link = ok(listed.get('/orgs/%s/activityFeed' % org['id']))['link']
	s.advance(89 * 86400)
	feed(s, link)
	s.advance(2 * 86400)
	assert feed(s, link, 404)['errorCode'] == 'FEED_LINK_EXPIRED'


def test_feed_has_a_bucket(start_server):
	s = start_server()
	link = ok(s.get('/groups/%s/activityFeed' % s.group))['link']
	set_id = data.by_id['getGroupActivityFeed']['set']
	cli('limits', 'set', '--data', s.data_dir, '--set', set_id, '--capacity', 3, '--refill', 1)
	client.until(lambda: ok(s.get('/rateLimits/' + set_id))['capacity'] == 3, what='the new limit')
	s.refill()
	answers = [Api(s).get(link) for _ in range(5)]
	assert [a.status_code for a in answers] == [200, 200, 200, 429, 429] and int(answers[-1].headers['Retry-After']) > 0


# The log's proof


def rename(s, times=3):
	for _ in range(times):
		ok(s.patch('/orgs/' + s.org, json={'name': unique('n')}))


def check(path, status):
	done = cli('check', '--data', path, check=False)
	assert done.returncode == status, done.stdout + done.stderr
	return done.stdout


@pytest.fixture(scope='module')
def log(tmp_path_factory):
	"""A stopped service's directory with some events."""
	s = client.Server()
	rename(s)
	limit({'owner': s, 'one': '/groups/' + s.group}, 40)
	s.stop()
	copy = tmp_path_factory.mktemp('log') / 'data'
	client.clone(s.data_dir, copy)
	check(copy, 0)
	return copy


@pytest.mark.parametrize('change, says', [
	("UPDATE event SET body = replace(body, 'ORG_RENAMED', 'ORG_LOCKED') WHERE seq = 3", 'was changed'),
	("UPDATE event SET raw = '{}' WHERE seq = 4", 'was changed'),
	("UPDATE event SET cluster = 'x' WHERE seq = 4", 'was changed'),
	('UPDATE event SET org_pos = NULL WHERE seq = 3', 'was changed'),
	('UPDATE event SET org_pos = org_pos + 1 WHERE seq = 5', 'positions'),
	('DELETE FROM event WHERE seq = 3', 'does not follow'),
	('DELETE FROM event WHERE seq = 1', 'does not follow'),
	('DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)', 'the log ends'),
	('DELETE FROM event', 'the log ends'),
	("DELETE FROM meta WHERE key = 'event.chain'", 'the log ends'),
	("UPDATE meta SET value = 'x' WHERE key = 'event.chain'", 'not signed'),
])
def test_tampering_shows(log, tmp_path, change, says):
	copy = tmp_path / 'data'
	client.clone(log, copy)
	client.execute(copy, change)
	assert says in check(copy, 1)


@pytest.mark.skipif(client.REMOTE, reason='the same code signs in both stores')
def test_a_cut_log_cannot_be_signed_anew_without_the_key(log, tmp_path):
	copy = tmp_path / 'data'
	shutil.copytree(log, copy)
	with sqlite3.connect(copy / 'steward.db') as db:
		db.execute('DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)')
		seq, head = db.execute('SELECT seq, lower(hex(hash)) FROM event ORDER BY seq DESC LIMIT 1').fetchone()
		first, _, before, _, mac = db.execute("SELECT value FROM meta WHERE key = 'event.chain'").fetchone()[0].split()
		db.execute("UPDATE meta SET value = ? WHERE key = 'event.chain'", [' '.join([first, str(seq), before, head, mac])])
	assert 'not signed' in check(copy, 1)
	# The service goes on, and does not cover it up.
	s = client.Server(data_dir=copy)
	try:
		rename(s)
	finally:
		s.stop()
	assert 'not signed' in check(copy, 1)


def test_retention(start_server):
	s = start_server('--event-retention-days', '7')
	path = '/orgs/' + s.org
	rename(s, 5)
	s.advance(4 * 86400)
	rename(s, 2)
	assert len(types(s, path)) == 9
	s.advance(4 * 86400)
	client.until(lambda: len(types(s, path)) <= 2, what='the end of the first ones')
	assert types(s, path) == ['ORG_RENAMED'] * 2 and ok(s.get(path + '/events'))['totalCount'] == 2
	check(s.data_dir, 0)
	rename(s, 1)
	assert len(types(s, path)) == 3
	assert len(types(s, path, pageNum=2, itemsPerPage=2)) == 1
	s.advance(30 * 86400)
	client.until(lambda: not types(s, path), what='the end of all')
	assert types(s, path) == []
	check(s.data_dir, 0)
	rename(s, 2)
	assert ok(s.get(path + '/events'))['totalCount'] == 2
	check(s.data_dir, 0)
	client.execute(s.data_dir, 'DELETE FROM event WHERE seq = (SELECT min(seq) FROM event)')
	assert 'does not follow' in check(s.data_dir, 1)


# Settings of an organization


def test_access_lists_demanded_from_the_next_request_on(server):
	org, = server.seed({'name': unique('listed'), 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'apiKey', 'roles': ['ORG_OWNER'], 'accessList': ['127.0.0.0/8']},
		{'type': 'apiKey', 'roles': ['ORG_OWNER'], 'accessList': ['10.0.0.0/8']}]})
	bare, listed, elsewhere = map(server.api_for, org['principals'])
	path = '/orgs/%s/settings' % org['id']
	refused(bare.patch(path, json={'apiAccessListRequired': True}), 409, 'WOULD_LOCK_OUT_CALLER', 'apiAccessListRequired')
	assert ok(bare.get(path))['apiAccessListRequired'] is False
	refused(elsewhere.get(path), 403)
	ok(listed.patch(path, json={'apiAccessListRequired': True}))
	refused(bare.get(path), 403)
	ok(listed.get(path))
	assert newest(listed, '/orgs/' + org['id'])['eventTypeName'] == 'ORG_PUBLIC_API_ACCESS_LIST_REQUIRED'
	ok(listed.patch(path, json={'apiAccessListRequired': False}))
	ok(bare.get(path))
	assert newest(listed, '/orgs/' + org['id'])['eventTypeName'] == 'ORG_PUBLIC_API_ACCESS_LIST_NOT_REQUIRED'


def test_bounds_of_settings(server, tenant):
	path, owner = tenant['path'] + '/settings', tenant['owner']
	for hours in (7, 8761, 0, -1):
		refused(owner.patch(path, json={'maxServiceAccountSecretValidityInHours': hours}), 400, None,
				'maxServiceAccountSecretValidityInHours')
	for hours in (8, 8760):
		assert ok(owner.patch(path, json={'maxServiceAccountSecretValidityInHours': hours}))[
				'maxServiceAccountSecretValidityInHours'] == hours
	idle, absolute = 'idleSessionTimeoutInSeconds', 'absoluteSessionTimeoutInSeconds'
	for name in (idle, absolute):
		server.refill()
		for seconds in (-1, 0, 299, 2592001):
			refused(owner.patch(path, json={'customSessionTimeouts': {name: seconds}}), 400, None,
					'customSessionTimeouts.' + name)
	server.refill()
	ok(owner.patch(path, json={'customSessionTimeouts': {absolute: 3600}}))
	refused(owner.patch(path, json={'customSessionTimeouts': {idle: 3601}}), 400, None, 'customSessionTimeouts.' + idle)
	assert ok(owner.patch(path, json={'customSessionTimeouts': {idle: 600}}))['customSessionTimeouts'] == {idle: 600,
			absolute: 3600}
	refused(owner.patch(path, json={'securityContact': 'nobody'}), 400, None, 'securityContact')
	refused(owner.patch(path, json={'operationsContact': 'no body@example'}), 400, None, 'operationsContact')


def test_an_organization_with_something_inside_stays(tenant):
	doc = refused(tenant['owner'].delete(tenant['path']), 409, None, '2')
	assert '2 projects' in doc['detail']
	for path in (tenant['one'], tenant['two']):
		ok(tenant['owner'].delete(path), 204)
	ok(tenant['owner'].delete(tenant['path']), 204)
	refused(tenant['owner'].get(tenant['path']), 401)
