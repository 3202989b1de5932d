"""A core dump of the service has none of its secrets, unless its operator asks for whole ones."""
import os, pathlib, resource, signal

import pytest

PATTERN = pathlib.Path('/proc/sys/kernel/core_pattern').read_text().strip()


def dumped(server, folder):
	"""Ends it, and gives what the kernel has written."""
	resource.prlimit(server.pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
	os.kill(server.pid, signal.SIGABRT)
	server.process.wait(60)
	server.ended = True
	files = [f for f in folder.iterdir() if f.name.startswith('core')]
	assert len(files) == 1, 'no core dump was written'
	return files[0].read_bytes()


@pytest.mark.skipif(PATTERN.startswith(('|', '/')), reason='core dumps of this machine go elsewhere')
@pytest.mark.parametrize('whole', [False, True])
def test_a_core_dump_has_no_secrets(start_server, tmp_path, whole):
	if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 and os.geteuid() != 0:
		pytest.skip('no core dumps may be written')
	server = start_server(*(['--core-dumps'] if whole else []), cwd=tmp_path)
	secret = (server.data_dir / 'secret.key').read_bytes()
	secret = bytes.fromhex(secret.decode().strip()) if len(secret) >= 64 else secret
	assert len(secret) == 32
	core = dumped(server, tmp_path)
	assert core[:4] == b'\x7fELF' and (secret in core) == whole
