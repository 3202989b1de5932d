/* What the planner would run for a table. */
#ifndef STEWARD_ENGINE_POSTGRES_MODEL_PLANNED_H
#define STEWARD_ENGINE_POSTGRES_MODEL_PLANNED_H

#include "engine/postgres/model/model.h"

/* To plan a statement over a table is to run code: what calls an immutable function with constants in one of its
 * indexes or statistics is evaluated by whoever plans, with all rights where that is the superuser. True where there
 * is such a thing, made by functions or operators that are not the superuser's, as PostgreSQL's own, extensions' and
 * the service's are. Good for as long as a lock keeps others from making more: SHARE UPDATE EXCLUSIVE. And with
 * constraint_exclusion, which a database's owner can set for it, checks are evaluated as well. */
#define PG_PLANNED_CODE(rel)                                                                                           \
	"exists (select from pg_depend d left join pg_operator o on refclassid = 'pg_operator'::regclass and o.oid = " \
	"refobjid join pg_proc p on p.oid = coalesce(o.oprcode::oid, refobjid) where refclassid in "                   \
	"('pg_proc'::regclass, 'pg_operator'::regclass) and pg_get_userbyid(proowner) <> '" PG_SUPER "' and "          \
	"(classid = 'pg_class'::regclass and objid in (select indexrelid from pg_index where indrelid = " rel ") or "  \
	"classid = 'pg_statistic_ext'::regclass and objid in (select e.oid from pg_statistic_ext e where stxrelid "    \
	"= " rel ")))"

#endif
