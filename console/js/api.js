/* Calls of the API, as the person who is signed in: the cookie goes with them by itself, and what is refused is thrown as an
 * ApiError. The table of operations is made from api/ when the program is built. */
import {file} from './lib.js';

export const BASE = '/api/svc/v2';

/* operationId -> [path, operationId, method, version, roles, danger, roles in the organization that the body names] */
let operations = {};

export async function loadOperations() {
	const answer = await fetch(file('data/operations.json'));
	operations = Object.fromEntries(Object.entries(await answer.json()).flatMap(([path, rows]) => rows.map(row => [row[0], [path, ...row]])));
}

export const operationIds = () => Object.keys(operations);

export function operation(id) {
	const row = operations[id];
	if (!row)
		throw new Error(`no operation ${id}`);
	const [path, , method, version, roles = [], danger = 'none', bodyRoles = []] = row;
	return {id, method, path, version, roles, danger, bodyRoles};
}

export class ApiError extends Error {
	constructor(status, body) {
		super(body?.detail || body?.reason || `status ${status}`);
		this.name = 'ApiError';
		this.status = status;
		this.code = body?.errorCode ?? '';
		this.detail = this.message;
		this.parameters = body?.parameters ?? [];
		this.fields = faultsByField(this.detail, this.parameters);
	}
}

/* "a.b: is required; c: must be …." with the parameters a.b and c -> {'a.b': 'is required', c: 'must be …'} */
function faultsByField(detail, parameters) {
	const fields = {}, starts = [];
	let from = 0;
	for (const p of parameters) {
		const at = typeof p === 'string' ? detail.indexOf(`${p}: `, from) : -1;
		if (at >= 0 && (at === 0 || detail.slice(at - 2, at) === '; ')) {
			starts.push([p, at]);
			from = at + p.length;
		}
	}
	starts.forEach(([p, at], i) => {
		const end = i + 1 < starts.length ? starts[i + 1][1] - 2 : detail.length;
		fields[p] = detail.slice(at + p.length + 2, end).replace(/\.$/, '');
	});
	if (!starts.length) {
		const one = /^([A-Za-z][\w.[\]]*): ([^]*?)\.?$/.exec(detail);
		if (one)
			fields[one[1]] = one[2];
	}
	return fields;
}

/* What is done when a call finds that nobody is signed in; main.js sets it. */
let onSignedOut = () => {};
export const whenSignedOut = f => { onSignedOut = f; };

/* What asks the person once more who it is, and says whether that was shown: for what would outlive a stolen session. proof.js sets it. */
let onProofNeeded = async () => false;
export const whenProofNeeded = f => { onProofNeeded = f; };

const withQuery = (path, query) => {
	const q = new URLSearchParams();
	for (const [k, v] of Object.entries(query ?? {}))
		for (const one of Array.isArray(v) ? v : [v])
			if (one !== undefined && one !== null && one !== '')
				q.append(k, one);
	const text = q.toString();
	return text ? `${path}${path.includes('?') ? '&' : '?'}${text}` : path;
};

const parsed = async answer => {
	const text = await answer.text();
	if (!text)
		return null;
	try {
		return JSON.parse(text);
	} catch {
		return answer.ok ? text : {detail: text.slice(0, 300)};
	}
};

async function exchange(method, path, options) {
	try {
		return await exchangeOnce(method, path, options);
	} catch (e) {
		if (e.code !== 'PROOF_NEEDED' || !await onProofNeeded())
			throw e;
		return exchangeOnce(method, path, options);
	}
}

async function exchangeOnce(method, path, {body, headers, signal, raw, whole} = {}) {
	const init = {method, headers: {Accept: 'application/json', ...headers}, signal, redirect: 'error'};
	if (body !== undefined) {
		init.body = JSON.stringify(body);
		init.headers['Content-Type'] = 'application/json';
	}
	const answer = await fetch(path, init);
	if (!answer.ok) {
		const error = new ApiError(answer.status, await parsed(answer));
		error.retryAfter = Number(answer.headers.get('Retry-After')) || 0;
		if (error.code === 'NOT_SIGNED_IN' && path !== '/api/session')
			onSignedOut(error);
		throw error;
	}
	if (raw)
		return answer;
	return whole ? {body: await parsed(answer), status: answer.status, headers: answer.headers} : parsed(answer);
}

const pause = (seconds, signal) => new Promise((done, fail) => {
	const timer = setTimeout(done, seconds * 1000);
	signal?.addEventListener('abort', () => {
		clearTimeout(timer);
		fail(signal.reason);
	});
});

/* A read that finds its bucket empty waits as long as the server says, twice at most. */
async function patient(method, path, options) {
	for (let tries = 0;; tries++)
		try {
			return await exchange(method, path, options);
		} catch (e) {
			if (method !== 'GET' || e.status !== 429 || tries === 2 || e.retryAfter > 10)
				throw e;
			await pause(e.retryAfter || 1, options?.signal);
		}
}

/* The path of an operation, with its parameters filled in. */
export function pathOf(id, params = {}, query) {
	const path = operation(id).path.replace(/\{(\w+)\}/g, (all, name) => {
		if (params[name] === undefined || params[name] === '')
			throw new Error(`${id} needs ${name}`);
		return encodeURIComponent(params[name]);
	});
	return withQuery(BASE + path, query);
}

/* form: json, csv or gzip; raw: the Response itself, for downloads; whole: {body, status, headers}. */
export function call(id, params, {query, body, signal, raw, whole, form = 'json', headers} = {}) {
	const op = operation(id);
	return patient(op.method, pathOf(id, params, query), {body, signal, whole, raw: raw || form !== 'json',
		headers: {Accept: `application/vnd.svc.${op.version}+${form}`, ...headers}});
}

/* All pages of a list, or as many as `most` items need. */
export async function callAll(id, params, {query, signal, most = 5000} = {}) {
	const results = [];
	for (let pageNum = 1;; pageNum++) {
		const page = await call(id, params, {signal, query: {...query, pageNum, itemsPerPage: 500}});
		const items = Array.isArray(page) ? page : page.results ?? [];
		results.push(...items);
		if (Array.isArray(page) || items.length < 500 || results.length >= most)
			return results;
	}
}

/* Paths beside the catalog: the session, the overview. */
export const get = (path, {query, signal} = {}) => patient('GET', withQuery(path, query), {signal});
export const send = (method, path, body, options) => exchange(method, path, {...options, body});
