"""script/leftovers: what a run has left is ended and removed, what another run has is let be, and what cannot be removed is named."""
import contextlib
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import tempfile

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script/leftovers"
SLEEP = ["sleep", "300"]


@pytest.fixture
def places():
	"""Two runs beside each other."""
	made = [pathlib.Path(tempfile.mkdtemp(prefix="steward-run-", dir="/var/tmp")) for _ in range(2)]
	for place in made:
		for part in ("tmp", "var", "lib", "netns"):
			(place / part).mkdir()
	yield made
	for place in made:
		shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def start():
	with contextlib.ExitStack() as made:
		def run(command=SLEEP, **kw):
			p = made.enter_context(subprocess.Popen(command, stdin=subprocess.DEVNULL, **kw))
			made.callback(p.kill)
			return p
		yield run


def leftovers(place, *more):
	"""(exit code, what was removed, what could not be); run as by somebody who is not of the run."""
	env = {k: v for k, v in os.environ.items() if k not in ("STEWARD_TEST_RUN", "STEWARD_KEEP")}
	done = subprocess.run([SCRIPT, place, *map(str, more)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=env, cwd="/")
	return done.returncode, done.stdout, done.stderr


def of(place):
	return {**os.environ, "STEWARD_TEST_RUN": str(place)}


def test_nothing_is_left(places):
	assert leftovers(places[0]) == (0, "nothing\n", "")
	assert not places[0].exists() and places[1].exists()


def test_what_is_of_the_run_goes_and_what_is_of_another_stays(places, start):
	mine, other = places
	by_environment, of_other = start(env=of(mine)), start(env=of(other))
	by_folder = start(env={}, cwd=mine / "var")  # as the databases' servers are
	(mine / "tmp/steward-azurite-x").mkdir()
	(other / "tmp/steward-azurite-y").mkdir()
	code, said, wrong = leftovers(mine)
	assert (code, wrong) == (0, "")
	for p in (by_environment, by_folder):
		assert "and removed: process %d: " % p.pid in said and p.wait(10) < 0
	assert "and removed: steward-azurite-x in /tmp" in said
	assert not mine.exists() and (other / "tmp/steward-azurite-y").exists()
	assert of_other.poll() is None and str(of_other.pid) not in said


def test_who_does_not_hear(places, start, monkeypatch):
	script = runpy.run_path(str(SCRIPT))
	monkeypatch.setitem(script["Run"].end.__globals__, "WAYS", tuple((number, 0.3 if number != signal.SIGKILL else 20) for number, _ in script["WAYS"]))
	deaf = start(["sh", "-c", "trap '' TERM QUIT; echo; while :; do sleep 300; done"], env=of(places[0]), stdout=subprocess.PIPE)
	deaf.stdout.readline()
	run = script["Run"](places[0])
	run.processes_end()
	assert run.left == [] and deaf.wait(10) == -signal.SIGKILL and any("process %d: " % deaf.pid in name for name in run.gone)


def test_databases_that_lie_elsewhere(places, monkeypatch, tmp_path):
	monkeypatch.delenv("STEWARD_KEEP", raising=False)
	script = runpy.run_path(str(SCRIPT))
	monkeypatch.setitem(script["Run"].databases.__globals__, "ELSEWHERE", tmp_path)
	(tmp_path / "a/pool").mkdir(parents=True)
	(tmp_path / "b").mkdir()  # another's
	(places[0] / "tmp/data").mkdir()
	(places[0] / "tmp/data/engine").symlink_to(tmp_path / "a")
	run = script["Run"](places[0])
	assert run.end() == 0 and "folder %s" % (tmp_path / "a") in run.gone
	assert not (tmp_path / "a").exists() and (tmp_path / "b").exists()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root, to make namespaces")
def test_by_namespace(places, start):
	"""Its environment is empty, it works nowhere, and whoever started it has ended."""
	ready = 'readlink /proc/self/ns/ipc >"$0/namespaces"; env -i sleep 300 >/dev/null & echo $!'
	made = start(["unshare", "--ipc", "sh", "-c", ready, str(places[0])], env={"PATH": os.environ["PATH"]}, cwd="/", stdout=subprocess.PIPE, text=True)
	pid = int(made.stdout.readline())
	assert made.wait(10) == 0
	code, said, _ = leftovers(places[0])
	assert code == 0 and "process %d: sleep 300" % pid in said
	assert not pathlib.Path("/proc/%d/cwd" % pid).exists()


def test_descendants_of_the_script(places, start):
	"""A shell that was forked by script/test has not the environment that it exports."""
	script = start(["sh", "-c", "sleep 300 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
	child = int(script.stdout.readline())
	code, said, _ = leftovers(places[0], script.pid)
	assert code == 0 and said == "nothing\n" and script.wait(10) == 0, "it was told first, and nothing was left"
	assert not pathlib.Path("/proc/%d/cwd" % child).exists()


@pytest.mark.parametrize("what", ["process", "folder"])
def test_what_cannot_be_removed_is_named(places, start, monkeypatch, capsys, what):
	monkeypatch.delenv("STEWARD_KEEP", raising=False)
	script = runpy.run_path(str(SCRIPT))
	inside = script["Run"].end.__globals__
	p = start(env=of(places[0])) if what == "process" else None
	monkeypatch.setitem(inside, "WAYS", ((signal.SIGCONT, 0.2),))  # nothing ends it
	if what == "folder":
		monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
	assert script["Run"](places[0]).end() == 1
	name = "process %d: sleep 300" % p.pid if p else "folder %s" % places[0]
	assert "cannot be removed: " + name in capsys.readouterr().err
	assert places[0].exists()


def test_runs_whose_script_is_no_more(places, start, monkeypatch):
	script = runpy.run_path(str(SCRIPT))
	alive, dead = start(), start()
	for place, p in zip(places, (alive, dead)):
		(place / "script").write_text("%d %s\n" % (p.pid, script["started"](p.pid)))
	dead.kill()
	dead.wait()
	found = set(script["ended_runs"]())
	assert places[1] in found and places[0] not in found


def test_only_a_place_of_a_run(tmp_path):
	for wrong in ("/", "/var/tmp", str(tmp_path), "/var/tmp/steward-run-x/..", ""):
		assert leftovers(wrong)[0] != 0, wrong
	assert tmp_path.exists()
