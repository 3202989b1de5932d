/* Network containers: one for each region of AWS and Azure, one for all of Google Cloud. They are made on request, or
 * with the first dedicated cluster of a region; their network comes with the first cluster or peering connection, and
 * from then on its addresses stay. */
#include "api/clusters/clusters.h"
#include "api/network/network.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"

#include <errno.h>
#include <stdio.h>

#define HEX "0123456789abcdef"
#define LETTERS "0123456789abcdefghijklmnopqrstuvwxyz"

static const struct network_provider providers[] = {
        {"AWS", "AWSCloudProviderContainer", "regionName", "awsAccountId", "vpcId", 21, 24, 21},
        {"AZURE", "AzureCloudProviderContainer", "region", "azureSubscriptionId", "vnetName", 21, 24, 21},
        {"GCP", "GCPCloudProviderContainer", "regions", "gcpProjectId", "networkName", 8, 18, 18}};
#define PROVIDERS (sizeof providers / sizeof *providers)

static const char *const private_ranges[] = {"192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8"};
#define RANGES (sizeof private_ranges / sizeof *private_ranges)

const struct network_provider *network_provider_find(struct str name)
{
	for (size_t i = 0; i < PROVIDERS; i++)
		if (str_is(name, providers[i].name))
			return &providers[i];
	return NULL;
}

static bool is_gcp(const struct network_provider *p)
{
	return p == &providers[2];
}

/* The containers know fewer regions than the clusters do. */
bool container_region_is_known(struct str provider, struct str region)
{
	const struct network_provider *p = network_provider_find(provider);
	return p && schema_allows(schema_of_field(p->schema, p->field), region);
}

/* Lists are short: a project has at most one container for each region. */
static int containers_load(struct tx *tx, struct arena *a, struct str group_id, struct doc **ret_docs,
                           size_t *ret_count)
{
	return tx_list_all(tx, a, CONTAINER_KIND, group_id, ret_docs, ret_count);
}

int peers_load(struct tx *tx, struct arena *a, struct str group_id, struct doc **ret_docs, size_t *ret_count)
{
	return tx_list_all(tx, a, PEER_KIND, group_id, ret_docs, ret_count);
}

/* Blocks of addresses. */

static struct str block_text(const json_t *document)
{
	struct str text = json_field(document, "svcCidrBlock");
	return text.n ? text : json_field(document, "routeTableCidrBlock");
}

bool network_block(const json_t *document, struct cidr *ret_block)
{
	return cidr_parse(block_text(document), ret_block);
}

/* A network of the customer may be peered with several containers. */
static bool is_same_network(const json_t *a, const json_t *b)
{
	struct str vpc = json_field(a, "vpcId");
	return json_field(a, "routeTableCidrBlock").n && vpc.n && str_eq(vpc, json_field(b, "vpcId")) &&
	       json_field(b, "routeTableCidrBlock").n;
}

/* What has a block of its own: containers, then peering connections. */
static int blocks_load(struct tx *tx, struct arena *a, struct str group_id, const json_t ***ret_list, size_t *ret_count)
{
	struct doc *containers, *peers;
	size_t container_count, peer_count, count = 0;
	int r = containers_load(tx, a, group_id, &containers, &container_count);
	if (r == 0)
		r = peers_load(tx, a, group_id, &peers, &peer_count);
	if (r < 0)
		return r;
	*ret_list = arena_new_array(a, const json_t *, container_count + peer_count + 1);
	for (size_t i = 0; i < container_count; i++)
		(*ret_list)[count++] = doc_json(a, containers[i].body);
	for (size_t i = 0; i < peer_count; i++)
		(*ret_list)[count++] = doc_json(a, peers[i].body);
	*ret_count = count;
	return 0;
}

int network_check_overlap(struct call *c, const char *field, const struct cidr *block, const json_t *self)
{
	const json_t **list = NULL;
	size_t count = 0;
	int result = blocks_load(c->tx, c->arena, c->group.id, &list, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct cidr taken;
		struct str id = json_field(list[i], "id");
		if (str_eq(id, json_field(self, "id")) || !network_block(list[i], &taken) ||
		    is_same_network(self, list[i]) || !cidr_overlaps(block, &taken))
			continue;
		return call_fail_about(c, 409, "OVERLAPPING_CIDR_BLOCK", str_of(field),
		                       "%s: overlaps %.*s of %.*s. Choose another block.", field,
		                       STR_ARG(block_text(list[i])), STR_ARG(id));
	}
	return result;
}

static bool is_private(const struct cidr *block)
{
	for (size_t i = 0; i < RANGES; i++) {
		struct cidr range;
		if (cidr_parse(str_of(private_ranges[i]), &range) && cidr_within(block, &range))
			return true;
	}
	return false;
}

/* The block is what it should be, and is written in its one form. */
static int block_check(struct call *c, const struct network_provider *p, json_t *document)
{
	static const char field[] = "svcCidrBlock";
	struct str text = json_field(document, field);
	struct faults faults = {.count = 0};
	struct cidr block;
	char form[IP_TEXT];
	if (!cidr_parse(text, &block) || !block.v4)
		faults_add(&faults, c->arena, str_of(field), "must be an IPv4 network like 10.8.0.0/%u", p->standard);
	else if (cidr_has_host_bits(text, &block))
		faults_add(&faults, c->arena, str_of(field), "has bits beyond its prefix of %u", cidr_prefix(&block));
	else if (!is_private(&block))
		faults_add(&faults, c->arena, str_of(field), "must lie in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16");
	else if (cidr_prefix(&block) < p->least || cidr_prefix(&block) > p->most)
		faults_add(&faults, c->arena, str_of(field), "must have a prefix from %u to %u at %s", p->least,
		           p->most, p->name);
	if (faults.count)
		return call_fail_faults(c, &faults);
	cidr_format(&block, form);
	json_put_z(document, field, form);
	return network_check_overlap(c, field, &block, document);
}

/* The last free block of the first range that has one; empty when there is none. */
static int block_choose(struct tx *tx, struct arena *a, struct str group_id, unsigned prefix, char ret_text[IP_TEXT])
{
	const json_t **list = NULL;
	size_t count = 0, taken_count = 0;
	int r = blocks_load(tx, a, group_id, &list, &count);
	struct cidr *taken = arena_new_array(a, struct cidr, count + 1), range, block;
	ret_text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		taken_count += network_block(list[i], &taken[taken_count]);
	for (size_t i = 0; r == 0 && i < RANGES && !ret_text[0]; i++)
		if (cidr_parse(str_of(private_ranges[i]), &range) &&
		    cidr_last_free(&range, prefix, taken, taken_count, &block))
			cidr_format(&block, ret_text);
	return r;
}

/* Which container is whose. */

static bool container_has(const struct network_provider *p, const json_t *container, struct str region)
{
	return str_is(json_field(container, "providerName"), p->name) &&
	       (is_gcp(p) || str_eq(json_field(container, p->field), region));
}

bool cluster_is_in(const json_t *cluster, struct str provider, struct str region)
{
	struct region_walk walk = {.spec = 0};
	const json_t *config;
	while ((config = region_next(cluster, &walk)))
		if (str_eq(json_field(config, "providerName"), provider) &&
		    (!region.n || str_eq(json_field(config, "regionName"), region)))
			return true;
	return false;
}

struct use {
	struct arena *arena;
	const struct network_provider *provider;
	struct str region;
	struct str cluster; /* found */
};

static int use_look(struct tx *tx, void *ctx, const struct doc *cluster)
{
	struct use *u = ctx;
	if (!u->cluster.n && cluster_is_in(doc_json(u->arena, cluster->body), str_of(u->provider->name), u->region))
		u->cluster = cluster->name;
	return 0;
}

/* 409 while a cluster or a peering connection is in it. */
static int refuse_used(struct call *c, const struct doc *container)
{
	const json_t *body = doc_json(c->arena, container->body);
	const struct network_provider *p = network_provider_find(json_field(body, "providerName"));
	struct use use = {.arena = c->arena, .provider = p};
	struct doc *peers;
	size_t count;
	if (!p)
		return -EIO;
	if (!is_gcp(p))
		use.region = json_field(body, p->field);
	int result = clusters_walk_group(c->tx, c->arena, c->group.id, use_look, &use);
	if (result == 0)
		result = peers_load(c->tx, c->arena, c->group.id, &peers, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count && !use.cluster.n; i++)
		if (str_eq(json_field(doc_json(c->arena, peers[i].body), "containerId"), container->id))
			use.cluster = peers[i].id;
	if (!use.cluster.n)
		return 0;
	return call_fail_about(c, 409, "CONTAINERS_IN_USE", use.cluster, "The container %.*s is in use by \"%.*s\".",
	                       STR_ARG(container->id), STR_ARG(use.cluster));
}

static int refuse_twin(struct call *c, const struct network_provider *p, const json_t *document)
{
	struct doc *docs;
	size_t count;
	struct str region = is_gcp(p) ? STR_NONE : json_field(document, p->field);
	int result = containers_load(c->tx, c->arena, c->group.id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (!str_eq(docs[i].id, json_field(document, "id")) &&
		    container_has(p, doc_json(c->arena, docs[i].body), region))
			result = call_fail_about(c, 409, "CONTAINER_ALREADY_EXISTS", docs[i].id,
			                         "%s: the project has the container %.*s for it.",
			                         is_gcp(p) ? "providerName" : p->field, STR_ARG(docs[i].id));
	return result;
}

/* The verbs' hooks. */

static int container_check(struct call *c, const struct network_provider *p, json_t *document)
{
	struct faults faults = {.count = 0};
	if (!is_gcp(p) && !json_field(document, p->field).n)
		faults_add(&faults, c->arena, str_of(p->field), "is required");
	if (!json_object_get(document, "svcCidrBlock"))
		faults_add(&faults, c->arena, STR("svcCidrBlock"), "is required");
	if (faults.count)
		return call_fail_faults(c, &faults);
	int result = refuse_twin(c, p, document);
	return result < 0 ? result : block_check(c, p, document);
}

static const struct network_provider *provider_of(struct call *c, json_t *document)
{
	if (!json_object_get(document, "providerName"))
		json_put_z(document, "providerName", providers[0].name);
	const struct network_provider *p = network_provider_find(json_field(document, "providerName"));
	if (!p)
		call_fail_field(c, 400, "VALIDATION_ERROR", "providerName", "must be one of AWS, AZURE, GCP.");
	return p;
}

static int container_create(struct call *c, json_t *document)
{
	const struct network_provider *p = provider_of(c, document);
	char text[IP_TEXT];
	if (!p)
		return -400;
	struct doc d = {.kind = STR(CONTAINER_KIND), .id = json_field(document, "id"), .parent = c->group.id};
	int result = call_lifecycle_create(c, &d, document);
	if (is_gcp(p) && !json_object_get(document, p->field)) /* all of them */
		json_put(document, p->field, json_array());
	if (result == 0 && !json_object_get(document, "svcCidrBlock")) {
		result = block_choose(c->tx, c->arena, c->group.id, p->standard, text);
		if (text[0])
			json_put_z(document, "svcCidrBlock", text);
	}
	return result < 0 ? result : container_check(c, p, document);
}

static int container_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	const struct network_provider *p = provider_of(c, document);
	if (!p)
		return -400;
	if (!json_equal(json_object_get(before, "providerName"), json_object_get(document, "providerName")))
		return call_fail_field(c, 400, "VALIDATION_ERROR", "providerName", "cannot be changed.");
	if (json_equal(before, document))
		return 0;
	int result = refuse_used(c, old);
	if (result == 0 && json_flag(before, "provisioned"))
		result = call_fail_about(c, 409, "CONTAINERS_IN_USE", old->id,
		                         "The container %.*s has its network already. Make another.", STR_ARG(old->id));
	return result < 0 ? result : container_check(c, p, document);
}

const struct resource_hooks container_hooks = {
        .create = container_create, .update = container_update, .remove = refuse_used};

/* With the first cluster. */

static int container_insert(struct tx *tx, struct arena *a, struct str group_id, const struct network_provider *p,
                            struct str region)
{
	struct str id = id_make(a);
	char text[IP_TEXT];
	int r = block_choose(tx, a, group_id, p->standard, text);
	/* No room left, or a region that a container cannot name: the cluster needs neither. */
	if (r < 0 || !text[0] || !container_region_is_known(str_of(p->name), region))
		return r;
	json_t *body = doc_json(a, STR("{}"));
	json_put_str(body, "id", id);
	json_put_z(body, "providerName", p->name);
	json_put_z(body, "svcCidrBlock", text);
	if (is_gcp(p))
		json_put(body, p->field, json_pack("[s%]", region.p, region.n));
	else
		json_put_str(body, p->field, region);
	struct doc d = {
	        .kind = STR(CONTAINER_KIND), .id = id, .parent = group_id, .created_ms = clock_now_ms(), .rev = 1};
	r = lifecycle_create(tx, a, &d, body);
	d.body = json_text(a, body);
	if (r == 0)
		r = tx_insert(tx, &d);
	return r < 0 ? r : lifecycle_ask(tx, a, &d);
}

/* Google's grows with the regions in use; empty means all. */
static int regions_add(struct tx *tx, struct arena *a, const struct network_provider *p, struct doc *d,
                       struct str region)
{
	json_t *body = doc_json(a, d->body), *list = json_object_get(body, p->field);
	if (!is_gcp(p) || !json_array_size(list) || json_has(list, region) ||
	    !container_region_is_known(str_of(p->name), region))
		return 0;
	json_add_str(list, region);
	d->body = json_text(a, body);
	return tx_update(tx, d);
}

static int region_provide(struct tx *tx, struct arena *a, struct str group_id, const struct network_provider *p,
                          struct str region)
{
	struct doc *docs;
	size_t count;
	int r = containers_load(tx, a, group_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (container_has(p, doc_json(a, docs[i].body), region)) {
			r = regions_add(tx, a, p, &docs[i], region);
			return r < 0 ? r : lifecycle_ask(tx, a, &docs[i]);
		}
	return r < 0 ? r : container_insert(tx, a, group_id, p, region);
}

int containers_provide(struct tx *tx, struct arena *a, struct str group_id, const json_t *cluster)
{
	struct region_walk walk = {.spec = 0};
	const json_t *config;
	int r = 0;
	while (r == 0 && (config = region_next(cluster, &walk))) {
		const struct network_provider *p = network_provider_find(json_field(config, "providerName"));
		if (p) /* the shared tiers live in networks of their own */
			r = region_provide(tx, a, group_id, p, json_field(config, "regionName"));
	}
	return r;
}

/* The network. */

static void text_add(json_t *body, const char *field, const char *prefix, size_t n, const char *alphabet)
{
	char random[32];
	random_text(random, n, alphabet);
	json_put(body, field, json_sprintf("%s%s", prefix, random));
}

int container_provisioned(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	json_t *body = step->body;
	struct str provider = json_field(body, "providerName");
	char name[64];
	if (str_is(provider, "AWS")) {
		text_add(body, "vpcId", "vpc-", 17, HEX);
	} else if (str_is(provider, "AZURE")) {
		text_add(body, "azureSubscriptionId", "", 24, HEX);
		text_add(body, "vnetName", "vnet_", 8, LETTERS);
	} else {
		snprintf(name, sizeof name, "nt-%.*s-", STR_ARG(step->doc->id));
		text_add(body, "gcpProjectId", "p-", 24, LETTERS);
		text_add(body, "networkName", name, 8, LETTERS);
	}
	return 0;
}
