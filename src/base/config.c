/* The options of `steward serve`. The table is the only list of them. */
#include "base/config.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>

#define AT(member) offsetof(struct config, member)
#define LABEL_TEXT_MAX 64
#define HOST_TEXT_MAX 54

const struct option_row config_options[] = {
        {"data", 0, OPTION_TEXT, AT(data), "./data", "DIR",
         "Directory of everything that is kept: store, keys, certificates."},
        {"listen", 0, OPTION_ADDRESS, AT(listen), "127.0.0.1:8443", "HOST:PORT",
         "Address to serve HTTPS on. Port 0 picks a free one."},
        {"base-url", 0, OPTION_URL, AT(base_url), NULL, "URL",
         "How callers reach the service, used in links: https://HOST[:PORT]. Without it, made from --listen."},
        {"dialects", 0, OPTION_TEXT, AT(dialects), NULL, "NAME[,NAME...]",
         "Other services in whose words the API is served too, below their own paths: atlas; or none. Without it, "
         "all."},
        {"store", 0, OPTION_TEXT, AT(store), NULL, "URL",
         "Where documents are kept: sqlite:PATH, or postgresql://... for several nodes that share one. Without it, in "
         "--data."},
        {"engine", 0, OPTION_CHOICE, AT(engine), NULL, "NAME",
         "What runs the databases: postgres (processes on this host) or simulated (none at all). Without it, the one "
         "that "
         "the data directory was last used with; at first postgres where it is installed and the clock is real.",
         "simulated|postgres"},
        {"simulated-seconds", 0, OPTION_NUMBER, AT(simulated_seconds), "3", "N",
         "How long the simulated engine takes to make a cluster; other changes take less.", NULL, 0, 86400},
        {"db-scheme", 0, OPTION_TEXT, AT(db_scheme), "postgresql", "WORD",
         "Scheme of the clusters' connection strings."},
        {"db-version", 0, OPTION_TEXTS, AT(db_versions), NULL, "NAME=MAJOR",
         "A version that requests may ask for by another name, as 8.0=17: such a cluster shows the name, and runs the "
         "major version. May be given several times. A name that a cluster has must stay."},
        {"db-domain", 0, OPTION_TEXT, AT(db_domain), "steward.local", "NAME", "Domain of the clusters' host names."},
        {"db-address", 0, OPTION_TEXT, AT(db_address), NULL, "ADDRESS",
         "IPv4 address of this host where the clusters' databases listen, each on a port of --db-ports, to be reached "
         "from "
         "other hosts. Without it, each on a loopback address of its own. Nodes stay where they were made."},
        {"db-ports", 0, OPTION_TEXT, AT(db_ports), "20000-29999", "FROM-TO",
         "Ports of --db-address; also of 127.0.0.1 where there is no loopback network."},
        {"db-cgroup", 0, OPTION_TEXT, AT(db_cgroup), "/sys/fs/cgroup/steward", "DIR",
         "Directory of a cgroup (v2) below which each cluster gets its own, with CPU and memory by its size. Where it "
         "is not "
         "there or may not be written, and with an empty value, clusters are not bounded in these."},
        {"db-disk-mb", 0, OPTION_NUMBER, AT(db_disk_mb), "1024", "N",
         "Megabytes of this host's disk that a node may take for each GB of its diskSizeGB. 0: no bound.", NULL, 0,
         1048576},
        {"private-endpoints", 0, OPTION_TEXT, AT(private_endpoints), NULL, "ADDRESS[:FROM-TO]",
         "IPv4 address of this host, used for nothing else, where private endpoints lead to the clusters: each cluster "
         "gets "
         "a port from FROM on (1024-65535). Databases see their connections come from it. Without it, real clusters "
         "have no private endpoints."},
        {"backups", 0, OPTION_TEXT, AT(backups), NULL, "URL",
         "Where backups are kept: a directory (a path or file:///DIRECTORY), or s3://BUCKET/PREFIX. Without it, in "
         "DIR/backups."},
        {"backups-region", 0, OPTION_TEXTS, AT(backup_regions), NULL, "REGION=URL",
         "Where the backups of one region are kept, as US_EAST_1=s3://BUCKET/PREFIX. May be given several times."},
        {"backup-spool", 0, OPTION_NUMBER, AT(backup_spool_mb), "4096", "MB",
         "Most log of one cluster that waits on this host for a repository that is away or slow. Beyond it, it is "
         "given up, and what can be restored begins anew.",
         NULL, 16, 16777216},
        {"backup-quota", 0, OPTION_NUMBER, AT(backup_quota_mb), "0", "MB",
         "Most that the backups of one project take in a region's repository. Beyond it nothing is added: snapshots "
         "fail, and log waits for space. 0: no bound.",
         NULL, 0, 2147483647},
        {"backup-parity", 0, OPTION_NUMBER, AT(backup_parity), "8", "PACKS",
         "How many packs of snapshots share a second copy, by which any one of them is made again; it takes that part "
         "of "
         "their room. 1: each has its own; 0: none has one.",
         NULL, 0, 16},
        {"backup-rate", 0, OPTION_NUMBER, AT(backup_rate_mb), "0", "MB",
         "Most that snapshots, restores, exports, copies, downloads and drills of this host read or write of the "
         "databases' files in a "
         "second, in all; projects take turns. 0: no bound.",
         NULL, 0, 1048576},
        {"backup-jobs", 0, OPTION_NUMBER, AT(backup_jobs), "0", "NUMBER",
         "Most snapshots, restores, exports, copies and drills that this host does at once. 0: as many as "
         "--job-threads lets.",
         NULL, 0, 64},
        {"backup-drills", 0, OPTION_NUMBER, AT(backup_drills), "7", "DAYS",
         "How often a snapshot of each cluster is restored into a server that is thrown away, to prove it; 0: never.",
         NULL, 0, 365},
        {"index-limit", 0, OPTION_NUMBER, AT(index_limit), "86400", "SECONDS",
         "How long the build of an index may take in all, before it is given up.", NULL, 1, 31622400},
        {"index-wait", 0, OPTION_NUMBER, AT(index_wait), "60", "SECONDS",
         "How long the build of an index waits for each transaction of others before it gives up.", NULL, 1, 86400},
        {"log-export-seconds", 0, OPTION_NUMBER, AT(log_export_seconds), "60", "SECONDS",
         "How long lines of the databases' logs wait, at most, before they are put into a bucket. Services get theirs "
         "within ten seconds.",
         NULL, 1, 3600},
        {"s3-endpoint", 0, OPTION_TEXT, AT(s3_endpoint), NULL, "URL",
         "Service that has the buckets of --backups: https://HOST[:PORT]. Without it, Amazon's of --s3-region."},
        {"s3-region", 0, OPTION_TEXT, AT(s3_region), NULL, "NAME",
         "Region in the signatures of S3. Without it, us-east-1."},
        {"s3-key-id", 0, OPTION_TEXT, AT(s3_key_id), NULL, "ID", "Access key id for the buckets."},
        {"s3-secret-file", 0, OPTION_FILE, AT(s3_secret_file), NULL, "FILE",
         "File that holds the secret of --s3-key-id. Without it, STEWARD_S3_SECRET in the environment."},
        {"s3-ca-file", 0, OPTION_FILE, AT(s3_ca_file), NULL, "FILE",
         "Certificates (PEM) that --s3-endpoint is trusted by. Without it, the system's."},
        {"azure-endpoint", 0, OPTION_TEXT, AT(azure_endpoint), NULL, "URL",
         "Service that has the containers of --backups and of exports: https://HOST[:PORT], with the storage account "
         "in "
         "the path. Without it, Azure's own, ACCOUNT.blob.core.windows.net."},
        {"azure-account", 0, OPTION_TEXT, AT(azure_account), NULL, "NAME", "Storage account of the containers."},
        {"azure-key-file", 0, OPTION_FILE, AT(azure_key_file), NULL, "FILE",
         "File that holds the key of --azure-account. Without it, STEWARD_AZURE_KEY in the environment."},
        {"azure-ca-file", 0, OPTION_FILE, AT(azure_ca_file), NULL, "FILE",
         "Certificates (PEM) that --azure-endpoint is trusted by. Without it, the system's."},
        {"gcs-endpoint", 0, OPTION_TEXT, AT(gcs_endpoint), NULL, "URL",
         "Service that speaks Google Cloud Storage's JSON interface, for tenants' buckets there: https://HOST[:PORT]. "
         "Without it, Google's."},
        {"gcs-ca-file", 0, OPTION_FILE, AT(gcs_ca_file), NULL, "FILE",
         "Certificates (PEM) that --gcs-endpoint is trusted by. Without it, the system's."},
        {"export-buckets", 0, OPTION_TEXT, AT(export_buckets), NULL, "DIR",
         "Where snapshots are exported to: a directory, whose directories are the buckets (several hosts need one that "
         "they share), s3://PREFIX or azure://PREFIX for buckets of the S3 service, or containers of the storage "
         "account, "
         "whose names begin with PREFIX, or roles for tenants' own buckets by their roles at the provider. Without it, "
         "nothing is exported."},
        {"price-book", 0, OPTION_FILE, AT(price_book), NULL, "FILE",
         "What things cost, in JSON. Without it, the price book that ships. One that was changed holds from the next "
         "day "
         "in UTC on."},
        {"billing-lock-days", 0, OPTION_NUMBER, AT(billing_lock_days), "0", "DAYS",
         "How long after a failed payment an organization is locked: it can then read and delete, and make nothing "
         "new. 0: never.",
         NULL, 0, 3650},
        {"billing-grace-days", 0, OPTION_NUMBER, AT(billing_grace_days), "14", "DAYS",
         "How long the clusters of a locked organization go on before they are paused.", NULL, 0, 3650},
        {"provider-aws-arn", 0, OPTION_TEXT, AT(provider_aws_arn), NULL, "ARN",
         "The service's own user or role at AWS, which tenants let assume their roles."},
        {"provider-aws-key-id", 0, OPTION_TEXT, AT(provider_aws_key_id), NULL, "ID",
         "Access key id of --provider-aws-arn."},
        {"provider-aws-secret-file", 0, OPTION_FILE, AT(provider_aws_secret_file), NULL, "FILE",
         "File that holds the secret of that key. Without it, STEWARD_PROVIDER_AWS_SECRET in the environment."},
        {"provider-aws-region", 0, OPTION_TEXT, AT(provider_aws_region), NULL, "NAME",
         "Region whose STS is called. Without it, us-east-1."},
        {"provider-aws-endpoint", 0, OPTION_TEXT, AT(provider_aws_endpoint), NULL, "URL",
         "Service that speaks STS: https://HOST[:PORT]. Without it, Amazon's of --provider-aws-region."},
        {"provider-azure-app-id", 0, OPTION_TEXT, AT(provider_azure_app_id), NULL, "UUID",
         "The service's own application at Azure, of which tenants have a service principal in their directory."},
        {"provider-azure-secret-file", 0, OPTION_FILE, AT(provider_azure_secret_file), NULL, "FILE",
         "File that holds its secret. Without it, STEWARD_PROVIDER_AZURE_SECRET in the environment."},
        {"provider-azure-endpoint", 0, OPTION_TEXT, AT(provider_azure_endpoint), NULL, "URL",
         "Service that gives tokens: https://HOST[:PORT]. Without it, https://login.microsoftonline.com."},
        {"provider-google-key-file", 0, OPTION_FILE, AT(provider_google_key_file), NULL, "FILE",
         "Key (JSON) of the service's own account at Google, in whose project each role gets an account."},
        {"provider-google-endpoint", 0, OPTION_TEXT, AT(provider_google_endpoint), NULL, "URL",
         "Service that speaks IAM and IAM Credentials: https://HOST[:PORT]. Without it, Google's. Tokens come from the "
         "key file's token_uri."},
        {"provider-ca-file", 0, OPTION_FILE, AT(provider_ca_file), NULL, "FILE",
         "Certificates (PEM) that the services of --provider-*-endpoint are trusted by. Without it, the system's."},
        {"keys-aws-endpoint", 0, OPTION_TEXT, AT(keys_aws_endpoint), NULL, "URL",
         "Service that speaks AWS KMS for encryption at rest: https://HOST[:PORT]. Without it, Amazon's of the key's "
         "region."},
        {"keys-azure-endpoint", 0, OPTION_TEXT, AT(keys_azure_endpoint), NULL, "URL",
         "Service that speaks Azure Key Vault: https://HOST[:PORT]. Without it, the vault that the key's identifier "
         "names, at Azure."},
        {"keys-google-endpoint", 0, OPTION_TEXT, AT(keys_google_endpoint), NULL, "URL",
         "Service that speaks Google Cloud KMS, and gives tokens at /token: https://HOST[:PORT]. Without it, "
         "Google's."},
        {"keys-local", 0, OPTION_TEXT, AT(keys_local), NULL, "DIR",
         "Directory with keys of the operator's own for encryption at rest: NAME.key is the AWS key local/NAME."},
        {"keys-pkcs11-module", 0, OPTION_FILE, AT(keys_pkcs11_module), NULL, "FILE",
         "Module (.so) of PKCS #11 for a token whose keys wrap for encryption at rest, as those of --keys-local do: an "
         "HSM, a smart card. steward-token loads it."},
        {"keys-pkcs11-token", 0, OPTION_TEXT, AT(keys_pkcs11_token), NULL, "NAME",
         "The token's label or serial number."},
        {"keys-pkcs11-key", 0, OPTION_TEXTS, AT(keys_pkcs11_keys), NULL, "LABEL",
         "Label of an AES key on the token, which projects name as the AWS key pkcs11/LABEL. May be given several "
         "times."},
        {"keys-pkcs11-pin-file", 0, OPTION_FILE, AT(keys_pkcs11_pin_file), NULL, "FILE",
         "File that holds the token's PIN. Without it, STEWARD_KEYS_PKCS11_PIN in the environment. One that the token "
         "has refused is not tried again before it is changed."},
        {"job-threads", 0, OPTION_NUMBER, AT(job_threads), "4", "N",
         "Jobs of one organization that run at once; a quarter more may run for others.", NULL, 1, 64},
        {"tls-cert", 0, OPTION_FILE, AT(tls_cert), NULL, "FILE",
         "Certificate chain (PEM). Without it, the first start makes a CA and a certificate in DIR/tls."},
        {"tls-key", 0, OPTION_FILE, AT(tls_key), NULL, "FILE", "Private key (PEM) of --tls-cert."},
        {"config", 0, OPTION_FILE, AT(file), NULL, "FILE",
         "File with \"name = value\" lines, names as here, and limits (see below)."},
        {"log-level", 0, OPTION_CHOICE, AT(log_level), "info", "LEVEL", "error, warn, info or debug.",
         "error|warn|info|debug"},
        {"log-format", 0, OPTION_CHOICE, AT(log_format), "text", "FORMAT", "text for people, json for machines.",
         "text|json"},
        {"record", 0, OPTION_TEXT, AT(record), NULL, "FILE",
         "Append every exchange to FILE as a line of JSON, with secrets taken out."},
        {"metrics-token-file", 0, OPTION_FILE, AT(metrics_token_file), NULL, "FILE",
         "File that holds the token which /metrics is read with, as a bearer token. Without it, metrics.token in "
         "--data, "
         "which the first start makes."},
        {"smtp-url", 0, OPTION_TEXT, AT(smtp_url), NULL, "URL",
         "Mail server for invitations and alerts: smtp://HOST[:PORT] or smtps://HOST[:PORT]. Without it, "
         "`steward invitation-link` makes links of invitations."},
        {"smtp-from", 0, OPTION_TEXT, AT(smtp_from), NULL, "ADDRESS", "Sender of mail. Needed with --smtp-url."},
        {"smtp-user", 0, OPTION_TEXT, AT(smtp_user), NULL, "NAME",
         "User name at the mail server. TLS is demanded then."},
        {"smtp-password-file", 0, OPTION_FILE, AT(smtp_password_file), NULL, "FILE",
         "File that holds the password of --smtp-user."},
        {"outbox-private", 0, OPTION_SWITCH, AT(outbox_private), NULL, NULL,
         "Let webhooks of tenants use http, and let all hosts that tenants name (of webhooks, identity providers, LDAP "
         "directories) have private and loopback addresses."},
        {"inner-networks", 0, OPTION_TEXT, AT(inner_networks), NULL, "CIDR[,CIDR...]",
         "Networks of your own that hosts which tenants name may be in, such as those of an LDAP directory or an "
         "identity provider. Without it, public addresses only."},
        {"outbox-endpoint", 0, OPTION_TEXTS, AT(outbox_endpoints), NULL, "NAME=URL",
         "Where messages of a service are sent instead of its own address: slack, pagerduty, opsgenie, victorops, "
         "datadog, newrelic, or one of their regions, as datadog-eu; sms is a gateway for text messages, billing a "
         "service that charges for invoices. May be given several times."},
        {"outbox-ca", 0, OPTION_FILE, AT(outbox_ca), NULL, "FILE",
         "Certificates (PEM) that receivers of webhooks and messages are trusted by. Without it, the system's."},
        {"identity-ca", 0, OPTION_FILE, AT(identity_ca), NULL, "FILE",
         "Certificates (PEM) to trust beside the system's when identity providers are asked for keys and tokens."},
        {"clock", 0, OPTION_CHOICE, AT(clock), "real", "KIND",
         "real, or virtual: time stands still until the test control moves it.", "real|virtual"},
        {"core-dumps", 0, OPTION_SWITCH, AT(core_dumps), NULL, NULL,
         "Let core dumps of the service and its databases hold their memory, which has secrets and data. For "
         "debugging."},
        {"test-control", 0, OPTION_SWITCH, AT(test_control), NULL, NULL,
         "Open /api/test/ to everyone: reset, seed, clock, faults. For tests only."},
        {"threads", 0, OPTION_NUMBER, AT(threads), NULL, "N", "Threads that serve. Without it, one for each processor.",
         NULL, 1, 64},
        {"header-seconds", 0, OPTION_NUMBER, AT(header_seconds), "10", "N",
         "Most time for a TLS handshake and a whole header block.", NULL, 1, 3600},
        {"body-seconds", 0, OPTION_NUMBER, AT(body_seconds), "30", "N", "Most time for a whole request body.", NULL, 1,
         3600},
        {"idle-seconds", 0, OPTION_NUMBER, AT(idle_seconds), "75", "N", "How long an idle connection is kept.", NULL, 1,
         86400},
        {"send-seconds", 0, OPTION_NUMBER, AT(send_seconds), "30", "N",
         "A reader that takes nothing for so long is cut off.", NULL, 1, 3600},
        {"connections-max", 0, OPTION_NUMBER, AT(connections_max), "10000", "N", "Connections in all.", NULL, 1,
         1000000},
        {"connections-per-address", 0, OPTION_NUMBER, AT(connections_per_address), "2000", "N",
         "Connections from one address.", NULL, 1, 1000000},
        {"buffer-memory", 0, OPTION_NUMBER, AT(buffer_memory), "256", "MB",
         "Most memory for requests that are not complete and answers that are not taken, of all connections together;"
         " beyond it calls get 503.",
         NULL, 8, 1048576},
        {"proxies", 0, OPTION_TEXT, AT(proxies), NULL, "CIDR[,CIDR...]",
         "Load balancers that pass connections on with a PROXY header (version 1 or 2), which says whose they are. From"
         " these addresses nothing else is taken."},
        {"limits", 0, OPTION_TEXT, AT(limits_url), NULL, "URL",
         "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// with TLS, keeps the rate limits of several "
         "nodes; "
         "without it each limits by itself."},
        {"limits-password-file", 0, OPTION_FILE, AT(limits_password_file), NULL, "FILE",
         "File that holds the password at Redis, instead of --limits."},
        {"limits-ca", 0, OPTION_FILE, AT(limits_ca), NULL, "FILE",
         "Certificates (PEM) that Redis is trusted by. Without it, the system's."},
        {"limits-cert", 0, OPTION_FILE, AT(limits_cert), NULL, "FILE",
         "Certificate chain (PEM) to show to a Redis that wants one."},
        {"limits-key", 0, OPTION_FILE, AT(limits_key), NULL, "FILE", "Private key (PEM) of --limits-cert."},
        {"host-address", 0, OPTION_ADDRESS, AT(host_address), NULL, "HOST:PORT",
         "Where the other processes that share a PostgreSQL store reach this one. Without it, the host of --listen and"
         " a free port."},
        {"host-name", 0, OPTION_TEXT, AT(host_name), NULL, "NAME",
         "Name of this host among those that share the store. Without it, the machine's."},
        {"label", 0, OPTION_TEXTS, AT(labels), NULL, "NAME=VALUE",
         "Label of this host: provider, region and zone decide which clusters it takes. May be given several times."},
        {"host-cores", 0, OPTION_NUMBER, AT(host_cores), "0", "N",
         "Cores that the sizes of all clusters on this host may add up to; 0: no bound.", NULL, 0, 1000000},
        {"host-memory-gb", 0, OPTION_NUMBER, AT(host_memory_gb), "0", "N", "The same for memory.", NULL, 0, 1000000},
        {"host-disk-gb", 0, OPTION_NUMBER, AT(host_disk_gb), "0", "N", "The same for disk.", NULL, 0, 1000000000},
        {"store-batch", 0, OPTION_NUMBER, AT(store_batch), "256", "N",
         "Writes that may share one flush to disk; 1 is one flush per write.", NULL, 1, 100000},
        {"store-connections", 0, OPTION_NUMBER, AT(store_connections), "12", "N",
         "Calls that may ask a PostgreSQL store at once, each on a connection of its own.", NULL, 1, 500},
        {"org-creation", 0, OPTION_CHOICE, AT(org_creation), "owners", "WHO",
         "Who may make organizations: owners (of one), any (caller) or none.", "owners|any|none"},
        {"orgs-per-caller", 0, OPTION_NUMBER, AT(orgs_per_caller), "100", "N",
         "Organizations that a caller's organization may have made, and those that it made, together.", NULL, 1,
         1000000},
        {"orgs-max", 0, OPTION_NUMBER, AT(orgs_max), "10000", "N", "Organizations in all.", NULL, 1, 10000000},
        {"session-hours", 0, OPTION_NUMBER, AT(session_hours), "12", "N",
         "How long somebody stays signed in to the console; organizations may ask for less.", NULL, 1, 720},
        {"federated-sign-in", 0, OPTION_CHOICE, AT(federated_sign_in), "all", "WHOSE",
         "Whose identity providers sign people in: all, operator (those of the first organization's federation) or "
         "none.",
         "all|operator|none"},
        {"name-server", 0, OPTION_TEXT, AT(name_server), NULL, "ADDRESS:PORT",
         "The name server (IPv4) that is asked whether a domain is a federation's, instead of the system's; none: only "
         "the operator says so (steward domains)."},
        {"session-idle-minutes", 0, OPTION_NUMBER, AT(session_idle_minutes), "120", "N",
         "How long somebody stays signed in without doing anything.", NULL, 5, 43200},
        {"store-check-seconds", 0, OPTION_NUMBER, AT(store_check_seconds), "3600", "N",
         "Pause between two passes of the slow check that reads all of the store for damage; 0 turns it off.", NULL, 0,
         31536000},
        {"series-days", 0, OPTION_TEXT, AT(series_days), "2,14,62,732", "DAYS",
         "How many days of measurements are kept by the minute, by five minutes, by the hour and by the day."},
        {"event-retention-days", 0, OPTION_NUMBER, AT(event_retention_days), "0", "N",
         "How long events are kept; 0 keeps them all.", NULL, 0, 36500},
};
const size_t config_option_count = sizeof config_options / sizeof *config_options;

struct limit_list {
	struct config_limit *list;
	size_t count, cap;
};

static bool limit_value_parse(struct str value, struct config_limit *ret_limit)
{
	struct str capacity, refill;
	uint64_t c, r;
	if (!str_cut(value, '/', &capacity, &refill))
		return false;
	if (!str_to_u64(str_trim(capacity), LIMIT_MAX, &c) || !str_to_u64(str_trim(refill), LIMIT_MAX, &r) || !c || !r)
		return false;
	ret_limit->capacity = (unsigned)c;
	ret_limit->refill = (unsigned)r;
	return true;
}

static bool word_is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return s.n > 0 && s.n <= 64;
}

/* `rest` is what follows "limit.". */
static int limit_add(struct arena *a, struct limit_list *l, struct str rest, struct str value, const char *where)
{
	struct config_limit limit = {.where = where};
	bool scoped = str_cut(rest, '@', &limit.set, &limit.scope);
	if (!word_is_plain(limit.set) || (scoped && !word_is_plain(limit.scope)))
		return option_refuse("%s: is not limit.SET or limit.SET@SCOPE, for example limit.S17 or limit.*",
		                     where);
	if (!limit_value_parse(value, &limit))
		return option_refuse(
		        "%s: \"%.*s\" is not CAPACITY/REFILL, two whole numbers from 1 to %u, for example 100/50",
		        where, (int)(value.n > 200 ? 200 : value.n), value.p, LIMIT_MAX);
	for (size_t i = 0; i < l->count; i++)
		if (str_eq(l->list[i].set, limit.set) && str_eq(l->list[i].scope, limit.scope))
			return option_refuse("%s: is set a second time; keep one of the two lines", where);
	if (l->count == CONFIG_LIMITS_MAX)
		return option_refuse("%s: is one limit too many; a file holds at most %d", where, CONFIG_LIMITS_MAX);
	if (l->count == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		struct config_limit *grown = arena_new_array(a, struct config_limit, l->cap);
		if (l->count)
			memcpy(grown, l->list, l->count * sizeof *grown);
		l->list = grown;
	}
	l->list[l->count++] = limit;
	return 0;
}

struct file_reader {
	struct options *options; /* NULL: only the limits are wanted */
	struct arena *arena;
	struct limit_list limits;
};

static int file_line(void *ctx, struct str name, struct str value, const char *where)
{
	struct file_reader *f = ctx;
	if (str_starts(name, STR("limit.")))
		return limit_add(f->arena, &f->limits, (struct str){name.p + 6, name.n - 6}, value, where);
	if (!f->options)
		return 0;
	if (str_is(name, "config"))
		return option_refuse("%s: a file cannot name another file", where);
	return options_set(f->options, name, value, OPTION_FROM_FILE, where);
}

static unsigned processors(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n > 64 ? 64 : (unsigned)n;
}

static void listen_split(struct config *c)
{
	const char *colon = strrchr(c->listen, ':');
	struct str host = {c->listen, (size_t)(colon - c->listen)};
	uint64_t port = 0;
	if (host.p[0] == '[')
		host = (struct str){host.p + 1, host.n - 2};
	if (str_to_u64(str_of(colon + 1), 65535, &port))
		c->listen_port = (unsigned)port;
	c->listen_host = arena_z(c->arena, host);
}

static bool is_address(const char *text)
{
	const char *at = strchr(text, '@');
	return at && at > text && at[1] && !strpbrk(text, " \t\r\n<>\"") && !strchr(at + 1, '@');
}

static int smtp_check(const struct config *c)
{
	struct str url = str_of(c->smtp_url), host = STR_NONE;
	if (!c->smtp_url) {
		const char *extra = c->smtp_from            ? "from"
		                    : c->smtp_user          ? "user"
		                    : c->smtp_password_file ? "password-file"
		                                            : NULL;
		return extra ? option_refuse("--smtp-%s means nothing without --smtp-url", extra) : 0;
	}
	if (str_starts(url, STR("smtp://")))
		host = (struct str){url.p + 7, url.n - 7};
	else if (str_starts(url, STR("smtps://")))
		host = (struct str){url.p + 8, url.n - 8};
	if (!host.n || strpbrk(host.p, " /@?#"))
		return option_refuse("--smtp-url: \"%s\" is not smtp://HOST[:PORT] or smtps://HOST[:PORT]",
		                     c->smtp_url);
	if (!c->smtp_from || !is_address(c->smtp_from))
		return option_refuse(
		        "--smtp-from: %s; give the address that mail comes from, such as steward@example.com",
		        c->smtp_from ? "is no mail address" : "is missing");
	if (!c->smtp_user != !c->smtp_password_file)
		return option_refuse("--smtp-%s is missing: --smtp-user and --smtp-password-file go together",
		                     c->smtp_user ? "password-file" : "user");
	return 0;
}

static int limits_check(const struct config *c)
{
	const char *tls_only = c->limits_ca ? "ca" : c->limits_cert ? "cert" : c->limits_key ? "key" : NULL;
	if (c->limits_password_file && !c->limits_url)
		return option_refuse("--limits-password-file means nothing without --limits");
	if (tls_only && (!c->limits_url || !str_starts(str_of(c->limits_url), STR("rediss://"))))
		return option_refuse("--limits-%s means nothing without --limits rediss://HOST", tls_only);
	if (!c->limits_cert != !c->limits_key)
		return option_refuse("--limits-%s is missing: --limits-cert and --limits-key go together",
		                     c->limits_cert ? "key" : "cert");
	return 0;
}

static bool is_word(const char *text, const char *more)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");
	while (text[n] && n && strchr(more, text[n]) && text[n + 1])
		n += 1 + strspn(text + n + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
	return n && !text[n] && n < 100;
}

/* NAME=MAJOR, each name once: digits with dots between them. */
static int versions_check(const struct option_texts *given)
{
	for (size_t i = 0; i < given->n; i++) {
		struct str name, major, other, rest;
		uint64_t number;
		bool good = str_cut(str_of(given->v[i]), '=', &name, &major) && name.n && name.n < 16 &&
		            strspn(name.p, "0123456789.") == name.n && str_to_u64(major, 1000, &number) && number;
		for (size_t k = 0; good && k < i; k++) {
			str_cut(str_of(given->v[k]), '=', &other, &rest);
			good = !str_eq(name, other);
		}
		if (!good)
			return option_refuse(
			        "--db-version: \"%s\" is not NAME=MAJOR with a name of its own, such as 8.0=17",
			        given->v[i]);
	}
	return 0;
}

static int database_check(struct config *c)
{
	if (!is_word(c->db_scheme, "+-."))
		return option_refuse("--db-scheme: \"%s\" is no scheme of a URL, such as postgresql", c->db_scheme);
	if (!is_word(c->db_domain, "-."))
		return option_refuse("--db-domain: \"%s\" is no domain in lower case, such as steward.local",
		                     c->db_domain);
	struct cidr address;
	/* Connection strings carry this address, and a wildcard address (0.0.0.0) cannot be connected to. */
	if (c->db_address && (!cidr_parse(str_of(c->db_address), &address) || !address.v4 ||
	                      strchr(c->db_address, '/') || str_is(str_of(c->db_address), "0.0.0.0")))
		return option_refuse("--db-address: \"%s\" is not one IPv4 address of this host, such as 192.0.2.10",
		                     c->db_address);
	struct str first, last;
	uint64_t from = 0, to = 0;
	if (!str_cut(str_of(c->db_ports), '-', &first, &last) || !str_to_u64(first, 65535, &from) ||
	    !str_to_u64(last, 65535, &to) || from < 1024 || to < from)
		return option_refuse(
		        "--db-ports: \"%s\" is not FROM-TO, two ports from 1024 to 65535, such as 20000-29999",
		        c->db_ports);
	c->db_port_first = (unsigned)from;
	c->db_port_last = (unsigned)to;
	return versions_check(&c->db_versions);
}

/* Whoever connects from the address gets to the databases: one that others on this host use too is no good. */
static int relay_check(struct config *c)
{
	struct str address, ports, first, last;
	struct cidr network, loopback;
	uint64_t from = 1024, to = 65535;
	if (!c->private_endpoints)
		return 0;
	bool ranged = str_cut(str_of(c->private_endpoints), ':', &address, &ports);
	bool good = cidr_parse(address, &network) && network.v4 && cidr_is_address(&network) &&
	            cidr_parse(STR("127.0.0.1"), &loopback) && !ip_equal(&network.net, &loopback.net) &&
	            !str_is(address, "0.0.0.0") && !memchr(address.p, '/', address.n) &&
	            !(c->db_address && str_is(address, c->db_address));
	if (ranged)
		good = good && str_cut(ports, '-', &first, &last) && str_to_u64(first, 65535, &from) &&
		       str_to_u64(last, 65535, &to) && from >= 1 && to >= from;
	if (!good)
		return option_refuse("--private-endpoints: \"%s\" is not ADDRESS[:FROM-TO], an IPv4 address of this "
		                     "host that nothing else uses, nor --db-address, such as 192.0.2.11:1024-2047",
		                     c->private_endpoints);
	c->relay_address = arena_z(c->arena, address);
	c->relay_port_first = (unsigned)from;
	c->relay_port_last = (unsigned)to;
	return 0;
}

static int networks_read(struct config *c, const char *option, const char *text, struct cidr **ret_list,
                         size_t *ret_count)
{
	if (!text)
		return 0;
	struct str rest = str_of(text), one;
	struct cidr *list = arena_new_array(c->arena, struct cidr, rest.n + 1);
	size_t count = 0;
	for (bool more = true; more;) {
		more = str_cut(rest, ',', &one, &rest);
		if (!cidr_parse(str_trim(one), &list[count++]))
			return option_refuse("--%s: \"%.*s\" is no address or network, such as 10.0.0.5 or 10.0.0.0/24",
			                     option, (int)(one.n > 200 ? 200 : one.n), one.p);
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

static bool is_label(struct str label)
{
	struct str name, value;
	bool good = str_cut(label, '=', &name, &value) && name.n && name.n <= LABEL_TEXT_MAX && value.n &&
	            value.n <= LABEL_TEXT_MAX;
	for (size_t i = 0; good && i < name.n; i++)
		good = isalnum((unsigned char)name.p[i]) || strchr("._-/", name.p[i]);
	for (size_t i = 0; good && i < value.n; i++)
		good = value.p[i] > ' ' && value.p[i] <= '~';
	return good;
}

static int host_check(const struct config *c)
{
	for (size_t i = 0; i < c->labels.n; i++)
		if (!is_label(str_of(c->labels.v[i])))
			return option_refuse("--label: \"%s\" is not NAME=VALUE, such as region=US_EAST_1",
			                     c->labels.v[i]);
	if (c->host_name && (!is_word(c->host_name, "-.") || strlen(c->host_name) > HOST_TEXT_MAX))
		return option_refuse("--host-name: \"%s\" is no name in lower case, such as db-1", c->host_name);
	return 0;
}

static int config_finish(struct config *c)
{
	int result = smtp_check(c);
	if (result == 0)
		result = limits_check(c);
	if (result == 0)
		result = host_check(c);
	if (result == 0)
		result = networks_read(c, "proxies", c->proxies, &c->proxy_list, &c->proxy_count);
	if (result == 0)
		result = networks_read(c, "inner-networks", c->inner_networks, &c->inner_list, &c->inner_count);
	if (result == 0)
		result = database_check(c);
	if (result == 0)
		result = relay_check(c);
	if (result < 0)
		return result;
	if (!c->tls_cert != !c->tls_key)
		return option_refuse("--tls-%s is missing: --tls-cert and --tls-key go together",
		                     c->tls_cert ? "key" : "cert");
	if (c->connections_per_address > c->connections_max)
		c->connections_per_address = c->connections_max;
	if (c->threads == 0)
		c->threads = processors();
	listen_split(c);
	c->log_json = strcmp(c->log_format, "json") == 0;
	c->clock_virtual = strcmp(c->clock, "virtual") == 0;
	return 0;
}

static int config_read(int argc, char **argv, struct config *c)
{
	struct options o;
	const char *words[1];
	size_t count;
	options_setup(&o, "serve", config_options, config_option_count, c, c->arena);
	int r = options_args(&o, argc, argv, words, 0, &count);
	if (r != 0)
		return r;
	r = options_environment(&o);
	if (r < 0)
		return r;
	if (c->file) {
		struct file_reader f = {.options = &o, .arena = c->arena};
		r = options_file_each(c->arena, c->file, file_line, &f);
		if (r < 0)
			return r;
		c->limits = f.limits.list;
		c->limit_count = f.limits.count;
	}
	return config_finish(c);
}

int config_parse(int argc, char **argv, struct config *ret_config)
{
	struct config c = {.arena = arena_new()};
	int r = config_read(argc, argv, &c);
	if (r != 0) {
		arena_free(c.arena);
		return r;
	}
	*ret_config = c;
	return 0;
}

void config_free(struct config *c)
{
	arena_free(c->arena);
	*c = (struct config){0};
}

int config_limits(const struct config *c, struct arena *a, struct config_limit **ret_limits, size_t *ret_count)
{
	struct file_reader f = {.arena = a};
	int r = c->file ? options_file_each(a, c->file, file_line, &f) : 0;
	if (r < 0)
		return r;
	*ret_limits = f.limits.list;
	*ret_count = f.limits.count;
	return 0;
}
