"""What a cluster's size bounds, on real servers: temporary files, connections of one user, and the disk."""
import contextlib, os, pathlib, threading

import psycopg2, pytest

from client import ok
from databases import PASSWORD, USER, allow, shape, until, working_in

MB = 40  # for each GB: M10's 10 GB are 400 MB here
# Into a table that is not logged: standbys that are left behind on a busy machine are another matter.
FILL = "insert into filling select n, repeat(md5(n::text || random()), 60) from generate_series(1, 5000) n"


@pytest.fixture(scope='module')
def cgroups(tmp_path_factory):
	"""A directory that looks like a cgroup's: this machine may have none."""
	root = tmp_path_factory.mktemp('cgroups')
	(root / 'cgroup.controllers').write_text('cpuset cpu io memory pids\n')
	(root / 'cgroup.subtree_control').write_text('')
	return root


@pytest.fixture(scope='module')
def c(start_place, cgroups):
	place = start_place('--db-disk-mb', str(MB), '--db-cgroup', cgroups)
	allow(place.server)
	ok(place.server.post('/groups/%s/databaseUsers' % place.server.group, json={
		'username': 'other', 'password': PASSWORD, 'databaseName': 'admin', 'groupId': place.server.group,
		'roles': [{'roleName': 'svcAdmin', 'databaseName': 'admin'}]}), 201)
	return place.cluster('bounded', **shape(3)).settled()


def primary(c, **kw):
	"""Whether or not it takes writes."""
	string = ok(c.server.get(c.path))['connectionStrings']['standard'].replace('=read-write', '=primary')
	return psycopg2.connect(string, user=kw.pop('user', USER), password=PASSWORD, dbname='postgres', **kw)


def ask(c, sql, **kw):
	conn = primary(c, **kw)
	conn.autocommit = True
	try:
		cursor = conn.cursor()
		cursor.execute(sql)
		return cursor.fetchall() if cursor.description else None
	finally:
		conn.close()


def metric(c, name):
	page = c.server.anonymous.get('/metrics').text
	return next(float(line.split()[1]) for line in page.splitlines() if line.startswith(name + ' '))


def events(c):
	found = ok(c.server.get('/groups/%s/events?itemsPerPage=500' % c.server.group))['results']
	return [e['eventTypeName'] for e in reversed(found) if 'DISK_SPACE' in e['eventTypeName']]


def test_temporary_files(c):
	with pytest.raises(psycopg2.errors.ConfigurationLimitExceeded, match='temp_file_limit'):
		c.ask("set work_mem = '64kB'; select count(*) from (select n from generate_series(1, 8000000) n order by random()) x")
	with pytest.raises(psycopg2.errors.InsufficientPrivilege):
		c.ask('set temp_file_limit = -1')
	assert c.ask('select setting::int from pg_settings where name = $$temp_file_limit$$') == [(MB * 1024,)]


def test_one_user_does_not_take_all_connections(c):
	held = []
	try:
		with pytest.raises(psycopg2.OperationalError, match='too many connections for role'):
			for _ in range(100):
				held.append(c.connect())
		assert len(held) == 80
		assert c.ask('select 1', user='other') == [(1,)]
	finally:
		for conn in held:
			conn.close()


def test_a_full_disk(c):
	c.ask('create unlogged table filling(a int, b text); create table small(a int)')
	writer, idle = c.connect(), c.connect(user='other')
	with pytest.raises(psycopg2.Error):
		for _ in range(200):
			writer.cursor().execute(FILL)
	until(lambda: c.why() and 'disk full' in c.why(), what='the status')
	assert 'diskSizeGB' in c.why() and 'of %d MB' % (MB * 10) in c.why()
	# Who was there before is refused as well, and everybody still reads.
	for insert in (lambda sql: ask(c, sql), lambda sql: idle.cursor().execute(sql)):
		with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
			insert('insert into small values (1)')
	with pytest.raises(psycopg2.OperationalError, match='session is read-only'):
		c.connect()
	assert ask(c, 'select count(*) > 0 from filling') == [(True,)]
	assert metric(c, 'steward_clusters_read_only') == 1 and metric(c, 'steward_databases_disk_limit_bytes') == MB * 10 << 20
	until(lambda: events(c) == ['HOST_NOT_ENOUGH_DISK_SPACE'], what='the event')
	# It is so after a restart of the service, from the first moment on.
	c.site.server.stop()
	c.site.start()
	c.settled()
	with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
		ask(c, 'insert into small values (1)')
	# Room is made by whoever says that it writes on purpose.
	ask(c, 'begin read write; drop table filling; commit')

	def writable():
		try:
			c.ask('insert into small values (1)')
			return True
		except psycopg2.Error:
			return False
	until(writable, 180, 'room')
	assert not c.why() or 'disk full' not in c.why()
	until(lambda: events(c) == ['HOST_NOT_ENOUGH_DISK_SPACE', 'HOST_ENOUGH_DISK_SPACE'], what='the event')
	idle.close()


def test_who_goes_on_writing_is_put_out(c):
	c.ask('create unlogged table filling(a int, b text)')

	def closed():
		try:
			ask(c, FILL, options='-c default_transaction_read_only=off')
		except psycopg2.OperationalError:
			pass  # the first is ended when the cluster becomes read-only
		return 'no user gets in' in (c.why() or '')
	# One more keeps what the limit of its connections is changed in.
	over = threading.Event()

	def hold():
		while not over.wait(0.1):
			try:
				with contextlib.closing(primary(c)) as held:
					held.autocommit = False
					held.cursor().execute('set transaction read write; alter role %s password %%s' % USER, (PASSWORD,))
					while not over.wait(0.1):
						held.cursor().execute('select 1')
			except psycopg2.Error:
				pass
	holder = threading.Thread(target=hold)
	holder.start()
	try:
		until(closed, 240, 'the status')

		def out():
			try:
				ask(c, 'select 1', user='other')
			except psycopg2.OperationalError as e:
				return 'too many connections for role' in str(e)
		until(out, 180, 'nobody to get in')
	finally:
		over.set()
		holder.join()
	assert metric(c, 'steward_clusters_closed') == 1
	c.change(replicationSpecs=specs('M10', 40))
	c.settled()

	def writable():
		try:
			c.ask('insert into small values (2)')
			return True
		except psycopg2.Error:
			return False
	until(writable, 60, 'room on the larger disk')


def specs(size, disk):
	wanted = shape(3, size)['replicationSpecs']
	wanted[0]['regionConfigs'][0]['electableSpecs']['diskSizeGB'] = disk
	return wanted


def test_cgroups_on_paper(c, cgroups):
	"""What is written where, and that servers enter before they begin."""
	assert (cgroups / 'cgroup.subtree_control').read_text() == '+cpu +memory +pids'
	here, names = cgroups / c.id, ('cpu.max', 'memory.max', 'pids.max', 'cgroup.procs')
	assert here.is_dir()
	for name in names:
		(here / name).write_text('')
	c.change(replicationSpecs=specs('M20', 40))
	c.settled()
	assert {n: (here / n).read_text() for n in names} == {
		'cpu.max': '600000 100000', 'memory.max': str(3 * 4096 << 20), 'pids.max': str(3 * 250), 'cgroup.procs': '0'}


V2 = pathlib.Path('/sys/fs/cgroup')
MAY = os.geteuid() == 0 and (V2 / 'cgroup.subtree_control').exists() and \
	{'cpu', 'memory', 'pids'} <= set((V2 / 'cgroup.subtree_control').read_text().split())


@pytest.mark.skipif(not MAY, reason='no cgroup v2 with cpu, memory and pids that could be divided')
def test_cgroups_of_the_kernel(start_place):
	root = V2 / ('steward-test-%d' % os.getpid())
	root.mkdir()
	try:
		place = start_place('--db-cgroup', root)
		allow(place.server)
		c = place.cluster('grouped', **shape(3)).settled()
		assert (root / c.id / 'memory.max').read_text().strip() == str(3 * 2048 << 20)
		inside = set((root / c.id / 'cgroup.procs').read_text().split())
		assert {str(p) for p in working_in(c.directory(c.primary()))} <= inside
		c.delete()
		c.deleted()
		assert not (root / c.id).exists()
	finally:
		if not any(p.is_dir() for p in root.iterdir()):
			root.rmdir()
