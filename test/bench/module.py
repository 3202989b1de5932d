"""What the libraries cost that every database server loads: pgbench on a server with all of them beside one without, by turns."""
import os, pathlib, re, shutil, statistics, subprocess

from engine import AS_USER, programs, psql, site
from servers import Trouble, binary
from tools import Progress, ratio

WANTED = 0.90
LIBRARIES = ('pg_stat_statements', 'pg_qualstats', 'auto_explain')
SETTINGS = ('compute_query_id=on', 'pg_stat_statements.max=2000', 'pg_stat_statements.track_planning=off', 'pg_qualstats.max=500',
	    'pg_qualstats.resolve_oids=off', 'pg_qualstats.track_pg_catalog=off', 'auto_explain.log_min_duration=-1')
LOADS = {'select': ['-S'], 'tpcb': []}
CLIENTS = 4


class Server:
	"""Alone in a directory; `loads`: with the libraries."""

	def __init__(self, folder, name, loads):
		self.bin, self.home = programs(), folder / name
		self.drop = ['runuser', '-u', AS_USER, '--'] if os.geteuid() == 0 else []
		self.home.mkdir()
		options = ["listen_addresses=''", 'unix_socket_directories=%s' % self.home, 'shared_buffers=64MB', 'max_wal_size=1GB']
		if loads:
			options += ["shared_preload_libraries='%s'" % ','.join(self.libraries()), *SETTINGS]
		if self.drop:
			for path in (self.home, *self.home.iterdir()):
				shutil.chown(path, AS_USER, AS_USER)
		self.run('initdb', '-D', self.home / 'd', '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '-N')
		self.run('pg_ctl', '-D', self.home / 'd', '-w', '-l', self.home / 'log', '-o', ' '.join('-c ' + o for o in options), 'start')
		# As a user: what superusers do is not counted.
		self.ask('create role app login')
		self.ask('grant create on schema public to app')
		self.bench('-i', '-q', '-s', '10')

	def libraries(self):
		"""Those that there are; the module is what this measures."""
		built = pathlib.Path(binary()).resolve().parent / 'src/module/steward.so'
		if not built.exists():
			raise Trouble('%s is missing: it is built with postgresql-server-dev-15 and libpg-query-dev' % built)
		shutil.copy(built, self.home / 'steward.so')
		lib = self.bin.parent / 'lib'
		return [*(n for n in LIBRARIES if (lib / (n + '.so')).exists()), '"%s"' % (self.home / 'steward.so')]

	def run(self, program, *words):
		done = subprocess.run([*self.drop, str(self.bin / program), *map(str, words)], stdin=subprocess.DEVNULL,
				      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120, cwd='/')
		if done.returncode:
			log = self.home / 'log'
			raise Trouble('%s: %s %s' % (program, done.stderr[-1000:], log.read_text()[-1000:] if log.exists() else ''))

	def ask(self, statement):
		said = psql('host=%s dbname=postgres user=postgres' % self.home, statement)
		if said is None:
			raise Trouble('psql: %s failed' % statement)
		return said

	def bench(self, *words):
		done = subprocess.run([str(self.bin / 'pgbench'), *words, '-h', str(self.home), '-U', 'app', 'postgres'],
				      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
		if done.returncode:
			raise Trouble('pgbench: ' + done.stdout[-1000:])
		return done.stdout

	def rate(self, seconds, words):
		said = self.bench('-n', '-c', str(CLIENTS), '-j', '2', '-M', 'prepared', '-T', str(seconds), *words)
		return float(re.search(r'tps = ([0-9.]+)', said).group(1))

	def stop(self):
		if (self.home / 'd' / 'postmaster.pid').exists():
			self.run('pg_ctl', '-D', self.home / 'd', '-w', '-m', 'fast', 'stop')


def figure_module(bench, pair):
	rounds, seconds = (9, 2) if bench.quick else (15, 5)
	result, lines, made = {'clients': CLIENTS, 'wanted': {'ratioAtLeast': WANTED}}, [], []
	with site() as folder:
		try:
			for name in ('with', 'without'):
				made.append(Server(folder, name, name == 'with'))
			for load, words in LOADS.items():
				bar, found = Progress('pgbench ' + load), {'with': [], 'without': []}
				for i in range(rounds):
					for name, server in (zip(found, made) if i % 2 == 0 else reversed(list(zip(found, made)))):
						found[name].append(server.rate(seconds, words))
					bar.show((i + 1) / rounds)
				bar.end()
				middle = {name: round(statistics.median(rates)) for name, rates in found.items()}
				# Of pairs that ran one after the other: what else the machine does meanwhile hits both.
				pairs = [ratio(a, b) for a, b in zip(found['with'], found['without'])]
				result[load] = {'rates': found, 'medians': middle, 'ratio': statistics.median(pairs)}
				lines.append(('pgbench%s with all libraries loaded' % ''.join(' ' + w for w in words or ['(TPC-B)']),
					      '%.2f of the rate without (%d and %d /s)' % (result[load]['ratio'], middle['with'], middle['without']),
					      'at least %.2f' % WANTED))
			result['libraries'] = made[0].ask("select current_setting('shared_preload_libraries')")
		finally:
			for server in made:
				server.stop()
	return result, lines
