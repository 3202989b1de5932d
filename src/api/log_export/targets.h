/* For the family's own files. A target is where logs go: a log integration, or the project's push-based export.
 *
 *   "log_integration"    id; parent = project; secret: keys and headers, sealed
 *   "log_export"         id = parent = project
 *   "log_export_status"  id = the target's; parent = project: {"state", "why"?, "told"?, "byRole"?}
 *   "log_export_cursor"  parent = the target; name = a node: how far its log was sent (cursors.c) */
#ifndef STEWARD_API_LOG_EXPORT_TARGETS_H
#define STEWARD_API_LOG_EXPORT_TARGETS_H

#include "api/log_export/log_export.h"
#include "base/id.h"
#include "base/json.h"
#include "objects/objects.h"

#define INTEGRATION_KIND "log_integration"
#define EXPORT_KIND "log_export"
#define STATUS_KIND "log_export_status"
#define CURSOR_KIND "log_export_cursor"

enum target_type { TARGET_S3, TARGET_GCS, TARGET_AZURE, TARGET_DATADOG, TARGET_SPLUNK, TARGET_OTEL };
#define TARGET_TYPES 6
struct target_words {
	const char *type, *enabled, *updated, *disabled;
};
extern const struct target_words target_words[TARGET_TYPES];

/* --- targets.c */

struct target {
	const char *kind; /* of its document */
	struct str id, group_id;
	enum target_type type;
	json_t *config; /* the document, with its secrets in the clear */
};
bool target_has_bucket(enum target_type type);
enum target_type target_type_of(const json_t *config);
/* The texts are the arena's. Negative: its secrets cannot be opened. */
must_check int target_load(struct arena *a, const struct doc *d, struct target *ret_target);
/* Whether it wants the logs of that kind of a node. */
bool target_wants(const struct target *t, bool is_router, enum engine_log_kind kind);
/* "DB", "ROUTER_AUDIT" ... */
const char *log_type_name(bool is_router, enum engine_log_kind kind);

/* In the write that makes or changes one: it is to be verified anew. `by_role`: a role reaches its bucket, so that
 * nothing says that the organization may write to what the operator has under that name. */
must_check int target_begin(struct tx *tx, struct arena *a, struct str id, struct str group_id, bool by_role);
/* Whether it was begun so. */
must_check int target_by_role(struct tx *tx, struct arena *a, struct str id, bool *ret_by_role);
/* call.committed: it is looked at soon. */
void target_wake(struct call *c, void *arg);
/* In the write that takes one away: what hangs on it goes too. */
must_check int target_end(struct tx *tx, struct arena *a, struct str id);

/* How a try went. */
enum outcome {
	OUTCOME_SENT,
	OUTCOME_ROLE,    /* the provider does not let the service be the role */
	OUTCOME_REFUSED, /* the tenant must mend it */
	OUTCOME_AWAY     /* it may pass */
};
/* In a write: the state that follows, and its events. `failures`: tries that failed in a row. */
must_check int target_note(struct tx *tx, struct arena *a, const struct target *t, enum outcome outcome,
                           unsigned failures, const char *why);
/* In a write: it is turned off, and so no alert shall wait for its return; lines of the host were lost. */
must_check int target_off(struct tx *tx, struct arena *a, const struct target *t);
must_check int target_lost(struct tx *tx, struct arena *a, const struct target *t, struct str host);
/* What the status is; its why may be empty. */
must_check int target_state(struct tx *tx, struct arena *a, struct str id, struct str *ret_state, struct str *ret_why);
/* Tells it in a header of the answer, which no field of the reference's form can. */
must_check int target_tell(struct call *c, struct str id);

/* --- bucket.c */

/* What the document names as the bucket, its account where it has one, and the role by which it is reached. */
struct str log_bucket_name(const json_t *config);
struct str log_bucket_role_id(const json_t *config);
/* In a write: what schemas cannot say of a bucket, a prefix and a role. The bucket's name is taken for the
 * organization where nobody proves to own it; c->noted is the role that reaches it, or NULL. */
must_check int log_bucket_check(struct call *c, json_t *config);
/* In a read: the role that the target's bucket is reached by; *ret_role is NULL where the operator's own configuration
 * reaches it. Negative with words: there is no such role. */
must_check int log_bucket_role(const struct service *s, struct tx *tx, struct arena *a, const struct target *t,
                               const struct provider_role **ret_role, const char **ret_why);
/* Waits for the store. *ret_outcome and `why` tell what is wrong. The arena lives as long as it is open. */
struct shipment;
must_check int log_bucket_open(const struct shipment *to, struct objects **ret_bucket, enum outcome *ret_outcome,
                               const char **ret_why);
/* Whether it can be written to is found out by doing so. */
must_check int log_bucket_prove(struct arena *a, const struct target *t, struct objects *bucket,
                                enum outcome *ret_outcome, const char **ret_why);
/* The name of an object, below the target's prefix. */
const char *log_bucket_object(struct arena *a, const struct target *t, const char *below);

/* --- cursors.c */

struct cursor {
	struct engine_log_place at, to; /* to: of what is being sent; a try that a crash has cut short is repeated */
	bool pending, from_end;
	int64_t sent[2]; /* by enum engine_log_kind: the position up to which objects were written */
	int unfit;       /* tries in a row that a service has answered with 400 or 413 */
	/* What its positions belong to: no other cursor has it, also of a node of the same name later on. */
	char stream[ID_LEN + 1];
	char owner[ID_LEN + 1];
	int64_t lease_ms;
};
must_check int cursor_find(struct tx *tx, struct arena *a, struct str target_id, struct str node,
                           struct cursor *ret_cursor);
/* In the write that makes a target: the logs of nodes that are there already are sent from their end on. */
must_check int cursors_begin(struct tx *tx, struct arena *a, struct str target_id, struct str group_id);
/* From one state of a cursor to the next. -ESTALE: it is not in the first one, or the target is gone. */
struct cursor_step {
	const char *kind;
	struct str target_id, node, cluster_id;
	struct cursor before, after;
};
int cursor_step_run(struct tx *tx, void *step);

/* --- forms.c */

/* Lines that are sent together. */
struct record {
	enum engine_log_kind kind;
	size_t from, n; /* in the text of its kind */
	int64_t position, at_ms;
	bool ends;
};
struct batch {
	struct buf text[2]; /* by enum engine_log_kind */
	struct record *records;
	size_t count, room;
};
/* What one request has at most. */
#define REQUEST_BYTES (768ul << 10) /* escaped, still below what services take */
#define REQUEST_RECORDS 1000
void batch_free(struct batch *b);
void batch_add(struct batch *b, const struct engine_log_line *line);
/* Whose lines they are. */
struct origin {
	struct str group_id, cluster_name, node, host;
	struct str stream; /* what the positions belong to */
	bool is_router;
};
/* The body that a service takes, gzip. */
void form_datadog(struct buf *ret_body, const struct batch *b, const struct origin *o);
void form_splunk(struct buf *ret_body, const struct batch *b, const struct origin *o);
void form_otlp(struct buf *ret_body, const struct batch *b, const struct origin *o);
void gzip_all(struct buf *ret_packed, struct str plain);

/* --- send.c */

struct shipment {
	const struct service *service;
	struct arena *arena;
	struct target target;
	const struct provider_role *role;
	const char *no_role; /* why there is none */
	struct origin origin;
	struct objects *bucket; /* open from the first batch on */
	bool leaves_out;        /* lines that a service refuses by themselves, where it takes others */
	/* Of the last batch: it was refused for what it has, and how many lines were left out. */
	bool unfit;
	size_t left_out;
	bool (*stops)(void *ctx);
	void *stops_ctx;
};
/* The range's lines, where the objects of each log begin, and where all end. */
enum outcome shipment_send(struct shipment *s, const struct batch *b, const int64_t sent[2], int64_t to,
                           const char **ret_why);
/* What can be known of the target before there is a line. */
enum outcome shipment_prove(struct shipment *s, const char **ret_why);

#endif
