/* Validation: every name that a policy uses exists, every operator gets values that it accepts, and an optional
 * attribute is only read after `has`. A policy that passes can hardly fail when it is evaluated: that matters, because
 * a forbid that fails does not forbid.
 *
 * `has` guards what follows it in the same &&, in the `then` of an if, and in later `when` clauses. */
#include "base/buf.h"
#include "policy/policy.h"
#include "policy/schema.h"

struct literal_field;

/* The type of an expression. Unknown: it may be anything. */
struct type {
	bool known;
	enum policy_kind kind;
	unsigned types;          /* of an entity */
	const struct type *item; /* of a set; NULL: anything */
	/* Of a record: its possible shapes, one for each action that the scope allows; or the fields of a literal.
	 * Neither: one of several records, whose attributes cannot be read. */
	const struct policy_shape *shapes[POLICY_ACTIONS_MAX];
	unsigned shape_count;
	const struct literal_field *fields;
	size_t field_count;
	bool is_literal;
};

struct literal_field {
	struct str name;
	struct type type;
};

/* Attributes that are known to be present, newest first. */
struct guard {
	struct str path;
	const struct guard *next;
};

struct validator {
	struct arena *arena;
	struct policy_faults *faults;
	unsigned resources; /* types that these actions apply to */
	struct type context;
};

static const struct guard *check(struct validator *v, struct policy_expr *e, const struct guard *given,
                                 struct type *ret_type);

static void fault(struct validator *v, const struct policy_expr *at, struct str text)
{
	if (v->faults->count < POLICY_FAULTS_MAX)
		v->faults->list[v->faults->count++] = (struct policy_fault){at->line, at->column, text};
}

static struct type of_kind(enum policy_kind kind)
{
	return (struct type){.known = true, .kind = kind};
}

static struct type of_types(unsigned types)
{
	return (struct type){.known = true, .kind = POLICY_ENTITY, .types = types};
}

static struct type of_shape(struct validator *v, const struct policy_shape *s)
{
	struct type t = {.known = true, .kind = s->kind, .types = s->types};
	if (s->kind == POLICY_SET) {
		struct type *item = arena_new_of(v->arena, struct type);
		*item = of_shape(v, s->item);
		t.item = item;
	} else if (s->kind == POLICY_RECORD) {
		t.shapes[t.shape_count++] = s;
	}
	return t;
}

/* Whether two values can ever be equal. */
static bool can_equal(const struct type *a, const struct type *b)
{
	if (!a->known || !b->known)
		return true;
	if (a->kind != b->kind)
		return false;
	if (a->kind == POLICY_ENTITY)
		return (a->types & b->types) != 0;
	return a->kind != POLICY_SET || !a->item || !b->item || can_equal(a->item, b->item);
}

/* Merges two types into one that covers both. False when they are of different kinds. */
static bool type_merge(struct validator *v, struct type *into, const struct type *other)
{
	if (!into->known || !other->known) {
		*into = into->known ? *into : *other;
		return true;
	}
	if (into->kind != other->kind)
		return false;
	into->types |= other->types;
	if (into->kind == POLICY_RECORD)
		*into = of_kind(POLICY_RECORD);
	if (!into->item || !other->item) {
		into->item = into->item ? into->item : other->item;
		return true;
	}
	struct type *item = arena_new_of(v->arena, struct type);
	*item = *into->item;
	into->item = item;
	return type_merge(v, item, other->item);
}

/* Names of the types, or of the kind. */
static struct str type_name(struct validator *v, const struct type *t)
{
	struct buf b = {0};
	if (!t->known || t->kind != POLICY_ENTITY)
		return str_of(t->known ? policy_kind_name(t->kind) : "anything");
	for (unsigned i = 0; i < policy_type_count; i++)
		if (t->types & 1u << i)
			buf_printf(&b, "%s%s", b.n ? " or " : "", policy_types[i].name);
	struct str name = arena_dup(v->arena, buf_view(&b));
	buf_free(&b);
	return name;
}

static void need(struct validator *v, const struct policy_expr *e, const struct type *t, enum policy_kind kind)
{
	if (t->known && t->kind != kind)
		fault(v, e,
		      arena_printf(v->arena, "must be %s, not %s", policy_kind_name(kind), policy_kind_name(t->kind)));
}

static void check_uid(struct validator *v, struct policy_expr *e, struct type *ret_type)
{
	struct policy_uid *uid = &e->value.uid;
	int i = policy_type_find(uid->type);
	if (i < 0) {
		*ret_type = (struct type){.known = false};
		fault(v, e,
		      arena_printf(v->arena,
		                   "there is no entity type '%.*s': expected one of " POLICY_NAMESPACE
		                   "Action, Organization, Project, Cluster, User, ApiKey, ServiceAccount, "
		                   "CloudProvider, Region",
		                   STR_ARG(policy_shown(uid->type))));
		return;
	}
	uid->type = str_of(policy_types[i].name);
	*ret_type = of_types(1u << i);
	const char *right = policy_id_fault(policy_types[i].form, uid->id);
	if (right)
		fault(v, e,
		      arena_printf(v->arena, "%s::\"%.*s\" does not exist: expected %s", policy_types[i].name,
		                   STR_ARG(policy_shown(uid->id)), right));
}

/* "context.cluster.name" with separators that no name contains; empty when the expression is no path. */
static struct str path_of(struct validator *v, const struct policy_expr *e)
{
	static const char *const names[] = {"principal", "action", "resource", "context"};
	if (e->kind == EXPR_VARIABLE)
		return str_of(names[e->variable]);
	if (e->kind != EXPR_ATTRIBUTE && e->kind != EXPR_HAS)
		return STR_NONE;
	struct str of = path_of(v, e->first);
	return of.n ? arena_printf(v->arena, "%.*s\x1f%.*s", STR_ARG(of), STR_ARG(e->name)) : of;
}

static bool is_guarded(const struct guard *given, struct str path)
{
	for (; given; given = given->next)
		if (path.n && str_eq(given->path, path))
			return true;
	return false;
}

static const struct guard *guard_add(struct validator *v, const struct guard *given, struct str path)
{
	struct guard *g = arena_new_of(v->arena, struct guard);
	if (!path.n)
		return given;
	*g = (struct guard){path, given};
	return g;
}

/* The guards that hold whichever of two expressions was true. Both lists extend the same list. */
static const struct guard *guard_common(struct validator *v, const struct guard *a, const struct guard *b,
                                        const struct guard *given)
{
	const struct guard *common = given;
	for (; a && a != given; a = a->next)
		if (is_guarded(b, a->path))
			common = guard_add(v, common, a->path);
	return common;
}

static const struct policy_attribute *attribute_find(const struct policy_shape *s, struct str name)
{
	for (size_t i = 0; i < s->attribute_count; i++)
		if (str_is(name, s->attributes[i].name))
			return &s->attributes[i];
	return NULL;
}

static void fault_attribute(struct validator *v, const struct policy_expr *e, const struct type *t)
{
	struct buf b = {0};
	for (unsigned i = 0; i < t->shape_count; i++)
		for (size_t k = 0; k < t->shapes[i]->attribute_count; k++)
			buf_printf(&b, "%s%s", b.n ? ", " : "", t->shapes[i]->attributes[k].name);
	fault(v, e,
	      arena_printf(v->arena, "there is no attribute '%.*s': expected %.*s", STR_ARG(policy_shown(e->name)),
	                   STR_ARG(b.n ? buf_view(&b) : STR("none"))));
	buf_free(&b);
}

/* The shapes of an entity's attributes are those of its types. */
static struct type attributes_of(struct validator *v, const struct policy_expr *e, const struct type *t)
{
	struct type record = {.known = true, .kind = POLICY_RECORD};
	if (!t->known || t->kind == POLICY_RECORD)
		return *t;
	if (t->kind != POLICY_ENTITY) {
		fault(v, e, arena_printf(v->arena, "must be a record or an entity, not %s", policy_kind_name(t->kind)));
		return (struct type){.known = false};
	}
	for (unsigned i = 0; i < policy_type_count && record.shape_count < POLICY_ACTIONS_MAX; i++)
		if (t->types & 1u << i)
			record.shapes[record.shape_count++] = policy_types[i].attributes;
	return record;
}

static void check_literal_attribute(struct validator *v, const struct policy_expr *e, const struct type *record,
                                    struct type *ret_type)
{
	for (size_t i = 0; i < record->field_count; i++)
		if (str_eq(record->fields[i].name, e->name)) {
			*ret_type = record->fields[i].type;
			return;
		}
	fault(v, e,
	      record->is_literal ? STR("this record has no such attribute")
	                         : STR("cannot be read: it is not certain which record this is"));
}

static const struct guard *check_attribute(struct validator *v, struct policy_expr *e, const struct guard *given,
                                           struct type *ret_type)
{
	struct type of, record, found = {.known = false};
	unsigned in = 0;
	bool certain = true;
	check(v, e->first, given, &of);
	record = attributes_of(v, e->first, &of);
	*ret_type = e->kind == EXPR_HAS ? of_kind(POLICY_BOOL) : found;
	if (!record.known || record.shape_count == 0) {
		if (record.known && e->kind == EXPR_ATTRIBUTE)
			check_literal_attribute(v, e, &record, ret_type);
		return e->kind == EXPR_HAS ? guard_add(v, given, path_of(v, e)) : given;
	}
	for (unsigned i = 0; i < record.shape_count; i++) {
		const struct policy_attribute *a = attribute_find(record.shapes[i], e->name);
		certain = certain && a && !a->optional;
		if (a && in++ == 0)
			found = of_shape(v, a->shape);
		else if (a && found.kind == POLICY_RECORD)
			found.shapes[found.shape_count++] = a->shape;
	}
	if (!in)
		fault_attribute(v, e, &record);
	if (e->kind == EXPR_HAS)
		return guard_add(v, given, path_of(v, e));
	*ret_type = found;
	if (in && !certain && !is_guarded(given, path_of(v, e)))
		fault(v, e,
		      arena_printf(v->arena, "'%.*s' may be absent: ask 'has %.*s &&' before",
		                   STR_ARG(policy_shown(e->name)), STR_ARG(policy_shown(e->name))));
	return given;
}

static const struct guard *check_chain(struct validator *v, struct policy_expr *e, const struct guard *given,
                                       struct type *ret_type)
{
	const struct guard *all = given;
	bool first = true;
	for (struct policy_expr *child = e->first; child; child = child->next, first = false) {
		struct type t;
		const struct guard *then = check(v, child, e->kind == EXPR_AND ? all : given, &t);
		need(v, child, &t, POLICY_BOOL);
		all = e->kind == EXPR_AND || first ? then : guard_common(v, all, then, given);
	}
	*ret_type = of_kind(POLICY_BOOL);
	return all;
}

static const struct guard *check_if(struct validator *v, struct policy_expr *e, const struct guard *given,
                                    struct type *ret_type)
{
	struct type condition, yes, no;
	struct policy_expr *then = e->first->next;
	const struct guard *held = check(v, e->first, given, &condition);
	need(v, e->first, &condition, POLICY_BOOL);
	const struct guard *a = check(v, then, held, &yes), *b = check(v, then->next, given, &no);
	*ret_type = yes;
	if (!type_merge(v, ret_type, &no))
		fault(v, then->next,
		      arena_printf(v->arena, "must be %.*s like the value behind 'then', not %.*s",
		                   STR_ARG(type_name(v, &yes)), STR_ARG(type_name(v, &no))));
	return guard_common(v, a, b, given);
}

static bool can_be_in(unsigned below, unsigned above)
{
	bool can = (below & above) != 0;
	for (unsigned i = 0; i < policy_type_count; i++)
		can = can || ((below & 1u << i) && (policy_types[i].above & above));
	return can;
}

static void check_in(struct validator *v, struct policy_expr *e, const struct guard *given)
{
	struct type left, right;
	check(v, e->first, given, &left);
	check(v, e->first->next, given, &right);
	need(v, e->first, &left, POLICY_ENTITY);
	const struct type *above = right.known && right.kind == POLICY_SET ? right.item : &right;
	if (!above || !above->known)
		return;
	if (above->kind != POLICY_ENTITY)
		fault(v, e->first->next,
		      arena_printf(v->arena, "must be an entity or a set of entities, not %s",
		                   policy_kind_name(above->kind)));
	else if (left.known && left.kind == POLICY_ENTITY && !can_be_in(left.types, above->types))
		fault(v, e,
		      arena_printf(v->arena, "never holds: %.*s is not in %.*s", STR_ARG(type_name(v, &left)),
		                   STR_ARG(type_name(v, above))));
}

static void check_relation(struct validator *v, struct policy_expr *e, const struct guard *given)
{
	struct type left, right;
	if (e->kind == EXPR_IN) {
		check_in(v, e, given);
		return;
	}
	check(v, e->first, given, &left);
	check(v, e->first->next, given, &right);
	if (e->kind != EXPR_EQUAL && e->kind != EXPR_UNEQUAL) {
		need(v, e->first, &left, POLICY_LONG);
		need(v, e->first->next, &right, POLICY_LONG);
	} else if (!can_equal(&left, &right)) {
		fault(v, e,
		      arena_printf(v->arena, "compares what is never equal: %.*s and %.*s",
		                   STR_ARG(type_name(v, &left)), STR_ARG(type_name(v, &right))));
	}
}

static void check_is(struct validator *v, struct policy_expr *e, const struct guard *given)
{
	struct type t, wanted;
	int i = policy_type_find(e->name);
	check(v, e->first, given, &t);
	need(v, e->first, &t, POLICY_ENTITY);
	if (i < 0) {
		fault(v, e, arena_printf(v->arena, "there is no entity type '%.*s'", STR_ARG(policy_shown(e->name))));
		return;
	}
	e->name = str_of(policy_types[i].name);
	wanted = of_types(1u << i);
	if (t.known && t.kind == POLICY_ENTITY && !can_equal(&t, &wanted))
		fault(v, e, arena_printf(v->arena, "never holds: it is %.*s", STR_ARG(type_name(v, &t))));
}

static void check_set(struct validator *v, struct policy_expr *e, const struct guard *given, struct type *ret_type)
{
	struct type *item = NULL;
	*ret_type = of_kind(POLICY_SET);
	for (struct policy_expr *child = e->first; child; child = child->next) {
		struct type t;
		check(v, child, given, &t);
		if (!t.known)
			continue;
		if (!item) {
			item = arena_new_of(v->arena, struct type);
			*item = t;
		} else if (!type_merge(v, item, &t)) {
			fault(v, child,
			      arena_printf(v->arena, "must be %.*s like the set's other items, not %.*s",
			                   STR_ARG(type_name(v, item)), STR_ARG(type_name(v, &t))));
		}
	}
	ret_type->item = item;
}

static void check_ip(struct validator *v, struct policy_expr *e, const struct guard *given)
{
	struct policy_ip ip;
	struct cidr c;
	struct type t;
	check(v, e->first, given, &t);
	if (e->first->kind != EXPR_LITERAL || e->first->value.kind != POLICY_STRING) {
		fault(v, e->first, STR("must be a string, as in ip(\"10.0.0.0/8\")"));
		return;
	}
	struct str text = e->first->value.text;
	char right[IP_TEXT];
	if (!policy_ip_parse(text, &ip) || !cidr_parse(text, &c)) {
		fault(v, e->first, STR("must be an address or a network, as in \"10.0.0.0/8\" or \"2001:db8::/32\""));
	} else if (!ip_equal(&ip.address, &c.net)) {
		cidr_format(&c, right);
		fault(v, e->first,
		      arena_printf(v->arena,
		                   "has bits beyond its prefix, so that no network equals it: expected \"%s\"", right));
	}
}

static void check_method(struct validator *v, struct policy_expr *e, const struct guard *given)
{
	struct type of, with = {.known = false};
	struct policy_expr *argument = e->first->next;
	check(v, e->first, given, &of);
	if (argument)
		check(v, argument, given, &with);
	if (e->method >= CALL_IS_IN_RANGE) {
		need(v, e->first, &of, POLICY_IP);
		if (argument)
			need(v, argument, &with, POLICY_IP);
		return;
	}
	need(v, e->first, &of, POLICY_SET);
	if (e->method == CALL_IS_EMPTY)
		return;
	const struct type *item = &with;
	if (e->method != CALL_CONTAINS) {
		need(v, argument, &with, POLICY_SET);
		item = with.known && with.kind == POLICY_SET ? with.item : NULL;
	}
	if (of.known && of.kind == POLICY_SET && of.item && item && !can_equal(of.item, item))
		fault(v, argument,
		      arena_printf(v->arena, "never in this set: its items are %.*s, not %.*s",
		                   STR_ARG(type_name(v, of.item)), STR_ARG(type_name(v, item))));
}

static void check_operand(struct validator *v, struct policy_expr *e, const struct guard *given, enum policy_kind kind)
{
	struct type t;
	check(v, e->first, given, &t);
	need(v, e->first, &t, kind);
}

static struct type variable_type(const struct validator *v, enum policy_variable which)
{
	switch (which) {
	case VARIABLE_PRINCIPAL: return of_types(policy_principals);
	case VARIABLE_ACTION: return of_types(1u << policy_type_find(STR(POLICY_ACTION)));
	case VARIABLE_RESOURCE: return v->resources ? of_types(v->resources) : (struct type){.known = false};
	default: return v->context;
	}
}

static void check_literal(struct validator *v, struct policy_expr *e, struct type *ret_type)
{
	*ret_type = of_kind(e->value.kind);
	if (e->value.kind == POLICY_ENTITY)
		check_uid(v, e, ret_type);
}

static void check_record(struct validator *v, struct policy_expr *e, const struct guard *given, struct type *ret_type)
{
	size_t count = 0;
	for (const struct policy_expr *child = e->first; child; child = child->next)
		count++;
	struct literal_field *fields = arena_new_array(v->arena, struct literal_field, count + 1);
	count = 0;
	for (struct policy_expr *child = e->first; child; child = child->next, count++) {
		fields[count].name = child->key;
		check(v, child, given, &fields[count].type);
	}
	*ret_type = of_kind(POLICY_RECORD);
	ret_type->fields = fields;
	ret_type->field_count = count;
	ret_type->is_literal = true;
}

/* Writes the type of the expression; returns the guards that hold when it is true. */
static const struct guard *check(struct validator *v, struct policy_expr *e, const struct guard *given,
                                 struct type *ret_type)
{
	*ret_type = of_kind(POLICY_BOOL);
	switch (e->kind) {
	case EXPR_LITERAL: check_literal(v, e, ret_type); break;
	case EXPR_VARIABLE: *ret_type = variable_type(v, e->variable); break;
	case EXPR_AND:
	case EXPR_OR: return check_chain(v, e, given, ret_type);
	case EXPR_NOT: check_operand(v, e, given, POLICY_BOOL); break;
	case EXPR_NEGATE:
		check_operand(v, e, given, POLICY_LONG);
		*ret_type = of_kind(POLICY_LONG);
		break;
	case EXPR_IF: return check_if(v, e, given, ret_type);
	case EXPR_EQUAL:
	case EXPR_UNEQUAL:
	case EXPR_LESS:
	case EXPR_LESS_EQUAL:
	case EXPR_GREATER:
	case EXPR_GREATER_EQUAL:
	case EXPR_IN: check_relation(v, e, given); break;
	case EXPR_IS: check_is(v, e, given); break;
	case EXPR_HAS:
	case EXPR_ATTRIBUTE: return check_attribute(v, e, given, ret_type);
	case EXPR_LIKE: check_operand(v, e, given, POLICY_STRING); break;
	case EXPR_SET: check_set(v, e, given, ret_type); break;
	case EXPR_RECORD: check_record(v, e, given, ret_type); break;
	case EXPR_IP:
		check_ip(v, e, given);
		*ret_type = of_kind(POLICY_IP);
		break;
	case EXPR_METHOD: check_method(v, e, given); break;
	}
	return given;
}

static bool names_action(const struct policy_expr *e, const char *id)
{
	return e->kind == EXPR_LITERAL && str_is(e->value.uid.id, id);
}

/* Finds the actions that the scope allows: they decide about the context and the resource. */
static void actions_in_play(struct validator *v, const struct policy_expr *scope)
{
	v->context = of_kind(POLICY_RECORD);
	v->resources = 0;
	for (unsigned i = 0; i < policy_action_count; i++) {
		bool in = !scope;
		if (scope) {
			const struct policy_expr *to = scope->first->next;
			in = names_action(to, policy_actions[i].id);
			for (const struct policy_expr *item = to->kind == EXPR_SET ? to->first : NULL; item && !in;
			     item = item->next)
				in = names_action(item, policy_actions[i].id);
		}
		if (!in)
			continue;
		v->resources |= policy_actions[i].resources;
		v->context.shapes[v->context.shape_count++] = policy_actions[i].context;
	}
	/* The scope names no existing action. Only that fault is reported, not those that follow from it. */
	if (!v->resources)
		v->context = (struct type){.known = false};
}

void policy_validate(struct arena *a, struct policy_statement *statements, struct policy_faults *faults)
{
	for (struct policy_statement *s = statements; s; s = s->next) {
		struct validator v = {.arena = a, .faults = faults};
		const struct guard *held = NULL;
		struct type t;
		actions_in_play(&v, s->scope[1]);
		for (unsigned i = 0; i < 3; i++)
			if (s->scope[i])
				check(&v, s->scope[i], NULL, &t);
		for (struct policy_expr *e = s->conditions; e; e = e->next) {
			held = check(&v, e, held, &t);
			need(&v, e, &t, POLICY_BOOL);
		}
	}
}
