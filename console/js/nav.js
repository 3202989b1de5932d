/* The paths that the navigation and the palette know. */
import {t} from './texts.js';

const PROJECT = [['', 'grid', 'nav.clusters', 'clusters'], ['database-access', 'user', 'nav.databaseAccess'], ['network', 'net', 'nav.network'], ['backups', 'save', 'nav.backups'],
	['alerts', 'bell', 'nav.alerts'], ['events', 'list', 'nav.events'], ['people', 'two', 'nav.people'], ['keys', 'key', 'nav.keys'], ['settings', 'gear', 'nav.settings']];
const ORG = [['projects', 'box', 'nav.projects'], ['people', 'two', 'nav.people'], ['teams', 'two', 'nav.teams'], ['keys', 'key', 'nav.keys'], ['policies', 'shield', 'nav.policies'],
	['usage', 'chart', 'nav.usage'], ['invoices', 'card', 'nav.invoices'], ['settings', 'gear', 'nav.settings']];

/* The project that was opened last stays in the navigation until another is; only in memory. */
let lastGroup = null;
export const opened = group => { lastGroup = group; };
export const lastOpened = () => lastGroup;

export function screensOf(params, who) {
	const groupId = params.groupId ?? lastGroup?.id, orgId = params.orgId ?? lastGroup?.orgId ?? who?.orgs?.[0]?.id;
	const project = groupId ? PROJECT.map(([path, icon, key, also]) => ({icon, label: t(key), to: `/projects/${groupId}${path ? `/${path}` : ''}`, also: also && `/projects/${groupId}/${also}`,
		area: t('nav.project')})) : [];
	const org = orgId ? ORG.map(([path, icon, key]) => ({icon, label: t(key), to: `/orgs/${orgId}/${path}`, area: t('nav.organization'), org: true})) : [];
	return [{icon: 'grid', label: t('nav.overview'), to: '/'}, ...project, ...org, ...who?.operator ? [{icon: 'host', label: t('nav.hosts'), to: '/hosts', all: true}] : [], {icon: 'code', label: t('nav.operations'), to: '/operations', all: true},
		{icon: 'user', label: t('nav.account'), to: '/account', hidden: true}];
}

export const isAt = (path, s) => s.to === '/' || /^\/projects\/[^/]+$/.test(s.to) ? path === s.to || path === `${s.to}/` || Boolean(s.also && path.startsWith(s.also)) : path === s.to || path.startsWith(`${s.to}/`);
