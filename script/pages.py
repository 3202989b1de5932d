"""What people see of the API's data: how dangerous an operation is, which fields are secret, which list a parameter is chosen
from, how the fields of a form are ordered. Most of it follows by rule from the rows; where a rule is wrong, the data says otherwise:
"danger" in a row, "secret", "first" and "hidden" in a schema, "pages" in api/common.json. Used by gen-catalog, which stops at
what is faulty, and by console_data.py, which makes the console's pages of it.

A form is a tree of nodes, each an object or the number of a shared one:
  t: s text, i whole number, n number, b yes or no, o object, a list, m map, u one of several, x anything
  f: p secret, t time, d day, e mail address, u address    e: the values    p: pattern    l, h: bounds of the number, length or count
  d: what is taken where nothing is given    r: help    k: fields, as [name, node, flags]    i: of the entries of a list or map
  D: the field that tells which of several, O: [its value or a label, node]
Flags of fields: 1 required, 2 advanced, 4 deprecated, 8 cannot be changed later."""
import re

import api_rows

DANGERS = ("none", "confirm", "name")
PAGE_KEYS = {"words", "labels", "values", "references", "notSecret"}
SECRET_NAME = re.compile(r"(password|passphrase|secret|token|privatekey|private_key|apikey|api_key|accesskey|licensekey|servicekey|"
			 r"routingkey|sslkey|accountkey|credentials?|teamswebhookurl)$", re.IGNORECASE)
REQUIRED, ADVANCED, DEPRECATED, IMMUTABLE = 1, 2, 4, 8
FORMATS = {"date-time": "t", "date": "d", "email": "e", "uri": "u", "password": "p"}
TYPES = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}
SIMPLE_MOST = 12  # fields of a form that all are shown at once
TITLES = ("name", "displayName", "username", "clusterName", "roleName", "desc", "description", "hostnameAndPort", "bucketName",
	  "eventTypeName", "comment", "createdAt", "created")


def is_secret(schema):
	return bool(schema.get("secret")) or schema.get("format") == "password"


def danger(op):
	"""none; confirm: asked once more; name: whoever calls it types the name of what goes."""
	return op.get("danger", "confirm" if op["method"] == "DELETE" else "none")


def path_params(op):
	return api_rows.params_of(op["path"])


def final(op):
	"""Whether it cannot be undone: what is deleted, and what a row says. A client that can ask nobody wants to hear it. What is
	taken off a list can be put on it again."""
	verb = op["command"].split()[-1]
	return bool(op.get("final")) or danger(op) == "name" or (danger(op) != "none" and verb.split("-")[0] == "delete")


class Pages:
	def __init__(self, operations, resources, named, words, pages, commands):
		self.operations, self.resources, self.named, self.commands = operations, resources, named, commands
		self.help, self.pages = words.get("fields", {}), pages
		self.by_id = {op["operationId"]: op for op in operations}
		self.lists = {op["path"]: op for op in operations if op["method"] == "GET" and self.entries(op) is not None}

	# What the data may say.

	def faults(self):
		for key in sorted(set(self.pages) - PAGE_KEYS):
			yield "pages", "%s: nobody knows this key" % key
		for op in self.operations:
			if op.get("danger", "none") not in DANGERS:
				yield op["operationId"], "danger: must be one of %s" % ", ".join(DANGERS)
			elif danger(op) != "none" and op["method"] == "GET":
				yield op["operationId"], "danger: a GET has none"
			elif op.get("final") and danger(op) == "none":
				yield op["operationId"], "final: what cannot be undone has a danger"
			elif danger(op) == "name" and not self.typed(op):
				yield op["operationId"], "danger: has no parameter whose name could be typed"
		unmarked = set(self.pages.get("notSecret", []))
		fields = dict(self.every_field())
		for where, schema in sorted(fields.items()):
			kind = api_rows.Rows.resolve(self, schema).get("type")
			if schema.get("secret") and kind != "string":
				yield where, "secret: is for texts"
			named = SECRET_NAME.search(where) and kind == "string"
			if named and not is_secret(schema) and where not in unmarked:
				yield where, 'has the name of a secret: it needs "secret", or a place in notSecret of api/common.json'
			if where in unmarked and is_secret(schema):
				yield where, "is secret, and stands in notSecret too"
		for where in sorted(unmarked - set(fields)):
			yield "pages", "notSecret: no field %s" % where
		yield from self.order_faults()
		yield from self.reference_faults()
		names = {where.rsplit(".", 1)[-1] for where in fields} | {
			p["name"] for op in self.operations for key in ("pathParams", "queryParams") for p in op.get(key, [])}
		for name in sorted(set(self.pages.get("labels", {})) - names):
			yield "pages", "labels: no field or parameter %s" % name

	def every_field(self):
		def inside(schema, at):
			for name, field in schema.get("properties", {}).items():
				yield "%s.%s" % (at, name), field
				yield from inside(field, "%s.%s" % (at, name))
			for key in ("allOf", "oneOf", "anyOf"):
				for part in schema.get(key, []):
					yield from inside(part, at)
			for key in ("items", "additionalProperties"):
				if isinstance(schema.get(key), dict):
					yield from inside(schema[key], at)
		for name, schema in self.named.items():
			yield from inside(schema, name)

	def order_faults(self):
		for name, schema in sorted(self.named.items()):
			fields = self.fields(schema)
			for field in schema.get("first", []):
				if field not in fields:
					yield name, "first: no field %s" % field

	def reference_faults(self):
		for name, ref in sorted(self.pages.get("references", {}).items()):
			where = "references: %s: " % name
			if set(ref) - {"list", "value", "title", "inPaths"} or not {"list", "value"} <= set(ref):
				yield "pages", where + "has a list, the field that is the value, perhaps one that is the title, and inPaths where fields of bodies are meant otherwise"
			elif ref["list"] not in self.by_id or self.entries(self.by_id[ref["list"]]) is None:
				yield "pages", where + "no operation %s that lists" % ref["list"]
			else:
				fields = self.fields(self.entries(self.by_id[ref["list"]]))
				for field in [*ref["value"].split("|"), *([ref["title"]] if "title" in ref else [])]:
					if field.split(".")[0] not in fields:
						yield "pages", where + "no field %s in what %s lists" % (field, ref["list"])

	# Answers.

	def schemas_of(self, schema, seen=()):
		"""The schema and those that it is made of or can be."""
		if "$ref" in schema:
			if schema["$ref"] in seen or schema["$ref"] not in self.named:
				return
			seen += (schema["$ref"],)
			schema = self.named[schema["$ref"]]
		yield schema, seen
		parts = [*schema.get("allOf", []), *schema.get("oneOf", []), *schema.get("anyOf", []),
			 *({"$ref": name} for name in schema.get("discriminator", {}).get("mapping", {}).values())]
		for part in parts:
			yield from self.schemas_of(part, seen)

	def fields(self, schema):
		found = {}
		for part, _ in self.schemas_of(schema):
			for name, field in part.get("properties", {}).items():
				found.setdefault(name, field)
		return found

	@property
	def schemas(self):
		return self.named

	def entries(self, op):
		"""The schema of an entry of the list that it answers, or None."""
		schema = api_rows.Rows.resolve(self, op.get("response") or {})
		if schema.get("type") == "array":
			return schema.get("items", {})
		fields = self.fields(schema)
		names = ["results"] if "results" in fields else [name for name in fields if name != "links"]
		if len(names) != 1:
			return None
		found = api_rows.Rows.resolve(self, fields[names[0]])
		return found.get("items", {}) if found.get("type") == "array" else None

	def columns(self, op):
		entry = self.entries(op)
		if entry is None:
			return []
		given = self.commands.columns(op)
		if given:
			return given
		fields = self.fields(entry)
		plain = [name for name, field in fields.items() if api_rows.Rows.resolve(self, field).get("type") in TYPES
			 and not is_secret(field) and not field.get("deprecated")]
		first = [name for name in (*TITLES[:5], "stateName", "status", "state", "id", "_id") if name in plain]
		return [*first, *(name for name in plain if name not in first)][:6]

	def made_secrets(self):
		"""The names of the fields with secrets that the service makes."""
		return sorted({where.rsplit(".", 1)[-1] for where, field in self.every_field() if is_secret(field) and field.get("readOnly")})

	def shown_once(self, op):
		"""Whether the answer has a secret that callers do not send: it is made by the service, and shown when it is made."""
		return any(is_secret(field) and field.get("readOnly") for schema in self.reached(op.get("response") or {})
			   for field in schema.get("properties", {}).values()) and op["method"] == "POST"

	def reached(self, schema, seen=None):
		seen = set() if seen is None else seen
		if "$ref" in schema:
			if schema["$ref"] in seen:
				return
			seen.add(schema["$ref"])
			schema = self.named[schema["$ref"]]
		yield schema
		for inner in [*api_rows.inner_schemas(schema),
			      *({"$ref": name} for name in schema.get("discriminator", {}).get("mapping", {}).values())]:
			yield from self.reached(inner, seen)

	# References.

	def value_field(self, op, param, later=False):
		"""The field of a list's entries that the parameter is, or None."""
		fields, given = self.fields(self.entries(op)), self.pages.get("references", {}).get(param, {})
		resource = self.resources.get(op.get("resource"), {})
		if any(field in fields for field in given.get("value", "").split("|")) and (given["list"] == op["operationId"] or "|" in given["value"]):
			return given["value"]
		if resource.get("key") == param and resource.get("keyIsName") and resource.get("name") in fields:
			return resource["name"]
		if resource.get("key") == param and resource.get("id") in fields:
			return resource["id"]
		alike = {field.lower(): field for field in fields}
		for name in (param, param.removesuffix("Name")):
			if name.lower() in alike:
				return alike[name.lower()]
		if later or (resource.get("key", param) != param and param.endswith("Name")):
			return None
		wanted = ["id", "_id"] if not param.lower().endswith("name") else ["name"]
		return next((field for field in [*wanted, "name", "id", "_id"] if field in fields), None)

	def rows(self, op):
		"""Of a list: the parameters of the paths right below it, and the fields of an entry that they are."""
		found, path = {}, op["path"]
		for other in self.operations:
			match = re.fullmatch(re.escape(path) + r"((?:/\{\w+\})+)(?:[:/].*|\.\w+)?", other["path"])
			for number, param in enumerate(api_rows.params_of(match.group(1)) if match else []):
				field = self.value_field(op, param, number > 0)
				if field:
					found[param] = field
		return found

	def title(self, op, value):
		fields = self.fields(self.entries(op))
		resource = self.resources.get(op.get("resource"), {})
		return next((name for name in (resource.get("name"), *TITLES) if name in fields and name != value), None)

	def typed(self, op):
		"""The parameter that is typed before something ends: the last of the path."""
		return (path_params(op) or [None])[-1]

	# Forms.

	def form(self, op, nodes, numbers):
		"""The node of what the operation takes, or None."""
		if "request" not in op:
			return None
		return Forms(self, nodes, numbers).node(op["request"])


class Forms:
	"""Nodes of schemas; named ones are shared in `nodes`, of which `numbers` has the places."""

	def __init__(self, pages, nodes, numbers):
		self.pages, self.named, self.nodes, self.numbers = pages, pages.named, nodes, numbers

	def node(self, schema):
		"""Of a schema that stands somewhere: with what that place says beside a $ref."""
		if "$ref" not in schema:
			return self.build(schema)
		name, more = schema["$ref"], {k: v for k, v in schema.items() if k != "$ref"}
		target = self.named[name]
		if set(more) - {"description"} or self.is_small(target):
			return self.build({**target, **more}, name)
		if name not in self.numbers:
			self.numbers[name] = len(self.nodes)
			self.nodes.append(None)
			self.nodes[self.numbers[name]] = self.build(target, name)
		return self.numbers[name]

	def is_small(self, schema):
		return schema.get("type") in TYPES and not schema.get("enum")

	def flat(self, schema, seen=()):
		"""Properties, required names and those that come first, through $ref and allOf."""
		if "$ref" in schema:
			if schema["$ref"] in seen:
				return {}, set(), []
			return self.flat(self.named[schema["$ref"]], seen + (schema["$ref"],))
		fields, required, first = dict(schema.get("properties", {})), set(schema.get("required", [])), list(schema.get("first", []))
		for part in schema.get("allOf", []):
			more, needed, early = self.flat(part, seen)
			fields = {**more, **fields}
			required |= needed
			first += [name for name in early if name not in first]
		return fields, required, first

	def enum(self, schema):
		"""All values of an enumeration and of its branches; None: it is no enumeration."""
		if "$ref" in schema:
			return self.enum(self.named[schema["$ref"]])
		if schema.get("enum"):
			return list(schema["enum"])
		values = [self.enum(part) for part in schema.get("oneOf", []) + schema.get("anyOf", [])]
		if not values or any(found is None for found in values):
			return None
		return list(dict.fromkeys(value for found in values for value in found))

	def build(self, schema, name=None):
		kind, out = schema.get("type"), {}
		values = self.enum(schema)
		if values:
			out = {"t": TYPES.get(kind, "s"), "e": values}
		elif kind in TYPES:
			out = {"t": TYPES[kind]}
			self.bounds(schema, out)
		elif kind == "array":
			out = {"t": "a", "i": self.node(schema.get("items", {}))}
			self.bounds(schema, out)
		else:
			out = self.object(schema, name)
		if "default" in schema:
			out["d"] = schema["default"]
		if schema.get("description") and not (name and self.named.get(name, {}).get("description") == schema["description"]):
			out["r"] = schema["description"]
		return out

	def bounds(self, schema, out):
		kind = out["t"]
		if is_secret(schema):
			out["f"] = "p"
		elif schema.get("format") in FORMATS:
			out["f"] = FORMATS[schema["format"]]
		if "pattern" in schema:
			out["p"] = schema["pattern"]
		low, high = {"s": ("minLength", "maxLength"), "a": ("minItems", "maxItems")}.get(kind, ("minimum", "maximum"))
		for key, name in (("l", low), ("h", high)):
			if name in schema:
				out[key] = schema[name]

	def object(self, schema, name):
		mapping = schema.get("discriminator", {}).get("mapping", {})
		branches = schema.get("oneOf") or schema.get("anyOf") or []
		fields, required, first = self.flat(schema, (name,) if name else ())
		if mapping:
			by = schema["discriminator"]["propertyName"]
			return {"t": "u", "D": by, "O": [[value, self.branch(target, name, (fields, required, first), by)] for value, target in mapping.items()]}
		if branches:
			return {"t": "u", "O": [[self.told(part), self.branch(part["$ref"], name, (fields, required, first), None) if "$ref" in part
						else self.build(part)] for part in branches]}
		if fields:
			return {"t": "o", "k": self.ordered(fields, required, first)}
		additional = schema.get("additionalProperties")
		if isinstance(additional, dict) and additional != {"type": "object"}:
			return {"t": "m", "i": self.node(additional)}
		return {"t": "x"}

	def told(self, schema):
		return schema.get("$ref", schema.get("description", schema.get("type", "")))

	def branch(self, target, parent, own, by):
		"""A branch with the fields of its parent, without the one that picks it."""
		key = (target, parent, by)
		if key not in self.numbers:
			self.numbers[key] = len(self.nodes)
			self.nodes.append(None)
			fields, required, first = self.flat({"$ref": target})
			inner = self.named[target]
			if inner.get("oneOf") or (inner.get("discriminator") and target != parent):
				self.nodes[self.numbers[key]] = self.build(inner, target)
			else:
				fields = {**own[0], **fields}
				fields.pop(by, None)
				self.nodes[self.numbers[key]] = {"t": "o", "k": self.ordered(fields, required | own[1], first + own[2])}
		return self.numbers[key]

	def is_nested(self, schema):
		schema = api_rows.Rows.resolve(self.pages, schema)
		if self.enum(schema):
			return False
		if schema.get("type") == "array":
			return self.is_nested(schema.get("items", {}))
		return schema.get("type") not in TYPES

	def ordered(self, fields, required, first):
		"""Those that come first, then what is required, then what is simple, then what has parts of its own. Advanced is what is
		deprecated, and of a long form all that is neither first nor required."""
		shown = {name: field for name, field in fields.items() if name != "links" and not field.get("hidden")
			 and not field.get("readOnly") and not api_rows.Rows.resolve(self.pages, field).get("readOnly")}
		rank = lambda name: (first.index(name) if name in first else len(first), name not in required,
				     bool(shown[name].get("deprecated")), self.is_nested(shown[name]), name not in ("name", "username", "type"))
		out = []
		for name in sorted(shown, key=rank):
			field, flags = shown[name], 0
			flags |= REQUIRED if name in required else 0
			flags |= DEPRECATED if field.get("deprecated") else 0
			flags |= IMMUTABLE if field.get("immutable") else 0
			basic = name in required or name in first or (not first and len(shown) <= SIMPLE_MOST and not field.get("deprecated"))
			flags |= 0 if basic else ADVANCED
			out.append([name, self.node({k: v for k, v in field.items() if k != "deprecated"}), *([flags] if flags else [])])
		return out
