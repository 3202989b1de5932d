/* The first day, on real PostgreSQL: from the link that the first start prints to SQL with the pasted string, then a snapshot, a restore
 * into a new cluster, another size and a rest. */
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {existsSync, readdirSync} from 'node:fs';
import {promisify} from 'node:util';
import {after, test} from 'node:test';
import {start, check, until, axe, picture, LONG} from './harness.mjs';

const run = promisify(execFile);
const installed = existsSync('/usr/lib/postgresql') && readdirSync('/usr/lib/postgresql').length > 0;

if (!installed)
	test('the first day', {skip: 'PostgreSQL is not installed'}, () => {});
else {
	const server = await start({engine: 'postgres'});
	after(() => server.stop());
	const state = (page, word) => page.locator('.facts').getByText(word).waitFor({timeout: 3 * LONG});
	const dialog = page => page.getByRole('dialog');
	const act = async (page, name) => {
		await page.getByRole('button', {name: 'More', exact: true}).click();
		await page.getByRole('menuitem', {name, exact: true}).click();
	};
	const HOSTILE = '<img src=x onerror=globalThis.hostile=1>', UGLY = `\u202e\u001b]0;x\u0007\u001b[31m<script>globalThis.hostile=2</script>${'W'.repeat(3000)}`;
	/* As somebody does who copies the line into a terminal. */
	const sql = async (line, statement) => {
		const {stdout} = await run('bash', ['-c', `${line} -X -A -t -v ON_ERROR_STOP=1 -c "$1"`, 'bash', statement],
			{timeout: LONG, env: {PATH: process.env.PATH, PGCONNECT_TIMEOUT: '20'}});
		return stdout.trim();
	};
	/* Makes a user in the connect panel and gives the line that it shows. */
	const connect = async (page, user) => {
		await page.getByLabel('Database user').fill(user);
		await page.getByRole('button', {name: 'Make user and string'}).click();
		const code = page.getByRole('group', {name: 'Connection string'});
		await code.waitFor();
		return code.evaluate(box => box.firstChild.textContent);
	};

	check(server, 'the first day', async ({page}) => {
		const link = new URL(server.bootstrap.consoleLink);
		assert.ok(!server.output.includes(link.pathname), 'only a terminal is shown the link');
		await page.goto(link.pathname);
		await page.getByLabel('Password', {exact: true}).fill('correct horse battery');
		const again = page.getByLabel(/again|repeat/i);
		if (await again.count())
			await again.fill('correct horse battery');
		await page.locator('form button[type=submit]').click();
		await page.waitForURL(/\/console\/$/);

		await page.getByRole('link', {name: 'Projects'}).first().click();
		await page.getByRole('button', {name: 'New project'}).first().click();
		await dialog(page).getByLabel('Name').fill('shop');
		await dialog(page).getByRole('button', {name: 'Create project'}).click();
		await page.getByText('No cluster yet').waitFor();
		await page.getByRole('link', {name: 'Create a cluster'}).first().click();
		await page.getByLabel('Name').fill('orders');
		await page.getByLabel('Nodes').selectOption('1');
		await page.getByLabel('Restore to any second').check();
		await page.getByRole('button', {name: 'Create cluster'}).click();
		await page.waitForURL(/clusters\/orders$/);
		await state(page, 'Healthy');
		assert.ok(await page.locator('main .tabs').evaluate(e => e.scrollHeight <= e.clientHeight), 'the tabs have no bar to scroll');

		const line = await connect(page, 'ada');
		assert.equal(await sql(line, "create table visit(who text); insert into visit values ('ada'); select current_user || ' ' || count(*) from visit"),
			'CREATE TABLE\nINSERT 0 1\nada 1');
		await picture(page, 'connect');
		await axe(page);

		/* What a database writes down is whatever somebody sends it. */
		await sql(line, `create table "${HOSTILE}" (a int, b int); create index "${HOSTILE}1" on "${HOSTILE}" (a); create index "${HOSTILE}2" on "${HOSTILE}" (a, b);
			select pg_sleep(0.6), '${HOSTILE}', '${UGLY}' from "${HOSTILE}" right join (select 1) x on true`);
		for (const [tab, shown] of [['queries?kind=slow', 'pg_sleep'], ['advice', 'Indexes that could go']]) {
			await until(`${tab} shows it`, async () => {
				await page.goto(`/console/projects/${/projects\/([0-9a-f]{24})/.exec(page.url())[1]}/clusters/orders/${tab}`);
				const row = page.locator('main tr', {hasText: HOSTILE});
				await row.or(page.locator('main').locator('.none, .notice')).first().waitFor();
				return await row.count() && await page.locator('main').getByText(shown).count();
			});
			if (tab !== 'advice') {
				await page.locator('main tr', {hasText: 'pg_sleep'}).getByRole('button').first().click();
				await dialog(page).getByText(HOSTILE).first().waitFor();
			}
			assert.deepEqual(await page.evaluate(() => [globalThis.hostile, document.querySelectorAll('img, script:not([src])').length, document.documentElement.scrollWidth > innerWidth]),
				[undefined, 0, false], tab);
		}
		await page.goto(page.url().replace(/\/advice$/, ''));
		await state(page, 'Healthy');

		await page.getByRole('link', {name: 'Backups'}).last().click();
		await page.getByRole('button', {name: 'Take a snapshot'}).first().click();
		await dialog(page).getByLabel('Description').fill('before lunch');
		await dialog(page).getByRole('button', {name: 'Take a snapshot'}).click();
		await page.locator('main tbody tr', {hasText: 'before lunch'}).getByText('Completed').waitFor({timeout: 3 * LONG});
		await page.getByText('Any second').waitFor();
		await picture(page, 'backups');
		assert.equal(await sql(line, 'drop table visit'), 'DROP TABLE');
		await page.locator('main tbody tr', {hasText: 'before lunch'}).getByRole('button', {name: /^Restore/}).click();
		await dialog(page).getByLabel('Name of the new cluster').fill('copy');
		await dialog(page).getByRole('button', {name: 'Restore', exact: true}).click();
		await page.waitForURL(/clusters\/copy$/, {timeout: 3 * LONG});
		const groupId = /projects\/([0-9a-f]{24})/.exec(page.url())[1];
		await until('the restore is done', async () => (await server.api('GET', `/groups/${groupId}/clusters/orders/backup/restoreJobs`)).results.some(j =>
			j.finishedAt && !j.failed), 3 * LONG);
		await state(page, 'Healthy');
		const copy = await connect(page, 'bob');
		assert.equal(await sql(copy, 'select who from visit'), 'ada');

		await page.getByRole('button', {name: 'Scale', exact: true}).click();
		await dialog(page).getByLabel('Size').selectOption('M20');
		await dialog(page).getByRole('button', {name: 'Scale'}).click();
		await page.locator('.facts').getByText('M20').waitFor();
		await state(page, 'Healthy');
		await act(page, 'Pause');
		await dialog(page).getByRole('button', {name: 'Pause'}).click();
		await state(page, 'Paused');
		await act(page, 'Resume');
		await dialog(page).getByRole('button', {name: 'Resume'}).click();
		await state(page, 'Healthy');
		assert.equal(await sql(copy, 'select who from visit'), 'ada');
		await act(page, 'Delete');
		await dialog(page).getByRole('textbox').fill('copy');
		await dialog(page).getByRole('button', {name: 'Delete cluster'}).click();
		await page.getByText('copy is deleted.').waitFor({timeout: 3 * LONG});
	}, {timeout: 15 * LONG});
}
