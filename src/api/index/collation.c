/* Rules for comparing text, as a locale with the keywords of Unicode (BCP 47, extension u). */
#include "api/index/wish.h"

#include "base/buf.h"

static const char *const no_yes[] = {"", "true"};

/* "de_AT" becomes "de-AT"; that of POSIX has a keyword of its own. */
static struct str language_of(struct arena *a, struct str locale)
{
	char *text = arena_z(a, str_is(locale, "en_US_POSIX") ? STR("en-US") : locale);
	for (char *p = text; *p; p++)
		if (*p == '_')
			*p = '-';
	return str_of(text);
}

static void keyword_add(struct buf *b, const char *key, const char *value)
{
	if (*value)
		buf_printf(b, "-%s-%s", key, value);
}

static const char *flag_of(const json_t *c, const char *name)
{
	return no_yes[json_flag(c, name)];
}

/* In the order of the alphabet, as the standard has it. */
static void keywords_write(struct buf *b, const json_t *c)
{
	static const char *const levels[] = {"", "level1", "level2", "", "level4", "identic"};
	struct str first = json_field(c, "caseFirst"), variable = json_field(c, "maxVariable");
	json_int_t strength = json_number(c, "strength");
	bool shifted = str_is(json_field(c, "alternate"), "shifted");
	keyword_add(b, "ka", shifted ? "shifted" : "");
	keyword_add(b, "kb", flag_of(c, "backwards"));
	keyword_add(b, "kc", flag_of(c, "caseLevel"));
	keyword_add(b, "kf", str_is(first, "upper") ? "upper" : str_is(first, "lower") ? "lower" : "");
	keyword_add(b, "kk", flag_of(c, "normalization"));
	keyword_add(b, "kn", flag_of(c, "numericOrdering"));
	keyword_add(b, "ks", strength > 0 && strength <= 5 ? levels[strength] : "");
	keyword_add(b, "kv",
	            !shifted                    ? ""
	            : str_is(variable, "space") ? "space"
	            : str_is(variable, "punct") ? "punct"
	                                        : "");
	keyword_add(b, "va", str_is(json_field(c, "locale"), "en_US_POSIX") ? "posix" : "");
}

void index_collation(struct arena *a, const json_t *collation, struct engine_index *ret_index)
{
	struct buf words = {0};
	struct str locale = json_field(collation, "locale");
	json_int_t strength = json_number(collation, "strength");
	if (!collation)
		return;
	keywords_write(&words, collation);
	struct str language = str_is(locale, "simple") ? STR_NONE : language_of(a, locale);
	ret_index->collation_plain = !words.n;
	ret_index->collation_loose =
	        (strength > 0 && strength < 3) || str_is(json_field(collation, "alternate"), "shifted");
	ret_index->collation = !language.n ? ""
	                       : words.n   ? arena_printf(a, "%.*s-u%.*s", STR_ARG(language), (int)words.n, words.p).p
	                                   : language.p;
	buf_free(&words);
}
