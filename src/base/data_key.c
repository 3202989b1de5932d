/* A mapping for each key, so that the kernel's marks are of the key alone. */
#include "base/data_key.h"

#include "base/log.h"

#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void lock(void *p, size_t n)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	(void)!madvise(p, n, MADV_DONTDUMP);
	(void)!madvise(p, n, MADV_DONTFORK);
	if (mlock(p, n) < 0 && !atomic_flag_test_and_set(&told))
		log_warn("keys: memory for keys cannot be locked, and may be swapped out: raise LimitMEMLOCK");
}

void data_key_make(struct data_key *ret_key)
{
	void *p = mmap(NULL, page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		fprintf(stderr, "steward: out of memory\n");
		abort();
	}
	lock(p, page());
	*ret_key = (struct data_key){.bytes = p};
}

void data_key_copy(const struct data_key *from, struct data_key *ret_key)
{
	data_key_make(ret_key);
	memcpy(ret_key->id, from->id, sizeof ret_key->id);
	memcpy(ret_key->bytes, from->bytes, DATA_KEY_BYTES);
}

void data_key_free(struct data_key *key)
{
	if (key->bytes) {
		OPENSSL_cleanse(key->bytes, DATA_KEY_BYTES);
		munmap(key->bytes, page());
	}
	*key = (struct data_key){.bytes = NULL};
}
