"""Custom analyzers by themselves: what the filters and tokenizers of docs/search.md make of a text, in Python. Stemmers are PostgreSQL's
own, and left out."""
import re, unicodedata

INLINE = 'a abbr acronym b basefont bdo big cite code dfn em font i img input kbd label q s samp select small span strike strong sub sup textarea tt u var'.split()
LETTERS = {'ß': 'ss', 'ẞ': 'SS', 'æ': 'ae', 'Æ': 'AE', 'œ': 'oe', 'Œ': 'OE', 'þ': 'th', 'Þ': 'TH', **dict(zip('øØđĐłŁħĦıŧŦðÐ‘’“”–—', 'oOdDlLhHitTdD\'\'""--'))}


def mapped(s, text):
	out, at = '', 0
	keys = sorted(s['mappings'], key=len, reverse=True)
	while at < len(text):
		key = next((k for k in keys if text.startswith(k, at)), None)
		out += text[at] if key is None else s['mappings'][key]
		at += 1 if key is None else len(key)
	return out


def stripped(s, text):
	kept = [t.lower() for t in s.get('ignoredTags', [])]
	text = re.sub(r'<!--.*?-->', '', text, flags=re.S)
	for tag in ('script', 'style'):
		if tag not in kept:
			text = re.sub(r'<%s\b.*?</%s\s*>' % (tag, tag), '', text, flags=re.S | re.I)
	def gone(m):
		name = re.match(r'</?!?([a-zA-Z0-9]+)', m.group())[1].lower()
		return m.group() if name in kept else '' if name in INLINE and not m.group().startswith('<!') else '\n'
	text = re.sub(r'<[/!]?[a-zA-Z][^<>]*>', gone, text)
	for entity, letter in (('&lt;', '<'), ('&gt;', '>'), ('&quot;', '"'), ('&apos;', "'"), ('&#39;', "'"), ('&nbsp;', ' '), ('&amp;', '&')):
		text = text.replace(entity, letter)
	return text


def ascii_of(word, every=False):
	if word.isascii():
		return word
	out = ''
	for c in unicodedata.normalize('NFKD', ''.join(LETTERS.get(c, c) for c in word)):
		mark = '\u0300' <= c <= '\u036f'
		base = next((x for x in reversed(out) if not '\u0300' <= x <= '\u036f'), '')
		if not mark or not (every or (base and base.isascii())):
			out += c
	return unicodedata.normalize('NFC', out)


def grams(word, least, most):
	return [word[i:i + n] for i in range(len(word)) for n in range(least, most + 1) if i + n <= len(word)]


def edges(word, least, most):
	return [word[:n] for n in range(least, most + 1) if n <= len(word)]


def tokens(s, text):
	kind, most = s['type'], s.get('maxTokenLength', 255)
	if kind == 'whitespace':
		return [w[i:i + most] for w in text.split() for i in range(0, len(w), most)]
	if kind == 'keyword':
		return [text] if text else []
	if kind in ('edgeGram', 'nGram'):
		return (edges if kind == 'edgeGram' else grams)(text, s['minGram'], s['maxGram'])
	if kind == 'regexSplit':
		return [w for w in re.split(s['pattern'], text, flags=re.A) if w]
	return [m.group(s['group']) for m in re.finditer(s['pattern'], text, re.A) if m.group(s['group'])]


def filtered(s, list_of):
	"""Of words and their places."""
	kind = s['type']
	one = {'lowercase': str.lower, 'trim': lambda w: w.strip(' \t\n\r\f\v'), 'reverse': lambda w: w[::-1], 'icuFolding': lambda w: ascii_of(w, True).lower(),
	       'englishPossessive': lambda w: re.sub("['\u2019\uff07][sS]\\Z", '', w),
	       'icuNormalizer': lambda w: unicodedata.normalize(s.get('normalizationForm', 'nfc').upper(), w),
	       'regex': lambda w: re.sub(s['pattern'], s['replacement'], w, count=0 if s['matches'] == 'all' else 1, flags=re.A)}.get(kind)
	if one:
		return [(one(w), p) for w, p in list_of]
	if kind == 'asciiFolding':
		return [(x, p) for w, p in list_of for x in ([w] if s.get('originalTokens') == 'include' and w != ascii_of(w) else []) + [ascii_of(w)]]
	if kind == 'length':
		return [(w, p) for w, p in list_of if s.get('min', 0) <= len(w) <= s.get('max', 255)]
	if kind == 'stopword':
		low = str.lower if s.get('ignoreCase', True) else str
		return [(w, p) for w, p in list_of if low(w) not in [low(x) for x in s['tokens']]]
	if kind == 'shingle':
		return [(' '.join(w for w, _ in list_of[i:i + n]), p) for i, (_, p) in enumerate(list_of)
			for n in [1, *range(s['minShingleSize'], s['maxShingleSize'] + 1)] if i + n <= len(list_of)]
	whole = s.get('termNotInBounds') == 'include'
	cut = edges if kind == 'edgeGram' else grams
	return [(x, p) for w, p in list_of for x in cut(w, s['minGram'], s['maxGram']) + (
		[w] if whole and not s['minGram'] <= len(w) <= s['maxGram'] else [])]


def analyzed(analyzer, text):
	"""The words with the places where they are."""
	for s in analyzer.get('charFilters', []):
		text = {'mapping': mapped, 'htmlStrip': stripped, 'icuNormalize': lambda s, t: unicodedata.normalize('NFKC', t).lower(),
			'persian': lambda s, t: t.replace('\u200c', ' ')}[s['type']](s, text)
	list_of = [(w, n) for n, w in enumerate(tokens(analyzer['tokenizer'], text), 1)]
	for s in analyzer.get('tokenFilters', []):
		list_of = filtered(s, list_of)
	found = {}
	for w, p in list_of:
		if w and len(w.encode()) <= 2046:
			found.setdefault(w, set()).add(p)
	return {w: sorted(p) for w, p in found.items()}


PIECES = ['Amber', "O'Neil's", 'naïve', 'Straße', 'œuvre', 'ÅNGSTRÖM', '１２３', 'a-b_c', 'x.y@z.org', '<b>bold</b>', '<p class="x">', '<!-- no -->', '&amp;',
	  '<script>1<2</script>', 'the', 'The', 'ﬁne', 'Ελλάδα', 'Йод', '\u200c', '.', '::', 'road road', 'fjord\tgrove', 'A' * 20, "back\\slash", "''", '東京', 'e\u0301t', '<i']


def some_text(r):
	return r.choice(['', ' ', '\n']).join(r.choice([p, p + ' ']) for p in r.choices(PIECES, k=r.randint(0, 12)))


def some_analyzer(r):
	gram = lambda: (lambda n: {'minGram': n, 'maxGram': n + r.randint(0, 4)})(r.randint(1, 4))
	pattern = lambda: r.choice(['[aeiou]+', r'\W+', r'[\d\s]|[.]', '(?:road|the) ?', r'[^a-z]', r'\s{2,}', 'a.', 'é'])
	char = lambda: r.choice([{'type': 'htmlStrip'}, {'type': 'htmlStrip', 'ignoredTags': ['b', 'P']}, {'type': 'icuNormalize'}, {'type': 'persian'},
				 {'type': 'mapping', 'mappings': {'.': ' ', 'am': 'AM', 'amb': '[*]', "'": '', '\\': '/', '東': 'to '}}])
	word = lambda: r.choice([{'type': t} for t in ('lowercase', 'trim', 'reverse', 'icuFolding', 'englishPossessive', 'asciiFolding')] + [
		{'type': 'asciiFolding', 'originalTokens': 'include'}, {'type': 'icuNormalizer', 'normalizationForm': r.choice(['nfc', 'nfd', 'nfkc', 'nfkd'])},
		{'type': 'length', 'min': r.randint(0, 3), 'max': r.randint(3, 9)}, {'type': 'stopword', 'tokens': ['the', 'Road'], 'ignoreCase': r.random() < 0.5},
		{'type': 'regex', 'pattern': pattern(), 'replacement': r.choice(['', '_', 'x y']), 'matches': r.choice(['all', 'first'])},
		{'type': 'edgeGram', **gram(), 'termNotInBounds': r.choice(['omit', 'include'])}, {'type': 'nGram', **gram()},
		{'type': 'shingle', 'minShingleSize': 2, 'maxShingleSize': r.randint(2, 4)}])
	tokenizer = r.choice([{'type': 'whitespace'}, {'type': 'whitespace', 'maxTokenLength': r.randint(1, 9)}, {'type': 'keyword'}, {'type': 'edgeGram', **gram()},
			      {'type': 'nGram', **gram()}, {'type': 'regexSplit', 'pattern': pattern()}, {'type': 'regexCaptureGroup', 'pattern': '([a-z]+)(.)', 'group': r.randint(0, 2)}])
	return {'charFilters': [char() for _ in range(r.randint(0, 2))], 'tokenizer': tokenizer, 'tokenFilters': [word() for _ in range(r.randint(0, 3))]}
