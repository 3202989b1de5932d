/* Who is told of an alert, and when: each notification of its configuration after its delay, then at each interval
 * while the alert is open and nobody has acknowledged it, and once when it ends. The times stand in the alert's state;
 * one job for each alert wakes at the next of them. */
#include "api/alerts/rules.h"

#include "api/kit/temporary.h"
#include "base/clock.h"
#include "base/log.h"
#include "outbox/outbox.h"
#include "outbox/vendors.h"
#include "trail/event_types.h"

#include <errno.h>
#include <stdio.h>

#define MINUTE_MS INT64_C(60000)
#define NEVER INT64_MAX

/* One message to one receiver. */
struct message {
	struct tx *tx;
	struct arena *arena;
	struct alert *alert;
	const json_t *notification; /* with its secrets */
	struct notice notice;
	json_int_t number; /* of the messages of its kind */
};

static const char *const kind_words[] = {
        [NOTICE_OPEN] = "open", [NOTICE_CLOSED] = "closed", [NOTICE_INFORMATION] = "event"};

static struct str state_text(const struct alert *al, const char *field)
{
	struct str text = json_field(al->state, field);
	return text.n ? text : json_field(al->body, field);
}

/* What the alert is about, in a few words. */
static struct str source_of(struct arena *a, const struct alert *al)
{
	struct str cluster = state_text(al, "clusterName"), host = state_text(al, "hostnameAndPort");
	if (cluster.n && host.n)
		return arena_printf(a, "%.*s (%.*s)", STR_ARG(cluster), STR_ARG(host));
	return cluster.n ? cluster : host.n ? host : arena_printf(a, "project %.*s", STR_ARG(al->doc.parent));
}

/* The fields of a webhook's body: the alert's, and those of its state that its form has no room for. */
static json_t *details_make(struct arena *a, const struct alert *al, const struct notice *n)
{
	static const char *const more[] = {"clusterName", "hostnameAndPort", "replicaSetName",
	                                   "shardName",   "metricName",      "severity"};
	json_t *details = json_clone(a, al->body);
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (json_field(al->state, more[i]).n)
			json_put_str(details, more[i], json_field(al->state, more[i]));
	if (json_object_get(details, "currentValue"))
		json_put_str(json_object_get(details, "currentValue"), "units", json_field(al->state, "units"));
	json_put_str(details, "humanReadable", n->text);
	return details;
}

static struct str text_make(struct arena *a, const struct alert *al, const struct notice *n)
{
	const json_t *value = json_object_get(al->body, "currentValue");
	struct buf b = {0};
	buf_printf(&b, "%.*s\n\nStatus: %.*s\nSince: %.*s\n", STR_ARG(n->title),
	           STR_ARG(json_field(al->body, "status")), STR_ARG(json_field(al->body, "created")));
	if (json_field(al->body, "resolved").n)
		buf_printf(&b, "Ended: %.*s\n", STR_ARG(json_field(al->body, "resolved")));
	if (value)
		buf_printf(&b, "Value of %.*s: %g %.*s\n", STR_ARG(json_field(al->state, "metricName")),
		           json_number_value(json_object_get(value, "number")),
		           STR_ARG(json_field(al->state, "units")));
	buf_printf(&b, "Project: %.*s\nAlert: %.*s\nConfiguration: %.*s\n", STR_ARG(al->doc.parent),
	           STR_ARG(al->doc.id), STR_ARG(al->config_doc.id));
	return buf_keep(&b, a);
}

static struct notice notice_make(struct arena *a, const struct alert *al, enum notice_kind kind)
{
	static const char *const words[] = {
	        [NOTICE_OPEN] = "OPEN", [NOTICE_CLOSED] = "CLOSED", [NOTICE_INFORMATION] = "EVENT"};
	const char *severity = json_string_value(json_object_get(al->state, "severity"));
	struct notice n = {.id = al->doc.id,
	                   .kind = kind,
	                   .source = source_of(a, al),
	                   .severity = severity ? severity : "INFO",
	                   .at_ms = al->doc.created_ms};
	struct str type = event_type_describe(a, NULL, json_field(al->body, "eventTypeName"));
	n.title = arena_printf(a, "[%s] %.*s: %.*s", words[kind], STR_ARG(type), STR_ARG(n.source));
	n.text = text_make(a, al, &n);
	n.details = details_make(a, al, &n);
	return n;
}

static json_t *record_of(const struct message *m)
{
	json_t *record = json_new(m->arena);
	json_put_str(record, "alertId", m->alert->doc.id);
	json_put_str(record, "alertConfigId", m->alert->config_doc.id);
	json_put_str(record, "notifierId", json_field(m->notification, "notifierId"));
	json_put_z(record, "notice", kind_words[m->notice.kind]);
	return record;
}

static int message_add(const struct message *m, const char *kind, struct str receiver, struct str about,
                       const json_t *content)
{
	struct arena *a = m->arena;
	struct str notifier = json_field(m->notification, "notifierId");
	return outbox_add(
	        m->tx, a,
	        &(struct outbox_message){.tenant = json_field(m->alert->body, "orgId"),
	                                 .receiver = receiver,
	                                 .keeper = m->alert->config_doc.id,
	                                 .key = arena_printf(a, "%.*s/%.*s/%s/%lld/%.*s", STR_ARG(m->alert->doc.id),
	                                                     STR_ARG(notifier), kind_words[m->notice.kind],
	                                                     (long long)m->number, STR_ARG(about)),
	                                 .kind = kind,
	                                 .about = about,
	                                 .content = content,
	                                 .record = record_of(m),
	                                 .room = m->alert->room});
}

static int person_tell(void *ctx, struct str address, struct str number)
{
	const struct message *m = ctx;
	json_t *content;
	if (number.n)
		return message_add(m, "SMS", arena_printf(m->arena, "sms:%.*s", STR_ARG(number)), number,
		                   sms_request(m->arena, number, &m->notice));
	content = json_new(m->arena);
	json_put_str(content, "to", address);
	json_put_str(content, "subject", m->notice.title);
	json_put_str(content, "text", m->notice.text);
	return message_add(m, "EMAIL", arena_printf(m->arena, "mail:%.*s", STR_ARG(address)), address, content);
}

struct str url_host(struct str url)
{
	struct str left, rest, host;
	const char *scheme = url.n ? memmem(url.p, url.n, "://", 3) : NULL;
	if (!scheme)
		return STR_NONE;
	rest = (struct str){scheme + 3, (size_t)(url.p + url.n - scheme - 3)};
	str_cut(rest, '/', &host, &left);
	str_cut(host, '?', &host, &left);
	str_cut(host, '#', &host, &left);
	return host;
}

/* Of the organization that the project is in by now. */
static int people_tell(struct message *m)
{
	struct doc project;
	int r = tx_get(m->tx, m->arena, "project", m->alert->doc.parent, &project);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return recipients_each(m->tx, m->arena, m->notification, project.parent, project.id, person_tell, m);
}

static int message_send(struct message *m)
{
	struct str type = json_field(m->notification, "typeName"), about;
	bool people = str_is_one_of("EMAIL|GROUP|ORG|SMS|TEAM|USER", type);
	/* To look for people is work, too. */
	if (people && m->alert->room) {
		if (!*m->alert->room)
			return outbox_drop(arena_z(m->arena, type), m->alert->config_doc.id);
		--*m->alert->room;
	}
	if (people)
		return people_tell(m);
	json_t *request = vendor_request(m->arena, m->notification, &m->notice);
	if (!request) {
		log_warn("alert %.*s: nothing here sends notifications of the type %.*s", STR_ARG(m->alert->doc.id),
		         STR_ARG(type));
		return 0;
	}
	about = url_host(json_field(request, "url"));
	if (!about.n)
		about = json_field(request, "endpoint");
	struct str receiver =
	        arena_printf(m->arena, "notifier:%.*s", STR_ARG(json_field(m->notification, "notifierId")));
	return message_add(m, arena_z(m->arena, type), receiver, about, request);
}

/* When somebody will be told next by a notification; set at the first look. */
static json_t *plan_of(const struct alert *al, json_t *plans, const json_t *notification)
{
	const char *id = json_string_value(json_object_get(notification, "notifierId"));
	int64_t due = al->doc.created_ms + json_number(notification, "delayMin") * MINUTE_MS;
	return json_default(plans, id, json_pack("{s:I, s:i}", "dueMs", (json_int_t)due, "sent", 0));
}

/* One notification. *next becomes the time of the next message, if that is sooner. */
static int plan_run(struct tx *tx, struct arena *a, struct alert *al, const json_t *whole, json_t *plan,
                    int64_t quiet_until, int64_t *next)
{
	bool lasts = json_flag(al->state, "lasts");
	int64_t now = clock_now_ms(), due = json_number(plan, "dueMs"),
	        interval = json_number(whole, "intervalMin") * MINUTE_MS;
	if (due < 0)
		return 0;
	due = lasts && due < quiet_until ? quiet_until : due;
	if (due > now) {
		*next = due < *next ? due : *next;
		return 0;
	}
	struct message m = {
	        .tx = tx, .arena = a, .alert = al, .notification = whole, .number = json_number(plan, "sent") + 1};
	if (str_is(json_field(al->body, "status"), "TRACKING"))
		json_put_z(al->body, "status", "OPEN");
	json_put_time(al->body, "lastNotified", now);
	m.notice = notice_make(a, al, lasts ? NOTICE_OPEN : NOTICE_INFORMATION);
	json_put(plan, "sent", json_integer(m.number));
	json_put(plan, "dueMs", json_integer(lasts && interval ? now + interval : -1));
	if (lasts && interval && now + interval < *next)
		*next = now + interval;
	return message_send(&m);
}

/* Until when nobody is told, because somebody has acknowledged the alert; 0: nobody has. */
static int64_t acknowledged_until(const struct alert *al)
{
	int64_t until;
	return clock_parse(json_field(al->body, "acknowledgedUntil"), &until) && until > clock_now_ms() ? until : 0;
}

int notices_run(struct tx *tx, struct arena *a, struct alert *al)
{
	json_t *plans = json_default(al->state, "notices", json_object()), *secrets;
	const json_t *list = json_object_get(al->config, "notifications");
	int64_t next = NEVER, quiet_until = acknowledged_until(al), until = json_number(al->state, "untilMs");
	if (!al->config || (json_flag(al->state, "lasts") && alert_is_over(al->body)))
		return 0;
	int r = notification_secrets(a, &al->config_doc, &secrets);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const json_t *n = json_array_get(list, i);
		json_t *whole;
		r = notification_whole(tx, a, al->doc.parent, n, secrets, &whole);
		if (r == 0)
			r = plan_run(tx, a, al, whole, plan_of(al, plans, n), quiet_until, &next);
	}
	if (quiet_until && quiet_until < next)
		next = quiet_until;
	if (until && until < next)
		next = until;
	return r < 0 ? r : temporary_schedule(tx, ALERT_JOB, al->doc.id, next == NEVER ? 0 : next);
}

int notices_end(struct tx *tx, struct arena *a, struct alert *al)
{
	const json_t *plans = json_object_get(al->state, "notices"),
	             *list = json_object_get(al->config, "notifications");
	json_t *secrets;
	if (!al->config)
		return 0;
	int r = notification_secrets(a, &al->config_doc, &secrets);
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
		const json_t *n = json_array_get(list, i);
		const char *id = json_string_value(json_object_get(n, "notifierId"));
		if (!json_number(json_object_get(plans, id), "sent"))
			continue;
		json_t *whole;
		r = notification_whole(tx, a, al->doc.parent, n, secrets, &whole);
		struct message m = {.tx = tx, .arena = a, .alert = al, .notification = whole};
		m.notice = notice_make(a, al, NOTICE_CLOSED);
		if (r == 0)
			r = message_send(&m);
	}
	return r;
}

/* --- the job */

static int acknowledgement_end(struct tx *tx, struct arena *a, struct alert *al)
{
	int64_t until;
	if (!clock_parse(json_field(al->body, "acknowledgedUntil"), &until) || until > clock_now_ms())
		return 0;
	json_object_del(al->body, "acknowledgedUntil");
	json_object_del(al->body, "acknowledgementComment");
	json_object_del(al->body, "acknowledgingUsername");
	return event_service_field(tx, a, "ALERT_UNACKNOWLEDGED_AUDIT", json_field(al->body, "orgId"), al->doc.parent,
	                           "alertId", al->doc.id);
}

static int due_save(struct tx *tx, struct job_run *run)
{
	struct alert al;
	unsigned room = WORK_MAX;
	int r = alert_load(tx, run->arena, run->job.subject, &al);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	al.room = &room;
	int64_t until = json_number(al.state, "untilMs");
	if (until && until <= clock_now_ms() && !alert_is_over(al.body))
		return alert_end(tx, run->arena, &al, "CLOSED");
	r = acknowledgement_end(tx, run->arena, &al);
	if (r == 0)
		r = notices_run(tx, run->arena, &al);
	return r < 0 ? r : alert_save(tx, run->arena, &al);
}

static const struct job_kind kinds[] = {{.name = ALERT_JOB, .save = due_save}};
const struct job_kinds alerts_jobs = JOB_KINDS(kinds);
