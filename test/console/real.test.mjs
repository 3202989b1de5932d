/* What the screens do to databases, on one real cluster from its making to its invoice: each job is done in the browser, and its effect
 * is looked for outside of it, with psql and the API. first_day.test.mjs has a restore into a new cluster and another size too. */
import assert from 'node:assert/strict';
import {execFile, execFileSync, spawn} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, test} from 'node:test';
import {promisify} from 'node:util';
import {gunzipSync} from 'node:zlib';
import {start, check, signIn, until, LONG, ROOT} from './harness.mjs';

const run = promisify(execFile);
const PROGRAMS = '/usr/lib/postgresql', NAME = 'orders';
const SLOW = 3 * LONG; // for what servers do
const has = file => existsSync(path.join(PROGRAMS, file));
const versions = existsSync(PROGRAMS) ? readdirSync(PROGRAMS).filter(v => /^\d+$/.test(v) && has(`${v}/bin/postgres`)).map(Number).sort((a, b) => a - b) : [];

/* Where one version is installed it stands for the next one too, as the service sees it: pg_upgrade takes it for a newer one. */
function twoVersions(folder) {
	const [from] = versions, to = from + 1;
	const mounts = `mount -t tmpfs none "$0" && mkdir "$0/${from}" && mount --bind ${PROGRAMS}/${from} "$0/${from}" && ln -s ${from} "$0/${to}" && mount --rbind "$0" ${PROGRAMS}`;
	mkdirSync(folder);
	try {
		execFileSync('unshare', ['-m', 'sh', '-c', mounts, folder], {stdio: 'ignore'});
	} catch {
		return {from, to: null}; // we may not
	}
	return {from, to, within: ['unshare', '-m', 'sh', '-c', `${mounts} && exec "$@"`, folder]};
}

/* With the database that a connection string names, as a user of it: {ok, text}. */
async function psql(url, statement) {
	try {
		const {stdout} = await run('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', statement], {timeout: LONG, env: {PATH: process.env.PATH, PGCONNECT_TIMEOUT: '20'}});
		return {ok: true, text: stdout.trim()};
	} catch (e) {
		return {ok: false, text: `${e.stderr}${e.stdout}`};
	}
}

const sessions = [];
after(() => sessions.forEach(one => one.kill()));

/* A session that lasts, at rest or with a statement; ended() once the server has ended it. */
function session(url, statement) {
	const one = spawn('psql', ['-XAtq', '-d', url, ...statement ? ['-c', statement] : []], {env: {PATH: process.env.PATH}, stdio: ['pipe', 'ignore', 'ignore']});
	let over = false;
	one.on('exit', () => { over = true; });
	sessions.push(one);
	return {ended: () => over};
}

if (!versions.length)
	test('real clusters', {skip: 'PostgreSQL is not installed'}, () => {});
else {
	const scratch = mkdtempSync(path.join(tmpdir(), 'steward-console-real-')), prices = path.join(scratch, 'prices.json');
	after(() => rmSync(scratch, {recursive: true, force: true}));
	const {from, to, within} = versions.length > 1 ? {from: versions.at(-2), to: versions.at(-1)} : twoVersions(path.join(scratch, 'versions'));
	/* A second of a node costs 1. */
	writeFileSync(prices, JSON.stringify({currency: 'EUR', taxPercent: '0',
		skus: [{id: 'AWS_INSTANCE_M10', description: 'Node', service: 'Clusters', provider: 'AWS', unit: 'hours', prices: [{price: '3600'}]}]}));
	const server = await start({engine: 'postgres', args: ['--price-book', prices], within});
	after(() => server.stop());
	const began = Date.now();
	const {groupId, orgId} = server, project = `/console/projects/${groupId}`, org = `/console/orgs/${orgId}`;
	const api = `/groups/${groupId}/clusters/${NAME}`, screen = `${project}/clusters/${NAME}`;
	const counts = existsSync(path.join(path.dirname(path.resolve(process.env.STEWARD_BIN ?? path.join(ROOT, 'build/fast/steward'))), 'src/module/steward.so'));
	const advises = has(`${from}/lib/pg_qualstats.so`) && has(`${from}/lib/hypopg.so`);
	let url; // of the user that the connect panel has made

	const button = (page, name) => page.getByRole('button', {name, exact: true});
	const dialog = page => page.getByRole('dialog');
	const confirm = (page, name) => dialog(page).getByRole('button', {name, exact: true}).click();
	const row = (page, text) => page.locator('main tbody tr', {hasText: text}).first();
	const state = (page, word) => page.locator('.facts').getByText(word).waitFor({timeout: SLOW});
	const act = async (page, name) => {
		await button(page, 'More').click();
		await page.getByRole('menuitem', {name, exact: true}).click();
	};
	async function open(page, at) {
		await page.evaluate(to => {
			history.pushState({key: 1e9}, '', to);
			dispatchEvent(new PopStateEvent('popstate', {state: history.state}));
		}, at);
		await page.locator('main h1').first().waitFor();
	}
	const download = async (page, locator) => {
		const [file] = await Promise.all([page.waitForEvent('download'), locator.click()]);
		return readFileSync(await file.path());
	};
	const sql = async (statement, at = url) => {
		const {ok, text} = await psql(at, statement);
		assert.ok(ok, text);
		return text;
	};
	const works = (statement, at = url) => until(`that "${statement}" works`, async () => (await psql(at, statement)).ok, SLOW);
	const refuses = (statement, why, at = url) => until(`that "${statement}" is refused`, async () => {
		const {ok, text} = await psql(at, statement);
		return !ok && why.test(text) && text;
	}, SLOW);
	/* What the API tells, once it is so. Looking for it again and again takes nothing from the buckets. */
	const told = (what, where, look) => until(what, async () => {
		await server.control('buckets/reset');
		const answer = await server.api('GET', where).catch(e => {
			assert.match(e.message, /: (409|503) /); // busy
			return null;
		});
		return answer && look(answer);
	}, SLOW);
	const idle = () => told('the end of a change', api, c => c.stateName === 'IDLE');
	const as = (user, password) => url.replace(/\/\/[^@]*@/, `//${user}:${password}@`);
	/* The password that is shown once. */
	const kept = async page => {
		await button(page, 'Show').click();
		const text = await page.locator('[data-secret]').innerText();
		await button(page, 'I have kept it').click();
		return text;
	};
	const job = (name, work, on = server) => check(on, name, work, {timeout: 15 * LONG, timezoneId: 'UTC'});

	job('a cluster is made where the policy lets it, and the pasted line reaches it', async ({page}) => {
		await server.api('POST', `/orgs/${orgId}/resourcePolicies`, {name: 'not in Ireland',
			policies: [{body: 'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource) when { context.cluster.regions.contains(ResourcePolicy::Region::"aws:eu-west-1") };'}]});
		await signIn(page, `${project}/create`);
		await page.getByRole('option', {name: 'EU_WEST_1'}).waitFor({state: 'attached'});
		await page.getByLabel('Name').fill(NAME);
		await page.getByLabel('Region').selectOption('EU_WEST_1');
		await page.getByLabel('Nodes').selectOption('1');
		await page.getByLabel('PostgreSQL').selectOption(String(from));
		await page.getByLabel('Restore to any second').check();
		await button(page, 'Create cluster').click();
		await page.locator('.field', {has: page.getByLabel('Region')}).locator('.fault', {hasText: 'not in Ireland'}).waitFor();
		assert.equal((await server.api('GET', `/groups/${groupId}/clusters`)).totalCount, 0);
		await page.getByLabel('Region').selectOption('US_EAST_1');
		await button(page, 'Create cluster').click();
		await page.waitForURL(/clusters\/orders$/);
		await state(page, 'Healthy');
		await page.getByRole('cell', {name: 'Primary'}).waitFor();
		await page.getByLabel('Database user').fill('ada');
		await button(page, 'Make user and string').click();
		const line = await page.getByRole('group', {name: 'Connection string'}).evaluate(box => box.firstChild.textContent);
		const {stdout} = await run('bash', ['-c', `${line} -XAt -c "$1"`, 'bash', 'show server_version'], {timeout: LONG, env: {PATH: process.env.PATH}});
		assert.match(stdout, new RegExp(`^${from}\\.`));
		url = /'(.*)'/.exec(line)[1];
		/* What the other jobs look at. */
		await sql(`create table visit(id int primary key, customer int not null, note text); create table other(id int);
			insert into visit select n, n % 5000, repeat('x', 40) from generate_series(1, 50000) n; analyze visit`);
		await sql(Array.from({length: 60}, (_, n) => `select sum(length(note)) from visit where customer = ${n}`).join(';'));
		await sql('select count(*), pg_sleep(0.5) from visit where id < 10');
		await sql("do $$ begin raise log 'a line for the console'; end $$");
	});

	job('what a cluster tells: queries, advice, logs, events, figures', async ({page}) => {
		const held = [session(url), session(url)];
		await signIn(page, `${screen}/queries`);
		if (counts) {
			await row(page, 'where customer = $1').getByRole('button').first().click();
			await button(page, 'Reject this shape').click();
			await dialog(page).getByText('Reject queries of this shape?').waitFor();
			await confirm(page, 'Reject this shape');
			await refuses('select sum(length(note)) from visit where customer = 4711', /queries of this shape are rejected/);
			await button(page, 'Allow it again').click();
			await works('select sum(length(note)) from visit where customer = 4712');
			await open(page, `${screen}/queries`);
		}
		const [node] = (await server.api('GET', `/groups/${groupId}/processes`)).results, about = `/groups/${groupId}/processes/${node.id}`;
		await told('the slow query', `${about}/performanceAdvisor/slowQueryLogs`, a => a.slowQueries.some(q => q.line.includes('pg_sleep(0.5)')));
		await button(page, 'Slow queries').click();
		await row(page, 'pg_sleep(0.5)').getByRole('button').first().click();
		await dialog(page).getByText('pg_sleep(0.5)').waitFor();
		await page.keyboard.press('Escape');

		if (advises) {
			await told('a suggestion', `${api}/performanceAdvisor/suggestedIndexes`, a => a.content.suggestedIndexes.length);
			await open(page, `${screen}/advice`);
			await row(page, 'create index concurrently on "public"."visit" ("customer");').getByRole('button', {name: 'Build'}).click();
			await confirm(page, 'Build');
			await until('the index is there', async () => await sql(
				"select count(*) from pg_index where indrelid = 'visit'::regclass and indisvalid and not indisprimary") === '1', SLOW);
			await told('no suggestion', `${api}/performanceAdvisor/suggestedIndexes`, a => !a.content.suggestedIndexes.length);
			await page.reload();
			await page.getByText('No index would help').waitFor();
			/* What the host lacks for it is said. */
			await page.route('**/suggestedIndexes', route => route.fulfill({json: {content: {shapes: [], suggestedIndexes: []}},
				headers: {'x-steward-missing': 'install the package hypopg'}}));
			await page.reload();
			await page.getByText('install the package hypopg').waitFor();
			await page.unroute('**/suggestedIndexes');
		} else {
			await open(page, `${screen}/advice`);
			await page.getByText(/install the package/).first().waitFor();
		}

		await open(page, `${screen}/logs`);
		const log = gunzipSync(await download(page, page.getByRole('button', {name: /^Download: Server log of/}))).toString();
		assert.ok(log.includes('a line for the console'), log.slice(-2000));
		await open(page, `${screen}/events`);
		await row(page, 'Cluster ready').waitFor();
		await told('sessions, measured', `${about}/measurements?granularity=PT1M&period=PT1H&m=CONNECTIONS`,
			a => a.measurements[0].dataPoints.findLast(p => p.value !== undefined)?.value > 0);
		await open(page, `${screen}/metrics`);
		const plot = page.locator('figure', {hasText: /^Connections/}), shown = Number(await plot.locator('b').innerText());
		assert.ok(shown > 0 && shown <= held.length + 3, `${shown} connections`);
		assert.match(await plot.getByRole('img').getAttribute('aria-label'), /^Connections: orders-shard-00-00/);
		await plot.locator('canvas').waitFor();
	});

	job('database and network access: what a user may, a new password, a role, the end, an address that is taken away', async ({page}) => {
		await signIn(page, `${project}/database-access`);
		await button(page, 'New database user').first().click();
		await dialog(page).getByLabel('Name').fill('reader');
		await dialog(page).getByLabel('Role', {exact: true}).selectOption('read');
		await dialog(page).getByLabel('Database', {exact: true}).fill('postgres');
		await confirm(page, 'Create');
		const first = as('reader', await kept(page));
		await works('select count(*) from visit', first);
		await works('select count(*) from other', first);
		await refuses('insert into other values (1)', /permission denied/, first);

		await page.getByRole('tab', {name: /Custom roles/}).click();
		await button(page, 'New role').first().click();
		await dialog(page).getByLabel('Name').fill('visits');
		await dialog(page).getByLabel('Database', {exact: true}).fill('postgres');
		await dialog(page).getByLabel('Table').fill('visit');
		await confirm(page, 'Create');
		await row(page, 'visits').waitFor();
		await page.getByRole('tab', {name: /Users/}).click();
		await row(page, 'reader').getByRole('button', {name: 'reader', exact: true}).click();
		await dialog(page).getByLabel('Role', {exact: true}).selectOption('visits');
		await dialog(page).getByLabel('Make a new password').check();
		await confirm(page, 'Save');
		const second = as('reader', await kept(page));
		await works('select count(*) from visit', second);
		await refuses('select count(*) from other', /permission denied/, second);
		await refuses('select 1', /password authentication failed/, first);

		const held = session(second, 'select pg_sleep(3600)');
		await until('a session', async () => await sql("select count(*) from pg_stat_activity where usename = 'reader' and state = 'active'") === '1');
		await row(page, 'reader').getByRole('button', {name: /^More for/}).click();
		await page.getByRole('menuitem', {name: 'Delete'}).click();
		await confirm(page, 'Delete');
		await row(page, 'reader').waitFor({state: 'detached'});
		await refuses('select 1', /password authentication failed/, second);
		await until('the end of its session', held.ended, SLOW);

		/* And whoever comes from an address that is taken away. */
		await open(page, `${project}/network`);
		const other = session(url, 'select pg_sleep(3600)');
		await until('a session', async () => await sql("select count(*) from pg_stat_activity where query ~ '^select pg_sleep' and state = 'active'") === '1');
		await button(page, 'Remove 127.0.0.1/32').click();
		await confirm(page, 'Remove');
		await page.getByText('127.0.0.1, where you are, may not connect yet.').waitFor();
		await refuses('select 1', /no pg_hba.conf entry|pg_hba.conf rejects/);
		await until('the end of the session', other.ended, SLOW);
		await button(page, 'Add my address').click();
		await page.getByText('127.0.0.1, where you are, may connect.').waitFor();
		await works('select 1');
	});

	job('backups: a snapshot, its files, the schedule, and back to the second before an accident', async ({page}) => {
		await signIn(page, `${screen}/backups`);
		await button(page, 'Take a snapshot').first().click();
		await dialog(page).getByLabel('Description').fill('before lunch');
		await confirm(page, 'Take a snapshot');
		await row(page, 'before lunch').getByText('Completed').waitFor({timeout: SLOW});
		await row(page, 'before lunch').getByRole('button', {name: /^More for/}).click();
		await page.getByRole('menuitem', {name: 'Make a link to download'}).click();
		const tar = path.join(scratch, 'snapshot.tar');
		writeFileSync(tar, await download(page, page.getByRole('link', {name: 'File 1'})));
		const {stdout: names} = await run('tar', ['-tf', tar]);
		assert.match(names, /^(\.\/)?PG_VERSION$/m);

		await button(page, 'Schedule').click();
		await page.getByLabel('Keep for, Daily').fill('9');
		await button(page, 'Save schedule').click();
		await told('another schedule', `${api}/backup/schedule`, a => a.policies[0].policyItems.some(i => i.frequencyType === 'daily' && i.retentionValue === 9));

		const moment = Math.ceil(Number(await sql(`insert into other values (4711); select extract(epoch from clock_timestamp())`)));
		await until('the next second', () => Date.now() > (moment + 1) * 1000);
		await sql('drop table visit; delete from other');
		await told('the log of that moment', `${api}/backup/snapshots?pointInTimeUtcSeconds=${moment}`, a => a.results.length);
		await page.goto(`${screen}/backups`);
		await page.getByText('Any second').waitFor({timeout: SLOW});
		await button(page, 'Restore').first().click();
		await dialog(page).getByLabel('Moment', {exact: true}).fill(new Date(moment * 1000).toISOString().slice(0, 19));
		await button(page, 'The same cluster').click();
		await confirm(page, 'Go on');
		await dialog(page).getByRole('textbox').fill(NAME);
		await confirm(page, 'Restore');
		await page.locator('main tbody tr', {hasText: 'Moment'}).getByText('Done').waitFor({timeout: SLOW});
		await state(page, 'Healthy');
		await works('select 1');
		assert.equal(await sql('select (select count(*) from visit) || \' \' || (select max(id) from other)'), '50000 4711');
	});

	job('upgrade, more nodes, another primary and the alert of it, a rest, the end', async ({page}) => {
		await signIn(page, `${project}/alerts`);
		await button(page, 'New rule').click();
		await dialog(page).getByLabel('When', {exact: true}).selectOption('PRIMARY_ELECTED');
		await confirm(page, 'Create rule');
		await row(page, 'The primary moved').getByText('Enabled').waitFor();

		await idle();
		await open(page, screen);
		await state(page, 'Healthy');
		await act(page, 'Upgrade');
		if (to) {
			await dialog(page).getByLabel('To version').selectOption(String(to));
			await confirm(page, 'Upgrade');
			await state(page, `PostgreSQL ${to}`);
			await idle();
			assert.match((await server.api('GET', api)).dbVersion, new RegExp(`^${to}\\.`));
			await works('select 1');
			assert.equal(await sql('select count(*) from visit'), '50000');
		} else {
			await dialog(page).getByText('is the newest version here').waitFor();
			await page.keyboard.press('Escape');
		}

		await state(page, 'Healthy');
		await button(page, 'Scale').click();
		await dialog(page).getByLabel('Nodes').selectOption('3');
		await dialog(page).getByText('2 nodes are added').waitFor();
		await confirm(page, 'Scale');
		await until('two standbys', async () => (await psql(url, "select count(*) from pg_stat_replication where state = 'streaming'")).text === '2', SLOW);
		await idle();
		await state(page, 'Healthy');
		await until('their roles', async () => await page.getByRole('cell', {name: 'Standby'}).count() === 2);

		const leads = async () => (await page.locator('main tbody tr', {hasText: 'Primary'}).first().getByRole('cell').first().innerText()).trim();
		const {connectionStrings: {standard}} = await server.api('GET', api);
		url = standard.replace('://', `://${/\/\/([^@]*)@/.exec(url)[1]}@`);
		const old = await leads(), address = await sql('select inet_server_addr()');
		await act(page, 'Move primary');
		await dialog(page).getByText(`${old} leads now.`).waitFor();
		await confirm(page, 'Move primary');
		await until('another leads', async () => {
			const {ok, text} = await psql(url, 'select inet_server_addr()');
			return ok && text !== address;
		}, SLOW);
		await until('it is shown', async () => await leads() !== old, SLOW);
		await open(page, `${project}/alerts?show=all`);
		await row(page, 'Primary elected').waitFor();
		await open(page, `${project}/alerts?tab=rules`);
		await row(page, 'The primary moved').getByRole('button', {name: /^History/}).click();
		/* A restore has a new primary too: it was before the rule. */
		const moves = (await server.api('GET', `/groups/${groupId}/events?eventType=PRIMARY_ELECTED`)).totalCount;
		await dialog(page).getByText(`It would have told ${moves} time`).waitFor();
		await dialog(page).locator('tbody tr', {hasText: NAME}).getByText('Closed').waitFor();
		await page.keyboard.press('Escape');
		await open(page, '/console/hosts');
		await row(page, 'Up').getByRole('cell', {name: '1', exact: true}).first().waitFor();

		await idle();
		await open(page, screen);
		await state(page, 'Healthy');
		await act(page, 'Pause');
		await confirm(page, 'Pause');
		await state(page, 'Paused');
		await refuses('select 1', /refused|timeout/i);
		await act(page, 'Resume');
		await confirm(page, 'Resume');
		await state(page, 'Healthy');
		await works('select 1');
		await act(page, 'Delete');
		assert.ok(await button(page, 'Delete cluster').isDisabled());
		await dialog(page).getByRole('textbox').fill(NAME);
		await confirm(page, 'Delete cluster');
		await page.getByText('orders is deleted.').waitFor({timeout: SLOW});
		await refuses('select 1', /refused|timeout|could not translate/i);
	});

	/* Invoices are made by the hour. */
	let ran;
	const later = async () => {
		ran = (Date.now() - began) / 1000;
		await server.restart({clock: 'virtual'});
		await server.control('clock', {advanceSeconds: 3600});
		server.token = null; // it has ended
		return server;
	};
	job('usage and invoices: what ran is billed by the second', async ({page}) => {
		const invoice = await told('the invoice', `/orgs/${orgId}/invoices`, a => a.results.find(i => i.subtotalCents > 0));
		assert.ok(invoice.subtotalCents / 100 > 5 && invoice.subtotalCents / 100 < 3 * ran, `${invoice.subtotalCents} cents for ${ran} s`);
		const amount = (invoice.subtotalCents / 100).toLocaleString('en-US', {minimumFractionDigits: 2, maximumFractionDigits: 2});
		await signIn(page, `${org}/usage`);
		await page.locator('.facts').getByText(`${amount} EUR`).waitFor();
		await row(page, 'Project0').getByText(amount).waitFor();
		await page.locator('figure canvas').waitFor();
		await open(page, `${org}/invoices`);
		await row(page, amount).getByRole('link').first().click();
		await row(page, 'AWS_INSTANCE_M10').getByText(NAME).waitFor();
		await page.locator('figure canvas').waitFor();
		const csv = (await download(page, button(page, 'Download as CSV'))).toString();
		assert.match(csv, /AWS_INSTANCE_M10/);
	}, later);
}
