/* How far something is: a bar that is drawn anew on a terminal, lines otherwise. On stderr: stdout is for results. */
#ifndef STEWARD_CLI_PROGRESS_H
#define STEWARD_CLI_PROGRESS_H

#include "base/str.h"

struct progress {
	const char *subject; /* "backup": begins each line */
	bool terminal;
	int shown; /* percent last written, or -1 */
	char what[64];
	size_t width; /* of the bar's line, to wipe the rest of a longer one */
};

void progress_begin(struct progress *p, const char *subject);
/* Lines are written for each tenth, and when `what` changes. */
void progress_show(struct progress *p, int percent, struct str what);
/* The bar's line is over. */
void progress_end(struct progress *p);

#endif
