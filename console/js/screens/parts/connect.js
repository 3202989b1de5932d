/* From a cluster to a line that psql takes: a database user with a password that is shown once, and the caller's address on
 * the access list. */
import {
	html, call, useState, useLoad, Card, Form, Field, Input, Select, Check, Button, Segments, Copy, Notice, Fault, SecretOnce, words, useSession,
		atField, useMay
} from './kit.js';
import {whoAmI, isCovered, letIn, newPassword, rightsOf} from './access.js';

const w = words('connect');

const withUser = (standard, user, password) => standard.replace('://', `://${encodeURIComponent(user)}${password ? `:${password}` : ''}@`);
const verified = url => url.replace(/([?&])sslmode=\w+/, '$1sslmode=verify-full') + '&sslrootcert=steward-ca.crt';

/* The forms in which the same is wanted. */
function forms(standard, user, password) {
	const url = withUser(standard, user, password), at = /^\w+:\/\/([^/]+)\/([^?]*)\??(.*)$/.exec(standard);
	const hosts = (at?.[1] ?? '').split(','), query = new URLSearchParams(at?.[3] ?? '');
	const env = [['PGHOST', hosts.map(h => h.replace(/:\d+$/, '')).join(',')], ['PGHOSTADDR', query.get('hostaddr')],
		['PGPORT', hosts.map(h => /:(\d+)$/.exec(h)?.[1] ?? '5432').join(',')],
		['PGDATABASE', at?.[2] || 'postgres'], ['PGUSER', user], ['PGPASSWORD', password], ['PGSSLMODE', query.get('sslmode')],
			['PGTARGETSESSIONATTRS', query.get('target_session_attrs')]];
	return {psql: `psql '${url}'`, url, verified: `psql '${verified(url)}'`,
		env: env.filter(x => x[1]).map(([k, v]) => `export ${k}='${v}'`).join('\n')};
}

function Strings({groupId, standard, user, password}) {
	const [kind, setKind] = useState('psql');
	const all = forms(standard, user, password);
	return html`<${Segments} label=${w('form')} current=${kind} onPick=${setKind}
		options=${Object.keys(all).map(k => ({id: k, label: w(`form.${k}`)}))} />
		<${Copy} text=${all[kind]} label=${w('string')} />
		${kind === 'verified' && html`<p class="dim"><a href=${`/ca/${groupId}`} download="steward-ca.crt">${w('ca')}</a> ${w('caText')}</p>`}`;
}

const fresh = session => (session?.user?.username ?? 'app').split('@')[0].replace(/[^A-Za-z0-9_-]/g, '').slice(0, 30) || 'app';

function Made({made, groupId, standard, onAgain}) {
	return html`<div class="stack"><${Notice} kind="ok">${w('made', {user: made.user})}<//>
		<${Strings} groupId=${groupId} standard=${standard} user=${made.user} password=${made.password} />
		<${SecretOnce} label=${w('password')} text=${made.password} />
		<div><${Button} onClick=${onAgain}>${w('another')}<//></div></div>`;
}

export function Connect({groupId, cluster}) {
	const session = useSession(), may = useMay();
	const {data: me, error, reload} = useLoad(async () => {
		const who = await whoAmI(groupId);
		return {...who, covered: await isCovered(groupId, who.address)};
	}, [groupId]);
	const [user, setUser] = useState(fresh(session)), [role, setRole] = useState(''), [mine, setMine] = useState(true);
	const [made, setMade] = useState(null);
	const standard = cluster.connectionStrings?.standard;
	if (!standard || cluster.paused || cluster.stateName === 'CREATING')
		return html`<${Card} title=${w('title')}><p class="calm">${w(cluster.paused ? 'paused' : 'notYet')}</p><//>`;
	const rights = me ? rightsOf(me.roles) : [];
	const make = async () => {
		const password = newPassword();
		if (mine && !me.covered && may('createAccessListEntry'))
			await letIn(groupId, me.address, {comment: w('comment', {name: session?.user?.username ?? ''}).slice(0, 80)});
		await atField(call('createDatabaseUser', {groupId}, {body: {groupId, databaseName: 'admin', username: user, password,
			roles: [{roleName: role || rights[0], databaseName: 'admin'}], scopes: [{name: cluster.name, type: 'CLUSTER'}]}}),
				{USER_ALREADY_EXISTS: 'username'});
		setMade({user, password});
		reload();
	};
	const again = () => {
		setMade(null);
		setUser(`${fresh(session)}2`);
	};
	return html`<${Card} title=${w('title')} class="connect"><${Fault} error=${error} />
		${made ? html`<${Made} made=${made} groupId=${groupId} standard=${standard} onAgain=${again} />`
			: html`<${Form} op="createDatabaseUser" onSubmit=${make} submit=${w('make')} disabled=${!me || !rights.length} label=${w('title')}>
				<p class="dim">${w('text')}</p>
				<${Field} label=${w('user')} name="username" required><${Input} value=${user} onInput=${setUser} maxlength="63" /><//>
				<${Field} label=${w('rights')} name="roles[0].roleName" help=${me && !rights.length ? w('noRights') : undefined}><${Select}
					value=${role || rights[0] || ''} onInput=${setRole}
					options=${rights.map(r => ({value: r, label: w(`right.${r}`)}))} /><//>
				${me && (me.covered ? html`<p class="dim">${w('covered', {address: me.address})}</p>` :
					may('createAccessListEntry') ? html`<${Check} checked=${mine} onInput=${setMine} label=${w('letIn', {address: me.address})} />` :
					html`<p class="warn">${w('notLetIn', {address: me.address})}</p>`)}
			<//>
			<details><summary>${w('existing')}</summary><${Strings} groupId=${groupId} standard=${standard} user="USER" /></details>`}
	<//>`;
}
