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

	def index(self, quantization):
		"""Seconds that the build took, and bytes of the index."""
		began = time.perf_counter()
		made = self.service.server.api('POST', self.path + '/search/indexes', json={
			'name': quantization + self.name, 'database': 'postgres', 'collectionName': self.name, 'type': 'vectorSearch',
			'definition': {'fields': [{'type': 'vector', 'path': 'v', 'numDimensions': self.width, 'similarity': 'cosine', 'quantization': quantization}]}}).json()

		def ready():
			state = self.service.server.api('GET', '%s/search/indexes/%s' % (self.path, made['indexID'])).json()
			if state['status'] == 'FAILED':
				raise Trouble('the index failed: %s' % state)
			return state['status'] == 'READY'
		wait_for('the index', ready, 3600)
		seconds = time.perf_counter() - began
		return seconds, int(self.ask("select pg_relation_size(format('steward_search_%%s', build)::regclass) from steward_search.indexes where name = '%s'" % (
			quantization + self.name)))

	def search(self, index, query, options):
		"""The rows, and the milliseconds in the server the second time: the first one reads into the session what it keeps."""
		ask = "select string_agg(document->>'id', ',') from steward_search.vector('%s', '%s', '%s')" % (index, query, options)
		first, *plan = self.ask('%s; explain (analyze, timing off) %s' % (ask, ask)).split('\n')
		return set(first.split(',')), float(plan[-1].removeprefix('Execution Time: ').removesuffix(' ms'))


def measure(table):
	"""The rows lie as they were written, and are compared exactly for each query between the searches of both kinds of copies."""
	table.fill()
	built = {kind: table.index(kind) for kind in ('scalar', 'binary')}
	times, hits = {kind: [] for kind in ('exact', *built)}, dict.fromkeys(built, 0)
	for query in [table.vectors.text() for _ in range(QUERIES)]:
		want, ms = table.search('scalar' + table.name, query, '{"exact": true, "project": ["id"]}')
		times['exact'].append(ms)
		for kind in built:
			have, ms = table.search(kind + table.name, query, '{"project": ["id"]}')
			times[kind].append(ms)
			hits[kind] += len(want & have)
	middle = {kind: statistics.median(ms) for kind, ms in times.items()}
	return {'rows': table.rows, 'dimensions': table.width, 'exactMs': round(middle['exact'], 2), **{
		kind: {'recall': hits[kind] / QUERIES / 10, 'ms': round(middle[kind], 2), 'times': ratio(middle['exact'], middle[kind]),
		       'buildSeconds': round(seconds, 1), 'megabytes': round(size / 2 ** 20, 1)} for kind, (seconds, size) in built.items()}}


def figure_vectors(bench, pair):
	result, lines = {'wanted': {'recallAtLeast': RECALL_WANTED, 'timesAtLeast': TIMES_WANTED}, 'tables': []}, []
	with site() as folder:
		service = Service(bench, folder)
		service.create('vectors', 1)
		service.connect('vectors')
		for rows, width in SIZES[bench.quick]:
			one = measure(Table(service, rows, width))
			result['tables'].append(one)
			for kind in ('scalar', 'binary'):
				o = one[kind]
				lines.append(('nearest of %d x %d, %s' % (rows, width, kind), '%.3f of the ten found, %.1f times as quick as exact (%.1f and %.1f ms)' % (
					o['recall'], o['times'], o['ms'], one['exactMs']), 'at least %.2f and %d' % (RECALL_WANTED, TIMES_WANTED)))
				lines.append(('its index', 'built in %.0f s, %.0f MB' % (o['buildSeconds'], o['megabytes']), ''))
		service.remove_all()
		service.server.stop()
	return result, lines
