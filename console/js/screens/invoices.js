/* Invoices: the list, and one with its lines and its days. */
import {html, call, callAll, useLoad, useMemo, Page, Table, Card, Facts, Plot, Empty, Fault, Button, StatePill, Time, Link, save, words, once,
	number, amount} from './parts/kit.js';

const w = words('invoices');
const money = cents => amount(cents === undefined || cents === null ? cents : cents / 100);

const COLUMNS = once(() => [{key: 'month', label: w('period'), main: true, value: i => i.startDate,
	cell: i => html`<${Time} at=${i.startDate} kind="date" /> – <${Time} at=${i.endDate} kind="date" />`},
	{key: 'status', label: w('status'), width: '18%', value: i => i.statusName, cell: i => html`<${StatePill} state=${i.statusName} text=${i.statusName === 'PENDING' ? w('open') : undefined} />`},
	{key: 'sum', label: w('subtotal'), width: '16%', value: i => i.subtotalCents, cell: i => money(i.subtotalCents)},
		{key: 'billed', label: w('billed'), width: '16%', value: i => i.amountBilledCents, cell: i => money(i.amountBilledCents)},
		{key: 'paid', label: w('paid'), width: '16%', wide: true, value: i => i.amountPaidCents, cell: i => money(i.amountPaidCents)}]);

function List({orgId}) {
	const {data, error, reload} = useLoad(async () => {
		const [pending, rest] = await Promise.all([call('listInvoicePending', {orgId}).then(x => x?.results ?? (x?.id ? [x] : [])),
			callAll('listInvoices', {orgId})]);
		return [...pending, ...rest.filter(i => !pending.some(p => p.id === i.id))];
	}, [orgId], {key: `invoices ${orgId}`});
	return html`<${Page} title=${w('title')} actions=${html`<${Button} to=${`/orgs/${orgId}/usage`}>${w('usage')}<//>`}><${Fault} error=${error}
		retry=${reload} />
		<section class="card" aria-label=${w('title')}><${Table} label=${w('title')} columns=${COLUMNS()} rows=${data} failed=${error}
			to=${i => `/orgs/${orgId}/invoices/${i.id}`} empty=${html`<${Empty} title=${w('none')} text=${w('noneText')} />`} /></section><//>`;
}

const LINES = once(() => [{key: 'sku', label: w('sku'), main: true, value: l => l.sku},
	{key: 'project', label: w('project'), width: '16%', wide: true, value: l => l.groupName ?? l.groupId},
	{key: 'cluster', label: w('cluster'), width: '16%', value: l => l.clusterName},
	{key: 'day', label: w('day'), width: '14%', value: l => l.startDate, cell: l => html`<${Time} at=${l.startDate} kind="date" />`},
	{key: 'amount', label: w('amount'), width: '14%', wide: true, value: l => l.quantity, cell: l => `${number(l.quantity, 3)} ${l.unit ?? ''}`},
		{key: 'price', label: w('price'), width: '12%', value: l => l.totalPriceCents, cell: l => money(l.totalPriceCents)}]);

const byDay = lines => {
	const days = new Map();
	for (const l of lines)
		days.set(l.startDate.slice(0, 10), (days.get(l.startDate.slice(0, 10)) ?? 0) + l.totalPriceCents / 100);
	return [...days].sort().map(([d, v]) => [`${d}T00:00:00Z`, v]);
};

function One({orgId, invoiceId}) {
	const {data: i, error, reload} = useLoad(() => call('getInvoice', {orgId, invoiceId}), [orgId, invoiceId], {key: `invoice ${invoiceId}`});
	const series = useMemo(() => i ? [{label: w('perDay'), points: byDay(i.lineItems ?? [])}] : [], [i]);
	const csv = async () => save(await call('getInvoiceCsv', {orgId, invoiceId}, {form: 'csv'}), `invoice-${invoiceId}.csv`);
	return html`<${Page} title=${w('one')} actions=${html`<${Button} onClick=${csv}>${w('csv')}<//>`}><p><${Link}
		to=${`/orgs/${orgId}/invoices`}>${w('back')}<//></p><${Fault} error=${error} retry=${reload} />
		${i && html`<div class="stack"><div class="two"><${Card} title=${w('perDay')}>${series[0].points.length ?
			html`<${Plot} title=${w('perDay')} series=${series} bars height=${180} />` : html`<p class="calm">${w('noLines')}</p>`}<//>
			<${Card} title=${w('sum')}><${Facts} items=${[[w('status'), html`<${StatePill} state=${i.statusName} text=${i.statusName === 'PENDING' ? w('open') : undefined} />`],
				[w('period'), html`<${Time} at=${i.startDate} kind="date" /> – <${Time} at=${i.endDate} kind="date" />`],
				[w('subtotal'), money(i.subtotalCents)], [w('credits'), i.creditsCents ? money(i.creditsCents) : ''],
				[w('tax'), money(i.salesTaxCents)], [w('billed'), money(i.amountBilledCents)], [w('paid'), money(i.amountPaidCents)]]} /><//></div>
			<${Card} flush title=${w('lines')} note=${number(i.lineItems?.length ?? 0)}><${Table} label=${w('lines')} columns=${LINES()}
				rows=${(i.lineItems ?? []).map((l, n) => ({...l, id: n}))} empty=${html`<p class="calm">${w('noLines')}</p>`} /><//></div>`}<//>`;
}

export default function Screen({params: {orgId, invoiceId}}) {
	return invoiceId ? html`<${One} orgId=${orgId} invoiceId=${invoiceId} />` : html`<${List} orgId=${orgId} />`;
}
