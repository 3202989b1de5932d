/* See vector_best.h. A heap, because most rows are worse than the worst of those that are kept, which one comparison
 * tells. */
#include "module/vector_best.h"

/* Of two equal ones that which comes later in the table is worse. */
static bool is_worse(const struct found *a, const struct found *b)
{
	if (a->score != b->score)
		return a->score < b->score;
	return ItemPointerCompare((ItemPointer)(uintptr_t)&a->tid, (ItemPointer)(uintptr_t)&b->tid) > 0;
}

static void heap_down(struct best *b, size_t at, struct found one)
{
	for (size_t child; (child = 2 * at + 1) < b->count; at = child) {
		if (child + 1 < b->count && is_worse(&b->heap[child + 1], &b->heap[child]))
			child++;
		if (!is_worse(&b->heap[child], &one))
			break;
		b->heap[at] = b->heap[child];
	}
	b->heap[at] = one;
}

void best_add(struct best *b, struct found one)
{
	size_t at = b->count;
	if (b->count == b->most) {
		if (is_worse(&b->heap[0], &one))
			heap_down(b, 0, one);
		return;
	}
	for (b->count++; at && is_worse(&one, &b->heap[(at - 1) / 2]); at = (at - 1) / 2)
		b->heap[at] = b->heap[(at - 1) / 2];
	b->heap[at] = one;
}

struct best *best_make(MemoryContext context, size_t most)
{
	struct best *b = MemoryContextAllocZero(context, sizeof *b);
	b->most = most;
	b->heap = MemoryContextAlloc(context, most * sizeof *b->heap);
	return b;
}

static int found_compare(const void *a, const void *b)
{
	return is_worse(a, b) ? 1 : is_worse(b, a) ? -1 : 0;
}

struct found *best_sorted(const struct best *b)
{
	struct found *order = palloc((b->count + 1) * sizeof *order);
	if (b->count)
		memcpy(order, b->heap, b->count * sizeof *order);
	qsort(order, b->count, sizeof *order, found_compare);
	return order;
}
