#!/usr/bin/python3
"""Runs test programs of the repository with their objects in a bucket: on_s3.py PROGRAM..."""
import os
import pathlib
import subprocess
import sys

SERVER = pathlib.Path(__file__).resolve().parents[1] / 's3_server.py'


def main():
	for program in sys.argv[1:]:
		with subprocess.Popen(['/usr/bin/python3', SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
			endpoint = 'http://127.0.0.1:%d' % int(server.stdout.readline())
			# Leaks are looked for where these run on a directory, and in test_objects_s3: on arm64 the search takes four seconds.
			asan = ':'.join(filter(None, [os.environ.get('ASAN_OPTIONS'), 'detect_leaks=0']))
			done = subprocess.run([program], timeout=250,
				env={'ROUNDS': '15', **os.environ, 'ASAN_OPTIONS': asan, 'STEWARD_TEST_S3': endpoint})
			server.stdin.close()
		if done.returncode:
			return '%s failed on S3' % program
	return 0


sys.exit(main())
