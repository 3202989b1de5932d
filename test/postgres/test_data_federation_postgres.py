"""Federated database instances through the API, over a real cluster: who reads what, what a change of the configuration, a limit, a user's
end and a new start of the service come to at the endpoint, and that nothing is left of an instance that is gone."""
import contextlib, re, subprocess, time

import psycopg2
import pytest

from client import binary, environment, in_force, ok, refused, until
from databases import working_in
from place import psql
from test_data_federation import base, lines, storage, table
from test_measurements_postgres import MODULE, PASSWORD, USER, World

STORE = {'name': 'live', 'provider': 'svc', 'clusterName': 'sold'}
ODD = 'o\'ne "two"'  # a name with all kinds of quotes
ROWS, WIDTH = 2000, 100

pytestmark = pytest.mark.skipif(not MODULE.exists(), reason='the node module is not built')


def source(collection, **more):
	return {'storeName': 'live', 'database': 'postgres', 'collection': collection, **more}


TABLES = [table(source('orders')), table(source('secrets'), name='secrets')]
VIEWS = [{'name': 'few', 'source': 'orders', 'pipeline': '[{"$match": {"id": {"$lte": 3}}}, {"$sort": {"id": -1}}]'}]


class Federated(World):
	def __init__(self, place, folder):
		super().__init__(place, 'sold', nodes=1)
		self.group, self.ca, self.name = self.server.group, folder / 'ca.crt', 'reports'
		self.ca.write_bytes(self.server.anonymous.get('%s/ca/%s' % (self.server.base_url, self.group)).content)
		for name, grants in ((ODD, ('read@all', 'read@postgres')), ('outsider', ('read@all',)), ('stranger', ('read@elsewhere',))):
			self.user(name, *grants)
		with contextlib.closing(self.connect()) as c, c.cursor() as cursor:
			cursor.execute("create table orders (id bigint primary key, client int, word text); insert into orders select n, n %% 10, repeat('x', %d) from "
				"generate_series(1, %d) n; create table secrets (word text); insert into secrets values ('hidden')" % (WIDTH, ROWS))
		self.made = ok(self.server.post(base(self.group), json={'name': self.name, 'storage': storage(*TABLES, stores=[STORE], views=VIEWS)}))
		self.found = self.settled()

	def user(self, name, *grants, **more):
		roles = [dict(zip(('roleName', 'databaseName'), g.split('@'))) for g in grants]
		in_force(self.server, self.server.post(self.path('databaseUsers'), json={
			'username': name, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.group, 'roles': roles, **more}), 201)

	def settled(self):
		"""The document, once it is in force and nothing is wrong with it."""
		def whole():
			r = self.server.get(base(self.group, self.name))
			return ok(r)['state'] == 'ACTIVE' and 'X-Steward-Reason' not in r.headers and r
		r = until(whole, 60, 'the instance')
		self.address, self.port = re.fullmatch(r'address=(\S+), port=(\d+)', r.headers['X-Steward-Endpoint']).groups()
		return r.json()

	def there(self, database='all'):
		"""By the name that the answer has, which its certificate must be for."""
		return 'postgresql://%s:%s/%s?hostaddr=%s&sslmode=verify-full&sslrootcert=%s' % (
			self.found['hostnames'][0], self.port, database, self.address, self.ca)

	def ask(self, text, user=ODD, database='all'):
		with contextlib.closing(psycopg2.connect(self.there(database), user=user, password=PASSWORD, connect_timeout=10)) as c:
			c.autocommit = True
			with c.cursor() as cursor:
				cursor.execute(text)
				return cursor.fetchall() if cursor.description else None

	def fails(self, text, user=ODD, database='all'):
		with pytest.raises(psycopg2.Error) as failed:
			self.ask(text, user, database)
		return str(failed.value).strip()

	def said(self, text, user=ODD):
		return psql(self.there(), text, user, PASSWORD)[1]

	def answers(self, text, wanted, **more):
		def look():
			with contextlib.suppress(psycopg2.Error):
				return self.ask(text, **more) == wanted
		until(look, 60, text)

	def change(self, *tables, **more):
		ok(self.server.patch(base(self.group, self.name) + '?skipRoleValidation=true', json={'storage': storage(*tables, stores=[STORE], **more)}))

	def folder(self):
		return self.place.data / 'engine' / self.made_id()

	def made_id(self):
		return re.match('fdb-([0-9a-f]{24})', self.found['hostnames'][0]).group(1)


@pytest.fixture(scope='module')
def world(start_place, tmp_path_factory):
	return Federated(start_place(), tmp_path_factory.mktemp('ca'))


def test_rows_of_a_cluster(world):
	assert world.ask('select count(*), sum(id) from orders') == [(ROWS, ROWS * (ROWS + 1) // 2)]
	assert world.ask('select id from few') == [(3,), (2,), (1,)] and world.ask('select word from secrets', user=USER) == [('hidden',)]
	# As anybody would, with psql.
	assert psql(world.there(), 'select session_user, count(*) from orders', ODD, PASSWORD) == (True, '%s|%d' % (ODD, ROWS))
	assert psql(world.there().replace('verify-full', 'disable'), 'select 1', ODD, PASSWORD)[0] is False
	assert 'password authentication failed' in psql(world.there(), 'select 1', ODD, 'wrong')[1]
	host, rest = world.there().split('@')[0].split('://')[1].split(':', 1)
	assert 'does not match host name' in psql('postgresql://other.example:' + rest, 'select 1', ODD, PASSWORD)[1]


def test_who_may_not(world):
	"""By the endpoint's names, and by the cluster's own rights."""
	assert 'permission denied' in world.fails('select * from orders', user='stranger')
	assert 'permission denied for' in world.fails('select * from orders', user='outsider')
	with contextlib.closing(world.connect()) as c, c.cursor() as cursor:
		cursor.execute('revoke select on secrets from "steward:r:postgres"')
	assert 'permission denied for table secrets' in world.fails('select * from secrets')
	assert world.ask('select count(*) from orders') == [(ROWS,)]
	# Who gets into the instance alone is nobody at the cluster.
	world.user('visitor', 'readAnyDatabase@admin', scopes=[{'name': world.name, 'type': 'DATA_LAKE'}])
	until(lambda: 'could not connect' in world.said('select * from orders', user='visitor'), 30, 'it is known to the tables')


@pytest.mark.parametrize('statement', ["insert into orders (id) values (0)", 'update orders set client = 0', 'delete from orders', 'truncate orders', 'create table mine (n int)',
	'drop foreign table orders', 'alter foreign table orders options (set table_name \'secrets\')', 'insert into few (id) values (0)', "copy orders to program 'id'"])
def test_nothing_is_written(world, statement):
	for user in (USER, ODD):
		assert any(w in world.fails(statement, user=user) for w in ('permission denied', 'must be owner', 'must be superuser', 'cannot'))
	assert world.ask('select count(*), sum(client) from orders', user=USER) == [(ROWS, ROWS // 10 * 45)]


@pytest.mark.parametrize('store', [
	{'provider': 's3', 'bucket': 'some-bucket', 'region': 'US_EAST_1', 'public': True},
	{'provider': 'azure', 'containerName': 'box', 'serviceURL': 'https://acct.blob.core.windows.net', 'public': True},
	{'provider': 'gcs', 'bucket': 'some-bucket', 'public': True}, {'provider': 'http', 'urls': ['https://files.example/a.json']}, {'provider': 'dls:aws'}],
	ids=lambda s: s['provider'])
def test_other_kinds_of_stores(world, store):
	wish = {'name': 'others', 'storage': {'stores': [{'name': 'other', **store}], 'databases': []}}
	assert 'does not read' in refused(world.server.post(base(world.group), json=wish), 400, 'VALIDATION_ERROR', 'storage.stores[0].provider')['detail']


def test_a_change_is_in_force(world):
	"""Names that come, names that go, and databases of any name: also the one that every server has."""
	world.change(table(source('orders'), name='bought'), table(source('secrets'), name="it's a $$"))
	world.answers('select count(*) from bought', [(ROWS,)])
	world.settled()
	assert 'does not exist' in world.fails('select * from orders') and 'does not exist' in world.fails('select * from few')
	assert world.ask('select * from "it\'s a $$"', user=USER) == [('hidden',)]
	every = storage(table(source('orders')), stores=[STORE])
	every['databases'][0]['name'] = 'postgres'
	ok(world.server.patch(base(world.group, world.name) + '?skipRoleValidation=true', json={'storage': every}))
	world.answers('select count(*) from orders', [(ROWS,)], database='postgres')
	world.change(*TABLES, views=VIEWS)
	world.answers('select count(*) from orders', [(ROWS,)])
	world.settled()
	assert 'does not exist' in world.fails('select * from orders', user=USER, database='postgres')


def test_limits_and_figures(world):
	def used(span):
		return limit_of(world, span)['currentUsage']

	def bound(span, value, **more):
		return ok(world.server.patch(base(world.group, world.name, '/limits/bytesProcessed.' + span), json={'value': value, **more}))

	bound('daily', 1 << 40)
	bound('query', 1 << 40)
	before = used('daily')
	assert len(world.ask('select word from orders where id <= 1000')) == 1000
	read = used('daily') - before
	assert 1000 * WIDTH <= read <= 1000 * (WIDTH + 8)
	assert used('query') >= read
	# A query that is over its limit ends, with a sentence.
	bound('query', read // 2)
	until(lambda: 'the limit of %d bytes for a query is reached' % (read // 2) in world.said('select word from orders where id <= 1000'), 30, 'the limit')
	assert len(world.ask('select word from orders where id <= 100')) == 100
	assert world.server.delete(base(world.group, world.name, '/limits/bytesProcessed.query')).status_code == 204
	until(lambda: 'limit' not in world.said('select word from orders where id <= 1000'), 30, 'no limit')
	# So is every one, when the day is used up. While one limit is in force until the other is, none is without.
	bound('daily', 1)
	until(lambda: 'the limit of 1 bytes for a day is reached' in world.said('select id from orders where id = 1'), 30, 'the limit of the day')
	most = used('daily') + read
	bound('daily', most, overrunPolicy='BLOCK_AND_KILL')
	until(lambda: 'the limit of %d bytes for a day is reached' % most in world.said('select word from orders'), 30, 'the next one')
	assert 'for a day is reached' in world.fails('select id from orders where id = 1')
	kept = limit_of(world, 'daily')
	assert kept['value'] <= kept['currentUsage'] <= kept['value'] + WIDTH + 8
	assert world.server.delete(base(world.group, world.name, '/limits/bytesProcessed.daily')).status_code == 204
	world.answers('select count(*) from orders', [(ROWS,)])


def limit_of(world, span):
	return ok(world.server.get(base(world.group, world.name, '/limits/bytesProcessed.' + span)))


def test_the_query_log(world):
	before = len(lines(world.server, world.group, world.name))
	assert len(world.ask("select id, word from orders where word <> 'nobody''s to read' and id <= 7")) == 7
	assert 'division by zero' in world.fails('select 1 / (id - id) + random() from orders', user=USER)
	first, second = lines(world.server, world.group, world.name)[before:]
	assert first['username'] == ODD and first['database'] == 'all' and first['client'].startswith('127.') and first['rows'] == 7
	assert first['statement'] == 'select id, word from orders where word <> ? and id <= ?' and not first['limited'] and 'error' not in first
	assert 7 * WIDTH < first['bytesProcessed'] < 7 * (WIDTH + 32) and first['durationMillis'] >= 0
	assert second['username'] == USER and second['error'] == 'division by zero'
	ago = int(time.time()) - 3600
	assert lines(world.server, world.group, world.name, '?startDate=%d&endDate=%d' % (ago - 60, ago)) == []


def test_who_is_deleted_is_out(world):
	world.user('leaver', 'readAnyDatabase@admin')
	world.answers('select count(*) from orders', [(ROWS,)], user='leaver')
	with contextlib.closing(psycopg2.connect(world.there(), user='leaver', password=PASSWORD)) as c:
		in_force(world.server, world.server.delete(world.path('databaseUsers/admin/leaver')), 204)
		until(lambda: 'password authentication failed' in world.said('select 1', user='leaver'), 60, 'no way in')
		with pytest.raises(psycopg2.Error), c.cursor() as cursor:
			cursor.execute('select count(*) from orders')


def test_steward_connect(world, tmp_path):
	env = environment({'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'XDG_CACHE_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': str(world.server.data_dir), 'PSQLRC': '/dev/null'})
	done = subprocess.run([binary(), 'connect', world.name, '--federation', '--database', 'all', '-c', "select 'there are ' || count(*) from orders"], capture_output=True, text=True, timeout=60, env=env)
	assert done.returncode == 0 and 'there are %d' % ROWS in done.stdout, done
	assert not [u for u in ok(world.server.get(world.path('databaseUsers')))['results'] if u['username'].startswith('connect-')]


def test_a_new_start(world):
	world.server.kill()
	world.server = world.place.start()
	world.answers('select count(*) from orders', [(ROWS,)])
	assert len(lines(world.server, world.group, world.name)) > 2
	world.server.stop()
	world.server = world.place.start()
	world.settled()
	world.answers('select count(*) from orders', [(ROWS,)])
	world.change(table(source('secrets'), name='last'))
	world.answers('select word from last', [('hidden',)], user=USER)


def test_nothing_is_left(world):
	folder = world.folder()
	assert folder.is_dir() and list(working_in(folder))
	assert world.server.delete(base(world.group, world.name)).status_code == 204
	until(lambda: world.server.get(base(world.group, world.name)).status_code == 404, 60, 'its end')
	assert not folder.exists() and not list(working_in(folder)) and not list((world.place.data / 'engine/federation').glob('*'))
	with contextlib.closing(world.connect()) as c, c.cursor() as cursor:
		cursor.execute("select count(*) from pg_roles where rolname ~ '^steward_as_'")
		assert cursor.fetchone() == (0,)
	with pytest.raises(psycopg2.OperationalError):
		world.ask('select 1')
