/* The SQL functions of vector search. Their schema, steward_vectors, and its table `lists` are made by the service (see
 * README.md); an index is a B-tree over cell() and code(), so that everything else is PostgreSQL's own matter.
 *
 * Those two are evaluated for every row that anybody writes, so they raise no error whatever the row has, and look at
 * no privileges: who writes through a view has none on the table. */
#include "module/vector_best.h"
#include "module/vector_lists.h"

#include <fmgr.h>

#include <access/htup_details.h>
#include <access/table.h>
#include <access/tableam.h>
#include <catalog/pg_type.h>
#include <funcapi.h>
#include <math.h>
#include <miscadmin.h>
#include <utils/builtins.h>
#include <utils/lsyscache.h>
#include <utils/rel.h>
#include <utils/snapmgr.h>

#define SAMPLE_BYTES (64u << 20)
#define CENTERS_BYTES (8u << 20)
#define BEST_MOST 10000

PG_FUNCTION_INFO_V1(steward_vector_cell);
PG_FUNCTION_INFO_V1(steward_vector_code);
PG_FUNCTION_INFO_V1(steward_vector_cells);
PG_FUNCTION_INFO_V1(steward_vector_score);
PG_FUNCTION_INFO_V1(steward_vector_divide);
PG_FUNCTION_INFO_V1(steward_vector_best);
PG_FUNCTION_INFO_V1(steward_vector_best_end);

/* --- vectors */

Datum steward_vector_cell(PG_FUNCTION_ARGS)
{
	struct lists *l = lists_of(PG_GETARG_TEXT_PP(0));
	if (!l)
		PG_RETURN_NULL();
	ArrayType *v = PG_GETARG_ARRAYTYPE_P(1);
	const float *at = lists_prepared(l, v);
	size_t cell = at ? lists_cell(l, at) : 0;
	PG_FREE_IF_COPY(v, 1);
	if (!at)
		PG_RETURN_NULL();
	PG_RETURN_INT32((int32)cell);
}

Datum steward_vector_code(PG_FUNCTION_ARGS)
{
	struct lists *l = lists_of(PG_GETARG_TEXT_PP(0));
	if (!l || !l->coding)
		PG_RETURN_NULL();
	ArrayType *v = PG_GETARG_ARRAYTYPE_P(1);
	const float *at = lists_prepared(l, v);
	PG_FREE_IF_COPY(v, 1);
	if (!at)
		PG_RETURN_NULL();
	size_t size = vector_code_size(l->coding, l->centers.n);
	bytea *code = palloc(VARHDRSZ + size);
	SET_VARSIZE(code, VARHDRSZ + size);
	vector_encode(l->coding, lists_center(l, lists_cell(l, at)), at, l->centers.n, VARDATA(code));
	PG_RETURN_BYTEA_P(code);
}

/* A row is found exactly when it is in a cell: see vector_prepare(). NaN: it is not. */
static double score_of(enum vector_kind kind, const float *row, const float *query, size_t n)
{
	float square = vector_dot(row, row, n);
	if (!isfinite(square) || (kind == VECTOR_COSINE && square < VECTOR_SQUARE_MIN))
		return NAN;
	return vector_score(kind, row, query, n);
}

Datum steward_vector_score(PG_FUNCTION_ARGS)
{
	enum vector_kind kind = (enum vector_kind)PG_GETARG_CHAR(0);
	ArrayType *a = PG_GETARG_ARRAYTYPE_P(1), *b = PG_GETARG_ARRAYTYPE_P(2);
	size_t n = ARR_NDIM(b) == 1 ? (size_t)ARR_DIMS(b)[0] : 0;
	const float *x = n ? vector_numbers(a, n) : NULL, *y = n ? vector_numbers(b, n) : NULL;
	double score = x && y ? score_of(kind, x, y, n) : NAN;
	PG_FREE_IF_COPY(a, 1);
	PG_FREE_IF_COPY(b, 2);
	if (!isfinite(score))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(score);
}

struct ranked {
	float near;
	int32 cell;
};

static int ranked_compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->near != y->near)
		return x->near > y->near ? -1 : 1;
	return x->cell - y->cell;
}

Datum steward_vector_cells(PG_FUNCTION_ARGS)
{
	struct lists *l = lists_of(PG_GETARG_TEXT_PP(0));
	const float *at;
	if (!l)
		PG_RETURN_NULL();
	lists_reader_check(l->table);
	at = lists_prepared(l, PG_GETARG_ARRAYTYPE_P(1));
	if (!at)
		PG_RETURN_NULL();
	size_t count = l->centers.count ? l->centers.count : 1;
	float *near = palloc0(count * sizeof *near);
	struct ranked *order = palloc(count * sizeof *order);
	Datum *cells = palloc(count * sizeof *cells);
	vector_rank(l->kind, &l->centers, at, near);
	for (size_t i = 0; i < count; i++)
		order[i] = (struct ranked){.near = near[i], .cell = (int32)i};
	qsort(order, count, sizeof *order, ranked_compare);
	for (size_t i = 0; i < count; i++)
		cells[i] = Int32GetDatum(order[i].cell);
	PG_RETURN_ARRAYTYPE_P(construct_array(cells, (int)count, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

/* --- the best of many */

Datum steward_vector_best(PG_FUNCTION_ARGS)
{
	MemoryContext context;
	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("it is part of an aggregate")));
	struct best *b = PG_ARGISNULL(0) ? NULL : (struct best *)PG_GETARG_POINTER(0);
	for (int i = 1; i <= 5; i++)
		if (PG_ARGISNULL(i)) {
			if (!b)
				PG_RETURN_NULL();
			PG_RETURN_POINTER(b);
		}
	ArrayType *v = PG_GETARG_ARRAYTYPE_P(2), *query = PG_GETARG_ARRAYTYPE_P(3);
	size_t n = ARR_NDIM(query) == 1 ? (size_t)ARR_DIMS(query)[0] : 0;
	const float *x = n ? vector_numbers(v, n) : NULL, *y = n ? vector_numbers(query, n) : NULL;
	struct found one = {.tid = *(ItemPointer)PG_GETARG_POINTER(4),
	                    .score = x && y ? score_of((enum vector_kind)PG_GETARG_CHAR(1), x, y, n) : NAN};
	int32 most = PG_GETARG_INT32(5);
	b = b ? b : best_make(context, most < 1 ? 1 : most > BEST_MOST ? BEST_MOST : (size_t)most);
	b->seen++;
	if (isfinite(one.score))
		best_add(b, one);
	PG_FREE_IF_COPY(v, 2);
	PG_FREE_IF_COPY(query, 3);
	PG_RETURN_POINTER(b);
}

/* (tids tid[], scores float8[], seen int8), the best first. */
Datum steward_vector_best_end(PG_FUNCTION_ARGS)
{
	struct best none = {.count = 0};
	struct best *b = PG_ARGISNULL(0) ? &none : (struct best *)PG_GETARG_POINTER(0);
	Datum *tids = palloc((b->count + 1) * sizeof *tids), *scores = palloc((b->count + 1) * sizeof *scores);
	bool nulls[3] = {false};
	TupleDesc columns;
	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the result is no row");
	struct found *order = best_sorted(b);
	for (size_t i = 0; i < b->count; i++) {
		tids[i] = PointerGetDatum(&order[i].tid);
		scores[i] = Float8GetDatum(order[i].score);
	}
	Datum values[3] = {PointerGetDatum(construct_array(tids, (int)b->count, TIDOID, sizeof(ItemPointerData), false,
	                                                   TYPALIGN_SHORT)),
	                   PointerGetDatum(construct_array(scores, (int)b->count, FLOAT8OID, sizeof(double),
	                                                   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE)),
	                   Int64GetDatum(b->seen)};
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls)));
}

/* --- training */

/* What is drawn of a table's rows: each with the same chance. */
struct drawing {
	float *at;
	size_t n, count, room;
	uint64 seen, state;
	enum vector_kind kind;
};

static uint64 lot(struct drawing *d)
{
	d->state = d->state * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407);
	return d->state >> 16;
}

/* Only what is drawn is fetched from where long values lie. */
static void draw(struct drawing *d, Datum value)
{
	static float room[VECTOR_MOST];
	uint64 place = d->count < d->room ? d->count : lot(d) % (d->seen + 1);
	d->seen++;
	if (place >= d->room)
		return;
	ArrayType *v = DatumGetArrayTypeP(value);
	const float *at = vector_numbers(v, d->n);
	if (at && vector_prepare(d->kind, at, d->n, room)) {
		memcpy(d->at + place * d->n, room, d->n * sizeof(float));
		d->count += place == d->count;
	}
	if ((Pointer)v != DatumGetPointer(value))
		pfree(v);
}

static uint64 table_draw(struct drawing *d, Relation table, AttrNumber column)
{
	TupleTableSlot *slot = table_slot_create(table, NULL);
	TableScanDesc scan = table_beginscan(table, GetActiveSnapshot(), 0, NULL);
	uint64 rows = 0;
	for (bool null; table_scan_getnextslot(scan, ForwardScanDirection, slot); rows++) {
		CHECK_FOR_INTERRUPTS();
		Datum value = slot_getattr(slot, column, &null);
		if (!null)
			draw(d, value);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return rows;
}

static void pause_for_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

static void *room_for(size_t bytes)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, bytes + 1);
}

/* More centers than that cost more than they save; and so many that few of them have too few members to be kept. */
static size_t centers_most(const struct drawing *d, uint64 rows)
{
	size_t most = (size_t)(4 * sqrt((double)rows)), large = CENTERS_BYTES / (d->n * sizeof(float)),
	       fit = d->count / ((size_t)2 * VECTOR_MEMBERS_MIN);
	most = most > large ? large : most ? most : 1;
	return most < fit ? most : fit;
}

static bytea *centers_make(const struct drawing *d, uint64 rows)
{
	size_t width = d->n * sizeof(float);
	struct vector_training t = {.sample = d->at,
	                            .n = d->n,
	                            .count = d->count,
	                            .most = centers_most(d, rows),
	                            .pause = pause_for_interrupts};
	t.order = room_for(t.count * sizeof *t.order);
	t.assigned = room_for(t.count * sizeof *t.assigned);
	t.members = room_for(t.most * sizeof *t.members);
	t.sums = room_for(t.most * width);
	t.halves = room_for(t.most * sizeof *t.halves);
	bytea *result = palloc(VARHDRSZ + t.most * width);
	t.centers = (float *)VARDATA(result);
	SET_VARSIZE(result, VARHDRSZ + vector_train(&t) * width);
	return result;
}

static AttrNumber vector_column(Relation table, text *name)
{
	AttrNumber column = get_attnum(RelationGetRelid(table), text_to_cstring(name));
	if (table->rd_rel->relkind != RELKIND_RELATION || column <= 0 ||
	    TupleDescAttr(RelationGetDescr(table), column - 1)->atttypid != FLOAT4ARRAYOID)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("the column is not of the type real[]")));
	return column;
}

/* divide(rel, column, kind, dimensions): the table's vectors, divided among centers, and how many rows it has. They are
 * read without a statement. To plan one is to run code: what calls an immutable function with constants in an index of
 * the table, or in its statistics, is evaluated by whoever plans, and this is asked by the superuser. */
Datum steward_vector_divide(PG_FUNCTION_ARGS)
{
	int32 n = PG_GETARG_INT32(3);
	TupleDesc columns;
	if (!superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied")));
	if (n < 1 || n > VECTOR_MOST)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("too many dimensions")));
	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the result is no row");
	size_t width = (size_t)n * sizeof(float);
	struct drawing d = {.n = (size_t)n,
	                    .room = SAMPLE_BYTES / width,
	                    .kind = (enum vector_kind)PG_GETARG_CHAR(2),
	                    .state = 20261119};
	d.at = room_for(d.room * width);
	Relation table = table_open(PG_GETARG_OID(0), AccessShareLock);
	uint64 rows = table_draw(&d, table, vector_column(table, PG_GETARG_TEXT_PP(1)));
	table_close(table, NoLock);
	bool nulls[2] = {false};
	Datum values[2] = {PointerGetDatum(centers_make(&d, rows)), Int64GetDatum((int64)rows)};
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls)));
}
