"""script/check-includes: the tree is clean, and each kind of bad include is seen where it stands."""
import runpy
import pathlib
import re
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
	("limit/limit.c", "call/call.h", "limit -> call"),
	("call/call.c", "identity/identity.h", "call -> identity"),
	("identity/tokens.c", "trail/events.h", "identity -> trail"),
	("trail/record.c", "gate/gate.h", "trail -> gate"),
	("call/call.c", "api/kit/verbs.h", "call -> api"),
	("call/call.c", "api/handlers.h", "call -> api"),
	("api/kit/verbs.c", "cli/cli.h", "api -> cli"),
	("api/orgs/orgs.c", "http/http.h", "api -> http"),
	("cli/operator/check.c", "serve/serve.h", "cli -> serve"),
	("api/orgs/orgs.c", "api/network/network.h", "family orgs -> family network: no such arrow"),
	("api/clusters/store.c", "api/network/network.h", "family clusters -> family network: no such arrow"),
	("api/kit/verbs.c", "api/users/users.h", "family kit -> family users: no such arrow"),
	("api/network/peers.c", "api/clusters/spec.h", "family network -> api/clusters/spec.h: only through"),
	("api/edge/router.c", "api/clusters/spec.h", "family edge -> api/clusters/spec.h: only through"),
	("api/clusters/store.c", "api/edge/edge.h", "family clusters -> edge: the edge is above"),
	("serve/serve.c", "api/clusters/spec.h", "serve -> api/clusters/spec.h: only through"),
	("api/clusters/store.c", "engine/postgres/postgres.h", "engine/postgres/postgres.h is a part of engine/"),
	("engine/simulated/simulated.c", "engine/postgres/postgres.h", "engine/postgres/postgres.h is a part of engine/"),
	("cli/operator/check.c", "cli/derived/command.h", "cli/operator -> cli/derived: no such arrow"),
	("cli/derived/run.c", "cli/client/psql.h", "cli/derived -> cli/client: no such arrow"),
	("main.c", "cli/derived/command.h", "cli/derived/command.h is a part of cli/"),
	("engine/postgres/host/files.c", "engine/postgres/cluster/node.h", "engine/postgres/host -> cluster: no such arrow"),
	("engine/postgres/model/paths.h", "engine/postgres/host/files.h", "engine/postgres/model -> host: no such arrow"),
	("engine/postgres/cluster/node.c", "engine/postgres/backup/restore.h", "engine/postgres/cluster -> backup: no such arrow"),
	("engine/postgres/sql/sql.c", "engine/postgres/postgres.h", "engine/postgres/sql -> engine/postgres/postgres.h: no such arrow"),
	("engine/engine.c", "engine/postgres/sql/sql.h", "engine/postgres/sql/sql.h is a part of engine/postgres/"),
	("jobs/jobs.c", "store/sqlite/sqlite.h", "store/sqlite/sqlite.h is a part of store/"),
])
def test_an_arrow_that_turns_around_is_refused(copy, file, target, arrow):
	number = plant(copy, file, '#include "%s"' % target)
	status, output = check(copy)
	assert status == 1
	assert "src/%s:%d: %s" % (file, number, arrow) in output


@pytest.mark.parametrize("file, line", [
	("engine/postgres/sql/sql.h", "bool pg_file_is(const char *path);"),
	("engine/postgres/postgres.h", "int pg_sql_do(PGconn *conn, int timeout_ms, const char *sql);"),
	("engine/postgres/cluster/node.c", "must_check int pg_file_read(const char *path, size_t max, char **ret_text);"),
	("engine/postgres/sql/grants.h", "extern const char *const pg_spread_sql_shard[], *const pg_spread_sql_begin[];"),
	("engine/core.h", "void pg_why_set(const char **ret_why, const char *format, ...) printf_like(2, 3);"),
])
def test_a_prototype_stands_in_the_header_of_its_file(copy, file, line):
	number = plant(copy, file, line)
	status, output = check(copy)
	assert status == 1
	assert re.search(r"src/%s:%d: pg_\w+\(\) is defined in engine/postgres/\S+\.c: declare it in engine/postgres/\S+\.h" % (
		file, number), output), output


def test_a_prototype_that_is_a_part_of_something_else_is_none(copy):
	plant(copy, "engine/postgres/sql/sql.c", "/* bool pg_file_is(const char *path); */ struct s { int (*pg_file_is)(void); };")
	plant(copy, "engine/postgres/sql/sql.c", "static bool f(void)\n{\n\treturn pg_file_is(\"x\");\n}")
	assert check(copy)[0] == 0


def test_a_family_without_a_line_is_refused(copy):
	(copy / "src/api/planted").mkdir()
	(copy / "src/api/planted/planted.c").write_text('/* Planted. */\n#include "api/kit/verbs.h"\n')
	status, output = check(copy)
	assert status == 1
	assert "src/api/planted/planted.c:2: the family planted has no line" in output


def test_the_table_of_families_has_no_circle(copy, monkeypatch):
	"""An arrow that would close one points to a later line."""
	script = runpy.run_path(str(ROOT / "script/check-includes"))
	assert list(script["table_faults"]()) == []
	script["FAMILIES"]["federation"] = ["users"]
	assert list(script["table_faults"]()) == [
		"family federation -> users: an arrow points to a line above its own in FAMILIES"]


def test_the_documentation_shows_the_arrows_as_they_are():
	page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
	for part in runpy.run_path(str(ROOT / "script/check-includes"))["drawn"]():
		assert part in page, "docs/architecture.md must have:\n" + part


def test_a_family_may_include_its_own_headers_and_the_kit(copy):
	plant(copy, "api/clusters/store.c", '#include "api/clusters/forms.h"')
	plant(copy, "api/clusters/store.c", '#include "api/kit/verbs.h"')
	assert check(copy)[0] == 0


def test_a_long_line_is_refused_but_in_tables(copy):
	plant(copy, "base/ip.c", '\tint x; /* %s */' % ("long " * 25))
	plant(copy, "base/ip.c", '\t{"%s"},' % ("long " * 25))
	status, output = check(copy)
	assert status == 1 and output.count("is longer than 120 columns") == 1


def test_the_generated_header_is_known(copy):
	plant(copy, "api/clusters/store.c", '#include "api/handlers.h"')
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
