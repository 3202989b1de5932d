/* Accounts of people, and who may know of them: those who share an organization or a project with them. */
#include "identity/accounts.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"

#include <errno.h>

/* An account that does not exist yet has an id all the same: it follows from the name under the installation's key, so
 * that every invitation shows the same one and nothing has to be kept for people who never come. */
int user_id_of(struct tx *tx, struct arena *a, struct str username, struct str *ret_id)
{
	unsigned char mac[32];
	char text[65];
	int result = tx_ref_get(tx, a, "user_name", username, ret_id);
	if (result != -ENOENT)
		return result;
	seal_mac_lasting("user id", username, mac);
	hex_encode(mac, sizeof mac, text);
	*ret_id = arena_dup(a, (struct str){text, ID_LEN});
	return 0;
}

void user_profile_set(json_t *body, const json_t *profile)
{
	static const char *const fields[] = {"firstName", "lastName", "country", "mobileNumber"};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (json_is_string(json_object_get(profile, fields[i])))
			json_object_set(body, fields[i], json_object_get(profile, fields[i]));
}

bool user_is_proven(struct arena *a, const struct doc *user)
{
	return json_field(doc_json(a, user->body), "lastAuth").n != 0;
}

int user_add(struct tx *tx, struct arena *a, struct str username, const json_t *profile, struct str password_hash,
             struct doc *ret_user)
{
	struct doc d = {.kind = STR("user"), .created_ms = clock_now_ms(), .secret = password_hash, .rev = 1};
	json_t *body = json_new(a);
	int result = user_id_of(tx, a, username, &d.id);
	if (result < 0)
		return result;
	json_put_str(body, "id", d.id);
	json_put_str(body, "username", username);
	user_profile_set(body, profile);
	d.body = json_text(a, body);
	result = tx_insert(tx, &d);
	if (result == 0)
		result = tx_ref_put(tx, "user_name", username, d.id);
	if (result == 0)
		*ret_user = d;
	return result;
}

int user_signed_in(struct tx *tx, struct arena *a, struct str user_id)
{
	return tx_set_field(tx, a, "user", user_id, "lastAuth", json_time(clock_now_ms()));
}

/* What the caller may know. */

bool user_is_caller(const struct call *c, struct str user_id)
{
	return c->caller->kind == PRINCIPAL_USER && str_is(user_id, c->caller->id);
}

/* The organization of a grant's scope, and what the caller has in the scope. -ENOENT: the project is gone. */
int grant_caller(struct call *c, const struct grant_row *row, struct str *ret_org, role_mask *ret_roles)
{
	struct doc project;
	int result = row->in_org ? 0 : tx_get(c->tx, c->arena, "project", row->id, &project);
	if (result < 0)
		return result;
	*ret_org = row->in_org ? row->id : project.parent;
	*ret_roles = row->in_org ? principal_org_roles(c->caller, row->id)
	                         : principal_group_roles(c->caller, project.parent, row->id);
	return 0;
}

/* Leaves the grants of places that the caller is in. */
int grants_shared(struct call *c, struct grant_row *rows, size_t *count)
{
	size_t kept = 0;
	for (size_t i = 0; i < *count; i++) {
		struct str org;
		role_mask roles;
		int result = grant_caller(c, &rows[i], &org, &roles);
		if (result < 0 && result != -ENOENT)
			return result;
		if (result == 0 && (roles || principal_org_roles(c->caller, org)))
			rows[kept++] = rows[i];
	}
	*count = kept;
	return 0;
}

int grants_known(struct call *c, struct str user_id, struct grant_row **ret_rows, size_t *ret_count)
{
	int result = grants_of(c->tx, c->arena, user_id, ret_rows, ret_count);
	return result < 0 || user_is_caller(c, user_id) ? result : grants_shared(c, *ret_rows, ret_count);
}

int user_is_visible(struct call *c, struct str user_id, bool *ret_visible)
{
	struct grant_row *rows;
	size_t count = 0;
	int result = grants_known(c, user_id, &rows, &count);
	*ret_visible = count > 0 || user_is_caller(c, user_id);
	return result;
}
