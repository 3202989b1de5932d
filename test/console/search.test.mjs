/* The search screen on real PostgreSQL: an index is made, watched, tried, changed and deleted; refusals stand at the definition. */
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
			const a = await sql(page, "create table if not exists articles(title text, body text); delete from articles; insert into articles values ('amber \\ road', 'it''s red'), ('cedar', 'green')");
			return a.status === 200 && !a.body.error;
		});
		await page.close();
	});

	check(server, 'an index is made, watched, tried, changed and deleted', async ({page}) => {
		await signIn(page, place);
		await page.getByText('No search index yet').waitFor();
		await axe(page);
		await button(page, 'New search index').click();
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
}
