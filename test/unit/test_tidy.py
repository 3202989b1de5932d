"""script/tidy: faults of either sign of char are found, and a clean file is looked at again only when what it is made of changed."""
import json
import os
import pathlib
import re
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script/tidy"
NINJA = """rule cc
  command = clang-14 -MD -MF $out.d -c $in -o $out
  deps = gcc
  depfile = $out.d
build a.o: cc ../src/a.c
"""


def test_every_header_is_looked_at():
	root = SCRIPT.parent.parent
	wanted = re.search(r"^HeaderFilterRegex: '(.*)'$", (root / ".clang-tidy").read_text(), re.MULTILINE).group(1)
	headers = sorted((root / "src").rglob("*.h"))
	assert any(len(path.relative_to(root).parts) > 3 for path in headers)
	assert [path for path in headers if not re.search(wanted, str(path))] == []


@pytest.fixture
def tree(tmp_path):
	(tmp_path / "src").mkdir()
	(tmp_path / "build").mkdir()
	(tmp_path / ".clang-tidy").write_text("Checks: '-*,clang-diagnostic-*,bugprone-*'\nWarningsAsErrors: '*'\n")
	(tmp_path / "build/build.ninja").write_text(NINJA)
	(tmp_path / "build/compile_commands.json").write_text(json.dumps([{
		"directory": str(tmp_path / "build"), "file": "../src/a.c", "output": "a.o",
		"command": "clang-14 -Wall -c ../src/a.c -o a.o"}]))
	return tmp_path


def tidy(tree, source, header="#define ADDED 0\n"):
	(tree / "src/a.c").write_text('#include "a.h"\n' + source)
	(tree / "src/a.h").write_text(header)
	subprocess.run(["ninja", "-C", tree / "build"], check=True, capture_output=True, timeout=60)
	done = subprocess.run([SCRIPT, tree / "build", tree], capture_output=True, text=True, timeout=120,
		env={**os.environ, "XDG_CACHE_HOME": str(tree / "cache")})
	return done.returncode, done.stdout + done.stderr


CLEAN = "char next(char c);\nchar next(char c) { return (char)(c + ADDED); }\n"
NARROWS = "char next(char c);\nchar next(char c) { return c == 'a' ? 'b' : c; }\n"
NEGATIVE = "int is_end(char c);\nint is_end(char c) { return c == -1; }\n"


def test_what_is_wrong_where_char_is_signed(tree):
	status, output = tidy(tree, NARROWS)
	assert status != 0 and "bugprone-narrowing-conversions" in output, output


def test_what_is_wrong_where_char_is_unsigned(tree):
	status, output = tidy(tree, NEGATIVE)
	assert status != 0 and "clang-diagnostic-tautological" in output, output


def test_a_clean_file_is_looked_at_once(tree):
	status, output = tidy(tree, CLEAN)
	assert status == 0 and "1 of 1 files changed" in output, output
	status, output = tidy(tree, CLEAN)
	assert status == 0 and "0 of 1 files changed" in output, output


def test_a_header_that_changed_counts(tree):
	tidy(tree, CLEAN)
	status, output = tidy(tree, CLEAN, "#define ADDED 1\n")
	assert status == 0 and "1 of 1 files changed" in output, output


def test_a_fault_is_not_remembered_as_clean(tree):
	for _ in range(2):
		status, output = tidy(tree, NARROWS)
		assert status != 0 and "1 of 1 files changed" in output, output
