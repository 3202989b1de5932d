/* Between the files of the family.
 *
 *   "alert_config"  parent = project: GroupAlertsConfig, with masks where secrets are, and ALERT_HOLD where it was
 *                   set, which no answer shows;
 *                   secret: {"NOTIFIER": {"field": ...}}
 *   "alert"         parent = project: AlertViewForNdsGroup
 *   "alert_state"   id = alert, parent = alert_config: {"subject","lasts","over","untilMs"?,"inside"?,"severity",
 *                   "clusterName"?,..., "notices": {"NOTIFIER": {"dueMs","sent"}}}: what the alert's own form has no
 *                   field for
 *   "alert_open"    id = alert, parent = project, name = CONFIG/SUBJECT: while it lasts
 *
 * An alert is TRACKING until the shortest delay of its notifications is over, then OPEN; CLOSED when what it is about
 * has ended; CANCELLED when nobody knows any more: it ended before it was open, or its configuration or cluster is
 * gone. An event that neither begins nor ends anything makes an alert that is CLOSED at once. */
#ifndef STEWARD_API_ALERTS_RULES_H
#define STEWARD_API_ALERTS_RULES_H

#include "api/alerts/alerts.h"
#include "api/kit/verbs.h"

#define ALERT_CONFIG "alert_config"
#define ALERT "alert"
#define ALERT_STATE "alert_state"
#define ALERT_OPEN "alert_open"
#define ALERT_JOB "alert_notify"
#define ALERTS_OPEN_MAX 1000 /* of a project */
#define ELECTIONS "TOO_MANY_ELECTIONS"
#define ALERT_HOLD "holdMinutes" /* of a configuration: how long its metric must be inside before alerts end */
#define ALERT_HOLD_MINUTES 5     /* where it does not say */
#define WORK_MAX 500             /* of one event or value: a write must be short, however much is configured */
#define WORK_OF_ALERT 4          /* beside its messages, which are 1 each */

/* Types with a threshold that figures are judged by, and no event. */
#define BOUND_TYPES                                                        \
	"TOO_FEW_HEALTHY_MEMBERS|TOO_MANY_UNHEALTHY_MEMBERS|" OPLOG_WINDOW \
	"|CPS_SNAPSHOT_BEHIND|CPS_PREV_SNAPSHOT_OLD|CPS_OPLOG_BEHIND"

/* What an event or a value is about. */
struct alert_subject {
	struct str org_id, group_id, cluster, hostname, replica_set, shard, type_name, metric;
	int64_t port;
	const char *severity; /* of the event, or NULL */
	bool has_value;
	double value, most; /* as alert_reading has them */
	const char *units;  /* of the value, as the schema names them */
	unsigned *room;     /* work that may still be done for it */
};

/* An alert with all that belongs to it. */
struct alert {
	struct doc doc, state_doc, config_doc;
	json_t *body, *state, *config; /* config NULL: it is gone */
	unsigned *room;                /* as alert_subject has it; NULL: any */
};

/* matchers.c: whether all conditions of a configuration hold. */
bool matchers_match(const json_t *matchers, const struct alert_subject *s);
/* What schemas cannot say: names of fields, regular expressions. */
void matchers_check(struct arena *a, const json_t *matchers, struct faults *faults);

/* notifications.c: what a notification has that was not given. */
void notification_show(json_t *notification);
/* Gives notifications ids, takes their secrets out of the document, and puts those of the old document where it has
 * masks. 400. */
must_check int notifications_take(struct call *c, const struct doc *old, json_t *document, json_t **ret_secrets);
/* The secrets of a configuration's notifications, by their ids. */
must_check int notification_secrets(struct arena *a, const struct doc *config, json_t **ret_secrets);
/* A notification with its secrets, or those of its integration. */
must_check int notification_whole(struct tx *tx, struct arena *a, struct str group_id, const json_t *notification,
                                  const json_t *secrets, json_t **ret_whole);

/* recipients.c: calls tell() for everybody whom a notification to people names, each once, with the mail address or
 * the number of the telephone; the other is empty. */
typedef int recipient_tell(void *ctx, struct str address, struct str number);
must_check int recipients_each(struct tx *tx, struct arena *a, const json_t *notification, struct str org_id,
                               struct str group_id, recipient_tell *tell, void *ctx);

/* readings.c: a value as what it is about, and whether it is beyond a configuration's bound. */
struct alert_subject reading_subject(const struct alert_reading *r, struct str org_id);
bool is_outside(const json_t *config, const struct alert_subject *s);

/* evaluate.c: whether an event of that type begins something, and the type of the event that ends it; or empty. */
bool alert_type_lasts(struct str type);
struct str alert_type_end(struct str type);
must_check int alert_load(struct tx *tx, struct arena *a, struct str id, struct alert *ret_alert);
/* Writes body and state. */
must_check int alert_save(struct tx *tx, struct arena *a, struct alert *al);
/* CLOSED or CANCELLED, and tells who was told of it. */
must_check int alert_end(struct tx *tx, struct arena *a, struct alert *al, const char *status);
bool alert_is_over(const json_t *body);
/* CLUSTER/HOST:PORT/SET: what one alert of a configuration is about. */
struct str subject_key(struct arena *a, const struct alert_subject *s);
/* A new alert, and what is to be said of it at once. Its state is NULL where there is no
 * room for one more. */
must_check int alert_make(struct tx *tx, struct arena *a, const struct doc *config, const json_t *config_body,
                          const struct alert_subject *s, bool lasts, struct alert *ret_alert);
/* The alert of a configuration about a subject that lasts. -ENOENT. */
must_check int alert_find(struct tx *tx, struct arena *a, const struct doc *config, const struct alert_subject *s,
                          struct alert *ret_alert);
/* The value that it was judged by last, where its form has a place for it. */
void alert_value_put(struct alert *al, const struct alert_subject *s);
/* What the alert is about is not there any more. Nothing where it is over. */
must_check int alert_forget(struct tx *tx, struct arena *a, struct str alert_id, unsigned *room);
/* Ends all alerts of a configuration that last. */
must_check int alerts_cancel(struct tx *tx, struct arena *a, const struct doc *config);
/* Its notifications are others now: those that last are told to whom they were not. */
must_check int alerts_plan(struct tx *tx, struct arena *a, const struct doc *config);

/* listeners.c: what is wrong with the end of a webhook's address (#events=TYPE,TYPE), or NULL; in the write of a
 * configuration, and when it goes; and of an event of the project. */
const char *listener_fault(struct arena *a, struct str url);
must_check int listener_keep(struct tx *tx, struct arena *a, const struct doc *config, const json_t *document);
must_check int listener_drop(struct tx *tx, struct str config_id);
must_check int listeners_tell(struct tx *tx, struct arena *a, const struct event *e, const struct alert_subject *s);

/* notify.c: the host of an address, which is no secret; the rest of it may be. */
struct str url_host(struct str url);
/* Sends what is due now, and asks for the job of what is due later. The caller saves the alert. */
must_check int notices_run(struct tx *tx, struct arena *a, struct alert *al);
/* Sends the end to everybody who was told. */
must_check int notices_end(struct tx *tx, struct arena *a, struct alert *al);

#endif
