"""Credentials as real clients send them: curl, requests, requests-oauthlib; and as nobody should."""
import hashlib, json, os, re, subprocess, threading
from urllib.parse import quote

import pytest, requests
from oauthlib.oauth2 import BackendApplicationClient
from oauthlib.oauth2.rfc6749 import errors
from oauthlib.oauth2.rfc6749.errors import OAuth2Error
from requests.auth import HTTPBasicAuth, HTTPDigestAuth
from requests_oauthlib import OAuth2Session

import client
from client import BASE, Api, Bearer, Wire, basic, metric, ok, refused, unique

FORM = {'Content-Type': 'application/x-www-form-urlencoded'}


def curl(server, *args, path='/groups', user=None):
	key = server.bootstrap['apiKey']
	user = user or '%s:%s' % (key['publicKey'], key['privateKey'])
	command = ['curl', '-sS', '--cacert', server.ca_file, '--user', user, '-w', '\n%{http_code}', *args,
		   server.base_url + BASE + path]
	done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
			      env={k: v for k, v in os.environ.items() if not k.lower().endswith('_proxy')})
	assert done.returncode == 0, done.stderr
	body, _, last = done.stdout.rpartition('\n')
	return int(last), json.loads(body) if body else None


def parse(challenge):
	return {k: q or t for k, q, t in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', challenge)}


def challenges(server):
	with Wire(server) as w:
		return w.one('GET', BASE).headers('www-authenticate')


def digest(key, challenge, path, nc=1, method='GET', algorithm='MD5', **change):
	"""The header of a client that is right in everything but what is changed."""
	h = lambda text: hashlib.new('md5' if algorithm == 'MD5' else 'sha256', text.encode()).hexdigest()
	f = {'username': key['publicKey'], 'realm': challenge['realm'], 'nonce': challenge['nonce'], 'uri': path,
	     'qop': 'auth', 'nc': nc if isinstance(nc, str) else '%08x' % nc, 'cnonce': 'c0ffee', 'password': key['privateKey'], **change}
	ha1, ha2 = h('%(username)s:%(realm)s:%(password)s' % f), h('%s:%s' % (method, f['uri']))
	f['response'] = f.get('response') or h(':'.join((ha1, f['nonce'], f['nc'], f['cnonce'], f['qop'], ha2)))
	return ('Digest username="%(username)s", realm="%(realm)s", nonce="%(nonce)s", uri="%(uri)s", response="%(response)s", '
		'qop=%(qop)s, nc=%(nc)s, cnonce="%(cnonce)s"' % f + ', algorithm=%s, opaque="%s"' % (algorithm, challenge['opaque']))


def token_call(server, endpoint='token', **kw):
	return requests.post(server.base_url + '/api/oauth/' + endpoint, verify=server.ca_file, timeout=30, **kw)


GRANT = {'grant_type': 'client_credentials'}


# Challenges.

def test_challenges(server):
	"""One a line, Digest first, MD5 before SHA-256, and no directive that common clients do not know."""
	lines = challenges(server)
	assert [x.split(' ')[0] for x in lines] == ['Digest', 'Digest', 'Bearer']
	for line, algorithm in zip(lines, ('MD5', 'SHA-256')):
		fields = parse(line)
		assert set(fields) == {'realm', 'domain', 'nonce', 'opaque', 'stale', 'algorithm', 'qop'}
		assert fields['algorithm'] == algorithm and fields['qop'] == 'auth' and fields['stale'] == 'false'
	assert parse(lines[0])['nonce'] == parse(lines[1])['nonce'], 'clients that join the lines mix the two'
	assert parse(lines[0])['nonce'] != parse(challenges(server)[0])['nonce']


# API keys, through curl.

def test_curl(server):
	status, doc = curl(server, '--digest')
	assert status == 200 and doc['results']


def test_curl_any_method_of_authentication(server):
	assert curl(server, '--anyauth')[0] == 200


@pytest.mark.parametrize('version', ['--http1.1', '--http2'])
def test_curl_post(server, version):
	body = json.dumps({'name': unique(), 'orgId': server.org})
	status, doc = curl(server, '--digest', version, '-X', 'POST', '-H', 'Content-Type: application/json', '--data', body)
	assert status in (200, 201), doc
	assert doc['name'] == json.loads(body)['name']


def test_curl_query_and_escapes(server):
	assert curl(server, '--digest', path='/groups?itemsPerPage=1&includeCount=false')[0] == 200
	assert curl(server, '--digest', path='/groups/byName/no%20such%22%2Fname')[0] == 404


def test_curl_wrong_password(server):
	key = server.bootstrap['apiKey']
	status, doc = curl(server, '--digest', user=key['publicKey'] + ':wrong')
	assert status == 401 and doc['error'] == 401
	status, other = curl(server, '--digest', user='nobody:wrong')
	assert status == 401 and other == doc, 'the answer tells which part was wrong'


def test_curl_basic_is_refused(server):
	assert curl(server, '--basic')[0] == 401


# API keys, through requests.

def test_requests_reuses_the_nonce(server):
	"""One challenge, then many calls with a growing count, with and without body."""
	api = server.digest
	first = api.get('/groups')
	ok(first)
	assert [x.status_code for x in first.history] == [401]
	for i in range(40):
		if i % 4:
			r = api.get('/groups?itemsPerPage=1')
		else:
			r = api.post('/groups', json={'name': unique(), 'orgId': server.org})
		assert r.status_code in (200, 201), r.text
		assert not r.history, 'call %d was challenged again' % i


def test_requests_after_the_nonce_grew_stale(start_server):
	s = start_server()
	api = s.digest
	ok(api.get('/groups'))
	s.advance(299)
	assert not api.get('/groups').history
	s.advance(2)
	r = api.get('/groups')
	ok(r)
	assert [x.status_code for x in r.history] == [401]
	assert 'stale=true' in r.history[0].headers['WWW-Authenticate']


def test_requests_wrong_key(server):
	key = server.bootstrap['apiKey']
	refused(Api(server, HTTPDigestAuth(key['publicKey'], 'wrong')).get('/groups'), 401)
	refused(Api(server, HTTPDigestAuth('nobody', key['privateKey'])).get('/groups'), 401)


def test_many_clients_at_once(server):
	wrong = []

	def run():
		api = server.digest
		for _ in range(15):
			r = api.get('/groups?itemsPerPage=1')
			if r.status_code != 200:
				wrong.append(r.text)
	threads = [threading.Thread(target=run) for _ in range(6)]
	for t in threads:
		t.start()
	for t in threads:
		t.join()
	assert not wrong, wrong[:3]


# API keys, by hand.

@pytest.mark.parametrize('algorithm', ['MD5', 'SHA-256'])
def test_counts(server, algorithm):
	"""Each count once, in any order within the window; what falls behind it is refused as stale."""
	key, path = server.bootstrap['apiKey'], BASE + '/groups?itemsPerPage=1'
	challenge = parse(challenges(server)[0])
	with Wire(server) as w:
		def call(nc):
			return w.one('GET', path, {'Authorization': digest(key, challenge, path, nc, algorithm=algorithm)})
		for nc in (1, 2, 9, 4, 3, 100, 40, 0xffffffff):
			assert call(nc).status == 200, nc
		for nc in (1, 2, 9, 4, 3, 100, 40, 5, 0xffffffff):
			a = call(nc)
			assert a.status == 401, nc
			assert parse(a.headers('www-authenticate')[0])['stale'] == 'true'
			assert a.json()['errorCode'] == 'STALE_NONCE'


def test_pipelined_counts(server):
	key, path = server.bootstrap['apiKey'], BASE + '/groups?itemsPerPage=1'
	challenge = parse(challenges(server)[0])
	with Wire(server) as w:
		calls = [('GET', path, {'Authorization': digest(key, challenge, path, nc)}) for nc in range(1, 60)]
		answers = w.batch(calls, depth=59)
	assert [a.status for a in answers] == [200] * 59


def test_absolute_uri(server):
	key, path = server.bootstrap['apiKey'], BASE + '/groups'
	challenge = parse(challenges(server)[0])
	with Wire(server) as w:
		assert w.one('GET', path, {'Authorization': digest(key, challenge, path, uri=server.base_url + path)}).status == 200


@pytest.mark.parametrize('change', [
	{'password': 'wrong'}, {'username': 'nobody'}, {'username': 'x' * 5000}, {'realm': 'Elsewhere'}, {'uri': '/'},
	{'uri': BASE + '/groups?'}, {'uri': 'https://' }, {'qop': 'auth-int'}, {'nc': '00000000'}, {'nc': '1'}, {'nc': 'zzzzzzzz'},
	{'cnonce': ''}, {'algorithm': 'MD5-sess'}, {'algorithm': 'SHA-512-256'}, {'response': '0' * 32}, {'response': 'x'},
	{'response': '0' * 3000}], ids=lambda c: '%s=%.20s' % next(iter(c.items())))
def test_digest_that_is_wrong(server, change):
	key, path = server.bootstrap['apiKey'], BASE + '/groups'
	challenge = parse(challenges(server)[0])
	with Wire(server) as w:
		a = w.one('GET', path, {'Authorization': digest(key, challenge, path, **change)})
	assert a.status == 401 and a.json()['errorCode'] == 'INVALID_CREDENTIALS', a.body
	assert parse(a.headers('www-authenticate')[0])['stale'] == 'false'


def test_foreign_nonce_is_stale(server, start_server):
	"""A nonce that is not ours, from a caller who knows the key: a new one is offered. From another: nothing is said."""
	key, path = server.bootstrap['apiKey'], BASE + '/groups'
	other = parse(challenges(start_server())[0])
	with Wire(server) as w:
		for challenge in (other, {**other, 'nonce': 'forged'}, {**other, 'nonce': ''}):
			a = w.one('GET', path, {'Authorization': digest(key, challenge, path)})
			assert a.status == 401 and parse(a.headers('www-authenticate')[0])['stale'] == 'true'
			a = w.one('GET', path, {'Authorization': digest(key, challenge, path, password='wrong')})
			assert a.status == 401 and parse(a.headers('www-authenticate')[0])['stale'] == 'false'


@pytest.mark.parametrize('header', [
	'', ' ', 'x', 'Digest', 'Digest ', 'Digest ,,,', 'Digest =', 'Digest username', 'Digest username="', 'Digest username="\\',
	'Digest username=a, username=b', 'Digest ' + 'a=b,' * 500, 'Digest ' + '"' * 4000, 'digest username=\xff', 'Bearer', 'Bearer ',
	'Bearer stw_', 'Bearer ' + 'A' * 8000, 'Bearer stw_' + 'A' * 103, 'Basic', 'Basic !!!', 'Negotiate x', 'Bearer a b c'])
def test_garbage(server, header):
	with Wire(server) as w:
		a = w.one('GET', BASE + '/groups', {'Authorization': header})
		assert a.status == 401, a.body
		client.assert_problem(a.json(), 401)
		assert len(a.headers('www-authenticate')) == 3


def test_two_authorizations(server):
	token = server.token()
	with Wire(server, token) as w:
		assert w.one('GET', BASE + '/groups', {'authorization': 'Bearer ' + token}).status in (400, 401)


# Service accounts, through requests-oauthlib.

@pytest.mark.parametrize('in_body', [False, True])
def test_oauth_library(server, in_body):
	account = server.bootstrap['serviceAccount']
	session = OAuth2Session(client=BackendApplicationClient(client_id=account['clientId']))
	session.trust_env = False
	if in_body:
		how = {'client_secret': account['clientSecret'], 'include_client_id': True}
	else:
		how = {'auth': HTTPBasicAuth(account['clientId'], account['clientSecret'])}
	token = session.fetch_token(server.base_url + '/api/oauth/token', verify=server.ca_file, **how)
	assert token['token_type'] == 'Bearer' and token['expires_in'] == 3600
	r = session.get(server.base_url + BASE + '/groups', verify=server.ca_file)
	assert r.status_code == 200 and r.json()['results']


def library_error(server, path='/api/oauth/token', client_id=None, **how):
	"""What requests-oauthlib raises."""
	session = OAuth2Session(client=BackendApplicationClient(client_id=client_id or server.bootstrap['serviceAccount']['clientId']))
	session.trust_env = False
	with pytest.raises(OAuth2Error) as raised:
		session.fetch_token(server.base_url + path, verify=server.ca_file, **how)
	return raised.value


def test_oauth_library_says_what_is_wrong(server):
	"""The library knows RFC 6749's words by heart: each is an exception of its own, with our sentence in it."""
	account = server.bootstrap['serviceAccount']
	wrong = library_error(server, auth=HTTPBasicAuth(account['clientId'], 'wrong'))
	assert type(wrong) is errors.InvalidClientError and wrong.description == 'The client id or secret is not valid.', wrong
	wrong = library_error(server, client_secret='wrong', include_client_id=True)
	assert type(wrong) is errors.InvalidClientError and wrong.error == 'invalid_client'
	other = library_error(server, auth=HTTPBasicAuth(account['clientId'], account['clientSecret']), include_client_id=False,
			      body='client_id=another')
	assert other.error == 'invalid_request' and other.description == 'client_id: is not the one in Authorization.'
	far = server.seed({'name': unique(), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER'],
							     'accessList': ['192.0.2.0/24']}]})[0]['principals'][0]
	denied = library_error(server, client_id=far['clientId'], auth=HTTPBasicAuth(far['clientId'], far['clientSecret']))
	assert type(denied) is errors.AccessDeniedError and '127.0.0.1' in denied.description


@pytest.mark.parametrize('data, word', [
	({'grant_type': 'password'}, 'unsupported_grant_type'), ({}, 'invalid_request'), ({'grant_type': ''}, 'invalid_request')])
def test_refusals_are_those_of_the_rfc(server, data, word):
	account = server.bootstrap['serviceAccount']
	doc = refused(token_call(server, data=data, headers=FORM, auth=(account['clientId'], account['clientSecret'])), 400)
	assert doc['error'] == word and doc['error_description'] == doc['detail'] and doc['errorCode'] == word.upper()


def test_revocation_refuses_in_the_same_words(server):
	a, b = server.seed({'name': unique(), 'principals': 2 * [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})[0]['principals']
	mine = (a['clientId'], a['clientSecret'])
	for data, auth, status, word in (({'token': 'x'}, (a['clientId'], 'wrong'), 401, 'invalid_client'),
					 ({}, mine, 400, 'invalid_request'),
					 ({'token': b['accessToken']}, mine, 400, 'unauthorized_client')):
		assert refused(token_call(server, 'revoke', data=data, headers=FORM, auth=auth), status)['error'] == word


def test_token_answer(server):
	account = server.bootstrap['serviceAccount']
	r = token_call(server, data=GRANT, auth=(account['clientId'], account['clientSecret']))
	doc = ok(r)
	assert set(doc) == {'access_token', 'token_type', 'expires_in'}
	assert re.fullmatch(r'[A-Za-z0-9._~-]+', doc['access_token'])
	assert 'no-store' in r.headers['Cache-Control'] and r.headers['Content-Type'].startswith('application/json')
	ok(Api(server, Bearer(doc['access_token'])).get('/groups'))


@pytest.mark.parametrize('encode', [lambda x: x, lambda x: quote(x, safe=''), lambda x: ''.join('%%%02X' % ord(c) for c in x)],
			 ids=['raw', 'encoded', 'every character encoded'])
def test_basic_raw_and_encoded(server, encode):
	account = server.bootstrap['serviceAccount']
	header = basic(encode(account['clientId']), encode(account['clientSecret']))
	ok(token_call(server, data=GRANT, headers={'Authorization': header}))


def test_form_with_charset(server):
	account = server.bootstrap['serviceAccount']
	ok(token_call(server, data='scope=&grant_type=client%5Fcredentials&x=y',
		      auth=(account['clientId'], account['clientSecret']),
		      headers={'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8'}))


@pytest.mark.parametrize('data,status,code', [
	('', 400, 'INVALID_REQUEST'), ('grant_type=', 400, 'INVALID_REQUEST'), ('grant_type=password', 400, 'UNSUPPORTED_GRANT_TYPE'),
	('grant_type=client_credentials&grant_type=client_credentials', 400, 'INVALID_REQUEST'),
	('grant_type=client_credentials&client_id=another', 400, 'INVALID_REQUEST'), ('&=&&%zz=%', 400, 'INVALID_REQUEST'),
	('a=b&' * 2000, 400, 'INVALID_REQUEST')])
def test_form_that_is_wrong(server, data, status, code):
	account = server.bootstrap['serviceAccount']
	r = token_call(server, data=data, headers=FORM, auth=(account['clientId'], account['clientSecret']))
	refused(r, status, code)


def test_token_endpoint_wants_a_form_by_post(server):
	account = server.bootstrap['serviceAccount']
	refused(token_call(server, json=GRANT, auth=(account['clientId'], account['clientSecret'])), 400, 'INVALID_REQUEST')
	for endpoint in ('token', 'revoke'):
		for method in ('GET', 'PUT', 'DELETE'):
			r = server.anonymous.request(method, '/api/oauth/' + endpoint)
			refused(r, 405, 'METHOD_NOT_ALLOWED')
			assert r.headers['Allow'] == 'POST'


@pytest.mark.parametrize('header', [
	None, 'Basic', 'Basic !', 'Basic ' + 'A' * 9000, basic('', ''), basic('nobody', 'x'), basic('nobody', ''), 'Bearer x',
	'Basic bm9jb2xvbg=='])
def test_client_that_is_wrong(server, header):
	r = token_call(server, data=GRANT, headers={'Authorization': header} if header else {})
	refused(r, 401, 'INVALID_CLIENT')
	assert r.headers['WWW-Authenticate'].startswith('Basic realm=')


def test_wrong_parts_look_alike(server):
	account = server.bootstrap['serviceAccount']
	answers = [token_call(server, data=GRANT, auth=x).json()
		   for x in ((account['clientId'], 'wrong'), ('nobody', account['clientSecret']), ('nobody', 'wrong'))]
	assert answers[0] == answers[1] == answers[2]


def test_access_list_holds_at_the_token_endpoint(server):
	far, near = server.seed(*({'name': unique(), 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER'], 'accessList': [network]}]} for network in ('192.0.2.0/24', '127.0.0.1/32')))
	p = far['principals'][0]
	r = token_call(server, data=GRANT, auth=(p['clientId'], p['clientSecret']))
	refused(r, 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST', '127.0.0.1')
	refused(token_call(server, data=GRANT, auth=(p['clientId'], 'wrong')), 401)
	p = near['principals'][0]
	ok(token_call(server, data=GRANT, auth=(p['clientId'], p['clientSecret'])))


# Tokens.

def test_token_expires(start_server):
	s = start_server()
	caller = Api(s, Bearer(s.token()))
	ok(caller.get('/groups'))
	s.advance(3599)
	ok(caller.get('/groups'))
	s.advance(1)
	doc = refused(caller.get('/groups'), 401, 'INVALID_TOKEN')
	assert not doc['parameters']
	ok(Api(s, Bearer(s.token())).get('/groups'))


def test_secret_expires(start_server):
	"""Once the secret's time is over it buys no token."""
	s = start_server()
	account = s.bootstrap['serviceAccount']
	s.advance(100 * 365 * 86400)
	refused(token_call(s, data=GRANT, auth=(account['clientId'], account['clientSecret'])), 401)


def test_revoked_token(server):
	"""Refused on the very next request, on every connection that knew it; other tokens stay."""
	account = server.bootstrap['serviceAccount']
	auth = (account['clientId'], account['clientSecret'])
	token, other = server.token(account), server.token(account)
	callers = [Api(server, Bearer(token)) for _ in range(6)]
	for c in callers:
		ok(c.get('/groups'))
	r = token_call(server, 'revoke', data={'token': token, 'token_type_hint': 'access_token'}, auth=auth)
	assert ok(r) == {}
	for c in callers:
		refused(c.get('/groups'), 401, 'INVALID_TOKEN')
	ok(Api(server, Bearer(other)).get('/groups'))
	for again in (token, 'unknown', 'stw_' + 'A' * 103):
		assert ok(token_call(server, 'revoke', data={'token': again}, auth=auth)) == {}
	refused(token_call(server, 'revoke', data={}, auth=auth, headers=FORM), 400, 'INVALID_REQUEST')
	refused(token_call(server, 'revoke', data={'token': other}), 401, 'INVALID_CLIENT')
	ok(Api(server, Bearer(other)).get('/groups'))


def test_revoking_what_is_anothers(server):
	org, = server.seed({'name': unique(), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	p, token = org['principals'][0], server.token(server.bootstrap['serviceAccount'])
	refused(token_call(server, 'revoke', data={'token': token}, auth=(p['clientId'], p['clientSecret'])), 400, 'UNAUTHORIZED_CLIENT')
	ok(Api(server, Bearer(token)).get('/groups'))


def test_revocation_survives_a_restart(start_server):
	s = start_server()
	account = s.bootstrap['serviceAccount']
	token, other = s.token(account), s.token(account)
	ok(token_call(s, 'revoke', data={'token': token}, auth=(account['clientId'], account['clientSecret'])))
	s.stop()
	s = start_server(data_dir=s.data_dir)
	refused(Api(s, Bearer(token)).get('/groups'), 401)
	ok(Api(s, Bearer(other)).get('/groups'))


def test_every_changed_character_is_seen(server):
	token = server.token(server.bootstrap['serviceAccount'])
	bent = [token[:i] + ('A' if token[i] != 'A' else 'B') + token[i + 1:] for i in range(len(token))]
	bent += [token[:-1], token + 'A', token.upper(), ' ' + token[1:]]
	with Wire(server) as w:
		answers = w.batch([('GET', BASE + '/groups', {'Authorization': 'Bearer ' + t}) for t in bent])
	assert {a.status for a in answers} == {401}


# Brute force.

BODY = b'grant_type=client_credentials'


def attempt(s, source, name, secret):
	"""A sign-in at the token endpoint from one of the host's addresses."""
	return at(s, source).post(s.base_url + '/api/oauth/token', data=BODY, headers={'Authorization': basic(name, secret), **FORM})


class From(requests.adapters.HTTPAdapter):
	def __init__(self, source):
		self.source = source
		super().__init__()

	def init_poolmanager(self, *args, **kw):
		super().init_poolmanager(*args, source_address=(self.source, 0), **kw)


def at(s, source, auth=None):
	api = Api(s, auth)
	api.session.mount('https://', From(source))
	return api


def too_many(answer):
	doc = refused(answer, 429, 'TOO_MANY_FAILED_ATTEMPTS')
	assert 1 <= int(answer.headers['Retry-After']) <= 60
	return doc


HERE, THERE = '127.0.0.1', '127.0.0.2'


@pytest.fixture
def account(start_server):
	s = start_server()
	org, = s.seed({'name': unique('org'), 'principals': [{'type': t, 'roles': ['ORG_OWNER']} for t in (
		'serviceAccount', 'serviceAccount', 'apiKey', 'apiKey')]})
	return s, org['principals']


def test_a_name_is_guessed_slowly_and_its_owner_not_disturbed(account):
	s, (first, second, _, _) = account
	wrong = [attempt(s, THERE, first['clientId'], 'wrong') for _ in range(25)]
	assert [a.status_code for a in wrong] == [401] * 20 + [429] * 5
	too_many(wrong[-1])
	# From there nobody gets in under that name, from elsewhere its owner does, and others from there do.
	too_many(attempt(s, THERE, first['clientId'], first['clientSecret']))
	assert attempt(s, HERE, first['clientId'], first['clientSecret']).status_code == 200
	assert attempt(s, THERE, second['clientId'], second['clientSecret']).status_code == 200
	assert metric(s, 'steward_sign_in_failures_total') == 20 and metric(s, 'steward_sign_ins_refused_total') == 6
	# Revocation is the same door, and tokens stand outside of it.
	assert at(s, THERE).post(s.base_url + '/api/oauth/revoke', data='token=x', headers={
		'Authorization': basic(first['clientId'], 'wrong'), **FORM}).status_code == 429
	ok(at(s, THERE, Bearer(first['accessToken'])).get('/orgs'))
	s.advance(60)
	assert attempt(s, THERE, first['clientId'], first['clientSecret']).status_code == 200
	# Once it has been there, a neighbour behind the same address does not keep it out.
	assert [attempt(s, THERE, first['clientId'], 'wrong').status_code for _ in range(21)] == [401] * 20 + [429]
	assert attempt(s, THERE, first['clientId'], first['clientSecret']).status_code == 200
	s.advance(3600)
	assert [attempt(s, THERE, first['clientId'], 'wrong').status_code for _ in range(21)] == [401] * 20 + [429]
	too_many(attempt(s, THERE, first['clientId'], first['clientSecret']))


def test_keys_are_guessed_slowly_too(account):
	s, (_, _, first, second) = account
	digest = lambda source, key, secret=None: at(s, source, requests.auth.HTTPDigestAuth(key['publicKey'], secret or key['privateKey'])).get('/orgs')
	assert [digest(THERE, first, 'wrong').status_code for _ in range(22)] == [401] * 20 + [429] * 2
	too_many(digest(THERE, first))
	ok(digest(HERE, first))
	ok(digest(THERE, second))
	s.advance(60)
	ok(digest(THERE, first))
	assert [digest(THERE, first, 'wrong').status_code for _ in range(21)] == [401] * 20 + [429]
	ok(digest(THERE, first))


def test_an_address_that_fails_at_everything(account):
	s, (first, second, key, other) = account
	assert attempt(s, HERE, second['clientId'], second['clientSecret']).status_code == 200
	with Wire(s) as w:
		answers = w.batch([('POST', '/api/oauth/token', {'Authorization': basic('nobody-%d' % i, 'x'), **FORM}, BODY) for i in range(400)])
		answers += w.batch([('GET', BASE + '/orgs', {'Authorization': 'Bearer nonsense'}) for _ in range(400)])
		answers += w.batch([('GET', '/api/invitations/x')] * 100 + [('GET', '/feeds/x.y')] * 100)
		assert [a.status for a in answers] == [401] * 800 + [404] * 200
		for method, path, headers, body in (('POST', '/api/oauth/token', {'Authorization': basic('nobody', 'x'), **FORM}, BODY),
				('GET', BASE + '/orgs', {'Authorization': 'Bearer nonsense'}, None), ('GET', '/api/invitations/x', None, None),
				('GET', '/feeds/x.y', None, None)):
			a = w.one(method, path, headers, body)
			assert a.status == 429 and 1 <= int(a.header('retry-after')) <= 60, path
			(client.assert_oauth_problem if '/oauth/' in path else client.assert_problem)(a.json(), 429)
	too_many(attempt(s, HERE, first['clientId'], first['clientSecret']))
	# Those who were in before, tokens, and all other addresses are let in.
	assert attempt(s, HERE, second['clientId'], second['clientSecret']).status_code == 200
	ok(at(s, HERE, Bearer(first['accessToken'])).get('/orgs'))
	assert attempt(s, THERE, first['clientId'], first['clientSecret']).status_code == 200
	ok(at(s, THERE, requests.auth.HTTPDigestAuth(key['publicKey'], key['privateKey'])).get('/orgs'))
	s.advance(60)
	assert attempt(s, HERE, first['clientId'], first['clientSecret']).status_code == 200
