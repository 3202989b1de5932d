/* What would make a cluster faster: indexes that help, indexes that nobody uses, what stands out in schemas. */
import {html, call, useLoad, useState, Table, Card, Empty, Fault, Notice, Button, DialogForm, Copy, words, number, bytes, say, errorText, t} from './kit.js';

const w = words('advice');
const columnsOf = index => (index ?? []).map(o => Object.keys(o)[0]);
/* Names come from databases, and lines are pasted into terminals: a name is always one word of SQL. */
const ident = name => `"${name.replace(/"/g, '""')}"`;
const schemaOf = ns => ns.split('.').length > 2 ? ns.split('.')[1] : 'public';
const tableOf = ns => `${ident(schemaOf(ns))}.${ident(ns.split('.').at(-1))}`;
/* None is offered where the parts cannot be told apart, or a terminal would act on a character. */
const isPlain = i => i.namespace.split('.').length <= 3 && !/[\p{Cc}\p{Cf}]/u.test([i.namespace, i.name, ...columnsOf(i.index)].join(''));
const createSql = i => `create index concurrently on ${tableOf(i.namespace)} (${columnsOf(i.index).map(ident).join(', ')});`;
const dropSql = i => `drop index concurrently ${ident(schemaOf(i.namespace))}.${ident(i.name)};`;

function build(groupId, name, i) {
	const [db, ...rest] = i.namespace.split('.');
	/* Suggested as numbers, built by texts. */
	const keys = i.index.map(key => Object.fromEntries(Object.entries(key).map(([column, order]) => [column, String(order)])));
	return call('createRollingIndex', {groupId, clusterName: name}, {body: {db, collection: rest.join('.'), keys}});
}

function Suggested({groupId, name, list}) {
	const [ask, setAsk] = useState(null);
	const make = async () => {
		await build(groupId, name, ask);
		setAsk(null);
		say(w('building'));
	};
	const columns = [{key: 'table', label: w('table'), width: '18%', value: i => i.namespace},
		{key: 'index', label: w('index'), main: true, value: i => columnsOf(i.index).join(', '),
		cell: i => html`<code class="mono">${createSql(i)}</code>`},
		{key: 'gain', label: w('gain'), width: '12%', value: i => i.weight, cell: i => w('less', {n: Math.round(i.weight)})},
		{key: 'do', label: '', width: '12rem', sort: false, cell: i =>
			html`<span class="acts">${isPlain(i) && html`<${Copy} bare text=${createSql(i)} label=${i.namespace} />`}<${Button} small op="createRollingIndex"
			onClick=${() => setAsk(i)}>${w('build')}<//></span>`}];
	return html`<${Card} flush title=${w('suggested')} note=${w('suggestedText')}><${Table} label=${w('suggested')} columns=${columns} rows=${list}
		sort=${['gain', -1]} empty=${html`<${Empty} title=${w('noneNeeded')} text=${w('noneNeededText')} />`} /><//>
		${ask && html`<${DialogForm} op="createRollingIndex" title=${w('buildTitle')} submit=${w('build')} onClose=${() => setAsk(null)} onSubmit=${make}><p
			class="mono">${createSql(ask)}</p><p class="dim">${w('buildText')}</p><//>`}`;
}

function Drop({list}) {
	if (!list.length)
		return null;
	const columns = [{key: 'name', label: w('index'), main: true, value: i => i.name},
		{key: 'table', label: w('table'), width: '22%', value: i => i.namespace},
		{key: 'why', label: w('why'), width: '16%', value: i => i.why, cell: i => w(`why.${i.why}`)},
		{key: 'size', label: w('size'), width: '10%', value: i => i.sizeBytes, cell: i => bytes(i.sizeBytes)},
			{key: 'used', label: w('used'), width: '10%', wide: true, value: i => i.accessCount, cell: i => number(i.accessCount ?? 0)},
		{key: 'do', label: '', width: '6rem', sort: false, cell: i =>
			isPlain(i) && html`<${Copy} bare text=${dropSql(i)} label=${i.name} />`}];
	return html`<${Card} flush title=${w('drop')} note=${w('dropText')}><${Table} label=${w('drop')} columns=${columns} rows=${list}
		keyOf=${i => `${i.namespace}.${i.name}`} /><//>`;
}

export default function Advice({groupId, name}) {
	const {data, error, reload} = useLoad(async () => {
		/* What one kind of advice lacks does not hide the others. */
		const faults = new Set(), lacks = new Set();
		const ask = async id => {
			try {
				const {body, headers} = await call(id, {groupId, clusterName: name}, {whole: true});
				if (headers.get('x-steward-missing'))
					lacks.add(headers.get('x-steward-missing'));
				return body?.content ?? {};
			} catch (e) {
				faults.add(errorText(e));
				return {};
			}
		};
		const [suggested, drop, schema] = await Promise.all(['listClusterSuggestedIndexes', 'listDropIndexSuggestions', 'listSchemaAdvice'].map(ask));
		const why = (list, word) => (list ?? []).map(i => ({...i, why: word}));
		return {faults: [...faults], lacks: [...lacks], suggested: suggested.suggestedIndexes, drop: [...why(drop.unusedIndexes, 'unused'), ...why(drop.redundantIndexes, 'redundant'),
			...why(drop.hiddenIndexes, 'hidden')], schema: schema.recommendations ?? []};
	}, [groupId, name], {key: `advice ${groupId} ${name}`});
	if (!data)
		return html`<${Fault} error=${error} retry=${reload} />`;
	return html`<div class="stack">${data.faults.map(text => html`<${Notice} key=${text} kind="bad"
		action=${html`<${Button} small onClick=${reload}>${t('again')}<//>`}>${text}<//>`)}
		${data.lacks.map(text => html`<${Notice} key=${text} kind="warn" title=${w('lacks')}>${text}<//>`)}
		${data.suggested && html`<${Suggested} groupId=${groupId} name=${name} list=${data.suggested} />`}<${Drop} list=${data.drop} />
		${data.schema.length > 0 && html`<${Card} title=${w('schema')}><ul
			class="bullets">${data.schema.map(r => html`<li key=${r.recommendation}><b>${r.description}</b>
			${(r.affectedNamespaces ?? []).map(n => html`<small key=${n.namespace}>${n.namespace}: ${(n.triggers ?? []).map(x =>
				x.description).join(' ')}</small>`)}</li>`)}</ul><//>`}</div>`;
}
