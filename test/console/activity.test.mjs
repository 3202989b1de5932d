/* What sessions of a real cluster do, who waits for whom, and how vacuum keeps up, held against what psql sees. */
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {existsSync, readdirSync} from 'node:fs';
import {after, test} from 'node:test';
import {start, check, signIn, axe, until, picture, LONG} from './harness.mjs';

const installed = existsSync('/usr/lib/postgresql') && readdirSync('/usr/lib/postgresql').length > 0;
const PASSWORD = 'sixteen letters or so';

if (!installed)
	test('what sessions do', {skip: 'PostgreSQL is not installed'}, () => {});
else {
	const server = await start({engine: 'postgres'});
	after(() => server.stop());
	const {groupId} = server, place = `/console/projects/${groupId}/clusters/shop/activity`, sessions = [];
	after(() => sessions.forEach(one => one.kill()));
	let url;
	/* A session that waits for what it is told next. */
	const session = name => {
		const one = spawn('psql', ['-XAtq', '-d', url], {env: {PATH: process.env.PATH, PGAPPNAME: name}, stdio: ['pipe', 'ignore', 'ignore']});
		sessions.push(one);
		return {say: text => one.stdin.write(`${text}\n`)};
	};
	const sql = statement => execFileSync('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', statement], {env: {PATH: process.env.PATH}, encoding: 'utf8', timeout: LONG}).trim();
	const plain = async page => assert.doesNotMatch(await page.locator('main').innerText(), /[A-Z]{2,}_[A-Z]|undefined|NaN/, 'no text is a code');

	test('prepared', {timeout: 5 * LONG}, async () => {
		await server.api('POST', `/groups/${groupId}/clusters`, {name: 'shop', clusterType: 'REPLICASET', replicationSpecs: [{regionConfigs: [{providerName: 'AWS', regionName: 'US_EAST_1',
			priority: 7, electableSpecs: {instanceSize: 'M10', nodeCount: 1}}]}]});
		await until('the cluster', async () => (await server.api('GET', `/groups/${groupId}/clusters/shop`)).stateName === 'IDLE', 3 * LONG);
		await server.api('POST', `/groups/${groupId}/databaseUsers`, {databaseName: 'admin', username: 'ada', password: PASSWORD, roles: [{roleName: 'readWriteAnyDatabase', databaseName: 'admin'}]});
		await server.api('POST', `/groups/${groupId}/accessList`, [{ipAddress: '127.0.0.1'}]);
		const {connectionStrings: {standard}} = await server.api('GET', `/groups/${groupId}/clusters/shop`);
		url = standard.replace('://', `://ada:${encodeURIComponent(PASSWORD)}@`);
		await until('a table', () => {
			try {
				sql('create table if not exists stock(id int primary key, n int); insert into stock select i, 0 from generate_series(1, 500) i on conflict do nothing; update stock set n = n + 1');
				return true;
			} catch {
				return false;
			}
		});
	});

	check(server, 'who waits for whom', async ({page}) => {
		const holder = session('till'), waiter = session('cart');
		holder.say('begin; update stock set n = 7 where id = 1;');
		await until('the lock', () => sql("select count(*) from pg_stat_activity where application_name = 'till' and state = 'idle in transaction'") === '1');
		waiter.say('update stock set n = 8 where id = 1;');
		await signIn(page, place);
		const tree = page.locator('.plan'), table = page.getByRole('table', {name: 'Sessions now'});
		await tree.getByText('update stock set n = 8 where id = 1').waitFor();
		const pids = Object.fromEntries(sql("select application_name || '=' || pid from pg_stat_activity where application_name in ('till', 'cart')").split('\n').map(l => l.split('=')));
		assert.match((await tree.locator('> li > b').innerText()), new RegExp(`ada, process ${pids.till}$`));
		assert.match((await tree.locator('ul > li > b').innerText()), new RegExp(`ada, process ${pids.cart}$`));
		await table.getByText(`waits for ${pids.till}`).waitFor();
		await table.getByText('In a transaction, without a statement').waitFor();
		await until('it is remembered', () => page.getByRole('table', {name: 'Who waited for whom'}).getByText(`process ${pids.cart}`).isVisible());
		await plain(page);
		await axe(page);
		await picture(page, 'activity', {themes: ['light', 'dark']});
		/* The statement alone: its session stays, and can run it once more. */
		await tree.getByRole('button', {name: `Cancel statement of ada, process ${pids.cart}`}).click();
		const cancelled = page.getByRole('dialog', {name: `Cancel the statement of ada, process ${pids.cart}?`});
		await cancelled.getByText('update stock set n = 8 where id = 1').waitFor();
		await axe(page);
		await cancelled.getByRole('button', {name: 'Cancel statement', exact: true}).click();
		await page.locator('.toast', {hasText: 'The statement of ada is cancelled'}).waitFor();
		await tree.waitFor({state: 'detached'});
		assert.equal(sql(`select state from pg_stat_activity where pid = ${pids.cart}`), 'idle');
		assert.equal((await server.api('GET', `/groups/${groupId}/events?eventType=ATTEMPT_KILLOP_AUDIT`)).results.length, 1);
		waiter.say('update stock set n = 8 where id = 1;');
		await tree.getByText('update stock set n = 8 where id = 1').waitFor();
		assert.equal(await tree.getByRole('button', {name: `Cancel statement of ada, process ${pids.till}`}).count(), 0, 'a session without a statement has none to cancel');
		await table.getByRole('row', {name: /n = 8/}).getByRole('button').click();
		await page.getByRole('dialog').getByRole('button', {name: 'Cancel statement', exact: true}).waitFor();
		await page.getByRole('dialog').getByRole('button', {name: 'End session', exact: true}).click();
		const asked = page.getByRole('dialog', {name: `End the session of ada, process ${pids.cart}?`});
		await asked.getByText('update stock set n = 8 where id = 1').waitFor();
		await axe(page);
		await asked.getByRole('button', {name: 'Keep it', exact: true}).click();
		assert.equal(sql(`select count(*) from pg_stat_activity where pid = ${pids.cart}`), '1', 'who keeps it changes nothing');
		await tree.getByRole('button', {name: `End session of ada, process ${pids.cart}`}).click();
		await asked.getByRole('button', {name: 'End session', exact: true}).click();
		await page.locator('.toast', {hasText: 'The session of ada is ended'}).waitFor();
		await tree.waitFor({state: 'detached'});
		await until('it has ended', () => sql(`select count(*) from pg_stat_activity where pid = ${pids.cart}`) === '0');
		const told = (await server.api('GET', `/groups/${groupId}/events?includeRaw=true&eventType=ATTEMPT_KILLSESSION_AUDIT`)).results;
		assert.deepEqual(told.map(e => e.username), [server.owner.username]);
		assert.match(told[0].raw.description, new RegExp(`clusterName: shop; pid: ${pids.cart}; user: ada; database: postgres; application: cart`));
		/* Somebody without the role for it is told what else there is. */
		await page.route('**/data/operations.json', async r => {
			const rows = (await server.ask('GET', new URL(r.request().url()).pathname)).body;
			Object.values(rows).flat().find(([id]) => id === 'updateClusterQueryShape')[3] = ['GROUP_NOBODY'];
			r.fulfill({json: rows});
		});
		await page.reload();
		await table.getByRole('row', {name: /n = 7/}).getByRole('button').click();
		await page.getByRole('dialog').getByText(`select pg_terminate_backend(${pids.till});`).waitFor();
		assert.equal(await page.getByRole('button', {name: /^End/}).count(), 0);
		await page.keyboard.press('Escape');
		holder.say('rollback;');
		await table.getByText('In a transaction, without a statement').waitFor({state: 'detached'});
	});

	check(server, 'how vacuum keeps up', async ({page}) => {
		await signIn(page, `${place}?view=vacuum`);
		const ids = page.getByRole('table', {name: 'Transaction ids'}), tables = page.getByRole('table', {name: 'Tables with most dead rows'});
		await ids.getByRole('row', {name: /postgres/}).waitFor();
		const shown = Number((await ids.getByRole('row', {name: /postgres/}).getByRole('cell').nth(1).innerText()).replace(/,/g, ''));
		const counted = Number(sql("select age(datfrozenxid) from pg_database where datname = 'postgres'"));
		assert.ok(shown <= counted && counted - shown < 1000, `${shown} is shown, ${counted} are counted`);
		await tables.getByRole('row', {name: /postgres\.stock/}).waitFor();
		await plain(page);
		await axe(page);
		await picture(page, 'vacuum', {themes: ['light', 'dark']});
	});

	check(server, 'a rule for ids that run out is made in words', async ({page}) => {
		await signIn(page, `/console/projects/${groupId}/alerts?tab=rules`);
		await page.getByText('Transaction ids used, in percent > 50').waitFor();
		await plain(page);
		await page.getByRole('button', {name: 'New rule', exact: true}).click();
		await page.getByRole('dialog').getByLabel('When', {exact: true}).selectOption({label: 'Transaction ids used, in percent'});
		await page.getByRole('dialog').getByLabel(/^Above/).fill('31');
		await page.getByRole('dialog').getByLabel('How', {exact: true}).selectOption({label: 'Owners of the project, by mail'});
		await page.getByRole('dialog').getByRole('button', {name: 'Create rule'}).click();
		await page.getByText('Transaction ids used, in percent > 31').waitFor();
		const rules = (await server.api('GET', `/groups/${groupId}/alertConfigs`)).results;
		assert.ok(rules.some(r => r.metricThreshold?.metricName === 'GLOBAL_LOCK_PERCENTAGE' && r.metricThreshold.threshold === 31));
	});

	check(server, 'shapes of a period', async ({page}) => {
		sql('select count(*) from stock where n > 3');
		await signIn(page, `/console/projects/${groupId}/clusters/shop/queries`);
		await page.locator('main tbody tr', {hasText: 'from stock where n >'}).first().waitFor();
		const asked = page.waitForRequest(r => /\/summaries\?since=\d+/.test(r.url()));
		await page.getByRole('button', {name: 'Hour', exact: true}).click();
		const since = Number(/since=(\d+)/.exec((await asked).url())[1]);
		assert.ok(Math.abs(Date.now() - 3600e3 - since) < LONG);
		await page.locator('main tbody tr', {hasText: 'from stock where n >'}).first().waitFor();
		const whole = page.waitForRequest(r => r.url().endsWith('/summaries'));
		await page.getByRole('button', {name: 'Since the start', exact: true}).click();
		await whole;
		await axe(page);
		await picture(page, 'shapes');
	});
}
