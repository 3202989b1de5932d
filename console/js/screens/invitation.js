/* The link of an invitation's letter: accepting it ends in the console. */
import {html, useState} from '../lib.js';
import {t, time} from '../texts.js';
import {get, send} from '../api.js';
import {loadSession, useSession} from '../session.js';
import {Button, Empty, Facts, Field, Form, Input, Page, go, useLoad} from '../ui/index.js';
import {NewPassword, SecondStep} from './parts/password.js';
import {roleNames} from './parts/roles.js';

export default function Invitation({params}) {
	const path = `/api/invitations/${encodeURIComponent(params.token)}`, who = useSession();
	const {data, error} = useLoad(signal => get(path, {signal}), [path]);
	const [form, setForm] = useState({}), [ended, setEnded] = useState(false), [ticket, setTicket] = useState(null);
	const put = name => value => setForm(f => ({...f, [name]: value}));
	const arrive = async () => {
		if (await loadSession())
			go('/', {replace: true});
		else
			go(`/sign-in?username=${encodeURIComponent(data.username)}`, {replace: true});
	};
	const accept = async () => {
		const body = {password: form.password ?? ''};
		for (const name of ['firstName', 'lastName'])
			if (!data.hasAccount && form[name]?.trim())
				body[name] = form[name].trim();
		const answer = await send('POST', path, body);
		if (answer?.next === 'TOTP')
			setTicket(answer.ticket);
		else
			await arrive();
	};
	const decline = async () => {
		await send('DELETE', path);
		setEnded(true);
	};
	if (ticket)
		return html`<${Page} title=${t('signIn.second')}><${SecondStep} ticket=${ticket} onDone=${arrive} /><//>`;
	if (ended)
		return html`<${Page} title=${t('invitation.title')}><${Empty} title=${t('invitation.declined')} /><//>`;
	if (error)
		return html`<${Page} title=${t('invitation.title')}><${Empty} title=${t('invitation.over')} text=${t('invitation.overText')}
			action=${html`<${Button} kind="go" to=${who ? '/' : '/sign-in'}>${t(who ? 'lost.home' : 'signIn.title')}<//>`} /><//>`;
	if (!data)
		return html`<${Page} title=${t('invitation.title')} />`;
	return html`<${Page} title=${t('invitation.title')} facts=${data.inviterUsername && t('invitation.by', {name: data.inviterUsername})}>
		<${Facts} items=${[[t('invitation.to'), data.groupName ?? data.orgName], [t('invitation.as'), data.username], [t('invitation.until'), data.expiresAt && time(data.expiresAt)],
			[t('invitation.roles'), roleNames(data.roles)]]} />
		<${Form} onSubmit=${accept} submit=${t('invitation.accept')} others=${html`<${Button} onClick=${decline}>${t('invitation.decline')}<//>`}>
			<input type="text" class="hidden" name="username" autocomplete="username" value=${data.username} readonly tabindex="-1" aria-hidden="true" />
			${!data.hasAccount && html`<div class="row"><${Field} name="firstName" label=${t('firstName')}><${Input} value=${form.firstName} onInput=${put('firstName')} autocomplete="given-name" /><//>
				<${Field} name="lastName" label=${t('lastName')}><${Input} value=${form.lastName} onInput=${put('lastName')} autocomplete="family-name" /><//></div>`}
			${data.hasPassword ? html`<${Field} name="password" label=${t('signIn.password')} help=${t('invitation.known')}><${Input} type="password" value=${form.password} onInput=${put('password')}
				autocomplete="current-password" /><//>` : html`<${NewPassword} value=${form.password} onInput=${put('password')} label=${t('signIn.password')} />`}<//><//>`;
}
