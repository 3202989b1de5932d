/* What a search index is: the dialogs in which one is made or changed. Words are defined in JSON, as the reference has them, vectors by fields. */
import {html, call, useState, DialogForm, Field, FaultsOf, Input, Area, Segments, Select, words} from './kit.js';

const w = words('search');
const FIRST = JSON.stringify({mappings: {dynamic: true}}, null, 2), SIMILAR = ['cosine', 'euclidean', 'dotProduct'];
const VECTOR = {type: 'vector', path: '', numDimensions: undefined, similarity: 'cosine'};
export const TYPES = ['search', 'vectorSearch'];
export const isVector = index => index.type === 'vectorSearch';
export const vectorOf = definition => definition?.fields?.find(f => f.type === 'vector');

/* What was written, where it is JSON; else a fault of the field. */
export function parsed(text, name) {
	try {
		return JSON.parse(text);
	} catch (e) {
		throw Object.assign(new Error(w('noJson', {why: e.message})), {fields: {[name]: w('noJson', {why: e.message})}});
	}
}

/* What the form holds of a definition, of which the rest stays as it is. */
const written = (definition = {fields: [VECTOR]}) => ({definition: JSON.stringify(definition, null, 2), vector: vectorOf(definition) ?? VECTOR,
	filters: (definition.fields ?? []).filter(f => f.type === 'filter').map(f => f.path).join(', ')});
const definitionOf = (type, f, before) => type === 'search' ? parsed(f.definition, 'definition') :
	{...before, fields: [f.vector, ...f.filters.split(',').map(path => path.trim()).filter(Boolean).map(path => ({type: 'filter', path}))]};

/* Faults stand at paths within the definition: those of words are one field here, and so are those of all filters. */
async function atDefinition(type, promise) {
	try {
		return await promise;
	} catch (e) {
		const under = new RegExp(type === 'search' ? '^definition' : '^definition\\.fields\\[[1-9]'), name = type === 'search' ? 'definition' : 'filters';
		const inside = Object.entries(e.fields ?? {}).filter(([path]) => under.test(path));
		if (inside.length)
			e.fields = {...Object.fromEntries(Object.entries(e.fields).filter(([path]) => !under.test(path))),
				[name]: inside.map(([path, text]) => type === 'search' ? `${path}: ${text}` : text).join('; ')};
		throw e;
	}
}

const Words = ({f, set}) => html`<${Field} label=${w('definition')} name="definition" help=${w('definitionHelp')}><${Area} mono rows=${14}
	value=${f.definition} onInput=${set('definition')} /><//>`;

function Vectors({f, set}) {
	const of = key => v => set('vector')({...f.vector, [key]: v});
	return html`<div class="row"><${Field} label=${w('column')} name="definition.fields[0].path" help=${w('columnHelp')} required><${Input}
			value=${f.vector.path} onInput=${of('path')} /><//>
		<${Field} label=${w('dimensions')} name="definition.fields[0].numDimensions" help=${w('dimensionsHelp')} required><${Input} type="number" min="1" max="8192"
			value=${f.vector.numDimensions} onInput=${of('numDimensions')} /><//>
		<${Field} label=${w('similarity')} name="definition.fields[0].similarity"><${Select} value=${f.vector.similarity} onInput=${of('similarity')}
			options=${SIMILAR.map(value => ({value, label: w(`similarity.${value}`)}))} /><//></div>
		<${Field} label=${w('filters')} hint=${w('optional')} name="filters" help=${w('filtersHelp')}><${Input} value=${f.filters} onInput=${set('filters')} /><//>
		<${FaultsOf} names=${['definition.fields', 'definition']} />`;
}

const isWhole = (type, f) => type === 'search' || Boolean(f.vector.path && f.vector.numDimensions);

export function MakeDialog({groupId, name, onClose, onDone}) {
	const [f, setF] = useState({type: 'search', name: '', database: 'postgres', collectionName: '', ...written(), definition: FIRST}), set = k => v => setF(old => ({...old, [k]: v}));
	const make = async () => {
		const body = {name: f.name, database: f.database, collectionName: f.collectionName, type: f.type, definition: definitionOf(f.type, f)};
		await atDefinition(f.type, call('createClusterSearchIndex', {groupId, clusterName: name}, {body}));
		onDone(w('made', {name: f.name}));
	};
	return html`<${DialogForm} op="createClusterSearchIndex" kind="wide" title=${w('new')} submit=${w('make')} onSubmit=${make} onClose=${onClose}
		disabled=${!f.name || !f.database || !f.collectionName || !isWhole(f.type, f)}>
		<div><${Segments} label=${w('finds')} current=${f.type} onPick=${set('type')} options=${TYPES.map(id => ({id, label: w(`finds.${id}`)}))} />
			<p class="help">${w(`about.${f.type}`)}</p></div>
		<div class="row"><${Field} label=${w('name')} name="name" required><${Input} value=${f.name} onInput=${set('name')} autofocus /><//>
			<${Field} label=${w('database')} name="database" required><${Input} value=${f.database} onInput=${set('database')} /><//>
			<${Field} label=${w('table')} name="collectionName" help=${w('tableHelp')} required><${Input} value=${f.collectionName} onInput=${set('collectionName')} /><//></div>
		${f.type === 'search' ? html`<${Words} f=${f} set=${set} />` : html`<${Vectors} f=${f} set=${set} />`}<//>`;
}

export function ChangeDialog({groupId, name, index, onClose, onDone}) {
	const before = index.latestDefinition, type = isVector(index) ? 'vectorSearch' : 'search';
	const [f, setF] = useState(() => written(before)), set = k => v => setF(old => ({...old, [k]: v}));
	const change = async () => {
		const body = {definition: definitionOf(type, f, before)};
		await atDefinition(type, call('updateClusterSearchIndex', {groupId, clusterName: name, indexId: index.indexID}, {body}));
		onDone(w('changed', {name: index.name}));
	};
	return html`<${DialogForm} op="updateClusterSearchIndex" kind="wide" title=${w('changeTitle', {name: index.name})} submit=${w('change')} onSubmit=${change} onClose=${onClose}
		disabled=${!isWhole(type, f)}><p class="dim">${w('changeText')}</p>
		${type === 'search' ? html`<${Words} f=${f} set=${set} />` : html`<${Vectors} f=${f} set=${set} />`}<//>`;
}
