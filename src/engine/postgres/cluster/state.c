/* CLUSTER/state.json: what the cluster shall be, where its nodes listen, and per set the term and the primary. Written
 * durably before anything is done that depends on it; read when the service starts. */
#include "engine/postgres/cluster/state.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/model/paths.h"

#include <errno.h>
#include <jansson.h>

#define STATE_MAX (1 << 20)

static json_t *node_json(const struct pg_node *n)
{
	json_t *o = json_pack("{s:s,s:i,s:i,s:s,s:s,s:s,s:i,s:i,s:b,s:b,s:i,s:s,s:i,s:i}", "name", n->want.name, "kind",
	                      (int)n->want.kind, "shard", (int)n->want.shard, "provider", n->want.provider, "region",
	                      n->want.region, "size", n->want.instance_size, "diskGB", (int)n->want.disk_gb, "priority",
	                      (int)n->want.priority, "outage", n->want.outage, "removing", n->removing, "slot",
	                      (int)n->slot, "address", n->address, "port", (int)n->port, "set", (int)n->set);
	json_put(o, "ends", json_integer(n->ends));
	json_put(o, "down", json_boolean(n->down));
	return o;
}

/* A text: JSON's numbers are not that large for everybody. */
static json_t *identity_json(uint64_t identity)
{
	char text[24];
	snprintf(text, sizeof text, "%llu", (unsigned long long)identity);
	return json_string(text);
}

static uint64_t identity_of(const json_t *o)
{
	uint64_t identity = 0;
	return json_is_string(o) && str_to_u64(str_of(json_string_value(o)), UINT64_MAX, &identity) ? identity : 0;
}

static json_t *set_json(const struct pg_set *s)
{
	json_t *o = json_pack("{s:i,s:i,s:s}", "set", (int)s->number, "term", (int)s->term, "primary", s->primary);
	if (s->identity)
		json_put(o, "identity", identity_json(s->identity));
	if (s->former)
		json_put(o, "former", identity_json(s->former));
	json_put(o, "failovers", json_integer(s->failovers));
	return o;
}

int pg_state_save(struct pg_cluster *c)
{
	json_t *nodes = json_array(), *sets = json_array(), *params = json_object(), *removed = json_array();
	for (size_t i = 0; i < c->node_count; i++)
		json_array_append_new(nodes, node_json(c->nodes[i]));
	for (size_t i = 0; i < c->set_count; i++)
		json_array_append_new(sets, set_json(&c->sets[i]));
	for (size_t i = 0; i < PG_REMOVED_MAX && c->removed[i]; i++)
		json_array_append_new(removed, identity_json(c->removed[i]));
	for (size_t i = 0; i < c->param_count; i++)
		json_put_z(params, c->params[i].name, c->params[i].value);
	json_t *doc = json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:b,s:b,s:b,s:b,s:o,s:o,s:o,s:o,s:s*}", "id", c->id,
	                        "groupId", c->group_id, "name", c->name, "label", c->label, "projectHash",
	                        c->project_hash, "version", (int)c->version, "upgrading", (int)c->upgrading, "paused",
	                        c->paused, "quorum", c->quorum, "open", c->open, "destroying", c->destroying, "nodes",
	                        nodes, "sets", sets, "params", params, "removed", removed, "audit", c->audit);
	json_put(doc, "user", json_integer((json_int_t)c->user->uid));
	json_put(doc, "giving", json_boolean(c->giving));
	json_put(doc, "slowFixed", json_boolean(c->slow_fixed));
	json_put(doc, "slowMs", json_integer(c->slow_ms));
	if (c->federation) {
		json_put(doc, "federation", json_true());
		json_put(doc, "generation", json_integer(c->generation));
	}
	if (c->federated)
		json_put(doc, "federated", json_true());
	if (c->restoring)
		json_put(doc, "restoring", json_integer((json_int_t)c->restoring));
	if (c->restored[0])
		json_put_z(doc, "restored", c->restored);
	if (c->data_key[0]) {
		char name[2 * PG_FILES_KEY + 1];
		hex_encode(c->files_key, PG_FILES_KEY, name);
		json_put_z(doc, "dataKey", c->data_key);
		json_put_z(doc, "filesKey", name);
		json_put(doc, "locked", json_boolean(c->locked));
	}
	if (c->backup.incarnation[0]) {
		json_t *copies = json_array();
		for (size_t i = 0; i < c->backup.copy_count; i++)
			json_array_append_new(copies, json_string(c->backup.copies[i]));
		json_put(doc, "backup",
		         json_pack("{s:b,s:s,s:s,s:o}", "archive", c->backup.archive, "incarnation",
		                   c->backup.incarnation, "region", c->backup.region, "copies", copies));
	}
	char *text = doc ? json_dumps(doc, JSON_INDENT(1)) : NULL, path[PG_PATH];
	pg_path_set(path, "%s/%s/state.json", c->engine->dir, c->id);
	int r = text ? pg_file_write(c->user, path, text, strlen(text), false) : -EINVAL;
	if (r < 0)
		log_error("engine: cannot write %s: %s", path, strerror(-r));
	free(text);
	json_decref(doc);
	return r;
}

static void text_get(const json_t *o, const char *key, char *ret_text, size_t size)
{
	const char *value = json_string_value(json_object_get(o, key));
	snprintf(ret_text, size, "%s", value ? value : "");
}

static unsigned number_get(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));
	return v < 0 || v > UINT32_MAX ? 0 : (unsigned)v;
}

static struct pg_node *node_of(const json_t *o)
{
	struct pg_node *n = must_calloc(1, sizeof *n);
	n->pidfd = n->probe_fd = -1;
	text_get(o, "name", n->want.name, sizeof n->want.name);
	text_get(o, "provider", n->want.provider, sizeof n->want.provider);
	text_get(o, "region", n->want.region, sizeof n->want.region);
	text_get(o, "size", n->want.instance_size, sizeof n->want.instance_size);
	text_get(o, "address", n->address, sizeof n->address);
	n->want.kind = (enum node_kind)number_get(o, "kind");
	n->want.shard = number_get(o, "shard");
	n->want.disk_gb = number_get(o, "diskGB");
	n->want.priority = number_get(o, "priority");
	n->want.outage = json_is_true(json_object_get(o, "outage"));
	n->removing = json_is_true(json_object_get(o, "removing"));
	n->slot = number_get(o, "slot");
	n->port = number_get(o, "port");
	n->set = number_get(o, "set");
	n->ends = number_get(o, "ends");
	n->down = json_is_true(json_object_get(o, "down"));
	return n;
}

static void parts_get(struct pg_cluster *c, const json_t *doc)
{
	size_t i;
	json_t *o;
	json_array_foreach(json_object_get(doc, "nodes"), i, o) if (c->node_count < sizeof c->nodes / sizeof *c->nodes)
	        c->nodes[c->node_count++] = node_of(o);
	json_array_foreach(json_object_get(doc, "sets"), i, o) if (c->set_count < PG_SETS_MAX)
	{
		struct pg_set *s = &c->sets[c->set_count++];
		s->number = number_get(o, "set");
		s->term = number_get(o, "term");
		text_get(o, "primary", s->primary, sizeof s->primary);
		s->identity = identity_of(json_object_get(o, "identity"));
		s->former = identity_of(json_object_get(o, "former"));
		s->failovers = number_get(o, "failovers");
	}
	for (i = 0; i < PG_REMOVED_MAX; i++)
		c->removed[i] = identity_of(json_array_get(json_object_get(doc, "removed"), i));
	const char *key;
	json_object_foreach(json_object_get(doc, "params"), key,
	                    o) if (c->param_count < PG_PARAMS_MAX && json_is_string(o)) c->params[c->param_count++] =
	        (struct pg_param){must_strdup(key), must_strdup(json_string_value(o))};
}

static void files_key_get(struct pg_cluster *c, const json_t *doc)
{
	char name[2 * PG_FILES_KEY + 1];
	text_get(doc, "filesKey", name, sizeof name);
	for (size_t i = 0; i < PG_FILES_KEY && strlen(name) == 2 * (size_t)PG_FILES_KEY; i++)
		c->files_key[i] = (unsigned char)(hex_value(name[2 * i]) << 4 | hex_value(name[2 * i + 1]));
}

int pg_state_load(struct pg_cluster *c)
{
	char path[PG_PATH], *text;
	pg_path_set(path, "%s/%s/state.json", c->engine->dir, c->id);
	int r = pg_file_read(path, STATE_MAX, &text);
	if (r < 0)
		return r;
	json_error_t error;
	json_t *doc = json_loads(text, 0, &error);
	free(text);
	if (!doc) {
		log_error("engine: %s is damaged at line %d; restore it, or delete the cluster", path, error.line);
		return -EINVAL;
	}
	text_get(doc, "groupId", c->group_id, sizeof c->group_id);
	text_get(doc, "name", c->name, sizeof c->name);
	text_get(doc, "label", c->label, sizeof c->label);
	text_get(doc, "projectHash", c->project_hash, sizeof c->project_hash);
	c->version = number_get(doc, "version");
	c->upgrading = number_get(doc, "upgrading");
	unsigned restoring = number_get(doc, "restoring");
	c->restoring = restoring <= RESTORE_MADE ? (enum pg_restoring)restoring : RESTORE_NOT;
	text_get(doc, "restored", c->restored, sizeof c->restored);
	c->paused = json_is_true(json_object_get(doc, "paused"));
	c->quorum = json_is_true(json_object_get(doc, "quorum"));
	c->destroying = json_is_true(json_object_get(doc, "destroying"));
	/* One from before this was written down runs as it did. */
	c->open = !c->paused && !json_is_false(json_object_get(doc, "open"));
	const char *audit = json_string_value(json_object_get(doc, "audit"));
	c->audit = audit ? must_strdup(audit) : NULL;
	c->slow_fixed = json_is_true(json_object_get(doc, "slowFixed"));
	c->slow_ms = number_get(doc, "slowMs");
	c->federation = json_is_true(json_object_get(doc, "federation"));
	c->federated = json_is_true(json_object_get(doc, "federated"));
	c->generation = json_number(doc, "generation");
	text_get(doc, "dataKey", c->data_key, sizeof c->data_key);
	c->locked = json_is_true(json_object_get(doc, "locked"));
	files_key_get(c, doc);
	const json_t *backup = json_object_get(doc, "backup");
	c->backup.archive = json_is_true(json_object_get(backup, "archive"));
	text_get(backup, "incarnation", c->backup.incarnation, sizeof c->backup.incarnation);
	text_get(backup, "region", c->backup.region, sizeof c->backup.region);
	const json_t *copies = json_object_get(backup, "copies");
	for (size_t i = 0; i < json_array_size(copies) && i < ENGINE_COPIES_MAX; i++) {
		const char *region = json_string_value(json_array_get(copies, i));
		if (region)
			snprintf(c->backup.copies[c->backup.copy_count++], sizeof c->backup.copies[0], "%s", region);
	}
	parts_get(c, doc);
	c->giving = json_is_true(json_object_get(doc, "giving"));
	pg_user_recall(c, (uid_t)number_get(doc, "user"));
	json_decref(doc);
	return 0;
}

void pg_state_move(struct pg_cluster *to, struct pg_cluster *from)
{
	memcpy(to->group_id, from->group_id, sizeof to->group_id);
	memcpy(to->name, from->name, sizeof to->name);
	memcpy(to->label, from->label, sizeof to->label);
	memcpy(to->project_hash, from->project_hash, sizeof to->project_hash);
	to->user = (const struct pg_user *)from->user;
	to->giving = from->giving;
	to->version = from->version;
	to->upgrading = from->upgrading;
	to->restoring = from->restoring;
	memcpy(to->restored, from->restored, sizeof to->restored);
	to->paused = from->paused;
	to->backup = from->backup;
	memcpy(to->data_key, from->data_key, sizeof to->data_key);
	memcpy(to->files_key, from->files_key, sizeof to->files_key);
	to->locked = from->locked;
	to->files_open = (bool)from->files_open;
	to->quorum = from->quorum;
	to->federation = from->federation;
	to->federated = from->federated;
	to->generation = from->generation;
	to->slow_fixed = from->slow_fixed;
	to->slow_ms = from->slow_ms;
	memcpy(to->nodes, from->nodes, sizeof to->nodes);
	memcpy(to->sets, from->sets, sizeof to->sets);
	memcpy(to->removed, from->removed, sizeof to->removed);
	memcpy(to->params, from->params, sizeof to->params);
	to->node_count = from->node_count;
	to->set_count = from->set_count;
	to->param_count = from->param_count;
	free(to->audit);
	to->audit = from->audit;
	from->audit = NULL;
	from->node_count = from->set_count = from->param_count = 0;
}
