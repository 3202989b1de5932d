"""Alert configurations: every kind, their checks, secrets that nobody gets back, defaults of new projects."""
import json

import pytest

from client import ID, NO_ID, bare, links, ok, refused, unique
from derive import Api as Data

data = Data()
MASK = '********'
MAIL = {'typeName': 'EMAIL', 'emailAddress': 'ada@example.com', 'delayMin': 0, 'intervalMin': 5}
DEFAULTS = {'HOST_DOWN', 'HOST_NOT_ENOUGH_DISK_SPACE', 'CPS_SNAPSHOT_FAILED', 'CPS_RESTORE_FAILED', 'ENCRYPTION_AT_REST_CONFIG_NO_LONGER_VALID',
	    'OUTSIDE_METRIC_THRESHOLD'}

# One of each kind of notification, with its secrets.
NOTIFICATIONS = {
	'DATADOG': ({'datadogRegion': 'EU'}, {'datadogApiKey': 'a' * 32}),
	'EMAIL': ({'emailAddress': 'ada@example.com'}, {}),
	'GROUP': ({'roles': ['GROUP_OWNER'], 'emailEnabled': True, 'smsEnabled': False}, {}),
	'MICROSOFT_TEAMS': ({}, {'microsoftTeamsWebhookUrl': 'https://example.com/teams/very-private'}),
	'OPS_GENIE': ({'opsGenieRegion': 'US'}, {'opsGenieApiKey': 'opsgenie-key-1'}),
	'ORG': ({'roles': ['ORG_OWNER'], 'emailEnabled': True}, {}),
	'PAGER_DUTY': ({'region': 'EU'}, {'serviceKey': 'b' * 32}),
	'SLACK': ({'channelName': 'alerts'}, {'apiToken': 'xoxb-slack-token-1'}),
	'VICTOR_OPS': ({'victorOpsRoutingKey': 'everyone'}, {'victorOpsApiKey': 'victorops-key-1'}),
	'WEBHOOK': ({'webhookUrl': 'https://example.com/hook'}, {'webhookSecret': 'sign-with-this', 'webhookBodyTemplate': '{"a": 1}',
								 'webhookHeadersTemplate': 'X-Team: secret-team'}),
}


@pytest.fixture
def project(server):
	org, = server.seed({'name': unique('alerts'), 'projects': ['watched', 'other'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']},
		{'type': 'apiKey', 'roles': ['ORG_MEMBER'], 'projectRoles': [{'project': 'watched', 'roles': ['GROUP_READ_ONLY']}]}]})
	org['owner'], org['reader'] = [server.api_for(p) for p in org['principals']]
	org['group'] = '/groups/' + org['projects'][0]['id']
	org['path'] = org['group'] + '/alertConfigs'
	return org


def config(event='JOINED_GROUP', *notifications, **more):
	return {'eventTypeName': event, 'enabled': True, 'notifications': list(notifications) or [MAIL], **more}


def create(project, *args, **more):
	return ok(project['owner'].post(project['path'], json=config(*args, **more)))


def test_create_get_list(server, project):
	doc = create(project)
	assert ID.match(doc['id']) and doc['groupId'] == project['projects'][0]['id'] and doc['created'] == doc['updated']
	assert doc['enabled'] is True and doc['matchers'] == [] and ID.match(doc['notifications'][0]['notifierId'])
	path = '%s/%s' % (project['path'], doc['id'])
	assert bare(ok(project['reader'].get(path))) == bare(doc)
	assert [bare(x) for x in ok(project['reader'].get(project['path']))['results']] == [bare(doc)]
	assert links(ok(project['reader'].get(path)))[server.base_url + '/rels/alerts'].endswith(path + '/alerts')
	events = ok(project['owner'].get(project['group'] + '/events'))['results']
	assert events[0]['eventTypeName'] == 'ALERT_CONFIG_ADDED_AUDIT' and events[0]['alertConfigId'] == doc['id']


def test_not_enabled_unless_said(project):
	body = config()
	del body['enabled']
	assert ok(project['owner'].post(project['path'], json=body))['enabled'] is False


def test_roles_and_strangers(server, project):
	doc = create(project)
	path = '%s/%s' % (project['path'], doc['id'])
	for method, body in (('PATCH', {'enabled': False}), ('PUT', config()), ('DELETE', None)):
		refused(project['reader'].request(method, path, json=body), 403)
		refused(server.owner.request(method, path, json=body), 401)
	refused(project['reader'].post(project['path'], json=config()), 403)
	other = '/groups/%s/alertConfigs/%s' % (project['projects'][1]['id'], doc['id'])
	refused(project['owner'].get(other), 404)
	refused(project['owner'].put(other, json=config()), 404)
	refused(project['owner'].delete(other), 404)
	refused(project['owner'].get(project['path'] + '/' + NO_ID), 404)


def branches():
	for ref in data.schemas['GroupAlertsConfig']['oneOf']:
		name = ref['$ref'].split('/')[-1]
		names = data.schemas[name]['properties']['eventTypeName']
		names = data.schemas[names['$ref'].split('/')[-1]] if '$ref' in names else names
		for e in names.get('enum', []) or [x for b in names['oneOf'] for x in b['enum']]:
			yield e


METRICS = {'OUTSIDE_METRIC_THRESHOLD': 'CONNECTIONS', 'OUTSIDE_SERVERLESS_METRIC_THRESHOLD': 'SERVERLESS_CONNECTIONS',
	'OUTSIDE_FLEX_METRIC_THRESHOLD': 'FLEX_CONNECTIONS', 'OUTSIDE_REALM_METRIC_THRESHOLD': 'REALM_AUTH_LOGIN_FAIL',
	'OUTSIDE_STREAM_PROCESSOR_METRIC_THRESHOLD': 'STREAM_PROCESSOR_OUTPUT_MESSAGE_COUNT'}


def of_type(event):
	"""A good configuration for the type."""
	if event in METRICS:
		return config(event, metricThreshold={'metricName': METRICS[event], 'mode': 'AVERAGE', 'operator': 'GREATER_THAN',
			'threshold': 5, 'units': 'RAW'})
	more = {'TOO_MANY_ELECTIONS': ('GREATER_THAN', 'RAW'), 'REPLICATION_OPLOG_WINDOW_RUNNING_OUT': ('LESS_THAN', 'HOURS'),
		'CPS_SNAPSHOT_BEHIND': ('GREATER_THAN', 'HOURS'), 'CPS_PREV_SNAPSHOT_OLD': ('GREATER_THAN', 'HOURS'),
		'CPS_OPLOG_BEHIND': ('GREATER_THAN', 'HOURS')}.get(event)
	if more:
		return config(event, threshold={'operator': more[0], 'threshold': 3, 'units': more[1]})
	if event in ('TOO_FEW_HEALTHY_MEMBERS', 'TOO_MANY_UNHEALTHY_MEMBERS'):
		return config(event, threshold={'operator': '<', 'threshold': 3})
	return config(event)


def test_every_type_of_the_reference(server, project):
	types = sorted(set(branches()))
	assert len(types) > 130
	for event in types:
		server.refill()
		doc = ok(project['owner'].post(project['path'], json=of_type(event)))
		assert doc['eventTypeName'] == event
		ok(project['owner'].delete('%s/%s' % (project['path'], doc['id'])), 204)
	listed = {t['eventType']: t['alertable'] for t in ok(server.get('/eventTypes', params={'itemsPerPage': 500}))['results']}
	assert all(listed.get(t, True) for t in types)


@pytest.mark.parametrize('event, sent, kept', [
	('TOO_MANY_ELECTIONS', {'operator': 'GREATER_THAN', 'threshold': 3, 'units': 'RAW'}, 3), ('TOO_MANY_ELECTIONS', {'threshold': 4}, 4),
	('REPLICATION_OPLOG_WINDOW_RUNNING_OUT', {'operator': 'LESS_THAN', 'threshold': 3, 'units': 'HOURS'}, 3),
	('REPLICATION_OPLOG_WINDOW_RUNNING_OUT', {'operator': 'LESS_THAN', 'threshold': 2, 'units': 'DAYS'}, 48),
	('REPLICATION_OPLOG_WINDOW_RUNNING_OUT', {'threshold': 5}, 5)])
def test_a_threshold_with_two_forms(project, event, sent, kept):
	"""The schema has one, the form that its discriminator names another; both have the number alone, and so has the answer."""
	doc = create(project, event, threshold=sent)
	path = '%s/%s' % (project['path'], doc['id'])
	assert doc['threshold'] == {'threshold': kept}
	again = ok(project['owner'].put(path, json=config(event, threshold=doc['threshold'])))
	assert again['threshold'] == doc['threshold'] == ok(project['reader'].get(path))['threshold']
	assert ok(project['owner'].patch(path, json={'enabled': False}))['threshold'] == doc['threshold']


@pytest.mark.parametrize('event, threshold', [
	('REPLICATION_OPLOG_WINDOW_RUNNING_OUT', {'operator': 'LESS_THAN', 'threshold': 90, 'units': 'MINUTES'}),
	('REPLICATION_OPLOG_WINDOW_RUNNING_OUT', {'operator': 'GREATER_THAN', 'threshold': 9, 'units': 'HOURS'}),
	('TOO_MANY_ELECTIONS', {'operator': 'GREATER_THAN', 'units': 'RAW'}),
	('TOO_MANY_ELECTIONS', {'operator': 'LESS_THAN', 'threshold': 3})])
def test_no_such_threshold(project, event, threshold):
	refused(project['owner'].post(project['path'], json=config(event, threshold=threshold)), 400)


@pytest.mark.parametrize('metric', ['CONNECTIONS', 'DISK_PARTITION_SPACE_USED_DATA', 'OPLOG_SLAVE_LAG_MASTER_TIME', 'MEMORY_RESIDENT'])
def test_metrics_have_their_units(project, metric):
	units = {'CONNECTIONS': 'RAW', 'DISK_PARTITION_SPACE_USED_DATA': 'RAW', 'OPLOG_SLAVE_LAG_MASTER_TIME': 'SECONDS',
		'MEMORY_RESIDENT': 'GIGABYTES'}
	threshold = {'metricName': metric, 'mode': 'AVERAGE', 'operator': 'GREATER_THAN', 'threshold': 1.5, 'units': units[metric]}
	doc = create(project, 'OUTSIDE_METRIC_THRESHOLD', metricThreshold=threshold)
	assert doc['metricThreshold'] == threshold
	refused(project['owner'].post(project['path'], json=config('OUTSIDE_METRIC_THRESHOLD', metricThreshold={
		**threshold, 'units': 'APPLES'})), 400, None, 'metricThreshold.units')


@pytest.mark.parametrize('body, path', [
	(config('NO_SUCH_TYPE'), 'eventTypeName'),
	({'eventTypeName': 'JOINED_GROUP'}, 'notifications'),
	({'notifications': [MAIL]}, 'eventTypeName'),
	({**config(), 'notifications': []}, 'notifications'),
	({**config(), 'notifications': [MAIL] * 26}, 'notifications'),
	(config('JOINED_GROUP', {'typeName': 'CARRIER_PIGEON'}), 'notifications[0].typeName'),
	(config('JOINED_GROUP', {'typeName': 'EMAIL'}), 'notifications[0].emailAddress'),
	(config('JOINED_GROUP', {'typeName': 'EMAIL', 'emailAddress': 'nobody'}), 'notifications[0].emailAddress'),
	(config('JOINED_GROUP', MAIL, {'typeName': 'SLACK', 'channelName': 'c'}), 'notifications[1].apiToken'),
	(config('JOINED_GROUP', {'typeName': 'WEBHOOK', 'webhookUrl': 'ftp://example.com'}), 'notifications[0].webhookUrl'),
	(config('JOINED_GROUP', {'typeName': 'WEBHOOK', 'webhookUrl': 'https://u:p@example.com'}), 'notifications[0].webhookUrl'),
	(config('JOINED_GROUP', {**MAIL, 'intervalMin': 4}), 'notifications[0].intervalMin'),
	(config('JOINED_GROUP', {**MAIL, 'delayMin': -1}), 'notifications[0].delayMin'),
	(config('JOINED_GROUP', {'typeName': 'GROUP', 'roles': ['ORG_OWNER']}), 'notifications[0].roles[0]'),
	(config('JOINED_GROUP', {'typeName': 'TEAM', 'teamId': NO_ID}), 'notifications[0].teamId'),
	(config('JOINED_GROUP', {'typeName': 'USER', 'username': 'nobody@example.com'}), 'notifications[0].username'),
	(config('JOINED_GROUP', {'typeName': 'SLACK', 'channelName': 'c', 'apiToken': MASK}), 'notifications[0].apiToken'),
	(config('OUTSIDE_METRIC_THRESHOLD'), 'metricThreshold'),
	(config('OUTSIDE_METRIC_THRESHOLD', metricThreshold={'metricName': 'CONNECTIONS'}), 'metricThreshold.threshold'),
	(config('OUTSIDE_METRIC_THRESHOLD', metricThreshold={'metricName': 'NO_SUCH', 'operator': 'LESS_THAN', 'threshold': 1}),
	 'metricThreshold.metricName'),
	(config('TOO_MANY_ELECTIONS'), 'threshold'),
	(config('JOINED_GROUP', {'typeName': 'HIP_CHAT', 'roomName': 'r', 'notificationToken': 't'}), 'notifications[0].typeName'),
	(config('JOINED_GROUP', {'typeName': 'SMS', 'mobileNumber': '+12125551234'}), 'notifications[0].typeName'),
	(config('JOINED_GROUP', {'typeName': 'GROUP', 'roles': ['GROUP_OWNER'], 'smsEnabled': True}), 'notifications[0].smsEnabled'),
	(config('JOINED_GROUP', {'typeName': 'SLACK', 'channelName': 'c', 'integrationId': NO_ID}), 'notifications[0].integrationId'),
	(config('JOINED_GROUP', {'typeName': 'WEBHOOK', 'webhookUrl': 'https://example.com', 'webhookBodyTemplate': 'x' * 8193}),
	 'notifications[0].webhookBodyTemplate'),
	(config('JOINED_GROUP', *[{'typeName': 'WEBHOOK', 'webhookUrl': 'https://example.com', 'webhookBodyTemplate': 'x' * 6000}] * 3), 'notifications'),
	(config('JOINED_GROUP', {'typeName': 'WEBHOOK', 'webhookUrl': 'https://example.com/#here'}), 'notifications[0].webhookUrl'),
	(config('JOINED_GROUP', {'typeName': 'WEBHOOK', 'webhookUrl': 'https://example.com/#events=NO_SUCH'}), 'notifications[0].webhookUrl'),
	(config('JOINED_GROUP', {**MAIL, 'notifierId': NO_ID}, {**MAIL, 'notifierId': NO_ID}), 'notifications[1].notifierId'),
	(config('NO_PRIMARY', matchers=[{'fieldName': 'CLUSTER_NAME', 'operator': 'EQUALS', 'value': 'x'}] * 21), 'matchers'),
	(config('JOINED_GROUP', matchers=[{'fieldName': 'NO_SUCH', 'operator': 'EQUALS', 'value': 'x'}]), 'matchers[0].fieldName'),
	(config('NO_PRIMARY', matchers=[{'fieldName': 'CLUSTER_NAME', 'operator': 'REGEX', 'value': '('}]), 'matchers[0].value'),
	({**config(), 'id': NO_ID}, 'id')])
def test_refusals(project, body, path):
	refused(project['owner'].post(project['path'], json=body), 400, None, path)
	assert ok(project['owner'].get(project['path']))['results'] == []


@pytest.mark.parametrize('kind', sorted(NOTIFICATIONS))
def test_secrets_are_masked_and_stay(server, project, kind):
	shown, secret = NOTIFICATIONS[kind]
	doc = create(project, 'JOINED_GROUP', {'typeName': kind, **shown, **secret})
	path = '%s/%s' % (project['path'], doc['id'])
	n, = doc['notifications']
	assert {k: n[k] for k in shown} == shown and {k: n[k] for k in secret} == {k: MASK for k in secret}
	answer = project['reader'].get(path).text + project['reader'].get(project['path']).text
	stored = server.rows("SELECT body, secret FROM doc WHERE id = '%s'" % doc['id'])
	for value in secret.values():
		assert value not in answer and value not in str(stored)
	# The mask, with or without the id, means: unchanged.
	for sent in (n, {k: v for k, v in n.items() if k != 'notifierId'}):
		again = ok(project['owner'].put(path, json=config('REMOVED_FROM_GROUP', sent)))
		assert again['notifications'] == [n] and again['eventTypeName'] == 'REMOVED_FROM_GROUP' and again['id'] == doc['id']
	toggled = ok(project['owner'].patch(path, json={'enabled': False}))
	assert toggled['enabled'] is False and toggled['notifications'] == [n]
	for name in secret:  # a new value is no mask
		if name != 'microsoftTeamsWebhookUrl':
			assert ok(project['owner'].put(path, json=config('JOINED_GROUP', {**n, name: 'another'})))['notifications'][0][name] == MASK


def test_a_secret_is_not_anothers(project):
	"""A mask under another type, or of a notification that is not there, gets nobody a secret."""
	slack = {'typeName': 'SLACK', 'channelName': 'c', 'apiToken': 'xoxb-1'}
	doc = create(project, 'JOINED_GROUP', slack)
	path = '%s/%s' % (project['path'], doc['id'])
	for sent in ({**slack, 'apiToken': MASK, 'notifierId': NO_ID}, {'typeName': 'DATADOG', 'datadogApiKey': MASK}):
		refused(project['owner'].put(path, json=config('JOINED_GROUP', sent)), 400)
	both = ok(project['owner'].put(path, json=config('JOINED_GROUP', {**slack, 'apiToken': 'xoxb-2'}, {**slack, 'apiToken': MASK,
		'notifierId': doc['notifications'][0]['notifierId']})))
	assert len({n['notifierId'] for n in both['notifications']}) == 2


def test_a_secret_goes_to_its_own_host_only(project):
	"""Who may change a configuration must not get at what it sends: another host needs all of it anew."""
	hook = {'typeName': 'WEBHOOK', 'webhookUrl': 'https://example.com/a', 'webhookHeadersTemplate': 'Authorization: Bearer x', 'webhookSecret': 's'}
	doc = create(project, 'JOINED_GROUP', hook)
	path, n = '%s/%s' % (project['path'], doc['id']), doc['notifications'][0]
	for url in ('https://elsewhere.example.com/a', 'http://example.com/a', 'https://example.com:444/a', 'https://example.com.evil.example/'):
		for sent in ({**n, 'webhookUrl': url}, {'typeName': 'WEBHOOK', 'webhookUrl': url, 'webhookHeadersTemplate': MASK}):
			refused(project['owner'].put(path, json=config('JOINED_GROUP', sent)), 400, None, 'notifications[0].webhookHeadersTemplate')
	assert ok(project['owner'].put(path, json=config('JOINED_GROUP', {**n, 'webhookUrl': 'https://example.com/b?c'})))['notifications'][0]['webhookUrl'] \
		== 'https://example.com/b?c'
	ok(project['owner'].put(path, json=config('JOINED_GROUP', {**hook, 'webhookUrl': 'https://elsewhere.example.com'})))


def test_switched_off_though_its_team_is_gone(project):
	team = ok(project['owner'].post('/orgs/%s/teams' % project['id'], json={'name': unique(), 'usernames': []}))
	doc = create(project, 'JOINED_GROUP', {'typeName': 'TEAM', 'teamId': team['id'], 'emailEnabled': True},
		{'typeName': 'SLACK', 'channelName': 'c', 'apiToken': 'xoxb-1'})
	path = '%s/%s' % (project['path'], doc['id'])
	ok(project['owner'].delete('/orgs/%s/teams/%s' % (project['id'], team['id'])), 204)
	off = ok(project['owner'].patch(path, json={'enabled': False}))
	assert off['enabled'] is False and off['notifications'] == doc['notifications']
	# The secret is still there.
	ok(project['owner'].put(path, json=config('JOINED_GROUP', off['notifications'][1])))


def test_toggle_and_delete(project):
	doc = create(project)
	path = '%s/%s' % (project['path'], doc['id'])
	log = lambda: ok(project['owner'].get(project['group'] + '/events'))['results'][0]['eventTypeName']
	assert ok(project['owner'].patch(path, json={'enabled': False}))['enabled'] is False and log() == 'ALERT_CONFIG_DISABLED_AUDIT'
	assert ok(project['owner'].patch(path, json={'enabled': True}))['enabled'] is True and log() == 'ALERT_CONFIG_ENABLED_AUDIT'
	before = ok(project['owner'].get(project['group'] + '/events'))['totalCount']
	ok(project['owner'].patch(path, json={'enabled': True}))
	assert ok(project['owner'].get(project['group'] + '/events'))['totalCount'] == before
	ok(project['owner'].put(path, json=config('REMOVED_FROM_GROUP')))
	assert log() == 'ALERT_CONFIG_CHANGED_AUDIT'
	ok(project['owner'].delete(path), 204)
	assert log() == 'ALERT_CONFIG_DELETED_AUDIT'
	refused(project['owner'].get(path), 404)


def test_etag(project):
	doc = create(project)
	path = '%s/%s' % (project['path'], doc['id'])
	tag = project['owner'].get(path).headers['ETag']
	ok(project['owner'].put(path, json=config(), headers={'If-Match': tag}))
	refused(project['owner'].put(path, json=config(), headers={'If-Match': tag}), 412)


def test_matcher_field_names(server):
	names = ok(server.get('/alertConfigs/matchers/fieldNames'))
	assert {'CLUSTER_NAME', 'REPLICA_SET_NAME', 'HOSTNAME_AND_PORT'} <= set(names) and len(names) == len(set(names))
	known = set(e for b in data.schemas['MatcherFieldView']['oneOf'] for e in b['enum'])
	assert set(names) == known
	refused(server.anonymous.get('/alertConfigs/matchers/fieldNames'), 401)


def test_defaults_of_a_new_project(server):
	org, = server.seed({'name': unique('defaults'), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	owner = server.api_for(org['principals'][0])
	configs = lambda **more: ok(owner.get('/groups/%s/alertConfigs' % ok(owner.post('/groups', json={
		'name': unique(), 'orgId': org['id'], **more}))['id']))['results']
	usual = configs()
	assert {c['eventTypeName'] for c in usual} == DEFAULTS and all(c['enabled'] for c in usual)
	assert all(n['typeName'] == 'GROUP' and n['roles'] == ['GROUP_OWNER'] for c in usual for n in c['notifications'])
	assert configs(withDefaultAlertsSettings=False) == []
	assert len({c['id'] for c in usual} | {n['notifierId'] for c in usual for n in c['notifications']}) == 2 * len(usual)


def test_limit(server, project):
	for i in range(500):
		if i % 100 == 0:
			server.refill()
		create(project)
	refused(project['owner'].post(project['path'], json=config()), 400, 'TOO_MANY_ALERT_CONFIGS')


def test_goes_with_the_project(server):
	org, = server.seed({'name': unique('gone'), 'projects': ['gone'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	owner, group = server.api_for(org['principals'][0]), org['projects'][0]['id']
	ok(owner.post('/groups/%s/alertConfigs' % group, json=config('NETWORK_PERMISSION_ENTRY_ADDED')))
	ok(owner.post('/groups/%s/accessList' % group, json=[{'ipAddress': '192.0.2.1'}]))
	assert len(ok(owner.get('/groups/%s/alerts' % group))['results']) == 1
	ok(owner.delete('/groups/' + group), 204)
	assert server.rows("SELECT kind FROM doc WHERE parent = '%s' AND kind LIKE 'alert%%'" % group) == []


def test_recordings_show_no_secret(start_server, tmp_path):
	s = start_server(record=tmp_path / 'exchanges')
	sent = [{'typeName': k, **shown, **secret} for k, (shown, secret) in NOTIFICATIONS.items()]
	ok(s.post('/groups/%s/alertConfigs' % s.group, json=config('JOINED_GROUP', *sent)))
	s.stop()
	text = (tmp_path / 'exchanges').read_text() + s.stderr
	for _, secret in NOTIFICATIONS.values():
		for value in secret.values():
			assert json.dumps(value)[1:-1] not in text and value not in text, value
