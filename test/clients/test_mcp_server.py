"""npm's mongodb-mcp-server, driven as an assistant drives it: JSON-RPC on its standard input and output."""
import json, re

import pytest

import programs
from client import ID, ok, pass_time, unique, until

# Every tool that manages deployments, and what keeps one from working.
WORKS = {'atlas-list-orgs', 'atlas-list-projects', 'atlas-create-project', 'atlas-list-clusters', 'atlas-inspect-cluster', 'atlas-get-regions',
	'atlas-create-free-cluster', 'atlas-create-cluster', 'atlas-upgrade-cluster', 'atlas-pause-resume-cluster', 'atlas-load-sample-dataset',
	'atlas-create-access-list', 'atlas-inspect-access-list', 'atlas-create-db-user', 'atlas-list-db-users', 'atlas-list-alerts',
	'atlas-get-performance-advisor'}
UNBUILT = {'atlas-streams-discover', 'atlas-streams-build', 'atlas-streams-manage', 'atlas-streams-teardown'}
OTHER_DATABASE = {'atlas-connect-cluster'}  # it dials with the driver of another database
OURS = re.compile(r'svc', re.I)


class Assistant(programs.Program):
	def __init__(self, server):
		account = server.bootstrap['serviceAccount']
		where = programs.package('mongodb-mcp-server')
		main = json.loads((where / 'package.json').read_text())['bin']['mongodb-mcp-server']
		super().__init__(server, where / main, MDB_MCP_API_BASE_URL=server.base_url + '/', MDB_MCP_API_CLIENT_ID=account['clientId'],
				MDB_MCP_API_CLIENT_SECRET=account['clientSecret'], MDB_MCP_LOGGERS='stderr')
		self.ask('initialize', protocolVersion='2025-06-18', capabilities={}, clientInfo={'name': 'test', 'version': '1'})
		self.send({'jsonrpc': '2.0', 'method': 'notifications/initialized'})

	def ask(self, method, **params):
		self.number += 1
		self.send({'jsonrpc': '2.0', 'id': self.number, 'method': method, 'params': params})
		while True:
			answer = self.receive()
			if answer.get('id') == self.number:
				assert 'error' not in answer, answer
				return answer['result']

	def tool(self, name, args):
		result = self.ask('tools/call', name=name, arguments=args)
		text = '\n'.join(part.get('text', '') for part in result['content'])
		assert not OURS.search(text), 'a word of ours: ' + text
		return result, text

	def __call__(self, name, /, **args):
		"""What a tool gives an assistant to work with."""
		result, text = self.tool('atlas-' + name, args)
		assert not result.get('isError'), text
		return result['structuredContent']

	def refused(self, name, /, **args):
		result, text = self.tool('atlas-' + name, args)
		assert result.get('isError'), text
		return text


@pytest.fixture(scope='module')
def assistant(clients_server):
	a = Assistant(clients_server)
	yield a
	a.end()


@pytest.fixture
def project(clients_server):
	clients_server.refill()
	return clients_server.project()['id']


def settled(server, assistant, project, name):
	"""The cluster, once it rests."""
	def look():
		cluster = assistant('inspect-cluster', projectId=project, clusterName=name)
		return cluster['state'] == 'IDLE' and cluster
	return pass_time(server, look)


def test_every_tool_is_known(assistant):
	"""A tool that a later version brings shall be tried, not forgotten."""
	tools = {t['name'] for t in assistant.ask('tools/list')['tools']}
	assert {t for t in tools if t.startswith('atlas-') and not t.startswith('atlas-local-')} == WORKS | UNBUILT | OTHER_DATABASE


def test_organizations_and_projects(clients_server, assistant):
	name = unique()
	assert clients_server.org in {o['id'] for o in assistant('list-orgs', limit=500)['organizations']}
	assert assistant('create-project', projectName=name, orgId=clients_server.org) == {'projectName': name, 'orgId': clients_server.org}
	for where in ({}, {'orgId': clients_server.org}):
		found, = (p for p in assistant('list-projects', limit=500, **where)['projects'] if p['name'] == name)
		assert ID.match(found['id']) and found['orgId'] == clients_server.org
	counted = assistant('list-projects', limit=1, includeCount=True)
	assert len(counted['projects']) == 1 and counted['totalCount'] > 1
	text = assistant.refused('create-project', projectName=name, orgId=clients_server.org)
	assert '409' in text


def test_access_list(assistant, project):
	assert assistant('inspect-access-list', projectId=project)['totalCount'] == 0
	assistant('create-access-list', projectId=project, ipAddresses=['192.0.2.7'], cidrBlocks=['198.51.100.0/24'], currentIpAddress=True,
			comment='from a test')
	entries = assistant('inspect-access-list', projectId=project)['entries']
	assert {e['cidrBlock'] for e in entries} == {'192.0.2.7/32', '198.51.100.0/24', '127.0.0.1/32'}
	assert {e['comment'] for e in entries} == {'from a test'}


def test_database_users(clients_server, assistant, project):
	made = assistant('create-db-user', projectId=project, username='ada', roles=[{'roleName': 'atlasAdmin', 'databaseName': 'admin'}])
	assert made['username'] == 'ada' and made['password']
	assistant('create-db-user', projectId=project, username='bob', password='correct horse battery', clusters=['c0'],
			roles=[{'roleName': 'readWrite', 'databaseName': 'shop', 'collectionName': 'orders'}])
	users = {u['username']: u for u in assistant('list-db-users', projectId=project)['users']}
	assert users['ada']['roles'] == [{'roleName': 'atlasAdmin', 'databaseName': 'admin'}] and not users['ada']['scopes']
	assert users['bob']['roles'] == [{'roleName': 'readWrite', 'databaseName': 'shop', 'collectionName': 'orders'}]
	assert users['bob']['scopes'] == [{'type': 'CLUSTER', 'name': 'c0'}]
	ours = ok(clients_server.get('/groups/%s/databaseUsers/admin/ada' % project))
	assert ours['roles'][0]['roleName'] == 'svcAdmin'
	assert '409' in assistant.refused('create-db-user', projectId=project, username='ada', roles=[{'roleName': 'atlasAdmin'}])
	# The tool had put the address that it came from on the access list.
	assert [e['cidrBlock'] for e in assistant('inspect-access-list', projectId=project)['entries']] == ['127.0.0.1/32']


def test_from_free_to_dedicated(clients_server, assistant, project):
	"""A free cluster becomes a flex one and then a dedicated one."""
	where = {'projectId': project, 'clusterName': 'small'}
	assert assistant('create-free-cluster', projectId=project, name='small', region='US_EAST_1') == {'created': True}
	cluster = settled(clients_server, assistant, project, 'small')
	assert (cluster['instanceType'], cluster['provider'], cluster['region']) == ('FREE', 'AWS', 'US_EAST_1')
	assert cluster['mongoDBVersion'] != 'N/A' and cluster['connectionStrings']['standard']

	upgraded = assistant('upgrade-cluster', **where)
	assert (upgraded['originalTier'], upgraded['targetTier'], upgraded['resolvedProvider']) == ('FREE', 'FLEX', 'AWS')
	kind = lambda: (lambda c: c['state'] == 'IDLE' and c['instanceType'] == 'FLEX' and c)(assistant('inspect-cluster', **where))
	cluster = pass_time(clients_server, kind)
	assert (cluster['provider'], cluster['region']) == ('AWS', 'US_EAST_1')
	assert 'already a Flex' in assistant.refused('upgrade-cluster', targetTier='FLEX', **where)

	assert assistant('upgrade-cluster', **where)['targetTier'] == 'M10'
	kind = lambda: (lambda c: c['state'] == 'IDLE' and c['instanceType'] == 'DEDICATED' and c)(assistant('inspect-cluster', **where))
	cluster = pass_time(clients_server, kind)
	assert (cluster['instanceSize'], cluster['provider'], cluster['region']) == ('M10', 'AWS', 'US_EAST_1')


def test_dedicated_cluster(clients_server, assistant, project):
	where = {'projectId': project, 'clusterName': 'large'}
	made = assistant('create-cluster', provider='AWS', regions=['US_EAST_1', 'US_WEST_2'], instanceSize='M20', mongoDBVersion='8.0',
			backup='CONTINUOUS', encryptionAtRestProvider='NONE', **where)
	assert ID.match(made['clusterId']) and made['computeAutoScaling']
	cluster = settled(clients_server, assistant, project, 'large')
	assert (cluster['instanceSize'], cluster['instanceType'], cluster['paused']) == ('M20', 'DEDICATED', False)

	mine = assistant('list-clusters', projectId=project)
	assert mine['totalCount'] == 1 and mine['clusters'][0]['clusterId'] == made['clusterId']
	everywhere = assistant('list-clusters')['clusters']
	assert {'clusterName': 'large', 'projectId': project} in [{k: c[k] for k in ('clusterName', 'projectId')} for c in everywhere]

	assistant('upgrade-cluster', targetTier='M30', **where)
	assert settled(clients_server, assistant, project, 'large')['instanceSize'] == 'M30'
	changed = assistant('upgrade-cluster', computeAutoScaling=False, **where)
	assert changed['targetTier'] == 'M30' and not changed['computeAutoScaling']
	settled(clients_server, assistant, project, 'large')

	job = assistant('load-sample-dataset', **where)
	done = pass_time(clients_server, lambda: (lambda j: j['state'] == 'COMPLETED' and j)(
		assistant('load-sample-dataset', projectId=project, jobId=job['jobId'])))
	assert done['clusterName'] == 'large' and done['completeDate'] >= done['createDate']

	clients_server.advance(2400)  # four statements, of which two at least are slow; tokens last longer
	since = programs.lines()
	advice = assistant('get-performance-advisor', **where)
	assert advice['slowQueryLogs'] and advice['suggestedIndexes'], advice
	# The tool keeps failures of single calls to itself: the cluster, three kinds of advice, and the statements of three nodes.
	calls = until(lambda: (lambda all: len(all) >= 7 and all)(programs.asked(since)), what='the calls of the tool')
	assert {status for _, _, status in calls} == {200}, calls

	assistant('pause-resume-cluster', action='PAUSE', **where)
	paused = settled(clients_server, assistant, project, 'large')
	assert paused['paused']
	assistant('pause-resume-cluster', action='RESUME', **where)
	assert not settled(clients_server, assistant, project, 'large')['paused']


def test_alerts(clients_server, assistant, project):
	assert assistant('list-alerts', projectId=project)['alerts'] == []
	ok(clients_server.post('/groups/%s/alertConfigs' % project, json={'eventTypeName': 'CLUSTER_ROUTER_IS_MISSING', 'enabled': True,
		'notifications': [{'typeName': 'EMAIL', 'emailAddress': 'ada@example.com'}]}))
	clients_server.control('events', {'groupId': project, 'eventTypeName': 'CLUSTER_ROUTER_IS_MISSING', 'clusterName': 'c0', 'hostname': 'n0',
		'port': 5432})
	alert, = pass_time(clients_server, lambda: assistant('list-alerts', projectId=project)['alerts'])
	assert (alert['eventTypeName'], alert['status']) == ('CLUSTER_MONGOS_IS_MISSING', 'OPEN')
	assert assistant('list-alerts', projectId=project, status='CLOSED')['alerts'] == []


def test_regions(assistant):
	assert assistant('get-regions', provider='AWS')


def test_what_cannot_work_says_why(assistant, project):
	assert '404' in assistant.refused('inspect-cluster', projectId=project, clusterName='nowhere')
	assert '501' in assistant.refused('streams-discover', projectId=project, action='list-workspaces')


def test_the_end(clients_server, assistant):
	"""It tells what it has counted, and gives its token back."""
	assistant.end()
	assert assistant.process.returncode == 0
	for call in ('/api/private/v1.0/telemetry/events', '/api/oauth/revoke'):
		until(lambda: re.search(r' 20\d POST %s ' % call, clients_server.stderr), what=call)
