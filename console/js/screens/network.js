/* From where the databases of a project may be reached. */
import {
	html, call, callAll, useState, useLoad, useLive, useCalm, useQuery, setQuery, Page, Table, Empty, Fault, Button, DialogForm, ConfirmDanger, Field,
		Input, Select, Search, Notice, Time, say, sayUndo, words
} from './parts/kit.js';
import {whoAmI, covers, letIn} from './parts/access.js';

const w = words('network');
const valueOf = e => e.cidrBlock ?? e.ipAddress ?? e.awsSecurityGroup;
const open = e => /\/0$/.test(e.cidrBlock ?? '');

function AddDialog({groupId, onClose, onDone}) {
	const [value, setValue] = useState(''), [comment, setComment] = useState(''), [hours, setHours] = useState('');
	const wide = /\/0$/.test(value.trim());
	const add = async () => {
		const text = value.trim(), kind = text.startsWith('sg-') ? 'awsSecurityGroup' : text.includes('/') ? 'cidrBlock' : 'ipAddress';
		try {
			await call('createAccessListEntry', {groupId}, {body: [{[kind]: text, ...(comment && {comment}),
				...(hours && {deleteAfterDate: new Date(Date.now() + hours * 3600e3).toISOString()})}]});
		} catch (e) {
			/* However the value was understood, its fault stands at the one field. */
			if (e.status && e.code !== 'INSUFFICIENT_ROLE')
				e.fields = {value: Object.values(e.fields)[0] ?? e.detail};
			throw e;
		}
		onDone(text);
	};
	return html`<${DialogForm} op="createAccessListEntry" title=${w('addTitle')} submit=${w('add')} onSubmit=${add} onClose=${onClose}>
		<${Field} label=${w('value')} name="value" help=${w('valueHelp')} required><${Input} mono value=${value} onInput=${setValue} autofocus /><//>
		${wide && html`<${Notice} kind="warn">${w('world')}<//>`}
		<${Field} label=${w('comment')} name="comment" hint=${w('optional')}><${Input} value=${comment} onInput=${setComment} maxlength="80" /><//>
		<${Field} label=${w('until')} name="deleteAfterDate"><${Select} value=${hours} onInput=${setHours} empty=${w('forGood')}
			options=${[['1', 'hour'], ['24', 'day'], ['168', 'week']].map(([v, k]) => ({value: v, label: w(`for.${k}`)}))} /><//><//>`;
}

function Mine({groupId, entries, me, reload}) {
	if (!me?.address)
		return null;
	const covered = entries.some(e => covers(e, me.address));
	const add = async () => {
		await letIn(groupId, me.address, {comment: w('mine')});
		say(w('added', {value: me.address}));
		reload();
	};
	return html`<${Notice} kind=${covered ? 'ok' : 'info'} action=${!covered &&
		html`<${Button} op="createAccessListEntry" small kind="go" onClick=${add}>${w('addMine')}<//>`}>${w(covered ? 'covered' : 'notCovered', {address: me.address})}<//>`;
}

export default function Screen({params: {groupId}}) {
	const [asked] = useQuery('do'), [q] = useQuery('q'), [doomed, setDoomed] = useState(null);
	const {data, error, reload} = useLoad(async () => {
		const [entries, me] = await Promise.all([callAll('listAccessListEntries', {groupId}), whoAmI(groupId).catch(() => null)]);
		return {entries, me};
	}, [groupId], {key: `network ${groupId}`});
	const calm = useCalm(reload);
	useLive({groupId}, calm);
	const close = () => setQuery({do: ''});
	const remove = async () => {
		const {groupId: _, links, ...entry} = doomed;
		await call('deleteAccessListEntry', {groupId, entryValue: valueOf(doomed)});
		reload();
		sayUndo(w('removed', {value: valueOf(doomed)}), async () => {
			if (entry.cidrBlock)
				delete entry.ipAddress;
			await call('createAccessListEntry', {groupId}, {body: [entry]});
			reload();
		});
	};
	const columns = [{key: 'value', label: w('value'), main: true, value: valueOf,
		cell: e => html`<span class="mono">${valueOf(e)}</span> ${open(e) && html`<span class="warn">${w('everywhere')}</span>`}`},
		{key: 'comment', label: w('comment'), width: '32%', value: e => e.comment},
		{key: 'until', label: w('ends'), width: '16%', value: e => e.deleteAfterDate ?? '',
			cell: e => e.deleteAfterDate ? html`<${Time} at=${e.deleteAfterDate} kind="ago" />` : html`<span class="dim">${w('never')}</span>`},
		{key: 'do', label: '', width: '7rem', sort: false, cell: e =>
			html`<${Button} op="deleteAccessListEntry" small kind="danger" aria-label=${w('removeOf', {value: valueOf(e)})} onClick=${() => setDoomed(e)}>${w('remove')}<//>`}];
	const rows = data?.entries.filter(e => `${valueOf(e)} ${e.comment ?? ''}`.toLowerCase().includes(q.toLowerCase()));
	const make = html`<${Button} op="createAccessListEntry" kind="go" icon="plus" onClick=${() => setQuery({do: 'add'})}>${w('addTitle')}<//>`;
	return html`<${Page} title=${w('title')} needs="createAccessListEntry" actions=${make}><${Fault} error=${error} retry=${reload} />
		${data && html`<${Mine} groupId=${groupId} entries=${data.entries} me=${data.me} reload=${reload} />`}
		<section class="card" aria-label=${w('entries')}>${data?.entries.length > 8 &&
			html`<div class="bar"><${Search} label=${w('find')} value=${q} onInput=${v => setQuery({q: v})} /></div>`}
			<${Table} label=${w('entries')} columns=${columns} rows=${rows} failed=${error} keyOf=${valueOf}
				empty=${html`<${Empty} title=${w('none')} text=${w('noneText')} action=${make} />`} /></section>
		${asked === 'add' && html`<${AddDialog} groupId=${groupId} onClose=${close}
			onDone=${value => { close(); say(w('added', {value})); reload(); }} />`}
		${doomed && html`<${ConfirmDanger} title=${w('removeTitle', {value: valueOf(doomed)})} text=${w('removeText')} action=${w('remove')}
			onConfirm=${remove} onClose=${() => setDoomed(null)} />`}<//>`;
}
