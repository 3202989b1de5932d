/* A cluster that is found again after a restart has what was last applied: a mark of that spares its servers to be
 * asked for all of it once more. It is no promise, so it is not flushed: without it everything is applied. */
#include "engine/postgres/cluster/access_mark.h"

#include "base/buf.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/hba.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/sql/grants_sql.h"
#include "engine/postgres/sql/groups_sql.h"
#include "store/seal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

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
	const char *const scripts[] = {pg_grants_sql_version,   pg_grants_sql_clear,     pg_grants_sql_revoke,
	                               pg_grants_sql_roles,     pg_grants_sql_sessions,  pg_grants_sql_prepare,
	                               pg_grants_sql_direct,    pg_grants_sql_strangers, pg_grants_sql_owners,
	                               pg_grants_sql_definers,  pg_grants_sql_surplus,   pg_grants_sql_to_come,
	                               pg_grants_sql_databases, pg_grants_sql_shadows};
	struct buf b = {0};
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
		mark_add(&b, scripts[i]);
	pg_hba_make(&b, access);
	pg_ident_make(&b, c->user, access);
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

void pg_access_mark(const struct pg_cluster *c, const struct engine_access *access)
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
