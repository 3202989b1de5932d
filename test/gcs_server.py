#!/usr/bin/python3
"""Google Cloud Storage for tests, by its JSON interface: checks the token, offsets and lengths of resumable uploads, ranges and
CRC-32C, and fails and lies on request. Started and commanded as s3_server.py is; --token is the token that is right, or "PREFIX*".
One bucket, "bucket". Its own faults:

  PUT less N         keeps N bytes of what it was sent, and says so
  PUT lose N         keeps N bytes (-1: all), and closes the connection without an answer
  PUT more           says that it has more than it was sent
  PUT none           says that it has nothing of the upload
  PUT gone           the upload is given up (410)
  PUT spoil          stores other bytes than it was sent, and says which (POST: likewise)
  GET flip           sends other bytes than those of its checksum"""
import base64
import json
import re
import struct
import time

import s3_server
from s3_server import BUCKET, Refused, now, stamp

STEP = 256 << 10
REASONS = {400: 'invalid', 401: 'authError', 403: 'forbidden', 404: 'notFound', 410: 'gone', 412: 'conditionNotMet',
	   416: 'requestedRangeNotSatisfiable', 429: 'rateLimitExceeded', 503: 'backendError'}


def table():
	for n in range(256):
		for _ in range(8):
			n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
		yield n


TABLE = list(table())


def crc32c(data):
	crc = 0xffffffff
	for byte in data:
		crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
	return base64.b64encode(struct.pack('>I', crc ^ 0xffffffff)).decode()


class Object:
	def __init__(self, data, generation, sum_of=None):
		self.data, self.generation, self.modified, self.sum = data, generation, stamp(now()), sum_of or crc32c(data)

	def resource(self, name):
		return {'kind': 'storage#object', 'name': name, 'bucket': BUCKET, 'size': str(len(self.data)),
			'generation': str(self.generation), 'updated': self.modified, 'crc32c': self.sum}


def spoiled(data):
	return bytes([data[0] ^ 1]) + data[1:] if data else b'x'


class Store(s3_server.Store):
	def put(self, name, data, sum_of=None):
		with self.lock:
			self.serial += 1
			o = self.objects[name] = Object(data, 1700000000000000 + self.serial, sum_of)
		return o

	def command(self, words):
		if words[0] == 'object':
			self.put(words[1], b'x' * int(words[2]))
			return 'ok'
		return super().command(words)


class Handler(s3_server.Handler):
	def refuse(self, e):
		reason = e.code if e.code in REASONS.values() else REASONS.get(e.status, e.code)
		body = {'error': {'code': e.status, 'message': e.message, 'errors': [{'reason': reason, 'message': e.message}]}}
		self.answer(e.status, json.dumps(body).encode(), {'Content-Type': 'application/json', **e.headers})

	def tell(self, value, status=200):
		self.answer(status, json.dumps(value).encode(), {'Content-Type': 'application/json'})

	def authorize(self):
		given, right = self.headers.get('Authorization', ''), 'Bearer %s' % (self.store.token or 'token')
		if not (given.startswith(right[:-1]) if right.endswith('*') else given == right):
			raise Refused(401, 'authError', 'Invalid Credentials')

	def route(self, path, query, body):
		query, method = dict(query), self.command
		self.authorize()
		found = re.fullmatch(r'(/upload)?/storage/v1/b/([^/]+)/o(?:/(.+))?', path)
		if not found:
			raise Refused(404, 'notFound', 'Not Found')
		upload, bucket, name = found.groups()
		if bucket != BUCKET:
			raise Refused(404, 'notFound', 'The specified bucket does not exist.')
		if upload and method == 'POST':
			self.begin(query, body) if query['uploadType'] == 'resumable' else self.whole(body)
		elif upload and method == 'DELETE':
			self.session(query)
			with self.store.lock:
				del self.store.uploads[query['upload_id']]
			self.answer(499)
		elif upload:
			self.chunk(query, body)
		elif not name:
			self.list(query)
		elif method == 'DELETE':
			self.pinned(self.known(name), query)
			with self.store.lock:
				self.store.objects.pop(name, None)
			self.answer(204)
		elif query.get('alt') == 'media':
			self.media(name, query)
		else:
			self.tell(self.known(name).resource(name))

	def known(self, name):
		with self.store.lock:
			if name not in self.store.objects:
				raise Refused(404, 'notFound', 'No such object: %s/%s' % (BUCKET, name))
			return self.store.objects[name]

	def pinned(self, o, query, generation=None):
		if query.get('ifGenerationMatch', str(o.generation)) != str(generation or o.generation):
			raise Refused(412, 'conditionNotMet', 'At least one of the pre-conditions you specified did not hold.')

	# Putting.

	def store_as(self, name, data, wanted, method):
		"""Stores it where the checksum is right."""
		if self.store.fault(method, 'spoil'):
			return self.store.put(name, spoiled(data))
		right = crc32c(data)
		if wanted != right:
			raise Refused(400, 'invalid', 'Provided CRC32C "%s" does not match calculated CRC32C "%s".' % (wanted, right))
		return self.store.put(name, data, right)

	def whole(self, body):
		mark = re.fullmatch(r'multipart/related; boundary=(\w+)', self.headers['Content-Type']).group(1).encode()
		before, about, data, after = body.split(b'--' + mark)
		if before or after != b'--\r\n':
			raise Refused(400, 'invalid', 'Malformed multipart body.')
		about = json.loads(about.split(b'\r\n\r\n', 1)[1])
		data = data.split(b'\r\n\r\n', 1)[1]
		if not data.endswith(b'\r\n'):
			raise Refused(400, 'invalid', 'Malformed multipart body.')
		self.tell(self.store_as(about['name'], data[:-2], about.get('crc32c'), 'POST').resource(about['name']))

	def begin(self, query, body):
		if body:
			raise Refused(400, 'invalid', 'no metadata was expected')
		with self.store.lock:
			self.store.serial += 1
			upload = 'id-_%d' % self.store.serial
			self.store.uploads[upload] = {'key': query['name'], 'data': b'', 'done': None}
		# Elsewhere: whoever goes there with a token is led astray.
		self.answer(200, headers={'Location': 'http://127.0.0.1:1/upload?uploadType=resumable&upload_id=%s' % upload})

	def session(self, query):
		with self.store.lock:
			if query.get('upload_id') not in self.store.uploads:
				raise Refused(404, 'notFound', 'Not Found')
			return self.store.uploads[query['upload_id']]

	def goes_on(self, size):
		self.answer(308, headers={'Range': 'bytes=0-%d' % (size - 1)} if size else {})

	def chunk(self, query, body):
		upload = self.session(query)
		found = re.fullmatch(r'bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)', self.headers.get('Content-Range', ''))
		if not found or upload['key'] != query['name']:
			raise Refused(400, 'invalid', 'Failed to parse Content-Range header.')
		first, last, total = found.groups()
		if first is None and total == '*':
			self.stored(query, upload) if upload['done'] else self.goes_on(len(upload['data']))
			return
		fault = self.store.fault('PUT', 'less', 'lose', 'more', 'none', 'gone')
		kind, value = fault or (None, None)
		if kind == 'gone':
			raise Refused(410, 'gone', 'Gone')
		if first is not None:
			if int(first) != len(upload['data']) or int(last) - int(first) + 1 != len(body):
				raise Refused(400, 'invalid', 'Invalid request. The bytes that were sent are not the next ones.')
			if total == '*' and len(body) % STEP:
				raise Refused(400, 'invalid', 'All chunks but the last must be multiples of 256 KiB.')
			upload['data'] += body if kind not in ('less', 'lose') or value == '-1' else body[:int(value)]
		size = len(upload['data'])
		whole = total != '*' and size == int(total)
		if whole:
			hashed = re.fullmatch(r'crc32c=(\S+)', self.headers.get('X-Goog-Hash', ''))
			upload['done'] = self.store_as(query['name'], upload['data'], hashed and hashed.group(1), 'PUT')
		if kind == 'lose':
			self.close_connection = True
		elif kind in ('more', 'none'):
			self.goes_on(size + 1 if kind == 'more' else 0)
		elif whole:
			self.stored(query, upload)
		else:
			self.goes_on(size)

	def stored(self, query, upload):
		with self.store.lock:
			del self.store.uploads[query['upload_id']]
		self.tell(upload['done'].resource(query['name']))

	# Getting.

	def media(self, name, query):
		o, ranged, headers = self.known(name), self.headers.get('Range'), {}
		data, status = o.data, 200
		found = self.store.fault('GET', 'cut', 'no-length', 'no-range', 'wrong-range', 'short-range', 'changed', 'drip', 'flip')
		kind, value = found or (None, None)
		generation = 1 if kind == 'changed' else o.generation
		self.pinned(o, query, generation)
		if ranged and kind != 'no-range':
			first, last = re.match(r'bytes=(\d+)-(\d*)$', ranged).groups()
			first, last = int(first), min(int(last or len(data)), len(data) - 1)
			if first >= len(data):
				raise Refused(416, 'requestedRangeNotSatisfiable', 'Request range not satisfiable')
			if kind == 'short-range':
				last = first
			data, status = data[first:last + 1], 206
			said = first + (kind == 'wrong-range')
			headers['Content-Range'] = 'bytes %d-%d/%d' % (said, said + len(data) - 1, len(o.data))
		headers.update({'x-goog-generation': str(generation), 'x-goog-hash': 'crc32c=%s,md5=x' % o.sum})
		if kind == 'flip':
			data = spoiled(data)
		if kind in ('cut', 'drip'):
			self.answer(status, data[:int(value)], headers, length=len(data))
			if kind == 'drip':
				time.sleep(30)
			self.close_connection = True
		elif kind == 'no-length':
			self.close_connection = True
			self.answer(status, data[:len(data) // 2], headers, length='none')
		else:
			self.answer(status, data, headers)

	def list(self, query):
		prefix, after = query.get('prefix', ''), query.get('pageToken', '')
		found = self.store.fault('GET', 'list')
		lie = found and found[1]
		most = min(int(query.get('maxResults', 1000)), 1000)
		with self.store.lock:
			objects = sorted(self.store.objects.items(), key=lambda i: i[0].encode())
		rows = [o.resource(k) for k, o in objects if k.startswith(prefix) and 't/' + k > after]
		page, more = rows[:most], len(rows) > most
		if lie == 'again':
			page, more = rows[:2], True
		elif lie == 'empty':
			page, more = [], True
		elif lie == 'backwards':
			page = page[::-1]
		elif lie == 'foreign':
			page = [{**o, 'name': 'elsewhere/' + o['name']} for o in page]
		elif lie == 'size':
			page = [{**o, 'size': 'many'} for o in page]
		body = {'kind': 'storage#objects'}
		if page:
			body['items'] = [{k: o[k] for k in ('name', 'size', 'updated')} for o in page]
		if more:
			body['nextPageToken'] = 't/' + page[-1]['name'] if page and lie != 'again' else 'x'
		text = json.dumps(body).encode()
		self.answer(200, text[:len(text) // 2] if lie == 'half' else text, {'Content-Type': 'application/json'})


if __name__ == '__main__':
	given = s3_server.arguments()
	s3_server.serve(Handler, Store(given.token), given.tls)
