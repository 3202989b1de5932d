/* Opening the repositories and the place of export buckets, as the configuration says. */
#include "serve/backups.h"

#include "api/exports/exports.h"
#include "api/snapshots/snapshots.h"
#include "base/pace.h"
#include "repository/setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct repository_settings backup_settings(const struct config *c, const struct service *v)
{
	return (struct repository_settings){.data_dir = c->data,
	                                    .backups = c->backups,
	                                    .regions = c->backup_regions.v,
	                                    .region_count = c->backup_regions.n,
	                                    .quota = (uint64_t)c->backup_quota_mb << 20,
	                                    .parity = c->backup_parity,
	                                    .pace = v->backup_pace,
	                                    .keys = v->data_keys,
	                                    .s3_endpoint = c->s3_endpoint,
	                                    .s3_region = c->s3_region,
	                                    .s3_key_id = c->s3_key_id,
	                                    .s3_secret_file = c->s3_secret_file,
	                                    .s3_ca_file = c->s3_ca_file,
	                                    .azure_endpoint = c->azure_endpoint,
	                                    .azure_account = c->azure_account,
	                                    .azure_key_file = c->azure_key_file,
	                                    .azure_ca_file = c->azure_ca_file};
}

/* Where export buckets lie. The directory is made, so that its path is known from every directory. */
static int exports_open(const struct config *c, struct service *v, struct arena *a,
                        const struct repository_settings *settings)
{
	const char *place = c->export_buckets;
	if (!place || !*place)
		return 0;
	struct objects_options *by_provider = arena_calloc(a, PROVIDERS, sizeof *by_provider);
	by_provider[PROVIDER_AWS] =
	        (struct objects_options){.endpoint = c->s3_endpoint, .region = c->s3_region, .ca_file = c->s3_ca_file};
	by_provider[PROVIDER_AZURE] =
	        (struct objects_options){.endpoint = c->azure_endpoint, .ca_file = c->azure_ca_file};
	by_provider[PROVIDER_GCP] = (struct objects_options){.endpoint = c->gcs_endpoint, .ca_file = c->gcs_ca_file};
	v->export_options = by_provider;
	v->export_buckets = place;
	if (strcmp(place, EXPORTS_BY_ROLES) == 0)
		return 0;
	if (str_starts(str_of(place), STR("s3://")))
		return s3_setup(settings, a, &by_provider[PROVIDER_AWS]);
	if (str_starts(str_of(place), STR("azure://")))
		return azure_setup(settings, a, &by_provider[PROVIDER_AZURE]);
	if (mkdir(place, 0700) < 0 && errno != EEXIST) {
		int error = errno;
		fprintf(stderr, "steward: --export-buckets %s: %s\n", place, strerror(error));
		return -error;
	}
	char *real = realpath(place, NULL);
	v->export_buckets = arena_z(a, str_of(real ? real : place));
	free(real);
	return 0;
}

/* A file system that is not mounted when the service starts must not get another store below its place. */
static int expect(struct service *v, struct tx *reader)
{
	struct arena *own = arena_new();
	tx_begin_read(reader);
	int result = snapshots_expect(reader, own, v->repositories);
	if (result == 0)
		result = backup_figures_load(reader, own);
	tx_end_read(reader);
	tx_rest(reader);
	arena_free(own);
	if (result < 0)
		fprintf(stderr, "steward: the list of snapshots cannot be read: %s\n", strerror(-result));
	return result;
}

int backups_open(const struct config *c, struct service *v, struct tx *reader, struct arena *a)
{
	v->backup_pace = pace_new((uint64_t)c->backup_rate_mb << 20);
	struct repository_settings settings = backup_settings(c, v);
	int result = repositories_setup(&settings, &v->repositories);
	if (result == 0)
		result = expect(v, reader);
	return result < 0 ? result : exports_open(c, v, a, &settings);
}
