/* SMTP with libcurl. One thread sends new letters, senders by turns, and retries failed ones when they are due, so that
 * these delay nobody. The queue is in memory only: after a crash, a lost invitation has to be sent again by inviting
 * again. */
#include "outbox/mail.h"

#include "base/clock.h"
#include "base/fair.h"
#include "base/id.h"
#include "base/log.h"
#include "base/option.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define QUEUE_MAX 1000
#define CONNECT_SECONDS 10L
#define SEND_SECONDS 30L
#define CLOSE_US (5 * INT64_C(1000000))
#define PASSWORD_FILE_MAX 1024

static const unsigned waits[] = {5, 30, 120}; /* seconds before each further attempt */
#define ATTEMPTS (sizeof waits / sizeof *waits + 1)

struct letter {
	struct fair_item item; /* first: while it is in the queue of new letters */
	struct letter *next;
	struct arena *arena;
	struct str to, text; /* text: in the form that is sent */
	size_t sent;
	unsigned attempts;
	int64_t due_us;
};

struct mail {
	char *url, *from, *user, *password;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* on the monotonic clock */
	struct fair *fresh; /* not tried yet: senders take turns. A place is kept until the letter is sent or dropped */
	struct letter *first; /* to be tried again, by due time */
	bool closing;
	int64_t close_by_us;
};

struct str mail_letter(struct arena *a, struct str from, struct str to, struct str subject, struct str text,
                       int64_t now_ms)
{
	struct buf b = {0};
	char date[64];
	struct tm tm;
	time_t seconds = (time_t)(now_ms / 1000);
	struct id id = id_new();
	struct str local, domain, line;
	gmtime_r(&seconds, &tm);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", &tm);
	str_cut(from, '@', &local, &domain);
	buf_printf(&b, "Date: %s\r\nFrom: Steward <%.*s>\r\nTo: <%.*s>\r\nSubject: %.*s\r\n", date, STR_ARG(from),
	           STR_ARG(to), STR_ARG(subject));
	buf_printf(&b, "Message-ID: <%s@%.*s>\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n", id.z,
	           STR_ARG(domain));
	buf_z(&b, "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n");
	while (text.n) {
		str_cut(text, '\n', &line, &text);
		buf_str(&b, line);
		buf_z(&b, "\r\n");
	}
	struct str letter = arena_dup(a, buf_view(&b));
	buf_free(&b);
	return letter;
}

static size_t read_some(char *to, size_t size, size_t count, void *ctx)
{
	struct letter *l = ctx;
	size_t room = size * count, left = l->text.n - l->sent, n = left < room ? left : room;
	memcpy(to, l->text.p + l->sent, n);
	l->sent += n;
	return n;
}

/* Aborts a transfer that would delay the end of the process. */
static int progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct mail *m = ctx;
	pthread_mutex_lock(&m->lock);
	bool stop = m->closing && clock_mono_us() > m->close_by_us;
	pthread_mutex_unlock(&m->lock);
	return stop;
}

/* Leaves ret_fault empty on success. */
static void deliver(struct mail *m, struct letter *l, char ret_fault[CURL_ERROR_SIZE])
{
	CURL *curl = curl_easy_init();
	struct curl_slist *to = curl_slist_append(NULL, arena_printf(l->arena, "<%.*s>", STR_ARG(l->to)).p);
	const char *from = arena_printf(l->arena, "<%s>", m->from).p;
	ret_fault[0] = 0;
	l->sent = 0;
	curl_easy_setopt(curl, CURLOPT_URL, m->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, ret_fault);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, SEND_SECONDS);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, m);
	/* With a password TLS is required, so that it never crosses the network in clear text; without one, TLS is used
	 * when the server offers it. */
	curl_easy_setopt(curl, CURLOPT_USE_SSL, (long)(m->user ? CURLUSESSL_ALL : CURLUSESSL_TRY));
	if (m->user) {
		curl_easy_setopt(curl, CURLOPT_USERNAME, m->user);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, m->password);
	}
	curl_easy_setopt(curl, CURLOPT_MAIL_FROM, from);
	curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, to);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, read_some);
	curl_easy_setopt(curl, CURLOPT_READDATA, l);
	curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
	CURLcode code = curl_easy_perform(curl);
	if (code == CURLE_OK)
		ret_fault[0] = 0;
	else if (!ret_fault[0])
		snprintf(ret_fault, CURL_ERROR_SIZE, "%s", curl_easy_strerror(code));
	curl_slist_free_all(to);
	curl_easy_cleanup(curl);
}

static void letter_free(struct letter *l)
{
	arena_free(l->arena);
	free(l);
}

/* With the lock held. */
static void enqueue(struct mail *m, struct letter *l)
{
	struct letter **at = &m->first;
	while (*at && (*at)->due_us <= l->due_us)
		at = &(*at)->next;
	l->next = *at;
	*at = l;
	pthread_cond_signal(&m->changed);
}

/* The next letter that is due; NULL when there is none and none will come. With the lock held. */
static struct letter *take(struct mail *m)
{
	for (;;) {
		struct letter *l = m->first;
		int64_t now = clock_mono_us();
		if (m->closing && now > m->close_by_us)
			return NULL;
		if (l && l->due_us <= now && !m->closing) {
			m->first = l->next;
			return l;
		}
		struct fair_item *fresh = fair_take(m->fresh);
		if (fresh || m->closing)
			return (struct letter *)(void *)fresh;
		if (l) {
			struct timespec until = {.tv_sec = l->due_us / 1000000, .tv_nsec = l->due_us % 1000000 * 1000};
			pthread_cond_timedwait(&m->changed, &m->lock, &until);
		} else {
			pthread_cond_wait(&m->changed, &m->lock);
		}
	}
}

static void *mail_run(void *arg)
{
	struct mail *m = arg;
	struct letter *l;
	char fault[CURL_ERROR_SIZE];
	pthread_mutex_lock(&m->lock);
	while ((l = take(m))) {
		pthread_mutex_unlock(&m->lock);
		deliver(m, l, fault);
		bool again = fault[0] && ++l->attempts < ATTEMPTS;
		if (!fault[0])
			log_info("mail: to %.*s: sent", STR_ARG(l->to));
		else if (again)
			log_warn("mail: to %.*s: %s; trying again in %u s", STR_ARG(l->to), fault,
			         waits[l->attempts - 1]);
		else
			log_error("mail: to %.*s: %s; given up", STR_ARG(l->to), fault);
		pthread_mutex_lock(&m->lock);
		if (again) {
			l->due_us = clock_mono_us() + waits[l->attempts - 1] * INT64_C(1000000);
			enqueue(m, l);
		} else {
			fair_done(m->fresh, l->item.key);
			letter_free(l);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

void mail_send(struct mail *m, struct str to, struct str subject, struct str text)
{
	mail_send_for(m, STR_NONE, to, subject, text);
}

void mail_send_for(struct mail *m, struct str sender, struct str to, struct str subject, struct str text)
{
	struct letter *l = must_calloc(1, sizeof *l);
	l->arena = arena_new();
	l->to = arena_dup(l->arena, to);
	l->text = mail_letter(l->arena, str_of(m->from), l->to, subject, text, clock_now_ms());
	pthread_mutex_lock(&m->lock);
	bool full = !fair_add(m->fresh, &l->item, fair_key(sender));
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	if (full) {
		log_error("mail: to %.*s: too many letters are waiting already; dropped", STR_ARG(to));
		letter_free(l);
	}
}

static int password_read(const char *path, char **ret_password)
{
	char text[PASSWORD_FILE_MAX];
	FILE *f = fopen(path, "re");
	if (!f)
		return option_refuse("--smtp-password-file: %s: %s", path, strerror(errno));
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n] = 0;
	if (n == 0 || strlen(text) != n)
		return option_refuse("--smtp-password-file: %s holds no password", path);
	*ret_password = must_strdup(text);
	return 0;
}

static void mail_free(struct mail *m)
{
	struct letter *l;
	while ((l = (struct letter *)(void *)fair_take(m->fresh)) || (l = m->first)) {
		if (l == m->first)
			m->first = l->next;
		log_warn("mail: to %.*s: not delivered before the end", STR_ARG(l->to));
		fair_done(m->fresh, l->item.key);
		letter_free(l);
	}
	fair_free(m->fresh);
	pthread_mutex_destroy(&m->lock);
	pthread_cond_destroy(&m->changed);
	free(m->url);
	free(m->from);
	free(m->user);
	free(m->password);
	free(m);
	curl_global_cleanup();
}

int mail_open(const struct mail_options *o, struct mail **ret_mail)
{
	char *password = NULL;
	pthread_condattr_t attributes;
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
	m->fresh = fair_new(QUEUE_MAX, QUEUE_MAX);
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (pthread_create(&m->thread, NULL, mail_run, m) != 0) {
		mail_free(m);
		return option_refuse("--smtp-url: the thread that sends mail cannot be started");
	}
	*ret_mail = m;
	return 0;
}

void mail_close(struct mail *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->closing = true;
	m->close_by_us = clock_mono_us() + CLOSE_US;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	mail_free(m);
}
