/* Ctrl-K: screens, projects, clusters and operations by name. A combobox: the focus stays in the field, the arrows move over the
 * list. Projects and clusters are searched by the server, so that thousands of them cost nothing here. */
import {html, cls, file, useEffect, useRef, useState} from './lib.js';
import {t} from './texts.js';
import {get} from './api.js';
import {session} from './session.js';
import {go, place} from './router.js';
import {overlay} from './keys.js';
import {Dialog} from './ui/dialog.js';
import {screensOf} from './nav.js';

const MOST = 12;
let index = null;
/* [[operationId, summary, command, …], …], loaded when it is first searched */
const operations = () => index ??= fetch(file('data/index.json')).then(a => a.json()).catch(() => []);

const fits = (words, text) => {
	const low = text.toLowerCase();
	return words.every(w => low.includes(w));
};
/* What begins with what was typed comes first, then what has a word that does. */
const rank = (text, typed) => {
	const at = ` ${text.toLowerCase()}`.indexOf(` ${typed}`);
	return at === 0 ? 0 : at > 0 ? 1 : 2;
};

async function remote(typed, signal) {
	const [projects, clusters] = await Promise.all([
		get('/api/svc/v2/groups', {query: {q: typed, itemsPerPage: 6}, signal}).catch(() => ({results: []})),
		get('/api/console/overview', {query: {q: typed, itemsPerPage: 6}, signal}).catch(() => ({results: []}))
	]);
	return [
		...clusters.results.filter(c => c.name).map(c => ({label: c.name, note: t('palette.cluster', {project: c.groupName}), to: `/projects/${c.groupId}/clusters/${encodeURIComponent(c.name)}`})),
		...projects.results.filter(p => fits([typed], p.name)).map(p => ({label: p.name, note: t('palette.project'), to: `/projects/${p.id}`}))
	];
}

function useFound(typed) {
	const [ops, setOps] = useState([]), [far, setFar] = useState([]);
	useEffect(() => {
		let gone = false;
		operations().then(list => {
			if (!gone)
				setOps(list);
		});
		return () => { gone = true; };
	}, []);
	useEffect(() => {
		const stop = new AbortController();
		const timer = setTimeout(() => remote(typed.trim(), stop.signal).then(list => {
			if (!stop.signal.aborted)
				setFar(list);
		}), typed ? 120 : 0);
		return () => {
			clearTimeout(timer);
			stop.abort();
		};
	}, [typed]);
	const low = typed.trim().toLowerCase(), words = low.split(/\s+/).filter(Boolean);
	const near = screensOf(place.get().found?.params ?? {}, session.get()).filter(s => fits(words, s.label)).map(s => ({label: s.label, note: s.area ?? t('palette.screen'), to: s.to}));
	const acts = words.length ? ops.filter(([id, summary, command]) => fits(words, `${summary} ${id} ${command}`)).map(([id, summary]) =>
		({label: summary, note: id, to: `/operations/${id}`})) : [];
	return [...near, ...far, ...acts].sort((a, b) => low ? rank(a.label, low) - rank(b.label, low) : 0).slice(0, MOST);
}

export function Palette() {
	const [typed, setTyped] = useState(''), [on, setOn] = useState(0), list = useRef();
	const found = useFound(typed);
	const close = () => overlay.set(null);
	const open = item => {
		close();
		go(item.to);
	};
	const at = Math.min(on, found.length - 1);
	const keys = e => {
		const step = {ArrowDown: 1, ArrowUp: -1}[e.key];
		if (step) {
			e.preventDefault();
			setOn((at + step + found.length) % (found.length || 1));
		} else if (e.key === 'Enter' && found[at]) {
			e.preventDefault();
			open(found[at]);
		}
	};
	useEffect(() => {
		list.current?.children[at]?.scrollIntoView({block: 'nearest'});
	}, [at]);
	return html`<${Dialog} label=${t('palette.label')} class="palette" onClose=${close} bare>
		<input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${found.length ? `palette-${at}` : undefined} aria-autocomplete="list"
			aria-label=${t('palette.label')} placeholder=${t('palette.hint')} autocomplete="off" spellcheck=${false} value=${typed} onInput=${e => { setTyped(e.target.value); setOn(0); }} onKeyDown=${keys} />
		<ul id="palette-list" role="listbox" aria-label=${t('palette.found')} ref=${list}>${found.map((f, i) => html`<li key=${f.to} id=${`palette-${i}`} role="option" aria-selected=${String(i === at)}
			class=${cls(i === at && 'on')} onClick=${() => open(f)} onMouseMove=${() => setOn(i)}>${f.label}<span>${f.note}</span></li>`)}</ul>
		<div class="palette-foot" aria-live="polite">${t('palette.count', {n: found.length})}</div><//>`;
}
