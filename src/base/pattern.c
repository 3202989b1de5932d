/* An expression becomes a tree, the tree a program of a few instructions, and the program runs over the text once,
 * in all its states at the same time (Thompson's way). What is repeated is written out, so the number of
 * instructions is what bounds the work; an expression that needs too many is refused.
 *
 * Texts are bytes: "." and "[^...]" are a byte that begins a character, and the bytes that go on with it. */
#include "base/pattern.h"

#include <errno.h>
#include <string.h>

#define PROGRAM_MAX 1000
#define REPEAT_MAX 255
#define DEPTH_MAX 32
#define BYTES 256

enum node_kind { NODE_NOTHING, NODE_SET, NODE_BEGIN, NODE_END, NODE_BOTH, NODE_EITHER, NODE_REPEAT };

struct node {
	enum node_kind kind;
	const struct node *left, *right;
	unsigned least, most; /* most 0: without end */
	uint32_t set[BYTES / 32];
};

enum step_kind { STEP_SET, STEP_SPLIT, STEP_JUMP, STEP_BEGIN, STEP_END, STEP_DONE };

struct step {
	enum step_kind kind;
	unsigned to, other;
	const uint32_t *set;
};

struct pattern {
	struct step *steps;
	size_t count;
};

struct parser {
	struct str text;
	size_t at;
	unsigned depth;
	struct arena *arena;
	const char *why;
};

/* --- reading */

static const struct node *either_read(struct parser *p);

static struct node *node_new(struct parser *p, enum node_kind kind)
{
	struct node *n = arena_calloc(p->arena, 1, sizeof *n);
	n->kind = kind;
	return n;
}

static const struct node *fail(struct parser *p, const char *why)
{
	if (!p->why)
		p->why = why;
	return NULL;
}

static bool at_end(const struct parser *p)
{
	return p->at >= p->text.n;
}

static unsigned char peek(const struct parser *p)
{
	return at_end(p) ? 0 : (unsigned char)p->text.p[p->at];
}

static bool take(struct parser *p, char c)
{
	if (at_end(p) || p->text.p[p->at] != c)
		return false;
	p->at++;
	return true;
}

static void set_add(uint32_t *set, unsigned byte)
{
	set[byte / 32] |= UINT32_C(1) << byte % 32;
}

static bool set_has(const uint32_t *set, unsigned byte)
{
	return set[byte / 32] >> byte % 32 & 1;
}

static void set_add_range(uint32_t *set, unsigned from, unsigned to)
{
	for (unsigned i = from; i <= to; i++)
		set_add(set, i);
}

/* \d \w \s. False: it is none of them. */
static bool class_add(uint32_t *set, char letter)
{
	if (letter == 'd' || letter == 'w')
		set_add_range(set, '0', '9');
	if (letter == 'w') {
		set_add_range(set, 'a', 'z');
		set_add_range(set, 'A', 'Z');
		set_add(set, '_');
	}
	if (letter == 's') {
		set_add(set, ' ');
		set_add_range(set, '\t', '\r');
	}
	return letter == 'd' || letter == 'w' || letter == 's';
}

static const struct node *both(struct parser *p, const struct node *left, const struct node *right)
{
	struct node *n = node_new(p, NODE_BOTH);
	n->left = left;
	n->right = right;
	return n;
}

static const struct node *repeat(struct parser *p, const struct node *what, unsigned least, unsigned most)
{
	struct node *n = node_new(p, NODE_REPEAT);
	n->left = what;
	n->least = least;
	n->most = most;
	return n;
}

/* Any character but those of the set, which are ASCII. */
static const struct node *others(struct parser *p, const uint32_t *set)
{
	struct node *first = node_new(p, NODE_SET), *more = node_new(p, NODE_SET);
	for (unsigned i = 0; i < BYTES; i++)
		if ((i < 0x80 || i >= 0xc0) && !set_has(set, i))
			set_add(first->set, i);
	set_add_range(more->set, 0x80, 0xbf);
	return both(p, first, repeat(p, more, 0, 0));
}

/* After the backslash. */
static const struct node *escape_read(struct parser *p)
{
	static const char opposites[] = "DWS", classes[] = "dws";
	struct node *n = node_new(p, NODE_SET);
	if (at_end(p))
		return fail(p, "ends with a backslash");
	unsigned char c = peek(p);
	p->at++;
	if (class_add(n->set, (char)c))
		return n;
	const char *opposite = c ? strchr(opposites, c) : NULL;
	if (opposite) {
		class_add(n->set, classes[opposite - opposites]);
		return others(p, n->set);
	}
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return fail(p, "has a backslash before a letter or digit other than d, w, s, D, W and S");
	set_add(n->set, c);
	return n;
}

static int class_byte(struct parser *p)
{
	if (at_end(p) || peek(p) >= 0x80) {
		fail(p, at_end(p) ? "has a [ without its ]" : "has letters beyond ASCII between [ and ]");
		return -1;
	}
	if (take(p, '\\') && at_end(p)) {
		fail(p, "ends with a backslash");
		return -1;
	}
	return (unsigned char)p->text.p[p->at++];
}

static bool class_part(struct parser *p, uint32_t *set)
{
	if (peek(p) == '\\' && p->at + 1 < p->text.n && class_add(set, p->text.p[p->at + 1])) {
		p->at += 2;
		return true;
	}
	int from = class_byte(p), to = from;
	if (from >= 0 && p->at + 1 < p->text.n && p->text.p[p->at] == '-' && p->text.p[p->at + 1] != ']') {
		p->at++;
		to = class_byte(p);
	}
	if (from < 0 || to < 0)
		return false;
	if (to < from) {
		fail(p, "has a range between [ and ] that ends before it begins");
		return false;
	}
	set_add_range(set, (unsigned)from, (unsigned)to);
	return true;
}

/* After the bracket. */
static const struct node *class_read(struct parser *p)
{
	struct node *n = node_new(p, NODE_SET);
	bool not = take(p, '^');
	bool first = true;
	while (first || peek(p) != ']') {
		if (!class_part(p, n->set))
			return NULL;
		first = false;
	}
	p->at++;
	return not ? others(p, n->set) : n;
}

/* A character of the text: one byte, or all bytes of it. */
static const struct node *character_read(struct parser *p)
{
	const struct node *all = NULL;
	do {
		struct node *n = node_new(p, NODE_SET);
		set_add(n->set, peek(p));
		all = all ? both(p, all, n) : n;
		p->at++;
	} while (peek(p) >= 0x80 && peek(p) < 0xc0);
	return all;
}

static const struct node *group_read(struct parser *p)
{
	if (p->depth == DEPTH_MAX)
		return fail(p, "has too many groups in groups");
	if (take(p, '?') && !take(p, ':'))
		return fail(p, "has a group that begins with ?: only (?: is there");
	p->depth++;
	const struct node *n = either_read(p);
	p->depth--;
	if (n && !take(p, ')'))
		return fail(p, "has a ( without its )");
	return n;
}

static const struct node *atom_read(struct parser *p)
{
	static const uint32_t nothing[BYTES / 32];
	if (take(p, '('))
		return group_read(p);
	if (take(p, '['))
		return class_read(p);
	if (take(p, '\\'))
		return escape_read(p);
	if (take(p, '.'))
		return others(p, nothing);
	if (take(p, '^'))
		return node_new(p, NODE_BEGIN);
	if (take(p, '$'))
		return node_new(p, NODE_END);
	if (strchr("*+?{", peek(p)) && peek(p))
		return fail(p, "repeats what is not there");
	return character_read(p);
}

static bool number_read(struct parser *p, unsigned *ret_number)
{
	size_t from = p->at;
	unsigned n = 0;
	while (!at_end(p) && peek(p) >= '0' && peek(p) <= '9' && n <= REPEAT_MAX)
		n = n * 10 + (unsigned)(p->text.p[p->at++] - '0');
	*ret_number = n;
	return p->at > from && n <= REPEAT_MAX;
}

/* After the brace. */
static const struct node *count_read(struct parser *p, const struct node *what)
{
	unsigned least, most;
	bool good = number_read(p, &least);
	most = least;
	if (good && take(p, ',')) {
		most = 0;
		good = peek(p) == '}' || (number_read(p, &most) && most >= least && most);
	} else if (good && !most) {
		good = false;
	}
	if (!good || !take(p, '}'))
		return fail(p, "has a { that is not {2}, {2,} or {2,5} with numbers up to 255");
	return repeat(p, what, least, most);
}

static const struct node *piece_read(struct parser *p)
{
	const struct node *n = atom_read(p);
	unsigned times = 0;
	for (bool more = n; more; times += more) {
		if (times > DEPTH_MAX)
			return fail(p, "repeats what is repeated too often");
		more = n;
		if (take(p, '*'))
			n = repeat(p, n, 0, 0);
		else if (take(p, '+'))
			n = repeat(p, n, 1, 0);
		else if (take(p, '?'))
			n = repeat(p, n, 0, 1);
		else if (take(p, '{'))
			n = count_read(p, n);
		else
			more = false;
		more = more && n;
	}
	return n;
}

static const struct node *row_read(struct parser *p)
{
	const struct node *all = node_new(p, NODE_NOTHING);
	while (all && !at_end(p) && peek(p) != '|' && peek(p) != ')') {
		const struct node *n = piece_read(p);
		all = n ? both(p, all, n) : NULL;
	}
	return all;
}

static const struct node *either_read(struct parser *p)
{
	const struct node *left = row_read(p);
	while (left && take(p, '|')) {
		struct node *n = node_new(p, NODE_EITHER);
		n->left = left;
		n->right = row_read(p);
		left = n->right ? n : NULL;
	}
	return left;
}

/* --- the program */

static bool node_write(struct pattern *p, const struct node *n);

/* The place of a new step; PROGRAM_MAX: there is no room. */
static size_t step_add(struct pattern *p, enum step_kind kind)
{
	if (p->count == PROGRAM_MAX)
		return PROGRAM_MAX;
	p->steps[p->count] = (struct step){.kind = kind};
	return p->count++;
}

static bool either_write(struct pattern *p, const struct node *n)
{
	size_t split = step_add(p, STEP_SPLIT);
	if (split == PROGRAM_MAX || !node_write(p, n->left))
		return false;
	size_t jump = step_add(p, STEP_JUMP);
	if (jump == PROGRAM_MAX)
		return false;
	p->steps[split].to = (unsigned)split + 1;
	p->steps[split].other = (unsigned)p->count;
	if (!node_write(p, n->right))
		return false;
	p->steps[jump].to = (unsigned)p->count;
	return true;
}

/* Once more, or not; *ret_split: from where it can be passed by. */
static bool once_more_write(struct pattern *p, const struct node *n, size_t *ret_split)
{
	*ret_split = step_add(p, STEP_SPLIT);
	if (*ret_split == PROGRAM_MAX)
		return false;
	p->steps[*ret_split].to = (unsigned)*ret_split + 1;
	return node_write(p, n->left);
}

static bool repeat_write(struct pattern *p, const struct node *n)
{
	size_t split;
	for (unsigned i = 0; i < n->least; i++)
		if (!node_write(p, n->left))
			return false;
	for (unsigned i = n->least; i < n->most; i++) {
		if (!once_more_write(p, n, &split))
			return false;
		p->steps[split].other = (unsigned)p->count;
	}
	if (n->most)
		return true;
	if (!once_more_write(p, n, &split))
		return false;
	size_t jump = step_add(p, STEP_JUMP);
	if (jump == PROGRAM_MAX)
		return false;
	p->steps[jump].to = (unsigned)split;
	p->steps[split].other = (unsigned)p->count;
	return true;
}

static bool node_write(struct pattern *p, const struct node *n)
{
	size_t at;
	switch (n->kind) {
	case NODE_NOTHING: return true;
	case NODE_BOTH: return node_write(p, n->left) && node_write(p, n->right);
	case NODE_EITHER: return either_write(p, n);
	case NODE_REPEAT: return repeat_write(p, n);
	case NODE_BEGIN: return step_add(p, STEP_BEGIN) < PROGRAM_MAX;
	case NODE_END: return step_add(p, STEP_END) < PROGRAM_MAX;
	case NODE_SET: break;
	}
	at = step_add(p, STEP_SET);
	if (at == PROGRAM_MAX)
		return false;
	p->steps[at].set = n->set;
	return true;
}

int pattern_parse(struct str text, struct arena *a, const struct pattern **ret_pattern, const char **ret_why)
{
	struct parser parser = {.text = text, .arena = a};
	struct pattern *p = arena_calloc(a, 1, sizeof *p);
	*ret_why = "is longer than 256 bytes";
	if (text.n > PATTERN_BYTES)
		return -EINVAL;
	const struct node *tree = either_read(&parser);
	if (tree && !at_end(&parser))
		fail(&parser, "has a ) without its (");
	p->steps = arena_calloc(a, PROGRAM_MAX, sizeof *p->steps);
	if (tree && !parser.why && (!node_write(p, tree) || step_add(p, STEP_DONE) == PROGRAM_MAX))
		fail(&parser, "stands for too much: what is repeated counts as often as it may be there");
	if (parser.why) {
		*ret_why = parser.why;
		return -EINVAL;
	}
	*ret_pattern = p;
	return 0;
}

/* --- running */

struct states {
	unsigned list[PROGRAM_MAX];
	size_t count;
	bool has[PROGRAM_MAX];
	bool done;
};

/* The step, and all that it leads to without a byte of the text. Each is taken once, so there is an end of it. */
static void states_add(const struct pattern *p, struct states *s, unsigned first, size_t at, size_t end)
{
	unsigned todo[PROGRAM_MAX * 2 + 1]; /* each step adds two at most, once */
	size_t count = 0;
	todo[count++] = first;
	while (count) {
		unsigned i = todo[--count];
		const struct step *step = &p->steps[i];
		if (s->has[i])
			continue;
		s->has[i] = true;
		unsigned next = i + 1;
		bool leads = step->kind == STEP_JUMP || step->kind == STEP_SPLIT ||
		             (step->kind == STEP_BEGIN && at == 0) || (step->kind == STEP_END && at == end);
		if (step->kind == STEP_SET)
			s->list[s->count++] = i;
		if (step->kind == STEP_DONE)
			s->done = true;
		if (step->kind == STEP_JUMP || step->kind == STEP_SPLIT)
			next = step->to;
		if (step->kind == STEP_SPLIT)
			todo[count++] = step->other;
		if (leads)
			todo[count++] = next;
	}
}

static void states_clear(struct states *s)
{
	s->count = 0;
	s->done = false;
	memset(s->has, 0, sizeof s->has);
}

/* Tells after each byte whether what was read so far is it. anywhere: it may begin at any byte. True: it was told to
 * stop. */
static bool run(const struct pattern *p, struct str text, bool anywhere, bool (*told)(void *ctx, size_t at), void *ctx)
{
	struct states both_states[2], *now = &both_states[0], *next = &both_states[1];
	states_clear(now);
	states_add(p, now, 0, 0, text.n);
	for (size_t at = 0;; at++) {
		if (now->done && told(ctx, at))
			return true;
		if (at == text.n)
			return false;
		unsigned byte = (unsigned char)text.p[at];
		states_clear(next);
		for (size_t i = 0; i < now->count; i++)
			if (set_has(p->steps[now->list[i]].set, byte))
				states_add(p, next, now->list[i] + 1, at + 1, text.n);
		if (anywhere)
			states_add(p, next, 0, at + 1, text.n);
		struct states *other = now;
		now = next;
		next = other;
	}
}

static bool stop_at_once(void *ctx, size_t at)
{
	(void)ctx;
	(void)at;
	return true;
}

bool pattern_found(const struct pattern *p, struct str text)
{
	return run(p, text, true, stop_at_once, NULL);
}

static bool end_note(void *ctx, size_t at)
{
	bool *ends = ctx;
	ends[at] = true;
	return false;
}

void pattern_ends(const struct pattern *p, struct str text, bool *ret_ends)
{
	memset(ret_ends, 0, text.n + 1);
	(void)run(p, text, false, end_note, ret_ends);
}

static bool is_end(void *ctx, size_t at)
{
	return at == *(const size_t *)ctx;
}

bool pattern_is(const struct pattern *p, struct str text)
{
	size_t end = text.n;
	return run(p, text, false, is_end, &end);
}
