#!/usr/bin/python3
"""Debian's Swift with s3api, which verifies S3's signatures, behind a proxy that fails on request. Started and commanded as
s3_server.py is. One user, KEY_ID with SECRET, and its bucket "bucket"."""
import configparser
import ctypes
import hashlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import azurite
import s3_server

KEY_ID, SECRET, BUCKET = 'steward:tests', 'test/secret+with=characters', s3_server.BUCKET
PROGRAMS = ['account', 'container', 'object', 'proxy']
PIPELINE = 'catch_errors gatekeeper cache listing_formats s3api tempauth slo proxy-server'
FILTERS = {'catch_errors': {}, 'gatekeeper': {}, 'cache': {'use': 'egg:swift#memcache'}, 'listing_formats': {},
	   's3api': {'location': s3_server.REGION}, 'slo': {}, 'tempauth': {'user_' + KEY_ID.replace(':', '_'): SECRET + ' .admin'}}


def free_port():
	with socket.socket() as s:
		s.bind(('127.0.0.1', 0))
		return s.getsockname()[1]


def write(path, sections):
	config = configparser.RawConfigParser()
	config.read_dict(sections)
	with path.open('w') as f:
		config.write(f)


def ring(folder, kind, port):
	from swift.common.ring import RingBuilder
	builder = RingBuilder(2, 1, 1)
	builder.add_dev({'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': port, 'replication_ip': '127.0.0.1',
			 'replication_port': port, 'device': 'd', 'weight': 1.0, 'id': 0})
	builder.rebalance(seed=1)
	builder.get_ring().save(str(folder / (kind + '.ring.gz')))


def configure(folder):
	"""A configuration for each program; and the ports."""
	ports = {kind: free_port() for kind in PROGRAMS}
	(folder / 'd').mkdir()
	write(folder / 'swift.conf', {'swift-hash': {'swift_hash_path_suffix': 'tests'},
				      'storage-policy:0': {'name': 'only', 'default': 'yes'}})
	for kind, port in ports.items():
		common = {'bind_ip': '127.0.0.1', 'bind_port': port, 'workers': 0, 'user': os.environ.get('USER') or 'root',
			  'swift_dir': folder, 'devices': folder, 'mount_check': 'false', 'log_level': 'ERROR',
			  'log_address': folder / 'nowhere'}
		app = {'use': 'egg:swift#' + kind, 'account_autocreate': 'true', 'allow_account_management': 'true'}
		filters = {'filter:' + name: {'use': 'egg:swift#' + name, **more} for name, more in FILTERS.items()}
		pipeline = PIPELINE if kind == 'proxy' else kind + '-server'
		write(folder / (kind + '.conf'), {'DEFAULT': common, 'pipeline:main': {'pipeline': pipeline}, **filters,
						  'app:%s-server' % kind: app})
		if kind != 'proxy':
			ring(folder, kind, port)
	return ports


def answers(port):
	try:
		with socket.create_connection(('127.0.0.1', port), 1):
			return True
	except OSError:
		return False


def is_installed():
	return all(shutil.which('swift-%s-server' % kind) for kind in PROGRAMS)


def start(folder):
	"""The processes, and the port."""
	ports = configure(folder)
	processes = []
	for kind in PROGRAMS:
		processes.append(subprocess.Popen(['swift-%s-server' % kind, folder / (kind + '.conf')], stdin=subprocess.DEVNULL,
						  stdout=(folder / (kind + '.log')).open('w'), stderr=subprocess.STDOUT, cwd=folder,
						  preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9)))  # it ends with this process
	until = time.monotonic() + 120
	for kind, process in zip(PROGRAMS, processes):
		while not answers(ports[kind]):
			if process.poll() is not None or time.monotonic() > until:
				sys.exit('swift-%s-server does not start: %s' % (kind, (folder / (kind + '.log')).read_text()))
			time.sleep(0.05)
	return processes, ports['proxy']


def ask(store, method, key='', query=()):
	"""A request of our own: (status, body)."""
	path, date = '/%s/%s' % (BUCKET, key) if key else '/' + BUCKET, s3_server.now().strftime('%Y%m%dT%H%M%SZ')
	empty = hashlib.sha256(b'').hexdigest()
	headers = {'host': '127.0.0.1:%d' % store.port, 'x-amz-content-sha256': empty, 'x-amz-date': date}
	signed = s3_server.signature(SECRET, method, path, query, headers, sorted(headers), empty, date, s3_server.REGION)
	headers['Authorization'] = 'AWS4-HMAC-SHA256 Credential=%s/%s/%s/s3/aws4_request, SignedHeaders=%s, Signature=%s' % (
		KEY_ID, date[:8], s3_server.REGION, ';'.join(sorted(headers)), signed)
	c = azurite.connect(store)
	c.request(method, s3_server.encode(path, '/') + ('?' + urllib.parse.urlencode(query) if query else ''), headers=headers)
	answer = c.getresponse()
	found = answer.status, answer.read()
	c.close()
	return found


class Store(s3_server.Store):
	tls = None

	def __init__(self, port):
		super().__init__(None)
		self.port = port

	def command(self, words):
		if words[0] == 'get':  # an object's bytes in hexadecimal, or a status
			status, body = ask(self, 'GET', words[1])
			return body.hex() or '-' if status == 200 else str(status)
		if words[0] == 'names':
			status, body = ask(self, 'GET', query=[('list-type', '2')])
			return ' '.join(re.findall('<Key>([^<]*)</Key>', body.decode())) if status == 200 else str(status)
		if words[0] == 'object':
			raise NotImplementedError
		return super().command(words)


def main():
	s3_server.arguments()
	s3_server.end_by_signal()
	folder, processes = pathlib.Path(tempfile.mkdtemp(prefix='steward-swift-')), []
	try:
		processes, port = start(folder)
		store = Store(port)
		made = ask(store, 'PUT')
		if made[0] != 200:
			sys.exit('no bucket could be made: %s %s' % (made, (folder / 'proxy.log').read_text()))
		s3_server.serve(azurite.Handler, store)
	finally:
		for p in processes:
			p.kill()
			p.wait()
		shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
	main()
