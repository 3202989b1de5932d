/* What a parameter or field can be chosen from: the list right before it in the path, or the one that its name stands for. */
import {call, operation, operationIds} from '../api.js';
import {missingRoles} from '../session.js';
import {useEffect, useState} from '../lib.js';
import {described, pageOf, paramsOf, referenceOf} from './data.js';

const MOST = 100, KEPT_MS = 20000, TYPING_MS = 200;
const TITLES = ['name', 'displayName', 'username', 'desc', 'description', 'hostnameAndPort', 'hostname', 'bucketName', 'eventTypeName', 'comment', 'createdAt', 'created'];
const kept = new Map();
let listsByPath = null;

/* After a write, what was read before may be wrong. */
export const forgetChoices = () => kept.clear();

function listAt(path) {
	if (!listsByPath)
		listsByPath = new Map(operationIds().map(operation).filter(op => op.method === 'GET').map(op => [op.path, op.id]));
	return listsByPath.get(path);
}

/* {list, value, title} or nothing. */
async function sourceOf(op, name, inPath) {
	const given = referenceOf(name);
	if (inPath) {
		const end = op.path.indexOf(`/{${name}}`);
		const list = end > 0 ? listAt(op.path.slice(0, end)) : undefined;
		const value = list && (await pageOf(list)).rows[name];
		if (value)
			return {list, value, title: given?.list === list ? given.title : undefined};
	}
	return given && (inPath || !given.inPaths) ? given : undefined;
}

export const pick = (row, path) => {
	for (const one of path.split('|')) {
		const value = one.split('.').reduce((v, key) => v?.[key], row);
		if (value !== undefined && value !== null && value !== '')
			return value;
	}
	return undefined;
};

export const rowsOf = body => {
	if (Array.isArray(body))
		return body;
	if (!body || typeof body !== 'object')
		return null;
	if (Array.isArray(body.results))
		return body.results;
	const keys = Object.keys(body).filter(key => key !== 'links');
	return keys.length === 1 && Array.isArray(body[keys[0]]) ? body[keys[0]] : null;
};

/* The organization of a project, which says what the roles of its members give there. */
export async function scopeOf(params) {
	if (!params.groupId)
		return {orgId: params.orgId};
	const key = `group ${params.groupId}`;
	if (!kept.has(key)) {
		const promise = call('getGroup', {groupId: params.groupId}).then(group => group.orgId, () => undefined);
		kept.set(key, promise);
	}
	return {groupId: params.groupId, orgId: await kept.get(key)};
}

async function readChoices(source, params, q) {
	const list = operation(source.list), needed = paramsOf(list.path);
	const given = Object.fromEntries(needed.map(name => [name, params[name]]));
	const key = `${source.list} ${source.value} ${JSON.stringify(given)} ${q ?? ''}`, old = kept.get(key);
	if (old && old.until > Date.now())
		return old.promise;
	const promise = (async () => {
		if (described(list.id).unbuilt || missingRoles(list.id, await scopeOf(given)).length)
			return null;
		const searches = (await pageOf(list.id)).query.some(p => p.name === 'q');
		const body = await call(list.id, given, {query: {itemsPerPage: MOST, q: searches ? q : undefined}}), rows = rowsOf(body) ?? [];
		const found = rows.map(row => {
			const value = pick(row, source.value), title = source.title ? pick(row, source.title) : TITLES.map(t => row?.[t]).find(t => t && t !== value);
			return value === undefined || typeof value === 'object' ? null : {value: String(value), title: title === undefined || typeof title === 'object' ? '' : String(title)};
		}).filter(Boolean);
		const once = [...new Map(found.map(c => [c.value, c])).values()];
		return {choices: once, whole: rows.length < MOST && !q, searches};
	})();
	kept.set(key, {promise, until: Date.now() + KEPT_MS});
	promise.catch(() => kept.delete(key));
	return promise;
}

/* null until it is known, or where there is nothing to choose from. Of a long list, what has the name that is being typed. */
export function useChoices(op, name, params, inPath = false) {
	const [found, setFound] = useState(null);
	const typed = found && !found.whole && found.searches && !found.choices.some(c => c.value === params[name]) ? params[name] : undefined;
	const [q, setQ] = useState(undefined);
	useEffect(() => {
		const timer = setTimeout(() => setQ(typed && !/^[0-9a-f]{24}$/.test(typed) ? typed : undefined), TYPING_MS);
		return () => clearTimeout(timer);
	}, [typed]);
	const own = op.path.indexOf(`{${name}}`);
	const before = inPath ? paramsOf(op.path.slice(0, own)).map(p => params[p] ?? '').join('\n') : JSON.stringify(params);
	useEffect(() => {
		let alive = true;
		(async () => {
			try {
				const source = await sourceOf(op, name, inPath);
				if (!source || paramsOf(operation(source.list).path).some(p => !params[p] || p === name && inPath))
					return alive && setFound(null);
				const choices = await readChoices(source, params, q);
				return alive && setFound(choices);
			} catch {
				return alive && setFound(null);
			}
		})();
		return () => { alive = false; };
	}, [op.id, name, before, q]);
	return found;
}

/* The name under which people know a value that was chosen. */
export async function titleOf(op, name, params) {
	try {
		const source = await sourceOf(op, name, true);
		const found = source && paramsOf(operation(source.list).path).every(p => params[p]) ? await readChoices(source, params) : null;
		const choice = found?.choices.find(c => c.value === params[name]);
		return choice?.title && /^[0-9a-f]{24}$/.test(choice.value) && !/^\d{4}-/.test(choice.title) ? choice.title : params[name];
	} catch {
		return params[name];
	}
}
