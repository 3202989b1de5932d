#!/usr/bin/python3
"""Runs unit tests of the store on a PostgreSQL, which is started for them, each on an empty database.

  on_postgres.py TEST_UNIT NAME..."""
import os, pathlib, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'api'))
import database

server = database.Database()
program, *names = sys.argv[1:]
done = subprocess.run([*os.environ.get('STEWARD_EMULATOR', '').split(), program, *('%s=%s' % (name, server.fresh()) for name in names)])
server.close()
sys.exit(done.returncode != 0)
