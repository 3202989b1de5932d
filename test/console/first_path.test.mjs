/* The first hours of somebody who has never seen it, on real PostgreSQL: the printed link, the first cluster, a row in a table by the SQL editor,
 * programs that connect, a snapshot and its restore, an alert, an invitation, what the invited reader sees, a phone. On the way no text is a
 * code, no button is refused, and axe finds nothing. */
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {promisify} from 'node:util';
import {after, test} from 'node:test';
import {start, check, newPage, until, axe, picture, LONG} from './harness.mjs';

const run = promisify(execFile);
const installed = existsSync('/usr/lib/postgresql') && readdirSync('/usr/lib/postgresql').length > 0;
const CODE = /\b(?:GROUP|ORG|CLUSTER|HOST|CPS|ALERT)_[A-Z_]+\b|\[\d+\]\.|\bundefined\b|\bNaN\b|\[object|\bnull\b|screens\.\w+\.|\w+AnyDatabase\b/;
const PASSWORD = 'correct horse battery';

if (!installed)
	test('the first path', {skip: 'PostgreSQL is not installed'}, () => {});
else {
	const server = await start({engine: 'postgres'});
	const work = mkdtempSync(path.join(tmpdir(), 'steward-first-path-'));
	after(async () => {
		await server.stop();
		rmSync(work, {recursive: true, force: true});
	});
	const dialog = page => page.getByRole('dialog');
	const button = (page, name) => page.getByRole('button', {name, exact: true});
	const row = (page, text) => page.locator('main tbody tr', {hasText: text}).first();
	const healthy = page => page.locator('.facts').getByText('Healthy').waitFor({timeout: 3 * LONG});
	/* Refusals of writes, of which there is none on the way; reads that a role may not make are told in words. */
	const watched = page => {
		const refused = [];
		page.on('response', a => a.request().method() !== 'GET' && a.status() >= 400 && !/session\/(proof|password)/.test(a.url()) && refused.push(`${a.status()} ${a.request().method()} ${a.url()}`));
		return refused;
	};
	const plain = async (page, where) => {
		let text = '';
		await until(`${where} has loaded`, async () => !/Loading/.test(text = await page.locator('main').innerText()));
		assert.doesNotMatch(text, CODE, `${where} shows a code: ${CODE.exec(text)?.[0]}`);
		await axe(page, {themes: ['light', 'dark']});
	};
	const sql = async (page, statement, {write} = {}) => {
		await button(page, write ? 'Read and write' : 'Read only').click();
		await page.getByLabel('Statement', {exact: true}).fill(statement);
		await button(page, 'Run').click();
	};
	let project = '';
	const at = tab => `${project}/clusters/orders${tab}`;

	check(server, 'from the first link to a row in a table', async ({page}) => {
		const refused = watched(page);
		await page.goto(new URL(server.bootstrap.consoleLink).pathname);
		await page.getByLabel('Password', {exact: true}).fill(PASSWORD);
		const again = page.getByLabel(/again|repeat/i);
		if (await again.count())
			await again.fill(PASSWORD);
		await page.locator('form button[type=submit]').click();
		await page.getByRole('heading', {name: 'Create your first cluster'}).waitFor();
		await plain(page, 'the first screen');
		await page.getByRole('link', {name: 'Create a cluster'}).click();
		await page.getByLabel('Name').fill('orders');
		await page.getByLabel('Nodes').selectOption('1');
		await page.getByLabel('Restore to any second').check();
		await plain(page, 'the form');
		await button(page, 'Create cluster').click();
		await page.waitForURL(/clusters\/orders$/);
		project = /^(.*\/projects\/[0-9a-f]{24})/.exec(new URL(page.url()).pathname)[1];
		await healthy(page);
		await page.getByLabel('Database user').fill('ada');
		await button(page, 'Make user and string').click();
		const code = page.getByRole('group', {name: 'Connection string'});
		await code.waitFor();
		await button(page, 'In a program').click();
		const env = {PATH: process.env.PATH, PGCONNECT_TIMEOUT: '20', PGPASSWORD: ''};
		const program = await code.evaluate(b => b.firstChild.textContent);
		env.PGPASSWORD = /PGPASSWORD='(\w+)'/.exec(program)[1];
		writeFileSync(path.join(work, 'hello.py'), program);
		assert.match((await run('/usr/bin/python3', [path.join(work, 'hello.py')], {env, timeout: LONG})).stdout, /^PostgreSQL \d+/);
		await button(page, 'Open the SQL editor').click();
		await page.waitForURL(/\/sql$/);
		await sql(page, "create table visit (id int, who text); insert into visit values (1, 'ada'), (2, '<b>bob</b>');\nselect * from visit order by id", {write: true});
		await page.getByRole('cell', {name: '<b>bob</b>'}).waitFor();
		await plain(page, 'the editor');
		await picture(page, 'sql', {themes: ['light', 'dark']});
		/* What may come next is offered, and taken with keys alone. */
		const box = page.getByLabel('Statement', {exact: true}), next = page.getByRole('listbox', {name: 'What may come next'});
		await box.fill('');
		await box.pressSequentially('select * from v');
		await next.getByRole('option', {name: 'visit'}).waitFor();
		await axe(page);
		const held = await next.boundingBox(), whole = await page.locator('.sql-box').boundingBox();
		assert.ok(held.x >= whole.x && held.y > whole.y && held.x + held.width <= whole.x + whole.width + 1, 'beside the caret');
		await box.press('Tab');
		assert.equal(await box.inputValue(), 'select * from visit');
		await box.pressSequentially(' where w');
		await next.getByRole('option', {name: 'who'}).waitFor();
		await box.press('ArrowDown');
		assert.equal(await next.locator('[aria-selected=true] span').innerText(), 'who');
		await box.press('Enter');
		await until('the column is taken', async () => await box.inputValue() === 'select * from visit where who');
		await box.pressSequentially(" = 'a");
		assert.equal(await next.count(), 0, 'nothing is offered within a text');
		await box.pressSequentially("da' or");
		await next.waitFor();
		await box.press('Escape');
		await next.waitFor({state: 'detached'});
		assert.equal(await box.inputValue(), "select * from visit where who = 'ada' or", 'Esc takes nothing');
		await box.press('Tab');
		assert.ok(await box.evaluate(b => document.activeElement !== b), 'Tab leads on');
		await sql(page, 'delete from visit');
		await page.getByText('Choose “Read and write” to change data.').waitFor();
		await sql(page, 'select count(*) as visits from visit');
		await page.getByRole('cell', {name: '2', exact: true}).waitFor();
		await sql(page, 'select\n  nothing\nfrom visit');
		await page.getByText('column "nothing" does not exist').waitFor();
		await page.getByText('Line 2.').waitFor();
		assert.deepEqual(refused, []);
	}, {timeout: 10 * LONG});

	const signedIn = async (page, to, username = server.bootstrap.username ?? 'owner@localhost') => {
		await page.goto('/console/sign-in');
		await page.getByLabel('Username').or(page.getByLabel(/Mail|User name|Username/)).first().fill(username);
		await page.getByLabel('Password', {exact: true}).fill(PASSWORD);
		await page.locator('form button[type=submit]').first().click();
		await page.waitForURL(/\/console\/$/);
		await page.goto(to);
		await page.locator('main h1').first().waitFor();
	};

	check(server, 'a snapshot and its restore, an alert, and an invitation', async ({page}) => {
		const refused = watched(page);
		await signedIn(page, at('/backups'));
		await button(page, 'Take a snapshot').first().click();
		await dialog(page).getByLabel('Description').fill('before lunch');
		await dialog(page).getByRole('button', {name: 'Take a snapshot'}).click();
		await row(page, 'before lunch').getByText('Completed').waitFor({timeout: 3 * LONG});
		await plain(page, 'backups');
		await row(page, 'before lunch').getByRole('button', {name: /^Restore/}).click();
		await dialog(page).getByLabel('Name of the new cluster').fill('copy');
		await dialog(page).getByRole('button', {name: 'Restore', exact: true}).click();
		await page.waitForURL(/clusters\/copy$/, {timeout: 3 * LONG});
		await healthy(page);
		await page.goto(`${project}/alerts`);
		await button(page, 'New rule').click();
		await dialog(page).getByLabel('When', {exact: true}).selectOption('CONNECTIONS_PERCENT');
		await dialog(page).getByLabel(/^Above/).fill('77');
		await dialog(page).getByRole('button', {name: 'Create rule'}).click();
		await row(page, '> 77').waitFor();
		await plain(page, 'alerts');
		await page.goto(`${project}/people`);
		await button(page, 'Invite a person').first().click();
		await dialog(page).getByLabel('Mail address').fill('rita@example.org');
		await dialog(page).getByRole('button', {name: 'Invite', exact: true}).click();
		const link = dialog(page).getByRole('group', {name: 'Link of the invitation'});
		await link.waitFor();
		server.invitation = new URL(await link.evaluate(b => b.firstChild.textContent)).pathname;
		await page.keyboard.press('Escape');
		await plain(page, 'people');
		assert.deepEqual(refused, []);
	}, {timeout: 15 * LONG});

	check(server, 'what the invited reader sees, on a phone', async ({page}) => {
		const refused = watched(page);
		await page.goto(server.invitation);
		await page.getByLabel('First name').fill('Rita');
		await page.getByLabel('Last name').fill('Reader');
		await page.getByLabel('Password', {exact: true}).fill(PASSWORD);
		await button(page, 'Accept').or(page.getByRole('button', {name: /^Accept/})).first().click();
		await page.waitForURL(/\/console\/(sign-in.*)?$/);
		if (/sign-in/.test(page.url()))
			await signedIn(page, '/console/', 'rita@example.org');
		await row(page, 'orders').waitFor();
		for (const to of ['', '/alerts', '/people', '/backups', '/network', '/database-access', '/events', '/settings', ...['', '/metrics', '/activity', '/queries', '/advice', '/search', '/archives', '/backups', '/logs', '/events', '/sql'].map(t => `/clusters/orders${t}`)]) {
			await page.goto(project + to);
			await page.locator('main h1').first().waitFor();
			await plain(page, `a reader's ${to || 'overview'}`);
			assert.equal(await page.locator('main .btn.go:visible, main .btn.red:visible, main .btn.kill:visible').filter({hasNotText: 'Run'}).count(), 0, `${to} offers a reader what would be refused`);
			assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${to} is wider than a phone`);
		}
		await picture(page, 'reader-phone', {themes: ['light', 'dark']});
		assert.deepEqual(refused, []);
	}, {timeout: 10 * LONG, viewport: {width: 390, height: 800}});
}
