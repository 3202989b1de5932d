"""What `meson install` puts on a machine: a unit that systemd takes, a user, directories, a configuration that the program
takes, and a manual page. Nothing is started under a service manager here: test/fault/test_unit.py does what the unit says."""
import configparser
import json
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIET = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=0'}
BUILDS = [ROOT / 'build' / name for name in ('fast', 'asan', 'release')]


def run(*command, **kw):
	done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)
	assert done.returncode == 0, '%s\n%s' % (command, done.stdout)
	return done.stdout


@pytest.fixture(scope='module')
def tree(tmp_path_factory):
	build = next((b for b in BUILDS if (b / 'steward').exists()), None)
	if not build:
		pytest.skip('nothing is built')
	destination = tmp_path_factory.mktemp('tree')
	for _ in range(2):
		run('meson', 'install', '-C', build, '--no-rebuild', '--destdir', destination)
	return destination


@pytest.fixture(scope='module')
def prefix(tree):
	return next(tree.glob('**/bin/steward')).parents[1]


def unit_of(prefix):
	unit = configparser.ConfigParser(strict=False, interpolation=None)
	unit.optionxform = str
	unit.read(prefix / 'lib/systemd/system/steward.service')
	return unit


def test_the_unit_names_what_is_installed(tree, prefix):
	unit = unit_of(prefix)['Service']
	program, _, flag, config, _, cgroup = unit['ExecStart'].split()
	assert (tree / program.lstrip('/')).stat().st_mode & 0o111 and flag == '--config'
	assert (tree / config.lstrip('/')).is_file()
	databases = configparser.ConfigParser(strict=False, interpolation=None)
	databases.read(prefix / 'lib/systemd/system/steward-databases.service')
	assert cgroup == '/sys/fs/cgroup/system.slice/steward-databases.service' and cgroup in databases['Service']['ExecStart']
	assert databases['Service']['Delegate'] == 'cpu memory pids' and databases['Service']['KillMode'] == 'process'


def test_the_unit_leaves_databases_alone(prefix):
	"""A stop, a restart and a crash are of the service only; what is private to one start must not go while databases use it."""
	unit = unit_of(prefix)['Service']
	assert unit['KillMode'] == 'process' and unit['OOMPolicy'] == 'continue' and unit['User'] == 'steward'
	assert 'steward-databases.service' in unit_of(prefix)['Unit']['Wants']
	assert not {'PrivateTmp', 'PrivateNetwork', 'RuntimeDirectory', 'RemoveIPC', 'DynamicUser', 'RuntimeMaxSec'} & set(unit)


@pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='no systemd-analyze')
def test_systemd_takes_the_unit(prefix, tmp_path):
	text = (prefix / 'lib/systemd/system/steward.service').read_text()
	unit = tmp_path / 'steward.service'
	unit.write_text(re.sub(r'^ExecStart=\S+', 'ExecStart=%s/bin/steward' % prefix, text, flags=re.M))
	shutil.copy(prefix / 'lib/systemd/system/steward-databases.service', tmp_path)
	assert run('systemd-analyze', 'verify', '--man=no', unit, tmp_path / 'steward-databases.service').strip() == ''
	# Beyond 3.0 for the rights by which databases are other users than the service.
	told = run('systemd-analyze', 'security', '--offline=true', '--threshold=33', unit)
	assert 'exposure' in told


@pytest.mark.skipif(not shutil.which('systemd-sysusers') or os.geteuid() != 0, reason='needs systemd and root')
def test_user_and_directories(tree, prefix, tmp_path):
	"""In a tree of its own: the machine's users and directories are not touched."""
	root = tmp_path / 'root'
	shutil.copytree(tree, root)
	(root / 'etc').mkdir(exist_ok=True)
	run('systemd-sysusers', '--root=%s' % root, prefix / 'lib/sysusers.d/steward.conf')
	users = {x.split(':')[0]: x.split(':') for x in (root / 'etc/passwd').read_text().splitlines()}
	row = users['steward']
	databases = [users['steward-db'], *(users['steward-db-%d' % (i + 1)] for i in range(64))]
	assert len({u[2] for u in [row, *databases]}) == 66 == len({u[3] for u in [row, *databases]}), 'each its own user and group'
	assert row[5:] == ['/var/lib/steward', '/usr/sbin/nologin']
	run('systemd-tmpfiles', '--root=%s' % root, '--create', prefix / 'lib/tmpfiles.d/steward.conf')
	data = (root / 'var/lib/steward').stat()
	assert (stat.S_IMODE(data.st_mode), data.st_uid) == (0o711, int(row[2]))
	config = (root / 'etc/steward/steward.conf').stat()
	assert (stat.S_IMODE(config.st_mode), config.st_uid, config.st_gid) == (0o640, 0, int(row[3]))


def test_an_edited_configuration_stays(tree, prefix):
	file = tree / 'etc/steward/steward.conf'
	before = file.read_text()
	file.write_text(before + '# mine\n')
	build = next(b for b in BUILDS if (b / 'steward').exists())
	run('meson', 'install', '-C', build, '--no-rebuild', '--destdir', tree)
	assert file.read_text() == before + '# mine\n'
	file.write_text(before)


def test_the_service_starts_with_the_configuration(tree, prefix, tmp_path):
	"""And tells its manager when it is ready and when it stops; the first credentials do not go to the journal."""
	name, config = '\0steward-test-%d' % os.getpid(), tree / 'etc/steward/steward.conf'
	heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	heard.bind(name)
	heard.settimeout(60)
	service = subprocess.Popen([prefix / 'bin/steward', 'serve', '--config', config, '--data', tmp_path / 'data', '--listen',
		'127.0.0.1:0', '--engine', 'simulated'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
		env={**os.environ, 'NOTIFY_SOCKET': '@' + name[1:], 'ASAN_OPTIONS': 'detect_leaks=0'})
	try:
		assert heard.recv(100) == b'READY=1'
		service.send_signal(1)
		assert [heard.recv(100), heard.recv(100)] == [b'RELOADING=1', b'READY=1']
		service.terminate()
		assert heard.recv(100) == b'STOPPING=1'
		out, _ = service.communicate(timeout=60)
	finally:
		service.kill()
		service.wait()
		heard.close()
	assert service.returncode == 0 and 'bootstrap.json' in out and 'private key' not in out and 'curl' not in out


def test_manual_pages(tree, prefix):
	"""One of the program and one of each family of commands; each command has its place, and no page has a fault."""
	folder = prefix / 'share/man/man1'
	pages = sorted(folder.iterdir())
	if shutil.which('mandoc'):
		# Beside each other, as pages are that refer to each other.
		assert run('mandoc', '-Tlint', *(p.name for p in pages), cwd=folder) == ''
	text = (folder / 'steward.1').read_text()
	told = run(prefix / 'bin/steward', 'serve', '--help', env=QUIET)
	for option in re.findall(r'^  --([\w-]+)', told, re.M):
		assert 'Fl -' + option in text, option
	commands = [op['command'] for file in (ROOT / 'api').glob('*.json') for op in json.loads(file.read_text()).get('operations', [])]
	assert {p.name for p in pages} == {'steward.1'} | {'steward-%s.1' % c.split()[0] for c in commands}
	for command in commands:
		family = command.split()[0]
		page = (folder / ('steward-%s.1' % family)).read_text()
		assert '\n.Ss %s\n' % command in page and '\n.It Xr steward-%s 1\n' % family in text, command


def test_completions(prefix):
	for shell, file in (('bash', 'bash-completion/completions/steward'), ('zsh', 'zsh/site-functions/_steward'),
			    ('fish', 'fish/vendor_completions.d/steward.fish')):
		assert (prefix / 'share' / file).read_text() == run(prefix / 'bin/steward', 'completion', shell, env=QUIET), shell
