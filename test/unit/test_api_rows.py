"""Rows of the API's data that would build, and then do nothing or the wrong thing, stop the build with file, row and key."""
import copy
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'script'))

import api_rows  # noqa: E402

FILES = [*sorted((ROOT / 'api').glob('*.json')), *sorted((ROOT / 'test/example/api').glob('*.json'))]
DATA = [json.loads(path.read_text(encoding='utf-8')) for path in FILES if path.stem != 'roles']
NOTES, TAGS = (next(data for data in DATA if data['family'] == name) for name in ('notes', 'tags'))


def rows(families):
	tables = {name: {'kind': name, **table} for data in families for name, table in data.get('lifecycles', {}).items()}
	return api_rows.Rows({name: r for data in families for name, r in data.get('resources', {}).items()},
		[op for data in families for op in data['operations']], tables,
		[limit for data in families for limit in data.get('projectLimits', [])],
		{name: schema for data in families for name, schema in data['schemas'].items()})


def faults(change):
	"""`change` spoils copies of the two example families; what is found."""
	notes, tags = copy.deepcopy(NOTES), copy.deepcopy(TAGS)
	change(notes, tags)
	others = [data for data in DATA if data['family'] in ('common', 'projects', 'clusters', 'flex', 'orgs')]
	return ['%s: %s' % fault for fault in rows([*others, notes, tags]).faults()]


def note(**more):
	return lambda notes, tags: notes['resources']['note'].update(more)


def tag(**more):
	return lambda notes, tags: tags['resources']['tag'].update(more)


def board(**more):
	return lambda notes, tags: tags['resources']['tag_board']['references'][0].update(more)


def without(name, key):
	return lambda notes, tags: {**notes['resources'], **tags['resources']}[name].pop(key)


def field(family, schema, name, **more):
	return lambda notes, tags: {'notes': notes, 'tags': tags}[family]['schemas'][schema]['properties'][name].update(more)


def row(name, **more):
	def change(notes, tags):
		next(op for op in notes['operations'] + tags['operations'] if op['operationId'] == name).update(more)
	return change


def state(transition=None, **more):
	"""Of the tags' lifecycle."""
	def change(notes, tags):
		table = tags['lifecycles']['tag']
		table['transitions'] += [transition] if transition else []
		table.update(more)
	return change


def test_all_that_is_built_is_right():
	assert list(rows(DATA).faults()) == []
	assert faults(lambda notes, tags: None) == []


REFUSAL = {'status': 409, 'code': 'NO', 'text': 'No.'}


@pytest.mark.parametrize('change, words', [
	# keys and types
	(note(limits={}), 'resource note: limits: nobody knows this key'),
	(note(keyIsName='yes'), 'resource note: keyIsName: must be true or false'),
	(note(sealed='pin'), 'resource note: sealed: must be a list of texts'),
	(note(fill=['created']), 'resource note: fill: must be an object'),
	(note(merge='deep'), 'resource note: merge: can be "shallow" only'),
	(note(references={}), 'resource note: references: must be a list of objects'),
	(note(below=['cluster', 'flex_cluster', 'project']), 'resource note: below: must be the name of a resource, or two'),
	(note(below=5), 'resource note: below: must be the name'),
	# refusals
	(note(duplicate={'status': 409, 'code': 'X'}), 'resource note: duplicate: a refusal has a status, a code and a text'),
	(note(duplicate={**REFUSAL, 'text': '{nmae}'}), 'resource note: duplicate.text: {nmae} is none of field, name'),
	(note(duplicate={**REFUSAL, 'status': 200}), 'resource note: duplicate.status: must be from 400 to 499'),
	(note(duplicate={**REFUSAL, 'code': 'not found'}), 'resource note: duplicate.code: must be a word in capitals'),
	(note(limit=REFUSAL), 'resource note: limit: a refusal has a status, a code and a text, and here most'),
	(note(limit={**REFUSAL, 'most': '5'}), 'resource note: limit.most: must be a number above 0'),
	(note(limit={**REFUSAL, 'most': 0}), 'resource note: limit.most: must be a number above 0'),
	(note(holds={**REFUSAL, 'kinds': ['nothing']}), 'resource note: holds.kinds: must be one or two kinds'),
	# fields that the schema does not have, or not so
	(note(name='nmae'), 'resource note: name: no field nmae in the schema Note'),
	(note(id='_id'), 'resource note: id: no field _id in the schema Note'),
	(note(fill={'made': '@now'}), 'resource note: fill: no field made in the schema Note'),
	(note(fill={'created': '@today'}), 'resource note: fill: created: @today is none of @now'),
	(note(touch={'updated': '@user'}), 'resource note: touch: updated: is of another type than @user'),
	(note(events={'note': 'title'}), 'resource note: events: no field title in the schema Note'),
	(note(events={'note': 'pin'}), 'resource note: events: pin is sealed'),
	(note(sealed=['pin', 'pni']), 'resource note: sealed: no field pni in the schema Note'),
	(note(sealed=['text']), 'resource note: sealed: text must be writeOnly in the schema'),
	(note(schema='Nota'), 'resource note: schema: no schema Nota'),
	(field('notes', 'Note', 'name', type='integer'), 'resource note: name: the field name is no text'),
	(lambda notes, tags: notes['schemas']['Note'].pop('required'), 'resource note: name: the field name must be required'),
	(without('note', 'name'), 'resource note: keyIsName: needs a name'),
	(without('note', 'name'), 'resource note: duplicate: needs a name'),
	(without('note', 'key'), 'resource note: keyIsName: needs a key'),
	# fields of the service that callers could set
	(field('notes', 'Note', 'state', readOnly=False),
		'resource note: the service sets state, so it must be readOnly in what createNote takes'),
	(field('tags', 'Tag', 'created', readOnly=False),
		'resource tag: the service sets created, so it must be readOnly in what replaceTag takes'),
	# places
	(note(below='clutser'), 'resource note: below: no resource clutser'),
	(note(below='project_settings'), 'resource note: below: project_settings has no key'),
	(note(parent='groupId'), 'resource note: parent: what lies below a resource has no parent'),
	(note(below='note_comment'), 'resource note: below: goes round in a circle'),
	(note(below='note'), 'resource note: below: goes round in a circle'),
	(tag(parent='userId'), 'resource tag: parent: must be orgId or groupId'),
	(tag(key='labelId'), 'resource tag: key: the path of getTag has no {labelId}'),
	(row('listTagSets', path='/groups/{groupId}/labelSets/all'),
		'resource tag_set: keyIsName: the path of listTagSets hides a document of that name'),
	(tag(self='createTag'), 'resource tag: self: must be a GET'),
	(tag(changes={'color': 'ONLINE_ARCHIVE_UPDATED'}), 'resource tag: changes: are for updates'),
	(tag(defaults={}), 'resource tag: defaults: are for resources without a key'),
	(lambda notes, tags: notes['resources'].update(extra={**notes['resources']['note'], 'kind': 'note'}),
		'resource note: kind: extra has documents of this kind in the same place'),
	(lambda notes, tags: tags['lifecycles'].clear() or tags['resources']['tag'].update(busy=REFUSAL),
		'resource tag: busy: is for documents with a lifecycle'),
	# limits of the project
	(tag(projectLimit='svc.none'), 'resource tag: projectLimit: no limit svc.none'),
	(tag(projectLimit='svc.project.deployment.clusters'),
		'projectLimit: svc.project.deployment.clusters must count the kind tag'),
	(tag(limit={**REFUSAL, 'most': 5}), 'resource tag: projectLimit: the resource has a limit already'),
	# references
	(board(to='tag_sett'), 'resource tag_board: references[0].to: no resource tag_sett'),
	(board(to='project_settings'), 'references[0].to: project_settings has no key'),
	(board(to='tag_rule'), 'references[0].to: tag_rule belongs to something else'),
	(board(ondelete='refuse'), 'references[0]: nobody knows ondelete'),
	(board(onDelete='ignore'), 'references[0].onDelete: must be "refuse"'),
	(board(onDelete='cascade'), 'references[0].onDelete: must be "refuse", and "inUse" says how, or "cascade"'),
	(board(list='show'), 'references[0].list: no field show in the schema TagBoard'),
	(board(list='id'), 'references[0].list: id must be a list'),
	(board(field='name'), "references[0].list: its elements' name must be texts"),
	(lambda notes, tags: tags['resources']['tag_board']['references'][0].pop('missing'),
		'references[0]: needs missing and onDelete'),
	(lambda notes, tags: tags['resources']['tag_board']['references'][0].pop('list'), 'references[0].field: no field set'),
	(lambda notes, tags: tags['schemas']['TagBoard']['properties']['shows'].pop('maxItems'), 'list: shows needs maxItems'),
	(without('tag_set', 'limit'), 'resource tag_set: references[1].onDelete: the cascade goes round in a circle'),
	(lambda notes, tags: tags['resources']['tag_set']['references'][0].update(onDelete='refuse', inUse=REFUSAL) or
		tags['lifecycles']['tag']['transitions'].append({'from': 'ACTIVE', 'to': None, 'by': 'fault', 'word': 'LOST'}),
		'references[0].onDelete: tag can end without a DELETE'),
	# operations
	(row('getTag', resorce='tag'), 'getTag: resorce: nobody knows this key'),
	(row('getTag', method='POST'), 'getTag: method: the verb get is for GET'),
	(row('getTag', filters={'name': 'name'}), 'getTag: filters: are for the verb list'),
	(row('getTag', path='/groups/{groupId}/labelSets/{tagId}'), 'getTagSet: path: getTag has it too'),
	(row('getTag', pathParams=[]), 'getTag: pathParams: must be those of the path'),
	(row('getTag', sunset={'2020-01-01': '2021-01-01'}), 'getTag: sunset: 2020-01-01 is none of its versions'),
	(row('createTag', olderVersions={'2022-01-01': {}}), 'createTag: olderVersions: 2022-01-01 is none of its versions'),
	(row('createTag', olderVersions={'2023-01-01': {'reqest': {}}}), 'createTag: olderVersions.2023-01-01.reqest: nobody knows'),
	(row('createTag', olderVersions={'2023-01-01': {'request': {'$ref': 'Note'}}}),
		'createTag: olderVersions.2023-01-01.request: no field follows in the schema Tag'),
	(row('createTag', olderVersions={'2023-01-01': {'response': {'$ref': 'Note'}}}),
		'createTag: olderVersions.2023-01-01.response: no field follows in the schema Tag'),
	(row('listTags', filters={'color': 'colour'}), 'listTags: filters.color: colour is no field of texts'),
	(row('listTags', filters={'color': 'pin'}), 'listTags: filters.color: pin is no field of texts'),
	(row('listTags', filters={'color': 'createdBy'}), 'listTags: filters.color: createdBy is no field of texts'),
	(row('listTags', response={'$ref': 'Tag'}), 'listTags: response: a list answers with an array, or with results'),
	(row('listTags', queryParams=[{'name': 'color', 'tpye': 'string'}]), 'listTags: queryParams.color.tpye: nobody knows'),
	(without('tag', 'name'), 'getTagByName: byName: the resource tag has no name'),
	(lambda notes, tags: tags['operations'][0].pop('handler'), 'listTags: handler: is missing'),
	# lifecycles
	(state({'from': 'ACTIVE', 'to': 'NEW', 'by': 'call', 'word': 'CHANG'}), 'lifecycle tag: word CHANG: nobody says it'),
	(lambda notes, tags: tags['operations'].remove(next(o for o in tags['operations'] if o['operationId'] == 'deleteTag')),
		'lifecycle tag: word DELETE: no operation says it'),
	(state(when={'colour': 'RED'}), 'lifecycle tag: when: the field colour cannot have the value RED'),
	(state(when={'color': 'PINK'}), 'lifecycle tag: when: the field color cannot have the value PINK'),
	(state(kind='tagg'), 'lifecycle tag: kind: no resource tagg with a schema'),
	(state(transitions={}), 'lifecycle tag: a lifecycle has field, states, transitions'),
])
def test_faults(change, words):
	found = faults(change)
	assert any(words in fault for fault in found), found


@pytest.mark.parametrize('schema, place, words', [
	({'type': 'string', 'maxLenght': 3}, '', 'maxLenght: nobody knows this key'),
	({'properties': {'a': {'type': 'text'}}}, '.a', 'type: nobody knows text'),
	({'items': {'format': 'datetime'}}, '[]', 'format: nobody knows datetime'),
	({'allOf': [{'$ref': 'Nobody'}]}, '', '$ref: no schema Nobody'),
	({'properties': {'a': 'string'}}, '.a', 'must be an object'),
])
def test_schemas(schema, place, words):
	assert list(api_rows.schema_faults(schema, {None, 'date-time'}, {})) == [(place, words)]


KINDS = {'Named': {'type': 'object', 'allOf': [{'$ref': 'Part'}], 'properties': {'flag': {'type': 'boolean'}, 'inner': {'$ref': 'Part'}}},
	 'Part': {'type': 'object', 'properties': {'size': {'type': 'string', 'enum': ['S', 'L']}, 'key': {'type': 'string', 'writeOnly': True},
						   'limit': {'type': 'integer', 'nullable': True}}}}


@pytest.mark.parametrize('shows,words', [
	({'flag': False, 'size': 'S', 'inner': {}, 'limit': None}, None), ({'nothing': 1}, 'has no field nothing'),
	({'flag': 'no'}, 'flag: is no value of the field'), ({'size': 'XL'}, 'size: is no value of the field'),
	({'key': 'x'}, 'key: is never shown'), ({'flag': None}, 'flag: is no value of the field')])
def test_what_is_shown(shows, words):
	named = {**KINDS, 'Named': {**KINDS['Named'], 'shows': shows}}
	assert [what for _, what in api_rows.schema_faults(named['Named'], {None}, named)] == (['shows: ' + words] if words else [])


def test_which_schemas_show_something():
	named = {**KINDS, 'Part': {**KINDS['Part'], 'shows': {'size': 'S'}}, 'List': {'type': 'array', 'items': {'$ref': 'Named'}},
		 'Other': {'type': 'object', 'properties': {'a': {'type': 'string'}}}, 'Circle': {'properties': {'next': {'$ref': 'Circle'}}},
		 'Choice': {'discriminator': {'propertyName': 'a', 'mapping': {'x': 'List'}}}}
	assert api_rows.showing(named) == {'Named', 'Part', 'List', 'Choice'}


def build(tmp_path, change):
	"""What the generator itself says to a spoilt family of notes; `change` takes its text."""
	spoilt = tmp_path / 'notes.json'
	text = change((ROOT / 'test/example/api/notes.json').read_text(encoding='utf-8'))
	spoilt.write_text(text, encoding='utf-8')
	files = [path if path.stem != 'notes' else spoilt for path in FILES]
	done = subprocess.run([ROOT / 'script/gen-catalog', tmp_path / 'out.c', tmp_path / 'out.h', *files], capture_output=True,
		text=True, timeout=60)
	assert (done.returncode == 0) == (tmp_path / 'out.c').exists()
	return done.stderr


def test_the_build_goes_on(tmp_path):
	assert build(tmp_path, lambda text: text) == ''


@pytest.mark.parametrize('old, new, words', [
	('"busy":', '"buzy":', 'api/notes.json: resource note: buzy: nobody knows this key\n'),
	('"keyIsName": true,\n   "notFound": "NOTE_NOT_FOUND",', '"keyIsName": true,',
		'api/notes.json: resource note: notFound: needs the code of a 404, since it has a key\n'),
	('"notFound": "NOTE_NOT_FOUND"', '"notFound": "note not found"', 'api/notes.json: resource note: notFound: must be a word in capitals\n'),
	('"notFound": "NOTE_NOT_FOUND",', '"notFound": "NOTE_NOT_FOUND",\n"elsewhere": {"kind": "tag", "status": 400, "code": "A_TAG", "text": "{name}"},',
		'api/notes.json: resource note: elsewhere: is for resources of projects that are found by their name\n'),
	('"lifecycles":', '"lifecyles":', 'api/notes.json: lifecyles: nobody knows this key\n'),
	('"note_comment": {\n', '"note": {\n', 'api/notes.json: note: is written twice\n'),
	('"note_comment": {\n', '"tag": {\n', 'api/tags.json: resource tag: stands in api/notes.json too\n'),
	('"operationId": "getNote",', '"operationId": "getTag",', 'api/tags.json: getTag: stands in api/notes.json too\n'),
	('"id": "S99",', '"id": "S98",', 'api/tags.json: set S98: stands in api/notes.json too\n'),
	('"text": {"type": "string", "minLength": 1}', '"text": {"type": "string", "minLenth": 1}',
		'api/notes.json: NoteComment.text: minLenth: nobody knows this key\n'),
	('"resource": "note",\n   "roles": ["GROUP_READ_ONLY"]', '"resource": "note",\n   "role": ["GROUP_READ_ONLY"]',
		'api/notes.json: listNotes: role: nobody knows this key\n'),
])
def test_the_build_stops(tmp_path, old, new, words):
	assert build(tmp_path, lambda text: text.replace(old, new, 1)) == words
