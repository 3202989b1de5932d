"""steward-lake: rows as a PostgreSQL server copies them out become a Parquet file, which DuckDB reads by itself. Whatever else comes is
an answer that says why, and no file that anybody would take for one."""
import json, os, pathlib, random, socket, struct, subprocess, threading, uuid

import pytest

import client
from duck import Duck

HEAD = b'PGCOPY\n\xff\r\n\0' + bytes(8)
TAIL = struct.pack('>h', -1)
MICROS_TO_2000 = 946684800 * 10**6


def program():
	path = pathlib.Path(client.binary()).parent / 'steward-lake'
	if not path.exists():
		pytest.skip('steward-lake is not built')
	return path


def row(*values):
	"""None, or the bytes of a value."""
	return struct.pack('>h', len(values)) + b''.join(struct.pack('>i', -1) if v is None else struct.pack('>i', len(v)) + v for v in values)


def copy(*rows):
	return HEAD + b''.join(rows) + TAIL


class Helper:
	"""The program at work: its standard input, its answer, and the pipe that the file comes out of."""

	def __init__(self):
		self.file, theirs = os.pipe()
		self.process = subprocess.Popen(['/bin/sh', '-c', 'exec "$0" 3>/dev/fd/%d' % theirs, program()], stdin=subprocess.PIPE,
			stdout=subprocess.PIPE, pass_fds=[theirs], env={})
		os.close(theirs)
		self.written = b''
		self.reader = threading.Thread(target=self.read)
		self.reader.start()

	def read(self):
		with open(self.file, 'rb') as pipe:
			self.written = pipe.read()

	def give(self, *parts):
		"""Until it wants no more of it."""
		try:
			for part in parts:
				self.process.stdin.write(part)
			self.process.stdin.close()
		except BrokenPipeError:
			pass

	def end(self):
		"""What it answers; None: nothing."""
		said = self.process.stdout.read()
		self.process.wait(60)
		self.reader.join(60)
		return json.loads(said) if said else None


def header(columns, order=()):
	return json.dumps({'columns': [{'name': n, 'type': t} for n, t in columns], 'order': list(order)}).encode() + b'\n'


def run(*parts):
	helper = Helper()
	helper.give(*parts)
	return helper.end(), helper.written


@pytest.fixture
def duck():
	duck = Duck()
	yield duck
	duck.close()


def stored(tmp_path, written):
	path = tmp_path / 'rows.parquet'
	path.write_bytes(written)
	return "'%s'" % path


# Of each type: what PostgreSQL sends, and what DuckDB shows of it.
VALUES = [
	('boolean', b'\1', 'true'), ('boolean', b'\0', 'false'),
	('smallint', struct.pack('>h', -32768), '-32768'), ('integer', struct.pack('>i', -2147483648), '-2147483648'),
	('bigint', struct.pack('>q', -9223372036854775808), '-9223372036854775808'), ('bigint', struct.pack('>q', 2**63 - 1), '9223372036854775807'),
	('real', struct.pack('>f', 1.5), '1.5'), ('double precision', struct.pack('>d', -0.1), '-0.1'),
	('double precision', struct.pack('>d', float('nan')), 'nan'), ('double precision', struct.pack('>d', float('inf')), 'inf'),
	('date', struct.pack('>i', -10957), '1970-01-01'), ('date', struct.pack('>i', 9496), '2025-12-31'),
	('date', struct.pack('>i', 2**31 - 1), 'infinity'), ('date', struct.pack('>i', -2**31), '-infinity'),
	('time', struct.pack('>q', 86399999999), '23:59:59.999999'),
	('timestamp', struct.pack('>q', -MICROS_TO_2000), '1970-01-01 00:00:00'), ('timestamp', struct.pack('>q', 1), '2000-01-01 00:00:00.000001'),
	('timestamptz', struct.pack('>q', 86400 * 10**6), '2000-01-02 00:00:00+00'),
	('timestamptz', struct.pack('>q', 2**63 - 1), 'infinity'), ('timestamp', struct.pack('>q', -2**63), '-infinity'),
	('uuid', uuid.UUID('00112233-4455-6677-8899-aabbccddeeff').bytes, '00112233-4455-6677-8899-aabbccddeeff'),
	('bytea', b'\0a\xff', '\\x00a\\xFF'), ('bytea', b'', ''),
	('text', 'ä"\'\n\u2028'.encode(), 'ä"\'\n\u2028'), ('text', b'', ''),
	('decimal(38,2)', b'-123456789012345678901234567890123456.78', '-123456789012345678901234567890123456.78'),
	('decimal(4,0)', b'9999', '9999'), ('decimal(5,5)', b'0.00001', '.00001'),
]


def test_values(tmp_path, duck):
	columns = [('c%d' % i, kind) for i, (kind, _, _) in enumerate(VALUES)]
	answer, written = run(header(columns), copy(row(*[v for _, v, _ in VALUES]), row(*[None] * len(VALUES))))
	assert answer == {'rows': 2}
	assert duck.query('select * from %s' % stored(tmp_path, written)) == [[shown for _, _, shown in VALUES], [None] * len(VALUES)]


def test_names(tmp_path, duck):
	"""Whatever a column is called, it is called so in the file."""
	names = ['"', "a'b", 'from', 'ä b', 'x) TO \'/tmp/y\' --', '"; DROP TABLE rows; --', 'rowid', 'n' * 63]
	answer, written = run(header([(n, 'integer') for n in names]), copy(row(*[struct.pack('>i', i) for i in range(len(names))])))
	assert answer == {'rows': 1}
	assert [r[0] for r in duck.query('select column_name from (describe select * from %s)' % stored(tmp_path, written))] == names


def test_many_rows_are_sorted_and_compressed(tmp_path, duck):
	"""Readers leave out what the statistics of a part exclude, which says something only of rows that are in order."""
	count = 300000
	rows = (row(struct.pack('>i', i * 7919 % count), b'word %d' % (i % 100)) for i in range(count))
	answer, written = run(header([('n', 'integer'), ('w', 'text')], order=['n']), HEAD, *rows, TAIL)
	assert answer == {'rows': count} and len(written) < count * 8
	at = stored(tmp_path, written)
	assert duck.query('select count(*), count(distinct n), sum(n) from %s' % at) == [[str(count), str(count), str(count * (count - 1) // 2)]]
	parts = duck.query("select row_group_id, stats_min_value::int, stats_max_value::int, compression from parquet_metadata(%s) where path_in_schema = 'n' order by 1" % at)
	assert len(parts) > 1 and {p[3] for p in parts} == {'ZSTD'}
	assert all(int(a[2]) < int(b[1]) for a, b in zip(parts, parts[1:]))


def test_no_rows(tmp_path, duck):
	answer, written = run(header([('n', 'integer')]), copy())
	assert answer == {'rows': 0} and duck.query('select * from %s' % stored(tmp_path, written)) == []


ONE = header([('n', 'integer'), ('t', 'text')])
SEVEN = struct.pack('>i', 7)


@pytest.mark.parametrize('parts,why', [
	([b''], 'no JSON'), ([b'{}'], 'no JSON'), ([b'[\n'], 'no JSON'), ([b'{}\n'], '1 to 1600 columns'), ([b'[]\n'], '1 to 1600 columns'),
	([header([('n', 'int')])], 'no column has the type "int"'), ([header([('n', 'integer); drop table x')])], 'no column has the type'),
	([header([('n', 'decimal(39,1)')])], 'no column has the type'), ([header([('n', 'decimal(3,4)')])], 'no column has the type'),
	([header([('n', 'decimal(03,1)')])], 'no column has the type'), ([header([('n', 'decimal(3,1)x')])], 'no column has the type'),
	([header([('n', 'integer'), ('N', 'integer')])], 'already exists'),
	([header([('c%d' % i, 'integer') for i in range(1601)])], '1 to 1600 columns'),
	([ONE], 'no copy of PostgreSQL'), ([ONE, b'n,t\n7,a\n' * 9], 'no copy of PostgreSQL'), ([ONE, HEAD[:11], struct.pack('>ii', 1 << 16, 0)], 'a form that is not known'),
	([ONE, HEAD], 'the rows have no end'), ([ONE, HEAD, row(SEVEN, b'a')], 'the rows have no end'),
	([ONE, HEAD, row(SEVEN, b'abc')[:-1]], 'end within one'), ([ONE, HEAD, row(SEVEN, b'a')[:4]], 'end within one'),
	([ONE, copy(row(SEVEN))], 'a row has 1 values, of 2 columns'), ([ONE, copy(row(SEVEN, b'a', b'b'))], 'a row has 3 values'),
	([ONE, copy(row(SEVEN + b'x', b'a'))], 'row 1: a value has 5 bytes'), ([ONE, HEAD, struct.pack('>hi', 2, -2)], 'a value has 4294967294 bytes'),
	([ONE, copy(row(SEVEN, b'\xff'))], 'unicode'), ([ONE, copy(), b'x'], 'something follows'),
	([header([('d', 'decimal(3,1)')]), copy(row(b'1000'))], '1000'), ([header([('d', 'decimal(3,1)')]), copy(row(b'NaN'))], 'NaN'),
	([header([('t', 'timestamp')]), copy(row(struct.pack('>q', 2**63 - 2)))], 'refused'),
	([header([('n', 'integer')], order=['m']), copy(row(SEVEN))], 'm'),
])
def test_what_is_no_copy_has_an_answer_that_says_why(parts, why):
	answer, written = run(*parts)
	assert list(answer) == ['error'] and why in answer['error']
	assert not written.endswith(b'PAR1'), 'a file that anybody would take for one'


def test_a_file_that_nobody_takes_is_no_success():
	ours, theirs = os.pipe()
	os.close(ours)
	process = subprocess.Popen(['/bin/sh', '-c', 'exec "$0" 3>&%d' % theirs if theirs < 10 else 'exec "$0" 3>/dev/fd/%d' % theirs, program()],
		stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[theirs], env={})
	os.close(theirs)
	said, _ = process.communicate(ONE + copy(row(SEVEN, b'a')), timeout=60)
	assert process.returncode != 0 or 'error' in json.loads(said)


def test_memory_is_bounded():
	"""Rows that do not fit end with a reason, in a process whose address space has a bound."""
	if 'asan' in client.binary():
		pytest.skip('the shadow of its memory is larger')
	helper, value = Helper(), os.urandom(1 << 20)
	wide = row(SEVEN, value.hex().encode())
	helper.give(ONE, HEAD, *(wide for _ in range(2000)), TAIL)
	answer = helper.end()
	assert answer is None or 'memory' in answer['error'].lower(), answer
	assert not helper.written.endswith(b'PAR1')


def read(columns, written):
	"""The other way round: what it answers, and the rows that it gives back."""
	ours, theirs = socket.socketpair()
	file = os.memfd_create('file')
	os.write(file, written)
	process = subprocess.Popen(['/bin/sh', '-c', 'exec "$0" 3</dev/fd/%d' % file, program()], stdin=theirs, stdout=subprocess.PIPE, pass_fds=[file], env={})
	theirs.close()
	os.close(file)
	ours.sendall(json.dumps({'read': True, 'columns': [{'name': n, 'type': t} for n, t in columns]}).encode() + b'\n')
	with ours, ours.makefile('rb') as rows:
		given = rows.read()
	said, _ = process.communicate(timeout=60)
	return json.loads(said) if said else None, given


def test_a_file_is_read_again():
	"""In the text form of COPY, as PostgreSQL takes it."""
	columns = [('c%d' % i, kind) for i, (kind, _, _) in enumerate(VALUES)]
	answer, written = run(header(columns), copy(row(*[v for _, v, _ in VALUES]), row(*[None] * len(VALUES))))
	assert answer == {'rows': 2}
	answer, given = read(columns, written)
	assert answer == {'rows': 2}
	shown = {'\\x00a\\xFF': '\\\\x0061FF'}
	first, second, end = given.decode().split('\n')
	assert end == '' and second == '\t'.join(['\\N'] * len(VALUES))
	for got, (kind, _, text) in zip(first.split('\t'), VALUES):
		assert got == ('\\\\x' if kind == 'bytea' and not text else shown.get(text, text.replace('\n', '\\n'))), (kind, got, text)


def test_many_rows_are_read_again():
	count, nasty = 100000, 'a\tb\nc\rd\\e\\N\\.' + 'x' * 40
	answer, written = run(header([('n', 'integer'), ('o"d', 'text')]), HEAD, *(row(struct.pack('>i', i), (nasty + str(i)).encode()) for i in range(count)), TAIL)
	assert answer == {'rows': count}
	answer, given = read([('o"d', 'text'), ('n', 'integer')], written)
	assert answer == {'rows': count}
	expected = nasty.replace('\\', '\\\\').replace('\t', '\\t').replace('\n', '\\n').replace('\r', '\\r')
	lines = given.decode().split('\n')
	assert lines.pop() == '' and len(lines) == count
	assert all(line == '%s%d\t%d' % (expected, i, i) for i, line in enumerate(lines))


def test_files_of_strangers():
	"""What is no such file, or is damaged, is an answer that says why, or the program's end; never rows that were not counted."""
	columns = [('n', 'integer'), ('t', 'text')]
	_, written = run(header(columns), HEAD, *(row(struct.pack('>i', i), b'word %d' % (i % 7)) for i in range(5000)), TAIL)
	damaged, rng = [b'', b'PAR1', b'PAR1' * 3, written[:-4], written[4:], written[:100] + written[-100:], written + written], random.Random(3)
	for _ in range(25):
		one = bytearray(written)
		for _ in range(rng.randint(1, 8)):
			one[rng.randrange(len(one) - 300 if rng.random() < 0.3 else 0, len(one))] = rng.randrange(256)
		damaged.append(bytes(one))
	for one in damaged:
		answer, given = read(columns, one)
		assert answer is None or 'error' in answer or answer['rows'] == given.count(b'\n'), answer
	answer, _ = read([('n', 'integer'), ('nothing', 'text')], written)
	assert 'nothing' in answer['error']
	answer, _ = read([('n"; COPY rows TO \'/tmp/x\'; --', 'text')], written)
	assert 'error' in answer
	assert 'columns' in read([], written)[0]['error']
