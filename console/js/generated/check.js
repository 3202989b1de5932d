/* What can be told about a body before it is sent, and where a place of it stands in its text. The server decides; this only
 * saves a round trip, so what is in doubt is left to it. */
import {t, number} from '../texts.js';
import {node as resolve, ruleOf} from './data.js';

const REQUIRED = 1, IMMUTABLE = 8, LONGEST = 2000;

export const below = (path, name) => path ? `${path}.${name}` : name;

/* A pattern that means the same here as on the server, or none: only whole ones, which cannot run away on short texts. */
const patterns = new Map();
function patternOf(text) {
	if (!patterns.has(text)) {
		let found = null;
		if (/^\^.*\$$/.test(text) && !/\|/.test(text.replace(/\([^()]*\)/g, '').replace(/\([^()]*\)/g, '')))
			for (const flags of ['u', ''])
				try {
					found ??= new RegExp(text, flags);
				} catch {
					/* not in this dialect */
				}
		patterns.set(text, found);
	}
	return patterns.get(text);
}

export function fitsPattern(text, pattern) {
	const found = pattern && text.length <= LONGEST ? patternOf(pattern) : null;
	return !found || found.test(text);
}

const isNothing = value => value === undefined || value === '';

/* Leaves out what was not given: empty texts, objects and lists without anything in them that were not asked for. */
export function pruned(value) {
	if (Array.isArray(value))
		return value.map(pruned).filter(v => v !== undefined);
	if (value && typeof value === 'object')
		return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, pruned(v)]).filter(([, v]) => v !== undefined));
	return value === '' ? undefined : value;
}

export function faultsOf(page, n, value, path = '', faults = {}) {
	const is = resolve(page, n);
	if (isNothing(value) || value === null || !is)
		return faults;
	const say = (key, values) => { faults[path] ??= t(`generated.fault.${key}`, values); };
	if (is.t === 's' && typeof value === 'string' && !is.e) {
		if (is.l !== undefined && value.length < is.l)
			say('short', {n: is.l});
		else if (is.h !== undefined && value.length > is.h)
			say('long', {n: is.h});
		else if (!fitsPattern(value, is.p))
			faults[path] ??= ruleOf(is.p) ?? t('generated.fault.pattern');
	} else if ((is.t === 'i' || is.t === 'n') && typeof value === 'number') {
		if (Number.isNaN(value) || is.t === 'i' && !Number.isInteger(value))
			say('number');
		else if (is.l !== undefined && value < is.l)
			say('low', {n: number(is.l)});
		else if (is.h !== undefined && value > is.h)
			say('high', {n: number(is.h)});
	} else if (is.t === 'a' && Array.isArray(value))
		value.forEach((v, i) => faultsOf(page, is.i, v, `${path}[${i}]`, faults));
	else if (is.t === 'o')
		inObject(page, is, value, path, faults);
	else if (is.t === 'u') {
		const branch = branchOf(page, is, value);
		if (branch)
			inObject(page, resolve(page, branch[1]), value, path, faults);
		else if (is.D)
			faults[below(path, is.D)] = t('generated.fault.required');
	}
	return faults;
}

function inObject(page, is, value, path, faults) {
	for (const [name, n, flags = 0] of is?.k ?? []) {
		const here = below(path, name);
		if (flags & REQUIRED && (isNothing(value[name]) || value[name] === null) && !(flags & IMMUTABLE))
			faults[here] = t('generated.fault.required');
		else
			faultsOf(page, n, value[name], here, faults);
	}
}

/* The form of several that a value has: by its discriminator, else the one that knows most of its fields. */
export function branchOf(page, is, value) {
	if (!value || typeof value !== 'object')
		return undefined;
	if (is.D)
		return is.O.find(([v]) => v === value[is.D]);
	const fit = ([, n]) => (resolve(page, n)?.k ?? []).reduce((sum, [name, field]) => {
		const f = resolve(page, field);
		return value[name] === undefined ? sum : sum + (f?.e && !f.e.includes(value[name]) ? -2 : 1);
	}, 0);
	return Object.keys(value).length ? is.O.reduce((best, o) => fit(o) > fit(best) ? o : best, is.O[0]) : undefined;
}

/* Takes from something that was read what can be written back. */
export function writable(page, n, value) {
	const is = resolve(page, n);
	if (value === undefined || value === null || !is)
		return undefined;
	if (is.t === 'a')
		return Array.isArray(value) ? value.map(v => writable(page, is.i, v)).filter(v => v !== undefined) : undefined;
	if (is.t === 'o' || is.t === 'u') {
		const branch = is.t === 'u' ? branchOf(page, is, value) : null, fields = is.t === 'u' ? resolve(page, branch?.[1])?.k ?? [] : is.k;
		const out = is.D && value[is.D] !== undefined ? {[is.D]: value[is.D]} : {};
		for (const [name, field] of fields) {
			const inner = resolve(page, field)?.f === 'p' ? undefined : writable(page, field, value[name]);
			if (inner !== undefined)
				out[name] = inner;
		}
		return out;
	}
	return value;
}

/* The line (from 1) on which each place of a JSON text stands: {path: line}. The text must be valid. */
export function linesOf(text) {
	const lines = {};
	let at = 0, line = 1;
	const skip = () => {
		while (at < text.length && /\s/.test(text[at])) {
			if (text[at] === '\n')
				line++;
			at++;
		}
	};
	const string = () => {
		const from = at++;
		while (at < text.length && text[at] !== '"')
			at += text[at] === '\\' ? 2 : 1;
		at++;
		return JSON.parse(text.slice(from, at));
	};
	const value = path => {
		skip();
		lines[path] ??= line;
		if (text[at] === '{' || text[at] === '[') {
			const list = text[at] === '[', end = list ? ']' : '}';
			at++;
			for (let i = 0; ; i++) {
				skip();
				if (text[at] === end || at >= text.length)
					break;
				if (list)
					value(`${path}[${i}]`);
				else {
					const key = string(), here = below(path, key);
					lines[here] = line;
					skip();
					at++;
					value(here);
				}
				skip();
				if (text[at] === ',')
					at++;
			}
			at++;
		} else if (text[at] === '"')
			string();
		else
			while (at < text.length && !/[\s,\]}]/.test(text[at]))
				at++;
	};
	value('');
	return lines;
}
