#!/usr/bin/python3
"""The documented format against the program: random trees, written by the program, restored by restore_without_steward.py, are
the same; a damaged repository is refused by both, and `steward repository` says so.

  format_property.py REPOSITORY_WRITE STEWARD"""
import glob
import os
import pathlib
import random
import subprocess
import sys
import tempfile

RESTORE = pathlib.Path(__file__).with_name('restore_without_steward.py')
GROUP, CLUSTER, SET = '6740a1b2c3d4e5f601234567', '6740a1b2c3d4e5f60123aaaa', 'shard-0'


def tree_make(root, dice):
	sizes = [0, 1, 8192, 32767, 32768, 32769, 300000, dice.randrange(2000000)]
	for number, size in enumerate(sizes):
		path = root / 'base' / ('d%d' % (number % 3)) / ('%d' % number)
		path.parent.mkdir(parents=True, exist_ok=True)
		data = bytearray(dice.randbytes(size))
		for at in range(0, size, 65536):  # runs that compress, and whole chunks of zeros
			data[at:at + 40000] = bytes(min(40000, size - at)) if at % 131072 else b'x' * min(40000, size - at)
		path.write_bytes(data)
		path.chmod(dice.choice([0o600, 0o640]))
	with open(root / 'sparse', 'wb') as sparse:
		sparse.truncate(5000000)
	(root / 'empty').mkdir(mode=0o750)


def tree_read(root):
	out = {}
	for path in sorted(root.rglob('*')):
		name, mode = str(path.relative_to(root)), path.stat().st_mode & 0o7777
		out[name] = (mode, path.read_bytes() if path.is_file() else None, int(path.stat().st_mtime) if path.is_file() else 0)
	return out


def run(*words, code=0):
	# The look for leaks at the end takes seconds, and the unit tests do it.
	emulator = [] if str(words[0]).startswith('/usr/') else os.environ.get('STEWARD_EMULATOR', '').split()
	done = subprocess.run([*emulator, *(str(w) for w in words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
			      env={**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'})
	assert done.returncode == code, (words, done.returncode, done.stdout)
	return done.stdout


def restore(home, snapshot, target, *more, code=0):
	return run('/usr/bin/python3', RESTORE, '--secret', home / 'data/secret.key', '--repository', home / 'data/backups', *more,
		   'US_EAST_1', GROUP, CLUSTER, snapshot, SET, target, code=code)


def check(home, program, write, dice):
	data = home / 'data'
	data.mkdir(mode=0o700)
	stored = []
	for number in range(2):
		source = home / ('source%d' % number)
		source.mkdir()
		if number:  # the same, and a little more
			subprocess.run(['cp', '-a', '%s/.' % (home / 'source0'), source], check=True)
			(source / 'more').write_bytes(b'more')
		else:
			tree_make(source, dice)
		segment = home / '000000010000000000000007'
		if not number:
			segment.write_bytes(dice.randbytes(1000) + bytes(100000))
		segments = [] if number else [segment]
		stored.append(int(run(write, data, 'US_EAST_1', GROUP, CLUSTER, 's%d' % number, SET, source, *segments)))
		back = home / ('back%d' % number)
		restore(home, 's%d' % number, back)
		for verify in sorted(glob.glob('/usr/lib/postgresql/*/bin/pg_verifybackup')):
			run(verify, '-n', '-q', back)
		(back / 'backup_manifest').unlink()
		assert tree_read(source) == tree_read(back)
	assert stored[1] < stored[0] / 50 + 8192, stored
	restore(home, 's0', home / 'with-wal', '--wal', 'i1')
	assert (home / 'with-wal/pg_wal' / segment.name).read_bytes() == segment.read_bytes()
	said = run(program, 'repository', 'check', '--data', data)
	assert '2 snapshots' in said and said.rstrip().endswith('clean'), said
	usage = run(program, 'repository', 'usage', '--data', data).splitlines()
	assert usage[1].split('\t')[:2] == ['US_EAST_1', GROUP] and int(usage[1].split('\t')[2]) > 100000, usage
	assert 'no backups' in run(program, 'repository', 'check', '--data', data, '--region', 'NONE')


def own_key(home, program, write, dice):
	"""Encryption at rest: a snapshot that secret.key alone does not open, beside older ones that it does."""
	data, key, source, back = home / 'data', home / 'project.key', home / 'source1', home / 'own'
	key.write_bytes(dice.randbytes(32))
	segment = home / '000000010000000000000008'
	segment.write_bytes(b'log')
	os.environ['PROJECT_KEY'] = str(key)
	stored = [int(run(write, data, 'US_EAST_1', GROUP, CLUSTER, name, SET, source, segment)) for name in ('own1', 'own2')]
	assert stored[1] < stored[0] / 50 + 8192, stored
	del os.environ['PROJECT_KEY']
	assert 'needs the data key 6740a1b2c3d4e5f60123000a' in restore(home, 'own1', home / 'refused', code=1)
	restore(home, 'own1', back, '--project-key', key, '--wal', 'i1')
	assert (back / 'pg_wal' / segment.name).read_bytes() == b'log'
	for path in [*(back / 'pg_wal').iterdir(), back / 'backup_manifest']:
		path.unlink()
	(back / 'pg_wal').rmdir()
	assert tree_read(source) == tree_read(back)
	restore(home, 's0', home / 'older', '--project-key', key)
	other = home / 'other.key'
	other.write_bytes(dice.randbytes(32))
	assert 'does not open' in restore(home, 'own2', home / 'wrong-key', '--project-key', other, code=1)
	said = run('/usr/bin/python3', RESTORE, '--keys', '--secret', data / 'secret.key', '--repository', data / 'backups', 'US_EAST_1', GROUP)
	assert '"wraps": []' in said, said
	said = run(program, 'repository', 'check', '--data', data)
	assert '2 snapshots' in said and 'objects were not read' in said, said
	# Without the project's key its packs are held against the hashes that their second copies have of them.
	place = data / 'backups/US_EAST_1' / GROUP
	pack = next(place / 'packs' / p.name for p in (place / 'index').iterdir() if p.read_bytes()[:4] == b'SWB2')
	good = pack.read_bytes()
	pack.write_bytes(good[:200] + bytes([good[200] ^ 1]) + good[201:])
	repaired(home, program, pack, good)


def repaired(home, program, pack, good):
	"""A damaged pack is named, made whole by a repair, and told no more."""
	data = home / 'data'
	assert pack.name in run(program, 'repository', 'check', '--data', data, code=1)
	said = run(program, 'repository', 'check', '--repair', '--data', data)
	assert pack.name in said and 'it is whole again' in said and 'made whole again' in said, said
	assert pack.read_bytes() == good
	assert 'clean' in run(program, 'repository', 'check', '--data', data)


def copies(home, program, write, dice):
	"""Several packs that share a second copy: any of them, in any way damaged, and the snapshot comes back by both programs."""
	cluster, data, source = '6740a1b2c3d4e5f60123dddd', home / 'data', home / 'large'
	source.mkdir()
	before = {p.name for p in (data / 'backups/US_EAST_1' / GROUP / 'packs').iterdir()}
	for n in range(5):
		(source / str(n)).write_bytes(dice.randbytes(8 << 20))
	run(write, data, 'US_EAST_1', GROUP, cluster, 's0', SET, source)
	tree = tree_read(source)
	packs = [p for p in (data / 'backups/US_EAST_1' / GROUP / 'packs').iterdir() if p.name not in before]
	assert len(packs) >= 3, packs
	words = ['/usr/bin/python3', RESTORE, '--secret', data / 'secret.key', '--repository', data / 'backups', 'US_EAST_1', GROUP, cluster, 's0', SET]
	for number, harm in enumerate(('flip', 'cut', 'remove', 'remove both')):
		pack, back = dice.choice(packs), home / ('large%d' % number)
		good, index = pack.read_bytes(), pack.parent.parent / 'index' / pack.name
		bad = bytearray(good)
		bad[dice.randrange(32, len(bad) // 2)] ^= 16
		if harm.startswith('remove'):
			pack.unlink()
			if harm == 'remove both':
				index.unlink()
		else:
			pack.write_bytes(bad[:len(bad) // 2] if harm == 'cut' else bad)
		assert pack.name in run(*words, back)
		(back / 'backup_manifest').unlink()
		assert tree_read(back) == tree, harm
		repaired(home, program, pack, good)
		assert 'made again' not in run(*words, home / ('whole%d' % number))
	for pack in packs[:2]:
		bad = bytearray(pack.read_bytes())
		bad[100] ^= 16
		pack.write_bytes(bad)
	assert 'does not open' in run(*words, home / 'lost', code=1)
	said = run(program, 'repository', 'check', '--repair', '--data', data, code=1)
	assert all(p.name in said for p in packs[:2]) and 'whole again' not in said, said
	assert run(program, 'repository', 'check', '--repair', '--sample', '10%', '--data', data, code=2)
	for pack in packs[:2]:
		bad = bytearray(pack.read_bytes())
		bad[100] ^= 16
		pack.write_bytes(bad)
	assert 'clean' in run(program, 'repository', 'check', '--data', data)


def timelines(home, program, write):
	"""The log's end lies there in part; what the first timeline has behind the fork never was; a hole is named."""
	cluster, data, made = '6740a1b2c3d4e5f60123cccc', home / 'data', home / 'log'
	made.mkdir()
	segment = lambda timeline, number: '%08X%016X' % (timeline, number)
	for name, text in ((segment(1, 7), b'7 of 1'), (segment(1, 8) + '.partial', b'8 of 1, and more'), (segment(1, 9), b'never was'),
			   (segment(2, 8), b'8 of 2'), (segment(2, 9) + '.partial', b'the end'), ('00000002.history', b'1\t0/2000500\tx\n')):
		(made / name).write_bytes(text)
	run(write, data, 'US_EAST_1', GROUP, cluster, 's0', SET, home / 'source0', *sorted(made.iterdir()))
	words = ['/usr/bin/python3', RESTORE, '--secret', data / 'secret.key', '--repository', data / 'backups', '--wal', 'i1', 'US_EAST_1', GROUP,
		 cluster, 's0', SET]
	assert 'not there' not in run(*words, home / 'line')
	found = {p.name: p.read_bytes() for p in (home / 'line/pg_wal').iterdir()}
	assert found == {segment(1, 7): b'7 of 1', segment(2, 8): b'8 of 2', segment(2, 9): b'the end'.ljust(4194304, b'\0'),
			 '00000002.history': b'1\t0/2000500\tx\n'}, {n: b[:20] for n, b in found.items()}
	assert cluster not in run(program, 'repository', 'check', '--data', data)
	(data / 'backups/US_EAST_1' / GROUP / 'wal' / cluster / 'i1' / SET / '00000002' / segment(2, 8)).unlink()
	assert segment(2, 8) + ' is not there: the log ends before it' in run(*words, home / 'short')
	assert not (home / 'short/pg_wal' / segment(2, 9)).exists()
	said = run(program, 'repository', 'check', '--data', data, code=1)
	assert '/%s: is missing' % segment(2, 8) in said and '1 fault' in said, said


def damage(home, program, dice):
	data = home / 'data'
	pack = max((data / 'backups/US_EAST_1' / GROUP / 'packs').iterdir(), key=lambda path: path.stat().st_size)
	good = pack.read_bytes()
	bad = bytearray(good)
	bad[100] ^= 1
	pack.write_bytes(bad)
	said = run(program, 'repository', 'check', '--data', data, code=1)
	assert pack.name in said and '%s/s' % CLUSTER in said and '1 fault' in said, said
	pack.write_bytes(good)
	run(program, 'repository', 'check', '--data', data, '--sample', '50%')
	run(program, 'repository', 'check', '--data', data, '--sample', '2', code=2)
	run(program, 'repository', 'nonsense', '--data', data, code=2)
	manifest = data / 'backups/US_EAST_1' / GROUP / 'manifests' / CLUSTER / 's0' / SET
	other = manifest.parent.with_name('s1') / SET
	good = manifest.read_bytes()
	manifest.write_bytes(other.read_bytes())
	assert 'does not open' in restore(home, 's0', home / 'swapped', code=1)
	manifest.write_bytes(good)
	key = data / 'secret.key'
	good = key.read_bytes()
	key.write_bytes(os.urandom(32))
	assert 'does not open' in restore(home, 's0', home / 'wrong', code=1)
	assert 'secret.key' in run(program, 'repository', 'check', '--data', data, code=1)
	key.write_bytes(good)


def main():
	write, program = sys.argv[1:]
	seed = random.randrange(1 << 32)
	dice = random.Random(seed)
	print('seed', seed)
	with tempfile.TemporaryDirectory(prefix='steward-format-') as home:
		check(pathlib.Path(home), program, write, dice)
		damage(pathlib.Path(home), program, dice)
		own_key(pathlib.Path(home), program, write, dice)
		copies(pathlib.Path(home), program, write, dice)
		timelines(pathlib.Path(home), program, write)


main()
