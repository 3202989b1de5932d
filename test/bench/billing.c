/* Gives an invoice so many lines more, as a service would keep them, in the store of one that is stopped.
 *
 *   billing DIR INVOICE LINES */
#include "store/store.h"

#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define OF_DOC INT64_C(400)
#define OF_WRITE 50 /* documents */

struct filling {
	struct str invoice;
	int64_t from, to;
};

static void line_write(struct buf *items, struct buf *keys, int64_t n)
{
	json_sep(items);
	buf_printf(
	        items,
	        "{\"cloudProvider\":\"AWS\",\"clusterName\":\"cluster-%lld\",\"created\":\"2026-11-02T00:00:00Z\","
	        "\"discountCents\":0,\"endDate\":\"2026-11-02T00:00:00Z\",\"groupId\":\"6740c3a1f2b4d5e6a7b8c9d1\","
	        "\"groupName\":\"project\",\"note\":\"US_EAST_1\",\"percentDiscount\":0,\"quantity\":72.000277778,"
	        "\"sku\":\"AWS_INSTANCE_M10\",\"startDate\":\"2026-11-01T00:00:00Z\",\"totalPriceCents\":576,\"unit\":"
	        "\"hours\",\"unitPriceDollars\":0.08}",
	        (long long)n);
	json_sep(keys);
	buf_printf(
	        keys,
	        "[\"6740c3a1f2b4d5e6a7b8c9d1\",\"%024llx\",\"Clusters\",576,\"AWS_INSTANCE_M10\",\"US_EAST_1\",259201,"
	        "1793491200000]",
	        (unsigned long long)n);
}

static int fill_run(struct tx *tx, void *ctx)
{
	const struct filling *f = ctx;
	int r = 0;
	struct arena *a = arena_new();
	for (int64_t at = f->from; r == 0 && at < f->to; at += OF_DOC) {
		struct buf items = {0}, keys = {0};
		buf_z(&items, "{\"items\":[");
		buf_z(&keys, "{\"keys\":[");
		for (int64_t n = at; n < at + OF_DOC && n < f->to; n++)
			line_write(&items, &keys, n);
		buf_z(&items, "]}");
		buf_z(&keys, "]}");
		struct doc d = doc_new(a, "invoice_lines", f->invoice, STR_NONE, buf_keep(&items, a));
		d.secret = buf_keep(&keys, a);
		r = tx_insert(tx, &d);
	}
	arena_free(a);
	return r;
}

static int count_run(struct tx *tx, void *ctx)
{
	const struct filling *f = ctx;
	struct arena *a = arena_new();
	struct doc d;
	int r = tx_get(tx, a, "invoice", f->invoice, &d);
	if (r == 0) {
		json_t *state = doc_json(a, d.secret);
		json_put(state, "lines", json_integer(f->to));
		d.secret = json_text(a, state);
		r = tx_update(tx, &d);
	}
	arena_free(a);
	return r;
}

int main(int argc, char **argv)
{
	struct store *store;
	json_setup();
	if (argc != 4 || store_open(&(struct store_options){.data_dir = argv[1]}, &store) < 0)
		return 2;
	int64_t lines = strtoll(argv[3], NULL, 10), step = OF_DOC * OF_WRITE;
	int r = 0;
	for (int64_t at = 0; r == 0 && at < lines; at += step) {
		struct filling f = {str_of(argv[2]), at, at + step < lines ? at + step : lines};
		r = store_write_wait(store, fill_run, &f);
	}
	struct filling all = {str_of(argv[2]), 0, lines};
	if (r == 0)
		r = store_write_wait(store, count_run, &all);
	store_close(store);
	return r < 0;
}
