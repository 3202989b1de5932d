/* Who may connect: users, their rights and the rules for addresses, brought to all sets of a cluster. What was taken
 * away comes first, everywhere, and then what was given. hba.c writes the files, enforce.c brings them to running
 * servers. */
#include "engine/postgres/cluster/access.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/access_mark.h"
#include "engine/postgres/cluster/admit.h"
#include "engine/postgres/cluster/audit.h"
#include "engine/postgres/cluster/enforce.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/cluster/quota.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/grants.h"
#include "engine/postgres/sql/grants_sql.h"
#include "engine/postgres/sql/groups_sql.h"
#include "engine/postgres/sql/sql.h"
#include "store/seal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#define ADMIT_MS 10000
#define ADMIT_EVERY_US 500000

/* Standbys know a user once they have replayed it. */
static void standbys_wait(PGconn *conn)
{
	int64_t behind = 1, end = pg_mono_ms() + 3000;
	int r = 0;
	while (r == 0 && behind > 0 && pg_mono_ms() < end) {
		r = pg_sql_int(conn, 2000,
		               "select count(*) from pg_stat_replication where state = 'streaming' and replay_lsn < "
		               "pg_current_wal_flush_lsn()",
		               &behind);
		if (behind > 0)
			pg_sleep_ms(5);
	}
}

static bool is_plain(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; p && *p; p++)
		if (*p < ' ')
			return false;
	return true;
}

static bool ldap_is_plain(const struct engine_ldap *ldap)
{
	return !ldap || (is_plain(ldap->host) && is_plain(ldap->bind_dn) && is_plain(ldap->bind_password));
}

/* Whether a server can have a user like this. */
static bool user_is_possible(const struct engine_user *u)
{
	size_t n = strlen(u->name);
	bool bad = n == 0 || n > 63 || str_starts(str_of(u->name), STR("pg_")) ||
	           str_starts(str_of(u->name), STR("steward:")) || strcmp(u->name, PG_SUPER) == 0;
	/* PostgreSQL 16 takes a name that begins with a slash for a pattern, however it is quoted. */
	bad |= u->name[0] == '/' || (u->subject && u->subject[0] == '/');
	return !bad && is_plain(u->name) && is_plain(u->subject) && is_plain(u->ldap_dn) && is_plain(u->ldap_query);
}

/* --- the copy that is kept */

static const char *z_copy(struct arena *a, const char *z)
{
	return z ? arena_z(a, str_of(z)) : NULL;
}

static void user_copy(struct arena *a, const struct engine_user *from, struct engine_user *to)
{
	struct engine_grant *grants = arena_new_array(a, struct engine_grant, from->grant_count + 1);
	*to = *from;
	to->scram = z_copy(a, from->scram);
	to->subject = z_copy(a, from->subject);
	to->ldap_dn = z_copy(a, from->ldap_dn);
	to->ldap_query = z_copy(a, from->ldap_query);
	to->audit = z_copy(a, from->audit);
	to->as = z_copy(a, from->as);
	for (size_t i = 0; i < from->grant_count; i++)
		grants[i] = (struct engine_grant){z_copy(a, from->grants[i].role), z_copy(a, from->grants[i].database),
		                                  z_copy(a, from->grants[i].collection)};
	to->grants = grants;
}

/* Who comes in the name of a user, where federated instances do. */
static void shadow_make(const struct pg_cluster *c, struct arena *a, const struct engine_user *of,
                        struct engine_user *to)
{
	char name[64];
	pg_shadow_name(c->id, of->name, name);
	*to = (struct engine_user){.as = of->name, .audit = of->audit};
	snprintf(to->name, sizeof to->name, "%s", name);
	to->as = z_copy(a, of->name);
}

static void ldap_copy(struct arena *a, const struct engine_ldap *from, struct engine_access *to)
{
	struct engine_ldap *ldap = arena_new_of(a, struct engine_ldap);
	*ldap = *from;
	ldap->host = z_copy(a, from->host);
	ldap->bind_dn = z_copy(a, from->bind_dn);
	ldap->bind_password = z_copy(a, from->bind_password);
	ldap->ca = z_copy(a, from->ca);
	to->ldap = ldap;
}

int pg_access_keep(struct pg_cluster *c, const struct engine_access *access, const char **ret_why)
{
	static const struct engine_access nobody;
	if (!access)
		access = &nobody;
	if (access == c->access)
		return 0;
	struct arena *a = arena_new();
	struct engine_access *kept = arena_new_of(a, struct engine_access);
	struct engine_user *users = arena_new_array(a, struct engine_user, 2 * access->user_count + 1);
	struct cidr *networks = arena_new_array(a, struct cidr, access->network_count + 1);
	int r = 0;
	for (size_t i = 0; i < access->user_count; i++)
		if (access->users[i].as) {
			continue; /* of what was kept before: made anew */
		} else if (user_is_possible(&access->users[i])) {
			user_copy(a, &access->users[i], &users[kept->user_count++]);
			if (c->federated)
				shadow_make(c, a, &users[kept->user_count - 1], &users[kept->user_count]);
			kept->user_count += c->federated;
		} else {
			pg_why_set(ret_why,
			           "user %.80s: the name must have 1 to 63 bytes and not begin with /, pg_ or steward:",
			           access->users[i].name);
			r = ENGINE_PARTLY;
		}
	for (size_t i = 0; i < access->network_count; i++)
		networks[i] = access->networks[i];
	kept->users = users;
	kept->networks = networks;
	kept->network_count = access->network_count;
	const char **refused = arena_new_array(a, const char *, access->refused_count + 1);
	for (size_t i = 0; i < access->refused_count; i++)
		refused[i] = z_copy(a, access->refused[i]);
	kept->refused = refused;
	kept->refused_count = access->refused_count;
	const char **names = arena_new_array(a, const char *, access->host_name_count + 1);
	for (size_t i = 0; i < access->host_name_count; i++)
		names[i] = z_copy(a, access->host_names[i]);
	kept->host_names = names;
	kept->host_name_count = access->host_name_count;
	kept->client_cas = z_copy(a, access->client_cas);
	kept->hold = access->hold;
	if (access->ldap && ldap_is_plain(access->ldap)) {
		ldap_copy(a, access->ldap, kept);
	} else if (access->ldap) {
		pg_why_set(ret_why, "the directory's name or credentials have control characters in them");
		r = ENGINE_PARTLY;
	}
	struct arena *before = c->access_arena;
	pthread_mutex_lock(&c->lock);
	c->access_arena = a;
	c->access = kept;
	pthread_mutex_unlock(&c->lock);
	arena_free(before); /* not earlier: the supervisor reads it, with cluster.lock */
	return r;
}

/* --- sets */

static int set_open(struct pg_cluster *c, struct pg_set *s, PGconn **ret_conn)
{
	struct pg_node *p = pg_set_primary(c, s);
	if (!p || !p->pid)
		return -EAGAIN;
	return pg_node_reach(c, p, ret_conn);
}

static bool set_runs(const struct pg_cluster *c, const struct pg_set *s)
{
	bool runs = false;
	for (size_t i = 0; i < c->node_count && !runs; i++)
		runs = c->nodes[i]->set == s->number && c->nodes[i]->pid && !c->nodes[i]->shut;
	return runs;
}

/* In part, or not yet open: those nodes are waited for when they are opened. */
static bool set_is_shut(const struct pg_cluster *c, const struct pg_set *s)
{
	bool shut = false;
	for (size_t i = 0; i < c->node_count && !shut; i++)
		shut = c->nodes[i]->set == s->number && c->nodes[i]->pid && c->nodes[i]->shut;
	return shut;
}

/* Where no node takes clients, everything is taken away, if none does before it has been told. */
static int set_revoke(struct pg_cluster *c, struct pg_set *s, const struct engine_access *access, const char **ret_why)
{
	PGconn *conn;
	int64_t at = 0;
	s->access_at = 0; /* until all is done, no standby can be known to have it */
	int r = set_open(c, s, &conn);
	if (r < 0 && !set_runs(c, s)) {
		pg_why_set(ret_why, "set %u has no primary at the moment; it takes no clients before it has this",
		           s->number);
		r = pg_admit_promise(c, false);
		return r < 0 ? r : ENGINE_PARTLY;
	}
	if (r < 0)
		return r;
	r = pg_grants_revoke(conn, access, ret_why);
	if (r == 0)
		r = pg_sql_int(conn, 2000, "select (pg_current_wal_flush_lsn() - '0/0')::bigint", &at);
	s->access_at = at;
	PQfinish(conn);
	return r;
}

/* Users and what is audited of them, in one set; and whether users who lost a role may still have what they were
 * granted by hand, because somebody holds it. */
static int set_give(struct pg_cluster *c, struct pg_set *s, const struct engine_access *access, int64_t *ret_lost,
                    const char **ret_why)
{
	PGconn *conn;
	int64_t at = 0;
	int r = set_open(c, s, &conn);
	if (r < 0)
		return r;
	r = pg_grants_give(c, pg_set_primary(c, s), conn, access, ret_why);
	PQfinish(conn);
	if (set_open(c, s, &conn) < 0) /* of its own: a statement may still be under way on the other */
		return r < 0 ? r : -EAGAIN;
	if (r < 0)
		(void)!pg_sql_int(conn, 2000, pg_grants_sql_lost_count, ret_lost);
	int audited = pg_audit_apply(conn, access, c->audit != NULL);
	if (audited == 0)
		audited = pg_quota_apply(c, pg_set_primary(c, s), conn);
	if (pg_module_apply(conn) < 0)
		log_warn("engine: %s: what measures statements is not in place: %s", c->id, pg_why_last());
	if (!set_is_shut(c, s))
		standbys_wait(conn);
	if (pg_sql_int(conn, 2000, "select (pg_current_wal_flush_lsn() - '0/0')::bigint", &at) == 0 && s->access_at)
		s->access_at = at;
	PQfinish(conn);
	return r < 0 ? r : audited;
}

/* --- all of it */

/* To clients, where everything was taken away that had to be. */
static void cluster_open(struct pg_cluster *c, int timeout_ms)
{
	bool reached = !c->paused && !c->access->hold;
	for (size_t i = 0; i < c->set_count; i++)
		reached &= c->sets[i].access_at != 0;
	if (reached && pg_admit_promise(c, true) == 0)
		pg_admit_all(c, timeout_ms);
}

static void fault_note(int r, int *fault, bool *partly)
{
	*partly |= r == ENGINE_PARTLY;
	if (r < 0)
		*fault = r;
}

/* What was taken away comes first, everywhere; and what one part cannot do now keeps no other from what it can: who is
 * not wanted any more shall be out, whatever else fails. */
static void access_revoke(struct pg_cluster *c, int *fault, bool *partly, const char **ret_why)
{
	for (size_t i = 0; i < c->set_count && !c->paused; i++)
		fault_note(set_revoke(c, &c->sets[i], c->access, ret_why), fault, partly);
	fault_note(pg_nodes_enforce(c, true, false, ret_why), fault, partly);
	/* After a failover nobody waits for the other nodes, which do not have these rules yet, nor for what is
	 * given. */
	if (*fault == 0)
		cluster_open(c, -1);
	/* Standbys are held against their primaries: where one of those does not answer, no standby is to blame. */
	fault_note(pg_nodes_enforce(c, false, *fault == 0, ret_why), fault, partly);
}

int pg_access_apply(struct pg_cluster *c, const struct engine_access *access, const char **ret_why)
{
	int fault = 0;
	char first[600] = ""; /* what is worst is what is told */
	bool was_open = c->open;
	bool partly = pg_access_keep(c, access, ret_why) == ENGINE_PARTLY;
	pg_access_unmark(c);
	access_revoke(c, &fault, &partly, ret_why);
	if (*ret_why)
		snprintf(first, sizeof first, "%s", *ret_why);
	for (size_t i = 0; i < c->set_count && !c->paused; i++) {
		const char *why = NULL;
		int64_t lost = 0;
		if (set_give(c, &c->sets[i], c->access, &lost, &why) < 0) {
			partly = true;
			if (lost > 0)
				fault = -EBUSY;
			if (!*first)
				snprintf(first, sizeof first, "%s", why ? why : "a shard has no primary at the moment");
		}
	}
	if (fault == 0)
		cluster_open(c, was_open ? 0 : ADMIT_MS); /* one that lags is left to the care */
	if (*first)
		pg_why_set(ret_why, "%s", first);
	else if (fault < 0)
		pg_why_set(ret_why, "access cannot be applied now: %s", strerror(-fault));
	if (fault == 0 && !partly && !c->paused)
		pg_access_mark(c, c->access);
	return fault < 0 ? fault : partly ? ENGINE_PARTLY : 0;
}

/* --- care */

bool pg_admit_is_due(const struct pg_cluster *c)
{
	if (c->paused || c->destroying || c->upgrading || c->restoring ||
	    clock_mono_us() - c->admitted_us < ADMIT_EVERY_US)
		return false;
	bool due = false;
	for (size_t i = 0; i < c->node_count && !due; i++)
		due = c->nodes[i]->shut && c->nodes[i]->pid && !c->nodes[i]->busy;
	return due && (c->open || (c->access && !c->access->hold));
}

void pg_admit_hurry(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->lock);
	c->admitted_us = 0;
	pthread_mutex_unlock(&c->lock);
}

void pg_admit_care(struct pg_cluster *c)
{
	const char *why = NULL;
	if (!pg_admit_is_due(c))
		return;
	pthread_mutex_lock(&c->lock);
	c->admitted_us = clock_mono_us();
	pthread_mutex_unlock(&c->lock);
	if (c->open)
		pg_admit_all(c, 1000);
	else if (pg_access_apply(c, c->access, &why) < 0)
		log_warn("engine: %s: nobody gets in: %s", c->id, why ? why : "");
}
