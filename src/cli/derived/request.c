/* From words and flags to a request: path parameters are words, query and header parameters and the fields of the body
 * are flags. What can be told wrong without the service is told at once, and all of it. */
#include "cli/derived/request.h"

#include "base/json.h"
#include "cli/derived/command.h"
#include "cli/derived/flags.h"

#include <errno.h>

/* A list or an object that is missing: the flags below it that are required. False: there is none. */
static bool parts_required(struct arena *a, const struct op *op, const char *flag)
{
	const struct schema *body = command_body(op);
	struct flag *flags = NULL;
	size_t n = body ? flags_list(a, body, command_use(op), &flags) : 0, length = strlen(flag), told = 0;
	for (size_t i = 0; i < n; i++)
		if (flags[i].required && strncmp(flags[i].name, flag, length) == 0 && flags[i].name[length] == '.') {
			option_refuse("--%s: is required", flags[i].name);
			told++;
		}
	return told;
}

/* Faults, each with the flag that it is about. */
static int faults_tell(struct arena *a, const struct op *op, const struct faults *faults)
{
	for (size_t i = 0; i < faults->count && i < FAULTS_MAX; i++) {
		const char *flag = flag_of_path(a, faults->list[i].path);
		if (*flag && str_is(faults->list[i].text, "is required") && parts_required(a, op, flag))
			continue;
		if (*flag)
			option_refuse("--%s: %.*s", flag, STR_ARG(faults->list[i].text));
		else
			option_refuse("the body %.*s", STR_ARG(faults->list[i].text));
	}
	return faults->count ? -EINVAL : 0;
}

/* The path. */

static int scope_value(struct client *c, struct arena *a, const struct param *p, const char **ret_value)
{
	const struct profile *profile = client_profile(c);
	if (strcmp(p->name, "groupId") == 0)
		return client_project(c, a, ret_value);
	if (!profile->organization)
		return option_refuse("which organization? give --org ID, or set organization in %s", profile->source);
	*ret_value = profile->organization;
	return 0;
}

static void path_write(struct arena *a, const struct op *op, const char *const *values, struct buf *b)
{
	unsigned n = 0;
	buf_z(b, API_BASE);
	for (const char *p = op->path; *p; p++) {
		if (*p != '{') {
			buf_c(b, *p);
			continue;
		}
		buf_z(b, url_escape(a, str_of(values[n++])));
		p = strchr(p, '}');
	}
}

static int path_make(struct request *r, struct client *c, struct arena *a, struct buf *b)
{
	const struct op *op = r->op;
	for (unsigned i = 0; i < op->path_param_count; i++) {
		struct faults faults = {.count = 0};
		const struct param *p = &op->path_params[i];
		if (command_is_scope(p)) {
			int result = scope_value(c, a, p, &r->values[i]);
			if (result < 0)
				return result;
		} else if (p->schema->enum_count &&
		           !schema_check_text(p->schema, str_of(p->name), str_of(r->values[i]), a, &faults)) {
			return option_refuse("%s: \"%s\" %.*s", command_argument(a, p), r->values[i],
			                     STR_ARG(faults.list[0].text));
		}
	}
	path_write(a, op, r->values, b);
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	return str_ends(str_of(text), str_of(end));
}

/* A parameter of a document's own path, from the document: the field of that name, or its name or id. */
static const char *value_in(const json_t *document, const char *param)
{
	const char *by_name = json_string_value(json_object_get(document, "name"));
	const char *const fields[] = {param, "id", "_id", "name"};
	if (strcmp(param, "name") == 0 || (ends_with(param, "Name") && by_name))
		return by_name;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		const char *value = json_string_value(json_object_get(document, fields[i]));
		if (value)
			return value;
	}
	return NULL;
}

const char *request_path_of(struct arena *a, const struct request *r, const struct op *op, const json_t *answer)
{
	const char *values[PATH_PARAMS_MAX] = {NULL};
	for (unsigned i = 0; i < op->path_param_count; i++) {
		for (unsigned k = 0; k < r->op->path_param_count; k++)
			if (strcmp(op->path_params[i].name, r->op->path_params[k].name) == 0)
				values[i] = r->values[k];
		if (!values[i])
			values[i] = value_in(answer, op->path_params[i].name);
		if (!values[i])
			return NULL;
	}
	struct buf b = {0};
	path_write(a, op, values, &b);
	const char *path = arena_z(a, buf_view(&b));
	buf_free(&b);
	return path;
}

/* Query and headers. */

static bool is_header(const struct op *op, const struct param *p)
{
	return op->header_param_count && p >= op->header_params && p < op->header_params + op->header_param_count;
}

static void params_add(struct request *r, struct arena *a, const struct given *given, size_t count, struct buf *b,
                       struct faults *faults)
{
	unsigned n = 0;
	for (size_t i = 0; i < count; i++) {
		const struct param *p = given[i].param;
		struct str text = str_of(given[i].text);
		if (!p || !schema_check_text(p->schema, str_of(p->name), text, a, faults))
			continue;
		if (!is_header(r->op, p))
			buf_printf(b, "%c%s=%s", n++ ? '&' : '?', p->name, url_escape(a, text));
		else if (r->header_count < REQUEST_HEADERS_MAX)
			r->headers[r->header_count++] = arena_printf(a, "%s: %s", p->name, given[i].text).p;
	}
}

static void params_missing(const struct param *params, unsigned n, struct arena *a, const struct given *given,
                           size_t count, struct faults *faults)
{
	for (unsigned i = 0; i < n; i++) {
		bool there = !params[i].required || params[i].schema->default_json;
		for (size_t k = 0; k < count; k++)
			there = there || given[k].param == &params[i];
		if (!there)
			faults_add(faults, a, str_of(params[i].name), "is required");
	}
}

/* The body. */

/* Required fields that the call names already: a parameter of the path, or the project and the organization; and those
 * of something new that have a default. A change says what it changes: a default could undo a choice. */
static int body_fill(struct request *r, struct client *c, struct arena *a, const struct schema *s)
{
	for (unsigned i = 0; i < s->field_count; i++) {
		const struct field *f = &s->fields[i];
		const struct param scope = {.name = f->name};
		const char *value = NULL;
		if (!f->required || f->schema->flags & SCHEMA_READ_ONLY || json_object_get(r->body, f->name))
			continue;
		for (unsigned k = 0; k < r->op->path_param_count; k++)
			if (strcmp(r->op->path_params[k].name, f->name) == 0)
				value = r->values[k];
		if (!value && command_is_scope(&scope)) {
			int result = scope_value(c, a, &scope, &value);
			if (result < 0)
				return result;
		}
		if (value)
			json_put_z(r->body, f->name, value);
		else if (r->op->method == METHOD_POST && f->schema->default_json)
			json_put(r->body, f->name, json_loads(f->schema->default_json, JSON_DECODE_ANY, NULL));
	}
	return 0;
}

/* Names the path alone: the value may be a secret. */
static int set_refuse(const char *text, const char *fault)
{
	struct str path, value;
	flag_cut(str_of(text), &path, &value);
	return option_refuse("--set %.*s: %s", STR_ARG(path), fault);
}

static int flags_apply(struct flags *f, const struct given *given, size_t count)
{
	int result = 0;
	for (size_t i = 0; i < count; i++) {
		if (given[i].param)
			continue;
		bool set = !given[i].path.p;
		const char *fault = set ? flags_assign(f, str_of(given[i].text))
		                        : flags_set(f, given[i].path, str_of(given[i].text));
		if (fault)
			result = set ? set_refuse(given[i].text, fault)
			             : option_refuse("--%.*s: %s", STR_ARG(given[i].path), fault);
	}
	return result;
}

/* Comparisons have two spellings in the API, by what is compared: > and GREATER_THAN. */
static bool operators_turn(json_t *value)
{
	static const char *const pairs[][2] = {{">", "GREATER_THAN"}, {"<", "LESS_THAN"}};
	bool any = false;
	const char *name;
	json_t *child;
	size_t i;
	json_array_foreach(value, i, child)
	{
		any |= operators_turn(child);
	}
	json_object_foreach(value, name, child)
	{
		bool turned = false;
		for (i = 0; i < 4 && !turned && strcmp(name, "operator") == 0 && json_is_string(child); i++)
			turned = strcmp(json_string_value(child), pairs[i / 2][i % 2]) == 0 &&
			         json_string_set(child, pairs[i / 2][!(i % 2)]) == 0;
		any |= turned || operators_turn(child);
	}
	return any;
}

/* Whoever typed the spelling that the place does not take meant the other. */
static void body_check(struct request *r, struct arena *a, const struct schema *s, struct faults *faults)
{
	struct faults found = {.count = 0}, turned = {.count = 0};
	enum schema_use use = command_use(r->op);
	schema_check(s, r->body, use, a, &found);
	json_t *other = found.count ? json_keep(a, json_deep_copy(r->body)) : NULL;
	if (other && operators_turn(other)) {
		schema_check(s, other, use, a, &turned);
		r->body = turned.count ? r->body : other;
	}
	schema_check(s, r->body, use, a, faults);
}

static int body_make(struct request *r, struct client *c, struct arena *a, const struct given *given, size_t count,
                     const char *body, struct faults *faults)
{
	const struct schema *s = command_body(r->op);
	struct flags *f = arena_new_of(a, struct flags);
	struct str text;
	bool flags = false;
	for (size_t i = 0; i < count; i++)
		flags = flags || !given[i].param;
	if (!s)
		return body ? option_refuse("--body: this command takes no body") : 0;
	*f = (struct flags){.arena = a, .schema = s};
	int result = body ? body_read(a, body, &text) : 0;
	if (result < 0)
		return result;
	const char *fault = body ? flags_set_json(f, STR(""), text) : NULL;
	if (fault)
		return option_refuse("--body: %s", fault);
	result = flags_apply(f, given, count);
	if (result < 0 || (!f->body && !r->op->request_required))
		return result;
	r->body = f->body ? f->body : json_keep(a, s->type == TYPE_ARRAY ? json_array() : json_object());
	/* A body that was given whole goes out as it is: the service may know more than this client. */
	if (body && !flags)
		return 0;
	result = body_fill(r, c, a, s);
	if (result == 0 && s->type == TYPE_ARRAY && !json_array_size(r->body))
		faults_add(faults, a, STR_NONE, "is missing: give its fields as flags, or --body FILE");
	else if (result == 0)
		body_check(r, a, s, faults);
	return result;
}

int request_make(struct request *r, struct client *c, struct arena *a, const struct given *given, size_t count,
                 const char *body)
{
	struct faults faults = {.count = 0};
	struct buf b = {0};
	int result = path_make(r, c, a, &b);
	if (result == 0) {
		params_add(r, a, given, count, &b, &faults);
		params_missing(r->op->query_params, r->op->query_param_count, a, given, count, &faults);
		params_missing(r->op->header_params, r->op->header_param_count, a, given, count, &faults);
		result = body_make(r, c, a, given, count, body, &faults);
	}
	if (result == 0)
		result = faults_tell(a, r->op, &faults);
	r->path = arena_z(a, buf_view(&b));
	buf_free(&b);
	return result;
}

/* Showing. */

/* A word for the shell, in single quotes. */
static const char *shell_quoted(struct arena *a, struct str text)
{
	struct buf b = {0};
	buf_c(&b, '\'');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'')
			buf_z(&b, "'\\''");
		else
			buf_c(&b, text.p[i]);
	}
	buf_c(&b, '\'');
	const char *quoted = arena_z(a, buf_view(&b));
	buf_free(&b);
	return quoted;
}

static json_t *body_shown(struct arena *a, const struct client_request *r, const struct schema *schema)
{
	json_t *body = r->body.p ? json_loadb(r->body.p, r->body.n, JSON_DECODE_ANY, NULL) : NULL;
	if (body)
		json_keep(a, body);
	if (body && schema)
		flags_hide_secrets(schema, body);
	return body;
}

static void curl_show(const struct profile *p, struct arena *a, const struct client_request *r, const json_t *body)
{
	const char *url = arena_printf(a, "%s%s", p->base_url, r->path).p;
	printf("curl");
	if (p->ca_file)
		printf(" --cacert %s", shell_quoted(a, str_of(p->ca_file)));
	fputs(p->client_id || p->session ? " --oauth2-bearer \"$TOKEN\""
	                                 : " --digest --user \"$PUBLIC_KEY:$PRIVATE_KEY\"",
	      stdout);
	printf(" -X %s", r->method);
	for (size_t i = 0; i < r->header_count; i++)
		printf(" -H %s", shell_quoted(a, str_of(r->headers[i])));
	if (body)
		printf(" -H 'Content-Type: application/json' -d %s", shell_quoted(a, json_text(a, body)));
	printf(" %s\n", shell_quoted(a, str_of(url)));
}

void request_show(const struct client *c, struct arena *a, const struct client_request *r, const struct schema *schema,
                  bool as_curl)
{
	const struct profile *p = client_profile(c);
	const json_t *body = body_shown(a, r, schema);
	if (as_curl) {
		curl_show(p, a, r, body);
		return;
	}
	printf("%s %s%s\nAuthorization: %s ***\n", r->method, p->base_url, r->path,
	       p->client_id || p->session ? "Bearer" : "Digest");
	for (size_t i = 0; i < r->header_count; i++)
		printf("%s\n", r->headers[i]);
	if (body) {
		printf("Content-Type: application/json\n\n");
		json_dumpf(body, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
		putchar('\n');
	}
}
