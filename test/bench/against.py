"""This program beside that of another commit, in one run: script/bench --against REV. A loss is seen when it happens, whatever the machine
does meanwhile. Both have a store of their own with the same documents; where the answers' sizes differ the row says so."""
import pathlib

from figures import BASE, LIST, Pair, clusters_make, thousands, times
from servers import Steward
from tools import h2load, load, wrk


class Other(Steward):
	"""A server of the other commit's program."""
	program = None
	name = 'before'

	def binary(self):
		return self.program


class OtherPair(Pair):
	kind = Other


def row(what, result, sizes):
	m, c = result['medians'], result['cpuMicrosPerRequest']
	size = '' if sizes[0] == sizes[1] else '; %s and %s bytes' % tuple(map(thousands, sizes))
	return (what, '%s of before (%s and %s /s; %.1f and %.1f us of CPU each%s)' % (
		times(result['ratio']), thousands(m['now']), thousands(m['before']), c['now'], c['before'], size), 'within noise')


def figure_against(bench, pair):
	Other.program = str(pathlib.Path(bench.against))
	servers = {'now': pair.steward, 'before': OtherPair(bench.workshop, pair.files_max).steward}
	for server in servers.values():
		clusters_make(server)
	group = lambda s: BASE + '/groups/' + s.bootstrap['groupId']
	reads = [('GET of one project', group, wrk), ('GET of one project, HTTP/2', group, h2load),
		 ('GET of one cluster', lambda s: group(s) + '/clusters/bench-000', wrk),
		 ('list of 100 clusters', lambda s: group(s) + '/clusters' + LIST, wrk),
		 ('list of 100 projects', lambda s: '%s/orgs/%s/groups%s' % (BASE, s.bootstrap['orgId'], LIST), wrk)]
	results, rows = {}, []
	for what, path, client in reads:
		sides = {name: {'server': s, 'path': path(s)} for name, s in servers.items()}
		sizes = [len(s['server'].call('GET', s['path'], headers=s['server'].headers()).content) for s in sides.values()]
		results[what] = bench.alternate(sides, lambda side, seconds: client(bench, side['server'], side['path'], side['server'].token(), seconds))
		results[what]['bodyBytes'] = sizes
		rows.append(row(what, results[what], sizes))
	sides = {name: {'server': s} for name, s in servers.items()}
	what = 'digest calls'
	results[what] = bench.alternate(sides, lambda side, seconds: load(
		bench, side['server'], group(side['server']), seconds, connections=16, user=side['server'].bootstrap['apiKey']['publicKey'],
		password=side['server'].bootstrap['apiKey']['privateKey']), pieces=5)
	rows.append(row(what, results[what], (0, 0)))
	return results, rows
