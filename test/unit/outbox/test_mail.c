/* Letters as they go over the wire, and a server that is not there. */
#include "outbox/mail.h"

#include "base/clock.h"
#include "base/log.h"
#include "check.h"

static bool holds(struct str text, const char *part)
{
	return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

static const struct mail_letter hello = {.id = {"5f0000000000000000000001", 24},
                                         .to = {"ada@example.org", 15},
                                         .subject = {"Hello", 5},
                                         .text = {"text\n", 5},
                                         .created_ms = 1767323045000};

static void test_letter(void)
{
	struct arena *a = arena_new();
	struct mail_letter hi = hello;
	hi.text = STR("Größe\n.\n\nlast line without an end");
	struct str l = mail_text(a, STR("steward@example.com"), &hi);
	CHECK(holds(l, "Date: Fri, 02 Jan 2026 03:04:05 +0000\r\n"));
	CHECK(holds(l, "From: Steward <steward@example.com>\r\n"));
	CHECK(holds(l, "To: <ada@example.org>\r\n"));
	CHECK(holds(l, "Subject: Hello\r\n"));
	CHECK(holds(l, "Message-ID: <5f0000000000000000000001@example.com>\r\nAuto-Submitted: auto-generated\r\n"));
	CHECK(holds(l, "\r\n\r\nGröße\r\n.\r\n\r\nlast line without an end\r\n"));
	for (size_t i = 0; i < l.n; i++)
		CHECK(l.p[i] != '\n' || l.p[i - 1] == '\r');
	arena_free(a);
}

static bool never(void *ctx)
{
	return false;
}

/* Port 9 of the loopback takes no connection. */
static void test_dead_server(void)
{
	struct mail *m;
	char fault[CURL_ERROR_SIZE];
	bool gone = true;
	int64_t started = clock_mono_us();
	CHECK(mail_open(&(struct mail_options){.url = "smtp://127.0.0.1:9", .from = "steward@example.com"}, &m) == 0);
	CHECK(!mail_deliver(m, &hello, never, NULL, &gone, fault) && fault[0] && !gone);
	mail_close(m);
	CHECK(clock_mono_us() - started < 15 * INT64_C(1000000));
	mail_close(NULL);
}

static void test_password_file(void)
{
	struct mail *m;
	struct mail_options o = {
	        .url = "smtp://127.0.0.1:9", .from = "a@b", .user = "u", .password_file = "/nonexistent/file"};
	CHECK(mail_open(&o, &m) < 0);
	o.password_file = "/dev/null";
	CHECK(mail_open(&o, &m) < 0);
}

int main(void)
{
	log_setup(LOG_ERROR, false);
	test_letter();
	test_dead_server();
	test_password_file();
	return CHECK_DONE();
}
