/* The settings of `steward serve`: flags first, then the environment, then the file of --config, then the defaults. */
#ifndef STEWARD_BASE_CONFIG_H
#define STEWARD_BASE_CONFIG_H

#include "base/ip.h"
#include "base/option.h"

/* One `limit.SET[@SCOPE] = CAPACITY/REFILL` line of the file. Whether the set exists is checked later, by
 * rules_check(). */
struct config_limit {
	struct str set;   /* "S17", or "*" for all */
	struct str scope; /* empty: every instance */
	unsigned capacity, refill;
	const char *where; /* "FILE:LINE: NAME", for messages */
};

#define CONFIG_LIMITS_MAX 10000
#define LIMIT_MAX 1000000000u /* of a capacity or refill */

struct config {
	struct arena *arena;
	const char *data, *listen, *base_url, *store, *limits_url, *engine, *tls_cert, *tls_key, *file, *log_level,
	        *log_format, *record, *clock, *smtp_url, *smtp_from, *smtp_user, *smtp_password_file, *identity_ca,
	        *outbox_ca, *db_scheme, *db_domain, *db_address, *db_ports, *db_cgroup, *proxies, *inner_networks,
	        *org_creation, *federated_sign_in, *name_server, *host_address, *host_name, *export_buckets, *backups,
	        *s3_endpoint, *s3_region, *s3_key_id, *s3_secret_file, *s3_ca_file, *azure_endpoint, *azure_account,
	        *azure_key_file, *azure_ca_file, *gcs_endpoint, *gcs_ca_file, *series_days, *dialects,
	        *provider_aws_arn, *provider_aws_key_id, *provider_aws_secret_file, *provider_aws_region,
	        *provider_aws_endpoint, *provider_azure_app_id, *provider_azure_secret_file, *provider_azure_endpoint,
	        *provider_google_key_file, *provider_google_endpoint, *provider_ca_file, *private_endpoints,
	        *price_book, *metrics_token_file, *keys_aws_endpoint, *keys_azure_endpoint, *keys_google_endpoint,
	        *keys_local, *keys_pkcs11_module, *keys_pkcs11_token, *keys_pkcs11_pin_file, *limits_password_file,
	        *limits_ca, *limits_cert, *limits_key;
	struct option_texts labels, backup_regions, outbox_endpoints, db_versions, keys_pkcs11_keys;
	bool test_control, outbox_private, core_dumps;
	unsigned threads, header_seconds, body_seconds, idle_seconds, send_seconds, connections_max,
	        connections_per_address, store_batch, store_connections, event_retention_days, job_threads,
	        simulated_seconds, orgs_per_caller, orgs_max, buffer_memory, store_check_seconds, db_disk_mb,
	        host_cores, host_memory_gb, host_disk_gb, backup_spool_mb, backup_quota_mb, backup_parity,
	        backup_rate_mb, backup_jobs, backup_drills, index_wait, index_limit, log_export_seconds,
	        billing_lock_days, billing_grace_days, session_hours, session_idle_minutes;
	struct config_limit *limits;
	size_t limit_count;
	/* Derived from the settings above. */
	struct cidr *proxy_list;
	size_t proxy_count;
	struct cidr *inner_list; /* of inner_networks */
	size_t inner_count;
	const char *listen_host; /* without port and brackets */
	unsigned listen_port;
	unsigned db_port_first, db_port_last;
	const char *relay_address; /* of private_endpoints, without ports */
	unsigned relay_port_first, relay_port_last;
	bool log_json, clock_virtual;
};

extern const struct option_row config_options[];
extern const size_t config_option_count;

/* `argv` comes without the names of program and command. Returns 0, OPTIONS_HELP when help was asked for, or negative
 * after a message on stderr. base_url, store, db_address, tls_*, file and record are NULL when not given; threads is
 * resolved to the number of processors. */
must_check int config_parse(int argc, char **argv, struct config *ret_config);
void config_free(struct config *c);

/* Reads the limits of c->file again (SIGHUP), into the arena. When the file is bad it writes a message and returns
 * negative: the caller keeps the old limits. */
must_check int config_limits(const struct config *c, struct arena *a, struct config_limit **ret_limits,
                             size_t *ret_count);

#endif
