"""The maintenance window: when it is, what is pending, putting it off, and that it is done in its time."""
import datetime, os, pathlib, shutil, sqlite3, stat, subprocess, tempfile, time

import pytest

import client
from client import NO_ID, bare, leave, ok, pass_time, refused, unique, until

HOUR, DAY, WEEK = 3600, 86400, 7 * 86400
STANDARD = {'autoDeferOnceEnabled': False, 'dayOfWeek': 1, 'hourOfDay': 3, 'numberOfDeferrals': 0, 'startASAP': False,
	    'timeZoneId': 'UTC'}
patches = iter(range(1, 1000))


@pytest.fixture
def group(server):
	server.control('engine', {})
	group = server.project()['id']
	yield group
	leave(server, group)


def path(group, below=''):
	return '/groups/%s/maintenanceWindow%s' % (group, below)


def now(server):
	return datetime.datetime.fromisoformat(server.control('clock', method='GET')['now'].replace('Z', '+00:00'))


def types(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events' % group))['results']]


def told(server, group, *wanted):
	return [t for t in reversed(types(server, group)) if t in wanted or (not wanted and 'MAINTENANCE' in t)]


def get(server, group, name):
	return ok(server.get('/groups/%s/clusters/%s' % (group, name)))


def cluster(server, group, **more):
	name = unique('c')
	ok(server.post('/groups/%s/clusters' % group, json={'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': [
		{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
			'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}), 201)
	pass_time(server, lambda: get(server, group, name)['stateName'] == 'IDLE')
	return name


def announce(server, group):
	"""A newer minor version comes out, and the hourly look finds it: the next one, where one is under way already."""
	server.control('engine', {'patch': next(patches)})
	count = len(told(server, group, 'PROJECT_SCHEDULED_MAINTENANCE'))
	for last in (False, False, True):
		server.advance(HOUR)
		try:
			return until(lambda: len(told(server, group, 'PROJECT_SCHEDULED_MAINTENANCE')) == count + 1, 20, 'the announcement')
		except AssertionError:
			if last:
				raise


def to_window(server, day, hour, earlier=0):
	"""The clock to that many seconds before the next such hour that is at least three days ahead."""
	at = now(server) + datetime.timedelta(days=3)
	start = at.replace(hour=hour, minute=0, second=0, microsecond=0)
	while start < at or start.isoweekday() % 7 + 1 != day:
		start = (start + datetime.timedelta(days=1)).replace(hour=hour)
	server.advance(int((start - now(server)).total_seconds()) - earlier)


def started(server, group):
	return 'MAINTENANCE_STARTED' in types(server, group)


def finish(server, group):
	pass_time(server, lambda: 'MAINTENANCE_COMPLETED' in types(server, group))


def test_window(server, group):
	assert bare(ok(server.get(path(group)))) == STANDARD
	r = server.patch(path(group), json={'dayOfWeek': 4, 'hourOfDay': 22})
	assert r.status_code == 200 and not r.content
	assert bare(ok(server.get(path(group)))) == {**STANDARD, 'dayOfWeek': 4, 'hourOfDay': 22}
	assert server.patch(path(group), json={'dayOfWeek': 4, 'protectedHours': {'startHourOfDay': 8, 'endHourOfDay': 18}}).status_code == 200
	assert ok(server.get(path(group)))['protectedHours'] == {'startHourOfDay': 8, 'endHourOfDay': 18}
	assert server.patch(path(group), json={'dayOfWeek': 5}).status_code == 200
	doc = ok(server.get(path(group)))
	assert doc['dayOfWeek'] == 5 and doc['hourOfDay'] == 22 and doc['protectedHours']
	assert server.patch(path(group), json={'dayOfWeek': 5, 'protectedHours': {}}).status_code == 200
	assert 'protectedHours' not in ok(server.get(path(group)))
	assert server.patch(path(group), json={'dayOfWeek': 5}).status_code == 200, 'nothing changes, and nothing is told'
	assert server.delete(path(group)).status_code == 204
	assert bare(ok(server.get(path(group)))) == STANDARD
	assert told(server, group) == ['SVC_MAINTENANCE_WINDOW_ADDED', 'SVC_MAINTENANCE_PROTECTED_HOURS_CREATED',
		'SVC_MAINTENANCE_WINDOW_MODIFIED', 'SVC_MAINTENANCE_PROTECTED_HOURS_REMOVED', 'SVC_MAINTENANCE_WINDOW_REMOVED']


@pytest.mark.parametrize('body, field', [({}, 'dayOfWeek'), ({'dayOfWeek': 8}, 'dayOfWeek'), ({'dayOfWeek': 1, 'hourOfDay': 24}, 'hourOfDay'),
	({'dayOfWeek': 1, 'protectedHours': {'startHourOfDay': 2}}, 'protectedHours.endHourOfDay'),
	({'dayOfWeek': 1, 'protectedHours': {'startHourOfDay': 2, 'endHourOfDay': 2}}, 'protectedHours.endHourOfDay'),
	({'dayOfWeek': 1, 'hourOfDay': 9, 'protectedHours': {'startHourOfDay': 8, 'endHourOfDay': 18}}, 'hourOfDay'),
	({'dayOfWeek': 1, 'hourOfDay': 1, 'protectedHours': {'startHourOfDay': 22, 'endHourOfDay': 6}}, 'hourOfDay'),
	({'dayOfWeek': 1, 'timeZoneId': 'UTC'}, 'timeZoneId')])
def test_window_rules(server, group, body, field):
	refused(server.patch(path(group), json=body), 400, None, field)
	assert bare(ok(server.get(path(group)))) == STANDARD


def test_protected_hours_end_before_the_window(server, group):
	hours = {'startHourOfDay': 22, 'endHourOfDay': 6}
	assert server.patch(path(group), json={'dayOfWeek': 1, 'hourOfDay': 6, 'protectedHours': hours}).status_code == 200


def test_auto_defer_switch(server, group):
	for on in (True, False):
		r = server.post(path(group, '/autoDefer'))
		assert r.status_code == 200 and ok(server.get(path(group)))['autoDeferOnceEnabled'] is on
	assert told(server, group) == ['SVC_MAINTENANCE_AUTO_DEFER_ENABLED', 'SVC_MAINTENANCE_AUTO_DEFER_DISABLED']


def test_refusals(server, group):
	refused(server.post(path(group, '/defer')), 409, 'MAINTENANCE_NOT_SCHEDULED')
	org = server.seed({'name': unique('m'), 'projects': ['one'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'one', 'roles': ['GROUP_READ_ONLY']}]}]})[0]
	api, own = server.api_for(org['principals'][0]), org['projects'][0]['id']
	ok(api.get(path(own)))
	refused(api.patch(path(own), json={'dayOfWeek': 2}), 403)
	refused(api.post(path(own, '/autoDefer')), 403)
	refused(api.delete(path(own)), 403)
	refused(api.get(path(group)), 401)
	refused(server.get(path(NO_ID)), 404)


def test_runs_in_the_window(server, group):
	assert server.patch(path(group), json={'dayOfWeek': 3, 'hourOfDay': 14}).status_code == 200
	name = cluster(server, group)
	before = get(server, group, name)['dbVersion']
	announce(server, group)
	assert get(server, group, name)['dbVersion'] == before and get(server, group, name)['stateName'] == 'IDLE'
	to_window(server, 3, 14, earlier=60)
	time.sleep(0.2)
	assert not started(server, group), 'a minute too early'
	server.advance(60)
	until(lambda: started(server, group))
	assert get(server, group, name)['stateName'] == 'UPDATING'
	finish(server, group)
	after = get(server, group, name)
	assert after['dbVersion'] != before and after['stateName'] == 'IDLE'
	assert told(server, group, 'PROJECT_SCHEDULED_MAINTENANCE', 'MAINTENANCE_STARTED', 'CLUSTER_UPDATE_COMPLETED',
		'MAINTENANCE_COMPLETED') == ['PROJECT_SCHEDULED_MAINTENANCE', 'MAINTENANCE_STARTED', 'CLUSTER_UPDATE_COMPLETED',
		'MAINTENANCE_COMPLETED']
	refused(server.post(path(group, '/defer')), 409, 'MAINTENANCE_NOT_SCHEDULED')
	server.advance(2 * WEEK)
	time.sleep(0.2)
	assert told(server, group, 'MAINTENANCE_STARTED') == ['MAINTENANCE_STARTED'], 'once is enough'


def test_a_new_cluster_has_nothing_pending(server, group):
	server.control('engine', {'patch': next(patches)})
	cluster(server, group)
	server.advance(2 * HOUR)
	time.sleep(0.2)
	assert told(server, group, 'PROJECT_SCHEDULED_MAINTENANCE') == []


def test_defer(server, group):
	name = cluster(server, group)
	announce(server, group)
	for n in (1, 2):
		r = server.post(path(group, '/defer'))
		assert r.status_code == 200 and not r.content
		assert ok(server.get(path(group)))['numberOfDeferrals'] == n
	refused(server.post(path(group, '/defer')), 409, 'MAINTENANCE_DEFERRAL_LIMIT_EXCEEDED')
	to_window(server, 1, 3)
	server.advance(2 * WEEK - HOUR)
	time.sleep(0.2)
	assert not started(server, group)
	server.advance(HOUR)
	until(lambda: started(server, group))
	refused(server.post(path(group, '/defer')), 409, 'MAINTENANCE_ALREADY_STARTED')
	finish(server, group)
	assert ok(server.get(path(group)))['numberOfDeferrals'] == 0
	assert get(server, group, name)['stateName'] == 'IDLE'


def test_auto_defer(server, group):
	cluster(server, group)
	assert server.post(path(group, '/autoDefer')).status_code == 200
	announce(server, group)
	assert ok(server.get(path(group)))['numberOfDeferrals'] == 1
	assert 'MAINTENANCE_AUTO_DEFERRED' in types(server, group)
	to_window(server, 1, 3)
	time.sleep(0.2)
	assert not started(server, group)
	server.advance(WEEK)
	until(lambda: started(server, group))
	finish(server, group)


def test_start_at_once(server, group):
	name = cluster(server, group)
	before = get(server, group, name)['dbVersion']
	announce(server, group)
	assert server.patch(path(group), json={'dayOfWeek': 1, 'startASAP': True}).status_code == 200
	until(lambda: started(server, group))
	finish(server, group)
	assert get(server, group, name)['dbVersion'] != before
	assert ok(server.get(path(group)))['startASAP'] is False
	assert 'SVC_MAINTENANCE_START_ASAP' in types(server, group)


def test_a_new_window_moves_what_is_pending(server, group):
	cluster(server, group)
	announce(server, group)
	day = (now(server) + datetime.timedelta(days=1)).isoweekday() % 7 + 1
	assert server.patch(path(group), json={'dayOfWeek': day, 'hourOfDay': 12}).status_code == 200
	server.advance(2 * DAY)
	until(lambda: started(server, group))
	finish(server, group)


def test_no_longer_needed(server, group):
	name = cluster(server, group)
	announce(server, group)
	assert server.delete('/groups/%s/clusters/%s' % (group, name)).status_code == 202
	pass_time(server, lambda: server.get('/groups/%s/clusters/%s' % (group, name)).status_code == 404)
	server.advance(11 * DAY)
	until(lambda: 'MAINTENANCE_NO_LONGER_NEEDED' in types(server, group))
	assert not started(server, group)


def test_a_failure_is_not_the_end(server, group):
	"""What has failed is not complete: it is tried again, and then it is."""
	name = cluster(server, group)
	before = get(server, group, name)['dbVersion']
	announce(server, group)
	server.control('engine', {'fail': 'update', 'times': 1000})
	assert server.patch(path(group), json={'dayOfWeek': 1, 'startASAP': True}).status_code == 200
	pass_time(server, lambda: get(server, group, name)['stateName'] == 'REPAIRING', 60)
	for _ in range(3):
		server.advance(60)
		time.sleep(0.1)
		assert 'MAINTENANCE_COMPLETED' not in types(server, group)
	assert get(server, group, name)['dbVersion'] == before
	server.control('engine', {})
	pass_time(server, lambda: 'MAINTENANCE_COMPLETED' in types(server, group), 60)
	assert get(server, group, name)['stateName'] == 'IDLE' and get(server, group, name)['dbVersion'] != before


def test_restart_in_the_middle(start_server, tmp_path):
	first = start_server(data_dir=tmp_path / 'data')
	group = first.project()['id']
	name = cluster(first, group)
	first.control('engine', {'patch': 5})
	first.advance(HOUR)
	until(lambda: told(first, group, 'PROJECT_SCHEDULED_MAINTENANCE'))
	assert first.patch(path(group), json={'dayOfWeek': 1, 'startASAP': True}).status_code == 200
	until(lambda: started(first, group))
	first.kill()
	again = start_server(data_dir=tmp_path / 'data')
	again.advance(2 * HOUR)  # a new process begins with the machine's time
	pass_time(again, lambda: 'MAINTENANCE_COMPLETED' in types(again, group), 60)
	assert get(again, group, name)['stateName'] == 'IDLE'


def test_a_lost_job_is_found_again(start_server, tmp_path):
	"""What is pending would otherwise stay so for ever: it is announced once."""
	first = start_server('--store', 'sqlite:%s' % (tmp_path / 'store.db'), data_dir=tmp_path / 'data')
	group = first.project()['id']
	cluster(first, group)
	first.control('engine', {'patch': 5})
	first.advance(HOUR)
	until(lambda: told(first, group, 'PROJECT_SCHEDULED_MAINTENANCE'))
	first.kill()
	with sqlite3.connect(tmp_path / 'store.db') as db:
		assert db.execute("DELETE FROM job WHERE kind = 'maintenance'").rowcount == 1
	again = start_server('--store', 'sqlite:%s' % (tmp_path / 'store.db'), data_dir=tmp_path / 'data')
	again.control('engine', {'patch': 5})
	again.advance(14 * DAY)
	until(lambda: told(again, group, 'MAINTENANCE_STARTED', 'MAINTENANCE_NO_LONGER_NEEDED'))


POSTGRES = pathlib.Path('/usr/lib/postgresql')


def can_replace_programs():
	return POSTGRES.is_dir() and os.geteuid() == 0 and shutil.which('unshare') and \
		subprocess.run(['unshare', '-m', 'true'], stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.skipif(not can_replace_programs(), reason='needs PostgreSQL, root and a mount namespace')
def test_real_nodes_get_the_new_program(start_server, monkeypatch):
	"""The package is upgraded under running nodes: in a mount namespace of the server's own, where the programs are a copy."""
	folder = tempfile.mkdtemp(prefix='sw-', dir=client.SHORT)
	os.chmod(folder, 0o711)
	copy, wrapper = folder + '/pg', pathlib.Path(folder, 'steward')
	shutil.copytree(POSTGRES, copy, symlinks=True)
	wrapper.write_text('#!/bin/sh\nexec unshare -m sh -c \'mount --bind %s %s && exec "$0" "$@"\' %s "$@"\n' % (copy, POSTGRES,
		client.binary()))
	wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
	monkeypatch.setenv('STEWARD_BIN', str(wrapper))
	try:
		server = start_server('--engine', 'postgres', data_dir=folder + '/d')
		group, name = server.project()['id'], unique('c')
		ok(server.post('/groups/%s/clusters' % group, json={'name': name, 'replicationSpecs': [{'regionConfigs': [
			{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
			 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}), 201)
		until(lambda: get(server, group, name)['stateName'] == 'IDLE', 180)
		old = client.database_processes(folder)
		assert len(old) == 3 and not any(p.endswith('(deleted)') for p in old.values())
		server.advance(2 * HOUR)
		time.sleep(0.5)
		assert told(server, group, 'PROJECT_SCHEDULED_MAINTENANCE') == [], 'nothing is behind yet'
		for program in pathlib.Path(copy).glob('*/bin/postgres'):
			shutil.copy2(program, str(program) + '.new')
			os.rename(str(program) + '.new', program)
		server.advance(2 * HOUR)
		until(lambda: told(server, group, 'PROJECT_SCHEDULED_MAINTENANCE'))
		assert set(client.database_processes(folder)) == set(old), 'not before its time'
		assert server.patch(path(group), json={'dayOfWeek': 1, 'startASAP': True}).status_code == 200
		until(lambda: get(server, group, name)['stateName'] == 'IDLE' and started(server, group), 180)
		finish(server, group)
		new = client.database_processes(folder)
		assert len(new) == 3 and not set(new) & set(old) and not any(p.endswith('(deleted)') for p in new.values())
		assert server.delete('/groups/%s/clusters/%s' % (group, name)).status_code == 202
		until(lambda: server.get('/groups/%s/clusters/%s' % (group, name)).status_code == 404, 180)
		assert client.database_processes(folder) == {}
	finally:
		client.folder_end(folder)
