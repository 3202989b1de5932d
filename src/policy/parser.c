/* From text to statements, by recursive descent. It stops at the first fault, which says what was expected and what was
 * found.
 *
 * Chains of && and || are one node with many children, so that depth means nesting. Both the nesting of the text and
 * the depth of the tree are bounded, because everything that walks the tree recurses. */
#include "policy/lexer.h"

#include "base/buf.h"

#include <errno.h>

struct parser {
	struct lexer lexer;
	struct arena *arena;
	struct token token; /* the one to look at */
	unsigned nesting;
	struct policy_fault fault;
	int error; /* 0, or what policy_parse() returns */
};

static struct policy_expr *expr_parse(struct parser *p);

static void fail_at(struct parser *p, unsigned line, unsigned column, struct str text)
{
	if (p->error)
		return;
	p->error = -EINVAL;
	p->fault = (struct policy_fault){line, column, text};
}

static void fail_size(struct parser *p, unsigned line, unsigned column, struct str text)
{
	fail_at(p, line, column, text);
	p->error = -E2BIG;
}

static struct policy_expr *fail_expected(struct parser *p, const char *what)
{
	struct str text = policy_shown(p->token.text), message;
	switch (p->token.kind) {
	case TOKEN_END: message = arena_printf(p->arena, "expected %s, found the end of the text", what); break;
	case TOKEN_STRING:
		message = arena_printf(p->arena, "expected %s, found the string \"%.*s\"", what, STR_ARG(text));
		break;
	default: message = arena_printf(p->arena, "expected %s, found '%.*s'", what, STR_ARG(text)); break;
	}
	fail_at(p, p->token.line, p->token.column, message);
	return NULL;
}

static void advance(struct parser *p)
{
	struct policy_fault fault;
	if (p->error)
		return;
	if (!lexer_next(&p->lexer, p->arena, &p->token, &fault))
		fail_at(p, fault.line, fault.column, fault.text);
}

static bool is_mark(const struct parser *p, const char *mark)
{
	return !p->error && p->token.kind == TOKEN_MARK && str_is(p->token.text, mark);
}

static bool is_word(const struct parser *p, const char *word)
{
	return !p->error && p->token.kind == TOKEN_WORD && str_is(p->token.text, word);
}

static bool take_mark(struct parser *p, const char *mark)
{
	if (!is_mark(p, mark))
		return false;
	advance(p);
	return !p->error;
}

static bool take_word(struct parser *p, const char *word)
{
	if (!is_word(p, word))
		return false;
	advance(p);
	return !p->error;
}

static bool need_mark(struct parser *p, const char *mark, const char *what)
{
	if (!is_mark(p, mark)) {
		if (!p->error)
			fail_expected(p, what);
		return false;
	}
	advance(p);
	return !p->error;
}

static struct policy_expr *node(struct parser *p, enum expr_kind kind, const struct token *at)
{
	struct policy_expr *e = arena_new_of(p->arena, struct policy_expr);
	e->kind = kind;
	e->line = at->line;
	e->column = at->column;
	e->depth = 1;
	return e;
}

/* Appends a child; NULL, with the fault written, when there is none or the tree gets too deep. */
static struct policy_expr *add(struct parser *p, struct policy_expr *parent, struct policy_expr *child)
{
	if (!parent || !child)
		return NULL;
	*(parent->last ? &parent->last->next : &parent->first) = child;
	parent->last = child;
	if (parent->depth <= child->depth)
		parent->depth = child->depth + 1;
	if (parent->depth <= POLICY_DEPTH_MAX)
		return parent;
	fail_size(p, parent->line, parent->column,
	          arena_printf(p->arena, "nested more than %d levels deep", POLICY_DEPTH_MAX));
	return NULL;
}

static bool enter(struct parser *p)
{
	if (p->error)
		return false;
	if (p->nesting == POLICY_DEPTH_MAX) {
		fail_size(p, p->token.line, p->token.column,
		          arena_printf(p->arena, "nested more than %d levels deep", POLICY_DEPTH_MAX));
		return false;
	}
	p->nesting++;
	return true;
}

/* A string token's text. */
static bool string_take(struct parser *p, struct str *ret_text)
{
	struct policy_fault fault;
	struct str raw = p->token.text;
	if (!lexer_unescape(&p->token, p->arena, &raw, NULL, ret_text, &fault)) {
		fail_at(p, fault.line, fault.column, fault.text);
		return false;
	}
	advance(p);
	return !p->error;
}

static struct policy_expr *string_parse(struct parser *p)
{
	struct policy_expr *e = node(p, EXPR_LITERAL, &p->token);
	e->value.kind = POLICY_STRING;
	return string_take(p, &e->value.text) ? e : NULL;
}

/* 0 to 9223372036854775807, or one more after a minus. */
static struct policy_expr *number_parse(struct parser *p, const struct token *minus)
{
	uint64_t most = (uint64_t)INT64_MAX + (minus ? 1 : 0), value;
	struct policy_expr *e = node(p, EXPR_LITERAL, minus ? minus : &p->token);
	if (!str_to_u64(p->token.text, most, &value)) {
		fail_at(p, e->line, e->column, STR("this number does not fit into 64 bits"));
		return NULL;
	}
	e->value.kind = POLICY_LONG;
	e->value.number = !minus ? (int64_t)value : value > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)value;
	advance(p);
	return p->error ? NULL : e;
}

static bool word_is_reserved(struct str word)
{
	static const char *const reserved[] = {"true", "false", "if",  "then", "else",
	                                       "in",   "like",  "has", "is",   "__cedar"};
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (str_is(word, reserved[i]))
			return true;
	return false;
}

/* Parses Type::Name. *ret_id is true when "::" and a string come next. */
static bool path_parse(struct parser *p, struct str *ret_path, bool *ret_id)
{
	struct buf path = {0};
	bool id = false;
	for (;;) {
		if (p->token.kind != TOKEN_WORD || word_is_reserved(p->token.text)) {
			buf_free(&path);
			fail_expected(p, "the name of a type");
			return false;
		}
		buf_str(&path, p->token.text);
		advance(p);
		if (!take_mark(p, "::"))
			break;
		if ((id = p->token.kind == TOKEN_STRING))
			break;
		buf_z(&path, "::");
	}
	*ret_path = arena_dup(p->arena, buf_view(&path));
	*ret_id = id;
	buf_free(&path);
	return !p->error;
}

static struct policy_expr *entity_parse(struct parser *p)
{
	struct policy_expr *e = node(p, EXPR_LITERAL, &p->token);
	struct token start = p->token;
	bool id;
	e->value.kind = POLICY_ENTITY;
	if (!path_parse(p, &e->value.uid.type, &id))
		return NULL;
	if (!id) {
		fail_at(p, start.line, start.column,
		        arena_printf(p->arena,
		                     "'%.*s' is no variable (principal, action, resource, context) and no entity "
		                     "(Type::\"id\")",
		                     STR_ARG(policy_shown(e->value.uid.type))));
		return NULL;
	}
	return string_take(p, &e->value.uid.id) ? e : NULL;
}

static struct policy_expr *list_parse(struct parser *p)
{
	struct policy_expr *set = node(p, EXPR_SET, &p->token);
	advance(p);
	if (take_mark(p, "]"))
		return set;
	do {
		if (!add(p, set, expr_parse(p)))
			return NULL;
	} while (take_mark(p, ","));
	return need_mark(p, "]", "',' or ']'") ? set : NULL;
}

/* The name of a record's field, or of an attribute after `has` or in brackets: a word or a string. */
static bool key_parse(struct parser *p, const char *what, struct str *ret_key)
{
	if (p->error)
		return false;
	if (p->token.kind == TOKEN_STRING)
		return string_take(p, ret_key);
	if (p->token.kind != TOKEN_WORD) {
		fail_expected(p, what);
		return false;
	}
	*ret_key = p->token.text;
	advance(p);
	return !p->error;
}

static bool field_parse(struct parser *p, struct policy_expr *record)
{
	struct token at = p->token;
	struct str key;
	if (!key_parse(p, "the name of a field", &key) || !need_mark(p, ":", "':'"))
		return false;
	unsigned count = 0;
	for (const struct policy_expr *f = record->first; f; f = f->next, count++)
		if (str_eq(f->key, key)) {
			fail_at(p, at.line, at.column,
			        arena_printf(p->arena, "the field '%.*s' stands twice", STR_ARG(policy_shown(key))));
			return false;
		}
	if (count == POLICY_FIELDS_MAX) {
		fail_size(p, at.line, at.column,
		          arena_printf(p->arena, "more than %d fields in one record", POLICY_FIELDS_MAX));
		return false;
	}
	struct policy_expr *value = expr_parse(p);
	if (!value)
		return false;
	value->key = key;
	return add(p, record, value) != NULL;
}

static struct policy_expr *record_parse(struct parser *p)
{
	struct policy_expr *record = node(p, EXPR_RECORD, &p->token);
	advance(p);
	if (take_mark(p, "}"))
		return record;
	do {
		if (!field_parse(p, record))
			return NULL;
	} while (take_mark(p, ","));
	return need_mark(p, "}", "',' or '}'") ? record : NULL;
}

static struct policy_expr *variable_parse(struct parser *p)
{
	static const char *const names[] = {"principal", "action", "resource", "context"};
	struct lexer ahead = p->lexer;
	struct token next = {.kind = TOKEN_END};
	struct policy_fault ignored;
	bool path = lexer_next(&ahead, p->arena, &next, &ignored) && next.kind == TOKEN_MARK && str_is(next.text, "::");
	for (unsigned i = 0; i < 4 && !path; i++)
		if (is_word(p, names[i])) {
			struct policy_expr *e = node(p, EXPR_VARIABLE, &p->token);
			e->variable = (enum policy_variable)i;
			advance(p);
			return p->error ? NULL : e;
		}
	if (next.kind == TOKEN_MARK && str_is(next.text, "(")) {
		if (!is_word(p, "ip"))
			return fail_expected(p, "a value (the only function is ip)");
		struct policy_expr *e = node(p, EXPR_IP, &p->token);
		advance(p);
		advance(p);
		e = add(p, e, expr_parse(p));
		return e && need_mark(p, ")", "')'") ? e : NULL;
	}
	return entity_parse(p);
}

static struct policy_expr *word_parse(struct parser *p)
{
	bool truth = is_word(p, "true");
	if (truth || is_word(p, "false")) {
		struct policy_expr *e = node(p, EXPR_LITERAL, &p->token);
		e->value = (struct policy_value){.kind = POLICY_BOOL, .truth = truth};
		advance(p);
		return p->error ? NULL : e;
	}
	if (is_word(p, "if"))
		return fail_expected(p, "a value (put parentheses around 'if ... then ... else ...')");
	if (word_is_reserved(p->token.text))
		return fail_expected(p, "a value");
	return variable_parse(p);
}

static struct policy_expr *primary_parse(struct parser *p)
{
	if (p->error)
		return NULL;
	switch (p->token.kind) {
	case TOKEN_STRING: return string_parse(p);
	case TOKEN_NUMBER: return number_parse(p, NULL);
	case TOKEN_WORD: return word_parse(p);
	default: break;
	}
	if (take_mark(p, "(")) {
		struct policy_expr *e = expr_parse(p);
		return e && need_mark(p, ")", "')'") ? e : NULL;
	}
	if (is_mark(p, "["))
		return list_parse(p);
	if (is_mark(p, "{"))
		return record_parse(p);
	if (is_mark(p, "?"))
		return fail_expected(p, "a value (templates are not supported)");
	return p->error ? NULL : fail_expected(p, "a value");
}

static const struct {
	const char *name;
	enum policy_method method;
	bool takes_argument;
} methods[] = {
        {"contains", CALL_CONTAINS, true},         {"containsAll", CALL_CONTAINS_ALL, true},
        {"containsAny", CALL_CONTAINS_ANY, true},  {"isEmpty", CALL_IS_EMPTY, false},
        {"isInRange", CALL_IS_IN_RANGE, true},     {"isIpv4", CALL_IS_IPV4, false},
        {"isIpv6", CALL_IS_IPV6, false},           {"isLoopback", CALL_IS_LOOPBACK, false},
        {"isMulticast", CALL_IS_MULTICAST, false},
};

/* After "receiver.name(". */
static struct policy_expr *method_parse(struct parser *p, struct policy_expr *receiver, const struct token *name)
{
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		if (!str_is(name->text, methods[i].name))
			continue;
		struct policy_expr *e = add(p, node(p, EXPR_METHOD, name), receiver);
		if (e)
			e->method = methods[i].method;
		if (methods[i].takes_argument)
			e = e ? add(p, e, expr_parse(p)) : NULL;
		return e && need_mark(p, ")", "')'") ? e : NULL;
	}
	fail_at(p, name->line, name->column,
	        arena_printf(p->arena,
	                     "there is no method '%.*s': expected contains, containsAll, containsAny, isEmpty, "
	                     "isInRange, isIpv4, "
	                     "isIpv6, isLoopback or isMulticast",
	                     STR_ARG(policy_shown(name->text))));
	return NULL;
}

static struct policy_expr *attribute(struct parser *p, enum expr_kind kind, struct policy_expr *of,
                                     const struct token *at, struct str name)
{
	struct policy_expr *e = add(p, node(p, kind, at), of);
	if (e)
		e->name = name;
	return e;
}

static struct policy_expr *member_parse(struct parser *p)
{
	struct policy_expr *e = primary_parse(p);
	while (e && !p->error) {
		if (take_mark(p, ".")) {
			struct token name = p->token;
			if (name.kind != TOKEN_WORD)
				return fail_expected(p, "the name of an attribute or method");
			advance(p);
			e = take_mark(p, "(") ? method_parse(p, e, &name)
			                      : attribute(p, EXPR_ATTRIBUTE, e, &name, name.text);
		} else if (take_mark(p, "[")) {
			struct token at = p->token;
			struct str name;
			if (at.kind != TOKEN_STRING)
				return fail_expected(p, "the name of an attribute, as a string");
			if (!string_take(p, &name) || !need_mark(p, "]", "']'"))
				return NULL;
			e = attribute(p, EXPR_ATTRIBUTE, e, &at, name);
		} else {
			return e;
		}
	}
	return p->error ? NULL : e;
}

static struct policy_expr *unary_parse(struct parser *p)
{
	struct token at = p->token;
	struct policy_expr *e;
	if (!is_mark(p, "!") && !is_mark(p, "-"))
		return member_parse(p);
	bool minus = is_mark(p, "-");
	if (!enter(p))
		return NULL;
	advance(p);
	if (minus && p->token.kind == TOKEN_NUMBER && !p->error)
		e = number_parse(p, &at);
	else
		e = add(p, node(p, minus ? EXPR_NEGATE : EXPR_NOT, &at), unary_parse(p));
	p->nesting--;
	return e;
}

/* After `has`: a name, a string, or a.b.c, which means "has a, and a has b, and ...". */
static struct policy_expr *has_parse(struct parser *p, struct policy_expr *of)
{
	struct token at = p->token;
	struct str name;
	if (!key_parse(p, "the name of an attribute", &name))
		return NULL;
	struct policy_expr *has = attribute(p, EXPR_HAS, of, &at, name);
	while (has && at.kind == TOKEN_WORD && take_mark(p, ".")) {
		struct policy_expr *all = has->kind == EXPR_AND ? has : add(p, node(p, EXPR_AND, &at), has), *inner;
		/* The path so far, with a copy of its receiver: a node can be in one list only. */
		inner = arena_new_of(p->arena, struct policy_expr);
		*inner = *of;
		inner->next = NULL;
		of = attribute(p, EXPR_ATTRIBUTE, inner, &at, name);
		at = p->token;
		if (at.kind != TOKEN_WORD)
			return fail_expected(p, "the name of an attribute");
		name = at.text;
		advance(p);
		has = of && all ? add(p, all, attribute(p, EXPR_HAS, of, &at, name)) : NULL;
	}
	return p->error ? NULL : has;
}

/* After `like`: the pieces between the wildcards become children. */
static struct policy_expr *like_parse(struct parser *p, struct policy_expr *subject, const struct token *at)
{
	struct policy_expr *e = add(p, node(p, EXPR_LIKE, at), subject);
	struct token pattern = p->token;
	struct str raw = pattern.text;
	struct policy_fault fault;
	bool wild = true;
	if (pattern.kind != TOKEN_STRING)
		return fail_expected(p, "a pattern, as a string");
	while (e && wild) {
		struct policy_expr *piece = node(p, EXPR_LITERAL, &pattern);
		piece->value.kind = POLICY_STRING;
		if (!lexer_unescape(&pattern, p->arena, &raw, &wild, &piece->value.text, &fault)) {
			fail_at(p, fault.line, fault.column, fault.text);
			return NULL;
		}
		e = add(p, e, piece);
	}
	advance(p);
	return p->error ? NULL : e;
}

/* The scope allows only entities. */
static struct policy_expr *scope_entity_parse(struct parser *p, const char *expected)
{
	if (p->error)
		return NULL;
	if (is_mark(p, "?"))
		return fail_expected(p, "an entity, Type::\"id\" (templates are not supported)");
	return p->token.kind == TOKEN_WORD ? entity_parse(p) : fail_expected(p, expected);
}

/* After `is`: a type, and optionally `in` an entity. */
static struct policy_expr *is_parse(struct parser *p, struct policy_expr *subject, const struct token *at,
                                    bool in_scope)
{
	struct policy_expr *copy = arena_new_of(p->arena, struct policy_expr),
	                   *is = add(p, node(p, EXPR_IS, at), subject);
	bool id;
	*copy = *subject;
	copy->next = NULL;
	if (!is || !path_parse(p, &is->name, &id))
		return NULL;
	if (id)
		return fail_expected(p, "a type without an id behind 'is'");
	struct token in_at = p->token;
	if (!take_word(p, "in"))
		return p->error ? NULL : is;
	struct policy_expr *in = add(p, node(p, EXPR_IN, &in_at), copy);
	in = in ? add(p, in, in_scope ? scope_entity_parse(p, "an entity, Type::\"id\"") : unary_parse(p)) : NULL;
	struct policy_expr *both = in ? add(p, node(p, EXPR_AND, at), is) : NULL;
	return both ? add(p, both, in) : NULL;
}

static const struct {
	const char *mark;
	enum expr_kind kind;
} relations[] = {{"==", EXPR_EQUAL},      {"!=", EXPR_UNEQUAL}, {"<", EXPR_LESS},
                 {"<=", EXPR_LESS_EQUAL}, {">", EXPR_GREATER},  {">=", EXPR_GREATER_EQUAL}};

static struct policy_expr *relation_parse(struct parser *p)
{
	struct policy_expr *left = unary_parse(p);
	struct token at = p->token;
	if (!left || p->error)
		return NULL;
	if (take_word(p, "has"))
		return has_parse(p, left);
	if (take_word(p, "like"))
		return like_parse(p, left, &at);
	if (take_word(p, "is"))
		return is_parse(p, left, &at, false);
	struct policy_expr *e = take_word(p, "in") ? node(p, EXPR_IN, &at) : NULL;
	for (size_t i = 0; i < sizeof relations / sizeof *relations && !e && !p->error; i++)
		if (take_mark(p, relations[i].mark))
			e = node(p, relations[i].kind, &at);
	if (p->error)
		return NULL;
	if (!e && (is_mark(p, "+") || is_mark(p, "*") || is_mark(p, "-")))
		return fail_expected(p, "an operator (arithmetic is not supported)");
	if (!e)
		return left;
	e = add(p, e, left);
	return e ? add(p, e, unary_parse(p)) : NULL;
}

static struct policy_expr *chain_parse(struct parser *p, const char *mark, enum expr_kind kind,
                                       struct policy_expr *(*inner)(struct parser *))
{
	struct policy_expr *first = inner(p), *chain = NULL;
	struct token at = p->token;
	while (first && take_mark(p, mark)) {
		if (!chain)
			chain = add(p, node(p, kind, &at), first);
		if (!chain || !add(p, chain, inner(p)))
			return NULL;
	}
	return p->error ? NULL : chain ? chain : first;
}

static struct policy_expr *and_parse(struct parser *p)
{
	return chain_parse(p, "&&", EXPR_AND, relation_parse);
}

static struct policy_expr *if_parse(struct parser *p)
{
	static const char *const words[] = {"then", "else"};
	static const char *const expected[] = {"'then'", "'else'"};
	struct policy_expr *e = node(p, EXPR_IF, &p->token);
	advance(p);
	e = add(p, e, expr_parse(p));
	for (unsigned i = 0; i < 2 && e; i++) {
		if (!take_word(p, words[i]))
			return p->error ? NULL : fail_expected(p, expected[i]);
		e = add(p, e, expr_parse(p));
	}
	return e;
}

static struct policy_expr *expr_parse(struct parser *p)
{
	if (!enter(p))
		return NULL;
	struct policy_expr *e = is_word(p, "if") ? if_parse(p) : chain_parse(p, "||", EXPR_OR, and_parse);
	p->nesting--;
	return e;
}

static struct policy_expr *scope_list_parse(struct parser *p)
{
	struct policy_expr *set = node(p, EXPR_SET, &p->token);
	if (!take_mark(p, "["))
		return scope_entity_parse(p, "an entity, Type::\"id\", or a list of entities");
	if (take_mark(p, "]"))
		return set;
	do {
		if (!add(p, set, scope_entity_parse(p, "an entity, Type::\"id\"")))
			return NULL;
	} while (take_mark(p, ","));
	return need_mark(p, "]", "',' or ']'") ? set : NULL;
}

/* principal, action or resource, with at most one constraint. */
static bool scope_parse(struct parser *p, enum policy_variable which, struct policy_expr **ret_scope)
{
	static const char *const words[] = {"principal", "action", "resource"};
	static const char *const expected[] = {"'principal'", "'action'", "'resource'"};
	struct policy_expr *variable = node(p, EXPR_VARIABLE, &p->token), *e = NULL;
	variable->variable = which;
	if (!take_word(p, words[which])) {
		if (!p->error)
			fail_expected(p, expected[which]);
		return false;
	}
	struct token at = p->token;
	if (take_mark(p, "==")) {
		e = add(p, node(p, EXPR_EQUAL, &at), variable);
		e = e ? add(p, e, scope_entity_parse(p, "an entity, Type::\"id\"")) : NULL;
	} else if (take_word(p, "in")) {
		e = add(p, node(p, EXPR_IN, &at), variable);
		e = e ? add(p, e,
		            which == VARIABLE_ACTION ? scope_list_parse(p)
		                                     : scope_entity_parse(p, "an entity, Type::\"id\""))
		      : NULL;
	} else if (which != VARIABLE_ACTION && take_word(p, "is")) {
		e = is_parse(p, variable, &at, true);
	} else {
		*ret_scope = NULL;
		return !p->error;
	}
	*ret_scope = e;
	return e != NULL;
}

static bool conditions_parse(struct parser *p, struct policy_statement *s)
{
	struct policy_expr **end = &s->conditions;
	for (;;) {
		struct token at = p->token;
		bool unless = is_word(p, "unless");
		if (!unless && !is_word(p, "when"))
			return !p->error;
		advance(p);
		if (!need_mark(p, "{", "'{'"))
			return false;
		struct policy_expr *e = expr_parse(p);
		if (!e || !need_mark(p, "}", "an operator or '}'"))
			return false;
		if (unless) {
			e = add(p, node(p, EXPR_NOT, &at), e);
			if (!e)
				return false;
			e->key = STR("unless");
		}
		*end = e;
		end = &e->next;
	}
}

/* @name or @name("text"): for people and tools, ignored here. */
static bool annotations_skip(struct parser *p)
{
	while (take_mark(p, "@")) {
		if (p->token.kind != TOKEN_WORD)
			return fail_expected(p, "the name of an annotation"), false;
		advance(p);
		if (!take_mark(p, "("))
			continue;
		struct str text;
		if (p->error || p->token.kind != TOKEN_STRING)
			return p->error ? false : (fail_expected(p, "a string"), false);
		if (!string_take(p, &text) || !need_mark(p, ")", "')'"))
			return false;
	}
	return !p->error;
}

static struct policy_statement *statement_parse(struct parser *p)
{
	struct policy_statement *s = arena_new_of(p->arena, struct policy_statement);
	if (!annotations_skip(p))
		return NULL;
	s->line = p->token.line;
	s->column = p->token.column;
	s->forbids = is_word(p, "forbid");
	if (!take_word(p, s->forbids ? "forbid" : "permit")) {
		if (!p->error)
			fail_expected(p, "'permit' or 'forbid'");
		return NULL;
	}
	if (!need_mark(p, "(", "'('"))
		return NULL;
	for (unsigned i = 0; i < 3; i++) {
		if (i && !need_mark(p, ",", "','"))
			return NULL;
		if (!scope_parse(p, (enum policy_variable)i, &s->scope[i]))
			return NULL;
	}
	if (!need_mark(p, ")", "')'") || !conditions_parse(p, s) || !need_mark(p, ";", "'when', 'unless' or ';'"))
		return NULL;
	return s;
}

int policy_parse(struct arena *a, struct str text, struct policy_statement **ret_statements,
                 struct policy_fault *ret_fault)
{
	struct parser p = {.lexer = {text, 1, 1}, .arena = a};
	struct policy_statement *list = NULL, **end = &list;
	unsigned count = 0;
	if (text.n > POLICY_TEXT_MAX)
		fail_size(&p, 1, 1, arena_printf(a, "the text must not be longer than %d bytes", POLICY_TEXT_MAX));
	advance(&p);
	while (!p.error && (p.token.kind != TOKEN_END || !list)) {
		if (count++ == POLICY_STATEMENTS_MAX) {
			fail_size(&p, p.token.line, p.token.column,
			          arena_printf(a, "more than %d policies in one text", POLICY_STATEMENTS_MAX));
			break;
		}
		*end = statement_parse(&p);
		if (*end)
			end = &(*end)->next;
	}
	if (p.error) {
		*ret_fault = p.fault;
		return p.error;
	}
	*ret_statements = list;
	return 0;
}
