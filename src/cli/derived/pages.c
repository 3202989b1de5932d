/* Pages are asked for by number until there are as many items as the service says there are, or one is empty. What the
 * service can make us hold is bounded. */
#include "cli/derived/pages.h"

#include "base/option.h"

#include <errno.h>

#define COUNT_MAX 10000
#define PARTS_MAX 4000000
#define BYTES_MAX (256u << 20)
#define REPEATS_MAX 3

void pages_begin(struct pages *p, const struct client *c)
{
	*p = (struct pages){.client = c, .all = json_array()};
}

void pages_end(struct pages *p)
{
	json_decref(p->all);
	json_decref(p->last);
}

int pages_add(struct pages *p, const struct client_answer *answer)
{
	json_t *results = json_object_get(answer->json, "results");
	if (!json_is_array(results))
		return client_stranger(p->client, false);
	if (!json_array_size(results))
		return PAGES_END;
	p->repeats = json_equal(results, p->last) ? p->repeats + 1 : 0;
	p->parts += answer->parts;
	p->bytes += answer->body.n;
	p->total = json_integer_value(json_object_get(answer->json, "totalCount"));
	json_decref(p->last);
	p->last = json_incref(results);
	json_array_extend(p->all, results);
	if (p->total > 0 && (json_int_t)json_array_size(p->all) >= p->total)
		return PAGES_END;
	if (p->repeats < REPEATS_MAX && p->parts <= PARTS_MAX && p->bytes <= BYTES_MAX && ++p->count < COUNT_MAX)
		return PAGES_MORE;
	(void)option_refuse(p->repeats == REPEATS_MAX
	                            ? "%s answers with the same page again and again"
	                            : "%s has more pages than can be put together; --page-num prints one",
	                    client_profile(p->client)->base_url);
	return -ENOTSUP;
}
