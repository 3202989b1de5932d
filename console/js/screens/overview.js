/* All clusters that one may see, or those of a project: what needs attention, what happened, and the table. */
import {
	html, get, callAll, Link, useLoad, useMay, learnProject, useQuery, setQuery, useState, useEffect, useMemo, useRef, useCallback, useLive, useWhile, useSession, Page, Table, Button, Empty,
		Fault, Card,
	Segments, Search, Icon, words, once, number, room, duration, Time, Meter
} from './parts/kit.js';
import {levelOf, needLevel, rankOf, progressOf, diskShare} from './parts/state.js';
import {ClusterState, shortVersion} from './parts/clusters.js';
import {Activity} from './parts/events.js';
import {RowSpark} from './parts/sparks.js';

const w = words('overview');
const PAGE = 500, ACTIVITY = 20, SHOWN = 8;

const load = (query, signal) => get('/api/console/overview', {query: {itemsPerPage: PAGE, ...query}, signal});
const NOTHING = {rows: null, attention: [], activity: [], total: 0};
const known = new Map();

/* The first page is shown at once, the others as they come; what was known stays until then. */
function useOverview(groupId = '') {
	const [state, put] = useState(() => known.get(groupId) ?? NOTHING);
	const running = useRef(null);
	const setState = useCallback(change => put(s => {
		const next = change(s);
		known.set(groupId, next);
		return next;
	}), [groupId]);
	const all = useCallback(async () => {
		running.current?.abort();
		const {signal} = running.current = new AbortController();
		try {
			const first = await load({groupId}, signal);
			let rows = first.results;
			const show = done => setState(s => ({...s, rows: done || !s.rows ? rows : s.rows, attention: first.attention ?? [],
				activity: first.activity ?? [], total: first.totalCount, error: null}));
			show(rows.length >= first.totalCount);
			for (let pageNum = 2; rows.length < first.totalCount; pageNum++) {
				const next = await load({groupId, pageNum}, signal);
				if (!next.results.length)
					break;
				rows = rows.concat(next.results);
			}
			if (rows !== first.results)
				show(true);
		} catch (error) {
			if (!signal.aborted)
				setState(s => ({...s, error}));
		}
	}, [groupId]);
	useEffect(() => {
		put(known.get(groupId) ?? NOTHING);
		all();
		return () => running.current?.abort();
	}, [all]);
	return [state, setState, all];
}

/* What happened concerns one project: only its rows are asked for again, soon, and once for many events. */
function useNews(groupId, rows, setState, all) {
	const waiting = useRef({groups: new Set(), timer: null});
	const flush = async () => {
		const groups = [...waiting.current.groups];
		waiting.current = {groups: new Set(), timer: null};
		if (groups.includes('') || groups.length > 5) {
			all();
			return;
		}
		for (const one of groups) {
			const page = await load({groupId: one}).catch(() => null);
			if (!page || page.totalCount > page.results.length) {
				all();
				return;
			}
			setState(s => merged(s, one, page));
		}
	};
	useLive(groupId ? {groupId} : null, event => {
		if (!event.resync)
			setState(s => ({...s, activity: [event, ...s.activity.filter(a => a.id !== event.id)].slice(0, ACTIVITY)}));
		if (event.resync || event.groupId)
			waiting.current.groups.add(event.resync ? '' : event.groupId);
		if (waiting.current.groups.size)
			waiting.current.timer ??= setTimeout(flush, 250);
	});
	/* How far changes are is told between their events, to those who ask. */
	const busy = [...new Set((rows ?? []).filter(c => c.stateName !== 'IDLE').map(c => c.groupId))];
	useWhile(busy.length, () => {
		busy.forEach(id => waiting.current.groups.add(id));
		waiting.current.timer ??= setTimeout(flush, 0);
	}, 2500);
	useEffect(() => () => clearTimeout(waiting.current.timer), []);
}

/* The rows of one project take the place of those that were known of it. */
export function merged(s, groupId, page) {
	const fresh = new Map(page.results.map(r => [r.id, r])), before = s.rows ?? [];
	const kept = before.filter(r => r.groupId !== groupId || fresh.has(r.id)).map(r => {
		const next = fresh.get(r.id);
		fresh.delete(r.id);
		return next ?? r;
	});
	const rows = [...kept, ...fresh.values()];
	return {...s, rows, total: s.total - before.length + rows.length,
		attention: [...s.attention.filter(a => a.groupId !== groupId), ...(page.attention ?? [])]};
}

/* Flex clusters have operations of their own, whose pages are made from the API's data. */
const clusterPath = c => c.clusterType === 'FLEX' ? `/operations/getFlexCluster?groupId=${c.groupId}&name=${encodeURIComponent(c.name)}`
	: `/projects/${c.groupId}/clusters/${encodeURIComponent(c.name)}`;
const nodesUp = c => c.nodesUp ?? 0;
const nodesAll = c => c.nodesTotal ?? 0;
const missing = v => v === null || v === undefined;

function StateCell({c}) {
	const {percent, text} = progressOf(c.progress), rests = c.stateName === 'IDLE';
	const why = rests ? c.attention?.[0]?.text : text;
	return html`<${ClusterState} c=${c} />${why && html`<small class="why" title=${why}>${why}</small>`}
		${percent !== null && !rests && html`<div class="prog" aria-hidden="true"><i style=${{width: `${percent}%`}}></i></div>`}`;
}

function NodesCell({c}) {
	const all = Math.min(nodesAll(c), 9), up = nodesUp(c);
	const kind = i => c.paused ? 'z' : i >= up ? /IDLE|REPAIRING/.test(c.stateName) ? 'x' : 'c' : i === 0 && c.primary ? 'p' : 's';
	return html`<span class="nodes"><span class="dots" aria-hidden="true">${Array.from({length: all},
		(_, i) => html`<i class=${kind(i)}></i>`)}</span>
		<span>${c.paused ? w('stopped') : w('ofNodes', {up, all: nodesAll(c)})}</span></span>`;
}

const DiskCell = ({c}) => {
	const share = diskShare(c);
	return share === null ? html`<span class="dim">${c.diskBytes ? room(c.diskBytes) : '—'}</span>`
		: html`<${Meter} value=${share * 100} label=${w('diskOf', {name: c.name})} note=${w('of', {size: room(c.diskBytes)})} />`;
};

const late = c => !c.paused && Date.now() - Date.parse(c.lastBackupAt) > 2 * 86400e3;

/* A cell is drawn once for each row as long as the row stays what it is: scrolling then costs the new rows alone. */
const drawn = new WeakMap();
const still = column => ({...column, cell: c => {
	if (!drawn.has(c))
		drawn.set(c, {});
	return drawn.get(c)[column.key] ??= column.cell(c);
}});

const COLUMNS = once(() => [
	{key: 'state', label: w('state'), width: '15%', sort: true, value: rankOf, cell: c => html`<${StateCell} c=${c} />`},
	{key: 'name', label: w('cluster'), sort: true, value: c => c.name.toLowerCase(), main: true,
		cell: c => html`${c.name}<small>${[c.groupName, shortVersion(c.version), c.instanceSize].filter(Boolean).join(' · ')}</small>`},
	{key: 'nodes', label: w('nodes'), width: '14%', sort: true, value: c => nodesUp(c) - nodesAll(c), cell: c => html`<${NodesCell} c=${c} />`},
	{key: 'load', label: w('load'), width: '12%', sort: false, wide: true, cell: c => html`<${RowSpark} key=${c.id} c=${c} />`},
	{key: 'primary', label: w('primary'), width: '13%', sort: true, wide: true, value: c => c.primary ?? '',
		cell: c => c.primary ? html`<span class="sub own" title=${c.primary}>${c.primary.split('.')[0].replace(/^[^-]*-/, '')}</span>` : html`<span class="dim">—</span>`},
	{key: 'lag', label: w('lag'), width: '7%', sort: true, value: c => c.lagSeconds ?? -1,
		cell: c => missing(c.lagSeconds) ? html`<span class="dim">—</span>` :
			html`<span class=${c.lagSeconds > 30 ? 'warn' : ''}>${duration(c.lagSeconds)}</span>`},
	{key: 'disk', label: w('disk'), width: '11%', sort: true, value: c => diskShare(c) ?? -1, cell: c => html`<${DiskCell} c=${c} />`},
	{key: 'backup', label: w('backup'), width: '11%', sort: true, value: c => c.lastBackupAt ? Date.parse(c.lastBackupAt) : 0,
		cell: c => c.lastBackupAt ? html`<span class=${late(c) ? 'warn' : ''}><${Time} at=${c.lastBackupAt} kind="ago" /></span>` :
			html`<span class="dim">${w('never')}</span>`}
].map(still));

const GROUPS = {all: () => true, need: c => /bad|warn/.test(levelOf(c)), busy: c => levelOf(c) === 'busy', off: c => levelOf(c) === 'off'};
const textOf = c => `${c.name} ${c.groupName ?? ''} ${(c.tags ?? []).map(x => `${x.key}=${x.value}`).join(' ')}`.toLowerCase();

/* Where the next step is taken, by what is wrong. */
const STEPS = {DISK: '?do=scale', BACKUP: '/backups', DATA: '/backups', NODE: '/logs', PRIMARY: '/logs', ALERT: 'alerts', MAINTENANCE: 'settings'};
function stepOf(a) {
	const found = Object.keys(STEPS).find(k => a.code.includes(k)), to = STEPS[found] ?? '', project = `/projects/${a.groupId}`;
	return {path: /^\w/.test(to) ? `${project}/${to}` : clusterPath({groupId: a.groupId, name: a.clusterName}) + to,
		label: w.or(`step.${found}`, 'look')};
}

function Attention({items}) {
	if (!items.length)
		return html`<p class="calm">${w('calm')}</p>`;
	return html`<ul class="need">${items.slice(0, SHOWN).map(a => {
		const {path, label} = stepOf(a), level = needLevel(a), name = a.clusterName;
		return html`<li key=${`${a.groupId}${name}${a.code}`}><span class=${level}><${Icon} name=${level}
			/></span><div><div><b>${name}</b> ${a.text}</div>${a.nextStep && html`<span class="sub wrap">${a.nextStep}</span>`}</div>
			${name && html`<${Link} class="btn s" to=${path} aria-label=${w('lookFor', {step: label, name})}>${label}<//>`}</li>`;
	})}${items.length > SHOWN && html`<li class="more"><${Button} kind="text"
		onClick=${() => setQuery({show: 'need'})}>${w('moreNeeds', {n: items.length - SHOWN})}<//></li>`}</ul>`;
}

function Totals({rows, total}) {
	const running = rows.filter(c => !c.paused), sum = (list, f) => list.reduce((n, c) => n + (f(c) ?? 0), 0);
	const backed = running.filter(c => c.lastBackupAt && Date.now() - Date.parse(c.lastBackupAt) < 86400e3).length;
	const facts = [[number(total), w('clusters', {n: total})], [w('ofNodes', {up: sum(running, nodesUp), all: sum(running, nodesAll)}), w('nodesUp')],
		rows.some(c => !missing(c.diskUsedBytes)) ? [w('usedOf', {used: room(sum(rows, c => c.diskUsedBytes)), all: room(sum(rows, c => c.diskBytes))}), w('used')]
			: [room(sum(rows, c => c.diskBytes)), w('ofDisk')],
			[w('ofNodes', {up: backed, all: running.length}), w('backedUp')]];
	return facts.map(([b, text]) => html`<span key=${text}><b>${b}</b> ${text}</span>`);
}

/* The first screen: one way on, for who may make a cluster somewhere; for others what they wait for. */
function First({groupId}) {
	const [first] = useSession()?.orgs ?? [], may = useMay();
	const {data: projects, error} = useLoad(() => groupId ? Promise.resolve([{id: groupId}]) : callAll('listGroups', {}), [groupId]);
	useEffect(() => projects?.forEach(g => learnProject(g.id, g.orgId)), [projects]);
	const own = projects?.find(g => may('createCluster', {groupId: g.id, orgId: g.orgId}));
	const make = first && may('createGroup', {orgId: first.id});
	if (!projects && !error)
		return null;
	if (!own && !make)
		return html`<section class="card"><${Empty} title=${w('nothing')} text=${w('nothingYet')} /></section>`;
	return html`<section class="card hero"><h2>${w(groupId ? 'noCluster' : 'firstTitle')}</h2><p>${w('firstText')}</p>
		<${Button} kind="go" icon="plus" to=${own ? `/projects/${own.id}/create` : `/orgs/${first.id}/projects?do=new`}>${w(own ? 'firstMake' : 'firstProject')}<//>
		<ol>${[1, 2, 3].map(n => html`<li key=${n}><b>${w(`step${n}`)}</b> ${w(`step${n}.text`)}</li>`)}</ol></section>`;
}

const compare = (a, b) => a > b ? 1 : a < b ? -1 : 0;

/* The list as the query of the page asks for it. */
function useList(rows) {
	const [q] = useQuery('q'), [show] = useQuery('show', 'all'), [by] = useQuery('sort', 'state');
	const sort = by.startsWith('-') ? [by.slice(1), -1] : [by, 1];
	const list = useMemo(() => {
		const asked = q.toLowerCase(), fits = GROUPS[show] ?? GROUPS.all, {value} = COLUMNS().find(c => c.key === sort[0]) ?? COLUMNS()[0];
		return (rows ?? []).filter(c => fits(c) && (!asked || textOf(c).includes(asked))).sort((a, b) => compare(value(a), value(b)) * sort[1] ||
			compare(a.name, b.name));
	}, [rows, q, show, by]);
	return {list, q, show, sort};
}

function List({rows, total}) {
	const {list, q, show, sort} = useList(rows);
	const counts = useMemo(() => Object.fromEntries(Object.entries(GROUPS).map(([k, f]) => [k, rows.filter(f).length])), [rows]);
	const none = html`<${Empty} title=${w('noneFits')} text=${w('noneFitsText', {n: rows.length, q})}
		action=${html`<${Button} onClick=${() => setQuery({q: '', show: ''})}>${w('showAll')}<//>`} />`;
	return html`<section class="card" aria-label=${w('title')}>
		<div class="bar"><${Segments} label=${w('show')} current=${show} onPick=${v => setQuery({show: v === 'all' ? '' : v})}
			options=${Object.keys(GROUPS).map(k => ({id: k, label: w(`show.${k}`), count: counts[k]}))} />
			<${Search} label=${w('find')} value=${q} onInput=${v => setQuery({q: v})} /></div>
		<${Table} class="clusters" label=${w('title')} columns=${COLUMNS()} rows=${list} keyOf=${c => c.id} to=${clusterPath} sort=${sort}
			onSort=${(k, d) => setQuery({sort: (d < 0 ? '-' : '') + k})} empty=${none} />
		<div class="foot" role="status">${w('count', {shown: list.length, all: total})}</div></section>`;
}

export default function Overview({params}) {
	const {groupId} = params;
	const [{rows, attention, activity, total, error}, setState, all] = useOverview(groupId);
	useNews(groupId, rows, setState, all);
	return html`<${Page} title=${w('title')} facts=${rows?.length ? html`<${Totals} rows=${rows} total=${total} />` : null}
		needs=${groupId && 'createCluster'} actions=${groupId && html`<${Button} op="createCluster" kind="go" icon="plus" to=${`/projects/${groupId}/create`}>${w('create')}<//>`}>
		<${Fault} error=${error} retry=${all} />
		${rows && !rows.length && html`<${First} groupId=${groupId} />`}
		${rows?.length > 0 && html`<div class="two">
			<${Card} flush title=${w('attention')} note=${attention.length ? number(attention.length) : ''}><${Attention} items=${attention} /><//>
			<${Card} flush title=${w('activity')} actions=${groupId &&
				html`<${Link} to=${`/projects/${groupId}/events`}>${w('allActivity')}<//>`}><${Activity} items=${activity} /><//>
		</div><${List} rows=${rows} total=${total} />`}
	<//>`;
}
