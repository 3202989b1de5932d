"""How fast Steward is, beside nginx. Prints a table and writes build/bench.json (with --nodes build/bench-nodes.json).

  script/bench [--quick] [--nodes] [--only NAME[,NAME...]] [--against REV]

  --quick       one round of 2 s instead of three of 5 s, and 100,000 projects instead of a million
  --only NAME   these figures only: project, h2, cluster, digest, dialect, list, handshakes, memory, start, creates, pages,
                identity, clusters, many (real databases: needs PostgreSQL), disturbance (2,000 hostile connections);
                and, only when asked for, backups: snapshots, restores and the log of real databases beside
                PostgreSQL's own programs and pgBackRest (about six minutes and 6 GB below /var/tmp; its parts are
                backups-snapshots, backups-clone, backups-log and backups-shards); and module: what the libraries cost
                that servers load, by pgbench beside a server without them; and sampling: the processor time that samples
                take of sixty real and two thousand simulated clusters, and what series cost (about ten minutes);
                and search: words, the build of a search index, writes and queries, each beside PostgreSQL without it
                (STEWARD_SEARCH_ROWS=1000000: over so many rows instead of 100,000), and vectors, what indexes of these find, and how soon;
                and meter: what metering ten thousand nodes costs; and billing: cost queries over a year, and an
                invoice of a million lines; and relay: pgbench through a private endpoint beside a direct connection; and live: events to 1,000
                clients that listen; and instructions: what calls cost, counted by callgrind instead of timed, beside the commit of --against; and console: its pages with 10,000 projects and 2,000 clusters; and
                fairness: one tenant plays every rate to its limit, beside another's reads and writes, on both stores
                (about seven minutes; with --quick only what attacks have done)
  --nodes       what a store in PostgreSQL costs, beside pgbench, and a million projects with ten million documents on
                both stores: store-get, store-creates, store-forward, store-pages (needs PostgreSQL, 20 GB below
                /var/tmp and half an hour; with --quick a tenth of it)
  --against REV the same program of another commit, built by that commit's own scripts below build/against, beside this one in one run:
                reads, lists and digest calls; nothing else unless --only names it
  --help        this text

Our server and nginx (static files of the same size, the same certificate, as many processes as we have threads) run
on loopback and take turns, so that a slow minute of the machine hits both. STEWARD_BIN names a binary to measure
instead of build/release/steward. Nothing here passes or fails: the table puts what was measured beside what is wanted.
The exit code is 1 only when something could not be measured or was answered wrongly."""
import json, os, platform, resource, signal, subprocess, sys, time

import against, backups, billing, fairness, instructions, live, metering, module, nodes, relay, sampling, search, servers, tools, vectors
from figures import FIGURES as USUAL, Pair

FIGURES = {**USUAL, **nodes.FIGURES, **backups.FIGURES, 'module': module.figure_module,
	   'relay': relay.figure_relay, 'sampling': sampling.figure_sampling, 'words': search.figure_search, 'vectors': vectors.figure_vectors, 'meter': metering.figure_meter, 'billing': billing.figure_billing, 'against': against.figure_against, 'instructions': instructions.figure_instructions, **live.FIGURES, **fairness.FIGURES}
GROUPS = {'backups': list(backups.FIGURES), 'search': ['words', 'vectors']}
MINUTES_MAX = {False: 15, True: 60}  # with --nodes
minutes_max = MINUTES_MAX[False]


def options_read(words):
	global minutes_max
	quick, only, other = False, list(USUAL), None
	words = list(words)
	while words:
		word = words.pop(0)
		if word in ('--help', '-h'):
			print(__doc__)
			sys.exit(0)
		elif word == '--quick':
			quick = True
		elif word == '--nodes':
			only, minutes_max = list(nodes.FIGURES), MINUTES_MAX[True]
		elif word == '--only' and words:
			only = words.pop(0).split(',')
		elif word.startswith('--only='):
			only = word[7:].split(',')
		elif word == '--against' and words:
			other = words.pop(0)
			only = ['against', *([] if only == list(USUAL) else only)]
		else:
			sys.exit('bench: %s: no such option; --help tells' % word)
	only = [one for name in only for one in GROUPS.get(name, [name])]
	if 'vectors' in only and not quick:
		minutes_max = max(minutes_max, 45)
	for name in only:
		if name not in FIGURES:
			sys.exit('bench: %s: no such figure; there are %s' % (name, ', '.join((*FIGURES, *GROUPS))))
	if 'against' in only and not other:
		sys.exit('bench: against: name a commit: script/bench --against REV')
	return quick, only, other


def first_line(*command):
	try:
		done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
		return done.stdout.strip().split('\n')[0]
	except OSError:
		return None


def machine():
	lines = open('/proc/cpuinfo').read().split('\n')
	model = [line.split(':', 1)[1].strip() for line in lines if line.startswith(('model name', 'CPU part'))]
	memory = int(next(line for line in open('/proc/meminfo') if line.startswith('MemTotal')).split()[1]) * 1024
	return {'cores': len(os.sched_getaffinity(0)), 'processor': model[0] if model else None,
		'architecture': platform.machine(), 'memoryBytes': memory, 'kernel': platform.release(),
		'loadBefore': os.getloadavg()[0],
		'versions': {'steward': first_line(servers.binary(), '--version'),
			     'nginx': first_line('/usr/sbin/nginx', '-v'), 'wrk': first_line('wrk', '-v'),
			     'h2load': first_line('h2load', '--version'),
			     'openssl': first_line('openssl', 'version')}}


def files_raise():
	"""As many open files as we may have: 1,000 connections have two ends here."""
	_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
	most = 65536 if most == resource.RLIM_INFINITY else min(most, 65536)
	resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
	return most


def table_print(rows):
	wide = [max(len(row[i]) for row in rows) for i in range(3)]
	for number, row in enumerate(rows):
		tools.say(' | '.join(cell.ljust(wide[i]) for i, cell in enumerate(row)).rstrip())
		if number == 0:
			tools.say('-|-'.join('-' * w for w in wide))


def busy(facts):
	if facts['loadBefore'] < 0.3 * facts['cores']:
		return ''
	return '; the machine was busy with something else (load %.1f)' % facts['loadBefore']


def stopped(number, frame):
	raise servers.Trouble('stopped' + (': over %d minutes' % minutes_max if number == signal.SIGALRM else ''))


def measure_all(bench, pair, only, report, rows):
	for name in only:
		tools.say('%s ...' % name)
		began = time.monotonic()
		try:
			result, lines = FIGURES[name](bench, pair)
		except (servers.Trouble, servers.requests.RequestException, subprocess.TimeoutExpired) as e:
			bench.fault('%s: %s' % (name, e))
			if str(e).startswith('stopped'):
				return
			continue
		result['took'] = round(time.monotonic() - began, 1)
		report['figures'][name] = result
		for line in lines:
			tools.say('  %s: %s' % line[:2])
		rows.extend(lines)


def main():
	quick, only, other = options_read(sys.argv[1:])
	for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
		signal.signal(number, stopped)
	signal.alarm(minutes_max * 60)
	workshop = None
	try:
		report = {'machine': machine(), 'quick': quick, 'rounds': 1 if quick else 3,
			  'seconds': 2 if quick else 5, 'figures': {}}
		rows = [('figure', 'measured', 'wanted')]
		files_max = files_raise()
		workshop = servers.Workshop()
		workshop.setup()
		bench = tools.Bench(workshop, report['rounds'], report['seconds'], quick)
		bench.against = other
		measure_all(bench, Pair(workshop, files_max), only, report, rows)
	except servers.Trouble as e:
		sys.exit('bench: %s' % e)
	finally:
		signal.alarm(0)
		servers.stop_all()
		if workshop:
			workshop.close()
	report['faults'] = bench.faults
	report['table'] = [dict(zip(rows[0], row)) for row in rows[1:]]
	out = servers.BUILD / ('bench-nodes.json' if minutes_max == MINUTES_MAX[True] else 'bench.json')
	out.write_text(json.dumps(report, indent=1) + '\n')
	facts = report['machine']
	tools.say('\n%d cores, %s, Linux %s; medians of %d rounds of %d s%s' % (
		facts['cores'], facts['architecture'], facts['kernel'], report['rounds'], report['seconds'],
		busy(facts)))
	table_print(rows)
	for fault in bench.faults:
		tools.say('! ' + fault)
	tools.say('\nall rounds: %s' % out)
	return 1 if bench.faults else 0


if __name__ == '__main__':
	sys.exit(main())
