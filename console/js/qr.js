/* A QR code as the path of a picture: {path, box} of an SVG. */
import {encode} from '../lib/qr.js';

export function qrPath(text) {
	const {size, data} = encode(text, {ecc: 'L', border: 4});
	return {box: `0 0 ${size} ${size}`, path: data.flatMap((row, y) => row.map((dark, x) => dark ? `M${x} ${y}h1v1h-1z` : '')).join('')};
}
