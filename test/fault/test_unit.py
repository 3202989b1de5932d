"""What systemd does to the service's processes, done by hand as the installed unit says: the databases must not notice."""
import os, pathlib, re, shutil, signal

import pytest

import client, databases
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
	"""A site whose service runs as the unit says: as that user, with no way to more rights."""

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
			prefix = ['setpriv', '--reuid=' + user, '--regid=' + user, '--clear-groups', '--no-new-privs', '--bounding-set=-all',
				  '--inh-caps=-all']
		before, os.environ['STEWARD_BIN'] = os.environ.get('STEWARD_BIN'), str(program)
		try:
			self.server = client.Server('--engine', 'postgres', '--log-level', 'warn', data_dir=self.data, clock=None,
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
		assert {os.stat('/proc/%d' % p).st_uid for p in (unit.server.pid, postmaster)} == {unit.data.stat().st_uid} != {0}
	session.close()
	c.delete()
	c.deleted()
	unit.server.stop()
