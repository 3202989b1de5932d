/* The focus is never lost: where what had it goes away, it goes to the row that takes its place, or to the heading; within a dialog, to
 * what is there first. Loaded with the first key: who has a mouse does not need it. */
const INSIDE = '.dialog-body :is(input, select, textarea, button, [tabindex])';
let last = null;

/* A dialog stands for the row from which it was opened. */
function noticed(element) {
	const row = element.closest('tr[data-row]'), before = element.closest('dialog') && last;
	last = {element, rows: row?.parentNode ?? before?.rows, at: row?.dataset.row ?? before?.at};
}

function found() {
	const {rows, at} = last, dialog = [...document.querySelectorAll('dialog[open]')].at(-1);
	const row = rows?.isConnected && (rows.querySelector(`tr[data-row="${at}"]`) ?? rows.querySelector('tr[data-row]:last-of-type'));
	(dialog ? dialog.querySelector(INSIDE) : row ? row.querySelector('a, button') : document.querySelector('main h1'))?.focus({preventScroll: true});
}

noticed(document.activeElement);
document.addEventListener('focusin', e => noticed(e.target));
/* Who clicks beside everything wants it nowhere. */
document.addEventListener('focusout', e => queueMicrotask(() => {
	if (last?.element === e.target && e.target.isConnected)
		last = null;
}));
new MutationObserver(() => {
	if (last && !last.element.isConnected && document.activeElement === document.body)
		found();
}).observe(document.getElementById('app'), {childList: true, subtree: true});
