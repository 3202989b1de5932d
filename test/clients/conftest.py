"""Clients that were written for the hosted original run here as npm has them, against a server of their own."""
import os, sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'api'))
import client, programs


@pytest.fixture(scope='session')
def clients_server():
	"""As docs/clients.md says that it be started. Clusters are there at once; what was asked is kept for the tests to look at."""
	s = client.Server('--simulated-seconds', '0', '--db-scheme', 'mongodb', '--db-version', '8.0=17', record=programs.RECORDED)
	yield s
	s.stop()
