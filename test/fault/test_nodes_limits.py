"""Several nodes that share their buckets in Redis: exact while it is there, each by itself while it is away."""
import re, shutil, signal, threading, time

import pytest
import requests

import client, redis_server
from nodes import Nodes

RECOVERY = 5  # seconds
CAPACITY = 40
SCOPED = '/orgs/%s/settings'  # of the set that the tests make small
BAD = {'Accept': 'application/vnd.svc.1999-01-01+json'}  # takes a token, and does nothing
pytestmark = [pytest.mark.skipif(not shutil.which('haproxy') or not shutil.which('redis-server'),
				 reason='haproxy or Redis is not installed'),
	      pytest.mark.filterwarnings('ignore:Unverified HTTPS request')]


class Limited(Nodes):
	"""Whose organization settings have a small bucket that nothing fills while a test runs."""

	def __init__(self):
		self.redis = redis_server.Redis()
		super().__init__()
		with open(self.home / 'config', 'a') as f:
			f.write('limit.S45 = %d/1\n' % CAPACITY)

	def start_node(self, i, *args):
		return super().start_node(i, '--limits', self.redis.url(), *args)

	def session(self, i=None):
		"""A kept connection to a node, or through the proxy to one of them."""
		s = requests.Session()
		s.trust_env, s.verify = False, False
		s.headers['Authorization'] = 'Bearer ' + self.kept()
		s.base = 'https://%s%s' % ('127.0.0.1:%d' % self.front if i is None else self.addresses[i], client.BASE)
		return s

	def take(self, session):
		"""Status of one call that needs a token of the small bucket."""
		return session.get(session.base + SCOPED % self.org, headers=BAD, timeout=30).status_code

	def page(self, i, path):
		return requests.get('https://%s%s' % (self.addresses[i], path), verify=False, timeout=10)

	def shares(self, i):
		"""Whether the node's limits are those of all, by what it says of itself in both places."""
		ready, metrics = self.page(i, '/readyz'), self.page(i, '/metrics').text
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


def test_exact_over_all_nodes(nodes):
	assert [nodes.shares(i) for i in range(3)] == [True] * 3
	sessions = [nodes.session() for _ in range(3 * CAPACITY)]
	for s in sessions:  # each has its connection, and its node
		assert s.get(s.base + '/groups/' + nodes.nodes[0].group, timeout=30).status_code == 200
	answers = at_once(len(sessions), lambda i: nodes.take(sessions[i]))
	assert granted(answers) == CAPACITY
	assert granted([nodes.take(nodes.session(i)) for i in range(3)]) == 0, 'no node has a bucket of its own'


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
			status = session.get(session.base + '/groups/' + self.nodes.nodes[0].group, timeout=30).status_code
			self.answers.append((status, time.monotonic() - began))

	def stop(self):
		self.stopped.set()
		for t in self.threads:
			t.join(30)
			assert not t.is_alive(), 'a caller was never answered'


def test_redis_restarted(nodes):
	calls, sessions = Calls(nodes), [nodes.session(i) for i in range(3)]
	for time_alone in range(2):
		time.sleep(0.5)
		nodes.redis.stop(signal.SIGKILL)
		for i in range(3):
			nodes.until(lambda: nodes.shares(i) is False, RECOVERY)
		# Each by itself: three buckets, full at first, or as full as an earlier time alone has left them.
		alone = [granted([nodes.take(s) for _ in range(CAPACITY + 5)]) for s in sessions]
		assert alone == ([CAPACITY] * 3 if time_alone == 0 else [0] * 3), alone
		nodes.redis.start()
		began = time.monotonic()
		for i in range(3):
			nodes.until(lambda: nodes.shares(i) is True, RECOVERY - (time.monotonic() - began))
		# A Redis that kept nothing starts with full buckets, once for all nodes.
		assert granted([nodes.take(sessions[k % 3]) for k in range(2 * CAPACITY)]) == CAPACITY
	calls.stop()
	assert len(calls.answers) > 50
	assert {status for status, _ in calls.answers} == {200}
	assert max(seconds for _, seconds in calls.answers) < RECOVERY


def test_redis_hangs(nodes):
	"""A Redis that answers nothing is as good as none, and nobody waits for it long."""
	nodes.redis.process.send_signal(signal.SIGSTOP)
	try:
		for i in range(3):
			began = time.monotonic()
			assert nodes.take(nodes.session(i)) == 406
			assert time.monotonic() - began < 2
			nodes.until(lambda: nodes.shares(i) is False, RECOVERY)
	finally:
		nodes.redis.process.send_signal(signal.SIGCONT)
	for i in range(3):
		nodes.until(lambda: nodes.shares(i) is True, RECOVERY)
