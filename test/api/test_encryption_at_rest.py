"""Encryption at rest: what key services are really asked, what is refused and how that is mended, rotation, keys that are taken back
and given back, clusters, private endpoints; and that neither a secret nor a plain key leaves. The services are key_services.py,
which verifies what it is sent."""
import concurrent.futures, json, os, re

import pytest, requests

import client, clouds, conftest, derive, key_services, test_backups as backups, versions
from client import NO_ID, cli, jobs_done, leave, ok, pass_time, refused, unique, until
from key_services import ACCESS_KEY, ACCESS_SECRET, CLIENT, CLIENT_SECRET, RING, TENANT, arn, vault
from test_backups import spec
from test_provider_access import assumable, authorize, make, removed, settled

QUARTER = 901
OFF = {'enabled': False, 'valid': False}


@pytest.fixture(scope='module')
def services():
	s = key_services.KeyServices()
	yield s
	s.stop()
	assert not s.bad, s.bad


@pytest.fixture(scope='module')
def keyed(services, tmp_path_factory):
	folder = tmp_path_factory.mktemp('keys')
	s = client.Server('--log-level', 'debug', '--keys-local', folder, *services.options(folder), record=client.EXCHANGES)
	s.versions, s.keys = versions.Named(derive.Api()), folder
	yield s
	conftest.end(s)


@pytest.fixture(autouse=True)
def calm(services, keyed):
	keyed.refill()
	services.faults.clear()
	services.lies, services.secret = False, clouds.SECRET
	services.enable(arn('one'), arn('two'), vault('a1'), vault('a2'), RING + '1', RING + '2')


@pytest.fixture
def group(keyed):
	found = keyed.project()['id']
	yield found
	leave(keyed, found)


def path(group, below=''):
	return '/groups/%s/encryptionAtRest%s' % (group, below)


def aws(name='one', **more):
	return {'awsKms': {'enabled': True, 'customerMasterKeyID': arn(name), 'region': 'EU_CENTRAL_1', 'accessKeyID': ACCESS_KEY,
		'secretAccessKey': ACCESS_SECRET, **more}}


def azure(version='a1', **more):
	return {'azureKeyVault': {'enabled': True, 'azureEnvironment': 'AZURE', 'clientID': CLIENT, 'tenantID': TENANT, 'secret': CLIENT_SECRET,
		'keyIdentifier': vault(version), 'keyVaultName': 'their-vault', 'resourceGroupName': 'g', 'subscriptionID': TENANT, **more}}


def google(services, version='1', **more):
	return {'googleCloudKms': {'enabled': True, 'keyVersionResourceID': RING + version, 'serviceAccountKey': services.account(), **more}}


def patch(server, group, body):
	return server.patch(path(group), json=body)


def get(server, group):
	return ok(server.get(path(group)))


def events(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events?itemsPerPage=500' % group))['results'] if 'ENCRYPTION' in e['eventTypeName']][::-1]


def data_key(server, group):
	"""As it is stored: its body, in the only document of the project."""
	row, = server.rows("SELECT body FROM doc WHERE kind = 'data_key' AND parent = '%s'" % group)
	return json.loads(row[0])


def cluster(server, group, **more):
	name = unique('e')
	ok(server.post('/groups/%s/clusters' % group, json={'name': name, 'clusterType': 'REPLICASET', 'replicationSpecs': spec(1), **more}), 201)
	return name


def state(server, group, name):
	return ok(server.get('/groups/%s/clusters/%s' % (group, name)))['stateName']


def reaches(server, group, name, wanted):
	return pass_time(server, lambda: state(server, group, name) == wanted)


def test_before_anything_is_set(keyed, group):
	assert get(keyed, group) == {'awsKms': OFF, 'azureKeyVault': OFF, 'googleCloudKms': OFF, 'enabledForSearchNodes': False}
	refused(keyed.get(path(NO_ID)), 404)
	done = ok(patch(keyed, group, {'enabledForSearchNodes': True}))
	assert done['enabledForSearchNodes'] is True and done['awsKms'] == OFF
	assert not keyed.rows("SELECT * FROM doc WHERE kind = 'data_key' AND parent = '%s'" % group), 'no key before one is needed'


def test_aws(keyed, services, group):
	"""The key wraps and unwraps before anything is stored; the project's id is the context; secrets stay here."""
	before = len(services.targets)
	done = ok(patch(keyed, group, aws()))['awsKms']
	assert done == {'accessKeyID': ACCESS_KEY, 'customerMasterKeyID': arn('one'), 'enabled': True, 'region': 'EU_CENTRAL_1', 'valid': True}
	assert services.targets[before:] == [('TrentService.%s' % w, arn('one'), {'steward:project': group}) for w in ('Encrypt', 'Decrypt')]
	assert get(keyed, group)['awsKms'] == done
	key = data_key(keyed, group)
	assert len(key['wraps']) == 1 and key['wraps'][0]['provider'] == 'AWS' and ACCESS_SECRET not in json.dumps(key)
	assert events(keyed, group) == ['ENCRYPTION_AT_REST_CONFIGURATION_UPDATED']
	off = ok(patch(keyed, group, {'awsKms': {'enabled': False}}))['awsKms']
	assert off == {**done, 'enabled': False, 'valid': False}
	ok(patch(keyed, group, {'awsKms': {'enabled': True}}))
	assert data_key(keyed, group)['id'] == key['id'], 'the data key lasts, and its secret is still known'


def test_aws_by_role(keyed, services, group):
	role = assumable(keyed, services, group)
	done = ok(patch(keyed, group, {'awsKms': {'enabled': True, 'customerMasterKeyID': arn('one'), 'region': 'EU_CENTRAL_1', 'roleId': role['roleId']}}))
	assert done['awsKms']['valid'] is True and 'roleId' not in done['awsKms'], 'the reference never shows it'
	used = keyed.get('/groups/%s/cloudProviderAccess/%s' % (group, role['roleId']))
	assert ok(used)['featureUsages'] == [{'featureType': 'ENCRYPTION_AT_REST'}] and 'encryption at rest (awsKms)' in used.headers['X-Steward-Used-By']
	assert 'encryption at rest' in refused(removed(keyed, group, role), 409, 'CLOUD_PROVIDER_ACCESS_ROLE_IN_USE')['detail']
	ok(patch(keyed, group, {'awsKms': {'enabled': False}}))
	assert removed(keyed, group, role).status_code == 204


def test_azure(keyed, services, group):
	done = ok(patch(keyed, group, azure()))['azureKeyVault']
	assert done['valid'] is True and 'secret' not in done and done['clientID'] == CLIENT
	principal = '77777777-7777-4888-8999-aaaaaaaaaaaa'
	services.principals[TENANT] = principal
	role = make(keyed, group, 'AZURE', tenantId=TENANT, servicePrincipalId=principal)
	refused(patch(keyed, group, {'azureKeyVault': {'roleId': role['_id']}}), 400, 'VALIDATION_ERROR', 'azureKeyVault.roleId')
	ok(authorize(keyed, group, role))
	done = ok(patch(keyed, group, {'azureKeyVault': {'roleId': role['_id']}}))['azureKeyVault']
	assert done['roleId'] == role['_id'] and 'clientID' not in done and done['valid'] is True


def test_google(keyed, services, group):
	done = ok(patch(keyed, group, google(services)))['googleCloudKms']
	assert done == {'enabled': True, 'keyVersionResourceID': RING + '1', 'valid': True}
	assert not any('elsewhere' in p for _, p, _ in services.calls), "where tokens come from is not the tenant's to say"
	role = make(keyed, group, 'GCP')
	settled(keyed, group, role)
	done = ok(patch(keyed, group, {'googleCloudKms': {'roleId': role['roleId']}}))['googleCloudKms']
	assert done['roleId'] == role['roleId'] and done['valid'] is True


@pytest.mark.parametrize('body, field', [
	({'awsKms': {'enabled': True}}, 'awsKms.customerMasterKeyID'),
	(aws(region='GLOBAL'), 'awsKms.region'),
	({'awsKms': {'enabled': True, 'customerMasterKeyID': 'k', 'region': 'EU_CENTRAL_1'}}, 'awsKms.roleId'),
	(aws(roleId=NO_ID), 'awsKms.roleId'),
	(azure(keyIdentifier='https://their-vault.vault.azure.net.example.com/keys/rest/a1'), 'azureKeyVault.keyIdentifier'),
	(azure(keyIdentifier='https://another.vault.azure.net/keys/rest/a1'), 'azureKeyVault.keyIdentifier'),
	(azure(keyVaultName='x/../y'), 'azureKeyVault.keyVaultName'),
	({'googleCloudKms': {'enabled': True, 'keyVersionResourceID': RING + '1', 'serviceAccountKey': '{}'}}, 'googleCloudKms.serviceAccountKey'),
	({'googleCloudKms': {'enabled': True, 'keyVersionResourceID': 'projects/../x', 'serviceAccountKey': '{}'}}, 'googleCloudKms.keyVersionResourceID'),
	({'googleCloudKms': {'enabled': True, 'keyVersionResourceID': 'projects/../locations/../keyRings/../cryptoKeys/../cryptoKeyVersions/1', 'serviceAccountKey': '{}'}},
		'googleCloudKms.keyVersionResourceID'),
	({'awsKms': {'enabled': True, 'customerMasterKeyID': 'local/../x', 'region': 'EU_CENTRAL_1'}}, 'awsKms.customerMasterKeyID')])
def test_what_is_missing_or_wrong(keyed, services, group, body, field):
	before = len(services.calls)
	refused(patch(keyed, group, body), 400, 'VALIDATION_ERROR', field)
	assert len(services.calls) == before and get(keyed, group)['awsKms'] == OFF


def test_refused_by_the_service(keyed, services, group):
	"""Which call failed, what the service said, and the policy that mends it. Nothing is stored."""
	services.disable(arn('one'), vault('a1'), RING + '1')
	why = refused(patch(keyed, group, aws()), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED', 'awsKms')['detail']
	assert 'kms:Encrypt answered 400 DisabledException' in why and '"kms:Decrypt"' in why and arn('one') in why
	why = refused(patch(keyed, group, azure()), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED', 'azureKeyVault')['detail']
	assert 'wrapkey answered 403 Forbidden' in why and 'az role assignment create' in why and CLIENT in why
	why = refused(patch(keyed, group, google(services)), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED', 'googleCloudKms')['detail']
	assert 'encrypt answered 400 FAILED_PRECONDITION' in why and 'cryptoKeyEncrypterDecrypter' in why
	assert 'InvalidSignature' in refused(patch(keyed, group, aws('two', secretAccessKey='wrong')), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')['detail']
	assert 'AADSTS7000215' in refused(patch(keyed, group, azure('a2', secret='wrong')), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')['detail']
	other = json.dumps({**json.loads(services.account()), 'private_key_id': 'k2'})
	assert 'Invalid JWT' in refused(patch(keyed, group, google(services, '2', serviceAccountKey=other)), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')['detail']
	assert get(keyed, group) == {'awsKms': OFF, 'azureKeyVault': OFF, 'googleCloudKms': OFF, 'enabledForSearchNodes': False}


@pytest.mark.parametrize('fault, status, words', [('html', 409, 'no answer of KMS'), ('huge', 409, 'too long'), ('redirect', 409, 'redirects are not followed'),
	('short', 400, None), ('kms late', 409, 'Signature expired'), ('kms echo', 400, 'AccessDeniedException: you sent ****')])
def test_lies(keyed, services, group, fault, status, words):
	services.faults[:] = [fault]
	why = refused(patch(keyed, group, aws()), status)['detail']
	assert (not words or words in why) and ACCESS_SECRET not in why and not any(p in why for p in services.plain)
	assert get(keyed, group)['awsKms'] == OFF


def test_gives_back_another_key(keyed, services, group):
	services.lies = True
	for body in (aws(), azure(), google(services)):
		assert 'another key than it was given' in refused(patch(keyed, group, body), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')['detail']


def test_throttled_and_hanging(keyed, services, group):
	services.faults[:] = ['kms throttle', 'cut', 'kms throttle']
	assert 'busy or away' in refused(patch(keyed, group, aws()), 409, 'KEY_SERVICE_UNAVAILABLE', 'awsKms')['detail']
	services.faults[:] = ['kms throttle', 'kms throttle']
	assert ok(patch(keyed, group, aws()))['awsKms']['valid'] is True
	services.faults[:] = ['hang']
	assert 'no answer in time' in refused(patch(keyed, group, aws()), 409, 'KEY_SERVICE_UNAVAILABLE')['detail']
	assert get(keyed, group)['awsKms']['valid'] is True, 'nothing was changed'


def test_rotation(keyed, services, group):
	"""Another key, another version, another provider: the data key is wrapped anew and stays what it is."""
	ok(patch(keyed, group, aws()))
	first = data_key(keyed, group)
	ok(patch(keyed, group, {'awsKms': {'customerMasterKeyID': arn('two')}}))
	second = data_key(keyed, group)
	assert (second['id'], second['proof']) == (first['id'], first['proof']) and second['wraps'][0]['wrapped'] != first['wraps'][0]['wrapped']
	assert 'AWS_ENCRYPTION_KEY_ROTATED' in events(keyed, group)
	services.disable(arn('one'))
	pass_time(keyed, lambda: True, step=QUARTER)
	jobs_done(keyed)
	assert get(keyed, group)['awsKms']['valid'] is True, 'the old key is needed no more'
	ok(patch(keyed, group, azure()))
	assert [w['provider'] for w in data_key(keyed, group)['wraps']] == ['AWS', 'AZURE']
	ok(patch(keyed, group, {'awsKms': {'enabled': False}}))
	third = data_key(keyed, group)
	assert third['proof'] == first['proof'] and [w['provider'] for w in third['wraps']] == ['AZURE']
	ok(patch(keyed, group, azure('a2')))
	assert events(keyed, group).count('AZURE_ENCRYPTION_KEY_ROTATED') == 1 and data_key(keyed, group)['proof'] == first['proof']


def keys_of(server, group):
	return {d['id']: d for d in (json.loads(row[0]) for row in server.rows("SELECT body FROM doc WHERE kind = 'data_key' AND parent = '%s'" % group))}


@pytest.mark.parametrize('how', ['disabled', 'gone', 'other bytes'])
def test_a_key_that_was_taken_back_is_not_wrapped_anew(keyed, services, group, how):
	"""The data key is in memory for a quarter of an hour; no other key gets it from there, and what it sealed stays shut."""
	file = keyed.keys / ('%s.key' % group)
	local = {'awsKms': {'enabled': True, 'customerMasterKeyID': 'local/' + group, 'region': 'EU_CENTRAL_1'}}
	if how != 'disabled':
		file.write_bytes(os.urandom(32))
		file.chmod(0o600)
	ok(patch(keyed, group, aws() if how == 'disabled' else local))
	name = backups.create(keyed, group)
	shot = backups.take(keyed, group, name)['id']
	before = keys_of(keyed, group)
	if how == 'disabled':
		services.disable(arn('one'))
	elif how == 'gone':
		file.unlink()
	else:
		file.write_bytes(os.urandom(32))
	ok(patch(keyed, group, {'awsKms': {}} if how == 'other bytes' else aws('two')))
	after = keys_of(keyed, group)
	assert len(after) == 2 and all(after[id] == doc for id, doc in before.items()), 'a data key of its own, and the former one as it was'
	job = backups.restore(keyed, group, name, deliveryType='automated', snapshotId=shot, targetClusterName=name, targetGroupId=group)
	where = backups.path(group, name, '/restoreJobs/' + job['id'])
	assert pass_time(keyed, lambda: ok(keyed.get(where)).get('finishedAt')) and ok(keyed.get(where))['failed'] is True
	assert "data key is out of reach" in keyed.get(where).headers['X-Steward-Progress']
	backups.idle(keyed, group, name)
	assert backups.take(keyed, group, name)['status'] == 'completed', 'under the new key'


def test_a_sealed_snapshot_leaves_by_an_explicit_word(keyed, services, group):
	"""Into a project without a key only with the header, and with an event that says so."""
	ok(patch(keyed, group, aws()))
	other = keyed.project()['id']
	name, target = backups.create(keyed, group), backups.create(keyed, other)
	shot = backups.take(keyed, group, name)['id']
	body = {'deliveryType': 'automated', 'snapshotId': shot, 'targetClusterName': target, 'targetGroupId': other}
	where = backups.path(group, name, '/restoreJobs')
	for header in ({}, {'X-Steward-Restore-Decrypted': 'false'}):
		assert 'X-Steward-Restore-Decrypted: true' in refused(keyed.post(where, json=body, headers=header), 409, 'RESTORE_WOULD_DECRYPT', target)['detail']
	told = lambda: [e for e in ok(keyed.get('/groups/%s/events?itemsPerPage=500&includeRaw=true' % group))['results'] if e['eventTypeName'] == 'CPS_RESTORE_AUTH_AUDIT']
	assert not told()
	job = ok(keyed.post(where, json=body, headers={'X-Steward-Restore-Decrypted': 'true'}))
	event, = told()
	assert other in json.dumps(event) and event['apiKeyId' if 'apiKeyId' in event else 'userId']
	assert backups.restored(keyed, group, name, job['id'])['failed'] is False
	backups.idle(keyed, other, target)
	ok(patch(keyed, other, azure()))
	ok(keyed.post(where, json=body))
	assert len(told()) == 1, 'a project with a key of its own takes it without a word'
	backups.idle(keyed, other, target)
	ok(patch(keyed, group, {'awsKms': {'enabled': False}}))
	refused(keyed.post(where, json={**body, 'targetClusterName': name, 'targetGroupId': group}), 409, 'RESTORE_WOULD_DECRYPT')
	plain = backups.take(keyed, group, name)['id']
	ok(keyed.post(where, json={**body, 'snapshotId': plain, 'targetClusterName': name, 'targetGroupId': group}))
	leave(keyed, other)


def test_the_last_good_wrap_stays(keyed, services, group):
	"""A provider is not let go of while the other one is refused or away: nobody would give the data key any more."""
	ok(patch(keyed, group, {**aws(), **azure()}))
	before = data_key(keyed, group)
	services.disable(vault('a1'))
	refused(patch(keyed, group, {'awsKms': {'enabled': False}}), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED', 'azureKeyVault')
	assert data_key(keyed, group) == before and get(keyed, group)['awsKms']['enabled'] is True
	ok(patch(keyed, group, {'enabledForSearchNodes': True}))
	assert [w['provider'] for w in data_key(keyed, group)['wraps']] == ['AWS', 'AZURE']
	services.enable(vault('a1'))
	ok(patch(keyed, group, {'awsKms': {'enabled': False}}))


def test_at_the_same_time(keyed, services, group):
	ok(patch(keyed, group, {'awsKms': {'enabled': True, 'customerMasterKeyID': arn('one'), 'region': 'EU_CENTRAL_1', 'roleId': assumable(keyed, services, group)['roleId']}}))
	proof = data_key(keyed, group)['proof']
	with concurrent.futures.ThreadPoolExecutor(4) as pool:
		done = list(pool.map(lambda _: patch(keyed, group, {'awsKms': {}}), range(8)))
	assert {d.status_code for d in done} <= {200, 409} and any(d.status_code == 200 for d in done), [d.text for d in done]
	assert data_key(keyed, group)['proof'] == proof


def test_without_its_key_a_cluster_can_be_deleted(keyed, services, group):
	ok(patch(keyed, group, aws()))
	name = cluster(keyed, group, encryptionAtRestProvider='AWS', terminationProtectionEnabled=True)
	where = '/groups/%s/clusters/%s' % (group, name)
	reaches(keyed, group, name, 'IDLE')
	services.disable(arn('one'))
	pass_time(keyed, lambda: get(keyed, group)['awsKms']['valid'] is False, step=QUARTER)
	reaches(keyed, group, name, 'REPAIRING')
	assert 'give it back' in refused(keyed.patch(where, json={'encryptionAtRestProvider': 'NONE'}), 400, 'VALIDATION_ERROR', 'encryptionAtRestProvider')['detail']
	refused(keyed.delete(where), 409)
	ok(keyed.patch(where, json={'terminationProtectionEnabled': False}))
	ok(keyed.patch(where, json={'backupEnabled': True}))
	reaches(keyed, group, name, 'REPAIRING')
	assert keyed.delete(where).status_code == 202
	pass_time(keyed, lambda: keyed.get(where).status_code == 404)
	assert ok(patch(keyed, group, {'awsKms': {'enabled': False}}))['awsKms']['enabled'] is False


def test_clusters_need_a_key_that_is_valid(keyed, services, group):
	body = {'name': 'x', 'clusterType': 'REPLICASET', 'replicationSpecs': spec(1), 'encryptionAtRestProvider': 'AZURE'}
	where = '/groups/%s/clusters' % group
	ok(patch(keyed, group, aws()))
	assert 'not configured' in refused(keyed.post(where, json=body), 400, 'VALIDATION_ERROR', 'encryptionAtRestProvider')['detail']
	name = cluster(keyed, group, encryptionAtRestProvider='AWS')
	reaches(keyed, group, name, 'IDLE')
	why = refused(patch(keyed, group, {'awsKms': {'enabled': False}}), 409, 'ENCRYPTION_AT_REST_IN_USE', name)['detail']
	assert 'encryptionAtRestProvider' in why
	services.disable(arn('one'))
	pass_time(keyed, lambda: get(keyed, group)['awsKms']['valid'] is False, step=QUARTER)
	assert 'not valid' in refused(keyed.post(where, json={**body, 'encryptionAtRestProvider': 'AWS'}), 400, 'VALIDATION_ERROR', 'encryptionAtRestProvider')['detail']
	why = refused(patch(keyed, group, aws('two')), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')['detail']
	assert name in why and 'Give it back first' in why, 'data is not left behind under a key that nobody has'
	services.enable(arn('one'))
	assert ok(patch(keyed, group, aws('two')))['awsKms']['valid'] is True
	ok(keyed.patch('%s/%s' % (where, name), json={'encryptionAtRestProvider': 'NONE'}))
	assert ok(patch(keyed, group, {'awsKms': {'enabled': False}}))['awsKms']['enabled'] is False


def alerts(server, group, status):
	return [a['eventTypeName'] for a in ok(server.get('/groups/%s/alerts?status=%s' % (group, status)))['results']]


def test_taken_back_and_given_back(keyed, services, group):
	"""The clusters under the key stop, with events and an alert; the others go on. Giving it back starts them."""
	ok(patch(keyed, group, {**aws(), **azure()}))
	ok(keyed.post('/groups/%s/alertConfigs' % group, json={'eventTypeName': 'AWS_ENCRYPTION_KEY_INVALID', 'enabled': True, 'notifications': [
		{'typeName': 'GROUP', 'emailEnabled': True, 'intervalMin': 60, 'delayMin': 0}]}))
	mine, other, plain = (cluster(keyed, group, encryptionAtRestProvider=p) for p in ('AWS', 'AZURE', 'NONE'))
	for name in (mine, other, plain):
		reaches(keyed, group, name, 'IDLE')
	services.disable(arn('one'))
	pass_time(keyed, lambda: get(keyed, group)['awsKms']['valid'] is False, step=QUARTER)
	reaches(keyed, group, mine, 'REPAIRING')
	assert (state(keyed, group, other), state(keyed, group, plain)) == ('IDLE', 'IDLE') and get(keyed, group)['azureKeyVault']['valid'] is True
	assert events(keyed, group)[-2:] == ['AWS_ENCRYPTION_KEY_INVALID', 'ENCRYPTION_AT_REST_CONFIG_NO_LONGER_VALID']
	assert 'AWS_ENCRYPTION_KEY_INVALID' in alerts(keyed, group, 'OPEN')
	services.enable(arn('one'))
	pass_time(keyed, lambda: get(keyed, group)['awsKms']['valid'] is True, step=QUARTER)
	reaches(keyed, group, mine, 'IDLE')
	assert events(keyed, group)[-2:] == ['AWS_ENCRYPTION_KEY_VALID', 'ENCRYPTION_AT_REST_CONFIG_IS_VALID']
	pass_time(keyed, lambda: 'AWS_ENCRYPTION_KEY_INVALID' in alerts(keyed, group, 'CLOSED'))


def test_an_outage_is_no_refusal(keyed, services, group):
	"""A service that gives no answer is asked again; after an hour it counts as one that refuses."""
	ok(patch(keyed, group, aws()))
	services.away.add(group)
	for missed in range(1, 5):
		keyed.advance(QUARTER)
		until(lambda: services.turned_away == 3 * missed, what='three attempts')
		jobs_done(keyed, 60)
		assert get(keyed, group)['awsKms']['valid'] is (missed < 4), missed
	assert events(keyed, group)[1:] == ['ENCRYPTION_AT_REST_KMS_NETWORK_ACCESS_DENIED', 'AWS_ENCRYPTION_KEY_INVALID', 'ENCRYPTION_AT_REST_CONFIG_NO_LONGER_VALID']
	services.away.clear()
	ok(patch(keyed, group, {'awsKms': {}}))
	assert get(keyed, group)['awsKms']['valid'] is True and 'ENCRYPTION_AT_REST_KMS_NETWORK_ACCESS_RESTORED' in events(keyed, group)


def test_killed_while_rotating(start_server, services, tmp_path):
	"""The old wrap is there or the new one, never neither: the data key is the same after each kill."""
	server, proof, data = start_server(*services.options(tmp_path)), None, None
	ok(patch(server, server.group, aws()))
	proof, data = data_key(server, server.group)['proof'], server.data_dir
	for round in range(3):
		with concurrent.futures.ThreadPoolExecutor(2) as pool:
			calls = [pool.submit(attempt, server, aws(name)) for name in ('two', 'one') * 5]
			until(lambda: sum(c.done() for c in calls) > round * 3)
			server.kill()
		server = start_server(*services.options(tmp_path), data_dir=data)
		assert data_key(server, server.group)['proof'] == proof
		assert ok(patch(server, server.group, {'awsKms': {}}))['awsKms']['valid'] is True


def attempt(server, body):
	try:
		patch(server, server.group, body)
	except requests.exceptions.RequestException:
		pass


def test_local_key(keyed, group):
	"""A key of the operator's own, for people without a key service."""
	body = {'awsKms': {'enabled': True, 'customerMasterKeyID': 'local/main', 'region': 'EU_CENTRAL_1'}}
	file = keyed.keys / 'main.key'
	assert 'No such file' in refused(patch(keyed, group, body), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')['detail']
	file.write_bytes(os.urandom(32))
	file.chmod(0o644)
	assert 'mode 0600' in refused(patch(keyed, group, body), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')['detail']
	file.chmod(0o600)
	assert ok(patch(keyed, group, body))['awsKms']['valid'] is True
	away = file.rename(keyed.keys / 'away')
	refused(patch(keyed, group, {'awsKms': {}}), 400, 'ENCRYPTION_AT_REST_KEY_REFUSED')
	until(lambda: get(keyed, group)['awsKms']['valid'] is False, what='a check at once')
	away.rename(file)
	assert ok(patch(keyed, group, {'awsKms': {}}))['awsKms']['valid'] is True, 'a PATCH looks at once'


def test_after_a_restart(start_server, services, tmp_path):
	"""What is stored is enough; the operator's key directory is not there any more."""
	first = start_server(*services.options(tmp_path))
	ok(patch(first, first.group, aws()))
	first.stop()
	again = start_server(*services.options(tmp_path), data_dir=first.data_dir)
	services.disable(arn('one'))
	pass_time(again, lambda: get(again, again.group)['awsKms']['valid'] is False, step=QUARTER)
	services.enable(arn('one'))
	pass_time(again, lambda: get(again, again.group)['awsKms']['valid'] is True, step=QUARTER)
	body = {'awsKms': {'enabled': True, 'customerMasterKeyID': 'local/main', 'region': 'EU_CENTRAL_1'}}
	assert '--keys-local' in refused(patch(again, again.group, body), 400, 'VALIDATION_ERROR', 'awsKms.customerMasterKeyID')['detail']


def test_private_endpoints(keyed, services, group):
	where = path(group, '/AWS/privateEndpoints')
	refused(keyed.post(where, json={'regionName': 'EU_CENTRAL_1'}), 409, 'ENCRYPTION_AT_REST_NOT_ENABLED', 'AWS')
	ok(patch(keyed, group, {**aws(requirePrivateNetworking=True), **azure(requirePrivateNetworking=True)}))
	made = ok(keyed.post(where, json={'regionName': 'EU_CENTRAL_1'}), 202)
	assert made['status'] == 'INITIATING' and made['cloudProvider'] == 'AWS' and made['regionName'] == 'EU_CENTRAL_1'
	refused(keyed.post(where, json={'regionName': 'EU_CENTRAL_1'}), 409, 'PRIVATE_ENDPOINT_EXISTS', 'EU_CENTRAL_1')
	refused(keyed.post(where, json={}), 400, 'VALIDATION_ERROR', 'regionName')
	theirs = ok(keyed.post(path(group, '/AZURE/privateEndpoints'), json={'regionName': 'EUROPE_NORTH'}), 202)
	one = '%s/%s' % (where, made['id'])
	done = pass_time(keyed, lambda: (lambda d: d['status'] == 'ACTIVE' and d)(ok(keyed.get(one))))
	assert [e['id'] for e in ok(keyed.get(where))['results']] == [made['id']] and done['privateEndpointConnectionName']
	assert [e['id'] for e in ok(keyed.get(path(group, '/AZURE/privateEndpoints')))['results']] == [theirs['id']]
	refused(keyed.get('%s/%s' % (where, theirs['id'])), 404, 'PRIVATE_ENDPOINT_NOT_FOUND')
	refused(keyed.delete('%s/%s' % (where, theirs['id'])), 404, 'PRIVATE_ENDPOINT_NOT_FOUND')
	refused(keyed.get(path(NO_ID, '/AWS/privateEndpoints')), 404)
	assert keyed.delete(one).status_code == 204
	refused(keyed.delete(one), 409, 'PRIVATE_ENDPOINT_BUSY')
	pass_time(keyed, lambda: keyed.get(one).status_code == 404)
	assert [e for e in events(keyed, group) if 'ENDPOINT' in e] == ['ENCRYPTION_AT_REST_PRIVATE_ENDPOINT_%s' % x for x in ('CREATED', 'CREATED', 'DELETED')]


def test_goes_with_its_project(keyed, services):
	group = keyed.project()['id']
	ok(patch(keyed, group, aws()))
	assert keyed.delete('/groups/' + group).status_code in (200, 202, 204)
	pass_time(keyed, lambda: not keyed.rows("SELECT * FROM doc WHERE kind IN ('data_key', 'encryption_at_rest') AND parent = '%s'" % group))


@pytest.mark.parametrize('args, words', [(['--keys-aws-endpoint', 'http://kms.example.com'], 'this machine only'), (['--keys-local', '/nowhere'], 'no directory')])
def test_wrong_settings(tmp_path, args, words):
	done = cli('serve', '--data', tmp_path / 'data', '--listen', '127.0.0.1:0', '--clock', 'virtual', *args, check=False)
	assert done.returncode != 0 and words in done.stderr, done.stderr


def memory(pid):
	"""What a core dump would have: writable regions, but those that are marked not to be dumped. Also how many of these there are."""
	regions, marked = [], 0
	for line in open('/proc/%d/smaps' % pid):
		found = re.match(r'([0-9a-f]+)-([0-9a-f]+) .w', line)
		if re.match('[0-9a-f]+-', line):
			here = found and (int(found[1], 16), int(found[2], 16))
		elif here and line.startswith('VmFlags:'):
			if ' dd' in line:
				marked += 1
			elif here[1] - here[0] < 1 << 30:
				regions.append(here)
	with open('/proc/%d/mem' % pid, 'rb', 0) as all:
		for start, end in regions:
			try:
				all.seek(start)
				yield all.read(end - start)
			except OSError:  # it is gone, or cannot be read at all
				pass
	assert marked, 'keys that are in use have memory of their own'


def test_plain_keys_are_in_no_core_dump(keyed, services, group):
	"""Neither as bytes nor as text: buffers that they came and went through are wiped."""
	del services.plain[:]
	ok(patch(keyed, group, {**aws(), **azure(), **google(services)}))
	forms = [services.plain[0].encode(), services.plain[2].encode(), bytes.fromhex(services.plain[1])]
	for part in memory(keyed.process.pid):
		assert not any(form in part for form in forms)


def test_no_secret_is_left(keyed, services, group):
	"""Runs after the others: in log, recording, events and store."""
	ok(patch(keyed, group, {**aws(), **azure(), **google(services)}))
	jobs_done(keyed)
	assert len(services.plain) >= 3
	kept = ''.join(json.dumps(row, default=str) for table in ('doc', 'event', 'job') for row in keyed.rows('SELECT * FROM %s' % table))
	for place, text in (('log', keyed.stderr), ('recording', client.EXCHANGES.read_text()), ('store', kept)):
		for secret in services.secrets():
			assert secret not in text and json.dumps(secret)[1:-1] not in text, '%s: %s' % (place, secret[:12])
