/* The pictures of README.md and docs/, in both themes, always of the same data: script/pictures runs this, and makes them small. No part of
 * the suite. STEWARD_SCREENSHOTS names the folder.
 *
 * Most are of the simulated engine under the virtual clock, where two days pass at once and plots are the same each time. Statements and
 * sessions need real databases. No picture shows a secret: users are made by the API, and their passwords stand in masked fields. */
import {execFileSync, spawn} from 'node:child_process';
import {after, test} from 'node:test';
import {start, newPage, signIn, picture, until, LONG} from './harness.mjs';

const THEMES = {themes: ['light', 'dark']};
const VIEW = {viewport: {width: 1280, height: 800}};
const PASSWORD = 'correct horse battery staple';
const shape = (instanceSize, nodeCount) => ({clusterType: 'REPLICASET', replicationSpecs: [{regionConfigs: [{providerName: 'AWS', regionName: 'US_EAST_1', priority: 7,
	electableSpecs: {instanceSize, nodeCount}}]}]});
const CLUSTERS = [
	['orders', 'M30', 3, {backupEnabled: true, pitEnabled: true, tags: [{key: 'team', value: 'checkout'}]}],
	['payments', 'M40', 3, {backupEnabled: true, pitEnabled: true}],
	['analytics', 'M50', 5, {backupEnabled: true}],
	['sessions', 'M20', 3, {}],
	['catalog', 'M10', 1, {backupEnabled: true}]
];

const named = async server => {
	await server.api('PATCH', `/orgs/${server.orgId}`, {name: 'Harbour Goods'});
	await server.api('PATCH', `/groups/${server.groupId}`, {name: 'shop'});
};

/* A picture of a screen once `ready` is there and nothing loads. */
async function shown(page, to, name, ready) {
	await page.goto(to);
	await ready();
	await until(`${name} has loaded`, async () => !/Loading/.test(await page.locator('main').innerText()));
	await page.mouse.move(1, 1);
	await picture(page, name, THEMES);
}

test('of a simulated service', {timeout: 10 * LONG}, async () => {
	const server = await start({engine: 'simulated', clock: 'virtual'}), {groupId} = server, project = `/console/projects/${groupId}`;
	after(() => server.stop());
	const pass = advanceSeconds => server.control('clock', {advanceSeconds});
	const idle = () => until('all clusters are ready', async () => {
		await pass(30);
		return (await server.api('GET', `/groups/${groupId}/clusters`)).results.every(c => c.stateName === 'IDLE');
	});
	await named(server);
	for (const [name, size, nodes, more] of CLUSTERS)
		await server.api('POST', `/groups/${groupId}/clusters`, {name, ...shape(size, nodes), ...more});
	await idle();
	for (let hour = 0; hour < 49; hour++)
		await pass(3600);
	server.token = null; // its hour is over
	await server.api('PATCH', `/groups/${groupId}/clusters/catalog`, {paused: true});
	await idle();
	await server.own();
	const page = await newPage(server, VIEW);
	await signIn(page, project);
	await page.clock.setFixedTime(new Date((await server.ask('GET', '/api/test/clock')).body.now));
	await shown(page, project, 'overview', () => page.locator('.clusters tbody tr', {hasText: 'payments'}).locator('.spark').first().waitFor());
	await shown(page, `${project}/clusters/orders`, 'cluster', () => page.getByRole('group', {name: 'The last hour'}).getByRole('img').first().waitFor());
	await shown(page, `${project}/clusters/orders/metrics?range=day`, 'metrics', () => until('the plots', async () => await page.locator('.plot .u-over').count() > 4));
	await shown(page, `${project}/clusters/orders/backups`, 'backups', () => page.locator('main tbody tr', {hasText: 'Completed'}).first().waitFor());
	page.verify();
	await page.context().close();
});

test('of real databases', {timeout: 10 * LONG}, async () => {
	const server = await start({engine: 'postgres'}), {groupId} = server, cluster = `/console/projects/${groupId}/clusters/orders`;
	after(() => server.stop());
	await named(server);
	await server.api('POST', `/groups/${groupId}/clusters`, {name: 'orders', ...shape('M10', 1)});
	await until('the cluster', async () => (await server.api('GET', `/groups/${groupId}/clusters/orders`)).stateName === 'IDLE', 3 * LONG);
	for (const username of ['ada', 'till', 'cart', 'report'])
		await server.api('POST', `/groups/${groupId}/databaseUsers`, {databaseName: 'admin', username, password: PASSWORD, roles: [{roleName: 'readWriteAnyDatabase', databaseName: 'admin'}]});
	await server.api('POST', `/groups/${groupId}/accessList`, [{ipAddress: '127.0.0.1'}]);
	const {connectionStrings: {standard}} = await server.api('GET', `/groups/${groupId}/clusters/orders`);
	const url = username => standard.replace('://', `://${username}:${encodeURIComponent(PASSWORD)}@`);
	const env = {PATH: globalThis.process.env.PATH};
	const sql = statement => execFileSync('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', url('ada'), '-c', statement], {env, encoding: 'utf8', timeout: LONG, stdio: 'pipe'}).trim();
	await until('a table', () => {
		try {
			sql(`create table if not exists item (id int primary key, name text, price numeric(8, 2), stock int);
				insert into item select i, (array['Lantern', 'Rope, 20 m', 'Compass', 'Oilskin coat', 'Sextant', 'Tea, tin', 'Barometer', 'Signal flag'])[1 + i % 8] || ' No. ' || i,
					4.5 + i * 3.25, i * 7 % 60 from generate_series(1, 400) i on conflict do nothing`);
			return true;
		} catch {
			return false;
		}
	});
	/* One holds a row, one waits for it, and one waits for that one. */
	const sessions = [];
	after(() => sessions.forEach(one => one.kill()));
	const [{id: process}] = (await server.api('GET', `/groups/${groupId}/processes`)).results;
	const session = async (username, application, statement, seen) => {
		const one = spawn('psql', ['-XAtq', '-d', url(username)], {env: {...env, PGAPPNAME: application}, stdio: ['pipe', 'ignore', 'ignore']});
		sessions.push(one);
		one.stdin.write(`${statement}\n`);
		await until(`what ${application} does`, async () => (await server.api('GET', `/groups/${groupId}/processes/${process}:activity`)).sessions.some(s => s.application === application && seen(s)));
	};
	await session('till', 'till', 'begin; update item set stock = stock - 1 where id = 7;', s => s.state === 'idle in transaction');
	await session('cart', 'web', 'update item set stock = stock - 2 where id = 7;', s => s.blockedBy.length);
	await session('report', 'nightly report', 'select name, pg_sleep(600) from item order by price desc limit 1;', s => s.waitEvent === 'PgSleep');
	const page = await newPage(server, VIEW);
	await signIn(page, `${cluster}/sql`);
	await page.getByLabel('User', {exact: true}).or(page.getByLabel('Database user')).first().fill('ada');
	await page.getByLabel('Password', {exact: true}).fill(PASSWORD);
	await page.getByLabel('Statement', {exact: true}).fill('select name, price, stock\nfrom item\nwhere stock < 10\norder by price desc\nlimit 6');
	await page.getByRole('button', {name: 'Run', exact: true}).click();
	await page.getByRole('columnheader', {name: 'price'}).waitFor();
	await page.getByRole('heading', {name: 'orders'}).focus();
	await page.setViewportSize({...VIEW.viewport, height: 960});
	await page.mouse.move(1, 1);
	await picture(page, 'sql', THEMES);
	await page.setViewportSize(VIEW.viewport);
	await shown(page, `${cluster}/activity`, 'health', async () => {
		await page.locator('.plan li li').first().waitFor();
		await page.getByRole('table', {name: 'Sessions now'}).getByText('nightly report').waitFor();
	});
	page.verify();
	await page.context().close();
});
