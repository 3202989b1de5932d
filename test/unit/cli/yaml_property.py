"""Random JSON values, written as YAML by the client, are the same values to another reader of YAML. Run by properties.py."""
import json
import random

import yaml

WORDS = ['', 'true', 'No', 'y', 'null', '~', 'off', '1', '-1', '1.5', '1e3', '0x1f', '0o7', '017', '1:30', '2026-11-16', '.inf', '.nan',
	 '2026-11-16T01:02:03Z', '- a', '-', '?', ': ', 'a: b', 'a #b', '#', '&a', '*a', '!t', '|', '>', '%', '@', '`', '[', '{', ']', '}',
	 ',', "'", '"', '\\', 'a ', ' a', 'a\nb', 'a\r\nb', '\t', '---', '...', '=', '<<', 'é', '\u2028', '\u0085', '\ufeff', '\x7f',
	 '\x1b[0m', '\U0001f600', 'M10', 'US_EAST_1', 'a b c', 'x' * 300, 'a/b.c-d_e', 'a:b', '\u00a0']


def text(r):
	return r.choice(WORDS) if r.random() < 0.7 else ''.join(r.choice(WORDS) or '' for _ in range(r.randrange(4)))[:600]


def value(r, depth):
	kind = r.randrange(9 if depth else 6)
	if kind < 2:
		return text(r)
	if kind == 2:
		return r.choice([0, -1, 7, 2**63 - 1, -2**63, r.randrange(-10**9, 10**9)])
	if kind == 3:
		return r.choice([0.5, -0.0, 1e20, 1.5e-7, 1 / 3, 1e300, -2.5e-300, 100.0, r.random() * 10**r.randrange(-9, 9)])
	if kind < 6:
		return r.choice([True, False, None])
	if kind < 8:
		return {text(r): value(r, depth - 1) for _ in range(r.randrange(4))}
	return [value(r, depth - 1) for _ in range(r.randrange(4))]


def same(a, b):
	if type(a) is not type(b):
		return False
	if isinstance(a, dict):
		return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
	if isinstance(a, list):
		return len(a) == len(b) and all(map(same, a, b))
	return a == b


def run(api):
	r = random.Random(13)
	values = [value(r, 4) for _ in range(3000)] + WORDS + [{w: w} for w in WORDS] + [[w] for w in WORDS]
	out = yield ''.join(json.dumps(v) + '\n' for v in values)
	read = list(yaml.load_all(out, Loader=getattr(yaml, 'CSafeLoader', yaml.SafeLoader)))
	assert len(read) == len(values), (len(read), len(values))
	for made, got in zip(values, read):
		assert same(made, got), (made, got)
	print('%d values are the same' % len(values))
