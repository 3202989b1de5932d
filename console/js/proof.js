/* Once more who it is. What would outlive a stolen session (factors, keys, members) is done only by who has shown that within the last
 * minutes: the call that is refused for it waits here, and is made again. */
import {html, store, useEffect, useState} from './lib.js';
import {t} from './texts.js';
import {get, send, whenProofNeeded} from './api.js';
import {session} from './session.js';
import {canUse, proveByPasskey} from './passkeys.js';
import {Button, Dialog, Field, Form, Input, Notice, errorText} from './ui/index.js';

const asked = store(null);
let pending = null;

/* One dialog for all calls that wait. */
function ask() {
	pending ??= new Promise(done => asked.set({done: shown => {
		pending = null;
		asked.set(null);
		done(shown);
	}}));
	return pending;
}

whenProofNeeded(ask);

/* Of a session that an identity provider has begun: that provider signs in again. */
function Providers({username}) {
	const [list, setList] = useState([]);
	useEffect(() => {
		get('/api/session/providers', {query: {username}}).then(a => setList(a.results), () => {});
	}, [username]);
	const to = encodeURIComponent(location.pathname);
	return html`<p>${t('proof.federated')}</p><div class="stack">${list.map(p => html`<a class="btn" key=${p.id} href=${`/api/session/${p.protocol === 'SAML' ? 'saml' : 'oidc'}/${encodeURIComponent(p.id)}?to=${to}`}>${t('signIn.provider', {name: p.displayName})}</a>`)}</div>`;
}

function Passkey({onDone}) {
	const [error, setError] = useState(null);
	const run = async () => {
		setError(null);
		try {
			if (await proveByPasskey())
				onDone();
		} catch (e) {
			setError(e);
		}
	};
	return html`<${Button} icon="key" onClick=${run}>${t('proof.passkey')}<//>${error && html`<${Notice} kind="bad">${errorText(error)}<//>`}`;
}

function Own({security, onDone, onClose}) {
	const [code, setCode] = useState(!security.password), [value, setValue] = useState('');
	const submit = async () => {
		await send('POST', '/api/session/proof', code ? {code: value.replace(/\s/g, '')} : {password: value});
		onDone();
	};
	const swap = () => {
		setValue('');
		setCode(!code);
	};
	const typed = security.password || security.totp;
	return html`<p class="dim">${t('proof.text')}</p>
		${typed && html`<${Form} key=${code ? 'code' : 'password'} onSubmit=${submit} submit=${t('proof.go')} onCancel=${onClose}
			others=${security.password && security.totp && html`<${Button} kind="text" onClick=${swap}>${t(code ? 'proof.usePassword' : 'proof.useCode')}<//>`}>
			${code ? html`<${Field} name="code" label=${t('signIn.code')}><${Input} value=${value} onInput=${setValue} mono autofocus autocomplete="one-time-code" inputmode="numeric" /><//>`
		: html`<${Field} name="password" label=${t('signIn.password')}><${Input} type="password" value=${value} onInput=${setValue} autofocus autocomplete="current-password" /><//>`}<//>`}
		${security.passkeys > 0 && canUse() && html`<div class="stack"><${Passkey} onDone=${onDone} /></div>`}`;
}

/* Stands beside the page, in front of whatever dialog is open. */
export function Proof() {
	const waits = asked.use(), who = session.use();
	if (!waits || !who)
		return null;
	const close = () => waits.done(false);
	return html`<${Dialog} title=${t('proof.title')} onClose=${close}>${['oidc', 'saml'].includes(who.session.method) ? html`<${Providers} username=${who.user.username} />`
		: html`<${Own} security=${who.security} onDone=${() => waits.done(true)} onClose=${close} />`}<//>`;
}
