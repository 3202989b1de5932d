#!/usr/bin/python3
"""npm's azurite, which verifies Azure's signatures, behind a proxy that fails and lies on request. Started and commanded as
s3_server.py is; prints "none" where azurite is not installed (script/bootstrap --test does it). The storage account is ACCOUNT,
with the key KEY, and it has the container "bucket". With --tls azurite takes tokens too, whose audience and times it checks.
More commands: container NAME, names CONTAINER, get CONTAINER/BLOB. Faults beside those of any request:

  GET cut N, wrong-range, changed, flip   of a blob, as s3_server.py and gcs_server.py have them
  PUT spoil                               a byte is changed on the way
  PUT lose                                it is done, and nobody is told"""
import base64
import ctypes
import hashlib
import hmac
import http.client
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.parse

import s3_server

ACCOUNT, KEY = 'stewardtest', base64.b64encode(b'a key that is sixty-four bytes long, as those of accounts are.!!').decode()
INSTALLED = pathlib.Path(__file__).resolve().parents[1] / 'build' / 'azurite'
VERSION = '2021-12-02'


def node():
	beside = next(iter(INSTALLED.parent.glob('node/node_modules/node-linux-*/bin/node')), None)
	return str(beside or shutil.which('node') or '')


def program():
	"""None where it is not installed."""
	found = INSTALLED / 'node_modules' / 'azurite' / 'dist' / 'src' / 'blob' / 'main.js'
	return found if found.exists() and node() else None


def start(folder, tls):
	"""The process, and its port."""
	options = ['--cert', tls / 'ca.crt', '--key', tls / 'ca.key', '--oauth', 'basic'] if tls else []
	process = subprocess.Popen([node(), program(), '--blobHost', '127.0.0.1', '--blobPort', '0', '--inMemoryPersistence',
				    *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=folder,
				   preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9),  # it ends with this process
				   env={'PATH': os.environ['PATH'], 'HOME': folder, 'AZURITE_ACCOUNTS': '%s:%s' % (ACCOUNT, KEY)})
	said = ''
	for line in process.stdout:
		said += line
		found = re.search(r'listen\w* (?:at|on) https?://127\.0\.0\.1:(\d+)', line)
		if found:
			return process, int(found.group(1))
	sys.exit('azurite does not start: %s' % said)


def signature(method, path, query, headers, length):
	"""As Azure's documentation of Shared Key has it; `headers` by lower-case name."""
	names = ['content-encoding', 'content-language', None, 'content-md5', 'content-type', 'date', 'if-modified-since', 'if-match',
		 'if-none-match', 'if-unmodified-since', 'range']
	text = '\n'.join([method] + [str(length or '') if n is None else headers.get(n, '') for n in names]) + '\n'
	text += ''.join('%s:%s\n' % (n, headers[n]) for n in sorted(headers) if n.startswith('x-ms-'))
	text += '/%s%s' % (ACCOUNT, path) + ''.join('\n%s:%s' % pair for pair in sorted(query.items()))
	return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


def unverified():
	context = ssl.create_default_context()
	context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
	return context


def connect(store):
	if store.tls:
		return http.client.HTTPSConnection('127.0.0.1', store.port, context=unverified(), timeout=60)
	return http.client.HTTPConnection('127.0.0.1', store.port, timeout=60)


def ask(store, method, path, query=None, body=b''):
	"""A request of our own: (status, headers, body)."""
	query = query or {}
	path = '/%s/%s' % (ACCOUNT, urllib.parse.quote(path))
	headers = {'x-ms-date': s3_server.now().strftime('%a, %d %b %Y %H:%M:%S GMT'), 'x-ms-version': VERSION}
	headers['Authorization'] = 'SharedKey %s:%s' % (ACCOUNT, signature(method, path, query, headers, len(body)))
	c = connect(store)
	c.request(method, path + ('?' + urllib.parse.urlencode(query) if query else ''), body=body or None,
		  headers={**headers, **({} if body or method == 'GET' else {'Content-Length': '0'})})
	answer = c.getresponse()
	found = answer.status, dict(answer.getheaders()), answer.read()
	c.close()
	return found


class Store(s3_server.Store):
	def __init__(self, port, tls):
		super().__init__(None)
		self.port, self.tls = port, tls

	def command(self, words):
		if words[0] == 'container':
			return str(ask(self, 'PUT', words[1], {'restype': 'container'})[0])
		if words[0] == 'object':
			raise NotImplementedError
		if words[0] == 'get':  # container, then the blob: its bytes in hexadecimal, or a status
			status, _, body = ask(self, 'GET', words[1])
			return body.hex() or '-' if status == 200 else str(status)
		if words[0] == 'names':  # all blobs of a container
			status, _, body = ask(self, 'GET', words[1], {'comp': 'list', 'restype': 'container'})
			return ' '.join(re.findall('<Name>([^<]*)</Name>', body.decode())) if status == 200 else str(status)
		return super().command(words)


class Handler(s3_server.Handler):
	upstream = None

	def route(self, path, query, body):
		spoil = self.command == 'PUT' and body and self.store.fault('PUT', 'spoil')
		if spoil:
			body = bytes([body[0] ^ 1]) + body[1:]
		self.upstream = self.upstream or connect(self.store)
		self.upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
		for name, value in self.headers.items():
			if name.lower() not in ('expect', 'connection'):
				self.upstream.putheader(name, value)
		self.upstream.endheaders(body)
		answer = self.upstream.getresponse()
		data, headers = answer.read(), dict(answer.getheaders())
		if self.command == 'PUT' and self.store.fault('PUT', 'lose'):
			self.close_connection = True
			return
		self.give(answer.status, headers, data)

	def give(self, status, headers, data):
		low = {k.lower(): k for k in headers}
		length = int(headers[low['content-length']]) if self.command == 'HEAD' and 'content-length' in low else len(data)
		found = 'comp=list' not in self.path and self.store.fault('GET', 'cut', 'wrong-range', 'changed', 'flip') \
			if self.command == 'GET' and status in (200, 206) else None
		kind, value = found or (None, None)
		if kind == 'flip':
			data = bytes([data[0] ^ 1]) + data[1:]
		elif kind == 'changed':
			headers[low['etag']] = '"another"'
		elif kind == 'wrong-range' and 'content-range' in low:
			headers[low['content-range']] = re.sub(r'(\d+)-', lambda m: '%d-' % (int(m.group(1)) + 1), headers[low['content-range']])
		elif kind == 'cut':
			data, self.close_connection = data[:int(value)], True
		for name in ('content-length', 'transfer-encoding', 'connection', 'keep-alive', 'date', 'server'):
			headers.pop(low.get(name), None)
		self.answer(status, data, headers, length=length)


def main():
	args = s3_server.arguments()
	if not program():
		print('none', flush=True)
		sys.stdin.read()
		return
	s3_server.end_by_signal()
	folder, process = tempfile.mkdtemp(prefix='steward-azurite-'), None
	try:
		process, port = start(folder, args.tls)
		store = Store(port, args.tls)
		store.command(['container', 'bucket'])
		s3_server.serve(Handler, store, args.tls)
	finally:
		if process:
			process.kill()
			process.wait()
		shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
	main()
