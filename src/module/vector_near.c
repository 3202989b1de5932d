/* near(version, query, cells, most): the rows of these cells that may be nearest to a query, the nearest first, by the
 * copies of vectors that the index has beside the cells' numbers. The planner reads copies out of an index only where
 * a query names the expression itself, and not in the order of their distance; so this reads the index as executors
 * do, and touches no row but to find out which of its versions the statement sees.
 *
 * It gives places of rows and nothing else. Its caller reads these by an ordinary statement, which computes scores from
 * the rows and applies filters with the reader's rights. Which rows are near is itself told to those alone who may read
 * the column in all rows: for everybody else, and whenever there is no index of this form, it gives NULL, and the
 * ordinary statement has to find the rows.
 *
 * Anybody can call it, with whatever arguments, over tables and indexes that their owners make as they please: it
 * believes nothing of an index but what it has looked at itself. Locks are kept to the transaction's end, as of any
 * statement; pins and locks that an error leaves are the resource owner's. Entries are never marked as dead. */
#include "module/vector_best.h"
#include "module/vector_lists.h"

#include <fmgr.h>

#include <access/genam.h>
#include <access/htup_details.h>
#include <access/relation.h>
#include <access/relscan.h>
#include <access/table.h>
#include <access/tableam.h>
#include <access/transam.h>
#include <catalog/namespace.h>
#include <catalog/pg_am.h>
#include <catalog/pg_opfamily.h>
#include <catalog/pg_type.h>
#include <miscadmin.h>
#include <nodes/primnodes.h>
#include <utils/acl.h>
#include <utils/builtins.h>
#include <utils/fmgroids.h>
#include <utils/lsyscache.h>
#include <utils/rel.h>
#include <utils/rls.h>
#include <utils/snapmgr.h>

#define MOST 10000          /* rows that are asked for */
#define ROOM_MOST (1 << 20) /* rows that are remembered, most of them deleted */
#define PAUSE_EVERY 256u    /* entries */

PG_FUNCTION_INFO_V1(steward_vector_near);

/* --- the index */

/* Whether an expression is steward_vectors.NAME(version, COLUMN). */
static bool is_call(const Node *n, const char *name, const char *version, AttrNumber *ret_column)
{
	const FuncExpr *f = (const FuncExpr *)n;
	if (!IsA(n, FuncExpr) || list_length(f->args) != 2 || !IsA(linitial(f->args), Const) ||
	    !IsA(lsecond(f->args), Var))
		return false;
	const Const *first = linitial(f->args);
	const Var *second = lsecond(f->args);
	const char *called = get_func_name(f->funcid);
	if (first->consttype != TEXTOID || first->constisnull || second->vartype != FLOAT4ARRAYOID ||
	    second->varattno <= 0 || !called || strcmp(called, name) != 0 ||
	    get_func_namespace(f->funcid) != get_namespace_oid("steward_vectors", true))
		return false;
	*ret_column = second->varattno;
	return strcmp(TextDatumGetCString(first->constvalue), version) == 0;
}

/* Whether every row that the snapshot sees is in it: see get_relation_info(). */
static bool is_whole(Relation index)
{
	Form_pg_index form = index->rd_index;
	return form->indisvalid && form->indisready && form->indislive &&
	       (!form->indcheckxmin ||
	        TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), TransactionXmin)) &&
	       RelationGetIndexPredicate(index) == NIL;
}

/* Whether it is a B-tree over cell(version, COLUMN), code(version, COLUMN). */
static bool is_of(Relation index, const char *version, AttrNumber *ret_column)
{
	TupleDesc columns = RelationGetDescr(index);
	AttrNumber first = 0, second = 0;
	if (index->rd_rel->relkind != RELKIND_INDEX || index->rd_rel->relam != BTREE_AM_OID || columns->natts != 2 ||
	    index->rd_index->indnkeyatts != 2 || index->rd_index->indkey.values[0] != 0 ||
	    index->rd_index->indkey.values[1] != 0 || index->rd_opfamily[0] != INTEGER_BTREE_FAM_OID ||
	    TupleDescAttr(columns, 0)->atttypid != INT4OID || TupleDescAttr(columns, 1)->atttypid != BYTEAOID)
		return false;
	const List *keys = RelationGetIndexExpressions(index);
	*ret_column = 0;
	if (list_length(keys) != 2 || !is_call(linitial(keys), "cell", version, &first) ||
	    !is_call(lsecond(keys), "code", version, &second) || first != second)
		return false;
	*ret_column = first;
	return true;
}

/* The index of the version on a table, opened. NULL: it has none. */
static Relation index_find(Relation table, const char *version, AttrNumber *ret_column)
{
	ListCell *at;
	foreach (at, RelationGetIndexList(table)) {
		Relation index = index_open(lfirst_oid(at), AccessShareLock);
		if (is_of(index, version, ret_column) && is_whole(index))
			return index;
		index_close(index, AccessShareLock);
	}
	return NULL;
}

static bool may_read(Oid table, AttrNumber column)
{
	Oid user = GetUserId();
	return (pg_class_aclcheck(table, user, ACL_SELECT) == ACLCHECK_OK ||
	        pg_attribute_aclcheck(table, column, user, ACL_SELECT) == ACLCHECK_OK) &&
	       check_enable_rls(table, InvalidOid, true) != RLS_ENABLED;
}

/* --- its entries */

struct nearing {
	const struct lists *lists;
	struct vector_asked asked;
	const float *query; /* prepared */
	const int32 *cells;
	size_t cell_count;
	Relation table, index;
	Snapshot snapshot;
	struct best *best;
};

/* What is no copy of a vector of so many dimensions is left out. */
static void entry_look(struct nearing *n, Datum value, ItemPointerData tid)
{
	struct varlena *raw = (struct varlena *)DatumGetPointer(value);
	if (VARATT_IS_EXTERNAL(raw))
		return;
	bytea *code = pg_detoast_datum_packed(raw);
	if (VARSIZE_ANY_EXHDR(code) == vector_code_size(n->asked.coding, n->asked.n)) {
		double near = (double)vector_guess(&n->asked, VARDATA_ANY(code));
		n->best->seen++;
		best_add(n->best, (struct found){.score = near, .tid = tid});
	}
	if (code != raw)
		pfree(code);
}

static void cell_read(struct nearing *n, IndexScanDesc scan, int32 cell)
{
	ScanKeyData key;
	ItemPointer tid;
	bool null;
	CHECK_FOR_INTERRUPTS();
	vector_ask(&n->asked, lists_center(n->lists, (size_t)cell), n->query);
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(cell));
	index_rescan(scan, &key, 1, NULL, 0);
	for (unsigned i = 1; (tid = index_getnext_tid(scan, ForwardScanDirection)); i++) {
		if (!scan->xs_itup)
			elog(ERROR, "the index gives no keys");
		Datum code = index_getattr(scan->xs_itup, 2, scan->xs_itupdesc, &null);
		if (!null)
			entry_look(n, code, *tid);
		if (i % PAUSE_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
	}
}

static void cells_read(struct nearing *n, size_t room)
{
	int32 count = n->lists->centers.count ? (int32)n->lists->centers.count : 1;
	IndexScanDesc scan = index_beginscan(n->table, n->index, n->snapshot, 1, 0);
	scan->xs_want_itup = true;
	n->best = best_make(CurrentMemoryContext, room);
	for (size_t i = 0; i < n->cell_count; i++)
		if (n->cells[i] >= 0 && n->cells[i] < count)
			cell_read(n, scan, n->cells[i]);
	index_endscan(scan);
}

/* --- the rows */

/* An entry is of the first version of a row, from which updates lead to the others. */
static size_t rows_find(const struct nearing *n, size_t most, ItemPointerData *ret_tids)
{
	struct found *order = best_sorted(n->best);
	TupleTableSlot *slot = table_slot_create(n->table, NULL);
	IndexFetchTableData *fetch = table_index_fetch_begin(n->table);
	size_t count = 0;
	for (size_t i = 0; i < n->best->count && count < most; i++) {
		bool again = false;
		if (i % PAUSE_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		if (table_index_fetch_tuple(fetch, &order[i].tid, n->snapshot, slot, &again, NULL))
			ret_tids[count++] = slot->tts_tid;
	}
	table_index_fetch_end(fetch);
	ExecDropSingleTupleTableSlot(slot);
	pfree(order);
	return count;
}

/* Fewer than asked for are all that the cells have. Where they have many entries of deleted rows, more are remembered.
 * False: too many. */
static bool near_find(struct nearing *n, size_t most, ItemPointerData *ret_tids, size_t *ret_count)
{
	for (size_t room = 2 * most; room <= ROOM_MOST; room *= 4) {
		cells_read(n, room);
		*ret_count = rows_find(n, most, ret_tids);
		if (*ret_count == most || n->best->count < room)
			return true;
		pfree(n->best->heap);
	}
	return false;
}

static Datum tids_array(ItemPointerData *tids, size_t count)
{
	Datum *values = palloc((count + 1) * sizeof *values);
	for (size_t i = 0; i < count; i++)
		values[i] = PointerGetDatum(&tids[i]);
	return PointerGetDatum(
	        construct_array(values, (int)count, TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT));
}

/* NULL: what it is asked is for the ordinary statement. */
static bool near_answer(struct nearing *n, text *version, ArrayType *query, size_t most, Datum *ret_tids)
{
	ItemPointerData *tids = palloc(most * sizeof *tids);
	size_t count = 0, dimensions;
	struct lists *l = lists_of(version); /* again: what was looked at since can have asked for others */
	n->query = l && l->coding && l->table == RelationGetRelid(n->table) ? lists_prepared(l, query) : NULL;
	if (!n->query)
		return false;
	dimensions = l->centers.n;
	n->lists = l;
	n->snapshot = GetActiveSnapshot();
	n->asked = (struct vector_asked){.kind = l->kind,
	                                 .coding = l->coding,
	                                 .n = dimensions,
	                                 .numbers = palloc(dimensions * sizeof(int16_t)),
	                                 .sums = palloc(VECTOR_SUMS(dimensions) * sizeof(float))};
	if (!near_find(n, most, tids, &count))
		return false;
	*ret_tids = tids_array(tids, count);
	return true;
}

static bool near_open(struct nearing *n, Oid table, const char *version)
{
	AttrNumber column;
	if (!ActiveSnapshotSet() || !IsMVCCSnapshot(GetActiveSnapshot()))
		return false;
	n->table = try_relation_open(table, AccessShareLock);
	if (!n->table)
		return false;
	if (n->table->rd_rel->relkind == RELKIND_RELATION && !RELATION_IS_OTHER_TEMP(n->table) &&
	    (n->index = index_find(n->table, version, &column))) {
		if (may_read(table, column))
			return true;
		index_close(n->index, NoLock);
	}
	relation_close(n->table, NoLock);
	return false;
}

static bool cells_take(struct nearing *n, ArrayType *cells)
{
	if (ARR_NDIM(cells) != 1 || ARR_HASNULL(cells) || ARR_ELEMTYPE(cells) != INT4OID)
		return false;
	n->cells = (const int32 *)ARR_DATA_PTR(cells);
	n->cell_count = (size_t)ARR_DIMS(cells)[0];
	return true;
}

Datum steward_vector_near(PG_FUNCTION_ARGS)
{
	text *version = PG_GETARG_TEXT_PP(0);
	int32 most = PG_GETARG_INT32(3);
	const struct lists *l = lists_of(version);
	struct nearing n = {.lists = NULL};
	Datum tids = (Datum)0;
	if (!l || !l->coding || !cells_take(&n, PG_GETARG_ARRAYTYPE_P(2)))
		PG_RETURN_NULL();
	Oid table = l->table;
	lists_reader_check(table);
	if (!near_open(&n, table, text_to_cstring(version)))
		PG_RETURN_NULL();
	bool answered = near_answer(&n, version, PG_GETARG_ARRAYTYPE_P(1),
	                            most < 1      ? 1
	                            : most > MOST ? MOST
	                                          : (size_t)most,
	                            &tids);
	index_close(n.index, NoLock);
	relation_close(n.table, NoLock);
	if (!answered)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(tids);
}
