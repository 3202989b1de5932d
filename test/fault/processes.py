"""What a process is and has, as the kernel tells it."""
import os, pathlib, pwd

SETS = 'CapInh', 'CapPrm', 'CapEff', 'CapAmb'


def users():
	"""Ids of the system users that projects' databases run as, in their order."""
	found = []
	while True:
		try:
			found.append(pwd.getpwnam('steward-db-%d' % (len(found) + 1)).pw_uid)
		except KeyError:
			return found


def status(pid):
	"""/proc/PID/status by name."""
	return dict(line.split(':\t', 1) for line in pathlib.Path('/proc/%d/status' % pid).read_text().splitlines() if ':\t' in line)


def uid(pid):
	return int(status(pid)['Uid'].split()[0])


def descriptors(pid):
	return {int(f.name): os.readlink(f) for f in pathlib.Path('/proc/%d/fd' % pid).iterdir()}
