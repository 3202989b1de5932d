"""People with browsers: signing in with passwords and codes, sessions, links that are good once; and what attackers try there."""
import base64, calendar, email, hashlib, hmac, re, shutil, struct, time

import pytest, requests
from requests.adapters import HTTPAdapter

import client
import test_backups as backups
from client import REMOTE, Api, Server, assert_problem, cli, metric, ok, refused, unique, until
from conftest import end
from database import free_port
from test_invitations import Inbox, smtp
from test_sign_in_federated import Authenticator
from test_users import LINK, name

COOKIE, DEVICE = '__Host-steward', '__Host-steward-device'
FLAGS = {'Path=/', 'Max-Age=43200', 'Secure', 'HttpOnly', 'SameSite=Strict'}
PASSWORD = 'correct horse battery'


class From(HTTPAdapter):
	"""Calls from another address."""

	def __init__(self, address):
		self.address = address
		super().__init__()

	def init_poolmanager(self, *args, **kw):
		super().init_poolmanager(*args, **kw, source_address=(self.address, 0))


class Browser:
	"""Keeps the session's cookie as a browser does, and says where a request comes from."""

	def __init__(self, server, address=None):
		self.server, self.cookie, self.device, self.api = server, None, None, Api(server)
		if address:
			self.api.session.mount('https://', From(address))

	def call(self, method, path, body=None, site='same-origin', cookie='', headers=()):
		cookie = self.cookie if cookie == '' else cookie
		kept = [(COOKIE, cookie), (DEVICE, self.device if cookie is self.cookie else None)]
		sent = {'Sec-Fetch-Site': site, 'Cookie': '; '.join('%s=%s' % x for x in kept if x[1]), **dict(headers)}
		r = self.api.request(method, path, json=body, headers={k: v for k, v in sent.items() if v})
		self.set_cookie = None
		for text in r.raw.headers.getlist('Set-Cookie'):
			name, value = text.split(';')[0].split('=', 1)
			if name == DEVICE:
				self.device = value
			else:
				assert name == COOKIE
				self.set_cookie, self.cookie = text, value or None
		self.api.session.cookies.clear()
		return r

	def get(self, path, **kw):
		return self.call('GET', path, **kw)

	def post(self, path, body=None, **kw):
		return self.call('POST', path, body, **kw)

	def delete(self, path, body=None, **kw):
		return self.call('DELETE', path, body, **kw)

	def sign_in(self, username, password=PASSWORD):
		return self.post('/api/session/password', {'username': username, 'password': password})

	def code(self, answer, code, kind='totp', **kw):
		return self.post('/api/session/' + kind, {'ticket': ok(answer)['ticket'], 'code': code}, **kw)


def no(answer, status, code):
	"""Refused, and without a challenge: a browser would ask for a key."""
	assert answer.status_code == status, '%s %s -> %d: %s' % (answer.request.method, answer.request.url, answer.status_code, answer.text)
	assert_problem(answer.json(), status)
	assert answer.json()['errorCode'] == code, answer.text
	assert 'WWW-Authenticate' not in answer.headers
	return answer


def signed_in(browser):
	return browser.get('/api/session').status_code == 200


def totp(secret, at):
	"""RFC 6238."""
	mac = hmac.new(base64.b32decode(secret), struct.pack('>Q', int(at) // 30), hashlib.sha1).digest()
	number, = struct.unpack('>I', mac[mac[19] & 15:][:4])
	return '%06d' % ((number & 0x7fffffff) % 10**6)


def now(server):
	return calendar.timegm(time.strptime(server.control('clock', method='GET')['now'], '%Y-%m-%dT%H:%M:%SZ'))


class Site:
	def __init__(self, server, inbox):
		self.server, self.inbox, self.owner, self.name = server, inbox, Browser(server), name('owner')

	def person(self, org=None, roles=('ORG_MEMBER',), browser=None):
		"""Somebody with an account: invited, and accepted in a browser."""
		guest, browser = name('guest'), browser or Browser(self.server)
		ok(self.server.post('/orgs/%s/users' % (org or self.server.org), json={'username': guest, 'roles': {'orgRoles': list(roles)}}), 201)
		link, token = LINK.search(self.letter(guest, '/invitations/')).groups()
		ok(browser.post('/api/invitations/' + token, {'password': PASSWORD, 'firstName': 'Grace', 'lastName': 'Hopper'}))
		return guest, browser, link

	def reset(self, username):
		"""The token of a letter that sets a new password."""
		assert Browser(self.server).post('/api/session/forgotten', {'username': username}).status_code == 202
		return re.search(r'/console/reset/([\w-]+)', self.letter(username, '/console/reset/')).group(1)

	def letters(self, to, about):
		texts = [email.message_from_bytes(e.content).get_payload(decode=True).decode() for e in list(self.inbox.letters) if e.rcpt_tos == [to]]
		return [text for text in texts if about in text]

	def letter(self, to, about):
		"""To that address, with this in it. Others may come before."""
		return until(lambda: self.letters(to, about), what='a letter about ' + about)[0]


@pytest.fixture(scope='module')
def site():
	inbox = Inbox()
	controller = smtp(inbox, free_port())
	s = Server('--smtp-url', 'smtp://127.0.0.1:%d' % controller.port, '--smtp-from', 'steward@example.com')
	made = Site(s, inbox)
	token = s.bootstrap['consoleLink'].rsplit('/', 1)[1]
	ok(made.owner.post('/api/session/first', {'token': token, 'username': made.name, 'password': PASSWORD, 'firstName': 'Ada'}))
	yield made
	controller.stop()
	end(s)


def test_first_link(start_server, tmp_path):
	s = start_server(record=tmp_path / 'exchanges')
	b, link = Browser(s), s.bootstrap['consoleLink']
	token = link.rsplit('/', 1)[1]
	assert link == '%s/console/first/%s' % (s.base_url, token) and link not in s.stdout and len(link) < 100
	assert ok(b.get('/api/session/first/' + token)) == {'username': s.bootstrap['username']}
	for wrong in (token[:-1], token[:-1] + ('0' if token[-1] != '0' else '1'), 'x', client.NO_ID + token[24:]):
		no(b.get('/api/session/first/' + wrong), 404, 'LINK_NOT_FOUND')
		no(b.post('/api/session/first', {'token': wrong, 'password': PASSWORD}), 404, 'LINK_NOT_FOUND')
	for password in ('short', 'x' * 257, 7):
		no(b.post('/api/session/first', {'token': token, 'password': password}), 400, 'INVALID_PASSWORD')
	no(b.post('/api/session/first', {'token': token, 'password': s.bootstrap['username'].upper()}), 400, 'INVALID_PASSWORD')
	no(b.post('/api/session/first', {'token': token, 'password': PASSWORD, 'username': 'nobody'}), 400, 'VALIDATION_ERROR')
	# Before anybody has a password there is none to guess, not even an empty one.
	no(b.sign_in(s.bootstrap['username'], 'x'), 401, 'INVALID_CREDENTIALS')
	assert not b.cookie
	body = {'token': token, 'password': PASSWORD, 'username': 'Ada@Example.com', 'firstName': 'Ada', 'lastName': 'Byron'}
	no(b.post('/api/session/first', body, site='cross-site'), 403, 'CROSS_SITE_REQUEST')
	assert ok(b.post('/api/session/first', body)) == {'userId': s.bootstrap['userId'], 'username': 'ada@example.com'}
	value, *flags = b.set_cookie.split('; ')
	assert set(flags) == FLAGS and re.fullmatch(COOKIE + r'=[0-9a-f]{24}\.[\w-]{43}', value)
	me = ok(b.get('/api/session'))
	assert me['user'] == {'id': s.bootstrap['userId'], 'username': 'ada@example.com', 'firstName': 'Ada', 'lastName': 'Byron'}
	assert {'orgId': s.org, 'roleName': 'ORG_OWNER'} in me['roles'] and [x['id'] for x in me['orgs']] == [s.org]
	assert me['security'] == {'password': True, 'totp': False, 'passkeys': 0, 'recoveryCodesLeft': 0}
	assert me['session']['expiresAt'] > me['session']['idleAt'] > me['session']['createdAt'] and me['operator'] is True
	# Once, whoever has the link.
	no(b.get('/api/session/first/' + token), 404, 'LINK_NOT_FOUND')
	no(b.post('/api/session/first', {'token': token, 'password': 'another one'}), 404, 'LINK_NOT_FOUND')
	no(b.sign_in(s.bootstrap['username']), 401, 'INVALID_CREDENTIALS')
	# What is secret is in no log, no recording and no store.
	s.advance(1)
	kept = b.cookie.split('.')[1]
	s.stop()
	files = [s.stderr, (tmp_path / 'exchanges').read_text()]
	if not REMOTE:
		files += [p.read_bytes().decode('latin-1') for p in s.data_dir.rglob('steward.db*')]
	for text in files:
		assert kept not in text and token not in text and PASSWORD not in text
	assert '/api/session/first/(redacted)' in files[1] and '"/api/session/password"' in files[1]


def test_same_answer_for_everybody(site):
	"""Whether a name has an account is not told: not by the answer, not by what is done for it."""
	seeded, = site.server.seed({'name': unique('org'), 'principals': [{'type': 'user', 'username': name('bare'), 'roles': ['ORG_MEMBER']}]})
	b = Browser(site.server)
	with site.server.slow_passwords():
		guest = site.person()[0]
		answers = [no(b.sign_in(who, 'wrong password'), 401, 'INVALID_CREDENTIALS')
			for who in (guest, name('nobody'), seeded['principals'][0]['username'], 'not even an address')]
	assert len({a.text for a in answers}) == 1
	assert len({tuple(sorted(k for k in a.headers)) for a in answers}) == 1
	# The one that has no account was hashed for, too.
	lines = until(lambda: (lambda x: len(x) >= 4 and x)(re.findall(r'401 POST /api/session/password (\d+)us', site.server.stderr)))
	assert min(map(int, lines[-4:])) > 5000
	said = [b.post('/api/session/forgotten', {'username': who}) for who in (name('nobody'), 'nonsense')]
	assert {(a.status_code, a.text) for a in said} == {(202, '{}')}
	for bad in ({}, {'username': 'x'}, {'username': 'x', 'password': ''}, {'username': 7, 'password': 'y'}, {'username': 'x' * 300, 'password': 'y'}):
		said = no(b.post('/api/session/password', bad), 400, 'VALIDATION_ERROR').json()['detail']
		assert ('is required' in said) == (bad in ({}, {'username': 'x'}, {'username': 'x', 'password': ''})), said


def test_cross_site(site):
	"""The cookie counts for the console's own pages alone."""
	b, s = site.owner, site.server
	path, body = '/groups', {'name': unique(), 'orgId': s.org}
	for other in ('cross-site', 'same-site', 'none', 'same-origin, cross-site', ''):
		answer = b.get(path, site=other or None)
		assert answer.status_code == 401 and ('WWW-Authenticate' in answer.headers) == (not other)
		assert b.post(path, body, site=other or None).status_code == 401
		assert b.get('/api/session', site=other or None).status_code == 401
		no(b.post('/api/session/password', {'username': site.name, 'password': PASSWORD}, site=other or None), 403, 'CROSS_SITE_REQUEST')
		no(b.delete('/api/session', site=other or None), 403, 'CROSS_SITE_REQUEST')
		no(b.delete('/api/session/sessions', site=other or None), 403, 'CROSS_SITE_REQUEST')
		no(b.post('/api/session/totp/enroll', site=other or None), 403, 'CROSS_SITE_REQUEST')
	assert body['name'] not in s.get('/groups?itemsPerPage=500').text
	# A form can send text, but no JSON.
	url = s.base_url + '/api/session/password'
	answer = requests.post(url, data='{"username": "x", "password": "y"}', headers={'Content-Type': 'text/plain'}, verify=s.ca_file)
	no(answer, 415, 'UNSUPPORTED_MEDIA_TYPE')
	# Two cookies of the name: one of them is not ours.
	twice = '%s=%s; %s=%s' % (COOKIE, b.cookie, COOKIE, b.cookie)
	no(b.get('/api/session', headers={'Cookie': twice}), 401, 'NOT_SIGNED_IN')
	# An Authorization header is what counts, where there is one.
	assert b.get(path, headers={'Authorization': 'Bearer nonsense'}).status_code == 401
	ok(b.get(path))
	assert signed_in(b)


def test_fixation(site):
	username, victim, _ = site.person()
	attacker = Browser(site.server)
	ok(attacker.sign_in(site.name))
	planted = attacker.cookie
	for cookie in (planted, '%s.%s' % (planted.split('.')[0], 'A' * 43), 'f' * 24 + '.' + 'A' * 43, 'nonsense', 'a.b'):
		victim.cookie = cookie
		ok(victim.sign_in(username))
		assert victim.cookie != cookie and victim.cookie.split('.')[0] != cookie.split('.')[0]
		assert ok(victim.get('/api/session'))['user']['username'] == username
		if cookie == planted:  # what the browser had is over, and was never the victim's
			assert not signed_in(attacker)
			break
	# So it is for who accepts an invitation.
	kept = Browser(site.server)
	ok(kept.sign_in(site.name))
	before = kept.cookie
	site.person(browser=kept)
	assert signed_in(kept)
	no(kept.get('/api/session', cookie=before), 401, 'NOT_SIGNED_IN')
	for cookie in ('%s.%s' % (victim.cookie.split('.')[0], 'A' * 43), victim.cookie[:-1], victim.cookie.split('.')[0], 'f' * 24 + '.' + 'A' * 43):
		no(attacker.get('/api/session', cookie=cookie), 401, 'NOT_SIGNED_IN')
		no(attacker.get('/groups', cookie=cookie), 401, 'NOT_SIGNED_IN')


def test_link_of_the_operator(site):
	"""For services without mail, and for people without their codes. The command goes by the machine's clock: before the other is moved."""
	s = site.server
	username, b, _ = site.person()
	secret = ok(b.post('/api/session/totp/enroll'))['secret']
	ok(b.post('/api/session/totp/confirm', {'code': totp(secret, now(s))}))
	link = cli('password-link', '--data', s.data_dir, username.upper()).stdout.strip()
	token = re.fullmatch(re.escape(s.base_url) + r'/console/reset/([\w-]+)', link).group(1)
	assert ok(b.post('/api/session/reset', {'token': token, 'password': 'a new password'}))['next'] == 'TOTP'
	link = cli('password-link', '--data', s.data_dir, username, '--without-codes').stdout.strip()
	ok(b.post('/api/session/reset', {'token': link.rsplit('/', 1)[1], 'password': 'another password'}))
	assert ok(b.get('/api/session'))['security'] == {'password': True, 'totp': False, 'passkeys': 0, 'recoveryCodesLeft': 0}
	assert cli('password-link', '--data', s.data_dir, name('nobody'), check=False).returncode == 1


def test_guessing_is_slowed_and_locks_nobody_out(site):
	username, _, _ = site.person()
	owner, known = Browser(site.server), Browser(site.server)
	for one in (owner, known):
		ok(one.sign_in(username))
	for i in range(20):  # from as many addresses
		no(Browser(site.server, '127.0.1.%d' % (i + 1)).sign_in(username, 'wrong'), 401, 'INVALID_CREDENTIALS')
	attacker = Browser(site.server, '127.0.2.1')
	slowed = no(attacker.sign_in(username, 'wrong'), 429, 'TOO_MANY_FAILED_ATTEMPTS')
	assert 1 <= int(slowed.headers['Retry-After']) <= 60
	no(attacker.sign_in(username.upper(), 'wrong'), 429, 'TOO_MANY_FAILED_ATTEMPTS')
	no(attacker.sign_in(site.name, 'wrong'), 401, 'INVALID_CREDENTIALS')
	# The owner has signed in from here before, or with this browser somewhere else: both pass.
	owner.device = None
	ok(owner.sign_in(username.upper()))
	traveller = Browser(site.server, '127.0.2.2')
	traveller.device = known.device
	ok(traveller.sign_in(username))
	attacker.device = site.owner.device  # another's browser is no help
	no(attacker.sign_in(username, PASSWORD), 429, 'TOO_MANY_FAILED_ATTEMPTS')
	site.server.advance(61)
	no(attacker.sign_in(username, 'wrong'), 401, 'INVALID_CREDENTIALS')
	# Letters that are asked for count too.
	answers = [owner.post('/api/session/forgotten', {'username': 'a@b.example'}).status_code for _ in range(22)]
	assert answers[:20] == [202] * 20 and answers[20:] == [429] * 2


def test_a_stolen_session_does_not_guess_the_password(site):
	"""The proof and the change of a password take it as the sign-in does: from all addresses together it can be tried as often."""
	s = site.server
	username, b, _ = site.person()
	ok(b.sign_in(username))
	ways = (('proof', {'password': 'wrong'}), ('change-password', {'old': 'wrong', 'new': 'a good new password'}))

	def steal(i):
		thief = Browser(s, '127.0.3.%d' % i)
		thief.cookie = b.cookie
		return thief
	for i in range(20):
		way, body = ways[i % 2]
		no(steal(i + 1).post('/api/session/' + way, body), 403, 'WRONG_PASSWORD')
	for way, body in ways:
		no(steal(50).post('/api/session/' + way, body), 429, 'TOO_MANY_FAILED_ATTEMPTS')
		no(steal(51).post('/api/session/' + way, {**body, 'password' if way == 'proof' else 'old': PASSWORD}), 429, 'TOO_MANY_FAILED_ATTEMPTS')
	# Who has signed in from here before, or with this browser, is not kept out by it.
	ok(b.post('/api/session/proof', {'password': PASSWORD}), 204)
	s.advance(61)
	ok(steal(51).post('/api/session/proof', {'password': PASSWORD}), 204)


def test_totp(site):
	s = site.server
	username, b, _ = site.person()
	other = Browser(s)
	ok(other.sign_in(username))
	secret = ok(b.post('/api/session/totp/enroll'))['secret']
	again = ok(b.post('/api/session/totp/enroll'))
	assert again['secret'] != secret and re.fullmatch('[A-Z2-7]{32}', again['secret'])
	assert again['uri'] == 'otpauth://totp/Steward:%s?secret=%s&issuer=Steward' % (username, again['secret'])
	secret = again['secret']
	# Not in force before it is confirmed, and confirmed by its own code alone.
	no(b.post('/api/session/totp/confirm', {'code': '000000' if totp(secret, now(s)) != '000000' else '000001'}), 400, 'WRONG_CODE')
	no(b.post('/api/session/recovery-codes'), 409, 'TOTP_IS_OFF')
	used = totp(secret, now(s))
	codes = ok(b.post('/api/session/totp/confirm', {'code': used}))['recoveryCodes']
	assert len(set(codes)) == 10 and all(re.fullmatch('([a-z2-9]{4}-){3}[a-z2-9]{4}', c) for c in codes)
	assert not signed_in(other) and signed_in(b)
	no(b.post('/api/session/totp/enroll'), 409, 'TOTP_IS_ON')
	assert ok(b.get('/api/session'))['security'] == {'password': True, 'totp': True, 'passkeys': 0, 'recoveryCodesLeft': 10}
	# The password alone gives a ticket, and no session.
	first = other.sign_in(username)
	assert set(ok(first)) == {'next', 'ticket', 'expiresAt'} and ok(first)['next'] == 'TOTP' and not other.set_cookie
	no(other.code(first, used), 401, 'INVALID_CREDENTIALS')  # a code is good once
	s.advance(30)
	at = now(s)
	for drift in (-61, 61):
		no(other.code(first, totp(secret, at + drift)), 401, 'INVALID_CREDENTIALS')
	no(Browser(s, '127.0.0.2').code(first, totp(secret, at)), 401, 'INVALID_CREDENTIALS')  # another's ticket
	ok(other.code(first, totp(secret, at + 30)))  # a clock that is ahead
	assert signed_in(other)
	s.advance(60)
	no(other.code(first, totp(secret, now(s))), 401, 'INVALID_CREDENTIALS')  # a ticket is good once
	# Nothing but a ticket is one.
	for ticket in ('', 'nonsense', other.cookie, ok(first)['ticket'][:-2]):
		assert other.post('/api/session/totp', {'ticket': ticket, 'code': totp(secret, now(s))}).status_code in (400, 401)
	# Recovery codes, once each, however they are typed.
	second = other.sign_in(username)
	no(other.code(second, 'aaaa-bbbb-cccc-dddd', 'recovery'), 401, 'INVALID_CREDENTIALS')
	ok(other.code(second, codes[0].upper().replace('-', ' '), 'recovery'))
	third = other.sign_in(username)
	no(other.code(third, codes[0], 'recovery'), 401, 'INVALID_CREDENTIALS')
	assert ok(b.get('/api/session'))['security']['recoveryCodesLeft'] == 9
	fresh = ok(b.post('/api/session/recovery-codes'))['recoveryCodes']
	no(other.code(third, codes[1], 'recovery'), 401, 'INVALID_CREDENTIALS')
	# Too many tries end a ticket, even with the right code; many more make everybody wait, wherever they are.
	for _ in range(3):
		no(other.code(third, '000000x'), 401, 'INVALID_CREDENTIALS')
	no(other.code(third, fresh[0], 'recovery'), 401, 'INVALID_CREDENTIALS')
	tickets = [other.sign_in(username) for _ in range(2)]
	answers = [other.code(tickets[i // 4], 'wrong%d' % i).status_code for i in range(8)]
	assert answers[:5] == [401] * 5 and answers[-1] == 429
	no(other.code(tickets[1], totp(secret, now(s))), 429, 'TOO_MANY_FAILED_ATTEMPTS')
	s.advance(301)  # the ticket is over, too
	no(other.code(tickets[1], totp(secret, now(s))), 401, 'INVALID_CREDENTIALS')
	last = other.sign_in(username)
	ok(other.code(last, totp(secret, now(s) - 30)))  # a clock that is behind
	# Off again: with the password or a code, not by the session alone.
	no(b.delete('/api/session/totp', {}), 400, 'VALIDATION_ERROR')
	no(b.delete('/api/session/totp', {'password': 'wrong'}), 403, 'WRONG_PASSWORD')
	no(b.delete('/api/session/totp', {'code': '000000x'}), 400, 'WRONG_CODE')
	ok(b.delete('/api/session/totp', {'code': totp(secret, now(s))}), 204)
	assert ok(b.get('/api/session'))['security'] == {'password': True, 'totp': False, 'passkeys': 0, 'recoveryCodesLeft': 0}
	for what in ('one-time codes are in use.', 'new recovery codes were made.', 'one-time codes are not in use any more.'):
		site.letter(username, what)
	if not REMOTE:
		kept = b''.join(p.read_bytes() for p in s.data_dir.rglob('steward.db*'))
		for text in (secret, fresh[1], fresh[1].replace('-', '')):
			assert text.encode() not in kept and text not in s.stderr


def test_sessions(site):
	s = site.server
	username, a, _ = site.person()
	b, c = Browser(s), Browser(s)
	for one, agent in ((b, 'Seen/1 <script>' + 'x' * 300), (c, 'not UTF-8: \xff')):
		ok(one.post('/api/session/password', {'username': username, 'password': PASSWORD}, headers={'User-Agent': agent}))
	listed = ok(a.get('/api/session/sessions'))['results']
	assert [x['current'] for x in listed] == [True, False, False]
	assert listed[1]['agent'] == ('Seen/1 <script>' + 'x' * 300)[:200] and listed[2]['agent'] == ''
	assert all(x['address'] == '127.0.0.1' and x['createdAt'] and x['lastUsedAt'] for x in listed)
	# Another's cannot be ended, and is not told from none.
	theirs = ok(site.owner.get('/api/session/sessions'))['results'][0]['id']
	for missing in (theirs, client.NO_ID, 'x'):
		no(a.delete('/api/session/sessions/' + missing), 404, 'SESSION_NOT_FOUND')
	ok(a.delete('/api/session/sessions/' + listed[1]['id']), 204)
	no(b.get('/api/session'), 401, 'NOT_SIGNED_IN')
	no(b.get('/groups'), 401, 'NOT_SIGNED_IN')
	ok(a.delete('/api/session/sessions'), 204)
	assert not signed_in(c) and signed_in(a)
	# Signing out ends it here, not only in the browser.
	kept = a.cookie
	ok(a.delete('/api/session'), 204)
	assert a.cookie is None and 'Max-Age=0' in a.set_cookie
	no(a.get('/groups', cookie=kept), 401, 'NOT_SIGNED_IN')
	ok(a.delete('/api/session', cookie=kept), 204)
	# Two ends: two hours without a use, twelve in all.
	ok(a.sign_in(username))
	ok(b.sign_in(username))
	for _ in range(7):
		s.advance(6000)
		ok(a.get('/groups'))
		until(lambda: used_at(a) >= now(s) - 1, what='a noted use')
	no(b.get('/api/session'), 401, 'NOT_SIGNED_IN')
	s.advance(1300)
	no(a.get('/api/session'), 401, 'NOT_SIGNED_IN')
	# The organization may ask for less.
	org, me = '/orgs/%s/settings' % s.org, Browser(s)
	ok(s.patch(org, json={'customSessionTimeouts': {'absoluteSessionTimeoutInSeconds': 900, 'idleSessionTimeoutInSeconds': 300}}))
	ok(me.sign_in(username))
	assert 'Max-Age=900' in me.set_cookie
	s.advance(301)
	no(me.get('/api/session'), 401, 'NOT_SIGNED_IN')
	ok(s.patch(org, json={'customSessionTimeouts': {'absoluteSessionTimeoutInSeconds': 43200, 'idleSessionTimeoutInSeconds': 7200}}))
	ok(site.owner.sign_in(site.name))


def used_at(browser):
	"""When the session was last used, as its list says."""
	at, = [x['lastUsedAt'] for x in ok(browser.get('/api/session/sessions'))['results'] if x['current']]
	return calendar.timegm(time.strptime(at, '%Y-%m-%dT%H:%M:%SZ'))


def test_change_password(site):
	username, a, _ = site.person()
	b = Browser(site.server)
	ok(b.sign_in(username))
	no(a.post('/api/session/change-password', {'old': 'wrong one', 'new': 'something else'}), 403, 'WRONG_PASSWORD')
	for bad in ('short', username, 'x' * 257):
		assert a.post('/api/session/change-password', {'old': PASSWORD, 'new': bad}).status_code == 400
	no(Browser(site.server).post('/api/session/change-password', {'old': PASSWORD, 'new': 'something else'}), 401, 'NOT_SIGNED_IN')
	ok(a.post('/api/session/change-password', {'old': PASSWORD, 'new': 'something else'}), 204)
	assert signed_in(a) and not signed_in(b)
	letter = site.letter(username, 'the password was changed.')
	assert 'From 127.0.0.1, at 20' in letter and site.server.base_url + '/console/sign-in' in letter and 'something else' not in letter
	no(b.sign_in(username), 401, 'INVALID_CREDENTIALS')
	ok(b.sign_in(username, 'something else'))


def test_what_the_operator_sees(site):
	s = site.server
	username, b, _ = site.person()
	count = lambda: [metric(s, 'steward_sign_in%s_total' % x) for x in ('s', '_failures')]
	right, wrong = count()
	ok(b.sign_in(username))
	assert count() == [right + 1, wrong]
	no(b.sign_in(username, 'a wrong one'), 401, 'INVALID_CREDENTIALS')
	no(b.sign_in('what I typed', 'a wrong one'), 401, 'INVALID_CREDENTIALS')
	no(b.post('/api/session/change-password', {'old': 'a wrong one', 'new': 'something else'}), 403, 'WRONG_PASSWORD')
	assert count() == [right + 1, wrong + 3]
	until(lambda: 'sign-in: refused: %s from 127.0.0.1: WRONG_PASSWORD' % username in s.stderr)
	for line in ('sign-in: %s from 127.0.0.1 by invitation' % username, 'sign-in: %s from 127.0.0.1 by password, session' % username,
			'sign-in: refused: %s from 127.0.0.1: INVALID_CREDENTIALS' % username, 'sign-in: refused: somebody from 127.0.0.1: INVALID_CREDENTIALS'):
		assert line in s.stderr, line
	assert 'a wrong one' not in s.stderr and 'what I typed' not in s.stderr


def test_forgotten(site):
	s, inbox = site.server, site.inbox
	username, a, _ = site.person()
	inbox.letters.clear()
	b = Browser(s)
	for _ in range(2):  # the second is too soon
		assert b.post('/api/session/forgotten', {'username': username.upper()}).status_code == 202
	letter = site.letter(username, '/console/reset/')
	link, token = re.search(r'(https://\S+/console/reset/([\w-]+))', letter).groups()
	assert link.startswith(s.base_url) and username in letter
	assert signed_in(a)  # whoever asks changes nothing
	for wrong in (token[:-2], 'x', token[:-1] + ('A' if token[-1] != 'A' else 'B')):
		no(b.post('/api/session/reset', {'token': wrong, 'password': 'a new password'}), 404, 'LINK_NOT_FOUND')
	no(b.post('/api/session/reset', {'token': token, 'password': 'short'}), 400, 'INVALID_PASSWORD')
	ok(b.post('/api/session/reset', {'token': token, 'password': 'a new password'}))
	assert signed_in(b) and not signed_in(a)
	no(a.sign_in(username), 401, 'INVALID_CREDENTIALS')
	no(b.post('/api/session/reset', {'token': token, 'password': 'another password'}), 404, 'LINK_NOT_FOUND')
	site.letter(username, 'the password was changed by a link.')
	assert len(site.letters(username, '/console/reset/')) == 1 and token not in s.stderr
	# It is over after an hour.
	s.advance(121)
	inbox.letters.clear()
	assert b.post('/api/session/forgotten', {'username': username}).status_code == 202
	late = re.search(r'/console/reset/([\w-]+)', site.letter(username, '/console/reset/')).group(1)
	s.advance(3601)
	no(b.post('/api/session/reset', {'token': late, 'password': 'another password'}), 404, 'LINK_NOT_FOUND')


def test_invitation_in_a_browser(site):
	s = site.server
	username, b, link = site.person()
	assert set(b.set_cookie.split('; ')[1:]) == FLAGS
	me = ok(b.get('/api/session'))
	assert me['user']['username'] == username and 'operator' not in me
	page = requests.get(s.base_url + link, headers={'Accept': 'text/html,*/*;q=0.8'}, verify=s.ca_file, allow_redirects=False)
	assert page.status_code == 303 and page.headers['Location'] == '/console' + link
	assert requests.get(s.base_url + link, verify=s.ca_file).headers['Content-Type'] == 'application/json'
	until(lambda: '303 GET /invitations/(redacted)' in s.stderr)
	# A client without a browser gets no cookie.
	guest = name('guest')
	ok(s.post('/orgs/%s/users' % s.org, json={'username': guest, 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	token = LINK.search(site.letter(guest, '/invitations/')).group(2)
	answer = s.anonymous.post('/api/invitations/' + token, json={'password': PASSWORD, 'firstName': 'Grace', 'lastName': 'Hopper'})
	assert answer.status_code == 200 and 'Set-Cookie' not in answer.headers


def test_stolen_session_leaves_nothing_behind(site):
	"""Without a proof that is minutes old, a session changes no factor and makes no credential, member or way in; and what was
	added nevertheless ends with a reset."""
	s = site.server
	org = ok(s.post('/orgs', json={'name': unique('org')}), 201)['organization']['id']
	group = ok(s.post('/groups', json={'name': unique(), 'orgId': org}))['id']
	username, b, _ = site.person(org, ['ORG_OWNER'])
	fed = ok(b.get('/orgs/%s/federationSettings' % org))['id']
	key = ok(b.post('/orgs/%s/apiKeys' % org, {'desc': 'x', 'roles': ['ORG_READ_ONLY']}))['id']
	account = ok(b.post('/orgs/%s/serviceAccounts' % org, {'name': 'x', 'description': 'x', 'roles': ['ORG_READ_ONLY'],
		'secretExpiresAfterHours': 8}), 201)['clientId']
	secret = ok(b.post('/api/session/totp/enroll'))['secret']
	ok(b.post('/api/session/totp/confirm', {'code': totp(secret, now(s))}))
	s.advance(15 * 60)
	lasting = [('POST', '/api/session/recovery-codes', None), ('POST', '/api/session/totp/enroll', None), ('POST', '/api/session/passkeys/options', {}),
		('POST', '/orgs/%s/apiKeys' % org, {'desc': 'x', 'roles': ['ORG_OWNER']}),
		('PATCH', '/orgs/%s/apiKeys/%s' % (org, key), {'roles': ['ORG_OWNER']}),
		('POST', '/orgs/%s/apiKeys/%s/accessList' % (org, key), [{'ipAddress': '192.0.2.1'}]),
		('POST', '/groups/%s/apiKeys' % group, {'desc': 'x', 'roles': ['GROUP_OWNER']}),
		('POST', '/orgs/%s/serviceAccounts' % org, {'name': 'y', 'description': 'y', 'roles': ['ORG_OWNER'], 'secretExpiresAfterHours': 8}),
		('POST', '/orgs/%s/serviceAccounts/%s/secrets' % (org, account), {'secretExpiresAfterHours': 8}),
		('POST', '/orgs/%s/invites' % org, {'username': name('thief'), 'roles': ['ORG_OWNER']}),
		('POST', '/orgs/%s/users' % org, {'username': name('thief'), 'roles': {'orgRoles': ['ORG_OWNER']}}),
		('POST', '/groups/%s/users' % group, {'username': name('thief'), 'roles': ['GROUP_OWNER']}),
		('POST', '/federationSettings/%s/identityProviders' % fed, {'displayName': 'x', 'protocol': 'OIDC', 'issuerUri': 'https://thief.example'}),
		('PATCH', '/orgs/%s/settings' % org, {'multiFactorAuthRequired': False}),
		('POST', '/groups/%s/databaseUsers' % group, {'username': 'thief', 'databaseName': 'admin', 'password': 'correct horse',
			'roles': [{'roleName': 'readAnyDatabase', 'databaseName': 'admin'}]}),
		('POST', '/orgs', {'name': unique('trap'), 'federationSettingsId': fed, 'apiKey': {'desc': 'x', 'roles': ['ORG_OWNER']}}),
		('GET', '/orgs/%s/activityFeed' % org, None), ('GET', '/groups/%s/activityFeed' % group, None),
		*((m, '/groups/%s/integrations/PROMETHEUS' % group, {'type': 'PROMETHEUS', 'enabled': True, 'username': 'thief', 'password': 'correct horse',
			'serviceDiscovery': 'http'}) for m in ('POST', 'PUT')),
		# Where data goes on leaving to, and what existing users of databases may: none is a credential, all outlive the session.
		('POST', '/groups/%s/backup/exportBuckets' % group, {}), ('PATCH', '/groups/%s/backup/exportBuckets/%s' % (group, org), {}),
		('POST', '/groups/%s/pushBasedLogExport' % group, {}), ('PATCH', '/groups/%s/pushBasedLogExport' % group, {}),
		('POST', '/groups/%s/logIntegrations' % group, {}), ('PUT', '/groups/%s/logIntegrations/%s' % (group, org), {}),
		('PATCH', '/groups/%s/customDBRoles/roles/thief' % group, {'actions': []})]
	for method, path, body in lasting:
		no(b.call(method, path, body), 403, 'PROOF_NEEDED')
	# What leaves nothing behind goes on, and so do keys, which show who they are with each call.
	ok(b.get('/orgs/%s/apiKeys' % org))
	ok(b.post('/groups', {'name': unique(), 'orgId': org}))
	ok(b.post('/orgs', {'name': unique('own')}), 201)
	ok(s.post('/orgs/%s/apiKeys' % org, json={'desc': 'y', 'roles': ['ORG_READ_ONLY']}))
	# A proof: a wrong one is none, and another person's neither.
	no(b.post('/api/session/proof', {'password': 'wrong one'}), 403, 'WRONG_PASSWORD')
	no(b.post('/api/session/proof', {'code': '000000x'}), 400, 'WRONG_CODE')
	for bad in ({}, {'password': PASSWORD, 'code': '1'}):
		no(b.post('/api/session/proof', bad), 400, 'VALIDATION_ERROR')
	no(Browser(s).post('/api/session/proof', {'password': PASSWORD}), 401, 'NOT_SIGNED_IN')
	no(b.post('/api/session/recovery-codes'), 403, 'PROOF_NEEDED')
	for proof in (lambda: {'password': PASSWORD}, lambda: {'code': totp(secret, now(s))}):
		ok(b.post('/api/session/proof', proof()), 204)
		ok(b.post('/orgs/%s/apiKeys' % org, {'desc': 'z', 'roles': ['ORG_READ_ONLY']}))
		ok(b.post('/orgs', {'name': unique('more'), 'federationSettingsId': fed}), 201)
		s.advance(15 * 60)
		no(b.post('/api/session/recovery-codes'), 403, 'PROOF_NEEDED')
	# The reset takes codes that are new, and tells so in the answer and in the letter.
	answer = ok(b.post('/api/session/reset', {'token': site.reset(username), 'password': 'a new password'}))
	assert [x['kind'] for x in answer['removed']] == ['ONE_TIME_CODES', 'RECOVERY_CODES'] and answer['kept'] == [], answer
	letter = site.letter(username, 'the password was changed by a link.')
	assert 'Removed, because it was added lately:\r\n  one-time codes, added at 20' in letter
	assert ok(b.get('/api/session'))['security'] == {'password': True, 'totp': False, 'passkeys': 0, 'recoveryCodesLeft': 0}


def test_a_passkey_of_a_thief_goes_with_a_reset(site):
	"""One that was added lately goes, whichever session added it: a thief may have ended that one. An old one stays, and is named."""
	s = site.server
	origin, at = 'https://localhost:%d' % s.port, {'headers': [('Host', 'localhost:%d' % s.port)]}  # passkeys need a name
	username, b, _ = site.person()
	old, thief, foreign = Authenticator(), Authenticator(), Authenticator()

	def add(key, called):
		options = ok(b.post('/api/session/passkeys/options', {}, **at))
		return b.post('/api/session/passkeys', {'ticket': options['ticket'], 'name': called, 'credential': key.make(options, origin)}, **at)

	def show(browser, key, path='passkey'):
		options = ok(browser.post('/api/session/passkey/options', {}, **at))
		return browser.post('/api/session/' + path, {'ticket': options['ticket'], 'credential': key.get(options, origin)}, **at)

	ok(add(old, 'old'), 201)
	s.advance(8 * 86400)
	ok(show(b, old))
	ok(add(thief, 'thief\nspoofed'), 201)
	ok(show(Browser(s), thief))
	s.advance(15 * 60)
	no(b.post('/api/session/passkeys/options', {}, **at), 403, 'PROOF_NEEDED')
	no(b.delete('/api/session/passkeys/' + ok(b.get('/api/session/passkeys'))['results'][0]['id']), 403, 'PROOF_NEEDED')
	# Nobody's passkey proves nothing, another person's neither; the own one does.
	foreign.user = old.user
	no(show(b, foreign, 'passkey/proof'), 401, 'INVALID_CREDENTIALS')
	_, other, _ = site.person()
	no(show(other, old, 'passkey/proof'), 401, 'INVALID_CREDENTIALS')
	no(show(Browser(s), old, 'passkey/proof'), 401, 'NOT_SIGNED_IN')
	ok(show(b, old, 'passkey/proof'), 204)
	ok(b.post('/api/session/passkeys/options', {}, **at))
	ok(b.delete('/api/session'), 204)
	answer = ok(b.post('/api/session/reset', {'token': site.reset(username), 'password': 'a new password'}))
	assert [(x['kind'], x['name']) for x in answer['removed']] == [('PASSKEY', 'thief spoofed')], answer
	assert [(x['kind'], x['name']) for x in answer['kept']] == [('PASSKEY', 'old')], answer
	letter = site.letter(username, 'the password was changed by a link.')
	assert '  passkey "thief spoofed", added at 20' in letter and letter.index('thief spoofed') < letter.index('Still good') < letter.index('"old"')
	no(show(Browser(s), thief), 401, 'INVALID_CREDENTIALS')
	ok(show(Browser(s), old))


@pytest.mark.parametrize('end', ['reset', 'password', 'others', 'one'])
def test_links_of_a_lost_session_end_with_it(site, end):
	"""Who had a session took links of feeds and of downloads along: they needed no credentials, and outlived its end."""
	s = site.server
	org, = s.seed({'name': unique('o'), 'projects': ['p'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	own, group = s.api_for(org['principals'][0]), org['projects'][0]['id']
	username, b, _ = site.person()
	thief = Browser(s)
	ok(thief.sign_in(username))
	made = ok(own.post('/orgs/%s/users' % org['id'], json={'username': username, 'roles': {'orgRoles': ['ORG_OWNER']}}), 201)
	token = LINK.search(site.letter(username, org['name'])).group(2)
	ok(b.post('/api/invitations/' + token, {'password': PASSWORD}))
	cluster = backups.create(own, group)
	wish = {'deliveryType': 'download', 'snapshotId': backups.take(own, group, cluster)['id']}

	def links(browser):
		answers = (browser.get('/orgs/%s/activityFeed' % org['id']), browser.get('/groups/%s/activityFeed' % group),
			browser.post(backups.path(group, cluster, '/restoreJobs'), wish))
		return [ok(answers[0])['link'], ok(answers[1])['link'], *ok(answers[2])['deliveryUrl']]

	def codes(of):
		return [s.anonymous.get(link).status_code for link in of]
	lost = links(thief)
	ok(b.delete('/api/session'), 204)
	ok(b.sign_in(username))
	assert codes(lost) == [200] * 3 and made['id']  # to sign out takes no links away
	if end == 'reset':
		ok(Browser(s).post('/api/session/reset', {'token': site.reset(username), 'password': 'a new password'}))
	elif end == 'password':
		ok(b.post('/api/session/change-password', {'old': PASSWORD, 'new': 'a new password'}), 204)
	elif end == 'others':
		ok(b.delete('/api/session/sessions'), 204)
	else:
		other, = [x for x in ok(b.get('/api/session/sessions'))['results'] if not x['current']]
		ok(b.delete('/api/session/sessions/' + other['id']), 204)
	assert codes(lost) == [403] * 3
	assert refused(s.anonymous.get(lost[0]), 403)['errorCode'] == 'FEED_LINK_REVOKED'
	assert refused(s.anonymous.get(lost[2]), 403)['errorCode'] == 'DOWNLOAD_LINK_REVOKED'
	if end == 'reset':
		ok(b.sign_in(username, 'a new password'))
	assert codes(links(b)) == [200] * 3


def test_acts_as_its_user(site):
	s = site.server
	ok(site.owner.sign_in(site.name))
	_, member, _ = site.person()
	project = unique()
	made = ok(site.owner.post('/groups', {'name': project, 'orgId': s.org}), 200)
	event, = [e for e in ok(s.get('/orgs/%s/events' % s.org, params={'eventType': 'GROUP_CREATED', 'itemsPerPage': 5}))['results']
		  if e.get('groupId') == made['id']]
	assert event['username'] == site.name and event['userId'] == s.bootstrap['userId'] and event['remoteAddress'] == '127.0.0.1'
	assert member.post('/groups', {'name': unique(), 'orgId': s.org}).status_code == 403
	no(member.delete('/groups/' + made['id']), 403, 'INSUFFICIENT_ROLE')
	# An organization that is made here demands access lists of its keys; its maker goes on.
	org = ok(site.owner.post('/orgs', {'name': unique('org'), 'apiKey': {'desc': 'x', 'roles': ['ORG_OWNER']}}), 201)
	path = '/orgs/' + org['organization']['id']
	assert ok(site.owner.get(path + '/settings'))['apiAccessListRequired'] is True
	key = Api(s, requests.auth.HTTPDigestAuth(org['apiKey']['publicKey'], org['apiKey']['privateKey']))
	assert key.get(path).json()['errorCode'] == 'IP_ADDRESS_NOT_ON_ACCESS_LIST'
	kinds = [e['eventTypeName'] for e in ok(site.owner.get(path + '/events'))['results']]
	assert 'ORG_CREATED' in kinds and 'ORG_PUBLIC_API_ACCESS_LIST_REQUIRED' in kinds
	other = ok(s.post('/orgs', json={'name': unique('org')}), 201)['organization']['id']
	assert ok(s.get('/orgs/%s/settings' % other))['apiAccessListRequired'] is False
	no(member.get('/orgs/' + other), 401, 'USER_UNAUTHORIZED')
	# Rights that are taken away end at once.
	assert member.get('/orgs/' + s.org).status_code == 200
	ok(s.delete('/orgs/%s/users/%s' % (s.org, ok(member.get('/api/session'))['user']['id'])), 204)
	no(member.get('/orgs/' + s.org), 401, 'USER_UNAUTHORIZED')
	assert signed_in(member)


def test_second_factor_demanded(site):
	"""An organization that demands one is closed to sessions that were begun with a password alone."""
	s = site.server
	org = ok(s.post('/orgs', json={'name': unique('org')}), 201)['organization']['id']
	group = ok(s.post('/groups', json={'name': unique(), 'orgId': org}))['id']
	username, b, _ = site.person(org, ['ORG_OWNER'])
	ok(b.get('/groups/' + group))
	ok(b.call('PATCH', '/orgs/%s/settings' % org, {'multiFactorAuthRequired': True}))
	for path in ('/orgs/' + org, '/groups/' + group):
		no(b.get(path), 403, 'MULTI_FACTOR_AUTH_REQUIRED')
	no(b.post('/groups', {'name': unique(), 'orgId': org}), 403, 'MULTI_FACTOR_AUTH_REQUIRED')
	assert group not in b.get('/groups').text and org not in b.get('/orgs').text
	me = ok(b.get('/api/session'))
	assert [(x['id'], x['multiFactorAuthRequired']) for x in me['orgs']] == [(org, True)] and me['roles'] == []
	secret = ok(b.post('/api/session/totp/enroll'))['secret']
	ok(b.post('/api/session/totp/confirm', {'code': totp(secret, now(s))}))
	ok(b.get('/groups/' + group))
	s.advance(30)
	other = Browser(s)
	ok(other.code(other.sign_in(username), totp(secret, now(s))))
	assert 'multiFactorAuthRequired' not in ok(other.get('/api/session'))['orgs'][0]
	ok(other.get('/orgs/' + org))


def test_paths(site):
	b = Browser(site.server)
	no(b.get('/api/session/nothing'), 404, 'RESOURCE_NOT_FOUND')
	answer = no(b.get('/api/session/password'), 405, 'METHOD_NOT_ALLOWED')
	assert answer.headers['Allow'] == 'POST'
	for path in ('/api/session', '/api/session/sessions', '/api/session/first/x'):
		assert b.get(path).headers['Cache-Control'] == 'no-store'
	for body in (b'', b'[]', b'{"username": "a", "username": "b", "password": "c"}', b'\xff'):
		answer = requests.post(site.server.base_url + '/api/session/password', data=body, headers={'Content-Type': 'application/json'},
				       verify=site.server.ca_file)
		no(answer, 400, 'INVALID_JSON')


@pytest.mark.skipif(not REMOTE, reason='one process alone can use the embedded store')
def test_revoked_on_every_node(start_server, tmp_path):
	one = start_server()
	folder = tmp_path / 'data'
	folder.mkdir()
	shutil.copy(one.data_dir / 'secret.key', folder)
	shutil.copy(one.data_dir / 'bootstrap.json', folder)
	two = start_server('--store', client.store_of(one.data_dir), data_dir=folder)
	here, there = Browser(one), Browser(two)
	ok(here.post('/api/session/first', {'token': one.bootstrap['consoleLink'].rsplit('/', 1)[1], 'password': PASSWORD}))
	there.cookie = here.cookie
	for _ in range(5):
		ok(here.sign_in(one.bootstrap['username']))
		there.cookie = here.cookie
		ok(there.get('/groups'))
		ok(here.delete('/api/session'), 204)
		no(there.get('/groups'), 401, 'NOT_SIGNED_IN')
