"""Where databases listen is for the operator to say: an address that other hosts reach, and the ports there."""
import re, subprocess

import pytest

import client
from client import ok
from databases import shape, until
from place import psql

PASSWORD = 'correct horse 4 battery'
FIRST, LAST = 23400, 23403


@pytest.fixture(scope='module')
def place(start_place):
	return start_place('--db-address', '127.0.0.1', '--db-ports', '%d-%d' % (FIRST, LAST), clock='virtual')


def path(place, what):
	return '/groups/%s/%s' % (place.server.group, what)


def test_nodes_have_a_port_each_of_the_range(place):
	s = place.server
	ok(s.post(path(place, 'clusters'), json={'name': 'three', **shape(3)}), 201)
	ok(s.post(path(place, 'databaseUsers'), json={'username': 'app', 'password': PASSWORD, 'databaseName': 'admin', 'groupId': s.group,
						      'roles': [{'roleName': 'readWriteAnyDatabase', 'databaseName': 'admin'}]}), 201)
	ok(s.post(path(place, 'accessList'), json=[{'ipAddress': '127.0.0.1'}]))
	string = place.wait(path(place, 'clusters/three'))['connectionStrings']['standard']
	ports = [int(p) for p in re.findall(r':(\d+)[,/]', string)]
	assert len(set(ports)) == 3 and all(FIRST <= p <= LAST for p in ports), string
	assert 'hostaddr=127.0.0.1,127.0.0.1,127.0.0.1&' in string
	assert psql(string, 'select pg_is_in_recovery()', 'app', PASSWORD) == (True, 'f')
	assert {p['port'] for p in ok(s.get(path(place, 'processes')))['results']} == set(ports)


def test_no_port_left_is_told(place):
	s = place.server
	ok(s.post(path(place, 'clusters'), json={'name': 'more', **shape(3)}), 201)

	def failed():
		place.pass_time()
		told = s.get(path(place, 'clusters/more/status')).headers.get('X-Steward-Progress', '')
		return told if told.startswith('failed') else None
	told = until(failed, 90, 'the failure')
	assert 'no port from %d to %d is free' % (FIRST, LAST) in told
	assert ok(s.delete(path(place, 'clusters/three')), 202) is None
	place.wait(path(place, 'clusters/three'), None)
	ok(s.patch(path(place, 'clusters/more'), json={'tags': [{'key': 'a', 'value': 'b'}], 'backupEnabled': False}))
	place.wait(path(place, 'clusters/more'), seconds=120)


@pytest.mark.parametrize('options, said', [
	(['--db-address', 'here'], '--db-address'), (['--db-address', '0.0.0.0'], '--db-address'), (['--db-address', '10.0.0.0/8'], '--db-address'),
	(['--db-ports', '5'], '--db-ports'), (['--db-ports', '9-99999'], '--db-ports'), (['--db-ports', '3000-2000'], '--db-ports'),
	(['--db-address', '192.0.2.1'], 'this host has no such address')])
def test_what_cannot_be_is_refused_at_the_start(tmp_path, options, said):
	done = subprocess.run([client.binary(), 'serve', '--engine', 'postgres', '--data', tmp_path / 'd', '--listen', '127.0.0.1:0', *options],
			      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, env=client.environment())
	assert done.returncode in (1, 2) and said in done.stdout, done.stdout
