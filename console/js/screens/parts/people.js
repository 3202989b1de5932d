/* People of an organization or of a project: the same list, with other roles. */
import {html, send, useLoad, useState, useQuery, setQuery, Table, Empty, Button, Menu, DialogForm, ConfirmDanger, Field, Input, Search, StatePill, Dialog, Copy, Fault, Choices, Time,
	say, words, useMay, useSession} from './kit.js';
import {roleOptions, roleNames} from './roles.js';

const w = words('people');

export function InviteDialog({op, roles, first, onInvite, onClose}) {
	const [username, setUsername] = useState(''), [chosen, setChosen] = useState([first]);
	return html`<${DialogForm} op=${op} title=${w('inviteTitle')} submit=${w('invite')} onSubmit=${() => onInvite(username.trim(), chosen)} onClose=${onClose}
		disabled=${!chosen.length}>
		<${Field} label=${w('address')} name="username" help=${w('addressHelp')} required><${Input} type="email" value=${username}
			onInput=${setUsername} autofocus /><//>
		<${Choices} legend=${w('roles')} options=${roleOptions(roles)} value=${chosen} onInput=${setChosen} name="roles" /><//>`;
}

function RolesDialog({op, user, held, roles, onSave, onClose}) {
	const [chosen, setChosen] = useState(held);
	return html`<${DialogForm} op=${op} title=${w('rolesOf', {name: user.username})} submit=${w('save')} onSubmit=${() => onSave(user, chosen)}
		onClose=${onClose} disabled=${!chosen.length}>
		<${Choices} legend=${w('roles')} options=${roleOptions(roles, held)} value=${chosen} onInput=${setChosen} name="roles" /><//>`;
}

const nameOf = u => [u.firstName, u.lastName].filter(Boolean).join(' ');

/* Without a mail server somebody has to hand the link over: the operator, who gets it here, or can be asked for it. */
function LinkDialog({user, invites, onClose}) {
	const {operator} = useSession();
	const {data, error, reload} = useLoad(async () => {
		const {id} = (await invites()).find(i => i.username === user.username) ?? {};
		return {id, ...operator && await send('POST', '/api/session/invitation-link', {invitationId: id})};
	}, [user.id]);
	return html`<${Dialog} title=${w('linkTitle', {name: user.username})} onClose=${onClose}><${Fault} error=${error} retry=${reload} />
		<p class="dim">${w(operator ? 'linkText' : 'linkAsk')}</p>
		${data && (operator ? html`<${Copy} text=${data.link} label=${w('link')} />` : html`<${Copy} text=${`steward invitation-link ${data.id}`} label=${w('command')} />`)}<//>`;
}

/* heldOf(user): their roles here; onRoles(user, roles), onRemove(user), by the operations `ops` {invite, roles, remove};
 * invites(): the invitations that wait. */
export function People({ops, invites, failed, users, roles, heldOf, onRoles, onRemove, action}) {
	const may = useMay(), [q] = useQuery('q'), [asked] = useQuery('do'), [doomed, setDoomed] = useState(null), {user: {id: me} = {}, noMail} = useSession() ?? {},
		close = () => setQuery({do: ''});
	const open = users?.find(u => `roles:${u.id}` === asked), linked = users?.find(u => `link:${u.id}` === asked && u.orgMembershipStatus === 'PENDING');
	const columns = [{key: 'name', label: w('name'), main: true, value: u => u.username,
		cell: u => html`${u.username}${u.id === me ? html` <span class="dim">${w('you')}</span>` : ''}<small>${nameOf(u)}</small>`},
		{key: 'roles', label: w('roles'), width: '34%', value: u => roleNames(heldOf(u))},
			{key: 'status', label: w('status'), width: '14%', value: u => u.orgMembershipStatus,
			cell: u => html`<${StatePill} state=${u.orgMembershipStatus} text=${u.orgMembershipStatus === 'PENDING' ? w('invited') : undefined} />`},
		{key: 'last', label: w('last'), width: '14%', wide: true, value: u => u.lastAuth ?? '',
			cell: u => html`<${Time} at=${u.lastAuth} kind="ago" />`},
		{key: 'do', label: '', width: '3.5rem', sort: false, cell: u =>
			html`<${Menu} label=${w('more', {name: u.username})} items=${[u.orgMembershipStatus === 'PENDING' && noMail && {label: w('link'), op: ops.invite, onPick: () => setQuery({do: `link:${u.id}`})},
			{label: w('changeRoles'), op: ops.roles, onPick: () => setQuery({do: `roles:${u.id}`})},
			{label: w('remove'), op: ops.remove, kind: 'danger', onPick: () => setDoomed(u)}]} />`}];
	const rows = users?.filter(u => `${u.username} ${nameOf(u)} ${roleNames(heldOf(u))}`.toLowerCase().includes(q.toLowerCase()));
	return html`<section class="card" aria-label=${w('title')}><div class="bar"><${Search} label=${w('find')} value=${q}
		onInput=${v => setQuery({q: v})} /></div>
			<${Table} label=${w('title')} columns=${columns} rows=${rows} failed=${failed} onOpen=${may(ops.roles) && (u => setQuery({do: `roles:${u.id}`}))}
				empty=${html`<${Empty} title=${w(q ? 'none' : 'nobody')} text=${w(q ? 'noneText' : 'nobodyText')} action=${action} />`} /></section>
		${linked && html`<${LinkDialog} user=${linked} invites=${invites} onClose=${close} />`}
		${open && html`<${RolesDialog} op=${ops.roles} user=${open} held=${heldOf(open)} roles=${roles} onClose=${close}
			onSave=${async (u, list) => { await onRoles(u, list); close(); say(w('saved')); }} />`}
		${doomed && html`<${ConfirmDanger} title=${w('removeTitle', {name: doomed.username})} text=${w(doomed.id === me ? 'removeMe' : 'removeText')}
			name=${doomed.id === me ? doomed.username : undefined} action=${w('remove')}
			onConfirm=${async () => { await onRemove(doomed); say(w('removed', {name: doomed.username})); }} onClose=${() => setDoomed(null)} />`}`;
}

export const InviteButton = ({op}) => html`<${Button} op=${op} kind="go" icon="plus" onClick=${() => setQuery({do: 'invite'})}>${w('inviteTitle')}<//>`;
