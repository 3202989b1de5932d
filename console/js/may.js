/* What the person who is signed in may do, told by the roles in the operations' rows and the person's own: what would be refused is not
 * offered. The server decides; where this is wrong, a refusal says which role is missing. */
import {store} from './lib.js';
import {hasText, t} from './texts.js';
import {operation} from './api.js';
import {assignableFor, heldIn, session} from './session.js';
import {place} from './router.js';

/* The organization of each project that was seen: its roles count in the project too. */
const owners = store(new Map());
export function learnProject(groupId, orgId) {
	if (groupId && orgId && owners.get().get(groupId) !== orgId)
		owners.set(new Map(owners.get()).set(groupId, orgId));
}

const scopeHere = () => {
	const {groupId, orgId} = place.get().found?.params ?? {};
	return {groupId, orgId};
};
const whole = ({groupId, orgId}) => ({groupId, orgId: orgId ?? owners.get().get(groupId)});

function lacking(id, scope) {
	const op = operation(id), roles = op.roles.length ? op.roles : op.bodyRoles, held = heldIn(whole(scope));
	return !roles.length || roles.some(r => held.has(r)) ? [] : roles;
}

/* const may = useMay(); may('createCluster'): in the scope of the path, or the one that is given. Drawn again when a role changes. */
export function useMay() {
	session.use();
	owners.use();
	place.use();
	return (id, scope) => !id || !lacking(id, scope ?? scopeHere()).length;
}

/* Whether all is known that the answer depends on. Until then nothing is said of missing roles. */
const isKnown = scope => !scope.groupId || Boolean(scope.orgId ?? owners.get().get(scope.groupId));

/* GROUP_CLUSTER_MANAGER -> "Cluster manager" */
export function roleWords(role) {
	const key = `screens.roles.${role}`;
	if (hasText(key))
		return t(key);
	const text = String(role ?? '').replace(/^(GROUP|ORG)_/, '').replace(/_/g, ' ').toLowerCase();
	return text.charAt(0).toUpperCase() + text.slice(1);
}

const quoted = roles => roles.map(r => t('role.quoted', {role: roleWords(r)})).join(t('role.or'));

/* "“Cluster manager” or “Owner”": of roles that people are given, those that have one of these. */
export function rolesText(roles) {
	const given = assignableFor(roles), all = given.length ? given : roles;
	return quoted(all.length > 3 ? [...all.slice(0, 2), all.at(-1)] : all);
}

/* Which role is missing, in words; '' where none is. key: of the text that says so. */
export function useLack(id, scope, key = 'role.needed') {
	useMay();
	const at = scope ?? scopeHere(), roles = id && isKnown(at) ? lacking(id, at) : [];
	return roles.length ? t(key, {roles: rolesText(roles)}) : '';
}
