"""What ran is metered to the second, on the virtual clock: through changes of every kind, kill -9 and moves to another organization,
against a model that adds up what the API showed. And the price book: its SKUs, and what it is refused for."""
import calendar, collections, json, random, signal, subprocess, time

import pytest

from client import binary, jobs_done, ok, refused, unique, until

GB = 1000000  # in kilobytes


def now(server):
	return calendar.timegm(time.strptime(server.control('clock', method='GET')['now'], '%Y-%m-%dT%H:%M:%SZ'))


def documents(server, kind):
	return [(i, parent, json.loads(body)) for i, parent, body in
		server.rows("SELECT id, parent, body FROM doc WHERE kind = '%s'" % kind)]


def metered(server, org=None):
	"""Units times seconds by SKU, up to the mark; and the mark."""
	sums, seen = collections.Counter(), max([d['seen'] for _, _, d in documents(server, 'meter_mark')], default=0)
	for _, parent, d in documents(server, 'meter'):
		month = time.strftime('%Y-%m', time.gmtime(d['from']))
		assert parent.endswith('/' + month) and d['to'] >= d['from']
		if org in (None, parent.split('/')[0]):
			sums[d['sku']] += d['amount'] * ((d['to'] - d['from']) or 1)
	for _, parent, doc in documents(server, 'meter_open'):
		for d in doc['open'].values():
			if org in (None, parent):
				sums[d['sku']] += d['amount'] * max(0, seen - d['from'])
	return +sums, seen


def marked(server):
	"""What is metered once the mark has come to now."""
	at = now(server)
	server.advance(61)  # the job is due again, and marks that moment
	found = until(lambda: (lambda m: m[1] >= at + 61 and m)(metered(server)))
	assert found[1] == at + 61
	return found[0]


def specs(size='M10', disk=10, readers=0, region='US_EAST_1'):
	config = {'providerName': 'AWS', 'regionName': region, 'priority': 7,
		'electableSpecs': {'instanceSize': size, 'nodeCount': 3, 'diskSizeGB': disk}}
	if readers:
		config['readOnlySpecs'] = {'instanceSize': size, 'nodeCount': readers, 'diskSizeGB': disk}
	return [{'regionConfigs': [config]}]


class Model:
	"""Adds up what each cluster is, from one moment of the clock to the next."""

	def __init__(self, server, group):
		self.server, self.group, self.rates, self.sums = server, group, {}, collections.Counter()
		self.at = now(server)

	def to(self, at):
		for rate in self.rates.values():
			for sku, amount in rate.items():
				self.sums[sku] += amount * (at - self.at)
		self.at = at

	def advance(self, seconds):
		self.server.advance(seconds)
		jobs_done(self.server)
		self.server.refill()
		self.to(self.at + seconds)

	def path(self, name):
		return '/groups/%s/clusters/%s' % (self.group, name)

	def settled(self, name):
		until(lambda: ok(self.server.get(self.path(name)))['stateName'] == 'IDLE')

	def is_now(self, name, size='M10', disk=10, readers=0, paused=False):
		rate = collections.Counter({'AWS_STORAGE': (3 + readers) * disk * GB})
		if not paused:
			rate['AWS_INSTANCE_' + size] = 3
			rate['AWS_READ_ONLY_' + size] = readers
		self.rates[name] = +rate

	def create(self, name, **shape):
		ok(self.server.post('/groups/%s/clusters' % self.group, json={'name': name, 'clusterType': 'REPLICASET',
			'replicationSpecs': specs(**shape)}), 201)
		self.settled(name)
		self.is_now(name, **shape)

	def change(self, name, **shape):
		paused = shape.pop('paused', None)
		ok(self.server.patch(self.path(name), json={'paused': paused} if paused is not None else {'replicationSpecs': specs(**shape)}))
		self.settled(name)
		self.is_now(name, paused=bool(paused), **shape)

	def remove(self, name):
		assert self.server.delete(self.path(name)).status_code in (202, 204)
		until(lambda: self.server.get(self.path(name)).status_code == 404)
		del self.rates[name]

	def killed(self, start):
		"""kill -9, and another process, whose clock begins anew before ours and comes to where it was."""
		self.server.kill()
		self.server = start(data_dir=self.server.data_dir)
		self.server.control('engine', {'seconds': 0})
		behind = self.at - now(self.server)
		assert behind > 0
		self.server.advance(behind)
		jobs_done(self.server)


def begin(start):
	server = start()
	server.control('engine', {'seconds': 0})
	server.advance(86400)  # room for the clocks of those that come after
	return Model(server, server.group)


def test_to_the_second(start_server):
	"""A month of clusters that are made, scaled, paused and deleted, with kills on the way."""
	model, chance = begin(start_server), random.Random(18)
	model.advance(max(0, 15 - time.gmtime(model.at).tm_mday) * 86400)  # whatever day it is, the end of a month comes
	shapes = {}
	for step in range(26):
		name = 'm%d' % chance.randrange(4)
		shape = {'size': chance.choice(['M10', 'M20', 'M30']), 'disk': chance.choice([10, 20, 40]), 'readers': chance.randrange(2)}
		if name not in shapes:
			model.create(name, **shape)
			shapes[name] = shape
		elif model.rates[name].keys() == {'AWS_STORAGE'}:
			model.change(name, paused=False)
			model.is_now(name, **shapes[name])
		elif chance.random() < 0.3:
			model.change(name, paused=True)
			model.is_now(name, paused=True, **shapes[name])
		elif chance.random() < 0.2:
			model.remove(name)
			del shapes[name]
		else:
			model.change(name, **shape)
			shapes[name] = shape
		model.advance(chance.randrange(1, 200000))
		if step in (7, 15, 21):
			model.killed(start_server)
	for name in list(shapes)[:-1]:
		model.remove(name)
	sums = marked(model.server)
	model.to(model.at + 61)
	assert sums == +model.sums
	assert len({parent for _, parent, _ in documents(model.server, 'meter')}) > 1  # it went over the end of a month


def test_from_when_it_was_done(start_server):
	"""What the engine did while nobody looked is metered from when it was done, not from when that was noted."""
	server = start_server()
	server.control('engine', {'seconds': 30})
	path = '/groups/%s/clusters' % server.group
	begun = now(server)
	ok(server.post(path, json={'name': 'late', 'clusterType': 'REPLICASET', 'replicationSpecs': specs()}), 201)
	jobs_done(server)
	server.advance(3600)
	until(lambda: ok(server.get(path + '/late'))['stateName'] == 'IDLE')
	opened = documents(server, 'meter_open')[0][2]
	assert {d['from'] for d in opened['open'].values()} == {begun + 30}
	assert server.delete(path + '/late').status_code in (202, 204)
	jobs_done(server)
	server.advance(3600)
	until(lambda: server.get(path + '/late').status_code == 404)
	assert {(d['from'], d['to']) for _, _, d in documents(server, 'meter')} == {(begun + 30, begun + 3610)}
	assert documents(server, 'meter_open') == []


def test_snapshots_and_moves(start_server):
	"""A snapshot is metered while it is kept, and by the organization that its project is in."""
	model = begin(start_server)
	here, there = model.server.seed({'name': unique('here'), 'projects': ['moves'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]}, {'name': unique('there'), 'projects': [], 'principals': [
		{'type': 'apiKey', 'roles': ['ORG_OWNER']}]})
	api, group, key = model.server.api_for(here['principals'][0]), here['projects'][0]['id'], there['principals'][0]
	path = '/groups/%s/clusters' % group
	ok(api.post(path, json={'name': 'kept', 'clusterType': 'REPLICASET', 'backupEnabled': True, 'replicationSpecs': specs()}), 201)
	until(lambda: ok(api.get(path + '/kept'))['stateName'] == 'IDLE')
	snapshot = ok(api.post(path + '/kept/backup/snapshots', json={'retentionInDays': 30}))['id']
	until(lambda: ok(api.get(path + '/kept/backup/snapshots/' + snapshot))['status'] == 'completed')
	begun = now(model.server)
	kept = {k: d for _, _, doc in documents(model.server, 'meter_open') for k, d in doc['open'].items() if k.startswith('snapshot/')}
	(one,) = kept.values()
	assert one['from'] == begun and one['sku'] == 'AWS_BACKUP_STORAGE' and one['region'] == 'US_EAST_1' and one['amount'] > 0
	assert metered(model.server, here['id'])[0]['AWS_SNAPSHOT'] == 1
	model.server.advance(1000)
	ok(api.post('/groups/%s:migrate' % group, json={'destinationOrgId': there['id'], 'destinationOrgPublicApiKey': key['publicKey'],
		'destinationOrgPrivateApiKey': key['privateKey']}))
	api = model.server.api_for(key)
	model.server.advance(500)
	assert api.delete(path + '/kept/backup/snapshots/' + snapshot).status_code == 204
	old, new = metered(model.server, here['id'])[0], metered(model.server, there['id'])[0]
	assert old['AWS_BACKUP_STORAGE'] == 1000 * one['amount'] and new['AWS_BACKUP_STORAGE'] == 500 * one['amount']
	assert old['AWS_INSTANCE_M10'] == 3000 and old['AWS_STORAGE'] == 30 * GB * 1000
	assert api.delete(path + '/kept').status_code in (202, 204)
	until(lambda: api.get(path + '/kept').status_code == 404)
	assert metered(model.server, there['id'])[0]['AWS_INSTANCE_M10'] == 1500 and documents(model.server, 'meter_open') == []


def test_skus(server):
	page = ok(server.get('/skus?itemsPerPage=500'))
	ids = [s['id'] for s in page['results']]
	assert page['totalCount'] == len(ids) > 400 and ids == sorted(ids) and 'AWS_INSTANCE_M10' in ids
	one = ok(server.get('/skus/AWS_INSTANCE_M10'))
	assert one in page['results'] and one['description']
	second = ok(server.get('/skus?itemsPerPage=2&pageNum=2'))
	assert [s['id'] for s in second['results']] == ids[2:4]
	refused(server.get('/skus/AWS_INSTANCE_M11'), 404, 'SKU_NOT_FOUND')
	refused(server.anonymous.get('/skus'), 401)
	refused(server.anonymous.get('/skus/AWS_INSTANCE_M10'), 401)


def book(price='0.1', **more):
	return {'currency': 'EUR', 'skus': [{'id': 'AWS_INSTANCE_M10', 'description': 'A node', 'service': 'Clusters', 'provider': 'AWS',
		'unit': 'hours', 'prices': [{'price': price}]}], **more}


def test_price_book(start_server, tmp_path):
	file = tmp_path / 'prices.json'
	file.write_text(json.dumps(book(0.1)))
	wrong = subprocess.run([binary(), 'serve', '--data', str(tmp_path / 'd'), '--listen', '127.0.0.1:0', '--price-book', str(file)],
			       capture_output=True, text=True, timeout=120)
	assert wrong.returncode != 0 and '%s: skus[0].prices[0].price: must be a text, so that it is exact' % file in wrong.stderr
	file.write_text(json.dumps(book()))
	server = start_server('--price-book', file)
	assert [s['id'] for s in ok(server.get('/skus'))['results']] == ['AWS_INSTANCE_M10']
	more = book('0.2')
	more['skus'].append({**more['skus'][0], 'id': 'AWS_ROUTER_M10'})
	file.write_text(json.dumps(more))
	server.signal(signal.SIGHUP)
	until(lambda: ok(server.get('/skus'))['totalCount'] == 2)
	file.write_text('{"currency": "EUR"')
	server.signal(signal.SIGHUP)
	until(lambda: 'the old one stays in force' in server.stderr)
	assert ok(server.get('/skus'))['totalCount'] == 2
	kept = [d for _, _, d in documents(server, 'price_book')]
	assert [d['book']['skus'][0]['prices'][0]['price'] for d in kept] == ['0.1', '0.2'] and kept[0]['from'] == 0
	assert kept[1]['from'] // 1000 == now(server) // 86400 * 86400 + 86400
