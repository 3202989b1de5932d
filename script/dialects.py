"""Dialects: the API in the words of another service. One file of api/dialects/ each; gen-catalog makes tables of them.

A word is translated where a schema says that it is one: a field by the schema that has it, a value by an enumeration
that lists it. What callers write themselves (names, tags, descriptions) has no enumeration, and stays. A pair of words
is exchanged, in both directions alike: what is one of our words in that place becomes theirs, and theirs ours. So the
translation is its own inverse, and our words mean nothing in the dialect.

Rows of a dialect's file:
  name         the option's word for it
  title        for people
  base, baseV1 the prefixes of paths; below baseV1 every operation answers in its oldest version
  media        the beginning of its media types, up to the date
  lenient      "readOnly": read-only fields of a body are ignored; "null": a field that is null is absent;
               "limitObjects": numbers of rate limits are objects
  partial      operations whose PATCH may leave out what is required: the document has it
  paths        their words in paths, and ours
  fields       theirs and ours; where ours is theirs only in some schemas: {"for": ours, "in": [schemas]}
  values       by field: theirs and ours; or the name of a field that has the same words
  everywhere   "Schema.field": its values are words although the schema lists none
  when         by field: values are words only beside {"field": [values]} of the same object
  codes        their codes of errors, and ours
  endpoints    what else its clients ask for: path, method, and the answer as "json" or "text" ("@address", "@version",
               "@majorVersion" are filled in), or a "status" without a body"""
KEYS = {"name", "title", "base", "baseV1", "media", "lenient", "partial", "paths", "fields", "values", "everywhere", "when",
	"codes", "endpoints"}
LENIENT = {"readOnly": "LENIENT_READ_ONLY", "null": "LENIENT_NULL", "limitObjects": "LIMITS_ARE_OBJECTS"}
FILLED = ("@address", "@version", "@majorVersion")


def index_of(ref):
	return int(ref[3:-1]) if ref != "NULL" else None


class Dialect:
	def __init__(self, data, schemas, operations, stop):
		self.data, self.schemas, self.operations = data, schemas, operations
		self.stop = lambda what: stop("dialect " + data.get("name", "without a name"), what)
		for key in sorted(set(data) - KEYS):
			self.stop("%s: nobody knows this key" % key)
		for key in ("name", "base", "media"):
			if not isinstance(data.get(key), str):
				self.stop("%s: is required" % key)
		for word in data.get("lenient", []):
			if word not in LENIENT:
				self.stop("lenient: %s: is no leniency" % word)
		for operation in data.get("partial", []):
			if not any(op["operationId"] == operation and op["method"] == "PATCH" for op in operations):
				self.stop("partial: %s: is no PATCH" % operation)
		self.everywhere = set(data.get("everywhere", []))
		given = data.get("values", {})
		self.values = {field: self.turned("values." + field, given[pairs] if isinstance(pairs, str) else pairs)
			       for field, pairs in given.items()}
		self.fields, self.fields_in = {}, {}
		for theirs, ours in data.get("fields", {}).items():
			for name in ours["in"] if isinstance(ours, dict) else [None]:
				table = self.fields if name is None else self.fields_in.setdefault(name, {})
				key = ours["for"] if isinstance(ours, dict) else ours
				if key in table:
					self.stop("fields: %s has two words" % key)
				table[key] = theirs
		for name in self.fields_in:
			if name not in schemas.by_name:
				self.stop("fields: there is no schema " + name)
		for place in self.everywhere:
			name, field = place.split(".")
			if field not in self.values or name not in schemas.by_name or field not in schemas.shapes[schemas.by_name[name]]["fields"]:
				self.stop("everywhere: %s: no such field, or it has no values" % place)
		# What a discriminator may be is an enumeration of that field.
		for shape in schemas.shapes:
			for field, picked in shape["picks"].items():
				if shape["name"] and set(picked) & set(self.values.get(field, {})):
					self.everywhere.add("%s.%s" % (shape["name"], field))
		self.any_value = {}
		for pairs in self.values.values():
			for ours, theirs in pairs.items():
				self.any_value.setdefault(ours, set()).add(theirs)
		self.nodes, self.rows = {}, []
		self.roots = {}

	def turned(self, where, pairs):
		"""Ours to theirs."""
		out = {}
		for theirs, ours in pairs.items():
			if ours in out or ours in pairs:
				self.stop("%s: %s stands there twice" % (where, ours))
			out[ours] = theirs
		return out

	def closure(self, start):
		"""The schemas that may together describe a value: a schema, its branches, theirs."""
		found, todo = set(), list(start)
		while todo:
			i = todo.pop()
			if i not in found:
				found.add(i)
				todo += self.schemas.shapes[i]["branches"]
		return frozenset(found)

	def value_pairs(self, of, field, places, where):
		"""Words of a text that these schemas describe."""
		named = self.values.get(field)
		pairs, free = {}, False
		for i in of:
			shape = self.schemas.shapes[i]
			if shape["type"] not in ("string", "any"):
				continue
			listed = [v for v in shape["enum"] if isinstance(v, str)]
			if named is None:
				listed = [v for v in listed if len(self.any_value.get(v, ())) == 1]
			known = {v: named[v] if named else next(iter(self.any_value[v])) for v in listed if named is None or v in named}
			for ours, theirs in known.items():
				if theirs in shape["enum"]:
					self.stop("%s: %s is a value of its own" % (where, theirs))
			pairs.update(known)
			free = free or (shape["type"] == "string" and not shape["enum"] and not shape["pattern"])
		if places & self.everywhere:
			pairs, free = dict(named), False
		if pairs and free and field not in self.data.get("when", {}):
			self.stop("%s: a word in one schema, and any text in another: say when" % where)
		return pairs

	def field_word(self, schema, field):
		name = self.schemas.shapes[schema]["name"]
		word = self.fields_in.get(name, {}).get(field)
		return word or self.fields.get(field)

	def node(self, start, field, places=frozenset(), where=""):
		"""The number of the row for values that any of these schemas describes; rows without words are left out later."""
		of = self.closure(start)
		alike = self.data.get("values", {}).get(field)
		key = (of, alike if isinstance(alike, str) else field if alike else None, places & self.everywhere)
		if key in self.nodes:
			return self.nodes[key]
		number = self.nodes[key] = len(self.rows)
		row = {"fields": {}, "items": None, "additional": None, "values": {}, "where": where}
		self.rows.append(row)
		fields, items, additional = {}, set(), set()
		for i in of:
			shape = self.schemas.shapes[i]
			for name, child in shape["fields"].items():
				entry = fields.setdefault(name, {"of": set(), "words": set(), "places": set()})
				entry["of"].add(child)
				entry["words"].add(self.field_word(i, name))
				entry["places"].add("%s.%s" % (shape["name"], name))
			items |= {shape["items"]} - {None}
			additional |= {shape["additional"]} - {None}
		for name, entry in fields.items():
			here = "%s.%s" % (where, name)
			if len(entry["words"]) > 1:
				self.stop("%s: has another word in another schema of the same place" % here)
			child = self.node(entry["of"], name, frozenset(entry["places"]), here)
			row["fields"][name] = (next(iter(entry["words"])), child)
		row["values"] = self.value_pairs(of, field, places, where)
		if items:
			row["items"] = self.node(items, field, places, where + "[]")
		if additional:
			row["additional"] = self.node(additional, None, frozenset(), where + ".*")
		for name, (word, _) in row["fields"].items():
			if word in row["fields"]:
				self.stop("%s.%s: the schema has %s too" % (where, name, word))
		return number

	def root(self, ref, field, where):
		schema = index_of(ref)
		if schema is None:
			return
		number = self.node({schema}, field, frozenset(), where)
		self.roots.setdefault(schema, set()).add(number)

	def keep(self):
		"""Numbers of the rows that lead to a word."""
		wanted, more = set(), True
		while more:
			more = False
			for number, row in enumerate(self.rows):
				leads = row["values"] or any(word or child in wanted for word, child in row["fields"].values()) \
					or row["items"] in wanted or row["additional"] in wanted
				if leads and number not in wanted:
					wanted.add(number)
					more = True
		return wanted

	def path(self, text):
		"""A path in their words. Parameters stay."""
		parts = text.split("{")
		out = []
		for i, part in enumerate(parts):
			name, literal = part.split("}") if i else ("", part)
			for theirs, ours in self.data.get("paths", {}).items():
				literal = literal.replace(ours, theirs)
			out.append(("{" + name + "}" if i else "") + literal)
		return "".join(out)

	def texts(self):
		"""Our words that stand for nothing else in a sentence."""
		out = {**self.fields, **self.turned("codes", self.data.get("codes", {}))}
		for pairs in self.values.values():
			for ours, theirs in pairs.items():
				if any(c in ours for c in "_.") or "svc" in ours.lower():
					out.setdefault(ours, theirs)
		return {ours: theirs for ours, theirs in out.items() if len(ours) > 3 and " " not in ours}

	def tables(self, number, c_string, versions):
		"""The rows as C. `versions`: of each operation, the schemas of its bodies and parameters."""
		for where, field, ref in versions:
			self.root(ref, field, where)
		wanted = sorted(self.keep())
		order = {row: i for i, row in enumerate(wanted)}
		at = lambda row: "&D%dW[%d]" % (number, order[row]) if row in order else "NULL"
		lines, rows, names = [], [], {}

		def named(kind, text):
			"""A constant array; equal ones are one."""
			if (kind, text) not in names:
				names[kind, text] = "D%dA%d" % (number, len(names))
				lines.append("static const %s %s[] = {%s};" % (kind, names[kind, text], text))
			return names[kind, text]

		def words(pairs):
			"""`pairs`: from, to, the row below, and when. Sorted as dialect.c looks."""
			listed = sorted(pairs, key=lambda p: (len(p[0].encode()), p[0].encode()))
			if not listed:
				return "NULL", 0
			text = ", ".join("{%s, %d, %s, %d, %s, %s}" % (c_string(a), len(a.encode()), c_string(b), len((b or "").encode()),
								       below, when) for a, b, below, when in listed)
			return named("struct word", text), len(listed)

		def when(field):
			given = self.data.get("when", {}).get(field)
			if not given:
				return "NULL"
			(beside, values), = given.items()
			return named("char *const", ", ".join(map(c_string, [beside, *values])) + ", NULL")

		for row in (self.rows[i] for i in wanted):
			fields = []
			for name, (word, child) in row["fields"].items():
				if word:
					fields += [(name, word, at(child), "NULL"), (word, name, at(child), "NULL")]
				elif child in order:
					fields.append((name, None, at(child), when(name)))
			values = [(a, b, "NULL", "NULL") for ours, theirs in row["values"].items() for a, b in ((ours, theirs), (theirs, ours))]
			rows.append("{%s, %d, %s, %d, %s, %s}" % (*words(fields), *words(values), at(row["items"]), at(row["additional"])))
		for schema, found in self.roots.items():
			if len({i for i in found if i in order}) > 1 and len({rows[order[i]] for i in found}) > 1:
				self.stop("%s: one schema, and other words in two places" % " ".join(self.rows[i]["where"] for i in found))
		roots = ["[%d] = %s" % (schema, at(next(iter(found)))) for schema, found in sorted(self.roots.items())
			 if next(iter(found)) in order]
		texts, text_count = words([(a, b, "NULL", "NULL") for a, b in self.texts().items()])
		endpoints = []
		for e in self.data.get("endpoints", []):
			if set(e) - {"path", "method", "json", "text", "status"}:
				self.stop("endpoints: %s: a key that nobody knows" % e.get("path"))
			body = e.get("text") if "text" in e else dump(e["json"]) if "json" in e else None
			endpoints.append("{%s, METHOD_%s, %d, %s, %s}" % (c_string(e["path"]), e["method"], e.get("status", 200),
									  "true" if "json" in e else "false", c_string(body)))
		out = ["static const struct vocabulary D%dW[%d];" % (number, len(rows) or 1), *lines,
		       "static const struct vocabulary D%dW[%d] = {%s};" % (number, len(rows) or 1, ",\n".join(rows) or "{0}"),
		       "static const struct vocabulary *const D%dR[%d] = {%s};" % (number, len(self.schemas.rows), ", ".join(roots) or "NULL"),
		       "static const char *const D%dP[] = {%s};" % (number, ", ".join(c_string(self.path(op["path"])) for op in self.operations)),
		       "static const bool D%dO[] = {%s};" % (number, ", ".join("true" if op["operationId"] in self.data.get("partial", []) else "false"
								       for op in self.operations)),
		       "static const struct dialect_endpoint D%dE[] = {%s};" % (number, ", ".join(endpoints) or "{0}")]
		row = {
			"name": c_string(self.data["name"]), "title": c_string(self.data.get("title", self.data["name"])), "index": number + 1,
			"base": c_string(self.data["base"]), "base_v1": c_string(self.data.get("baseV1")),
			"media": c_string(self.data["media"]),
			"lenient": " | ".join(LENIENT[w] for w in self.data.get("lenient", [])) or "0",
			"paths": "D%dP" % number, "partial": "D%dO" % number, "roots": "D%dR" % number, "texts": texts, "text_count": text_count,
			"endpoints": "D%dE" % number, "endpoint_count": len(endpoints),
		}
		return out, "{%s}" % ", ".join(".%s = %s" % item for item in row.items())


def dump(value):
	import json
	return json.dumps(value, separators=(",", ":"))
