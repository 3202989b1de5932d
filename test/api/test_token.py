"""Encryption at rest by a key on the operator's PKCS #11 token. The token is SoftHSM's; what it has encrypted is decrypted by another
library here. How failures of modules are met is told by test/unit/keys/test_token.c."""
import base64, hashlib, hmac, os, pathlib, shutil, subprocess

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import client, conftest, derive, versions
from client import cli, jobs_done, leave, ok, pass_time, refused, until
from test_encryption_at_rest import OFF, QUARTER, cluster, data_key, events, get, patch, reaches

MODULE = '/usr/lib/softhsm/libsofthsm2.so'
PIN = 'not-the-pin-you-think'


class Token:
	def __init__(self, folder):
		self.folder, self.tokens, self.pin_file = folder, folder / 'tokens', folder / 'pin'
		self.tokens.mkdir()
		(folder / 'conf').write_text('directories.tokendir = %s\nobjectstore.backend = file\nlog.level = ERROR\n' % self.tokens)
		self.env = {'SOFTHSM2_CONF': str(folder / 'conf')}
		self.pin_file.write_text(PIN + '\n')
		self.run('softhsm2-util', '--init-token', '--free', '--label', 'steward', '--so-pin', '12345678', '--pin', PIN)
		self.value = os.urandom(32)
		self.write('main', self.value)
		self.tool('--keygen', '--key-type', 'AES:32', '--label', 'next', '--sensitive')
		self.options = ['--keys-pkcs11-module', MODULE, '--keys-pkcs11-token', 'steward', '--keys-pkcs11-key', 'main', '--keys-pkcs11-key', 'next',
			'--keys-pkcs11-key', 'gone', '--keys-pkcs11-pin-file', self.pin_file]

	def run(self, *command):
		subprocess.run(command, check=True, capture_output=True, env={**os.environ, **self.env}, timeout=120)

	def tool(self, *args):
		self.run('pkcs11-tool', '--module', MODULE, '--token-label', 'steward', '--login', '--pin', PIN, *args)

	def write(self, label, value):
		file = self.folder / 'value'
		file.write_bytes(value)
		self.tool('--write-object', str(file), '--type', 'secrkey', '--key-type', 'AES:32', '--label', label, '--sensitive')

	def delete(self, label):
		self.tool('--delete-object', '--type', 'secrkey', '--label', label)

	def take_away(self):
		token, = self.tokens.iterdir()
		return token, token.rename(self.folder / 'away')


@pytest.fixture(scope='module')
def token(tmp_path_factory):
	for what in (MODULE, shutil.which('softhsm2-util'), shutil.which('pkcs11-tool'), pathlib.Path(client.binary()).parent / 'steward-token'):
		if not what or not os.path.exists(what):
			pytest.skip('SoftHSM, OpenSC or steward-token is missing')
	return Token(tmp_path_factory.mktemp('token'))


@pytest.fixture(scope='module')
def held(token):
	s = client.Server('--log-level', 'debug', *token.options, env=token.env, record=client.EXCHANGES)
	s.versions = versions.Named(derive.Api())
	yield s
	conftest.end(s)


@pytest.fixture
def group(held):
	held.refill()
	found = held.project()['id']
	yield found
	leave(held, found)


def named(label='main'):
	return {'awsKms': {'enabled': True, 'customerMasterKeyID': 'pkcs11/' + label, 'region': 'EU_CENTRAL_1'}}


def opened(token, server, group):
	"""The data key, by another program than the token's."""
	wrapped = base64.urlsafe_b64decode(data_key(server, group)['wraps'][0]['wrapped'] + '==')
	return AESGCM(token.value).decrypt(wrapped[:12], wrapped[12:], group.encode())


def test_wraps_and_rotates(token, held, group):
	refused(patch(held, group, named('other')), 400, 'VALIDATION_ERROR', 'awsKms.customerMasterKeyID')
	assert 'no AES key gone' in refused(patch(held, group, named('gone')), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED', 'awsKms')['detail']
	assert get(held, group)['awsKms'] == OFF
	assert ok(patch(held, group, named()))['awsKms']['valid'] is True
	before = data_key(held, group)
	plain = opened(token, held, group)
	assert hmac.new(plain, b'steward data key 1', hashlib.sha256).hexdigest() == before['proof']
	ok(patch(held, group, named('next')))
	after = data_key(held, group)
	assert after['proof'] == before['proof'] and after['wraps'][0]['wrapped'] != before['wraps'][0]['wrapped']
	assert 'AWS_ENCRYPTION_KEY_ROTATED' in events(held, group)
	ok(patch(held, group, named()))
	assert opened(token, held, group) == plain


def test_key_deleted_and_replaced(token, held, group):
	"""The token says no at once; with the key's return all is as it was."""
	ok(patch(held, group, named()))
	name = cluster(held, group, encryptionAtRestProvider='AWS')
	reaches(held, group, name, 'IDLE')
	token.delete('main')
	pass_time(held, lambda: get(held, group)['awsKms']['valid'] is False, step=QUARTER)
	reaches(held, group, name, 'REPAIRING')
	token.write('main', os.urandom(32))
	assert 'Give it back first' in refused(patch(held, group, {'awsKms': {}}), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')['detail']
	jobs_done(held, 60)  # that PATCH has asked for a check
	token.delete('main')
	token.write('main', token.value)
	pass_time(held, lambda: get(held, group)['awsKms']['valid'] is True, step=QUARTER)
	reaches(held, group, name, 'IDLE')
	assert 'KMS_NETWORK_ACCESS' not in ' '.join(events(held, group))


def test_token_away_and_wrong_pin(token, held, group):
	"""A token that is pulled out is a service that is away. It comes back with another PIN, which is tried once and told, not shown."""
	ok(patch(held, group, named()))
	place, away = token.take_away()
	try:
		assert 'it is not there' in refused(patch(held, group, {'awsKms': {}}), 409, 'KEY_SERVICE_UNAVAILABLE', 'awsKms')['detail']
		assert get(held, group)['awsKms']['valid'] is True
		token.pin_file.write_text('a-wrong-pin')
		pass_time(held, lambda: get(held, group)['awsKms']['valid'] is False, step=QUARTER)
		away.rename(place)
		refused(patch(held, group, {'awsKms': {}}), 409, 'CLOUD_PROVIDER_REFUSES_SERVICE', 'awsKms')
		assert 'not tried again' in refused(patch(held, group, {'awsKms': {}}), 409, 'CLOUD_PROVIDER_REFUSES_SERVICE')['detail']
	finally:
		if away.exists():
			away.rename(place)
		token.pin_file.write_text(PIN + '\n')
	pass_time(held, lambda: get(held, group)['awsKms']['valid'] is True, step=QUARTER)
	assert [e for e in events(held, group) if 'KMS' in e] == ['ENCRYPTION_AT_REST_KMS_NETWORK_ACCESS_%s' % x for x in ('DENIED', 'RESTORED')]
	kept = str([held.rows('SELECT * FROM %s' % table) for table in ('doc', 'event', 'job')])
	for text in (held.stderr, client.EXCHANGES.read_text(), kept):
		assert PIN not in text and 'a-wrong-pin' not in text


def helpers(server):
	"""Those that the service has started."""
	found = []
	for task in pathlib.Path('/proc/%d/task' % server.pid).iterdir():
		for pid in (task / 'children').read_text().split():
			if pathlib.Path('/proc/%s/comm' % pid).read_text() == 'steward-token\n':
				found.append(int(pid))
	return found


def ended(pid):
	try:
		return pathlib.Path('/proc/%d/stat' % pid).read_text().rsplit(')', 1)[1].split()[0] == 'Z'  # nobody may have waited for it
	except (FileNotFoundError, ProcessLookupError):
		return True


def test_killed(token, start_server):
	"""What is stored and the token are enough; the PIN may come by the environment. The module's process ends with the service."""
	first = start_server(*token.options, env=token.env)
	ok(patch(first, first.group, named()))
	plain, (helper,) = opened(token, first, first.group), helpers(first)
	first.kill()
	until(lambda: ended(helper), what='the end of the module')
	again = start_server(*token.options[:-2], env={**token.env, 'STEWARD_KEYS_PKCS11_PIN': PIN}, data_dir=first.data_dir)
	assert ok(patch(again, again.group, {'awsKms': {}}))['awsKms']['valid'] is True
	assert opened(token, again, again.group) == plain
	helper, = helpers(again)
	assert PIN.encode() not in pathlib.Path('/proc/%d/cmdline' % helper).read_bytes()
	again.stop()
	bare = start_server(data_dir=first.data_dir)
	assert '--keys-pkcs11-module' in refused(patch(bare, bare.group, {'awsKms': {}}), 400, 'VALIDATION_ERROR', 'awsKms.customerMasterKeyID')['detail']


@pytest.mark.parametrize('change, words', [({1: '/nowhere.so'}, '/nowhere.so'), ({1: '/etc/passwd'}, '--keys-pkcs11-module: /etc/passwd'),
	({5: 'a/b'}, '"a/b" must be'), ({-2: '--keys-pkcs11-key', -1: 'more'}, 'PIN is missing')])
def test_wrong_settings(token, tmp_path, change, words):
	options = list(token.options)
	for at, value in change.items():
		options[at] = value
	done = cli('serve', '--data', tmp_path / 'data', '--listen', '127.0.0.1:0', '--clock', 'virtual', *options, check=False)
	assert done.returncode != 0 and words in done.stderr, done.stderr
