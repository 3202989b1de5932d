"""steward connect: from a cluster's name to SQL. The user that it makes has the caller's rights and is gone afterwards, the
address is let in for an hour, the server is verified, and no password is seen where others could see it."""
import datetime, json, os, pathlib, pty, re, select, signal, subprocess

import pytest

import client
from client import SANITIZER, binary, environment, in_force, ok, until
from databases import shape

DONE, NOT_DONE, USAGE = 0, 1, 2
HERE = '127.0.0.1'
MAKES, LETS_IN = 'GROUP_DATABASE_ACCESS_ADMIN', 'GROUP_NETWORK_ACCESS_MANAGER'


class World:
	def __init__(self, place, home):
		self.place, self.server, self.home = place, place.server, home
		ok(self.server.post(self.path('clusters'), json={'name': 'one', **shape(1)}), 201)
		place.wait(self.path('clusters/one'))

	def path(self, what):
		return '/groups/%s/%s' % (self.server.group, what)

	def environment(self, **env):
		return environment({'HOME': str(self.home), 'XDG_CONFIG_HOME': '', 'XDG_CACHE_HOME': '', 'STEWARD_PROFILE': '',
				    'STEWARD_DATA': str(self.server.data_dir), 'PSQLRC': '/dev/null', **env})

	def run(self, *args, stdin='', cluster='one', **env):
		done = subprocess.run([binary(), 'connect', cluster, *map(str, args)], input=stdin, capture_output=True, text=True,
				      timeout=180, env=self.environment(**env))
		assert not SANITIZER.search(done.stderr), done.stderr
		return done

	def sql(self, statement, *args, **more):
		"""What psql prints, without its headings."""
		done = self.run('-c', '\\pset format unaligned', '-c', '\\pset tuples_only on', '-c', statement, *args, **more)
		assert done.returncode == DONE, done
		return done.stdout.split('Output format is unaligned.\n')[1].strip()

	def users(self):
		return [u for u in ok(self.server.get(self.path('databaseUsers')))['results'] if u['username'].startswith('connect-')]

	def entries(self):
		return ok(self.server.get(self.path('accessList')))['results']

	def nobody_let_in(self):
		for e in self.entries():
			in_force(self.server, self.server.delete(self.path('accessList/' + e['ipAddress'])), 204)

	def account(self, tmp_path, *roles):
		"""The profile of a service account with these roles in the project."""
		made = ok(self.server.post(self.path('serviceAccounts'), json={'name': client.unique('a'), 'description': 'x',
			'roles': list(roles), 'secretExpiresAfterHours': 8}), 201)
		file = tmp_path / 'profile'
		file.write_text('base-url = %s\nca-file = %s\nclient-id = %s\nclient-secret = %s\nproject = %s\n' % (
			self.server.base_url, self.server.ca_file, made['clientId'], made['secrets'][0]['secret'], self.server.group))
		file.chmod(0o600)
		return {'STEWARD_DATA': '', 'STEWARD_PROFILE': str(file)}


@pytest.fixture(scope='module')
def world(start_place, tmp_path_factory):
	return World(start_place(), tmp_path_factory.mktemp('home'))


def in_an_hour(server, text):
	now = datetime.datetime.fromisoformat(server.control('clock', method='GET')['now'].replace('Z', '+00:00'))
	left = (datetime.datetime.fromisoformat(text.replace('Z', '+00:00')) - now).total_seconds()
	return 3000 < left <= 3601


def test_one_command_from_a_cluster_to_a_row(world):
	world.nobody_let_in()
	done = world.run('-c', "create table tea(kind text); insert into tea values ('green'); select kind from tea")
	assert done.returncode == DONE and 'green' in done.stdout, done
	assert '%s is on the project\'s access list' % HERE in done.stderr
	assert world.users() == [], 'the user went with psql'
	entry, = world.entries()
	assert entry['ipAddress'] == HERE and entry['comment'] == 'steward connect' and in_an_hour(world.server, entry['deleteAfterDate'])
	again = world.run('-c', "insert into tea values ('black')")
	assert again.returncode == DONE and again.stderr == '' and len(world.entries()) == 1, again
	assert world.sql('select count(*) from tea') == '2', 'what another of its users made can be used'
	assert world.sql('select session_user').startswith('connect-')
	assert world.sql('select ssl from pg_stat_ssl where pid = pg_backend_pid()') == 't'


def test_an_entry_that_covers_is_left_alone(world):
	world.nobody_let_in()
	ok(world.server.post(world.path('accessList'), json=[{'cidrBlock': '127.0.0.0/8', 'comment': 'the house'}]))
	before = world.entries()
	assert world.run('-c', 'select 1').stderr == '' and world.entries() == before
	in_force(world.server, world.server.delete(world.path('accessList/127.0.0.0%2F8')), 204)


def test_the_password_is_not_to_be_seen(world):
	"""Neither among the arguments, nor in the log; and a signal that ends the client leaves no user behind."""
	p = subprocess.Popen([binary(), 'connect', 'one', '-c', 'select pg_sleep(600)'], stdout=subprocess.PIPE,
			     stderr=subprocess.PIPE, text=True, env=world.environment())
	child = psql_of(p)
	secret = environ(child)['PGPASSWORD']
	user, = world.users()
	assert len(secret) == 32 and user['username'] in arguments(child) and in_an_hour(world.server, user['deleteAfterDate'])
	assert [s['name'] for s in user['scopes']] == ['one'] and [r['roleName'] for r in user['roles']] == ['svcAdmin']
	assert secret not in arguments(child) + arguments(p.pid)
	p.send_signal(signal.SIGTERM)
	out, err = p.communicate(timeout=120)
	assert p.returncode != DONE and secret not in out + err, (out, err)
	assert world.users() == [] and not os.path.exists('/proc/%d' % child)
	assert secret not in world.server.stderr + world.server.stdout


def test_a_session_on_a_terminal(world):
	"""Ctrl-C is for the statement, as in any psql; leaving psql takes the user away."""
	pid, fd = pty.fork()
	if pid == 0:
		os.execve(binary(), [binary(), 'connect', 'one'], {**world.environment(), 'TERM': 'dumb', 'PSQL_PAGER': 'cat'})
	shown = ''

	def see(text):
		nonlocal shown
		while text not in shown:
			assert select.select([fd], [], [], 120)[0], shown
			shown += os.read(fd, 65536).decode(errors='replace')
		shown = shown.split(text, 1)[1]

	def type_(text):
		os.write(fd, text.encode())
	see('you are connect-')
	see('postgres=')
	type_('select pg_sleep(600);\n')
	until(lambda: 'pg_sleep(600)' in world.sql("select string_agg(query, '') from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()"))
	type_('\x03')
	see('canceling statement due to user request')
	assert len(world.users()) == 1
	type_('select 6 * 7;\n')
	see('42')
	type_('\\q\n')
	assert os.waitpid(pid, 0)[1] == 0
	os.close(fd)
	assert world.users() == []


def children(pid):
	try:
		return [int(c) for c in pathlib.Path('/proc/%d/task/%d/children' % (pid, pid)).read_text().split()]
	except OSError:
		return []


def arguments(pid):
	try:
		return pathlib.Path('/proc/%d/cmdline' % pid).read_text().replace('\0', ' ')
	except OSError:
		return ''


def environ(pid):
	try:
		return dict(v.split('=', 1) for v in pathlib.Path('/proc/%d/environ' % pid).read_text().split('\0') if '=' in v)
	except OSError:
		return {}


def psql_of(connect):
	"""The client's child, once it is psql: between its fork and its exec it has the client's own arguments and environment."""
	return until(lambda: [c for c in children(connect.pid) if 'PGPASSWORD' in environ(c) and 'pg_sleep' in arguments(c)], 60, 'psql')[0]


def test_print_gives_a_line_to_paste(world):
	world.sql('create database shop')
	done = world.run('--print', '--database', 'shop', '-c', "select 'it''s ' || current_database()", '--hours', '2')
	assert done.returncode == DONE and done.stdout.count('\n') == 1, done
	assert 'sslmode=verify-full&sslrootcert=%s/.cache/steward/%s.crt' % (world.home, world.server.group) in done.stdout
	assert 'target_session_attrs=read-write' in done.stdout and 'sslmode=require' not in done.stdout
	user, = world.users()
	assert user['deleteAfterDate'] in done.stderr, 'when it ends'
	pasted = subprocess.run(['bash', '-c', done.stdout], capture_output=True, text=True, timeout=60,
				env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent'})
	assert pasted.returncode == 0 and "it's shop" in pasted.stdout, pasted
	password = re.match("PGPASSWORD='([^']+)'", done.stdout).group(1)
	assert password not in world.server.stderr
	in_force(world.server, world.server.delete(world.path('databaseUsers/admin/' + user['username'])), 204)
	pasted = subprocess.run(['bash', '-c', done.stdout], capture_output=True, text=True, timeout=60, env={'PATH': os.environ['PATH']})
	assert pasted.returncode == 2 and 'password authentication failed' in pasted.stderr


def test_the_rights_are_the_callers(world, tmp_path):
	world.sql('create table if not exists shelf(n int)')
	reader = world.account(tmp_path, 'GROUP_DATA_ACCESS_READ_ONLY', MAKES, LETS_IN)
	assert world.sql('select count(*) from shelf', **reader) == '0'
	denied = world.run('-c', 'insert into shelf values (1)', **reader)
	assert denied.returncode == NOT_DONE and 'permission denied' in denied.stderr
	writer = world.account(tmp_path, 'GROUP_DATA_ACCESS_READ_WRITE', MAKES, LETS_IN)
	assert world.sql('insert into shelf values (1) returning n', **writer).startswith('1')
	denied = world.run('--read-only', '-c', 'insert into shelf values (2)', **writer)
	assert denied.returncode == NOT_DONE and 'permission denied' in denied.stderr
	assert world.users() == []


@pytest.mark.parametrize('roles, needed', [
	(['GROUP_DATA_ACCESS_READ_WRITE'], [MAKES, '--user NAME']), ([MAKES], ['GROUP_DATA_ACCESS_READ_ONLY', '--user NAME']),
	(['GROUP_DATA_ACCESS_READ_WRITE', MAKES], [LETS_IN, HERE])])
def test_what_is_missing_is_named(world, tmp_path, roles, needed):
	world.nobody_let_in()
	done = world.run('-c', 'select 1', **world.account(tmp_path, *roles))
	assert done.returncode == NOT_DONE and done.stdout == '' and all(n in done.stderr for n in needed), done
	assert world.users() == [] and world.entries() == [], 'nothing is left'


def test_a_user_of_ones_own(world, tmp_path):
	ok(world.server.post(world.path('databaseUsers'), json={'username': 'the app', 'password': 'correct horse 4', 'databaseName':
		'admin', 'groupId': world.server.group, 'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
	only_network = world.account(tmp_path, LETS_IN)
	assert world.sql('select session_user', '--user', 'the app', PGPASSWORD='correct horse 4', **only_network) == 'the app'
	wrong = world.run('--user', 'the app', '-c', 'select 1', '--timeout', '1', PGPASSWORD='wrong horse 4', **only_network)
	assert wrong.returncode == 2 and 'password authentication failed' in wrong.stderr
	printed = world.run('--user', 'the app', '--print', **only_network)
	assert printed.stdout.startswith("psql 'postgresql://the%20app@") and world.users() == []
	assert world.run('--user', 'x', '--read-only').returncode == USAGE


def test_a_script_from_standard_input_stops_at_its_error(world):
	done = world.run(stdin='create table half(n int);\nselect nonsense;\ncreate table whole(n int);\n')
	assert done.returncode == 3 and 'nonsense' in done.stderr
	assert world.sql("select to_regclass('half'), to_regclass('whole')") == 'half|'


def test_what_cannot_be_connected_to(world):
	gone = world.run(cluster='nothing')
	assert gone.returncode == NOT_DONE and 'no cluster "nothing"' in gone.stderr
	done = world.run('--database', 'nothing', '-c', 'select 1')
	assert done.returncode == 2 and 'database "nothing" does not exist' in done.stderr and world.users() == []
	assert world.run('-c', 'select 1', PATH='/nonexistent').returncode == USAGE
	missing = subprocess.run([binary(), 'connect'], capture_output=True, text=True, env=world.environment())
	assert missing.returncode == USAGE and 'steward connect NAME' in missing.stderr
	ok(world.server.patch(world.path('clusters/one'), json={'paused': True}))
	world.place.wait(world.path('clusters/one'))
	paused = world.run('-c', 'select 1')
	assert paused.returncode == NOT_DONE and 'clusters resume one' in paused.stderr and world.users() == []
	ok(world.server.patch(world.path('clusters/one'), json={'paused': False}))
	world.place.wait(world.path('clusters/one'))


def test_routers_and_flex_clusters_too(world):
	ok(world.server.post(world.path('clusters'), json={'name': 'wide', **shape(1, shards=2)}), 201)
	ok(world.server.post(world.path('flexClusters'), json={'name': 'small', 'providerSettings': {
		'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}}), 201)
	early = world.run(cluster='wide')
	assert early.returncode == DONE or 'clusters wait wide' in early.stderr, early
	for kind, name in (('clusters', 'wide'), ('flexClusters', 'small')):
		world.place.wait(world.path('%s/%s' % (kind, name)))
		assert world.sql('select 40 + 2', cluster=name) == '42'
	shown = json.loads(subprocess.run([binary(), 'clusters', 'get', 'wide', '-o', 'json'], capture_output=True, text=True,
		env=world.environment()).stdout)
	text = subprocess.run([binary(), 'clusters', 'get', 'wide'], capture_output=True, text=True, env=world.environment()).stdout
	assert 'psql      steward connect wide\n' in text and shown['connectionStrings']['standard'] in text and '+srv' not in text


def test_the_service_may_be_gone_when_psql_ends(world):
	"""The last of the module. The session goes on without it; what could not be taken away is told, with its end."""
	p = subprocess.Popen([binary(), 'connect', 'one', '-c', 'select pg_sleep(6)'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
			     text=True, env=world.environment())
	psql_of(p)
	world.server.kill()
	out, err = p.communicate(timeout=120)
	world.server = world.place.start()
	user, = world.users()
	assert p.returncode == DONE and 'pg_sleep' in out, (out, err)
	assert 'user %s could not be deleted; it ends by itself at %s' % (user['username'], user['deleteAfterDate']) in err
	in_force(world.server, world.server.delete(world.path('databaseUsers/admin/' + user['username'])), 204)
	world.place.wait(world.path('clusters/one'))


def test_logs_are_followed_as_they_are_written(world):
	"""A statement that fails is in the log; each such line comes once, however often the service is asked."""
	logs = [binary(), 'logs', 'one', '--follow', '--since', '5m']
	following = subprocess.Popen(logs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=world.environment(),
				     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a shell's "&" ignores it
	os.set_blocking(following.stdout.fileno(), False)
	seen = ['']

	def shown(text):
		seen[0] += (following.stdout.read() or b'').decode()
		assert following.poll() is None, (seen, following.stderr.read())
		return text in seen[0]
	try:
		until(lambda: shown('ready to accept connections'))
		marks = [client.unique('nothing').replace('-', '_') for _ in range(2)]
		for mark in marks:
			assert world.run('-c', 'select * from %s' % mark).returncode != DONE
			until(lambda: shown('relation "%s" does not exist' % mark))
		asked = world.server.stderr.count('/logs/db.gz')
		until(lambda: world.server.stderr.count('/logs/db.gz') >= asked + 3)
		for mark in marks:
			assert shown(mark) and seen[0].count('relation "%s" does not exist' % mark) == 1, seen[0]
		assert re.search(r'^20\S+ \S+ UTC  ERROR    connect-\w+@postgres  relation', seen[0], re.M), seen[0]
		assert re.search(r'^    statement: select \* from %s$' % marks[0], seen[0], re.M), seen[0]
	finally:
		following.send_signal(signal.SIGINT)
		_, errors = following.communicate(timeout=60)
	assert not SANITIZER.search(errors.decode()), errors
