/* The client side of the API: one connection to one service, signed in from a profile. */
#ifndef STEWARD_CLI_CLIENT_H
#define STEWARD_CLI_CLIENT_H

#include "base/buf.h"
#include "cli/profile.h"

#include <jansson.h>

struct client;

struct client_request {
	const char *method, *path;  /* path with its query, percent-encoded, below the base URL: "/api/svc/v2/groups" */
	const char *accept;         /* or NULL */
	const char *const *headers; /* more of them: "Name: value" */
	size_t header_count;
	struct str body;    /* JSON; p NULL: none */
	FILE *sink;         /* or NULL; gets the body of a success as it arrives, instead of the answer */
	bool quiet;         /* no message when the service cannot be reached */
	int64_t timeout_ms; /* for the whole call; 0: five minutes, or with a sink no limit while data arrives */
};

/* Everything lives in the arena of the call. */
struct client_answer {
	int status;
	const char *path;    /* of the request */
	struct str body;     /* empty when it went to the sink */
	json_t *json;        /* the parsed body, or NULL when it is not JSON */
	struct str progress; /* X-Steward-Progress */
	struct str headers;  /* status line and headers, as received */
	unsigned retry_after;
	size_t parts; /* at least as many as the values in the JSON */
};

must_check int client_open(struct arena *a, const struct profile *p, struct client **ret_client);
/* Accepts NULL. */
void client_close(struct client *c);
const struct profile *client_profile(const struct client *c);

/* 0: there is an answer, whatever its status. Negative: there is none; the reason and a remedy are on stderr. */
must_check int client_call(struct client *c, struct arena *a, const struct client_request *r,
                           struct client_answer *ret_answer);
/* Posts a form without credentials, as the machine that it is. As client_call(). */
must_check int client_form(struct client *c, struct arena *a, const char *path, const char *form,
                           struct client_answer *ret_answer);
/* The exit code for a call without an answer, or for a question that could not be sent. */
int client_exit(int error);
/* Explains on stderr what the service refused, and what to do. */
void client_explain(struct client *c, const struct client_answer *answer);
/* Says that what answers is not the API; returns the error of that. */
int client_stranger(const struct client *c, bool quiet);
/* A call that must succeed; a failure is explained. `body` may be NULL. Returns an exit code. */
int client_ask(struct client *c, struct arena *a, const char *method, const char *path, const json_t *body,
               json_t **ret_json);
/* A GET of a document that must succeed, likewise. */
int client_get(struct client *c, struct arena *a, const char *path, struct client_answer *ret_answer);
/* The value of a header; STR_NONE when there is none. */
struct str client_header(const struct client_answer *answer, const char *name);

/* Text of the service for a terminal: without control characters. */
const char *text_shown(struct arena *a, struct str text);
/* Text of the service on standard output, with its lines: as it is, or for a terminal without control characters. */
void text_print(struct arena *a, struct str text);
/* Percent-encodes all but letters, digits and "-._~". */
const char *url_escape(struct arena *a, struct str text);
/* The text again. */
const char *url_unescape(struct arena *a, struct str text);
/* The id of the project that the profile or --project names. Negative, after a message on stderr. */
must_check int client_project(struct client *c, struct arena *a, const char **ret_id);

/* The text of --body, the same for every command: JSON itself, which begins with { or [, or the file that has it; - is
 * standard input. The file may have an @ before it, as curl has it. Checked to be JSON. */
must_check int body_read(struct arena *a, const char *given, struct str *ret_body);

#endif
