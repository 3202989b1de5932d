/* Events. The body is final JSON text, like every stored document, in the form that the schemas define for its type; a
 * field that the form lacks goes into the description instead. The store adds the hash that chains it to the event
 * before.
 *
 * A project's list shows what happens in the project. An organization's list shows what happens to the organization,
 * and from its projects only what event_type_is_of_org() says. */
#include "trail/events.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "catalog/formats.h"
#include "trail/event_types.h"

#include <errno.h>
#include <stdio.h>

#define DESCRIPTION_MAX 500
#define NAME_MAX_BYTES 64 /* of "gn" and "orgName" */
#define PRUNE_BATCH 2000
#define BODY_USUAL 512 /* bytes that most bodies fit in */

static event_observer *observer;

void events_observe(event_observer *wanted)
{
	observer = wanted;
}

void event_set_type(struct call *c, const char *type)
{
	c->event.type = type;
	c->event.type_chosen = true;
}

static void field_add(struct call *c, struct call_event_field field)
{
	struct call_event *e = &c->event;
	if (e->field_count == e->field_room) {
		e->field_room = e->field_room ? 2 * e->field_room : 8;
		struct call_event_field *more = arena_new_array(c->arena, struct call_event_field, e->field_room);
		if (e->field_count)
			memcpy(more, e->fields, e->field_count * sizeof *more);
		e->fields = more;
	}
	e->fields[e->field_count++] = field;
}

void event_field(struct call *c, const char *name, struct str value)
{
	field_add(c, (struct call_event_field){.name = name, .value = value});
}

void event_list_field(struct call *c, const char *name, struct str array)
{
	field_add(c, (struct call_event_field){.name = name, .value = array, .is_list = true});
}

void event_refusal(struct call *c, const char *type)
{
	c->event = (struct call_event){.type = type, .type_chosen = true, .of_refusal = true};
}

void event_scope(struct call *c, struct str org_id, struct str group_id)
{
	c->event.org_id = org_id;
	c->event.group_id = group_id;
}

void event_cluster(struct call *c, struct str name)
{
	c->event.cluster = name;
}

/* One event that is being written. */
struct entry {
	struct tx *tx;
	struct arena *arena;
	const struct call *call;       /* NULL: the service itself */
	const struct event_type *type; /* NULL: a type that the schemas do not list */
	struct event event;
	struct buf body, description;
	const struct event_about *about; /* of the service's own event, or NULL */
};

/* Whether the form has the field, in each list that will show the event. */
static bool form_has_field(const struct entry *e, const char *name)
{
	const struct str field = str_of(name);
	return (!e->event.for_group || schema_field(e->type->in_group, field)) &&
	       (!e->event.for_org || schema_field(e->type->in_org, field));
}

static void text_field(struct entry *e, const char *name, struct str value)
{
	if (!value.n || !form_has_field(e, name))
		return;
	json_key(&e->body, name);
	json_str(&e->body, value);
}

/* IPv6 is written out in full, because the schema's pattern requires that. */
static void address_write(struct entry *e, const struct ip *ip)
{
	char text[IP_TEXT];
	size_t n = 0;
	if (ip_is_v4(ip))
		ip_format(ip, text);
	else
		for (int i = 0; i < 16; i += 2)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%x", i ? ":" : "",
			                      ip->b[i] << 8 | ip->b[i + 1]);
	text_field(e, "remoteAddress", str_of(text));
}

static void caller_write(struct entry *e, const struct principal *p)
{
	bool user = p->kind == PRINCIPAL_USER;
	/* The schemas have no field for a service account, so its client id goes where a public key would. */
	text_field(e, user ? "userId" : "apiKeyId", str_of(p->id));
	text_field(e, user ? "username" : "publicKey", str_of(p->name));
}

static void describe(struct entry *e, const char *name, struct str value)
{
	buf_printf(&e->description, "; %s: %.*s", name, STR_ARG(value));
}

/* Describes the call: the resource in its path, and for an update the names of the changed fields. */
static void describe_call(struct entry *e)
{
	const struct call *c = e->call;
	const char *key, *sep = "; fields: ";
	json_t *value;
	for (unsigned i = 0; i < c->op->path_param_count; i++) {
		const char *name = c->op->path_params[i].name;
		if (strcmp(name, "groupId") != 0 && strcmp(name, "orgId") != 0)
			describe(e, name, c->params[i]);
	}
	if (c->op->method != METHOD_PATCH && c->op->method != METHOD_PUT)
		return;
	json_object_foreach(c->body, key, value)
	{
		buf_printf(&e->description, "%s%s", sep, key);
		sep = ", ";
	}
}

static void fields_write(struct entry *e)
{
	const struct call_event *event = &e->call->event;
	for (size_t i = 0; i < event->field_count; i++) {
		const char *name = event->fields[i].name;
		struct str value = event->fields[i].value;
		if (!form_has_field(e, name)) {
			describe(e, name, value);
		} else if (event->fields[i].is_list) {
			json_key(&e->body, name);
			json_raw(&e->body, value);
		} else {
			text_field(e, name, value);
		}
	}
}

static void detail_write(struct entry *e, const struct event_detail *d)
{
	char number[24];
	snprintf(number, sizeof number, "%lld", (long long)d->number);
	if (!form_has_field(e, d->name)) {
		describe(e, d->name, d->text.n ? d->text : str_of(number));
	} else if (d->text.n) {
		text_field(e, d->name, d->text);
	} else {
		json_key(&e->body, d->name);
		json_int(&e->body, d->number);
	}
}

static void details_write(struct entry *e)
{
	const struct event_about *about = e->about;
	if (about->cluster.n)
		detail_write(e, &(struct event_detail){"clusterName", about->cluster, 0});
	for (size_t i = 0; i < about->detail_count; i++)
		detail_write(e, &about->details[i]);
}

static void body_write(struct entry *e)
{
	const struct event *v = &e->event;
	char now[CLOCK_TEXT];
	clock_format(v->created_ms, now);
	json_open(&e->body, '{');
	text_field(e, "id", v->id);
	text_field(e, "created", str_of(now));
	text_field(e, "eventTypeName", v->type);
	text_field(e, "orgId", v->org_id);
	text_field(e, "groupId", v->group_id);
	if (form_has_field(e, "isGlobalAdmin")) {
		json_key(&e->body, "isGlobalAdmin");
		json_bool(&e->body, false);
	}
	if (e->call) {
		address_write(e, &e->call->request->peer);
		if (e->call->caller)
			caller_write(e, e->call->caller);
		describe_call(e);
		fields_write(e);
	}
	if (e->about)
		details_write(e);
	json_close(&e->body, '}');
}

/* The scope's name now: it may be renamed before the event is read. */
static int name_of(struct entry *e, const char *kind, struct str id, struct str *ret_name)
{
	struct doc d;
	int result = id.n ? tx_get(e->tx, e->arena, kind, id, &d) : -ENOENT;
	*ret_name = STR_NONE;
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	*ret_name = utf8_prefix(d.name.n ? d.name : document_text(e->arena, d.body, STR("name")), NAME_MAX_BYTES);
	return 0;
}

static void raw_field(struct buf *b, const char *name, struct str value)
{
	if (!value.n)
		return;
	json_key(b, name);
	json_str(b, value);
}

static int raw_write(struct entry *e)
{
	struct str org, group;
	struct buf b = {0};
	char now[CLOCK_TEXT];
	int result = name_of(e, "org", e->event.org_id, &org);
	if (result == 0)
		result = name_of(e, "project", e->event.group_id, &group);
	if (result < 0)
		return result;
	clock_format(e->event.created_ms, now);
	buf_reserve(&b, BODY_USUAL);
	const struct schema *form = !e->type ? NULL : e->event.for_group ? e->type->in_group : e->type->in_org;
	json_open(&b, '{');
	raw_field(&b, "_t", str_of(form ? form->name : NULL));
	raw_field(&b, "cre", str_of(now));
	raw_field(&b, "description", utf8_prefix(buf_view(&e->description), DESCRIPTION_MAX));
	raw_field(&b, "gn", group);
	raw_field(&b, "id", e->event.id);
	raw_field(&b, "orgId", e->event.org_id);
	raw_field(&b, "orgName", org);
	raw_field(&b, "severity", str_of(e->about && e->about->severity ? e->about->severity : "INFO"));
	json_close(&b, '}');
	e->event.raw = arena_dup(e->arena, buf_view(&b));
	buf_free(&b);
	return 0;
}

/* Type, scope and cluster must be set. */
static int entry_write(struct entry *e)
{
	struct id id = id_new();
	e->event.id = id_str(&id);
	e->event.created_ms = clock_now_ms();
	e->type = event_type_find(e->event.type);
	e->event.for_group = e->event.group_id.n && e->type && e->type->in_group;
	e->event.for_org = e->event.org_id.n && e->type && e->type->in_org &&
	                   (!e->event.group_id.n || event_type_is_of_org(e->type));
	if (e->type && !e->event.for_group && !e->event.for_org)
		log_warn("the event %.*s stands in no list: its scope is not of its kind", STR_ARG(e->event.type));
	buf_reserve(&e->body, BODY_USUAL);
	buf_str(&e->description, event_type_describe(e->arena, NULL, e->event.type));
	body_write(e);
	e->event.body = buf_view(&e->body);
	int result = raw_write(e);
	if (result == 0)
		result = tx_event_add(e->tx, &e->event);
	if (result == 0 && observer && e->event.group_id.n)
		result = observer(e->tx, e->arena, &e->event, e->about);
	buf_free(&e->body);
	buf_free(&e->description);
	return result;
}

int event_write(struct call *c)
{
	const struct call_event *v = &c->event;
	const char *type = v->type_chosen ? v->type : c->op->event;
	if (!type)
		return 0;
	struct entry e = {.tx = c->tx, .arena = c->arena, .call = c};
	e.event.type = str_of(type);
	bool scoped = v->org_id.n || v->group_id.n;
	e.event.org_id = v->org_id.n ? v->org_id : c->org.id;
	e.event.group_id = scoped ? v->group_id : c->group.id;
	e.event.cluster = v->cluster.n ? v->cluster : call_path(c, "clusterName");
	return entry_write(&e);
}

int event_next(struct call *c)
{
	int result = event_write(c);
	c->event = (struct call_event){0};
	return result;
}

int event_service_about(struct tx *tx, struct arena *a, const char *type, const struct event_about *about)
{
	struct entry e = {.tx = tx, .arena = a, .about = about};
	struct doc project = {.parent = about->org_id};
	int result = about->org_id.n ? 0 : tx_get(tx, a, "project", about->group_id, &project);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	e.event.type = str_of(type);
	e.event.org_id = project.parent;
	e.event.group_id = about->group_id;
	e.event.cluster = about->cluster;
	return entry_write(&e);
}

int event_service(struct tx *tx, struct arena *a, const char *type, struct str org_id, struct str group_id,
                  struct str cluster)
{
	return event_service_about(tx, a, type,
	                           &(struct event_about){.org_id = org_id, .group_id = group_id, .cluster = cluster});
}

int event_service_field(struct tx *tx, struct arena *a, const char *type, struct str org_id, struct str group_id,
                        const char *name, struct str value)
{
	const struct event_detail detail = {.name = name, .text = value};
	return event_service_about(
	        tx, a, type,
	        &(struct event_about){
	                .org_id = org_id, .group_id = group_id, .details = &detail, .detail_count = value.n > 0});
}

struct pruning {
	int64_t before_ms, count;
};

static int prune_run(struct tx *tx, void *ctx)
{
	struct pruning *p = ctx;
	return tx_events_prune(tx, p->before_ms, PRUNE_BATCH, &p->count);
}

void events_prune(struct store *s, unsigned days)
{
	struct pruning p = {.before_ms = clock_now_ms() - (int64_t)days * 86400000};
	int64_t total = 0;
	/* In batches, so that other writes do not wait for all of them. */
	do {
		int result = store_write_wait(s, prune_run, &p);
		if (result < 0) {
			log_error("events past their time could not be let go (error %d)", result);
			return;
		}
		total += p.count;
	} while (p.count == PRUNE_BATCH);
	if (total)
		log_info("events: %lld older than %u days let go", (long long)total, days);
}
