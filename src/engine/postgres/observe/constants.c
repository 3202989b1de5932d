/* pg_stat_statements puts $1 in the place of constants when a statement is parsed. Where its entry was given up for
 * others before the statement ended, and the statement is slow, another one is made at the end, and has the text as the
 * client has sent it. Nothing tells the one from the other, so what is shown of a text is looked at each time.
 *
 * Tokens are those of PostgreSQL. Without standard_conforming_strings a backslash makes a quote one of the text's own:
 * whether it does cannot be seen, so such a text is cut off there. */
#include "engine/postgres/observe/constants.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>

enum kind { BLANK, WORD, NAME, NUMBER, TEXT, PARAMETER, SIGN };

/* --- tokens */

static bool is_letter(char c)
{
	return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Comments lie in one another. */
static const char *comment_end(const char *p)
{
	int level = 0;
	do {
		int step = p[0] == '/' && p[1] == '*' ? 1 : p[0] == '*' && p[1] == '/' ? -1 : 0;
		level += step;
		p += step ? 2 : 1;
	} while (level > 0 && *p);
	return p;
}

static const char *word_end(const char *p)
{
	while (is_letter(*p) || is_digit(*p) || *p == '$')
		p++;
	return p;
}

static const char *number_end(const char *p)
{
	for (; is_letter(*p) || is_digit(*p) || *p == '.'; p++)
		if ((*p == 'e' || *p == 'E') && (p[1] == '+' || p[1] == '-') && is_digit(p[2]))
			p++;
	return p;
}

/* A quote that is doubled is one of the text's. */
static const char *quoted_end(const char *p, bool escapes)
{
	char quote = *p++;
	for (; *p; p++) {
		if (escapes && p[0] == '\\' && p[1])
			p++;
		else if (*p == '\\' && p[1] == quote && quote == '\'')
			return p + strlen(p);
		else if (*p == quote && *++p != quote)
			return p;
	}
	return p;
}

/* $tag$ text $tag$, or a parameter. */
static const char *dollar_end(const char *p, enum kind *ret_kind)
{
	const char *tag = p + 1;
	while (is_letter(*tag) || (is_digit(*tag) && tag > p + 1))
		tag++;
	if (*tag != '$') {
		*ret_kind = PARAMETER;
		return is_digit(p[1]) ? p + 1 + strspn(p + 1, "0123456789") : p + 1;
	}
	size_t n = (size_t)(tag + 1 - p);
	*ret_kind = TEXT;
	for (const char *end = tag + 1; (end = strchr(end, '$')); end++)
		if (strncmp(end, p, n) == 0)
			return end + n;
	return p + strlen(p);
}

/* E'...', B'...', X'...', N'...', U&'...' and U&"...": where the quote is, or NULL. */
static const char *prefixed(const char *p)
{
	if ((*p == 'u' || *p == 'U') && p[1] == '&' && (p[2] == '\'' || p[2] == '"'))
		return p + 2;
	return *p && strchr("eEbBxXnN", *p) && p[1] == '\'' ? p + 1 : NULL;
}

static const char *blank_end(const char *p)
{
	if (p[0] == '-' && p[1] == '-')
		return p + strcspn(p, "\n");
	return p[0] == '/' && p[1] == '*' ? comment_end(p) : p + strspn(p, " \t\r\n\f\v");
}

static const char *token_end(const char *p, enum kind *ret_kind)
{
	const char *quote = *p == '\'' || *p == '"' ? p : prefixed(p), *blank = blank_end(p);
	if (blank > p) {
		*ret_kind = BLANK;
		return blank;
	}
	if (quote) {
		*ret_kind = *quote == '"' ? NAME : TEXT;
		return quoted_end(quote, *p == 'e' || *p == 'E');
	}
	if (*p == '$')
		return dollar_end(p, ret_kind);
	if (is_digit(*p) || (*p == '.' && is_digit(p[1]))) {
		*ret_kind = NUMBER;
		return number_end(p);
	}
	*ret_kind = is_letter(*p) ? WORD : SIGN;
	return is_letter(*p) ? word_end(p) : p + (p[0] == ':' && p[1] == ':' ? 2 : 1);
}

/* --- numbers that are no values */

struct place {
	enum { NO_TYPE, TYPE_FOLLOWS, TYPE_NAMED } type;
	int level;      /* of parentheses */
	int type_level; /* of those of a type; 0: in none */
	int list_level; /* of a list after BY; -1: in none */
	bool first;     /* of such a list: what comes next begins one of its parts */
};

static bool word_is(struct str word, const char *words)
{
	char lower[16];
	size_t n = 0;
	for (; n < word.n && n < sizeof lower; n++)
		lower[n] = (char)tolower((unsigned char)word.p[n]);
	return n == word.n && str_is_one_of(words, (struct str){lower, n});
}

static void name_seen(struct place *at, struct str word, enum kind kind)
{
	static const char types[] =
	        "bit|char|character|dec|decimal|float|interval|nchar|numeric|time|timestamp|varchar|"
	        "varying";
	bool word_of_sql = kind == WORD;
	if (word_of_sql && word_is(word, "by"))
		*at = (struct place){
		        .level = at->level, .type_level = at->type_level, .list_level = at->level, .first = true};
	else if (word_of_sql && word_is(word, "as"))
		at->type = TYPE_FOLLOWS;
	else if (word_of_sql && word_is(word, types))
		at->type = TYPE_NAMED;
	else
		at->type = at->type == TYPE_FOLLOWS && !word_is(word, "materialized") ? TYPE_NAMED : NO_TYPE;
}

static void sign_seen(struct place *at, struct str sign)
{
	if (str_is(sign, "(") && ++at->level && at->type == TYPE_NAMED && !at->type_level)
		at->type_level = at->level;
	if (str_is(sign, ")") && --at->level < at->type_level)
		at->type_level = 0;
	if (at->level < at->list_level)
		at->list_level = -1;
	at->first = str_is(sign, ",") && at->level == at->list_level;
	at->type = str_is(sign, "::") || (str_is(sign, ".") && at->type == TYPE_NAMED) ? TYPE_FOLLOWS : NO_TYPE;
}

static void token_seen(struct place *at, struct str token, enum kind kind)
{
	if (kind == BLANK)
		return;
	if (kind == SIGN) {
		sign_seen(at, token);
		return;
	}
	at->first = false;
	if (kind == WORD || kind == NAME)
		name_seen(at, token, kind);
	else
		at->type = NO_TYPE;
}

static unsigned long parameter_last(const char *text)
{
	unsigned long last = 0;
	for (const char *p = text; (p = strchr(p, '$')); p++) {
		unsigned long n = is_digit(p[1]) ? strtoul(p + 1, NULL, 10) : 0;
		last = n > last && n < 100000 ? n : last;
	}
	return last;
}

const char *pg_constants_hide(struct arena *a, const char *text)
{
	struct buf b = {0};
	struct place at = {.list_level = -1};
	unsigned long last = parameter_last(text);
	enum kind kind;
	for (const char *p = text, *end; *p; p = end) {
		end = token_end(p, &kind);
		struct str token = {p, (size_t)(end - p)};
		if (kind == TEXT || (kind == NUMBER && !at.type_level && !at.first))
			buf_printf(&b, "$%lu", ++last);
		else
			buf_str(&b, token);
		token_seen(&at, token, kind);
	}
	return buf_keep(&b, a).p;
}
