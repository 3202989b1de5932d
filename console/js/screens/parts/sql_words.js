/* What may come next in a statement: pure functions, without a page. `known` is what a database has told:
 * {tables: [{schema, name, columns, near}], words}; near: found without its schema's name. */

/* One row for each table that the user may see, the near ones first, and one with the words of the language: a read of the
 * editor is one statement, and at most 1,000 rows. */
export const QUESTION = `select n.nspname, c.relname, n.nspname = any(current_schemas(false)), json_agg(a.attname order by a.attnum)
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relkind in ('r', 'v', 'm', 'f', 'p') and n.nspname !~ '^(pg_|information_schema$|steward)' and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
group by 1, 2, 3 union all select '', '', null, json_agg(word order by word) from pg_get_keywords() where catcode in ('R', 'T') or
word in ('begin', 'by', 'commit', 'delete', 'explain', 'index', 'insert', 'key', 'over', 'partition', 'rollback', 'set', 'update', 'values', 'view', 'alter', 'drop', 'truncate', 'exists', 'between', 'coalesce', 'nulls', 'first', 'last')
order by 3 desc nulls first, 1, 2 limit 999`;

/* The answer's rows. A value that was cut off is not whole, and is left out. */
export function knownOf(rows) {
	const known = {tables: [], words: []};
	for (const [schema, name, near, list] of rows) {
		let parts = [];
		try {
			parts = JSON.parse(list);
		} catch { /* cut off */ }
		if (!schema)
			known.words = parts;
		else
			known.tables.push({schema, name, near: near === 't', columns: parts});
	}
	return known;
}

/* Where each of these ends. A quoted name is none of them: names are offered in it. */
const ENDS = {"'": "'", '--': '\n', '/*': '*/'};
const NEVER = -1;

/* Whether the end of the text is within a string or a comment; and where its statement begins. One pass, as the text may be long. */
function scanned(text) {
	const opens = /'|--|\/\*|\$(?:[a-z_]\w*)?\$|"|;/gi;
	let first = 0;
	for (let m = opens.exec(text); m; m = opens.exec(text)) {
		if (m[0] === ';') {
			first = m.index + 1;
			continue;
		}
		const end = ENDS[m[0]] ?? m[0], at = text.indexOf(end, opens.lastIndex);
		if (at === NEVER)
			return {first, within: m[0] !== '"'};
		opens.lastIndex = at + end.length;
	}
	return {first, within: false};
}

const PLAIN = /^[a-z_][a-z0-9_$]*$/;
/* As it has to be written. */
export const quoted = (name, reserved) => PLAIN.test(name) && !reserved.has(name) ? name : `"${name.replace(/"/g, '""')}"`;
const bare = name => name.startsWith('"') ? name.slice(1).replace(/"$/, '').replace(/""/g, '"') : name.toLowerCase();

const NAME = '(?:"(?:[^"]|"")+"|[\\w$]+)';
const NAMED = new RegExp(`\\b(?:from|join|update|into|table)\\s+(?:only\\s+)?(?:(${NAME})\\s*\\.\\s*)?(${NAME})(?:\\s+(?:as\\s+)?(${NAME}))?`, 'gi');
const LISTED = new RegExp(`,\\s*(?:(${NAME})\\s*\\.\\s*)?(${NAME})(?:\\s+(?:as\\s+)?(${NAME}))?`, 'gi');
const NO_ALIAS = /^(?:as|on|using|where|set|values|join|left|right|inner|full|cross|natural|order|group|having|limit|offset|union|returning|select|for|window|fetch|except|intersect|default)$/i;

/* The tables that a statement names, each with the names by which its columns are asked for. */
function tablesIn(text, known) {
	const found = [];
	const add = ([, schema, name, alias]) => {
		const table = known.tables.find(t => t.name === bare(name) && (schema ? t.schema === bare(schema) : t.near));
		if (table)
			found.push({table, names: [table.name, ...alias && !NO_ALIAS.test(alias) ? [bare(alias)] : []]});
	};
	for (const m of text.matchAll(NAMED))
		add(m);
	for (const from of text.matchAll(/\bfrom\b([^;()]*?)(?:\bwhere\b|\border\b|\bgroup\b|\blimit\b|;|\)|$)/gi))
		for (const m of from[1].matchAll(LISTED))
			add(m);
	return found;
}

const LAST = new RegExp(`((?:${NAME}\\.)*)("?[\\w$]*)$`);
const MOST = 8, LONGEST = 200, NEAR = 3000; // letters: of what is typed, and of a statement around it
const fits = (name, typed) => name.toLowerCase().startsWith(typed.toLowerCase());

/* The words that may stand at the caret: {from, list: [{text, kind, of}]}, where the text takes the place of what stands between `from` and the
 * caret. kind: 'table', 'column', 'schema' or 'word'. all: also before a letter was typed. */
export function suggest(text, caret, known, all = false) {
	const before = text.slice(0, caret), none = {from: caret, list: []};
	const {first, within} = scanned(before);
	if (within)
		return none;
	const [, path, typed] = LAST.exec(before.slice(-LONGEST));
	if (/^\d/.test(typed))
		return none;
	/* Of the statement where the caret is, not of its neighbours. */
	const end = text.indexOf(';', caret), statement = text.slice(Math.max(first, caret - NEAR), Math.min(end === NEVER ? text.length : end, caret + NEAR));
	const reserved = new Set(known.words), start = typed.replace(/^"/, ''), inStatement = tablesIn(statement, known), list = [], seen = new Set();
	const add = (name, kind, of, written = quoted(name, reserved)) => {
		if (fits(name, start) && written !== typed && !seen.has(`${kind} ${written}`)) {
			seen.add(`${kind} ${written}`);
			list.push({text: written, kind, of});
		}
	};
	const from = caret - typed.length;
	if (path) {
		const owner = bare(path.slice(0, -1).split('.').at(-1));
		inStatement.filter(t => t.names.includes(owner)).forEach(({table}) => table.columns.forEach(c => add(c, 'column', table.name)));
		known.tables.filter(t => t.schema === owner).forEach(t => add(t.name, 'table', t.schema));
		return {from, list: list.slice(0, MOST)};
	}
	const tables = () => {
		known.tables.forEach(t => add(t.name, 'table', t.schema, t.near ? undefined : `${quoted(t.schema, reserved)}.${quoted(t.name, reserved)}`));
		[...new Set(known.tables.filter(t => !t.near).map(t => t.schema))].forEach(s => add(s, 'schema'));
	};
	const columns = () => inStatement.forEach(({table}) => table.columns.forEach(c => add(c, 'column', table.name)));
	const clause = before.slice(Math.max(first, from - NEAR), from), listed = clause.slice(clause.search(/\bfrom\b(?![^]*\bfrom\b)/i));
	const takesTable = /\b(?:from|join|update|into|table|truncate|only)\s+$/i.test(clause.slice(-LONGEST)) || /^from\b[^()]*,\s*$/i.test(listed) && !/\b(?:where|order|group|having|select)\b/i.test(listed);
	if (takesTable)
		tables();
	else if (typed || all) {
		columns();
		if (!typed.startsWith('"')) {
			const upper = /^[A-Z]+$/.test(typed);
			known.words.forEach(word => add(word, 'word', undefined, upper ? word.toUpperCase() : word));
		}
		if (typed)
			tables();
	}
	/* Somebody who has typed a whole word is not asked. */
	return list.length === 1 && list[0].text.toLowerCase() === typed.toLowerCase() ? none : {from, list: list.slice(0, MOST)};
}
