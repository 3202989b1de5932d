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
	struct faults faults = {.count = 0};
	const json_t *filter =
	        audit_filter_parse((struct str){(const char *)data, size}, STR("auditFilter"), a, &faults);
	HOLDS((filter != NULL) == (faults.count == 0));
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
