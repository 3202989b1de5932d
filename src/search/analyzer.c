/* Custom analyzers are three lists in the words of the reference: filters of characters, a tokenizer, filters of
 * tokens. Each has a row in a table here, with its options and the function that turns it into a step of the
 * database's. What has no row is refused at its place, and so is each option that the row does not name.
 *
 * Regular expressions are read by PostgreSQL, whose words are not those of Java: what both can say is translated.
 * References back and looks ahead are refused, because they explode. */
#include "search/analyzer.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdlib.h>

#define NAME_BYTES 255
#define GRAMS_MAX 50
#define SHINGLES_MAX 10
#define LENGTH_MAX 100000
#define TOKEN_MAX 255 /* characters of a token: as many as a regular expression can count */
#define WORDS_MAX 1000
#define WORD_BYTES 255

struct reading {
	struct arena *arena;
	struct faults *faults;
	struct search_analyzers *found;
};

#define FAULT(r, place, ...) faults_add((r)->faults, (r)->arena, str_of(place), __VA_ARGS__)

static const char *below(const struct reading *r, const char *place, const char *name)
{
	return arena_printf(r->arena, "%s.%.80s", place, name).p;
}

/* --- options */

static json_int_t number_read(struct reading *r, const json_t *given, const char *name, const char *place, int lowest,
                              int highest, int usual)
{
	const json_t *value = json_object_get(given, name);
	json_int_t n = json_integer_value(value);
	if (!value && usual >= 0)
		return usual;
	if (json_is_integer(value) && n >= lowest && n <= highest)
		return n;
	FAULT(r, below(r, place, name), "must be a whole number from %d to %d", lowest, highest);
	return lowest;
}

struct span {
	const char *names[2];
	int lowest, highest;
	int usual[2]; /* -1: it has to be there */
};

/* From the first to the second, both among what is allowed. */
static void span_read(struct reading *r, const json_t *given, const char *place, const struct span *s,
                      json_int_t ret_ends[2])
{
	size_t before = r->faults->count;
	for (int i = 0; i < 2; i++)
		ret_ends[i] = number_read(r, given, s->names[i], place, s->lowest, s->highest, s->usual[i]);
	if (r->faults->count == before && ret_ends[0] > ret_ends[1])
		FAULT(r, below(r, place, s->names[0]), "must not be more than %s", s->names[1]);
}

/* One of two words; true: the second. The first one is usual, where there is a usual one. */
static bool choice_read(struct reading *r, const json_t *given, const char *name, const char *place,
                        const char *const words[2], bool is_required)
{
	const json_t *value = json_object_get(given, name);
	struct str word = json_str_of(value);
	if ((!value && !is_required) || str_is(word, words[0]))
		return false;
	if (!str_is(word, words[1]))
		FAULT(r, below(r, place, name), "must be %s or %s", words[0], words[1]);
	return true;
}

static bool omit_or_include(struct reading *r, const json_t *given, const char *name, const char *place)
{
	static const char *const words[] = {"omit", "include"};
	return choice_read(r, given, name, place, words, false);
}

static bool flag_read(struct reading *r, const json_t *given, const char *name, const char *place, bool usual)
{
	const json_t *value = json_object_get(given, name);
	if (!value)
		return usual;
	if (!json_is_boolean(value))
		FAULT(r, below(r, place, name), "must be true or false");
	return json_is_true(value);
}

static json_t *words_read(struct reading *r, const json_t *given, const char *name, const char *place)
{
	const json_t *list = json_object_get(given, name);
	bool good = json_is_array(list) && json_array_size(list) >= 1 && json_array_size(list) <= WORDS_MAX;
	for (size_t i = 0; good && i < json_array_size(list); i++)
		good = json_item(list, i).n >= 1 && json_item(list, i).n <= WORD_BYTES;
	if (!good)
		FAULT(r, below(r, place, name), "must be an array of 1 to %d texts of 1 to %d bytes", WORDS_MAX,
		      WORD_BYTES);
	return good ? json_deep_copy(list) : json_array();
}

/* --- regular expressions */

/* What stands at `at`; 0: it is nothing that is taken. Sets *ret_why. */
static size_t escape_length(const char *at, const char **ret_why)
{
	if (!at[1] || (isalnum((unsigned char)at[1]) && !strchr("dDwWsStnrfu", at[1]))) {
		*ret_why =
		        "has a backslash before a letter or digit that is none of d, D, w, W, s, S, t, n, r, f and u";
		return 0;
	}
	if (at[1] != 'u')
		return 2;
	for (int i = 2; i < 6; i++)
		if (hex_value(at[i]) < 0) {
			*ret_why = "must have four hexadecimal digits after \\u";
			return 0;
		}
	return 6;
}

/* From the opening to the closing bracket. */
static size_t set_length(const char *at, const char **ret_why)
{
	size_t n = at[1] == '^' ? 2 : 1, step;
	for (size_t first = n; at[n] && (at[n] != ']' || n == first); n += step) {
		step = at[n] == '\\' ? escape_length(at + n, ret_why) : 1;
		if (!step)
			return 0;
		if (at[n] == '[' || (at[n] == '&' && at[n + 1] == '&') || (at[n] == ']' && n == first) ||
		    (at[n] == '\\' && strchr("DWS", at[n + 1]))) {
			*ret_why = "has brackets within brackets, or \\D, \\W, \\S, && or a bracket that closes "
			           "nothing in "
			           "them";
			return 0;
		}
	}
	if (!at[n])
		*ret_why = "has a bracket that is not closed";
	return at[n] ? n + 1 : 0;
}

static bool is_quantifier(char c)
{
	return c && strchr("*+?{", c);
}

static size_t quantifier_length(const char *at, const char **ret_why)
{
	size_t n = *at == '{' ? strcspn(at, "}") + 1 : 1;
	if (*at == '{' && (n <= 2 || !at[n - 1] || strspn(at + 1, "0123456789,") != n - 2))
		*ret_why = "has a { that begins no {N}, {N,} or {N,M}";
	else if (is_quantifier(at[n]))
		*ret_why = "has a quantifier after a quantifier";
	else
		return n;
	return 0;
}

/* How much of it is one thing; 0: *ret_why says what is wrong with it. */
static size_t piece_length(const char *at, const char **ret_why)
{
	if (*at == '\\')
		return escape_length(at, ret_why);
	if (*at == '[')
		return set_length(at, ret_why);
	if (is_quantifier(*at))
		return quantifier_length(at, ret_why);
	if (*at != '(' || at[1] != '?')
		return 1;
	if (at[2] == ':')
		return 3;
	*ret_why = "has a group with options, which are not supported";
	return 0;
}

/* In Java a dot is no end of a line, and classes are of ASCII; in PostgreSQL a dot is any character, and classes go by
 * the language of the database. */
static void piece_translate(struct buf *b, const char *at, size_t n, bool is_in_set)
{
	static const char *const classes[][2] = {{"dD", "0-9"}, {"wW", "a-zA-Z0-9_"}, {"sS", " \\t\\n\\x0b\\f\\r"}};
	for (size_t i = 0; *at == '\\' && i < sizeof classes / sizeof *classes; i++)
		if (at[1] == classes[i][0][0] || at[1] == classes[i][0][1]) {
			bool is_not = at[1] == classes[i][0][1];
			buf_printf(b, is_in_set ? "%.0s%s" : "[%s%s]", is_not ? "^" : "", classes[i][1]);
			return;
		}
	if (*at == '.' && !is_in_set)
		buf_z(b, "[^\\n\\r\\u0085\\u2028\\u2029]");
	else
		buf_add(b, at, n);
}

static void set_translate(struct buf *b, const char *at, size_t n)
{
	const char *why;
	size_t step;
	for (size_t i = 0; i < n; i += step) {
		step = at[i] == '\\' ? escape_length(at + i, &why) : 1;
		piece_translate(b, at + i, step, true);
	}
}

/* NULL: *ret_why says what is wrong. */
static const char *pattern_translate(const struct reading *r, const char *text, unsigned *ret_groups,
                                     const char **ret_why)
{
	struct buf b = {0};
	size_t step = 1;
	*ret_groups = 0;
	for (const char *at = text; *at && step; at += step) {
		step = piece_length(at, ret_why);
		*ret_groups += *at == '(' && step == 1;
		if (*at == '[')
			set_translate(&b, at, step);
		else
			piece_translate(&b, at, step, false);
	}
	const char *translated = buf_keep(&b, r->arena).p;
	return step ? translated : NULL;
}

/* Never NULL. */
static const char *pattern_read(struct reading *r, const json_t *given, const char *place, unsigned *ret_groups)
{
	const char *at = below(r, place, "pattern"), *why = NULL, *translated;
	struct str text = json_field(given, "pattern");
	const char *pattern = arena_z(r->arena, text);
	struct search_analyzers *found = r->found;
	*ret_groups = 0;
	if (!text.n || text.n > SEARCH_PATTERN_MAX || memchr(text.p, 0, text.n))
		FAULT(r, at, "must be a regular expression of 1 to %d bytes", SEARCH_PATTERN_MAX);
	else if (!(translated = pattern_translate(r, pattern, ret_groups, &why)))
		FAULT(r, at, "%s", why);
	else if (found->pattern_count == SEARCH_PATTERNS_MAX)
		FAULT(r, at, "is one of more than %d", SEARCH_PATTERNS_MAX);
	else {
		found->patterns[found->pattern_count++] = (struct search_pattern){.place = at, .text = translated};
		return translated;
	}
	return pattern;
}

/* A text as a regular expression that finds it. */
static void pattern_escape(struct buf *b, const char *text)
{
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && (unsigned char)*text < 0x80)
			buf_c(b, '\\');
		buf_c(b, *text);
	}
}

/* --- filters of characters */

static json_t *html_make(struct reading *r, const json_t *given, const char *place)
{
	json_t *tags =
	        json_object_get(given, "ignoredTags") ? words_read(r, given, "ignoredTags", place) : json_array();
	struct buf b = {0};
	for (size_t i = 0; i < json_array_size(tags); i++) {
		struct str tag = json_item(tags, i);
		for (size_t j = 0; j < tag.n; j++)
			if (!isalnum((unsigned char)tag.p[j])) {
				FAULT(r, arena_printf(r->arena, "%s.ignoredTags[%zu]", place, i).p,
				      "must consist of letters and digits");
				break;
			}
		buf_printf(&b, "%s%.*s", i ? "|" : "", STR_ARG(tag));
	}
	json_decref(tags);
	return json_pack("[s, s]", "html", buf_keep(&b, r->arena).p);
}

static json_t *normal_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s]", "normal");
}

static int longest_first(const void *a, const void *b)
{
	size_t n = strlen(*(const char *const *)a), m = strlen(*(const char *const *)b);
	return (n < m) - (n > m);
}

/* PostgreSQL takes the longest of several, wherever it stands; in their order they are easier to read. */
static const char *keys_pattern(struct reading *r, const json_t *mappings)
{
	const char **keys = arena_new_array(r->arena, const char *, json_object_size(mappings) + 1), *key;
	struct buf b = {0};
	size_t n = 0;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)mappings, key, value) keys[n++] = key;
	qsort(keys, n, sizeof *keys, longest_first);
	for (size_t i = 0; i < n; i++) {
		buf_z(&b, i ? "|" : "");
		pattern_escape(&b, keys[i]);
	}
	return buf_keep(&b, r->arena).p;
}

static json_t *mapping_make(struct reading *r, const json_t *given, const char *place)
{
	const json_t *mappings = json_object_get(given, "mappings");
	bool good = json_object_size(mappings) >= 1 && json_object_size(mappings) <= WORDS_MAX;
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)mappings, key, value) good =
	        good && *key && strlen(key) <= WORD_BYTES && json_is_string(value) &&
	        json_str_of(value).n <= WORD_BYTES;
	if (good)
		return json_pack("[s, s, O]", "map", keys_pattern(r, mappings), mappings);
	FAULT(r, below(r, place, "mappings"),
	      "must be an object with 1 to %d texts of at most %d bytes, by those that they replace", WORDS_MAX,
	      WORD_BYTES);
	return NULL;
}

static json_t *persian_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s, s, {s:s}]", "map", "\u200c", "\u200c", " ");
}

/* --- tokenizers */

static json_t *standard_make(struct reading *r, const json_t *given, const char *place)
{
	return json_pack("[s, I]", "parsed", number_read(r, given, "maxTokenLength", place, 1, TOKEN_MAX, TOKEN_MAX));
}

static json_t *whitespace_make(struct reading *r, const json_t *given, const char *place)
{
	return json_pack("[s, I, s, i]", "match",
	                 number_read(r, given, "maxTokenLength", place, 1, TOKEN_MAX, TOKEN_MAX), "\\S+", 1);
}

#define URL_EMAIL_WORD               \
	"[a-zA-Z][a-zA-Z0-9+.-]*://" \
	"[^[:space:]<>\"]+|[[:alnum:]._%+-]+@[[:alnum:]-]+(?:\\.[[:alnum:]-]+)+|[[:alnum:]_]+"

static json_t *url_make(struct reading *r, const json_t *given, const char *place)
{
	return json_pack("[s, I, s, i]", "match",
	                 number_read(r, given, "maxTokenLength", place, 1, TOKEN_MAX, TOKEN_MAX), URL_EMAIL_WORD, 1);
}

static json_t *keyword_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s]", "whole");
}

/* As a tokenizer and as a filter, which has the word for tokens that are too short or too long. */
static json_t *grams_step(struct reading *r, const json_t *given, const char *place, const char *step)
{
	static const struct span span = {{"minGram", "maxGram"}, 1, GRAMS_MAX, {-1, -1}};
	json_int_t ends[2];
	span_read(r, given, place, &span, ends);
	return json_pack("[s, I, I, b]", step, ends[0], ends[1], omit_or_include(r, given, "termNotInBounds", place));
}

static json_t *edges_make(struct reading *r, const json_t *given, const char *place)
{
	return grams_step(r, given, place, "edges");
}

static json_t *grams_make(struct reading *r, const json_t *given, const char *place)
{
	return grams_step(r, given, place, "grams");
}

static json_t *split_make(struct reading *r, const json_t *given, const char *place)
{
	unsigned groups;
	return json_pack("[s, s]", "split", pattern_read(r, given, place, &groups));
}

/* The group 0 is the whole. */
static json_t *capture_make(struct reading *r, const json_t *given, const char *place)
{
	unsigned groups;
	const char *pattern = pattern_read(r, given, place, &groups);
	json_int_t group = number_read(r, given, "group", place, 0, groups < 9 ? (int)groups : 9, -1);
	return json_pack("[s, i, s, I]", "match", 0, arena_printf(r->arena, "(%s)", pattern).p, group + 1);
}

/* --- filters of tokens */

static json_t *lower_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s]", "lower");
}

static json_t *ascii_make(struct reading *r, const json_t *given, const char *place)
{
	return json_pack("[s, b]", "ascii", omit_or_include(r, given, "originalTokens", place));
}

static json_t *folded_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s]", "folded");
}

static json_t *form_make(struct reading *r, const json_t *given, const char *place)
{
	struct str form = json_field(given, "normalizationForm");
	if (!json_object_get(given, "normalizationForm"))
		form = STR("nfc");
	if (!str_is_one_of("nfc|nfd|nfkc|nfkd", form)) {
		FAULT(r, below(r, place, "normalizationForm"), "must be nfc, nfd, nfkc or nfkd");
		form = STR("nfc");
	}
	return json_pack("[s, s%]", "form", form.p, form.n);
}

static json_t *length_make(struct reading *r, const json_t *given, const char *place)
{
	static const struct span span = {{"min", "max"}, 0, LENGTH_MAX, {0, 255}};
	json_int_t ends[2];
	span_read(r, given, place, &span, ends);
	return json_pack("[s, I, I]", "length", ends[0], ends[1]);
}

static json_t *stop_make(struct reading *r, const json_t *given, const char *place)
{
	return json_pack("[s, o, b]", "stop", words_read(r, given, "tokens", place),
	                 flag_read(r, given, "ignoreCase", place, true));
}

static json_t *trim_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s]", "trim");
}

static json_t *reverse_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s]", "reverse");
}

/* In Java's replacements $ and \ refer to groups. */
static json_t *replace_make(struct reading *r, const json_t *given, const char *place)
{
	static const char *const words[] = {"first", "all"};
	unsigned groups;
	const char *pattern = pattern_read(r, given, place, &groups);
	struct str by = json_field(given, "replacement");
	if (!json_is_string(json_object_get(given, "replacement")) || by.n > WORD_BYTES || memchr(by.p, '$', by.n) ||
	    memchr(by.p, '\\', by.n))
		FAULT(r, below(r, place, "replacement"),
		      "must be a text of at most %d bytes without $ and \\: groups are not referred to", WORD_BYTES);
	return json_pack("[s, s, s, s]", "replace", pattern, arena_z(r->arena, by),
	                 choice_read(r, given, "matches", place, words, true) ? "g" : "");
}

static json_t *possessive_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s, s, s, s]", "replace", "['\u2019\uff07][sS]$", "", "");
}

static json_t *porter_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return json_pack("[s, s]", "stem", "porter");
}

#define STEMMERS                                                                                             \
	"arabic|armenian|basque|catalan|danish|dutch|english|finnish|french|german|hungarian|irish|italian|" \
	"lithuanian|"                                                                                        \
	"norwegian|porter|portuguese|romanian|russian|spanish|swedish|turkish"

static json_t *stem_make(struct reading *r, const json_t *given, const char *place)
{
	struct str name = json_field(given, "stemmerName");
	if (str_is_one_of(STEMMERS, name))
		return json_pack("[s, s%]", "stem", name.p, name.n);
	FAULT(r, below(r, place, "stemmerName"), "must be one of " STEMMERS);
	return NULL;
}

static json_t *shingles_make(struct reading *r, const json_t *given, const char *place)
{
	static const struct span span = {{"minShingleSize", "maxShingleSize"}, 2, SHINGLES_MAX, {-1, -1}};
	json_int_t ends[2];
	span_read(r, given, place, &span, ends);
	return json_pack("[s, I, I]", "shingles", ends[0], ends[1]);
}

/* Only what wordDelimiterGraph and the like make has branches, and these are refused. */
static json_t *nothing_make(struct reading *r, const json_t *given, const char *place)
{
	(void)r, (void)given, (void)place;
	return NULL;
}

/* --- the tables */

struct kind {
	const char *type, *options;
	json_t *(*make)(struct reading *r, const json_t *given, const char *place); /* NULL: no step */
};

struct stage {
	const char *name, *what;
	const struct kind *kinds;
	size_t count;
	const char *known;
};

static const struct kind character_filters[] = {{"htmlStrip", "ignoredTags", html_make},
                                                {"icuNormalize", "", normal_make},
                                                {"mapping", "mappings", mapping_make},
                                                {"persian", "", persian_make}};
static const struct kind tokenizers[] = {
        {"standard", "maxTokenLength", standard_make}, {"whitespace", "maxTokenLength", whitespace_make},
        {"uaxUrlEmail", "maxTokenLength", url_make},   {"keyword", "", keyword_make},
        {"edgeGram", "minGram|maxGram", edges_make},   {"nGram", "minGram|maxGram", grams_make},
        {"regexSplit", "pattern", split_make},         {"regexCaptureGroup", "pattern|group", capture_make}};
static const struct kind token_filters[] = {{"lowercase", "", lower_make},
                                            {"asciiFolding", "originalTokens", ascii_make},
                                            {"icuFolding", "", folded_make},
                                            {"icuNormalizer", "normalizationForm", form_make},
                                            {"length", "min|max", length_make},
                                            {"stopword", "tokens|ignoreCase", stop_make},
                                            {"trim", "", trim_make},
                                            {"reverse", "", reverse_make},
                                            {"regex", "pattern|replacement|matches", replace_make},
                                            {"englishPossessive", "", possessive_make},
                                            {"porterStemming", "", porter_make},
                                            {"snowballStemming", "stemmerName", stem_make},
                                            {"edgeGram", "minGram|maxGram|termNotInBounds", edges_make},
                                            {"nGram", "minGram|maxGram|termNotInBounds", grams_make},
                                            {"shingle", "minShingleSize|maxShingleSize", shingles_make},
                                            {"flattenGraph", "", nothing_make}};

#define STAGE(name, what, kinds, known)                                   \
	{                                                                 \
		name, what, kinds, sizeof(kinds) / sizeof *(kinds), known \
	}

static const struct stage characters = STAGE("charFilters", "a filter of characters", character_filters,
                                             "htmlStrip, icuNormalize, mapping or persian"),
                          tokenizer = STAGE("tokenizer", "a tokenizer", tokenizers,
                                            "standard, whitespace, uaxUrlEmail, keyword, edgeGram, nGram, regexSplit "
                                            "or regexCaptureGroup"),
                          tokens = STAGE("tokenFilters", "a filter of tokens", token_filters,
                                         "lowercase, asciiFolding, icuFolding, icuNormalizer, length, stopword, trim, "
                                         "reverse, regex, englishPossessive, porterStemming, snowballStemming, "
                                         "edgeGram, nGram, shingle or flattenGraph");

/* --- an analyzer */

static bool options_check(struct reading *r, const json_t *given, const struct kind *k, const char *place)
{
	size_t before = r->faults->count;
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)given, name,
	                    value) if (strcmp(name, "type") != 0 && !(*name && str_is_one_of(k->options, str_of(name))))
	        FAULT(r, below(r, place, name), "is not supported in %s", k->type);
	return r->faults->count == before;
}

/* NULL: it is nothing to do, or faulty. */
static json_t *step_read(struct reading *r, const json_t *given, const struct stage *s, const char *place)
{
	struct str type = json_field(given, "type");
	for (size_t i = 0; i < s->count; i++)
		if (str_is(type, s->kinds[i].type))
			return options_check(r, given, &s->kinds[i], place) ? s->kinds[i].make(r, given, place) : NULL;
	FAULT(r, below(r, place, "type"), "is not %s that PostgreSQL has an equal for: take %s", s->what, s->known);
	return NULL;
}

static json_t *steps_read(struct reading *r, const json_t *analyzer, const struct stage *s, const char *place)
{
	const json_t *given = json_object_get(analyzer, s->name);
	const char *at = below(r, place, s->name);
	json_t *steps = json_array(), *step;
	if (given && (!json_is_array(given) || json_array_size(given) > SEARCH_STEPS_MAX)) {
		FAULT(r, at, "must be an array of at most %d", SEARCH_STEPS_MAX);
		return steps;
	}
	for (size_t i = 0; i < json_array_size(given); i++)
		if ((step = step_read(r, json_array_get(given, i), s, arena_printf(r->arena, "%s[%zu]", at, i).p)))
			json_array_append_new(steps, step);
	return steps;
}

static const char *analyzer_make(struct reading *r, const json_t *given, const char *place)
{
	size_t before = r->faults->count;
	json_t *steps = json_keep(r->arena, json_object()), *step;
	json_put(steps, "chars", steps_read(r, given, &characters, place));
	step = step_read(r, json_object_get(given, tokenizer.name), &tokenizer, below(r, place, tokenizer.name));
	json_put(steps, "tokens", step);
	json_put(steps, "words", steps_read(r, given, &tokens, place));
	struct str text = json_text(r->arena, steps);
	if (text.n > SEARCH_ANALYZER_BYTES)
		FAULT(r, place, "is larger than %u bytes", SEARCH_ANALYZER_BYTES);
	else if (strstr(arena_z(r->arena, text), "\\u0000"))
		FAULT(r, place, "has a character that PostgreSQL cannot keep (U+0000)");
	return r->faults->count == before ? arena_z(r->arena, text) : NULL;
}

static void analyzer_read(struct reading *r, const json_t *given, const char *place)
{
	static const char known[] = "name|charFilters|tokenizer|tokenFilters";
	struct str name = json_field(given, "name");
	struct search_analyzers *found = r->found;
	bool is_there;
	const char *key;
	json_t *value;
	(void)search_analyzer_find(found, name, &is_there);
	if (!name.n || name.n > NAME_BYTES || is_there || str_starts(name, STR("lucene."))) {
		FAULT(r, below(r, place, "name"),
		      "must be a name of 1 to %d bytes that no others have and that does not begin with lucene.",
		      NAME_BYTES);
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)given, key, value) if (!str_is_one_of(known, str_of(key)))
	        FAULT(r, below(r, place, key), "is not supported in an analyzer");
	found->list[found->count++] =
	        (struct search_analyzer){.name = arena_z(r->arena, name), .steps = analyzer_make(r, given, place)};
}

void search_analyzers_read(struct arena *a, const json_t *given, const char *place, struct faults *faults,
                           struct search_analyzers *ret_analyzers)
{
	struct reading r = {.arena = a, .faults = faults, .found = ret_analyzers};
	ret_analyzers->count = ret_analyzers->pattern_count = 0;
	if (given && (!json_is_array(given) || json_array_size(given) > SEARCH_ANALYZERS_MAX)) {
		FAULT(&r, place, "must be an array of at most %d", SEARCH_ANALYZERS_MAX);
		return;
	}
	for (size_t i = 0; i < json_array_size(given); i++)
		analyzer_read(&r, json_array_get(given, i), arena_printf(a, "%s[%zu]", place, i).p);
}

/* --- by name */

/* Those that divide and stem as a configuration of PostgreSQL does, and those that are a few steps. */
static const char *const named[][2] = {
        {"standard", "simple"},
        {"simple",
         "{\"chars\":[],\"tokens\":[\"match\",0,\"[[:alpha:]]+\",1],\"words\":[[\"lower\"],[\"length\",1,255]]}"},
        {"whitespace", "{\"chars\":[],\"tokens\":[\"match\",255,\"\\\\S+\",1],\"words\":[]}"},
        {"keyword", "{\"chars\":[],\"tokens\":[\"whole\"],\"words\":[]}"},
        {"cjk", "{\"chars\":[[\"normal\"]],\"tokens\":[\"cjk\"],\"words\":[]}"},
        {"arabic", "arabic"},
        {"armenian", "armenian"},
        {"basque", "basque"},
        {"catalan", "catalan"},
        {"danish", "danish"},
        {"dutch", "dutch"},
        {"english", "english"},
        {"finnish", "finnish"},
        {"french", "french"},
        {"german", "german"},
        {"greek", "greek"},
        {"hindi", "hindi"},
        {"hungarian", "hungarian"},
        {"indonesian", "indonesian"},
        {"irish", "irish"},
        {"italian", "italian"},
        {"lithuanian", "lithuanian"},
        {"norwegian", "norwegian"},
        {"portuguese", "portuguese"},
        {"romanian", "romanian"},
        {"russian", "russian"},
        {"spanish", "spanish"},
        {"swedish", "swedish"},
        {"turkish", "turkish"}};

const char *search_analyzer_find(const struct search_analyzers *own, struct str name, bool *ret_known)
{
	struct str prefix = STR("lucene.");
	*ret_known = true;
	for (size_t i = 0; i < own->count; i++)
		if (str_is(name, own->list[i].name))
			return own->list[i].steps;
	struct str word = str_starts(name, prefix) ? (struct str){name.p + prefix.n, name.n - prefix.n} : STR_NONE;
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (str_is(word, named[i][0]))
			return named[i][1];
	*ret_known = false;
	return NULL;
}
