/* What a size means on this host: cores, memory, disk; and which sizes a place offers. */
import {html, callAll, get, useLoad, Field, Select, words, room} from './kit.js';

const w = words('sizes');

/* Sizes by provider and region, what each is here, and what the host has. */
export function useOffer(groupId) {
	const {data, error} = useLoad(async () => {
		const [regions, sizes, versions] = await Promise.all([callAll('listClusterProviderRegions', {groupId}),
			get('/api/console/sizes', {query: {groupId}}).catch(() => ({results: []})), callAll('getDbVersions', {groupId}).catch(() => [])]);
		return {regions, host: sizes.host, means: new Map(sizes.results.map(s => [s.name, s])),
			versions: [...new Set(versions.map(v => String(v.version).split('.')[0]))]};
	}, [groupId]);
	return {offer: data, error};
}

export function sizesIn(offer, provider, region) {
	const list = offer?.regions.find(p => p.provider === provider)?.instanceSizes ?? [];
	return list.filter(s => !region || !s.availableRegions?.length || s.availableRegions.some(r => r.name === region)).map(s =>
		({name: s.name, ...offer.means.get(s.name)}));
}

export function regionsIn(offer, provider) {
	const all = (offer?.regions.find(p => p.provider === provider)?.instanceSizes ?? []).flatMap(s => s.availableRegions ?? []);
	return [...new Set(all.map(r => r.name))].sort();
}

export function useSizes(groupId, provider, region) {
	const {offer} = useOffer(groupId);
	return {list: sizesIn(offer, provider, region), host: offer?.host};
}

/* Those that the roomiest host could hold; the smallest where none is. */
export function fitting(list, host) {
	const fits = host ? list.filter(s => !(s.memoryBytes > host.memoryBytes || s.cores > host.cores)) : list;
	return fits.length ? fits : list.slice(0, 1);
}

export const sizeText = s => s.cores ? w('means', {cores: s.cores, memory: room(s.memoryBytes)}) : '';

export function SizeField({sizes: {list, host}, value, onInput, name}) {
	const now = list.find(s => s.name === value);
	const sensible = fitting(list, host), over = now && host && (now.memoryBytes > host.memoryBytes || now.cores > host.cores);
	const help = [now?.cores && w('each', {cores: now.cores, memory: room(now.memoryBytes)}), now?.diskGB && w('disk', {disk: now.diskGB}),
		now?.connections && w('connections', {connections: now.connections}),
		host && w('host', {cores: host.cores, memory: room(host.memoryBytes), disk: room(host.diskFreeBytes)}),
			sensible.length < list.length && w('larger', {n: list.length - sensible.length}), over && w('over')].filter(Boolean).join(' ');
	const options = sensible.some(s => s.name === value) || !value ? sensible : [now ?? {name: value}, ...sensible];
	return html`<${Field} label=${w('size')} name=${name} help=${help || undefined}><${Select} value=${value} onInput=${onInput}
		options=${options.map(s => ({value: s.name, label: sizeText(s) ? `${s.name} — ${sizeText(s)}` : s.name}))} /><//>`;
}
