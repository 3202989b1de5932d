/* A line that says only how something went. */
import {html} from '../lib.js';

const WIDTH = 96, HEIGHT = 26;

/* values: numbers, oldest first, null where nothing was measured. most: the top of the field; label: what it shows, for who cannot see it. */
export function Spark({values, most, label}) {
	const known = values.filter(v => v !== null && v !== undefined), top = Math.max(most ?? 0, ...known) || 1, step = WIDTH / Math.max(1, values.length - 1);
	let d = '', pen = false;
	values.forEach((v, i) => {
		const has = v !== null && v !== undefined;
		if (has)
			d += `${pen ? 'L' : 'M'}${(i * step).toFixed(1)} ${(HEIGHT - 1 - v / top * (HEIGHT - 3)).toFixed(1)}`;
		pen = has;
	});
	if (known.length === 1)
		d += 'h.01'; // a dot
	return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${label}><path d=${d} class=${known.length === 1 ? 'one' : undefined} /></svg>`;
}
