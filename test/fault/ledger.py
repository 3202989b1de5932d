"""A ledger of transactions, held against what a restore brings back; and backups as users have them, through the API."""
import datetime, os, pathlib, re, shlex, struct, subprocess, threading, time

import psycopg2

from client import ok
from databases import PASSWORD, USER, until

PGBENCH = next(iter(sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin/pgbench'))), None)
REFUSED = re.compile(r'from \S+ \((\d+)\) to \S+ \((\d+)\)')


class Clock:
	"""The time of day as the service, its databases and the ledger have it. It jumps where we may mount: then the program is started with
	clock_jump.c before its libraries, in a namespace of mounts of its own, because databases get nobody's environment."""

	def __init__(self):
		self.begin(None)

	def begin(self, file):
		self.offset, self.file, self.twice, self.latest = 0, file, [], 0

	def may_jump(self, folder, program):
		"""The program to start in the place of that one; None: not here."""
		library, file, over, starter = (folder / name for name in ('clock.so', 'clock.offset', 'clock.etc', 'steward-clock'))
		over.mkdir()
		file.write_bytes(bytes(8))
		subprocess.run(['cc', '-shared', '-fPIC', '-DCLOCK_JUMP="%s"' % file, '-o', library,
				pathlib.Path(__file__).with_name('clock_jump.c'), '-ldl'], check=True)
		inner = 'mount -t tmpfs tmpfs {0} && mkdir {0}/u {0}/w && mount -t overlay overlay -o lowerdir=/etc,upperdir={0}/u,workdir={0}/w /etc && ' \
			'echo {1} >/etc/ld.so.preload && exec {2} "$@"'.format(over, library, shlex.quote(program))
		starter.write_text('#!/bin/sh\nexec unshare --mount --propagation slave sh -c %s sh "$@"\n' % shlex.quote(inner))
		starter.chmod(0o755)
		works = os.geteuid() == 0 and subprocess.run([starter, '--version'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
		self.begin(file if works else None)
		return str(starter) if works else None

	def now(self):
		at = time.time() + self.offset
		self.latest = max(self.latest, at)
		return at

	def jump(self, seconds):
		"""Back: the seconds that it has shown already come twice."""
		before = self.now()
		self.offset += seconds
		with open(self.file, 'r+b') as f:
			f.write(struct.pack('<q', round(self.offset * 1000000)))
		if seconds < 0:
			self.twice.append((before + seconds - 0.1, before + 0.1))

	def spread(self, low, high):
		"""Where those times may lie: a second that came twice is any of both, and what lies between."""
		again = True
		while again:
			wide = [(a, b) for a, b in self.twice if a <= high and b >= low]
			lowest, highest = min([low, *(a for a, _ in wide)]), max([high, *(b for _, b in wide)])
			again, low, high = (lowest, highest) != (low, high), lowest, highest
		return low, high


clock = Clock()
now = clock.now


class Entry:
	"""A transaction: when it was begun, and when it was acknowledged, which is None as long as that is not known."""
	__slots__ = ('n', 'writer', 'begun', 'acked', 'failed', 'order', 'done')

	def __init__(self, n, writer):
		self.n, self.writer, self.begun, self.acked, self.failed = n, writer, now(), None, False
		self.order = time.monotonic()


class Ledger:
	"""Writers, each of which writes one transaction after the other. Every one has `width` rows, which `statement` makes of its
	number; of a sharded cluster they lie on several shards. The pause between two leaves dozens in each second, to which points are
	restored; without one the load takes most of the processor that the restores want."""

	def __init__(self, c, statement, width=1, writers=3, pause=0.02):
		self.string = ok(c.server.get(c.path))['connectionStrings']['standard']
		self.statement, self.width, self.pause = statement, width, pause
		self.entries, self.lock, self.stopping = [], threading.Lock(), False
		self.threads = [threading.Thread(target=self.write, args=(i,), daemon=True) for i in range(writers)]
		for t in self.threads:
			t.start()

	def begin(self, writer):
		with self.lock:
			self.entries.append(Entry(len(self.entries) + 1, writer))
			return self.entries[-1]

	def write(self, writer):
		conn = None
		while not self.stopping:
			try:
				conn = conn or psycopg2.connect(self.string, user=USER, password=PASSWORD, dbname='postgres', connect_timeout=3)
				conn.autocommit = True
			except psycopg2.Error:
				time.sleep(0.05)
				continue
			entry = self.begin(writer)
			try:
				conn.cursor().execute(self.statement(entry.n))
				entry.done = time.monotonic()
				entry.acked = now()
			except psycopg2.Error:  # it may be there, and may not
				entry.failed = True
				conn.close()
				conn = None
			time.sleep(self.pause)
		if conn:
			conn.close()

	def put_back(self, seconds):
		"""The clock was that far ahead for a while: what was noted then gets the times that were right."""
		limit = now() + seconds / 2
		with self.lock:
			for e in self.entries:
				e.begun -= seconds if e.begun > limit else 0
				e.acked = e.acked and e.acked - (seconds if e.acked > limit else 0)
		clock.twice.clear()
		clock.latest = 0

	def stop(self):
		self.stopping = True
		for t in self.threads:
			t.join(120)
			assert not t.is_alive(), 'a writer hangs'

	def acknowledged(self):
		with self.lock:
			return sum(e.acked is not None for e in self.entries)

	def goes_on(self, seconds=180):
		"""Until transactions that begin now are acknowledged."""
		began = time.monotonic()

		def later():
			with self.lock:
				return sum(e.acked is not None and e.order > began for e in reversed(self.entries[-200:])) >= 5
		until(later, seconds, 'acknowledged writes')

	def check(self, found, low, high=None):
		"""found: number -> rows. All that was acknowledged before `low` is there as a whole, nothing that began after `high`, and
		none without all that was acknowledged before it began, whatever the clocks say."""
		low, high = clock.spread(low, low if high is None else high)
		with self.lock:
			entries = list(self.entries)
		assert set(found) <= {e.n for e in entries}, 'rows that nobody wrote'
		lacking = [e.n for e in entries if e.acked and e.acked < low and e.n not in found]
		extra = [e.n for e in entries if e.begun > high and e.n in found]
		# One whose commit failed on the way may be on one shard alone, in the source as well.
		torn = [e.n for e in entries if not e.failed and found.get(e.n, self.width) != self.width]
		first = min((e.done for e in entries if e.acked and e.n not in found), default=float('inf'))
		overtaken = [e.n for e in entries if e.n in found and e.order > first]
		assert not (lacking or extra or torn or overtaken), 'at %.3f to %.3f, %d rows of %d: %s' % (
			low, high, len(found), len(entries), {'lacking': (len(lacking), lacking[:5]), 'extra': (len(extra), extra[:5]),
							      'torn': (len(torn), torn[:5]), 'overtaken': (len(overtaken), overtaken[:5])})
		return len(found)


class Pgbench:
	"""pgbench's own load beside it, begun again whenever a fault has ended it."""

	def __init__(self, c, rate=60):
		self.stopping, self.process, self.runs = False, None, 0
		self.string = ok(c.server.get(c.path))['connectionStrings']['standard']
		self.env = {**os.environ, 'PGUSER': USER, 'PGPASSWORD': PASSWORD, 'PGDATABASE': 'postgres', 'PGCONNECT_TIMEOUT': '5'}
		until(lambda: self.run('-i', '-q', '-s', '1').wait() == 0, 120, 'the tables of pgbench', longest=1)
		self.thread = threading.Thread(target=self.again, args=(rate,), daemon=True)
		self.thread.start()

	def run(self, *args):
		return subprocess.Popen([str(PGBENCH), *args, self.string], env=self.env, stdout=subprocess.DEVNULL,
					stderr=subprocess.DEVNULL)

	def again(self, rate):
		while not self.stopping:
			self.process = self.run('-n', '-c', '2', '-T', '3600', '-R', str(rate))
			self.runs += 1
			self.process.wait()
			time.sleep(0.2)

	def stop(self):
		self.stopping = True
		while self.thread.is_alive():
			self.process.terminate()
			self.thread.join(1)

	@staticmethod
	def check(ask):
		"""Each transaction adds the same to an account, a teller, a branch and the history."""
		sums = ask('select (select coalesce(sum(abalance), 0) from pgbench_accounts), (select coalesce(sum(tbalance), 0) from '
			   'pgbench_tellers), (select coalesce(sum(bbalance), 0) from pgbench_branches), (select coalesce(sum(delta), 0) from '
			   'pgbench_history)')[0]
		assert len(set(sums)) == 1, sums


# --- backups through the API


def snapshots(c):
	return ok(c.server.get(c.path + '/backup/snapshots?itemsPerPage=500'))['results']


def completed(c):
	return sum(doc['status'] == 'completed' for doc in snapshots(c))


def take(c, seconds=240):
	"""A snapshot, completed."""
	made = ok(c.server.post(c.path + '/backup/snapshots', json={}))['id']
	done = until(lambda: (lambda d: d['status'] in ('completed', 'failed') and d)(
		ok(c.server.get('%s/backup/snapshots/%s' % (c.path, made)))), seconds, 'the snapshot', longest=0.5)
	assert done['status'] == 'completed', (done, c.server.stderr[-3000:])
	return done


def ask_point(c, point, target):
	"""The answer to the wish for that second."""
	return c.server.post(c.path + '/backup/restoreJobs', json={
		'deliveryType': 'pointInTime', 'pointInTimeUTCSeconds': point, 'targetClusterName': target.name, 'targetGroupId': c.server.group})


def leads_to(c, point):
	"""The snapshots from which that second can be reached: none, if it cannot."""
	return ok(c.server.get('%s/backup/snapshots?pointInTimeUtcSeconds=%d' % (c.path, point)))['results']


def moment():
	"""A second: what was done before is before it, what follows is after it."""
	at = int(now()) + 1
	until(lambda: now() > at + 0.01)
	return at


def window(c, target, near=None):
	"""The nearest stretch that can be restored, as seconds, by the refusal of what cannot be; None: nothing can."""
	answer = ask_point(c, near or 1262304000, target)
	assert answer.status_code == 400, answer.text
	found = REFUSED.search(answer.json()['detail'])
	return found and (int(found.group(1)), int(found.group(2)))


def job_over(c, job, seconds=300):
	"""The job's document when it is over; also where the service was ended meanwhile."""
	path = '%s/backup/restoreJobs/%s' % (c.path, job['id'])
	return until(lambda: (lambda j: j.get('finishedAt') and j)(ok(c.server.get(path))), seconds, 'the restore', longest=0.5)


def restored(c, job, target):
	"""Once it is, as its job tells."""
	done = job_over(c, job)
	why = c.server.get('%s/backup/restoreJobs/%s' % (c.path, job['id'])).headers.get('X-Steward-Progress')
	assert not done.get('failed') and not done.get('cancelled'), (done, why, c.server.stderr[-3000:])
	target.settled()
	return done


def seconds_of(text):
	return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


def events(c, *names):
	"""Those of the project, oldest first."""
	found = ok(c.server.get('/groups/%s/events?itemsPerPage=500' % c.server.group))['results']
	return [e['eventTypeName'] for e in reversed(found) if e['eventTypeName'] in names]


class Repository:
	"""Where a site keeps its backups, which can be away and, for root, full. Its directory lies in another, which is renamed."""

	def __init__(self, root, megabytes=0):
		self.above, self.away_at = root / 'repository', root / 'repository.away'
		self.path, self.mounted = self.above / 'store', False
		self.path.mkdir(parents=True)
		if megabytes and os.geteuid() == 0:
			subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%dm,mode=0700' % megabytes, 'tmpfs', str(self.path)], check=True)
			self.mounted = True

	def away(self):
		"""A file in its place: nothing can be made there, also by a service that starts anew."""
		os.rename(self.above, self.away_at)
		self.above.write_text('')

	def back(self):
		self.above.unlink()
		os.rename(self.away_at, self.above)

	def fill(self):
		with open(self.path / '~ballast', 'wb', buffering=0) as f:
			try:
				while True:
					f.write(b'\0' * 65536)
			except OSError:
				pass

	def free(self):
		(self.path / '~ballast').unlink()

	def close(self):
		if self.away_at.exists():
			self.back()
		if self.mounted:
			subprocess.run(['umount', '-l', str(self.path)], check=False)
