#!/usr/bin/python3
"""Runs unit tests of the store on a PostgreSQL, which is started for them, each on an empty database.

  on_postgres.py PROGRAM..."""
import os, pathlib, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'api'))
import database

server = database.Database()
faults = 0
for program in sys.argv[1:]:
	done = subprocess.run([program], env={**os.environ, 'TEST_STORE_URL': server.fresh()})
	print('%s on PostgreSQL: %s' % (os.path.basename(program), 'ok' if done.returncode == 0 else 'exit %d' % done.returncode))
	faults += done.returncode != 0
server.close()
sys.exit(faults != 0)
