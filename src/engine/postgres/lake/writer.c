/* What comes out of the program is a file only with its answer, and the service adds up the sum of its bytes itself:
 * the program reads what a tenant has written, so nothing that it says is taken on trust but the bytes. Of those, that
 * they have all rows: a program that a row has taken over can write a file that has them not, but then only of rows of
 * that same table. */
#include "engine/postgres/lake/writer.h"

#include "base/helper.h"
#include "base/json.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPER "steward-lake"
#define WAIT_MS 200
#define STALL_MS 120000 /* in which nothing goes in or comes out */
#define ANSWER_MAX 4096
#define PIECE 65536
#define OUT_OF_MEMORY "Out of Memory" /* as libduckdb's words begin */

static void end_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int descriptor_wait(const struct pg_lake_writer *w, int fd, short events)
{
	for (int64_t end = pg_mono_ms() + STALL_MS; pg_mono_ms() < end;) {
		struct pollfd p = {fd, events, 0};
		int found = poll(&p, 1, WAIT_MS);
		if (w->stop->asked(w->stop->ctx))
			return -ECANCELED;
		if (found > 0)
			return 0;
		if (found < 0 && errno != EINTR)
			return -errno;
	}
	pg_why_set(NULL, "the program that writes the file hangs");
	return -ETIMEDOUT;
}

static int ends_make(int rows[2], int file[2], int answer[2])
{
	rows[0] = rows[1] = file[0] = file[1] = answer[0] = answer[1] = -1;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, rows) < 0 || pipe2(file, O_CLOEXEC) < 0 ||
	                       pipe2(answer, O_CLOEXEC) < 0
	               ? -errno
	               : 0;
}

static int program_start(struct pg_lake_writer *w)
{
	int rows[2], file[2], answer[2];
	int r = ends_make(rows, file, answer);
	r = r < 0 ? r : helper_start(HELPER, (int[]){rows[1], answer[1], file[1]}, 3, &w->pid);
	w->rows = rows[0];
	w->file = file[0];
	w->answer = answer[0];
	end_close(&rows[1]);
	end_close(&file[1]);
	end_close(&answer[1]);
	if (r < 0)
		pg_why_set(NULL, "%s: %s", HELPER, r == -ENOENT ? "it is not installed" : strerror(-r));
	return r;
}

int pg_lake_writer_open(struct pg_lake_writer *w, struct str header, uint64_t most, const struct pg_stop *stop)
{
	*w = (struct pg_lake_writer){.stop = stop, .rows = -1, .file = -1, .answer = -1, .most = most + header.n + 1};
	int r = program_start(w);
	r = r < 0 ? r : pg_lake_writer_write(w, header.p, header.n);
	r = r < 0 ? r : pg_lake_writer_write(w, "\n", 1);
	if (r < 0)
		pg_lake_writer_close(w);
	return r;
}

/* What the program says when it wants no more. */
static int answer_read(struct pg_lake_writer *w)
{
	char text[ANSWER_MAX];
	size_t n = 0;
	ssize_t got = 1;
	int r = 0;
	while (r == 0 && got > 0 && n < sizeof text) {
		r = descriptor_wait(w, w->answer, POLLIN);
		got = r < 0 ? 0 : read(w->answer, text + n, sizeof text - n);
		n += got > 0 ? (size_t)got : 0;
	}
	json_t *answer = r < 0 ? NULL : json_loadb(text, n, 0, NULL);
	const char *error = json_string_value(json_object_get(answer, "error"));
	bool whole = json_is_integer(json_object_get(answer, "rows")) &&
	             (uint64_t)json_number(answer, "rows") == w->rows_wanted;
	if (r == 0 && !whole) {
		pg_why_set(NULL, "the file could not be made or read: %s",
		           error    ? error
		           : answer ? "it has not all rows"
		                    : "the program at work has ended");
		w->too_large = error && str_starts(str_of(error), STR(OUT_OF_MEMORY));
		r = w->too_large ? -EFBIG : -EIO;
	}
	json_decref(answer);
	return r;
}

int pg_lake_writer_write(void *writer, const void *bytes, size_t n)
{
	struct pg_lake_writer *w = writer;
	const char *p = bytes;
	w->taken += n;
	if (w->taken > w->most)
		return -EFBIG;
	for (size_t done = 0; done < n;) {
		int r = descriptor_wait(w, w->rows, POLLOUT);
		if (r < 0)
			return r;
		ssize_t sent = send(w->rows, p + done, n - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EAGAIN && errno != EINTR) {
			w->rows_wanted = UINT64_MAX; /* it says why, and no number of rows would do */
			return answer_read(w);
		}
		done += sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

void pg_lake_writer_full(struct pg_lake_writer *w, uint64_t rows)
{
	w->rows_wanted = rows;
	end_close(&w->rows);
	w->digest = EVP_MD_CTX_new();
	if (w->digest && EVP_DigestInit_ex(w->digest, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(w->digest);
		w->digest = NULL;
	}
}

ssize_t pg_lake_writer_read(void *writer, void *buf, size_t n)
{
	struct pg_lake_writer *w = writer;
	int r = descriptor_wait(w, w->file, POLLIN);
	ssize_t got = r < 0 ? r : read(w->file, buf, n);
	if (got < 0)
		return r < 0 ? r : -errno;
	if (got == 0) {
		r = answer_read(w);
		w->whole = r == 0;
		return r;
	}
	if (!w->digest || EVP_DigestUpdate(w->digest, buf, (size_t)got) != 1)
		return -ENOMEM;
	w->bytes += (uint64_t)got;
	return got;
}

void pg_lake_writer_sum(struct pg_lake_writer *w, char ret_hex[PG_LAKE_SHA256])
{
	unsigned char sum[EVP_MAX_MD_SIZE] = {0};
	unsigned n = 0;
	if (w->digest)
		EVP_DigestFinal_ex(w->digest, sum, &n);
	for (size_t i = 0; i < 32; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", sum[i]);
}

int pg_lake_reader_open(struct pg_lake_writer *w, struct str header, int file, const struct pg_stop *stop)
{
	int rows[2], pipes[2], answer[2];
	*w = (struct pg_lake_writer){.stop = stop, .rows = -1, .file = -1, .answer = -1, .most = header.n + 1};
	int r = ends_make(rows, pipes, answer);
	r = r < 0 ? r : helper_start(HELPER, (int[]){rows[1], answer[1], file}, 3, &w->pid);
	w->rows = rows[0];
	w->answer = answer[0];
	end_close(&rows[1]);
	end_close(&answer[1]);
	end_close(&pipes[0]);
	end_close(&pipes[1]);
	if (r < 0)
		pg_why_set(NULL, "%s: %s", HELPER, r == -ENOENT ? "it is not installed" : strerror(-r));
	r = r < 0 ? r : pg_lake_writer_write(w, header.p, header.n);
	r = r < 0 ? r : pg_lake_writer_write(w, "\n", 1);
	if (r < 0)
		pg_lake_writer_close(w);
	return r;
}

int pg_lake_reader_take(struct pg_lake_writer *w, uint64_t rows, int (*take)(void *ctx, const char *bytes, size_t n),
                        void *ctx)
{
	char bytes[PIECE];
	ssize_t got = 1;
	int r = 0;
	while (r == 0 && got > 0) {
		r = descriptor_wait(w, w->rows, POLLIN);
		got = r < 0 ? 0 : recv(w->rows, bytes, sizeof bytes, 0);
		if (got < 0)
			r = errno == EINTR ? 0 : -errno;
		else if (got > 0)
			r = take(ctx, bytes, (size_t)got);
		got = got < 0 && r == 0 ? 1 : got;
	}
	w->rows_wanted = rows;
	return r < 0 ? r : answer_read(w);
}

void pg_lake_writer_close(struct pg_lake_writer *w)
{
	end_close(&w->rows);
	end_close(&w->file);
	end_close(&w->answer);
	EVP_MD_CTX_free(w->digest);
	w->digest = NULL;
	if (w->pid <= 0)
		return;
	kill(w->pid, SIGKILL); /* it has nothing left to do */
	while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
}
