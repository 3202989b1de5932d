/* Who gets into the databases of a project: users, and the roles that were made for them. */
import {
	html, call, callAll, useState, useLoad, useLive, useCalm, useQuery, setQuery, Page, Tabs, Table, Empty, Fault, Button, Menu, DialogForm,
		ConfirmDanger, Field, Fieldset, Input, Select, Check, Search, SecretOnce, Dialog, Time, say,
	words, atField, useMay
} from './parts/kit.js';
import {newPassword} from './parts/access.js';
import {RoleDialog, roleText} from './parts/database_role.js';

const w = words('access');
const BUILT_IN = ['readWriteAnyDatabase', 'readAnyDatabase', 'readWrite', 'read', 'dbAdmin', 'dbAdminAnyDatabase', 'clusterMonitor', 'backup',
	'svcAdmin'];
const ON_ONE = /^(read|readWrite|dbAdmin)$/;
const named = name => w.or(`role.${name}`, 'role.plain', {name});
const rolesText = u => (u.roles ?? []).map(r => ON_ONE.test(r.roleName) ?
	w(`on.${r.roleName}`, {place: `${r.databaseName}${r.collectionName ? `.${r.collectionName}` : ''}`}) : named(r.roleName)).join(', ');
const wayIn = u => u.x509Type && u.x509Type !== 'NONE' ? 'x509' : u.ldapAuthType && u.ldapAuthType !== 'NONE' ? 'ldap' : u.oidcAuthType &&
	u.oidcAuthType !== 'NONE' ? 'oidc' : u.awsIAMType && u.awsIAMType !== 'NONE' ? 'iam' : 'password';

function RoleRow({role, index, names, onInput, onRemove}) {
	const at = `roles[${index}]`, builtIn = BUILT_IN.map(r => ({value: r, label: named(r)}));
	return html`<div class="row"><${Field} label=${w('role')} name=${`${at}.roleName`}><${Select} value=${role.roleName}
		onInput=${v => onInput({...role, roleName: v, databaseName: ON_ONE.test(v) ? role.databaseName === 'admin' ? '' : role.databaseName :
		'admin'})}
			options=${names.length ? {[w('builtIn')]: builtIn, [w('custom')]: names} : builtIn} /><//>
		${ON_ONE.test(role.roleName) && html`<${Field} label=${w('database')} name=${`${at}.databaseName`}><${Input} value=${role.databaseName}
			onInput=${v => onInput({...role, databaseName: v})} /><//>
			${role.roleName !== 'dbAdmin' && html`<${Field} label=${w('table')} name=${`${at}.collectionName`} hint=${w('optional')}><${Input}
				value=${role.collectionName ?? ''} onInput=${v => onInput({...role, collectionName: v || undefined})} /><//>`}`}
		${onRemove && html`<${Button} small class="row-end" onClick=${onRemove}
			aria-label=${w('removeRole', {n: index + 1})}>${w('remove')}<//>`}</div>`;
}

function UserDialog({groupId, user, names, clusters, onClose, onDone}) {
	const [name, setName] = useState(user?.username ?? ''), [fresh, setFresh] = useState(!user),
		[roles, setRoles] = useState(user?.roles ?? [{roleName: 'readWriteAnyDatabase', databaseName: 'admin'}]);
	const [scopes, setScopes] = useState((user?.scopes ?? []).map(s => s.name)), [hours, setHours] = useState(''),
		isPassword = !user || wayIn(user) === 'password';
	const store = async () => {
		const password = isPassword && fresh ? newPassword() : undefined;
		const body = {groupId, databaseName: user?.databaseName ?? 'admin', username: user?.username ?? name, roles,
			scopes: scopes.map(s => ({name: s, type: 'CLUSTER'})), ...(password && {password}),
			...(hours && {deleteAfterDate: new Date(Date.now() + hours * 3600e3).toISOString()})};
		if (user)
			await call('updateDatabaseUser', {groupId, databaseName: user.databaseName, username: user.username}, {body});
		else
			await atField(call('createDatabaseUser', {groupId}, {body}), {USER_ALREADY_EXISTS: 'username'});
		onDone(password && {name: user?.username ?? name, password});
	};
	const change = (i, next) => setRoles(roles.map((r, k) => k === i ? next : r));
	return html`<${DialogForm} op=${user ? 'updateDatabaseUser' : 'createDatabaseUser'} kind="wide" title=${user ? w('change', {name: user.username}) : w('newUser')} submit=${w(user ? 'save' : 'make')}
		onSubmit=${store} onClose=${onClose}>
		${!user && html`<${Field} label=${w('name')} name="username" required><${Input} value=${name} onInput=${setName} maxlength="63" autofocus
			/><//>`}
		${isPassword && (user ? html`<${Check} checked=${fresh} onInput=${setFresh} label=${w('newPassword')} name="password" />` :
			html`<p class="dim">${w('passwordText')}</p>`)}
		<${Fieldset} legend=${w('roles')}>${roles.map((r, i) => html`<${RoleRow} key=${i} role=${r} index=${i} names=${names}
			onInput=${next => change(i, next)} onRemove=${roles.length > 1 ? () => setRoles(roles.filter((_, k) => k !== i)) : undefined} />`)}
			<${Button} small onClick=${() => setRoles([...roles, {roleName: 'read', databaseName: ''}])}>${w('addRole')}<//><//>
		${clusters.length > 0 && html`<${Fieldset} legend=${w('scopes')}
			help=${w('scopesHelp')}>${clusters.map(c => html`<${Check} key=${c} checked=${scopes.includes(c)}
			onInput=${on => setScopes(on ? [...scopes, c] : scopes.filter(x => x !== c))} label=${c} />`)}<//>`}
		<${Field} label=${w('until')} name="deleteAfterDate"><${Select} value=${hours} onInput=${setHours}
			empty=${user?.deleteAfterDate ? w('asItIs') : w('forGood')} options=${[['1', 'hour'], ['24', 'day'],
			['168', 'week']].map(([value, k]) => ({value, label: w(`for.${k}`)}))} /><//><//>`;
}

function Users({groupId, data, reload}) {
	const may = useMay();
	const [asked] = useQuery('do'), [q] = useQuery('q'), [doomed, setDoomed] = useState(null), [secret, setSecret] = useState(null);
	const close = () => setQuery({do: ''}), open = data.users.find(u => `change:${u.username}` === asked);
	const done = made => {
		close();
		setSecret(made || null);
		say(w('saved'));
		reload();
	};
	const remove = async () => {
		await call('deleteDatabaseUser', {groupId, databaseName: doomed.databaseName, username: doomed.username});
		say(w('deleted', {name: doomed.username}));
		reload();
	};
	const columns = [{key: 'name', label: w('name'), main: true, value: u => u.username},
		{key: 'roles', label: w('roles'), width: '32%', value: rolesText},
		{key: 'way', label: w('way'), width: '12%', wide: true, value: u => w(`way.${wayIn(u)}`)},
		{key: 'scopes', label: w('where'), width: '18%', wide: true, value: u => (u.scopes ?? []).map(s => s.name).join(', ') || w('all')},
		{key: 'until', label: w('ends'), width: '12%', wide: true, value: u => u.deleteAfterDate ?? '',
			cell: u => u.deleteAfterDate ? html`<${Time} at=${u.deleteAfterDate} kind="ago" />` : html`<span class="dim">${w('never')}</span>`},
		{key: 'do', label: '', width: '3.5rem', sort: false, cell: u =>
			html`<${Menu} label=${w('more', {name: u.username})} items=${[{label: w('edit'), op: 'updateDatabaseUser', onPick: () => setQuery({do: `change:${u.username}`})},
			{label: w('delete'), op: 'deleteDatabaseUser', kind: 'danger', onPick: () => setDoomed(u)}]} />`}];
	const rows = data.users.filter(u => `${u.username} ${rolesText(u)}`.toLowerCase().includes(q.toLowerCase()));
	const make = html`<${Button} op="createDatabaseUser" kind="go" onClick=${() => setQuery({do: 'new'})}>${w('newUser')}<//>`;
	return html`<section class="card" aria-label=${w('users')}><div class="bar"><${Search} label=${w('find')} value=${q}
		onInput=${v => setQuery({q: v})} /></div>
			<${Table} label=${w('users')} columns=${columns} rows=${rows} keyOf=${u => `${u.databaseName}.${u.username}`}
				onOpen=${may('updateDatabaseUser') && (u => setQuery({do: `change:${u.username}`}))} empty=${html`<${Empty} title=${w('noUsers')} text=${w('noUsersText')}
				action=${make} />`} /></section>
		${(asked === 'new' || open) && html`<${UserDialog} groupId=${groupId} user=${open} names=${data.roles.map(r => r.roleName)}
			clusters=${data.clusters} onClose=${close} onDone=${done} />`}
		${doomed && html`<${ConfirmDanger} title=${w('deleteTitle', {name: doomed.username})} text=${w('deleteText')} action=${w('delete')}
			onConfirm=${remove} onClose=${() => setDoomed(null)} />`}
		${secret && html`<${Dialog} once title=${w('passwordOf', {name: secret.name})} onClose=${() => setSecret(null)}><${SecretOnce}
			label=${w('password')} text=${secret.password} /><div class="acts"><${Button} kind="go"
			onClick=${() => setSecret(null)}>${w('kept')}<//></div><//>`}`;
}

function Roles({groupId, data, reload}) {
	const may = useMay();
	const [asked] = useQuery('do'), [doomed, setDoomed] = useState(null), close = () => setQuery({do: ''}),
		open = data.roles.find(r => `change:${r.roleName}` === asked);
	const done = () => { close(); say(w('saved')); reload(); };
	const remove = async () => {
		await call('deleteCustomDbRole', {groupId, roleName: doomed.roleName});
		reload();
	};
	const columns = [{key: 'name', label: w('name'), main: true, value: r => r.roleName},
		{key: 'may', label: w('may'), width: '60%', value: roleText},
		{key: 'do', label: '', width: '3.5rem', sort: false, cell: r =>
			html`<${Menu} label=${w('more', {name: r.roleName})} items=${[{label: w('edit'), op: 'updateCustomDbRole', onPick: () => setQuery({do: `change:${r.roleName}`})},
			{label: w('delete'), op: 'deleteCustomDbRole', kind: 'danger', onPick: () => setDoomed(r)}]} />`}];
	const make = html`<${Button} op="createCustomDbRole" kind="go" onClick=${() => setQuery({do: 'new'})}>${w('newRole')}<//>`;
	return html`<section class="card" aria-label=${w('custom')}><${Table} label=${w('custom')} columns=${columns} rows=${data.roles}
		keyOf=${r => r.roleName} onOpen=${may('updateCustomDbRole') && (r => setQuery({do: `change:${r.roleName}`}))}
		empty=${html`<${Empty} title=${w('noRoles')} text=${w('noRolesText')} action=${make} />`} /></section>
		${(asked === 'new' || open) && html`<${RoleDialog} groupId=${groupId} role=${open} onClose=${close} onDone=${done} />`}
		${doomed && html`<${ConfirmDanger} title=${w('deleteTitle', {name: doomed.roleName})} text=${w('deleteRoleText')} action=${w('delete')}
			onConfirm=${remove} onClose=${() => setDoomed(null)} />`}`;
}

export default function Screen({params: {groupId}}) {
	const [tab] = useQuery('tab', 'users'), Part = tab === 'roles' ? Roles : Users;
	const {data, error, reload} = useLoad(async () => {
		const [users, roles, clusters] = await Promise.all([callAll('listDatabaseUsers', {groupId}), call('listCustomDbRoles', {groupId}),
			callAll('listClusters', {groupId}).catch(() => [])]);
		return {users, roles: Array.isArray(roles) ? roles : roles.results ?? [], clusters: clusters.map(c => c.name)};
	}, [groupId], {key: `access ${groupId}`});
	const calm = useCalm(reload);
	useLive({groupId}, calm);
	return html`<${Page} title=${w('title')} needs="createDatabaseUser" actions=${html`<${Button} kind="go" icon="plus" op=${tab === 'roles' ? 'createCustomDbRole' : 'createDatabaseUser'}
		onClick=${() => setQuery({do: 'new'})}>${w(tab === 'roles' ? 'newRole' : 'newUser')}<//>`}><${Fault} error=${error} retry=${reload} />
		<${Tabs} label=${w('title')} current=${tab} onPick=${v => setQuery({tab: v === 'users' ? '' : v, do: ''})}
			tabs=${[{id: 'users', label: w('users'), count: data?.users.length}, {id: 'roles', label: w('custom'), count: data?.roles.length}]} />
		${data && html`<${Part} groupId=${groupId} data=${data} reload=${reload} />`}<//>`;
}
