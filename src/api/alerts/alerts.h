/* Alerts: what projects want to be told of, what of it has happened, and who is told. */
#ifndef STEWARD_API_ALERTS_ALERTS_H
#define STEWARD_API_ALERTS_ALERTS_H

#include "base/json.h"
#include "jobs/jobs.h"
#include "trail/events.h"

/* In the write of each event: opens and closes the alerts of configurations with an event type. */
event_observer alerts_on_event;

/* A figure that configurations have a bound for: a measured value of a process, or a state that was counted. */
struct alert_reading {
	struct str group_id, cluster, hostname, replica_set, shard; /* hostname empty: of the cluster, or of the set */
	const char *type_name;                                      /* PRIMARY, SECONDARY, ROUTER or NULL */
	unsigned port;
	const char *type;   /* of the configurations: OUTSIDE_METRIC_THRESHOLD, TOO_FEW_HEALTHY_MEMBERS ... */
	const char *metric; /* as metricThreshold names it: CONNECTIONS_PERCENT; or NULL */
	double value;       /* bytes, milliseconds, or a plain number */
	double most;        /* what it can be by now, so that bounds above it do not hold yet; 0: anything */
};
/* In a write: judges a new value by every configuration that is about it. An alert that lasts has the newest value. A
 * value that changes nothing writes nothing. */
must_check int alerts_on_reading(struct tx *tx, struct arena *a, const struct alert_reading *r);
/* What a project watches, and its alerts that last: by it, readings that change nothing cost no write. */
struct alert_rule {
	struct doc config;
	struct str type, metric;
	const json_t *body;
};
struct alert_open {
	struct str alert_id, config_id, subject, cluster, host; /* host: with its port; empty: none */
};
struct alert_watch {
	struct str group_id;
	struct alert_rule *rules; /* of the types that were asked for, and enabled */
	struct alert_open *open;  /* of all types */
	size_t rule_count, open_count;
};
/* In a read. `types` are separated by "|"; "": no rules. */
must_check int alerts_watch_load(struct tx *tx, struct arena *a, struct str group_id, const char *types,
                                 struct alert_watch *ret_watch);
bool alerts_watch_has(const struct alert_watch *w, const char *type);
/* Whether the reading would open or end an alert, or is the value of one that lasts. */
bool alerts_watch_matters(const struct alert_watch *w, struct arena *a, const struct alert_reading *r);

/* What is to be written after a look. */
struct alert_finding {
	struct alert_reading reading;
	struct str ends; /* the alert to forget; empty: the reading is to be judged */
};
struct alert_findings {
	struct arena *arena;
	struct alert_finding *list;
	size_t count, room;
};
/* Adds one; its texts are copied, but not those of `type` and `type_name`. */
void alerts_find(struct alert_findings *f, const struct alert_finding *one);
/* Writes them, some at a time, and waits. Not on a loop. */
must_check int alerts_findings_write(struct store *store, const struct alert_findings *f);

/* Milliseconds or bytes of a unit of thresholds; 1: it has none. */
double alert_unit(struct str name);
#define OPLOG_WINDOW "REPLICATION_OPLOG_WINDOW_RUNNING_OUT"

/* Finds the receiver that an integration of the project describes, with its secrets, in the form of a notification of
 * its type: {"typeName": "SLACK", "apiToken": ..., "channelName": ...}. NEW_RELIC: "accountId" and "licenseKey".
 * -ENOENT: the project has none of that id. */
typedef int alert_integration(struct tx *tx, struct arena *a, struct str group_id, struct str id,
                              json_t **ret_receiver);
/* Set once, at the start. Without it no integrationId is known. */
void alerts_integrations(alert_integration *find);

/* What a configuration would have told of: how often, and when last. */
struct alert_replay {
	const json_t *config;
	int64_t since_ms, delay_ms; /* what was before is not looked at; the shortest delay */
	int64_t count, last_ms;
	/* Of the subject in hand. */
	bool watched, outside, was_told;
	int64_t began_ms, inside_ms; /* since when it is inside again, while the alert lasts on; -1: it is not */
};
/* The minutes that a metric must be within the bound before alerts of the configuration end. */
int64_t alert_hold_minutes(const json_t *config);
void alerts_replay_begin(struct alert_replay *p, const json_t *config, int64_t since_ms);
/* Values come subject by subject, in the order of time. */
void alerts_replay_subject(struct alert_replay *p, const struct alert_reading *r);
void alerts_replay_value(struct alert_replay *p, const struct alert_reading *r, int64_t at_ms);
/* By the events of the project. -ENOTSUP: its type is judged by figures of which nothing is kept. */
must_check int alerts_replay_events(struct alert_replay *p, struct tx *tx, struct arena *a, struct str group_id);

/* In the write that makes a project: the configurations that every new project has. */
must_check int alerts_defaults_add(struct tx *tx, struct arena *a, struct str group_id);

extern const struct job_kinds alerts_jobs;

#endif
