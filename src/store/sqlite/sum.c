/* The checksum of a document, over all that names it and what it says: a row that took the place of another is found,
 * too. */
#include "store/sqlite/sqlite.h"

#include <libdeflate.h>

int64_t doc_sum(struct str kind, struct str id, struct str body)
{
	char head[128];
	uint32_t sum = 0;
	if (id.n && kind.n + id.n + 2 <= sizeof head) {
		/* In one go: a call for each part costs more than all their bytes. */
		memcpy(head, kind.p, kind.n);
		head[kind.n] = '\0';
		memcpy(head + kind.n + 1, id.p, id.n);
		head[kind.n + 1 + id.n] = '\0';
		sum = libdeflate_crc32(0, head, kind.n + id.n + 2);
	} else {
		sum = libdeflate_crc32(0, kind.p, kind.n);
		sum = libdeflate_crc32(sum, "\0", 1);
		sum = libdeflate_crc32(sum, id.p, id.n);
		sum = libdeflate_crc32(sum, "\0", 1);
	}
	return (int64_t)libdeflate_crc32(sum, body.p ? body.p : "", body.n);
}
