"""What a call costs, counted instead of timed: instructions of the service's own code for each answer, by valgrind's callgrind. Times on a
machine that others use differ by a tenth from run to run; this number hardly does, so it shows the few hundredths that a commit has lost.
The kernel's work is not in it, and neither is what other threads do meanwhile. Beside the program of another commit with --against."""
import re, subprocess

import against
from figures import BASE, LIST, Pair, clusters_make, thousands, times
from servers import ACCEPT, Steward, Trouble
from tools import ratio, run

CALLS = 400


class Counted(Steward):
	"""The service in callgrind: about fifty times as slow."""

	def start(self, command, log, env=None):
		self.counts = self.output.parent / 'counts'
		super().start(['valgrind', '-q', '--tool=callgrind', '--separate-threads=yes', '--callgrind-out-file=%s' % self.counts, *command], log, env)

	def control(self, *words):
		subprocess.run(['callgrind_control', *words, str(self.process.pid)], check=True, stdout=subprocess.DEVNULL,
			       stderr=subprocess.DEVNULL, timeout=60)

	def counted(self, work):
		"""The instructions of the thread that has answered, which is the busiest of those that ran meanwhile."""
		there = set(self.counts.parent.glob('counts.*'))
		self.control('-z')
		work()
		self.control('-d')
		files = set(self.counts.parent.glob('counts.*')) - there
		found = [re.search(r'^(?:totals|summary): (\d+)', one.read_text(), re.M) for one in files]
		if not found or None in found:
			raise Trouble('callgrind wrote no counts; is valgrind installed?')
		return max(int(one.group(1)) for one in found)


class CountedOther(Counted, against.Other):
	pass


def calls(server, path, version):
	"""One after the other on one connection, so that each is read, answered and written by itself."""
	out = run(['h2load', *version, '-n%d' % CALLS, '-c1', '-m1', '-H', 'Authorization: Bearer ' + server.token(), '-H', 'Accept: ' + ACCEPT,
		   'https://127.0.0.1:%d%s' % (server.port, path)], 120)
	if '%d succeeded' % CALLS not in out:
		raise Trouble('h2load on %s: not all calls were answered:\n%s' % (path, out[-1500:]))


def figure_instructions(bench, pair):
	kinds = {'now': Counted}
	if bench.against:
		against.Other.program = str(bench.against)
		kinds['before'] = CountedOther
	servers = {name: type('Counting', (Pair,), {'kind': kind})(bench.workshop, pair.files_max).steward for name, kind in kinds.items()}
	for server in servers.values():
		clusters_make(server)
	group = lambda s: BASE + '/groups/' + s.bootstrap['groupId']
	reads = [('GET of one project', group, ['--h1']), ('GET of one project, HTTP/2', group, []),
		 ('GET of one cluster', lambda s: group(s) + '/clusters/bench-000', ['--h1']),
		 ('list of 100 clusters', lambda s: group(s) + '/clusters' + LIST, ['--h1']),
		 ('list of 100 projects', lambda s: '%s/orgs/%s/groups%s' % (BASE, s.bootstrap['orgId'], LIST), ['--h1'])]
	results, rows = {}, []
	for what, path, version in reads:
		each = {}
		for name, server in servers.items():
			calls(server, path(server), version)
			each[name] = server.counted(lambda: calls(server, path(server), version)) // CALLS
		results[what] = each
		measured = thousands(each['now'])
		if 'before' in each:
			measured += ', %s of before (%s)' % (times(ratio(each['now'], each['before'])), thousands(each['before']))
		rows.append((what, measured + ' instructions', 'at most 1.03 of before' if 'before' in each else 'fewer'))
	for server in servers.values():
		server.stop()
	return results, rows
