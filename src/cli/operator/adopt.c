/* What lies in the repositories and is not in the catalogue: the store is an older copy, or is lost, or it was
 * deleted and the next sweep takes it. A record beside each snapshot tells all that the catalogue had; of snapshots
 * that earlier versions took, their manifests tell what they know, unless they are sealed with a key of the project's
 * own. */
#include "cli/operator/adopt.h"

#include "api/encryption_at_rest/encryption_at_rest.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "base/id.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>

struct unknown {
	const struct place *place;
	struct repository *repository;
	struct store *store;
	struct tx *reader;
	struct arena *a;
	enum adopt_how how;
	struct str org_id;
	char newest[2][ID_LEN + 1]; /* cluster and snapshot; for the project's name */
	uint64_t count, left;       /* left: that could not be adopted */
};

/* --- a project */

struct project {
	struct arena *a;
	struct str org_id, group_id, name;
	const json_t *record;
	json_t *key;
};

static int project_run(struct tx *tx, void *ctx)
{
	struct project *p = ctx;
	return project_adopt(tx, p->a, p->org_id, p->group_id, p->record, &p->name);
}

static int key_run(struct tx *tx, void *ctx)
{
	struct project *p = ctx;
	return data_key_adopt(tx, p->a, p->group_id, p->key);
}

/* The record of a snapshot; NULL: there is none that opens. */
static const json_t *record_read(const struct unknown *u, const char *cluster, const char *snapshot)
{
	char *text = NULL;
	if (repo_record_get(u->repository, cluster, snapshot, &text) < 0)
		return NULL;
	const json_t *record = doc_json(u->a, arena_dup(u->a, str_of(text)));
	free(text);
	return json_is_object(json_object_get(record, "plan")) ? record : NULL;
}

/* Ids begin with their time. */
static int newest_look(void *ctx, struct str cluster, struct str snapshot, int64_t modified_ms)
{
	struct unknown *u = ctx;
	if (id_is_valid(cluster) && id_is_valid(snapshot) && memcmp(snapshot.p, u->newest[1], ID_LEN) > 0) {
		str_copy(cluster, u->newest[0], sizeof u->newest[0]);
		str_copy(snapshot, u->newest[1], sizeof u->newest[1]);
	}
	return 0;
}

/* The project that the repository is of, under the name that its newest snapshot knows. */
static int project_bring(struct unknown *u)
{
	struct project p = {.a = u->a, .org_id = u->org_id, .group_id = str_of(u->place->project)};
	memset(u->newest, 0, sizeof u->newest);
	int result = repo_snapshots(u->repository, newest_look, u);
	if (result < 0 || !u->newest[1][0] || !id_is_valid(p.group_id))
		return result;
	p.record = record_read(u, u->newest[0], u->newest[1]);
	result = store_write_wait(u->store, project_run, &p);
	if (result == -EEXIST)
		return 0;
	if (result < 0)
		return result;
	const json_t *was = json_object_get(p.record, "project");
	printf("project %s: is there again, as \"%.*s\"", u->place->project, STR_ARG(p.name));
	if (was)
		printf("; it was in the organization \"%.*s\" (%.*s)", STR_ARG(json_field(was, "organization")),
		       STR_ARG(json_field(was, "organizationId")));
	else
		printf("; its name lies nowhere: an earlier version took its snapshots");
	printf("\n");
	return 0;
}

static int key_bring(void *ctx, const char *text)
{
	struct unknown *u = ctx;
	struct project p = {
	        .a = u->a, .group_id = str_of(u->place->project), .key = doc_json(u->a, arena_dup(u->a, str_of(text)))};
	struct doc d;
	tx_begin_read(u->reader);
	int result = tx_get(u->reader, u->a, "project", p.group_id, &d);
	tx_end_read(u->reader);
	if (result == 0)
		result = store_write_wait(u->store, key_run, &p);
	if (result == 0)
		printf("project %s: its data key %.*s is known again; unless it is one of the operator's own keys, the "
		       "project's encryption at rest has to be set up with the same key before snapshots open\n",
		       u->place->project, STR_ARG(json_field(p.key, "id")));
	if (result == -ENODATA)
		printf("project %s: its data key %.*s was written beside the backups by an earlier version, without "
		       "its "
		       "proof and what its service is asked with: what it has sealed comes back by hand only\n",
		       u->place->project, STR_ARG(json_field(p.key, "id")));
	return result == -EEXIST || result == -ENODATA || result == -ENOENT ? 0 : result;
}

/* --- snapshots */

struct adoption {
	struct arena *a;
	struct found_snapshot found;
	bool makes_line;
};

static int adoption_run(struct tx *tx, void *ctx)
{
	struct adoption *x = ctx;
	return snapshot_adopt(tx, x->a, &x->found, x->makes_line);
}

/* What one set's manifest tells. */
static int set_read(struct repository *r, struct adoption *x, struct str set, struct engine_position *to)
{
	struct repo_manifest *m = NULL;
	struct engine_source *of = &x->found.of;
	struct engine_snapshot *made = &x->found.made;
	unsigned high = 0, low = 0;
	int result = repo_manifest_open(r, of->cluster_id, of->snapshot_id, arena_z(x->a, set), &m);
	if (result < 0)
		return result;
	const json_t *facts = repo_manifest_facts(m);
	const struct repo_amount *amount = repo_manifest_amount(m);
	const char *position = json_string_value(json_object_get(facts, "position"));
	snprintf(to->set, sizeof to->set, "%.*s", STR_ARG(set));
	to->timeline = (unsigned)json_number(facts, "timeline");
	if (position && sscanf(position, "%X/%X", &high, &low) == 2)
		to->lsn = (uint64_t)high << 32 | low;
	to->bytes = amount->bytes;
	to->stored = amount->stored;
	made->at_ms = json_number(facts, "atMs");
	made->bytes += amount->bytes;
	made->stored += amount->stored;
	made->from_standby |= json_flag(facts, "standby");
	snprintf(made->version, sizeof made->version, "%.*s", STR_ARG(json_field(facts, "version")));
	snprintf(made->data_key, sizeof made->data_key, "%s", repo_manifest_key(m));
	snprintf(of->incarnation, sizeof of->incarnation, "%.*s", STR_ARG(json_field(facts, "incarnation")));
	repo_manifest_close(m);
	return 0;
}

/* Of a snapshot without a record. */
static int manifests_read(struct unknown *u, struct adoption *x)
{
	struct engine_snapshot *made = &x->found.made;
	struct str *sets = NULL;
	size_t count = 0;
	int result = repo_sets(u->repository, u->a, x->found.of.cluster_id, x->found.of.snapshot_id, &sets, &count);
	made->sets = arena_new_array(u->a, struct engine_position, count + 1);
	made->set_count = count;
	for (size_t i = 0; result == 0 && i < count; i++) {
		made->sets[i] = (struct engine_position){.lsn = 0};
		result = set_read(u->repository, x, sets[i], &made->sets[i]);
	}
	return result;
}

static const char *adopt_why(int result)
{
	switch (result) {
	case 0:
	case -EEXIST: return NULL;
	case -ENOENT: return "the catalogue does not have its cluster: \"steward repository rebuild\" makes one";
	default: return strerror(-result);
	}
}

/* Back into the catalogue; else a sentence why not. */
static int snapshot_bring(struct unknown *u, struct str cluster, struct str snapshot)
{
	struct adoption x = {.a = u->a, .makes_line = u->how == ADOPT_EVERYTHING};
	struct found_snapshot *f = &x.found;
	int result = 0;
	str_copy(str_of(u->place->project), f->of.group_id, sizeof f->of.group_id);
	str_copy(str_of(u->place->region), f->of.region, sizeof f->of.region);
	str_copy(cluster, f->of.cluster_id, sizeof f->of.cluster_id);
	str_copy(snapshot, f->of.snapshot_id, sizeof f->of.snapshot_id);
	f->record = record_read(u, f->of.cluster_id, f->of.snapshot_id);
	if (f->record)
		found_fill(f);
	else
		result = manifests_read(u, &x);
	const char *why = result == -ENOKEY
	                          ? "it is sealed with the project's own key, and an earlier version took it, "
	                            "which left no record beside it: its moment, version and parts are "
	                            "known to its sealed manifests alone, and it comes back by hand only"
	                  : result < 0 ? repository_why()
	                               : NULL;
	if (!why && !id_is_valid(str_of(f->of.incarnation)))
		why = "its manifest names no data that a cluster could have";
	if (!why)
		why = adopt_why(store_write_wait(u->store, adoption_run, &x));
	u->left += why != NULL;
	printf("%.*s/%.*s: %s\n", STR_ARG(cluster), STR_ARG(snapshot), why ? why : "is in the catalogue again");
	return 0;
}

static int unknown_look(void *ctx, struct str cluster, struct str snapshot, int64_t modified_ms)
{
	struct unknown *u = ctx;
	struct snapshot s;
	char when[CLOCK_TEXT];
	bool adopt = u->how != ADOPT_LIST;
	tx_begin_read(u->reader);
	int result = snapshot_get(u->reader, u->a, snapshot, &s);
	tx_end_read(u->reader);
	if (result != -ENOENT && !(adopt && result == 0 && !snapshot_lies_in(&s, str_of(u->place->region))))
		return result;
	u->count++;
	if (adopt)
		return snapshot_bring(u, cluster, snapshot);
	clock_format(modified_ms, when);
	if (u->count == 1)
		printf("REGION\tPROJECT\tCLUSTER\tSNAPSHOT\tSTORED AT\n");
	printf("%s\t%s\t%.*s\t%.*s\t%s\n", u->place->region, u->place->project, STR_ARG(cluster), STR_ARG(snapshot),
	       when);
	return 0;
}

/* --- all of it */

static int place_run(struct unknown *u)
{
	int result = u->how == ADOPT_EVERYTHING ? project_bring(u) : 0;
	if (result == 0 && u->how != ADOPT_LIST)
		result = repo_wrapped_each(u->repository, key_bring, u);
	return result < 0 ? result : repo_snapshots(u->repository, unknown_look, u);
}

/* Which organization gets the projects. */
static int org_find(struct unknown *u, const char *org_id)
{
	struct doc d;
	if (u->how != ADOPT_EVERYTHING)
		return 0;
	u->org_id = str_of(org_id);
	tx_begin_read(u->reader);
	int result = org_id ? 0 : tx_meta_get(u->reader, u->a, "bootstrap", &u->org_id);
	bool empty = result == -ENOENT;
	if (result == 0)
		result = tx_get(u->reader, u->a, "org", u->org_id, &d);
	tx_end_read(u->reader);
	if (empty)
		return option_refuse(
		        "repository rebuild: no service has been started on this store yet: start it once");
	return result < 0 ? option_refuse("repository rebuild: there is no organization %.*s", STR_ARG(u->org_id)) : 0;
}

int adopt_run(struct arena *a, struct store *store, struct repositories *all, const struct place *places, size_t count,
              enum adopt_how how, const char *org_id)
{
	struct unknown u = {.a = a, .store = store, .how = how};
	u.reader = store_reader(store);
	bool unread = !u.reader || org_find(&u, org_id) < 0;
	for (size_t i = 0; !unread && i < count; i++) {
		struct repository *r = NULL;
		u.place = &places[i];
		int result = repository_get(all, u.place->region, u.place->project, &r);
		u.repository = r;
		if (result == 0)
			result = place_run(&u);
		if (result < 0) {
			option_refuse("repository: %s/%s: %s", u.place->region, u.place->project, repository_why());
			unread = true;
		}
		repository_put(r);
	}
	if (u.reader)
		store_reader_free(u.reader);
	if (!u.count && !unread)
		printf("The catalogue has all snapshots.\n");
	return unread ? EXIT_USAGE : (how == ADOPT_LIST ? u.count : u.left) ? EXIT_NOT_DONE : EXIT_DONE;
}
