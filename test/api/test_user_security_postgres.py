"""X.509 and LDAP on real databases: whom a certificate lets in, until when, and whom a directory vouches for.

Skipped only where PostgreSQL (or, for LDAP, slapd) is not installed."""
import gzip, os, subprocess
from urllib.parse import quote

import pytest

from client import in_force, ok, refused, unique, until
from directory import PEOPLE, SLAPD, SUFFIX, Authority, Directory
from test_database_access_postgres import Real, on, pytestmark  # noqa: F401


@pytest.fixture(scope='module')
def real():
	r = Real()
	try:
		ok(r.server.post(r.path('accessList'), json=[{'cidrBlock': '127.0.0.0/8'}]))
		r.cluster()
		yield r
	finally:
		r.end()


@pytest.fixture(scope='module')
def directory():
	if not SLAPD:
		pytest.skip('slapd is not installed')
	d = Directory(with_389=os.geteuid() == 0)
	yield d
	d.stop()


def external(real, name, **more):
	body = {'username': name, 'databaseName': '$external', 'groupId': real.group, 'roles': [on('readWrite')], **more}
	in_force(real.server, real.server.post(real.path('databaseUsers'), json=body), 201)


def remove(real, name):
	in_force(real.server, real.server.delete(real.path('databaseUsers/$external/' + quote(name, safe=''))), 204)


def login(real, user, cert, key, mode='require', root=None):
	"""(worked, what was said) of a login with a certificate, to whichever node takes writes."""
	plain, query = real.string('c0', user, '', 'shop').replace(':@', '@', 1).split('?', 1)
	query = [q for q in query.split('&') if not q.startswith(('sslmode=', 'sslrootcert='))]
	query += ['sslmode=' + mode, 'sslcert=%s' % cert, 'sslkey=%s' % key] + (['sslrootcert=%s' % root] if root else [])
	info = plain + '?' + '&'.join(query)
	done = subprocess.run(['psql', '-X', '-A', '-t', '-w', '-d', info, '-c', 'select current_user'], text=True, timeout=120,
			      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent'})
	return done.returncode == 0, done.stdout.strip()


def issue(real, name, folder):
	file = folder / (unique(name) + '.pem')
	file.touch(0o600)
	file.write_text(ok(real.server.post(real.path('databaseUsers/%s/certs' % name), json={}), 201))
	return file


def test_a_managed_user_logs_in_until_it_is_deleted(real, tmp_path):
	external(real, 'xena', x509Type='MANAGED')
	pem = issue(real, 'xena', tmp_path)
	assert login(real, 'xena', pem, pem) == (True, 'xena')
	# The same file says whom to trust, and the databases' certificates stand for where they are.
	assert login(real, 'xena', pem, pem, 'verify-full', pem) == (True, 'xena')
	# It is a certificate for one user.
	external(real, 'yves', x509Type='MANAGED')
	worked, said = login(real, 'yves', pem, pem)
	assert not worked and 'certificate authentication failed' in said, said
	worked, said = real.sql('xena', 'select 1', password='xena')
	assert not worked and 'certificate' in said, said
	other = issue(real, 'yves', tmp_path)
	assert login(real, 'yves', other, other) == (True, 'yves')
	# At the very next login, and for good: a user of the same name is another one.
	remove(real, 'xena')
	worked, said = login(real, 'xena', pem, pem)
	assert not worked and 'failed' in said, said
	external(real, 'xena', x509Type='MANAGED')
	worked, said = login(real, 'xena', pem, pem)
	assert not worked and 'certificate authentication failed' in said, said
	again = issue(real, 'xena', tmp_path)
	assert login(real, 'xena', again, again) == (True, 'xena')
	remove(real, 'xena')
	remove(real, 'yves')


def test_a_customers_authority(real, tmp_path):
	mine, strange = Authority(tmp_path / 'mine', 'Mine'), Authority(tmp_path / 'strange', 'Strange')
	name = 'CN=carol,OU=people,O=Acme'
	good, bad = (a.issue('carol', '/O=Acme/OU=people/CN=carol', 'extendedKeyUsage=clientAuth') for a in (mine, strange))
	external(real, name, x509Type='CUSTOMER')
	assert not login(real, name, *good)[0]
	in_force(real.server, real.server.patch(real.path('userSecurity'), json={'customerX509': {'cas': mine.pem}}), 202)
	assert login(real, name, *good) == (True, name)
	assert not login(real, name, *bad)[0]
	# Somebody else of the same authority is not she; and managed users go on.
	dave = mine.issue('dave', '/O=Acme/OU=people/CN=dave', 'extendedKeyUsage=clientAuth')
	assert not login(real, name, *dave)[0]
	external(real, 'zoe', x509Type='MANAGED')
	pem = issue(real, 'zoe', tmp_path)
	assert login(real, 'zoe', pem, pem) == (True, 'zoe')
	in_force(real.server, real.server.delete(real.path('userSecurity/customerX509')), 202)
	assert not login(real, name, *good)[0]
	assert login(real, 'zoe', pem, pem) == (True, 'zoe')
	remove(real, name)
	remove(real, 'zoe')


def set_ldap(real, **settings):
	in_force(real.server, real.server.patch(real.path('userSecurity'), json={'ldap': settings}), 202)


def enters(real, user, password, worked=True):
	if worked and real.late:
		real.can(user, 'select 1', password=password)
	done, said = real.sql(user, 'select current_user', password=password)
	assert done is worked, said
	if worked:
		assert said.strip() == user
	return said


def test_users_of_a_directory(real, directory):
	ann = 'uid=ann,ou=people,' + SUFFIX.lower()
	for name in ('ann', 'bob@example.org', ann, 'eve'):
		external(real, name, ldapAuthType='USER')
	enters(real, 'ann', PEOPLE['ann'], False)
	rules = [{'match': '(.+)@example[.]org', 'ldapQuery': 'ou=people,%s??sub?(uid={0})' % SUFFIX},
		 {'match': '(.+=.+)', 'substitution': 'uid=ann,ou=people,' + SUFFIX},
		 {'match': '([^@=]+)', 'substitution': 'uid={0},ou=people,' + SUFFIX}]
	set_ldap(real, **directory.settings(authenticationEnabled=True, userToDNMapping=rules))
	enters(real, 'ann', PEOPLE['ann'])
	enters(real, 'bob@example.org', PEOPLE['bob'])
	enters(real, ann, PEOPLE['ann'])
	for user, password in (('ann', PEOPLE['bob']), ('ann', ''), ('bob@example.org', PEOPLE['ann']), (ann, PEOPLE['bob']),
			       ('eve', 'anything'), ('nobody', PEOPLE['ann'])):
		enters(real, user, password, False)
	# The rule that a refusal met has the directory's password in it, which is nobody's to see.
	secret = directory.settings()['bindPassword']
	hosts = [p['hostname'] for p in ok(real.server.get(real.path('processes')))['results']]
	logs = b''.join(gzip.decompress(real.server.get(real.path('clusters/%s/logs/db.gz' % h)).content) for h in hosts)
	assert b'LDAP authentication failed for user \\"bob@example.org' in logs and secret.encode() not in logs
	history = real.server.get(real.path('dbAccessHistory/clusters/c0')).text
	assert 'LDAP authentication failed' in history and secret not in history
	# Users with passwords of their own go on.
	real.user('local', on('readWrite'))
	enters(real, 'local', 'correct horse battery')
	# Without rules, a user's name is the entry's.
	in_force(real.server, real.server.delete(real.path('userSecurity/ldap/userToDNMapping')), 202)
	enters(real, ann, PEOPLE['ann'])
	enters(real, 'ann', PEOPLE['ann'], False)
	if os.geteuid() == 0:
		set_ldap(real, port=389)
		enters(real, ann, PEOPLE['ann'])
	set_ldap(real, port=directory.port, authenticationEnabled=False)
	enters(real, ann, PEOPLE['ann'], False)
	enters(real, 'local', 'correct horse battery')


def test_a_directory_that_is_not_trusted(real, directory, tmp_path):
	name = 'uid=bob,ou=people,' + SUFFIX
	external(real, name, ldapAuthType='USER')
	set_ldap(real, **directory.settings(authenticationEnabled=True))
	enters(real, name, PEOPLE['bob'])
	set_ldap(real, caCertificate=Authority(tmp_path / 'strange').pem)
	enters(real, name, PEOPLE['bob'], False)
	set_ldap(real, caCertificate=directory.ca.pem, bindUsername='CN="x\' y",' + SUFFIX)
	enters(real, name, PEOPLE['bob'])
	set_ldap(real, authenticationEnabled=False)


def test_the_authoritys_key_is_sealed(real, tmp_path):
	for file in (f for f in (real.server.data_dir).rglob('*') if f.is_file() and f.name != 'server.key'):
		text = file.read_bytes() if file.stat().st_size < 1 << 20 else b''
		assert b'PRIVATE KEY' not in text or file.parent.name == 'tls', file


def test_long_names_do_no_harm(real, directory):
	"""PostgreSQL's access files have had bounds on words."""
	name = 'uid=long,ou=people,' + SUFFIX
	external(real, name, ldapAuthType='USER')
	rules = [{'match': '(.+)', 'substitution': 'uid={0},ou=%s,%s' % ('x' * 900, SUFFIX)}]
	set_ldap(real, **directory.settings(authenticationEnabled=True, userToDNMapping=rules, bindPassword='p' * 1024))
	enters(real, name, 'anything', False)
	rules = [{'match': '(.+)', 'ldapQuery': 'ou=people,%s??sub?(&(uid={0})(cn=%s))' % (SUFFIX, 'y%?#"\\' * 100)}]
	set_ldap(real, userToDNMapping=rules)
	enters(real, name, 'anything', False)
	# The databases took all of it, and others come and go as before.
	until(lambda: ok(real.server.get(real.path('accessList/127.0.0.0%2F8/status')))['STATUS'] == 'ACTIVE', what='what was saved to be in force')
	user = unique('after')
	real.user(user, on('read'))
	enters(real, user, 'correct horse battery')
	set_ldap(real, authenticationEnabled=False)
