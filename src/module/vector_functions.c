/* The SQL functions of vector search. Their schema, steward_vectors, and its table `lists` are made by the service (see
 * README.md); an index is a B-tree over cell() and code(), so that everything else is PostgreSQL's own matter.
 *
 * Those two are evaluated for every row that anybody writes, so they raise no error whatever the row has, and look at
 * no privileges: who writes through a view has none on the table. */
#include "module/vector_best.h"
#include "module/vector_lists.h"

#include <fmgr.h>

#include <access/htup_details.h>
#include <catalog/pg_type.h>
#include <executor/spi.h>
#include <funcapi.h>
#include <math.h>
#include <miscadmin.h>
#include <utils/builtins.h>

#define FETCH 200
#define SAMPLE_BYTES (64u << 20)
#define BEST_MOST 10000

PG_FUNCTION_INFO_V1(steward_vector_cell);
PG_FUNCTION_INFO_V1(steward_vector_code);
PG_FUNCTION_INFO_V1(steward_vector_cells);
PG_FUNCTION_INFO_V1(steward_vector_score);
PG_FUNCTION_INFO_V1(steward_vector_centers);
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

/* What is drawn of all that a statement gives: each row with the same chance. */
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

static void draw(struct drawing *d, ArrayType *v)
{
	static float room[VECTOR_MOST];
	const float *at = vector_numbers(v, d->n);
	if (!at || !vector_prepare(d->kind, at, d->n, room))
		return;
	uint64 place = d->seen < d->room ? d->seen : lot(d) % (d->seen + 1);
	d->seen++;
	if (place >= d->room)
		return;
	memcpy(d->at + place * d->n, room, d->n * sizeof(float));
	if (d->count < d->room)
		d->count++;
}

static void rows_draw(struct drawing *d)
{
	for (uint64 i = 0; i < SPI_processed; i++) {
		bool null;
		Datum value = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &null);
		if (null)
			continue;
		ArrayType *v = DatumGetArrayTypeP(value);
		draw(d, v);
		if ((Pointer)v != DatumGetPointer(value))
			pfree(v);
	}
}

static void statement_draw(struct drawing *d, const char *statement)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	SPIPlanPtr plan = SPI_prepare(statement, 0, NULL);
	if (!plan)
		elog(ERROR, "the statement cannot be prepared");
	Portal portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
	if (SPI_gettypeid(portal->tupDesc, 1) != FLOAT4ARRAYOID)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("the column is not of the type real[]")));
	do {
		CHECK_FOR_INTERRUPTS();
		SPI_cursor_fetch(portal, true, FETCH);
		rows_draw(d);
		SPI_freetuptable(SPI_tuptable);
	} while (SPI_processed);
	SPI_cursor_close(portal);
	SPI_finish();
}

static void pause_for_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

static void *room_for(size_t bytes)
{
	return MemoryContextAllocHuge(CurrentMemoryContext, bytes + 1);
}

/* centers(statement, kind, dimensions, most): the vectors that the statement gives, divided among so many centers. */
Datum steward_vector_centers(PG_FUNCTION_ARGS)
{
	char *statement = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int32 n = PG_GETARG_INT32(2), most = PG_GETARG_INT32(3);
	if (!superuser())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied")));
	if (n < 1 || n > VECTOR_MOST || most < 1 || most > 65536)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("too many dimensions or centers")));
	size_t width = (size_t)n * sizeof(float);
	struct drawing d = {.n = (size_t)n,
	                    .room = SAMPLE_BYTES / width,
	                    .kind = (enum vector_kind)PG_GETARG_CHAR(1),
	                    .state = 20261119};
	d.at = room_for(d.room * width);
	statement_draw(&d, statement);
	/* So many that few of them have too few members to be kept. */
	size_t fit = d.count / ((size_t)2 * VECTOR_MEMBERS_MIN);
	struct vector_training t = {.sample = d.at,
	                            .n = d.n,
	                            .count = d.count,
	                            .most = (size_t)most < fit ? (size_t)most : fit,
	                            .pause = pause_for_interrupts};
	t.order = room_for(t.count * sizeof *t.order);
	t.assigned = room_for(t.count * sizeof *t.assigned);
	t.members = room_for(t.most * sizeof *t.members);
	t.sums = room_for(t.most * width);
	t.halves = room_for(t.most * sizeof *t.halves);
	bytea *result = palloc(VARHDRSZ + t.most * width);
	t.centers = (float *)VARDATA(result);
	size_t count = vector_train(&t);
	SET_VARSIZE(result, VARHDRSZ + count * width);
	PG_RETURN_BYTEA_P(result);
}
