"""Several nodes on one PostgreSQL, behind haproxy: what the tests of test_nodes.py stand on."""
import asyncio, contextlib, http.cookiejar, json, pathlib, random, re, shutil, subprocess, tempfile, threading, time, uuid

import requests

import client, database, direct

DOCS = pathlib.Path(__file__).parents[2] / 'docs/haproxy'
LIMITS = 'limit.* = 1000000/1000000\n'


class Unverified(direct.Direct):
	"""Without a look at certificates. By itself requests would read those that the machine trusts anyway, which takes longer
	than the call. kept: connections are used again."""

	def __init__(self, kept):
		super().__init__()
		self.kept = kept

	def init_poolmanager(self, *args, **kw):
		super().init_poolmanager(*args, ssl_context=direct.context(''), **kw)

	def line(self, key, timeout):
		lines = self.idle.setdefault(key, [])
		if self.kept:
			return super().line(key, timeout)
		with contextlib.suppress(IndexError):  # another thread was first
			while lines:
				lines.pop().socket.close()
		return direct.Line(*key, timeout)

	def send(self, request, stream=False, timeout=None, verify=True, cert=None, proxies=None):
		return super().send(request, stream, timeout, False if stream else '', cert, proxies)


def unverified(kept=True):
	s = requests.Session()
	s.trust_env, s.verify = False, False
	s.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
	s.mount('https://', Unverified(kept))
	return s


apart = unverified(kept=False)


def call(method, url, **kw):
	"""On a connection of its own."""
	return apart.request(method, url, **kw)


class Proxy:
	"""haproxy as docs/haproxy sets it up. It speaks from an address of its own, so that calls straight to a node need no
	PROXY header."""
	SOURCES = {'127.0.0.1': '127.0.0.2', '10.213.1.2': '10.213.1.3'}

	def __init__(self, port, nodes, tls, sources=SOURCES):
		self.dir = pathlib.Path(tempfile.mkdtemp(prefix='steward-haproxy-'))
		client.folders.append(self.dir)
		(self.dir / 'steward.pem').write_text((tls / 'server.crt').read_text() + (tls / 'server.key').read_text())
		shutil.copy(tls / 'ca.crt', self.dir)
		shutil.copy(DOCS / '503.http', self.dir)
		text = (DOCS / 'haproxy.cfg').read_text().replace('/etc/haproxy', str(self.dir))
		text = re.sub(r'bind :443', 'bind 127.0.0.1:%d' % port, text)
		text = re.sub(r'(?m)^  server .*\n', '', text)
		text += ''.join('  server n%d %s source %s\n' % (i, address, sources[address.split(':')[0]])
				for i, address in enumerate(nodes))
		(self.dir / 'cfg').write_text(text)
		self.process = subprocess.Popen(['haproxy', '-db', '-f', str(self.dir / 'cfg')], stdout=subprocess.DEVNULL,
						stderr=open(self.dir / 'log', 'wb'))

	def close(self):
		self.process.kill()
		self.process.wait()


class Nodes:
	def __init__(self, count=3, host_of=None, prefix_of=None, db=None, sources=Proxy.SOURCES, **settings):
		self.db = db or database.Database(**settings)
		self.sources = sources
		self.front = database.free_port()
		self.home = pathlib.Path(tempfile.mkdtemp(prefix='steward-nodes-'))
		client.folders.append(self.home)
		self.host_of = host_of or (lambda i: '127.0.0.1')
		self.prefix_of = prefix_of or (lambda i: ())
		self.url_of = lambda i: self.db.url()
		self.addresses = ['%s:%d' % (self.host_of(i), database.free_port()) for i in range(count)]
		(self.home / 'config').write_text(LIMITS + 'proxies = %s\n' % ','.join(sorted(set(sources.values()))))
		self.nodes = [None] * count
		self.proxy = None

	def start(self):
		for i in range(len(self.nodes)):
			self.start_node(i)
		self.proxy = Proxy(self.front, self.addresses, self.home / 'n0/tls', self.sources)
		self.until(lambda: self.caller().get('/groups').status_code == 200, 60)
		return self

	def start_node(self, i, *args):
		folder = self.home / ('n%d' % i)
		if i and not folder.exists():  # one key and one certificate authority for all
			folder.mkdir(mode=0o700)
			first = self.home / 'n0'
			shutil.copy(first / 'secret.key', folder)
			shutil.copytree(first / 'tls', folder / 'tls')
			shutil.copy(first / 'bootstrap.json', folder)
		self.nodes[i] = client.Server('--store', self.url_of(i), '--base-url', 'https://127.0.0.1:%d' % self.front,
					      '--config', self.home / 'config', *args, data_dir=folder, clock='real',
					      control=False, listen=self.addresses[i], prefix=self.prefix_of(i))
		return self.nodes[i]

	def token(self, i=0):
		"""On a busy machine the store's first connection may come later than the node: that is asked again, as a client does."""
		a = self.nodes[i].bootstrap['serviceAccount']
		for attempt in range(30):
			r = call('POST', 'https://%s/api/oauth/token' % self.addresses[i], data={'grant_type': 'client_credentials'},
				 auth=(a['clientId'], a['clientSecret']), timeout=60)
			if r.status_code != 503:
				break
			time.sleep(int(r.headers['Retry-After']))
		assert r.status_code == 200, r.text
		return r.json()['access_token']

	def caller(self, i=None):
		"""Through the proxy, or straight to one node."""
		return Caller('https://127.0.0.1:%d' % self.front if i is None else 'https://' + self.addresses[i], self.kept())

	def kept(self):
		if not getattr(self, '_token', None):
			self._token = self.token(next(i for i, n in enumerate(self.nodes) if n and not n.ended))
		return self._token

	@property
	def org(self):
		return self.nodes[0].org

	def until(self, done, seconds):
		"""How long it took."""
		start = time.monotonic()
		while True:
			try:
				if done():
					return time.monotonic() - start
			except requests.RequestException:
				pass
			assert time.monotonic() - start < seconds, 'not within %d s' % seconds
			time.sleep(0.05)

	def close(self):
		for n in self.nodes:
			if n:
				n.kill()
				assert not client.SANITIZER.search(n.stderr), n.stderr[-6000:]
		if self.proxy:
			self.proxy.close()
		self.db.close()


class Caller:
	"""One connection at a time, so that the proxy's choice is made for each call."""

	seconds = 60  # for which an answer is waited for

	def __init__(self, base, token):
		self.base, self.headers = base + client.BASE, {'Authorization': 'Bearer ' + token, 'Connection': 'close'}

	def call(self, method, path, **kw):
		headers = {**self.headers, **kw.pop('headers', {})}
		return call(method, self.base + path, headers=headers, timeout=self.seconds, **kw)

	def get(self, path, **kw):
		return self.call('GET', path, **kw)

	def post(self, path, **kw):
		return self.call('POST', path, **kw)

	def delete(self, path, **kw):
		return self.call('DELETE', path, **kw)


class Load:
	"""Threads that create projects and read them back, with a pause that leaves the machine to what is tried. A creation has an
	Idempotency-Key and is tried again until it is answered; what was acknowledged is written down, and every other answer too."""

	def __init__(self, nodes, threads=4, pause=0.01):
		self.nodes, self.pause, self.stopped = nodes, pause, threading.Event()
		self.acknowledged, self.answers, self.broken, self.missing = {}, [], [], []
		self.lock = threading.Lock()
		self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(threads)]
		for t in self.threads:
			t.start()

	def note(self, r):
		if r.status_code != 200:
			with self.lock:
				self.answers.append((r.status_code, r.headers.get('Retry-After'), r.headers.get('Content-Type'), r.text))

	def create(self, caller, name):
		key = uuid.uuid4().hex
		while True:
			begun = time.monotonic()
			try:
				r = caller.post('/groups', json={'name': name, 'orgId': self.nodes.org}, headers={'Idempotency-Key': key})
			except requests.RequestException as e:
				self.broke(begun, e)
				time.sleep(0.05)
				continue
			self.note(r)
			if r.status_code == 200:
				return r.json()['id']
			time.sleep(0.1)

	def work(self):
		caller = self.nodes.caller()
		while not self.stopped.wait(self.pause):
			name = client.unique('load')
			made = self.create(caller, name)
			with self.lock:
				self.acknowledged[name] = made
			begun = time.monotonic()
			try:
				r = caller.get('/groups/' + made)  # most often by another node
				self.note(r)
				if r.status_code == 404:
					self.missing.append(made)
			except requests.RequestException as e:
				self.broke(begun, e)

	def broke(self, begun, why):
		self.broken.append('after %.3f s: %r' % (time.monotonic() - begun, why))

	def stop(self):
		self.stopped.set()
		for t in self.threads:
			t.join(120)
			assert not t.is_alive(), 'a caller was never answered'

	def verify(self):
		"""Nothing acknowledged is lost, nothing was done twice, and what was refused was refused properly."""
		caller, found, page = self.nodes.caller(0), {}, 1
		while True:
			results = client.ok(caller.get('/groups?itemsPerPage=500&pageNum=%d' % page))['results']
			for g in results:
				assert g['name'] not in found, 'made twice: ' + g['name']
				found[g['name']] = g['id']
			if len(results) < 500:
				break
			page += 1
		assert self.acknowledged, 'nothing was created at all'
		for name, made in self.acknowledged.items():
			assert found.get(name) == made, 'lost: %s %s' % (name, made)
		for name in found:
			assert not name.startswith('load-') or name in self.acknowledged, 'made, and never acknowledged: ' + name
		assert not self.missing, 'not found right after its creation: %s' % self.missing
		for status, retry, kind, text in self.answers:
			assert status == 503 and retry and 'json' in kind, (status, retry, kind, text[:500])
			client.assert_problem(json.loads(text), 503)
		assert not self.broken, '%d connections broke: %s' % (len(self.broken), '; '.join(self.broken[:5]))


class Between:
	"""Stands between nodes and the store, on a port of its own; serve() says what becomes of a connection."""

	def __init__(self, port):
		self.target = port
		self.loop = asyncio.new_event_loop()
		self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, '127.0.0.1', 0))
		self.port = self.server.sockets[0].getsockname()[1]
		self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
		self.thread.start()

	def close(self):
		self.loop.call_soon_threadsafe(lambda: [t.cancel() for t in asyncio.all_tasks(self.loop)])
		self.loop.call_soon_threadsafe(lambda: self.loop.call_later(0.1, self.loop.stop))
		self.thread.join()


class Cutter(Between):
	"""Cuts a connection before what a node has sent arrives, or after a transaction was committed and before its node hears
	of it."""

	def __init__(self, port):
		self.before, self.after, self.cuts = 0.0, 0.0, 0
		super().__init__(port)

	async def pump(self, reader, writer, cut):
		while True:
			data = await reader.read(65536)
			if not data or cut(data):
				return
			writer.write(data)
			await writer.drain()

	def cut_before(self, data):
		return self.counted(random.random() < self.before)

	def cut_after(self, data):
		return self.counted(b'COMMIT\0' in data and random.random() < self.after)

	def counted(self, cut):
		self.cuts += cut
		return cut

	async def serve(self, reader, writer):
		up = None
		try:
			far, up = await asyncio.open_connection('127.0.0.1', self.target)
			pumps = [asyncio.ensure_future(self.pump(reader, up, self.cut_before)),
				 asyncio.ensure_future(self.pump(far, writer, self.cut_after))]
			await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
			for p in pumps:
				p.cancel()
		except OSError:
			pass
		finally:
			for w in (writer, up):
				if w:
					w.transport.abort()
