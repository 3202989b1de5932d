import {html, cls, freshId, useLayoutEffect, useRef, useState} from '../lib.js';
import {t} from '../texts.js';
import {leaving} from '../router.js';
import {Form, Field, Input} from './form.js';
import {Icon} from './icons.js';
import {say} from './say.js';

/* The browser's own modal dialog: the rest of the page is inert while it is open, Esc closes it, and the focus goes back to
 * where it was; so does the browser's Back. kind: 'drawer' stands at the right side, 'wide' has room. once: it shows what is never shown
 * again, so it is closed by its own buttons alone. */
export function Dialog({title, label, onClose, children, kind, class: c, bare, once}) {
	const box = useRef(), id = useRef();
	id.current ??= freshId('d');
	useLayoutEffect(() => {
		const dialog = box.current, before = document.activeElement;
		const free = leaving(() => shut.current());
		dialog.showModal();
		return () => {
			free();
			dialog.close();
			if (before?.isConnected)
				before.focus({preventScroll: true});
		};
	}, []);
	const pressed = useRef(null), shut = useRef();
	shut.current = () => once ? say(t('secret.stay')) : onClose?.();
	const cancel = e => {
		e.preventDefault();
		shut.current();
	};
	/* A cancelled key asks the dialog for nothing: the second Esc would close it whatever is done with its request. */
	const keys = e => {
		if (e.key === 'Escape' && !e.defaultPrevented && e.target.closest('dialog') === box.current) {
			e.preventDefault();
			shut.current();
		}
	};
	return html`<dialog ref=${box} class=${cls(kind, c)} aria-labelledby=${title ? id.current : undefined} aria-label=${title ? undefined : label} onCancel=${cancel} onKeyDown=${keys}
		onPointerDown=${e => { pressed.current = e.target; }} onClick=${e => { if (e.target === box.current && pressed.current === box.current) shut.current(); }}>
		${bare ? children : html`<div class="dialog-in"><div class="dh"><h2 id=${id.current}>${title}</h2>${onClose && !once && html`<button type="button" class="icon" aria-label=${t('close')}
			onClick=${onClose}><${Icon} name="x" /></button>`}</div><div class="dialog-body">${children}</div></div>`}<div class="toasts" role="status" data-said=""></div></dialog>`;
}

/* Asks before something that cannot be taken back. With a name, the name has to be typed. onConfirm() may be async; what it throws is
 * shown in the dialog, and the dialog stays. */
export function ConfirmDanger({title, text, name, action, onConfirm, onClose, children, op, scope}) {
	const [typed, setTyped] = useState('');
	const right = name === undefined || typed === name;
	return html`<${Dialog} title=${title} onClose=${onClose}><${Form} op=${op} scope=${scope} onSubmit=${async () => { if (right) { await onConfirm(); onClose?.(); } }} submit=${action ?? t('delete')} kind="kill"
		disabled=${!right} onCancel=${onClose} cancel=${t('keep')}>
		${text && html`<p class="dim">${text}</p>`}${children}
		${name !== undefined && html`<${Field} label=${t('typeName', {name})}><${Input} value=${typed} onInput=${setTyped} autofocus /><//>`}<//><//>`;
}
