"""What is wrong with rows of api/*.json that would be built, and then do nothing or the wrong thing: a key that nobody
reads, a field that the schema does not have, a name that leads nowhere. Used by gen-catalog; src/api/kit/verbs.h says what
a resource may say.

Each fault is (row, text); the text begins with the key. A family with hooks looks at more than its data says, so some rules
are for resources without hooks only."""
import re

import lifecycles

VERBS = {"list": "GET", "get": "GET", "create": "POST", "update": "PATCH", "replace": "PUT", "delete": "DELETE"}
FILE_KEYS = {"family", "title", "description", "basePath", "currentVersion", "words", "sets", "projectLimits", "resources",
	     "lifecycles", "operations", "schemas", "commandFamilies", "states", "notFound", "pages"}
OPERATION_KEYS = {
	"operationId", "set", "method", "path", "tag", "summary", "description", "handler", "resource", "roles", "open", "pathParams",
	"queryParams", "headerParams", "request", "requestRequired", "response", "success", "otherSuccess", "versions",
	"olderVersions", "sunset", "deprecated", "preview", "paginated", "produces", "errors", "event", "noEvent", "eventUnlisted",
	"byName", "filters", "gives", "lasting", "bodyScope", "linkFrom", "mayBeAbsent", "noBody", "onV1",
	"prepare", "reads", "asRead", "slow", "kept", "bodyMax", "command", "commandAliases", "columns", "waitOn", "whileLocked", "danger", "final"}
NEEDED_KEYS = {"operationId", "set", "method", "path", "tag", "summary", "handler", "roles", "success", "versions", "produces"}
SCHEMA_KEYS = {
	"$ref", "type", "format", "enum", "pattern", "default", "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength",
	"minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems", "items", "properties", "additionalProperties",
	"required", "allOf", "oneOf", "anyOf", "discriminator", "readOnly", "writeOnly", "nullable", "deprecated", "immutable",
	"description", "shows", "secret", "first", "hidden"}
PARAMETER_KEYS = SCHEMA_KEYS - {"required", "shows", "secret", "first", "hidden"} | {"name", "required", "notFound"}
TEXT, FLAG, LIST, TABLE = "a text", "true or false", "a list of texts", "an object"
RESOURCE_KEYS = {
	"self": TEXT, "groupSelf": TEXT, "schema": TEXT, "parent": TEXT, "key": TEXT, "name": TEXT, "id": TEXT, "hooks": TEXT,
	"kind": TEXT, "description": TEXT, "projectLimit": TEXT, "merge": TEXT, "keyIsName": FLAG, "links": FLAG, "check": FLAG,
	"etag": FLAG, "sealed": LIST, "defaults": TABLE, "limit": TABLE, "duplicate": TABLE, "fill": TABLE, "touch": TABLE,
	"events": TABLE, "busy": TABLE, "changes": TABLE, "holds": TABLE, "notFound": TEXT, "elsewhere": TABLE, "below": None, "references": None}
# What the texts of refusals may have in braces.
WORDS = {"limit": {"count", "most"}, "holds": {"count"}, "duplicate": {"name", "field"}, "busy": {"name", "state"},
	 "missing": {"name"}, "inUse": {"name", "user"}, "elsewhere": {"name"}}
FILLS = ("@now", "@org", "@group", "@parent", "@caller", "@user")


def is_of(value, wanted):
	return {TEXT: isinstance(value, str), FLAG: isinstance(value, bool), TABLE: isinstance(value, dict),
		LIST: isinstance(value, list) and all(isinstance(v, str) for v in value), None: True}[wanted]


def params_of(path):
	return re.findall(r"\{(\w+)\}", path)


def above(resource):
	"""The names of what it lies below: none, one or two."""
	given = resource.get("below", [])
	return [given] if isinstance(given, str) else given


class Rows:
	def __init__(self, resources, operations, tables, limits, schemas):
		self.resources, self.operations, self.lifecycles = resources, operations, tables
		self.limits, self.schemas = {limit["name"]: limit for limit in limits}, schemas

	def kind(self, name):
		return self.resources[name].get("kind", name)

	def resolve(self, schema):
		while schema and set(schema) - {"description"} == {"$ref"}:
			schema = self.schemas.get(schema["$ref"], {})
		return schema

	def fields(self, schema, seen=()):
		"""Every field that an object of the schema can have, in whichever of its forms: {name: schema}, and what it needs."""
		if "$ref" in schema:
			name = schema["$ref"]
			return ({}, set()) if name in seen else self.fields(self.schemas.get(name, {}), (*seen, name))
		found, needed = dict(schema.get("properties", {})), set(schema.get("required", []))
		for part in schema.get("allOf", []):
			more, required = self.fields(part, seen)
			found.update(more)
			needed |= required
		others = [*schema.get("oneOf", []), *schema.get("anyOf", []),
			  *({"$ref": name} for name in schema.get("discriminator", {}).get("mapping", {}).values())]
		for part in others:
			found = {**self.fields(part, seen)[0], **found}
		return found, needed

	def verbs(self, name):
		return [op for op in self.operations if op.get("resource") == name and op["handler"] in VERBS]

	def faults(self):
		"""All of them; where a row has not even the right shape, only that."""
		wrong = False
		for where, fault in self.shapes():
			wrong = True
			yield where, fault
		if wrong:
			return
		for name in sorted(self.resources):
			yield from (("resource " + name, fault) for fault in self.below_faults(name))
			yield from (("resource " + name, fault) for fault in self.resource_faults(name, self.resources[name]))
		paths = {}
		for op in self.operations:
			yield from ((op["operationId"], fault) for fault in self.operation_faults(op))
			other = paths.setdefault((op["method"], re.sub(r"\{\w+\}", "{}", op["path"])), op["operationId"])
			if other != op["operationId"]:
				yield op["operationId"], "path: %s has it too" % other
		for name, table in sorted(self.lifecycles.items()):
			yield from (("lifecycle " + name, fault) for fault in self.lifecycle_faults(table))

	def shapes(self):
		for name, r in sorted(self.resources.items()):
			yield from (("resource " + name, fault) for fault in self.shape_faults(r))
		for op in self.operations:
			yield from ((op.get("operationId", "an operation without an id"), fault) for fault in self.operation_shape(op))
		for name, table in sorted(self.lifecycles.items()):
			yield from (("lifecycle " + name, fault) for fault in self.table_shape(table))

	# Resources.

	def shape_faults(self, r):
		if not isinstance(r, dict):
			yield "must be an object"
			return
		for key, value in r.items():
			if key not in RESOURCE_KEYS:
				yield "%s: nobody knows this key" % key
			elif not is_of(value, RESOURCE_KEYS[key]):
				yield "%s: must be %s" % (key, RESOURCE_KEYS[key])
		if r.get("merge", "shallow") != "shallow":
			yield 'merge: can be "shallow" only'
		if not is_of(above(r), LIST) or len(above(r)) > 2:
			yield "below: must be the name of a resource, or two of them"
		if not isinstance(r.get("references", []), list) or not all(isinstance(ref, dict) for ref in r.get("references", [])):
			yield "references: must be a list of objects"
		for key in ("limit", "holds", "duplicate", "busy", "elsewhere"):
			if isinstance(r.get(key), dict):
				yield from self.refusal_faults(key, r[key], {"limit": {"most"}, "holds": {"kinds"}, "elsewhere": {"kind"}}.get(key, set()))

	def refusal_faults(self, key, given, more=frozenset()):
		if not isinstance(given, dict) or set(given) != {"status", "code", "text"} | more:
			yield "%s: a refusal has a status, a code and a text%s" % (key, "".join(", and here " + m for m in more))
			return
		if not isinstance(given["status"], int) or not 400 <= given["status"] <= 499:
			yield "%s.status: must be from 400 to 499" % key
		if not isinstance(given["code"], str) or not re.fullmatch("[A-Z][A-Z0-9_]*", given["code"]):
			yield "%s.code: must be a word in capitals" % key
		words = WORDS[key.split(".")[-1]]
		for word in set(params_of(str(given["text"]))) - words:
			yield "%s.text: {%s} is none of %s" % (key, word, ", ".join(sorted(words)))

	def resource_faults(self, name, r):
		hooks = "hooks" in r
		if "schema" in r and r["schema"] not in self.schemas:
			yield "schema: no schema " + r["schema"]
			return
		fields, needed = self.fields({"$ref": r["schema"]}) if "schema" in r else ({}, set())
		yield from self.field_faults(r, fields)
		yield from self.key_faults(name, r, fields, needed)
		yield from self.count_faults(name, r)
		yield from self.path_faults(name, r)
		yield from self.reference_faults(name, r, fields)
		yield from self.own_faults(name, r)
		if "changes" in r and any(op["handler"] == "replace" for op in self.verbs(name)):
			yield "changes: are for updates; a replace would not tell what it takes away"
		if "defaults" in r and "key" in r:
			yield "defaults: are for resources without a key, of which every parent has one"
		if "busy" in r and self.kind(name) not in {table["kind"] for table in self.lifecycles.values()}:
			yield "busy: is for documents with a lifecycle"
		if r.get("parent", "orgId") not in ("orgId", "groupId"):
			yield "parent: must be orgId or groupId; what belongs to something else lies below it"
		for other in sorted(self.resources):
			o = self.resources[other]
			if other < name and self.kind(other) == self.kind(name) and "schema" in r and "schema" in o and not hooks and \
					(o.get("parent"), above(o)) == (r.get("parent"), above(r)):
				yield "kind: %s has documents of this kind in the same place" % other

	def field_faults(self, r, fields):
		"""Keys that name fields of the document."""
		named = [(key, r[key]) for key in ("name", "id") if key in r]
		named += [(key, field) for key in ("fill", "touch", "changes", "sealed", "defaults") for field in r.get(key, [])]
		named += [("events", field) for field in r.get("events", {}).values()]
		for key, field in named:
			if not isinstance(field, str):
				yield "%s: must name fields" % key
			elif ("schema" in r or "hooks" not in r) and field not in fields and r.get("check", True):
				yield "%s: no field %s in the schema %s" % (key, field, r.get("schema"))
			elif key != "sealed" and field in r.get("sealed", []):
				yield "%s: %s is sealed" % (key, field)
		for field in r.get("sealed", []):
			if not fields.get(field, {}).get("writeOnly"):
				yield "sealed: %s must be writeOnly in the schema" % field
		for key in ("fill", "touch"):
			for field, value in r.get(key, {}).items():
				kind = self.resolve(fields.get(field, {})).get("type")
				if isinstance(value, str) and value.startswith("@"):
					if value not in FILLS:
						yield "%s: %s: %s is none of %s" % (key, field, value, ", ".join(FILLS))
					elif kind != ("object" if value == "@user" else "string"):
						yield "%s: %s: is of another type than %s" % (key, field, value)

	def key_faults(self, name, r, fields, needed):
		hooks, field = "hooks" in r, r.get("name")
		if r.get("keyIsName") and "key" not in r:
			yield "keyIsName: needs a key"
		if r.get("keyIsName") and not field and not hooks:
			yield "keyIsName: needs a name, the field that the key is"
		if field in fields and self.resolve(fields[field]).get("type") != "string":
			yield "name: the field %s is no text" % field
		if r.get("keyIsName") and not hooks and field in fields and field not in needed:
			yield "name: the field %s must be required, since it is the key" % field
		if "duplicate" in r and not field:
			yield "duplicate: needs a name, the field that is unique"

	def count_faults(self, name, r):
		limit, own = r.get("limit"), r.get("projectLimit")
		if limit and (type(limit["most"]) is not int or limit["most"] < 1):
			yield "limit.most: must be a number above 0"
		if limit and own:
			yield "projectLimit: the resource has a limit already"
		if own and own not in self.limits:
			yield "projectLimit: no limit " + own
		elif own and (r.get("parent") != "groupId" or self.kind(name) not in self.limits[own].get("counts", [])):
			yield "projectLimit: %s must count the kind %s, of which projects are the parent" % (own, self.kind(name))
		kinds = r.get("holds", {}).get("kinds", ["org"])
		if not is_of(kinds, LIST) or not 1 <= len(kinds) <= 2 or set(kinds) - {self.kind(n) for n in self.resources}:
			yield "holds.kinds: must be one or two kinds of resources"

	def path_faults(self, name, r):
		"""That the paths have all by which a document is found."""
		own = [op for op in self.operations if op["operationId"] == r.get("self")]
		if own and own[0]["method"] != "GET":
			yield "self: must be a GET"
		if "hooks" in r:
			return
		begin = own[0]["path"].rsplit("/", 1)[0] + "/" if own and r.get("keyIsName") else None
		for op in self.operations if begin else []:
			if op["path"].startswith(begin) and not op["path"][len(begin):].startswith("{"):
				yield "keyIsName: the path of %s hides a document of that name" % op["operationId"]
		for op in self.verbs(name):
			has, keys, at, seen = set(params_of(op["path"])), [], name, set()
			if "key" in r and op["handler"] in ("get", "update", "replace", "delete"):
				keys.append(op.get("byName", r["key"]))
			while above(self.resources.get(at, {})) and at not in seen:
				seen.add(at)
				at = above(self.resources[at])[0]
				keys.append(self.resources.get(at, {}).get("key"))
			parent = self.resources.get(at, {}).get("parent")
			keys.append(None if parent == "orgId" and "groupId" in has else parent)
			for key in keys:
				if key and key not in has and not any("hooks" in self.resources.get(n, {}) for n in seen - {name}):
					yield "key: the path of %s has no {%s}" % (op["operationId"], key)

	def below_faults(self, name):
		seen, waiting, r = set(), list(above(self.resources[name])), self.resources[name]
		if waiting and "parent" in r:
			yield "parent: what lies below a resource has no parent of its own"
		for other in waiting:
			if other not in self.resources:
				yield "below: no resource " + str(other)
			elif "key" not in self.resources[other]:
				yield "below: %s has no key by which one is found" % other
		while waiting:
			at = waiting.pop()
			if at == name:
				yield "below: goes round in a circle"
				return
			if at in self.resources and at not in seen:
				seen.add(at)
				waiting += above(self.resources[at])

	# References.

	def reference_faults(self, name, r, fields):
		for number, ref in enumerate(r.get("references", [])):
			at = "references[%d]" % number
			if set(ref) - {"field", "list", "to", "onDelete", "missing", "inUse"}:
				yield "%s: nobody knows %s" % (at, ", ".join(sorted(set(ref) - {"field", "list", "to", "onDelete", "missing", "inUse"})))
			to = self.resources.get(ref.get("to"))
			if not to:
				yield "%s.to: no resource %s" % (at, ref.get("to"))
				continue
			yield from self.target_faults(at, r, ref, to)
			if ref.get("onDelete") == "cascade" and not {"limit", "projectLimit"} & set(r) and self.goes_round(name, ref["to"]):
				yield "%s.onDelete: the cascade goes round in a circle, so it needs a limit" % at
			yield from self.place_faults(at, r, ref, fields)
			for key in ("missing", "inUse"):
				if key in ref:
					yield from self.refusal_faults("%s.%s" % (at, key), ref[key])
			if ref.get("onDelete") not in (None, "refuse", "cascade") or (ref.get("onDelete") == "refuse") != ("inUse" in ref):
				yield '%s.onDelete: must be "refuse", and "inUse" says how, or "cascade"' % at
			if "hooks" not in r and not {"missing", "onDelete"} <= set(ref):
				yield "%s: needs missing and onDelete, since no hook looks" % at

	def target_faults(self, at, r, ref, to):
		if "key" not in to:
			yield "%s.to: %s has no key by which it is named" % (at, ref["to"])
		if (r.get("parent"), above(r)) != (to.get("parent"), above(to)):
			yield "%s.to: %s belongs to something else; what is named has the same parent" % (at, ref["to"])
		for table in self.lifecycles.values():
			leaving = {t.get("to") for t in table["transitions"] if t.get("word") == "DELETE"}
			ends = {start for start, end, t in lifecycles.arrows(table) if end is None and t.get("word") != "DELETE"}
			if table["kind"] == self.kind(ref["to"]) and ref.get("onDelete") == "refuse" and ends - leaving:
				yield "%s.onDelete: %s can end without a DELETE, which nobody can refuse; only a cascade helps" % (at, ref["to"])

	def goes_round(self, name, to):
		"""Whether the end of a document of `name` can take along one of `to`."""
		seen, waiting = set(), [name]
		while waiting:
			at = waiting.pop()
			if at == to:
				return True
			if at not in seen:
				seen.add(at)
				waiting += [other for other, r in self.resources.items() for ref in r.get("references", [])
					    if ref.get("to") == at and ref.get("onDelete") == "cascade"]
		return False

	def place_faults(self, at, r, ref, fields):
		key, name = ("list", ref.get("list")) if "list" in ref else ("field", ref.get("field"))
		if not isinstance(name, str):
			yield "%s: needs a field or a list" % at
			return
		if name in r.get("sealed", []):
			yield "%s.%s: %s is sealed" % (at, key, name)
		schema = self.resolve(fields.get(name, {}))
		if "schema" not in r:
			return
		if not schema:
			yield "%s.%s: no field %s in the schema %s" % (at, key, name, r["schema"])
		elif schema.get("type") != ("array" if key == "list" else "string"):
			yield "%s.%s: %s must be %s" % (at, key, name, "a list" if key == "list" else "a text")
		elif key == "list":
			items = self.resolve(schema.get("items", {}))
			items = self.resolve(self.fields(items)[0].get(ref["field"], {})) if "field" in ref else items
			if items.get("type") != "string":
				yield "%s.list: its elements%s must be texts" % (at, "' " + ref["field"] if "field" in ref else "")
			if "maxItems" not in schema and "missing" in ref:
				yield "%s.list: %s needs maxItems, since each is looked up in the write" % (at, name)

	def own_faults(self, name, r):
		"""Fields that the service sets are not taken from callers."""
		own = {*r.get("fill", {}), *r.get("touch", {}), *([r["id"]] if "id" in r else [])}
		own |= {table["field"] for table in self.lifecycles.values() if table["kind"] == self.kind(name) and "field" in table}
		for op in self.verbs(name) if "hooks" not in r else []:
			for body in [op.get("request"), *(v.get("request") for v in op.get("olderVersions", {}).values())]:
				fields = self.fields(body)[0] if body else {}
				for field in sorted(own & set(fields)):
					if not fields[field].get("readOnly"):
						yield "the service sets %s, so it must be readOnly in what %s takes" % (field, op["operationId"])

	# Operations and lifecycles.

	def operation_shape(self, op):
		for key in sorted(set(op) - OPERATION_KEYS):
			yield "%s: nobody knows this key" % key
		for key in sorted(NEEDED_KEYS - set(op)):
			yield "%s: is missing" % key
		for key in ("pathParams", "queryParams", "headerParams"):
			if not isinstance(op.get(key, []), list) or not all(isinstance(p, dict) and "name" in p for p in op.get(key, [])):
				yield "%s: must be a list of objects with names" % key
		for key in ("filters", "olderVersions", "sunset"):
			if not isinstance(op.get(key, {}), dict):
				yield "%s: must be an object" % key

	def table_shape(self, table):
		if not isinstance(table.get("states"), dict) or not isinstance(table.get("transitions"), list) or not all(
				isinstance(row, dict) for row in [*table["states"].values(), *table["transitions"]]):
			yield "a lifecycle has field, states, transitions, and may have kind, when, eventField"

	def operation_faults(self, op):
		given = [p["name"] for p in op.get("pathParams", [])]
		if sorted(params_of(op["path"])) != sorted(map(str, given)):
			yield "pathParams: must be those of the path"
		for key in ("olderVersions", "sunset"):
			for date in sorted(set(op.get(key, {})) - {*op["versions"], *(["preview"] if "preview" in op else [])}):
				yield "%s: %s is none of its versions" % (key, date)
		for date, body in op.get("olderVersions", {}).items():
			for key in sorted(set(body) - {"request", "response"}):
				yield "olderVersions.%s.%s: nobody knows this key" % (date, key)
		for key in ("pathParams", "queryParams", "headerParams"):
			for p in op.get(key, []):
				for unknown in sorted(set(p) - PARAMETER_KEYS):
					yield "%s.%s.%s: nobody knows this key" % (key, p.get("name"), unknown)
		verb, r = op["handler"], self.resources.get(op.get("resource"))
		if VERBS.get(verb, op["method"]) != op["method"]:
			yield "method: the verb %s is for %s" % (verb, VERBS[verb])
		if "filters" in op and verb != "list":
			yield "filters: are for the verb list"
		if "byName" in op and r and "name" not in r and "hooks" not in r:
			yield "byName: the resource %s has no name" % op["resource"]
		if "filters" in op and r and "schema" in r:
			yield from self.filter_faults(op, r)
		if verb in VERBS and r and "schema" in r and "hooks" not in r:
			yield from self.version_faults(op, r)
		if verb == "list" and "hooks" not in (r or {}) and "response" in op:
			answer = self.resolve(op["response"])
			if answer.get("type") != "array" and "results" not in self.fields(op["response"])[0]:
				yield "response: a list answers with an array, or with results"

	def version_faults(self, op, r):
		"""The verbs keep one form of a document: an older version takes and shows no field that this one does not have."""
		fields = self.fields({"$ref": r["schema"]})[0]
		for date, body in op.get("olderVersions", {}).items():
			for key in ("request", "response") if op["handler"] != "list" else ():
				for name in sorted(set(self.fields(body.get(key, {}))[0]) - {*fields, "links"}):
					yield "olderVersions.%s.%s: no field %s in the schema %s" % (date, key, name, r["schema"])

	def filter_faults(self, op, r):
		fields = self.fields({"$ref": r["schema"]})[0]
		for param, field in op["filters"].items():
			field = field.get("prefix") if isinstance(field, dict) else field
			if self.resolve(fields.get(field, {})).get("type") != "string" or field in r.get("sealed", []):
				yield "filters.%s: %s is no field of texts in the schema %s" % (param, field, r["schema"])

	def lifecycle_faults(self, table):
		r = self.resources.get(table["kind"], {})
		if "schema" not in r:
			yield "kind: no resource %s with a schema" % table["kind"]
		fields = self.fields({"$ref": r["schema"]})[0] if r.get("schema") in self.schemas else {}
		for field, value in table.get("when", {}).items():
			known = self.resolve(fields.get(field, {}))
			if not known or value not in known.get("enum", [value]):
				yield "when: the field %s cannot have the value %s" % (field, value)
		hooked = "hooks" in r or any("reached" in state for state in table.get("states", {}).values())
		coded = any(op.get("resource") == table["kind"] and op["handler"] not in {*VERBS, "unbuilt"} for op in self.operations)
		words = {t.get("word") for t in table["transitions"] if t.get("by") == "call" and t.get("from") is not None}
		for word in sorted(words - {"CHANGE", "DELETE", None}) if not hooked and not coded else []:
			yield "word %s: nobody says it; the verbs say CHANGE and DELETE" % word
		said = {op["handler"] for op in self.verbs(table["kind"])}
		for word, verbs in (("CHANGE", {"update", "replace"}), ("DELETE", {"delete"})):
			if word in words and not hooked and not coded and not said & verbs:
				yield "word %s: no operation says it" % word


def inner_schemas(schema):
	"""The schemas that stand in a schema, without those that it names."""
	yield from schema.get("properties", {}).values()
	for key in ("allOf", "oneOf", "anyOf"):
		yield from schema.get(key, [])
	for key in ("items", "additionalProperties"):
		if isinstance(schema.get(key), dict):
			yield schema[key]


def shows_inside(schema, showing):
	"""Whether it, or a schema in it, has fields with a value that is shown where there is none."""
	if schema.get("shows") or schema.get("$ref") in showing or showing & set(schema.get("discriminator", {}).get("mapping", {}).values()):
		return True
	return any(shows_inside(inner, showing) for inner in inner_schemas(schema))


def showing(named):
	"""The names of the schemas of which that is so."""
	found, before = set(), None
	while found != before:
		before = set(found)
		found |= {name for name, schema in named.items() if shows_inside(schema, before)}
	return found


def properties_of(schema, named, seen=()):
	"""Its properties, through $ref and allOf."""
	if "$ref" in schema:
		inner = named.get(schema["$ref"], {})
		return {} if schema["$ref"] in seen else properties_of(inner, named, seen + (schema["$ref"],))
	fields = {}
	for part in schema.get("allOf", []):
		fields.update(properties_of(part, named, seen))
	return {**fields, **schema.get("properties", {})}


def shown_faults(schema, named):
	"""Of what is shown in the place of absent fields: fields that there are, values of their kind."""
	fields = properties_of(schema, named)
	for name, value in schema.get("shows", {}).items():
		field = fields.get(name, {})
		field = {**named.get(field.get("$ref"), {}), **field}
		kinds = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list, "object": dict}
		if name not in fields:
			yield "shows: has no field %s" % name
		elif field.get("writeOnly"):
			yield "shows: %s: is never shown" % name
		elif not (value is None and field.get("nullable")) and (
				not isinstance(value, kinds.get(field.get("type"), object)) or value not in field.get("enum", [value])):
			yield "shows: %s: is no value of the field" % name


def schema_faults(schema, formats, named, at=""):
	"""(place, text) for what a schema has that nobody reads."""
	if not isinstance(schema, dict):
		yield at, "must be an object"
		return
	for key in sorted(set(schema) - SCHEMA_KEYS):
		yield at, "%s: nobody knows this key" % key
	if schema.get("format") not in formats:
		yield at, "format: nobody knows %s" % schema["format"]
	if schema.get("type") not in (None, "object", "array", "string", "integer", "number", "boolean"):
		yield at, "type: nobody knows %s" % schema["type"]
	if "$ref" in schema and schema["$ref"] not in named:
		yield at, "$ref: no schema %s" % schema["$ref"]
	for what in shown_faults(schema, named):
		yield at, what
	for field, inner in schema.get("properties", {}).items():
		yield from schema_faults(inner, formats, named, "%s.%s" % (at, field))
	for key in ("allOf", "oneOf", "anyOf"):
		for inner in schema.get(key, []):
			yield from schema_faults(inner, formats, named, at)
	for key in ("items", "additionalProperties"):
		if isinstance(schema.get(key), dict):
			yield from schema_faults(schema[key], formats, named, at + "[]")
