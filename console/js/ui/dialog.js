import {html, cls, freshId, useLayoutEffect, useRef, useState} from '../lib.js';
import {t} from '../texts.js';
import {Form, Field, Input} from './form.js';
import {Icon} from './icons.js';

/* The browser's own modal dialog: the rest of the page is inert while it is open, Esc closes it, and the focus goes back to
 * where it was. kind: 'drawer' stands at the right side, 'wide' has room. */
export function Dialog({title, label, onClose, children, kind, class: c, bare}) {
	const box = useRef(), id = useRef();
	id.current ??= freshId('d');
	useLayoutEffect(() => {
		const dialog = box.current, before = document.activeElement;
		dialog.showModal();
		return () => {
			dialog.close();
			if (before?.isConnected)
				before.focus({preventScroll: true});
		};
	}, []);
	const pressed = useRef(null);
	const cancel = e => {
		e.preventDefault();
		onClose?.();
	};
	return html`<dialog ref=${box} class=${cls(kind, c)} aria-labelledby=${title ? id.current : undefined} aria-label=${title ? undefined : label} onCancel=${cancel}
		onPointerDown=${e => { pressed.current = e.target; }} onClick=${e => { if (e.target === box.current && pressed.current === box.current) onClose?.(); }}>
		${bare ? children : html`<div class="dialog-in"><div class="dh"><h2 id=${id.current}>${title}</h2>${onClose && html`<button type="button" class="icon" aria-label=${t('close')}
			onClick=${onClose}><${Icon} name="x" /></button>`}</div><div class="dialog-body">${children}</div></div>`}<div class="toasts" role="status" data-said=""></div></dialog>`;
}

/* Asks before something that cannot be taken back. With a name, the name has to be typed. onConfirm() may be async; what it throws is
 * shown in the dialog, and the dialog stays. */
export function ConfirmDanger({title, text, name, action, onConfirm, onClose, children}) {
	const [typed, setTyped] = useState('');
	const right = name === undefined || typed === name;
	return html`<${Dialog} title=${title} onClose=${onClose}><${Form} onSubmit=${async () => { if (right) { await onConfirm(); onClose?.(); } }} submit=${action ?? t('delete')} kind="kill"
		disabled=${!right} onCancel=${onClose} cancel=${t('keep')}>
		${text && html`<p class="dim">${text}</p>`}${children}
		${name !== undefined && html`<${Field} label=${t('typeName', {name})}><${Input} value=${typed} onInput=${setTyped} autofocus /><//>`}<//><//>`;
}
