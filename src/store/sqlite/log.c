/* A SQLite file layer for the write-ahead log. For each page of a commit SQLite makes two write calls, one for a header
 * of 24 bytes and one for the page: hundreds in a batch. Here they are collected and written together when SQLite
 * flushes the log.
 *
 * That is safe because nobody reads what was not flushed: with synchronous=FULL every commit flushes the log before it
 * tells other connections where the log ends. When SQLite reads collected bytes, or writes elsewhere, they are written
 * first. Bytes that cannot be written stay collected and fail the commit; they are tried again before anything else, so
 * the log never has a gap. */
#include "store/sqlite/sqlite.h"

#include <stdlib.h>

/* The usual file layer writes at most 128 KB less one byte in one call. */
#define GATHER_MAX 126976

struct log_file {
	sqlite3_file base; /* must be first: SQLite sees only this */
	sqlite3_file *file;
	sqlite3_int64 at; /* where the collected bytes go */
	int n;
	char *bytes;
};

static sqlite3_vfs gathering;

static struct log_file *log_of(sqlite3_file *f)
{
	return (struct log_file *)f;
}

static int log_write_out(struct log_file *l)
{
	int r = l->n ? l->file->pMethods->xWrite(l->file, l->bytes, l->n, l->at) : SQLITE_OK;
	if (r == SQLITE_OK)
		l->n = 0;
	return r;
}

static int log_close(sqlite3_file *f)
{
	struct log_file *l = log_of(f);
	int r = log_write_out(l), closed = l->file->pMethods->xClose(l->file);
	free(l->bytes);
	l->bytes = NULL;
	return r != SQLITE_OK ? r : closed;
}

static int log_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	struct log_file *l = log_of(f);
	bool gathered = at < l->at + l->n && at + n > l->at;
	int r = gathered ? log_write_out(l) : SQLITE_OK;
	return r != SQLITE_OK ? r : l->file->pMethods->xRead(l->file, to, n, at);
}

static int log_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	struct log_file *l = log_of(f);
	int r = SQLITE_OK;
	if (l->n && (at != l->at + l->n || n > GATHER_MAX - l->n))
		r = log_write_out(l);
	if (r != SQLITE_OK)
		return r;
	if (n > GATHER_MAX)
		return l->file->pMethods->xWrite(l->file, from, n, at);
	if (!l->n)
		l->at = at;
	memcpy(l->bytes + l->n, from, (size_t)n);
	l->n += n;
	return SQLITE_OK;
}

static int log_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct log_file *l = log_of(f);
	int r = log_write_out(l);
	return r != SQLITE_OK ? r : l->file->pMethods->xTruncate(l->file, size);
}

static int log_sync(sqlite3_file *f, int flags)
{
	struct log_file *l = log_of(f);
	int r = log_write_out(l);
	return r != SQLITE_OK ? r : l->file->pMethods->xSync(l->file, flags);
}

static int log_size(sqlite3_file *f, sqlite3_int64 *ret_size)
{
	struct log_file *l = log_of(f);
	int r = log_write_out(l);
	return r != SQLITE_OK ? r : l->file->pMethods->xFileSize(l->file, ret_size);
}

static int log_lock(sqlite3_file *f, int level)
{
	return log_of(f)->file->pMethods->xLock(log_of(f)->file, level);
}

static int log_unlock(sqlite3_file *f, int level)
{
	return log_of(f)->file->pMethods->xUnlock(log_of(f)->file, level);
}

static int log_is_reserved(sqlite3_file *f, int *ret_reserved)
{
	return log_of(f)->file->pMethods->xCheckReservedLock(log_of(f)->file, ret_reserved);
}

static int log_control(sqlite3_file *f, int what, void *arg)
{
	return log_of(f)->file->pMethods->xFileControl(log_of(f)->file, what, arg);
}

static int log_sector(sqlite3_file *f)
{
	return log_of(f)->file->pMethods->xSectorSize(log_of(f)->file);
}

static int log_traits(sqlite3_file *f)
{
	return log_of(f)->file->pMethods->xDeviceCharacteristics(log_of(f)->file);
}

/* Version 1: a log is neither memory-mapped nor shared memory. */
static const sqlite3_io_methods log_methods = {.iVersion = 1,
                                               .xClose = log_close,
                                               .xRead = log_read,
                                               .xWrite = log_write,
                                               .xTruncate = log_truncate,
                                               .xSync = log_sync,
                                               .xFileSize = log_size,
                                               .xLock = log_lock,
                                               .xUnlock = log_unlock,
                                               .xCheckReservedLock = log_is_reserved,
                                               .xFileControl = log_control,
                                               .xSectorSize = log_sector,
                                               .xDeviceCharacteristics = log_traits};

/* Other files keep the usual methods. */
static int log_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f, int flags, int *ret_flags)
{
	sqlite3_vfs *usual = vfs->pAppData;
	struct log_file *l = log_of(f);
	if (!(flags & SQLITE_OPEN_WAL))
		return usual->xOpen(usual, name, f, flags, ret_flags);
	*l = (struct log_file){.file = (sqlite3_file *)(l + 1)};
	int r = usual->xOpen(usual, name, l->file, flags, ret_flags);
	if (r != SQLITE_OK)
		return r;
	l->bytes = must_malloc(GATHER_MAX);
	l->base.pMethods = &log_methods;
	return SQLITE_OK;
}

void log_vfs_setup(void)
{
	sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
	gathering = *usual;
	gathering.pNext = NULL;
	gathering.zName = LOG_VFS;
	gathering.pAppData = usual;
	gathering.szOsFile = usual->szOsFile + (int)sizeof(struct log_file);
	gathering.xOpen = log_open;
	sqlite3_vfs_register(&gathering, 0);
}
