/* The overview. What is known of all clusters comes from the table (roster.h), so that searching, sorting and counting
 * read nothing; nodes, disks and jobs are looked at for the clusters of the page alone. */
#include "api/console/overview.h"

#include "api/console/overview_rows.h"
#include "api/kit/verbs.h"
#include "gate/dispatch.h"

#include <errno.h>
#include <pthread.h>

/* As the gate asks of paths that name them. */
static int scope_check(struct call *c, const char *kind, struct str id, const char *code)
{
	struct doc d;
	if (!id.n)
		return 0;
	int r = id_is_valid(id) ? tx_get(c->tx, c->arena, kind, id, &d) : -ENOENT;
	if (r == -ENOENT)
		return call_fail_about(c, 404, code, id, "There is no %s %.*s.", kind, STR_ARG(id));
	if (r < 0)
		return r;
	bool is_org = strcmp(kind, "org") == 0;
	role_mask roles = principal_org_roles(c->caller, is_org ? id : d.parent);
	if (!is_org)
		roles |= principal_group_roles(c->caller, d.parent, id);
	/* Who has a role in a project alone is shown that, of its organization. */
	for (size_t i = 0; is_org && !roles && i < c->caller->grant_count; i++)
		roles |= c->caller->grants[i].roles & ~role_org_mask;
	return roles ? 0
	             : call_fail(c, 403, "USER_UNAUTHORIZED", "The caller is not authorized to access this resource.");
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
		r = scope_check(c, "org", l.org_id, "ORG_NOT_FOUND");
	if (r == 0)
		r = scope_check(c, "project", l.group_id, "GROUP_NOT_FOUND");
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
