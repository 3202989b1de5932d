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

let closure = null;
/* role -> the roles that it includes; inEveryProject: what a role of an organization gives in its projects */
async function rolesData() {
	closure ??= fetch(file('data/roles.json')).then(a => a.json());
	return closure;
}

/* The roles that the session holds in a scope, with those that they include. A project's organization has to be given for
 * the roles that its members bring along. */
export async function rolesIn({orgId, groupId} = {}) {
	const data = await rolesData(), held = new Set();
	const add = name => {
		if (held.has(name))
			return;
		held.add(name);
		(data[name]?.includes ?? []).forEach(add);
	};
	for (const r of session.get()?.roles ?? []) {
		if (groupId && r.groupId === groupId || orgId && r.orgId === orgId && !groupId)
			add(r.roleName);
		if (groupId && orgId && r.orgId === orgId)
			withIncluded(data, r.roleName).forEach(n => (data[n]?.inEveryProject ?? []).forEach(add));
	}
	return held;
}

function withIncluded(data, name, out = new Set()) {
	if (!out.has(name)) {
		out.add(name);
		(data[name]?.includes ?? []).forEach(n => withIncluded(data, n, out));
	}
	return out;
}

/* Of a list of roles, those that no other one of it includes. */
export async function highest(names) {
	const data = await rolesData();
	return names.filter(name => !names.some(other => other !== name && withIncluded(data, other).has(name)));
}

/* [] when the session may call the operation there; else the roles of which one is needed. */
export async function missingRoles(operationId, scope) {
	const {roles} = operation(operationId);
	const held = await rolesIn(scope);
	return !roles.length || roles.some(r => held.has(r)) ? [] : roles;
}
