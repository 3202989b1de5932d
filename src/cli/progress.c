/* The progress bar. */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#define BAR 40
#define TENTH 10

void progress_begin(struct progress *p, const char *subject)
{
	*p = (struct progress){.subject = subject, .terminal = isatty(STDERR_FILENO), .shown = -1};
}

/* Only printable characters, because the text comes from a service and goes to a terminal. */
static void what_set(struct progress *p, struct str what)
{
	size_t n = what.n < sizeof p->what - 1 ? what.n : sizeof p->what - 1;
	for (size_t i = 0; i < n; i++)
		p->what[i] = (char)(what.p[i] >= ' ' && what.p[i] <= '~' ? what.p[i] : ' ');
	p->what[n] = '\0';
}

void progress_show(struct progress *p, int percent, struct str what)
{
	static const char hashes[] = "########################################";
	char before[sizeof p->what];
	memcpy(before, p->what, sizeof before);
	what_set(p, what);
	bool other = strcmp(before, p->what) != 0;
	percent = percent < 0 ? 0 : percent > 100 ? 100 : percent;
	if (percent == p->shown && !other)
		return;
	if (!p->terminal && !other && p->shown >= 0 && percent / TENTH == p->shown / TENTH)
		return;
	p->shown = percent;
	if (!p->terminal) {
		fprintf(stderr, "steward: %s %d%%%s%s\n", p->subject, percent, p->what[0] ? " " : "", p->what);
		return;
	}
	int full = percent * BAR / 100;
	size_t width = strlen(p->what);
	fprintf(stderr, "\r[%.*s%*s] %3d%% %s%*s", full, hashes, BAR - full, "", percent, p->what,
	        p->width > width ? (int)(p->width - width) : 0, "");
	fflush(stderr);
	p->width = width;
}

void progress_end(struct progress *p)
{
	if (p->terminal && p->shown >= 0)
		fputc('\n', stderr);
	p->shown = -1;
}
