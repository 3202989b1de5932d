/* How soon the overview can be used with 10,000 projects and 2,000 clusters. A measurement, which asserts nothing and is no part of the
 * suite: STEWARD_BIN=build/release/steward node --test test/console/overview.measure.mjs
 *
 * From the navigation's start until the first row is painted and a click at its place would hit its link; signed in, with a browser that
 * has the console's files and one that has none, and with a server that has just started. */
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import path from 'node:path';
import {test} from 'node:test';
import {LONG, ROOT, newPage, start, until} from './harness.mjs';

const PROJECTS = Number(process.env.STEWARD_PROJECTS ?? 10000), CLUSTERS = Number(process.env.STEWARD_CLUSTERS ?? 2000), LOADS = 7, CALLERS = 8;
const who = {username: 'many@example.org', password: 'correct horse battery staple'};
const steward = path.resolve(process.env.STEWARD_BIN ?? path.join(ROOT, 'build/fast/steward'));

const cluster = name => ({name, clusterType: 'REPLICASET', replicationSpecs: [{regionConfigs: [{providerName: 'AWS', regionName: 'US_EAST_1', priority: 7,
	electableSpecs: {instanceSize: 'M10', nodeCount: 3}}]}]});

async function fill(server) {
	execFileSync(steward, ['limits', 'set', '--data', server.data, '--all', '--capacity', '1000000', '--refill', '1000000']);
	const {organizations: [org]} = await server.control('seed', {organizations: [{name: 'many', projectCount: PROJECTS, principals: [
		{type: 'serviceAccount', roles: ['ORG_OWNER']}, {type: 'user', username: who.username, roles: ['ORG_OWNER']}]}]});
	const token = /\/reset\/(\S+)/.exec(execFileSync(steward, ['password-link', '--data', server.data, who.username], {encoding: 'utf8'}))[1];
	const set = await server.ask('POST', '/api/session/reset', {body: {token, password: who.password}});
	assert.equal(set.status, 200, set.text);
	const headers = {authorization: `Bearer ${org.principals[0].accessToken}`}, groups = [];
	for (let page = 1; groups.length < CLUSTERS; page++)
		groups.push(...(await server.ask('GET', `/api/svc/v2/orgs/${org.id}/groups?itemsPerPage=500&pageNum=${page}`, {headers})).body.results);
	let next = 0;
	await Promise.all(Array.from({length: CALLERS}, async () => {
		for (let n = next++; n < CLUSTERS; n = next++) {
			const made = await server.ask('POST', `/api/svc/v2/groups/${groups[n].id}/clusters`, {body: cluster(`c${n}`), headers});
			assert.equal(made.status, 201, made.text);
		}
	}));
	await until('all clusters are ready', async () => {
		const seen = (await server.ask('GET', '/api/console/overview?sort=stateName&itemsPerPage=1', {headers})).body;
		return seen.results[0].stateName === 'IDLE' && (await server.ask('GET', '/api/console/overview?sort=-stateName&itemsPerPage=1', {headers})).body.results[0].stateName === 'IDLE';
	}, 10 * LONG);
}

/* Milliseconds until a row can be clicked, and until all are known. */
async function load(page) {
	await page.goto('/console/');
	const usable = await page.evaluate(() => globalThis.usable);
	const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
	await page.getByText(/of [\d,]+ clusters/).waitFor();
	const asked = await page.evaluate(() => performance.getEntriesByType('resource').filter(r => /overview\?|api\/session$/.test(r.name)).map(r =>
		`${new URL(r.name).pathname.split('/').pop()} ${Math.round(r.startTime)}+${Math.round(r.responseEnd - r.startTime)}`).join(', '));
	return {usable, painted, asked};
}

const watch = () => {
	globalThis.usable = new Promise(done => {
		const look = () => {
			const link = document.querySelector('.clusters tbody tr[data-row] a'), box = link?.getBoundingClientRect();
			if (box && link.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)))
				requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0));
			else
				requestAnimationFrame(look);
		};
		requestAnimationFrame(look);
	});
};

const shown = (what, list) => {
	const times = list.map(l => Math.round(l.usable));
	console.log(`${what}: first rows ${times.join(', ')} ms; first paint ${list.map(l => Math.round(l.painted)).join(', ')} ms; ${list.at(-1).asked}`);
};

test('the overview of many clusters', {timeout: 30 * LONG}, async () => {
	const server = await start({engine: 'simulated'});
	await fill(server);
	const page = await newPage(server, {viewport: {width: 1280, height: 1000}});
	await page.context().addInitScript(watch);
	await page.goto('/console/sign-in');
	await page.getByLabel('Mail address').fill(who.username);
	await page.getByLabel('Password', {exact: true}).fill(who.password);
	await page.getByRole('button', {name: 'Sign in', exact: true}).click();
	await page.getByRole('navigation', {name: 'Main'}).waitFor();
	const rounds = async what => {
		const list = [];
		for (let i = 0; i < LOADS; i++)
			list.push(await load(page));
		shown(what, list);
	};
	await rounds('a browser that has the files');
	const devtools = await page.context().newCDPSession(page);
	await devtools.send('Network.enable');
	await devtools.send('Network.setCacheDisabled', {cacheDisabled: true});
	await rounds('one that has none');
	await devtools.send('Network.setCacheDisabled', {cacheDisabled: false});
	page.allow(/ERR_CONNECTION_REFUSED/); // while the server is started again
	for (let i = 0; i < 3; i++) {
		const {port} = new URL(server.url);
		server.process.kill('SIGTERM');
		await server.exit;
		Object.assign(server, {ended: false, output: ''});
		server.options.args = ['--listen', `localhost:${port}`];
		await server.start();
		shown('a server that has just started', [await load(page)]);
	}
	page.verify();
	await page.context().close();
});
