"""What systemd does to the service's processes, done by hand as the installed unit says: the databases must not notice."""
import json, os, pathlib, re, shutil, signal

import pytest

import client, databases, processes
from client import ok, until

UNIT = pathlib.Path(__file__).resolve().parents[2] / 'dist' / 'steward.service.in'
pytestmark = pytest.mark.skipif(not databases.installed() or not shutil.which('setpriv'), reason='needs PostgreSQL and setpriv')


def directive(name):
	return re.search(r'^%s=(.*)$' % name, UNIT.read_text(), re.M).group(1)


def descendants(pid):
	"""All that the unit's control group holds: also what has left the session, and whose parent is gone."""
	parents = {}
	for p in pathlib.Path('/proc').glob('[0-9]*'):
		try:
			parents[int(p.name)] = int((p / 'stat').read_text().rsplit(')', 1)[1].split()[1])
		except OSError:
			continue
	found, added = {pid}, True
	while added:
		more = {p for p, parent in parents.items() if parent in found} - found
		found, added = found | more, bool(more)
	return found


def kill_as_unit(server, number):
	"""KillMode: `process` is the main process, anything else is all of them."""
	mode = directive('KillMode')
	for pid in [server.pid] if mode == 'process' else descendants(server.pid):
		try:
			os.kill(pid, number)
		except ProcessLookupError:
			pass


class Unit(databases.Site):
	"""A site whose service runs as the unit says: as that user, with the unit's capabilities and no way to more."""
	former = False  # as the unit of an older version: without any

	def start(self):
		user = directive('User')
		program = self.root / 'steward'
		if not program.exists():
			shutil.copy(client.binary(), program)
			os.chmod(program, 0o755)
		prefix = []
		if os.geteuid() == 0:
			self.data.mkdir(mode=0o700, exist_ok=True)
			shutil.chown(self.data, user, user)
			os.chmod(self.data, int(directive('StateDirectoryMode'), 8))
			caps = ['-all'] + ([] if self.former else ['+' + c[4:].lower() for c in directive('AmbientCapabilities').split()])
			prefix = ['setpriv', '--reuid=' + user, '--regid=' + user, '--clear-groups', '--no-new-privs',
				  *('--%s=%s' % (what, ','.join(caps)) for what in ('bounding-set', 'inh-caps', 'ambient-caps'))]
		before, os.environ['STEWARD_BIN'] = os.environ.get('STEWARD_BIN'), str(program)
		try:
			self.server = client.Server('--engine', 'postgres', '--log-level', 'warn', *self.args, data_dir=self.data, clock=None,
						    control=False, prefix=prefix)
		finally:
			if before is None:
				del os.environ['STEWARD_BIN']
			else:
				os.environ['STEWARD_BIN'] = before
		return self.server


@pytest.fixture(scope='module')
def unit():
	made = Unit()
	try:
		yield made
	finally:
		made.wipe()


def test_databases_go_on(unit):
	databases.allow(unit.start())
	c = unit.cluster('kept', **databases.shape(nodes=1)).settled()
	node = next(iter(c.nodes()))
	postmaster = c.pid(node)
	assert postmaster in descendants(unit.server.pid), 'a database is a process of the unit'
	until(lambda: c.ask('create table if not exists t (n int)') is None, what='the first login')
	session = c.connect(node)  # one client all along
	cursor = session.cursor()
	for number, signal_ in enumerate((signal.SIGTERM, signal.SIGKILL)):
		kill_as_unit(unit.server, signal_)
		unit.server.process.wait(60)
		unit.server.kill()
		cursor.execute('insert into t values (%s)', (number,))
		assert c.pid(node) == postmaster
		unit.start()
		c.settled()
		cursor.execute('select count(*) from t')
		assert cursor.fetchone() == (number + 1,) and c.pid(node) == postmaster, 'found again, not started again'
	if os.geteuid() == 0:
		ids = [int(processes.status(p)['Uid'].split()[0]) for p in (unit.server.pid, postmaster)]
		assert ids[0] == unit.data.stat().st_uid and len({0, *ids}) == 3, 'neither root nor the service'
	session.close()
	c.delete()
	c.deleted()
	unit.server.stop()


def owners(directory):
	"""Of all that lies below a node's directory, but for conf, which is the service's."""
	return {os.lstat(os.path.join(at, name)).st_uid for at, dirs, files in os.walk(directory) for name in dirs + files
		if pathlib.Path(at, name).relative_to(directory).parts[0] != 'conf'}


@pytest.mark.skipif(os.geteuid() != 0 or not processes.users(), reason='needs root and the users steward-db-N')
def test_databases_of_an_older_version_move(unit):
	"""Those run as the service's own user. They go on as that, and are their project's user's from their next start on; what was cut
	short in between is gone on with. A file of the service that got a second name there is not given away."""
	unit.former = True
	unit.start()
	unit.former = False
	c = unit.cluster('older', **databases.shape()).settled()
	c.whole(3)
	c.ask('create table t as select 1 as n')
	service, pids = unit.data.stat().st_uid, {n: c.pid(n) for n in c.nodes()}
	assert {processes.uid(p) for p in pids.values()} == {service}
	unit.server.stop()
	unit.start()
	c.settled()
	assert {n: c.pid(n) for n in c.nodes()} == pids and {processes.uid(p) for p in pids.values()} == {service}, 'they go on'
	c.change(paused=True)
	c.settled()
	unit.server.stop()
	# As a crash leaves it that came when the first files were given.
	state, first = unit.data / 'engine' / c.id / 'state.json', next(iter(pids))
	book = json.loads(state.read_text())
	state.write_text(json.dumps({**book, 'user': processes.users()[3], 'giving': True}))
	os.chown(c.directory(first) / 'PG_VERSION', processes.users()[3], -1)
	stolen = c.directory(first) / 'stolen'
	os.link(unit.data / 'secret.key', stolen)
	at = os.open(c.directory(first), os.O_RDONLY)
	for _ in range(100):  # each level that the service follows costs it descriptors and stack
		os.mkdir('deep', dir_fd=at)
		at, above = os.open('deep', os.O_RDONLY, dir_fd=at), at
		os.close(above)
	os.close(at)
	unit.start()
	c.change(paused=False)
	until(lambda: re.search('second name|more than 64 directories', unit.server.stderr), 60, 'a refusal')
	assert (unit.data / 'secret.key').stat().st_uid == service
	stolen.unlink()
	until(lambda: 'more than 64 directories' in unit.server.stderr, 60, 'the refusal of what lies too deep')
	shutil.rmtree(c.directory(first) / 'deep')
	c.settled()
	c.whole(3)
	uids = {processes.uid(c.pid(n)) for n in c.nodes()}
	assert uids == {processes.users()[3]} and c.ask('select n from t') == [(1,)]
	for n in c.nodes():
		assert owners(unit.data / 'engine' / c.id / n) == uids
	c.delete()
	c.deleted()
	unit.server.stop()
