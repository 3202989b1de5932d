/* Buckets that logs are put into. Where a name leads to is the operator's to say, as for exports of snapshots
 * (--export-buckets): to a directory, to buckets at an S3 service that the operator has keys of, or to the tenants'
 * own, which their roles open. Where no role does, nobody proves to own a bucket, and its name belongs to the
 * organization that used it first. */
#include "api/log_export/targets.h"

#include "api/exports/exports.h"
#include "api/kit/verbs.h"
#include "base/id.h"

#include <errno.h>
#include <stdio.h>

#define NAME_BYTES 200
#define PREFIX_BYTES 300
#define PREFIX_PARTS 10

static enum provider provider_of(enum target_type type)
{
	return type == TARGET_AZURE ? PROVIDER_AZURE : type == TARGET_GCS ? PROVIDER_GCP : PROVIDER_AWS;
}

/* Containers of one account are apart from those of another. */
struct str log_bucket_name(const json_t *config)
{
	return json_field(config,
	                  json_object_get(config, "storageContainerName") ? "storageContainerName" : "bucketName");
}

struct str log_bucket_role_id(const json_t *config)
{
	return json_field(config, json_object_get(config, "roleId") ? "roleId" : "iamRoleId");
}

static const char *bucket_field(enum target_type type)
{
	return type == TARGET_AZURE ? "storageContainerName" : "bucketName";
}

static const char *role_field(enum target_type type)
{
	return type == TARGET_S3 ? "iamRoleId" : "roleId";
}

/* The name that the operator's directory, and the list of owners, have for it. */
static struct str place_name(struct arena *a, const json_t *config)
{
	struct str account = json_field(config, "storageAccountName"), name = log_bucket_name(config);
	return account.n ? arena_printf(a, "%.*s.%.*s", STR_ARG(account), STR_ARG(name)) : name;
}

/* --- roles */

static int way_find(const struct service *s, struct tx *tx, struct arena *a, struct str group_id, const json_t *config,
                    enum target_type type, const struct provider_role **ret_role, const char **ret_why)
{
	return bucket_role_find(s, tx, a, group_id, log_bucket_role_id(config), provider_of(type), ret_role, ret_why);
}

int log_bucket_role(const struct service *s, struct tx *tx, struct arena *a, const struct target *t,
                    const struct provider_role **ret_role, const char **ret_why)
{
	bool by_role = false;
	int r = way_find(s, tx, a, t->group_id, t->config, t->type, ret_role, ret_why);
	if (r == 0 && !*ret_role)
		r = target_by_role(tx, a, t->id, &by_role);
	if (r < 0 || !by_role || *ret_role)
		return r;
	*ret_why = "it was set up with a role of the project, and is not reached by one any more: set it up again";
	return -EACCES;
}

/* --- a new one */

static bool is_name(struct str name)
{
	return name.n <= NAME_BYTES && bucket_name_is_good(name);
}

/* It becomes a part of a host's name. */
static bool is_account(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!((name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= '0' && name.p[i] <= '9')))
			return false;
	return name.n >= 3 && name.n <= 24;
}

static bool is_part(struct str part)
{
	for (size_t i = 0; i < part.n; i++) {
		char c = part.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
		      c == '_' || c == '=' || c == '-'))
			return false;
	}
	return part.n && !str_is(part, ".") && !str_is(part, "..");
}

/* Without slashes at its ends; it may be empty. */
static struct str prefix_of(const json_t *config)
{
	struct str prefix = json_field(config, "prefixPath");
	while (prefix.n && prefix.p[0] == '/')
		prefix = (struct str){prefix.p + 1, prefix.n - 1};
	while (prefix.n && prefix.p[prefix.n - 1] == '/')
		prefix.n--;
	return prefix;
}

static bool prefix_is_good(const json_t *config)
{
	struct str rest = prefix_of(config), part;
	unsigned parts = 0;
	if (rest.n > PREFIX_BYTES)
		return false;
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, '/', &part, &rest);
		if (!is_part(part) || ++parts > PREFIX_PARTS)
			return false;
	}
	return true;
}

static int texts_check(struct call *c, const json_t *config, enum target_type type)
{
	struct faults faults = {.count = 0};
	if (!is_name(log_bucket_name(config)))
		faults_add(&faults, c->arena, str_of(bucket_field(type)),
		           "must have lower-case letters, digits and, between them, . _ and - only");
	if (type == TARGET_AZURE && !is_account(json_field(config, "storageAccountName")))
		faults_add(&faults, c->arena, STR("storageAccountName"),
		           "must have from 3 to 24 lower-case letters and digits");
	if (!prefix_is_good(config))
		faults_add(
		        &faults, c->arena, STR("prefixPath"),
		        "must be at most %d names of letters, digits, . _ = and -, with / between them, and %d bytes",
		        PREFIX_PARTS, PREFIX_BYTES);
	if (json_is_string(json_object_get(config, "kmsKey")))
		faults_add(&faults, c->arena, STR("kmsKey"),
		           "must be left out: encryption is left to the bucket. Set the key as its default encryption");
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int owner_take(struct call *c, const json_t *config, enum target_type type)
{
	/* At the operator's own account a container is the same, whichever account a tenant names. */
	struct str name = bucket_place_is_cloud(bucket_place(c->service)) ? log_bucket_name(config)
	                                                                  : place_name(c->arena, config);
	int r = bucket_owner(c->tx, c->arena, name, c->org.id);
	if (r == -ENOENT)
		return bucket_take(c->tx, name, c->org.id);
	if (r == -EACCES)
		return call_fail_field(c, 400, "LOG_EXPORT_BUCKET_NOT_ACCESSIBLE", bucket_field(type),
		                       "the bucket \"%.*s\" is another organization's.",
		                       STR_ARG(log_bucket_name(config)));
	return r;
}

int log_bucket_check(struct call *c, json_t *config)
{
	enum target_type type = target_type_of(config);
	const struct provider_role *role = NULL;
	const char *why = NULL;
	int r = texts_check(c, config, type);
	if (r == 0)
		r = way_find(c->service, c->tx, c->arena, c->group.id, config, type, &role, &why);
	if (r == -ENOENT || r == -EACCES || r == -EINVAL)
		return call_fail_field(c, 400, "CLOUD_PROVIDER_ACCESS_ROLE_NOT_AUTHORIZED", role_field(type), "%s.",
		                       why);
	c->noted = (void *)(uintptr_t)role;
	if (r < 0 || role)
		return r;
	if (bucket_place_check(c->service, c->arena, provider_of(type), log_bucket_name(config), "buckets", &why) < 0)
		return call_fail_field(c, 400, "LOG_EXPORT_BUCKET_NOT_ACCESSIBLE", bucket_field(type), "%s.", why);
	return owner_take(c, config, type);
}

/* --- opening */

static struct str url_of(struct arena *a, const struct target *t)
{
	return arena_printf(a, "%s%.*s", bucket_schemes[provider_of(t->type)], STR_ARG(log_bucket_name(t->config)));
}

static enum outcome outcome_of(int r)
{
	static const int passing[] = {EHOSTUNREACH, ETIMEDOUT, EBUSY,  EPROTO, ENOSPC,
	                              EDQUOT,       EIO,       ENOMEM, EMFILE, ENFILE};
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		if (r == -passing[i])
			return OUTCOME_AWAY;
	return OUTCOME_REFUSED;
}

static int failed(struct arena *a, int r, enum outcome *ret_outcome, const char **ret_why)
{
	*ret_outcome = outcome_of(r);
	*ret_why = arena_z(a, str_of(objects_why()));
	return r;
}

/* The role first, so that what is wrong with it is told apart from what is wrong with the bucket. */
static int role_prove(const struct service *s, struct arena *a, const struct provider_role *role,
                      enum outcome *ret_outcome, const char **ret_why)
{
	struct provider_credentials c;
	char why[PROVIDER_WHY];
	int r = provider_credentials_get(s->providers, role, &c, why);
	if (r == 0) {
		provider_credentials_free(&c);
		return 0;
	}
	*ret_outcome = r == -EHOSTUNREACH || r == -ETIMEDOUT || r == -EPROTO ? OUTCOME_AWAY : OUTCOME_ROLE;
	*ret_why = arena_z(a, str_of(why));
	return r;
}

static int role_bucket_open(const struct shipment *to, struct objects **ret_bucket, enum outcome *ret_outcome,
                            const char **ret_why)
{
	const struct service *s = to->service;
	const struct provider_role *role = to->role;
	const struct target *t = &to->target;
	struct arena *a = to->arena;
	struct objects_options o = bucket_options_by_role(s, a, role, -EHOSTUNREACH);
	if (t->type == TARGET_AZURE)
		o.account = arena_z(a, json_field(t->config, "storageAccountName"));
	o.stops = to->stops;
	o.stops_ctx = to->stops_ctx;
	o.url = url_of(a, t).p;
	int r = role_prove(s, a, role, ret_outcome, ret_why);
	if (r < 0)
		return r;
	r = objects_open(&o, ret_bucket);
	if (r == -EACCES) /* its keys may have been taken back before their time */
		provider_forget(s->providers, role->id);
	return r < 0 ? failed(a, r, ret_outcome, ret_why) : 0;
}

int log_bucket_open(const struct shipment *to, struct objects **ret_bucket, enum outcome *ret_outcome,
                    const char **ret_why)
{
	const struct service *s = to->service;
	const struct target *t = &to->target;
	struct arena *a = to->arena;
	struct objects_options o = {.url = NULL};
	struct str place = bucket_place(s);
	if (to->role)
		return role_bucket_open(to, ret_bucket, ret_outcome, ret_why);
	*ret_outcome = OUTCOME_REFUSED;
	if (bucket_place_check(s, a, provider_of(t->type), log_bucket_name(t->config), "buckets", ret_why) < 0)
		return -EACCES;
	if (bucket_place_is_cloud(place)) {
		/* The operator's key is of the operator's own account. */
		o = s->export_options[provider_of(t->type)];
		o.url = url_of(a, t).p;
	} else {
		struct str name = place_name(a, t->config);
		o.url = arena_printf(a, "%.*s/%.*s", STR_ARG(place), STR_ARG(name)).p;
	}
	o.stops = to->stops;
	o.stops_ctx = to->stops_ctx;
	int r = objects_open(&o, ret_bucket);
	return r < 0 ? failed(a, r, ret_outcome, ret_why) : 0;
}

const char *log_bucket_object(struct arena *a, const struct target *t, const char *below)
{
	struct str prefix = prefix_of(t->config);
	return arena_printf(a, "%.*s%s%s", STR_ARG(prefix), prefix.n ? "/" : "", below).p;
}

int log_bucket_prove(struct arena *a, const struct target *t, struct objects *bucket, enum outcome *ret_outcome,
                     const char **ret_why)
{
	struct id id = id_new();
	const char *name = log_bucket_object(a, t, arena_printf(a, "access-%s", id.z).p);
	static const char text[] =
	        "Written to see whether this bucket can be written to.\n"; /* a full one takes nothing */
	int r = objects_put_bytes(bucket, name, text, sizeof text - 1);
	if (r == 0)
		r = objects_delete(bucket, name);
	return r < 0 ? failed(a, r, ret_outcome, ret_why) : 0;
}
