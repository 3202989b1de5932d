"""Exports arrive whole, byte for byte, in S3, in azurite and in a directory, with the service killed twenty times meanwhile and the
store away for a while. S3's server and azurite verify each signature: a wrong secret is refused, and told. S3 is Debian's Swift where
that is installed (`script/test swift` does it), else the tests' own server. STEWARD_KILLS: of each, instead."""
import gzip, hashlib, json, os

import pytest

import azurite, client, clouds, s3_server, swift_server
from client import NO_ID, ok, pass_time, refused, until
from test_backup_exports import begin, buckets, exports, over
from test_backups import create, take

KILLS = {'s3': 7, 'swift': 7, 'azure': 7, 'directory': 6}
WAITS, WRONG = 'waits for its bucket', 'd3Jvbmcgc2VjcmV0'
TENANT, PRINCIPAL = '11111111-2222-4333-8444-555555555555', '66666666-7777-4888-8999-aaaaaaaaaaaa'


class S3:
	"""Where exports go: the options of the service, how many writes have come, and what is there in the end."""
	bucket = {'bucketName': s3_server.BUCKET, 'cloudProvider': 'AWS', 'iamRoleId': NO_ID}
	refusal = 'SignatureDoesNotMatch'

	def __init__(self, folder):
		self.server, self.folder = s3_server.Running(), folder

	def options(self, secret=s3_server.SECRET):
		(self.folder / 'secret').write_text(secret)
		return ['--export-buckets', 's3://b', '--s3-endpoint', self.server.endpoint, '--s3-key-id', s3_server.KEY_ID,
			'--s3-secret-file', self.folder / 'secret']

	def writes(self):
		return int(self.server.say('count PUT'))

	def away(self, is_away):
		self.server.say('fault * drop 1000000' if is_away else 'clear')

	def objects(self):
		names = self.server.say('names').split()
		return {name: bytes.fromhex(self.server.say('get ' + name)) for name in names}

	def stop(self):
		self.server.stop()


class Swift(S3):
	def __init__(self, folder):
		self.server, self.folder = s3_server.Running(program=swift_server.__file__), folder

	def options(self, secret=swift_server.SECRET):
		return [swift_server.KEY_ID if o == s3_server.KEY_ID else o for o in super().options(secret)]


class Azure(S3):
	bucket = {'bucketName': 'bucket', 'cloudProvider': 'AZURE', 'roleId': NO_ID, 'serviceUrl': 'https://stewardtest.blob.core.windows.net'}
	refusal = "the account's key"

	def __init__(self, folder):
		self.server, self.folder = s3_server.Running(program=azurite.__file__), folder
		if self.server.endpoint.endswith(':none'):
			self.stop()
			pytest.skip('azurite is not installed: script/bootstrap --test does it')

	def options(self, secret=azurite.KEY):
		(self.folder / 'key').write_text(secret)
		return ['--export-buckets', 'azure://b', '--azure-endpoint', self.server.endpoint, '--azure-account', azurite.ACCOUNT,
			'--azure-key-file', self.folder / 'key']

	def objects(self):
		names = self.server.say('names bucket').split()
		return {name: bytes.fromhex(self.server.say('get bucket/' + name).replace('-', '')) for name in names}


class Directory:
	bucket = {'bucketName': 'bucket', 'cloudProvider': 'AWS', 'iamRoleId': NO_ID}
	refusal = None

	def __init__(self, folder):
		self.place, self.seen = folder / 'exports', set()

	def options(self):
		return ['--export-buckets', self.place]

	def files(self):
		return [f for f in (self.place / 'bucket').rglob('*') if f.is_file() and '~put' not in f.parts]

	def writes(self):
		self.seen |= {(f, f.stat().st_mtime_ns) for f in self.files()}
		return len(self.seen)

	def away(self, is_away):
		here, elsewhere = self.place / 'bucket', self.place / 'elsewhere'
		if is_away:
			here.rename(elsewhere)
			here.write_text('in the way')
		else:
			here.unlink()
			elsewhere.rename(here)

	def objects(self):
		return {str(f.relative_to(self.place / 'bucket')): f.read_bytes() for f in self.files()}

	def stop(self):
		pass


def whole(objects, prefix):
	"""The export below the prefix is complete: each object is what the manifest says, byte for byte."""
	found = {name[len(prefix):]: data for name, data in objects.items() if ('/' + name).startswith(prefix + '/')}
	assert found['.complete'].decode() == hashlib.sha256(found['manifest.json']).hexdigest()
	manifest = json.loads(found['manifest.json'])
	assert {t['object'] for t in manifest['tables']} | {'.complete', 'manifest.json', 'metadata.json'} == set(found)
	for table in manifest['tables']:
		stored = found[table['object']]
		rows = gzip.decompress(stored)
		assert hashlib.sha256(stored).hexdigest() == table['sha256'] and len(stored) == table['storedBytes']
		assert len(rows) == table['bytes'] and len(rows.splitlines()) == table['rows'] == 2
	assert len(manifest['tables']) == 2
	return found


@pytest.fixture
def start():
	made = []

	def run(*args, **kw):
		made.append(client.Server(*args, **kw))
		return made[-1]
	yield run
	for s in made:
		s.kill()


@pytest.mark.parametrize('kind', [Swift if swift_server.is_installed() else S3, Azure, Directory])
def test_exports_arrive_whole(start, kind, tmp_path):
	place = kind(tmp_path)
	try:
		if place.refusal:
			wrong_secret(start, place)
		run_exports(start, place, int(os.environ.get('STEWARD_KILLS') or KILLS[kind.__name__.lower()]))
	finally:
		place.stop()


def wrong_secret(start, place):
	server = start(*place.options(WRONG))
	why = refused(server.post(buckets(server.group), json=place.bucket), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')
	assert place.refusal in why['detail'] and WRONG not in why['detail'] + server.stderr
	server.stop()


def run_exports(start, place, kills):
	server = start(*place.options())
	group, data_dir = server.group, server.data_dir
	name = create(server, group)
	snapshot, to = take(server, group, name)['id'], ok(server.post(buckets(group), json=place.bucket))
	jobs = []

	def state(job):
		return ok(server.get(exports(group, name, job['id'])))['state']

	def one():
		"""An export that is not over."""
		if not jobs or state(jobs[-1]) in ('Successful', 'Failed'):
			jobs.append(begin(server, group, name, snapshot, to['_id']))
		return jobs[-1]

	def killed():
		nonlocal server
		server.kill()
		server = start(*place.options(), data_dir=data_dir)
	for run in range(kills):  # an export is five objects: each has its turn to be the last before the end
		job, before = one(), place.writes()
		pass_time(server, lambda: place.writes() >= before + run % 5 or state(job) == 'Successful', step=1)
		killed()
	over(server, group, name, one()['id'])
	place.away(True)
	job = one()
	pass_time(server, lambda: WAITS in server.stderr, step=1)
	killed()
	server.advance(7200)
	until(lambda: WAITS in server.stderr, what='another look at the bucket')
	assert state(job) == 'InProgress'
	place.away(False)
	done = [over(server, group, name, j['id']) for j in jobs]
	assert all(d['state'] == 'Successful' for d in done), done
	found = place.objects()
	for d in done:
		whole(found, d['prefix'])
	assert sum(n.endswith('/.complete') for n in found) == len(jobs)
	server.stop()


def test_a_role_at_azure(start, tmp_path):
	"""Over TLS, by the token of the role's service principal, whose audience azurite checks."""
	store, cloud = s3_server.Running('--tls', tmp_path, program=azurite.__file__), clouds.Clouds()
	try:
		if store.endpoint.endswith(':none'):
			pytest.skip('azurite is not installed: script/bootstrap --test does it')
		server = start('--export-buckets', 'roles', '--azure-endpoint', store.endpoint, '--azure-ca-file', tmp_path / 'ca.crt',
			       *cloud.options(tmp_path))
		cloud.principals[TENANT] = PRINCIPAL
		where = '/groups/%s/cloudProviderAccess' % server.group
		role = ok(server.post(where, json={'providerName': 'AZURE', 'tenantId': TENANT, 'servicePrincipalId': PRINCIPAL}))
		wanted = {**Azure.bucket, 'roleId': role['_id']}
		refused(server.post(buckets(server.group), json=wanted), 400, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED', 'roleId')
		ok(server.patch(where + '/' + role['_id'], json={'providerName': 'AZURE', 'tenantId': TENANT, 'servicePrincipalId': PRINCIPAL}))
		why = refused(server.post(buckets(server.group), json={**wanted, 'bucketName': 'no-such-one'}), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE')
		assert 'there is no bucket no-such-one' in why['detail']
		to = ok(server.post(buckets(server.group), json=wanted))
		name = create(server, server.group)
		done = over(server, server.group, name, begin(server, server.group, name, take(server, server.group, name)['id'], to['_id'])['id'])
		assert done['state'] == 'Successful', done
		names = store.say('names bucket').split()
		whole({n: bytes.fromhex(store.say('get bucket/' + n).replace('-', '')) for n in names}, done['prefix'])
		server.stop()
	finally:
		store.stop()
		cloud.stop()
