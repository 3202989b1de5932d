"""The logs of real servers, in a bucket and at a service: whole, byte for byte, whatever ends meanwhile."""
import gzip, json, os, pathlib, re, signal, sys

import pytest

import receivers
from client import ok
from databases import until
from test_access_history_postgres import World

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import s3_server  # noqa: E402

RANGE = re.compile(r'^.*/[0-9a-f]{24}-(\d{16})-(\d{16})\.json\.gz$')
LONG = 1500000  # bytes of a line that is longer than what is read at once
KILLS = 20
PRIMARY, SECONDARY = 'REPLICA_PRIMARY', 'REPLICA_SECONDARY'


class Exported(World):
	def __init__(self, place, receiver, stores):
		made = '/groups/%s/logIntegrations' % place.server.group
		for form in ({'type': 'S3_LOG_EXPORT', 'bucketName': s3_server.BUCKET, 'iamRoleId': '5f0000000000000000000001', 'prefixPath': 'real'},
			     {'type': 'OTEL_LOG_EXPORT', 'otelEndpoint': receiver.url, 'otelSuppliedHeaders': [{'name': 'x-key', 'value': 'k'}]}):
			ok(place.server.post(made, json={**form, 'logTypes': ['DB', 'DB_AUDIT']}), 201)
		self.receiver, self.stores = receiver, stores
		super().__init__(place)

	def again(self):
		self.place.kill()
		self.server = self.place.start()

	def log(self, process):
		answer = self.server.get(self.path('clusters/%s/logs/db.gz?startDate=1199145600' % process['hostname']))
		return gzip.decompress(ok_bytes(answer))

	def objects(self, process):
		"""What is in the bucket, in order; ranges leave no gap and meet nowhere."""
		below, at, text = 'real/%s/shop/%s/DB/' % (self.server.group, process['hostname'].split('.')[0]), 0, b''
		for name in self.stores.say('names').split():
			if name.startswith(below):
				begin, end = map(int, RANGE.match(name).groups())
				assert begin == at < end, name
				at, text = end, text + gzip.decompress(bytes.fromhex(self.stores.say('get ' + name)))
		return text

	def records(self, process):
		"""What the service got of the node; a delivery that came twice, because its answer was lost, has one id."""
		text, uids = b'', []
		for r in {r.headers['X-Steward-Delivery']: r for r in list(self.receiver.taken)}.values():
			for resource in json.loads(gzip.decompress(r.body))['resourceLogs']:
				about = {a['key']: a['value']['stringValue'] for a in resource['resource']['attributes']}
				if about['host.name'] != process['hostname']:
					continue
				for record in resource['scopeLogs'][0]['logRecords']:
					more = {a['key']: a['value']['stringValue'] for a in record['attributes']}
					text += record['body']['stringValue'].encode() + (b'' if 'log.continues' in more else b'\n')
					uids.append(more['log.record.uid'])
		assert len(uids) == len(set(uids)), 'no line is there twice'
		return text

	def all_processes(self):
		return ok(self.server.get(self.path('processes')))['results']

	def whole(self):
		return all(self.objects(p) == self.log(p) == self.records(p) for p in self.all_processes())


def ok_bytes(answer):
	assert answer.status_code == 200, answer.text
	return answer.content


@pytest.fixture(scope='module')
def receiver():
	r = receivers.Http()
	yield r
	r.stop()


@pytest.fixture(scope='module')
def stores():
	"""Verifies each signature."""
	s = s3_server.Running()
	yield s
	s.stop()


@pytest.fixture(scope='module')
def exported(start_place, receiver, stores, tmp_path_factory):
	secret = tmp_path_factory.mktemp('logs') / 'secret'
	secret.write_text(s3_server.SECRET)
	place = start_place('--export-buckets', 's3://', '--s3-endpoint', stores.endpoint, '--s3-key-id', s3_server.KEY_ID,
			    '--s3-secret-file', secret, '--log-export-seconds', '1', '--outbox-private')
	return Exported(place, receiver, stores)


def test_nothing_is_lost_and_nothing_is_doubled(exported):
	w = exported
	assert w.login("do $$ begin raise log 'long: %%', repeat('x', %d); end $$" % LONG)[0]
	until(w.whole, 120, 'the first lines')
	assert any(b'long: xxx' in w.objects(p) for p in w.all_processes())
	# Both receivers are away for a while, and the service is killed again and again; logs are rotated, and a primary ends.
	said = []
	for i in range(KILLS):
		if i == 3:
			w.receiver.stop()
			w.stores.say('fault * status 1000000 503')
		if i == 12:
			w.receiver.start()
			w.stores.say('clear')
		if i % 5 == 1:
			w.rotate(until(lambda: w.processes(PRIMARY if i < 10 else SECONDARY), 60, 'such a process')[0])
		if w.login("do $$ begin raise log 'killed <%%>', %d; end $$" % i)[0]:  # no node may take clients just now
			said.append(b'killed <%d>' % i)
		w.again()
		if i == 8:
			primary = until(lambda: w.processes(PRIMARY), 60, 'a primary')[0]
			os.kill(int(w.book(primary)[0]), signal.SIGKILL)
			until(lambda: [p for p in w.processes(PRIMARY) if p['hostname'] != primary['hostname']], 120, 'another primary')
	w.place.wait(w.path('clusters/shop'))
	until(w.whole, 180, 'all lines')
	everything = b''.join(w.objects(p) for p in w.all_processes())
	assert len(said) > KILLS / 4 and all(text in everything for text in said)
