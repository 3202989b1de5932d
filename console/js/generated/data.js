/* The data of the generated pages, and the rules that turn names into labels. */
import {operation, operationIds} from '../api.js';
import {file} from '../lib.js';

const known = new Map();

function load(path) {
	if (!known.has(path))
		known.set(path, fetch(file(`data/${path}`)).then(answer => {
			if (!answer.ok)
				throw new Error(`${path}: ${answer.status}`);
			return answer.json();
		}).catch(fault => {
			known.delete(path);
			throw fault;
		}));
	return known.get(path);
}

const UNBUILT = 1, DEPRECATED = 2, PAGINATED = 4, ONCE = 8;
let index = null, names = null;

/* The pages' own style sheet is loaded with the first of them. */
function dress() {
	if (document.querySelector('link[data-generated]'))
		return undefined;
	const link = document.createElement('link');
	link.rel = 'stylesheet';
	link.href = file('css/generated.css');
	link.dataset.generated = '';
	return new Promise(done => {
		link.onload = link.onerror = done;
		document.head.append(link);
	});
}

/* Before anything else here is asked. */
export async function loadIndex() {
	if (!index) {
		const [rows, found] = await Promise.all([load('index.json'), load('names.json'), dress()]);
		names = found;
		index = new Map(rows.map(([id, ...row]) => [id, row]));
	}
}

/* What a pattern asks for, in words. */
export const ruleOf = pattern => names?.rules[pattern];

export const families = () => Object.entries(names.families).map(([id, [title, about]]) => ({id, title, about}));

/* A row of the table of operations with what people read of it. */
export function described(id) {
	const [summary, command, family, flags = 0] = index.get(id) ?? [];
	return {...operation(id), family, summary, command, unbuilt: Boolean(flags & UNBUILT), deprecated: Boolean(flags & DEPRECATED),
		paginated: Boolean(flags & PAGINATED), once: Boolean(flags & ONCE)};
}

export const isOperation = id => Boolean(index?.has(id)) && operationIds().includes(id);
let every = null;
export const everyOperation = () => every ??= [...index.keys()].map(described);
export const familyOf = name => names.families[name] ?? [name, ''];

/* What the page of an operation needs: {path, query, body, columns, rows, about, forms, needed} */
export async function pageOf(id) {
	await loadIndex();
	const data = await load(`f/${described(id).family}.json`), page = data.operations[id];
	const params = list => (list ?? []).map(([name, node, required, help]) => ({name, node, required: Boolean(required), help}));
	return {path: params(page.p).map(p => ({...p, required: true})), query: params(page.q), body: page.b, columns: page.c ?? [], rows: page.v ?? {},
		about: page.r, produces: page.as ?? ['json'], needed: Boolean(page.need), nodes: data.nodes};
}

/* Words of a name: "awsIAMType" -> ["aws", "IAM", "Type"]. */
const parts = name => name.replace(/^_+/, '').replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2').split(/[\s_.-]+/).filter(Boolean);
const capital = text => text ? text[0].toUpperCase() + text.slice(1) : text;

export function label(name) {
	if (names?.labels[name])
		return names.labels[name];
	const words = parts(name).map(word => names?.words[word.toLowerCase()] ?? (/^[A-Z0-9]{2,}$/.test(word) ? word : word.toLowerCase()));
	return capital(words.join(' ')) || name;
}

export const labelOfPath = path => path.split('.').map((part, i) => i ? label(part).replace(/^[A-Z](?=[a-z])/, c => c.toLowerCase()) : label(part)).join(' ');

/* REPLICA_SET is shown as "Replica set"; names with digits and in mixed case are left alone. */
export function labelOfValue(value) {
	if (typeof value !== 'string')
		return String(value);
	if (names?.values[value])
		return names.values[value];
	if (!/^[A-Z]+(_[A-Z]+)*$/.test(value))
		return value;
	return capital(value.split('_').map(word => names?.words[word.toLowerCase()] ?? word.toLowerCase()).join(' '));
}

export const helpOf = name => names?.help[name];
export const isState = name => names?.states.includes(name);
export const isMadeSecret = name => names?.secrets.includes(name);
export const referenceOf = name => names?.references[name];

/* The branch of several that has no value of its own: its schema's name, as words. */
export const labelOfForm = name => label(name.replace(/(ViewFor|For)\w*$/, '').replace(/(View|Request|Response|\d{8})+$/, '')) || name;

export const node = (page, n) => typeof n === 'number' ? page.nodes[n] : n;
export const paramsOf = path => [...path.matchAll(/\{(\w+)\}/g)].map(m => m[1]);
