/* A real server, and a real browser that trusts it as it would trust any other: by its authority's certificate in an NSS database.
 *
 *   const server = await start({engine: 'simulated'});        // or 'postgres'; within: words before the program's own
 *   check(server, 'what it shows', async ({page, open}) => {…});   // a test with a page of its own
 *
 * A test fails on every violation of the content security policy, error in the browser's console and uncaught exception, beside
 * what it asserts. Refusals of the API (4xx) are no errors: the browser writes them to its console, and forms show them. */
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {createHmac} from 'node:crypto';
import {existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync} from 'node:fs';
import {request as httpsRequest} from 'node:https';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {chromium} from 'playwright-core';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const LONG = 60000; // ms within which everything must have happened on a busy machine
const AXE = readFileSync(path.join(path.dirname(fileURLToPath(import.meta.url)), 'node_modules/axe-core/axe.min.js'), 'utf8');

const home = mkdtempSync(path.join(tmpdir(), 'steward-console-'));
const servers = new Set(), authorities = new Set();
let browser = null, trusted = 0, launchedWith = -1;

/* The font that systems of today have, where it is installed; STEWARD_FONT names another to be run with. */
mkdirSync(path.join(home, '.config/fontconfig'), {recursive: true});
writeFileSync(path.join(home, '.config/fontconfig/fonts.conf'), `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
${['system-ui', 'sans', 'sans-serif'].map(f => `<alias binding="strong"><family>${f}</family><prefer><family>${process.env.STEWARD_FONT ?? 'Inter'}</family></prefer></alias>`).join('\n')}</fontconfig>`);

after(async () => {
	await browser?.close();
	for (const s of [...servers])
		await s.stop();
	if (!process.env.STEWARD_KEEP)
		rmSync(home, {recursive: true, force: true});
});

/* Something that becomes true; says what did not. */
export async function until(what, look, ms = LONG) {
	const end = Date.now() + ms;
	for (let pause = 5;; pause = Math.min(pause * 1.5, 250)) {
		const found = await look();
		if (found)
			return found;
		assert.ok(Date.now() < end, `${what} did not happen in ${ms / 1000} s`);
		await new Promise(done => { setTimeout(done, pause); });
	}
}

function binary() {
	const named = process.env.STEWARD_BIN ?? path.join(ROOT, 'build/fast/steward');
	assert.ok(existsSync(named), `no steward binary at ${named}: build it, or name it in STEWARD_BIN`);
	return path.resolve(named);
}

/* Processes whose working directory is below a folder: database servers, and all that they have started. */
function workingIn(folder) {
	return readdirSync('/proc').filter(n => /^\d+$/.test(n)).map(Number).filter(pid => {
		try {
			return readlinkSync(`/proc/${pid}/cwd`).startsWith(`${folder}/`);
		} catch {
			return false; // it has ended, or is a zombie
		}
	});
}

/* The database servers that a service has left, which outlive it, and their directory, which lies elsewhere: that of the service is closed to
 * their system user, so its entry `engine` is a link. */
async function endDatabases(data) {
	const engine = path.join(data, 'engine');
	if (!existsSync(engine))
		return;
	const real = realpathSync(engine);
	const tell = signal => workingIn(real).forEach(pid => {
		try {
			process.kill(pid, signal);
		} catch { /* it has ended */ }
	});
	tell('SIGQUIT'); // by which they take their shared memory along
	const late = setTimeout(tell, LONG / 4, 'SIGKILL');
	await until('the end of the databases', () => !workingIn(real).length);
	clearTimeout(late);
	if (!process.env.STEWARD_KEEP)
		rmSync(real, {recursive: true, force: true, maxRetries: 20, retryDelay: 100});
}

class Server {
	constructor(options) {
		this.folder = mkdtempSync(path.join(tmpdir(), 'steward-console-server-'));
		this.data = path.join(this.folder, 'data');
		this.options = options;
		this.output = '';
		this.owner = {username: 'owner@example.org', password: 'correct horse battery staple', firstName: 'Olga', lastName: 'Owner'};
		this.owned = null;
	}

	async start() {
		const {engine = 'simulated', args = [], env = {}, clock, within = []} = this.options;
		const [program, ...words] = [...within, binary(), 'serve', '--data', this.data, '--listen', 'localhost:0', '--engine', engine, '--test-control', '--name-server', 'none', ...clock ? ['--clock', clock] : [], ...args];
		this.output = '';
		this.ended = false;
		this.process = spawn(program, words, {env: {...process.env, ...env}, stdio: ['ignore', 'pipe', 'pipe']});
		for (const stream of [this.process.stdout, this.process.stderr])
			stream.on('data', piece => { this.output = (this.output + piece).slice(-200000); });
		this.exit = new Promise(done => { this.process.on('exit', (code, signal) => done(signal ?? code)); });
		this.exit.then(() => { this.ended = true; });
		servers.add(this);
		await until('the server\'s start', () => {
			assert.ok(!this.ended, `steward ended\n${this.output.slice(-3000)}`);
			return /^steward: ready (https:\S+)$/m.exec(this.output);
		});
		this.url = /^steward: ready (https:\S+)$/m.exec(this.output)[1].replace('127.0.0.1', 'localhost');
		this.bootstrap = JSON.parse(readFileSync(path.join(this.data, 'bootstrap.json'), 'utf8'));
		this.ca = path.resolve(this.data, this.bootstrap.caFile);
		this.orgId = this.bootstrap.orgId;
		this.groupId = this.bootstrap.groupId;
		trust(this.ca);
		return this;
	}

	/* The same service again, with other options too: databases go on meanwhile. It has another port then. */
	async restart(options) {
		this.process.kill('SIGTERM');
		await this.exit;
		Object.assign(this.options, options);
		this.token = null;
		return this.start();
	}

	/* A call from outside of the browser: {status, headers, body (parsed where it is JSON), text}. */
	ask(method, where, {body, headers = {}} = {}) {
		const url = new URL(where.startsWith('/') ? this.url + where : where), data = body === undefined ? undefined : JSON.stringify(body);
		return new Promise((done, fail) => {
			const r = httpsRequest(url, {method, ca: readFileSync(this.ca), agent: false, headers: {accept: 'application/json', ...data === undefined ? {} : {'content-type': 'application/json',
				'content-length': Buffer.byteLength(data)}, ...headers}}, answer => {
				const pieces = [];
				answer.on('data', p => pieces.push(p));
				answer.on('end', () => {
					const text = Buffer.concat(pieces).toString();
					let parsed = null;
					try {
						parsed = JSON.parse(text);
					} catch { /* not JSON */ }
					done({status: answer.statusCode, headers: answer.headers, text, body: parsed});
				});
			});
			r.on('error', fail);
			r.setTimeout(LONG, () => r.destroy(new Error(`${method} ${where}: no answer`)));
			r.end(data);
		});
	}

	/* A call of the API as the service account that the first start made; throws what is no success. */
	async api(method, where, body) {
		if (!this.token) {
			const {clientId, clientSecret} = this.bootstrap.serviceAccount;
			const form = 'grant_type=client_credentials', basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
			this.token = await new Promise((done, fail) => {
				const r = httpsRequest(`${this.url}/api/oauth/token`, {method: 'POST', ca: readFileSync(this.ca), agent: false,
					headers: {authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded', 'content-length': form.length}}, answer => {
					let text = '';
					answer.on('data', p => { text += p; });
					answer.on('end', () => done(JSON.parse(text).access_token));
				});
				r.on('error', fail);
				r.end(form);
			});
		}
		const a = await this.ask(method, where.startsWith('/api/') ? where : `/api/svc/v2${where}`, {body, headers: {authorization: `Bearer ${this.token}`}});
		assert.ok(a.status < 300, `${method} ${where}: ${a.status} ${a.text.slice(0, 600)}`);
		return a.body;
	}

	control(what, body) {
		return this.api('POST', `/api/test/${what}`, body);
	}

	/* The owner has a password, set by the link that the first start prints. */
	async own() {
		this.owned ??= (async () => {
			const token = this.bootstrap.consoleLink.split('/').pop();
			const a = await this.ask('POST', '/api/session/first', {body: {token, ...this.owner}});
			assert.equal(a.status, 200, a.text);
		})();
		return this.owned;
	}

	async stop() {
		servers.delete(this);
		if (!this.ended) {
			this.process.kill('SIGTERM');
			const timer = setTimeout(() => this.process.kill('SIGKILL'), LONG);
			await this.exit;
			clearTimeout(timer);
		}
		await endDatabases(this.data);
		if (!process.env.STEWARD_KEEP)
			rmSync(this.folder, {recursive: true, force: true, maxRetries: 20, retryDelay: 100});
	}
}

export const start = (options = {}) => new Server(options).start();

/* What Chromium on Linux trusts stands in this database. */
function trust(ca) {
	if (authorities.has(ca))
		return;
	authorities.add(ca);
	const database = path.join(home, '.pki/nssdb');
	if (!trusted++) {
		mkdirSync(database, {recursive: true});
		execFileSync('certutil', ['-d', `sql:${database}`, '-N', '--empty-password']);
	}
	execFileSync('certutil', ['-d', `sql:${database}`, '-A', '-t', 'C,,', '-n', `steward ${trusted}`, '-i', ca]);
}

/* Another authority that the browser should trust, such as that of a test's own provider. Before the first page. */
export const alsoTrust = trust;

async function theBrowser() {
	if (browser && launchedWith !== trusted) {
		await browser.close();
		browser = null;
	}
	if (!browser) {
		launchedWith = trusted;
		browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', env: {...process.env, HOME: home, XDG_CONFIG_HOME: path.join(home, '.config')}, timeout: LONG,
			args: ['--disable-background-networking', '--disable-component-update', '--no-first-run', '--force-color-profile=srgb']});
	}
	return browser;
}

const REFUSAL = /^Failed to load resource: the server responded with a status of 4\d\d/;
/* An address of this machine came or went, as other tests make them: Chromium cuts its connections. */
const ELSEWHERE = /^Failed to load resource: net::ERR_NETWORK_CHANGED/;

/* A page of its own, with what went wrong in it. options: of Playwright's newContext. */
export async function newPage(server, options = {}) {
	const context = await (await theBrowser()).newContext({baseURL: server.url, viewport: {width: 1280, height: 800}, ...options});
	context.setDefaultTimeout(LONG);
	const faults = [], allowed = [];
	await context.addInitScript(() => {
		document.addEventListener('securitypolicyviolation', e => {
			console.error(`CSP violation: ${e.effectiveDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber} ${e.sample}`);
		});
	});
	const watch = page => {
		page.on('console', message => {
			if (message.type() === 'error' && !REFUSAL.test(message.text()) && !ELSEWHERE.test(message.text()))
				faults.push(`console: ${message.text()} (${message.location().url})`);
		});
		page.on('pageerror', error => faults.push(`exception: ${error.stack}`));
	};
	context.on('page', watch);
	const page = await context.newPage();
	page.server = server;
	page.faults = faults;
	page.allow = pattern => allowed.push(pattern); // an error that a test provokes on purpose
	page.verify = () => {
		const left = faults.filter(f => !allowed.some(a => a.test(f)));
		assert.deepEqual(left, [], 'the browser found faults');
	};
	return page;
}

/* A test with a page. options: of newPage(), and timeout. */
export function check(server, name, run, options = {}) {
	test(name, {timeout: options.timeout ?? 4 * LONG}, async () => {
		const s = await (typeof server === 'function' ? server() : server);
		const page = await newPage(s, options);
		try {
			await run({page, server: s});
			page.verify();
		} catch (e) {
			if (process.env.STEWARD_KEEP) {
				const picture = path.join(home, `${name.replace(/\W+/g, '-')}.png`);
				await page.screenshot({path: picture}).catch(() => {});
				console.error(`${picture}\n${page.url()}`);
			}
			if (page.faults.length)
				e.message += `\n${page.faults.join('\n')}`;
			throw e;
		} finally {
			await page.context().close();
		}
	});
}

/* Signs in by the API's own path, from the page, and opens a path of the console. who: {username, password}; the owner by itself. */
export async function signIn(page, to = '/console/', who) {
	const server = page.server;
	if (!who)
		await server.own();
	const {username, password} = who ?? server.owner;
	await page.goto('/console/sign-in');
	const status = await page.evaluate(async body => {
		const answer = await fetch('/api/session/password', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});
		const text = await answer.text();
		return answer.ok && !JSON.parse(text).next ? '' : `${answer.status} ${text}`;
	}, {username, password});
	assert.equal(status, '', 'sign-in');
	await page.goto(to);
	await page.locator('main h1').first().waitFor();
}

/* Nothing that axe finds; in the second theme, of what depends on one. */
export async function axe(page, {themes = ['light', 'dark'], within} = {}) {
	for (const theme of themes) {
		await page.emulateMedia({colorScheme: theme, reducedMotion: 'reduce'});
		await page.waitForFunction(t => document.documentElement.dataset.theme === t, theme);
		if (!await page.evaluate(() => typeof globalThis.axe === 'object'))
			await page.evaluate(AXE);
		const found = await page.evaluate(async ([at, colours]) => {
			const result = await globalThis.axe.run(at ?? document, {resultTypes: ['violations'], ...colours && {runOnly: ['color-contrast', 'link-in-text-block']}});
			return result.violations.map(v => `${v.id}: ${v.help}\n${v.nodes.slice(0, 4).map(n => `    ${n.target.join(' ')}  ${n.html.slice(0, 160)}\n      ${n.failureSummary.replace(/\n/g, ' ')}`).join('\n')}`);
		}, [within, theme !== themes[0]]);
		assert.deepEqual(found, [], `axe, ${theme} theme, ${page.url()}`);
	}
	await page.emulateMedia({colorScheme: 'light'});
}

/* A picture to look at, where STEWARD_SCREENSHOTS names a folder; those of the documentation are made by pictures.mjs. */
export async function picture(page, name, {themes = ['light']} = {}) {
	const folder = process.env.STEWARD_SCREENSHOTS;
	if (!folder)
		return;
	mkdirSync(path.resolve(ROOT, folder), {recursive: true});
	for (const theme of themes) {
		await page.emulateMedia({colorScheme: theme, reducedMotion: 'reduce'});
		await page.waitForFunction(t => document.documentElement.dataset.theme === t, theme);
		await page.screenshot({path: path.resolve(ROOT, folder, `${name}${theme === 'light' ? '' : `-${theme}`}.png`), animations: 'disabled', caret: 'hide'});
	}
	await page.emulateMedia({colorScheme: 'light'});
}

/* The code of an authenticator app (RFC 6238) for a secret in base32, `steps` periods from now. */
export function totp(secret, steps = 0) {
	const bits = [...secret.replace(/[\s=]/g, '').toUpperCase()].map(c => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('');
	const key = Buffer.from(bits.match(/.{8}/g).map(b => parseInt(b, 2)));
	const counter = Buffer.alloc(8);
	counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30000) + steps));
	const mac = createHmac('sha1', key).update(counter).digest(), at = mac[19] & 15;
	return String((mac.readUInt32BE(at) & 0x7fffffff) % 1000000).padStart(6, '0');
}

/* A mail server that keeps what it gets: {url, link(to, pattern)}, where link() waits for a letter to an address that has such a link. */
export async function mailbox() {
	const letters = [];
	const server = createServer(socket => {
		let to = '', text = null, rest = '';
		socket.setEncoding('utf8');
		socket.on('error', () => {});
		socket.write('220 test\r\n');
		const line = said => {
			if (text !== null) {
				if (said === '.') {
					letters.push({to, text: text.replace(/=\n/g, '').replace(/=3D/g, '=')});
					text = null;
					socket.write('250 kept\r\n');
				} else
					text += `${said.replace(/^\.\./, '.')}\n`;
				return;
			}
			const word = said.slice(0, 4).toUpperCase();
			if (word === 'RCPT')
				to = /<([^>]*)>/.exec(said)?.[1] ?? '';
			if (word === 'DATA')
				text = '';
			socket.write({DATA: '354 go on\r\n', QUIT: '221 bye\r\n'}[word] ?? '250 ok\r\n');
		};
		socket.on('data', piece => {
			const lines = (rest + piece).split('\r\n');
			rest = lines.pop();
			lines.forEach(line);
		});
	});
	await new Promise(done => { server.listen(0, '127.0.0.1', done); });
	server.unref();
	after(() => server.close());
	return {
		url: `smtp://127.0.0.1:${server.address().port}`, letters,
		link: (to, pattern) => until(`a letter to ${to}`, () => letters.filter(l => l.to === to).map(l => pattern.exec(l.text)?.[0]).findLast(Boolean))
	};
}

/* test/oidc_provider.py or test/saml_provider.py, a process with keys and an authority of its own, which the browser trusts: {url, ca,
 * control(settings), …}. */
export async function identityProvider(kind = 'oidc') {
	const child = spawn('/usr/bin/python3', [path.join(ROOT, `test/${kind}_provider.py`), path.join(home, `${kind}-provider`)], {stdio: ['pipe', 'pipe', 'inherit']});
	const said = JSON.parse(await new Promise(done => {
		let text = '';
		child.stdout.on('data', piece => {
			text += piece;
			if (text.includes('\n'))
				done(text);
		});
	}));
	const {url, ca} = said;
	trust(ca);
	after(() => child.stdin.end());
	const control = settings => new Promise((done, fail) => {
		const r = httpsRequest(`${url}/control`, {method: 'POST', ca: readFileSync(ca), agent: false, headers: {'content-type': 'application/json'}}, a => {
			a.resume();
			a.on('end', () => a.statusCode === 200 ? done() : fail(new Error(`the provider answers ${a.statusCode}`)));
		});
		r.on('error', fail);
		r.end(JSON.stringify(settings));
	});
	return {...said, control};
}
