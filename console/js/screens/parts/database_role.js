/* A role of a project's own: actions on databases and tables, and other roles that it includes. */
import {html, call, useState, DialogForm, Field, Fieldset, Input, Select, Button, words, atField} from './kit.js';

const w = words('role');
const ACTIONS = ['FIND', 'INSERT', 'UPDATE', 'REMOVE', 'CREATE_COLLECTION', 'DROP_COLLECTION', 'CREATE_INDEX', 'DROP_INDEX', 'COLL_STATS', 'DB_STATS',
	'LIST_COLLECTIONS', 'LIST_DATABASES', 'SERVER_STATUS', 'KILL_OP'];
const onCluster = a => /LIST_DATABASES|SERVER_STATUS|KILL_OP/.test(a);
const place = r => r.cluster ? w('cluster') : `${r.db || '*'}${r.collection ? `.${r.collection}` : ''}`;

export const roleText = role => [...(role.actions ?? []).map(a => `${w.or(a.action, 'action',
	{name: a.action})}: ${(a.resources ?? []).map(place).join(', ')}`),
	...(role.inheritedRoles ?? []).map(r => w('includes', {role: r.role, db: r.db}))].join('; ');

/* One line of the form is one action on one place. */
const linesOf = role => (role?.actions ?? []).flatMap(a => (a.resources ?? []).map(r =>
	({action: a.action, db: r.db ?? '', collection: r.collection ?? ''})));

export function RoleDialog({groupId, role, onClose, onDone}) {
	const [name, setName] = useState(role?.roleName ?? ''), [lines, setLines] = useState(role ? linesOf(role) :
		[{action: 'FIND', db: '', collection: ''}]), [inherited, setInherited] = useState(role?.inheritedRoles ?? []);
	const store = async () => {
		const actions = lines.map(l => ({action: l.action, resources: [onCluster(l.action) ? {cluster: true, db: '', collection: ''} :
			{cluster: false, db: l.db, collection: l.collection}]}));
		const body = {actions, inheritedRoles: inherited};
		if (role)
			await call('updateCustomDbRole', {groupId, roleName: role.roleName}, {body});
		else
			await atField(call('createCustomDbRole', {groupId}, {body: {...body, roleName: name}}),
				{DUPLICATE_ROLE: 'roleName', ROLE_ALREADY_EXISTS: 'roleName', DUPLICATE_CUSTOM_DB_ROLE: 'roleName'});
		onDone();
	};
	const set = (i, next) => setLines(lines.map((l, k) => k === i ? {...l, ...next} : l));
	return html`<${DialogForm} op=${role ? 'updateCustomDbRole' : 'createCustomDbRole'} kind="wide" title=${role ? w('change', {name: role.roleName}) : w('new')} submit=${w(role ? 'save' : 'make')}
		onSubmit=${store} onClose=${onClose}>
		${!role && html`<${Field} label=${w('name')} name="roleName" required><${Input} value=${name} onInput=${setName} autofocus /><//>`}
		<${Fieldset} legend=${w('may')}>${lines.map((l, i) => html`<div class="row" key=${i}><${Field} label=${w('do')}
			name=${`actions[${i}].action`}><${Select} value=${l.action} onInput=${v => set(i, {action: v})}
			options=${ACTIONS.includes(l.action) ? ACTIONS : [...ACTIONS, l.action]} /><//>
			${!onCluster(l.action) && html`<${Field} label=${w('db')} name=${`actions[${i}].resources[0].db`}><${Input} value=${l.db}
				onInput=${v => set(i, {db: v})} /><//><${Field} label=${w('table')} hint=${w('allTables')}
				name=${`actions[${i}].resources[0].collection`}><${Input} value=${l.collection} onInput=${v => set(i, {collection: v})} /><//>`}
			<${Button} small class="row-end" aria-label=${w('removeLine', {n: i + 1})}
				onClick=${() => setLines(lines.filter((_, k) => k !== i))}>${w('remove')}<//></div>`)}
			<${Button} small onClick=${() => setLines([...lines, {action: 'FIND', db: lines.at(-1)?.db ?? '', collection: ''}])}>${w('add')}<//><//>
		<${Fieldset} legend=${w('inherits')}>${inherited.map((r, i) =>
			html`<div class="row" key=${i}><${Field} label=${w('role')} name=${`inheritedRoles[${i}].role`}><${Input} value=${r.role}
			onInput=${v => setInherited(inherited.map((x, k) => k === i ? {...x, role: v} : x))} /><//>
			<${Field} label=${w('db')} name=${`inheritedRoles[${i}].db`}><${Input} value=${r.db}
				onInput=${v => setInherited(inherited.map((x, k) => k === i ? {...x, db: v} : x))} /><//>
			<${Button} small class="row-end" aria-label=${w('removeInherited', {n: i + 1})}
				onClick=${() => setInherited(inherited.filter((_, k) => k !== i))}>${w('remove')}<//></div>`)}
			<${Button} small onClick=${() => setInherited([...inherited, {role: 'read', db: ''}])}>${w('addInherited')}<//><//><//>`;
}
