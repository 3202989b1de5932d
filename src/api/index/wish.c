/* From the body of a request to what engines take. What PostgreSQL has no counterpart for is refused by name: an index
 * that silently was something else would be worse than none. */
#include "api/index/wish.h"

#include "store/seal.h"

#include <stdio.h>

#define KEYS_MAX 32
#define NAME_BYTES 63
#define FIELD_BYTES 500
#define TESTS_MAX 50
#define VALUES_MAX 100
#define VALUE_BYTES 1000
#define NAME_RESERVED "steward_build_"

struct reading {
	struct arena *arena;
	const json_t *body, *options;
	struct faults *faults;
	struct engine_index *index;
};

#define FAULT(r, path, ...) faults_add((r)->faults, (r)->arena, (path), __VA_ARGS__)

/* --- keys */

static const struct key_word {
	const char *word;
	int kind; /* enum engine_key; -1: refused */
	const char *why;
} key_words[] = {
        {"1", KEY_ASCENDING, NULL},
        {"-1", KEY_DESCENDING, NULL},
        {"hashed", KEY_HASHED, NULL},
        {"text", KEY_TEXT, NULL},
        {"2d", KEY_PLACE, NULL},
        {"2dsphere", -1, "2dsphere needs PostGIS, which clusters do not have; 2d indexes points of a plane"},
        {"geoHaystack", -1, "geoHaystack indexes are not offered; 2d indexes points of a plane"},
        {"columnstore", -1, "columnstore indexes are not offered: tables are kept by rows"},
};

static const struct key_word *word_find(struct str text)
{
	for (size_t i = 0; i < sizeof key_words / sizeof *key_words; i++)
		if (str_is(text, key_words[i].word))
			return &key_words[i];
	return NULL;
}

static void key_read(struct reading *r, size_t at, const char *field, struct str word, struct engine_index_key *ret_key)
{
	static const struct str all = {".$**", 4};
	struct str name = str_of(field), path = arena_printf(r->arena, "keys[%zu]", at);
	const struct key_word *k = word_find(word);
	bool wild = str_ends(name, all);
	*ret_key = (struct engine_index_key){field, KEY_ASCENDING};
	if (!k)
		FAULT(r, path, "must have 1, -1, hashed, text or 2d as its value");
	else if (k->kind < 0)
		FAULT(r, path, "%s", k->why);
	else if (str_is(name, "$**"))
		FAULT(r, path, "indexes of all columns are not offered; COLUMN.$** indexes all of a jsonb column");
	else if (!name.n || name.n > FIELD_BYTES)
		FAULT(r, path, "must name a column, or COLUMN.NAME of a document in it, of at most %d bytes",
		      FIELD_BYTES);
	else if (wild && k->kind != KEY_ASCENDING && k->kind != KEY_DESCENDING)
		FAULT(r, path, "must have 1 as its value, because it indexes all of a column");
	else if (wild)
		*ret_key = (struct engine_index_key){arena_z(r->arena, (struct str){name.p, name.n - all.n}),
		                                     KEY_WILDCARD};
	else
		ret_key->kind = (enum engine_key)k->kind;
}

static bool is_ordered(enum engine_key kind)
{
	return kind == KEY_ASCENDING || kind == KEY_DESCENDING;
}

/* Kinds that can stand in one index. */
static void keys_check(struct reading *r, const struct engine_index_key *keys, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		bool fits = is_ordered(keys[0].kind) ? is_ordered(keys[i].kind)
		                                     : keys[0].kind == KEY_TEXT && keys[i].kind == KEY_TEXT;
		if (!fits)
			FAULT(r, arena_printf(r->arena, "keys[%zu]", i),
			      "cannot stand beside keys[0]: 1 and -1 go together, text keys too, others stand alone");
	}
}

static void keys_read(struct reading *r)
{
	const json_t *list = json_object_get(r->body, "keys");
	size_t count = json_array_size(list), known = r->faults->count;
	struct engine_index_key *keys = arena_new_array(r->arena, struct engine_index_key, KEYS_MAX);
	if (count < 1 || count > KEYS_MAX) {
		FAULT(r, STR("keys"), "must have from 1 to %d keys", KEYS_MAX);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const char *field;
		json_t *value;
		json_object_foreach(json_array_get(list, i), field, value)
		        key_read(r, i, field, json_str_of(value), &keys[i]);
	}
	if (r->faults->count == known)
		keys_check(r, keys, count);
	r->index->keys = keys;
	r->index->key_count = count;
}

/* --- conditions */

static const struct {
	const char *word;
	enum engine_test kind;
} test_words[] = {{"$eq", TEST_EQUAL},    {"$gt", TEST_MORE},  {"$gte", TEST_AT_LEAST}, {"$lt", TEST_LESS},
                  {"$lte", TEST_AT_MOST}, {"$in", TEST_EQUAL}, {"$exists", TEST_THERE}};

/* A value as text; NULL: it is none that can be compared with. */
static const char *value_text(struct arena *a, const json_t *value)
{
	struct str text = json_is_string(value)    ? json_str_of(value)
	                  : json_is_boolean(value) ? (json_is_true(value) ? STR("true") : STR("false"))
	                  : json_is_number(value)  ? json_text(a, value)
	                                           : STR_NONE;
	bool whole = text.n <= VALUE_BYTES && (text.n || json_is_string(value));
	return whole ? arena_z(a, text) : NULL;
}

static bool values_read(struct reading *r, const json_t *value, bool many, struct engine_index_test *t)
{
	size_t count = many ? json_array_size(value) : 1;
	const char **texts = arena_new_array(r->arena, const char *, VALUES_MAX);
	if (count < 1 || count > VALUES_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!(texts[i] = value_text(r->arena, many ? json_array_get(value, i) : value)))
			return false;
	t->values = texts;
	t->value_count = count;
	return true;
}

static void test_read(struct reading *r, struct str path, const char *field, const char *word, const json_t *value,
                      struct engine_index_test *tests)
{
	struct engine_index_test *t = &tests[r->index->test_count];
	size_t i = 0, known = sizeof test_words / sizeof *test_words;
	while (i < known && strcmp(word, test_words[i].word) != 0)
		i++;
	if (i == known) {
		FAULT(r, path, "must have $eq, $gt, $gte, $lt, $lte, $in or $exists");
		return;
	}
	if (r->index->test_count == TESTS_MAX) {
		FAULT(r, path, "is one of more than %d conditions", TESTS_MAX);
		return;
	}
	*t = (struct engine_index_test){.field = field, .kind = test_words[i].kind};
	bool good = true;
	if (t->kind == TEST_THERE && (good = json_is_boolean(value)))
		t->kind = json_is_true(value) ? TEST_THERE : TEST_ABSENT;
	else if (strcmp(word, "$eq") == 0 && json_is_null(value))
		t->kind = TEST_ABSENT;
	else if (t->kind != TEST_THERE)
		good = values_read(r, value, strcmp(word, "$in") == 0, t);
	if (!good)
		FAULT(r, path, "%s must have %s", word,
		      strcmp(word, "$exists") == 0 ? "true or false"
		      : strcmp(word, "$in") == 0   ? "an array of 1 to 100 texts, numbers or booleans"
		                                   : "a text of at most 1000 bytes, a number or a boolean");
	r->index->test_count += good;
}

static void tests_read(struct reading *r)
{
	const json_t *filter = json_object_get(r->options, "partialFilterExpression");
	struct engine_index_test *tests = arena_new_array(r->arena, struct engine_index_test, TESTS_MAX);
	const char *field, *word;
	json_t *conditions, *value;
	r->index->tests = tests;
	json_object_foreach((json_t *)(uintptr_t)filter, field, conditions)
	{
		struct str path = arena_printf(r->arena, "options.partialFilterExpression.%.80s", field);
		if (*field == '$' || !*field || strlen(field) > FIELD_BYTES)
			FAULT(r, path, "must be a column: conditions on several columns all hold");
		else if (!json_object_size(conditions))
			FAULT(r, path, "must have $eq, $gt, $gte, $lt, $lte, $in or $exists");
		else
			json_object_foreach(conditions, word, value) test_read(r, path, field, word, value, tests);
	}
}

/* --- options */

/* Numbers of the reference that mean nothing here: only what would be so anyhow is taken. */
static void defaults_check(struct reading *r)
{
	static const struct {
		const char *name;
		json_int_t usual;
		const char *why;
	} numbers[] = {{"2dsphereIndexVersion", 3, "versions of indexes cannot be chosen"},
	               {"textIndexVersion", 3, "versions of indexes cannot be chosen"},
	               {"bits", 26, "points have the precision of their type"},
	               {"max", 180, "points have the bounds of their type"},
	               {"min", -180, "points have the bounds of their type"}};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		const json_t *value = json_object_get(r->options, numbers[i].name);
		if (value && json_integer_value(value) != numbers[i].usual)
			FAULT(r, arena_printf(r->arena, "options.%s", numbers[i].name), "must be %lld: %s",
			      (long long)numbers[i].usual, numbers[i].why);
	}
}

static void refused_check(struct reading *r)
{
	static const char *const refused[][2] = {
	        {"bucketSize", "is for geoHaystack indexes, which are not offered"},
	        {"columnstoreProjection", "is for columnstore indexes, which are not offered"},
	        {"expireAfterSeconds", "rows do not end by themselves: delete them, or drop partitions"},
	        {"storageEngine", "there is one storage engine, without options"},
	        {"weights", "weights belong to queries: use setweight() and ts_rank()"},
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const json_t *value = json_object_get(r->options, refused[i][0]);
		if (value && (!json_is_object(value) || json_object_size(value)))
			FAULT(r, arena_printf(r->arena, "options.%s", refused[i][0]), "%s", refused[i][1]);
	}
	if (json_flag(r->options, "hidden"))
		FAULT(r, STR("options.hidden"), "an index cannot be hidden from the planner");
	struct str other = json_field(r->options, "language_override");
	if (other.n && !str_is(other, "language"))
		FAULT(r, STR("options.language_override"), "an index has one language for all rows: default_language");
}

/* The text search configurations that PostgreSQL brings along. */
static void language_read(struct reading *r)
{
	static const char languages[] =
	        "arabic|armenian|basque|catalan|danish|dutch|english|finnish|french|german|greek|hindi|hungarian|"
	        "indonesian|irish|italian|lithuanian|nepali|norwegian|portuguese|romanian|russian|serbian|simple|"
	        "spanish|"
	        "swedish|tamil|turkish|yiddish";
	static const char *const codes[][2] = {
	        {"none", "simple"}, {"da", "danish"},    {"de", "german"},  {"en", "english"},
	        {"es", "spanish"},  {"fi", "finnish"},   {"fr", "french"},  {"hu", "hungarian"},
	        {"it", "italian"},  {"nb", "norwegian"}, {"nl", "dutch"},   {"pt", "portuguese"},
	        {"ro", "romanian"}, {"ru", "russian"},   {"sv", "swedish"}, {"tr", "turkish"}};
	struct str given = json_field(r->options, "default_language");
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (str_is(given, codes[i][0]))
			given = str_of(codes[i][1]);
	if (!given.n)
		given = STR("english");
	if (!str_is_one_of(languages, given))
		FAULT(r, STR("options.default_language"), "must be one of %s, or none", languages);
	r->index->language = arena_z(r->arena, given);
}

/* --- names */

static const char *name_read(struct reading *r, const char *field)
{
	struct str name = json_field(r->body, field);
	if (!name.n || name.n > 2 * NAME_BYTES + 1)
		FAULT(r, str_of(field), "must have from 1 to %d bytes", 2 * NAME_BYTES + 1);
	return arena_z(r->arena, name);
}

/* Names of indexes share the schema with tables, so that the table's is part of it: orders_customer_1_placed_-1. */
static const char *name_make(struct reading *r)
{
	static const char *const ends[] = {[KEY_ASCENDING] = "1", [KEY_DESCENDING] = "-1", [KEY_HASHED] = "hashed",
	                                   [KEY_TEXT] = "text",   [KEY_PLACE] = "2d",      [KEY_WILDCARD] = "all"};
	struct str name = str_of(r->index->table);
	for (size_t i = 0; i < r->index->key_count; i++)
		name = arena_printf(r->arena, "%.*s_%s_%s", STR_ARG(name), r->index->keys[i].field,
		                    ends[r->index->keys[i].kind]);
	if (name.n <= NAME_BYTES)
		return arena_z(r->arena, name);
	char digest[65];
	size_t n = NAME_BYTES - 9;
	sha256_hex(name, digest);
	while (n && ((unsigned char)name.p[n] & 0xc0) == 0x80)
		n--;
	return arena_printf(r->arena, "%.*s_%.8s", (int)n, name.p, digest).p;
}

static void name_choose(struct reading *r)
{
	struct str name = json_field(r->options, "name");
	if (!json_object_get(r->options, "name"))
		r->index->name = name_make(r);
	else if (!name.n || name.n > NAME_BYTES || str_starts(name, STR(NAME_RESERVED)))
		FAULT(r, STR("options.name"), "must have from 1 to %d bytes, and not begin with " NAME_RESERVED,
		      NAME_BYTES);
	else
		r->index->name = arena_z(r->arena, name);
}

void index_wish(struct arena *a, const json_t *body, struct faults *faults, struct engine_index *ret_index)
{
	*ret_index = (struct engine_index){.name = ""};
	struct reading r = {.arena = a,
	                    .body = body,
	                    .options = json_object_get(body, "options"),
	                    .faults = faults,
	                    .index = ret_index};
	ret_index->database = name_read(&r, "db");
	ret_index->table = name_read(&r, "collection");
	keys_read(&r);
	tests_read(&r);
	defaults_check(&r);
	refused_check(&r);
	language_read(&r);
	index_collation(a, json_object_get(body, "collation"), ret_index);
	ret_index->unique = json_flag(r.options, "unique");
	ret_index->sparse = json_flag(r.options, "sparse");
	bool ordered = ret_index->key_count && is_ordered(ret_index->keys[0].kind);
	if (ret_index->unique && !ordered)
		FAULT(&r, STR("options.unique"), "only an index of 1 and -1 keys can be unique");
	if (ret_index->collation && !ordered)
		FAULT(&r, STR("collation"), "only an index of 1 and -1 keys has an order");
	name_choose(&r);
}
