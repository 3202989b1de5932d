/* What the sessions of a node do and wait for, and how its vacuum keeps up. */
import {html, get, send, pathOf, useLoad, useMay, useWhile, useQuery, setQuery, useMemo, useState, Segments, Select, Field, Table, Card, Empty, Fault, Notice, Dialog, ConfirmDanger,
	Button, Facts, Meter, Plot, Time, say, words, once, number, bytes, duration} from './kit.js';
import {isPrimary, nodeName} from './clusters.js';

const w = words('activity');
const STATES = ['SESSIONS_ON_CPU', 'SESSIONS_WAITING_LOCK', 'SESSIONS_WAITING_LWLOCK', 'SESSIONS_WAITING_IO', 'SESSIONS_WAITING_OTHER', 'SESSIONS_IDLE_IN_TRANSACTION'];
const waitText = (type, event) => w.or(`wait.${type}`, 'wait.other', {event, type});

/* What a node tells of itself beside the reference; null where its engine has none of it. */
const ask = (groupId, processId, what, signal) => get(`${pathOf('getGroupProcess', {groupId, processId})}:${what}`, {signal}).catch(e => {
	if (e.status === 501)
		return null;
	throw e;
});

/* Numbers of processes are names: texts write numbers with commas. */
const pidText = pid => pid ? String(pid) : w('prepared');
const whoText = (user, pid) => w('one', {user: user ?? '', pid: String(pid)});

const SESSIONS = once(() => [
	{key: 'user', label: w('user'), width: '14%', value: s => s.user ?? '', cell: s => html`${s.user ?? '—'}<small>${s.database}</small>`},
	{key: 'statement', label: w('statement'), main: true, value: s => s.statement ?? '', cell: s => html`<code class="mono clip">${s.statement || w('redacted')}</code>`},
	{key: 'state', label: w('state'), width: '20%', value: s => s.state ?? '', cell: s => html`${w.or(`state.${s.state}`, 'state.other', {state: s.state ?? ''})}
		${s.blockedBy?.length ? html`<small class="warn">${w('waitsFor', {pids: s.blockedBy.map(pidText).join(', ')})}</small>` :
		s.waitEventType && html`<small>${waitText(s.waitEventType, s.waitEvent)}</small>`}`},
	{key: 'since', label: w('since'), width: '12%', value: s => s.transactionStart ?? s.statementStart ?? '', cell: s => html`<${Time} at=${s.transactionStart ?? s.statementStart} kind="ago" />`},
	{key: 'program', label: w('program'), width: '14%', wide: true, value: s => s.application ?? '', cell: s => html`${s.application ?? ''}<small>${s.address}</small>`},
	{key: 'pid', label: w('pid'), width: '8%', wide: true, value: s => s.pid, cell: s => String(s.pid)}
]);

/* Sessions are ended by who may reject shapes of queries. Those of the service are nobody's to end. */
const END = 'updateClusterQueryShape';
const isEndable = s => s?.pid > 0 && s.sessionStart && !/^steward[_:]/.test(s.user ?? '');
/* What can be ended of a session: the statement alone, while one runs, or all of it. */
const endsOf = s => isEndable(s) ? s.state === 'active' && s.statementStart ? ['cancel', 'end'] : ['end'] : [];

function SessionDialog({s, onClose, onEnd}) {
	const may = useMay();
	return html`<${Dialog} kind="wide" title=${w('session', {pid: String(s.pid)})} onClose=${onClose}>${s.statement && html`<pre class="raw mono" tabindex="0" aria-label=${w('statement')}>${s.statement}</pre>`}
		<${Facts} items=${[[w('user'), s.user], [w('database'), s.database], [w('program'), s.application], [w('address'), s.address], [w('state'), w.or(`state.${s.state}`, 'state.other', {state: s.state ?? ''})],
			[w('waits'), s.waitEventType && `${waitText(s.waitEventType, s.waitEvent)} (${s.waitEvent})`], [w('blockedBy'), s.blockedBy?.length ? s.blockedBy.map(pidText).join(', ') : undefined],
			[w('started'), s.sessionStart && html`<${Time} at=${s.sessionStart} kind="full" />`], [w('transaction'), s.transactionStart && html`<${Time} at=${s.transactionStart} kind="full" />`],
			[w('statementSince'), s.statementStart && html`<${Time} at=${s.statementStart} kind="full" />`]]} />
		${isEndable(s) && (may(END) ? html`<p class="acts">${endsOf(s).map(how => html`<${Button} key=${how} kind="kill" onClick=${() => onEnd(s, how)}>${w(how)}<//>`)}</p>` :
		html`<p class="dim">${w('endIt', {pid: String(s.pid)})}</p>`)}<//>`;
}

function EndDialog({s, how, groupId, process, onClose, onEnded}) {
	const end = async () => {
		const query = new URLSearchParams({pid: s.pid, sessionStart: s.sessionStart, ...how === 'cancel' && {statementStart: s.statementStart}});
		await send('DELETE', `${pathOf('getGroupProcess', {groupId, processId: process.id})}:activity?${query}`);
		say(w(`${how}.done`, {user: s.user}));
		onEnded();
	};
	return html`<${ConfirmDanger} title=${w(`${how}.ask`, {user: s.user, pid: String(s.pid)})} text=${w(`${how}.text`)} action=${w(how)} onConfirm=${end} onClose=${onClose}>
		${s.statement && html`<pre class="raw mono" tabindex="0" aria-label=${w('statement')}>${s.statement}</pre>`}<//>`;
}

/* Who keeps whom waiting: a session, and below it those that wait for it. */
function Blocker({tree, sessions, onEnd}) {
	const s = sessions.get(tree.pid);
	return html`<li><b>${tree.pid ? whoText(s?.user, tree.pid) : w('prepared')}</b> <span class="dim">${s && w.or(`state.${s.state}`, 'state.other', {state: s.state ?? ''})}</span>
		${endsOf(s).map(how => html` <${Button} small key=${how} op=${END} aria-label=${w(`${how}.named`, {user: s.user, pid: String(s.pid)})} onClick=${() => onEnd(s, how)}>${w(how)}<//>`)}
		${s?.statement && html`<code class="mono clip">${s.statement}</code>`}
		${tree.waiting?.length > 0 && html`<ul>${tree.waiting.map(t => html`<${Blocker} key=${t.pid} tree=${t} sessions=${sessions} onEnd=${onEnd} />`)}</ul>`}</li>`;
}

const WAITS = once(() => [
	{key: 'event', label: w('event'), main: true, value: e => e.event, cell: e => html`${waitText(e.type, e.event)}<small>${e.type}: ${e.event}</small>`},
	{key: 'sessions', label: w('onAverage'), width: '40%', value: e => e.sessions, cell: e => number(e.sessions, 2)}
]);
const BLOCKED = once(() => [
	{key: 'who', label: w('who'), main: true, value: b => b.user, cell: b => whoText(b.user, b.pid)},
	{key: 'by', label: w('waitedFor'), width: '28%', value: b => b.blockedByUser, cell: b => b.blockedBy ? whoText(b.blockedByUser, b.blockedBy) : w('prepared')},
	{key: 'longest', label: w('longest'), width: '18%', value: b => b.longestMillis, cell: b => duration(b.longestMillis / 1000)},
	{key: 'seen', label: w('seenLast'), width: '22%', wide: true, value: b => b.seenLast, cell: b => html`<${Time} at=${b.seenLast} kind="ago" />`}
]);

function Sessions({groupId, process}) {
	const [open, setOpen] = useState(null), [ending, setEnding] = useState(null);
	const {data, error, reload} = useLoad(signal => ask(groupId, process.id, 'activity', signal), [groupId, process.id], {key: `activity ${process.id}`});
	useWhile(data !== null, reload, 5000);
	const series = useMemo(() => STATES.map(name => ({label: w(`plot.${name}`), points: (data?.measurements?.find(m => m.name === name)?.dataPoints ?? []).map(p => [p.timestamp, p.value ?? null])}))
		.filter(s => s.points.length), [data]);
	if (data === null)
		return html`<section class="card"><${Empty} title=${w('notHere')} text=${w('notHereText')} /></section>`;
	const endAsk = (s, how) => {
		setOpen(null);
		setEnding({s, how});
	};
	const list = data?.sessions, of = new Map((list ?? []).map(s => [s.pid, s])), shown = open && (of.get(open.pid) ?? open);
	return html`<div class="stack"><${Fault} error=${error} retry=${reload} />
		${data && !list && html`<${Notice} kind="warn">${w('silent')}<//>`}
		${data?.blocking?.length > 0 && html`<${Card} title=${w('blocking')} note=${w('blockingText')}><ul class="plan">${data.blocking.map(t => html`<${Blocker} key=${t.pid} tree=${t} sessions=${of} onEnd=${endAsk} />`)}</ul><//>`}
		<${Card} flush title=${w('now')} note=${w('nowText')}><${Table} label=${w('now')} columns=${SESSIONS()} rows=${list ?? (error && [])} keyOf=${s => s.pid} sort=${['since', 1]} onOpen=${setOpen}
			empty=${html`<${Empty} title=${w('calm')} text=${w('calmText')} />`} /><//>
		${series.length > 0 && html`<section class="card plot-card"><${Plot} title=${w('overTime')} series=${series} /></section>`}
		${data && html`<div class="two even"><${Card} flush title=${w('waitEvents')} note=${w('lastHour')}><${Table} label=${w('waitEvents')} columns=${WAITS()} rows=${data.waitEvents} keyOf=${e => e.event} sort=${['sessions', -1]}
				empty=${html`<p class="calm">${w('noWaits')}</p>`} /><//>
			<${Card} flush title=${w('blocked')} note=${w('lastHour')}><${Table} label=${w('blocked')} columns=${BLOCKED()} rows=${data.blocked} keyOf=${b => `${b.pid} ${b.blockedBy} ${b.since}`} sort=${['seen', -1]}
				empty=${html`<p class="calm">${w('noBlocked')}</p>`} /><//></div>`}
		${shown && html`<${SessionDialog} s=${shown} onClose=${() => setOpen(null)} onEnd=${endAsk} />`}
		${ending && html`<${EndDialog} ...${ending} groupId=${groupId} process=${process} onClose=${() => setEnding(null)} onEnded=${reload} />`}</div>`;
}

const DATABASES = once(() => [
	{key: 'database', label: w('database'), main: true, value: d => d.database},
	{key: 'age', label: w('idAge'), width: '24%', value: d => d.transactionIdAge, cell: d => number(d.transactionIdAge)},
	{key: 'used', label: w('idsUsed'), width: '36%', value: d => d.transactionIdPercentUsed, cell: d => html`<${Meter} value=${d.transactionIdPercentUsed} label=${w('idsUsed')} warn=${25} bad=${50} />`}
]);
const TABLES = once(() => [
	{key: 'table', label: w('table'), main: true, value: t => `${t.database}.${t.table}`},
	{key: 'dead', label: w('dead'), width: '12%', value: t => t.deadRows, cell: t => number(t.deadRows)},
	{key: 'live', label: w('live'), width: '12%', wide: true, value: t => t.liveRows, cell: t => number(t.liveRows)},
	{key: 'size', label: w('size'), width: '11%', value: t => t.bytes, cell: t => bytes(t.bytes)},
	{key: 'wasted', label: w('wasted'), width: '11%', value: t => t.wastedBytes ?? -1, cell: t => bytes(t.wastedBytes)},
	{key: 'vacuumed', label: w('vacuumed'), width: '15%', value: t => t.vacuumed ?? '', cell: t => t.vacuumed ? html`<${Time} at=${t.vacuumed} kind="ago" />` : w('never')},
	{key: 'analyzed', label: w('analyzed'), width: '15%', wide: true, value: t => t.analyzed ?? '', cell: t => t.analyzed ? html`<${Time} at=${t.analyzed} kind="ago" />` : w('never')}
]);
const RUNS = once(() => [
	{key: 'table', label: w('table'), main: true, value: r => `${r.database}.${r.table}`},
	{key: 'phase', label: w('phase'), width: '26%', value: r => r.phase},
	{key: 'done', label: w('done'), width: '30%', value: r => r.blocks ? r.blocksDone / r.blocks : 0, cell: r => html`<${Meter} value=${r.blocks ? 100 * r.blocksDone / r.blocks : 0} label=${w('done')} warn=${101} bad=${101} />`}
]);

function Vacuum({groupId, process}) {
	const {data, error, reload} = useLoad(signal => ask(groupId, process.id, 'vacuum', signal), [groupId, process.id], {key: `vacuum ${process.id}`});
	useWhile(data !== null, reload, 30000);
	if (data === null)
		return html`<section class="card"><${Empty} title=${w('notHere')} text=${w('notHereText')} /></section>`;
	return html`<div class="stack"><${Fault} error=${error} retry=${reload} />
		${data && !data.whole && html`<${Notice} kind="warn">${w('notWhole')}<//>`}
		<${Card} flush title=${w('ids')} note=${data && w('idsText', {n: number(data.freezeAge)})}><${Table} label=${w('ids')} columns=${DATABASES()} rows=${data?.databases ?? (error && [])} keyOf=${d => d.database} sort=${['age', -1]} /><//>
		${data?.running?.length > 0 && html`<${Card} flush title=${w('running')}><${Table} label=${w('running')} columns=${RUNS()} rows=${data.running} keyOf=${r => r.pid} /><//>`}
		<${Card} flush title=${w('tables')} note=${w('tablesText')}><${Table} label=${w('tables')} columns=${TABLES()} rows=${data?.tables ?? (error && [])} keyOf=${t => `${t.database}.${t.table}`} sort=${['dead', -1]}
			empty=${html`<${Empty} title=${w('noTables')} />`} /><//></div>`;
}

export default function Activity({groupId, processes}) {
	const [view] = useQuery('view', 'sessions'), [node] = useQuery('node');
	const process = processes.find(p => nodeName(p) === node) ?? processes.find(isPrimary) ?? processes[0];
	if (!process)
		return html`<section class="card"><${Empty} title=${w('noNode')} /></section>`;
	const Part = view === 'vacuum' ? Vacuum : Sessions;
	return html`<div class="bar bare"><${Segments} label=${w('view')} current=${view} onPick=${v => setQuery({view: v === 'sessions' ? '' : v})} options=${['sessions', 'vacuum'].map(id => ({id, label: w(`view.${id}`)}))} />
		${processes.length > 1 && html`<${Field} label=${w('node')}><${Select} value=${nodeName(process)} onInput=${v => setQuery({node: v})} options=${processes.map(p => ({value: nodeName(p), label: nodeName(p)}))} /><//>`}</div>
		<${Part} key=${process.id} groupId=${groupId} process=${process} />`;
}
