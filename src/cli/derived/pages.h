/* All pages of a list, from a service that may go on for ever. */
#ifndef STEWARD_CLI_DERIVED_PAGES_H
#define STEWARD_CLI_DERIVED_PAGES_H

#include "cli/client.h"

struct pages {
	const struct client *client;
	json_t *all;  /* what all pages had */
	json_t *last; /* what the last one had */
	json_int_t total;
	size_t parts, bytes, repeats;
	int count;
};

enum { PAGES_END = 0, PAGES_MORE = 1 };

void pages_begin(struct pages *p, const struct client *c);
void pages_end(struct pages *p);
/* Adds a page. PAGES_MORE: there may be another; negative, after a message on stderr: it is no page, or there are too
 * many. */
must_check int pages_add(struct pages *p, const struct client_answer *answer);

#endif
