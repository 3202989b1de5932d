"""What the OpenAPI document says in words and by example. Used by gen-catalog when the program is built: the same data always
gives the same text.

An operation's description comes from its row: what it does, whom it serves, how often. An example of a body is made from its
schema, and is valid by it: fields that a caller may not send are not in a request, those that are never shown not in an answer.
Field names that say enough for a person, and patterns that need a real value, have theirs in "words" of api/common.json."""
SCOPES = {"GROUP": "project", "ORGANIZATION": "organization", "USER": "caller", "IP": "address"}
FORMATS = {
	"date-time": "2025-03-12T09:30:00Z", "date": "2025-03-12", "email": "ada@example.com", "uri": "https://example.com/",
	"uuid": "0f8fad5b-d9cb-469f-a165-70867728950e", "password": "correct horse battery", "binary": "",
}
# Optional fields are shown down to here; below, what must be there.
SHOWN_DEPTH, DEPTH_MAX = 2, 12


def sentence(text):
	return text if text.endswith(".") else text + "."


def listed(words):
	return words[0] if len(words) == 1 else "%s or %s" % (", ".join(words[:-1]), words[-1])


def who(op, public):
	if public:
		return "It needs no credentials."
	if not op["roles"]:
		return "Every caller that has signed in may call it; it shows what that caller may see."
	roles = ["`%s`" % r for r in op["roles"]]
	return "The caller needs the role %s, or one that includes it." % roles[0] if len(roles) == 1 else \
		"The caller needs one of the roles %s, or one that includes it." % listed(roles)


def often(bucket):
	seconds = bucket["refillDurationSeconds"]
	return "Calls are limited by the set `%s` (%s): %d at once for each %s, and %d more every %s." % (
		bucket["id"], bucket["name"], bucket["capacity"], SCOPES[bucket["scope"]], bucket["refillRate"],
		"second" if seconds == 1 else "minute" if seconds == 60 else "%d seconds" % seconds)


def description(op, bucket, public):
	parts = [sentence(op["summary"])]
	if op.get("description"):
		parts[0] += " " + sentence(op["description"])
	if op.get("paginated"):
		parts.append("The list comes in pages: `pageNum` and `itemsPerPage` choose one, and `links` lead to the others.")
	if op["success"] == 202:
		parts.append("The work goes on after the answer: read the resource again to see how far it is.")
	elif op["method"] == "DELETE":
		parts.append("What is deleted cannot be brought back.")
	elif op["method"] == "PATCH":
		parts.append("Fields that are left out stay as they are.")
	elif op["method"] == "PUT":
		parts.append("The body takes the place of what was there.")
	parts += [who(op, public), often(bucket)]
	if op.get("deprecated"):
		parts.append("It is deprecated: there is a newer operation for the same.")
	if op["handler"] == "unbuilt":
		parts.append("This service does not have it yet: it checks the call as any other, and then answers 501.")
	return "\n\n".join(parts)


class Examples:
	def __init__(self, named, words):
		self.named, self.patterns, self.names = named, words.get("patterns", {}), words.get("examples", {})

	def merged(self, schema, seen):
		"""A schema with its $ref and the parts of its allOf put together; and which names it came through."""
		if "$ref" in schema:
			inner, through = self.merged(self.named[schema["$ref"]], seen + (schema["$ref"],))
			return {**inner, **{k: v for k, v in schema.items() if k != "$ref"}}, through
		out = {k: v for k, v in schema.items() if k != "allOf"}
		out["properties"], out["required"] = dict(schema.get("properties", {})), list(schema.get("required", []))
		for part in schema.get("allOf", []):
			inner, _ = self.merged(part, seen)
			out["properties"].update(inner.get("properties", {}))
			out["required"] += inner.get("required", [])
			out.setdefault("type", inner.get("type", "object"))
			if "additionalProperties" in inner:
				out.setdefault("additionalProperties", inner["additionalProperties"])
		return out, seen

	def value(self, schema, request, name="", depth=0, seen=()):
		through = seen
		schema, seen = self.merged(schema, seen)
		if len(seen) != len(set(seen)) or depth > DEPTH_MAX:
			return {} if schema.get("type") == "object" else [] if schema.get("type") == "array" else None
		if schema.get("default") is not None and not schema.get("properties"):
			return schema["default"]
		plain = [v for v in schema.get("enum", []) if not (isinstance(v, str) and v.startswith("<"))]
		if plain:
			return plain[0]
		if schema.get("oneOf") or schema.get("anyOf") or schema.get("discriminator", {}).get("mapping"):
			return self.branch(schema, request, name, depth, seen if seen != through else through)
		kind = schema.get("type") or ("object" if schema["properties"] else None)
		if kind == "object":
			return self.object(schema, request, depth, seen)
		if kind == "array":
			item = self.value(schema.get("items", {"type": "string"}), request, name, depth, seen)
			least = schema.get("minItems", 0)
			return [] if item is None or (item in ({}, []) and not least) else [item] * max(1, least)
		if kind in ("integer", "number"):
			return self.number(schema, name)
		if kind == "boolean":
			return bool(self.names.get(name, False))
		return self.text(schema, name)

	def branch(self, schema, request, name, depth, seen):
		mapping = schema.get("discriminator", {}).get("mapping", {})
		own = self.object(schema, request, depth, seen) if schema["properties"] else {}
		if mapping:
			word, target = next(iter(sorted(mapping.items())))
			if target in seen:
				return {**own, schema["discriminator"]["propertyName"]: word}
			chosen = self.value({"$ref": target}, request, name, depth, seen)
			return {**own, **chosen, schema["discriminator"]["propertyName"]: word}
		chosen = self.value((schema.get("oneOf") or schema.get("anyOf"))[0], request, name, depth, seen)
		return {**own, **chosen} if isinstance(chosen, dict) else chosen

	def object(self, schema, request, depth, seen):
		out = {}
		for name, field in schema["properties"].items():
			inner, _ = self.merged(field, ())
			if (inner.get("readOnly") and request) or (inner.get("writeOnly") and not request):
				continue
			needed = name in schema["required"]
			if not needed and (depth >= SHOWN_DEPTH or inner.get("deprecated")):
				continue
			value = self.value(field, request, name, depth + 1, seen)
			if needed or value not in (None, {}, []):
				out[name] = value
		more = schema.get("additionalProperties")
		if not out and isinstance(more, dict) and depth < SHOWN_DEPTH:
			value = self.value(more, request, "", depth + 1, seen)
			if value is not None:
				out["name"] = value
		return out

	def number(self, schema, name):
		value = self.names.get(name, 1)
		value = value if isinstance(value, (int, float)) else 1
		low, high = schema.get("minimum"), schema.get("maximum")
		if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
			value = low + (1 if schema.get("exclusiveMinimum") else 0)
		if high is not None and value > high:
			value = high
		return int(value) if schema.get("type") == "integer" else value

	def text(self, schema, name):
		if "pattern" in schema:
			return self.patterns[schema["pattern"]]
		value = FORMATS.get(schema.get("format"))
		if value is None:
			value = self.names.get(name, "text")
		value = value if isinstance(value, str) else "text"
		least = schema.get("minLength", 0)
		most = schema.get("maxLength")
		while len(value) < least:
			value += value or "x"
		return value[:most] if most is not None else value
