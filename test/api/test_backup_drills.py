"""Drills: snapshots are restored and thrown away on a schedule, to prove them; what is told of it, and of backups that do not
come."""
import datetime

import pytest

import client
from client import cli, jobs_done, metric, ok, pass_time, until
from test_backups import DAY, create, group, ids, path, remove, take, types  # noqa: F401 (group is a fixture)
from test_backup_schedule import item, moment, now, policy, schedule, snapshots

HOUR = 3600


@pytest.fixture
def server(start_server):
	"""One of its own: drills of other tests' clusters would come in between."""
	return start_server()


def proven(server, group, name, snapshot):
	r = server.get(path(group, name, '/snapshots/' + snapshot))
	assert 'proven' not in ok(r), 'the document is as the reference has it'
	return r.headers.get('X-Steward-Proven')


def quiet(server, group):
	"""A cluster that nobody takes snapshots of but the test."""
	name = create(server, group)
	ok(server.delete(schedule(group, name)))
	return name


def days_until(server, check, most=8, step=12 * HOUR):
	"""The days that pass until check() gives something; the engine's seconds pass too, and no job is late for the clock."""
	for _ in range(most * DAY // step):
		for part in (step, 3, 3):
			server.advance(part)
			jobs_done(server)
			value = check()
			if value:
				return value
	return pass_time(server, check)


def told(server, group, *wanted):
	return [(e['eventTypeName'], e.get('severity')) for e in ok(server.get('/groups/%s/events?itemsPerPage=500' % group))['results']
		if e['eventTypeName'] in wanted]


def ask(server, *args, code=0):
	"""The operator's command; code None: whatever comes of it."""
	store = ['--store', client.store_of(server.data_dir)] if client.REMOTE else []
	r = cli('repository', 'prove', '--data', server.data_dir, *store, *args, check=False)
	assert code is None or r.returncode == code, r.stdout + r.stderr
	return r.stdout + r.stderr


def test_each_week(server, group):
	name = quiet(server, group)
	first = take(server, group, name, retentionInDays=90)['id']
	assert proven(server, group, name, first) == 'never'
	began = now(server)
	at = days_until(server, lambda: (lambda t: t != 'never' and t)(proven(server, group, name, first)))
	assert began < moment(at) <= now(server)
	# A newer one is proven next, one period later, and the older one stays as it was.
	second = take(server, group, name, retentionInDays=90)['id']
	assert proven(server, group, name, second) == 'never'
	again = days_until(server, lambda: (lambda t: t != 'never' and t)(proven(server, group, name, second)))
	assert 5 * DAY <= (moment(again) - moment(at)).total_seconds() <= 9 * DAY
	assert proven(server, group, name, first) == at
	# Where all were proven, the one that was longest ago.
	days_until(server, lambda: proven(server, group, name, first) != at)
	assert proven(server, group, name, second) == again
	assert [t for t in types(server, group) if 'RESTORE' in t] == [], 'what goes well is no event'


def test_failure(server, group):
	name = quiet(server, group)
	snapshot = take(server, group, name, retentionInDays=90)['id']
	server.control('engine', {'seconds': 0, 'fail': 'drill', 'times': 4})
	kinds = 'CPS_RESTORE_FAILED', 'CPS_RESTORE_SUCCESSFUL'
	found = days_until(server, lambda: (lambda t: t.startswith('failed ') and t)(proven(server, group, name, snapshot)))
	assert found.endswith(': the test control asked for this failure')
	assert [t for t, _ in told(server, group, *kinds)] == ['CPS_RESTORE_FAILED']
	until(lambda: 'drill: snapshot %s' % snapshot in server.stderr, what='the line in the log')
	server.advance(61)
	until(lambda: metric(server, 'steward_backup_drills_failed') == 1)
	# A day later it is tried again, and fails again, which is no event; and again a day later.
	days_until(server, lambda: proven(server, group, name, snapshot) != found, most=2)
	assert proven(server, group, name, snapshot).startswith('failed ')
	assert len(told(server, group, *kinds)) == 1
	days_until(server, lambda: not proven(server, group, name, snapshot).startswith('failed '), most=2)
	assert moment(proven(server, group, name, snapshot)) <= now(server)
	assert [t for t, _ in told(server, group, *kinds)] == ['CPS_RESTORE_SUCCESSFUL', 'CPS_RESTORE_FAILED']


def test_repository_that_is_away(server, group):
	"""For a while that tells nothing about the snapshot; in the end it is a failure."""
	name = quiet(server, group)
	region = ok(server.get('/groups/%s/clusters/%s' % (group, name)))['replicationSpecs'][0]['regionConfigs'][0]['regionName']
	snapshot = take(server, group, name, retentionInDays=90)['id']
	server.control('engine', {'seconds': 0, 'away': region})
	ask(server, name)
	server.advance(1)
	until(lambda: 'it is tried again' in server.stderr)
	for _ in range(5):
		server.advance(90)
		jobs_done(server)
	assert proven(server, group, name, snapshot) == 'never'
	server.control('engine', {'away': None})
	pass_time(server, lambda: proven(server, group, name, snapshot) != 'never', step=30)
	assert not proven(server, group, name, snapshot).startswith('failed')
	server.control('engine', {'away': region})
	ask(server, name)
	pass_time(server, lambda: proven(server, group, name, snapshot).startswith('failed '), step=300)
	assert [t for t, _ in told(server, group, 'CPS_RESTORE_FAILED')] == ['CPS_RESTORE_FAILED']
	server.control('engine', {'away': None})


def test_a_snapshot_that_goes_meanwhile(server, group):
	name = quiet(server, group)
	old, new = (take(server, group, name, retentionInDays=90)['id'] for _ in range(2))
	server.control('engine', {'seconds': DAY})
	assert new in ask(server, name)
	server.advance(60)
	server.control('engine', {'seconds': 0})
	assert server.delete(path(group, name, '/snapshots/' + new)).status_code in (200, 204), 'a drill is no reason to keep it'
	server.advance(DAY)
	assert old in until(lambda: (lambda said: 'already' not in said and said)(ask(server, name, code=None)))
	pass_time(server, lambda: proven(server, group, name, old) != 'never')
	assert ids(server, path(group, name)) == [old]
	assert told(server, group, 'CPS_RESTORE_FAILED') == []


def test_off(start_server):
	server = start_server('--backup-drills', '0')
	group = server.project()['id']
	name = quiet(server, group)
	snapshot = take(server, group, name, retentionInDays=90)['id']
	for _ in range(30):
		server.advance(DAY)
	assert proven(server, group, name, snapshot) == 'never'
	page = server.anonymous.get('/metrics').text
	assert 'steward_backup_proven_age_seconds' not in page and 'kind="backup_drill"' not in page


def test_asked_for(start_server):
	server = start_server('--backup-drills', '0')
	group = server.project()['id']
	name, empty = quiet(server, group), quiet(server, group)
	first, second = (take(server, group, name, retentionInDays=90)['id'] for _ in range(2))

	assert second in ask(server, name)
	assert 'already' in ask(server, name, code=1)
	pass_time(server, lambda: proven(server, group, name, second) != 'never')
	assert proven(server, group, name, first) == 'never'
	assert first in ask(server, name, '--snapshot', first)
	pass_time(server, lambda: proven(server, group, name, first) != 'never')
	assert 'no such snapshot' in ask(server, name, '--snapshot', '5f00000000000000000000ff', code=1)
	assert 'no such snapshot' in ask(server, empty, code=1)
	assert 'has had backups' in ask(server, 'nothing', code=1)
	assert 'which cluster' in ask(server, code=2)
	# The client shows it.
	shown = cli('backups', 'show', name, '--project', group, '--data', server.data_dir).stdout
	assert second in shown and 'proven    ' + proven(server, group, name, second) in shown
	shown = cli('backups', 'show', name, '--snapshot', first, '--project', group, '--data', server.data_dir, '-o', 'json').stdout
	assert '"proven": "%s"' % proven(server, group, name, first) in shown


def test_none_for_two_periods(server, group):
	name = create(server, group)
	server.control('engine', {'seconds': 0})
	ok(server.patch(schedule(group, name), json=policy(item('hourly', 1))))
	take(server, group, name)
	server.control('engine', {'seconds': 0, 'fail': 'snapshot', 'times': 1000})
	kinds = 'CPS_SNAPSHOT_BEHIND',
	began = now(server)

	def hour():
		"""One that the schedule takes, until it has failed or is there."""
		count = len(ids(server, path(group, name)))
		server.advance(HOUR)
		until(lambda: len(ids(server, path(group, name))) > count)
		pass_time(server, lambda: not {s['status'] for s in snapshots(server, group, name)} & {'queued', 'inProgress'}, step=30)
		return told(server, group, *kinds)
	for _ in range(5):
		if hour():
			break
	assert datetime.timedelta(hours=2) <= now(server) - began <= datetime.timedelta(hours=5)
	hour(), hour(), hour()
	assert len(told(server, group, *kinds)) == 1, 'once'
	server.advance(61)
	until(lambda: metric(server, 'steward_backup_overdue') == 1)
	age = metric(server, 'steward_backup_snapshot_age_seconds')
	assert age >= 5 * HOUR
	server.control('engine', {'seconds': 0, 'fail': None})
	before = types(server, group).count('CPS_SNAPSHOT_SUCCESSFUL')
	pass_time(server, lambda: types(server, group).count('CPS_SNAPSHOT_SUCCESSFUL') > before, step=300)
	server.advance(61)
	until(lambda: metric(server, 'steward_backup_overdue') == 0)
	hour()
	assert len(told(server, group, *kinds)) == 1


def test_time_that_nobody_was_there(server, group):
	"""What was missed is made up for: no reason for an alert."""
	name = create(server, group)
	take(server, group, name)
	server.advance(40 * DAY)
	pass_time(server, lambda: ids(server, path(group, name)))
	server.advance(HOUR)
	assert told(server, group, 'CPS_SNAPSHOT_BEHIND') == []


def test_figures(start_server):
	server = start_server()
	group = server.project()['id']

	def figure(name):
		page = server.anonymous.get('/metrics').text
		return next(float(line.split()[1]) for line in page.splitlines() if line.startswith('steward_backup_%s ' % name))
	assert figure('clusters') == 0 and figure('snapshot_age_seconds') == 0
	names = [create(server, group, pitEnabled=on) for on in (True, False)]
	for name in names:
		take(server, group, name, retentionInDays=90)
		ok(server.delete(schedule(group, name)))
	server.advance(61)
	until(lambda: figure('clusters') == 2)
	assert figure('snapshot_age_seconds') < HOUR
	server.advance(2 * HOUR)
	assert 2 * HOUR <= figure('snapshot_age_seconds') < 3 * HOUR, 'it grows'
	until(lambda: figure('repository_bytes') > 0)
	server.advance(HOUR + 60)
	until(lambda: figure('window_seconds') >= HOUR)
	for name in ('log_lag_seconds', 'log_behind', 'log_broken', 'spool_bytes', 'overdue', 'drills_failed'):
		assert figure(name) == 0
	age = figure('proven_age_seconds')
	assert age >= 3 * HOUR
	for name in names:
		days_until(server, lambda: proven(server, group, name, ids(server, path(group, name))[-1]) != 'never')
	server.advance(61)
	until(lambda: figure('proven_age_seconds') <= 8 * DAY)
	remove(server, group, names[1])
	server.advance(61)
	until(lambda: figure('clusters') == 1)
	server.stop()
	server = start_server(data_dir=server.data_dir)
	assert figure('repository_bytes') > 0, 'at once after a restart: nobody is told that all backups are gone'
