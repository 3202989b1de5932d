"""Fixtures: one server for the session, and a factory for tests that need one of their own."""
import gc, os, sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import client, derive, versions


def pytest_sessionstart(session):
	"""Recordings hold this run only: at the end they are held against the schemas."""
	if session.config.option.collectonly:
		return
	client.BUILD.mkdir(parents=True, exist_ok=True)
	for file in (client.EXCHANGES, client.OLDER, client.SWEEP):
		file.write_text('')


# Another store or another place for the limits changes how these behave: all of their tests run there.
STORE_DIFFERS = {'test_' + name for name in (
	'concurrency', 'conformance', 'event_log', 'events', 'events_complete', 'fairness', 'idempotency', 'large', 'limits', 'lost_files',
	'operating', 'orgs', 'project_moves', 'projects', 'revocation')}
# And these know of neither.
STORE_UNKNOWN = {'test_' + name for name in ('cli', 'cli_backups', 'cli_completion', 'cli_derived', 'cli_follow', 'cli_hostile',
		'cli_login', 'cli_output', 'control', 'edge', 'openapi', 'proxies', 'tls_tickets')}


gc.set_threshold(100_000, 50)  # thousands of tests that live as long as the run are looked through each time


def pytest_configure(config):
	config.addinivalue_line('markers', 'last: looks at what all others have left, and so runs after them')


def pytest_collection_modifyitems(config, items):
	"""Those marked `last` go to the end. With STEWARD_TEST_ONCE=1, of all other files one case of each test."""
	items.sort(key=lambda item: item.get_closest_marker('last') is not None)
	if not os.environ.get('STEWARD_TEST_ONCE'):
		return
	kept, left, seen = [], [], set()
	for item in items:
		module, test = item.module.__name__, (item.module.__name__, getattr(item, 'originalname', item.name))
		once = module in STORE_DIFFERS or (module not in STORE_UNKNOWN and test not in seen)
		seen.add(test)
		(kept if once else left).append(item)
	items[:] = kept
	config.hook.pytest_deselected(items=left)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
	report = (yield).get_result()
	if report.failed:
		for s in client.shown[-3:]:
			if s.stderr_file.exists():
				report.sections.append(('stderr of steward %d (%s)' % (s.pid, s.tmp),
						'\n'.join(s.stderr[-4000:].splitlines()[-12:])))


def end(server):
	"""Ends a server by its own id; what it wrote must hold no sanitizer report, and its exit must be clean."""
	try:
		if not server.ended:
			died = server.process.poll()
			assert died is None, 'the server died by itself with %s\n%s' % (died, server.stderr[-6000:])
			server.stop()
		assert not client.SANITIZER.search(server.stderr), server.stderr[-6000:]
	finally:
		server.kill()
		if server in client.shown:
			client.shown.remove(server)


@pytest.fixture(scope='module')
def commands():
	c = client.Commands()
	yield c
	c.close()


@pytest.fixture(scope='session')
def server():
	s = client.Server('--log-format', 'json', record=client.EXCHANGES, leaks=True, exports=True)
	s.versions = versions.Named(derive.Api())
	yield s
	end(s)


@pytest.fixture(scope='session')
def older_server():
	"""For bodies that have another form in an older version: recorded apart, because the reference checker knows only the
	newest form."""
	s = client.Server(record=client.OLDER, exports=True)
	yield s
	end(s)


@pytest.fixture(autouse=True)
def full_buckets(request):
	"""Tests share the session's servers; none shall be refused because of another's calls."""
	for name in {'server', 'older_server'} & set(request.fixturenames):
		request.getfixturevalue(name).refill()


@pytest.fixture
def start_server():
	made = []

	def start(*args, **kw):
		made.append(client.Server(*args, **kw))
		return made[-1]

	yield start
	faults = []
	for s in reversed(made):
		try:
			end(s)
		except AssertionError as e:
			faults.append(str(e))
	assert not faults, '\n'.join(faults)


@pytest.fixture(scope='module')
def module_server():
	"""For a module whose exchanges are not recorded (overrides, faults, real time)."""
	s = client.Server()
	yield s
	end(s)
