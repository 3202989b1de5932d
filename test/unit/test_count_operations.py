"""script/count-operations: which kind an operation is, and that it counts the tree as it is."""
import pathlib
import re
import runpy
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script/count-operations"
script = runpy.run_path(str(SCRIPT))
FAMILIES = script["load"]()
BUILT = [op for data in FAMILIES.values() for op in data["operations"] if op["handler"] != "unbuilt"]


@pytest.mark.parametrize("handler, hooks, kind", [
	("get", None, "data"),
	("get", "save", "data"),  # a get saves nothing
	("list", "load", "data"),
	("update", "view", "rules"),
	("create", "create written", "rules"),
	("create", "create save", "replaced"),
	("delete", "remove drop", "replaced"),
	("get", "load view", "replaced"),
	("note_write", None, "functions"),
])
def test_what_kind_an_operation_is(handler, hooks, kind):
	resources = {"note": {"hooks": "note_hooks"} if hooks else {}}
	tables = {"note_hooks": set((hooks or "").split())}
	assert script["kind_of"]({"handler": handler, "resource": "note"}, resources, tables)[0] == kind


def test_the_tables_of_hooks_are_read():
	source = "const struct resource_hooks a_hooks = {.load = find, .view = view};\nconst struct resource_hooks b_hooks = {\n\t.save = put,\n};\n"
	assert script["hooks_of"](source) == {"a_hooks": {"load", "view"}, "b_hooks": {"save"}}


def test_every_table_that_rows_name_is_there():
	named = {r["hooks"] for data in FAMILIES.values() for r in data.get("resources", {}).values() if "hooks" in r}
	assert named <= set(script["hooks"]())


def test_comments_and_blank_lines_are_no_code(tmp_path):
	(tmp_path / "a.c").write_text('/* Two\n * lines. */\n#include "b.h"\n\nchar *s = "/* no comment */"; // one\n')
	assert script["lines_of"](tmp_path) == (5, 2)


def test_it_counts_all_that_is_built():
	done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=60, check=True)
	counts = [[int(n) for n in line.split()[1:6]] for line in re.findall(r"^all +.*$", done.stdout, re.MULTILINE)[:1]][0]
	assert counts[0] == len(BUILT) == sum(counts[1:]), done.stdout
	assert counts[4] == sum(op["handler"] not in script["VERBS"] for op in BUILT), done.stdout
	folders = {path.name for path in (SCRIPT.parent.parent / "src/api").iterdir() if path.is_dir()}
	assert folders <= set(done.stdout.split()), "a folder is not counted"
