"""Running the service: health, metrics, logs, signals, backup, check, configuration, the first start."""
import contextlib, json, os, pathlib, pty, re, select, shutil, signal, socket, ssl, stat, subprocess, tempfile, threading

import pytest

import client, dialect
from client import BASE, NO_ID, Api, Bearer, Wire, cli, metric, ok, refused, unique, until


# Health and metrics

def test_health(server):
	for path in ('/healthz', '/readyz'):
		r = server.anonymous.get(path)
		assert r.status_code == 200 and r.content
		assert server.anonymous.head(path).status_code == 200
		refused(server.anonymous.post(path), 405)


def parse_metrics(text):
	"""The Prometheus text format, strictly: {name: {labels: value}}, and the types."""
	values, types, seen_sample = {}, {}, set()
	for line in text.splitlines():
		if not line:
			continue
		m = re.match(r'^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$', line)
		if m:
			if m.group(1) == 'TYPE':
				assert m.group(2) not in types, 'two types for ' + m.group(2)
				assert m.group(2) not in seen_sample, 'type after samples: ' + m.group(2)
				assert m.group(3) in ('counter', 'gauge', 'histogram', 'summary')
				types[m.group(2)] = m.group(3)
			continue
		m = re.match(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$', line)
		assert m, 'no metric line: %r' % line
		labels = tuple(sorted(re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"', m.group(2) or '')))
		assert labels not in values.setdefault(m.group(1), {}), 'twice: ' + line
		values[m.group(1)][labels] = float(m.group(3).replace('+Inf', 'inf'))
		family = re.sub(r'_(bucket|sum|count)$', '', m.group(1))
		assert family in types or m.group(1) in types, 'no type for ' + m.group(1)
		seen_sample.add(family if family in types else m.group(1))
	return values, types


def test_metrics_are_for_who_has_the_token(server, start_server, tmp_path):
	"""They tell of all tenants: neither strangers nor callers of the API read them."""
	file = server.data_dir / 'metrics.token'
	assert file.stat().st_mode & 0o777 == 0o600 and len(file.read_text()) >= 43
	for header in ({'X-None': '1'}, {'Authorization': 'Bearer ' + server.token()}, {'Authorization': 'Bearer '}, {'Authorization': file.read_text()},
		       {'Authorization': 'Bearer ' + file.read_text()[:-1]}, {'Authorization': 'Basic ' + file.read_text()}):
		answer = server.anonymous.get('/metrics', headers=header)
		refused(answer, 401, 'NOT_AUTHENTICATED')
		assert answer.headers['WWW-Authenticate'] == 'Bearer realm="metrics"' and 'steward_' not in answer.text
	own = tmp_path / 'token'
	own.write_text('a token of the operator\n')
	s = start_server('--metrics-token-file', own)
	ask = lambda: s.anonymous.get('/metrics', headers={'Authorization': 'Bearer ' + own.read_text().strip()}).status_code
	assert ask() == 200 and not (s.data_dir / 'metrics.token').exists()
	own.write_text('another one, while it runs\n')
	assert ask() == 200
	own.write_text('short')
	assert ask() == 401
	done = client.cli('serve', '--data', tmp_path / 'data', '--listen', '127.0.0.1:0', '--metrics-token-file', own, check=False)
	assert done.returncode != 0 and 'must hold a token' in done.stderr


def test_metrics(server):
	for _ in range(3):
		server.get('/groups/' + server.group)
	server.get('/groups/' + NO_ID)

	def counted():
		"""The answer, once both are in it: a call is counted when its answer is out."""
		r = server.anonymous.get('/metrics')
		assert r.status_code == 200 and r.headers['Content-Type'].startswith('text/plain')
		values, types = parse_metrics(r.text)
		found = [(labels, v) for n, x in values.items() if types.get(n) == 'counter' for labels, v in x.items()
			 if ('operation', 'getGroup') in labels]
		return any(v >= 3 and any(x[1] == '200' for x in labels) for labels, v in found) and \
			any(any(x[1] == '404' for x in labels) for labels, v in found) and (r, values, types)
	r, values, types = until(counted)
	histograms = [n for n, t in types.items() if t == 'histogram']
	assert histograms
	for h in histograms:
		by = {}
		for labels, v in values[h + '_bucket'].items():
			le = dict(labels)['le']
			by.setdefault(tuple(x for x in labels if x[0] != 'le'), []).append((float(le.replace('+Inf',
					'inf')), v))
		for labels, buckets in by.items():
			buckets.sort()
			assert buckets[-1][0] == float('inf')
			assert [v for _, v in buckets] == sorted(v for _, v in buckets), 'buckets are cumulative'
			assert values[h + '_count'][labels] == buckets[-1][1]
	for word in ('bucket', 'store', 'tls|handshake', 'connection'):
		assert any(re.search(word, n) for n in values), word
	assert len(r.text) < 2000000


def test_counters_grow(server):
	def total():
		values, types = parse_metrics(server.anonymous.get('/metrics').text)
		return sum(v for n, x in values.items() if types.get(n) == 'counter' for labels, v in x.items()
			   if ('operation', 'getOrg') in labels)
	before = total()
	for _ in range(4):
		server.get('/orgs/' + server.org)
	until(lambda: total() >= before + 4)
	assert total() == before + 4


# Logs

def test_json_log(start_server):
	s = start_server('--log-format', 'json')
	r = s.get('/groups/%s?pretty=true' % s.group)
	d = s.digest.get('/groups')
	ok(s.post('/orgs', json={'name': unique('logged'), 'apiKey': {'desc': 'k', 'roles': ['ORG_OWNER']}}), 201)
	secret = s.post('/orgs', json={'name': unique('logged'), 'apiKey': {'desc': 'k',
			'roles': ['ORG_OWNER']}}).json()['apiKey']['privateKey']
	until(lambda: s.stderr.count('"createOrg"') == 2, what='the lines of the last calls')
	lines = [json.loads(line) for line in s.stderr.splitlines()]
	mine = [x for x in lines if r.headers['X-Request-Id'] in json.dumps(x)]
	assert len(mine) == 1
	text = json.dumps(mine[0])
	for part in ('GET', '200', 'getGroup', s.group, '127.0.0.1'):
		assert part in text, (part, text)
	everything = s.stderr
	for word in (s.token(), s.bootstrap['apiKey']['privateKey'], s.bootstrap['serviceAccount']['clientSecret'],
			secret,
		     d.request.headers['Authorization'], 'Bearer '):
		assert word not in everything


def test_text_log(start_server):
	s = start_server('--log-format', 'text')
	r = s.get('/groups/' + s.group)
	until(lambda: r.headers['X-Request-Id'] in s.stderr)
	s.stop()
	lines = [x for x in s.stderr.splitlines() if r.headers['X-Request-Id'] in x]
	assert len(lines) == 1 and 'GET' in lines[0] and '200' in lines[0]


def test_log_lines_cannot_be_forged(start_server):
	s = start_server('--log-format', 'text')
	with Wire(s, s.token()) as w:
		w.one('GET', BASE + '/groups/a%0Aforged%0D%0Aline')
		w.one('GET', BASE + '/x', {'User-Agent': 'a\x7fb'})
	s.stop()
	assert not [x for x in s.stderr.splitlines() if x.startswith(('forged', 'line'))]


def test_quiet_log(start_server):
	s = start_server('--log-level', 'error')
	ok(s.get('/groups'))
	s.stop()
	assert 'GET' not in s.stderr


# The first start

def test_bootstrap_file(server):
	file = server.data_dir / 'bootstrap.json'
	assert stat.S_IMODE(file.stat().st_mode) == 0o600
	doc = json.loads(file.read_text())
	assert set(doc) >= {'baseUrl', 'caFile', 'orgId', 'groupId', 'userId', 'username', 'apiKey', 'serviceAccount'}
	assert doc['baseUrl'] == server.base_url and doc['username']
	assert set(doc['apiKey']) >= {'publicKey', 'privateKey'} and set(doc['serviceAccount']) >= {'clientId',
			'clientSecret'}
	assert re.match(r'^mdb_sa_id_[0-9a-f]{24}$', doc['serviceAccount']['clientId'])
	assert len(doc['apiKey']['publicKey']) == 8


def test_files_are_private(server):
	for file in server.data_dir.rglob('*'):
		mode = stat.S_IMODE(file.stat().st_mode)
		if file.suffix in ('.crt', '.pem') and b'PRIVATE KEY' not in file.read_bytes():
			continue
		assert not mode & 0o077 or stat.S_IMODE(server.data_dir.stat().st_mode) & 0o077 == 0, (file, oct(mode))
		if file.is_file() and b'PRIVATE KEY' in file.read_bytes():
			assert mode == 0o600, (file, oct(mode))


@contextlib.contextmanager
def first_start_on_terminal(folder, *args):
	"""What a first start shows on a terminal. Of the engines the one that prepares no databases, which would lie elsewhere and stay."""
	master, slave = pty.openpty()
	with open(folder / 'log', 'w') as log:
		process = subprocess.Popen([os.path.abspath(client.binary()), 'serve', '--data', folder / 'data', '--listen', '127.0.0.1:0', '--engine',
					    'simulated', *args], stdout=slave, stderr=log, env=client.environment(), stdin=subprocess.DEVNULL, cwd=folder)
	os.close(slave)
	seen = b''
	try:
		while b'steward: ready' not in seen:
			assert select.select([master], [], [], 120)[0]
			seen += os.read(master, 65536)
		yield seen.replace(b'\r\n', b'\n').decode()
	finally:
		process.terminate()
		process.wait(60)
		os.close(master)


def test_only_a_terminal_is_shown_the_first_credentials(start_server):
	"""Files and pipes keep what they were given: the owner's private key stood in whatever had collected the output."""
	s = start_server(clock=None, control=False)
	shown = s.stdout + s.stderr
	assert 'first start' in shown and str(s.data_dir / 'bootstrap.json') in shown
	for secret in (s.bootstrap['apiKey']['privateKey'], s.bootstrap['serviceAccount']['clientSecret'], s.bootstrap['consoleLink'].rsplit('/', 1)[1]):
		assert secret not in shown


@pytest.mark.skipif(not shutil.which('curl'), reason='no curl')
def test_the_printed_curl_line_works(tmp_path):
	with first_start_on_terminal(tmp_path) as shown:
		curl_line_works(shown, tmp_path)


def curl_line_works(shown, tmp_path):
	line = next(x for x in shown.splitlines() if 'curl ' in x)
	line = line[line.index('curl '):]
	done = subprocess.run(['sh', '-c', line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
			cwd=tmp_path, timeout=120)
	assert done.returncode == 0, (line, done.stderr)
	doc = json.loads(done.stdout[done.stdout.index('{'):])
	assert 'error' not in doc and ('results' in doc or 'id' in doc or 'appName' in doc), done.stdout


def test_the_second_start_is_silent_about_secrets(start_server, tmp_path):
	s = start_server(data_dir=tmp_path / 'data')
	s.stop()
	t = start_server(data_dir=tmp_path / 'data')
	assert t.bootstrap['apiKey']['privateKey'] not in t.stdout
	ok(t.get('/groups'))


def test_no_test_control_unless_asked(start_server):
	s = start_server(control=False, clock=None)
	refused(s.anonymous.get('/api/test/clock'), 404)
	refused(s.anonymous.post('/api/test/reset'), 404)
	ok(s.get('/groups'))


def test_control(start_server):
	s = start_server()
	before = s.control('clock', method='GET')
	assert before['virtual'] is True
	s.advance(3600)
	assert s.control('clock', method='GET')['now'] > before['now']
	name = unique('gone')
	s.project(name=name)
	s.control('reset')
	s._token = None
	assert ok(s.get('/groups'))['totalCount'] == 1
	refused(s.get('/groups/byName/' + name), 404)
	assert ok(s.digest.get('/groups/' + s.group))['id'] == s.group
	s.fault('getGroup', status=503, times=2)
	assert [s.get('/groups/' + s.group).status_code for _ in range(3)] == [503, 503, 200]
	s.fault('getGroup', status=503, times=100)
	s.control('faults', method='DELETE')
	ok(s.get('/groups/' + s.group))


def test_real_clock_does_not_advance(start_server):
	s = start_server(clock='real')
	refused(s.anonymous.post('/api/test/clock', json={'advanceSeconds': 1}), 409)


# Signals

def test_sigterm_drains(start_server):
	s = start_server()
	s.fault('getGroup', delayMs=3000)
	answers, token = [], s.token()
	before = metric(s, 'steward_bucket_tokens_total')
	t = threading.Thread(target=lambda: answers.append(Api(s, Bearer(token)).get('/groups/' + s.group)))
	t.start()
	until(lambda: metric(s, 'steward_bucket_tokens_total') > before, what='the call')
	s.stop(60)
	t.join()
	assert answers and answers[0].status_code == 200, 'what was under way is answered'
	with pytest.raises(OSError):
		socket.create_connection((s.host, s.port), timeout=2)


def test_sigterm_with_idle_connections(start_server):
	s = start_server()
	wires = [Wire(s, s.token()) for _ in range(20)]
	for w in wires:
		assert w.one('GET', BASE + '/groups').status == 200
	s.stop(60)  # idle connections, which have 75 s, do not hold it up
	[w.close() for w in wires]


def certificate(folder, name, ca=None):
	"""A self-signed certificate and key, made with openssl."""
	cert, key = folder / (name + '.crt'), folder / (name + '.key')
	subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
			'-nodes', '-days', '2',
			'-subj', '/CN=' + name, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', str(key), '-out',
			str(cert)],
		       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	return cert, key


def subject(server):
	context = ssl.create_default_context()
	context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
	with socket.create_connection((server.host, server.port), timeout=60) as raw:
		with context.wrap_socket(raw) as tls:
			return tls.getpeercert(binary_form=True)


def test_the_first_line_holds_from_every_directory(tmp_path):
	"""Also with a certificate that was named from where the service was started."""
	cert, key = certificate(tmp_path, 'first')
	with first_start_on_terminal(tmp_path, '--tls-cert', cert.name, '--tls-key', key.name) as shown:
		assert json.loads((tmp_path / 'data/bootstrap.json').read_text())['caFile'] == str(cert.resolve())
		assert "--cacert '%s'" % cert.resolve() in shown


def test_an_open_test_control_is_told(start_server):
	assert 'test control' not in start_server().stderr
	assert 'is open to everyone who reaches 0.0.0.0:0' in start_server(listen='0.0.0.0:0').stderr


def test_sighup_reloads_the_certificate(start_server, tmp_path):
	first, second = certificate(tmp_path, 'first'), certificate(tmp_path, 'second')
	live = tmp_path / 'live.crt', tmp_path / 'live.key'
	[shutil.copy(a, b) for a, b in zip(first, live)]
	s = start_server('--tls-cert', live[0], '--tls-key', live[1])
	der = lambda file: ssl.PEM_cert_to_DER_cert(file.read_text())
	assert subject(s) == der(first[0])
	s.ca_file = str(first[0])
	api = client.Api(s)
	assert api.get('/healthz').status_code == 200
	[shutil.copy(a, b) for a, b in zip(second, live)]
	assert subject(s) == der(first[0]), 'not before the signal'
	s.signal(signal.SIGHUP)
	until(lambda: subject(s) == der(second[0]), what='the second certificate')
	assert api.get('/healthz').status_code == 200, 'old connections live on'
	live[0].write_text('nonsense')
	s.signal(signal.SIGHUP)
	until(lambda: 'live.crt' in s.stderr, what='what is wrong with it')
	assert subject(s) == der(second[0]), 'a bad file leaves the old one in force'


def config_file(tmp_path, **keys):
	file = tmp_path / 'steward.conf'
	file.write_text('# how this service runs\n\n' + ''.join('%s = %s\n' % x for x in keys.items()))
	return file


def test_config_file(start_server, tmp_path):
	file = config_file(tmp_path, **{'log-format': 'json', 'log-level': 'info'})
	s = start_server('--config', file)
	ok(s.get('/groups'))
	s.stop()
	assert s.stderr and all(json.loads(x) for x in s.stderr.splitlines())


def test_flags_win_over_environment_over_file(start_server, tmp_path):
	file = config_file(tmp_path, **{'log-format': 'json'})
	s = start_server('--config', file, env={'STEWARD_LOG_FORMAT': 'text'})
	ok(s.get('/groups'))
	s.stop()
	with pytest.raises(ValueError):
		[json.loads(x) for x in s.stderr.splitlines()]
	t = start_server('--log-format', 'json', env={'STEWARD_LOG_FORMAT': 'text'})
	ok(t.get('/groups'))
	t.stop()
	assert t.stderr and all(json.loads(x) for x in t.stderr.splitlines())


def test_environment(start_server):
	s = start_server(env={'STEWARD_LOG_FORMAT': 'json'})
	ok(s.get('/groups'))
	s.stop()
	assert s.stderr and all(json.loads(x) for x in s.stderr.splitlines())


def test_sighup_reloads_limits(start_server, tmp_path):
	file = config_file(tmp_path, **{'limit.S54': '11/2', 'limit.*': '77/7'})
	s = start_server('--config', file)
	assert s.get('/orgs').headers['RateLimit-Limit'] == '77'
	assert s.get('/groups').headers['RateLimit-Limit'] == '11'
	config_file(tmp_path, **{'limit.S54': '12/2'})
	s.signal(signal.SIGHUP)
	until(lambda: s.get('/groups').headers['RateLimit-Limit'] == '12', what='the new limit')
	assert s.get('/orgs').headers['RateLimit-Limit'] == '300'
	file.write_text('limit.S54 = many\n')
	s.signal(signal.SIGHUP)
	until(lambda: 'limit.S54' in s.stderr, what='what is wrong with it')
	assert s.get('/groups').headers['RateLimit-Limit'] == '12', 'a bad file leaves the old ones in force'


@pytest.mark.parametrize('content, words', [('nonsense = 1\n', 'nonsense'), ('limit.S99 = 1/1\n', 'S99'),
		('limit.S17 = x\n', 'S17|CAPACITY'),
					    ('log-level loud\n', 'log-level|loud|='), ('listen = \n', 'listen')])
def test_bad_config_files(tmp_path, content, words):
	file = tmp_path / 'bad.conf'
	file.write_text(content)
	done = cli('serve', '--data', tmp_path / 'data', '--listen', '127.0.0.1:0', '--config', file, check=False)
	assert done.returncode not in (0, -6, -11) and re.search(words, done.stderr), done


@pytest.mark.parametrize('args, words', [
	(['serve', '--nonsense'], 'nonsense'), (['serve', '--listen', 'nowhere'], 'listen'),
	(['serve', '--log-level', 'loud'], 'log-level|loud'), (['serve', '--clock', 'sundial'], 'clock|sundial'),
	(['serve', '--listen', '127.0.0.1:99999'], '99999|port|listen'), (['serve', '--engine', 'steam'],
	'engine|steam'),
	(['serve', '--store', 'ftp://x'], 'store|ftp'), (['serve', '--data'], 'data'), (['dance'], 'dance'),
	(['serve', '--tls-cert', '/nonexistent'], 'tls|nonexistent'), (['serve', '--config', '/nonexistent.conf'],
	'nonexistent'),
	(['serve', '--threads', 'x'], 'threads'), (['backup'], 'backup|FILE|file'), (['check', '--data',
	'/nonexistent'], 'nonexistent')])
def test_bad_flags(tmp_path, args, words):
	if args[0] == 'serve' and '--data' not in args:
		args = args + ['--data', str(tmp_path / 'data')]
		if '--listen' not in args:
			args += ['--listen', '127.0.0.1:0']
	done = cli(*args, check=False)
	assert done.returncode not in (0, -6, -11), done
	assert re.search(words, done.stderr), done.stderr
	assert len(done.stderr.strip().splitlines()) <= 40


def test_port_in_use(start_server, tmp_path):
	s = start_server()
	done = cli('serve', '--data', tmp_path / 'd', '--listen', '%s:%d' % (s.host, s.port), check=False)
	assert done.returncode != 0 and str(s.port) in done.stderr


def test_data_in_use(start_server):
	s = start_server()
	done = cli('serve', '--data', s.data_dir, '--listen', '127.0.0.1:0', check=False)
	assert done.returncode != 0 and done.stderr.strip()
	ok(s.get('/groups'))


@pytest.mark.skipif(os.getuid() != 0, reason='needs two users')
def test_the_directory_of_another_user():
	"""One start as root made a user's directory unusable for that user."""
	with tempfile.TemporaryDirectory(prefix='sw-owner-', dir=client.SHORT) as root:
		os.chmod(root, 0o755)
		data = pathlib.Path(root) / 'd'
		data.mkdir(mode=0o700)
		os.chown(data, 65534, 65534)
		r = cli('serve', '--data', data, '--listen', '127.0.0.1:0', check=False)
		assert r.returncode and 'belongs to nobody, and this process runs as root' in r.stderr, r.stderr
		assert "chown -R root '%s'" % data in r.stderr and not list(data.iterdir()), r.stderr
		# What a root of an earlier version has left there.
		(data / 'lost+found').mkdir()
		(data / 'engine').mkdir()
		r = subprocess.run(['setpriv', '--reuid', '65534', '--clear-groups', client.binary(), 'serve', '--data', data, '--listen',
				    '127.0.0.1:0'], capture_output=True, text=True, env=client.environment(), timeout=60)
		assert r.returncode == 1 and '%s/engine belongs to root' % data in r.stderr, r.stderr
		assert "chown -R nobody '%s'" % data in r.stderr, r.stderr


def test_help_and_version():
	assert 'serve' in cli('--help').stdout
	assert re.search(r'\d+\.\d+', cli('--version').stdout)


# Backup and check

@pytest.mark.skipif(client.REMOTE, reason='pg_dump copies a PostgreSQL store')
def test_backup_and_check(start_server, tmp_path):
	s = start_server()
	for i in range(20):
		s.project()
	stop, made = threading.Event(), []
	token = s.token()

	def write():
		api = Api(s, Bearer(token))
		while not stop.is_set():
			made.append(ok(api.post('/groups', json={'name': unique('during'), 'orgId': s.org}))['id'])
	t = threading.Thread(target=write)
	t.start()
	try:
		before = len(made)
		cli('backup', tmp_path / 'copy', '--data', s.data_dir)
	finally:
		stop.set()
		t.join()
	assert len(made) >= before
	copy = tmp_path / 'copy'
	assert copy.exists() and stat.S_IMODE(copy.stat().st_mode) & 0o077 == 0
	cli('check', '--data', s.data_dir)
	cli('check', copy)
	s.stop()
	cli('check', '--data', s.data_dir)
	# a copy that is damaged does not pass
	content = bytearray(copy.read_bytes())
	for i in range(len(content) // 3, len(content) // 3 * 2):
		content[i] ^= 0x5a
	copy.write_bytes(content)
	bad = cli('check', copy, check=False)
	assert bad.returncode != 0 and (bad.stderr + bad.stdout).strip()


def test_backup_does_not_overwrite(server, tmp_path):
	file = tmp_path / 'taken'
	file.write_text('mine')
	done = cli('backup', file, '--data', server.data_dir, check=False)
	assert done.returncode != 0 and file.read_text() == 'mine'


# Recording

def test_recording_holds_no_secret(start_server, tmp_path):
	file = tmp_path / 'record.jsonl'
	s = start_server(record=file)
	doc = ok(s.post('/orgs', json={'name': unique('rec'), 'apiKey': {'desc': 'k', 'roles': ['ORG_OWNER']},
			'serviceAccount': {
		'name': 'r', 'description': 'd', 'roles': ['ORG_OWNER'], 'secretExpiresAfterHours': 8}}), 201)
	d = s.digest.get('/groups')
	token = s.token()
	s.stop()
	text = file.read_text()
	for secret in (doc['apiKey']['privateKey'], doc['serviceAccount']['secrets'][0]['secret'], token,
		       s.bootstrap['serviceAccount']['clientSecret'], s.bootstrap['apiKey']['privateKey']):
		assert secret not in text
	assert re.search('response="([0-9a-f]+)"', d.request.headers['Authorization']).group(1) not in text
	lines = [json.loads(x) for x in text.splitlines()]
	orgs = dialect.spoken.url_out(BASE + '/orgs') if dialect.spoken else BASE + '/orgs'
	one = next(x for x in lines if x['method'] == 'POST' and x['url'] == orgs)
	assert one['status'] == 201 and one['requestBody']['name'] and one['responseBody']['organization']['id']
	assert {'requestHeaders', 'responseHeaders'} <= set(one)
	assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0


def test_recording_shows_no_misplaced_secret(start_server, tmp_path):
	"""A password in a body of the wrong type, with the wrong name, or cut short is one all the same."""
	file = tmp_path / 'record.jsonl'
	s = start_server(record=file)
	path, body = '/groups/%s/databaseUsers' % s.group, '{"username": "u", "password": "s3cr3t&s3cr3t=s3cr3t"}'
	for kind in ('text/plain', 'application/x-www-form-urlencoded', 'application/xml', ''):
		assert s.post(path, data=body, headers={'Content-Type': kind}).status_code == 415
	for text in (body[:-3], body.replace('password', 'pasword'), body.replace('"s3cr3t&s3cr3t=s3cr3t"', '5318008')):
		assert s.post(path, data=text, headers={'Content-Type': 'application/json'}).status_code == 400
	assert s.post('/groups', data=b'\xff' + body.encode(), headers={'Content-Type': 'application/json'}).status_code == 400
	s.stop()
	text = file.read_text()
	assert 's3cr3t' not in text and '5318008' not in text
	assert '"username":"u"' in text and len(text.splitlines()) >= 8


# HTTP/2

def test_http2(server):
	h2c = pytest.importorskip('h2.connection')
	import h2.config, h2.events
	context = ssl.create_default_context(cafile=server.ca_file)
	context.set_alpn_protocols(['h2', 'http/1.1'])
	with socket.create_connection((server.host, server.port), timeout=60) as raw, \
			context.wrap_socket(raw, server_hostname=server.host) as tls:
		assert tls.selected_alpn_protocol() == 'h2'
		conn = h2c.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding='utf-8'))
		conn.initiate_connection()
		token, answers, bodies, done = server.token(), {}, {}, set()
		for i in range(20):
			sid = conn.get_next_available_stream_id()
			path = BASE + ('/groups/' + (server.group if i % 2 else NO_ID))
			conn.send_headers(sid, [(':method', 'GET'), (':path', path), (':scheme', 'https'),
						(':authority', '%s:%d' % (server.host, server.port)), ('authorization',
						'Bearer ' + token)], end_stream=True)
		tls.sendall(conn.data_to_send())
		while len(done) < 20:
			data = tls.recv(65536)
			assert data, 'closed early'
			for e in conn.receive_data(data):
				if isinstance(e, h2.events.ResponseReceived):
					answers[e.stream_id] = dict(e.headers)
				elif isinstance(e, h2.events.DataReceived):
					bodies[e.stream_id] = bodies.get(e.stream_id, b'') + e.data
					conn.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
				elif isinstance(e, h2.events.StreamEnded):
					done.add(e.stream_id)
			tls.sendall(conn.data_to_send())
	assert sorted(a[':status'] for a in answers.values()) == ['200'] * 10 + ['404'] * 10
	for sid, a in answers.items():
		doc = json.loads(bodies[sid])
		assert ('id' in doc) == (a[':status'] == '200')
		assert a['ratelimit-limit'] == '1200' if a[':status'] == '200' else True
