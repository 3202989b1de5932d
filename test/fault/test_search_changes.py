"""Search indexes that are changed again and again under write load while the service, the primary or the builder's session is killed in the
middle of each build, or while vectors are being divided for one: they answer all the time, end as READY or FAILED, and leave nothing behind in any
database.

STEWARD_SEARCH_ROUNDS says how many changes and kills (3: one of each kind; 20 is what is promised)."""
import contextlib, json, os, random, signal, threading, time

import psycopg2, psycopg2.errors, pytest

import databases
from client import ok, until
from databases import PASSWORD, USER, allow, shape

ROUNDS, ROWS, WIDTH = int(os.environ.get('STEWARD_SEARCH_ROUNDS', '3')), 8000, 8
WORDS = ['amber', 'basin', 'cedar', 'delta']
pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')
string = lambda *fields: {'mappings': {'fields': {f: {'type': 'string'} for f in fields}}}
vector = lambda path, similarity, quantization: {'fields': [{'type': 'vector', 'path': path, 'numDimensions': WIDTH, 'similarity': similarity,
							       'quantization': quantization}]}
STEPS = {'built': 'create index concurrently', 'divided': 'select steward_vectors.make'}
DEFINED = {'words': [string('word'), string('word', 'body'), string('body', 'word', 'more')],
	   'near': [vector('v', 'cosine', 'none'), vector('w', 'euclidean', 'binary'), vector('v', 'dotProduct', 'scalar')]}
QUERIES = {'words': "select count(*) from steward_search.query('words', '{\"text\": {\"query\": \"amber\", \"path\": \"word\"}}')",
	   'near': "select count(*) from steward_search.vector('near', '{1,2,3,4,5,6,7,8}')"}
ROW = "(select array_agg(random() * 2 - 1) from generate_series(1, 8) where i > 0)"
LEFT = ("select relname from pg_class where relkind = 'i' and relname ~ '^steward_(build|search)_' union all select 'invalid ' || indexrelid::regclass from "
	"pg_index where not indisvalid")


def is_of_the_connection(e):
	"""What befalls clients when a server ends, and in the moment in which another takes its place."""
	return isinstance(e, (psycopg2.OperationalError, psycopg2.InterfaceError)) or (e.pgcode or '57')[:2] in ('57', '08') or e.pgcode == '25006'


class Client(threading.Thread):
	"""Does something again and again, wherever the primary is."""

	def __init__(self, cluster, act):
		super().__init__(daemon=True)
		self.string, self.act, self.stopping, self.done, self.faults = ok(cluster.server.get(cluster.path))['connectionStrings']['standard'], act, False, 0, []
		self.start()

	def run(self):
		while not self.stopping:
			try:
				c = psycopg2.connect(self.string, user=USER, password=PASSWORD, connect_timeout=2)
				c.autocommit = True
				with contextlib.closing(c), c.cursor() as cursor:
					while not self.stopping:
						self.act(cursor)
						self.done += 1
			except psycopg2.Error as e:
				if not is_of_the_connection(e):
					self.faults.append('%s %s' % (e.pgcode, e))
				time.sleep(0.01)

	def end(self):
		self.stopping = True
		self.join(60)
		assert not self.is_alive() and self.done and not self.faults, self.faults[:5]


def write(cursor):
	i = random.randint(1, 2 * ROWS)
	cursor.execute(random.choice([
		'insert into notes select %d, %r, %r, null, %s, %s from (select %d i) x on conflict (id) do nothing' % (i, random.choice(WORDS), random.choice(WORDS), ROW, ROW, i),
		'update notes set word = %r, v = (select %s from (select 1 i) x) where id = %d' % (random.choice(WORDS), ROW, i),
		'update notes set more = %r where id = %d' % (random.choice(WORDS), i),
		'delete from notes where id = %d' % i]))
	time.sleep(0.002)


def search(cursor):
	"""A query whose index is replaced while it runs is told to ask again, once."""
	for name, query in QUERIES.items():
		try:
			cursor.execute(query)
		except psycopg2.errors.ObjectNotInPrerequisiteState as e:
			if 'just built again' not in str(e):
				raise
			cursor.execute(query)
		assert cursor.fetchone()[0] > 0


class Changes:
	def __init__(self, site):
		self.site = site
		allow(site.start())
		self.cluster = site.cluster('c', **shape(3)).settled()
		self.cluster.ask('create table notes(id int primary key, word text, body text, more text, v real[], w real[])')
		self.cluster.ask("insert into notes select i, (array%s)[1 + i %% 4], (array%s)[1 + i %% 3], null, %s, %s from generate_series(1, %d) i" % (WORDS, WORDS, ROW, ROW, ROWS))
		self.cluster.ask('create database beside')
		self.base, self.ids, self.at = self.cluster.path + '/search/indexes', {}, {'words': 0, 'near': 0}
		for name, kind in (('words', 'search'), ('near', 'vectorSearch')):
			self.ids[name] = ok(site.server.post(self.base, json={'name': name, 'database': 'postgres', 'collectionName': 'notes', 'type': kind,
									     'definition': DEFINED[name][0]}), 201)['indexID']
			self.ended(name)
		self.functions = self.engine_ask(FUNCTIONS)

	def get(self, name):
		return ok(self.site.server.get('%s/%s' % (self.base, self.ids[name])))

	def ended(self, name):
		def look():
			document = self.get(name)
			return document['status'] in ('READY', 'FAILED') and document
		return until(look, 240, 'the end of the build of ' + name)

	def engine_connect(self, database='postgres'):
		"""As the superuser on the primary."""
		n = self.cluster.nodes()[self.cluster.primary()]
		conf = (self.cluster.directory(n['name']).parent / 'conf' / 'postgresql.conf').read_text()
		run = next(l for l in conf.split('\n') if l.startswith('unix_socket_directories')).split("'")[1]
		return psycopg2.connect(host=run, port=n['port'], user='steward_engine', dbname=database, connect_timeout=5)

	def engine_ask(self, sql, database='postgres'):
		"""None: there is no primary now."""
		try:
			with contextlib.closing(self.engine_connect(database)) as c, c.cursor() as cursor:
				c.autocommit = True
				cursor.execute(sql)
				return cursor.fetchall()
		except psycopg2.Error:
			return None

	def builder(self, step='(select steward_vectors.make|create index concurrently)'):
		return self.engine_ask("select pid from pg_stat_activity where usename = 'steward_engine' and state = 'active' and query ~ '^%s'" % step)

	@contextlib.contextmanager
	def held(self, sql, connect):
		"""Until it is let go, or its server ends."""
		holder = connect()
		holder.autocommit = False
		try:
			holder.cursor().execute(sql)
			yield holder
		finally:
			with contextlib.suppress(psycopg2.Error):
				holder.rollback()
			holder.close()

	def change(self, name, kill, step):
		"""A transaction that writes keeps the build waiting, so that the kill is in the middle of it. In the step before, what vectors are divided by
		cannot be written down; in half of the cases it is let go, and the kill comes while it is computed, or just afterwards."""
		self.at[name] += 1
		with contextlib.ExitStack() as all_of:
			all_of.enter_context(self.held('insert into notes values (%d)' % -self.at[name], self.cluster.connect))
			lists = all_of.enter_context(self.held('lock table steward_vectors.lists in share mode', self.engine_connect)) if step == 'divided' else None
			ok(self.site.server.patch('%s/%s' % (self.base, self.ids[name]), json={'definition': DEFINED[name][self.at[name] % 3]}))
			until(lambda: self.builder(STEPS[step]), 120, 'the build of ' + name)
			assert self.get(name)['queryable'] is True
			if lists and random.random() < 0.5:
				lists.rollback()
			time.sleep(random.random() / 2)
			kill()
		document = self.ended(name)
		assert document['queryable'] is True, document
		return document['status']

	def kill_service(self):
		self.site.kill()
		self.site.start()

	def kill_primary(self):
		first = self.cluster.primary()
		os.kill(self.cluster.pid(first), signal.SIGKILL)
		until(lambda: self.cluster.primary() != first, 120, 'another primary')
		self.cluster.whole(3)

	def kill_builder(self):
		pids = until(self.builder, 60, 'the session that builds')
		assert self.engine_ask('select pg_terminate_backend(%d, 5000)' % pids[0][0]) == [(True,)]

	def left(self):
		"""What builds have made, in all databases, beside what answers."""
		found = []
		for database, in self.engine_ask('select datname from pg_database where datallowconn and not datistemplate') or [('postgres',)]:
			names = self.engine_ask(LEFT, database)
			found += ['%s: %s' % (database, name) for name, in ([('no answer',)] if names is None else names)]
			for name, in self.engine_ask("select to_regclass('steward_vectors.lists')::text", database) or []:
				found += ['%s: divided %s' % (database, v) for v, in (self.engine_ask('select version from ' + name, database) if name else [])]
		return sorted(found)


FUNCTIONS = ("select n.nspname, p.proname, pg_get_function_identity_arguments(p.oid) from pg_proc p join pg_namespace n on n.oid = pronamespace "
	     "where nspname ~ '^steward' or nspname = 'public' order by 1, 2, 3")


def test_changes_and_kills(site):
	s = Changes(site('--index-wait', '30'))
	clients = [Client(s.cluster, write), Client(s.cluster, write), Client(s.cluster, search)]
	kills, counts = [s.kill_service, s.kill_primary, s.kill_builder], {}
	for i in range(ROUNDS):
		name, kill = ('near', 'words')[i % 2], kills[(i + i // 6) % 3]  # over six rounds each index meets each kill
		step = 'divided' if name == 'near' and i // 6 % 2 == 0 else 'built'  # over twelve at both steps
		status = s.change(name, kill, step)
		counts[kill.__name__, step, status] = counts.get((kill.__name__, step, status), 0) + 1
		searched = clients[-1].done
		until(lambda: clients[-1].done > searched, 60, 'an answer after a kill')
	print('\n%s' % ', '.join('%s while it is %s: %d %s' % (k, step, n, status) for (k, step, status), n in sorted(counts.items())), end='')
	for c in clients:
		c.end()
	builds = lambda: dict(s.engine_ask('select name, build from steward_search.indexes') or [])
	def tidy():
		b = builds()
		return len(b) == 2 and s.left() == sorted(['postgres: steward_search_' + b['near'], 'postgres: steward_search_' + b['words'], 'postgres: divided ' + b['near']])
	try:
		until(tidy, 150, 'nothing beside what answers')
	except AssertionError as e:
		raise AssertionError('%s: %s, %s' % (e, builds(), s.left()))
	assert s.engine_ask(FUNCTIONS) == s.functions
	assert s.engine_ask("select string_agg(attname, ' ' order by attnum) from pg_attribute where attrelid = 'notes'::regclass and attnum > 0") == [('id word body more v w',)]
	assert s.cluster.ask("select steward_search.count('words', '{\"text\": {\"query\": \"amber\", \"path\": \"word\"}}')") == s.cluster.ask("select count(*) from notes where word = 'amber'")
	everything = "select array_agg(document->>'id' order by document->>'id') from steward_search.vector('near', '{1,2,3,4,5,6,7,8}', '{\"limit\": 10000, %s}')"
	assert s.cluster.ask(everything % '"numCandidates": 10000') == s.cluster.ask(everything % '"exact": true')
	for name in s.ids:
		assert s.site.server.delete('%s/%s' % (s.base, s.ids[name])).status_code == 204
	until(lambda: s.left() == [] and builds() == {}, 150, 'the end of both')
	s.cluster.delete()
	s.cluster.deleted()
