/* The part of a store check that both back ends share: one sentence per fault, the queries that both understand, and
 * the walk along the chain of events. Nothing outside src/store/ includes this. */
#ifndef STEWARD_STORE_CHECK_H
#define STEWARD_STORE_CHECK_H

#include "store/backend.h"

struct check {
	FILE *out;
	int faults;
	/* The chain of events: its ends as meta has them, and the progress of the walk. */
	struct event_chain ends;
	int64_t seq;
	unsigned char hash[32];
};

void check_fault(struct check *c, const char *format, ...) printf_like(2, 3);

/* counted: documents, documents in the list's head, and its next position. */
void check_list(struct check *c, struct str kind, struct str parent, const int64_t counted[3], const int64_t has[3]);
void check_block(struct check *c, struct str kind, struct str parent, int64_t level, int64_t block, int64_t counted,
                 int64_t has);
void check_body(struct check *c, struct str kind, struct str id, struct str body);
void check_ref(struct check *c, struct str kind, struct str value, struct str id);
void check_positions(struct check *c, struct str scope, int64_t count, int64_t first, int64_t last);

/* Call check_chain_begin(), then pass each event in the order of its number, then end. chain_read: the result of
 * reading c->ends. */
must_check int check_chain_begin(struct check *c, int chain_read);
void check_event(struct check *c, const struct event_row *row, struct str prev, struct str stored);
void check_chain_end(struct check *c);

/* Finds references whose target is missing, for kinds of references whose target's kind is known: kind, value, id. */
#define CHECK_REFS                                                                                            \
	"WITH target (ref, kind) AS (VALUES ('api_key_public', 'api_key'),"                                   \
	"  ('service_account_client', 'service_account'), ('user_name', 'user'),"                             \
	"  ('identity_provider_okta', 'identity_provider'), ('identity_provider_slug', 'identity_provider'))" \
	" SELECT r.kind, r.value, r.id FROM ref r JOIN target t ON t.ref = r.kind"                            \
	" WHERE NOT EXISTS (SELECT 1 FROM doc d WHERE d.kind = t.kind AND d.id = r.id)"

#define CHECK_EVENT_COLUMNS \
	"seq, id, org_id, group_id, type, created_ms, body, prev_hash, hash, cluster, raw, org_pos, group_pos"

/* Positions must have no gaps and follow the order of the chain: position minus row number is the same for all events
 * of a scope (org, group). */
#define CHECK_POSITIONS(scope)                                                                                    \
	"SELECT " scope "_id, count(*), min(" scope "_pos), max(" scope "_pos) FROM (SELECT " scope "_id, " scope \
	"_pos, " scope "_pos - row_number() OVER (PARTITION BY " scope                                            \
	"_id ORDER BY seq) AS base FROM event WHERE " scope "_pos > 0) s GROUP BY " scope                         \
	"_id HAVING min(base) <> max(base)"

#endif
