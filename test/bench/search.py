"""Search indexes over generated text: how long a build takes beside a plain CREATE INDEX ... USING gin over the same words, what the
index costs whoever writes, and how much sooner a query answers than a scan. STEWARD_SEARCH_ROWS says how many rows (100,000)."""
import os, statistics, tempfile, time

import psycopg2

from engine import PASSWORD, USER, Service, programs, site
from relay import pgbench
from servers import Trouble, wait_for
from tools import Progress, ratio

BUILD_WANTED, WRITES_WANTED, QUERY_WANTED = 3.0, 0.7, 50
CLIENTS = 2
QUICK_ROWS, ROWS = 20000, 100000
WORDS = "to_tsvector('simple', left(body, 100000))"
# Words as they are in texts: few are frequent, most are rare.
FILL = """create table notes(id bigint generated always as identity, body text, price int);
insert into notes(body, price) select string_agg('w' || floor(20000 * random() ^ 3)::int, ' '), n %% 1000 from generate_series(1, %d) n, generate_series(1, 30) group by n;
create table bare(like notes including identity); create table drafts as select row_number() over () as n, body, price from notes limit 5000;
create unique index on drafts(n); vacuum analyze"""
WRITE = '\\set n random(1, 5000)\ninsert into %s(body, price) select body, price from drafts where n = :n;\n'


class Searched(Service):
	def prepare(self, rows):
		self.create('bench', 1)
		self.connect('bench')
		self.string = self.server.api('GET', self.group + '/clusters/bench').json()['connectionStrings']['standard']
		self.connection = psycopg2.connect(self.string, user=USER, password=PASSWORD)
		self.connection.autocommit = True
		for statement in (FILL % rows).split(';'):
			self.ask(statement)

	def ask(self, statement, *args):
		with self.connection.cursor() as cursor:
			cursor.execute(statement, args or None)
			return cursor.fetchall() if cursor.description else None

	def took(self, *statement):
		began = time.perf_counter()
		self.ask(*statement)
		return time.perf_counter() - began

	def build(self):
		"""Seconds from the call until queries are answered."""
		path = self.group + '/clusters/bench/search/indexes'
		began = time.perf_counter()
		made = self.server.api('POST', path, json={
			'name': 'notes', 'database': 'postgres', 'collectionName': 'notes', 'type': 'search',
			'definition': {'mappings': {'fields': {'body': {'type': 'string'}, 'price': {'type': 'number'}}}}}).json()
		def ready():
			index = self.server.api('GET', '%s/%s' % (path, made['indexID'])).json()
			if index['status'] == 'FAILED':
				raise Trouble('the index could not be built: %s' % index['statusDetail'])
			return index['status'] == 'READY'
		wait_for('the index', ready, 1800)
		return time.perf_counter() - began


def builds(service):
	plain = service.took('create index plain on notes using gin (%s)' % WORDS)
	service.ask('drop index plain')
	return {'plainSeconds': round(plain, 2), 'seconds': round(service.build(), 2)}


def writes(service, rounds, seconds):
	"""Rates of inserts into the table and into one like it without an index, by turns."""
	found = {'notes': [], 'bare': []}
	with tempfile.TemporaryDirectory() as folder:
		os.chmod(folder, 0o755)
		for table in found:
			with open('%s/%s.sql' % (folder, table), 'w') as f:
				f.write(WRITE % table)
		for i in range(rounds):
			for table in sorted(found, reverse=i % 2 == 0):
				said = pgbench(service.string, '-n', '-c', str(CLIENTS), '-j', '2', '-T', str(seconds), '-f', '%s/%s.sql' % (folder, table))
				found[table].append(float(said.partition('tps = ')[2].split()[0]))
	return {'rates': found, 'ratio': statistics.median(ratio(a, b) for a, b in zip(found['notes'], found['bare']))}


def queries(service, rounds):
	"""The same words by the function, and by reading every row."""
	service.ask('vacuum analyze notes')
	found, bar = {'query': [], 'scan': []}, Progress('queries')
	for i in range(rounds):
		word = 'w%d' % (3000 + 211 * i)
		found['query'].append(service.took('select document from steward_search.query(%s, %s)', 'notes', '{"text": {"query": "%s", "path": "body"}}' % word))
		service.ask('set enable_bitmapscan = off')
		found['scan'].append(service.took('select * from notes where %s @@ %%s::tsquery order by ts_rank(%s, %%s::tsquery) desc limit 10' % (WORDS, WORDS), word, word))
		service.ask('reset enable_bitmapscan')
		bar.show((i + 1) / rounds)
	bar.end()
	middle = {name: statistics.median(times) for name, times in found.items()}
	return {'seconds': {name: round(s, 5) for name, s in middle.items()}, 'times': ratio(middle['scan'], middle['query'])}


def figure_search(bench, pair):
	programs()
	rows = int(os.environ.get('STEWARD_SEARCH_ROWS') or (QUICK_ROWS if bench.quick else ROWS))
	with site() as folder:
		service = Searched(bench, folder)
		try:
			service.prepare(rows)
			result = {'rows': rows, 'build': builds(service), 'queries': queries(service, 3 if bench.quick else 9),
				  'writes': writes(service, 3 if bench.quick else 7, 2 if bench.quick else 5)}
			service.connection.close()
			service.remove_all()
		finally:
			service.server.stop()
	b, q, w = result['build'], result['queries'], result['writes']
	result['wanted'] = {'buildTimesAtMost': BUILD_WANTED, 'writesAtLeast': WRITES_WANTED, 'queryTimesAtLeast': QUERY_WANTED}
	return result, [
		('a search index over %d rows' % rows, '%.1f s (plain GIN: %.1f s)' % (b['seconds'], b['plainSeconds']), 'at most %.0f times' % BUILD_WANTED),
		('inserts with a search index', '%.2f of the rate without' % w['ratio'], 'at least %.1f' % WRITES_WANTED),
		('a search, beside a scan', '%.1f ms and %.0f ms: %.0f times' % (1000 * q['seconds']['query'], 1000 * q['seconds']['scan'], q['times']),
		 'at least %d times' % QUERY_WANTED)]
