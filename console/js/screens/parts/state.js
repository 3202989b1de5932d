/* What a cluster's row says in one word: its level (bad, warn, busy, ok, off), which the colours and the sorting follow. */
const RANK = {bad: 0, warn: 1, busy: 2, ok: 3, off: 4};

export const rankOf = c => RANK[levelOf(c)];

export function levelOf(c) {
	if (c.stateName === 'REPAIRING')
		return 'bad';
	if (c.attention?.length)
		return c.attention.some(a => needLevel(a) === 'bad') ? 'bad' : 'warn';
	if (c.stateName !== 'IDLE')
		return 'busy';
	return c.paused ? 'off' : 'ok';
}

const BAD = /^(DATA_MISSING|CHANGE_FAILED|NO_PRIMARY|DISK_FULL|NODE_DOWN)$/;
/* How bad it is that something needs attention. */
export const needLevel = a => BAD.test(a.code) ? 'bad' : 'warn';

/* The state that is shown: the API's, and PAUSED for what rests. */
export const stateOf = c => c.paused && c.stateName === 'IDLE' ? 'PAUSED' : c.stateName;

/* "58% resize 2 of 3" -> {percent: 58, text: 'resize 2 of 3'}. That a step is done says nothing beside a state that goes on. */
export function progressOf(text) {
	const found = /^(\d{1,3})% ?(.*)$/.exec(text ?? '');
	return found ? {percent: Math.min(100, +found[1]), text: found[2] === 'done' ? '' : found[2]} : {percent: null, text: text ?? ''};
}

export const diskShare = c => c.diskBytes > 0 && c.diskUsedBytes >= 0 ? c.diskUsedBytes / c.diskBytes : null;
export const diskLevel = share => share > 0.9 ? 'bad' : share > 0.75 ? 'warn' : '';
