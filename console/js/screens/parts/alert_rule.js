/* A rule: what it waits for, from where on, and who is told. */
import {html, call, useState, DialogForm, Field, Fieldset, Input, Select, Check, words, number} from './kit.js';
import {eventWords} from './events.js';
import {roleNames} from './roles.js';

const w = words('rule');
/* What most rules are about. Others can be made with the operation's own form. */
const METRICS = {DISK_PARTITION_SPACE_USED_DATA: ['RAW', 90], CONNECTIONS_PERCENT: ['RAW', 80], NORMALIZED_SYSTEM_CPU_USER: ['RAW', 90],
	SYSTEM_MEMORY_PERCENT_USED: ['RAW', 90], GLOBAL_LOCK_PERCENTAGE: ['RAW', 50], OPLOG_SLAVE_LAG_MASTER_TIME: ['SECONDS', 60]};
const EVENTS = ['HOST_DOWN', 'NO_PRIMARY', 'PRIMARY_ELECTED', 'HOST_NOT_ENOUGH_DISK_SPACE', 'CPS_SNAPSHOT_FAILED', 'CPS_RESTORE_FAILED'];
const isMetric = what => what in METRICS;
const whatOf = r => r?.metricThreshold?.metricName ?? r?.eventTypeName;
const UNITS = {RAW: '', SECONDS: ' s', PERCENT: ' %'};

/* OPLOG_REPLICATION_LAG_TIME -> "Oplog replication lag time", where no better words are known. */
export const metricWords = name => w.or(name, 'metric', {name: eventWords(name)});

export function ruleText(r) {
	const m = r.metricThreshold;
	if (m)
		return `${metricWords(m.metricName)} ${m.operator === 'LESS_THAN' ? '<' :
			'>'} ${number(m.threshold)}${UNITS[m.units] ?? ` ${m.units ?? ''}`}`;
	return `${w.or(r.eventTypeName, 'event', {name: eventWords(r.eventTypeName)})}${r.threshold?.threshold !== undefined ?
		` > ${number(r.threshold.threshold)} ${String(r.threshold.units ?? '').toLowerCase()}` : ''}`;
}

const toldOne = n => n.emailAddress ?? n.webhookUrl ?? n.channelName ?? n.username ??
	(n.roles?.length ? w('roles', {roles: roleNames(n.roles)}) : w.or(`type.${n.typeName}`, 'type.other', {name: n.typeName}));
export const toldText = r => (r.notifications ?? []).map(toldOne).join(', ');

/* What a new notification is, by its kind. */
const CHANNELS = {
	GROUP: () => ({typeName: 'GROUP', emailEnabled: true, roles: ['GROUP_OWNER']}),
	EMAIL: to => ({typeName: 'EMAIL', emailAddress: to}),
	WEBHOOK: to => ({typeName: 'WEBHOOK', webhookUrl: to})
};

export function RuleDialog({groupId, rule, onClose, onDone}) {
	const first = rule?.notifications?.[0];
	const [what, setWhat] = useState(whatOf(rule) ?? 'DISK_PARTITION_SPACE_USED_DATA'),
		[bound, setBound] = useState(rule?.metricThreshold?.threshold ?? 90), [type, setType] = useState(rule ? '' : 'GROUP'),
		[target, setTarget] = useState('');
	const [delay, setDelay] = useState(first?.delayMin ?? 0), [interval, setInterval] = useState(first?.intervalMin ?? 60),
		[enabled, setEnabled] = useState(rule?.enabled ?? true);
	const known = isMetric(what) || EVENTS.includes(what);
	const pick = v => {
		setWhat(v);
		if (isMetric(v))
			setBound(METRICS[v][1]);
	};
	const store = async () => {
		const notifications = type ? [{...CHANNELS[type](target), delayMin: delay, intervalMin: interval}] :
			rule.notifications.map((n, i) => i ? n : {...n, delayMin: delay, intervalMin: interval});
		const about = !known || whatOf(rule) === what ? rule && {eventTypeName: rule.eventTypeName,
			...(rule.metricThreshold && {metricThreshold: {...rule.metricThreshold, threshold: bound}}),
			...(rule.threshold && {threshold: rule.threshold}), matchers: rule.matchers ?? []} : null;
		const body = {...(about ?? (isMetric(what) ? {eventTypeName: 'OUTSIDE_METRIC_THRESHOLD',
			metricThreshold: {metricName: what, operator: 'GREATER_THAN', threshold: bound, units: METRICS[what][0], mode: 'AVERAGE'}, matchers: []} :
			{eventTypeName: what, matchers: []})), enabled, notifications};
		if (rule)
			await call('updateAlertConfig', {groupId, alertConfigId: rule.id}, {body});
		else
			await call('createAlertConfig', {groupId}, {body});
		onDone(w(rule ? 'saved' : 'made'));
	};
	const options = {[w('metrics')]: Object.keys(METRICS).map(m => ({value: m, label: w(m)})),
		[w('events')]: EVENTS.map(e => ({value: e, label: w.or(e, 'event', {name: eventWords(e)})})),
		...(known ? {} : {[w('asItIs')]: [{value: what, label: metricWords(what)}]})};
	return html`<${DialogForm} op=${rule ? 'updateAlertConfig' : 'createAlertConfig'} title=${w(rule ? 'change' : 'new')} submit=${w(rule ? 'save' : 'make')} onSubmit=${store} onClose=${onClose}>
		<${Field} label=${w('what')} name="eventTypeName"><${Select} value=${what} onInput=${pick} options=${options} /><//>
		${(isMetric(what) || rule?.metricThreshold && whatOf(rule) === what) &&
			html`<${Field} label=${w('above', {unit: what === 'OPLOG_SLAVE_LAG_MASTER_TIME' ? 's' : '%'})} name="metricThreshold.threshold"><${Input}
			type="number" min="0" value=${bound} onInput=${setBound} /><//>`}
		<${Fieldset} legend=${w('told')}><${Field} label=${w('how')} name="notifications[0].typeName"><${Select} value=${type} onInput=${setType}
			options=${[...(rule ? [{value: '', label: toldText(rule)}] : []), ...Object.keys(CHANNELS).map(k => ({value: k, label: w(`type.${k}`)}))]}
			/><//>
			${type === 'EMAIL' && html`<${Field} label=${w('address')} name="notifications[0].emailAddress"><${Input} type="email" value=${target}
				onInput=${setTarget} /><//>`}
			${type === 'WEBHOOK' && html`<${Field} label=${w('url')} name="notifications[0].webhookUrl"><${Input} type="url" value=${target}
				onInput=${setTarget} /><//>`}
			<div class="row"><${Field} label=${w('delay')} name="notifications[0].delayMin"><${Input} type="number" min="0" value=${delay}
				onInput=${setDelay} /><//>
				<${Field} label=${w('interval')} name="notifications[0].intervalMin"><${Input} type="number" min="5" value=${interval}
					onInput=${setInterval} /><//></div><//>
		<${Check} checked=${enabled} onInput=${setEnabled} label=${w('enabled')} help=${w('enabledHelp')} name="enabled" /><//>`;
}
