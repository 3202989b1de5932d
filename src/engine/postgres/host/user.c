/* Whom databases run as. A superuser of SQL can read what the server's system user can, so that user is not the
 * service's, whose secret.key opens everything, and not another project's either. A service that may change users
 * (root, or one with the capabilities that the unit gives) runs the databases of each project as a user of its own, out
 * of steward-db-1, steward-db-2 ..., as many as there are but the last, which makes the empty databases that all of
 * them begin with. Projects beyond that share steward-db. A service that may not, on a laptop, runs databases as
 * itself.
 *
 * A user changes its project only when nothing of the former one is left: a superuser of SQL starts programs that
 * outlive its server, and these would read what the next project writes.
 *
 * The choice is noted in a cluster's state, and its files are that user's. They change hands only while no node of the
 * cluster runs: clusters of an older version, and those that share a user though one is free by now, go on as they run
 * until they are next started. That the files are on their way is durable before the first one is given, and they are
 * all given again after a crash. */
#include "engine/postgres/host/user.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHARED "steward-db"
#define USERS_MAX 4096
#define DEPTH_MAX 64 /* of directories that are given: each level holds descriptors and stack */
#define BIT(cap) (1u << (cap))

/* --- who there is */

/* All that is needed to start a database as another, and to look after its files and processes from then on. */
static bool may_change_users(void)
{
	static const unsigned needed = BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) |
	                               BIT(CAP_FOWNER) | BIT(CAP_KILL) | BIT(CAP_SYS_PTRACE);
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {{0}};
	return syscall(SYS_capget, &head, sets) == 0 && (sets[0].effective & needed) == needed;
}

static bool user_look(const char *name, struct pg_user *ret_user)
{
	const struct passwd *pw = getpwnam(name);
	if (!pw || pw->pw_uid == 0 || pw->pw_uid == geteuid())
		return false;
	*ret_user = (struct pg_user){.uid = pw->pw_uid, .gid = pw->pw_gid, .other = true};
	return true;
}

static void projects_users_find(struct engine *e)
{
	char name[32];
	struct pg_user found;
	e->users = must_calloc(USERS_MAX, sizeof *e->users);
	while (e->user_count < USERS_MAX) {
		snprintf(name, sizeof name, SHARED "-%zu", e->user_count + 1);
		if (!user_look(name, &found))
			break;
		e->users[e->user_count++] = found;
	}
	/* Not whom projects share: a superuser of SQL in one of those would have its hands in everybody's next
	 * cluster. */
	if (e->user_count > 1)
		e->maker = &e->users[--e->user_count];
}

int pg_users_find(struct engine *e, const char *name)
{
	e->own = (struct pg_user){.uid = geteuid(), .gid = getegid()};
	e->user = e->former = e->shared = e->own;
	e->maker = &e->user;
	if (e->own.uid != 0 && !may_change_users())
		return 0;
	bool found = user_look(name ? name : SHARED, &e->user);
	bool had = user_look(PG_USER, &e->former);
	if (!found && had) {
		e->user = e->former;
		found = true;
	}
	if (!found && e->own.uid == 0) {
		pg_why_set(
		        NULL,
		        "PostgreSQL does not run as root, and there is no system user %s: make one (useradd --system "
		        "%s), or run the service as another user",
		        name ? name : SHARED, name ? name : SHARED);
		return -ENOENT;
	}
	if (found && !name)
		projects_users_find(e);
	e->shared = e->user;
	e->shared.everyone = e->user_count > 0;
	return 0;
}

void pg_users_tell(const struct engine *e)
{
	if (!e->user.other)
		log_warn("engine: databases run as the service's own user, which reads all that the service does: give "
		         "it "
		         "users for them (operations.md) where they serve more than one tenant");
	else if (!e->user_count)
		log_warn("engine: the databases of all projects run as one user; there is no " SHARED "-1");
	else
		log_info("engine: databases run as users of their own, for %zu projects", e->user_count);
}

const struct pg_user *pg_user_known(const struct engine *e, uid_t uid)
{
	if (e->user.uid == uid)
		return &e->user;
	for (size_t i = 0; i < e->user_count; i++)
		if (e->users[i].uid == uid)
			return &e->users[i];
	if (e->maker->uid == uid)
		return e->maker;
	return e->former.uid == uid ? &e->former : e->own.uid == uid && uid != 0 ? &e->own : NULL;
}

/* --- whose a project is */

static void user_mark(const struct engine *e, uid_t uid, bool *marks)
{
	for (size_t i = 0; i < e->user_count; i++)
		marks[i] |= e->users[i].uid == uid;
}

/* Users that have processes. The directory itself is looked at: what is in it is root's where a process asks for
 * that. */
static void busy_mark(const struct engine *e, bool *marks)
{
	DIR *d = opendir("/proc");
	struct stat st;
	for (struct dirent *entry; d && (entry = readdir(d));)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			user_mark(e, st.st_uid, marks);
	for (size_t i = 0; !d && i < e->user_count; i++)
		marks[i] = true;
	if (d)
		closedir(d);
}

/* Users whose files lie in a directory of nodes, or of throwaway servers: also of clusters that could not be read when
 * the service started. */
static void owners_mark(const struct engine *e, const char *name, bool *marks)
{
	char path[PG_PATH];
	struct stat st;
	pg_path_set(path, "%s/%s", e->dir, name);
	DIR *d = nolink_opendir(path);
	for (struct dirent *entry; d && (entry = readdir(d));)
		if (entry->d_name[0] != '.' && fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			user_mark(e, st.st_uid, marks);
	if (d)
		closedir(d);
}

/* What goes is moved to the throwaway servers first, so these come last. */
static void leftovers_mark(const struct engine *e, bool *marks)
{
	DIR *d = nolink_opendir(e->dir);
	busy_mark(e, marks);
	for (struct dirent *entry; d && (entry = readdir(d));)
		if (id_is_valid(str_of(entry->d_name)))
			owners_mark(e, entry->d_name, marks);
	if (d)
		closedir(d);
	owners_mark(e, "throwaway", marks);
}

/* By the project that it was given to, or by any cluster. With the engine's lock. */
static bool user_is_used(const struct engine *e, const struct pg_user *u)
{
	bool used = u->holds > 0;
	for (struct pg_cluster *c = e->clusters; c && !used; c = c->next) {
		pthread_mutex_lock(&c->lock);
		used = c->user == u || strcmp(c->group_id, u->project) == 0;
		pthread_mutex_unlock(&c->lock);
	}
	return used;
}

/* With the engine's lock. */
static struct pg_user *user_find(const struct engine *e, const char *group_id)
{
	for (size_t i = 0; i < e->user_count; i++)
		if (strcmp(e->users[i].project, group_id) == 0)
			return &e->users[i];
	return NULL;
}

/* What was found of all users without the lock: files and processes, and how often each had been asked for before. */
struct survey {
	uint64_t *taken;
	bool *left;
};

static void survey_make(struct engine *e, struct survey *s)
{
	s->taken = must_calloc(e->user_count + 1, sizeof *s->taken);
	s->left = must_calloc(e->user_count + 1, sizeof *s->left);
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < e->user_count; i++)
		s->taken[i] = e->users[i].taken;
	pthread_mutex_unlock(&e->lock);
	leftovers_mark(e, s->left);
}

/* Nothing of it is left, and nobody has taken it or let it go since it was looked at: what a project made and took away
 * meanwhile may still lie there. */
static bool is_clean(const struct engine *e, const struct survey *s, size_t i)
{
	return !s->left[i] && s->taken[i] == e->users[i].taken;
}

/* One that is free since the start; or else one whose project has no cluster here any more. With the engine's lock. */
static struct pg_user *user_choose(const struct engine *e, const struct survey *s)
{
	for (size_t i = 0; i < e->user_count; i++)
		if (!e->users[i].project[0] && is_clean(e, s, i))
			return &e->users[i];
	for (size_t i = 0; i < e->user_count; i++)
		if (e->users[i].project[0] && is_clean(e, s, i) && !user_is_used(e, &e->users[i]))
			return &e->users[i];
	return NULL;
}

static const struct pg_user *user_take(struct engine *e, const char *group_id, bool hold)
{
	struct survey s = {NULL, NULL};
	pthread_mutex_lock(&e->lock);
	struct pg_user *chosen = user_find(e, group_id);
	if (!chosen && e->user_count) {
		pthread_mutex_unlock(&e->lock);
		survey_make(e, &s);
		pthread_mutex_lock(&e->lock);
		chosen = user_find(e, group_id);
		chosen = chosen ? chosen : user_choose(e, &s);
	}
	if (chosen) {
		snprintf(chosen->project, sizeof chosen->project, "%s", group_id);
		chosen->taken++;
		chosen->holds += hold;
	}
	pthread_mutex_unlock(&e->lock);
	free(s.taken);
	free(s.left);
	return chosen ? chosen : &e->user;
}

const struct pg_user *pg_user_of(struct engine *e, const char *group_id)
{
	return user_take(e, group_id, false);
}

const struct pg_user *pg_user_hold(struct engine *e, const char *group_id)
{
	return user_take(e, group_id, true);
}

void pg_user_note(struct engine *e, const struct pg_user *u)
{
	for (size_t i = 0; i < e->user_count; i++)
		e->users[i].taken += u == &e->users[i];
}

void pg_user_let_go(struct engine *e, const struct pg_user *u)
{
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < e->user_count; i++)
		if (u == &e->users[i] && e->users[i].holds)
			e->users[i].holds--;
	pg_user_note(e, u);
	pthread_mutex_unlock(&e->lock);
}

/* Whose the directories of a cluster's nodes are; 0: there are none. */
static uid_t nodes_owner(const struct pg_cluster *c)
{
	char path[PG_PATH];
	struct stat st;
	uid_t owner = 0;
	pg_path_set(path, "%s/%s", c->engine->dir, c->id);
	DIR *d = nolink_opendir(path);
	for (struct dirent *entry; d && !owner && (entry = readdir(d));)
		if (entry->d_name[0] != '.' && fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode))
			owner = st.st_uid;
	if (d)
		closedir(d);
	return owner;
}

void pg_user_begin(struct pg_cluster *c)
{
	struct engine *e = c->engine;
	uid_t owner = nodes_owner(c);
	c->user = NULL;
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; owner && i < e->user_count; i++) {
		struct pg_user *u = &e->users[i];
		if (u->uid == owner && (!u->project[0] || strcmp(u->project, c->group_id) == 0)) {
			snprintf(u->project, sizeof u->project, "%s", c->group_id);
			u->taken++;
			c->user = u;
		}
	}
	pthread_mutex_unlock(&e->lock);
	if (!c->user)
		c->user = pg_user_of(e, c->group_id);
	c->giving |= c->user->other && owner && owner != c->user->uid;
}

bool pg_user_is_own(const struct pg_cluster *c)
{
	struct engine *e = c->engine;
	const struct pg_user *u = c->user;
	pthread_mutex_lock(&e->lock);
	bool own = u >= e->users && u < e->users + e->user_count && strcmp(u->project, c->group_id) == 0;
	pthread_mutex_unlock(&e->lock);
	return own;
}

void pg_user_recall(struct pg_cluster *c, uid_t uid)
{
	struct engine *e = c->engine;
	char path[PG_PATH];
	struct stat st;
	if (!uid && c->node_count > 0) { /* of a version that did not note it */
		pg_node_path(c, c->nodes[0], "", path);
		uid = nolink_lstat(path, &st) == 0 ? st.st_uid : 0;
	}
	const struct pg_user *u = uid ? pg_user_known(e, uid) : NULL;
	c->user = u ? u : &e->user;
	c->giving |= uid && !u; /* a user that is gone: the next start gives its files to another */
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < e->user_count; i++)
		if (c->user == &e->users[i] && !e->users[i].project[0])
			snprintf(e->users[i].project, sizeof e->users[i].project, "%s", c->group_id);
	pthread_mutex_unlock(&e->lock);
}

/* --- files that change hands */

struct gift {
	const struct pg_user *to;
	dev_t device;
	bool conf; /* the service's own stay so, and the group reads them */
	unsigned depth;
};

static int directory_give(int fd, const struct gift *g, bool is_top);

/* Of what the descriptor is open on. By its name it could be a link by now to any file of the host: the directory is
 * the user's that it is taken from, and a program of that one may still run. */
static int mode_set(int fd, mode_t mode)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return chmod(path, mode);
}

/* A link is given, not what it leads to. A file with two names may be somebody else's: a user that the service shared
 * with databases could name secret.key a second time in its own directory, and would get it here. */
static int entry_give(int dir, const char *name, const struct gift *g, bool is_conf)
{
	struct gift below = {g->to, g->device, g->conf || is_conf, g->depth + 1};
	bool key = strcmp(name, PG_KEY_FILE) == 0 && geteuid() != 0; /* see pg_key_write() */
	uid_t owner = g->conf && !key ? (uid_t)-1 : g->to->uid;
	struct stat st;
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && S_ISREG(st.st_mode) && st.st_nlink > 1)
		r = -EMLINK;
	if (r == 0 && S_ISDIR(st.st_mode) && st.st_dev == g->device) {
		int inside = g->depth < DEPTH_MAX ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		r = g->depth >= DEPTH_MAX ? -ELOOP : inside < 0 ? -errno : directory_give(inside, &below, false);
	} else if (r == 0 && (fchownat(fd, "", owner, g->to->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ||
	                      (g->conf && S_ISREG(st.st_mode) && mode_set(fd, key ? 0600 : 0640) < 0))) {
		r = -errno;
	}
	close(fd);
	return r;
}

/* Closes it. The directory itself comes last. */
static int directory_give(int fd, const struct gift *g, bool is_top)
{
	DIR *d = fdopendir(fd);
	if (!d) {
		int error = errno;
		close(fd);
		return -error;
	}
	int r = 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(d));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		r = entry_give(dirfd(d), entry->d_name, g, is_top && strcmp(entry->d_name, "conf") == 0);
		if (r == -EMLINK)
			log_error("engine: %s has a second name somewhere, and is not given to another user",
			          entry->d_name);
		if (r == -ELOOP && g->depth == DEPTH_MAX)
			log_error("engine: %s lies in more than %d directories, and is not given to another user",
			          entry->d_name, DEPTH_MAX);
	}
	if (r == 0 && (fchown(dirfd(d), g->conf ? (uid_t)-1 : g->to->uid, g->to->gid) < 0 ||
	               fchmod(dirfd(d), g->conf ? 0710 : 0700) < 0))
		r = -errno;
	closedir(d);
	return r;
}

/* `is_node`: of a node, whose conf is the service's. */
static int tree_give(const struct pg_user *u, const char *path, bool is_node)
{
	struct stat st;
	int fd = nolink_open(path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		close(fd);
		return -EIO;
	}
	return directory_give(fd, &(struct gift){.to = u, .device = st.st_dev}, is_node);
}

int pg_tree_give(const struct pg_user *u, const char *path)
{
	struct stat st;
	if (!u->other || (nolink_lstat(path, &st) == 0 && st.st_uid == u->uid && st.st_gid == u->gid))
		return 0;
	return tree_give(u, path, false);
}

int pg_tree_give_node(const struct pg_user *u, const char *path)
{
	return tree_give(u, path, true);
}
