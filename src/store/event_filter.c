/* A page of a whole list is found by its positions, at any depth; with a filter the list has to be walked. Callers give
 * dates that include everything, so these are compared with the list's own before they count as a filter. */
#include "store/event_filter.h"

#include <errno.h>

static int excludes_nothing(struct tx *tx, const struct event_filter *f, event_ends *ends, bool *ret_all)
{
	int64_t first, last;
	*ret_all = !f->types.n && !f->excluded.n && !f->clusters.n && !f->has_min && !f->has_max;
	if (*ret_all || f->types.n || f->excluded.n || f->clusters.n)
		return 0;
	int r = ends(tx, f, true, &first, &last);
	if (r == 0)
		*ret_all = (!f->has_min || f->min_ms <= first) && (!f->has_max || f->max_ms >= last);
	return r == -ENOENT ? 0 : r;
}

int event_filter_positions(struct tx *tx, const struct event_filter *f, event_ends *ends, bool *ret_all,
                           int64_t *ret_first, int64_t *ret_last)
{
	int r = excludes_nothing(tx, f, ends, ret_all);
	if (r < 0 || !*ret_all)
		return r;
	r = ends(tx, f, false, ret_first, ret_last);
	if (r != -ENOENT)
		return r;
	*ret_first = 1;
	*ret_last = 0;
	return 0;
}
