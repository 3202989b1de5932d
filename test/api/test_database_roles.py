"""Custom database roles: what they may be made of, who inherits what, and who stands in the way of their end."""
import pytest

from client import NO_ID, bare, links, ok, refused, unique


@pytest.fixture
def group(server):
	return server.project()['id']


def path(group, name=None):
	return '/groups/%s/customDBRoles/roles%s' % (group, '/' + name if name else '')


def on(db='shop', collection='', cluster=False):
	return {'db': db, 'collection': collection, 'cluster': cluster}


def action(name='FIND', *resources):
	return {'action': name, 'resources': list(resources) or [on()]}


def role(name=None, *actions, inherits=()):
	return {'roleName': name or unique('r'), 'actions': list(actions),
		'inheritedRoles': [{'role': r, 'db': db} for r, db in inherits]}


def make(server, group, *args, **kw):
	return ok(server.post(path(group), json=role(*args, **kw)), 202)


def event_types(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events?itemsPerPage=20' % group))['results']]


def test_create_list_get_update_delete(server, group):
	assert ok(server.get(path(group))) == []
	made = make(server, group, 'reader', action('FIND', on('shop', 'orders'), on('shop', 'items')))
	assert made['roleName'] == 'reader' and made['inheritedRoles'] == []
	assert made['actions'] == [action('FIND', on('shop', 'orders'), on('shop', 'items'))]
	assert [bare(r) for r in ok(server.get(path(group)))] == [bare(made)]
	assert bare(ok(server.get(path(group, 'reader')))) == bare(made)
	assert links(made)['self'].endswith(path(group, 'reader'))
	changed = ok(server.patch(path(group, 'reader'), json={'inheritedRoles': [{'role': 'readAnyDatabase', 'db': 'admin'}]}))
	assert changed['actions'] == made['actions'] and changed['inheritedRoles'] == [{'role': 'readAnyDatabase', 'db': 'admin'}]
	changed = ok(server.patch(path(group, 'reader'), json={'actions': [action('INSERT')]}))
	assert changed['actions'] == [action('INSERT')] and len(changed['inheritedRoles']) == 1
	ok(server.delete(path(group, 'reader')), 204)
	refused(server.get(path(group, 'reader')), 404)
	refused(server.delete(path(group, 'reader')), 404)
	refused(server.patch(path(group, 'reader'), json={'actions': [action()]}), 404)
	refused(server.get(path(NO_ID)), 404)
	types = event_types(server, group)
	assert types[0] == 'DB_ROLE_DELETED' and types.count('DB_ROLE_UPDATED') == 2 and 'DB_ROLE_ADDED' in types


def test_names(server, group):
	make(server, group, 'twice', action())
	refused(server.post(path(group), json=role('twice', action())), 409)
	for name in ('', 'read', 'svcAdmin', '1st', '-x', 'a b', 'a' * 65, 'a/b', 'ä'):
		refused(server.post(path(group), json={**role('x', action()), 'roleName': name}), 400, None, 'roleName')


@pytest.mark.parametrize('actions, where', [
	([action('FIND', on('', '', True))], 'actions[0].resources[0].cluster'),
	([action('SERVER_STATUS', on())], 'actions[0].resources[0].cluster'),
	([action('TOP', on('shop', '', True))], 'actions[0].resources[0]'),
	([action('FIND', on('a/b'))], 'actions[0].resources[0].db'),
	([action('FIND', on('d' * 53))], 'actions[0].resources[0].db'),
	([action(), action('INSERT', on(), on('shop', 'x"y'))], 'actions[1].resources[1].collection'),
	([{'action': 'FIND', 'resources': []}], 'actions[0].resources'),
	([{'action': 'EAT', 'resources': [on()]}], 'actions[0].action'),
	([action('FIND', *[on('shop', 't%d' % i) for i in range(1001)])], 'actions'),
	([], 'actions'),
])
def test_actions_and_resources(server, group, actions, where):
	refused(server.post(path(group), json=role('r', *actions)), 400, None, where)


def test_inheritance(server, group):
	make(server, group, 'a', action())
	make(server, group, 'b', inherits=[('a', 'admin')])
	make(server, group, 'c', inherits=[('b', 'admin'), ('read', 'shop')])
	refused(server.post(path(group), json=role('x', inherits=[('nobody', 'admin')])), 400, None, 'inheritedRoles[0].role')
	refused(server.post(path(group), json=role('x', inherits=[('a', 'shop')])), 400, None, 'inheritedRoles[0].db')
	refused(server.post(path(group), json=role('x', inherits=[('readAnyDatabase', 'shop')])), 400, None, 'inheritedRoles[0].db')
	refused(server.post(path(group), json=role('x', inherits=[('read', '')])), 400, None, 'inheritedRoles[0].db')


def test_circles_are_refused_with_the_way(server, group):
	doc = refused(server.post(path(group), json=role('self', inherits=[('self', 'admin')])), 400, None, 'inheritedRoles[0].role')
	assert 'self -> self' in doc['detail']
	make(server, group, 'a', action())
	make(server, group, 'b', inherits=[('a', 'admin')])
	make(server, group, 'c', inherits=[('b', 'admin')])
	doc = refused(server.patch(path(group, 'a'), json={'inheritedRoles': [{'role': 'read', 'db': 'shop'}, {'role': 'c', 'db': 'admin'}]}),
		      400, None, 'inheritedRoles[1].role')
	assert 'a -> c -> b -> a' in doc['detail']
	assert ok(server.get(path(group, 'a')))['inheritedRoles'] == []


def test_a_role_in_use_stays(server, group):
	make(server, group, 'a', action())
	make(server, group, 'b', inherits=[('a', 'admin')])
	refused(server.delete(path(group, 'a')), 409, 'CUSTOM_ROLE_IN_USE', 'a', 'b')
	ok(server.delete(path(group, 'b')), 204)
	ok(server.delete(path(group, 'a')), 204)


def test_a_role_of_a_user_stays(module_server):
	"""Not recorded: the check of recordings takes the place holder for custom names literally."""
	s = module_server
	g = s.project()['id']
	make(s, g, 'mine', action())
	user = {'username': 'anna', 'databaseName': 'admin', 'groupId': g, 'password': 'correct horse',
		'roles': [{'roleName': 'mine', 'databaseName': 'admin'}]}
	made = ok(s.post('/groups/%s/databaseUsers' % g, json=user), 201)
	assert made['roles'] == user['roles']
	refused(s.delete(path(g, 'mine')), 409, 'CUSTOM_ROLE_IN_USE', 'mine', 'anna')
	ok(s.delete('/groups/%s/databaseUsers/admin/anna' % g), 204)
	ok(s.delete(path(g, 'mine')), 204)


def test_limit(server, group):
	limit = '/groups/%s/limits/svc.project.security.databaseAccess.customRoles' % group
	ok(server.patch(limit, json={'value': 1}))
	make(server, group, 'one', action())
	refused(server.post(path(group), json=role('two', action())), 400, 'PROJECT_LIMIT_EXCEEDED')


def test_more_rights_than_there_is_room_for_are_refused(module_server):
	"""Not cut off in silence: neither when a user gets them, nor when a role of theirs grows."""
	server, group = module_server, module_server.project()['id']
	names = ['big%d' % i for i in range(21)]
	for name in names:
		make(server, group, name, action('FIND', *[on('shop', '%s-%d' % (name, i)) for i in range(1000)]))

	def user(roles):
		return {'username': 'much', 'password': 'correct horse battery', 'databaseName': 'admin', 'groupId': group,
			'roles': [{'roleName': r, 'databaseName': 'admin'} for r in roles]}
	users = '/groups/%s/databaseUsers' % group
	refused(server.post(users, json=user(names)), 400, None, 'roles')
	ok(server.post(users, json=user(names[:20])), 201)
	refused(server.patch(users + '/admin/much', json=user(names)), 400, None, 'roles')
	grown = {'inheritedRoles': [{'role': names[20], 'db': 'admin'}]}
	refused(server.patch(path(group, names[0]), json=grown), 400, None, 'actions')
	ok(server.patch(users + '/admin/much', json=user(names[1:20])))
	ok(server.patch(path(group, names[0]), json=grown))


def test_roles_needed(server):
	org, = server.seed({'name': unique('o'), 'projects': ['p'], 'principals': [
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_READ_ONLY']}]},
		{'type': 'serviceAccount', 'projectRoles': [{'project': 'p', 'roles': ['GROUP_DATABASE_ACCESS_ADMIN']}]}]})
	group = org['projects'][0]['id']
	reader, admin = (server.api_for(p) for p in org['principals'])
	ok(admin.post(path(group), json=role('r', action())), 202)
	assert len(ok(reader.get(path(group)))) == 1
	refused(reader.post(path(group), json=role('s', action())), 403)
	refused(reader.patch(path(group, 'r'), json={'actions': [action()]}), 403)
	refused(reader.delete(path(group, 'r')), 403)


def test_revisions(server, group):
	made = server.post(path(group), json=role('r', action()))
	ok(server.patch(path(group, 'r'), json={'actions': [action('UPDATE')]}, headers={'If-Match': made.headers['ETag']}))
	refused(server.patch(path(group, 'r'), json={'actions': [action()]}, headers={'If-Match': made.headers['ETag']}), 412)
