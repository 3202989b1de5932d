"""Real servers are metered by when their processes began and ended, which the kernel tells: of a cluster that is made, whose service
and one of whose servers is killed, that is paused, resumed and deleted. And by what they send to their clients."""
import json, os, pathlib, signal, time
from contextlib import closing

import psycopg2
import pytest

from client import cli, ok
from databases import shape, until
from test_collection_stats_postgres import MODULE
from test_measurements_postgres import PASSWORD, USER

SLACK = 1.0  # of a second: measurements are whole ones
BOOT = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


class Watch:
	"""The servers of a place: when each process began, and between which two looks it ended."""

	def __init__(self, place):
		self.place, self.runs = place, {}

	def look(self):
		now = time.time()
		for file in (self.place.data / 'engine').rglob('postmaster.pid'):
			try:
				pid = int(file.read_text().split('\n')[0])
				start = int(pathlib.Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()[19])
			except (OSError, ValueError, IndexError):
				continue
			run = self.runs.setdefault((pid, start), {'from': BOOT + start / os.sysconf('SC_CLK_TCK')})
			run['alive'] = now
		return self.runs


def metered(server, kind, prefix='node/'):
	docs = [json.loads(body) for (body,) in server.rows("SELECT body FROM doc WHERE kind = '%s'" % kind)]
	if kind == 'meter':
		return [d for d in docs if d['key'].startswith(prefix)]
	return [{'key': k, **e} for d in docs for k, e in d['open'].items() if k.startswith(prefix)]


def begins_match(measurements, runs):
	"""Each measurement with a process of its own that began in that second."""
	left = sorted(r['from'] for r in runs)
	for m, began in zip(sorted(measurements, key=lambda m: m['from']), left):
		assert -SLACK <= began - m['from'] <= 1 + SLACK, (m, began)
	assert len(measurements) == len(left)


MB = 1000 * 1000


def connected(string):
	try:
		return psycopg2.connect(string, user=USER, password=PASSWORD)
	except psycopg2.OperationalError:
		return None  # a standby that has not heard of the user


def client_reads(string, bytes_):
	with closing(until(lambda: connected(string), 60)) as c, c.cursor() as cursor:
		cursor.execute("select repeat('x', 9989) from generate_series(1, %d)" % (bytes_ // 10000))  # a row has 11 bytes more


def sent_is(server, megabytes):
	"""What was metered as sent comes to be this, to the percent."""
	def found():
		sent = metered(server, 'meter', 'sent/')
		return sent if sum(m['amount'] for m in sent) >= megabytes * 990 else None
	sent = until(found, 150) if MODULE.exists() else metered(server, 'meter', 'sent/')
	assert sum(m['amount'] for m in sent) <= megabytes * 1010, sent
	assert {m['sku'] for m in sent} <= {'AWS_DATA_TRANSFER_OUT'} and all(m['from'] == m['to'] for m in sent)
	return sent


def lasts_seconds(measurements):
	"""What lasts no second is not measured."""
	until(lambda: time.time() >= 2 + max(m['from'] for m in measurements))


@pytest.fixture(scope='module')
def place(start_place):
	return start_place()


def test_a_cluster_is_metered_as_it_ran(place):
	server, watch = place.server, Watch(place)
	path = '/groups/%s/clusters' % server.group
	ok(server.post(path, json={'name': 'real', **shape(3)}), 201)
	ok(server.post('/groups/%s/databaseUsers' % server.group, json={'username': USER, 'password': PASSWORD, 'databaseName': 'admin',
		'groupId': server.group, 'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
	ok(server.post('/groups/%s/accessList' % server.group, json=[{'ipAddress': '127.0.0.1'}]))
	string = place.wait(path + '/real')['connectionStrings']['standard']
	first = list(watch.look().values())
	opened = metered(server, 'meter_open')
	begins_match(opened, first)
	assert {m['sku'] for m in opened} == {'AWS_INSTANCE_M10'} and metered(server, 'meter') == []
	assert len(metered(server, 'meter_open', 'disk/')) == 3

	client_reads(string, 10 * MB)
	with closing(connected(string)) as c, c.cursor() as cursor:
		cursor.execute("create table big as select repeat(md5(n::text), 30) as t from generate_series(1, 10000) n")  # goes to standbys
		c.commit()
	place.kill()  # the databases go on, and so do their measurements
	client_reads(string, 10 * MB)
	client_reads(string.replace('=read-write', '=standby'), 5 * MB)
	server = place.start()
	place.wait(path + '/real')
	sent = sent_is(server, 25)
	assert len({m['key'] for m in sent if m['amount'] > 1000}) == 2 or not MODULE.exists()
	ids = lambda found: sorted(m['id'] for m in found)
	marks = dict(server.rows("SELECT id, body FROM doc WHERE kind = 'meter_mark'"))
	(subject,) = [json.loads(body) for (body,) in server.rows("SELECT body FROM doc WHERE kind = 'meter_open'")]
	assert json.loads(marks[subject['host'] or 'service'])['seen'] >= max(m['from'] for m in opened)  # it was looked at again
	assert ids(metered(server, 'meter_open')) == ids(opened) and metered(server, 'meter') == []

	# A server ends by itself and is started again: what lies between is not metered twice, and no more than that is missing.
	file = next((place.data / 'engine').glob('*/*shard-00-01/data/postmaster.pid'))
	key, killed = 'node/' + file.parts[-3], time.time()
	os.kill(int(file.read_text().split()[0]), signal.SIGKILL)
	# Noticed at once as a rule, or by the look that is taken each minute: metered from its start either way.
	now = until(lambda: [m for m in metered(server, 'meter_open') if m['key'] == key and m['since'] > killed * 1000], 150)[0]
	before = [m for m in metered(server, 'meter') if m['key'] == key]
	assert len(before) <= 1 and all(killed - 1 - SLACK <= m['to'] <= now['from'] for m in before), (killed, before, now)
	assert before or now['id'] in ids(opened)
	place.wait(path + '/real')
	opened, over = metered(server, 'meter_open'), ids(before)
	lasts_seconds(opened)

	watch.look()
	asked = time.time()
	ok(server.patch(path + '/real', json={'paused': True}))
	place.wait(path + '/real')
	done = time.time()
	until(lambda: metered(server, 'meter_open') == [])
	ended = [m for m in metered(server, 'meter') if m['id'] not in over]
	assert ids(ended) == ids(opened) and all(asked - SLACK - 1 <= m['to'] <= done + SLACK for m in ended), (asked, done, ended)
	assert len(metered(server, 'meter_open', 'disk/')) == 3  # paused: the disks alone

	before = set(watch.runs)
	ok(server.patch(path + '/real', json={'paused': False}))
	place.wait(path + '/real')
	watch.look()
	again = metered(server, 'meter_open')
	begins_match(again, [r for k, r in watch.runs.items() if k not in before])
	sent_is(server, 25)  # servers were killed and stopped, and their counters have gone on
	assert len(server.rows("SELECT 1 FROM doc WHERE kind = 'meter_count'")) == bool(sent)
	assert not set(ids(again)) & set(ids(opened))
	lasts_seconds(again)

	asked = time.time()
	assert server.delete(path + '/real').status_code in (202, 204)
	place.wait(path + '/real', None)
	done = time.time()
	last = [m for m in metered(server, 'meter') if m['id'] in ids(again)]
	assert len(last) == 3 and all(asked - SLACK - 1 <= m['to'] <= done + SLACK for m in last)
	assert metered(server, 'meter_open') == metered(server, 'meter_open', 'disk/') == []
	assert server.rows("SELECT 1 FROM doc WHERE kind = 'meter_count'") == []
	sent_is(server, 25)
	days = {time.strftime('%Y-%m-%d', time.gmtime(m['from'])) for m in sent}
	evidence = [json.loads(x) for day in days for x in cli('billing', 'evidence', '--org', server.org, '--day', day, '--cluster', 'real',
								 '--data', server.data_dir).stdout.splitlines()]
	assert [x['amount'] for x in evidence if x['sku'] == 'AWS_DATA_TRANSFER_OUT'] or not sent
