"""What search queries find, without PostgreSQL: rows, operators and scores as docs/search.md describes them."""
import collections, fnmatch, functools, itertools, json, math, random, re

WORDS = ['amber', 'basin', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'haven', 'inlet', 'jetty', 'knoll', 'lagoon', 'marsh', 'nectar',
	 'oasis', 'prairie', 'quarry', 'ridge', 'savanna', 'tundra', 'upland', 'valley', 'willow', 'yonder', 'zenith', 'ambers', 'cedarwood']


def row_of(r, n, some):
	"""A row whose words some(k) chooses."""
	return {'id': n, 'title': ' '.join(some(r.randint(2, 6))), 'body': ' '.join(some(r.randint(5, 40))),
		'stock': r.randint(0, 200), 'price': round(r.uniform(0, 50), 2), 'live': r.random() < 0.5,
		'tag': some(1)[0].capitalize() if r.random() < 0.9 else None,
		'doc': {'city': ' '.join(some(2)), 'tags': sorted(set(some(r.randint(0, 3)))), 'n': r.randint(0, 50),
			'deep': [{'word': some(1)[0]} for _ in range(r.randint(0, 2))]}}


def rows(count, seed=7):
	r = random.Random(seed)
	return [row_of(r, n, lambda k: r.choices(WORDS, k=k)) for n in range(1, count + 1)]


def values(row, path):
	found = [row]
	for step in path.split('.'):
		found = [v[step] for v in found if isinstance(v, dict) and v.get(step) is not None]
		found = [x for v in found for x in (v if isinstance(v, list) else [v])]
	return found


def paths(q):
	return q['path'] if isinstance(q['path'], list) else [q['path']]


def words_of(row, path):
	"""With a gap between the texts of a document, so that no phrase goes over it."""
	if isinstance(path, dict):
		return [w and STEMS.get(w, w) for w in words_of(row, path['value'])]
	return [w for v in values(row, path) for w in v.lower().split() + [None]]


STEMS = {'ambers': 'amber'}  # of WORDS, those that English knows as forms of each other
STRINGS = ['title', 'body', 'doc.city', 'doc.deep.word']
ALIKE = [('equivalent', [], ['amber', 'fjord grove']), ('explicit', ['basin'], ['cedar', 'delta']), ('explicit', ['ember haven', 'tundra'], ['inlet']),
	 ('equivalent', [], ['jetty', 'knoll', 'basin'])]


@functools.lru_cache(None)
def edits(a, b):
	"""Letters that are missing, too many, others, or changed places with the next, by the definition."""
	if not a or not b:
		return len(a) + len(b)
	least = min(edits(a[:-1], b) + 1, edits(a, b[:-1]) + 1, edits(a[:-1], b[:-1]) + (a[-1] != b[-1]))
	return min(least, edits(a[:-2], b[:-2]) + 1) if len(a) > 1 and len(b) > 1 and a[-2:] == b[-1] + b[-2] else least


def fuzzy(q, row):
	z, hit, score = q['fuzzy'], False, 0.0
	most, fixed = z.get('maxEdits', 2), z.get('prefixLength', 0)
	for p in paths(q):
		there, best = {w for w in words_of(row, p) if w}, []
		for wanted in sorted(set(q['query'].lower().split())):
			close = [max(0, 1 - edits(w, wanted) / min(len(w), len(wanted))) for w in there if w[:fixed] == wanted[:fixed] and edits(w, wanted) <= most]
			best.append(max(close, default=None))
		if (all if q.get('matchCriteria') == 'all' else any)(b is not None for b in best):
			hit = True
			score += sum(b or 0 for b in best)
	return hit, score


def sloppy(q, row):
	"""Each word of the phrase at a place of its own: how far they are from following each other."""
	wanted, score = q['query'].lower().split(), 0.0
	for p in paths(q):
		words = words_of(row, p)
		choices = itertools.product(*([at for at, w in enumerate(words) if w == one] for one in wanted))
		spans = [max(d) - min(d) for c in choices if len(set(c)) == len(c) for d in [[at - i for i, at in enumerate(c)]]]
		if spans and min(spans) <= q['slop']:
			score += 1 / (1 + min(spans))
	return score > 0, score


def synonymous(q, row):
	tokens, groups, at = q['query'].lower().split(), [], 0
	while at < len(tokens):
		for n in range(len(tokens) - at, 0, -1):
			said = ' '.join(tokens[at:at + n])
			meant = {s for kind, given, same in ALIKE if said in (given if kind == 'explicit' else same) for s in same}
			if meant or n == 1:
				groups.append([m.split() for m in meant or {said}])
				at += n
				break
	hit, score = False, 0.0
	for p in paths(q):
		words = words_of(row, p)
		found = [any(words[i:i + len(m)] == m for m in g for i in range(len(words))) for g in groups]
		if (all if q.get('matchCriteria') == 'all' else any)(found):
			hit = True
			score += rank(words, {w for g in groups for m in g for w in m}, p)
	return hit, score


def like(q, row):
	given, hit, score = q['like'] if isinstance(q['like'], list) else [q['like']], False, 0.0
	for p in STRINGS:
		counts = collections.Counter(w for d in given for w in words_of(d, p) if w)
		wanted, words = sorted(counts, key=lambda w: (-counts[w], w))[:25], words_of(row, p)
		if any(w in words for w in wanted):
			hit = True
			score += rank(words, wanted, p)
	return hit, score


@functools.lru_cache(None)
def counted(path):
	"""Of all rows: how many have words there, how many words those have, and how many rows have each word."""
	path = json.loads(path)
	texts = [[w for w in words_of(row, path) if w] for row in EVERY]
	return sum(map(bool, texts)), sum(map(len, texts)), collections.Counter(w for t in texts for w in set(t))


EVERY = []  # the rows that are searched: whoever asks for scores fills it


def rank(words, wanted, path):
	"""BM25, each word that is asked for once."""
	rows, total, having = counted(json.dumps(path))
	words, score = [w for w in words if w], 0.0
	for w in wanted:
		n = words.count(w)
		weight = math.log(1 + (rows - having[w] + 0.5) / (having[w] + 0.5))
		score += weight * n / (n + 1.2 * (0.25 + 0.75 * len(words) / (total / rows)))
	return score


def text(q, row):
	if 'fuzzy' in q or 'synonyms' in q:
		return (fuzzy if 'fuzzy' in q else synonymous)(q, row)
	every, hit, score = q.get('matchCriteria') == 'all', False, 0.0
	for p in paths(q):
		words = words_of(row, p)
		wanted = sorted({STEMS.get(w, w) if isinstance(p, dict) else w for w in q['query'].lower().split()})
		if (all if every else any)(w in words for w in wanted):
			hit = True
			score += rank(words, wanted, p)
	return hit, score


def phrase(q, row):
	if q.get('slop'):
		return sloppy(q, row)
	wanted = q['query'].lower().split()
	score, hit = 0.0, False
	for p in paths(q):
		words = words_of(row, p)
		if any(words[i:i + len(wanted)] == wanted for i in range(len(words))):
			hit = True
			score += rank(words, set(wanted), p)
	return hit, score


def autocomplete(q, row):
	return any(all(any(w.startswith(part) for w in v.lower().split()) for part in q['query'].lower().split())
		   for p in paths(q) for v in values(row, p)), 1.0


def wildcard(q, row):
	pattern = re.compile(fnmatch.translate(q['query']), re.S)
	analyzed = q.get('allowAnalyzedField')
	return any(pattern.match(w) for p in paths(q) for v in values(row, p) for w in (v.lower().split() if analyzed else [v])), 1.0


def regex(q, row):
	return any(re.fullmatch(q['query'], v) for p in paths(q) for v in values(row, p)), 1.0


def span(q, row):
	tests = {'gt': lambda a, b: a > b, 'gte': lambda a, b: a >= b, 'lt': lambda a, b: a < b, 'lte': lambda a, b: a <= b}
	return any(all(t(v, q[k]) for k, t in tests.items() if k in q) for p in paths(q) for v in values(row, p)), 1.0


def equals(q, row):
	return any(v == q['value'] and isinstance(v, bool) == isinstance(q['value'], bool) for p in paths(q) for v in values(row, p)), 1.0


def among(q, row):
	return any(v in q['value'] for p in paths(q) for v in values(row, p)), 1.0


def exists(q, row):
	at = [row]
	for step in q['path'].split('.'):
		at = [v[step] for x in at for v in (x if isinstance(x, list) else [x]) if isinstance(v, dict) and v.get(step) is not None]
	return bool(at), 1.0


def near(q, row):
	found = values(row, q['path'])
	return bool(found), q['pivot'] / (q['pivot'] + abs(found[0] - q['origin'])) if found else 0.0


def compound(q, row):
	done = {k: [evaluate(p, row) for p in q.get(k, [])] for k in ('must', 'filter', 'should', 'mustNot')}
	least = q.get('minimumShouldMatch', 0 if done['must'] or done['filter'] or done['mustNot'] and not done['should'] else 1)
	if not (q.get('must') or q.get('filter')) and 'minimumShouldMatch' not in q and done['should']:
		least = 1
	hit = all(h for k in ('must', 'filter') for h, _ in done[k]) and not any(h for h, _ in done['mustNot'])
	hit = hit and sum(h for h, _ in done['should']) >= (least if done['should'] else 0)
	scores = [s for _, s in done['must']] + [s for h, s in done['should'] if h]
	return hit, None if None in scores else sum(scores)


OPERATORS = {'text': text, 'phrase': phrase, 'moreLikeThis': like, 'autocomplete': autocomplete, 'wildcard': wildcard, 'regex': regex, 'range': span,
	     'equals': equals, 'in': among, 'exists': exists, 'near': near, 'compound': compound}


def evaluate(query, row):
	"""Whether a row is found, and its score; None: of that score nothing is said here."""
	(name, q), = query.items()
	hit, score = OPERATORS[name](q, row)
	if 'score' in q:
		given = q['score']
		score = given['constant']['value'] if 'constant' in given else score and score * given['boost']['value']
	return hit, score


def misspelt(r, word):
	for _ in range(r.randint(0, 2)):
		i = r.randrange(len(word))
		word = r.choice([word[:i] + word[i + 1:], word[:i] + 'q' + word[i:], word[:i] + 'z' + word[i + 1:], word[:i] + word[i:i + 2][::-1] + word[i + 2:]]) or word
	return word


def some_text(r, some, path):
	return r.choice([lambda: {'query': some(r.randint(1, 3)), 'path': r.choice([path, {'value': 'title', 'multi': 'english'}])},
			 lambda: {'query': ' '.join(misspelt(r, w) for w in some(r.randint(1, 2)).split()), 'path': path,
				  'fuzzy': r.choice([{}, {'maxEdits': 1}, {'prefixLength': r.randint(1, 3)}, {'maxEdits': 1, 'prefixLength': 2}])},
			 lambda: {'query': ' '.join(r.choices([*WORDS, 'fjord grove', 'amber', 'basin', 'ember haven', 'tundra'], k=r.randint(1, 3))), 'path': path,
				  'synonyms': 'alike'}])()


def some_query(r, depth=0):
	"""Any operator, over any field that has it."""
	text_path = r.choice(['title', 'body', 'doc.city', 'doc.deep.word', ['title', 'body']])
	some = lambda n=1: ' '.join(r.choices(WORDS, k=n))
	kind = r.choice(list(OPERATORS)[:-1] + (['compound'] * 4 if depth < 2 else []))
	q = {'text': lambda: {**some_text(r, some, text_path), **r.choice([{}, {}, {'matchCriteria': 'all'}])},
	     'phrase': lambda: {'query': some(r.randint(2, 3)), 'path': r.choice(['title', 'body', 'doc.city', ['title', 'body']]), **r.choice([{}, {'slop': r.randint(1, 6)}])},
	     'moreLikeThis': lambda: {'like': r.choice([{'title': some(3)}, {'body': some(60), 'stock': 3}, {'doc': {'city': some(1), 'deep': [{'word': some(1)}]}},
							[{'title': some(2)}, {'title': some(2), 'body': some(1)}]])},
	     'autocomplete': lambda: {'query': ' '.join(w[:r.randint(2, 4)] for w in some(r.randint(1, 2)).split()), 'path': r.choice(['title', 'doc.tags'])},
	     'wildcard': lambda: r.choice([{'query': r.choice(WORDS)[:3] + '*', 'path': 'title', 'allowAnalyzedField': True},
					   {'query': '?' + r.choice(WORDS)[1:4] + '*', 'path': ['tag', 'doc.tags']}]),
	     'regex': lambda: {'query': '[%s].*(a|r).?' % r.choice(['A-M', 'N-Z', 'a-z']), 'path': ['tag', 'doc.tags']},
	     'range': lambda: {'path': r.choice(['stock', 'price', 'doc.n']), r.choice(['gt', 'gte']): r.randint(0, 30), **r.choice([{}, {'lt': r.randint(20, 90) + 0.5}])},
	     'equals': lambda: r.choice([{'path': 'stock', 'value': r.randint(0, 200)}, {'path': 'live', 'value': r.random() < 0.5},
					 {'path': 'tag', 'value': r.choice(WORDS).capitalize()}, {'path': 'doc.tags', 'value': r.choice(WORDS)},
					 {'path': 'doc.n', 'value': r.randint(0, 50)}]),
	     'in': lambda: r.choice([{'path': 'doc.n', 'value': r.sample(range(50), 3)}, {'path': ['tag', 'doc.tags'], 'value': [w.capitalize() for w in r.sample(WORDS, 3)] + r.sample(WORDS, 2)}]),
	     'exists': lambda: {'path': r.choice(['tag', 'doc.deep', 'doc.deep.word', 'title'])},
	     'near': lambda: {'path': r.choice(['stock', 'price']), 'origin': r.randint(0, 50), 'pivot': r.randint(1, 9)},
	     'compound': lambda: {k: [some_query(r, depth + 1) for _ in range(r.randint(1, 2))] for k in r.sample(['must', 'mustNot', 'should', 'filter'], r.randint(1, 3))}}[kind]()
	if r.random() < 0.2:
		q['score'] = r.choice([{'boost': {'value': 2.5}}, {'constant': {'value': 3}}])
	return {kind: q}
