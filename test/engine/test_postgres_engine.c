/* The PostgreSQL engine against real servers, through its operations alone; clients connect over TLS as users would.
 *
 *   test_postgres_engine [PART...]   parts: single set access faults crash retention shards both upgrade (all of them by
 *                                    default); also: bench adopt
 *   test_postgres_engine converge DIR ID NODES    one converge, for the tests that kill it
 *
 * ROUNDS in the environment repeats the faults. Everything lies in one temporary directory and is gone at the end. */
#include "engine/postgres.h"

#include "../unit/check.h"
#include "base/certs.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"

#include <errno.h>
#include <libpq-fe.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP "65f000000000000000000abc"
#define DOMAIN "db.example"
#define PASSWORD "correct horse"

static const struct engine_ops *const ops = &engine_postgres;
static struct engine *engine;
static struct arena *arena;
static char dir[64];
static char verifier[256];
static struct str ca_cert, ca_key;
static const char *self, *programs;

/* --- what is wanted */

static void base64(const unsigned char *bytes, int n, char *ret_text)
{
	EVP_EncodeBlock((unsigned char *)ret_text, bytes, n);
}

static void verifier_make(void)
{
	unsigned char salt[16] = "0123456789abcde", salted[32], client[32], stored[32], server[32];
	char a[64], b[64], c[64];
	unsigned n = 32;
	PKCS5_PBKDF2_HMAC(PASSWORD, (int)strlen(PASSWORD), salt, 16, 4096, EVP_sha256(), 32, salted);
	HMAC(EVP_sha256(), salted, 32, (const unsigned char *)"Client Key", 10, client, &n);
	SHA256(client, 32, stored);
	HMAC(EVP_sha256(), salted, 32, (const unsigned char *)"Server Key", 10, server, &n);
	base64(salt, 16, a);
	base64(stored, 32, b);
	base64(server, 32, c);
	snprintf(verifier, sizeof verifier, "SCRAM-SHA-256$4096:%s$%s:%s", a, b, c);
}

/* The project's certificate authority, the same one for every process of this test. */
static void authority_make(void)
{
	char cert[96], key[96];
	snprintf(cert, sizeof cert, "%s/ca.crt", dir);
	snprintf(key, sizeof key, "%s/ca.key", dir);
	if (file_is(cert)) {
		char *text;
		CHECK(file_read(cert, 1 << 16, &text) == 0);
		ca_cert = arena_dup(arena, str_of(text));
		free(text);
		CHECK(file_read(key, 1 << 16, &text) == 0);
		ca_key = arena_dup(arena, str_of(text));
		free(text);
		return;
	}
	struct pair ca = {0};
	CHECK(pair_begin_named(&ca, CERT_CA, "Steward test", NULL, 30) && pair_sign(&ca, ca.key) &&
	      pair_pem(&ca, arena, &ca_cert, &ca_key) == 0);
	pair_free(&ca);
	FILE *f = fopen(cert, "w");
	CHECK(f && fwrite(ca_cert.p, 1, ca_cert.n, f) == ca_cert.n && fclose(f) == 0);
	f = fopen(key, "w");
	CHECK(f && fwrite(ca_key.p, 1, ca_key.n, f) == ca_key.n && fclose(f) == 0);
}

static struct engine_grant writes[] = {{"readWriteAnyDatabase", "admin", ""}};
static struct engine_grant reads_app[] = {{"read", "app", ""}};
static struct engine_grant writes_app[] = {{"readWrite", "app", ""}};
static struct engine_grant one_table[] = {{"read", "app", "solo"}, {"INSERT", "app", "solo"}};
static struct engine_grant all[] = {{"svcAdmin", "admin", ""}};
static struct engine_user users[] = {
        {.name = "writer", .scram = verifier, .grants = writes, .grant_count = 1},
        {.name = "app reader", .scram = verifier, .grants = reads_app, .grant_count = 1},
        {.name = "app\"writer", .scram = verifier, .grants = writes_app, .grant_count = 1},
        {.name = "o'ne", .scram = verifier, .grants = one_table, .grant_count = 2},
        {.name = "boss", .scram = verifier, .grants = all, .grant_count = 1},
};
static struct cidr networks[2];
static struct engine_access access_all = {.users = users, .user_count = 5, .networks = networks, .network_count = 1};
static struct engine_access access_writer = {.users = users, .user_count = 1, .networks = networks, .network_count = 1};

struct wish {
	struct engine_cluster c;
	struct engine_node nodes[12];
};

static struct wish wish_make(const char *id, unsigned electable, unsigned analytics)
{
	struct wish w = {.c = {.version = 15, .quorum = electable > 1, .shards = 1}};
	snprintf(w.c.id, sizeof w.c.id, "%s", id);
	snprintf(w.c.group_id, sizeof w.c.group_id, GROUP);
	snprintf(w.c.name, sizeof w.c.name, "test");
	snprintf(w.c.label, sizeof w.c.label, "ab%.4s", id + 20);
	snprintf(w.c.project_hash, sizeof w.c.project_hash, "x1y2z");
	for (unsigned i = 0; i < electable + analytics; i++) {
		struct engine_node *n = &w.nodes[i];
		snprintf(n->name, sizeof n->name, "%s-shard-00-%02u", w.c.label, i);
		n->kind = i < electable ? NODE_ELECTABLE : NODE_ANALYTICS;
		n->priority = i < electable ? 7 : 0;
		snprintf(n->instance_size, sizeof n->instance_size, "M10");
		snprintf(n->provider, sizeof n->provider, "AWS");
		snprintf(n->region, sizeof n->region, "US_EAST_1");
		n->disk_gb = 10;
	}
	w.c.node_count = electable + analytics;
	return w;
}

static int converge(struct wish *w, const struct engine_access *access)
{
	const char *why = NULL;
	w->c.nodes = w->nodes;
	w->c.ca_cert = arena_z(arena, ca_cert);
	w->c.ca_key = arena_z(arena, ca_key);
	int r = ops->converge(engine, &w->c, access, NULL, arena, &why);
	if (r < 0)
		fprintf(stderr, "converge: %s: %s\n", strerror(-r), why);
	return r;
}

static int apply(const char *id, const struct engine_access *access)
{
	const char *why = NULL;
	int r = ops->apply_access(engine, id, access, &why);
	if (r < 0)
		fprintf(stderr, "apply_access: %s: %s\n", strerror(-r), why);
	return r;
}

static struct cluster_status observe(const char *id)
{
	struct cluster_status s = {0};
	CHECK(ops->observe(engine, id, arena, &s) == 0);
	return s;
}

static const struct node_status *primary_of(const struct cluster_status *s)
{
	for (size_t i = 0; i < s->node_count; i++)
		if (s->nodes[i].primary)
			return &s->nodes[i];
	return NULL;
}

static void engine_begin(void)
{
	struct engine_options o = {.data_dir = dir, .domain = DOMAIN, .real_clock = true, .programs = programs};
	CHECK(ops->start(&o, &engine) == 0);
	if (!engine)
		exit(1);
}

/* --- clients */

static PGconn *client(const struct node_status *n, const char *user, const char *password, const char *database)
{
	char port[16], ca[160];
	snprintf(port, sizeof port, "%u", n->port);
	snprintf(ca, sizeof ca, "%s/ca.crt", dir);
	const char *names[] = {"host",        "hostaddr",        "port", "user", "password", "dbname", "sslmode",
	                       "sslrootcert", "connect_timeout", NULL};
	const char *values[] = {n->host, n->address, port, user, password, database, "verify-full", ca, "3", NULL};
	return PQconnectdbParams(names, values, 0);
}

static bool can_connect(const struct node_status *n, const char *user, const char *password, const char *database)
{
	PGconn *conn = client(n, user, password, database);
	bool can = PQstatus(conn) == CONNECTION_OK;
	PQfinish(conn);
	return can;
}

static bool run(PGconn *conn, const char *sql)
{
	PGresult *r = PQexec(conn, sql);
	bool good = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
	PQclear(r);
	return good;
}

static long number(PGconn *conn, const char *sql)
{
	PGresult *r = PQexec(conn, sql);
	long v = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) ? strtol(PQgetvalue(r, 0, 0), NULL, 10) : -1;
	PQclear(r);
	return v;
}

static bool as(const struct node_status *n, const char *user, const char *database, const char *sql)
{
	PGconn *conn = client(n, user, PASSWORD, database);
	bool good = PQstatus(conn) == CONNECTION_OK && run(conn, sql);
	PQfinish(conn);
	return good;
}

/* --- what runs on this machine for our directory */

static unsigned servers_running(void)
{
	char command[200], text[32] = "";
	snprintf(command, sizeof command, "pgrep -fc -- '-D %s/engine/65f' || true", dir);
	FILE *f = popen(command, "r");
	if (f && !fgets(text, sizeof text, f))
		text[0] = 0;
	if (f)
		pclose(f);
	unsigned n = (unsigned)strtoul(text, NULL, 10);
	return n ? n - 1 : 0; /* the shell that asks */
}

static pid_t pid_of(const char *id, const char *node)
{
	char path[256], line[32] = "";
	snprintf(path, sizeof path, "%s/engine/%s/%s/data/postmaster.pid", dir, id, node);
	FILE *f = fopen(path, "r");
	if (f && !fgets(line, sizeof line, f))
		line[0] = 0;
	if (f)
		fclose(f);
	pid_t pid = (pid_t)strtol(line, NULL, 10);
	CHECK(pid > 1);
	if (pid <= 1)
		exit(1); /* a signal to 0 would be for all of us */
	return pid;
}

static double since_ms(int64_t from_us)
{
	return (double)(clock_mono_us() - from_us) / 1000;
}

static unsigned rounds(void)
{
	const char *z = getenv("ROUNDS");
	return z ? (unsigned)strtoul(z, NULL, 10) : 2;
}

static bool wait_all_running(const char *id, unsigned nodes, int ms)
{
	int64_t began = clock_mono_us();
	while (since_ms(began) < ms) {
		struct cluster_status s = observe(id);
		unsigned running = 0;
		for (size_t i = 0; i < s.node_count; i++)
			running += s.nodes[i].state == NODE_RUNNING;
		const struct node_status *p = primary_of(&s);
		if (running == nodes && p) {
			PGconn *conn = client(p, "boss", PASSWORD, "postgres");
			long streams =
			        number(conn, "select count(*) from pg_stat_replication where state = 'streaming'");
			PQfinish(conn);
			if (streams == (long)nodes - 1)
				return true;
		}
		usleep(20000);
	}
	return false;
}

/* --- parts */

#define ID1 "65f0000000000000000000a1"
#define ID3 "65f0000000000000000000a3"

static void test_single(void)
{
	struct wish w = wish_make(ID1, 1, 0);
	int64_t began = clock_mono_us();
	CHECK(converge(&w, &access_writer) == 0);
	printf("single node: %.0f ms\n", since_ms(began));
	struct cluster_status s = observe(ID1);
	CHECK(s.exists && s.node_count == 1 && s.nodes[0].primary && s.nodes[0].state == NODE_RUNNING);
	CHECK(strncmp(s.nodes[0].version, "15.", 3) == 0);
	CHECK(can_connect(&s.nodes[0], "writer", PASSWORD, "postgres"));
	CHECK(!can_connect(&s.nodes[0], "writer", "wrong", "postgres"));
	CHECK(!can_connect(&s.nodes[0], "steward_engine", PASSWORD, "postgres"));
	CHECK(as(&s.nodes[0], "writer", "postgres", "create table t(a int); insert into t values (1)"));
	/* Stop and start of the service: the server goes on, and is adopted. */
	pid_t pid = pid_of(ID1, w.nodes[0].name);
	ops->stop(engine);
	CHECK(kill(pid, 0) == 0);
	engine_begin();
	s = observe(ID1);
	CHECK(s.node_count == 1 && s.nodes[0].state == NODE_RUNNING && pid_of(ID1, w.nodes[0].name) == pid);
	/* Killed: back by itself. */
	kill(pid, SIGKILL);
	began = clock_mono_us();
	while (!as(&s.nodes[0], "writer", "postgres", "insert into t values (2)") && since_ms(began) < 5000)
		usleep(5000);
	printf("single node killed: writable after %.0f ms\n", since_ms(began));
	CHECK(since_ms(began) < 1000);
	/* Parameters: a good one that needs a restart, a bad one that changes nothing. */
	struct engine_param params[] = {{"max_connections", "77"}, {"work_mem", "6MB"}};
	w.c.params = params;
	w.c.param_count = 2;
	CHECK(converge(&w, &access_writer) == 0);
	PGconn *conn = client(&s.nodes[0], "writer", PASSWORD, "postgres");
	CHECK(number(conn, "show max_connections") == 77 && number(conn, "show work_mem") == 6);
	PQfinish(conn);
	params[1].value = "many";
	CHECK(converge(&w, &access_writer) == -EINVAL);
	params[1].name = "archive_command";
	CHECK(converge(&w, &access_writer) == -EINVAL);
	CHECK(can_connect(&s.nodes[0], "writer", PASSWORD, "postgres"));
	w.c.param_count = 0;
	w.c.paused = true;
	CHECK(converge(&w, &access_writer) == 0 && !can_connect(&s.nodes[0], "writer", PASSWORD, "postgres"));
	usleep(500000);
	CHECK(servers_running() == 0);
	w.c.paused = false;
	CHECK(converge(&w, &access_writer) == 0 && can_connect(&s.nodes[0], "writer", PASSWORD, "postgres"));
	CHECK(ops->destroy(engine, ID1, NULL) == 0 && ops->destroy(engine, ID1, NULL) == 0);
	CHECK(!observe(ID1).exists && servers_running() == 0);
}

static void test_set(void)
{
	struct wish w = wish_make(ID3, 3, 1);
	int64_t began = clock_mono_us();
	CHECK(converge(&w, &access_all) == 0);
	printf("3 + 1 nodes: %.0f ms\n", since_ms(began));
	CHECK(wait_all_running(ID3, 4, 5000));
	struct cluster_status s = observe(ID3);
	const struct node_status *p = primary_of(&s);
	CHECK(p && as(p, "writer", "postgres", "create table t(a int); insert into t values (1)"));
	/* More nodes, then fewer, the primary among those that go. */
	w = wish_make(ID3, 5, 0);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 5, 5000));
	w = wish_make(ID3, 3, 0);
	for (int i = 0; i < 3; i++)
		w.nodes[i].name[strlen(w.nodes[i].name) - 1] = (char)('2' + i);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	s = observe(ID3);
	p = primary_of(&s);
	CHECK(p && as(p, "writer", "postgres", "insert into t values (2)"));
	/* Larger nodes: a rolling restart. */
	for (int i = 0; i < 3; i++)
		snprintf(w.nodes[i].instance_size, sizeof w.nodes[i].instance_size, "M30");
	began = clock_mono_us();
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	printf("rolling restart of 3: %.0f ms\n", since_ms(began));
	s = observe(ID3);
	p = primary_of(&s);
	PGconn *conn = client(p, "writer", PASSWORD, "postgres");
	CHECK(number(conn, "show shared_buffers") == 32 && number(conn, "select count(*) from t") == 2);
	PQfinish(conn);
	for (int i = 0; i < 3; i++)
		snprintf(w.nodes[i].instance_size, sizeof w.nodes[i].instance_size, "M10");
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	const char *why = NULL;
	for (int i = 0; i < 3; i++) {
		began = clock_mono_us();
		CHECK(ops->switchover(engine, ID3, 0, &why) == 0);
		printf("switchover: %.0f ms\n", since_ms(began));
	}
	CHECK(wait_all_running(ID3, 3, 5000));
	w.c.paused = true;
	CHECK(converge(&w, &access_all) == 0);
	w.c.paused = false;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	/* An outage of the primary's region. */
	s = observe(ID3);
	p = primary_of(&s);
	for (int i = 0; i < 3; i++)
		w.nodes[i].outage = p && strcmp(w.nodes[i].name, p->name) == 0;
	CHECK(converge(&w, &access_all) == 0);
	struct cluster_status now = observe(ID3);
	CHECK(primary_of(&now) && strcmp(primary_of(&now)->name, p->name) != 0);
	for (int i = 0; i < 3; i++)
		w.nodes[i].outage = false;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	CHECK(ops->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
}

static void test_access(void)
{
	struct wish w = wish_make(ID1, 1, 0);
	CHECK(converge(&w, &access_all) == 0);
	struct cluster_status s = observe(ID1);
	const struct node_status *n = &s.nodes[0];
	CHECK(as(n, "app\"writer", "app",
	         "create table solo(a int); create table other(a int); insert into other values (1)"));
	CHECK(as(n, "app reader", "app", "select * from other") &&
	      !as(n, "app reader", "app", "insert into other values (2)"));
	CHECK(!as(n, "app reader", "app", "create table mine(a int)"));
	CHECK(!as(n, "o'ne", "app", "select * from other"));
	CHECK(apply(ID1, &access_all) == 0);
	CHECK(as(n, "o'ne", "app", "select * from solo; insert into solo values (1)") &&
	      !as(n, "o'ne", "app", "select * from other") && !as(n, "o'ne", "app", "delete from solo"));
	CHECK(as(n, "writer", "app", "insert into other values (3)") && as(n, "boss", "app", "truncate other"));
	CHECK(as(n, "writer", "app", "create table late(a int)") && as(n, "app reader", "app", "select * from late"));
	CHECK(as(n, "writer", "postgres", "create database made") && as(n, "writer", "made", "create table x(a int)"));
	CHECK(apply(ID1, &access_all) == 0 && as(n, "boss", "made", "insert into x values (1)"));
	CHECK(!as(n, "boss", "postgres", "create role evil superuser") &&
	      !as(n, "boss", "postgres", "copy (select 1) to program 'true'") &&
	      !as(n, "boss", "postgres", "select pg_read_file('/etc/passwd')"));
	/* Networks: a session from an address taken off the list ends, and no new one begins. */
	PGconn *conn = client(n, "writer", PASSWORD, "postgres");
	CHECK(run(conn, "select 1"));
	struct engine_access other = access_all;
	CHECK(cidr_parse(STR("192.0.2.0/24"), &networks[1]));
	other.networks = &networks[1];
	int64_t began = clock_mono_us();
	CHECK(apply(ID1, &other) == 0);
	printf("access applied: %.0f ms\n", since_ms(began));
	CHECK(!run(conn, "select 1") && !can_connect(n, "writer", PASSWORD, "postgres"));
	PQfinish(conn);
	CHECK(apply(ID1, &access_all) == 0 && can_connect(n, "writer", PASSWORD, "postgres"));
	/* A user that is gone: its session, its login; not its tables. */
	struct engine_access fewer = access_all;
	fewer.users = users + 1;
	fewer.user_count = 4;
	conn = client(n, "writer", PASSWORD, "postgres");
	CHECK(run(conn, "select 1") && apply(ID1, &fewer) == 0 && !run(conn, "select 1"));
	PQfinish(conn);
	CHECK(!can_connect(n, "writer", PASSWORD, "postgres") && as(n, "boss", "made", "select * from x"));
	/* The log tells of the refusals. */
	int fd = -1;
	struct engine_log log = {ID1, w.nodes[0].name, "postgres", 0, INT64_MAX};
	CHECK(ops->log_open(engine, &log, &fd) == 0);
	FILE *f = fdopen(fd, "r");
	char line[8192];
	unsigned lines = 0, refused = 0;
	while (f && fgets(line, sizeof line, f)) {
		lines++;
		refused += strstr(line, "no pg_hba.conf entry") != NULL;
	}
	CHECK(f && fclose(f) == 0 && lines > 10 && refused > 0);
	log.to_ms = 1000;
	CHECK(ops->log_open(engine, &log, &fd) == 0 && read(fd, line, 1) == 0);
	close(fd);
	CHECK(ops->destroy(engine, ID1, NULL) == 0 && servers_running() == 0);
}

/* --- faults under load */

#define NUMBERS (1 << 18)

struct load {
	pthread_t thread;
	atomic_bool stop;
	atomic_long acked;            /* how many were acknowledged */
	unsigned char known[NUMBERS]; /* which */
	_Atomic int64_t last_us, gap_us;
	struct cluster_status s;
};

/* Writes numbers one after the other, wherever the primary is. */
static void *load_run(void *arg)
{
	struct load *l = arg;
	long next = 1;
	atomic_store(&l->last_us, clock_mono_us());
	while (!atomic_load(&l->stop)) {
		for (size_t i = 0; i < l->s.node_count && !atomic_load(&l->stop); i++) {
			PGconn *conn = client(&l->s.nodes[i], "writer", PASSWORD, "postgres");
			bool good =
			        PQstatus(conn) == CONNECTION_OK && number(conn, "select pg_is_in_recovery()::int") == 0;
			while (good && !atomic_load(&l->stop)) {
				char sql[80];
				snprintf(sql, sizeof sql, "insert into load values (%ld)", next);
				good = run(conn, sql);
				if (!good)
					break;
				int64_t now = clock_mono_us(), gap = now - atomic_load(&l->last_us);
				if (gap > atomic_load(&l->gap_us))
					atomic_store(&l->gap_us, gap);
				atomic_store(&l->last_us, now);
				atomic_fetch_add(&l->acked, 1);
				l->known[next++ % NUMBERS] = 1;
			}
			PQfinish(conn);
			next += !good; /* whether that one was written is not known */
		}
		usleep(2000);
	}
	return NULL;
}

/* How many nodes take writes at this moment. */
static unsigned writable(const struct cluster_status *s)
{
	unsigned n = 0;
	for (size_t i = 0; i < s->node_count; i++) {
		PGconn *conn = client(&s->nodes[i], "boss", PASSWORD, "postgres");
		n += PQstatus(conn) == CONNECTION_OK && number(conn, "select pg_is_in_recovery()::int") == 0;
		PQfinish(conn);
	}
	return n;
}

/* How many acknowledged numbers are not in the table. */
static long lost(const struct node_status *p, const struct load *l)
{
	PGconn *conn = client(p, "writer", PASSWORD, "postgres");
	PGresult *r = PQexec(conn, "select n from load");
	unsigned char *there = calloc(NUMBERS, 1);
	for (int i = 0; there && i < PQntuples(r); i++)
		there[strtol(PQgetvalue(r, i, 0), NULL, 10) % NUMBERS] = 1;
	long missing = PQresultStatus(r) == PGRES_TUPLES_OK ? 0 : -1;
	for (long i = 0; there && i < NUMBERS; i++)
		missing += l->known[i] && !there[i];
	free(there);
	PQclear(r);
	PQfinish(conn);
	return missing;
}

static void fault_round(const char *what, struct wish *w, int signal_number, bool planned)
{
	static struct load l;
	memset(&l, 0, sizeof l);
	l.s = observe(ID3);
	const struct node_status *p = primary_of(&l.s);
	char old[64];
	CHECK(p != NULL);
	if (!p)
		return;
	snprintf(old, sizeof old, "%s", p->name);
	CHECK(as(p, "writer", "postgres", "drop table if exists load; create table load(n bigint primary key)"));
	pthread_create(&l.thread, NULL, load_run, &l);
	usleep(200000);
	atomic_store(&l.gap_us, 0);
	long before = atomic_load(&l.acked);
	int64_t began = clock_mono_us();
	const char *why = NULL;
	if (planned)
		CHECK(ops->switchover(engine, ID3, 0, &why) == 0);
	else
		kill(pid_of(ID3, old), signal_number);
	unsigned most = 0;
	while (since_ms(began) < 1500) {
		unsigned n = writable(&l.s);
		most = n > most ? n : most;
	}
	atomic_store(&l.stop, true);
	pthread_join(l.thread, NULL);
	long acked = atomic_load(&l.acked);
	CHECK(acked > before && most <= 1);
	CHECK(wait_all_running(ID3, 3, 20000));
	struct cluster_status s = observe(ID3);
	p = primary_of(&s);
	long missing = p ? lost(p, &l) : -1;
	printf("%s: %s -> %s, longest gap %.0f ms, %ld acknowledged, %ld lost, all streaming after %.0f ms\n", what,
	       old + strlen(old) - 2, p ? p->name + strlen(p->name) - 2 : "?", (double)atomic_load(&l.gap_us) / 1000,
	       acked, missing, since_ms(began));
	CHECK(missing == 0);
	CHECK(p && strcmp(p->name, old) != 0);
	if (signal_number == SIGKILL || planned)
		CHECK(atomic_load(&l.gap_us) < 1000000);
}

static void test_faults(void)
{
	struct wish w = wish_make(ID3, 3, 0);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 5000));
	for (unsigned i = 0; i < rounds(); i++) {
		fault_round("kill", &w, SIGKILL, false);
		fault_round("stop", &w, SIGSTOP, false);
		fault_round("switchover", &w, 0, true);
	}
	CHECK(ops->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
}

/* --- the service dies in the middle of a converge */

static void test_crash(void)
{
	for (unsigned i = 0; i < rounds() * 3; i++) {
		ops->stop(engine);
		pid_t child = fork();
		if (child == 0) {
			execl(self, self, "converge", dir, ID3, i % 2 ? "5" : "3", (char *)NULL);
			_exit(127);
		}
		usleep(50000 + 110000 * (i % 7));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		engine_begin();
		struct wish w = wish_make(ID3, i % 2 ? 5 : 3, 0);
		CHECK(converge(&w, &access_all) == 0);
		CHECK(wait_all_running(ID3, i % 2 ? 5 : 3, 10000));
		if (i % 2 == 1)
			CHECK(ops->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
	}
	CHECK(ops->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
}

static int child_converge(char **argv, unsigned version)
{
	static char root[96];
	snprintf(dir, sizeof dir, "%s", argv[2]);
	snprintf(root, sizeof root, "%s/programs", dir);
	programs = version > 15 ? root : NULL;
	authority_make();
	engine_begin();
	struct wish w = wish_make(argv[3], (unsigned)strtoul(argv[4], NULL, 10), 0);
	w.c.version = version;
	int r = converge(&w, version > 15 ? &access_writer : &access_all);
	ops->stop(engine);
	return r < 0;
}

/* --- a newer version: pg_upgrade takes the same one for it, so one installation stands for both */

#define ID4 "65f0000000000000000000a4"

static void programs_make(void)
{
	static char root[96];
	char command[500];
	snprintf(root, sizeof root, "%s/programs", dir);
	snprintf(command, sizeof command,
	         "chmod 711 %s; mkdir %s && ln -s /usr/lib/postgresql/15 %s/15 && ln -s /usr/lib/postgresql/15 %s/16",
	         dir, root, root, root);
	CHECK(system(command) == 0);
	programs = root;
}

/* Cut short at any moment, it goes on, or with the old version where that is wanted again. */
static void upgrade_crash(unsigned round)
{
	struct wish w = wish_make(ID4, 3, 0);
	CHECK(converge(&w, &access_writer) == 0);
	struct cluster_status s = observe(ID4);
	CHECK(as(primary_of(&s), "writer", "postgres", "create table t(a int); insert into t values (1)"));
	ops->stop(engine);
	pid_t child = fork();
	if (child == 0) {
		execl(self, self, "upgrade", dir, ID4, "3", (char *)NULL);
		_exit(127);
	}
	usleep(700000 + 800000 * (round % 6));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	engine_begin();
	w.c.version = round % 2 ? 15 : 16;
	int r = converge(&w, &access_writer);
	if (r == -EINVAL) /* it was done already */
		w.c.version = 16;
	CHECK(r == 0 || converge(&w, &access_writer) == 0);
	s = observe(ID4);
	const struct node_status *p = primary_of(&s);
	printf("upgrade cut short, then version %u: %s\n", w.c.version, p ? p->version : "none");
	CHECK(p && strtoul(p->version, NULL, 10) == w.c.version);
	CHECK(p && as(p, "writer", "postgres", "insert into t select max(a) + 1 from t"));
	CHECK(ops->destroy(engine, ID4, NULL) == 0 && servers_running() == 0);
}

static void test_upgrade(void)
{
	struct wish w = wish_make(ID4, 3, 1);
	CHECK(converge(&w, &access_writer) == 0);
	w.c.version = 99;
	CHECK(converge(&w, &access_writer) == -ENOENT);
	struct cluster_status s = observe(ID4);
	CHECK(as(primary_of(&s), "writer", "postgres",
	         "create table t(a int); insert into t select generate_series(1, 1000)"));
	ops->stop(engine);
	programs_make();
	engine_begin();
	w.c.version = 16;
	int64_t began = clock_mono_us();
	CHECK(converge(&w, &access_writer) == 0);
	printf("upgrade of 3 + 1 nodes: %.0f ms\n", since_ms(began));
	s = observe(ID4);
	const struct node_status *p = primary_of(&s);
	CHECK(s.node_count == 4 && p && strncmp(p->version, "16.", 3) == 0);
	PGconn *conn = client(p, "writer", PASSWORD, "postgres");
	CHECK(number(conn, "select count(*) from t") == 1000);
	CHECK(number(conn, "select count(*) from pg_stat_replication") == 3);
	PQfinish(conn);
	CHECK(p && as(p, "writer", "postgres", "insert into t values (0)"));
	w.c.version = 15;
	CHECK(converge(&w, &access_writer) == -EINVAL);
	CHECK(ops->destroy(engine, ID4, NULL) == 0);
	for (unsigned i = 0; i < rounds(); i++)
		upgrade_crash(i);
}

/* --- shards */

#define ID5 "65f0000000000000000000a5"

static struct wish wish_sharded(unsigned shards)
{
	struct wish w = wish_make(ID5, shards + 1, 0);
	for (unsigned i = 0; i <= shards; i++) {
		struct engine_node *n = &w.nodes[i];
		n->kind = i ? NODE_ELECTABLE : NODE_ROUTER;
		n->shard = i ? i - 1 : 0;
		n->priority = i ? 7 : 0;
		snprintf(n->name, sizeof n->name, i ? "%s-shard-%02u-00" : "%s-router-%02u", w.c.label, i ? i - 1 : 0);
	}
	w.c.quorum = false;
	w.c.shards = shards;
	return w;
}

static const struct node_status *router_in(const struct cluster_status *s)
{
	for (size_t i = 0; i < s->node_count; i++)
		if (s->nodes[i].kind == NODE_ROUTER)
			return &s->nodes[i];
	return NULL;
}

static long spread_rows(void)
{
	struct cluster_status s = observe(ID5);
	PGconn *conn = client(router_in(&s), "writer", PASSWORD, "postgres");
	long rows = number(conn, "select count(*) from spread");
	PQfinish(conn);
	return rows;
}

/* A shard that holds data stays, also when the router cannot be asked as things are. */
static void test_shards(void)
{
	struct wish w = wish_sharded(2), fewer = wish_sharded(1);
	CHECK(converge(&w, &access_writer) == 0);
	struct cluster_status s = observe(ID5);
	CHECK(as(router_in(&s), "writer", "postgres",
	         "create table spread(a int); select steward.shard_table('spread', 'a');"
	         "insert into spread select generate_series(1, 100)"));
	CHECK(converge(&fewer, &access_writer) == -EBUSY && spread_rows() == 100);
	kill(pid_of(ID5, w.nodes[0].name), SIGKILL);
	CHECK(converge(&fewer, &access_writer) == -EBUSY);
	w.c.paused = fewer.c.paused = true;
	CHECK(converge(&w, &access_writer) == 0);
	CHECK(converge(&fewer, &access_writer) == -EBUSY && servers_running() == 0);
	fewer.c.paused = false;
	CHECK(converge(&fewer, &access_writer) == -EBUSY && servers_running() == 0);
	/* Nothing is known while the router is out. */
	w.c.paused = false;
	w.nodes[0].outage = fewer.nodes[0].outage = true;
	(void)!converge(&w, &access_writer); /* nor can access be applied to it */
	CHECK(converge(&fewer, &access_writer) == -EBUSY);
	w.nodes[0].outage = fewer.nodes[0].outage = false;
	CHECK(converge(&fewer, &access_writer) == -EBUSY);
	CHECK(converge(&w, &access_writer) == 0 && spread_rows() == 100);
	/* Without data it goes, from a paused cluster too. */
	s = observe(ID5);
	CHECK(as(router_in(&s), "writer", "postgres", "drop table spread"));
	w.c.paused = true;
	CHECK(converge(&w, &access_writer) == 0 && converge(&fewer, &access_writer) == 0);
	CHECK(observe(ID5).node_count == 2 && servers_running() == 2);
	CHECK(ops->destroy(engine, ID5, NULL) == 0 && servers_running() == 0);
}

/* --- removed while it is made, and grown while its primary dies */

static void *converge_thread(void *arg)
{
	(void)!converge(arg, &access_writer);
	return NULL;
}

static void *destroy_thread(void *arg)
{
	*(int *)arg = ops->destroy(engine, ID3, NULL);
	return NULL;
}

static void test_both(void)
{
	pthread_t threads[3];
	for (unsigned i = 0; i < rounds() * 2; i++) {
		struct wish w = wish_make(ID3, 5, 0);
		pthread_create(&threads[0], NULL, converge_thread, &w);
		usleep(20000 + 120000 * (i % 4));
		int results[2] = {-1, -1};
		pthread_create(&threads[1], NULL, destroy_thread, &results[0]);
		pthread_create(&threads[2], NULL, destroy_thread, &results[1]);
		for (int k = 0; k < 3; k++)
			pthread_join(threads[k], NULL);
		CHECK(results[0] == 0 && results[1] == 0);
		CHECK(ops->destroy(engine, ID3, NULL) == 0 && !observe(ID3).exists && servers_running() == 0);
	}
	for (unsigned i = 0; i < rounds(); i++) {
		struct wish w = wish_make(ID3, 1, 0), more = wish_make(ID3, 3, 0);
		CHECK(converge(&w, &access_all) == 0);
		struct cluster_status s = observe(ID3);
		CHECK(as(primary_of(&s), "writer", "postgres",
		         "create table t as select generate_series(1, 300000) a"));
		pid_t pid = pid_of(ID3, w.nodes[0].name);
		pthread_create(&threads[0], NULL, converge_thread, &more);
		usleep(100000 + 60000 * (i % 5));
		kill(pid, SIGKILL);
		pthread_join(threads[0], NULL);
		int r = -1;
		for (int k = 0; k < 5 && r < 0; k++) /* as the job would */
			r = converge(&more, &access_all);
		CHECK(r == 0 && wait_all_running(ID3, 3, 20000));
		s = observe(ID3);
		for (size_t k = 0; k < s.node_count; k++) {
			PGconn *conn = client(&s.nodes[k], "boss", PASSWORD, "postgres");
			CHECK(number(conn, "select count(*) from t") == 300000);
			PQfinish(conn);
		}
		CHECK(ops->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
	}
}

/* --- logs do not grow for ever */

static void test_retention(void)
{
	char path[160], command[600];
	snprintf(path, sizeof path, "%s/logs", dir);
	snprintf(command, sizeof command,
	         "mkdir %s && cd %s && for i in 1 2 3 4 5 6 7 8; do head -c 1000 /dev/zero > "
	         "postgresql-2026010$i-000000.json; "
	         "done; touch other start.log && touch -d '40 days ago' postgresql-20260104-000000.json",
	         path, path);
	CHECK(system(command) == 0);
	log_tidy(path, 1 << 20);
	snprintf(command, sizeof command,
	         "cd %s && test $(ls | wc -l) = 9 && test ! -e postgresql-20260104-000000.json", path);
	CHECK(system(command) == 0);
	log_tidy(path, 4500);
	snprintf(command, sizeof command,
	         "cd %s && test $(ls | wc -l) = 6 && test -e postgresql-20260105-000000.json && test -e other", path);
	CHECK(system(command) == 0);
	log_tidy(path, 0);
	snprintf(command, sizeof command, "cd %s && test $(ls | wc -l) = 5 && rm -r %s", path, path);
	CHECK(system(command) == 0);
}

/* --- figures */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void bench(void)
{
	double create[32], bare[32];
	unsigned n = rounds() > 32 ? 32 : rounds();
	char command[1200];
	snprintf(command, sizeof command,
	         "B=/usr/lib/postgresql/15/bin; D=%s/bare; mkdir $D; chown steward $D; setpriv --reuid=steward "
	         "--regid=steward --clear-groups sh -c 'cd /; '\"$B/initdb -D $D/a -U x --wal-segsize=4 >/dev/null; "
	         "$B/pg_ctl -w -D "
	         "$D/a -o \\\"-c listen_addresses= -k $D -p 1\\\" start >/dev/null; for i in 2 3; do $B/pg_basebackup "
	         "-c fast "
	         "-R -h $D -p 1 -U x -D $D/\\$i; $B/pg_ctl -w -D $D/\\$i -o \\\"-c listen_addresses= -k $D -p \\$i\\\" "
	         "start "
	         ">/dev/null; done\"",
	         dir);
	for (unsigned i = 0; i < n; i++) {
		struct wish w = wish_make(ID3, 3, 0);
		usleep(1500000); /* the pool fills in the background */
		int64_t began = clock_mono_us();
		CHECK(converge(&w, &access_writer) == 0);
		struct cluster_status s = observe(ID3);
		CHECK(can_connect(primary_of(&s), "writer", PASSWORD, "postgres"));
		create[i] = since_ms(began);
		CHECK(ops->destroy(engine, ID3, NULL) == 0);
		usleep(1500000);
		began = clock_mono_us();
		CHECK(system(command) == 0);
		bare[i] = since_ms(began);
		char stop[300];
		snprintf(stop, sizeof stop,
		         "for i in 2 3 a; do kill -QUIT $(head -1 %s/bare/$i/postmaster.pid); done; sleep 0.3; rm -rf "
		         "%s/bare",
		         dir, dir);
		CHECK(system(stop) == 0);
	}
	qsort(create, n, sizeof *create, compare);
	qsort(bare, n, sizeof *bare, compare);
	printf("3 nodes, created and connected to: median %.0f ms (%.0f to %.0f); bare initdb, start, basebackup: %.0f "
	       "ms\n",
	       create[n / 2], create[0], create[n - 1], bare[n / 2]);
}

static void adopt(void)
{
	char id[48];
	int64_t began = clock_mono_us();
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "65f00000000000000000b0%02d", i);
		struct wish w = wish_make(id, 1, 0);
		CHECK(converge(&w, &access_writer) == 0);
	}
	printf("20 single nodes made in %.0f ms\n", since_ms(began));
	ops->stop(engine);
	began = clock_mono_us();
	engine_begin();
	printf("adopted in %.1f ms\n", since_ms(began));
	unsigned running = 0;
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "65f00000000000000000b0%02d", i);
		struct cluster_status s = observe(id);
		running += s.node_count == 1 && s.nodes[0].state == NODE_RUNNING;
		CHECK(ops->destroy(engine, id, NULL) == 0);
	}
	CHECK(running == 20 && servers_running() == 0);
}

static bool part(int argc, char **argv, const char *name, bool standard)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 1 && standard;
}

int main(int argc, char **argv)
{
	self = argv[0];
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_setup(getenv("DEBUG") ? LOG_DEBUG : LOG_ERROR, false);
	arena = arena_new();
	verifier_make();
	if (!cidr_parse(STR("127.0.0.0/8"), &networks[0]))
		return 1;
	if (argc == 5 && (strcmp(argv[1], "converge") == 0 || strcmp(argv[1], "upgrade") == 0))
		return child_converge(argv, strcmp(argv[1], "upgrade") == 0 ? 16 : 15);
	snprintf(dir, sizeof dir, "/tmp/steward-pg-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	authority_make();
	engine_begin();
	if (part(argc, argv, "single", true))
		test_single();
	if (part(argc, argv, "set", true))
		test_set();
	if (part(argc, argv, "access", true))
		test_access();
	if (part(argc, argv, "faults", true))
		test_faults();
	if (part(argc, argv, "crash", true))
		test_crash();
	if (part(argc, argv, "retention", true))
		test_retention();
	if (part(argc, argv, "shards", true))
		test_shards();
	if (part(argc, argv, "both", true))
		test_both();
	if (part(argc, argv, "upgrade", true))
		test_upgrade();
	if (part(argc, argv, "bench", false))
		bench();
	if (part(argc, argv, "adopt", false))
		adopt();
	ops->stop(engine);
	CHECK(servers_running() == 0);
	char command[100];
	snprintf(command, sizeof command, "rm -rf %s", dir);
	CHECK(system(command) == 0);
	arena_free(arena);
	return CHECK_DONE();
}
