"""What leaves: durable, in order, once, to where it may go."""
import contextlib, json, socket, sqlite3, time

import pytest

from client import REMOTE, Server, cli, ok, refused, until
from database import free_port
from receivers import Http, Inbox
from test_alerts import happens, watch, webhook, without_defaults


@pytest.fixture
def hook():
	box = Http()
	yield box
	box.stop()


def start(start_server, *args, **kw):
	return start_server('--outbox-private', *args, **kw)


def resync(s, **more):
	happens(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', **more)


def records(s):
	return [json.loads(row[0]) for row in s.rows("SELECT body FROM doc WHERE kind = 'delivery' ORDER BY seq")]


def queued(s):
	return s.rows("SELECT id FROM doc WHERE kind = 'outbox_message'")


def test_order_and_record(start_server, hook):
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	for i in range(30):
		resync(s, cluster='c%d' % i)
	assert [x.json['clusterName'] for x in hook.wait(30)] == ['c%d' % i for i in range(30)]
	until(lambda: not queued(s))
	found = records(s)
	assert len(found) == 30 and {r['status'] for r in found} == {'DELIVERED'} and {r['attempts'] for r in found} == {1}
	assert all(r['receiver'] == '127.0.0.1:%d' % hook.port and r['alertId'] and r['kind'] == 'WEBHOOK' for r in found)
	assert len({x.headers['X-Steward-Delivery'] for x in hook.taken}) == 30
	assert s.rows("SELECT 1 FROM doc WHERE kind = 'outbox_receiver'") == []
	shown = cli('outbox', '--data', s.data_dir, '--alert', found[3]['alertId'], '-o', 'json').stdout
	assert [json.loads(x) for x in shown.splitlines()] == [found[3]]
	assert cli('outbox', '--data', s.data_dir).stdout.count('DELIVERED') == 30
	assert cli('outbox', '--data', s.data_dir, '--status', 'FAILED').stdout == ''


def test_a_failing_receiver_is_tried_again_and_delays_nobody(start_server, hook):
	other = Http()
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook), webhook(other))
	hook.answers = [500, 503, 404]
	resync(s, cluster='a')
	resync(s, cluster='b')
	assert [x.json['clusterName'] for x in other.wait(2)] == ['a', 'b']
	for tries, seconds in enumerate((5, 30)):
		until(lambda: s.stderr.count('trying again in %d s' % seconds) == 1)
		s.advance(seconds - 1)
		time.sleep(0.5)
		assert len(hook.refused) == tries + 1
		s.advance(1)
		until(lambda: len(hook.refused) == tries + 2)
	until(lambda: 'trying again in 120 s' in s.stderr)
	s.advance(120)
	assert [x.json['clusterName'] for x in hook.wait(2)] == ['a', 'b']
	until(lambda: not queued(s))
	first = next(r for r in records(s) if r['receiver'].endswith(str(hook.port)))
	assert first['status'] == 'DELIVERED' and first['attempts'] == 4 and first['lastError'] == 'answered 404'
	assert len({x.headers['X-Steward-Delivery'] for x in hook.refused + hook.taken[:1]}) == 1, 'an attempt is known by its id'
	assert len(hook.taken) == 2 and len(other.taken) == 2
	other.stop()


def test_given_up_at_last(start_server, hook):
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	hook.answers = [410]
	resync(s)
	until(lambda: records(s)[0]['status'] == 'FAILED', what='given up at once')
	hook.answers = [500] * 100
	resync(s)
	for tries, wait in enumerate((5, 30, 120, 600, 3600, 3600, 3600)):
		until(lambda: len(hook.refused) == tries + 2)
		until(lambda: s.stderr.count('; trying again in') == tries + 1, what='the record of it')
		assert s.stderr.count('trying again in %d s' % wait)
		s.advance(wait)
	until(lambda: records(s)[1]['status'] == 'FAILED')
	assert records(s)[1]['attempts'] == 8 and not queued(s)
	hook.answers = []
	resync(s)
	hook.wait(1)


@pytest.mark.parametrize('how', ['kill', 'stop'])
def test_exactly_once_across_the_end_of_the_service(hook, how):
	"""Killed while the receiver is away, and in between messages: everything arrives once, in order."""
	s = Server('--outbox-private')
	data, count = s.data_dir, 0
	try:
		watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
		for round_ in range(4):
			hook.stop()
			for _ in range(5):
				resync(s, cluster='c%d' % count)
				count += 1
			getattr(s, how)()
			hook.start()
			s = Server('--outbox-private', data_dir=data)
			s.advance(60 * (round_ + 1))  # the virtual clock starts anew: what was to be tried again is due
			hook.wait(count)
			until(lambda: not queued(s))
		assert [x.json['clusterName'] for x in hook.taken] == ['c%d' % i for i in range(count)]
		assert len({x.headers['X-Steward-Delivery'] for x in hook.taken}) == count
	finally:
		s.kill()


def test_a_silent_receiver_delays_neither_others_nor_the_end(start_server, hook):
	other = Http()
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook), webhook(other))
	hook.hold.clear()
	resync(s)
	other.wait(1)
	started = time.monotonic()
	s.stop()
	assert time.monotonic() - started < 15
	hook.hold.set()
	other.stop()


def test_what_would_never_leave_is_refused(start_server):
	"""Without leave of the operator nothing goes over plain HTTP, so nobody may rely on it."""
	s = start_server()
	for url in ('http://hooks.example.com/x', 'HTTP://hooks.example.com/x'):
		refused(s.post('/groups/%s/alertConfigs' % s.group, json={
			'eventTypeName': 'JOINED_GROUP', 'enabled': True, 'notifications': [{'typeName': 'WEBHOOK', 'webhookUrl': url}]}),
			400, 'VALIDATION_ERROR', 'notifications[0].webhookUrl')
		refused(s.post('/groups/%s/integrations/WEBHOOK' % s.group, json={'url': url}), 400, 'VALIDATION_ERROR', 'url')


@pytest.mark.parametrize('url', ['https://127.0.0.1:%d/x', 'https://localhost:%d/x', 'https://[::1]:%d/x',
	'https://[::ffff:127.0.0.1]:%d/x', 'https://0:%d/x', 'https://2130706433:%d/x'])
def test_no_private_networks(start_server, hook, url):
	s = start_server()
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', {'typeName': 'WEBHOOK', 'webhookUrl': url % hook.port})
	resync(s)
	until(lambda: records(s)[0].get('lastError'))
	assert records(s)[0]['status'] == 'QUEUED' and not hook.taken and not hook.refused
	why = records(s)[0]['lastError']
	assert 'private' in why or 'http' in why.lower(), why


def test_no_redirects(start_server, hook):
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	hook.answers = [302]
	resync(s)
	until(lambda: records(s)[0].get('lastError') == 'answered 302')
	assert hook.taken == []


VENDORS = {
	'SLACK': ('slack', {'apiToken': 'xoxb-1', 'channelName': 'alerts'}),
	'PAGER_DUTY': ('pagerduty', {'serviceKey': 'c' * 32}),
	'OPS_GENIE': ('opsgenie-eu', {'opsGenieApiKey': 'genie-1', 'opsGenieRegion': 'EU'}),
	'VICTOR_OPS': ('victorops', {'victorOpsApiKey': 'vo/1', 'victorOpsRoutingKey': 'team a'}),
	'DATADOG': ('datadog-us5', {'datadogApiKey': 'd' * 32, 'datadogRegion': 'US5'}),
}


# What an integration calls what a notification of its type has.
INTEGRATED = {'opsGenieApiKey': 'apiKey', 'opsGenieRegion': 'region', 'victorOpsApiKey': 'apiKey', 'victorOpsRoutingKey': 'routingKey',
	      'datadogApiKey': 'apiKey', 'datadogRegion': 'region'}


@pytest.mark.parametrize('by', ['itself', 'integration'])
@pytest.mark.parametrize('kind', [*VENDORS, 'MICROSOFT_TEAMS'])
def test_vendors(start_server, hook, kind, by):
	"""Each in its own form, joined by the alert's id where it has one, and ended where it can be ended. Also where an integration of
	the project has what is needed."""
	endpoint, fields = VENDORS.get(kind, (None, {'microsoftTeamsWebhookUrl': hook.url + '/teams/x'}))
	# The operator's own address may be private; a tenant's may not, unless it is said.
	s = start_server(*(['--outbox-endpoint', '%s=%s/' % (endpoint, hook.url)] if endpoint else ['--outbox-private']))
	if by == 'integration':
		team = {'teamName': 'T'} if kind == 'SLACK' else {}
		made = ok(s.post('/groups/%s/integrations/%s' % (s.group, kind), json={
			'type': kind, **{INTEGRATED.get(k, k): v for k, v in fields.items()}, **team}))['results'][0]
		fields = {'integrationId': made['id']}
	config = watch(without_defaults(s), 'HOST_DOWN', {'typeName': kind, **fields})
	happens(s, 'HOST_DOWN')
	hook.wait(1)
	happens(s, 'HOST_UP')
	opened, closed = hook.wait(2)
	alert = ok(s.get('/groups/%s/alertConfigs/%s/alerts' % (s.group, config['id'])))['results'][0]['id']
	o, c = opened.json, closed.json
	if kind == 'SLACK':
		assert opened.path == '/api/chat.postMessage' and opened.headers['Authorization'] == 'Bearer xoxb-1'
		assert o['channel'] == 'alerts' and 'Host down' in o['text'] and 'CLOSED' in c['text']
	elif kind == 'PAGER_DUTY':
		assert opened.path == '/v2/enqueue' and o['routing_key'] == 'c' * 32 and o['dedup_key'] == c['dedup_key'] == alert
		assert (o['event_action'], c['event_action']) == ('trigger', 'resolve')
		assert o['payload']['severity'] in ('critical', 'error', 'warning', 'info') and o['payload']['summary'] and o['payload']['source']
	elif kind == 'OPS_GENIE':
		assert opened.path == '/v2/alerts' and opened.headers['Authorization'] == 'GenieKey genie-1' and o['alias'] == alert
		assert closed.path == '/v2/alerts/%s/close?identifierType=alias' % alert and len(o['message']) <= 130
	elif kind == 'VICTOR_OPS':
		assert opened.path == '/integrations/generic/20131114/alert/vo%2F1/team%20a'
		assert o['entity_id'] == c['entity_id'] == alert and c['message_type'] == 'RECOVERY' and o['message_type'] != 'RECOVERY'
	elif kind == 'DATADOG':
		assert opened.path == '/api/v1/events' and opened.headers['DD-API-KEY'] == 'd' * 32
		assert o['aggregation_key'] == c['aggregation_key'] == alert and c['alert_type'] == 'success'
	else:
		card = o['attachments'][0]['content']
		assert opened.path == '/teams/x' and card['type'] == 'AdaptiveCard' and 'Host down' in card['body'][0]['text']
	until(lambda: not queued(s))
	assert {r['status'] for r in records(s)} == {'DELIVERED'}


def test_text_messages(start_server, hook):
	"""Through the operator's gateway: to a number, and to a user's."""
	box = Inbox()
	s = start_server('--outbox-endpoint', 'sms=%s/send' % hook.url, '--smtp-url', box.url, '--smtp-from', 'steward@example.com')
	user = ok(s.post('/users', json={
		'username': 'sms@example.com', 'password': 'correct horse battery', 'firstName': 'A', 'lastName': 'B', 'country': 'GB',
		'mobileNumber': '+1 212 555 9999', 'roles': [{'orgId': s.org, 'roleName': 'ORG_MEMBER'}]}))
	token = box.wait()[0].content.decode().split('/invitations/')[1].split()[0]
	box.stop()
	ok(s.anonymous.post('/api/invitations/' + token, json={'password': 'correct horse battery'}))
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', {'typeName': 'SMS', 'mobileNumber': '+12125551234'},
		{'typeName': 'USER', 'username': user['username'], 'emailEnabled': False, 'smsEnabled': True})
	resync(s)
	got = hook.wait(2)
	assert {x.json['to'] for x in got} == {'+12125551234', '+1 212 555 9999'}
	assert all(x.path == '/send' and 'Cluster instance resync requested' in x.json['text'] and x.json['alertId'] for x in got)


def test_slow_receivers_of_some_hold_up_nobody(start_server, hook):
	"""Five organizations with a hundred receivers that never answer; the sixth is told at once, by webhook and by mail."""
	silent, box = Http(), Inbox()
	silent.hold.clear()
	s = start_server('--outbox-private', '--smtp-url', box.url, '--smtp-from', 'steward@example.com')
	orgs = s.seed(*[{'name': 'o%d' % i, 'projects': ['p'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]} for i in range(6)])
	groups = [o['projects'][0]['id'] for o in orgs]
	for org, group, box_ in zip(orgs, groups, [silent] * 5 + [hook]):
		owner = s.api_for(org['principals'][0])
		for _ in range(4 if box_ is silent else 1):
			ok(owner.post('/groups/%s/alertConfigs' % group, json={
				'eventTypeName': 'CLUSTER_INSTANCE_RESYNC_REQUESTED', 'enabled': True, 'notifications': [
					webhook(box_), *([webhook(box_)] * 24 if box_ is silent else [{'typeName': 'EMAIL', 'emailAddress': 'a@example.com'}])]}))
	tell = lambda group: s.control('events', {'groupId': group, 'eventTypeName': 'CLUSTER_INSTANCE_RESYNC_REQUESTED', 'clusterName': 'c'})
	for group in groups[:5]:
		tell(group)
	until(lambda: len(queued(s)) == 500)
	time.sleep(1)  # they take all the places that they can get
	started = time.monotonic()
	for count in (1, 2, 3):
		tell(groups[5])
		hook.wait(count)
		box.wait(count)
	assert time.monotonic() - started < 15, 'an answer has 20 s'
	silent.hold.set()
	until(lambda: not queued(s), 150)
	assert len(silent.taken) == len({x.headers['X-Steward-Delivery'] for x in silent.taken}) >= 500
	silent.stop()
	box.stop()


def test_a_clock_that_is_put_back(start_server, hook):
	"""What was to be tried again by a clock that was far ahead is tried now."""
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	s.advance(10 * 86400)
	hook.answers = [500]
	resync(s)
	until(lambda: 'trying again in 5 s' in s.stderr)
	s.kill()
	s = start(start_server, data_dir=s.data_dir)  # the virtual clock starts anew
	hook.wait(1)
	until(lambda: not queued(s))


def test_a_letter_that_nobody_will_take(start_server):
	box = Inbox()
	box.answers = ['550 no such user', '451 later']
	s = start_server('--smtp-url', box.url, '--smtp-from', 'steward@example.com')
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', {'typeName': 'EMAIL', 'emailAddress': 'a@example.com'})
	resync(s)
	until(lambda: records(s)[0]['status'] == 'FAILED')
	resync(s)
	until(lambda: 'trying again in 5 s' in s.stderr)
	s.advance(5)
	box.wait(1)
	until(lambda: [r['status'] for r in records(s)] == ['FAILED', 'DELIVERED'])
	box.stop()


def test_records_are_bounded(start_server, hook):
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	for i in range(130):
		resync(s, cluster='c%d' % i)
		if i % 50 == 49:
			hook.wait(i + 1)
	hook.wait(130)
	until(lambda: not queued(s))
	resync(s)
	hook.wait(131)
	until(lambda: not queued(s))
	assert len(records(s)) <= 130 and s.rows("SELECT 1 FROM doc WHERE kind = 'outbox_waiting'") == []


def test_slack_says_no_with_a_200(start_server, hook):
	hook.body = b'{"ok": false, "error": "channel_not_found"}'
	s = start_server('--outbox-endpoint', 'slack=' + hook.url)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', {'typeName': 'SLACK', 'apiToken': 'x', 'channelName': 'c'})
	resync(s)
	until(lambda: records(s)[0].get('lastError') == 'answered 200, but not ok')


def test_templates(start_server, hook):
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(
		hook, webhookBodyTemplate='{"what": "{{eventTypeName}}", "where": "{{ clusterName }}", "none": {{nothing}}}',
		webhookHeadersTemplate='X-Team: ops\nX-Cluster: {{clusterName}}\nHost: elsewhere\nContent-Length: 3\nx-steward-signature: mine\nX Y: z'))
	resync(s, cluster='a"b')
	got, = hook.wait(1)
	assert got.body == b'{"what": "CLUSTER_INSTANCE_RESYNC_REQUESTED", "where": "a\\"b", "none": }'
	assert got.headers['X-Team'] == 'ops' and got.signed_with('sign-with-this')
	assert got.headers['Host'] == '127.0.0.1:%d' % hook.port and 'x-steward-signature' not in got.headers and 'X Y' not in got.headers


@pytest.mark.parametrize('args', [['--outbox-endpoint', 'nobody=https://example.com'], ['--outbox-endpoint', 'slack'],
	['--outbox-endpoint', 'slack=ftp://x'], ['--outbox-ca', '/nonexistent']])
def test_options(start_server, args):
	with pytest.raises(AssertionError) as e:
		start_server(*args)
	assert args[0] in str(e.value)


def test_mail_survives_the_end_of_the_service():
	"""An invitation whose letter nobody took leaves after the next start."""
	args = ['--smtp-from', 'steward@example.com', '--smtp-url']
	s = Server(*args, 'smtp://127.0.0.1:%d' % free_port())  # nobody is there
	box = Inbox()
	try:
		ok(s.post('/orgs/%s/users' % s.org, json={'username': 'late@example.com', 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
		until(lambda: 'trying again in 5 s' in s.stderr)
		s.kill()
		text = b''.join(p.read_bytes() for p in s.data_dir.rglob('steward.db*'))
		s = Server(*args, box.url, data_dir=s.data_dir)
		s.advance(60)
		letter, = box.wait()
		assert letter.rcpt_tos == ['late@example.com']
		token = letter.content.decode().split('/invitations/')[1].split()[0]
		assert token[24:].encode() not in text, 'it is kept sealed'
		until(lambda: not queued(s))
		assert records(s) == [], 'and no record of it stays'
	finally:
		s.kill()
		box.stop()


def test_a_flood_is_bounded(start_server, hook):
	"""A receiver that takes nothing keeps a thousand messages waiting, and no more."""
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	hook.stop()
	for _ in range(1020):
		resync(s)
	assert len(queued(s)) == 1000 and 'too many messages are waiting' in s.stderr
	refused(s.get('/groups/%s/alerts/%s' % (s.group, '0' * 24)), 404)


def test_a_dead_receiver_takes_no_room_of_another(start_server, hook):
	"""What waits for one webhook of a configuration is no reason to drop what the other would take."""
	dead = Http()
	dead.stop()
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(dead), webhook(hook))
	for _ in range(1150):
		resync(s)
	hook.wait(1150)
	until(lambda: len(queued(s)) == 1000)
	for _ in range(110):
		resync(s)
	hook.wait(1260)
	assert len(records(s)) < 1400, 'those that are over make room'


def change(s, *statements):
	"""Behind the service's back."""
	with contextlib.closing(sqlite3.connect(s.data_dir / 'steward.db', timeout=60)) as db:
		for one in statements:
			db.execute(one)
		db.commit()


@pytest.mark.skipif(REMOTE, reason='a fault of the embedded store')
def test_content_that_cannot_be_read_holds_up_nothing(start_server, hook):
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	hook.stop()
	resync(s, cluster='a')
	resync(s, cluster='b')
	until(lambda: 'trying again in 5 s' in s.stderr)
	change(s, "UPDATE doc SET secret = (SELECT secret FROM doc WHERE kind = 'delivery' ORDER BY seq DESC LIMIT 1)"
		" WHERE kind = 'delivery' AND seq = (SELECT min(seq) FROM doc WHERE kind = 'delivery')")
	hook.start()
	s.advance(5)
	assert [x.json['clusterName'] for x in hook.wait(1)] == ['b']
	until(lambda: not queued(s))
	assert [(r['status'], r.get('lastError')) for r in records(s)] == [('FAILED', 'its content cannot be read'), ('DELIVERED', None)]


@pytest.mark.skipif(REMOTE, reason='a fault of the embedded store')
def test_a_store_that_refuses_is_asked_seldom(start_server, hook):
	s = start(start_server)
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	change(s, "CREATE TRIGGER refuse BEFORE UPDATE ON doc WHEN NEW.kind = 'outbox_receiver' BEGIN SELECT RAISE(ABORT, 'no'); END")
	resync(s)
	until(lambda: 'cannot be taken' in s.stderr)
	time.sleep(3)
	assert s.stderr.count('cannot be taken') < 20
	change(s, 'DROP TRIGGER refuse')
	hook.wait(1)
	until(lambda: not queued(s))
	assert len(hook.taken) == 1


def test_a_key_is_no_way_to_another_request(start_server, hook):
	s = start(start_server, '--outbox-endpoint', 'slack=' + hook.url)
	slack = {'typeName': 'SLACK', 'channelName': 'c', 'apiToken': 'x\r\nContent-Length: 0\r\n\r\nDELETE / HTTP/1.1\r\nHost: internal\r\n'}
	refused(s.post('/groups/%s/alertConfigs' % s.group, json={'eventTypeName': 'HOST_DOWN', 'notifications': [slack]}), 400, None,
		'notifications[0].apiToken')
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook, webhookHeadersTemplate='X-A: 1\rX-B: 2\nX-C: 3'))
	resync(s)
	got, = hook.wait()
	assert got.headers['X-A'] == '1 X-B: 2' and got.headers['X-C'] == '3' and 'X-B' not in got.headers
	for url in ('https:///example.com/a', 'https:/example.com/a'):
		refused(s.post('/groups/%s/alertConfigs' % s.group, json={'eventTypeName': 'HOST_DOWN', 'notifications': [
			{'typeName': 'WEBHOOK', 'webhookUrl': url}]}), 400, None, 'notifications[0].webhookUrl')


def test_a_silent_mail_server_holds_up_mail_alone(start_server, hook):
	with socket.create_server(('127.0.0.1', 0), backlog=200) as silent:
		s = start_server('--outbox-private', '--smtp-url', 'smtp://127.0.0.1:%d' % silent.getsockname()[1], '--smtp-from', 's@example.com')
		orgs = s.seed(*[{'name': 'm%d' % i, 'projects': ['p'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]} for i in range(80)])
		for i, org in enumerate(orgs):
			ok(s.api_for(org['principals'][0]).post('/groups/%s/alertConfigs' % org['projects'][0]['id'], json={
				'eventTypeName': 'CLUSTER_INSTANCE_RESYNC_REQUESTED', 'enabled': True, 'notifications': [
					webhook(hook) if i == 79 else {'typeName': 'EMAIL', 'emailAddress': 'a%d@example.com' % i}]}))
		for i, org in enumerate(orgs):
			if i == 79:
				time.sleep(1)  # they take all the places that they can get
			s.control('events', {'groupId': org['projects'][0]['id'], 'eventTypeName': 'CLUSTER_INSTANCE_RESYNC_REQUESTED', 'clusterName': 'c'})
		hook.wait(1, seconds=15)
		assert len(queued(s)) >= 79, 'the letters are tried again later'
		s.kill()
