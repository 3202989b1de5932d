"""Holds everything that all other tests exchanged against the API's data."""
import os, runpy

import pytest

import client, dialect, recordings
from recordings import api, each_form, exchanges

pytestmark = pytest.mark.last


@pytest.fixture(scope='module')
def recorded():
	found = [x for x in exchanges() if x.get('translated') or not dialect.spoken]  # in a dialect, what was said in it
	if len(found) < 200:
		pytest.skip('the family tests have not run before this')
	return found


def test_every_exchange_fits(recorded):
	bad = recordings.faults(recorded + exchanges(client.OLDER))
	assert not bad, bad


def test_every_built_operation_was_used(recorded):
	"""At least one success and one refusal of each."""
	good, refused = recordings.used(recorded)
	built = {op['operationId'] for op in api.built()}
	assert built, 'no family is built'
	assert not built - good, 'no success: %s' % sorted(built - good)
	assert not built - refused, 'no refusal: %s' % sorted(built - refused)


@pytest.mark.skipif(bool(os.environ.get('STEWARD_TEST_ONCE')), reason='only a part of the tests has run')
def test_every_field_is_returned_or_has_its_reason(recorded):
	names = runpy.run_path(str(client.ROOT / 'script' / 'never-returned'))
	faults = names['check'](names['Rows'](), [*each_form(exchanges()), *exchanges(client.OLDER)], names['Reasons']())
	assert not faults, '\n'.join(faults)


def test_every_version_was_used(recorded):
	"""At least one success and one refusal of each dated version, by calls that name it."""
	good, refused = recordings.used_versions(recorded + exchanges(client.OLDER))
	every = {(op['operationId'], date) for op in api.built() for date in op['versions']}
	assert not every - good, 'no success: %s' % sorted(every - good)
	assert not every - refused, 'no refusal: %s' % sorted(every - refused)


@pytest.mark.skipif(not recordings.reference().exists(), reason='no reference checker beside the checkout')
def test_reference_rules(recorded):
	bad, good = recordings.reference_check(recorded + exchanges(client.OLDER))
	assert not bad, bad
	missing = {op['operationId'] for op in api.built()} - good
	assert not missing, 'no valid success: %s' % sorted(missing)
