"""A year of an organization whose clusters are made, scaled, paused, moved to other sizes of disk, and deleted at random, while the
service is killed: what its invoices say is calculated again here, from what was done and when, to the cent.

STEWARD_YEAR_CLUSTERS (12), STEWARD_YEAR_KILLS (4), STEWARD_YEAR_SEED: for longer runs."""
import calendar, collections, json, os, random, time

import pytest

import client, conftest
from client import ok, until
from test_clusters import body, path, region

CLUSTERS = int(os.environ.get('STEWARD_YEAR_CLUSTERS', 12))
KILLS = int(os.environ.get('STEWARD_YEAR_KILLS', 4))
SEED = os.environ.get('STEWARD_YEAR_SEED')
DAY, YEAR = 86400, 366 * 86400
CENT = 36 * 10 ** 15  # atoms of money: a billionth of the currency for a kilobyte-second of a gigabyte-hour
HOURS, GB_HOURS = 3600, 3600000000
PRICES = {  # (parts of the unit, [(from day, tiers [(from, nano)])])
	'AWS_INSTANCE_M10': (HOURS, [(0, [(0, 83333333)]), (200, [(0, 91234567)])]),
	'AWS_INSTANCE_M20': (HOURS, [(0, [(0, 201234567)])]),
	'AWS_INSTANCE_M30': (HOURS, [(0, [(0, 540000001), (1000, 490000007)])]),
	'AWS_STORAGE': (GB_HOURS, [(0, [(0, 153333), (10000, 101111), (50000, 77777)])]),
}


def decimal(nano):
	return '%d.%09d' % divmod(nano, 10 ** 9)


def date(day_of_epoch):
	return time.strftime('%Y-%m-%d', time.gmtime(day_of_epoch * DAY))


def book(first):
	"""`first`: the day from which the days of PRICES count."""
	skus = []
	for sku, (parts, times) in PRICES.items():
		prices = []
		for i, (day, tiers) in enumerate(times):
			rows = [{'from': at, 'price': decimal(nano), **({'to': tiers[k + 1][0]} if k + 1 < len(tiers) else {})}
				for k, (at, nano) in enumerate(tiers)]
			prices.append({'tiers': rows, **({'from': date(first + day)} if day else {}),
				       **({'to': date(first + times[i + 1][0])} if i + 1 < len(times) else {})})
		skus.append({'id': sku, 'description': sku, 'service': 'Storage' if 'STORAGE' in sku else 'Clusters', 'provider': 'AWS',
			     'unit': 'hours' if parts == HOURS else 'GB hours', 'prices': prices})
	return {'currency': 'USD', 'taxPercent': '8.875', 'skus': skus}


class Usage:
	"""What ran, by what was done."""

	def __init__(self):
		self.running, self.rows = {}, collections.Counter()  # name -> ({sku: parts a second}, since); (day, cluster, sku) -> parts

	def change(self, cluster, at, what):
		for sku, rate, since in self.running.pop(cluster, []):
			while since < at:
				end = min(at, since - since % DAY + DAY)
				self.rows[since // DAY, cluster, sku] += rate * (end - since)
				since = end
		if what:
			self.running[cluster] = [(sku, rate, at) for sku, rate in what.items()]

	def until(self, at):
		for cluster in list(self.running):
			self.change(cluster, at, {sku: rate for sku, rate, _ in self.running[cluster]})


def cost(sku, day, before, quantity, first):
	"""In atoms."""
	parts, times = PRICES[sku]
	tiers = [t for at, t in times if first + at <= day or at == 0][-1]
	total = 0
	for i, (at, nano) in enumerate(tiers):
		low = max(before, at * parts)
		high = min(before + quantity, tiers[i + 1][0] * parts) if i + 1 < len(tiers) else before + quantity
		total += max(0, high - low) * nano * (CENT * 100 // (parts * 10 ** 9))
	return total


def calculated(usage, first):
	"""Cents by month, and by (month, cluster) within a cent for each line."""
	months, sums = collections.defaultdict(int), collections.Counter()
	for (day, cluster, sku), quantity in sorted(usage.rows.items()):
		month = date(day)[:7]
		months[month] += cost(sku, day, sums[month, sku], quantity, first)
		sums[month, sku] += quantity
	return {month: (atoms + CENT // 2) // CENT for month, atoms in months.items()}


def months(until_now):
	"""Those of the year in which the test plays, and of what it adds."""
	days = range((until_now - YEAR - 60 * DAY) // DAY, until_now // DAY)
	return sorted({date(d)[:7] for d in days})


class World:
	def __init__(self, tmp, chance):
		self.chance, self.usage, self.sizes, self.made = chance, Usage(), {}, 0
		self.file, self.data, self.now = tmp / 'book.json', tmp / 'data', None
		self.first = int(time.time()) // DAY
		self.file.write_text(json.dumps(book(self.first)))
		self.start()
		self.groups = {}  # by the number of the cluster: a project has some of them

	def start(self):
		self.server = client.Server('--price-book', self.file, data_dir=self.data)
		self.server.control('engine', {'seconds': 0})
		self.api = self.server.digest  # a secret of an account ends within the year
		if self.now:
			self.server.advance(self.now - self.clock())
		self.now = self.clock()

	def clock(self):
		return calendar.timegm(time.strptime(self.server.control('clock', method='GET')['now'], '%Y-%m-%dT%H:%M:%SZ'))

	def kill(self):
		self.server.kill()
		client.shown.remove(self.server)
		self.start()

	def go(self, at):
		if at > self.now:
			self.server.advance(at - self.now)
			self.now = at
		self.server.refill()

	def path(self, name=None, made=None):
		number = int(name[1:] if name else made) // 20
		if number not in self.groups:
			self.groups[number] = self.api.project()['id']
		return path(self.groups[number], name)

	def state(self, name):
		answer = self.api.get(self.path(name))
		return None if answer.status_code == 404 else ok(answer)['stateName']

	def wait(self, name):
		until(lambda: self.state(name) in ('IDLE', None), what=name)

	def noted(self, name):
		"""What is running from now on."""
		size, gb, paused = self.sizes[name]
		what = {'AWS_STORAGE': 3 * gb * 10 ** 6}
		if not paused:
			what['AWS_INSTANCE_' + size] = 3
		self.usage.change(name, self.now, what)

	def create(self):
		name, size, gb = 'c%d' % self.made, self.chance.choice(['M10', 'M20', 'M30']), self.chance.choice([10, 40, 160])
		ok(self.api.post(self.path(made=self.made), json=body(name, [region(size=size, electableSpecs={
			'instanceSize': size, 'nodeCount': 3, 'diskSizeGB': gb})])), 201)
		self.made += 1
		self.wait(name)
		self.sizes[name] = (size, gb, False)
		self.noted(name)

	def change(self, name):
		size, gb, paused = self.sizes[name]
		if paused or self.chance.random() < 0.3:
			paused = not paused
			wanted = {'paused': paused}
		else:
			size, gb = self.chance.choice(['M10', 'M20', 'M30']), self.chance.choice([10, 40, 160])
			wanted = {'replicationSpecs': [{'regionConfigs': [region(electableSpecs={
				'instanceSize': size, 'nodeCount': 3, 'diskSizeGB': gb})]}]}
		ok(self.api.patch(self.path(name), json=wanted))
		self.wait(name)
		self.sizes[name] = (size, gb, paused)
		self.noted(name)

	def delete(self, name):
		ok(self.api.delete(self.path(name)), 202)
		self.wait(name)
		del self.sizes[name]
		self.usage.change(name, self.now, None)

	def step(self):
		dice = self.chance.random()
		if self.made < CLUSTERS and (dice < 0.4 or not self.sizes):
			self.create()
		elif self.sizes and dice < 0.85:
			self.change(self.chance.choice(sorted(self.sizes)))
		elif self.sizes:
			self.delete(self.chance.choice(sorted(self.sizes)))

	def invoices(self, statuses=''):
		where = '/orgs/%s/invoices?itemsPerPage=100%s' % (self.server.org, statuses)
		return {x['startDate'][:7]: x for x in ok(self.api.get(where))['results']}


@pytest.fixture
def world(tmp_path):
	seed = SEED or str(random.randrange(10 ** 9))
	print('STEWARD_YEAR_SEED=' + seed)
	w = World(tmp_path, random.Random(seed))
	yield w
	conftest.end(w.server)


def test_a_year(world):
	begin, steps = world.now, CLUSTERS * 5
	times = sorted(begin + world.chance.randrange(YEAR) for _ in range(steps))
	killed = set(world.chance.sample(range(steps), min(KILLS, steps)))
	for i, at in enumerate(times):
		world.go(at)
		if i in killed and i % 2:  # while it bills
			world.kill()
		world.step()
		if i in killed and i % 2 == 0:  # right after the change
			world.kill()
	world.go((begin + YEAR + 40 * DAY) // DAY * DAY + DAY // 2)  # not while a month is closed
	end = time.strftime('%Y-%m', time.gmtime(world.now))
	world.usage.until(world.now)
	until(lambda: world.invoices().get(end), what='the invoice of the last month', seconds=120)
	wanted = calculated(world.usage, world.first)
	wanted.pop(end, None)
	closed = {m: x for m, x in world.invoices().items() if x['statusName'] != 'PENDING'}
	first = min(min(wanted), *closed)  # an organization that has had nothing yet may have no invoice of that time
	assert sorted(closed) == [m for m in months(world.now) if first <= m < end]
	assert {m: x['subtotalCents'] for m, x in closed.items() if x['subtotalCents']} == {m: c for m, c in wanted.items() if c}
	for month, one in closed.items():
		assert one['salesTaxCents'] == (one['subtotalCents'] * 88750 + 500000) // 1000000
		assert one['amountBilledCents'] == one['subtotalCents'] + one['salesTaxCents']
		assert one['statusName'] == ('CLOSED' if one['subtotalCents'] else 'FREE'), month
		whole = ok(world.api.get('/orgs/%s/invoices/%s' % (world.server.org, one['id'])))
		assert sum(x['totalPriceCents'] for x in whole['lineItems']) == one['subtotalCents']
		quantities = collections.Counter()
		for x in whole['lineItems']:
			quantities[x['startDate'][:10], x['clusterName'], x['sku']] += x['quantity']
		theirs = {(date(d), c, s): q / PRICES[s][0] for (d, c, s), q in world.usage.rows.items() if date(d)[:7] == month}
		assert quantities == pytest.approx(theirs)
	assert [e['eventTypeName'] for e in ok(world.api.get('/orgs/%s/events?eventType=INVOICE_CLOSED&itemsPerPage=500' % world.server.org))
		['results']] == ['INVOICE_CLOSED'] * len(wanted), 'each that has lines is closed once'
