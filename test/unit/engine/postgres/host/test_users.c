/* Users of databases: each project has one for itself. What has no cluster on this host keeps it too while it works, and
 * one whose project has gone meanwhile is not given on before it was looked at again. */
#include "check.h"
#include "engine/postgres/host/user.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define USERS 3u
#define PROJECTS 6u
#define ROUNDS 400u
#define FIRST_UID 3000000001u /* nobody's: no process runs as one */

/* Which of them a project gets, from 1; 0: the shared one. */
static size_t given(const struct engine *e, const struct pg_user *u)
{
	return u == &e->user ? 0 : (size_t)(u - e->users) + 1;
}

static size_t user_of(struct engine *e, const char *project)
{
	const struct pg_user *u = pg_user_of(e, project);
	return given(e, u);
}

static size_t held(struct engine *e, const char *project)
{
	const struct pg_user *u = pg_user_hold(e, project);
	return given(e, u);
}

static void engine_begin(struct engine *e)
{
	char dir[] = "/tmp/steward-users-XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	snprintf(e->dir, sizeof e->dir, "%s", dir);
	pthread_mutex_init(&e->lock, NULL);
	e->users = calloc(USERS, sizeof *e->users);
	e->user_count = USERS;
	for (unsigned i = 0; i < USERS; i++)
		e->users[i].uid = FIRST_UID + i;
}

static void engine_end(struct engine *e)
{
	CHECK(rmdir(e->dir) == 0);
	free(e->users);
	pthread_mutex_destroy(&e->lock);
}

/* A drill of a project whose clusters are elsewhere held nothing: the next project got its user, and ran beside it. */
static void held_ones_stay(void)
{
	struct engine e = {.user_count = 0};
	engine_begin(&e);
	CHECK(held(&e, "one") == 1 && held(&e, "two") == 2 && held(&e, "three") == 3);
	CHECK(user_of(&e, "four") == 0); /* shared: none is free */
	CHECK(held(&e, "two") == 2 && user_of(&e, "two") == 2);
	pg_user_let_go(&e, &e.users[1]);
	CHECK(user_of(&e, "four") == 0); /* held twice */
	pg_user_let_go(&e, &e.users[1]);
	CHECK(user_of(&e, "four") == 2);
	CHECK(held(&e, "two") == 2); /* nothing keeps it for the other */
	pg_user_let_go(&e, &e.users[1]);
	pg_user_let_go(&e, &e.user);
	engine_end(&e);
}

struct world {
	struct engine engine;
	_Atomic unsigned inside[USERS];
	_Atomic unsigned met; /* two projects in one user at once, or one and what another has left */
};

struct project {
	struct world *world;
	char name[16];
};

/* What a project leaves goes later than its hold, as files do. Only root can leave something of another. */
static void *project_run(void *arg)
{
	struct project *p = arg;
	struct world *w = p->world;
	char path[PG_PATH + 64];
	snprintf(path, sizeof path, "%s/throwaway/%s", w->engine.dir, p->name);
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct pg_user *u = pg_user_hold(&w->engine, p->name);
		size_t at = given(&w->engine, u);
		if (at) {
			w->met += w->inside[at - 1]++ > 0;
			w->met += mkdir(path, 0700) < 0 || chown(path, geteuid() ? geteuid() : u->uid, (gid_t)-1) < 0;
		}
		if (at && geteuid() != 0)
			w->inside[at - 1]--;
		pg_user_let_go(&w->engine, u);
		sched_yield();
		if (at && geteuid() == 0)
			w->inside[at - 1]--;
		if (at)
			w->met += rmdir(path) < 0;
	}
	return NULL;
}

static void projects_do_not_meet(void)
{
	static struct world w;
	struct project projects[PROJECTS];
	pthread_t threads[PROJECTS];
	char path[PG_PATH + 32];
	engine_begin(&w.engine);
	snprintf(path, sizeof path, "%s/throwaway", w.engine.dir);
	CHECK(mkdir(path, 0700) == 0);
	for (unsigned i = 0; i < PROJECTS; i++) {
		projects[i].world = &w;
		snprintf(projects[i].name, sizeof projects[i].name, "project-%u", i);
		CHECK(pthread_create(&threads[i], NULL, project_run, &projects[i]) == 0);
	}
	for (unsigned i = 0; i < PROJECTS; i++)
		pthread_join(threads[i], NULL);
	CHECK(w.met == 0);
	CHECK(rmdir(path) == 0);
	engine_end(&w.engine);
}

/* What another made and took away since files were looked for may still lie there. */
static void taken_meanwhile(void)
{
	struct engine e = {.user_count = 0};
	char path[PG_PATH + 32];
	engine_begin(&e);
	snprintf(path, sizeof path, "%s/throwaway", e.dir);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof path, "%s/throwaway/left", e.dir);
	CHECK(mkdir(path, 0700) == 0);
	if (geteuid() == 0) {
		CHECK(chown(path, FIRST_UID, 0) == 0);
		CHECK(user_of(&e, "one") == 2);
	}
	CHECK(rmdir(path) == 0);
	CHECK(user_of(&e, "two") == 1);
	snprintf(path, sizeof path, "%s/throwaway", e.dir);
	CHECK(rmdir(path) == 0);
	engine_end(&e);
}

int main(void)
{
	held_ones_stay();
	projects_do_not_meet();
	taken_meanwhile();
	return CHECK_DONE();
}
