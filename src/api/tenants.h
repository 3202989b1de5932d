/* The first organization, project and credentials, and those that tests ask for. */
#ifndef STEWARD_API_TENANTS_H
#define STEWARD_API_TENANTS_H

#include "gate/call.h"

/* projects.c: sets the fields of a new project that the service sets. */
void project_complete(json_t *document, struct str id);
/* What the caller sees: whole organizations whose projects it reads, then single projects that it has a role in. */
struct segment;
must_check int projects_visible(struct call *c, struct segment **ret_list, size_t *ret_count);

/* bootstrap.c: on an empty store makes the first tenant and writes DIR/bootstrap.json; otherwise checks that the file is
 * there. *ret_first tells which. Failure: a sentence to stderr, negative. */
must_check int bootstrap_ensure(struct store *store, const char *data_dir, const char *base_url, const char *ca_file,
                                bool *ret_first);
/* The store as after the first start, with the credentials of DIR/bootstrap.json. */
must_check int bootstrap_reset(struct store *store, const char *data_dir);
/* baseUrl and caFile of the file, when they have changed. */
must_check int bootstrap_refresh(const char *data_dir, const char *base_url, const char *ca_file);

/* test_control.c: /api/test/. Answers now or later. */
void test_control(struct service *s, struct request *r);
/* test_seed.c: one organization of a body that was checked; what was made is added to the list. Waits for the store. -EEXIST: a name is
 * taken. */
must_check int seed_organization(struct store *store, struct arena *a, const json_t *wanted, json_t *list);

#endif
