"""Searches for the nearest vectors: how many of the ten nearest are found, and how much sooner than by an exact scan, on real databases.
Vectors have the numbers of a few hidden ones, mixed, and some noise: as those of a model they fill a small part of their space."""
import math, random, statistics, struct, subprocess, time

from engine import PASSWORD, USER, Service, psql, site
from servers import Trouble, wait_for
from tools import Progress, ratio

RECALL_WANTED, TIMES_WANTED, HIDDEN, QUERIES = 0.95, 20, 16, 40
SIZES = {False: ((1000000, 128), (50000, 1536)), True: ((100000, 128), (5000, 1536))}


class Vectors:
	def __init__(self, width, seed=7):
		self.r, self.width = random.Random(seed), width
		self.mix = [[self.r.gauss(0, 1 / math.sqrt(HIDDEN)) for _ in range(HIDDEN)] for _ in range(width)]

	def draw(self):
		hidden, rand = [self.r.gauss(0, 1) for _ in range(HIDDEN)], self.r.random
		return [math.tanh(sum(map(float.__mul__, row, hidden))) + 0.2 * (rand() - 0.5) for row in self.mix]

	def text(self):
		return '{%s}' % ','.join('%.5f' % x for x in self.draw())

	def row(self, number):
		"""As COPY takes it in its binary form."""
		head = struct.pack('>hiiiiiIii', 2, 4, number, 20 + 8 * self.width, 1, 0, 700, self.width, 1)
		return head + struct.pack('>' + 'if' * self.width, *(x for v in self.draw() for x in (4, v)))


class Table:
	def __init__(self, service, rows, width):
		self.service, self.rows, self.width = service, rows, width
		self.path = '%s/clusters/vectors' % service.group
		self.string = service.server.api('GET', self.path).json()['connectionStrings']['standard']
		self.name = 'v%d' % width
		self.vectors = Vectors(width)

	def ask(self, statement):
		said = psql(self.string, statement, seconds=3600, PGUSER=USER, PGPASSWORD=PASSWORD)
		if said is None:
			raise Trouble('psql: %s failed' % statement[:200])
		return said

	def fill(self):
		bar = Progress('%d x %d' % (self.rows, self.width))
		self.ask('create table %s(id int, v real[])' % self.name)
		copy = subprocess.Popen(['psql', '-XAtqw', '-d', self.string, '-c', 'copy %s from stdin (format binary)' % self.name], stdin=subprocess.PIPE,
					env={'PGUSER': USER, 'PGPASSWORD': PASSWORD, 'PATH': '/usr/bin:/bin', 'HOME': '/nonexistent'})
		with copy.stdin as to:
			to.write(b'PGCOPY\n\377\r\n\0' + struct.pack('>ii', 0, 0))
			for i in range(self.rows):
				to.write(self.vectors.row(i))
				if i % 10000 == 0:
					bar.show(i / self.rows)
			to.write(struct.pack('>h', -1))
		bar.end()
		if copy.wait():
			raise Trouble('the vectors could not be copied')
		self.ask('vacuum analyze %s' % self.name)

	def index(self):
		"""Seconds that the build took."""
		began = time.perf_counter()
		made = self.service.server.api('POST', self.path + '/search/indexes', json={
			'name': self.name, 'database': 'postgres', 'collectionName': self.name, 'type': 'vectorSearch',
			'definition': {'fields': [{'type': 'vector', 'path': 'v', 'numDimensions': self.width, 'similarity': 'cosine'}]}}).json()

		def ready():
			state = self.service.server.api('GET', '%s/search/indexes/%s' % (self.path, made['indexID'])).json()
			if state['status'] == 'FAILED':
				raise Trouble('the index failed: %s' % state)
			return state['status'] == 'READY'
		wait_for('the index', ready, 3600)
		return time.perf_counter() - began

	def search(self, query, options):
		"""The rows, and the milliseconds in the server the second time: the first one reads into the session what it keeps."""
		ask = "select string_agg(document->>'id', ',') from steward_search.vector('%s', '%s', '%s')" % (self.name, query, options)
		first, *plan = self.ask('%s; explain (analyze, timing off) %s' % (ask, ask)).split('\n')
		return set(first.split(',')), float(plan[-1].removeprefix('Execution Time: ').removesuffix(' ms'))


def searched(table, queries):
	hits, exact, quick = 0, [], []
	for query in queries:
		want, ms = table.search(query, '{"exact": true, "project": ["id"]}')
		exact.append(ms)
		have, ms = table.search(query, '{"project": ["id"]}')
		quick.append(ms)
		hits += len(want & have)
	exact, quick = statistics.median(exact), statistics.median(quick)
	return {'recall': hits / len(queries) / 10, 'exactMs': round(exact, 2), 'ms': round(quick, 2), 'times': ratio(exact, quick)}


def measure(table):
	"""As rows come to lie by being written, and in the order of the index."""
	table.fill()
	seconds, queries = table.index(), [table.vectors.text() for _ in range(QUERIES)]
	found = {'rows': table.rows, 'dimensions': table.width, 'buildSeconds': round(seconds, 1), 'scattered': searched(table, queries)}
	table.ask("do $$ begin execute format('cluster %s using %%I', (select relname from pg_class where oid in (select indexrelid from pg_index "
		  "where indrelid = '%s'::regclass))); end $$" % (table.name, table.name))
	found['clustered'] = searched(table, queries)
	return found


def figure_vectors(bench, pair):
	result, lines = {'wanted': {'recallAtLeast': RECALL_WANTED, 'timesAtLeast': TIMES_WANTED}, 'tables': []}, []
	with site() as folder:
		service = Service(bench, folder)
		service.create('vectors', 1)
		service.connect('vectors')
		for rows, width in SIZES[bench.quick]:
			one = measure(Table(service, rows, width))
			result['tables'].append(one)
			for order in ('scattered', 'clustered'):
				o = one[order]
				lines.append(('nearest of %d x %d, %s' % (rows, width, order), '%.3f of the ten found, %.1f times as quick as exact (%.1f and %.1f ms)' % (
					o['recall'], o['times'], o['ms'], o['exactMs']), 'at least %.2f and %d' % (RECALL_WANTED, TIMES_WANTED)))
			lines.append(('index of %d x %d' % (rows, width), 'built in %.0f s' % one['buildSeconds'], ''))
		service.remove_all()
		service.server.stop()
	return result, lines
