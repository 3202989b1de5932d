/* The box for statements, with what may come next: tables and columns of the database that one is in, and words of the language. They are asked
 * for as the person's own database user, by a read like any other, when somebody begins to type. */
import {html, send, useEffect, useRef, useState, words} from './kit.js';
import {QUESTION, knownOf, suggest} from './sql_words.js';

const w = words('sql');
const TAB = 8, MINUTE = 60000;
/* What databases have told, and when, until the page is loaded anew. Nothing of a user is offered to another one. */
const told = new Map();
const FRESH = {tables: [], words: []};

/* want() asks once a minute at most; a refusal is nobody's business here, as the statement itself will tell it. */
function useKnown(groupId, clusterName, {username, password, database}) {
	const key = JSON.stringify([groupId, clusterName, username, password, database]), [, drawn] = useState(0);
	const want = async () => {
		if (!username || !password || !database || Date.now() - (told.get(key)?.at ?? 0) < MINUTE)
			return;
		told.set(key, {known: told.get(key)?.known, at: Date.now()});
		const answer = await send('POST', '/api/session/sql', {groupId, clusterName, username, password, database, statement: QUESTION, write: false}).catch(() => null);
		if (answer?.results?.[0])
			told.set(key, {known: knownOf(answer.results[0].rows), at: Date.now()});
		drawn(n => n + 1);
	};
	return {known: told.get(key)?.known ?? FRESH, want, forget: () => told.has(key) && (told.get(key).at = 0)};
}

/* Where the caret stands, in letters: lines are not wrapped, and all letters are as wide. */
function placeOf(text, caret) {
	const lines = text.slice(0, caret).split('\n');
	return {line: lines.length, column: [...lines.at(-1)].reduce((n, c) => c === '\t' ? n + TAB - n % TAB : n + 1, 0)};
}

export function Editor({groupId, clusterName, login, value, onInput, label, changed}) {
	const box = useRef(), {known, want, forget} = useKnown(groupId, clusterName, login), [at, setAt] = useState(null), [chosen, setChosen] = useState(-1);
	/* What was written may have made a table. */
	useEffect(() => { forget(); }, [changed]);
	const found = at ? suggest(value, at.caret, known, at.all) : null, list = found?.list ?? [];
	const close = () => {
		setAt(null);
		setChosen(-1);
	};
	const take = one => {
		const area = box.current, caret = found.from + one.text.length;
		onInput(value.slice(0, found.from) + one.text + value.slice(at.caret));
		close();
		area.focus();
		/* Once the text is there. */
		requestAnimationFrame(() => area.setSelectionRange(caret, caret));
	};
	const typed = e => {
		onInput(e.target.value);
		want();
		setAt({caret: e.target.selectionStart, all: false});
		setChosen(-1);
	};
	const keys = e => {
		if (e.key === ' ' && e.ctrlKey) {
			e.preventDefault();
			want();
			setAt({caret: e.target.selectionStart, all: true});
			setChosen(-1);
			return;
		}
		if (!list.length || e.ctrlKey || e.metaKey || e.altKey)
			return;
		const step = {ArrowDown: 1, ArrowUp: -1}[e.key];
		if (step) {
			e.preventDefault();
			setChosen((chosen + (chosen < 0 && step < 0 ? 0 : step) + list.length) % list.length);
		} else if (e.key === 'Tab' && !e.shiftKey || e.key === 'Enter' && chosen >= 0) {
			e.preventDefault();
			take(list[Math.max(chosen, 0)]);
		} else if (e.key === 'Escape') {
			e.preventDefault();
			e.stopPropagation();
			close();
		} else if (/^(Arrow|Home|End|Page)/.test(e.key))
			close();
	};
	const place = list.length ? placeOf(value, found.from) : null, scroll = box.current;
	return html`<div class="sql-box"><textarea ref=${box} class="in mono" rows="8" wrap="off" spellcheck="false" autocapitalize="off" autocomplete="off" aria-label=${label} value=${value} onInput=${typed}
			onKeyDown=${keys} onFocus=${want} onBlur=${close} onClick=${close} onScroll=${close} aria-autocomplete="list" aria-controls=${list.length ? 'sql-next' : undefined}
			aria-activedescendant=${chosen >= 0 && list[chosen] ? `sql-next-${chosen}` : undefined}></textarea>
		${list.length > 0 && html`<ul id="sql-next" class="sql-next mono" role="listbox" aria-label=${w('next')} style=${{'--row': place.line, '--column': place.column,
			'--down': `${-(scroll?.scrollTop ?? 0)}px`, '--over': `${-(scroll?.scrollLeft ?? 0)}px`}}>${list.map((one, i) => html`<li key=${`${one.kind}${one.text}`} id=${`sql-next-${i}`} role="option"
			aria-selected=${String(i === chosen)} onMouseDown=${e => { e.preventDefault(); take(one); }}><span>${one.text}</span> <small>${w(`next.${one.kind}`, {of: one.of})}</small></li>`)}</ul>`}
		<div class="hidden" role="status">${list.length > 0 && w('nextCount', {n: list.length})}</div></div>`;
}
