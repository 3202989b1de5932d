/* All that screens are made of, from one place, and the few pieces that only they need. */
import {html, useState, useEffect, useRef} from '../../lib.js';
import {t, hasText, number} from '../../texts.js';
import {roleWords} from '../../may.js';
import {Dialog, Form, Notice, Button, errorText, say} from '../../ui/index.js';

export {html, cls, useState, useEffect, useMemo, useRef, useCallback} from '../../lib.js';
export {call, callAll, get, send, pathOf, ApiError} from '../../api.js';
export {t, hasText, number, bytes, time, duration, ago, asDate} from '../../texts.js';
export {useSession, session, loadSession} from '../../session.js';
export {useMay, useLack, learnProject} from '../../may.js';
export {
	Page, Card, Notice, Empty, Tabs, Segments, Facts, Menu, Form, Field, FaultsOf, Fieldset, Input, Area, Select, Check, Button, Search, errorText, Dialog,
		ConfirmDanger, StatePill, Time, Bytes, Copy, SecretOnce, Meter,
	Table, Pager, Plot, useLoad, useLive, useCalm, Icon, say, Link, go, useQuery, setQuery, href
} from '../../ui/index.js';

/* const w = words('overview'): w('title') is the text screens.overview.title; w.or(a, b): a, or b where there is no a. */
export function words(screen) {
	const w = (key, values) => t(`screens.${screen}.${key}`, values);
	w.or = (key, other, values) => hasText(`screens.${screen}.${key}`) ? w(key, values) : w(other, values);
	return w;
}
const w = words('kit');

/* What holds texts is made when it is first used: texts may come after the module. */
export const once = make => {
	let made;
	return () => made ??= make();
};

/* CLUSTER_MANAGER -> "Cluster manager" */
export const plain = roleWords;

/* What could not be loaded, and why. */
export const Fault = ({error, retry}) => error ? html`<${Notice} kind="bad"
	action=${retry && html`<${Button} small onClick=${retry}>${w('again')}<//>`}>${errorText(error)}<//>` : null;

export const DialogForm = ({title, kind, onClose, children, ...form}) =>
	html`<${Dialog} title=${title} onClose=${onClose} kind=${kind}><${Form} ...${form} onCancel=${onClose}>${children}<//><//>`;

/* A part that is loaded when it is first shown. */
export function Lazy({load, ...props}) {
	const [Part, setPart] = useState(null), [error, setError] = useState(null);
	useEffect(() => {
		load().then(m => setPart(() => m.default), setError);
	}, []);
	return Part ? html`<${Part} ...${props} />` : html`<${Fault} error=${error} />`;
}

/* A document of the API, as it is. */
export const Raw = ({value, label}) => html`<pre class="raw mono" tabindex="0"
	aria-label=${label ?? w('document')}>${JSON.stringify(value, (k, v) => k === 'links' ? undefined : v, 1)}</pre>`;

/* Calls fn again and again while `on` holds: for what changes without telling. */
export function useWhile(on, fn, ms = 2000) {
	const now = useRef();
	now.current = fn;
	useEffect(() => {
		if (!on)
			return undefined;
		const timer = setInterval(() => document.hidden || now.current(), ms);
		return () => clearInterval(timer);
	}, [Boolean(on), ms]);
}

/* A refusal whose code is about one field is shown there: await atField(call(…), {USER_ALREADY_EXISTS: 'username'}). */
export async function atField(promise, byCode) {
	try {
		return await promise;
	} catch (e) {
		const field = byCode[e.code];
		if (field)
			e.fields = {...e.fields, [field]: e.detail};
		throw e;
	}
}

/* Done at once, with the way back offered for a moment. */
export const sayUndo = (text, undo) => say(text, {undo, label: w('undo')});

/* Boxes of which several can be chosen. options: [{value, label, help}] */
export function Choices({legend, options, value, onInput, name, fault}) {
	const flip = (one, on) => onInput(on ? [...value, one] : value.filter(v => v !== one));
	return html`<fieldset class="choices"><legend>${legend}</legend>${options.map(o =>
		html`<label class="choice" key=${o.value}><input type="checkbox" name=${name} checked=${value.includes(o.value)}
		onChange=${e => flip(o.value, e.target.checked)} /><span>${o.label}${o.help &&
			html`<small class="dim">${o.help}</small>`}</span></label>`)}${fault && html`<div class="fault">${fault}</div>`}</fieldset>`;
}

/* Seconds since 1970 <-> what an input of the type datetime-local holds, in the viewer's zone. */
export const localInput = ms => {
	const d = new Date(ms - new Date(ms).getTimezoneOffset() * 60000);
	return d.toISOString().slice(0, 19);
};
export const fromLocalInput = text => new Date(text).getTime();

/* Disks and memory, in units of 1024: a size that was asked for is shown as it was asked for. */
export const room = value => {
	if (value === null || value === undefined)
		return '—';
	const step = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(1, value)) / 10))), v = value / 1024 ** step;
	return `${number(v, v < 10 && step ? 1 : 0)} ${['B', 'KB', 'MB', 'GB', 'TB'][step]}`;
};

const amounts = new Intl.NumberFormat('en', {minimumFractionDigits: 2, maximumFractionDigits: 2});
/* An amount of money. */
export const amount = value => value === undefined || value === null ? '—' : amounts.format(value);

/* A file of the API, saved under a name. */
export async function save(answer, name) {
	const url = URL.createObjectURL(await answer.blob());
	const a = document.createElement('a');
	a.href = url;
	a.download = name;
	document.body.append(a);
	a.click();
	a.remove();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}
