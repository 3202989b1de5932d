/* Event types: the catalogue of what can happen, taken from the schemas' own lists. */
#include "api/verbs.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

int events_list_types(struct call *c);

struct event_type {
	struct str name;
	bool alertable;
};

static struct event_type types[2048];
static size_t type_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int order(const void *a, const void *b)
{
	const struct event_type *x = a, *y = b;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int by_bytes = memcmp(x->name.p, y->name.p, n);
	return by_bytes ? by_bytes : (x->name.n > y->name.n) - (x->name.n < y->name.n);
}

/* Enum texts are JSON strings: the name stands between the quotes. */
static void collect(const struct schema *s, bool alertable)
{
	for (unsigned i = 0; i < s->enum_count; i++) {
		struct str name = {s->enums[i] + 1, strlen(s->enums[i]) - 2};
		size_t at = 0;
		while (at < type_count && !str_eq(types[at].name, name))
			at++;
		if (at == sizeof types / sizeof *types)
			return;
		if (at == type_count)
			types[type_count++].name = name;
		types[at].alertable |= alertable;
	}
	for (unsigned i = 0; i < s->branch_count; i++)
		collect(s->branches[i].schema, alertable);
}

static void build(void)
{
	collect(schema_find(STR("EventTypeForNdsGroup")), false);
	collect(schema_find(STR("EventTypeForOrg")), false);
	for (unsigned i = 0; i < schema_all_count; i++)
		if (strstr(schema_all[i]->name, "EventType") && strstr(schema_all[i]->name, "Alertable"))
			collect(schema_all[i], true);
	qsort(types, type_count, sizeof *types, order);
}

/* GROUP_CREATED -> "Group created" */
static struct str describe(struct arena *a, struct str name)
{
	char *text = arena_z(a, name);
	for (size_t i = 0; i < name.n; i++)
		text[i] = text[i] == '_' ? ' ' : i ? (char)tolower((unsigned char)text[i]) : text[i];
	return (struct str){text, name.n};
}

int events_list_types(struct call *c)
{
	int64_t from = list_offset(c);
	pthread_once(&once, build);
	list_begin(c);
	for (int64_t i = from; i < from + c->page_size && i < (int64_t)type_count; i++) {
		json_open(&c->out, '{');
		json_key(&c->out, "alertable");
		json_bool(&c->out, types[i].alertable);
		json_key(&c->out, "description");
		json_str(&c->out, describe(c->arena, types[i].name));
		json_key(&c->out, "eventType");
		json_str(&c->out, types[i].name);
		json_close(&c->out, '}');
	}
	list_end(c, (int64_t)type_count, from + c->page_size < (int64_t)type_count);
	return 0;
}
