/* What queries cost: their shapes, and the slow ones as the servers' logs have them. */
import {html, call, get, pathOf, time, useLoad, useQuery, setQuery, Segments, Table, Card, Empty, Fault, Dialog, Facts, Button, Time, ConfirmDanger, useState, say,
	words, once, number, duration, bytes} from './kit.js';
import {nodeName} from './clusters.js';

const w = words('queries');
const ms = v => v === undefined ? '—' : duration(v / 1000);

const SHAPES = once(() => [
	{key: 'query', label: w('query'), main: true, value: s => s.queryShape ?? s.queryShapeHash,
		cell: s => html`<code class="mono clip">${s.queryShape || s.queryShapeHash}</code>`},
	{key: 'where', label: w('table'), width: '16%', wide: true, value: s => s.namespace},
	{key: 'count', label: w('count'), width: '9%', value: s => s.execCount, cell: s => number(s.execCount)},
	{key: 'total', label: w('total'), width: '10%', value: s => s.totalWorkingMillis, cell: s => ms(s.totalWorkingMillis)},
	{key: 'mean', label: w('mean'), width: '10%', value: s => s.avgWorkingMillis, cell: s => ms(s.avgWorkingMillis)},
	{key: 'p99', label: w('p99'), width: '10%', wide: true, value: s => s.p99ExecMicros, cell: s => ms(s.p99ExecMicros / 1000)}
]);

const HOUR = 3600e3, PERIODS = {hour: HOUR, day: 24 * HOUR, week: 168 * HOUR, all: 0};

/* The shapes of a period, and of which time their figures truly are. */
async function load(groupId, clusterName, period) {
	const since = PERIODS[period] ? {since: Date.now() - PERIODS[period]} : {};
	const [{body, headers}, rejected] = await Promise.all([call('listQueryShapeSummaries', {groupId, clusterName}, {query: since, whole: true}),
		call('listClusterQueryShapes', {groupId, clusterName}).catch(() => ({results: []}))]);
	const no = new Set((rejected.results ?? []).filter(s => s.status === 'REJECTED').map(s => s.queryShapeHash));
	return {from: headers.get('x-steward-since'), list: (body.summaries ?? []).filter(s => !s.systemQuery).map(s => ({...s, rejected: no.has(s.queryShapeHash)}))};
}

const PLANS = once(() => [
	{key: 'plan', label: w('plan'), main: true, value: p => p.plan, cell: p => html`<code class="mono outline">${p.plan}</code>`},
	{key: 'last', label: w('lastUsed'), width: '18%', value: p => p.lastUsed, cell: p => html`<${Time} at=${p.lastUsed} kind="full" />`},
	{key: 'first', label: w('firstUsed'), width: '18%', wide: true, value: p => p.firstUsed, cell: p => html`<${Time} at=${p.firstUsed} kind="full" />`},
	{key: 'count', label: w('slowCount'), width: '10%', value: p => p.count, cell: p => number(p.count)},
	{key: 'mean', label: w('mean'), width: '11%', value: p => p.avgMillis, cell: p => ms(p.avgMillis)},
	{key: 'most', label: w('longest'), width: '11%', wide: true, value: p => p.maxMillis, cell: p => ms(p.maxMillis)}
]);

/* How queries of a shape were executed when they were slow: a plan that is not used any more tells when that began. */
function Plans({groupId, name, hash}) {
	const path = pathOf('getQueryShapeDetails', {groupId, clusterName: name, queryShapeHash: hash}).replace(/\/details$/, ':plans');
	const {data, error, reload} = useLoad(signal => get(path, {signal}), [path]);
	return html`<section aria-label=${w('plans')}><h3>${w('plans')}</h3><p class="dim">${w('plansText')}</p><${Fault} error=${error} retry=${reload} />
		${(data || !error) && html`<${Table} class="mini" label=${w('plans')} columns=${PLANS()} rows=${data?.plans} keyOf=${p => p.plan} sort=${['last', -1]}
			empty=${html`<p class="calm">${w('noPlans')}</p>`} />`}</section>`;
}

function ShapeDialog({groupId, name, shape, onClose, onTurn}) {
	const [refuse, setRefuse] = useState(false);
	const text = shape.queryShape || shape.queryShapeHash;
	if (refuse)
		return html`<${ConfirmDanger} title=${w('rejectTitle')} text=${w('rejectText')} action=${w('reject')} onConfirm=${() => onTurn('REJECTED')} onClose=${() => setRefuse(false)} />`;
	return html`<${Dialog} kind="wide" title=${w('shape')} onClose=${onClose}><pre class="raw mono" tabindex="0" aria-label=${w('query')}>${text}</pre>
		<${Facts} items=${[[w('table'), shape.namespace], [w('count'), number(shape.execCount)], [w('total'), ms(shape.totalWorkingMillis)],
			[w('mean'), ms(shape.avgWorkingMillis)], ['p50', ms(shape.p50ExecMicros / 1000)], ['p90', ms(shape.p90ExecMicros / 1000)],
			['p99', ms(shape.p99ExecMicros / 1000)], [w('rows'), number(shape.docsReturned)], [w('read'), bytes(shape.bytesRead)]]} />
		<${Plans} groupId=${groupId} name=${name} hash=${shape.queryShapeHash} />
		<div class="acts">${shape.rejected ? html`<${Button} op="updateClusterQueryShape" onClick=${() => onTurn('UNREJECTED')}>${w('allow')}<//>` :
			html`<${Button} op="updateClusterQueryShape" kind="danger" onClick=${() => setRefuse(true)}>${w('reject')}<//>`}</div><//>`;
}

function Shapes({groupId, name, period}) {
	const [hash] = useQuery('shape');
	const {data, error, reload} = useLoad(() => load(groupId, name, period), [groupId, name, period], {key: `shapes ${groupId} ${name} ${period}`});
	const open = data?.list.find(s => s.queryShapeHash === hash);
	const turn = async status => {
		await call('updateClusterQueryShape', {groupId, clusterName: name, queryShapeHash: open.queryShapeHash}, {body: {status}});
		say(w(status === 'REJECTED' ? 'rejected' : 'allowed'));
		reload();
	};
	return html`<${Fault} error=${error} retry=${reload} /><${Card} flush title=${w('shapes')} note=${data?.from && period !== 'all' ? w('figuresFrom', {time: time(data.from)}) : w('shapesText')}>
		<${Table} label=${w('shapes')} columns=${SHAPES()} rows=${data?.list ?? (error && [])} keyOf=${s => s.queryShapeHash} sort=${['total', -1]}
			onOpen=${s => setQuery({shape: s.queryShapeHash})} empty=${!error && html`<${Empty} title=${w('noShapes')} text=${w(period === 'all' ? 'noShapesText' : 'noShapesThen')} />`} /><//>
		${open && html`<${ShapeDialog} key=${hash} groupId=${groupId} name=${name} shape=${open} onClose=${() => setQuery({shape: ''})} onTurn=${turn} />`}`;
}

const SLOW = once(() => [
	{key: 'at', label: w('when'), width: '12.5rem', value: q => q.at ?? '', cell: q => html`<${Time} at=${q.at} kind="full" />`},
	{key: 'line', label: w('query'), main: true, value: q => q.text, cell: q => html`<code class="mono clip">${q.text}</code>`},
	{key: 'where', label: w('table'), width: '16%', wide: true, value: q => q.namespace},
	{key: 'took', label: w('took'), width: '9%', value: q => q.took, cell: q => ms(q.took)},
	{key: 'node', label: w('node'), width: '11rem', wide: true, value: q => q.node}
]);

const document = text => {
	try {
		return JSON.parse(text);
	} catch {
		return null; // the end was cut off, or it never was one
	}
};

/* A line of the log is a document, whose message has the time and, as a document again, the statement with its plan. */
const parse = (q, node, i) => {
	const line = document(q.line) ?? {}, message = String(line.message ?? ''), from = message.indexOf('{');
	const found = from >= 0 ? document(message.slice(from)) : null, cut = /"Query Text":\s*"((?:[^"\\]|\\.)*)/.exec(message || q.line);
	const exact = /^duration: ([\d.]+) ms/.exec(message);
	return {id: `${node}${i}`, node, namespace: q.namespace, took: exact ? Number(exact[1]) : q.metrics?.operationExecutionTime, at: line.timestamp ?? line.t?.$date,
		text: found?.['Query Text'] ?? (cut ? document(`"${cut[1]}"`) ?? cut[1] : message.replace(/^duration: [\d.]+ ms\s+(plan: )?/, '')), plan: found?.Plan,
		user: line.user, database: line.dbname, application: line.application_name, metrics: q.metrics ?? {}};
};

/* A step of a plan, with those that it is made of. */
function Step({step}) {
	const what = [step['Node Type'], step['Relation Name'] && w('planOn', {name: step['Relation Name']}), step['Index Name'] && w('planBy', {name: step['Index Name']})].filter(Boolean).join(' ');
	return html`<li><b>${what}</b> <span class="dim">${[step['Actual Total Time'] !== undefined && ms(step['Actual Total Time']),
		step['Actual Rows'] !== undefined && w('planRows', {n: step['Actual Rows']}), step.Filter].filter(Boolean).join(' · ')}</span>
		${step.Plans?.length > 0 && html`<ul>${step.Plans.map((s, i) => html`<${Step} key=${i} step=${s} />`)}</ul>`}</li>`;
}

function SlowDialog({q, onClose}) {
	return html`<${Dialog} kind="wide" title=${w('slowOne')} onClose=${onClose}><pre class="raw mono" tabindex="0" aria-label=${w('query')}>${q.text}</pre>
		<${Facts} items=${[[w('took'), ms(q.took)], [w('when'), html`<${Time} at=${q.at} kind="full" />`], [w('node'), q.node], [w('database'), q.database], [w('table'), q.namespace],
			[w('user'), q.user], [w('application'), q.application], [w('rows'), q.metrics.docsReturned && number(q.metrics.docsReturned)], [w('examined'), q.metrics.docsExamined && number(q.metrics.docsExamined)]]} />
		${q.plan && html`<h3>${w('plan')}</h3><ul class="plan">${html`<${Step} step=${q.plan} />`}</ul>`}<//>`;
}

function Slow({groupId, name, processes}) {
	const [open, setOpen] = useState(null);
	const {data, error, reload} = useLoad(async () => (await Promise.all(processes.map(async p => {
		const {slowQueries = []} = await call('listSlowQueryLogs', {groupId, processId: p.id}, {query: {includeMetrics: true, nLogs: 200}});
		return slowQueries.map((q, i) => parse(q, nodeName(p), i));
	}))).flat(), [groupId, name, processes.map(p => p.id).join()], {key: `slow ${groupId} ${name}`});
	return html`<${Fault} error=${error} retry=${reload} /><${Card} flush title=${w('slow')} note=${w('slowText')}>
		<${Table} label=${w('slow')} columns=${SLOW()} rows=${data ?? (error && [])} sort=${['took', -1]} onOpen=${setOpen}
			empty=${!error && html`<${Empty} title=${w('noSlow')} text=${w('noSlowText')} />`} /><//>
		${open && html`<${SlowDialog} q=${open} onClose=${() => setOpen(null)} />`}`;
}

export default function Queries(props) {
	const [kind] = useQuery('kind', 'shapes'), [asked] = useQuery('period', 'day'), period = asked in PERIODS ? asked : 'day';
	return html`<div class="bar bare"><${Segments} label=${w('kind')} current=${kind} onPick=${v => setQuery({kind: v === 'shapes' ? '' : v})}
		options=${['shapes', 'slow'].map(k => ({id: k, label: w(k)}))} />
		${kind !== 'slow' && html`<${Segments} label=${w('period')} current=${period} onPick=${v => setQuery({period: v === 'day' ? '' : v})}
			options=${Object.keys(PERIODS).map(k => ({id: k, label: w(`period.${k}`)}))} />`}</div>
		${kind === 'slow' ? html`<${Slow} ...${props} />` : html`<${Shapes} ...${props} period=${period} />`}`;
}
