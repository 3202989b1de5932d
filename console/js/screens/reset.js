import {html, useState} from '../lib.js';
import {t} from '../texts.js';
import {send} from '../api.js';
import {loadSession} from '../session.js';
import {Form, Page, Link, go} from '../ui/index.js';
import {NewPassword, SecondStep} from './parts/password.js';

export default function Reset({params}) {
	const [password, setPassword] = useState(''), [ticket, setTicket] = useState(null);
	const done = async () => {
		await loadSession();
		go('/', {replace: true});
	};
	const submit = async () => {
		const answer = await send('POST', '/api/session/reset', {token: params.token, password});
		if (answer?.next === 'TOTP')
			setTicket(answer.ticket);
		else
			await done();
	};
	if (ticket)
		return html`<${Page} title=${t('signIn.second')}><${SecondStep} ticket=${ticket} onDone=${done} /><//>`;
	return html`<${Page} title=${t('reset.title')}><${Form} onSubmit=${submit} submit=${t('reset.go')}><${NewPassword} value=${password} onInput=${setPassword} /><//>
		<p class="after-form"><${Link} to="/forgotten">${t('reset.again')}<//></p><//>`;
}
