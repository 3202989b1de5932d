/* The logs of a cluster's nodes: read, searched and followed here, or downloaded as files. */
import {html, call, useEffect, useMemo, useQuery, setQuery, useRef, useState, Button, Card, Empty, Field, Fault, Segments, Select, Search, Dialog, Facts, Time, Check, save, asDate,
	words, number} from './kit.js';
import {nodeName, isPrimary} from './clusters.js';

const w = words('logs');
const HOURS = {quarter: 0.25, hour: 1, day: 24, week: 168};
const FILES = ['db', 'db-audit-log'], LEVELS = {all: /^/, warn: /WARN|ERROR|FATAL|PANIC/, error: /ERROR|FATAL|PANIC/};
const TAIL_MS = 2000, KEPT = 5000, SHOWN = 500, BYTES_MOST = 24e6;

/* A line is a document of the server's, or text. */
function parsed(text, id) {
	let d = null;
	try {
		d = JSON.parse(text);
	} catch { /* a line of another kind */ }
	if (!d || typeof d !== 'object')
		return {id, text, level: '', at: '', whole: {}};
	return {id, text: d.message ?? d.statement ?? text, level: d.error_severity ?? d.level ?? '', at: d.timestamp ?? d.ts ?? d.t?.$date ?? '', whole: d};
}

/* The text of a compressed answer; no more of it than a page can hold: the newest stands at the end, so the beginning is let go. */
async function textOf(answer) {
	const reader = answer.body.pipeThrough(new DecompressionStream('gzip')).pipeThrough(new TextDecoderStream()).getReader();
	let text = '';
	for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
		text += piece.value;
		if (text.length > BYTES_MOST)
			text = text.slice(-BYTES_MOST / 2);
	}
	return text;
}

/* Lines from a time on: {lines, error, busy, reload}; with `tail` new ones as they come. A line that was read is known by its text. */
function useLines(groupId, host, file, hours, tail) {
	const [state, setState] = useState({lines: null, error: null, busy: true}), from = useRef(0), seen = useRef(new Set()), turn = useRef(0), count = useRef(0);
	const read = async (anew, mine) => {
		const now = Math.floor(Date.now() / 1000), startDate = anew ? Math.floor(now - hours * 3600) : from.current;
		try {
			const text = await textOf(await call('downloadClusterLog', {groupId, hostName: host, logName: file}, {form: 'gzip', query: {startDate, endDate: now + 1}}));
			if (mine !== turn.current)
				return;
			if (anew)
				seen.current = new Set();
			const fresh = text.split('\n').filter(l => l.trim() && !seen.current.has(l)).slice(-KEPT);
			fresh.forEach(l => seen.current.add(l));
			from.current = Math.max(startDate, now - 5); // lines of the same second may come later
			const more = fresh.map(l => parsed(l, ++count.current));
			setState(s => ({lines: [...anew ? [] : s.lines ?? [], ...more].slice(-KEPT), error: null, busy: false}));
		} catch (error) {
			if (mine === turn.current)
				setState(s => ({...s, error, busy: false}));
		}
	};
	const reload = () => {
		setState(s => ({...s, busy: true}));
		read(true, ++turn.current);
	};
	useEffect(reload, [groupId, host, file, hours]);
	useEffect(() => {
		if (!tail)
			return undefined;
		let reading = false;
		const timer = setInterval(async () => {
			if (reading || document.hidden)
				return;
			reading = true;
			await read(false, turn.current);
			reading = false;
		}, TAIL_MS);
		return () => clearInterval(timer);
	}, [tail, groupId, host, file, hours]);
	return {...state, reload};
}

const NOT_TOLD = new Set(['message', 'timestamp', 'error_severity', 'line_num', 'session_start', 'vxid', 'txid', 'query_id', 'leader_pid']);
const labelOf = key => key.replace(/_/g, ' ').replace(/^./, c => c.toUpperCase());

function Entry({line, onClose}) {
	return html`<${Dialog} kind="wide" title=${w('one')} onClose=${onClose}><pre class="raw mono" tabindex="0" aria-label=${w('message')}>${line.text}</pre>
		<${Facts} items=${[[w('at'), line.at && html`<${Time} at=${line.at} kind="full" />`], [w('level'), line.level], ...Object.entries(line.whole).filter(([k, v]) =>
			!NOT_TOLD.has(k) && typeof v !== 'object').map(([k, v]) => [labelOf(k), String(v)])]} /><//>`;
}

/* The part of a text that was looked for stands out. */
function Found({text, q}) {
	const at = q ? text.toLowerCase().indexOf(q) : -1;
	return at < 0 ? text : html`${text.slice(0, at)}<mark>${text.slice(at, at + q.length)}</mark>${text.slice(at + q.length)}`;
}

const clock = at => at ? asDate(at).toLocaleTimeString(undefined, {hourCycle: 'h23'}) : '';
const levelClass = level => /ERROR|FATAL|PANIC/.test(level) ? 'bad' : /WARN/.test(level) ? 'warn' : 'dim';

function Lines({lines, q, tail, onOpen}) {
	const box = useRef(), down = useRef(true);
	useEffect(() => {
		if (tail && down.current)
			box.current.scrollTop = box.current.scrollHeight;
	}, [lines, tail]);
	return html`<div class="log mono" ref=${box} tabindex="0" role="log" aria-live=${tail ? 'polite' : 'off'} aria-label=${w('title')}
		onScroll=${e => { down.current = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 40; }}>${lines.map(l =>
		html`<button type="button" class="log-line" key=${l.id} onClick=${() => onOpen(l)}><time title=${l.at}>${clock(l.at)}</time><span class=${levelClass(l.level)}>${l.level}</span><span
			class="log-text"><${Found} text=${l.text.length > 600 ? `${l.text.slice(0, 600)}…` : l.text} q=${q} /></span></button>`)}</div>`;
}

export default function Logs({groupId, processes}) {
	const [node, setNode] = useState(''), [file, setFile] = useState('db'), [since] = useQuery('since', 'hour'), [q] = useQuery('q'), [level] = useQuery('level', 'all'),
		[tail, setTail] = useState(false), [open, setOpen] = useState(null), [fault, setFault] = useState(null), [busy, setBusy] = useState(false);
	const process = processes.find(p => p.id === node) ?? processes.find(isPrimary) ?? processes[0];
	const {lines, error, busy: reading, reload} = useLines(groupId, process?.hostname, file, HOURS[since] ?? 1, tail);
	const asked = q.trim().toLowerCase(), fits = useMemo(() => (lines ?? []).filter(l => (LEVELS[level] ?? LEVELS.all).test(l.level) &&
		(!asked || l.text.toLowerCase().includes(asked) || Object.values(l.whole).some(v => String(v).toLowerCase().includes(asked)))), [lines, asked, level]);
	const download = async () => {
		setFault(null);
		setBusy(true);
		try {
			const now = Math.floor(Date.now() / 1000);
			await save(await call('downloadClusterLog', {groupId, hostName: process.hostname, logName: file},
				{form: 'gzip', query: {startDate: Math.floor(now - HOURS[since] * 3600), endDate: now}}), `${nodeName(process)}-${file}.log.gz`);
		} catch (e) {
			setFault(e);
		}
		setBusy(false);
	};
	if (!process)
		return html`<section class="card"><${Empty} title=${w('noNode')} /></section>`;
	return html`<${Fault} error=${fault ?? error} retry=${reload} /><${Card} flush title=${w('title')} note=${w(`log.${file}`)}
		actions=${html`<${Check} checked=${tail} onInput=${setTail} label=${w('tail')} /><${Button} small busy=${busy} onClick=${download}
			aria-label=${w('downloadOf', {log: w(`log.${file}`), node: nodeName(process)})}>${w('download')}<//>`}>
		<div class="bar"><${Field} label=${w('node')}><${Select} value=${process.id} onInput=${setNode} options=${processes.map(p => ({value: p.id, label: nodeName(p)}))} /><//>
			<${Field} label=${w('file')}><${Select} value=${file} onInput=${setFile} options=${FILES.map(f => ({value: f, label: w(`log.${f}`)}))} /><//>
			<${Field} label=${w('since')}><${Select} value=${since} onInput=${v => setQuery({since: v === 'hour' ? '' : v})}
				options=${Object.keys(HOURS).map(k => ({value: k, label: w(`since.${k}`)}))} /><//>
			<${Segments} label=${w('level')} current=${level} onPick=${v => setQuery({level: v === 'all' ? '' : v})} options=${Object.keys(LEVELS).map(id => ({id, label: w(`level.${id}`)}))} />
			<${Search} label=${w('find')} value=${q} onInput=${v => setQuery({q: v})} /></div>
		${lines && !fits.length ? html`<${Empty} title=${w(lines.length ? 'noneFits' : 'none')} text=${w(tail ? 'noneTail' : 'noneText')} />` :
			html`<${Lines} lines=${fits.slice(-SHOWN)} q=${asked} tail=${tail} onOpen=${setOpen} />`}
		<div class="foot" role="status">${reading && !lines ? w('reading') : w(fits.length > SHOWN ? 'countSome' : 'count', {n: number(fits.length), shown: number(Math.min(SHOWN, fits.length))})}</div><//>
		${open && html`<${Entry} line=${open} onClose=${() => setOpen(null)} />`}`;
}
