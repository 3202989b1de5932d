/* What was measured of a cluster's nodes: plots with one legend and one crosshair, or the same as tables. */
import {html, call, useLoad, useWhile, useQuery, setQuery, useMemo, useState, Plot, Segments, Fault, Empty, Card, Table, Time, words} from './kit.js';
import {colourOf, valueText} from '../../ui/plot.js';
import {nodeName} from './clusters.js';

const w = words('metrics');
const RANGES = {hour: ['PT1H', 'PT1M'], day: ['P1D', 'PT5M'], week: ['P7D', 'PT1H'], month: ['P30D', 'PT1H']};
const PROCESS = [['cpu', ['PROCESS_NORMALIZED_CPU_USER', 'PROCESS_NORMALIZED_CPU_KERNEL'], '%'], ['connections', ['CONNECTIONS'], ''],
	['commands', ['OPCOUNTER_CMD'], '/s'],
	['writes', ['OPCOUNTER_INSERT', 'OPCOUNTER_UPDATE', 'OPCOUNTER_DELETE'], '/s'], ['lag', ['OPLOG_SLAVE_LAG_MASTER_TIME'], 'ms'],
		['memory', ['MEMORY_RESIDENT'], 'bytes'], ['data', ['DB_DATA_SIZE_TOTAL'], 'bytes']];
const DISK = [['diskUsed', ['DISK_PARTITION_SPACE_USED'], 'bytes'], ['iops', ['DISK_PARTITION_IOPS_TOTAL'], '/s']];
const TABLE_MOST = 60;

const sum = lists => {
	const at = new Map();
	for (const points of lists)
		for (const p of points)
			at.set(p.timestamp, p.value === undefined ? at.get(p.timestamp) ?? null : (at.get(p.timestamp) ?? 0) + p.value);
	return [...at].sort((a, b) => a[0] < b[0] ? -1 : 1);
};

const series = (answers, names) => answers.map(({node, measurements}, i) =>
	({label: node, colour: colourOf(i), points: sum(measurements.filter(m => names.includes(m.name)).map(m => m.dataPoints))})).filter(s => s.points.length);

async function measure(groupId, processes, range, signal) {
	const [period, granularity] = RANGES[range] ?? RANGES.hour, query = list => ({period, granularity, m: list.flatMap(x => x[1])});
	const one = async p => {
		const [own, disks] = await Promise.all([call('getProcessMeasurements', {groupId, processId: p.id}, {query: query(PROCESS), signal}),
			call('listProcessDisks', {groupId, processId: p.id}, {signal}).then(d =>
				// The node's own comes first; the partition that it lies on is the host's.
				Promise.all(d.results.slice(0, 1).map(x => call('getProcessDiskMeasurements', {groupId, processId: p.id, partitionName: x.partitionName},
				{query: query(DISK), signal}))))]);
		return {node: nodeName(p), measurements: [own, ...disks].flatMap(a => a.measurements ?? [])};
	};
	const answers = await Promise.all(processes.slice(0, 9).map(one));
	return [...PROCESS, ...DISK].map(([id, names, unit]) => ({id, unit, series: series(answers, names)})).filter(p => p.series.length);
}

/* One legend for all plots: a node that is switched off is off everywhere. */
function Legend({nodes, hidden, onFlip}) {
	return html`<div class="legend" role="group" aria-label=${w('nodes')}>${nodes.map(n => html`<button type="button" key=${n.label} aria-pressed=${String(!hidden.has(n.label))}
		onClick=${() => onFlip(n.label)}><i style=${{background: `var(${n.colour})`}}></i>${n.label}</button>`)}</div>`;
}

/* The newest first, and each time once for all nodes. */
function AsTable({plot}) {
	const rows = useMemo(() => {
		const at = new Map();
		plot.series.forEach((s, i) => s.points.forEach(([time, v]) => at.set(time, {...at.get(time), id: time, [i]: v})));
		return [...at.values()].filter(r => plot.series.some((s, i) => r[i] !== null && r[i] !== undefined)).sort((a, b) => a.id < b.id ? 1 : -1).slice(0, TABLE_MOST);
	}, [plot]);
	const columns = [{key: 'at', label: w('at'), main: true, value: r => r.id, cell: r => html`<${Time} at=${r.id} kind="full" />`},
		...plot.series.map((s, i) => ({key: String(i), label: s.label, value: r => r[i], cell: r => valueText(r[i], plot.unit)}))];
	return html`<${Card} flush title=${w(plot.id)}><${Table} label=${w(plot.id)} columns=${columns} rows=${rows} sort=${['at', -1]} /><//>`;
}

export default function Metrics({groupId, name, processes}) {
	const [range] = useQuery('range', 'hour'), [as] = useQuery('as', 'plots'), [hidden, setHidden] = useState(new Set());
	const ids = processes.map(p => p.id).join();
	const {data, error, reload} = useLoad(signal => measure(groupId, processes, range, signal), [groupId, ids, range],
		{key: `metrics ${groupId} ${name} ${range}`});
	useWhile(true, reload, range === 'hour' ? 20000 : 120000);
	const nodes = useMemo(() => [...new Map((data ?? []).flatMap(p => p.series).map(s => [s.label, s])).values()], [data]);
	const flip = label => setHidden(old => {
		const next = new Set(old);
		if (!next.delete(label))
			next.add(label);
		return next;
	});
	const plots = useMemo(() => (data ?? []).map(p => ({...p, series: p.series.filter(s => !hidden.has(s.label))})).filter(p => p.series.length), [data, hidden]);
	return html`<div class="bar bare"><${Segments} label=${w('range')} current=${range} onPick=${v => setQuery({range: v === 'hour' ? '' : v})}
		options=${Object.keys(RANGES).map(k => ({id: k, label: w(`range.${k}`)}))} />
		<${Segments} label=${w('as')} current=${as} onPick=${v => setQuery({as: v === 'plots' ? '' : v})} options=${['plots', 'table'].map(id => ({id, label: w(`as.${id}`)}))} />
		${nodes.length > 0 && html`<${Legend} nodes=${nodes} hidden=${hidden} onFlip=${flip} />`}</div>
		<${Fault} error=${error} retry=${reload} />
		${data && !data.length && html`<section class="card"><${Empty} title=${w('none')} text=${w('noneText')} /></section>`}
		${as === 'table' ? html`<div class="stack">${plots.map(p => html`<${AsTable} key=${p.id} plot=${p} />`)}</div>`
			: html`<div class="plots">${plots.map(p => html`<section class="card plot-card" key=${p.id}><${Plot} title=${w(p.id)} series=${p.series}
				unit=${p.unit} together="metrics" /></section>`)}</div>`}`;
}
