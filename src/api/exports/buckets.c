/* Export buckets: names under which a project's exports are kept. Where a name leads to is the operator's to say: to a
 * directory, or to a bucket of S3, Azure or Google. There the project's role gives the keys, where the bucket names one
 * that it has, else the operator. With the operator's keys nobody proves to be a bucket's owner, so a name belongs to
 * the organization that used it first; a bucket that was added by a role has proved nothing about the place of that
 * name, and is reached by a role alone. Nothing in a bucket is ever read. */
#include "api/exports/buckets.h"

#include "api/exports/exports.h"
#include "api/exports/place.h"
#include "api/kit/verbs.h"
#include "api/snapshots/snapshots.h"
#include "base/id.h"

#include <errno.h>
#include <stdio.h>

#define PROBE EXPORTS_BELOW "access-%s"
#define BY_ROLE "byRole" /* of a stored bucket: that is how it was added */
#define AZURE_HOST ".blob.core.windows.net"
#define NO_TENANT "00000000-0000-0000-0000-000000000000"

static bool is_aws(const json_t *bucket)
{
	return str_is(json_field(bucket, "cloudProvider"), "AWS");
}

/* The role that a bucket names. */
static const char *role_field(const json_t *bucket)
{
	return is_aws(bucket) ? "iamRoleId" : "roleId";
}

static struct str role_id_of(const json_t *bucket)
{
	return json_field(bucket, role_field(bucket));
}

static enum provider provider_of(const json_t *bucket)
{
	enum provider provider = PROVIDER_AWS;
	(void)!provider_of_name(json_field(bucket, "cloudProvider"), &provider);
	return provider;
}

int bucket_role(const struct service *s, struct tx *tx, struct arena *a, struct str group_id, const json_t *bucket,
                const struct provider_role **ret_role, const char **ret_why)
{
	int r = bucket_role_find(s, tx, a, group_id, role_id_of(bucket), provider_of(bucket), ret_role, ret_why);
	if (r < 0 || *ret_role || !json_flag(bucket, BY_ROLE))
		return r;
	*ret_why = "the bucket was added by a role of the project, and is not reached by one any more: remove it "
	           "and add it again";
	return -EACCES;
}

/* https://ACCOUNT.blob.core.windows.net, and maybe the container. Only the account's name is taken from it: nothing
 * that a tenant says becomes an address. */
static bool account_of(const json_t *bucket, struct str *ret_account)
{
	struct str url = json_field(bucket, "serviceUrl"), scheme = STR("https://"), rest, host, path;
	if (!str_starts(url, scheme))
		return false;
	rest = (struct str){url.p + scheme.n, url.n - scheme.n};
	str_cut(rest, '/', &host, &path);
	if (!str_ends(host, STR(AZURE_HOST)) || (path.n && !str_eq(path, json_field(bucket, "bucketName"))))
		return false;
	*ret_account = (struct str){host.p, host.n - strlen(AZURE_HOST)};
	for (size_t i = 0; i < ret_account->n; i++)
		if (!((host.p[i] >= 'a' && host.p[i] <= 'z') || (host.p[i] >= '0' && host.p[i] <= '9')))
			return false;
	return ret_account->n >= 3 && ret_account->n <= 24;
}

static int objects_at(struct arena *a, struct objects_options *o, struct str url, struct objects **ret_bucket,
                      const char **ret_why)
{
	o->own = EXPORTS_BELOW;
	o->url = url.p;
	int r = objects_open(o, ret_bucket);
	if (r < 0)
		*ret_why = arena_z(a, str_of(objects_why()));
	return r;
}

/* A tenant's own bucket, by its role. */
static int role_bucket_open(const struct service *s, struct arena *a, const json_t *bucket,
                            const struct provider_role *role, struct objects **ret_bucket, const char **ret_why)
{
	struct objects_options o = bucket_options_by_role(s, a, role, -ENOTSUP);
	struct str name = json_field(bucket, "bucketName"), account;
	if (role->provider == PROVIDER_AZURE) {
		if (!account_of(bucket, &account)) {
			*ret_why = "its serviceUrl names no storage account";
			return -EINVAL;
		}
		o.account = arena_z(a, account);
	}
	return objects_at(a, &o, arena_printf(a, "%s%.*s", bucket_schemes[role->provider], STR_ARG(name)), ret_bucket,
	                  ret_why);
}

int bucket_open(const struct service *s, struct arena *a, const json_t *bucket, const struct provider_role *role,
                struct objects **ret_bucket, const char **ret_why)
{
	struct str name = json_field(bucket, "bucketName"), place = bucket_place(s);
	struct objects_options o = {.url = NULL};
	enum provider provider = provider_of(bucket);
	if (role)
		return role_bucket_open(s, a, bucket, role, ret_bucket, ret_why);
	int r = bucket_place_check(s, a, provider, name, "export buckets", ret_why);
	if (r < 0)
		return r;
	if (!bucket_place_is_cloud(place))
		return objects_at(a, &o, arena_printf(a, "%.*s/%.*s", STR_ARG(place), STR_ARG(name)), ret_bucket,
		                  ret_why);
	o = s->export_options[provider];
	return objects_at(a, &o, arena_printf(a, "%s%.*s", bucket_schemes[provider], STR_ARG(name)), ret_bucket,
	                  ret_why);
}

/* --- a new one */

/* Whether it can be written to is found out by doing so. */
static int access_prove(const struct service *s, struct arena *a, const json_t *bucket,
                        const struct provider_role *role, const char **ret_why)
{
	struct objects *o;
	struct id id = id_new();
	char probe[64];
	int r = bucket_open(s, a, bucket, role, &o, ret_why);
	if (r < 0)
		return r;
	snprintf(probe, sizeof probe, PROBE, arena_z(a, id_str(&id)));
	r = objects_put_bytes(o, probe, "", 0);
	if (r == 0)
		r = objects_delete(o, probe);
	if (r < 0)
		*ret_why = arena_z(a, str_of(objects_why()));
	objects_close(o);
	return r;
}

/* 0: nobody uses the name, or this organization does. */
static int owner_check(struct call *c, struct tx *tx, struct str name, bool *ret_free)
{
	int r = bucket_owner(tx, c->arena, name, c->org.id);
	*ret_free = r == -ENOENT;
	if (r == -EACCES)
		return call_fail_field(c, 400, "EXPORT_BUCKET_NOT_ACCESSIBLE", "bucketName",
		                       "the bucket \"%.*s\" is another organization's.", STR_ARG(name));
	return r == -ENOENT ? 0 : r;
}

/* The role by which the bucket is reached, or NULL: then its name must be free. */
static int way_check(struct call *c, struct tx *tx, const json_t *bucket, const struct provider_role **ret_role,
                     bool *ret_free)
{
	const char *why = NULL;
	*ret_free = false;
	int r = bucket_role(c->service, tx, c->arena, c->group.id, bucket, ret_role, &why);
	if (r == -ENOENT || r == -EACCES || r == -EINVAL)
		return call_fail_field(c, 400, "CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED", role_field(bucket), "%s.",
		                       why);
	return r < 0 || *ret_role ? r : owner_check(c, tx, json_field(bucket, "bucketName"), ret_free);
}

static int way_look(struct call *c, struct tx *reader)
{
	const struct provider_role *role;
	bool is_free;
	tx_begin_read(reader);
	int r = way_check(c, reader, c->body, &role, &is_free);
	tx_end_read(reader);
	c->prepared = (void *)(uintptr_t)role;
	return r;
}

int export_buckets_prepare(struct call *c)
{
	struct str name = json_field(c->body, "bucketName");
	const char *why = NULL;
	if (!name.n)
		return call_fail_fault(c, STR("bucketName"), "is required");
	if (!bucket_name_is_good(name))
		return call_fail_fault(c, STR("bucketName"),
		                       "must have lower-case letters, digits and, between them, . _ and - only");
	/* What is another's is not touched. */
	int r = prepare_with_reader(c, way_look);
	if (r < 0)
		return r;
	struct str account;
	if (c->prepared && provider_of(c->body) == PROVIDER_AZURE && !account_of(c->body, &account))
		return call_fail_fault(c, STR("serviceUrl"),
		                       "must be https://ACCOUNT" AZURE_HOST
		                       ", with the container's name after it or nothing");
	r = access_prove(c->service, c->arena, c->body, c->prepared, &why);
	if (r == 0)
		return 0;
	return call_fail_field(c, 400, "EXPORT_BUCKET_NOT_ACCESSIBLE", "bucketName",
	                       "the bucket \"%.*s\" cannot be written to: %s.", STR_ARG(name), why ? why : "no access");
}

static int bucket_create(struct call *c, json_t *document)
{
	struct str name = json_field(document, "bucketName");
	const struct provider_role *role;
	bool is_free;
	int r = way_check(c, c->tx, document, &role, &is_free);
	if (r == 0 && !role != !c->prepared)
		r = call_fail_field(c, 409, "CLOUD_PROVIDER_ACCESS_ROLE_CHANGED", role_field(document),
		                    "the role was changed at the same time. Try again.");
	if (r == 0 && is_free)
		r = bucket_take(c->tx, name, c->org.id);
	if (role)
		json_put(document, BY_ROLE, json_true());
	if (is_aws(document))
		json_default(document, "requirePrivateNetworking", json_false());
	if (str_is(json_field(document, "cloudProvider"), "AZURE"))
		json_default(document, "tenantId", json_string(NO_TENANT));
	return r;
}

static int bucket_update(struct call *c, const struct doc *old, json_t *document)
{
	return is_aws(document) ? 0 : call_fail_fault(c, STR("requirePrivateNetworking"), "is for buckets at AWS only");
}

/* --- looking */

/* Version 2023-01-01 knows those at AWS only. */
static bool bucket_hides(struct call *c, const struct doc *d)
{
	return c->version->sunset && !is_aws(doc_json(c->arena, d->body));
}

#define PROVIDERS_FIELDS "iamRoleId|region|requirePrivateNetworking|roleId|serviceUrl|tenantId"

/* Of a list or a bucket of whichever provider the reference shows what all of them have. Whole answers have what the
 * forms of the providers add. */
static int bucket_view(struct call *c, const struct doc *d, json_t *entity)
{
	const struct schema *form = !c->is_list          ? c->version->response
	                            : c->version->sunset ? schema_find(STR("DiskBackupSnapshotAWSExportBucketResponse"))
	                                                 : resource_backup_export_bucket.schema;
	bool whole = form == resource_backup_export_bucket.schema && answer_is_whole(c);
	const char *name;
	json_t *value;
	void *next;
	json_object_foreach_safe(entity, next, name, value)
	{
		if (!schema_field(form, str_of(name)) && !(whole && str_is_one_of(PROVIDERS_FIELDS, str_of(name))))
			json_object_del(entity, name);
	}
	return 0;
}

/* --- the end */

static int in_use(struct call *c, const struct doc *d, const char *by, struct str cluster)
{
	return call_fail_about(c, 409, "EXPORT_BUCKET_IN_USE", d->name,
	                       "The export bucket \"%.*s\" is in use by %s of the cluster \"%.*s\".", STR_ARG(d->name),
	                       by, STR_ARG(cluster));
}

static int bucket_remove(struct call *c, const struct doc *d)
{
	struct doc *lines, schedule;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, LINE_KIND, c->group.id, &lines, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct str name = json_field(doc_json(c->arena, lines[i].body), "clusterName");
		bool used = false;
		r = exports_use(c->tx, c->arena, lines[i].id, STR_NONE, d->id, &used);
		if (r == 0 && used)
			return in_use(c, d, "an export", name);
		if (r == 0)
			r = tx_get(c->tx, c->arena, SCHEDULE_KIND, lines[i].id, &schedule);
		json_t *body = r == 0 ? doc_json(c->arena, schedule.body) : NULL;
		bool named = r == 0 && str_eq(json_field(json_object_get(body, "export"), "exportBucketId"), d->id);
		if (named && json_flag(body, "autoExportEnabled"))
			return in_use(c, d, "the backup schedule", name);
		if (named) { /* one that is turned off would be wrong with its next change */
			json_object_del(body, "export");
			schedule.body = json_text(c->arena, body);
			r = doc_put(c->tx, &schedule);
		}
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

/* --- for provider access */

static int role_uses_list(struct tx *tx, struct arena *a, struct str group_id, struct role_uses *uses)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, BUCKET_KIND, group_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		role_use_add(uses, role_id_of(doc_json(a, docs[i].body)),
		             arena_printf(a, "the export bucket \"%.*s\"", STR_ARG(docs[i].name)));
	return r;
}

const struct role_user export_buckets_role_user = {.feature = "EXPORT_SNAPSHOT", .list = role_uses_list};

const struct resource_hooks export_bucket_hooks = {.view = bucket_view,
                                                   .create = bucket_create,
                                                   .update = bucket_update,
                                                   .remove = bucket_remove,
                                                   .hides = bucket_hides};
