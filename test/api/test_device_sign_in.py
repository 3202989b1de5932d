"""Device authorization (RFC 8628): a client without a browser acts for a person who allows it in the console; and what attackers try."""
import concurrent.futures, re, stat, subprocess

import pytest, requests

import client
from client import SANITIZER, Bearer, binary, environment, ok, until
from test_sign_in import PASSWORD, Browser, From, no, now, site, totp  # noqa: F401

GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
CODE = re.compile(r'^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$')


class Device:
	"""A client that asks for a token."""

	def __init__(self, server, address='127.0.0.1', agent='a lamp'):
		self.server, self.http = server, requests.Session()
		self.http.trust_env, self.http.verify = False, str(server.ca_file)
		self.http.headers['User-Agent'] = agent
		self.http.mount('https://', From(address))

	def form(self, path, **fields):
		return self.http.post(self.server.base_url + path, data=fields, timeout=60)

	def ask(self):
		self.codes = ok(self.form('/api/oauth/device', client_id='lamp'))
		return self

	def poll(self, code=None):
		return self.form('/api/oauth/token', grant_type=GRANT, client_id='lamp', device_code=code or self.codes['device_code'])

	def refused(self, error):
		r = self.poll()
		assert r.status_code == 400 and r.json()['error'] == error, r.text

	def token(self):
		answer = ok(self.poll())
		assert answer['token_type'] == 'Bearer' and answer['expires_in'] > 0
		self.auth = Bearer(answer['access_token'])
		self.access = answer['access_token']
		return answer

	def call(self, method, path, **kw):
		return self.http.request(method, self.server.base_url + path, auth=self.auth, timeout=60,
					 headers={'Accept': 'application/vnd.svc.2025-03-12+json'}, **kw)

	def status(self):
		return self.call('GET', '/api/svc/v2/groups').status_code


@pytest.fixture
def person(site):  # noqa: F811
	site.server.refill()
	guest, browser, _ = site.person()
	return guest, browser


@pytest.fixture
def device(site):  # noqa: F811
	site.server.advance(700)  # what earlier tests have asked is over
	return Device(site.server).ask()


def allow(browser, device, allowed=True):
	return browser.post('/api/session/device', {'code': device.codes['user_code'], 'allow': allowed})


def test_a_person_lets_a_client_in(site, device, person):  # noqa: F811
	guest, browser = person
	codes = device.codes
	assert CODE.match(codes['user_code']) and codes['expires_in'] == 600 and codes['interval'] == 5 and len(codes['device_code']) > 60
	assert codes['verification_uri'] == site.server.base_url + '/console/device'
	assert codes['verification_uri_complete'] == codes['verification_uri'] + '?code=' + codes['user_code']
	device.refused('authorization_pending')
	for typed in (codes['user_code'], codes['user_code'].lower().replace('-', '')):
		shown = ok(browser.get('/api/session/device/' + typed))
		assert shown['code'] == codes['user_code'] and shown['address'] == '127.0.0.1' and shown['agent'] == 'a lamp' and shown['sameAddress'] is True
	assert codes['device_code'] not in str(shown)
	assert allow(browser, device).status_code == 204
	no(browser.get('/api/session/device/' + codes['user_code']), 404, 'DEVICE_CODE_NOT_FOUND')
	assert device.token()['username'] == guest
	device.refused('invalid_grant')  # once
	assert device.status() == 200
	mine, = [s for s in ok(browser.get('/api/session/sessions'))['results'] if s['agent'] == 'a lamp']
	assert not mine['current'] and mine['address'] == '127.0.0.1'
	assert browser.delete('/api/session/sessions/' + mine['id']).status_code == 204
	assert device.status() == 401, 'at once'


def test_what_it_may_do_is_what_the_person_may(site, device, person):  # noqa: F811
	guest, browser = person
	assert allow(browser, device).status_code == 204
	device.token()
	org = site.server.org
	assert device.call('GET', '/api/svc/v2/orgs/' + org).status_code == 200
	assert device.call('PATCH', '/api/svc/v2/orgs/' + org, json={'name': 'mine'}).status_code == 403
	user = ok(site.server.get('/orgs/%s/users' % org, params={'username': guest}))['results'][0]['id']
	ok(site.server.delete('/orgs/%s/users/%s' % (org, user)), 204)
	assert device.call('GET', '/api/svc/v2/orgs/' + org).status_code in (401, 404), 'nor any more when the person may not'


def test_it_is_refused(device, person):
	_, browser = person
	assert allow(browser, device, False).status_code == 204
	device.refused('access_denied')
	device.refused('invalid_grant')


def test_codes_are_short_lived(site, device, person):  # noqa: F811
	_, browser = person
	site.server.advance(601)
	no(browser.get('/api/session/device/' + device.codes['user_code']), 404, 'DEVICE_CODE_NOT_FOUND')
	no(allow(browser, device), 404, 'DEVICE_CODE_NOT_FOUND')
	device.refused('invalid_grant')
	# What was allowed and not fetched is over too.
	late = Device(site.server).ask()
	assert allow(browser, late).status_code == 204
	site.server.advance(601)
	late.refused('invalid_grant')


def test_one_address_does_not_fill_the_place_of_others(site, device, person):  # noqa: F811
	"""Nor does it write where it is refused; what is over makes room again."""
	for _ in range(7):
		Device(site.server).ask()
	r = Device(site.server).form('/api/oauth/device', client_id='lamp')
	assert r.status_code == 429 and r.json()['error'] == 'temporarily_unavailable' and int(r.headers['Retry-After']) > 0
	other = Device(site.server, '127.0.0.2').ask()
	shown = ok(person[1].get('/api/session/device/' + other.codes['user_code']))
	assert shown['address'] == '127.0.0.2' and shown['sameAddress'] is False, 'it asks from elsewhere: somebody may have sent the link'
	site.server.advance(601)
	Device(site.server).ask()


def test_guesses(site, device, person):  # noqa: F811
	_, browser = person
	secret = device.codes['device_code']
	ident, rest = secret.split('.')
	for wrong in ('x', '', ident + '.', ident + '.' + rest[:-1] + ('A' if rest[-1] != 'A' else 'B'), client.NO_ID + '.' + rest, secret + 'A', secret.upper()):
		r = device.poll(wrong or ' ')
		assert r.status_code == 400 and r.json()['error'] == 'invalid_grant', (wrong, r.text)
	assert device.form('/api/oauth/token', grant_type=GRANT).json()['error'] == 'invalid_grant'
	assert device.http.get(site.server.base_url + '/api/oauth/device').status_code == 405
	assert device.http.post(site.server.base_url + '/api/oauth/device', json={}).status_code == 400
	twice = device.http.post(site.server.base_url + '/api/oauth/token', data=[('grant_type', GRANT), ('device_code', secret), ('device_code', secret)])
	assert twice.status_code == 400 and twice.json()['error'] == 'invalid_request'
	# Codes that people type are short: wrong ones are counted.
	answers = [browser.get('/api/session/device/BBBB-BBB' + x).status_code for x in 'BCDFGHJKLMNPQRSTVWXZBCDFGHJ']
	assert answers[0] == 404 and answers[-1] == 429, answers
	site.server.advance(61)


def test_only_who_is_there_allows(site, device, person):  # noqa: F811
	"""Not strangers, not other sites, not a session that is stolen and old."""
	_, browser = person
	code = device.codes['user_code']
	no(Browser(site.server).get('/api/session/device/' + code), 401, 'NOT_SIGNED_IN')
	no(allow(Browser(site.server), device), 401, 'NOT_SIGNED_IN')
	no(browser.get('/api/session/device/' + code, site='cross-site'), 401, 'NOT_SIGNED_IN')
	for other in ('cross-site', 'same-site', 'none', None):
		no(browser.post('/api/session/device', {'code': code, 'allow': True}, site=other), 403, 'CROSS_SITE_REQUEST')
	for body in ({'code': code}, {'code': code, 'allow': 'yes'}, {'allow': True}, {'code': 'x' * 33, 'allow': True}):
		no(browser.post('/api/session/device', body), 400, 'VALIDATION_ERROR')
	device.refused('authorization_pending')
	site.server.advance(901)
	device.ask()
	no(allow(browser, device), 403, 'PROOF_NEEDED')
	assert browser.post('/api/session/proof', {'password': PASSWORD}).status_code in (200, 204)
	assert allow(browser, device).status_code == 204
	device.token()


def test_no_page_of_another_site_asks(site, device):  # noqa: F811
	"""A form of another site would fill the address's places and use up its tries; people, pages of ours and programs ask."""
	base = site.server.base_url + '/api/oauth/'
	for other in ('cross-site', 'same-site', '', 'same-origin, cross-site'):
		for path, form in (('device', {'client_id': 'lamp'}), ('token', {'grant_type': GRANT, 'device_code': device.codes['device_code']}),
				   ('token', {'grant_type': 'client_credentials', 'client_id': 'x', 'client_secret': 'y'}), ('revoke', {'token': 'x'})):
			r = device.http.post(base + path, data=form, headers={'Sec-Fetch-Site': other})
			assert (r.status_code, r.json()['errorCode'], r.json()['error']) == (403, 'CROSS_SITE_REQUEST', 'access_denied'), (other, path, r.text)
	for own in ('same-origin', 'none', None):
		ok(device.http.post(base + 'device', data={'client_id': 'lamp'}, headers={'Sec-Fetch-Site': own}))
	page = site.server.base_url + '/console/device?code=' + device.codes['user_code']
	for way in ('none', 'same-origin', 'cross-site', None):  # a link in a terminal, in the console, in a letter
		assert device.http.get(page, headers={'Sec-Fetch-Site': way}).status_code != 403, way


def test_who_has_signed_out_lets_nobody_in(device, person):
	_, browser = person
	assert allow(browser, device).status_code == 204
	assert browser.delete('/api/session').status_code == 204
	device.refused('access_denied')


def test_a_token_is_given_once(site, device, person):  # noqa: F811
	assert allow(person[1], device).status_code == 204
	with concurrent.futures.ThreadPoolExecutor(8) as pool:
		answers = list(pool.map(lambda i: Device(site.server).poll(device.codes['device_code']), range(8)))
	assert sorted(r.status_code for r in answers) == [200] + 7 * [400], [r.text for r in answers]


def test_a_token_is_no_browser(site, device, person):  # noqa: F811
	"""It reaches the API alone: neither the account's page, nor the console's own paths; and it is no cookie."""
	_, browser = person
	assert allow(browser, device).status_code == 204
	device.token()
	for method, path in (('GET', ''), ('GET', '/sessions'), ('POST', '/totp/enroll'), ('GET', '/passkeys'), ('DELETE', '/sessions')):
		assert device.call(method, '/api/session' + path).status_code == 401, path
	mine, = [s for s in ok(browser.get('/api/session/sessions'))['results'] if s['agent'] == 'a lamp']
	for cookie in (device.access, mine['id'] + '.' + device.access[-43:]):
		no(Browser(site.server).get('/api/session', cookie=cookie), 401, 'NOT_SIGNED_IN')
	# Nor may it let another in.
	other = Device(site.server).ask()
	assert device.http.post(site.server.base_url + '/api/session/device', json={'code': other.codes['user_code'], 'allow': True}, auth=device.auth).status_code == 401


def test_what_leaves_a_way_in_takes_a_fresh_proof(site, device, person):  # noqa: F811
	"""As in a browser: a token that is stolen makes no keys a quarter of an hour later; and unused it ends."""
	owner = Browser(site.server)
	ok(owner.sign_in(site.name))
	assert allow(owner, device).status_code == 204
	device.token()
	keys = '/api/svc/v2/orgs/%s/apiKeys' % site.server.org
	assert device.call('POST', keys, json={'desc': 'fresh', 'roles': ['ORG_READ_ONLY']}).status_code == 200
	site.server.advance(901)
	r = device.call('POST', keys, json={'desc': 'stale', 'roles': ['ORG_READ_ONLY']})
	assert r.status_code == 403 and r.json()['errorCode'] == 'PROOF_NEEDED'
	assert device.status() == 200
	for _ in range(3):
		site.server.advance(3600)
		assert device.status() == 200, 'in use'
	site.server.advance(7300)
	assert device.status() == 401, 'idle for two hours'


def test_it_has_no_second_factor_that_the_person_has_not_shown(site, device, start_server):  # noqa: F811
	guest, browser, _ = site.person()
	org = ok(site.server.post('/orgs', json={'name': client.unique('strict')}), 201)['organization']['id']
	user = ok(site.server.get('/orgs/%s/users' % site.server.org, params={'username': guest}))['results'][0]
	ok(site.server.post('/orgs/%s/users' % org, json={'username': user['username'], 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	letters = until(lambda: (lambda l: len(l) > 1 and l)(site.letters(guest, '/invitations/')), what='the second letter')
	token = re.search(r'/invitations/([\w-]+)', letters[-1]).group(1)
	ok(browser.post('/api/invitations/' + token, {'password': PASSWORD}))
	ok(site.server.patch('/orgs/%s/settings' % org, json={'multiFactorAuthRequired': True}))
	assert allow(browser, device).status_code == 204
	device.token()
	r = device.call('GET', '/api/svc/v2/orgs/' + org)
	assert r.status_code == 403 and r.json()['errorCode'] == 'MULTI_FACTOR_AUTH_REQUIRED', r.text
	assert device.call('GET', '/api/svc/v2/orgs/' + site.server.org).status_code == 200


def test_revocation(site, device, person):  # noqa: F811
	"""RFC 7009: by whoever holds the token."""
	assert allow(person[1], device).status_code == 204
	device.token()
	assert device.form('/api/oauth/revoke', token=device.access[:-1] + ('A' if device.access[-1] != 'A' else 'B')).status_code == 401, 'a token that is none'
	assert device.status() == 200
	assert device.form('/api/oauth/revoke', token=device.access).status_code == 200
	assert device.status() == 401


def test_the_command(site, person, tmp_path):  # noqa: F811
	"""steward login --web, from the link to the last call."""
	guest, browser = person
	site.server.advance(700)
	env = environment({'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': ''})

	def run(*args, check=True):
		done = subprocess.run([binary(), *args], capture_output=True, text=True, cwd=tmp_path, timeout=120, env=env)
		assert not SANITIZER.search(done.stderr) and (not check or done.returncode == 0), done
		return done

	def begin():
		p = subprocess.Popen([binary(), 'login', '--web', '--url', site.server.base_url, '--ca-file', str(site.server.ca_file)], stdin=subprocess.DEVNULL,
				     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=env)
		seen = ''
		while not re.search(r'^ +[B-Z]{4}-[B-Z]{4}$', seen, re.M):
			line = p.stderr.readline()
			assert line, seen
			seen += line
		return p, re.search(r'%s/console/device\?code=(\S+)' % re.escape(site.server.base_url), seen).group(1)
	p, code = begin()
	assert ok(browser.get('/api/session/device/' + code))['agent'].startswith('steward/')
	assert browser.post('/api/session/device', {'code': code, 'allow': True}).status_code == 204
	out, err = p.communicate(timeout=60)
	assert p.returncode == 0 and re.search(r'^signed in as +user %s$' % re.escape(guest), out, re.M), (out, err)
	file = tmp_path / '.config' / 'steward' / 'profiles' / 'default'
	assert stat.S_IMODE(file.stat().st_mode) == 0o600
	token = re.search(r'session = "(stw_[\w-]+)"', file.read_text()).group(1)
	assert site.server.org in run('orgs', 'list', '-o', 'json').stdout and guest in run('config', 'list').stdout
	assert token not in run('config', 'get').stdout + run('orgs', 'list', '--dry-run').stdout + out + err
	assert run('logout').stdout == 'the profile default is removed\n'
	assert requests.get(site.server.base_url + '/api/svc/v2/orgs', auth=Bearer(token), verify=str(site.server.ca_file)).status_code == 401
	p, code = begin()
	assert browser.post('/api/session/device', {'code': code, 'allow': False}).status_code == 204
	out, err = p.communicate(timeout=60)
	assert p.returncode == 1 and 'refused in the browser' in err and not file.exists()
	both = run('login', '--web', '--client-id', 'x', '--url', site.server.base_url, '--ca-file', str(site.server.ca_file), check=False)
	assert both.returncode == 2 and 'one of them' in both.stderr
