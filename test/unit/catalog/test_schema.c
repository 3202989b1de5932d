/* The schema check on hand-made tables: it links with the catalog's schema files, but not with the generated tables. */
#include "catalog/formats.h"
#include "catalog/schema.h"

#include "check.h"

#include <pthread.h>

const char *const schema_patterns[] = {"^([a-f0-9]{24})$", "^[\\p{L}\\p{N}\\-_. ]{1,64}$", "^(?!system)[a-z]+$", "b+",
                                       "^(a+)+$"};
const char *const schema_pattern_rules[] = {"must be an id", "must be a name",
                                            "must be lower case, and not the system's", "must have a b",
                                            "must be many a"};
const unsigned schema_pattern_count = 5;

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define FIELDS(list) .field_count = COUNT(list), .fields = list
#define ENUMS(list) .enum_count = COUNT(list), .enums = list
#define BRANCHES(list) .branch_count = COUNT(list), .branches = list
#define MAPPING(list) .mapping_count = COUNT(list), .mapping = list
#define PLAIN .pattern = -1

static const char *const sizes[] = {"\"M10\"", "\"M20\""};
static const char *const providers[] = {"\"AWS\"", "\"AZURE\"", "\"GCP\""};
static const char *const factors[] = {"3", "5", "7"};
static const char *const many[] = {"\"A1\"", "\"A2\"", "\"A3\"", "\"A4\"", "\"A5\"", "\"A6\"", "\"A7\"",
                                   "\"A8\"", "\"A9\"", "\"B1\"", "\"B2\"", "\"B3\"", "\"B4\"", "\"B5\""};

static const struct schema any_string = {.type = TYPE_STRING, PLAIN};
static const struct schema id = {.type = TYPE_STRING, .pattern = 0, .flags = SCHEMA_READ_ONLY};
static const struct schema title = {.type = TYPE_STRING, .pattern = 1};
static const struct schema lower = {.type = TYPE_STRING, .pattern = 2};
static const struct schema catastrophe = {.type = TYPE_STRING, .pattern = 4};
static const struct schema unanchored = {.type = TYPE_STRING, .pattern = 3};
static const struct schema bounded_text = {.type = TYPE_STRING,
                                           PLAIN,
                                           .flags = SCHEMA_HAS_MIN_LENGTH | SCHEMA_HAS_MAX_LENGTH,
                                           .min_length = 2,
                                           .max_length = 4};
static const struct schema size = {.type = TYPE_STRING, PLAIN, ENUMS(sizes), .default_json = "\"M10\""};
static const struct schema provider = {.type = TYPE_STRING, PLAIN, ENUMS(providers), .flags = SCHEMA_IMMUTABLE};
static const struct schema factor = {.type = TYPE_INTEGER, PLAIN, ENUMS(factors)};
static const struct schema long_enum = {.type = TYPE_STRING, PLAIN, ENUMS(many)};
static const struct schema int32 = {.type = TYPE_INTEGER, .format = FORMAT_INT32, PLAIN};
static const struct schema priority = {
        .type = TYPE_INTEGER, PLAIN, .flags = SCHEMA_HAS_MIN | SCHEMA_HAS_MAX, .min = 0, .max = 7};
static const struct schema positive = {.type = TYPE_NUMBER, PLAIN, .flags = SCHEMA_HAS_MIN | SCHEMA_EXCLUSIVE_MIN};
static const struct schema boolean = {.type = TYPE_BOOLEAN, PLAIN, .default_json = "true"};
static const struct schema date_time = {.type = TYPE_STRING, .format = FORMAT_DATE_TIME, PLAIN};
static const struct schema nullable_text = {.type = TYPE_STRING, PLAIN, .flags = SCHEMA_NULLABLE};
static const struct schema secret = {.type = TYPE_STRING, PLAIN, .flags = SCHEMA_WRITE_ONLY};
static const struct schema anything = {.type = TYPE_OBJECT, PLAIN};
static const struct schema map = {.type = TYPE_OBJECT, PLAIN, .additional = &int32};
static const struct schema set = {.type = TYPE_ARRAY,
                                  PLAIN,
                                  .items = &any_string,
                                  .flags = SCHEMA_UNIQUE | SCHEMA_HAS_MAX_LENGTH,
                                  .max_length = 100};

/* oneOf without discriminator under a parent with a field of its own. */
static const struct field aws_spec_fields[] = {{"diskIOPS", &int32}, {"instanceSize", &size}};
static const struct field gcp_spec_fields[] = {{"instanceSize", &long_enum}};
static const struct schema aws_spec = {.type = TYPE_OBJECT, PLAIN, FIELDS(aws_spec_fields)};
static const struct schema gcp_spec = {.type = TYPE_OBJECT, PLAIN, FIELDS(gcp_spec_fields)};
static const struct branch spec_branches[] = {{NULL, &aws_spec}, {NULL, &gcp_spec}};
static const struct field spec_fields[] = {{"nodeCount", &int32, true}};
static const struct schema spec = {.type = TYPE_OBJECT, PLAIN, FIELDS(spec_fields), BRANCHES(spec_branches)};

/* oneOf with discriminator, children merged with the parent. */
static const struct field aws_region_fields[] = {{"createdAt", &date_time},
                                                 {"ebs", &boolean},
                                                 {"priority", &priority, true},
                                                 {"providerName", &provider, true},
                                                 {"specs", &spec}};
static const struct field gcp_region_fields[] = {
        {"priority", &priority, true}, {"providerName", &provider, true}, {"token", &secret}};
static const struct schema aws_region = {.name = "AwsRegion", .type = TYPE_OBJECT, PLAIN, FIELDS(aws_region_fields)};
static const struct schema gcp_region = {.name = "GcpRegion", .type = TYPE_OBJECT, PLAIN, FIELDS(gcp_region_fields)};
static const struct branch region_branches[] = {{NULL, &aws_region}, {NULL, &gcp_region}};
static const struct branch region_mapping[] = {{"AWS", &aws_region}, {"GCP", &gcp_region}};
static const struct field region_fields[] = {{"priority", &priority, true}, {"providerName", &provider, true}};
static const struct schema region = {.type = TYPE_OBJECT,
                                     PLAIN,
                                     FIELDS(region_fields),
                                     BRANCHES(region_branches),
                                     .discriminator = "providerName",
                                     MAPPING(region_mapping)};
static const struct schema regions = {
        .type = TYPE_ARRAY, PLAIN, .items = &region, .flags = SCHEMA_HAS_MIN_LENGTH, .min_length = 1};

/* A mapping without oneOf, and a discriminator with a default. */
static const char *const kinds[] = {"\"search\"", "\"vector\""};
static const struct schema kind = {.type = TYPE_STRING, PLAIN, ENUMS(kinds), .default_json = "\"search\""};
static const struct field search_fields[] = {{"analyzer", &any_string}, {"type", &kind}};
static const struct field vector_fields[] = {{"dimensions", &int32, true}, {"type", &kind}};
static const struct schema search = {.type = TYPE_OBJECT, PLAIN, FIELDS(search_fields)};
static const struct schema vector = {.type = TYPE_OBJECT, PLAIN, FIELDS(vector_fields)};
static const struct branch index_mapping[] = {{"search", &search}, {"vector", &vector}};
static const struct field index_fields[] = {{"type", &kind}};
static const struct schema search_index = {
        .type = TYPE_OBJECT, PLAIN, FIELDS(index_fields), .discriminator = "type", MAPPING(index_mapping)};

/* The discriminator only in the branches. */
static const struct field a_fields[] = {{"kind", &any_string, true}, {"one", &int32}};
static const struct field b_fields[] = {{"kind", &any_string, true}, {"two", &int32}};
static const struct schema shape_a = {.type = TYPE_OBJECT, PLAIN, FIELDS(a_fields)},
                           shape_b = {.type = TYPE_OBJECT, PLAIN, FIELDS(b_fields)};
static const struct branch shape_mapping[] = {{"a", &shape_a}, {"b", &shape_b}};
static const struct schema shape = {.type = TYPE_ANY, PLAIN, .discriminator = "kind", MAPPING(shape_mapping)};

/* oneOf of strings. */
static const struct branch word_branches[] = {{NULL, &size}, {NULL, &long_enum}};
static const struct schema word = {.type = TYPE_ANY, PLAIN, BRANCHES(word_branches)};

static const struct field cluster_fields[] = {{"anything", &anything},
                                              {"boolean", &boolean},
                                              {"bounded", &bounded_text},
                                              {"createdAt", &date_time},
                                              {"factor", &factor},
                                              {"id", &id, true},
                                              {"index", &search_index},
                                              {"int32", &int32},
                                              {"lower", &lower},
                                              {"map", &map},
                                              {"name", &title, true},
                                              {"nullable", &nullable_text},
                                              {"positive", &positive},
                                              {"provider", &provider},
                                              {"regionConfigs", &regions},
                                              {"secret", &secret},
                                              {"set", &set},
                                              {"shape", &shape},
                                              {"size", &size},
                                              {"unanchored", &unanchored},
                                              {"word", &word}};
static const struct schema cluster = {.name = "Cluster",
                                      .type = TYPE_OBJECT,
                                      PLAIN,
                                      FIELDS(cluster_fields),
                                      .flags = SCHEMA_HAS_MIN_LENGTH,
                                      .min_length = 1};

const struct schema *const schema_all[] = {&aws_region, &cluster, &gcp_region};
const unsigned schema_all_count = 3;

static struct arena *arena;
static struct faults faults;

static size_t check(const struct schema *s, const char *json, enum schema_use use)
{
	json_error_t error;
	json_t *value = json_loads(json, JSON_DECODE_ANY, &error);
	CHECK(value);
	faults = (struct faults){0};
	schema_check(s, value, use, arena, &faults);
	json_decref(value);
	return faults.count;
}

/* Exactly one fault, with that path and text. */
static bool one(const char *json, const char *path, const char *text)
{
	size_t n = check(&cluster, json, SCHEMA_CREATE);
	bool fits = n == 1 && str_is(faults.list[0].path, path) && str_is(faults.list[0].text, text);
	for (size_t i = 0; !fits && i < n && i < FAULTS_MAX; i++)
		fprintf(stderr, "  %.*s: %.*s\n", STR_ARG(faults.list[i].path), STR_ARG(faults.list[i].text));
	return fits;
}

static bool has(const char *path, const char *text)
{
	for (size_t i = 0; i < faults.count && i < FAULTS_MAX; i++)
		if (str_is(faults.list[i].path, path) && str_is(faults.list[i].text, text))
			return true;
	return false;
}

static bool fits(const char *json)
{
	return check(&cluster, json, SCHEMA_CREATE) == 0;
}

static void test_scalars(void)
{
	CHECK(fits("{\"name\":\"x\"}"));
	CHECK(check(&cluster, "{}", SCHEMA_CREATE) == 2 && has("", "must have at least 1 field") &&
	      has("name", "is required"));
	CHECK(one("{\"name\":1}", "name", "must be a string"));
	CHECK(one("{\"name\":null}", "name", "must not be null"));
	CHECK(one("[]", "", "must be an object"));
	CHECK(fits("{\"name\":\"\\u00c4rger-\\u65e5\\u672c 1\"}"));
	CHECK(one("{\"name\":\"a/b\"}", "name", "must be a name"));
	CHECK(one("{\"name\":\"x\\n\"}", "name", "must be a name"));
	CHECK(fits("{\"name\":\"x\",\"lower\":\"sys\"}"));
	CHECK(one("{\"name\":\"x\",\"lower\":\"systemx\"}", "lower", "must be lower case, and not the system's"));
	CHECK(fits("{\"name\":\"x\",\"unanchored\":\"aabbcc\"}"));
	CHECK(fits("{\"name\":\"x\",\"bounded\":\"\\u65e5\\u672c\\u65e5\\u672c\"}"));
	CHECK(one("{\"name\":\"x\",\"bounded\":\"12345\"}", "bounded", "must be at most 4 characters long"));
	CHECK(one("{\"name\":\"x\",\"bounded\":\"\\u65e5\"}", "bounded", "must be at least 2 characters long"));
	CHECK(one("{\"name\":\"x\",\"size\":\"M11\"}", "size", "must be one of M10, M20"));
	CHECK(one("{\"name\":\"x\",\"size\":\"M1\"}", "size", "must be one of M10, M20"));
	CHECK(one("{\"name\":\"x\",\"size\":\"\"}", "size", "must be one of M10, M20"));
	CHECK(fits("{\"name\":\"x\",\"factor\":5}"));
	CHECK(one("{\"name\":\"x\",\"factor\":4}", "factor", "must be one of 3, 5, 7"));
	CHECK(one("{\"name\":\"x\",\"factor\":\"5\"}", "factor", "must be an integer"));
	CHECK(one("{\"name\":\"x\",\"int32\":1.0}", "int32", "must be an integer"));
	CHECK(one("{\"name\":\"x\",\"int32\":2147483648}", "int32", "must be between -2147483648 and 2147483647"));
	CHECK(fits("{\"name\":\"x\",\"positive\":1}"));
	CHECK(fits("{\"name\":\"x\",\"positive\":0.5}"));
	CHECK(one("{\"name\":\"x\",\"positive\":0}", "positive", "must be more than 0"));
	CHECK(one("{\"name\":\"x\",\"boolean\":\"true\"}", "boolean", "must be true or false"));
	CHECK(fits("{\"name\":\"x\",\"nullable\":null}"));
	CHECK(fits("{\"name\":\"x\",\"createdAt\":\"2026-01-31T10:00:00+02:00\"}"));
	CHECK(one("{\"name\":\"x\",\"createdAt\":\"2026-02-30\"}", "createdAt", "must be an ISO 8601 date and time"));
}

static void test_objects(void)
{
	CHECK(one("{\"name\":\"x\",\"id\":\"000000000000000000000000\"}", "id", "is read-only"));
	CHECK(check(&cluster, "{\"name\":\"x\",\"id\":\"000000000000000000000000\"}", SCHEMA_STORED) == 0);
	CHECK(check(&cluster, "{\"name\":\"x\"}", SCHEMA_STORED) == 1 && has("id", "is required"));
	CHECK(check(&cluster, "{\"name\":\"x\",\"provider\":\"AWS\"}", SCHEMA_UPDATE) == 1 &&
	      has("provider", "cannot be changed"));
	CHECK(one("{\"name\":\"x\",\"nmae\":1}", "nmae", "unknown field (did you mean name?)"));
	CHECK(one("{\"name\":\"x\",\"regionConfig\":1}", "regionConfig",
	          "unknown field (did you mean regionConfigs?)"));
	CHECK(one("{\"name\":\"x\",\"zzzzzzzz\":1}", "zzzzzzzz", "unknown field"));
	CHECK(fits("{\"name\":\"x\",\"anything\":{\"a\":[1,{\"b\":null}]}}"));
	CHECK(fits("{\"name\":\"x\",\"map\":{\"a\":1,\"b\":2}}"));
	CHECK(one("{\"name\":\"x\",\"map\":{\"a\":1,\"b\":\"2\"}}", "map.b", "must be an integer"));
	CHECK(check(&cluster, "{\"size\":1,\"nope\":2,\"regionConfigs\":[]}", SCHEMA_CREATE) == 4);
	CHECK(has("size", "must be a string") && has("nope", "unknown field") && has("name", "is required"));
	CHECK(has("regionConfigs", "must have at least 1 item"));
}

static void test_arrays(void)
{
	char text[8192];
	int n = snprintf(text, sizeof text, "{\"name\":\"x\",\"set\":[\"0\"");
	CHECK(one("{\"name\":\"x\",\"set\":[\"a\",\"b\",\"a\"]}", "set[2]", "must not repeat an earlier item"));
	CHECK(one("{\"name\":\"x\",\"set\":[\"a\",1]}", "set[1]", "must be a string"));
	for (int i = 1; i < 50; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, ",\"%d\"", i);
	snprintf(text + n, sizeof text - (size_t)n, "]}");
	CHECK(fits(text));
	snprintf(text + n, sizeof text - (size_t)n, ",\"17\"]}");
	CHECK(one(text, "set[50]", "must not repeat an earlier item"));
	for (int i = 50; i < 120; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, ",\"%d\"", i);
	snprintf(text + n, sizeof text - (size_t)n, "]}");
	CHECK(one(text, "set", "must have at most 100 items"));
}

static void test_discriminator(void)
{
	CHECK(fits("{\"name\":\"x\",\"regionConfigs\":[{\"providerName\":\"AWS\",\"priority\":7,\"ebs\":true},"
	           "{\"providerName\":\"GCP\",\"priority\":6,\"token\":\"t\"}]}"));
	CHECK(one("{\"name\":\"x\",\"regionConfigs\":[{\"providerName\":\"AWS\",\"priority\":7},{\"providerName\":"
	          "\"GCP\","
	          "\"priority\":8}]}",
	          "regionConfigs[1].priority", "must be at most 7"));
	CHECK(one("{\"name\":\"x\",\"regionConfigs\":[{\"providerName\":\"GCP\",\"priority\":1,\"ebs\":true}]}",
	          "regionConfigs[0].ebs", "unknown field"));
	CHECK(one("{\"name\":\"x\",\"regionConfigs\":[{\"providerName\":\"AZURE\",\"priority\":1,\"ebs\":true}]}",
	          "regionConfigs[0].providerName", "must be one of AWS, GCP"));
	CHECK(one("{\"name\":\"x\",\"regionConfigs\":[{\"priority\":1,\"ebs\":true}]}", "regionConfigs[0].providerName",
	          "is required"));
	CHECK(one("{\"name\":\"x\",\"regionConfigs\":[{\"providerName\":1,\"priority\":1,\"token\":\"t\"}]}",
	          "regionConfigs[0].providerName", "must be a string"));
	CHECK(one("{\"name\":\"x\",\"regionConfigs\":[{\"providerName\":\"AWS\"}]}", "regionConfigs[0].priority",
	          "is required"));
	CHECK(fits("{\"name\":\"x\",\"index\":{\"analyzer\":\"a\"}}"));
	CHECK(fits("{\"name\":\"x\",\"index\":{\"type\":\"vector\",\"dimensions\":3}}"));
	CHECK(one("{\"name\":\"x\",\"index\":{\"type\":\"vector\",\"analyzer\":\"a\",\"dimensions\":1}}",
	          "index.analyzer", "unknown field"));
	CHECK(one("{\"name\":\"x\",\"index\":{\"type\":\"other\"}}", "index.type", "must be one of search, vector"));
	CHECK(fits("{\"name\":\"x\",\"shape\":{\"kind\":\"b\",\"two\":2}}"));
	CHECK(one("{\"name\":\"x\",\"shape\":{\"two\":2}}", "shape.kind", "is required"));
	CHECK(one("{\"name\":\"x\",\"shape\":{\"kind\":\"c\",\"two\":2}}", "shape.kind", "must be one of a, b"));
	CHECK(one("{\"name\":\"x\",\"shape\":{\"kind\":[],\"two\":2}}", "shape.kind", "must be a string"));
	CHECK(one("{\"name\":\"x\",\"shape\":{\"kind\":\"a\",\"two\":2}}", "shape.two", "unknown field"));
	CHECK(one("{\"name\":\"x\",\"shape\":3}", "shape", "must be an object"));
}

static void test_branches(void)
{
#define SPEC(body) "{\"name\":\"x\",\"regionConfigs\":[{\"providerName\":\"AWS\",\"priority\":7,\"specs\":" body "}]}"
	CHECK(fits(SPEC("{\"nodeCount\":3,\"instanceSize\":\"M10\",\"diskIOPS\":3}")));
	CHECK(fits(SPEC("{\"nodeCount\":3,\"instanceSize\":\"B5\"}")));
	CHECK(one(SPEC("{\"nodeCount\":3,\"instanceSize\":\"B5\",\"diskIOPS\":3}"), "regionConfigs[0].specs.diskIOPS",
	          "unknown field"));
	CHECK(one(SPEC("{\"instanceSize\":\"B5\"}"), "regionConfigs[0].specs.nodeCount", "is required"));
	CHECK(one(SPEC("{\"nodeCount\":3,\"diskIOPS\":\"3\"}"), "regionConfigs[0].specs.diskIOPS", "unknown field") ||
	      has("regionConfigs[0].specs.diskIOPS", "must be an integer"));
	CHECK(one(SPEC("{\"nodeCount\":3,\"bogus\":1,\"instanceSize\":\"M10\"}"), "regionConfigs[0].specs.bogus",
	          "unknown field"));
	CHECK(fits("{\"name\":\"x\",\"word\":\"B5\"}"));
	CHECK(one("{\"name\":\"x\",\"word\":\"C\"}", "word",
	          "must be one of M10, M20, A1, A2, A3, A4, A5, A6, A7, A8, A9, B1 … and 4 more"));
	CHECK(one("{\"name\":\"x\",\"word\":1}", "word", "must be a string"));
}

/* A schema that contains itself, to test the limit of depth. */
static const struct schema node;
static const struct field node_fields[] = {{"next", &node}};
static const struct schema node = {.type = TYPE_OBJECT, PLAIN, FIELDS(node_fields)};

/* A schema whose branches contain it again: trying branches inside branches must end. */
static const struct schema maze;
static const struct field maze_a_fields[] = {{"a", &int32, true}, {"next", &maze}};
static const struct field maze_b_fields[] = {{"b", &int32, true}, {"next", &maze}};
static const struct field maze_c_fields[] = {{"c", &int32, true}, {"next", &maze}};
static const struct schema maze_a = {.type = TYPE_OBJECT, PLAIN, FIELDS(maze_a_fields)};
static const struct schema maze_b = {.type = TYPE_OBJECT, PLAIN, FIELDS(maze_b_fields)};
static const struct schema maze_c = {.type = TYPE_OBJECT, PLAIN, FIELDS(maze_c_fields)};
static const struct branch maze_branches[] = {{NULL, &maze_a}, {NULL, &maze_b}, {NULL, &maze_c}};
static const struct schema maze = {.type = TYPE_OBJECT, PLAIN, BRANCHES(maze_branches)};

static json_t *nested(unsigned depth)
{
	json_t *value = json_object();
	for (unsigned i = 0; i < depth; i++)
		value = json_pack("{s:o}", "next", value);
	return value;
}

static void test_bounds(void)
{
	json_t *value = nested(200);
	faults = (struct faults){0};
	schema_check(&node, value, SCHEMA_CREATE, arena, &faults);
	CHECK(faults.count == 1 && str_is(faults.list[0].text, "must not be nested more than 64 levels deep"));
	faults = (struct faults){0};
	schema_check(&maze, value, SCHEMA_CREATE, arena, &faults);
	CHECK(faults.count > 0);
	json_decref(value);

	value = json_pack("{s:s}", "name", "x");
	for (int i = 0; i < 100; i++) {
		char key[300];
		snprintf(key, sizeof key, "%0*d", i == 0 ? 299 : 12, i);
		json_object_set_new(value, key, json_null());
	}
	faults = (struct faults){0};
	schema_check(&cluster, value, SCHEMA_CREATE, arena, &faults);
	CHECK(faults.count == 100);
	CHECK(faults.list[0].path.n < 80 && str_ends(faults.list[0].path, STR("…")));
	CHECK(faults.list[FAULTS_MAX - 1].path.n == 12);
	json_decref(value);

	json_t *hostile = json_pack("{s:s}", "x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
	faults = (struct faults){0};
	schema_check(&catastrophe, json_object_get(hostile, "x"), SCHEMA_CREATE, arena, &faults);
	CHECK(faults.count == 1);
	json_decref(hostile);
}

static bool text_fits(const struct schema *s, const char *text)
{
	faults = (struct faults){0};
	return schema_check_text(s, STR("p"), str_of(text), arena, &faults);
}

static void test_text(void)
{
	static const struct schema words = {.type = TYPE_ARRAY, PLAIN, .items = &word};
	CHECK(text_fits(&title, "x"));
	CHECK(!text_fits(&title, "a/b") && has("p", "must be a name"));
	CHECK(!text_fits(&title, "\xff") && has("p", "must be UTF-8 text"));
	CHECK(text_fits(&priority, "7") && text_fits(&priority, "0"));
	CHECK(!text_fits(&priority, "8") && has("p", "must be at most 7"));
	CHECK(!text_fits(&priority, "-1") && has("p", "must be at least 0"));
	CHECK(!text_fits(&priority, "") && !text_fits(&priority, "1x") && !text_fits(&priority, "-") &&
	      !text_fits(&priority, "1.0"));
	CHECK(!text_fits(&priority, "99999999999999999999") && has("p", "must be at most 7"));
	CHECK(!text_fits(&priority, "-99999999999999999999") && has("p", "must be at least 0"));
	static const struct schema any = {.type = TYPE_INTEGER, PLAIN};
	CHECK(text_fits(&any, "9223372036854775807") && !text_fits(&any, "9223372036854775808") &&
	      has("p", "must be between -9223372036854775808 and 9223372036854775807"));
	CHECK(text_fits(&positive, "0.5") && text_fits(&positive, "1e3"));
	CHECK(!text_fits(&positive, "inf") && !text_fits(&positive, "0x10") && !text_fits(&positive, " 1") &&
	      !text_fits(&positive, ""));
	CHECK(text_fits(&boolean, "true") && text_fits(&boolean, "false"));
	CHECK(!text_fits(&boolean, "TRUE") && has("p", "must be true or false"));
	CHECK(text_fits(&set, "a,b,c") && text_fits(&set, ""));
	CHECK(!text_fits(&set, "a,b,a") && has("p", "must not repeat a value"));
	CHECK(text_fits(&words, "M10,B5"));
	CHECK(!text_fits(&words, "M10,C") && faults.count == 1);
	CHECK(!text_fits(&size, "M1") && has("p", "must be one of M10, M20"));
}

static void test_documents(void)
{
	json_t *v = json_loads(
	        "{\"name\":\"x\",\"secret\":\"s\",\"createdAt\":\"2026-01-31T10:00:00+02:00\",\"regionConfigs\":["
	        "{\"providerName\":\"AWS\",\"createdAt\":\"2026-01-31\",\"specs\":{\"nodeCount\":1}},"
	        "{\"providerName\":\"GCP\",\"token\":\"t\"}],\"index\":{}}",
	        0, NULL);
	schema_normalize_dates(&cluster, v);
	schema_add_defaults(&cluster, v);
	schema_strip_write_only(&cluster, v);
	json_t *want = json_loads(
	        "{\"name\":\"x\",\"createdAt\":\"2026-01-31T08:00:00Z\",\"boolean\":true,\"size\":\"M10\","
	        "\"regionConfigs\":[{\"providerName\":\"AWS\",\"createdAt\":\"2026-01-31T00:00:00Z\",\"ebs\":true,"
	        "\"specs\":{\"nodeCount\":1,\"instanceSize\":\"M10\"}},{\"providerName\":\"GCP\"}],"
	        "\"index\":{\"type\":\"search\"}}",
	        0, NULL);
	CHECK(want && json_equal(v, want));
	if (!json_equal(v, want))
		json_dumpf(v, stderr, 0);
	json_decref(want);
	json_decref(v);
}

/* What is shown in the place of nothing: at any depth, in lists, maps and branches, and inside of what is shown. */
static const struct field scaling_fields[] = {{"enabled", &boolean, false, "false"}, {"size", &size}};
static const struct schema scaling = {.type = TYPE_OBJECT, PLAIN, FIELDS(scaling_fields), .flags = SCHEMA_SHOWS};
static const struct field big_fields[] = {{"kind", &any_string, true}, {"scaling", &scaling, false, "{}"}};
static const struct field small_fields[] = {{"kind", &any_string, true}, {"limit", &int32, false, "null"}};
static const struct schema big = {.type = TYPE_OBJECT, PLAIN, FIELDS(big_fields), .flags = SCHEMA_SHOWS},
                           small = {.type = TYPE_OBJECT, PLAIN, FIELDS(small_fields), .flags = SCHEMA_SHOWS};
static const struct branch shown_mapping[] = {{"big", &big}, {"small", &small}};
static const struct schema shown_one = {
        .type = TYPE_ANY, PLAIN, .discriminator = "kind", MAPPING(shown_mapping), .flags = SCHEMA_SHOWS};
static const struct schema shown_list = {.type = TYPE_ARRAY, PLAIN, .items = &shown_one, .flags = SCHEMA_SHOWS},
                           shown_map = {.type = TYPE_OBJECT, PLAIN, .additional = &shown_one, .flags = SCHEMA_SHOWS};
static const struct field shown_fields[] = {{"list", &shown_list, false, "[]"}, {"map", &shown_map}, {"plain", &size}};
static const struct schema shown = {.type = TYPE_OBJECT, PLAIN, FIELDS(shown_fields), .flags = SCHEMA_SHOWS};

static void shows(const char *given, const char *wanted)
{
	json_t *v = json_loads(given, 0, NULL), *want = json_loads(wanted, 0, NULL);
	schema_add_shown(&shown, v);
	CHECK(v && want && json_equal(v, want));
	json_decref(want);
	json_decref(v);
}

static void test_shown(void)
{
	shows("{}", "{\"list\":[]}");
	shows("{\"plain\":\"M10\",\"list\":[1,{\"kind\":\"big\"},{\"kind\":\"small\"},{\"kind\":\"other\"}]}",
	      "{\"plain\":\"M10\",\"list\":[1,{\"kind\":\"big\",\"scaling\":{\"enabled\":false}},"
	      "{\"kind\":\"small\",\"limit\":null},{\"kind\":\"other\"}]}");
	shows("{\"list\":[{\"kind\":\"big\",\"scaling\":{\"enabled\":true}}],\"map\":{\"a\":{\"kind\":\"small\"}}}",
	      "{\"list\":[{\"kind\":\"big\",\"scaling\":{\"enabled\":true}}],"
	      "\"map\":{\"a\":{\"kind\":\"small\",\"limit\":null}}}");
	shows("[]", "[]");
}

/* At any depth, in the branch that the object is of, and in lists. */
static void test_unknown_fields_go(void)
{
	json_t *v = json_loads("{\"name\":\"x\",\"younger\":1,\"regionConfigs\":["
	                       "{\"providerName\":\"AWS\",\"ebs\":true,\"younger\":{},\"specs\":{\"nodeCount\":1,"
	                       "\"younger\":[1]}},{\"providerName\":\"GCP\",\"ebs\":true}]}",
	                       0, NULL);
	json_t *want = json_loads("{\"name\":\"x\",\"regionConfigs\":[{\"providerName\":\"AWS\",\"ebs\":true,"
	                          "\"specs\":{\"nodeCount\":1}},{\"providerName\":\"GCP\"}]}",
	                          0, NULL);
	schema_keep_known(&cluster, v);
	CHECK(want && json_equal(v, want));
	if (!json_equal(v, want))
		json_dumpf(v, stderr, 0);
	json_decref(want);
	json_decref(v);
}

static void test_formats(void)
{
	static const struct {
		unsigned format;
		const char *good[6], *bad[12];
	} cases[] = {
	        {FORMAT_EMAIL,
	         {"a@b.c", "first.last+tag@sub.example.com", "x@localhost", "m\xc3\xbcller@example.de"},
	         {"", "a", "@b", "a@", "a b@c.d", "a@b..c", ".a@b.c", "a.@b.c", "a..b@c.d", "a@-b.c", "a@b.c\n",
	          "a@b@"}},
	        {FORMAT_UUID,
	         {"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-42661417400F"},
	         {"", "123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g"}},
	        {FORMAT_URI,
	         {"https://example.com/a?b=c#d", "urn:x:y", "mailto:a@b.c", "https://e.com/%20"},
	         {"", "example.com", "https:", "https://e.com/%2", "https://e.com/a b", ":x", "1a:b",
	          "http://e.com/<"}},
	        {FORMAT_DATE,
	         {"2026-01-31", "2024-02-29"},
	         {"", "2026-1-31", "20260131", "2026-02-29", "2026-01-31T00:00"}},
	        {FORMAT_DATE_TIME,
	         {"2026-01-31T10:00:00Z", "2026-01-31", "20260131T100000+0130"},
	         {"", "yesterday", "2026-13-01"}},
	        {FORMAT_PASSWORD, {"anything", "at all"}, {NULL}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t k = 0; k < 6 && cases[i].good[k]; k++)
			CHECK(format_fits(cases[i].format, str_of(cases[i].good[k])));
		for (size_t k = 0; k < 12 && cases[i].bad[k]; k++)
			CHECK(!format_fits(cases[i].format, str_of(cases[i].bad[k])));
	}
	CHECK(utf8_is_valid(STR("a\xc3\xa4\xe6\x97\xa5\xf0\x9f\x98\x80")) &&
	      utf8_length(STR("a\xc3\xa4\xe6\x97\xa5\xf0\x9f\x98\x80")) == 4);
	CHECK(!utf8_is_valid(STR("\xc0\x80")) && !utf8_is_valid(STR("\xed\xa0\x80")) &&
	      !utf8_is_valid(STR("\xf4\x90\x80\x80")));
	CHECK(!utf8_is_valid(STR("\xc3")) && !utf8_is_valid(STR("\x80")) && !utf8_is_valid(STR("\xe0\x80\x80")));
	CHECK(utf8_prefix(STR("a\xc3\xa4"), 2).n == 1);
}

static void test_names(void)
{
	static const char *const good[] = {"example.com", "a-b.c1.example", "1.a1"}, *const bad[] = {
	                                                                                     "",         "a",
	                                                                                     "10.0.0.1", "a..b",
	                                                                                     "-a.com",   "a-.com",
	                                                                                     "a.b-",     "\xc3\xa4.com",
	                                                                                     "a b.com"};
	for (size_t i = 0; i < COUNT(good); i++)
		CHECK(domain_fits(str_of(good[i])));
	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK(!domain_fits(str_of(bad[i])));
	CHECK(https_url_fits(arena, STR("https://a.example/p"), true));
	CHECK(https_url_fits(arena, STR("HTTPS://a.example/p?q=1"), false));
	CHECK(!https_url_fits(arena, STR("https://a.example/p?q=1"), true));
	CHECK(!https_url_fits(arena, STR("https://a.example/#f"), false));
	CHECK(!https_url_fits(arena, STR("https://u@a.example/"), false));
	CHECK(!https_url_fits(arena, STR("http://a.example/"), false));
}

static void *match_in_thread(void *arg)
{
	size_t *matched = arg;
	for (int i = 0; i < 2000; i++)
		*matched += pattern_matches(0, STR("0123456789abcdef01234567")) &&
		            !pattern_matches(0, STR("0123456789abcdef0123456"));
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];
	size_t matched[4] = {0};
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, match_in_thread, &matched[i]) == 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CHECK(matched[i] == 2000);
	}
}

int main(void)
{
	CHECK(schema_setup() == 0);
	arena = arena_new();
	test_scalars();
	test_objects();
	test_arrays();
	test_discriminator();
	test_branches();
	test_bounds();
	test_text();
	test_documents();
	test_shown();
	test_unknown_fields_go();
	test_formats();
	test_names();
	test_threads();
	CHECK(schema_find(STR("Cluster")) == &cluster && schema_find(STR("GcpRegion")) == &gcp_region);
	CHECK(!schema_find(STR("Clust")) && !schema_find(STR("Clusters")) && !schema_find(STR_NONE));
	arena_free(arena);
	schema_teardown();
	return CHECK_DONE();
}
