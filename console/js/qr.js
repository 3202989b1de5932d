/* QR codes (ISO/IEC 18004) as the path of a picture: bytes, error correction level L, versions 1 to 10, mask 0. Enough for the
 * address of a one-time code's secret. */
const ECC = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18], BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4], TOTAL = [26, 44, 70, 100, 134, 172, 196, 242, 292, 346];
const MIDDLES = [[], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50]];
const QUIET = 4;

function times(a, b) {
	let z = 0;
	for (let i = 7; i >= 0; i--)
		z = (z << 1) ^ (z >> 7) * 0x11d ^ (b >> i & 1) * a;
	return z;
}

function generator(degree) {
	const g = new Array(degree).fill(0);
	g[degree - 1] = 1;
	for (let i = 0, root = 1; i < degree; i++, root = times(root, 2))
		for (let j = 0; j < degree; j++)
			g[j] = times(g[j], root) ^ (j + 1 < degree ? g[j + 1] : 0);
	return g;
}

function remainder(data, g) {
	const r = new Array(g.length).fill(0);
	for (const byte of data) {
		const factor = byte ^ r.shift();
		r.push(0);
		g.forEach((c, i) => { r[i] ^= times(c, factor); });
	}
	return r;
}

/* The bytes with their length, filled up, in blocks with their check bytes, interleaved. */
function codewords(bytes, v) {
	const room = TOTAL[v] - ECC[v] * BLOCKS[v], bits = [];
	const put = (value, n) => {
		for (let i = n - 1; i >= 0; i--)
			bits.push(value >> i & 1);
	};
	put(4, 4);
	put(bytes.length, v < 9 ? 8 : 16);
	bytes.forEach(b => put(b, 8));
	put(0, Math.min(4, room * 8 - bits.length));
	put(0, (8 - bits.length % 8) % 8);
	for (let pad = 0xec; bits.length < room * 8; pad ^= 0xec ^ 0x11)
		put(pad, 8);
	const data = Array.from({length: room}, (_, i) => bits.slice(i * 8, i * 8 + 8).reduce((a, b) => a << 1 | b, 0));
	const short = Math.floor(room / BLOCKS[v]), longs = room % BLOCKS[v], g = generator(ECC[v]), blocks = [];
	for (let i = 0, at = 0; i < BLOCKS[v]; i++) {
		const n = short + (i >= BLOCKS[v] - longs ? 1 : 0), part = data.slice(at, at + n);
		blocks.push([part, remainder(part, g)]);
		at += n;
	}
	const out = [];
	for (const which of [0, 1])
		for (let i = 0; i < Math.max(short + 1, ECC[v]); i++)
			for (const b of blocks)
				if (i < b[which].length)
					out.push(b[which][i]);
	return out;
}

/* A number with its check bits (BCH). */
function checked(value, poly, n) {
	let rest = value << n;
	for (let i = 31 - Math.clz32(rest); rest >> n; i = 31 - Math.clz32(rest))
		rest ^= poly << i - n;
	return value << n | rest;
}

/* Cells that are the same for all data of a version, and those of the format. */
function fixed(v, set) {
	const size = 17 + 4 * (v + 1), middles = MIDDLES[v];
	for (let i = 0; i < size; i++) {
		set(6, i, i % 2 === 0);
		set(i, 6, i % 2 === 0);
	}
	for (const [cx, cy] of [[3, 3], [size - 4, 3], [3, size - 4]])
		for (let dy = -4; dy <= 4; dy++)
			for (let dx = -4; dx <= 4; dx++) {
				const far = Math.max(Math.abs(dx), Math.abs(dy));
				set(cx + dx, cy + dy, far !== 2 && far !== 4);
			}
	middles.forEach((x, i) => middles.forEach((y, j) => {
		const last = middles.length - 1;
		if (!(i === 0 && j === 0 || i === 0 && j === last || i === last && j === 0))
			for (let dy = -2; dy <= 2; dy++)
				for (let dx = -2; dx <= 2; dx++)
					set(x + dx, y + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
	}));
	const format = checked(8, 0x537, 10) ^ 0x5412, bit = (value, i) => Boolean(value >> i & 1);
	for (let i = 0; i < 15; i++) {
		set(8, i < 6 ? i : i < 8 ? i + 1 : size - 15 + i, bit(format, i));
		set(i < 8 ? size - 1 - i : i === 8 ? 7 : 14 - i, 8, bit(format, i));
	}
	set(8, size - 8, true);
	if (v >= 6) {
		const version = checked(v + 1, 0x1f25, 12);
		for (let i = 0; i < 18; i++) {
			set(size - 11 + i % 3, Math.floor(i / 3), bit(version, i));
			set(Math.floor(i / 3), size - 11 + i % 3, bit(version, i));
		}
	}
}

function modules(text) {
	const bytes = [...new TextEncoder().encode(text)];
	const v = TOTAL.findIndex((total, i) => bytes.length + (i < 9 ? 2 : 3) <= total - ECC[i] * BLOCKS[i]);
	if (v < 0)
		return null;
	const size = 17 + 4 * (v + 1), cells = Array.from({length: size}, () => new Array(size).fill(null));
	fixed(v, (x, y, dark) => {
		if (x >= 0 && y >= 0 && x < size && y < size)
			cells[y][x] = dark;
	});
	const words = codewords(bytes, v);
	let at = 0;
	for (let right = size - 1; right > 0; right -= 2) {
		if (right === 6)
			right = 5;
		for (let i = 0; i < size; i++)
			for (const x of [right, right - 1]) {
				const y = (right + 1 & 2) === 0 ? size - 1 - i : i;
				if (cells[y][x] === null) {
					cells[y][x] = Boolean((words[at >> 3] ?? 0) >> 7 - (at & 7) & 1) !== ((x + y) % 2 === 0);
					at++;
				}
			}
	}
	return cells;
}

/* {path, box} of an SVG, or null where the text is too long. */
export function qrPath(text) {
	const cells = modules(text);
	return cells && {box: `0 0 ${cells.length + 2 * QUIET} ${cells.length + 2 * QUIET}`,
		path: cells.flatMap((row, y) => row.map((dark, x) => dark ? `M${x + QUIET} ${y + QUIET}h1v1h-1z` : '')).join('')};
}
