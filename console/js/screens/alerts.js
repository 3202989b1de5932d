/* What is wrong now, what a project wants to be told of, and what each rule would have told of. */
import {
	html, call, callAll, useState, useLoad, useLive, useCalm, useQuery, setQuery, Page, Tabs, Table, Empty, Fault, Button, Menu, StatePill, Time,
		Dialog, DialogForm, ConfirmDanger, Field, Input, Select, Segments, Notice, say, sayUndo,
	words, number
} from './parts/kit.js';
import {eventWords} from './parts/events.js';
import {RuleDialog, metricWords, ruleText, toldText} from './parts/alert_rule.js';

const w = words('alerts');
const isOpen = a => a.status === 'OPEN' || a.status === 'TRACKING';
const aboutOf = a => a.clusterName ?? a.hostnameAndPort ?? a.replicaSetName ?? '';

function AcknowledgeDialog({groupId, alert, onClose, onDone}) {
	const [hours, setHours] = useState('4'), [comment, setComment] = useState('');
	const store = async () => {
		await call('acknowledgeAlert', {groupId, alertId: alert.id},
			{body: {acknowledgedUntil: new Date(Date.now() + hours * 3600e3).toISOString(), ...(comment && {acknowledgementComment: comment})}});
		onDone(w('acknowledged'));
	};
	return html`<${DialogForm} op="acknowledgeAlert" title=${w('ackTitle')} submit=${w('ack')} onSubmit=${store} onClose=${onClose}><p class="dim">${w('ackText')}</p>
		<${Field} label=${w('until')} name="acknowledgedUntil"><${Select} value=${hours} onInput=${setHours}
			options=${[['1', 'hour'], ['4', 'four'], ['24', 'day'], ['168', 'week']].map(([value, k]) => ({value, label: w(`for.${k}`)}))} /><//>
		<${Field} label=${w('comment')} name="acknowledgementComment"><${Input} value=${comment} onInput=${setComment} maxlength="200" autofocus
			/><//><//>`;
}

function Alerts({groupId, list, reload}) {
	const [show] = useQuery('show', 'open'), [ack, setAck] = useState(null);
	const columns = [{key: 'status', label: w('status'), width: '14%', value: a => a.status,
		cell: a => html`<${StatePill} state=${a.acknowledgedUntil && isOpen(a) ? 'ACKNOWLEDGED' : a.status} />`},
		{key: 'what', label: w('what'), main: true, value: a => eventWords(a.eventTypeName),
			cell: a => html`<b>${aboutOf(a)}</b> ${eventWords(a.eventTypeName)} ${a.metricName ?
			`${metricWords(a.metricName)}${a.currentValue ? `: ${number(a.currentValue.number, 2)}` : ''}` : ''}`},
		{key: 'since', label: w('since'), width: '14%', value: a => a.created, cell: a => html`<${Time} at=${a.created} kind="ago" />`},
			{key: 'ended', label: w('ended'), width: '14%', wide: true, value: a => a.resolved ?? '',
			cell: a => html`<${Time} at=${a.resolved} kind="full" />`},
		{key: 'do', label: '', width: '10rem', sort: false, cell: a => isOpen(a) &&
			html`<${Button} op="acknowledgeAlert" small onClick=${() => setAck(a)} aria-label=${w('ackOf',
			{name: aboutOf(a) || eventWords(a.eventTypeName)})}>${w('ack')}<//>`}];
	const rows = list.filter(a => show === 'all' || isOpen(a));
	return html`<section class="card" aria-label=${w('alerts')}><div class="bar"><${Segments} label=${w('show')} current=${show}
		onPick=${v => setQuery({show: v === 'open' ? '' : v})} options=${[{id: 'open', label: w('open'), count: list.filter(isOpen).length},
		{id: 'all', label: w('all'), count: list.length}]} /></div>
			<${Table} label=${w('alerts')} columns=${columns} rows=${rows} sort=${['since', -1]}
				empty=${html`<${Empty} title=${w('calm')} text=${w('calmText')} />`} /></section>
		${ack && html`<${AcknowledgeDialog} groupId=${groupId} alert=${ack} onClose=${() => setAck(null)}
			onDone=${text => { setAck(null); say(text); reload(); }} />`}`;
}

/* What a rule told of, and what it would have told of: by what is stored, without writing anything. */
function History({groupId, rule, onClose}) {
	const [days, setDays] = useState('P2D');
	const {data, error} = useLoad(async signal => {
		const [past, answer] = await Promise.all([call('getAlertConfigAlerts', {groupId, alertConfigId: rule.id},
			{signal, query: {itemsPerPage: 100}}),
			call('getAlertConfig', {groupId, alertConfigId: rule.id}, {signal, raw: true, headers: {'X-Steward-Replay': days}})]);
		const h = name => answer.headers.get(`x-steward-replay-${name}`);
		return {past: past.results ?? [], count: h('count'), since: h('since'), last: h('last'), note: h('note')};
	}, [groupId, rule.id, days]);
	const columns = [{key: 'status', label: w('status'), width: '22%', value: a => a.status, cell: a => html`<${StatePill} state=${a.status} />`},
		{key: 'what', label: w('about'), main: true, value: aboutOf},
		{key: 'at', label: w('since'), width: '26%', value: a => a.created, cell: a => html`<${Time} at=${a.created} kind="full" />`},
			{key: 'end', label: w('ended'), width: '26%', value: a => a.resolved ?? '', cell: a => html`<${Time} at=${a.resolved} kind="full" />`}];
	return html`<${Dialog} kind="wide" title=${w('historyOf', {rule: ruleText(rule)})} onClose=${onClose}><${Fault} error=${error} />
		<${Segments} label=${w('lookBack')} current=${days} onPick=${setDays}
			options=${['P2D', 'P14D', 'P62D'].map(id => ({id, label: w(`back.${id}`)}))} />
		${data && html`<${Notice} kind=${Number(data.count) ? 'warn' : 'ok'}
			title=${w('would', {n: Number(data.count ?? 0)})}>${data.last ? html`${w('lastAt')} <${Time} at=${data.last} kind="full" />. ` :
			''}${data.note ?? ''}<//>
			<h3>${w('past')}</h3><${Table} class="mini" label=${w('past')} columns=${columns} rows=${data.past}
				empty=${html`<p class="calm">${w('noPast')}</p>`} />`}<//>`;
}

function Rules({groupId, list, reload}) {
	const [asked] = useQuery('do'), [id] = useQuery('rule'), [doomed, setDoomed] = useState(null), open = list.find(r => r.id === id);
	const close = () => setQuery({do: '', rule: ''});
	const done = text => { close(); say(text); reload(); };
	const turn = async (r, enabled) => {
		await call('toggleAlertConfig', {groupId, alertConfigId: r.id}, {body: {enabled}});
		sayUndo(w(enabled ? 'turnedOn' : 'turnedOff'), async () => { await call('toggleAlertConfig', {groupId, alertConfigId: r.id},
			{body: {enabled: !enabled}}); reload(); });
		reload();
	};
	const remove = async () => {
		await call('deleteAlertConfig', {groupId, alertConfigId: doomed.id});
		reload();
	};
	const columns = [{key: 'what', label: w('rule'), main: true, value: ruleText}, {key: 'told', label: w('told'), width: '26%', value: toldText},
		{key: 'on', label: w('enabled'), width: '9%', value: r => r.enabled ? 0 : 1,
		cell: r => html`<${StatePill} state=${r.enabled ? 'ENABLED' : 'OFF'} />`},
		{key: 'do', label: '', width: '11rem', sort: false, cell: r =>
			html`<span class="acts"><${Button} small onClick=${() => setQuery({rule: r.id})}
			aria-label=${w('historyOf', {rule: ruleText(r)})}>${w('history')}<//>
			<${Menu} label=${w('more', {rule: ruleText(r)})} items=${[{label: w(r.enabled ? 'turnOff' : 'turnOn'), op: 'toggleAlertConfig', onPick: () => turn(r, !r.enabled)},
				{label: w('edit'), op: 'updateAlertConfig', onPick: () => setQuery({do: `edit:${r.id}`})}, {label: w('delete'), op: 'deleteAlertConfig', kind: 'danger', onPick: () => setDoomed(r)}]}
				/></span>`}];
	const edited = list.find(r => `edit:${r.id}` === asked);
	return html`<section class="card" aria-label=${w('rules')}><${Table} label=${w('rules')} columns=${columns} rows=${list}
		onOpen=${r => setQuery({rule: r.id})} empty=${html`<${Empty} title=${w('noRules')} text=${w('noRulesText')}
		action=${html`<${Button} op="createAlertConfig" kind="go" onClick=${() => setQuery({do: 'new'})}>${w('newRule')}<//>`} />`} /></section>
		${(asked === 'new' || edited) && html`<${RuleDialog} groupId=${groupId} rule=${edited} onClose=${close} onDone=${done} />`}
		${open && !asked && html`<${History} groupId=${groupId} rule=${open} onClose=${close} />`}
		${doomed && html`<${ConfirmDanger} title=${w('deleteTitle')} text=${ruleText(doomed)} action=${w('delete')} onConfirm=${remove}
			onClose=${() => setDoomed(null)} />`}`;
}

export default function Screen({params: {groupId}}) {
	const [tab] = useQuery('tab', 'alerts');
	const {data, error, reload} = useLoad(async () => {
		const [alerts, rules] = await Promise.all([callAll('listAlerts', {groupId}), callAll('listAlertConfigs', {groupId})]);
		return {alerts, rules};
	}, [groupId], {key: `alerts ${groupId}`});
	const calm = useCalm(reload);
	useLive({groupId}, calm);
	return html`<${Page} title=${w('title')} needs="createAlertConfig" actions=${html`<${Button} op="createAlertConfig" kind="go" icon="plus"
		onClick=${() => setQuery({tab: 'rules', do: 'new'})}>${w('newRule')}<//>`}><${Fault} error=${error} retry=${reload} />
		<${Tabs} label=${w('title')} current=${tab} onPick=${v => setQuery({tab: v === 'alerts' ? '' : v, do: '', rule: ''})}
			tabs=${[{id: 'alerts', label: w('alerts'), count: data?.alerts.filter(isOpen).length},
			{id: 'rules', label: w('rules'), count: data?.rules.length}]} />
		${data && (tab === 'rules' ? html`<${Rules} groupId=${groupId} list=${data.rules} reload=${reload} />` :
			html`<${Alerts} groupId=${groupId} list=${data.alerts} reload=${reload} />`)}<//>`;
}
