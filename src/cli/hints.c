/* Hints, in one table. The error code selects the hint, because one status has several causes: a 403 may be a missing
 * role, an address or an organization's policy, and a 501 is not an outage. The status is used only for codes that are
 * not in the table, and such a hint names no cause. */
#include "cli/hints.h"

#include <stddef.h>
#include <string.h>

#define AGAIN "try again in a while; the service's log has more about it"

static const struct {
	const char *code; /* NULL: any */
	int status;       /* of the last rows */
	const char *hint;
} hints[] = {
        {"INSUFFICIENT_ROLE", 0,
         "the credentials in %s lack a role for this; an owner of the project or organization can give it"},
        {"CANNOT_GRANT_ROLE", 0, "the credentials in %s cannot give a role that they do not hold; an owner can"},
        {"PROOF_NEEDED", 0,
         "it lets somebody in later, so it is done within 15 minutes of a sign-in only: \"steward login --web\" signs "
         "in "
         "again"},
        {"IP_ADDRESS_NOT_ON_ACCESS_LIST", 0,
         "the credentials in %s may not be used from this address: their own access list says from where they may"},
        {"RESOURCE_POLICY_VIOLATION", 0,
         "no role would help: a resource policy of the organization forbids it; \"steward policies "
         "list\" shows the policies"},
        {"NOT_IMPLEMENTED", 0, "the service is well, it does not have this operation: trying again will not help"},
        {"METHOD_NOT_IMPLEMENTED", 0, "the service is well, it does not know this method: trying again will not help"},
        {"INJECTED_FAULT", 0, "the service was started with --test-control and was told to answer so"},
        {"RATE_LIMITED_TOKEN_BUCKET", 0,
         "too many calls of this kind; \"steward rate-limits list\" shows how many there may be"},
        {"CLUSTER_BACKUP_NOT_ENABLED", 0,
         "\"steward clusters update CLUSTER --backup-enabled --pit-enabled\" has its backups begin"},
        {"CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API", 0,
         "it is a flex cluster: \"steward flex-clusters get CLUSTER\" shows it, and how far a change of it is"},
        {"CANNOT_USE_NON_FLEX_CLUSTER_IN_FLEX_API", 0,
         "it is no flex cluster: \"steward clusters get CLUSTER\" shows it"},
        {"POINT_IN_TIME_NOT_RESTORABLE", 0,
         "\"steward backups window CLUSTER\" tells which moments can; --snapshot ID restores a snapshot"},
        {"UNEXPECTED_ERROR", 0, AGAIN},
        {NULL, 401, "the credentials come from %s; are they of this service, and of a member of the project?"},
        {NULL, 503, "the service is there but cannot do this now: try again in a while"},
        {NULL, 500, AGAIN},
        {NULL, 502, AGAIN},
        {NULL, 504, AGAIN},
};

const char *hint_find(int status, const char *code)
{
	for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
		if (hints[i].code ? code && strcmp(hints[i].code, code) == 0 : hints[i].status == status)
			return hints[i].hint;
	return NULL;
}
