/* Alerts as callers see them: lists, one, and its acknowledgement. Alerts are made by events and values: evaluate.c. */
#include "api/alerts/rules.h"

#include "base/clock.h"
#include "gate/dispatch.h"
#include "trail/events.h"

#include <errno.h>

/* Those of a configuration are found through their states. */
static int of_config(struct call *c, struct str config_id, struct segment **ret_list, size_t *ret_count)
{
	struct doc config, *states;
	int64_t all = 0;
	size_t count;
	int r = tx_get(c->tx, c->arena, ALERT_CONFIG, config_id, &config);
	if (r == 0 && !str_eq(config.parent, c->group.id))
		r = -ENOENT;
	if (r == 0)
		r = tx_count(c->tx, ALERT_STATE, config_id, &all);
	if (r < 0 || call_takes_long(c, all))
		return r;
	r = tx_list_all(c->tx, c->arena, ALERT_STATE, config_id, &states, &count);
	if (r < 0)
		return r;
	struct segment *list = arena_new_array(c->arena, struct segment, count + 1);
	for (size_t i = 0; i < count; i++)
		list[i] = (struct segment){.kind = ALERT, .id = states[i].id};
	*ret_list = list;
	*ret_count = count;
	return 0;
}

static int alert_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct str config_id = call_path(c, "alertConfigId");
	struct segment *all = arena_new_of(c->arena, struct segment);
	if (config_id.p)
		return of_config(c, config_id, ret_list, ret_count);
	*all = (struct segment){.kind = ALERT, .parent = c->group.id};
	*ret_list = all;
	*ret_count = 1;
	return 0;
}

/* Who acknowledges, as an address: keys and service accounts have none, so theirs is one that cannot be delivered
 * to. */
static struct str caller_address(struct call *c)
{
	static const char *const domains[] = {[PRINCIPAL_API_KEY] = "@api-key.invalid",
	                                      [PRINCIPAL_SERVICE_ACCOUNT] = "@service-account.invalid",
	                                      [PRINCIPAL_USER] = ""};
	return arena_printf(c->arena, "%s%s", c->caller->name, domains[c->caller->kind]);
}

/* A time that is over takes an acknowledgement back, as unacknowledgeAlert does. */
static int acknowledgement_apply(struct call *c, struct alert *al)
{
	struct str comment = json_field(c->body, "acknowledgementComment");
	const json_t *given = json_object_get(c->body, "acknowledgedUntil");
	int64_t until = 0;
	bool takes_back = json_flag(c->body, "unacknowledgeAlert");
	if (!takes_back && !given)
		return call_fail_fault(c, STR("acknowledgedUntil"), "is required, unless unacknowledgeAlert is true");
	if (given && takes_back)
		return call_fail_fault(c, STR("acknowledgedUntil"), "does not go with unacknowledgeAlert");
	if (given && !clock_parse(json_str_of(given), &until))
		return call_fail_fault(c, STR("acknowledgedUntil"), "must be a date and time");
	json_object_del(al->body, "acknowledgementComment");
	if (takes_back || until <= clock_now_ms()) {
		json_object_del(al->body, "acknowledgedUntil");
		json_object_del(al->body, "acknowledgingUsername");
		event_set_type(c, "ALERT_UNACKNOWLEDGED_AUDIT");
		return 0;
	}
	json_put_time(al->body, "acknowledgedUntil", until);
	json_put_str(al->body, "acknowledgingUsername", caller_address(c));
	if (comment.n)
		json_put_str(al->body, "acknowledgementComment", comment);
	return 0;
}

/* PATCH. Not the generic verb: most of an alert is nobody's to change, and an older version sends all of it. */
int alert_acknowledge(struct call *c)
{
	struct alert al;
	struct doc d;
	int r = resource_load(c, &resource_alert, &d);
	if (r == 0)
		r = if_match(c, d.rev);
	if (r < 0)
		return r;
	r = alert_load(c->tx, c->arena, d.id, &al);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT || alert_is_over(al.body))
		return call_fail_about(c, 400, "ALERT_NOT_OPEN", d.id,
		                       "The alert is over: there is nothing to acknowledge.");
	r = acknowledgement_apply(c, &al);
	if (r == 0)
		r = notices_run(c->tx, c->arena, &al);
	if (r == 0)
		r = alert_save(c->tx, c->arena, &al);
	if (r < 0)
		return r;
	event_field(c, "alertId", d.id);
	return resource_write(c, &resource_alert, &al.doc);
}

const struct resource_hooks alert_hooks = {.segments = alert_segments};
