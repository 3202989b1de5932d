"""Dialects are data: a second one is a second file, and a file that is wrong stops the build with what is wrong."""
import importlib.machinery
import importlib.util
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATLAS = json.loads((ROOT / 'api/dialects/atlas.json').read_text(encoding='utf-8'))
sys.path.insert(0, str(ROOT / 'script'))


@pytest.fixture(scope='module')
def catalog():
	"""The generator, with all of the API read once."""
	loader = importlib.machinery.SourceFileLoader('gen_catalog', str(ROOT / 'script/gen-catalog'))
	module = importlib.util.module_from_spec(importlib.util.spec_from_loader('gen_catalog', loader))
	sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
	loader.exec_module(module)
	sys.dont_write_bytecode = before
	made = module.Catalog(map(str, sorted((ROOT / 'api').glob('*.json'))))
	made.role_tables()
	return made


def build(catalog, *dialects):
	"""The tables, or what the generator says."""
	catalog.dialects = dialects
	try:
		return '\n'.join(catalog.dialect_tables())
	except SystemExit as e:
		return str(e)


def test_a_second_dialect_is_a_second_file(catalog):
	second = {'name': 'klein', 'base': '/klein', 'media': 'application/vnd.klein.', 'fields': {'bezeichnung': 'dbVersion'},
		  'values': {'configServerManagementMode': {'VON_UNS': 'SVC_MANAGED'}}, 'paths': {'Fassungen': 'dbVersions'}}
	made = build(catalog, ATLAS, second)
	assert 'catalog_dialect_count = 2;' in made
	for words in ('{"dbVersion", 9, "bezeichnung", 11', '{"VON_UNS", 7, "SVC_MANAGED", 11', '"/groups/{groupId}/Fassungen"', '"mongoDBVersion"'):
		assert words in made, words
	assert 'catalog_dialect_count = 0;' in build(catalog)


@pytest.mark.parametrize('change, said', [
	({'nonsense': 1}, 'nonsense: nobody knows this key'),
	({'base': None}, 'base: is required'),
	({'lenient': ['everything']}, 'everything: is no leniency'),
	({'everywhere': ['Group.nothing']}, 'Group.nothing: no such field'),
	({'fields': {'a': 'dbVersion', 'b': 'dbVersion'}}, 'dbVersion has two words'),
	({'fields': {'a': {'for': 'dbVersion', 'in': ['Nothing']}}}, 'there is no schema Nothing'),
	({'fields': {'name': 'dbVersion'}}, 'the schema has name too'),
	({'values': {'type': {'A': 'DB', 'B': 'DB'}}, 'everywhere': []}, 'DB stands there twice'),
	({'values': {'configServerManagementMode': {'FIXED_TO_DEDICATED': 'SVC_MANAGED'}}, 'everywhere': []}, 'FIXED_TO_DEDICATED is a value of its own'),
	({'when': {}}, 'any text in another: say when'),
	({'endpoints': [{'path': '/x', 'method': 'GET', 'script': 'y'}]}, 'a key that nobody knows'),
])
def test_what_is_wrong_stops_the_build(catalog, change, said):
	assert said in build(catalog, {**ATLAS, **change})


def test_the_words_are_a_bijection():
	for field, pairs in ATLAS['values'].items():
		if isinstance(pairs, str):
			assert isinstance(ATLAS['values'][pairs], dict), field
			continue
		assert len(set(pairs.values())) == len(pairs) and not set(pairs) & set(pairs.values()), field
