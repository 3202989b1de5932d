/* The search screen on real PostgreSQL: an index of words, and one of vectors, is made, watched, tried, changed and
 * deleted; refusals stand at the field. */
import assert from 'node:assert/strict';
import {existsSync, readdirSync} from 'node:fs';
import {after, test} from 'node:test';
import {start, check, newPage, signIn, axe, until, picture, LONG} from './harness.mjs';

const installed = existsSync('/usr/lib/postgresql') && readdirSync('/usr/lib/postgresql').length > 0;
const PASSWORD = 'sixteen letters or so';

if (!installed)
	test('the search screen', {skip: 'PostgreSQL is not installed'}, () => {});
else {
	const server = await start({engine: 'postgres'});
	after(() => server.stop());
	const {groupId} = server, place = `/console/projects/${groupId}/clusters/shop/search`;
	const indexes = () => server.api('GET', `/groups/${groupId}/clusters/shop/search/indexes`);
	const dialog = page => page.getByRole('dialog');
	const button = (page, name) => page.getByRole('button', {name, exact: true});
	const sql = (page, statement) => page.evaluate(async body => {
		const answer = await fetch('/api/session/sql', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});
		return {status: answer.status, body: await answer.json().catch(() => null)};
	}, {groupId, clusterName: 'shop', username: 'ada', password: PASSWORD, database: 'postgres', statement, write: true});

	test('prepared', {timeout: 5 * LONG}, async () => {
		await server.api('POST', `/groups/${groupId}/clusters`, {name: 'shop', clusterType: 'REPLICASET', replicationSpecs: [{regionConfigs: [{providerName: 'AWS', regionName: 'US_EAST_1',
			priority: 7, electableSpecs: {instanceSize: 'M10', nodeCount: 1}}]}]});
		await until('the cluster', async () => (await server.api('GET', `/groups/${groupId}/clusters/shop`)).stateName === 'IDLE', 3 * LONG);
		await server.api('POST', `/groups/${groupId}/databaseUsers`, {groupId, databaseName: 'admin', username: 'ada', password: PASSWORD, roles: [{roleName: 'readWriteAnyDatabase', databaseName: 'admin'}]});
		await server.api('POST', `/groups/${groupId}/accessList`, [{ipAddress: '127.0.0.1'}]);
		const page = await newPage(server);
		await signIn(page);
		await until('the tables', async () => {
			const a = await sql(page, "create table if not exists articles(title text, body text); delete from articles; insert into articles values ('amber \\ road', 'it''s red'), ('cedar', 'green'); create table if not exists pictures(id int, tag text, seen real[]); delete from pictures; insert into pictures select n, case when n % 2 = 0 then 'even' else 'odd' end, array[n, 1, 0]::real[] from generate_series(1, 40) n");
			return a.status === 200 && !a.body.error;
		});
		await page.close();
	});

	check(server, 'an index is made, watched, tried, changed and deleted', async ({page}) => {
		await signIn(page, place);
		const nothing = page.locator('.none', {hasText: 'No search index yet'});
		await nothing.waitFor();
		await axe(page);
		await nothing.getByRole('button', {name: 'New search index'}).click();
		await dialog(page).getByLabel('Name', {exact: true}).fill('main');
		await dialog(page).getByLabel('Table').fill('articles');
		const definition = dialog(page).getByLabel('Definition');
		await definition.fill('{"mappings": ');
		await button(dialog(page), 'Make it').click();
		await dialog(page).getByText(/This is no JSON/).first().waitFor();
		await definition.fill('{"mappings": {"fields": {"nothing": {"type": "string"}}}}');
		await button(dialog(page), 'Make it').click();
		await dialog(page).getByText(/nothing/).last().waitFor();
		await axe(page);
		assert.equal((await indexes()).length, 0);
		await definition.fill('{"mappings": {"fields": {"title": {"type": "string"}}}}');
		await button(dialog(page), 'Make it').click();
		const row = page.getByRole('row', {name: /main/});
		await row.getByText('Ready').waitFor({timeout: 3 * LONG});
		await page.getByLabel('Database user').fill('ada');
		await page.getByLabel('Password').fill(PASSWORD);
		await page.getByLabel('Words').fill("o'amber \\ AMBER");
		await button(page, 'Search').click();
		await page.getByText('amber \\\\ road').waitFor();
		await page.getByText('One row').waitFor();
		await picture(page, 'search');
		await axe(page);
		await page.getByLabel('Words').fill('{"text": {"query": "red", "path": "body"}}');
		await button(page, 'Search').click();
		await page.getByText(/the index has no field "body"/).waitFor();
		await row.getByRole('button', {name: 'What to do with main'}).click();
		await page.getByRole('menuitem', {name: 'Change'}).click();
		assert.deepEqual(JSON.parse(await definition.inputValue()).mappings, {fields: {title: {type: 'string'}}});
		await definition.fill('{"mappings": {"fields": {"body": {"type": "string"}}}}');
		await button(dialog(page), 'Change').click();
		await until('the new definition', async () => (await indexes())[0].statusDetail[0].mainIndex.definitionVersion.version === 1, 3 * LONG);
		await until('it is found', async () => {
			await button(page, 'Search').click();
			await page.getByText(/^Took/).waitFor();
			return page.getByText(/it's red/).isVisible();
		});
		await row.getByRole('button', {name: 'What to do with main'}).click();
		await page.getByRole('menuitem', {name: 'Delete'}).click();
		await button(dialog(page), 'Delete').click();
		await page.getByText('No search index yet').waitFor({timeout: 3 * LONG});
	});

	/* Of numbers: cosine and Euclidean distance put the same row first, and others next. */
	check(server, 'an index of vectors is made, tried, changed and deleted', async ({page}) => {
		const first = () => page.locator('.sql-rows tbody tr td:nth-child(2)').first();
		const find = async shown => {
			await button(page, 'Search').click();
			await first().getByText(shown).waitFor();
		};
		await signIn(page, place);
		await button(page, 'New search index').click();
		await button(dialog(page), 'Nearest vectors').click();
		await dialog(page).getByLabel('Name', {exact: true}).fill('meaning');
		await dialog(page).getByLabel('Table').fill('pictures');
		const column = page.getByLabel('Column of the vectors'), filters = page.getByLabel(/^Columns to filter by/);
		await column.fill('nothing');
		assert.ok(await button(dialog(page), 'Make it').isDisabled(), 'how many numbers a vector has must be said');
		await dialog(page).getByLabel('Dimensions').fill('3');
		await filters.fill('tag, nowhere');
		await button(dialog(page), 'Make it').click();
		await dialog(page).locator('.field', {has: column}).locator('.fault').waitFor();
		await axe(page);
		await column.fill('seen');
		await button(dialog(page), 'Make it').click();
		await dialog(page).locator('.field', {has: filters}).locator('.fault').waitFor();
		assert.equal((await indexes()).length, 0);
		await filters.fill('tag');
		await button(dialog(page), 'Make it').click();
		const row = page.getByRole('row', {name: /meaning/});
		await row.getByText('Ready').waitFor({timeout: 3 * LONG});
		await row.getByText('Nearest vectors').waitFor();
		await page.getByLabel('Database user').fill('ada');
		await page.getByLabel('Password').fill(PASSWORD);
		await find(/"id": ?1,/); // the vector of the first row is there to begin with
		assert.doesNotMatch(await page.locator('.sql-rows').innerText(), /"seen"/, 'the vectors themselves are not shown');
		await page.getByLabel('Vector', {exact: true}).fill('[7, 1, 0]');
		await find(/"id": ?7,/);
		await page.getByLabel(/^Filter/).fill('{"tag": "even"}');
		await find(/"id": ?8,/); // the angle to 8 is less than that to 6
		await picture(page, 'search-vectors');
		await axe(page);
		await page.getByLabel(/^Filter/).fill('{"tag": ');
		await button(page, 'Search').click();
		await page.getByText(/This is no JSON/).waitFor();
		await page.getByLabel(/^Filter/).fill('');
		await page.getByLabel('Vector', {exact: true}).fill('seven');
		await button(page, 'Search').click();
		await page.locator('.fault', {hasText: 'Write numbers with commas'}).waitFor();
		await page.getByLabel('Vector', {exact: true}).fill('1, 2');
		await button(page, 'Search').click();
		await page.getByText(/must have 3 numbers/).waitFor();
		assert.doesNotMatch(await page.locator('main').innerText(), /vectorSearch|dotProduct|[A-Z]+_[A-Z]/, 'no text is a code');
		await row.getByRole('button', {name: 'What to do with meaning'}).click();
		await page.getByRole('menuitem', {name: 'Change'}).click();
		assert.equal(await column.inputValue(), 'seen');
		assert.equal(await filters.inputValue(), 'tag');
		await dialog(page).getByLabel('Near by').selectOption({label: 'Euclidean distance'});
		await button(dialog(page), 'Change').click();
		await until('the new definition', async () => (await indexes())[0].statusDetail[0].mainIndex?.definitionVersion.version === 1, 3 * LONG);
		await page.getByLabel('Vector', {exact: true}).fill('9, 1, 0');
		await until('it is found by distance', async () => {
			await button(page, 'Search').click();
			await page.getByText(/^Took/).waitFor();
			return (await page.locator('.sql-rows tbody tr td').first().innerText()) === '1.0000' && /"id": ?9,/.test(await first().innerText());
		});
		await row.getByRole('button', {name: 'What to do with meaning'}).click();
		await page.getByRole('menuitem', {name: 'Delete'}).click();
		await button(dialog(page), 'Delete').click();
		await page.getByText('No search index yet').waitFor({timeout: 3 * LONG});
	});
}
