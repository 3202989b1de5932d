"""Out of file descriptors: a service that cannot start says so and ends, and what cannot be looked at is not lost."""
import resource, subprocess

import pytest

import client, databases
from client import ok, until
from databases import allow, shape


def start(data, engine, limit):
	"""The exit code, and what was said; a service that gets ready is ended."""
	p = subprocess.Popen([client.binary(), 'serve', '--data', data, '--listen', '127.0.0.1:0', '--engine', engine],
			     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=client.environment(),
			     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
	for line in p.stdout:
		if 'steward: ready' in line:
			p.terminate()
	said = p.stderr.read()
	return p.wait(), said


def test_a_start_with_too_few(tmp_path):
	"""Wherever the last descriptor is taken: there was a crash in 4 of 15 starts."""
	for limit in (*range(10, 52, 3), 200):
		code, said = start(tmp_path / 'd', 'simulated', limit)
		assert code in (0, 1) and not client.SANITIZER.search(said), (limit, code, said[-3000:])
		assert code == 0 or 'steward: ' in said, (limit, said)
	assert code == 0, said


@pytest.mark.skipif(not databases.installed(), reason='PostgreSQL is not installed')
def test_what_cannot_be_opened_is_not_lost(site):
	s = site()
	server = s.start()
	allow(server)
	c = s.cluster('whole', **shape(nodes=1)).settled()
	ends = c.book()['nodes'][0]['ends']
	# It runs out of them while it works. The connection that is open stays.
	soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
	resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (8, hard))
	try:
		c.change(replicationSpecs=shape(nodes=1, size='M20')['replicationSpecs'])
		until(lambda: server.stderr.count('it is tried again') > 1, 60)
		assert c.state() == 'UPDATING'
	finally:
		resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soft, hard))
	c.settled()
	types = {e['eventTypeName'] for e in ok(server.get('/groups/%s/events?itemsPerPage=500' % server.group))['results']}
	assert 'VOLUME_IMPAIRED' not in types and 'HOST_DOWN' not in types, types
	# Too few for its nodes from the start: refused, before anything is looked at.
	server.stop()
	code, said = start(s.data, 'postgres', 66)
	assert code == 1 and '1 clusters with 1 nodes need 67 open files, and the limit is 66' in said, said
	s.start()
	assert c.settled().book()['nodes'][0]['ends'] == ends
	c.delete()
	c.deleted()
