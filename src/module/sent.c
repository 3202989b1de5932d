/* Backends send through PqCommMethods, a table of functions. Ours adds a message's length to a number of the process;
 * when the server flushes, which it does once for each answer, that goes into shared memory. */
#include <postgres.h>

#include "module/sent.h"

/* Its structures are the same without Kerberos, whose headers it would ask for. */
#undef ENABLE_GSS
#include <libpq/libpq.h>

#include <fcntl.h>
#include <miscadmin.h>
#include <port/atomics.h>
#include <storage/fd.h>
#include <storage/ipc.h>
#include <storage/shmem.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utils/backend_status.h>

#define SEGMENT "steward sent 1" /* another number with each change of struct shared */
#define HEAD 5                   /* of a message: its type and length */
#define PENDING_MAX SENT_STEP    /* an answer that is longer is counted while it is sent */

struct shared {
	uint64 id;
	pg_atomic_uint64 bytes, saved; /* saved: what the file has */
};

static struct shared *shared;
static const PQcommMethods *next;
static int file = -1; /* opened by the postmaster, for all */
static uint64 pending;
static enum { UNKNOWN, CLIENT, OWN } session;

/* Two processes may write the other way round: the file is then behind until the next one writes. */
static void file_write(void)
{
	struct sent_record r = {.id = shared->id, .bytes = pg_atomic_read_u64(&shared->bytes)};
	r.check = sent_check(&r);
	pg_atomic_write_u64(&shared->saved, r.bytes);
	if (file >= 0 && pwrite(file, &r, sizeof r, 0) != (ssize_t)sizeof r)
		pg_atomic_write_u64(&shared->saved, 0); /* the next one tries again */
}

static void publish(void)
{
	uint64 sent = pending;
	pending = 0;
	if (session == OWN)
		return;
	uint64 bytes = pg_atomic_fetch_add_u64(&shared->bytes, (int64)sent) + sent;
	if (bytes - pg_atomic_read_u64(&shared->saved) >= SENT_STEP)
		file_write();
}

static void session_end(int code, Datum unused)
{
	publish();
	if (pg_atomic_read_u64(&shared->bytes) != pg_atomic_read_u64(&shared->saved))
		file_write();
}

/* Who does not sign in is nobody's client. */
static void session_begin(void)
{
	if (!shared || !MyBEEntry || MyBEEntry->st_procpid != MyProcPid)
		return;
	session = MyBEEntry->st_clientaddr.addr.ss_family == AF_UNIX ? OWN : CLIENT;
	if (session == CLIENT)
		on_shmem_exit(session_end, (Datum)0);
}

static int message_put(char type, const char *text, size_t length)
{
	/* Before it is sent: who breaks off in the middle of a message has had most of it. */
	pending += length + HEAD;
	if (pending >= PENDING_MAX && session)
		publish();
	return next->putmessage(type, text, length);
}

static int flush(void)
{
	if (!session)
		session_begin();
	if (session)
		publish();
	return next->flush();
}

void sent_wrap(void)
{
	static PQcommMethods ours;
	next = PqCommMethods;
	ours = *next; /* putmessage_noblock() of PostgreSQL itself calls putmessage() of the table */
	ours.putmessage = message_put;
	ours.flush = flush;
	PqCommMethods = &ours;
}

void sent_request(void)
{
	RequestAddinShmemSpace(MAXALIGN(sizeof(struct shared)));
}

/* Goes on where the file is, or begins a new one. */
static void file_begin(void)
{
	struct sent_record r;
	if (file < 0)
		file = BasicOpenFile(SENT_FILE, O_RDWR | O_CREAT | O_CLOEXEC | PG_BINARY);
	int error = errno; /* ereport() does not let it be named */
	if (file < 0)
		ereport(LOG, (errmsg("could not open file \"%s\": %s", SENT_FILE, strerror(error))));
	if (file >= 0 && pread(file, &r, sizeof r, 0) == (ssize_t)sizeof r && r.check == sent_check(&r)) {
		shared->id = r.id;
		pg_atomic_init_u64(&shared->bytes, r.bytes);
		pg_atomic_init_u64(&shared->saved, r.bytes);
	} else if (pg_strong_random(&shared->id, sizeof shared->id)) {
		file_write();
	}
}

static void server_end(int code, Datum unused)
{
	file_write();
}

void sent_attach(void)
{
	bool found;
	shared = ShmemInitStruct(SEGMENT, sizeof *shared, &found);
	if (found)
		return;
	shared->id = 0;
	pg_atomic_init_u64(&shared->bytes, 0);
	pg_atomic_init_u64(&shared->saved, 0);
	file_begin();
	if (!IsUnderPostmaster)
		on_shmem_exit(server_end, (Datum)0);
}
