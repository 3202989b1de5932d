/* The Range header, for a body of any length. The first eight bytes of the input are the length, the rest is the
 * header. */
#include "fuzz.h"

#include "call/range.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	uint64_t length = 0, first = 1, last = 0;
	for (int i = 0; i < 8; i++)
		length = length << 8 | fuzz_byte(&in);
	char *exact = fuzz_copy(in);
	enum range_kind kind = range_parse((struct str){exact, in.n}, length, &first, &last);
	HOLDS(kind == RANGE_ALL || kind == RANGE_PART || kind == RANGE_OUTSIDE);
	if (kind == RANGE_PART)
		HOLDS(first <= last && last < length);
	else
		HOLDS(first == 1 && last == 0);
	free(exact);
	return 0;
}
