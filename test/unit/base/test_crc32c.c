/* CRC-32C: the published value, the instruction against the table, pieces against the whole. */
#include "base/crc32c.h"

#include "base/id.h"
#include "check.h"

int main(void)
{
	unsigned char bytes[300];
	CHECK(crc32c(0, "123456789", 9) == 0xE3069283u && crc32c_plain(0, "123456789", 9) == 0xE3069283u);
	CHECK(crc32c(0, "", 0) == 0);
	random_bytes(bytes, sizeof bytes);
	for (size_t n = 0; n < 64; n++)
		for (size_t from = 0; from < 9; from++) {
			uint32_t whole = crc32c(0, bytes + from, n);
			CHECK(whole == crc32c_plain(0, bytes + from, n));
			CHECK(crc32c(crc32c(0, bytes + from, n / 3), bytes + from + n / 3, n - n / 3) == whole);
		}
	uint32_t before = crc32c(0, bytes, sizeof bytes);
	bytes[200] ^= 4;
	CHECK(crc32c(0, bytes, sizeof bytes) != before);
	return CHECK_DONE();
}
