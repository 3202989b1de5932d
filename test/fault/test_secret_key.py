"""The service's key is rotated beside a running service, killed in between, and the old one is retired."""
import contextlib, json, shutil

import pytest
from requests.auth import HTTPDigestAuth

import client
from client import REMOTE, Api, cli, ok, until
from nodes import Caller, Nodes


def status(data, *more):
	return cli('secret-key', 'status', '--data', data, *more).stdout


def older(text):
	return int(text.split('with an older one: ')[1].split(',')[0])


def retire(data, *more):
	return cli('secret-key', 'retire', '--data', data, *more, check=False)


def as_key(s, key):
	return Api(s, HTTPDigestAuth(key['publicKey'], key['privateKey']))


@pytest.mark.skipif(REMOTE, reason='its own stores')
def test_rotation(start_server, tmp_path):
	data = tmp_path / 'data'
	start = lambda: start_server(data_dir=data, clock='real', control=False)
	s = start()
	ok(s.post('/groups', json={'name': 'kept', 'orgId': s.org}, headers={'Idempotency-Key': 'k'}))
	group = ok(s.get('/groups'))['results'][0]['id']
	keys = [ok(s.post('/orgs/%s/apiKeys' % s.org, json={'desc': 'k%d' % i, 'roles': ['ORG_MEMBER']})) for i in range(40)]
	invited = ok(s.post('/orgs/%s/users' % s.org, json={'username': 'a@example.com', 'roles': {'orgRoles': ['ORG_MEMBER']}}), 201)
	etag = s.get('/orgs/%s/apiKeys/%s' % (s.org, keys[0]['id'])).headers.get('ETag')
	first = (data / 'secret.key').read_bytes()
	assert len(first) == 32 and 'in use' in status(data) and older(status(data)) == 0
	assert 'one key' in retire(data).stderr

	# Killed right after the file was written: the next start goes on.
	s.kill()
	cli('secret-key', 'rotate', '--data', data)
	both = (data / 'secret.key').read_bytes()
	assert len(both) == 64 and both[32:] == first and (data / 'secret.key').stat().st_mode & 0o777 == 0o600
	assert not list(data.glob('secret.key.*'))
	assert older(status(data)) >= 40 and 'not in use yet' in status(data)
	assert 'rotation before is not over' in cli('secret-key', 'rotate', '--data', data, check=False).stderr

	# Killed again and again while it seals anew: everything opens, whoever sealed it.
	for _ in range(3):
		s = start()
		until(lambda: 'new, not in use yet' not in status(data), 30)
		s.kill()
	s = start()
	ok(s.get('/groups'))
	until(lambda: older(status(data)) == 0, 60)
	until(lambda: 'signed' not in status(data), 60)
	for k in (keys[0], keys[-1]):
		assert as_key(s, k).get('/orgs/' + s.org).status_code == 200
	assert s.get('/orgs/%s/apiKeys/%s' % (s.org, keys[0]['id'])).headers.get('ETag') == etag
	again = s.post('/groups', json={'name': 'kept', 'orgId': s.org}, headers={'Idempotency-Key': 'k'})
	assert again.headers.get('Idempotency-Replayed') == 'true', again.text
	assert 'clean' in cli('check', '--data', data).stdout

	# The old one stays as long as something may need it.
	assert 'repository rewrap' in retire(data).stderr
	assert 'elsewhere' in cli('repository', 'rewrap', '--data', data, '--backups', tmp_path / 'other', check=False).stderr
	cli('repository', 'rewrap', '--data', data)
	assert 'last day' in retire(data).stderr and (data / 'secret.key').read_bytes() == both
	s.stop()
	client.execute(data, "UPDATE meta SET value = '1' WHERE key = 'secret_key_since'")
	s = start()
	cli('secret-key', 'retire', '--data', data)
	assert (data / 'secret.key').read_bytes() == both[:32]
	until(lambda: 'key' in status(data) and s.get('/groups').status_code == 200, 10)
	ok(s.post('/orgs/%s/apiKeys' % s.org, json={'desc': 'after', 'roles': ['ORG_MEMBER']}))
	s.kill()
	s = start()
	assert as_key(s, keys[1]).get('/orgs/' + s.org).status_code == 200
	# Who was invited before has the id that the invitation shows.
	other = ok(s.post('/groups/%s/users' % group, json={'username': 'a@example.com', 'roles': ['GROUP_READ_ONLY']}), 201)
	assert other['id'] == invited['id']
	s.stop()
	assert 'clean' in cli('check', '--data', data).stdout
	(data / 'secret.key').write_bytes(first)
	assert 'is not the key of this store' in cli('serve', '--data', data, '--listen', '127.0.0.1:0', check=False).stderr


@pytest.mark.filterwarnings('ignore:Unverified HTTPS request')
@pytest.mark.skipif(not shutil.which('haproxy'), reason='haproxy is not installed')
def test_nodes():
	"""Two hosts on one store: the new key waits for the host that does not have it, and nobody's call fails."""
	with contextlib.closing(Nodes(2)) as n:
		n.start()
		url, data = n.url_of(0), [n.home / 'n0', n.home / 'n1']
		state = lambda: status(data[0], '--store', url)

		def both_work():
			for i in (0, 1):
				made = n.caller(i).post('/orgs/%s/apiKeys' % n.org, json={'desc': 'made', 'roles': ['ORG_MEMBER']})
				assert made.status_code == 200, made.text
				other = Caller('https://' + n.addresses[1 - i], n.token(1 - i))
				assert other.get('/orgs/%s/apiKeys/%s' % (n.org, made.json()['id'])).status_code == 200

		both_work()
		names = [h['name'] for h in json.loads(cli('hosts', 'list', '-o', 'json', '--store', url, '--data', data[0]).stdout)]
		cli('secret-key', 'rotate', '--data', data[0], '--store', url)
		until(lambda: 'these hosts do not have it: ' in state() and state().count(names[0]) != state().count(names[1]), 30)
		both_work()
		assert 'do not have it' in retire(data[0], '--store', url).stderr
		shutil.copy(data[0] / 'secret.key', data[1] / 'draft')
		(data[1] / 'draft').rename(data[1] / 'secret.key')
		until(lambda: 'new, not in use yet' not in state(), 30)
		both_work()
		n.nodes[0].kill()  # another seals the rest
		until(lambda: older(state()) == 0, 60)
		n.start_node(0)
		both_work()
		until(lambda: 'signed' not in state() and older(state()) == 0, 60)
		# Without the new key a host is refused, and says what to do.
		n.nodes[1].kill()
		(data[1] / 'secret.key').write_bytes((data[0] / 'secret.key').read_bytes()[32:])
		refused = cli('serve', '--data', data[1], '--store', url, '--listen', '127.0.0.1:0', check=False)
		assert 'is not the key of this store' in refused.stderr and 'another node' in refused.stderr
