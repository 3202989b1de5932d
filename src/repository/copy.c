/* A snapshot's copy in another region: what is missing there is opened here and sealed anew there. */
#include "repository/copy.h"

#include "base/arena.h"
#include "repository/common.h"
#include "repository/internal.h"
#include "repository/manifest.h"
#include "repository/read.h"
#include "repository/why.h"
#include "repository/write.h"

#include <errno.h>

static void amount_add(struct repo_amount *sum, const struct repo_amount *more)
{
	sum->files += more->files;
	sum->bytes += more->bytes;
	sum->chunks += more->chunks;
	sum->new_chunks += more->new_chunks;
	sum->stored += more->stored;
}

struct copying {
	const struct repo_progress *progress;
	uint64_t done, total;
};

static int files_copy(struct repo_writer *w, const struct repo_manifest *m, struct copying *c)
{
	const struct repo_progress *p = c->progress;
	struct chunk_reader rd;
	int result = 0;
	reader_setup(&rd, m->r);
	for (size_t i = 0; i < m->count && result == 0; i++) {
		result = writer_copy_file(w, m, &m->files[i], &rd);
		c->done += m->files[i].size;
		if (p && p->tell)
			p->tell(p->ctx, c->done, c->total);
		if (result == 0 && p && p->cancel && *p->cancel)
			result = repo_fail(-ECANCELED, "it was cancelled");
	}
	reader_free(&rd);
	return result;
}

static int set_copy(struct repository *to, const struct repo_manifest *m, const char *cluster, const char *snapshot,
                    const char *set, struct copying *c, struct repo_amount *sum)
{
	struct repo_writer *w = NULL;
	struct repo_amount amount = {0};
	int result = repo_write_begin(to, &w);
	if (result < 0)
		return result;
	result = files_copy(w, m, c);
	if (result < 0) {
		repo_write_abort(w);
		return result;
	}
	result = repo_write_commit(w, cluster, snapshot, set, repo_manifest_facts(m), &amount);
	if (result == -EEXIST) /* an earlier attempt has brought this set over */
		return 0;
	amount_add(sum, &amount);
	return result;
}

int repo_copy(struct repository *from, struct repository *to, const char *cluster, const char *snapshot,
              const struct repo_progress *p, struct repo_amount *ret_amount)
{
	struct arena *a = arena_new();
	struct str *sets;
	size_t count = 0;
	struct repo_amount sum = {0};
	struct copying c = {.progress = p};
	int result = repo_sets(from, a, cluster, snapshot, &sets, &count);
	struct repo_manifest **m = arena_new_array(a, struct repo_manifest *, count + 1);
	for (size_t i = 0; i < count && result == 0; i++) {
		result = repo_manifest_open(from, cluster, snapshot, sets[i].p, &m[i]);
		c.total += result == 0 ? m[i]->amount.bytes : 0;
	}
	for (size_t i = 0; i < count && result == 0; i++)
		result = set_copy(to, m[i], cluster, snapshot, sets[i].p, &c, &sum);
	for (size_t i = 0; i < count; i++)
		repo_manifest_close(m[i]);
	arena_free(a);
	if (result == 0 && ret_amount)
		*ret_amount = sum;
	return result;
}
