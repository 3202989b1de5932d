"""What the PostgreSQL store costs: our calls beside pgbench with the same row, through as many connections; and both stores
with a million projects and ten million documents beside a thousand and ten thousand. PostgreSQL is one of our own, below
/var/tmp, and flushes to disk."""
import contextlib, json, pathlib, random, shutil, statistics, sys, tempfile, time

import engine, load_store
from servers import BASE, HERE, Steward, Trouble, wait_for
from tools import load, number, ratio, run, wrk

sys.path.insert(0, str(HERE.parent / 'api'))
import database

CONNECTIONS = 12  # to the store
CLIENTS = 64
FEW, EACH = 1000, 10  # projects of the small store; documents to a project
FORWARD_WANTED = 3  # times a local GET
WANTED = {'get': 1.5, 'first': 1.5, 'deep': 5}
LABELS = {'get': 'GET of one project', 'first': 'page 1 of the projects', 'deep': 'page of the projects at 90 %'}


@contextlib.contextmanager
def site():
	"""A PostgreSQL and a directory for data, both gone afterwards."""
	if not shutil.which('psql'):
		raise Trouble('PostgreSQL is missing: apt-get install postgresql')
	folder, db = pathlib.Path(tempfile.mkdtemp(prefix='swb-', dir='/var/tmp')), None
	try:
		db = database.Database(fsync='on', plan_cache_mode='auto', shared_buffers='512MB', max_wal_size='8GB', checkpoint_timeout='15min')
		yield folder, db
	finally:
		if db:
			db.close()
		shutil.rmtree(folder, ignore_errors=True)


def pgbench(bench, db, script, seconds, **variables):
	"""Transactions of one statement, prepared, over the loopback address as ours are."""
	file = bench.workshop.dir / 'pgbench.sql'
	file.write_text(script)
	out = run([db.bin / 'pgbench', '-n', '-M', 'prepared', '-c', CONNECTIONS, '-j', 2, '-T', seconds, '-f', file, '-h', db.host,
		   *(w for name, value in variables.items() for w in ('-D', '%s=%s' % (name, value))), '-p', db.port, '-U', 'steward', 'steward'], seconds)
	failed = int(number(r'number of failed transactions: (\d+)', out, 'pgbench').group(1))
	if failed:
		bench.fault('pgbench: %d transactions failed' % failed)
	return float(number(r'tps = ([\d.]+)', out, 'pgbench').group(1))


def take_turns(bench, sides):
	"""Each side once a round, and once before to warm up."""
	for measure in sides.values():
		measure(1)
	rounds = []
	for i in range(bench.rounds):
		names = list(sides) if i % 2 == 0 else list(reversed(sides))
		one = {name: round(sides[name](bench.seconds), 1) for name in names}
		rounds.append({name: one[name] for name in sides})
	ours, theirs = sides
	ratios = [ratio(r[ours], r[theirs]) for r in rounds]
	return {'rounds': rounds, 'ratios': ratios, 'ratio': statistics.median(ratios), 'connections': CONNECTIONS,
		'medians': {name: statistics.median(r[name] for r in rounds) for name in sides}, 'wanted': {'ratioAtLeast': 0.5}}


def row(result, label):
	m = list(result['medians'].values())
	return (label, '%.2f of pgbench (%s and %s /s)' % (result['ratio'], *('{:,.0f}'.format(x) for x in m)), 'at least 0.50')


@contextlib.contextmanager
def node(bench, db):
	server = Steward(bench.workshop, '--store', db.url(), '--store-connections', str(CONNECTIONS))
	try:
		server.raise_limits()
		yield server
	finally:
		server.stop()


def figure_store_get(bench, pair):
	with site() as (_, db), node(bench, db) as server:
		group = server.bootstrap['groupId']
		select = "SELECT kind, id, parent, name, seq, rev, created_ms, body, secret FROM steward.doc" \
			" WHERE kind = 'project' AND id = '%s'\n" % group
		result = take_turns(bench, {
			'steward': lambda s: wrk(bench, server, BASE + '/groups/' + group, server.token(), s, CLIENTS)['rate'],
			'pgbench': lambda s: pgbench(bench, db, select, s)})
	return result, [row(result, 'GET of one project, PostgreSQL store, %d connections to it' % CONNECTIONS)]


def figure_store_creates(bench, pair):
	with site() as (_, db), node(bench, db) as server:
		org, runs = server.bootstrap['orgId'], [0]
		body = db.sql("SELECT body FROM steward.doc WHERE kind = 'project' LIMIT 1")
		db.sql('CREATE TABLE public.same (LIKE steward.doc INCLUDING ALL); CREATE SEQUENCE public.seq')
		insert = "\\set n random(1, 9000000000000000000)\nINSERT INTO public.same VALUES ('project', lpad(to_hex(:n::bigint), 24, '0')," \
			" '%s', 'p-' || :n::bigint, nextval('public.seq'), 1, 0, :body, NULL)\n" % org

		def creates(seconds):
			runs[0] += 1
			return load(bench, server, BASE + '/groups', seconds, connections=CLIENTS, bearer=server.token(),
				    post=json.dumps({'name': 'p-{n}', 'orgId': org}), run=runs[0])['rate']

		result = take_turns(bench, {'steward': creates, 'pgbench': lambda s: pgbench(bench, db, insert, s, body=body)})
	return result, [row(result, 'creates of projects with their events, beside one INSERT of the same row')]


class Stocked:
	"""A service on a store with so many projects, and what is asked of it."""

	def __init__(self, bench, data, url, projects):
		began = time.monotonic()
		self.org = load_store.load(bench.workshop, data, url, projects, EACH * projects)
		self.seconds = round(time.monotonic() - began, 1)
		code, said = load_store.check(data, url)
		if code:
			bench.fault('steward check of %d projects: %s' % (projects, said[-300:]))
		self.bench = bench
		self.server = Steward(bench.workshop, *(('--store', url) if url else ()), data=data)
		self.server.raise_limits()
		self.pages = {'first': 1, 'deep': projects * 9 // 10 // 100}
		some = random.Random(1).sample(range(projects // 100), 8)
		self.groups = [self.page(n + 1)['results'][n % 100]['id'] for n in some]
		if len(self.page(self.pages['deep'])['results']) != 100 or self.page(1)['totalCount'] != projects + 2:
			bench.fault('a list of %d projects is not complete' % projects)

	def path(self, page):
		return '/orgs/%s/groups?itemsPerPage=100&pageNum=%d' % (self.org, page)

	def page(self, number):
		return self.server.api('GET', self.path(number)).json()

	def micros(self, what):
		"""The middle of what one caller after the other waits."""
		ask = lambda path, count: load(self.bench, self.server, BASE + path, 60, bearer=self.server.token(), connections=1,
					       threads=1, count=count)['p50us']
		if what == 'get':
			return statistics.median(ask('/groups/' + g, 100) for g in self.groups)
		return ask(self.path(self.pages[what]), 200)


def compare(bench, folder, name, url_of, many):
	"""Both sizes on one kind of store, taking turns."""
	few = large = None
	try:
		few = Stocked(bench, folder / (name + '-few'), url_of(), FEW)
		large = Stocked(bench, folder / (name + '-many'), url_of(), many)
		rounds = []
		for i in range(max(3, bench.rounds)):
			sides = [('few', few), ('many', large)]
			rounds.append({'%s.%s' % (what, side): s.micros(what) for what in WANTED
				       for side, s in (sides if i % 2 == 0 else reversed(sides))})
		pss = large.server.pss()
	finally:
		for one in (few, large):
			if one:
				one.server.stop()
	middle = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
	ratios = {what: statistics.median(ratio(r[what + '.many'], r[what + '.few']) for r in rounds) for what in WANTED}
	return {'rounds': rounds, 'medians': middle, 'ratios': ratios, 'loadSeconds': large.seconds, 'pssBytes': pss}


def figure_store_pages(bench, pair):
	many = 100000 if bench.quick else 1000000
	result, rows = {'few': FEW, 'many': many, 'documentsEach': EACH, 'wanted': WANTED}, []
	with site() as (folder, db):
		for name, url_of in (('sqlite', lambda: None), ('postgresql', db.fresh)):
			one = result[name] = compare(bench, folder, name, url_of, many)
			for what, wanted in WANTED.items():
				rows.append(('%s, %s, %s projects' % (LABELS[what], name, '{:,}'.format(many)),
					     '%.2f times that of 1,000 (%.0f and %.0f us)' % (
						     one['ratios'][what], one['medians'][what + '.many'], one['medians'][what + '.few']),
					     'within %.1f times' % wanted))
			rows.append(('%s documents loaded, %s' % ('{:,}'.format(EACH * many), name), '%.0f s' % one['loadSeconds'], '-'))
	return result, rows


def figure_store_forward(bench, pair):
	"""A GET that only another host can answer, beside the same asked from that host; one caller after the other."""
	with site() as (_, db), engine.site() as folder, contextlib.ExitStack() as stack:
		def host(i, region):
			data = folder / ('n%d' % i)
			if i:
				data.mkdir(mode=0o700)
				for name in ('secret.key', 'bootstrap.json'):
					shutil.copy(folder / 'n0' / name, data)
			server = Steward(bench.workshop, '--store', db.url(), '--store-connections', str(CONNECTIONS), '--engine', 'postgres',
					 '--db-address', '127.0.0.1', '--db-ports', '%d-%d' % (22000 + 100 * i, 22099 + 100 * i),
					 '--host-name', 'h%d' % i, '--label', 'region=' + region, data=data)
			stack.callback(server.stop)
			return server
		far, near = host(0, 'EU_WEST_1'), host(1, 'US_EAST_1')
		far.raise_limits()
		clusters = '/groups/%s/clusters' % far.bootstrap['groupId']
		far.api('POST', clusters, json=engine.shape('one', 3))
		wait_for('the cluster', lambda: far.api('GET', clusters + '/one').json()['stateName'] == 'IDLE', 120)
		processes = '/groups/%s/processes' % far.bootstrap['groupId']
		path = BASE + processes + '/' + far.api('GET', processes).json()['results'][0]['id']

		def ask(server, count):
			"""What a caller waits, and what both hosts work for it."""
			before = far.cpu_seconds() + near.cpu_seconds()
			waited = load(bench, server, path, 60, bearer=far.token(), connections=1, threads=1, count=count)['p50us']
			return waited, round((far.cpu_seconds() + near.cpu_seconds() - before) * 1e6 / count, 1)

		rounds = []
		for server in (far, near):
			ask(server, 300)
		for i in range(max(3, bench.rounds)):
			sides = [('forwarded', far), ('local', near)]
			one = {name: ask(server, 1000) for name, server in (sides if i % 2 == 0 else reversed(sides))}
			rounds.append({name: one[name] for name in ('forwarded', 'local')})
	result, rows = {'rounds': rounds, 'wanted': {'ratioAtMost': FORWARD_WANTED}}, []
	for i, (key, label) in enumerate((('waited', 'GET of a process of another host'),
					  ('worked', 'the same, processor time of both hosts'))):
		m = {name: statistics.median(r[name][i] for r in rounds) for name in ('forwarded', 'local')}
		result[key] = {'medians': m, 'ratio': statistics.median(ratio(r['forwarded'][i], r['local'][i]) for r in rounds)}
		rows.append((label, '%.2f of a local one (%.0f and %.0f us)' % (result[key]['ratio'], m['forwarded'], m['local']),
			     'at most %d' % FORWARD_WANTED))
	return result, rows


FIGURES = {'store-get': figure_store_get, 'store-creates': figure_store_creates, 'store-forward': figure_store_forward,
	   'store-pages': figure_store_pages}
