/* Process arguments: settings of the database processes that a cluster's owner may set, and what they are to the
 * engine. What is about TLS is the cluster's own advancedConfiguration, shown in both places. */
#include "api/cluster_jobs.h"
#include "api/cluster_update.h"
#include "api/policy_enforce.h"
#include "api/verbs.h"
#include "base/clock.h"
#include "gate/audit.h"

#include <errno.h>

int clusters_get_args(struct call *c);
int clusters_update_args(struct call *c);

#define ARGS_KIND "process_args"

static const char *const tls_fields[] = {"customOpensslCipherConfigTls12", "customOpensslCipherConfigTls13",
                                         "minimumEnabledTlsProtocol", "tlsCipherConfigMode"};
#define TLS_FIELDS (sizeof tls_fields / sizeof *tls_fields)

/* Those that were set; revision 0 when none ever was. */
static int args_load(struct tx *tx, struct arena *a, struct str cluster_id, struct doc *ret_doc)
{
	int result = tx_get(tx, a, ARGS_KIND, cluster_id, ret_doc);
	if (result != -ENOENT)
		return result;
	*ret_doc = (struct doc){.kind = STR(ARGS_KIND), .id = cluster_id, .parent = cluster_id, .body = STR("{}")};
	return 0;
}

static void default_set(json_t *to, const char *name, json_t *value)
{
	if (json_object_get(to, name))
		json_decref(value);
	else
		json_object_set_new(to, name, value);
}

static struct str args_view(struct call *c, const struct cluster *cluster, struct str stored)
{
	json_t *view = doc_json(c->arena, stored), *value;
	const json_t *advanced = json_object_get(cluster->body, "advancedConfiguration");
	const struct schema *form = c->version->response;
	const char *key;
	void *next;
	for (size_t i = 0; i < TLS_FIELDS; i++)
		if (json_object_get(advanced, tls_fields[i]))
			json_object_set(view, tls_fields[i], json_object_get(advanced, tls_fields[i]));
	default_set(view, "javascriptEnabled", json_true());
	default_set(view, "noTableScan", json_false());
	default_set(view, "defaultWriteConcern", json_string("majority"));
	schema_add_defaults(form, view);
	json_object_foreach_safe(view, next, key, value)
	{
		if (json_is_null(value) || !schema_field(form, str_of(key)))
			json_object_del(view, key);
	}
	return json_text(c->arena, view);
}

int clusters_get_args(struct call *c)
{
	struct cluster cluster;
	struct doc args;
	int result = cluster_load(c, &cluster);
	if (result == 0)
		result = args_load(c->tx, c->arena, cluster.doc.id, &args);
	if (result < 0)
		return result;
	buf_str(&c->out, args_view(c, &cluster, args.body));
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
		struct str text = {json_string_value(concern), json_string_length(concern)};
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

int clusters_update_args(struct call *c)
{
	struct cluster cluster;
	struct doc args;
	int result = cluster_load(c, &cluster);
	if (result == 0)
		result = args_load(c->tx, c->arena, cluster.doc.id, &args);
	if (result == 0)
		result = args_check(c);
	/* The row has no 409. */
	if (result == 0 && cluster_is(&cluster, "DELETING"))
		return -ENOENT;
	if (result < 0)
		return result;
	json_t *stored = doc_json(c->arena, args.body);
	const json_t *before = json_keep(c->arena, json_deep_copy(cluster.body));
	merge(&cluster, stored, c->body);
	result = policy_check_cluster(c, cluster.body, before);
	if (result < 0)
		return result;
	args.body = json_text(c->arena, stored);
	args.created_ms = args.rev ? args.created_ms : clock_now_ms();
	result = args.rev ? tx_update(c->tx, &args) : tx_insert(c->tx, &args);
	if (result == 0)
		result = cluster_change(c->tx, c->arena, &cluster,
		                        cluster_is(&cluster, "CREATING") ? "CREATING" : "UPDATING");
	if (result < 0)
		return result;
	audit_field(c, "clusterName", cluster.doc.name);
	buf_str(&c->out, args_view(c, &cluster, args.body));
	return 0;
}

/* To the engine. Its names are PostgreSQL's. */

struct params {
	struct arena *arena;
	struct engine_param list[8];
	size_t count;
};

static void param_add(struct params *p, const char *name, struct str value)
{
	p->list[p->count++] = (struct engine_param){name, value.p};
}

static void number_add(struct params *p, const char *name, const json_t *value, const char *unit)
{
	if (json_is_number(value) && json_number_value(value) > 0)
		param_add(p, name, arena_printf(p->arena, "%.0f%s", json_number_value(value), unit));
}

/* The chosen ciphers of TLS 1.2, by OpenSSL's names. The API names them for servers with RSA keys; ours have others. */
static void ciphers_add(struct params *p, const json_t *advanced)
{
	static const char *const names[][2] = {
	        {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"},
	        {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"},
	};
	const json_t *chosen = json_object_get(advanced, "customOpensslCipherConfigTls12");
	struct str list = STR_NONE;
	if (!str_is(json_field(advanced, "tlsCipherConfigMode"), "CUSTOM"))
		return;
	for (size_t i = 0; i < json_array_size(chosen); i++)
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			if (strcmp(json_string_value(json_array_get(chosen, i)), names[k][0]) == 0)
				list = arena_printf(p->arena, "%.*s%s%s", STR_ARG(list), list.n ? ":" : "",
				                    names[k][1]);
	if (list.n)
		param_add(p, "ssl_ciphers", list);
}

int process_params(struct tx *tx, struct arena *a, const struct cluster *cluster, struct engine_param **ret_params,
                   size_t *ret_count, bool *ret_quorum)
{
	struct params *p = arena_new_of(a, struct params);
	struct doc stored;
	int result = args_load(tx, a, cluster->doc.id, &stored);
	if (result < 0)
		return result;
	const json_t *args = doc_json(a, stored.body),
	             *advanced = json_object_get(cluster->body, "advancedConfiguration");
	struct str concern = json_field(args, "defaultWriteConcern"),
	           tls = json_field(advanced, "minimumEnabledTlsProtocol");
	p->arena = a;
	number_add(p, "statement_timeout", json_object_get(args, "defaultMaxTimeMS"), "ms");
	number_add(p, "idle_in_transaction_session_timeout", json_object_get(args, "transactionLifetimeLimitSeconds"),
	           "s");
	number_add(p, "wal_keep_size", json_object_get(args, "oplogSizeMB"), "MB");
	if (json_is_true(json_object_get(args, "noTableScan")))
		param_add(p, "enable_seqscan", STR("off"));
	/* Nothing older than TLS 1.2 is spoken. */
	param_add(p, "ssl_min_protocol_version", str_is(tls, "TLS1_3") ? STR("TLSv1.3") : STR("TLSv1.2"));
	ciphers_add(p, advanced);
	*ret_params = p->list;
	*ret_count = p->count;
	*ret_quorum = !concern.n || (!str_is(concern, "0") && !str_is(concern, "1"));
	return 0;
}
