/* People of an organization or of a project: the same list, with other roles. */
import {html, useState, useQuery, setQuery, Table, Empty, Button, Menu, DialogForm, ConfirmDanger, Field, Input, Search, StatePill, Choices, Time,
	say, words, useSession} from './kit.js';
import {roleOptions, roleNames} from './roles.js';

const w = words('people');

export function InviteDialog({roles, first, onInvite, onClose}) {
	const [username, setUsername] = useState(''), [chosen, setChosen] = useState([first]);
	return html`<${DialogForm} title=${w('inviteTitle')} submit=${w('invite')} onSubmit=${() => onInvite(username.trim(), chosen)} onClose=${onClose}
		disabled=${!chosen.length}>
		<${Field} label=${w('address')} name="username" help=${w('addressHelp')} required><${Input} type="email" value=${username}
			onInput=${setUsername} autofocus /><//>
		<${Choices} legend=${w('roles')} options=${roleOptions(roles)} value=${chosen} onInput=${setChosen} name="roles" /><//>`;
}

function RolesDialog({user, held, roles, onSave, onClose}) {
	const [chosen, setChosen] = useState(held);
	return html`<${DialogForm} title=${w('rolesOf', {name: user.username})} submit=${w('save')} onSubmit=${() => onSave(user, chosen)}
		onClose=${onClose} disabled=${!chosen.length}>
		<${Choices} legend=${w('roles')} options=${roleOptions(roles, held)} value=${chosen} onInput=${setChosen} name="roles" /><//>`;
}

const nameOf = u => [u.firstName, u.lastName].filter(Boolean).join(' ');

/* heldOf(user): their roles here; onRoles(user, roles), onRemove(user). */
export function People({users, roles, heldOf, onRoles, onRemove, action}) {
	const [q] = useQuery('q'), [asked] = useQuery('do'), [doomed, setDoomed] = useState(null), me = useSession()?.user?.id,
		close = () => setQuery({do: ''});
	const open = users?.find(u => `roles:${u.id}` === asked);
	const columns = [{key: 'name', label: w('name'), main: true, value: u => u.username,
		cell: u => html`${u.username}${u.id === me ? html` <span class="dim">${w('you')}</span>` : ''}<small>${nameOf(u)}</small>`},
		{key: 'roles', label: w('roles'), width: '34%', value: u => roleNames(heldOf(u))},
			{key: 'status', label: w('status'), width: '14%', value: u => u.orgMembershipStatus,
			cell: u => html`<${StatePill} state=${u.orgMembershipStatus} />`},
		{key: 'last', label: w('last'), width: '14%', wide: true, value: u => u.lastAuth ?? '',
			cell: u => html`<${Time} at=${u.lastAuth} kind="ago" />`},
		{key: 'do', label: '', width: '3.5rem', sort: false, cell: u =>
			html`<${Menu} label=${w('more', {name: u.username})} items=${[{label: w('changeRoles'), onPick: () => setQuery({do: `roles:${u.id}`})},
			{label: w('remove'), kind: 'danger', onPick: () => setDoomed(u)}]} />`}];
	const rows = users?.filter(u => `${u.username} ${nameOf(u)} ${roleNames(heldOf(u))}`.toLowerCase().includes(q.toLowerCase()));
	return html`<section class="card" aria-label=${w('title')}><div class="bar"><${Search} label=${w('find')} value=${q}
		onInput=${v => setQuery({q: v})} /></div>
			<${Table} label=${w('title')} columns=${columns} rows=${rows} onOpen=${u => setQuery({do: `roles:${u.id}`})}
				empty=${html`<${Empty} title=${w(q ? 'none' : 'nobody')} text=${w(q ? 'noneText' : 'nobodyText')} action=${action} />`} /></section>
		${open && html`<${RolesDialog} user=${open} held=${heldOf(open)} roles=${roles} onClose=${close}
			onSave=${async (u, list) => { await onRoles(u, list); close(); say(w('saved')); }} />`}
		${doomed && html`<${ConfirmDanger} title=${w('removeTitle', {name: doomed.username})} text=${w(doomed.id === me ? 'removeMe' : 'removeText')}
			name=${doomed.id === me ? doomed.username : undefined} action=${w('remove')}
			onConfirm=${async () => { await onRemove(doomed); say(w('removed', {name: doomed.username})); }} onClose=${() => setDoomed(null)} />`}`;
}

export const InviteButton = () => html`<${Button} kind="go" icon="plus" onClick=${() => setQuery({do: 'invite'})}>${w('inviteTitle')}<//>`;
