"""A disk that gives back other bytes than were written: it is found without being asked, told, and never given out."""
import contextlib, pathlib, re, sqlite3

import pytest

import client, database
from client import metric, ok, refused, until

PAGE = 4096


@pytest.fixture
def start():
	made = []

	def run(*args, **kw):
		made.append(client.Server('--store-check-seconds', 1, *args, clock='real', control=False, **kw))
		return made[-1]
	yield run
	for s in made:
		s.kill()


@pytest.fixture(scope='module')
def used():
	"""A stopped service's directory, all of it in the file."""
	s = client.Server('--store-check-seconds', 0, clock='real', control=False)
	ids = [ok(s.post('/groups', json={'name': client.unique('whole-and-well'), 'orgId': s.org}))['id'] for _ in range(60)]
	s.stop()
	with contextlib.closing(sqlite3.connect(s.data_dir / 'steward.db')) as db:
		db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
	return s.data_dir, ids


@pytest.fixture
def data(used, tmp_path):
	client.clone(used[0], tmp_path / 'data')
	return tmp_path / 'data', used[1]


def pages_of(file, name):
	"""Leaf pages of a table or an index, without the first ones, which the service needs to start."""
	with contextlib.closing(sqlite3.connect(file)) as db:
		root = db.execute('SELECT rootpage FROM sqlite_schema WHERE name = ?', (name,)).fetchone()[0]
	raw, found, waiting = file.read_bytes(), [], [root]
	while waiting:
		number = waiting.pop()
		page = raw[(number - 1) * PAGE:number * PAGE]
		kind, cells = page[0], int.from_bytes(page[3:5], 'big')
		if kind in (2, 5):
			for i in range(cells):
				at = int.from_bytes(page[12 + 2 * i:14 + 2 * i], 'big')
				waiting.append(int.from_bytes(page[at:at + 4], 'big'))
			waiting.append(int.from_bytes(page[8:12], 'big'))
		else:
			found.append(number)
	return sorted(found)


def told(s):
	"""By everything that tells."""
	def ready():
		r = s.anonymous.get('/readyz')
		return r.status_code == 503 and r.json()['errorCode'] == 'STORE_DAMAGED'
	until(ready, what='the damage in /readyz')
	assert metric(s, 'steward_store_damage') > 0 and 'store: damaged: ' in s.stderr
	until(lambda: ok(s.get('/orgs/%s/events?eventType=STORE_DAMAGED' % s.org))['results'], what='the event')


def test_a_whole_store_is_found_whole(start, data):
	s = start(data_dir=data[0])
	for _ in range(3):
		ok(s.post('/groups', json={'name': client.unique(), 'orgId': s.org}))
	passes = metric(s, 'steward_store_checks_total')
	until(lambda: metric(s, 'steward_store_checks_total') >= passes + 2, what='a whole pass')
	ok(s.anonymous.get('/readyz'))
	assert metric(s, 'steward_store_damage') == 0 and 'damaged' not in s.stderr


def test_a_letter_of_a_document(start, data):
	"""The page's structure is whole, and the text is JSON: only the document's sum tells."""
	file, ids = data[0] / 'steward.db', data[1]
	raw = file.read_bytes()
	hits = [m.start() for m in re.finditer(rb'"name":"whole-and-well', raw)]
	assert hits
	at = hits[len(hits) // 2] + len('"name":"')
	with open(file, 'r+b') as f:
		f.seek(at)
		f.write(b'W')
	s = start(data_dir=data[0])
	told(s)
	answers = [s.get('/groups/' + i) for i in ids]
	bad = [r for r in answers if r.status_code != 200]
	assert len(bad) == 1 and refused(bad[0], 500, 'STORE_DAMAGED')
	assert not any(r.json()['name'].startswith('Whole') for r in answers if r.status_code == 200)
	refused(s.get('/groups?itemsPerPage=500'), 500, 'STORE_DAMAGED')
	assert 'was changed after it was written' in client.cli('check', '--data', data[0], check=False).stdout


@pytest.mark.parametrize('name', ['doc', 'doc_name', 'event', 'event_org_pos'])
def test_a_page(start, data, name):
	"""Bytes of a page are lost while nobody looks: a table's, whose rows are then refused, and an index'."""
	file = data[0] / 'steward.db'
	raw = file.read_bytes()
	# Without what the caller's own token needs.
	number = [n for n in pages_of(file, name) if not re.search(b'grant|service_account|sa_secret|org_settings', raw[(n - 1) * PAGE:n * PAGE])][-1]
	with open(file, 'r+b') as f:
		f.seek((number - 1) * PAGE)
		f.write(bytes([0xa5]) * 512)
	s = start(data_dir=data[0])
	until(lambda: s.anonymous.get('/readyz').status_code == 503, what='the damage in /readyz')
	refused(s.anonymous.get('/readyz'), 503, 'STORE_DAMAGED')
	assert metric(s, 'steward_store_damage') > 0 and 'store: damaged: ' in s.stderr
	for i in data[1]:
		r = s.get('/groups/' + i)
		assert (r.status_code == 200 and r.json()['id'] == i and r.json()['name'].startswith('whole-and-well')) or \
			r.status_code >= 500, r.text


def test_a_live_store(start, data):
	"""While it serves; and it is over when what is damaged has been replaced."""
	s = start(data_dir=data[0])
	ok(s.anonymous.get('/readyz'))
	client.execute(data[0], "UPDATE doc SET body = replace(body, 'whole-and-well', 'Whole-and-well') WHERE id = '%s'" % data[1][7])
	told(s)
	refused(s.get('/groups/' + data[1][7]), 500, 'STORE_DAMAGED')
	client.execute(data[0], "UPDATE doc SET body = replace(body, 'Whole-and-well', 'whole-and-well') WHERE id = '%s'" % data[1][7])
	until(lambda: s.anonymous.get('/readyz').status_code == 200, what='a pass that finds nothing')
	ok(s.get('/groups/' + data[1][7]))


def test_a_page_of_a_shared_store(start):
	"""PostgreSQL's own checksums find it; the service reads everything now and then, so that they are looked at."""
	db = database.Database()
	try:
		db.stop()
		db.run('pg_checksums', '--enable', '-D', db.data)
		db.start()
		s = start('--store', db.url(), '--store-check-seconds', 0)
		ids = [ok(s.post('/groups', json={'name': client.unique(), 'orgId': s.org}))['id'] for _ in range(60)]
		s.stop()
		db.sql('CHECKPOINT')
		path = db.sql("SELECT pg_relation_filepath('steward.event')").strip().splitlines()[-1].strip()
		db.stop()
		with open(db.data / path, 'r+b') as f:
			f.seek(0, 2)
			f.seek(f.tell() - 8192 + 5000)
			f.write(bytes([0xa5]) * 64)
		db.start()
		t = start('--store', db.url(), data_dir=s.data_dir)
		until(lambda: ok(t.anonymous.get('/readyz'))['store'].startswith('damaged'), what='the damage in /readyz')
		ok(t.get('/groups/' + ids[0]))
		t.kill()
	finally:
		db.close()
