"""The table of commands in docs/cli.md is what script/gen-cli makes of api/*.json; what the page says of options is there."""
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/cli.md"


def test_the_table_is_current(tmp_path):
	copy = tmp_path / "cli.md"
	shutil.copy(PAGE, copy)
	subprocess.run([ROOT / "script/gen-cli", copy], check=True, timeout=60)
	assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), "run script/gen-cli, and keep what it writes"


def test_every_family_links_to_its_reference():
	rows = re.findall(r"^\| \[`([\w-]+)`\]\((\S+?)\)", PAGE.read_text(encoding="utf-8"), re.M)
	assert len(rows) > 40
	for family, target in rows:
		assert (ROOT / "docs" / target).exists(), family


def test_settings_of_a_profile_are_all_explained():
	source = (ROOT / "src/cli/profile.c").read_text(encoding="utf-8").split("profile_settings[] = {")[1].split("};")[0]
	for name in re.findall(r'\{"([\w-]+)"', source):
		assert "`%s`" % name in PAGE.read_text(encoding="utf-8"), name
