/* Forms from schemas. What is edited is the body itself: a field that is left empty is not in it. */
import {html, useContext, createContext, useState} from '../lib.js';
import {t} from '../texts.js';
import {Area, Button, Check, Field, Fieldset, Input, Select} from '../ui/index.js';
import {helpOf, label, labelOfForm, labelOfValue, node as resolve} from './data.js';
import {below, branchOf} from './check.js';
import {useChoices} from './choices.js';

const REQUIRED = 1, ADVANCED = 2, DEPRECATED = 4, IMMUTABLE = 8;
const CHECKS_MOST = 30, DEEPEST = 9;
let lists = 0;

/* {page, op, params, faults, method, filled}: what every field below asks for */
export const Here = createContext(null);

const isOpen = is => is.e?.some(v => typeof v === 'string' && v.startsWith('<'));

const two = n => String(n).padStart(2, '0');
const toLocal = text => {
	const d = new Date(text);
	return text && !Number.isNaN(d.getTime()) ? `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}` : '';
};
const fromLocal = text => {
	const d = text ? new Date(text) : null;
	return d && !Number.isNaN(d.getTime()) ? d.toISOString().replace(/\.\d+Z$/, 'Z') : undefined;
};

/* A text that can be chosen: a list where all choices are known, else a field with suggestions. */
export function Chosen({value, onInput, found, required, mono}) {
	const [other, setOther] = useState(false), [id] = useState(() => `choices${++lists}`);
	const known = found?.choices ?? [];
	const text = c => c.title ? `${c.title} (${c.value})` : c.value;
	if (found?.whole && known.length && !other && (!value || known.some(c => c.value === value)))
		return html`<${Select} value=${value} empty=${required ? t('generated.choose') : t('generated.notGiven')}
			onInput=${v => v === '\u0000' ? setOther(true) : onInput(v || undefined)}
			options=${[...known.map(c => ({value: c.value, label: text(c)})), {value: '\u0000', label: t('generated.other')}]} />`;
	return html`<${Input} value=${value} mono=${mono} list=${known.length ? id : undefined} onInput=${v => onInput(v || undefined)} />
		${known.length > 0 && html`<datalist id=${id}>${known.map(c => html`<option key=${c.value} value=${c.value}>${c.title}</option>`)}</datalist>`}`;
}

function Text({name, value, onInput, required}) {
	const {op, params} = useContext(Here);
	return html`<${Chosen} value=${value} onInput=${onInput} required=${required} found=${useChoices(op, name, params)} />`;
}

function Json({value, onInput, rows = 4}) {
	const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2));
	const give = next => {
		setText(next);
		try {
			onInput(next.trim() ? JSON.parse(next) : undefined);
		} catch {
			onInput(next);
		}
	};
	return html`<${Area} mono rows=${rows} value=${text} onInput=${give} />`;
}

/* One value: a control for what the schema says. */
export function Scalar({is, name, value, onInput, required}) {
	if (is.e && isOpen(is))
		return html`<${Chosen} value=${value} onInput=${onInput} required=${required} found=${{choices: is.e.filter(v => !v.startsWith('<')).map(v => ({value: v})), whole: false}} />`;
	if (is.e)
		return html`<${Select} value=${value} empty=${required ? t('generated.choose') : is.d === undefined ? t('generated.notGiven') : t('generated.byDefault', {value: labelOfValue(is.d)})}
			onInput=${v => onInput(v === '' ? undefined : is.e.find(e => String(e) === v))} options=${is.e.map(v => ({value: String(v), label: labelOfValue(v)}))} />`;
	if (is.t === 'b')
		return html`<${Select} value=${value === undefined || value === null ? '' : String(value)} empty=${is.d === undefined ? t('generated.notGiven') : t('generated.byDefault', {value: t(is.d ? 'yes' : 'no')})}
			onInput=${v => onInput(v === '' ? undefined : v === 'true')} options=${[{value: 'true', label: t('yes')}, {value: 'false', label: t('no')}]} />`;
	if (is.t === 'i' || is.t === 'n')
		return html`<${Input} type="number" value=${value} step=${is.t === 'i' ? 1 : 'any'} min=${is.l} max=${is.h} onInput=${onInput} placeholder=${is.d === undefined ? undefined : String(is.d)} />`;
	if (is.t === 'x' || is.t === 'm')
		return html`<${Json} value=${value} onInput=${onInput} />`;
	if (is.f === 'p')
		return html`<${Input} type="password" autocomplete="new-password" value=${value} onInput=${v => onInput(v || undefined)} />`;
	if (is.f === 't')
		return html`<${Input} type="datetime-local" step="1" value=${toLocal(value)} onInput=${v => onInput(fromLocal(v))} />`;
	if (is.f === 'd')
		return html`<${Input} type="date" value=${value} onInput=${v => onInput(v || undefined)} />`;
	if (is.f === 'e' || is.f === 'u')
		return html`<${Input} type=${is.f === 'e' ? 'email' : 'url'} value=${value} onInput=${v => onInput(v || undefined)} />`;
	return html`<${Text} name=${name} value=${value} onInput=${onInput} required=${required} />`;
}

const isNested = (page, n) => {
	const is = resolve(page, n);
	return is.t === 'o' || is.t === 'u' || is.t === 'a' && !(resolve(page, is.i).e && !isOpen(resolve(page, is.i)) || 'sin'.includes(resolve(page, is.i).t));
};

/* What a new value of it looks like. */
const blank = (page, n) => {
	const is = resolve(page, n);
	return is.t === 'a' ? [] : is.t === 'o' || is.t === 'u' ? {} : undefined;
};

function bounds(is) {
	if (is.l !== undefined && is.h !== undefined)
		return is.t === 's' ? t('generated.lengths', {from: is.l, to: is.h}) : t('generated.between', {from: is.l, to: is.h});
	return '';
}

const helpFor = (name, is, more) => [more ?? is.r ?? helpOf(name), is.t === 'm' || is.t === 'x' ? t('generated.asJson') : '', bounds(is)].filter(Boolean).join('. ');

/* One field: with its label when it is a value, as a group when it has parts. */
export function Editor({n, name, value, onInput, path, flags = 0, depth = 0, title}) {
	const {page} = useContext(Here), is = resolve(page, n);
	const text = title ?? label(name), required = Boolean(flags & REQUIRED), help = helpFor(name, is);
	const hint = flags & DEPRECATED ? t('generated.deprecated') : required ? undefined : t('generated.optional');
	if (depth > DEEPEST)
		return html`<${Field} name=${path} label=${text} hint=${hint} help=${t('generated.asJson')}><${Json} value=${value} onInput=${onInput} /><//>`;
	if (is.t === 'a' && !isNested(page, n))
		return html`<${Several} is=${is} name=${name} value=${value} onInput=${onInput} path=${path} text=${text} help=${help} hint=${hint} />`;
	if (!isNested(page, n))
		return html`<${Field} name=${path} label=${text} hint=${hint} help=${help} required=${required}><${Scalar} is=${is} name=${name} value=${value} onInput=${onInput} required=${required} /><//>`;
	if (value === undefined || value === null)
		return html`<div class="gen-add"><${Button} small icon="plus" onClick=${() => onInput(is.t === 'a' ? [blank(page, is.i)] : blank(page, n))}>${t('generated.add', {thing: text})}<//>
			<span class="dim">${hint}</span>${help && html`<span class="help">${help}</span>`}</div>`;
	return html`<div class="gen-group"><${Fieldset} legend=${text} help=${help}>
		<${Inside} n=${n} value=${value} onInput=${onInput} path=${path} depth=${depth} name=${name} text=${text} />
		${html`<${Button} kind="text" small onClick=${() => onInput(undefined)}>${t('generated.remove', {thing: text})}<//>`}<//></div>`;
}

/* The parts of an object, of one of several forms, or of a list. */
export function Inside({n, value, onInput, path, depth, name, text, skip}) {
	const {page} = useContext(Here), is = resolve(page, n);
	if (is.t === 'u')
		return html`<${OneOf} is=${is} value=${value} onInput=${onInput} path=${path} depth=${depth} skip=${skip} />`;
	if (is.t === 'a')
		return html`<${Many} is=${is} value=${value ?? []} onInput=${onInput} path=${path} depth=${depth} name=${name} text=${text} skip=${skip} />`;
	if (is.t === 'o')
		return html`<${Fields} is=${is} value=${value ?? {}} onInput=${onInput} path=${path} depth=${depth} skip=${skip} />`;
	return html`<${Field} name=${path} label=${text}><${Scalar} is=${is} name=${name} value=${value} onInput=${onInput} /><//>`;
}

function Fields({is, value, onInput, path, depth, skip}) {
	const {faults, method, filled} = useContext(Here);
	const shown = is.k.filter(([name, , flags = 0]) => !skip?.has(name) && !(flags & IMMUTABLE && method === 'PATCH'));
	const set = (name, v) => {
		const next = {...value};
		if (v === undefined)
			delete next[name];
		else
			next[name] = v;
		onInput(next);
	};
	const one = ([name, n, flags]) => html`<${Editor} key=${name} n=${n} name=${name} flags=${flags} value=${value?.[name]} path=${below(path, name)} depth=${depth + 1}
		onInput=${v => set(name, v)} />`;
	const advanced = shown.filter(([, , flags = 0]) => flags & ADVANCED);
	const open = advanced.some(([name]) => value?.[name] !== undefined && !filled || Object.keys(faults).some(f => f.startsWith(below(path, name))));
	return html`${shown.filter(f => !advanced.includes(f)).map(one)}
		${advanced.length > 0 && html`<${More} key="more" open=${open} count=${advanced.length}>${() => advanced.map(one)}<//>`}`;
}

/* What few people need; made when it is first opened. */
function More({open, count, children}) {
	const [was, setWas] = useState(false);
	return html`<details class="gen-more" open=${open || undefined} onToggle=${e => e.target.open && setWas(true)}><summary>${t('generated.advanced', {n: count})}</summary>
		${(was || open) && html`<div class="gen-fields">${children()}</div>`}</details>`;
}

function OneOf({is, value, onInput, path, depth, skip}) {
	const {page} = useContext(Here);
	const [picked, setPicked] = useState(null);
	const branch = is.D ? branchOf(page, is, value) : is.O[picked] ?? branchOf(page, is, value);
	const at = branch ? is.O.indexOf(branch) : '';
	const choose = text => {
		const i = text === '' ? undefined : Number(text);
		setPicked(i ?? null);
		onInput(i === undefined ? {} : is.D ? {...common(page, value, is.O[i][1]), [is.D]: is.O[i][0]} : common(page, value, is.O[i][1]));
	};
	const told = is.D ? label(is.D) : t('generated.kind');
	return html`${!(is.D && skip?.has(is.D)) && html`<${Field} name=${is.D ? below(path, is.D) : undefined} label=${told} required><${Select} value=${String(at)} empty=${t('generated.choose')} onInput=${choose}
		options=${is.O.map(([v], i) => ({value: String(i), label: is.D ? labelOfValue(v) : labelOfForm(v)}))} /><//>`}
		${branch && html`<${Inside} key=${at} n=${branch[1]} value=${value} onInput=${onInput} path=${path} depth=${depth} skip=${skip} />`}`;
}

/* Of a value, what another form has too. */
function common(page, value, n) {
	const names = new Set((resolve(page, n)?.k ?? []).map(([name]) => name));
	return Object.fromEntries(Object.entries(value ?? {}).filter(([name]) => names.has(name)));
}

function Many({is, value, onInput, path, depth, name, text, skip}) {
	const {page} = useContext(Here);
	const set = (i, v) => onInput(value.map((old, k) => k === i ? v : old));
	const thing = text ?? t('generated.entry');
	return html`<ol class="gen-list">${value.map((v, i) => html`<li key=${i}><${Fieldset} legend=${t('generated.numbered', {thing, number: i + 1})}>
			<${Inside} n=${is.i} value=${v} onInput=${next => set(i, next)} path=${`${path}[${i}]`} depth=${depth + 1} name=${name} text=${thing} skip=${skip} />
			<${Button} kind="text" small onClick=${() => onInput(value.filter((old, k) => k !== i))}>${t('generated.removeNumbered', {thing, number: i + 1})}<//><//></li>`)}</ol>
		<${Button} small icon="plus" disabled=${is.h !== undefined && value.length >= is.h} onClick=${() => onInput([...value, blank(page, is.i)])}>${t('generated.addAnother', {thing})}<//>`;
}

/* A list of plain values: boxes where there are few to choose from, else one on a line. */
export function Several({is, name, value, onInput, path, text, help, hint}) {
	const {page} = useContext(Here), item = resolve(page, is.i), list = Array.isArray(value) ? value : [];
	const give = next => onInput(next.length ? next : undefined);
	if (item.e && !isOpen(item) && item.e.length <= CHECKS_MOST)
		return html`<div class="gen-checks"><${Fieldset} legend=${html`${text} <span class="dim">${hint}</span>`} help=${help}>${item.e.map(v => html`<${Check} key=${v} label=${labelOfValue(v)} checked=${list.includes(v)}
			onInput=${on => give(on ? [...list, v] : list.filter(x => x !== v))} />`)}<//></div>`;
	const typed = line => item.t === 's' ? line : Number(line);
	return html`<${Field} name=${path} label=${text} hint=${hint} help=${[help, t('generated.lines')].filter(Boolean).join('. ')}><${Lines} list=${list}
		onInput=${lines => give(lines.map(typed))} values=${item.e} /><//>`;
}

function Lines({list, onInput}) {
	const [text, setText] = useState(list.join('\n'));
	const shown = text.split('\n').map(s => s.trim()).filter(Boolean).join('\n') === list.join('\n') ? text : list.join('\n');
	return html`<${Area} rows=${Math.min(8, Math.max(2, list.length + 1))} value=${shown} onInput=${next => {
		setText(next);
		onInput(next.split('\n').map(s => s.trim()).filter(Boolean));
	}} />`;
}
