/* The words for what went wrong: each thread's last, so that a failure deep below needs no buffer of its callers. */
#include "engine/postgres/model/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char why_text[1024];

void pg_why_set(const char **ret_why, const char *format, ...)
{
	char text[sizeof why_text]; /* the arguments may be the last text */
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	for (size_t n = strlen(text); n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '); n--)
		text[n - 1] = 0;
	memcpy(why_text, text, sizeof why_text);
	if (ret_why)
		*ret_why = why_text;
}

const char *pg_why_last(void)
{
	return why_text;
}
