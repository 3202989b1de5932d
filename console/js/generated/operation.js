/* The page of one operation: what it takes, the same call for a terminal, what it answered, and where to go from there. */
import {html, useEffect, useMemo, useRef, useState} from '../lib.js';
import {t} from '../texts.js';
import {call} from '../api.js';
import {missingRoles} from '../session.js';
import {rolesText} from '../may.js';
import {Area, Button, Card, ConfirmDanger, Copy, Empty, Field, Form, Link, Notice, Page, Pager, Segments, errorText, say, setQuery, useLoad} from '../ui/index.js';
import {described, familyOf, helpOf, isOperation, label, loadIndex, node as resolve, pageOf, paramsOf} from './data.js';
import {faultsOf, linesOf, pruned, writable} from './check.js';
import {Chosen, Here, Inside, Scalar, Several} from './form.js';
import {forgetChoices, scopeOf, titleOf, useChoices} from './choices.js';
import {asCommand, asCurl} from './show.js';
import {Raw, Result, operationLink, operationsAt} from './result.js';

const REQUIRED = 1, IMMUTABLE = 8, PAGE_SIZE = 100, WRITE_URL_MS = 250, RELATED_MOST = 12;

/* Values of the query, which is text, as what the parameters are; and back. */
const fromText = (page, n, text) => {
	const is = resolve(page, n);
	if (text === undefined || text === '')
		return undefined;
	if (is.t === 'a')
		return text.split(',').filter(Boolean).map(v => fromText(page, is.i, v));
	if (is.t === 'b')
		return text === 'true';
	return is.t === 'i' || is.t === 'n' ? Number(text) : text;
};
const toText = value => Array.isArray(value) ? value.join(',') : value === undefined ? '' : String(value);

const given = values => Object.fromEntries(Object.entries(values).filter(([, v]) => v !== undefined && v !== '' && !(Array.isArray(v) && !v.length)));

export default function Screen({params: {operationId}, query}) {
	const {data: page, error} = useLoad(async () => {
		await loadIndex();
		return isOperation(operationId) ? pageOf(operationId) : null;
	}, [operationId], {key: `operation ${operationId}`});
	if (error)
		return html`<${Page} title=${operationId}><${Notice} kind="bad">${errorText(error)}<//><//>`;
	if (page === undefined)
		return html`<${Page} title=${operationId}><p class="dim" role="status">${t('loading')}</p><//>`;
	if (!page)
		return html`<${Page} title=${operationId}><${Empty} title=${t('generated.unknown')} action=${html`<${Button} kind="go" to="/operations">${t('generated.title')}<//>`} /><//>`;
	return html`<${Operation} op=${described(operationId)} page=${page} query=${query} />`;
}

/* Parameters live in the URL, so that a link has them; it is written a moment after the last key. */
function useParams(page, query) {
	const all = [...page.path, ...page.query];
	const read = q => Object.fromEntries(all.map(p => [p.name, fromText(page, p.node, q[p.name])]));
	const [values, setValues] = useState(() => read(query));
	const written = useRef(null), timer = useRef(null);
	const text = v => JSON.stringify(all.map(p => toText(v[p.name])));
	useEffect(() => {
		if (written.current !== null && text(read(query)) !== written.current && text(read(query)) !== text(values))
			setValues(read(query));
		written.current = text(read(query));
	}, [JSON.stringify(query)]);
	useEffect(() => () => clearTimeout(timer.current), []);
	const set = (name, value) => setValues(old => {
		const next = {...old, [name]: value};
		clearTimeout(timer.current);
		timer.current = setTimeout(() => {
			written.current = text(next);
			setQuery(Object.fromEntries(all.map(p => [p.name, toText(next[p.name])])));
		}, WRITE_URL_MS);
		return next;
	});
	return [values, set];
}

function Param({op, page, p, values, set, inPath}) {
	const is = resolve(page, p.node), value = values[p.name], help = p.help ?? helpOf(p.name);
	const found = useChoices(op, p.name, values, inPath);
	const hint = p.required ? undefined : t('generated.optional');
	if (is.t === 'a')
		return html`<${Several} is=${is} name=${p.name} value=${value} onInput=${v => set(p.name, v)} path=${p.name} text=${label(p.name)} help=${help} hint=${hint} />`;
	const control = is.t === 's' && !is.e && !is.f ? html`<${Chosen} mono=${!found} value=${value} found=${found} required=${p.required} onInput=${v => set(p.name, v)} />`
		: html`<${Scalar} is=${is} name=${p.name} value=${value} required=${p.required} onInput=${v => set(p.name, v)} />`;
	return html`<${Field} name=${p.name} label=${label(p.name)} help=${help} hint=${hint} required=${p.required}>${control}<//>`;
}

/* The body as it is sent. */
function bodyToSend(op, page, body, before, params, exactly) {
	if (page.body === undefined)
		return undefined;
	if (exactly)
		return body;
	const is = resolve(page, page.body);
	if (Array.isArray(body))
		return pruned(body);
	const fields = is.t === 'o' ? is.k : is.t === 'u' ? [...new Map(is.O.flatMap(([, n]) => resolve(page, n)?.k ?? []).map(f => [f[0], f])).values()] : [];
	const out = pruned(body ?? {});
	for (const [name, , flags = 0] of fields)
		if (params[name] !== undefined && (flags & REQUIRED) && !(flags & IMMUTABLE && op.method === 'PATCH'))
			out[name] ??= params[name];
	if (before && op.method === 'PATCH')
		for (const [name, , flags = 0] of fields)
			if (name in out && name !== is.D && JSON.stringify(out[name]) === JSON.stringify(before[name]) && !(flags & REQUIRED))
				delete out[name];
	return Object.keys(out).length || page.needed || op.method === 'PATCH' || op.method === 'PUT' ? out : undefined;
}

function Body({op, page, body, setBody, faults, mode, setMode}) {
	const is = resolve(page, page.body), skip = new Set(paramsOf(op.path));
	const [text, setText] = useState('');
	const turn = to => {
		if (to === 'json')
			setText(JSON.stringify(pruned(body) ?? (is.t === 'a' ? [] : {}), null, 2));
		setMode(to);
	};
	let wrong = '';
	if (mode === 'json')
		try {
			JSON.parse(text || '{}');
		} catch (e) {
			wrong = e.message;
		}
	const lines = mode === 'json' && !wrong ? linesOf(text || '{}') : {};
	const typed = next => {
		setText(next);
		try {
			setBody(JSON.parse(next || (is.t === 'a' ? '[]' : '{}')));
		} catch {
			/* said beside the text */
		}
	};
	return html`<div class="gen-body"><div class="gen-bar"><h3>${t('generated.body')}</h3><${Segments} label=${t('generated.bodyAs')} current=${mode} onPick=${turn}
			options=${[{id: 'form', label: t('generated.form')}, {id: 'json', label: 'JSON'}]} /></div>
		${mode === 'form' ? html`<${Inside} n=${page.body} value=${body} onInput=${setBody} path="" depth=${0} name="" text=${t('generated.entry')} skip=${skip} />`
			: html`<${Field} name="body" label=${t('generated.json')} fault=${wrong || undefined}><${Area} mono rows=${Math.min(30, Math.max(8, text.split('\n').length + 1))} value=${text} onInput=${typed} /><//>
			${Object.keys(faults).length > 0 && html`<ul class="gen-faults">${Object.entries(faults).map(([path, what]) => html`<li key=${path}>${lines[path] ? t('generated.line', {n: lines[path]}) : ''} <code>${path}</code>: ${what}</li>`)}</ul>`}`}</div>`;
}

/* Which GET reads what this one changes. */
const readerOf = op => op.method === 'PATCH' || op.method === 'PUT' ? operationsAt(op.path, Object.fromEntries(paramsOf(op.path).map(p => [p, '1']))).find(o => o.method === 'GET' && o.path === op.path && !o.unbuilt) : undefined;

function Operation({op, page, query}) {
	const [values, set] = useParams(page, query);
	const is = page.body === undefined ? null : resolve(page, page.body);
	const [body, setBody] = useState(() => is?.t === 'a' ? [{}] : {});
	const [before, setBefore] = useState(null), [faults, setFaults] = useState({}), [mode, setMode] = useState('form');
	const [answer, setAnswer] = useState(null), [ask, setAsk] = useState(null), [lacks, setLacks] = useState([]);
	const [pageNum, setPageNum] = useState(1);
	const names = paramsOf(op.path), params = given(Object.fromEntries(names.map(n => [n, values[n]])));
	const asked = given(Object.fromEntries(page.query.map(p => [p.name, values[p.name]])));
	const ready = names.every(n => params[n]);
	const sent = bodyToSend(op, page, body, before, params, mode === 'json');
	const box = useRef(), alive = useRef(true), answers = useRef();
	useEffect(() => () => { alive.current = false; }, []);

	useEffect(() => {
		let current = true;
		(async () => {
			const found = !op.roles.length || !ready && names.some(n => n === 'groupId' || n === 'orgId') ? [] : missingRoles(op.id, await scopeOf(params));
			if (current)
				setLacks(found);
		})().catch(() => {});
		return () => { current = false; };
	}, [op.id, params.groupId, params.orgId, ready]);

	/* What is changed is shown as it is now. */
	const reader = useMemo(() => readerOf(op), [op.id]);
	useEffect(() => {
		let current = true;
		if (reader && ready && is?.t !== 'x')
			scopeOf(params).then(scope => missingRoles(reader.id, scope)).then(lacking => lacking.length ? null : call(reader.id, params)).then(found => {
				if (!current || !found)
					return;
				const now = writable(page, page.body, found) ?? {};
				setBefore(now);
				setBody(now);
			}).catch(() => {});
		return () => { current = false; };
	}, [op.id, JSON.stringify(params)]);

	const form = page.produces.includes('json') ? 'json' : page.produces[0];
	const run = async (number = 1) => {
		const paged = op.paginated ? {pageNum: number, itemsPerPage: PAGE_SIZE} : {};
		const response = await call(op.id, params, {query: {...paged, ...asked}, body: sent, raw: true, form});
		let next;
		if (form !== 'json' && response.status !== 204) {
			const blob = await response.blob();
			next = {status: response.status, file: {url: URL.createObjectURL(blob), name: `${op.id}.${form === 'gzip' ? 'gz' : form}`, size: blob.size}};
		} else {
			const text = await response.text();
			next = {status: response.status, body: text ? JSON.parse(text) : null};
		}
		if (!alive.current)
			return;
		setAnswer({...next, number: (answer?.number ?? 0) + 1, params});
		setPageNum(number);
		if (op.method !== 'GET') {
			forgetChoices();
			say(t('generated.done', {summary: op.summary}));
		}
	};

	const submit = async () => {
		const found = {};
		for (const p of [...page.path, ...page.query]) {
			if (p.required && (values[p.name] === undefined || values[p.name] === ''))
				found[p.name] = t('generated.fault.required');
			else if (!page.path.includes(p))
				faultsOf(page, p.node, values[p.name], p.name, found);
		}
		if (mode === 'form' && page.body !== undefined && sent !== undefined)
			faultsOf(page, page.body, sent, '', found);
		setFaults(found);
		if (Object.keys(found).length) {
			requestAnimationFrame(() => box.current?.querySelector('[aria-invalid=true]')?.focus());
			return;
		}
		if (op.danger !== 'none') {
			const name = op.danger === 'name' ? await titleOf(op, names.at(-1), params) : undefined;
			const sure = await new Promise(resolve => setAsk({name, resolve}));
			setAsk(null);
			if (!sure)
				return;
		}
		try {
			await run();
		} catch (e) {
			if (e.fields)
				setFaults(Object.fromEntries(Object.entries(e.fields)));
			setAnswer(null);
			throw e;
		}
		answers.current?.querySelector('h2')?.scrollIntoView({block: 'nearest'});
	};

	/* A link that has all that a reading needs shows the answer at once. */
	const started = useRef(false), [failed, setFailed] = useState(null);
	useEffect(() => {
		if (started.current || op.method !== 'GET' || op.unbuilt || form !== 'json' || !ready || page.query.some(p => p.required && values[p.name] === undefined))
			return;
		started.current = true;
		(async () => {
			const scope = await scopeOf(params);
			if (!missingRoles(op.id, scope).length)
				await run();
		})().catch(e => alive.current && setFailed(e));
	}, [ready]);

	const [title] = familyOf(op.family);
	const required = page.query.filter(p => p.required), optional = page.query.filter(p => !p.required);
	const param = (p, inPath) => html`<${Param} key=${p.name} op=${op} page=${page} p=${p} values=${values} set=${set} inPath=${inPath} />`;
	const total = answer?.body?.totalCount;
	const hasInput = names.length || page.query.length || page.body !== undefined;
	return html`<${Page} title=${op.summary} facts=${html`<span class="mono gen-path">${op.method} ${op.path}</span><${Link} to="/operations" query=${{family: op.family}}>${title}<//>`}>
		${page.about && html`<p class="gen-about">${page.about}</p>`}
		${op.unbuilt && html`<${Notice} kind="warn">${t('generated.unbuiltText')}<//>`}
		${op.deprecated && html`<${Notice} kind="info">${t('generated.deprecatedText')}<//>`}
		${lacks.length > 0 && html`<${Notice} kind="warn">${t('generated.lacks', {roles: rolesText(lacks)})}<//>`}
		<${Here.Provider} value=${{op, page, params: {...values, ...params}, faults, method: op.method, filled: Boolean(before)}}>
		<div class="gen-two"><${Card} title=${t('generated.call')}><div ref=${box}>
			<${Form} label=${op.summary} faults=${faults} onSubmit=${submit} kind=${op.danger === 'none' ? 'go' : 'danger'} submit=${t(op.method === 'GET' ? 'generated.read' : 'generated.send')}>
				${page.path.map(p => param(p, true))}${required.map(p => param(p, false))}
				${optional.length > 0 && (optional.length <= 4 ? optional.map(p => param(p, false)) : html`<${Optional} list=${optional} values=${values}>${p => param(p, false)}<//>`)}
				${before && html`<p class="dim">${t('generated.filled')}</p>`}
				${page.body !== undefined && html`<${Body} key=${before ? 'known' : 'new'} op=${op} page=${page} body=${body} setBody=${setBody} faults=${faults} mode=${mode} setMode=${setMode} />`}
				${!hasInput && html`<p class="dim">${t('generated.takesNothing')}</p>`}<//></div><//>
		<${Shown} op=${op} page=${page} params=${params} query=${asked} body=${sent} /></div><//>
		${failed && !answer && html`<${Notice} kind="bad">${errorText(failed)}<//>`}
		${answer && html`<div ref=${answers} aria-live="polite"><${Card} title=${t('generated.answer')} note=${t('generated.status', {status: answer.status})}>
			<${Result} key=${answer.number} op=${op} page=${page} answer=${answer} params=${answer.params} />
			${op.paginated && total > PAGE_SIZE && html`<${Pager} page=${pageNum} size=${PAGE_SIZE} total=${total} onPage=${n => run(n).catch(setFailed)} />`}
			${answer.body && !op.once && html`<${Raw} body=${answer.body} />`}<//></div>`}
		<${Related} op=${op} params=${params} />
		${ask && html`<${ConfirmDanger} title=${op.summary} name=${ask.name} text=${t('generated.sure')} action=${t('generated.doIt')} onConfirm=${() => ask.resolve(true)} onClose=${() => ask.resolve(false)} />`}<//>`;
}

function Optional({list, values, children}) {
	const open = list.some(p => values[p.name] !== undefined), [was, setWas] = useState(open);
	return html`<details class="gen-more" open=${open || undefined} onToggle=${e => e.target.open && setWas(true)}><summary>${t('generated.parameters', {n: list.length})}</summary>${(was || open) && html`<div class="gen-fields">${list.map(children)}</div>`}</details>`;
}

/* The same call elsewhere, as it stands now. */
function Shown({op, page, params, query, body}) {
	const [as, setAs] = useState('command');
	const text = as === 'curl' ? asCurl(op, page, params, query, body) : asCommand(op, page, params, query, body);
	return html`<${Card} title=${t('generated.elsewhere')} actions=${html`<${Segments} label=${t('generated.elsewhere')} current=${as} onPick=${setAs} options=${[{id: 'command', label: t('generated.asCommand')}, {id: 'curl', label: 'curl'}]} />`}>
		<${Copy} text=${text} label=${t(as === 'curl' ? 'generated.curlLine' : 'generated.asCommand')}><pre class="gen-raw">${text}</pre><//>
		${as === 'curl' ? html`<p class="dim">${t('generated.curlNote')}</p>` : / -( |$)/m.test(text) && html`<p class="dim">${t('generated.commandNote')}</p>`}<//>`;
}

/* What else there is at the same place, with the same parameters. */
function Related({op, params}) {
	const own = op.path.replace(/[:.][^/]*$/, ''), list = own.replace(/(\/\{\w+\})+$/, '');
	const found = Object.keys(params).length ? [...new Map([...operationsAt(own, params, op.id), ...list.length > 1 ? operationsAt(list, params, op.id) : []].map(o => [o.id, o])).values()].slice(0, RELATED_MOST) : [];
	if (!found.length)
		return null;
	return html`<${Card} title=${t('generated.related')}><ul class="gen-index">${found.map(o => {
		const [to, query] = operationLink(o.id, params);
		return html`<li key=${o.id}><${Link} to=${to} query=${query}>${o.summary}<//> <span class="gen-method mono">${o.method}</span></li>`;
	})}</ul><//>`;
}
