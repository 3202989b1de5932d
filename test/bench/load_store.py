"""Fills a store with many projects and documents, in minutes, as if the service had written them.

  test/bench/load_store.py --data DIR [--store URL] [--projects N] [--documents N]

  --data DIR        a data directory of `steward serve`; made when it is not there
  --store URL       postgresql://... (default: the SQLite store in the directory)
  --projects N      default 1000000
  --documents N     all documents, projects among them: default ten times the projects
  --help            this text

The service is started once and makes one project with documents in it through the API. What it has stored for them is then
written N times, with other ids and names, past it: rows in bulk, indexes afterwards, and each list's counters and blocks as
the service would have left them. `steward check` looks at the outcome. STEWARD_BIN names a binary, as for script/bench."""
import collections, pathlib, re, sqlite3, subprocess, sys, time

from servers import Trouble, Steward, Workshop, binary, stop_all
from tools import Progress, say

BLOCK_BITS, BLOCK_SIZE = 9, 512  # of lists: src/store/backend.h
COLUMNS = 'kind, id, parent, name, seq, rev, created_ms, body, secret'
BATCH = 20000
SCATTER = 0x9e3779b97f4a7c15  # odd: n -> n * SCATTER is one to one, and looks random
ADDRESS, ROLE = '10.1.2.3', 'sample-role'


def sample_make(server):
	"""A project with one document of each kind; their names are what is replaced. The organization's id and the project's."""
	org = server.bootstrap['orgId']
	group = server.api('POST', '/groups', json={'name': 'sample-project', 'orgId': org}).json()['id']
	server.api('POST', '/groups/%s/accessList' % group, json=[{'ipAddress': ADDRESS, 'comment': 'office'}])
	server.api('POST', '/groups/%s/customDBRoles/roles' % group, json={'roleName': ROLE, 'actions': [
		{'action': 'FIND', 'resources': [{'db': 'app', 'collection': '', 'cluster': False}]}]})
	return org, group


class Sqlite:
	def __init__(self, path):
		self.db = sqlite3.connect(path, isolation_level=None)
		for pragma in ('journal_mode = OFF', 'synchronous = OFF', 'cache_size = -400000', 'temp_store = FILE',
			       'locking_mode = EXCLUSIVE', 'threads = 2'):
			self.db.execute('PRAGMA ' + pragma)

	def rows(self, sql, *values):
		return self.db.execute(sql, values).fetchall()

	def begin(self):
		self.indexes = [r[0] for r in self.rows("SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'doc'"
							" AND sql IS NOT NULL")]
		self.db.execute('BEGIN')
		for sql in self.indexes:
			self.db.execute('DROP INDEX ' + re.search(r'INDEX (\w+)', sql).group(1))

	def put(self, table, columns, rows):
		marks = ', '.join('?' * len(columns.split(', ')))
		self.db.executemany('INSERT OR REPLACE INTO %s (%s) VALUES (%s)' % (table, columns, marks), rows)

	def index_steps(self):
		return [lambda sql=sql: self.db.execute(sql) for sql in self.indexes]

	def end(self):
		self.db.execute('COMMIT')
		for pragma in ('locking_mode = NORMAL', 'synchronous = FULL', 'journal_mode = WAL'):
			self.db.execute('PRAGMA ' + pragma)
		self.db.close()


class Postgres:
	"""Through psql: no driver is needed, and COPY is as fast as it gets."""

	def __init__(self, url):
		self.url, self.copy, self.copying = url, None, None

	def command(self, *words):
		return ['psql', '-XAtqw', '-v', 'ON_ERROR_STOP=1', '-d', self.url, *words]

	def run(self, sql):
		done = subprocess.run(self.command('-F', '\x1f', '-c', 'SET search_path TO steward', '-c',
						   "SET maintenance_work_mem TO '512MB'", '-c', sql), stdout=subprocess.PIPE,
				      stderr=subprocess.PIPE, text=True)
		if done.returncode:
			raise Trouble('psql: ' + done.stderr[-1000:])
		return done.stdout

	def rows(self, sql, *values):
		for v in values:
			sql = sql.replace('?', "'%s'" % v, 1)
		number = lambda text: int(text) if text.isdigit() and len(text) < 19 else text
		return [tuple(map(number, line.split('\x1f'))) for line in self.run(sql).splitlines()]

	def begin(self):
		self.constraints = self.rows("SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
					     " WHERE conrelid = 'steward.doc'::regclass AND contype = 'p'")
		self.indexes = self.rows("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'steward' AND tablename = 'doc'"
					 " AND indexname NOT IN (SELECT conname FROM pg_constraint)")
		for name, _ in self.constraints:
			self.run('ALTER TABLE doc DROP CONSTRAINT ' + name)
		for name, _ in self.indexes:
			self.run('DROP INDEX ' + name)

	def put(self, table, columns, rows):
		if self.copying != table:
			self.settle()
			into = 'steward.doc' if table == 'doc' else 'pg_temp.%s' % table
			self.copying = table
			words = [] if table == 'doc' else ['-c', 'CREATE TEMP TABLE %s (LIKE steward.%s)' % (table, table)]
			words += ['-c', 'COPY %s (%s) FROM STDIN' % (into, columns)]
			if table != 'doc':  # a row that is there gives way
				names = columns.split(', ')
				keys = [n for n in names if n in ('kind', 'parent', 'level', 'block')]
				same = ' AND '.join('a.%s = b.%s' % (k, k) for k in keys)
				words += ['-c', 'DELETE FROM steward.%s a USING pg_temp.%s b WHERE %s' % (table, table, same),
					  '-c', 'INSERT INTO steward.%s (%s) SELECT %s FROM pg_temp.%s ORDER BY kind, parent' % (
						  table, columns, columns, table)]
			self.copy = subprocess.Popen(self.command(*words), stdin=subprocess.PIPE, text=True)
		text = lambda v: '\\N' if v is None else v.replace('\\', '\\\\') if isinstance(v, str) else str(v)
		self.copy.stdin.write('\n'.join('\t'.join(map(text, row)) for row in rows) + '\n')

	def settle(self):
		if self.copy:
			self.copy.stdin.close()
			if self.copy.wait():
				raise Trouble('COPY failed')
		self.copy = self.copying = None

	def index_steps(self):
		self.settle()
		return ([lambda name=name, what=what: self.run('ALTER TABLE doc ADD CONSTRAINT %s %s' % (name, what))
			 for name, what in self.constraints] +
			[lambda sql=sql: self.run(sql.replace(' ON steward.doc', ' ON doc')) for _, sql in self.indexes])

	def end(self):
		self.settle()
		self.run('VACUUM ANALYZE doc, list, list_block')  # as autovacuum does before long


def id_of(seconds, n):
	return '%08x%016x' % (seconds, n * SCATTER & 0xffffffffffffffff)


class Kind:
	"""What the service has stored for one document, with holes for what differs from one to the next."""

	def __init__(self, row, replaced, name_of):
		self.kind, self.id, self.parent, self.name, self.seq, self.rev, _, self.body, self.secret = row
		if self.secret:
			raise Trouble('%s has a secret, which is its own: take another kind' % self.kind)
		self.replaced, self.name_of = replaced, name_of
		self.body = self.body.replace(self.id, '\x01').replace(replaced, '\x02')
		self.name = self.name.replace(replaced, '\x02')

	def make(self, id, parent, group, seq, n, now):
		own = self.name_of(n)
		body = self.body.replace('\x01', id).replace('\x02', own)
		return (self.kind, id, parent, self.name.replace('\x02', own), seq, 1, now,
			body.replace(group, parent) if group else body, None)


class Lists:
	"""Counters and blocks of the lists that grow."""

	def __init__(self, store):
		self.store, self.small, self.large = store, [], {}

	def open(self, kind, parent):
		"""A list that may be long and have documents; where it goes on."""
		row = self.store.rows('SELECT next_seq, count, head FROM list WHERE kind = ? AND parent = ?', kind, parent)
		blocks = collections.Counter({(level, block): count for level, block, count in self.store.rows(
			'SELECT level, block, count FROM list_block WHERE kind = ? AND parent = ?', kind, parent)})
		self.large[kind, parent] = [*(row[0] if row else (0, 0, 0)), blocks]
		return self.large[kind, parent][0]

	def grow(self, kind, parent, count):
		"""By so many documents at its end."""
		entry = self.large[kind, parent]
		first, end = entry[0], entry[0] + count
		entry[0], entry[1] = end, entry[1] + count
		entry[2] += max(0, min(end, BLOCK_SIZE) - first)
		for level in (0, 1):
			bits, seq = BLOCK_BITS * (level + 1), max(first, BLOCK_SIZE)
			while seq < end:
				upto = min(end, (seq >> bits) + 1 << bits)
				entry[3][level, seq >> bits] += upto - seq
				seq = upto

	def write(self, bar):
		columns = 'kind, parent, next_seq, count, head'
		for (kind, parent), (end, count, head, _) in self.large.items():
			self.small.append((kind, parent, end, count, head))
		for i in range(0, len(self.small), BATCH):
			self.store.put('list', columns, self.small[i:i + BATCH])
			bar(min(1, (i + BATCH) / len(self.small)))
		blocks = [(kind, parent, *at, n) for (kind, parent), entry in self.large.items() for at, n in entry[3].items()]
		if blocks:
			self.store.put('list_block', 'kind, parent, level, block, count', blocks)


def kinds_read(store, group):
	rows = lambda where, *values: store.rows('SELECT %s FROM doc WHERE %s' % (COLUMNS, where), *values)
	empty = lambda row: (*row[:8], row[8] or None)
	find = lambda kind: empty(rows('kind = ? AND parent = ?', kind, group)[0])
	project = Kind(empty(rows("kind = 'project' AND id = ?", group)[0]), 'sample-project', lambda n: 'project-%07d' % n)
	address = lambda n: '10.%d.%d.%d' % (n >> 16 & 255, n >> 8 & 255, n & 255)
	return project, [Kind(find('access_entry'), ADDRESS, address), Kind(find('database_role'), ROLE, lambda n: 'role-%d' % n)]


def documents(projects, total, lists, kinds, org, group, first):
	"""Rows in the order in which a service would have got them: a project, then what is in it."""
	project, children = kinds
	seconds, now, made = int(time.time()), int(time.time() * 1000), 0
	for p in range(projects):
		parent = id_of(seconds, made)
		yield project.make(parent, org, None, first + p, p + 1, now)
		made += 1
		each = (total - projects) * (p + 1) // projects - (total - projects) * p // projects
		for k, kind in enumerate(children):
			count = each * (k + 1) // len(children) - each * k // len(children)
			for seq in range(count):
				yield kind.make(id_of(seconds, made), parent, group, seq, seq + 1, now)
				made += 1
			if count:
				lists.small.append((kind.kind, parent, count, count, min(count, BLOCK_SIZE)))


def fill(store, org, group, projects, total, label):
	"""Adds them to an organization, after the pattern of a project in it."""
	if total < projects:
		raise Trouble('there are fewer documents than projects')
	bar, lists, done, batch = Progress(label), Lists(store), 0, []
	kinds = kinds_read(store, group)
	first = lists.open('project', org)
	store.begin()
	for row in documents(projects, total, lists, kinds, org, group, first):
		batch.append(row)
		if len(batch) == BATCH:
			store.put('doc', COLUMNS, batch)
			done, batch = done + BATCH, []
			bar.show(0.5 * done / total)
	if batch:
		store.put('doc', COLUMNS, batch)
	lists.grow('project', org, projects)
	lists.write(lambda share: bar.show(0.5 + 0.15 * share))
	steps = store.index_steps()
	for i, step in enumerate(steps):
		step()
		bar.show(0.65 + 0.3 * (i + 1) / len(steps))
	store.end()
	bar.end()


def store_open(data, url):
	return Postgres(url) if url else Sqlite(pathlib.Path(data) / 'steward.db')


def load(workshop, data, url, projects, total):
	"""The whole of it; the organization's id. The service is not running afterwards."""
	server = Steward(workshop, *(('--store', url) if url else ()), data=data)
	try:
		org, group = sample_make(server)
	finally:
		server.stop()
	fill(store_open(data, url), org, group, projects, total, '{:,} projects, {:,} documents'.format(projects, total))
	return org


def check(data, url):
	done = subprocess.run([binary(), 'check', '--data', data, *(['--store', url] if url else [])], stdout=subprocess.PIPE,
			      stderr=subprocess.STDOUT, text=True)
	return done.returncode, done.stdout.strip()


def main(words):
	given = {'data': None, 'store': None, 'projects': 1000000, 'documents': None}
	while words:
		name = words.pop(0)
		if name in ('--help', '-h'):
			print(__doc__)
			return 0
		if name[2:] not in given or not words:
			sys.exit('load_store: %s: no such option, or its value is missing; --help tells' % name)
		given[name[2:]] = words.pop(0)
	if not given['data']:
		sys.exit('load_store: --data DIR is missing; --help tells')
	workshop = Workshop()
	try:
		workshop.certify()
		projects = int(given['projects'])
		began = time.monotonic()
		org = load(workshop, given['data'], given['store'], projects, int(given['documents'] or 10 * projects))
		say('loaded in %.0f s; the organization is %s; checking' % (time.monotonic() - began, org))
		code, text = check(given['data'], given['store'])
		say(text)
		return code
	except Trouble as e:
		sys.exit('load_store: %s' % e)
	finally:
		stop_all()
		workshop.close()


if __name__ == '__main__':
	sys.exit(main(sys.argv[1:]))
