"""One grammar: every command takes the same options in the same places, whether it is derived from the data or written by hand; what
cannot be undone wants to hear it; names that are nearly right get the right ones; help is at every level; what is not built says so."""
import re

import pytest

import client, derive
from client import ok
from test_cli_derived import (API, DONE, NOT_DONE, UNREACHED, USAGE, body_flags, dry, home, kebab, param_values, path_values, run, service, words_of)  # noqa: F401

FORMS = [['-o', f] for f in ('table', 'wide', 'json', 'yaml', 'name')] + [['-ojson'], ['--output=yaml'], ['--query', 'results.*.name']]
HANDS = ['clusters list', 'clusters get c', 'clusters create c', 'clusters delete c', 'clusters pause c', 'clusters resume c', 'clusters scale c --size M30',
	 'backups take c', 'backups restore c --snapshot %s' % derive.HEX24, 'backups restore c --to 5m', 'backups show c', 'backups window c', 'advisor build c']
STATES = {'clusters create c', 'clusters delete c', 'clusters pause c', 'clusters resume c', 'clusters scale c --size M30', 'backups take c',
	  'backups restore c --snapshot %s' % derive.HEX24, 'advisor build c'}
FAMILIES = sorted({words_of(op)[0] for op in API.ops})


def line_of(op):
	"""A whole line for the operation, with what it needs."""
	values = path_values(op)
	named = op['method'] == 'DELETE' and re.search(r'\{(groupId|orgId)\}$', op['path'])
	words = [v for n, v in values.items() if named or n not in ('groupId', 'orgId')]
	body = API.good(op, **{**values, 'groupId': '5f0000000000000000000011', 'orgId': '5f0000000000000000000022', 'teamId': derive.HEX24})
	required = ['--%s=%s' % (kebab(p['name']), v) for p in op.get('queryParams', []) if p.get('required') for v in param_values(p)]
	return [*words_of(op), *words, *required, *(body_flags(API.full(op['request']) if body == [] else body) if body is not None else [])]


@pytest.mark.parametrize('family', FAMILIES)
def test_every_command_has_every_form(dry, family):  # noqa: F811
	"""Behind it and before it; the call is the same."""
	for op in API.ops:
		if words_of(op)[0] != family:
			continue
		line = line_of(op) + (['--page-num', '1'] if op['command'] == 'clusters list' else [])  # which by itself asks for all
		usual = dry(*line, '--dry-run').stdout
		for i, form in enumerate(FORMS):
			place = [*form, *line] if i % 2 and family not in ('clusters', 'events') else [*line, *form]
			assert dry(*place, '--dry-run').stdout == usual, (op['command'], form)
		assert dry(*line, '--dry-run=curl').stdout.startswith('curl ')


@pytest.mark.parametrize('line', HANDS)
def test_so_do_those_that_are_written_by_hand(dry, line):  # noqa: F811
	"""Those that have to ask the service first do so."""
	more = [['--watch'], ['--wait']] if line in STATES and not line.startswith('advisor') else [['--wait']] if line in STATES else []
	for form in FORMS + more + [['--dry-run=curl']]:
		done = dry(*line.split(), *form, *([] if 'dry' in form[0] or 'show' in line or 'window' in line else ['--dry-run']), check=False)
		if form == ['--dry-run=curl'] and ('show' in line or 'window' in line):
			continue
		assert done.returncode in (DONE, UNREACHED), (line, form, done.stderr)
		assert dry(*line.split(), '-o', 'xml', check=False).returncode == USAGE


def test_wide_tables(run, service):  # noqa: F811
	name = client.unique('wide')
	group = service.project()['id']
	run('database-users', 'create', name, '--project', group, '--password', 'a-long-password-1', '--roles.role-name', 'read', '--roles.database-name', 'shop')
	plain, wide = (run('database-users', 'list', '--project', group, '-o', form).stdout.splitlines() for form in ('table', 'wide'))
	assert len(plain) == len(wide) == 2 and len(wide[0].split()) > len(plain[0].split()) and name in wide[1]


def is_final(op):
	"""By the names of commands, and by what their rows say."""
	return op.get('final') or op.get('danger') == 'name' or (op['command'].split()[-1].startswith('delete') and op['method'] == 'DELETE')


@pytest.mark.parametrize('family', FAMILIES)
def test_what_cannot_be_undone_wants_to_hear_it(dry, family):  # noqa: F811
	"""Without a terminal: nothing is sent before --yes, and of all else nobody is asked."""
	for op in API.ops:
		if words_of(op)[0] != family or op['method'] == 'GET':
			continue
		line = line_of(op)
		done = dry(*line, check=False)
		if is_final(op):
			assert done.returncode == NOT_DONE and 'give --yes' in done.stderr and done.stdout == '', (op['command'], done)
			done = dry(*line, '--yes', check=False)
		assert done.returncode == UNREACHED, (op['command'], done)


def test_also_of_those_that_are_written_by_hand(dry):  # noqa: F811
	for line in ('clusters delete c', 'backups restore c --snapshot %s' % derive.HEX24):
		done = dry(*line.split(), check=False)
		assert done.returncode == NOT_DONE if 'restore' not in line else done.returncode in (NOT_DONE, UNREACHED)
		assert 'give --yes' in done.stderr or done.returncode == UNREACHED
		assert dry(*line.split(), '--yes', check=False).returncode == UNREACHED


# Near names.

def test_near_names_on_every_404(run, service):  # noqa: F811
	"""Whatever was not found: the name that is near; of what has ids, by the name of what they are of."""
	name, group = client.unique('orders'), service.project()['id']
	at = ('--project', group)
	run('clusters', 'create', name, '--wait', *at)
	run('database-users', 'create', name, '--password', 'a-long-password-1', '--roles.role-name', 'read', '--roles.database-name', 'shop', *at)
	run('access-list', 'add', '10.7.8.0/24', *at)
	team = ok(service.post('/orgs/%s/teams' % service.org, json={'name': name, 'usernames': ['owner@localhost']}))
	typed = name[:2] + name[3:]
	for line in ('clusters get %s', 'clusters get %s -o json', 'clusters update %s --backup-enabled', 'clusters pause %s', 'clusters delete %s --yes', 'backups show %s',
		     'backups snapshots list %s', 'backups take %s', 'database-users get admin %s', 'advisor build %s', 'clusters process-args get %s',
		     'database-users delete admin %s --yes', 'logs %s', 'api GET /groups/{groupId}/clusters/%s'):
		done = run(*(line % typed).split(), *at, check=False)
		assert done.returncode in (NOT_DONE, USAGE) and name in done.stderr, (line, done)
		assert 'did you mean' in done.stderr, (line, done)
	done = run('access-list', 'remove', '10.7.9.0/24', *at, check=False)
	assert done.returncode == NOT_DONE and 'did you mean "10.7.8.0/24"?' in done.stderr, done
	done = run('teams', 'get', typed, check=False)
	assert 'did you mean %s (%s)?' % (team['id'], name) in done.stderr, done
	project = ok(service.get('/groups/' + group))['name']
	done = run('clusters', 'list', '--project', project[:2] + project[3:], check=False)
	assert done.returncode == USAGE and 'there is no project' in done.stderr and 'did you mean "%s"?' % project in done.stderr, done
	done = run('backups', 'snapshots', 'get', name, derive.HEX24, *at, check=False)
	assert done.returncode == NOT_DONE and 'did you mean' not in done.stderr, 'the cluster is there, and there is no snapshot'
	done = run('clusters', 'get', 'entirely-different', *at, check=False)
	assert 'there is %s' % name in done.stderr, 'few are told'


# Help.

def test_help_at_every_level(dry):  # noqa: F811
	parts = {tuple(words_of(op)[:2]) for op in API.ops if len(words_of(op)) == 3}
	assert len(parts) > 20
	for part in parts:
		text = dry(*part, '--help').stdout
		for op in API.ops:
			if words_of(op)[:2] == list(part) and len(words_of(op)) == 3:
				assert re.search(r'^  %s\b' % words_of(op)[2], text, re.M) and op['summary'][:30] in ' '.join(text.split()), op['command']
		assert dry('help', *part).stdout == text == dry(*part, '-h').stdout
	for line in HANDS + ['connect c', 'logs c', 'events', 'login', 'config', 'api GET /x', 'clusters wait c', 'clusters ca']:
		assert dry(*line.split(), '--help').stdout.startswith('Usage: steward '), line


def test_what_is_not_built_says_so(dry):  # noqa: F811
	every = dry('--help').stdout
	for family in FAMILIES:
		rows = [op for op in API.ops if words_of(op)[0] == family]
		unbuilt = [op for op in rows if op['handler'] == 'unbuilt']
		flat = ' '.join(dry(family, '--help').stdout.split())
		block = re.search(r'^  %s\b.*(\n {10,}.*)*' % family, every, re.M).group()
		assert ('(not built)' in ' '.join(block.split())) == (len(unbuilt) == len(rows)), family
		assert ('is not built' in flat) == (len(unbuilt) == len(rows))
		if len(unbuilt) < len(rows):
			assert flat.count('(not built)') == len(unbuilt), family
		for op in unbuilt[:1] + [o for o in rows if o not in unbuilt][:1]:
			assert ('Not built: ' in dry(*words_of(op), '--help').stdout) == (op in unbuilt)
