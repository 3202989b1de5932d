/* Who may connect to the databases of a project, and do what there: the access list and the database users that are in
 * force, as the engines take them. */
#include "api/clusters/clusters.h"

#include "api/database_roles/database_roles.h"
#include "api/database_users/database_users.h"
#include "api/database_users/user_security.h"
#include "api/database_users/x509.h"
#include "api/kit/temporary.h"
#include "api/kit/verbs.h"
#include "base/ip.h"
#include "base/log.h"

static int networks_load(struct tx *tx, struct arena *a, struct str group_id, struct engine_access *access)
{
	struct doc *docs;
	size_t count;
	int result = tx_list_all(tx, a, "access_entry", group_id, &docs, &count);
	if (result < 0)
		return result;
	struct cidr *networks = arena_new_array(a, struct cidr, count + 1);
	access->networks = networks;
	for (size_t i = 0; i < count; i++)
		/* Security groups of a provider mean nothing on this host. */
		if (!temporary_is_over(a, &docs[i]) && cidr_parse(docs[i].name, &networks[access->network_count]))
			access->network_count++;
	return 0;
}

int access_list_covers(struct tx *tx, struct arena *a, struct str group_id, const struct ip *address, bool *ret_covered)
{
	struct engine_access access = {0};
	int result = networks_load(tx, a, group_id, &access);
	bool covered = false;
	for (size_t i = 0; result == 0 && !covered && i < access.network_count; i++)
		covered = cidr_contains(&access.networks[i], address);
	*ret_covered = covered;
	return result;
}

static int user_load(struct arena *a, const struct doc *doc, const json_t *document, const json_t *roles,
                     struct engine_user *ret_user)
{
	struct engine_user user = {.ldap = str_is(json_field(document, "ldapAuthType"), "USER")};
	struct engine_grant *grants;
	struct str verifier, subject = x509_subject(a, doc, document);
	int result = doc_unseal(a, doc, &verifier);
	if (result < 0) {
		log_error("database user %.*s: its verifier cannot be read (error %d)", STR_ARG(doc->id), result);
		return result;
	}
	str_copy(doc->name, user.name, sizeof user.name);
	str_copy(json_field(document, "databaseName"), user.auth_database, sizeof user.auth_database);
	user.scram = verifier.n ? arena_z(a, verifier) : NULL;
	user.subject = subject.n ? arena_z(a, subject) : NULL;
	database_roles_flatten(a, roles, json_object_get(document, "roles"), &grants, &user.grant_count);
	user.grants = grants;
	*ret_user = user;
	return 0;
}

static int users_load(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
                      struct engine_access *access)
{
	struct doc *docs;
	size_t count;
	json_t *roles;
	int result = tx_list_all(tx, a, DATABASE_USER, group_id, &docs, &count);
	if (result == 0)
		result = database_roles_load(tx, a, group_id, &roles);
	if (result < 0)
		return result;
	struct engine_user *users = arena_new_array(a, struct engine_user, count + 1);
	access->users = users;
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *document = doc_json(a, docs[i].body);
		if (!database_user_logs_in(document) || !database_user_in_scope(document, cluster_name) ||
		    json_time_is_over(document, TEMPORARY_FIELD))
			continue;
		result = user_load(a, &docs[i], document, roles, &users[access->user_count]);
		access->user_count += result == 0;
	}
	return result < 0 ? result : user_security_join(tx, a, group_id, users, access);
}

static int access_load(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
                       struct engine_access *access)
{
	int result = networks_load(tx, a, group_id, access);
	return result < 0 ? result : users_load(tx, a, group_id, cluster_name, access);
}

const struct cluster_part database_users_part = {.access = access_load};

static const struct job_kind kinds[] = {
        {.name = LDAP_VERIFY_JOB, .step = ldap_verify_step, .failed = ldap_verify_failed, .attempts = 3},
        {.name = USER_END_JOB, .save = user_end_save},
};
const struct job_kinds database_users_jobs = JOB_KINDS(kinds);
