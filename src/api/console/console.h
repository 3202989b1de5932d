/* The web console's files, as script/gen-console made them when the program was built. */
#ifndef STEWARD_API_CONSOLE_CONSOLE_H
#define STEWARD_API_CONSOLE_CONSOLE_H

#include "api/console/live.h"
#include "api/console/overview.h"
#include "api/console/roster.h"
#include "call/service.h"

struct console_file {
	const char *path, *type;
	const unsigned char *bytes; /* gzip */
	size_t n, plain;            /* plain: the length before */
};

/* By path. None: the program was built without the console. */
extern const struct console_file console_files[];
extern const size_t console_file_count;
/* All files lie below /console/HASH/: another content has another address. */
extern const char console_hash[];

#define CONSOLE_PATH "/console/"
/* A file; else the page, whatever the path is: its script reads the path. */
void console_serve(struct service *s, struct request *r);
/* GET / and GET /console lead there. */
void console_lead(struct service *s, struct request *r);

#endif
