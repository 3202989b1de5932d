/* How clusters did within the last hour, as small lines: one in a row of the overview, four on a cluster's page. Rows ask when they come into
 * view, few at a time. */
import {html, call, callAll, useEffect, useLoad, useRef, useState, Link, words, number, duration} from './kit.js';
import {Spark} from '../../ui/spark.js';
import {isPrimary, nodeName} from './clusters.js';

const w = words('sparks');
const AT_ONCE = 3, KEPT_MS = 60000;
const CPU = ['PROCESS_NORMALIZED_CPU_USER', 'PROCESS_NORMALIZED_CPU_KERNEL'];
const WRITES = ['OPCOUNTER_INSERT', 'OPCOUNTER_UPDATE', 'OPCOUNTER_DELETE'];

let running = 0;
const waiting = [];
async function inTurn(work) {
	if (running >= AT_ONCE)
		await new Promise(done => waiting.push(done));
	running++;
	try {
		return await work();
	} finally {
		running--;
		waiting.shift()?.();
	}
}

const known = new Map();
function kept(key, ask) {
	const old = known.get(key);
	if (old && Date.now() - old.at < KEPT_MS)
		return old.promise;
	const promise = ask();
	known.set(key, {at: Date.now(), promise});
	promise.catch(() => known.delete(key));
	return promise;
}

/* The values of several measurements together, oldest first. */
export const together = (answer, names) => {
	const lists = (answer.measurements ?? []).filter(m => names.includes(m.name)).map(m => m.dataPoints), at = new Map();
	lists.flat().forEach(p => at.set(p.timestamp, p.value === undefined || p.value === null ? at.get(p.timestamp) ?? null : (at.get(p.timestamp) ?? 0) + p.value));
	return [...at].sort((a, b) => a[0] < b[0] ? -1 : 1).map(x => x[1]);
};
const last = values => values.findLast(v => v !== null && v !== undefined);
const measured = (groupId, processId, m) => call('getProcessMeasurements', {groupId, processId}, {query: {period: 'PT1H', granularity: 'PT1M', m}});

async function loadOf(c) {
	const list = await kept(`processes ${c.groupId}`, () => callAll('listGroupProcesses', {groupId: c.groupId}));
	const process = list.find(p => nodeName(p) === c.primary?.split('.')[0]) ?? list.find(p => p.userAlias?.startsWith(`${c.name.toLowerCase()}-`));
	return process ? kept(`cpu ${process.id}`, async () => together(await measured(c.groupId, process.id, CPU), CPU)) : [];
}

/* The processor of a cluster's primary, for a row. */
export function RowSpark({c}) {
	const box = useRef(), [values, setValues] = useState(null);
	useEffect(() => {
		if (!c.primary)
			return undefined;
		let gone = false;
		const watch = new IntersectionObserver(list => {
			if (!list.some(e => e.isIntersecting))
				return;
			watch.disconnect();
			inTurn(() => gone ? null : loadOf(c)).then(v => gone || setValues(v), () => gone || setValues([]));
		});
		watch.observe(box.current);
		return () => {
			gone = true;
			watch.disconnect();
		};
	}, [c.id, c.primary]);
	const now = values && last(values);
	return html`<span class="spark-box" ref=${box}>${now === undefined || now === null ? html`<span class="dim">—</span>`
		: html`<${Spark} values=${values} most=${5} label=${w('rowLabel', {name: c.name, now: `${number(now, 1)}%`})} /><small>${number(now, 1)}%</small>`}</span>`;
}

const LINES = [['cpu', CPU, v => `${number(v, 1)}%`], ['connections', ['CONNECTIONS'], v => number(v, 0)], ['commands', ['OPCOUNTER_CMD'], v => w('perSecond', {n: number(v, 1)})],
	['writes', WRITES, v => w('perSecond', {n: number(v, 1)})], ['lag', ['OPLOG_SLAVE_LAG_MASTER_TIME'], v => duration(v / 1000)]];
const OF_STANDBYS = 'lag';

/* The greatest value of several nodes at each moment. */
function greatest(answers, names) {
	const at = new Map();
	for (const p of answers.flatMap(a => (a.measurements ?? []).filter(m => names.includes(m.name)).flatMap(m => m.dataPoints)))
		at.set(p.timestamp, Math.max(p.value ?? -Infinity, at.get(p.timestamp) ?? -Infinity));
	return [...at].sort((a, b) => a[0] < b[0] ? -1 : 1).map(x => Number.isFinite(x[1]) ? x[1] : null);
}

/* The last hour of a cluster's primary; each leads to the plots. A primary has no lag: that is of the standby that is furthest behind. */
export function Sparks({groupId, base, processes}) {
	const process = processes.find(isPrimary), standbys = processes.filter(p => /SECONDARY/.test(p.typeName)), [, lag] = LINES.find(l => l[0] === OF_STANDBYS);
	const {data} = useLoad(() => process ? Promise.all([measured(groupId, process.id, LINES.flatMap(l => l[1])), ...standbys.map(p => measured(groupId, p.id, lag))])
		: Promise.resolve(undefined), [groupId, process?.id, standbys.map(p => p.id).join()]);
	const lines = data ? LINES.map(([id, names, text]) => ({id, text, values: id === OF_STANDBYS ? greatest(data.slice(1), names) : together(data[0], names)}))
		.filter(l => last(l.values) !== undefined) : [];
	if (!lines.length)
		return null;
	return html`<div class="sparks" role="group" aria-label=${w('title')}>${lines.map(l => html`<${Link} class="card" key=${l.id} to=${`${base}/metrics`}><span>${w(l.id)}</span><b>${l.text(last(l.values))}</b>
		<${Spark} values=${l.values} label=${w('lineLabel', {what: w(l.id), now: l.text(last(l.values))})} /><//>`)}</div>`;
}
