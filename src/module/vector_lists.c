/* See vector_lists.h. Centers are read without the session's rights: everybody who writes needs them. A row of the
 * table is never changed while an index names it, so a session keeps what it has read. */
#include "module/vector_lists.h"

#include <access/genam.h>
#include <access/htup_details.h>
#include <access/table.h>
#include <catalog/namespace.h>
#include <catalog/pg_type.h>
#include <math.h>
#include <miscadmin.h>
#include <utils/acl.h>
#include <utils/builtins.h>
#include <utils/fmgroids.h>
#include <utils/lsyscache.h>
#include <utils/memutils.h>
#include <utils/rel.h>

#define KEPT 4 /* in a session */

/* The one that was used last comes first. */
static struct lists *kept[KEPT];

enum { LISTS_VERSION = 1, LISTS_REL, LISTS_KIND, LISTS_DIMENSIONS, LISTS_CENTERS, LISTS_ROWS, LISTS_CODING };

/* The column came later than the others. */
static enum vector_coding coding_read(HeapTuple row, TupleDesc columns, size_t n)
{
	bool null = columns->natts < LISTS_CODING;
	Datum value = null ? (Datum)0 : heap_getattr(row, LISTS_CODING, columns, &null);
	enum vector_coding coding = null ? (enum vector_coding)0 : (enum vector_coding)DatumGetChar(value);
	return vector_coding_fits(coding, n) ? coding : (enum vector_coding)0;
}

static struct lists *lists_make(const char *version, HeapTuple row, TupleDesc columns)
{
	bool null;
	MemoryContext context =
	        AllocSetContextCreateInternal(TopMemoryContext, "steward vectors", ALLOCSET_SMALL_SIZES);
	struct lists *l = MemoryContextAllocZero(context, sizeof *l);
	bytea *bytes = DatumGetByteaPP(heap_getattr(row, LISTS_CENTERS, columns, &null));
	size_t n = (size_t)DatumGetInt32(heap_getattr(row, LISTS_DIMENSIONS, columns, &null));
	size_t count = VARSIZE_ANY_EXHDR(bytes) / (n * sizeof(float));
	float *at = MemoryContextAllocZero(context, (count ? count : 1) * n * sizeof(float)),
	      *halves = MemoryContextAlloc(context, count * sizeof(float) + 1);
	memcpy(at, VARDATA_ANY(bytes), count * n * sizeof(float));
	vector_halves(at, n, count, halves);
	strlcpy(l->version, version, sizeof l->version);
	l->context = context;
	l->table = DatumGetObjectId(heap_getattr(row, LISTS_REL, columns, &null));
	l->kind = (enum vector_kind)DatumGetChar(heap_getattr(row, LISTS_KIND, columns, &null));
	l->coding = coding_read(row, columns, n);
	l->centers = (struct vector_centers){.n = n, .count = count, .at = at, .halves = halves};
	l->last = MemoryContextAlloc(context, n * sizeof(float));
	return l;
}

/* NULL: there is no such row. */
static struct lists *lists_read(const char *version)
{
	Oid schema = get_namespace_oid("steward_vectors", true);
	Oid table = OidIsValid(schema) ? get_relname_relid("lists", schema) : InvalidOid;
	struct lists *l = NULL;
	ScanKeyData key;
	if (!OidIsValid(table))
		return NULL;
	Relation rel = table_open(table, AccessShareLock);
	Oid index = RelationGetPrimaryKeyIndex(rel);
	Datum wanted = CStringGetTextDatum(version);
	ScanKeyInit(&key, LISTS_VERSION, BTEqualStrategyNumber, F_TEXTEQ, wanted);
	SysScanDesc scan = systable_beginscan(rel, index, OidIsValid(index), NULL, 1, &key);
	HeapTuple row = systable_getnext(scan);
	if (HeapTupleIsValid(row))
		l = lists_make(version, row, RelationGetDescr(rel));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return l;
}

static void kept_put(struct lists *l, int place)
{
	memmove(kept + 1, kept, (size_t)place * sizeof *kept);
	kept[0] = l;
}

struct lists *lists_of(text *version)
{
	char name[VERSION_BYTES];
	size_t n = VARSIZE_ANY_EXHDR(version);
	if (n >= sizeof name)
		return NULL;
	memcpy(name, VARDATA_ANY(version), n);
	name[n] = 0;
	for (int i = 0; i < KEPT; i++)
		if (kept[i] && strcmp(kept[i]->version, name) == 0) {
			kept_put(kept[i], i);
			return kept[0];
		}
	struct lists *l = lists_read(name);
	if (!l)
		return NULL;
	if (kept[KEPT - 1])
		MemoryContextDelete(kept[KEPT - 1]->context);
	kept_put(l, KEPT - 1);
	return l;
}

const float *lists_prepared(const struct lists *l, ArrayType *v)
{
	static float room[VECTOR_MOST];
	const float *at = l->centers.n <= VECTOR_MOST ? vector_numbers(v, l->centers.n) : NULL;
	return at && vector_prepare(l->kind, at, l->centers.n, room) ? room : NULL;
}

size_t lists_cell(struct lists *l, const float *prepared)
{
	size_t bytes = l->centers.n * sizeof(float);
	if (l->asked && memcmp(l->last, prepared, bytes) == 0)
		return l->last_cell;
	l->last_cell = vector_nearest(&l->centers, prepared);
	memcpy(l->last, prepared, bytes);
	l->asked = true;
	return l->last_cell;
}

const float *lists_center(const struct lists *l, size_t cell)
{
	return l->centers.at + cell * l->centers.n;
}

/* What a reader of the table may know, whatever rows of it are hidden: a center is the mean of several. */
void lists_reader_check(Oid table)
{
	Oid user = GetUserId();
	if (pg_class_aclcheck(table, user, ACL_SELECT) != ACLCHECK_OK &&
	    pg_attribute_aclcheck_all(table, user, ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(table));
}

const float *vector_numbers(ArrayType *v, size_t n)
{
	if (ARR_NDIM(v) != 1 || ARR_HASNULL(v) || ARR_ELEMTYPE(v) != FLOAT4OID || (size_t)ARR_DIMS(v)[0] != n)
		return NULL;
	return (const float *)ARR_DATA_PTR(v);
}
