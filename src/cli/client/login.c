/* `steward login` and `steward logout`: a profile is made when a call with it has worked, and not before. The service's
 * authority is pinned: a copy of its certificate lies beside the profile, and nothing else is trusted from then on.
 * Secrets come from the terminal, the environment or standard input; there is no option for them, since options can be
 * seen by other users of the machine. */
#include "base/buf.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/client/authority.h"
#include "cli/wait.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct login_arguments {
	const char *url, *client_id, *public_key, *ca_file, *fingerprint, *project, *organization;
	bool web;
};

#define AT(member) offsetof(struct login_arguments, member)

const struct option_row login_options[] = {
        {"url", 0, OPTION_URL, AT(url), NULL, "URL", "Where the service is: https://HOST:PORT."},
        {"web", 0, OPTION_SWITCH, AT(web), NULL, NULL, "Sign in as yourself, in a browser.", .flag_only = true},
        {"client-id", 0, OPTION_TEXT, AT(client_id), NULL, "ID", "Service account to sign in with."},
        {"public-key", 0, OPTION_TEXT, AT(public_key), NULL, "KEY", "API key to sign in with, instead."},
        {"ca-file", 0, OPTION_FILE, AT(ca_file), NULL, "FILE", "Certificate of the service's authority."},
        {"ca-fingerprint", 0, OPTION_TEXT, AT(fingerprint), NULL, "SHA256",
         "Trust the authority that the service names, if it has this fingerprint."},
        {"project", 0, OPTION_TEXT, AT(project), NULL, "ID", "Project to work in, by id or by name."},
        {"org", 0, OPTION_TEXT, AT(organization), NULL, "ID", "Organization to work in."},
};
const size_t login_option_count = sizeof login_options / sizeof *login_options;

const struct option_row logout_options[] = {
        {"profile", 0, OPTION_TEXT, 0, NULL, "NAME", "The same as the word NAME."},
};
const size_t logout_option_count = sizeof logout_options / sizeof *logout_options;

#define ACCOUNT_PREFIX "mdb_sa_id_"
#define DEVICE_POLL_S 5
#define DEVICE_MOST_S 1800

struct login {
	struct arena *arena;
	struct options *options;
	struct login_arguments *given;
	const char *name;
	struct profile profile;
	struct str pem; /* of the pinned authority, or empty */
	const char *organization_name, *project_name;
};

static int missing(const char *what)
{
	return option_refuse("login: %s is missing; \"steward login --help\" shows how to give it", what);
}

/* Where the service is. */

static int url_settle(struct login *l)
{
	if (!l->given->url && ask_is_possible()) {
		const char *text = ask_text(l->arena, "URL of the service");
		int r = text ? options_set(l->options, STR("url"), str_of(text), OPTION_FROM_FLAG, "URL") : 0;
		if (r < 0)
			return r;
	}
	l->profile.base_url = l->given->url;
	return l->given->url ? 0 : missing("--url");
}

/* Whom to trust. */

static int fetched_confirm(const struct login *l, const char *fingerprint)
{
	const char *wanted = l->given->fingerprint;
	if (wanted && authority_fingerprints_equal(wanted, fingerprint))
		return 0;
	if (wanted)
		option_refuse(
		        "%s names an authority with another fingerprint: %s; either the service has a new one, or "
		        "somebody answers in its place: ask its operator",
		        l->given->url, fingerprint);
	else if (!ask_is_possible())
		option_refuse("%s is signed by an authority that this machine does not know; its fingerprint is %s: "
		              "compare it with that of tls/ca.crt in the service's data directory, and give it as "
		              "--ca-fingerprint, or give the file as --ca-file",
		              l->given->url, fingerprint);
	if (wanted || !ask_is_possible())
		return -EHOSTUNREACH;
	fprintf(stderr,
	        "%s is signed by an authority that this machine does not know. Its fingerprint (SHA-256):\n\n  %s\n\n"
	        "On the machine of the service, this shows what it should be:\n\n"
	        "  openssl x509 -noout -fingerprint -sha256 -in DATA/tls/ca.crt\n\n",
	        l->given->url, fingerprint);
	if (ask_yes("Is it the same, and shall it be trusted?"))
		return 0;
	option_refuse("login: not trusted, nothing is kept");
	return -EHOSTUNREACH;
}

static int authority_settle(struct login *l)
{
	enum authority_known known = AUTHORITY_UNKNOWN;
	const struct login_arguments *g = l->given;
	int r;
	if (g->ca_file) {
		r = authority_read(l->arena, g->ca_file, &l->pem);
		if (r == 0 && g->fingerprint &&
		    !authority_fingerprints_equal(g->fingerprint, authority_fingerprint(l->arena, l->pem)))
			r = option_refuse("--ca-file: has the fingerprint %s, which is not that of --ca-fingerprint",
			                  authority_fingerprint(l->arena, l->pem));
		return r;
	}
	r = authority_check(g->url, &known);
	/* What the machine trusts anyway is pinned only where a fingerprint asks for it. */
	if (r < 0 || (known == AUTHORITY_KNOWN && !g->fingerprint))
		return r;
	r = authority_fetch(l->arena, g->url, &l->pem);
	return r < 0 ? r : fetched_confirm(l, authority_fingerprint(l->arena, l->pem));
}

/* The copy's name has a part of the fingerprint, so that a login that fails leaves the old copy as it is. */
static int authority_pin(struct login *l, bool *ret_was_there)
{
	struct buf part = {0};
	if (!l->pem.n)
		return 0;
	for (const char *p = authority_fingerprint(l->arena, l->pem); p && *p && part.n < 16; p++)
		if (*p != ':')
			buf_c(&part, (char)tolower((unsigned char)*p));
	l->profile.ca_file = arena_printf(l->arena, "%s/authorities/%s-%.*s.crt", config_dir(l->arena), l->name,
	                                  STR_ARG(buf_view(&part)))
	                             .p;
	buf_free(&part);
	*ret_was_there = access(l->profile.ca_file, F_OK) == 0;
	return config_write(l->arena, l->profile.ca_file, l->pem);
}

/* Who signs in. */

static const char *secret_of(struct login *l, const char *variable, const char *question)
{
	const char *text = getenv(variable);
	return text && *text ? text : ask_secret(l->arena, question);
}

static int credentials_settle(struct login *l)
{
	struct login_arguments *g = l->given;
	struct profile *p = &l->profile;
	if (g->web && (g->client_id || g->public_key))
		return option_refuse("login: give --web, --client-id or --public-key, and one of them");
	if (g->client_id && g->public_key)
		return option_refuse("login: give --client-id or --public-key, not both");
	if (g->web)
		return 0;
	if (!g->client_id && !g->public_key && ask_is_possible()) {
		const char *id = ask_text(l->arena, "Client id of a service account, or public key of an API key");
		bool account = id && strncmp(id, ACCOUNT_PREFIX, strlen(ACCOUNT_PREFIX)) == 0;
		*(account ? &g->client_id : &g->public_key) = id;
	}
	p->client_id = g->client_id;
	p->public_key = g->public_key;
	if (p->client_id)
		p->client_secret = secret_of(l, "STEWARD_CLIENT_SECRET", "Its secret");
	else if (p->public_key)
		p->private_key = secret_of(l, "STEWARD_PRIVATE_KEY", "Its private key");
	else
		return missing("--client-id of a service account, or --public-key of an API key");
	if (!p->client_secret && !p->private_key)
		return missing(p->client_id ? "the secret (from STEWARD_CLIENT_SECRET or standard input)"
		                            : "the private key (from STEWARD_PRIVATE_KEY or standard input)");
	return 0;
}

/* In a browser: device authorization (RFC 8628). */

struct device {
	const char *code, *form; /* form: of the question for the token */
	int64_t interval_ms, left_ms;
};

static int stranger(const struct login *l)
{
	option_refuse("%s does not let people sign in from here; is it a service of a release that can?",
	              l->profile.base_url);
	return EXIT_NOT_DONE;
}

/* Where the service wants the person to go. A link that is not of the service itself is not shown. */
static int device_ask(struct login *l, struct client *c, struct device *ret_device)
{
	struct client_answer answer;
	int r = client_form(c, l->arena, "/api/oauth/device", "client_id=steward", &answer);
	if (r < 0)
		return client_exit(r);
	const char *device = json_string_value(json_object_get(answer.json, "device_code")),
	           *code = json_string_value(json_object_get(answer.json, "user_code")),
	           *link = json_string_value(json_object_get(answer.json, "verification_uri_complete"));
	json_int_t seconds = json_integer_value(json_object_get(answer.json, "expires_in")),
	           interval = json_integer_value(json_object_get(answer.json, "interval"));
	if (answer.status == 429 || answer.status == 503) {
		client_explain(c, &answer);
		return EXIT_NOT_DONE;
	}
	if (answer.status != 200 || !device || !code || !link || !str_starts(str_of(link), STR("https://")))
		return stranger(l);
	*ret_device = (struct device){
	        .code = text_shown(l->arena, str_of(code)),
	        .form = arena_printf(l->arena,
	                             "grant_type=urn%%3Aietf%%3Aparams%%3Aoauth%%3Agrant-type%%3Adevice_code"
	                             "&client_id=steward&device_code=%s",
	                             url_escape(l->arena, str_of(device)))
	                        .p,
	        .interval_ms = (interval > 0 && interval < 60 ? interval : DEVICE_POLL_S) * 1000,
	        .left_ms = (seconds > 0 && seconds < DEVICE_MOST_S ? seconds : DEVICE_MOST_S) * 1000};
	fprintf(stderr,
	        "Open this page in a browser, and allow it there if the page shows the same code:\n\n  %s\n\n  %s\n\n",
	        text_shown(l->arena, str_of(link)), ret_device->code);
	return EXIT_DONE;
}

/* One question for the token. False: it has to be asked again. */
static bool device_poll(struct login *l, struct client *c, struct device *d, int *ret_exit)
{
	struct client_answer answer;
	int r = client_form(c, l->arena, "/api/oauth/token", d->form, &answer);
	if (r < 0) {
		*ret_exit = client_exit(r);
		return true;
	}
	struct str error = json_field(answer.json, "error");
	if (answer.status == 200) {
		l->profile.session = json_string_value(json_object_get(answer.json, "access_token"));
		l->profile.user = json_string_value(json_object_get(answer.json, "username"));
		*ret_exit = l->profile.session ? EXIT_DONE : stranger(l);
		return true;
	}
	if (str_is(error, "slow_down"))
		d->interval_ms += DEVICE_POLL_S * 1000L;
	if (str_is_one_of("authorization_pending|slow_down|temporarily_unavailable", error))
		return false;
	if (str_is(error, "access_denied"))
		option_refuse("login: it was refused in the browser");
	else
		option_refuse("login: the code %s is over; \"steward login --web\" asks for another", d->code);
	*ret_exit = EXIT_NOT_DONE;
	return true;
}

static int web_sign_in(struct login *l)
{
	struct client *c;
	struct device d = {.code = ""};
	if (!l->given->web)
		return EXIT_DONE;
	l->profile.source = "what you gave";
	if (client_open(l->arena, &l->profile, &c) < 0)
		return EXIT_USAGE;
	int code = device_ask(l, c, &d);
	bool over = code != EXIT_DONE;
	while (!over) {
		wait_pause_ms(d.interval_ms < d.left_ms ? d.interval_ms : d.left_ms);
		d.left_ms -= d.interval_ms;
		over = device_poll(l, c, &d, &code);
		if (!over && d.left_ms <= 0) {
			option_refuse("login: nobody has allowed it in time; \"steward login --web\" asks again");
			code = EXIT_NOT_DONE;
			over = true;
		}
	}
	client_close(c);
	return code;
}

/* Whether it works, and what there is to work in. */

static const char *field(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

/* The one that was named must be there; where none was, the only one there is. Returns an exit code. */
static int place_find(struct login *l, struct client *c, const char *list, const char *given, const char **ret_id,
                      const char **ret_name)
{
	json_t *answer = NULL, *found;
	const char *path = given ? arena_printf(l->arena, API_BASE "/%s/%s", list, given).p
	                         : arena_printf(l->arena, API_BASE "/%s?itemsPerPage=2", list).p;
	int code = client_ask(c, l->arena, "GET", path, NULL, &answer);
	if (code != EXIT_DONE)
		return code;
	json_t *results = json_object_get(answer, "results");
	found = given ? answer : json_array_size(results) == 1 ? json_array_get(results, 0) : NULL;
	if (found) {
		*ret_id = arena_z(l->arena, str_of(field(found, "id")));
		*ret_name = text_shown(l->arena, str_of(field(found, "name")));
	}
	return EXIT_DONE;
}

static int login_check(struct login *l)
{
	struct client *c;
	const char *project = NULL;
	l->profile.source = "what you gave";
	l->profile.project = l->given->project;
	if (client_open(l->arena, &l->profile, &c) < 0)
		return EXIT_USAGE;
	int code = place_find(l, c, "orgs",
	                      l->given->organization ? url_escape(l->arena, str_of(l->given->organization)) : NULL,
	                      &l->profile.organization, &l->organization_name);
	if (code == EXIT_DONE && l->given->project) {
		int r = client_project(c, l->arena, &project);
		code = r < 0 ? client_exit(r) : EXIT_DONE;
	}
	if (code == EXIT_DONE)
		code = place_find(l, c, "groups", project, &l->profile.project, &l->project_name);
	client_close(c);
	return code;
}

/* What is kept. */

static int setting_add(struct buf *b, const char *name, const char *value)
{
	for (const char *p = value; p && *p; p++)
		if (*p == '"' || iscntrl((unsigned char)*p))
			return option_refuse("%s: holds a character that no such value has", name);
	if (value)
		buf_printf(b, "%s = \"%s\"\n", name, value);
	return 0;
}

static int profile_text(const struct profile *p, struct buf *b)
{
	buf_z(b, "# Written by \"steward login\".\n");
	for (size_t i = 0; i < profile_setting_count; i++) {
		const struct option_row *row = &profile_settings[i];
		const char *value = *(const char *const *)(const void *)((const char *)p + row->offset);
		int r = setting_add(b, row->name, value);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Copies lie in one folder; what lies elsewhere is not ours to remove. */
static void pin_remove(struct arena *a, const char *file)
{
	const char *folder = arena_printf(a, "%s/authorities/", config_dir(a)).p;
	if (file && strncmp(file, folder, strlen(folder)) == 0)
		unlink(file);
}

static int profile_keep(struct login *l)
{
	const char *path = profile_path(l->arena, l->name);
	struct profile before = {.source = NULL};
	struct buf b = {0};
	bool replaces = access(path, F_OK) == 0 && profile_read(l->arena, path, &before) == 0;
	int r = profile_text(&l->profile, &b);
	if (r == 0)
		r = config_write(l->arena, path, buf_view(&b));
	if (r == 0)
		r = profile_choose(l->arena, l->name);
	explicit_bzero(b.p, b.n);
	buf_free(&b);
	if (r == 0 && replaces && before.ca_file &&
	    (!l->profile.ca_file || strcmp(before.ca_file, l->profile.ca_file) != 0))
		pin_remove(l->arena, before.ca_file);
	return r;
}

static void place_print(const char *label, const char *name, const char *id)
{
	if (id)
		printf("%-13s %s (%s)\n", label, name, id);
	else
		printf("%-13s none chosen: \"steward config set %s ID\" chooses one\n", label, label);
}

static void login_print(const struct login *l)
{
	const struct profile *p = &l->profile;
	printf("%-13s %s\n%-13s %s\n", "profile", l->name, "service", p->base_url);
	printf("%-13s %s %s\n", "signed in as",
	       p->client_id ? "service account"
	       : p->user    ? "user"
	                    : "API key",
	       p->client_id ? p->client_id
	       : p->user    ? text_shown(l->arena, str_of(p->user))
	                    : p->public_key);
	place_print("organization", l->organization_name, p->organization);
	place_print("project", l->project_name, p->project);
}

static int login_run(struct login *l)
{
	int r = url_settle(l);
	if (r == 0)
		r = authority_settle(l);
	if (r == 0)
		r = credentials_settle(l);
	bool pinned = false; /* by an earlier login */
	if (r == 0)
		r = authority_pin(l, &pinned);
	if (r < 0)
		return client_exit(r);
	int code = web_sign_in(l);
	if (code == EXIT_DONE)
		code = login_check(l);
	if (code == EXIT_DONE && profile_keep(l) < 0)
		code = EXIT_NOT_DONE;
	if (code == EXIT_DONE)
		login_print(l);
	else if (!pinned)
		pin_remove(l->arena, l->profile.ca_file);
	return code;
}

int login_command(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct login_arguments g = {.url = NULL};
	struct options given;
	const char *name = "default";
	size_t count = 0;
	options_setup(&given, "login", login_options, login_option_count, &g, a);
	int r = options_args(&given, argc, argv, &name, 1, &count), code = EXIT_USAGE;
	if (r == 0)
		r = options_environment(&given);
	if (r == OPTIONS_HELP) {
		help_command(stdout, "login");
		code = EXIT_DONE;
	} else if (r == 0 && !profile_name_is_valid(name)) {
		option_refuse("login: \"%s\" cannot be the name of a profile: letters, digits, \"-\", \"_\" and \".\"",
		              name);
	} else if (r == 0) {
		struct login l = {.arena = a, .options = &given, .given = &g, .name = name};
		code = login_run(&l);
	}
	arena_free(a);
	return code;
}

/* Logging out: the profile is forgotten, and a sign-in by a browser ended. */

/* A service that is away does not keep anybody signed in here: the session is over by itself within hours. */
static void session_end(struct arena *a, const struct profile *p)
{
	struct client *c;
	struct client_answer answer;
	if (!p->session || !p->base_url || client_open(a, p, &c) < 0)
		return;
	if (client_form(c, a, "/api/oauth/revoke", arena_printf(a, "token=%s", url_escape(a, str_of(p->session))).p,
	                &answer) < 0 ||
	    answer.status != 200)
		fputs("steward: the service was not told: the account's page in the console ends the sign-in\n",
		      stderr);
	client_close(c);
}

static int logout_run(struct arena *a, const char *name)
{
	const char *path = profile_path(a, name);
	struct profile p = {.source = NULL};
	if (access(path, F_OK) < 0) {
		option_refuse("logout: there is no profile \"%s\"; \"steward config list\" shows them", name);
		return EXIT_USAGE;
	}
	if (profile_read(a, path, &p) == 0) {
		session_end(a, &p);
		pin_remove(a, p.ca_file);
	}
	if (unlink(path) < 0) {
		option_refuse("%s: cannot be removed: %s", path, strerror(errno));
		return EXIT_NOT_DONE;
	}
	if (strcmp(profile_current(a), name) == 0)
		unlink(arena_printf(a, "%s/current", config_dir(a)).p);
	printf("the profile %s is removed\n", name);
	return EXIT_DONE;
}

int logout_command(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct options given;
	const char *named = NULL, *word = NULL;
	size_t count = 0;
	options_setup(&given, "logout", logout_options, logout_option_count, &named, a);
	int r = options_args(&given, argc, argv, &word, 1, &count), code = EXIT_USAGE;
	const char *name = word ? word : named ? named : profile_current(a);
	if (r == OPTIONS_HELP) {
		help_command(stdout, "logout");
		code = EXIT_DONE;
	} else if (r == 0 && !profile_name_is_valid(name)) {
		option_refuse("logout: \"%s\" is not the name of a profile", name);
	} else if (r == 0) {
		code = logout_run(a, name);
	}
	arena_free(a);
	return code;
}
