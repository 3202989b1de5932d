/* The own account: how one signs in, and where one is signed in. */
import {html, useEffect, useState} from '../lib.js';
import {t} from '../texts.js';
import {get, send} from '../api.js';
import {highest, loadSession, useSession} from '../session.js';
import {canUse, addPasskey} from '../passkeys.js';
import {qrPath} from '../qr.js';
import {Button, Card, ConfirmDanger, Copy, Dialog, Empty, Facts, Field, Form, Input, Notice, Page, Segments, Table, Time, errorText, say, useLoad} from '../ui/index.js';
import {NewPassword} from './parts/password.js';
import {roleName} from './parts/roles.js';

const grouped = secret => secret.replace(/(.{4})(?=.)/g, '$1 ');

function Password({has}) {
	const [open, setOpen] = useState(false), [form, setForm] = useState({});
	const put = name => value => setForm(f => ({...f, [name]: value}));
	const close = () => {
		setOpen(false);
		setForm({});
	};
	const submit = async () => {
		await send('POST', '/api/session/change-password', {old: form.old ?? '', new: form.new ?? ''});
		close();
		say(t('account.passwordChanged'));
	};
	return html`<${Card} title=${t('account.password')} actions=${has && html`<${Button} small onClick=${() => setOpen(true)}>${t('account.changePassword')}<//>`}>
		<p>${t(has ? 'account.passwordText' : 'account.noPassword')}</p>
		${open && html`<${Dialog} title=${t('account.changePassword')} onClose=${close}><${Form} onSubmit=${submit} submit=${t('account.changePassword')} onCancel=${close}>
			<${Field} name="old" label=${t('account.oldPassword')}><${Input} type="password" value=${form.old} onInput=${put('old')} autocomplete="current-password" /><//>
			<${NewPassword} name="new" value=${form.new} onInput=${put('new')} /><//><//>`}<//>`;
}

function Codes({codes, onClose}) {
	const text = codes.join('\n');
	return html`<${Dialog} once title=${t('account.codesTitle')} onClose=${onClose}><${Notice} kind="warn">${t('account.codesText')}<//>
		<ul class="codes" data-codes="">${codes.map(c => html`<li key=${c}>${c}</li>`)}</ul>
		<div class="acts"><${Copy} bare text=${text} label=${t('account.codesTitle')} /><${Button} kind="go" onClick=${onClose}>${t('account.codesKept')}<//></div><//>`;
}

function Qr({text}) {
	const picture = qrPath(text);
	return html`<svg class="qr" role="img" aria-label=${t('account.totpQr')} viewBox=${picture.box} shape-rendering="crispEdges"><path d=${picture.path} /></svg>`;
}

function Enrol({onDone, onClose}) {
	const {data, error} = useLoad(() => send('POST', '/api/session/totp/enroll', {}), []);
	const [code, setCode] = useState('');
	const submit = async () => onDone((await send('POST', '/api/session/totp/confirm', {code: code.replace(/\s/g, '')})).recoveryCodes);
	return html`<${Dialog} title=${t('account.totpSet')} onClose=${onClose}>
		${error && html`<${Notice} kind="bad">${errorText(error)}<//>`}
		${data && html`<p>${t('account.totpScan')}</p><${Qr} text=${data.uri} />
			<${Copy} text=${data.secret} label=${t('account.totpSecret')}><span data-secret="">${grouped(data.secret)}</span><//>
			<details><summary>${t('account.totpLink')}</summary><${Copy} text=${data.uri} label=${t('account.totpLink')} /></details>
			<${Form} onSubmit=${submit} submit=${t('account.totpConfirm')} onCancel=${onClose}><${Field} name="code" label=${t('signIn.code')}><${Input} value=${code} onInput=${setCode} mono
				autocomplete="one-time-code" inputmode="numeric" /><//><//>`}<//>`;
}

/* The password once more, for what makes signing in weaker or shows codes. */
function Again({title, text, action, onSubmit, onClose}) {
	const [password, setPassword] = useState('');
	return html`<${Dialog} title=${title} onClose=${onClose}><${Form} onSubmit=${() => onSubmit({password})} submit=${action} onCancel=${onClose}>
		${text && html`<p class="dim">${text}</p>`}<${Field} name="password" label=${t('signIn.password')}><${Input} type="password" value=${password} onInput=${setPassword} autocomplete="current-password" autofocus /><//><//><//>`;
}

function Totp({security, onChanged}) {
	const [shown, setShown] = useState(null), [codes, setCodes] = useState(null);
	const close = () => setShown(null);
	const got = list => {
		close();
		setCodes(list);
		onChanged();
	};
	const off = async body => {
		await send('DELETE', '/api/session/totp', body);
		close();
		onChanged();
		say(t('account.totpGone'));
	};
	const fresh = async body => {
		await send('POST', '/api/session/proof', body);
		got((await send('POST', '/api/session/recovery-codes', {})).recoveryCodes);
	};
	return html`<${Card} title=${t('account.totp')} actions=${security.totp ? html`<${Button} small onClick=${() => setShown('codes')}>${t('account.newCodes')}<//><${Button} small kind="danger"
			onClick=${() => setShown('off')}>${t('account.totpOff')}<//>` : html`<${Button} small kind="go" onClick=${() => setShown('enrol')}>${t('account.totpSet')}<//>`}>
		<p>${security.totp ? t('account.totpOn', {n: security.recoveryCodesLeft ?? 0}) : t('account.totpNone')}</p>
		${shown === 'enrol' && html`<${Enrol} onDone=${got} onClose=${close} />`}
		${shown === 'off' && html`<${Again} title=${t('account.totpOff')} text=${t('account.totpOffText')} action=${t('account.totpOff')} onSubmit=${off} onClose=${close} />`}
		${shown === 'codes' && html`<${Again} title=${t('account.newCodes')} text=${t('account.newCodesText')} action=${t('account.newCodes')} onSubmit=${fresh} onClose=${close} />`}
		${codes && html`<${Codes} codes=${codes} onClose=${() => setCodes(null)} />`}<//>`;
}

function Passkeys({onChanged}) {
	const {data, error, reload} = useLoad(signal => get('/api/session/passkeys', {signal}), [], {key: 'passkeys'});
	const [adding, setAdding] = useState(false), [going, setGoing] = useState(null), [name, setName] = useState('');
	const changed = async () => {
		await reload();
		onChanged();
	};
	const add = async () => {
		if (await addPasskey(name.trim() || t('account.passkeyName'))) {
			setAdding(false);
			setName('');
			await changed();
			say(t('account.passkeyAdded'));
		}
	};
	const columns = [{key: 'name', label: t('name')}, {key: 'createdAt', label: t('account.made'), cell: p => html`<${Time} at=${p.createdAt} />`},
		{key: 'lastUsedAt', label: t('account.used'), cell: p => html`<${Time} at=${p.lastUsedAt} kind="ago" />`},
		{key: 'act', label: '', sort: false, align: 'right', cell: p => html`<${Button} small kind="danger" aria-label=${t('account.passkeyRemoveNamed', {name: p.name})} onClick=${() => setGoing(p)}>${t('remove')}<//>`}];
	return html`<${Card} flush title=${t('account.passkeys')} actions=${canUse() && html`<${Button} small onClick=${() => setAdding(true)}>${t('account.passkeyAdd')}<//>`}>
		${error && html`<div class="card-body"><${Notice} kind="bad">${errorText(error)}<//></div>`}
		<${Table} label=${t('account.passkeys')} columns=${columns} rows=${data?.results ?? (error ? [] : undefined)} empty=${html`<${Empty} title=${t('account.passkeyNone')} text=${t('account.passkeyText')} />`} />
		${adding && html`<${Dialog} title=${t('account.passkeyAdd')} onClose=${() => setAdding(false)}><${Form} onSubmit=${add} submit=${t('account.passkeyAdd')} onCancel=${() => setAdding(false)}>
			<${Field} name="name" label=${t('name')} help=${t('account.passkeyHelp')}><${Input} value=${name} onInput=${setName} placeholder=${t('account.passkeyName')} autofocus /><//><//><//>`}
		${going && html`<${ConfirmDanger} title=${t('account.passkeyRemove')} text=${t('account.passkeyRemoveNamed', {name: going.name})} action=${t('remove')} onClose=${() => setGoing(null)}
			onConfirm=${async () => { await send('DELETE', `/api/session/passkeys/${going.id}`); await changed(); }} />`}<//>`;
}

const agentName = agent => {
	const browser = /(Edg|OPR|Firefox|Chrome|Safari)\//.exec(agent ?? '')?.[1], system = /(Windows|Mac OS X|Android|iPhone|iPad|Linux|CrOS)/.exec(agent ?? '')?.[1];
	return browser ? [{Edg: 'Edge', OPR: 'Opera'}[browser] ?? browser, {'Mac OS X': 'macOS', CrOS: 'ChromeOS'}[system] ?? system].filter(Boolean).join(', ') : agent || '—';
};

function Sessions() {
	const {data, reload} = useLoad(signal => get('/api/session/sessions', {signal}), [], {key: 'sessions'});
	const [all, setAll] = useState(false);
	const end = async s => {
		await send('DELETE', `/api/session/sessions/${s.id}`);
		say(t('account.sessionEnded'));
		await reload();
	};
	const columns = [{key: 'agent', label: t('account.where'), value: s => agentName(s.agent), cell: s => html`<span title=${s.agent}>${agentName(s.agent)}</span>${s.current && html` <span class="ok">${t('account.this')}</span>`}`},
		{key: 'address', label: t('account.address')}, {key: 'createdAt', label: t('account.since'), cell: s => html`<${Time} at=${s.createdAt} />`},
		{key: 'lastUsedAt', label: t('account.used'), cell: s => html`<${Time} at=${s.lastUsedAt} kind="ago" />`},
		{key: 'act', label: '', sort: false, align: 'right', cell: s => !s.current && html`<${Button} small kind="danger" aria-label=${t('account.endNamed', {name: agentName(s.agent)})} onClick=${() => end(s)}>${t('account.end')}<//>`}];
	const others = data?.results.filter(s => !s.current).length;
	return html`<${Card} flush title=${t('account.sessions')} actions=${others > 0 && html`<${Button} small kind="danger" onClick=${() => setAll(true)}>${t('account.endOthers')}<//>`}>
		<${Table} label=${t('account.sessions')} columns=${columns} rows=${data?.results} sort=${['lastUsedAt', -1]} />
		${all && html`<${ConfirmDanger} title=${t('account.endOthers')} text=${t('account.endOthersText', {n: others})} action=${t('account.endOthers')} onClose=${() => setAll(false)}
			onConfirm=${async () => { await send('DELETE', '/api/session/sessions'); await reload(); }} />`}<//>`;
}

function Theme() {
	const [value, setValue] = useState(theme());
	useEffect(() => {
		const follow = () => setValue(theme());
		addEventListener('theme', follow);
		return () => removeEventListener('theme', follow);
	}, []);
	return html`<${Card} title=${t('account.theme')}><${Segments} label=${t('account.theme')} current=${value} onPick=${theme} options=${['system', 'light', 'dark'].map(id => ({id, label: t(`theme.${id}`)}))} /><//>`;
}

export default function Account() {
	const who = useSession();
	return who && html`<${Signed} who=${who} />`;
}

function Signed({who}) {
	const {user, security, roles = [], orgs = []} = who;
	const federated = ['oidc', 'saml'].includes(who.session.method);
	const held = orgs.flatMap(o => highest(roles.filter(r => r.orgId === o.id && !r.groupId).map(r => r.roleName)).map(name => `${roleName(name)} (${o.name})`));
	return html`<${Page} title=${t('account.title')} class="narrow"><${Card} title=${t('account.profile')}><${Facts} items=${[[t('signIn.username'), user.username],
			[t('account.fullName'), [user.firstName, user.lastName].filter(Boolean).join(' ')], [t('account.until'), html`<${Time} at=${who.session.expiresAt} kind="full" />`],
			[t('account.roles'), held.join(', ')]]} /><//>
		${federated ? html`<${Notice}>${t('account.federated')}<//>` : html`<${Password} has=${security.password} /><${Totp} security=${security} onChanged=${loadSession} /><${Passkeys} onChanged=${loadSession} />`}
		<${Sessions} /><${Theme} /><//>`;
}
