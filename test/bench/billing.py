"""What invoices cost: a year of two hundred clusters as cost queries, and the CSV of an invoice with a million lines."""
import os, pathlib, time

import requests

from servers import BASE, HERE, ROOT, Steward, Trouble, wait_for

CLUSTERS, MONTHS, LINES = 200, 12, 1000000
QUERY_WANTED, MEMORY_WANTED = 2.0, 64
PARTS = ('base', 'store', 'store/sqlite')
LIBRARIES = ('-lsqlite3', '-ljansson', '-lcrypto', '-ldeflate', '-lm', '-pthread')
OPTIONS = ('--clock', 'virtual', '--test-control', '--simulated-seconds', '0')


class Customer:
	"""The first organization, by its API key: a token would not last for years."""

	def __init__(self, server):
		self.server = server
		key = server.bootstrap['apiKey']
		self.auth = requests.auth.HTTPDigestAuth(key['publicKey'], key['privateKey'])
		self.org = '/orgs/' + server.bootstrap['orgId']

	def call(self, method, path, **kw):
		return self.server.call(method, BASE + path, auth=self.auth, **kw)

	def control(self, path, body=None):
		return self.server.call('POST', '/api/test/' + path, json=body)

	def invoices(self):
		return self.call('GET', self.org + '/invoices?itemsPerPage=100').json()['results']


def clusters_make(customer, count):
	spec = [{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
				    'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]
	for i in range(count):
		if i % 20 == 0:
			group = customer.call('POST', '/groups', json={'name': 'bench-%d' % i, 'orgId': customer.org[6:]}).json()['id']
		customer.call('POST', '/groups/%s/clusters' % group, json={'name': 'c%d' % i, 'clusterType': 'REPLICASET', 'replicationSpecs': spec})


def year_pass(customer, months):
	"""Seconds of the service's work for each month; and the closed invoices."""
	taken = []
	for n in range(months + 1):
		customer.control('clock', {'advanceSeconds': 31 * 86400})
		customer.control('buckets/reset')
		began, before = time.perf_counter(), n
		wait_for('invoice %d' % n, lambda: len(customer.invoices()) > before, 120)
		taken.append(time.perf_counter() - began)
	return taken, [x for x in customer.invoices() if x['statusName'] != 'PENDING']


def asked(customer, **body):
	began = time.perf_counter()
	token = customer.call('POST', customer.org + '/billing/costExplorer/usage', json=body).json()['token']
	answer = customer.call('GET', customer.org + '/billing/costExplorer/usage/' + token).json()
	return time.perf_counter() - began, answer


def memory_kb(server):
	return next(int(line.split()[1]) for line in pathlib.Path('/proc/%d/status' % server.process.pid).read_text().splitlines()
		    if line.startswith('VmHWM'))


def lines_add(bench, server, invoice, count):
	program = bench.workshop.dir / 'bench_billing'
	source = [HERE / 'billing.c', *(f for p in PARTS for f in sorted((ROOT / 'src' / p).glob('*.c')))]
	bench.workshop.run(os.environ.get('CC', 'cc'), '-std=gnu17', '-O2', '-D_GNU_SOURCE', '-funsigned-char', '-I', ROOT / 'src',
			   *source, '-o', program, *LIBRARIES)
	bench.workshop.run(program, server.data, invoice, count)


def csv_read(customer, invoice):
	"""Rows, seconds, and megabytes by which the service has grown."""
	before, began, rows, size = memory_kb(customer.server), time.perf_counter(), 0, 0
	with customer.call('GET', '%s/invoices/%s/csv' % (customer.org, invoice), stream=True, timeout=600) as answer:
		for part in answer.iter_content(1 << 18):
			rows += part.count(b'\n')
			size += len(part)
	return rows - 1, time.perf_counter() - began, (memory_kb(customer.server) - before) / 1024, size


def figure_billing(bench, pair):
	clusters, lines = (40, 100000) if bench.quick else (CLUSTERS, LINES)
	server = Steward(bench.workshop, *OPTIONS)
	try:
		server.raise_limits()
		customer = Customer(server)
		clusters_make(customer, clusters)
		taken, closed = year_pass(customer, MONTHS)
		period = {'startDate': closed[-1]['startDate'][:10], 'endDate': closed[0]['endDate'][:10]}
		queries = {by: asked(customer, groupBy=by, **period) for by in ('organizations', 'projects', 'clusters', 'services')}
		total = sum(x['subtotalCents'] for x in closed)
		if any(answer['totalCents'] != total for _, answer in queries.values()):
			raise Trouble('cost queries do not add up to the invoices')
	finally:
		server.stop()
	lines_add(bench, server, closed[0]['id'], lines)
	server = Steward(bench.workshop, *OPTIONS, data=server.data)
	try:
		customer = Customer(server)
		rows, seconds, grown, size = csv_read(customer, closed[0]['id'])
		if rows < lines:
			raise Trouble('%d rows of %d' % (rows, lines))
	finally:
		server.stop()
	slowest = max(seconds_ for seconds_, _ in queries.values())
	result = {'clusters': clusters, 'months': len(closed), 'querySeconds': {by: round(s, 4) for by, (s, _) in queries.items()},
		  'monthSeconds': [round(t, 3) for t in taken], 'csvRows': rows, 'csvSeconds': round(seconds, 2), 'csvGrownMb': round(grown, 1),
		  'csvBytes': size, 'wanted': {'querySecondsAtMost': QUERY_WANTED, 'csvGrownMbAtMost': MEMORY_WANTED}}
	return result, [
		('cost query, %d months of %d clusters, the slowest' % (len(closed), clusters), '%.0f ms' % (slowest * 1e3), 'at most %.0f s' % QUERY_WANTED),
		('a month of %d clusters billed' % clusters, '%.2f s' % (sum(taken) / len(taken)), '-'),
		('CSV of %d lines (%.0f MB)' % (rows, size / 1e6), '%.1f s, %.0f MB of memory' % (seconds, grown), 'at most %d MB' % MEMORY_WANTED)]
