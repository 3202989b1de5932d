"""Programs of node that speak JSON, one document a line, on their standard input and output."""
import functools, json, os, pathlib, re, select, shutil, subprocess, tempfile, time

import pytest

import client

INSTALLED = client.ROOT / 'build' / 'clients'  # by script/bootstrap --test
RECORDED = pathlib.Path(tempfile.mkdtemp(prefix='steward-test-')) / 'exchanges.jsonl'
client.folders.append(RECORDED.parent)
OLDEST = (20, 19)  # the oldest node that the MCP server runs on


def version(node):
	found = re.match(r'v(\d+)\.(\d+)', subprocess.run([node, '--version'], stdout=subprocess.PIPE, text=True).stdout)
	return found and tuple(map(int, found.groups()))


@functools.lru_cache
def node():
	"""The node that was installed beside the clients, where the system's is too old; else the system's."""
	beside = next(iter(INSTALLED.parent.glob('node/node_modules/node-linux-*/bin/node')), None)
	for file in filter(None, (beside, shutil.which('node'))):
		if (version(file) or (0, 0)) >= OLDEST:
			return str(file)
	pytest.skip('no node of at least version %d.%d: script/bootstrap --test installs one' % OLDEST)


def package(name):
	"""Where a package of npm lies. Without a network none is there, and its tests are skipped."""
	where = INSTALLED / 'node_modules' / name
	if not where.exists():
		pytest.skip('%s is not installed: script/bootstrap --test does it' % name)
	return where.resolve()


class Program:
	def __init__(self, server, *command, **env):
		self.folder = pathlib.Path(tempfile.mkdtemp(prefix='steward-test-'))
		client.folders.append(self.folder)
		ca = server.ca_file
		self.stderr = self.folder / 'stderr'
		with open(self.stderr, 'wb') as err:
			self.process = subprocess.Popen([node(), *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
					cwd=self.folder, env={'PATH': os.environ['PATH'], 'HOME': str(self.folder), 'NODE_EXTRA_CA_CERTS': ca,
						'SSL_CERT_FILE': ca, **env})
		self.read, self.seen, self.number = b'', [], 0

	def send(self, document):
		self.process.stdin.write(json.dumps(document).encode() + b'\n')
		self.process.stdin.flush()

	def receive(self, seconds=120):
		"""Its next document."""
		end = time.monotonic() + seconds
		while b'\n' not in self.read:
			ready = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]
			more = os.read(self.process.stdout.fileno(), 65536) if ready else b''
			assert more, 'it said nothing more: %s' % self.stderr.read_text()[-3000:]
			self.read += more
		line, self.read = self.read.split(b'\n', 1)
		self.seen.append(line.decode())
		return json.loads(line)

	def end(self, seconds=60):
		"""An end of its input ends it; it may take its time for what it has to say at the end."""
		if self.process.poll() is None:
			self.process.stdin.close()
			try:
				self.process.wait(seconds)
			except subprocess.TimeoutExpired:
				self.process.kill()
				self.process.wait()
		self.process.stdout.close()


def lines():
	"""How many exchanges were recorded so far."""
	return len(RECORDED.read_text().splitlines())


def recorded(since):
	"""The exchange of the one call after so many. With a digest it has two, and the first is a 401 with the challenge."""
	def last():
		found = RECORDED.read_text().splitlines(True)[since:]
		found = [json.loads(line) for line in found if line.endswith('\n')]
		return found and (found[0]['status'] != 401 or len(found) > 1) and found[-1]
	return client.until(last, what='the recording of a call')


def asked(since):
	"""(method, path, status) of what was recorded after so many."""
	exchanges = map(json.loads, RECORDED.read_text().splitlines()[since:])
	return [(x['method'], x['url'], x['status']) for x in exchanges]
