/* Event types. The schemas describe events by branches (one for each kind, with the list of its types); the table
 * inverts that. When several branches accept a type, we write the form that has the most to say, above all who acted
 * and from where. */
#include "trail/event_types.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

#define TYPES_MAX 2048

static struct event_type types[TYPES_MAX];
static size_t type_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int order(const void *a, const void *b)
{
	const struct event_type *x = a, *y = b;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int by_bytes = memcmp(x->name.p, y->name.p, n);
	return by_bytes ? by_bytes : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

/* A field for who acted counts more than anything else. */
static unsigned form_rank(const struct schema *form)
{
	return form->field_count + (schema_field(form, STR("remoteAddress")) ? 1000 : 0);
}

static void prefer(const struct schema **current, const struct schema *form)
{
	if (form && (!*current || form_rank(form) > form_rank(*current)))
		*current = form;
}

/* Enum texts are JSON strings: the name is between the quotes. */
static void collect(const struct schema *names, bool alertable, const struct schema *in_group,
                    const struct schema *in_org)
{
	for (unsigned i = 0; i < names->enum_count; i++) {
		struct str name = {names->enums[i] + 1, strlen(names->enums[i]) - 2};
		size_t at = 0;
		while (at < type_count && !str_eq(types[at].name, name))
			at++;
		if (at == TYPES_MAX)
			return;
		if (at == type_count)
			types[type_count++].name = name;
		types[at].alertable |= alertable;
		prefer(&types[at].in_group, in_group);
		prefer(&types[at].in_org, in_org);
	}
	for (unsigned i = 0; i < names->branch_count; i++)
		collect(names->branches[i].schema, alertable, in_group, in_org);
}

static void collect_forms(const struct schema *view, bool of_org)
{
	for (unsigned i = 0; view && i < view->branch_count; i++) {
		const struct schema *form = view->branches[i].schema;
		const struct field *names = schema_field(form, STR("eventTypeName"));
		if (names)
			collect(names->schema, false, of_org ? NULL : form, of_org ? form : NULL);
	}
}

/* Alerts can be raised on what configurations of them take. */
static void collect_alertable(const struct schema *configurations)
{
	for (unsigned i = 0; configurations && i < configurations->branch_count; i++) {
		const struct field *names = schema_field(configurations->branches[i].schema, STR("eventTypeName"));
		if (names)
			collect(names->schema, true, NULL, NULL);
	}
}

static void build(void)
{
	collect_forms(schema_find(STR("EventViewForNdsGroup")), false);
	collect_forms(schema_find(STR("EventViewForOrg")), true);
	collect(schema_find(STR("EventTypeForNdsGroup")), false, NULL, NULL);
	collect(schema_find(STR("EventTypeForOrg")), false, NULL, NULL);
	for (unsigned i = 0; i < schema_all_count; i++)
		if (strstr(schema_all[i]->name, "EventType") && strstr(schema_all[i]->name, "Alertable"))
			collect(schema_all[i], true, NULL, NULL);
	collect_alertable(schema_find(STR("GroupAlertsConfig")));
	qsort(types, type_count, sizeof *types, order);
}

const struct event_type *event_types(size_t *ret_count)
{
	pthread_once(&once, build);
	*ret_count = type_count;
	return types;
}

const struct event_type *event_type_find(struct str name)
{
	struct event_type key = {.name = name};
	pthread_once(&once, build);
	return bsearch(&key, types, type_count, sizeof *types, order);
}

struct str event_type_describe(struct arena *a, const struct dialect *d, struct str name)
{
	name = dialect_sentence(d, name, STR_NONE, STR_NONE, a);
	char *text = arena_z(a, name);
	for (size_t i = 0; i < name.n; i++)
		text[i] = (char)(text[i] == '_' ? ' ' : i ? tolower((unsigned char)text[i]) : text[i]);
	return (struct str){text, name.n};
}

struct str event_description(struct arena *a, const struct dialect *d, struct str type, struct str text)
{
	struct str rest, part, name, value;
	struct buf b = {0};
	bool more = str_cut(text, ';', &part, &rest);
	buf_str(&b, event_type_describe(a, d, type));
	while (more) {
		more = str_cut(rest, ';', &part, &rest);
		buf_c(&b, ';');
		if (!str_cut(part, ':', &name, &value)) {
			buf_str(&b, part);
			continue;
		}
		bool words = str_is(name, " fields") || str_is(name, " limitName");
		buf_str(&b, dialect_sentence(d, name, STR_NONE, STR_NONE, a));
		buf_c(&b, ':');
		buf_str(&b, words ? dialect_sentence(d, value, STR_NONE, STR_NONE, a) : value);
	}
	return buf_keep(&b, a);
}

bool event_type_is_of_org(const struct event_type *t)
{
	return t->in_org && (str_starts(t->name, STR("GROUP_")) || str_ends(t->name, STR("_GROUP")));
}
