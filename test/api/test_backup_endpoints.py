"""Private endpoints of backups: their states, and what is refused."""
import pytest

from client import NO_ID, ok, pass_time, refused, unique
from test_backups import group  # noqa: F401 (a fixture)


def path(group, endpoint='', provider='AWS'):
	return '/groups/%s/backup/%s/privateEndpoints%s' % (group, provider, endpoint and '/' + endpoint)


def create(server, group, region='US_EAST_1', **more):
	return ok(server.post(path(group), json={'cloudProvider': 'AWS', 'regionName': region, **more}), 201)


def test_states(server, group):
	doc = create(server, group)
	assert doc['status'] == 'INITIATING' and doc['cloudProvider'] == 'AWS' and doc['regionName'] == doc['vpcRegionName'] == 'US_EAST_1'
	assert 'privateEndpointConnectionName' not in doc and 'errorMessage' not in doc
	seen = []

	def look():
		now = ok(server.get(path(group, doc['id'])))
		seen.append((now['status'], 'privateEndpointConnectionName' in now))
		return now['status'] == 'ACTIVE' and now
	done = pass_time(server, look, step=0.5)
	assert seen == sorted(seen, key=[('INITIATING', False), ('PENDING_ACCEPTANCE', True), ('ACTIVE', True)].index)
	assert done['privateEndpointConnectionName'].startswith('vpce-')
	assert [e['id'] for e in ok(server.get(path(group)))['results']] == [doc['id']]
	assert server.delete(path(group, doc['id'])).status_code == 204
	assert ok(server.get(path(group, doc['id'])))['status'] == 'DELETING'
	refused(server.delete(path(group, doc['id'])), 409, 'PRIVATE_ENDPOINT_BUSY')
	pass_time(server, lambda: server.get(path(group, doc['id'])).status_code == 404)
	assert ok(server.get(path(group)))['results'] == []


def test_body(server, group):
	doc = create(server, group, 'EU_WEST_1', vpcRegionName='EU_WEST_2')
	assert (doc['regionName'], doc['vpcRegionName']) == ('EU_WEST_1', 'EU_WEST_2')
	refused(server.post(path(group), json={'regionName': 'EU_WEST_1'}), 409, 'PRIVATE_ENDPOINT_EXISTS', 'EU_WEST_1')
	refused(server.post(path(group), json={}), 400, None, 'regionName')
	refused(server.post(path(group), json={'regionName': 'ATLANTIS_1'}), 400)
	refused(server.post(path(group), json={'regionName': 'EU_WEST_3', 'status': 'ACTIVE'}), 400, None, 'status')
	assert len(ok(server.get(path(group)))['results']) == 1


@pytest.mark.parametrize('provider', ['GCP', 'AZURE', 'aws', 'MARS'])
def test_other_providers(server, group, provider):
	assert server.get(path(group, provider=provider)).status_code in (400, 404)


def test_strangers(server, group):
	org, = server.seed({'name': unique('tenant'), 'projects': ['theirs'], 'principals': [
		{'type': 'serviceAccount', 'roles': ['ORG_OWNER']}]})
	owner, theirs = server.api_for(org['principals'][0]), org['projects'][0]['id']
	doc = create(server, group)
	for call in (owner.get, owner.delete):
		refused(call(path(group, doc['id'])), 401)
		refused(call(path(theirs, doc['id'])), 404)
	refused(server.get(path(group, NO_ID)), 404)
	assert ok(server.get(path(group, doc['id'])))['id'] == doc['id']
