/* What people look with: the first screen, plots with one legend and crosshair and as tables, small lines, slow queries, logs, sizes. */
import assert from 'node:assert/strict';
import {after} from 'node:test';
import {gzipSync} from 'node:zlib';
import {start, check, signIn, axe, until, picture} from './harness.mjs';

const server = await start({engine: 'simulated'});
after(() => server.stop());
const {groupId} = server, project = `/console/projects/${groupId}`, cluster = `${project}/clusters/orders`;
const button = (page, name) => page.getByRole('button', {name, exact: true});
const dialog = page => page.getByRole('dialog');
const PLACE = {providerName: 'AWS', regionName: 'US_EAST_1', priority: 7, electableSpecs: {instanceSize: 'M10', nodeCount: 3}};
let made = null;
const have = () => made ??= (async () => {
	await server.api('POST', `/groups/${groupId}/clusters`, {name: 'orders', clusterType: 'REPLICASET', replicationSpecs: [{regionConfigs: [PLACE]}]});
	await until('the cluster', async () => (await server.api('GET', `/groups/${groupId}/clusters/orders`)).stateName === 'IDLE');
})();

check(server, 'the first screen leads to the first cluster', async ({page}) => {
	await signIn(page, '/console/');
	await page.getByRole('heading', {name: 'Create your first cluster'}).waitFor();
	await axe(page);
	await picture(page, 'first', {themes: ['light', 'dark']});
	await page.getByRole('link', {name: 'Create a cluster'}).click();
	await page.waitForURL(`**${project}/create`);
});

/* What the answers say, counted here, is what is shown. */
check(server, 'plots: one legend, one crosshair, the figures of the answers, and the same as tables', async ({page}) => {
	await have();
	const told = new Map();
	page.on('response', async a => {
		if (/\/processes\/[^/]+\/measurements/.test(a.url()))
			told.set(/processes\/([^/]+)\//.exec(a.url())[1], await a.json().catch(() => null));
	});
	await signIn(page, `${cluster}/metrics`);
	const legend = page.getByRole('group', {name: 'Nodes'});
	await until('three nodes', async () => await legend.getByRole('button').count() === 3, 3 * 60000); // a minute has to be over
	await until('the plots', async () => await page.locator('.plot .u-over').count() > 4);
	assert.equal(await page.locator('.u-legend').count(), 0, 'no plot has a legend of its own');
	await picture(page, 'metrics', {themes: ['light', 'dark']});
	await axe(page);
	const box = await until('a plot', () => page.locator('.plot .u-over').first().boundingBox());
	await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
	await until('all plots tell the same time', async () => {
		const times = await page.locator('.plot figcaption time').allInnerTexts();
		return times.length > 4 && new Set(times).size === 1;
	});
	await page.mouse.move(5, 5);
	await legend.getByRole('button').nth(2).click();
	await until('two nodes are left in every plot', async () => (await page.locator('.plot-values').evaluateAll(l => l.map(e => e.children.length))).every(n => n <= 2));
	await legend.getByRole('button').nth(2).click();
	await button(page, 'Tables').click();
	const table = page.getByRole('table', {name: 'Connections'});
	await table.locator('tbody tr').first().waitFor();
	const shown = (await table.locator('tbody tr').first().locator('td').allInnerTexts()).slice(1).map(Number).sort();
	const newest = [...told.values()].map(a => a.measurements.find(m => m.name === 'CONNECTIONS').dataPoints.findLast(p => p.value !== undefined && p.value !== null).value).sort();
	assert.deepEqual(shown, newest.map(v => Number(v.toFixed(Math.abs(v) < 10 ? 2 : 0))).sort());
	await axe(page);
	await picture(page, 'metrics-table');
}, {timeout: 360000});

/* What a cluster of two minutes has: its only value stands in minutes, not in years. */
check(server, 'a plot with one value', async ({page}) => {
	await have();
	await page.addInitScript(() => {
		globalThis.drawn = [];
		const before = CanvasRenderingContext2D.prototype.fillText;
		CanvasRenderingContext2D.prototype.fillText = function fillText(...all) {
			globalThis.drawn.push(all[0]);
			return before.apply(this, all);
		};
	});
	const at = new Date(Date.now() - 60000).toISOString();
	await page.route('**/measurements*', r => r.fulfill({json: {measurements: new URL(r.request().url()).searchParams.getAll('m').map(name =>
		({name, units: 'SCALAR', dataPoints: [{timestamp: at, value: 1}]}))}}));
	await signIn(page, `${cluster}/metrics`);
	await until('the axes', () => page.evaluate(() => globalThis.drawn.filter(t => /^\d\d:\d\d/.test(t)).length > 4));
	assert.deepEqual(await page.evaluate(() => globalThis.drawn.filter(t => /\b[A-Z][a-z]{2}\b/.test(t))), []);
});

check(server, 'costs of one month stand among the others', async ({page}) => {
	await page.addInitScript(() => {
		globalThis.drawn = [];
		const before = CanvasRenderingContext2D.prototype.fillText;
		CanvasRenderingContext2D.prototype.fillText = function fillText(...all) {
			globalThis.drawn.push(all[0]);
			return before.apply(this, all);
		};
	});
	const usageDate = `${new Date().toISOString().slice(0, 7)}-01`;
	await page.route('**/costExplorer/usage/*', r => r.fulfill({json: {usageDetails: [{id: '0', name: 'shop', usageDate, usageAmount: 13.5}], currency: 'USD'}}));
	await signIn(page, `/console/orgs/${server.orgId}/usage`);
	await page.getByRole('img', {name: 'Cost by month: shop now 14 USD, from 0 USD to 14 USD'}).waitFor();
	await until('the axes', () => page.evaluate(() => globalThis.drawn.filter(t => /^[A-Z][a-z]{2} 1$|^1 [A-Z][a-z]{2}$/.test(t)).length >= 3));
	assert.deepEqual(await page.evaluate(() => globalThis.drawn.filter(t => /^\d\d:\d\d/.test(t))), [], 'months have no hours');
});

check(server, 'small lines on the overview and the summary', async ({page}) => {
	await have();
	await signIn(page, project);
	await page.getByRole('img', {name: /^Processor of orders within the last hour, now \d/}).waitFor();
	/* A figure does not lie over the next cell, and what happened names nobody by a code. */
	const over = () => page.locator('.clusters tbody td:has(.spark)').evaluateAll(cells => cells.flatMap(cell => {
		const inside = document.createRange();
		inside.selectNodeContents(cell);
		return inside.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1 ? [cell.innerText] : [];
	}));
	assert.deepEqual(await over(), []);
	await page.getByText('Cluster ready').first().waitFor();
	await page.getByText(/by service account …\w{6}/).first().waitFor();
	assert.doesNotMatch(await page.locator('main').innerText(), /mdb_sa_id/);
	/* This engine does not tell what is used: that is not nothing. */
	await page.getByText('10 GB of disk').waitFor();
	assert.doesNotMatch(await page.locator('main').innerText(), /0 B of/);
	await picture(page, 'overview-lines', {themes: ['light', 'dark']});
	await page.goto(cluster);
	await page.getByRole('group', {name: 'The last hour'}).getByRole('img', {name: /^Connections/}).waitFor();
	/* A primary has no lag: the line is of the standbys. */
	await page.getByRole('group', {name: 'The last hour'}).getByRole('img', {name: /^Replication lag.* [1-9]\d* ms/}).waitFor();
	await axe(page);
	await picture(page, 'summary', {themes: ['light', 'dark']});
});

check(server, 'a slow query is told in words, with its plan', async ({page}) => {
	await have();
	const plan = {'Query Text': 'select * from orders where customer = 7', Plan: {'Node Type': 'Sort', 'Actual Total Time': 812.4, 'Actual Rows': 20,
		Plans: [{'Node Type': 'Seq Scan', 'Relation Name': 'orders', 'Actual Total Time': 800.1, 'Actual Rows': 200000, Filter: '(customer = 7)'}]}};
	const line = {timestamp: '2026-11-18 12:00:00.000 UTC', user: 'app', dbname: 'shop', error_severity: 'LOG', message: `duration: 0.042 ms  plan:\n${JSON.stringify(plan)}`};
	await page.route('**/slowQueryLogs*', r => r.fulfill({json: {slowQueries: [{line: JSON.stringify(line), namespace: 'shop.orders', metrics: {operationExecutionTime: 0, docsReturned: 20, docsExamined: 200000}},
		{line: `${JSON.stringify(line).slice(0, 200)}`, namespace: 'shop.orders', metrics: {operationExecutionTime: 700}}]}}));
	await signIn(page, `${cluster}/queries?kind=slow`);
	const row = page.locator('main tbody tr', {hasText: '0.04 ms'}).first();
	await row.waitFor();
	assert.ok(!/[{}]|Query Text/.test(await page.locator('main tbody').innerText()), 'no raw JSON');
	await row.getByRole('button').click();
	await dialog(page).getByText('select * from orders where customer = 7').waitFor();
	await dialog(page).getByText('Seq Scan on orders').waitFor();
	assert.ok(!/[{}]/.test(await dialog(page).innerText()));
	await axe(page);
	await picture(page, 'slow');
});

check(server, 'the plans of a shape are told as they changed, and a node without activity says so', async ({page}) => {
	await have();
	const now = '  Seq Scan on public.orders\n', before = 'Aggregate\n  Index Scan using orders_customer on public.orders\n';
	await page.route('**/queryShapeInsights/*:plans', r => r.fulfill({json: {plans: [{plan: before, firstUsed: '2026-11-01T08:00:00Z', lastUsed: '2026-11-17T08:00:00Z', count: 12, avgMillis: 130.5, maxMillis: 400},
		{plan: `Aggregate\n${now}`, firstUsed: '2026-11-17T09:00:00Z', lastUsed: '2026-11-18T09:00:00Z', count: 3, avgMillis: 1500, maxMillis: 2100}]}}));
	await signIn(page, `${cluster}/queries?period=all`);
	await page.locator('main tbody tr').first().getByRole('button').click();
	const plans = dialog(page).getByRole('table', {name: 'Plans over time'});
	await plans.getByText('Index Scan using orders_customer on public.orders').waitFor();
	const rows = await plans.locator('tbody tr').allInnerTexts();
	assert.match(rows[0], /Seq Scan on public\.orders/, 'the plan that was used last stands first');
	assert.match(rows[0], /\b3\b[^]*1\.5 s/);
	await axe(page);
	await picture(page, 'plans');
	page.allow(/status of 501/);
	for (const view of ['', '?view=vacuum']) {
		await page.goto(`${cluster}/activity${view}`);
		await page.getByText('The simulated engine has no sessions and no vacuum.').waitFor();
	}
	await axe(page);
});

check(server, 'logs are read, searched and followed', async ({page}) => {
	await have();
	const lines = [{timestamp: '2026-11-18 12:00:00.000 UTC', error_severity: 'LOG', message: 'checkpoint starting: time'},
		{timestamp: '2026-11-18 12:00:01.000 UTC', error_severity: 'ERROR', message: 'relation "visits" does not exist', user: 'ada', dbname: 'shop', statement: 'select * from visits'}];
	await page.route('**/logs/db.gz*', r => r.fulfill({contentType: 'application/gzip', body: gzipSync(`${lines.map(l => JSON.stringify(l)).join('\n')}\n`)}));
	await signIn(page, `${cluster}/logs`);
	const log = page.getByRole('log');
	await log.getByText('checkpoint starting').waitFor();
	await axe(page);
	await picture(page, 'logs', {themes: ['light', 'dark']});
	await page.getByRole('searchbox').fill('ada');
	await log.getByText('checkpoint starting').waitFor({state: 'detached'});
	await page.getByRole('searchbox').fill('VISITS');
	assert.equal(await log.locator('mark').innerText(), 'visits');
	await log.getByRole('button').first().click();
	await dialog(page).getByText('select * from visits').waitFor();
	await page.keyboard.press('Escape');
	await page.getByRole('searchbox').fill('');
	await button(page, 'Errors').click();
	await log.getByText('checkpoint starting').waitFor({state: 'detached'});
	await button(page, 'All').click();
	await page.getByLabel('Follow').check();
	lines.push({timestamp: '2026-11-18 12:00:09.000 UTC', error_severity: 'LOG', message: '<b>new</b> line'});
	await log.getByText('<b>new</b> line').waitFor();
	assert.equal(await log.getByRole('button').count(), 3, 'each line once');
	await page.setViewportSize({width: 380, height: 760});
	assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
	await picture(page, 'logs-narrow');
});

check(server, 'sizes that no host could hold are not offered', async ({page}) => {
	await page.route('**/api/console/sizes*', r => r.fulfill({json: {host: {cores: 4, memoryBytes: 16 * 2 ** 30, diskFreeBytes: 2 ** 40},
		results: [['M10', 1, 2], ['M20', 2, 4], ['M30', 4, 8], ['M40', 8, 16], ['M50', 16, 32]].map(([name, cores, gb]) => ({name, cores, memoryBytes: gb * 2 ** 30, diskGB: 10}))}}));
	await signIn(page, `${project}/create`);
	await page.getByRole('option', {name: /^M30 —/}).waitFor({state: 'attached'});
	const sizes = await page.getByLabel('Size', {exact: true}).locator('option').allInnerTexts();
	assert.ok(sizes.some(s => s.startsWith('M10')) && !sizes.some(s => /^M[45]0( |$)/.test(s)), sizes.join());
	await page.getByText('larger sizes are left out').waitFor();
});

const LANGUAGES = ['Python', 'JavaScript', 'Go', 'Java', 'C#', 'Ruby', 'PHP', 'Rust'];
check(server, 'lines for eight languages, without the password in the code', async ({page}) => {
	await have();
	await signIn(page, cluster);
	await page.getByLabel('Database user').fill(`o'neil "x"`);
	await button(page, 'Make user and string').click();
	const code = page.getByRole('group', {name: 'Connection string'});
	await code.waitFor();
	const password = /:(\w{28})@/.exec(await code.innerText())[1];
	await button(page, 'In a program').click();
	for (const name of LANGUAGES) {
		await page.getByLabel('Language').selectOption({label: name});
		const text = await code.evaluate(b => b.firstChild.textContent);
		assert.match(text, /version\(\)/, name);
		assert.equal(text.split(password).length, 2, `${name}: the password stands in the environment alone`);
	}
	await axe(page);
	await picture(page, 'languages', {themes: ['light', 'dark']});
});
