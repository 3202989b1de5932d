/* What is done with a cluster, each in a dialog that says what will happen. onClose(message): with a message it was done. */
import {
	html, call, callAll, useState, useLoad, DialogForm, ConfirmDanger, Field, Input, Select, Check, Notice, Fault, words, room
} from './kit.js';
import {hardware, nodeCount, scaled, nodeName, isPrimary, firstRegion} from './clusters.js';
import {SizeField, useSizes} from './sizes.js';

const w = words('actions');
const SPEC = 'replicationSpecs[0].regionConfigs[0].electableSpecs';
const update = (groupId, cluster, body) => call('updateCluster', {groupId, clusterName: cluster.name}, {body});

export function ScaleDialog({groupId, cluster, onClose}) {
	const spec = hardware(cluster), place = firstRegion(cluster);
	const [size, setSize] = useState(spec.instanceSize), [nodes, setNodes] = useState(spec.nodeCount ?? 3),
		[disk, setDisk] = useState(spec.diskSizeGB ?? 10);
	const sizes = useSizes(groupId, place.providerName, place.regionName);
	const counts = [...new Set([1, 3, 5, 7, spec.nodeCount ?? 3])].sort((a, b) => a - b);
	const save = async () => {
		await update(groupId, cluster, {replicationSpecs: scaled(cluster, {instanceSize: size, nodeCount: Number(nodes), diskSizeGB: Number(disk)})});
		onClose(w('scaling', {name: cluster.name}));
	};
	const steps = [size !== spec.instanceSize && w('willRestart'), nodes > spec.nodeCount && w('willAdd', {n: nodes - spec.nodeCount}),
		nodes < spec.nodeCount && w('willRemove', {n: spec.nodeCount - nodes})].filter(Boolean);
	return html`<${DialogForm} op="updateCluster" title=${w('scaleTitle', {name: cluster.name})} submit=${w('scale')} onSubmit=${save} onClose=${() => onClose()}
		disabled=${!steps.length && disk === spec.diskSizeGB}>
		<${SizeField} sizes=${sizes} value=${size} onInput=${setSize} name=${`${SPEC}.instanceSize`} />
		<${Field} label=${w('nodes')} name=${`${SPEC}.nodeCount`} help=${w('nodesHelp')}><${Select} value=${nodes} onInput=${v => setNodes(Number(v))}
			options=${counts} /><//>
		<${Field} label=${w('disk')} name=${`${SPEC}.diskSizeGB`} help=${w('diskHelp')}><${Input} type="number" min="10" max="4096" value=${disk}
			onInput=${setDisk} /><//>
		${steps.length > 0 && html`<${Notice}>${steps.join(' ')}<//>`}
	<//>`;
}

export function PauseDialog({groupId, cluster, onClose}) {
	const paused = !cluster.paused;
	const save = async () => {
		await update(groupId, cluster, {paused});
		onClose(w(paused ? 'pausing' : 'resuming', {name: cluster.name}));
	};
	return html`<${DialogForm} op="updateCluster" title=${w(paused ? 'pauseTitle' : 'resumeTitle', {name: cluster.name})} submit=${w(paused ? 'pause' : 'resume')}
		onSubmit=${save} onClose=${() => onClose()}>
		<p>${w(paused ? 'pauseText' : 'resumeText')}</p><//>`;
}

export function MovePrimaryDialog({groupId, cluster, processes, onClose}) {
	const now = (processes ?? []).find(isPrimary);
	const save = async () => {
		await call('restartPrimaries', {groupId, clusterName: cluster.name});
		onClose(w('moving', {name: cluster.name}));
	};
	return html`<${DialogForm} op="restartPrimaries" title=${w('moveTitle', {name: cluster.name})} submit=${w('move')} onSubmit=${save} onClose=${() => onClose()}>
		<p>${now && w('moveFrom', {node: nodeName(now)})} ${w(nodeCount(cluster) > 1 ? 'moveText' : 'moveAlone')}</p><//>`;
}

const major = v => String(v).split('.')[0];

export function UpgradeDialog({groupId, cluster, onClose}) {
	const now = Number(major(cluster.dbMajorVersion ?? cluster.dbVersion));
	const {data, error} = useLoad(async () => [...new Set((await callAll('getDbVersions', {groupId})).map(v => major(v.version)))].filter(v =>
		Number(v) > now).sort(), [groupId]);
	const [version, setVersion] = useState('');
	const save = async () => {
		await update(groupId, cluster, {dbMajorVersion: version || data[0]});
		onClose(w('upgrading', {name: cluster.name}));
	};
	return html`<${DialogForm} op="updateCluster" title=${w('upgradeTitle', {name: cluster.name})} submit=${data?.length ? w('upgrade') : undefined} onSubmit=${save}
		onClose=${() => onClose()}>
		<${Fault} error=${error} />
		${data && !data.length && html`<p>${w('newest', {version: String(now)})}</p>`}
		${data?.length > 0 && html`<${Field} label=${w('version')} name="dbMajorVersion" help=${w('upgradeHelp')}><${Select}
			value=${version || data[0]} onInput=${setVersion} options=${data.map(v => ({value: v, label: `PostgreSQL ${v}`}))} /><//>`}<//>`;
}

export function ProtectDialog({groupId, cluster, onClose}) {
	const on = !cluster.terminationProtectionEnabled;
	const save = async () => {
		await update(groupId, cluster, {terminationProtectionEnabled: on});
		onClose(w(on ? 'protecting' : 'unprotecting', {name: cluster.name}));
	};
	return html`<${DialogForm} op="updateCluster" title=${w(on ? 'protectTitle' : 'unprotectTitle', {name: cluster.name})} submit=${w(on ? 'protect' : 'unprotect')}
		onSubmit=${save} onClose=${() => onClose()}>
		<p>${w(on ? 'protectText' : 'unprotectText')}</p><//>`;
}

export function DeleteDialog({groupId, cluster, row, onClose}) {
	const [keep, setKeep] = useState(true);
	const remove = async () => {
		await call('deleteCluster', {groupId, clusterName: cluster.name}, {query: cluster.backupEnabled ? {retainBackups: keep} : {}});
		onClose(w('deleting', {name: cluster.name}));
	};
	const data = row?.diskUsedBytes ? w('deleteData', {size: room(row.diskUsedBytes)}) : '';
	return html`<${ConfirmDanger} op="deleteCluster" name=${cluster.name} title=${w('deleteTitle', {name: cluster.name})} action=${w('delete')} onConfirm=${remove}
		onClose=${() => onClose()} text=${`${w('deleteText', {n: nodeCount(cluster)})} ${data}`}>
		${cluster.backupEnabled && html`<${Check} checked=${keep} onInput=${setKeep} label=${w('keepBackups')} />`}
		${cluster.terminationProtectionEnabled && html`<${Notice} kind="warn">${w('isProtected')}<//>`}<//>`;
}
