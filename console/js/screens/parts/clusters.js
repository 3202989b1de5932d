/* What several screens ask of a cluster's document. */
import {html, call, callAll, get, StatePill, words} from './kit.js';
import {levelOf, stateOf} from './state.js';

const w = words('state');

/* The state of a cluster or of its row, in the words of people. */
export const ClusterState = ({c}) => html`<${StatePill} state=${stateOf(c)} kind=${levelOf(c)}
	text=${w(/bad|warn/.test(levelOf(c)) && c.stateName === 'IDLE' ? 'need' : stateOf(c))} />`;

const regions = c => (c?.replicationSpecs ?? []).flatMap(s => s.regionConfigs ?? []);
export const firstRegion = c => regions(c)[0] ?? {};
export const hardware = c => firstRegion(c).electableSpecs ?? {};
export const nodeCount = c => regions(c).reduce((n, r) => n + ['electableSpecs', 'readOnlySpecs',
	'analyticsSpecs'].reduce((m, k) => m + (r[k]?.nodeCount ?? 0), 0), 0);
/* "15.20.0", as the reference writes versions, is PostgreSQL 15.20. */
export const shortVersion = text => String(text ?? '').replace(/^(\d+\.\d+)\.0$/, '$1');
export const versionText = c => `PostgreSQL ${shortVersion(c.dbVersion ?? c.dbMajorVersion)}`;
export const placeText = c => regions(c).map(r => `${r.providerName} ${r.regionName}`).filter((x, i, all) => all.indexOf(x) === i).join(', ');

/* The cluster with what only headers tell: how far a change is, or why it is stuck. */
export async function loadCluster(groupId, clusterName) {
	const answer = await call('getCluster', {groupId, clusterName}, {raw: true});
	const cluster = await answer.json();
	const status = cluster.stateName === 'IDLE' ? await call('getClusterStatus', {groupId, clusterName}, {raw: true}) : answer;
	return {...cluster, progress: status.headers.get('x-steward-progress') ?? ''};
}

const hostsOf = cluster => (/^\w+:\/\/(?:[^@/]*@)?([^/]+)/.exec(cluster.connectionStrings?.standard ?? '')?.[1] ?? '').split(',');

/* The processes of one cluster: those whose addresses stand in its connection string, or bear its name. */
export async function loadProcesses(groupId, cluster) {
	const hosts = new Set(hostsOf(cluster)), start = `${cluster.name.toLowerCase()}-`;
	const list = await callAll('listGroupProcesses', {groupId});
	const own = list.filter(p => hosts.has(p.id) || hosts.has(`${p.hostname}:${p.port}`));
	return (own.length ? own : list.filter(p => p.userAlias?.startsWith(start))).sort((a, b) => nodeName(a).localeCompare(nodeName(b)));
}

/* "orders-00-01.x1y2.example" -> "orders-00-01" */
export const nodeName = p => (p.userAlias || p.hostname).split('.')[0];
export const isPrimary = p => /PRIMARY|STANDALONE|ROUTER/.test(p.typeName);

export const loadRow = async (groupId, name) => (await get('/api/console/overview', {query: {groupId, q: name, itemsPerPage: 100}})).results.find(r =>
	r.name === name) ?? null;

/* The whole of replicationSpecs, as PATCH wants it, with the same hardware everywhere. */
export function scaled(cluster, {instanceSize, diskSizeGB, nodeCount: nodes}) {
	return cluster.replicationSpecs.map(spec => ({zoneName: spec.zoneName, regionConfigs: spec.regionConfigs.map((r, i) => {
		const next = {...r};
		for (const k of ['electableSpecs', 'readOnlySpecs', 'analyticsSpecs'])
			if (r[k])
				next[k] = {...r[k], ...(instanceSize && {instanceSize}), ...(diskSizeGB && {diskSizeGB})};
		if (i === 0 && nodes)
			next.electableSpecs = {...next.electableSpecs, nodeCount: nodes};
		delete next.effectiveElectableSpecs;
		return next;
	})}));
}
