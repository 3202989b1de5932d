/* See fingerprint.h. No header of PostgreSQL's own may be included here. */
#include "module/fingerprint.h"

#include <pg_query.h>

uint64_t steward_fingerprint(const char *statement)
{
	PgQueryFingerprintResult result = pg_query_fingerprint(statement);
	uint64_t fingerprint = result.error ? 0 : result.fingerprint;
	pg_query_free_fingerprint_result(result);
	return fingerprint;
}
