#!/usr/bin/python3
"""Restore one set of a snapshot without Steward: written from docs/backup-format.md alone.

  restore_without_steward.py --secret DIR/secret.key --repository DIR/backups REGION GROUP CLUSTER SNAPSHOT SET TARGET
  restore_without_steward.py ... --log                the log that follows the snapshot too, into TARGET/pg_wal
  restore_without_steward.py ... --wal INCARNATION    the same, of another incarnation than the snapshot's
  restore_without_steward.py ... --project-key FILE   of a project with encryption at rest: its data key, 32 bytes
  restore_without_steward.py --keys --secret DIR/secret.key --repository DIR/backups REGION GROUP
                                                      that key as its key services have wrapped it, to be unwrapped there

The repository is a directory. Needs python3-cryptography, and the program zstd. TARGET must not exist."""
import argparse
import hashlib
import hmac
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

CHUNK = 32768
SEGMENT = 4 << 20
ZERO = bytes(16)
BATCH = 512


class Bad(Exception):
	pass


def mac(key, message):
	return hmac.new(key, message, hashlib.sha256).digest()


def derive(key, salt, info):
	return HKDF(hashes.SHA256(), 32, salt, info).derive(key)


def expand(data):
	return subprocess.run(['zstd', '-d', '-q', '-c'], input=data, stdout=subprocess.PIPE, check=True).stdout


def unseal(keys, kind, name, data):
	"""The plain bytes of a sealed object; keys: of the service (False), and of the project (True)."""
	magic, found, packed, zero, length, salt = struct.unpack('<4scBHQ16s', data[:32])
	if magic not in (b'SWB1', b'SWB2') or found != kind or packed > 1 or zero:
		raise Bad('%s does not begin as it should' % name)
	head = 48 if magic == b'SWB2' else 32
	key = keys.get(head == 48)
	if key is None:
		raise Bad('%s needs the data key %s of the project (--project-key)' % (name, data[32:44].hex()))
	try:
		plain = AESGCM(derive(key, salt, b'object')).decrypt(bytes(12), data[head:], data[:head] + name.encode())
	except InvalidTag:
		raise Bad('%s does not open' % name) from None
	plain = expand(plain) if packed else plain
	if len(plain) != length:
		raise Bad('%s has another length' % name)
	return plain


class Repository:
	def __init__(self, root, secret, region, group, project_key=None):
		self.home, self.group = pathlib.Path(root) / region / group, group
		keys = pathlib.Path(secret).read_bytes()  # during a rotation more than one
		self.services = [mac(mac(keys[i:i + 32], b'steward/1/backups'), b'service key') for i in range(0, len(keys), 32)]
		self.data = {False: self.open_any('key')}
		if project_key:
			self.data[True] = derive(pathlib.Path(project_key).read_bytes(), group.encode(), b'backups')
		self.id_keys = {own: derive(key, b'', b'chunk id') for own, key in self.data.items()}
		self.chunks, self.packs, self.parity = {}, {}, {}
		if (self.home / 'parity').exists():
			for path in sorted((self.home / 'parity').iterdir()):
				self.parity_list(path)
		for path in sorted((self.home / 'index').iterdir()):
			self.index(path.name)
		for pack in sorted(self.parity):  # one may be gone with its index
			if not (self.home / 'index' / pack).exists():
				self.index_of(pack, self.rebuild(pack))

	def open(self, name, kind, keys=None):
		return unseal(keys or self.data, kind, '%s/%s' % (self.group, name), (self.home / name).read_bytes())

	def open_any(self, name):
		"""With the one of the service's keys that opens it."""
		for service in self.services[:-1]:
			try:
				return self.open(name, b'K', {False: service})
			except Bad:
				pass
		return self.open(name, b'K', {False: self.services[-1]})

	def wrapped(self):
		return [json.loads(self.open_any('keys/' + path.name)) for path in sorted((self.home / 'keys').iterdir())]

	def parity_list(self, path):
		"""Which packs a parity is of: of each the parity's path, where its bytes begin, the pack's length and hash, and the others."""
		head = path.open('rb').read(4096)
		magic, kind, zero, length, zeros, ident = struct.unpack('<4sc3sI4s16s', head[:32])
		try:
			if (magic, kind, zero, zeros, ident.hex()) != (b'SWB1', b'X', bytes(3), bytes(4), path.name):
				raise Bad('parity %s does not begin as it should' % path.name)
			plain = unseal(self.data, b'X', '%s/parity/%s' % (self.group, path.name), head[32:32 + length])
		except (Bad, struct.error):
			return  # only a second copy
		members = [(ident.hex(), size, digest) for ident, size, digest in struct.iter_unpack('<16sI32s', plain[32:])]
		for pack, size, digest in members:
			self.parity.setdefault(pack, []).append((path, 32 + length, size, digest, [n for n, _, _ in members if n != pack]))

	def rebuild(self, pack):
		"""A pack that is damaged or gone, from the others that it shares a parity with; empty: that does not make it."""
		for path, begins, size, digest, others in self.parity.get(pack, ()):
			made = int.from_bytes(path.read_bytes()[begins:], 'little')
			for other in others:
				there = self.home / 'packs' / other
				made ^= int.from_bytes(there.read_bytes() if there.exists() else b'', 'little')
			made = (made & ((1 << 8 * size) - 1)).to_bytes(size, 'little')
			if hashlib.sha256(made).digest() == digest:
				print('pack %s is damaged or gone; it was made again from parity/%s' % (pack, path.name), file=sys.stderr)
				return made
		return b''

	def index_of(self, pack, data):
		"""The index at a pack's end."""
		if data:
			length, = struct.unpack('<I', data[-8:-4])
			self.index(pack, data[-8 - length:-8])

	def index(self, pack, sealed=None):
		sealed = sealed or (self.home / 'index' / pack).read_bytes()
		if (sealed[:4] == b'SWB2') not in self.data:
			return  # nothing that opens names its chunks
		own = sealed[:4] == b'SWB2'
		plain = unseal(self.data, b'I', '%s/index/%s' % (self.group, pack), sealed)
		for number, (ident, at, stored, length) in enumerate(struct.iter_unpack('<16sIII', plain)):
			self.chunks.setdefault(ident, []).append((pack, own, number, at, stored, length))

	def pack(self, name, own, again=False):
		if again or name not in self.packs:
			data = self.rebuild(name) if again else b''
			if again and not data:
				raise Bad('pack %s cannot be made again' % name)
			file = io.BytesIO(data) if again else open(self.home / 'packs' / name, 'rb')  # kept open for the next chunk
			if file.read(32) != b'SWB1P' + bytes(11) + bytes.fromhex(name):
				raise Bad('pack %s does not begin as it should' % name)
			self.packs[name] = file, AESGCM(derive(self.data[own], bytes.fromhex(name), b'pack'))
		return self.packs[name]

	def decrypt(self, ident):
		"""A chunk that may still be compressed, and its length with that mark, from any of its packs; where it opens in none, from
		what makes one of them again."""
		fault = Bad('chunk %s is in no pack' % ident.hex())
		for again in (False, True):
			for pack, own, number, at, stored, length in self.chunks.get(ident, ()):
				try:
					file, cipher = self.pack(pack, own, again)
					file.seek(at)
					return cipher.decrypt(struct.pack('<IQ', number, 0), file.read(stored), ident + struct.pack('<I', length)), length
				except InvalidTag:
					fault = Bad('chunk %d of pack %s does not open' % (number, pack))
				except FileNotFoundError:
					fault = Bad('pack %s is missing' % pack)
				except Bad as other:
					fault = fault if again else other
		raise fault

	def plain(self, idents):
		"""The plain bytes of each: one run of zstd reads the frames of many chunks."""
		opened = [self.decrypt(ident) for ident in idents]
		frames = b''.join(data for data, length in opened if length >> 31)
		expanded, at, out = expand(frames) if frames else b'', 0, []
		for ident, (data, length) in zip(idents, opened):
			if length >> 31:
				data = expanded[at:at + (length & 0x7fffffff)]
				at += len(data)
			macs = [mac(key, data)[:16] for key in self.id_keys.values()]
			if len(data) != length & 0x7fffffff or ident not in [b'\1' + own[1:] if own == ZERO else own for own in macs]:
				raise Bad('chunk %s is another' % ident.hex())
			out.append(data)
		return out


def entries(plain):
	"""The head of a manifest, and its entries."""
	n, = struct.unpack_from('<I', plain)
	head = json.loads(plain[4:4 + n])
	count, = struct.unpack_from('<I', plain, 4 + n)
	at, out = 8 + n, []
	form = '<cIqQIH' if 'checksum' in head else '<cIqQ32sH'
	for _ in range(count):
		kind, mode, changed, size, total, n = struct.unpack_from(form, plain, at)
		at += struct.calcsize(form)
		path = plain[at:at + n]
		at += n + 1
		chunks, = struct.unpack_from('<I', plain, at)
		at += 4
		out.append((kind, mode & 0o7777, changed, size, total, path, [plain[at + 16 * i:at + 16 * i + 16] for i in range(chunks)]))
		at += 16 * chunks
	if at != len(plain):
		raise Bad('the manifest does not end where it should')
	return head, out


def target(root, path):
	if path.startswith(b'/') or any(part in (b'', b'.', b'..') for part in path.split(b'/')):
		raise Bad('the path %r leads elsewhere' % path)
	return os.path.join(os.fsencode(root), path)


def file_restore(repository, path, entry):
	_, mode, changed, size, _, _, chunks = entry
	os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
	with open(path, 'xb') as out:
		for first in range(0, len(chunks), BATCH):
			batch = chunks[first:first + BATCH]
			stored = iter(repository.plain([ident for ident in batch if ident != ZERO]))
			for number, ident in enumerate(batch, first):
				length = min(CHUNK, size - number * CHUNK)
				plain = bytes(length) if ident == ZERO else next(stored)
				if len(plain) != length:
					raise Bad('%r: chunk %d has another length' % (path, number))
				out.write(plain)
	os.chmod(path, mode)
	os.utime(path, (changed, changed))


def number(segment):
	"""Of a segment, whatever its timeline is: positions from it times SEGMENT on are in it."""
	return int(segment[8:16], 16) * (1 << 32) // SEGMENT + int(segment[16:24], 16)


def first_needed(root):
	"""The number of the segment that backup_label names; of a cluster that was paused there is no such file."""
	label = pathlib.Path(root) / 'backup_label'
	found = re.search(r'START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)', label.read_text()) if label.exists() else None
	return number(found[1]) if found else 0


def timelines(repository, base):
	"""The newest timeline whose history lies there, and those that lead to it: pairs of a timeline and the number of the segment
	that it begins in, the newest first. A history that is not there yet leads nowhere."""
	histories = sorted(int(p.stem, 16) for p in (repository.home / base).glob('*.history'))
	newest, parts, begins = histories[-1] if histories else 1, [], 0
	text = repository.open('%s/%08X.history' % (base, newest), b'W').decode() if newest > 1 else ''
	for timeline, high, low in re.findall(r'^(\d+)\s+([0-9A-F]+)/([0-9A-F]+)', text, re.M):
		parts.insert(0, (int(timeline), begins))
		begins = ((int(high, 16) << 32) + int(low, 16)) // SEGMENT
	return [(newest, begins), *parts]


def wal_restore(repository, cluster, incarnation, name, root):
	"""Of each segment the one that leads to the newest timeline: PostgreSQL would fall back to what an older one has under the same
	number. The last is there up to where it was written, under a name with .partial, which PostgreSQL passes over: it gets its own
	name, and zeros to a segment's length, which end the log."""
	base = 'wal/%s/%s/%s' % (cluster, incarnation, name)
	home, out = repository.home / base, pathlib.Path(root) / 'pg_wal'
	out.mkdir(exist_ok=True, mode=0o700)
	for path in home.glob('*.history'):
		(out / path.name).write_bytes(repository.open('%s/%s' % (base, path.name), b'W'))
	parts, first = timelines(repository, base), first_needed(root)
	there = [n for n in (number(p.name) for p in home.glob('[0-9A-F]*/*')) if n >= first]
	for at in range(first or min(there, default=0), max(there, default=-1) + 1):
		timeline = next(t for t, begins in parts if begins <= at)
		segment = '%08X%08X%08X' % (timeline, at * SEGMENT >> 32, at % ((1 << 32) // SEGMENT))
		found = [n for n in (segment, segment + '.partial') if (home / segment[:8] / n).exists()]
		if not found and (out / segment).exists():
			continue  # the snapshot has the log up to its own point
		if not found:
			print('%s is not there: the log ends before it' % segment, file=sys.stderr)
			return
		plain = repository.open('%s/%s/%s' % (base, segment[:8], found[0]), b'W')
		own = (out / segment).read_bytes() if (out / segment).exists() else b''  # the snapshot's, which ends with it
		if not (found[0] != segment and own[:len(plain)] == plain and any(own[len(plain):])):
			(out / segment).write_bytes(plain.ljust(SEGMENT, b'\0') if found[0] != segment else plain)


def main():
	p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	p.add_argument('--secret', required=True)
	p.add_argument('--repository', required=True)
	p.add_argument('--log', action='store_true')
	p.add_argument('--wal', metavar='INCARNATION')
	p.add_argument('--project-key', metavar='FILE')
	p.add_argument('--keys', action='store_true')
	p.add_argument('region')
	p.add_argument('group')
	for name in ('cluster', 'snapshot', 'set', 'target'):
		p.add_argument(name, nargs='?')
	g = p.parse_args()
	repository = Repository(g.repository, g.secret, g.region, g.group, g.project_key)
	if g.keys:
		print(json.dumps(repository.wrapped(), indent=1))
		return
	if not g.target:
		p.error('REGION GROUP CLUSTER SNAPSHOT SET TARGET')
	head, listed = entries(repository.open('manifests/%s/%s/%s' % (g.cluster, g.snapshot, g.set), b'M'))
	os.mkdir(g.target, 0o700)
	for entry in listed:
		if entry[0] == b'D':
			os.makedirs(target(g.target, entry[5]), mode=0o700, exist_ok=True)
	for entry in listed:
		if entry[0] == b'F':
			file_restore(repository, target(g.target, entry[5]), entry)
	if g.log or g.wal:
		wal_restore(repository, g.cluster, g.wal or head['facts']['incarnation'], g.set, g.target)
	for entry in listed:
		if entry[0] == b'D':
			os.chmod(target(g.target, entry[5]), entry[1])
	print('%d files, %d bytes' % (head['files'], head['bytes']))


if __name__ == '__main__':
	try:
		main()
	except Bad as fault:
		sys.exit('restore_without_steward.py: %s' % fault)
