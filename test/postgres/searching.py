"""What search queries find, without PostgreSQL: rows, operators and scores as docs/search.md describes them."""
import fnmatch, random, re

WORDS = ['amber', 'basin', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'haven', 'inlet', 'jetty', 'knoll', 'lagoon', 'marsh', 'nectar',
	 'oasis', 'prairie', 'quarry', 'ridge', 'savanna', 'tundra', 'upland', 'valley', 'willow', 'yonder', 'zenith', 'ambers', 'cedarwood']


def rows(count, seed=7):
	r = random.Random(seed)
	return [{'id': n, 'title': ' '.join(r.choices(WORDS, k=r.randint(2, 6))), 'body': ' '.join(r.choices(WORDS, k=r.randint(5, 40))),
		 'stock': r.randint(0, 200), 'price': round(r.uniform(0, 50), 2), 'live': r.random() < 0.5,
		 'tag': r.choice(WORDS).capitalize() if r.random() < 0.9 else None,
		 'doc': {'city': ' '.join(r.choices(WORDS, k=2)), 'tags': r.sample(WORDS, r.randint(0, 3)), 'n': r.randint(0, 50),
			 'deep': [{'word': r.choice(WORDS)} for _ in range(r.randint(0, 2))]}} for n in range(1, count + 1)]


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
	return [w for v in values(row, path) for w in v.lower().split() + [None]]


def rank(words, wanted):
	"""ts_rank of an OR: each word counts 0.1, and less each time that it comes again; the mean over the words asked for."""
	total = 0.0
	for w in wanted:
		total += sum(0.1 / (j + 1) ** 2 for j in range(words.count(w))) / 1.64493406685
	return total / len(wanted)


def text(q, row):
	wanted = sorted(set(q['query'].lower().split()))
	every, hit, score = q.get('matchCriteria') == 'all', False, 0.0
	for p in paths(q):
		words = words_of(row, p)
		if (all if every else any)(w in words for w in wanted):
			hit = True
			score += rank(words, wanted)
	return hit, None if every and len(wanted) > 1 else score


def phrase(q, row):
	wanted = q['query'].lower().split()
	hit = any(words[i:i + len(wanted)] == wanted for p in paths(q) for words in [words_of(row, p)] for i in range(len(words)))
	return hit, None


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


OPERATORS = {'text': text, 'phrase': phrase, 'autocomplete': autocomplete, 'wildcard': wildcard, 'regex': regex, 'range': span,
	     'equals': equals, 'in': among, 'exists': exists, 'near': near, 'compound': compound}


def evaluate(query, row):
	"""Whether a row is found, and its score; None: of that score nothing is said here."""
	(name, q), = query.items()
	hit, score = OPERATORS[name](q, row)
	if 'score' in q:
		given = q['score']
		score = given['constant']['value'] if 'constant' in given else score and score * given['boost']['value']
	return hit, score


def some_query(r, depth=0):
	"""Any operator, over any field that has it."""
	text_path = r.choice(['title', 'body', 'doc.city', 'doc.deep.word', ['title', 'body']])
	some = lambda n=1: ' '.join(r.choices(WORDS, k=n))
	kind = r.choice(list(OPERATORS)[:-1] + (['compound'] * 4 if depth < 2 else []))
	q = {'text': lambda: {'query': some(r.randint(1, 3)), 'path': text_path, **r.choice([{}, {}, {'matchCriteria': 'all'}])},
	     'phrase': lambda: {'query': some(2), 'path': r.choice(['title', 'body', 'doc.city'])},
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
