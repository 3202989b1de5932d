/* The overview. What is known of all clusters comes from the table (roster.h), so that searching, sorting and counting
 * read nothing; nodes, disks and jobs are looked at for the clusters of the page alone. */
#include "api/console/overview.h"

#include "api/console/overview_rows.h"
#include "api/kit/verbs.h"
#include "gate/dispatch.h"

#include <errno.h>
#include <pthread.h>

/* Whether the caller has a role in a project of the organization: who has no more is shown that of it. */
static int has_project_of(struct call *c, struct str org_id)
{
	const struct principal *p = c->caller;
	int found = 0;
	for (size_t i = 0; found == 0 && i < p->grant_count; i++) {
		struct doc d;
		if (!(p->grants[i].roles & ~role_org_mask))
			continue;
		int r = tx_get(c->tx, c->arena, "project", str_of(p->grants[i].scope.z), &d);
		if (r < 0 && r != -ENOENT)
			return r;
		found = r == 0 && str_eq(d.parent, org_id);
	}
	return found;
}

/* What is not there and what is another's are answered alike. */
static int scope_check(struct call *c, bool is_org, struct str id)
{
	const char *kind = is_org ? "org" : "project";
	struct doc d;
	if (!id.n)
		return 0;
	int r = id_is_valid(id) ? tx_get(c->tx, c->arena, kind, id, &d) : -ENOENT;
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0) {
		struct str org_id = is_org ? id : d.parent;
		if (principal_org_roles(c->caller, org_id) || (!is_org && principal_group_roles(c->caller, org_id, id)))
			return 0;
		if (principal_is_shut_out(c->caller, org_id))
			return call_fail(c, 403, "USER_UNAUTHORIZED",
			                 "The caller is not authorized to access this resource.");
		r = is_org ? has_project_of(c, id) : 0;
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return call_fail_about(c, 404, is_org ? "ORG_NOT_FOUND" : "GROUP_NOT_FOUND", id, "There is no %s %.*s.", kind,
	                       STR_ARG(id));
}

static int overview(struct call *c)
{
	struct looking l = {.call = c,
	                    .arena = c->arena,
	                    .clusters = catalog_op("listClusters"),
	                    .org_events = catalog_op("listOrgEvents"),
	                    .group_events = catalog_op("listGroupEvents"),
	                    .org_id = call_query(c, "orgId"),
	                    .group_id = call_query(c, "groupId"),
	                    .query = str_trim(call_query(c, "q")),
	                    .only_needing = call_query_bool(c, "attention", false)};
	int r = overview_order(&l);
	if (r == 0)
		r = scope_check(c, true, l.org_id);
	if (r == 0)
		r = scope_check(c, false, l.group_id);
	if (r == 0)
		r = overview_find(&l);
	if (r == 0)
		r = overview_look(&l);
	if (r < 0)
		return r;
	c->content_type = "application/json";
	return overview_write(&l);
}

/* --- its row */

static const struct schema id_schema = {.type = TYPE_STRING, .pattern = -1, .min_length = ID_LEN, .max_length = ID_LEN};
static const struct schema text_schema = {.type = TYPE_STRING, .pattern = -1, .max_length = 100};
static const struct schema flag_schema = {.type = TYPE_BOOLEAN, .pattern = -1};
static const struct param params[] = {
        {.name = "orgId", .description = "Only clusters of this organization", .schema = &id_schema},
        {.name = "groupId", .description = "Only clusters of this project", .schema = &id_schema},
        {.name = "q", .description = "Only clusters whose name, or whose project's, has this", .schema = &text_schema},
        {.name = "sort", .description = "The order; a minus before it turns it around", .schema = &text_schema},
        {.name = "attention", .description = "Only clusters that need it", .schema = &flag_schema},
};

static struct op row;
static pthread_once_t row_once = PTHREAD_ONCE_INIT;

/* Much like the list of all clusters. */
static void row_make(void)
{
	row = *catalog_op("listClusterDetails");
	row.id = "getConsoleOverview";
	row.path = OVERVIEW_PATH;
	row.handler = overview;
	row.slow = true;
	row.paginated = true;
	row.query_params = params;
	row.query_param_count = sizeof params / sizeof *params;
}

void overview_serve(struct service *s, struct request *r)
{
	pthread_once(&row_once, row_make);
	dispatch_as(s, r, &row);
}
