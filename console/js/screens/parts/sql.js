/* The SQL editor: statements as one's own user of the database. The password stays in this page's memory; to read is the rule. */
import {html, send, useEffect, useLoad, useQuery, setQuery, useRef, useState, call, callAll, useMay, Button, Card, Check, Field, Form, Input, Notice, Empty, Segments, words, number,
	duration, save} from './kit.js';
import {Editor} from './sql_editor.js';

const w = words('sql');
const NUMERIC = new Set([20, 21, 23, 26, 700, 701, 1700]), SHOWN = 200, PAST = 20;
/* What was typed for a cluster, until the page is loaded anew. */
const kept = new Map(), FRESH = {username: '', password: '', database: 'postgres', statement: '', past: []};
/* From the panel that has just made a user: its password need not be typed. */
export const signIn = (groupId, name, username, password) => kept.set(`${groupId} ${name}`, {...FRESH, ...kept.get(`${groupId} ${name}`), username, password});

function Cell({value}) {
	return value === null ? html`<span class="dim">null</span>` : value.length > 200 ? html`<details class="long-value"><summary>${value.slice(0, 120)}…</summary>${value}</details>` : value;
}

const quoted = value => value === null ? '' : /[",\n\r]/.test(value) || /^[=+\-@\t]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value;
const csv = r => [r.columns.map(c => quoted(c.name)), ...r.rows.map(row => row.map(quoted))].map(line => line.join(',')).join('\r\n');

function Rows({r, index}) {
	const [all, setAll] = useState(false), rows = all ? r.rows : r.rows.slice(0, SHOWN);
	if (!r.columns.length)
		return html`<p class="sql-done"><b>${r.command || w('done')}</b></p>`;
	const download = () => save(new Response(csv(r), {headers: {'Content-Type': 'text/csv'}}), 'rows.csv');
	return html`<section class="card" aria-label=${w('result', {n: index + 1})}><div class="list sql-rows" tabindex="0" role="group" aria-label=${w('rowsOf', {n: index + 1})}><table><thead><tr>${r.columns.map((c, i) =>
		html`<th scope="col" key=${i} class=${NUMERIC.has(c.type) ? 'right' : undefined}>${c.name}</th>`)}</tr></thead>
		<tbody>${rows.map((row, i) => html`<tr key=${i}>${row.map((v, k) => html`<td key=${k} data-l=${r.columns[k].name} class=${NUMERIC.has(r.columns[k].type) ? 'right' : undefined}><${Cell} value=${v} /></td>`)}</tr>`)}</tbody></table></div>
		<div class="foot"><span role="status">${w(r.more ? 'firstRows' : 'rows', {n: r.rows.length})}${r.cut ? ` ${w('cut')}` : ''}</span>
			${!all && r.rows.length > SHOWN && html`<${Button} small onClick=${() => setAll(true)}>${w('showAll')}<//>`}
			${r.rows.length > 0 && html`<${Button} small class="end" onClick=${download}>CSV<//>`}</div></section>`;
}

/* "position" counts characters of the statement from 1. */
const lineOf = (text, position) => [...text].slice(0, position - 1).join('').split('\n').length;

export function Answer({answer}) {
	const {results = [], error, notices = [], milliseconds, text} = answer;
	return html`<div class="stack">${error && html`<${Notice} kind="bad" title=${error.message}>${[error.detail, error.hint].filter(Boolean).join(' ')} ${error.position ? w('atLine', {n: lineOf(text, Number(error.position))}) : ''}
		${/^25006$/.test(error.code) ? w('readOnly') : /cannot insert multiple commands/.test(error.message) ? w('oneOnly') : ''}<//>`}
		${answer.open && html`<${Notice} kind="warn">${w('open')}<//>`}
		${notices.map((n, i) => html`<${Notice} key=${i}>${n}<//>`)}
		${results.map((r, i) => html`<${Rows} key=${i} r=${r} index=${i} />`)}
		<p class="dim">${w('took', {time: duration(milliseconds / 1000)})}</p></div>`;
}

/* Who one is in the databases of a cluster: the same on every screen that runs statements. */
export function useLogin(groupId, name) {
	const key = `${groupId} ${name}`, [f, setF] = useState(() => kept.get(key) ?? FRESH), may = useMay();
	const {data: users} = useLoad(() => may('listDatabaseUsers') ? callAll('listDatabaseUsers', {groupId}) : Promise.resolve([]), [groupId]);
	useEffect(() => { kept.set(key, f); }, [f]);
	return {f, setF, users, set: k => v => setF(old => ({...old, [k]: v}))};
}

export function Login({login: {f, set, users}}) {
	return html`<${Field} label=${w('user')} name="username" help=${users && !users.length ? w('noUsers') : undefined}><${Input} value=${f.username} onInput=${set('username')} list="sql-users" autocomplete="off" /><//>
		<datalist id="sql-users">${(users ?? []).map(u => html`<option key=${u.username} value=${u.username} />`)}</datalist>
		<${Field} label=${w('password')} name="password" help=${w('passwordHelp')}><${Input} type="password" value=${f.password} onInput=${set('password')} autocomplete="off" /><//>`;
}

export default function Sql({groupId, name, cluster}) {
	const login = useLogin(groupId, name), {f, setF, set} = login;
	const [write] = useQuery('write'), [answer, setAnswer] = useState(null), area = useRef();
	const run = async () => {
		/* What is marked runs alone. */
		const box = area.current?.querySelector('textarea'), marked = box && box.selectionStart !== box.selectionEnd ? f.statement.slice(box.selectionStart, box.selectionEnd) : '';
		const text = (marked.trim() ? marked : f.statement).trim();
		setAnswer(null);
		const got = await send('POST', '/api/session/sql', {groupId, clusterName: name, username: f.username, password: f.password, database: f.database, statement: text, write: write === 'yes'});
		setAnswer({...got, text});
		setF(old => ({...old, past: [text, ...old.past.filter(p => p !== text)].slice(0, PAST)}));
	};
	const keys = e => {
		if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
			e.preventDefault();
			e.currentTarget.closest('form').requestSubmit();
		}
	};
	if (cluster.paused)
		return html`<section class="card"><${Empty} title=${w('paused')} /></section>`;
	return html`<div class="sql"><${Card} title=${w('title')} note=${w('text')}><${Form} onSubmit=${run} submit=${w('run')} label=${w('title')} disabled=${!f.statement.trim() || !f.username || !f.password}
		others=${html`<kbd aria-hidden="true">Ctrl ↵</kbd>`}>
		<div class="row"><${Login} login=${login} />
			<${Field} label=${w('database')} name="database"><${Input} value=${f.database} onInput=${set('database')} /><//></div>
		<div ref=${area} onKeyDown=${keys}><${Field} label=${w('statement')} name="statement" help=${w('nextHelp')}><${Editor} groupId=${groupId} clusterName=${name} login=${f} value=${f.statement}
			onInput=${set('statement')} label=${w('statement')} changed=${answer} /><//></div>
		<${Segments} label=${w('mode')} current=${write === 'yes' ? 'write' : 'read'} onPick=${v => setQuery({write: v === 'write' ? 'yes' : ''})} options=${['read', 'write'].map(id => ({id, label: w(`mode.${id}`)}))} />
		<p class="dim">${w(write === 'yes' ? 'writeText' : 'readText')}</p><//>
		${f.past.length > 0 && html`<details class="past"><summary>${w('past')}</summary><ul>${f.past.map(p => html`<li key=${p}><button type="button" class="mono" onClick=${() => set('statement')(p)}>${p}</button></li>`)}</ul></details>`}<//>
		${answer && html`<${Answer} answer=${answer} />`}</div>`;
}
