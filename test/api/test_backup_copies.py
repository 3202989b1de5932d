"""What copies in other regions are for: the repository of a cluster's own region is away, and they serve."""
import io, tarfile

import pytest

import client
from client import ok, pass_time, refused
from conftest import end
from test_backup_exports import begin, bucket, over
from test_backup_schedule import policy, schedule
from test_backups import cluster, create, group, idle, path, remove, restore, restored, seconds, take  # noqa: F401 (group is a fixture)

HOME, THERE, NEVER = 'US_EAST_1', 'EU_WEST_1', 'EU_WEST_2'


@pytest.fixture(scope='module')
def server():
	"""Not recorded: where no copy serves, a repository that is away is a 503."""
	s = client.Server(exports=True)
	yield s
	end(s)


@pytest.fixture
def away(server, group):  # noqa: F811
	"""away(REGION): its repository cannot be reached."""
	yield lambda region: server.control('engine', {'away': region})
	server.control('engine', {'away': None})


def copying(server, group, name, *regions, log=False):  # noqa: F811
	zone = ok(server.get(cluster(group, name)))['replicationSpecs'][0]['zoneId']
	ok(server.patch(schedule(group, name), json=policy(copySettings=[{'cloudProvider': 'AWS', 'regionName': r, 'zoneId': zone,
		'frequencies': ['ON_DEMAND'], 'shouldCopyOplogs': log} for r in regions])))


def copied(server, group, name, *regions):  # noqa: F811
	made = take(server, group, name)['id']
	pass_time(server, lambda: ok(server.get(path(group, name, '/snapshots/' + made)))['copyRegions'] == list(regions))
	return made


def fetch(server, job):
	r = server.anonymous.get(job['deliveryUrl'][0])
	return r.status_code == 200 and {m.name for m in tarfile.open(fileobj=io.BytesIO(r.content))}


def test_snapshots_are_brought_back_from_copies(server, group, away):  # noqa: F811
	name = create(server, group)
	copying(server, group, name, THERE)
	made = copied(server, group, name, THERE)
	body = {'deliveryType': 'automated', 'snapshotId': made, 'targetClusterName': name, 'targetGroupId': group}
	away(HOME)
	job = restored(server, group, name, restore(server, group, name, **body)['id'])
	assert not job['failed'], job
	idle(server, group, name)
	job = restore(server, group, name, deliveryType='download', snapshotId=made)
	assert 'PG_VERSION' in fetch(server, job)
	to = bucket(server, group)
	assert over(server, group, name, begin(server, group, name, made, to['_id'])['id'])['state'] == 'Successful'
	# The copy alone is away: the first serves.
	away(THERE)
	job = restored(server, group, name, restore(server, group, name, **body)['id'])
	assert not job['failed'], job
	idle(server, group, name)
	# Neither is there, and what is told is of the first.
	alone = take(server, group, name)['id']
	away(HOME)
	job = restore(server, group, name, **{**body, 'snapshotId': alone})
	failed = restored(server, group, name, job['id'])
	assert failed['failed'] and 'away' in server.get(path(group, name, '/restoreJobs/' + job['id'])).headers['X-Steward-Progress']
	away(None)
	idle(server, group, name)
	remove(server, group, name)


def test_points_in_time_from_copies(server, group, away):  # noqa: F811
	name = create(server, group, pitEnabled=True)
	copying(server, group, name, THERE, log=True)
	idle(server, group, name)
	pass_time(server, lambda: 'completed' in [s['status'] for s in ok(server.get(path(group, name)))['results']])
	server.advance(60)
	early = seconds(server)  # of which the first region alone has a snapshot
	server.advance(60)
	first = copied(server, group, name, THERE)
	server.advance(600)
	alone = seconds(server)
	copying(server, group, name)  # and from now on none
	idle(server, group, name)
	body = {'deliveryType': 'pointInTime', 'targetClusterName': name, 'targetGroupId': group, 'pointInTimeUTCSeconds': alone}
	usable = path(group, name) + '?pointInTimeUtcSeconds=%d' % alone
	away(HOME)
	assert server.post(path(group, name, '/restoreJobs'), json=body).status_code == 503, 'no log lies there any more'
	away(None)
	copying(server, group, name, THERE, log=True)
	away(HOME)
	# The one that lies there too, once the engine was told.
	def listed():
		answer = server.get(usable)  # a 503 until then
		return answer.status_code == 200 and [s['id'] for s in answer.json()['results']] == [first]
	pass_time(server, listed)
	refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'pointInTimeUTCSeconds': alone - 86400}), 400,
		'POINT_IN_TIME_NOT_RESTORABLE')
	refused(server.post(path(group, name, '/restoreJobs'), json={**body, 'pointInTimeUTCSeconds': early}), 503, 'REPOSITORY_UNAVAILABLE')
	job = restored(server, group, name, restore(server, group, name, **body)['id'])
	assert not job['failed'] and job['pointInTimeUTCSeconds'] == alone
	away(None)
	idle(server, group, name)
	remove(server, group, name)


def test_log_without_a_snapshot_is_no_point(server, group, away):  # noqa: F811
	"""The log lies in a region that no snapshot was copied to: nothing of it is offered from there."""
	name = create(server, group, pitEnabled=True)
	copying(server, group, name, NEVER, log=True)
	idle(server, group, name)
	zone = ok(server.get(cluster(group, name)))['replicationSpecs'][0]['zoneId']
	ok(server.patch(schedule(group, name), json=policy(copySettings=[{'cloudProvider': 'AWS', 'regionName': NEVER, 'zoneId': zone,
		'frequencies': ['YEARLY'], 'shouldCopyOplogs': True}])))
	take(server, group, name)
	server.advance(60)
	body = {'deliveryType': 'pointInTime', 'targetClusterName': name, 'targetGroupId': group, 'pointInTimeUTCSeconds': seconds(server) - 10}
	away(HOME)
	refused(server.post(path(group, name, '/restoreJobs'), json=body), 503, 'REPOSITORY_UNAVAILABLE')
	away(None)
	job = restored(server, group, name, restore(server, group, name, **body)['id'])
	assert not job['failed']
	idle(server, group, name)
	remove(server, group, name)
