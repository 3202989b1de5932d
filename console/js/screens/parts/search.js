/* Search indexes of a cluster: made, watched while they are built, changed, dropped, and tried as one's own user of the database. */
import {html, call, send, useLoad, useLive, useCalm, useWhile, useQuery, setQuery, useState, useMay, Table, Card, Empty, Fault, Notice, Button, Menu, DialogForm, ConfirmDanger,
	Form, Field, Input, Area, Select, Segments, StatePill, words, say} from './kit.js';
import {Answer, Login, useLogin} from './sql.js';

const w = words('search');
const WHOLE = {'X-Steward-Whole': 'true'}, FIRST = JSON.stringify({mappings: {dynamic: true}}, null, 2);
const BUSY = /PENDING|BUILDING|DELETING/, SHOWN = 20;
const literal = text => `E'${text.replace(/[\\']/g, c => c + c)}'`;
const placeOf = i => `${i.database}.${i.collectionName}`;

/* What was written, where it is an object; else a fault of the field. */
function parsed(text, name) {
	try {
		return JSON.parse(text);
	} catch (e) {
		throw Object.assign(new Error(w('noJson', {why: e.message})), {fields: {[name]: w('noJson', {why: e.message})}});
	}
}

/* Faults stand at paths within the definition, which is one field here. */
async function atDefinition(promise) {
	try {
		return await promise;
	} catch (e) {
		const inside = Object.entries(e.fields ?? {}).filter(([path]) => path.startsWith('definition'));
		if (inside.length)
			e.fields = {...e.fields, definition: inside.map(([path, text]) => `${path}: ${text}`).join('; ')};
		throw e;
	}
}

function Definition({value, onInput}) {
	return html`<${Field} label=${w('definition')} name="definition" help=${w('definitionHelp')}><${Area} mono rows=${14} value=${value} onInput=${onInput} /><//>`;
}

function MakeDialog({groupId, name, onClose, onDone}) {
	const [f, setF] = useState({name: '', database: 'postgres', collectionName: '', definition: FIRST}), set = k => v => setF({...f, [k]: v});
	const make = async () => {
		const body = {name: f.name, database: f.database, collectionName: f.collectionName, type: 'search', definition: parsed(f.definition, 'definition')};
		await atDefinition(call('createClusterSearchIndex', {groupId, clusterName: name}, {body}));
		onDone(w('made', {name: f.name}));
	};
	return html`<${DialogForm} op="createClusterSearchIndex" kind="wide" title=${w('new')} submit=${w('make')} onSubmit=${make} onClose=${onClose}
		disabled=${!f.name || !f.database || !f.collectionName}>
		<div class="row"><${Field} label=${w('name')} name="name" required><${Input} value=${f.name} onInput=${set('name')} autofocus /><//>
			<${Field} label=${w('database')} name="database" required><${Input} value=${f.database} onInput=${set('database')} /><//>
			<${Field} label=${w('table')} name="collectionName" help=${w('tableHelp')} required><${Input} value=${f.collectionName} onInput=${set('collectionName')} /><//></div>
		<${Definition} value=${f.definition} onInput=${set('definition')} /><//>`;
}

function ChangeDialog({groupId, name, index, onClose, onDone}) {
	const [definition, setDefinition] = useState(JSON.stringify(index.latestDefinition, null, 2));
	const change = async () => {
		const body = {definition: parsed(definition, 'definition')};
		await atDefinition(call('updateClusterSearchIndex', {groupId, clusterName: name, indexId: index.indexID}, {body}));
		onDone(w('changed', {name: index.name}));
	};
	return html`<${DialogForm} op="updateClusterSearchIndex" kind="wide" title=${w('changeTitle', {name: index.name})} submit=${w('change')} onSubmit=${change} onClose=${onClose}>
		<p class="dim">${w('changeText')}</p><${Definition} value=${definition} onInput=${setDefinition} /><//>`;
}

/* The first host speaks for all: standbys replay what the primary does. */
function State({index}) {
	const host = index.statusDetail?.[0], why = host?.stagedIndex?.message ?? host?.mainIndex?.message;
	return html`<${StatePill} state=${index.status} />${index.queryable && index.status !== 'READY' && html` <small>${w('answers')}</small>`}
		${why && html`<small class="warn">${why}</small>`}`;
}

/* Words are looked for in all fields of words; what begins with a brace is a query as it is. */
export const queryOf = text => text.trim().startsWith('{') ? parsed(text, 'words') : {text: {query: text, path: {wildcard: '*'}}};
const statementOf = (index, text) =>
	`select score, document from steward_search.query(${literal(`${index.collectionName}.${index.name}`)}, ${literal(JSON.stringify(queryOf(text)))}, '{"limit": ${SHOWN}}')`;

function Try({groupId, name, list}) {
	const [chosen] = useQuery('index'), index = list.find(i => i.indexID === chosen) ?? list[0];
	const login = useLogin(groupId, name), [text, setText] = useState(''), [answer, setAnswer] = useState(null);
	const run = async () => {
		const statement = statementOf(index, text);
		setAnswer(null);
		setAnswer(await send('POST', '/api/session/sql', {groupId, clusterName: name, username: login.f.username, password: login.f.password, database: index.database, statement, write: false}));
	};
	return html`<${Card} title=${w('try')} note=${w('tryText')}><${Form} label=${w('try')} onSubmit=${run} submit=${w('find')} disabled=${!text.trim() || !login.f.username || !login.f.password}>
		<div class="row"><${Field} label=${w('index')} name="index"><${Select} value=${index.indexID} onInput=${v => setQuery({index: v})}
			options=${list.map(i => ({value: i.indexID, label: `${placeOf(i)}: ${i.name}`}))} /><//><${Login} login=${login} /></div>
		<${Field} label=${w('words')} name="words" help=${w('wordsHelp')}><${Input} value=${text} onInput=${setText} /><//><//>
		${!index.queryable && html`<${Notice} kind="warn">${w('notYet')}<//>`}
		${answer && html`<${Answer} answer=${answer} />`}<//>`;
}

function Indexes({list, onAsk}) {
	const act = (what, i, more) => ({label: w(what), onPick: () => onAsk({what, index: i}), ...more});
	const columns = [{key: 'name', label: w('name'), main: true, value: i => i.name},
		{key: 'table', label: w('table'), width: '26%', value: placeOf},
		{key: 'state', label: w('state'), width: '30%', value: i => i.status, cell: i => html`<${State} index=${i} />`},
		{key: 'version', label: w('version'), width: '10%', wide: true, value: i => i.latestDefinitionVersion?.version ?? 0},
		{key: 'do', label: '', width: '4rem', sort: false, cell: i => html`<${Menu} label=${w('actions', {name: i.name})} items=${[
			act('change', i, {op: 'updateClusterSearchIndex', disabled: i.status === 'DELETING'}),
			act('delete', i, {op: 'deleteClusterSearchIndex', kind: 'danger', disabled: i.status === 'DELETING'})]} />`}];
	return html`<${Table} label=${w('title')} columns=${columns} rows=${list} keyOf=${i => i.indexID}
		empty=${html`<${Empty} title=${w('none')} text=${w('noneText')} />`} />`;
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
	const close = () => setAsk(null), shared = {groupId, name, index: ask?.index, onClose: close, onDone: done};
	return html`<div class="stack"><${Fault} error=${error} retry=${reload} />
		<${Card} flush title=${w('title')} note=${w('text')} actions=${html`<${Button} small op="createClusterSearchIndex" onClick=${() => setAsk({what: 'new'})}>${w('new')}<//>`}>
			<${Indexes} list=${data} onAsk=${setAsk} /><//>
		${data.length > 0 && !cluster.paused && may('listClusterSearchIndexes') && html`<${Try} groupId=${groupId} name=${name} list=${data} />`}
		${ask?.what === 'new' && html`<${MakeDialog} ...${shared} />`}${ask?.what === 'change' && html`<${ChangeDialog} ...${shared} />`}
		${ask?.what === 'delete' && html`<${ConfirmDanger} op="deleteClusterSearchIndex" title=${w('deleteTitle', {name: ask.index.name})} text=${w('deleteText')} action=${w('delete')}
			onConfirm=${remove} onClose=${close} />`}</div>`;
}
