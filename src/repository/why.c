/* Words about the thread's last failure, and names. */
#include "repository/why.h"

#include "objects/objects.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char why[512];

const char *repository_why(void)
{
	return why;
}

int repo_fail(int code, const char *format, ...)
{
	char words[sizeof why]; /* the arguments may be the words before */
	va_list args;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	memcpy(why, words, sizeof why);
	return code;
}

int repo_fail_object(int code, const char *name)
{
	const char *words = objects_why();
	return repo_fail(code, "%s: %s", name, words && *words ? words : strerror(-code));
}

bool name_part_ok(const char *part)
{
	size_t n = part ? strlen(part) : 0;
	if (n == 0 || n > 128 || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)part[i]) && !memchr("._=-", part[i], 4))
			return false;
	return true;
}
