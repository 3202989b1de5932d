"""script/coverage: what gcov counts is gathered by folder, over all objects that have a line."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
	"""A tree with the script and a program of three files, of which one is never run; gives a function that reports."""
	(tmp_path / "script").mkdir()
	shutil.copy(ROOT / "script/coverage", tmp_path / "script/coverage")
	files = {
		"src/low/half.h": "static inline int half(int x)\n{\n\tif (x > 100)\n\t\treturn 50;\n\treturn x / 2;\n}\n",
		"src/low/one.c": '#include "../low/half.h"\nint one(void);\nint one(void)\n{\n\treturn half(200);\n}\n',
		"src/low/never.c": "int never(void);\nint never(void)\n{\n\treturn 1;\n}\n",
		"src/main.c": '#include "low/half.h"\nint one(void);\nint main(void)\n{\n\treturn one() - 50 + half(1);\n}\n',
	}
	build = tmp_path / "build/coverage"
	build.mkdir(parents=True)
	(tmp_path / "src/low").mkdir(parents=True)
	objects = []
	for name, text in files.items():
		(tmp_path / name).write_text(text)
		if name.endswith(".c"):
			objects.append(name.replace("/", "_")[:-2] + ".o")
			subprocess.run(["gcc", "--coverage", "-c", "-o", objects[-1], "../../" + name], cwd=build, check=True, timeout=60)
	subprocess.run(["gcc", "--coverage", "-o", "program", *objects], cwd=build, check=True, timeout=60)

	def report(*options, ran=True):
		if ran:
			subprocess.run([build / "program"], cwd=build, check=True, timeout=60)
		return subprocess.run([tmp_path / "script/coverage", "--report", *options], capture_output=True, text=True, timeout=60)
	return report


def figures(done):
	assert done.returncode == 0, done.stderr
	return [line.split() for line in done.stdout.splitlines()[1:]]


def test_by_folder(tree):
	# half.h: 4 lines with code, each run by one of the two objects that have them. never.c: 2, none. main.c: 2.
	assert figures(tree()) == [[".", "2", "2", "100.0"], ["low", "8", "6", "75.0"], ["all", "10", "8", "80.0"]]


def test_by_file_the_least_covered_first(tree):
	assert [row[0] for row in figures(tree("--files"))] == ["low/never.c", "low/half.h", "low/one.c", "main.c", "all"]


def test_nothing_was_counted(tree):
	done = tree(ran=False)
	assert done.returncode == 1 and "nothing was counted" in done.stderr
