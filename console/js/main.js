/* The first module: loads what everything needs, then draws the frame and the screen of the path. */
import {html, render, useEffect, useErrorBoundary, useState} from './lib.js';
import {loadMoreTexts, loadTexts, t, textsLoaded} from './texts.js';
import {loadOperations, whenSignedOut} from './api.js';
import {afterSignIn, leave, loadRoles, loadSession, session, wasSignedIn} from './session.js';
import {go, place, route, startRouter} from './router.js';
import {startLive, stopLive, whenStreamEnds} from './live.js';
import {startKeys} from './keys.js';
import {Frame, Plain} from './frame.js';
import {Proof} from './proof.js';
import {Button, Empty, Notice, Page, errorText} from './ui/index.js';
import {routes as screens} from './screens/routes.js';
import {routes as generated} from './generated/routes.js';

/* Those that can be opened without being signed in. */
const OPEN = {open: true}, ROLES = {texts: ['screens']}; // where the names of roles are
const routes = [
	['/sign-in', () => import('./screens/sign-in.js'), OPEN],
	['/first/:token', () => import('./screens/first.js'), OPEN],
	['/reset/:token', () => import('./screens/reset.js'), OPEN],
	['/forgotten', () => import('./screens/forgotten.js'), OPEN],
	['/invitations/:token', () => import('./screens/invitation.js'), {...OPEN, ...ROLES}],
	['/device', () => import('./screens/device.js')],
	['/account', () => import('./screens/account.js'), ROLES]
];

const loaded = new Map();

function toSignIn() {
	const to = `/console/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`;
	if (place.get().found?.open)
		return;
	stopLive();
	if (wasSignedIn())
		leave(to);
	else
		go(to, {replace: true});
}

function Broken({error, reset}) {
	return html`<${Page} title=${t('broken.title')}><${Notice} kind="bad" action=${html`<${Button} onClick=${reset}>${t('again')}<//>`}>${errorText(error)}<//><//>`;
}

function Screen({found, query}) {
	const key = found.pattern;
	const [, redraw] = useState(0);
	const [failed, setFailed] = useState(null);
	useEffect(() => {
		let gone = false;
		if (!loaded.has(key))
			Promise.all([found.load(), ...(found.texts ?? []).map(loadMoreTexts)]).then(([m]) => {
				loaded.set(key, m.default);
				if (found.texts) // for parts that a screen opens later
					(globalThis.requestIdleCallback ?? setTimeout)(() => loadMoreTexts('screens'));
				if (!gone)
					redraw(n => n + 1);
			}, e => {
				if (!gone)
					setFailed(e);
			});
		return () => { gone = true; };
	}, [key]);
	if (failed)
		return html`<${Broken} error=${failed} reset=${() => location.reload()} />`;
	const Loaded = loaded.get(key);
	return Loaded ? html`<${Loaded} params=${found.params} query=${query} />` : null;
}

function Guarded(props) {
	const [error, reset] = useErrorBoundary(e => console.error(e));
	return error ? html`<${Broken} error=${error} reset=${reset} />` : html`<${Screen} ...${props} />`;
}

function App() {
	const {path, query, found} = place.use(), who = session.use();
	textsLoaded.use();
	useEffect(() => {
		if (who)
			startLive();
		else
			stopLive();
	}, [Boolean(who)]);
	useEffect(() => {
		if (!who && !found?.open)
			toSignIn();
		else if (who && path === '/sign-in')
			go(afterSignIn(query.to), {replace: true});
	}, [who, path]);
	if (!who && !found?.open)
		return null;
	const screen = found ? html`<${Guarded} key=${`${found.pattern} ${Object.values(found.params).join(' ')}`} found=${found} query=${query} />`
		: html`<${Page} title=${t('lost.title')}><${Empty} title=${t('lost.text')} action=${html`<${Button} kind="go" to="/">${t('lost.home')}<//>`} /><//>`;
	return found?.open ? html`<${Plain}>${screen}<//>` : html`<${Frame} params=${found?.params ?? {}} path=${path}>${screen}<//><${Proof} />`;
}

async function boot() {
	for (const [pattern, load, more] of routes)
		route(pattern, load, more);
	for (const [pattern, load, more] of screens)
		route(pattern, load, {texts: pattern === '/' ? ['overview'] : ['overview', 'screens'], ...more});
	for (const [pattern, load, more] of generated)
		route(pattern, load, {texts: ['overview', 'screens', 'generated'], ...more});
	whenSignedOut(toSignIn);
	whenStreamEnds(async () => {
		try {
			if (await loadSession())
				startLive();
			else
				toSignIn();
		} catch {
			startLive();
		}
	});
	const texts = loadTexts();
	try {
		await Promise.all([texts, loadOperations(), loadRoles(), loadSession()]);
	} catch (e) {
		await texts.catch(() => {});
		render(html`<${Plain}><${Broken} error=${e} reset=${() => location.reload()} /><//>`, document.getElementById('app'));
		return;
	}
	startRouter();
	startKeys();
	const root = document.getElementById('app');
	root.replaceChildren();
	render(html`<${App} />`, root);
}

boot();
