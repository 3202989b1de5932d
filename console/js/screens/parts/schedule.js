/* When snapshots are taken by themselves, and how long each kind is kept. */
import {html, call, useState, useLoad, useEffect, Card, Form, Field, FaultsOf, Input, Select, Check, Fault, Time, Notice, say, words} from './kit.js';

const w = words('schedule');
const EVERY = {hourly: ['1', '2', '4', '6', '8', '12'], daily: ['1'], weekly: ['1', '2', '3', '4', '5', '6', '7'],
	monthly: [...Array.from({length: 28}, (_, i) => String(i + 1)), '40'], yearly: Array.from({length: 12}, (_, i) => String(i + 1))};
const UNITS = ['days', 'weeks', 'months', 'years'];
const everyText = (kind, n) => w.or(`${kind}.${n}`, `${kind}.n`, {n});

function Item({item, index, onInput, onRemove}) {
	const set = key => value => onInput({...item, [key]: value});
	const at = `policies[0].policyItems[${index}]`, kind = w(item.frequencyType);
	return html`<tr><th scope="row">${kind}</th>
		<td><select class="in" name=${`${at}.frequencyInterval`} aria-label=${w('everyOf', {kind})}
			onChange=${e => set('frequencyInterval')(Number(e.target.value))}>${EVERY[item.frequencyType].map(n =>
			html`<option key=${n} value=${n} selected=${Number(n) === item.frequencyInterval}>${everyText(item.frequencyType,
			n)}</option>`)}</select></td>
		<td class="keep"><input class="in" type="number" min="1" value=${item.retentionValue} aria-label=${w('keepOf', {kind})}
			onInput=${e => set('retentionValue')(e.target.valueAsNumber || 1)} />
			<select class="in" aria-label=${w('unitOf', {kind})} onChange=${e =>
				set('retentionUnit')(e.target.value)}>${UNITS.map(u => html`<option key=${u} value=${u}
				selected=${u === item.retentionUnit}>${w(u)}</option>`)}</select><${FaultsOf} names=${['frequencyInterval', 'retentionValue', 'retentionUnit'].map(k => `${at}.${k}`)} /></td>
		<td><button type="button" class="btn s" aria-label=${w('removeOf', {kind})} onClick=${onRemove}>${w('remove')}</button></td></tr>`;
}

const FRESH = {hourly: {frequencyType: 'hourly', frequencyInterval: 6, retentionValue: 7, retentionUnit: 'days'},
	daily: {frequencyType: 'daily', frequencyInterval: 1, retentionValue: 7, retentionUnit: 'days'},
	weekly: {frequencyType: 'weekly', frequencyInterval: 6, retentionValue: 4, retentionUnit: 'weeks'},
		monthly: {frequencyType: 'monthly', frequencyInterval: 40, retentionValue: 12, retentionUnit: 'months'},
	yearly: {frequencyType: 'yearly', frequencyInterval: 1, retentionValue: 1, retentionUnit: 'years'}};

export function Schedule({groupId, cluster, onChanged}) {
	const params = {groupId, clusterName: cluster.name};
	const {data, error, reload} = useLoad(() => call('getBackupSchedule', params), [groupId, cluster.name]);
	const [items, setItems] = useState([]), [hour, setHour] = useState(0), [minute, setMinute] = useState(0), [days, setDays] = useState(7),
		[pit, setPit] = useState(cluster.pitEnabled), [apply, setApply] = useState(false);
	useEffect(() => {
		if (!data)
			return;
		setItems(data.policies?.[0]?.policyItems ?? []);
		setHour(data.referenceHourOfDay);
		setMinute(data.referenceMinuteOfHour);
		setDays(data.restoreWindowDays);
	}, [data]);
	const store = async () => {
		if (pit !== Boolean(cluster.pitEnabled))
			await call('updateCluster', params, {body: {pitEnabled: pit}});
		await call('updateBackupSchedule', params, {body: {policies: [{...(data.policies?.[0]?.id && {id: data.policies[0].id}),
			policyItems: items.map(({id, ...item}) => item)}], referenceHourOfDay: hour, referenceMinuteOfHour: minute,
			...(pit && {restoreWindowDays: days}), ...(apply && {updateSnapshots: true})}});
		say(w('saved'));
		reload();
		onChanged();
	};
	const missing = Object.keys(FRESH).filter(k => !items.some(i => i.frequencyType === k));
	if (!data)
		return html`<${Fault} error=${error} retry=${reload} />`;
	return html`<${Card} title=${w('title')} note=${html`${w('next')} <${Time} at=${data.nextSnapshot} kind="full" />`}><${Form} op="updateBackupSchedule" onSubmit=${store}
		submit=${w('save')} label=${w('title')}>
		<table class="edit" aria-label=${w('items')}><thead><tr><th scope="col">${w('kind')}</th><th scope="col">${w('every')}</th><th
			scope="col">${w('keep')}</th><th scope="col"><span class="hidden">${w('remove')}</span></th></tr></thead>
			<tbody>${items.map((item, i) => html`<${Item} key=${item.id ?? item.frequencyType + i} item=${item} index=${i}
				onInput=${next => setItems(items.map((x, k) => k === i ? next : x))} onRemove=${() => setItems(items.filter((_, k) => k !== i))}
				/>`)}</tbody></table>
		${!items.length && html`<${Notice} kind="warn">${w('noItems')}<//>`}
		${missing.length > 0 && html`<div class="acts">${missing.map(k =>
			html`<button type="button" class="btn s" key=${k} onClick=${() =>
			setItems([...items, FRESH[k]])}>${w('add', {kind: w(k)})}</button>`)}</div>`}
		<div class="row"><${Field} label=${w('hour')} name="referenceHourOfDay"><${Select} value=${hour} onInput=${v => setHour(Number(v))}
			options=${Array.from({length: 24}, (_, i) => i)} /><//>
			<${Field} label=${w('minute')} name="referenceMinuteOfHour"><${Input} type="number" min="0" max="59" value=${minute} onInput=${setMinute}
				/><//></div>
		<${Check} checked=${pit} onInput=${setPit} label=${w('pit')} help=${w('pitHelp')} name="pitEnabled" />
		${pit && html`<${Field} label=${w('window')} name="restoreWindowDays"><${Input} type="number" min="1" max="35" value=${days}
			onInput=${setDays} /><//>`}
		<${Check} checked=${apply} onInput=${setApply} label=${w('apply')} name="updateSnapshots" /><//><//>`;
}
