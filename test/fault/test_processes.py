"""Every process that the service starts, looked at from outside: who it is, which rights it has, what it has open. Each has no more
than its work needs."""
import json, os, pathlib, pwd, re, shutil, socket, subprocess, sys, threading, time

import pytest

import client, databases
from client import ok, until
from ledger import restored, take
from test_hostile import is_sanitized, memory
from processes import SETS, descriptors, status, uid, users
from test_unit import Unit, directive

NOBODY = 65534


def as_service():
	"""A command's beginning: as the unit starts the service, whose capabilities a change of users does not take away."""
	user, caps = directive('User'), ','.join(['-all', *('+' + c[4:].lower() for c in directive('AmbientCapabilities').split())])
	return ['setpriv', '--reuid=' + user, '--regid=' + user, '--clear-groups', '--no-new-privs',
		*('--%s=%s' % (what, caps) for what in ('bounding-set', 'inh-caps', 'ambient-caps'))]


def helper(name, *args, kind=socket.SOCK_STREAM, prefix=()):
	"""A helper program that has its standard input open and nothing to read: all that it gives up, it has given up by itself."""
	program = pathlib.Path(client.binary()).parent / name
	if not program.exists():
		pytest.skip('%s is not built' % name)
	ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
	extra = os.open('/etc/passwd', os.O_RDONLY)  # as a descriptor that the service would have forgotten to close
	os.set_inheritable(extra, True)
	process = subprocess.Popen([*prefix, program, *args], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, close_fds=False)
	theirs.close()
	os.close(extra)
	return process, ours


@pytest.mark.parametrize('packaged', [False, True])
@pytest.mark.parametrize('name,args,kind,keeps_user', [
	('steward-saml', [], socket.SOCK_STREAM, False),
	('steward-token', ['/nonexistent/module.so', 'token'], socket.SOCK_SEQPACKET, True),
])
def test_helper_programs(name, args, kind, keeps_user, packaged):
	root = os.geteuid() == 0
	if packaged and (not root or not shutil.which('setpriv')):
		pytest.skip('needs root and setpriv')
	process, ours = helper(name, *args, kind=kind, prefix=as_service() if packaged else [])
	try:
		until(lambda: status(process.pid).get('Seccomp') == '2', what='%s gives up its rights before it reads anything' % name)
		told = status(process.pid)
		assert {told[k] for k in SETS} == {'0' * 16} and told['NoNewPrivs'] == '1' and process.poll() is None
		if root:
			started = pwd.getpwnam(directive('User')) if packaged else pwd.getpwuid(0)
			assert told['CapBnd'] == '0' * 16
			assert told['Uid'].split() == [str(started.pw_uid if keeps_user else NOBODY)] * 4
			assert told['Gid'].split() == [str(started.pw_gid if keeps_user else NOBODY)] * 4
			assert not told['Groups'].strip() or keeps_user
			assert set(descriptors(process.pid)) == {0, 1, 2} and descriptors(process.pid)[2] == '/dev/null'
	finally:
		ours.close()
		process.kill()
		process.wait()


class Watcher(threading.Thread):
	"""Everything that a service starts, by program: as it was seen, many times a second. A process that has not become a program yet
	is the service itself."""

	def __init__(self, server, binary):
		super().__init__(daemon=True)
		self.pid, self.binary, self.seen, self.over, self.known, self.memory = server.pid, str(binary), {}, False, {}, {}
		self.start()

	def look(self, pid):
		"""At each program once, and again a little later, when it has opened what it works on."""
		program, now = os.readlink('/proc/%d/exe' % pid), time.monotonic()
		if program == self.binary or self.known.get((pid, program), 0) > now:
			return
		self.known[pid, program] = now + (0.1 if (pid, program) not in self.known else 5)
		told = status(pid)
		facts = (told['Uid'], told['Gid'], told['Groups'].strip(), *(told[k] for k in SETS), told['CapBnd'], told['NoNewPrivs'])
		self.memory.setdefault(os.readlink('/proc/%d/cwd' % pid), set()).add(re.search(r'Max address space +(\S+)',
			pathlib.Path('/proc/%d/limits' % pid).read_text()).group(1))
		self.seen.setdefault(os.path.basename(program), {}).setdefault(facts, set()).update(descriptors(pid).items())

	def children(self, pid):
		for task in os.listdir('/proc/%d/task' % pid):
			with open('/proc/%d/task/%s/children' % (pid, task)) as f:
				for child in f.read().split():
					yield int(child)

	def run(self):
		while not self.over:
			waiting = [self.pid]
			while waiting:
				pid = waiting.pop()
				try:
					waiting += self.children(pid)
					if pid != self.pid:
						self.look(pid)
				except (OSError, KeyError):
					continue  # it has ended
			time.sleep(0.01)


def as_user(uid, *command, **kw):
	return subprocess.run(['setpriv', '--reuid=%d' % uid, '--regid=%d' % pwd.getpwuid(uid).pw_gid, '--clear-groups', *map(str, command)],
		capture_output=True, text=True, cwd='/', timeout=60, **kw)


def opens(uid, paths):
	"""Which of the files that user can open."""
	code = 'import sys\nfor p in sys.stdin.read().split("\\n"):\n\ttry: open(p, "rb").read(1); print(p)\n\texcept OSError: pass'
	done = as_user(uid, sys.executable, '-Sc', code, input='\n'.join(map(str, paths)))
	assert done.returncode == 0, done.stderr
	return set(done.stdout.split('\n')) - {''}


class Superuser:
	"""In SQL, with the system user of a server: what a tenant has who has found the bug."""

	def __init__(self, c):
		node, self.uid = next(iter(c.nodes().values())), uid(c.pid(next(iter(c.nodes()))))
		conf = (c.directory(node['name']).parent / 'conf' / 'postgresql.conf').read_text()
		self.socket, self.port = re.search(r"^unix_socket_directories = '(.*)'", conf, re.M).group(1), node['port']

	def psql(self, sql, socket=None, port=None):
		return as_user(self.uid, '/usr/bin/psql', '-X', '-Atq', '-w', '-h', socket or self.socket, '-p', port or self.port, '-U',
			'steward_engine', '-d', 'postgres', '-v', 'ON_ERROR_STOP=1', '-c', sql)

	def runs(self, command):
		"""What a program prints that the server starts."""
		return self.psql("create temp table if not exists o (t text); copy o from program '%s'; select t from o"
			% command.replace("'", "''"))


def exported(c, snapshot):
	"""How much memory the service took for it."""
	pathlib.Path('/proc/%d/clear_refs' % c.server.pid).write_text('5')
	before = memory(c.server)
	bucket = ok(c.server.post('/groups/%s/backup/exportBuckets' % c.server.group, json={
		'bucketName': 'exports', 'cloudProvider': 'AWS', 'iamRoleId': 'a' * 24}))['_id']
	job = ok(c.server.post(c.path + '/backup/exports', json={'snapshotId': snapshot['id'], 'exportBucketId': bucket}))['id']
	assert until(lambda: (lambda d: d['state'] in ('Successful', 'Failed') and d['state'])(
		ok(c.server.get('%s/backup/exports/%s' % (c.path, job)))), 120, 'the export') == 'Successful'
	return memory(c.server, 'VmHWM') - before


@pytest.fixture(scope='module')
def packaged():
	"""Two projects with a cluster each, on a service as the package starts it; everything that it started, as seen meanwhile."""
	if os.geteuid() != 0 or len(users()) < 2 or not databases.installed() or not shutil.which('setpriv'):
		pytest.skip('needs root, PostgreSQL, setpriv and the users steward-db-N (script/bootstrap makes them)')
	unit = Unit()
	try:
		buckets = unit.root / 'buckets'
		buckets.mkdir(mode=0o700)
		shutil.chown(buckets, directive('User'))
		unit.args = '--export-buckets', buckets
		s = unit.start()
		watcher = Watcher(s, unit.root / 'steward')
		databases.allow(s)
		mine = unit.cluster('mine', **databases.shape(nodes=1), backupEnabled=True)
		first, s.group = s.group, ok(s.post('/groups', json={'name': 'another', 'orgId': s.org}))['id']
		other = unit.cluster('other', **databases.shape(nodes=1))
		mine.settled()
		other.settled()
		s.group = first
		mine.change(**{k: v for k, v in databases.shape(nodes=3).items() if k == 'replicationSpecs'})
		mine.ask("create table wide(a text); insert into wide values (repeat('x', 33000000))")
		snapshot = take(mine)
		mine.settled()
		assert restored(mine, ok(s.post(mine.path + '/backup/restoreJobs', json={'deliveryType': 'automated', 'snapshotId': snapshot['id'],
			'targetClusterName': 'mine', 'targetGroupId': first})), mine)
		mine.settled()
		before = set(watcher.memory)
		taken = exported(mine, snapshot)
		watcher.over = True
		watcher.join()
		servers = {d: m for d, m in watcher.memory.items() if d not in before and '/throwaway/' in d}
		yield unit, mine, other, watcher.seen, (taken, set.union(*servers.values()))
	finally:
		unit.wipe()


def test_every_process_has_no_more_than_it_needs(packaged):
	unit, mine, other, seen, _ = packaged
	service, shared, maker = uid(unit.server.pid), pwd.getpwnam('steward-db').pw_uid, users()[-1]
	assert {'postgres', 'initdb', 'pg_basebackup'} <= set(seen), seen.keys()
	theirs = uid(mine.pid(mine.primary())), uid(other.pid(other.primary()))
	assert len({service, shared, maker, *theirs}) == 5 and set(theirs) <= set(users()), 'a user for each project'
	for program, kinds in seen.items():
		for (ids, groups, more, *sets, no_new), opened in kinds.items():
			who = '%s: %s' % (program, ids)
			assert len(set(ids.split())) == 1 and not more and set(sets) == {'0' * 16} and no_new == '1', (who, sets, no_new)
			# What makes empty databases, before they are anybody's, has a user that no project has or shares.
			assert int(ids.split()[0]) in ({*theirs, maker} if program in ('initdb', 'postgres', 'locale', 'dash', 'test', 'sh') else theirs), who
			own = {theirs[0]: mine.id, theirs[1]: other.id}.get(int(ids.split()[0]), 'pool')
			for number, what in opened:
				if what.startswith(str(unit.data)):
					below = pathlib.Path(what).relative_to(unit.data).parts
					assert below[0] == 'engine' and below[1] in (own, 'run', 'pool', 'throwaway', 'lib'), (who, what)
				else:
					assert re.match(r'/dev/|/proc/|/usr/|/etc/|/memfd|/SYSV|pipe:|socket:|anon_inode:', what), (who, what)
	told = status(unit.server.pid)
	assert told['NoNewPrivs'] == '1' and int(told['CapBnd'], 16) == int(told['CapEff'], 16), 'of the service: what the unit says'


def test_an_export_is_bounded(packaged):
	"""Rows of users, as long as one may be: the service passes on what it reads, and the processes that make JSON of them have a bound."""
	*_, (taken, limits) = packaged
	assert is_sanitized() or taken < 16 << 20
	assert limits and all(l.isdigit() and int(l) < 3 << 30 for l in limits), limits


def test_the_helper_of_the_sql_editor(packaged):
	"""It reads what a database sends. By then it is nobody, and has its pipes, its connection and the system calls for them."""
	unit, mine, *_ = packaged
	program, at = unit.root / 'steward-sql', Superuser(mine)
	if not program.exists():
		shutil.copy(pathlib.Path(client.binary()).parent / 'steward-sql', program)
	asked = {'host': at.socket, 'port': int(at.port), 'user': databases.USER, 'password': databases.PASSWORD, 'database': 'postgres',
		'write': False, 'seconds': 30, 'rows': 10, 'bytes': 10000, 'text': "select pg_sleep(3), 'here' as word"}
	for prefix in [], as_service():
		process = subprocess.Popen([*prefix, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})
		process.stdin.write(json.dumps(asked).encode())
		process.stdin.close()
		until(lambda: process.poll() is not None or status(process.pid).get('Seccomp') == '2', what='it gives up its rights')
		told, opened = status(process.pid), descriptors(process.pid)
		said = json.loads(process.stdout.read())
		assert process.wait(30) == 0 and [row[1] for row in said['results'][0]['rows']] == ['here'], said
		assert {told[k] for k in SETS} == {'0' * 16} and told['NoNewPrivs'] == '1' and told['CapBnd'] == '0' * 16
		assert told['Uid'].split() == [str(NOBODY)] * 4 and told['Gid'].split() == [str(NOBODY)] * 4 and not told['Groups'].strip()
		assert len(opened) == 4 and opened[2] == '/dev/null' and [w for n, w in opened.items() if n > 2][0].startswith('socket:'), opened


def test_the_helper_that_writes_files_of_rows():
	"""libduckdb is large and foreign, and the rows are a tenant's: it is nobody, and has three pipes."""
	program = pathlib.Path(client.binary()).parent / 'steward-lake'
	if not program.exists():
		pytest.skip('steward-lake is not built')
	extra = os.open('/etc/passwd', os.O_RDONLY)
	for prefix in [], as_service() if os.geteuid() == 0 and shutil.which('setpriv') else []:
		file, theirs = os.pipe()
		started = ['/bin/sh', '-c', 'exec "$0" "$@" 3>/dev/fd/%d' % theirs, *prefix, program]
		process = subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[theirs, extra], env={'PATH': os.environ['PATH']})
		os.close(theirs)
		try:
			until(lambda: status(process.pid).get('Seccomp') == '2', what='it gives up its rights before it reads anything')
			told, opened = status(process.pid), descriptors(process.pid)
			assert {told[k] for k in SETS} == {'0' * 16} and told['NoNewPrivs'] == '1' and told['Threads'] == '1'
			limits = pathlib.Path('/proc/%d/limits' % process.pid).read_text()
			assert re.search(r'Max file size +0 +0 ', limits) and re.search(r'Max cpu time +600 ', limits)
			assert is_sanitized() or re.search(r'Max address space +%d ' % (4 << 30), limits)
			if os.geteuid() == 0:
				assert told['CapBnd'] == '0' * 16 and told['Uid'].split() == told['Gid'].split() == [str(NOBODY)] * 4 and not told['Groups'].strip()
				assert set(opened) == {0, 1, 2, 3} and opened[2] == '/dev/null' and all(opened[i].startswith('pipe:') for i in (0, 1, 3)), opened
		finally:
			process.kill()
			process.wait()
			os.close(file)
	os.close(extra)


def test_a_superuser_in_sql_stays_in_its_project(packaged):
	"""Another project's data and the service's secrets are closed to it: every file that there is is tried."""
	unit, mine, other, *_ = packaged
	me, them = Superuser(mine), Superuser(other)
	assert me.psql("select rolsuper from pg_roles where rolname = current_user").stdout.strip() == 't'
	assert me.runs('id -u').stdout.split() == [str(me.uid)]
	for path in (unit.data / 'secret.key', unit.data / 'steward.db', unit.data / 'bootstrap.json',
		     other.directory(other.primary()) / 'PG_VERSION', other.directory(other.primary()).parent / 'conf' / 'server.key'):
		assert 'Permission denied' in me.psql("select pg_read_binary_file('%s')" % path).stderr, path
		assert 'Permission denied' in me.runs('cat %s 2>&1; true' % path).stdout, path
	files = [os.path.join(at, f) for at, _, names in os.walk(unit.data) for f in names if not f.startswith('.s.')]
	pids = unit.server.pid, other.pid(other.primary())
	files += ['/proc/%d/%s' % (p, f) for p in pids for f in ('environ', 'mem', 'maps', 'fd/0')]
	can = {p for p in opens(me.uid, files) if not p.endswith('.crt')}
	assert can and not [p for p in can if not p.startswith((str(unit.data / 'engine' / mine.id), str(unit.data / 'engine' / 'lib')))]
	for stranger in (pwd.getpwnam('steward-db').pw_uid, NOBODY):
		can = {p for p in opens(stranger, files) if not p.endswith('.crt')}
		assert not [p for p in can if not p.startswith(str(unit.data / 'engine' / 'lib'))], 'nor what others begin with'
	# Nor by the way that the service itself takes, nor by signals.
	assert them.psql('select 1').stdout == '1\n'
	refused = me.psql('select 1', them.socket, them.port)
	assert refused.returncode and 'Permission denied' in refused.stderr
	for pid in pids:
		assert 'not permitted' in me.runs('kill -0 %d 2>&1; true' % pid).stdout


def test_a_user_changes_its_project_when_nothing_is_left(packaged):
	"""What a superuser in SQL has started goes on when its cluster is deleted, and would read what the next project of that user
	writes. Nor is a user free whose files lie in a cluster that could not be read at the start."""
	unit, _, other, *_ = packaged
	s, them, lost = unit.server, Superuser(other), unit.data / 'engine' / ('e' * 24)
	left = int(them.runs('cd /; setsid sleep 600 >/dev/null 2>&1 & echo $!').stdout)
	try:
		first, s.group = s.group, other.path.split('/')[2]
		other.delete()
		other.deleted()
		s.stop()
		assert uid(left) == them.uid, 'it goes on'
		unread = users()[users().index(them.uid) + 1]
		(lost / 'node').mkdir(parents=True)
		os.chown(lost / 'node', unread, -1)
		s = unit.start()
		s.group = ok(s.post('/groups', json={'name': 'the next', 'orgId': s.org}))['id']
		third = unit.cluster('third', **databases.shape(nodes=1)).settled()
		got = uid(third.pid(next(iter(third.nodes()))))
		assert got in users() and got not in (them.uid, unread)
		third.delete()
		third.deleted()
		s.group = first
	finally:
		os.kill(left, 9)
