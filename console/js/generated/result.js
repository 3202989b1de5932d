/* What an operation answered: a table with links to what can be done with each row, or the fields of one thing. */
import {html} from '../lib.js';
import {t, bytes} from '../texts.js';
import {Bytes, Empty, Facts, Link, SecretOnce, StatePill, Table, Time, Copy} from '../ui/index.js';
import {described, everyOperation, isMadeSecret, isState, label, labelOfPath, labelOfValue, paramsOf} from './data.js';
import {pick, rowsOf} from './choices.js';

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)$/;
const LONG = 60, ENTRIES_MOST = 200;

const atPath = (row, path) => path.split('.').reduce((values, key) => values.flatMap(v => Array.isArray(v?.[key]) ? v[key] : v?.[key] ?? []), [row]);

/* A value on its own. */
export function Value({name, value}) {
	if (value === undefined || value === null || value === '')
		return html`<span class="dim">—</span>`;
	if (typeof value === 'boolean')
		return t(value ? 'yes' : 'no');
	if (typeof value === 'number' && /Bytes$|^bytes/i.test(name))
		return html`<${Bytes} value=${value} />`;
	if (typeof value === 'number')
		return html`<span class="num">${value}</span>`;
	if (typeof value !== 'string')
		return html`<code class="mono">${JSON.stringify(value)}</code>`;
	if (ISO.test(value))
		return html`<${Time} at=${value} kind="full" />`;
	if (isState(name) && /^[A-Za-z_]+$/.test(value))
		return html`<${StatePill} state=${value} />`;
	const told = labelOfValue(value);
	if (told !== value)
		return html`<span title=${value}>${told}</span>`;
	if (/\n/.test(value) || value.length > 4 * LONG)
		return html`<pre class="gen-text" tabindex="0">${value}</pre>`;
	return /^[0-9a-f]{24}$/.test(value) ? html`<code class="mono">${value}</code>` : value.length > LONG ? html`<span class="gen-long">${value}</span>` : value;
}

const isPlain = v => v === null || typeof v !== 'object';
const FIRST = ['name', 'username', 'displayName', 'roleName', 'clusterName', 'title', 'desc', 'stateName', 'statusName', 'status', 'state', 'id', '_id'];
const rank = ([key, v]) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length) + (isPlain(v) ? 0 : 100);

/* The fields of an object: what it is called and where it stands first, then what is plain, then its parts. */
export function Details({value, depth = 0, once}) {
	if (isPlain(value))
		return html`<${Value} name="" value=${value} />`;
	if (Array.isArray(value))
		return html`<${Entries} list=${value} depth=${depth} once=${once} />`;
	const entries = Object.entries(value).filter(([key]) => key !== 'links').sort((a, b) => rank(a) - rank(b));
	const secrets = entries.filter(([key, v]) => typeof v === 'string' && v && once && isMadeSecret(key) && !/^\*+|\*{3,}/.test(v));
	const plain = entries.filter(e => isPlain(e[1]) && !secrets.includes(e));
	const parts = entries.filter(([, v]) => !isPlain(v) && (Array.isArray(v) ? v.length : Object.keys(v).length));
	return html`${secrets.map(([key, v]) => html`<${SecretOnce} key=${key} label=${label(key)} text=${v} />`)}
		${plain.length > 0 && html`<${Facts} items=${plain.map(([key, v]) => [label(key), v === null || v === '' ? undefined : html`<${Value} name=${key} value=${v} />`])} />`}
		${parts.map(([key, v]) => html`<${Part} key=${key} name=${key} value=${v} depth=${depth} once=${once} />`)}`;
}

function Part({name, value, depth, once}) {
	if (Array.isArray(value) && value.every(isPlain))
		return html`<${Facts} items=${[[label(name), html`<ul class="gen-values">${value.slice(0, ENTRIES_MOST).map((v, i) => html`<li key=${i}><${Value} name=${name} value=${v} /></li>`)}</ul>`]]} />`;
	return html`<details class="gen-part" open=${depth < 2 || once}><summary>${label(name)}${Array.isArray(value) ? html` <span class="dim">${value.length}</span>` : ''}</summary>
		<div class="gen-inside"><${Details} value=${value} depth=${depth + 1} once=${once} /></div></details>`;
}

const Entries = ({list, depth, once}) => html`<ol class="gen-entries">${list.slice(0, ENTRIES_MOST).map((v, i) => html`<li key=${i}><${Details} value=${v} depth=${depth + 1} once=${once} /></li>`)}</ol>
	${list.length > ENTRIES_MOST && html`<p class="dim">${t('generated.more', {n: list.length - ENTRIES_MOST})}</p>`}`;

/* Operations for which all parameters of the path are known; `path` is where they begin. */
export function operationsAt(path, params, self) {
	return everyOperation().filter(op => op.id !== self && (op.path === path || op.path.startsWith(path) && '/:.'.includes(op.path[path.length])) && paramsOf(op.path).every(p => params[p]));
}

export const operationLink = (id, params) => {
	const needed = paramsOf(described(id).path);
	return [`/operations/${id}`, Object.fromEntries(needed.map(p => [p, params[p]]))];
};

function RowMenu({op, page, row, params, title}) {
	const all = {...params};
	for (const [param, field] of Object.entries(page.rows))
		all[param] = pick(row, field);
	const found = Object.keys(page.rows).length ? everyOperation().filter(o => o.path.startsWith(`${op.path}/{`) && paramsOf(o.path).every(p => all[p] !== undefined && all[p] !== null)
		&& paramsOf(o.path).length > paramsOf(op.path).length) : [];
	if (!found.length)
		return null;
	return html`<details class="gen-row-menu"><summary aria-label=${t('generated.operationsOf', {name: title})}>${t('generated.operations')}</summary><ul>${found.map(o => {
		const [to, query] = operationLink(o.id, all);
		return html`<li key=${o.id}><${Link} to=${to} query=${query}>${o.summary}<//></li>`;
	})}</ul></details>`;
}

/* The row as a link to the operation that reads it. */
function openOf(op, page, row, params) {
	const all = {...params};
	for (const [param, field] of Object.entries(page.rows))
		all[param] = pick(row, field);
	const get = everyOperation().find(o => o.method === 'GET' && o.path.startsWith(`${op.path}/{`) && /^(\/\{\w+\})+$/.test(o.path.slice(op.path.length)) && paramsOf(o.path).every(p => all[p] !== undefined));
	return get ? operationLink(get.id, all) : null;
}

function Rows({op, page, rows, params}) {
	const names = page.columns.length ? page.columns : [...new Set(rows.slice(0, 20).flatMap(r => Object.keys(r ?? {})))].filter(k => k !== 'links').slice(0, 6);
	const columns = names.map((path, i) => ({key: path, label: labelOfPath(path), value: row => atPath(row, path).map(String).join(', '), main: i === 0, cell: row => {
		const values = atPath(row, path), shown = html`<${Value} name=${path.split('.').at(-1)} value=${values.length > 1 ? values.map(v => typeof v === 'object' ? JSON.stringify(v) : v).join(', ') : values[0]} />`;
		const open = i === 0 ? openOf(op, page, row, params) : null;
		return open && values[0] !== undefined ? html`<${Link} to=${open[0]} query=${open[1]}>${shown}<//>` : shown;
	}}));
	if (Object.keys(page.rows).length)
		columns.push({key: '\u0000', label: '', label2: t('generated.operations'), sort: false, cell: row => html`<${RowMenu} op=${op} page=${page} row=${row} params=${params} title=${String(atPath(row, names[0])[0] ?? '')} />`});
	const keys = new Map(rows.map((row, i) => [row, i]));
	return html`<${Table} label=${op.summary} columns=${columns} rows=${rows} keyOf=${row => keys.get(row)} />`;
}

export function Result({op, page, answer, params}) {
	const {status, body, file} = answer;
	if (file)
		return html`<p><a class="btn" href=${file.url} download=${file.name}>${t('generated.save', {name: file.name, size: bytes(file.size)})}</a></p>`;
	if (body === null || body === undefined || body === '')
		return html`<p>${t('generated.nothing', {status})}</p>`;
	const rows = rowsOf(body);
	if (rows && !rows.length)
		return html`<${Empty} title=${t('generated.empty')} />`;
	if (rows && rows.every(isPlain))
		return html`<ul class="gen-values">${rows.map((v, i) => html`<li key=${i}><${Value} name="" value=${v} /></li>`)}</ul>`;
	if (rows && !op.once)
		return html`<${Rows} op=${op} page=${page} rows=${rows} params=${params} />`;
	return html`<${Details} value=${body} once=${op.once} />`;
}

export const Raw = ({body}) => {
	const text = JSON.stringify(body, null, 2);
	return html`<details class="gen-part"><summary>${t('generated.rawAnswer')}</summary><${Copy} text=${text} label=${t('generated.rawAnswer')}><pre class="gen-raw">${text}</pre><//></details>`;
};
