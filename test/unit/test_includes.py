"""script/check-includes: the tree is clean, and each kind of bad include is seen where it stands."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(root):
	done = subprocess.run([ROOT / "script/check-includes", root], capture_output=True, text=True, timeout=60)
	return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
	shutil.copytree(ROOT / "src", tmp_path / "src")
	shutil.copytree(ROOT / "api", tmp_path / "api")
	return tmp_path


def plant(copy, file, line):
	"""Adds a line below the last include; returns its number."""
	path = copy / "src" / file
	lines = path.read_text().splitlines()
	at = max(i for i, text in enumerate(lines) if text.startswith("#include")) + 1
	path.write_text("\n".join(lines[:at] + [line] + lines[at:]) + "\n")
	return at + 1


def test_the_tree_is_clean():
	status, output = check(ROOT)
	assert status == 0, output


@pytest.mark.parametrize("file, target, arrow", [
	("base/ip.c", "gate/gate.h", "base -> gate"),
	("http/prescan.c", "catalog/catalog.h", "http -> catalog"),
	("http/prescan.c", "store/store.h", "http -> store"),
	("store/store.c", "http/http.h", "store -> http"),
	("store/store.c", "catalog/catalog.h", "store -> catalog"),
	("limit/limit.c", "gate/call.h", "limit -> gate"),
	("gate/call.c", "api/verbs.h", "gate -> api"),
	("api/verbs.c", "cli/cli.h", "api -> cli"),
	("api/orgs.c", "http/http.h", "api -> http"),
	("cli/check.c", "serve.h", "cli -> main"),
])
def test_an_arrow_that_turns_around_is_refused(copy, file, target, arrow):
	number = plant(copy, file, '#include "%s"' % target)
	status, output = check(copy)
	assert status == 1
	assert "src/%s:%d: %s" % (file, number, arrow) in output


def test_a_family_does_not_include_another(copy):
	header = copy / "src/api/projects.h"
	header.write_text("/* Planted. */\n#ifndef STEWARD_API_PROJECTS_H\n#define STEWARD_API_PROJECTS_H\n#endif\n")
	number = plant(copy, "api/orgs.c", '#include "api/projects.h"')
	status, output = check(copy)
	assert status == 1
	assert "src/api/orgs.c:%d: family orgs -> family projects" % number in output


def test_a_family_may_include_its_own_header_and_the_shared_ones(copy):
	header = copy / "src/api/orgs.h"
	header.write_text("/* Planted. */\n#ifndef STEWARD_API_ORGS_H\n#define STEWARD_API_ORGS_H\n#endif\n")
	plant(copy, "api/orgs.c", '#include "api/orgs.h"')
	plant(copy, "api/orgs.c", '#include "api/verbs.h"')
	assert check(copy)[0] == 0


@pytest.mark.parametrize("include", ['"verbs.h"', '"no/such.h"', '"../gate/gate.h"'])
def test_own_headers_are_named_from_src(copy, include):
	number = plant(copy, "base/ip.c", "#include " + include)
	status, output = check(copy)
	assert status == 1
	assert "src/base/ip.c:%d:" % number in output


def test_angle_brackets_hide_nothing(copy):
	plant(copy, "base/ip.c", "#include <gate/gate.h>")
	assert check(copy)[0] == 1


def test_a_folder_without_a_layer_is_refused(copy):
	(copy / "src/misc").mkdir()
	(copy / "src/misc/x.c").write_text('/* Planted. */\n#include "base/str.h"\n')
	status, output = check(copy)
	assert status == 1 and "the folder misc has no layer" in output


def test_guards_and_first_comments(copy):
	(copy / "src/base/odd.h").write_text("/* Planted. */\n#ifndef ODD_H\n#define ODD_H\n#endif\n")
	(copy / "src/base/bare.c").write_text('#include "base/str.h"\n')
	status, output = check(copy)
	assert status == 1
	assert "src/base/odd.h:1: its include guard must be STEWARD_BASE_ODD_H" in output
	assert "src/base/bare.c:1: must begin with a comment" in output


def test_a_long_file_is_only_a_warning(copy):
	(copy / "src/base/long.c").write_text("/* Planted. */\n" + "\n" * 900)
	status, output = check(copy)
	assert status == 0 and "warning" in output
