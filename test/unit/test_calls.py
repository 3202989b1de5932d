"""script/check-calls: circles of files are found from objects, and nothing else is taken for one."""
import json
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
	"""A tree with the script; gives a function that compiles files from {name: text} and tells what the script says of them."""
	(tmp_path / "script").mkdir()
	(tmp_path / "src").mkdir()
	(tmp_path / "build").mkdir()
	shutil.copy(ROOT / "script/check-calls", tmp_path / "script/check-calls")

	def check(files, *options):
		rows = []
		for name, text in files.items():
			(tmp_path / "src" / name).write_text(text)
			subprocess.run(["cc", "-c", "-o", tmp_path / "build" / (name + ".o"), tmp_path / "src" / name], check=True, timeout=60)
			rows.append({"directory": str(tmp_path / "build"), "file": "../src/" + name, "output": name + ".o"})
		(tmp_path / "build/compile_commands.json").write_text(json.dumps(rows))
		done = subprocess.run([tmp_path / "script/check-calls", *options, tmp_path / "build"], capture_output=True, text=True, timeout=60)
		assert done.returncode == 0, done.stderr
		return done.stdout
	return check


def ring(count):
	"""Files of which each calls the next, and the last the first."""
	return {"f%d.c" % i: "void f%d(void); void f%d(void) { f%d(); }\n" % ((i + 1) % count, i, (i + 1) % count) for i in range(count)}


def test_a_circle_of_more_than_a_handful_is_shown(tree):
	said = tree({**ring(6), "outside.c": "void f0(void); void outside(void) { f0(); }\n"}, "--arrows")
	assert said.startswith("6 files call each other in a circle:\n  f0.c\n    f1.c: f1\n  f1.c\n")
	assert "outside.c" not in said
	assert said.endswith("7 files; 1 circles, 1 of them of more than 5 files\n")


def test_a_handful_is_counted_and_not_shown(tree):
	assert tree(ring(5)) == "5 files; 1 circles, 0 of them of more than 5 files\n"


def test_a_line_is_no_circle(tree):
	files = ring(6)
	files["f5.c"] = "void f5(void) {}\n"
	assert tree(files) == "6 files; 0 circles, 0 of them of more than 5 files\n"


def test_a_static_of_the_same_name_is_no_call(tree):
	files = ring(6)
	files["f5.c"] = "static void f0(void) {}\nvoid f5(void) { f0(); }\n"
	assert tree(files) == "6 files; 0 circles, 0 of them of more than 5 files\n"


def test_a_function_in_a_table_is_not_called(tree):
	files = ring(6)
	files["f5.c"] = "void f0(void);\nvoid (*const f5_table[])(void) = {f0};\nvoid f5(void) {}\n"
	assert tree(files) == "6 files; 0 circles, 0 of them of more than 5 files\n"


def test_a_function_that_code_hands_on_is(tree):
	files = ring(6)
	files["f5.c"] = "void f0(void);\nvoid (*f5_given)(void);\nvoid f5(void) { f5_given = f0; }\n"
	assert tree(files).startswith("6 files call each other in a circle:")
