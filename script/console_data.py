"""The data of the console's pages, derived from api/*.json when the program is built: files(folder) gives them by their paths.
What follows by rule from names is not in it; the browser has the same rules.

  data/operations.json   {path: [[operationId, method, newest version, roles, danger, roles where the body says]]}: the first load has a
                         bound of bytes, and so takes a tenth less of it
  data/roles.json        {role: {includes, inEveryProject}}
  data/index.json        [operationId, summary, command, family, flags] of each operation
  data/names.json        families, labels, words, values and help by name, rules by pattern, references, fields with states and with secrets that the service makes
  data/f/FAMILY.json     nodes: shared forms (see pages.py), and of each operation what its page needs

  console_data.py [FOLDER]    the sizes of the files, plain and compressed"""
import gzip
import json
import pathlib
import sys

import commands
import pages

UNBUILT, IS_DEPRECATED, PAGINATED, ONCE = 1, 2, 4, 8


def stop(where, what):
	sys.exit("api: %s: %s" % (where, what))


class Data:
	def __init__(self, folder):
		self.families, self.operations, self.resources, self.named, self.words, self.roles = {}, [], {}, {}, {}, {}
		self.pages, commands_of, states = {}, {}, {}
		for path in sorted(folder.glob("*.json")):
			data = json.loads(path.read_text(encoding="utf-8"))
			if "organization" in data and "project" in data:
				self.roles = data
				continue
			self.families[data["family"]] = data
			self.named.update(data.get("schemas", {}))
			self.resources.update(data.get("resources", {}))
			self.operations += data.get("operations", [])
			self.words.update(data.get("words", {}))
			self.pages.update(data.get("pages", {}))
			commands_of.update(data.get("commandFamilies", {}))
			states.update(data.get("states", {}))
		self.states = states
		self.made = pages.Pages(self.operations, self.resources, self.named, self.words, self.pages,
					commands.Commands(self.operations, commands_of, states, self.named, stop))
		for where, what in self.made.faults():
			stop(where, what)

	def role_table(self):
		out = {}
		for scope, base in (("organization", "ORG_MEMBER"), ("project", "GROUP_READ_ONLY")):
			for name, role in self.roles[scope].items():
				includes = role["includes"] + ([base] if base not in role["includes"] and name != base else [])
				out[name] = {"includes": includes, **({"inEveryProject": role["inEveryProject"]} if "inEveryProject" in role else {})}
		return out

	def operation_table(self):
		"""What is not known by the path, but by the body, has its roles there."""
		rows = {}
		for op in self.operations:
			danger, in_body = pages.danger(op), op.get("bodyScope", {}).get("roles", []) if not op["roles"] else []
			rest = [danger, in_body] if in_body else [danger] if danger != "none" else []
			rows.setdefault(op["path"], []).append([op["operationId"], op["method"], max(op["versions"]), op["roles"], *rest])
		return rows

	def index(self):
		rows = []
		for name, family in self.families.items():
			for op in family.get("operations", []):
				flags = UNBUILT * (op["handler"] == "unbuilt") | IS_DEPRECATED * bool(op.get("deprecated")) | \
					PAGINATED * bool(op.get("paginated")) | ONCE * self.made.shown_once(op)
				rows.append([op["operationId"], op["summary"], op["command"], name, *([flags] if flags else [])])
		return rows

	def names(self):
		return {**{key: self.pages.get(key, {}) for key in ("words", "labels", "values", "references")}, "help": self.words.get("fields", {}), "rules": self.words.get("rules", {}),
			"states": self.states["fields"], "secrets": self.made.made_secrets(),
			"families": {name: [f["title"], f["description"]] for name, f in self.families.items() if f["operations"]}}

	def param(self, p, common, forms):
		node = forms.build({k: v for k, v in p.items() if k not in ("name", "required", "description", "notFound")})
		text = p.get("description", "")
		return [p["name"], node, 1 if p.get("required") else 0, *([text] if common.get(p["name"]) != text else [])]

	def family(self, data):
		nodes, numbers, out = [], {}, {}
		forms = pages.Forms(self.made, nodes, numbers)
		for op in data["operations"]:
			page = {}
			path = [self.param(p, self.words["fields"], forms) for p in op.get("pathParams", [])]
			query = [self.param(p, self.words["fields"], forms) for p in op.get("queryParams", [])]
			form = self.made.form(op, nodes, numbers)
			columns, rows = self.made.columns(op), {}
			if op["method"] == "GET" and self.made.entries(op) is not None:
				rows = self.made.rows(op)
			for key, value in (("p", path), ("q", query), ("b", form), ("c", columns), ("v", rows), ("r", op.get("description")),
					   ("need", 1 if op.get("requestRequired") else None),
					   ("as", op["produces"] if op["produces"] != ["json"] else None)):
				if value not in (None, [], {}):
					page[key] = value
			out[op["operationId"]] = page
		return {"nodes": nodes, "operations": out}


def compact(value):
	return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def files(folder):
	data = Data(pathlib.Path(folder))
	out = {"data/operations.json": data.operation_table(), "data/roles.json": data.role_table(), "data/index.json": data.index(),
	       "data/names.json": data.names()}
	for name, family in sorted(data.families.items()):
		if family.get("operations"):
			out["data/f/%s.json" % name] = data.family(family)
	return {path: compact(value) for path, value in out.items()}


def main():
	if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
		sys.exit(__doc__)
	folder = sys.argv[1] if len(sys.argv) == 2 else pathlib.Path(__file__).resolve().parent.parent / "api"
	plain = small = 0
	for path, content in files(folder).items():
		size = len(gzip.compress(content, 9, mtime=0))
		plain, small = plain + len(content), small + size
		print("%8d %7d  %s" % (len(content), size, path))
	print("%8d %7d" % (plain, small))


if __name__ == "__main__":
	main()
