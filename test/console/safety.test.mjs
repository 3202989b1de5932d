/* What the browser is told, what it stores, and what other people's pages and texts can do: nothing. */
import assert from 'node:assert/strict';
import {readFileSync, readdirSync} from 'node:fs';
import {createServer} from 'node:https';
import path from 'node:path';
import {after, test} from 'node:test';
import {axe, check, signIn, start, until} from './harness.mjs';

const server = await start();
const FIRST_LOAD = 60 * 1024; // bytes as they are sent
const PAINT = 500; // ms; three times that is let pass

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
	let paint = Infinity; // of a few loads the best: others use the machine too
	for (let tries = 0; tries < 4 && paint > PAINT; tries++) {
		if (tries)
			await page.reload();
		await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length);
		paint = Math.min(paint, await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
	}
	console.log(`${where}: ${total} bytes in ${sizes.size} answers, first contentful paint ${Math.round(paint)} ms`);
	assert.ok(total <= FIRST_LOAD, `${total} bytes:\n${list}`);
	assert.ok(paint <= 3 * PAINT, `first contentful paint after ${paint} ms`);
}

check(server, 'the first load is small and paints soon', async ({page}) => {
	await firstLoad(page, '/console/sign-in', 'Sign in');
	await signIn(page, '/console/account');
	await firstLoad(page, '/console/', /./);
});

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
