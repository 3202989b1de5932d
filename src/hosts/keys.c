/* Which hosts have a key of the service's: each says so beside how busy it is. */
#include "hosts/hosts.h"

#include <errno.h>

/* A host that was not heard for so long has ended; when it starts again without the key, it is refused. One that was
 * heard a moment ago may be on its way back, and would go on without it. */
#define HEARD_MS 600000

static bool says_key(const struct host *h, struct arena *a, struct str key, bool in_use)
{
	struct str rest = h->usage.n ? json_field(doc_json(a, h->usage), "keys") : STR_NONE, one;
	while (rest.n) {
		str_cut(rest, ' ', &one, &rest);
		if (str_eq(one, key))
			return true;
		if (in_use)
			return false;
	}
	return false;
}

int hosts_without_key(struct tx *tx, struct arena *a, const char *key, bool in_use, struct str *ret_names)
{
	struct host *list = NULL;
	size_t count = 0;
	struct str names = STR(""), name = {key, HOST_KEY_TEXT};
	int r = hosts_read(tx, a, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (list[i].age_ms >= 0 && list[i].age_ms < HEARD_MS && !says_key(&list[i], a, name, in_use))
			names = arena_printf(a, "%.*s%s%.*s", STR_ARG(names), names.n ? ", " : "",
			                     STR_ARG(list[i].name));
	*ret_names = names;
	return r;
}
