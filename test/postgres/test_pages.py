"""Lines of the pages that people paste into a shell or psql: run as they stand, with only what a page leaves open put in its place. A new
one fails test_every_line_is_run until it is run here. (docs/tutorial.md and docs/backup-format.md have tests of their own.)"""
import json, os, re, subprocess

import pytest

from client import ROOT, SANITIZER, binary, environment, ok, until
from databases import PASSWORD, USER, allow, shape

DOCS = ROOT / 'docs'
ELSEWHERE = {'tutorial.md', 'backup-format.md'}
PASTED = re.compile(r"^    ((?:\w+='[^']*' |\w+=\S+ )*psql .*|(?:\w+='[^']*' |\w+=\S+ )+steward connect .*|(?:select|insert|create|update|delete) .*)$", re.M)
# Which line of which page, by words that it alone has there.
LINES = {'as it is': ('cli.md', 'standard)" -U app'), 'verified': ('cli.md', 'sslmode=verify-full'), 'full, by the client': ('operations.md', 'PGOPTIONS='),
	 'full, by psql': ('operations.md', '"STRING&'), 'certificate': ('user-security.md', 'psql "host='), 'certificate, by the client': ('user-security.md', 'PGSSLCERT='),
	 'words': ('search.md', 'steward_search.query('), 'vectors': ('search.md', 'steward_search.vector(')}
# Run by tests of their own subjects: collations, spread tables, shapes.
OTHERS = [('indexes.md', 'order by name collate'), ('operations.md', 'steward.shard_table'), ('query-shapes.md', 'select * from orders')]


def lines(page):
	return PASTED.findall((DOCS / page).read_text())


def line_of(which):
	page, words = LINES[which]
	found = [line for line in lines(page) if words in line]
	assert len(found) == 1, (page, words, found)
	return found[0]


class World:
	def __init__(self, place, home):
		self.place, self.server, self.home = place, place.server, home
		allow(place.server)
		self.cluster = place.cluster('orders', **shape(1)).settled()
		(home / 'steward').symlink_to(binary())

	def shell(self, line, stdin='', **env):
		"""In a directory of its own, signed in as the first start's account. Users and passwords are those of the test."""
		done = subprocess.run(['bash', '-c', 'set -e; umask 077\n' + line], input=stdin, capture_output=True, text=True, timeout=180, cwd=self.home, env=environment({
			'PATH': '%s:%s' % (self.home, os.environ['PATH']), 'HOME': str(self.home), 'XDG_CONFIG_HOME': '', 'XDG_CACHE_HOME': '', 'STEWARD_PROFILE': '',
			'STEWARD_DATA': str(self.server.data_dir), 'PSQLRC': '/dev/null', 'PGPASSWORD': PASSWORD, **env}))
		assert done.returncode == 0 and not SANITIZER.search(done.stderr), (line, done)
		return done.stdout

	@property
	def string(self):
		return ok(self.server.get(self.cluster.path))['connectionStrings']['standard']

	def sql(self, sql, *args, **who):
		c = self.cluster.connect(**who)
		try:
			cursor = c.cursor()
			cursor.execute(sql, args or None)
			return cursor.fetchall() if cursor.description else None
		finally:
			c.close()


@pytest.fixture(scope='module')
def world(start_place, tmp_path_factory):
	return World(start_place('--index-wait', '2'), tmp_path_factory.mktemp('home'))


def test_connection_strings(world):
	"""docs/cli.md: the string as it is, and with the server verified."""
	world.shell('steward clusters ca >ca.crt')
	for which in ('as it is', 'verified'):
		assert '42' in world.shell(line_of(which), stdin='select 40 + 2;\n')


def test_writing_on_a_full_disk(world):
	"""docs/operations.md: in spite of default_transaction_read_only, by both ways."""
	for which in ('full, by the client', 'full, by psql'):
		world.sql('create table old_things(id int)')
		line = line_of(which).replace('NAME', 'orders').replace('STRING', world.string)
		world.shell(line, PGUSER=USER)
		assert world.sql("select to_regclass('old_things')") == [(None,)]


def test_certificates(world):
	"""docs/user-security.md: the file that is answered is all that a client needs."""
	ok(world.server.post('/groups/%s/databaseUsers' % world.server.group, json={'username': 'ann', 'databaseName': '$external', 'x509Type': 'MANAGED',
		'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
	world.sql('create database shop')
	page = (DOCS / 'user-security.md').read_text()
	world.shell(re.search(r'^    (steward api POST .*ann\.pem)$', page, re.M).group(1))
	host = 'host=%s port=%s hostaddr=%s' % re.search(r'//([^:]*):(\d+).*hostaddr=([^&,]*)', world.string).groups()
	assert 'ann' in world.shell(line_of('certificate').replace('host=...', host), stdin='select current_user;\n', PGPASSWORD='')
	assert 'ann' in world.shell(line_of('certificate, by the client'), stdin='select current_user;\n', PGPASSWORD='')


def definitions():
	"""The definitions of docs/search.md, by their names."""
	page = (DOCS / 'search.md').read_text()
	found = [json.loads(block) for block in re.findall(r'^    (\{"name".*?\})\n\n', page, re.M | re.S)]
	return {d['name']: d for d in found}


def test_searching(world):
	"""docs/search.md: both definitions are built, and what asks them finds."""
	world.sql('create table articles(id int primary key, title text, tag text, price numeric, doc jsonb, embedding real[])')
	wide = definitions()['meaning']['definition']['fields'][0]['numDimensions']
	for n in range(8):
		vector = [0.12, -0.5] + [0.01 * n] * (wide - 2)
		world.sql('insert into articles values (%s, %s, %s, %s, %s, %s::real[])', n, 'Running shoes' if n % 2 else 'Hats', 'shoes' if n % 2 else 'hats', n,
			  json.dumps({'city': 'Oslo'}), '{%s}' % ','.join(map(str, vector)))
	base = world.cluster.path + '/search/indexes'
	for definition in definitions().values():
		index = ok(world.server.post(base, json=definition), 201)['indexID']
		until(lambda: ok(world.server.get('%s/%s' % (base, index)))['status'] == 'READY', 240, 'the index')  # noqa: B023
	words = world.sql(line_of('words').rstrip(';'))
	assert len(words) == 4 and all(d['title'] == 'Running shoes' for d, _ in words)
	numbers = ', '.join(['0.12', '-0.5'] + ['0'] * (wide - 2))
	near = world.sql(line_of('vectors').replace('0.12, -0.5, ...', numbers).rstrip(';'))
	assert [d['id'] for d, _ in near] == [1, 3, 5, 7], 'of the tag, the nearest first'
	page = (DOCS / 'search.md').read_text()
	for line in re.findall(r'^    (steward search-indexes try .*)$', page, re.M):
		assert 'Running shoes' in world.shell(line.replace(' try shop ', ' try orders ').replace('0.12, -0.5, ...', numbers))


def test_every_line_is_run():
	"""All that the pages give to be pasted."""
	known = [*LINES.values(), *OTHERS]
	there = [(p.name, line) for p in sorted(DOCS.glob('*.md')) if p.name not in ELSEWHERE for line in lines(p.name)]
	assert len(there) >= len(LINES) and not [x for x in there if not any(x[0] == page and words in x[1] for page, words in known)]
