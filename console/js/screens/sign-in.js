import {html, useEffect, useState} from '../lib.js';
import {t, hasText} from '../texts.js';
import {get, send} from '../api.js';
import {afterSignIn, loadSession} from '../session.js';
import {canUse, signInByPasskey} from '../passkeys.js';
import {Button, Field, Form, Input, Link, Notice, Page, errorText} from '../ui/index.js';
import {SecondStep} from './parts/password.js';

/* The identity providers of a name's domain; asked when the name looks complete. */
function useProviders(username) {
	const [list, setList] = useState([]);
	useEffect(() => {
		const stop = new AbortController();
		if (!/@[^@\s]+$/.test(username)) {
			setList([]);
			return undefined;
		}
		const timer = setTimeout(() => get('/api/session/providers', {query: {username}, signal: stop.signal}).then(a => setList(a.results), () => {}), 200);
		return () => {
			clearTimeout(timer);
			stop.abort();
		};
	}, [username]);
	return list;
}

function Passkey({onDone}) {
	const [error, setError] = useState(null), [busy, setBusy] = useState(false);
	const run = async () => {
		setBusy(true);
		setError(null);
		try {
			if (await signInByPasskey())
				await onDone();
		} catch (e) {
			setError(e);
		}
		setBusy(false);
	};
	return html`<${Button} busy=${busy} icon="key" onClick=${run}>${t('signIn.passkey')}<//>${error && html`<${Notice} kind="bad">${errorText(error)}<//>`}`;
}

export default function SignIn({query}) {
	const [username, setUsername] = useState(query.username ?? ''), [password, setPassword] = useState(''), [ticket, setTicket] = useState(null);
	const providers = useProviders(username.trim());
	const to = encodeURIComponent(afterSignIn(query.to));
	const submit = async () => {
		let answer;
		try {
			answer = await send('POST', '/api/session/password', {username: username.trim(), password});
		} catch (e) {
			document.querySelector('input[name=password]')?.focus();
			throw e;
		} finally {
			setPassword('');
		}
		if (answer?.next === 'TOTP')
			setTicket(answer.ticket);
		else
			await loadSession();
	};
	if (ticket)
		return html`<${Page} title=${t('signIn.second')}><${SecondStep} ticket=${ticket} onDone=${loadSession} onBack=${() => setTicket(null)} /><//>`;
	const fault = query.fault && (hasText(`signIn.fault.${query.fault}`) ? t(`signIn.fault.${query.fault}`) : t('signIn.fault'));
	return html`<${Page} title=${t('signIn.title')}>
		${fault && html`<${Notice} kind="bad">${fault}<//>`}
		<${Form} onSubmit=${submit} submit=${t('signIn.go')}>
			<${Field} name="username" label=${t('signIn.username')}><${Input} value=${username} onInput=${setUsername} type="email" autocomplete="username webauthn" autofocus /><//>
			<${Field} name="password" label=${t('signIn.password')}><${Input} value=${password} onInput=${setPassword} type="password" autocomplete="current-password" /><//>
		<//>
		<p class="after-form"><${Link} to="/forgotten" query=${{username}}>${t('signIn.forgotten')}<//></p>
		${(canUse() || providers.length > 0) && html`<div class="or">${t('signIn.or')}</div><div class="stack" aria-live="polite">
			${providers.map(p => html`<a class="btn" key=${p.id} href=${`/api/session/${p.protocol === 'SAML' ? 'saml' : 'oidc'}/${encodeURIComponent(p.id)}?to=${to}`}>${t('signIn.provider', {name: p.displayName})}</a>`)}
			${canUse() && html`<${Passkey} onDone=${loadSession} />`}</div>`}<//>`;
}
