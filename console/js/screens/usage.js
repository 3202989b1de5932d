/* What an organization has used, and what that costs, by day and month. */
import {html, call, useLoad, useMemo, useQuery, setQuery, Page, Table, Card, Plot, Segments, Empty, Fault, Notice, Button, words,
	number, amount} from './parts/kit.js';

const w = words('usage');
const MONTHS = {three: 3, six: 6, year: 12};
const first = (d, months) => new Date(Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + months, 1)).toISOString().slice(0, 10);

async function ask(orgId, groupBy, months, signal) {
	const now = new Date();
	const {token} = await call('createCostExplorerProcess', {orgId},
		{body: {startDate: first(now, 1 - months), endDate: first(now, 1), groupBy}, signal});
	for (let tries = 0; ; tries++) {
		const answer = await call('getCostExplorerUsage', {orgId, token}, {raw: true, signal});
		if (answer.status === 200)
			return answer.json();
		if (tries > 60)
			throw new Error(w('slow'));
		await new Promise(done => setTimeout(done, 250));
	}
}

export default function Screen({params: {orgId}}) {
	const [by] = useQuery('by', 'projects'), [range] = useQuery('range', 'six');
	const {data, error, reload} = useLoad(signal => ask(orgId, by, MONTHS[range] ?? 6, signal), [orgId, by, range],
		{key: `usage ${orgId} ${by} ${range}`});
	const {series, rows, total} = useMemo(() => {
		/* A month in which nothing ran cost nothing: it has its place beside the others. */
		const names = new Map(), count = MONTHS[range] ?? 6, months = Array.from({length: count}, (x, i) => `${first(new Date(), i + 1 - count)}T00:00:00Z`);
		for (const d of data?.usageDetails ?? []) {
			const key = d.id ?? d.name, one = names.get(key) ?? {id: key, label: d.name || key, points: [], total: 0};
			one.points.push([`${d.usageDate}T00:00:00Z`, d.usageAmount]);
			one.total += d.usageAmount;
			names.set(key, one);
		}
		const list = [...names.values()].sort((a, b) => b.total - a.total);
		for (const one of list) {
			const had = new Set(one.points.map(p => p[0]));
			one.points.push(...months.filter(m => !had.has(m)).map(m => [m, 0]));
			one.points.sort((a, b) => a[0] < b[0] ? -1 : 1);
		}
		return {series: list.slice(0, 6), rows: list, total: list.reduce((n, x) => n + x.total, 0)};
	}, [data, range]);
	const money = n => [amount(n), data?.currency].filter(Boolean).join(' ');
	const columns = [{key: 'name', label: w(`by.${by}`), main: true, value: r => r.label},
		{key: 'total', label: w('cost'), width: '24%', value: r => r.total, cell: r => money(r.total)},
		{key: 'share', label: w('share'), width: '20%', value: r => r.total, cell: r => `${number(total ? r.total / total * 100 : 0, 0)}%`}];
	return html`<${Page} title=${w('title')} facts=${data && html`<span><b>${money(total)}</b> ${w('total')}</span>`}
		actions=${html`<${Button} to=${`/orgs/${orgId}/invoices`}>${w('invoices')}<//>`}><${Fault} error=${error} retry=${reload} />
		<div class="bar bare"><${Segments} label=${w('groupBy')} current=${by} onPick=${v => setQuery({by: v === 'projects' ? '' : v})}
			options=${['projects', 'clusters', 'services'].map(id => ({id, label: w(`by.${id}`)}))} />
			<${Segments} label=${w('range')} current=${range} onPick=${v => setQuery({range: v === 'six' ? '' : v})}
				options=${Object.keys(MONTHS).map(id => ({id, label: w(`range.${id}`)}))} /></div>
		${data?.forecast && html`<${Notice} title=${w('forecast')}>${w('forecastText',
			{now: money(data.forecast.usageCents / 100), then: money(data.forecast.forecastCents / 100)})}<//>`}
		${data && !rows.length && html`<section class="card"><${Empty} title=${w('none')} text=${w('noneText')} /></section>`}
		${rows.length > 0 && html`<div class="stack"><${Card} title=${w('plot')} note=${data?.currency}><${Plot} title=${w('plot')} series=${series} unit=${data?.currency}
			bars=${series.length === 1} height=${240} /><//>
			<${Card} flush><${Table} label=${w('plot')} columns=${columns} rows=${rows} sort=${['total', -1]} /><//></div>`}<//>`;
}
