/* How people get in, and out: the first link, passwords with codes, passkeys, letters, invitations, sessions. */
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {ROOT, axe, check, identityProvider, mailbox, newPage, picture, start, totp, until} from './harness.mjs';

/* Why nobody can sign in by SAML here; or ''. */
function lacksSaml() {
	if (!existsSync(path.join(path.dirname(path.resolve(process.env.STEWARD_BIN ?? path.join(ROOT, 'build/fast/steward'))), 'steward-saml')))
		return 'steward-saml is not built: liblasso3-dev is not installed';
	try {
		execFileSync('/usr/bin/python3', ['-c', 'import lasso'], {stdio: 'ignore'});
		return '';
	} catch {
		return 'python3-lasso is not installed';
	}
}

const noSaml = lacksSaml();
const mail = await mailbox(), provider = await identityProvider(), saml = noSaml ? null : await identityProvider('saml');
const server = await start({args: ['--smtp-url', mail.url, '--smtp-from', 'steward@example.org', '--identity-ca', provider.ca,
	'--inner-networks', '127.0.0.0/8,::1']});
const owner = server.owner;

/* The operator's word that a domain is the organization's. */
const approve = domain => execFileSync(path.resolve(process.env.STEWARD_BIN ?? path.join(ROOT, 'build/fast/steward')), ['domains', 'approve', '--data', server.data, server.orgId, domain]);

const DARK = {themes: ['dark']}; // states of a page that was looked at in both

const heading = (page, name) => page.getByRole('heading', {level: 1, name}).waitFor();
const inside = page => page.getByRole('navigation', {name: 'Main'}).waitFor();

async function typeIn(page, who = owner, password = who.password) {
	await page.getByLabel('Mail address').fill(who.username);
	await page.getByLabel('Password', {exact: true}).fill(password);
	await page.getByRole('button', {name: 'Sign in', exact: true}).click();
}

async function enter(page, to = '/console/', who = owner) {
	await page.goto(`/console/sign-in?to=${encodeURIComponent(to)}`);
	await typeIn(page, who);
	await inside(page);
}

async function leave(page) {
	await page.getByRole('button', {name: 'Account of'}).click();
	await page.getByRole('menuitem', {name: 'Sign out'}).click();
	await heading(page, 'Sign in');
}

check(server, 'the link of the first start sets the first password, once', async ({page}) => {
	const printed = server.bootstrap.consoleLink;
	assert.ok(!server.output.includes('/console/first/'), 'only a terminal is shown it');
	await page.goto(printed);
	await heading(page, 'Welcome to Steward');
	await axe(page);
	await page.getByLabel('Mail address').fill(owner.username);
	await page.getByLabel('First name').fill(owner.firstName);
	await page.getByLabel('Last name').fill(owner.lastName);
	await page.getByLabel('Password', {exact: true}).fill('short');
	await page.getByRole('button', {name: 'Set the password and begin'}).click();
	await page.locator('.field.faulty .fault').waitFor();
	assert.equal(await page.getByLabel('Password', {exact: true}).getAttribute('aria-invalid'), 'true');
	await axe(page, DARK);
	await page.getByLabel('Password', {exact: true}).fill(owner.password);
	await page.getByRole('button', {name: 'Set the password and begin'}).click();
	await inside(page);
	assert.equal(new URL(page.url()).pathname, '/console/');
	server.owned = Promise.resolve();

	const cookies = await page.context().cookies();
	assert.ok(cookies.some(c => c.name === '__Host-steward'));
	for (const cookie of cookies)
		assert.deepEqual({prefix: cookie.name.slice(0, 7), secure: cookie.secure, httpOnly: cookie.httpOnly, sameSite: cookie.sameSite, path: cookie.path},
			{prefix: '__Host-', secure: true, httpOnly: true, sameSite: 'Strict', path: '/'});
	assert.equal(await page.evaluate(() => document.cookie), '');

	const other = await newPage(server);
	await other.goto(printed);
	await other.getByText('This link has been used, or is over').waitFor();
	await axe(other);
	other.verify();
	await other.context().close();
});

check(server, 'password, by the keyboard alone, and back to where one wanted to go', async ({page}) => {
	await page.goto('/console/account?x=1');
	await heading(page, 'Sign in');
	await page.waitForFunction(() => document.activeElement?.name === 'username');
	await axe(page);
	await picture(page, 'sign-in');
	const press = async (...keys) => {
		for (const k of keys)
			await page.keyboard.press(k);
	};
	await page.keyboard.type(owner.username);
	await press('Tab');
	await page.keyboard.type('not the password');
	await press('Enter');
	await page.getByRole('alert').waitFor();
	await axe(page, DARK);
	assert.deepEqual(await page.evaluate(() => [document.activeElement.name, document.activeElement.value]), ['password', '']);
	await page.keyboard.type(owner.password);
	await press('Tab');
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Sign in');
	await press('Space');
	await heading(page, 'Your account');
	assert.equal(page.url(), `${server.url}/console/account?x=1`);
	await page.keyboard.press('Tab');
	await leave(page);
	assert.ok((await page.context().cookies()).every(c => c.name !== '__Host-steward'));
});

check(server, 'the account: axe, password, authenticator app, recovery codes', async ({page}) => {
	await page.goto('/console/sign-in?to=%2Fconsole%2Faccount');
	await typeIn(page, owner, '');
	await page.locator('.field.faulty .fault', {hasText: 'Is required'}).waitFor();
	await typeIn(page);
	await heading(page, 'Your account');
	await page.getByText('Owner (Organization0)').waitFor();
	await page.getByRole('navigation', {name: 'Main'}).getByRole('link', {name: 'Hosts'}).waitFor();
	await page.getByRole('table', {name: 'Where you are signed in'}).getByText('this one').waitFor();
	await axe(page);
	await picture(page, 'account');

	await page.getByRole('button', {name: 'Change password'}).click();
	const dialog = page.getByRole('dialog');
	await dialog.getByLabel('Password now').fill('wrong');
	await dialog.getByLabel('New password').fill('another long password here');
	await dialog.getByRole('button', {name: 'Change password'}).click();
	await dialog.locator('.fault').waitFor();
	await axe(page, DARK);
	await dialog.getByLabel('Password now').fill(owner.password);
	await dialog.getByRole('button', {name: 'Change password'}).click();
	owner.password = 'another long password here';
	await page.getByText('The password was changed').waitFor();
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Change password', 'the focus goes back');

	await page.getByRole('button', {name: 'Set up an app'}).click();
	const secret = (await dialog.locator('[data-secret]').textContent()).replace(/\s/g, '');
	assert.match(secret, /^[A-Z2-7]{26,}$/);
	await dialog.getByRole('img', {name: 'The secret as a QR code'}).waitFor();
	await axe(page);
	await dialog.getByRole('textbox', {name: 'Code'}).fill('000000');
	await dialog.getByRole('button', {name: 'Turn on'}).click();
	await dialog.locator('.fault, [role=alert]').first().waitFor();
	await dialog.getByRole('textbox', {name: 'Code'}).fill(totp(secret));
	await dialog.getByRole('button', {name: 'Turn on'}).click();
	await page.getByRole('heading', {name: 'Recovery codes'}).waitFor();
	const codes = await page.locator('[data-codes] li').allTextContents();
	assert.ok(codes.length >= 8, codes.join());
	await axe(page);
	await page.getByRole('button', {name: 'I have kept them'}).click();
	await page.getByText('recovery codes are left').waitFor();
	assert.ok(!(await page.content()).includes(codes[0]), 'codes are shown once');
	await leave(page);

	await typeIn(page);
	await heading(page, 'Second step');
	await axe(page, DARK);
	const code = totp(secret, 1);
	await page.getByLabel('Code').fill(code);
	await page.getByRole('button', {name: 'Sign in', exact: true}).click();
	await inside(page);
	await leave(page);

	await typeIn(page);
	await heading(page, 'Second step');
	await page.getByLabel('Code').fill(code);
	await page.getByRole('button', {name: 'Sign in', exact: true}).click();
	await page.getByRole('alert').or(page.locator('.fault')).first().waitFor();
	await page.getByRole('button', {name: 'Use a recovery code'}).click();
	await axe(page, DARK);
	await page.getByLabel('Recovery code').fill(codes[0]);
	await page.getByRole('button', {name: 'Sign in', exact: true}).click();
	await inside(page);
	await page.goto('/console/account');
	await page.getByText(`${codes.length - 1} recovery codes are left`).waitFor();
	await page.getByRole('button', {name: 'Turn off'}).click();
	await dialog.getByLabel('Password').fill(owner.password);
	await dialog.getByRole('button', {name: 'Turn off'}).click();
	await page.getByText('Off. With it').waitFor();
});

check(server, 'a passkey: added, used, removed', async ({page}) => {
	const devtools = await page.context().newCDPSession(page);
	await devtools.send('WebAuthn.enable');
	await devtools.send('WebAuthn.addVirtualAuthenticator', {options: {protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true}});
	await enter(page, '/console/account');
	await page.getByText('No passkeys yet').waitFor();
	await page.getByRole('button', {name: 'Add a passkey'}).click();
	await page.getByRole('dialog').getByLabel('Name').fill('Laptop <b>mine</b>');
	await page.getByRole('dialog').getByRole('button', {name: 'Add a passkey'}).click();
	await page.getByRole('table', {name: 'Passkeys'}).getByText('Laptop <b>mine</b>').waitFor();
	await axe(page, DARK);
	await leave(page);
	await page.getByRole('button', {name: 'Sign in with a passkey'}).click();
	await inside(page);
	await page.goto('/console/account');
	await page.getByRole('button', {name: 'Remove Laptop'}).click();
	await page.getByRole('dialog').getByRole('button', {name: 'Remove'}).click();
	await page.getByText('No passkeys yet').waitFor();
	await leave(page);
	await page.getByRole('button', {name: 'Sign in with a passkey'}).click();
	await page.getByRole('alert').waitFor();
});

check(server, 'what outlives a session asks once more who it is', async ({page}) => {
	await enter(page, '/console/account');
	let stale = true; // as a session is whose last proof is a quarter of an hour old
	await page.route('**/api/session/totp/enroll', route => stale ? route.fulfill({status: 403, json: {error: 403, errorCode: 'PROOF_NEEDED', detail: 'x', parameters: []}}) : route.fallback());
	page.on('response', r => {
		if (r.url().endsWith('/api/session/proof') && r.status() === 204)
			stale = false;
	});
	await page.getByRole('button', {name: 'Set up an app'}).click();
	const proof = page.getByRole('dialog', {name: 'Is it still you?'});
	await proof.waitFor();
	await axe(page);
	await proof.getByLabel('Password').fill('not the password');
	await proof.getByRole('button', {name: 'Go on'}).click();
	await proof.locator('.fault, [role=alert]').first().waitFor();
	assert.equal(await page.locator('[data-secret]').count(), 0);
	await proof.getByLabel('Password').fill(owner.password);
	await proof.getByRole('button', {name: 'Go on'}).click();
	await page.locator('[data-secret]').waitFor();
	assert.equal(await proof.count(), 0);
	await page.keyboard.press('Escape');

	stale = true; // who does not want to show it is refused
	await page.getByRole('button', {name: 'Set up an app'}).click();
	await proof.getByRole('button', {name: 'Cancel'}).click();
	await page.getByRole('dialog').getByRole('alert').waitFor();
	assert.equal(await page.locator('[data-secret]').count(), 0);
});

check(server, 'a forgotten password, by a letter', async ({page}) => {
	await page.goto('/console/sign-in');
	await page.getByLabel('Mail address').fill(owner.username);
	await page.getByRole('link', {name: 'Forgotten password?'}).click();
	await heading(page, 'Forgotten password');
	await axe(page);
	await page.getByRole('button', {name: 'Send a letter'}).click();
	await page.getByText('is on its way').waitFor();
	await axe(page, DARK);
	const link = await mail.link(owner.username, /https:\S+\/console\/reset\/\S+/); // other letters tell of earlier changes
	await page.goto(link);
	await heading(page, 'New password');
	await axe(page);
	owner.password = 'a third long password here';
	await page.getByLabel('New password').fill(owner.password);
	await page.getByRole('button', {name: 'Set the password'}).click();
	await inside(page);
	await leave(page);
	await page.goto(link);
	await page.getByLabel('New password').fill('somebody else knows this link');
	await page.getByRole('button', {name: 'Set the password'}).click();
	await page.getByRole('alert').waitFor();
});

check(server, 'an invitation ends in the console', async ({page}) => {
	await server.api('POST', `/orgs/${server.orgId}/invites`, {username: 'new@example.org', roles: ['ORG_MEMBER']});
	const link = await mail.link('new@example.org', /https:\S+\/invitations\/\S+/);
	await page.goto(link);
	await heading(page, 'Invitation');
	await page.getByText('new@example.org').waitFor();
	await page.getByText('Member', {exact: true}).waitFor();
	assert.deepEqual(await page.locator('form button').allTextContents(), ['Accept', 'Decline']);
	await axe(page);
	await page.getByLabel('First name').fill('Nora');
	await page.getByLabel('Last name').fill('New');
	await page.getByLabel('Password', {exact: true}).fill('nora has a long password');
	await page.getByRole('button', {name: 'Accept'}).click();
	await inside(page);
	assert.equal(await page.getByRole('navigation', {name: 'Main'}).getByRole('link', {name: 'Hosts'}).count(), 0, 'hosts are for operators');
	await page.goto(link);
	await page.getByText('This invitation is over').waitFor();
	await axe(page, DARK);
});

check(server, 'an identity provider of the name\'s domain', async ({page}) => {
	const settings = await server.api('GET', `/orgs/${server.orgId}/federationSettings`), base = `/federationSettings/${settings.id}`;
	const idp = await server.api('POST', `${base}/identityProviders`, {displayName: 'Company & <i>Sons</i>', issuerUri: provider.url, protocol: 'OIDC', idpType: 'WORKFORCE', audience: 'steward',
		clientId: 'steward', userClaim: 'email', authorizationType: 'USER', associatedDomains: ['company.example'], requestedScopes: ['email']});
	await server.api('PATCH', `${base}/connectedOrgConfigs/${server.orgId}`, {domainRestrictionEnabled: false, dataAccessIdentityProviderIds: [idp.id]});
	approve('company.example');
	const redirects = [`${server.url}/api/session/oidc/callback/${idp.id}`];
	await provider.control({mode: 'RS256', redirects, client: 'steward', claims: {sub: 'ann', email: 'ann@company.example', email_verified: true, given_name: 'Ann', family_name: 'Nox'}});

	await page.goto('/console/account');
	await heading(page, 'Sign in');
	await page.getByLabel('Mail address').fill('ann@elsewhere.example');
	await page.getByLabel('Mail address').fill('ann@company.example');
	await page.getByRole('link', {name: 'Continue with Company & <i>Sons</i>'}).waitFor();
	await axe(page);
	await page.getByRole('link', {name: 'Continue with Company & <i>Sons</i>'}).click();
	await heading(page, 'Your account');
	await page.getByText('ann@company.example').first().waitFor();
	await page.getByText('You signed in by your identity provider').waitFor();
	await axe(page);
	await leave(page);

	await provider.control({mode: 'denied'});
	await page.getByLabel('Mail address').fill('ann@company.example');
	await page.getByRole('link', {name: 'Continue with'}).click();
	await page.getByText('The identity provider has refused the sign-in.').waitFor();
	await axe(page, DARK);
});

if (noSaml)
	test('an identity provider that speaks SAML', {skip: noSaml}, () => {});
else
	check(server, 'an identity provider that speaks SAML', async ({page}) => {
		const settings = await server.api('GET', `/orgs/${server.orgId}/federationSettings`), base = `/federationSettings/${settings.id}`;
		const {oktaIdpId} = (await server.api('GET', `${base}/identityProviders`)).results.find(p => p.protocol === 'SAML');
		await server.api('PATCH', `${base}/identityProviders/${oktaIdpId}`, {displayName: 'Works & <i>Daughters</i>', ssoDebugEnabled: false, issuerUri: saml.issuer, ssoUrl: saml.sso,
			status: 'ACTIVE', associatedDomains: ['works.example'], pemFileInfo: {fileName: 'x', certificates: [{content: saml.certificate}]}});
		await server.api('PATCH', `${base}/connectedOrgConfigs/${server.orgId}`, {domainRestrictionEnabled: false, identityProviderId: oktaIdpId});
		approve('works.example');
		const metadata = await server.api('GET', `${base}/identityProviders/${oktaIdpId}/metadata.xml`);
		await saml.control({metadata, name: 'sam@works.example', attributes: {firstName: ['Sam <b>bold</b>'], lastName: ['Lee']}});

		const click = async () => {
			await page.getByLabel('Mail address').fill('sam@works.example');
			await page.getByRole('link', {name: 'Continue with Works & <i>Daughters</i>'}).click();
		};
		await page.goto('/console/account?x=1');
		await heading(page, 'Sign in');
		await click();
		await heading(page, 'Your account');
		assert.equal(page.url(), `${server.url}/console/account?x=1`);
		await page.getByText('sam@works.example').first().waitFor();
		await page.getByText('Sam <b>bold</b> Lee').waitFor();
		await page.getByText('You signed in by your identity provider').waitFor();
		assert.equal((await page.evaluate(async () => (await fetch('/api/session')).json())).session.method, 'saml');
		await leave(page);

		await saml.control({key: 'other'}); // an answer that somebody else has signed
		await click();
		await page.getByRole('alert').waitFor();
		assert.ok((await page.context().cookies()).every(c => c.name !== '__Host-steward'));
	});

check(server, 'sessions are listed, and one that is ended ends at once', async ({page}) => {
	await enter(page, '/console/account');
	const sessions = page.getByRole('table', {name: 'Where you are signed in'});
	await sessions.getByText('this one').waitFor();

	const watching = await newPage(server);
	await enter(watching, '/console/account');
	await watching.locator('[data-live=live]').waitFor();
	const deaf = await newPage(server); // which does not hear the stream: the next call must tell it
	await deaf.route('**/api/console/events*', route => route.abort());
	deaf.allow(/console\/events/);
	await enter(deaf, '/console/account');

	await page.reload();
	await until('all sessions are listed', async () => await sessions.locator('tbody tr').count() >= 3);
	await page.getByRole('button', {name: 'End all others'}).click();
	await page.getByRole('dialog').getByRole('button', {name: 'End all others'}).click();
	await until('one session is left', async () => await sessions.locator('tbody tr').count() === 1);

	await heading(watching, 'Sign in');
	await deaf.getByRole('button', {name: 'Change password'}).click();
	await deaf.getByRole('dialog').getByLabel('Password now').fill('x');
	await deaf.getByRole('dialog').getByLabel('New password').fill('yet another long password');
	await deaf.getByRole('dialog').getByRole('button', {name: 'Change password'}).click();
	await heading(deaf, 'Sign in');
	await page.reload();
	await sessions.getByText('this one').waitFor();
	for (const p of [watching, deaf]) {
		p.verify();
		await p.context().close();
	}
});
