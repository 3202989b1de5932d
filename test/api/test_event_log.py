"""The log that all other tests left: every event of it, of whatever family, fits the form of its type in each list that
shows it, holds no secret, and the chain is whole."""
import collections, json

import pytest

from client import cli
from derive import Api
from recordings import form

pytestmark = pytest.mark.last
api = Api()
SECRET_NAMES = ('privateKey', 'clientSecret', 'password', 'secret"')


def events(server):
	return server.rows('SELECT type, body, raw, org_pos, group_pos FROM event')


def test_every_event_fits_its_form(server):
	bad, seen, forms = collections.Counter(), set(), set()
	for type_name, body, raw, in_org, in_group in events(server):
		seen.add(type_name)
		this = form('%s %d %d %s %s' % (type_name, bool(in_org), bool(in_group), body, raw))
		if this in forms:
			continue
		forms.add(this)
		document = {**json.loads(body), 'raw': json.loads(raw)}
		for shown, view in ((in_org, 'EventViewForOrg'), (in_group, 'EventViewForNdsGroup')):
			for fault in api.faults({'$ref': view}, document) if shown else []:
				bad['%s in %s: %s' % (type_name, view, fault)] += 1
		if not in_org and not in_group and not any(op.get('eventUnlisted') for op in api.ops if op.get('event') == type_name):
			bad[type_name + ' stands in no list'] += 1
	assert not bad, '\n'.join('%dx %s' % (n, k) for k, n in bad.most_common(40))
	assert seen


def test_events_hold_no_secrets(server):
	known = [server.bootstrap['apiKey']['privateKey'], server.bootstrap['serviceAccount']['clientSecret'], server.token()]
	for _, body, raw, _, _ in events(server):
		assert not [s for s in known if s in body + raw]
		assert not [n for n in SECRET_NAMES if '"' + n in body], body


def test_the_chain_is_whole(server):
	assert 'clean' in cli('check', '--data', server.data_dir).stdout
