/* Evaluation, with the published semantics of Cedar: && || and if evaluate only what they need; == never fails, all
 * other operators fail on values of the wrong kind; a missing attribute fails; sets are compared as sets.
 *
 * Steps are counted over expressions and pairs of compared values, so that no policy and no request can block a
 * thread. */
#include "policy/policy.h"

struct run {
	struct arena *arena;
	const struct policy_request *request;
	unsigned steps; /* left */
	struct policy_fault fault;
};

static bool eval(struct run *r, const struct policy_expr *e, struct policy_value *ret_value);

static bool fail(struct run *r, const struct policy_expr *e, struct str text)
{
	r->fault = (struct policy_fault){e->line, e->column, text};
	return false;
}

static bool fail_kind(struct run *r, const struct policy_expr *e, const char *wanted, const struct policy_value *got)
{
	return fail(r, e, arena_printf(r->arena, "must be %s, not %s", wanted, policy_kind_name(got->kind)));
}

/* A comparison that ran out of steps answers "unequal" without having compared everything. */
static bool has_steps(struct run *r, const struct policy_expr *e)
{
	return r->steps > 0 || fail(r, e, STR("takes too many steps"));
}

static struct policy_value truth(bool value)
{
	return (struct policy_value){.kind = POLICY_BOOL, .truth = value};
}

static bool eval_kind(struct run *r, const struct policy_expr *e, enum policy_kind kind, struct policy_value *ret_value)
{
	if (!eval(r, e, ret_value))
		return false;
	return ret_value->kind == kind || fail_kind(r, e, policy_kind_name(kind), ret_value);
}

static bool eval_chain(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	bool stops_at = e->kind == EXPR_OR;
	struct policy_value v = truth(!stops_at);
	for (const struct policy_expr *child = e->first; child && v.truth != stops_at; child = child->next)
		if (!eval_kind(r, child, POLICY_BOOL, &v))
			return false;
	*ret_value = v;
	return true;
}

static bool eval_if(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value condition;
	if (!eval_kind(r, e->first, POLICY_BOOL, &condition))
		return false;
	return eval(r, condition.truth ? e->first->next : e->first->next->next, ret_value);
}

static const struct policy_entity *entity_find(const struct run *r, struct policy_uid uid)
{
	for (size_t i = 0; i < r->request->entity_count; i++)
		if (policy_uid_equal(r->request->entities[i].uid, uid))
			return &r->request->entities[i];
	return NULL;
}

/* Entities may be reached in several ways, and a broken request may contain a cycle: each is visited once. */
static bool entity_in(struct run *r, struct policy_uid below, struct policy_uid above)
{
	size_t count = r->request->entity_count, waiting = 0;
	if (policy_uid_equal(below, above))
		return true;
	const struct policy_entity **stack = arena_new_array(r->arena, const struct policy_entity *, count + 1);
	bool *seen = arena_new_array(r->arena, bool, count + 1);
	const struct policy_entity *e = entity_find(r, below);
	while (e) {
		for (size_t i = 0; i < e->parent_count; i++) {
			if (policy_uid_equal(e->parents[i], above))
				return true;
			const struct policy_entity *next = entity_find(r, e->parents[i]);
			if (next && !seen[next - r->request->entities]) {
				seen[next - r->request->entities] = true;
				stack[waiting++] = next;
			}
		}
		r->steps -= r->steps > 0;
		e = waiting && r->steps ? stack[--waiting] : NULL;
	}
	return false;
}

static bool eval_in(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value left, right;
	if (!eval_kind(r, e->first, POLICY_ENTITY, &left) || !eval(r, e->first->next, &right))
		return false;
	if (right.kind != POLICY_ENTITY && right.kind != POLICY_SET)
		return fail_kind(r, e->first->next, "an entity or a set of entities", &right);
	bool found = right.kind == POLICY_ENTITY && entity_in(r, left.uid, right.uid);
	if (right.kind == POLICY_SET) {
		for (size_t i = 0; i < right.count; i++)
			if (right.items[i].kind != POLICY_ENTITY)
				return fail_kind(r, e->first->next, "a set of entities only", &right.items[i]);
		for (size_t i = 0; i < right.count && !found && r->steps; i++)
			found = entity_in(r, left.uid, right.items[i].uid);
	}
	*ret_value = truth(found);
	return has_steps(r, e);
}

static bool eval_order(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value left, right;
	if (!eval_kind(r, e->first, POLICY_LONG, &left) || !eval_kind(r, e->first->next, POLICY_LONG, &right))
		return false;
	int64_t a = left.number, b = right.number;
	bool holds = e->kind == EXPR_LESS         ? a < b
	             : e->kind == EXPR_LESS_EQUAL ? a <= b
	             : e->kind == EXPR_GREATER    ? a > b
	                                          : a >= b;
	*ret_value = truth(holds);
	return true;
}

static bool eval_equal(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value left, right;
	if (!eval(r, e->first, &left) || !eval(r, e->first->next, &right))
		return false;
	*ret_value = truth(policy_equal(&left, &right, &r->steps) == (e->kind == EXPR_EQUAL));
	return has_steps(r, e);
}

/* The attributes of a record or entity; an entity that the request does not describe has none. */
static bool eval_fields(struct run *r, const struct policy_expr *e, struct policy_value *ret_record)
{
	if (!eval(r, e, ret_record))
		return false;
	if (ret_record->kind == POLICY_ENTITY) {
		const struct policy_entity *entity = entity_find(r, ret_record->uid);
		*ret_record = entity ? entity->attributes : (struct policy_value){.kind = POLICY_RECORD};
	}
	return ret_record->kind == POLICY_RECORD || fail_kind(r, e, "a record or an entity", ret_record);
}

static bool eval_attribute(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value record;
	if (!eval_fields(r, e->first, &record))
		return false;
	const struct policy_value *field = policy_field(&record, e->name);
	if (e->kind == EXPR_HAS)
		*ret_value = truth(field != NULL);
	else if (field)
		*ret_value = *field;
	else
		return fail(r, e, STR("there is no such attribute"));
	return true;
}

/* The first piece is a prefix, the last a suffix, the others follow in order. */
static bool like(struct str text, const struct policy_expr *piece)
{
	if (!piece->next)
		return str_eq(text, piece->value.text);
	for (bool first = true; piece; first = false, piece = piece->next) {
		struct str s = piece->value.text;
		if (!piece->next)
			return str_ends(text, s);
		const char *at = s.n == 0 ? text.p
		                 : first  ? (str_starts(text, s) ? text.p : NULL)
		                          : memmem(text.p, text.n, s.p, s.n);
		if (s.n && !at)
			return false;
		size_t used = s.n ? (size_t)(at - text.p) + s.n : 0;
		text = (struct str){text.p + used, text.n - used};
	}
	return false;
}

static bool eval_like(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value subject;
	if (!eval_kind(r, e->first, POLICY_STRING, &subject))
		return false;
	struct str text = {subject.text.p ? subject.text.p : "", subject.text.n};
	*ret_value = truth(like(text, e->first->next));
	return true;
}

static size_t child_count(const struct policy_expr *e)
{
	size_t count = 0;
	for (const struct policy_expr *child = e->first; child; child = child->next)
		count++;
	return count;
}

static bool eval_set(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value *items = arena_new_array(r->arena, struct policy_value, child_count(e) + 1);
	size_t count = 0;
	for (const struct policy_expr *child = e->first; child; child = child->next)
		if (!eval(r, child, &items[count++]))
			return false;
	*ret_value = (struct policy_value){.kind = POLICY_SET, .count = count, .items = items};
	return true;
}

static bool eval_record(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_field *fields = arena_new_array(r->arena, struct policy_field, child_count(e) + 1);
	size_t count = 0;
	for (const struct policy_expr *child = e->first; child; child = child->next) {
		fields[count].name = child->key;
		if (!eval(r, child, &fields[count++].value))
			return false;
	}
	*ret_value = (struct policy_value){.kind = POLICY_RECORD, .count = count, .fields = fields};
	return true;
}

static bool eval_ip(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value text, ip = {.kind = POLICY_IP};
	if (!eval_kind(r, e->first, POLICY_STRING, &text))
		return false;
	if (!policy_ip_parse(text.text, &ip.ip))
		return fail(r, e->first, STR("must be an address or a network, as in \"10.0.0.0/8\""));
	*ret_value = ip;
	return true;
}

static bool eval_address_method(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value ip, range;
	if (!eval_kind(r, e->first, POLICY_IP, &ip))
		return false;
	switch (e->method) {
	case CALL_IS_IPV4: *ret_value = truth(ip.ip.v4); return true;
	case CALL_IS_IPV6: *ret_value = truth(!ip.ip.v4); return true;
	case CALL_IS_LOOPBACK: *ret_value = truth(policy_ip_is_loopback(&ip.ip)); return true;
	case CALL_IS_MULTICAST: *ret_value = truth(policy_ip_is_multicast(&ip.ip)); return true;
	default: break;
	}
	if (!eval_kind(r, e->first->next, POLICY_IP, &range))
		return false;
	*ret_value = truth(policy_ip_in_range(&ip.ip, &range.ip));
	return true;
}

static bool eval_method(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value set, other;
	bool found = false;
	if (e->method >= CALL_IS_IN_RANGE)
		return eval_address_method(r, e, ret_value);
	if (!eval_kind(r, e->first, POLICY_SET, &set))
		return false;
	if (e->method == CALL_IS_EMPTY) {
		*ret_value = truth(set.count == 0);
		return true;
	}
	if (e->method == CALL_CONTAINS) {
		if (!eval(r, e->first->next, &other))
			return false;
		found = policy_set_has(&set, &other, &r->steps);
	} else {
		bool all = e->method == CALL_CONTAINS_ALL;
		if (!eval_kind(r, e->first->next, POLICY_SET, &other))
			return false;
		found = all;
		for (size_t i = 0; i < other.count && found == all && r->steps; i++)
			found = policy_set_has(&set, &other.items[i], &r->steps);
	}
	*ret_value = truth(found);
	return has_steps(r, e);
}

static bool eval_variable(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	const struct policy_request *q = r->request;
	if (e->variable == VARIABLE_CONTEXT)
		*ret_value = q->context;
	else
		*ret_value = (struct policy_value){.kind = POLICY_ENTITY,
		                                   .uid = e->variable == VARIABLE_PRINCIPAL ? q->principal
		                                          : e->variable == VARIABLE_ACTION  ? q->action
		                                                                            : q->resource};
	return true;
}

static bool eval_unary(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	struct policy_value v;
	if (e->kind == EXPR_IS) {
		if (!eval_kind(r, e->first, POLICY_ENTITY, &v))
			return false;
		*ret_value = truth(str_eq(v.uid.type, e->name));
	} else if (e->kind == EXPR_NOT) {
		if (!eval_kind(r, e->first, POLICY_BOOL, &v))
			return false;
		*ret_value = truth(!v.truth);
	} else {
		if (!eval_kind(r, e->first, POLICY_LONG, &v))
			return false;
		if (v.number == INT64_MIN)
			return fail(r, e, STR("does not fit into 64 bits"));
		*ret_value = (struct policy_value){.kind = POLICY_LONG, .number = -v.number};
	}
	return true;
}

static bool eval(struct run *r, const struct policy_expr *e, struct policy_value *ret_value)
{
	r->steps -= r->steps > 0;
	if (!has_steps(r, e))
		return false;
	switch (e->kind) {
	case EXPR_LITERAL: *ret_value = e->value; return true;
	case EXPR_VARIABLE: return eval_variable(r, e, ret_value);
	case EXPR_AND:
	case EXPR_OR: return eval_chain(r, e, ret_value);
	case EXPR_NOT:
	case EXPR_NEGATE:
	case EXPR_IS: return eval_unary(r, e, ret_value);
	case EXPR_IF: return eval_if(r, e, ret_value);
	case EXPR_EQUAL:
	case EXPR_UNEQUAL: return eval_equal(r, e, ret_value);
	case EXPR_LESS:
	case EXPR_LESS_EQUAL:
	case EXPR_GREATER:
	case EXPR_GREATER_EQUAL: return eval_order(r, e, ret_value);
	case EXPR_IN: return eval_in(r, e, ret_value);
	case EXPR_HAS:
	case EXPR_ATTRIBUTE: return eval_attribute(r, e, ret_value);
	case EXPR_LIKE: return eval_like(r, e, ret_value);
	case EXPR_SET: return eval_set(r, e, ret_value);
	case EXPR_RECORD: return eval_record(r, e, ret_value);
	case EXPR_IP: return eval_ip(r, e, ret_value);
	case EXPR_METHOD: return eval_method(r, e, ret_value);
	}
	return false;
}

static enum policy_outcome outcome_of(struct run *r, const struct policy_expr *e, struct policy_fault *ret_fault)
{
	struct policy_value v;
	if (eval_kind(r, e, POLICY_BOOL, &v))
		return v.truth ? POLICY_APPLIES : POLICY_SKIPPED;
	*ret_fault = r->fault;
	return r->steps ? POLICY_ERROR : POLICY_EXHAUSTED;
}

enum policy_outcome policy_evaluate(struct arena *a, const struct policy_statement *s,
                                    const struct policy_request *request, unsigned *steps,
                                    struct policy_fault *ret_fault)
{
	unsigned given = *steps < POLICY_STEPS_MAX ? *steps : POLICY_STEPS_MAX;
	struct run r = {.arena = a, .request = request, .steps = given};
	enum policy_outcome outcome = POLICY_APPLIES;
	for (unsigned i = 0; i < 3 && outcome == POLICY_APPLIES; i++)
		if (s->scope[i])
			outcome = outcome_of(&r, s->scope[i], ret_fault);
	for (const struct policy_expr *e = s->conditions; e && outcome == POLICY_APPLIES; e = e->next)
		outcome = outcome_of(&r, e, ret_fault);
	*steps -= given - r.steps;
	return outcome;
}

static bool expr_mentions(const struct policy_expr *e, struct str attribute)
{
	bool reads = e->kind == EXPR_ATTRIBUTE || e->kind == EXPR_HAS;
	if (reads && e->first->kind == EXPR_VARIABLE && e->first->variable == VARIABLE_CONTEXT)
		return str_eq(e->name, attribute);
	for (const struct policy_expr *child = e->first; child; child = child->next)
		if (expr_mentions(child, attribute))
			return true;
	return false;
}

bool policy_mentions(const struct policy_statement *s, const char *attribute)
{
	for (const struct policy_expr *e = s->conditions; e; e = e->next)
		if (expr_mentions(e, str_of(attribute)))
			return true;
	return false;
}

static bool is_context(const struct policy_expr *e)
{
	return e->kind == EXPR_VARIABLE && e->variable == VARIABLE_CONTEXT;
}

static bool expr_reads(const struct policy_expr *e, struct str record, const char *attribute)
{
	const struct policy_expr *of = e->first;
	bool reads = e->kind == EXPR_ATTRIBUTE || e->kind == EXPR_HAS;
	if (reads && of->kind == EXPR_ATTRIBUTE && is_context(of->first))
		return str_eq(of->name, record) && (!attribute || str_is(e->name, attribute));
	if (reads && is_context(of))
		return e->kind == EXPR_ATTRIBUTE && str_eq(e->name, record); /* as a whole */
	if (is_context(e))
		return true;
	for (const struct policy_expr *child = of; child; child = child->next)
		if (expr_reads(child, record, attribute))
			return true;
	return false;
}

bool policy_reads(const struct policy_statement *s, const char *record, const char *attribute)
{
	for (const struct policy_expr *e = s->conditions; e; e = e->next)
		if (expr_reads(e, str_of(record), attribute))
			return true;
	return false;
}

static bool expr_reads_principal(const struct policy_expr *e)
{
	if (e->kind == EXPR_VARIABLE && e->variable == VARIABLE_PRINCIPAL)
		return true;
	for (const struct policy_expr *child = e->first; child; child = child->next)
		if (expr_reads_principal(child))
			return true;
	return false;
}

bool policy_reads_principal(const struct policy_statement *s)
{
	bool reads = s->scope[0] != NULL;
	for (const struct policy_expr *e = s->conditions; e && !reads; e = e->next)
		reads = expr_reads_principal(e);
	return reads;
}
