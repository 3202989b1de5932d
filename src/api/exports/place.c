/* Where the operator keeps tenants' buckets, and who reaches them: the one way to those of exports and of logs. */
#include "api/exports/place.h"

#include "api/provider_access/provider_access.h"

#include <errno.h>

#define ORG_REF "export_bucket_org" /* from a bucket's name to the organization's id */

const char *const bucket_schemes[PROVIDERS] = {"s3://", "azure://", "gs://"};

struct str bucket_place(const struct service *s)
{
	return str_of(s->export_buckets ? s->export_buckets : "");
}

static bool is_at(struct str place, enum provider provider)
{
	return str_starts(place, str_of(bucket_schemes[provider]));
}

bool bucket_place_is_cloud(struct str place)
{
	bool is = false;
	for (unsigned i = 0; i < PROVIDERS; i++)
		is = is || is_at(place, (enum provider)i);
	return is;
}

bool bucket_name_is_good(struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		bool inner = (c == '.' || c == '-' || c == '_') && i > 0 && i + 1 < name.n;
		if (!plain && !inner)
			return false;
	}
	return name.n > 0;
}

static const char *role_fault(int result)
{
	return result == -ENOENT   ? "the project has no cloud provider role of this id"
	       : result == -EACCES ? "the cloud provider role is not authorized yet"
	       : result == -EINVAL ? "the cloud provider role is of another provider"
	                           : "the cloud provider role cannot be read";
}

int bucket_role_find(const struct service *s, struct tx *tx, struct arena *a, struct str group_id, struct str role_id,
                     enum provider provider, const struct provider_role **ret_role, const char **ret_why)
{
	bool only = str_is(bucket_place(s), EXPORTS_BY_ROLES);
	struct provider_role *role = arena_new_of(a, struct provider_role);
	*ret_role = NULL;
	if (!only && !bucket_place_is_cloud(bucket_place(s)))
		return 0;
	int r = provider_role_find(tx, a, group_id, role_id, role);
	if (r == -ENOENT && !only)
		return 0;
	if (r == 0 && role->provider != provider)
		r = -EINVAL;
	if (r < 0)
		*ret_why = role_fault(r);
	else
		*ret_role = role;
	return r;
}

int bucket_owner(struct tx *tx, struct arena *a, struct str name, struct str org_id)
{
	struct str owner;
	int r = tx_ref_get(tx, a, ORG_REF, name, &owner);
	return r == 0 && !str_eq(owner, org_id) ? -EACCES : r;
}

int bucket_take(struct tx *tx, struct str name, struct str org_id)
{
	return tx_ref_put(tx, ORG_REF, name, org_id);
}

int bucket_place_check(const struct service *s, struct arena *a, enum provider provider, struct str name,
                       const char *what, const char **ret_why)
{
	struct str place = bucket_place(s);
	bool cloud = bucket_place_is_cloud(place);
	if (!place.n || str_is(place, EXPORTS_BY_ROLES) || (cloud && !is_at(place, provider))) {
		*ret_why =
		        arena_printf(a, "the operator of this service has configured no place for %s of this provider",
		                     what)
		                .p;
		return -ENOTSUP;
	}
	/* With the operator's key much can be written to: only what is meant for that. */
	size_t skip = cloud ? strlen(bucket_schemes[provider]) : place.n;
	struct str begin = {place.p + skip, place.n - skip};
	if (str_starts(name, begin))
		return 0;
	*ret_why = arena_printf(a, "names of %s begin with \"%.*s\" here", what, STR_ARG(begin)).p;
	return -EACCES;
}

/* Keys of a role, for the object store. */
struct role_keys {
	struct providers *providers;
	struct provider_role role;
	int unset;
};
static _Thread_local char keys_why[PROVIDER_WHY];

static int role_keys_get(void *ctx, struct objects_keys *ret_keys, const char **ret_why)
{
	const struct role_keys *k = ctx;
	struct provider_credentials c;
	int r = provider_credentials_get(k->providers, &k->role, &c, keys_why);
	*ret_why = keys_why;
	if (r == 0)
		*ret_keys = (struct objects_keys){.key_id = c.key_id, .secret = c.secret, .token = c.token};
	return r == -EKEYREJECTED || r == -EPERM ? -EACCES : r == -ENOTSUP ? k->unset : r;
}

struct objects_options bucket_options_by_role(const struct service *s, struct arena *a,
                                              const struct provider_role *role, int unset)
{
	struct role_keys *keys = arena_new_of(a, struct role_keys);
	struct objects_options o = s->export_options[role->provider];
	*keys = (struct role_keys){.providers = s->providers, .role = *role, .unset = unset};
	o.keys = role_keys_get;
	o.keys_ctx = keys;
	return o;
}
