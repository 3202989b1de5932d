"""Encryption at rest on real databases: files that nobody reads without the project's key, through kills of the service, rotations and
a key that is taken back; and what is said where the file system cannot do it."""
import base64, contextlib, errno, gzip, json, os, pathlib, random, struct, subprocess, threading

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

import databases
from client import ok, refused
from databases import allow, shape, until, working_in
from ledger import job_over, leads_to, moment, restored, take

pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')
MARK = 'what nobody reads on the disk'
RESTORE = pathlib.Path(__file__).parents[1] / 'backup/restore_without_steward.py'


@pytest.fixture
def keys(tmp_path):
	for name in ('one', 'two'):
		path = tmp_path / ('%s.key' % name)
		path.write_bytes(os.urandom(32))
		path.chmod(0o600)
	return tmp_path


def settings(server):
	return '/groups/%s/encryptionAtRest' % server.group


def name_key(server, name):
	return server.patch(settings(server), json={'awsKms': {
		'enabled': True, 'customerMasterKeyID': 'local/' + name, 'region': 'US_EAST_1'}})


def files(c):
	"""How many files of the cluster open, and how many do not for want of a key."""
	opened = locked = 0
	nodes = [path for path in (c.site.data / 'engine' / c.id).iterdir() if path.is_dir()]
	for folder, _, names in (found for node in nodes for found in os.walk(node)):  # which may go, or get other names, meanwhile
		for name in names:
			try:
				os.close(os.open(os.path.join(folder, name), os.O_RDONLY))
				opened += 1
			except OSError as e:
				assert e.errno in (errno.ENOKEY, errno.ENOENT), e
				locked += e.errno == errno.ENOKEY
	return opened, locked


def shut(c):
	opened, locked = files(c)
	return not working_in(c.site.data / 'engine' / c.id) and not opened and locked > 500


def facts(c):
	return files(c), working_in(c.site.data / 'engine' / c.id), c.state(), c.book(), c.server.stderr[-2000:]


def bring(c, snapshot):
	return ok(c.server.post(c.path + '/backup/restoreJobs', json={
		'targetClusterName': c.name, 'targetGroupId': c.server.group, 'deliveryType': 'automated', 'snapshotId': snapshot}))


def rows(c):
	return c.ask("select count(*) from t where x like '%s%%'" % MARK)[0][0]


def rotate_killed(s, dice, names):
	"""The key is another one, and the service is killed meanwhile."""
	answers = []

	def ask():
		try:
			answers.append(name_key(s.server, dice.choice(names)).status_code)
		except OSError:
			pass
	asking = threading.Thread(target=ask)
	asking.start()
	asking.join(dice.random() * 0.06)
	s.kill()
	asking.join()
	s.start()


def unwrap(wrapped, key, group):
	"""The data key, by what its key service would do with it."""
	text = wrapped['wraps'][0]['wrapped']
	data = base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))
	return AESGCM(key.read_bytes()).decrypt(data[:12], data[12:], group.encode())


def without_steward(s, c, shot, key, target):
	"""The store is lost: backups, secret.key and the key service are enough, and none of them alone."""
	words = ['/usr/bin/python3', RESTORE, '--secret', s.data / 'secret.key', '--repository', s.data / 'backups']
	place = ['US_EAST_1', s.server.group]
	run = lambda *more: subprocess.run([str(w) for w in (*words, *more)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
	refusal = run(*place, c.id, shot, '0', target)
	assert refusal.returncode == 1 and 'needs the data key' in refusal.stderr, refusal
	wrapped, = until(lambda: [found for found in json.loads(run('--keys', *place).stdout)
				  if found['wraps'][0]['key'] == 'local/' + key.stem], 60, 'the key as it was wrapped last')
	assert wrapped['id'] in refusal.stderr
	plain = key.with_name('data')
	plain.write_bytes(unwrap(wrapped, key, s.server.group))
	done = run('--project-key', plain, *place, c.id, shot, '0', target)
	assert done.returncode == 0, done
	assert subprocess.run(['grep', '-rqa', MARK, str(target)]).returncode == 0


def exported(s, c, shot, key):
	"""What lies in the bucket is read by who has the key, by docs/exports.md."""
	bucket = ok(s.server.post('/groups/%s/backup/exportBuckets' % s.server.group, json={
		'bucketName': 'exports', 'cloudProvider': 'AWS', 'iamRoleId': 'a' * 24}))['_id']
	job = ok(s.server.post(c.path + '/backup/exports', json={'snapshotId': shot, 'exportBucketId': bucket}))['id']
	done = until(lambda: (lambda d: d['state'] in ('Successful', 'Failed') and d)(
		ok(s.server.get('%s/backup/exports/%s' % (c.path, job)))), 120, 'the export')
	assert done['state'] == 'Successful', (done, s.server.stderr[-3000:])
	manifest, = (key.parent / 'buckets').glob('**/manifest.json')
	doc = json.loads(manifest.read_text())
	table, = [t for t in doc['tables'] if t['table'] == 't']
	assert table['object'].endswith('.json.gz.sealed') and doc['encryption']['format'] == 'SWX1'
	data = (manifest.parent / table['object']).read_bytes()
	derive = lambda key, salt, info: HKDF(hashes.SHA256(), 32, salt, info).derive(key)
	plain = unwrap(doc['encryption']['key'], key, doc['encryption']['groupId'])
	cipher = AESGCM(derive(derive(plain, doc['encryption']['groupId'].encode(), b'exports'), data[8:24], b'object'))
	assert data[:8] == b'SWX1' + struct.pack('<I', 65536) and data[24:36].hex() == doc['encryption']['keyId']
	starts = range(48, len(data), 65552)
	packed = b''.join(cipher.decrypt(struct.pack('<IB7x', n, at + 65552 >= len(data)), data[at:at + 65552], data[:48])
			  for n, at in enumerate(starts))
	rows = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
	assert len(rows) == table['rows'] == 5000 and all(row['x'].startswith(MARK) for row in rows)


def test_a_file_system_without_encryption_is_told(site, keys):
	s = site('--keys-local', keys)
	s.start()
	answer = name_key(s.server, 'one')
	if answer.status_code == 200:
		pytest.skip('the file system has encryption')
	doc = refused(answer, 400, 'ENCRYPTION_AT_REST_NOT_SUPPORTED')
	assert 'mkfs.ext4 -O encrypt' in doc['detail'] and 'tune2fs -O encrypt' in doc['detail'], doc
	refused(s.server.post('/groups/%s/clusters' % s.server.group, json={
		'name': 'vault', 'encryptionAtRestProvider': 'AWS', **shape(1)}), 400)


def test_files_are_nobodys_without_the_key(site, keys):
	dice = random.Random(os.environ.get('STEWARD_SEED'))
	s = site('--keys-local', keys, '--export-buckets', keys / 'buckets')
	if not s.encrypting(1400):  # of which exports leave 512 free
		pytest.skip('no file system with encryption can be made here')
	allow(s.start())
	ok(name_key(s.server, 'one'))
	c = s.cluster('vault', encryptionAtRestProvider='AWS', backupEnabled=True, pitEnabled=True, **shape(1)).settled()
	c.ask("create table t as select i, '%s ' || i x from generate_series(1, 5000) i" % MARK)
	shot = take(c)['id']
	subprocess.run(['sync', '-f', str(s.data / 'engine')], check=True)
	for place in (s.root / 'disk', s.data / 'backups'):
		assert subprocess.run(['grep', '-rqa', MARK, str(place)]).returncode == 1, place

	# Rotations, and a service that is killed in the middle of them: nothing is lost.
	for _ in range(5):
		rotate_killed(s, dice, ('one', 'two'))
		assert rows(c) == 5000
	ok(name_key(s.server, 'two'))
	(keys / 'one.key').rename(keys / 'one.kept')  # nothing needs it any more
	c.ask('drop table t')
	restored(c, bring(c, shot), c)
	assert rows(c) == 5000
	exported(s, c, shot, keys / 'two.key')
	without_steward(s, c, shot, keys / 'two.key', s.root / 'back')

	# The key is taken back: the servers stop, and nobody reads their files; also not a service that starts anew.
	held = keys / 'two.key'
	held.rename(keys / 'two.kept')
	refused(s.server.patch(settings(s.server), json={'awsKms': {}}), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')
	until(lambda: shut(c), 120, 'the end of the servers')
	assert not ok(s.server.get(settings(s.server)))['awsKms']['valid']
	s.kill()
	s.start()
	until(lambda: shut(c), 60, 'the end of what was cut short')
	refusal = s.server.post(c.path + '/backup/restoreJobs', json={
		'targetClusterName': c.name, 'targetGroupId': s.server.group, 'deliveryType': 'automated', 'snapshotId': shot})
	assert refusal.status_code >= 400 or job_over(c, refusal.json()).get('failed'), refusal.text
	assert shut(c), facts(c)

	# And it is back.
	(keys / 'two.kept').rename(held)
	ok(s.server.patch(settings(s.server), json={'awsKms': {}}))
	c.settled()
	until(lambda: c.writable(), 120, 'the cluster')
	assert rows(c) == 5000
	at = moment()
	c.ask('create table later(n int)')
	until(lambda: leads_to(c, at), 120, 'the log')

	# The machine starts anew: no server runs, and the kernel has no key.
	s.kill()
	for pid in working_in(s.root):
		with contextlib.suppress(ProcessLookupError):
			os.kill(pid, 9)
	until(lambda: not working_in(s.root), 60, 'the end of the servers')
	s.remount()
	assert shut(c), facts(c)
	s.start()
	until(lambda: c.writable(), 120, 'the cluster')
	assert rows(c) == 5000
	c.delete()
	c.deleted()
