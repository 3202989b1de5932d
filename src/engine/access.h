/* Access, which every engine has: who may connect to the databases, and what each may do there. */
#ifndef STEWARD_ENGINE_ACCESS_H
#define STEWARD_ENGINE_ACCESS_H

#include "base/ip.h"
#include "base/str.h"

struct buf;
struct engine;

/* Who may connect and do what, for all clusters of a project. */
struct engine_grant {
	const char *role;       /* "readWrite"; or of a custom role, flattened, an action: FIND INSERT UPDATE REMOVE */
	const char *database;   /* or "" for all */
	const char *collection; /* table, or "" for all */
};

struct engine_user {
	char name[256], auth_database[64];
	const char *scram;   /* SCRAM-SHA-256 verifier, or NULL */
	const char *subject; /* X.509 subject, or NULL */
	/* Its entry in the directory, where it is known by that: the name of the entry, or a query that finds it
	 * ("ou=people,dc=example,dc=org??sub?(uid=ann)"). Both NULL: not known by a directory. */
	const char *ldap_dn, *ldap_query;
	const char *audit; /* classes for this user; NULL: those of everybody */
	bool ldap, super;
	const char *as; /* another user, whose rights are all that it has; the engine's own, NULL from everybody else */
	const struct engine_grant *grants;
	size_t grant_count;
};

/* The directory that checks passwords of users who have none here. */
struct engine_ldap {
	const char *host; /* a name or an address */
	unsigned port;
	bool tls, start_tls;
	const char *bind_dn, *bind_password; /* who looks entries up; or NULL */
	const char *ca;                      /* PEM; NULL: the system's authorities */
};

struct engine_access {
	const char *client_cas;         /* PEM: who may sign the certificates of users; or NULL */
	const struct engine_ldap *ldap; /* or NULL */
	const struct engine_user *users;
	size_t user_count;
	const struct cidr *networks; /* the access list */
	size_t network_count;
	/* Names beside the nodes' own that lead to them: their certificates stand for these too. */
	const char *const *host_names;
	size_t host_name_count;
	/* Query shapes that the databases refuse: FINGERPRINT, or FINGERPRINT=QUERYID for an id that is known to be of
	 * the shape; see engine/shapes.h. */
	const char *const *refused;
	size_t refused_count;
	/* No server that starts takes clients yet: whoever gives it has not promised to come with every later
	 * change. */
	bool hold;
};

struct engine_access_ops {
	/* engine_access.hold is kept: until access is given without it, nobody gets in, and then everybody who may. */
	bool holds;
	/* Users, grants and access list in force when it returns; or ENGINE_PARTLY. A failure: perhaps nothing of it
	 * is. No server takes clients, whenever and why ever it starts, before it has what was last in force. Blocks,
	 * one call at a time for a cluster. */
	int (*apply)(struct engine *e, const char *cluster_id, const struct engine_access *access,
	             const char **ret_why);
};

/* --- common.c */
/* Names that no user of a database can have, whichever engine runs it; and the rule in words, after "must not". */
#define ENGINE_NAMES_RESERVED "be public, none or postgres, nor begin with /, pg_ or steward"
bool engine_name_is_reserved(struct str name);

/* What follows the hosts in a connection string. `addresses`: of the hosts, in their order, with commas; or empty. */
void engine_connect_tail(struct buf *b, struct str addresses);

#endif
