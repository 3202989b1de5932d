/* Passwords: what was hashed verifies, nothing else does, and damaged texts are refused without work. */
#include "identity/password.h"

#include "base/clock.h"
#include "check.h"

int main(void)
{
	struct arena *a = arena_new();
	struct str one, two;
	CHECK(password_hash(a, STR("correct horse"), &one) == 0);
	CHECK(password_hash(a, STR("correct horse"), &two) == 0);
	CHECK(str_starts(one, STR("$scrypt$ln=15,r=8,p=3$")));
	CHECK(!str_eq(one, two));
	CHECK(password_verify(STR("correct horse"), one));
	CHECK(password_verify(STR("correct horse"), two));
	CHECK(!password_verify(STR("correct horse "), one));
	CHECK(!password_verify(STR(""), one));
	/* RFC 7914, section 12: the first 32 bytes for N = 16384, r = 8, p = 1. */
	CHECK(password_verify(
	        STR("pleaseletmein"),
	        STR("$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU$cCO9yzr9c0hGHAbNgf046_2o-7qQT44-qbVD9lRdofI")));
	static const char *const bad[] = {"",
	                                  "$scrypt$",
	                                  "$scrypt$failed",
	                                  "$scrypt$ln=15,r=8,p=3$$",
	                                  "$scrypt$ln=0,r=8,p=3$YQ$YQ",
	                                  "$scrypt$ln=40,r=8,p=3$YQ$YQ",
	                                  "$scrypt$ln=15,r=9,p=3$YQ$YQ",
	                                  "$scrypt$ln=15,r=8,p=99$YQ$YQ",
	                                  "$scrypt$ln=15,r=8,p=3$YQ",
	                                  "$scrypt$ln=15,r=8,p=3$%%$YQ",
	                                  "correct horse"};
	/* Refused at once, without the work of a real check. The best of a few runs, because the machine may be
	 * busy. */
	int64_t best = INT64_MAX;
	for (int round = 0; round < 10; round++) {
		int64_t started = clock_mono_us();
		for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
			CHECK(!password_verify(STR("correct horse"), str_of(bad[i])));
		int64_t took = clock_mono_us() - started;
		best = took < best ? took : best;
	}
	CHECK(best < 50000);
	/* A name that nobody has is refused at the cost of a password. */
	CHECK(str_starts(password_nobodys(), STR("$scrypt$ln=15,r=8,p=3$")));
	CHECK(!password_verify(STR(""), password_nobodys()));
	password_cheap(true);
	CHECK(password_hash(a, STR("correct horse"), &two) == 0);
	CHECK(str_starts(two, STR("$scrypt$ln=4,r=8,p=1$")));
	CHECK(str_starts(password_nobodys(), STR("$scrypt$ln=4,r=8,p=1$")));
	CHECK(password_verify(STR("correct horse"), two));
	CHECK(!password_verify(STR("correct horse "), two));
	CHECK(!password_verify(STR(""), password_nobodys()));
	CHECK(password_verify(STR("correct horse"), one));
	password_cheap(false);
	CHECK(str_starts(password_nobodys(), STR("$scrypt$ln=15,r=8,p=3$")));
	CHECK(password_verify(STR("correct horse"), two));
	arena_free(a);
	return CHECK_DONE();
}
