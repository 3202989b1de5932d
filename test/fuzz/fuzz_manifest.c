/* Manifests of backups and indexes of packs. Any bytes are read, as if they had been authenticated; of what is a
 * manifest, no path leads out of the directory, and written again it is the same files. */
#include "fuzz.h"

#include "repository/chunk.h"
#include "repository/format.h"
#include "repository/manifest.h"
#include "repository/pack.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_setup();
	return 0;
}

static void files_hold(const struct repo_manifest *m)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct manifest_file *f = &m->files[i];
		HOLDS(f->path[0] != '/' && strncmp(f->path, "../", 3) != 0 && !strstr(f->path, "/../"));
		HOLDS(f->id_count == (f->size + CHUNK_BYTES - 1) / CHUNK_BYTES);
		HOLDS(i == 0 || strcmp(f[-1].path, f->path) < 0);
		for (size_t j = 0; j < f->id_count; j++)
			(void)chunk_id_is_zero(f->ids + j * CHUNK_ID);
	}
}

static void manifest_again(const struct repo_manifest *m)
{
	struct buf out = {0};
	struct repo_manifest *again = NULL;
	json_put_str(m->head, "checksum",
	             STR(MANIFEST_CHECKSUM)); /* earlier ones have none, and are not written again */
	manifest_write(&out, m->head, m->files, m->count);
	char *plain = must_malloc(out.n + 1);
	memcpy(plain, out.p, out.n);
	HOLDS(manifest_read(NULL, plain, out.n, &again) == 0 && again->count == m->count);
	for (size_t i = 0; i < m->count; i++)
		HOLDS(strcmp(m->files[i].path, again->files[i].path) == 0 && m->files[i].size == again->files[i].size);
	repo_manifest_close(again);
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct repo_manifest *m = NULL;
	struct chunk_entry *entries = NULL;
	uint32_t count = 0;
	char *plain = must_malloc(size + 1);
	if (size)
		memcpy(plain, data, size);
	if (manifest_read(NULL, plain, size, &m) == 0) {
		files_hold(m);
		manifest_again(m);
		repo_manifest_close(m);
	}
	if (pack_index_parse(data, size, &entries, &count) == 0) {
		HOLDS((size_t)count * CHUNK_ENTRY == size);
		free(entries);
	}
	return 0;
}
