/* Archived rows in the object store. Who writes a file is asked for its bytes, and who seals one hands them on, so
 * a buffer stands between the two; nothing here holds more of a file than a segment. */
#include "repository/rows.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/data_key.h"
#include "base/id.h"
#include "objects/seal.h"
#include "repository/format.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/places.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FOLDER "rows/"
#define PLAIN ".parquet"
#define SEALED PLAIN ".sealed"
#define PURPOSE "archives"
#define PIECE ((size_t)65536)

static int place_make(const struct repository *r, const char *archive, const char *file, const char *ending,
                      char ret_place[OBJECT_NAME])
{
	char name[OBJECT_NAME];
	if (!id_is_valid(str_of(archive)) || !id_is_valid(str_of(file)))
		return repo_fail(-EINVAL, "no such names");
	snprintf(name, sizeof name, FOLDER "%s/%s%s", archive, file, ending);
	object_place(r, name, ret_place);
	return 0;
}

/* --- sealing what is asked for */

struct sealing {
	objects_read *read;
	void *ctx;
	struct object_seal *seal;
	struct buf out;
	size_t at; /* that was taken of `out` */
	bool ended;
};

static int sealed_keep(void *ctx, const void *bytes, size_t n)
{
	buf_add(&((struct sealing *)ctx)->out, bytes, n);
	return 0;
}

static int piece_seal(struct sealing *s)
{
	char piece[PIECE];
	ssize_t got = s->read(s->ctx, piece, sizeof piece);
	if (got < 0)
		return (int)got;
	s->ended = got == 0;
	return s->ended ? object_seal_end(s->seal) : object_seal_write(s->seal, piece, (size_t)got);
}

static ssize_t sealed_read(void *ctx, void *buf, size_t n)
{
	struct sealing *s = ctx;
	if (s->at == s->out.n)
		s->at = s->out.n = 0;
	while (!s->out.n && !s->ended) {
		int result = piece_seal(s);
		if (result < 0)
			return result;
	}
	size_t left = s->out.n - s->at, some = left < n ? left : n;
	if (some)
		memcpy(buf, s->out.p + s->at, some);
	s->at += some;
	return (ssize_t)some;
}

static int sealed_put(struct repository *r, const char *place, const char *key_id, objects_read *read, void *ctx)
{
	struct sealing s = {.read = read, .ctx = ctx};
	struct data_key key;
	int result = place_key_get(r, key_id, &key);
	if (result < 0)
		return result;
	result = object_seal_begin(&key, str_of(r->group), PURPOSE, sealed_keep, &s, &s.seal);
	data_key_free(&key);
	if (result == 0)
		result = objects_put(r->objects, place, sealed_read, &s);
	object_seal_free(s.seal);
	buf_free(&s.out);
	return result < 0 ? repo_fail_object(result, place) : 0;
}

int repo_rows_put(struct repository *r, const char *archive, const char *file, objects_read *read, void *ctx)
{
	char place[OBJECT_NAME];
	const char *key_id = repo_key_current(r)->id;
	int result = place_make(r, archive, file, key_id[0] ? SEALED : PLAIN, place);
	if (result < 0)
		return result;
	if (key_id[0])
		return sealed_put(r, place, key_id, read, ctx);
	result = objects_put(r->objects, place, read, ctx);
	return result < 0 ? repo_fail_object(result, place) : 0;
}

/* --- opening */

static int key_get(void *ctx, const char *id, struct data_key *ret_key)
{
	return place_key_get(ctx, id, ret_key);
}

static int sealed_get(struct repository *r, const char *place, objects_write *write, void *ctx)
{
	struct object_opening *o = object_open_begin(str_of(r->group), PURPOSE, key_get, r, write, ctx);
	int result = objects_get(r->objects, place, 0, 0, object_open_write, o);
	if (result == 0)
		result = object_open_end(o);
	object_open_free(o);
	if (result == -EBADMSG)
		return repo_fail(result, "%s: is damaged", place);
	return repo_key_is_lost(result) ? result : result < 0 ? repo_fail_object(result, place) : 0;
}

int repo_rows_get(struct repository *r, const char *archive, const char *file, objects_write *write, void *ctx)
{
	char place[OBJECT_NAME];
	int result = place_make(r, archive, file, SEALED, place);
	if (result < 0)
		return result;
	result = sealed_get(r, place, write, ctx);
	if (result != -ENOENT)
		return result;
	result = place_make(r, archive, file, PLAIN, place);
	if (result < 0)
		return result;
	result = objects_get(r->objects, place, 0, 0, write, ctx);
	return result < 0 ? repo_fail_object(result, place) : 0;
}

/* --- what is there */

int repo_rows_delete(struct repository *r, const char *archive, const char *file)
{
	static const char *const endings[] = {SEALED, PLAIN};
	char place[OBJECT_NAME];
	for (size_t i = 0; i < 2; i++) {
		int result = place_make(r, archive, file, endings[i], place);
		if (result < 0)
			return result;
		result = objects_delete(r->objects, place);
		if (result < 0)
			return repo_fail_object(result, place);
	}
	return 0;
}

struct listing {
	repo_rows_visit *visit;
	void *ctx;
};

static int file_listed(void *ctx, const struct object_info *info)
{
	const struct listing *l = ctx;
	const char *name = strrchr(info->name, '/');
	char file[ID_LEN + 1];
	if (!name || strlen(name + 1) <= ID_LEN)
		return 0;
	memcpy(file, name + 1, ID_LEN);
	file[ID_LEN] = 0;
	bool ours = id_is_valid(str_of(file)) &&
	            (strcmp(name + 1 + ID_LEN, PLAIN) == 0 || strcmp(name + 1 + ID_LEN, SEALED) == 0);
	return ours ? l->visit(l->ctx, file) : 0;
}

int repo_rows_list(struct repository *r, const char *archive, repo_rows_visit *visit, void *ctx)
{
	struct listing l = {visit, ctx};
	char prefix[64];
	if (!id_is_valid(str_of(archive)))
		return repo_fail(-EINVAL, "no such archive");
	snprintf(prefix, sizeof prefix, FOLDER "%s/", archive);
	return object_list(r, prefix, file_listed, &l);
}
