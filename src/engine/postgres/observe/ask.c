/* Statements of people (engine/sql.h). The server is reached by its socket, where the person's own password is asked
 * for as everywhere; the statement runs in a process of its own (src/programs/steward_sql.c), which bounds the memory
 * that an answer takes. */
#include "engine/postgres/observe/ask.h"

#include "base/buf.h"
#include "base/helper.h"
#include "base/json.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/observe/advice.h"

#include <errno.h>

#define HELPER "steward-sql"
#define GRACE_MS 8000 /* to connect, and to say that the time was over */

/* People come to the router where there is one, else to the primary. */
static const struct pg_place *place_find(const struct pg_inquiry *q)
{
	for (size_t i = 0; i < q->place_count; i++)
		if (q->places[i].runs && q->places[i].node.want.kind == NODE_ROUTER)
			return &q->places[i];
	return pg_inquiry_primary(q, 0);
}

static struct str question_make(struct arena *a, const struct pg_place *p, const struct engine_sql *ask)
{
	json_t *q = json_new(a);
	json_put_str(q, "host", str_of(p->run));
	json_put(q, "port", json_integer(p->node.port));
	json_put_str(q, "user", ask->user);
	json_put_str(q, "password", ask->password);
	json_put_str(q, "database", ask->database);
	json_put_str(q, "text", ask->text);
	json_put(q, "write", json_boolean(ask->write));
	json_put(q, "seconds", json_integer(ask->seconds));
	json_put(q, "rows", json_integer(ask->row_max));
	json_put(q, "bytes", json_integer(ask->byte_max));
	return json_text(a, q);
}

static int statement_run(struct engine *e, const char *cluster_id, const struct engine_sql *ask, struct arena *a,
                         struct buf *ret_answer)
{
	struct pg_inquiry q;
	int r = pg_inquiry_begin(e, cluster_id, a, &q);
	const struct pg_place *p = r == 0 ? place_find(&q) : NULL;
	if (!p)
		return r < 0 ? r : -EAGAIN;
	/* Values may be twice as long in JSON, and names of columns come on top. */
	size_t most = (size_t)ask->byte_max * 2 + (1u << 20);
	r = helper_ask(HELPER, question_make(a, p, ask), ask->seconds * INT64_C(1000) + GRACE_MS, most, ret_answer);
	return r < 0 ? r : ret_answer->n && ret_answer->n <= most ? 0 : -ETIMEDOUT;
}

const struct engine_sql_ops pg_sql_of_people = {.run = statement_run};
