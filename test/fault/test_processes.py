"""Every process that the service starts, looked at from outside: who it is, which rights it has, what it has open. Each has no more
than its work needs."""
import os, pathlib, socket, subprocess

import pytest

import client
from client import until
from processes import SETS, descriptors, status

NOBODY = 65534


def helper(name, *args, kind=socket.SOCK_STREAM):
	"""A helper program that has its standard input open and nothing to read: all that it gives up, it has given up by itself."""
	program = pathlib.Path(client.binary()).parent / name
	if not program.exists():
		pytest.skip('%s is not built' % name)
	ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
	extra = os.open('/etc/passwd', os.O_RDONLY)  # as a descriptor that the service would have forgotten to close
	os.set_inheritable(extra, True)
	process = subprocess.Popen([program, *args], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, close_fds=False)
	theirs.close()
	os.close(extra)
	return process, ours


@pytest.mark.parametrize('name,args,kind,keeps_user', [
	('steward-saml', [], socket.SOCK_STREAM, False),
	('steward-token', ['/nonexistent/module.so', 'token'], socket.SOCK_SEQPACKET, True),
])
def test_helper_programs(name, args, kind, keeps_user):
	process, ours = helper(name, *args, kind=kind)
	try:
		until(lambda: status(process.pid).get('Seccomp') == '2', what='%s gives up its rights before it reads anything' % name)
		told = status(process.pid)
		assert {told[k] for k in SETS} == {'0' * 16} and told['NoNewPrivs'] == '1' and process.poll() is None
		if os.geteuid() == 0:
			assert told['CapBnd'] == '0' * 16
			assert told['Uid'].split() == told['Gid'].split() == ['0' if keeps_user else str(NOBODY)] * 4
			assert not told['Groups'].strip() or keeps_user
			assert set(descriptors(process.pid)) == {0, 1, 2} and descriptors(process.pid)[2] == '/dev/null'
	finally:
		ours.close()
		process.kill()
		process.wait()
