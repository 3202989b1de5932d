/* See inner.h. What is skipped is skipped as PostgreSQL reads it: comments, quoted names, texts of every kind. */
#include "module/inner.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Comments lie in one another. */
static char *comment_skip(char *p)
{
	int level = 0;
	do {
		int step = p[0] == '/' && p[1] == '*' ? 1 : p[0] == '*' && p[1] == '/' ? -1 : 0;
		level += step;
		p += step ? 2 : 1;
	} while (level > 0 && *p);
	return p;
}

static char *blank_skip(char *p)
{
	for (;;) {
		p += strspn(p, " \t\r\n\f\v");
		if (p[0] == '-' && p[1] == '-')
			p += strcspn(p, "\n");
		else if (p[0] == '/' && p[1] == '*')
			p = comment_skip(p);
		else
			return p;
	}
}

static size_t word_length(const char *p)
{
	return strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

static bool word_is(const char *p, const char *word)
{
	return word_length(p) == strlen(word) && strncasecmp(p, word, strlen(word)) == 0;
}

/* A quote that is doubled begins another text at once, which is as good. */
static char *quoted_skip(char *p, bool escapes)
{
	char quote = *p++;
	while (*p && *p != quote)
		p += escapes && p[0] == '\\' && p[1] ? 2 : 1;
	return *p ? p + 1 : p;
}

/* $tag$ text $tag$, or the number of a parameter. */
static char *dollar_skip(char *p)
{
	size_t n = word_length(p + 1) + 2;
	if (p[n - 1] != '$')
		return p + 1;
	for (char *end = p + n; (end = strchr(end, '$')); end++)
		if (strncmp(end, p, n) == 0)
			return end + n;
	return p + strlen(p);
}

/* Past one word, text or sign, and what is blank behind it. */
static char *token_skip(char *p)
{
	size_t n = word_length(p);
	if (n == 1 && (*p == 'e' || *p == 'E') && p[1] == '\'')
		p = quoted_skip(p + 1, true);
	else if (n > 0)
		p += n;
	else if (*p == '\'' || *p == '"')
		p = quoted_skip(p, false);
	else if (*p == '$')
		p = dollar_skip(p);
	else if (*p)
		p++;
	return blank_skip(p);
}

/* Of "(...)": its closing parenthesis, or the end. */
static char *parentheses_end(char *p)
{
	int level = 0;
	for (; *p; p = token_skip(p)) {
		level += *p == '(' ? 1 : *p == ')' ? -1 : 0;
		if (level == 0)
			break;
	}
	return p;
}

/* EXPLAIN (options) query, EXPLAIN ANALYZE VERBOSE query */
static char *explained(char *p)
{
	if (*p == '(')
		return token_skip(parentheses_end(p));
	while (word_is(p, "analyze") || word_is(p, "analyse") || word_is(p, "verbose"))
		p = token_skip(p);
	return p;
}

/* COPY (query) TO ...: cuts off what follows the query. */
static char *copied(char *p)
{
	if (*p != '(')
		return p;
	*parentheses_end(p) = 0;
	return p + 1;
}

const char *steward_inner_statement(char *text)
{
	char *p = blank_skip(text);
	if (word_is(p, "explain"))
		return steward_inner_statement(explained(token_skip(p)));
	if (word_is(p, "copy"))
		return copied(token_skip(p));
	const char *last = word_is(p, "prepare") || word_is(p, "create") ? "as" : word_is(p, "declare") ? "for" : NULL;
	for (; last && *p; p = token_skip(p))
		if (word_is(p, last))
			return token_skip(p);
	return text;
}
