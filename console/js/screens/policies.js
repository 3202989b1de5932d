/* The rules of an organization that hold for everybody, and what breaks them now. */
import {html, call, useState, useLoad, Page, Card, Table, Empty, Fault, Button, Menu, ConfirmDanger, Time, go, say, words,
	number} from './parts/kit.js';

const w = words('policies');
const listOf = x => Array.isArray(x) ? x : x?.results ?? [];

export default function Screen({params: {orgId}}) {
	const [doomed, setDoomed] = useState(null), at = p => `/orgs/${orgId}/policies/${p.id}`;
	const {data, error, reload} = useLoad(async () => {
		const [policies, broken] = await Promise.all([call('listOrgResourcePolicies', {orgId}),
			call('getNonCompliantResources', {orgId}).catch(() => [])]);
		return {policies: listOf(policies), broken: listOf(broken)};
	}, [orgId], {key: `policies ${orgId}`});
	const columns = [{key: 'name', label: w('name'), main: true, value: p => p.name, cell: p => html`${p.name}<small>${p.description}</small>`},
		{key: 'count', label: w('rules'), width: '12%', value: p => p.policies?.length ?? 0, cell: p => number(p.policies?.length ?? 0)},
		{key: 'by', label: w('by'), width: '22%', wide: true, value: p => p.lastUpdatedByUser?.name ?? ''},
			{key: 'at', label: w('changed'), width: '16%', value: p => p.lastUpdatedDate,
			cell: p => html`<${Time} at=${p.lastUpdatedDate} kind="ago" />`},
		{key: 'do', label: '', width: '3.5rem', sort: false, cell: p =>
			html`<${Menu} label=${w('more', {name: p.name})} items=${[{label: w('edit'), op: 'updateOrgResourcePolicy', onPick: () => go(at(p))},
			{label: w('delete'), op: 'deleteOrgResourcePolicy', kind: 'danger', onPick: () => setDoomed(p)}]} />`}];
	const broken = [{key: 'name', label: w('resource'), main: true, value: r => r.resourceName ?? r.name ?? r.resourceId},
		{key: 'type', label: w('type'), width: '18%', value: r => r.resourceType},
		{key: 'which', label: w('broken'), width: '40%', value: r => listOf(r.policyStatuses ?? r.policies).map(x => x.policyName ?? x.name ??
		x.policyId ?? x).join(', ')}];
	const make = html`<${Button} op="createOrgResourcePolicy" kind="go" icon="plus" to=${`/orgs/${orgId}/policies/new`}>${w('new')}<//>`;
	return html`<${Page} title=${w('title')} needs="createOrgResourcePolicy" actions=${make}><${Fault} error=${error} retry=${reload} /><div class="stack">
		<section class="card" aria-label=${w('title')}><${Table} label=${w('title')} columns=${columns} rows=${data?.policies} failed=${error} to=${at}
			empty=${html`<${Empty} title=${w('none')} text=${w('noneText')} action=${make} />`} /></section>
		${data?.broken.length > 0 && html`<${Card} flush title=${w('nonCompliant')} note=${number(data.broken.length)}><${Table}
			label=${w('nonCompliant')} columns=${broken} rows=${data.broken} keyOf=${r => r.resourceId ?? r.resourceName} /><//>`}</div>
		${doomed && html`<${ConfirmDanger} title=${w('deleteTitle', {name: doomed.name})} text=${w('deleteText')} name=${doomed.name}
			action=${w('delete')} onConfirm=${async () => { await call('deleteOrgResourcePolicy',
			{orgId, resourcePolicyId: doomed.id}); say(w('deleted', {name: doomed.name})); reload(); }} onClose=${() => setDoomed(null)} />`}<//>`;
}
