/* Loading that never hides what is known: while something is loaded again, what was there stays. */
import {useCallback, useEffect, useRef, useState} from '../lib.js';
import {session} from '../session.js';
export {useLive} from '../live.js';

const known = new Map();
const KNOWN_MOST = 200;

const remember = (key, data) => {
	known.delete(key);
	known.set(key, data);
	if (known.size > KNOWN_MOST)
		known.delete(known.keys().next().value);
};

/* const {data, error, loading, reload, set} = useLoad(signal => call(…), [groupId], {key: `clusters ${groupId}`});
 * key: what was loaded under it before is shown at once, also on another visit. fn may give undefined for "not yet". */
export function useLoad(fn, deps = [], {key} = {}) {
	const [state, setState] = useState(() => ({data: key ? known.get(key) : undefined, error: null, loading: true}));
	const current = useRef(null), last = useRef({});
	last.current = {fn, key};
	const reload = useCallback(async () => {
		current.current?.abort();
		const aborter = new AbortController(), {fn: load, key: under} = last.current;
		current.current = aborter;
		setState(s => s.loading ? s : {...s, loading: true});
		try {
			const data = await load(aborter.signal);
			if (aborter.signal.aborted)
				return;
			if (under)
				remember(under, data);
			setState({data, error: null, loading: false});
		} catch (error) {
			if (!aborter.signal.aborted)
				setState(s => ({data: s.data, error, loading: false}));
		}
	}, []);
	useEffect(() => {
		if (key && known.has(key))
			setState(s => ({...s, data: known.get(key)}));
		reload();
		return () => current.current?.abort();
	}, [...deps, key]);
	/* What was refused may be allowed once a role has changed. */
	const failed = useRef(false);
	failed.current = Boolean(state.error);
	useEffect(() => session.follow(() => {
		if (failed.current && session.get())
			reload();
	}), []);
	const set = useCallback(change => setState(s => {
		const data = typeof change === 'function' ? change(s.data) : change;
		if (last.current.key)
			remember(last.current.key, data);
		return {...s, data};
	}), []);
	return {...state, reload, set};
}

/* Runs fn at most once in a while, the last time always: for reloading on many events. */
export function useCalm(fn, ms = 300) {
	const now = useRef(), timer = useRef(null);
	now.current = fn;
	useEffect(() => () => clearTimeout(timer.current), []);
	return useCallback((...args) => {
		if (timer.current)
			return;
		timer.current = setTimeout(() => {
			timer.current = null;
			now.current(...args);
		}, ms);
	}, [ms]);
}
