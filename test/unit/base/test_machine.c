/* What differs between machines unless the build decides it (meson.build): the sign of char, and how often a * b + c is rounded. */
#include "check.h"

static void test_char_is_unsigned(void)
{
	volatile char c = (char)0xff;
	CHECK(c == 0xff);
}

/* arm64 has an instruction that multiplies and adds with one rounding. With it the difference would be what the product lost when it was
 * rounded, and figures would have other last digits than on x86-64. */
static void test_a_product_is_rounded_before_it_is_added_to(void)
{
	volatile double a = 1.0 + 0x1p-30, rounded = a * a;
	double x = a, y = rounded;
	CHECK(x * x - y == 0);
}

int main(void)
{
	test_char_is_unsigned();
	test_a_product_is_rounded_before_it_is_added_to();
	return CHECK_DONE();
}
