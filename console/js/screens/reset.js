import {html, useState} from '../lib.js';
import {t} from '../texts.js';
import {send} from '../api.js';
import {loadSession} from '../session.js';
import {Button, Form, Page, Link, Time, go} from '../ui/index.js';
import {NewPassword, SecondStep} from './parts/password.js';

/* What a thief may have added to the account is gone; what is left is for its owner to look at. */
function Factors({title, list}) {
	return list.length > 0 && html`<p>${title}</p><ul data-factors="">${list.map(f => html`<li key=${f.kind + f.name}>${t(`reset.kind.${f.kind}`)}${f.name && html` <b>${f.name}</b>`} <${Time} at=${f.addedAt} /></li>`)}</ul>`;
}

export default function Reset({params}) {
	const [password, setPassword] = useState(''), [ticket, setTicket] = useState(null);
	const [found, setFound] = useState(null);
	const done = async answer => {
		if (answer?.removed?.length || answer?.kept?.length) {
			setFound(answer);
			return;
		}
		await loadSession();
		go('/', {replace: true});
	};
	const submit = async () => {
		const answer = await send('POST', '/api/session/reset', {token: params.token, password});
		if (answer?.next === 'TOTP')
			setTicket(answer.ticket);
		else
			await done(answer);
	};
	if (ticket)
		return html`<${Page} title=${t('signIn.second')}><${SecondStep} ticket=${ticket} onDone=${() => done()} /><//>`;
	if (found)
		return html`<${Page} title=${t('reset.found')}><${Factors} title=${t('reset.removed')} list=${found.removed} /><${Factors} title=${t('reset.kept')} list=${found.kept} />
			<div class="acts"><${Button} kind="go" onClick=${async () => { await loadSession(); go('/account', {replace: true}); }}>${t('reset.account')}<//></div><//>`;
	return html`<${Page} title=${t('reset.title')}><${Form} onSubmit=${submit} submit=${t('reset.go')}><${NewPassword} value=${password} onInput=${setPassword} /><//>
		<p class="after-form"><${Link} to="/forgotten">${t('reset.again')}<//></p><//>`;
}
