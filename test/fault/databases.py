"""A service with real databases, looked at from outside: its files, its processes, and connections as clients make them.

Every site has a short directory of its own, which the databases' system user can reach. What a site has
started is found by where it works, so that a site ends what is its own and nothing else."""
import json, os, pathlib, shutil, subprocess, tempfile

import psycopg2

import client, reflinks
from client import ok, until, working_in

USER, PASSWORD = 'app', 'correct horse 4 battery'
spare = []  # the directory of prepared databases that a site has left


def installed():
	return any(pathlib.Path('/usr/lib/postgresql').glob('*/bin/postgres'))


def region(nodes=3, size='M10', **more):
	return {'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
		'electableSpecs': {'instanceSize': size, 'nodeCount': nodes}, **more}


def shape(nodes=3, size='M10', shards=1):
	return {'clusterType': 'REPLICASET' if shards == 1 else 'SHARDED',
		'replicationSpecs': [{'regionConfigs': [region(nodes, size)]} for _ in range(shards)]}


def listening():
	"""Addresses of this host on which somebody listens, as "a.b.c.d:port"."""
	found = set()
	for line in open('/proc/net/tcp').read().splitlines()[1:]:
		words = line.split()
		if words[3] == '0A':
			host, port = words[1].split(':')
			found.add('%s:%d' % ('.'.join(str(b) for b in reversed(bytes.fromhex(host))), int(port, 16)))
	return found


class Site:
	"""With a virtual clock, time passes while something is waited for: nobody sits out the pauses between attempts."""

	start_seconds = 120  # that the service may take to be ready

	def __init__(self, *args, clock=None):
		self.root = pathlib.Path(tempfile.mkdtemp(prefix='swe-', dir=client.SHORT))
		os.chmod(self.root, 0o711)
		self.data, self.args, self.places, self.mounted = self.root / 'd', args, set(), None
		self.server, self.clock = None, clock

	def disk(self, megabytes):
		"""Databases get a disk of their own, of this size. As root only."""
		self.mounted = self.data / 'engine'
		if not self.mounted.is_dir():
			self.mounted.mkdir(parents=True)
			os.chmod(self.data, 0o711)
			subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%dm,mode=0711' % megabytes, 'tmpfs', str(self.mounted)],
				       check=True)
		else:
			subprocess.run(['mount', '-o', 'remount,size=%dm' % megabytes, str(self.mounted)], check=True)

	def reflinks(self, megabytes):
		"""The same with files that can share blocks. False: this machine has no such file system."""
		at = self.data / 'engine'
		at.mkdir(parents=True)
		os.chmod(self.data, 0o711)
		self.mounted = at if reflinks.mount(self.root / 'disk', at, megabytes) else None
		return bool(self.mounted)

	def encrypting(self, megabytes):
		"""The same with files that the kernel can encrypt."""
		make = reflinks.mkfs_encrypting()
		if not make:
			return False
		at = self.data / 'engine'
		at.mkdir(parents=True)
		os.chmod(self.data, 0o711)
		self.mounted = at if reflinks.mount(self.root / 'disk', at, megabytes, make) else None
		return bool(self.mounted)

	def remount(self):
		"""As after a start of the machine: whatever the kernel knew of it, it does not."""
		reflinks.unmount(self.mounted)
		subprocess.run(['mount', '-o', 'loop', str(self.root / 'disk'), str(self.mounted)], check=True)

	def pool_in(self):
		"""What another site has prepared and not used: initdb need not run again."""
		if spare and not self.mounted and not self.data.exists():
			(self.data / 'engine').mkdir(parents=True)
			os.chmod(self.data, 0o711)
			os.chmod(self.data / 'engine', 0o711)
			os.rename(spare.pop(), self.data / 'engine' / 'pool')

	def pool_out(self):
		pool = self.data / 'engine' / 'pool'
		if not spare and not self.mounted and self.server and self.server.ended and not self.server.killed and pool.is_dir():
			kept = pathlib.Path(tempfile.mkdtemp(prefix='swp-', dir=client.SHORT))
			client.folders.append(kept)
			spare.append(kept / 'pool')
			os.rename(pool, spare[0])

	def start(self):
		self.pool_in()
		config = self.root / 'limits.conf'
		config.write_text('limit.* = 1000000/1000000\n')
		self.server = client.Server('--engine', 'postgres', '--config', config, '--log-level', 'warn', *self.args,
					    data_dir=self.data, clock=self.clock, start_seconds=self.start_seconds)
		return self.server

	def pass_time(self, seconds=2):
		if self.clock:
			self.server.advance(seconds)

	def kill(self):
		"""-9, as a crash would."""
		self.server.kill()

	def cluster(self, name, **wanted):
		return Cluster(self, name, wanted)

	def end(self):
		"""Everything is taken down the way users do it, and nothing of it may be left."""
		left = []
		try:
			if self.server and not self.server.ended:
				self.server.stop()
			left += ['process %d: %s' % (p, pathlib.Path('/proc/%d/cmdline' % p).read_text().replace('\0', ' '))
				 for p in working_in(self.root)]
			engine = self.data / 'engine'
			empty = ('run', 'throwaway')
			left += [str(p) for p in engine.iterdir() if p.name not in ('pool', 'ca', 'lib', 'lost+found', *empty)] if engine.is_dir() else []
			left += [str(p) for d in empty if (engine / d).is_dir() for p in (engine / d).iterdir()]
			left += ['listening: ' + p for p in self.places & listening()]
			left += [str(engine.resolve())] if engine.is_symlink() else []
		finally:
			self.wipe()
		assert not left, 'left behind: ' + ', '.join(left)

	def wipe(self):
		"""By force, after a failure."""
		self.pool_out()
		if self.server:
			self.server.kill()
		client.processes_end(self.root)
		if self.mounted:
			reflinks.unmount(self.mounted)
		shutil.rmtree(self.root, ignore_errors=True)


class Cluster:
	"""One cluster of the first project, as its users and its keeper see it."""

	def __init__(self, site, name, wanted):
		self.site, self.name = site, name
		self.path = '/groups/%s/clusters/%s' % (site.server.group, name)
		self.made = ok(site.server.post('/groups/%s/clusters' % site.server.group,
						json={'name': name, **(wanted or shape())}), 201)
		self.id = self.made['id']

	@property
	def server(self):
		return self.site.server

	def state(self):
		r = self.server.get(self.path)
		return None if r.status_code == 404 else ok(r)['stateName']

	def why(self):
		return self.server.get(self.path + '/status').headers.get('X-Steward-Progress')

	def waited(self):
		"""The state, after some time."""
		self.site.pass_time()
		return self.state()

	def settled(self, seconds=240, at='IDLE'):
		try:
			until(lambda: self.waited() == at, seconds, '%s to be %s' % (self.name, at))
		except AssertionError as e:
			raise AssertionError('%s: %s, %s\n%s' % (e, self.state(), self.why(), self.server.stderr[-3000:]))
		self.note()
		return self

	def change(self, **what):
		return ok(self.server.patch(self.path, json=what))

	def delete(self):
		r = self.server.delete(self.path)
		assert r.status_code == 202, r.text

	def deleted(self, seconds=240):
		until(lambda: self.waited() is None, seconds, 'the deletion of ' + self.name)
		assert not (self.site.data / 'engine' / self.id).exists()

	def book(self):
		return json.loads((self.site.data / 'engine' / self.id / 'state.json').read_text())

	def nodes(self):
		return {n['name']: n for n in self.book()['nodes']}

	def note(self):
		self.site.places |= {'%s:%d' % (n['address'], n['port']) for n in self.book()['nodes']}

	def primary(self, shard=0):
		return next(s['primary'] for s in self.book()['sets'] if s['set'] == shard)

	def directory(self, node):
		return self.site.data / 'engine' / self.id / node / 'data'

	def pid(self, node):
		pid = int((self.directory(node) / 'postmaster.pid').read_text().split()[0])
		assert pid > 1
		return pid

	def connect(self, node=None, database='postgres', user=USER, password=PASSWORD, timeout=20):
		"""To one node, or with the API's own string to whichever takes writes."""
		login = dict(user=user, password=password, dbname=database, connect_timeout=timeout)
		if node:
			n = self.nodes()[node] if isinstance(node, str) else node
			c = psycopg2.connect(host=n['name'], hostaddr=n['address'], port=n['port'], sslmode='require', **login)
		else:
			c = psycopg2.connect(ok(self.server.get(self.path))['connectionStrings']['standard'], **login)
		c.autocommit = True
		return c

	def ask(self, sql, node=None, **kw):
		c = self.connect(node, **kw)
		try:
			cursor = c.cursor()
			cursor.execute(sql)
			return cursor.fetchall() if cursor.description else None
		finally:
			c.close()

	def writable(self):
		"""Names of the nodes that take writes."""
		found = []
		for name, n in self.nodes().items():
			try:
				if self.ask('select pg_is_in_recovery()', n) == [(False,)]:
					found.append(name)
			except psycopg2.Error:
				pass
		return found

	def whole(self, count, seconds=120):
		"""All nodes run, one takes writes, and the others stream from it. A connection takes longer than all else of a look, on both sides:
		there is one to each node, and none to those behind one that does not answer."""
		def check():
			nodes = self.nodes()
			try:
				primaries = [n for n in nodes.values() if self.ask('select pg_is_in_recovery()', n) == [(False,)]] if len(nodes) == count else []
				return len(primaries) == 1 and self.ask('select count(*) from pg_stat_replication', primaries[0]) == [(count - 1,)]
			except psycopg2.Error:
				return False
		until(check, seconds, '%d nodes of %s' % (count, self.name), longest=0.3)


def allow(server):
	"""An access-list entry and a user, through the API."""
	ok(server.post('/groups/%s/accessList' % server.group, json=[{'cidrBlock': '127.0.0.0/8'}]))
	ok(server.post('/groups/%s/databaseUsers' % server.group, json={
		'username': USER, 'password': PASSWORD, 'databaseName': 'admin', 'groupId': server.group,
		'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
