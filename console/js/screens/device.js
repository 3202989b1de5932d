/* A client without a browser, the command line, asks to act for whoever is signed in here (RFC 8628). */
import {html, useState} from '../lib.js';
import {t, time} from '../texts.js';
import {get, send} from '../api.js';
import {useSession} from '../session.js';
import {Button, Empty, Facts, Field, Form, Input, Notice, Page, go, useLoad} from '../ui/index.js';

function Ask() {
	const [code, setCode] = useState('');
	return html`<${Page} title=${t('device.title')} facts=${t('device.askText')}><${Form} submit=${t('device.next')} disabled=${!code.trim()}
		onSubmit=${async () => go(`/device?code=${encodeURIComponent(code.trim())}`)}>
		<${Field} name="code" label=${t('device.code')}><${Input} value=${code} onInput=${setCode} mono autofocus autocomplete="off" /><//><//><//>`;
}

function Decide({code}) {
	const {data, error} = useLoad(signal => get(`/api/session/device/${encodeURIComponent(code.replace(/\s/g, ''))}`, {signal}), [code]);
	const [answered, setAnswered] = useState(null), who = useSession();
	const decide = async allow => {
		await send('POST', '/api/session/device', {code: data.code, allow});
		setAnswered(allow);
	};
	if (answered !== null)
		return html`<${Page} title=${t('device.title')}><${Empty} title=${t(answered ? 'device.allowed' : 'device.refused')} text=${t(answered ? 'device.allowedText' : 'device.refusedText')} /><//>`;
	if (error)
		return html`<${Page} title=${t('device.title')}><${Empty} title=${t('device.over')} text=${t('device.overText')} action=${html`<${Button} kind="go" to="/device">${t('device.again')}<//>`} /><//>`;
	if (!data)
		return html`<${Page} title=${t('device.title')} />`;
	return html`<${Page} title=${t('device.title')} facts=${t('device.text', {name: who?.user?.username ?? ''})}>
		<${Facts} items=${[[t('device.code'), html`<code>${data.code}</code>`], [t('device.from'), data.address], [t('device.agent'), data.agent], [t('invitation.until'), time(data.expiresAt)]]} />
		${!data.sameAddress && html`<${Notice} kind="warn">${t('device.elsewhere')}<//>`}
		<${Form} onSubmit=${() => decide(true)} submit=${t('device.allow')} others=${html`<${Button} onClick=${() => decide(false)}>${t('device.refuse')}<//>`} /><//>`;
}

export default function Device({query}) {
	return query.code ? html`<${Decide} key=${query.code} code=${query.code} />` : html`<${Ask} />`;
}
