/* What happened: of an organization, a project or one cluster, newest first, with what comes meanwhile on top. */
import {
	html, call, useMemo, useState, useLoad, useLive, useQuery, setQuery, Page, Table, Button, Empty, Fault, Field, Select, Dialog, Search, Segments, Time, Raw, words, once
} from './parts/kit.js';
import {eventWords, eventAbout, eventWho, whoText, EventLine} from './parts/events.js';

const w = words('events');
const PAGE = 100, HOURS = {hour: 1, day: 24, week: 168};

const COLUMNS = once(() => [
	{key: 'created', label: w('when'), width: '14rem', value: e => e.created, cell: e => html`<${Time} at=${e.created} kind="full" />`},
	{key: 'what', label: w('what'), main: true, value: e => e.eventTypeName, cell: e => html`<${EventLine} e=${e} plain />`},
	{key: 'who', label: w('who'), width: '16rem', wide: true, value: eventWho,
		cell: e => eventWho(e) ? html`<span title=${eventWho(e)}>${whoText(e)}</span>` : html`<span class="dim">${w('service')}</span>`},
	{key: 'from', label: w('from'), width: '9rem', wide: true, value: e => e.remoteAddress ?? ''}
]);

const fetchPage = ({groupId, orgId, name}, pageNum, query) => groupId
	? call('listGroupEvents', {groupId}, {query: {clusterNames: name, pageNum, itemsPerPage: PAGE, includeRaw: true, ...query}})
	: call('listOrgEvents', {orgId}, {query: {pageNum, itemsPerPage: PAGE, includeRaw: true, ...query}});

const textOf = e => `${e.eventTypeName} ${eventWords(e.eventTypeName)} ${eventAbout(e)} ${eventWho(e)}`.toLowerCase();

export function Events({groupId, orgId, name}) {
	const [q] = useQuery('q'), [since] = useQuery('since', 'all'), [id] = useQuery('event'), [kind] = useQuery('kind'), scope = {groupId, orgId, name};
	const range = {eventType: kind, minDate: HOURS[since] && new Date(Date.now() - HOURS[since] * 3600e3).toISOString()};
	const [pages, setPages] = useState(1);
	const {data, error, reload, set} = useLoad(async () => {
		const first = await fetchPage(scope, 1, range);
		setPages(1);
		return {items: first.results, total: first.totalCount};
	}, [groupId, orgId, name, since, kind], {key: `events ${groupId ?? orgId} ${name ?? ''} ${since} ${kind}`});
	/* Kinds of events are those that were seen: of the hundreds that there are most never happen. */
	const kinds = useMemo(() => new Set(), [groupId, orgId, name]);
	[kind, ...(data?.items ?? []).map(e => e.eventTypeName)].forEach(k => k && kinds.add(k));
	const add = list => set(d => ({total: d.total, items: [...d.items, ...list.filter(e => !d.items.some(x => x.id === e.id))]}));
	useLive({groupId, orgId, clusterName: name}, e => {
		if (e.resync)
			reload();
		else {
			kinds.add(e.eventTypeName);
			set(d => !d || d.items.some(x => x.id === e.id) ? d : kind && e.eventTypeName !== kind ? {...d} : {total: d.total + 1, items: [e, ...d.items]});
		}
	});
	const more = async () => {
		add((await fetchPage(scope, pages + 1, range)).results);
		setPages(pages + 1);
	};
	const asked = q.toLowerCase(), rows = data?.items.filter(e => !asked || textOf(e).includes(asked)), open = data?.items.find(e => e.id === id);
	return html`<${Fault} error=${error} retry=${reload} /><section class="card" aria-label=${w('title')}>
		<div class="bar"><${Segments} label=${w('range')} current=${since} onPick=${v => setQuery({since: v === 'all' ? '' : v})}
			options=${['all', ...Object.keys(HOURS)].map(k => ({id: k, label: w(`range.${k}`)}))} />
			<${Field} label=${w('kind')}><${Select} value=${kind} empty=${w('range.all')} onInput=${v => setQuery({kind: v})} options=${[...kinds].map(value =>
				({value, label: eventWords(value)})).sort((a, b) => a.label.localeCompare(b.label))} /><//>
			<${Search} label=${w('find')} value=${q} onInput=${v => setQuery({q: v})} /></div>
		<${Table} label=${w('title')} columns=${COLUMNS()} rows=${rows} failed=${error} onOpen=${e => setQuery({event: e.id})}
			empty=${html`<${Empty} title=${w(q || kind || since !== 'all' ? 'noneFits' : 'none')} />`} />
		<div class="foot" role="status"><span>${w('count', {n: rows?.length ?? 0})}</span>${data && pages * PAGE < data.total &&
			html`<${Button} small onClick=${more}>${w('older')}<//>`}</div>
	</section>
	${open && html`<${Dialog} title=${eventWords(open.eventTypeName)} onClose=${() => setQuery({event: ''})}><${Raw} value=${open} /><//>`}`;
}

export default function Screen({params}) {
	return html`<${Page} title=${w('title')}><${Events} ...${params} /><//>`;
}
