/* A search index, tried: a statement that anybody could send, run as one's own user of the database. */
import {html, send, useQuery, setQuery, useState, Card, Form, Field, Input, Area, Select, Notice, words} from './kit.js';
import {isVector, parsed, vectorOf} from './search_forms.js';
import {Answer, Login, useLogin} from './sql.js';

const w = words('search');
const SHOWN = 20, SCORE = 'round(score::numeric, 4) as score';
const literal = text => `E'${text.replace(/[\\']/g, c => c + c)}'`;
const ident = name => `"${name.replace(/"/g, '""')}"`;
const nameOf = index => literal(`${index.collectionName}.${index.name}`);
const labelOf = i => `${i.database}.${i.collectionName}: ${i.name}`;

/* Words are looked for in all fields of words; what begins with a brace is a query as it is. */
const queryOf = text => text.trim().startsWith('{') ? parsed(text, 'words') : {text: {query: text, path: {wildcard: '*'}}};
const wordsStatement = (index, f) => `select ${SCORE}, document from steward_search.query(${nameOf(index)}, ${literal(JSON.stringify(queryOf(f.words)))}, '{"limit": ${SHOWN}}')`;

/* Numbers, in brackets or without, or a question whose answer is the vector. */
function vectorText(text) {
	if (/^\s*(select|with|table|values)\b/i.test(text))
		return `(${text.trim().replace(/;\s*$/, '')})`;
	const numbers = text.trim().replace(/^[[{]|[\]}]$/g, '').split(',').map(n => n.trim());
	if (numbers.some(n => n === '' || !Number.isFinite(Number(n))))
		throw Object.assign(new Error(w('noVector')), {fields: {vector: w('noVector')}});
	return `${literal(`{${numbers.join(',')}}`)}::real[]`;
}

/* The vector itself is no part of what is shown: it may have thousands of numbers. */
function vectorStatement(index, f) {
	const options = {limit: SHOWN, ...f.filter.trim() && {filter: parsed(f.filter, 'filter')}};
	return `select ${SCORE}, document - ${literal(vectorOf(index.latestDefinition).path)} as document
from steward_search.vector(${nameOf(index)}, ${vectorText(f.vector)}, ${literal(JSON.stringify(options))})`;
}

/* To begin with: what is near the first row. */
const firstVector = index => {
	const column = ident(vectorOf(index.latestDefinition)?.path ?? ''), table = index.collectionName.split('.').map(ident).join('.');
	return `select ${column} from ${table} where ${column} is not null limit 1`;
};
const fresh = index => ({words: '', vector: isVector(index) ? firstVector(index) : '', filter: ''});

const ForWords = ({f, set}) => html`<${Field} label=${w('words')} name="words" help=${w('wordsHelp')}><${Input} value=${f.words} onInput=${set('words')} /><//>`;
const ForVectors = ({f, set}) => html`<${Field} label=${w('vector')} name="vector" help=${w('vectorHelp')}><${Area} mono rows=${3} value=${f.vector} onInput=${set('vector')} /><//>
	<${Field} label=${w('filter')} hint=${w('optional')} name="filter" help=${w('filterHelp')}><${Input} mono value=${f.filter} onInput=${set('filter')} /><//>`;

export function Try({groupId, name, list}) {
	const [chosen] = useQuery('index'), index = list.find(i => i.indexID === chosen) ?? list[0], login = useLogin(groupId, name);
	const [asked, setAsked] = useState({}), [answer, setAnswer] = useState(null);
	const f = asked[index.indexID] ?? fresh(index), set = k => v => setAsked(old => ({...old, [index.indexID]: {...f, [k]: v}}));
	const run = async () => {
		const statement = isVector(index) ? vectorStatement(index, f) : wordsStatement(index, f);
		setAnswer(null);
		setAnswer(await send('POST', '/api/session/sql', {groupId, clusterName: name, username: login.f.username, password: login.f.password, database: index.database, statement, write: false}));
	};
	return html`<${Card} class="try" title=${w('try')} note=${w('tryText')}><${Form} label=${w('try')} onSubmit=${run} submit=${w('find')}
		disabled=${!f[isVector(index) ? 'vector' : 'words'].trim() || !login.f.username || !login.f.password}>
		<div class="row"><${Field} label=${w('index')} name="index"><${Select} value=${index.indexID} onInput=${v => { setAnswer(null); setQuery({index: v}); }}
			options=${list.map(i => ({value: i.indexID, label: labelOf(i)}))} /><//><${Login} login=${login} /></div>
		${isVector(index) ? html`<${ForVectors} f=${f} set=${set} />` : html`<${ForWords} f=${f} set=${set} />`}<//>
		${!index.queryable && html`<${Notice} kind="warn">${w('notYet')}<//>`}
		${answer && html`<div class="after-form"><${Answer} answer=${answer} /></div>`}<//>`;
}
