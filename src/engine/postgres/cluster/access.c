/* Who may connect: the HBA and ident files of every node, from the access list. The rules, in order: the service and
 * the other nodes over the unix socket, known by their system user; never the superuser from the network; users with
 * certificates and users of a directory; then everybody with a password, from each listed network, over TLS only.
 * Nothing else matches, so nothing else gets in. A certificate counts by its subject, which the ident file maps to one
 * user. */
#include "engine/postgres/cluster/access.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/admit.h"
#include "engine/postgres/cluster/audit.h"
#include "engine/postgres/cluster/enforce.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/cluster/quota.h"
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

/* A quoted word of an HBA file: a quote is doubled, and keywords are plain names. */
static void word_add(struct buf *b, const char *word)
{
	buf_c(b, '"');
	for (const char *p = word; *p; p++) {
		if (*p == '"')
			buf_c(b, '"');
		buf_c(b, *p);
	}
	buf_c(b, '"');
}

void pg_access_network(struct buf *b, const struct cidr *network)
{
	char text[IP_TEXT];
	cidr_format(network, text);
	buf_printf(b, "%s", text);
	if (!strchr(text, '/'))
		buf_printf(b, "/%d", network->v4 ? 32 : 128);
}

/* name="value" */
static void option_add(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, " %s=", name);
	word_add(b, value);
}

/* An LDAP URL's parts are percent-encoded, and so many question marks, which separate them, are kept. */
static void encoded_add(struct buf *b, const char *text, unsigned marks)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (isalnum(*p) || strchr("=,.-_()&|!*:", *p) || (*p == '?' && marks && marks--))
			buf_c(b, (char)*p);
		else
			buf_printf(b, "%%%02X", *p);
}

/* An entry whose name holds the user's is bound to at once, and no password but the user's own is needed. Any other
 * is looked up first. */
static void directory_add(struct buf *b, const struct engine_ldap *ldap, const struct engine_user *u)
{
	const char *at = u->ldap_dn ? strstr(u->ldap_dn, u->name) : NULL;
	bool v6 = strchr(ldap->host, ':') != NULL;
	struct buf part = {0};
	if (at) {
		buf_printf(&part, v6 ? "[%s]" : "%s", ldap->host);
		buf_c(&part, 0);
		option_add(b, "ldapserver", part.p);
		buf_printf(b, " ldapport=%u%s", ldap->port, ldap->tls ? " ldapscheme=ldaps" : "");
		part.n = 0;
		buf_add(&part, u->ldap_dn, (size_t)(at - u->ldap_dn));
		buf_c(&part, 0);
		option_add(b, "ldapprefix", part.p);
		option_add(b, "ldapsuffix", at + strlen(u->name));
	} else {
		buf_printf(&part, v6 ? "%s://[%s]:%u/" : "%s://%s:%u/", ldap->tls ? "ldaps" : "ldap", ldap->host,
		           ldap->port);
		encoded_add(&part, u->ldap_dn ? u->ldap_dn : u->ldap_query, u->ldap_dn ? 0 : 3);
		buf_z(&part, u->ldap_dn ? "??base?(objectClass=*)" : "");
		buf_c(&part, 0);
		option_add(b, "ldapurl", part.p);
		if (ldap->bind_dn) {
			option_add(b, "ldapbinddn", ldap->bind_dn);
			option_add(b, "ldapbindpasswd", ldap->bind_password ? ldap->bind_password : "");
		}
	}
	if (ldap->start_tls)
		buf_z(b, " ldaptls=1");
	buf_free(&part);
}

static bool by_directory(const struct engine_access *access, const struct engine_user *u)
{
	return access->ldap && (u->ldap_dn || u->ldap_query);
}

static void rule_begin(struct buf *b, const char *user, const struct cidr *network)
{
	buf_z(b, "hostssl all ");
	word_add(b, user);
	buf_c(b, ' ');
	pg_access_network(b, network);
}

void pg_access_own_rules(struct buf *b)
{
	buf_printf(b, "local all %s peer map=engine\nlocal replication %s peer map=engine\n", PG_SUPER, PG_SUPER);
	buf_printf(b, "local postgres \"%s\" peer map=engine\n", PG_SHARD);
	buf_printf(b, "host all %s,\"%s\" all reject\n", PG_SUPER, PG_SHARD);
}

static void hba_make(struct buf *b, const struct engine_access *access)
{
	buf_z(b, "# Written by Steward; changes are lost.\n");
	pg_access_own_rules(b);
	for (size_t i = 0; access && i < access->user_count; i++)
		for (size_t k = 0; k < access->network_count; k++) {
			const struct engine_user *u = &access->users[i];
			if (u->subject) {
				rule_begin(b, u->name, &access->networks[k]);
				buf_z(b, " cert clientname=DN map=subjects\n");
			} else if (by_directory(access, u)) {
				rule_begin(b, u->name, &access->networks[k]);
				buf_z(b, " ldap");
				directory_add(b, access->ldap, u);
				buf_c(b, '\n');
			}
		}
	for (size_t k = 0; access && k < access->network_count; k++) {
		buf_z(b, "hostssl all all ");
		pg_access_network(b, &access->networks[k]);
		buf_z(b, " scram-sha-256\n");
	}
	/* By the socket, which the service alone can reach: statements of people (observe/ask.c), whose address it has
	 * looked at. */
	if (access)
		buf_printf(b, "local all \"%s\" reject\nlocal all all scram-sha-256\n", PG_SHARD);
}

static void ident_make(struct buf *b, const struct pg_user *u, const struct engine_access *access)
{
	uid_t ids[2] = {geteuid(), u->uid};
	buf_z(b, "# Written by Steward; changes are lost.\n");
	for (int i = 0; i < 2; i++) {
		char space[1024];
		struct passwd pw, *found = NULL;
		if ((i == 0 || ids[1] != ids[0]) && getpwuid_r(ids[i], &pw, space, sizeof space, &found) == 0 &&
		    found) {
			buf_z(b, "engine ");
			word_add(b, found->pw_name);
			buf_printf(b, " %s\n", PG_SUPER);
			buf_z(b, "engine ");
			word_add(b, found->pw_name);
			buf_printf(b, " \"%s\"\n", PG_SHARD);
		}
	}
	for (size_t i = 0; access && i < access->user_count; i++)
		if (access->users[i].subject) {
			buf_z(b, "subjects ");
			word_add(b, access->users[i].subject);
			buf_c(b, ' ');
			word_add(b, access->users[i].name);
			buf_c(b, '\n');
		}
}

int pg_access_file_write(struct pg_cluster *c, const char *path, const struct buf *b, bool *changed)
{
	char *old = NULL;
	bool same = pg_file_read(path, PG_HBA_MAX, &old) == 0 && strlen(old) == b->n && memcmp(old, b->p, b->n) == 0;
	free(old);
	int r = same ? 0 : pg_file_write(c->user, path, b->p, b->n, true);
	if (r == 0 && !same)
		*changed = true;
	return r;
}

#define SYSTEM_CAS "/etc/ssl/certs/ca-certificates.crt"

/* Whom a server trusts: for its clients' certificates, and for the directory's. */
static int trust_write(struct pg_cluster *c, struct pg_node *n, const struct engine_access *access, bool *changed)
{
	const char *cas = access && access->client_cas ? access->client_cas : c->ca_cert;
	struct buf view = {0};
	char path[PG_PATH];
	int r = 0;
	pg_node_path(c, n, "conf/ca.crt", path);
	if (cas) {
		buf_z(&view, cas);
		r = pg_access_file_write(c, path, &view, changed);
	}
	pg_node_path(c, n, "conf/ldap-ca.crt", path);
	view.n = 0;
	if (r == 0 && access && access->ldap && access->ldap->ca) {
		buf_z(&view, access->ldap->ca);
		r = pg_access_file_write(c, path, &view, changed);
	} else if (r == 0 && access && access->ldap) {
		char at[sizeof SYSTEM_CAS + 1], name[NAME_MAX + 1];
		int dir = nolink_parent(AT_FDCWD, path, name);
		if (dir >= 0 && readlinkat(dir, name, at, sizeof at) != sizeof SYSTEM_CAS - 1) {
			unlinkat(dir, name, 0);
			r = symlinkat(SYSTEM_CAS, dir, name) < 0 ? -errno : 0;
		}
		if (dir >= 0)
			close(dir);
		r = dir < 0 ? -errno : r;
	} else if (r == 0) {
		nolink_unlink(path);
	}
	buf_free(&view);
	return r;
}

int pg_access_write(struct pg_cluster *c, struct pg_node *n, const struct engine_access *access, bool *ret_changed)
{
	struct buf hba = {0}, ident = {0};
	char path[PG_PATH];
	bool changed = false;
	hba_make(&hba, pg_node_is_shard(c, n) ? NULL : access); /* users come to the router alone */
	ident_make(&ident, c->user, access);
	pg_node_path(c, n, "conf/pg_ident.conf", path);
	int r = pg_access_file_write(c, path, &ident, &changed);
	if (r == 0)
		r = trust_write(c, n, access, &changed);
	if (r == 0)
		r = pg_refused_write(c, n, access, &changed);
	if (r == 0)
		r = pg_admit_write(c, n, &hba, &changed);
	buf_free(&hba);
	buf_free(&ident);
	if (changed && ret_changed) /* also of what was written before a fault */
		*ret_changed = true;
	return r;
}

int pg_access_first(struct pg_cluster *c, struct pg_node *n)
{
	char path[PG_PATH];
	pg_node_path(c, n, "conf/pg_hba.conf", path);
	if (pg_file_is(path))
		return 0;
	n->shut = true;
	return pg_access_write(c, n, NULL, NULL);
}

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
	for (size_t i = 0; i < from->grant_count; i++)
		grants[i] = (struct engine_grant){z_copy(a, from->grants[i].role), z_copy(a, from->grants[i].database),
		                                  z_copy(a, from->grants[i].collection)};
	to->grants = grants;
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
	struct engine_user *users = arena_new_array(a, struct engine_user, access->user_count + 1);
	struct cidr *networks = arena_new_array(a, struct cidr, access->network_count + 1);
	int r = 0;
	for (size_t i = 0; i < access->user_count; i++)
		if (user_is_possible(&access->users[i])) {
			user_copy(a, &access->users[i], &users[kept->user_count++]);
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

/* --- what is in force
 *
 * A cluster that is found again after a restart has what was last applied: a mark of that spares its servers to be
 * asked for all of it once more. It is no promise, so it is not flushed: without it everything is applied. */

static void mark_path(const struct pg_cluster *c, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s/applied", c->engine->dir, c->id);
}

/* With its length before it, so that no two lists of texts read the same. */
static void mark_add(struct buf *b, const char *text)
{
	if (text)
		buf_printf(b, "%zu:%s", strlen(text), text);
	else
		buf_c(b, '-');
}

static void mark_user(struct buf *b, const struct engine_user *u)
{
	const char *const texts[] = {u->name,    u->auth_database, u->scram, u->subject,
	                             u->ldap_dn, u->ldap_query,    u->audit};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		mark_add(b, texts[i]);
	buf_printf(b, "%d%d%zu", u->ldap, u->super, u->grant_count);
	for (size_t k = 0; k < u->grant_count; k++) {
		mark_add(b, u->grants[k].role);
		mark_add(b, u->grants[k].database);
		mark_add(b, u->grants[k].collection);
	}
}

/* Of all that decides what the servers get: who, from where, whom they trust, and how it is brought to them. */
static void mark_make(const struct pg_cluster *c, const struct engine_access *access, char ret_mark[65])
{
	const char *const scripts[] = {pg_grants_sql_version,  pg_grants_sql_clear,     pg_grants_sql_revoke,
	                               pg_grants_sql_roles,    pg_grants_sql_sessions,  pg_grants_sql_prepare,
	                               pg_grants_sql_direct,   pg_grants_sql_strangers, pg_grants_sql_owners,
	                               pg_grants_sql_definers, pg_grants_sql_surplus,   pg_grants_sql_to_come,
	                               pg_grants_sql_databases};
	struct buf b = {0};
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
		mark_add(&b, scripts[i]);
	hba_make(&b, access);
	ident_make(&b, c->user, access);
	mark_add(&b, "shards closed, connections limited"); /* what is applied beside: other words when that changes */
	mark_add(&b, pg_module_version);
	for (size_t i = 0; i < access->refused_count; i++)
		mark_add(&b, access->refused[i]);
	for (size_t i = 0; i < access->host_name_count; i++)
		mark_add(&b, access->host_names[i]);
	mark_add(&b, c->audit);
	mark_add(&b, c->ca_cert);
	mark_add(&b, access->client_cas);
	mark_add(&b, access->ldap ? access->ldap->ca : NULL);
	for (size_t i = 0; i < access->user_count; i++)
		mark_user(&b, &access->users[i]);
	sha256_hex(buf_view(&b), ret_mark);
	buf_free(&b);
}

bool pg_access_is_applied(const struct pg_cluster *c, const struct engine_access *access)
{
	char path[PG_PATH], want[65], *have;
	mark_path(c, path);
	if (!access || pg_file_read(path, 64, &have) < 0)
		return false;
	mark_make(c, access, want);
	bool same = strcmp(have, want) == 0;
	free(have);
	return same;
}

void pg_access_unmark(const struct pg_cluster *c)
{
	char path[PG_PATH];
	mark_path(c, path);
	nolink_unlink(path);
}

static void access_mark(const struct pg_cluster *c, const struct engine_access *access)
{
	char path[PG_PATH], mark[65];
	mark_path(c, path);
	mark_make(c, access, mark);
	int fd = nolink_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return;
	if (write(fd, mark, 64) != 64)
		nolink_unlink(path);
	close(fd);
}

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
		access_mark(c, c->access);
	return fault < 0 ? fault : partly ? ENGINE_PARTLY : 0;
}
