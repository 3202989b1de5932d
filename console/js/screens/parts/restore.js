/* A restore: to which moment, and into which cluster. */
import {html, call, callAll, go, useState, useLoad, DialogForm, Field, Input, Select, Segments, Notice, ConfirmDanger, say, words, time, localInput,
	fromLocalInput} from './kit.js';
import {firstRegion, hardware} from './clusters.js';

const w = words('restore');
const second = ms => Math.floor(ms / 1000);

/* A moment, by a slider over what can be reached and by a field to the second. */
function Moment({range, value, onInput, fault}) {
	const off = value < range.from || value > range.to;
	return html`<${Field} label=${w('moment')} name="pointInTimeUTCSeconds"
		help=${w('momentHelp', {from: time(range.from, 'full'), to: time(range.to, 'full')})} fault=${off ? w('outside') : fault}>
			<${Input} type="datetime-local" step="1" min=${localInput(range.from)} max=${localInput(range.to)} value=${localInput(value)}
				onInput=${v => v && onInput(fromLocalInput(v))} /><//>
		<input type="range" class="slider" aria-label=${w('slider')} aria-valuetext=${time(value, 'full')} min=${second(range.from)}
			max=${second(range.to)} step="1" value=${second(value)} onInput=${e => onInput(Number(e.target.value) * 1000)} />`;
}

/* A cluster like the one that was, to restore into. */
const like = (cluster, name) => ({name, clusterType: cluster.clusterType, dbMajorVersion: cluster.dbMajorVersion,
	backupEnabled: cluster.backupEnabled, replicationSpecs: cluster.replicationSpecs.map(spec => ({zoneName: spec.zoneName,
	regionConfigs: spec.regionConfigs.map(r => ({providerName: r.providerName, regionName: r.regionName, priority: r.priority,
		electableSpecs: {...r.electableSpecs}}))}))});

export function RestoreDialog({groupId, cluster, data, snapshot, onClose, onDone}) {
	const snapshots = data.snapshots.filter(s => s.status === 'completed').sort((a, b) => b.createdAt < a.createdAt ? -1 : 1);
	const [by, setBy] = useState(snapshot || !data.range ? 'snapshot' : 'moment'), [id, setId] = useState(snapshot?.id ?? snapshots[0]?.id),
		[at, setAt] = useState(data.range ? data.range.to : 0);
	const [into, setInto] = useState('new'), [name, setName] = useState(`${cluster.name}-restored`), [other, setOther] = useState(''),
		[sure, setSure] = useState(false), [making, setMaking] = useState('');
	const {data: others} = useLoad(async () => (await callAll('listClusters', {groupId})).filter(c => c.name !== cluster.name && !c.paused).map(c =>
		c.name), [groupId]);
	const target = into === 'same' ? cluster.name : into === 'new' ? name.trim() : other || others?.[0];
	const restore = async () => {
		if (into !== 'new' && !sure) {
			setSure(true);
			return;
		}
		if (into === 'new') {
			setMaking(w('making', {name: target}));
			try {
				await call('createCluster', {groupId}, {body: like(cluster, target)});
			} catch (e) {
				setMaking('');
				throw e;
			}
		}
		await call('createBackupRestoreJob', {groupId, clusterName: cluster.name}, {body: {targetClusterName: target, targetGroupId: groupId,
			...(by === 'moment' ? {deliveryType: 'pointInTime', pointInTimeUTCSeconds: second(at)} : {deliveryType: 'automated', snapshotId: id})}});
		say(w('restoring', {name: target}));
		onDone();
		if (target !== cluster.name)
			go(`/projects/${groupId}/clusters/${encodeURIComponent(target)}`);
	};
	if (sure)
		return html`<${ConfirmDanger} name=${target} title=${w('sureTitle', {name: target})} text=${w('sureText')} action=${w('restore')}
			onConfirm=${restore} onClose=${() => setSure(false)} />`;
	return html`<${DialogForm} op="createBackupRestoreJob" title=${w('title', {name: cluster.name})} submit=${w(into === 'new' ? 'restore' : 'next')} onSubmit=${restore}
		onClose=${onClose} disabled=${!target || by === 'moment' && data.range && (at < data.range.from || at > data.range.to)}>
		${data.range && snapshots.length > 0 && html`<${Segments} label=${w('by')} current=${by} onPick=${setBy}
			options=${['moment', 'snapshot'].map(k => ({id: k, label: w(`by.${k}`)}))} />`}
		${by === 'moment' && data.range ? html`<${Moment} range=${data.range} value=${at} onInput=${setAt} />`
			: html`<${Field} label=${w('snapshot')} name="snapshotId"><${Select} value=${id} onInput=${setId}
				options=${snapshots.map(s => ({value: s.id, label: `${time(s.createdAt, 'full')} ${s.description ?? ''}`}))} /><//>`}
		<${Segments} label=${w('into')} current=${into} onPick=${setInto}
			options=${['new', 'same', ...(others?.length ? ['other'] : [])].map(k => ({id: k, label: w(`into.${k}`)}))} />
		${into === 'new' && html`<${Field} label=${w('newName')} name="name"
			help=${w('newHelp', {size: hardware(cluster).instanceSize, region: firstRegion(cluster).regionName})}><${Input} value=${name}
			onInput=${setName} /><//>`}
		${into === 'other' && html`<${Field} label=${w('other')} name="targetClusterName"><${Select} value=${other || others[0]} onInput=${setOther}
			options=${others} /><//>`}
		${into !== 'new' && html`<${Notice} kind="warn">${w('replaces', {name: target})}<//>`}
		${making && html`<${Notice}>${making}<//>`}<//>`;
}
