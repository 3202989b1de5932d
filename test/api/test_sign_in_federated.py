"""Signing in without a password of ours: passkeys, and identity providers by OIDC and SAML."""
import base64, datetime, hashlib, json, os, pathlib, re, socket, struct, subprocess, threading, zlib
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
import pytest, requests

import client
from client import NO_ID, ok, unique, until
from conftest import end
from test_federation import Org
from test_users import token

PASSWORD = 'correct horse battery staple'
STATE = '__Host-steward-oidc'
SESSION = '__Host-steward'


def b64(data):
	return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def unb64(text):
	return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


class Browser:
	"""Cookies, and what a browser says about where a request comes from. At `localhost`: passkeys need a name."""

	def __init__(self, server, site='same-origin', host='localhost'):
		self.server, self.cookies, self.site = server, {}, site
		self.origin = 'https://%s:%d' % (host, server.port)
		self.session = requests.Session()
		self.session.trust_env, self.session.verify = False, server.ca_file
		server.sessions.append(self.session)

	def ask(self, method, path, json=None, site=None, host=None, **kw):
		headers = {'Sec-Fetch-Site': site or self.site, 'Accept': 'application/json', **({'Host': host} if host else {})}
		if self.cookies:
			headers['Cookie'] = '; '.join('%s=%s' % x for x in self.cookies.items())
		r = self.session.request(method, path if path.startswith('https:') else self.origin + path, json=json, headers=headers, timeout=60,
			allow_redirects=False, **kw)
		self.session.cookies.clear()
		for line in r.raw.headers.getlist('set-cookie'):
			name, value = re.match(r'([^=]+)=([^;]*)', line).groups()
			assert '; Path=/' in line and '; Secure' in line and '; HttpOnly' in line and 'Domain' not in line
			assert 'SameSite=' + ('Lax' if name.endswith(('-oidc', '-saml')) else 'Strict') in line
			self.cookies.pop(name, None)
			if value:
				self.cookies[name] = value
		return r

	def get(self, path, **kw):
		return self.ask('GET', path, **kw)

	def post(self, path, json, **kw):
		return self.ask('POST', path, json, **kw)

	def who(self):
		return ok(self.get('/api/session'))

	def refused(self, r, status, code):
		assert r.status_code == status and r.json()['errorCode'] == code, (r.status_code, r.text)
		assert SESSION not in r.headers.get('Set-Cookie', '') and 'WWW-Authenticate' not in r.headers


class Authenticator:
	"""One passkey, and the browser around it."""

	def __init__(self, alg='ES256'):
		self.alg, self.id, self.count, self.user = alg, os.urandom(32), 0, None
		self.key = {'ES256': lambda: ec.generate_private_key(ec.SECP256R1()), 'RS256': lambda: rsa.generate_private_key(65537, 2048),
			'EdDSA': ed25519.Ed25519PrivateKey.generate}[alg]()

	def spki(self):
		return self.key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)

	def sign(self, message):
		if self.alg == 'EdDSA':
			return self.key.sign(message)
		if self.alg == 'RS256':
			return self.key.sign(message, padding.PKCS1v15(), hashes.SHA256())
		return self.key.sign(message, ec.ECDSA(hashes.SHA256()))

	def data(self, rp, flags, made=None):
		self.count += 1
		return hashlib.sha256(rp.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, 'big') + (
			bytes(16) + len(made).to_bytes(2, 'big') + made + b'\xa0' if made else b'')

	def make(self, options, origin, **lies):
		"""The credential of navigator.credentials.create(), and what it lies about."""
		o = options['publicKey']
		self.user = unb64(o['user']['id'])
		said = {'type': 'webauthn.create', 'challenge': o['challenge'], 'origin': origin, 'crossOrigin': False, **lies.get('client', {})}
		data = self.data(lies.get('rp', o['rp']['id']), lies.get('flags', 0x45), lies.get('made', self.id))
		return {'id': b64(self.id), 'type': 'public-key', 'response': {'clientDataJSON': b64(json.dumps(said).encode()),
			'authenticatorData': b64(lies.get('cut', lambda d: d)(data)), 'publicKey': b64(lies.get('spki', self.spki()))}}

	def get(self, options, origin, **lies):
		o = options['publicKey']
		said = json.dumps({'type': 'webauthn.get', 'challenge': o['challenge'], 'origin': origin, **lies.get('client', {})}).encode()
		data = lies.get('cut', lambda d: d)(self.data(lies.get('rp', o['rpId']), lies.get('flags', 0x05)))
		signature = lies.get('by', self).sign(data + hashlib.sha256(said).digest())
		sent = {**{'clientDataJSON': said, 'authenticatorData': data, 'signature': signature, 'userHandle': self.user}, **lies.get('sent', {})}
		return {'id': b64(self.id), 'type': 'public-key', 'response': {k: b64(v) for k, v in sent.items()}}


class Provider:
	"""test/oidc_provider.py, a process."""

	def __init__(self, folder):
		self.process = subprocess.Popen(['/usr/bin/python3', str(pathlib.Path(__file__).parents[1] / 'oidc_provider.py'), str(folder)],
			stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
		said = json.loads(self.process.stdout.readline())
		self.url, self.ca = said['url'], said['ca']
		self.session = requests.Session()
		self.session.trust_env, self.session.verify = False, self.ca

	def control(self, **what):
		assert self.session.post(self.url + '/control', json=what, timeout=60).status_code == 200

	def seen(self, path):
		return self.session.get(self.url + '/control', timeout=60).json()['seen'].count(path)

	def close(self):
		self.session.close()
		self.process.stdin.close()
		assert self.process.wait(60) == 0


@pytest.fixture(scope='module')
def provider(tmp_path_factory):
	p = Provider(tmp_path_factory.mktemp('provider'))
	yield p
	p.close()


@pytest.fixture(scope='module')
def host(provider):
	s = client.Server('--identity-ca', provider.ca, '--inner-networks', '127.0.0.0/8,::1')
	yield s
	end(s)


@pytest.fixture(scope='module')
def owner(host):
	"""A browser with the first owner, by the printed link."""
	b = Browser(host)
	b.token = host.bootstrap['consoleLink'].rsplit('/', 1)[1]
	b.name = 'owner@own.example'
	ok(b.post('/api/session/first', {'token': b.token, 'username': b.name, 'password': PASSWORD}))
	assert b.cookies[SESSION]
	return b


# Passkeys

def register(browser, key, name='mine', **lies):
	options = ok(browser.post('/api/session/passkeys/options', {}))
	return browser.post('/api/session/passkeys', {'ticket': options['ticket'], 'name': name,
		'credential': key.make(options, browser.origin, **lies)})


def enter(browser, key, **lies):
	options = ok(browser.post('/api/session/passkey/options', {}))
	return browser.post('/api/session/passkey', {'ticket': options['ticket'], 'credential': key.get(options, browser.origin, **lies)})


def test_passkeys(host, owner):
	user = owner.who()['user']['id']
	made = {}
	for alg in ('ES256', 'RS256', 'EdDSA'):
		key = made[alg] = Authenticator(alg)
		doc = ok(register(owner, key, alg), 201)
		assert doc['name'] == alg and doc['rpId'] == 'localhost' and 'lastUsedAt' not in doc and key.user.decode() == user
		visitor = Browser(host)
		assert ok(enter(visitor, key)) == {'userId': user, 'username': owner.name}
		who = visitor.who()
		assert who['user']['id'] == user and who['session']['method'] == 'passkey' and who['security']['passkeys'] == len(made)
		ok(visitor.get('/api/svc/v2/orgs'))  # acts as the user
	options = ok(owner.post('/api/session/passkeys/options', {}))['publicKey']
	assert {x['id'] for x in options['excludeCredentials']} == {b64(k.id) for k in made.values()}
	assert options['authenticatorSelection']['residentKey'] == 'required' and options['attestation'] == 'none'
	owner.refused(register(owner, made['ES256']), 409, 'PASSKEY_EXISTS')
	listed = ok(owner.get('/api/session/passkeys'))['results']
	assert [x['name'] for x in listed] == list(made) and all(x['lastUsedAt'] for x in listed)
	assert not {'publicKey', 'credentialId', 'count'} & set(listed[0])
	path = '/api/session/passkeys/' + listed[0]['id']
	assert ok(owner.ask('PATCH', path, {'name': 'phone'}))['name'] == 'phone'
	owner.refused(owner.ask('PATCH', path, {'name': ' '}), 400, 'VALIDATION_ERROR')
	Browser(host).refused(Browser(host).get('/api/session/passkeys'), 401, 'NOT_SIGNED_IN')
	owner.refused(owner.ask('DELETE', '/api/session/passkeys/' + NO_ID), 404, 'PASSKEY_NOT_FOUND')
	owner.refused(owner.ask('DELETE', path, site='cross-site'), 403, 'CROSS_SITE_REQUEST')
	assert owner.ask('DELETE', path).status_code == 204
	owner.refused(enter(Browser(host), made['ES256']), 401, 'INVALID_CREDENTIALS')
	ok(register(owner, made['ES256']), 201)  # it may come back


def test_passkeys_that_lie(host, owner):
	key, other = Authenticator(), Authenticator()
	ok(register(owner, key), 201)
	b = Browser(host)
	lies = {
		'origin': {'client': {'origin': 'https://evil.example'}}, 'below': {'client': {'origin': b.origin.replace('localhost', 'a.localhost')}},
		'port': {'client': {'origin': 'https://localhost'}}, 'frame': {'client': {'crossOrigin': True}},
		'type': {'client': {'type': 'webauthn.create'}}, 'challenge': {'client': {'challenge': b64(os.urandom(32))}},
		'rp': {'rp': 'evil.example'}, 'absent': {'flags': 0x04}, 'unverified': {'flags': 0x01}, 'backup': {'flags': 0x15},
		'foreign key': {'by': other}, 'user': {'sent': {'userHandle': NO_ID.encode()}}, 'cut': {'cut': lambda d: d[:36]},
		'long': {'cut': lambda d: d + b'\0'}, 'empty': {'sent': {'authenticatorData': b'\0'}}, 'no json': {'sent': {'clientDataJSON': b'{'}},
		'flipped': {'sent': {'signature': b'\x30\x06\x02\x01\x01\x02\x01\x01'}},
	}
	for name, lie in lies.items():
		r = enter(b, key, **lie)
		assert (r.status_code, r.json()['errorCode']) == (401, 'INVALID_CREDENTIALS') and SESSION not in b.cookies, name
	other.user = key.user
	b.refused(enter(b, other), 401, 'INVALID_CREDENTIALS')  # nobody has it
	# UV set after the signing.
	options = ok(b.post('/api/session/passkey/options', {}))
	sent = key.get(options, b.origin, flags=0x01)
	data = bytearray(unb64(sent['response']['authenticatorData']))
	data[32] |= 4
	sent['response']['authenticatorData'] = b64(bytes(data))
	b.refused(b.post('/api/session/passkey', {'ticket': options['ticket'], 'credential': sent}), 401, 'INVALID_CREDENTIALS')
	# A right one passes once.
	options = ok(b.post('/api/session/passkey/options', {}))
	body = {'ticket': options['ticket'], 'credential': key.get(options, b.origin)}
	ok(b.post('/api/session/passkey', body))
	thief = Browser(host)
	thief.refused(thief.post('/api/session/passkey', body), 401, 'INVALID_CREDENTIALS')
	body['ticket'] = ok(thief.post('/api/session/passkey/options', {}))['ticket']
	thief.refused(thief.post('/api/session/passkey', body), 401, 'INVALID_CREDENTIALS')
	# Its counter goes back: a copy.
	before, key.count = key.count, 1
	thief.refused(enter(thief, key), 401, 'INVALID_CREDENTIALS')
	assert 'has counted back' in host.stderr
	key.count = before
	ok(enter(thief, key))
	# Too late.
	late = Browser(host)
	options = ok(late.post('/api/session/passkey/options', {}))
	host.advance(301)
	late.refused(late.post('/api/session/passkey', {'ticket': options['ticket'], 'credential': key.get(options, late.origin)}), 401,
		'INVALID_CREDENTIALS')


def test_passkeys_that_are_refused(host, owner):
	key = Authenticator()
	weak = ec.generate_private_key(ec.SECP384R1()).public_key().public_bytes(serialization.Encoding.DER,
		serialization.PublicFormat.SubjectPublicKeyInfo)
	lies = [{'client': {'origin': 'https://evil.example'}}, {'client': {'type': 'webauthn.get'}}, {'client': {'challenge': 'AAAA'}},
		{'rp': 'evil.example'}, {'flags': 0x41}, {'flags': 0x44}, {'flags': 0x05}, {'made': b'other'}, {'cut': lambda d: d[:60]},
		{'spki': weak}, {'spki': b'\x30\x00'}, {'spki': key.spki() + b'\0'}]
	for lie in lies:
		owner.refused(register(owner, key, **lie), 400, 'INVALID_PASSKEY')
	foreign = ok(owner.post('/api/session/passkey/options', {}))
	options = ok(owner.post('/api/session/passkeys/options', {}))
	body = {'ticket': foreign['ticket'], 'name': 'x', 'credential': key.make(options, owner.origin)}
	owner.refused(owner.post('/api/session/passkeys', body), 400, 'INVALID_TICKET')
	body['ticket'] = options['ticket']
	ok(owner.post('/api/session/passkeys', body), 201)
	owner.refused(owner.post('/api/session/passkeys', body), 400, 'INVALID_TICKET')
	for fault in ('ticket', 'credential'):
		owner.refused(owner.post('/api/session/passkeys', {k: v for k, v in body.items() if k != fault}), 400, 'VALIDATION_ERROR')
	# By an address, or by a name that somebody writes into a header.
	for name in ('127.0.0.1:%d' % host.port, 'evil.example', 'a.localhost:%d' % host.port, 'localhost'):
		r = owner.post('/api/session/passkey/options', {}, host=name)
		owner.refused(r, 400, 'PASSKEYS_NEED_A_NAME')
		assert 'https://localhost:%d/console/' % host.port in r.json()['detail']


def test_a_password_adds_no_second_factor(host, owner):
	"""To an account that has a passkey: who has found out the password alone would have a strong session, and keep it."""
	key = Authenticator()
	ok(register(owner, key), 201)
	thief = Browser(host)
	ok(thief.post('/api/session/password', {'username': owner.name, 'password': PASSWORD}))
	path = '/api/session/passkeys/' + ok(thief.get('/api/session/passkeys'))['results'][0]['id']
	thief.refused(thief.post('/api/session/totp/enroll', {}), 403, 'PASSKEY_NEEDED')
	thief.refused(thief.post('/api/session/totp/confirm', {'code': '000000'}), 403, 'PASSKEY_NEEDED')
	thief.refused(thief.post('/api/session/passkeys/options', {}), 403, 'PASSKEY_NEEDED')
	options = ok(owner.post('/api/session/passkeys/options', {}))  # of the same user
	thief.refused(thief.post('/api/session/passkeys', {'ticket': options['ticket'], 'name': 'x',
		'credential': Authenticator().make(options, thief.origin)}), 403, 'PASSKEY_NEEDED')
	thief.refused(thief.ask('DELETE', path), 403, 'PASSKEY_NEEDED')
	ok(enter(thief, key))
	ok(thief.post('/api/session/totp/enroll', {}))
	ok(register(thief, Authenticator()), 201)


# OIDC

def approve(host, id, domain, word='approve'):
	return client.cli('domains', word, '--data', host.data_dir, id, domain).stdout


class Company(Org):
	"""An organization with an identity provider of a domain of its own."""

	def __init__(self, host, provider, proven=True, domain=None, **settings):
		doc, = host.seed({'name': unique('company'), 'projects': ['one', 'two'], 'principals': [
			{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, {'type': 'serviceAccount', 'roles': ['ORG_READ_ONLY']}]})
		super().__init__(host, doc)
		self.domain, self.provider = domain or unique('d') + '.example', provider
		self.idp = self.oidc(**{'issuerUri': provider.url, 'userClaim': 'email', 'groupsClaim': 'groups', 'authorizationType': 'GROUP',
			'associatedDomains': [self.domain], 'requestedScopes': ['email', 'groups'], **settings})
		self.configure()
		for domain in {self.domain, *settings.get('associatedDomains', ())} if proven else ():
			approve(host, self.id, domain)

	def configure(self, **config):
		ok(self.owner.patch(self.config, json={'domainRestrictionEnabled': False, 'dataAccessIdentityProviderIds': [self.idp['id']], **config}))

	def sign_in(self, name='ann', browser=None, mode='RS256', to=None, **claims):
		"""The whole way. Gives the browser, and where the last page leads."""
		b = browser or Browser(self.server)
		path = '/api/session/oidc/callback/' + self.idp['id']
		self.provider.control(mode=mode, redirects=[b.origin + path], client='steward',
			claims={'email': '%s@%s' % (name, self.domain), 'email_verified': True, 'sub': name, **claims})
		r = b.get('/api/session/oidc/%s%s' % (self.idp['id'], '?' + urlencode({'to': to}) if to else ''))
		assert r.status_code == 302 and r.headers['Location'].startswith(self.provider.url + '/authorize?'), (r.status_code, r.headers)
		q = parse_qs(urlsplit(r.headers['Location']).query)
		assert q['scope'] == ['openid email groups'] and q['code_challenge_method'] == ['S256'] and q['redirect_uri'] == [b.origin + path]
		back = self.provider.session.get(r.headers['Location'], allow_redirects=False, timeout=60)
		assert back.status_code == 302, back.text
		b.back = back.headers['Location']
		return b, self.arrive(b)

	def arrive(self, b, site='cross-site'):
		r = b.get(b.back, site=site)
		assert r.status_code == 200 and r.headers['Content-Type'].startswith('text/html') and 'no-store' in r.headers['Cache-Control']
		assert "default-src 'none'" in r.headers['Content-Security-Policy'] and '<script' not in r.text and STATE not in b.cookies
		return re.search(r'<meta http-equiv="refresh" content="0;url=([^"]*)">', r.text).group(1).replace('&#38;', '&')

	def roles(self, browser):
		"""Scope -> roles as they were given."""
		doc = ok(self.owner.get('/orgs/%s/users/%s' % (self.id, browser.who()['user']['id'])))['roles']
		return {self.id: set(doc['orgRoles']), **{g['groupId']: set(g['groupRoles']) for g in doc.get('groupRoleAssignments', [])}}


@pytest.fixture(scope='module')
def company(host, provider):
	return Company(host, provider)


def fault(target):
	return re.fullmatch(r'/console/sign-in\?fault=(\w+)', target).group(1)


def test_oidc(host, company):
	b, to = company.sign_in(to='/console/projects/x?tab=a&b=c', given_name='Ann', family_name='Nox')
	assert to == '/console/projects/x?tab=a&b=c'
	who = b.who()
	assert who['user']['username'] == 'ann@' + company.domain and who['user']['firstName'] == 'Ann' and who['session']['method'] == 'oidc'
	assert company.roles(b) == {company.id: {'ORG_MEMBER'}}
	e, = [e for e in company.events('JOINED_ORG') if e.get('targetUsername') == who['user']['username']]
	assert e['username'] == who['user']['username'] and e['remoteAddress'] == '127.0.0.1'
	ok(b.get('/api/svc/v2/orgs/' + company.id))
	# What an identity provider has begun changes no means of signing in.
	b.refused(b.post('/api/session/passkeys/options', {}), 403, 'SESSION_IS_FEDERATED')
	b.refused(b.ask('PATCH', '/api/session/passkeys/' + NO_ID, {'name': 'x'}), 403, 'SESSION_IS_FEDERATED')
	# The same answer again, with and without the cookie; and another browser's.
	assert fault(company.arrive(b)) == 'OIDC_EXPIRED'
	assert b.who()['user']['id'] == who['user']['id']
	again = Browser(host)
	again.back = b.back
	assert fault(company.arrive(again)) == 'OIDC_EXPIRED' and not again.cookies
	# The next time it is the same account.
	assert company.sign_in('Ann')[0].who()['user']['id'] == who['user']['id']
	assert host.stderr.count('code=') == 0


def test_oidc_roles_follow_groups(company):
	dev = {'externalGroupName': 'dev', 'roleAssignments': [{'orgId': company.id, 'role': 'ORG_READ_ONLY'},
		{'groupId': company.projects[0], 'role': 'GROUP_OWNER'}]}
	ops = {'externalGroupName': 'ops', 'roleAssignments': [{'groupId': company.projects[1], 'role': 'GROUP_READ_ONLY'},
		{'orgId': company.id, 'role': 'ORG_OWNER'}]}
	company.configure(postAuthRoleGrants=['ORG_GROUP_CREATOR'], roleMappings=[dev, ops])
	one, two = company.projects
	b, _ = company.sign_in('bob', groups=['dev', 'else'])
	first = {'ORG_GROUP_CREATOR', 'ORG_READ_ONLY'}
	assert company.roles(b) == {company.id: first, one: {'GROUP_OWNER'}}
	user = b.who()['user']['id']
	# By hand: stays, whatever the groups.
	ok(company.owner.post('/groups/%s/users/%s:addRole' % (two, user), json={'groupRole': 'GROUP_CLUSTER_MANAGER'}))
	b, _ = company.sign_in('bob', groups='ops')
	assert company.roles(b) == {company.id: {'ORG_GROUP_CREATOR', 'ORG_OWNER'}, two: {'GROUP_READ_ONLY', 'GROUP_CLUSTER_MANAGER'}}
	b, _ = company.sign_in('bob')
	# The last owner stays one, the rest goes.
	assert company.roles(b) == {company.id: {'ORG_GROUP_CREATOR', 'ORG_OWNER'}, two: {'GROUP_CLUSTER_MANAGER'}}
	types = [e['eventTypeName'] for e in ok(company.owner.get('/groups/%s/events' % one))['results']]
	assert {'JOINED_GROUP', 'REMOVED_FROM_GROUP'} <= set(types)
	company.configure(postAuthRoleGrants=[], roleMappings=[])


def test_oidc_ends_with_what_was_trusted(host, provider):
	"""Sessions of a provider that became another, and of one whose keys were revoked."""
	company = Company(host, provider)
	idp = company.path(company.idp)
	b, _ = company.sign_in()
	ok(company.owner.patch(idp, json={'description': 'ours', 'associatedDomains': [company.domain, 'more.' + company.domain]}))
	b.who()
	ok(company.owner.patch(idp, json={'issuerUri': provider.url + '/other'}))
	b.refused(b.get('/api/session'), 401, 'NOT_SIGNED_IN')
	ok(company.owner.patch(idp, json={'issuerUri': provider.url}))
	b, _ = company.sign_in()
	b.who()
	ok(company.owner.delete(idp + '/jwks'), 204)
	b.refused(b.get('/api/session'), 401, 'NOT_SIGNED_IN')


LIES = ('nonce', 'audience', 'azp', 'issuer', 'expired', 'future', 'endless', 'none', 'hs256', 'unknown', 'forged', 'huge', 'words', 'away', 'mix')


def test_oidc_lies(host, provider, company):
	for mode in LIES:
		b, to = company.sign_in(mode=mode)
		assert fault(to) == 'OIDC_FAILED' and SESSION not in b.cookies, mode
	said = host.stderr
	for words in ('another nonce', 'another client', 'names another issuer', 'has expired', 'future', 'not taken', 'does not publish',
			'signature of its token is wrong', 'answered no JSON', 'answered 302', 'not a signed one'):
		assert words in said, words
	assert not provider.seen('/elsewhere')
	assert fault(company.sign_in(mode='denied')[1]) == 'OIDC_REFUSED'
	assert fault(company.sign_in(mode='state')[1]) == 'OIDC_EXPIRED'
	for mode in ('ES256', 'PS256', 'EdDSA'):
		assert company.sign_in(mode=mode)[1] == '/console/'
	# A new key is fetched when a token names it, and kept.
	before = provider.seen('/keys')
	provider.control(rotate=['RS256'])
	assert company.sign_in()[1] == '/console/' and provider.seen('/keys') == before + 1
	assert company.sign_in()[1] == '/console/' and provider.seen('/keys') == before + 1
	# A client that has to know a secret is none of ours; and a code is no good where it did not come from.
	provider.control(secret='s')
	assert fault(company.sign_in()[1]) == 'OIDC_FAILED' and 'answered 401: invalid_client' in host.stderr
	provider.control(secret=None)


def test_oidc_who_may_not(host, provider, company):
	def no(name='eve', **claims):
		b, to = company.sign_in(name, **claims)
		assert fault(to) == 'OIDC_NOT_ALLOWED' and SESSION not in b.cookies
	no(email='eve@elsewhere.example')
	no(email='no address')
	no(email=['eve@' + company.domain])
	for unverified in (False, 'false', 0, None, []):
		no(email_verified=unverified)
	company.configure(instantUserProvisioningDisabled=True)
	no()
	assert not host.rows("SELECT 1 FROM ref WHERE kind = 'user_name' AND value = 'eve@%s'" % company.domain)
	company.configure(instantUserProvisioningDisabled=False, postAuthRoleGrants=['ORG_OWNER'])
	# Who has roles elsewhere signs in elsewhere, and so does who is in none of the organizations.
	b, _ = company.sign_in('eve')
	ok(b.post('/api/svc/v2/orgs', {'name': unique('own')}), 201)
	no()
	claimed = Company(host, provider, associatedDomains=['own.example'], clientId='other')
	claimed.domain = 'own.example'
	provider.control(client='other')
	b = Browser(host)
	r = b.get('/api/session/oidc/' + claimed.idp['id'])
	provider.control(mode='RS256', redirects=[b.origin + '/api/session/oidc/callback/' + claimed.idp['id']],
		claims={'email': 'owner@own.example', 'email_verified': True})
	b.back = provider.session.get(r.headers['Location'], allow_redirects=False, timeout=60).headers['Location']
	assert fault(claimed.arrive(b)) == 'OIDC_NOT_ALLOWED' and 'do not use this provider' in host.stderr
	# Who joins another organization has left the provider's hands.
	gus, _ = company.sign_in('gus')
	name = 'gus@' + company.domain
	ok(host.post('/orgs/%s/invites' % host.org, json={'username': name, 'roles': ['ORG_MEMBER']}))
	assert gus.who()['user']['username'] == name
	ok(host.anonymous.post('/api/invitations/' + token(host, name), json={'password': PASSWORD}))
	gus.refused(gus.get('/api/session'), 401, 'NOT_SIGNED_IN')
	no('gus')


def test_oidc_begins_here(host, provider, company):
	b = Browser(host)
	path = '/api/session/oidc/' + company.idp['id']

	def leads(path, **kw):
		r = b.get(path, **kw)
		assert r.status_code == 302 and not b.cookies
		return fault(r.headers['Location'])
	for site in ('cross-site', 'same-site', 'none'):  # none: a link in a letter, which would sign its reader in as somebody else
		assert leads(path, site=site) == 'OIDC_NOT_FROM_HERE'
	assert leads('/api/session/oidc/' + NO_ID) == 'OIDC_UNKNOWN' and leads('/api/session/oidc/x') == 'OIDC_UNKNOWN'
	# Pages of the console alone.
	for to in ('https://evil.example/', '//evil.example', '/api/x', '/console/\\evil', '/console/"><script>', '/consolex', '/console/' + 'x' * 600):
		assert company.sign_in(to=to)[1] == '/console/', to
	# An answer for one provider is none for another.
	b, _ = company.sign_in()
	b.get(path)
	other = company.oidc(issuerUri=provider.url + '/other')
	b.back = '/api/session/oidc/callback/%s?%s' % (other['id'], urlsplit(b.back).query)
	assert fault(company.arrive(b)) == 'OIDC_EXPIRED'
	# Without the organizations that use it, a provider signs nobody in.
	shown = lambda: [x['id'] for x in ok(b.get('/api/session/providers?username=nobody@' + company.domain.upper()))['results']]
	assert shown() == [company.idp['id']] and b.who()
	company.configure()  # nothing is taken away
	assert b.who()
	company.configure(dataAccessIdentityProviderIds=[])
	b.refused(b.get('/api/session'), 401, 'NOT_SIGNED_IN')  # nor do those stay whom it has signed in
	assert shown() == []
	b.cookies.clear()
	assert leads(path) == 'OIDC_UNKNOWN'
	company.configure()
	assert ok(b.get('/api/session/providers?username=nobody@other.example')) == {'results': []}
	assert ok(b.get('/api/session/providers?username=nobody')) == {'results': []}
	# A provider that changes while somebody is on the way.
	b, _ = company.sign_in()
	provider.control(mode='hang')
	r = b.get(path)
	b.back = provider.session.get(r.headers['Location'], allow_redirects=False, timeout=60).headers['Location']
	asked = provider.seen('/token')

	def while_it_hangs():
		out = []
		t = threading.Thread(target=lambda: out.append(company.arrive(b)))
		t.start()
		until(lambda: provider.seen('/token') > asked)
		# Nobody else waits for it.
		Browser(host).refused(Browser(host).post('/api/session/password', {'username': 'x@y.example', 'password': 'wrong one'}), 401,
			'INVALID_CREDENTIALS')
		ok(company.owner.patch(company.path(company.idp), json={'clientId': 'changed'}))
		provider.control(mode='RS256', release=True)
		t.join()
		return out[0]
	assert fault(while_it_hangs()) == 'OIDC_EXPIRED'
	ok(company.owner.patch(company.path(company.idp), json={'clientId': 'steward'}))
	# Codes go into a private network only where the issuer itself lives.
	provider.control(endpoint=provider.url.replace('localhost', '127.0.0.1') + '/token')
	host.advance(25 * 3600)  # what is known of the issuer is too old by now
	assert fault(company.sign_in()[1]) == 'OIDC_FAILED' and 'its address may not be reached' in host.stderr
	provider.control(endpoint=None)


# SAML

class Saml:
	"""A SAML provider: Debian's lasso plays it, with a key of its own."""

	def __init__(self, company):
		self.company, self.lasso = company, pytest.importorskip('lasso')
		self.key = rsa.generate_private_key(65537, 2048)
		now = datetime.datetime.utcnow()
		name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, 'saml')])
		cert = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.key.public_key()).serial_number(1).not_valid_before(
			now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2000)).sign(self.key, hashes.SHA256())
		self.pem = cert.public_bytes(serialization.Encoding.PEM).decode()
		self.issuer, self.sso = 'https://saml.example/' + unique(), 'https://saml.example/sso?a=b'
		doc = company.saml()
		self.id, self.okta = doc['id'], doc['oktaIdpId']
		ok(company.owner.patch(company.path(doc), json={'ssoDebugEnabled': False, 'issuerUri': self.issuer, 'ssoUrl': self.sso, 'status': 'ACTIVE',
			'associatedDomains': [company.domain], 'pemFileInfo': {'fileName': 'x', 'certificates': [{'content': self.pem}]}}))
		company.configure(identityProviderId=self.okta)
		self.sp = ok(company.owner.get(company.providers + '/%s/metadata.xml' % self.okta))
		self.metadata = '<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="%s"><IDPSSODescriptor ' \
			'protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:' \
			'bindings:HTTP-Redirect" Location="%s"/></IDPSSODescriptor></EntityDescriptor>' % (self.issuer, self.sso)

	def answer(self, query, name, key=None, seconds=(-30, 300), change=None, method=None, at='/sso/saml2/', **attributes):
		"""The SAMLResponse to a request."""
		l = self.lasso
		pem = (key or self.key).private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
			serialization.NoEncryption()).decode()
		server = l.Server.newFromBuffers(self.metadata, pem)
		server.signatureMethod = method or l.SIGNATURE_METHOD_RSA_SHA256
		server.addProviderFromBuffer(l.PROVIDER_ROLE_SP, self.sp.replace('/sso/saml2/', at))
		login = l.Login(server)
		if at != '/sso/saml2/':
			text = zlib.decompress(base64.b64decode(parse_qs(query)['SAMLRequest'][0]), -15).replace(b'/sso/saml2/', at.encode())
			packer = zlib.compressobj(wbits=-15)
			query = urlencode({'SAMLRequest': base64.b64encode(packer.compress(text) + packer.flush())})
		login.processAuthnRequestMsg(query)
		login.validateRequestMsg(True, True)
		times = [(datetime.datetime.utcnow() + datetime.timedelta(seconds=s)).strftime('%Y-%m-%dT%H:%M:%SZ') for s in seconds]
		login.buildAssertion(l.SAML2_AUTHN_CONTEXT_PASSWORD, *times, *times)
		assertion = login.assertion
		assertion.subject.nameID.content = name
		for n, values in attributes.items():
			for v in values:
				node = l.MiscTextNode.newWithString(v)
				node.textChild = True
				assertion.addAttributeWithNode(n, l.SAML2_ATTRIBUTE_NAME_FORMAT_BASIC, node)
		if change:
			change(assertion)
		login.buildAuthnResponseMsg()
		assert login.msgUrl == self.company.server.base_url + at + self.okta
		return login.msgBody

	def leave(self, b, to='/console/x'):
		r = b.get('/api/session/saml/%s?to=%s' % (self.id, to))
		assert r.status_code == 302 and r.headers['Location'].startswith(self.sso + '&SAMLRequest='), (r.status_code, r.headers)
		return urlsplit(r.headers['Location']).query

	def post(self, b, response):
		"""The form of the provider's page, which brings no cookie; and where the page after it leads."""
		other = Browser(b.server, 'cross-site', '127.0.0.1')
		r = other.session.post(b.origin + '/sso/saml2/' + self.okta, data={'SAMLResponse': response}, timeout=60, headers={'Sec-Fetch-Site': 'cross-site'})
		assert r.status_code == 200 and 'Set-Cookie' not in r.headers, r.text
		return re.search(r'content="0;url=([^"]*)"', r.text).group(1)

	def sign_in(self, name='sam', b=None, bend=lambda x: x, **what):
		b = b or Browser(self.company.server, host='127.0.0.1')
		to = self.post(b, bend(self.answer(self.leave(b), '%s@%s' % (name, self.company.domain), **what)))
		if to.startswith('/api/session/saml/done/'):
			b.done = to
			to = re.search(r'content="0;url=([^"]*)"', b.get(to).text).group(1)
		return b, to


def test_saml(host, provider):
	if not (pathlib.Path(client.binary()).parent / 'steward-saml').exists():
		pytest.skip('steward-saml is not built')
	company = Company(host, provider, associatedDomains=[])
	saml = Saml(company)
	shown, = ok(Browser(host).get('/api/session/providers?username=x@' + company.domain))['results']
	assert shown['id'] == saml.id and shown['protocol'] == 'SAML'
	ok(company.owner.post(company.mappings, json={'externalGroupName': 'dev', 'roleAssignments': [
		{'groupId': company.projects[0], 'role': 'GROUP_OWNER'}]}))
	# A hundred groups with long names are no more than fits.
	b, to = saml.sign_in(firstName=['Sam'], lastName=['Lee'], memberOf=['%040d' % i for i in range(99)] + ['dev'])
	who = b.who()
	assert to == '/console/x' and who['user']['username'] == 'sam@' + company.domain and who['user']['lastName'] == 'Lee'
	assert who['session']['method'] == 'saml' and company.roles(b) == {company.id: {'ORG_MEMBER'}, company.projects[0]: {'GROUP_OWNER'}}
	b.refused(b.post('/api/session/passkeys/options', {}), 403, 'SESSION_IS_FEDERATED')
	assert company.roles(saml.sign_in()[0]) == {company.id: {'ORG_MEMBER'}}

	def no(code='OIDC_FAILED', **what):
		b, to = saml.sign_in('eve', **what)
		assert fault(to) == code and SESSION not in b.cookies, what

	def text(change):
		return lambda r: base64.b64encode(change(base64.b64decode(r).decode()).encode()).decode()
	no(key=rsa.generate_private_key(65537, 2048))
	no(method=saml.lasso.SIGNATURE_METHOD_RSA_SHA1)
	no(seconds=(-900, -600))
	no(seconds=(600, 900))
	no(bend=text(lambda x: x.replace('eve@', 'owner@')))
	no(bend=text(lambda x: re.sub(r'<(\w+:)?Signature .*?</(\w+:)?Signature>', '', x, flags=re.S)))
	no(bend=text(lambda x: '<!DOCTYPE x [<!ENTITY a "b">]>' + x))
	no(bend=lambda x: 'bm8geG1s')

	def audience(assertion):
		assertion.conditions.audienceRestriction[0].audience = 'https://other.example'
	no(change=audience)
	no(at='/sso/other/')
	# Two assertions, of which one is signed.
	def wrapped(x):
		one = re.search(r'<saml:Assertion .*</saml:Assertion>', x, re.S).group(0)
		forged = re.sub(r'<(\w+:)?Signature .*?</(\w+:)?Signature>', '', one, flags=re.S).replace('eve@', 'owner@').replace(' ID="', ' ID="x')
		return x.replace(one, forged + one)
	no(bend=text(wrapped))
	# Nobody here has asked for it, or another browser has; and the same again.
	victim = Browser(host, host='127.0.0.1')
	answer = saml.answer(saml.leave(Browser(host, host='127.0.0.1')), 'eve@' + company.domain)
	to = saml.post(victim, answer)
	assert to.startswith('/api/session/saml/done/') and 'OIDC_EXPIRED' in victim.get(to).text and not victim.cookies
	saml.leave(victim)
	assert 'OIDC_EXPIRED' in victim.get(to).text and SESSION not in victim.cookies
	assert 'OIDC_EXPIRED' in b.get(b.done).text
	said = host.stderr
	for words in ('for another service', 'another recipient', 'has expired', 'not taken', 'document type', 'no XML'):
		assert words in said, words
	assert host.stderr.count('answer=') == 0
	# Switched off, it is nobody's way in.
	ok(company.owner.patch(company.path(company.saml()), json={'ssoDebugEnabled': False, 'status': 'INACTIVE'}))
	assert fault(Browser(host).get('/api/session/saml/' + saml.id).headers['Location']) == 'OIDC_UNKNOWN'


def offered(host, domain):
	return [x['id'] for x in ok(Browser(host).get('/api/session/providers?username=a@' + domain))['results']]


def test_a_domain_is_proven_before_its_people_are_taken(host, provider):
	"""Whoever names a domain first takes nobody: not by an account that is made, nor by hiding the right provider behind twenty others,
	nor by making somebody a member who was not asked."""
	domain = unique('d') + '.example'
	b, to = Company(host, provider, proven=False, domain=domain).sign_in('ann')
	assert fault(to) == 'OIDC_NOT_ALLOWED' and SESSION not in b.cookies and 'domain is not proven' in host.stderr
	assert not host.rows("SELECT 1 FROM ref WHERE kind = 'user_name' AND value = 'ann@%s'" % domain) and offered(host, domain) == []
	# An account that such a provider has made while older versions believed it: its owner has accepted nothing.
	thief = Company(host, provider, domain=domain)
	assert thief.sign_in('bob')[1] == '/console/'
	approve(host, thief.id, domain, 'withdraw')
	for _ in range(20):
		doc, = host.seed({'name': unique('thief'), 'projects': [], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}] * 2})
		org = Org(host, doc)
		idp = org.oidc(issuerUri=provider.url, associatedDomains=[domain])
		ok(org.owner.patch(org.config, json={'domainRestrictionEnabled': False, 'dataAccessIdentityProviderIds': [idp['id']]}))
	company = Company(host, provider, domain=domain)
	assert offered(host, domain) == [company.idp['id']]
	assert len(company.events('DOMAIN_VERIFIED')) == 1
	assert company.sign_in('bob')[1] == '/console/'
	b, to = company.sign_in('ann')
	assert to == '/console/'
	user = b.who()['user']['id']
	# Named as an owner by somebody who shares an organization: invited, and everything goes on.
	made = ok(company.owner.post('/orgs', json={'name': unique('trap'), 'orgOwnerId': user}), 201)
	trap = made['organization']['id']
	assert made['orgOwnerId'] == user and [o['id'] for o in b.who()['orgs']] == [company.id]
	member, = ok(company.owner.get('/orgs/%s/users' % trap))['results']
	assert member['orgMembershipStatus'] == 'PENDING' and member['roles']['orgRoles'] == ['ORG_OWNER']
	assert company.sign_in('ann')[1] == '/console/'
	# The word is taken back: sessions end, and nobody comes.
	b, _ = company.sign_in('ann')
	listed = client.cli('domains', '--data', host.data_dir).stdout
	assert re.search(r'^%s +%s proven by OPERATOR 20' % (re.escape(domain), company.federation), listed, re.M), listed
	assert len(re.findall(r'^%s .* waits' % re.escape(domain), listed, re.M)) == 22
	approve(host, company.federation, domain, 'withdraw')
	b.refused(b.get('/api/session'), 401, 'NOT_SIGNED_IN')
	assert offered(host, domain) == [] and fault(company.sign_in('ann')[1]) == 'OIDC_NOT_ALLOWED'
	for words in (('withdraw', company.id, domain), ('approve', NO_ID, domain), ('approve', company.id, 'no domain'), ('approve', company.id), ('x',)):
		assert client.cli('domains', *words, '--data', host.data_dir, check=False).returncode in (1, 2)


class Names(threading.Thread):
	"""A name server with TXT records."""

	def __init__(self):
		super().__init__(daemon=True)
		self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		self.socket.bind(('127.0.0.1', 0))
		self.address, self.texts, self.asked = '127.0.0.1:%d' % self.socket.getsockname()[1], {}, []
		self.start()

	def run(self):
		while True:
			question, peer = self.socket.recvfrom(4096)
			if question == b'end':
				return self.socket.close()
			labels, at = [], 12
			while question[at]:
				labels.append(question[at + 1:at + 1 + question[at]].decode())
				at += 1 + question[at]
			name, at = '.'.join(labels).lower(), at + 5
			self.asked.append(name)
			answers = b''.join(b'\xc0\x0c' + struct.pack('>HHIH', 16, 1, 60, len(t) + sum(1 for _ in range(0, len(t), 9))) +
				b''.join(bytes([len(t[i:i + 9])]) + t[i:i + 9] for i in range(0, len(t), 9)) for t in self.texts.get(name, ()))
			self.socket.sendto(question[:2] + struct.pack('>HHHHH', 0x8180, 1, len(self.texts.get(name, ())), 0, 0) + question[12:at] + answers, peer)

	def end(self):
		host, port = self.address.split(':')
		with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
			s.sendto(b'end', (host, int(port)))
		self.join(60)


def test_whose_providers_are_offered(start_server, tmp_path):
	"""Those of a domain that its federation has proven by a record; in an older store nobody has. And those whom the operator lets."""
	class Dead:
		url = 'https://127.0.0.1:9'
	names, data = Names(), tmp_path / 'data'
	server = start_server('--name-server', names.address, data_dir=data)
	company = Company(server, Dead, proven=False)
	record = '_steward.' + company.domain
	until(lambda: record in names.asked)
	names.texts[record] = [b'v=spf1 -all', b'federation=' + NO_ID.encode(), b'xfederation=' + company.federation.encode()]
	asked = len(names.asked)
	ok(company.owner.patch(company.path(company.idp), json={'description': 'looks again'}))
	until(lambda: len(names.asked) > asked)
	assert offered(server, company.domain) == []
	names.texts[record].append(b'federation=' + company.federation.encode())
	ok(company.owner.patch(company.path(company.idp), json={'description': 'looks once more'}))
	until(lambda: offered(server, company.domain) == [company.idp['id']])
	assert len(company.events('DOMAIN_VERIFIED')) == 1
	names.end()
	server.stop()
	if not client.REMOTE:
		for table in ('doc', 'list', 'list_block'):
			client.execute(data, "DELETE FROM %s WHERE kind = 'proven_domain'" % table)
		client.execute(data, "DELETE FROM meta WHERE key = 'proven_domains'")
		server = start_server(data_dir=data)
		assert offered(server, company.domain) == [] and 'domains: %s of federation' % company.domain in server.stderr
		server.stop()
	# The operator may let only its own sign people in.
	server = start_server('--federated-sign-in', 'operator', data_dir=data)
	approve(server, company.id, company.domain)
	assert offered(server, company.domain) == []
	assert fault(Browser(server).get('/api/session/oidc/' + company.idp['id']).headers['Location']) == 'OIDC_UNKNOWN'
	federation = ok(server.get('/orgs/%s/federationSettings' % server.org))['id']
	own = ok(server.post('/federationSettings/%s/identityProviders' % federation, json={'displayName': 'Own', 'issuerUri': Dead.url, 'protocol': 'OIDC',
		'idpType': 'WORKFORCE', 'audience': 'a', 'clientId': 'c', 'associatedDomains': [company.domain]}))
	ok(server.patch('/federationSettings/%s/connectedOrgConfigs/%s' % (federation, server.org), json={'domainRestrictionEnabled': False,
		'dataAccessIdentityProviderIds': [own['id']]}))
	approve(server, federation, company.domain)
	assert offered(server, company.domain) == [own['id']]


def test_domains_that_say_nothing_keep_no_worker(start_server):
	"""A name server that never answers costs seconds for each look. Two federations of hundreds of such domains kept all workers that
	make snapshots, for everybody: who is slow waits longer than it took, also when its settings change."""
	class Dead:
		url = 'https://127.0.0.1:9'
	with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
		silent.bind(('127.0.0.1', 0))
		silent.settimeout(30)
		server = start_server('--name-server', '127.0.0.1:%d' % silent.getsockname()[1])
		company = Company(server, Dead, proven=False, associatedDomains=[unique('s') + '.example' for _ in range(20)])
		silent.recv(4096)

		def asked(seconds):
			"""Whether anything more is asked for. The look that is under way has ended when the clock moves."""
			silent.setblocking(False)
			try:
				while True:
					silent.recv(4096)
			except BlockingIOError:
				pass
			server.advance(seconds)
			try:
				return bool(silent.recv(4096))
			except BlockingIOError:
				return False
		server.advance(0.001)
		ok(company.owner.patch(company.path(company.idp), json={'description': 'looks again'}))
		assert not asked(30)
		assert asked(600)
