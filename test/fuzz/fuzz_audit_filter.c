/* Filters of the audit log. Any bytes are parsed; of what is a filter, the classes are asked for, of a user and of
 * others. A filter has no fault and the other way round, and who may see nothing of a filter's successes sees no more
 * of it. */
#include "fuzz.h"

#include "api/maintenance/audit_filter.h"

#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	const char *fault = NULL;
	const json_t *filter = filter_parse((struct str){(const char *)data, size}, a, &fault);
	HOLDS((filter != NULL) == (fault == NULL));
	if (filter) {
		struct str all = audit_filter_classes(filter, "ann", true, a),
		           some = audit_filter_classes(filter, "ann", false, a);
		HOLDS(some.n <= all.n && str_ends(all, some));
		HOLDS(str_eq(all, audit_filter_classes(filter, "ann", true, a)));
		(void)audit_filter_classes(filter, NULL, true, a);
		(void)audit_filter_has_logins(filter);
		(void)audit_filter_has_denials(filter);
	}
	arena_free(a);
	return 0;
}
