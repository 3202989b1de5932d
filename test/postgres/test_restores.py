"""Backups of real databases, through the API alone: what was there at a moment comes back, and nothing else; while it is
brought back nothing is lost; what a tar holds is started by PostgreSQL itself."""
import contextlib, gzip, json, os, pathlib, random, re, shutil, signal, sqlite3, subprocess, tarfile, threading, time

import psycopg2, pytest

from client import REMOTE, cli, metric, ok, refused
from databases import PASSWORD, allow, shape, until, working_in

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = max(pathlib.Path('/usr/lib/postgresql').glob('*/bin'), default=pathlib.Path('/'))


@pytest.fixture(scope='module')
def place(start_place):
	p = start_place()
	allow(p.server)
	return p


def cluster(place, name, nodes=1, shards=1, pit=True, size='M10'):
	return place.cluster(name, backupEnabled=True, pitEnabled=pit, **shape(nodes, size, shards)).settled()


def take(c, **body):
	"""A snapshot, completed."""
	made = ok(c.server.post(c.path + '/backup/snapshots', json=body))
	done = until(lambda: over(c, made['id']), 120, 'the snapshot')
	assert done['status'] == 'completed', done
	return done


def over(c, snapshot):
	doc = ok(c.server.get('%s/backup/snapshots/%s' % (c.path, snapshot)))
	return doc['status'] in ('completed', 'failed') and doc


def completed(c):
	return sum(doc['status'] == 'completed' for doc in ok(c.server.get(c.path + '/backup/snapshots'))['results'])


def restore(c, target=None, fails=False, **body):
	target = target or c
	if body.get('deliveryType') != 'download':
		body = {'targetClusterName': target.name, 'targetGroupId': c.server.group, **body}
	job = ok(c.server.post(c.path + '/backup/restoreJobs', json=body))
	path = '%s/backup/restoreJobs/%s' % (c.path, job['id'])
	job = until(lambda: (lambda j: j.get('finishedAt') and j)(ok(c.server.get(path))), 240, 'the restore')
	assert bool(job.get('failed')) == fails, (job, c.server.stderr[-3000:])
	if job['deliveryType'] != 'download':
		target.settled()
	return job


class Ledger:
	"""A writer that knows when each of its rows was acknowledged."""

	def __init__(self, c, table='ledger'):
		self.c, self.table, self.acknowledged, self.next = c, table, [], 1
		c.ask('create table if not exists %s(n bigint primary key, at timestamptz default clock_timestamp())' % table)
		self.stopping = False
		self.thread = threading.Thread(target=self.run, daemon=True)
		self.thread.start()

	def run(self):
		conn = None
		while not self.stopping:
			try:
				conn = conn or self.c.connect(timeout=3)
				begun = time.time()
				conn.cursor().execute('insert into %s values (%d)' % (self.table, self.next))
				self.acknowledged.append((self.next, begun, time.time()))
			except psycopg2.Error:
				conn = None
				time.sleep(0.05)
			self.next += 1
			time.sleep(0.01)

	def stop(self):
		self.stopping = True
		self.thread.join(30)

	def holds(self, rows, point):
		"""Exactly what was acknowledged before the point, and nothing that was begun after it."""
		rows = {r[0] for r in rows}
		lacking = [n for n, _, at in self.acknowledged if at < point and n not in rows]
		extra = [n for n, begun, _ in self.acknowledged if begun > point and n in rows]
		assert not lacking and not extra, (point, len(rows), lacking[:5], len(lacking), extra[:5], len(extra))


def kill_primary(c, shard=0):
	primary = c.primary(shard)
	os.kill(c.pid(primary), signal.SIGKILL)
	return primary


def test_a_snapshot_comes_back(place):
	c = cluster(place, 'single', pit=False)
	c.ask('create table t(n int); insert into t select generate_series(1, 1000)')
	doc = take(c, description='first')
	assert doc['storageSizeBytes'] > 1 << 20 and doc['dbVersion'].startswith('15.')
	c.ask('delete from t; create table later(n int)')
	restore(c, deliveryType='automated', snapshotId=doc['id'])
	assert c.ask('select count(*), sum(n) from t') == [(1000, 500500)]
	assert c.ask("select to_regclass('later')") == [(None,)]
	# And once more, from data that was restored itself.
	c.ask('insert into t values (7)')
	again = take(c)
	c.ask('drop table t')
	restore(c, deliveryType='automated', snapshotId=again['id'])
	assert c.ask('select count(*) from t') == [(1001,)]
	c.delete()
	c.deleted()


def documented():
	"""The lines of docs/backup-format.md that restore without Steward: where things are, the files, a moment, the start."""
	page = (ROOT / 'docs/backup-format.md').read_text()
	blocks, before = [], ''
	for line in page[page.index('### Step by step'):page.index('## What is found')].splitlines():
		if line.startswith('    '):
			blocks += [] if before.startswith('    ') else [[]]
			blocks[-1].append(line[4:])
		before = line
	assert len(blocks) == 4, blocks
	return ['\n'.join(b) for b in blocks]


def by_hand(place, c, snapshot, sql, moment=None):
	"""What that gives in a database that was restored by the lines of the documentation, as they stand."""
	where, files, to, start = documented()
	target = pathlib.Path(place.root) / ('hand-%s' % (moment or 'end'))
	region, = {p.name for p in (place.data / 'backups').iterdir() if (p / c.server.group).is_dir()}
	values = {'PROGRAM': ROOT / 'test/backup/restore_without_steward.py', 'SECRET': place.data / 'secret.key',
		  'REPOSITORY': place.data / 'backups', 'REGION': region, 'GROUP': c.server.group, 'CLUSTER': c.id, 'SNAPSHOT': snapshot,
		  'SET': '0', 'BIN': BIN, 'TARGET': target}
	assert set(re.findall(r'([A-Z]+)=', where)) == set(values), where
	os.chmod(place.root, 0o755)
	if moment:
		to = re.sub("(?m)^MOMENT=.*", "MOMENT='%s+00'" % time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(moment)), to)
	lines = '\n'.join([files, *([to] if moment else []), start])
	done = subprocess.run(['bash', '-euc', lines], env={**os.environ, **{k: str(v) for k, v in values.items()}}, capture_output=True, text=True,
			      timeout=240, cwd='/')
	try:
		assert done.returncode == 0 and 'not there' not in done.stderr, (done, (target / 'log').exists() and (target / 'log').read_text()[-3000:])
		return subprocess.run(['runuser', '-u', 'postgres', '--', 'psql', '-XAt', '-h', target, '-U', 'steward_engine', '-c', sql, 'postgres'],
				      check=True, capture_output=True, text=True, timeout=60, cwd='/').stdout
	finally:
		subprocess.run(['runuser', '-u', 'postgres', '--', BIN / 'pg_ctl', '-D', target, '-m', 'immediate', 'stop'], capture_output=True,
			       timeout=60, cwd='/')
		shutil.rmtree(target)


def test_points_in_time_through_failovers(place):
	"""The primary is killed twice in between; each point restored into another cluster has what it should, and so it has by the
	documented steps without Steward, to a moment and to the end of the log."""
	c = cluster(place, 'three', nodes=3)
	first = take(c)['id']
	ledger = Ledger(c)
	points = []
	for round in range(3):
		time.sleep(3)
		points.append(int(time.time()))
		time.sleep(1.5)
		if round < 2:
			kill_primary(c)
		if round == 0:
			points.append(int(time.time()))  # the second in which it was killed
	time.sleep(3)
	ledger.stop()
	until(lambda: ok(c.server.get('%s/backup/snapshots?pointInTimeUtcSeconds=%d' % (c.path, points[-1])))['results'], 120,
	      'the log of the last point', longest=1)
	target = place.cluster('target', backupEnabled=True, **shape(1))  # the first restore waits until it is made
	for point in points:
		restore(c, target, deliveryType='pointInTime', pointInTimeUTCSeconds=point)
		ledger.holds(target.ask('select n from ledger'), point)
		assert target.ask("select to_regclass('mine')") == [(None,)]
		target.ask('create table mine(n int)')
	end = int(time.time())
	until(lambda: ok(c.server.get('%s/backup/snapshots?pointInTimeUtcSeconds=%d' % (c.path, end)))['results'], 120, 'the end of the log', longest=1)
	for point in (points[2], None):
		rows = by_hand(place, c, first, 'select n from ledger', point).split()
		ledger.holds([(int(n),) for n in rows], point or time.time())
	# What cannot be restored is not taken on.
	refused(c.server.post(c.path + '/backup/restoreJobs', json={'deliveryType': 'pointInTime', 'targetClusterName': 'target',
		'targetGroupId': c.server.group, 'pointInTimeUTCSeconds': points[0] - 86400}), 400)
	for one in (c, target):
		one.delete()
		one.deleted()


def test_every_moment_of_a_pause(place):
	"""A server that is stopped begins a segment with its last record, behind the segment's header: that is no log that is missing.
	Before the pause, at any moment of it, and behind it there is what was there then."""
	c = cluster(place, 'paused', nodes=1)
	take(c)
	c.ask('create table t(n int); insert into t values (1)')
	target = cluster(place, 'beside', nodes=1, pit=False)
	offered = lambda at: ok(c.server.get('%s/backup/snapshots?pointInTimeUtcSeconds=%d' % (c.path, at)))['results']
	moments = []
	for row in (2, 3):
		time.sleep(1.1)
		ok(c.server.patch(c.path, json={'paused': True}))
		c.settled()
		stopped = int(time.time()) + 1
		time.sleep(2.1)
		moments.append((stopped, row - 1))
		until(lambda: offered(stopped), 60, 'the log of what was stopped')
		restore(c, target, deliveryType='pointInTime', pointInTimeUTCSeconds=stopped)
		assert target.ask('select count(*), max(n) from t') == [(row - 1, row - 1)], 'while it is paused'
		moments.append((int(time.time()) - 1, row - 1))
		ok(c.server.patch(c.path, json={'paused': False}))
		c.settled()
		c.ask('insert into t values (%d)' % row)
	time.sleep(1.1)
	moments.append((int(time.time()), 3))
	until(lambda: offered(moments[-1][0]), 120, 'the log of the last point', longest=1)
	for moment, rows in moments:
		restore(c, target, deliveryType='pointInTime', pointInTimeUTCSeconds=moment)
		assert target.ask('select count(*), max(n) from t') == [(rows, rows)], moment
	for one in (c, target):
		one.delete()
		one.deleted()


def hurry(place, *kinds):
	"""Jobs that are due within an hour or a minute, now: they are looked at with the next write."""
	with contextlib.closing(sqlite3.connect(place.data / 'steward.db', timeout=30)) as db, db:
		assert db.execute('UPDATE job SET due_ms = 0 WHERE kind IN (%s)' % ', '.join('?' * len(kinds)), kinds).rowcount == len(kinds)
	ok(place.server.patch('/groups/' + place.server.group, json={'name': ok(place.server.get('/groups/' + place.server.group))['name']}))


def has_run(place, kind):
	with contextlib.closing(sqlite3.connect(place.data / 'steward.db', timeout=30)) as db:
		return db.execute('SELECT min(due_ms) FROM job WHERE kind = ?', (kind,)).fetchone()[0] > 0


@pytest.mark.skipif(REMOTE, reason='writes to the file of the store')
def test_log_that_is_taken_out_of_the_repository(place):
	"""A segment in the middle of the log that lies in the repository no more: while a node has it, it is put there again; where none
	has it that is named, told and counted, a snapshot begins another window, nothing is offered over the hole, and all is well again."""
	c = cluster(place, 'holed')
	bases = lambda: [d['id'] for d in ok(c.server.get(c.path + '/backup/snapshots'))['results'] if d['status'] == 'completed']
	first, = until(bases, 120, 'the snapshot that begins the window')
	hurry(place, 'backup_archive')
	until(lambda: has_run(place, 'backup_archive'), 60, 'that the window has begun is seen')  # without that, a hole is one that did not begin
	told = lambda: [e['eventTypeName'] for e in ok(c.server.get('/groups/%s/events?clusterNames=holed' % c.server.group))['results']
			if e['eventTypeName'].startswith('CPS_OPLOG')]
	stored = lambda: sorted(p for p in place.data.glob('backups/*/*/wal/%s/*/0/00000001/*' % c.id) if p.suffix == '')
	base_of = lambda at: [d['id'] for d in ok(c.server.get('%s/backup/snapshots?pointInTimeUtcSeconds=%d' % (c.path, at)))['results']]
	check = lambda: cli('repository', 'check', '--data', place.data, check=False)
	own = c.directory(c.primary()) / 'pg_wal'
	group = '/groups/' + c.server.group
	config = ok(c.server.post(group + '/alertConfigs', json={'eventTypeName': 'CPS_OPLOG_BEHIND', 'enabled': True,
		'threshold': {'operator': 'GREATER_THAN', 'threshold': 1, 'units': 'HOURS'},
		'notifications': [{'typeName': 'EMAIL', 'emailAddress': 'a@example.com', 'intervalMin': 5, 'delayMin': 0}]}))['id']
	alerts = lambda: [a['status'] for a in ok(c.server.get(group + '/alerts'))['results'] if a['alertConfigId'] == config]
	fill = "insert into t select %d, string_agg(md5(random()::text), '') from generate_series(1, 60) i, generate_series(1, 3000) j group by j"
	c.ask('create table t(n int, pad text)')
	moments, begun = [], []
	for n in (1, 2, 3, 4):
		c.ask(fill % n)  # more than a segment
		time.sleep(1.1)
		moments.append(int(time.time()))
		until(lambda: base_of(moments[-1]) == [first], 90, 'the log', longest=1)
		begun.append(max(p.name[:24] for p in place.data.glob('backups/*/*/wal/%s/*/0/00000001/*' % c.id)))
	before, after = moments[0], moments[2]
	lost = next(s for s in stored() if s.name > begun[0])
	assert (own / lost.name).exists() and lost.name < begun[2]
	assert 'clean' in check().stdout
	lost.unlink()
	named = check()
	assert named.returncode == 1 and lost.name in named.stdout and c.id in named.stdout and '1 fault' in named.stdout, named
	hurry(place, 'backup_sweep')
	until(lambda: lost in stored(), 60, 'what a node has')
	assert not told() and bases() == [first] and 'clean' in check().stdout
	(own / lost.name).unlink()  # first: what looks for it on the nodes may be under way
	lost.unlink()
	assert base_of(after) == [] and base_of(before) == [first]
	hurry(place, 'backup_sweep')
	# The watch sees it, and the judge before the loss is too long ago.
	until(lambda: hurry(place, 'backup_archive') or len(bases()) == 2, 120, 'the snapshot that begins the next window', longest=1)
	until(lambda: hurry(place, 'backup_judge') or alerts(), 60, 'the alert', longest=1)
	until(lambda: hurry(place, 'backup_archive') or told() == ['CPS_OPLOG_CAUGHT_UP', 'CPS_OPLOG_BEHIND'], 90, 'the end of it', longest=1)
	until(lambda: metric(place.server, 'steward_backup_log_broken') == 0, 60, 'the figure')
	again, = set(bases()) - {first}
	healed = check()
	assert healed.returncode == 0 and 'clean' in healed.stdout, healed
	c.ask('insert into t values (5)')
	time.sleep(1.1)
	now = int(time.time())
	until(lambda: base_of(now) == [again], 60, 'the next window', longest=1)
	assert base_of(before) == [first] and base_of(after) == []
	refused(c.server.post(c.path + '/backup/restoreJobs', json={'deliveryType': 'pointInTime', 'targetClusterName': c.name,
		'targetGroupId': c.server.group, 'pointInTimeUTCSeconds': after}), 400)
	# A sweep that finds nothing new tells nothing.
	hurry(place, 'backup_sweep')
	restore(c, deliveryType='pointInTime', pointInTimeUTCSeconds=now)
	assert sorted(c.ask('select distinct n from t')) == [(1,), (2,), (3,), (4,), (5,)]
	restore(c, deliveryType='pointInTime', pointInTimeUTCSeconds=before)
	assert c.ask('select distinct n from t') == [(1,)] and len(told()) == 2
	assert c.server.delete('%s/alertConfigs/%s' % (group, config)).status_code == 204
	c.delete()
	c.deleted()


def test_shards_agree(place):
	"""A pair of rows, on two shards, is written in one transaction: a snapshot has both or none."""
	c = cluster(place, 'sharded', nodes=1, shards=2, pit=False, size='M30')
	c.ask('create table pairs(n bigint, side int)')
	c.ask("select steward.shard_table('pairs', 'n')")
	stop = threading.Event()

	def write():
		conn, n = c.connect(), 0
		conn.autocommit = False
		while not stop.is_set():
			n += 1
			cursor = conn.cursor()
			cursor.execute('insert into pairs select %d * 1000 + i, i from generate_series(1, 6) i' % n)
			conn.commit()
	writer = threading.Thread(target=write, daemon=True)
	writer.start()
	time.sleep(1)
	doc = take(c)
	stop.set()
	writer.join(30)
	restore(c, deliveryType='automated', snapshotId=doc['id'])
	found = c.ask('select n / 1000, count(*) from pairs group by 1')
	assert found and {count for _, count in found} == {6}, [f for f in found if f[1] != 6]
	c.ask('insert into pairs values (1, 1)')
	c.delete()
	c.deleted()


def test_a_download_is_started_by_postgresql(place, tmp_path):
	c = cluster(place, 'download', pit=False)
	c.ask('create table t(n int); insert into t select generate_series(1, 10)')
	doc = take(c)
	job = ok(c.server.post(c.path + '/backup/restoreJobs', json={'deliveryType': 'download', 'snapshotId': doc['id']}))
	path = '%s/backup/restoreJobs/%s' % (c.path, job['id'])
	job = until(lambda: (lambda j: j.get('deliveryUrl') and j)(ok(c.server.get(path))), 60)
	data = place.root / 'tar'
	data.mkdir(mode=0o700)
	fetched = place.root / 'set.tar'
	subprocess.run(['curl', '-sSfk', '-o', str(fetched), job['deliveryUrl'][0]], check=True, timeout=60)
	# What broke off in the middle of a file is gone on with.
	whole, broken = fetched.read_bytes(), place.root / 'broken.tar'
	broken.write_bytes(whole[:len(whole) // 2 + 77])
	subprocess.run(['curl', '-sSfk', '-C', '-', '-o', str(broken), job['deliveryUrl'][0]], check=True, timeout=60)
	assert broken.read_bytes() == whole
	with tarfile.open(fetched) as tar:
		tar.extractall(data)
	subprocess.run(['chown', '-R', 'postgres:', str(data)], check=True)
	os.chmod(data, 0o700)
	os.chmod(place.root, 0o755)

	def run(*argv):
		return subprocess.run(['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups', *argv], check=True,
				      capture_output=True, text=True, timeout=60, cwd='/').stdout
	run(str(BIN / 'pg_verifybackup'), '-n', str(data))
	socket = place.root / 's'
	socket.mkdir()
	os.chmod(socket, 0o777)
	run(str(BIN / 'pg_ctl'), '-D', str(data), '-w', '-l', str(data / 'log'), '-o',
	    '-k %s -c listen_addresses= -c port=5432' % socket, 'start')
	try:
		assert run('psql', '-XAt', '-h', str(socket), '-U', 'steward_engine', '-d', 'postgres', '-c', 'select sum(n) from t') == '55\n'
	finally:
		run(str(BIN / 'pg_ctl'), '-D', str(data), '-m', 'immediate', 'stop')
	c.delete()
	c.deleted()


def test_users_of_the_target_hold(place):
	"""After a restore into another cluster: its users as before, and nothing of the source's own."""
	source, target = cluster(place, 'source', pit=False), cluster(place, 'other', pit=False)
	ok(place.server.post('/groups/%s/databaseUsers' % place.server.group, json={
		'username': 'guest', 'password': PASSWORD, 'databaseName': 'admin', 'groupId': place.server.group,
		'scopes': [{'name': 'source', 'type': 'CLUSTER'}], 'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
	assert source.ask('select 1', user='guest') == [(1,)]
	source.ask('create table t(n int); insert into t values (1)')
	source.ask("""create function door() returns int security definer language sql as 'select n from t'; reassign owned by guest to
		"steward:any:w" """, user='guest')
	door = "select prosecdef, pg_get_userbyid(proowner) ~ '^steward:' from pg_proc where proname = 'door'"
	assert source.ask(door) == [(True, True)]
	doc = take(source)
	restore(source, target, deliveryType='automated', snapshotId=doc['id'])
	assert target.ask('select n from t') == [(1,)] and source.ask('select n from t') == [(1,)]
	with pytest.raises(psycopg2.OperationalError):
		target.ask('select 1', user='guest')
	assert target.ask(door) == [(False, True)], 'its author has no role there'
	for one in (source, target):
		one.delete()
		one.deleted()


def stored(place, c, *folders):
	return [p for p in (place.data / 'backups').rglob('*') if p.is_file() and p.parent.name in folders and c.server.group in str(p)]


def harm(pack, kind):
	bad = bytearray(pack.read_bytes())
	bad[len(bad) // 3] ^= 1
	if kind == 'removed':
		pack.unlink()
	else:
		pack.write_bytes(bad if kind == 'flipped' else bad[:100])


def test_one_damaged_pack_under_all_snapshots(place):
	"""Whichever it is: each snapshot above it comes back, a check names it, and it is as it was after a restore, or a repair."""
	c = cluster(place, 'one-pack', pit=False)
	take(c)
	before = stored(place, c, 'packs')  # of the catalogues, which restores leave as they are
	# All pages are as they stay from the first snapshot on: no later one, and so no restore of one, replaces what the first has stored.
	c.ask('create table t(n int, m text) with (autovacuum_enabled = off)')
	c.ask('insert into t select n, md5(n::text) from generate_series(1, 300000) n')
	c.ask('vacuum (freeze) t')
	docs, largest = [], None
	for n in range(3):
		c.ask('insert into t values (%d, null)' % -n)
		docs.append(take(c))
		largest = largest or max(set(stored(place, c, 'packs')) - set(before), key=lambda p: p.stat().st_size)
	rows = lambda: c.ask('select count(*), count(*) filter (where n <= 0) from t')
	packs = stored(place, c, 'packs')
	for number, (kind, pack) in enumerate((('flipped', largest), ('cut', largest), ('removed', random.choice(packs)))):
		good = pack.read_bytes()
		harm(pack, kind)
		c.ask('truncate t')
		restore(c, deliveryType='automated', snapshotId=docs[number]['id'])
		assert rows() == [(300000 + number + 1, number + 1)], kind
		if pack is largest:  # which the restore has read from
			assert pack.read_bytes() == good, kind
		pack.write_bytes(good)
		harm(pack, kind)
		said = cli('repository', 'check', '--data', place.data, check=False).stdout
		assert pack.name in said and (pack is not largest or docs[0]['id'] in said), said
		said = cli('repository', 'check', '--repair', '--data', place.data).stdout
		assert 'it is whole again' in said and pack.read_bytes() == good, said
		assert 'fault' not in cli('repository', 'check', '--data', place.data).stdout
	c.delete()
	c.deleted()


def test_a_flipped_byte_replaces_nothing(place):
	c = cluster(place, 'flipped', pit=False)
	c.ask('create table t(n int); insert into t select generate_series(1, 200000)')
	doc = take(c)
	c.ask('truncate t')
	packs = stored(place, c, 'packs', 'parity')  # a second copy would mend it
	assert packs

	def flip():
		for pack in packs:
			with open(pack, 'r+b') as f:
				f.seek(pack.stat().st_size // 2)
				byte = f.read(1)
				f.seek(-1, os.SEEK_CUR)
				f.write(bytes([byte[0] ^ 1]))
	flip()
	restore(c, fails=True, deliveryType='automated', snapshotId=doc['id'])
	assert c.ask('select count(*) from t') == [(0,)]
	# What was found damaged is not trusted again by the process that found it.
	flip()
	place.kill()
	place.start()
	restore(c, deliveryType='automated', snapshotId=doc['id'])
	assert c.ask('select count(*) from t') == [(200000,)]
	c.delete()
	c.deleted()


def test_kill_at_any_moment(place):
	"""The service is killed while it takes a snapshot and while it restores: afterwards either is done or goes on."""
	c = cluster(place, 'killed', pit=False)
	c.ask('create table t(n int); insert into t select generate_series(1, 100000)')
	first = take(c)
	for wait in (0.05, 0.3, 0.8):
		made = ok(c.server.post(c.path + '/backup/snapshots', json={}))
		time.sleep(wait)
		place.kill()
		place.start()
		assert until(lambda: over(c, made['id']), 120)['status'] == 'completed'
	for wait in (0.1, 0.6, 1.2, 2):
		c.ask('truncate t')
		job = ok(c.server.post(c.path + '/backup/restoreJobs', json={'deliveryType': 'automated', 'snapshotId': first['id'],
			'targetClusterName': c.name, 'targetGroupId': c.server.group}))
		time.sleep(wait)
		place.kill()
		place.start()
		path = '%s/backup/restoreJobs/%s' % (c.path, job['id'])
		job = until(lambda: (lambda j: j.get('finishedAt') and j)(ok(c.server.get(path))), 240)
		assert not job.get('failed'), job
		c.settled()
		assert c.ask('select count(*) from t') == [(100000,)]
	c.delete()
	c.deleted()


def offered(c, point):
	"""Once the log has come so far."""
	body = {'deliveryType': 'pointInTime', 'pointInTimeUTCSeconds': point, 'targetClusterName': c.name, 'targetGroupId': c.server.group}

	answers = []

	def asked():
		answers[:] = [c.server.post(c.path + '/backup/restoreJobs', json=body)]
		return answers[0].status_code == 200
	try:
		until(asked, 90, 'the point to be offered', longest=1)
	except AssertionError as e:
		raise AssertionError('%d: %s' % (point, answers[0].text)) from e
	job = answers[0].json()
	path = '%s/backup/restoreJobs/%s' % (c.path, job['id'])
	job = until(lambda: (lambda j: j.get('finishedAt') and j)(ok(c.server.get(path))), 240, 'the restore')
	assert not job.get('failed'), (job, c.server.stderr[-3000:])
	c.settled()


def test_lost_given_up_and_brought_back(place):
	"""The disk is gone, and what was given up is made anew, empty: its log is kept from then on, and what was lost comes back."""
	c = cluster(place, 'lost')
	take(c)
	kept = completed(c)
	c.ask('create table t(n int); insert into t values (1)')
	time.sleep(2)
	before = int(time.time())
	time.sleep(3)
	c.ask('insert into t values (2)')
	written = time.time()
	hours = lambda: list(place.data.glob('**/wal/%s/*/0/seconds/*' % c.id))
	until(lambda: any(h.stat().st_mtime > written for h in hours()), 60, 'the log in the repository')
	place.kill()
	for pid in working_in(place.data / 'engine' / c.id):
		with contextlib.suppress(ProcessLookupError):  # the first to go may take it along
			os.kill(pid, signal.SIGKILL)
	until(lambda: not working_in(place.data / 'engine' / c.id))
	for folder in [*('run/%d' % n['slot'] for n in c.nodes().values()), c.id]:
		shutil.rmtree(place.data / 'engine' / folder)
	place.start()
	until(lambda: c.state() == 'REPAIRING', 60)
	cli('give-up', '--data', place.data, c.id, '--yes')
	c.settled()
	# What can be restored begins with the snapshot that is taken of the new data at once.
	until(lambda: completed(c) > kept, 120, 'the snapshot of the new data')
	c.ask('create table later(n int); insert into later values (3)')
	time.sleep(1)
	after = int(time.time()) + 1
	time.sleep(2)
	c.ask('drop table later')
	offered(c, after)
	assert c.ask('select n from later') == [(3,)]
	offered(c, before)
	assert c.ask('select n from t') == [(1,)] and c.ask("select to_regclass('later')") == [(None,)]
	c.delete()
	c.deleted()


def test_what_was_copied_serves_when_the_first_is_lost(start_place, tmp_path_factory):
	"""Snapshot and log lie in a second region as well; the repository of the first is gone: any moment comes back from there."""
	there = tmp_path_factory.mktemp('copies')
	place = start_place('--backups-region', 'EU_WEST_1=%s' % there)
	allow(place.server)
	c = cluster(place, 'copied')
	c.ask('create table t(n int); insert into t values (1)')
	zone = ok(c.server.get(c.path))['replicationSpecs'][0]['zoneId']
	ok(c.server.patch(c.path + '/backup/schedule', json={'policies': [{'policyItems': []}], 'copySettings': [
		{'cloudProvider': 'AWS', 'regionName': 'EU_WEST_1', 'zoneId': zone, 'frequencies': ['ON_DEMAND'], 'shouldCopyOplogs': True}]}))
	doc = take(c)
	until(lambda: ok(c.server.get('%s/backup/snapshots/%s' % (c.path, doc['id'])))['copyRegions'] == ['EU_WEST_1'], 120, 'the copy')
	c.ask('insert into t values (2)')
	time.sleep(1.5)
	point = int(time.time())
	time.sleep(1.5)
	c.ask('insert into t values (3)')
	written = time.time()

	def came():
		c.ask('insert into t values (4)')
		return any(h.stat().st_mtime > written + 10 for h in there.glob('**/wal/%s/*/0/seconds/*' % c.id))
	until(came, 120, 'the log in the other region')
	home = place.data / 'backups'
	home.rename(place.data / 'lost')
	home.touch()
	offered(c, point)
	assert c.ask('select n from t order by 1') == [(1,), (2,)]
	restore(c, deliveryType='automated', snapshotId=doc['id'])
	assert c.ask('select n from t') == [(1,)]
	job = ok(c.server.post(c.path + '/backup/restoreJobs', json={'deliveryType': 'download', 'snapshotId': doc['id']}))
	subprocess.run(['curl', '-sSfk', '-o', str(place.root / 'copied.tar'), job['deliveryUrl'][0]], check=True, timeout=60)
	with tarfile.open(place.root / 'copied.tar') as tar:
		assert './PG_VERSION' in tar.getnames() or 'PG_VERSION' in tar.getnames()
	home.unlink()
	(place.data / 'lost').rename(home)
	c.delete()
	c.deleted()


def test_a_quota_that_is_used_up(start_place):
	"""Nothing is added, what is there comes back, and the database goes on."""
	place = start_place('--backup-quota', '12')  # an empty cluster takes less, whatever part of it is written first
	allow(place.server)
	c = cluster(place, 'bounded', pit=False)
	c.ask('create table t(n int, x text); insert into t values (1)')
	doc = take(c)
	status = 'completed'  # what is begun may end beyond the bound: the next one not
	for _ in range(3):
		if status == 'completed':
			c.ask("insert into t select 2, string_agg(md5(random()::text), '') from generate_series(1, 500000)")
			made = ok(c.server.post(c.path + '/backup/snapshots', json={}))
			status = until(lambda: over(c, made['id']), 240, 'the refusal')['status']
	assert status == 'failed'
	told = c.server.get('%s/backup/snapshots/%s' % (c.path, made['id'])).headers['X-Steward-Progress']
	assert 'quota of 12 MB' in told, told
	c.ask('insert into t values (3)')
	restore(c, deliveryType='automated', snapshotId=doc['id'])
	assert c.ask('select n from t') == [(1,)]
	c.delete()
	c.deleted()


class Throwaways(threading.Thread):
	"""Looks how many servers of exports there are at once."""

	def __init__(self, place, cgroups):
		super().__init__(daemon=True)
		self.below, self.cgroups, self.most, self.named, self.over = str(place.data / 'engine' / 'throwaway'), cgroups, 0, set(), False
		self.start()

	def processes(self):
		return {pid: cwd for pid, cwd in ((int(pid), self.cwd(pid)) for pid in os.listdir('/proc') if pid.isdigit()) if cwd.startswith(self.below)}

	def run(self):
		while not self.over:
			self.most = max(self.most, len(set(self.processes().values())))
			self.named |= {f.name for f in self.cgroups.glob('server-throwaway-*')}
			time.sleep(0.02)

	@staticmethod
	def cwd(pid):
		try:
			return os.readlink('/proc/%s/cwd' % pid)
		except OSError:
			return ''


def test_exports_of_one_project_come_one_after_another(start_place, tmp_path_factory):
	"""Each took a server, and a thread of the jobs: as many at once as a tenant had clusters. Their servers are bounded, and nothing
	of them stays."""
	bucket, cgroups = tmp_path_factory.mktemp('exports') / 'both', tmp_path_factory.mktemp('cgroups')
	(cgroups / 'cgroup.controllers').write_text('cpuset cpu io memory pids\n')
	(cgroups / 'cgroup.subtree_control').write_text('')
	place = start_place('--export-buckets', bucket.parent, '--db-cgroup', cgroups, '--job-threads', '8')
	bucket.mkdir()
	allow(place.server)
	both = [cluster(place, name, pit=False) for name in ('first', 'second')]
	shots = []
	for c in both:
		c.ask("create table t as select n, repeat(md5(n::text), 30) as x from generate_series(1, 100000) n")
		shots.append(take(c)['id'])
	made = ok(place.server.post('/groups/%s/backup/exportBuckets' % place.server.group, json={'bucketName': 'both', 'cloudProvider': 'AWS', 'iamRoleId': 'a' * 24}))
	def export(c, shot):
		return '%s/backup/exports/%s' % (c.path, ok(c.server.post(c.path + '/backup/exports', json={'snapshotId': shot, 'exportBucketId': made['_id']}))['id'])

	seen = Throwaways(place, cgroups)
	for job in [export(c, shot) for c, shot in zip(both, shots)]:
		until(lambda: ok(place.server.get(job))['state'] == 'Successful', 240, 'the export')
	seen.over = True
	seen.join()
	assert seen.most == 1
	assert len(seen.named) == 2 and not list(cgroups.glob('server-throwaway-*'))
	until(lambda: not list((place.data / 'engine' / 'throwaway').iterdir()), 60, 'the removal')
	# A service that is killed leaves no server of an export behind: nobody would look after it until the next start.
	export(both[0], shots[0])
	until(seen.processes, 120, 'a server')
	place.kill()
	until(lambda: not seen.processes(), 60, 'its end')
	place.start()
	for c in both:
		c.delete()
	for c in both:
		c.deleted()


class Killer(threading.Thread):
	"""Kills the server's process that copies a table out, as often as it is told to."""

	def __init__(self, place, times):
		super().__init__(daemon=True)
		self.place, self.left = place, times
		self.start()

	def copies(self, pid):
		try:
			return re.match(rb'postgres: throwaway: .* COPY', pathlib.Path('/proc/%d/cmdline' % pid).read_bytes())
		except OSError:
			return None

	def run(self):
		while self.left:
			for pid in working_in(self.place.root):
				if self.left and self.copies(pid):
					os.kill(pid, signal.SIGSTOP)
					self.left -= bool(self.copies(pid))  # still
					os.kill(pid, signal.SIGKILL if self.copies(pid) else signal.SIGCONT)
			time.sleep(0.005)


def test_a_table_that_cannot_be_exported_is_skipped(start_place, tmp_path_factory):
	"""One user's row of 40 MB, a copy at which the server dies each time, a database of bytes without an encoding, one that refuses
	to be written: all else is exported."""
	bucket = tmp_path_factory.mktemp('exports') / 'tables'
	place = start_place('--export-buckets', bucket.parent)
	bucket.mkdir()
	allow(place.server)
	c = cluster(place, 'odd', pit=False)
	c.ask('create table good(a int); insert into good values (1), (2); create table long(a text)')
	c.ask("insert into long values ('short'), (repeat('x', 40000000))")
	for name in ('a_killer', 'b_victim'):
		c.ask("create table %s(a text); insert into %s values (repeat('\u00e9', 16000000))" % (name, name))
	c.ask("create database bytes template template0 encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'")
	c.ask(r"""set client_encoding = 'SQL_ASCII'; do $$ begin execute convert_from(decode('637265617465207461626c652022ff222861207465787429', 'hex'),
		'SQL_ASCII'); end $$; create table fine(a text); insert into fine values ('x'); create table broken(a text);
		insert into broken values (convert_from(decode('fe', 'hex'), 'SQL_ASCII'))""", database='bytes')
	c.ask('create database refuses')
	c.ask('alter database refuses set default_transaction_read_only = on')
	shot = take(c)
	made = ok(c.server.post('/groups/%s/backup/exportBuckets' % c.server.group, json={'bucketName': 'tables', 'cloudProvider': 'AWS', 'iamRoleId': 'a' * 24}))
	killer = Killer(place, 4)  # three times at the first table, and once at the next
	job = ok(c.server.post(c.path + '/backup/exports', json={'snapshotId': shot['id'], 'exportBucketId': made['_id']}))['id']
	done = until(lambda: (lambda d: d if d['state'] in ('Successful', 'Failed') else None)(ok(c.server.get('%s/backup/exports/%s' % (c.path, job)))), 120)
	killer.left = 0
	assert done['state'] == 'Successful' and done['stateReason']['errorCode'] == 'TABLES_SKIPPED', (done, c.server.stderr[-2000:])
	manifest, = bucket.glob('**/manifest.json')
	tables = {(t['database'], t['table']): t for t in json.loads(manifest.read_text())['tables']}
	skipped = {k: t['skipped'] for k, t in tables.items() if 'skipped' in t}
	assert set(skipped) >= {('postgres', 'long'), ('bytes', 'broken')} and 'more than' in skipped['postgres', 'long'] and 'UTF-8' in skipped['bytes', 'broken']
	assert 'the server ended' in skipped['postgres', 'a_killer']
	assert tables['postgres', 'b_victim']['rows'] == 1 and tables['postgres', 'b_victim']['bytes'] == 32000000 + len('{"a":""}\n')
	row, = (json.loads(gzip.decompress(f.read_bytes())) for f in bucket.glob('**/public.b_victim.*'))
	assert row == {'a': '\u00e9' * 16000000}
	assert tables['postgres', 'good']['rows'] == 2 and tables['bytes', 'fine']['rows'] == 1 and tables['bytes', '\\xff']['rows'] == 0
	assert len(list(bucket.glob('**/*.json.gz'))) == len(tables) - len(skipped), 'nothing of those that were skipped'
	assert done['exportStatus'] == {'exportedCollections': len(tables) - len(skipped), 'totalCollections': len(tables)}
