/* The logs of a cluster's nodes, as files. */
import {html, call, useState, Table, Button, Card, Field, Select, Notice, save, errorText, words} from './kit.js';
import {nodeName} from './clusters.js';

const w = words('logs');
const HOURS = {hour: 1, day: 24, week: 168};

export default function Logs({groupId, processes}) {
	const [since, setSince] = useState('day'), [fault, setFault] = useState(''), [busy, setBusy] = useState('');
	const download = async (p, logName) => {
		setFault('');
		setBusy(p.id + logName);
		try {
			const now = Math.floor(Date.now() / 1000);
			const answer = await call('downloadClusterLog', {groupId, hostName: p.hostname, logName},
				{form: 'gzip', query: {startDate: now - HOURS[since] * 3600, endDate: now}});
			await save(answer, `${nodeName(p)}-${logName}.log.gz`);
		} catch (e) {
			setFault(errorText(e));
		}
		setBusy('');
	};
	const columns = [{key: 'node', label: w('node'), main: true, value: nodeName},
		{key: 'role', label: w('role'), width: '10rem', wide: true, value: p => w(/PRIMARY/.test(p.typeName) ? 'primary' : 'standby')},
		{key: 'get', label: '', label2: w('download'), width: '19rem', sort: false,
			cell: p => html`<span class="acts">${['db', 'db-audit-log'].map(log => html`<${Button} small key=${log} busy=${busy === p.id + log}
			aria-label=${w('downloadOf', {log: w(`log.${log}`), node: nodeName(p)})}
				onClick=${() => download(p, log)}>${w(`log.${log}`)}<//>`)}</span>`}];
	return html`${fault && html`<${Notice} kind="bad">${fault}<//>`}<${Card} flush title=${w('title')} note=${w('text')}>
		<div class="bar"><${Field} label=${w('since')}><${Select} value=${since} onInput=${setSince}
			options=${Object.keys(HOURS).map(k => ({value: k, label: w(`since.${k}`)}))} /><//></div>
		<${Table} label=${w('title')} columns=${columns} rows=${processes} /><//>`;
}
