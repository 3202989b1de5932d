/* `steward connect`: from a cluster's name to an SQL session. It creates what a login needs and a newcomer does not
 * know: a temporary database user with a random password and the caller's rights, and an access list entry for the
 * address that the databases will see. Then it waits until a login works, and starts psql. When psql ends, the user is
 * deleted; if that fails, the user expires by itself.
 *
 * Nothing here gives a right that the caller does not have: the service refuses to create the user or the entry for a
 * caller without the role, and the database role follows from the caller's data role as the service reports it. */
#include "cli/client/connect.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/ip.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/client/command.h"
#include "cli/client/psql.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(member) offsetof(struct connect_arguments, member)

const struct option_row connect_options[] = {
        {"command", 'c', OPTION_TEXTS, AT(commands), NULL, "SQL",
         "Run this and come back, instead of a session. May be given several times.", .flag_only = true},
        {"database", 0, OPTION_TEXT, AT(database), NULL, "NAME", "Database; otherwise postgres.", .flag_only = true},
        {"read-only", 0, OPTION_SWITCH, AT(read_only), NULL, NULL, "With a user that can only read.",
         .flag_only = true},
        {"user", 0, OPTION_TEXT, AT(user), NULL, "NAME",
         "An existing database user instead of a new one; psql asks for its password.", .flag_only = true},
        {"hours", 0, OPTION_NUMBER, AT(hours), "1", "N", "How long the user and the address are good for.", NULL, 1,
         168, true},
        {"federation", 0, OPTION_SWITCH, AT(federation), NULL, NULL,
         "NAME is a federated database instance, not a cluster. Its users can only read.", .flag_only = true},
        {"print", 0, OPTION_SWITCH, AT(print), NULL, NULL,
         "Print the psql command, password included, instead of running it.", .flag_only = true},
        {"timeout", 0, OPTION_NUMBER, AT(timeout), "30", "SECONDS", "Wait no longer than this for the login to work.",
         NULL, 1, 3600, true},
        PROFILE_OPTIONS,
};
const size_t connect_option_count = sizeof connect_options / sizeof *connect_options;

#define COMMENT "steward connect" /* marks the entries and users that this command made */
#define PASSWORD_LENGTH 32
#define NAME_LENGTH 10
#define TRY_PAUSE_MS 200
#define PAGE 500
#define PAGES_MAX 100

/* Which database role each project role gives; the first one that the caller holds is used. */
static const struct {
	const char *held, *given;
} rights[] = {{"GROUP_OWNER", "svcAdmin"},
              {"GROUP_DATA_ACCESS_READ_WRITE", "readWriteAnyDatabase"},
              {"GROUP_DATA_ACCESS_READ_ONLY", "readAnyDatabase"}};
#define READS "readAnyDatabase"

struct session {
	struct arena *arena;
	const struct connect_arguments *given;
	struct client *client;
	const char *project, *name; /* name: of the cluster */
	/* The caller, as the service sees it. */
	struct str address, roles;
	int64_t until_ms; /* when the user and the entry expire, on the service's clock */
	char until[CLOCK_TEXT];
	struct str standard; /* the cluster's connection string */
	const char *path;    /* the path of its document in the API */
	const char *ca_file;
	const char *user, *password, *role; /* password NULL: an existing user */
	bool made;                          /* we created the user and must delete it */
	json_t *scopes;                     /* where the user gets in */
};

static const char *field(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

/* Fetches a document that must exist. Returns an exit code; a failure is already explained. */
static int get(struct session *s, const char *path, struct client_answer *ret_answer)
{
	static const char *const describe[] = {"X-Steward-Describe-Caller: true"};
	struct client_request r = {.method = "GET", .path = path, .headers = describe, .header_count = 1};
	int result = client_call(s->client, s->arena, &r, ret_answer);
	if (result < 0)
		return client_exit(result);
	if (ret_answer->status == 200)
		return EXIT_DONE;
	client_explain(s->client, ret_answer);
	return EXIT_NOT_DONE;
}

/* Reads who the caller is. Expiry times are computed from the service's clock, which may differ from ours. */
static int caller_read(struct session *s)
{
	struct client_answer answer;
	int result = get(s, arena_printf(s->arena, API_BASE "/groups/%s", s->project).p, &answer);
	if (result != EXIT_DONE)
		return result;
	s->address = client_header(&answer, "x-steward-caller-address");
	s->roles = client_header(&answer, "x-steward-caller-roles");
	time_t now = curl_getdate(arena_z(s->arena, client_header(&answer, "date")), NULL);
	s->until_ms = (now > 0 ? (int64_t)now * 1000 : clock_now_ms()) + (int64_t)s->given->hours * 3600000;
	clock_format(s->until_ms, s->until);
	return EXIT_DONE;
}

static int engine_check(struct session *s)
{
	struct client_answer answer;
	struct client_request r = {.method = "GET", .path = "/readyz"};
	int result = client_call(s->client, s->arena, &r, &answer);
	if (result < 0)
		return client_exit(result);
	if (strcmp(field(answer.json, "engine"), "simulated") != 0)
		return EXIT_DONE;
	option_refuse(
	        "there is no database to connect to: the service runs on the simulated engine, which makes "
	        "documents and no databases; start it with --engine postgres, on the real clock, where PostgreSQL "
	        "is installed");
	return EXIT_NOT_DONE;
}

/* The cluster's document; flex clusters have another path. */
static int cluster_find(struct session *s, const json_t **ret_cluster)
{
	static const char *const kinds[] = {"clusters", "flexClusters"};
	struct client_answer answer;
	for (size_t i = 0; i < 2; i++) {
		struct client_request r = {.method = "GET",
		                           .path = arena_printf(s->arena, API_BASE "/groups/%s/%s/%s", s->project,
		                                                kinds[i], url_escape(s->arena, str_of(s->name)))
		                                           .p};
		int result = client_call(s->client, s->arena, &r, &answer);
		if (result < 0)
			return client_exit(result);
		if (answer.status == 200) {
			*ret_cluster = answer.json;
			s->path = arena_printf(s->arena, "%s%s", r.path, i == 0 ? "/status" : "").p;
			return EXIT_DONE;
		}
		bool is_flex = strcmp(field(answer.json, "errorCode"), "CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API") == 0;
		if (answer.status != 404 && !is_flex) {
			client_explain(s->client, &answer);
			return EXIT_NOT_DONE;
		}
	}
	option_refuse("there is no cluster \"%s\" in the project; \"steward clusters list\" shows those that there are",
	              s->name);
	return EXIT_NOT_DONE;
}

static void scope_add(struct session *s, const char *name, const char *type)
{
	for (size_t i = 0; i < json_array_size(s->scopes); i++) {
		const json_t *one = json_array_get(s->scopes, i);
		if (strcmp(field(one, "name"), name) == 0 && strcmp(field(one, "type"), type) == 0)
			return;
	}
	json_array_append_new(s->scopes, json_pack("{s:s, s:s}", "name", name, "type", type));
}

/* An instance reads a cluster in the name of who asks: who has no way into the cluster reads nothing of it. */
static void federation_scopes(struct session *s, const json_t *instance)
{
	const json_t *stores = json_object_get(json_object_get(instance, "storage"), "stores");
	scope_add(s, s->name, "DATA_LAKE");
	for (size_t i = 0; i < json_array_size(stores); i++) {
		const char *cluster = field(json_array_get(stores, i), "clusterName");
		if (*cluster)
			scope_add(s, cluster, "CLUSTER");
	}
}

static int federation_not_ready(const struct session *s)
{
	option_refuse(
	        "%s is not there yet: nothing can connect to it; \"steward data-federations get %s\" shows its state",
	        s->name, s->name);
	return EXIT_NOT_DONE;
}

/* Where it listens is told by a header: "address=127.0.0.1, port=27100". */
static int federation_read(struct session *s)
{
	struct client_answer answer;
	struct str address, port, name, rest;
	s->path = arena_printf(s->arena, API_BASE "/groups/%s/dataFederation/%s", s->project,
	                       url_escape(s->arena, str_of(s->name)))
	                  .p;
	int code = get(s, s->path, &answer);
	if (code != EXIT_DONE)
		return code;
	const char *host = json_string_value(json_array_get(json_object_get(answer.json, "hostnames"), 0));
	str_cut(client_header(&answer, "x-steward-endpoint"), ',', &address, &port);
	str_cut(address, '=', &name, &address);
	str_cut(port, '=', &rest, &port);
	if (!host || !address.n || !port.n)
		return federation_not_ready(s);
	federation_scopes(s, answer.json);
	s->standard = arena_printf(s->arena, "postgresql://%s:%.*s/postgres?hostaddr=%.*s&sslmode=require", host,
	                           STR_ARG(port), STR_ARG(address));
	return EXIT_DONE;
}

static int cluster_read(struct session *s)
{
	const json_t *cluster = NULL;
	int code = cluster_find(s, &cluster);
	if (code != EXIT_DONE)
		return code;
	const char *state = text_shown(s->arena, str_of(field(cluster, "stateName"))),
	           *standard = field(json_object_get(cluster, "connectionStrings"), "standard");
	if (json_is_true(json_object_get(cluster, "paused"))) {
		option_refuse("%s is paused; \"steward clusters resume %s --wait\" starts it", s->name, s->name);
		return EXIT_NOT_DONE;
	}
	if (!standard[0] || strcmp(state, "CREATING") == 0 || strcmp(state, "DELETING") == 0) {
		option_refuse(
		        "%s is %s: nothing can connect to it; \"steward clusters wait %s\" waits until it is ready",
		        s->name, state, s->name);
		return EXIT_NOT_DONE;
	}
	scope_add(s, s->name, "CLUSTER");
	s->standard = arena_dup(s->arena, str_of(standard));
	return EXIT_DONE;
}

/* The file with the CA certificate. libpq only reads it from a file, and a printed command needs it after this process
 * has ended: so it is kept in the user's cache directory, one file per project. */
static const char *ca_folder(struct arena *a)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *base = cache && *cache == '/' ? cache : NULL;
	char temporary[] = "/tmp/steward-XXXXXX";
	if (!base && home && *home == '/') {
		base = arena_printf(a, "%s/.cache", home).p;
		mkdir(base, 0700);
	}
	const char *folder = base ? arena_printf(a, "%s/steward", base).p : NULL;
	if (folder && (mkdir(folder, 0700) == 0 || errno == EEXIST) && access(folder, W_OK | X_OK) == 0)
		return folder;
	return mkdtemp(temporary) ? arena_z(a, str_of(temporary)) : NULL;
}

static int ca_fetch(struct session *s)
{
	struct client_answer answer;
	int result = get(s, arena_printf(s->arena, "/ca/%s", s->project).p, &answer);
	if (result != EXIT_DONE)
		return result;
	const char *folder = ca_folder(s->arena);
	if (folder) {
		s->ca_file = arena_printf(s->arena, "%s/%s.crt", folder, s->project).p;
		result = file_replace(s->ca_file, answer.body, 0600, FILE_NO_GROUP);
	}
	if (!folder || result < 0) {
		option_refuse("the certificate authority cannot be kept: %s", strerror(folder ? -result : errno));
		return EXIT_NOT_DONE;
	}
	return EXIT_DONE;
}

/* The user. */

static bool role_is_held(struct str roles, const char *name)
{
	struct str one, rest = roles;
	bool more = true;
	while (more) {
		more = str_cut(rest, ',', &one, &rest);
		if (str_is(str_trim(one), name))
			return true;
	}
	return false;
}

static int role_choose(struct session *s)
{
	for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
		if (role_is_held(s->roles, rights[i].held)) {
			s->role = s->given->read_only || s->given->federation ? READS : rights[i].given;
			return EXIT_DONE;
		}
	option_refuse(
	        "the credentials have no role for data in the project: GROUP_DATA_ACCESS_READ_ONLY lets them read, "
	        "GROUP_DATA_ACCESS_READ_WRITE write; or name a database user of yours: steward connect %s --user "
	        "NAME",
	        s->name);
	return EXIT_NOT_DONE;
}

static int user_make(struct session *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789",
	                  all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	char name[NAME_LENGTH + 1], *password = arena_alloc(s->arena, PASSWORD_LENGTH + 1);
	json_t *ignored = NULL;
	int code = role_choose(s);
	if (code != EXIT_DONE)
		return code;
	random_text(name, NAME_LENGTH, letters);
	random_text(password, PASSWORD_LENGTH, all);
	s->user = arena_printf(s->arena, "connect-%s", name).p;
	s->password = password;
	json_t *body = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:[{s:s, s:s}], s:O}", "username", s->user, "password",
	                         password, "databaseName", "admin", "groupId", s->project, "deleteAfterDate", s->until,
	                         "description", COMMENT, "roles", "roleName", s->role, "databaseName", "admin",
	                         "scopes", s->scopes);
	const char *path = arena_printf(s->arena, API_BASE "/groups/%s/databaseUsers", s->project).p;
	code = client_ask(s->client, s->arena, "POST", path, body, &ignored);
	json_decref(body);
	s->made = code == EXIT_DONE;
	if (code == EXIT_NOT_DONE)
		fprintf(stderr,
		        "steward: connect makes a database user for the session, which takes "
		        "GROUP_DATABASE_ACCESS_ADMIN; with a user that somebody made for you: steward connect %s "
		        "--user "
		        "NAME\n",
		        s->name);
	return code;
}

static void user_delete(struct session *s)
{
	struct client_answer answer;
	struct client_request r = {
	        .method = "DELETE",
	        .path = arena_printf(s->arena, API_BASE "/groups/%s/databaseUsers/admin/%s", s->project, s->user).p,
	        .quiet = true,
	        .timeout_ms = 30000};
	if (!s->made)
		return;
	int result = client_call(s->client, s->arena, &r, &answer);
	if (result < 0 || (answer.status >= 400 && answer.status != 404))
		fprintf(stderr, "steward: the database user %s could not be deleted; it ends by itself at %s\n",
		        s->user, s->until);
	s->made = false;
}

/* The access list. */

/* The first address in hostaddr: there the databases listen. */
static bool database_address(struct str standard, struct ip *ret_ip)
{
	static const char mark[] = "hostaddr=";
	const char *at = memmem(standard.p, standard.n, mark, sizeof mark - 1);
	if (!at)
		return false;
	size_t n = 0, rest = standard.n - (size_t)(at - standard.p) - (sizeof mark - 1);
	at += sizeof mark - 1;
	while (n < rest && at[n] != ',' && at[n] != '&')
		n++;
	return ip_parse((struct str){at, n}, ret_ip);
}

/* The address that this machine would use. Connecting a datagram socket sends nothing. */
static bool source_address(const struct ip *to, struct ip *ret_ip)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct sockaddr_storage from = {0};
	socklen_t size = sizeof from;
	bool v4 = ip_is_v4(to);
	memcpy(&six.sin6_addr, to->b, sizeof to->b);
	memcpy(&four.sin_addr, to->b + 12, 4);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool found = connect(fd, v4 ? (const struct sockaddr *)&four : (const struct sockaddr *)&six,
	                     v4 ? sizeof four : sizeof six) == 0 &&
	             getsockname(fd, (struct sockaddr *)&from, &size) == 0;
	close(fd);
	if (found)
		*ret_ip = ip_from_sockaddr((const struct sockaddr *)&from);
	return found;
}

static bool is_loopback(const struct ip *ip)
{
	struct cidr four, six;
	return cidr_parse(STR("127.0.0.0/8"), &four) && cidr_parse(STR("::1/128"), &six) &&
	       (cidr_contains(&four, ip) || cidr_contains(&six, ip));
}

/* The address from which the databases will see us: the one that the service sees, unless the databases listen on a
 * loopback address or use another IP version than our connection to the service. */
static bool address_seen(const struct session *s, struct ip *ret_ip)
{
	struct ip seen, database;
	bool known = ip_parse(s->address, &seen);
	if (database_address(s->standard, &database) &&
	    (!known || is_loopback(&database) || ip_is_v4(&database) != ip_is_v4(&seen)) &&
	    source_address(&database, ret_ip))
		return true;
	if (known)
		*ret_ip = seen;
	return known;
}

enum covered { COVERED_NOT, COVERED_TOO_SHORT, COVERED };

/* Whether the entry lets the address in for as long as we need. An entry that we made is prolonged; of others it is
 * enough that they are valid now. */
static enum covered entry_covers(const struct session *s, const json_t *entry, const struct ip *address)
{
	struct cidr network;
	int64_t until;
	if (!cidr_parse(str_of(field(entry, "cidrBlock")), &network) || !cidr_contains(&network, address))
		return COVERED_NOT;
	bool ours = strcmp(field(entry, "comment"), COMMENT) == 0;
	bool ends = clock_parse(str_of(field(entry, "deleteAfterDate")), &until) && until < s->until_ms;
	return ours && ends ? COVERED_TOO_SHORT : COVERED;
}

static int entry_find(struct session *s, const struct ip *address, enum covered *ret_covered)
{
	enum covered best = COVERED_NOT;
	bool more = true;
	int code = EXIT_DONE;
	for (int number = 1; code == EXIT_DONE && more && best != COVERED && number <= PAGES_MAX; number++) {
		json_t *page = NULL;
		const char *path = arena_printf(s->arena, API_BASE "/groups/%s/accessList?itemsPerPage=%d&pageNum=%d",
		                                s->project, PAGE, number)
		                           .p;
		code = client_ask(s->client, s->arena, "GET", path, NULL, &page);
		const json_t *results = json_object_get(page, "results");
		for (size_t i = 0; i < json_array_size(results); i++) {
			enum covered one = entry_covers(s, json_array_get(results, i), address);
			best = one > best ? one : best;
		}
		more = json_array_size(results) == PAGE;
	}
	*ret_covered = best;
	return code;
}

static int access_open(struct session *s)
{
	char text[IP_TEXT];
	struct ip address;
	enum covered covered = COVERED_NOT;
	json_t *ignored = NULL;
	if (!address_seen(s, &address)) {
		option_refuse(
		        "the service does not say from which address it is called; add yours to the access list: "
		        "steward api POST '/groups/{groupId}/accessList' --body '[{\"ipAddress\": \"ADDRESS\"}]'");
		return EXIT_NOT_DONE;
	}
	int code = entry_find(s, &address, &covered);
	if (code != EXIT_DONE || covered == COVERED)
		return code;
	ip_format_full(&address, text);
	json_t *body =
	        json_pack("[{s:s, s:s, s:s}]", "ipAddress", text, "comment", COMMENT, "deleteAfterDate", s->until);
	const char *path = arena_printf(s->arena, API_BASE "/groups/%s/accessList", s->project).p;
	code = client_ask(s->client, s->arena, "POST", path, body, &ignored);
	json_decref(body);
	if (code == EXIT_DONE && covered == COVERED_NOT)
		fprintf(stderr, "steward: %s is on the project's access list until %s\n", text, s->until);
	else if (code == EXIT_NOT_DONE)
		fprintf(stderr,
		        "steward: the databases let in only addresses of the project's access list, and %s is not on "
		        "it; "
		        "adding it takes GROUP_NETWORK_ACCESS_MANAGER\n",
		        text);
	return code;
}

/* Connecting. */

/* The service's string with our user and database, and with the server verified. */
static const char *string_make(struct session *s)
{
	struct str rest, hosts, path, query, one;
	struct buf b = {0};
	const char *at = memmem(s->standard.p, s->standard.n, "://", 3);
	rest = at ? (struct str){at + 3, s->standard.n - (size_t)(at - s->standard.p) - 3} : s->standard;
	str_cut(rest, '?', &rest, &query);
	str_cut(rest, '/', &hosts, &path);
	buf_printf(&b, "postgresql://%s@%.*s/", url_escape(s->arena, str_of(s->user)), STR_ARG(hosts));
	buf_z(&b, s->given->database ? url_escape(s->arena, str_of(s->given->database)) : arena_z(s->arena, path));
	buf_c(&b, '?');
	while (query.n) {
		str_cut(query, '&', &one, &query);
		if (one.n && !str_starts(one, STR("sslmode=")) && !str_starts(one, STR("sslrootcert=")))
			buf_printf(&b, "%.*s&", STR_ARG(one));
	}
	buf_z(&b, "sslmode=verify-full&sslrootcert=");
	for (struct str folder, file = str_of(s->ca_file + 1); file.n;) {
		str_cut(file, '/', &folder, &file);
		buf_printf(&b, "/%s", url_escape(s->arena, folder));
	}
	const char *string = arena_dup(s->arena, buf_view(&b)).p;
	buf_free(&b);
	return string;
}

/* Explains, where the service knows it, why nobody can log in: data is missing, or the disk is full. */
static void status_explain(const struct session *s)
{
	struct client_request r = {.method = "GET", .path = s->path, .quiet = true};
	struct client_answer answer;
	if (client_call(s->client, s->arena, &r, &answer) == 0 && answer.progress.n)
		option_refuse("%s: %s", s->name, text_shown(s->arena, answer.progress));
}

/* A call that changes access returns when every reachable cluster has applied it, or after a few seconds: a cluster
 * that is being changed gets it later. */
static int login_wait(struct session *s, const struct psql *p)
{
	int64_t end = clock_mono_us() + (int64_t)s->given->timeout * 1000000;
	struct timespec pause = {.tv_nsec = TRY_PAUSE_MS * 1000000L};
	struct str said = STR_NONE;
	struct ip database;
	while (psql_try(p, &said) < 0) {
		if (signals_wait())
			return EXIT_NOT_DONE;
		if (clock_mono_us() < end) {
			nanosleep(&pause, NULL);
			continue;
		}
		status_explain(s);
		if (!p->password)
			return EXIT_DONE; /* psql reports what is wrong with a user that we did not make */
		option_refuse("no login to %s works after %u s: %s", s->name, s->given->timeout,
		              text_shown(s->arena, said));
		if (memmem(said.p, said.n, "refused", 7) && database_address(s->standard, &database) &&
		    is_loopback(&database))
			fprintf(stderr,
			        "steward: its nodes listen on loopback addresses: they are reached on the service's "
			        "own machine only, unless it was started with --db-address\n");
		return EXIT_TIMEOUT;
	}
	return EXIT_DONE;
}

static int psql_start(struct session *s)
{
	struct psql p = {
	        .arena = s->arena, .string = string_make(s), .password = s->password, .commands = &s->given->commands};
	int code = psql_is_installed() ? login_wait(s, &p) : EXIT_DONE;
	if (code != EXIT_DONE)
		return code;
	if (signals_wait())
		return EXIT_NOT_DONE;
	if (s->given->print) {
		psql_print(&p);
		s->made = false; /* it expires by itself */
		if (s->password)
			fprintf(stderr, "steward: good until %s, with its password in it: keep it to yourself\n",
			        s->until);
		return EXIT_DONE;
	}
	if (s->password && isatty(STDIN_FILENO) && !p.commands->n)
		fprintf(stderr, "steward: you are %s (%s) until you leave psql, or until %s\n", s->user, s->role,
		        s->until);
	return psql_run(&p);
}

static int session_run(struct session *s)
{
	int code = caller_read(s);
	if (code == EXIT_DONE)
		code = engine_check(s);
	if (code == EXIT_DONE)
		code = s->given->federation ? federation_read(s) : cluster_read(s);
	if (code == EXIT_DONE)
		code = ca_fetch(s);
	if (code != EXIT_DONE)
		return code;
	signals_hold();
	s->user = s->given->user;
	if (!s->user)
		code = user_make(s);
	if (code == EXIT_DONE)
		code = access_open(s);
	if (code == EXIT_DONE)
		code = psql_start(s);
	user_delete(s);
	return code;
}

int connect_run(struct arena *a, const struct connect_arguments *g, const char *name)
{
	struct session s = {.arena = a, .given = g, .name = name, .scopes = json_keep(a, json_array())};
	struct profile profile;
	if (g->user && g->read_only) {
		option_refuse("give --user or --read-only, not both: a user that exists has its own rights");
		return EXIT_USAGE;
	}
	if (profile_load(a, &g->at, &profile) < 0)
		return EXIT_USAGE;
	if (!g->print && !psql_is_installed()) {
		option_refuse(
		        "psql is not installed: apt-get install postgresql-client; or have the command printed for a "
		        "machine that has it: --print");
		return EXIT_USAGE;
	}
	if (client_open(a, &profile, &s.client) < 0)
		return EXIT_USAGE;
	int r = client_project(s.client, a, &s.project), code = r < 0 ? client_exit(r) : session_run(&s);
	client_close(s.client);
	return code;
}

static int connect_call(const struct client_call *call)
{
	return connect_run(call->arena, call->given, call->words[0]);
}

static const struct client_command command = {.name = "connect",
                                              .options = connect_options,
                                              .option_count = &connect_option_count,
                                              .words_max = 1,
                                              .words_min = 1,
                                              .wants = "the cluster's name is missing: steward connect NAME",
                                              .run = connect_call};

int connect_command(int argc, char **argv)
{
	struct connect_arguments g = {.database = NULL};
	return client_command_run(&command, argc, argv, &g);
}
