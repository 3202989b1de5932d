/* Merges the limits of the file and of the store. */
#include "gate/rules.h"

const struct bucket_set *rules_find_set(struct str id)
{
	for (unsigned i = 0; i < catalog_set_count; i++)
		if (str_ieq(id, str_of(catalog_sets[i].id)))
			return &catalog_sets[i];
	return NULL;
}

bool rules_check(const struct config_limit *limits, size_t count)
{
	bool good = true;
	for (size_t i = 0; i < count; i++)
		if (!str_is(limits[i].set, "*") && !rules_find_set(limits[i].set)) {
			option_refuse("%s: there is no set \"%.*s\"; sets are %s to %s, and * is all", limits[i].where,
			              STR_ARG(limits[i].set), catalog_sets[0].id,
			              catalog_sets[catalog_set_count - 1].id);
			good = false;
		}
	return good;
}

static void rule_add(struct limit_rule *rules, size_t *count, size_t kept, struct limit_override o)
{
	bool all = str_is(o.set, "*");
	struct limit_rule rule = {.set = all ? NULL : rules_find_set(o.set),
	                          .scope = o.scope,
	                          .capacity = o.capacity,
	                          .refill = o.refill};
	if (!all && !rule.set)
		return;
	for (size_t i = 0; i < kept; i++)
		if (rules[i].set == rule.set && str_eq(rules[i].scope, rule.scope))
			return;
	rules[(*count)++] = rule;
}

int rules_make(struct arena *a, const struct config_limit *limits, size_t count, struct tx *reader,
               struct limit_rule **ret_rules, size_t *ret_count)
{
	struct limit_override *stored;
	size_t stored_count, made = 0;
	int r = tx_overrides(reader, a, &stored, &stored_count);
	if (r < 0)
		return r;
	struct limit_rule *rules = arena_new_array(a, struct limit_rule, stored_count + count);
	for (size_t i = 0; i < stored_count; i++)
		rule_add(rules, &made, 0, stored[i]);
	size_t kept = made;
	for (size_t i = 0; i < count; i++) {
		/* The texts of the configuration may be freed before the rules. */
		struct limit_override o = {limits[i].set, arena_dup(a, limits[i].scope), limits[i].capacity,
		                           limits[i].refill};
		rule_add(rules, &made, kept, o);
	}
	*ret_rules = rules;
	*ret_count = made;
	return 0;
}
