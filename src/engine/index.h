/* Indexes: built on running databases without keeping writers out. */
#ifndef STEWARD_ENGINE_INDEX_H
#define STEWARD_ENGINE_INDEX_H

#include "engine/core.h"

enum engine_key {
	KEY_ASCENDING,
	KEY_DESCENDING,
	KEY_HASHED,
	KEY_TEXT,    /* words, for searches in them */
	KEY_PLACE,   /* points of a plane */
	KEY_WILDCARD /* all that lies in a document: the field is the column that has it */
};

struct engine_index_key {
	const char *field; /* a column, or COLUMN.NAME.NAME of a document in it */
	enum engine_key kind;
};

enum engine_test { TEST_EQUAL, TEST_LESS, TEST_AT_MOST, TEST_MORE, TEST_AT_LEAST, TEST_THERE, TEST_ABSENT };

/* What rows in a partial index fulfil: one of the values, where it compares. */
struct engine_index_test {
	const char *field;
	enum engine_test kind;
	const char *const *values;
	size_t value_count;
};

/* A search index: its fields are its definition's, and it has no keys. `id` is the same for all builds of it, of
 * which one at a time answers queries; the others have no effect. */
struct engine_search {
	const char *id, *name;
	const char *definition; /* JSON that search/definition.h reads without a fault; of vectors, search/vector.h */
	const char *place;      /* what comes before faults' paths in it */
	bool vectors;
};

/* Pointers are borrowed for the call. */
struct engine_index {
	const char *cluster_id;
	const char *id; /* of the build, 24 hexadecimal digits: by it a repeated call finds what an earlier one left */
	const char *database, *table, *name;
	const struct engine_index_key *keys; /* all of one kind, or of the first two */
	size_t key_count;
	const struct engine_index_test *tests; /* all hold */
	size_t test_count;
	/* How text is ordered, in the words of BCP 47 ("de-AT-u-ks-level1"); "": by its bytes; NULL: as the column is.
	 * plain: a locale alone. loose: texts that differ can be equal. */
	const char *collation;
	bool collation_plain, collation_loose;
	const char *language; /* of text keys: "english"; "simple": none */
	bool unique, sparse;
	const struct engine_search *search; /* NULL: an ordinary index */
	unsigned wait_seconds;              /* for others' transactions */
	unsigned most_seconds;              /* that all of it may take */
};

#define INDEX_OUTGROWN 2 /* its table has become many times larger */

/* An index that a build has made, or left, and that is nobody's: a restore brought it back, or a service was killed. */
#define ENGINE_STRAYS_MAX 50
struct engine_index_stray {
	const char *database, *id; /* of the build */
	bool built;                /* drop() takes it away, else clean() */
};
struct engine_index_strays {
	struct engine_index_stray list[ENGINE_STRAYS_MAX];
	size_t count;
};

/* Errors beside the usual: -EINVAL: it cannot be built so; *ret_why says why, and of check() *ret_field names the field
 * of the API's request. -EEXIST is the same when the name is taken. Texts are static or in the arena. */
struct engine_index_ops {
	/* Whether there is such a table, with such columns. Asks the database and changes nothing; a few seconds at
	 * most. -EAGAIN: the database does not answer now. */
	int (*check)(struct engine *e, const struct engine_index *want, struct arena *a, const char **ret_field,
	             const char **ret_why);
	/* Builds it, on the primary or shard after shard. Waits for a moment; what takes longer goes on by itself, and
	 * -EAGAIN says when to call again (see engine_progress) for how far it is or what came of it. Repeated after a
	 * fault or a new start, it goes on from whatever it finds. -ECANCELED: the service stops. */
	int (*build)(struct engine *e, const struct engine_index *want, struct engine_progress *progress,
	             struct arena *a, const char **ret_why);
	/* Takes away what a build has left that will not go on. 0 too when there is nothing. Blocks. */
	int (*clean)(struct engine *e, const struct engine_index *want, struct arena *a, const char **ret_why);
	/* Takes away a search index that was built, and what is left of its build. If it answers queries, none do then.
	 * 0 too when there is nothing. Blocks. */
	int (*drop)(struct engine *e, const struct engine_index *want, struct arena *a, const char **ret_why);
	/* Whether a search index that was built still answers queries: 1 or 0. check() tells why it does not, or that
	 * it can be built again. INDEX_OUTGROWN: it does, and should be built anew beside it. -EAGAIN: the database
	 * does not answer now. A few seconds at most. */
	int (*look)(struct engine *e, const struct engine_index *want, struct arena *a);
	/* Brings what the scores of a search index stand on up to date, where that is due. Blocks, for some minutes at
	 * most. NULL: an engine of this kind has no scores. -ECANCELED: the service stops. */
	int (*count)(struct engine *e, const struct engine_index *want, const _Atomic bool *stop, struct arena *a);
	/* What builds have left in any of the cluster's databases, also those that are under way: who wants strays
	 * alone looks afterwards whether there are such. NULL: an engine of this kind has none. */
	int (*strays)(struct engine *e, const char *cluster_id, struct arena *a,
	              struct engine_index_strays *ret_strays);
};

#endif
