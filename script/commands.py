"""The client's commands in api/*.json: which words call an operation, which columns a table of its answer has, and
which GET tells when its work is done. Used by gen-catalog when the program is built.

A command is two or three words: a family, perhaps a part of it, and a verb. No two rows share one, also not as an
alias."""
import re

WORD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Commands:
	def __init__(self, operations, families, states, named, stop):
		self.operations, self.families, self.states, self.named, self.stop = operations, families, states, named, stop
		self.by_id = {op["operationId"]: op for op in operations}
		self.check_names()
		self.stateful = {op["path"]: op for op in operations if op["method"] == "GET" and self.has_state(op)}

	def check_names(self):
		owners, used = {}, set()
		for op in self.operations:
			where = op["operationId"]
			if not op.get("command"):
				self.stop(where, "has no command")
			for command in [op["command"], *op.get("commandAliases", [])]:
				words = command.split(" ")
				if not 2 <= len(words) <= 3 or not all(WORD.fullmatch(word) for word in words):
					self.stop(where, 'command "%s" is not two or three words in kebab-case' % command)
				if command in owners:
					self.stop(where, 'command "%s" is that of %s too' % (command, owners[command]))
				if words[0] not in self.families:
					self.stop(where, 'command "%s": no commandFamilies describes %s' % (command, words[0]))
				owners[command] = where
				used.add(words[0])
		for command, where in owners.items():
			for n in range(1, len(command.split(" "))):
				if " ".join(command.split(" ")[:n]) in owners:
					self.stop(where, 'command "%s" begins with another command' % command)
		for family in sorted(set(self.families) - used):
			self.stop("commandFamilies", "%s has no command" % family)

	def resolved(self, schema):
		while "$ref" in schema:
			schema = {**self.named[schema["$ref"]], **{k: v for k, v in schema.items() if k != "$ref"}}
		return schema

	def fields(self, schema, seen=()):
		"""Name -> schemas of that field in any branch."""
		if schema.get("$ref") in seen:
			return {}
		seen += (schema["$ref"],) if "$ref" in schema else ()
		schema = self.resolved(schema)
		out = {name: [field] for name, field in schema.get("properties", {}).items()}
		mapped = [{"$ref": name} for name in schema.get("discriminator", {}).get("mapping", {}).values()]
		for part in schema.get("allOf", []) + schema.get("oneOf", []) + schema.get("anyOf", []) + mapped:
			for name, found in self.fields(part, seen).items():
				out.setdefault(name, []).extend(found)
		return out

	def has_state(self, op):
		"""Whether the answer has a state that something moves by itself, or flags and a time that tell of its end."""
		found = self.fields(op.get("response", {}))
		flags = self.states.get("flags", {})
		moves = bool(flags) and {flags["finished"], *flags["failed"]} <= set(found)
		for name in self.states["fields"] if "results" not in found else []:
			for field in map(self.resolved, found.get(name, [])):
				if field.get("type") != "string":
					continue
				values = set(field.get("enum", []))
				if values & set(self.states["moving"]) or not values:
					moves = True
					for value in sorted(values - {v for kind in ("moving", "failed", "resting") for v in self.states[kind]}):
						self.stop(op["operationId"], 'state %s is none of "states" in api/common.json' % value)
		return moves

	def polls(self, op):
		"""The id of the GET whose state tells that the operation's work is done, or None."""
		if "waitOn" in op:
			if self.by_id.get(op["waitOn"]) not in self.stateful.values():
				self.stop(op["operationId"], "waitOn: names no GET with a state")
			return op["waitOn"]
		path = op["path"]
		if op["method"] == "GET":
			return op["operationId"] if path in self.stateful else None
		path = re.sub(r":\w+$", "", path)
		if path in self.stateful:
			return self.stateful[path]["operationId"]
		parents = [path, path.rsplit("/", 1)[0]] if path.endswith("}") else [path]
		for parent in parents if op["method"] == "POST" else []:
			for other in self.stateful:
				if re.fullmatch(re.escape(parent) + r"/\{\w+\}", other):
					return self.stateful[other]["operationId"]
		return None

	def columns(self, op):
		"""The paths of a table's columns, each held against the schema of an entry. What answers as the list at the same
		path does has that one's."""
		for other in self.operations if not op.get("columns") and "response" in op else []:
			if other["path"] == op["path"] and other.get("columns") and other["response"] == op["response"]:
				return other["columns"]
		schema = self.resolved(op.get("response", {}))
		found = self.fields(schema)
		lists = ["results"] if "results" in found else [name for name in found if name != "links"]
		if len(lists) == 1 and self.resolved(found[lists[0]][0]).get("type") == "array":
			schema = self.resolved(found[lists[0]][0])
		if schema.get("type") == "array":
			schema = schema["items"]
		for column in op.get("columns", []):
			level = [schema]
			for name in column.split("."):
				level = [s["items"] if s.get("type") == "array" else s for s in map(self.resolved, level)]
				level = [field for s in level for field in self.fields(s).get(name, [])]
			if not level:
				self.stop(op["operationId"], "column %s: the answer has no such field" % column)
		return op.get("columns", [])
