/* Checks texts against formats and patterns. */
#ifndef STEWARD_CATALOG_FORMATS_H
#define STEWARD_CATALOG_FORMATS_H

#include "base/arena.h"

/* True when the text has the form of a schema_format. Formats of numbers, passwords and bytes accept any text. */
bool format_fits(unsigned format, struct str text);
/* What a text of that format must be: "must be a UUID". NULL where format_fits() accepts any text. */
const char *format_rule(unsigned format);

/* An https URL without user and fragment; a bare one has no query either. */
bool https_url_fits(struct arena *a, struct str text, bool bare);
/* A domain's name: two labels or more, with a letter in the last, since an address is no domain. */
bool domain_fits(struct str text);

/* Well-formed UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF. NUL passes. */
bool utf8_is_valid(struct str text);
/* The text; or, where it is not valid, a copy with each byte beyond ASCII as \xNN. */
struct str utf8_shown(struct arena *a, struct str text);
/* Characters of well-formed UTF-8. */
size_t utf8_length(struct str text);
/* The longest prefix of at most `max` bytes that ends between two characters. */
struct str utf8_prefix(struct str text, size_t max);

/* Compiles schema_patterns. Call before the threads start. Negative, after logging it, when a pattern does not
 * compile. */
must_check int patterns_setup(void);
/* In a program of one thread, instead: each is compiled when it is first searched. */
must_check int patterns_prepare(void);
void patterns_teardown(void);
/* Searches the pattern of that index anywhere in well-formed UTF-8. A search that exceeds its limits is no match. */
bool pattern_matches(int pattern, struct str text);

#endif
