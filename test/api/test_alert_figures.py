"""Alerts by what is measured and counted, each minute: on the simulated engine, whose values are a function of the clock."""
import json, pathlib, re

import pytest

import derive
from client import jobs_done, metric, ok, pass_time, until
from receivers import Http
from test_alerts import alerts, watch, webhook, without_defaults
from test_backup_schedule import item, policy, schedule
from test_clusters import create, path, region, settle

data = derive.Api()
DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'alerts.md'
MAIL = {'typeName': 'EMAIL', 'emailAddress': 'a@example.com'}


@pytest.fixture
def hook():
	box = Http()
	yield box
	box.stop()


@pytest.fixture
def s(start_server):
	return without_defaults(start_server('--outbox-private'))


def bound(name, value, operator='GREATER_THAN', units='RAW'):
	return {'metricName': name, 'mode': 'AVERAGE', 'operator': operator, 'threshold': value, 'units': units}


def above(s, name, value, *notifications, **more):
	return watch(s, 'OUTSIDE_METRIC_THRESHOLD', *(notifications or [MAIL]), metricThreshold=bound(name, value), **more)


def statuses(s, config):
	return sorted(a['status'] for a in alerts(s, config))


def comes(s, config, *wanted):
	"""Minutes pass until the alerts of the configuration are these."""
	pass_time(s, lambda: statuses(s, config) == sorted(wanted), step=60)


def processes(s, **of):
	return [p for p in ok(s.get('/groups/%s/processes' % s.group))['results'] if all(p[k] == v for k, v in of.items())]


def test_values_open_and_close(s, hook):
	doc = create(s, s.group)
	config = above(s, 'CONNECTIONS', 1, webhook(hook))
	above(s, 'CONNECTIONS', 100000)
	comes(s, config, 'OPEN', 'OPEN', 'OPEN')
	found = alerts(s, config)
	assert {a['hostnameAndPort'] for a in found} == {p['id'] for p in processes(s)} and len(alerts(s)) == 3
	for alert in found:
		assert alert['clusterName'] == doc['name'] and alert['metricName'] == 'CONNECTIONS'
		points = ok(s.get('/groups/%s/processes/%s/measurements?granularity=PT1M&period=PT1H&m=CONNECTIONS' % (
			s.group, alert['hostnameAndPort'])))['measurements'][0]['dataPoints']
		assert any(abs(p.get('value', 0) - alert['currentValue']['number']) < 0.01 for p in points), 'it is what measurements tell'
	# It lasts: nobody is told again, and the value is that of now.
	first = {a['id']: a['currentValue']['number'] for a in found}
	pass_time(s, lambda: all(a['currentValue']['number'] != first[a['id']] for a in alerts(s, config)), step=60)
	for alert in alerts(s, config):
		points = ok(s.get('/groups/%s/processes/%s/measurements?granularity=PT1M&period=PT4M&m=CONNECTIONS' % (
			s.group, alert['hostnameAndPort'])))['measurements'][0]['dataPoints']
		assert any(abs(p.get('value', 0) - alert['currentValue']['number']) < 0.01 for p in points), 'it is what measurements tell now'
	ok(s.put('/groups/%s/alertConfigs/%s' % (s.group, config['id']), json={
		'eventTypeName': 'OUTSIDE_METRIC_THRESHOLD', 'enabled': True, 'notifications': config['notifications'],
		'metricThreshold': bound('CONNECTIONS', 100000)}))
	comes(s, config, 'CLOSED', 'CLOSED', 'CLOSED')
	kinds = [x.headers['X-Steward-Event'] for x in hook.wait(6)]
	assert sorted(kinds) == ['alert.closed'] * 3 + ['alert.open'] * 3


def test_another_metric_cancels(s):
	create(s, s.group, None, [region(nodes=1)])
	config = above(s, 'CONNECTIONS', 1)
	comes(s, config, 'OPEN')
	where = '/groups/%s/alertConfigs/%s' % (s.group, config['id'])
	ok(s.put(where, json={'eventTypeName': 'OUTSIDE_METRIC_THRESHOLD', 'enabled': True, 'notifications': config['notifications'],
		'metricThreshold': bound('CONNECTIONS_PERCENT', 99)}))
	assert statuses(s, config) == ['CANCELLED']


def test_roles_match(s):
	create(s, s.group)
	only = lambda role: [{'fieldName': 'TYPE_NAME', 'operator': 'EQUALS', 'value': role}]
	first, rest = above(s, 'CONNECTIONS', 1, matchers=only('PRIMARY')), above(s, 'CONNECTIONS', 1, matchers=only('SECONDARY'))
	comes(s, rest, 'OPEN', 'OPEN')
	leads, = processes(s, typeName='REPLICA_PRIMARY')
	assert [a['hostnameAndPort'] for a in alerts(s, first)] == [leads['id']]
	# The host has another role after a failover: it is not about it any more.
	name = ok(s.get(path(s.group)))['results'][0]['name']
	ok(s.post(path(s.group, name) + '/restartPrimaries'))
	settle(s, s.group, name)
	comes(s, first, 'CANCELLED', 'OPEN')
	assert next(a for a in alerts(s, first) if a['status'] == 'OPEN')['hostnameAndPort'] == processes(s, typeName='REPLICA_PRIMARY')[0]['id']


def test_every_metric(s):
	"""Each name is judged where something tells it; docs/alerts.md lists those that nothing tells."""
	create(s, s.group)
	names = set(data.schemas['HostMetricThreshold']['discriminator']['mapping'])
	silent = set(re.findall(r'`(\w+)`', DOCS.read_text().split('These metrics can be named but never have a value:')[1].split('\n\n')[0]))
	assert silent < names, silent - names
	for name in names:
		schema = data.schemas[data.schemas['HostMetricThreshold']['discriminator']['mapping'][name].split('/')[-1]]
		units = schema['properties']['units']['$ref'].split('/')[-1]
		unit = {'RawMetricUnits': 'RAW', 'DataMetricUnits': 'BYTES', 'TimeMetricUnits': 'MILLISECONDS', 'NumberMetricUnits': 'COUNT'}[units]
		watch(s, 'OUTSIDE_METRIC_THRESHOLD', MAIL, metricThreshold=bound(name, -1, units=unit))
		s.refill()
	told = lambda: {json.loads(row[0]).get('metricName') for row in s.rows("SELECT body FROM doc WHERE kind = 'alert'")}
	pass_time(s, lambda: told() == names - silent, step=60)
	s.advance(120)
	assert told() == names - silent


@pytest.mark.parametrize('name, operator, value, units', [
	('GLOBAL_LOCK_PERCENTAGE', 'GREATER_THAN', 9, 'RAW'), ('GLOBAL_LOCK_PERCENTAGE', 'LESS_THAN', 0.9, 'RAW'),
	('CONNECTIONS_PERCENT', 'GREATER_THAN', 100.1, 'RAW'), ('SYSTEM_MEMORY_PERCENT_USED', 'GREATER_THAN', 100.1, 'RAW'),
	('MEMORY_RESIDENT', 'GREATER_THAN', 1, 'TERABYTES'), ('MEMORY_RESIDENT', 'LESS_THAN', 1, 'MEGABYTES'),
	('DISK_PARTITION_SPACE_USED_DATA', 'GREATER_THAN', 100.1, 'RAW'), ('OPLOG_MASTER_TIME', 'LESS_THAN', 1, 'HOURS'),
	('OPLOG_RATE_GB_PER_HOUR', 'GREATER_THAN', 1, 'TERABYTES'), ('JOURNALING_MB', 'LESS_THAN', 100, 'BYTES')])
def test_units(s, name, operator, value, units):
	"""Bounds that nothing here passes, beside their opposites."""
	create(s, s.group, None, [region(nodes=1)])
	other = 'LESS_THAN' if operator == 'GREATER_THAN' else 'GREATER_THAN'
	never = watch(s, 'OUTSIDE_METRIC_THRESHOLD', MAIL, metricThreshold=bound(name, value, operator, units))
	always = watch(s, 'OUTSIDE_METRIC_THRESHOLD', MAIL, metricThreshold=bound(name, value, other, units))
	comes(s, always, 'OPEN')
	s.advance(60)
	assert alerts(s, never) == []


def test_hosts_that_go(s):
	doc = create(s, s.group, None, [region(nodes=5)])
	config = above(s, 'CONNECTIONS', 1)
	comes(s, config, *['OPEN'] * 5)
	ok(s.patch(path(s.group, doc['name']), json={'replicationSpecs': [{'regionConfigs': [region(nodes=3)]}]}))
	settle(s, s.group, doc['name'])
	comes(s, config, *['CANCELLED'] * 2 + ['OPEN'] * 3)
	assert {a['hostnameAndPort'] for a in alerts(s, config) if a['status'] == 'OPEN'} == {p['id'] for p in processes(s)}
	ok(s.patch(path(s.group, doc['name']), json={'paused': True}))
	settle(s, s.group, doc['name'])
	comes(s, config, *['CANCELLED'] * 5)


def test_members_of_a_set(s):
	doc = create(s, s.group, None, [region(nodes=3), region('US_WEST_2', 2, 6)])
	few = watch(s, 'TOO_FEW_HEALTHY_MEMBERS', MAIL, threshold={'operator': '<', 'threshold': 4})
	many = watch(s, 'TOO_MANY_UNHEALTHY_MEMBERS', MAIL, threshold={'operator': '>', 'threshold': 1})
	enough = watch(s, 'TOO_MANY_UNHEALTHY_MEMBERS', MAIL, threshold={'operator': '>', 'threshold': 2})
	leader = watch(s, 'NO_PRIMARY', MAIL)
	for _ in range(3):
		s.advance(60)
	outage = path(s.group, doc['name']) + '/outageSimulation'
	ok(s.post(outage, json={'outageFilters': [{'cloudProvider': 'AWS', 'regionName': 'US_WEST_2', 'type': 'REGION'}]}))
	settle(s, s.group, doc['name'])
	comes(s, many, 'OPEN')
	comes(s, few, 'OPEN')
	alert, = alerts(s, many)
	assert alert['clusterName'] == doc['name'] and alert['replicaSetName'] == processes(s)[0]['replicaSetName'] and 'currentValue' not in alert
	ok(s.delete(outage))
	settle(s, s.group, doc['name'])
	comes(s, many, 'CLOSED')
	comes(s, few, 'CLOSED')
	assert alerts(s, enough) == alerts(s, leader) == []
	# What an event has opened ends when the set is seen to be led.
	s.control('events', {'groupId': s.group, 'eventTypeName': 'NO_PRIMARY', 'clusterName': doc['name'],
		'replicaSetName': alert['replicaSetName']})
	assert statuses(s, leader) == ['OPEN']
	comes(s, leader, 'CLOSED')


def test_window_of_the_log(s):
	"""Hours alone are kept; a cluster that is younger than the bound is not judged."""
	create(s, s.group, None, [region(nodes=1)])
	week = watch(s, 'REPLICATION_OPLOG_WINDOW_RUNNING_OUT', MAIL, threshold={'operator': 'LESS_THAN', 'threshold': 7, 'units': 'DAYS'})
	hour = watch(s, 'REPLICATION_OPLOG_WINDOW_RUNNING_OUT', MAIL, threshold={'operator': 'LESS_THAN', 'threshold': 60, 'units': 'MINUTES'})
	assert week['threshold'] == {'threshold': 168} and hour['threshold'] == {'threshold': 1}
	for _ in range(3):
		s.advance(60)
	assert alerts(s) == []
	day = watch(s, 'REPLICATION_OPLOG_WINDOW_RUNNING_OUT', MAIL, threshold={'threshold': 31})
	s.advance(2 * 86400)
	comes(s, day, 'OPEN')
	assert alerts(s, week) == []
	s.advance(6 * 86400)
	comes(s, week, 'OPEN')
	assert alerts(s, hour) == []


def test_flex(s):
	name = 'flex0'
	ok(s.post('/groups/%s/flexClusters' % s.group, json={'name': name, 'providerSettings': {
		'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}}), 201)
	config = watch(s, 'OUTSIDE_FLEX_METRIC_THRESHOLD', MAIL, metricThreshold=bound('FLEX_CONNECTIONS', 1))
	create(s, s.group)
	comes(s, config, 'OPEN')
	alert, = alerts(s, config)
	assert alert['clusterName'] == name and alert['metricName'] == 'FLEX_CONNECTIONS' and alert['currentValue']['number'] > 1


def test_age_of_snapshots(s, hook):
	doc = create(s, s.group, None, backupEnabled=True)
	s.control('engine', {'seconds': 0})
	ok(s.patch(schedule(s.group, doc['name']), json=policy(item('hourly', 6))))
	old = watch(s, 'CPS_PREV_SNAPSHOT_OLD', webhook(hook), threshold={'operator': 'GREATER_THAN', 'threshold': 8, 'units': 'HOURS'})
	late = watch(s, 'CPS_SNAPSHOT_BEHIND', MAIL, threshold={'operator': 'GREATER_THAN', 'threshold': 90, 'units': 'MINUTES'})
	never = watch(s, 'CPS_SNAPSHOT_BEHIND', MAIL, threshold={'operator': 'GREATER_THAN', 'threshold': 30, 'units': 'DAYS'})
	done = lambda: 'completed' in [x['status'] for x in ok(s.get(path(s.group, doc['name']) + '/backup/snapshots'))['results']]
	def half_an_hour():
		"""No job is late for the clock: that would be one of these alerts."""
		s.advance(1800)
		jobs_done(s, 60)
		return done()
	until(half_an_hour)
	assert alerts(s) == []
	s.control('engine', {'seconds': 0, 'fail': 'snapshot', 'times': 1000})
	pass_time(s, lambda: statuses(s, late) == ['OPEN'] and statuses(s, old) == ['OPEN'], step=1800)
	assert hook.wait(1)[0].json['clusterName'] == doc['name']
	s.control('engine', {'seconds': 0, 'fail': None})
	pass_time(s, lambda: statuses(s, late) == ['CLOSED'] and statuses(s, old) == ['CLOSED'], step=600)
	assert alerts(s, never) == []


def test_nothing_is_written_where_nothing_changes(s):
	create(s, s.group)
	above(s, 'CONNECTIONS', 100000)
	s.advance(120)
	before = s.rows("SELECT count(*) FROM doc WHERE kind LIKE 'alert%'")
	for _ in range(5):
		s.advance(60)
	assert s.rows("SELECT count(*) FROM doc WHERE kind LIKE 'alert%'") == before


def test_after_a_restart(start_server, s, hook):
	"""What is open stays so, and nobody is told twice; what has ended meanwhile is told."""
	doc = create(s, s.group)
	config, other = above(s, 'CONNECTIONS', 1, webhook(hook)), above(s, 'CONNECTIONS', 2, webhook(hook))
	comes(s, config, 'OPEN', 'OPEN', 'OPEN')
	comes(s, other, 'OPEN', 'OPEN', 'OPEN')
	hook.wait(6)
	until(lambda: s.rows("SELECT 1 FROM doc WHERE kind = 'outbox_message'") == [])  # it is written down that they have left
	s.kill()
	s = start_server('--outbox-private', data_dir=s.data_dir)
	s.advance(3600)  # the virtual clock starts anew
	until(lambda: len(processes(s)) == 3)
	for _ in range(3):
		s.advance(60)
	ok(s.patch(path(s.group, doc['name']), json={'paused': True}))
	settle(s, s.group, doc['name'])
	comes(s, config, *['CANCELLED'] * 3)
	comes(s, other, *['CANCELLED'] * 3)
	assert sorted(x.headers['X-Steward-Event'] for x in hook.wait(12)) == ['alert.closed'] * 6 + ['alert.open'] * 6


def test_figures_of_the_outbox(s, hook):
	config = watch(s, 'CLUSTER_INSTANCE_RESYNC_REQUESTED', webhook(hook))
	happens = lambda: s.control('events', {'groupId': s.group, 'eventTypeName': 'CLUSTER_INSTANCE_RESYNC_REQUESTED', 'clusterName': 'c0'})
	happens()
	hook.wait(1)
	until(lambda: metric(s, 'steward_outbox_attempts_total{result="delivered"}') == 1)
	until(lambda: metric(s, 'steward_outbox_messages') == 0)
	hook.answers = [500, 500]
	happens()
	happens()
	until(lambda: metric(s, 'steward_outbox_messages') == 2 and metric(s, 'steward_outbox_receivers_failing') == 1)
	until(lambda: metric(s, 'steward_outbox_attempts_total{result="put_off"}') == 1)
	assert metric(s, 'steward_outbox_receivers') == 1 and metric(s, 'steward_outbox_dropped_total') == 0
	s.advance(6)
	until(lambda: metric(s, 'steward_outbox_attempts_total{result="put_off"}') == 2)
	until(lambda: metric(s, 'steward_outbox_oldest_seconds') >= 6)
	s.advance(31)
	hook.wait(3)
	until(lambda: metric(s, 'steward_outbox_messages') == 0)
	assert metric(s, 'steward_outbox_receivers') == metric(s, 'steward_outbox_oldest_seconds') == 0 and len(alerts(s, config)) == 3
