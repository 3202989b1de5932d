"""What goes on after its call: downloads. They ask the gates' questions, end with the rights of who asked for them, have to be read
at a least rate, and nobody takes all their places."""
import contextlib
import socket

import pytest

from client import Api, Bearer, Wire, ok, refused, unique, until
from test_backups import create, path, restore, take

LARGE = 256 << 20  # more than lies between a client that does not read and the service


class Site:
	"""An organization with a backup, whose downloads are large; `key` asks for them."""

	def __init__(self, server, keys=1, **more):
		project = unique('d')
		self.server = server
		org = server.seed({'name': unique('o'), 'projects': [project], 'principals': [
			{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
			*[{'type': 'apiKey', 'projectRoles': [{'project': project, 'roles': ['GROUP_BACKUP_MANAGER']}], **more} for _ in range(keys)]]})[0]
		self.org, self.group = org['id'], org['projects'][0]['id']
		self.owner, self.keys = server.api_for(org['principals'][0]), org['principals'][1:]
		self.key = self.keys[0]
		self.name = create(self.owner, self.group)
		self.snapshot = take(self.owner, self.group, self.name)['id']

	def job(self, by=None):
		return restore(by or self.server.api_for(self.key), self.group, self.name, deliveryType='download', snapshotId=self.snapshot)

	def link(self, by=None):
		url, = self.job(by)['deliveryUrl']
		return url


@pytest.fixture
def large(server):
	server.control('engine', {'downloadBytes': LARGE})
	yield
	server.control('engine', {})


class Reader(Wire):
	"""A download that has begun, and is not read on by itself."""

	def __init__(self, server, url):
		super().__init__(server)
		self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
		self.socket.sendall(self.encode('GET', url[url.index('/downloads/'):]))
		while b'\r\n\r\n' not in self.buffer:
			self._more()
		self.status = int(self.buffer.split(b' ')[1])
		self.got = 0

	def rest(self):
		"""How much comes until the connection ends. A whole download says so by its last chunk, and is kept alive."""
		end = b''
		with contextlib.suppress(ConnectionError, OSError):
			while not end.endswith(b'\r\n0\r\n\r\n'):
				data = self.socket.recv(1 << 20)
				if not data:
					return self.got
				self.got += len(data)
				end = (end + data)[-7:]
		return self.got


def test_a_link_obeys_the_access_list_of_its_key(server):
	"""The link was used from anywhere: the API answered 403 to the same caller."""
	site = Site(server)
	api, url = server.api_for(site.key), site.link()
	assert server.anonymous.get(url).status_code == 200
	ok(site.owner.post('/orgs/%s/apiKeys/%s/accessList' % (site.org, site.key['id']), json=[{'ipAddress': '192.0.2.1'}]))
	refused(api.get(path(site.group, site.name)), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST')
	refused(server.anonymous.get(url), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST')
	refused(server.anonymous.get(url, headers={'X-Forwarded-For': '192.0.2.1'}), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST')
	ok(site.owner.post('/orgs/%s/apiKeys/%s/accessList' % (site.org, site.key['id']), json=[{'cidrBlock': '127.0.0.0/8'}]))
	assert server.anonymous.get(url).status_code == 200


def test_a_link_obeys_the_demand_for_access_lists(server):
	site = Site(server)
	url = site.link()
	own = ok(site.owner.post('/orgs/%s/apiKeys' % site.org, json={'desc': 'x', 'roles': ['ORG_OWNER']}))
	ok(site.owner.post('/orgs/%s/apiKeys/%s/accessList' % (site.org, own['id']), json=[{'ipAddress': '127.0.0.1'}]))
	listed = server.api_for({'type': 'apiKey', **own})
	ok(listed.patch('/orgs/%s/settings' % site.org, json={'apiAccessListRequired': True}))
	refused(server.anonymous.get(url), 403, 'IP_ADDRESS_NOT_ON_ACCESS_LIST')


@pytest.mark.parametrize('end', ['key', 'role', 'address', 'job'])
def test_a_begun_download_ends_with_the_right_to_it(server, large, end):
	site = Site(server)
	job = site.job()
	before = server.stderr.count('no right to it any more')
	with Reader(server, job['deliveryUrl'][0]) as reader:
		assert reader.status == 200
		key = '/orgs/%s/apiKeys/%s' % (site.org, site.key['id'])
		if end == 'key':
			ok(site.owner.delete(key), 204)
		elif end == 'role':
			ok(site.owner.delete('/groups/%s/apiKeys/%s' % (site.group, site.key['id'])), 204)
		elif end == 'address':
			ok(site.owner.post(key + '/accessList', json=[{'ipAddress': '192.0.2.1'}]))
		else:
			ok(site.owner.delete(path(site.group, site.name, '/restoreJobs/' + job['id'])), 204)
		until(lambda: server.stderr.count('no right to it any more') > before, what='the end of the download')
		assert reader.rest() < LARGE


def test_a_link_that_somebody_else_reads_is_the_readers(server):
	"""Whoever could read a job had the link of who had asked for it, and went on with that when the own rights had ended."""
	site = Site(server, keys=2)
	job = site.job()
	own, = job['deliveryUrl']
	other = server.api_for(site.keys[1])
	read = path(site.group, site.name, '/restoreJobs/' + job['id'])
	assert ok(server.api_for(site.key).get(read))['deliveryUrl'] == [own]
	theirs, = ok(other.get(read))['deliveryUrl']
	assert theirs == ok(other.get(path(site.group, site.name, '/restoreJobs')))['results'][0]['deliveryUrl'][0]
	get = lambda url: server.anonymous.get(url).status_code
	assert (get(own), get(theirs)) == (200, 200)
	head, token = theirs.split('/downloads/')
	for bad in (token[:-1] + ('0' if token[-1] != '0' else '1'), token.replace('.0.', '.1.'), token.replace('.0.', '.0.A'), token.replace('.0.', '.0..')):
		assert get(head + '/downloads/' + bad) == 404, bad
	ok(site.owner.delete('/groups/%s/apiKeys/%s' % (site.group, site.keys[1]['id'])), 204)
	assert (get(own), get(theirs)) == (200, 403)
	ok(site.owner.delete('/orgs/%s/apiKeys/%s' % (site.org, site.key['id'])), 204)
	assert (get(own), get(theirs)) == (403, 403)
	mine, = ok(site.owner.get(read))['deliveryUrl']  # the job goes on for those who may
	assert get(mine) == 200


@pytest.mark.parametrize('begun', [False, True])
def test_links_end_with_the_secret_that_asked_for_them(server, large, begun):
	"""A secret that leaked is revoked: the links that were made with it went on, for up to 90 days."""
	site = Site(server)
	accounts = '/orgs/%s/serviceAccounts' % site.org
	made = ok(site.owner.post(accounts, json={'name': 'a', 'description': 'd', 'roles': ['ORG_OWNER'], 'secretExpiresAfterHours': 8}), 201)
	account, more = '%s/%s/secrets' % (accounts, made['clientId']), {'secretExpiresAfterHours': 8}
	other = ok(site.owner.post(account, json=more), 201)

	def signed(secret):
		answer = server.anonymous.post('/api/oauth/token', data={'grant_type': 'client_credentials'}, auth=(made['clientId'], secret))
		return Api(server, Bearer(ok(answer)['access_token']))
	leaked, kept = signed(made['secrets'][0]['secret']), signed(other['secret'])
	feeds = [ok(api.get('/groups/%s/activityFeed' % site.group))['link'] for api in (leaked, kept)]
	url = site.link(leaked)
	before = server.stderr.count('no right to it any more')
	with contextlib.ExitStack() as open_ones:
		reader = open_ones.enter_context(Reader(server, url)) if begun else None
		ok(site.owner.delete('%s/%s' % (account, made['secrets'][0]['id'])), 204)
		if reader:
			until(lambda: server.stderr.count('no right to it any more') > before, what='the end of the download')
			assert reader.rest() < LARGE
	refused(server.anonymous.get(url), 403, 'DOWNLOAD_LINK_REVOKED')
	refused(server.anonymous.get(feeds[0]), 403, 'FEED_LINK_REVOKED')
	assert server.anonymous.get(feeds[1]).status_code == 200


def test_a_download_that_is_read_slowly_ends(server, large):
	"""Any byte renewed its deadline: 8 KB a second kept a place for ever."""
	site = Site(server)
	before = server.stderr.count('reads too slowly')
	with Reader(server, site.link()) as reader:
		def passes():
			reader.got += len(reader.socket.recv(4096))
			server.advance(16)
			return server.stderr.count('reads too slowly') > before
		until(passes, what='the end of the download', longest=0.5)
		assert reader.rest() < LARGE


def test_a_download_has_a_last_moment(server, large):
	site = Site(server)
	url = site.link()
	before = server.stderr.count('it took too long') + server.stderr.count('reads too slowly')
	with Reader(server, url) as reader:
		server.advance(25 * 3600)
		until(lambda: server.stderr.count('it took too long') + server.stderr.count('reads too slowly') > before, what='the end of the download')
		assert reader.rest() < LARGE


def test_downloads_are_shared(server, large):
	"""Three organizations took all sixteen places: others were told to come again, for ever."""
	first, second = Site(server, keys=3), Site(server)
	with contextlib.ExitStack() as open_ones:
		def begin(url):
			return open_ones.enter_context(Reader(server, url)).status
		urls = [first.link(server.api_for(k)) for k in first.keys]
		statuses = [begin(urls[0]) for _ in range(9)]
		assert statuses == [200] * 8 + [429], 'one caller has an eighth'
		assert [begin(urls[1]) for _ in range(9)] == [200] * 8 + [429]
		assert begin(urls[2]) == 429, 'an organization has a quarter'
		assert begin(second.link()) == 200
	until(lambda: server.anonymous.head(urls[2]).status_code == 200)
