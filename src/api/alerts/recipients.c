/* The people whom notifications name: by role in the project or organization, by team, by name. */
#include "api/alerts/rules.h"

#include "identity/accounts.h"

#include <errno.h>

#define PEOPLE_MAX 200 /* who are told of one alert by one notification */
#define BATCH 100

/* One notification. */
struct telling {
	struct tx *tx;
	struct arena *arena;
	recipient_tell *tell;
	void *ctx;
	bool mail, sms;
	json_t *told; /* ids */
};

static int user_tell(struct telling *t, struct str id)
{
	struct doc d;
	if (json_has(t->told, id) || json_array_size(t->told) >= PEOPLE_MAX)
		return 0;
	json_add_str(t->told, id);
	int r = tx_get(t->tx, t->arena, "user", id, &d);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	const json_t *body = doc_json(t->arena, d.body);
	struct str address = json_field(body, "username"), number = json_field(body, "mobileNumber");
	if (t->mail && memchr(address.p ? address.p : "", '@', address.n))
		r = t->tell(t->ctx, address, STR_NONE);
	if (r == 0 && t->sms && number.n)
		r = t->tell(t->ctx, STR_NONE, number);
	return r;
}

/* Users with one of the roles in a scope; all of its users where no role is named. */
static int scope_tell(struct telling *t, bool in_org, struct str scope, role_mask wanted)
{
	int r = 0;
	size_t count = BATCH;
	for (int64_t at = 0; r == 0 && count == BATCH; at += BATCH) {
		struct grant_row *rows;
		r = grants_in(t->tx, t->arena, GRANTEE_USER, in_org, scope, at, BATCH, &rows, &count);
		for (size_t i = 0; r == 0 && i < count; i++)
			if (!wanted || rows[i].roles & wanted)
				r = user_tell(t, rows[i].id);
	}
	return r;
}

static int team_tell(struct telling *t, struct str team_id)
{
	struct doc *docs;
	size_t count;
	int r = tx_list_all(t->tx, t->arena, "team_user", team_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = user_tell(t, docs[i].name);
	return r;
}

static int teams_tell(struct telling *t, struct str group_id, role_mask wanted)
{
	struct grant_row *rows;
	size_t count;
	int r = grants_in(t->tx, t->arena, GRANTEE_TEAM, false, group_id, 0, BATCH, &rows, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!wanted || rows[i].roles & wanted)
			r = team_tell(t, rows[i].id);
	return r;
}

/* Users of the organization whose roles there give them one of the roles in its projects: its owners. */
static int owners_tell(struct telling *t, struct str org_id, role_mask wanted)
{
	struct doc *docs;
	size_t count = BATCH;
	int r = 0;
	for (int64_t at = 0; r == 0 && count == BATCH; at += BATCH) {
		r = tx_list(t->tx, t->arena, "org_project_user", org_id, at, BATCH, &docs, &count);
		for (size_t i = 0; r == 0 && i < count; i++) {
			role_mask in_org = 0;
			r = grant_get(t->tx, t->arena, docs[i].name, org_id, &in_org);
			role_mask here = roles_least(roles_in_projects(in_org));
			if (r == 0 && (!wanted || here & wanted))
				r = user_tell(t, docs[i].name);
		}
	}
	return r;
}

/* A team of the organization that the project was in before is told nothing of it. */
static int own_team_tell(struct telling *t, struct str org_id, struct str team_id)
{
	struct doc team;
	int r = tx_get(t->tx, t->arena, "team", team_id, &team);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return str_eq(team.parent, org_id) ? team_tell(t, team_id) : 0;
}

/* Who has left the organization is told nothing of it. */
static int named_tell(struct telling *t, struct str org_id, struct str username)
{
	struct str id;
	role_mask roles = 0;
	int r = tx_ref_get(t->tx, t->arena, "user_name", arena_lower(t->arena, username), &id);
	if (r == 0)
		r = grant_get(t->tx, t->arena, id, org_id, &roles);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return roles ? user_tell(t, id) : 0;
}

int recipients_each(struct tx *tx, struct arena *a, const json_t *n, struct str org_id, struct str group_id,
                    recipient_tell *tell, void *ctx)
{
	const json_t *mail = json_object_get(n, "emailEnabled");
	struct telling t = {.tx = tx,
	                    .arena = a,
	                    .tell = tell,
	                    .ctx = ctx,
	                    .mail = !mail || json_is_true(mail),
	                    .sms = json_flag(n, "smsEnabled"),
	                    .told = json_keep(a, json_array())};
	struct str type = json_field(n, "typeName");
	const json_t *roles = json_object_get(n, "roles");
	if (str_is(type, "EMAIL"))
		return tell(ctx, json_field(n, "emailAddress"), STR_NONE);
	if (str_is(type, "SMS"))
		return tell(ctx, STR_NONE, json_field(n, "mobileNumber"));
	if (!t.mail && !t.sms)
		return 0;
	if (str_is(type, "USER"))
		return named_tell(&t, org_id, json_field(n, "username"));
	if (str_is(type, "TEAM"))
		return own_team_tell(&t, org_id, json_field(n, "teamId"));
	if (str_is(type, "ORG"))
		return scope_tell(&t, true, org_id, roles_from_json(roles, true));
	role_mask wanted = roles_from_json(roles, false);
	int r = scope_tell(&t, false, group_id, wanted);
	if (r == 0)
		r = teams_tell(&t, group_id, wanted);
	return r < 0 ? r : owners_tell(&t, org_id, wanted);
}
