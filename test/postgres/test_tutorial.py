"""docs/tutorial.md as its readers follow it: its commands are run as they stand, in two terminals, in a directory like a
clone; and what they print must be what the page shows."""
import contextlib, os, pathlib, pty, re, shutil, signal, subprocess, threading

import pytest

import client, databases
from client import until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs' / 'tutorial.md'
BLOCK = re.compile(r'^```(\S+)(?: (\S+))?\n(.*?)^```$|^<!-- terminal-1: (Ctrl-C) -->$', re.M | re.S)


def steps():
	"""(terminal, commands, what they print) in the order of the page; ('terminal-1', None, None) is Ctrl-C."""
	found = []
	for language, terminal, text, stop in BLOCK.findall(PAGE.read_text()):
		if stop:
			found.append(('terminal-1', None, None))
		elif language == 'sh':
			found.append((terminal or 'terminal-2', text, None))
		else:
			assert language == 'text' and found[-1][2] is None, 'output of nothing: ' + text
			found[-1] = (*found[-1][:2], text)
	return found


def as_shown(text, shown):
	"""Whether the text is what the page shows, where … stands for anything, and on a line of its own for any lines."""
	pattern = ''
	for line in shown.splitlines(keepends=True):
		pattern += '(?:.*\n)*?' if line == '…\n' else '.*?'.join(map(re.escape, line.split('…')))
	return re.fullmatch(pattern, text)


class Terminal:
	"""A shell that takes commands one block after the other, in the same session."""

	def __init__(self, folder, env):
		self.errors = folder / 'errors'
		self.shell = subprocess.Popen(['bash'], cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
					      stderr=open(self.errors, 'w'), text=True, start_new_session=True)

	def run(self, commands):
		"""What they print; a newline ends it, as the page has it."""
		out, late = '', threading.Timer(240, os.killpg, (self.shell.pid, signal.SIGKILL))
		late.start()
		self.shell.stdin.write('set -e\n%sset +e; printf "\\n=end=\\n"\n' % commands)
		self.shell.stdin.flush()
		for line in self.shell.stdout:
			if line == '=end=\n':
				late.cancel()
				return out[:-1] if out.endswith('\n\n') or out == '\n' else out
			out += line
		raise AssertionError('%s\nfailed after printing\n%s%s' % (commands, out, self.errors.read_text()[-3000:]))

	def close(self):
		self.shell.stdin.close()
		self.shell.wait(60)


class Service:
	"""What runs in the first terminal until Ctrl-C."""

	def __init__(self, folder, env, commands):
		self.out = folder / 'out'
		self.out.write_text('')
		self.terminal, slave = pty.openpty()
		with open(folder / 'log', 'a') as log:
			self.process = subprocess.Popen(['bash', '-c', commands], cwd=folder, env=env, stdout=slave, stderr=log,
							stdin=subprocess.DEVNULL, start_new_session=True)
		os.close(slave)
		threading.Thread(target=self.watch, daemon=True).start()
		until(lambda: re.search('^steward: ready .*\n', self.out.read_text(), re.M) or self.process.poll() is not None, 300)
		assert self.process.poll() is None, (self.out.read_text(), (folder / 'log').read_text()[-3000:])

	def watch(self):
		"""Keeps what the terminal shows."""
		with contextlib.suppress(OSError), open(self.out, 'ab', 0) as out:
			while (more := os.read(self.terminal, 65536)):
				out.write(more.replace(b'\r\n', b'\n'))

	def interrupt(self):
		os.killpg(self.process.pid, signal.SIGINT)
		assert self.process.wait(120) == 0


@pytest.fixture
def clone():
	"""A directory with what the page's commands use of a clone, and nothing of ours in its environment."""
	site = databases.Site()
	for name in ('script',):
		os.symlink(ROOT / name, site.root / name)
	(site.root / 'home').mkdir()
	env = {k: v for k, v in client.environment().items() if not k.startswith(('STEWARD_', 'PG', 'XDG_'))}
	env |= {'HOME': str(site.root / 'home'), 'STEWARD_BIN': client.binary(), 'STEWARD_LISTEN': '127.0.0.1:0', 'LC_ALL': 'C.UTF-8'}
	yield site.root, env
	site.wipe()


def test_the_tutorial(clone):
	folder, env = clone
	second, service, ran = Terminal(folder, env), None, 0
	try:
		for terminal, commands, shown in steps():
			if commands is None:
				service.interrupt()
				service = None
				continue
			if terminal == 'terminal-1':
				service = Service(folder, env, commands)
				out = service.out.read_text()
			else:
				out = second.run(commands)
			assert as_shown(out, shown or ''), '%s\nprinted\n%s\nbut the page shows\n%s' % (commands, out, shown)
			ran += 1
		assert ran > 10 and service is None, 'the page ends with the service stopped'
		second.close()
		assert not client.SANITIZER.search((folder / 'errors').read_text() + (folder / 'log').read_text())
		assert not databases.working_in(folder), 'processes are left'
		shutil.rmtree(folder / 'data')  # as it says at the end
	finally:
		if second.shell.poll() is None:
			os.killpg(second.shell.pid, signal.SIGKILL)
		if service:
			service.process.kill()


def test_sql_is_at_most_four_commands_away():
	"""From script/server to a row in a table."""
	commands = [c for _, text, _ in steps() for c in (text or '').splitlines()]
	first_row = next(i for i, c in enumerate(commands) if 'insert into' in c)
	assert commands[0] == 'script/server' and first_row < 4, commands[:first_row + 1]


def test_the_readme_starts_the_same_way():
	"""The commands of the README's first screen are those of the page."""
	first = (ROOT / 'README.md').read_text().split('## Start')[1].split('\n## ')[0]
	wanted = [c for _, text, _ in steps()[:3] for c in text.splitlines()]
	for command in wanted:
		assert command.split(' -c ')[0] in first, command


def test_nobody_types_json():
	"""Everything that a newcomer does has a command of its own."""
	commands = ''.join(text or '' for _, text, _ in steps())
	assert 'steward api ' not in commands and '--body' not in commands and '--set' not in commands
	for wanted in ('projects create', 'database-users create', 'access-list add', 'clusters create', 'clusters update', 'clusters pause', 'connect',
		       'logs', 'events', 'teams create', 'teams members add', 'api-keys create', 'api-keys access-list add', 'policies create'):
		assert 'build/steward %s ' % wanted in commands, wanted
