/* Teams, for the families that end what they stand on. */
#ifndef STEWARD_API_TEAMS_H
#define STEWARD_API_TEAMS_H

#include "store/store.h"

/* All teams of an organization, with members and roles: gone. Before its invitations go. */
must_check int teams_delete_all(struct tx *tx, struct arena *a, struct str org_id);

#endif
