/* PROXY headers. What is read does not depend on what follows, and a header that is cut short asks for more. */
#include "fuzz.h"

#include "http/proxy.h"

#include <errno.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ip none = {{0}};
	struct ip peer = none, again = none;
	struct str input = fuzz_input(data, size);
	if (size == 0)
		return 0;
	int length = proxy_header_read(input, &peer);
	if (length < 0) {
		HOLDS((length == -EAGAIN && size < PROXY_HEADER_MAX) || length == -EINVAL);
		HOLDS(ip_equal(&peer, &none));
		return 0;
	}
	HOLDS(length > 0 && length <= PROXY_HEADER_MAX && (size_t)length <= size);
	for (size_t n = 1; n <= (size_t)length; n++) {
		char *cut = fuzz_copy((struct str){input.p, n});
		int r = proxy_header_read((struct str){cut, n}, &again);
		free(cut);
		HOLDS(r == (n < (size_t)length ? -EAGAIN : length));
		HOLDS(ip_equal(&again, n < (size_t)length ? &none : &peer));
	}
	return 0;
}
