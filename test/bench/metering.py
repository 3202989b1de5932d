"""What metering costs: ten thousand nodes of one organization, in processor time. Once a minute all are looked at; a month of them is
added up by day for an invoice."""
import json, os

from servers import HERE, ROOT

NODES, CORE_WANTED = 10000, 1.0
PARTS = ('base', 'store', 'store/sqlite', 'meter')
LIBRARIES = ('-lsqlite3', '-ljansson', '-lcrypto', '-ldeflate', '-lm', '-pthread')


def figure_meter(bench, pair):
	folder = bench.workshop.dir / 'meter'
	folder.mkdir()
	program = bench.workshop.dir / 'bench_meter'
	source = [HERE / 'meter.c', *(f for p in PARTS for f in sorted((ROOT / 'src' / p).glob('*.c')))]
	bench.workshop.run(os.environ.get('CC', 'cc'), '-std=gnu17', '-O2', '-D_GNU_SOURCE', '-funsigned-char',
			   '-I', ROOT / 'src', *source, '-o', program, *LIBRARIES)
	result = json.loads(bench.workshop.run(program, folder, NODES))
	percent = result['look_ms'] / 60000 * 100
	result.update(percentOfCore=round(percent, 3), wanted={'percentOfCoreAtMost': CORE_WANTED})
	return result, [
		('metering %d nodes, of a core' % result['nodes'], '%.2f%% (%.0f ms a minute)' % (percent, result['look_ms']),
		 'less than %d%%' % CORE_WANTED),
		('a change of a node, in the meter', '%.0f us' % result['change_us'], '-'),
		('a month of %d nodes by day and cluster (%d rows)' % (result['nodes'], result['rows']), '%.0f ms' % result['month_ms'], '-')]
