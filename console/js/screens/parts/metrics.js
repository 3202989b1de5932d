/* What was measured of a cluster's nodes, as plots. */
import {html, call, useLoad, useWhile, useQuery, setQuery, Plot, Segments, Fault, Empty, words} from './kit.js';
import {nodeName} from './clusters.js';

const w = words('metrics');
const RANGES = {hour: ['PT1H', 'PT1M'], day: ['P1D', 'PT5M'], week: ['P7D', 'PT1H'], month: ['P30D', 'PT1H']};
const PROCESS = [['cpu', ['PROCESS_NORMALIZED_CPU_USER', 'PROCESS_NORMALIZED_CPU_KERNEL'], '%'], ['connections', ['CONNECTIONS'], ''],
	['commands', ['OPCOUNTER_CMD'], '/s'],
	['writes', ['OPCOUNTER_INSERT', 'OPCOUNTER_UPDATE', 'OPCOUNTER_DELETE'], '/s'], ['lag', ['OPLOG_SLAVE_LAG_MASTER_TIME'], 'ms'],
		['memory', ['MEMORY_RESIDENT'], 'bytes'], ['data', ['DB_DATA_SIZE_TOTAL'], 'bytes']];
const DISK = [['diskUsed', ['DISK_PARTITION_SPACE_USED'], 'bytes'], ['iops', ['DISK_PARTITION_IOPS_TOTAL'], '/s']];

const sum = lists => {
	const at = new Map();
	for (const points of lists)
		for (const p of points)
			at.set(p.timestamp, p.value === undefined ? at.get(p.timestamp) ?? null : (at.get(p.timestamp) ?? 0) + p.value);
	return [...at].sort((a, b) => a[0] < b[0] ? -1 : 1);
};

const series = (answers, names) => answers.map(({node, measurements}) =>
	({label: node, points: sum(measurements.filter(m => names.includes(m.name)).map(m => m.dataPoints))})).filter(s => s.points.length);

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

export default function Metrics({groupId, name, processes}) {
	const [range] = useQuery('range', 'hour');
	const ids = processes.map(p => p.id).join();
	const {data, error, reload} = useLoad(signal => measure(groupId, processes, range, signal), [groupId, ids, range],
		{key: `metrics ${groupId} ${name} ${range}`});
	useWhile(true, reload, range === 'hour' ? 20000 : 120000);
	return html`<div class="bar bare"><${Segments} label=${w('range')} current=${range} onPick=${v => setQuery({range: v === 'hour' ? '' : v})}
		options=${Object.keys(RANGES).map(k => ({id: k, label: w(`range.${k}`)}))} /></div>
		<${Fault} error=${error} retry=${reload} />
		${data && !data.length && html`<section class="card"><${Empty} title=${w('none')} text=${w('noneText')} /></section>`}
		<div class="plots">${(data ?? []).map(p => html`<section class="card plot-card" key=${p.id}><${Plot} title=${w(p.id)} series=${p.series}
			unit=${p.unit} /></section>`)}</div>`;
}
