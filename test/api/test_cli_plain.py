"""What confused people at the command line: two spellings of a comparison, waits that never ended, prices that were not told."""
import json, re, subprocess, time

import pytest

import client
from client import binary, environment, ok, until
from test_cli_derived import DONE, NOT_DONE, doc, dry, home, run, service, shown  # noqa: F401


@pytest.mark.parametrize('path, event, taken', [('metricThreshold', 'OUTSIDE_METRIC_THRESHOLD', '<>'), ('threshold', 'TOO_MANY_ELECTIONS', '>'),
	('threshold', 'REPLICATION_OPLOG_WINDOW_RUNNING_OUT', '<')])
def test_either_spelling_of_a_comparison(dry, path, event, taken):  # noqa: F811
	"""What the place takes is sent, whichever was typed."""
	flag = re.sub('T', '-t', path)
	line = ['alert-configs', 'create', '--event-type-name', event, '--notifications.type-name', 'GROUP', '--notifications.email-enabled', '--notifications.interval-min', '5',
		'--%s.threshold' % flag, '3']
	if path == 'metricThreshold':
		line += ['--metric-threshold.metric-name', 'CONNECTIONS', '--metric-threshold.units', 'RAW']
	for words in [w for w in (('>', 'GREATER_THAN'), ('<', 'LESS_THAN')) if w[0] in taken]:
		sent = {shown(dry(*line, '--%s.operator' % flag, word, '--dry-run').stdout)[3][path]['operator'] for word in words}
		assert len(sent) == 1 and sent <= set(words), sent
	wrong = dry(*line, '--%s.operator' % flag, '=', '--dry-run', check=False)
	assert wrong.returncode == 2 and 'operator' in wrong.stderr


def test_a_price(run, service):  # noqa: F811
	skus = [s['id'] for s in ok(service.get('/skus', params={'itemsPerPage': 500}))['results']]
	for sku in skus[:3] + [s for s in skus if 'STORAGE' in s][:1]:
		text = run('skus', 'get', sku).stdout
		assert re.search(r'^price +\S*\d+\.\d\d+ [A-Z]{3} for (a node-hour|a GB-hour|a GB|one)\b', text, re.M), text
		assert re.match(r'\d+\.\d\d+', re.sub(r'^in [^:]*: ', '', doc(run('skus', 'get', sku, '-o', 'json'))['price']))
	assert 'price' not in ok(service.get('/skus/' + skus[0])), 'beyond the reference: a header has it'


def test_a_wait_says_that_time_stands_still(start_server):
	s = start_server('--engine', 'simulated')
	s.control('engine', {'seconds': 60})
	args = [binary(), 'clusters', 'create', 'c', '--wait', '--data', s.data_dir]
	p = subprocess.Popen([*map(str, args)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
	seen = ''
	while 'advanceSeconds' not in seen:
		line = p.stderr.readline()
		assert line, seen
		seen += line
	assert 'the clock of this service is virtual' in seen
	move = re.search(r"steward api POST /api/test/clock --body '(.*)'", seen).group(1)
	end = time.monotonic() + 120
	while p.poll() is None and time.monotonic() < end:
		s.control('clock', json.loads(move))
		time.sleep(0.5)
	out, err = p.communicate(timeout=60)
	assert p.returncode == DONE and re.search('^state +IDLE', out, re.M) and 'virtual' not in err, 'once'
