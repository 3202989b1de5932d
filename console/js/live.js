/* What happens, as it happens: one stream of server-sent events for the page. The browser reconnects by itself and names the
 * last event that it saw; while it cannot, the header says that the page is behind. */
import {store, useEffect, useRef} from './lib.js';

/* connecting, live, behind (with since), off */
export const liveState = store({state: 'off'});
const followers = new Set();
const SOON = 200; // ms
let source = null, retry = null, wait = SOON, lastId = '', begun = 0;
let onEnd = () => {};
/* Called when the server ended the stream because the session or its rights ended or changed. */
export const whenStreamEnds = f => { onEnd = f; };

const behind = () => {
	if (liveState.get().state !== 'behind')
		liveState.set({state: 'behind', since: Date.now()});
};

function deliver(event) {
	for (const f of [...followers])
		f(event);
}

function received(e) {
	if (e.lastEventId)
		lastId = e.lastEventId;
	let event;
	try {
		event = JSON.parse(e.data);
	} catch {
		return;
	}
	deliver(event);
}

export function startLive() {
	if (source)
		return;
	clearTimeout(retry);
	if (liveState.get().state !== 'behind')
		liveState.set({state: 'connecting'});
	begun = Date.now();
	source = new EventSource('/api/console/events' + (lastId ? `?lastEventId=${encodeURIComponent(lastId)}` : ''));
	source.onopen = () => {
		const missed = liveState.get().state === 'behind' && !lastId;
		liveState.set({state: 'live'});
		if (missed)
			deliver({resync: true});
	};
	source.onmessage = received;
	source.addEventListener('resync', e => {
		if (e.lastEventId)
			lastId = e.lastEventId;
		deliver({resync: true});
	});
	source.addEventListener('end', () => {
		const early = Date.now() - begun < 1000;
		source?.close();
		if (early)
			again();
		else {
			source = null;
			onEnd();
		}
	});
	source.onerror = () => {
		behind();
		if (source?.readyState === EventSource.CLOSED)
			again();
	};
}

/* The browser gives up after an answer that is no stream: then it is for us to try again, and to look whether we are still
 * signed in. */
function again() {
	source = null;
	clearTimeout(retry);
	if (Date.now() - begun > 5000) // it had lasted
		wait = SOON;
	retry = setTimeout(() => {
		onEnd();
	}, wait);
	wait = Math.min(wait * 2, 30000);
}

export function stopLive() {
	clearTimeout(retry);
	source?.close();
	source = null;
	lastId = '';
	liveState.set({state: 'off'});
}

const fits = (filter, event) => event.resync || !filter || (typeof filter === 'function' ? filter(event)
	: Object.entries(filter).every(([k, v]) => v === undefined || (Array.isArray(v) ? v.includes(event[k]) : event[k] === v)));

/* Calls fn(event) for each event that the filter lets through: {groupId, orgId, clusterName, eventTypeName: […]} or a
 * function. An event {resync: true} says that some were missed: load again. */
export function useLive(filter, fn) {
	const now = useRef();
	now.current = {filter, fn};
	useEffect(() => {
		const follow = event => {
			if (fits(now.current.filter, event))
				now.current.fn(event);
		};
		followers.add(follow);
		return () => followers.delete(follow);
	}, []);
}
