/* What the SQL editor offers at a caret, without a browser: what fits there, written as it has to be, and nothing within texts and comments. */
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {knownOf, quoted, suggest} from '../../console/js/screens/parts/sql_words.js';

const known = knownOf([
	['', '', null, JSON.stringify(['select', 'from', 'order', 'offset', 'where', 'limit', 'on', 'table', 'group', 'update'])],
	['public', 'item', 't', JSON.stringify(['id', 'name', 'stock', 'Order', 'group'])],
	['public', 'Orders', 't', JSON.stringify(['id', 'item_id', 'a"b'])],
	['sales', 'ledger', 'f', JSON.stringify(['amount', 'booked'])],
	['sales', 'cut off', 'f', '["amount", "boo']
]);
/* The caret stands where the bar is. */
const at = (marked, all) => {
	const caret = marked.indexOf('|'), text = marked.replace('|', '');
	const {from, list} = suggest(text, caret, known, all);
	return {from, list: list.map(l => l.text), kinds: [...new Set(list.map(l => l.kind))], text, caret};
};
const offers = (marked, wanted, all) => assert.deepEqual(at(marked, all).list, wanted, marked);

test('words of the language, as they are typed', () => {
	offers('sel|', ['select']);
	offers('SEL|', ['SELECT']);
	offers('select 1; upd|', ['update']);
	offers('|', []);
	assert.ok(at('|', true).list.includes('select'), 'asked for, they come before a letter');
});

test('tables where a table stands', () => {
	assert.deepEqual(at('select * from |').kinds, ['table', 'schema']);
	offers('select * from i|', ['item']);
	offers('select * from le|', ['sales.ledger']);
	offers('select * from sales.|', ['ledger', '"cut off"']);
	offers('select * from "Or|', ['"Orders"']);
	offers('insert into i|', ['item']);
	offers('update i|', ['item']);
	offers('select * from item, |', ['item', '"Orders"', 'sales.ledger', 'sales."cut off"', 'sales']);
});

test('columns of the tables that the statement names', () => {
	offers('select na| from item', ['name']);
	offers('select i.| from item i', ['id', 'name', 'stock', '"Order"', '"group"']);
	offers('select i.n| from item as i', ['name']);
	offers('select o.| from item i, "Orders" o', ['id', 'item_id', '"a""b"']);
	offers('select l.b| from sales.ledger l', ['booked']);
	offers('update item set st|', ['stock']);
	offers('select * from item where st|', ['stock']);
	offers('select am| from item; select * from sales.ledger', []);
	offers('select x.| from item', []);
});

test('nothing within texts, comments and numbers', () => {
	for (const marked of ["select 'fr|", '-- fr|', '/* fr|', 'select $$ fr|', "select 'it''s fr|", 'select 1|', 'select $x$ a $$ fr|'])
		offers(marked, []);
	offers("select 'a' fr|", ['from']);
	offers('/* a */ sel|', ['select']);
});

test('what is taken is put in the place of what was typed', () => {
	const {from, list, text, caret} = at('select * from it| where id = 1');
	assert.equal(text.slice(0, from) + list[0] + text.slice(caret), 'select * from item where id = 1');
	offers('select * from item|', []); // it is whole
});

test('names are quoted where they must be', () => {
	const reserved = new Set(['group']);
	assert.deepEqual(['item', 'Item', 'group', 'a b', 'a"b', '1a', '_x$1', 'größe'].map(n => quoted(n, reserved)), ['item', '"Item"', '"group"', '"a b"', '"a""b"', '"1a"', '_x$1', '"größe"']);
});

test('a long statement is no trouble', {timeout: 60000}, () => {
	for (const piece of ["'", '"a', 'from a, ', '$$', '/*', '--', '((((', 'a.', 'from item i, '])
		suggest(piece.repeat(100000 / piece.length), 99990, known);
});
