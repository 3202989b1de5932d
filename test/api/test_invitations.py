"""Invitations: made, changed and withdrawn by organizations and projects; mailed or logged; accepted and declined."""
import email, re, socket, ssl, time

import pytest
from aiosmtpd.controller import Controller

from client import BASE, ID, NO_ID, REMOTE, Wire, cli, execute, links, ok, refused, unique, until
from database import free_port
from test_credentials import at
from test_users import LINK, account, events, fresh, group_role, invite, made, name, org_role, token  # noqa: F401 (fresh is a fixture)

ACCEPT = {'password': 'correct horse', 'firstName': 'Grace', 'lastName': 'Hopper', 'country': 'US'}


def answer(server, username, method='POST', body=ACCEPT, of=None):
	return server.anonymous.request(method, '/api/invitations/' + (of or token(server, username)), json=body)


# The operations of organizations.

def test_org_invites(server, fresh):
	path, owner, username = fresh['path'] + '/invites', fresh['owner'], name('guest')
	doc = ok(owner.post(path, json={'username': username, 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': [
		{'groupId': fresh['a'], 'roles': ['GROUP_READ_ONLY', 'GROUP_OWNER']}]}))
	assert doc['orgId'] == fresh['id'] and doc['orgName'] == fresh['name'] and doc['username'] == username and ID.match(doc['id'])
	assert {x['groupRole'] for x in doc['groupRoleAssignments']} == {'GROUP_READ_ONLY', 'GROUP_OWNER'}
	assert links(doc)['self'] == server.base_url + BASE + path + '/' + doc['id']
	assert ok(owner.get(path + '/' + doc['id'])) == doc
	other = ok(owner.post(path, json={'username': name(), 'roles': ['ORG_OWNER']}))
	assert [x['id'] for x in ok(owner.get(path))] == [doc['id'], other['id']]
	assert [x['id'] for x in ok(owner.get(path, params={'username': username}))] == [doc['id']]
	assert ok(owner.get(path, params={'envelope': 'true'}))['content'][0]['id'] == doc['id']
	# The same is a pending user.
	user, = ok(owner.get(fresh['path'] + '/users', params={'username': username}))['results']
	assert user['orgMembershipStatus'] == 'PENDING' and user['roles']['orgRoles'] == ['ORG_MEMBER']
	changed = ok(owner.patch(path, json={'username': username, 'roles': ['ORG_READ_ONLY']}))
	assert changed['id'] == doc['id'] and changed['roles'] == ['ORG_READ_ONLY'] and len(changed['groupRoleAssignments']) == 2
	changed = ok(owner.patch(path + '/' + doc['id'], json={'groupRoleAssignments': []}))
	assert changed['groupRoleAssignments'] == [] and changed['roles'] == ['ORG_READ_ONLY']
	ok(owner.delete(path + '/' + doc['id']), 204)
	refused(owner.get(path + '/' + doc['id']), 404)
	refused(owner.get(fresh['path'] + '/users/' + user['id']), 404)
	assert {x['targetUsername'] for x in events(fresh, 'ORG_INVITATION_DELETED')} == {username}


def test_org_invite_refusals(server, fresh):
	path, owner = fresh['path'] + '/invites', fresh['owner']
	doc = ok(owner.post(path, json={'username': name(), 'roles': ['ORG_MEMBER']}))
	refused(owner.post(path, json={'roles': ['ORG_MEMBER']}), 400, None, 'username')
	refused(owner.post(path, json={'username': name()}), 400, None, 'roles')
	refused(owner.post(path, json={'username': name(), 'roles': ['KING']}), 400, None, 'roles[0]')
	refused(owner.post(path, json={'username': name(), 'roles': ['ORG_MEMBER'], 'groupRoleAssignments': [
		{'groupId': server.group, 'roles': ['GROUP_OWNER']}]}), 400, None, 'groupRoleAssignments[0].groupId')
	refused(owner.post(path, json={'username': name(), 'roles': ['ORG_MEMBER'], 'teamIds': ['x']}), 400, None, 'teamIds[0]')
	refused(owner.post(path, json={'username': doc['username'], 'roles': ['ORG_MEMBER']}), 409, 'USER_ALREADY_INVITED')
	refused(owner.patch(path, json={'roles': ['ORG_MEMBER']}), 400, None, 'username')
	refused(owner.patch(path, json={'username': name(), 'roles': ['ORG_MEMBER']}), 404)
	refused(owner.patch(path + '/' + doc['id'], json={'roles': []}), 400, None, 'roles')
	refused(owner.patch(path + '/' + doc['id'], json={'username': name()}), 400, None, 'username')
	refused(owner.patch(path + '/' + doc['id'], json={}, headers={'If-Match': '"77"'}), 412)
	for method in ('GET', 'DELETE'):
		refused(owner.request(method, path + '/' + NO_ID), 404)
		refused(fresh['member'].request(method, path + '/' + doc['id']), 403)
		refused(server.request(method, '/orgs/%s/invites/%s' % (server.org, doc['id'])), 404)
	refused(owner.patch(path + '/' + NO_ID, json={}), 404)
	refused(owner.delete(path + '/nothing'), 404)
	for call in (fresh['member'].get(path), fresh['member'].post(path, json={}), fresh['member'].patch(path, json={}),
		     fresh['member'].patch(path + '/' + doc['id'], json={})):
		refused(call, 403)


# The operations of projects.

def test_group_invites(server, fresh):
	path, owner, username = fresh['group'] + '/invites', fresh['groupOwner'], name('guest')
	doc = ok(owner.post(path, json={'username': username, 'roles': ['GROUP_READ_ONLY']}))
	assert doc['groupId'] == fresh['a'] and doc['groupName'] == 'a' and doc['roles'] == ['GROUP_READ_ONLY']
	assert links(doc)['self'] == server.base_url + BASE + path + '/' + doc['id']
	assert ok(owner.get(path + '/' + doc['id'])) == doc
	refused(owner.post(path, json={'username': username, 'roles': ['GROUP_READ_ONLY']}), 409, 'USER_ALREADY_IN_GROUP')
	assert ok(owner.patch(path, json={'username': username, 'roles': ['GROUP_OWNER']}))['roles'] == ['GROUP_OWNER']
	assert ok(owner.patch(path + '/' + doc['id'], json={'roles': ['GROUP_CLUSTER_MANAGER']}))['roles'] == ['GROUP_CLUSTER_MANAGER']
	user, = ok(owner.get(fresh['group'] + '/users'))['results']
	assert user['username'] == username and user['roles'] == ['GROUP_CLUSTER_MANAGER'] and user['orgMembershipStatus'] == 'PENDING'
	# A member of the organization is asked too, but is no user of the project before the answer.
	member = account(fresh['owner'], org_role(fresh))
	asked = ok(owner.post(path, json={'username': member['username'], 'roles': ['GROUP_OWNER']}))
	refused(owner.post(path, json={'username': member['username'], 'roles': ['GROUP_OWNER']}), 409)
	assert ok(owner.get(path + '/' + asked['id']))['username'] == member['username']
	assert ok(owner.patch(path, json={'username': member['username'], 'roles': ['GROUP_READ_ONLY']}))['id'] == asked['id']
	assert ok(owner.get(fresh['group'] + '/users'))['totalCount'] == 1
	assert [x['id'] for x in ok(owner.get(path))] == [doc['id'], asked['id']]
	assert [x['id'] for x in ok(owner.get(path, params={'username': member['username']}))] == [asked['id']]
	ok(owner.delete(path + '/' + doc['id']), 204)
	ok(owner.delete(path + '/' + asked['id']), 204)
	assert ok(owner.get(path)) == [] and ok(fresh['owner'].get(fresh['path'] + '/invites')) == []
	assert len(events(fresh, 'GROUP_INVITATION_DELETED', fresh['a'])) == 2


def test_group_invite_refusals(server, fresh):
	path, owner = fresh['group'] + '/invites', fresh['groupOwner']
	doc = ok(owner.post(path, json={'username': name(), 'roles': ['GROUP_READ_ONLY']}))
	refused(owner.post(path, json={'roles': ['GROUP_OWNER']}), 400, None, 'username')
	refused(owner.post(path, json={'username': name()}), 400, None, 'roles')
	refused(owner.post(path, json={'username': name(), 'roles': ['ORG_OWNER']}), 400, None, 'roles[0]')
	refused(owner.patch(path, json={'username': name(), 'roles': ['GROUP_OWNER']}), 404)
	refused(owner.patch(path, json={'roles': ['GROUP_OWNER']}), 400, None, 'username')
	refused(owner.patch(path + '/' + doc['id'], json={}), 400, None, 'roles')
	refused(owner.patch(path + '/' + NO_ID, json={'roles': ['GROUP_OWNER']}), 404)
	there = '/groups/%s/invites/%s' % (fresh['b'], doc['id'])
	for method in ('GET', 'DELETE'):
		refused(owner.request(method, path + '/' + NO_ID), 404)
		refused(fresh['owner'].request(method, there), 404)
		refused(fresh['manager'].request(method, path + '/' + doc['id']), 403)
	for call in (server.get(path), server.post(path, json={}), server.patch(path, json={}), server.post(fresh['group'] + '/access', json={})):
		refused(call, 401)
	refused(fresh['manager'].get(path), 403)


def test_add_group_user(server, fresh):
	path, owner, username = fresh['group'] + '/access', fresh['groupOwner'], name('guest')
	doc = ok(owner.post(path, json={'username': username, 'roles': ['GROUP_READ_ONLY']}))
	assert doc['orgId'] == fresh['id'] and doc['orgName'] == fresh['name'] and doc['roles'] == ['ORG_MEMBER']
	assert doc['groupRoleAssignments'] == [{'groupId': fresh['a'], 'groupRole': 'GROUP_READ_ONLY'}]
	member = account(fresh['owner'], org_role(fresh))
	assert owner.post(path, json={'username': member['username'], 'roles': ['GROUP_OWNER']}).status_code == 204
	assert ok(owner.get(fresh['group'] + '/users/' + member['id']))['roles'] == ['GROUP_OWNER']
	for taken in (username, member['username']):
		refused(owner.post(path, json={'username': taken, 'roles': ['GROUP_OWNER']}), 409, 'USER_ALREADY_IN_GROUP')
	refused(owner.post(path, json={'username': name(), 'roles': ['KING']}), 400, None, 'roles[0]')
	refused(owner.post(path, json={'roles': ['GROUP_OWNER']}), 400, None, 'username')


# Answers.

def test_accept(server, fresh):
	owner, guest = fresh['owner'], invite(fresh, roles=['ORG_READ_ONLY'], groups=[(fresh['a'], ['GROUP_OWNER'])])
	of = token(server, guest['username'])
	for path in ('/api/invitations/', '/invitations/'):
		shown = ok(server.anonymous.get(server.base_url + path + of))
		assert shown['username'] == guest['username'] and shown['orgName'] == fresh['name'] and shown['hasAccount'] is False
	done = ok(answer(server, guest['username']))
	assert done == {'userId': guest['id'], 'username': guest['username'], 'orgId': fresh['id']}
	user = ok(owner.get(fresh['path'] + '/users/' + guest['id']))
	assert user['orgMembershipStatus'] == 'ACTIVE' and user['firstName'] == 'Grace' and user['country'] == 'US'
	assert user['lastAuth'] >= user['createdAt']
	assert ok(owner.get(fresh['group'] + '/users/' + guest['id']))['lastAuth'] == user['lastAuth']
	assert user['roles'] == {'orgRoles': ['ORG_READ_ONLY'], 'groupRoleAssignments': [
		{'groupId': fresh['a'], 'groupRoles': ['GROUP_OWNER']}]}
	assert ok(owner.get(fresh['group'] + '/users/' + guest['id']))['orgMembershipStatus'] == 'ACTIVE'
	assert ok(owner.get('/users/byName/' + guest['username']))['id'] == guest['id']
	assert ok(owner.get(fresh['path'] + '/users'))['totalCount'] == 1 and ok(owner.get(fresh['path'] + '/invites')) == []
	joined, = events(fresh, 'JOINED_ORG')
	assert joined['username'] == joined['targetUsername'] == guest['username'] and joined['userId'] == guest['id']
	assert len(events(fresh, 'JOINED_GROUP', fresh['a'])) == 1
	for method in ('GET', 'POST', 'DELETE'):  # once
		refused(answer(server, None, method, of=of), 404, 'INVITATION_NOT_FOUND')


def test_accept_puts_into_teams(server, fresh):
	owner = fresh['owner']
	team = ok(owner.post(fresh['path'] + '/teams', json={'name': unique('team'), 'usernames': [
		account(owner, org_role(fresh))['username']]}))['id']
	guest = invite(fresh, teamIds=[team])
	assert guest['teamIds'] == [team]
	ok(answer(server, guest['username']))
	assert ok(owner.get(fresh['path'] + '/users/' + guest['id']))['teamIds'] == [team]
	assert guest['id'] in [x['id'] for x in ok(owner.get(fresh['path'] + '/teams/%s/users' % team))['results']]


def test_accept_refusals(server, fresh):
	guest = invite(fresh)
	of = token(server, guest['username'])
	for body, field in (({}, 'password'), ({**ACCEPT, 'password': '1234567'}, 'password'), ({**ACCEPT, 'password': 'x' * 257}, 'password'),
			    ({**ACCEPT, 'firstName': ' '}, 'firstName'), ({**ACCEPT, 'lastName': 7}, 'lastName'),
			    ({**ACCEPT, 'country': 'usa'}, 'country'), ({**ACCEPT, 'roles': []}, 'roles'), ({**ACCEPT, 'mobileNumber': '1'}, 'mobileNumber')):
		refused(answer(server, None, body=body, of=of), 400, None, field)
	for body in (b'', b'[]', b'{', b'null'):
		refused(server.anonymous.request('POST', '/api/invitations/' + of, data=body), 400)
	assert server.anonymous.request('PUT', '/api/invitations/' + of).headers['Allow'] == 'DELETE, GET, HEAD, POST'
	for bad in ('x', of[:-1], of + 'x', of[:-2] + ('AA' if of[-2:] != 'AA' else 'BB'), NO_ID + of[24:], '..%2f' + of):
		refused(answer(server, None, 'GET', of=bad), 404)
	ok(answer(server, guest['username']))
	with Wire(server) as w:
		got = [a.status for a in w.batch([('GET', '/api/invitations/x')] * 1001)]
	assert set(got) == {404, 429} and got[-1] == 429


def test_decline(server, fresh):
	guest = invite(fresh, groups=[(fresh['a'], ['GROUP_READ_ONLY'])])
	assert answer(server, guest['username'], 'DELETE').status_code == 204
	path = fresh['path'] + '/users'
	assert ok(fresh['owner'].get(path + '/' + guest['id']))['orgMembershipStatus'] == 'INVITATION_REJECTED'
	assert ok(fresh['owner'].get(fresh['group'] + '/users', params={'orgMembershipStatuses': 'INVITATION_REJECTED'}))['totalCount'] == 1
	assert ok(fresh['owner'].get(fresh['path'] + '/invites')) == [] and ok(fresh['owner'].get(fresh['group'] + '/invites')) == []
	refused(answer(server, guest['username']), 404)
	again = invite(fresh, guest['username'])
	assert again['id'] == guest['id'] and again['orgMembershipStatus'] == 'PENDING'
	ok(answer(server, guest['username']))


def test_existing_account(server, fresh):
	other, = server.seed({'name': unique('other'), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	owner = server.api_for(other['principals'][0])
	user = account(owner, {'orgId': other['id'], 'roleName': 'ORG_OWNER'})
	asked = invite(fresh, user['username'])
	assert asked['id'] == user['id'] and asked['orgMembershipStatus'] == 'PENDING'
	refused(fresh['owner'].get('/users/' + user['id']), 404)
	assert ok(answer(server, user['username'], 'GET', None))['hasAccount'] is True
	refused(answer(server, user['username'], body={'password': 'wrong password'}), 403, 'WRONG_PASSWORD', 'password')
	refused(answer(server, user['username']), 400, None, 'firstName')
	ok(answer(server, user['username'], body={'password': 'correct horse'}))
	mine = ok(fresh['owner'].get('/users/' + user['id']))
	assert mine['lastAuth'] >= user['lastAuth']
	assert mine['firstName'] == 'Ada' and mine['roles'] == [org_role(fresh)]  # not what it is elsewhere
	assert ok(owner.get('/users/' + user['id']))['roles'] == [{'orgId': other['id'], 'roleName': 'ORG_OWNER'}]


def test_project_invitation_of_a_member(server, fresh):
	member = account(fresh['owner'], org_role(fresh))
	path = fresh['group'] + '/invites'
	ok(fresh['groupOwner'].post(path, json={'username': member['username'], 'roles': ['GROUP_OWNER']}))
	shown = ok(answer(server, member['username'], 'GET', None))
	assert shown['groupId'] == fresh['a'] and shown['roles'] == ['GROUP_OWNER']
	assert ok(answer(server, member['username'], body={'password': 'correct horse'}))['groupId'] == fresh['a']
	assert ok(fresh['owner'].get(fresh['group'] + '/users/' + member['id']))['roles'] == ['GROUP_OWNER']
	# Out of the organization, an invitation is worth nothing.
	ok(fresh['owner'].post('/groups/%s/invites' % fresh['b'], json={'username': member['username'], 'roles': ['GROUP_OWNER']}))
	of = token(server, member['username'])
	ok(fresh['owner'].delete(fresh['path'] + '/users/' + member['id']), 204)
	refused(answer(server, member['username'], body={'password': 'correct horse'}, of=of), 404)
	assert ok(fresh['owner'].get('/groups/%s/invites' % fresh['b'])) == []


def test_same_person_in_two_organizations(server, fresh):
	username = name()
	other, = server.seed({'name': unique('other'), 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	there = server.api_for(other['principals'][0])
	first = invite(fresh, username)
	second = ok(there.post('/orgs/%s/users' % other['id'], json={'username': username, 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	assert first['id'] == second['id']
	ok(answer(server, username))  # the second: the newest in the log
	assert ok(there.get('/orgs/%s/users/%s' % (other['id'], first['id'])))['orgMembershipStatus'] == 'ACTIVE'
	assert ok(fresh['owner'].get(fresh['path'] + '/users/' + first['id']))['orgMembershipStatus'] == 'PENDING'
	# Made an account by the API, the person is in at once.
	third = invite(fresh)
	made = account(fresh['owner'], org_role(fresh, 'ORG_READ_ONLY'), username=third['username'])
	assert made['id'] == third['id']
	assert ok(fresh['owner'].get(fresh['path'] + '/users/' + third['id']))['roles']['orgRoles'] == ['ORG_READ_ONLY']
	assert [x['username'] for x in ok(fresh['owner'].get(fresh['path'] + '/invites'))] == [username]


def test_expiry_and_secrecy(start_server, tmp_path):
	s = start_server(record=tmp_path / 'exchanges')
	username = name()
	ok(s.post('/orgs/%s/users' % s.org, json={'username': username, 'roles': {'orgRoles': ['ORG_OWNER']}}), 201)
	of = token(s, username)
	ok(s.anonymous.get('/api/invitations/' + of))
	s.advance(30 * 86400 + 1)
	refused(s.anonymous.get('/api/invitations/' + of), 404)
	refused(s.anonymous.post('/api/invitations/' + of, json=ACCEPT), 404)
	s.stop()
	secret = of[24:]
	assert secret not in s.stderr and '/invitations/%s' % of[:24] not in s.stderr and '/api/invitations/(redacted)' in s.stderr
	assert secret not in (tmp_path / 'exchanges').read_text()
	assert secret.encode() not in b''.join(p.read_bytes() for p in s.data_dir.rglob('steward.db*'))


def test_the_operator_makes_a_link(server, fresh):
	"""Without a mail server: the log has the id alone, and each link ends the one before."""
	username = name()
	ok(fresh['owner'].post(fresh['path'] + '/users', json={'username': username, 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	first = token(server, username)
	again = cli('invitation-link', '--data', server.data_dir, first[:24]).stdout.strip()
	assert again.startswith(server.base_url + '/invitations/' + first[:24]) and not again.endswith(first)
	refused(server.anonymous.get('/api/invitations/' + first), 404)
	ok(server.anonymous.get('/api/invitations/' + again.rsplit('/', 1)[1]))
	for wrong in ('x', first[:23] + ('0' if first[23] != '0' else '1')):
		done = cli('invitation-link', '--data', server.data_dir, wrong, check=False)
		assert done.returncode == 1 and 'no invitation' in done.stderr


def test_idempotent_invitation_is_announced_once(server, fresh):
	username, key = name(), {'Idempotency-Key': unique()}
	body = {'username': username, 'roles': {'orgRoles': ['ORG_MEMBER']}}
	first, second = [ok(fresh['owner'].post(fresh['path'] + '/users', json=body, headers=key), 201) for _ in range(2)]
	assert first == second and server.stderr.count('invitation: %s may accept' % username) == 1


# Mail.

class Inbox:
	def __init__(self):
		self.letters = []

	async def handle_DATA(self, server, session, envelope):
		self.letters.append(envelope)
		return '250 kept'

	def wait(self):
		until(lambda: self.letters, what='a letter')
		return self.letters


def smtp(box, port):
	controller = Controller(box, hostname='127.0.0.1', port=port, ready_timeout=60)
	controller.start()
	return controller


@pytest.fixture
def inbox():
	box = Inbox()
	controller = smtp(box, free_port())
	box.url = 'smtp://127.0.0.1:%d' % controller.port
	yield box
	controller.stop()


def test_mail(start_server, inbox):
	s = start_server('--smtp-url', inbox.url, '--smtp-from', 'steward@example.com')
	username = name('guest')
	guest = ok(s.post('/orgs/%s/users' % s.org, json={'username': username, 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	envelope, = inbox.wait()
	assert envelope.mail_from == 'steward@example.com' and envelope.rcpt_tos == [username]
	letter = email.message_from_bytes(envelope.content)
	assert username in letter['To'] and 'steward@example.com' in letter['From'] and letter['Date'] and letter['Message-ID']
	assert letter.get_content_type() == 'text/plain' and letter['Subject'].isascii()
	text = letter.get_payload(decode=True).decode('utf-8')
	assert 'Organization0' in text and guest['inviterUsername'] in text
	path, of = LINK.search(text).groups()
	assert ok(s.anonymous.get(s.base_url + path))['username'] == username
	ok(s.anonymous.post('/api/invitations/' + of, json=ACCEPT))
	assert ok(s.get('/orgs/%s/users/%s' % (s.org, guest['id'])))['orgMembershipStatus'] == 'ACTIVE'
	until(lambda: 'mail: to %s: sent' % username in s.stderr)
	s.stop()
	assert of[24:] not in s.stderr


def test_no_mail_for_what_was_refused(start_server, inbox):
	s = start_server('--smtp-url', inbox.url, '--smtp-from', 'steward@example.com')
	body = {'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}}
	ok(s.post('/orgs/%s/users' % s.org, json=body), 201)
	refused(s.post('/orgs/%s/users' % s.org, json=body), 409)
	inbox.wait()
	until(lambda: ': sent' in s.stderr)
	s.stop()
	assert len(inbox.letters) == 1


def test_dead_mail_server(start_server):
	s = start_server('--smtp-url', 'smtp://127.0.0.1:%d' % free_port(), '--smtp-from', 'steward@example.com')
	doc = ok(s.post('/orgs/%s/users' % s.org, json={'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	assert doc['orgMembershipStatus'] == 'PENDING'
	until(lambda: 'trying again in 5 s' in s.stderr)
	s.stop()
	assert '/invitations/' not in s.stderr


def test_silent_mail_server(start_server):
	"""It takes the connection and says nothing: neither the call nor the end of the service waits for it."""
	with socket.socket() as deaf:
		deaf.bind(('127.0.0.1', 0))
		deaf.listen()
		s = start_server('--smtp-url', 'smtp://127.0.0.1:%d' % deaf.getsockname()[1], '--smtp-from', 'steward@example.com')
		started = time.monotonic()
		ok(s.post('/orgs/%s/users' % s.org, json={'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
		s.stop()
		assert time.monotonic() - started < 28, 'a letter has 30 s'


def test_mail_comes_when_the_server_is_back(start_server):
	port, box = free_port(), Inbox()
	s = start_server('--smtp-url', 'smtp://127.0.0.1:%d' % port, '--smtp-from', 'steward@example.com')
	ok(s.post('/orgs/%s/users' % s.org, json={'username': name(), 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	until(lambda: 'trying again' in s.stderr)
	controller = smtp(box, port)
	s.advance(5)
	try:
		box.wait()
	finally:
		controller.stop()


@pytest.mark.parametrize('args, word', [
	(['--smtp-url', 'http://x'], 'smtp-url'), (['--smtp-url', 'smtp://'], 'smtp-url'), (['--smtp-url', 'smtp://u:p@x'], 'smtp-url'),
	(['--smtp-url', 'smtp://x'], 'smtp-from'), (['--smtp-url', 'smtp://x', '--smtp-from', 'me'], 'smtp-from'),
	(['--smtp-from', 'me@example.com'], 'smtp-url'),
	(['--smtp-url', 'smtp://x', '--smtp-from', 'me@example.com', '--smtp-user', 'me'], 'smtp-password-file')])
def test_smtp_options(start_server, args, word):
	with pytest.raises(AssertionError) as e:
		start_server(*args)
	assert word in str(e.value)


# Addresses are proven.

@pytest.fixture
def stranger(server):
	"""Another tenant, who would like to be somebody else."""
	org, = server.seed({'name': unique('stranger'), 'projects': ['s'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	org['owner'], org['path'] = server.api_for(org['principals'][0]), '/orgs/' + org['id']
	return org


def test_a_stranger_does_not_choose_the_password(server, fresh, stranger):
	victim = name('victim')
	user = made(stranger['owner'], org_role(stranger, 'ORG_OWNER'), username=victim)
	theirs = token(server, victim)
	# It is nothing yet: no member, no owner, no account.
	member = ok(stranger['owner'].get(stranger['path'] + '/users/' + user['id']))
	assert member['orgMembershipStatus'] == 'PENDING'
	assert ok(stranger['owner'].get(stranger['path'] + '/users?orgMembershipStatus=ACTIVE'))['totalCount'] == 0
	# The victim's own organization invites: who has that link chooses, and the stranger's password is worth nothing.
	invite(fresh, victim, roles=['ORG_OWNER'])
	mine = token(server, victim)
	shown = ok(answer(server, victim, 'GET', None))
	assert not shown['hasAccount'] and not shown['hasPassword']
	ok(answer(server, victim, body={**ACCEPT, 'password': 'my own password'}))
	assert ok(fresh['owner'].get(fresh['path'] + '/users/' + user['id']))['firstName'] == 'Grace'
	# The other link now asks for the password of the account.
	refused(answer(server, None, of=theirs, body={'password': 'a stranger chose it'}), 403, 'WRONG_PASSWORD')
	refused(answer(server, None, of=theirs), 400, None, 'firstName')
	ok(answer(server, None, of=theirs, body={'password': 'my own password'}))
	assert mine != theirs


def test_an_account_of_an_older_version_is_its_owners(start_server):
	"""Made with a password by whoever, and never answered from its address."""
	s = start_server()
	username = name('old')
	user = account(s, {'orgId': s.org, 'roleName': 'ORG_MEMBER'}, username=username)
	ok(s.delete('/orgs/%s/users/%s' % (s.org, user['id'])), 204)
	s.stop()
	unsummed = '' if REMOTE else ', sum = NULL'
	execute(s.data_dir, "UPDATE doc SET body = replace(body, 'lastAuth', 'wasAuth')%s WHERE kind = 'user' AND id = '%s'" % (unsummed, user['id']))
	s = start_server(data_dir=s.data_dir)
	ok(s.post('/orgs/%s/users' % s.org, json={'username': username, 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	shown = ok(answer(s, username, 'GET', None))
	assert shown['hasAccount'] and not shown['hasPassword']
	ok(answer(s, username, body={'password': 'not the old one', 'firstName': 'Grace'}))
	got = ok(s.get('/users/' + user['id']))
	assert got['firstName'] == 'Grace' and got['lastName'] == 'Byron'


def same(first, second, *names):
	"""Two answers that differ in nothing but the names and the times."""
	texts = []
	for answer_, who in zip((first, second), names):
		assert answer_.status_code == first.status_code, answer_.text
		text = answer_.text.replace(who['id'], 'ID').replace(who['username'].split('@')[0], 'NAME')
		texts.append(re.sub(r'20\d\d-[^"]*Z|[0-9a-f]{24}', 'TIME', text))
	assert texts[0] == texts[1]


def test_strangers_do_not_learn_who_has_an_account(server, fresh, stranger):
	"""One address has an account elsewhere, the other is nobody's: every answer is the same."""
	known = account(fresh['owner'], org_role(fresh))
	nobody = {'username': name('nobody')}
	asks = stranger['owner']
	nobody['id'] = ok(asks.post(stranger['path'] + '/invites', json={'username': nobody['username'], 'roles': ['ORG_MEMBER']})) and \
			ok(asks.get(stranger['path'] + '/users', params={'username': nobody['username']}))['results'][0]['id']
	ok(asks.delete(stranger['path'] + '/users/' + nobody['id']), 204)
	who = known, nobody
	body = {'password': 'a stranger chose it', 'firstName': 'A', 'lastName': 'B', 'country': 'GB', 'mobileNumber': known['mobileNumber'],
		'roles': [org_role(stranger)]}
	group = '/groups/' + stranger['projects'][0]['id']
	calls = [lambda u: asks.get('/users/byName/' + u['username']), lambda u: asks.get('/users/' + u['id']),
		 lambda u: asks.get(stranger['path'] + '/users', params={'username': u['username']}),
		 lambda u: asks.post('/users', json={**body, 'username': u['username']}),
		 lambda u: asks.post('/users', json={**body, 'username': u['username']}),
		 lambda u: asks.get('/users/' + u['id']), lambda u: asks.get('/users/byName/' + u['username']),
		 lambda u: asks.get(stranger['path'] + '/users/' + u['id']),
		 lambda u: asks.post(group + '/users', json={'username': u['username'], 'roles': ['GROUP_READ_ONLY']}),
		 lambda u: asks.delete(stranger['path'] + '/users/' + u['id']),
		 lambda u: asks.post(stranger['path'] + '/users', json={'username': u['username'], 'roles': {'orgRoles': ['ORG_MEMBER']}}),
		 lambda u: asks.post(stranger['path'] + '/teams', json={'name': unique('t'), 'usernames': []}) and
			asks.post(stranger['path'] + '/invites', json={'username': u['username'], 'roles': ['ORG_MEMBER']}),
		 lambda u: asks.delete(stranger['path'] + '/users/' + u['id']),
		 lambda u: asks.post(group + '/invites', json={'username': u['username'], 'roles': ['GROUP_READ_ONLY']}),
		 lambda u: asks.post('/orgs', json={'name': 'given', 'orgOwnerId': u['id']}),
		 lambda u: asks.post('/groups?projectOwnerId=' + u['id'], json={'name': 'given', 'orgId': stranger['id']}),
		 lambda u: asks.get('/rateLimits?userId=' + u['id'])]
	for call in calls:
		same(*map(call, who), *who)


def test_made_users_are_seen_by_those_who_made_them(server, fresh, stranger):
	user = made(fresh['groupOwner'], group_role(fresh, 'GROUP_CLUSTER_MANAGER'))
	for api in (fresh['groupOwner'], fresh['owner']):
		assert ok(api.get('/users/' + user['id']))['username'] == user['username']
	refused(stranger['owner'].get('/users/' + user['id']), 404)
	refused(fresh['groupOwner'].post('/users', json={
		'username': user['username'], 'password': 'correct horse', 'firstName': 'A', 'lastName': 'B', 'country': 'GB',
		'mobileNumber': user['mobileNumber'], 'roles': [group_role(fresh)]}), 409, 'USER_ALREADY_EXISTS')
	ok(answer(server, user['username'], 'DELETE'), 204)
	refused(fresh['owner'].get('/users/' + user['id']), 404)
	# In two organizations at once: a link for each.
	both = account(fresh['owner'], org_role(fresh, 'ORG_READ_ONLY'), group_role(fresh), group_role(fresh, project='b'))
	assert both['roles'] == [org_role(fresh, 'ORG_READ_ONLY'), group_role(fresh), group_role(fresh, project='b')]


def test_passwords_are_guessed_slowly(server, fresh):
	"""Whoever has the link and guesses from one address does not keep the account's owner out at another."""
	user = account(fresh['owner'], org_role(fresh))
	ok(fresh['owner'].post(fresh['group'] + '/invites', json={'username': user['username'], 'roles': ['GROUP_READ_ONLY']}))
	path = '/api/invitations/' + token(server, user['username'])
	there = at(server, '127.0.0.3')
	got = [there.post(path, json={'password': 'wrong password'}).status_code for _ in range(21)]
	assert got == [403] * 20 + [429]
	refused(there.post(path, json={'password': 'correct horse'}), 429, 'TOO_MANY_FAILED_ATTEMPTS')
	ok(there.get(path))
	ok(server.anonymous.post(path, json={'password': 'correct horse'}))


def is_answered(wire):
	wire.socket.settimeout(0)
	try:
		wire._more()
	except ssl.SSLWantReadError:
		return False
	finally:
		wire.socket.settimeout(60)
	return True


def test_passwords_are_guessed_slowly_all_at_once_too(server, fresh):
	"""Hashing takes long: guesses that come together are counted before the first of them is found wrong."""
	with server.slow_passwords():
		user = account(fresh['owner'], org_role(fresh))
	ok(fresh['owner'].post(fresh['group'] + '/invites', json={'username': user['username'], 'roles': ['GROUP_READ_ONLY']}))
	path = '/api/invitations/' + token(server, user['username'])
	wires, there = [Wire(server) for _ in range(50)], at(server, '127.0.0.3')
	ok(there.get(path))  # it is connected, as they are
	for w in wires:
		w.socket.sendall(w.encode('POST', path, body={'password': 'wrong password'}))
	# Its owner, from elsewhere, does not wait for all of them.
	ok(there.post(path, json={'password': 'correct horse'}))
	assert sum(is_answered(w) for w in wires) < 45
	assert sorted(w.read().status for w in wires) == [403] * 20 + [429] * 30


def test_invitations_that_are_over_make_room(start_server):
	"""There are 500 at most, and nothing takes away those that have ended: whoever had invited so many people over the years could invite
	nobody any more, beside an empty list."""
	s = start_server()
	org = ok(s.post('/orgs', json={'name': unique('org')}), 201)['organization']['id']
	path = '/orgs/%s/invites' % org

	def invite(name):
		r = s.post(path, json={'username': name + '@example.com', 'roles': ['ORG_MEMBER']})
		if r.status_code != 429:
			return r
		s.refill()
		return invite(name)
	for i in range(500):
		ok(invite('guest%d' % i))
	refused(invite('late'), 409, 'TOO_MANY_INVITATIONS')
	s.advance(31 * 86400)
	assert ok(s.get(path)) == []
	ok(invite('late'))
	assert [i['username'] for i in ok(s.get(path))] == ['late@example.com']
	assert int(s.rows("SELECT count(*) FROM doc WHERE kind = 'invitation' AND parent = '%s'" % org)[0][0]) == 500
	s.stop()
