/* The keyboard: Ctrl-K jumps, / searches, j and k move over rows, Esc leaves a field, ? tells all this. */
import {html, store} from './lib.js';
import {t} from './texts.js';
import {Dialog} from './ui/dialog.js';

/* palette, help or null */
export const overlay = store(null);

const typing = e => e.target.closest?.('input, textarea, select, [contenteditable]');

function moveRow(step) {
	const table = document.activeElement?.closest?.('table[data-keys]') ?? document.querySelector('main table[data-keys]');
	table?.tBodies[0]?.dispatchEvent(new CustomEvent('move-row', {detail: step}));
	return Boolean(table);
}

function pressed(e) {
	if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k') {
		e.preventDefault();
		if (!document.querySelector('dialog[open]'))
			overlay.set('palette');
		return;
	}
	if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]'))
		return;
	if (typing(e)) {
		if (e.key === 'Escape' && e.target.matches('[data-search]'))
			e.target.blur();
		return;
	}
	if (e.key === '/') {
		const field = document.querySelector('main [data-search]');
		e.preventDefault();
		if (field)
			field.focus();
		else
			overlay.set('palette');
	} else if (e.key === '?') {
		e.preventDefault();
		overlay.set('help');
	} else if (e.key === 'j' || e.key === 'k') {
		if (moveRow(e.key === 'j' ? 1 : -1))
			e.preventDefault();
	}
}

export function startKeys() {
	document.addEventListener('keydown', pressed);
	document.addEventListener('keydown', () => import('./ui/focus.js'), {once: true});
}

const KEYS = [['Ctrl K', 'keys.palette'], ['/', 'keys.search'], ['j k', 'keys.rows'], ['Enter', 'keys.open'], ['Esc', 'keys.leave'], ['?', 'keys.help']];
export const KeyHelp = () => html`<${Dialog} title=${t('keys.title')} onClose=${() => overlay.set(null)}><dl class="keys">${KEYS.map(([keys, text]) =>
	html`<div key=${keys}><dt>${keys.split(' ').map(k => html`<kbd key=${k}>${k}</kbd> `)}</dt><dd>${t(text)}</dd></div>`)}</dl><//>`;
