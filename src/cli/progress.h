/* Progress on stderr (stdout is for results): a bar that is redrawn on a terminal, lines otherwise. */
#ifndef STEWARD_CLI_PROGRESS_H
#define STEWARD_CLI_PROGRESS_H

#include "base/str.h"

struct progress {
	const char *subject; /* "backup": begins each line */
	bool terminal;
	int shown; /* percent last written, or -1 */
	char what[64];
	size_t width; /* of the bar's line, to erase the rest of a longer one */
};

void progress_begin(struct progress *p, const char *subject);
/* Writes a line for each tenth, and when `what` changes. */
void progress_show(struct progress *p, int percent, struct str what);
/* Ends the bar's line. */
void progress_end(struct progress *p);

#endif
