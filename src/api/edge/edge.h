/* The first organization, project and credentials, and those that tests ask for. */
#ifndef STEWARD_API_EDGE_EDGE_H
#define STEWARD_API_EDGE_EDGE_H

#include "call/call.h"

/* bootstrap.c: on an empty store makes the first tenant and writes DIR/bootstrap.json; otherwise checks that the file
 * is there. *ret_first tells which. Failure: a sentence to stderr, negative. */
must_check int bootstrap_ensure(struct store *store, const char *data_dir, const char *base_url, const char *ca_file,
                                bool *ret_first);
/* The store as after the first start, with the credentials of DIR/bootstrap.json. */
must_check int bootstrap_reset(struct store *store, const char *data_dir);
/* baseUrl and caFile of the file, when they have changed. */
must_check int bootstrap_refresh(const char *data_dir, const char *base_url, const char *ca_file);

/* In a write: an organization with its federation, and a project of it. */
must_check int tenant_org(struct tx *tx, struct arena *a, struct str org_id, struct str name,
                          struct str *ret_federation_id);
must_check int tenant_project(struct tx *tx, struct arena *a, struct str org_id, struct str id, struct str name);

/* test_control.c: /api/test/. Answers now or later. */
void test_control(struct service *s, struct request *r);
/* test_seed.c: what the schema of a seeding's body does not say: roles, networks, names that must be there. */
void seed_check(struct arena *a, const json_t *body, struct faults *faults);
/* One organization of a body that was checked; what was made is added to the list. Waits for the store.
 * -EEXIST: a name is taken. */
must_check int seed_organization(struct store *store, struct arena *a, const json_t *wanted, json_t *list);

/* happenings.c: what the test control lets happen to databases. They wait for the store. */
void happening_check(struct arena *a, const json_t *body, struct faults *faults);
must_check int happening_event(struct service *s, struct arena *a, const json_t *body);
must_check int happening_reading(struct service *s, struct arena *a, const json_t *body);

/* oauth.c: POST /api/oauth/token and /api/oauth/revoke: outside the catalog, called by the router. Answer in RFC 6749's
 * and RFC 7009's form, errors too. Never block: the revocation is a write, answered when it is on disk. */
void oauth_token(struct service *s, struct request *r);
void oauth_revoke(struct service *s, struct request *r);
/* POST /api/oauth/device: where a client without a browser asks to act for a person (RFC 8628). */
void oauth_device(struct service *s, struct request *r);
/* Fills the response of either with a refusal in RFC 6749's form; sends nothing. */
void oauth_problem(struct request *r, const struct problem *p);

/* feeds.c: GET FEED_PATH<token>, an Atom feed. */
void feed_serve(struct service *s, struct request *r);
/* invitations.c: /api/invitations/{token}, and the page that the letter names (INVITATIONS_LINK of users.h). Answers
 * now or later. */
#define INVITATIONS_PATH "/api/invitations/"
void invitations_serve(struct service *s, struct request *r);

/* scrape.c: GET /metrics, with the token of a file: the given one, or DIR/metrics.token, which is made where it is not
 * there. Failure: a sentence to stderr, negative. */
must_check int scrape_token_ensure(struct arena *a, const char *data_dir, const char *given, const char **ret_path);
void scrape_serve(struct service *s, struct request *r);

/* families.c: attaches families to what lies below them. Before anything is served. */
void families_setup(void);
/* The kinds of jobs of all families, in the arena. */
struct job_kind;
const struct job_kind *families_jobs(struct arena *a, size_t *ret_count);

#endif
