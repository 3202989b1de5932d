"""script/count-operations: which operations are ordinary, and that it counts the tree as it is."""
import pathlib
import re
import runpy
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "script/count-operations"
script = runpy.run_path(str(SCRIPT))
FAMILIES = script["load"]()
SHAPES = script["Shapes"](FAMILIES)
OPERATIONS = {op["operationId"]: op for data in FAMILIES.values() for op in data["operations"]}


@pytest.mark.parametrize("name, ordinary", [
	("listClusters", True), ("getCluster", True), ("createCluster", True), ("updateCluster", True), ("deleteCluster", True),
	("getGroupSettings", True), ("updateGroupSettings", True),  # a singleton
	("getGroupByName", True),  # another path to a document
	("validateResourcePolicies", False), ("migrateGroup", False),  # actions
	("restartPrimaries", False), ("addGroupApiKey", False),  # POST on what is no collection
	("listGroupEvents", False), ("getGroupEvent", False),  # a log: nobody writes it by a call
	("getClusterStatus", False), ("downloadClusterLog", False),
	("verifyUserSecurityLdap", False),  # its row says so
])
def test_what_is_ordinary(name, ordinary):
	assert SHAPES.is_ordinary(OPERATIONS[name]) == ordinary


def test_a_row_that_is_left_out_says_why():
	with pytest.raises(SystemExit, match="ordinaryReason"):
		SHAPES.is_ordinary({**OPERATIONS["getCluster"], "ordinary": False})


def test_comments_and_blank_lines_are_no_code(tmp_path):
	(tmp_path / "a.c").write_text('/* Two\n * lines. */\n#include "b.h"\n\nchar *s = "/* no comment */"; // one\n')
	assert script["lines_of"](tmp_path) == (5, 2)


def test_it_counts_all_that_is_built():
	done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=60, check=True)
	built = sum(op["handler"] != "unbuilt" for op in OPERATIONS.values())
	assert re.search(r"^all +%d " % built, done.stdout, re.MULTILINE), done.stdout
