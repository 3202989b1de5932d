"""Roles at cloud providers: what the providers are really asked, what is refused and how that is mended, what uses a role; and
that no secret leaves. The providers are clouds.py, which verifies what it is sent."""
import json, pathlib, re, sys

import pytest

import client, clouds, conftest, derive, versions
from client import NO_ID, cli, jobs_done, leave, ok, pass_time, refused, unique
from test_backup_exports import begin, buckets, over
from test_backups import create, take

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import gcs_server, s3_server  # noqa: E402

TENANT, PRINCIPAL = '11111111-2222-4333-8444-555555555555', '66666666-7777-4888-8999-aaaaaaaaaaaa'
OTHER = 'bbbbbbbb-cccc-4ddd-8eee-ffffffffffff'
ACCOUNT = re.compile('^db-svc-[0-9a-z]{16}@p-[0-9a-z]{24}.iam.gserviceaccount.com$')


@pytest.fixture(scope='module')
def cloud():
	c = clouds.Clouds()
	yield c
	c.stop()
	assert not c.bad, c.bad


@pytest.fixture(scope='module')
def stores():
	s = s3_server.Running('--token', 'short-lived-session==')
	yield s
	s.stop()


@pytest.fixture(scope='module')
def google_stores():
	"""Takes tokens of the roles' accounts, and not the service's own."""
	s = s3_server.Running('--token', 'ya29.role-*', program=gcs_server.__file__)
	yield s
	s.stop()


@pytest.fixture(scope='module')
def roled(cloud, stores, google_stores, tmp_path_factory):
	"""A service that has identities at all three, and takes exports to tenants' own buckets alone."""
	s = client.Server('--log-level', 'debug', '--export-buckets', 'roles', '--s3-endpoint', stores.endpoint,
			  '--gcs-endpoint', google_stores.endpoint, '--azure-endpoint', 'http://127.0.0.1:9',
			  *cloud.options(tmp_path_factory.mktemp('keys')), record=client.EXCHANGES)
	s.versions = versions.Named(derive.Api())
	yield s
	conftest.end(s)


@pytest.fixture(autouse=True)
def calm(cloud, roled):
	roled.refill()
	cloud.faults.clear()
	cloud.claims.clear()
	cloud.lasts, cloud.secret = 3600, clouds.SECRET


@pytest.fixture
def group(roled):
	found = roled.project()['id']
	yield found
	leave(roled, found)


def access(group, role='', provider=''):
	return '/groups/%s/cloudProviderAccess%s%s' % (group, provider and '/' + provider, role and '/' + role)


def make(server, group, provider, **more):
	return ok(server.post(access(group), json={'providerName': provider, **more}))


def id_of(role):
	return role.get('roleId') or role['_id']


def arn(name=None):
	return 'arn:aws:iam::123456789012:role/%s' % (name or unique('r'))


def authorize(server, group, role, **more):
	return server.patch(access(group, id_of(role)), json={'providerName': role['providerName'], **more})


def assumable(server, cloud, group):
	"""A role at AWS that is authorized."""
	role, name = make(server, group, 'AWS'), arn()
	cloud.roles[name] = role['svcAssumedRoleExternalId']
	return ok(authorize(server, group, role, iamAssumedRoleArn=name))


def events(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events?itemsPerPage=500' % group))['results'] if 'PROVIDER_ACCESS' in e['eventTypeName']]


def removed(server, group, role):
	return server.delete(access(group, id_of(role), role['providerName']))


# AWS

def test_aws(roled, cloud, group):
	role = make(roled, group, 'AWS')
	assert role['svcAWSAccountArn'] == clouds.ARN and role['featureUsages'] == [] and 'authorizedDate' not in role
	assert 'iamAssumedRoleArn' not in role and role['svcAssumedRoleExternalId'] != make(roled, group, 'AWS')['svcAssumedRoleExternalId']
	assert not cloud.calls, 'nobody is asked yet'
	name = arn('path/of_a+role=1,2.x@y-z')
	cloud.roles[name] = role['svcAssumedRoleExternalId']
	done = ok(authorize(roled, group, role, iamAssumedRoleArn=name))
	assert done['iamAssumedRoleArn'] == name and done['authorizedDate'] and {**role, **done} == done
	sent = [c[2] for c in cloud.calls]
	assert len(sent) == 2 and 'DurationSeconds=3600' in sent[0] and 'ExternalId=' + role['svcAssumedRoleExternalId'] in sent[0]
	assert role['svcAssumedRoleExternalId'] not in sent[1], 'it is tried with another external id too'
	assert ok(roled.get(access(group, role['roleId']))) == done
	assert done in ok(roled.get(access(group)))['awsIamRoles'] and len(ok(roled.get(access(group)))['awsIamRoles']) == 2
	assert removed(roled, group, role).status_code == 204
	refused(roled.get(access(group, role['roleId'])), 404, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_FOUND')
	assert sorted(events(roled, group)) == ['CLOUD_PROVIDER_ACCESS_AWS_IAM_ROLE_%s' % x for x in ('ADDED', 'ADDED', 'DELETED', 'UPDATED')]


def test_aws_refuses(roled, cloud, group):
	"""A role that trusts another external id, or is not there: which call failed, and the policy that mends it."""
	role, name = make(roled, group, 'AWS'), arn()
	for trusted in (False, 'another-external-id'):
		if trusted:
			cloud.roles[name] = trusted
		why = refused(authorize(roled, group, role, iamAssumedRoleArn=name), 400, 'CLOUD_PROVIDER_ACCESS_REFUSED', 'iamAssumedRoleArn')['detail']
		assert 'sts:AssumeRole answered 403 AccessDenied' in why
		policy = json.loads(why[why.index('{'):why.rindex('}') + 1])
		statement, = policy['Statement']
		assert statement['Principal'] == {'AWS': clouds.ARN} and statement['Action'] == 'sts:AssumeRole'
		assert statement['Condition'] == {'StringEquals': {'sts:ExternalId': role['svcAssumedRoleExternalId']}}
	assert ok(roled.get(access(group, role['roleId']))) == role, 'nothing was stored'
	cloud.roles[name] = policy['Statement'][0]['Condition']['StringEquals']['sts:ExternalId']
	ok(authorize(roled, group, role, iamAssumedRoleArn=name))


def test_aws_role_without_external_id(roled, cloud, group):
	"""Whoever knows its name could use it."""
	role, name = make(roled, group, 'AWS'), arn()
	cloud.roles[name] = None
	why = refused(authorize(roled, group, role, iamAssumedRoleArn=name), 400, 'CLOUD_PROVIDER_ACCESS_REFUSED', 'iamAssumedRoleArn')['detail']
	assert 'another external id' in why and role['svcAssumedRoleExternalId'] in why
	assert 'authorizedDate' not in ok(roled.get(access(group, role['roleId'])))


@pytest.mark.parametrize('wrong', ['arn:aws:iam::123456789012:user/x-and-more', 'arn:aws:iam::12345:role/x-and-more',
	'https://169.254.169.254/latest/meta-data', 'arn:aws:s3:::bucket-and-more-of-it', 'arn:aws:iam::123456789012:role/',
	'arn:aws:iam::123456789012:role/x y', 'arn:aws:iam::123456789012:role/x&Action=y'])
def test_aws_arn(roled, cloud, group, wrong):
	role, before = make(roled, group, 'AWS'), len(cloud.calls)
	refused(authorize(roled, group, role, iamAssumedRoleArn=wrong), 400, 'VALIDATION_ERROR', 'iamAssumedRoleArn')
	assert len(cloud.calls) == before


def test_what_is_missing(roled, cloud, group):
	before = len(cloud.calls)
	refused(authorize(roled, group, make(roled, group, 'AWS')), 400, 'VALIDATION_ERROR', 'iamAssumedRoleArn')
	refused(authorize(roled, group, make(roled, group, 'AZURE')), 400, 'VALIDATION_ERROR', 'tenantId', 'servicePrincipalId')
	role = make(roled, group, 'AWS')
	refused(roled.patch(access(group, role['roleId']), json={'providerName': 'GCP'}), 400, 'VALIDATION_ERROR', 'providerName')
	refused(roled.patch(access(group, NO_ID), json={'providerName': 'AWS', 'iamAssumedRoleArn': arn()}), 404)
	refused(roled.post(access(group), json={'providerName': 'ORACLE'}), 400)
	refused(roled.get(access(NO_ID)), 404)
	assert len(cloud.calls) == before


@pytest.mark.parametrize('fault, words', [('huge', 'too long'), ('redirect', 'redirects are not followed'), ('html', 'without credentials'),
	('nothing', 'without credentials'), ('past', 'without credentials'), ('entity', 'without credentials')])
def test_lies(roled, cloud, group, fault, words):
	role, name = make(roled, group, 'AWS'), arn()
	cloud.roles[name] = role['svcAssumedRoleExternalId']
	cloud.faults[:] = [fault]
	assert words in refused(authorize(roled, group, role, iamAssumedRoleArn=name), 409, 'CLOUD_PROVIDER_UNAVAILABLE')['detail']
	assert not any('elsewhere' in path for _, path, _ in cloud.calls), 'no redirect is followed'
	assert ok(roled.get(access(group, role['roleId']))) == role
	ok(authorize(roled, group, role, iamAssumedRoleArn=name))


def test_throttled(roled, cloud, group):
	"""A little of it is waited for; much of it is told."""
	role, name = make(roled, group, 'AWS'), arn()
	cloud.roles[name] = role['svcAssumedRoleExternalId']
	cloud.faults[:] = ['throttle', 'cut', 'throttle']
	assert 'busy or away' in refused(authorize(roled, group, role, iamAssumedRoleArn=name), 409, 'CLOUD_PROVIDER_UNAVAILABLE')['detail']
	cloud.faults[:] = ['throttle', 'busy']
	ok(authorize(roled, group, role, iamAssumedRoleArn=name))


def test_hangs(roled, cloud, group):
	"""It is given up in time; others are served meanwhile."""
	role, name = make(roled, group, 'AWS'), arn()
	cloud.roles[name] = role['svcAssumedRoleExternalId']
	cloud.faults[:] = ['hang']
	assert 'no answer in time' in refused(authorize(roled, group, role, iamAssumedRoleArn=name), 409, 'CLOUD_PROVIDER_UNAVAILABLE')['detail']
	ok(authorize(roled, group, role, iamAssumedRoleArn=name))


def test_service_is_refused(roled, cloud, group):
	"""A wrong secret is the operator's matter: told so, and logged."""
	role, name = make(roled, group, 'AWS'), arn()
	cloud.roles[name] = role['svcAssumedRoleExternalId']
	cloud.secret = 'another one'
	why = refused(authorize(roled, group, role, iamAssumedRoleArn=name), 409, 'CLOUD_PROVIDER_REFUSES_SERVICE')['detail']
	assert 'SignatureDoesNotMatch' in why and 'operator' in why
	assert 'AWS refuses this service itself' in roled.stderr


def test_echoed_secret(roled, cloud, group):
	role = make(roled, group, 'AWS')
	cloud.faults[:] = ['echo']
	why = refused(authorize(roled, group, role, iamAssumedRoleArn=arn()), 400)['detail']
	assert why.startswith('iamAssumedRoleArn') and 'AccessDenied: you sent *****' in why and clouds.SECRET not in why


# Azure

def test_azure(roled, cloud, group):
	role = make(roled, group, 'AZURE', tenantId=TENANT, servicePrincipalId=PRINCIPAL, svcAzureAppId=clouds.APP)
	assert role['svcAzureAppId'] == clouds.APP and role['_id'] and role['lastUpdatedDate'] and 'roleId' not in role
	why = refused(authorize(roled, group, role), 400, 'CLOUD_PROVIDER_ACCESS_REFUSED', 'servicePrincipalId')['detail']
	assert 'AADSTS700016' in why and 'az ad sp create --id %s' % clouds.APP in why
	cloud.principals[TENANT] = OTHER
	assert 'another one' in refused(authorize(roled, group, role), 400, 'CLOUD_PROVIDER_ACCESS_REFUSED')['detail']
	cloud.principals[TENANT] = PRINCIPAL
	cloud.claims['tid'] = OTHER
	assert 'directory ' + OTHER in refused(authorize(roled, group, role), 400, 'CLOUD_PROVIDER_ACCESS_REFUSED')['detail']
	cloud.claims['tid'] = None
	assert 'whose it is' in refused(authorize(roled, group, role), 409, 'CLOUD_PROVIDER_UNAVAILABLE')['detail']
	cloud.claims.clear()
	cloud.odd = '\r\nX-Added: yes'
	try:
		assert 'without a token that holds' in refused(authorize(roled, group, role), 409, 'CLOUD_PROVIDER_UNAVAILABLE')['detail']
	finally:
		cloud.odd = ''
	done = ok(authorize(roled, group, role, tenantId=TENANT.upper(), servicePrincipalId=PRINCIPAL))
	assert done['_id'] == role['_id'] and 'authorizedDate' not in done
	assert ok(roled.get(access(group)))['azureServicePrincipals'] == [done]
	refused(roled.delete(access(group, done['_id'], 'AWS')), 404, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_FOUND')
	assert removed(roled, group, done).status_code == 204
	assert sorted(events(roled, group)) == ['CLOUD_PROVIDER_ACCESS_AZURE_SERVICE_PRINCIPAL_%s' % x for x in ('ADDED', 'DELETED', 'UPDATED')]


def test_azure_application_is_the_services(roled, group):
	refused(roled.post(access(group), json={'providerName': 'AZURE', 'svcAzureAppId': OTHER}), 400, 'VALIDATION_ERROR', 'svcAzureAppId')


def test_azure_principal_belongs_to_one_organization(roled, cloud, group):
	"""Nothing at Azure tells two users of the service apart."""
	mine = str(TENANT).replace('1', '2')
	cloud.principals[mine] = PRINCIPAL
	ok(authorize(roled, group, make(roled, group, 'AZURE', tenantId=mine, servicePrincipalId=PRINCIPAL)))
	org, = roled.seed({'name': unique('other'), 'projects': ['x'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	other, theirs = roled.api_for(org['principals'][0]), org['projects'][0]['id']
	role = make(other, theirs, 'AZURE', tenantId=mine.upper(), servicePrincipalId=PRINCIPAL)
	before = len(cloud.calls)
	refused(authorize(other, theirs, role), 409, 'CLOUD_PROVIDER_ACCESS_PRINCIPAL_TAKEN', 'servicePrincipalId')
	assert len(cloud.calls) == before
	again = roled.project()['id']
	ok(authorize(roled, again, make(roled, again, 'AZURE', tenantId=mine, servicePrincipalId=PRINCIPAL)))


# Google

def settled(server, group, role, status='COMPLETE'):
	return pass_time(server, lambda: (lambda doc: doc['status'] == status and doc)(ok(server.get(access(group, role['roleId'])))), step=30)


def test_google(roled, cloud, group):
	role, other = make(roled, group, 'GCP'), make(roled, group, 'GCP')
	name = role['gcpServiceAccountForSvc']
	assert ACCOUNT.match(name) and role['status'] == 'IN_PROGRESS' and name != other['gcpServiceAccountForSvc']
	done = settled(roled, group, role)
	assert done == {**role, 'status': 'COMPLETE'} and cloud.accounts[name] is True
	assert ok(authorize(roled, group, role)) == done and done in ok(roled.get(access(group)))['gcpServiceAccounts']
	assert any('generateAccessToken' in path and name in path for _, path, _ in cloud.calls)
	cloud.faults[:] = ['echo token']
	why = refused(authorize(roled, group, role), 409, 'CLOUD_PROVIDER_REFUSES_SERVICE')['detail']
	assert 'PERMISSION_DENIED: xxxx' in why and cloud.token[:8] not in why and cloud.token[:8] not in roled.stderr
	cloud.faults[:], before = ['quota'], len(cloud.calls)
	why = refused(authorize(roled, group, role), 409, 'CLOUD_PROVIDER_REFUSES_SERVICE')['detail']
	assert 'Maximum number of service accounts' in why and len(cloud.calls) == before + 1, 'waiting does not mend a quota'
	cloud.faults[:] = ['rate', 'rate']
	assert ok(authorize(roled, group, role)) == done
	cloud.accounts[name] = False
	why = refused(authorize(roled, group, role), 409, 'CLOUD_PROVIDER_REFUSES_SERVICE')['detail']
	assert 'generateAccessToken answered 403 PERMISSION_DENIED' in why and 'roles/iam.serviceAccountTokenCreator' in why
	assert removed(roled, group, role).status_code == 204
	pass_time(roled, lambda: name not in cloud.accounts)
	assert other['gcpServiceAccountForSvc'] in cloud.accounts
	settled(roled, group, other)
	assert roled.delete('/groups/' + group).status_code in (200, 202, 204)
	pass_time(roled, lambda: other['gcpServiceAccountForSvc'] not in cloud.accounts)


def test_google_fails(roled, cloud, group):
	"""What could not be made is told, and made when the role is authorized."""
	real, cloud.key = cloud.key, clouds.rsa.generate_private_key(public_exponent=65537, key_size=2048)
	cloud.token = None  # the service's own is taken back
	try:
		role = make(roled, group, 'GCP')
		settled(roled, group, role, 'FAILED')
		assert 'Invalid JWT Signature' in refused(authorize(roled, group, role), 409, 'CLOUD_PROVIDER_REFUSES_SERVICE')['detail']
	finally:
		cloud.key = real
	assert ok(authorize(roled, group, role))['status'] == 'COMPLETE' and role['gcpServiceAccountForSvc'] in cloud.accounts


# What uses roles

def test_export_bucket_by_role(roled, cloud, stores, group):
	"""The bucket is reached with the role's credentials, which are got anew before they end; its use keeps the role."""
	cloud.session = {'AccessKeyId': s3_server.KEY_ID, 'SecretAccessKey': s3_server.SECRET, 'SessionToken': 'short-lived-session=='}
	wanted = {'bucketName': s3_server.BUCKET, 'cloudProvider': 'AWS', 'iamRoleId': NO_ID}
	refused(roled.post(buckets(group), json=wanted), 400, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED', 'iamRoleId')
	role = make(roled, group, 'AWS')
	wanted['iamRoleId'] = role['roleId']
	refused(roled.post(buckets(group), json=wanted), 400, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED', 'iamRoleId')
	role = assumable(roled, cloud, group)
	wanted['iamRoleId'] = role['roleId']
	before = len(cloud.calls)
	bucket = ok(roled.post(buckets(group), json=wanted))
	assert len(cloud.calls) == before, 'what authorizing gave is kept'
	answer = roled.get(access(group, role['roleId']))
	used = ok(answer)
	assert used['featureUsages'] == [{'featureType': 'EXPORT_SNAPSHOT'}]
	assert answer.headers['X-Steward-Used-By'] == 'the export bucket "%s"' % s3_server.BUCKET
	assert used in ok(roled.get(access(group)))['awsIamRoles']
	why = refused(removed(roled, group, role), 409, 'CLOUD_PROVIDER_ACCESS_ROLE_IN_USE', role['roleId'])['detail']
	assert 'the export bucket "%s"' % s3_server.BUCKET in why
	cloud.lasts = 120  # ends too soon to be kept
	ok(authorize(roled, group, role))
	name = create(roled, group)
	snapshot = take(roled, group, name)['id']
	before = len(cloud.calls)
	done = over(roled, group, name, begin(roled, group, name, snapshot, bucket['_id'])['id'])
	assert done['state'] == 'Successful', done
	assert int(stores.say('objects')) > 0 and len(cloud.calls) > before + 3, 'got anew for each request'
	cloud.roles[role['iamAssumedRoleArn']] = 'somebody else'
	failed = over(roled, group, name, begin(roled, group, name, snapshot, bucket['_id'])['id'])
	assert failed['state'] == 'Failed' and 'sts:AssumeRole answered 403 AccessDenied' in failed['stateReason']['message'], failed
	assert roled.delete(buckets(group, bucket['_id'])).status_code == 204
	assert ok(roled.get(access(group, role['roleId'])))['featureUsages'] == []
	assert removed(roled, group, role).status_code == 204


def test_export_bucket_of_another_project(roled, cloud, group):
	"""A role is its project's alone."""
	role = assumable(roled, cloud, roled.project()['id'])
	refused(roled.post(buckets(group), json={'bucketName': s3_server.BUCKET, 'cloudProvider': 'AWS', 'iamRoleId': role['roleId']}), 400,
		'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED', 'iamRoleId')
	refused(roled.get(access(group, role['roleId'])), 404)
	refused(removed(roled, group, role), 404)


def test_export_bucket_at_google(roled, cloud, google_stores, group):
	"""By the token of the role's account. A wrong name and a missing right are told; a store that is away is waited for."""
	role = make(roled, group, 'GCP')
	wanted = {'bucketName': gcs_server.BUCKET, 'cloudProvider': 'GCP', 'roleId': role['roleId']}
	refused(roled.post(buckets(group), json={**wanted, 'roleId': NO_ID}), 400, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED', 'roleId')
	settled(roled, group, role)
	ok(authorize(roled, group, role))
	aws = assumable(roled, cloud, group)
	why = refused(roled.post(buckets(group), json={**wanted, 'roleId': aws['roleId']}), 400, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED')
	assert 'another provider' in why['detail']
	why = refused(roled.post(buckets(group), json={**wanted, 'bucketName': 'elsewhere'}), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')
	assert 'there is no bucket elsewhere' in why['detail']
	google_stores.say('fault POST say 1 403 forbidden x does not have storage.objects.create access to the bucket')
	why = refused(roled.post(buckets(group), json=wanted), 400, 'EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')['detail']
	assert 'storage.objects.create' in why and 'roles/storage.objectUser' in why
	bucket = ok(roled.post(buckets(group), json=wanted))
	assert ok(roled.get(access(group, role['roleId'])))['featureUsages'] == [{'featureType': 'EXPORT_SNAPSHOT'}]
	name = create(roled, group)
	snapshot = take(roled, group, name)['id']
	google_stores.say('fault POST status 100000 503')
	job = begin(roled, group, name, snapshot, bucket['_id'])
	pass_time(roled, lambda: 'export %s waits for its bucket' % job['id'] in roled.stderr, step=10)
	google_stores.say('clear')
	done = over(roled, group, name, job['id'])
	assert done['state'] == 'Successful', done
	assert int(google_stores.say('objects')) == 5 and google_stores.say('uploads') == '0'
	assert roled.delete(buckets(group, bucket['_id'])).status_code == 204


@pytest.mark.parametrize('url', ['http://account.blob.core.windows.net/', 'https://account.blob.core.windows.net.example.com',
	'https://127.0.0.1:9/account.blob.core.windows.net', 'https://a.b.blob.core.windows.net/container', 'https://user@account.blob.core.windows.net',
	'https://account.blob.core.windows.net/another-one', 'https://account.blob.core.windows.net:444/container'])
def test_export_bucket_at_azure_is_no_address(roled, cloud, group, url):
	"""Of a serviceUrl only the account's name is taken."""
	cloud.principals[TENANT] = PRINCIPAL
	role = ok(authorize(roled, group, make(roled, group, 'AZURE', tenantId=TENANT, servicePrincipalId=PRINCIPAL)))
	wanted = {'bucketName': 'container', 'cloudProvider': 'AZURE', 'roleId': role['_id'], 'serviceUrl': url}
	refused(roled.post(buckets(group), json=wanted), 400, 'VALIDATION_ERROR', 'serviceUrl')


def test_a_bucket_that_was_added_by_a_role(start_server, cloud, stores, tmp_path):
	"""Nobody has proved to own a directory of its name: where roles lead nowhere any more, nothing is written there."""
	cloud.session = {'AccessKeyId': s3_server.KEY_ID, 'SecretAccessKey': s3_server.SECRET, 'SessionToken': 'short-lived-session=='}
	first = start_server('--export-buckets', 'roles', '--s3-endpoint', stores.endpoint, *cloud.options(tmp_path))
	role, name = assumable(first, cloud, first.group), create(first, first.group)
	made = ok(first.post(buckets(first.group), json={'bucketName': s3_server.BUCKET, 'cloudProvider': 'AWS', 'iamRoleId': role['roleId']}))
	snapshot = take(first, first.group, name)['id']
	first.stop()
	again = start_server(*cloud.options(tmp_path), data_dir=first.data_dir, exports=True)
	done = over(again, again.group, name, begin(again, again.group, name, snapshot, made['_id'])['id'])
	assert done['state'] == 'Failed' and 'added by a role' in done['stateReason']['message']
	assert not (again.exports / s3_server.BUCKET).exists()
	assert again.delete(buckets(again.group, made['_id'])).status_code == 204


def test_operators_own_bucket(start_server, cloud, stores, tmp_path):
	"""Beside roles, the operator's key is used where a bucket names no role that the project has."""
	(tmp_path / 's3').write_text(s3_server.SECRET)
	server = start_server('--export-buckets', 's3://b', '--s3-endpoint', stores.endpoint, '--s3-key-id', s3_server.KEY_ID,
			      '--s3-secret-file', tmp_path / 's3', *cloud.options(tmp_path), env={'STEWARD_S3_TOKEN': 'short-lived-session=='})
	wanted, before = {'bucketName': s3_server.BUCKET, 'cloudProvider': 'AWS', 'iamRoleId': NO_ID}, len(cloud.calls)
	made = ok(server.post(buckets(server.group), json=wanted))
	assert len(cloud.calls) == before
	assert server.delete(buckets(server.group, made['_id'])).status_code == 204
	role = make(server, server.group, 'AWS')
	refused(server.post(buckets(server.group), json={**wanted, 'iamRoleId': role['roleId']}), 400, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED')


# The rest

def test_nothing_is_configured(server):
	"""The service of most tests has no identity anywhere."""
	refused(server.post(access(server.group), json={'providerName': 'AWS'}), 400, 'CLOUD_PROVIDER_NOT_CONFIGURED', 'providerName')
	assert ok(server.get(access(server.group))) == {'awsIamRoles': [], 'azureServicePrincipals': [], 'gcpServiceAccounts': []}


def test_identities_that_are_gone(start_server, cloud, tmp_path):
	"""A service that was started again without them: roles stay, and are deleted."""
	first = start_server(*cloud.options(tmp_path))
	role = assumable(first, cloud, first.group)
	google = make(first, first.group, 'GCP')
	settled(first, first.group, google)
	first.stop()
	again = start_server(data_dir=first.data_dir)
	refused(authorize(again, again.group, role), 400, 'CLOUD_PROVIDER_NOT_CONFIGURED', 'providerName')
	refused(authorize(again, again.group, google), 400, 'CLOUD_PROVIDER_NOT_CONFIGURED', 'providerName')
	for one in (role, google):
		assert removed(again, again.group, one).status_code == 204


def test_limit(roled, group):
	for _ in range(100):
		make(roled, group, 'AWS')
	refused(roled.post(access(group), json={'providerName': 'AWS'}), 400, 'TOO_MANY_CLOUD_PROVIDER_ACCESS_ROLES')


@pytest.mark.parametrize('args, words', [
	(['--provider-aws-arn', clouds.ARN], '--provider-aws-key-id'),
	(['--provider-aws-arn', clouds.ARN, '--provider-aws-key-id', 'x'], 'STEWARD_PROVIDER_AWS_SECRET'),
	(['--provider-aws-arn', 'x', '--provider-aws-key-id', 'x'], 'no ARN'),
	(['--provider-aws-arn', clouds.ARN, '--provider-aws-key-id', 'x', '--provider-aws-endpoint', 'http://sts.example.com'], 'this machine only'),
	(['--provider-aws-arn', clouds.ARN, '--provider-aws-key-id', 'x', '--provider-aws-endpoint', 'http://127.0.0.1.example.com'], 'this machine only'),
	(['--provider-azure-app-id', 'x'], 'UUID'),
	(['--provider-azure-app-id', clouds.APP], 'STEWARD_PROVIDER_AZURE_SECRET')])
def test_wrong_settings(tmp_path, args, words):
	done = cli('serve', '--data', tmp_path / 'data', '--listen', '127.0.0.1:0', '--clock', 'virtual', *args, check=False)
	assert done.returncode != 0 and words in done.stderr, done.stderr


@pytest.mark.parametrize('change, words', [({'project_id': 'my-project'}, 'project_id'), ({'private_key': 'x'}, 'no key'), ({'private_key': 'encrypted'}, 'not encrypted'), ({'token_uri': 'http://example.com/'}, 'token_uri')])
def test_wrong_key_file(cloud, tmp_path, change, words):
	if change == {'private_key': 'encrypted'}:
		change = {'private_key': cloud.key.private_bytes(clouds.serialization.Encoding.PEM, clouds.serialization.PrivateFormat.PKCS8,
			clouds.serialization.BestAvailableEncryption(b'secret')).decode()}
	done = cli('serve', '--data', tmp_path / 'data', '--listen', '127.0.0.1:0', '--clock', 'virtual', '--provider-google-key-file',
		   cloud.key_file(tmp_path, **change), check=False)
	assert done.returncode != 0 and words in done.stderr, done.stderr


def test_no_secret_is_left(roled, cloud, group):
	"""Runs after the others: in log, recording, events and store."""
	assumable(roled, cloud, group)
	jobs_done(roled)
	kept = ''.join(json.dumps(row, default=str) for table in ('doc', 'event', 'job') for row in roled.rows('SELECT * FROM %s' % table))
	for place, text in (('log', roled.stderr), ('recording', client.EXCHANGES.read_text()), ('store', kept)):
		for secret in cloud.secrets():
			assert secret not in text and json.dumps(secret)[1:-1] not in text, '%s: %s' % (place, secret[:12])
