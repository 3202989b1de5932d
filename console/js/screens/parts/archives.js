/* Online archives of a cluster: rules by which old rows leave tables for files; made, watched, paused and deleted. */
import {html, call, useLoad, useLive, useCalm, useWhile, useState, Table, Card, Empty, Fault, Button, Menu, ConfirmDanger, DialogForm, Dialog, Facts, Field, Input, Area, Select, Segments, StatePill,
	words, say, number, bytes, save} from './kit.js';

const w = words('archives');
const WHOLE = {'X-Steward-Whole': 'true'}, BUSY = /PENDING|PAUSING|DELETED/, FORMS = ['ISODATE', 'EPOCH_SECONDS', 'EPOCH_MILLIS', 'EPOCH_NANOSECONDS', 'OBJECT_ID'],
	TIMES = ['DEFAULT', 'DAILY', 'WEEKLY', 'MONTHLY'];
const placeOf = a => `${a.dbName}.${a.collName}`;
const weekday = new Intl.DateTimeFormat('en', {weekday: 'long', timeZone: 'UTC'});
const dayName = n => weekday.format(Date.UTC(2024, 0, n)); // 1 is Monday
const clock = (hour, minute) => `${String(hour).padStart(2, '0')}:${String(minute ?? 0).padStart(2, '0')}`;

const whichText = ({criteria: c}) => c.type === 'CUSTOM' ? w('byQuery', {query: c.query}) : w('olderThan', {n: c.expireAfterDays, column: c.dateField});
function whenText({schedule: s = {type: 'DEFAULT'}}) {
	const day = w(`when.${s.type}`, {day: s.type === 'WEEKLY' ? dayName(s.dayOfWeek) : s.dayOfMonth});
	return s.startHour === undefined ? day : w('between', {day, from: clock(s.startHour, s.startMinute), to: clock(s.endHour, s.endMinute)});
}
/* "files=3, rows=120000, bytes=912345" */
const heldOf = text => Object.fromEntries((text ?? '').split(', ').map(one => one.split('=')).map(([k, v]) => [k, Number(v)]));

/* What an archive has, and why it rests, is told of one alone. */
async function load(groupId, clusterName) {
	const {results} = await call('listOnlineArchives', {groupId, clusterName}, {headers: WHOLE, query: {itemsPerPage: 100}});
	return Promise.all(results.map(async a => {
		const told = await call('getOnlineArchive', {groupId, clusterName, archiveId: a._id}, {whole: true}).catch(() => null);
		return {...a, held: heldOf(told?.headers.get('x-steward-archived')), reason: told?.headers.get('x-steward-reason')};
	}));
}

const State = ({a}) => html`<${StatePill} state=${a.state} kind=${a.state === 'ORPHANED' ? 'bad' : a.state === 'DELETED' ? 'busy' : undefined} text=${w(`state.${a.state}`)} />${
	a.reason && html`<small class="warn">${a.reason}</small>`}`;

function MakeDialog({groupId, name, onClose, onDone}) {
	const [f, setF] = useState({type: 'DATE', db: 'postgres', table: '', column: '', form: 'ISODATE', query: '', when: 'DEFAULT', day: 1}), set = k => v => setF(old => ({...old, [k]: v}));
	const timed = f.when !== 'DEFAULT', [startHour, startMinute] = (f.from ?? '').split(':').map(Number), [endHour, endMinute] = (f.to ?? '').split(':').map(Number);
	const make = async () => {
		await call('createOnlineArchive', {groupId, clusterName: name}, {body: {dbName: f.db, collName: f.table,
			criteria: f.type === 'DATE' ? {type: f.type, dateField: f.column, dateFormat: f.form, expireAfterDays: f.days} : {type: f.type, query: f.query},
			...f.ends && {dataExpirationRule: {expireAfterDays: f.ends}},
			schedule: {type: f.when, ...f.when === 'WEEKLY' && {dayOfWeek: Number(f.day)}, ...f.when === 'MONTHLY' && {dayOfMonth: Number(f.day)},
				...timed && f.from && {startHour, startMinute}, ...timed && f.to && {endHour, endMinute}}}});
		onDone(w('made', {table: `${f.db}.${f.table}`}));
	};
	return html`<${DialogForm} op="createOnlineArchive" kind="wide" title=${w('new')} submit=${w('make')} onSubmit=${make} onClose=${onClose} disabled=${!f.db || !f.table || (f.type === 'DATE' ? !f.column || f.days === undefined : !f.query)}>
		<p class="dim">${w('about')}</p>
		<div class="row"><${Field} label=${w('database')} name="dbName" required><${Input} value=${f.db} onInput=${set('db')} /><//>
			<${Field} label=${w('table')} name="collName" help=${w('tableHelp')} required><${Input} value=${f.table} onInput=${set('table')} autofocus /><//></div>
		<${Segments} label=${w('which')} current=${f.type} onPick=${set('type')} options=${['DATE', 'CUSTOM'].map(id => ({id, label: w(`by.${id}`)}))} />
		${f.type === 'DATE' ? html`<div class="row"><${Field} label=${w('column')} name="criteria.dateField" required><${Input} value=${f.column} onInput=${set('column')} /><//>
			<${Field} label=${w('holds')} name="criteria.dateFormat"><${Select} value=${f.form} onInput=${set('form')} options=${FORMS.map(value => ({value, label: w(`form.${value}`)}))} /><//>
			<${Field} label=${w('days')} name="criteria.expireAfterDays" required><${Input} type="number" min="0" max="36500" value=${f.days} onInput=${set('days')} /><//></div>` :
		html`<${Field} label=${w('query')} name="criteria.query" help=${w('queryHelp')}><${Area} mono value=${f.query} onInput=${set('query')} /><//>`}
		<div class="row"><${Field} label=${w('moves')} name="schedule.type"><${Select} value=${f.when} onInput=${set('when')} options=${TIMES.map(value => ({value, label: w(`every.${value}`)}))} /><//>
			${f.when === 'WEEKLY' && html`<${Field} label=${w('day')} name="schedule.dayOfWeek"><${Select} value=${f.day} onInput=${set('day')} options=${Array.from({length: 7}, (_, i) => ({value: i + 1, label: dayName(i + 1)}))} /><//>`}
			${f.when === 'MONTHLY' && html`<${Field} label=${w('day')} name="schedule.dayOfMonth"><${Input} type="number" min="1" max="31" value=${f.day} onInput=${set('day')} /><//>`}
			${timed && html`<${Field} label=${w('from')} hint=${w('optional')} name="schedule.startHour"><${Input} type="time" value=${f.from} onInput=${set('from')} /><//>
				<${Field} label=${w('to')} hint=${w('optional')} name="schedule.endHour"><${Input} type="time" value=${f.to} onInput=${set('to')} /><//>`}</div>
		<${Field} label=${w('ends')} hint=${w('optional')} name="dataExpirationRule.expireAfterDays" help=${w('endsHelp')}><${Input} type="number" min="7" max="9215" value=${f.ends} onInput=${set('ends')} /><//><//>`;
}

function One({a, onClose}) {
	return html`<${Dialog} title=${placeOf(a)} onClose=${onClose}><${Facts} items=${[[w('state'), html`<${State} a=${a} />`], [w('which'), whichText(a)], [w('moves'), whenText(a)],
		[w('ends'), a.dataExpirationRule?.expireAfterDays], [w('sorted'), a.partitionFields?.map(f => f.fieldName).join(', ')],
		[w('rows'), number(a.held.rows)], [w('files'), number(a.held.files)], [w('size'), bytes(a.held.bytes)]]} /><//>`;
}

export default function Archives({groupId, name}) {
	const [ask, setAsk] = useState(null), at = {groupId, clusterName: name};
	const {data, error, reload} = useLoad(() => load(groupId, name), [groupId, name], {key: `archives ${groupId} ${name}`});
	const calm = useCalm(reload, 250);
	useLive(e => e.groupId === groupId && /ARCHIVE/.test(e.eventTypeName), calm);
	/* Rows that move tell nobody. */
	useWhile(data?.length, reload, data?.some(a => BUSY.test(a.state)) ? 1500 : 20000);
	if (!data)
		return html`<${Fault} error=${error} retry=${reload} />`;
	const close = () => setAsk(null), shown = ask && data.find(a => a._id === ask.id);
	const done = text => {
		close();
		say(text);
		reload();
	};
	const change = async (op, a, body, text) => {
		await call(op, {...at, archiveId: a._id}, {body});
		say(w(text, {table: placeOf(a)}));
		reload();
	};
	const turn = a => change('updateOnlineArchive', a, {paused: !a.paused}, a.paused ? 'resumed' : 'paused').catch(e => say(e.message));
	const log = async () => save(await call('downloadQueryLogs', at, {form: 'gzip'}), `${name}-archives.jsonl.gz`);
	const make = html`<${Button} small=${data.length > 0} kind=${data.length ? 'plain' : 'go'} op="createOnlineArchive" onClick=${() => setAsk({what: 'new'})}>${w('new')}<//>`;
	const columns = [{key: 'table', label: w('table'), main: true, value: placeOf}, {key: 'which', label: w('which'), width: '26%', value: whichText},
		{key: 'when', label: w('moves'), width: '16%', wide: true, value: whenText}, {key: 'state', label: w('state'), width: '16%', value: a => a.state, cell: a => html`<${State} a=${a} />`},
		{key: 'held', label: w('held'), width: '16%', value: a => a.held.rows ?? 0, cell: a => html`${w('rowsOf', {n: a.held.rows ?? 0})}<small>${bytes(a.held.bytes)}</small>`},
		{key: 'do', label: '', width: '4rem', sort: false, cell: a => html`<${Menu} label=${w('actions', {table: placeOf(a)})} items=${a.state !== 'DELETED' && [
			{label: w(a.paused ? 'resume' : 'pause'), op: 'updateOnlineArchive', onPick: () => turn(a)},
			{label: w('delete'), op: 'deleteOnlineArchive', kind: 'danger', onPick: () => setAsk({what: 'delete', id: a._id})}] || []} />`}];
	return html`<div class="stack"><${Fault} error=${error} retry=${reload} />
		<${Card} flush title=${w('title')} note=${w('text')} actions=${data.length > 0 && html`<${Button} small op="downloadQueryLogs" onClick=${() => log().catch(e => say(e.message))}>${w('log')}<//> ${make}`}>
			<${Table} label=${w('title')} columns=${columns} rows=${data} keyOf=${a => a._id} onOpen=${a => setAsk({what: 'open', id: a._id})}
				empty=${html`<${Empty} title=${w('none')} text=${w('noneText')} action=${make} />`} /><//>
		${ask?.what === 'new' && html`<${MakeDialog} groupId=${groupId} name=${name} onClose=${close} onDone=${done} />`}
		${ask?.what === 'open' && shown && html`<${One} a=${shown} onClose=${close} />`}
		${ask?.what === 'delete' && shown && html`<${ConfirmDanger} op="deleteOnlineArchive" title=${w('deleteTitle', {table: placeOf(shown)})} text=${w('deleteText', {n: shown.held.rows ?? 0})} name=${placeOf(shown)}
			action=${w('delete')} onConfirm=${() => change('deleteOnlineArchive', shown, undefined, 'deleted')} onClose=${close} />`}</div>`;
}
