/* The files by which a server lets clients in: HBA and ident files, whom it trusts, and which shapes it refuses. The
 * rules, in order: the service and the other nodes over the unix socket, known by their system user; never the
 * superuser from the network; users with certificates and users of a directory; then everybody with a password, from
 * each listed network, over TLS only. Nothing else matches, so nothing else gets in. A certificate counts by its
 * subject, which the ident file maps to one user.
 *
 * * A node that is shut has its rules beside, and a file without them where the server reads. */
#include "engine/postgres/cluster/hba.h"

#include "base/buf.h"
#include "base/nolink.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/sql/grants.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#define SYSTEM_CAS "/etc/ssl/certs/ca-certificates.crt"
#define SHUT "# Written by Steward; closed to clients.\n"

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

static void own_rules(struct buf *b)
{
	buf_printf(b, "local all %s peer map=engine\nlocal replication %s peer map=engine\n", PG_SUPER, PG_SUPER);
	buf_printf(b, "local postgres \"%s\" peer map=engine\n", PG_SHARD);
	buf_printf(b, "local all \"%s\" peer map=engine\n", PG_RESTORE);
	buf_printf(b, "host all %s,\"%s\",\"%s\" all reject\n", PG_SUPER, PG_SHARD, PG_RESTORE);
}

void pg_hba_make(struct buf *b, const struct engine_access *access)
{
	buf_z(b, "# Written by Steward; changes are lost.\n");
	own_rules(b);
	for (size_t i = 0; access && i < access->user_count; i++)
		if (access->users[i].as) {
			buf_z(b, "local all ");
			word_add(b, access->users[i].name);
			buf_z(b, " peer map=federation\nhost all ");
			word_add(b, access->users[i].name);
			buf_z(b, " all reject\n");
		}
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

void pg_ident_make(struct buf *b, const struct pg_user *u, const struct engine_access *access)
{
	static const char *const roles[] = {PG_SUPER, PG_SHARD, PG_RESTORE};
	uid_t ids[2] = {geteuid(), u->uid};
	buf_z(b, "# Written by Steward; changes are lost.\n");
	for (int i = 0; i < 2; i++) {
		char space[1024];
		struct passwd pw, *found = NULL;
		bool known = (i == 0 || ids[1] != ids[0]) &&
		             getpwuid_r(ids[i], &pw, space, sizeof space, &found) == 0 && found;
		for (size_t k = 0; known && k < sizeof roles / sizeof *roles; k++) {
			buf_z(b, "engine ");
			word_add(b, found->pw_name);
			buf_printf(b, " \"%s\"\n", roles[k]);
		}
		for (size_t k = 0; known && access && k < access->user_count; k++)
			if (access->users[k].as) {
				buf_z(b, "federation ");
				word_add(b, found->pw_name);
				buf_c(b, ' ');
				word_add(b, access->users[k].name);
				buf_c(b, '\n');
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

static int file_write(struct pg_cluster *c, const char *path, const struct buf *b, bool *changed)
{
	char *old = NULL;
	bool same = pg_file_read(path, PG_HBA_MAX, &old) == 0 && str_eq(str_of(old), buf_view(b));
	free(old);
	int r = same ? 0 : pg_file_write(c->user, path, b->p, b->n, true);
	if (r == 0 && !same)
		*changed = true;
	return r;
}

/* --- shut, or open */

bool pg_node_leads(const struct pg_cluster *c, const struct pg_node *n)
{
	for (size_t i = 0; i < c->set_count; i++)
		if (c->sets[i].number == n->set)
			return strcmp(c->sets[i].primary, n->want.name) == 0;
	return false;
}

static void rules_path(const struct pg_cluster *c, const struct pg_node *n, char ret_path[PG_PATH])
{
	pg_node_path(c, n, "conf/pg_hba.rules", ret_path);
}

static void file_path(const struct pg_cluster *c, const struct pg_node *n, char ret_path[PG_PATH])
{
	pg_node_path(c, n, "conf/pg_hba.conf", ret_path);
}

bool pg_admit_is_shut(const struct pg_cluster *c, const struct pg_node *n)
{
	char path[PG_PATH], *text;
	file_path(c, n, path);
	if (pg_file_read(path, PG_HBA_MAX, &text) < 0)
		return true;
	bool shut = str_starts(str_of(text), STR(SHUT));
	free(text);
	return shut;
}

/* The rules for clients. Nodes of older versions have them in pg_hba.conf alone: they are copied out of it once. */
static int rules_read(struct pg_cluster *c, struct pg_node *n, struct buf *b)
{
	char path[PG_PATH], *text;
	rules_path(c, n, path);
	int r = pg_file_read(path, PG_HBA_MAX, &text);
	if (r == -ENOENT && !pg_admit_is_shut(c, n)) {
		file_path(c, n, path);
		r = pg_file_read(path, PG_HBA_MAX, &text);
		if (r == 0) {
			rules_path(c, n, path);
			r = pg_file_write(c->user, path, text, strlen(text), true);
			if (r < 0)
				free(text);
		}
	}
	if (r < 0)
		return r;
	buf_z(b, text);
	free(text);
	return 0;
}

static int file_set(struct pg_cluster *c, struct pg_node *n, const struct buf *rules, bool *ret_changed)
{
	char path[PG_PATH];
	struct buf none = {0};
	file_path(c, n, path);
	if (n->shut) {
		buf_z(&none, SHUT);
		own_rules(&none);
	}
	int r = file_write(c, path, n->shut ? &none : rules, ret_changed);
	buf_free(&none);
	return r;
}

static int rules_write(struct pg_cluster *c, struct pg_node *n, const struct buf *rules, bool *ret_changed)
{
	char path[PG_PATH];
	bool ignored;
	rules_path(c, n, path);
	int r = file_write(c, path, rules, &ignored);
	return r < 0 ? r : file_set(c, n, rules, ret_changed);
}

int pg_admit_set(struct pg_cluster *c, struct pg_node *n, bool shut)
{
	struct buf rules = {0};
	bool changed = false;
	int r = rules_read(c, n, &rules);
	if (r < 0 && shut)
		r = 0;
	if (r == 0) {
		n->shut = shut;
		r = file_set(c, n, &rules, &changed);
	}
	n->admits = n->admits && !changed;
	buf_free(&rules);
	return r;
}

int pg_admit_begin(struct pg_cluster *c, struct pg_node *n)
{
	bool has_all = c->open && !c->paused && pg_node_leads(c, n) && !pg_node_is_standby(c, n);
	return pg_admit_set(c, n, !has_all);
}

/* --- all of a node */

static int refused_write(struct pg_cluster *c, const struct pg_node *n, const struct engine_access *access,
                         bool *ret_changed)
{
	struct buf b = {0};
	char path[PG_PATH];
	bool shard = pg_node_is_shard(c, n); /* users come to the router alone */
	buf_z(&b, "# Written by Steward; changes are lost.\nsteward.refused = '");
	for (size_t i = 0; access && !shard && i < access->refused_count; i++)
		buf_printf(&b, "%s%s", i ? " " : "", access->refused[i]);
	buf_z(&b, "'\n");
	pg_node_path(c, n, "conf/refused.conf", path);
	int r = file_write(c, path, &b, ret_changed);
	buf_free(&b);
	return r;
}

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
		r = file_write(c, path, &view, changed);
	}
	pg_node_path(c, n, "conf/ldap-ca.crt", path);
	view.n = 0;
	if (r == 0 && access && access->ldap && access->ldap->ca) {
		buf_z(&view, access->ldap->ca);
		r = file_write(c, path, &view, changed);
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
	pg_hba_make(&hba, pg_node_is_shard(c, n) ? NULL : access); /* users come to the router alone */
	pg_ident_make(&ident, c->user, access);
	pg_node_path(c, n, "conf/pg_ident.conf", path);
	int r = file_write(c, path, &ident, &changed);
	if (r == 0)
		r = trust_write(c, n, access, &changed);
	if (r == 0)
		r = refused_write(c, n, access, &changed);
	if (r == 0)
		r = rules_write(c, n, &hba, &changed);
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
