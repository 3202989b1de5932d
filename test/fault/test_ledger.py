"""Restores to random points in time, under load whose every transaction is known, with faults of all kinds in between: each
holds exactly what was committed until its point. What is offered is restored; what is not offered is told so.

STEWARD_POINTS says to how many points (5; `script/test ledger`: 133, and half of that of shards), STEWARD_SEED repeats a run's choices."""
import os, random, signal, time

import psycopg2, pytest

import client, databases
from client import cli, ok, refused
from databases import allow, shape, until, working_in
from ledger import PGBENCH, Ledger, Pgbench, Repository, ask_point, clock, events, job_over, leads_to, moment, now, restored, \
	seconds_of, take, window

POINTS = int(os.environ.get('STEWARD_POINTS', '5'))
SEED = int(os.environ.get('STEWARD_SEED') or random.SystemRandom().randrange(1 << 32))
REPOSITORY_MB = 1500
YEAR = 365 * 86400
OFFERED_SECONDS = 180  # of a busy machine; on an idle one it is two
pytestmark = pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')


def end(pid):
	try:
		os.kill(pid, signal.SIGKILL)
	except ProcessLookupError:
		pass


class Faults:
	"""What may befall a cluster, its service and its repository. Each leaves them as they were, or about to be."""

	def __init__(self, site, c, repository, rng):
		self.site, self.c, self.repository, self.rng, self.done = site, c, repository, rng, []
		self.away = ['repository away', 'repository away, service killed', 'repository away, primary killed']
		self.away += ['repository full', 'repository full, primary killed'] if repository.mounted else []
		self.kinds = ['primary killed', 'service killed', 'standby killed', 'failover', 'archiver killed',
			      'primary and service killed', 'pause', 'segment switched', 'snapshot', *self.away]
		self.kinds += ['clock forward', 'clock back'] if clock.file else []
		self.deck = []

	def pick(self):
		"""All of them once, in any order, then again; in a short run those first that have to do with the archive."""
		if not self.deck:
			self.deck = self.rng.sample(self.kinds, len(self.kinds))
			if not self.done:
				self.deck.sort(key=lambda kind: kind in ('primary killed', 'repository away, primary killed', 'service killed',
									 'repository full', 'failover'))
		return self.deck.pop()

	def sets(self):
		return self.c.book()['sets']

	def primary(self):
		s = self.rng.choice(self.sets())
		try:
			end(self.c.pid(s['primary']))
		except (OSError, ValueError):
			pass  # it is down already

	def standby(self):
		leaders = {s['primary'] for s in self.sets()}
		nodes = [n for n in self.c.nodes() if n not in leaders]
		try:
			end(self.c.pid(self.rng.choice(nodes or list(self.c.nodes()))))
		except (OSError, ValueError):
			pass

	def archiver(self):
		"""PostgreSQL's process that fills the spool; the service, which empties it, is killed in others."""
		node = self.rng.choice(self.sets())['primary']
		for pid in working_in(self.c.directory(node).parent):
			try:
				if b'archiver' in open('/proc/%d/cmdline' % pid, 'rb').read():
					end(pid)
			except OSError:
				continue

	def service(self):
		self.site.kill()
		time.sleep(self.rng.uniform(0, 1))

	def failover(self):
		answer = self.c.server.post(self.c.path + '/restartPrimaries')
		assert answer.status_code in (200, 409), answer.text  # it may be busy with the fault before

	def pause(self):
		"""Once the fault before is over: a cluster that changes is not paused."""
		self.c.settled()
		self.c.change(paused=True)
		self.c.settled()
		time.sleep(self.rng.uniform(0, 4))
		self.c.change(paused=False)
		self.c.settled()

	def switch(self):
		"""More than a segment takes."""
		try:
			self.c.ask('create table if not exists filler(t text); truncate filler; '
				   'insert into filler select md5(random()::text) from generate_series(1, 60000)')
		except psycopg2.Error:
			pass  # it is down

	def inflict(self, kind):
		self.done.append(kind)
		if kind.startswith('repository'):
			self.gone(kind)
		elif kind == 'clock forward':
			clock.jump(self.rng.uniform(2, 50))
		elif kind == 'clock back':
			clock.jump(-self.rng.uniform(1, 30))
		elif kind == 'pause':
			self.pause()
		elif kind == 'segment switched':
			self.switch()
		elif kind == 'snapshot':
			self.c.server.post(self.c.path + '/backup/snapshots', json={})
			time.sleep(self.rng.uniform(0, 3))
		elif kind == 'failover':
			self.failover()
		else:
			if 'service' in kind:
				self.service()
			if 'primary' in kind:
				self.primary()
			if 'standby' in kind:
				self.standby()
			if 'archiver' in kind:
				self.archiver()
			if 'service' in kind:
				self.site.start()

	def gone(self, kind):
		full = 'full' in kind
		(self.repository.fill if full else self.repository.away)()
		try:
			time.sleep(self.rng.uniform(0.5, 3))
			if 'primary' in kind:
				self.primary()
			if 'service' in kind:
				self.service()
				self.site.start()
			time.sleep(self.rng.uniform(0.5, 3))
		finally:
			(self.repository.free if full else self.repository.back)()


class Run:
	"""One cluster under load, another that its points are restored into."""

	def __init__(self, site, rng, ledger, c, target, repository, look, exact, bench=None):
		self.site, self.rng, self.ledger, self.c, self.target, self.look, self.exact = site, rng, ledger, c, target, look, exact
		self.bench = bench
		self.repository, self.faults, self.left, self.restores = repository, Faults(site, c, repository, rng), [], []
		self.edges = []

	def check(self, job, point):
		"""A point of a sharded cluster is its last checkpoint before, whose second the job tells."""
		done = restored(self.c, job, self.target)
		at = seconds_of(done['timestamp'])
		assert at <= point and (not self.exact or at == point), done
		rows = self.look(self.target, self.ledger, at, at if self.exact else at + 1)
		self.restores.append(point)
		print('\n  %d: %d transactions' % (point, rows), end='')

	def fault(self, kind):
		began = now()
		print('\n  %d: %s' % (began, kind), end='')
		self.faults.inflict(kind)
		return began, now()

	def point(self, first, fault):
		"""A second of all that were, or one about the time of the last fault."""
		began, ended = fault
		choice = self.rng.random()
		self.edges += [int(at) for at in fault]
		if choice < 0.3:  # at, just before or just after a fault of any time
			return self.rng.choice(self.edges) + self.rng.choice((-1, 0, 1))
		low, high = (first, ended) if choice < 0.6 else (began - 2, ended + 2)
		return int(self.rng.uniform(*sorted((low, high))))

	def outside(self, first):
		low, _ = window(self.c, self.target) or (first, first)  # nothing is offered while the first log is on its way
		for point in (low - 1 - self.rng.randrange(1000), int(max(now(), clock.latest)) + 10 + self.rng.randrange(100000)):
			refused(ask_point(self.c, point, self.target), 400, 'POINT_IN_TIME_NOT_RESTORABLE')

	def round(self, first):
		"""A fault, and a point that is asked for at once. Where it is offered the next fault meets the restore."""
		fault = self.fault(self.faults.pick())
		self.outside(first)
		point = max(first, self.point(first, fault))
		answer = ask_point(self.c, point, self.target)
		if answer.status_code != 200:
			refused(answer, 400, 'POINT_IN_TIME_NOT_RESTORABLE')
			self.left.append(point)
		else:
			if self.rng.random() < 0.5:
				self.fault(self.rng.choice(['primary killed', 'standby killed', 'service killed', 'failover']))
			self.check(answer.json(), point)
		self.ledger.goes_on()

	def later(self, point, fault=None):
		"""Nothing was lost, so each point is offered once its log has come."""
		answers = []

		def offered():
			answers[:] = [ask_point(self.c, point, self.target)]
			return answers[0].status_code == 200
		try:
			until(offered, OFFERED_SECONDS, 'the point to be offered', longest=1)
		except AssertionError as e:
			raise AssertionError('%d: %s\n%s' % (point, answers[0].text, self.site.server.stderr[-3000:])) from e
		if fault:
			self.fault(fault)
		self.check(answers[0].json(), point)

	def run(self, points, first):
		for n in range(points):
			if n == points // 2:
				take(self.c)  # so that points have bases of several times
			self.round(first)
		self.ledger.stop()
		for point in self.left:
			self.later(point)
		if self.bench:
			self.bench.stop()
		# The log stands still, which nobody but the service knows when it is asked, and then is killed.
		last = moment()
		self.later(last, 'service killed')
		low, high = window(self.c, self.target)
		assert low <= first and high >= last, (low, first, high, last)
		print('\n  %d points (%d of them at once), %d transactions, %s' % (
			len(self.restores), len(self.restores) - len(self.left) - 1, self.ledger.acknowledged(), ', '.join(
				'%s: %d' % (kind, self.faults.done.count(kind)) for kind in sorted(set(self.faults.done)))), end='')


def flip(files):
	for file in files:
		with open(file, 'r+b') as f:
			f.seek(file.stat().st_size // 2)
			byte = f.read(1)
			f.seek(-1, os.SEEK_CUR)
			f.write(bytes([byte[0] ^ 1]))


def damaged_log_replaces_nothing(run):
	"""A flipped byte in the log is found while the target still has what it had."""
	c, target = run.c, run.target
	c.ask("create table bulk(t text); alter table bulk alter t set storage external; "
	      "insert into bulk select repeat(md5(n::text), 100) from generate_series(1, 5000) n")
	point = moment()
	until(lambda: leads_to(c, point), OFFERED_SECONDS, 'the log in the repository', longest=1)
	before = target.ask('select count(*) from ledger')
	whole = [f for f in run.repository.path.glob('*/*/wal/%s/*/0/*/*' % c.id) if len(f.name) == 24 and f.parent.name != 'seconds']
	assert len(whole) > 2
	flip(whole)
	job = ok(ask_point(c, point, target))
	assert job_over(c, job)['failed']
	why = c.server.get('%s/backup/restoreJobs/%s' % (c.path, job['id'])).headers['X-Steward-Progress']
	assert 'damaged' in why, why
	target.settled()
	assert target.ask('select count(*) from ledger') == before
	flip(whole)


@pytest.fixture
def backed(site, monkeypatch):
	"""A service whose repository has a disk of its own, and whose clock may jump."""
	made = []

	def make(*args):
		s = site(*args)
		starter = clock.may_jump(s.root, client.binary())
		if starter:
			monkeypatch.setenv('STEWARD_BIN', starter)
		made.append(Repository(s.root, REPOSITORY_MB))
		s.args = (*s.args, '--backups', made[-1].path)
		allow(s.start())
		return s, made[-1]
	yield make
	for r in made:
		r.close()


def delete(*clusters):
	for c in clusters:
		c.delete()
	for c in clusters:
		c.deleted()


def test_restores_of_a_set(backed):
	print('\nSTEWARD_SEED=%d' % SEED, end='')
	rng = random.Random(SEED)
	s, repository = backed()
	c = s.cluster('source', backupEnabled=True, pitEnabled=True, **shape(3)).settled()
	target = s.cluster('target', **shape(1)).settled()
	if clock.file:
		clock.jump(20)
		assert abs(float(c.ask('select extract(epoch from clock_timestamp())')[0][0]) - now()) < 10, 'the databases have another clock'
	c.ask('create table ledger(n bigint primary key, at timestamptz default clock_timestamp())')
	bench = PGBENCH and Pgbench(c)
	ledger = Ledger(c, lambda n: 'insert into ledger values (%d)' % n)
	take(c)
	ledger.goes_on()
	first = int(now()) + 1
	until(lambda: now() > first)

	def look(target, ledger, low, high):
		if bench:
			bench.check(target.ask)
		return ledger.check({n: 1 for n, in target.ask('select n from ledger')}, low, high)
	run = Run(s, rng, ledger, c, target, repository, look, exact=True, bench=bench)
	try:
		run.run(POINTS, first)
	finally:
		ledger.stopping = True
		if bench:
			bench.stop()
	damaged_log_replaces_nothing(run)
	# Restored log is the target's own: no file of it is also one of the repository, or of another node.
	for file in (target.directory(target.primary()) / 'pg_wal').glob('0*'):
		assert file.stat().st_nlink == 1, file
	assert 'damaged' not in cli('repository', 'check', '--data', s.data, '--backups', repository.path, timeout=600).stdout
	delete(c, target)


def test_a_clock_that_is_put_back(backed):
	"""Seconds that come twice are offered as those of the first time, and come back; so does what follows them."""
	s, repository = backed()
	if not clock.file:
		pytest.skip('the tests may not mount here')
	c = s.cluster('source', backupEnabled=True, pitEnabled=True, **shape(1)).settled()
	target = s.cluster('target', **shape(1)).settled()
	c.ask('create table ledger(n bigint primary key)')
	ledger = Ledger(c, lambda n: 'insert into ledger values (%d)' % n)
	take(c)
	ledger.goes_on()
	began = now()
	until(lambda: now() > began + 12)
	clock.jump(-9)
	low, high = clock.twice[0]
	until(lambda: now() > high + 4)
	run = Run(s, random.Random(0), ledger, c, target, repository,
		  lambda target, ledger, low, high: ledger.check({n: 1 for n, in target.ask('select n from ledger')}, low, high), exact=True)
	try:
		for point in (int(low) + 3, int(high) - 1, int(high) + 2):
			run.later(point)
	finally:
		ledger.stop()
	delete(c, target)


def test_a_clock_that_ran_ahead(backed):
	"""By a year, for some seconds: restore points go on when it is right again, and do not wait for a year; and it is told."""
	s, repository = backed()
	if not clock.file:
		pytest.skip('the tests may not mount here')
	c = s.cluster('source', backupEnabled=True, pitEnabled=True, **shape(1)).settled()
	target = s.cluster('target', **shape(1)).settled()
	c.ask('create table ledger(n bigint primary key)')
	ledger = Ledger(c, lambda n: 'insert into ledger values (%d)' % n)
	take(c)
	ledger.goes_on()
	clock.jump(YEAR)
	ahead = int(now()) // 3600
	until(lambda: [f for f in repository.path.glob('*/*/wal/%s/*/0/seconds/*' % c.id) if int(f.name) >= ahead], OFFERED_SECONDS, 'marks of next year')
	ledger.goes_on()
	clock.jump(-YEAR)
	ledger.put_back(YEAR)
	began = now()
	until(lambda: 'CPS_OPLOG_BEHIND' in events(c, 'CPS_OPLOG_BEHIND'), OFFERED_SECONDS, 'the event', longest=1)
	run = Run(s, random.Random(0), ledger, c, target, repository,
		  lambda target, ledger, low, high: ledger.check({n: 1 for n, in target.ask('select n from ledger')}, low, high), exact=True)
	try:
		low, _ = until(lambda: (lambda w: w and w[0] > began and w)(window(c, target, int(now()) + 1000)), OFFERED_SECONDS, 'another window', longest=1)
		for point in (low + 1, low + 4, int(now()) + 1):
			run.later(point)
		refused(ask_point(c, int(now()) + YEAR // 2, target), 400, 'POINT_IN_TIME_NOT_RESTORABLE')
	finally:
		ledger.stop()
	until(lambda: events(c, 'CPS_OPLOG_BEHIND', 'CPS_OPLOG_CAUGHT_UP')[-1] == 'CPS_OPLOG_CAUGHT_UP', OFFERED_SECONDS, 'the end of the alarm', longest=1)
	delete(c, target)


def test_a_snapshot_soon_after_a_failover(backed):
	"""The standby's last restartpoint is on the former timeline, whose last file of the log nobody has in full."""
	s, _ = backed()
	c = s.cluster('source', backupEnabled=True, pitEnabled=True, **shape(3)).settled()
	c.ask('create table bulk as select n, md5(n::text) t from generate_series(1, 300000) n')
	ok(c.server.post(c.path + '/restartPrimaries'))
	c.settled()
	c.whole(3)
	c.ask('insert into bulk select n, md5(n::text) from generate_series(1, 300000) n')
	take(c)
	delete(c)


def test_restores_of_shards(backed):
	"""Each transaction has rows on both shards: all of them are there, or none."""
	print('\nSTEWARD_SEED=%d' % SEED, end='')
	rng = random.Random(SEED)
	s, repository = backed()
	many = POINTS > 5
	c = s.cluster('source', backupEnabled=True, pitEnabled=True, **shape(3 if many else 1, 'M30', 2)).settled()
	target = s.cluster('target', **shape(1, 'M30', 2)).settled()
	c.ask('create table ledger(k bigint, n bigint)')
	c.ask("select steward.shard_table('ledger', 'k')")
	ledger = Ledger(c, lambda n: 'insert into ledger select %d * 6 + i, %d from generate_series(0, 5) i' % (n, n), width=6, pause=0.05)
	take(c)
	ledger.goes_on()
	# From the first point of all sets on that has the table.
	began = now()
	first = 1 + until(lambda: (lambda w: w and w[1] > began and w[1])(window(c, target)), OFFERED_SECONDS, 'a checkpoint', longest=1)

	def look(target, ledger, low, high):
		return ledger.check(dict(target.ask('select n, count(*) from ledger group by 1')), low, high)
	run = Run(s, rng, ledger, c, target, repository, look, exact=False)
	try:
		run.run(POINTS // 2, first)
	finally:
		ledger.stopping = True
	delete(c, target)
