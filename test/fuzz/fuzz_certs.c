/* Bundles of certificates in PEM. What is taken is written again, and is then taken as it is. */
#include "fuzz.h"

#include "base/certs.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct str pem, again;
	const char *fault = NULL;
	if (certs_normalize(a, (struct str){(const char *)data, size}, &pem, &fault) == 0) {
		HOLDS(!fault && pem.n);
		HOLDS(certs_normalize(a, pem, &again, &fault) == 0 && str_eq(pem, again));
	} else {
		HOLDS(fault);
	}
	arena_free(a);
	return 0;
}
