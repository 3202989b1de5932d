/* The checksum of a relation's page, as PostgreSQL has it in every version that we run: 32 sums side by side over the
 * page's words, each a step of FNV-1a with a shift mixed in, so that a processor does them at once; folded, mixed with
 * the block's number, and brought into 16 bits. */
#include "engine/postgres/backup/pages.h"

#define PAGE_BYTES 8192
#define SUMS 32
#define ROWS (PAGE_BYTES / (SUMS * 4))
#define PRIME 16777619u

static const uint32_t seeds[SUMS] = {
        0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C,
        0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB,
        0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4,
        0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756,
};

struct page_head {
	uint32_t lsn_high, lsn_low;
	uint16_t checksum, flags, lower, upper;
};

static void mix(uint32_t sums[SUMS], const uint32_t words[SUMS])
{
	for (size_t i = 0; i < SUMS; i++) {
		uint32_t t = sums[i] ^ words[i];
		sums[i] = (t * PRIME) ^ (t >> 17);
	}
}

static uint16_t page_sum(const unsigned char *page, uint32_t block)
{
	static const uint32_t nothing[SUMS];
	uint32_t sums[SUMS], words[SUMS], all = 0;
	memcpy(sums, seeds, sizeof sums);
	for (size_t row = 0; row < ROWS; row++) {
		memcpy(words, page + row * sizeof words, sizeof words);
		if (row == 0)
			words[2] &= 0xFFFF0000u; /* the checksum itself counts as 0 */
		mix(sums, words);
	}
	mix(sums, nothing);
	mix(sums, nothing);
	for (size_t i = 0; i < SUMS; i++)
		all ^= sums[i];
	return (uint16_t)((all ^ block) % 65535 + 1);
}

bool pg_page_is_sound(const void *page, uint32_t block, uint64_t lsn)
{
	struct page_head head;
	memcpy(&head, page, sizeof head);
	if (head.upper == 0) /* never used */
		return true;
	if (((uint64_t)head.lsn_high << 32 | head.lsn_low) >= lsn)
		return true;
	return page_sum(page, block) == head.checksum;
}
