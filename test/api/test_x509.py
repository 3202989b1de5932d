"""Certificates of database users: who gets one, what it says, and that its key is shown once."""
import datetime, subprocess

import pytest

from client import NO_ID, bare, ok, refused, unique


@pytest.fixture
def group(server):
	return server.project()['id']


def make(server, group, name=None, **more):
	name = name or unique('x')
	body = {'username': name, 'databaseName': '$external', 'groupId': group, 'x509Type': 'MANAGED',
		'roles': [{'roleName': 'read', 'databaseName': 'shop'}], **more}
	ok(server.post('/groups/%s/databaseUsers' % group, json=body), 201)
	return name


def certs(group, name):
	return '/groups/%s/databaseUsers/%s/certs' % (group, name)


def x509(pem, *what):
	done = subprocess.run(['openssl', 'x509', '-noout', *what], input=pem[pem.index('-----BEGIN CERT'):], text=True,
			      check=True, stdout=subprocess.PIPE)
	return done.stdout.strip()


def test_a_certificate_is_issued_and_listed(server, group, tmp_path):
	name = make(server, group)
	assert ok(server.get(certs(group, name)))['results'] == []
	pem = ok(server.post(certs(group, name), json={'monthsUntilExpiration': 6}), 201)
	assert pem.count('BEGIN PRIVATE KEY') == 1 and pem.count('BEGIN CERTIFICATE') == 2
	page = ok(server.get(certs(group, name)))
	assert page['totalCount'] == 1
	row = bare(page['results'][0])
	assert row['subject'].startswith('CN=%s,' % name) and row['groupId'] == group
	assert x509(pem, '-subject', '-nameopt', 'RFC2253') == 'subject=' + row['subject']
	assert int(x509(pem, '-serial').split('=')[1], 16) == row['_id']
	begun, ends = (datetime.datetime.fromisoformat(row[k].replace('Z', '+00:00')) for k in ('createdAt', 'notAfter'))
	assert 180 <= (ends - begun).days <= 185
	assert 'TLS Web Client Authentication' in x509(pem, '-text') and 'CA:FALSE' in x509(pem, '-text')
	# The file holds its authority, and that signed it; the key is that of the certificate.
	file = tmp_path / 'all.pem'
	file.write_text(pem)
	ca = tmp_path / 'ca.pem'
	ca.write_text(pem[pem.rindex('-----BEGIN CERT'):])
	subprocess.run(['openssl', 'verify', '-no_check_time', '-purpose', 'sslclient', '-CAfile', ca, file], check=True, stdout=subprocess.DEVNULL)
	public = subprocess.run(['openssl', 'pkey', '-in', file, '-pubout'], check=True, text=True, stdout=subprocess.PIPE).stdout
	assert public.strip() == x509(pem, '-pubkey')


def test_two_certificates_have_one_subject_and_authority(server, group):
	name = make(server, group)
	first, second = (ok(server.post(certs(group, name), json={}), 201) for _ in range(2))
	assert first != second and x509(first, '-subject') == x509(second, '-subject')
	assert first[first.rindex('-----BEGIN CERT'):] == second[second.rindex('-----BEGIN CERT'):]
	page = ok(server.get(certs(group, name) + '?itemsPerPage=1&pageNum=2'))
	assert len(page['results']) == 1 and page['totalCount'] == 2
	assert len({r['_id'] for r in ok(server.get(certs(group, name)))['results']}) == 2


def test_who_gets_none(server, group):
	name = make(server, group)
	refused(server.get(certs(group, 'nobody')), 404)
	refused(server.post(certs(group, 'nobody'), json={}), 404)
	refused(server.get(certs(NO_ID, name)), 404)
	refused(server.post(certs(group, name), json={'monthsUntilExpiration': 25}), 400, None, 'monthsUntilExpiration')
	refused(server.post(certs(group, name), json={'monthsUntilExpiration': 0}), 400, None, 'monthsUntilExpiration')
	refused(server.post(certs(group, name), json={'months': 3}), 400, None, 'months')
	refused(server.post(certs(group, name), json={'subject': 'CN=root,DC=x'}), 400, None, 'subject')
	plain = make(server, group, x509Type='NONE', databaseName='admin', password='correct horse')
	refused(server.post(certs(group, plain), json={}), 409, 'X509_TYPE_NOT_MANAGED')
	customer = make(server, group, 'CN=%s,OU=x' % unique(), x509Type='CUSTOMER')
	refused(server.post(certs(group, customer), json={}), 409, 'X509_TYPE_NOT_MANAGED')
	comma = make(server, group, 'a,b' + unique())
	refused(server.post(certs(group, comma), json={}), 400, None, 'username')


def test_a_user_made_again_is_somebody_else(server, group):
	name = make(server, group)
	before = ok(server.post(certs(group, name), json={}), 201)
	ok(server.delete('/groups/%s/databaseUsers/$external/%s' % (group, name)), 204)
	refused(server.get(certs(group, name)), 404)
	make(server, group, name)
	assert ok(server.get(certs(group, name)))['results'] == []
	after = ok(server.post(certs(group, name), json={}), 201)
	assert x509(before, '-subject') != x509(after, '-subject')
	types = [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']]
	assert types.count('DB_USER_X509_CERT_CREATED') == 2 and types.count('DB_USER_X509_CERT_REVOKED') == 1
	assert types.count('DB_USER_DELETED') == 1


def test_projects_have_authorities_of_their_own(server, group):
	other = server.project()['id']
	name = make(server, group)
	make(server, other, name)
	one, two = (ok(server.post(certs(g, name), json={}), 201) for g in (group, other))
	assert x509(one, '-issuer') != x509(two, '-issuer')


def test_the_key_is_kept_nowhere(server, group):
	name = make(server, group)
	key = ''.join(ok(server.post(certs(group, name), json={}), 201).split('-----')[2].split())
	assert len(key) > 100
	for file in server.data_dir.rglob('*'):
		if file.is_file():
			assert key[:60].encode() not in file.read_bytes(), file
	assert key[:60] not in server.stderr


def test_only_an_owner_issues(server):
	org, = server.seed({'name': unique('org'), 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_DATABASE_ACCESS_ADMIN']}]}]})
	group, api = org['projects'][0]['id'], server.api_for(org['principals'][0])
	body = {'username': 'x', 'databaseName': '$external', 'groupId': group, 'x509Type': 'MANAGED',
		'roles': [{'roleName': 'read', 'databaseName': 'shop'}]}
	ok(api.post('/groups/%s/databaseUsers' % group, json=body), 201)
	refused(api.post(certs(group, 'x'), json={}), 403)
	assert ok(api.get(certs(group, 'x')))['results'] == []


def test_an_authority_is_replaced_before_it_ends(start_server):
	started = start_server()
	org, = started.seed({'name': 'o', 'projects': ['p'], 'principals': [{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})
	# A key, because it does not end.
	server, group = started.api_for(org['principals'][0]), org['projects'][0]['id']
	name = make(server, group)
	early = ok(server.post(certs(group, name), json={'monthsUntilExpiration': 24}), 201)
	started.advance(7 * 365 * 86400)
	late = ok(server.post(certs(group, name), json={'monthsUntilExpiration': 24}), 201)
	assert x509(early, '-issuer') == x509(late, '-issuer')
	started.advance(2 * 365 * 86400)
	later = ok(server.post(certs(group, name), json={'monthsUntilExpiration': 24}), 201)
	assert x509(later, '-issuer') != x509(late, '-issuer') and x509(later, '-subject') == x509(late, '-subject')
	assert len(ok(server.get(certs(group, name)))['results']) == 3
