"""Where a dialect's answers and bodies have another shape than ours, not only other words."""
import pytest

import dialect
from client import ok, refused, unique

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
