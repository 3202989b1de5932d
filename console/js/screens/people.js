/* The people of an organization: invite, give roles, remove. */
import {html, call, callAll, useLoad, useLive, useCalm, useQuery, setQuery, Page, Fault, say, session, words} from './parts/kit.js';
import {People, InviteDialog, InviteButton} from './parts/people.js';
import {ORG_ROLES} from './parts/roles.js';

const w = words('people');

export default function Screen({params: {orgId}}) {
	const [asked] = useQuery('do');
	const {data, error, reload} = useLoad(() => callAll('listOrgUsers', {orgId}), [orgId], {key: `people ${orgId}`});
	const calm = useCalm(reload);
	useLive(e => e.orgId === orgId && /USER|INVIT|JOINED|LEFT/.test(e.eventTypeName), calm);
	const invite = async (username, orgRoles) => {
		const made = await call('createOrgUser', {orgId}, {body: {username, roles: {orgRoles}}});
		setQuery({do: session.get()?.noMail ? `link:${made.id}` : ''});
		say(w('invited', {name: username}));
		reload();
	};
	const give = async (u, orgRoles) => {
		await call('updateOrgUser', {orgId, userId: u.id}, {body: {roles: {...u.roles, orgRoles}}});
		reload();
	};
	const remove = async u => {
		await call('removeOrgUser', {orgId, userId: u.id});
		reload();
	};
	return html`<${Page} title=${w('title')} needs="createOrgUser" actions=${html`<${InviteButton} op="createOrgUser" />`}><${Fault} error=${error} retry=${reload} />
		<${People} invites=${() => call('listOrgInvites', {orgId})} ops=${{invite: 'createOrgUser', roles: 'updateOrgUser', remove: 'removeOrgUser'}} failed=${error} users=${data} roles=${ORG_ROLES} heldOf=${u => u.roles?.orgRoles ?? []} onRoles=${give} onRemove=${remove}
			action=${html`<${InviteButton} op="createOrgUser" />`} />
		${asked === 'invite' && html`<${InviteDialog} op="createOrgUser" roles=${ORG_ROLES} first="ORG_MEMBER" onInvite=${invite} onClose=${() => setQuery({do: ''})}
			/>`}<//>`;
}
