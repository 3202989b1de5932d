/* Process arguments: settings of the database processes that a cluster's owner may set, and what they are to the
 * engine. What is about TLS is the cluster's own advancedConfiguration, shown in both places. */
#include "api/clusters/args.h"

#include "api/clusters/cluster.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "api/policies/policies.h"
#include "trail/events.h"

#include <errno.h>

static const char *const tls_fields[] = {"customOpensslCipherConfigTls12", "customOpensslCipherConfigTls13",
                                         "minimumEnabledTlsProtocol", "tlsCipherConfigMode"};
#define TLS_FIELDS (sizeof tls_fields / sizeof *tls_fields)

static int args_view(struct call *c, const struct doc *d, json_t *view)
{
	struct cluster cluster;
	const struct schema *form = c->version->response;
	const char *key;
	json_t *value;
	void *next;
	int result = cluster_load(c, &cluster);
	if (result < 0)
		return result;
	json_copy_fields(view, json_object_get(cluster.body, "advancedConfiguration"), tls_fields, TLS_FIELDS);
	json_default(view, "javascriptEnabled", json_true());
	json_default(view, "noTableScan", json_false());
	json_default(view, "defaultWriteConcern", json_string("majority"));
	schema_add_defaults(form, view);
	json_object_foreach_safe(view, next, key, value)
	{
		if (json_is_null(value) || !schema_field(form, str_of(key)))
			json_object_del(view, key);
	}
	return 0;
}

static int args_check(struct call *c)
{
	static const struct {
		const char *name;
		double least, most;
	} bounds[] = {{"defaultMaxTimeMS", 0, 2147483647},
	              {"oplogSizeMB", 990, 10000000},
	              {"oplogMinRetentionHours", 0, 100000},
	              {"transactionLifetimeLimitSeconds", 1, 2147483},
	              {"chunkMigrationConcurrency", 0, 500},
	              {"queryStatsLogVerbosity", 1, 3},
	              {"changeStreamOptionsPreAndPostImagesExpireAfterSeconds", -1, 2147483647}};
	struct faults faults = {.count = 0};
	const json_t *concern = json_object_get(c->body, "defaultWriteConcern");
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
		const json_t *value = json_object_get(c->body, bounds[i].name);
		if (json_is_number(value) &&
		    (json_number_value(value) < bounds[i].least || json_number_value(value) > bounds[i].most))
			faults_add(&faults, c->arena, str_of(bounds[i].name), "must be from %.0f to %.0f",
			           bounds[i].least, bounds[i].most);
	}
	if (concern) {
		struct str text = json_str_of(concern);
		uint64_t number;
		if (!str_is(text, "majority") && !str_to_u64(text, 50, &number))
			faults_add(&faults, c->arena, STR("defaultWriteConcern"),
			           "must be majority, or a number of nodes");
	}
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static void merge(struct cluster *cluster, json_t *args, const json_t *body)
{
	json_t *advanced = json_object_get(cluster->body, "advancedConfiguration"), *value;
	const char *key;
	json_object_foreach((json_t *)(uintptr_t)body, key, value)
	{
		bool tls = false;
		for (size_t i = 0; i < TLS_FIELDS; i++)
			tls = tls || strcmp(key, tls_fields[i]) == 0;
		if (json_is_null(value))
			json_object_del(tls ? advanced : args, key);
		else
			json_object_set(tls ? advanced : args, key, value);
	}
}

static int args_update(struct call *c, const struct doc *old, json_t *document)
{
	struct cluster cluster;
	int result = args_check(c);
	if (result == 0)
		result = cluster_load(c, &cluster);
	/* The row has no 409. */
	return result == 0 && cluster_is(&cluster, "DELETING") ? -ENOENT : result;
}

/* Only what was given is kept, each where it belongs: defaults are those of the version that looks. */
static int args_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	struct cluster cluster;
	int result = cluster_load(c, &cluster);
	if (result < 0)
		return result;
	json_t *stored = doc_json(c->arena, old->body);
	const json_t *before = json_keep(c->arena, json_deep_copy(cluster.body));
	merge(&cluster, stored, c->body);
	result = policy_check_cluster(c, cluster.body, before);
	d->body = json_text(c->arena, stored);
	if (result == 0)
		result = resource_put(c->tx, d, old);
	if (result == 0)
		result = cluster_change(c->tx, c->arena, &cluster, NULL);
	event_field(c, "clusterName", cluster.doc.name);
	return result;
}

const struct resource_hooks process_args_hooks = {.update = args_update, .save = args_save, .view = args_view};

/* To the engine. */

/* The chosen ciphers of TLS 1.2, by OpenSSL's names; or NULL. The API names them for servers with RSA keys; ours have
 * others. */
static const char *ciphers_of(struct arena *a, const json_t *advanced)
{
	static const char *const names[][2] = {
	        {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"},
	        {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"},
	};
	const json_t *chosen = json_object_get(advanced, "customOpensslCipherConfigTls12");
	struct str list = STR_NONE;
	if (!str_is(json_field(advanced, "tlsCipherConfigMode"), "CUSTOM"))
		return NULL;
	for (size_t i = 0; i < json_array_size(chosen); i++)
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			if (strcmp(json_string_value(json_array_get(chosen, i)), names[k][0]) == 0)
				list = arena_printf(a, "%.*s%s%s", STR_ARG(list), list.n ? ":" : "", names[k][1]);
	return list.n ? list.p : NULL;
}

int process_params(struct tx *tx, struct arena *a, const struct cluster *cluster, struct engine_param **ret_params,
                   size_t *ret_count, bool *ret_quorum)
{
	struct doc stored;
	int result = resource_singleton(tx, a, &resource_process_args, cluster->doc.id, &stored);
	if (result < 0)
		return result;
	const json_t *args = doc_json(a, stored.body),
	             *advanced = json_object_get(cluster->body, "advancedConfiguration");
	struct str concern = json_field(args, "defaultWriteConcern");
	struct engine_settings settings = {
	        .statement_ms = json_number_value(json_object_get(args, "defaultMaxTimeMS")),
	        .idle_transaction_s = json_number_value(json_object_get(args, "transactionLifetimeLimitSeconds")),
	        .log_keep_mb = json_number_value(json_object_get(args, "oplogSizeMB")),
	        .no_table_scan = json_flag(args, "noTableScan"),
	        .tls13 = str_is(json_field(advanced, "minimumEnabledTlsProtocol"), "TLS1_3"),
	        .ciphers = ciphers_of(a, advanced)};
	*ret_count = engine_params(&settings, a, ret_params);
	*ret_quorum = !concern.n || (!str_is(concern, "0") && !str_is(concern, "1"));
	return 0;
}
