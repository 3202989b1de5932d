"""script/tidy: faults of either sign of char are found, those beside src/ too, and a clean file is looked at again only when what it is made of changed."""
import json
import os
import pathlib
import re
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script/tidy"


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
	commands(tmp_path, "clang-14 -Wall -c ../src/a.c -o a.o")
	return tmp_path


def commands(tree, *lines):
	(tree / "build/compile_commands.json").write_text(json.dumps([{"directory": str(tree / "build"),
		"file": re.search(r"-c (\S+)", line).group(1), "command": line} for line in lines]))


def tidy(tree, source, header="#define ADDED 0\n"):
	(tree / "src/a.c").write_text('#include "a.h"\n' + source)
	(tree / "src/a.h").write_text(header)
	done = subprocess.run([SCRIPT, tree / "build", tree], capture_output=True, text=True, timeout=120,
		env={**os.environ, "XDG_CACHE_HOME": str(tree / "cache")})
	return done.returncode, done.stdout + done.stderr


CLEAN = "char next(char c);\nchar next(char c) { return (char)(c + ADDED); }\n"
NARROWS = "char next(char c);\nchar next(char c) { return c == 'a' ? 'b' : c; }\n"
NEGATIVE = "int is_end(char c);\nint is_end(char c) { return c == -1; }\n"


def test_what_is_wrong_where_char_is_signed(tree):
	status, output = tidy(tree, NARROWS)
	assert status != 0 and "bugprone-narrowing-conversions" in output, output


@pytest.mark.parametrize("check, source", [
	("signed-char-misuse", "int code(char c);\nint code(char c) { int i = c; return i; }\n"),
	("too-small-loop-variable", "void f(char *p, unsigned char n);\nvoid f(char *p, unsigned char n) { for (char i = 0; i < n; i++) p[(int)i] = 0; }\n")])
def test_checks_that_look_at_the_sign(tree, check, source):
	status, output = tidy(tree, source)
	assert status != 0 and "bugprone-" + check in output, output


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


def test_files_beside_src_are_compiled(tree):
	(tree / "test").mkdir()
	(tree / "test/b.c").write_text("static int nobody(void) { return 1; }\n")
	commands(tree, "clang-14 -Wall -c ../src/a.c -o a.o", "clang-14 -Wall -c ../test/b.c -o b.o")
	status, output = tidy(tree, CLEAN)
	assert status != 0 and "unused-function" in output and "1 of 2 files have faults" in output, output
	(tree / "test/b.c").write_text('#include "b.h"\n')
	(tree / "test/b.h").write_text("")
	assert tidy(tree, CLEAN)[0] == 0
	status, output = tidy(tree, CLEAN)
	assert status == 0 and "0 of 2 files changed" in output, output
	(tree / "test/b.h").write_text("static int nobody(void) { return 1; }\n")
	status, output = tidy(tree, CLEAN)
	assert status != 0 and "1 of 2 files changed" in output and "unused-function" in output, output


def test_a_header_that_the_command_includes_counts(tree):
	commands(tree, "clang-14 -Wall -include ../src/all.h -c ../src/a.c -o a.o")
	(tree / "src/all.h").write_text('#include "all2.h"\n')
	for number, changed in ((1, 1), (1, 0), (2, 1)):
		(tree / "src/all2.h").write_text("#define NUMBER %d\n" % number)
		status, output = tidy(tree, CLEAN)
		assert status == 0 and "%d of 1 files changed" % changed in output, output


def test_a_fault_among_many_is_known_by_its_file(tree):
	names = ["a", *("f%d" % i for i in range(20))]
	for name in names[1:]:
		(tree / ("src/%s.c" % name)).write_text("int %s(char c);\nint %s(char c) { %s; return i; }\n" % (
			name, name, "int i = c" if name == "f7" else "int i = c == 'a'"))
	commands(tree, *("clang-14 -Wall -c ../src/%s.c -o %s.o" % (name, name) for name in names))
	status, output = tidy(tree, CLEAN)
	assert status != 0 and "f7.c:2" in output and "1 of 21 files have faults" in output, output
	status, output = tidy(tree, CLEAN)
	assert status != 0 and "1 of 21 files changed" in output, output
