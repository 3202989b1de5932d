/* A new password, with a way to see it, and the second step of signing in. */
import {html, useState} from '../../lib.js';
import {t} from '../../texts.js';
import {send} from '../../api.js';
import {Button, Check, Field, Form, Input} from '../../ui/index.js';

export function NewPassword({value, onInput, name = 'password', label}) {
	const [shown, setShown] = useState(false);
	return html`<${Field} name=${name} label=${label ?? t('password.new')} help=${t('password.help')}><${Input} type=${shown ? 'text' : 'password'} value=${value} onInput=${onInput}
		autocomplete="new-password" /><//><${Check} checked=${shown} onInput=${setShown} label=${t('password.show')} />`;
}

/* A code of the authenticator app, or one of the recovery codes. onDone() after the sign-in. */
export function SecondStep({ticket, onDone, onBack}) {
	const [code, setCode] = useState(''), [recovery, setRecovery] = useState(false);
	const submit = async () => {
		await send('POST', recovery ? '/api/session/recovery' : '/api/session/totp', {ticket, code: recovery ? code.trim() : code.replace(/\s/g, '')});
		await onDone();
	};
	const swap = () => {
		setCode('');
		setRecovery(!recovery);
	};
	return html`<${Form} key=${recovery ? 'recovery' : 'totp'} onSubmit=${submit} submit=${t('signIn.go')} others=${html`<${Button} kind="text" onClick=${swap}>${t(recovery ? 'signIn.useApp' : 'signIn.useRecovery')}<//>
			${onBack && html`<${Button} kind="text" onClick=${onBack}>${t('signIn.back')}<//>`}`}>
		<${Field} name="code" label=${t(recovery ? 'signIn.recoveryCode' : 'signIn.code')} help=${t(recovery ? 'signIn.recoveryHelp' : 'signIn.codeHelp')}>
			<${Input} value=${code} onInput=${setCode} mono autofocus autocomplete=${recovery ? 'off' : 'one-time-code'} inputmode=${recovery ? undefined : 'numeric'} /><//><//>`;
}
