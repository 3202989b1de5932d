import {html, useState} from '../lib.js';
import {t} from '../texts.js';
import {send} from '../api.js';
import {Field, Form, Input, Link, Notice, Page} from '../ui/index.js';

export default function Forgotten({query}) {
	const [username, setUsername] = useState(query.username ?? ''), [sent, setSent] = useState(false);
	const submit = async () => {
		await send('POST', '/api/session/forgotten', {username: username.trim()});
		setSent(true);
	};
	return html`<${Page} title=${t('forgotten.title')} facts=${!sent && t('forgotten.text')}>
		${sent ? html`<${Notice} kind="ok">${t('forgotten.sent', {username: username.trim()})}<//>` : html`<${Form} onSubmit=${submit} submit=${t('forgotten.go')}>
			<${Field} name="username" label=${t('signIn.username')}><${Input} type="email" value=${username} onInput=${setUsername} autocomplete="username" autofocus /><//><//>`}
		<p class="after-form"><${Link} to="/sign-in">${t('signIn.title')}<//></p><//>`;
}
