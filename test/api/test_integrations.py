"""Third-party integrations: nine forms, secrets that never come back, masks that mean "unchanged"; and what a Prometheus gets."""
import json, pathlib, re, shutil, subprocess

import pytest
import requests

from client import NO_ID, ROOT, ok, refused, unique, until
from database import free_port
from test_clusters import create

MASK, LICENSE = '********', '0' * 40
SECRET = 'not-to-be-seen-7391'
DASHBOARD = ROOT / 'docs' / 'grafana' / 'databases.json'
PROMETHEUS = {'type': 'PROMETHEUS', 'enabled': True, 'serviceDiscovery': 'http', 'username': 'scraper', 'password': SECRET}
FORMS = {
	'PAGER_DUTY': {'serviceKey': SECRET, 'region': 'EU'},
	'SLACK': {'apiToken': SECRET, 'channelName': 'alerts', 'teamName': 'ops'},
	'DATADOG': {'apiKey': SECRET, 'region': 'US3', 'sendDatabaseMetrics': True},
	'OPS_GENIE': {'apiKey': SECRET, 'region': 'EU'},
	'VICTOR_OPS': {'apiKey': SECRET, 'routingKey': 'team'},
	'WEBHOOK': {'url': 'https://hooks.example.com/x', 'secret': SECRET, 'bodyTemplate': SECRET, 'headersTemplate': SECRET},
	'PROMETHEUS': {k: v for k, v in PROMETHEUS.items() if k != 'type'},
	'MICROSOFT_TEAMS': {'microsoftTeamsWebhookUrl': 'https://teams.example.com/' + SECRET},
}


@pytest.fixture
def group(server):
	return server.project()['id']


def path(group, kind=None):
	return '/groups/%s/integrations%s' % (group, '/' + kind if kind else '')


def masked(document):
	return {k: MASK if SECRET in str(v) else v for k, v in document.items() if k not in ('password', 'links', 'id', 'type')}


@pytest.mark.parametrize('kind', sorted(FORMS))
def test_each_form(server, group, kind):
	found = ok(server.post(path(group, kind), json={'type': kind, **FORMS[kind]}))
	assert found['totalCount'] == 1 and SECRET not in json.dumps(found)
	one, = found['results']
	assert one['type'] == kind and re.fullmatch('[0-9a-f]{24}', one['id'])
	assert {k: v for k, v in masked(FORMS[kind]).items()}.items() <= one.items()
	again = ok(server.get(path(group, kind)))
	assert {k: v for k, v in again.items() if k != 'links'} == {k: v for k, v in one.items() if k != 'links'}
	# What was read can be written back.
	back = {k: v for k, v in again.items() if k != 'links'}
	result, = ok(server.put(path(group, kind), json=back))['results']
	assert {k: v for k, v in result.items() if k != 'links'} == back
	stored = [str(r) for r in server.rows("SELECT body, secret FROM doc WHERE kind = 'integration' AND parent = '%s'" % group)]
	assert stored and SECRET not in ''.join(stored)
	assert server.delete(path(group, kind)).status_code == 204
	refused(server.get(path(group, kind)), 404)
	types = [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']]
	assert types.count('INTEGRATION_CONFIGURED') == 2 and types.count('INTEGRATION_REMOVED') == 1


def test_new_relic(module_server):
	"""Its keys have a form, and the mask has it too. A recording would have another text there."""
	server, keys = module_server, {'accountId': '1234567', 'licenseKey': 'ab' * 20, 'readToken': SECRET, 'writeToken': SECRET}
	group = server.project()['id']
	one, = ok(server.post(path(group, 'NEW_RELIC'), json=keys))['results']
	assert (one['licenseKey'], one['readToken'], one['accountId']) == (LICENSE, MASK, '1234567')
	ok(server.put(path(group, 'NEW_RELIC'), json={k: v for k, v in one.items() if k != 'links'}))
	refused(server.put(path(group, 'NEW_RELIC'), json={**keys, 'licenseKey': 'short'}), 400, 'VALIDATION_ERROR', 'licenseKey')


def test_a_secret_goes_to_its_own_host_only(server, group):
	ok(server.post(path(group, 'WEBHOOK'), json=FORMS['WEBHOOK']))
	one = {k: v for k, v in ok(server.get(path(group, 'WEBHOOK'))).items() if k != 'links'}
	for url in ('https://elsewhere.example.com/x', 'https://hooks.example.com:444/x', 'https://hooks.example.com.evil.example/'):
		refused(server.put(path(group, 'WEBHOOK'), json={**one, 'url': url}), 400, 'VALIDATION_ERROR', 'secret', 'bodyTemplate', 'headersTemplate')
		ok(server.put(path(group, 'WEBHOOK'), json={**FORMS['WEBHOOK'], 'url': url}))
		ok(server.put(path(group, 'WEBHOOK'), json=FORMS['WEBHOOK']))
	ok(server.put(path(group, 'WEBHOOK'), json={**one, 'url': 'https://hooks.example.com/another?path'}))


def test_one_of_each_type(server, group):
	ok(server.post(path(group, 'SLACK'), json=FORMS['SLACK']))
	refused(server.post(path(group, 'SLACK'), json=FORMS['SLACK']), 409, 'INTEGRATION_ALREADY_CONFIGURED')
	found = ok(server.post(path(group, 'DATADOG'), json=FORMS['DATADOG']))
	assert [r['type'] for r in found['results']] == ['SLACK', 'DATADOG']
	page = ok(server.get(path(group) + '?itemsPerPage=1&pageNum=2'))
	assert [r['type'] for r in page['results']] == ['DATADOG'] and page['totalCount'] == 2
	other = server.project()['id']
	assert ok(server.get(path(other)))['totalCount'] == 0
	refused(server.put(path(other, 'SLACK'), json=FORMS['SLACK']), 404)
	refused(server.delete(path(other, 'SLACK')), 404)
	refused(server.get(path(NO_ID)), 404)


@pytest.mark.parametrize('kind, change, field', [
	('SLACK', {'type': 'DATADOG', 'apiKey': 'x'}, None),
	('SLACK', {'apiToken': MASK}, 'apiToken'),
	('SLACK', {'apiToken': ''}, 'apiToken'),
	('SLACK', {'apiToken': 'x' * 20000}, 'apiToken'),
	('SLACK', {'id': NO_ID}, 'id'),
	('WEBHOOK', {'url': 'ftp://example.com/'}, 'url'),
	('WEBHOOK', {'url': 'https://user@example.com/'}, 'url'),
	('WEBHOOK', {'url': 'https://exa mple.com/'}, 'url'),
	('MICROSOFT_TEAMS', {'microsoftTeamsWebhookUrl': 'nowhere'}, 'microsoftTeamsWebhookUrl'),
	('PROMETHEUS', {'password': 'short'}, 'password'),
	('PROMETHEUS', {'username': 'a:b'}, 'username'),
	('PROMETHEUS', {'serviceDiscovery': 'dns'}, 'serviceDiscovery'),
	('HIP_CHAT', FORMS['SLACK'], 'type'),
])
def test_refusals(server, group, kind, change, field):
	refused(server.post(path(group, kind), json={**FORMS.get(kind, {}), **change}), 400, 'VALIDATION_ERROR', *filter(None, [field]))
	assert ok(server.get(path(group)))['totalCount'] == 0


def test_what_a_form_needs(server, group):
	refused(server.post(path(group, 'PAGER_DUTY'), json={'region': 'US'}), 400, 'VALIDATION_ERROR', 'serviceKey')
	refused(server.post(path(group, 'PROMETHEUS'), json={'enabled': True, 'serviceDiscovery': 'http', 'username': 'x'}), 400,
		'VALIDATION_ERROR', 'password')
	ok(server.post(path(group, 'WEBHOOK'), json={'url': 'https://a.example.com'}))
	refused(server.put(path(group, 'WEBHOOK'), json={'url': 'https://a.example.com', 'secret': MASK}), 400, 'VALIDATION_ERROR',
		'secret')


# --- Prometheus

class Scraper:
	def __init__(self, server, group, name='scraper', password=SECRET):
		self.base = '%s/prometheus/v1.0/groups/%s' % (server.base_url, group)
		self.session = requests.Session()
		self.session.trust_env, self.session.verify = False, server.ca_file
		self.session.auth = (name, password) if name else None
		server.sessions.append(self.session)

	def get(self, below):
		return self.session.get(self.base + below, timeout=60)

	def targets(self):
		return ok(self.get('/discovery'))

	def metrics(self, target):
		r = self.session.get(self.base.split('/prometheus')[0] + target['labels']['__metrics_path__'], timeout=60)
		assert r.status_code == 200 and r.headers['Content-Type'].startswith('text/plain; version=0.0.4'), r.text
		return r.text


def values(text):
	"""{name with labels: value}; each metric has its help and type before it, once."""
	out, known = {}, []
	for line in text.splitlines():
		if line.startswith('# TYPE '):
			known.append(line.split()[2])
			continue
		if line.startswith('#'):
			continue
		name, value = line.rsplit(' ', 1)
		assert name.split('{')[0] == known[-1], line
		out[name] = float(value)
	assert len(known) == len(set(known))
	return out


@pytest.fixture(scope='module')
def scraped(module_server):
	server = module_server
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'measured', tags=[{'key': 'cost-centre', 'value': '42 "x"'}])
	server.advance(3600)
	ok(server.post(path(group, 'PROMETHEUS'), json=PROMETHEUS))
	return server, group


def test_discovery(scraped):
	server, group = scraped
	processes = {p['id'] for p in ok(server.get('/groups/%s/processes' % group))['results']}
	targets = Scraper(server, group).targets()
	assert {t['labels']['instance'] for t in targets} == processes and len(targets) == 3
	for t in targets:
		assert t['targets'] == [server.base_url.split('//')[1]] and t['labels']['__scheme__'] == 'https'
		assert (t['labels']['group_id'], t['labels']['cluster_name']) == (group, 'measured')
		assert 'tag_cost_centre' not in t['labels']
	ok(server.put(path(group, 'PROMETHEUS'), json={**PROMETHEUS, 'sendUserProvidedResourceTagsEnabled': True}))
	assert {t['labels']['tag_cost_centre'] for t in Scraper(server, group).targets()} == {'42 "x"'}
	ok(server.put(path(group, 'PROMETHEUS'), json=PROMETHEUS))


def test_metrics(scraped):
	server, group = scraped
	s = Scraper(server, group)
	found = [values(s.metrics(t)) for t in s.targets()]
	assert [f['steward_process_up'] for f in found] == [1, 1, 1] and sum(f['steward_process_primary'] for f in found) == 1
	for f in found:
		assert f['steward_process_connections'] > 0 and f['steward_database_storage_size{database="postgres"}'] > 0
		assert f['steward_disk_space_free{partition="data"}'] > 0
		assert not [name for name in f if '_max_' in name]
	# The same figure as the API has for the minute.
	one = s.targets()[0]
	doc = ok(server.get('/groups/%s/processes/%s/measurements?granularity=PT1M&period=PT2M&m=CONNECTIONS' % (
		group, one['labels']['instance'])))
	points = [p['value'] for p in doc['measurements'][0]['dataPoints'] if 'value' in p]
	assert min(points) * 0.5 <= values(s.metrics(one))['steward_process_connections'] <= max(points) * 2


def test_dashboard_uses_what_there_is(scraped):
	server, group = scraped
	s, there = Scraper(server, group), set()
	for t in s.targets():
		there |= {name.split('{')[0] for name in values(s.metrics(t))}
	asked = set(re.findall(r'steward_[a-z_]+', ' '.join(re.findall(r'"(?:expr|query)": "(.*)"', DASHBOARD.read_text()))))
	assert len(asked) > 15 and asked <= there, asked - there


def test_a_scrape_obeys_the_demand_for_access_lists(server):
	"""The credential has no list of its own: the project's counts, where the organization demands lists."""
	org = server.seed({'name': unique('o'), 'projects': ['p'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER'], 'accessList': ['127.0.0.1']}]})[0]
	owner, group = server.api_for(org['principals'][0]), org['projects'][0]['id']
	ok(owner.post(path(group, 'PROMETHEUS'), json=PROMETHEUS))
	scraper = Scraper(server, group)
	assert scraper.get('/discovery').status_code == 200
	ok(owner.patch('/orgs/%s/settings' % org['id'], json={'apiAccessListRequired': True}))
	refused(scraper.get('/discovery'), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST')
	ok(owner.post('/groups/%s/accessList' % group, json=[{'cidrBlock': '127.0.0.0/8'}]))
	assert scraper.get('/discovery').status_code == 200


def test_who_may_scrape(scraped):
	server, group = scraped
	good = Scraper(server, group)
	process = good.targets()[0]['labels']['instance']
	for below in ('/discovery', '/processes/%s/metrics' % process):
		for name, password in ((None, None), ('scraper', 'wrong'), ('other', SECRET), ('scraper', '')):
			refused(Scraper(server, group, name, password).get(below), 401, 'UNAUTHORIZED')
		assert good.get(below).status_code == 200
	refused(Scraper(server, NO_ID).get('/discovery'), 401)
	other = server.project()['id']
	refused(Scraper(server, other).get('/discovery'), 401)
	ok(server.post(path(other, 'PROMETHEUS'), json={**PROMETHEUS, 'password': 'another password'}))
	theirs = Scraper(server, other, password='another password')
	assert theirs.targets() == []
	refused(theirs.get('/processes/%s/metrics' % process), 404)
	for below in ('', '/discovery/more', '/processes', '/processes/a%2fb/metrics', '/processes/nothing:1/metrics', '/else'):
		refused(good.get(below), 404)
	assert good.session.post(good.base + '/discovery', timeout=60).status_code == 405


def test_a_put_without_the_password_keeps_it(scraped):
	server, group = scraped
	ok(server.put(path(group, 'PROMETHEUS'), json={**{k: v for k, v in PROMETHEUS.items() if k != 'password'}, 'username': 'renamed'}))
	refused(Scraper(server, group).get('/discovery'), 401)
	assert len(Scraper(server, group, 'renamed').targets()) == 3
	ok(server.put(path(group, 'PROMETHEUS'), json={**PROMETHEUS, 'password': 'a new password'}))
	refused(Scraper(server, group).get('/discovery'), 401)
	ok(server.put(path(group, 'PROMETHEUS'), json={**PROMETHEUS, 'enabled': False}))
	refused(Scraper(server, group).get('/discovery'), 403, 'INTEGRATION_DISABLED')
	ok(server.put(path(group, 'PROMETHEUS'), json=PROMETHEUS))
	assert len(Scraper(server, group).targets()) == 3


def test_guessing_is_slow(start_server):
	server = start_server()
	group = server.project()['id']
	ok(server.post(path(group, 'PROMETHEUS'), json=PROMETHEUS))
	bad, answers = Scraper(server, group, password='guess'), []
	for _ in range(25):
		answers.append(bad.get('/discovery').status_code)
	assert answers[0] == 401 and answers[-1] == 429 and set(answers) == {401, 429}


@pytest.mark.skipif(not shutil.which('prometheus'), reason='prometheus is not installed')
def test_a_real_prometheus_scrapes(scraped, tmp_path):
	"""Through the service discovery, with TLS and the integration's password."""
	server, group = scraped
	port = free_port()
	auth = {'basic_auth': {'username': 'scraper', 'password': SECRET}, 'tls_config': {'ca_file': str(pathlib.Path(server.ca_file).resolve())}}
	config = tmp_path / 'prometheus.yml'
	config.write_text(json.dumps({'global': {'scrape_interval': '1s', 'scrape_timeout': '1s'}, 'scrape_configs': [{
		'job_name': 'steward', **auth, 'http_sd_configs': [{
			'url': '%s/prometheus/v1.0/groups/%s/discovery' % (server.base_url, group), 'refresh_interval': '1s', **auth}]}]}))
	with open(tmp_path / 'log', 'wb') as log:
		child = subprocess.Popen(['prometheus', '--config.file=%s' % config, '--storage.tsdb.path=%s' % (tmp_path / 'data'),
					  '--web.listen-address=127.0.0.1:%d' % port], stdout=log, stderr=log)
	base = 'http://127.0.0.1:%d/api/v1/' % port

	def ask(query):
		assert child.poll() is None, (tmp_path / 'log').read_text()[-3000:]
		try:
			r = requests.get(base + 'query', params={'query': query}, timeout=10, proxies={'http': None})
		except requests.RequestException:
			return []
		return r.json()['data']['result'] if r.status_code == 200 else []
	try:
		three = lambda query: until(lambda: (lambda found: found if len(found) == 3 else None)(ask(query)), 120, 'three of ' + query)
		up = three('up == 1')
		assert {r['metric']['cluster_name'] for r in up} == {'measured'}
		processes = {p['id'] for p in ok(server.get('/groups/%s/processes' % group))['results']}
		found = three('steward_process_connections')
		assert {r['metric']['instance'] for r in found} == processes
		assert all(float(r['value'][1]) > 0 for r in found)
		three('steward_database_storage_size{database="postgres"}')
	finally:
		child.terminate()
		try:
			child.wait(20)
		except subprocess.TimeoutExpired:
			child.kill()
			child.wait(20)
