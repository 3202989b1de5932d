/* The store of a service, for operators' commands that change what is in it. */
#include "cli/operator/service_store.h"

#include "base/option.h"
#include "store/seal.h"

#include <unistd.h>

int service_store_open(struct arena *a, const char *data_dir, const char *url, struct store **ret_store)
{
	const char *proof = arena_printf(a, "%s/secret.key", data_dir).p;
	/* Opening a store creates one where there is none; and the log of events is signed with the key. */
	if (access(proof, F_OK) < 0)
		return option_refuse("%s holds no service's data (%s is missing); give --data DIR of a service that "
		                     "has been started",
		                     data_dir, proof);
	int r = seal_read(data_dir);
	struct store_options options = {.url = url, .data_dir = data_dir};
	return r < 0 ? r : store_open(&options, ret_store);
}
