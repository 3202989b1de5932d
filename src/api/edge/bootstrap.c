/* The first start: an organization, a project, an owner, an API key and a service account, and the file that tells
 * them.
 *
 * The file is on disk under another name before the store commits, and is renamed after: whichever moment a crash
 * picks, either nothing was made, or the credentials are in one of the two files. */
#include "api/alerts/alerts.h"
#include "api/credentials/credentials.h"
#include "api/edge/edge.h"
#include "api/federation/federation.h"
#include "api/kit/verbs.h"
#include "api/sign_in/sign_in.h"

#include "api/projects/projects.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "trail/events.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OWNER_NAME "owner@localhost"
#define SECRET_HOURS 8760

struct first {
	struct arena *arena;
	struct str org_id, group_id, user_id;
	struct new_key key;
	struct new_account account;
	const char *data_dir, *base_url, *ca_file;
	bool writes_file, wipes;
};

#define FILE_NAME "bootstrap.json"
#define FILE_NEXT FILE_NAME ".new" /* until the store has committed */

/* Where the file has what. */
static const struct {
	const char *section, *field; /* section NULL: of the file itself */
	size_t at;
} fields[] = {{NULL, "orgId", offsetof(struct first, org_id)},
              {NULL, "groupId", offsetof(struct first, group_id)},
              {NULL, "userId", offsetof(struct first, user_id)},
              {"apiKey", "id", offsetof(struct first, key.id)},
              {"apiKey", "publicKey", offsetof(struct first, key.public_key)},
              {"apiKey", "privateKey", offsetof(struct first, key.private_key)},
              {"serviceAccount", "id", offsetof(struct first, account.id)},
              {"serviceAccount", "clientId", offsetof(struct first, account.client_id)},
              {"serviceAccount", "secretId", offsetof(struct first, account.secret_id)},
              {"serviceAccount", "clientSecret", offsetof(struct first, account.secret)}};

static struct str *field_at(struct first *f, size_t i)
{
	return (struct str *)(void *)((char *)f + fields[i].at);
}

static json_t *section_of(json_t *root, size_t i)
{
	return fields[i].section ? json_object_get(root, fields[i].section) : root;
}

static const char *path_of(struct arena *a, const char *dir, const char *name)
{
	return arena_printf(a, "%s/%s", dir, name).p;
}

static int fail(const char *what, const char *path, int error)
{
	fprintf(stderr, "steward: cannot %s %s: %s\n", what, path, strerror(-error));
	return error;
}

static int file_write(struct arena *a, const char *dir, const json_t *root)
{
	const char *path = path_of(a, dir, FILE_NEXT);
	char *text = json_dumps(root, JSON_INDENT(2));
	int result = file_replace(path, str_of(text), 0600, FILE_NO_GROUP);
	free(text);
	return result < 0 ? fail("write", path, result) : 0;
}

static int file_put(struct first *f)
{
	json_t *root = json_pack("{s:s, s:s, s:s, s:{}, s:{}}", "baseUrl", f->base_url, "caFile", f->ca_file,
	                         "username", OWNER_NAME, "apiKey", "serviceAccount");
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		json_put_str(section_of(root, i), fields[i].field, *field_at(f, i));
	json_put_str(root, "consoleLink", first_link(f->arena, f->base_url, f->user_id));
	return file_write(f->arena, f->data_dir, json_keep(f->arena, root));
}

static int file_commit(struct arena *a, const char *dir)
{
	const char *from = path_of(a, dir, FILE_NEXT);
	if (rename(from, path_of(a, dir, FILE_NAME)) < 0)
		return fail("rename", from, -errno);
	int result = directory_sync(dir);
	return result < 0 ? fail("sync", dir, result) : 0;
}

int tenant_org(struct tx *tx, struct arena *a, struct str org_id, struct str name, struct str *ret_federation_id)
{
	json_t *body = json_keep(a, json_object());
	json_put_str(body, "id", org_id);
	json_put(body, "isDeleted", json_false());
	json_put_str(body, "name", name);
	json_put(body, "skipDefaultAlertsSettings", json_false());
	int result = doc_insert(tx, "org", org_id, STR_NONE, STR_NONE, json_text(a, body));
	return result < 0 ? result : federation_create(tx, a, org_id, ret_federation_id);
}

int tenant_project(struct tx *tx, struct arena *a, struct str org_id, struct str id, struct str name)
{
	json_t *body = json_keep(a, json_object());
	json_put_str(body, "name", name);
	json_put_str(body, "orgId", org_id);
	project_complete(body, id);
	return doc_insert(tx, "project", id, org_id, name, json_text(a, body));
}

static int make_tenant(struct tx *tx, struct first *f)
{
	struct arena *a = f->arena;
	struct str federation_id;
	int result = tenant_org(tx, a, f->org_id, STR("Organization0"), &federation_id);
	if (result == 0)
		result = tenant_project(tx, a, f->org_id, f->group_id, STR("Project0"));
	if (result == 0)
		result = alerts_defaults_add(tx, a, f->group_id);
	if (result == 0)
		result = doc_insert(tx, "user", f->user_id, STR_NONE, STR_NONE,
		                    arena_printf(a,
		                                 "{\"id\":\"%.*s\",\"username\":\"" OWNER_NAME
		                                 "\",\"firstName\":\"First\",\"lastName\":\"Owner\"}",
		                                 STR_ARG(f->user_id)));
	if (result == 0)
		result = grant_set(tx, a, GRANTEE_USER, f->user_id, true, f->org_id, role_bit("ORG_OWNER"));
	if (result == 0)
		result = tx_ref_put(tx, "user_name", STR(OWNER_NAME), f->user_id);
	return result;
}

static int make_all(struct tx *tx, void *ctx)
{
	struct first *f = ctx;
	struct grant_row owner = {f->org_id, true, role_bit("ORG_OWNER")};
	struct str made;
	/* Of nodes that start together on an empty store, one is first. */
	int result = f->wipes ? tx_wipe(tx) : tx_meta_get(tx, f->arena, "bootstrap", &made);
	if (!f->wipes)
		result = result == 0 ? -EEXIST : result == -ENOENT ? 0 : result;
	if (result == 0)
		result = make_tenant(tx, f);
	if (result == 0)
		result = credential_add_key(tx, f->arena, f->org_id, STR("First key"), &owner, 1, &f->key);
	if (result == 0)
		result = credential_add_account(tx, f->arena, f->org_id, STR("First service account"),
		                                STR("Made by the first start"), &owner, 1, SECRET_HOURS, &f->account);
	if (result == 0)
		result = tx_meta_put(tx, "bootstrap", f->org_id);
	if (result == 0)
		result = event_service(tx, f->arena, "ORG_CREATED", f->org_id, STR_NONE, STR_NONE);
	if (result == 0)
		result = event_service(tx, f->arena, "GROUP_CREATED", f->org_id, f->group_id, STR_NONE);
	if (result == 0 && f->writes_file)
		result = file_put(f);
	return result;
}

/* 0: it has been used; -ENOENT: it is new. */
static int store_used(struct store *store, struct arena *a)
{
	struct str value;
	struct tx *reader = store_reader(store);
	int result = reader ? tx_meta_get(reader, a, "bootstrap", &value) : -EIO;
	store_reader_free(reader);
	return result;
}

static int bootstrap_run(struct store *store, struct first *f, bool *ret_first)
{
	const char *file = path_of(f->arena, f->data_dir, FILE_NAME);
	int result = store_used(store, f->arena);
	if (result < 0 && result != -ENOENT)
		return result;
	if (result == 0) {
		*ret_first = false;
		if (access(file, F_OK) < 0 && access(path_of(f->arena, f->data_dir, FILE_NEXT), F_OK) == 0)
			return file_commit(f->arena, f->data_dir);
		return 0;
	}
	f->org_id = id_make(f->arena);
	f->group_id = id_make(f->arena);
	f->user_id = id_make(f->arena);
	f->writes_file = true;
	result = store_write_wait(store, make_all, f);
	if (result == -EEXIST) {
		*ret_first = false;
		return 0;
	}
	if (result < 0) {
		fprintf(stderr, "steward: cannot write the first organization to the store (error %d)\n", result);
		return result;
	}
	*ret_first = true;
	return file_commit(f->arena, f->data_dir);
}

int bootstrap_ensure(struct store *store, const char *data_dir, const char *base_url, const char *ca_file,
                     bool *ret_first)
{
	struct first f = {.arena = arena_new(), .data_dir = data_dir, .base_url = base_url, .ca_file = ca_file};
	int result = bootstrap_run(store, &f, ret_first);
	arena_free(f.arena);
	return result;
}

int bootstrap_reset(struct store *store, const char *data_dir)
{
	struct first f = {.arena = arena_new(), .data_dir = data_dir, .wipes = true};
	json_t *root = json_load_file(path_of(f.arena, data_dir, FILE_NAME), 0, NULL);
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		struct str *field = field_at(&f, i);
		*field = arena_dup(f.arena, json_field(section_of(root, i), fields[i].field));
	}
	int result = root ? store_write_wait(store, make_all, &f) : -ENOENT;
	json_decref(root);
	arena_free(f.arena);
	return result;
}

int bootstrap_refresh(const char *data_dir, const char *base_url, const char *ca_file)
{
	struct arena *a = arena_new();
	json_t *root = json_load_file(path_of(a, data_dir, FILE_NAME), 0, NULL);
	int result = 0;
	if (root && (!str_is(json_field(root, "baseUrl"), base_url) || !str_is(json_field(root, "caFile"), ca_file) ||
	             !json_object_get(root, "consoleLink"))) {
		json_put_str(root, "consoleLink", first_link(a, base_url, json_field(root, "userId")));
		json_put_z(root, "baseUrl", base_url);
		json_put_z(root, "caFile", ca_file);
		result = file_write(a, data_dir, root);
		if (result == 0)
			result = file_commit(a, data_dir);
	}
	json_decref(root);
	arena_free(a);
	return result;
}
