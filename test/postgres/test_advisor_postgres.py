"""The advisor on real databases: a slow statement is found with its plan, the index that would help is named, built, and used, and
the suggestion is gone; the threshold reaches running servers; and code in tables runs with no rights but their owner's."""
import contextlib, datetime, glob, json, os, pathlib, re, signal, time

import psycopg2
import pytest

import derive
from client import binary, ok
from databases import shape, until
from place import psql

USER, PASSWORD, TABLE = 'app', 'correct horse 4 battery', 'shop.orders'
ROWS, CUSTOMERS, RUNS = 200000, 20000, 60
LIBRARIES = [pathlib.Path(p) for p in glob.glob('/usr/lib/postgresql/15/lib/*.so')]
COMPLETE = {'pg_qualstats', 'hypopg'} <= {p.stem for p in LIBRARIES}
needs_packages = pytest.mark.skipif(not COMPLETE, reason='pg_qualstats and hypopg are not installed')


class World:
	def __init__(self, place):
		self.place, self.server = place, place.server
		self.cluster = self.path('clusters/shop')
		ok(self.server.post(self.path('clusters'), json={'name': 'shop', **shape(3)}), 201)
		ok(self.server.post(self.path('databaseUsers'), json={
			'username': USER, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.server.group,
			'roles': [{'roleName': 'readWrite', 'databaseName': 'shop'}]}), 201)
		ok(self.server.post(self.path('accessList'), json=[{'ipAddress': '127.0.0.1'}]))
		self.string = place.wait(self.cluster)['connectionStrings']['standard'].replace('/postgres?', '/shop?')
		found = ok(self.server.get(self.path('processes')))['results']
		self.primary, = [p['id'] for p in found if p['typeName'] == 'REPLICA_PRIMARY']
		self.standbys = [p['id'] for p in found if p['typeName'] == 'REPLICA_SECONDARY']
		self.sql('create table orders(id int primary key, customer int not null, placed timestamptz not null, note text)')
		self.sql("insert into orders select n, n %% %d, timestamptz '2026-01-01' + n * interval '1 minute', repeat('x', 40) from "
			 'generate_series(1, %d) n' % (CUSTOMERS, ROWS))
		self.sql('analyze orders')

	def path(self, what):
		return '/groups/%s/%s' % (self.server.group, what)

	def connect(self, process=None):
		string = self.string
		if process:
			host = process.rsplit(':', 1)[0]
			hosts = string.split('://')[1].split('/')[0].split(',')
			at = [h.rsplit(':', 1)[0] for h in hosts].index(host)
			address = re.search('hostaddr=([^&]*)', string).group(1).split(',')[at]
			string = 'postgresql://%s/shop?hostaddr=%s&sslmode=require' % (hosts[at], address)
		c = psycopg2.connect(string, user=USER, password=PASSWORD)
		c.autocommit = True
		return c

	def sql(self, *statements, process=None):
		with contextlib.closing(self.connect(process)) as c, c.cursor() as cursor:
			for s in statements:
				cursor.execute(s)
			return cursor.fetchall() if cursor.description else None

	def ask(self, process=None, runs=RUNS, sleep=0):
		"""The slow query, with another constant each time."""
		self.sql(*('select sum(length(note))%s from orders where customer = %d' % (', pg_sleep(%g)' % sleep if sleep else '', n * 7 % CUSTOMERS)
			   for n in range(runs)), process=process)

	def process(self, what, query='', process=None):
		return ok(self.server.get(self.path('processes/%s/performanceAdvisor/%s?%s' % (process or self.primary, what, query))))

	def advice(self, what, query=''):
		return ok(self.server.get('%s/performanceAdvisor/%s?%s' % (self.cluster, what, query)))['content']

	def suggested(self):
		return self.advice('suggestedIndexes', 'namespaces=' + TABLE)['suggestedIndexes']

	def cost(self, customer=77):
		plan, = self.sql('explain (format json) select sum(length(note)) from orders where customer = %d' % customer)
		return plan[0][0]['Plan']['Total Cost']

	def logged(self):
		lines = ''.join(p.read_text() for p in (self.place.data / 'engine').glob('*/*/log/*.json')).splitlines()
		return [json.loads(line) for line in lines if '"evil' in line]


@pytest.fixture(scope='module')
def world(start_place):
	return World(start_place())


def test_what_is_missing_is_said(world):
	r = world.server.get(world.cluster + '/performanceAdvisor/suggestedIndexes')
	assert ok(r)['content'] == {'shapes': [], 'suggestedIndexes': []}, 'nobody has asked for anything yet'
	module = (pathlib.Path(binary()).parent / 'src/module/steward.so').exists()
	assert ('X-Steward-Missing' in r.headers) == (not (COMPLETE and module)), r.headers
	if not COMPLETE:
		assert re.search('install the package postgresql-15-(pg-qualstats|hypopg)', r.headers['X-Steward-Missing'])


def thresholds(world):
	return {world.sql('show auto_explain.log_min_duration', process=p)[0][0] for p in [world.primary, *world.standbys]}


def test_the_threshold_is_in_force(world):
	"""On every node, without a restart."""
	started = 'select pg_postmaster_start_time()'
	before = [world.sql(started, process=p) for p in [world.primary, *world.standbys]]
	assert thresholds(world) == {'200ms'}
	ok(world.server.delete(world.path('managedSlowMs/disable')), 204)
	until(lambda: thresholds(world) == {'100ms'}, 120)
	ok(world.server.post(world.path('managedSlowMs/enable')), 204)
	until(lambda: thresholds(world) == {'200ms'}, 120)
	assert before == [world.sql(started, process=p) for p in [world.primary, *world.standbys]]


def test_slow_statements(world):
	began = int(time.time() * 1000)
	world.ask(runs=2, sleep=0.3)
	world.ask(runs=1, sleep=0.3, process=world.standbys[0])
	world.sql('insert into orders select -1, 5, now(), pg_sleep(0.3)::text')
	world.sql("do $$ begin raise log E'duration: 9999.000 ms  plan:\\n{\"Query Text\": \"x\", \"Plan\": {\"Node Type\": \"Result\"}}'; end $$")
	found = until(lambda: (lambda l: len(l) >= 3 and l)(world.process(
		'slowQueryLogs', 'since=%d&includeMetrics=true&includeOpType=true&includeReplicaState=true' % began)['slowQueries']), 60)
	assert [q['opType'] for q in found] == ['insert', 'select', 'select'], 'newest first, and nothing that a user raised in their words'
	assert {q['namespace'] for q in found} == {TABLE} and {q['replicaState'] for q in found} == {'PRIMARY'}
	m = found[1]['metrics']
	assert m['docsExamined'] >= ROWS and m['docsReturned'] == 1 and m['operationExecutionTime'] >= 300
	assert not m['hasIndexCoverage'] and not m['hasSort'] and m['fromUserConnection'] and m['keysExamined'] == 0
	line = json.loads(found[1]['line'])
	assert line['user'] == USER and 'where customer = ' in line['message']
	there, = until(lambda: world.process('slowQueryLogs', 'includeReplicaState=true', world.standbys[0])['slowQueries'], 60)
	assert there['replicaState'] == 'SECONDARY' and there['namespace'] == TABLE
	assert world.process('namespaces') == {'namespaces': [{'namespace': TABLE, 'type': 'collection'}]}
	assert world.process('namespaces', process=world.standbys[1]) == {'namespaces': []}
	assert len(world.process('slowQueryLogs', 'nLogs=1')['slowQueries']) == 1
	assert world.process('slowQueryLogs', 'namespaces=shop.none')['slowQueries'] == []


def test_redacted(world):
	ok(world.server.patch(world.cluster, json={'redactClientLogData': True}))
	world.place.wait(world.cluster)
	found = world.process('slowQueryLogs')['slowQueries']
	assert len(found) >= 3 and all(json.loads(q['line'])['message'] == 'redacted' and 'customer' not in q['line'] for q in found)
	ok(world.server.patch(world.cluster, json={'redactClientLogData': False}))
	world.place.wait(world.cluster)


WORSE = '''create function worse() returns void language plpgsql as $$
begin
	raise log 'evil runs as %', current_user;
	raise log 'evil came as %', session_user;
	raise warning 'evil warns';
	begin execute 'set role steward_engine'; exception when others then null; end;
	begin execute 'set session authorization steward_engine'; exception when others then null; end;
	begin execute 'alter role app superuser'; raise log 'evil is a superuser';
	exception when others then raise log 'evil stays what it is: %', sqlerrm; end;
end $$'''
# a function that is said to be immutable may do nothing itself, but call one that may
EVIL = 'create function evil(n int) returns boolean language plpgsql immutable as $$ begin perform public.worse(); return true; end $$'


@needs_packages
def test_code_in_a_table_gains_nothing(world):
	"""The table has an index whose predicate is code: planning runs it."""
	world.sql(WORSE, EVIL, 'create index orders_evil on orders(note) where evil(1)')
	world.ask()

	def said():
		world.suggested()
		return {line['message'] for line in world.logged() if line['user'] == 'steward_engine'}
	found = until(lambda: (lambda m: any(x.startswith('evil stays what it is: must be superuser') for x in m) and m)(said()), 120)
	assert 'evil runs as app' in found and not found & {
		'evil runs as steward_engine', 'evil came as steward_engine', 'evil is a superuser'}, found
	assert world.sql("select rolsuper from pg_roles where rolname = 'app'") == [(False,)]
	assert 'evil' not in world.server.stderr, 'a user writes into the log of the service'
	world.sql('drop index orders_evil', 'drop function evil, worse')


@needs_packages
def test_the_index_is_named_built_and_used(world):
	world.ask()
	one, = until(world.suggested, 120)
	assert one['namespace'] == TABLE and one['index'] == [{'customer': 1}] and one['weight'] > 90
	doc = world.process('suggestedIndexes', 'nExamples=2')
	shape, = [s for s in doc['shapes'] if s['id'] in one['impact']][:1]
	assert shape['namespace'] == TABLE and shape['inefficiencyScore'] > 100 and shape['count'] > 0
	assert {'customer': '='} in shape['operations'][0]['predicates']
	assert not re.search(r'\d{3,}', json.dumps([o['predicates'] for o in shape['operations']])), 'no constant of a user'
	# what the advisor left behind
	assert world.sql("select count(*) from pg_extension where extname <> 'plpgsql'") == [(0,)]
	assert not psql(world.string.replace('/shop?', '/postgres?'), 'select count(*) from steward.pg_qualstats()', USER, PASSWORD)[0]
	before = world.cost()
	body = {'db': 'shop', 'collection': 'orders', 'keys': [{k: '1' for k in c} for c in one['index']]}
	if derive.Api().by_id['createRollingIndex']['handler'] != 'unbuilt':
		ok(world.server.post(world.cluster + '/index', json=body), 202)
	else:
		world.sql('create index concurrently on orders(customer)')
	until(lambda: world.cost() <= before / 10, 120)
	until(lambda: not world.suggested(), 120)


@needs_packages
def test_two_columns(world):
	"""Where one column is not enough the index has both; nothing is suggested that no condition would use."""
	world.sql('create table pairs as select n / 300 as a, n % 300 as b, n as c from generate_series(1, 90000) n', 'analyze pairs')
	world.sql(*('select c from pairs where a = %d and b = %d and c %% 2 = 0' % (n, n * 3) for n in range(RUNS)))
	found = until(lambda: world.advice('suggestedIndexes', 'namespaces=shop.pairs')['suggestedIndexes'], 120)
	assert [sorted(k for c in one['index'] for k in c) for one in found] == [['a', 'b']]


@needs_packages
def test_a_standby_is_heard(world):
	"""Conditions that only a standby has seen are suggested too, and judged on the primary."""
	first = datetime.datetime(2026, 2, 1, tzinfo=datetime.timezone.utc)
	world.sql(*("select id from orders where placed = '%s'" % (first + datetime.timedelta(days=n)).isoformat() for n in range(RUNS)),
		  process=world.standbys[0])
	doc = until(lambda: (lambda d: d['suggestedIndexes'] and d)(world.process('suggestedIndexes', process=world.standbys[0])), 120)
	assert [s['index'] for s in doc['suggestedIndexes']] == [[{'placed': 1}]]
	assert world.process('suggestedIndexes', process=world.standbys[1])['suggestedIndexes'] == []
	assert [s['index'] for s in world.suggested()] == [[{'placed': 1}]]


def indexes(world, table, query=''):
	found = world.advice('suggestedIndexes', 'namespaces=shop.%s%s' % (table, query))['suggestedIndexes']
	return sorted(','.join(k for c in one['index'] for k in c) for one in found)


@needs_packages
def test_values_displace_nothing(world):
	"""Thousands of statements that differ in the values of ANDed conditions are one: what came before them stays known."""
	world.sql('create table parcels as select n as id, n % 3000 as owner, n % 7 as kind, n % 5 as state from generate_series(1, 60000) n',
		  'analyze parcels')
	world.sql(*('select count(*) from parcels where owner = %d' % n for n in range(RUNS)))
	world.sql('create table tiny as select 1 as a, 2 as b')
	world.sql(*(';'.join('select * from tiny where a = %d and b = %d' % (n, k) for k in range(500)) for n in range(16)))
	assert indexes(world, 'parcels') == ['owner']


@needs_packages
def test_joins_and_orders(world):
	"""A column by which rows of another table are found, and one by which the result is sorted."""
	world.sql('create table makers as select n as id, n % 500 as town from generate_series(1, 5000) n', 'analyze makers',
		  'create table parts as select n as id, (n * 7919) % 5000 as maker from generate_series(1, 100000) n', 'analyze parts',
		  'create table visits as select n as id, (n::int8 * 48271) % 100003 as moment, n as page from generate_series(1, 100000) n',
		  'analyze visits')
	for n in range(5):
		world.sql('select count(p.id) from makers m join parts p on p.maker = m.id where m.town = %d' % n,
			  'select page from visits order by moment desc limit %d' % (n + 5))
	assert until(lambda: indexes(world, 'parts'), 60) == ['maker']
	assert indexes(world, 'visits') == ['moment']
	shapes = world.advice('suggestedIndexes', 'namespaces=shop.visits')['shapes']
	assert {'moment': 'sort'} in shapes[0]['operations'][0]['predicates']


@needs_packages
def test_a_statement_is_planned_as_its_user(world):
	"""Who may only read can have planned what only the owner may: the code runs with the sender's rights, not with the table's owner's."""
	ok(world.server.post(world.path('databaseUsers'), json={
		'username': 'guest', 'password': PASSWORD, 'databaseName': 'admin', 'groupId': world.server.group,
		'roles': [{'roleName': 'read', 'databaseName': 'shop'}]}), 201)
	world.sql('create function who() returns int language plpgsql immutable as $$ begin\n'
		  "raise log 'evil plans as %', current_user; return 5; end $$")

	def guest():
		with contextlib.closing(psycopg2.connect(world.string, user='guest', password=PASSWORD)) as c, c.cursor() as cursor:
			for n in range(5):
				cursor.execute('select count(*) from orders where length(note) = who() and id > %d' % n)
		return True

	def tried():
		try:
			return guest()
		except psycopg2.Error:  # not yet in force
			return False
	until(tried, 60)

	def said():
		world.suggested()
		return {line['message'] for line in world.logged() if 'evil plans' in line['message'] and line['user'] == 'steward_engine'}
	assert until(said, 60) == {'evil plans as guest'}
	world.sql('drop function who')


STAY = '''create function stay(n int) returns boolean language plpgsql immutable as $$
begin
	if current_setting('application_name') = 'steward' then
		perform set_config('client_connection_check_interval', '0', false);
		loop begin perform pg_sleep(3600); exception when query_canceled then null; end; end loop;
	end if;
	return true;
end $$'''


@needs_packages
def test_code_that_stays_is_put_out(world):
	"""A predicate that catches the timeout would run on after its user is gone."""
	world.sql(STAY, 'create index orders_stay on orders(note) where stay(1)')
	answer = world.server.get(world.cluster + '/performanceAdvisor/suggestedIndexes')
	assert answer.status_code == 409 or 'statements of 1 users are left out' in answer.headers['X-Steward-Missing'], 'others have theirs'
	until(lambda: world.sql("select count(*) from pg_stat_activity where datname = 'shop' and usename = 'steward_engine'") == [(0,)], 60)
	world.sql('drop index orders_stay', 'drop function stay')


def test_indexes_to_drop(world):
	world.sql('create index orders_wide on orders(note, placed)', 'create index orders_narrow on orders(note)',
		  'create index orders_down on orders(note desc)', 'create unique index orders_one on orders(note, id)')
	world.sql('create table empty(a int)', 'insert into empty values (1), (1)')
	with pytest.raises(psycopg2.Error):
		world.sql('create unique index concurrently empty_broken on empty(a)')
	found = world.advice('dropIndexSuggestions')
	assert [i['name'] for i in found['redundantIndexes']] == ['orders_narrow'], 'neither the other direction nor what is unique'
	one, = found['redundantIndexes']
	assert one['namespace'] == TABLE and one['index'] == [{'note': 1}] and one['sizeBytes'] > 8192 and one['shards'] == []
	assert [i['name'] for i in found['hiddenIndexes']] == ['empty_broken'] and found['unusedIndexes'] == []


def test_schema_advice(world):
	world.sql('create table lists(id int, tags int[], name text)', 'create table wide(id int, body bytea)',
		  "insert into lists select n, array(select generate_series(1, 1500)), 'name ' || n from generate_series(1, 400) n",
		  "alter table wide alter body set storage external",
		  "insert into wide select n, decode(repeat('ab', 40000), 'hex') from generate_series(1, 120) n", 'analyze lists', 'analyze wide')
	found = {r['recommendation']: r['affectedNamespaces'] for r in world.advice('schemaAdvice')['recommendations']}
	assert [n['namespace'] for n in found['AVOID_UNBOUNDED_ARRAY']] == ['shop.lists']
	assert [n['namespace'] for n in found['REDUCE_DOCUMENT_SIZE']] == ['shop.wide']
	assert set(found) == {'AVOID_UNBOUNDED_ARRAY', 'REDUCE_DOCUMENT_SIZE'}
	if COMPLETE:
		world.sql(*["select count(*) from lists where name ilike 'NAME%'"] * RUNS)
		found = {r['recommendation']: r['affectedNamespaces'] for r in world.advice('schemaAdvice')['recommendations']}
		assert [n['namespace'] for n in found['OPTIMIZE_CASE_INSENSITIVE_REGEX_QUERIES']] == ['shop.lists']


def survives(world):
	"""What suggestions rest on outlives servers that crash, and with them all that they have counted, and the service."""
	kept = lambda: world.server.rows("SELECT count(*) FROM doc WHERE kind = 'advice_evidence'")[0][0]
	world.sql(*('select count(*) from parcels where owner = %d' % n for n in range(RUNS)))
	assert indexes(world, 'parcels') == ['owner']
	world.server.advance(600)
	until(kept, 60)
	at = world.sql('select pg_postmaster_start_time()')
	for slot in (world.place.data / 'engine').glob('*/*/data/postmaster.pid'):
		os.kill(int(slot.read_text().split()[0]), signal.SIGKILL)

	def back():
		try:
			return world.sql('select pg_postmaster_start_time()') != at
		except psycopg2.Error:
			return False
	until(back, 120)
	world.place.server.kill()
	world.place.start()
	world.place.wait(world.cluster)
	world.server = world.place.server
	found = until(lambda: (lambda r: r.status_code == 200 and r)(world.server.get(
		world.cluster + '/performanceAdvisor/suggestedIndexes?namespaces=shop.parcels')), 60)
	assert [one['index'] for one in found.json()['content']['suggestedIndexes']] == [[{'owner': 1}]]
	assert indexes(world, 'parcels', '&since=1199145600000&until=1199145700000') == [], 'a period without it'


def test_unused_after_a_week(world):
	"""By the service's clock, which goes a week on; the databases go on as they are."""
	place = world.place
	place.server.stop()
	place.clock = 'virtual'
	place.start()
	place.wait(world.cluster)
	place.server.advance(8 * 86400)
	world.server = place.server
	names = {i['name'] for i in world.advice('dropIndexSuggestions')['unusedIndexes']}
	if COMPLETE:
		survives(world)
	assert {'orders_wide', 'orders_down'} <= names and not names & {'orders_pkey', 'orders_one', 'orders_narrow'}
