/* The paths of these screens, below /console. Each is loaded when it is first opened. */
const cluster = () => import('./cluster.js');
const overview = () => import('./overview.js');
const project = '/projects/:groupId', org = '/orgs/:orgId';

export const routes = [
	['/', overview, {area: 'overview'}],
	[project, overview, {area: 'clusters'}],
	[`${project}/clusters`, overview, {area: 'clusters'}],
	[`${project}/create`, () => import('./create.js'), {area: 'clusters'}],
	[`${project}/clusters/:name`, cluster, {area: 'clusters'}],
	[`${project}/clusters/:name/:tab`, cluster, {area: 'clusters'}],
	[`${project}/database-access`, () => import('./database_access.js'), {area: 'database-access'}],
	[`${project}/network`, () => import('./network.js'), {area: 'network'}],
	[`${project}/backups`, () => import('./backups.js'), {area: 'backups'}],
	[`${project}/alerts`, () => import('./alerts.js'), {area: 'alerts'}],
	[`${project}/people`, () => import('./project_people.js'), {area: 'people'}],
	[`${project}/keys`, () => import('./project_keys.js'), {area: 'keys'}],
	[`${project}/events`, () => import('./events.js'), {area: 'events'}],
	[`${project}/settings`, () => import('./project_settings.js'), {area: 'settings'}],
	['/orgs', () => import('./orgs.js'), {area: 'orgs'}],
	[org, () => import('./projects.js'), {area: 'projects'}],
	[`${org}/projects`, () => import('./projects.js'), {area: 'projects'}],
	[`${org}/people`, () => import('./people.js'), {area: 'people'}],
	[`${org}/teams`, () => import('./teams.js'), {area: 'teams'}],
	[`${org}/keys`, () => import('./keys.js'), {area: 'keys'}],
	[`${org}/policies`, () => import('./policies.js'), {area: 'policies'}],
	[`${org}/policies/:policyId`, () => import('./policy.js'), {area: 'policies'}],
	[`${org}/invoices`, () => import('./invoices.js'), {area: 'invoices'}],
	[`${org}/invoices/:invoiceId`, () => import('./invoices.js'), {area: 'invoices'}],
	[`${org}/usage`, () => import('./usage.js'), {area: 'usage'}],
	[`${org}/events`, () => import('./events.js'), {area: 'events'}],
	[`${org}/settings`, () => import('./org_settings.js'), {area: 'settings'}],
	['/hosts', () => import('./hosts.js'), {area: 'hosts'}]
];
