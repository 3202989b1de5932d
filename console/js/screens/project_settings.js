/* The settings of a project: its name, limits, switches, maintenance window. */
import {html, call, go, useState, useLoad, useEffect, Page, Card, Form, Field, Input, Select, Fault, Button, ConfirmDanger, Copy, DialogForm, Table,
	say, words, number, loadSession, useMay} from './parts/kit.js';
import {Switches} from './parts/settings.js';

const w = words('settings');
const SWITCHES = ['isCollectDatabaseSpecificsStatisticsEnabled', 'isPerformanceAdvisorEnabled', 'isSchemaAdvisorEnabled'];

function Name({groupId, group, reload}) {
	const [name, setName] = useState(group.name);
	useEffect(() => setName(group.name), [group.name]);
	return html`<${Card} title=${w('about')}><${Form} op="updateGroup" submit=${w('save')} label=${w('about')} disabled=${name === group.name}
		onSubmit=${async () => { await call('updateGroup', {groupId}, {body: {name: name.trim()}}); say(w('saved')); loadSession().catch(() => null); reload(); }}>
		<${Field} label=${w('name')} name="name"><${Input} value=${name} onInput=${setName} maxlength="64" /><//><p class="dim">${w('id')} <span
			class="mono">${groupId}</span> <${Copy} bare text=${groupId} label=${w('id')} /></p><//><//>`;
}

function Window({groupId, at, reload}) {
	const [day, setDay] = useState(String(at?.dayOfWeek || 7)), [hour, setHour] = useState(String(at?.hourOfDay ?? 2));
	const store = async () => {
		await call('updateMaintenanceWindow', {groupId}, {body: {dayOfWeek: Number(day), hourOfDay: Number(hour)}});
		say(w('saved'));
		reload();
	};
	return html`<${Card} title=${w('window')}><${Form} op="updateMaintenanceWindow" submit=${w('save')} onSubmit=${store} label=${w('window')}><p
		class="dim">${w('windowText')}</p><div class="row"><${Field} label=${w('day')} name="dayOfWeek"><${Select} value=${day} onInput=${setDay}
		options=${Array.from({length: 7}, (_, i) => ({value: String(i + 1), label: w(`day.${i + 1}`)}))} /><//>
		<${Field} label=${w('hour')} name="hourOfDay"><${Select} value=${hour} onInput=${setHour}
			options=${Array.from({length: 24}, (_, i) => ({value: String(i), label: `${String(i).padStart(2, '0')}:00`}))} /><//></div><//><//>`;
}

function Limits({groupId, list, reload}) {
	const [open, setOpen] = useState(null), [value, setValue] = useState(0), may = useMay();
	const columns = [{key: 'name', label: w('limit'), main: true, value: l => l.name,
		cell: l => w.or(`limit.${l.name}`, 'limit.plain', {name: l.name})},
		{key: 'used', label: w('used'), width: '14%', value: l => l.currentUsage, cell: l => number(l.currentUsage)},
		{key: 'value', label: w('allowed'), width: '14%', value: l => l.value, cell: l => number(l.value)},
		{key: 'most', label: w('most'), width: '14%', wide: true, value: l => l.maximumLimit, cell: l => number(l.maximumLimit)}];
	return html`<${Card} flush title=${w('limits')}><${Table} label=${w('limits')} columns=${columns} rows=${list} keyOf=${l => l.name}
		onOpen=${may('setGroupLimit') && (l => { setOpen(l); setValue(l.value); })} /><//>
		${open && html`<${DialogForm} title=${w.or(`limit.${open.name}`, 'limit.plain', {name: open.name})} submit=${w('save')}
			onClose=${() => setOpen(null)} onSubmit=${async () => { await call('setGroupLimit', {groupId, limitName: open.name},
			{body: {name: open.name, value}}); setOpen(null); reload(); }}>
			<${Field} label=${w('allowed')} name="value" help=${open.maximumLimit ? w('upTo', {n: open.maximumLimit}) : undefined}><${Input}
				type="number" min="0" value=${value} onInput=${setValue} autofocus /><//><//>`}`;
}

export default function Screen({params: {groupId}}) {
	const [ask, setAsk] = useState(false), may = useMay();
	const {data, error, reload} = useLoad(async () => {
		const [group, settings, limits, maintenance] = await Promise.all([call('getGroup', {groupId}), call('getGroupSettings', {groupId}),
			call('listGroupLimits', {groupId}).catch(() => []), call('getMaintenanceWindow', {groupId}).catch(() => null)]);
		return {group, settings, limits: Array.isArray(limits) ? limits : limits.results ?? [], maintenance};
	}, [groupId], {key: `settings ${groupId}`});
	const change = async (key, value) => {
		await call('updateGroupSettings', {groupId}, {body: {[key]: value}});
		reload();
	};
	return html`<${Page} title=${w('title')} needs="updateGroup"><${Fault} error=${error} retry=${reload}
		/>${data && html`<div class="stack narrow"><${Name} groupId=${groupId} group=${data.group} reload=${reload} />
		<${Card} title=${w('switches')}><${Switches} op="updateGroupSettings" values=${data.settings} rows=${SWITCHES.map(k => [k, w(k), w(`${k}.help`)])} onChange=${change}
			/><//><${Window} key=${groupId} groupId=${groupId} at=${data.maintenance} reload=${reload} />
		<${Limits} groupId=${groupId} list=${data.limits} reload=${reload} />${may('deleteGroup') && html`<${Card} title=${w('danger')}><p>${w('deleteText')}</p><${Button}
			kind="danger" onClick=${() => setAsk(true)}>${w('delete')}<//><//>`}</div>
		${ask && html`<${ConfirmDanger} title=${w('deleteTitle', {name: data.group.name})} text=${w('deleteText')} name=${data.group.name}
			action=${w('delete')} onClose=${() => setAsk(false)} onConfirm=${async () =>
			{ await call('deleteGroup', {groupId}); await loadSession().catch(() => null); go(`/orgs/${data.group.orgId}/projects`); }} />`}`}<//>`;
}
