"""Several clients at once, reading, writing, changing limits and reloading: what ThreadSanitizer watches."""
import itertools, os, signal, threading

import client
from test_live_events import ALL, Stream, tenant_of


def in_threads(count, work):
	faults = []

	def run(i):
		try:
			work(i)
		except Exception as e:  # the main thread tells
			faults.append('%s: %s' % (type(e).__name__, e))

	threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
	for t in threads:
		t.start()
	for t in threads:
		t.join()
	assert not faults, '\n'.join(faults[:5])


def test_creates_reads_and_deletes(module_server):
	s = module_server
	before = client.ok(s.get('/orgs/%s/groups' % s.org))['totalCount']

	def work(i):
		api = client.Api(s, client.Bearer(s.token))
		for n in range(10):
			project = api.project('c-%d-%d' % (i, n))
			path = '/groups/' + project['id']
			assert client.ok(api.get(path))['name'] == project['name']
			client.ok(api.patch(path, json={'name': 'd-%d-%d' % (i, n)}))
			if n % 2:
				client.ok(api.delete(path), 204)
				client.refused(api.get(path), 404)
			client.ok(api.get('/groups'))

	in_threads(8, work)
	assert client.ok(s.get('/orgs/%s/groups' % s.org))['totalCount'] == before + 40


def test_one_name_is_taken_once(module_server):
	s = module_server
	statuses = []

	def work(i):
		api = client.Api(s, client.Bearer(s.token))
		statuses.append(api.post('/groups', json={'name': 'the-one', 'orgId': s.org}).status_code)

	in_threads(8, work)
	assert sorted(statuses) == [200] + [409] * 7


def test_a_revision_is_changed_once(module_server):
	s = module_server
	path = '/groups/' + s.project()['id']
	etag = s.get(path).headers['ETag']
	statuses = []

	def work(i):
		api = client.Api(s, client.Bearer(s.token))
		answer = api.patch(path, json={'name': client.unique()}, headers={'If-Match': etag})
		statuses.append(answer.status_code)

	in_threads(8, work)
	assert sorted(statuses) == [200] + [412] * 7


def test_buckets_are_exact(start_server):
	s = start_server()
	client.cli('limits', 'set', '--data', s.data_dir, '--set', 'S60', '--capacity', '40', '--refill', '1')
	client.until(lambda: client.ok(s.get('/rateLimits/S60'))['capacity'] == 40)
	s.refill()
	statuses = []

	def work(i):
		api = client.Api(s, client.Bearer(s.token))
		statuses.extend(api.get('').status_code for _ in range(10))

	in_threads(8, work)
	assert statuses.count(200) == 40 and statuses.count(429) == 40


def test_reload_under_load(start_server):
	s = start_server()

	def work(i):
		api = client.Api(s, client.Bearer(s.token))
		for _ in range(15):
			client.ok(api.get('/groups/' + s.group))
			if i == 0:
				os.kill(s.pid, signal.SIGHUP)
			assert client.Api(s).get('/metrics').status_code == 200

	in_threads(4, work)


def test_listeners_come_and_go_while_events_and_rights_change(module_server):
	s = module_server
	t = tenant_of(s)
	group = t['projects'][0]['id']
	stop, seen, gone = threading.Event(), [], []

	def listen(i):
		last = None
		while not stop.is_set():
			with Stream(s, t['user' if i % 2 else 'owner']['accessToken'], ALL if i < 2 else t['one'] + '/events:stream', last) as stream:
				for _ in range(3):
					one = stream.next() if stream.status == 200 else None
					if not one or one[1] == 'end':
						break
					last = one[0] or last
					seen.append(one)
		gone.append(i)

	def write(i):
		api, values = s.api_for(t['owner']), itertools.count(30 + i, 2)

		def change():
			client.ok(api.patch(t['one'] + '/limits/svc.project.deployment.clusters', json={'value': next(values)}))
			return len(gone) == 4

		try:
			for n in range(12):
				change()
				if i == 0 and n % 4 == 0:
					user = {'username': t['user']['username'], 'roles': ['GROUP_READ_ONLY']}
					client.ok(api.delete('/groups/%s/users/%s' % (group, t['user']['id'])), 204)
					api.post('/groups/%s/users' % group, json=user)
		finally:
			if i == 0:
				stop.set()
				client.until(change, longest=0.5)  # each waits for another event

	in_threads(6, lambda i: write(i) if i < 2 else listen(i - 2))
	assert seen
	client.until(lambda: client.metric(s, 'steward_event_streams') == 0)
