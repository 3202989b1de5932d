/* The settings of an organization. */
import {html, call, go, useState, useLoad, useEffect, Page, Card, Form, Field, Input, Fault, Button, ConfirmDanger, Copy, say, words,
	loadSession, useMay} from './parts/kit.js';
import {Switches} from './parts/settings.js';

const w = words('orgSettings');

function Name({orgId, org, reload}) {
	const [name, setName] = useState(org.name);
	useEffect(() => setName(org.name), [org.name]);
	return html`<${Card} title=${w('about')}><${Form} op="updateOrg" submit=${w('save')} label=${w('about')} disabled=${name === org.name}
		onSubmit=${async () => { await call('updateOrg', {orgId}, {body: {name: name.trim()}}); say(w('saved')); loadSession().catch(() => null); reload(); }}>
		<${Field} label=${w('name')} name="name"><${Input} value=${name} onInput=${setName} maxlength="64" /><//><p class="dim">${w('id')} <span
			class="mono">${org.id}</span> <${Copy} bare text=${org.id} label=${w('id')} /></p><//><//>`;
}

function Contacts({orgId, settings, reload}) {
	const [security, setSecurity] = useState(settings.securityContact ?? ''),
		[operations, setOperations] = useState(settings.operationsContact ?? ''),
		[hours, setHours] = useState(settings.maxServiceAccountSecretValidityInHours);
	const store = async () => {
		await call('updateOrgSettings', {orgId}, {body: {...(security && {securityContact: security}),
			...(operations && {operationsContact: operations}), ...(hours && {maxServiceAccountSecretValidityInHours: hours})}});
		say(w('saved'));
		reload();
	};
	return html`<${Card} title=${w('more')}><${Form} op="updateOrgSettings" submit=${w('save')} onSubmit=${store} label=${w('more')}><${Field} label=${w('securityContact')}
		name="securityContact" hint=${w('optional')}><${Input} type="email" value=${security} onInput=${setSecurity} /><//>
		<${Field} label=${w('operationsContact')} name="operationsContact" hint=${w('optional')}><${Input} type="email" value=${operations}
			onInput=${setOperations} /><//><${Field} label=${w('secretHours')} name="maxServiceAccountSecretValidityInHours"
			hint=${w('optional')}><${Input} type="number" min="8" value=${hours} onInput=${setHours} /><//><//><//>`;
}

export default function Screen({params: {orgId}}) {
	const [ask, setAsk] = useState(false), may = useMay();
	const {data, error, reload} = useLoad(async () => {
		const [org, settings] = await Promise.all([call('getOrg', {orgId}), call('getOrgSettings', {orgId})]);
		return {org, settings};
	}, [orgId], {key: `org ${orgId}`});
	const change = async (key, value) => {
		await call('updateOrgSettings', {orgId}, {body: {[key]: value}});
		reload();
	};
	const rows = ['apiAccessListRequired', 'multiFactorAuthRequired', 'restrictEmployeeAccess'].map(k => [k, w(k), w(`${k}.help`)]);
	return html`<${Page} title=${w('title')} needs="updateOrg"><${Fault} error=${error} retry=${reload}
		/>${data && html`<div class="stack narrow"><${Name} orgId=${orgId} org=${data.org} reload=${reload} />
		<${Card} title=${w('security')}><${Switches} op="updateOrgSettings" values=${data.settings} rows=${rows} onChange=${change} /><//><${Contacts} key=${orgId}
			orgId=${orgId} settings=${data.settings} reload=${reload} />
		${may('deleteOrg') && html`<${Card} title=${w('danger')}><p>${w('deleteText')}</p><${Button} kind="danger" onClick=${() => setAsk(true)}>${w('delete')}<//><//>`}</div>
		${ask && html`<${ConfirmDanger} title=${w('deleteTitle', {name: data.org.name})} text=${w('deleteText')} name=${data.org.name}
			action=${w('delete')} onClose=${() => setAsk(false)} onConfirm=${async () =>
			{ await call('deleteOrg', {orgId}); await loadSession().catch(() => null); go('/orgs'); }} />`}`}<//>`;
}
