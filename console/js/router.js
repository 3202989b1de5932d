/* Paths of the console, below /console. A screen is loaded when its path is first opened; what is chosen on it stands in
 * the query, so that a link shows the same to somebody else. */
import {html, store, useCallback} from './lib.js';

export const ROOT = '/console';
const routes = [];

/* route('/projects/:groupId/clusters/:name', () => import('./screens/cluster.js'), {title, area}) */
export function route(pattern, load, more = {}) {
	const names = [];
	const source = pattern.replace(/:(\w+)(\?)?/g, (all, name) => {
		names.push(name);
		return '([^/]+)';
	});
	routes.push({pattern, load, names, at: new RegExp(`^${source}/?$`), ...more});
}

const decoded = text => {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
};

export function match(path) {
	for (const r of routes) {
		const found = r.at.exec(path);
		if (found)
			return {...r, params: Object.fromEntries(r.names.map((n, i) => [n, decoded(found[i + 1])]))};
	}
	return null;
}

const read = () => {
	const path = location.pathname.startsWith(ROOT) ? location.pathname.slice(ROOT.length) || '/' : '/';
	return {path, query: Object.fromEntries(new URLSearchParams(location.search)), key: history.state?.key ?? 0, found: match(path)};
};

export const place = store({path: '/', query: {}, key: 0, found: null});
let keys = 0;
const positions = new Map();

/* What is open above the page: Back closes that, and leaves the page where it is. */
const above = [];
let returned = null;
export function leaving(close) {
	above.push(close);
	return () => above.splice(above.indexOf(close), 1);
}

/* The browser has gone already when it tells: it goes back to where the page is, and then the dialog is closed. */
function stays(key) {
	if (returned) {
		const close = returned;
		returned = null;
		close();
		return true;
	}
	if (!above.length || key === place.get().key)
		return false;
	returned = above.at(-1);
	history.go(key < place.get().key ? 1 : -1);
	return true;
}

export function startRouter() {
	history.scrollRestoration = 'manual';
	keys = history.state?.key ?? 0;
	addEventListener('popstate', e => {
		if (stays(e.state?.key ?? 0))
			return;
		place.set(read());
		const y = positions.get(place.get().key);
		requestAnimationFrame(() => scrollTo(0, y ?? 0));
	});
	place.set(read());
}

const full = path => path.startsWith(ROOT) ? path : ROOT + (path.startsWith('/') ? path : `/${path}`);

/* Opens a path of the console: '/projects/…' or '/console/projects/…'. */
export function go(path, {replace = false} = {}) {
	positions.set(place.get().key, scrollY);
	const to = full(path);
	const before = place.get().path;
	if (replace)
		history.replaceState({key: place.get().key}, '', to);
	else
		history.pushState({key: ++keys}, '', to);
	place.set(read());
	if (place.get().path !== before)
		scrollTo(0, 0);
}

/* Puts values into the query of this path without a new entry in the history; undefined or '' takes one away. */
export function setQuery(values, {replace = true} = {}) {
	const q = new URLSearchParams(location.search);
	for (const [k, v] of Object.entries(values))
		if (v === undefined || v === null || v === '')
			q.delete(k);
		else
			q.set(k, v);
	const text = q.toString();
	go(place.get().path + (text ? `?${text}` : ''), {replace});
}

/* One value of the query as state: [value, set]. */
export function useQuery(name, otherwise = '') {
	const {query} = place.use();
	return [query[name] ?? otherwise, useCallback(v => setQuery({[name]: v === otherwise ? '' : v}), [name, otherwise])];
}

export const href = (path, query) => {
	const q = new URLSearchParams(Object.entries(query ?? {}).filter(([, v]) => v !== undefined && v !== null && v !== '')).toString();
	return full(path) + (q ? `?${q}` : '');
};

/* A link within the console; with Ctrl, Shift or the middle button the browser does what it does with links. */
export function Link({to, query, children, onClick, ...rest}) {
	const at = href(to, query);
	const open = e => {
		onClick?.(e);
		if (e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || rest.target)
			return;
		e.preventDefault();
		go(at);
	};
	return html`<a href=${at} ...${rest} onClick=${open}>${children}</a>`;
}
