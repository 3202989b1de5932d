/* Files out of chunks. */
#ifndef STEWARD_REPOSITORY_READ_H
#define STEWARD_REPOSITORY_READ_H

#include "repository/common.h"
#include "repository/format.h"

struct manifest_file; /* manifest.h */

struct chunk_reader {
	struct repository *r;
	unsigned char *window, *batch;
	size_t window_n;
	uint32_t window_at;
	unsigned char window_pack[PACK_ID], key_pack[PACK_ID], key[REPO_KEY_BYTES];
	bool window_set, key_set;
	char *whole; /* a pack that was mended; NULL: none was */
	size_t whole_n;
	unsigned char whole_pack[PACK_ID];
};
void reader_setup(struct chunk_reader *rd, struct repository *r);
void reader_free(struct chunk_reader *rd);
/* A part of a file; bit i of `zeros`: its chunk i is all zeros. */
typedef int reader_sink(void *ctx, uint64_t offset, const unsigned char *bytes, size_t n, uint32_t zeros);
/* All of a file, its CRC-32C compared at the end. */
must_check int reader_file(struct chunk_reader *rd, const struct manifest_file *f, reader_sink *sink, void *ctx);
/* Its parts: BATCH_CHUNKS chunks from the first on, into BATCH_BYTES; and the comparison at the end. */
size_t reader_batch_bytes(const struct manifest_file *f, size_t first);
must_check int reader_batch(struct chunk_reader *rd, const struct manifest_file *f, size_t first, unsigned char *out,
                            uint32_t *ret_zeros);
must_check int reader_sum_compare(const struct manifest_file *f, uint32_t sum);
/* One chunk, by its id; `out` takes CHUNK_BYTES. */
must_check int reader_chunk(struct chunk_reader *rd, const unsigned char id[CHUNK_ID], unsigned char *out,
                            size_t *ret_n);

#endif
