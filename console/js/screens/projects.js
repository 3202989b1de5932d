/* The projects of an organization. */
import {html, call, go, useState, useLoad, useLive, useCalm, useQuery, setQuery, Page, Table, Pager, Empty, Fault, Button, DialogForm, Field, Input,
	Check, Search, Time, say, words, once, number, atField, loadSession} from './parts/kit.js';

const w = words('projects');
const PAGE = 100;

function CreateDialog({orgId, onClose}) {
	const [name, setName] = useState(''), [alerts, setAlerts] = useState(true);
	const make = async () => {
		const group = await atField(call('createGroup', {}, {body: {name: name.trim(), orgId, withDefaultAlertsSettings: alerts}}),
			{GROUP_ALREADY_EXISTS: 'name', DUPLICATE_GROUP_NAME: 'name'});
		say(w('made', {name: group.name}));
		await loadSession().catch(() => null);
		go(`/projects/${group.id}`);
	};
	return html`<${DialogForm} op="createGroup" title=${w('newTitle')} submit=${w('make')} onSubmit=${make} onClose=${onClose}>
		<${Field} label=${w('name')} name="name" help=${w('nameHelp')} required><${Input} value=${name} onInput=${setName} maxlength="64" autofocus
			/><//>
		<${Check} checked=${alerts} onInput=${setAlerts} label=${w('alerts')} help=${w('alertsHelp')} name="withDefaultAlertsSettings" /><//>`;
}

const COLUMNS = once(() => [{key: 'name', label: w('name'), main: true, sort: true, value: g => g.name},
	{key: 'clusters', label: w('clusters'), width: '14%', value: g => g.clusterCount ?? 0, cell: g => number(g.clusterCount ?? 0)},
	{key: 'created', label: w('created'), width: '22%', sort: true, value: g => g.created, cell: g => html`<${Time} at=${g.created} kind="date" />`},
		{key: 'id', label: w('id'), width: '24%', wide: true, value: g => g.id, cell: g => html`<span class="mono">${g.id}</span>`}]);

export default function Screen({params: {orgId}}) {
	const [asked] = useQuery('do'), [q] = useQuery('q'), [by] = useQuery('sort', 'name'), [page] = useQuery('page', '1');
	const {data, error, reload} = useLoad(signal => call('getOrgGroups', {orgId}, {query: {q, sort: by, pageNum: page, itemsPerPage: PAGE}, signal}),
		[orgId, q, by, page], {key: `projects ${orgId} ${q} ${by} ${page}`});
	const calm = useCalm(reload, 1000);
	useLive(e => e.orgId === orgId && /^(GROUP|PROJECT|CLUSTER)_/.test(e.eventTypeName), calm);
	const rows = data?.results, make = html`<${Button} op="createGroup" kind="go" icon="plus" onClick=${() => setQuery({do: 'new'})}>${w('newTitle')}<//>`;
	const sort = by.startsWith('-') ? [by.slice(1), -1] : [by, 1];
	return html`<${Page} title=${w('title')} needs="createGroup" actions=${make}><${Fault} error=${error} retry=${reload} />
		<section class="card" aria-label=${w('title')}><div class="bar"><${Search} label=${w('find')} value=${q}
			onInput=${v => setQuery({q: v, page: ''})} /></div>
			<${Table} label=${w('title')} columns=${COLUMNS()} rows=${rows} failed=${error} sort=${sort}
				onSort=${(k, d) => setQuery({sort: (d < 0 ? '-' : '') + k, page: ''})} to=${g => `/projects/${g.id}`}
				empty=${q ? html`<${Empty} title=${w('noneFits')} />` : html`<${Empty} title=${w('none')} text=${w('noneText')} action=${make} />`} />
			<div class="foot"><span role="status">${data && w('count', {n: data.totalCount})}</span>${data &&
				html`<${Pager} page=${Number(page)} size=${PAGE} total=${data.totalCount} onPage=${n => setQuery({page: n > 1 ? n : ''})}
				/>`}</div></section>
		${asked === 'new' && html`<${CreateDialog} orgId=${orgId} onClose=${() => setQuery({do: ''})} />`}<//>`;
}
