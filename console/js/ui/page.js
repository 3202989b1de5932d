import {html, cls, freshId, useEffect, useLayoutEffect, useRef, useState} from '../lib.js';
import {t} from '../texts.js';
import {Link} from '../router.js';
import {useLack, useMay} from '../may.js';
import {Icon} from './icons.js';

let opened = 0;

/* The frame of a screen. title: its heading and the window's; facts: short things below it; actions: buttons at the right; needs: the operation
 * that the screen is for: who may not call it is told which role is missing. */
export function Page({title, facts, actions, needs, children, class: c}) {
	const heading = useRef(), lack = useLack(needs, undefined, 'role.page');
	useEffect(() => {
		document.title = title ? `${title} · Steward` : 'Steward';
	}, [title]);
	useEffect(() => {
		if (opened++ && !document.querySelector('dialog[open]') && !heading.current?.closest('main')?.contains(document.activeElement))
			heading.current?.focus({preventScroll: true});
	}, []);
	return html`<div class=${cls('page', c)}>
		<div class="head"><div class="head-text"><h1 ref=${heading} tabindex="-1">${title}</h1>${facts && html`<div class="facts">${facts}</div>`}</div>
			${actions && html`<div class="acts">${actions}</div>`}</div>
		${lack && html`<p class="lack"><${Icon} name="key" />${lack}</p>`}
		${children}</div>`;
}

/* A part of a page on a surface of its own. */
export function Card({title, note, actions, children, class: c, flush}) {
	const id = useRef();
	id.current ??= freshId('card');
	return html`<section class=${cls('card', c)} aria-labelledby=${title ? id.current : undefined}>
		${title && html`<header><h2 id=${id.current}>${title}</h2>${note && html`<span class="dim">${note}</span>`}${actions && html`<span class="acts end">${actions}</span>`}</header>`}
		${flush ? children : html`<div class="card-body">${children}</div>`}</section>`;
}

/* kind: info, ok, warn, bad. A bad one is said at once. */
export function Notice({kind = 'info', title, children, action}) {
	return html`<div class=${`notice ${kind}`} role=${kind === 'bad' ? 'alert' : 'status'}>
		<${Icon} name=${{info: 'help', ok: 'ok', warn: 'warn', bad: 'bad'}[kind]} /><div>${title && html`<b>${title}</b> `}${children}</div>${action}</div>`;
}

/* Nothing there yet: what it would be, and the one thing to do about it. */
export const Empty = ({title, text, children, action}) => html`<div class="none"><b>${title}</b>${text ?? children}${action && html`<div class="none-act">${action}</div>`}</div>`;

/* Tabs that are paths are links; tabs within a page are a tablist with arrow keys.
 * tabs: [{id, label, to, count}]; current: an id; onPick(id). */
export function Tabs({tabs, current, onPick, label}) {
	const list = useRef();
	/* On a phone the row of tabs is wider than the page: the one where one is comes into view. */
	useLayoutEffect(() => {
		const box = list.current, on = box?.querySelector('[aria-current], [aria-selected=true]');
		if (on)
			box.scrollLeft = on.offsetLeft - box.offsetLeft - (box.clientWidth - on.offsetWidth) / 2;
	}, [current]);
	if (tabs.some(tab => tab.to))
		return html`<nav class="tabs" ref=${list} aria-label=${label ?? t('tabs')}>${tabs.map(tab => html`<${Link} key=${tab.id} to=${tab.to}
			aria-current=${tab.id === current ? 'page' : undefined}>${tab.label}${tab.count !== undefined && html` <span>${tab.count}</span>`}<//>`)}</nav>`;
	const move = e => {
		const step = {ArrowRight: 1, ArrowLeft: -1}[e.key];
		const i = step ? (tabs.findIndex(tab => tab.id === current) + step + tabs.length) % tabs.length : {Home: 0, End: tabs.length - 1}[e.key];
		if (i === undefined)
			return;
		e.preventDefault();
		onPick(tabs[i].id);
		list.current.children[i].focus();
	};
	return html`<div class="tabs" role="tablist" aria-label=${label ?? t('tabs')} ref=${list} onKeyDown=${move}>${tabs.map(tab => html`<button type="button" role="tab"
		key=${tab.id} aria-selected=${String(tab.id === current)} tabindex=${tab.id === current ? 0 : -1} onClick=${() => onPick(tab.id)}>${tab.label}${
		tab.count !== undefined && html` <span>${tab.count}</span>`}</button>`)}</div>`;
}

/* One of a few, as pressed buttons. options: [{id, label, count}] */
export const Segments = ({options, current, onPick, label}) => html`<div class="seg" role="group" aria-label=${label}>${options.map(o => html`<button type="button"
	key=${o.id} aria-pressed=${String(o.id === current)} onClick=${() => onPick(o.id)}>${o.label}${o.count !== undefined && html` <span>${o.count}</span>`}</button>`)}</div>`;

/* Names and values. items: [[name, value], …]; those without a value are left out. */
export const Facts = ({items}) => html`<dl class="facts-list">${items.filter(i => i && i[1] !== undefined && i[1] !== null && i[1] !== '').map(([name, value]) =>
	html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/* A button with a list of things to do. items: [{label, onPick, kind, disabled, op}]: those whose operation the person may not call are left
 * out, and the button with the last of them. */
export function Menu({label, icon = 'dots', items: all, text}) {
	const [open, setOpen] = useState(false), may = useMay(), items = all.filter(i => i && may(i.op, i.scope));
	const box = useRef();
	useLayoutEffect(() => {
		if (!open)
			return undefined;
		const list = box.current.querySelector('[role=menu]');
		/* Fixed, so that no table or card cuts it off. */
		const put = () => {
			const at = box.current.firstChild.getBoundingClientRect(), below = at.bottom + 4 + list.offsetHeight <= innerHeight;
			list.style.top = `${Math.max(4, below ? at.bottom + 4 : at.top - 4 - list.offsetHeight)}px`;
			list.style.right = `${Math.max(4, document.documentElement.clientWidth - Math.max(at.right, list.offsetWidth + 4))}px`;
		};
		put();
		list.querySelector('[role=menuitem]:not(:disabled)')?.focus({preventScroll: true});
		addEventListener('scroll', put, {capture: true, passive: true});
		const away = e => {
			if (!box.current?.contains(e.target))
				setOpen(false);
		};
		document.addEventListener('pointerdown', away);
		return () => {
			document.removeEventListener('pointerdown', away);
			removeEventListener('scroll', put, {capture: true});
		};
	}, [open]);
	const close = () => {
		setOpen(false);
		box.current?.querySelector('button').focus();
	};
	const keys = e => {
		if (!open)
			return;
		const all = [...box.current.querySelectorAll('[role=menuitem]:not(:disabled)')], at = all.indexOf(document.activeElement);
		if (e.key === 'Escape' || e.key === 'Tab') {
			if (e.key === 'Escape')
				e.stopPropagation();
			close();
		} else if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
			e.preventDefault();
			all[(at + (e.key === 'ArrowDown' ? 1 : -1) + all.length) % all.length]?.focus();
		}
	};
	if (!items.length)
		return null;
	return html`<div class="menu-box" ref=${box} onKeyDown=${keys}><button type="button" class=${text ? 'btn' : 'icon'} aria-haspopup="menu" aria-expanded=${String(open)}
		aria-label=${text ? undefined : label} onClick=${() => setOpen(!open)}>${text}<${Icon} name=${text ? 'down' : icon} /></button>
		${open && html`<div class="menu-list" role="menu" aria-label=${label}>${items.map(i => html`<button type="button" role="menuitem" key=${i.label}
			class=${i.kind === 'danger' ? 'bad' : undefined} disabled=${i.disabled} onClick=${() => { close(); i.onPick(); }}>${i.label}</button>`)}</div>`}</div>`;
}
