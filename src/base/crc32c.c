/* A table serves processors without the instruction, and the bytes that fill no word. */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#ifdef __aarch64__
#include <sys/auxv.h>
#define HAS_CRC (1UL << 7) /* of AT_HWCAP */
#endif

#define POLYNOMIAL 0x82F63B78u /* reflected */

static uint32_t table[256];
static bool fast;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void setup(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;
		for (int bit = 0; bit < 8; bit++)
			v = v & 1 ? v >> 1 ^ POLYNOMIAL : v >> 1;
		table[i] = v;
	}
#if defined(__x86_64__)
	fast = __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
	fast = getauxval(AT_HWCAP) & HAS_CRC;
#endif
}

static uint32_t plain_add(uint32_t sum, const unsigned char *p, size_t n)
{
	while (n-- > 0)
		sum = sum >> 8 ^ table[(sum ^ *p++) & 255];
	return sum;
}

static uint32_t fast_add(uint32_t sum, const unsigned char *p, size_t n)
{
#if defined(__x86_64__) || defined(__aarch64__)
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t word;
		memcpy(&word, p, sizeof word);
#ifdef __x86_64__
		uint64_t wide = sum;
		__asm__("crc32q %1, %0" : "+r"(wide) : "r"(word));
		sum = (uint32_t)wide;
#else
		__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(sum) : "r"(word));
#endif
	}
#endif
	return plain_add(sum, p, n);
}

uint32_t crc32c_plain(uint32_t sum, const void *bytes, size_t n)
{
	pthread_once(&once, setup);
	return ~plain_add(~sum, bytes, n);
}

uint32_t crc32c(uint32_t sum, const void *bytes, size_t n)
{
	pthread_once(&once, setup);
	return ~(fast ? fast_add(~sum, bytes, n) : plain_add(~sum, bytes, n));
}
