/* Where the operator keeps tenants' buckets, and the words for roles that do not reach them. */
#include "api/exports/place.h"

#include <errno.h>

const char *const bucket_schemes[PROVIDERS] = {"s3://", "azure://", "gs://"};

struct str bucket_place(const struct service *s)
{
	return str_of(s->export_buckets ? s->export_buckets : "");
}

bool bucket_place_is_at(struct str place, enum provider provider)
{
	return str_starts(place, str_of(bucket_schemes[provider]));
}

bool bucket_place_is_cloud(struct str place)
{
	bool is = false;
	for (unsigned i = 0; i < PROVIDERS; i++)
		is = is || bucket_place_is_at(place, (enum provider)i);
	return is;
}

const char *bucket_role_fault(int result)
{
	return result == -ENOENT   ? "the project has no cloud provider role of this id"
	       : result == -EACCES ? "the cloud provider role is not authorized yet"
	       : result == -EINVAL ? "the cloud provider role is of another provider"
	                           : "the cloud provider role cannot be read";
}
