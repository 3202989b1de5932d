"""Where a dialect's answers and bodies have another shape than ours, not only other words."""
import pytest

import dialect
from client import ok, refused, unique
from test_backups import create as backed_up

pytestmark = pytest.mark.skipif(bool(dialect.NAME), reason='both are asked here, by their own paths')

BASE = '/api/atlas/v2'


def test_limits_are_objects(server):
	ours, theirs = (ok(server.get(base + '/rateLimits/S17')) for base in ('', BASE))
	for field in ('capacity', 'refillRate', 'refillDurationSeconds'):
		assert theirs[field] == {'value': ours[field]}, theirs
	assert all(isinstance(one['capacity'], dict) for one in ok(server.get(BASE + '/rateLimits'))['results'])


def test_users_are_changed_in_part(server):
	group = server.project()['id']
	path = '/groups/%s/databaseUsers' % group
	name = unique('u')
	ok(server.post(path, json={'groupId': group, 'databaseName': 'admin', 'username': name, 'password': 'a-long-password-1',
		'roles': [{'roleName': 'read', 'databaseName': 'shop'}]}), 201)
	one = '%s/admin/%s' % (path, name)
	refused(server.patch(one, json={'description': 'x'}), 400, None, 'roles')
	doc = ok(server.patch(BASE + one, json={'description': 'x'}))
	assert doc['description'] == 'x' and doc['roles'] == [{'roleName': 'read', 'databaseName': 'shop'}]
	ok(server.patch(BASE + one, json={'password': 'another-long-password-2'}))
	refused(server.patch(BASE + one, json={'groupId': 'f' * 24}), 400, None, 'groupId')
	refused(server.patch(BASE + one, json={'roles': [{'roleName': 'read'}]}), 400, None, 'roles[0].databaseName')


def test_schedules_are_changed_in_part(server):
	group = server.project()['id']
	name = backed_up(server, group)
	path = '/groups/%s/clusters/%s/backup/schedule' % (group, name)
	before = ok(server.get(path))
	doc = ok(server.patch(BASE + path, json={'referenceHourOfDay': 3, 'policies': None}))
	assert doc['referenceHourOfDay'] == 3 and doc['policies'] == before['policies'] and doc['restoreWindowDays'] == before['restoreWindowDays']
	refused(server.patch(BASE + path, json={'policies': [{}]}), 400, None, 'policies[0].policyItems')
	refused(server.patch(BASE + path, json={'referenceHourOfDay': 24}), 400, None, 'referenceHourOfDay')
	older = '/groups/%s/clusters/%s/snapshotSchedule' % (group, name)
	was = ok(server.get(older))
	assert {**ok(server.patch(BASE + older, json={'snapshotIntervalHours': 8})), 'links': None} == {**was, 'snapshotIntervalHours': 8, 'links': None}


def test_a_name_that_is_not_the_paths(server):
	"""A read-only field is ignored, but not where it names another thing than the path does."""
	group = server.project()['id']
	ours, theirs = ('/groups/%s/limits/%s.project.deployment.clusters' % (group, word) for word in ('svc', 'atlas'))
	refused(server.patch(ours, json={'name': 'svc.project.deployment.clusters', 'value': 30}), 400, None, 'name')
	other = refused(server.patch(BASE + theirs, json={'name': 'atlas.project.security.databaseAccess.users', 'value': 31}), 400, None, 'name')
	assert other['detail'] == 'name: must be what the path says, or absent.'
	refused(server.patch(BASE + theirs, json={'name': 'svc.project.deployment.clusters', 'value': 31}), 400, None, 'name')
	for name in ({}, {'name': 'atlas.project.deployment.clusters'}, {'name': ''}, {'name': None}):
		doc = ok(server.patch(BASE + theirs, json={**name, 'value': 32, 'maximumLimit': 1}))
		assert doc['value'] == 32 and doc['name'] == 'atlas.project.deployment.clusters'
