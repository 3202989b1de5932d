/* The repositories of a data directory, as the options of a command describe them. */
#ifndef STEWARD_REPOSITORY_SETUP_H
#define STEWARD_REPOSITORY_SETUP_H

#include "repository/repository.h"

struct repository_settings {
	const char *data_dir;
	const char *backups; /* URL or path; NULL: data_dir/backups */
	const char *const *regions;
	size_t region_count;
	uint64_t quota;               /* of a project in a region; 0: none */
	unsigned parity;              /* see repositories_options */
	struct pace *pace;            /* the same */
	const struct data_keys *keys; /* see repositories_options */
	const char *s3_endpoint, *s3_region, *s3_key_id, *s3_secret_file, *s3_ca_file;
	const char *azure_endpoint, *azure_account, *azure_key_file, *azure_ca_file;
};

/* The data directory's key is loaded (store/seal.h). What lies in an object store is first asked when it is used.
 * Secrets are read from the files, or from STEWARD_S3_SECRET and STEWARD_AZURE_KEY; a token of a session from
 * STEWARD_S3_TOKEN. A message on stderr, and negative, when a setting is wrong. */
must_check int repositories_setup(const struct repository_settings *s, struct repositories **ret_all);
/* After a change of the data directory's keys. */
void repositories_keys_renew(struct repositories *all);
/* The same key for other buckets than those of backups. The secret is in the arena. */
must_check int s3_setup(const struct repository_settings *s, struct arena *a, struct objects_options *ret_s3);
must_check int azure_setup(const struct repository_settings *s, struct arena *a, struct objects_options *ret_azure);

#endif
