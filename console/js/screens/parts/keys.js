/* Service accounts and API keys, of an organization or of a project: what programs sign in with. Secrets are shown once. */
import {html, call, callAll, useState, useLoad, useQuery, setQuery, Tabs, Table, Empty, Fault, Button, Menu, Dialog, DialogForm, ConfirmDanger, Field,
	Input, Select, Choices, Copy, SecretOnce, Time, Notice, say, words, once, useMay} from './kit.js';
import {roleNames, roleOptions} from './roles.js';

const w = words('keys');

/* The same operations have other names in an organization and in a project. */
const OPS = {
	org: {accounts: 'listOrgServiceAccounts', newAccount: 'createOrgServiceAccount', dropAccount: 'deleteOrgServiceAccount',
		secret: 'createOrgSecret', dropSecret: 'deleteOrgSecret', list: 'listOrgAccessList', allow: 'createOrgAccessList',
		forbid: 'deleteOrgAccessEntry',
		getAccount: 'getOrgServiceAccount', keys: 'listOrgApiKeys', newKey: 'createOrgApiKey', dropKey: 'deleteOrgApiKey'},
	group: {accounts: 'listGroupServiceAccounts', newAccount: 'createGroupServiceAccount', dropAccount: 'deleteGroupServiceAccount',
		secret: 'createGroupSecret', dropSecret: 'deleteGroupSecret', list: 'listAccessList', allow: 'createAccessList',
		forbid: 'deleteGroupAccessEntry',
		getAccount: 'getGroupServiceAccount', keys: 'listGroupApiKeys', newKey: 'createGroupApiKey', dropKey: 'removeGroupApiKey'}
};

function Secrets({made, onClose}) {
	return html`<${Dialog} once title=${w('keepTitle')} onClose=${onClose}><p class="dim">${w('keepText')}</p><p>${w(made.key ? 'publicKey' : 'id')}</p><${Copy} text=${made.id}
		label=${w(made.key ? 'publicKey' : 'id')} /><${SecretOnce} label=${w(made.key ? 'privateKey' : 'secret')} text=${made.secret} />
		<div class="acts"><${Button} kind="go" onClick=${onClose}>${w('kept')}<//></div><//>`;
}

const LIFE = once(() => [['8', 'work'], ['168', 'week'], ['720', 'month'], ['2160', 'quarter'],
	['8760', 'year']].map(([value, k]) => ({value, label: w(`for.${k}`)})));

function NewAccount({ops, scope, roles, onClose, onMade}) {
	const [name, setName] = useState(''), [description, setDescription] = useState(''), [hours, setHours] = useState('2160'),
		[chosen, setChosen] = useState([roles.at(-1)]);
	const make = async () => {
		const a = await call(ops.newAccount, scope, {body: {name: name.trim(), description: description || name.trim(), roles: chosen,
			secretExpiresAfterHours: Number(hours)}});
		onMade({id: a.clientId, secret: a.secrets?.[0]?.secret});
	};
	return html`<${DialogForm} op=${ops.newAccount} title=${w('newAccount')} submit=${w('make')} onSubmit=${make} onClose=${onClose} disabled=${!chosen.length}>
		<${Field} label=${w('name')} name="name" required><${Input} value=${name} onInput=${setName} maxlength="64" autofocus /><//>
		<${Field} label=${w('description')} name="description" hint=${w('optional')}><${Input} value=${description} onInput=${setDescription}
			maxlength="250" /><//>
		<${Field} label=${w('life')} name="secretExpiresAfterHours"><${Select} value=${hours} onInput=${setHours} options=${LIFE()} /><//>
		<${Choices} legend=${w('roles')} options=${roleOptions(roles)} value=${chosen} onInput=${setChosen} name="roles" /><//>`;
}

function NewKey({ops, scope, roles, onClose, onMade}) {
	const [desc, setDesc] = useState(''), [chosen, setChosen] = useState([roles.at(-1)]);
	const make = async () => {
		const k = await call(ops.newKey, scope, {body: {desc, roles: chosen}});
		onMade({id: k.publicKey, secret: k.privateKey, key: true});
	};
	return html`<${DialogForm} op=${ops.newKey} title=${w('newKey')} submit=${w('make')} onSubmit=${make} onClose=${onClose} disabled=${!chosen.length}>
		<${Field} label=${w('description')} name="desc" required><${Input} value=${desc} onInput=${setDesc} maxlength="250" autofocus /><//>
		<${Choices} legend=${w('roles')} options=${roleOptions(roles)} value=${chosen} onInput=${setChosen} name="roles" /><//>`;
}

function Account({ops, scope, account, onClose, onMade}) {
	const at = {...scope, clientId: account.clientId}, may = useMay(), [address, setAddress] = useState(''), [doomed, setDoomed] = useState(null);
	const {data, error, reload} = useLoad(async () => {
		const [a, list] = await Promise.all([call(ops.getAccount, at), callAll(ops.list, at).catch(() => [])]);
		return {secrets: a.secrets ?? [], list};
	}, [account.clientId]);
	const renew = async () => {
		const s = await call(ops.secret, at, {body: {secretExpiresAfterHours: 2160}});
		onMade({id: account.clientId, secret: s.secret});
	};
	const allow = async () => {
		const text = address.trim();
		await call(ops.allow, at, {body: [{[text.includes('/') ? 'cidrBlock' : 'ipAddress']: text}]});
		setAddress('');
		reload();
	};
	const secrets = [{key: 'secret', label: w('secret'), main: true, value: s => s.maskedSecretValue ?? '••••',
		cell: s => html`<span class="mono">${s.maskedSecretValue ?? '••••'}</span>`},
		{key: 'ends', label: w('ends'), width: '26%', value: s => s.expiresAt, cell: s => html`<${Time} at=${s.expiresAt} kind="ago" />`},
		{key: 'used', label: w('used'), width: '22%', value: s => s.lastUsedAt ?? '', cell: s => html`<${Time} at=${s.lastUsedAt} kind="ago" />`},
			{key: 'do', label: '', width: '7rem', sort: false, cell: s => html`<${Button} op=${ops.dropSecret} small kind="danger"
			onClick=${() => setDoomed(s)}>${w('delete')}<//>`}];
	const entries = [{key: 'v', label: w('address'), main: true, value: e => e.cidrBlock ?? e.ipAddress,
		cell: e => html`<span class="mono">${e.cidrBlock ?? e.ipAddress}</span>`},
		{key: 'do', label: '', width: '7rem', sort: false, cell: e =>
			html`<${Button} op=${ops.forbid} small kind="danger" aria-label=${w('forbid', {address: e.cidrBlock ?? e.ipAddress})}
			onClick=${async () => { await call(ops.forbid, {...at, ipAddress: e.cidrBlock ?? e.ipAddress}); reload(); }}>${w('delete')}<//>`}];
	if (doomed)
		return html`<${ConfirmDanger} title=${w('deleteSecret')} text=${w('deleteSecretText')} onClose=${() => setDoomed(null)}
			onConfirm=${async () => { await call(ops.dropSecret, {...at, secretId: doomed.id}); reload(); }} />`;
	return html`<${Dialog} kind="wide" title=${account.name} onClose=${onClose}><${Fault} error=${error} retry=${reload} /><p
		class="dim">${account.description}</p><${Copy} text=${account.clientId} label=${w('id')} />
		<h3>${w('secrets')}</h3><${Table} class="mini" label=${w('secrets')} columns=${secrets} rows=${data?.secrets} failed=${error} /><div class="acts"><${Button} op=${ops.secret}
			onClick=${renew}>${w('renew')}<//></div>
		<h3>${w('from')}</h3><${Table} class="mini" label=${w('from')} columns=${entries} rows=${data?.list} failed=${error} keyOf=${e => e.cidrBlock ?? e.ipAddress}
			empty=${html`<p class="calm">${w('fromAll')}</p>`} />
		${may(ops.allow) && html`<div class="row"><${Field} label=${w('allow')}><${Input} mono value=${address} onInput=${setAddress} /><//><${Button} class="row-end"
			disabled=${!address.trim()} onClick=${allow}>${w('add')}<//></div>`}<//>`;
}

export function Keys({kind, scope, roles}) {
	const ops = OPS[kind], [tab] = useQuery('tab', 'accounts'), [asked] = useQuery('do'), [made, setMade] = useState(null),
		[doomed, setDoomed] = useState(null), close = () => setQuery({do: ''});
	const {data, error, reload} = useLoad(async () => {
		const [accounts, keys] = await Promise.all([callAll(ops.accounts, scope), callAll(ops.keys, scope)]);
		return {accounts, keys};
	}, [kind, ...Object.values(scope)], {key: `keys ${Object.values(scope).join()}`});
	const rolesOf = k => (k.roles ?? []).map(r => r.roleName ?? r), ends = a => (a.secrets ?? []).map(s => s.expiresAt).sort().at(-1) ?? '';
	const acts = (name, items) => html`<${Menu} label=${w('more', {name})} items=${items} />`;
	const accounts = [{key: 'name', label: w('name'), main: true, value: a => a.name},
		{key: 'id', label: w('id'), width: '26%', wide: true, value: a => a.clientId, cell: a => html`<span class="mono">${a.clientId}</span>`},
		{key: 'roles', label: w('roles'), width: '24%', value: a => roleNames(rolesOf(a))},
		{key: 'ends', label: w('secretEnds'), width: '15%', value: ends, cell: a => html`<${Time} at=${ends(a)} kind="ago" />`},
			{key: 'do', label: '', width: '3.5rem', sort: false, cell: a =>
			acts(a.name, [{label: w('open'), onPick: () => setQuery({do: `account:${a.clientId}`})},
			{label: w('delete'), op: ops.dropAccount, kind: 'danger', onPick: () => setDoomed({op: ops.dropAccount, at: {...scope, clientId: a.clientId},
			name: a.name})}])}];
	const keys = [{key: 'desc', label: w('description'), main: true, value: k => k.desc},
		{key: 'id', label: w('publicKey'), width: '20%', value: k => k.publicKey, cell: k => html`<span class="mono">${k.publicKey}</span>`},
		{key: 'roles', label: w('roles'), width: '34%', value: k => roleNames(rolesOf(k))},
		{key: 'do', label: '', width: '3.5rem', sort: false, cell: k =>
			acts(k.desc, [{label: w('delete'), op: ops.dropKey, kind: 'danger', onPick: () =>
			setDoomed({op: ops.dropKey, at: {...scope, apiUserId: k.id}, name: k.desc})}])}];
	const isKeys = tab === 'keys', make = html`<${Button} op=${isKeys ? ops.newKey : ops.newAccount} kind="go" onClick=${() =>
		setQuery({do: 'new'})}>${w(isKeys ? 'newKey' : 'newAccount')}<//>`;
	const onMade = x => { close(); setMade(x); reload(); }, open = data?.accounts.find(a => `account:${a.clientId}` === asked);
	return html`<${Fault} error=${error} retry=${reload} /><${Tabs} label=${w('title')} current=${tab}
		onPick=${v => setQuery({tab: v === 'accounts' ? '' : v, do: ''})}
		tabs=${[{id: 'accounts', label: w('accounts'), count: data?.accounts.length}, {id: 'keys', label: w('keys'), count: data?.keys.length}]} />
		${isKeys && html`<${Notice}>${w('keysNote')}<//>`}
		<section class="card" aria-label=${w(tab)}>${isKeys ? html`<${Table} label=${w('keys')} columns=${keys} rows=${data?.keys} failed=${error}
			empty=${html`<${Empty} title=${w('noKeys')} text=${w('noKeysText')} action=${make} />`} />`
			: html`<${Table} label=${w('accounts')} columns=${accounts} rows=${data?.accounts} failed=${error} keyOf=${a => a.clientId}
				onOpen=${a => setQuery({do: `account:${a.clientId}`})} empty=${html`<${Empty} title=${w('noAccounts')} text=${w('noAccountsText')}
				action=${make} />`} />`}</section>
		${asked === 'new' && (isKeys ? html`<${NewKey} ops=${ops} scope=${scope} roles=${roles} onClose=${close} onMade=${onMade} />` :
			html`<${NewAccount} ops=${ops} scope=${scope} roles=${roles} onClose=${close} onMade=${onMade} />`)}
		${open && html`<${Account} ops=${ops} scope=${scope} account=${open} onClose=${close} onMade=${onMade} />`}
		${made && html`<${Secrets} made=${made} onClose=${() => setMade(null)} />`}
		${doomed && html`<${ConfirmDanger} title=${w('deleteTitle', {name: doomed.name})} text=${w('deleteText')} name=${doomed.name}
			action=${w('delete')} onConfirm=${async () => { await call(doomed.op, doomed.at); say(w('deleted', {name: doomed.name})); reload(); }}
			onClose=${() => setDoomed(null)} />`}`;
}

export const NewKeyButton = ({kind}) => {
	const [tab] = useQuery('tab', 'accounts');
	return html`<${Button} op=${tab === 'keys' ? OPS[kind].newKey : OPS[kind].newAccount} kind="go" icon="plus" onClick=${() => setQuery({do: 'new'})}>${w(tab === 'keys' ? 'newKey' : 'newAccount')}<//>`;
};
