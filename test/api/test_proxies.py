"""--proxies: a balancer's PROXY header says whose connection it is, and from a balancer nothing else is taken."""
import http.client, ipaddress, json, socket, ssl, struct, time

import pytest

import client

PROXY, STRANGER = '127.0.0.2', '127.0.0.3'
CLIENT, CLIENT6 = '203.0.113.7', '2001:db8::7'
PLACES = 8  # those of calls before may not be free yet
START = b'\r\n\r\n\0\r\nQUIT\n'


@pytest.fixture(scope='module')
def front():
	s = client.Server('--proxies', '10.9.0.0/16, ' + PROXY, '--connections-per-address', PLACES, '--header-seconds', 5)
	yield s
	s.stop()


def connect(server, *parts, source=PROXY, pause=0.05):
	"""A connection over which these bytes went, in as many pieces; then TLS."""
	s = socket.create_connection((server.host, server.port), timeout=60, source_address=(source, 0))
	s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
	for part in parts:
		s.sendall(part)
		time.sleep(pause)
	context = ssl.create_default_context(cafile=server.ca_file)
	context.check_hostname = False
	return context.wrap_socket(s, server_hostname='localhost')


def call(server, s, method='GET', path='/', body=None, token=None):
	c = http.client.HTTPSConnection('localhost')
	c.sock = s
	c.request(method, '/api/svc/v2' + path, body and json.dumps(body), {
		'Authorization': 'Bearer ' + (token or server.token()), 'Content-Type': 'application/json'})
	answer = c.getresponse()
	return answer.status, json.loads(answer.read())


def text(address, family='TCP4'):
	return ('PROXY %s %s 192.0.2.1 40000 443\r\n' % (family, address)).encode()


def binary(address, command=0x21, extra=b''):
	family = socket.AF_INET6 if ':' in address else socket.AF_INET
	own = '::1' if ':' in address else '192.0.2.1'
	addresses = socket.inet_pton(family, address) + socket.inet_pton(family, own) + struct.pack('!HH', 40000, 443)
	return START + struct.pack('!BBH', command, 0x21 if ':' in address else 0x11, len(addresses) + len(extra)) + \
		addresses + extra


def seen(server, name, s):
	"""The address that the event of a change over this connection names."""
	status, doc = call(server, s, 'POST', '/groups', {'name': name, 'orgId': server.org})
	s.close()
	assert status == 200, doc
	events = server.get('/orgs/%s/events?eventType=GROUP_CREATED' % server.org).json()['results']
	return next(str(ipaddress.ip_address(e['remoteAddress'])) for e in events if e['groupId'] == doc['id'])


@pytest.mark.parametrize('name, header, address', [
	('text', (text(CLIENT),), CLIENT),
	('text6', (text(CLIENT6, 'TCP6'),), CLIENT6),
	('binary', (binary(CLIENT),), CLIENT),
	('binary6', (binary(CLIENT6),), CLIENT6),
	('more', (binary(CLIENT, extra=b'\x04\0\x01x' * 100),), CLIENT),
	('pieces', tuple(bytes([b]) for b in text(CLIENT)), CLIENT),
	('pieces2', (binary(CLIENT)[:5], binary(CLIENT)[5:20], binary(CLIENT)[20:]), CLIENT),
	('unknown', (b'PROXY UNKNOWN\r\n',), PROXY),
	('local', (binary(CLIENT, command=0x20),), PROXY)])
def test_the_client_is_whom_the_header_names(front, name, header, address):
	assert seen(front, name, connect(front, *header, pause=0.002)) == address


@pytest.mark.parametrize('header', [
	b'', b'PROXY TCP4 nonsense 192.0.2.1 1 2\r\n', b'PROXY TCP4 ' + b'1' * 200, text(CLIENT6, 'TCP4'),
	START + b'\x31\x11\0\x0c' + bytes(12), START + b'\x21\x11\0\x04' + bytes(4), START + b'\x21\x11\xff\xff',
	b'GET / HTTP/1.1\r\n\r\n', text(CLIENT) + text(CLIENT)])
def test_nothing_else_is_taken(front, header):
	with pytest.raises((ssl.SSLError, OSError)):
		connect(front, header)


def test_a_header_that_does_not_come(front):
	s = socket.create_connection((front.host, front.port), timeout=60, source_address=(PROXY, 0))
	s.sendall(b'PROXY TCP4 ')
	try:
		assert s.recv(1) == b''  # after --header-seconds
	except ConnectionResetError:  # what was sent lay unread
		pass


def test_others_speak_for_themselves(front):
	assert seen(front, 'stranger', connect(front, source=STRANGER)) == STRANGER
	with pytest.raises((ssl.SSLError, OSError)):
		connect(front, text(CLIENT), source=STRANGER)


def test_connections_count_for_the_client(front):
	held = [connect(front, text('203.0.113.8')) for _ in range(PLACES)]
	with pytest.raises((ssl.SSLError, OSError)):
		connect(front, text('203.0.113.8'))
	assert call(front, connect(front, text('203.0.113.9')))[0] == 200
	for s in held:
		s.close()

	def again():
		try:
			return call(front, connect(front, text('203.0.113.8')))[0] == 200
		except OSError:
			return False
	client.until(again, what='a place')


def test_access_lists_hold_the_client(front):
	path = '/orgs/%s/serviceAccounts' % front.org
	account = front.post(path, json={'name': 'behind', 'description': 'a balancer', 'roles': ['ORG_OWNER'],
					 'secretExpiresAfterHours': 24}).json()
	token = front.token({'clientId': account['clientId'], 'clientSecret': account['secrets'][0]['secret']})
	listed = front.post('%s/%s/accessList' % (path, account['clientId']), json=[{'ipAddress': CLIENT}])
	assert listed.status_code == 200, listed.text
	assert call(front, connect(front, text(CLIENT)), token=token)[0] == 200
	assert call(front, connect(front, text('203.0.113.99')), token=token)[0] == 403


@pytest.mark.parametrize('value', ['nonsense', '10.0.0.0/33', '10.0.0.1,', ''])
def test_the_option_is_checked(value):
	with pytest.raises(AssertionError, match='--proxies: '):
		client.Server('--proxies', value)
