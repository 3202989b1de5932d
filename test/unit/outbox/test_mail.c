/* Letters as they go over the wire, and a queue whose server is not there. */
#include "outbox/mail.h"

#include "base/clock.h"
#include "base/log.h"
#include "check.h"

#include <unistd.h>

static bool holds(struct str text, const char *part)
{
	return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

static void test_letter(void)
{
	struct arena *a = arena_new();
	struct str l = mail_letter(a, STR("steward@example.com"), STR("ada@example.org"), STR("Hello"),
	                           STR("Größe\n.\n\nlast line without an end"), 1767323045000);
	CHECK(holds(l, "Date: Fri, 02 Jan 2026 03:04:05 +0000\r\n"));
	CHECK(holds(l, "From: Steward <steward@example.com>\r\n"));
	CHECK(holds(l, "To: <ada@example.org>\r\n"));
	CHECK(holds(l, "Subject: Hello\r\n"));
	CHECK(holds(l, "@example.com>\r\nAuto-Submitted: auto-generated\r\n"));
	CHECK(holds(l, "\r\n\r\nGröße\r\n.\r\n\r\nlast line without an end\r\n"));
	for (size_t i = 0; i < l.n; i++)
		CHECK(l.p[i] != '\n' || l.p[i - 1] == '\r');
	arena_free(a);
}

/* Port 9 of the loopback takes no connection: the letters fail at once and are dropped at the end. */
static void test_dead_server(void)
{
	struct mail *m;
	int64_t started = clock_mono_us();
	CHECK(mail_open(&(struct mail_options){.url = "smtp://127.0.0.1:9", .from = "steward@example.com"}, &m) == 0);
	for (int i = 0; i < 1200; i++) /* more than the queue takes */
		mail_send(m, STR("ada@example.org"), STR("Hello"), STR("text\n"));
	usleep(50000);
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
