/* Who would have come to a simulated node: a function of the node's name and the time, the same whenever it is asked.
 * docs/access-history.md tells it to users:
 *
 *   every ten minutes, at a second by chance, the user "app" comes from an address of 192.0.2.0/24 to the database
 *   "postgres"; one in eight is refused, for a wrong password or for its address by turns
 *
 * There are none of a time when the node did not run, and of more than thirty days ago, as real logs are kept. */
#include "engine/simulated/state.h"

#include "base/clock.h"

#include <errno.h>

#define STEP_MS 600000LL
#define KEPT_MS (30 * 86400000LL)
#define REFUSED_SHARE 0.125

static void refusal_describe(struct arena *a, int64_t slot, const char *address, struct engine_login *l)
{
	if (slot % 2)
		l->reason = STR("password authentication failed for user \"app\" (SQLSTATE 28P01)");
	else
		l->reason = arena_printf(a,
		                         "no pg_hba.conf entry for host \"%s\", user \"app\", database \"postgres\", "
		                         "SSL encryption (SQLSTATE 28000)",
		                         address);
	l->line = l->reason;
}

/* The attempt of one step. */
static struct engine_login login_of(struct arena *a, const char *node, int64_t slot)
{
	struct engine_login l = {.at_ms = slot * STEP_MS + (int64_t)(sim_chance(node, "login", 0, slot) * 599) * 1000,
	                         .success = sim_chance(node, "login", 1, slot) >= REFUSED_SHARE,
	                         .user = STR("app"),
	                         .database = STR("postgres")};
	char address[IP_TEXT];
	snprintf(address, sizeof address, "192.0.2.%u", 1 + (unsigned)(sim_chance(node, "login", 2, slot) * 254));
	l.has_address = ip_parse(str_of(address), &l.address);
	if (l.success)
		l.line = STR("connection authorized: user=app database=postgres SSL enabled (protocol=TLSv1.3, "
		             "cipher=TLS_AES_256_GCM_SHA384, bits=256); identity=\"app\" method=scram-sha-256 "
		             "(pg_hba.conf:6)");
	else
		refusal_describe(a, slot, address, &l);
	return l;
}

static bool is_wanted(const struct engine_logins *w, const struct engine_login *l)
{
	return l->at_ms >= w->from_ms && l->at_ms < w->to_ms &&
	       (w->result == ENGINE_LOGIN_ANY || (w->result == ENGINE_LOGIN_SUCCESS) == l->success) &&
	       (!w->address || ip_equal(w->address, &l->address));
}

int sim_logins(struct engine *e, const struct engine_logins *wanted, struct arena *a, struct engine_login **ret_list,
               size_t *ret_count)
{
	struct sim_moment m;
	int64_t now = clock_now_ms(), to = wanted->to_ms < now ? wanted->to_ms : now;
	int64_t from = wanted->from_ms > now - KEPT_MS ? wanted->from_ms : now - KEPT_MS;
	struct engine_login *list = NULL;
	size_t count = 0, room = 0;
	if (!sim_moment_at(e, wanted->cluster_id, wanted->node, now, &m))
		return -ENOENT;
	for (int64_t slot = to / STEP_MS; slot * STEP_MS + STEP_MS > from && count < wanted->max; slot--) {
		struct engine_login l = login_of(a, wanted->node, slot);
		if (l.at_ms > now || !is_wanted(wanted, &l) ||
		    !sim_moment_at(e, wanted->cluster_id, wanted->node, l.at_ms, &m) || !m.running)
			continue;
		ARENA_FIT(a, list, count, room);
		list[count++] = l;
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}
