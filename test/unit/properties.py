#!/usr/bin/python3
"""The property tests: each makes cases, and holds what a program of ours answers against its own answers. These programs are one
process, because to look for leaks when a process ends takes seconds on arm64.

  properties.py TEST_BATCH API_FOLDER [NAME[,CASES[,SEED]]...]"""
import importlib.util, os, pathlib, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = {'policy': 'policy', 'role': 'identity', 'yaml': 'cli', 'flags': 'cli/derived', 'dialect': 'catalog'}


def begin(words, api):
	"""A test, which has made its cases, and their text."""
	name, *numbers = words.split(',')
	spec = importlib.util.spec_from_file_location(name + '_property', HERE / FOLDERS[name] / (name + '_property.py'))
	module = importlib.util.module_from_spec(spec)
	spec.loader.exec_module(module)
	test = module.run(api, *map(int, numbers))
	return name, test, next(test)


def end(test, answers):
	try:
		test.send(answers)
	except StopIteration:
		return
	raise AssertionError('a test that wants more answers')


def main():
	batch, api, *names = sys.argv[1:]
	with tempfile.TemporaryDirectory(prefix='steward-properties-') as place:
		files, tests = [], []
		for words in names or FOLDERS:
			name, test, text = begin(words, pathlib.Path(api))
			asked, answered = (pathlib.Path(place) / (name + end) for end in ('.asked', '.answered'))
			asked.write_bytes(text.encode())
			files += [name, asked, answered]
			tests.append((name, test, answered))
		done = subprocess.run([*os.environ.get('STEWARD_EMULATOR', '').split(), batch, *files], timeout=600)
		assert done.returncode == 0, 'the program ended with %d' % done.returncode
		for name, test, answered in tests:
			print(name + ': ', end='', flush=True)
			end(test, answered.read_bytes().decode())


main()
