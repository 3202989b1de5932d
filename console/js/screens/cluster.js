/* One cluster: what it is, how to connect, what to do with it; the tabs have the rest. */
import {
	html, Link, useLoad, useLive, useCalm, useWhile, useQuery, setQuery, Page, Tabs, Table, Card, Notice, Fault, Button, Menu, Time, Meter, Facts,
		Copy, Lazy, Empty, useLack,
	say, words, once, room, duration
} from './parts/kit.js';
import {ClusterState, loadCluster, loadProcesses, loadRow, hardware, nodeCount, nodeName, placeText, versionText} from './parts/clusters.js';
import {Sparks} from './parts/sparks.js';
import {needLevel, progressOf, diskShare} from './parts/state.js';
import {Connect} from './parts/connect.js';
import {ScaleDialog, PauseDialog, MovePrimaryDialog, UpgradeDialog, DeleteDialog, ProtectDialog} from './parts/cluster_actions.js';

const w = words('cluster');
const TABS = {
	metrics: () => import('./parts/metrics.js'),
	activity: () => import('./parts/activity.js'),
	queries: () => import('./parts/queries.js'),
	advice: () => import('./parts/advice.js'),
	search: () => import('./parts/search.js'),
	archives: () => import('./parts/archives.js'),
	sql: () => import('./parts/sql.js'),
	backups: () => import('./parts/cluster_backups.js'),
	logs: () => import('./parts/logs.js'),
	events: () => import('./events.js').then(m => ({default: m.Events}))
};
/* What the actions and the tabs call: for those who may not, they are not there, or say which role is missing. */
const OPS = {pause: 'updateCluster', move: 'restartPrimaries', upgrade: 'updateCluster', protect: 'updateCluster', delete: 'deleteCluster'};
const READS = {metrics: 'getProcessMeasurements', activity: 'listSlowQueryLogs', queries: 'listQueryShapeSummaries', advice: 'listClusterSuggestedIndexes', search: 'listClusterSearchIndexes', archives: 'listOnlineArchives',
	backups: 'listBackupSnapshots', logs: 'downloadClusterLog', events: 'listGroupEvents'};
const DIALOGS = {scale: ScaleDialog, pause: PauseDialog, move: MovePrimaryDialog, upgrade: UpgradeDialog, delete: DeleteDialog,
	protect: ProtectDialog};

function Progress({cluster}) {
	const {percent, text} = progressOf(cluster.progress);
	/* At rest a share of something is a change of users or addresses on its way; words alone are a fault. */
	if (cluster.stateName === 'IDLE' && (!text || percent !== null))
		return null;
	const bad = cluster.stateName === 'REPAIRING' || cluster.stateName === 'IDLE';
	return html`<${Notice} kind=${bad ? 'bad' : 'info'} title=${w(`now.${cluster.stateName}`)}>${text}
		${percent !== null && html`<div class="prog broad" role="progressbar" aria-label=${w('progress')} aria-valuenow=${percent} aria-valuemin="0"
			aria-valuemax="100"><i style=${{width: `${percent}%`}}></i></div>`}<//>`;
}

const ROLES = {REPLICA_PRIMARY: 'primary', SHARD_PRIMARY: 'primary', REPLICA_SECONDARY: 'standby', SHARD_SECONDARY: 'standby', SHARD_ROUTER: 'router',
	RECOVERING: 'recovering', NO_DATA: 'down'};
const UNSETTLED = /RECOVER|NO_DATA/;
const NODE_COLUMNS = once(() => [
	{key: 'name', label: w('node'), main: true, value: nodeName},
	{key: 'role', label: w('role'), width: '24%', value: p => p.typeName,
		cell: p => html`<span class=${UNSETTLED.test(p.typeName) ? 'warn' :
		undefined}>${w.or(`role.${ROLES[p.typeName]}`, 'role.other')}</span>`},
	{key: 'lag', label: w('lag'), width: '16%', value: p => p.lagSeconds ?? -1,
		cell: p => p.lagSeconds === undefined || p.lagSeconds === null ? html`<span class="dim">—</span>` : duration(p.lagSeconds)},
	{key: 'ping', label: w('seen'), width: '20%', wide: true, value: p => p.lastPing, cell: p => html`<${Time} at=${p.lastPing} kind="ago" />`}
]);

function About({groupId, cluster, row}) {
	const spec = hardware(cluster), share = row ? diskShare(row) : null,
		backups = `/projects/${groupId}/clusters/${encodeURIComponent(cluster.name)}/backups`;
	const backup = !cluster.backupEnabled ? html`<span class="warn">${w('noBackups')}</span> <${Link} to=${backups}>${w('turnOn')}<//>`
		: row?.lastBackupAt ? html`<${Time} at=${row.lastBackupAt} kind="ago" />` : w('noBackupYet');
	return html`<${Card} title=${w('about')}><${Facts} items=${[
		[w('version'), versionText(cluster)], [w('size'), spec.instanceSize],
			[w('place'), placeText(cluster)],
		[w('disk'), share === null ? w('gb', {n: spec.diskSizeGB ?? 0}) :
			html`<${Meter} value=${share * 100} label=${w('disk')} note=${w('usedOf', {used: room(row.diskUsedBytes), all: room(row.diskBytes)})}
			/>`],
		[w('backup'), backup], [w('created'), html`<${Time} at=${cluster.createDate} kind="full" />`],
			[w('protected'), w(cluster.terminationProtectionEnabled ? 'yes' : 'no')],
		[w('tags'), cluster.tags?.length ? cluster.tags.map(x => html`<span class="tag" key=${x.key}>${x.key}: ${x.value}</span>`) : undefined],
		[w('id'), html`<span class="mono">${cluster.id}</span> <${Copy} bare text=${cluster.id} label=${w('id')} />`]]} /><//>`;
}

function Summary({groupId, cluster, row, processes}) {
	const lags = new Map((Array.isArray(row?.nodes) ? row.nodes : []).map(n => [n.name, n.lagSeconds]));
	const nodes = (processes ?? []).map(p => ({...p, lagSeconds: lags.get(nodeName(p)) ??
		(/SECONDARY/.test(p.typeName) ? row?.lagSeconds : undefined)}));
	const base = `/projects/${groupId}/clusters/${encodeURIComponent(cluster.name)}`;
	return html`<${Sparks} groupId=${groupId} base=${base} processes=${processes ?? []} /><div class="two even"><div class="stack">
			<${Card} flush title=${w('nodes')}><${Table} class="mini" label=${w('nodes')} columns=${NODE_COLUMNS()} rows=${nodes} keyOf=${p => p.id}
				empty=${html`<p class="calm">${w('noNodes')}</p>`} /><//>
			<${About} groupId=${groupId} cluster=${cluster} row=${row} /></div>
		<${Connect} groupId=${groupId} cluster=${cluster} /></div>`;
}

function Actions({cluster}) {
	const act = (key, label = key, more) => ({label: w(`do.${label}`), onPick: () => setQuery({do: key}), op: OPS[key], ...more});
	return html`<${Button} op="updateCluster" onClick=${() => setQuery({do: 'scale'})}>${w('do.scale')}<//>
		<${Menu} label=${w('more')} text=${w('more')} items=${[act('pause', cluster.paused ? 'resume' : 'pause'), act('move'), act('upgrade'),
			act('protect', cluster.terminationProtectionEnabled ? 'unprotect' : 'protect'), act('delete', 'delete', {kind: 'danger'})]} />`;
}

const Gone = ({name, groupId, was}) => html`<${Page} title=${name}><${Notice}
	kind=${was ? 'ok' : 'bad'}>${w(was ? 'deleted' : 'unknown', {name})} <${Link} to=${`/projects/${groupId}`}>${w('toClusters')}<//><//><//>`;

function HeadFacts({cluster, shown}) {
	return html`<${ClusterState} c=${shown} /><span>${w('nodesOf', {n: nodeCount(cluster)})}</span><span>PostgreSQL ${cluster.dbMajorVersion ??
		cluster.dbVersion}</span><span>${hardware(cluster).instanceSize}</span>`;
}

export default function Screen({params: {groupId, name, tab = 'summary'}}) {
	const [asked] = useQuery('do'), base = `/projects/${groupId}/clusters/${encodeURIComponent(name)}`;
	const {data, error, reload} = useLoad(async () => {
		const [cluster, row] = await Promise.all([loadCluster(groupId, name), loadRow(groupId, name).catch(() => null)]);
		return {cluster, row, processes: await loadProcesses(groupId, cluster).catch(() => [])};
	}, [groupId, name], {key: `cluster ${groupId} ${name}`});
	const calm = useCalm(reload, 250), lack = useLack(READS[tab]);
	useLive(e => e.groupId === groupId && (!e.clusterName || e.clusterName === name), calm);
	/* What a change says of itself between its events; and a node that catches up tells nobody when it has. */
	const busy = data && data.cluster.stateName !== 'IDLE', behind = data && !data.cluster.paused && data.processes.some(p => UNSETTLED.test(p.typeName));
	useWhile((busy || behind) && error?.status !== 404, reload, busy ? 1500 : 5000);
	if (error?.status === 404)
		return html`<${Gone} name=${name} groupId=${groupId} was=${Boolean(data)} />`;
	if (!data)
		return html`<${Page} title=${name}><${Fault} error=${error} retry=${reload} /><//>`;
	const {cluster, row, processes} = data, Dialog = DIALOGS[asked], load = TABS[tab];
	const close = message => {
		setQuery({do: ''});
		if (message) {
			say(message);
			reload();
		}
	};
	const tabs = ['summary', ...Object.keys(TABS)].map(id => ({id, label: w(`tab.${id}`), to: id === 'summary' ? base : `${base}/${id}`}));
	return html`<${Page} title=${name} facts=${html`<${HeadFacts} cluster=${cluster} shown=${{...cluster, attention: row?.attention}} />`}
		needs="updateCluster" actions=${html`<${Actions} cluster=${cluster} />`}>
		<${Fault} error=${error} retry=${reload} />
		<${Progress} cluster=${cluster} />
		${(row?.attention ?? []).map(a => html`<${Notice} key=${a.code} kind=${needLevel(a)} title=${a.text}>${a.nextStep}<//>`)}
		<${Tabs} label=${name} tabs=${tabs} current=${tab} />
		${lack ? html`<section class="card"><${Empty} title=${w('closed')} text=${lack} /></section>` : load ? html`<${Lazy} key=${tab} load=${load} groupId=${groupId} name=${name} cluster=${cluster} processes=${processes} row=${row}
			onChanged=${reload} />`
			: html`<${Summary} groupId=${groupId} cluster=${cluster} row=${row} processes=${processes} />`}
		${Dialog && html`<${Dialog} groupId=${groupId} cluster=${cluster} row=${row} processes=${processes} onClose=${close} />`}
	<//>`;
}
