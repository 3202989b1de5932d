/* POST /api/session/sql: what a person types into the console's editor, run in a cluster's database as a user of that.
 */
#ifndef STEWARD_API_SQL_SQL_H
#define STEWARD_API_SQL_SQL_H

#include "call/service.h"

#define SQL_PATH "/api/session/sql"
void sql_serve(struct service *s, struct request *r);

#endif
