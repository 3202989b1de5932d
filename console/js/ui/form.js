/* Fields know their label, help and fault; a form gives refusals of the API to the fields that they name. */
import {html, cls, createContext, freshId, useContext, useEffect, useRef, useState} from '../lib.js';
import {t} from '../texts.js';
import {Icon} from './icons.js';
import {Notice} from './page.js';
import {Link} from '../router.js';
import {roleWords, rolesText, useLack, useMay} from '../may.js';

const FormContext = createContext(null);
const FieldContext = createContext(null);

/* kind: go (the main action), danger, kill (the last step of a danger), plain, small, text, icon. to: a link that looks the same. op: the
 * operation that it leads to; who may not call that is not offered the button. */
export function Button({op, scope, ...rest}) {
	const may = useMay();
	return may(op, scope) ? html`<${Plain} ...${rest} />` : null;
}

function Plain({kind = 'plain', small, icon, to, busy, disabled, children, class: c, type = 'button', ...rest}) {
	const names = cls(kind === 'icon' ? 'icon' : 'btn', {go: 'go', danger: 'red', kill: 'kill', text: 'text', small: 's'}[kind], small && 's', c);
	const inside = html`${icon && html`<${Icon} name=${icon} />`}${children}`;
	if (to)
		return html`<${Link} class=${names} to=${to} ...${rest}>${inside}<//>`;
	return html`<button type=${type} class=${names} disabled=${disabled} aria-busy=${busy ? 'true' : undefined} ...${rest}>${inside}</button>`;
}

/* onSubmit(): may be async; an ApiError that it throws is shown at the fields that it names (Field's name), the rest above the buttons.
 * faults: {name: text}, found by the caller. submit: the button's text; onCancel: shows a second one before it; others: more, after it.
 * op: the operation that it ends in; who may not call that may look, and is told which role is missing. */
export function Form({op, scope, onSubmit, faults, submit, kind = 'go', onCancel, cancel, others, disabled, children, class: c, label}) {
	const [state, setState] = useState({busy: false, error: null});
	const form = useRef(), alive = useRef(true), shown = useRef(), may = useMay(), lack = useLack(op, scope), shut = !may(op, scope);
	shown.current = new Set();
	useEffect(() => () => { alive.current = false; }, []);
	const found = {...state.error?.fields, ...faults};
	useEffect(() => {
		if (state.error)
			form.current?.querySelector('[aria-invalid=true]')?.focus();
	}, [state.error]);
	const run = async e => {
		e.preventDefault();
		if (state.busy || shut)
			return;
		setState({busy: true, error: null});
		let error = null;
		try {
			await onSubmit(e);
		} catch (x) {
			if (x?.name === 'AbortError')
				return;
			error = x;
			if (!x.status)
				console.warn(x);
		}
		if (alive.current)
			setState({busy: false, error});
	};
	const [rest, setRest] = useState(false);
	useEffect(() => {
		const names = Object.keys(state.error?.fields ?? {});
		setRest(Boolean(state.error) && (!names.length || names.some(n => !shown.current.has(n))));
	}, [state.error]);
	return html`<form class=${cls('form', c)} ref=${form} novalidate aria-label=${label} onSubmit=${run}><${FormContext.Provider} value=${{faults: found, shown: shown.current, busy: state.busy}}>
		${shut ? html`<fieldset class="bare" disabled>${children}</fieldset>` : children}
		${shut && lack && html`<${Notice}>${lack}<//>`}
		${state.error && rest && html`<${Notice} kind="bad">${errorText(state.error)}<//>`}
		${(submit || onCancel || others) && html`<div class="acts">${onCancel && html`<${Button} onClick=${onCancel}>${cancel ?? t('cancel')}<//>`}
			${submit && !shut && html`<${Button} kind=${kind} type="submit" busy=${state.busy} disabled=${disabled}>${submit}<//>`}${others}</div>`}
		<//></form>`;
}

/* What to say of something that was thrown. */
export function errorText(error) {
	if (!error)
		return '';
	if (error.status === 429)
		return t('error.tooMany');
	if (error.code === 'INSUFFICIENT_ROLE' && error.parameters.some(isRole))
		return t('role.needed', {roles: rolesText(error.parameters.filter(isRole))});
	if (error.status >= 502)
		return t('error.away');
	if (error.status)
		return faultWords(error);
	return error.name === 'TypeError' ? t('error.unreachable') : error.message;
}

const isRole = name => /^(GROUP|ORG)_[A-Z_]+$/.test(name);
/* The roles of a refusal, in words. */
const spoken = text => String(text ?? '').replace(/\b(GROUP|ORG)_[A-Z]+(_[A-Z]+)*\b/g, role => t('role.quoted', {role: roleWords(role)}));

/* "Policies[0].policyItems[0].retentionValue" -> "Retention value" */
const fieldWords = path => sentence((path.match(/[A-Za-z]\w*(?=[^A-Za-z]*$)/)?.[0] ?? path).replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase());

/* Of faults that name their fields by paths: which field, and what is wrong. */
function faultWords(error) {
	const names = Object.keys(error.fields ?? {});
	return names.length ? names.map(n => `${fieldWords(n)}: ${spoken(error.fields[n])}.`).join(' ') : spoken(sentence(error.detail));
}

const sentence = text => text ? text[0].toUpperCase() + text.slice(1) : '';

/* The fault of a field: its path in the body is the name, or ends with it. */
function faultOf(form, name) {
	if (!form || !name)
		return undefined;
	const path = Object.keys(form.faults).find(p => p === name) ?? Object.keys(form.faults).find(p => p.endsWith(`.${name}`));
	if (path)
		form.shown.add(path);
	return path && form.faults[path];
}

/* name: as in the request's body, so that the API's faults find it. hint: beside the label, such as "optional". */
export function Field({name, label, help, fault, hint, required, children, class: c}) {
	const form = useContext(FormContext), id = useRef();
	id.current ??= freshId('f');
	const found = fault ?? faultOf(form, name);
	const described = cls(help && `${id.current}h`, found && `${id.current}f`);
	return html`<div class=${cls('field', found && 'faulty', c)}><label for=${id.current}>${label}${hint && html` <span class="dim">${hint}</span>`}</label>
		<${FieldContext.Provider} value=${{id: id.current, described, invalid: Boolean(found), required, name}}>${children}<//>
		${help && html`<div class="help" id=${`${id.current}h`}>${help}</div>`}
		${found && html`<div class="fault" id=${`${id.current}f`}><${Icon} name="bad" />${spoken(sentence(found))}</div>`}</div>`;
}

/* The faults of fields that stand in a table, below them: names are those of the request's body. */
export function FaultsOf({names}) {
	const form = useContext(FormContext), found = names.map(n => faultOf(form, n)).filter(Boolean);
	return found.map(text => html`<div class="fault" key=${text}><${Icon} name="bad" />${spoken(sentence(text))}</div>`);
}

function usual(rest) {
	const field = useContext(FieldContext);
	return {id: rest.id ?? field?.id, name: rest.name ?? field?.name, 'aria-describedby': field?.described, 'aria-invalid': field?.invalid ? 'true' : undefined,
		'aria-required': field?.required ? 'true' : undefined};
}

/* onInput(value): the text; of a number its number, or undefined where there is none. */
export function Input({type = 'text', value, onInput, class: c, mono, ...rest}) {
	const usually = usual(rest);
	const give = e => onInput?.(type === 'number' ? e.target.value === '' ? undefined : e.target.valueAsNumber : e.target.value);
	return html`<input type=${type} class=${cls('in', mono && 'mono', c)} value=${value ?? ''} autocomplete="off" spellcheck=${false} ...${usually} ...${rest} onInput=${give} />`;
}

export function Area({value, onInput, rows = 4, class: c, mono, ...rest}) {
	return html`<textarea class=${cls('in', mono && 'mono', c)} rows=${rows} spellcheck=${false} ...${usual(rest)} ...${rest} value=${value ?? ''} onInput=${e => onInput?.(e.target.value)}></textarea>`;
}

/* options: ['A', …] or [{value, label, disabled}] or {group: options}; empty: the text of "none chosen" */
export function Select({value, onInput, options, empty, class: c, ...rest}) {
	const one = o => {
		const {value: v, label, disabled} = typeof o === 'object' ? o : {value: o, label: o};
		return html`<option key=${v} value=${v} selected=${String(v) === String(value ?? '')} disabled=${disabled}>${label ?? v}</option>`;
	};
	const inside = Array.isArray(options) ? options.map(one) : Object.entries(options).map(([g, list]) => html`<optgroup key=${g} label=${g}>${list.map(one)}</optgroup>`);
	return html`<select class=${cls('in', c)} ...${usual(rest)} ...${rest} value=${value ?? ''} onChange=${e => onInput?.(e.target.value)}>${empty !== undefined && html`<option
		value="" selected=${!value}>${empty}</option>`}${inside}</select>`;
}

/* A box with its own label: used without Field. */
export function Check({checked, onInput, label, help, name, disabled}) {
	const id = useRef(), form = useContext(FormContext);
	id.current ??= freshId('c');
	const found = faultOf(form, name);
	return html`<div class="check"><input type="checkbox" id=${id.current} name=${name} checked=${checked} disabled=${disabled} aria-describedby=${cls(help && `${id.current}h`, found && `${id.current}f`)}
		aria-invalid=${found ? 'true' : undefined} onChange=${e => onInput?.(e.target.checked)} /><label for=${id.current}>${label}</label>${
		help && html`<div class="help" id=${`${id.current}h`}>${help}</div>`}${found && html`<div class="fault" id=${`${id.current}f`}>${sentence(found)}</div>`}</div>`;
}

/* Several fields that belong together. */
export const Fieldset = ({legend, help, children}) => html`<fieldset><legend>${legend}</legend>${help && html`<p class="help">${help}</p>`}${children}</fieldset>`;

/* The search of a list: `/` goes there. */
export const Search = ({value, onInput, label, placeholder}) => html`<label class="filter"><${Icon} name="filter" /><input type="search" data-search="" value=${value}
	placeholder=${placeholder ?? label} aria-label=${label} onInput=${e => onInput(e.target.value)} /><kbd aria-hidden="true">/</kbd></label>`;
