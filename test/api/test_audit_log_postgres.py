"""The audit log of real databases: what is recorded, of whom, and that the download has exactly that.

Skipped only where PostgreSQL or pgaudit is not installed."""
import gzip, json, pathlib, time

import pytest

from client import ok, refused
from test_database_access_postgres import Real, on, pytestmark as needs_postgres, until

pytestmark = [needs_postgres, pytest.mark.skipif(not list(pathlib.Path('/usr/lib/postgresql').glob('*/lib/pgaudit.so')),
						 reason='pgaudit is not installed')]


@pytest.fixture(scope='module')
def real():
	r = Real()
	try:
		ok(r.server.post(r.path('accessList'), json=[{'cidrBlock': '127.0.0.0/8'}]))
		r.user('alice', on('readWrite'), on('dbAdmin'))
		r.user('bert', on('readWrite'), on('dbAdmin'))
		r.user('mouse', on('read', collection='cheese'))
		r.cluster()
		yield r
	finally:
		r.end()


def audit(real, seconds=180, **settings):
	ok(real.server.patch(real.path('auditLog'), json=settings))
	until(lambda: ok(real.server.get(real.path('clusters/c0')))['stateName'] == 'IDLE', seconds)


def lines(real, name, text=None):
	"""What the logs of all nodes have."""
	out = []
	for host in (p['hostname'] for p in ok(real.server.get(real.path('processes')))['results']):
		r = real.server.get(real.path('clusters/%s/logs/%s.gz' % (host, name)), headers={'Accept': 'application/vnd.svc.2023-02-01+gzip'})
		assert r.status_code == 200, r.text
		out += [json.loads(x) for x in gzip.decompress(r.content).splitlines()]
	return [x for x in out if text is None or text in x['message']]


AUDIT, PLAIN = 'db-audit-log', 'db'


def test_nothing_is_audited_at_first(real):
	real.can('alice', 'create table t (n int)')
	assert lines(real, AUDIT) == []


def test_statements_by_class_and_user(real):
	audit(real, enabled=True, auditFilter=json.dumps({'atype': {'$in': ['createCollection', 'dropCollection']}}))
	real.can('alice', 'create table audited_1 (n int)')
	real.can('alice', 'insert into audited_1 values (1)')
	until(lambda: lines(real, AUDIT, 'create table audited_1'))
	assert lines(real, AUDIT, 'insert into') == [] and lines(real, PLAIN, 'AUDIT: ') == []
	assert all(x['message'].startswith('AUDIT: ') for x in lines(real, AUDIT))
	# Nobody writes into it by hand.
	real.can('alice', "do $$ begin raise log 'AUDIT: SESSION,1,1,DDL,forged'; end $$")
	until(lambda: lines(real, PLAIN, 'forged'))
	assert lines(real, AUDIT, 'forged') == []
	# However long it is.
	real.can('alice', 'create table audited_2 (n int) /* %s */' % ('x' * 100000))
	real.can('alice', "do $$ begin raise log 'AUDIT: counterfeit %', repeat('x', 200000); end $$")
	until(lambda: lines(real, PLAIN, 'counterfeit'))
	assert lines(real, AUDIT, 'counterfeit') == []
	assert [len(x['message']) > 100000 for x in lines(real, AUDIT, 'create table audited_2')] == [True]
	# Only one user's, and what was allowed too.
	command = {'$in': ['insert', 'find']}
	audit(real, auditAuthorizationSuccess=True, auditFilter=json.dumps(
		{'$and': [{'atype': 'authCheck', 'param.command': command}, {'users': {'$elemMatch': {'user': 'bert', 'db': 'admin'}}}]}))
	real.can('alice', 'select 1 as by_alice from audited_1')
	real.can('bert', 'create table made_by_bert (n int)')
	real.can('bert', 'insert into made_by_bert values (2); select 1 as by_bert from made_by_bert')
	until(lambda: lines(real, AUDIT, 'by_bert from'))
	assert lines(real, AUDIT, 'insert into made_by_bert') and lines(real, AUDIT, 'by_alice') == []
	assert lines(real, AUDIT, 'create table made_by_bert') == []
	# The service's own work is none of it.
	assert not [x for x in lines(real, AUDIT) if x.get('user') == 'steward_engine']


def test_logins_and_refusals(real):
	assert not lines(real, AUDIT, 'connection authenticated') and lines(real, PLAIN, 'connection authenticated')
	audit(real, auditAuthorizationSuccess=False, auditFilter=json.dumps({'atype': {'$in': ['authenticate', 'authCheck']}}))
	real.can('alice', 'select 1')
	real.cannot('alice', 'select 1', 'authentication failed', password='wrong')
	real.cannot('mouse', 'select * from audited_1')
	until(lambda: lines(real, AUDIT, 'permission denied for table audited_1'))
	assert lines(real, AUDIT, 'password authentication failed for user "alice"')
	assert [x for x in lines(real, AUDIT, 'connection authenticated') if 'alice' in x['message']]
	assert not lines(real, PLAIN, 'permission denied for table audited_1')
	# What was a line of the other log stays there.
	assert lines(real, PLAIN, 'connection authenticated')
	real.can('alice', 'select 1 as not_recorded from audited_1')
	assert lines(real, AUDIT, 'not_recorded') == []


def test_off_is_off(real):
	audit(real, enabled=False)
	real.can('alice', 'create table unaudited (n int)')
	time.sleep(0.2)
	assert lines(real, AUDIT, 'unaudited') == []
	for user in ('alice', 'bert'):
		real.can(user, "select count(*) from pg_settings where name like 'pgaudit%'", '0')
	refused(real.server.patch(real.path('auditLog'), json={'auditFilter': 'x'}), 400, None, 'auditFilter')
