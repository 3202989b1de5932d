"""Holds everything that all other tests exchanged against the API's data."""
import pytest

import client, recordings
from recordings import api, exchanges

pytestmark = pytest.mark.last


@pytest.fixture(scope='module')
def recorded():
	found = exchanges()
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


@pytest.mark.skipif(not recordings.reference().exists(), reason='no reference checker beside the checkout')
def test_reference_rules(recorded):
	bad, good = recordings.reference_check(recorded)
	assert not bad, bad
	missing = {op['operationId'] for op in api.built()} - good
	assert not missing, 'no valid success: %s' % sorted(missing)
