"""Acceptance on real databases: one service with the PostgreSQL engine for each module, on the real clock, with a short
data directory of its own. Skipped only where PostgreSQL is not installed. Each service must leave nothing behind."""
import os, sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ('fault', 'api'):
	sys.path.insert(0, os.path.join(HERE, '..', folder))
import client, databases, place


def pytest_collection_modifyitems(items):
	if not databases.installed():
		for item in items:
			item.add_marker(pytest.mark.skip(reason='PostgreSQL is not installed'))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
	report = (yield).get_result()
	if report.failed:
		for s in client.shown[-2:]:
			if s.stderr_file.exists():
				report.sections.append(('stderr of steward %d' % s.pid, '\n'.join(s.stderr[-4000:].splitlines()[-12:])))


@pytest.fixture(scope='session', autouse=True)
def machine():
	"""What belongs to the machine is afterwards as it was."""
	before = place.machine()
	yield
	changed = ['%s: %s' % (what, ', '.join(sorted(now - before[what]))) for what, now in place.machine().items()
		   if now - before[what]]
	assert not changed, 'left behind: ' + '; '.join(changed)


@pytest.fixture(scope='module')
def start_place():
	"""start_place(*options, clock=None): a service with real databases, taken down and looked after at the end."""
	made = []

	def start(*args, **kw):
		made.append(place.Place(*args, **kw))
		made[-1].start()
		return made[-1]

	yield start
	faults = []
	for p in reversed(made):
		try:
			p.end()
		except AssertionError as e:
			faults.append(str(e))
	assert client.stopping or not faults, '\n'.join(faults)
