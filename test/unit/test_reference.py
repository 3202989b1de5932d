"""docs/reference/ is what script/gen-reference makes of api/*.json, and its links lead somewhere."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs/reference"
SIZE_MAX = 1_500_000
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
	folder = tmp_path_factory.mktemp("reference")
	(folder / "gone.md").write_text("a family that is no more\n")
	subprocess.run([ROOT / "script/gen-reference", folder], check=True, timeout=60)
	return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def headings(text):
	return [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]


def test_the_pages_are_current(made):
	kept = {path.name: path.read_text(encoding="utf-8") for path in KEPT.iterdir()}
	stale = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
	assert not stale, "not what api/ says: %s. Run script/gen-reference, and keep what it writes." % ", ".join(stale)


def test_the_readme_counts_what_is_built(made):
	readme = (ROOT / "README.md").read_text(encoding="utf-8")
	families = re.findall(r"^\| \[(.+)\]\(\w+\.md\) \| (.+)\. \| (\d+ of \d+) \|$", made["README.md"], re.MULTILINE)
	told = re.findall(r"^\| (.+) \| (\d+ of \d+) \| (.+) \|$", readme, re.MULTILINE)
	assert sorted(told) == sorted((name, built, what) for name, what, built in families)
	operations = re.search(r"^\d+ of (\d+) operations are built", made["README.md"], re.MULTILINE).group(1)
	assert set(re.findall(r"(\d+) operations", readme)) == {operations}


def test_the_whole_stays_readable(made):
	assert sum(len(text.encode()) for text in made.values()) < SIZE_MAX


def test_every_link_leads_to_one_heading(made):
	places = {name: headings(text) for name, text in made.items()}
	for name, text in made.items():
		assert len(set(places[name])) == len(places[name]), "%s: two headings share a link" % name
		for target, place in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
			page = target or name
			assert page in made or (KEPT / page).exists(), "%s: no page %s" % (name, page)
			assert not place or place in places[page], "%s: no heading %s in %s" % (name, place, page)


def test_every_row_of_a_table_has_all_its_cells(made):
	for name, text in made.items():
		width = None
		for line in text.splitlines():
			cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else None
			assert width is None or cells is None or cells == width, "%s: %s" % (name, line)
			width = cells
