/* A client that asks to act for a person (steward login --web): the page that shows it, lets it in or refuses it. */
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {mkdtempSync, readFileSync} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {ROOT, axe, check, signIn, start} from './harness.mjs';

const server = await start();
const heading = (page, name) => page.getByRole('heading', {level: 1, name}).waitFor();

/* steward login --web: resolves to the link and the code that it prints, and to its end. */
async function login() {
	const home = mkdtempSync(path.join(os.tmpdir(), 'steward-home-'));
	const p = spawn(path.resolve(process.env.STEWARD_BIN ?? path.join(ROOT, 'build/fast/steward')),
		['login', '--web', '--url', server.url, '--ca-file', path.join(server.data, 'tls/ca.crt')],
		{stdio: ['ignore', 'pipe', 'pipe'], env: {...process.env, HOME: home, XDG_CONFIG_HOME: '', STEWARD_PROFILE: '', STEWARD_DATA: ''}});
	let said = '', out = '';
	p.stdout.on('data', d => { out += d; });
	const end = new Promise(done => p.on('exit', code => done({code, out, said})));
	const link = await new Promise(done => p.stderr.on('data', d => {
		said += d;
		const found = /(https:\/\/\S+\/console\/device\?code=\S+)\s+(\S+)/.exec(said);
		if (found)
			done({url: found[1], code: found[2]});
	}));
	return {...link, end, profile: () => readFileSync(path.join(home, '.config/steward/profiles/default'), 'utf8')};
}

check(server, 'somebody who opens the link signs in, compares the code and lets the client in', async ({page}) => {
	await server.own();
	const client = await login();
	await page.goto(client.url);
	await page.getByLabel('Mail address').fill(server.owner.username);
	await page.getByLabel('Password', {exact: true}).fill(server.owner.password);
	await page.getByRole('button', {name: 'Sign in', exact: true}).click();
	await heading(page, 'Let a client sign in');
	await page.getByText(client.code, {exact: true}).waitFor();
	await page.getByText(/^steward\//).waitFor();
	await axe(page);
	await page.getByRole('button', {name: 'Allow'}).click();
	await page.getByText('The client is signed in').waitFor();
	const {code, out} = await client.end;
	assert.equal(code, 0);
	assert.match(out, new RegExp(`user ${server.owner.username}`));
	assert.match(client.profile(), /session = "stw_/);
	await page.goto(client.url);
	await page.getByText('No client waits under this code').waitFor();
});

check(server, 'a code is typed, and a client that nobody knows is refused', async ({page}) => {
	const client = await login();
	await signIn(page, '/console/device');
	await heading(page, 'Let a client sign in');
	await page.getByLabel('Code').fill(client.code.toLowerCase().replace('-', ' '));
	await page.getByRole('button', {name: 'Go on'}).click();
	await page.getByText(client.code, {exact: true}).waitFor();
	await page.getByRole('button', {name: 'Refuse'}).click();
	await page.getByText('The client is refused').waitFor();
	const {code, said} = await client.end;
	assert.equal(code, 1);
	assert.match(said, /refused in the browser/);
});
