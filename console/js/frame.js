/* What stands around every screen: the header, the navigation, and the plain page of those who are not signed in. */
import {html, cls, useEffect, useState} from './lib.js';
import {t, time} from './texts.js';
import {call} from './api.js';
import {session, signOut, useSession} from './session.js';
import {Link, go} from './router.js';
import {liveState} from './live.js';
import {overlay, KeyHelp} from './keys.js';
import {isAt, lastOpened, opened, screensOf} from './nav.js';
import {Palette} from './palette.js';
import {learnProject, useMay} from './may.js';
import {useLoad} from './ui/load.js';
import {Icon, Mark} from './ui/icons.js';
import {Menu, Notice} from './ui/page.js';

const groupKey = id => `group ${id}`;
function useGroup(groupId) {
	const {data} = useLoad(signal => groupId ? call('getGroup', {groupId}, {signal}) : Promise.resolve(undefined), [groupId], {key: groupId ? groupKey(groupId) : undefined});
	useEffect(() => learnProject(data?.id, data?.orgId), [data?.id, data?.orgId]);
	return groupId && data?.id === groupId ? data : null;
}

function Side({params, path, open, group, org}) {
	const may = useMay(), all = screensOf(params, session.get()).filter(s => !s.hidden && may(s.op, s.scope));
	const row = s => html`<${Link} key=${s.to} to=${s.to} aria-current=${isAt(path, s) ? 'page' : undefined}><${Icon} name=${s.icon} />${s.label}<//>`;
	const project = all.filter(s => s.area === t('nav.project'));
	return html`<nav class=${cls('side', open && 'open')} id="side" aria-label=${t('nav.label')}>
		${row(all[0])}
		${project.length > 0 && html`<h2>${group?.name ?? t('nav.project')}</h2>${project.map(row)}`}
		<h2>${org?.name ?? t('nav.organization')}</h2>${all.filter(s => s.org).map(row)}
		<h2>${t('nav.everything')}</h2>${all.filter(s => s.all).map(row)}
	</nav>`;
}

function LiveSign() {
	const {state, since} = liveState.use();
	const [late, setLate] = useState(false);
	useEffect(() => {
		setLate(false);
		if (state !== 'behind')
			return undefined;
		const timer = setTimeout(() => setLate(true), 3000);
		return () => clearTimeout(timer);
	}, [state, since]);
	if (state === 'off')
		return null;
	const shown = state === 'behind' && !late ? 'connecting' : state;
	return html`<span class=${`live ${shown}`} role="status" data-live=${shown}>${shown === 'behind' ? t('live.behind', {since: time(since)}) : t(`live.${shown}`)}</span>`;
}

function initials(user) {
	const names = [user.firstName, user.lastName].filter(Boolean);
	return (names.length ? names.map(n => n[0]).join('') : user.username.slice(0, 2)).toUpperCase();
}

function Me({user}) {
	const next = {light: 'dark', dark: 'light'}[document.documentElement.dataset.theme];
	return html`<span class="me-box" title=${user.username}><${Menu} label=${t('me.menu', {name: user.username})} text=${html`<span class="me" aria-hidden="true">${initials(user)}</span><span class="hidden">${t('me.menu', {name: user.username})}</span>`}
		items=${[{label: t('nav.account'), onPick: () => go('/account')}, {label: t(`theme.to.${next}`), onPick: () => theme(next)}, {label: t('keys.title'), onPick: () => overlay.set('help')},
			{label: t('signOut'), onPick: signOut}]} /></span>`;
}

export function Frame({params, path, children}) {
	const who = useSession(), shown = overlay.use();
	const [open, setOpen] = useState(false);
	const group = useGroup(params.groupId ?? lastOpened()?.id);
	if (group && params.groupId)
		opened(group);
	else if (params.orgId && lastOpened() && lastOpened().orgId !== params.orgId)
		opened(null);
	const orgId = params.orgId ?? group?.orgId ?? who?.orgs?.[0]?.id, org = who?.orgs?.find(o => o.id === orgId);
	useEffect(() => setOpen(false), [path]);
	const weak = who?.orgs?.find(o => o.multiFactorAuthRequired);
	const jump = () => overlay.set('palette');
	return html`<div class="app" onKeyDown=${e => { if (e.key === 'Escape') setOpen(false); }}>
		<a class="skip" href="#main" onClick=${e => { e.preventDefault(); document.getElementById('main').focus(); }}>${t('skip')}</a>
		<header class="top">
			<button type="button" class="icon menu" aria-label=${t('nav.menu')} aria-expanded=${String(open)} aria-controls="side" onClick=${() => setOpen(!open)}><${Icon} name="menu" /></button>
			<${Link} class="brand" to="/"><${Mark} />Steward<//>
			${org && html`<${Link} class="crumb" to=${`/orgs/${org.id}/projects`}>${org.name}<//>`}
			${group && params.groupId && html`<span class="slash" aria-hidden="true">/</span><${Link} class="crumb" to=${`/projects/${group.id}`}>${group.name}<//>`}
			<button type="button" class="find" aria-keyshortcuts="Control+K" onClick=${jump}><${Icon} name="find" /><span>${t('palette.button')}</span><kbd aria-hidden="true">Ctrl K</kbd></button>
			<${LiveSign} />
			${who && html`<${Me} user=${who.user} />`}
		</header>
		<${Side} params=${params} path=${path} open=${open} group=${group} org=${org} />
		<main id="main" tabindex="-1" onClick=${() => open && setOpen(false)}>${weak && path !== '/account' && html`<${Notice} kind="warn" action=${html`<${Link} class="btn s" to="/account">${t('nav.account')}<//>`}>${t('me.weak', {name: weak.name})}<//>`}${children}</main>
		${shown === 'palette' && html`<${Palette} />`}${shown === 'help' && html`<${KeyHelp} />`}
	</div>`;
}

export const Plain = ({children}) => html`<div class="plain"><header class="plain-top"><span class="brand"><${Mark} />Steward</span></header><main id="main" tabindex="-1">${children}</main></div>`;
