/* One object of an export. The engine pushes rows and the object store pulls bytes, so a thread stands between them,
 * with a socket that holds what neither has taken yet: memory is bounded whatever the table's size. */
#include "api/exports/put.h"

#include "objects/seal.h"
#include "store/seal.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define PIECE 65536
#define GZIP_WINDOW (15 + 16) /* zlib's way to say gzip */
#define PART_MAX 80
#define PART_HEAD 60

struct export_put {
	pthread_t thread;
	struct objects *bucket;
	char name[OBJECT_NAME_MAX + 1];
	int in, out;
	_Atomic bool broken; /* the end of the bytes is not the end of the object */
	int result;          /* of the thread */
	char why[300];
	z_stream z;
	EVP_MD_CTX *hash;
	struct object_seal *seal; /* NULL: it is plain */
	struct export_stored stored;
	unsigned char piece[PIECE];
};

struct str export_part(struct arena *a, struct str text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *to = arena_alloc(a, 3 * text.n + PART_MAX), sha[65];
	size_t n = 0;
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
		             c == '-';
		if (plain) {
			to[n++] = text.p[i];
			continue;
		}
		to[n++] = '=';
		to[n++] = hex[c >> 4];
		to[n++] = hex[c & 15];
	}
	if (n > PART_MAX) {
		sha256_hex(text, sha);
		n = PART_HEAD;
		to[n++] = '=';
		memcpy(to + n, sha, 16);
		n += 16;
	}
	if (!n)
		to[n++] = '=';
	return (struct str){to, n};
}

static ssize_t bytes_read(void *ctx, void *buf, size_t n)
{
	struct export_put *p = ctx;
	ssize_t got;
	do
		got = read(p->out, buf, n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return got == 0 && atomic_load(&p->broken) ? -ECANCELED : got;
}

static void *put_run(void *arg)
{
	struct export_put *p = arg;
	p->result = objects_put(p->bucket, p->name, bytes_read, p);
	if (p->result < 0)
		snprintf(p->why, sizeof p->why, "%s", objects_why());
	/* A writer that waits for room is told. */
	shutdown(p->out, SHUT_RDWR);
	return NULL;
}

static void put_free(struct export_put *p)
{
	close(p->in);
	close(p->out);
	deflateEnd(&p->z);
	EVP_MD_CTX_free(p->hash);
	object_seal_free(p->seal);
	free(p);
}

static int bytes_send(void *ctx, const void *bytes, size_t n)
{
	struct export_put *p = ctx;
	size_t sent = 0;
	p->stored.stored += n;
	if (EVP_DigestUpdate(p->hash, bytes, n) != 1)
		return -ENOMEM;
	while (sent < n) {
		ssize_t more = send(p->in, (const char *)bytes + sent, n - sent, MSG_NOSIGNAL);
		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return -errno;
		sent += (size_t)more;
	}
	return 0;
}

int export_put_begin(struct objects *bucket, const char *name, const struct data_key *key, struct str group,
                     struct export_put **ret_put)
{
	struct export_put *p = must_calloc(1, sizeof *p);
	int fds[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		free(p);
		return -errno;
	}
	p->bucket = bucket;
	p->in = fds[0];
	p->out = fds[1];
	snprintf(p->name, sizeof p->name, "%s", name);
	p->hash = EVP_MD_CTX_new();
	bool ready = p->hash && EVP_DigestInit_ex(p->hash, EVP_sha256(), NULL) == 1 &&
	             deflateInit2(&p->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK;
	int r = !ready ? -ENOMEM : key ? object_seal_begin(key, group, "exports", bytes_send, p, &p->seal) : 0;
	r = r < 0 ? r : -pthread_create(&p->thread, NULL, put_run, p);
	if (r < 0) {
		put_free(p);
		return r;
	}
	*ret_put = p;
	return 0;
}

static int piece_send(struct export_put *p, size_t n)
{
	return p->seal ? object_seal_write(p->seal, p->piece, n) : bytes_send(p, p->piece, n);
}

static int deflate_some(struct export_put *p, int flush)
{
	int r = 0, state = Z_OK;
	do {
		p->z.next_out = p->piece;
		p->z.avail_out = PIECE;
		state = deflate(&p->z, flush);
		if (state == Z_STREAM_ERROR)
			return -EIO;
		r = piece_send(p, PIECE - p->z.avail_out);
	} while (r == 0 && p->z.avail_out == 0);
	return r;
}

int export_put_write(struct export_put *p, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	int r = 0;
	p->stored.bytes += n;
	while (r == 0 && n) {
		size_t some = n < PIECE ? n : PIECE;
		p->z.next_in = (unsigned char *)(uintptr_t)at;
		p->z.avail_in = (uInt)some;
		r = deflate_some(p, Z_NO_FLUSH);
		at += some;
		n -= some;
	}
	return r;
}

int export_put_end(struct export_put *p, struct export_stored *ret_stored, char *why, size_t why_size)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	int r = deflate_some(p, Z_FINISH);
	if (r == 0 && p->seal)
		r = object_seal_end(p->seal);
	if (r == 0 && EVP_DigestFinal_ex(p->hash, hash, NULL) != 1)
		r = -ENOMEM;
	if (r < 0)
		atomic_store(&p->broken, true);
	shutdown(p->in, SHUT_WR);
	pthread_join(p->thread, NULL);
	if (p->result < 0)
		r = p->result;
	if (r < 0)
		snprintf(why, why_size, "%s", p->why[0] ? p->why : strerror(-r));
	for (size_t i = 0; r == 0 && i < 32; i++)
		snprintf(p->stored.sha256 + 2 * i, 3, "%02x", hash[i]);
	*ret_stored = p->stored;
	put_free(p);
	return r;
}

void export_put_abort(struct export_put *p)
{
	if (!p)
		return;
	atomic_store(&p->broken, true);
	shutdown(p->in, SHUT_WR);
	pthread_join(p->thread, NULL);
	put_free(p);
}
