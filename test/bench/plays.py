"""What a greedy tenant calls, from the API's own data: each operation of a family, on things that are there, with a body that it takes and that
is another each time."""
import json, os, pathlib, re, sys, time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'api'))
from derive import BASE, HEX24, Api

NUMBER = '%NUMBER%'  # becomes another number with each call
VARIED = ('name', 'roleName', 'desc', 'displayName', 'bucketName', 'clusterName')
KEPT = ('deleteGroup', 'deleteOrg', 'migrateGroup')  # what all others are called on
FIRST = ('clusters', 'teams', 'users')  # what others name comes first


def varied(body):
	"""With names that no call before had, where a body has some: a thousand creates, not one and 999 refusals."""
	if isinstance(body, list):
		return [varied(one) for one in body]
	if not isinstance(body, dict):
		return body
	out = dict(body)
	for key in VARIED:
		if isinstance(out.get(key), str):
			out[key] = (out[key][:12] or 'x') + NUMBER
	if '@' in str(out.get('username')):
		out['username'] = 'p%s@example.com' % NUMBER
	elif isinstance(out.get('username'), str):
		out['username'] += NUMBER
	return out


def value_of(doc, param):
	"""What names this document in a path."""
	names = [param] + (['name'] if param.endswith('Name') or param == 'name' else []) + ['id', '_id', 'name', 'clientId', 'username']
	found = next((doc[n] for n in names if isinstance(doc.get(n), (str, int))), None)
	return None if found is None else str(found)


class Plays:
	"""`call(method, path, body text)` -> (status, body); `ids`: of the tenant."""

	def __init__(self, call, ids):
		self.data, self.call, self.ids, self.lists, self.made = Api(), call, ids, {}, {}

	def families(self):
		"""Family -> its operations, of those that do anything."""
		out = {}
		for op in self.data.built():
			out.setdefault(op['family'], []).append(op)
		return out

	def settled(self):
		"""What was made is there, as far as it comes within some seconds: clusters take a while."""
		end = time.monotonic() + 15
		path = BASE + '/groups/%s/clusters' % self.ids['groupId']
		while time.monotonic() < end and any(c['stateName'] != 'IDLE' for c in json.loads(self.call('GET', path, None)[1]).get('results', [])):
			time.sleep(0.2)
		self.lists = {}

	def prepare(self):
		"""One of each thing that can be made."""
		ops, settled = [op for op in self.data.built() if op['method'] == 'POST'], False
		for op in sorted(ops, key=lambda o: (FIRST.index(o['family']) if o['family'] in FIRST else len(FIRST), o['path'].count('/'))):
			if op['operationId'] in KEPT:
				continue
			if op['family'] not in FIRST and not settled:
				settled = self.settled() or True
			path, body = self.path(op), self.text(op)
			status, text = self.call('POST', path, body and body.replace(NUMBER, '-0'))
			if 200 <= status < 300:
				self.keep(path, text)
		self.lists = {}

	def keep(self, path, text):
		try:
			doc = json.loads(text)
		except ValueError:
			return
		if isinstance(doc, list) or isinstance(doc.get('results'), list):
			doc = next(iter(doc if isinstance(doc, list) else doc['results']), None)
		if isinstance(doc, dict):
			self.made.setdefault(path, doc)

	def known(self, collection, param):
		"""Of something that is there; None: nothing is."""
		if collection not in self.made and collection not in self.lists:
			self.lists[collection] = True
			status, text = self.call('GET', collection, None)
			if status == 200:
				self.keep(collection, text)
		return value_of(self.made[collection], param) if collection in self.made else None

	def path(self, op):
		params = {p['name']: p for p in op['pathParams']}
		path, query = self.data.path({**op, 'pathParams': []}), self.data.query(op)
		while '{' in path:
			at = re.search(r'\{(\w+)\}', path)
			name = at.group(1)
			value = self.ids.get(name) or self.known(path[:at.start()].rstrip('/'), name) or self.data.parameter(params[name]) or HEX24
			path = path[:at.start()] + value + path[at.end():]
		return path + query

	def text(self, op):
		"""Its body; None: it has none."""
		body = self.data.good(op, **{'teamId': HEX24, **self.ids})
		return None if body is None else json.dumps(varied(body))

	def calls(self, operations):
		"""(set, method, path, body)."""
		return [(op['set'], op['method'], self.path(op), self.text(op)) for op in operations if op['operationId'] not in KEPT]


def play(call, calls, until, now):
	"""Each again and again until its bucket is empty or the time is over. Set -> [calls, those that did something, whether it was empty]."""
	number, found = 0, {}
	while calls and now() < until:
		for one in list(calls):
			set_id, method, path, body = one
			number += 1
			status, _ = call(method, path, body and body.replace(NUMBER, '-%d-%d' % (os.getpid(), number)))
			tally = found.setdefault(set_id, [0, 0, False])
			tally[0] += status > 0
			tally[1] += 200 <= status < 300
			tally[2] |= status == 429
			if status in (0, 405, 429, 501) or now() > until:
				calls.remove(one)
	return found


def merged(parts):
	out = {}
	for part in parts:
		for set_id, (calls, good, empty) in part.items():
			tally = out.setdefault(set_id, [0, 0, False])
			out[set_id] = [tally[0] + calls, tally[1] + good, tally[2] or empty]
	return out
