/* Federated database instances as they are kept. The document is what the API shows. Beside it, under the same id,
 * is how far the work has come, so that the work changes nobody's ETag:
 *
 *   {"host": which has it; empty: any, "generation": counts changes of what is wanted, "applied": that is in force,
 *    "address", "port": where it listens, "used": [bytes of query, day, week, month],
 *    "reason": why it does not go on} */
#ifndef STEWARD_API_DATA_FEDERATION_INSTANCE_H
#define STEWARD_API_DATA_FEDERATION_INSTANCE_H

#include "api/data_federation/data_federation.h"
#include "api/kit/lifecycle.h"
#include "api/kit/verbs.h"

#define FEDERATION_KIND "federated_database"
#define FEDERATION_RUN_KIND "federated_database_run"
#define FEDERATION_LIMIT_KIND "federated_database_limit"
#define FEDERATION_ENDPOINT_KIND "federation_endpoint"
#define FEDERATION_JOB "data_federation"

struct instance {
	struct doc doc, run_doc;
	json_t *body, *run;
};

/* -ENOENT. */
must_check int instance_get(struct tx *tx, struct arena *a, struct str id, struct instance *ret_instance);
must_check int instance_run_save(struct tx *tx, struct arena *a, struct instance *x);
bool instance_is(const json_t *body, const char *state);
/* The name that clients know it by; `endpoint`: the id of a private endpoint, or empty. */
struct str instance_host_name(const struct service *s, struct arena *a, const struct doc *d, struct str endpoint);
/* In a write: its job is due now, or at that time. */
must_check int instance_ask(struct tx *tx, struct arena *a, struct str id, struct str group_id, struct str host,
                            int64_t due_ms);
/* In a write: something else is wanted of it. */
must_check int instance_changed(struct tx *tx, struct arena *a, struct str id);
/* The same of all of the project. */
must_check int instances_changed(struct tx *tx, struct arena *a, struct str group_id);
/* 501 where the engine in use, or this service, can have no instances. */
must_check int instances_offered(struct call *c);
/* Bytes that it has read; false: not known. Asks the engine where this host has it, else what was last noted. */
bool instance_used(const struct service *s, struct arena *a, const struct instance *x,
                   struct engine_federation_used *ret_used);

/* The bound that a limit's name sets: "bytesProcessed.daily". False: none. */
must_check bool limit_span_of(struct str name, enum federation_span *ret_span);

/* want.c: what the engine shall have, in a read; all of it in the arena. -EINVAL: something that it names is gone, and
 * *ret_why says what. */
must_check int instance_want_load(const struct service *s, struct tx *tx, struct arena *a, const struct instance *x,
                                  struct engine_federation *ret_want, struct engine_access *ret_access,
                                  const char **ret_why);

/* references.c: faults of what the document names: clusters, archives, roles. In a read. */
must_check int references_check(struct tx *tx, struct arena *a, struct str group_id, const json_t *body,
                                struct faults *faults);
/* The role that stores of that kind are read by; empty: none. */
struct str federation_role_id(const json_t *body, enum federation_store kind);

/* work.c: in the write that takes it away: what the engine has of it goes. */
must_check int instance_gone_ask(struct tx *tx, struct arena *a, const struct doc *d);

/* endpoints.c: names of the project's private endpoints that are open, in the arena. */
must_check int endpoints_open(struct tx *tx, struct arena *a, struct str group_id, struct str **ret_ids,
                              size_t *ret_count);

#endif
