/* The machines that the databases run on. */
import {html, get, useLoad, useWhile, Page, Table, Empty, Fault, Notice, StatePill, Meter, Time, words, once, number, room} from './parts/kit.js';

const w = words('hosts');
const share = (used, all) => all > 0 && used >= 0 ? used / all * 100 : undefined;

const COLUMNS = once(() => [{key: 'name', label: w('host'), main: true, value: h => h.name},
	{key: 'state', label: w('state'), width: '13%', value: h => h.alive === false ? 0 : 1,
	cell: h => html`<${StatePill} state=${h.alive === false ? 'DOWN' : h.cordoned ? 'CORDONED' : 'UP'}
	kind=${h.alive !== false && h.cordoned ? 'off' : undefined} />`},
	{key: 'clusters', label: w('clusters'), width: '10%', value: h => h.clusters ?? 0, cell: h => number(h.clusters ?? 0)},
		{key: 'cores', label: w('cores'), width: '12%', value: h => h.cores ?? 0,
		cell: h => h.coresPromised === undefined ? number(h.cores) : w('of', {used: number(h.coresPromised, 1), all: number(h.cores)})},
	{key: 'memory', label: w('memory'), width: '18%', value: h => h.memoryBytes ?? 0,
		cell: h => h.memoryPromised === undefined ? room(h.memoryBytes) :
		html`<${Meter} value=${share(h.memoryPromised, h.memoryBytes)} label=${w('memory')}
		note=${w('of', {used: room(h.memoryPromised), all: room(h.memoryBytes)})} />`},
	{key: 'disk', label: w('disk'), width: '18%', value: h => h.diskFreeBytes ?? 0,
		cell: h => h.diskBytes ? html`<${Meter} value=${share(h.diskBytes - h.diskFreeBytes, h.diskBytes)} label=${w('disk')}
		note=${w('free', {size: room(h.diskFreeBytes)})} />` : room(h.diskFreeBytes)},
	{key: 'seen', label: w('seen'), width: '11%', wide: true, value: h => h.seenAt ?? '', cell: h => html`<${Time} at=${h.seenAt} kind="ago" />`}]);

export default function Screen() {
	const {data, error, reload} = useLoad(async signal => (await get('/api/console/hosts', {signal})).results, [], {key: 'hosts'});
	useWhile(true, reload, 15000);
	return html`<${Page} title=${w('title')}>${error?.status === 403 || error?.status === 404 ? html`<${Notice} kind="info">${w('notYours')}<//>` :
		html`<${Fault} error=${error} retry=${reload} />
		<section class="card" aria-label=${w('title')}><${Table} label=${w('title')} columns=${COLUMNS()} rows=${data} failed=${error} keyOf=${h => h.id ?? h.name}
			empty=${html`<${Empty} title=${w('none')} />`} /></section>`}<//>`;
}
