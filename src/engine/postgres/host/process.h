/* Processes: helper programs that are waited for, and servers, which outlive the service. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_PROCESS_H
#define STEWARD_ENGINE_POSTGRES_HOST_PROCESS_H

#include "engine/postgres/model/model.h"

/* Whether somebody has asked for its end. */
struct pg_stop {
	bool (*asked)(void *ctx);
	void *ctx;
	/* Whether more log is on its way to its pg_wal, of which it has replayed that much; NULL: none is. */
	bool (*comes)(void *ctx, uint64_t replayed);
	/* What it says can have users' data in it: it is told, from its beginning, and not logged. */
	bool quiet;
};

/* A helper program, waited for; the end of what it said in *pg_why_last(). */
int pg_process_run(const struct pg_user *u, const char *const *argv, int timeout_ms);
/* The same for one that takes long: ended, with -ECANCELED, when `stop` asks for it. */
struct pg_stop;
int pg_process_run_until(const struct pg_user *u, const char *const *argv, int timeout_ms, const struct pg_stop *stop);
/* The first bytes that a program prints, run as the service's user and without its capabilities; "": nothing. */
void pg_process_ask(const char *const *argv, char *ret_text, size_t size);

struct pg_bounds {
	int cgroup_fd;   /* of the cgroup to enter; -1: none */
	uint64_t memory; /* bytes of address space of each process; 0: as many as there are */
	bool mortal;     /* it ends with the thread that starts it, also when that is killed */
};
/* The server of a data directory: a session of its own, lives on without us, unless it is mortal. */
int pg_process_spawn(const struct pg_user *u, const char *const *argv, const char *data, const char *log,
                     const struct pg_bounds *bounds, pid_t *ret_pid, int *ret_pidfd);
/* Remembers which process it is, for the adoption; a number alone can come to mean another. */
void pg_process_note(const char *data, pid_t pid);
/* The running server of a data directory: 0, or -ESRCH. */
int pg_process_adopt(const char *data, pid_t *ret_pid, int *ret_pidfd, int64_t *ret_started_ms);
void pg_process_signal(int pidfd, int sig);
/* Whether it ended; waits at most that long. Reaps. */
bool pg_process_ended(int pidfd, int timeout_ms);
bool pg_process_is_stopped(pid_t pid); /* by SIGSTOP or a debugger */
/* Kills every process of the nodes' user whose working directory is this. 0: none is left. */
int pg_process_sweep(const struct engine *e, const char *dir);

#endif
