/* Who may connect to the databases of a project. The access list is read here; database users join it from their own
 * documents. */
#include "api/cluster_jobs.h"

#include "base/ip.h"

int cluster_access_load(struct tx *tx, struct arena *a, struct str group_id, struct engine_access *ret_access)
{
	struct engine_access access = {.users = NULL};
	struct doc *docs;
	size_t count;
	int64_t total;
	int result = tx_count(tx, "access_entry", group_id, &total);
	if (result < 0 || !total) {
		*ret_access = access;
		return result;
	}
	result = tx_list(tx, a, "access_entry", group_id, 0, total, &docs, &count);
	if (result < 0)
		return result;
	struct cidr *networks = arena_new_array(a, struct cidr, count);
	for (size_t i = 0; i < count; i++)
		/* Security groups of a provider mean nothing on this host. */
		if (cidr_parse(docs[i].name, &networks[access.network_count]))
			access.network_count++;
	access.networks = networks;
	*ret_access = access;
	return 0;
}
