/* The same call for a terminal: as a line for curl, and as a command of the client. Secrets are not written into either. */
import {BASE} from '../api.js';
import {node as resolve, paramsOf} from './data.js';
import {branchOf} from './check.js';

const quoted = text => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replace(/'/g, `'\\''`)}'`;
const HIDDEN = '***';

/* The body without its secrets. */
export function hidden(page, n, value) {
	const is = resolve(page, n);
	if (!is || value === undefined || value === null)
		return value;
	if (is.f === 'p')
		return HIDDEN;
	if (is.t === 'a' && Array.isArray(value))
		return value.map(v => hidden(page, is.i, v));
	if ((is.t === 'o' || is.t === 'u') && typeof value === 'object') {
		const fields = is.t === 'u' ? resolve(page, branchOf(page, is, value)?.[1])?.k ?? [] : is.k;
		const by = Object.fromEntries(fields.map(([name, field]) => [name, field]));
		return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, hidden(page, by[k] ?? {}, v)]));
	}
	return value;
}

export function asCurl(op, page, params, query, body) {
	const path = op.path.replace(/\{(\w+)\}/g, (all, name) => params[name] ? encodeURIComponent(params[name]) : all);
	const q = new URLSearchParams();
	for (const [k, v] of Object.entries(query))
		for (const one of Array.isArray(v) ? v : [v])
			q.append(k, one);
	const text = q.toString(), form = page.produces.includes('json') ? 'json' : page.produces[0];
	const lines = ['curl --cacert ca.crt --digest --user "$PUBLIC_KEY:$PRIVATE_KEY"', `-H 'Accept: application/vnd.svc.${op.version}+${form}'`];
	if (op.method !== 'GET')
		lines.splice(1, 0, `-X ${op.method}`);
	if (body !== undefined)
		lines.push(`-H 'Content-Type: application/json' -d ${quoted(JSON.stringify(hidden(page, page.body, body)))}`);
	lines.push(quoted(location.origin + BASE + path + (text ? `?${text}` : '')));
	return lines.join(' \\\n  ');
}

/* groupId -> group-id, awsIAMType -> aws-iam-type: as the client writes its flags. */
export const flagName = name => name.replace(/^_+/, '').replace(/([a-z0-9])([A-Z])/g, '$1-$2').replace(/([A-Z])([A-Z][a-z])/g, '$1-$2').replace(/_/g, '-').toLowerCase();

const isScope = name => name === 'groupId' || name === 'orgId';
const escaped = key => key.replace(/[.=:\\]/g, '\\$&');

function flagsOf(page, n, value, at, out) {
	const is = resolve(page, n) ?? {};
	const under = name => at ? `${at}.${name}` : name;
	if (value === undefined)
		return;
	if (value === null)
		out.push(`--set ${quoted(`${at}:=null`)}`);
	else if (is.f === 'p')
		out.push(`--${at} -`);
	else if (Array.isArray(value)) {
		const item = resolve(page, is.i) ?? {};
		const plain = value.every(v => v === null || typeof v !== 'object');
		if (plain && value.length)
			value.forEach(v => out.push(`--${at} ${quoted(String(v))}`));
		else if (plain)
			out.push(`--${at} '[]'`);
		else
			value.forEach((v, i) => flagsOf(page, item, v, i === 0 && value.length === 1 ? at : under(String(i)), out));
	} else if (typeof value === 'object') {
		const fields = is.t === 'u' ? resolve(page, branchOf(page, is, value)?.[1])?.k ?? [] : is.k ?? [];
		const by = Object.fromEntries(fields.map(([name, field]) => [name, field]));
		for (const [k, v] of Object.entries(value))
			flagsOf(page, is.t === 'm' ? is.i : by[k] ?? {}, v, under(is.t === 'm' || is.t === 'x' ? escaped(k) : flagName(k)), out);
	} else if (value === true)
		out.push(`--${at}`);
	else if (value === false)
		out.push(`--${at} false`);
	else
		out.push(`--${at} ${quoted(String(value))}`);
}

export function asCommand(op, page, params, query, body) {
	const names = paramsOf(op.path);
	const scopeIsWord = /^(projects|orgs) /.test(op.command) || names.length > 0 && !isScope(names[0]);
	const words = names.filter(name => !isScope(name) || scopeIsWord).map(name => params[name] ? quoted(params[name]) : name.replace(/(Id|Name)$/, '').replace(/([a-z])([A-Z])/g, '$1-$2').toUpperCase());
	const out = [`steward ${op.command}${words.length ? ` ${words.join(' ')}` : ''}`];
	if (!scopeIsWord)
		for (const [name, flag] of [['groupId', 'project'], ['orgId', 'org']])
			if (names.includes(name) && params[name])
				out.push(`--${flag} ${quoted(params[name])}`);
	for (const [name, value] of Object.entries(query))
		for (const one of Array.isArray(value) ? value : [value])
			out.push(one === true ? `--${flagName(name)}` : `--${flagName(name)} ${quoted(String(one))}`);
	if (body !== undefined && page.body !== undefined) {
		const own = Array.isArray(body) ? body : Object.fromEntries(Object.entries(body).filter(([k, v]) => !(k in params && params[k] === v)));
		if (Array.isArray(own))
			own.forEach((v, i) => flagsOf(page, resolve(page, page.body)?.i, v, i ? String(i) : '', out));
		else
			flagsOf(page, page.body, own, '', out);
	}
	if (!page.produces.includes('json'))
		out.push('>FILE');
	return out.join(' \\\n  ');
}
