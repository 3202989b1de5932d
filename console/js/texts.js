/* All texts, by key, from texts/<language>.json, where the front of keys stands before all that have it. `{name}` in a text is replaced by what is given; with `n` given, the text
 * of the key with the plural's form (`.one`, `.other`) is taken where there is one. */
import {file, store} from './lib.js';

const texts = {};
const add = (more, front = '') => Object.entries(more).forEach(([key, text]) => {
	if (typeof text === 'object')
		add(text, `${key}.`);
	else
		texts[front + key] = text;
});
let plural = new Intl.PluralRules('en');
export const language = 'en';

export async function loadTexts() {
	const answer = await fetch(file(`texts/${language}.json`));
	add(await answer.json());
	plural = new Intl.PluralRules(language);
	document.documentElement.lang = language;
}

/* Texts that only some screens need: texts/<name>.<language>.json. What is drawn before they are there is drawn again. */
export const textsLoaded = store(0);
const more = new Map();
export function loadMoreTexts(name) {
	if (!more.has(name))
		more.set(name, fetch(file(`texts/${name}.${language}.json`)).then(async answer => {
			if (answer.ok)
				add(await answer.json());
			textsLoaded.set(textsLoaded.get() + 1);
		}));
	return more.get(name);
}

export const hasText = key => key in texts;

export function t(key, values) {
	let text = texts[key];
	if (values && 'n' in values)
		text = texts[`${key}.${plural.select(Number(values.n))}`] ?? texts[`${key}.other`] ?? text;
	if (text === undefined)
		return key;
	return values ? text.replace(/\{(\w+)\}/g, (all, name) => name in values ? shown(values[name]) : all) : text;
}

const shown = value => typeof value === 'number' ? number(value) : String(value ?? '');

const numbers = new Intl.NumberFormat('en');
export const number = (value, digits) => value === null || value === undefined ? '—'
	: digits === undefined ? numbers.format(value) : new Intl.NumberFormat('en', {maximumFractionDigits: digits}).format(value);

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
export function bytes(value) {
	if (value === null || value === undefined)
		return '—';
	let i = 0, v = Number(value);
	while (Math.abs(v) >= 1000 && i < UNITS.length - 1) {
		v /= 1000;
		i++;
	}
	return `${number(v, v < 10 && i ? 1 : 0)} ${UNITS[i]}`;
}

const clock = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'});
const day = new Intl.DateTimeFormat(undefined, {day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23'});
const full = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23'});
const dateOnly = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium'});

export const asDate = at => at instanceof Date ? at : new Date(typeof at === 'number' ? at : String(at));
export const utc = at => asDate(at).toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC').replace('Z', ' UTC');

/* Times in the viewer's zone. kind: short (today: the clock; this year: the day), full, date, ago. */
export function time(at, kind = 'short') {
	const d = asDate(at);
	if (Number.isNaN(d.getTime()))
		return '—';
	if (kind === 'full')
		return full.format(d);
	if (kind === 'date')
		return dateOnly.format(d);
	if (kind === 'ago')
		return ago(d);
	const now = new Date();
	if (d.toDateString() === now.toDateString())
		return clock.format(d);
	return d.getFullYear() === now.getFullYear() ? day.format(d) : full.format(d);
}

const relative = new Intl.RelativeTimeFormat('en', {style: 'narrow', numeric: 'always'});
const STEPS = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];
export function ago(d) {
	const seconds = (asDate(d).getTime() - Date.now()) / 1000;
	const [unit, size] = STEPS.find(([, s]) => Math.abs(seconds) >= s) ?? STEPS[3];
	return Math.abs(seconds) < 5 ? t('time.now') : relative.format(Math.trunc(seconds / size), unit);
}

/* How long something takes or took, in at most two units. */
export function duration(seconds) {
	if (seconds === null || seconds === undefined)
		return '—';
	if (seconds > 0 && seconds < 1)
		return `${number(seconds * 1000, seconds < 0.01 ? 2 : seconds < 0.1 ? 1 : 0)} ms`;
	if (seconds < 60)
		return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
	const s = Math.round(seconds), parts = [[Math.floor(s / 86400), 'd'], [Math.floor(s / 3600) % 24, 'h'], [Math.floor(s / 60) % 60, 'min'], [s % 60, 's']];
	const first = parts.findIndex(p => p[0]);
	return parts.slice(first, first + 2).filter(p => p[0]).map(p => p.join(' ')).join(' ');
}
