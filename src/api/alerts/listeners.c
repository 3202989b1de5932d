/* Webhooks that are called at events of any type, so that nobody has to ask again and again: those whose address ends
 * with #events=TYPE,TYPE. No alert comes of it: alerts have the types of the reference alone.
 *
 *   "alert_listener"  id = configuration, parent = project: {"types": [...]}, of all its webhooks */
#include "api/alerts/rules.h"

#include "outbox/outbox.h"
#include "outbox/vendors.h"
#include "trail/event_types.h"

#include <errno.h>

#define LISTENER "alert_listener"
#define PREFIX "events="
#define TYPES_MAX 20

/* "A,B" of "https://example.com/#events=A,B"; STR_NONE: it has no such end. */
static struct str types_of(struct str url)
{
	struct str address, fragment;
	if (!str_cut(url, '#', &address, &fragment) || !str_starts(fragment, STR(PREFIX)))
		return STR_NONE;
	return (struct str){fragment.p + strlen(PREFIX), fragment.n - strlen(PREFIX)};
}

const char *listener_fault(struct arena *a, struct str url)
{
	struct str address, fragment, rest = types_of(url), one;
	size_t count = 0;
	if (!str_cut(url, '#', &address, &fragment))
		return NULL;
	if (!rest.n)
		return "can have no end but #events=TYPE,TYPE";
	for (bool more = true; more;) {
		more = str_cut(rest, ',', &one, &rest);
		const struct event_type *type = event_type_find(one);
		if (!type || !type->in_group)
			return arena_printf(a, "asks for events of the type %.*s, which projects have not",
			                    STR_ARG(one))
			        .p;
		if (++count > TYPES_MAX)
			return "asks for events of more than 20 types";
	}
	return NULL;
}

static bool asks_for(const json_t *notification, struct str type)
{
	return str_is(json_field(notification, "typeName"), "WEBHOOK") &&
	       str_list_has(types_of(json_field(notification, "webhookUrl")), type);
}

int listener_keep(struct tx *tx, struct arena *a, const struct doc *config, const json_t *document)
{
	const json_t *list = json_object_get(document, "notifications");
	json_t *body = json_new(a), *types = json_array();
	json_put(body, "types", types);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str rest = types_of(json_field(json_array_get(list, i), "webhookUrl")), one;
		for (bool more = rest.n > 0; more;) {
			more = str_cut(rest, ',', &one, &rest);
			json_add_str(types, one);
		}
	}
	int r = listener_drop(tx, config->id);
	if (r < 0 || !json_array_size(types))
		return r;
	return doc_insert(tx, LISTENER, config->id, config->parent, STR_NONE, json_text(a, body));
}

int listener_drop(struct tx *tx, struct str config_id)
{
	int r = tx_delete(tx, LISTENER, config_id);
	return r == -ENOENT ? 0 : r;
}

/* One event for the webhooks of one configuration. */
struct telling {
	struct tx *tx;
	struct arena *arena;
	const struct event *event;
	const struct alert_subject *subject;
	const struct doc *config;
	struct notice notice;
};

static int webhook_tell(const struct telling *t, const json_t *whole)
{
	struct arena *a = t->arena;
	json_t *record = json_new(a), *request = vendor_request(a, whole, &t->notice);
	struct str notifier = json_field(whole, "notifierId");
	json_put_str(record, "eventId", t->event->id);
	json_put_str(record, "alertConfigId", t->config->id);
	json_put_str(record, "notifierId", notifier);
	return outbox_add(
	        t->tx, a,
	        &(struct outbox_message){.tenant = t->event->org_id,
	                                 .receiver = arena_printf(a, "notifier:%.*s", STR_ARG(notifier)),
	                                 .keeper = t->config->id,
	                                 .key = arena_printf(a, "%.*s/%.*s", STR_ARG(t->event->id), STR_ARG(notifier)),
	                                 .kind = "WEBHOOK",
	                                 .about = url_host(json_field(request, "url")),
	                                 .content = request,
	                                 .record = record,
	                                 .room = t->subject->room});
}

static int config_tell(struct telling *t)
{
	struct arena *a = t->arena;
	const json_t *body = doc_json(a, t->config->body), *list = json_object_get(body, "notifications");
	json_t *secrets, *whole;
	if (!json_flag(body, "enabled") || !matchers_match(json_object_get(body, "matchers"), t->subject))
		return 0;
	int r = notification_secrets(a, t->config, &secrets);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const json_t *n = json_array_get(list, i);
		if (!asks_for(n, t->event->type))
			continue;
		r = notification_whole(t->tx, a, t->config->parent, n, secrets, &whole);
		if (r == 0)
			r = webhook_tell(t, whole);
	}
	return r;
}

/* The event as its own GET shows it, with what it is about. */
static struct notice notice_make(struct arena *a, const struct event *e, const struct alert_subject *s)
{
	struct str title = event_type_describe(a, NULL, e->type);
	json_t *details = doc_json(a, e->body);
	if (s->cluster.n)
		json_put_str(details, "clusterName", s->cluster);
	json_put_str(details, "humanReadable", title);
	return (struct notice){.id = e->id,
	                       .kind = NOTICE_EVENT,
	                       .title = title,
	                       .text = title,
	                       .source = s->cluster,
	                       .severity = s->severity ? s->severity : "INFO",
	                       .at_ms = e->created_ms,
	                       .details = details};
}

int listeners_tell(struct tx *tx, struct arena *a, const struct event *e, const struct alert_subject *s)
{
	struct doc *listeners, config;
	size_t listener_count;
	int64_t count = 0;
	int r = tx_count(tx, LISTENER, e->group_id, &count);
	if (r < 0 || !count)
		return r;
	r = tx_list_all(tx, a, LISTENER, e->group_id, &listeners, &listener_count);
	for (size_t i = 0; r == 0 && i < listener_count && *s->room; i++) {
		if (!json_has(json_object_get(doc_json(a, listeners[i].body), "types"), e->type))
			continue;
		--*s->room;
		r = tx_get(tx, a, ALERT_CONFIG, listeners[i].id, &config);
		if (r == 0)
			r = config_tell(&(struct telling){tx, a, e, s, &config, notice_make(a, e, s)});
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}
