"""Log export: integrations of six forms and the older push-based one; masks, states and their causes, what arrives in a bucket and at
services, also when these are away, and who may use which bucket and role."""
import gzip, json, pathlib, re, sys

import pytest

import client, clouds, conftest, derive, receivers, versions
from client import NO_ID, leave, metric, ok, pass_time, refused, unique, until
from test_backups import create
from test_provider_access import PRINCIPAL, assumable, authorize, id_of, make, removed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import gcs_server, s3_server  # noqa: E402

MASK, SECRET, ROLE = '********', 'not-to-be-seen-5517', '5f0000000000000000000001'
RANGE = re.compile(r'^[0-9a-f]{24}-(\d{16})-(\d{16})\.json\.gz$')
STATE, LEFT_OUT = 'X-Steward-Log-Export', 'steward_log_export_left_out_total'
FORMS = {
	'S3': {'bucketName': 'logs', 'iamRoleId': ROLE, 'prefixPath': 'all/logs', 'useLegacyPathStructure': False, 'kmsKey': None},
	'GCS': {'bucketName': 'logs', 'roleId': ROLE, 'prefixPath': ''},
	'AZURE': {'storageAccountName': 'account', 'storageContainerName': 'logs', 'roleId': ROLE, 'prefixPath': '/x/'},
	'DATADOG': {'apiKey': SECRET, 'region': 'US5'},
	'SPLUNK': {'hecToken': SECRET, 'hecUrl': 'https://splunk.example.com:8088'},
	'OTEL': {'otelEndpoint': 'https://otel.example.com/v1/logs', 'otelSuppliedHeaders': [{'name': 'x-key', 'value': SECRET}]},
}
WORDS = {'GCS': 'GCP'}


def path(group, integration=''):
	return '/groups/%s/logIntegrations%s' % (group, integration and '/' + integration)


def push(group):
	return '/groups/%s/pushBasedLogExport' % group


def form(kind, **more):
	own = dict(FORMS[kind])
	for field in ('bucketName', 'storageContainerName'):
		if field in own:
			own[field] = unique('logs')
	return {'type': kind + '_LOG_EXPORT', 'logTypes': ['DB', 'DB_AUDIT'], **own, **more}


def plain(document):
	return {k: v for k, v in document.items() if k != 'links'}


def events(server, group):
	return [e['eventTypeName'] for e in ok(server.get('/groups/%s/events?itemsPerPage=500' % group))['results'] if 'LOG_' in e['eventTypeName']]


@pytest.fixture
def group(server):
	found = server.project()['id']
	yield found
	leave(server, found)


# What is configured

@pytest.mark.parametrize('kind', sorted(FORMS))
def test_each_form(server, group, kind):
	wanted = form(kind)
	answer = server.post(path(group), json=wanted)
	made = ok(answer, 201)
	assert answer.headers['Location'].endswith(path(group, made['id'])) and SECRET not in answer.text
	shown = {**wanted, **{k: MASK for k in ('apiKey', 'hecToken') if k in wanted}}
	if kind == 'OTEL':
		shown['otelSuppliedHeaders'] = [{'name': 'x-key'}]
	assert {k: v for k, v in made.items() if k not in ('id', 'links')} == {k: v for k, v in shown.items() if v is not None or k in made}
	answer = server.get(path(group, made['id']))
	assert plain(ok(answer)) == plain(made) and answer.headers[STATE].split(':')[0] in (
		'INITIATING', 'BUCKET_VERIFIED', 'ACTIVE', 'BUCKET_VERIFICATION_FAILED', 'FAILED')
	assert [x['id'] for x in ok(server.get(path(group) + '?integrationType=' + wanted['type']))['results']] == [made['id']]
	assert not ok(server.get(path(group) + '?integrationType=NONE'))['results']
	# What was read can be written back, where nothing is missing in it; a header's value has a mask of its own.
	back = {k: v for k, v in plain(made).items() if k != 'id'}
	if kind == 'OTEL':
		back['otelSuppliedHeaders'] = [{'name': 'x-key', 'value': MASK}]
	again = ok(server.put(path(group, made['id']), json={**back, 'logTypes': ['DB']}))
	assert plain(again) == {**plain(made), 'logTypes': ['DB']}
	stored = ''.join(str(r) for r in server.rows("SELECT body, secret FROM doc WHERE kind = 'log_integration' AND parent = '%s'" % group))
	assert made['id'] in stored and SECRET not in stored
	assert server.delete(path(group, made['id'])).status_code == 204
	refused(server.get(path(group, made['id'])), 404, 'LOG_INTEGRATION_NOT_FOUND')
	begin = WORDS.get(kind, kind) + '_LOG_STREAMING_'
	assert {begin + x for x in ('ENABLED', 'CONFIGURATION_UPDATED', 'DISABLED')} <= set(events(server, group))
	assert not server.rows("SELECT id FROM doc WHERE kind LIKE 'log_export_%%' AND parent IN ('%s', '%s')" % (made['id'], group))


@pytest.mark.parametrize('kind, wrong, named', [
	('S3', {'logTypes': []}, 'logTypes'), ('S3', {'bucketName': 'Bucket'}, 'bucketName'), ('S3', {'bucketName': '../up'}, 'bucketName'),
	('S3', {'prefixPath': 'a/../b'}, 'prefixPath'), ('S3', {'prefixPath': 'a b'}, 'prefixPath'), ('S3', {'kmsKey': 'arn:aws:kms:x'}, 'kmsKey'),
	('AZURE', {'storageAccountName': 'A/B'}, 'storageAccountName'), ('DATADOG', {'apiKey': MASK}, 'apiKey'),
	('DATADOG', {'apiKey': 'a\r\nb'}, 'apiKey'), ('SPLUNK', {'hecUrl': 'http://splunk.example.com'}, 'hecUrl'),
	('SPLUNK', {'hecUrl': 'https://user@splunk.example.com'}, 'hecUrl'), ('OTEL', {'otelEndpoint': 'file:///etc/passwd'}, 'otelEndpoint'),
	('OTEL', {'otelSuppliedHeaders': [{'name': 'Content-Length', 'value': '1'}]}, 'otelSuppliedHeaders[0].name'),
	('OTEL', {'otelSuppliedHeaders': [{'name': 'a', 'value': '1'}, {'name': 'A', 'value': '2'}]}, 'otelSuppliedHeaders[1].name'),
	('OTEL', {'otelSuppliedHeaders': [{'name': 'a', 'value': 'b\nc'}]}, 'otelSuppliedHeaders[0].value')])
def test_refusals(server, group, kind, wrong, named):
	refused(server.post(path(group), json=form(kind, **wrong)), 400, 'VALIDATION_ERROR', named)
	assert not ok(server.get(path(group)))['results']


def test_changes_that_are_refused(server, group):
	made = ok(server.post(path(group), json=form('SPLUNK')), 201)
	back = {k: v for k, v in plain(made).items() if k != 'id'}
	refused(server.put(path(group, made['id']), json={**back, 'hecUrl': 'https://elsewhere.example.com:8088'}), 400, 'VALIDATION_ERROR', 'hecToken')
	refused(server.put(path(group, made['id']), json=form('DATADOG')), 400, 'VALIDATION_ERROR', 'type')
	refused(server.put(path(group, NO_ID), json=form('DATADOG')), 404, 'LOG_INTEGRATION_NOT_FOUND')
	refused(server.delete(path(group, NO_ID)), 404, 'LOG_INTEGRATION_NOT_FOUND')
	refused(server.get(path(NO_ID)), 404)
	for _ in range(19):
		ok(server.post(path(group), json=form('DATADOG')), 201)
	refused(server.post(path(group), json=form('DATADOG')), 400, 'TOO_MANY_LOG_INTEGRATIONS')


def test_a_bucket_of_another_organization(server, group):
	org, = server.seed({'name': unique('tenant'), 'projects': ['theirs'], 'principals': [{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	stranger, theirs = server.api_for(org['principals'][0]), org['projects'][0]['id']
	mine = form('S3')
	ok(server.post(path(group), json=mine), 201)
	refused(stranger.post(path(theirs), json=mine), 400, 'LOG_EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')
	refused(stranger.post(push(theirs), json={'bucketName': mine['bucketName'], 'iamRoleId': ROLE, 'prefixPath': ''}), 400,
		'LOG_EXPORT_BUCKET_NOT_ACCESSIBLE', 'bucketName')


# What arrives

def log_of(server, group, host):
	r = server.get('/groups/%s/clusters/%s/logs/db.gz?startDate=1199145600' % (group, host))
	assert r.status_code == 200, r.text
	return gzip.decompress(r.content)


def hosts(server, group):
	return [p['hostname'] for p in ok(server.get('/groups/%s/processes' % group))['results']]


def joined(objects):
	"""The text of objects by name; their ranges leave no gap and meet nowhere."""
	at, text = None, b''
	for name in sorted(objects):
		begin, end = map(int, RANGE.match(name).groups())
		assert begin < end and at in (None, begin), sorted(objects)
		at, text = end, text + gzip.decompress(objects[name])
	return text


def in_directory(folder):
	return {f.name: f.read_bytes() for f in folder.glob('*.json.gz')} if folder.is_dir() else {}


def arrived(server, group, folder, host):
	"""All that the node has said is there, once time has passed."""
	return pass_time(server, lambda: joined(in_directory(folder)) == log_of(server, group, host), 61)


def test_push_based_export(server, group):
	assert plain(ok(server.get(push(group)))) == {'state': 'UNCONFIGURED'}
	refused(server.get(push(NO_ID)), 404, 'GROUP_NOT_FOUND')
	for call in (lambda: server.patch(push(group), json={'prefixPath': 'x'}), lambda: server.delete(push(group))):
		refused(call(), 404, 'LOG_EXPORT_NOT_CONFIGURED')
	bucket = unique('logs')
	wanted = {'bucketName': bucket, 'iamRoleId': ROLE, 'prefixPath': 'first'}
	refused(server.post(push(group), json={**wanted, 'prefixPath': 'a b'}), 400, 'VALIDATION_ERROR', 'prefixPath')
	assert not ok(server.post(push(group), json=wanted))
	refused(server.post(push(group), json=wanted), 400, 'LOG_EXPORT_ALREADY_CONFIGURED')
	found = until(lambda: (lambda d: d['state'] == 'ACTIVE' and d)(ok(server.get(push(group)))))
	assert {k: found[k] for k in wanted} == wanted and found['createDate']
	assert not list((server.exports / bucket).rglob('access-*')), 'the probe is taken away'
	create(server, group)
	host, *_ = hosts(server, group)
	node = host.split('.')[0]
	arrived(server, group, server.exports / bucket / 'first' / node / 'DB', host)
	assert not ok(server.patch(push(group), json={'prefixPath': 'second'}))
	assert ok(server.get(push(group)))['state'] in ('INITIATING', 'BUCKET_VERIFIED', 'ACTIVE')
	server.advance(3600)
	# It goes on where it was.
	there = server.exports / bucket
	pass_time(server, lambda: joined({**in_directory(there / 'first' / node / 'DB'), **in_directory(there / 'second' / node / 'DB')}) ==
		  log_of(server, group, host), 61)
	assert in_directory(there / 'second' / node / 'DB')
	assert not ok(server.delete(push(group)))
	assert ok(server.get(push(group)))['state'] == 'UNCONFIGURED'
	assert events(server, group)[::-1] == ['PUSH_BASED_LOG_EXPORT_' + x for x in ('ENABLED', 'CONFIGURATION_UPDATED', 'DISABLED')]


def test_into_a_directory(server, group):
	"""Each node of a sharded cluster, its router too, from its first line on; of older clusters from now on."""
	create(server, group)
	old, *_ = hosts(server, group)
	made = ok(server.post(path(group), json=form('GCS', logTypes=['DB', 'ROUTER'])), 201)
	until(lambda: server.get(path(group, made['id'])).headers[STATE] == 'ACTIVE')
	name = create(server, group, shards=2)
	there = server.exports / made['bucketName'] / group
	for p in ok(server.get('/groups/%s/processes?itemsPerPage=500' % group))['results']:
		if p['hostname'].split('-')[0] != old.split('-')[0]:
			node = p['hostname'].split('.')[0]
			arrived(server, group, there / name / node / ('ROUTER' if 'router' in node else 'DB'), p['hostname'])
	old_text = [joined(in_directory(f)) for f in there.glob('*/%s/DB' % old.split('.')[0])]
	assert b'is ready' not in b''.join(old_text)
	assert not list(there.rglob('*AUDIT*')), 'nothing was asked for of those'
	assert metric(server, 'steward_log_export_bytes_total') > 0
	assert server.delete(path(group, made['id'])).status_code == 204


def test_a_bucket_that_is_lost(server, group):
	"""The state tells it, with the reason; an event too, once; what was held back comes when it is there again."""
	made = ok(server.post(path(group), json=form('S3', useLegacyPathStructure=True)), 201)
	until(lambda: server.get(path(group, made['id'])).headers[STATE] == 'ACTIVE')
	create(server, group)
	host, *_ = hosts(server, group)
	place = server.exports / made['bucketName']
	folder = place / 'all' / 'logs' / host.split('.')[0] / 'DB'
	arrived(server, group, folder, host)
	kept = place.rename(place.with_name(place.name + '-away'))
	place.write_text('no directory')
	server.advance(3600)
	told = pass_time(server, lambda: (lambda t: t.startswith('BUCKET_VERIFICATION_FAILED: ') and t)(server.get(path(group, made['id'])).headers[STATE]), 61)
	assert place.name in told
	place.unlink()
	kept.rename(place)
	pass_time(server, lambda: server.get(path(group, made['id'])).headers[STATE] == 'ACTIVE', 61)
	arrived(server, group, folder, host)
	found = events(server, group)
	assert sum('FAILED' in t for t in found) == found.count('LOG_STREAMING_EXPORT_RECOVERED') <= 1


# Services, and buckets by roles

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
def receiver():
	r = receivers.Http()
	yield r
	r.stop()


@pytest.fixture(scope='module')
def google_stores():
	s = s3_server.Running('--token', 'ya29.role-*', program=gcs_server.__file__)
	yield s
	s.stop()


@pytest.fixture(scope='module')
def sending(cloud, stores, google_stores, receiver, tmp_path_factory):
	s = client.Server('--export-buckets', 'roles', '--s3-endpoint', stores.endpoint, '--gcs-endpoint', google_stores.endpoint,
			  '--azure-endpoint', 'http://127.0.0.1:9', '--outbox-private',
			  '--outbox-endpoint', 'datadog-logs-us5=' + receiver.url, *cloud.options(tmp_path_factory.mktemp('keys')), record=client.EXCHANGES)
	s.versions = versions.Named(derive.Api())
	yield s
	conftest.end(s)


@pytest.fixture
def project(sending):
	sending.refill()
	found = sending.project()['id']
	yield found
	for one in ok(sending.get(path(found)))['results']:
		assert sending.delete(path(found, one['id'])).status_code == 204
	leave(sending, found)


def deliveries(box, where, begin=0):
	"""What was taken of one path: by its id, because a receiver may get one twice, whose answer was lost."""
	return {r.headers['X-Steward-Delivery']: r for r in list(box.taken)[begin:] if r.path == where}.values()


def documents(r):
	text = gzip.decompress(r.body).decode()
	return [json.loads(line) for line in text.splitlines()] if r.path.startswith('/services') else json.loads(text)


def lines_of(box, where, host):
	found = []
	for r in deliveries(box, where):
		doc = documents(r)
		if where.startswith('/api'):
			found += [x['message'] for x in doc if x['hostname'] == host]
		elif where.startswith('/services'):
			found += [x['event'] for x in doc if x['host'] == host]
		else:
			for resource in doc['resourceLogs']:
				about = {a['key']: a['value']['stringValue'] for a in resource['resource']['attributes']}
				found += [x['body']['stringValue'] for x in resource['scopeLogs'][0]['logRecords'] if about['host.name'] == host]
	return found


def test_services(sending, receiver, project):
	"""Each gets each line once, with what names it; one that is dead holds back none of the others."""
	own = {'DATADOG': {}, 'SPLUNK': {'hecUrl': receiver.url + '/'}, 'OTEL': {'otelEndpoint': receiver.url}}
	made = {k: ok(sending.post(path(project), json=form(k, logTypes=['DB'], **more)), 201) for k, more in own.items()}
	dead = ok(sending.post(path(project), json=form('SPLUNK', hecUrl='http://127.0.0.1:9')), 201)
	create(sending, project)
	where = {'DATADOG': '/api/v2/logs', 'SPLUNK': '/services/collector/event', 'OTEL': '/v1/logs'}
	named = hosts(sending, project)

	def all_there():
		return all(lines_of(receiver, where[k], h) == log_of(sending, project, h).decode().splitlines() for k in own for h in named)
	pass_time(sending, all_there, 11)
	assert all(sending.get(path(project, d['id'])).headers[STATE] == 'ACTIVE' for d in made.values())
	why = pass_time(sending, lambda: (lambda t: t.startswith('FAILED: ') and t)(sending.get(path(project, dead['id'])).headers[STATE]), 11)
	assert 'connect' in why.lower()
	# It is away; others are not.
	receiver.stop()
	sending.advance(86400)
	pass_time(sending, lambda: sending.get(path(project, made['OTEL']['id'])).headers[STATE].startswith('FAILED: '), 61)
	receiver.start()
	pass_time(sending, all_there, 301)
	assert len(lines_of(receiver, '/v1/logs', named[0])) > 100, 'a day of them'
	one = deliveries(receiver, '/api/v2/logs').__iter__().__next__()
	assert one.headers['DD-API-KEY'] == SECRET and documents(one)[0]['ddsource'] == 'postgresql' and documents(one)[0]['uid']
	one = next(iter(deliveries(receiver, '/services/collector/event')))
	assert one.headers['Authorization'] == 'Splunk ' + SECRET and documents(one)[0]['fields']['project'] == project
	one = next(iter(deliveries(receiver, '/v1/logs')))
	record = documents(one)['resourceLogs'][0]['scopeLogs'][0]['logRecords'][0]
	assert one.headers['x-key'] == SECRET and record['severityNumber'] in (9, 21) and re.fullmatch(r'\d{19}', record['timeUnixNano'])
	uids = [a['value']['stringValue'] for r in deliveries(receiver, '/v1/logs') for x in documents(r)['resourceLogs'][0]['scopeLogs'][0]['logRecords']
		for a in x['attributes'] if a['key'] == 'log.record.uid']
	assert len(uids) == len(set(uids))
	assert SECRET not in sending.stderr


def test_a_service_that_refuses(sending, receiver, project):
	made = ok(sending.post(path(project), json=form('DATADOG', logTypes=['DB'])), 201)
	receiver.answers += [403] * 3  # another project's may have been under way
	create(sending, project)
	told = pass_time(sending, lambda: (lambda t: 'ACTIVE' not in t and 'INITIATING' not in t and t)(sending.get(path(project, made['id'])).headers[STATE])
		or 'LOG_STREAMING_EXPORT_FAILED_NONRETRYABLE' in events(sending, project) and 'told', 1)
	assert told == 'told' or told == 'FAILED: answered 403'
	pass_time(sending, lambda: sending.get(path(project, made['id'])).headers[STATE] == 'ACTIVE', 11)
	assert events(sending, project)[:2] == ['LOG_STREAMING_EXPORT_RECOVERED', 'LOG_STREAMING_EXPORT_FAILED_NONRETRYABLE']


def test_lines_that_a_service_refuses(sending, receiver, project):
	"""They are kept as long as the service takes nothing; once it takes others, it is the lines that are wrong, and they are left out."""
	made = ok(sending.post(path(project), json=form('OTEL', otelEndpoint=receiver.url + '/refused', logTypes=['DB'])), 201)
	create(sending, project)
	named = hosts(sending, project)

	def seen(host):
		return lines_of(receiver, '/refused', host)

	def all_but(*lines):
		return all(sorted(seen(h)) == [x for x in log_of(sending, project, h).decode().splitlines() if x not in lines] for h in named)
	pass_time(sending, all_but, 11)
	unwanted = []  # the first counts: several nodes may be sent at once

	def judge(body):
		text = gzip.decompress(body).decode()
		if '"%s"' % project not in text:
			return 200
		if not unwanted:
			unwanted.append(json.loads(text)['resourceLogs'][0]['scopeLogs'][0]['logRecords'][0]['body']['stringValue'])
		return 400 if nothing or json.dumps(unwanted[0])[1:-1] in text else 200
	nothing, receiver.judge = True, judge
	try:
		sending.advance(3600)
		told = pass_time(sending, lambda: (lambda t: t.startswith('FAILED: ') and t)(sending.get(path(project, made['id'])).headers[STATE]), 11)
		assert told == 'FAILED: answered 400'
		before = len(receiver.refused)
		pass_time(sending, lambda: len(receiver.refused) > before + 30, 301)
		assert metric(sending, LEFT_OUT) == 0, 'nothing was taken: all are kept'
		nothing = False
		pass_time(sending, lambda: all_but(unwanted[0]), 301)
	finally:
		receiver.judge = lambda body: 200
	assert metric(sending, LEFT_OUT) == 1 == sum(log_of(sending, project, h).decode().splitlines().count(unwanted[0]) for h in named)
	assert sending.get(path(project, made['id'])).headers[STATE] == 'ACTIVE' and 'LOG_STREAMING_EXPORT_RECOVERED' in events(sending, project)
	assert 'refused again and again and are left out' in sending.stderr


def in_store(stores, below):
	return {k[len(below):]: bytes.fromhex(stores.say('get ' + k)) for k in stores.say('names').split()
		if k.startswith(below) and k.endswith('.gz')}


def test_by_a_role(sending, cloud, stores, project):
	"""With the keys that the role gives, into a store that verifies each signature. While it is used it stays."""
	cloud.session.update({'AccessKeyId': s3_server.KEY_ID, 'SecretAccessKey': s3_server.SECRET})
	wanted = form('S3', bucketName='bucket', prefixPath='tenant/logs')
	refused(sending.post(path(project), json=wanted), 400, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED', 'iamRoleId')
	refused(sending.post(push(project), json={'bucketName': 'bucket', 'iamRoleId': ROLE, 'prefixPath': ''}), 400,
		'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED', 'iamRoleId')
	role = assumable(sending, cloud, project)
	made = ok(sending.post(path(project), json={**wanted, 'iamRoleId': role['roleId']}), 201)
	assert not ok(sending.post(push(project), json={'bucketName': 'bucket', 'iamRoleId': role['roleId'], 'prefixPath': 'older'}))
	uses = ok(sending.get('/groups/%s/cloudProviderAccess/%s' % (project, role['roleId'])))['featureUsages']
	assert [u['featureType'] for u in uses] == ['SVC_LOG_INTEGRATION', 'PUSH_BASED_LOG_EXPORT']
	refused(removed(sending, project, role), 409, 'CLOUD_PROVIDER_ACCESS_ROLE_IN_USE')
	until(lambda: ok(sending.get(push(project)))['state'] == 'ACTIVE')
	name = create(sending, project)
	for host in hosts(sending, project):
		node = host.split('.')[0]
		for below in ('tenant/logs/%s/%s/%s/DB/' % (project, name, node), 'older/%s/DB/' % node):
			pass_time(sending, lambda: joined(in_store(stores, below)) == log_of(sending, project, host), 61)
	# The wrong bucket is named: its state says so, with what the store said.
	assert not ok(sending.patch(push(project), json={'bucketName': 'no-such-bucket'}))
	why = pass_time(sending, lambda: ok(sending.get(push(project)))['state'] == 'BUCKET_VERIFICATION_FAILED' and sending.get(push(project)).headers[STATE], 61)
	assert 'no-such-bucket' in why or 'no bucket' in why
	assert not ok(sending.patch(push(project), json={'bucketName': 'bucket'}))
	until(lambda: ok(sending.get(push(project)))['state'] == 'ACTIVE')
	assert not ok(sending.delete(push(project)))
	assert made['id'] in [x['id'] for x in ok(sending.get(path(project)))['results']]


def test_google(sending, cloud, google_stores, project):
	"""With the token of the role's account."""
	role = ok(authorize(sending, project, make(sending, project, 'GCP')))
	made = ok(sending.post(path(project), json=form('GCS', bucketName=gcs_server.BUCKET, prefixPath='g', roleId=role['roleId'])), 201)
	until(lambda: sending.get(path(project, made['id'])).headers[STATE] == 'ACTIVE')
	name = create(sending, project)
	for host in hosts(sending, project):
		below = 'g/%s/%s/%s/DB/' % (project, name, host.split('.')[0])
		pass_time(sending, lambda: joined(in_store(google_stores, below)) == log_of(sending, project, host), 61)


def test_roles_of_other_providers(sending, cloud, project):
	"""Each kind of bucket wants a role of its provider, and keeps it."""
	tenant = '11111111-2222-4333-8444-%012x' % len(cloud.principals)
	cloud.principals[tenant] = PRINCIPAL
	roles = {'AZURE': ok(authorize(sending, project, make(sending, project, 'AZURE', tenantId=tenant, servicePrincipalId=PRINCIPAL))),
		 'GCS': ok(authorize(sending, project, make(sending, project, 'GCP')))}
	for kind, other in (('AZURE', 'GCS'), ('GCS', 'AZURE')):
		refused(sending.post(path(project), json=form(kind, roleId=id_of(roles[other]))), 400, 'CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED', 'roleId')
		made = ok(sending.post(path(project), json=form(kind, roleId=id_of(roles[kind]))), 201)
		role = ok(sending.get('/groups/%s/cloudProviderAccess/%s' % (project, id_of(roles[kind]))))
		assert role['featureUsages'] == [{'featureType': 'SVC_LOG_INTEGRATION'}]
		refused(removed(sending, project, roles[kind]), 409, 'CLOUD_PROVIDER_ACCESS_ROLE_IN_USE')
		assert sending.delete(path(project, made['id'])).status_code == 204
		assert removed(sending, project, roles[kind]).status_code == 204


def test_a_role_that_lets_nobody_in(sending, cloud, project):
	ok(sending.post('/groups/%s/alertConfigs' % project, json={'enabled': True, 'eventTypeName': 'PUSH_BASED_LOG_EXPORT_STOPPED', 'notifications': [
		{'typeName': 'EMAIL', 'emailAddress': 'ada@example.com', 'intervalMin': 5, 'delayMin': 0}]}))

	def alerts():
		return [(a['eventTypeName'], a['status']) for a in ok(sending.get('/groups/%s/alerts' % project))['results']]
	cloud.lasts = 60  # too short to be kept
	role = assumable(sending, cloud, project)
	cloud.lasts, cloud.roles[role['iamAssumedRoleArn']] = 3600, 'another'
	assert not ok(sending.post(push(project), json={'bucketName': 'bucket', 'iamRoleId': role['roleId'], 'prefixPath': ''}))
	why = pass_time(sending, lambda: ok(sending.get(push(project)))['state'] == 'ASSUME_ROLE_FAILED' and sending.get(push(project)).headers[STATE], 61, 20)
	assert 'sts:AssumeRole answered 403' in why
	assert 'PUSH_BASED_LOG_EXPORT_STOPPED' in events(sending, project) and alerts() == [('PUSH_BASED_LOG_EXPORT_STOPPED', 'OPEN')]
	cloud.roles[role['iamAssumedRoleArn']] = role['svcAssumedRoleExternalId']
	pass_time(sending, lambda: ok(sending.get(push(project)))['state'] == 'ACTIVE', 61, 20)
	assert 'PUSH_BASED_LOG_EXPORT_RESUMED' in events(sending, project)
	pass_time(sending, lambda: alerts() == [('PUSH_BASED_LOG_EXPORT_STOPPED', 'CLOSED')], 61, 20)
	assert not ok(sending.delete(push(project)))
