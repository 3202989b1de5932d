"""Live events: server-sent events of a project, of an organization and of all that a caller may see. Order, reconnects, rights,
limits, slow readers, crashes, and other processes on the same store."""
import contextlib, json, shutil, socket, ssl, subprocess, threading, time

import pytest

import client
from client import BASE, NO_ID, Wire, metric, ok, refused, unique, until
from test_sign_in import COOKIE, PASSWORD, Browser

ALL = '/api/console/events'
contexts = {}
SECONDS = 120  # that anything may take on a busy machine


class Stream(Wire):
	"""One listener. next() gives (id, event, data) of each message; ids without data move `last` alone, as browsers have it."""

	def __init__(self, server, token, path, last=None, headers=None, query='', narrow=False):
		self.server, self.token, self.buffer, self.text, self.last, self.beats = server, token, b'', b'', last, 0
		raw = socket.socket(socket.AF_INET6 if ':' in server.host else socket.AF_INET)
		raw.settimeout(SECONDS)
		if narrow:  # little fits between the server and a client that does not read
			raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
			raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
		raw.connect((server.host, server.port))
		if server.ca_file not in contexts:  # to make one costs more than a handshake
			contexts[server.ca_file] = ssl.create_default_context(cafile=server.ca_file)
			contexts[server.ca_file].set_alpn_protocols(['http/1.1'])
		self.socket = contexts[server.ca_file].wrap_socket(raw, server_hostname=server.host)
		more = {'Accept': 'text/event-stream', **({'Last-Event-ID': last} if last else {}), **(headers or {})}
		path = path if path.startswith('/api') else BASE + path
		self.socket.sendall(self.encode('GET', path + query, more))
		while b'\r\n\r\n' not in self.buffer:
			self._more()
		head = self.buffer.partition(b'\r\n\r\n')[0].decode('latin-1').split('\r\n')
		self.status = int(head[0].split(' ')[1])
		if self.status != 200:
			self.refusal = self.read()
			return
		self.buffer = self.buffer.partition(b'\r\n\r\n')[2]
		self.head = {k.lower(): v.strip() for k, _, v in (x.partition(':') for x in head[1:])}

	def _chunk(self):
		while b'\r\n' not in self.buffer:
			self._more()
		size, _, self.buffer = self.buffer.partition(b'\r\n')
		n = int(size, 16)
		while len(self.buffer) < n + 2:
			self._more()
		self.text, self.buffer = self.text + self.buffer[:n], self.buffer[n + 2:]
		return n

	def next(self):
		"""None at the end."""
		end = time.monotonic() + SECONDS  # heartbeats would keep it waiting for ever
		while True:
			assert time.monotonic() < end, 'nothing came'
			while b'\n\n' not in self.text:
				if not self._chunk():
					return None
			block, _, self.text = self.text.partition(b'\n\n')
			fields = dict(line.split(': ', 1) for line in block.decode().split('\n') if ': ' in line)
			self.beats += block == b':'
			self.last = fields.get('id', self.last)
			if 'data' in fields:
				return fields.get('id'), fields.get('event', 'message'), json.loads(fields['data'])

	def events(self, count):
		out = []
		while len(out) < count:
			one = self.next()
			assert one and one[1] == 'message', one
			out.append(one[2])
		return out

	def ends(self):
		"""Why it ends, after whatever comes before."""
		while True:
			one = self.next()
			assert one, 'it ended without a word'
			if one[1] == 'end':
				assert self.next() is None
				return one[2]['reason']


@pytest.fixture
def tenant(module_server):
	return tenant_of(module_server)


def tenant_of(server, **more):
	org, = server.seed({'name': unique('org'), 'projects': ['one', 'two'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}, {'type': 'user', 'username': unique('u') + '@example.org', 'roles': ['ORG_MEMBER'],
			'projectRoles': [{'project': 'one', 'roles': ['GROUP_READ_ONLY']}]},
		{'type': 'apiKey', 'roles': ['ORG_MEMBER'], 'projectRoles': [{'project': 'one', 'roles': ['GROUP_OWNER']}]}], **more})
	org['owner'], org['user'], org['key'] = org['principals']
	org['api'] = server.api_for(org['owner'])
	org['one'], org['two'] = ['/groups/' + p['id'] for p in org['projects'][:2]]
	org['path'] = '/orgs/' + org['id']
	server.refill()
	return org


def change(tenant, value, project='one'):
	ok(tenant['api'].patch(tenant[project] + '/limits/svc.project.deployment.clusters', json={'value': value}))


def rename(tenant):
	ok(tenant['api'].patch(tenant['path'], json={'name': unique('renamed')}))


def listed(tenant, path):
	"""Ids of the list, oldest first."""
	return [e['id'] for e in ok(tenant['api'].get(path + '/events', params={'itemsPerPage': 500}))['results']][::-1]


def test_each_sees_its_own_in_order_as_the_lists_show_it(module_server, tenant):
	s, other = module_server, tenant_of(module_server)
	user, owner = tenant['user']['accessToken'], tenant['owner']['accessToken']
	one, org, mine, all_ = [Stream(s, token, path) for token, path in (
		(user, tenant['one'] + '/events:stream'), (user, tenant['path'] + '/events:stream'), (user, ALL), (owner, ALL))]
	assert one.head['content-type'] == 'text/event-stream' and one.head['cache-control'] == 'no-store'
	for i in range(3):
		change(other, 30 + i)  # nobody here is told
		rename(other)
		change(tenant, 30 + i)
		change(tenant, 40 + i, 'two')  # of a project that the user has no role in
		rename(tenant)
	in_one, in_org = listed(tenant, tenant['one'])[-3:], listed(tenant, tenant['path'])[-3:]
	both = [x for pair in zip(in_one, in_org) for x in pair]
	assert [e['id'] for e in one.events(3)] == in_one
	assert [e['id'] for e in org.events(3)] == in_org
	assert [e['id'] for e in mine.events(6)] == both
	seen = all_.events(9)
	assert [e['id'] for e in seen if e.get('groupId') != tenant['projects'][1]['id']] == both
	assert {e['orgId'] for e in seen} == {tenant['id']}
	shown = ok(tenant['api'].get('%s/events/%s' % (tenant['one'], in_one[0])))
	first, = [e for e in seen if e['id'] == in_one[0]]
	shown.pop('links')
	if not client.dialect.NAME:
		assert {k: first[k] for k in shown} == shown
	# Filters are those of the lists.
	few = Stream(s, user, tenant['path'] + '/events:stream', last='0', query='?eventType=ORG_RENAMED')
	assert few.next()[1] == 'resync'
	rename(tenant)
	assert few.events(1)[0]['eventTypeName'] == 'ORG_RENAMED'
	for stream in (one, org, mine, all_, few):
		stream.close()
	until(lambda: metric(s, 'steward_event_streams') == 0, what='clients that have left are forgotten')


def test_the_gates_of_the_lists_stand_before_it(module_server, tenant):
	s, path = module_server, tenant['one'] + '/events:stream'
	stranger = tenant_of(s)['owner']['accessToken']
	member = tenant['user']['accessToken']
	for token, where, more, status, code in (
			(None, path, {}, 401, 'NOT_AUTHENTICATED'), ('stw_no', path, {}, 401, 'INVALID_TOKEN'), (stranger, path, {}, 401, 'USER_UNAUTHORIZED'),
			(None, ALL, {}, 401, None), (member, tenant['two'] + '/events:stream', {}, 403, 'INSUFFICIENT_ROLE'),
			(member, '/groups/%s/events:stream' % NO_ID, {}, 404, 'GROUP_NOT_FOUND'),
			(member, '/groups/x/events:stream', {}, 404, None),
			(member, path, {'query': '?nothing=1'}, 400, 'VALIDATION_ERROR'), (member, path, {'query': '?eventType=NO_SUCH'}, 400, None),
			(member, path, {'headers': {'Accept': 'application/json'}}, 406, 'NOT_ACCEPTABLE')):
		with Stream(s, token, where, **more) as refused_:
			assert refused_.status == status, (where, more, refused_.status)
			assert not code or refused_.refusal.json()['errorCode'] == code, refused_.refusal.body
	refused(tenant['api'].session.post(s.base_url + BASE + path, json={}, timeout=60), 405)
	# An API key by Digest, and one token of the list's bucket for a stream, however long it is.
	key = s.api_for(tenant['key'])
	answer = key.session.get(s.base_url + BASE + path, stream=True, headers={'Accept': 'text/event-stream'}, timeout=60)
	assert answer.status_code == 200
	left = int(answer.headers['RateLimit-Remaining'])
	assert left == int(answer.headers['RateLimit-Limit']) - 1 - 3  # those that the gates behind the bucket have refused
	change(tenant, 31)
	assert b'PROJECT_LIMIT' in next(line for line in answer.iter_lines() if line.startswith(b'data:'))
	answer.close()
	s.refill()


def test_nothing_is_lost_or_doubled_across_reconnects_and_crashes(start_server, tmp_path):
	s = start_server(data_dir=tmp_path / 'data')
	t = tenant_of(s)
	seen, last, total, faults = [], None, 90, []
	path = t['one'] + '/events:stream'

	def write(first, count):
		try:
			for i in range(first, first + count):
				change(t, 10 + i % 2)
		except Exception as e:  # the main thread tells
			faults.append(e)

	def listen(count):
		"""In pieces, by the header and by the parameter, of the project and of all."""
		nonlocal last
		piece = 0
		while count:
			some = min(count, 1 + piece % 7)
			by_query = piece % 2 and last
			with Stream(s, t['owner']['accessToken'], ALL if piece % 3 == 2 else path, None if by_query else last,
					query='?lastEventId=' + last if by_query else '') as stream:
				seen.extend(e['id'] for e in stream.events(some))
				last = stream.last
			count, piece = count - some, piece + 1

	first = Stream(s, t['owner']['accessToken'], path)
	assert first.status == 200
	change(t, 12)
	seen += [e['id'] for e in first.events(1)]
	last = first.last
	first.close()
	for part in range(2):
		writer = threading.Thread(target=write, args=(part * total // 2, total // 2))
		writer.start()
		listen(total // 2 - (20 if part == 0 else 0))
		writer.join()
		assert not faults, faults
		if part == 0:  # 20 are written that nobody has seen
			s.kill()
			s = start_server(data_dir=tmp_path / 'data')
			t['api'] = s.api_for(t['owner'])
			listen(20)
	assert seen == listed(t, t['one'])[-len(seen):] and len(seen) == total + 1
	# A browser that has seen an event which is gone, or another's, has to load anew; and goes on from there.
	for strange in (NO_ID, 'x', listed(t, t['path'])[0]):
		with Stream(s, t['owner']['accessToken'], path, strange) as stream:
			assert stream.next()[1:] == ('resync', {'reason': 'EVENTS_MISSED'}) and stream.last == seen[-1]


def test_rights_that_are_taken_away_end_it(module_server, tenant):
	s, user, owner = module_server, tenant['user'], tenant['owner']
	two = tenant_of(s)
	streams = {name: Stream(s, user['accessToken'], path) for name, path in (
		('one', tenant['one'] + '/events:stream'), ('org', tenant['path'] + '/events:stream'), ('all', ALL))}
	bystander = Stream(s, two['user']['accessToken'], ALL)
	rename(tenant)
	streams['org'].events(1)
	ok(tenant['api'].delete('%s/users/%s' % (tenant['one'], user['id'])), 204)
	change(tenant, 33)  # the first that the user may not see any more
	assert streams['one'].ends() == 'RIGHTS_CHANGED'
	assert streams['all'].ends() == 'RIGHTS_CHANGED'
	with Stream(s, user['accessToken'], tenant['one'] + '/events:stream') as again:
		assert again.status in (401, 403)
	rename(tenant)
	assert streams['org'].events(1)  # who may still read goes on
	streams['org'].close()
	# A token that is revoked, an account that is deleted, a token whose time is over.
	token = s.token(owner)
	revoked, gone = Stream(s, token, ALL), Stream(s, two['owner']['accessToken'], two['path'] + '/events:stream')
	r = s.anonymous.session.post(s.base_url + '/api/oauth/revoke', data={'token': token}, auth=(owner['clientId'], owner['clientSecret']),
			verify=s.ca_file, timeout=60)
	assert r.status_code == 200, r.text
	assert revoked.ends() == 'SESSION_ENDED'
	ok(two['api'].delete('%s/serviceAccounts/%s' % (two['path'], two['owner']['clientId'])), 204)
	assert gone.ends() == 'SESSION_ENDED'
	s.advance(7200)
	assert bystander.ends() == 'SESSION_ENDED'


def test_a_browser_listens_with_its_session(module_server, tenant):
	s, browser = module_server, Browser(module_server)
	ok(browser.post('/api/session/first', {'token': s.bootstrap['consoleLink'].rsplit('/', 1)[1], 'username': unique('first') + '@example.org',
			'firstName': 'A', 'lastName': 'B', 'password': PASSWORD}))
	mine = {'Cookie': '%s=%s' % (COOKIE, browser.cookie), 'Sec-Fetch-Site': 'same-origin'}
	for site in ('cross-site', 'same-site'):
		with Stream(s, None, ALL, headers={**mine, 'Sec-Fetch-Site': site}) as foreign:
			assert foreign.status == 401
	streams = [Stream(s, None, ALL, headers=mine) for _ in range(2)]
	change(tenant, 90)  # another organization's
	ok(s.patch('/orgs/' + s.org, json={'name': unique('renamed')}))
	assert {x.next()[2]['eventTypeName'] for x in streams} == {'ORG_RENAMED'}
	ok(browser.delete('/api/session'), 204)
	assert [x.ends() for x in streams] == ['SESSION_ENDED'] * 2
	with Stream(s, None, ALL, headers=mine) as again:
		assert again.status == 401


def test_a_slow_reader_costs_no_memory_and_loads_anew(start_server):
	s = start_server('--send-seconds', '600')  # else who reads nothing at all is cut off, and a busy machine takes long to write so much
	t = tenant_of(s, projects=['one', 'two', *('p%d' % i for i in range(15))])
	before = metric(s, 'steward_event_streams_resyncs_total')
	slow, quick = Stream(s, t['owner']['accessToken'], ALL, narrow=True), Stream(s, t['owner']['accessToken'], ALL)
	assert slow.status == 200
	for i, project in enumerate(t['projects'][2:]):
		ok(t['api'].post('/groups/%s/accessList' % project['id'], json=[{'cidrBlock': '10.%d.%d.0/24' % (i, k)} for k in range(200)]))
		assert len({e['id'] for e in quick.events(200)}) == 200
	assert metric(s, 'steward_event_streams_bytes') < 5 << 20 and metric(s, 'steward_buffer_bytes') < 1 << 20
	count, one = 0, slow.next()
	while one[1] == 'message':
		count, one = count + 1, slow.next()
	assert one[1] == 'resync' and count < 3000 - 2048
	assert metric(s, 'steward_event_streams_resyncs_total') > before
	change(t, 77)
	assert [e['id'] for e in quick.events(1)] == listed(t, t['one'])[-1:]
	after = slow.events(1)
	while after[-1]['id'] != listed(t, t['one'])[-1]:  # it may have been told before all was written: what came since follows
		after += slow.events(1)
	assert len({e['id'] for e in after}) == len(after) < 1000
	slow.close()
	quick.close()


def test_more_at_once_than_is_kept_is_told(module_server, tenant):
	s = module_server
	with Stream(s, tenant['owner']['accessToken'], ALL) as stream:
		change(tenant, 20)
		stream.events(1)
		s.seed({'name': unique('org'), 'projects': ['p%d' % i for i in range(2500)], 'principals': []})  # one commit
		assert stream.next()[1] == 'resync'
		change(tenant, 21)
		assert [e['id'] for e in stream.events(1)] == listed(tenant, tenant['one'])[-1:]


def test_the_501st_of_a_caller_is_refused(module_server, tenant):
	s, path = module_server, tenant['one'] + '/events:stream'
	with contextlib.ExitStack() as all_:
		streams = []
		for i in range(500):
			streams.append(all_.enter_context(Stream(s, tenant['owner']['accessToken'], path)))
			if i % 200 == 199:
				s.refill()
		assert {x.status for x in streams} == {200}
		more = all_.enter_context(Stream(s, tenant['owner']['accessToken'], path))
		doc = more.refusal.json()
		assert more.status == 429 and doc['errorCode'] == 'TOO_MANY_EVENT_STREAMS' and 'Close some' in doc['detail']
		assert more.refusal.header('retry-after')
		with Stream(s, tenant['user']['accessToken'], path) as other:
			assert other.status == 200
			change(tenant, 55)
			newest = listed(tenant, tenant['one'])[-1]
			assert {x.next()[0] for x in [*streams, other]} == {newest}
	until(lambda: metric(s, 'steward_event_streams') == 0)


def test_it_outlasts_the_edges_deadlines_and_ends_with_the_service(start_server):
	s = start_server('--idle-seconds', '3', '--send-seconds', '3', '--header-seconds', '3', '--body-seconds', '3')
	t = tenant_of(s)
	token = t['owner']['accessToken']
	curl = subprocess.Popen(['curl', '-sN', '--http2', '--cacert', s.ca_file, '-H', 'Authorization: Bearer ' + token,
			s.base_url + BASE + t['one'] + '/events:stream'], stdout=subprocess.PIPE)
	try:
		stream, idle = Stream(s, token, t['one'] + '/events:stream'), Wire(s, token)
		assert curl.stdout.readline() == b'retry: 1000\n'
		for _ in range(2):
			idle.one('GET', '/healthz')
			with pytest.raises(ConnectionError):
				idle.read()  # until the deadline of idle connections strikes
			idle = Wire(s, token)
		change(t, 44)
		newest = listed(t, t['one'])[-1]
		assert stream.next()[0] == newest
		until(lambda: curl.stdout.readline() == b'id: %s\n' % newest.encode(), what='the event by HTTP/2')
		s.stop()
		assert stream.ends() == 'SHUTDOWN'
		assert b'event: end\ndata: {"reason":"SHUTDOWN"}\n\n' in curl.stdout.read() and curl.wait() == 0
	finally:
		curl.kill()
		curl.wait()


@pytest.mark.skipif(not client.REMOTE, reason='only one process can use this store')
def test_events_of_other_processes_arrive(start_server, tmp_path):
	here = start_server(data_dir=tmp_path / 'here')
	(tmp_path / 'there').mkdir()
	shutil.copy(tmp_path / 'here' / 'secret.key', tmp_path / 'there')
	shutil.copy(tmp_path / 'here' / 'bootstrap.json', tmp_path / 'there')
	there = start_server('--store', client.store_of(here.data_dir), data_dir=tmp_path / 'there')
	t = tenant_of(here)
	stream = Stream(here, t['owner']['accessToken'], ALL)
	away = {**t, 'api': there.api_for(t['owner'])}
	for i in range(5):
		change(away if i % 2 else t, 60 + i)
	assert [e['id'] for e in stream.events(5)] == listed(t, t['one'])[-5:]
	# What it has seen here can be gone on from there; and rights that are taken away there end it here.
	change(away, 70)
	with Stream(there, t['owner']['accessToken'], t['one'] + '/events:stream', stream.last) as again:
		assert again.events(1)[0]['id'] == stream.events(1)[0]['id'] == listed(t, t['one'])[-1]
	stream = Stream(here, t['user']['accessToken'], t['one'] + '/events:stream')
	ok(away['api'].delete('%s/users/%s' % (t['one'], t['user']['id'])), 204)
	assert stream.ends() == 'RIGHTS_CHANGED'
