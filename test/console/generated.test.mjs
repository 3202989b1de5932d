/* All operations: each has a page without faults in both themes, and work can be done there. */
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {copyFileSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {ROOT, check, picture, signIn, start, until} from './harness.mjs';

const server = await start({engine: 'simulated'});
const AXE = readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const steward = path.resolve(process.env.STEWARD_BIN ?? path.join(ROOT, 'build/fast/steward'));
const CLUSTER = {name: 'orders', clusterType: 'REPLICASET', replicationSpecs: [{regionConfigs: [{providerName: 'AWS', regionName: 'US_EAST_1', priority: 7,
	electableSpecs: {instanceSize: 'M10', nodeCount: 3}}]}]};

let made = null;
const cluster = () => made ??= (async () => {
	await server.api('POST', `/groups/${server.groupId}/clusters`, CLUSTER);
	await until('the cluster', async () => (await server.api('GET', `/groups/${server.groupId}/clusters/orders`)).stateName === 'IDLE');
})();
const at = (id, query = {}) => `/console/operations/${id}?${new URLSearchParams(query)}`;
const field = (page, label) => page.getByLabel(label, {exact: true});
const fieldAt = (page, name) => page.locator(`[name="${name}"]`);
const send = page => page.locator('main form').getByRole('button', {name: /^(Send|Show)$/}).click();
const answer = page => page.getByRole('region', {name: 'Answer'});
const open = async (page, id, query) => {
	await page.goto(at(id, query));
	await page.locator('main form').waitFor();
};

/* Opens pages within the application, each with all its parts open, and keeps a copy of each in one document. There axe looks at
 * them together, which is cheaper: at everything, and then at the contrasts in both themes, of each text that is styled as none
 * before it. */
async function walk(page, operations) {
	return page.evaluate(async list => {
		const frame = () => new Promise(done => { requestAnimationFrame(() => setTimeout(done, 0)); });
		const found = [], copies = document.createElement('section');
		copies.setAttribute('aria-label', 'Copies');
		const settled = async title => {
			const end = performance.now() + 60000;
			do {
				await frame();
				if (performance.now() > end)
					throw new Error(`${title}: is not there; ${document.querySelector('main')?.textContent.slice(0, 300)}`);
			} while (globalThis.asking || document.querySelector('main h1')?.textContent !== title || !document.querySelector('main form'));
			await frame();
		};
		/* Takes away what has the style of something that was there before: same elements, classes and states up to the page. */
		const seen = globalThis.seenStyles ??= new Set();
		const styleOf = e => {
			const steps = [];
			for (; e && !e.dataset.operation; e = e.parentElement)
				steps.push([e.tagName, e.className, ...[...e.attributes].filter(a => /^(aria-|disabled|open|type|role)/.test(a.name) && !/label|describedby|controls|row/.test(a.name)).map(a => `${a.name}=${a.value}`)].join(' '));
			return steps.join(' < ');
		};
		const strip = e => {
			[...e.children].forEach(strip);
			if (e.children.length || e.dataset.operation)
				return;
			const style = styleOf(e);
			if (seen.has(style) || !/^(INPUT|TEXTAREA|SELECT)$/.test(e.tagName) && !e.textContent.trim())
				e.remove();
			seen.add(style);
		};
		const look = async (theme, more) => {
			document.documentElement.dataset.theme = theme;
			const result = await globalThis.axe.run(copies, {...more, preload: false, iframes: false, reporter: 'no-passes', resultTypes: ['violations']});
			for (const v of result.violations)
				for (const n of v.nodes.slice(0, 3))
					found.push(`${copies.querySelector(n.target[0])?.closest('[data-operation]')?.dataset.operation}, ${theme}: ${v.id}: ${n.html.slice(0, 200)} ${[...n.any, ...n.all, ...n.none].map(c => c.message).join(' ')}`);
		};
		for (const [id, title, to] of list) {
			history.pushState({key: 0}, '', to);
			dispatchEvent(new PopStateEvent('popstate'));
			await settled(title);
			for (let round = 0; round < 2; round++) {
				const parts = [...document.querySelectorAll('main details:not([open])')], adds = [...document.querySelectorAll('main .gen-add button')];
				parts.forEach(part => { part.open = true; });
				adds.forEach(add => add.click());
				if (parts.length || adds.length)
					await settled(title);
			}
			for (const wrong of document.querySelectorAll('main :is(label, button, th, h1, h2, h3, legend, summary)'))
				if (/^generated\.|undefined|\[object/.test(wrong.textContent))
					found.push(`${id}: a text is missing: ${wrong.outerHTML.slice(0, 200)}`);
			const copy = document.querySelector('main .page').cloneNode(true);
			copy.dataset.operation = id;
			for (const heading of copy.querySelectorAll('section > header h2'))
				heading.append(` of ${id}`); // regions have names of their own, also when several pages stand together
			copies.append(copy);
		}
		document.body.append(copies);
		await frame();
		await look('light', {rules: {'color-contrast': {enabled: false}}});
		[...copies.children].forEach(strip);
		for (const theme of ['light', 'dark'])
			await look(theme, {runOnly: {type: 'rule', values: ['color-contrast']}});
		document.documentElement.dataset.theme = 'light';
		copies.remove();
		return found;
	}, operations);
}

check(server, 'every operation has a page that axe finds nothing on, in both themes', async ({page}) => {
	await cluster();
	await page.context().addInitScript(() => {
		const ask = globalThis.fetch;
		globalThis.asking = 0;
		globalThis.fetch = (...given) => {
			globalThis.asking++;
			return ask(...given).finally(() => { setTimeout(() => globalThis.asking--, 0); });
		};
	});
	await signIn(page, '/console/operations');
	await page.getByRole('heading', {name: 'All operations'}).waitFor();
	const rows = await page.evaluate(async () => {
		const src = document.querySelector('script[type=module]').src;
		return (await fetch(new URL('../data/index.json', src))).json();
	});
	assert.equal(rows.length, 447);
	const table = await page.evaluate(async () => (await fetch(new URL('../data/operations.json', document.querySelector('script[type=module]').src))).json());
	const paths = new Map(Object.entries(table).flatMap(([path, rows]) => rows.map(([id]) => [id, path])));
	const given = {groupId: server.groupId, orgId: server.orgId, clusterName: 'orders'};
	const operations = rows.map(([id, summary]) => {
		const names = [...paths.get(id).matchAll(/\{(\w+)\}/g)].map(m => m[1]).filter(name => given[name]);
		return [id, summary, at(id, Object.fromEntries(names.map(name => [name, given[name]])))];
	});
	await page.evaluate(AXE);
	await page.emulateMedia({colorScheme: 'light', reducedMotion: 'reduce'});
	const found = [];
	for (let i = 0; i < operations.length; i += 40)
		found.push(...await walk(page, operations.slice(i, i + 40)));
	assert.deepEqual(found, []);
}, {timeout: 600000, viewport: {width: 1280, height: 120}});

check(server, 'operations are found by words, families and roles', async ({page}) => {
	await signIn(page, '/console/operations');
	await page.getByRole('searchbox', {name: 'Search operations'}).fill('database user create');
	await page.getByRole('link', {name: 'Create a database user in a project'}).waitFor();
	assert.ok(await page.locator('.gen-index li').count() < 5);
	await page.getByRole('searchbox', {name: 'Search operations'}).fill('');
	await page.getByRole('combobox', {name: 'Family'}).selectOption('backups');
	await page.waitForURL(/family=backups/);
	await page.getByRole('link', {name: 'Take a snapshot of a cluster on demand'}).click();
	await page.getByRole('heading', {level: 1, name: 'Take a snapshot of a cluster on demand'}).waitFor();
	await page.goto('/console/operations/nothing');
	await page.getByText('There is no such operation').waitFor();
	await page.goto(at('createStreamWorkspace', {groupId: server.groupId}));
	await page.getByText('answers 501').waitFor();
});

check(server, 'a project is made, and refusals stand at their fields', async ({page}) => {
	await signIn(page, at('createGroup'));
	await send(page);
	await page.locator('.fault', {hasText: 'Is required'}).first().waitFor();
	await fieldAt(page, 'name').fill('a<b');
	await field(page, 'Organization').selectOption(server.orgId);
	await send(page);
	const wrong = fieldAt(page, 'name');
	await until('the fault', async () => await wrong.getAttribute('aria-invalid') === 'true');
	assert.equal(await wrong.evaluate(e => document.activeElement === e), true);
	await page.locator('.fault', {hasText: 'Must be 1 to 64 letters, digits, spaces and'}).first().waitFor();
	await wrong.fill('made-in-the-console');
	await send(page);
	await answer(page).getByText('made-in-the-console').first().waitFor();
	assert.ok((await server.api('GET', '/groups')).results.some(g => g.name === 'made-in-the-console'));
	await send(page);
	await page.locator('[role=alert], .fault').first().waitFor();
	await picture(page, 'operation');
});

check(server, 'a database user, by the form and by the command and curl line that are shown', async ({page}) => {
	await signIn(page, at('createOrgApiKey', {orgId: server.orgId}));
	await fieldAt(page, 'desc').fill('for the curl line');
	await page.getByLabel('Organization owner').check();
	await send(page);
	const secret = answer(page).locator('.secret');
	await secret.getByRole('button', {name: 'Show'}).click();
	const privateKey = await secret.locator('[data-secret]').textContent();
	const key = (await server.api('GET', `/orgs/${server.orgId}/apiKeys`)).results.find(k => k.desc === 'for the curl line');
	assert.match(privateKey, /^[0-9a-f-]{36}$/);
	assert.ok(!(await page.content()).replace(privateKey, '').includes(privateKey), 'it stands nowhere else');
	await server.api('POST', `/orgs/${server.orgId}/apiKeys/${key.id}/accessList`, [{cidrBlock: '127.0.0.0/8'}, {cidrBlock: '::1/128'}]);

	await open(page, 'createDatabaseUser', {groupId: server.groupId});
	await fieldAt(page, 'username').fill('it\'s me');
	await fieldAt(page, 'password').fill('a-long-password-1');
	await fieldAt(page, 'databaseName').selectOption('admin');
	await page.getByRole('button', {name: 'Add Roles'}).click();
	await fieldAt(page, 'roles[0].roleName').fill('readWrite');
	await fieldAt(page, 'roles[0].databaseName').fill('shop');
	const shown = page.getByRole('region', {name: 'The same elsewhere'});
	await shown.getByText('--username').waitFor();
	const command = await shown.locator('pre').textContent();
	assert.ok(command.includes('--password -') && !command.includes('a-long-password-1'), command);
	await shown.getByRole('button', {name: 'curl'}).click();
	const curl = await shown.locator('pre').textContent();
	assert.ok(!curl.includes('a-long-password-1'), curl);
	await send(page);
	await answer(page).getByText('status 201').waitFor();
	await send(page);
	await until('the fault', async () => await fieldAt(page, 'username').getAttribute('aria-invalid') === 'true');
	assert.match(await page.locator('.field.faulty .fault').first().textContent(), /already/);

	const folder = mkdtempSync(path.join(tmpdir(), 'steward-generated-'));
	try {
		copyFileSync(server.ca, path.join(folder, 'ca.crt'));
		const run = (text, input = '') => execFileSync('bash', ['-c', text], {cwd: folder, input, encoding: 'utf8', timeout: 60000,
			env: {PATH: process.env.PATH, HOME: folder, STEWARD_DATA: server.data, PUBLIC_KEY: key.publicKey, PRIVATE_KEY: privateKey}});
		run(command.replace('steward', steward).replace('it\'\\\'\'s me', 'by-command'), 'a-long-password-2\n');
		assert.deepEqual((await server.api('GET', `/groups/${server.groupId}/databaseUsers/admin/by-command`)).roles.map(r => [r.roleName, r.databaseName]), [['readWrite', 'shop']]);
		run(`${curl.replace('***', 'a-long-password-3').replace('it\'\\\'\'s me', 'by-curl').replace('curl ', 'curl --fail --silent --show-error ')}`);
		assert.equal((await server.api('GET', `/groups/${server.groupId}/databaseUsers/admin/by-curl`)).username, 'by-curl');
	} finally {
		rmSync(folder, {recursive: true, force: true});
	}

	await open(page, 'updateDatabaseUser', {groupId: server.groupId, databaseName: 'admin', username: 'by-curl'});
	await page.getByText('Filled with what is there now').waitFor();
	await fieldAt(page, 'description').fill('changed in the console');
	await send(page);
	await answer(page).getByText('changed in the console').first().waitFor();
	assert.equal((await server.api('GET', `/groups/${server.groupId}/databaseUsers/admin/by-curl`)).description, 'changed in the console');
});

check(server, 'a custom role as JSON, with its fault on the right line', async ({page}) => {
	await signIn(page, at('createCustomDbRole', {groupId: server.groupId}));
	await page.getByRole('button', {name: 'JSON', exact: true}).click();
	const area = page.getByLabel('The body, as JSON');
	await area.fill('{"roleName": ');
	assert.equal(await area.getAttribute('aria-invalid'), 'true');
	await area.fill(JSON.stringify({roleName: 'reader', actions: [{action: 'FLY', resources: [{db: 'shop', collection: '', cluster: false}]}]}, null, 2));
	await send(page);
	await page.locator('.gen-faults').getByText('Line 5').waitFor();
	await area.fill(JSON.stringify({roleName: 'reader', actions: [{action: 'FIND', resources: [{db: 'shop', collection: '', cluster: false}]}]}, null, 2));
	await send(page);
	await answer(page).getByText('reader').first().waitFor();
});

check(server, 'an entry of the access list: made, found in its list, and deleted after a question', async ({page}) => {
	await signIn(page, at('createAccessListEntry', {groupId: server.groupId}));
	await fieldAt(page, '[0].cidrBlock').fill('203.0.113.0/24');
	await fieldAt(page, '[0].comment').fill('office <b>bold</b>');
	await send(page);
	await answer(page).getByText('203.0.113.0/24').first().waitFor();
	await open(page, 'listAccessListEntries', {groupId: server.groupId});
	const row = answer(page).getByRole('row', {name: /203\.0\.113\.0\/24/});
	await row.getByText('office <b>bold</b>').waitFor();
	await row.locator('summary').click();
	await row.getByRole('link', {name: 'Remove an entry from the project\'s IP access list'}).click();
	await page.getByRole('heading', {level: 1, name: 'Remove an entry from the project\'s IP access list'}).waitFor();
	assert.ok(page.url().includes(encodeURIComponent('203.0.113.0/24')), page.url());
	await send(page);
	const dialog = page.getByRole('dialog');
	await dialog.getByRole('button', {name: 'Keep'}).click();
	await dialog.waitFor({state: 'detached'});
	assert.equal((await server.api('GET', `/groups/${server.groupId}/accessList`)).results.filter(e => e.cidrBlock === '203.0.113.0/24').length, 1);
	await send(page);
	await dialog.getByRole('button', {name: 'Do it'}).click();
	await answer(page).getByText('The answer has no content').waitFor();
	assert.equal((await server.api('GET', `/groups/${server.groupId}/accessList`)).results.filter(e => e.cidrBlock === '203.0.113.0/24').length, 0);
});

check(server, 'what lasts is deleted by typing its name, and only then', async ({page}) => {
	await server.api('POST', `/groups/${server.groupId}/flexClusters`, {name: 'small', providerSettings: {backingProviderName: 'AWS', regionName: 'US_EAST_1'}});
	await until('the cluster', async () => (await server.api('GET', `/groups/${server.groupId}/flexClusters/small`)).stateName === 'IDLE');
	await signIn(page, at('deleteFlexCluster', {groupId: server.groupId, name: 'small'}));
	await send(page);
	const dialog = page.getByRole('dialog');
	await dialog.waitFor();
	assert.equal(await dialog.getByRole('button', {name: 'Do it'}).isDisabled(), true);
	await dialog.getByRole('textbox').fill('smal');
	assert.equal(await dialog.getByRole('button', {name: 'Do it'}).isDisabled(), true);
	await dialog.getByRole('textbox').fill('small');
	await dialog.getByRole('button', {name: 'Do it'}).click();
	await answer(page).waitFor();
	await until('its end', async () => (await server.api('GET', `/groups/${server.groupId}/flexClusters`)).results.every(c => c.name !== 'small' || c.stateName === 'DELETING'));
});

check(server, 'what is a file can be saved', async ({page}) => {
	await cluster();
	const [{hostname}] = (await server.api('GET', `/groups/${server.groupId}/processes`)).results;
	await signIn(page, at('downloadClusterLog', {groupId: server.groupId, hostName: hostname, logName: 'db'}));
	await send(page);
	const [file] = await Promise.all([page.waitForEvent('download'), answer(page).getByRole('link', {name: /^Save/}).click()]);
	assert.deepEqual([file.suggestedFilename(), await file.failure()], ['downloadClusterLog.gz', null]);
});

check(server, 'who lacks a role is told which', async ({page}) => {
	await signIn(page, '/console/operations');
	const session = await page.evaluate(async () => (await fetch('/api/session')).json());
	const reads = {...session, roles: [{groupId: server.groupId, roleName: 'GROUP_READ_ONLY'}]}; // as somebody who only reads
	await page.route('**/api/session', route => route.fulfill({json: reads}));
	await page.goto(at('deleteGroup', {groupId: server.groupId}));
	await page.getByText('It needs “Owner”.').waitFor();
	await page.goto(at('getGroup', {groupId: server.groupId}));
	await answer(page).waitFor();
	assert.equal(await page.getByText('You lack a role').count(), 0);
	await page.goto('/console/operations?show=others&q=deletegroup');
	await page.getByText('needs “Owner”').first().waitFor();
	assert.equal(await page.getByRole('link', {name: 'Return one project', exact: true}).count(), 0);
	await page.getByRole('searchbox').fill('');
	await page.getByText('needs “Cluster creator” or “Owner”').first().waitFor();
	assert.doesNotMatch((await page.locator('.gen-tag').allInnerTexts()).join(), /_/, 'roles are words');
});

check(server, 'of a long list, what is typed is looked for', async ({page}) => {
	const make = name => server.api('POST', '/groups', {name, orgId: server.orgId});
	for (let i = 0; i < 100; i++)
		await make(`filler-${i}`);
	const {id} = await make('zz-needle');
	await signIn(page, at('getGroup'));
	await page.locator('datalist option').first().waitFor({state: 'attached'});
	await fieldAt(page, 'groupId').fill('needle');
	await page.locator(`datalist option[value="${id}"]`).waitFor({state: 'attached'});
	await fieldAt(page, 'groupId').fill(id);
	await send(page);
	await answer(page).getByText('zz-needle').first().waitFor();
	await page.waitForURL(new RegExp(`groupId=${id}`));
});
