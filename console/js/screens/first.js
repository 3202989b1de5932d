/* The link that the first start prints: sets the first owner's password, once. */
import {html, useState} from '../lib.js';
import {t} from '../texts.js';
import {get, send} from '../api.js';
import {loadSession} from '../session.js';
import {Button, Empty, Field, Form, Input, Page, go, useLoad} from '../ui/index.js';
import {NewPassword} from './parts/password.js';

export default function First({params}) {
	const {data, error} = useLoad(signal => get(`/api/session/first/${encodeURIComponent(params.token)}`, {signal}), [params.token]);
	const [form, setForm] = useState({});
	const put = name => value => setForm(f => ({...f, [name]: value}));
	const submit = async () => {
		const body = {token: params.token, password: form.password ?? '', username: (form.username ?? data?.username ?? '').trim()};
		for (const name of ['firstName', 'lastName'])
			if (form[name]?.trim())
				body[name] = form[name].trim();
		await send('POST', '/api/session/first', body);
		await loadSession();
		go('/', {replace: true});
	};
	if (error)
		return html`<${Page} title=${t('first.title')}><${Empty} title=${t('first.over')} text=${t('first.overText')} action=${html`<${Button} kind="go" to="/sign-in">${t('signIn.title')}<//>`} /><//>`;
	return html`<${Page} title=${t('first.title')} facts=${t('first.text')}><${Form} onSubmit=${submit} submit=${t('first.go')} disabled=${!data}>
		<${Field} name="username" label=${t('signIn.username')} help=${t('first.username')}><${Input} type="email" value=${form.username ?? data?.username ?? ''} onInput=${put('username')} autocomplete="username" /><//>
		<div class="row"><${Field} name="firstName" label=${t('firstName')} hint=${t('optional')}><${Input} value=${form.firstName} onInput=${put('firstName')} autocomplete="given-name" /><//>
			<${Field} name="lastName" label=${t('lastName')} hint=${t('optional')}><${Input} value=${form.lastName} onInput=${put('lastName')} autocomplete="family-name" /><//></div>
		<${NewPassword} value=${form.password} onInput=${put('password')} label=${t('signIn.password')} /><//><//>`;
}
