"""The API as data, for tests: the operations and schemas of api/, bodies made from a schema, and ways to spoil them.

What is tested for all operations is derived here from the same files that the server is built from; what the server
makes of them is not reused, so that a fault in its tables shows."""
import copy, json, re
try:
	from re import _parser as regex_parser
except ImportError:
	import sre_parse as regex_parser

from client import BASE, ROOT

HEX24 = '5f0000000000000000000001'

# What a good body has beyond what its schema requires: fields that the family checks, by the operation's name. Values
# that are functions get the ids of the caller's scope.
SOMEBODY = 'someone@example.com'
POLICY = {'name': 'sample', 'policies': [{'body': 'forbid(principal, action == ResourcePolicy::Action::"cluster.modify", '
					  'resource) when { context.cluster.regions.contains('
					  'ResourcePolicy::Region::"aws:eu-west-1") };'}]}
CLUSTER = {'name': 'sample', 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [
	{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'priority': 7,
	 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}]}]}
ALERT = {'eventTypeName': 'JOINED_GROUP', 'notifications': [{'typeName': 'EMAIL', 'emailAddress': SOMEBODY}]}
MORE = {
	'addGroupTeams': lambda ids: [{'teamId': ids['teamId'], 'roleNames': ['GROUP_READ_ONLY']}],
	'addGroupUser': {'username': SOMEBODY, 'roles': ['GROUP_READ_ONLY']},
	'addGroupUserRole': {'groupRole': 'GROUP_READ_ONLY'},
	'addGroupUsers': {'roles': ['GROUP_READ_ONLY']},
	'acknowledgeAlert': {'acknowledgedUntil': '2099-01-01T00:00:00Z'},
	'createAlertConfig': ALERT,
	'createAccessListEntry': [{'ipAddress': '192.0.2.15'}],
	'createDataFederation': {'name': 'sample'},
	'createPrivateEndpointId': {'endpointId': 'vpce-0123456789abcdef0'},
	'createBackupRestoreJob': {'deliveryType': 'automated', 'snapshotId': HEX24, 'targetClusterName': 'sample'},
	'createClusterRestoreJob': {'delivery': {'methodName': 'HTTP'}, 'snapshotId': HEX24},
	'createCluster': CLUSTER,
	'createBackupPrivateEndpoint': {'regionName': 'US_EAST_1'},
	'createCustomDbRole': {'roleName': 'sample', 'actions': [{'action': 'FIND', 'resources': [{'cluster': False, 'db': 'a', 'collection': ''}]}]},
	'createDatabaseUser': lambda ids: {'groupId': ids['groupId'], 'password': 'a-long-password-1', 'username': 'sample',
					   'roles': [{'roleName': 'read', 'databaseName': 'a'}]},
	'createFlexCluster': {'providerSettings': {'backingProviderName': 'AWS', 'regionName': 'US_EAST_1'}},
	'createGroup': lambda ids: {'orgId': ids['orgId']},
	'createGroupApiKey': {'roles': ['GROUP_READ_ONLY']},
	'createGroupInvite': {'username': SOMEBODY, 'roles': ['GROUP_READ_ONLY']},
	'createGroupServiceAccount': {'roles': ['GROUP_READ_ONLY'], 'secretExpiresAfterHours': 8},
	'createGroupLogIntegration': {'logTypes': ['DB']},
	# A mapping of nothing is refused.
	'createClusterSearchIndex': {'definition': {'mappings': {'dynamic': {}}}},
	'updateClusterSearchIndex': {'definition': {'mappings': {'dynamic': {}}}},
	'updateIndexByName': {'definition': {'mappings': {'dynamic': {}}}},
	'createClusterFtsIndex': {'mappings': {'dynamic': True}},
	'updateClusterFtsIndex': {'mappings': {'dynamic': True}},
	'createIdentityProvider': {'displayName': 'sample', 'issuerUri': 'https://127.0.0.1:1/sample', 'protocol': 'OIDC',
				   'idpType': 'WORKLOAD', 'audience': 'sample'},
	'createPrivateEndpoint': {'id': 'vpce-0123456789abcdef0'},
	'createPrivateEndpointService': {'providerName': 'AWS', 'region': 'US_EAST_1'},
	'createOrgInvite': {'username': SOMEBODY, 'roles': ['ORG_MEMBER']},
	'createOrgResourcePolicy': POLICY,
	'createOrgServiceAccount': {'secretExpiresAfterHours': 8},
	'createRollingIndex': {'db': 'postgres', 'collection': 'orders', 'keys': [{'customer': '1'}]},
	'createUser': lambda ids: {'roles': [{'orgId': ids['orgId'], 'roleName': 'ORG_MEMBER'}]},
	'migrateGroup': lambda ids: {'destinationOrgId': ids['orgId']},
	'removeGroupUserRole': {'groupRole': 'GROUP_READ_ONLY'},
	'updateAlertConfig': ALERT,
	'updateGroupInvites': {'username': SOMEBODY, 'roles': ['GROUP_READ_ONLY']},
	'updateGroupLogIntegration': {'logTypes': ['DB']},
	'updateGroupUserRoles': {'groupRoles': ['GROUP_READ_ONLY']},
	'updateOrgInvites': {'username': SOMEBODY, 'roles': ['ORG_MEMBER']},
	'updateOrgUserRoles': {'orgRoles': ['ORG_MEMBER']},
	'upgradeClusterToServerless': {'name': 'nothing'},
	'validateGroupClusterConfigurations': {'clusterDescription': CLUSTER},
	'validateResourcePolicies': POLICY,
}

# What a path says that goes with a body as it is made here: the first form of several.
PATHS = {'integrationType': 'DATADOG'}


class Api:
	def __init__(self, folder=ROOT / 'api'):
		self.ops, self.sets, self.schemas, self.current = [], {}, {}, None
		self.resources, self.not_found, self.fitted = {}, {}, {}
		for file in sorted(folder.glob('*.json')):
			data = json.loads(file.read_text())
			if file.name == 'roles.json':
				self.roles = data
				continue
			if 'operations' not in data:
				continue
			self.current = data.get('currentVersion', self.current)
			self.schemas.update(data.get('schemas', {}))
			self.resources.update(data.get('resources', {}))
			self.not_found.update(data.get('notFound', {}))
			for s in data.get('sets', []):
				self.sets[s['id']] = {**s, 'ops': []}
			for op in data['operations']:
				self.ops.append({**op, 'family': data['family']})
		self.by_id = {op['operationId']: op for op in self.ops}
		for op in self.ops:
			op['limits'] = self.sets[op['set']]
			self.sets[op['set']]['ops'].append(op)
		self.paths = {}
		for op in self.ops:
			self.paths.setdefault(op['path'], []).append(op)
		self._close_roles()
		self._patterns, self._merged, self._branches = {}, {}, {}
		# By method and depth: a parameter holds no slash.
		self._routes = {}
		for o in sorted(self.ops, key=lambda o: (o['path'].count('{'), -len(o['path']))):
			pattern = re.compile('^' + re.sub(r'\\\{[^}]*\\\}', '[^/]+?', re.escape(o['path'])) + '$')
			self._routes.setdefault((o['method'], o['path'].count('/')), []).append((pattern, o))

	def fitting(self, path):
		"""The operations whose path it is, whatever the method."""
		return [op for rows in self._routes.values() for pattern, op in rows if pattern.match(path)]

	def match(self, method, path):
		"""The operation of a path below the base."""
		for pattern, op in self._routes.get(('GET' if method == 'HEAD' else method, path.count('/')), []):
			if pattern.match(path):
				return op

	def built(self):
		return [op for op in self.ops if op['handler'] != 'unbuilt']

	# Roles

	def _close_roles(self):
		org, project = self.roles['organization'], self.roles['project']
		self.org_roles, self.project_roles = list(org), list(project)

		def close(table, name, into):
			if name not in into:
				into.add(name)
				for x in table[name].get('includes', []):
					close(table, x, into)
			return into
		self.closure = {r: close(project, r, set()) | {'GROUP_READ_ONLY'} for r in project}
		self.in_project = {}
		for r in org:
			self.closure[r] = close(org, r, set()) | {'ORG_MEMBER'}
			self.in_project[r] = set()
			for x in self.closure[r]:
				for g in org[x].get('inEveryProject', []):
					self.in_project[r] |= self.closure[g]

	def permitted(self, op, role):
		"""Whether a member of the organization with this one role (and ORG_MEMBER) may call."""
		held = set(self.closure[role]) | {'ORG_MEMBER'}
		if '{groupId}' in op['path'] or 'orgId' not in op['path']:
			held |= self.in_project.get(role, set())
		return bool(held & set(op['roles']))

	# Paths

	def path(self, op, **values):
		"""The path with its base, the parameters filled from values or with something of the right form."""
		out = op['path']
		for p in op['pathParams']:
			out = out.replace('{%s}' % p['name'], values.get(p['name']) or PATHS.get(p['name']) or self.parameter(p))
		return BASE + out

	def parameter(self, p):
		"""A value of a parameter, as it stands in a URL."""
		value = self.minimal(p)
		text = json.dumps(value) if isinstance(value, (bool, int,
				float)) else ','.join(value) if isinstance(value, list) else value
		return re.sub(r'[^A-Za-z0-9._~:@!$&\'()*+,;=-]',
				lambda m: ''.join('%%%02X' % b for b in m.group().encode()), text)

	def query(self, op):
		"""What the query must have."""
		need = ['%s=%s' % (p['name'], self.parameter(p)) for p in op.get('queryParams',
				[]) if p.get('required') and 'default' not in p]
		return '?' + '&'.join(need) if need else ''

	# Schemas

	def resolve(self, s):
		while '$ref' in s:
			s = self.schemas[s['$ref'].split('/')[-1]]
		return s

	def merged(self, s):
		"""(fields, required names, additionalProperties) of an object, through references and allOf. Not to be changed: kept."""
		key = s.get('$ref') or id(s)
		if key not in self._merged:
			self._merged[key] = s, self._merge(s)  # with the schema, so that no other gets its id
		return self._merged[key][1]

	def _merge(self, s, seen=()):
		if '$ref' in s:
			if s['$ref'] in seen:
				return {}, [], None
			return self._merge(self.resolve(s), seen + (s['$ref'],))
		fields, required, more = dict(s.get('properties', {})), list(s.get('required',
				[])), s.get('additionalProperties')
		for part in s.get('allOf', []):
			f, r, m = self._merge(part, seen)
			fields = {**f, **fields}
			required += [x for x in r if x not in required]
			more = m if more is None else more
		return fields, required, more

	def branches(self, s):
		"""[(discriminator value or None, schema)] of a resolved schema that has alternatives, else []. Kept, as merged()."""
		if id(s) not in self._branches:
			self._branches[id(s)] = s, self._branch(s)
		return self._branches[id(s)][1]

	def _branch(self, s):
		mapping = (s.get('discriminator') or {}).get('mapping')
		if not (s.get('oneOf') or s.get('anyOf') or mapping):
			return []
		if mapping:
			return [(k, {'$ref': v.split('/')[-1]}) for k, v in mapping.items()]
		return [(None, b) for b in s.get('oneOf') or s['anyOf']]

	def minimal(self, s, depth=0):
		"""The smallest value that fits."""
		assert depth < 20, 'a schema that requires itself'
		s = self.resolve(s)
		alternatives = self.branches(s)
		if alternatives:
			key, branch = alternatives[0]
			value = self.minimal(branch, depth + 1)
			if isinstance(value, dict):
				if s.get('properties'):
					value = {**self._object(s, depth), **value}
				if key is not None:
					value = self._discriminated(s, branch, key, value)
			return value
		if 'enum' in s:
			return next(x for x in s['enum'] if x is not None)
		kind = s.get('type')
		if kind == 'string':
			return self.text(s)
		if kind in ('integer', 'number'):
			low, high = s.get('minimum'), s.get('maximum')
			value = s['default'] if isinstance(s.get('default'), (int, float)) else 1
			if low is not None:
				value = max(value, low + (1 if s.get('exclusiveMinimum') else 0))
			return min(value, high) if high is not None else value
		if kind == 'boolean':
			return False
		if kind == 'array':
			out = []
			for i in range(s.get('minItems', 0)):
				item = self.minimal(s.get('items', {}), depth + 1)
				choices = self.resolve(s.get('items', {})).get('enum')
				out.append(choices[i] if choices and i < len(choices) else item)
			return out
		if kind == 'object' or 'properties' in s or 'allOf' in s:
			return self._object(s, depth)
		return 'anything'

	def _discriminated(self, s, branch, key, value):
		name = s['discriminator']['propertyName']
		field = {**self.merged(s)[0], **self.merged(branch)[0]}.get(name, {})
		return value if self.read_only(field) else {**value, name: key}

	def _object(self, s, depth):
		fields, required, _ = self.merged(s)
		return {n: self.minimal(fields[n], depth + 1) for n in required
			if n in fields and not self.read_only(fields[n])}

	def _common(self, schemas):
		"""merged() of several: what holds whichever of them is meant."""
		all_ = [self.merged(self.resolve(x)) for x in schemas]
		first = all_[0]
		fields = {n: f for n, f in first[0].items()
			  if all(n in a[0] and self.kind(a[0][n]) == self.kind(f)
					and self.read_only(a[0][n]) == self.read_only(f)
				 for a in all_)}
		if len(all_) > 1:  # bounds and enums may differ from one to the other: types only
			fields = {n: {'type': self.kind(f), 'readOnly': self.read_only(f)} for n, f in fields.items()}
		more = None if all(a[2] in (None, False) and a[0] for a in all_) else True
		return fields, [n for n in first[1] if all(n in a[1] for a in all_)], more

	def kind(self, s):
		"""The JSON type, where there is only one."""
		s = self.resolve(s)
		if 'type' in s:
			return s['type']
		kinds = {self.kind(b) for _, b in self.branches(s)}
		if len(kinds) == 1:
			return kinds.pop()
		return 'object' if 'properties' in s or 'allOf' in s else None

	def full(self, s):
		"""minimal(), but with one item where the body is a list."""
		value = self.minimal(s)
		if value == []:
			value = [self.minimal(self.resolve(s)['items'])]
		return value

	def good(self, op, **ids):
		"""A body that the operation takes from an owner of the scope with these ids, or None where it has none."""
		if 'request' not in op:
			return None
		more = MORE.get(op['operationId'], {})
		more = more(ids) if callable(more) else more
		return copy.deepcopy(more) if isinstance(more, list) else {**self.full(op['request']), **copy.deepcopy(more)} \
			if more else self.full(op['request'])

	def read_only(self, s):
		return bool(s.get('readOnly') or self.resolve(s).get('readOnly'))

	def pattern(self, text):
		"""A pattern of the schemas for Python's engine, as near as it gets."""
		if text not in self._patterns:
			python = re.sub(r'\(\?<(?![=!])', '(?P<', text).replace(r'\p{L}\p{N}', r'\w')
			self._patterns[text] = re.compile(python)
		return self._patterns[text]

	SAMPLES = (HEX24, 'sample1', 'S-1-5', 'host1.invalid', '10.0.0.1', '10.0.0.0/24', '1.2.3', 'host1.example.com:27017',
			'someone@example.com',
		   'https://example.com/sample', 'US', 'a' * 20, 'a' * 40, 'a' * 64, '123456789012',
		   '/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/g/providers/Microsoft.Network/privateEndpoints/e')

	def text(self, s):
		form = s.get('format')
		if form == 'date-time':
			return '2026-01-02T03:04:05Z'
		if form == 'date':
			return '2026-01-02'
		if form == 'email':
			return 'someone@example.com'
		if form == 'uuid':
			return '12345678-1234-4234-8234-123456789012'
		if form in ('uri', 'url'):
			return 'https://example.com/sample'
		low, high = s.get('minLength', 1), s.get('maxLength', 10000)
		pattern = self.pattern(s['pattern']) if 'pattern' in s else None
		for sample in self.SAMPLES + ('s' * low, '1' * low):
			if low <= len(sample) <= high and (not pattern or re.fullmatch(pattern, sample)):
				return sample
		made = regex_text(pattern.pattern)
		assert pattern.search(made), 'no sample for %s' % pattern.pattern
		return made

	def spoiled(self, schema, body):
		"""Ways to make a good body bad: (what, path that must be named, body)."""
		out = []

		def put(path, keys, value, what):
			bad = copy.deepcopy(body)
			at = bad
			for k in keys[:-1]:
				at = at[k]
			if value is None:
				del at[keys[-1]]
			else:
				at[keys[-1]] = value
			out.append((what, path, bad))

		def walk(s, value, path, keys):
			s = self.resolve(s)
			discriminator = None
			alternatives = self.branches(s)
			if isinstance(value, list):
				for i, item in enumerate(value[:1]):
					walk(s.get('items', {}), item, '%s[%d]' % (path, i), keys + [i])
				return
			if not isinstance(value, dict):
				return
			if alternatives:
				discriminator = (s.get('discriminator') or {}).get('propertyName')
				fields, required, more = self._common([b for k,
						b in alternatives if value.get(discriminator) == k is not None]
								      or [b for _, b in alternatives])
				if s.get('properties'):
					f, r, _ = self.merged(s)
					fields, required = {**f, **fields}, required + [x for x in r if x not in required]
			else:
				fields, required, more = self.merged(s)
			dot = path + '.' if path else ''
			if more in (None, False) and fields:
				put(dot + 'noSuchField', keys + ['noSuchField'], 1, 'unknown')
			for name in required:
				if name in value:
					put(dot + name, keys + [name], None, 'missing')
			few = {'read-only': 3, 'enum': 2, 'pattern': 2, 'bounds': 3}
			typed = 0
			for name, field in fields.items():
				f = self.resolve(field)
				if name == 'links':
					continue
				if self.read_only(field):
					if few['read-only'] and name not in value:
						few['read-only'] -= 1
						put(dot + name, keys + [name], self.minimal(field), 'read-only')
					continue
				kind = self.kind(f)
				wrong = {'string': 12345, 'integer': 'wrong', 'number': 'wrong', 'boolean': 'wrong',
						'array': 'wrong',
					 'object': 'wrong'}.get(kind)
				if wrong is not None and (typed < 8 or name in required):
					typed += 1
					put(dot + name, keys + [name], wrong, 'type')
				if name == discriminator:
					continue
				if 'enum' in f and kind == 'string' and few['enum']:
					few['enum'] -= 1
					put(dot + name, keys + [name], 'NO_SUCH_VALUE', 'enum')
				elif kind == 'string' and 'pattern' in f and few['pattern']:
					bad = next((x for x in ('\n!', '',
							' ') if not self.pattern(f['pattern']).search(x)), None)
					if bad is not None:
						few['pattern'] -= 1
						put(dot + name, keys + [name], bad, 'pattern')
				elif few['bounds']:
					bad = self._out_of_bounds(f)
					if bad is not None:
						few['bounds'] -= 1
						put(dot + name, keys + [name], bad, 'bounds')
				if name in value:
					walk(field, value[name], dot + name, keys + [name])

		walk(schema, body, '', [])
		return out

	@staticmethod
	def _out_of_bounds(f):
		kind = f.get('type')
		if kind == 'string' and 'maxLength' in f and 'format' not in f and 'enum' not in f:
			return 'x' * (f['maxLength'] + 1)
		if kind == 'string' and f.get('minLength') and 'enum' not in f:
			return ''
		if kind in ('integer', 'number'):
			if 'maximum' in f:
				return f['maximum'] + 1
			if 'minimum' in f:
				return f['minimum'] - 1
		return None

	# The other direction: does an answer fit?

	TYPES = {'string': str, 'boolean': bool, 'integer': int, 'number': (int, float), 'array': list, 'object': dict}

	def faults(self, s, v, where='body', depth=0):
		s = self.resolve(s)
		if depth > 30:
			return []
		if v is None:
			return [] if s.get('nullable') else [where + ': null']
		alternatives = self.branches(s)
		if alternatives:
			name = (s.get('discriminator') or {}).get('propertyName')
			picked = [b for k, b in alternatives if k is not None and isinstance(v,
					dict) and v.get(name) == k]
			# Without a oneOf the schema itself describes an object whose value the mapping lacks, and an answer that was cut to it.
			own = not (s.get('oneOf') or s.get('anyOf')) and name in s.get('properties', {}) \
				and isinstance(v, dict) and name in v and (not picked or set(v) <= set(s['properties']))
			if own:
				alternatives = []
		if alternatives:
			best, like = None, (id(s), isinstance(v, dict) and str(v.get('eventTypeName')))
			# What fitted the last one of its like is tried first: events have hundreds of forms.
			last = [self.fitted[like]] if like in self.fitted and not picked else []
			for b in last + (picked or [b for _, b in alternatives]):
				found = self.faults(b, v, where, depth + 1)
				best = found if best is None or len(found) < len(best) else best
				if not best:
					self.fitted[like] = b
					break
			if best or 'properties' not in s or picked:
				return best
		kind = s.get('type')
		if not isinstance(v, self.TYPES.get(kind, object)) or (isinstance(v, bool) and kind in ('integer', 'number')):
			return ['%s: %r is no %s' % (where, v, kind)]
		out = []
		if 'enum' in s and v not in s['enum']:
			out.append('%s: %r is not in the enum' % (where, v))
		if isinstance(v, str):
			if 'pattern' in s and not self.pattern(s['pattern']).search(v):
				out.append('%s: %r does not match %s' % (where, v, s['pattern']))
			if s.get('format') == 'date-time' and not re.match(r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$',
					v):
				out.append('%s: %r is no date in UTC' % (where, v))
			if not s.get('minLength', 0) <= len(v) <= s.get('maxLength', len(v)) and v != '(redacted)':  # by what records
				out.append('%s: %d characters' % (where, len(v)))
		if isinstance(v, list):
			if not s.get('minItems', 0) <= len(v) <= s.get('maxItems', len(v)):
				out.append('%s: %d items' % (where, len(v)))
			for i, x in enumerate(v):
				out += self.faults(s.get('items', {}), x, '%s[%d]' % (where, i), depth + 1)
		if isinstance(v, (int, float)) and not isinstance(v, bool):
			if not s.get('minimum', v) <= v <= s.get('maximum', v):
				out.append('%s: %r is out of bounds' % (where, v))
		if isinstance(v, dict):
			fields, required, more = self.merged(s)
			for n in required:
				if n not in v and not fields.get(n, {}).get('writeOnly'):
					out.append('%s: %s is missing' % (where, n))
			for n, x in v.items():
				if n in fields:
					if fields[n].get('writeOnly') and n != 'groupId':  # no secret: the answer's own path has it
						out.append('%s.%s: write-only, but returned' % (where, n))
					out += self.faults(fields[n], x, where + '.' + n, depth + 1)
				elif isinstance(more, dict):
					out += self.faults(more, x, where + '.' + n, depth + 1)
				elif fields and n != 'links' and not alternatives and more in (None, False):
					out.append('%s: unknown field %s' % (where, n))
		return out


def regex_text(pattern):
	"""A short text that a pattern accepts; assertions are not looked at, the caller checks."""
	def one(op, arg):
		op = str(op)
		if op == 'LITERAL':
			return chr(arg)
		if op == 'NOT_LITERAL':
			return 'a' if arg != ord('a') else 'b'
		if op == 'ANY':
			return 'a'
		if op == 'IN':
			return pick(arg)
		if op == 'BRANCH':
			return many(arg[1][0])
		if op == 'SUBPATTERN':
			return many(arg[3])
		if op in ('MAX_REPEAT', 'MIN_REPEAT'):
			return many(arg[2]) * arg[0]
		return ''

	def pick(items):
		if str(items[0][0]) == 'NEGATE':
			return 'a'
		op, arg = items[0]
		if str(op) == 'RANGE':
			return chr(arg[0])
		if str(op) == 'CATEGORY':
			return {'CATEGORY_DIGIT': '1', 'CATEGORY_SPACE': ' '}.get(str(arg), 'a')
		return chr(arg)

	def many(items):
		return ''.join(one(op, arg) for op, arg in items)
	return many(regex_parser.parse(pattern))
