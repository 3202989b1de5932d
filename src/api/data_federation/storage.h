/* What a storage configuration must be, as far as it can be told without asking anybody. */
#ifndef STEWARD_API_DATA_FEDERATION_STORAGE_H
#define STEWARD_API_DATA_FEDERATION_STORAGE_H

#include "base/json.h"
#include "catalog/schema.h"
#include "engine/federation.h"

#define STORES_MAX 50
#define DATABASES_MAX 50
#define TABLES_MAX 500  /* of all databases */
#define SOURCES_MAX 500 /* of all tables */
#define URLS_MAX 200    /* of a store or a source */
#define NAME_MAX_BYTES 63

/* A configuration in the making of its faults. */
struct storage {
	const json_t *body; /* {"stores", "databases"} */
	struct arena *arena;
	struct faults *faults;
	const struct engine_federation_ops *offered; /* what the engine can read */
	size_t tables, sources;                      /* counted so far */
};

/* "s3": false: nobody knows such stores. */
must_check bool store_kind_of(struct str provider, enum federation_store *ret_kind);
bool store_is_objects(enum federation_store kind);
/* "https://acct.blob.core.windows.net": acct. */
must_check bool azure_account_of(struct str url, struct str *ret_account);

/* Faults have the place of what is wrong: storage.databases[0].collections[2].dataSources[1].path. */
void storage_check(const json_t *body, const struct engine_federation_ops *offered, struct arena *a,
                   struct faults *faults);

/* stores.c */
void stores_check(struct storage *s);
/* URLs of a store, or of a source. */
void urls_check(struct storage *s, const json_t *owner, bool insecure, struct str place);
/* sources.c: a source of a table at that place; wildcard: the table is "*". */
void source_check(struct storage *s, const json_t *source, bool wildcard, struct str place);
/* views.c: those of a database. */
void views_check(struct storage *s, const json_t *database, struct str place);

#endif
