/* What all parts of the PostgreSQL engine's driver use: one engine in one temporary directory, clusters asked of it,
 * and clients that connect over TLS as users would. */
#include "harness.h"

#include "base/certs.h"
#include "base/clock.h"
#include "base/data_key.h"
#include "base/log.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/postgres.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define DOMAIN "db.example"

const struct engine_ops *const ops = &engine_postgres;
struct engine *engine;
struct arena *arena;
char dir[64];

static char verifier[256], own_programs[96];
static struct str ca_cert, ca_key;
static const char *self, *programs;
static unsigned passed, failed;
static struct repositories *repositories;
uint64_t spool_bytes;
_Atomic int key_answer = -ENOENT;

/* The same key for every project. */
static int key_get(void *ctx, struct str group, struct str id, struct data_key *ret_key, char ret_why[DATA_KEY_WHY])
{
	static const char name[] = "65f00000000000000000ee01";
	(void)ctx;
	(void)group;
	snprintf(ret_why, DATA_KEY_WHY, "the test says so");
	if (key_answer < 0 || (id.n && !str_is(id, name)))
		return key_answer < 0 ? key_answer : -ENOENT;
	data_key_make(ret_key);
	memcpy(ret_key->id, name, sizeof name);
	memset(ret_key->bytes, 'k', DATA_KEY_BYTES);
	return 0;
}

static const struct data_keys data_keys = {.get = key_get};

void check(bool good, const char *file, int line, const char *condition)
{
	if (good) {
		passed++;
		return;
	}
	failed++;
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
}

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
	if (pg_file_is(cert)) {
		char *text;
		CHECK(pg_file_read(cert, 1 << 16, &text) == 0);
		ca_cert = arena_dup(arena, str_of(text));
		free(text);
		CHECK(pg_file_read(key, 1 << 16, &text) == 0);
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
struct engine_user users[] = {
        {.name = "writer", .scram = verifier, .grants = writes, .grant_count = 1},
        {.name = "app reader", .scram = verifier, .grants = reads_app, .grant_count = 1},
        {.name = "app\"writer", .scram = verifier, .grants = writes_app, .grant_count = 1},
        {.name = "o'ne", .scram = verifier, .grants = one_table, .grant_count = 2},
        {.name = "boss", .scram = verifier, .grants = all, .grant_count = 1},
};
struct cidr networks[2];
struct engine_access access_all = {.users = users, .user_count = 5, .networks = networks, .network_count = 1};
struct engine_access access_writer = {.users = users, .user_count = 1, .networks = networks, .network_count = 1};

struct wish wish_make(const char *id, unsigned electable, unsigned analytics)
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

void wish_complete(struct wish *w)
{
	w->c.nodes = w->nodes;
	w->c.ca_cert = arena_z(arena, ca_cert);
	w->c.ca_key = arena_z(arena, ca_key);
}

int converge(struct wish *w, const struct engine_access *access)
{
	const char *why = NULL;
	wish_complete(w);
	int r = ops->core->converge(engine, &w->c, access, NULL, arena, &why);
	if (r < 0)
		fprintf(stderr, "converge: %s: %s\n", strerror(-r), why);
	return r;
}

int apply(const char *id, const struct engine_access *access)
{
	const char *why = NULL;
	int r = ops->access->apply(engine, id, access, &why);
	if (r < 0)
		fprintf(stderr, "apply_access: %s: %s\n", strerror(-r), why);
	return r;
}

struct cluster_status observe(const char *id)
{
	struct cluster_status s = {0};
	CHECK(ops->core->observe(engine, id, arena, &s) == 0);
	return s;
}

const struct node_status *primary_of(const struct cluster_status *s)
{
	for (size_t i = 0; i < s->node_count; i++)
		if (s->nodes[i].primary)
			return &s->nodes[i];
	return NULL;
}

/* --- the engine */

/* Connections come about, and nobody ever answers. */
static unsigned hanging_listen(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1000) == 0 &&
	      getsockname(fd, (struct sockaddr *)&at, &n) == 0);
	return ntohs(at.sin_port);
}

/* The same one for every engine of this process. */
static void repositories_make(void)
{
	char url[96], copies[128], endpoint[64];
	snprintf(url, sizeof url, "%s/backups", dir);
	snprintf(copies, sizeof copies, REGION_COPIES "=%s/copies", dir);
	snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", hanging_listen());
	const char *const regions[] = {copies, REGION_HANGING "=s3://bucket/hanging"};
	struct repositories_options o = {
	        .fallback = url,
	        .regions = regions,
	        .region_count = 2,
	        .s3 = {.endpoint = endpoint, .key_id = "id", .secret = "secret", .stall_seconds = 20},
	        .key = {1, 2, 3},
	        .keys = &data_keys,
	        .keys_us = 1};
	CHECK(repositories_open(&o, &repositories) == 0);
}

void engine_begin(void)
{
	if (!repositories)
		repositories_make();
	struct engine_options o = {.data_dir = dir,
	                           .domain = DOMAIN,
	                           .real_clock = true,
	                           .programs = programs,
	                           .repositories = repositories,
	                           .keys = &data_keys,
	                           .spool_bytes = spool_bytes};
	CHECK(ops->core->start(&o, &engine) == 0);
	if (!engine)
		exit(1);
}

void engine_restart(void)
{
	ops->core->stop(engine);
	engine_begin();
}

void programs_make(const char *commands)
{
	char command[800];
	snprintf(own_programs, sizeof own_programs, "%s/programs", dir);
	snprintf(command, sizeof command, "chmod 711 %s; rm -rf %s; mkdir %s; cd %s; %s", dir, own_programs,
	         own_programs, own_programs, commands ? commands : "rmdir $PWD");
	CHECK(system(command) == 0);
	programs = commands ? own_programs : NULL;
	engine_restart();
}

static void child_crash(struct wish *w, const char *snapshot, unsigned after_us)
{
	char nodes[16], version[16];
	snprintf(nodes, sizeof nodes, "%zu", w->c.node_count);
	snprintf(version, sizeof version, "%u", w->c.version);
	ops->core->stop(engine);
	pid_t child = fork();
	if (child == 0) {
		execl(self, self, "converge", dir, w->c.id, nodes, version, snapshot, w->c.backup.incarnation,
		      (char *)NULL);
		_exit(127);
	}
	usleep(after_us);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	engine_begin();
}

void service_crash(struct wish *w, unsigned after_us)
{
	child_crash(w, "", after_us);
}

void service_crash_restoring(struct wish *w, const char *snapshot, unsigned after_us)
{
	child_crash(w, snapshot, after_us);
}

struct engine_source snapshot_source(const struct wish *w, const char *snapshot)
{
	struct engine_source s = {.region = "US_EAST_1"};
	snprintf(s.group_id, sizeof s.group_id, "%s", w->c.group_id);
	snprintf(s.cluster_id, sizeof s.cluster_id, "%s", w->c.id);
	snprintf(s.incarnation, sizeof s.incarnation, "%s", w->c.backup.incarnation);
	snprintf(s.snapshot_id, sizeof s.snapshot_id, "%s", snapshot);
	return s;
}

static int child_restore(struct wish *w, const char *snapshot)
{
	const char *why = NULL;
	struct engine_source from = snapshot_source(w, snapshot);
	struct engine_point point = {.kind = POINT_SNAPSHOT};
	struct engine_snapshot taken;
	long long ms;
	char incarnation[25], shot[25];
	if (sscanf(snapshot, "at:%lld:%24[^:]:%24s", &ms, incarnation, shot) == 3) {
		from = snapshot_source(w, shot);
		snprintf(from.incarnation, sizeof from.incarnation, "%s", incarnation);
		point = (struct engine_point){.kind = POINT_TIME, .time_ms = ms};
		w->c.backup.archive = true;
	}
	wish_complete(w);
	if (strncmp(snapshot, "take:", 5) == 0) {
		from = snapshot_source(w, snapshot + 5);
		return ops->backup->snapshot(engine, &from, NULL, arena, &taken, &why);
	}
	return ops->backup->restore(engine, &from, &point, &w->c, &access_all, NULL, NULL, arena, &why);
}

/* The service that is killed: converge DIR ID NODES VERSION SNAPSHOT INCARNATION. */
static int child_main(char **argv)
{
	snprintf(dir, sizeof dir, "%s", argv[2]);
	snprintf(own_programs, sizeof own_programs, "%s/programs", dir);
	programs = pg_file_is(own_programs) ? own_programs : NULL;
	authority_make();
	key_answer = getenv("ENCRYPTED") ? 0 : -ENOENT;
	engine_begin();
	struct wish w = wish_make(argv[3], (unsigned)strtoul(argv[4], NULL, 10), 0);
	w.c.version = (unsigned)strtoul(argv[5], NULL, 10);
	const char *incarnation = getenv("INCARNATION"); /* of one whose log is archived */
	w.c.backup.archive = incarnation != NULL;
	w.c.encrypted = getenv("ENCRYPTED") != NULL;
	snprintf(w.c.backup.incarnation, sizeof w.c.backup.incarnation, "%s", incarnation ? incarnation : argv[7]);
	snprintf(w.c.backup.region, sizeof w.c.backup.region, "US_EAST_1");
	int r = *argv[6] ? child_restore(&w, argv[6]) : converge(&w, &access_all);
	ops->core->stop(engine);
	return r < 0;
}

/* --- clients */

PGconn *client(const struct node_status *n, const char *user, const char *password, const char *database)
{
	char port[16], ca[160];
	snprintf(port, sizeof port, "%u", n->port);
	snprintf(ca, sizeof ca, "%s/ca.crt", dir);
	const char *names[] = {"host",        "hostaddr",        "port", "user", "password", "dbname", "sslmode",
	                       "sslrootcert", "connect_timeout", NULL};
	const char *values[] = {n->host, n->address, port, user, password, database, "verify-full", ca, "3", NULL};
	return PQconnectdbParams(names, values, 0);
}

bool can_connect(const struct node_status *n, const char *user, const char *password, const char *database)
{
	PGconn *conn = client(n, user, password, database);
	bool can = PQstatus(conn) == CONNECTION_OK;
	PQfinish(conn);
	return can;
}

bool run(PGconn *conn, const char *sql)
{
	PGresult *r = PQexec(conn, sql);
	bool good = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
	if (!good && getenv("DEBUG"))
		fprintf(stderr, "%.60s: %s", sql, PQerrorMessage(conn));
	PQclear(r);
	return good;
}

long number(PGconn *conn, const char *sql)
{
	PGresult *r = PQexec(conn, sql);
	long v = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) ? strtol(PQgetvalue(r, 0, 0), NULL, 10) : -1;
	PQclear(r);
	return v;
}

bool as(const struct node_status *n, const char *user, const char *database, const char *sql)
{
	PGconn *conn = client(n, user, PASSWORD, database);
	bool good = PQstatus(conn) == CONNECTION_OK && run(conn, sql);
	PQfinish(conn);
	return good;
}

/* --- what runs on this machine for our directory */

unsigned servers_running(void)
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

pid_t pid_of(const char *id, const char *node)
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

double since_ms(int64_t from_us)
{
	return (double)(clock_mono_us() - from_us) / 1000;
}

unsigned rounds(void)
{
	const char *z = getenv("ROUNDS");
	return z ? (unsigned)strtoul(z, NULL, 10) : 2;
}

bool wait_all_running(const char *id, unsigned nodes, int ms)
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

/* --- from beginning to end */

int harness_begin(int argc, char **argv)
{
	self = argv[0];
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_setup(getenv("DEBUG") ? LOG_DEBUG : LOG_ERROR, false);
	arena = arena_new();
	verifier_make();
	if (!cidr_parse(STR("127.0.0.0/8"), &networks[0]))
		return 1;
	if (argc == 8 && strcmp(argv[1], "converge") == 0)
		exit(child_main(argv));
	bool again = argc > 2 && strcmp(argv[1], "at") == 0;
	snprintf(dir, sizeof dir, "%s", again ? argv[2] : "/tmp/steward-pg-XXXXXX");
	if (!again && !mkdtemp(dir))
		return 1;
	authority_make();
	engine_begin();
	return 0;
}

int harness_end(void)
{
	char command[100];
	ops->core->stop(engine);
	CHECK(servers_running() == 0);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	CHECK(system(command) == 0);
	arena_free(arena);
	repositories_close(repositories);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
