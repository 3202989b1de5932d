/* Who is signed in, and what they may do. The secret of the session is in a cookie that scripts cannot read. */
import {file, store} from './lib.js';
import {get, send, operation, ApiError} from './api.js';

/* null: nobody; else what GET /api/session answers */
export const session = store(null);
export const useSession = () => session.use();
let was = false;
/* Whether somebody has been signed in since the page was loaded. */
export const wasSignedIn = () => was;

export async function loadSession() {
	try {
		session.set(await get('/api/session'));
		was = true;
	} catch (e) {
		if (!(e instanceof ApiError) || e.status !== 401)
			throw e;
		session.set(null);
	}
	return session.get();
}

/* Where somebody goes who has signed in: the path that they had opened, if it is one of ours. */
export const afterSignIn = to => typeof to === 'string' && to.startsWith('/console/') ? to : '/console/';

export async function signOut() {
	await send('DELETE', '/api/session');
	leave('/console/sign-in');
}

/* The page is loaded anew, so that nothing that one person has seen is in memory for the next. */
export const leave = to => location.replace(to);

/* role -> the roles that it includes; inEveryProject: what a role of an organization gives in its projects */
let table = {};
export async function loadRoles() {
	const answer = await fetch(file('data/roles.json'));
	table = await answer.json();
}

function withIncluded(name, out = new Set()) {
	if (!out.has(name)) {
		out.add(name);
		(table[name]?.includes ?? []).forEach(n => withIncluded(n, out));
	}
	return out;
}

/* The roles that the session holds in a scope, with those that they include. A project's organization has to be given for
 * the roles that its members bring along. */
export function heldIn({orgId, groupId} = {}) {
	const held = new Set();
	for (const r of session.get()?.roles ?? []) {
		if (groupId && r.groupId === groupId || orgId && r.orgId === orgId && !groupId)
			withIncluded(r.roleName, held);
		if (groupId && orgId && r.orgId === orgId)
			withIncluded(r.roleName).forEach(n => (table[n]?.inEveryProject ?? []).forEach(name => withIncluded(name, held)));
	}
	return held;
}

/* Of the roles that people are given, the least that have one of `wanted`, and the owner's. */
const GIVEN = ['GROUP_CLUSTER_CREATOR', 'GROUP_CLUSTER_MANAGER', 'GROUP_BACKUP_MANAGER', 'GROUP_DATABASE_ACCESS_ADMIN', 'GROUP_NETWORK_ACCESS_MANAGER',
	'GROUP_ACCESS_MANAGER', 'GROUP_ALERTS_MANAGER', 'GROUP_DATA_ACCESS_ADMIN', 'GROUP_DATA_ACCESS_READ_ONLY', 'GROUP_OBSERVABILITY_VIEWER', 'GROUP_READ_ONLY', 'GROUP_OWNER',
	'ORG_GROUP_CREATOR', 'ORG_BILLING_ADMIN', 'ORG_BILLING_READ_ONLY', 'ORG_READ_ONLY', 'ORG_OWNER'];
export function assignableFor(wanted) {
	const kind = wanted.some(r => r.startsWith('ORG_')) ? 'ORG_' : 'GROUP_';
	const enough = GIVEN.filter(name => name.startsWith(kind) && wanted.some(r => withIncluded(name).has(r)));
	return enough.filter(name => name.endsWith('_OWNER') || !enough.some(other => other !== name && withIncluded(name).has(other)));
}

/* Of a list of roles, those that no other one of it includes. */
export const highest = names => names.filter(name => !names.some(other => other !== name && withIncluded(other).has(name)));

/* [] when the session may call the operation there; else the roles of which one is needed. */
export function missingRoles(operationId, scope) {
	const {roles} = operation(operationId), held = heldIn(scope);
	return !roles.length || roles.some(r => held.has(r)) ? [] : roles;
}
