/* What the files of the snapshots share: one that is being taken. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_SNAPSHOT_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_SNAPSHOT_H

#include "engine/postgres/postgres.h"

#include <stdatomic.h>

struct shot_file {
	char *path;
	uint64_t size;
	unsigned mode;
	int64_t modified_s;
};

/* One set's part. */
struct shot_base {
	uid_t owner; /* of its files; -1: the service's own user, whose all are */
	char name[64];
	unsigned set;
	struct pg_node node; /* a copy: the cluster may change meanwhile */
	char data[PG_PATH], run[PG_PATH];
	bool standby;
	PGconn *conn;
	struct repo_writer *writer;
	struct shot_file *files;
	size_t file_count, file_room;
	uint64_t bytes;
	uint64_t start, stop, position; /* in its log */
	unsigned timeline;
	uint64_t segment, stored; /* size of its log's files, and up to where they were taken */
	char *label, *map;
	json_t *settings;
	struct repo_amount amount;
	bool committed;
	int image; /* see image.c; while it is copied */
};

struct shot {
	struct engine *e;
	struct pg_cluster *c;
	const struct engine_source *to;
	struct repository *repository;
	struct engine_progress *progress;
	struct shot_base *bases;
	size_t count, current;
	bool cold;
	atomic_bool imaging;
	/* The threads that read. */
	atomic_size_t next;
	_Atomic uint64_t done;
	atomic_bool failed;
	pthread_mutex_t lock;
	int fault;
	char why[500];
};

/* --- snapshot_files.c */
bool pg_shot_is_cancelled(struct shot *s);
/* A file of the base's data directory that belongs to the database's user; -EPERM: it is another's. */
int pg_shot_open(const struct shot_base *b, const char *path);
/* All files of the data directory that belong to a snapshot, but pg_control, are in the repository. */
int pg_shot_files(struct shot *s, struct shot_base *b);

/* --- image.c: the files beside the databases, where that costs nothing; a fault only means that there are none */
void pg_image_begin(struct shot *s);
int pg_image_set(struct shot *s, const struct shot_base *b); /* -1: there is none */
void pg_image_directory(struct shot *s, const struct shot_base *b, const char *path);
void pg_image_add(struct shot *s, const struct shot_base *b, const char *path, int fd);
void pg_image_end(struct shot *s, bool taken);

/* --- snapshot.c */
/* So is the log that is complete, before the server takes it away. */
int pg_shot_follow(struct shot *s, struct shot_base *b);

#endif
