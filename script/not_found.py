"""The code of a 404, for each kind of thing that a path can name. A resource says it ("notFound"); one without a key of its
own has that of what it belongs to. A path parameter has the code of the resource that it is the key of, or what its own row
says, or what "notFound" of api/common.json says of parameters with its name: so do the project and the organization of a
call."""
import re

import api_rows

USUAL = "RESOURCE_NOT_FOUND"


class NotFound:
	def __init__(self, resources, table):
		self.resources, self.table = resources, dict(table)
		keyed = {}
		for r in resources.values():
			if "key" in r and "notFound" in r:
				keyed.setdefault(r["key"], set()).add(r["notFound"])
		for key, codes in keyed.items():
			if len(codes) == 1:
				self.table.setdefault(key, next(iter(codes)))

	def chain(self, name):
		"""The resource and all that it lies below."""
		seen, waiting = [], [name]
		while waiting:
			at = waiting.pop(0)
			if at in self.resources and at not in seen:
				seen.append(at)
				waiting += api_rows.above(self.resources[at])
		return [self.resources[at] for at in seen]

	def resource(self, name):
		for r in self.chain(name):
			if "notFound" in r:
				return r["notFound"]
			if "parent" in r:
				return self.table.get(r["parent"], USUAL)
		return USUAL

	def parameter(self, op, param):
		"""None: nobody has said it."""
		if "notFound" in param:
			return param["notFound"]
		name = param["name"]
		scope = name == "groupId" or op["path"].startswith("/orgs/{%s}" % name)
		for r in self.chain(op.get("resource")) if not scope else []:
			if r.get("key") == name and "notFound" in r:
				return r["notFound"]
		by_name = op.get("byName") == name and self.resource(op.get("resource"))
		return self.table.get(name) or by_name or None

	def faults(self, operations):
		for name, r in sorted(self.resources.items()):
			if "key" in r and "notFound" not in r:
				yield "resource " + name, "notFound: needs the code of a 404, since it has a key"
			for code in [r.get("notFound", USUAL), r.get("elsewhere", {}).get("code", USUAL)]:
				if not re.fullmatch("[A-Z][A-Z0-9_]*", code):
					yield "resource " + name, "notFound: must be a word in capitals"
			if "elsewhere" in r and (r.get("parent") != "groupId" or not r.get("keyIsName")):
				yield "resource " + name, "elsewhere: is for resources of projects that are found by their name"
			if r.get("elsewhere", {}).get("kind", "org") not in {o.get("kind", n) for n, o in self.resources.items()}:
				yield "resource " + name, "elsewhere.kind: no such kind of resources"
		for op in operations:
			for param in op.get("pathParams", []):
				if not self.parameter(op, param):
					yield op["operationId"], "pathParams.%s: has no code of a 404 (notFound of api/common.json)" % param["name"]
