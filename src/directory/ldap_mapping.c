/* User-to-DN mapping. A rule is a pattern for the user's name, and a text with {0}, {1}, ... for the pattern's groups:
 * either the name of an entry (substitution) or a query that finds it (ldapQuery). What a group caught is escaped for
 * the place where it goes, so that a user's name is never more than a name. Searches are bounded like those of the
 * schemas. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "directory/ldap_mapping.h"

#include "base/buf.h"
#include "base/json.h"

#include <pcre2.h>
#include <stdlib.h>

#define RULES_MAX 32
#define TEXT_MAX 1024
#define MATCH_LIMIT 100000
#define DEPTH_LIMIT 10000
#define GROUPS_MAX 16
#define ENTRY_MAX 3000 /* bytes; percent-encoded it is still a word that the databases take */

bool ldap_query_parse(struct str text, struct ldap_query *ret_query)
{
	struct ldap_query q;
	struct str rest;
	if (text.n && text.p[0] == '/')
		text = (struct str){text.p + 1, text.n - 1};
	str_cut(text, '?', &q.base, &rest);
	str_cut(rest, '?', &q.attributes, &rest);
	str_cut(rest, '?', &q.scope, &q.filter);
	if (!q.scope.n)
		q.scope = STR("base");
	if (!q.filter.n)
		q.filter = STR("(objectClass=*)");
	bool good = q.base.n && (str_is(q.scope, "base") || str_is(q.scope, "one") || str_is(q.scope, "sub")) &&
	            q.filter.p[0] == '(' && q.filter.p[q.filter.n - 1] == ')';
	if (good)
		*ret_query = q;
	return good;
}

static struct str escape(struct arena *a, struct str value, const char *specials)
{
	struct buf b = {0};
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];
		if (c < ' ' || c == 127 || strchr(specials, c) || (c == ' ' && (i == 0 || i + 1 == value.n)))
			buf_printf(&b, "\\%02X", c);
		else
			buf_c(&b, (char)c);
	}
	struct str out = arena_dup(a, buf_view(&b));
	buf_free(&b);
	return out;
}

struct str ldap_escape_dn(struct arena *a, struct str value)
{
	return escape(a, value, ",+\"\\<>;=#?");
}

struct str ldap_escape_filter(struct arena *a, struct str value)
{
	return escape(a, value, "*()\\");
}

static pcre2_code *pattern_compile(struct str pattern)
{
	int error;
	PCRE2_SIZE at;
	return pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n,
	                     PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C, &error, &at,
	                     NULL);
}

/* The number of "{N}" at the start of a text; -1 when there is none. */
static int placeholder(struct str text, size_t *ret_length)
{
	size_t n = 1;
	int number = 0;
	while (n < text.n && n < 4 && text.p[n] >= '0' && text.p[n] <= '9')
		number = number * 10 + (text.p[n++] - '0');
	if (text.n == 0 || text.p[0] != '{' || n == 1 || n >= text.n || text.p[n] != '}')
		return -1;
	*ret_length = n + 1;
	return number;
}

/* The highest group that a text asks for; -1: none. */
static int groups_used(struct str text)
{
	int most = -1;
	for (size_t i = 0; i < text.n; i++) {
		size_t length;
		int number = placeholder((struct str){text.p + i, text.n - i}, &length);
		most = number > most ? number : most;
	}
	return most;
}

static void rule_check(const json_t *rule, struct str path, struct arena *a, struct faults *faults)
{
	struct str match = json_field(rule, "match"), to = json_field(rule, "substitution"),
	           query = json_field(rule, "ldapQuery"), text = to.p ? to : query;
	struct ldap_query parsed;
	uint32_t groups = 0;
	pcre2_code *code = match.n && match.n <= TEXT_MAX ? pattern_compile(match) : NULL;
	if (code)
		pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
	if (!code || groups > GROUPS_MAX)
		faults_add(faults, a, arena_printf(a, "%.*s.match", STR_ARG(path)),
		           "must be a regular expression of at most %d bytes and %d groups", TEXT_MAX, GROUPS_MAX);
	if ((to.p != NULL) == (query.p != NULL))
		faults_add(faults, a, path, "must have either substitution or ldapQuery");
	else if (!text.n || text.n > TEXT_MAX || (query.p && !ldap_query_parse(query, &parsed)))
		faults_add(faults, a, arena_printf(a, "%.*s.%s", STR_ARG(path), to.p ? "substitution" : "ldapQuery"),
		           to.p ? "must be a distinguished name with {0}, {1}, ... for the groups of match"
		                : "must be a query like ou=people,dc=example,dc=org??sub?(uid={0})");
	else if (code && groups_used(text) >= (int)groups)
		faults_add(faults, a, arena_printf(a, "%.*s.%s", STR_ARG(path), to.p ? "substitution" : "ldapQuery"),
		           "{%d} is not there: match has %u groups, which are numbered from 0", groups_used(text),
		           groups);
	for (size_t i = 0; text.p && i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ') {
			faults_add(faults, a, path, "must not have control characters");
			break;
		}
	pcre2_code_free(code);
}

void ldap_mapping_check(const json_t *rules, struct str path, struct arena *a, struct faults *faults)
{
	if (json_array_size(rules) > RULES_MAX)
		faults_add(faults, a, path, "must have at most %d rules", RULES_MAX);
	else
		for (size_t i = 0; i < json_array_size(rules); i++)
			rule_check(json_array_get(rules, i), arena_printf(a, "%.*s[%zu]", STR_ARG(path), i), a, faults);
}

struct caught {
	struct str groups[GROUPS_MAX + 1];
	size_t count;
};

static bool rule_matches(const json_t *rule, struct str user, struct arena *a, struct caught *ret_caught)
{
	pcre2_code *code = pattern_compile(json_field(rule, "match"));
	pcre2_match_data *data = code ? pcre2_match_data_create(GROUPS_MAX + 1, NULL) : NULL;
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	int count = -1;
	*ret_caught = (struct caught){.count = 0};
	if (data && limits) {
		pcre2_set_match_limit(limits, MATCH_LIMIT);
		pcre2_set_depth_limit(limits, DEPTH_LIMIT);
		count = pcre2_match(code, (PCRE2_SPTR)user.p, user.n, 0, 0, data, limits);
	}
	const PCRE2_SIZE *at = count > 0 ? pcre2_get_ovector_pointer(data) : NULL;
	for (size_t i = 1; (int)i < count; i++)
		ret_caught->groups[i - 1] =
		        at[2 * i] == PCRE2_UNSET
		                ? STR_NONE
		                : arena_dup(a, (struct str){user.p + at[2 * i], at[2 * i + 1] - at[2 * i]});
	ret_caught->count = count > 0 ? (size_t)count - 1 : 0;
	pcre2_match_context_free(limits);
	pcre2_match_data_free(data);
	pcre2_code_free(code);
	return count > 0;
}

static struct str fill(struct arena *a, struct str text, const struct caught *caught, bool filter)
{
	struct buf b = {0};
	for (size_t i = 0; i < text.n;) {
		size_t length = 1;
		int number = placeholder((struct str){text.p + i, text.n - i}, &length);
		if (number >= 0) {
			struct str value = (size_t)number < caught->count ? caught->groups[number] : STR_NONE;
			buf_str(&b, filter ? ldap_escape_filter(a, value) : ldap_escape_dn(a, value));
		} else {
			buf_c(&b, text.p[i]);
		}
		i += length;
	}
	struct str out = arena_dup(a, buf_view(&b));
	buf_free(&b);
	return out;
}

/* An empty name is nobody's: a directory takes who binds with it for anonymous, whatever the password. */
static struct str entry_or_none(struct str entry)
{
	return entry.n && entry.n <= ENTRY_MAX ? entry : STR_NONE;
}

void ldap_mapping_apply(const json_t *rules, struct str user, struct arena *a, struct str *ret_dn,
                        struct str *ret_query)
{
	struct caught caught;
	struct ldap_query q;
	struct str base;
	*ret_dn = json_array_size(rules) ? STR_NONE : arena_dup(a, user);
	*ret_query = STR_NONE;
	for (size_t i = 0; i < json_array_size(rules); i++) {
		const json_t *rule = json_array_get(rules, i);
		if (!rule_matches(rule, user, a, &caught))
			continue;
		struct str to = json_field(rule, "substitution");
		if (to.p)
			*ret_dn = entry_or_none(fill(a, to, &caught, false));
		else if (ldap_query_parse(json_field(rule, "ldapQuery"), &q) &&
		         (base = fill(a, q.base, &caught, false)).n)
			*ret_query = entry_or_none(arena_printf(a, "%s\?\?%.*s?%s", base.p, STR_ARG(q.scope),
			                                        fill(a, q.filter, &caught, true).p));
		return;
	}
}
