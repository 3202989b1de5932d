"""Access history on the simulated engine, where it is a function of the node and the clock."""
import calendar, re, time

import pytest

from client import ok, refused
from test_clusters import create, path, region, settle

FIELDS = {'authResult', 'authSource', 'groupId', 'hostname', 'ipAddress', 'logLine', 'timestamp', 'username'}
HOURS = 4


def ms(text):
	return calendar.timegm(time.strptime(text, '%Y-%m-%dT%H:%M:%SZ')) * 1000


class History:
	def __init__(self, server, group, name):
		self.server, self.group, self.name = server, group, name

	def url(self, query='', host=None, name=None):
		below = 'processes/' + host if host else 'clusters/' + (name or self.name)
		return '/groups/%s/dbAccessHistory/%s%s' % (self.group, below, query and '?' + query)

	def ask(self, *args, **more):
		return self.server.get(self.url(*args, **more))

	def get(self, *args, **more):
		doc = ok(self.ask(*args, **more))
		assert set(doc) == {'accessLogs'}
		return doc['accessLogs']

	def hosts(self):
		return [p['hostname'] for p in ok(self.server.get('/groups/%s/processes' % self.group))['results']]


@pytest.fixture(scope='module')
def history(server):
	server.control('engine', {})
	group = server.project()['id']
	create(server, group, 'shop')
	server.advance(HOURS * 3600)
	return History(server, group, 'shop')


def test_entries(history):
	entries = history.get()
	assert abs(len(entries) - 3 * 6 * HOURS) <= 6, 'one every ten minutes for each of three nodes'
	times = [ms(e['timestamp']) for e in entries]
	assert times == sorted(times, reverse=True) and {e['hostname'] for e in entries} == set(history.hosts())
	for e in entries:
		assert set(e) == (FIELDS if e['authResult'] else FIELDS | {'failureReason'})
		assert e['groupId'] == history.group and e['username'] == 'app' and e['authSource'] == 'postgres'
		assert re.fullmatch(r'192\.0\.2\.\d+', e['ipAddress'])
		assert 'SQLSTATE 28' in e['failureReason'] if not e['authResult'] else 'TLSv1.3' in e['logLine']
	assert 0 < sum(not e['authResult'] for e in entries) < len(entries) / 2
	assert history.get() == entries, 'the same whenever it is asked'


def test_one_host(history):
	entries = history.get()
	for host in history.hosts():
		assert history.get(host=host) == [e for e in entries if e['hostname'] == host]


def test_filters(history):
	entries = history.get()
	for value in ('true', 'false'):
		assert history.get('authResult=' + value) == [e for e in entries if e['authResult'] == (value == 'true')]
	address = entries[5]['ipAddress']
	assert history.get('ipAddress=' + address) == [e for e in entries if e['ipAddress'] == address]
	assert history.get('ipAddress=198.51.100.1') == [] == history.get('ipAddress=2001:db8:0:0:0:0:0:1')
	start, end = ms(entries[20]['timestamp']), ms(entries[3]['timestamp'])
	inside = [e for e in entries if start <= ms(e['timestamp']) <= end]
	assert len(inside) >= 10 and history.get('start=%d&end=%d' % (start, end)) == inside
	assert history.get('start=%d' % start) == [e for e in entries if ms(e['timestamp']) >= start]
	assert history.get('end=%d' % end) == [e for e in entries if ms(e['timestamp']) <= end]
	assert history.get('start=%d&end=%d&authResult=true&nLogs=2' % (start, end)) == [e for e in inside if e['authResult']][:2]


def test_bounds(history):
	entries = history.get()
	assert history.get('nLogs=7') == entries[:7] and history.get('nLogs=0') == []
	assert history.get('nLogs=4', host=history.hosts()[1]) == [e for e in entries if e['hostname'] == history.hosts()[1]][:4]
	for query in ('nLogs=20001', 'nLogs=-1', 'nLogs=x', 'start=5', 'end=x', 'authResult=maybe', 'ipAddress=nowhere',
		      'start=1300000000000&end=1200000000000'):
		refused(history.ask(query), 400, 'VALIDATION_ERROR')
		refused(history.ask(query, host=history.hosts()[0]), 400, 'VALIDATION_ERROR')


def test_who_is_not_there(server, history):
	refused(history.ask(name='none'), 404)
	host = history.hosts()[0]
	for wrong in ('none', host.split('.')[0], host + ':27017', 'x' + host, host.replace('-00.', '-09.')):
		refused(history.ask(host=wrong), 404)
	other = History(server, server.project()['id'], 'shop')
	refused(other.ask(), 404)
	refused(other.ask(host=host), 404)


def test_a_node_that_does_not_run(server, history):
	group = server.project()['id']
	mine = History(server, group, 'sleeps')
	create(server, group, 'sleeps', [region(nodes=3)])
	server.advance(3600)
	ok(server.patch(path(group, 'sleeps'), json={'paused': True}))
	settle(server, group, 'sleeps')
	before = mine.get()
	server.advance(3600)
	assert before and mine.get() == before, 'nobody comes while it is paused'
	ok(server.patch(path(group, 'sleeps'), json={'paused': False}))
	settle(server, group, 'sleeps')
	server.advance(3600)
	after = mine.get()
	assert after[-len(before):] == before and len(after) > len(before) + 10
