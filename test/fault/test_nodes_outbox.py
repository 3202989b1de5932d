"""What several nodes send: each message once, whichever of them is killed meanwhile."""
import threading, time

import pytest

from client import until
from nodes import Nodes
from receivers import Http

SECRET = 'sign-with-this'
pytestmark = pytest.mark.filterwarnings('ignore:Unverified HTTPS request')


@pytest.fixture
def nodes():
	made = Nodes(2)
	for i in range(2):
		made.start_node(i, '--outbox-private')
	yield made
	made.close()


def entries(nodes, i, group, numbers):
	for n in numbers:
		r = nodes.caller(i).post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.%d' % n}])
		assert r.status_code == 200, r.text


def test_once_from_two_nodes(nodes):
	"""Both write events at the same time, to one receiver. One is killed while the receiver is away, and comes back."""
	hook, group = Http(), nodes.nodes[0].group
	r = nodes.caller(0).post('/groups/%s/alertConfigs' % group, json={
		'eventTypeName': 'NETWORK_PERMISSION_ENTRY_ADDED', 'enabled': True, 'notifications': [
			{'typeName': 'WEBHOOK', 'webhookUrl': hook.url + '/hook', 'webhookSecret': SECRET}]})
	assert r.status_code == 200, r.text
	both = [threading.Thread(target=entries, args=(nodes, i, group, range(1 + 20 * i, 21 + 20 * i))) for i in range(2)]
	for t in both:
		t.start()
	for t in both:
		t.join()
	hook.wait(40)
	queued = lambda: nodes.db.sql("SELECT count(*) FROM steward.doc WHERE kind = 'outbox_message'").strip()
	until(lambda: queued() == '0')
	hook.stop()
	entries(nodes, 0, group, range(41, 46))
	nodes.nodes[1].kill()
	entries(nodes, 0, group, range(46, 51))
	hook.start()
	nodes.start_node(1, '--outbox-private')
	hook.wait(50, seconds=240)  # a lease of the killed one, and waits between attempts
	until(lambda: queued() == '0', seconds=150)
	assert len(hook.taken) == 50 and len({x.headers['X-Steward-Delivery'] for x in hook.taken}) == 50
	assert len({x.json['id'] for x in hook.taken}) == 50 and all(x.signed_with(SECRET) for x in hook.taken)
	hook.stop()


def test_another_takes_over_when_the_lease_is_over(nodes):
	"""The node is killed between the receiver's answer and the record of it: the other sends again, with the same id, and not before."""
	hook, group = Http(), nodes.nodes[0].group
	r = nodes.caller(0).post('/groups/%s/alertConfigs' % group, json={
		'eventTypeName': 'NETWORK_PERMISSION_ENTRY_ADDED', 'enabled': True, 'notifications': [
			{'typeName': 'WEBHOOK', 'webhookUrl': hook.url + '/hook', 'webhookSecret': SECRET}]})
	assert r.status_code == 200, r.text
	held = lambda: nodes.db.sql("SELECT body::json->>'owner' FROM steward.doc WHERE kind = 'outbox_receiver' AND "
				    "(body::json->>'leaseMs')::bigint > extract(epoch from now()) * 1000").strip()
	nodes.nodes[0].kill()  # so that it is the other that sends
	hook.hold.clear()
	entries(nodes, 1, group, [1])
	owner = until(held)
	nodes.start_node(0, '--outbox-private')
	nodes.nodes[1].kill()
	hook.hold.set()
	hook.wait(1)
	time.sleep(3)  # longer than between two looks of the other
	assert held() == owner and len(hook.taken) == 1
	nodes.db.sql("UPDATE steward.doc SET body = regexp_replace(body::text, '\"leaseMs\": *[0-9]+', '\"leaseMs\":1') WHERE kind = "
		     "'outbox_receiver'")
	first, second = hook.wait(2)
	assert first.headers['X-Steward-Delivery'] == second.headers['X-Steward-Delivery'] and first.json == second.json
	until(lambda: nodes.db.sql("SELECT count(*) FROM steward.doc WHERE kind = 'outbox_message'").strip() == '0')
	assert len(hook.taken) == 2
	hook.stop()


def test_a_value_is_told_once_by_two_nodes():
	"""Both look each minute."""
	made, hook = Nodes(2), Http()
	try:
		for i in range(2):
			made.start_node(i, '--outbox-private', '--engine', 'simulated', '--simulated-seconds', '1')
		group, at = made.nodes[0].group, made.caller(0)
		region = {'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}
		r = at.post('/groups/%s/clusters' % group, json={
			'name': 'c0', 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [region]}]})
		assert r.status_code == 201, r.text
		r = at.post('/groups/%s/alertConfigs' % group, json={
			'eventTypeName': 'OUTSIDE_METRIC_THRESHOLD', 'enabled': True, 'notifications': [
				{'typeName': 'WEBHOOK', 'webhookUrl': hook.url + '/hook', 'webhookSecret': SECRET}],
			'metricThreshold': {'metricName': 'CONNECTIONS', 'operator': 'GREATER_THAN', 'threshold': 1}})
		assert r.status_code == 200, r.text
		hook.wait(3, seconds=200)
		time.sleep(65)
		assert len(hook.taken) == 3 and len({x.json['hostnameAndPort'] for x in hook.taken}) == 3
		assert {x.headers['X-Steward-Event'] for x in hook.taken} == {'alert.open'}
	finally:
		hook.stop()
		made.close()
