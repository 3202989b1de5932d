#!/usr/bin/python3
"""An S3 server for tests: keeps objects in memory, verifies each signature and payload hash, and lies on request.

  s3_server.py [--token TOKEN] [--tls DIRECTORY]

Prints the port on the first line. Then each line of standard input is a command, answered with one line; it ends when
standard input does. One bucket, "bucket", in region "us-east-1", for the key KEY_ID and SECRET. Commands:

  fault METHOD KIND COUNT [VALUE]   the next COUNT requests of METHOD ("*": any) meet it; see `faults` below
  clear                             no faults any more
  count METHOD                      requests of METHOD so far
  connections                       that were opened so far
  uploads                           that are under way
  old KEY                           begins an upload of three days ago
  object KEY SIZE                   puts an object of that size, past all checks
  objects                           how many there are
  names                             of all objects
  get KEY                           an object, in hexadecimal"""
import argparse
import datetime
import hashlib
import hmac
import http.server
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

KEY_ID, SECRET, REGION, BUCKET = 'TESTKEYID', 'test/secret+with=characters', 'us-east-1', 'bucket'
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
AUTHORIZATION = re.compile(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?'
			   r'SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$')


def encode(text, safe=''):
	return urllib.parse.quote(text, safe=safe + '-_.~')


def signature(secret, method, path, query, headers, signed, payload_hash, date, region):
	"""As Amazon's documentation of Signature Version 4 has it. `query`: pairs, decoded; `headers`: by lower-case name."""
	canonical = '\n'.join([
		method, encode(path, '/'), '&'.join(sorted('%s=%s' % (encode(k), encode(v)) for k, v in query)),
		''.join('%s:%s\n' % (name, ' '.join(headers[name].split())) for name in signed), ';'.join(signed), payload_hash])
	scope = '%s/%s/s3/aws4_request' % (date[:8], region)
	text = '\n'.join(['AWS4-HMAC-SHA256', date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
	key = ('AWS4' + secret).encode()
	for part in (date[:8], region, 's3', 'aws4_request'):
		key = hmac.new(key, part.encode(), hashlib.sha256).digest()
	return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Refused(Exception):
	def __init__(self, status, code, message='no', **headers):
		self.status, self.code, self.message, self.headers = status, code, message, headers


def now():
	return datetime.datetime.now(datetime.timezone.utc)


def stamp(at):
	return at.strftime('%Y-%m-%dT%H:%M:%S.000Z')


class Object:
	def __init__(self, data, etag=None):
		self.data, self.modified = data, stamp(now())
		self.etag = '"%s"' % (etag or hashlib.md5(data).hexdigest())


class Store:
	def __init__(self, token):
		self.lock = threading.Lock()
		self.token, self.objects, self.uploads = token, {}, {}
		self.faults, self.counts, self.connections, self.serial = [], {}, 0, 0

	def fault(self, method, *kinds):
		"""The value of the first fault of these kinds that waits for this method, which is then used up once; None."""
		with self.lock:
			for f in self.faults:
				if f['method'] in (method, '*') and f['kind'] in kinds and f['count'] > 0:
					f['count'] -= 1
					return f['kind'], f['value']
		return None

	def command(self, words):
		with self.lock:
			if words[0] == 'fault':
				method, kind, count, *value = words[1:]
				self.faults.append({'method': method, 'kind': kind, 'count': int(count), 'value': ' '.join(value)})
				return 'ok'
			if words[0] == 'clear':
				self.faults.clear()
				return 'ok'
			if words[0] == 'count':
				return str(sum(n for m, n in self.counts.items() if words[1] in (m, '*')))
			if words[0] == 'connections':
				return str(self.connections)
			if words[0] == 'uploads':
				return str(len(self.uploads))
			if words[0] == 'objects':
				return str(len(self.objects))
			if words[0] == 'object':
				self.objects[words[1]] = Object(b'x' * int(words[2]))
				return 'ok'
			if words[0] == 'names':
				return ' '.join(sorted(self.objects))
			if words[0] == 'get':
				return self.objects[words[1]].data.hex()
			if words[0] == 'old':
				self.serial += 1
				at = now() - datetime.timedelta(days=3)
				self.uploads['old/+=%d' % self.serial] = {'key': words[1], 'parts': {}, 'at': at}
				return 'ok'
		return 'unknown command'


class Handler(http.server.BaseHTTPRequestHandler):
	protocol_version, store, timeout = 'HTTP/1.1', None, 60
	disable_nagle_algorithm = True

	def setup(self):
		super().setup()
		with self.store.lock:
			self.store.connections += 1

	def log_message(self, *_):
		pass

	def answer(self, status, body=b'', headers=(), length=None):
		self.send_response(status)
		for name, value in dict(headers).items():
			self.send_header(name, value)
		if length != 'none':
			self.send_header('Content-Length', str(len(body) if length is None else length))
		self.end_headers()
		if self.command != 'HEAD':
			self.wfile.write(body)
			self.wfile.flush()

	def refuse(self, e):
		body = '%s<Error><Code>%s</Code><Message>%s</Message></Error>' % (XML, e.code, e.message)
		self.answer(e.status, b'' if self.command == 'HEAD' else body.encode(), e.headers)

	def verify(self, path, query, body):
		headers = {k.lower(): v for k, v in self.headers.items()}
		match = AUTHORIZATION.match(headers.get('authorization', ''))
		if not match:
			raise Refused(403, 'AccessDenied', 'not signed')
		key_id, day, region, names, given = match.groups()
		signed = names.split(';')
		must = {'host', 'x-amz-date', 'x-amz-content-sha256'} | {h for h in headers if h.startswith('x-amz-')}
		if signed != sorted(signed) or not must <= set(signed) or not set(signed) <= set(headers):
			raise Refused(403, 'AccessDenied', 'wrong signed headers')
		if region != REGION:
			raise Refused(400, 'AuthorizationHeaderMalformed', 'the region is wrong; expecting %s' % REGION)
		if key_id != KEY_ID:
			raise Refused(403, 'InvalidAccessKeyId')
		if self.store.token and headers.get('x-amz-security-token') != self.store.token:
			raise Refused(400, 'InvalidToken')
		date = headers['x-amz-date']
		at = datetime.datetime.strptime(date, '%Y%m%dT%H%M%SZ').replace(tzinfo=datetime.timezone.utc)
		if date[:8] != day or abs((now() - at).total_seconds()) > 900:
			raise Refused(403, 'RequestTimeTooSkewed')
		payload = headers['x-amz-content-sha256']
		if given != signature(SECRET, self.command, path, query, headers, signed, payload, date, region):
			raise Refused(403, 'SignatureDoesNotMatch', 'the signature does not match')
		if payload != hashlib.sha256(body).hexdigest():
			raise Refused(400, 'XAmzContentSHA256Mismatch')

	def faults(self, body):
		"""True: the request was answered, or will never be."""
		found = self.store.fault(self.command, 'status', 'drop', 'hang', 'redirect', 'say', 'endless', 'raw', 'crawl')
		if not found:
			return False
		kind, value = found
		if kind == 'status':  # an answer of this status
			self.refuse(Refused(int(value), 'InternalError' if value == '500' else 'SlowDown', 'on request'))
		elif kind == 'drop':  # the connection is closed without an answer
			self.close_connection = True
		elif kind == 'hang':  # nothing is said for a while
			time.sleep(float(value))
			self.close_connection = True
		elif kind == 'redirect':
			self.answer(301, b'', {'Location': value, 'x-amz-bucket-region': 'eu-west-9'})
		elif kind == 'say':  # a refusal with this status, code and message
			status, code, message = value.split(' ', 2)
			self.refuse(Refused(int(status), code, message))
		elif kind == 'raw':  # this body with 200
			self.answer(200, value.encode().decode('unicode_escape').encode('latin-1'))
		elif kind == 'crawl':  # an answer that comes a little each second, this many bytes
			self.answer(200, length=10000000)
			self.close_connection = True
			try:
				while True:
					self.wfile.write(b' ' * (int(value) // 10))
					time.sleep(0.1)
			except OSError:
				pass
		elif kind == 'endless':  # a body without an end, with this status
			self.answer(int(value), length='none')
			self.close_connection = True
			try:
				while True:
					self.wfile.write(b'<x>' * 10000)
			except OSError:
				pass
		return True

	def handle_one(self):
		url = urllib.parse.urlsplit(self.path)
		path, query = urllib.parse.unquote(url.path), urllib.parse.parse_qsl(url.query, keep_blank_values=True)
		body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
		with self.store.lock:
			self.store.counts[self.command] = self.store.counts.get(self.command, 0) + 1
		try:
			if self.faults(body):
				return
			self.route(path, query, body)
		except Refused as e:
			self.refuse(e)
		except OSError:
			self.close_connection = True

	do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_one

	def route(self, path, query, body):
		self.verify(path, query, body)
		bucket, _, key = path[1:].partition('/')
		if bucket != BUCKET:
			raise Refused(404, 'NoSuchBucket', 'The specified bucket does not exist')
		self.serve(key, dict(query), body)

	def serve(self, key, query, body):
		method = self.command
		if not key and method == 'GET' and 'uploads' in query:
			self.list_uploads(query)
		elif not key and method == 'GET':
			self.list(query)
		elif method == 'GET':
			self.get(key)
		elif method == 'HEAD':
			self.answer(200, self.found(key).data, {'ETag': self.found(key).etag})
		elif method == 'PUT' and 'partNumber' in query:
			self.upload(query)['parts'][int(query['partNumber'])] = body
			self.answer(200, headers={'ETag': '"%s"' % hashlib.md5(body).hexdigest()})
		elif method == 'PUT':
			with self.store.lock:
				self.store.objects[key] = Object(body)
			self.answer(200, headers={'ETag': self.found(key).etag})
		elif method == 'POST' and 'uploads' in query:
			self.begin(key)
		elif method == 'POST':
			self.complete(key, query, body)
		elif 'uploadId' in query:
			self.upload(query)
			with self.store.lock:
				del self.store.uploads[query['uploadId']]
			self.answer(204)
		else:
			with self.store.lock:
				self.store.objects.pop(key, None)
			self.answer(204)

	def found(self, key):
		with self.store.lock:
			if key not in self.store.objects:
				raise Refused(404, 'NoSuchKey', 'The specified key does not exist.')
			return self.store.objects[key]

	def upload(self, query):
		with self.store.lock:
			if query.get('uploadId') not in self.store.uploads:
				raise Refused(404, 'NoSuchUpload')
			return self.store.uploads[query['uploadId']]

	def begin(self, key):
		with self.store.lock:
			self.store.serial += 1
			upload_id = 'id/+=%d' % self.store.serial  # characters that must be encoded
			self.store.uploads[upload_id] = {'key': key, 'parts': {}, 'at': now()}
		self.answer(200, ('%s<InitiateMultipartUploadResult %s><Bucket>bucket</Bucket><Key>%s</Key><UploadId>%s</UploadId>'
				  '</InitiateMultipartUploadResult>' % (XML, NAMESPACE, escape(key), upload_id)).encode())

	def complete(self, key, query, body):
		upload, found = self.upload(query), self.store.fault('POST', 'complete-error', 'complete-lost')
		if found and found[0] == 'complete-error':  # 200, and then it failed
			self.answer(200, ('%s   \n<Error><Code>%s</Code><Message>no</Message></Error>' % (XML, found[1])).encode())
			return
		named = [(int(n), tag.replace('&quot;', '"')) for n, tag in
			 re.findall(r'<Part><PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag></Part>', body.decode())]
		parts = upload['parts']
		if named != [(n, '"%s"' % hashlib.md5(parts[n]).hexdigest()) for n in sorted(parts)] or upload['key'] != key:
			raise Refused(400, 'InvalidPart')
		data = b''.join(parts[n] for n in sorted(parts))
		with self.store.lock:
			self.store.objects[key] = Object(data, '%s-%d' % (hashlib.md5(data).hexdigest(), len(parts)))
			del self.store.uploads[query['uploadId']]
		if found:  # it is done, and nobody is told
			self.close_connection = True
			return
		self.answer(200, b'<CompleteMultipartUploadResult><ETag>&quot;x-1&quot;</ETag></CompleteMultipartUploadResult>')

	def get(self, key):
		o, ranged, headers = self.found(key), self.headers.get('Range'), {}
		data, status, etag = o.data, 200, o.etag
		found = self.store.fault('GET', 'cut', 'no-length', 'no-range', 'wrong-range', 'short-range', 'changed', 'drip')
		kind, value = found or (None, None)
		if kind == 'changed':  # another object of the same length
			etag = '"another"'
		if self.headers.get('If-Match', etag) != etag:
			raise Refused(412, 'PreconditionFailed')
		if ranged and kind != 'no-range':
			first, last = re.match(r'bytes=(\d+)-(\d*)$', ranged).groups()
			first, last = int(first), min(int(last or len(data)), len(data) - 1)
			if first >= len(data):
				raise Refused(416, 'InvalidRange', **{'Content-Range': 'bytes */%d' % len(data)})
			if kind == 'short-range':
				last = first
			data, status = data[first:last + 1], 206
			said = first + (kind == 'wrong-range')
			headers['Content-Range'] = 'bytes %d-%d/%d' % (said, said + len(data) - 1, len(o.data))
		headers['ETag'] = etag
		if kind in ('cut', 'drip'):  # the rest never comes
			self.answer(status, data[:int(value)], headers, length=len(data))
			if kind == 'drip':
				time.sleep(30)
			self.close_connection = True
		elif kind == 'no-length':  # and half of it is missing
			self.close_connection = True
			self.answer(status, data[:len(data) // 2], headers, length='none')
		else:
			self.answer(status, data, headers)

	def list(self, query):
		prefix, after = query.get('prefix', ''), query.get('continuation-token', '')
		found = self.store.fault('GET', 'list')
		lie = found and found[1]
		most = min(int(query.get('max-keys', 1000)), 1000)
		with self.store.lock:
			objects = sorted(self.store.objects.items(), key=lambda i: i[0].encode())
		rows = [(k, len(o.data), o.modified) for k, o in objects if k.startswith(prefix) and 't/' + k > after]
		page, more = rows[:most], len(rows) > most
		token = 't/' + page[-1][0] if page else after
		if lie == 'again':  # the same page without end
			page, more, token = rows[:2], True, 'x'
		elif lie == 'empty':  # nothing, and more of it
			page, more, token = [], True, 'x'
		elif lie == 'climb':  # more and more
			at, more = int(after or 0), True
			page = [('%sk%09d' % (prefix, at + i), 1, stamp(now())) for i in range(1000)]
			token = str(at + 1000)
		elif lie == 'backwards':
			page = page[::-1]
		elif lie == 'foreign':
			page = [('elsewhere/' + k, n, at) for k, n, at in page]
		body = '%s<!-- a list --><ListBucketResult %s>' % (XML, NAMESPACE)
		if lie == 'doctype':
			body = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]>' + body
		if lie != 'silent':
			body += '<IsTruncated>%s</IsTruncated>' % ('true' if more else 'false')
		if more and lie != 'no-token':
			body += '<NextContinuationToken>%s</NextContinuationToken>' % escape(token)
		for k, n, at in page:
			body += ('<Contents><Key>%s</Key><LastModified>%s</LastModified><ETag>&quot;e&quot;</ETag><Size>%s</Size>'
				 '<StorageClass>STANDARD</StorageClass></Contents>' % (escape(k), at, 'many' if lie == 'size' else n))
		body += '</ListBucketResult>'
		if lie == 'half':
			body = body[:len(body) // 2]
		self.answer(200, body.encode(), {'Content-Type': 'application/xml'})

	def list_uploads(self, query):
		with self.store.lock:
			rows = [(u['key'], i, stamp(u['at'])) for i, u in self.store.uploads.items()
				if u['key'].startswith(query.get('prefix', ''))]
		body = ''.join('<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>' % r for r in rows)
		body = '%s<ListMultipartUploadsResult %s>%s</ListMultipartUploadsResult>' % (XML, NAMESPACE, body)
		self.answer(200, body.encode())


class Running:
	"""The server as a process of its own, for tests in Python. It ends with this process at the latest."""

	def __init__(self, *options, program=__file__):
		self.process = subprocess.Popen([sys.executable, program, *map(str, options)], stdin=subprocess.PIPE,
						stdout=subprocess.PIPE, text=True)
		port = self.process.stdout.readline().strip()
		self.endpoint = '%s://127.0.0.1:%s' % ('https' if '--tls' in options else 'http', port)

	def say(self, command):
		self.process.stdin.write(command + '\n')
		self.process.stdin.flush()
		return self.process.stdout.readline().strip()

	def stop(self):
		self.process.stdin.close()
		self.process.wait(60)


class Server(http.server.ThreadingHTTPServer):
	request_queue_size, daemon_threads = 128, True

	def handle_error(self, *_):
		pass


def certificate(folder):
	subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
			'-days', '2', '-keyout', folder / 'ca.key', '-out', folder / 'ca.crt', '-subj', '/CN=test', '-addext',
			'subjectAltName=IP:127.0.0.1'], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def arguments():
	parser = argparse.ArgumentParser()
	parser.add_argument('--token')
	parser.add_argument('--tls', type=pathlib.Path, help='a certificate for 127.0.0.1 is made there: ca.crt')
	args = parser.parse_args()
	if args.tls:
		certificate(args.tls)
	return args


def end_by_signal():
	"""A program that has made something which it must remove ends by SIGTERM as it does at the end of its input."""
	signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def serve(handler, store, tls=None):
	"""Prints the port, and obeys commands until its input ends."""
	handler.store = store
	server = Server(('127.0.0.1', 0), handler)
	if tls:
		context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
		context.load_cert_chain(tls / 'ca.crt', tls / 'ca.key')
		server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
	threading.Thread(target=server.serve_forever, daemon=True).start()
	print(server.server_address[1], flush=True)
	for line in sys.stdin:
		print(store.command(line.split()), flush=True)


if __name__ == '__main__':
	given = arguments()
	serve(Handler, Store(given.token), given.tls)
