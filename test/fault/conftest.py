"""Crash and disturbance tests start the same binary with the same helpers as the API tests; a release build by choice,
because what is tried here is timing."""
import os, sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'api'))
import client, databases

if 'STEWARD_BIN' not in os.environ:
	for found in (client.BUILD / 'release' / 'steward', client.BUILD / 'steward',
			client.BUILD / 'asan' / 'steward'):
		if os.access(found, os.X_OK):
			os.environ['STEWARD_BIN'] = str(found)
			break


@pytest.fixture
def start_server():
	made = []

	def start(*args, **kw):
		made.append(client.Server(*args, **kw))
		return made[-1]

	yield start
	for s in made:
		try:
			assert not client.SANITIZER.search(s.stderr), s.stderr[-6000:]
		finally:
			s.kill()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
	report = (yield).get_result()
	if report.when == 'call':
		item.failed = report.failed


@pytest.fixture
def site(request):
	"""site(*options): a service with real databases, not yet started. At the end nothing of it may stay behind: processes,
	directories, ports. A test that failed half way leaves much, and its own report is the one to read."""
	made, faults = [], []

	def make(*args, **kw):
		made.append(databases.Site(*args, **kw))
		return made[-1]

	yield make
	for s in made:
		try:
			s.end()
		except AssertionError as e:
			faults.append(str(e))
	assert client.stopping or getattr(request.node, 'failed', False) or not faults, '\n'.join(faults)
