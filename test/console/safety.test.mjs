/* What the browser is told, what it stores, and what other people's pages and texts can do: nothing. */
import assert from 'node:assert/strict';
import {readFileSync, readdirSync} from 'node:fs';
import {createServer} from 'node:https';
import path from 'node:path';
import {after, test} from 'node:test';
import {LONG, axe, check, signIn, start, until} from './harness.mjs';

const server = await start();
const FIRST_LOAD = 60 * 1024; // bytes as they are sent
const PAINT = 500; // ms

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; " +
	"base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

test('the headers of the page and its files', async () => {
	const page = await server.ask('GET', '/console/', {headers: {accept: 'text/html'}});
	assert.equal(page.status, 200);
	const file = /\/console\/[0-9a-f]+\/js\/main\.js/.exec(page.text)[0];
	assert.ok(!/<script(?![^>]*src=)|<style|\sstyle=|\son\w+=/.test(page.text), 'nothing is inline');
	for (const where of ['/console/', '/console/projects/x', '/console/reset/x', file]) {
		const {headers} = await server.ask('GET', where, {headers: {accept: 'text/html'}});
		assert.equal(headers['content-security-policy'], POLICY, where);
		assert.equal(headers['x-frame-options'], 'DENY');
		assert.equal(headers['referrer-policy'], 'no-referrer');
		assert.equal(headers['x-content-type-options'], 'nosniff');
		assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
		assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
		assert.ok(!/publickey-credentials-(get|create)=\(\)/.test(headers['permissions-policy']) && /camera=\(\)/.test(headers['permissions-policy']), headers['permissions-policy']);
		assert.match(headers['cache-control'], where === file ? /immutable/ : /no-cache|no-store/);
		assert.equal(headers['set-cookie'], undefined);
	}
	const session = await server.ask('GET', '/api/session');
	assert.equal(session.status, 401);
	assert.equal(session.body.errorCode, 'NOT_SIGNED_IN');
	assert.match(session.headers['cache-control'] ?? '', /no-store/);
	const start_ = await server.ask('GET', '/', {headers: {accept: 'text/html'}});
	assert.equal(start_.headers.location, '/console/');
});

/* What a browser that knows nothing loads before it shows the heading: bytes as they are sent, and when it painted first. */
async function firstLoad(page, where, heading) {
	const sizes = new Map(), urls = new Map(), devtools = await page.context().newCDPSession(page);
	await devtools.send('Network.enable');
	await devtools.send('Network.setCacheDisabled', {cacheDisabled: true});
	devtools.on('Network.requestWillBeSent', e => urls.set(e.requestId, e.request.url));
	devtools.on('Network.loadingFinished', e => urls.has(e.requestId) && sizes.set(urls.get(e.requestId), e.encodedDataLength));
	await page.goto(where);
	await page.getByRole('heading', {level: 1, name: heading}).waitFor();
	sizes.delete([...sizes.keys()].find(url => url.endsWith('/texts/screens.en.json'))); // which idle time is used for
	const total = [...sizes.values()].reduce((sum, n) => sum + n, 0), list = [...sizes].map(([url, n]) => `${n} ${new URL(url).pathname}`).join('\n');
	/* Others use the machine too: one load that has it for itself tells how soon the page is there. */
	const paints = [];
	await until('a load that paints soon', async () => {
		if (paints.length)
			await page.reload();
		await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length);
		paints.push(Math.round(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime)));
		return paints.at(-1) <= PAINT;
	}, 2 * LONG);
	console.log(`${where}: ${total} bytes in ${sizes.size} answers, first contentful paint ${paints.join(', ')} ms`);
	assert.ok(total <= FIRST_LOAD, `${total} bytes:\n${list}`);
}

check(server, 'the first load is small and paints soon', async ({page}) => {
	await firstLoad(page, '/console/sign-in', 'Sign in');
	await signIn(page, '/console/account');
	await firstLoad(page, '/console/', /./);
}, {timeout: 8 * LONG});

check(server, 'nothing is stored but the theme', async ({page}) => {
	await signIn(page, '/console/account');
	const stored = () => page.evaluate(async () => ({local: {...localStorage}, session: {...sessionStorage}, databases: (await indexedDB.databases()).length, caches: await caches.keys(),
		workers: (await navigator.serviceWorker.getRegistrations()).length}));
	const nothing = {local: {}, session: {}, databases: 0, caches: [], workers: 0};
	assert.deepEqual(await stored(), nothing);
	await page.getByRole('button', {name: 'Dark', exact: true}).click();
	await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
	assert.deepEqual(await stored(), {...nothing, local: {theme: 'dark'}});
	await page.reload();
	await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
	await page.getByRole('button', {name: 'As the system'}).click();
	assert.deepEqual(await stored(), nothing);
});

const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>{{7*7}}${7*7}';

check(server, 'hostile names and texts are texts', async ({page}) => {
	await signIn(page, '/console/');
	const made = await page.evaluate(async ([orgId, text]) => {
		const post = async (where, body) => {
			const a = await fetch(`/api/svc/v2${where}`, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});
			return {status: a.status, body: await a.json()};
		};
		const project = await post('/groups', {name: `p ${text}`.slice(0, 64), orgId, tags: [{key: 'k', value: text.slice(0, 60)}]});
		const plain = project.status === 201 ? project : await post('/groups', {name: 'plain', orgId});
		const groupId = plain.body.id;
		return {groupId, project: project.status, entry: await post(`/groups/${groupId}/accessList`, [{cidrBlock: '192.0.2.0/24', comment: text.slice(0, 80)}]),
			key: await post(`/orgs/${orgId}/apiKeys`, {desc: text.slice(0, 250), roles: ['ORG_MEMBER']})};
	}, [server.orgId, HOSTILE]);
	assert.ok(made.entry.status < 300, JSON.stringify(made.entry));
	assert.ok(made.key.status < 300, JSON.stringify(made.key));
	const places = ['/console/', `/console/orgs/${server.orgId}/projects`, `/console/orgs/${server.orgId}/keys`, `/console/projects/${made.groupId}/network`, `/console/projects/${made.groupId}/events`,
		`/console/operations/listAccessListEntries?groupId=${made.groupId}`, `/console/${encodeURIComponent(HOSTILE)}`, `/console/projects/${encodeURIComponent(HOSTILE)}/clusters/${encodeURIComponent(HOSTILE)}`,
		`/console/?q=${encodeURIComponent(HOSTILE)}`];
	for (const where of places) {
		await page.goto(where);
		await page.locator('main h1').first().waitFor();
		await page.waitForLoadState('load');
		if (where.endsWith('/network'))
			await page.getByText('<img src=x onerror=').first().waitFor();
		const bad = await page.evaluate(() => [document.querySelectorAll('img[src=x], script:not([src])').length, document.title]);
		assert.equal(bad[0], 0, where);
		assert.ok(!['1', '2'].includes(bad[1]), where);
	}
	await page.evaluate(() => { // the policy itself holds
		try {
			document.body.innerHTML = '<b>x</b>';
		} catch (e) {
			document.documentElement.dataset.refused = e.name;
		}
	});
	assert.equal(await page.evaluate(() => document.documentElement.dataset.refused), 'TypeError');
	page.allow(/TrustedHTML|require-trusted-types-for/);
});

/* What comes from outside, as bad as it can be: the markup of others, a text that runs from right to left, what a terminal obeys, templates,
 * a word without an end. */
const MARK = `'"><img src=x onerror="globalThis.hostile=1"><script>globalThis.hostile=2</script><a href="javascript:globalThis.hostile=3">x</a>\u202e\u2066\u001b]0;x\u0007\u001b[31m&lt;b&gt;{{7*7}}\${7*7}${'W'.repeat(400)}`;
const WRITTEN = ['name', 'groupName', 'orgName', 'clusterName', 'teamName', 'userAlias', 'description', 'desc', 'comment', 'username', 'targetUsername', 'firstName', 'lastName', 'inviterUsername',
	'displayName', 'sku', 'unit', 'text', 'nextStep', 'progress', 'primary', 'namespace', 'queryShape', 'line', 'statement', 'hostnameAndPort', 'acknowledgementComment', 'publicKey', 'clientId', 'remoteAddress',
	'agent', 'address', 'emailAddress', 'note', 'reason', 'detail', 'value', 'key', 'roleName', 'databaseName', 'whitelistEntry', 'groups', 'mongoDBVersion', 'message', 'body'];

/* Every text of the API's answers that somebody has written ends with MARK, and what the page sends has it no more: so all screens have
 * hostile texts, also those that the API itself would refuse, and still work. */
const infect = ([mark, written]) => {
	const sick = (v, key) => {
		if (typeof v === 'string')
			return written.includes(key) && v && !v.includes(mark) ? v + mark : v;
		if (Array.isArray(v))
			return v.map(x => sick(x, key));
		if (!v || typeof v !== 'object')
			return v;
		return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, sick(x, k)]));
	};
	const parse = JSON.parse, {json} = Response.prototype, ask = globalThis.fetch;
	globalThis.asking = 0;
	JSON.parse = (...given) => sick(parse(...given));
	Response.prototype.json = async function() {
		const v = await json.call(this);
		return this.url.includes('/api/') ? sick(v) : v;
	};
	globalThis.fetch = (to, init = {}) => {
		globalThis.asking++;
		const well = String(to).replaceAll(encodeURIComponent(mark), '').replaceAll(new URLSearchParams({m: mark}).toString().slice(2), '');
		const body = typeof init.body === 'string' ? init.body.replaceAll(JSON.stringify(mark).slice(1, -1), '') : init.body;
		return ask(well, {...init, body}).finally(() => { setTimeout(() => globalThis.asking--, 0); });
	};
};

/* The page's own state: nothing was run or made, and nothing is wider than the screen. */
async function harmless(page, where, shown) {
	await page.waitForFunction(() => !globalThis.asking);
	if (shown)
		await until(`${where} shows the text`, () => page.evaluate(() => document.body.textContent.includes('<img src=x')));
	for (const width of [1280, 390]) {
		await page.setViewportSize({width, height: 800});
		const seen = await page.evaluate(() => new Promise(done => {
			requestAnimationFrame(() => requestAnimationFrame(() => done({ran: globalThis.hostile, wide: document.documentElement.scrollWidth - innerWidth,
				made: document.querySelectorAll('img, script:not([src]), a[href^="javascript:"], [onerror]').length})));
		}));
		assert.deepEqual([seen.ran, seen.made], [undefined, 0], `${where}: what came from outside was run or made`);
		assert.ok(seen.wide <= 0, `${where}: ${seen.wide} wider than a screen of ${width}`);
	}
	await page.setViewportSize({width: 1280, height: 800});
}

check(server, 'texts of others are texts on every screen, and keep in their places', async ({page}) => {
	const {groupId, orgId} = server, of = {groupId, clusterName: 'victim'};
	const project = `/console/projects/${groupId}`, org = `/console/orgs/${orgId}`, cluster = `${project}/clusters/victim`;
	await server.api('POST', `/groups/${groupId}/clusters`, {name: 'victim', clusterType: 'REPLICASET', backupEnabled: true, tags: [{key: 'team', value: HOSTILE.slice(0, 60)}], replicationSpecs: [{
		regionConfigs: [{providerName: 'AWS', regionName: 'US_EAST_1', priority: 7, electableSpecs: {instanceSize: 'M10', nodeCount: 3}}]}]});
	await until('the cluster', async () => (await server.api('GET', `/groups/${groupId}/clusters/victim`)).stateName === 'IDLE');
	await server.api('POST', `/groups/${groupId}/clusters/victim/backup/snapshots`, {description: HOSTILE, retentionInDays: 1});
	await server.api('POST', `/groups/${groupId}/databaseUsers`, {groupId, username: HOSTILE.slice(0, 60), password: 'a-long-password-1', databaseName: 'admin', roles: [{roleName: 'read', databaseName: 'shop'}]});
	await server.api('POST', `/groups/${groupId}/accessList`, [{cidrBlock: '192.0.2.0/24', comment: HOSTILE.slice(0, 80)}]);
	await server.api('POST', `/orgs/${orgId}/apiKeys`, {desc: HOSTILE.slice(0, 250), roles: ['ORG_MEMBER']});
	await server.api('POST', `/orgs/${orgId}/resourcePolicies`, {name: 'hostile', description: HOSTILE, policies: [{body: 'forbid (principal, action == ResourcePolicy::Action::"cluster.modify", resource) when { context.cluster.regions.isEmpty() };'}]});
	await server.api('POST', `/groups/${groupId}/alertConfigs`, {enabled: true, eventTypeName: 'HOST_DOWN', notifications: [{typeName: 'GROUP', intervalMin: 5, delayMin: 0, emailEnabled: true}]});
	await server.control('events', {...of, clusterName: HOSTILE, hostname: `"><img src=x onerror=globalThis.hostile=1>${'W'.repeat(300)}`, port: 5432, eventTypeName: 'HOST_DOWN'});
	await page.context().addInitScript(infect, [MARK, WRITTEN]);
	await signIn(page, '/console/');
	await server.api('POST', `/orgs/${orgId}/teams`, {name: 'hostile', usernames: [server.owner.username]});
	const [event] = (await server.api('GET', `/groups/${groupId}/events`)).results, invoice = '0'.repeat(24);
	await page.route(`**/invoices/${invoice}`, route => route.fulfill({json: {id: invoice, statusName: 'PENDING', startDate: '2026-01-01T00:00:00Z', endDate: '2026-02-01T00:00:00Z', subtotalCents: 5, lineItems: [
		{sku: 'INSTANCE', groupName: 'p', clusterName: 'c', unit: 'hours', quantity: 1, totalPriceCents: 5, startDate: '2026-01-01T00:00:00Z'}]}}));
	await page.route('**/costExplorer/usage/*', route => route.fulfill({json: {usageDetails: [{id: '0', name: 'usage', usageDate: '2026-01-01', usageAmount: 5}], currency: 'EUR'}}));
	const tabs = ['', '/queries', '/advice', '/events'].map(tab => cluster + tab);
	const shows = ['/console/', project, ...tabs, ...['database-access', 'network', 'backups?cluster=victim', 'alerts', 'events', `events?event=${event.id}`].map(s => `${project}/${s}`), '/console/orgs',
		...['projects', 'people', 'teams', 'keys', 'policies', `invoices/${invoice}`, 'usage', 'events'].map(s => `${org}/${s}`), '/console/hosts', '/console/account',
		...['listClusters', 'listDatabaseUsers', 'listGroupEvents'].map(id => `/console/operations/${id}?groupId=${groupId}`)];
	const others = [...['metrics', 'queries?kind=slow', 'logs'].map(tab => `${cluster}/${tab}`), ...['create', 'alerts?tab=rules', 'people', 'keys', 'settings'].map(s => `${project}/${s}`),
		`${org}/invoices`, `${org}/settings`];
	for (const where of [...shows, ...others]) {
		await page.evaluate(at => {
			history.pushState({key: 1e9}, '', at);
			dispatchEvent(new PopStateEvent('popstate', {state: history.state}));
		}, where);
		await page.locator('main h1').first().waitFor();
		await harmless(page, where, shows.includes(where));
		if (where.endsWith('/usage'))
			await page.getByRole('cell', {name: '5.00 EUR'}).waitFor();
	}
	await page.keyboard.press('Control+k');
	await page.keyboard.type('victim');
	await page.getByRole('option', {name: /victim/}).first().waitFor();
	await harmless(page, 'the palette', true);
});

/* Another origin of the same site: its requests carry the cookie, even a Strict one. */
async function hostileSite() {
	const folder = path.join(server.data, 'tls'), files = readdirSync(folder);
	const key = files.find(f => /key/.test(f) && !/ca/.test(f)), cert = files.find(f => /crt|pem/.test(f) && !/ca|key/.test(f));
	const posts = [];
	const site = createServer({key: readFileSync(path.join(folder, key)), cert: readFileSync(path.join(folder, cert))}, (request, answer) => {
		if (request.method === 'POST')
			posts.push(request.url);
		answer.setHeader('content-type', 'text/html');
		answer.end('<!doctype html><title>hostile</title><h1>hostile</h1><iframe name="f"></iframe>');
	});
	await new Promise(done => { site.listen(0, 'localhost', done); });
	after(() => {
		site.close();
		site.closeAllConnections();
	});
	return `https://localhost:${site.address().port}`;
}

check(server, 'a hostile page on another origin does nothing', async ({page}) => {
	const hostile = await hostileSite();
	await signIn(page, '/console/account');
	const look = () => page.evaluate(async ([org, group]) => {
		const get = async where => (await fetch(where)).json();
		const [orgs, groups, keys, sessions, who] = await Promise.all(['/api/svc/v2/orgs', '/api/svc/v2/groups', `/api/svc/v2/orgs/${org}/apiKeys`, '/api/session/sessions', '/api/session'].map(get));
		const entries = await get(`/api/svc/v2/groups/${group}/accessList`);
		return [orgs.totalCount, groups.totalCount, keys.totalCount, sessions.results.length, entries.totalCount, who.security.totp];
	}, [server.orgId, server.groupId]);
	const before = await look();

	const evil = await page.context().newPage();
	page.allow(/./); // the browser says loudly what it refuses
	await evil.goto(hostile);
	const targets = [['POST', '/api/svc/v2/orgs', '{"name":"evil"}'], ['POST', `/api/svc/v2/groups/${server.groupId}/accessList`, '[{"cidrBlock":"0.0.0.0/0"}]'], ['POST', `/api/svc/v2/orgs/${server.orgId}/apiKeys`,
		'{"desc":"evil","roles":["ORG_OWNER"]}'], ['POST', '/api/session/totp/enroll', '{}'], ['DELETE', '/api/session', ''], ['DELETE', '/api/session/sessions', ''], ['POST', '/api/session/password', '{"username":"a","password":"b"}']];
	const seen = await evil.evaluate(async ([url, list]) => {
		const out = [];
		for (const [method, where, body] of list)
			for (const mode of ['cors', 'no-cors'])
				for (const type of ['text/plain', 'application/json'])
					try {
						const a = await fetch(url + where, {method, mode, credentials: 'include', headers: {'Content-Type': type}, body: method === 'POST' ? body : undefined});
						out.push(a.type === 'opaque' ? 'opaque' : `${a.status}`);
					} catch {
						out.push('refused');
					}
		for (const where of ['/api/session', '/api/svc/v2/orgs', '/api/console/overview', '/api/console/events'])
			try {
				const a = await fetch(url + where, {credentials: 'include'});
				out.push(await a.text());
			} catch {
				out.push('refused');
			}
		return [...new Set(out)];
	}, [server.url, targets]);
	assert.deepEqual(seen.filter(s => s !== 'refused' && s !== 'opaque'), [], 'no answer can be read');

	/* Forms: what is posted arrives as a navigation, in a frame and at the top. */
	for (const [method, where, body] of targets.filter(t => t[0] === 'POST'))
		for (const target of ['f', '_blank']) {
			const opens = target === '_blank' ? page.context().waitForEvent('page') : null;
			await evil.evaluate(([url, text, to]) => {
				const form = document.createElement('form');
				Object.assign(form, {method: 'POST', action: url, enctype: 'text/plain', target: to});
				const field = document.createElement('input');
				field.name = text.slice(0, -1) + ',"x":"';
				field.value = '"}';
				form.append(field);
				document.body.append(form);
				form.submit();
			}, [server.url + where, body, target]);
			const opened = await opens;
			await opened?.waitForLoadState();
			if (opened)
				assert.match(await opened.evaluate(() => document.body.textContent), /CROSS_SITE|NOT_SIGNED_IN|UNSUPPORTED|errorCode/);
			await opened?.close();
		}

	/* Frames, windows and scripts. */
	await evil.evaluate(url => { document.querySelector('iframe').src = `${url}/console/`; }, server.url);
	await until('the frame is refused', async () => evil.frames().some(f => f !== evil.mainFrame() && /chrome-error|about:blank/.test(f.url())));
	const opening = page.context().waitForEvent('page');
	const handle = await evil.evaluateHandle(url => open(`${url}/console/account`), server.url);
	const opened = await opening;
	await opened.getByRole('heading', {level: 1}).waitFor();
	assert.equal(await opened.evaluate(() => window.opener), null, 'the console does not know who opened it');
	assert.equal(await handle.evaluate(w => w === null || w.closed), true, 'and who opened it has lost it');
	await opened.close();
	assert.equal(await evil.evaluate(url => new Promise(done => {
		const script = document.createElement('script');
		script.src = `${url}/api/session`;
		script.onload = () => done('loaded');
		script.onerror = () => done('refused');
		document.head.append(script);
	}), server.url), 'refused');
	await evil.close();

	assert.deepEqual(await look(), before, 'all is as it was, and the session too');
});

check(server, 'keys: palette, help, skip link, rows; a narrow screen', async ({page}) => {
	await signIn(page, '/console/account');
	await page.getByRole('heading', {name: 'Your account'}).waitFor();
	await page.getByRole('button', {name: 'Change password'}).focus();
	await page.keyboard.press('Control+k');
	const field = page.getByRole('combobox', {name: 'Jump to'});
	await field.waitFor();
	await page.getByRole('option').first().waitFor();
	await axe(page);
	await page.keyboard.press('Escape');
	await field.waitFor({state: 'detached'});
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Change password');
	await page.keyboard.press('?');
	await page.getByRole('dialog', {name: 'Keys'}).waitFor();
	await axe(page);
	await page.keyboard.press('Tab');
	await page.keyboard.press('Tab');
	await page.keyboard.press('Tab');
	assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('dialog')), 'the focus stays in the dialog');
	await page.keyboard.press('Escape');
	await page.keyboard.press('j');
	assert.ok(await page.evaluate(() => document.querySelector('tr.on')), 'a row is chosen');
	await page.keyboard.press('Control+k');
	await field.waitFor();
	await page.keyboard.type('all operations');
	await page.getByRole('option', {name: /All operations/}).waitFor();
	await page.keyboard.press('Enter');
	await page.waitForURL('**/console/operations');
	await page.locator('main h1').first().waitFor();
	await page.goto('/console/account');
	await page.getByRole('heading', {name: 'Your account'}).waitFor();
	await page.keyboard.press('Tab');
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
	await page.keyboard.press('Enter');
	assert.equal(await page.evaluate(() => document.activeElement.id), 'main');

	await page.setViewportSize({width: 390, height: 800});
	await axe(page);
	assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the screen');
	await page.getByRole('button', {name: 'Menu'}).click();
	await page.getByRole('navigation', {name: 'Main'}).getByRole('link', {name: 'Overview'}).click();
	await page.waitForURL('**/console/');
});

check(server, 'the page says when it is behind, and catches up', async ({page}) => {
	await page.route('**/api/console/events*', route => route.abort());
	await signIn(page, '/console/account');
	await page.locator('[data-live=behind]').waitFor();
	await axe(page);
	await page.unroute('**/api/console/events*');
	await page.locator('[data-live=live]').waitFor();
	page.allow(/console\/events/);
});
