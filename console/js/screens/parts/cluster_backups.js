/* The backups of one cluster: the times that can be reached, snapshots, restores and the schedule. */
import {
	html, call, callAll, useState, useLoad, useLive, useCalm, useWhile, useQuery, setQuery, Card, Table, Empty, Fault, Button, Menu, StatePill, Time,
		Field, Input, DialogForm, ConfirmDanger, Segments, say,
	errorText, words, bytes, number, time
} from './kit.js';
import {RestoreDialog} from './restore.js';
import {Schedule} from './schedule.js';

const w = words('backups');
const BUSY = /queued|inProgress/;

/* The newest stretch of time of which any second can be restored: the list of snapshots tells it to whom asks. None while the
 * repository cannot be read, which must not hide the snapshots. */
async function reach(groupId, clusterName) {
	try {
		const {headers} = await call('listBackupSnapshots', {groupId, clusterName}, {whole: true, query: {itemsPerPage: 1},
			headers: {'X-Steward-Describe-Window': 'true'}});
		const [from, to] = (headers.get('x-steward-restore-window') ?? '').split(',')[0].split('/').map(Date.parse);
		return from <= to ? {from, to} : null;
	} catch (e) {
		if (e.status === 503)
			return null;
		throw e;
	}
}

export function useBackups(groupId, cluster) {
	const name = cluster.name;
	const loaded = useLoad(async () => {
		const [snapshots, jobs, range] = await Promise.all([callAll('listBackupSnapshots', {groupId, clusterName: name}),
			callAll('listBackupRestoreJobs', {groupId, clusterName: name}).catch(() => []),
			cluster.pitEnabled ? reach(groupId, name) : null]);
		return {snapshots, jobs, range};
	}, [groupId, name, cluster.pitEnabled, cluster.backupEnabled], {key: `backups ${groupId} ${name}`});
	const calm = useCalm(loaded.reload, 300);
	useLive(e => e.groupId === groupId && (!e.clusterName || e.clusterName === name), calm);
	const {data} = loaded;
	/* Seconds after the first snapshot its log is there too, and moments can be reached. */
	const soon = cluster.pitEnabled && !data?.range && data?.snapshots.some(s => s.status === 'completed');
	useWhile(data && (soon || data.snapshots.some(s => BUSY.test(s.status)) || data.jobs.some(j => stateOf(j) === 'RUNNING')), loaded.reload, 2000);
	return loaded;
}

const stateOf = j => j.failed ? 'FAILED' : j.cancelled ? 'CANCELLED' : j.finishedAt ? 'DONE' : 'RUNNING';

function Off({groupId, cluster, onChanged}) {
	const on = async () => {
		await call('updateCluster', {groupId, clusterName: cluster.name}, {body: {backupEnabled: true, pitEnabled: true}});
		say(w('turnedOn', {name: cluster.name}));
		onChanged();
	};
	return html`<section class="card"><${Empty} title=${w('off')} text=${w('offText')}
		action=${html`<${Button} op="updateCluster" kind="go" onClick=${on}>${w('turnOn')}<//>`} /></section>`;
}

/* What can be reached, drawn as a line with the snapshots on it. */
function Reach({range, snapshots}) {
	const done = snapshots.filter(s => s.status === 'completed'), times = done.map(s => Date.parse(s.createdAt)), now = Date.now();
	if (!range && !done.length)
		return html`<p class="calm">${w('nothingYet')}</p>`;
	const from = Math.min(...times, range?.from ?? now), at = t => `${Math.max(0, Math.min(100, (t - from) / Math.max(1, now - from) * 100))}%`;
	return html`<div class="reach"><div class="reach-line" aria-hidden="true">${range &&
		html`<u style=${{left: at(range.from), right: `calc(100% - ${at(range.to)})`}}></u>`}${times.map((t, i) =>
		html`<i key=${done[i].id} style=${{left: at(t)}}></i>`)}</div>
		<p>${range ? html`<b>${w('anySecond')}</b> ${w('fromTo', {from: time(range.from, 'full'), to: time(range.to, 'full')})}` :
			w('snapshotsOnly', {n: done.length})}</p></div>`;
}

function TakeDialog({groupId, name, onClose, onDone}) {
	const [description, setDescription] = useState(''), [days, setDays] = useState(7);
	const take = async () => {
		await call('takeSnapshots', {groupId, clusterName: name}, {body: {description, retentionInDays: days}});
		say(w('taking', {name}));
		onDone();
	};
	return html`<${DialogForm} op="takeSnapshots" title=${w('takeTitle', {name})} submit=${w('take')} onSubmit=${take} onClose=${onClose}>
		<${Field} label=${w('description')} name="description" help=${w('descriptionHelp')}><${Input} value=${description} onInput=${setDescription}
			maxlength="100" autofocus /><//>
		<${Field} label=${w('days')} name="retentionInDays"><${Input} type="number" min="1" max="3650" value=${days} onInput=${setDays} /><//><//>`;
}

function Snapshots({list, failed, onRestore, onDownload, onDelete, onTake}) {
	const columns = [{key: 'at', label: w('taken'), main: true, value: s => s.createdAt, cell: s => html`<${Time} at=${s.createdAt} kind="full" />`},
		{key: 'status', label: w('status'), width: '13%', value: s => s.status, cell: s => html`<${StatePill} state=${s.status} />`},
		{key: 'kind', label: w('kind'), width: '10%', wide: true, value: s => s.snapshotType,
			cell: s => w.or(`kind.${s.frequencyType ?? s.snapshotType}`, 'kind.other')},
		{key: 'size', label: w('size'), width: '9%', value: s => s.storageSizeBytes ?? 0, cell: s => bytes(s.storageSizeBytes)},
		{key: 'until', label: w('keptUntil'), width: '15%', wide: true, value: s => s.expiresAt,
			cell: s => html`<${Time} at=${s.expiresAt} kind="date" />`},
		{key: 'text', label: w('description'), width: '14%', wide: true, value: s => s.description},
		{key: 'do', label: '', width: '11rem', sort: false, cell: s =>
			html`<span class="acts">${s.status === 'completed' && html`<${Button} op="createBackupRestoreJob" small onClick=${() => onRestore(s)}
			aria-label=${w('restoreOf', {at: time(s.createdAt, 'full')})}>${w('restore')}<//>`}
			<${Menu} label=${w('more', {at: time(s.createdAt, 'full')})} items=${[s.status === 'completed' &&
				{label: w('download'), op: 'createBackupRestoreJob', onPick: () => onDownload(s)}, {label: w('delete'), op: 'deleteClusterBackupSnapshot', kind: 'danger', onPick: () => onDelete(s)}]} /></span>`}];
	return html`<${Table} label=${w('snapshots')} columns=${columns} rows=${list} failed=${failed} sort=${['at', -1]}
		empty=${html`<${Empty} title=${w('noSnapshots')} text=${w('noSnapshotsText')}
		action=${html`<${Button} op="takeSnapshots" kind="go" onClick=${onTake}>${w('take')}<//>`} />`} />`;
}

function Restores({list, groupId, name, onDone}) {
	const cancel = async j => {
		await call('cancelBackupRestoreJob', {groupId, clusterName: name, restoreJobId: j.id});
		onDone();
	};
	const columns = [{key: 'what', label: w('point'), main: true, value: j => j.timestamp ?? '',
		cell: j => html`${w(`delivery.${j.deliveryType}`)} <${Time} at=${j.pointInTimeUTCSeconds ? j.pointInTimeUTCSeconds * 1000 : j.timestamp}
		kind="full" />`},
		{key: 'to', label: w('target'), width: '18%', value: j => j.targetClusterName ?? '',
			cell: j => j.deliveryUrl ? j.deliveryUrl.map((url, i) => html`<a key=${url} href=${url} download>${w('file', {n: i + 1})}</a> `) :
			j.targetClusterName},
			{key: 'state', label: w('status'), width: '14%', value: stateOf,
			cell: j => html`<${StatePill} state=${stateOf(j)} kind=${stateOf(j) === 'RUNNING' ? 'busy' : undefined} />`},
		{key: 'end', label: w('finished'), width: '18%', wide: true, value: j => j.finishedAt ?? '',
			cell: j => html`<${Time} at=${j.finishedAt} kind="full" />`},
		{key: 'do', label: '', width: '7rem', sort: false, cell: j => stateOf(j) === 'RUNNING' &&
			html`<${Button} op="cancelBackupRestoreJob" small onClick=${() => cancel(j)}>${w('cancel')}<//>`}];
	return html`<${Card} flush title=${w('restores')}><${Table} label=${w('restores')} columns=${columns} rows=${list} /><//>`;
}

export default function ClusterBackups({groupId, cluster, onChanged}) {
	const {data, error, reload} = useBackups(groupId, cluster), [asked] = useQuery('do'), [part] = useQuery('part', 'snapshots'),
		[snapshot, setSnapshot] = useState(null), [doomed, setDoomed] = useState(null);
	const name = cluster.name, close = () => { setQuery({do: ''}); setSnapshot(null); }, done = () => { close(); reload(); };
	const restore = s => { setSnapshot(s ?? null); setQuery({do: 'restore'}); };
	const remove = async () => {
		await call('deleteClusterBackupSnapshot', {groupId, clusterName: name, snapshotId: doomed.id});
		say(w('deleted'));
		reload();
	};
	const download = s => call('createBackupRestoreJob', {groupId, clusterName: name}, {body: {deliveryType: 'download', snapshotId: s.id}}).then(() => {
		say(w('linked'));
		reload();
	}, e => say(errorText(e)));
	if (!cluster.backupEnabled && !data?.snapshots.length)
		return html`<${Off} groupId=${groupId} cluster=${cluster} onChanged=${onChanged} />`;
	const can = data && (data.range || data.snapshots.some(s => s.status === 'completed'));
	return html`<${Fault} error=${error} retry=${reload} /><div class="stack">
		<${Card} title=${w('reach')} actions=${html`<${Button} op="createBackupRestoreJob" small disabled=${!can} onClick=${() => restore()}>${w('restoreTo')}<//><${Button} small op="takeSnapshots"
			kind="go" onClick=${() => setQuery({do: 'take'})}>${w('take')}<//>`}>
			${data && html`<${Reach} range=${data.range} snapshots=${data.snapshots} />`}${!cluster.pitEnabled &&
				html`<p class="dim">${w('noPit')}</p>`}<//>
		${data?.jobs.length > 0 && html`<${Restores} list=${data.jobs} groupId=${groupId} name=${name} onDone=${reload} />`}
		<div class="bar bare"><${Segments} label=${w('parts')} current=${part} onPick=${v => setQuery({part: v === 'snapshots' ? '' : v})}
			options=${[{id: 'snapshots', label: w('snapshots'), count: data && number(data.snapshots.length)},
			{id: 'schedule', label: w('schedule')}]} /></div>
		${part === 'schedule' ? html`<${Schedule} groupId=${groupId} cluster=${cluster} onChanged=${onChanged} />`
			: html`<${Card} flush><${Snapshots} list=${data?.snapshots} failed=${error} onRestore=${restore} onDownload=${download} onDelete=${setDoomed}
				onTake=${() => setQuery({do: 'take'})} /><//>`}</div>
		${asked === 'take' && html`<${TakeDialog} groupId=${groupId} name=${name} onClose=${close} onDone=${done} />`}
		${asked === 'restore' && data && html`<${RestoreDialog} groupId=${groupId} cluster=${cluster} data=${data} snapshot=${snapshot}
			onClose=${close} onDone=${done} />`}
		${doomed && html`<${ConfirmDanger} title=${w('deleteTitle')} text=${w('deleteText', {at: time(doomed.createdAt, 'full')})}
			action=${w('delete')} onConfirm=${remove} onClose=${() => setDoomed(null)} />`}`;
}
