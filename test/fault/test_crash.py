"""Kills the server with -9 at random moments under write load and looks at what is left.

Each client keeps a book of what was acknowledged. After the restart every acknowledged write must be there, every
unacknowledged one must be wholly there or not at all, and `steward check` must find nothing."""
import os, random, threading, time

import client
from client import BASE, Wire, cli, unique

ROUNDS = int(os.environ.get('STEWARD_CRASH_ROUNDS', '50'))
CLIENTS = 5
KEEP = 25  # projects a client holds on to


class Writer(threading.Thread):
	"""Creates, renames and deletes projects of its own, one call at a time, until the connection breaks."""

	def __init__(self, org):
		super().__init__(daemon=True)
		self.org, self.live, self.gone = org, {}, set()
		self.acknowledged = 0
		self.open = None  # the call that has no answer yet
		self.fault = None

	def go(self, server):
		w = Writer(self.org)
		w.live, w.gone, w.acknowledged = self.live, self.gone, self.acknowledged
		w.server = server
		w.start()
		return w

	def run(self):
		try:
			with Wire(self.server, self.server.token()) as wire:
				while True:
					self.step(wire)
		except (OSError, ConnectionError, client.requests.RequestException):
			pass
		except Exception as e:
			self.fault = repr(e)

	def step(self, wire):
		dice = random.random()
		if not self.live or (dice < 0.5 and len(self.live) < KEEP):
			name, key = unique('c'), unique('key') if random.random() < 0.5 else None
			self.open = ('create', name, key)
			a = wire.one('POST', BASE + '/groups', {'Idempotency-Key': key} if key else None, {'name': name,
					'orgId': self.org})
			self.expect(a, 200)
			self.live[a.json()['id']] = name
		elif dice < 0.75 and len(self.live) < KEEP:
			group, name = random.choice(list(self.live)), unique('r')
			self.open = ('rename', group, self.live[group], name)
			self.expect(wire.one('PATCH', '%s/groups/%s' % (BASE, group), None, {'name': name}), 200)
			self.live[group] = name
		else:
			group = random.choice(list(self.live))
			self.open = ('delete', group)
			self.expect(wire.one('DELETE', '%s/groups/%s' % (BASE, group)), 204)
			del self.live[group]
			self.gone.add(group)
		self.open = None
		self.acknowledged += 1

	def expect(self, a, status):
		if a.status != status:
			raise AssertionError('%s -> %d %s' % (self.open, a.status, a.body[:300]))

	def settle(self, found, wire):
		"""Takes what is there as the outcome of the call that was cut off; True when it was done."""
		what, self.open = self.open, None
		if what is None:
			return None
		if what[0] == 'create':
			ids = [i for i, n in found.items() if n == what[1]]
			assert len(ids) <= 1, 'created twice: %s' % what[1]
			if what[2]:  # the same key again must not make a second one
				a = wire.one('POST', BASE + '/groups', {'Idempotency-Key': what[2]}, {'name': what[1],
						'orgId': self.org})
				assert a.status == 200, (what, a.status, a.body)
				group = a.json()['id']
				assert not ids or ids == [group], 'the repeat of a done create answered with another project'
				self.live[group] = found[group] = what[1]
			elif ids:
				self.live[ids[0]] = what[1]
			return bool(ids)
		if what[0] == 'rename':
			assert found.get(what[1]) in what[2:4], '%s is now %s' % (what, found.get(what[1]))
			self.live[what[1]] = found[what[1]]
			return found[what[1]] == what[3]
		if what[1] not in found:
			del self.live[what[1]]
			self.gone.add(what[1])
			return True
		return False


def everything(wire, path):
	"""All projects of a list as {id: name}; counts and pages must agree."""
	out, page, total = {}, 1, None
	while True:
		doc = wire.one('GET', '%s?itemsPerPage=500&pageNum=%d' % (BASE + path, page)).json()
		for r in doc['results']:
			assert r['id'] not in out, 'listed twice: ' + r['id']
			out[r['id']] = r['name']
		assert total in (None, doc['totalCount'])
		total = doc['totalCount']
		if not doc['results'] or len(out) >= total:
			break
		page += 1
	assert len(out) == total, '%d listed, totalCount %d' % (len(out), total)
	return out


def verify(server, writers, first):
	done = {True: 0, False: 0, None: 0}
	with Wire(server, server.token()) as wire:
		found = everything(wire, '/groups')
		assert found == everything(wire, '/orgs/%s/groups' % server.org)
		for w in writers:
			done[w.settle(found, wire)] += 1
		expected = {**first}
		for w in writers:
			expected.update(w.live)
		lost = {i: n for i, n in expected.items() if found.get(i) != n}
		assert not lost, 'acknowledged, but lost or changed: %s' % lost
		extra = {i: n for i, n in found.items() if i not in expected}
		assert not extra, 'never acknowledged, or deleted, but there: %s' % extra
		ids = list(expected)
		answers = wire.batch([('GET', '%s/groups/%s' % (BASE, i)) for i in ids])
		by_name = wire.batch([('GET', '%s/groups/byName/%s' % (BASE, expected[i])) for i in ids])
		settings = wire.batch([('GET', '%s/groups/%s/settings' % (BASE, i)) for i in ids])
		for i, a, b, c in zip(ids, answers, by_name, settings):
			assert a.status == 200 and a.json()['name'] == expected[i], (i, a.body)
			assert b.status == 200 and b.json()['id'] == i, (i, b.body)
			assert c.status == 200, (i, c.body)
		gone = [i for w in writers for i in list(w.gone)[-20:]]
		for i, a in zip(gone, wire.batch([('GET', '%s/groups/%s' % (BASE, i)) for i in gone])):
			assert a.status == 404, (i, a.status)
	return done


def test_kill_under_write_load(start_server, tmp_path):
	config = tmp_path / 'limits.conf'
	config.write_text('limit.* = 1000000/1000000\n')
	data = tmp_path / 'data'
	start = lambda: start_server('--config', config, '--log-level', 'error', data_dir=data, clock=None,
			control=False)
	server = start()
	with Wire(server, server.token()) as wire:
		first = everything(wire, '/groups')
	writers = [Writer(server.org) for _ in range(CLIENTS)]
	tally = {True: 0, False: 0, None: 0}
	began = time.monotonic()
	for n in range(ROUNDS):
		before = sum(w.acknowledged for w in writers)
		writers = [w.go(server) for w in writers]
		if n % 5:  # else perhaps before anything was written
			client.until(lambda: sum(w.acknowledged for w in writers) > before + 10 or any(w.fault for w in writers), what='the load', longest=0.02)
		time.sleep(random.uniform(0, 0.1))  # a batch takes a few milliseconds
		server.kill()
		for w in writers:
			w.join(60)
			assert not w.is_alive() and w.fault is None, 'round %d: %s' % (n, w.fault)
		checked = cli('check', '--data', data, check=False)
		assert checked.returncode == 0, 'round %d: steward check says\n%s%s' % (n, checked.stdout,
				checked.stderr)
		client.shown.clear()
		server = start()
		for k, v in verify(server, writers, first).items():
			tally[k] += v
		for w in writers:
			w.gone.clear()
	server.kill()
	cli('check', '--data', data)
	written = sum(w.acknowledged for w in writers)
	print('\n%d kills in %.0f s, %d acknowledged writes, none lost; of the calls cut off %d had been done, %d had not'
	      % (ROUNDS, time.monotonic() - began, written, tally[True], tally[False]))
	assert written > ROUNDS * 5, 'hardly any load'
