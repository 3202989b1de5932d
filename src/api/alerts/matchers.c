/* Conditions on what an alert is about. */
#include "api/alerts/rules.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>

#define MATCHERS_MAX 20
#define PATTERN_MAX 512
#define MATCH_STEPS 2000 /* many for a name: matchers are tested in writes */
#define PORT_TEXT 320

static const char *const fields[] = {"APPLICATION_ID", "CLUSTER_NAME", "HOSTNAME",       "HOSTNAME_AND_PORT",
                                     "INSTANCE_NAME",  "PORT",         "PROCESSOR_NAME", "REPLICA_SET_NAME",
                                     "RULE_ID",        "SHARD_NAME",   "SOFTWARE_TYPE",  "SVC_NODE_TYPE",
                                     "TYPE_NAME"};

int alert_matchers_list(struct call *c)
{
	json_open(&c->out, '[');
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		json_z(&c->out, fields[i]);
	json_close(&c->out, ']');
	return 0;
}

/* The text of a field; empty where the subject has none. */
static struct str field_value(const struct alert_subject *s, struct str field, char port[PORT_TEXT])
{
	if (str_is(field, "CLUSTER_NAME"))
		return s->cluster;
	if (str_is(field, "HOSTNAME"))
		return s->hostname;
	if (str_is(field, "REPLICA_SET_NAME"))
		return s->replica_set;
	if (str_is(field, "SHARD_NAME"))
		return s->shard;
	if (str_is(field, "TYPE_NAME"))
		return s->type_name;
	if (!s->hostname.n)
		return STR_NONE;
	if (str_is(field, "PORT"))
		snprintf(port, PORT_TEXT, "%lld", (long long)s->port);
	else if (str_is(field, "HOSTNAME_AND_PORT"))
		snprintf(port, PORT_TEXT, "%.*s:%lld", STR_ARG(s->hostname), (long long)s->port);
	else
		return STR_NONE;
	return str_of(port);
}

static pcre2_code *pattern_compile(struct str pattern)
{
	int error;
	size_t at;
	return pattern.n > PATTERN_MAX ? NULL
	                               : pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n, PCRE2_UTF, &error, &at, NULL);
}

/* Bounded in steps: a pattern that would take longer does not match. */
static bool pattern_matches(struct str pattern, struct str text)
{
	pcre2_code *code = pattern_compile(pattern);
	if (!code)
		return false;
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	pcre2_match_data *match = pcre2_match_data_create(1, NULL);
	pcre2_set_match_limit(limits, MATCH_STEPS);
	pcre2_set_depth_limit(limits, MATCH_STEPS);
	int found = pcre2_match(code, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, 0, 0, match, limits);
	pcre2_match_data_free(match);
	pcre2_match_context_free(limits);
	pcre2_code_free(code);
	return found >= 0;
}

static bool contains(struct str text, struct str part)
{
	return !part.n || (text.n && memmem(text.p, text.n, part.p, part.n));
}

static bool matcher_matches(const json_t *m, const struct alert_subject *s)
{
	char port[PORT_TEXT];
	struct str op = json_field(m, "operator"), wanted = json_field(m, "value"),
	           value = field_value(s, json_field(m, "fieldName"), port);
	if (str_is(op, "EQUALS"))
		return str_eq(value, wanted);
	if (str_is(op, "NOT_EQUALS"))
		return !str_eq(value, wanted);
	if (str_is(op, "CONTAINS"))
		return contains(value, wanted);
	if (str_is(op, "NOT_CONTAINS"))
		return !contains(value, wanted);
	if (str_is(op, "STARTS_WITH"))
		return str_starts(value, wanted);
	if (str_is(op, "ENDS_WITH"))
		return str_ends(value, wanted);
	return pattern_matches(wanted, value);
}

bool matchers_match(const json_t *matchers, const struct alert_subject *s)
{
	for (size_t i = 0; i < json_array_size(matchers); i++)
		if (!matcher_matches(json_array_get(matchers, i), s))
			return false;
	return true;
}

static bool field_is_known(struct str name)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (str_is(name, fields[i]))
			return true;
	return false;
}

void matchers_check(struct arena *a, const json_t *matchers, struct faults *faults)
{
	if (json_array_size(matchers) > MATCHERS_MAX) {
		faults_add(faults, a, STR("matchers"), "must have at most %d items", MATCHERS_MAX);
		return;
	}
	for (size_t i = 0; i < json_array_size(matchers); i++) {
		const json_t *m = json_array_get(matchers, i);
		struct str value = json_field(m, "value");
		if (!field_is_known(json_field(m, "fieldName")))
			faults_add(faults, a, arena_printf(a, "matchers[%zu].fieldName", i),
			           "must be one of those that GET /alertConfigs/matchers/fieldNames lists");
		if (!value.p)
			faults_add(faults, a, arena_printf(a, "matchers[%zu].value", i), "is required");
		if (value.n && str_is(json_field(m, "operator"), "REGEX")) {
			pcre2_code *code = pattern_compile(value);
			if (!code)
				faults_add(faults, a, arena_printf(a, "matchers[%zu].value", i),
				           "must be a regular expression of at most %d bytes", PATTERN_MAX);
			pcre2_code_free(code);
		}
	}
}
