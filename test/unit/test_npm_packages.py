"""script/npm-packages: what the lock files have for one architecture they have for the other."""
import json
import pathlib
import re
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
rows = runpy.run_path(str(ROOT / "script/npm-packages"))["rows"]
LOCKS = [*ROOT.glob("console/package-lock.json"), *ROOT.glob("src/programs/*/package-lock.json"), *ROOT.glob("test/*/package-lock.json")]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.parent.name)
def test_both_architectures_get_the_same(lock):
	def names(machine):
		wanted = rows(json.loads(lock.read_text(encoding="utf-8")), machine)
		assert all(row["integrity"].startswith("sha512-") for _, row in wanted)
		return {(re.sub(r"x64|aarch64|arm64", "MACHINE", path), row["version"]) for path, row in wanted}

	assert LOCKS and names("x64") == names("arm64") != set()
