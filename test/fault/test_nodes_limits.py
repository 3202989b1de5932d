"""Several nodes that share their buckets in Redis: exact while it is there, each by itself while it is away."""
import contextlib, re, shutil, signal, threading, time

import pytest

import client, redis_server
from client import scraping
from nodes import Nodes, call, unverified

RECOVERY = 5  # seconds
SLOW = 60  # a machine that has other things to do: then one of several times has to be right
CAPACITY = 40
SCOPED = '/orgs/%s/settings'  # of the set that the tests make small
BAD = {'Accept': 'application/vnd.svc.1999-01-01+json'}  # takes a token, and does nothing
pytestmark = [pytest.mark.skipif(not shutil.which('haproxy') or not shutil.which('redis-server'),
				 reason='haproxy or Redis is not installed'),
	      pytest.mark.filterwarnings('ignore:Unverified HTTPS request')]


class Limited(Nodes):
	"""Whose organization settings have a small bucket that nothing fills while a test runs."""

	def __init__(self, count=3):
		self.redis = redis_server.Redis()
		super().__init__(count)
		with open(self.home / 'config', 'a') as f:
			f.write('limit.S45 = %d/1\n' % CAPACITY)

	def start_node(self, i, *args):
		return super().start_node(i, '--limits', self.redis.url(), *args)

	def session(self, i=None):
		"""A kept connection to a node, or through the proxy to one of them."""
		s = unverified()
		s.headers['Authorization'] = 'Bearer ' + self.kept()
		s.base = 'https://%s%s' % ('127.0.0.1:%d' % self.front if i is None else self.addresses[i], client.BASE)
		return s

	def take(self, session):
		"""Status of one call that needs a token of the small bucket."""
		return session.get(session.base + SCOPED % self.org, headers=BAD, timeout=60).status_code

	def page(self, i, path):
		return call('GET', 'https://%s%s' % (self.addresses[i], path), timeout=60)

	def shares(self, i):
		"""Whether the node's limits are those of all, by what it says of itself in both places."""
		ready, metrics = self.page(i, '/readyz'), call('GET', 'https://%s/metrics' % self.addresses[i], headers=scraping(self.nodes[i].data_dir), timeout=60).text
		assert ready.status_code == 200, ready.text
		gauge = re.search(r'^steward_buckets_shared (\d)$', metrics, re.M).group(1)
		return {('redis', '1'): True}.get((ready.json()['limits'], gauge),
						  None if 'by this node alone' not in ready.json()['limits'] or gauge != '0' else False)

	def close(self):
		super().close()
		self.redis.close()


@pytest.fixture
def nodes():
	made = Limited()
	try:
		yield made.start()
	finally:
		made.close()


def at_once(count, call):
	"""The answers of simultaneous calls."""
	answers, gate = [], threading.Barrier(count)

	def one(i):
		gate.wait()
		answers.append(call(i))

	threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
	for t in threads:
		t.start()
	for t in threads:
		t.join()
	assert len(answers) == count
	return answers


def granted(answers):
	"""How many were let through; every other one was refused for the empty bucket and nothing else."""
	assert set(answers) <= {406, 429}, sorted(set(answers))
	return answers.count(406)


def exactly(granted_, wanted, began):
	"""One comes back each minute: on a slow machine there may be one in between."""
	assert wanted <= granted_ <= wanted + int((time.monotonic() - began) / 60), (granted_, wanted)


def test_exact_over_all_nodes(nodes):
	assert [nodes.shares(i) for i in range(3)] == [True] * 3
	sessions = [nodes.session() for _ in range(3 * CAPACITY)]
	for s in sessions:  # each has its connection, and its node
		assert s.get(s.base + '/groups/' + nodes.nodes[0].group, timeout=60).status_code == 200
	began = time.monotonic()
	answers = at_once(len(sessions), lambda i: nodes.take(sessions[i]))
	exactly(granted(answers), CAPACITY, began)
	exactly(granted([nodes.take(nodes.session(i)) for i in range(3)]), 0, began)  # no node has a bucket of its own


class Calls:
	"""Calls of an unlimited operation on each node, all the time: none may fail, whatever Redis does."""

	def __init__(self, nodes):
		self.nodes, self.stopped, self.answers = nodes, threading.Event(), []
		self.threads = [threading.Thread(target=self.work, args=(i,), daemon=True) for i in range(3)]
		for t in self.threads:
			t.start()

	def work(self, node):
		session = self.nodes.session(node)
		while not self.stopped.wait(0.02):
			began = time.monotonic()
			status = session.get(session.base + '/groups/' + self.nodes.nodes[0].group, timeout=60).status_code
			self.answers.append((status, time.monotonic() - began))

	def stop(self):
		self.stopped.set()
		for t in self.threads:
			t.join(30)
			assert not t.is_alive(), 'a caller was never answered'


def test_redis_restarted(nodes):
	calls, sessions, away, back = Calls(nodes), [nodes.session(i) for i in range(3)], [], []
	began = time.monotonic()
	for time_alone in range(2):
		time.sleep(0.5)
		nodes.redis.stop(signal.SIGKILL)
		away.append(max(nodes.until(lambda: nodes.shares(i) is False, SLOW) for i in range(3)))
		# Each by itself: three buckets, full at first, or as full as an earlier time alone has left them.
		alone = [granted([nodes.take(s) for _ in range(CAPACITY + 5)]) for s in sessions]
		for n in alone:
			exactly(n, CAPACITY if time_alone == 0 else 0, began)
		nodes.redis.start()
		back.append(sum(nodes.until(lambda: nodes.shares(i) is True, SLOW) for i in range(3)))
		# A Redis that kept nothing starts with full buckets, once for all nodes.
		exactly(granted([nodes.take(sessions[k % 3]) for k in range(2 * CAPACITY)]), CAPACITY, began)
	calls.stop()
	assert len(calls.answers) > 50
	assert {status for status, _ in calls.answers} == {200}
	assert min(away) < RECOVERY and min(back) < RECOVERY, (away, back)
	assert max(seconds for _, seconds in calls.answers) < SLOW
	assert sorted(seconds for _, seconds in calls.answers)[-len(calls.answers) // 20] < RECOVERY


def test_redis_hangs(nodes):
	"""A Redis that answers nothing is as good as none, and nobody waits for it long."""
	nodes.redis.process.send_signal(signal.SIGSTOP)
	try:
		asked, away = [], []
		for i in range(3):
			began = time.monotonic()
			assert nodes.take(nodes.session(i)) == 406
			asked.append(time.monotonic() - began)
			away.append(nodes.until(lambda: nodes.shares(i) is False, SLOW))
		assert min(asked) < 2 and min(away) < RECOVERY, (asked, away)
	finally:
		nodes.redis.process.send_signal(signal.SIGCONT)
	back = [nodes.until(lambda: nodes.shares(i) is True, SLOW) for i in range(3)]
	assert min(back) < RECOVERY, back


@pytest.fixture
def one():
	with contextlib.closing(Limited(1)) as made:
		made.start_node(0)
		yield made


def test_connections_that_redis_has_closed(one):
	"""A Redis that closes idle connections is not away: the next call has a new one, and the bucket is the same."""
	session, left, began = one.session(0), CAPACITY, time.monotonic()
	for _ in range(5):
		assert granted(at_once(4, lambda i: one.take(one.session(0)))) == 4
		left -= 4
		one.redis.say('CLIENT', 'KILL', 'TYPE', 'normal')
	exactly(granted([one.take(session) for _ in range(left + 10)]), left, began)
	assert 'redis is away' not in one.nodes[0].stderr


def test_redis_that_nobody_asks(one):
	"""What a node says of Redis is true without a call that would find out."""
	assert one.shares(0) is True
	one.redis.stop(signal.SIGKILL)
	one.until(lambda: one.shares(0) is False, SLOW)
	one.redis.start()
	one.until(lambda: one.shares(0) is True, SLOW)


@pytest.mark.parametrize('broken, mended', [
	(('CONFIG', 'SET', 'maxmemory', '1'), ('CONFIG', 'SET', 'maxmemory', '0')),
	(('REPLICAOF', '127.0.0.1', '1'), ('REPLICAOF', 'NO', 'ONE')),
	(('CONFIG', 'SET', 'requirepass', 'x'), None)], ids=['full', 'replica', 'password'])
def test_redis_that_takes_nothing(one, broken, mended):
	"""It answers, but no token can be had: that is away, until it is not, and told once."""
	assert one.take(one.session(0)) == 406
	one.redis.say(*broken)
	if not mended:  # connections that were let in stay
		one.redis.say('CLIENT', 'KILL', 'TYPE', 'normal', password='x')
	one.until(lambda: one.shares(0) is False, SLOW)
	for _ in range(30):
		assert one.shares(0) is False
		assert one.take(one.session(0)) in (406, 429)
		time.sleep(0.05)
	log = one.nodes[0].stderr
	assert log.count('limits: redis') < 8, log
	if mended:
		one.redis.say(*mended)
		one.until(lambda: one.shares(0) is True, SLOW)
