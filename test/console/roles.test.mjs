/* What people see by their roles: nobody is offered what would be refused, what is refused or away says so in words, a role that changes
 * shows, and dialogs keep what is shown once. */
import assert from 'node:assert/strict';
import {after} from 'node:test';
import {start, check, newPage, signIn, axe, until} from './harness.mjs';

const server = await start({engine: 'simulated'});
after(() => server.stop());
const {groupId, orgId} = server, project = `/console/projects/${groupId}`, org = `/console/orgs/${orgId}`;
const PASSWORD = 'a reader of many books';
const button = (page, name) => page.getByRole('button', {name, exact: true});
const dialog = page => page.getByRole('dialog');
const row = (page, text) => page.locator('main tbody tr', {hasText: text}).first();

/* A call of a page's own session. */
const ask = (page, method, path, body) => page.evaluate(async ([m, p, b]) => {
	const answer = await fetch(p, {method: m, headers: {'Content-Type': 'application/json'}, body: b && JSON.stringify(b)});
	return {status: answer.status, body: await answer.json().catch(() => null)};
}, [method, path, body]);

/* Somebody with these roles in the project, who has accepted: {username, password, id}. */
async function person(name, groupRoles, orgRoles = ['ORG_MEMBER']) {
	const username = `${name}@example.org`;
	await server.api('POST', `/orgs/${orgId}/users`, {username, roles: {orgRoles, groupRoleAssignments: groupRoles.length ? [{groupId, groupRoles}] : []}});
	const page = await newPage(server);
	await signIn(page);
	const {id} = (await server.api('GET', `/orgs/${orgId}/invites`)).find(i => i.username === username);
	const {body} = await ask(page, 'POST', '/api/session/invitation-link', {invitationId: id});
	await page.context().close();
	const token = body.link.split('/').pop();
	const answer = await server.ask('POST', `/api/invitations/${token}`, {body: {password: PASSWORD, firstName: name, lastName: 'Reader'}});
	assert.equal(answer.status, 200, answer.text);
	const all = (await server.api('GET', `/orgs/${orgId}/users?itemsPerPage=500`)).results;
	return {username, password: PASSWORD, id: all.find(u => u.username === username).id};
}

const PLACE = {providerName: 'AWS', regionName: 'US_EAST_1', priority: 7, electableSpecs: {instanceSize: 'M10', nodeCount: 3}};
let prepared = null;
/* A project in which each screen has something to show. */
const prepare = () => prepared ??= (async () => {
	await server.api('POST', `/groups/${groupId}/clusters`, {name: 'orders', clusterType: 'REPLICASET', backupEnabled: true, replicationSpecs: [{regionConfigs: [PLACE]}]});
	await until('the cluster', async () => (await server.api('GET', `/groups/${groupId}/clusters/orders`)).stateName === 'IDLE');
	await server.api('POST', `/groups/${groupId}/accessList`, [{ipAddress: '192.0.2.9'}]);
	await server.api('POST', `/groups/${groupId}/databaseUsers`, {groupId, databaseName: 'admin', username: 'app', password: 'sixteen letters or so', roles: [{roleName: 'read', databaseName: 'shop'}]});
	await server.api('POST', `/groups/${groupId}/alertConfigs`, {eventTypeName: 'HOST_DOWN', enabled: true, notifications: [{typeName: 'EMAIL', emailAddress: 'ops@example.org', intervalMin: 60, delayMin: 0}]});
	await server.api('POST', `/groups/${groupId}/clusters/orders/backup/snapshots`, {description: 'one', retentionInDays: 3});
	await until('the snapshot', async () => (await server.api('GET', `/groups/${groupId}/clusters/orders/backup/snapshots`)).results.some(s => s.status === 'completed'));
})();
const TABS = ['', '/metrics', '/activity', '/queries', '/queries?kind=slow', '/advice', '/search', '/archives', '/sql', '/backups', '/backups?part=schedule', '/logs', '/events'];
const SCREENS = ['/console/', project, ...['/database-access', '/database-access?tab=roles', '/network', '/backups', '/alerts', '/alerts?tab=rules', '/people', '/people?tab=teams', '/keys',
	'/keys?tab=keys', '/events', '/settings', '/create'].map(p => project + p), ...TABS.map(t => `${project}/clusters/orders${t}`),
...['/projects', '/people', '/teams', '/keys', '/policies', '/usage', '/invoices', '/settings'].map(p => org + p)];

const open = async (page, to) => {
	await page.evaluate(at => {
		history.pushState({key: 1e9}, '', at);
		dispatchEvent(new PopStateEvent('popstate', {state: history.state}));
	}, to);
	await page.locator('main h1').first().waitFor();
};
const settled = (page, where) => until(`${where} has loaded`, async () => !await page.locator('main').getByText('Loading', {exact: false}).count());

/* What a button needs to know of the project, and the row that it stands in, come at the same moment: neither is missed. */
check(server, 'who may do something is offered it, whatever comes first', async ({page}) => {
	await prepare();
	await page.addInitScript(() => {
		globalThis.requestAnimationFrame = f => setTimeout(() => f(performance.now()), 500);
	});
	await signIn(page, '/console/account');
	const held = [];
	await page.route(url => /\/api\/svc\/v2\/groups\/[0-9a-f]{24}(\/accessList)?$/.test(url.pathname), r => { held.push(r); });
	for (let n = 0; n < 6; n++) {
		await page.goto(`${project}/network`);
		await until('both are asked for', () => held.length >= 2);
		/* What is asked after that, or was by the page before, is not held. */
		const shown = (what, seen) => until(what, async () => {
			held.splice(0).forEach(r => r.continue().catch(() => {}));
			return seen().isVisible();
		}, 60000);
		await shown('the row', () => row(page, '192.0.2.9'));
		await shown('its button', () => row(page, '192.0.2.9').getByRole('button', {name: /^Remove/}));
	}
});

check(server, 'an invitation without a mail server shows its link, and that ends in the console', async ({page}) => {
	await signIn(page, `${org}/people`);
	await button(page, 'Invite a person').first().click();
	await dialog(page).getByLabel('Mail address').fill('grace@example.org');
	await dialog(page).getByRole('button', {name: 'Invite', exact: true}).click();
	const box = dialog(page).getByRole('group', {name: 'Link of the invitation'});
	await box.waitFor();
	await axe(page);
	const link = new URL(await box.evaluate(b => b.firstChild.textContent));
	await page.keyboard.press('Escape');
	await row(page, 'grace@example.org').getByText('Invited').waitFor();
	const other = await newPage(server);
	await other.goto(link.pathname);
	await other.getByLabel('First name').fill('Grace');
	await other.getByLabel('Last name').fill('Reader');
	await other.getByLabel('Password', {exact: true}).fill(PASSWORD);
	await other.getByRole('button', {name: 'Accept'}).click();
	await other.waitForURL(/\/console\/(sign-in.*)?$/);
	other.verify();
	await other.context().close();
	/* Somebody who may not have it is not told it either. */
	const reader = await person('linus', ['GROUP_READ_ONLY']), theirs = await newPage(server);
	await signIn(theirs, '/console/', reader);
	await server.api('POST', `/orgs/${orgId}/users`, {username: 'later@example.org', roles: {orgRoles: ['ORG_MEMBER']}});
	const {id} = (await server.api('GET', `/orgs/${orgId}/invites`)).find(i => i.username === 'later@example.org');
	assert.equal((await ask(theirs, 'POST', '/api/session/invitation-link', {invitationId: id})).status, 403);
	await theirs.context().close();
});

/* Clicks all that can be clicked on a screen, and what opens then; nothing may be refused. */
async function clickThrough(page, at, refused) {
	await open(page, at);
	await settled(page, at);
	const all = page.locator('main :is(button, [role=tab])');
	const names = await all.evaluateAll(list => list.map(b => b.disabled ? '' : b.innerText.trim() || b.getAttribute('aria-label')));
	for (let i = 0; i < names.length; i++) {
		if (!names[i] || /^(Copy|Download)/.test(names[i]) || i >= await all.count())
			continue;
		await all.nth(i).click({timeout: 5000}).catch(() => {});
		const menu = page.getByRole('menuitem');
		for (let k = 0; k < await menu.count(); k++)
			assert.fail(`${at}: ${names[i]} offers ${await menu.nth(k).innerText()}`);
		if (await dialog(page).count())
			assert.equal(await dialog(page).locator('button[type=submit]').count(), 0, `${at}: ${names[i]} leads to something that would be refused`);
		assert.deepEqual(refused, [], `${at}: ${names[i]}`);
		await open(page, at);
		await settled(page, at);
	}
}

check(server, 'a reader is offered nothing that would be refused, and told which role is missing', async ({page}) => {
	await prepare();
	const reader = await person('rita', ['GROUP_READ_ONLY']), refused = [];
	page.on('response', a => a.request().method() !== 'GET' && a.status() === 403 && !/cost|usage/i.test(a.url()) && refused.push(`${a.request().method()} ${a.url()}`));
	await signIn(page, project, reader);
	await row(page, 'orders').waitFor();
	await page.getByText('you need the role “Cluster creator” or “Owner”').waitFor();
	for (const at of SCREENS) {
		await clickThrough(page, at, refused);
		const shown = await page.locator('main').innerText();
		assert.doesNotMatch(shown, /\b(GROUP|ORG)_[A-Z_]+/, `${at} shows a code`);
		await axe(page, {themes: ['light']});
	}
	await open(page, `${project}/clusters/orders/logs`);
	await page.getByText('This needs the role').waitFor();
	await open(page, `${project}/create`);
	await page.getByText('This needs the role “Cluster creator”').waitFor();
	assert.equal(await button(page, 'Create cluster').count(), 0);
}, {timeout: 900000});

check(server, 'a role that changes shows by itself', async ({page}) => {
	await prepare();
	const someone = await person('walter', ['GROUP_READ_ONLY']);
	await signIn(page, `${project}/clusters/orders/logs`, someone);
	await page.getByText('This needs the role').waitFor();
	const role = (verb, groupRole) => server.api('POST', `/groups/${groupId}/users/${someone.id}:${verb}Role`, {groupRole});
	const begun = Date.now();
	await role('add', 'GROUP_CLUSTER_MANAGER');
	await button(page, 'Scale').waitFor();
	console.log(`a new role showed after ${Date.now() - begun} ms`);
	await page.getByRole('button', {name: /Server log of/}).first().waitFor();
	const taken = Date.now();
	await role('remove', 'GROUP_CLUSTER_MANAGER');
	await button(page, 'Scale').waitFor({state: 'detached'});
	console.log(`a role that was taken away showed after ${Date.now() - taken} ms`);
});

check(server, 'what is refused or away is told, and nothing waits for ever', async ({page}) => {
	await prepare();
	const member = await person('mona', []);
	page.allow(/Failed to load resource|503/);
	await signIn(page, '/console/', member);
	for (const at of [...SCREENS, '/console/hosts', '/console/orgs', '/console/operations']) {
		await open(page, at);
		await settled(page, `${at}, refused,`);
	}
	await page.context().clearCookies();
	await signIn(page, '/console/');
	for (const [status, answer] of [[503, {error: 503, errorCode: 'SERVICE_UNAVAILABLE', detail: 'It rests.'}], [403, {error: 403, errorCode: 'INSUFFICIENT_ROLE',
		detail: 'GROUP_CLUSTER_MANAGER, or one that includes it.', parameters: ['GROUP_CLUSTER_MANAGER']}]]) {
		for (const at of [...SCREENS, '/console/hosts', '/console/orgs']) {
			await page.unrouteAll({behavior: 'ignoreErrors'});
			await page.goto('/console/account');
			await page.locator('main h1').waitFor();
			await page.route(u => /^\/api\/(svc|console\/(overview|hosts|sizes))/.test(u.pathname), r => r.fulfill({status, json: answer}));
			await open(page, at);
			await settled(page, `${at} with ${status}`);
			if (at !== `${project}/create`)
				await page.locator('main .notice').first().waitFor();
			assert.doesNotMatch(await page.locator('main').innerText(), /GROUP_CLUSTER_MANAGER/, at);
		}
	}
	await page.unrouteAll({behavior: 'ignoreErrors'});
}, {timeout: 900000});

check(server, 'faults stand in words at their fields, states are words', async ({page}) => {
	await prepare();
	await signIn(page, `${project}/clusters/orders/backups?part=schedule`);
	await page.getByLabel('Keep for, Daily').fill('0');
	await page.route('**/backup/schedule', (r, request) => request.method() === 'PATCH' ? r.fulfill({status: 400, json: {error: 400, errorCode: 'VALIDATION_ERROR',
		detail: 'policies[0].policyItems[1].retentionValue: must be at least 7.', parameters: ['policies[0].policyItems[1].retentionValue']}}) : r.fallback());
	await button(page, 'Save schedule').click();
	await page.locator('.edit .fault', {hasText: 'Must be at least 7'}).waitFor();
	assert.doesNotMatch(await page.locator('main').innerText(), /olicyItems/);
	await page.unrouteAll();
	await page.route(u => u.pathname.endsWith('/backup/snapshots'), r => r.fulfill({json: {results: [{id: '1'.repeat(24), status: 'inProgress', createdAt: new Date().toISOString()}], totalCount: 1}}));
	await page.goto(`${project}/clusters/orders/backups`);
	await row(page, 'In progress').waitFor();
});

check(server, 'what is shown once stays until it is kept; Back closes a dialog, not the page', async ({page}) => {
	await signIn(page, `${org}/projects`);
	await page.getByRole('link', {name: 'API keys'}).or(page.getByRole('link', {name: 'Keys'})).last().click();
	await page.waitForURL(/\/keys$/);
	await button(page, 'New service account').first().click();
	await page.goBack();
	await dialog(page).waitFor({state: 'detached'});
	assert.match(page.url(), /\/keys$/);
	await button(page, 'New service account').first().click();
	await dialog(page).getByLabel('Name').fill('robot');
	await dialog(page).getByRole('button', {name: 'Create'}).click();
	await page.locator('[data-secret]').waitFor();
	for (let i = 0; i < 3; i++)
		await page.keyboard.press('Escape');
	await page.mouse.click(5, 400);
	await page.goBack();
	await page.getByText('This is shown only now').first().waitFor();
	assert.ok(await page.locator('[data-secret]').isVisible());
	await button(page, 'I have kept it').click();
	await dialog(page).waitFor({state: 'detached'});
	await row(page, 'robot').waitFor();
	await page.goBack();
	await page.waitForURL(/\/projects$/);
});

/* Pairs of texts that lie over each other, and what leaves the page at its side. */
const overlaps = page => page.evaluate(() => {
	const found = [], seen = [];
	const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
	for (let node = walker.nextNode(); node; node = walker.nextNode()) {
		const box = node.parentElement;
		if (!node.data.trim() || !box.checkVisibility({visibilityProperty: true, opacityProperty: true}) || box.closest('.hidden, thead, svg, option, .u-legend, [hidden]'))
			continue;
		const range = document.createRange();
		range.selectNodeContents(node);
		for (const r of range.getClientRects()) {
			const scroller = box.closest('.list, .feed, .raw, .tabs, .seg, .clip, .sub, .name');
			if (r.width < 2 || r.height < 2 || scroller && (scroller.scrollWidth > scroller.clientWidth || scroller.scrollHeight > scroller.clientHeight))
				continue;
			const over = seen.find(s => Math.min(s.r.right, r.right) - Math.max(s.r.left, r.left) > 3 && Math.min(s.r.bottom, r.bottom) - Math.max(s.r.top, r.top) > 5);
			if (over)
				found.push(`${over.text} / ${node.data.trim().slice(0, 40)}`);
			if (r.right > innerWidth + 1)
				found.push(`${node.data.trim().slice(0, 40)} leaves the page`);
			seen.push({r, text: node.data.trim().slice(0, 40)});
		}
	}
	return found;
});

check(server, 'on a phone nothing lies over anything else, and where one is can be seen', async ({page}) => {
	await prepare();
	page.allow(/status of 501/);
	await signIn(page, project);
	for (const at of SCREENS) {
		await open(page, at);
		await settled(page, at);
		assert.deepEqual(await overlaps(page), [], at);
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${at} is wider than the phone`);
		assert.deepEqual(await page.locator('main .card > header h2').evaluateAll(list => list.filter(h => h.textContent.length < 24 && h.offsetHeight > 30).map(h => h.textContent)), [], `${at}: a heading is broken`);
		const tab = page.locator('main .tabs > :is([aria-current], [aria-selected=true])').first();
		if (await tab.count())
			assert.ok(await tab.evaluate(e => { const r = e.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth; }), `${at}: the tab cannot be seen`);
	}
}, {viewport: {width: 360, height: 740}, timeout: 600000});
