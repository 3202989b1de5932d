"""User security: LDAP settings, the customer's certificate authorities, and checks of a real directory."""
import os, socket, threading

import pytest

from client import NO_ID, bare, ok, refused, unique, until
from directory import ADMIN, ADMIN_PASSWORD, SLAPD, SUFFIX, Authority, Directory, loopback

DEFAULTS = {'customerX509': {}, 'ldap': {'authenticationEnabled': False, 'authorizationEnabled': False, 'port': 636,
					 'authzQueryTemplate': '{USER}?memberOf?base', 'userToDNMapping': []}}


@pytest.fixture
def group(server):
	return server.project()['id']


@pytest.fixture(scope='module')
def authority(tmp_path_factory):
	return Authority(tmp_path_factory.mktemp('ca'))


@pytest.fixture(scope='module')
def directory():
	if not SLAPD:
		pytest.skip('slapd is not installed')
	d = Directory(with_389=os.geteuid() == 0)
	yield d
	d.stop()


def path(group, more=''):
	return '/groups/%s/userSecurity%s' % (group, more)


def ldap(**more):
	return {'ldap': {'hostname': 'ldap.example.org', 'bindUsername': ADMIN, 'bindPassword': ADMIN_PASSWORD, **more}}


def test_defaults(server, group):
	doc = ok(server.get(path(group)))
	assert bare(doc) == DEFAULTS
	refused(server.get(path(NO_ID)), 404)


def test_settings_are_kept_and_the_password_is_not_shown(server, group):
	rules = [{'match': '(.+)@example.org', 'substitution': 'uid={0},ou=people,' + SUFFIX},
		 {'match': '(.+)', 'ldapQuery': 'ou=people,%s??sub?(uid={0})' % SUFFIX}]
	made = ok(server.patch(path(group), json=ldap(authenticationEnabled=True, port=1636, userToDNMapping=rules)), 202)
	assert made['ldap']['authenticationEnabled'] is True and made['ldap']['userToDNMapping'] == rules
	assert 'bindPassword' not in made['ldap'] and made['ldap']['port'] == 1636
	assert bare(ok(server.get(path(group)))) == bare(made)
	# What is not named stays, the password too.
	again = ok(server.patch(path(group), json={'ldap': {'hostname': 'other.example.org', 'authorizationEnabled': True}}), 202)
	assert again['ldap'] == {**made['ldap'], 'hostname': 'other.example.org', 'authorizationEnabled': True}
	assert 'USER_SECURITY_SETTINGS_UPDATED' in [e['eventTypeName'] for e in
						    ok(server.get('/groups/%s/events' % group))['results']]
	less = ok(server.delete(path(group, '/ldap/userToDNMapping')), 202)
	assert less['ldap'] == {**again['ldap'], 'userToDNMapping': []}
	for file in server.data_dir.rglob('*'):
		if file.is_file():
			assert ADMIN_PASSWORD.encode() not in file.read_bytes(), file


@pytest.mark.parametrize('body, where', [
	({'ldap': {'authenticationEnabled': True}}, 'ldap.hostname'),
	({'ldap': {'authenticationEnabled': True, 'hostname': 'a.example.org', 'bindUsername': ADMIN}}, 'ldap.bindPassword'),
	({'ldap': {'authorizationEnabled': True}}, 'ldap.authorizationEnabled'),
	(ldap(hostname='a b'), 'ldap.hostname'),
	(ldap(hostname='host" ldapbinddn="x.example.org'), 'ldap.hostname'),
	(ldap(hostname='-x.example.org'), 'ldap.hostname'),
	(ldap(port=0), 'ldap.port'),
	(ldap(port=65536), 'ldap.port'),
	(ldap(bindUsername='admin'), 'ldap.bindUsername'),
	(ldap(bindPassword=''), 'ldap.bindPassword'),
	(ldap(bindPassword='two\nlines'), 'ldap.bindPassword'),
	(ldap(caCertificate='no certificate'), 'ldap.caCertificate'),
	(ldap(authzQueryTemplate='{USER}?memberOf?everywhere'), 'ldap.authzQueryTemplate'),
	(ldap(userToDNMapping=[{'match': '('}]), 'ldap.userToDNMapping[0].match'),
	(ldap(userToDNMapping=[{'match': '(.+)'}]), 'ldap.userToDNMapping[0]'),
	(ldap(userToDNMapping=[{'match': '(.+)', 'substitution': 'x', 'ldapQuery': 'y'}]), 'ldap.userToDNMapping[0]'),
	(ldap(userToDNMapping=[{'match': '(.+)', 'substitution': 'uid={1}'}]), 'ldap.userToDNMapping[0].substitution'),
	(ldap(userToDNMapping=[{'match': '(.+)', 'ldapQuery': '??sub?(uid={0})'}]), 'ldap.userToDNMapping[0].ldapQuery'),
	(ldap(userToDNMapping=[{'match': '(.+)', 'ldapQuery': 'dc=x??all?(uid={0})'}]), 'ldap.userToDNMapping[0].ldapQuery'),
	(ldap(userToDNMapping=[{'match': '.', 'substitution': 'x'}] * 33), 'ldap.userToDNMapping'),
	({'customerX509': {'cas': 'nonsense'}}, 'customerX509.cas'),
	({'ldap': {'host': 'x'}}, 'ldap.host'),
])
def test_what_cannot_be(server, group, body, where):
	refused(server.patch(path(group), json=body), 400, None, where)
	assert bare(ok(server.get(path(group)))) == DEFAULTS


def test_customer_authorities(server, group, authority):
	made = ok(server.patch(path(group), json={'customerX509': {'cas': 'a comment\n' + authority.pem + authority.pem}}), 202)
	assert made['customerX509']['cas'] == authority.pem + authority.pem and made['ldap'] == DEFAULTS['ldap']
	leaf, key = authority.issue('leaf', '/CN=leaf', 'basicConstraints=CA:FALSE')
	refused(server.patch(path(group), json={'customerX509': {'cas': leaf.read_text()}}), 400, None, 'customerX509.cas')
	cut = authority.pem.replace('\n', '\n*', 3)
	refused(server.patch(path(group), json={'customerX509': {'cas': authority.pem + cut}}), 400, None, 'customerX509.cas')
	gone = ok(server.delete(path(group, '/customerX509')), 202)
	assert bare(gone) == DEFAULTS == bare(ok(server.get(path(group))))
	refused(server.delete(path(NO_ID, '/customerX509')), 404)
	refused(server.delete(path(NO_ID, '/ldap/userToDNMapping')), 404)


def test_if_match(server, group):
	refused(server.patch(path(group), json=ldap(), headers={'If-Match': '"7"'}), 412)
	r = server.patch(path(group), json=ldap(), headers={'If-Match': '"0"'})
	ok(r, 202)
	assert server.get(path(group)).headers['ETag'] == r.headers['ETag']


def verify(server, group, body):
	"""The end of a check: its status, and how each step went."""
	first = ok(server.post(path(group, '/ldap/verify'), json=body))
	assert first['status'] == 'PENDING' and first['validations'] == []
	assert 'bindPassword' not in first['request'] and first['request']['hostname'] == body['hostname']

	def ended():
		doc = ok(server.get(path(group, '/ldap/verify/' + first['requestId'])))
		return doc['status'] != 'PENDING' and (doc['status'], {v['validationType']: v['status'] for v in doc['validations']})
	return until(ended)


GOOD = ['SERVER_SPECIFIED', 'CONNECT', 'AUTHENTICATE', 'AUTHORIZATION_ENABLED', 'TEMPLATE', 'PARSE_AUTHZ_QUERY',
	'QUERY_SERVER']


def test_a_directory_is_checked(server, group, directory):
	assert verify(server, group, directory.settings()) == ('SUCCESS', {k: 'OK' for k in GOOD})
	query = {'authzQueryTemplate': 'ou=people,%s?uid?sub?(!(cn={USER}))' % SUFFIX}
	assert verify(server, group, directory.settings(**query)) == ('SUCCESS', {k: 'OK' for k in GOOD})
	for file in server.data_dir.rglob('*'):
		if file.is_file():
			assert ADMIN_PASSWORD.encode() not in file.read_bytes(), file


def failed_at(answer, step):
	status, steps = answer
	assert status == 'FAIL'
	assert steps == {**{k: 'OK' for k in GOOD[:GOOD.index(step)]}, step: 'FAIL'}


def test_how_a_check_fails(server, group, directory, authority):
	failed_at(verify(server, group, directory.settings(bindPassword='wrong')), 'AUTHENTICATE')
	failed_at(verify(server, group, directory.settings(bindUsername='CN=nobody,' + SUFFIX)), 'AUTHENTICATE')
	failed_at(verify(server, group, directory.settings(caCertificate=authority.pem)), 'CONNECT')
	unknown = directory.settings()
	del unknown['caCertificate']
	failed_at(verify(server, group, unknown), 'CONNECT')
	failed_at(verify(server, group, directory.settings(port=1)), 'CONNECT')
	failed_at(verify(server, group, directory.settings(authzQueryTemplate='ou=people?x?sub')), 'TEMPLATE')
	failed_at(verify(server, group, directory.settings(authzQueryTemplate='ou={USER},dc=nowhere')), 'QUERY_SERVER')


def test_start_tls_and_clear(server, group, directory):
	if os.geteuid() != 0:
		pytest.skip('port 389 is root\'s')
	assert verify(server, group, directory.settings(port=389))[0] == 'SUCCESS'
	clear = directory.settings(port=389)
	del clear['caCertificate']
	assert verify(server, group, clear)[0] == 'SUCCESS'


BOUND = bytes.fromhex('300c02010161070a010004000400')
ENTRY = bytes.fromhex('300f0201026409') + b'\x04\x05cn=xx' + bytes.fromhex('3000')


class Hostile:
	"""A listener that answers the first request, the second, and then for ever, with given bytes."""

	def __init__(self, port, *answers):
		self.answers, self.sent, self.address = answers, 0, loopback()
		self.listener = socket.create_server((self.address, port))
		self.port = self.listener.getsockname()[1]
		self.thread = threading.Thread(target=self.run, daemon=True)
		self.thread.start()

	def run(self):
		c, _ = self.listener.accept()
		try:
			for answer in self.answers[:2]:
				if not c.recv(4096):
					return
				c.sendall(answer)
			while len(self.answers) > 2:
				c.sendall(self.answers[2])
				self.sent += len(self.answers[2])
			while c.recv(4096):
				pass
		except OSError:
			pass
		finally:
			c.close()

	def check(self, server, group):
		body = {'hostname': self.address, 'port': self.port, 'bindUsername': ADMIN, 'bindPassword': 'x', 'authzQueryTemplate': '{USER}??sub'}
		answer = verify(server, group, body)
		self.listener.close()
		self.thread.join(60)
		assert not self.thread.is_alive()
		return answer


def test_hostile_directories(server, group):
	"""They cost neither a thread nor memory for long."""
	failed_at(Hostile(0).check(server, group), 'CONNECT')  # no word of TLS
	if os.geteuid() != 0:
		return
	failed_at(Hostile(389, b'').check(server, group), 'AUTHENTICATE')
	failed_at(Hostile(389, b'\x30\x84\x7f\xff\xff\xff', b'', b'x' * 65536).check(server, group), 'AUTHENTICATE')
	endless = Hostile(389, BOUND, ENTRY, ENTRY * 1000)
	failed_at(endless.check(server, group), 'QUERY_SERVER')
	assert endless.sent < 64 << 20
	failed_at(Hostile(389, BOUND, b'').check(server, group), 'QUERY_SERVER')


def test_directories_of_inner_networks(server, group):
	"""A check told which ports of the operator's own machines are open. The tests' directories are in a network that is allowed."""
	body = {'port': 636, 'bindUsername': ADMIN, 'bindPassword': 'x'}
	with socket.create_server(('127.0.0.1', 0)) as inner:
		for host in ('127.0.0.1', '169.254.169.254', '10.0.0.1', '192.168.0.1', '::1', '::ffff:127.0.0.1', 'fe80::1', '0.0.0.0', 'localhost', 'a.localhost'):
			refused(server.post(path(group, '/ldap/verify'), json={**body, 'hostname': host, 'port': inner.getsockname()[1]}), 400, None, 'hostname')
			refused(server.patch(path(group), json=ldap(hostname=host)), 400, None, 'ldap.hostname')
		# A name is resolved when it is used: what is open and what is not fail alike, and nothing is tried.
		for port in (inner.getsockname()[1], 1):
			failed_at(verify(server, group, {**body, 'hostname': 'localhost.', 'port': port}), 'CONNECT')
		inner.settimeout(0)
		with pytest.raises(BlockingIOError):
			inner.accept()
	assert server.stderr.count('CONNECT: its address may not be reached') >= 2


def test_checks_that_cannot_be(server, group):
	good = {'hostname': 'ldap.example.org', 'port': 636, 'bindUsername': ADMIN, 'bindPassword': 'x'}
	for field in good:
		refused(server.post(path(group, '/ldap/verify'), json={k: v for k, v in good.items() if k != field}), 400, None,
			field)
	for field, value in (('hostname', 'a/b'), ('hostname', ''), ('port', 0), ('bindPassword', ''), ('caCertificate', 'x'),
			     ('bindUsername', 'root')):
		refused(server.post(path(group, '/ldap/verify'), json={**good, field: value}), 400, None, field)
	refused(server.get(path(group, '/ldap/verify/' + NO_ID)), 404)
	other = server.project()['id']
	first = ok(server.post(path(other, '/ldap/verify'), json={**good, 'hostname': '127.71.0.1', 'port': 1}))
	refused(server.get(path(group, '/ldap/verify/' + first['requestId'])), 404)


def test_roles(server):
	org, = server.seed({'name': unique('org'), 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_DATABASE_ACCESS_ADMIN']}]}]})
	group, api = org['projects'][0]['id'], server.api_for(org['principals'][0])
	refused(api.get(path(group)), 403)
	refused(api.patch(path(group), json={}), 403)
	refused(api.delete(path(group, '/customerX509')), 403)
	refused(api.delete(path(group, '/ldap/userToDNMapping')), 403)
