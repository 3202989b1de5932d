"""Database users, custom roles and the access list on real databases: who gets in, from where, and what they may do there.

Skipped only where PostgreSQL is not installed."""
import contextlib, datetime, os, pathlib, shutil, socket, ssl, struct, subprocess, tempfile, threading
from urllib.parse import quote

import psycopg2, pytest

import client
from client import in_force, ok, unique, until
from directory import ALLOWED

pytestmark = pytest.mark.skipif(not (list(pathlib.Path('/usr/lib/postgresql').glob('*/bin/postgres')) and shutil.which('psql')),
				reason='PostgreSQL is not installed')
PASSWORD = 'correct horse battery'


class Real:
	"""A service with real databases, a project and a cluster that listens on this machine only."""

	def __init__(self):
		self.dir = tempfile.mkdtemp(prefix='sw-', dir=client.SHORT)
		os.chmod(self.dir, 0o755)
		self.server = client.Server('--engine', 'postgres', *ALLOWED, data_dir=self.dir + '/d', clock='real')
		self.group = self.server.group
		self.late = False

	def end(self):
		s = self.server
		try:
			if not s.ended:
				for c in ok(s.get('/groups/%s/clusters' % self.group))['results']:
					s.delete('/groups/%s/clusters/%s' % (self.group, c['name']))
				until(lambda: ok(s.get('/groups/%s/clusters' % self.group))['totalCount'] == 0, 180)
				s.stop()
			assert not client.SANITIZER.search(s.stderr), s.stderr[-6000:]
			left = [p for p in pathlib.Path('/proc').glob('[0-9]*/cwd') if cwd_of(p).startswith(self.dir)]
			assert not left, 'still running: %s' % left
		finally:
			s.kill()
			client.folder_end(self.dir)

	def path(self, what):
		return '/groups/%s/%s' % (self.group, what)

	def cluster(self, name='c0'):
		body = {'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
			{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}
		ok(self.server.post(self.path('clusters'), json=body), 201)
		until(lambda: ok(self.server.get(self.path('clusters/' + name)))['stateName'] == 'IDLE', 180)
		return name

	def string(self, name, user, password, database):
		"""The API's own connection string, with credentials and a database put in."""
		text = ok(self.server.get(self.path('clusters/' + name)))['connectionStrings']['standard']
		scheme, rest = text.split('://', 1)
		hosts, rest = rest.split('/', 1)
		return '%s://%s:%s@%s/%s?%s' % (scheme, quote(user, safe=''), quote(password, safe=''), hosts, quote(database), rest.split('?', 1)[1])

	def sql(self, user, statement, database='shop', password=PASSWORD, name='c0'):
		"""(worked, what was said)"""
		done = subprocess.run(['psql', '-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', self.string(name, user, password, database),
				       '-c', statement], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
				      env={'PATH': os.environ['PATH'], 'PGCONNECT_TIMEOUT': '30', 'HOME': '/nonexistent'})
		return done.returncode == 0, done.stdout

	def can(self, user, statement, *expected, **kw):
		worked, said = self.sql(user, statement, **kw)
		if not worked and self.late:
			worked, said = until(lambda: (lambda r: r if r[0] else None)(self.sql(user, statement, **kw)), what=said)
		assert worked, said
		if expected:
			assert said.strip() == expected[0], said

	def cannot(self, user, statement, why='permission denied', **kw):
		worked, said = self.sql(user, statement, **kw)
		assert not worked and why in said, said

	def session(self, user, database='shop', name='c0'):
		"""A client that stays connected."""
		if self.late:
			self.can(user, 'select 1', database=database, name=name)
		p = subprocess.Popen(['psql', '-X', '-A', '-t', '-d', self.string(name, user, PASSWORD, database)], stdin=subprocess.PIPE,
				     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
				     env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent'})
		p.stdin.write('select 41 + 1;\n')
		p.stdin.flush()
		assert p.stdout.readline().strip() == '42'
		return p

	def is_alive(self, p):
		try:
			p.stdin.write('select 7;\n')
			p.stdin.flush()
			return p.stdout.readline().strip() == '7'
		except BrokenPipeError:
			return False

	def user(self, name, *roles, status=201, **more):
		body = {'username': name, 'databaseName': 'admin', 'groupId': self.group, 'password': PASSWORD, 'roles': list(roles), **more}
		answer = self.server.post(self.path('databaseUsers'), json=body)
		self.late = 'X-Steward-Progress' in answer.headers  # it does not say that it is in force
		return ok(answer, status)

	def change(self, name, *roles, **more):
		body = {'username': name, 'databaseName': 'admin', 'groupId': self.group, 'roles': list(roles), **more}
		return in_force(self.server, self.server.patch(self.path('databaseUsers/admin/' + name), json=body))

	def remove(self, name):
		in_force(self.server, self.server.delete(self.path('databaseUsers/admin/' + name)), 204)

	def role(self, name, *actions, inherits=()):
		body = {'roleName': name, 'inheritedRoles': [{'role': r, 'db': d} for r, d in inherits], 'actions': [
			{'action': a, 'resources': [{'db': d, 'collection': t, 'cluster': not d and a not in ('FIND', 'INSERT', 'UPDATE', 'REMOVE')}]}
			for a, d, t in actions]}
		ok(self.server.post(self.path('customDBRoles/roles'), json=body), 202)


def cwd_of(link):
	try:
		return os.readlink(link)
	except OSError:
		return ''


def on(role, database='shop', collection=None):
	out = {'roleName': role, 'databaseName': database}
	return {**out, 'collectionName': collection} if collection else out


@pytest.fixture(scope='module')
def real():
	r = Real()
	try:
		# Users and entries from before the cluster are there when it is.
		ok(r.server.post(r.path('accessList'), json=[{'cidrBlock': '127.0.0.0/8'}]))
		r.user('early', on('readWrite'))
		r.cluster()
		yield r
	finally:
		r.end()


def test_a_user_from_before_the_cluster(real):
	real.can('early', 'create table early_one(a int); insert into early_one values (1); select a from early_one', 'CREATE TABLE\nINSERT 0 1\n1')
	until(lambda: ok(real.server.get(real.path('accessList/127.0.0.0%2F8/status')))['STATUS'] == 'ACTIVE', what='what was saved to be in force')


def test_log_in_when_the_call_returns(real):
	for i in range(3):
		name = unique('now')
		real.user(name, on('read'))
		real.can(name, 'select 1', '1')
		real.cannot(name, 'select 1', 'password authentication failed', password='wrong' + PASSWORD)
		real.remove(name)
		real.cannot(name, 'select 1', 'password authentication failed')


def test_names_that_need_quoting(real):
	for name in ("o'neil", 'a "b" c', '$do$;select', 'sch\u00f6n', 'back\\slash', '$steward$', '--', 'A'):
		real.user(name, on('readWrite', 'q u"x'.replace('"', '')))
		real.can(name, 'create table "t x"(a int); drop table "t x"', database='q ux')
		in_force(real.server, real.server.delete(real.path('databaseUsers/admin/' + quote(name, safe=''))), 204)


def test_read_and_write(real):
	real.user('w1', on('readWrite'))
	real.user('w2', on('readWrite'))
	real.user('r1', on('read'))
	real.can('w1', 'create table orders(id serial primary key, what text); insert into orders(what) values (\'a\')')
	real.can('r1', 'select what from orders', 'a')
	for statement in ("insert into orders(what) values ('b')", 'update orders set what = \'c\'', 'delete from orders', 'truncate orders',
			  'create table mine(a int)', 'create schema mine'):
		real.cannot('r1', statement)
	real.cannot('r1', 'drop table orders', 'must be owner')
	# Writers share their tables, and what one leaves behind is the others'.
	real.can('w2', "insert into orders(what) values ('b'); alter table orders add column n int; create index on orders(what)")
	real.remove('w1')
	real.can('w2', 'alter table orders drop column n')
	real.can('r1', 'select count(*) from orders', '2')
	real.can('w2', 'create schema more; create table more.t(a int); insert into more.t values (5); create view more.v as select * from more.t')
	real.can('r1', 'select * from more.t union all select * from more.v', '5\n5')
	# Nothing elsewhere.
	real.user('elsewhere', on('readWrite', 'other'))
	real.cannot('elsewhere', 'select 1', 'permission denied for database')
	real.can('elsewhere', 'create table x(a int)', database='other')
	for name in ('w2', 'r1', 'elsewhere'):
		real.remove(name)


def test_one_table(real):
	real.user('solo', on('read', 'shop', 'solo'), on('readWrite', 'shop', 'later'))
	real.can('early', 'create table solo(a int); insert into solo values (1); create table not_solo(a int); create table later(id serial, a int)')
	real.can('solo', 'select a from solo', '1')
	real.can('solo', 'insert into later(a) values (3); update later set a = 4; select id, a from later', 'INSERT 0 1\nUPDATE 1\n1|4')
	real.cannot('solo', 'insert into solo values (2)')
	real.cannot('solo', 'select * from not_solo')
	real.can('early', 'alter table not_solo rename to tmp; alter table solo rename to was_solo; drop table later')
	real.change('solo', on('read', 'shop', 'tmp'))
	real.can('solo', 'select * from tmp')
	real.cannot('solo', 'select * from was_solo')
	real.can('early', 'drop table tmp, was_solo')
	real.remove('solo')


def test_any_database(real):
	real.user('any_r', on('readAnyDatabase', 'admin'))
	real.user('any_w', on('readWriteAnyDatabase', 'admin'))
	real.user('adm', on('dbAdmin'))
	real.user('boss', on('svcAdmin', 'admin'))
	real.user('watch', on('clusterMonitor', 'admin'))
	real.can('any_w', 'create database made_by_user', database='postgres')
	real.can('any_w', 'create table t(a int); insert into t values (1)', database='made_by_user')
	real.can('any_r', 'select a from t', '1', database='made_by_user')
	real.cannot('any_r', 'insert into t values (1)', database='made_by_user')
	real.can('early', 'create table adm_t(a int)')
	real.can('adm', 'truncate adm_t; create table adm_own(a int)')
	real.cannot('adm', 'select * from adm_t')
	# What it makes is the writers', so that no code of its own waits there for the next writer.
	real.cannot('adm', 'drop table adm_own', 'must be owner')
	real.can('early', 'insert into adm_own values (1); alter table adm_own add b int; drop table adm_own')
	real.cannot('adm', 'create view peek as select * from adm_t')
	real.cannot('adm', "create function peek() returns bigint language sql security definer as 'select count(*) from adm_t'")
	real.can('watch', 'select count(*) > 0 from pg_stat_activity where query is not null', 't', database='postgres')
	real.can('boss', 'insert into t values (2); alter table t add b int', database='made_by_user')
	# Never out of the database.
	for statement in ("copy (select 1) to program 'true'", 'create role evil superuser', "select pg_read_file('/etc/passwd')",
			  'alter system set port = 1', 'create extension plperl', 'drop event trigger steward_ddl',
			  "create or replace function steward.rights() returns jsonb language sql as 'select null::jsonb'",
			  'alter role any_r superuser', 'set role steward_engine', 'drop role any_r'):
		worked, said = real.sql('boss', statement, database='made_by_user')
		assert not worked, (statement, said)
	real.remove('any_w')
	real.can('boss', 'drop table t', database='made_by_user')
	real.remove('adm')
	real.can('early', 'drop table adm_t')
	for name in ('any_r', 'boss', 'watch'):
		real.remove(name)


def test_custom_roles(real):
	real.can('early', 'create table c1(id serial, a int); create table c2(a int); insert into c1(a) values (1)')
	real.role('finder', ('FIND', 'shop', 'c1'))
	real.role('putter', ('INSERT', 'shop', 'c1'), inherits=[('finder', 'admin')])
	real.user('custom', on('putter', 'admin'))
	real.can('custom', 'insert into c1(a) values (2); select a from c1', 'INSERT 0 1\n1\n2')
	real.cannot('custom', 'update c1 set a = 1')
	real.cannot('custom', 'select * from c2')
	# A role that changes changes its users, through whatever it is inherited.
	in_force(real.server, real.server.patch(real.path('customDBRoles/roles/finder'), json={'actions': [
		{'action': 'FIND', 'resources': [{'db': 'shop', 'collection': '', 'cluster': False}]}]}))
	real.can('custom', 'select * from c2')
	real.can('early', 'create table c3(a int)')
	real.can('custom', 'select * from c3')
	real.cannot('custom', 'insert into c3 values (1)')
	in_force(real.server, real.server.patch(real.path('customDBRoles/roles/putter'), json={'inheritedRoles': []}))
	real.cannot('custom', 'select * from c2')
	real.cannot('custom', 'select a from c1')
	real.can('custom', 'insert into c1(a) values (3)')
	real.role('builder', *[(a, 'shop', '') for a in ('FIND', 'INSERT', 'UPDATE', 'REMOVE', 'CREATE_COLLECTION', 'CREATE_INDEX', 'DROP_COLLECTION')])
	real.change('custom', on('builder', 'admin'))
	real.can('custom', 'create table c4(a int); create index on c1(a); drop table c4; drop table c3')
	real.role('monitor', ('IN_PROG', '', ''), inherits=[('read', 'shop')])
	real.change('custom', on('monitor', 'admin'))
	real.can('custom', 'select count(*) from c1', '3')
	real.cannot('custom', 'insert into c1(a) values (4)')
	real.remove('custom')
	real.can('early', 'drop table c1, c2')


def test_password_change(real):
	real.user('pw', on('read'))
	p = real.session('pw')
	real.change('pw', on('read'), password='another ' + PASSWORD)
	real.cannot('pw', 'select 1', 'password authentication failed')
	real.can('pw', 'select 1', '1', password='another ' + PASSWORD)
	assert real.is_alive(p)
	real.change('pw', on('read'), description='no new password')
	real.can('pw', 'select 1', '1', password='another ' + PASSWORD)
	real.remove('pw')
	assert not real.is_alive(p)
	p.wait()


def test_scope(real):
	real.user('here', on('read'), scopes=[{'name': 'c0', 'type': 'CLUSTER'}])
	real.user('there', on('read'), scopes=[{'name': 'c9', 'type': 'CLUSTER'}])
	real.can('here', 'select 1', '1')
	real.cannot('there', 'select 1', 'password authentication failed')
	p = real.session('here')
	real.change('here', on('read'), scopes=[{'name': 'c9', 'type': 'CLUSTER'}])
	assert not real.is_alive(p)
	p.wait()
	real.change('there', on('read'), scopes=[])
	real.can('there', 'select 1', '1')
	for name in ('here', 'there'):
		real.remove(name)


def for_a_while(begin):
	"""What begin(until when) gives: something that has to be there before that. On a slow machine the time is longer."""
	for seconds in (5, 20, 80):
		end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
		in_time = lambda: datetime.datetime.now(datetime.timezone.utc) < end - datetime.timedelta(seconds=1.5)  # dates have no fractions
		try:
			begun = begin(end.strftime('%Y-%m-%dT%H:%M:%SZ'))
			if in_time():
				return begun
		except AssertionError:
			if in_time():
				raise
	raise AssertionError('it took longer than %d s' % seconds)


def test_temporary_users_vanish(real):
	def begin(end):
		until(lambda: real.server.get(real.path('databaseUsers/admin/brief')).status_code == 404)
		real.user('brief', on('read'), deleteAfterDate=end)
		real.can('brief', 'select 1', '1')
		return real.session('brief')
	p = for_a_while(begin)
	until(lambda: real.server.get(real.path('databaseUsers/admin/brief')).status_code == 404)
	until(lambda: not real.sql('brief', 'select 1')[0])
	until(lambda: not real.is_alive(p))
	p.wait()


def test_access_list(real):
	s = real.server
	real.user('net', on('read'))
	p = real.session('net')
	ok(s.post(real.path('accessList'), json=[{'ipAddress': '192.0.2.1'}]))
	assert real.is_alive(p)
	in_force(s, s.delete(real.path('accessList/127.0.0.0%2F8')), 204)
	assert not real.is_alive(p)
	p.wait()
	real.cannot('net', 'select 1', 'no pg_hba.conf entry')
	# Back for a moment: a temporary entry ends sessions with it.
	def begin(end):
		ok(s.post(real.path('accessList'), json=[{'cidrBlock': '127.0.0.0/8', 'deleteAfterDate': end}]))
		return real.session('net')
	p = for_a_while(begin)
	until(lambda: not real.sql('net', 'select 1')[0])
	until(lambda: not real.is_alive(p))
	p.wait()
	ok(s.post(real.path('accessList'), json=[{'cidrBlock': '127.0.0.0/8'}]))
	real.can('net', 'select 1', '1')
	until(lambda: ok(s.get(real.path('accessList/192.0.2.1/status')))['STATUS'] == 'ACTIVE', what='what was saved to be in force')
	real.remove('net')


def test_standbys_know_it_at_once(real):
	"""The hosts of the string are the three nodes; a user logs in on each."""
	real.user('each', on('read'))
	text = real.string('c0', 'each', PASSWORD, 'shop').replace('target_session_attrs=read-write', 'target_session_attrs=standby')
	done = subprocess.run(['psql', '-X', '-A', '-t', '-d', text, '-c', 'select pg_is_in_recovery()'], stdout=subprocess.PIPE,
			      stderr=subprocess.STDOUT, text=True, timeout=120, env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent'})
	assert done.stdout.strip() == 't', done.stdout
	real.remove('each')


SPY = ("create table public.caught(who text); grant insert on public.caught to public; create function public.spy() returns void language plpgsql as "
       "$x$ begin if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then insert into public.caught values "
       "(current_user); end if; end $x$; ")


def test_no_way_to_the_superuser(real):
	"""What the service calls in a database is its own, also where a user was there first."""
	real.user('maker', on('readWriteAnyDatabase', 'admin'))
	real.can('maker', 'create database trap template template0', database='postgres')
	calls = ''.join("create function steward.%s returns %s language plpgsql as $x$ begin perform public.spy(); %s end $x$; " % f for f in (
		('namespace(oid)', 'void', ''), ('relation(oid)', 'void', ''), ('direct(oid, name)', 'void', ''),
		('rights()', 'jsonb', "return '[]'::jsonb;"), ('applied()', 'jsonb', "return '{}'::jsonb;")))
	real.can('maker', SPY + 'create schema steward; ' + calls + "comment on schema steward is 'rights 2'", database='trap')
	# The sample is the superuser's too: tables, their triggers and operators may be there before it.
	real.can('maker', 'create database sample_shop', database='postgres')
	real.can('maker', SPY + "create table loaded(slice int primary key); create function told() returns trigger language plpgsql as "
		 "$x$ begin perform public.spy(); return new; end $x$; create trigger told before insert on loaded for each row execute function "
		 "told(); create function public.join(text, int) returns text language plpgsql as $x$ begin perform public.spy(); return $1; end $x$; "
		 "create operator public.|| (leftarg = text, rightarg = int, function = public.join)", database='sample_shop')
	job = ok(real.server.post(real.path('sampleDatasetLoad/c0')), 201)
	until(lambda: ok(real.server.get(real.path('sampleDatasetLoad/' + job['_id'])))['state'] == 'COMPLETED', 180)
	real.user('visit', on('read'))
	for database in ('trap', 'sample_shop'):
		real.can('maker', 'select count(*) from public.caught', '0', database=database)
	real.can('maker', 'select count(*) from public.orders', '50000', database='sample_shop')
	# The trap is a database like any other now, and nobody's schema has our name any more.
	real.can('maker', "select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'steward'", 'steward_engine', database='trap')
	for statement in ('create schema steward_parts', 'create schema a; alter schema a rename to steward_x'):
		real.cannot('maker', statement, 'must not begin with steward', database='trap')
	for database in ('trap', 'sample_shop'):
		real.can('maker', 'drop database ' + database, database='postgres')
	real.remove('visit')
	real.remove('maker')


def test_an_owner_cannot_keep_changes_out(real):
	"""A database's own settings count for the service as little as its faults count for the rest."""
	real.user('stubborn', on('readWriteAnyDatabase', 'admin'))
	real.can('stubborn', 'create database closed', database='postgres')
	for setting in ('default_transaction_read_only = on', 'statement_timeout = 1', 'role = stubborn', "local_preload_libraries = 'none_such'",
			"default_transaction_isolation = 'serializable'", 'session_authorization = stubborn', 'idle_session_timeout = 1'):
		real.can('stubborn', 'alter database closed set ' + setting, database='postgres')
	real.user('late', on('read', 'closed'))
	real.can('late', 'select 1', '1', database='postgres')
	until(lambda: ok(real.server.get(real.path('accessList/127.0.0.0%2F8/status')))['STATUS'] == 'ACTIVE', what='what was saved to be in force')
	real.can('stubborn', 'drop database closed', database='postgres')
	real.remove('late')
	real.remove('stubborn')


def test_what_cannot_be_given_keeps_nobody_in(real):
	"""A role on a database that nobody can connect to, and databases that refuse what the service asks of them."""
	s = real.server
	real.user('maker', on('readWriteAnyDatabase', 'admin'))
	real.user('victim', on('read'), on('read', 'shop', 'solo'))
	real.user('barred', on('readWrite', 'locked', 'solo'))
	real.can('maker', 'create database sealed allow_connections false', database='postgres')
	real.can('maker', 'create table solo(a int); insert into solo values (1)', database='locked')
	real.can('barred', 'select a from solo', '1', database='locked')
	# One more, which holds what a change there needs.
	holder = real.session('maker', 'locked')
	holder.stdin.write('begin; lock table solo in access exclusive mode; select 5;\n')
	holder.stdin.flush()
	while holder.stdout.readline().strip() != '5':
		pass
	# What is not given is told, in every way there is.
	body = {'username': 'hopeful', 'databaseName': 'admin', 'groupId': real.group, 'password': PASSWORD, 'roles': [on('read', 'sealed')]}
	failures = client.metric(s, 'steward_access_failures_total')
	answer = s.post(real.path('databaseUsers'), json=body)
	assert answer.status_code == 201 and 'sealed' in answer.headers['X-Steward-Progress'], answer.headers
	until(lambda: 'sealed' in s.get(real.path('clusters/c0/status')).headers.get('X-Steward-Progress', ''))
	until(lambda: ok(s.get(real.path('accessList/127.0.0.0%2F8/status')))['STATUS'] == 'FAILED')
	until(lambda: ok(s.get(real.path('events?eventType=HOST_SECURITY_CHECKUP_NOT_MET')))['totalCount'] > 0)
	until(lambda: client.metric(s, 'steward_access_failures_total') > failures and client.metric(s, 'steward_access_behind') == 1)
	# And what is taken away is gone.
	p = real.session('victim')
	real.remove('victim')
	real.cannot('victim', 'select 1', 'authentication failed')
	assert not real.is_alive(p)
	p.wait()
	real.change('barred', on('read', 'shop'))
	real.cannot('barred', 'select a from solo', 'permission denied', database='locked')
	real.user('later', on('read'))
	real.can('later', 'select 1', '1')
	real.remove('hopeful')
	holder.kill()
	holder.communicate()
	until(lambda: ok(s.get(real.path('accessList/127.0.0.0%2F8/status')))['STATUS'] == 'ACTIVE')
	until(lambda: client.metric(s, 'steward_access_behind') == 0)
	real.can('maker', 'drop database sealed', database='postgres')
	for name in ('barred', 'later', 'maker'):
		real.remove(name)


def test_who_holds_the_list_of_roles_is_put_out(real):
	"""A user that changes its own password in many sessions, commits none of them, and comes back at once."""
	real.user('holds', on('read'))
	over, held = threading.Event(), []
	string = real.string('c0', 'holds', PASSWORD, 'shop')

	def hold():
		while not over.is_set():
			try:
				with contextlib.closing(psycopg2.connect(string)) as c:
					c.cursor().execute('alter role holds password %s', (PASSWORD,))
					held.append(1)
					while not over.is_set():
						c.cursor().execute('select pg_sleep(0.1)')
			except psycopg2.Error:
				pass
	threads = [threading.Thread(target=hold) for _ in range(12)]
	try:
		for t in threads:
			t.start()
		until(lambda: held)
		real.remove('holds')
		real.cannot('holds', 'select 1', 'authentication failed')
	finally:
		over.set()
		for t in threads:
			t.join()


def test_locks_in_many_databases_do_not_add_up(real):
	"""Nobody waits for each of them, while others are to be put out."""
	names = ['held_%d' % i for i in range(8)]
	real.user('locks', on('readWriteAnyDatabase', 'admin'))
	real.user('victim', on('read'))
	held = []
	try:
		for name in names:
			real.can('locks', 'create database ' + name, database='postgres')
			real.can('locks', 'create table t(a int)', database=name)
		real.change('victim', on('read'), on('read', 'held_0'))  # groups of all of them
		for name in names:
			real.can('locks', 'reassign owned by "steward:o:%s" to locks' % name, database=name)
			held.append(psycopg2.connect(real.string('c0', 'locks', PASSWORD, name)))
			held[-1].cursor().execute('lock table t')
		real.user('another', on('read'))  # whose job meets the locks before the next
		real.remove('victim')
		real.cannot('victim', 'select 1', 'authentication failed')
	finally:
		for c in held:
			c.close()
	for name in names:
		real.can('locks', 'drop database ' + name, database='postgres')
	for name in ('another', 'locks'):
		real.remove(name)


def test_half_logins_do_not_keep_the_service_out(real):
	"""Clients that never say their password, as many as the server has places."""
	real.user('stays', on('read'))
	p = real.session('stays')
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
	context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
	address, port = real.sql('stays', 'select host(inet_server_addr()), inet_server_port()')[1].strip().split('|')
	words = b'user\0nobody\0database\0shop\0\0'
	waiting = []
	try:
		for _ in range(120):
			c = socket.create_connection((address, int(port)), 30)
			c.sendall(struct.pack('!ii', 8, 80877103))
			assert c.recv(1) == b'S'
			waiting.append(context.wrap_socket(c))
			waiting[-1].sendall(struct.pack('!ii', 8 + len(words), 196608) + words)
			waiting[-1].recv(1)
		real.remove('stays')
		assert not real.is_alive(p)
	finally:
		for c in waiting:
			c.close()
		p.kill()
		p.communicate()
	until(lambda: real.sql('early', 'select 1')[0])


DEFINER = ("create function {0}() returns text language sql security definer as 'select string_agg(a::text, chr(44)) from secret'; "
	   "create procedure {0}_p() language plpgsql security definer as $x$ begin insert into secret values (9); end $x$; "
	   "grant execute on function {0}() to public; grant execute on procedure {0}_p() to public; ")


def test_what_a_deleted_user_leaves_runs_with_nobodys_rights(real):
	"""Nor with the rights of the group that its things go to, nor of whoever may write there."""
	real.can('early', 'create table secret(a int); insert into secret values (1)')
	real.role('makes', ('CREATE_COLLECTION', 'shop', ''), ('FIND', 'shop', 'open'))
	authors = {'w': on('readWrite'), 'any': on('readWriteAnyDatabase', 'admin')}
	real.user('reader', on('read', 'shop', 'open'))
	for name, role in (('adm', on('dbAdmin')), ('own', on('makes', 'admin'))):  # who leave no code in the first place
		real.user('author_' + name, role)
		real.cannot('author_' + name, DEFINER.format('left_' + name), 'needs the role readWrite')
		real.remove('author_' + name)
	for name, role in authors.items():
		real.user('author_' + name, role)
		real.can('author_' + name, DEFINER.format('left_' + name) + 'create view v_%s as select * from secret; '
			 'grant select on v_%s to public; create table t_%s(a int)' % (name, name, name))
	real.can('reader', 'select left_w()', '1')
	# A writer that becomes a reader: its functions read, and do not write any more.
	real.change('author_any', on('read'))
	real.cannot('reader', 'call left_any_p()')
	for name in authors:
		real.remove('author_' + name)
		real.cannot('reader', 'select left_%s()' % name)
		real.cannot('reader', 'call left_%s_p()' % name)
		real.can('early', 'select prosecdef from pg_proc where proname ~ $$^left_%s$$' % name, 'f\nf')
	real.cannot('reader', 'insert into v_w values (3)')
	# Who writes the database can put it in order.
	real.can('early', 'select * from secret', '1')
	for name in authors:
		real.can('early', 'drop function left_{0}(); drop procedure left_{0}_p(); drop view v_{0}; drop table t_{0}'.format(name))
	real.can('early', 'drop table secret')
	real.remove('reader')


def test_a_slow_login_is_no_way_around(real):
	"""Who has begun to log in before its network went, and says who it is afterwards."""
	s = real.server
	ok(s.post(real.path('accessList'), json=[{'ipAddress': '127.0.3.7'}]))
	real.user('slow', on('read'))
	text = real.string('c0', 'slow', PASSWORD, 'shop')
	address = text.split('hostaddr=')[1].split('&')[0].split(',')[0]
	port = int(text.split('@')[1].split(',')[0].rsplit(':', 1)[1])
	waiting = [socket.create_connection((address, port), 30, ('127.0.3.7', 0)) for _ in range(2)]
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
	context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
	for i, plain in enumerate(waiting):  # one with TLS, and one that says nothing at all
		plain.sendall(struct.pack('!ii', 8, 80877103) if i == 0 else b'')
	assert waiting[0].recv(1) == b'S'
	waiting[0] = context.wrap_socket(waiting[0])
	in_force(s, s.delete(real.path('accessList/127.0.3.7')), 204)
	words = b'user\0slow\0database\0shop\0\0'
	for i, plain in enumerate(waiting):
		try:
			if i == 1:
				plain.sendall(struct.pack('!ii', 8, 80877103))
				assert plain.recv(1) == b'S'
				plain = context.wrap_socket(plain)
			plain.sendall(struct.pack('!ii', 8 + len(words), 196608) + words)
			assert plain.recv(1) != b'R', 'asked for its password'
		except OSError:
			pass
		except AssertionError as e:
			assert 'asked' not in str(e), e
		plain.close()
	real.remove('slow')


def test_sessions_of_users_that_are_gone_end_on_standbys_too(real):
	real.user('leaves', on('read'))
	text = real.string('c0', 'leaves', PASSWORD, 'shop').replace('target_session_attrs=read-write', 'target_session_attrs=standby')
	p = subprocess.Popen(['psql', '-X', '-A', '-t', '-d', text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
			     text=True, env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent'})
	assert real.is_alive(p)
	real.remove('leaves')
	assert not real.is_alive(p)
	p.kill()
	p.communicate()


def test_who_holds_a_lock_keeps_nobody_in(real):
	"""A transaction that never ends, over what a change of users must change too."""
	real.user('holder', on('readWriteAnyDatabase', 'admin'))
	p = real.session('holder')
	p.stdin.write("begin; alter role holder password 'other'; select 5;\n")
	p.stdin.flush()
	while p.stdout.readline().strip() != '5':
		pass
	real.remove('holder')
	assert not real.is_alive(p)
	p.kill()
	p.communicate()
	until(lambda: ok(real.server.get(real.path('accessList/127.0.0.0%2F8/status')))['STATUS'] == 'ACTIVE', what='what was saved to be in force')


def test_nothing_secret_in_the_logs(real):
	secret = 'S3cret-' + unique()
	real.user('hidden', on('read'), password=secret)
	real.can('hidden', 'select 1', '1', password=secret)
	real.remove('hidden')
	assert secret not in real.server.stderr
	for file in pathlib.Path(real.dir).rglob('log/*'):
		text = file.read_text(errors='replace')
		assert secret not in text and 'SCRAM-SHA-256$' not in text, file


def test_a_crash_in_between(real):
	"""Whatever the service was about when it died, users that the store has can log in afterwards, and others cannot."""
	old, answered = real.server, []
	def make():
		try:
			for i in range(40):
				real.user('crash%d' % i, on('read'))
				answered.append('crash%d' % i)
		except Exception:  # the service is gone
			pass
	t = threading.Thread(target=make)
	t.start()
	until(lambda: len(answered) >= 2)
	old.kill()
	t.join()
	real.server = client.Server('--engine', 'postgres', data_dir=real.dir + '/d', clock='real')
	kept = [u['username'] for u in ok(real.server.get(real.path('databaseUsers')))['results'] if u['username'].startswith('crash')]
	assert set(answered) <= set(kept) and len(kept) <= len(answered) + 1
	for name in kept:
		until(lambda: real.sql(name, 'select 1')[0])
	real.cannot('crash%d' % len(kept), 'select 1', 'password authentication failed')
	for name in kept:
		real.remove(name)
