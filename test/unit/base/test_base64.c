/* Base64: what is written is read again, in either alphabet, and nothing else is. */
#include "base/base64.h"

#include "base/id.h"
#include "check.h"

static ssize_t decode(const char *text, unsigned char ret_bytes[64])
{
	return base64_decode(str_of(text), ret_bytes, 64);
}

static void test_there_and_back(void)
{
	unsigned char raw[48], back[64];
	char text[BASE64_TEXT(sizeof raw)];
	for (size_t n = 0; n <= sizeof raw; n++)
		for (int i = 0; i < 20; i++) {
			random_bytes(raw, sizeof raw);
			base64url_encode(raw, n, text);
			CHECK(strlen(text) == BASE64_TEXT(n) - 1);
			CHECK(decode(text, back) == (ssize_t)n && memcmp(raw, back, n) == 0);
			CHECK(n == 0 || base64_decode(str_of(text), back, n - 1) < 0);
		}
}

static void test_texts(void)
{
	unsigned char back[64];
	CHECK(decode("Zm9vYmE=", back) == 5 && memcmp(back, "fooba", 5) == 0);
	CHECK(decode("Zm9vYg==", back) == 4 && decode("Zm9vYg", back) == 4 && memcmp(back, "foob", 4) == 0);
	CHECK(decode("-_-_", back) == 3 && memcmp(back, "\xfb\xff\xbf", 3) == 0);
	CHECK(decode("+/+/", back) == 3 && memcmp(back, "\xfb\xff\xbf", 3) == 0);
	static const char *const wrong[] = {"Z",       "Zm9vY",    "Zm9vYh", "Zm9vYmF", "Zm=v",
	                                    "Zm9vYg=", "Zm9v====", "Zm9\n",  " Zm9"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK(decode(wrong[i], back) < 0);
}

static void test_each_byte(void)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char back[64];
	for (int c = 0; c < 256; c++) {
		char text[4] = {(char)c, 'A', 'A', 'A'};
		const char *at = c ? strchr(digits, c) : NULL;
		int value = c == '+' ? 62 : c == '/' ? 63 : at ? (int)(at - digits) : -1;
		ssize_t n = base64_decode((struct str){text, 4}, back, sizeof back);
		CHECK(value < 0 ? n < 0 : n == 3 && back[0] == value << 2);
	}
}

int main(void)
{
	test_there_and_back();
	test_texts();
	test_each_byte();
	return CHECK_DONE();
}
