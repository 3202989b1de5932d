"""steward backups take and restore: what they print, how they wait, what they refuse; and the derived commands beside them."""
import json, re, time

import pytest

import client, test_backups
from client import cli, ok, unique, until
from test_cli import while_time_passes

DAY = 86400


@pytest.fixture(scope='module')
def service():
	import conftest
	s = client.Server('--engine', 'simulated', clock='real')
	s.control('engine', {'seconds': 0})
	yield s
	conftest.end(s)


@pytest.fixture(autouse=True)
def quick(service):
	service.refill()
	service.control('engine', {'seconds': 0})


@pytest.fixture
def run(service, tmp_path, commands):
	def call(*args, check=True):
		env = {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': ''}
		return commands.run(*args, '--data', service.data_dir, check=check, env=env, cwd=tmp_path)
	return call


@pytest.fixture(scope='module')
def made(service):
	"""A cluster with backups, and one without."""
	names = unique('b'), unique('n')
	for name, on in zip(names, (True, False)):
		ok(service.post('/groups/%s/clusters' % service.group, json={'name': name, 'clusterType': 'REPLICASET', 'backupEnabled': on, 'pitEnabled': on,
			'replicationSpecs': [{'regionConfigs': [{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
				'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}), 201)
	path = '/groups/%s/clusters/' % service.group
	until(lambda: {ok(service.get(path + n))['stateName'] for n in names} == {'IDLE'})
	until(lambda: [s for s in ok(service.get(path + names[0] + '/backup/snapshots'))['results'] if s['status'] == 'completed'])
	return names


def settled(service, name):
	"""Its snapshots, when none is on its way: a restore is followed by one."""
	def look():
		found = ok(service.get('/groups/%s/clusters/%s/backup/snapshots' % (service.group, name)))['results']
		return {s['status'] for s in found} == {'completed'} and found
	return until(look)


def test_take(service, run, made):
	name, _ = made
	service.control('engine', {'seconds': 1})
	r = run('backups', 'take', name, '--description', 'before', '--days', '3', '--wait')
	shown = dict(line.split(None, 1) for line in r.stdout.splitlines())
	assert shown['status'] == 'completed' and shown['cluster'] == name and shown['size'].endswith(' MB')
	assert name + ' 100% done' in r.stderr and 'copying data' in r.stderr
	doc = json.loads(run('backups', 'snapshots', 'get', name, shown['snapshot'], '-o', 'json').stdout)
	assert doc['description'] == 'before' and doc['snapshotType'] == 'onDemand'
	at_once = json.loads(run('backups', 'take', name, '-o', 'json').stdout)
	assert at_once['status'] == 'queued'
	again = run('backups', 'snapshots', 'get', name, at_once['id'], '--wait', '-o', 'json')
	assert json.loads(again.stdout)['status'] == 'completed'


def test_take_that_fails(start_server):
	s = start_server('--engine', 'simulated')
	s.control('engine', {'seconds': 0})
	name = test_backups.create(s, s.group)
	s.control('engine', {'fail': 'snapshot'})
	code, out, err = while_time_passes(s, 'backups', 'take', name, '--wait', step=60)
	assert code == 1 and 'asked for this failure' in err and out == '', (out, err)


def test_restore_to_a_time(service, run, made):
	name, _ = made
	service.control('engine', {'seconds': 1})
	r = run('backups', 'restore', name, '--to', 'now', '--wait', '--yes')
	shown = dict(line.split(None, 1) for line in r.stdout.splitlines())
	assert shown['status'] == 'done' and shown['into'] == name and re.match(r'\d{4}-\d\d-\d\dT', shown['point'])
	path = '/groups/%s/clusters/%s' % (service.group, name)
	assert ok(service.get(path))['stateName'] == 'IDLE', 'it comes back when clients can'
	job = ok(service.get('%s/backup/restoreJobs/%s' % (path, shown['restore'])))
	assert job['deliveryType'] == 'pointInTime' and job['failed'] is False
	assert settled(service, name)[1:]


def test_outside_the_window(service, run, made):
	r = run('backups', 'restore', made[0], '--to', '3 days ago', '--yes', check=False)
	assert r.returncode == 1 and 'POINT_IN_TIME_NOT_RESTORABLE' in r.stderr
	assert len(re.findall(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', r.stderr)) == 2, 'the window is told'
	told = until(lambda: run('backups', 'window', made[0], check=False).stdout.splitlines(), what='a full second')
	assert re.fullmatch(r'(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)  (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)', told[0])
	assert set(json.loads(run('backups', 'window', made[0], '-o', 'json').stdout)[0]) == {'from', 'to'}
	none = run('backups', 'window', made[1], check=False)
	assert none.returncode == 1 and none.stdout == '' and 'pitEnabled' in none.stderr
	assert json.loads(run('backups', 'window', made[1], '-o', 'json').stdout) == []
	assert run('backups', 'window', 'nobody', check=False).returncode == 1
	r = run('backups', 'restore', made[1], '--to', '5m', '--yes', check=False)
	assert r.returncode == 1 and 'pitEnabled' in r.stderr


def test_restore_a_table(service, run, made):
	name = made[0]
	out = run('backups', 'restore', name, '--snapshot', 'latest', '--only', 'shop/public.ite ms', '--replace', '--dry-run').stdout
	assert 'X-Steward-Restore-Only: shop/public.ite%20ms' in out and 'X-Steward-Restore-Replace: true' in out
	r = run('backups', 'restore', name, '--snapshot', 'latest', '--only', 'shop/items', '--wait')
	assert 'as        shop/public.items_restored_20' in r.stdout and 'status    done' in r.stdout


def test_restore_a_snapshot(service, run, made):
	name, other = made
	newest = settled(service, name)[-1]
	job = json.loads(run('backups', 'restore', name, '--snapshot', 'latest', '--target', other, '--wait', '-o', 'json', '--yes').stdout)
	assert job['targetClusterName'] == other and job['snapshotId'] == newest['id'] and 'finishedAt' in job
	r = run('backups', 'restore', other, '--snapshot', 'latest', '--yes', check=False)
	assert r.returncode == 1 and 'steward backups take ' + other in r.stderr
	r = run('backups', 'restore', name, '--snapshot', newest['id'], '--target', other, '--yes')
	assert 'steward backups restores get' in r.stdout
	words = r.stdout.split('wait      steward ')[1].split()
	assert run(*words).returncode == 0
	until(lambda: ok(service.get('/groups/%s/clusters/%s' % (service.group, other)))['stateName'] == 'IDLE')


def test_the_older_form_waits_too(service, run, made):
	name, other = made
	settled(service, name)
	newest = ok(service.get('/groups/%s/clusters/%s/snapshots' % (service.group, name)))['results'][-1]
	r = run('legacy-backups', 'restores', 'create', name, '--snapshot-id', newest['id'], '--delivery.method-name', 'AUTOMATED_RESTORE',
		'--delivery.target-cluster-name', other, '--wait', '--yes', '-o', 'json')
	assert json.loads(r.stdout)['statusName'] == 'FINISHED'
	until(lambda: ok(service.get('/groups/%s/clusters/%s' % (service.group, other)))['stateName'] == 'IDLE')


def test_nothing_is_done_with_dry_run(service, run, made):
	name, other = made
	before = len(ok(service.get('/groups/%s/clusters/%s/backup/restoreJobs' % (service.group, name)))['results'])
	r = run('backups', 'restore', name, '--to', '2026-11-16T03:00:00+01:00', '--target', other, '--dry-run')
	assert 'POST' in r.stdout and '"pointInTimeUTCSeconds": 1794794400' in r.stdout.replace('":', '": ').replace(':  ', ': ') and other in r.stdout
	assert 'POST' in run('backups', 'take', name, '--dry-run').stdout
	assert len(ok(service.get('/groups/%s/clusters/%s/backup/restoreJobs' % (service.group, name)))['results']) == before


@pytest.mark.parametrize('args, said', [
	(['restore', 'c'], '--to TIME'), (['restore', 'c', '--to', 'now', '--snapshot', 'x'], 'not both'), (['restore'], "name is missing"),
	(['restore', 'c', '--to', 'now', '--replace'], '--replace goes with --only'), (['take', 'c', '--only', 'x'], '--only goes with restore'),
	(['take'], "name is missing"), (['take', 'c', '--to', 'now'], '--to goes with restore'),
	(['restore', 'c', '--to', 'now', '--days', '3'], '--days goes with take'), (['restore', 'c', '--to', 'yesterday'], '--to: "yesterday"'),
	(['restore', 'c', '--to', '5 parsecs ago'], '10 minutes ago'), (['restor', 'c'], 'did you mean'), (['snapshots'], 'backups snapshots'),
	(['take', 'c', '--days', '0'], '--days')])
def test_usage(run, args, said):
	r = run('backups', *args, check=False)
	assert r.returncode == 2 and said in r.stderr, r.stderr


@pytest.mark.parametrize('text, ago', [('90s', 90), ('15m', 900), ('2h', 7200), ('3d', 3 * DAY), ('10 minutes ago', 600), ('1 hour ago', 3600),
	('2days', 2 * DAY), ('now', 0)])
def test_times(service, run, made, text, ago):
	out = run('backups', 'restore', made[0], '--to', text, '--dry-run').stdout
	at = int(re.search(r'pointInTimeUTCSeconds"?:\s*(\d+)', out).group(1))
	assert abs(time.time() - ago - at) < 60


def test_refusals_say_what_to_do(run, made):
	r = run('backups', 'take', made[1], check=False)
	assert r.returncode == 1 and 'CLUSTER_BACKUP_NOT_ENABLED' in r.stderr and '--backup-enabled' in r.stderr
	assert run('backups', 'take', 'nothing', check=False).returncode == 1


def test_help(run):
	for args in (['help', 'backups'], ['backups', '--help']):
		out = cli(*args).stdout
		assert 'backups restore CLUSTER --to TIME' in out and 'snapshots list' in out
	r = cli('backups', check=False)
	assert r.returncode == 2 and 'snapshots list' in r.stderr
	assert 'backups ' in cli('--help').stdout


def test_completion(service, made, tmp_path, commands):
	def complete(*words):
		env = {'HOME': str(tmp_path), 'XDG_CONFIG_HOME': '', 'STEWARD_PROFILE': '', 'STEWARD_DATA': str(service.data_dir)}
		return {line.split('\t')[0] for line in commands.run('__complete', *words, env=env, cwd=tmp_path).stdout.splitlines()}
	assert {'take', 'restore', 'snapshots', 'schedule'} <= complete('backups', '')
	assert complete('backups', 'ta') == {'take'} and 'take' in complete('backups', 'snapshots', '')
	assert {'--to', '--target', '--target-project', '--timeout'} <= complete('backups', 'restore', 'c', '--t')
	for words in (['take'], ['restore'], ['restore', 'c', '--target']):
		assert made[0] in complete('backups', *words, ''), words


@pytest.mark.parametrize('fail', [None, 'restore'])
def test_a_wait_ends_when_the_target_has_settled(start_server, fail):
	"""After a failure too, which is told with its reason: what was asked of the target meanwhile is done then."""
	s = start_server('--engine', 'simulated')
	s.control('engine', {'seconds': 0})
	name, other = test_backups.create(s, s.group), test_backups.create(s, s.group)
	snapshot = test_backups.take(s, s.group, name)['id']
	s.control('engine', {'seconds': 200, 'fail': fail})
	job = test_backups.restore(s, s.group, name, deliveryType='automated', snapshotId=snapshot, targetClusterName=other, targetGroupId=s.group)
	where = '/groups/%s/clusters/%s' % (s.group, other)
	ok(s.patch(where, json={'replicationSpecs': test_backups.spec(region='EU_WEST_1')}))
	code, out, err = while_time_passes(s, 'backups', 'restores', 'get', name, job['id'], '--wait', '-o', 'json', step=100)
	after = ok(s.get(where))
	assert after['stateName'] == 'IDLE' and after['replicationSpecs'][0]['regionConfigs'][0]['regionName'] == 'EU_WEST_1', (out, err)
	if fail:
		assert code == 1 and 'is failed: the test control asked for this failure' in err and out == '', (out, err)
	else:
		assert code == 0 and json.loads(out)['finishedAt'], (out, err)
