/* From a cluster to a line that psql takes: a database user with a password that is shown once, and the caller's address on
 * the access list. */
import {
	html, call, go, useState, useLoad, Card, Form, Field, Input, Select, Check, Button, Segments, Copy, Notice, Fault, SecretOnce, words, useSession,
		atField, useMay
} from './kit.js';
import {parts, snippets} from './snippets.js';
import {whoAmI, isCovered, letIn, newPassword, rightsOf} from './access.js';

const w = words('connect');

const withUser = (standard, user, password) => standard.replace('://', `://${encodeURIComponent(user)}${password ? `:${password}` : ''}@`);
const verified = url => url.replace(/([?&])sslmode=\w+/, '$1sslmode=verify-full') + '&sslrootcert=steward-ca.crt';

/* The forms in which the same is wanted. */
function forms(standard, user, password) {
	const url = withUser(standard, user, password), {hosts, addresses, database, ssl, wanted} = parts(standard);
	const env = [['PGHOST', hosts.map(h => h[0]).join(',')], ['PGHOSTADDR', addresses.join(',')], ['PGPORT', hosts.map(h => h[1]).join(',')],
		['PGDATABASE', database], ['PGUSER', user], ['PGPASSWORD', password], ['PGSSLMODE', ssl], ['PGTARGETSESSIONATTRS', wanted]];
	return {psql: `psql '${url}'`, url, verified: `psql '${verified(url)}'`,
		env: env.filter(x => x[1]).map(([k, v]) => `export ${k}='${v}'`).join('\n')};
}

function Strings({groupId, standard, user, password}) {
	const [kind, setKind] = useState('psql'), [language, setLanguage] = useState('python');
	const all = forms(standard, user, password), programs = snippets(standard, user, password);
	const text = kind === 'program' ? programs[language][1] : all[kind];
	return html`<${Segments} label=${w('form')} current=${kind} onPick=${setKind}
		options=${[...Object.keys(all), 'program'].map(k => ({id: k, label: w(`form.${k}`)}))} />
		${kind === 'program' && html`<${Field} label=${w('language')}><${Select} value=${language} onInput=${setLanguage}
			options=${Object.entries(programs).map(([value, [label]]) => ({value, label}))} /><//>`}
		<${Copy} text=${text} label=${w('string')} />
		${kind === 'verified' && html`<p class="dim"><a href=${`/ca/${groupId}`} download="steward-ca.crt">${w('ca')}</a> ${w('caText')}</p>`}`;
}

const fresh = session => (session?.user?.username ?? 'app').split('@')[0].replace(/[^A-Za-z0-9_-]/g, '').slice(0, 30) || 'app';

function Made({made, groupId, name, standard, onAgain}) {
	const edit = async () => {
		const {signIn} = await import('./sql.js');
		signIn(groupId, name, made.user, made.password);
		go(`/projects/${groupId}/clusters/${encodeURIComponent(name)}/sql`);
	};
	return html`<div class="stack"><${Notice} kind="ok">${w('made', {user: made.user})}<//>
		<${Strings} groupId=${groupId} standard=${standard} user=${made.user} password=${made.password} />
		<${SecretOnce} label=${w('password')} text=${made.password} />
		<div class="acts"><${Button} onClick=${edit}>${w('editor')}<//><${Button} onClick=${onAgain}>${w('another')}<//></div></div>`;
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
		${made ? html`<${Made} made=${made} name=${cluster.name} groupId=${groupId} standard=${standard} onAgain=${again} />`
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
