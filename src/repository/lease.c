/* Leases: objects that say that somebody is writing or sweeping, renewed while he lives.
 *
 * A writer puts its lease and then looks for a sweeper's; a sweeper puts its own and then looks for writers'. At least
 * one of them sees the other, since an object that was put is in the list. A writer waits until the sweeper is gone; a
 * sweeper leaves the packs alone while there is a writer. So no pack goes that a writer has found. Ages are the
 * differences of two times of the object store, so that the clocks of hosts do not matter; a lease of this machine
 * whose process is gone ends at once. */
#include "repository/lease.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "repository/internal.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RENEW_SECONDS 20
#define LEASE_MS 120000
#define FRESH_US (90 * 1000000LL) /* our own is good for so long after it was put */
#define LOST_WORDS "the lease was lost: this process or the repository stood still for too long; try again"
#define OWNER_TEXT 256

struct lease {
	struct repository *r;
	char name[64];
	char owner[OWNER_TEXT];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	_Atomic bool lost;
	_Atomic int64_t put_us;
};

static bool text_read(const char *path, char *ret_text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(ret_text, 1, size - 1, f) : 0;
	if (f)
		fclose(f);
	ret_text[n] = 0;
	ret_text[strcspn(ret_text, "\n")] = 0;
	return n > 0;
}

/* When a process began, in the kernel's ticks; 0: there is none, or it has ended. */
static unsigned long long process_began(long pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	const char *p = text_read(path, text, sizeof text) ? strrchr(text, ')') : NULL;
	if (!p || p[1] != ' ' || p[2] == 'Z' || p[2] == 'X')
		return 0;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

/* The machine since it was started, and whose process numbers these are. */
static void machine_name(char *ret_text, size_t size)
{
	char boot[64] = "", space[64] = "";
	if (!text_read("/proc/sys/kernel/random/boot_id", boot, sizeof boot))
		boot[0] = 0;
	ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
	space[n > 0 ? n : 0] = 0;
	snprintf(ret_text, size, "%s %s", boot, space);
}

static void owner_write(char ret_text[OWNER_TEXT])
{
	char machine[160];
	long pid = (long)getpid();
	machine_name(machine, sizeof machine);
	snprintf(ret_text, OWNER_TEXT, "%ld %llu %s", pid, process_began(pid), machine);
}

static bool owner_is_gone(const char *owner)
{
	char machine[160], *rest;
	long pid = strtol(owner, &rest, 10);
	unsigned long long began = strtoull(rest, &rest, 10);
	machine_name(machine, sizeof machine);
	return began && *rest == ' ' && machine[0] != ' ' && strcmp(rest + 1, machine) == 0 &&
	       process_began(pid) != began;
}

/* One that has not been renewed for so long may have been taken for dead, even if it is still there: it is lost. */
int lease_check(struct lease *l)
{
	if (clock_boot_us() - l->put_us > FRESH_US)
		l->lost = true;
	return l->lost ? repo_fail(-ESTALE, LOST_WORDS) : 0;
}

static int lease_put(struct lease *l)
{
	int64_t now = clock_boot_us();
	int result = l->put_us ? lease_check(l) : 0;
	if (result == 0)
		result = object_put(l->r, SEALED_LEASE, l->name, l->owner, strlen(l->owner), NULL);
	if (result == 0)
		l->put_us = now;
	return result;
}

static void *lease_renew(void *arg)
{
	struct lease *l = arg;
	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		struct timespec at;
		clock_gettime(CLOCK_MONOTONIC, &at);
		at.tv_sec += RENEW_SECONDS;
		while (!l->stop && pthread_cond_timedwait(&l->wake, &l->lock, &at) == 0)
			;
		if (l->stop)
			break;
		pthread_mutex_unlock(&l->lock);
		uint64_t size;
		/* One that was taken away is not made again: its owner must see that. */
		int result = object_size(l->r, l->name, &size);
		if (result == -ENOENT)
			l->lost = true;
		result = result == 0 ? lease_put(l) : result;
		if (result < 0)
			log_warn("backups: a lease could not be renewed: %s", repository_why());
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

int lease_begin(struct repository *r, enum lease_kind kind, struct lease **ret_lease)
{
	struct lease *l = must_calloc(1, sizeof(*l));
	pthread_condattr_t attributes;
	struct id id = id_new();
	l->r = r;
	snprintf(l->name, sizeof l->name, "leases/%c-%s", (char)kind, id.z);
	owner_write(l->owner);
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&l->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	int result = lease_put(l);
	if (result == 0 && pthread_create(&l->thread, NULL, lease_renew, l) != 0) {
		result = repo_fail(-EAGAIN, "no thread could be made");
		if (object_delete(r, l->name) < 0)
			log_warn("backups: %s", repository_why());
	}
	if (result < 0) {
		pthread_mutex_destroy(&l->lock);
		pthread_cond_destroy(&l->wake);
		free(l);
		return result;
	}
	*ret_lease = l;
	return 0;
}

void lease_end(struct lease *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	if (object_delete(l->r, l->name) < 0)
		log_warn("backups: a lease stays until it ends by itself: %s", repository_why());
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->wake);
	free(l);
}

struct lease_seen {
	char name[64];
	int64_t modified_ms;
};
struct lease_list {
	struct lease_seen *seen;
	size_t count, room;
};

static int lease_listed(void *ctx, const struct object_info *info)
{
	struct lease_list *list = ctx;
	if (strlen(info->name) >= sizeof list->seen->name)
		return 0;
	if (list->count == list->room) {
		list->room = list->room ? list->room * 2 : 16;
		list->seen = must_realloc(list->seen, list->room * sizeof(*list->seen));
	}
	struct lease_seen *s = &list->seen[list->count++];
	memcpy(s->name, info->name, strlen(info->name) + 1);
	s->modified_ms = info->modified_ms;
	return 0;
}

/* `age_ms`: at least so old. */
static bool lease_is_over(struct repository *r, const struct lease_seen *s, int64_t age_ms)
{
	char *owner = NULL;
	size_t n;
	if (age_ms > LEASE_MS)
		return true;
	int result = object_get(r, SEALED_LEASE, s->name, OWNER_TEXT, &owner, &n);
	bool over = result == -ENOENT || (result == 0 && owner_is_gone(owner));
	free(owner);
	return over;
}

int lease_look(struct lease *l, struct lease_others *ret_others)
{
	struct lease_list list = {0};
	struct lease_others others = {0};
	/* Renewed, so that its time is about now. */
	uint64_t size;
	int result = object_size(l->r, l->name, &size);
	if (result == 0)
		result = lease_put(l);
	if (result == 0)
		result = object_list(l->r, "leases/", lease_listed, &list);
	bool own = false;
	for (size_t i = 0; i < list.count; i++)
		if (strcmp(list.seen[i].name, l->name) == 0) {
			own = true;
			others.now_ms = list.seen[i].modified_ms;
		}
	if (result == -ENOENT || (result == 0 && (!own || lease_check(l) < 0))) {
		l->lost = true;
		result = repo_fail(-ESTALE, LOST_WORDS);
	}
	for (size_t i = 0; i < list.count && result == 0; i++) {
		const struct lease_seen *s = &list.seen[i];
		if (strcmp(s->name, l->name) == 0)
			continue;
		if (lease_is_over(l->r, s, others.now_ms - s->modified_ms))
			result = object_delete(l->r, s->name);
		else if (s->name[strlen("leases/")] == LEASE_SWEEP)
			others.sweepers++;
		else
			others.writers++;
	}
	free(list.seen);
	if (result == 0)
		*ret_others = others;
	return result;
}
