/* Search indexes of a cluster: made, watched while they are built, changed, dropped, and tried as one's own user of the database. */
import {html, call, useLoad, useLive, useCalm, useWhile, useState, useMay, Table, Card, Empty, Fault, Button, Menu, ConfirmDanger, StatePill, words, say} from './kit.js';
import {isVector, ChangeDialog, MakeDialog} from './search_forms.js';
import {Try} from './search_try.js';

const w = words('search');
const WHOLE = {'X-Steward-Whole': 'true'}, BUSY = /PENDING|BUILDING|DELETING/;
const placeOf = i => `${i.database}.${i.collectionName}`;

/* The first host speaks for all: standbys replay what the primary does. */
function State({index}) {
	const host = index.statusDetail?.[0], why = host?.stagedIndex?.message ?? host?.mainIndex?.message;
	return html`<${StatePill} state=${index.status} />${index.queryable && index.status !== 'READY' && html` <small>${w('answers')}</small>`}
		${why && html`<small class="warn">${why}</small>`}`;
}

function Indexes({list, onAsk, make}) {
	const act = (what, i, more) => ({label: w(what), onPick: () => onAsk({what, index: i}), ...more});
	const columns = [{key: 'name', label: w('name'), main: true, value: i => i.name},
		{key: 'table', label: w('table'), width: '22%', value: placeOf},
		{key: 'type', label: w('finds'), width: '14%', wide: true, value: i => i.type, cell: i => w(`finds.${isVector(i) ? 'vectorSearch' : 'search'}`)},
		{key: 'state', label: w('state'), width: '26%', value: i => i.status, cell: i => html`<${State} index=${i} />`},
		{key: 'version', label: w('version'), width: '10%', wide: true, value: i => i.latestDefinitionVersion?.version ?? 0},
		{key: 'do', label: '', width: '4rem', sort: false, cell: i => html`<${Menu} label=${w('actions', {name: i.name})} items=${[
			act('change', i, {op: 'updateClusterSearchIndex', disabled: i.status === 'DELETING'}),
			act('delete', i, {op: 'deleteClusterSearchIndex', kind: 'danger', disabled: i.status === 'DELETING'})]} />`}];
	return html`<${Table} label=${w('title')} columns=${columns} rows=${list} keyOf=${i => i.indexID}
		empty=${html`<${Empty} title=${w('none')} text=${w('noneText')} action=${make} />`} />`;
}

export default function Search({groupId, name, cluster}) {
	const [ask, setAsk] = useState(null), may = useMay();
	const {data, error, reload} = useLoad(() => call('listClusterSearchIndexes', {groupId, clusterName: name}, {headers: WHOLE}), [groupId, name], {key: `search ${groupId} ${name}`});
	const calm = useCalm(reload, 250);
	useLive(e => e.groupId === groupId && e.clusterName === name, calm);
	useWhile(data?.some(i => BUSY.test(i.status)), reload, 1500);
	if (!data)
		return html`<${Fault} error=${error} retry=${reload} />`;
	const done = text => {
		setAsk(null);
		say(text);
		reload();
	};
	const remove = async () => {
		await call('deleteClusterSearchIndex', {groupId, clusterName: name, indexId: ask.index.indexID});
		reload();
	};
	const make = html`<${Button} small=${data.length > 0} kind=${data.length ? 'plain' : 'go'} op="createClusterSearchIndex" onClick=${() => setAsk({what: 'new'})}>${w('new')}<//>`;
	const close = () => setAsk(null), shared = {groupId, name, index: ask?.index, onClose: close, onDone: done};
	return html`<div class="stack"><${Fault} error=${error} retry=${reload} />
		<${Card} flush title=${w('title')} note=${w('text')} actions=${data.length > 0 && make}>
			<${Indexes} list=${data} onAsk=${setAsk} make=${make} /><//>
		${data.length > 0 && !cluster.paused && may('listClusterSearchIndexes') && html`<${Try} groupId=${groupId} name=${name} list=${data} />`}
		${ask?.what === 'new' && html`<${MakeDialog} ...${shared} />`}${ask?.what === 'change' && html`<${ChangeDialog} ...${shared} />`}
		${ask?.what === 'delete' && html`<${ConfirmDanger} op="deleteClusterSearchIndex" title=${w('deleteTitle', {name: ask.index.name})} text=${w('deleteText')} action=${w('delete')}
			onConfirm=${remove} onClose=${close} />`}</div>`;
}
