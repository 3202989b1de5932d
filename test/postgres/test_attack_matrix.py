"""The attack matrix: every built-in role and every action of custom roles that means something, against a catalogue of
attacks, on real databases. attacks.json has both, and says for each attack who may do it: everybody else must be refused.
What a role is for stands there too, so that taking away too much fails as well.

An attack is a list of statements of the attacker, then what a `victim` does, then a `probe` whose answer tells whether
something was gained. It is undone at its end; one with `commit` is seen by others, and the superuser takes away what it left.
`alone` is for what cannot be part of a transaction."""
import contextlib, json, os, pathlib, re, subprocess

import psycopg2, pytest

import databases
from client import in_force, ok
from databases import shape

DATA = json.loads((pathlib.Path(__file__).parent / 'attacks.json').read_text())
SUBJECTS, ATTACKS = DATA['subjects'], DATA['attacks']
PASSWORD = 'correct horse 4 battery'
REFUSAL = 'permission denied|must (be|have) |not a member|role ".*" cannot'
# Who acts beside the attackers. `nobody` has nothing, to see whether others were given something.
OTHERS = {'victim': [('readWrite', 'shop'), ('readWrite', 'other')], 'reader': [('read', 'shop')], 'maker': [('readWriteAnyDatabase', 'admin')],
	  'nobody': [('enableSharding', 'admin')], 'chief': [('svcAdmin', 'admin')]}


def members(names):
	"""The subjects that a row names: themselves, by @sets, by intersections of sets, or all (*)."""
	found = set()
	for name in names:
		parts = [SUBJECTS if p == '*' else members(DATA['sets'][p[1:]]) if p[0] == '@' else {p} for p in name.split(' & ')]
		found |= set.intersection(*map(set, parts))
	assert found <= set(SUBJECTS), found - set(SUBJECTS)
	return found


def user_of(subject):
	return 'x_' + subject.lower().replace(' ', '_')


class World:
	"""One cluster with a user for each subject. The users are older than the cluster, which spares a job for each."""

	def __init__(self):
		self.site = databases.Site()
		self.server = self.site.start()
		for name, subject in SUBJECTS.items():
			self.user(user_of(name), subject.get('roles', ()), subject.get('actions', ()))
		for name, roles in OTHERS.items():
			self.user(name, roles)
		ok(self.server.post(self.path('accessList'), json=[{'cidrBlock': '127.0.0.0/8'}]))
		self.cluster = self.site.cluster('c0', **shape(3)).settled()
		self.string = ok(self.server.get(self.cluster.path))['connectionStrings']['standard']
		self.open = {}
		self.fill()

	def path(self, what):
		return '/groups/%s/%s' % (self.server.group, what)

	def user(self, name, roles, actions=(), status=201):
		if actions:
			on = lambda a, d, t: {'db': d, 'collection': t, 'cluster': not d and a not in DATA['of databases']}
			ok(self.server.post(self.path('customDBRoles/roles'), json={'roleName': name, 'actions': [
				{'action': a, 'resources': [on(a, d, t)]} for a, d, t in actions]}), 202)
			roles = [*roles, (name, 'admin')]
		in_force(self.server, self.server.post(self.path('databaseUsers'), json={
			'username': name, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.server.group,
			'roles': [dict(zip(('roleName', 'databaseName', 'collectionName'), r)) for r in roles]}), status)

	def connect(self, user, database):
		c = psycopg2.connect(self.string, user=user, password=PASSWORD, dbname=database, connect_timeout=20)
		c.autocommit = True
		return c

	def engine(self, database='postgres', name='keeper'):
		"""The superuser, as the service is it."""
		n = self.cluster.nodes()[self.cluster.primary()]
		run = next(l for l in (self.cluster.directory(n['name']).parent / 'conf' / 'postgresql.conf').read_text().split('\n')
			   if l.startswith('unix_socket_directories')).split("'")[1]
		c = psycopg2.connect(host=run, port=n['port'], user='steward_engine', dbname=database, application_name=name)
		c.autocommit = True
		return c

	def as_user(self, user, statement, database='shop'):
		if (user, database) not in self.open:
			self.open[user, database] = self.connect(user, database)
		return run(self.open[user, database], statement)

	def fill(self):
		self.as_user('victim', """
			create table orders(id serial primary key, secret text); create index orders_secret on orders(secret);
			insert into orders(secret) values ('the secret'), ('the secret'), ('another');
			create table ledger(a int); create view totals as select count(*) from ledger;
			create sequence counter; create table parts(a int) partition by list (a);
			create view hidden with (security_barrier) as select * from orders where secret = 'another';
			create schema more; create table more.notes(a int);
			select lo_from_bytea(4711, 'the owner''s'); select lo_from_bytea(4712, 'for readers');
			grant select on large object 4712 to "steward:r:shop"; analyze orders""")
		self.as_user('victim', 'create table elsewhere(a int)', 'other')
		self.as_user('victim', "select 'watch me'", 'postgres')
		self.as_user('maker', 'create database made', 'postgres')
		self.as_user('maker', 'create table fresh(a int); insert into fresh values (1)', 'made')
		self.keeper = self.engine()
		self.cleaner = self.engine('shop')

	def clean(self):
		"""What a committed attack may have left has a name that begins with evil, or lies on what was there before."""
		run(self.cleaner, """do $$ declare x record; begin
			for x in select oid::regclass::text r, case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then
				'sequence' else 'table' end k from pg_class where relname ~ '^evil' and relkind in ('r', 'p', 'v', 'm', 'S') and
				relpersistence <> 't' order by relkind = 'S'
			loop execute format('drop %s if exists %s cascade', x.k, x.r); end loop;
			for x in select oid::regprocedure::text r from pg_proc where pronamespace = 'public'::regnamespace and
				proname in ('evil_f', 'lower')
			loop execute format('drop routine %s cascade', x.r); end loop;
			for x in select defaclrole::regrole r from pg_default_acl loop
				execute format('alter default privileges for role %s revoke all on tables from public', x.r); end loop;
			drop rule if exists evil on orders;
			alter table orders alter secret drop default;
			revoke all on orders from public;
			end $$""")
		for name, in run(self.keeper, "select datname from pg_database where datname ~ '^evil'"):
			run(self.keeper, 'drop database "%s"' % name)

	def end(self):
		for c in self.open.values():
			c.close()
		if self.server and not self.server.ended and hasattr(self, 'cluster'):
			self.keeper.close()
			self.cleaner.close()
			self.cluster.delete()
			self.cluster.deleted()
		self.site.end()


def run(connection, statement):
	with connection.cursor() as cursor:
		cursor.execute(statement)
		return cursor.fetchall() if cursor.description else None


@pytest.fixture(scope='module')
def world():
	w = World.__new__(World)
	try:
		w.__init__()
		yield w
		w.end()
	finally:
		w.site.wipe()


class Attacker:
	"""One subject's sessions."""

	def __init__(self, world, subject):
		self.world, self.subject, self.open = world, subject, {}

	def session(self, database):
		"""Or what kept it out."""
		if database not in self.open:
			try:
				self.open[database] = self.world.connect(user_of(self.subject), database)
				run(self.open[database], "set statement_timeout = '20s'")
			except psycopg2.OperationalError as e:
				self.open[database] = str(e)
		return self.open[database]

	def attempt(self, row):
		"""Whether something was gained, and what refused it."""
		session, committed = self.session(row.get('database', 'shop')), False
		if isinstance(session, str):
			return False, session
		try:
			committed = row.get('alone')
			if not committed:
				run(session, 'begin')
			for statement in row['do']:
				run(session, statement)
			if row.get('commit'):
				run(session, 'commit')
				committed = True
			for who, statement in row.get('victim', ()):
				self.world.as_user(who, statement)
			gained = run(session, row['probe'])[0][0] if 'probe' in row else True
			return gained, None if gained else 'nothing was gained'
		except psycopg2.Error as e:
			return False, str(e)
		finally:
			if not committed:
				run(session, 'rollback')
			else:
				self.world.clean()

	def close(self):
		for c in self.open.values():
			if not isinstance(c, str):
				c.close()


@pytest.mark.parametrize('subject', SUBJECTS)
def test_what_a_subject_may_do(world, subject):
	"""All of a subject's cells: both directions, and a refusal for the reason that the attack is refused for."""
	attacker, wrong = Attacker(world, subject), []
	try:
		for row in ATTACKS:
			may = subject in members(row['may'])
			gained, why = attacker.attempt(row)
			if bool(gained) != may:
				wrong.append('%s: %s' % (row['attack'], 'was possible' if gained else 'was refused: ' + why))
			elif not may and not re.search(row.get('refusal', REFUSAL) + '|nothing was gained|' + REFUSAL, why):
				wrong.append('%s: refused, but with %s' % (row['attack'], why))
	finally:
		attacker.close()
	assert not wrong, '%s, %d cells:\n%s' % (subject, len(wrong), '\n'.join(w.strip() for w in wrong))


SOURCE = pathlib.Path(__file__).parents[2] / 'src' / 'engine' / 'postgres' / 'sql' / 'grants.c'


def test_every_role_and_action_is_a_subject():
	"""The tables of the engine are the list of what has an effect; and every subject may something, and not everything."""
	tables = [set(re.findall(r'{"(\w+)", ', part.split('};')[0])) for part in SOURCE.read_text().split('const struct {')[1:3]]
	assert [len(t) >= n for t, n in zip(tables, (10, 23))] == [True, True], tables
	for table, kind in zip(tables, ('roles', 'actions')):
		assert {row[0] for s in SUBJECTS.values() for row in s.get(kind, ())} == table
	for subject in SUBJECTS:
		may = [a['attack'] for a in ATTACKS if subject in members(a['may'])]
		assert 0 < len(may) < len(ATTACKS), subject


def test_catalogs_and_functions_that_are_not_for_everybody(world):
	"""All of them, whatever version of PostgreSQL this is: nobody has more of the catalogs than the server's own monitoring
	groups, and the functions for large objects."""
	stats, writers = ([user_of(s) for s in members(['@' + n])] for n in ('stats', 'writers'))
	settings = [user_of(s) for s in members(['@settings'])]
	rows = run(world.cleaner, """
		select r.rolname, c.oid::regclass::text from pg_roles r, pg_class c where rolname ~ '^x_' and relnamespace in
			('pg_catalog'::regnamespace, 'information_schema'::regnamespace) and
			has_table_privilege(r.oid, c.oid, 'select, insert, update, delete, truncate, references, trigger') and
			not has_table_privilege('nobody', c.oid, 'select, insert, update, delete, truncate, references, trigger')
			and not (rolname = any(%s) and has_table_privilege('pg_read_all_stats', c.oid, 'select'))
		union all select r.rolname, p.oid::regprocedure::text from pg_roles r, pg_proc p where rolname ~ '^x_' and
			pronamespace = 'pg_catalog'::regnamespace and has_function_privilege(r.oid, p.oid, 'execute') and not
			has_function_privilege('nobody', p.oid, 'execute') and not (rolname = any(%s) and has_function_privilege(
			'pg_monitor', p.oid, 'execute')) and not (rolname = any(%s) and proname ~ '^lo')""" % tuple(
				"array['%s']" % "','".join(names) for names in (stats, stats + settings, writers)))
	assert not rows, rows


def test_the_protocol_of_replication(world):
	for subject in SUBJECTS:
		for mode in ('true', 'database') if subject in ('read', 'svcAdmin') else ('database',):
			with pytest.raises(psycopg2.OperationalError) as e:
				psycopg2.connect(world.string, user=user_of(subject), password=PASSWORD, dbname='shop', replication=mode)
			assert re.search('no pg_hba.conf entry for replication|must be superuser or replication role|'
					 'permission denied', str(e.value)), (subject, e.value)


def test_a_dump_by_who_reads(world):
	"""Large objects are their owners', and aside."""
	def dump(subject):
		return subprocess.run(['pg_dump', '-B', '-N', 'steward*', '-d', re.sub('/[^/?]*[?]', '/shop?', world.string)], capture_output=True, text=True,
				      timeout=120, env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'PGUSER': user_of(subject), 'PGPASSWORD': PASSWORD})
	for subject in ('backup', 'read', 'readAnyDatabase'):
		done = dump(subject)
		assert done.returncode == 0 and 'the secret' in done.stdout, done.stderr
	for subject in ('dbAdmin', 'clusterMonitor', 'FIND one'):
		done = dump(subject)
		assert done.returncode != 0 and 'permission denied' in done.stderr and 'the secret' not in done.stdout


def applied(world, name):
	"""A change of users: its job visits what is not as it should be."""
	world.user(name, [('read', 'shop')])
	assert ok(world.server.get(world.path('accessList/127.0.0.0%2F8/status')))['STATUS'] == 'ACTIVE'


def test_a_database_without_our_template(world):
	"""It has nothing of ours until the next change of users; then it is as any other."""
	world.as_user('maker', 'create database bare template template0', 'postgres')
	world.as_user('maker', 'create table t(a int); insert into t values (1)', 'bare')
	applied(world, 'after_bare')
	assert world.as_user(user_of('readAnyDatabase'), 'select a from t', 'bare') == [(1,)]
	for user, statement in (('readAnyDatabase', 'insert into t values (2)'), ('readAnyDatabase', 'select lo_create(0)'),
				('read', 'select 1'), ('dbAdminAnyDatabase', "create function f() returns int language sql as 'select 1'")):
		with pytest.raises(psycopg2.Error) as e:
			world.as_user(user_of(user), statement, 'bare')
		assert 'permission denied' in str(e.value)


def roles_set(world, name, *roles):
	"""Who loses a role loses its sessions."""
	in_force(world.server, world.server.patch(world.path('databaseUsers/admin/' + name), json={
		'username': name, 'databaseName': 'admin', 'groupId': world.server.group,
		'roles': [dict(zip(('roleName', 'databaseName', 'collectionName'), r)) for r in roles]}))
	for key in [k for k in world.open if k[0] == name]:
		world.open.pop(key).close()


def test_what_is_shared_by_hand_ends_with_the_next_change(world):
	"""PostgreSQL 15 lets users give membership in themselves."""
	try:
		world.as_user('chief', 'grant chief to nobody', 'postgres')
	except psycopg2.Error as e:  # not so from 16 on
		assert 'permission denied' in str(e) or 'must have admin option' in str(e)
	applied(world, 'after_share')
	assert run(world.keeper, "select pg_has_role('nobody', 'chief', 'member')") == [(False,)]


def test_who_loses_a_role_keeps_nothing_that_it_took(world):
	"""REASSIGN OWNED fires no trigger, and a database's maker owns it."""
	world.user('falls', [('readWriteAnyDatabase', 'admin')])
	world.as_user('falls', 'create database taken', 'postgres')
	world.as_user('falls', 'create table taken(a int default pg_backend_pid()); reassign owned by "steward:o:shop" to falls')
	assert run(world.cleaner, "select count(*) > 0 from pg_class where relowner = 'falls'::regrole") == [(True,)]
	roles_set(world, 'falls', ('read', 'shop'))
	assert run(world.cleaner, "select relname from pg_class where relowner = 'falls'::regrole and relkind in ('r', 'p', 'S')") == []
	assert world.as_user('falls', 'select count(*) > 0 from orders') == [(True,)]
	for database, statement in (('shop', "insert into orders(secret) values ('x')"), ('shop', 'drop table taken'),
				    ('shop', 'alter table ledger add b int'), ('postgres', 'drop database taken'),
				    ('postgres', 'alter database taken set work_mem = 64')):
		with pytest.raises(psycopg2.Error) as e:
			world.as_user('falls', statement, database)
		assert re.search('permission denied|must be owner', str(e.value)), e.value
	world.as_user('victim', 'alter table ledger add b int; alter table ledger drop b; drop table taken')
	run(world.keeper, 'drop database taken')


def test_what_was_granted_by_hand_ends_with_the_role(world):
	"""A writer can grant itself what its group has; what the API still gives it stays."""
	world.user('climbs', [('readWrite', 'shop'), ('read', 'shop', 'ledger')])
	world.as_user('climbs', 'grant all on orders, ledger to climbs with grant option; grant all on sequence counter to climbs;'
		      'grant all on schema more, public to climbs; grant update (a) on more.notes to climbs')
	roles_set(world, 'climbs', ('read', 'shop', 'ledger'))
	world.as_user('climbs', 'select * from ledger')
	for statement in ('select * from orders', "insert into orders(secret) values ('x')", 'insert into ledger values (1)', "select nextval('counter')",
			  'create table evil_t(a int)', 'update more.notes set a = 1'):
		with pytest.raises(psycopg2.Error) as e:
			world.as_user('climbs', statement)
		assert 'permission denied' in str(e.value), e.value
	assert run(world.keeper, "select count(*) from pg_shdescription where description = 'lost a role'") == [(0,)]


def test_a_role_that_was_set_ends_with_it(world):
	"""PostgreSQL leaves a session what SET ROLE made of it, on standbys too."""
	world.user('became', [('readWrite', 'shop'), ('dbAdmin', 'shop')])
	standby = next(n for name, n in world.cluster.nodes().items() if name != world.cluster.primary())
	sessions = [world.connect('became', 'shop'), world.cluster.connect(standby, 'shop', 'became', PASSWORD)]
	for c in sessions:
		run(c, 'set role "steward:o:shop"')
		assert run(c, 'select count(*) > 0 from orders') == [(True,)]
	roles_set(world, 'became', ('dbAdmin', 'shop'))
	for c in sessions:
		with pytest.raises(psycopg2.Error):
			run(c, 'select * from orders')
		c.close()
	with pytest.raises(psycopg2.Error, match='permission denied'):
		world.as_user('became', 'set role "steward:o:shop"')


def test_what_is_granted_by_default_ends_with_the_role(world):
	"""On tables that the writers' group makes later."""
	world.user('waits', [('readWrite', 'shop'), ('dbAdmin', 'shop')])
	world.as_user('waits', """alter default privileges for role "steward:o:shop" grant all on tables to waits;
		alter default privileges for role "steward:o:shop" in schema public grant all on sequences to waits""")
	roles_set(world, 'waits', ('dbAdmin', 'shop'))
	world.as_user('victim', 'set role "steward:o:shop"; create table evil_later(id serial); reset role')
	for statement in ('select * from evil_later', "select nextval('evil_later_id_seq')"):
		with pytest.raises(psycopg2.Error, match='permission denied'):
			world.as_user('waits', statement)
	assert run(world.cleaner, "select count(*) from pg_default_acl, aclexplode(defaclacl) where grantee = 'waits'::regrole") == [(0,)]
	world.clean()


def test_what_cannot_be_taken_back_is_no_success(world):
	"""A friend holds the table's grants: as long as that lasts, no answer says that they are gone."""
	world.user('befriended', [('readWrite', 'shop'), ('dbAdmin', 'shop')])
	world.as_user('befriended', 'grant all on ledger to befriended')
	friend = world.connect('victim', 'shop')
	run(friend, 'begin; grant select on ledger to victim')
	answer = world.server.patch(world.path('databaseUsers/admin/befriended'), json={
		'username': 'befriended', 'databaseName': 'admin', 'groupId': world.server.group, 'roles': [{'roleName': 'dbAdmin', 'databaseName': 'shop'}]})
	assert answer.status_code == 503 and answer.json()['errorCode'] == 'ACCESS_NOT_IN_FORCE', answer.text
	friend.close()
	roles_set(world, 'befriended', ('dbAdmin', 'shop'))
	with pytest.raises(psycopg2.Error, match='permission denied'):
		world.as_user('befriended', 'select * from ledger')


@pytest.mark.parametrize('database, options', [('is_a_template', 'is_template true'), ('l' * 60, '')])
def test_no_database_is_left_out(world, database, options):
	"""Its maker may call it a template, or by a name that is too long for groups."""
	name = 'maker_of_' + database[:5]
	world.user(name, [('readWriteAnyDatabase', 'admin')])
	world.as_user(name, 'create database %s %s' % (database, options), 'postgres')
	world.as_user(name, 'create table t(a int); insert into t values (7); grant all on t to %s; grant usage on schema public to %s;'
		      'grant connect on database %s to %s' % (name, name, database, name), database)
	roles_set(world, name, ('enableSharding', 'admin'))
	with pytest.raises(psycopg2.Error, match='permission denied'):
		world.as_user(name, 'select * from t', database)
	assert world.as_user('maker', 'select a from t', database) == [(7,)]
	world.open.pop(('maker', database)).close()
	run(world.keeper, 'alter database %s is_template false' % database)
	run(world.keeper, 'drop database ' + database)


def test_a_database_is_taken_from_who_does_not_let_go(world):
	"""Its owner changes it, and does not commit."""
	world.user('clings', [('readWriteAnyDatabase', 'admin')])
	for name in ('clung', 'other_of_clings'):
		world.as_user('clings', 'create database ' + name, 'postgres')
	world.as_user('clings', 'begin; alter database clung connection limit 50', 'postgres')
	roles_set(world, 'clings', ('enableSharding', 'admin'))
	assert run(world.keeper, "select datname from pg_database where datdba = 'clings'::regrole") == []
	for name in ('clung', 'other_of_clings'):
		run(world.keeper, 'drop database ' + name)


NASTY = ('quo"te', "quo'te", 'semi; drop table x', '$steward$', 'Ünï', 'back\\slash', '%I %s', 'x' * 63)
SPIED = (('pg_get_userbyid', 'oid', 'name'), ('pg_has_role', 'oid, name, text', 'boolean'), ('quote_ident', 'text', 'text'),
	 ('current_database', '', 'name'), ('to_regnamespace', 'text', 'regnamespace'), ('obj_description', 'oid, name', 'text'))


def test_the_service_runs_nothing_of_users(world):
	"""The trigger's functions and the service's sessions are the superuser's: what they call and compare is built in, whatever
	lies in front of it, and names are only names."""
	world.as_user('maker', 'create database trap', 'postgres')
	world.as_user('maker', """create table public.caught(what text); grant insert on public.caught to public;
		create function public.spy(what text) returns boolean language plpgsql as $x$ begin
			if (select rolsuper from pg_catalog.pg_roles where rolname operator(pg_catalog.=) current_user) then
				insert into public.caught values (what); end if;
			return true; end $x$""", 'trap')
	for name, arguments, returns in SPIED:
		world.as_user('maker', 'create function public.%s(%s) returns %s language plpgsql as $x$ begin perform '
			"public.spy('%s'); return null; end $x$" % (name, arguments, returns, name), 'trap')
	for i, (operator, left, right) in enumerate((o, a, b) for o in ('=', '<>', '~', '||') for a in ('name', 'text') for b in ('name', 'text')):
		kind = 'text' if operator == '||' else 'boolean'
		world.as_user('maker', "create function public.op%d(%s, %s) returns %s language plpgsql as $x$ begin perform public.spy('%s'); "
			'return null; end $x$; create operator public.%s (leftarg = %s, rightarg = %s, function = public.op%d)' % (
				i, left, right, kind, operator, operator, left, right, i), 'trap')
	world.as_user('maker', "create function public.index_spy(int) returns int immutable language plpgsql as $x$ begin perform "
		      "public.spy('index'); return 1; end $x$; create table indexed(a int); create index on indexed(public.index_spy(a)); "
		      'insert into indexed values (1)', 'trap')
	world.as_user('maker', 'alter database trap set search_path = public, pg_catalog; alter database trap set idle_session_timeout = 1000;'
		      'alter database trap set standard_conforming_strings = off', 'postgres')
	c = world.connect('maker', 'trap')
	run(c, 'set idle_session_timeout = 0; set search_path = public, pg_catalog; set standard_conforming_strings = off')
	for name in NASTY:
		quoted = '"%s"' % name.replace('"', '""')
		run(c, 'create table %s(%s int, id serial); create schema %s; create view %s.%s as select 1 as a' % ((quoted,) * 5))
	run(c, 'vacuum indexed')
	applied(world, 'after_trap')
	assert run(c, 'select what from public.caught') == []
	assert len(run(c, "select distinct relname from pg_catalog.pg_class where relkind in ('r', 'v') and pg_catalog.pg_get_userbyid(relowner) "
			  "operator(pg_catalog.=) 'steward:o:trap'::name and not relname operator(pg_catalog.=) any (array['caught', "
			  "'indexed']::name[])")) == len(NASTY)
	c.close()


def test_what_an_earlier_version_gave_is_taken_back(world):
	"""As clusters were: groups that read all catalogs, administrators with triggers, large objects for everybody."""
	run(world.cleaner, """drop event trigger steward_check; drop event trigger steward_ddl; comment on schema steward is 'rights 2 of shop';
		grant pg_read_all_data to "steward:any:r", "steward:any:w"; grant pg_write_all_data to "steward:any:w";
		grant trigger, references on orders to "steward:a:shop", "steward:any:a"; grant execute on function lo_create(oid) to public;
		create table public.evil_plain(id serial, a int); alter table public.evil_plain owner to x_dbadmin;
		create view public.evil_view as select * from orders; alter view public.evil_view owner to x_dbadmin""")
	run(world.keeper, 'drop function steward.applied()')
	applied(world, 'after_version')
	assert run(world.cleaner, """select count(*) from pg_auth_members m join pg_roles r on r.oid = m.roleid where rolname in ('pg_read_all_data',
		'pg_write_all_data')""") == [(0,)]
	assert run(world.cleaner, """select has_table_privilege('x_dbadmin', 'orders', 'trigger, references'), has_table_privilege(
		'x_dbadmin', 'orders', 'truncate'), has_function_privilege('x_read', 'lo_create(oid)', 'execute'),
		has_function_privilege('x_readwrite', 'lo_create(oid)', 'execute')""") == [(False, True, False, True)]
	owners = "select pg_get_userbyid(relowner) from pg_class where relname in ('evil_plain', 'evil_view') order by relname"
	assert run(world.cleaner, owners) == [('steward:o:shop',), ('x_dbadmin',)], 'a view works with the rights of its owner'
	with pytest.raises(psycopg2.Error):
		world.as_user(user_of('dbAdmin'), "create function public.evil_f() returns int language sql as 'select 1'")
	world.clean()


DOOR = "create function %s.evil_f(s text) returns void security definer language plpgsql as 'begin execute s; end'"
DOORS = """select count(*) from pg_proc join pg_roles r on r.oid = proowner where prosecdef and rolname ~ '^(pg_|steward:)' and
	rolname <> 'steward:shard'"""


@contextlib.contextmanager
def unguarded(world, database='shop'):
	"""As a database was before its trigger refused to give groups more than they have: what is there is taken back all the same."""
	keeper = world.engine(database)
	run(keeper, 'alter event trigger steward_groups disable')
	try:
		yield
	finally:
		run(keeper, 'alter event trigger steward_groups enable always')
		keeper.close()


def deleted(world, name):
	in_force(world.server, world.server.delete(world.path('databaseUsers/admin/' + name)), 204)
	for key in [k for k in world.open if k[0] == name]:
		world.open.pop(key).close()


@pytest.mark.parametrize('end', ['deleted', 'demoted'])
def test_a_definer_function_ends_with_its_authors_role(world, end):
	"""REASSIGN OWNED fires no event trigger, and leaves it to a group: one of the database, of any, of PostgreSQL itself."""
	name = 'door_' + end
	world.user(name, [('readWriteAnyDatabase', 'admin'), ('readWrite', 'shop'), ('dbAdmin', 'shop')])
	groups = ['steward:%s:shop' % l for l in 'rwaol'] + ['steward:any:r', 'steward:any:w']
	with unguarded(world):
		for i, group in enumerate(groups):
			world.as_user(name, 'create schema evil_%d; grant usage on schema evil_%d to public; grant create on schema evil_%d to "%s"; %s; '
				      'reassign owned by %s to "%s"' % (i, i, i, group, DOOR % ('evil_%d' % i), name, group))
	database = 'doors_' + end
	world.as_user(name, 'create database ' + database, 'postgres')
	world.as_user(name, 'create schema s; %s; reassign owned by %s to "steward:any:w"' % (DOOR % 's', name), database)
	world.as_user(name, DOOR % 'public', database)
	with pytest.raises(psycopg2.Error, match='must belong to a user'):
		world.as_user(name, 'alter function public.evil_f(text) owner to pg_database_owner', database)
	keeper = world.engine(database)
	assert run(world.cleaner, DOORS) == [(len(groups),)] and run(keeper, DOORS) == [(1,)]
	world.as_user('reader', "select evil_3.evil_f('insert into ledger values (666)')")
	if end == 'deleted':
		deleted(world, name)
	else:
		roles_set(world, name, ('read', 'shop'))
	assert run(world.cleaner, DOORS) == [(0,)] and run(keeper, DOORS) == [(0,)]
	keeper.close()
	for i in range(len(groups)):
		with pytest.raises(psycopg2.Error, match='permission denied'):
			world.as_user('reader', "select evil_%d.evil_f('insert into ledger values (666)')" % i)
		run(world.cleaner, 'drop schema evil_%d cascade' % i)
	run(world.keeper, 'drop database ' + database)


def test_what_cannot_be_done_in_one_place_ends_no_visit(world):
	"""A database's maker says that errors end sessions there, the service's own among them, and somebody holds tables: all else is
	taken back nevertheless."""
	world.user('ends', [('readWriteAnyDatabase', 'admin')])
	world.as_user('ends', 'create database ends', 'postgres')
	world.as_user('ends', 'create schema s; %s; reassign owned by ends to "steward:any:w"' % (DOOR % 's'), 'ends')
	world.as_user('ends', ';'.join('create table held_%d(a int)' % i for i in range(40)), 'ends')
	world.as_user('ends', "do 'begin end'; alter database ends set exit_on_error = on; alter database ends set plpgsql.extra_errors = 'all'",
		      'postgres')
	keeper, holder = world.engine('ends'), world.connect('chief', 'ends')
	assert run(keeper, DOORS) == [(1,)]
	run(holder, 'begin; ' + ';'.join('select * from held_%d' % i for i in range(40)))
	roles_set(world, 'ends', ('read', 'shop'))
	assert run(keeper, DOORS) == [(0,)]
	holder.close()
	keeper.close()
	applied(world, 'after_ends')
	run(world.keeper, 'drop database ends with (force)')


def test_what_was_given_to_groups_comes_back(world):
	"""By REASSIGN OWNED, and by ALTER DATABASE: to all readers, to all administrators, to those who administer what users left, to the
	database's owner, and to oneself together with a function that an index calls."""
	world.user('gives', [('readWriteAnyDatabase', 'admin'), ('dbAdminAnyDatabase', 'admin')])
	targets = ['steward:any:r', 'steward:any:a', 'steward:a:%s', 'steward:l:%s', 'pg_database_owner', 'gives']
	for i in range(len(targets)):
		world.as_user('gives', 'create database given_%d' % i, 'postgres')
		world.as_user('gives', """create table t(a serial); create schema more; create table more.t(a int);
			create function public.f(int) returns int immutable language sql as 'select 1'; create index on t(f(a))""", 'given_%d' % i)
	applied(world, 'after_given')
	for i, target in enumerate(targets):
		group = target.replace('%s', 'given_%d' % i)
		with unguarded(world, 'given_%d' % i):
			world.as_user('gives', """grant create on schema public, more to "%s"; reassign owned by gives to "steward:o:given_%d";
				reassign owned by "steward:o:given_%d" to "%s" """ % (group, i, i, group), 'given_%d' % i)
	world.as_user('gives', 'alter database given_0 owner to "steward:any:r"', 'postgres')
	owners = """select distinct pg_get_userbyid(o) from (select relowner o from pg_class where relname in ('t', 't_a_seq') union all select
		nspowner from pg_namespace where nspname = 'more') t"""
	keepers = [world.engine('given_%d' % i) for i in range(len(targets))]
	for i, keeper in enumerate(keepers):
		assert run(keeper, owners) == [(targets[i].replace('%s', 'given_%d' % i),)]
	roles_set(world, 'gives', ('readAnyDatabase', 'admin'), ('dbAdminAnyDatabase', 'admin'))
	for i, keeper in enumerate(keepers):
		assert run(keeper, owners) == [('steward:o:given_%d' % i,)], targets[i]
		keeper.close()
		reader = user_of('readAnyDatabase')
		assert world.as_user(reader, 'select count(*) from t', 'given_%d' % i) == [(0,)], 'readers still read'
		for user, statement in ((reader, 'insert into t values (1)'), (reader, 'drop table more.t'), ('gives', 'insert into t values (1)'),
					(user_of('dbAdminAnyDatabase'), 'select * from t'), ('gives', 'drop schema more')):
			with pytest.raises(psycopg2.Error, match='permission denied|must be owner'):
				world.as_user(user, statement, 'given_%d' % i)
	assert run(world.keeper, "select distinct pg_get_userbyid(datdba) from pg_database where datname ~ '^given'") == [('steward_engine',)]
	for i in range(len(targets)):
		for key in [k for k in world.open if k[1] == 'given_%d' % i]:
			world.open.pop(key).close()
		run(world.keeper, 'drop database given_%d' % i)


def test_what_others_than_the_owner_have_granted_ends_with_the_role(world):
	"""A writer takes the tables, and lets a friend pass on its rights: to one who loses its role, to all readers; on the table, and on
	columns, whose lists do not tell by what right. A friend that still writes is a member of the owner, of whom nothing can be revoked."""
	for name in 'takes', 'passes', 'gets':
		world.user(name, [('readWrite', 'shop')])
	world.as_user('takes', 'reassign owned by "steward:o:shop" to takes; grant select, update on orders, ledger to passes with grant option')
	with unguarded(world):
		world.as_user('passes', """grant select, update on orders to gets; grant select (a), update (a) on ledger to gets;
			grant update (secret) on orders to gets, "steward:r:shop"; grant update (a) on ledger to "steward:r:shop", "steward:a:shop" """)
	attempts = [('gets', s) for s in ('select * from orders', "update orders set secret = 'x' where false", 'select a from ledger', 'update ledger set a = 1')]
	attempts += [('reader', attempts[1][1]), ('reader', attempts[3][1])]
	for who, what in attempts:
		world.as_user(who, what)
	roles_set(world, 'gets', ('dbAdmin', 'shop'))
	for who, what in attempts:
		with pytest.raises(psycopg2.Error, match='permission denied'):
			world.as_user(who, what)
	assert world.as_user('passes', 'select count(*) > 0 from orders') == world.as_user('reader', 'select count(*) > 0 from orders') == [(True,)]
	# And with the role of who has passed it on.
	world.as_user('victim', 'reassign owned by "steward:o:shop" to victim; grant select, update on orders to passes with grant option')
	world.as_user('passes', 'grant select (secret), update (secret) on orders to gets')
	world.as_user('gets', attempts[1][1])
	deleted(world, 'passes')
	with pytest.raises(psycopg2.Error, match='permission denied'):
		world.as_user('gets', attempts[1][1])
	for name in 'takes', 'gets':
		deleted(world, name)
	assert run(world.cleaner, """select count(*), (select count(*) from pg_roles where rolname in ('takes', 'passes', 'gets')) from pg_attribute where
		attacl is not null and attrelid in ('orders'::regclass, 'ledger'::regclass)""") == [(0, 0)]
	assert run(world.cleaner, "select distinct relowner::regrole::text from pg_class where relname in ('orders', 'ledger')") == [('"steward:o:shop"',)]


def test_what_was_granted_to_groups_ends_with_the_role(world):
	"""Of tables, columns, sequences, schemas, databases, functions, types, things to come; and membership in oneself."""
	world.user('generous', [('readWriteAnyDatabase', 'admin')])
	world.user('monitors', [('clusterMonitor', 'admin'), ('read', 'shop', 'nothing')])
	world.as_user('generous', 'create database gifts', 'postgres')
	world.as_user('generous', 'grant create on database gifts to "steward:r:shop", "steward:any:r", pg_monitor', 'postgres')
	to = '"steward:r:shop", "steward:any:r", "steward:a:shop", pg_monitor'
	gifts = """grant insert, select on ledger to %s with grant option; grant update (secret), select (secret) on orders to %s;
		grant usage on sequence counter to %s; grant create on schema more, public to %s; create schema gift_space; create type evil_y as enum ('a');
		grant all on type evil_y to %s; create function evil_f() returns int language sql as 'select 1'; grant all on function evil_f() to %s;
		alter default privileges grant all on tables to %s;
		alter default privileges for role "steward:o:shop" in schema public grant all on tables to %s; select lo_from_bytea(4713, 'x');
		grant all on large object 4713 to %s""".replace('%s', to)
	before = ''
	for gift in gifts.split(';'):  # refused, each, at once
		if 'grant' not in gift:
			before += gift + ';'
			continue
		with pytest.raises(psycopg2.Error, match='has the rights that the service gives it'):
			world.as_user('generous', 'begin; ' + before + gift)
		world.as_user('generous', 'rollback')
	with unguarded(world):
		world.as_user('generous', gifts)
	run(world.keeper, 'grant generous to "steward:r:shop", pg_monitor')  # before PostgreSQL 15, users could
	attempts = [(who, what) for who in ('reader', user_of('dbAdmin'), user_of('readAnyDatabase'), 'monitors') for what in (
		'insert into ledger values (1)', "update orders set secret = 'x' where false", "select nextval('counter')")]
	attempts += [(user_of('dbAdmin'), 'select * from ledger'), (user_of('dbAdmin'), 'select secret from orders'), ('monitors', 'select * from ledger'),
		     ('reader', 'create table more.evil_t(a int)'), ('reader', 'set role generous'), ('reader', 'grant select on ledger to nobody')]
	became = world.connect('reader', 'shop')
	run(became, 'set role generous')
	for who, what in attempts[:3]:
		world.as_user(who, what)
	deleted(world, 'generous')
	while world.open:  # who belongs to a group that was given somebody's role loses its sessions
		world.open.popitem()[1].close()
	with pytest.raises(psycopg2.Error):
		run(became, 'insert into ledger values (1)')
	world.as_user('victim', 'set role "steward:o:shop"; create table evil_later(a int); reset role')
	for who, what in [*attempts, ('reader', 'insert into evil_later values (1)')]:
		with pytest.raises(psycopg2.Error, match='permission denied|role "generous" does not exist'):
			world.as_user(who, what)
	assert run(world.cleaner, """select count(*) from pg_database, aclexplode(datacl) k join pg_roles r on r.oid = k.grantee where datname = 'gifts' and
		rolname in ('steward:r:shop', 'steward:any:r', 'pg_monitor') and privilege_type = 'CREATE'""") == [(0,)]
	assert run(world.cleaner, """select count(*) from (select aclexplode(proacl) k from pg_proc where proname = 'evil_f' union all select
		aclexplode(typacl) from pg_type where typname = 'evil_y' union all select aclexplode(defaclacl) from pg_default_acl union all select
		aclexplode(relacl) from pg_class where relname = 'ledger') t join pg_roles r on r.oid = (k).grantee where rolname ~ 'steward:(r|a|any)' and
		(rolname, (k).privilege_type) not in (('steward:r:shop', 'SELECT'), ('steward:any:r', 'SELECT'), ('steward:a:shop', 'TRUNCATE'),
		('steward:any:a', 'TRUNCATE')) and rolname <> 'steward:any:w'""") == [(0,)]
	assert run(world.cleaner, "select array_agg(distinct privilege_type) from pg_largeobject_metadata, aclexplode(lomacl) where oid = 4713 and "
		   "grantee = '\"steward:r:shop\"'::regrole") == [(['SELECT'],)], 'readers may be shown large objects'
	assert run(world.keeper, "select count(*) from pg_shdescription where description in ('lost a role', 'lost a member')") == [(0,)]
	run(world.keeper, 'drop database gifts')
	run(world.cleaner, 'drop type evil_y; drop schema gift_space; select lo_unlink(4713)')
	world.clean()


def test_groups_are_given_no_more_than_they_have(world):
	"""Whatever the way: in a schema's own statement, in a block that catches errors, as the owners, in a definer's function; by who has
	looked at the age of rows before."""
	to, refusal = '"steward:r:shop"', 'permission denied: steward:r:shop has the rights that the service gives it'
	for what in ('grant insert on ledger to ' + to, 'grant select on ledger to %s with grant option' % to,
		     'create schema evil_s create table evil_t(a int) grant insert on evil_t to ' + to,
		     'do $$ begin begin grant insert on ledger to %s; exception when division_by_zero then null; end; end $$' % to,
		     'begin; select age(xmin) from pg_class; savepoint s; grant delete on ledger to %s; commit' % to,
		     'begin; set local role "steward:o:shop"; grant insert on ledger to %s; commit' % to,
		     DOOR % 'public' + "; select evil_f('grant insert on ledger to %s')" % to):
		with pytest.raises(psycopg2.Error, match=refusal):
			world.as_user('victim', what)
		world.as_user('victim', 'rollback')
	with pytest.raises(psycopg2.Error, match='permission denied'):
		world.as_user('reader', 'insert into ledger values (1)')
	# What they have, what is for users, and the way back.
	world.as_user('victim', """begin; grant select on ledger, totals to %s; grant usage on schema more to %s; grant select on large object 4712 to %s;
		grant all on ledger to nobody with grant option; grant select on ledger to public; alter default privileges grant select on tables to nobody;
		alter default privileges revoke all on tables from nobody; rollback""".replace('%s', to))
	with unguarded(world):
		world.as_user('victim', 'grant insert on ledger to ' + to)
	world.as_user('victim', 'revoke insert on ledger from ' + to)
	world.clean()


def test_definer_functions_by_other_ways_end_with_their_author(world):
	"""As a part of an extension; in a database that was given to a group, to whoever owns it. Nor does the next of that name get them."""
	world.user('departs', [('readWriteAnyDatabase', 'admin'), ('readWrite', 'shop')])
	world.as_user('departs', 'create schema evil_x; grant usage on schema evil_x to public; create extension hstore schema evil_x; %s; '
		      'alter extension hstore add function evil_x.evil_f(text); reassign owned by departs to "steward:o:shop"' % DOOR % 'evil_x')
	for name, target in (('departed', 'pg_database_owner'), ('departed_too', '"steward:any:w"')):
		world.as_user('departs', 'create database ' + name, 'postgres')
		world.as_user('departs', 'alter database %s owner to "steward:any:w"' % name, 'postgres')
		world.as_user('departs', DOOR % 'public' + '; reassign owned by departs to ' + target, name)
	keepers = [world.engine(name) for name in ('departed', 'departed_too')]
	assert [run(k, DOORS) for k in (world.cleaner, *keepers)] == [[(1,)]] * 3
	world.as_user('reader', "select evil_x.evil_f('insert into ledger values (666)')")
	deleted(world, 'departs')
	assert [run(k, DOORS) for k in (world.cleaner, *keepers)] == [[(0,)]] * 3
	assert run(world.keeper, "select distinct pg_get_userbyid(datdba) from pg_database where datname ~ '^departed'") == [('steward_engine',)]
	assert run(world.cleaner, "select rolname from pg_extension e join pg_roles r on r.oid = extowner where extname = 'hstore'") == [('steward:o:shop',)]
	world.user('departs', [('read', 'shop')])
	for statement in ("select evil_x.evil_f('insert into ledger values (666)')", 'alter function evil_x.evil_f(text) security definer',
			  'drop extension hstore', 'alter extension hstore drop function evil_x.evil_f(text)'):
		for who in ('departs', 'reader'):
			with pytest.raises(psycopg2.Error, match='permission denied|must be owner'):
				world.as_user(who, statement)
	for name, keeper in zip(('departed', 'departed_too'), keepers):
		keeper.close()
		run(world.keeper, 'drop database ' + name)
	run(world.cleaner, 'drop extension hstore cascade; drop schema evil_x cascade')


def test_a_dump_that_is_played_back_gives_groups_nothing(world):
	"""It says of each thing whose it was and who had been given what, as that was before the service took it back."""
	env = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'PGUSER': 'victim', 'PGPASSWORD': PASSWORD}
	string = re.sub('/[^/?]*[?]', '/shop?', world.string)
	run(world.cleaner, """create schema evil_d; %s; alter function evil_d.evil_f(text) owner to "steward:o:shop"; create table evil_d.evil_t(a int);
		alter schema evil_d owner to "steward:o:shop"; alter table evil_d.evil_t owner to "steward:o:shop";
		grant insert on evil_d.evil_t to "steward:r:shop"; grant select on evil_d.evil_t to "steward:a:shop" """ % DOOR % 'evil_d')
	dump = subprocess.run(['pg_dump', '-n', 'evil_d', '-d', string], capture_output=True, text=True, timeout=120, env=env)
	assert dump.returncode == 0 and 'OWNER TO "steward:o:shop"' in dump.stdout and 'INSERT ON TABLE evil_d.evil_t TO "steward:r:shop"' in dump.stdout, dump
	run(world.cleaner, 'drop schema evil_d cascade')
	played = subprocess.run(['psql', '-Xq', '-d', string], input=dump.stdout, capture_output=True, text=True, timeout=120, env=env)
	assert 'must belong to a user' in played.stderr and 'has the rights that the service gives it' in played.stderr, played.stderr
	assert run(world.cleaner, DOORS) == [(0,)] and world.as_user('reader', 'select count(*) from evil_d.evil_t') == [(0,)], 'all else is there'
	for who, what in (('reader', 'insert into evil_d.evil_t values (1)'), (user_of('dbAdmin'), 'select * from evil_d.evil_t')):
		with pytest.raises(psycopg2.Error, match='permission denied'):
			world.as_user(who, what)
	run(world.cleaner, 'drop schema evil_d cascade')
