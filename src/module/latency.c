/* The bounds of latency.h: 10 us times a power of the twelfth root of ten, rounded. */
#include "module/latency.h"

static const uint32_t bounds[LATENCY_BUCKETS] = {
        10,       12,       15,       18,       22,       26,       32,       38,        46,       56,       68,
        83,       100,      121,      147,      178,      215,      261,      316,       383,      464,      562,
        681,      825,      1000,     1212,     1468,     1778,     2154,     2610,      3162,     3831,     4642,
        5623,     6813,     8254,     10000,    12115,    14678,    17783,    21544,     26102,    31623,    38312,
        46416,    56234,    68129,    82540,    100000,   121153,   146780,   177828,    215443,   261016,   316228,
        383119,   464159,   562341,   681292,   825404,   1000000,  1211528,  1467799,   1778279,  2154435,  2610157,
        3162278,  3831187,  4641589,  5623413,  6812921,  8254042,  10000000, 12115277,  14677993, 17782794, 21544347,
        26101572, 31622777, 38311868, 46415888, 56234133, 68129207, 82540419, 100000000,
};

uint32_t latency_bound_us(unsigned bucket)
{
	return bounds[bucket];
}

unsigned latency_bucket(uint64_t us)
{
	unsigned low = 0, high = LATENCY_BUCKETS - 1;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (us < bounds[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

double latency_middle_us(unsigned bucket)
{
	double low = bucket ? bounds[bucket - 1] : 0, high = bounds[bucket];
	return bucket ? 2 * low * high / (low + high) : high / 2;
}
