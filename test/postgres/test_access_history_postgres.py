"""Access history of real servers: who gets in and who does not, from where, why, and through the log's rotation."""
import gzip, os, pathlib, signal, socket, ssl, struct, time

import pytest

from client import ok
from databases import shape, until
from place import psql

USER, PASSWORD, ELSEWHERE = 'app', 'correct horse 4 battery', '127.0.0.9'


class World:
	def __init__(self, place):
		self.place, self.server = place, place.server
		self.id = ok(self.server.post(self.path('clusters'), json={'name': 'shop', **shape(3)}), 201)['id']
		ok(self.server.post(self.path('databaseUsers'), json={
			'username': USER, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': self.server.group,
			'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
		ok(self.server.post(self.path('accessList'), json=[{'ipAddress': '127.0.0.1'}]))
		self.string = place.wait(self.path('clusters/shop'))['connectionStrings']['standard']

	def path(self, what):
		return '/groups/%s/%s' % (self.server.group, what)

	def processes(self, kind):
		return [p for p in ok(self.server.get(self.path('processes')))['results'] if p['typeName'] == kind]

	def directory(self, process):
		return self.place.data / 'engine' / self.id / process['hostname'].split('.')[0]

	def book(self, process):
		return (self.directory(process) / 'data' / 'postmaster.pid').read_text().split('\n')

	def history(self, below='clusters/shop', **query):
		query = '&'.join('%s=%s' % kv for kv in query.items())
		return ok(self.server.get(self.path('dbAccessHistory/%s?%s' % (below, query))))['accessLogs']

	def found(self, **fields):
		"""Entries that have these: the server writes them a moment after its client has its answer."""
		return until(lambda: [e for e in self.history() if all(e.get(k) == v for k, v in fields.items())], 60, str(fields))

	def login(self, statement='select 1', user=USER, password=PASSWORD, database='postgres', **settings):
		head, tail = self.string.split('?', 1)
		return psql('%s/%s?%s' % (head.rsplit('/', 1)[0], database, tail), statement, user, password, **settings)

	def rotate(self, process):
		"""As pg_ctl logrotate does."""
		logs = self.directory(process) / 'log'
		before = set(os.listdir(logs))
		(self.directory(process) / 'data' / 'logrotate').touch()
		os.kill(int(self.book(process)[0]), signal.SIGUSR1)
		return until(lambda: set(os.listdir(logs)) - before, 60, 'another file')

	def knock(self, process, user, tls=True, source=ELSEWHERE):
		"""The first message of a client, from an address of its own; what the server says to it."""
		book = self.book(process)
		with socket.create_connection((book[5], int(book[3])), 30, (source, 0)) as s:
			if tls:
				s.sendall(struct.pack('!ii', 8, 80877103))
				assert s.recv(1) == b'S'
				context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
				context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
				s = context.wrap_socket(s)
			said = b'user\0' + user + b'\0database\0postgres\0\0'
			s.sendall(struct.pack('!ii', 8 + len(said), 196608) + said)
			answer = s.recv(4096)
			s.close()
		assert answer[:1] == b'E', answer
		return answer


@pytest.fixture(scope='module')
def world(start_place):
	return World(start_place())


def test_a_login(world):
	worked, said = world.login(PGAPPNAME='till')
	assert worked, said
	primary, = world.processes('REPLICA_PRIMARY')
	mine = lambda: [e for e in world.history('processes/' + primary['hostname']) if 'application_name=till' in e['logLine']]
	one, = until(mine)
	assert one['authResult'] and one['hostname'] == primary['hostname'] and one['username'] == USER
	assert one['ipAddress'] == '127.0.0.1' and one['authSource'] == 'postgres' and one['groupId'] == world.server.group
	assert 'failureReason' not in one
	assert 'SSL enabled (protocol=TLSv1.3' in one['logLine'], 'over which TLS'
	assert 'identity="app" method=scram-sha-256 (pg_hba.conf:' in one['logLine'], 'how it was known, by which rule'
	assert str(world.place.data) not in str(one), 'nothing of where the service keeps it'
	assert world.history('processes/' + primary['hostname'], authResult='true', nLogs=1) == [one]


def test_a_wrong_password_and_no_such_user(world):
	for user, why in ((USER, ''), ('nobody', 'Role "nobody" does not exist.')):
		worked, said = world.login(user=user, password='wrong')
		assert not worked and 'password authentication failed' in said, said
		for e in world.found(username=user, authResult=False):
			assert e['failureReason'].startswith('password authentication failed for user "%s"' % user)
			assert why in e['failureReason'] and 'SQLSTATE 28P01' in e['failureReason'] and e['ipAddress'] == '127.0.0.1'
			assert 'rule: pg_hba.conf:' in e['logLine'] and 'scram-sha-256' not in e['logLine']


def test_from_the_console(world):
	"""Its statements come from the service's host, over the socket by which the service itself comes."""
	primary, = world.processes('REPLICA_PRIMARY')
	book = world.book(primary)
	for password, worked in ((PASSWORD, True), ('wrong', False)):
		done, said = psql('postgresql:///postgres?host=%s&port=%s' % (book[4], book[3]), 'select 1', USER, password, PGAPPNAME='console')
		assert done == worked, said
	until(lambda: [e for e in world.history(authResult='false') if 'ipAddress' not in e])
	one, = until(lambda: [e for e in world.history(authResult='true') if 'application_name=console' in e['logLine']])
	assert one['username'] == USER and 'ipAddress' not in one
	assert {e['username'] for e in world.history() if 'ipAddress' not in e} == {USER}, "the service's own are not shown"


def test_a_database_that_is_not_there(world):
	"""Authenticated and then refused is one refusal, and no login."""
	worked, said = world.login(database='nothing')
	assert not worked and 'does not exist' in said, said
	entries = world.found(authSource='nothing')
	assert {e['authResult'] for e in entries} == {False} and 'SQLSTATE 3D000' in entries[0]['failureReason']
	assert 'method=scram-sha-256' in entries[0]['logLine']
	hosts = [e['hostname'] for e in entries]
	assert len(hosts) == len(set(hosts)), 'each node that it tried has one'


def test_addresses_and_tls(world):
	primary, = world.processes('REPLICA_PRIMARY')
	assert b'no pg_hba.conf entry' in world.knock(primary, b'app')
	one, = world.found(ipAddress=ELSEWHERE)
	assert not one['authResult'] and one['username'] == USER and one['hostname'] == primary['hostname']
	assert 'no pg_hba.conf entry for host "127.0.0.9"' in one['failureReason'] and 'SQLSTATE 28000' in one['failureReason']
	# Without TLS, from an address that may come.
	world.knock(primary, b'app', tls=False, source='127.0.0.1')
	until(lambda: [e for e in world.history(authResult='false') if 'no encryption' in e['failureReason']])
	# As the service itself, and as nobody whose name can be written.
	world.knock(primary, b'steward_engine')
	world.knock(primary, b'\xff\xfe "x"')
	names = lambda: {e['username'] for e in world.history(ipAddress=ELSEWHERE)}
	assert until(lambda: len(names()) == 3 and names()) == {USER, 'steward_engine', '?? "x"'}
	assert world.history(ipAddress='127.0.0.8') == []
	assert len(world.history(ipAddress=ELSEWHERE)) == 3 and len(world.history(ipAddress=ELSEWHERE, nLogs=2)) == 2
	assert world.history(ipAddress=ELSEWHERE, authResult='true') == []


def test_nothing_but_logins(world):
	"""What sessions say is none, nor what the service does itself."""
	worked, said = world.login("do $$ begin raise log 'connection authorized: user=ghost database=postgres'; end $$; "
				   "do $$ begin raise exception 'no' using errcode = '28P01'; end $$", PGAPPNAME='ghost')
	assert not worked, said
	primary, = world.processes('REPLICA_PRIMARY')
	mine = lambda: [e for e in world.history('processes/' + primary['hostname']) if 'application_name=ghost' in e['logLine']]
	assert len(until(mine)) == 1
	entries = world.history()
	assert not [e for e in entries if 'user=ghost' in e['logLine'] or 'SQLSTATE 28P01' in e['logLine'] and 'no:' in e['logLine']]
	assert not [e for e in entries if e['username'] == 'steward_engine' and e['authResult']]
	assert {e['ipAddress'] for e in entries if 'ipAddress' in e} == {'127.0.0.1', ELSEWHERE}
	# Its own coming and going is left out of the log that users get, too; theirs is there.
	log = gzip.decompress(world.server.get(world.path('clusters/%s/logs/db.gz' % primary['hostname'])).content)
	assert b'connection authorized: user=app' in log and b'connection authorized: user=steward_engine' not in log
	# It tells by which method somebody was let in, and not where the rules lie on the host.
	assert b'connection authenticated: identity=\\"app\\" method=scram-sha-256"' in log and b'pg_hba.conf:' not in log


def test_through_rotation(world):
	primary, = world.processes('REPLICA_PRIMARY')
	start = int(time.time() * 1000)
	first = world.rotate(primary)
	names = ['turn-%d' % n for n in range(12)]
	for n, name in enumerate(names):
		worked, said = world.login(PGAPPNAME=name)
		assert worked, said
		if n % 4 == 3:
			time.sleep(1)  # the names of files have seconds
			first |= world.rotate(primary)
	assert len(first) >= 4
	turns = lambda: [e['logLine'].split('application_name=')[1].split()[0] for e in
			 world.history('processes/' + primary['hostname'], start=start, authResult='true')
			 if 'application_name=turn-' in e['logLine']]
	assert until(lambda: len(turns()) >= len(names) and turns()) == names[::-1], 'each once, newest first'
	assert world.history(end=start - 3600 * 1000) == []


def test_a_log_that_is_large(world):
	"""A hundred megabytes are read from their end; what comes first is found too."""
	primary, = world.processes('REPLICA_PRIMARY')
	logs = world.directory(primary) / 'log'
	newest = max(logs.glob('postgresql-*.json'))
	owner = newest.stat()
	old = time.gmtime(time.time() - 86400)
	stamp = time.strftime('%Y-%m-%d %H:%M:%S.000 UTC', old)
	line = ('{"timestamp":"%s","user":"old","dbname":"postgres","pid":1,"remote_host":"127.0.0.1","session_id":"1.%%d","line_num":3,'
		'"ps":"authentication","error_severity":"LOG","message":"connection authorized: user=old database=postgres"}\n' % stamp)
	noise = '{"timestamp":"%s","pid":1,"error_severity":"LOG","message":"%s"}\n' % (stamp, 'x' * 2000)
	large = logs / time.strftime('postgresql-%Y%m%d-%H%M%S.json', old)
	with open(large, 'w') as f:
		f.write(line % 1)
		for _ in range(50):
			f.write(noise * 1000)
		f.write('{"timestamp":"%s","message":"%s"}\n' % (stamp, 'y' * 3000000))
		f.write(line % 2 + '{"timestamp":"%s","user":"old' % stamp)
	os.chown(large, owner.st_uid, owner.st_gid)
	try:
		assert large.stat().st_size > 100 << 20
		before = peak(world.server.pid)
		old = [e for e in world.history('processes/' + primary['hostname']) if e['username'] == 'old']
		assert len(old) == 2 and [e['logLine'] for e in old] == 2 * ['connection authorized: user=old database=postgres']
		assert peak(world.server.pid) - before < 60 << 10, 'kilobytes of memory'
	finally:
		large.unlink()


def peak(pid):
	"""The most memory that a process ever had, in kilobytes."""
	status = pathlib.Path('/proc/%d/status' % pid).read_text()
	return int(status.split('VmHWM:')[1].split()[0])
