import {html, cls, useEffect, useReducer, useState} from '../lib.js';
import {t, hasText, time, utc, bytes as bytesText, asDate} from '../texts.js';
import {Icon} from './icons.js';
import {say} from './say.js';

const KINDS = {
	ok: ['IDLE', 'ACTIVE', 'AVAILABLE', 'COMPLETED', 'SUCCEEDED', 'SUCCESSFUL', 'HEALTHY', 'CLOSED', 'PAID', 'UP', 'DONE', 'RUNNING', 'VALID', 'STARTED', 'LIVE', 'CONFIRMED', 'ENABLED', 'READY'],
	busy: ['CREATING', 'UPDATING', 'DELETING', 'INITIATING', 'QUEUED', 'PENDING', 'IN_PROGRESS', 'INPROGRESS', 'RESTORING', 'CHANGING', 'STARTING', 'STOPPING', 'WAITING_FOR_USER',
		'UPGRADING', 'SCALING', 'WORKING', 'CATCHING_UP', 'INVOICED', 'ACKNOWLEDGED', 'TRACKING', 'VALIDATING', 'BUILDING'],
	warn: ['WARNING', 'DEGRADED', 'TRACKED', 'EXPIRED', 'LOCKED', 'EXPIRING', 'STALE', 'DOES_NOT_EXIST'],
	bad: ['REPAIRING', 'FAILED', 'OPEN', 'ERROR', 'DOWN', 'UNAVAILABLE', 'FAILED_TO_START', 'CANCELED_FAILED', 'UNREACHABLE', 'REFUSED'],
	off: ['PAUSED', 'STOPPED', 'DELETED', 'CANCELLED', 'CANCELED', 'DISABLED', 'INACTIVE', 'OFF', 'FREE', 'FORGIVEN']
};
const kindOf = state => Object.keys(KINDS).find(k => KINDS[k].includes(state)) ?? 'off';
const words = state => {
	const text = String(state).replace(/([a-z])([A-Z])/g, '$1 $2').replace(/_/g, ' ').toLowerCase();
	return text[0].toUpperCase() + text.slice(1);
};

/* state: a state's name as the API has it. kind: overrides the colour (ok, warn, bad, busy, off); text: overrides the word. */
export function StatePill({state, kind, text}) {
	if (!state && !text)
		return html`<span class="dim">—</span>`;
	const k = kind ?? kindOf(String(state).toUpperCase()), key = `state.${state}`;
	return html`<span class=${`state ${k}`} ><${Icon} name=${k} class=${k === 'busy' && 'spin'} />${text ?? (hasText(key) ? t(key) : words(state))}</span>`;
}

/* A time in the viewer's zone; the UTC time as its title. kind: short, full, date, ago (which moves on by itself). */
export function Time({at, kind = 'short'}) {
	const [, redraw] = useReducer(n => n + 1, 0);
	useEffect(() => {
		if (kind !== 'ago')
			return undefined;
		const timer = setInterval(redraw, 20000);
		return () => clearInterval(timer);
	}, [kind]);
	if (at === undefined || at === null || at === '' || Number.isNaN(asDate(at).getTime()))
		return html`<span class="dim">—</span>`;
	return html`<time datetime=${asDate(at).toISOString()} title=${utc(at)}>${time(at, kind)}</time>`;
}

export const Bytes = ({value}) => html`<span title=${value === undefined || value === null ? undefined : `${value} B`}>${bytesText(value)}</span>`;

export async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		const area = document.createElement('textarea');
		area.value = text;
		area.className = 'hidden';
		(document.querySelector('dialog[open]') ?? document.body).append(area);
		area.select();
		document.execCommand('copy');
		area.remove();
	}
	say(t('copied'));
}

/* Text to paste elsewhere, with a button. bare: the button alone. */
export function Copy({text, label, bare, children}) {
	const button = html`<button type="button" class=${cls('btn', 's')} aria-label=${label ? t('copyThing', {thing: label}) : undefined} onClick=${() => copyText(text)}>${t('copy')}</button>`;
	return bare ? button : html`<div class="code mono" tabindex="0" role="group" aria-label=${label}>${children ?? text}${button}</div>`;
}

/* A secret that is shown this one time. */
export function SecretOnce({text, label, children}) {
	const [shown, setShown] = useState(false);
	return html`<div class="secret"><div class="secret-note"><${Icon} name="key" /><b>${label ?? t('secret.title')}</b> ${t('secret.once')}</div>
		<div class="code mono two-btn" role="group" aria-label=${label ?? t('secret.title')}><span data-secret="">${shown ? text : '•'.repeat(Math.min(24, String(text).length))}</span>
			<span class="code-acts"><button type="button" class="btn s" aria-pressed=${String(shown)} onClick=${() => setShown(!shown)}>${shown ? t('hide') : t('show')}</button>
			<button type="button" class="btn s" onClick=${() => copyText(text)}>${t('copy')}</button></span></div>${children}</div>`;
}

/* A share, as a bar with its number. warn and bad: from which share on. */
export function Meter({value, label, warn = 75, bad = 90, note}) {
	if (value === undefined || value === null)
		return html`<span class="dim">—</span>`;
	const level = value > bad ? 'bad' : value > warn ? 'warn' : undefined, share = Math.max(0, Math.min(100, value));
	return html`<div class="disk"><u class=${level} role="meter" aria-label=${label} aria-valuenow=${Math.round(value)} aria-valuemin="0" aria-valuemax="100"><i style=${{width: `${share}%`}}></i></u>
		<span class=${level}>${Math.round(value)}%</span>${note && html`<small>${note}</small>`}</div>`;
}
