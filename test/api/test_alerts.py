"""Alerts: raised by events and values, told to whom it concerns, acknowledged, ended."""
import datetime, email

import pytest

from client import ID, NO_ID, bare, cli, links, metric, ok, refused, unique, until
from receivers import Http, Inbox
from test_clusters import create, region

SECRET = 'sign-with-this'
HOLD = 5  # readings in a row within the bound, after which an alert about a metric ends


@pytest.fixture
def hook():
	box = Http()
	yield box
	box.stop()


@pytest.fixture
def inbox():
	box = Inbox()
	yield box
	box.stop()


def without_defaults(server):
	path = '/groups/%s/alertConfigs' % server.group
	for config in ok(server.get(path))['results']:
		ok(server.delete('%s/%s' % (path, config['id'])), 204)
	return server


@pytest.fixture
def s(start_server, hook, inbox):
	"""A server of its own, because time passes."""
	server = start_server('--outbox-private', '--smtp-url', inbox.url, '--smtp-from', 'steward@example.com')
	return without_defaults(server)


def webhook(box, **more):
	return {'typeName': 'WEBHOOK', 'webhookUrl': box.url + '/hook', 'webhookSecret': SECRET, 'delayMin': 0, **more}


def watch(s, event, *notifications, **more):
	return ok(s.post('/groups/%s/alertConfigs' % s.group, json={
		'eventTypeName': event, 'enabled': True, 'notifications': list(notifications), **more}))


def happens(s, event, cluster='c0', host='n0.example.com', **more):
	s.control('events', {'groupId': s.group, 'eventTypeName': event, 'clusterName': cluster, 'hostname': host, 'port': 5432, **more})


def alerts(s, config=None, **query):
	"""Of a configuration, or of all that the test itself made."""
	path = '/groups/%s/alerts' % s.group if not config else '/groups/%s/alertConfigs/%s/alerts' % (s.group, config['id'])
	return ok(s.get(path, params=query))['results']


def minutes(s, n):
	s.advance(60 * n)


def test_an_event_is_told_at_once(s, hook):
	config = watch(s, 'NETWORK_PERMISSION_ENTRY_ADDED', webhook(hook))
	ok(s.post('/groups/%s/accessList' % s.group, json=[{'ipAddress': '192.0.2.1'}]))
	alert, = alerts(s)
	assert alert['status'] == 'CLOSED' and alert['resolved'] == alert['created'] and alert['alertConfigId'] == config['id']
	assert alert['eventTypeName'] == 'NETWORK_PERMISSION_ENTRY_ADDED' and alert['groupId'] == s.group and alert['orgId'] == s.org
	got, = hook.wait()
	assert got.path == '/hook' and got.signed_with(SECRET) and not got.signed_with('another')
	assert got.headers['X-Steward-Event'] == 'alert.event' and ID.match(got.headers['X-Steward-Delivery'])
	assert got.json['id'] == alert['id'] and got.json['eventTypeName'] == alert['eventTypeName']
	assert [bare(x) for x in alerts(s, config)] == [bare(alert)]
	one = ok(s.get('/groups/%s/alerts/%s' % (s.group, alert['id'])))
	assert bare(one) == bare(alert)
	found = ok(s.get(links(one)[s.base_url + '/rels/alertConfigs']))['results']
	assert [c['id'] for c in found] == [config['id']]
	refused(s.get('/groups/%s/alerts/%s' % (s.group, NO_ID)), 404)


def test_an_alert_from_its_beginning_to_its_end(server):
	"""On the server whose exchanges are held against the reference."""
	org, = server.seed({'name': unique('life'), 'projects': ['life'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	owner, group = server.api_for(org['principals'][0]), org['projects'][0]['id']
	path, mail = '/groups/' + group, {'typeName': 'EMAIL', 'emailAddress': 'ada@example.com'}
	events = {'HOST_DOWN': 'HOST_UP', 'NO_PRIMARY': 'ONE_PRIMARY', 'CLUSTER_ROUTER_IS_MISSING': 'CLUSTER_ROUTER_IS_PRESENT',
		'CLUSTER_BLOCK_WRITE': 'CLUSTER_UNBLOCK_WRITE', 'JOINED_GROUP': None, 'STREAM_PROCESSOR_STATE_IS_FAILED': None}
	tell = lambda event: server.control('events', {
		'groupId': group, 'eventTypeName': event, 'clusterName': 'c0', 'hostname': 'n0', 'port': 5432, 'replicaSetName': 'r0'})
	metrics = {'CONNECTIONS': 'RAW', 'MEMORY_RESIDENT': 'GIGABYTES', 'OPLOG_SLAVE_LAG_MASTER_TIME': 'SECONDS'}
	for event in events:
		ok(owner.post(path + '/alertConfigs', json={'eventTypeName': event, 'enabled': True, 'notifications': [mail]}))
		tell(event)
	for metric, units in metrics.items():
		ok(owner.post(path + '/alertConfigs', json={
			'eventTypeName': 'OUTSIDE_METRIC_THRESHOLD', 'enabled': True, 'notifications': [mail], 'metricThreshold': {
				'metricName': metric, 'mode': 'AVERAGE', 'operator': 'GREATER_THAN', 'threshold': 5, 'units': units}}))
		server.control('readings', {'groupId': group, 'clusterName': 'c0', 'hostname': 'n0', 'port': 5432, 'metricName': metric, 'value': 2**40})
	found = ok(owner.get(path + '/alerts'))['results']
	assert len(found) == len(events) + len(metrics) and sum(x['status'] == 'OPEN' for x in found) == len(found) - 2
	for alert in found:
		one = path + '/alerts/' + alert['id']
		ok(owner.get(one + '/alertConfigs'))
		if alert['status'] == 'OPEN':
			ok(owner.patch(one, json={'acknowledgedUntil': '2099-01-01T00:00:00Z', 'acknowledgementComment': 'on it'}))
			ok(owner.get(one))
			ok(owner.patch(one, json={'unacknowledgeAlert': True}))
		ok(owner.get('%s/alertConfigs/%s/alerts' % (path, alert['alertConfigId'])))
	for event in filter(None, events.values()):
		tell(event)
	assert {x['status'] for x in ok(owner.get(path + '/alerts', params={'status': 'OPEN'}))['results']} == {'OPEN'}
	closed = ok(owner.get(path + '/alerts', params={'status': 'CLOSED'}))['results']
	assert {x['eventTypeName'] for x in closed} == set(events)
	refused(owner.get(path + '/alerts', params={'status': 'ASLEEP'}), 400, None, 'status')
	for below in ('/alertConfigs', '/alerts', '/alerts/' + closed[0]['id']):
		refused(server.owner.get(path + below), 401)
	for missing in ('/alerts/%s' % NO_ID, '/alerts/%s/alertConfigs' % NO_ID, '/alertConfigs/%s/alerts' % NO_ID):
		refused(owner.get(path + missing), 404)
	refused(owner.patch('%s/alerts/%s' % (path, closed[0]['id']), json={'unacknowledgeAlert': True}), 400, 'ALERT_NOT_OPEN')


def test_an_older_version_acknowledges(older_server):
	s = older_server
	config = watch(s, 'HOST_DOWN', {'typeName': 'EMAIL', 'emailAddress': 'a@example.com'})
	happens(s, 'HOST_DOWN', host=unique() + '.example.com')
	path = '/groups/%s/alerts/%s' % (s.group, alerts(s, config)[0]['id'])
	old = {'Accept': 'application/vnd.svc.2023-01-01+json', 'Content-Type': 'application/vnd.svc.2023-01-01+json'}
	doc = ok(s.patch(path, json={'acknowledgedUntil': '2099-01-01T00:00:00Z'}, headers=old))
	assert doc['acknowledgedUntil'] == '2099-01-01T00:00:00Z'
	assert 'acknowledgedUntil' not in ok(s.patch(path, json={'acknowledgedUntil': '2000-01-01T00:00:00Z'}, headers=old))


def test_opened_and_closed_by_events(s, hook):
	config = watch(s, 'HOST_DOWN', webhook(hook))
	happens(s, 'HOST_DOWN')
	happens(s, 'HOST_DOWN')  # it is known already
	happens(s, 'HOST_DOWN', host='n1.example.com')
	first, second = alerts(s, config)
	assert first['status'] == second['status'] == 'OPEN' and 'resolved' not in first
	assert first['hostnameAndPort'] == 'n0.example.com:5432' and first['clusterName'] == 'c0'
	hook.wait(2)
	assert {x['id'] for x in alerts(s, status='OPEN')} == {first['id'], second['id']} and alerts(s, status='CLOSED') == []
	happens(s, 'HOST_UP')
	first, second = alerts(s, config)
	assert first['status'] == 'CLOSED' and first['resolved'] and second['status'] == 'OPEN'
	assert [x['id'] for x in alerts(s, status='CLOSED')] == [first['id']]
	last = hook.wait(3)[2]
	assert last.headers['X-Steward-Event'] == 'alert.closed' and last.json['status'] == 'CLOSED' and last.json['id'] == first['id']
	happens(s, 'HOST_DOWN')
	assert len(alerts(s, config)) == 3, 'a new alert, as the old one is over'
	cli('check', '--data', s.data_dir)


def test_who_is_added_is_told_of_what_is_open(s, hook):
	config = watch(s, 'HOST_DOWN', {'typeName': 'EMAIL', 'emailAddress': 'a@example.com', 'delayMin': 0})
	happens(s, 'HOST_DOWN')
	first, = alerts(s, config)
	path = '/groups/%s/alertConfigs/%s' % (s.group, config['id'])
	body = {'eventTypeName': 'HOST_DOWN', 'enabled': True, 'notifications': [*config['notifications'], webhook(hook)]}
	for _ in range(2):  # the second time nobody is new
		body['notifications'] = [dict(n, webhookSecret=SECRET) if n['typeName'] == 'WEBHOOK' else n
					 for n in ok(s.put(path, json=body))['notifications']]
	assert hook.wait(1)[0].json['id'] == first['id']
	happens(s, 'HOST_UP')
	assert [x.headers['X-Steward-Event'] for x in hook.wait(2)] == ['alert.open', 'alert.closed']


def test_what_is_not_watched(s, hook):
	disabled = watch(s, 'HOST_DOWN', webhook(hook), enabled=False)
	other = watch(s, 'HOST_NOT_ENOUGH_DISK_SPACE', webhook(hook))
	happens(s, 'HOST_DOWN')
	assert alerts(s, disabled) == alerts(s, other) == []


@pytest.mark.parametrize('operator, value, matches', [
	('EQUALS', 'c0', True), ('EQUALS', 'c', False), ('NOT_EQUALS', 'c0', False), ('NOT_EQUALS', 'c1', True),
	('CONTAINS', '0', True), ('CONTAINS', '1', False), ('NOT_CONTAINS', '0', False), ('STARTS_WITH', 'c', True),
	('STARTS_WITH', '0', False), ('ENDS_WITH', '0', True), ('ENDS_WITH', 'c', False), ('REGEX', '^c[0-9]$', True),
	('REGEX', '^[0-9]', False), ('REGEX', '^(c+)+$', False)])
def test_matchers(module_server, operator, value, matches):
	s = module_server
	config = watch(s, 'NO_PRIMARY', {'typeName': 'EMAIL', 'emailAddress': 'a@example.com'}, matchers=[
		{'fieldName': 'CLUSTER_NAME', 'operator': operator, 'value': value}])
	happens(s, 'NO_PRIMARY', replicaSetName='set')
	assert len(alerts(s, config)) == matches
	happens(s, 'ONE_PRIMARY', replicaSetName='set')
	assert all(x['status'] == 'CLOSED' for x in alerts(s, config))


def test_all_matchers_must_match(module_server):
	s = module_server
	both = lambda a, b: [{'fieldName': 'CLUSTER_NAME', 'operator': 'EQUALS', 'value': a},
		{'fieldName': 'REPLICA_SET_NAME', 'operator': 'EQUALS', 'value': b}]
	mail = {'typeName': 'EMAIL', 'emailAddress': 'a@example.com'}
	yes, no = watch(s, 'NO_PRIMARY', mail, matchers=both('c7', 'r')), watch(s, 'NO_PRIMARY', mail, matchers=both('c7', 'x'))
	happens(s, 'NO_PRIMARY', cluster='c7', replicaSetName='r')
	assert len(alerts(s, yes)) == 1 and alerts(s, no) == []


def test_delay_tracks_first(s, hook):
	config = watch(s, 'HOST_DOWN', webhook(hook, delayMin=10))
	happens(s, 'HOST_DOWN')
	assert alerts(s, config)[0]['status'] == 'TRACKING' and len(alerts(s, status='TRACKING')) == 1
	minutes(s, 9)
	assert alerts(s, config)[0]['status'] == 'TRACKING' and hook.taken == []
	minutes(s, 2)
	until(lambda: alerts(s, config)[0]['status'] == 'OPEN')
	assert hook.wait()[0].json['status'] == 'OPEN' and alerts(s, config)[0]['lastNotified']


def test_what_passes_before_its_delay_is_told_to_nobody(s, hook):
	config = watch(s, 'HOST_DOWN', webhook(hook, delayMin=10))
	happens(s, 'HOST_DOWN')
	happens(s, 'HOST_UP')
	assert alerts(s, config)[0]['status'] == 'CANCELLED'
	minutes(s, 60)
	happens(s, 'HOST_DOWN')
	minutes(s, 11)
	assert len(hook.wait()) == 1


def test_told_again_at_each_interval_until_acknowledged(s, hook):
	config = watch(s, 'HOST_DOWN', webhook(hook, intervalMin=5))
	happens(s, 'HOST_DOWN')
	hook.wait(1)
	minutes(s, 6)
	hook.wait(2)
	alert, = alerts(s, config)
	path = '/groups/%s/alerts/%s' % (s.group, alert['id'])
	refused(s.patch(path, json={}), 400, None, 'acknowledgedUntil')
	refused(s.patch(path, json={'acknowledgedUntil': '2099-01-01T00:00:00Z', 'acknowledgementComment': 'x' * 201}), 400)
	now = ok(s.anonymous.get('/api/test/clock'))['now']
	end = (datetime.datetime.fromisoformat(now.replace('Z', '+00:00')) + datetime.timedelta(hours=1)).strftime('%Y-%m-%dT%H:%M:%SZ')
	doc = ok(s.patch(path, json={'acknowledgedUntil': end, 'acknowledgementComment': 'on it'}))
	assert doc['acknowledgedUntil'] == end and doc['acknowledgementComment'] == 'on it' and '@' in doc['acknowledgingUsername']
	assert bare(ok(s.get(path))) == bare(doc)
	minutes(s, 30)
	minutes(s, 20)
	assert len(hook.taken) == 2, 'nobody is told while somebody is at it'
	minutes(s, 11)
	hook.wait(3)
	doc = ok(s.get(path))
	assert 'acknowledgedUntil' not in doc and 'acknowledgementComment' not in doc and doc['status'] == 'OPEN'
	types = [e['eventTypeName'] for e in ok(s.get('/groups/%s/events' % s.group))['results']]
	assert types.index('ALERT_UNACKNOWLEDGED_AUDIT') < types.index('ALERT_ACKNOWLEDGED_AUDIT')


def test_an_acknowledgement_is_taken_back(s, hook):
	config = watch(s, 'HOST_DOWN', webhook(hook, intervalMin=5))
	happens(s, 'HOST_DOWN')
	hook.wait(1)
	path = '/groups/%s/alerts/%s' % (s.group, alerts(s, config)[0]['id'])
	ok(s.patch(path, json={'acknowledgedUntil': '2099-01-01T00:00:00Z'}))
	minutes(s, 10)
	assert 'acknowledgedUntil' not in ok(s.patch(path, json={'unacknowledgeAlert': True}))
	hook.wait(2)
	happens(s, 'HOST_UP')
	refused(s.patch(path, json={'acknowledgedUntil': '2099-01-01T00:00:00Z'}), 400, 'ALERT_NOT_OPEN')
	refused(s.patch('/groups/%s/alerts/%s' % (s.group, NO_ID), json={'unacknowledgeAlert': True}), 404)


@pytest.mark.parametrize('how', ['disabled', 'deleted', 'another type'])
def test_alerts_end_with_their_configuration(s, hook, how):
	config = watch(s, 'HOST_DOWN', webhook(hook))
	happens(s, 'HOST_DOWN')
	hook.wait(1)
	path = '/groups/%s/alertConfigs/%s' % (s.group, config['id'])
	if how == 'disabled':
		ok(s.patch(path, json={'enabled': False}))
	elif how == 'deleted':
		ok(s.delete(path), 204)
	else:
		ok(s.put(path, json={'eventTypeName': 'JOINED_GROUP', 'notifications': config['notifications']}))
	alert = [x for x in alerts(s) if x['alertConfigId'] == config['id']]
	assert [x['status'] for x in alert] == ['CANCELLED']
	assert hook.wait(2)[1].json['status'] == 'CANCELLED'
	if how == 'deleted':
		assert ok(s.get('/groups/%s/alerts/%s/alertConfigs' % (s.group, alert[0]['id'])))['results'] == []
		until(lambda: s.rows("SELECT 1 FROM doc WHERE kind = 'delivery'") == [], what='no record of what is gone')


def test_alerts_end_with_their_cluster(s, hook):
	config = watch(s, 'HOST_DOWN', webhook(hook))
	happens(s, 'HOST_DOWN')
	happens(s, 'HOST_DOWN', cluster='c1')
	happens(s, 'CLUSTER_DELETED')
	assert [x['status'] for x in alerts(s, config)] == ['CANCELLED', 'OPEN']


def test_people_are_told_by_mail(s, inbox):
	"""By address, by name, by role in the project, by team; each once."""
	add = lambda roles: ok(s.post('/users', json={
		'username': unique() + '@example.com', 'password': 'correct horse battery', 'firstName': 'A', 'lastName': 'B', 'country': 'GB',
		'mobileNumber': '+1 212 555 1234', 'roles': [{'orgId': s.org, 'roleName': 'ORG_MEMBER'}] + roles}))
	people = [add([{'groupId': s.group, 'roleName': r}] if r else []) for r in ('GROUP_OWNER', 'GROUP_READ_ONLY', None)]
	inbox.wait(3)
	for user in people:
		text = next(x for x in inbox.letters if x.rcpt_tos == [user['username']]).content.decode()
		token = text.split('/invitations/')[1].split()[0]
		ok(s.anonymous.post('/api/invitations/' + token, json={'password': 'correct horse battery'}))
	owner, reader, member = [u['username'] for u in people]
	team = ok(s.post('/orgs/%s/teams' % s.org, json={'name': 'ops', 'usernames': [member]}))
	inbox.letters.clear()
	for notification, whom in (
			({'typeName': 'EMAIL', 'emailAddress': 'x@example.com'}, {'x@example.com'}),
			({'typeName': 'USER', 'username': reader, 'emailEnabled': True}, {reader}),
			({'typeName': 'GROUP', 'roles': ['GROUP_READ_ONLY'], 'emailEnabled': True}, {reader}),
			({'typeName': 'GROUP', 'roles': ['GROUP_READ_ONLY'], 'emailEnabled': False}, set()),
			({'typeName': 'TEAM', 'teamId': team['id'], 'emailEnabled': True}, {member})):
		config = watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', notification)
		happens(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED')
		inbox.wait(len(whom))
		assert sorted(x.rcpt_tos[0] for x in inbox.letters) == sorted(whom)
		for letter in [email.message_from_bytes(x.content) for x in inbox.letters]:
			assert 'Cluster instance resync requested' in letter['Subject'] and config['id'] in letter.get_payload()
		ok(s.delete('/groups/%s/alertConfigs/%s' % (s.group, config['id'])), 204)
		inbox.letters.clear()
	assert owner


def test_elections(s, hook):
	"""More than the threshold within an hour; over an hour after the last."""
	config = watch(s, 'TOO_MANY_ELECTIONS', webhook(hook), threshold={'operator': 'GREATER_THAN', 'threshold': 2, 'units': 'RAW'})
	for _ in range(2):
		happens(s, 'PRIMARY_ELECTED')
	minutes(s, 61)
	for _ in range(2):
		happens(s, 'PRIMARY_ELECTED')
	assert alerts(s, config) == []
	happens(s, 'PRIMARY_ELECTED')
	assert [x['status'] for x in alerts(s, config)] == ['OPEN']
	minutes(s, 61)
	until(lambda: alerts(s, config)[0]['status'] == 'CLOSED')
	assert len(hook.wait(2)) == 2


def read(s, metric, value, host='n0.example.com'):
	s.control('readings', {'groupId': s.group, 'clusterName': 'c0', 'hostname': host, 'port': 5432, 'metricName': metric, 'value': value})


@pytest.mark.parametrize('metric, operator, bound, units, inside, outside', [
	('CONNECTIONS', 'GREATER_THAN', 100, 'RAW', 100, 101), ('CONNECTIONS', 'LESS_THAN', 5, 'RAW', 5, 4),
	('MEMORY_RESIDENT', 'GREATER_THAN', 2, 'GIGABYTES', 2 * 2**30, 3 * 2**30),
	('OPLOG_SLAVE_LAG_MASTER_TIME', 'GREATER_THAN', 30, 'SECONDS', 30000, 31000)])
def test_thresholds(s, hook, metric, operator, bound, units, inside, outside):
	config = watch(s, 'OUTSIDE_METRIC_THRESHOLD', webhook(hook), metricThreshold={
		'metricName': metric, 'mode': 'AVERAGE', 'operator': operator, 'threshold': bound, 'units': units})
	read(s, metric, inside)
	read(s, 'TICKETS_AVAILABLE_READS', outside)
	assert alerts(s, config) == []
	read(s, metric, outside)
	read(s, metric, outside)
	alert, = alerts(s, config)
	assert alert['status'] == 'OPEN' and alert['metricName'] == metric and alert['hostnameAndPort'] == 'n0.example.com:5432'
	assert alert['currentValue']['number'] != bound and hook.wait(1)[0].json['currentValue'] == {**alert['currentValue'], 'units': units}
	read(s, metric, inside, host='n1.example.com')
	assert alerts(s, config)[0]['status'] == 'OPEN'
	for _ in range(HOLD):
		assert alerts(s, config)[0]['status'] == 'OPEN'
		read(s, metric, inside)
	assert alerts(s, config)[0]['status'] == 'CLOSED'
	assert [x.headers['X-Steward-Event'] for x in hook.wait(2)] == ['alert.open', 'alert.closed']


def test_what_swings_is_told_once(s, hook):
	"""An alert ends once its value was inside for five readings in a row, or as many as the configuration says."""
	where = '/groups/%s/alertConfigs' % s.group
	body = {'eventTypeName': 'OUTSIDE_METRIC_THRESHOLD', 'enabled': True, 'notifications': [webhook(hook)],
	        'metricThreshold': {'metricName': 'CONNECTIONS', 'mode': 'AVERAGE', 'operator': 'GREATER_THAN', 'threshold': 80, 'units': 'RAW'}}
	config = ok(s.post(where, json=body))
	for _ in range(10):
		read(s, 'CONNECTIONS', 81)
		for _ in range(HOLD - 1):
			read(s, 'CONNECTIONS', 79)
	alert, = alerts(s, config)
	assert alert['status'] == 'OPEN' and alert['currentValue']['number'] == 79
	read(s, 'CONNECTIONS', 79)
	assert [a['status'] for a in alerts(s, config)] == ['CLOSED']
	assert [x.headers['X-Steward-Event'] for x in hook.wait(2)] == ['alert.open', 'alert.closed']

	one = '%s/%s' % (where, config['id'])
	hold = lambda: s.get(one).headers['X-Steward-Close-After']
	assert hold() == 'PT%dM' % HOLD
	for wrong in ('', 'x', 'PT0M', 'PT90S', 'P2D', '5'):
		refused(s.put(one, json=body, headers={'X-Steward-Close-After': wrong}), 400, 'INVALID_HEADER')
	for r in (s.put(one, json=body, headers={'X-Steward-Close-After': 'PT2M'}), s.put(one, json=body), s.patch(one, json={'enabled': True}), s.get(one)):
		assert 'holdMinutes' not in ok(r)
	assert hold() == 'PT2M' and 'holdMinutes' not in ok(s.get(where))['results'][0]
	read(s, 'CONNECTIONS', 81)
	read(s, 'CONNECTIONS', 79)
	assert sorted(a['status'] for a in alerts(s, config)) == ['CLOSED', 'OPEN']
	read(s, 'CONNECTIONS', 79)
	assert [a['status'] for a in alerts(s, config)] == ['CLOSED', 'CLOSED']


def test_what_is_tracked_ends_at_once(s, hook):
	config = watch(s, 'OUTSIDE_METRIC_THRESHOLD', webhook(hook, delayMin=5), metricThreshold={
		'metricName': 'CONNECTIONS', 'mode': 'AVERAGE', 'operator': 'GREATER_THAN', 'threshold': 80, 'units': 'RAW'})
	read(s, 'CONNECTIONS', 81)
	assert [a['status'] for a in alerts(s, config)] == ['TRACKING']
	read(s, 'CONNECTIONS', 79)
	assert [a['status'] for a in alerts(s, config)] == ['CANCELLED']


def test_the_list_is_bounded(s):
	"""The oldest that are over go, some at a time; what lasts stays. Nobody is told."""
	nobody = {'typeName': 'GROUP', 'emailEnabled': False}
	lasts, configs = watch(s, 'HOST_DOWN', nobody), [watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', nobody) for _ in range(30)]
	happens(s, 'HOST_DOWN')
	for i in range(67):
		happens(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED')
	count = ok(s.get('/groups/%s/alerts' % s.group))['totalCount']
	assert 1900 < count <= 2000
	of_each = [ok(s.get('/groups/%s/alertConfigs/%s/alerts' % (s.group, c['id'])))['totalCount'] for c in configs]
	assert sum(of_each) == count - 1 and min(of_each) > 60, of_each
	assert [x['status'] for x in alerts(s, lasts)] == ['OPEN']


def test_what_lasts_is_bounded(s):
	"""A thousand alerts last at a time; when one ends there is room for another."""
	configs = [watch(s, 'HOST_DOWN', {'typeName': 'GROUP', 'emailEnabled': False}) for _ in range(30)]
	for i in range(34):
		happens(s, 'HOST_DOWN', host='n%d.example.com' % i)
	elections = watch(s, 'TOO_MANY_ELECTIONS', {'typeName': 'GROUP', 'emailEnabled': False}, threshold={'threshold': 0})
	happens(s, 'PRIMARY_ELECTED')
	assert ok(s.get('/groups/%s/alerts' % s.group, params={'status': 'OPEN'}))['totalCount'] == 1000
	assert s.stderr.count('no more are opened') == 1 and alerts(s, elections) == []
	happens(s, 'HOST_UP', host='n0.example.com')
	happens(s, 'PRIMARY_ELECTED')
	assert [x['status'] for x in alerts(s, elections)] == ['OPEN']
	for c in configs:
		ok(s.delete('/groups/%s/alertConfigs/%s' % (s.group, c['id'])), 204)
	assert ok(s.get('/groups/%s/alerts' % s.group, params={'status': 'OPEN'}))['totalCount'] == 1


def test_one_event_sends_so_much(s, hook):
	"""However much is configured, the write of an event is bounded: an alert is 4, a message 1, of 500."""
	hook.stop()
	for _ in range(20):
		watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', *[webhook(hook)] * 25)
		s.refill()
	happens(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED')
	assert len(alerts(s)) == 18 and len(s.rows("SELECT 1 FROM doc WHERE kind = 'outbox_message'")) == 500 - 18 * 4
	assert s.rows("SELECT 1 FROM doc WHERE kind = 'outbox_message'") == s.rows("SELECT 1 FROM doc WHERE kind = 'outbox_waiting'")
	assert metric(s, 'steward_outbox_dropped_total') == 18 * 25 - (500 - 18 * 4)
	assert s.stderr.count('too many messages are waiting') < 5 and 'too many at once' in s.stderr


def test_elected_with_a_threshold(s, hook):
	"""The schema lets such a configuration have one; it has no meaning, and does not silence it."""
	config = watch(s, 'PRIMARY_ELECTED', webhook(hook), threshold={'operator': '>', 'threshold': 3})
	happens(s, 'PRIMARY_ELECTED')
	assert len(alerts(s, config)) == 1 and len(hook.wait()) == 1


def test_who_has_left_is_told_nothing(s, inbox):
	user = ok(s.post('/orgs/%s/users' % s.org, json={'username': unique() + '@example.com', 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	token = inbox.wait()[0].content.decode().split('/invitations/')[1].split()[0]
	ok(s.anonymous.post('/api/invitations/' + token, json={'password': 'correct horse battery', 'firstName': 'A', 'lastName': 'B'}))
	member = next(u for u in ok(s.get('/orgs/%s/users' % s.org))['results'] if u['username'] == user['username'])
	watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', {'typeName': 'USER', 'username': user['username']})
	happens(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED')
	inbox.wait(2)
	ok(s.delete('/orgs/%s/users/%s' % (s.org, member['id'])), 204)
	happens(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED')
	watch(s, 'CLUSTER_INSTANCE_STOP_START', {'typeName': 'EMAIL', 'emailAddress': 'last@example.com'})
	happens(s, 'CLUSTER_INSTANCE_STOP_START')
	assert [x.rcpt_tos for x in inbox.wait(3)[2:]] == [['last@example.com']]


def test_webhooks_of_state_changes(s, hook):
	"""Events of any type, for a webhook that asks for them: nobody polls for IDLE. No alert comes of it."""
	config = watch(s, 'CPS_SNAPSHOT_FAILED', webhook(hook, webhookUrl=hook.url + '/hook?a=1#events=CLUSTER_CREATED,CLUSTER_READY'), webhook(hook),
		matchers=[{'fieldName': 'CLUSTER_NAME', 'operator': 'EQUALS', 'value': 'orders'}])
	assert config['notifications'][0]['webhookUrl'].endswith('#events=CLUSTER_CREATED,CLUSTER_READY')
	create(s, s.group, 'orders', [region(nodes=1)])
	create(s, s.group, 'others', [region(nodes=1)])
	got = hook.wait(2)
	assert [x.json['eventTypeName'] for x in got] == ['CLUSTER_CREATED', 'CLUSTER_READY']
	assert all(x.path == '/hook?a=1' and x.headers['X-Steward-Event'] == 'event' and x.signed_with(SECRET) and x.json['clusterName'] == 'orders'
		for x in got)
	event = ok(s.get('/groups/%s/events/%s' % (s.group, got[1].json['id'])))
	assert event['eventTypeName'] == 'CLUSTER_READY' and event['created'] == got[1].json['created'] and alerts(s) == []
	ok(s.patch('/groups/%s/alertConfigs/%s' % (s.group, config['id']), json={'enabled': False}))
	ok(s.delete('/groups/%s/clusters/orders' % s.group), 202)
	until(lambda: not s.rows("SELECT 1 FROM doc WHERE kind = 'outbox_message'"))
	assert len(hook.taken) == 2
	ok(s.delete('/groups/%s/alertConfigs/%s' % (s.group, config['id'])), 204)
	assert s.rows("SELECT 1 FROM doc WHERE kind = 'alert_listener'") == []


def replay(s, config, period='P1D'):
	r = s.get('/groups/%s/alertConfigs/%s' % (s.group, config['id']), headers={'X-Steward-Replay': period})
	assert bare(ok(r)) == bare(ok(s.get('/groups/%s/alertConfigs/%s' % (s.group, config['id']))))
	return {k.lower()[len('x-steward-replay-'):]: v for k, v in r.headers.items() if k.lower().startswith('x-steward-replay-')}


def test_tried_against_events(s):
	"""Before it is enabled: nothing is written, nobody is told."""
	mail = {'typeName': 'EMAIL', 'emailAddress': 'a@example.com'}
	happens(s, 'HOST_DOWN')
	minutes(s, 3)
	happens(s, 'HOST_DOWN')
	happens(s, 'HOST_UP')
	happens(s, 'HOST_DOWN', cluster='c1')
	minutes(s, 30)
	for _ in range(3):
		happens(s, 'PRIMARY_ELECTED')
	minutes(s, 90)
	off = lambda event, delay=0, **more: watch(s, event, {**mail, 'delayMin': delay}, enabled=False, **more)
	only = [{'fieldName': 'CLUSTER_NAME', 'operator': 'EQUALS', 'value': 'c1'}]
	assert replay(s, off('HOST_DOWN'))['count'] == '2'
	assert replay(s, off('HOST_DOWN', 5))['count'] == '1' and replay(s, off('HOST_DOWN', matchers=only))['count'] == '1'
	found = replay(s, off('PRIMARY_ELECTED'))
	assert found['count'] == '3' and found['since'] < found['last'] and 'note' not in found
	assert replay(s, off('PRIMARY_ELECTED'), 'PT1H')['count'] == '0' and 'last' not in replay(s, off('PRIMARY_ELECTED'), 'PT1H')
	assert replay(s, off('TOO_MANY_ELECTIONS', threshold={'threshold': 1}))['count'] == '1'
	assert replay(s, off('TOO_MANY_ELECTIONS', threshold={'threshold': 3}))['count'] == '0'
	assert list(replay(s, off('CPS_SNAPSHOT_BEHIND', threshold={'operator': 'GREATER_THAN', 'threshold': 3, 'units': 'HOURS'}))) == ['note']
	assert list(replay(s, off('OUTSIDE_METRIC_THRESHOLD', metricThreshold={
		'metricName': 'ASSERT_USER', 'operator': 'GREATER_THAN', 'threshold': 1}))) == ['note']
	assert alerts(s) == [] and s.rows("SELECT 1 FROM doc WHERE kind = 'outbox_message'") == []
	config = off('HOST_DOWN')
	for wrong in ('yesterday', 'P63D', ''):
		refused(s.get('/groups/%s/alertConfigs/%s' % (s.group, config['id']), headers={'X-Steward-Replay': wrong}), 400, 'INVALID_HEADER')
	refused(s.get('/groups/%s/alertConfigs/%s' % (s.group, NO_ID), headers={'X-Steward-Replay': 'P1D'}), 404)


def test_tried_against_values(s):
	doc = create(s, s.group)
	minutes(s, 60 * 24)
	off = lambda bound, delay=0, metric='CONNECTIONS', **more: watch(
		s, 'OUTSIDE_METRIC_THRESHOLD', {'typeName': 'EMAIL', 'emailAddress': 'a@example.com', 'delayMin': delay}, enabled=False,
		metricThreshold={'metricName': metric, 'operator': 'GREATER_THAN', 'threshold': bound}, **more)
	assert replay(s, off(0.5))['count'] == '3', 'each process, all the time'
	assert replay(s, off(1e9))['count'] == '0'
	leads = [{'fieldName': 'TYPE_NAME', 'operator': 'EQUALS', 'value': 'PRIMARY'}]
	assert replay(s, off(0.5, matchers=leads))['count'] == '1'
	assert replay(s, off(0.1, metric='DISK_PARTITION_SPACE_USED_DATA'), 'P20D')['count'] == '3'
	# As often as measurements pass the bound of their own middle, and less often with a delay.
	process = next(p['id'] for p in ok(s.get('/groups/%s/processes' % s.group))['results'] if p['typeName'] == 'REPLICA_PRIMARY')
	points = ok(s.get('/groups/%s/processes/%s/measurements?granularity=PT1M&period=PT6H&m=CONNECTIONS' % (s.group, process)))
	values = [p['value'] for p in points['measurements'][0]['dataPoints'] if 'value' in p]
	middle = sorted(values)[len(values) // 2]
	passes, within = 0, HOLD
	for value in values:
		passes += value > middle and within >= HOLD
		within = 0 if value > middle else within + 1
	assert 0 <= abs(int(replay(s, off(middle, matchers=leads), 'PT6H')['count']) - passes) <= 1
	assert int(replay(s, off(middle, 60, matchers=leads), 'PT6H')['count']) <= passes
	assert doc['name'] and alerts(s) == []


def test_events_of_hosts_by_their_role(s):
	only = lambda role: [{'fieldName': 'TYPE_NAME', 'operator': 'EQUALS', 'value': role}]
	nobody = {'typeName': 'GROUP', 'emailEnabled': False}
	leads, follows = (watch(s, 'HOST_DOWN', nobody, matchers=only(role)) for role in ('PRIMARY', 'SECONDARY'))
	happens(s, 'HOST_DOWN', host='n0.example.com', typeName='PRIMARY')
	happens(s, 'HOST_DOWN', host='n1.example.com', typeName='SECONDARY')
	assert [x['hostnameAndPort'] for x in alerts(s, leads)] == ['n0.example.com:5432']
	assert [x['hostnameAndPort'] for x in alerts(s, follows)] == ['n1.example.com:5432']
	happens(s, 'HOST_UP', host='n0.example.com', typeName='SECONDARY')
	assert [x['status'] for x in alerts(s, leads)] == ['CLOSED'] and [x['status'] for x in alerts(s, follows)] == ['OPEN']
