/* Data keys: their memory is locked, not dumped and not inherited, and wiped; copies are of their own. */
#include "base/data_key.h"

#include "base/id.h"
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The kernel's marks on the mapping that has the address: " rd wr mr ... dd "; "": there is none. */
static void marks_of(const void *at, char marks[256])
{
	char line[512];
	bool here = false;
	FILE *f = fopen("/proc/self/smaps", "re");
	marks[0] = 0;
	while (f && fgets(line, sizeof line, f)) {
		uint64_t from, to;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2)
			here = from <= (uintptr_t)at && (uintptr_t)at < to;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			str_copy(str_of(line + 8), marks, 256);
	}
	if (f)
		fclose(f);
}

static bool has_mark(const char *marks, const char *mark)
{
	const char *at = strstr(marks, mark);
	return at && at > marks && at[-1] == ' ' && (at[2] == ' ' || at[2] == '\n');
}

/* Sanitizers make nothing of it, and some machines allow none. */
static bool can_lock(void)
{
	static _Alignas(65536) unsigned char page[65536];
	char marks[256];
	if (mlock(page, sizeof page) < 0)
		return false;
	marks_of(page, marks);
	munlock(page, sizeof page);
	return has_mark(marks, "lo");
}

int main(void)
{
	struct data_key key, copy;
	char marks[256];
	bool locks = can_lock();
	data_key_make(&key);
	random_bytes(key.bytes, DATA_KEY_BYTES);
	memcpy(key.id, "0123456789abcdef01234567", sizeof key.id);
	marks_of(key.bytes, marks);
	CHECK(has_mark(marks, "dd") && has_mark(marks, "dc"));
	CHECK(has_mark(marks, "lo") == locks);
	data_key_copy(&key, &copy);
	CHECK(copy.bytes != key.bytes && memcmp(copy.bytes, key.bytes, DATA_KEY_BYTES) == 0);
	CHECK(strcmp(copy.id, key.id) == 0);
	data_key_free(&key);
	CHECK(!key.bytes && !key.id[0]);
	data_key_free(&key);
	data_key_free(&copy);
	return CHECK_DONE();
}
