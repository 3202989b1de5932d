#!/usr/bin/python3
"""Runs tests of the repository with their objects in a bucket: on_s3.py TEST_UNIT NAME... The first also runs on azurite, where that is
installed."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import azurite, s3_server  # noqa: E402


def run(name, server, **env):
	# Leaks are looked for where these run on a directory, and in test_objects_s3: on arm64 the search takes four seconds.
	asan = ':'.join(filter(None, [os.environ.get('ASAN_OPTIONS'), 'detect_leaks=0']))
	try:
		done = subprocess.run([*os.environ.get('STEWARD_EMULATOR', '').split(), sys.argv[1], name], timeout=250, env={'ROUNDS': '15', **os.environ, 'ASAN_OPTIONS': asan, **env})
	finally:
		server.stop()
	if done.returncode:
		sys.exit('%s failed on %s' % (name, ' and '.join(env)))


def main():
	for name in sys.argv[2:]:
		server = s3_server.Running()
		run(name, server, STEWARD_TEST_S3=server.endpoint)
	server = s3_server.Running(program=azurite.__file__)
	if server.endpoint.endswith(':none'):
		server.stop()
		return
	run(sys.argv[2], server, STEWARD_TEST_AZURE=server.endpoint, STEWARD_TEST_AZURE_KEY=azurite.KEY, ROUNDS='5')


main()
