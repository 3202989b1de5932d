/* The paths that the navigation and the palette know, each with the operation that its screen reads by. */
import {t} from './texts.js';

const PROJECT = [['', 'grid', 'nav.clusters', 'clusters'], ['database-access', 'user', 'nav.databaseAccess', '', 'listDatabaseUsers'],
	['network', 'net', 'nav.network', '', 'listAccessListEntries'], ['backups', 'save', 'nav.backups', '', 'listBackupSnapshots'],
	['alerts', 'bell', 'nav.alerts', '', 'listAlertConfigs'], ['events', 'list', 'nav.events', '', 'listGroupEvents'], ['people', 'two', 'nav.people', '', 'listGroupUsers'],
	['keys', 'key', 'nav.keys', '', 'listGroupServiceAccounts'], ['settings', 'gear', 'nav.settings', '', 'getGroupSettings']];
const ORG = [['projects', 'box', 'nav.projects'], ['people', 'two', 'nav.people', 'listOrgUsers'], ['teams', 'two', 'nav.teams', 'listOrgTeams'], ['keys', 'key', 'nav.keys', 'listOrgServiceAccounts'],
	['policies', 'shield', 'nav.policies', 'listOrgResourcePolicies'], ['usage', 'chart', 'nav.usage', 'createCostExplorerProcess'], ['invoices', 'card', 'nav.invoices', 'listInvoices'],
	['settings', 'gear', 'nav.settings', 'getOrgSettings']];

/* The project that was opened last stays in the navigation until another is; only in memory. */
let lastGroup = null;
export const opened = group => { lastGroup = group; };
export const lastOpened = () => lastGroup;

export function screensOf(params, who) {
	const groupId = params.groupId ?? lastGroup?.id, orgId = params.orgId ?? lastGroup?.orgId ?? who?.orgs?.[0]?.id;
	const project = groupId ? PROJECT.map(([path, icon, key, also, op]) => ({icon, op, scope: {groupId, orgId: lastGroup?.id === groupId ? lastGroup.orgId : undefined}, label: t(key), to: `/projects/${groupId}${path ? `/${path}` : ''}`, also: also && `/projects/${groupId}/${also}`,
		area: t('nav.project')})) : [];
	const org = orgId ? ORG.map(([path, icon, key, op]) => ({icon, op, scope: {orgId}, label: t(key), to: `/orgs/${orgId}/${path}`, area: t('nav.organization'), org: true})) : [];
	return [{icon: 'grid', label: t('nav.overview'), to: '/'}, ...project, ...org, ...who?.operator ? [{icon: 'host', label: t('nav.hosts'), to: '/hosts', all: true}] : [], {icon: 'code', label: t('nav.operations'), to: '/operations', all: true},
		{icon: 'user', label: t('nav.account'), to: '/account', hidden: true}];
}

export const isAt = (path, s) => s.to === '/' || /^\/projects\/[^/]+$/.test(s.to) ? path === s.to || path === `${s.to}/` || path === `${s.to}/create` || Boolean(s.also && path.startsWith(s.also)) : path === s.to || path.startsWith(`${s.to}/`);
