/* `steward repository`: the operator's look at the backups, with or without a running service. */
#include "api/snapshots/snapshots.h"
#include "base/id.h"
#include "cli/cli.h"
#include "cli/operator/adopt.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "engine/engine.h"
#include "hosts/hosts.h"
#include "repository/setup.h"
#include "store/rotation.h"
#include "store/seal.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct repository_arguments {
	const char *data, *store, *snapshot, *org;
	const char *backups, *region, *project, *sample, *s3_endpoint, *s3_region, *s3_key_id, *s3_secret_file,
	        *s3_ca_file, *azure_endpoint, *azure_account, *azure_key_file, *azure_ca_file;
	struct option_texts regions;
	bool repair;
};

#define AT(member) offsetof(struct repository_arguments, member)

const struct option_row repository_options[] = {
        {"data", 0, OPTION_TEXT, AT(data), "./data", "DIR", "Data directory of the service."},
        {"store", 0, OPTION_TEXT, AT(store), NULL, "URL",
         "prove, unknown, adopt, rebuild, rewrap: the store, where the service is run with --store."},
        {"snapshot", 0, OPTION_TEXT, AT(snapshot), NULL, "ID", "prove: this one, instead of the newest.",
         .flag_only = true},
        {"org", 0, OPTION_TEXT, AT(org), NULL, "ID",
         "rebuild: the organization that gets the projects. Without it, the first.", .flag_only = true},
        {"region", 0, OPTION_TEXT, AT(region), NULL, "NAME", "Only the backups of this region."},
        {"project", 0, OPTION_TEXT, AT(project), NULL, "ID", "Only the backups of this project."},
        {"sample", 0, OPTION_TEXT, AT(sample), NULL, "SHARE",
         "Check a random part of the packs and of the log: 0.1 or 10%. Without it, all."},
        {"repair", 0, OPTION_SWITCH, AT(repair), NULL, NULL, "check: make whole what is damaged and has a second copy.",
         .flag_only = true},
        {"backups", 0, OPTION_TEXT, AT(backups), NULL, "URL",
         "As the service is run with it. Without it, DIR/backups."},
        {"backups-region", 0, OPTION_TEXTS, AT(regions), NULL, "REGION=URL", "As the service is run with it."},
        {"s3-endpoint", 0, OPTION_TEXT, AT(s3_endpoint), NULL, "URL", "As the service is run with it."},
        {"s3-region", 0, OPTION_TEXT, AT(s3_region), NULL, "NAME", "As the service is run with it."},
        {"s3-key-id", 0, OPTION_TEXT, AT(s3_key_id), NULL, "ID", "As the service is run with it."},
        {"s3-secret-file", 0, OPTION_FILE, AT(s3_secret_file), NULL, "FILE",
         "As the service is run with it. Without it, STEWARD_S3_SECRET in the environment."},
        {"s3-ca-file", 0, OPTION_FILE, AT(s3_ca_file), NULL, "FILE", "As the service is run with it."},
        {"azure-endpoint", 0, OPTION_TEXT, AT(azure_endpoint), NULL, "URL", "As the service is run with it."},
        {"azure-account", 0, OPTION_TEXT, AT(azure_account), NULL, "NAME", "As the service is run with it."},
        {"azure-key-file", 0, OPTION_FILE, AT(azure_key_file), NULL, "FILE",
         "As the service is run with it, or STEWARD_AZURE_KEY in the environment."},
        {"azure-ca-file", 0, OPTION_FILE, AT(azure_ca_file), NULL, "FILE", "As the service is run with it."},
};
const size_t repository_option_count = sizeof repository_options / sizeof *repository_options;

/* All repositories are listed before one is opened. */
struct found {
	const struct repository_arguments *g;
	struct arena *a;
	struct place *places;
	size_t count;
};

static int place_found(void *ctx, const char *region, const char *group_id)
{
	struct found *f = ctx;
	if ((f->g->region && strcmp(f->g->region, region) != 0) ||
	    (f->g->project && strcmp(f->g->project, group_id) != 0))
		return 0;
	f->places = arena_grow(f->a, f->places, f->count, f->count + 1, sizeof(*f->places));
	f->places[f->count++] = (struct place){arena_z(f->a, str_of(region)), arena_z(f->a, str_of(group_id))};
	return 0;
}

static void fault_print(void *ctx, const char *words)
{
	const struct place *p = ctx;
	printf("%s/%s: %s\n", p->region, p->project, words);
}

/* What a check is to do, and what all of them found. */
struct checks {
	bool repair;
	double share;
	uint64_t faults; /* that are left */
};

static void faults_print(const struct repo_check *seen)
{
	unsigned long long faults = seen->faults, mended = seen->mended;
	if (!faults)
		printf("clean\n");
	else
		printf(mended ? "%llu %s, %llu of them made whole again\n" : "%llu %s\n", faults,
		       faults == 1 ? "fault" : "faults", mended);
}

static int place_check(struct repository *r, struct place *p, struct checks *k)
{
	struct repo_check seen;
	int result = k->repair ? repo_repair(r, fault_print, p, &seen) : repo_check(r, k->share, fault_print, p, &seen);
	if (result == 0)
		result = engines_check_log(r, fault_print, p, &seen);
	if (result < 0)
		return result;
	printf("%s/%s: %llu snapshots, %llu packs, %llu chunks, %llu objects of the log, %llu bytes read: ", p->region,
	       p->project, (unsigned long long)seen.snapshots, (unsigned long long)seen.packs,
	       (unsigned long long)seen.chunks, (unsigned long long)seen.segments, (unsigned long long)seen.bytes);
	faults_print(&seen);
	if (seen.locked)
		printf("%s/%s: %llu objects were not read: they are sealed with the project's own key, which only the "
		       "running "
		       "service has\n",
		       p->region, p->project, (unsigned long long)seen.locked);
	k->faults += seen.faults - seen.mended;
	return 0;
}

static int place_usage(struct repository *r, const struct place *p)
{
	uint64_t packs, wal;
	int result = repo_usage(r, &packs, &wal);
	if (result == 0)
		printf("%s\t%s\t%llu\t%llu\n", p->region, p->project, (unsigned long long)packs,
		       (unsigned long long)wal);
	return result;
}

/* --- unknown, adopt, rebuild */

static int catalogue_run(const struct repository_arguments *g, struct arena *a, struct repositories *all,
                         const struct found *f, const char *what)
{
	struct store *store;
	enum adopt_how how = strcmp(what, "unknown") == 0 ? ADOPT_LIST
	                     : strcmp(what, "adopt") == 0 ? ADOPT_KNOWN
	                                                  : ADOPT_EVERYTHING;
	if (g->org && how != ADOPT_EVERYTHING) {
		option_refuse("repository: --org goes with rebuild");
		return EXIT_USAGE;
	}
	if (service_store_open(a, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int code = adopt_run(a, store, all, f->places, f->count, how, g->org);
	store_close(store);
	return code;
}

/* --- rewrap */

/* The node's name, as the service has written it (serve/store.c). */
static struct str node_read(struct arena *a, const char *data)
{
	char text[ID_LEN + 1] = "";
	FILE *f = fopen(arena_printf(a, "%s/node.id", data).p, "re");
	size_t n = f ? fread(text, 1, ID_LEN, f) : 0;
	if (f)
		fclose(f);
	return n == ID_LEN && id_is_valid((struct str){text, n}) ? arena_dup(a, (struct str){text, n}) : STR_NONE;
}

/* That nothing needs another key is noted (rotation_backups_mark()) of all repositories of the host at once, and only
 * when each host seals with the new one: what is put from then on needs no other. */
static int rewrap_allowed(const struct repository_arguments *g, struct arena *a, struct store *store,
                          const struct repositories *all)
{
	unsigned char hash[32];
	char places[65];
	bool same = false;
	struct tx *reader = store_reader(store);
	struct str node = node_read(a, g->data), without = STR("");
	char name[65];
	int result = reader ? rotation_follow(reader) : -EIO;
	seal_key_name(0, name);
	repositories_places_hash(all, hash);
	hex_encode(hash, sizeof hash, places);
	if (result == 0)
		result = rotation_places_are(reader, node, places, &same);
	if (result == 0 && seal_key_active() != 0)
		result = -EAGAIN;
	if (result == 0)
		result = hosts_without_key(reader, a, name, true, &without);
	if (result == -EAGAIN || without.n) {
		option_refuse(
		        "repository rewrap: the new key is not in use on every host yet; try again in seconds, and "
		        "see \"steward secret-key status\"");
		result = -EAGAIN;
	} else if (result == 0 && !same) {
		option_refuse(
		        "repository rewrap: the service of %s keeps its backups elsewhere: give the same --backups and "
		        "--backups-region as there",
		        g->data);
		result = -EINVAL;
	} else if (result < 0) {
		option_refuse("repository rewrap: the store cannot be read: %s", strerror(-result));
	}
	store_reader_free(reader);
	return result;
}

static int rewrap_run(const struct repository_arguments *g, struct arena *a, struct repositories *all, struct found *f)
{
	struct store *store;
	uint64_t sum = 0;
	if (g->region || g->project) {
		option_refuse("repository rewrap: takes all projects of all regions");
		return EXIT_USAGE;
	}
	if (service_store_open(a, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int result = rewrap_allowed(g, a, store, all);
	if (result == 0)
		repositories_keys_renew(all);
	for (size_t i = 0; result == 0 && i < f->count; i++) {
		struct repository *r = NULL;
		uint64_t count = 0;
		result = repository_get(all, f->places[i].region, f->places[i].project, &r);
		if (result == 0)
			result = repository_rewrap(r, &count);
		if (result < 0)
			option_refuse("repository: %s/%s: %s", f->places[i].region, f->places[i].project,
			              repository_why());
		sum += count;
		repository_put(r);
	}
	if (result == 0)
		result = rotation_backups_mark(store, node_read(a, g->data));
	store_close(store);
	if (result == 0)
		printf("%zu projects' keys are sealed with the newest key; %llu objects were put anew.\n", f->count,
		       (unsigned long long)sum);
	return result < 0 ? EXIT_NOT_DONE : EXIT_DONE;
}

/* "0.1" or "10%". */
static bool share_parse(const char *text, double *ret_share)
{
	char *end;
	double share = strtod(text, &end);
	if (end == text)
		return false;
	if (strcmp(end, "%") == 0) {
		share /= 100;
		end++;
	}
	if (*end || !(share > 0) || share > 1)
		return false;
	*ret_share = share;
	return true;
}

/* `checks` NULL: only how much there is. */
static int places_run(struct repositories *all, struct found *f, struct checks *checks)
{
	bool unread = false;
	if (!checks)
		printf("REGION\tPROJECT\tSNAPSHOT BYTES\tLOG BYTES\n");
	for (size_t i = 0; i < f->count; i++) {
		struct place *p = &f->places[i];
		struct repository *r = NULL;
		int result = repository_get(all, p->region, p->project, &r);
		if (result == 0)
			result = checks ? place_check(r, p, checks) : place_usage(r, p);
		if (result == -EBADMSG && checks) {
			fault_print(p, repository_why());
			checks->faults++;
		} else if (result < 0) {
			option_refuse("repository: %s/%s: %s", p->region, p->project, repository_why());
			unread = true;
		}
		repository_put(r);
	}
	if (checks && !f->count)
		printf("There are no backups.\n");
	return unread ? EXIT_USAGE : checks && checks->faults ? EXIT_NOT_DONE : EXIT_DONE;
}

static int repository_run(const struct repository_arguments *g, struct arena *a, const char *what)
{
	struct repository_settings settings = {.data_dir = g->data,
	                                       .backups = g->backups,
	                                       .regions = g->regions.v,
	                                       .region_count = g->regions.n,
	                                       .s3_endpoint = g->s3_endpoint,
	                                       .s3_region = g->s3_region,
	                                       .s3_key_id = g->s3_key_id,
	                                       .s3_secret_file = g->s3_secret_file,
	                                       .s3_ca_file = g->s3_ca_file,
	                                       .azure_endpoint = g->azure_endpoint,
	                                       .azure_account = g->azure_account,
	                                       .azure_key_file = g->azure_key_file,
	                                       .azure_ca_file = g->azure_ca_file};
	struct found f = {.g = g, .a = a};
	struct repositories *all = NULL;
	struct checks checks = {.repair = g->repair, .share = 1};
	if (g->sample && !share_parse(g->sample, &checks.share)) {
		option_refuse("--sample: \"%s\" is not a share above 0 and up to 1, such as 0.1 or 10%%", g->sample);
		return EXIT_USAGE;
	}
	if (g->repair && (g->sample || strcmp(what, "check") != 0)) {
		option_refuse("repository: --repair goes with check, and not with --sample");
		return EXIT_USAGE;
	}
	int result = seal_read(g->data);
	if (result == -ENOENT)
		option_refuse("repository: %s/secret.key is missing: without it no backup opens", g->data);
	if (result < 0 || repositories_setup(&settings, &all) < 0)
		return EXIT_USAGE;
	result = repositories_each(all, place_found, &f);
	int code = EXIT_USAGE;
	if (result < 0)
		option_refuse("repository: %s", repository_why());
	else if (strcmp(what, "rewrap") == 0)
		code = rewrap_run(g, a, all, &f);
	else if (str_is_one_of("unknown|adopt|rebuild", str_of(what)))
		code = catalogue_run(g, a, all, &f, what);
	else
		code = places_run(all, &f, strcmp(what, "check") == 0 ? &checks : NULL);
	repositories_close(all);
	return code;
}

/* --- prove */

struct proving {
	struct arena *arena;
	struct str cluster, snapshot;
	struct drill_asked asked;
};

static int prove_ask(struct tx *tx, void *ctx)
{
	struct proving *p = ctx;
	return drill_request(tx, p->arena, p->cluster, p->snapshot, &p->asked);
}

/* The service does it: within a minute, or when it starts. */
static int prove_run(const struct repository_arguments *g, struct arena *a, const char *cluster)
{
	struct proving p = {.arena = a, .cluster = str_of(cluster), .snapshot = str_of(g->snapshot)};
	struct store *store;
	if (service_store_open(a, g->data, g->store, &store) < 0)
		return EXIT_USAGE;
	int r = store_write_wait(store, prove_ask, &p);
	store_close(store);
	switch (r) {
	case 0: break;
	case -ENOENT: option_refuse("repository: no cluster \"%s\" has had backups", cluster); break;
	case -EEXIST:
		option_refuse("repository: several clusters are named \"%s\"; give the id, as the API shows it",
		              cluster);
		break;
	case -ENODATA: option_refuse("repository: %s has no such snapshot that is complete", cluster); break;
	case -EALREADY: option_refuse("repository: a snapshot of %s is waiting to be proven already", cluster); break;
	default: option_refuse("repository: the store refused: %s", strerror(-r)); break;
	}
	if (r < 0)
		return EXIT_NOT_DONE;
	printf("%s (%.*s): the snapshot %.*s is proven within a minute, or when the service starts.\n", cluster,
	       STR_ARG(p.asked.cluster_id), STR_ARG(p.asked.snapshot_id));
	return EXIT_DONE;
}

static int verb_run(const struct operator_call *c)
{
	const struct repository_arguments *g = c->given;
	bool prove = c->count > 0 && strcmp(c->words[0], "prove") == 0;
	if (c->count == 0 || !str_is_one_of("check|usage|unknown|adopt|rebuild|prove|rewrap", str_of(c->words[0])))
		option_refuse("repository: check, usage, unknown, adopt, rebuild, prove or rewrap? \"steward "
		              "repository --help\" explains them");
	else if (prove && c->count < 2)
		option_refuse("repository: which cluster? steward repository prove --data DIR CLUSTER");
	else if (!prove && (c->count > 1 || g->snapshot))
		option_refuse("repository: %s goes with prove", g->snapshot ? "--snapshot" : c->words[1]);
	else
		return prove ? prove_run(g, c->arena, c->words[1]) : repository_run(g, c->arena, c->words[0]);
	return EXIT_USAGE;
}

int repository_command(int argc, char **argv)
{
	struct repository_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "repository",
	                                               .options = repository_options,
	                                               .option_count = repository_option_count,
	                                               .words_max = 2,
	                                               .run = verb_run},
	                    argc, argv, &g);
}
