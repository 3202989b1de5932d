/* Limits of the file and of the store together: which wins, and what is left out. */
#include "gate/rules.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

static char dir[] = "/tmp/steward-rules-XXXXXX";

static int put(struct tx *tx, void *ctx)
{
	struct limit_override rows[] = {
	        {str_of(catalog_sets[0].id), STR(""), 11, 1},
	        {str_of(catalog_sets[0].id), STR("6740a1b2c3d4e5f601234567"), 12, 2},
	        {STR("S999"), STR(""), 13, 3},
	};
	for (size_t i = 0; i < 3; i++) {
		int r = tx_override_put(tx, &rows[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct limit_rule *find(const struct limit_rule *rules, size_t count, const struct bucket_set *set,
                                     const char *scope)
{
	const struct limit_rule *found = NULL;
	for (size_t i = 0; i < count; i++)
		if (rules[i].set == set && str_is(rules[i].scope, scope)) {
			CHECK(!found);
			found = &rules[i];
		}
	return found;
}

static void test_joined(struct tx *reader)
{
	struct arena *a = arena_new();
	struct limit_rule *rules;
	size_t count;
	struct config_limit limits[] = {
	        {str_of(catalog_sets[0].id), STR(""), 21, 1, "f:1: x"},
	        {str_of(catalog_sets[1].id), STR(""), 22, 2, "f:2: x"},
	        {STR("*"), STR(""), 23, 3, "f:3: x"},
	        {STR("nope"), STR(""), 24, 4, "f:4: nope"},
	};
	CHECK(rules_check(limits, 3));
	CHECK(!rules_check(limits, 4));
	CHECK(rules_make(a, limits, 4, reader, &rules, &count) == 0);
	CHECK(count == 4);
	const struct limit_rule *r = find(rules, count, &catalog_sets[0], "");
	CHECK(r && r->capacity == 11 && r->refill == 1);
	r = find(rules, count, &catalog_sets[0], "6740a1b2c3d4e5f601234567");
	CHECK(r && r->capacity == 12);
	r = find(rules, count, &catalog_sets[1], "");
	CHECK(r && r->capacity == 22);
	r = find(rules, count, NULL, "");
	CHECK(r && r->capacity == 23);
	CHECK(rules_make(a, NULL, 0, reader, &rules, &count) == 0 && count == 2);
	arena_free(a);
}

int main(void)
{
	struct store *store;
	struct store_options options = {.data_dir = dir};
	if (!mkdtemp(dir) || store_open(&options, &store) < 0)
		return 1;
	CHECK(rules_find_set(str_of(catalog_sets[1].id)) == &catalog_sets[1]);
	CHECK(!rules_find_set(STR("")) && !rules_find_set(STR("*")));
	CHECK(store_write_wait(store, put, NULL) == 0);
	struct tx *reader = store_reader(store);
	CHECK(reader != NULL);
	if (reader)
		test_joined(reader);
	store_reader_free(reader);
	store_close(store);
	char file[128];
	snprintf(file, sizeof file, "%s/steward.db", dir);
	unlink(file);
	rmdir(dir);
	return CHECK_DONE();
}
