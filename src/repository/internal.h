/* What the files of this folder share: keys, sealed objects, chunks, packs and the index of chunks. Numbers are stored
 * with their lowest byte first. docs/backup-format.md tells the formats. */
#ifndef STEWARD_REPOSITORY_INTERNAL_H
#define STEWARD_REPOSITORY_INTERNAL_H

#include "base/buf.h"
#include "base/data_key.h"
#include "repository/repository.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define CHUNK_BYTES 32768
#define CHUNK_ID 16
#define PACK_ID 16
#define PACK_NAME ((size_t)2 * PACK_ID)
#define PACK_BYTES ((size_t)16 << 20)
#define PACK_CHUNKS 65536               /* at most */
#define PACK_LONGEST ((size_t)20 << 20) /* with its index */
#define PARITY_MOST 16                  /* packs that share one at most */
#define PACK_HEADER 32
#define PACK_TRAILER 8
#define TAG_BYTES 16
#define NONCE_BYTES 12
#define HASH_BYTES 32
#define BATCH_CHUNKS 32 /* that are looked up together */
#define BATCH_BYTES ((size_t)BATCH_CHUNKS * CHUNK_BYTES)
#define OBJECT_NAME 512
#define MANIFEST_MAX ((size_t)4 << 30)

static inline void put_u32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static inline void put_u64(unsigned char *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static inline uint32_t get_u32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t get_u64(const unsigned char *p)
{
	return (uint64_t)get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

/* --- why.c: words about the thread's last failure */
/* Returns `code`. */
int repo_fail(int code, const char *format, ...) printf_like(2, 3);
/* The same about an object, with what the object store says. */
int repo_fail_object(int code, const char *name);
bool name_part_ok(const char *part);

/* --- keys.c: what a project's objects are sealed with */
struct repo_key {
	char id[DATA_KEY_ID + 1];        /* of the project's data key; "": of the service's alone */
	const unsigned char *data, *ids; /* REPO_KEY_BYTES each: of objects and packs; of chunks' ids */
	struct data_key memory[2];
	int64_t asked_us; /* when its holder last gave it; with the repository's key_lock */
	struct repo_key *next;
};
/* The first of a repository, which the service's key opens. */
void repo_keys_begin(struct repository *r, const unsigned char data[REPO_KEY_BYTES]);
void repo_keys_free(struct repository *r);
/* Makes the project's key the one for new objects; NULL: the first. */
void repo_keys_choose(struct repository *r, const struct data_key *key);
const struct repo_key *repo_key_current(struct repository *r);
/* By the id of a project's key, asked for where it is not known yet. -EKEYREVOKED, -EAGAIN; -ENOKEY: nobody has it. */
must_check int repo_key_find(struct repository *r, const char *id, const struct repo_key **ret_key);
/* For whoever reads data with it: whether it was taken back since, which happens to earlier keys as to the current one.
 * Sweeps do not ask: what they know and what they cannot open must not change in their midst. A holder that gives no
 * answer takes nothing back. */
must_check int repo_key_check(struct repository *r, const struct repo_key *k);
/* Of these: what is sealed with the key is out of reach, and stays as it is. */
static inline bool repo_key_is_lost(int result)
{
	return result == -EKEYREVOKED || result == -ENOKEY;
}

/* --- crypt.c: OpenSSL and zstd, with contexts that are kept by each thread */
void crypt_mac(const unsigned char key[REPO_KEY_BYTES], const void *bytes, size_t n, unsigned char ret_mac[HASH_BYTES]);
/* HKDF-SHA256 of RFC 5869, 32 bytes. */
void crypt_derive(const unsigned char key[REPO_KEY_BYTES], const void *salt, size_t salt_n, const char *info,
                  unsigned char ret_key[REPO_KEY_BYTES]);
/* AES-256-GCM. `out` takes n + TAG_BYTES. */
void crypt_seal(const unsigned char key[REPO_KEY_BYTES], const unsigned char nonce[NONCE_BYTES], struct str aad,
                const void *plain, size_t n, unsigned char *out);
/* `n` is without the tag, which follows the bytes. -EBADMSG. */
must_check int crypt_open(const unsigned char key[REPO_KEY_BYTES], const unsigned char nonce[NONCE_BYTES],
                          struct str aad, const void *sealed, size_t n, unsigned char *out);
/* Whether sealed bytes would open, of which nothing is kept: begun, added in pieces with the tag behind them, ended.
 * The thread opens nothing else meanwhile. */
struct crypt_proof {
	unsigned char held[TAG_BYTES]; /* the last, which may be the tag */
	size_t n;
	bool broken;
};
void crypt_prove_begin(struct crypt_proof *p, const unsigned char key[REPO_KEY_BYTES],
                       const unsigned char nonce[NONCE_BYTES], struct str aad);
void crypt_prove_add(struct crypt_proof *p, const void *bytes, size_t n);
must_check int crypt_prove_end(struct crypt_proof *p);
/* Compressed size, or 0: it would not be below `room`. `level`: zstd's. */
size_t crypt_compress(int level, const void *plain, size_t n, void *out, size_t room);
/* Exactly n bytes; -EBADMSG. */
must_check int crypt_expand(const void *bytes, size_t packed, void *out, size_t n);

/* --- sealed.c: objects that are encrypted and authenticated as a whole, bound to their name */
enum sealed_kind {
	SEALED_KEY = 'K',
	SEALED_INDEX = 'I',
	SEALED_MANIFEST = 'M',
	SEALED_WAL = 'W',
	SEALED_SECONDS = 'S',
	SEALED_LEASE = 'L',
	SEALED_DAMAGE = 'D',
	SEALED_RECORD = 'C',
	SEALED_PARITY = 'X'
};
#define RECORDS "catalogue/"
#define RECORD_MAX ((size_t)1 << 20)
#define SEALED_HEADER 32 /* or, with the id of a project's key, the longer */
#define SEALED_HEADER_MAX 48
#define SEALED_LEAST (SEALED_HEADER + TAG_BYTES)
#define SEALED_EXTRA (SEALED_HEADER_MAX + TAG_BYTES)
/* Added to `out`. */
void sealed_make(const struct repo_key *key, enum sealed_kind kind, const char *name, const void *plain, size_t n,
                 struct buf *out);
/* On the heap, NUL-terminated. */
must_check int sealed_open(const struct repo_key *key, enum sealed_kind kind, const char *name, const void *bytes,
                           size_t n, size_t max, char **ret_plain, size_t *ret_n);
/* The same with whichever of the repository's keys it was sealed with; ret_key may be NULL. */
must_check int sealed_open_any(struct repository *r, enum sealed_kind kind, const char *name, const void *bytes,
                               size_t n, size_t max, char **ret_plain, size_t *ret_n, const struct repo_key **ret_key);
/* The same of an object of the repository; `name` is below the project. ret_stored may be NULL. */
must_check int object_put(struct repository *r, enum sealed_kind kind, const char *name, const void *plain, size_t n,
                          uint64_t *ret_stored);
must_check int object_put_as(struct repository *r, const struct repo_key *key, enum sealed_kind kind, const char *name,
                             const void *plain, size_t n, uint64_t *ret_stored);
must_check int object_get(struct repository *r, enum sealed_kind kind, const char *name, size_t max, char **ret_plain,
                          size_t *ret_n);
must_check int object_get_key(struct repository *r, enum sealed_kind kind, const char *name, size_t max,
                              char **ret_plain, size_t *ret_n, const struct repo_key **ret_key);
must_check int object_delete(struct repository *r, const char *name);
must_check int object_size(struct repository *r, const char *name, uint64_t *ret_size);
/* Names are below the project. */
must_check int object_list(struct repository *r, const char *prefix, objects_visit *visit, void *ctx);
/* The name in the object store, in a buffer of OBJECT_NAME. */
const char *object_place(const struct repository *r, const char *name, char *buf);

/* --- chunk.c */
struct chunk_entry { /* of a pack's index, as it is stored */
	unsigned char id[CHUNK_ID];
	uint32_t offset; /* with CHUNK_DAMAGED, in memory only: it did not open */
	uint32_t stored; /* with its tag */
	uint32_t plain;  /* CHUNK_PACKED: it is compressed */
};
#define CHUNK_PACKED 0x80000000u
#define CHUNK_DAMAGED (UINT32_C(1) << 31) /* no pack is that long */
#define CHUNK_ENTRY 28
struct chunk_place {
	unsigned char pack[PACK_ID];
	const struct repo_key *key;                  /* of the pack */
	uint32_t number, offset, stored, plain, end; /* end: of the pack's chunks */
	bool found, doubted;                         /* doubted: it did not open once, and there is no other copy */
};
extern const unsigned char chunk_zero_id[CHUNK_ID];
bool chunk_is_zero(const void *bytes, size_t n);
bool chunk_id_is_zero(const unsigned char id[CHUNK_ID]);
void chunk_id(const struct repo_key *k, const void *bytes, size_t n, unsigned char ret_id[CHUNK_ID]);
/* `out` takes CHUNK_BYTES + TAG_BYTES; fills stored and plain of the entry, which has its id. */
void chunk_seal(const unsigned char pack_key[REPO_KEY_BYTES], uint32_t number, struct chunk_entry *e, const void *bytes,
                size_t n, unsigned char *out);
/* `out` takes CHUNK_BYTES. */
must_check int chunk_open(const unsigned char pack_key[REPO_KEY_BYTES], const unsigned char id[CHUNK_ID],
                          const struct chunk_place *at, const unsigned char *stored, unsigned char *out);

/* --- parity.h */
struct parity_builder {
	pthread_mutex_t lock;
	struct buf bytes;
	struct parity_member *members; /* room for PARITY_MOST */
	uint32_t count;
	unsigned most; /* 0: none is made */
};
struct parities {
	pthread_mutex_t lock, refreshing, mending;
	struct parity_group *groups;
	size_t count, room;
	unsigned char (*damaged)[PACK_ID]; /* that do not tell what they are of, as of the last look */
	size_t damaged_count;
};

/* --- pack.c */
struct pack_builder {
	const struct repo_key *of;
	unsigned char id[PACK_ID], key[REPO_KEY_BYTES];
	struct buf bytes;
	struct chunk_entry *entries;
	uint32_t count, room;
	struct parity_builder *parity; /* of what is put */
};
void pack_key(const struct repo_key *k, const unsigned char id[PACK_ID], unsigned char ret_key[REPO_KEY_BYTES]);
/* All chunks of a pack, and their ids, are of one key. */
void pack_add(const struct repo_key *k, struct pack_builder *b, const unsigned char id[CHUNK_ID], const void *bytes,
              size_t n);
bool pack_is_full(const struct pack_builder *b);
/* Puts what there is, the index after the pack, and tells the index in memory; then the builder is empty. */
must_check int pack_flush(struct repository *r, struct pack_builder *b, uint64_t *ret_stored);
void pack_builder_free(struct pack_builder *b);
void pack_name(const unsigned char id[PACK_ID], const char *folder, char ret_name[64]);
must_check bool pack_name_parse(const char *text, unsigned char ret_id[PACK_ID]);
/* Entries on the heap. */
must_check int pack_index_get(struct repository *r, const unsigned char id[PACK_ID], struct chunk_entry **ret_entries,
                              uint32_t *ret_count, const struct repo_key **ret_key);
must_check int pack_footer_get(struct repository *r, const unsigned char id[PACK_ID], struct chunk_entry **ret_entries,
                               uint32_t *ret_count, const struct repo_key **ret_key);
must_check int pack_index_parse(const unsigned char *plain, size_t n, struct chunk_entry **ret_entries,
                                uint32_t *ret_count);
/* Puts the index object of a pack that has lost it. */
must_check int pack_index_put(struct repository *r, const struct repo_key *k, const unsigned char id[PACK_ID],
                              const struct chunk_entry *entries, uint32_t count, uint64_t *ret_stored);
/* The whole pack on the heap, its header, entries and index compared with its name; -EBADMSG. */
must_check int pack_get(struct repository *r, const unsigned char id[PACK_ID], char **ret_bytes, size_t *ret_n,
                        struct chunk_entry **ret_entries, uint32_t *ret_count, const struct repo_key **ret_key);

/* --- damage.c: notes of chunks that did not open */
void damage_note(struct repository *r, const unsigned char pack[PACK_ID], const uint32_t *numbers, size_t count);
void damage_forget(struct repository *r, const unsigned char pack[PACK_ID]);
/* Into the index. */
must_check int damage_load(struct repository *r);

/* --- index.c: all chunks of the repository, in memory */
struct pack_known {
	unsigned char id[PACK_ID];
	const struct repo_key *key;
	struct chunk_entry *entries;
	uint32_t count, end; /* end: of its chunks */
	/* The note of its damage that was read last, by its size and time; 0: none was. */
	uint64_t note_size;
	int64_t note_ms;
};
struct chunk_slot {
	uint32_t pack, entry; /* pack 0: free; else its number + 1 */
};
struct chunk_index {
	pthread_rwlock_t lock;
	pthread_mutex_t refreshing;
	struct pack_known *packs;
	size_t count, room;
	struct chunk_slot *slots;
	size_t slot_count, used;
	_Atomic bool loaded;
};
void index_setup(struct chunk_index *x);
void index_free(struct chunk_index *x);
/* Takes the entries. */
void index_add(struct repository *r, const struct repo_key *key, const unsigned char pack[PACK_ID],
               struct chunk_entry *entries, uint32_t count);
/* The key of a pack; NULL: it is not known. */
const struct repo_key *index_key(struct repository *r, const unsigned char pack[PACK_ID]);
/* A chunk did not open: from now on another copy is found, or it is doubted, so that the next writer stores it again.
 * That is noted in the repository. */
void index_distrust(struct repository *r, const struct chunk_place *at);
/* The same of all chunks of a pack that do not end before `length`: it is cut off. */
void index_cut(struct repository *r, const unsigned char pack[PACK_ID], uint64_t length);
/* The same of chunks by their numbers, without the note. */
void index_doubt(struct repository *r, const unsigned char pack[PACK_ID], const uint32_t *numbers, size_t count);
/* Whether the note of a pack's damage was read since it was written; or says nothing, because the pack is not known. */
bool index_knows_note(struct repository *r, const unsigned char pack[PACK_ID], uint64_t size, int64_t modified_ms);
void index_note(struct repository *r, const unsigned char pack[PACK_ID], uint64_t size, int64_t modified_ms);
/* A pack that is whole again: none of its chunks is doubted. Takes the entries. */
void index_trust(struct repository *r, const struct repo_key *key, const unsigned char pack[PACK_ID],
                 struct chunk_entry *entries, uint32_t count);
/* Whether a chunk of the pack is doubted. */
bool index_doubts(struct repository *r, const unsigned char pack[PACK_ID]);
/* As the object store has it now. */
must_check int index_refresh(struct repository *r);
/* For each id that is not that of zeros. */
void index_find(struct repository *r, const unsigned char *ids, size_t count, struct chunk_place *ret);

/* --- lease.c */
struct lease;
enum lease_kind { LEASE_WRITE = 'w', LEASE_SWEEP = 's' };
must_check int lease_begin(struct repository *r, enum lease_kind kind, struct lease **ret_lease);
void lease_end(struct lease *l); /* accepts NULL */
struct lease_others {
	size_t writers, sweepers;
	int64_t now_ms; /* by the object store's clock */
};
/* Takes away those whose owners are gone. -ESTALE: our own is not there any more. */
must_check int lease_look(struct lease *l, struct lease_others *ret_others);
/* -ESTALE: it was not renewed for so long that others may take its owner for dead. Asks nobody. */
must_check int lease_check(struct lease *l);

/* --- manifest.c */
#define MANIFEST_CHECKSUM "CRC32C"
enum manifest_kind { MANIFEST_FILE = 'F', MANIFEST_DIRECTORY = 'D' };
struct manifest_file {
	const char *path;
	char kind;
	unsigned mode;
	int64_t modified_s;
	uint64_t size;
	uint32_t sum;             /* CRC-32C */
	bool summed;              /* one of an earlier version is not */
	const unsigned char *ids; /* one after the other */
	size_t id_count;
};
struct repo_manifest {
	struct repository *r;
	const struct repo_key *key; /* of its chunks' ids */
	char *plain;
	json_t *head;
	struct manifest_file *files;
	size_t count;
	struct repo_amount amount;
};
bool manifest_path_ok(struct str path);
void manifest_write(struct buf *out, const json_t *head, const struct manifest_file *files, size_t count);
/* The files' lengths, times and checksums as PostgreSQL's backup_manifest; and the newest time. */
void manifest_for_postgres(struct buf *out, const struct manifest_file *files, size_t count, const json_t *wal_ranges,
                           int64_t *ret_newest_s);
/* Takes `plain`. */
must_check int manifest_read(struct repository *r, char *plain, size_t n, struct repo_manifest **ret_manifest);
void manifest_name(char ret_name[OBJECT_NAME], const char *cluster, const char *snapshot, const char *set);
/* By its name below the project. */
must_check int manifest_get(struct repository *r, const char *name, struct repo_manifest **ret_manifest);

/* --- read.c */
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

/* --- write.c */
/* A file whose chunks come from another repository. */
must_check int writer_copy_file(struct repo_writer *w, const struct repo_manifest *m, const struct manifest_file *f,
                                struct chunk_reader *from);

/* --- places.c */
/* New objects are sealed with the key that the project has now. */
must_check int repository_key_refresh(struct repository *r);
/* How long a key that was given is used before its holder is asked again. */
int64_t place_keys_us(const struct repository *r);
/* The project's key of that id, as the service holds it. */
must_check int place_key_get(const struct repository *r, const char *id, struct data_key *ret_key);

/* --- quota.c: bytes that a project takes in a region, where there is a bound: counted by each process as it puts, and
 * anew with each sweep. */
struct quota {
	pthread_mutex_t lock;
	char *place;
	uint64_t most, used;
	bool counted, warned;
	struct quota *next;
};
/* Before chunks or log are put. -EDQUOT. Manifests, indexes, leases and what a sweep writes are never refused. */
must_check int quota_check(struct repository *r);
void quota_add(struct repository *r, uint64_t bytes);
void quota_set(struct repository *r, uint64_t bytes);

struct repository {
	struct repositories *all;
	struct quota *quota; /* NULL: none */
	struct objects *objects;
	char *place; /* "REGION/GROUP/" */
	char *group;
	pthread_mutex_t key_lock;
	struct repo_key *keys; /* the last is the first that it had; none goes before the repository does */
	const struct repo_key *_Atomic current;
	_Atomic int64_t asked_us; /* when the project's key was last asked for; 0: never */
	char *wrapped;            /* what was last put in keys/ID; NULL: it is not known */
	struct chunk_index index;
	struct parities parities;
	unsigned parity; /* packs that share one; 0: none is made */
	struct pace *pace;
	unsigned users;
	uint64_t last_use;
	struct repository *next;
};

#endif
