/* Index requests in the words of engines: collations as locales, names, conditions. */
#include "api/index/wish.h"

#include "check.h"

static struct engine_index wish(struct arena *a, const char *more, struct faults *faults)
{
	struct str text = arena_printf(a, "{\"db\":\"shop\",\"collection\":\"orders\"%s}", more);
	struct engine_index index;
	*faults = (struct faults){.count = 0};
	index_wish(a, doc_json(a, text), faults, &index);
	return index;
}

static void test_collations(struct arena *a)
{
	static const struct {
		const char *json, *locale;
		bool plain, loose;
	} cases[] = {
	        {"{\"locale\":\"de\"}", "de", true, false},
	        {"{\"locale\":\"de_AT\",\"strength\":3,\"caseFirst\":\"off\"}", "de-AT", true, false},
	        {"{\"locale\":\"zh_Hant\",\"strength\":1}", "zh-Hant-u-ks-level1", false, true},
	        {"{\"locale\":\"fr_CA\",\"backwards\":true,\"caseLevel\":true,\"caseFirst\":\"upper\",\"strength\":2}",
	         "fr-CA-u-kb-true-kc-true-kf-upper-ks-level2", false, true},
	        {"{\"locale\":\"en\",\"alternate\":\"shifted\",\"maxVariable\":\"space\",\"numericOrdering\":true,"
	         "\"normalization\":true,\"strength\":5}",
	         "en-u-ka-shifted-kk-true-kn-true-ks-identic-kv-space", false, true},
	        {"{\"locale\":\"en\",\"maxVariable\":\"space\"}", "en", true, false},
	        {"{\"locale\":\"en_US_POSIX\"}", "en-US-u-va-posix", false, false},
	        {"{\"locale\":\"simple\"}", "", true, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct engine_index index = {.name = ""};
		index_collation(a, doc_json(a, str_of(cases[i].json)), &index);
		CHECK(index.collation && strcmp(index.collation, cases[i].locale) == 0);
		CHECK(index.collation_plain == cases[i].plain && index.collation_loose == cases[i].loose);
	}
	struct engine_index none = {.name = ""};
	index_collation(a, NULL, &none);
	CHECK(!none.collation);
}

static void test_names(struct arena *a)
{
	struct faults faults;
	struct engine_index index = wish(a, ",\"keys\":[{\"customer\":\"1\"},{\"placed\":\"-1\"}]", &faults);
	CHECK(!faults.count && strcmp(index.name, "orders_customer_1_placed_-1") == 0);
	CHECK(index.key_count == 2 && index.keys[1].kind == KEY_DESCENDING && strcmp(index.language, "english") == 0);
	/* A name that is too long is cut between characters, and stays its own. */
	index = wish(
	        a,
	        ",\"keys\":[{\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
	        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3"
	        "\xa4"
	        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\":\"1\"}]",
	        &faults);
	size_t n = strlen(index.name);
	CHECK(!faults.count && n >= 61 && n <= 63 && index.name[n - 9] == '_');
	index = wish(a, ",\"keys\":[{\"doc.$**\":\"1\"}]", &faults);
	CHECK(!faults.count && index.keys[0].kind == KEY_WILDCARD && strcmp(index.keys[0].field, "doc") == 0);
	CHECK(strcmp(index.name, "orders_doc_all") == 0);
}

static void test_conditions(struct arena *a)
{
	struct faults faults;
	struct engine_index index = wish(
	        a,
	        ",\"keys\":[{\"a\":\"1\"}],\"options\":{\"partialFilterExpression\":{\"a\":{\"$gt\":5,\"$lte\":2.5},"
	        "\"b\":{\"$in\":[\"x\",true]},\"c\":{\"$exists\":false},\"d\":{\"$eq\":null}}}",
	        &faults);
	CHECK(!faults.count && index.test_count == 5);
	CHECK(index.tests[0].kind == TEST_MORE && strcmp(index.tests[0].values[0], "5") == 0);
	CHECK(index.tests[1].kind == TEST_AT_MOST && strcmp(index.tests[1].values[0], "2.5") == 0);
	CHECK(index.tests[2].kind == TEST_EQUAL && index.tests[2].value_count == 2 &&
	      strcmp(index.tests[2].values[1], "true") == 0);
	CHECK(index.tests[3].kind == TEST_ABSENT && index.tests[4].kind == TEST_ABSENT);
	wish(a, ",\"keys\":[{\"a\":\"1\"}],\"options\":{\"partialFilterExpression\":{\"a\":{\"$ne\":1}}}", &faults);
	CHECK(faults.count == 1);
}

int main(void)
{
	struct arena *a = arena_new();
	json_setup();
	test_collations(a);
	test_names(a);
	test_conditions(a);
	arena_free(a);
	return CHECK_DONE();
}
