/* SMTP with libcurl. With a password TLS is required, so that it never crosses the network in clear text; without one,
 * TLS is used when the server offers it. */
#include "outbox/mail.h"

#include "base/buf.h"
#include "base/option.h"
#include "fetch/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CONNECT_SECONDS 10L
#define SEND_SECONDS 30L
#define PASSWORD_FILE_MAX 1024

struct mail {
	char *url, *from, *user, *password;
};

struct str mail_text(struct arena *a, struct str from, const struct mail_letter *l)
{
	struct buf b = {0};
	char date[64];
	struct tm tm;
	time_t seconds = (time_t)(l->created_ms / 1000);
	struct str local, domain, line, text = l->text;
	gmtime_r(&seconds, &tm);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &tm);
	str_cut(from, '@', &local, &domain);
	buf_printf(&b, "Date: %s\r\nFrom: Steward <%.*s>\r\nTo: <%.*s>\r\nSubject: %.*s\r\n", date, STR_ARG(from),
	           STR_ARG(l->to), STR_ARG(l->subject));
	buf_printf(&b, "Message-ID: <%.*s@%.*s>\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n",
	           STR_ARG(l->id), STR_ARG(domain));
	buf_z(&b, "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n");
	while (text.n) {
		str_cut(text, '\n', &line, &text);
		buf_str(&b, line);
		buf_z(&b, "\r\n");
	}
	return buf_keep(&b, a);
}

/* One transfer. */
struct transfer {
	struct str text;
	size_t sent;
	bool (*stops)(void *ctx);
	void *ctx;
};

static size_t read_some(char *to, size_t size, size_t count, void *ctx)
{
	struct transfer *t = ctx;
	size_t room = size * count, left = t->text.n - t->sent, n = left < room ? left : room;
	memcpy(to, t->text.p + t->sent, n);
	t->sent += n;
	return n;
}

static int progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct transfer *t = ctx;
	return t->stops(t->ctx);
}

bool mail_deliver(struct mail *m, const struct mail_letter *l, bool (*stops)(void *ctx), void *ctx, bool *ret_gone,
                  char ret_fault[CURL_ERROR_SIZE])
{
	struct arena *a = arena_new();
	long answer = 0;
	struct transfer t = {.text = mail_text(a, str_of(m->from), l), .stops = stops, .ctx = ctx};
	struct fetch fetch = {.named = FETCH_BY_OPERATOR};
	CURL *curl = curl_easy_init();
	struct curl_slist *to = curl_slist_append(NULL, arena_printf(a, "<%.*s>", STR_ARG(l->to)).p);
	ret_fault[0] = 0;
	curl_easy_setopt(curl, CURLOPT_URL, m->url);
	fetch_setup(curl, &fetch, "smtp,smtps", NULL);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, ret_fault);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, SEND_SECONDS);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &t);
	curl_easy_setopt(curl, CURLOPT_USE_SSL, (long)(m->user ? CURLUSESSL_ALL : CURLUSESSL_TRY));
	if (m->user) {
		curl_easy_setopt(curl, CURLOPT_USERNAME, m->user);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, m->password);
	}
	curl_easy_setopt(curl, CURLOPT_MAIL_FROM, arena_printf(a, "<%s>", m->from).p);
	curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, to);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, read_some);
	curl_easy_setopt(curl, CURLOPT_READDATA, &t);
	curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
	CURLcode code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer);
	*ret_gone = code != CURLE_OK && answer >= 550 && answer <= 554;
	if (code != CURLE_OK && !ret_fault[0])
		snprintf(ret_fault, CURL_ERROR_SIZE, "%s", curl_easy_strerror(code));
	curl_slist_free_all(to);
	curl_easy_cleanup(curl);
	arena_free(a);
	return code == CURLE_OK;
}

static int password_read(const char *path, char **ret_password)
{
	char text[PASSWORD_FILE_MAX];
	int result = option_secret_read("--smtp-password-file", path, text, sizeof text);
	if (result == 0)
		*ret_password = must_strdup(text);
	return result;
}

int mail_open(const struct mail_options *o, struct mail **ret_mail)
{
	char *password = NULL;
	if (o->password_file && password_read(o->password_file, &password) < 0)
		return -EINVAL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(password);
		return option_refuse("--smtp-url: libcurl cannot be used");
	}
	struct mail *m = must_calloc(1, sizeof *m);
	m->url = must_strdup(o->url);
	m->from = must_strdup(o->from);
	m->user = o->user ? must_strdup(o->user) : NULL;
	m->password = password;
	*ret_mail = m;
	return 0;
}

void mail_close(struct mail *m)
{
	if (!m)
		return;
	free(m->url);
	free(m->from);
	free(m->user);
	free(m->password);
	free(m);
	curl_global_cleanup();
}
