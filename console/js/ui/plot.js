/* Time series. uPlot is loaded when the first plot is shown. */
import {file, html, useEffect, useMemo, useRef, useState} from '../lib.js';
import {t, number, bytes, duration, time} from '../texts.js';

let library = null;
function uplot() {
	library ??= (async () => {
		const link = document.createElement('link');
		link.rel = 'stylesheet';
		link.href = file('lib/uplot.css');
		const styled = new Promise(done => {
			link.onload = done;
			link.onerror = done;
		});
		document.head.append(link);
		const [module] = await Promise.all([import('../../lib/uplot.js'), styled]);
		return module.default;
	})();
	return library;
}

const BARS_NAMED = 12; // bars that each have their time below them
const COLOURS = ['--accent', '--busy', '--warn-fill', '--bad-fill', '--off', '--ok'];
export const colourOf = i => COLOURS[i % COLOURS.length];
const seconds = at => typeof at === 'number' ? at > 1e11 ? at / 1000 : at : Date.parse(at) / 1000;
export const valueText = (v, unit) => v === null || v === undefined ? '—' : unit === 'bytes' ? bytes(v) : unit === 'ms' ? duration(v / 1000) : `${number(v, Math.abs(v) < 10 ? 2 : 0)}${/^[%/]/.test(unit ?? '') ? unit : unit ? ` ${unit}` : ''}`;

/* The times of an axis, as far apart as a step says. */
const clock = step => {
	const format = new Intl.DateTimeFormat(undefined, step < 86400 ? {hour: '2-digit', minute: '2-digit', second: step < 60 ? '2-digit' : undefined, hourCycle: 'h23'} : {day: 'numeric', month: 'short'});
	return v => format.format(v * 1000);
};

/* One list of times with a list of values per series. */
function aligned(series) {
	const times = [...new Set(series.flatMap(s => s.points.map(p => seconds(p[0]))))].sort((a, b) => a - b);
	const at = new Map(times.map((x, i) => [x, i]));
	return [times, ...series.map(s => {
		const values = new Array(times.length).fill(null);
		for (const [x, v] of s.points)
			values[at.get(seconds(x))] = v;
		return values;
	})];
}

function summary(title, series, unit) {
	const parts = series.map(s => {
		const values = s.points.map(p => p[1]).filter(v => v !== null && v !== undefined);
		return values.length ? t('plot.summary', {label: s.label ?? title, last: valueText(values[values.length - 1], unit), least: valueText(Math.min(...values), unit),
			most: valueText(Math.max(...values), unit)}) : t('plot.none', {label: s.label ?? title});
	});
	return `${title}: ${parts.join('; ')}`;
}

/* series: [{label, points: [[time, value], …]}]; time: ISO text, or seconds or milliseconds since 1970. unit: '%', 'bytes', 'ms' (shown as what it is, from milliseconds to days) …
 * together: plots of the same word have one crosshair, and no legend of their own: their heads tell the values at it. */
export function Plot({title = '', series, unit, height = 150, bars, together}) {
	const [at, setAt] = useState(null), box = useRef(), plot = useRef(null), [width, setWidth] = useState(0), [dark, setDark] = useState(document.documentElement.dataset.theme);
	const data = useMemo(() => aligned(series), [series]);
	useEffect(() => {
		const watch = new ResizeObserver(([e]) => setWidth(Math.floor(e.contentRect.width)));
		watch.observe(box.current);
		const themed = new MutationObserver(() => setDark(document.documentElement.dataset.theme));
		themed.observe(document.documentElement, {attributeFilter: ['data-theme']});
		return () => {
			watch.disconnect();
			themed.disconnect();
		};
	}, []);
	const shape = series.map(s => s.label).join('\n');
	useEffect(() => {
		let gone = false;
		if (!width)
			return undefined;
		uplot().then(UPlot => {
			if (gone)
				return;
			const css = getComputedStyle(document.documentElement), colour = name => css.getPropertyValue(name).trim();
			const axis = {stroke: colour('--text-3'), grid: {stroke: colour('--line'), width: 1}, ticks: {show: false}, font: '11px system-ui, sans-serif'};
			const alone = bars ? 3 * 86400 : 600; // seconds on each side of the only value: left to itself, uPlot shows years
			plot.current = new UPlot({
				width, height, cursor: {y: false, ...together && {sync: {key: together, setSeries: false}}}, legend: {show: series.length > 1 && !together},
				hooks: together ? {setCursor: [u => setAt(u.cursor.idx ?? null)]} : {}, padding: [8, 8, 0, 0],
				series: [{value: (u, v) => v === null ? '—' : time(v * 1000, 'full')}, ...series.map((s, i) => ({label: s.label, stroke: colour(s.colour ?? COLOURS[i % COLOURS.length]), width: 1.5,
					fill: series.length === 1 ? `${colour(COLOURS[0])}22` : undefined, points: {show: s.points.length < 3},
					paths: bars ? UPlot.paths.bars({size: [0.7, 40]}) : undefined, value: (u, v) => valueText(v, unit)}))],
				axes: [{...axis, size: 28, ...bars && data[0].length <= BARS_NAMED && {splits: u => u.data[0]}, values: (u, list, i, space, step) => list.map(clock(step))}, {...axis, size: 62, values: (u, list) => list.map(v => unit === 'bytes' ? bytes(v) : unit === 'ms' ? duration(v / 1000) : number(v, 2))}],
				scales: {x: {range: (u, first, last) => u.data[0].length === 1 ? [u.data[0][0] - alone, u.data[0][0] + alone] : [first, last]}, y: {range: (u, least, most) => [Math.min(0, least ?? 0), (most ?? 1) * 1.1 || (unit === 'bytes' ? 1000 : 1)]}}
			}, data, box.current);
		});
		return () => {
			gone = true;
			plot.current?.destroy();
			plot.current = null;
		};
	}, [width, height, dark, shape, unit, bars, together]);
	useEffect(() => {
		plot.current?.setData(data);
	}, [data]);
	const only = series.length === 1 ? series[0].points.filter(p => p[1] !== null && p[1] !== undefined).at(-1) : null;
	/* The values at the crosshair; without one the newest. */
	const lasts = together ? data.slice(1).map(values => at === null ? values.findLast(v => v !== null) : values[at]) : [];
	const told = together ? html`<span class="plot-values">${series.map((s, i) => html`<b key=${s.label} title=${s.label}><i style=${{background: `var(${s.colour ?? colourOf(i)})`}}></i>${valueText(lasts[i], unit)}</b>`)}</span>`
		: only && html`<b>${valueText(only[1], unit)}</b>`;
	return html`<figure class="plot"><figcaption>${title}${together && at !== null && html`<time>${time(data[0][at] * 1000, 'full')}</time>`}${told}</figcaption>
		<div class="plot-box" ref=${box} role="img" aria-label=${summary(title, series, unit)} style=${{minHeight: `${height}px`}}></div></figure>`;
}
