/* The backups of a project: its clusters, and of the chosen one everything. */
import {html, callAll, useLoad, useLive, useCalm, useQuery, setQuery, Page, Field, Select, Empty, Fault, Button, words} from './parts/kit.js';
import ClusterBackups from './parts/cluster_backups.js';

const w = words('backups');

export default function Screen({params: {groupId}}) {
	const [chosen] = useQuery('cluster');
	const {data, error, reload} = useLoad(() => callAll('listClusters', {groupId}), [groupId], {key: `clusters ${groupId}`});
	const calm = useCalm(reload);
	useLive({groupId}, calm);
	const cluster = data?.find(c => c.name === chosen) ?? data?.find(c => c.backupEnabled) ?? data?.[0];
	return html`<${Page} title=${w('title')} needs="takeSnapshots"><${Fault} error=${error} retry=${reload} />
		${data && !data.length && html`<section class="card"><${Empty} title=${w('noCluster')} text=${w('noClusterText')}
			action=${html`<${Button} op="createCluster" kind="go" to=${`/projects/${groupId}/create`}>${w('create')}<//>`} /></section>`}
		${cluster && html`<div class="bar bare"><${Field} label=${w('cluster')}><${Select} value=${cluster.name}
			onInput=${v => setQuery({cluster: v})} options=${data.map(c => c.name)} /><//></div>
			<${ClusterBackups} key=${cluster.name} groupId=${groupId} cluster=${cluster} onChanged=${reload} />`}<//>`;
}
