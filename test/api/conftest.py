"""Fixtures: one server for the session, and a factory for tests that need one of their own."""
import gc, os, sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import client, derive, directory, versions


def pytest_sessionstart(session):
	"""Recordings hold this run only: at the end they are held against the schemas."""
	if session.config.option.collectonly:
		return
	client.BUILD.mkdir(parents=True, exist_ok=True)
	for file in (client.EXCHANGES, client.OLDER, client.SWEEP):
		file.write_text('')


# Another store or another place for the limits changes how these behave: all of their tests run there.
STORE_DIFFERS = {'test_' + name for name in (
	'concurrency', 'conformance', 'event_log', 'events', 'events_complete', 'fairness', 'idempotency', 'kept_answers', 'large', 'limits', 'lost_files',
	'operating', 'orgs', 'project_moves', 'projects', 'revocation')}
# These know of neither.
STORE_UNKNOWN = {'test_' + name for name in ('cli', 'cli_backups', 'cli_completion', 'cli_derived', 'cli_follow', 'cli_hostile',
		'cli_login', 'cli_output', 'control', 'edge', 'openapi', 'proxies', 'tls_tickets')}
# One pass of what needs servers of its own; test_conformance says which operation has none there.
STORE_PASS = {'test_%s.test_%s' % (module, test) for module, tests in {
	'alert_figures': 'values_open_and_close',
	'alerts': 'opened_and_closed_by_events people_are_told_by_mail',
	'backup_copies': 'points_in_time_from_copies',
	'backup_drills': 'asked_for',
	'billing_year': 'a_year',
	'clusters': 'many_at_once',
	'console': 'overview_rows overview_follows overview_shows_each_their_own_writes',
	'credentials': 'requests_reuses_the_nonce revoked_token revocation_survives_a_restart token_expires secret_expires '
		'a_name_is_guessed_slowly_and_its_owner_not_disturbed',
	'database_users': 'a_change_does_not_wait_for_the_next_attempt a_crash_loses_nothing many_at_once temporary_users_vanish',
	'encryption_at_rest': 'before_anything_is_set aws aws_by_role azure google lies private_endpoints rotation killed_while_rotating',
	'flex': 'on_real_databases',
	'gates': 'digest token token_revoked access_list',
	'gifts': 'every_role_gives_every_role a_refused_gift_leaves_nothing',
	'invitations': 'mail',
	'invoices': 'the_invoice the_list pending csv search cost_explorer',
	'live_events': 'each_sees_its_own_in_order_as_the_lists_show_it events_of_other_processes_arrive '
		'nothing_is_lost_or_doubled_across_reconnects_and_crashes rights_that_are_taken_away_end_it',
	'log_export': 'services by_a_role',
	'maintenance': 'real_nodes_get_the_new_program',
	'metering': 'to_the_second from_when_it_was_done snapshots_and_moves',
	'outbox': 'order_and_record given_up_at_last exactly_once_across_the_end_of_the_service a_clock_that_is_put_back '
		'records_are_bounded a_flood_is_bounded mail_survives_the_end_of_the_service',
	'processes': 'real_processes',
	'provider_access': 'aws azure google what_is_missing export_bucket_by_role export_bucket_of_another_project limit',
	'sign_in': 'first_link sessions totp forgotten second_factor_demanded revoked_on_every_node',
	'sign_in_federated': 'passkeys oidc oidc_roles_follow_groups saml',
	'token': 'wraps_and_rotates killed'}.items() for test in tests.split()}


gc.set_threshold(100_000, 50)  # thousands of tests that live as long as the run are looked through each time


def pytest_configure(config):
	config.addinivalue_line('markers', 'last: looks at what all others have left, and so runs after them')


def pytest_collection_modifyitems(config, items):
	"""Those marked `last` go to the end. With STEWARD_TEST_ONCE=1, of the files that know of no store one case of each test that
	takes the session's servers or is named above."""
	items.sort(key=lambda item: item.get_closest_marker('last') is not None)
	if not os.environ.get('STEWARD_TEST_ONCE'):
		return
	kept, left, seen, missing = [], [], set(), STORE_PASS - {test_of(item) for item in items}
	if missing and len(items) > 1000:
		raise pytest.UsageError('STORE_PASS in conftest.py names tests that are not there: %s' % ', '.join(sorted(missing)))
	for item in items:
		module, test = item.module.__name__, test_of(item)
		once = test in STORE_PASS or {'server', 'older_server'} & set(item.fixturenames)
		(kept if module in STORE_DIFFERS or (module not in STORE_UNKNOWN and test not in seen and once) else left).append(item)
		seen.add(test)
	items[:] = kept
	config.hook.pytest_deselected(items=left)


def test_of(item):
	return '%s.%s' % (item.module.__name__, getattr(item, 'originalname', item.name))


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
	s = client.Server('--log-format', 'json', *directory.ALLOWED, record=client.EXCHANGES, leaks=True, exports=True)
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
	s = client.Server(*directory.ALLOWED)
	yield s
	end(s)
