/* Tables that are tables. Above VIRTUAL_FROM rows only those near the window are in the page; their number and place are said by
 * aria-rowcount and aria-rowindex. */
import {html, cls, useEffect, useLayoutEffect, useMemo, useRef, useState} from '../lib.js';
import {t, textsLoaded} from '../texts.js';
import {Link, go} from '../router.js';

const VIRTUAL_FROM = 100, MARGIN = 12, STEP = 6;

const compare = (a, b) => {
	if (a === b)
		return 0;
	if (a === undefined || a === null || a === '')
		return 1;
	if (b === undefined || b === null || b === '')
		return -1;
	return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
};

const valueOf = (c, row) => c.value ? c.value(row) : row[c.key];

function sorted(rows, columns, sort) {
	const column = sort && columns.find(c => c.key === sort[0]);
	return column ? [...rows].sort((a, b) => compare(valueOf(column, a), valueOf(column, b)) * sort[1]) : rows;
}

/* Which rows are near the window: [first, end, height of a row]. */
function useWindow(count, body) {
	const [range, setRange] = useState([0, Math.min(count, 60)]);
	const height = useRef(44);
	useLayoutEffect(() => {
		if (count <= VIRTUAL_FROM)
			return undefined;
		const look = () => {
			const box = body.current;
			if (!box)
				return;
			const rows = box.querySelectorAll('tr[data-row]');
			if (rows.length > 1)
				height.current = (rows[rows.length - 1].getBoundingClientRect().top - rows[0].getBoundingClientRect().top) / (rows.length - 1) || 44;
			const above = -box.getBoundingClientRect().top;
			const first = Math.max(0, Math.floor((above / height.current - MARGIN) / STEP) * STEP);
			const end = Math.min(count, Math.ceil(((above + innerHeight) / height.current + MARGIN) / STEP) * STEP);
			setRange(r => r[0] === first && r[1] === end ? r : [first, Math.max(first, end)]);
		};
		look();
		addEventListener('scroll', look, {passive: true});
		addEventListener('resize', look);
		return () => {
			removeEventListener('scroll', look);
			removeEventListener('resize', look);
		};
	}, [count]);
	return count <= VIRTUAL_FROM ? [0, count, 0] : [Math.min(range[0], count), Math.min(range[1], count), height.current];
}

/* columns: [{key, label, cell(row), value(row), width, main, sort: false, align, label2, wide}]
 *   cell: what is shown (default: the value); value: what is sorted by; main: the cell that opens the row; wide: not on narrow screens.
 * rows; keyOf(row); to(row): the path that a row opens, or onOpen(row); empty: shown instead of no rows (a node);
 * label: what the table is; sort: [key, 1|-1] and onSort(key, direction), for lists that the server sorts; selected: a key.
 * failed: what kept the rows from being loaded, which Fault tells of: then nothing is waited for. */
export function Table({columns, rows, keyOf = r => r.id, to, onOpen, empty, label, sort, onSort, selected, class: c, foot, failed}) {
	const [own, setOwn] = useState(null), [on, setOn] = useState(-1);
	const body = useRef(), jump = useRef(false);
	const order = onSort ? sort : own ?? sort;
	const list = useMemo(() => onSort ? rows ?? [] : sorted(rows ?? [], columns, order), [rows, columns, order?.[0], order?.[1], onSort]);
	const [first, end, height] = useWindow(list.length, body);
	const now = useRef(), kept = useRef({});
	now.current = {to, onOpen};
	const open = row => now.current.to ? go(now.current.to(row)) : now.current.onOpen?.(row);
	const opens = Boolean(to || onOpen);

	useEffect(() => {
		const move = e => setOn(n => {
			const next = Math.max(0, Math.min(list.length - 1, n + e.detail));
			jump.current = true;
			return next;
		});
		const box = body.current;
		box?.addEventListener('move-row', move);
		return () => box?.removeEventListener('move-row', move);
	}, [list.length]);
	useEffect(() => {
		if (!jump.current || on < 0)
			return;
		jump.current = false;
		const at = body.current?.querySelector(`tr[data-row="${on}"]`);
		if (at)
			(at.querySelector('a, button') ?? at).focus();
		else if (height) {
			jump.current = true;
			scrollTo(0, scrollY + body.current.getBoundingClientRect().top + on * height - innerHeight / 2);
		}
	}, [on, first, end]);

	if (rows && !rows.length && empty)
		return empty;
	const pick = key => {
		const direction = order?.[0] === key ? -order[1] : 1;
		if (onSort)
			onSort(key, direction);
		else
			setOwn([key, direction]);
	};
	const head = col => {
		const by = order?.[0] === col.key;
		const may = col.sort !== false && (!onSort || col.sort);
		return html`<th scope="col" key=${col.key} class=${cls(col.align, col.wide && 'wide')} style=${col.width ? {width: col.width} : undefined}
			aria-sort=${by ? order[1] > 0 ? 'ascending' : 'descending' : undefined}>${may && col.label ? html`<button type="button" onClick=${() => pick(col.key)}>${col.label}</button>`
			: col.label || html`<span class="hidden">${col.label2 ?? t('table.actions')}</span>`}</th>`;
	};
	const main = columns.find(col => col.main) ?? columns[0];
	const cell = (col, row) => {
		const inside = col.cell ? col.cell(row) : shown(valueOf(col, row));
		if (col !== main || !opens)
			return inside;
		return to ? html`<${Link} class="name" to=${to(row)}>${inside}<//>` : html`<button type="button" class="name" onClick=${e => { e.stopPropagation(); open(row); }}>${inside}</button>`;
	};
	const click = (e, row) => {
		if (opens && !e.defaultPrevented && !e.target.closest('a, button, input, select, label, summary') && !String(getSelection()))
			open(row);
	};
	const line = (row, i) => html`<tr key=${keyOf(row)} data-row=${i} aria-rowindex=${height ? i + 2 : undefined} class=${cls(opens && 'opens', isOn(row, i) && 'on')} onClick=${e => click(e, row)}>
		${columns.map(col => html`<td key=${col.key} class=${cls(col.align, col.wide && 'wide', col === main && 'main-cell')} data-l=${col === main ? undefined : col.label}>${cell(col, row)}</td>`)}</tr>`;
	const isOn = (row, i) => i === on || selected !== undefined && selected === keyOf(row);
	/* While a long list is scrolled, rows that stay are not drawn again: the same object tells Preact so. */
	const lines = () => {
		const before = kept.current, same = before.columns === columns && before.texts === textsLoaded.get() && before.opens === opens, next = new Map();
		const drawn = list.slice(first, end).map((row, n) => {
			const i = first + n, was = same && before.rows.get(row), lit = isOn(row, i);
			const made = was && was.i === i && was.lit === lit ? was : {i, lit, line: line(row, i)};
			next.set(row, made);
			return made.line;
		});
		kept.current = {columns, texts: textsLoaded.get(), opens, rows: next};
		return drawn;
	};
	return html`<div class=${cls('list', c)}><table class=${height ? 'long' : undefined} aria-label=${label} aria-rowcount=${height ? list.length + 1 : undefined} data-keys="">
		<thead><tr>${columns.map(head)}</tr></thead>
		<tbody ref=${body} onFocusIn=${e => { const r = e.target.closest('tr[data-row]'); if (r) setOn(Number(r.dataset.row)); }}>
			${height && first ? html`<tr key="above" class="gap" aria-hidden="true" style=${{height: `${first * height}px`}}></tr>` : null}
			${height ? lines() : list.map(line)}
			${height && end < list.length ? html`<tr key="below" class="gap" aria-hidden="true" style=${{height: `${(list.length - end) * height}px`}}></tr>` : null}
			${!rows && html`<tr key="wait"><td colspan=${columns.length} class="dim">${t(failed ? 'notLoaded' : 'loading')}</td></tr>`}
		</tbody></table>${foot && html`<div class="foot">${foot}</div>`}</div>`;
}

const shown = value => value === undefined || value === null || value === '' ? html`<span class="dim">—</span>`
	: typeof value === 'boolean' ? t(value ? 'yes' : 'no') : typeof value === 'object' ? JSON.stringify(value) : String(value);

/* Pages of a list that the server pages. */
export function Pager({page, size, total, onPage}) {
	const last = Math.max(1, Math.ceil(total / size));
	if (last < 2)
		return null;
	return html`<nav class="pager" aria-label=${t('pager')}><button type="button" class="btn s" disabled=${page <= 1} onClick=${() => onPage(page - 1)}>${t('pager.before')}</button>
		<span>${t('pager.at', {page, last})}</span><button type="button" class="btn s" disabled=${page >= last} onClick=${() => onPage(page + 1)}>${t('pager.after')}</button></nav>`;
}
