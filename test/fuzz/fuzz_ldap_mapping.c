/* User-to-DN mapping: a line with the user's name, then the rules. Of rules without a fault, no name becomes both an
 * entry and a query; a query has its three question marks, and nothing has a control character. */
#include "fuzz.h"

#include "directory/ldap_mapping.h"

#include <string.h>

static void plain(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		HOLDS((unsigned char)text.p[i] >= ' ');
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct faults faults = {.count = 0};
	struct str user, rest, dn, query;
	str_cut((struct str){(const char *)data, size}, '\n', &user, &rest);
	json_t *rules = json_loadb(rest.p ? rest.p : "", rest.n, 0, NULL);
	if (json_is_array(rules)) {
		ldap_mapping_check(rules, STR("m"), a, &faults);
		if (!faults.count && json_array_size(rules)) {
			ldap_mapping_apply(rules, user, a, &dn, &query);
			HOLDS(!dn.p || !query.p);
			plain(dn);
			plain(query);
			struct ldap_query parsed;
			if (query.p)
				HOLDS(ldap_query_parse(query, &parsed) && !parsed.attributes.n);
		}
	}
	json_decref(rules);
	arena_free(a);
	return 0;
}
