// node ajv.js NODE_MODULES FILE: what ajv, which compiles patterns as Unicode expressions, has against the document's patterns and
// examples. FILE: {"patterns": [...], "schemas": {"true": {...}, "false": {...}}, "cases": [{"where", "schema", "request", "value"}]}
const [, , modules, file] = process.argv;
const Ajv = require(modules + '/ajv-draft-04');
const { patterns, schemas, cases } = JSON.parse(require('fs').readFileSync(file));
const said = [];

for (const p of patterns) {
	try {
		new RegExp(p, 'u');
	} catch (e) {
		said.push(e.message);
	}
}
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: false });
for (const request in schemas)
	ajv.addSchema({ id: 'doc:' + request, components: { schemas: schemas[request] } });
const compiled = new Map();
for (const c of said.length ? [] : cases) {
	const text = JSON.stringify(c.schema).replaceAll('"#/components/', `"doc:${c.request}#/components/`);
	try {
		if (!compiled.has(text))
			compiled.set(text, ajv.compile(JSON.parse(text)));
		const check = compiled.get(text);
		if (!check(c.value))
			said.push(`${c.where}: ${ajv.errorsText(check.errors)}`);
	} catch (e) {
		said.push(`${c.where}: ${e.message}`);
	}
}
console.log(JSON.stringify(said));
