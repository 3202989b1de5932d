"""Network namespaces as hosts: each has one wire onto a bridge, whose own address is where the store and the tests are.
Nothing of it leaves the machine. As root only."""
import atexit, os, pathlib, shutil, subprocess

import pytest

import client

made = []


@atexit.register
def clean_up():
	for n in list(made):
		n.close()


def ip(*words, check=True):
	return subprocess.run(['ip', *words], check=check, stderr=None if check else subprocess.DEVNULL).returncode == 0


def needed():
	"""Skips where namespaces are out of reach."""
	if os.getuid() != 0 or not shutil.which('ip'):
		pytest.skip('needs root and iproute2')


class Network:
	"""Host i is at address(i); service and proxy are addresses of the bridge, which all of them reach. folder is for what the
	hosts write, in memory: their databases come and go faster there."""

	def __init__(self, count):
		needed()
		self.hosts, self.wires = [], []
		self.claim()
		made.append(self)
		try:
			self.build(count)
		except BaseException:
			self.close()
			raise

	def claim(self):
		"""The bridge's name goes with the range of addresses, so whoever makes the bridge has both for itself."""
		start = os.getpid()
		for k in range(250):
			n = (start + k) % 250
			self.bridge, self.net = 'swb%d' % n, '10.214.%d.' % n
			if ip('link', 'add', self.bridge, 'type', 'bridge', check=False):
				break
		else:
			pytest.skip('bridges are not permitted here')
		ip('link', 'set', self.bridge, 'alias', os.environ.get('STEWARD_TEST_RUN', 'steward-test'))  # whose it is
		self.service, self.proxy = self.net + '1', self.net + '2'
		self.folder = pathlib.Path(client.SHORT, self.bridge)

	def build(self, count):
		self.folder.mkdir(exist_ok=True)
		subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8g,mode=0711', 'tmpfs', str(self.folder)], check=True)
		for address in (self.service, self.proxy):
			ip('addr', 'add', address + '/24', 'dev', self.bridge)
		ip('link', 'set', self.bridge, 'up')
		for i in range(count):
			name, wire = '%sn%d' % (self.bridge, i), '%sw%d' % (self.bridge, i)
			if not ip('netns', 'add', name, check=False):
				pytest.skip('network namespaces are not permitted here')
			self.hosts.append(name)
			ip('link', 'add', wire, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
			self.wires.append(wire)
			ip('link', 'set', wire, 'master', self.bridge, 'up')
			for words in (('link', 'set', 'lo', 'up'), ('addr', 'add', self.address(i) + '/24', 'dev', 'eth0'),
				      ('link', 'set', 'eth0', 'up')):
				ip('-n', name, *words)

	def address(self, i):
		return self.net + str(10 + i)

	def inside(self, i):
		"""The beginning of a command that runs on host i: of all that a namespace is, the network alone."""
		return ('nsenter', '--net=/run/netns/' + self.hosts[i])

	def inode(self, i):
		return os.stat('/run/netns/' + self.hosts[i]).st_ino

	def plug(self, i, there):
		"""The wire of a host, in or out."""
		ip('link', 'set', self.wires[i], 'up' if there else 'down')

	def apart(self, hosts, cut):
		"""Nothing passes between these hosts, in silence; each still reaches all others."""
		for i in hosts:
			subprocess.run(['bridge', 'link', 'set', 'dev', self.wires[i], 'isolated', 'on' if cut else 'off'], check=True)

	def close(self):
		"""A namespace goes once its last process has ended; its wire goes now."""
		for wire in self.wires:
			ip('link', 'del', wire, check=False)
		for name in self.hosts:
			ip('netns', 'del', name, check=False)
		if os.path.ismount(self.folder):
			subprocess.run(['umount', '-l', str(self.folder)])
		shutil.rmtree(self.folder, ignore_errors=True)
		ip('link', 'del', self.bridge, check=False)
		made.remove(self)
