/* The roles that people and programs are given, with what each is for. */
import {words, plain, hasText, t} from './kit.js';

const w = words('roles');
export const ORG_ROLES = ['ORG_OWNER', 'ORG_GROUP_CREATOR', 'ORG_BILLING_ADMIN', 'ORG_BILLING_READ_ONLY', 'ORG_READ_ONLY', 'ORG_MEMBER'];
export const PROJECT_ROLES = ['GROUP_OWNER', 'GROUP_CLUSTER_MANAGER', 'GROUP_CLUSTER_CREATOR', 'GROUP_DATA_ACCESS_ADMIN',
	'GROUP_DATA_ACCESS_READ_WRITE', 'GROUP_DATA_ACCESS_READ_ONLY', 'GROUP_DATABASE_ACCESS_ADMIN', 'GROUP_NETWORK_ACCESS_MANAGER',
	'GROUP_BACKUP_MANAGER', 'GROUP_ACCESS_MANAGER', 'GROUP_ALERTS_MANAGER', 'GROUP_OBSERVABILITY_VIEWER', 'GROUP_READ_ONLY'];

export const roleName = role => hasText(`screens.roles.${role}`) ? t(`screens.roles.${role}`) : plain(role);
/* For Choices; roles that are held already and not in the list are shown too. */
export const roleOptions = (roles, held = []) => [...roles, ...held.filter(r => !roles.includes(r))].map(value =>
	({value, label: roleName(value), help: hasText(`screens.roles.${value}.help`) ? w(`${value}.help`) : ''}));
export const roleNames = list => (list ?? []).map(roleName).join(', ');
