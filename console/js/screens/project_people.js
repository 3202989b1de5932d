/* The people and teams of a project, with their roles in it. */
import {html, call, callAll, useState, useLoad, useLive, useCalm, useQuery, setQuery, Page, Tabs, Table, Empty, Fault, Button, Menu, DialogForm,
	ConfirmDanger, Field, Select, Choices, say, session, words, useMay} from './parts/kit.js';
import {People, InviteDialog, InviteButton} from './parts/people.js';
import {PROJECT_ROLES, roleNames, roleOptions} from './parts/roles.js';

const w = words('people');

function TeamDialog({groupId, team, free, onClose, onDone}) {
	const [id, setId] = useState(team?.teamId ?? free[0]?.id), [chosen, setChosen] = useState(team?.roleNames ?? ['GROUP_READ_ONLY']);
	const store = async () => {
		if (team)
			await call('updateGroupTeam', {groupId, teamId: team.teamId}, {body: {teamId: team.teamId, roleNames: chosen}});
		else
			await call('addGroupTeams', {groupId}, {body: [{teamId: id, roleNames: chosen}]});
		onDone();
	};
	return html`<${DialogForm} op=${team ? 'updateGroupTeam' : 'addGroupTeams'} title=${team ? w('rolesOf', {name: team.name}) : w('addTeam')} submit=${w('save')} onSubmit=${store} onClose=${onClose}
		disabled=${!id || !chosen.length}>
		${!team && html`<${Field} label=${w('team')} name="[0].teamId"><${Select} value=${id} onInput=${setId}
			options=${free.map(t => ({value: t.id, label: t.name}))} /><//>`}
		<${Choices} legend=${w('roles')} options=${roleOptions(PROJECT_ROLES, team?.roleNames)} value=${chosen} onInput=${setChosen} name="roleNames"
			/><//>`;
}

function Teams({groupId, teams, all, reload}) {
	const may = useMay(), [asked] = useQuery('do'), [doomed, setDoomed] = useState(null), close = () => setQuery({do: ''});
	const list = teams.map(t => ({...t, name: all.find(x => x.id === t.teamId)?.name ?? t.teamId})),
		free = all.filter(t => !teams.some(x => x.teamId === t.id));
	const columns = [{key: 'name', label: w('team'), main: true, value: t => t.name},
		{key: 'roles', label: w('roles'), width: '50%', value: t => roleNames(t.roleNames)},
		{key: 'do', label: '', width: '3.5rem', sort: false, cell: t =>
			html`<${Menu} label=${w('more', {name: t.name})} items=${[{label: w('changeRoles'), op: 'updateGroupTeam', onPick: () => setQuery({do: `team:${t.teamId}`})},
			{label: w('remove'), op: 'removeGroupTeam', kind: 'danger', onPick: () => setDoomed(t)}]} />`}];
	const open = list.find(t => `team:${t.teamId}` === asked), add = html`<${Button} op="addGroupTeams" kind="go" disabled=${!free.length}
		onClick=${() => setQuery({do: 'team'})}>${w('addTeam')}<//>`;
	return html`<section class="card" aria-label=${w('teams')}><${Table} label=${w('teams')} columns=${columns} rows=${list} keyOf=${t => t.teamId}
		onOpen=${may('updateGroupTeam') && (t => setQuery({do: `team:${t.teamId}`}))} empty=${html`<${Empty} title=${w('noTeams')} text=${w('noTeamsText')} action=${add} />`}
		/></section>
		${(asked === 'team' || open) && html`<${TeamDialog} groupId=${groupId} team=${open} free=${free} onClose=${close}
			onDone=${() => { close(); say(w('saved')); reload(); }} />`}
		${doomed && html`<${ConfirmDanger} title=${w('removeTitle', {name: doomed.name})} text=${w('removeTeamText')} action=${w('remove')}
			onConfirm=${async () => { await call('removeGroupTeam', {groupId, teamId: doomed.teamId}); reload(); }} onClose=${() => setDoomed(null)}
			/>`}`;
}

export default function Screen({params: {groupId}}) {
	const [asked] = useQuery('do'), [tab] = useQuery('tab', 'people'), close = () => setQuery({do: ''});
	const {data, error, reload} = useLoad(async () => {
		const [users, teams, group] = await Promise.all([callAll('listGroupUsers', {groupId}), callAll('listGroupTeams', {groupId}),
			call('getGroup', {groupId})]);
		return {users, teams, all: await callAll('listOrgTeams', {orgId: group.orgId}).catch(() => [])};
	}, [groupId], {key: `people ${groupId}`});
	const calm = useCalm(reload);
	useLive(e => e.groupId === groupId && /USER|INVIT|JOINED|LEFT|TEAM/.test(e.eventTypeName), calm);
	const invite = async (username, roles) => {
		const made = await call('addGroupUsers', {groupId}, {body: {username, roles}});
		setQuery({do: session.get()?.noMail ? `link:${made.id}` : ''});
		say(w('invited', {name: username}));
		reload();
	};
	const give = async (u, roles) => {
		const before = u.roles ?? [];
		for (const role of roles.filter(r => !before.includes(r)))
			await call('addGroupUserRole', {groupId, userId: u.id}, {body: {groupRole: role}});
		for (const role of before.filter(r => !roles.includes(r)))
			await call('removeGroupUserRole', {groupId, userId: u.id}, {body: {groupRole: role}});
		reload();
	};
	const remove = async u => {
		await call('removeGroupUser', {groupId, userId: u.id});
		reload();
	};
	return html`<${Page} title=${w('title')} needs="addGroupUsers" actions=${tab === 'teams' ?
		html`<${Button} op="addGroupTeams" kind="go" icon="plus" onClick=${() => setQuery({do: 'team'})}>${w('addTeam')}<//>` : html`<${InviteButton} op="addGroupUsers" />`}><${Fault}
		error=${error} retry=${reload} />
		<${Tabs} label=${w('title')} current=${tab} onPick=${v => setQuery({tab: v === 'people' ? '' : v, do: ''})}
			tabs=${[{id: 'people', label: w('title'), count: data?.users.length}, {id: 'teams', label: w('teams'), count: data?.teams.length}]} />
		${tab === 'teams' ? data && html`<${Teams} groupId=${groupId} teams=${data.teams} all=${data.all} reload=${reload} />`
			: html`<${People} invites=${() => call('listGroupInvites', {groupId})} ops=${{invite: 'addGroupUsers', roles: 'addGroupUserRole', remove: 'removeGroupUser'}} failed=${error} users=${data?.users} roles=${PROJECT_ROLES} heldOf=${u => u.roles ?? []} onRoles=${give} onRemove=${remove}
				action=${html`<${InviteButton} op="addGroupUsers" />`} />`}
		${asked === 'invite' && html`<${InviteDialog} op="addGroupUsers" roles=${PROJECT_ROLES} first="GROUP_READ_ONLY" onInvite=${invite} onClose=${close} />`}<//>`;
}
