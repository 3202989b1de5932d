"""What was read can be sent back, without what callers cannot set, and changes nothing: declarative tools do so."""
import re

import versions
from client import BASE, ok

# What tells of the change itself.
PASSING = {'links', 'updated', 'updatedAt', 'updatedDate', 'updatedUser', 'lastUpdatedDate', 'lastUpdatedByUser', 'nextSnapshot',
	   'lastNotified', 'lastAuth', 'lastUsedAt', 'lastUsed', 'lastUsedAddress', 'count', 'requestCount', 'version'}
# What is asked for has no part of what is shown, or names it otherwise.
APART = {'acknowledgeAlert', 'updateOrgInviteById'}


def parts(data, schema, value):
	"""{field: schema} of an object, with those of the branch that it is of."""
	fields = dict(data.merged(schema)[0])
	plain = data.resolve(schema)
	mapping = plain.get('discriminator', {}).get('mapping')
	if mapping:
		named = mapping.get(value.get(plain['discriminator']['propertyName']))
		branches = [{'$ref': named}] if named else []
	else:
		branches = sorted(plain.get('oneOf', []), key=lambda b: len(data.faults(b, value)))[:1]
	for b in branches:
		fields.update(data.merged(b)[0])
	return fields


def sendable(data, schema, value):
	"""The value without what a caller cannot send."""
	plain = data.resolve(schema)
	if isinstance(value, list):
		return [sendable(data, plain.get('items', {}), v) for v in value]
	if not isinstance(value, dict) or not (plain.get('properties') or plain.get('allOf') or plain.get('oneOf')):
		return value
	fields = parts(data, schema, value)
	return {k: sendable(data, fields[k], v) for k, v in value.items() if k in fields and not data.read_only(fields[k])}


def lasting(value):
	if isinstance(value, dict):
		return {k: lasting(v) for k, v in value.items() if k not in PASSING}
	return [lasting(v) for v in value] if isinstance(value, list) else value


def differences(a, b, where=''):
	"""Where two documents differ."""
	if isinstance(a, dict) and isinstance(b, dict):
		return [d for k in sorted(set(a) | set(b)) for d in differences(a.get(k), b.get(k), '%s.%s' % (where, k))]
	if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
		return [d for i in range(len(a)) for d in differences(a[i], b[i], '%s[%d]' % (where, i))]
	return [] if a == b else ['%s: %r became %r' % (where or 'all', a, b)]


def sent_back(data, api, paths, settled):
	"""({path: what is wrong}, operations that were called) of reading each path and sending it back to all that change it. settled(path)
	waits until a change has come to pass."""
	wrong, called = {}, set()
	for path in paths:
		for op in data.fitting(path[len(BASE):]):
			if op['method'] not in ('PATCH', 'PUT') or op['handler'] == 'unbuilt' or op['operationId'] in APART:
				continue
			before = ok(api.get(path))
			if isinstance(before, list) or 'results' in before:
				continue
			body = sendable(data, op['request'], before)
			if not body or (op['request'] != op.get('response') and data.faults(op['request'], body)):
				continue  # another form
			r = api.request(op['method'], path, json=body)
			if r.status_code >= 300:
				wrong['%s %s' % (op['operationId'], path)] = '%r -> %s' % (body, re.sub(r'\s+', ' ', r.text)[:300])
				continue
			called.add(op['operationId'])
			settled(path)
			changed = differences(lasting(before), lasting(ok(api.get(path))))
			if changed:
				wrong['%s %s' % (op['operationId'], path)] = changed
	return wrong, called


def changers(data, path):
	for op in data.fitting(path[len(BASE):]):
		if op['method'] in ('PATCH', 'PUT') and op['handler'] != 'unbuilt' and op['operationId'] not in APART:
			yield op


def sent_back_older(data, api, paths, settled):
	"""The same in each older version of the operation: neither what that version shows has changed, nor what the newest does."""
	wrong, called = {}, set()
	for path in paths:
		for op in changers(data, path):
			for date in sorted(op.get('olderVersions', {})):
				form = {'Accept': versions.media(op, date)}
				before, newest = ok(api.get(path, headers=form)), ok(api.get(path))
				body = sendable(data, versions.row(op, date)['request'], before)
				r = api.request(op['method'], path, json=body, headers={**form, 'Content-Type': versions.media(op, date, 'json')})
				where = '%s %s %s' % (op['operationId'], date, path)
				if r.status_code >= 300:
					wrong[where] = '%r -> %s' % (body, re.sub(r'\s+', ' ', r.text)[:300])
					continue
				called.add((op['operationId'], date))
				settled(path)
				changed = differences(lasting(before), lasting(ok(api.get(path, headers=form)))) + \
					differences(lasting(newest), lasting(ok(api.get(path))))
				if changed:
					wrong[where] = changed
	return wrong, called


def sent_back_in(data, api, paths, settled, words):
	"""The same in the words of a dialect, whose answers are whole."""
	wrong, called = {}, set()
	for path in paths:
		theirs = words.url_out(path)
		for op in changers(data, path):
			before, ours = ok(api.get(theirs)), ok(api.get(path))
			if isinstance(before, list) or 'results' in before:
				continue
			body = sendable(data, op['request'], words.body_in(before))
			if not body or (op['request'] != op.get('response') and data.faults(op['request'], body)):
				continue  # another form
			r = api.request(op['method'], theirs, json=words.body_out(body))
			where = '%s %s' % (op['operationId'], theirs)
			if r.status_code >= 300:
				wrong[where] = '%r -> %s' % (words.body_out(body), re.sub(r'\s+', ' ', r.text)[:300])
				continue
			called.add(op['operationId'])
			settled(path)
			changed = differences(lasting(before), lasting(ok(api.get(theirs)))) + differences(lasting(ours), lasting(ok(api.get(path))))
			if changed:
				wrong[where] = changed
	return wrong, called
