/* Every screen does its job on the simulated engine: what is made on one is found through the API, refusals stand at their fields,
 * what others do appears without a reload, names from outside are text, and axe finds nothing in either theme. */
import assert from 'node:assert/strict';
import {after} from 'node:test';
import {start, check, signIn, axe, until, picture} from './harness.mjs';

const server = await start({engine: 'simulated'});
after(() => server.stop());
const {groupId, orgId} = server, project = `/console/projects/${groupId}`, org = `/console/orgs/${orgId}`;
const HOSTILE = '"><img src=x onerror=globalThis.hostile=1>';

const PLACE = {providerName: 'AWS', regionName: 'US_EAST_1', priority: 7};
const cluster = (name, more = {}) => ({name, clusterType: 'REPLICASET', replicationSpecs: [{regionConfigs: [{...PLACE,
	electableSpecs: {instanceSize: 'M10', nodeCount: 3}}]}], ...more});
const make = (name, more) => server.api('POST', `/groups/${groupId}/clusters`, cluster(name, more));
const ORDERS = {backupEnabled: true, pitEnabled: true}, LEDGER = {tags: [{key: 'team', value: HOSTILE}]};
/* For tests that are run alone. */
const have = async (name, more) => {
	if (!(await server.api('GET', `/groups/${groupId}/clusters`)).results.some(c => c.name === name))
		await make(name, more);
	await idle(name);
};
const idle = name => until(`${name} is ready`, async () => (await server.api('GET', `/groups/${groupId}/clusters/${name}`)).stateName === 'IDLE');

/* Another path without loading the page anew. */
async function open(page, to) {
	await page.evaluate(at => {
		history.pushState({key: 1e9}, '', at);
		dispatchEvent(new PopStateEvent('popstate', {state: history.state}));
	}, to);
	await page.locator('main h1').first().waitFor();
}

const button = (page, name) => page.getByRole('button', {name, exact: true});
const dialog = page => page.getByRole('dialog');
const said = (page, text) => page.locator('.toast', {hasText: text}).first().waitFor();
/* The row of a table that has this text, once it is there. */
const row = (page, text) => page.locator('main tbody tr', {hasText: text}).first();
const harmless = async page => assert.equal(await page.evaluate(() => globalThis.hostile), undefined, 'what came from outside was run');

check(server, 'the overview shows what happens, finds and sorts, and keeps it in the link', async ({page}) => {
	await signIn(page, project);
	await page.getByText('No cluster yet').waitFor();
	await axe(page);
	await make('orders', ORDERS);
	await row(page, 'orders').getByText('Healthy').waitFor();
	await make('ledger', LEDGER);
	await row(page, 'ledger').getByText('Healthy').waitFor();
	await page.locator('.feed').getByText('Cluster ready').first().waitFor();
	await page.getByRole('searchbox').fill('ledg');
	await until('the list is shorter', async () => await page.locator('.clusters tbody tr').count() === 1);
	assert.match(page.url(), /q=ledg/);
	await page.getByRole('searchbox').fill('nothing like it');
	await page.getByText('No cluster fits').waitFor();
	await button(page, 'Show all').click();
	await page.getByRole('columnheader', {name: 'Cluster'}).getByRole('button').click();
	await page.waitForURL(/sort=name/);
	await page.getByRole('columnheader', {name: 'Cluster'}).getByRole('button').click();
	await page.waitForURL(/sort=-name/);
	await page.reload();
	await row(page, 'orders').waitFor();
	assert.deepEqual(await page.locator('.clusters tbody .main-cell a').evaluateAll(list => list.map(a => a.firstChild.textContent)), ['orders', 'ledger']);
	await axe(page);
	for (const [name, instanceSize, nodeCount] of [['analytics', 'M50', 5], ['payments', 'M40', 3], ['pricing', 'M10', 1]])
		await make(name, {backupEnabled: name !== 'pricing', replicationSpecs: [{regionConfigs: [{...PLACE, electableSpecs: {instanceSize, nodeCount}}]}]});
	await idle('pricing');
	await server.api('PATCH', `/groups/${groupId}/clusters/pricing`, {paused: true});
	await row(page, 'pricing').getByText('Paused').waitFor();
	await row(page, 'payments').getByText('Healthy').waitFor();
	await picture(page, 'overview');
	await open(page, '/console/');
	await row(page, 'orders').waitFor();
	await page.setViewportSize({width: 420, height: 800});
	await axe(page);
	await picture(page, 'overview-narrow');
	await harmless(page);
});

check(server, '2,000 clusters: few of them are in the page, and all can be reached', async ({page}) => {
	const all = Array.from({length: 2000}, (_, i) => ({id: String(i).padStart(24, '0'), name: `c${String(i).padStart(4, '0')}`, groupId, groupName: 'Project0',
		orgId, stateName: 'IDLE', paused: i % 50 === 0, version: '17.3', instanceSize: 'M10', nodes: [], nodesUp: 3,
		nodesTotal: 3, primary: 'x-shard-00-00', lagSeconds: 0.1, diskUsedBytes: i * 1e6, diskBytes: 1e10,
			attention: i % 100 === 7 ? [{code: 'NODE_DOWN', text: 'A node is down.', nextStep: 'Look at its log.'}] : []}));
	await page.route('**/api/console/overview?*', route => {
		const q = new URL(route.request().url()).searchParams, n = Number(q.get('pageNum') ?? 1), size = Number(q.get('itemsPerPage'));
		route.fulfill({json: {results: all.slice((n - 1) * size, n * size), totalCount: all.length, attention: [], activity: []}});
	});
	await signIn(page, '/console/?sort=name');
	await page.getByText('2,000 of 2,000 clusters').waitFor();
	const inPage = () => page.locator('.clusters tbody tr[data-row]').count();
	assert.ok(await inPage() < 120, `${await inPage()} rows`);
	await page.getByText('2,000 of 2,000 clusters').scrollIntoViewIfNeeded();
	await row(page, 'c1999').waitFor();
	assert.ok(await inPage() < 120, `${await inPage()} rows`);
	if (process.env.STEWARD_SCROLL)
		console.log(await page.evaluate(async () => {
			const times = [];
			for (let y = document.body.scrollHeight, last = performance.now(); y > 0; y -= 600) {
				scrollTo(0, y);
				await new Promise(requestAnimationFrame);
				times.push(performance.now() - last);
				last = performance.now();
			}
			times.sort((a, b) => a - b);
			return `frames ${times.length}: p50 ${times[times.length >> 1].toFixed(1)} ms, p99 ${times[Math.floor(times.length * 0.99)].toFixed(1)} ms`;
		}));
	await page.getByRole('searchbox').fill('c1234');
	await until('one is left', async () => await inPage() === 1);
	await page.getByRole('searchbox').fill('');
	await button(page, 'Attention 20').click();
	await row(page, 'c0007').getByText('A node is down.').waitFor();
});

check(server, 'a new cluster: refusals at their fields, then its page follows it', async ({page}) => {
	await have('orders', ORDERS);
	await server.api('POST', `/orgs/${orgId}/resourcePolicies`, {name: 'not in Ireland',
		policies: [{body: 'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource) when { context.cluster.regions.contains(ResourcePolicy::Region::"aws:eu-west-1") };'}]});
	await signIn(page, `${project}/create`);
	await page.getByRole('option', {name: 'EU_WEST_1'}).waitFor({state: 'attached'});
	await axe(page);
	await button(page, 'Create cluster').click();
	await page.locator('.field', {has: page.getByLabel('Name')}).locator('.fault').waitFor();
	await page.getByLabel('Name').fill('orders');
	await button(page, 'Create cluster').click();
	await page.locator('.field', {has: page.getByLabel('Name')}).locator('.fault', {hasText: 'orders'}).waitFor();
	await page.getByLabel('Name').fill('fresh');
	await page.getByLabel('Region').selectOption('EU_WEST_1');
	await button(page, 'Create cluster').click();
	await page.locator('.field', {has: page.getByLabel('Region')}).locator('.fault', {hasText: 'not in Ireland'}).waitFor();
	await axe(page);
	await page.getByLabel('Region').selectOption('US_EAST_1');
	await button(page, 'Create cluster').click();
	await page.waitForURL(/clusters\/fresh$/);
	await page.locator('.facts').getByText('Healthy').waitFor();
	await page.getByRole('cell', {name: 'Primary'}).waitFor();
});

check(server, 'a cluster: connect, scale, pause, move the primary, protect, delete by its name', async ({page}) => {
	await make('brief');
	await idle('brief');
	await signIn(page, `${project}/clusters/brief`);
	await page.getByLabel('Database user').fill('panel');
	await button(page, 'Make user and string').click();
	const code = page.getByRole('group', {name: 'Connection string'});
	await code.waitFor();
	const line = await code.innerText(), password = /panel:(\w+)@/.exec(line)[1];
	assert.match(line, /^psql 'postgresql:\/\/panel:\w{28}@/);
	assert.equal((await server.api('GET', `/groups/${groupId}/databaseUsers/admin/panel`)).scopes[0].name, 'brief');
	assert.ok((await server.api('GET', `/groups/${groupId}/accessList`)).results.some(e => e.ipAddress === '127.0.0.1'));
	await axe(page);
	await page.reload();
	await page.getByText('127.0.0.1, where you are, may connect').waitFor();
	assert.ok(!(await page.content()).includes(password), 'the password is shown once');
	await page.getByLabel('Database user').fill('panel');
	await button(page, 'Make user and string').click();
	await page.locator('.field', {has: page.getByLabel('Database user')}).locator('.fault').waitFor();

	await button(page, 'Scale').click();
	await dialog(page).getByLabel('Size').selectOption('M20');
	await axe(page);
	await dialog(page).getByRole('button', {name: 'Scale'}).click();
	await page.locator('.facts').getByText('M20').waitFor();
	await idle('brief');
	const act = async name => {
		await page.locator('.facts').getByText(/Healthy|Paused/).waitFor();
		await button(page, 'More').click();
		await page.getByRole('menuitem', {name, exact: true}).click();
	};
	await act('Pause');
	await dialog(page).getByRole('button', {name: 'Pause'}).click();
	await page.locator('.facts').getByText('Paused').waitFor();
	await act('Resume');
	await dialog(page).getByRole('button', {name: 'Resume'}).click();
	await page.locator('.facts').getByText('Healthy').waitFor();
	await act('Move primary');
	await axe(page, {themes: ['light']});
	await dialog(page).getByRole('button', {name: 'Move primary'}).click();
	await said(page, 'is moving');
	await act('Upgrade');
	await dialog(page).getByText(/newest|To version/).first().waitFor();
	await page.keyboard.press('Escape');
	await act('Protect from deletion');
	await dialog(page).getByRole('button', {name: 'Protect'}).click();
	await said(page, 'is protected');
	await act('Delete');
	const last = dialog(page).getByRole('button', {name: 'Delete cluster'});
	assert.ok(await last.isDisabled());
	await dialog(page).getByRole('textbox').fill('brief');
	await last.click();
	await dialog(page).getByRole('alert').waitFor();
	await axe(page);
	await page.keyboard.press('Escape');
	await act('Allow deletion');
	await dialog(page).getByRole('button', {name: 'Allow deletion'}).click();
	await said(page, 'not protected');
	await act('Delete');
	await dialog(page).getByRole('textbox').fill('brief');
	await last.click();
	await page.getByText('brief is deleted.').waitFor();
});

check(server, 'what a cluster tells: metrics, queries, advice, logs, events', async ({page}) => {
	await have('orders', ORDERS);
	await have('ledger', LEDGER);
	await signIn(page, `${project}/clusters/ledger`);
	await page.getByText('team: "><img').waitFor();
	await open(page, `${project}/clusters/orders`);
	await page.getByRole('cell', {name: 'Primary'}).waitFor();
	await picture(page, 'cluster');
	await axe(page);
	await server.control('clock', {advance: 600}).catch(() => null);
	for (const [tab, shown] of [['metrics', /Connections|Nothing was measured/], ['queries', /Shapes/], ['queries?kind=slow', /Slow queries/],
		['advice', /Indexes that would help/], ['logs', /Server log/], ['events', /Cluster ready/]]) {
		await open(page, `${project}/clusters/orders/${tab}`);
		await page.locator('main').getByText(shown).locator('visible=true').first().waitFor();
		await axe(page);
	}
	/* What takes less than a second is not 0 s, and milliseconds are no seconds. */
	await open(page, `${project}/clusters/orders/metrics`);
	await page.getByRole('img', {name: /Replication lag.* ms/}).waitFor();
	/* One kind of advice that cannot be had leaves the others. */
	await page.route('**/performanceAdvisor/suggestedIndexes*', route => route.fulfill({status: 409, json: {error: 409, errorCode: 'CLUSTER_NOT_AVAILABLE', detail: 'They do not answer.'}}));
	await open(page, `${project}/clusters/orders/advice`);
	await page.locator('main').getByText('They do not answer.').waitFor();
	await page.locator('main').getByText('Schemas').waitFor();
	await open(page, `${project}/clusters/orders/events`);
	await row(page, 'Cluster ready').getByRole('button').first().click();
	await dialog(page).getByText('"eventTypeName": "CLUSTER_READY"').waitFor();
	await page.keyboard.press('Escape');
	/* One kind alone, which is asked of the service, also of what comes meanwhile. */
	await page.getByLabel('Kind').selectOption({label: 'Cluster ready'});
	await page.waitForURL(/kind=CLUSTER_READY/);
	const kinds = () => page.locator('main tbody .main-cell').allInnerTexts();
	await until('others are not shown', async () => (await kinds()).every(text => /Cluster ready/.test(text)));
	const ready = (await server.api('GET', `/groups/${groupId}/events?clusterNames=orders&eventType=CLUSTER_READY`)).totalCount;
	await page.getByText(ready === 1 ? '1 event' : `${ready} events`, {exact: true}).waitFor();
	await server.api('PATCH', `/groups/${groupId}/clusters/orders`, {tags: [{key: 'team', value: 'a'}]});
	await until('the change is written', async () => (await server.api('GET', `/groups/${groupId}/events?clusterNames=orders&eventType=CLUSTER_TAGS_MODIFIED`)).totalCount > 0);
	await page.getByLabel('Kind').locator('option', {hasText: 'Cluster tags modified'}).waitFor({state: 'attached'});
	assert.ok((await kinds()).every(text => /Cluster ready/.test(text)));
	await axe(page, {themes: ['light']});
	await page.getByRole('searchbox').fill('nothing like it');
	await page.getByText('No such event').waitFor();
	await open(page, `${project}/clusters/orders/logs`);
	const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: /Server log of/}).first().click()]);
	assert.match(file.suggestedFilename(), /db\.log\.gz$/);
	await harmless(page);
});

check(server, 'database access: users with passwords shown once, roles, hostile names', async ({page}) => {
	await signIn(page, `${project}/database-access`);
	await button(page, 'New database user').first().click();
	await axe(page);
	await dialog(page).getByLabel('Name').fill(HOSTILE);
	await dialog(page).getByRole('button', {name: 'Create'}).click();
	await page.locator('[data-secret]').waitFor();
	await button(page, 'Show').click();
	assert.match(await page.locator('[data-secret]').innerText(), /^\w{28}$/);
	await button(page, 'I have kept it').click();
	await row(page, HOSTILE).getByText('Read and write all databases').waitFor();
	await axe(page);
	await row(page, HOSTILE).getByRole('button', {name: HOSTILE, exact: true}).click();
	await dialog(page).getByLabel('Role', {exact: true}).selectOption('read');
	await dialog(page).getByLabel('Database', {exact: true}).fill('shop');
	await dialog(page).getByRole('button', {name: 'Save'}).click();
	await row(page, 'Read shop').waitFor();
	assert.doesNotMatch(await page.locator('main').innerText(), /readWrite|AnyDatabase/, 'roles are words');
	await row(page, HOSTILE).getByRole('button', {name: /^More for/}).click();
	await page.getByRole('menuitem', {name: 'Delete'}).click();
	await dialog(page).getByRole('button', {name: 'Delete'}).click();
	await row(page, HOSTILE).waitFor({state: 'detached'});
	await page.getByRole('tab', {name: /Custom roles/}).click();
	await button(page, 'New role').first().click();
	await dialog(page).getByLabel('Name').fill('reader');
	await dialog(page).getByLabel('Database', {exact: true}).fill('shop');
	await axe(page);
	await dialog(page).getByRole('button', {name: 'Create'}).click();
	await row(page, 'reader').waitFor();
	assert.equal((await server.api('GET', `/groups/${groupId}/customDBRoles/roles/reader`)).actions[0].action, 'FIND');
	await harmless(page);
});

check(server, 'network access: mine, others, faults at the field, undone', async ({page}) => {
	await signIn(page, `${project}/network`);
	await page.getByText(/where you are, may (not )?connect/).waitFor();
	await button(page, 'Add an address').first().click();
	await dialog(page).getByLabel('Address or network').fill('300.1.1.1');
	await dialog(page).getByRole('button', {name: 'Add'}).click();
	await dialog(page).locator('.fault').waitFor();
	await axe(page);
	await dialog(page).getByLabel('Address or network').fill('10.20.0.0/16');
	await dialog(page).getByLabel('Comment').fill(HOSTILE);
	await dialog(page).getByRole('button', {name: 'Add'}).click();
	await row(page, HOSTILE).waitFor();
	await axe(page);
	await button(page, 'Remove 10.20.0.0/16').click();
	await dialog(page).getByRole('button', {name: 'Remove'}).click();
	await row(page, '10.20.0.0/16').waitFor({state: 'detached'});
	await page.locator('.toast').getByRole('button', {name: 'Undo'}).click();
	await row(page, '10.20.0.0/16').waitFor();
	/* What somebody else adds. */
	await server.api('POST', `/groups/${groupId}/accessList`, [{ipAddress: '192.0.2.7'}]);
	await row(page, '192.0.2.7').waitFor();
	await harmless(page);
});

check(server, 'archives: made by age and by a query, watched, paused and deleted', async ({page}) => {
	await have('orders', ORDERS);
	const archives = async () => (await server.api('GET', `/groups/${groupId}/clusters/orders/onlineArchives`)).results;
	await signIn(page, `${project}/clusters/orders/archives`);
	const nothing = page.locator('.none', {hasText: 'No archive yet'});
	await nothing.waitFor();
	await axe(page);
	await nothing.getByRole('button', {name: 'New archive'}).click();
	await axe(page);
	const field = name => dialog(page).getByLabel(name);
	await field('Table').fill('missing');
	await field('Column of the date').fill('created');
	await field('Older than, in days').fill('30');
	await dialog(page).getByRole('button', {name: 'Make it'}).click();
	await dialog(page).locator('.field', {has: page.getByLabel('Table')}).locator('.fault').waitFor();
	assert.deepEqual(await archives(), []);
	await field('Table').fill('orders');
	await field('Kept for, in days').fill('3650');
	await dialog(page).getByRole('button', {name: 'Make it'}).click();
	const orders = row(page, 'postgres.orders');
	await orders.getByText('Active').waitFor();
	await orders.getByText('older than 30 days, by created').waitFor();
	const [{_id}] = await archives();
	const told = async () => Number(/rows=(\d+)/.exec((await server.ask('GET', `/api/svc/v2/groups/${groupId}/clusters/orders/onlineArchives/${_id}`,
		{headers: {authorization: `Bearer ${server.token}`}})).headers['x-steward-archived'])[1]);
	await until('rows have moved', async () => await told() > 9000);
	await until('the row tells how many', async () => (await orders.innerText()).includes(`${(await told()).toLocaleString('en')} rows`));
	await picture(page, 'archives', {themes: ['light', 'dark']});
	await orders.getByRole('button', {name: 'postgres.orders', exact: true}).click();
	await dialog(page).getByText('3650').waitFor();
	await axe(page);
	await page.keyboard.press('Escape');
	await button(page, 'New archive').click();
	await field('Table').fill('visits');
	await button(dialog(page), 'By a query').click();
	await field('Query').fill('{"status": "done"}');
	await field('They move').selectOption('WEEKLY');
	await dialog(page).getByLabel('Day', {exact: true}).selectOption({label: 'Wednesday'});
	await field('From, UTC').fill('01:00');
	await field('To, UTC').fill('04:30');
	await axe(page, {themes: ['light']});
	await dialog(page).getByRole('button', {name: 'Make it'}).click();
	const visits = row(page, 'postgres.visits');
	await visits.getByText('on Wednesdays, 01:00 to 04:30 UTC').waitFor();
	assert.deepEqual((await server.ask('GET', `/api/svc/v2/groups/${groupId}/clusters/orders/onlineArchives`, {headers: {authorization: `Bearer ${server.token}`, 'x-steward-whole': 'true'}})).body.results
		.find(a => a.collName === 'visits').schedule, {type: 'WEEKLY', dayOfWeek: 3, startHour: 1, startMinute: 0, endHour: 4, endMinute: 30});
	for (const [item, state] of [['Pause', 'Paused'], ['Resume', 'Active']]) {
		await orders.getByRole('button', {name: 'What to do with postgres.orders'}).click();
		await page.getByRole('menuitem', {name: item}).click();
		await orders.getByText(state, {exact: true}).waitFor();
	}
	await axe(page);
	assert.doesNotMatch(await page.locator('main').innerText(), /[A-Z]{2,}_[A-Z]|WEEKLY|DATE|undefined|NaN/, 'no text is a code');
	const [file] = await Promise.all([page.waitForEvent('download'), button(page, 'Log of the day').click()]);
	assert.deepEqual([file.suggestedFilename(), await file.failure()], ['orders-archives.jsonl.gz', null]);
	for (const table of ['postgres.visits', 'postgres.orders']) {
		await row(page, table).getByRole('button', {name: `What to do with ${table}`}).click();
		await page.getByRole('menuitem', {name: 'Delete archive'}).click();
		assert.ok(await dialog(page).getByRole('button', {name: 'Delete archive'}).isDisabled());
		await dialog(page).getByRole('textbox').fill(table);
		await dialog(page).getByRole('button', {name: 'Delete archive'}).click();
		await row(page, table).waitFor({state: 'detached'});
	}
	await nothing.waitFor();
});

/* With keys alone: where the focus is after what was done in a dialog. */
check(server, 'the focus comes back from a dialog, also when what opened it is gone', async ({page}) => {
	for (const n of [1, 2, 3])
		await server.api('POST', `/groups/${groupId}/accessList`, [{ipAddress: `198.51.100.${n}`}]);
	await signIn(page, `${project}/network?q=198.51.100`);
	const focused = () => page.evaluate(() => document.activeElement.closest('tr')?.innerText.match(/198\.51\.100\.\d/)?.[0] ?? document.activeElement.tagName);
	await row(page, '198.51.100.1').getByRole('button').focus();
	await page.keyboard.press('Enter');
	await dialog(page).waitFor();
	await page.keyboard.press('Escape');
	await dialog(page).waitFor({state: 'detached'});
	assert.equal(await focused(), '198.51.100.1', 'it is where it was');
	for (const [gone, next] of [[1, '198.51.100.2'], [3, '198.51.100.2'], [2, 'H1']]) {
		await row(page, `198.51.100.${gone}`).getByRole('button').focus();
		await page.keyboard.press('Enter');
		await dialog(page).getByRole('button', {name: 'Remove'}).focus();
		await page.keyboard.press('Enter');
		await row(page, `198.51.100.${gone}`).waitFor({state: 'detached'});
		await until(`the focus is at ${next}`, async () => await focused() === next, 5000);
	}
});

check(server, 'backups: what can be reached, a snapshot, a restore, the schedule', async ({page}) => {
	await have('orders', ORDERS);
	await have('ledger', LEDGER);
	await signIn(page, project);
	/* It once learned the window from the refusal of a restore to an impossible moment. */
	const changes = [];
	page.on('request', r => r.method() !== 'GET' && changes.push(`${r.method()} ${r.url()}`));
	await open(page, `${project}/backups?cluster=orders`);
	await page.getByText('Any second').waitFor();
	assert.deepEqual(changes, []);
	await button(page, 'Take a snapshot').first().click();
	await dialog(page).getByLabel('Description').fill(HOSTILE);
	await axe(page);
	await dialog(page).getByRole('button', {name: 'Take a snapshot'}).click();
	await row(page, HOSTILE).getByText('Completed').waitFor();
	await axe(page);
	await button(page, 'Restore').first().click();
	await dialog(page).getByLabel('Moment', {exact: true}).waitFor();
	await axe(page);
	await button(page, 'A snapshot').click();
	await dialog(page).getByLabel('Name of the new cluster').fill('copy');
	await dialog(page).getByRole('button', {name: 'Restore', exact: true}).click();
	await page.waitForURL(/clusters\/copy$/);
	await until('the restore is done', async () => (await server.api('GET', `/groups/${groupId}/clusters/orders/backup/restoreJobs`)).results.some(j =>
		j.targetClusterName === 'copy' && j.finishedAt && !j.failed));
	await open(page, `${project}/backups?cluster=orders&part=schedule`);
	await page.getByLabel('Keep for, Daily').fill('9');
	await axe(page);
	await button(page, 'Save schedule').click();
	await said(page, 'saved');
	const items = (await server.api('GET', `/groups/${groupId}/clusters/orders/backup/schedule`)).policies[0].policyItems;
	assert.equal(items.find(i => i.frequencyType === 'daily').retentionValue, 9);
	await open(page, `${project}/backups?cluster=ledger`);
	await button(page, 'Turn on backups').click();
	await page.getByText('What can be restored').waitFor();
	await harmless(page);
});

check(server, 'alerts: a rule, what it would have told of, turned off and back', async ({page}) => {
	await signIn(page, `${project}/alerts`);
	await page.getByText('All quiet').waitFor();
	await axe(page);
	await button(page, 'New rule').click();
	await dialog(page).getByLabel('When', {exact: true}).selectOption('CONNECTIONS_PERCENT');
	await dialog(page).getByLabel(/^Above/).fill('77');
	await dialog(page).getByLabel('How', {exact: true}).selectOption('EMAIL');
	await dialog(page).getByRole('button', {name: 'Create rule'}).click();
	await dialog(page).locator('.fault, .notice.bad').first().waitFor();
	await dialog(page).getByLabel('Mail address').fill('ops@example.org');
	await axe(page);
	await dialog(page).getByRole('button', {name: 'Create rule'}).click();
	await row(page, '> 77').waitFor();
	await row(page, '> 77').getByRole('button', {name: /^History/}).click();
	await dialog(page).getByText(/It would have told/).waitFor();
	await axe(page);
	await page.keyboard.press('Escape');
	await row(page, '> 77').getByRole('button', {name: /^More/}).click();
	await page.getByRole('menuitem', {name: 'Turn off'}).click();
	await row(page, '> 77').getByText('Off').waitFor();
	await page.locator('.toast').getByRole('button', {name: 'Undo'}).click();
	await row(page, '> 77').getByText('Enabled').waitFor();
	await open(page, `${project}/events`);
	await row(page, 'Alert config added').waitFor();
	assert.doesNotMatch(await page.locator('main').innerText(), /audit/i, 'that an event is kept says nothing of it');
});

check(server, 'people, teams and keys of an organization', async ({page}) => {
	await signIn(page, `${org}/people`);
	await button(page, 'Invite a person').first().click();
	await axe(page);
	await dialog(page).getByLabel('Mail address').fill('ada@example.org');
	await dialog(page).getByRole('button', {name: 'Invite', exact: true}).click();
	await dialog(page).getByRole('group', {name: 'Link of the invitation'}).waitFor();
	await page.keyboard.press('Escape');
	await row(page, 'ada@example.org').getByText('Invited').waitFor();
	await row(page, 'ada@example.org').getByRole('button', {name: /^ada/}).click();
	await dialog(page).getByLabel(/^Project creator/).check();
	await dialog(page).getByRole('button', {name: 'Save'}).click();
	await row(page, 'ada@example.org').getByText('Project creator').waitFor();
	await axe(page);

	await open(page, `${org}/teams`);
	await button(page, 'New team').first().click();
	await dialog(page).getByLabel('Name').fill('crew');
	await dialog(page).getByLabel(server.owner.username).check();
	await dialog(page).getByRole('button', {name: 'Create team'}).click();
	await row(page, 'crew').getByText(server.owner.username).waitFor();
	await axe(page);
	await row(page, 'crew').getByRole('button', {name: 'crew', exact: true}).click();
	await dialog(page).getByRole('button', {name: 'Add'}).click();
	await dialog(page).getByRole('cell', {name: 'ada@example.org', exact: true}).waitFor();
	await axe(page, {themes: ['light']});
	await page.keyboard.press('Escape');

	await open(page, `${org}/keys`);
	await button(page, 'New service account').first().click();
	await dialog(page).getByLabel('Name').fill('deployer');
	await axe(page);
	await dialog(page).getByRole('button', {name: 'Create'}).click();
	await button(page, 'Show').click();
	assert.match(await page.locator('[data-secret]').innerText(), /^mdb_sa_sk_/);
	await axe(page, {themes: ['light']});
	await button(page, 'I have kept it').click();
	await row(page, 'deployer').getByRole('button', {name: 'deployer', exact: true}).click();
	await dialog(page).getByLabel('Address or network').fill('192.0.2.0/24');
	await dialog(page).getByRole('button', {name: 'Add', exact: true}).click();
	await dialog(page).getByRole('cell', {name: '192.0.2.0/24', exact: true}).waitFor();
	await axe(page, {themes: ['light']});
	await page.keyboard.press('Escape');
	await page.getByRole('tab', {name: /API keys/}).click();
	await button(page, 'New API key').first().click();
	await dialog(page).getByLabel('Description').fill(HOSTILE);
	await dialog(page).getByRole('button', {name: 'Create'}).click();
	await dialog(page).getByText('Private key').waitFor();
	await button(page, 'I have kept it').click();
	await row(page, HOSTILE).waitFor();
	await open(page, `${org}/people`);
	await row(page, 'ada@example.org').getByRole('button', {name: /^More/}).click();
	await page.getByRole('menuitem', {name: 'Remove'}).click();
	await dialog(page).getByRole('button', {name: 'Remove'}).click();
	await row(page, 'ada@example.org').waitFor({state: 'detached'});
	await harmless(page);
});

check(server, 'policies: faults at their lines while one writes', async ({page}) => {
	await signIn(page, `${org}/policies/new`);
	await page.getByText('No fault found').waitFor();
	await page.getByLabel('Rule 1').fill('forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource)\nwhen { context.cluster.reigons.isEmpty() };');
	await page.locator('.faults').getByText(/Line 2, column \d+/).waitFor();
	await page.locator('.gutter .bad').waitFor();
	assert.ok(await button(page, 'Save policy').isDisabled());
	await axe(page);
	await picture(page, 'policy');
	await page.getByLabel('Rule 1').fill('forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource)\nwhen { context.cluster.regions.isEmpty() };');
	await page.getByText('No fault found').waitFor();
	await page.getByLabel('Name').fill('some region');
	await button(page, 'Save policy').click();
	await row(page, 'some region').waitFor();
	await axe(page);
	await row(page, 'some region').getByRole('button', {name: /^More/}).click();
	await page.getByRole('menuitem', {name: 'Delete policy'}).click();
	await dialog(page).getByRole('textbox').fill('some region');
	await dialog(page).getByRole('button', {name: 'Delete policy'}).click();
	await row(page, 'some region').waitFor({state: 'detached'});
});

check(server, 'projects, organizations, settings, usage and hosts', async ({page}) => {
	await signIn(page, `${org}/projects`);
	await button(page, 'New project').first().click();
	await dialog(page).getByLabel('Name').fill('Project0');
	await dialog(page).getByRole('button', {name: 'Create project'}).click();
	await dialog(page).locator('.fault').waitFor();
	await dialog(page).getByLabel('Name').fill('shop');
	await axe(page);
	await dialog(page).getByRole('button', {name: 'Create project'}).click();
	await page.waitForURL(/\/projects\/[0-9a-f]{24}$/);
	const own = new URL(page.url()).pathname;
	await page.getByText('No cluster yet').waitFor();
	for (const [at, shown] of [[`${own}/people`, 'Invite a person'], [`${own}/keys`, 'No service account yet'], [`${own}/events`, 'Project created'],
		[`${own}/settings`, 'Maintenance window'], [`${own}/alerts?tab=rules`, 'A node is down'],
		[`${org}/projects`, 'shop'], ['/console/orgs', 'Organization0'], [`${org}/invoices`, 'Invoices'], [`${org}/usage`, 'Usage'],
			[`${org}/events`, 'Activity'], [`${org}/settings`, 'Security'], ['/console/hosts', 'Hosts']]) {
		await open(page, at);
		await page.locator('main').getByText(shown).locator('visible=true').first().waitFor();
		await until('what is loaded is there', async () => !await page.getByText('Loading').count());
		await axe(page);
	}
	/* An organization that is made here wants an access list from the start. */
	await open(page, '/console/orgs');
	await button(page, 'New organization').first().click();
	await dialog(page).getByLabel('Name').fill('second');
	await dialog(page).getByRole('button', {name: 'Create organization'}).click();
	await page.waitForURL(/\/orgs\/[0-9a-f]{24}$/);
	await open(page, `${new URL(page.url()).pathname}/settings`);
	const list = page.getByLabel('The API needs an access list');
	await list.waitFor();
	assert.ok(await list.isChecked());
	await list.uncheck();
	await page.locator('.toast').getByRole('button', {name: 'Undo'}).waitFor();
	await page.reload();
	await list.waitFor();
	assert.ok(!await list.isChecked());
	await open(page, `${own}/settings`);
	const about = page.getByRole('form', {name: 'Project', exact: true});
	await about.getByLabel('Name').fill('  My first shop ');
	await about.getByRole('button', {name: 'Save'}).click();
	await said(page, 'Saved');
	assert.equal((await server.api('GET', own.replace('/console/projects', '/groups'))).name, 'My first shop', 'blanks that nobody sees are no fault');
	await page.getByRole('button', {name: 'Delete project'}).click();
	await dialog(page).getByRole('textbox').fill('My first shop');
	await dialog(page).getByRole('button', {name: 'Delete project'}).click();
	await page.waitForURL(/\/projects$/);
	await row(page, 'shop').waitFor({state: 'detached'});
});
