/* The first start: an organization, a project, an owner, an API key and a service account, and the file that tells
 * them.
 *
 * The file is on disk under another name before the store commits, and is renamed after: whichever moment a crash
 * picks, either nothing was made, or the credentials are in one of the two files. */
#include "api/credentials/credentials.h"
#include "api/edge/edge.h"
#include "api/federation/federation.h"
#include "api/kit/verbs.h"

#include "api/projects/projects.h"
#include "base/clock.h"
#include "base/id.h"
#include "trail/events.h"

#include <errno.h>
#include <fcntl.h>
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

static const char *path_of(struct arena *a, const char *dir, const char *name)
{
	return arena_printf(a, "%s/%s", dir, name).p;
}

static int fail(const char *what, const char *path)
{
	int error = -errno;
	fprintf(stderr, "steward: cannot %s %s: %s\n", what, path, strerror(errno));
	return error;
}

static int file_write(const char *path, struct str text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail("write", path);
	bool ok = write(fd, text.p, text.n) == (ssize_t)text.n && fsync(fd) == 0;
	int result = ok ? 0 : fail("write", path);
	close(fd);
	return result;
}

static int dir_sync(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail("open", dir);
	int result = fsync(fd) == 0 ? 0 : fail("sync", dir);
	close(fd);
	return result;
}

static int file_put(struct first *f)
{
	json_t *root = json_pack(
	        "{s:s, s:s, s:s%, s:s%, s:s%, s:s, s:{s:s%, s:s%, s:s%}, s:{s:s%, s:s%, s:s%, s:s%}}", "baseUrl",
	        f->base_url, "caFile", f->ca_file, "orgId", f->org_id.p, f->org_id.n, "groupId", f->group_id.p,
	        f->group_id.n, "userId", f->user_id.p, f->user_id.n, "username", OWNER_NAME, "apiKey", "id",
	        f->key.id.p, f->key.id.n, "publicKey", f->key.public_key.p, f->key.public_key.n, "privateKey",
	        f->key.private_key.p, f->key.private_key.n, "serviceAccount", "id", f->account.id.p, f->account.id.n,
	        "clientId", f->account.client_id.p, f->account.client_id.n, "secretId", f->account.secret_id.p,
	        f->account.secret_id.n, "clientSecret", f->account.secret.p, f->account.secret.n);
	char *text = json_dumps(root, JSON_INDENT(2));
	json_decref(root);
	int result = file_write(path_of(f->arena, f->data_dir, "bootstrap.json.new"), str_of(text));
	free(text);
	return result;
}

static int file_commit(struct arena *a, const char *dir)
{
	const char *from = path_of(a, dir, "bootstrap.json.new"), *to = path_of(a, dir, "bootstrap.json");
	if (rename(from, to) < 0)
		return fail("rename", from);
	return dir_sync(dir);
}

static int insert(struct tx *tx, const char *kind, struct str id, struct str parent, struct str name, struct str body)
{
	struct doc d = {.kind = str_of(kind),
	                .id = id,
	                .parent = parent,
	                .name = name,
	                .body = body,
	                .created_ms = clock_now_ms()};
	return tx_insert(tx, &d);
}

static int make_tenant(struct tx *tx, struct first *f)
{
	struct arena *a = f->arena;
	struct str federation_id;
	json_t *project =
	        doc_json(a, arena_printf(a, "{\"name\":\"Project0\",\"orgId\":\"%.*s\"}", STR_ARG(f->org_id)));
	project_complete(project, f->group_id);
	int result = insert(tx, "org", f->org_id, STR_NONE, STR_NONE,
	                    arena_printf(a,
	                                 "{\"id\":\"%.*s\",\"isDeleted\":false,\"name\":\"Organization0\","
	                                 "\"skipDefaultAlertsSettings\":false}",
	                                 STR_ARG(f->org_id)));
	if (result == 0)
		result = federation_create(tx, a, f->org_id, &federation_id);
	if (result == 0)
		result = insert(tx, "project", f->group_id, f->org_id, STR("Project0"), json_text(a, project));
	if (result == 0)
		result = insert(tx, "user", f->user_id, STR_NONE, STR_NONE,
		                arena_printf(a,
		                             "{\"id\":\"%.*s\",\"username\":\"" OWNER_NAME "\",\"firstName\":\"First\","
		                             "\"lastName\":\"Owner\"}",
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

static struct str new_id(struct arena *a)
{
	struct id id = id_new();
	return arena_dup(a, id_str(&id));
}

static bool store_is_new(struct store *store, struct arena *a)
{
	struct str value;
	struct tx *reader = store_reader(store);
	int result = tx_meta_get(reader, a, "bootstrap", &value);
	store_reader_free(reader);
	return result == -ENOENT;
}

static int bootstrap_run(struct store *store, struct first *f, bool *ret_first)
{
	const char *file = path_of(f->arena, f->data_dir, "bootstrap.json");
	if (!store_is_new(store, f->arena)) {
		*ret_first = false;
		if (access(file, F_OK) < 0 && access(path_of(f->arena, f->data_dir, "bootstrap.json.new"), F_OK) == 0)
			return file_commit(f->arena, f->data_dir);
		return 0;
	}
	f->org_id = new_id(f->arena);
	f->group_id = new_id(f->arena);
	f->user_id = new_id(f->arena);
	f->writes_file = true;
	int result = store_write_wait(store, make_all, f);
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

static struct str text_at(struct arena *a, const json_t *object, const char *field)
{
	const json_t *value = json_object_get(object, field);
	return json_is_string(value) ? arena_dup(a, (struct str){json_string_value(value), json_string_length(value)})
	                             : STR_NONE;
}

int bootstrap_reset(struct store *store, const char *data_dir)
{
	struct first f = {.arena = arena_new(), .data_dir = data_dir, .wipes = true};
	json_t *root = json_load_file(path_of(f.arena, data_dir, "bootstrap.json"), 0, NULL);
	int result = -ENOENT;
	if (root) {
		const json_t *key = json_object_get(root, "apiKey"), *account = json_object_get(root, "serviceAccount");
		f.org_id = text_at(f.arena, root, "orgId");
		f.group_id = text_at(f.arena, root, "groupId");
		f.user_id = text_at(f.arena, root, "userId");
		f.key.id = text_at(f.arena, key, "id");
		f.key.public_key = text_at(f.arena, key, "publicKey");
		f.key.private_key = text_at(f.arena, key, "privateKey");
		f.account.id = text_at(f.arena, account, "id");
		f.account.client_id = text_at(f.arena, account, "clientId");
		f.account.secret_id = text_at(f.arena, account, "secretId");
		f.account.secret = text_at(f.arena, account, "clientSecret");
		result = store_write_wait(store, make_all, &f);
	}
	json_decref(root);
	arena_free(f.arena);
	return result;
}

int bootstrap_refresh(const char *data_dir, const char *base_url, const char *ca_file)
{
	struct arena *a = arena_new();
	json_t *root = json_load_file(path_of(a, data_dir, "bootstrap.json"), 0, NULL);
	int result = 0;
	if (root && (!str_is(text_at(a, root, "baseUrl"), base_url) || !str_is(text_at(a, root, "caFile"), ca_file))) {
		json_put_z(root, "baseUrl", base_url);
		json_put_z(root, "caFile", ca_file);
		char *text = json_dumps(root, JSON_INDENT(2));
		result = file_write(path_of(a, data_dir, "bootstrap.json.new"), str_of(text));
		free(text);
		if (result == 0)
			result = file_commit(a, data_dir);
	}
	json_decref(root);
	arena_free(a);
	return result;
}
