"""The tables of lifecycles: each kind of fault stops the build with its words, and the diagrams show all of a table."""
import copy
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'script'))

import lifecycles  # noqa: E402
import state_diagrams  # noqa: E402

FIELD = {'type': 'string', 'enum': ['ASKED', 'OPEN', 'FAILED']}
EVENTS = {'PEER_CREATED', 'PEER_DELETED'}
LINK = {
	'field': 'status',
	'eventField': 'peerId',
	'states': {'ASKED': {'ms': 90000, 'reached': 'link_asked'}, 'OPEN': {}, 'FAILED': {'final': True}},
	'transitions': [
		{'from': None, 'to': 'ASKED', 'by': 'call', 'word': 'CREATE', 'event': 'PEER_CREATED'},
		{'from': 'ASKED', 'to': 'OPEN', 'by': 'time'},
		{'from': ['ASKED', 'OPEN'], 'to': 'FAILED', 'by': 'fault', 'word': 'REJECTED'},
		{'from': 'OPEN', 'to': None, 'by': 'call', 'word': 'DELETE', 'event': 'PEER_DELETED'},
	],
}


def faults(change, field=FIELD):
	table = copy.deepcopy(LINK)
	change(table)
	return ' | '.join(lifecycles.faults(table, field, EVENTS))


def test_a_good_table():
	assert faults(lambda t: None) == ''


@pytest.mark.parametrize('change, words', [
	(lambda t: t['states'].update(LOST={'final': True}), 'state LOST: cannot be reached'),
	(lambda t: t['states']['FAILED'].pop('final'), 'state FAILED: needs a way out'),
	(lambda t: t['states']['OPEN'].update(final=True), 'state OPEN: needs a way out, or "final", and not both'),
	(lambda t: t['states']['ASKED'].pop('ms'), 'state ASKED: ms belongs to'),
	(lambda t: t['states']['OPEN'].update(ms=5), 'state OPEN: ms belongs to'),
	(lambda t: t['states']['ASKED'].update(ms=-1), 'state ASKED: ms must be a number'),
	(lambda t: t['states']['ASKED'].update(ms=True), 'state ASKED: ms must be a number'),
	(lambda t: t['states']['ASKED'].update(reached='rm -rf'), 'rm -rf is no name of a C function'),
	(lambda t: t['states']['ASKED'].update(colour='red'), 'what is colour?'),
	(lambda t: t['states']['ASKED'].update(value=True), 'true or false beside'),
	(lambda t: t['states']['ASKED'].update(value='OPEN'), 'two states with one value'),
	(lambda t: t['states']['ASKED'].update(value='asked'), 'the field status cannot have it'),
	(lambda t: t['transitions'][1].update(to='CLOSED'), 'ASKED -> CLOSED: no state CLOSED'),
	(lambda t: t['transitions'][2]['from'].append('LOST'), 'LOST -> FAILED: no state LOST'),
	(lambda t: t['transitions'][1].update(by='magic'), 'by must be one of'),
	(lambda t: t['transitions'][1].update(word='GO'), 'time has none'),
	(lambda t: t['transitions'][2].pop('word'), 'all but time need a word'),
	(lambda t: t['transitions'][1].pop('to'), 'a transition has from, to, by'),
	(lambda t: t['transitions'].append(dict(t['transitions'][2])), 'two ways for the word REJECTED'),
	(lambda t: t['transitions'].append({'from': 'ASKED', 'to': 'FAILED', 'by': 'job', 'word': 'X'}), 'one way only'),
	(lambda t: t['transitions'].append({'from': None, 'to': 'OPEN', 'by': 'call', 'word': 'X'}), 'one transition from null'),
	(lambda t: t['states']['OPEN'].update(ms=5) or t['transitions'].append({'from': 'OPEN', 'to': 'ASKED', 'by': 'time'}),
		'state OPEN: time alone leads back to it, for ever'),
	(lambda t: t['transitions'][0].update(by='fault'), 'a new document comes by a call'),
	(lambda t: t['transitions'][0].update(event='PARTY'), 'no events of the type PARTY'),
	(lambda t: t.pop('field'), 'a lifecycle has field, states, transitions'),
	(lambda t: t.update(when={'a': 'b', 'c': 'd'}), 'when names one field'),
])
def test_faults(change, words):
	assert words in faults(change)


def test_the_field():
	assert 'no field status' in faults(lambda t: None, None)
	assert 'of another type' in faults(lambda t: None, {'type': 'boolean'})


def test_the_build_stops(tmp_path):
	"""The generator itself says which lifecycle it is."""
	for path in (ROOT / 'api').glob('*.json'):
		data = json.loads(path.read_text(encoding='utf-8'))
		if path.stem == 'network':
			data['lifecycles']['network_peer_gcp']['states']['FAILED'] = {'final': True}
		(tmp_path / path.name).write_text(json.dumps(data), encoding='utf-8')
	done = subprocess.run([ROOT / 'script/gen-catalog', tmp_path / 'out.c', *sorted(tmp_path.glob('*.json'))],
		capture_output=True, text=True, timeout=60)
	assert done.returncode == 1 and done.stderr == 'api/network.json: lifecycle network_peer_gcp: state FAILED: cannot be reached\n'
	assert not (tmp_path / 'out.c').exists()


def test_busy_needs_a_lifecycle(tmp_path):
	for path in [*(ROOT / 'api').glob('*.json'), ROOT / 'test/example/api/notes.json']:
		data = json.loads(path.read_text(encoding='utf-8'))
		if path.stem == 'notes':
			del data['lifecycles']
		(tmp_path / path.name).write_text(json.dumps(data), encoding='utf-8')
	done = subprocess.run([ROOT / 'script/gen-catalog', tmp_path / 'out.c', tmp_path / 'out.h', *sorted(tmp_path.glob('*.json'))],
		capture_output=True, text=True, timeout=60)
	assert done.returncode == 1 and done.stderr == 'api/notes.json: resource note: busy: is for documents with a lifecycle\n'


def test_a_diagram():
	assert state_diagrams.diagram(LINK) == '''stateDiagram-v2
    [*] --> ASKED: CREATE / PEER_CREATED
    ASKED --> OPEN: after 90 s
    ASKED --> FAILED: fault REJECTED
    OPEN --> FAILED: fault REJECTED
    OPEN --> [*]: DELETE / PEER_DELETED
'''


def test_all_diagrams():
	done = subprocess.run([ROOT / 'script/gen-states'], capture_output=True, text=True, timeout=60)
	assert done.returncode == 0, done.stderr
	shown = done.stdout.split('## ')[1:]
	tables = {}
	for path in (ROOT / 'api').glob('*.json'):
		tables.update(json.loads(path.read_text(encoding='utf-8')).get('lifecycles', {}))
	assert len(shown) == len(tables) >= 4
	for text in shown:
		name = text.split('\n')[0]
		arrows = re.findall(r'^    (\S+) --> (\S+): \S', text, re.M)
		assert arrows == [(a or '[*]', b or '[*]') for a, b, _ in lifecycles.arrows(tables[name])], name
	assert 'UNPROVISIONED --> PROVISIONED: PROVISION, after 1 s\n' in done.stdout
	lost = subprocess.run([ROOT / 'script/gen-states', 'nobody'], capture_output=True, text=True, timeout=60)
	assert lost.returncode == 1 and 'no lifecycle nobody; there are: online_archive, ' in lost.stderr
