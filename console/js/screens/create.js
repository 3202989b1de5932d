/* A new cluster: where, how large, which version; what the service refuses stands at the field that it is about. */
import {
	html, call, go, useState, useMemo, Page, Form, Field, Fieldset, Input, Select, Check, Card, Facts, Fault, say, words, number, room
} from './parts/kit.js';
import {useOffer, sizesIn, regionsIn, SizeField} from './parts/sizes.js';
import {policyFields} from './parts/policy_fields.js';

const w = words('create');
const REGION = 'replicationSpecs[0].regionConfigs[0]', SPEC = `${REGION}.electableSpecs`;
const FIRST = {AWS: 'US_EAST_1', GCP: 'CENTRAL_US', AZURE: 'US_EAST_2'};

/* Refusals that name no field of the body, by their code. */
const BY_CODE = {DUPLICATE_CLUSTER_NAME: 'name', CLUSTER_ALREADY_EXISTS: 'name', CLUSTER_NAME_PREFIX_INVALID: 'name', INVALID_CLUSTER_NAME: 'name',
	TOO_MANY_NODES: `${SPEC}.nodeCount`,
	CANNOT_CREATE_CLUSTER_NO_ROOM: `${SPEC}.instanceSize`, OUT_OF_CAPACITY: `${SPEC}.instanceSize`, NO_CAPACITY: `${SPEC}.instanceSize`};
const BY_WORD = [[/\bname\b/i, 'name'], [/region/i, `${REGION}.regionName`], [/disk/i, `${SPEC}.diskSizeGB`], [/nodes?\b/i, `${SPEC}.nodeCount`],
	[/size/i, `${SPEC}.instanceSize`]];

/* Where a refusal is shown: at the field that it names, or at the one that it is about. */
async function placed(error) {
	if (error.code === 'RESOURCE_POLICY_VIOLATION') {
		const fields = await policyFields(error);
		error.fields = Object.fromEntries(fields.map(f => [{region: `${REGION}.regionName`, provider: `${REGION}.providerName`,
			size: `${SPEC}.instanceSize`, disk: `${SPEC}.diskSizeGB`, nodes: `${SPEC}.nodeCount`, name: 'name',
			version: 'dbMajorVersion', backup: 'backupEnabled', protect: 'terminationProtectionEnabled'}[f], error.detail]));
	} else if (error.status && !Object.keys(error.fields ?? {}).length) {
		const field = BY_CODE[error.code] ?? (/LIMIT|EXIST|DUPLICATE|CAPACITY|ROOM/.test(error.code) ?
			BY_WORD.find(([re]) => re.test(error.detail))?.[1] : undefined);
		if (field)
			error.fields = {[field]: error.detail};
	}
	return error;
}

const bodyOf = f => ({
	name: f.name.trim(), clusterType: 'REPLICASET', backupEnabled: f.backup, pitEnabled: f.backup && f.pit, terminationProtectionEnabled: f.protect,
		...(f.version && {dbMajorVersion: f.version}),
	replicationSpecs: [{regionConfigs: [{providerName: f.provider, regionName: f.region, priority: 7,
		electableSpecs: {instanceSize: f.size, nodeCount: Number(f.nodes), ...(f.disk && {diskSizeGB: Number(f.disk)})}}]}]
});

function Sum({f, sizes, host}) {
	const size = sizes.find(s => s.name === f.size), n = Number(f.nodes), disk = f.disk || size?.diskGB;
	return html`<${Card} title=${w('sum')} class="sum"><${Facts} items=${[[w('nodes'), number(n)],
		[w('cores'), size?.cores && number(size.cores * n)], [w('memory'), size?.memoryBytes && room(size.memoryBytes * n)],
		[w('allDisk'), disk && w('gb', {n: disk * n})], [w('connections'), size?.connections && number(size.connections)],
			[w('hostHas'), host && w('host', {cores: host.cores, memory: room(host.memoryBytes), disk: room(host.diskFreeBytes)})]]} />
		<p class="dim">${w(n > 1 ? 'sumText' : 'sumAlone')}</p><//>`;
}

export default function Screen({params: {groupId}}) {
	const {offer, error} = useOffer(groupId);
	const [f, setF] = useState({name: '', provider: 'AWS', region: '', size: 'M10', nodes: '3', disk: undefined, version: '', backup: true,
		pit: false, protect: false});
	const set = key => value => setF(old => ({...old, [key]: value}));
	const regions = useMemo(() => regionsIn(offer, f.provider), [offer, f.provider]);
	const region = regions.includes(f.region) ? f.region : regions.includes(FIRST[f.provider]) ? FIRST[f.provider] : regions[0] ?? '';
	const sizes = useMemo(() => sizesIn(offer, f.provider, region).filter(s => !/^M[025]$/.test(s.name)), [offer, f.provider, region]);
	const now = {...f, region};
	const make = async () => {
		try {
			const cluster = await call('createCluster', {groupId}, {body: bodyOf(now)});
			say(w('making', {name: cluster.name}));
			go(`/projects/${groupId}/clusters/${encodeURIComponent(cluster.name)}`);
		} catch (e) {
			throw await placed(e);
		}
	};
	return html`<${Page} title=${w('title')}><${Fault} error=${error} />
		<div class="two form-page"><${Card}><${Form} op="createCluster" onSubmit=${make} submit=${w('make')} label=${w('title')} disabled=${!offer}>
			<${Field} label=${w('name')} name="name" help=${w('nameHelp')} required><${Input} value=${f.name} onInput=${set('name')} maxlength="64"
				autofocus /><//>
			<${Fieldset} legend=${w('where')}>
				<${Field} label=${w('provider')} name=${`${REGION}.providerName`} help=${w('providerHelp')}><${Select} value=${f.provider}
					onInput=${set('provider')} options=${(offer?.regions ?? [{provider: 'AWS'}]).map(r => r.provider)} /><//>
				<${Field} label=${w('region')} name=${`${REGION}.regionName`}><${Select} value=${region} onInput=${set('region')} options=${regions}
					/><//><//>
			<${Fieldset} legend=${w('howLarge')}>
				<${SizeField} sizes=${{list: sizes, host: offer?.host}} value=${f.size} onInput=${set('size')} name=${`${SPEC}.instanceSize`} />
				<${Field} label=${w('nodes')} name=${`${SPEC}.nodeCount`} help=${w('nodesHelp')}><${Select} value=${f.nodes} onInput=${set('nodes')}
					options=${['1', '3', '5', '7']} /><//>
				<${Field} label=${w('disk')} name=${`${SPEC}.diskSizeGB`} hint=${w('optional')} help=${w('diskHelp')}><${Input} type="number" min="10"
					max="4096" value=${f.disk} onInput=${set('disk')} /><//><//>
			<${Fieldset} legend=${w('what')}>
				<${Field} label=${w('version')} name="dbMajorVersion"><${Select} value=${f.version} onInput=${set('version')} empty=${w('newest')}
					options=${(offer?.versions ?? []).map(v => ({value: v, label: `PostgreSQL ${v}`}))} /><//>
				<${Check} name="backupEnabled" checked=${f.backup} onInput=${set('backup')} label=${w('backups')} help=${w('backupsHelp')} />
				${f.backup && html`<${Check} name="pitEnabled" checked=${f.pit} onInput=${set('pit')} label=${w('pit')} help=${w('pitHelp')} />`}
				<${Check} name="terminationProtectionEnabled" checked=${f.protect} onInput=${set('protect')} label=${w('protect')}
					help=${w('protectHelp')} /><//>
		<//><//><${Sum} f=${now} sizes=${sizes} host=${offer?.host} /></div>
	<//>`;
}
