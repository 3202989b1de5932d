/* Teams of an organization: people who get roles in projects together. */
import {html, call, callAll, useState, useLoad, useQuery, setQuery, Page, Table, Empty, Fault, Button, Menu, Dialog, DialogForm, ConfirmDanger, Field,
	Input, Select, Choices, StatePill, say, words, atField, useMay} from './parts/kit.js';

const w = words('teams');

function NewDialog({orgId, people, onClose, onDone}) {
	const [name, setName] = useState(''), [chosen, setChosen] = useState([]);
	const make = async () => {
		await atField(call('createOrgTeam', {orgId}, {body: {name: name.trim(), usernames: chosen}}),
			{DUPLICATE_TEAM_NAME: 'name', TEAM_NAME_EXISTS: 'name', TEAM_ALREADY_EXISTS: 'name'});
		onDone(w('made', {name}));
	};
	return html`<${DialogForm} op="createOrgTeam" title=${w('newTitle')} submit=${w('make')} onSubmit=${make} onClose=${onClose} disabled=${!chosen.length}>
		<${Field} label=${w('name')} name="name" required><${Input} value=${name} onInput=${setName} maxlength="64" autofocus /><//>
		<${Choices} legend=${w('members')} options=${people.map(u => ({value: u.username, label: u.username}))} value=${chosen} onInput=${setChosen}
			name="usernames" /><//>`;
}

function Members({orgId, team, people, onClose}) {
	const {data, error, reload} = useLoad(() => callAll('listTeamUsers', {orgId, teamId: team.id}), [team.id]);
	const may = useMay(), free = people.filter(u => !data?.some(x => x.id === u.id)), [id, setId] = useState('');
	const add = async () => {
		await call('addOrgTeamUser', {orgId, teamId: team.id}, {body: {id: id || free[0].id}});
		setId('');
		reload();
	};
	const remove = async u => {
		await call('removeOrgTeamUser', {orgId, teamId: team.id}, {body: {id: u.id}});
		reload();
	};
	const columns = [{key: 'name', label: w('name'), main: true, value: u => u.username},
		{key: 'status', label: w('status'), width: '26%', value: u => u.orgMembershipStatus,
		cell: u => html`<${StatePill} state=${u.orgMembershipStatus} />`},
		{key: 'do', label: '', width: '7rem', sort: false, cell: u =>
			html`<${Button} op="removeOrgTeamUser" small aria-label=${w('removeOf', {name: u.username})} onClick=${() => remove(u)}>${w('remove')}<//>`}];
	return html`<${Dialog} kind="wide" title=${w('membersOf', {name: team.name})} onClose=${onClose}><${Fault} error=${error} retry=${reload} />
		<${Table} class="mini" label=${w('members')} columns=${columns} rows=${data} failed=${error} empty=${html`<${Empty} title=${w('noMembers')} />`} />
		${free.length > 0 && may('addOrgTeamUser') && html`<div class="row"><${Field} label=${w('who')}><${Select} value=${id || free[0].id} onInput=${setId}
			options=${free.map(u => ({value: u.id, label: u.username}))} /><//><${Button} class="row-end" onClick=${add}>${w('add')}<//></div>`}<//>`;
}

function RenameDialog({orgId, team, onClose, onDone}) {
	const [name, setName] = useState(team.name);
	return html`<${DialogForm} op="renameOrgTeam" title=${w('renameTitle')} submit=${w('rename')} onClose=${onClose}
		onSubmit=${async () => { await call('renameOrgTeam', {orgId, teamId: team.id}, {body: {name: name.trim()}}); onDone(w('renamed')); }}>
		<${Field} label=${w('name')} name="name"><${Input} value=${name} onInput=${setName} autofocus /><//><//>`;
}

export default function Screen({params: {orgId}}) {
	const [asked] = useQuery('do'), [doomed, setDoomed] = useState(null), close = () => setQuery({do: ''});
	const {data, error, reload} = useLoad(async () => {
		const [teams, people] = await Promise.all([callAll('listOrgTeams', {orgId}), callAll('listOrgUsers', {orgId})]);
		return {teams, people};
	}, [orgId], {key: `teams ${orgId}`});
	const done = text => { close(); say(text); reload(); };
	const columns = [{key: 'name', label: w('name'), main: true, value: t => t.name},
		{key: 'members', label: w('members'), width: '50%', value: t => (data?.people ?? []).filter(u => (u.teamIds ?? []).includes(t.id)).map(u =>
		u.username).join(', ')},
		{key: 'do', label: '', width: '3.5rem', sort: false, cell: t =>
			html`<${Menu} label=${w('more', {name: t.name})} items=${[{label: w('members'), onPick: () => setQuery({do: `team:${t.id}`})},
			{label: w('rename'), op: 'renameOrgTeam', onPick: () => setQuery({do: `rename:${t.id}`})}, {label: w('delete'), op: 'deleteOrgTeam', kind: 'danger', onPick: () => setDoomed(t)}]}
			/>`}];
	const make = html`<${Button} op="createOrgTeam" kind="go" icon="plus" onClick=${() => setQuery({do: 'new'})}>${w('newTitle')}<//>`,
		by = word => data?.teams.find(t => `${word}:${t.id}` === asked), open = by('team'), renamed = by('rename');
	return html`<${Page} title=${w('title')} needs="createOrgTeam" actions=${make}><${Fault} error=${error} retry=${reload} />
		<section class="card" aria-label=${w('title')}><${Table} label=${w('title')} columns=${columns} rows=${data?.teams} failed=${error}
			onOpen=${t => setQuery({do: `team:${t.id}`})} empty=${html`<${Empty} title=${w('none')} text=${w('noneText')} action=${make} />`}
			/></section>
		${asked === 'new' && data && html`<${NewDialog} orgId=${orgId} people=${data.people} onClose=${close} onDone=${done} />`}
		${open && html`<${Members} orgId=${orgId} team=${open} people=${data.people} onClose=${() => { close(); reload(); }} />`}
		${renamed && html`<${RenameDialog} orgId=${orgId} team=${renamed} onClose=${close} onDone=${done} />`}
		${doomed && html`<${ConfirmDanger} title=${w('deleteTitle', {name: doomed.name})} text=${w('deleteText')} action=${w('delete')}
			onConfirm=${async () => { await call('deleteOrgTeam', {orgId, teamId: doomed.id}); reload(); }} onClose=${() => setDoomed(null)}
			/>`}<//>`;
}
