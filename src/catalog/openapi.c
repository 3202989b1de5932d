/* The OpenAPI document. Paths are complete (with the base path), so that the root needs no trailing slash. Two rows
 * whose paths differ only in parameter names are one path in OpenAPI: the first row's names are used for both. The
 * older v1.0 prefix is left out, because v2 has everything that it has. */
#include "catalog/openapi.h"

#include "catalog/common.h"
#include "catalog/openapi_schema.h"

struct export
{
	struct buf *b;
	struct str date;
	const char *base_url;
	struct schema_marks *marks;
};

/* The version of a row at the export's date, or NULL. */
static const struct op_version *version_at(const struct export *x, const struct op *op)
{
	const struct op_version *found = NULL;
	for (unsigned i = 0; i < op->version_count; i++) {
		struct str date = str_of(op->versions[i].date);
		size_t n = date.n < x->date.n ? date.n : x->date.n;
		if (memcmp(date.p, x->date.p, n) <= 0)
			found = &op->versions[i];
	}
	return found;
}

/* Whether two paths differ at most in the names of their parameters. */
static bool same_template(const char *a, const char *b)
{
	while (*a && *a == *b) {
		if (*a == '{') {
			a += strcspn(a, "}");
			b += strcspn(b, "}");
		}
		a++;
		b++;
	}
	return *a == *b;
}

static void write_ref(struct buf *b, const char *kind, const char *name)
{
	json_open(b, '{');
	json_key(b, "$ref");
	json_sep(b);
	buf_printf(b, "\"#/components/%s/%s\"", kind, name);
	json_close(b, '}');
}

static void write_param(struct buf *b, const struct param *p, struct str name, const char *in)
{
	json_open(b, '{');
	json_pair_str(b, "name", name);
	json_pair_z(b, "in", in);
	if (p->description)
		json_pair_z(b, "description", p->description);
	if (p->required || strcmp(in, "path") == 0)
		json_pair_bool(b, "required", true);
	if (p->schema->type == TYPE_ARRAY && strcmp(in, "query") == 0) {
		json_pair_z(b, "style", "form");
		json_pair_bool(b, "explode", true);
	}
	json_key(b, "schema");
	openapi_schema(b, p->schema);
	if (p->example) {
		json_key(b, "example");
		json_raw(b, str_of(p->example));
	}
	json_close(b, '}');
}

/* The name of a path's next parameter; moves *at past it. */
static struct str next_name(const char **at)
{
	const char *from = *at + strcspn(*at, "{");
	size_t n = strcspn(from, "}");
	*at = from + n;
	return n ? (struct str){from + 1, n - 1} : STR_NONE;
}

static void write_params(struct export *x, const struct op *op, const char *path)
{
	struct buf *b = x->b;
	const char *at = path;
	json_key(b, "parameters");
	json_open(b, '[');
	for (unsigned i = 0; i < op->path_param_count; i++)
		write_param(b, &op->path_params[i], next_name(&at), "path");
	for (unsigned i = 0; i < op->query_param_count; i++)
		write_param(b, &op->query_params[i], str_of(op->query_params[i].name), "query");
	for (unsigned i = 0; i < op->header_param_count; i++)
		write_param(b, &op->header_params[i], str_of(op->header_params[i].name), "header");
	for (int i = 0; i < COMMON_COUNT; i++)
		if (common_applies((enum common)i, op))
			write_ref(b, "parameters", common_params[i].name);
	json_close(b, ']');
}

/* Examples are kept under the name of their schema, because many bodies share a schema. The example of a schema without
 * a name is written where it is used. */
static void write_example(struct buf *b, const struct schema *schema, const char *example, bool request)
{
	if (!example)
		return;
	json_key(b, "examples");
	json_open(b, '{');
	json_key(b, "usual");
	if (schema && schema->name) {
		json_open(b, '{');
		json_key(b, "$ref");
		json_sep(b);
		buf_printf(b, "\"#/components/examples/%s.%s\"", schema->name, request ? "sent" : "answered");
		json_close(b, '}');
	} else {
		json_open(b, '{');
		json_key(b, "value");
		json_raw(b, str_of(example));
		json_close(b, '}');
	}
	json_close(b, '}');
}

static void write_media(struct buf *b, const char *date, const char *form, const struct schema *schema,
                        const char *example, bool request)
{
	json_sep(b);
	buf_printf(b, "\"application/vnd.svc.%s+%s\":{\"schema\":", date, form);
	if (schema)
		openapi_schema(b, schema);
	else if (strcmp(form, "json") == 0)
		buf_z(b, "{}");
	else
		buf_printf(b, "{\"type\":\"string\"%s}", strcmp(form, "gzip") == 0 ? ",\"format\":\"binary\"" : "");
	write_example(b, schema, example, request);
	buf_c(b, '}');
}

/* Describes a body: the description of its schema, or of a list's entries. */
static const char *body_words(const struct schema *s)
{
	while (s && !s->description && s->items)
		s = s->items;
	return s ? s->description : NULL;
}

static void write_request(struct buf *b, const struct op *op, const struct op_version *v)
{
	if (!v->request)
		return;
	json_key(b, "requestBody");
	json_open(b, '{');
	const char *words = body_words(v->request);
	json_pair_z(b, "description", words ? words : "What the operation is to work with.");
	json_pair_bool(b, "required", op->request_required);
	json_key(b, "content");
	json_open(b, '{');
	write_media(b, v->date, "json", v->request, v->request_example, true);
	json_key(b, "application/json");
	json_open(b, '{');
	json_key(b, "schema");
	openapi_schema(b, v->request);
	write_example(b, v->request, v->request_example, true);
	json_close(b, '}');
	json_close(b, '}');
	json_close(b, '}');
}

static const struct {
	int status;
	const char *name, *words;
} errors[] = {
        {400, "badRequest",
         "Something is wrong with the request; the detail names each wrong field and what would be right."},
        {401, "unauthorized",
         "Credentials are missing or wrong, or their owner is no member of the organization or project."},
        {402, "paymentRequired", "The organization is locked, because an invoice is not paid: it makes nothing new."},
        {403, "forbidden", "No role of the caller permits this, or the address is not on the access list."},
        {404, "notFound", "The resource, or the context of a list, does not exist."},
        {406, "notAcceptable", "The Accept header asks for a version or a media type that there is not."},
        {409, "conflict",
         "An entity with a value that must be unique exists already, or the state forbids the change."},
        {412, "preconditionFailed", "The resource has another revision than If-Match says."},
        {415, "unsupportedMediaType", "The Content-Type of the body is not JSON."},
        {429, "tooManyRequests", "The rate-limit bucket is empty; Retry-After says when to try again."},
        {500, "unexpected", "The service failed; try again later."},
        {501, "notImplemented", "This service does not have the operation yet."},
};

#define ERROR_COUNT (sizeof errors / sizeof *errors)

static bool error_applies(int status, const struct op *op, const struct op_version *v)
{
	switch (status) {
	case 402: return op->writes && op->method != METHOD_DELETE && !op->while_locked && op->tenant != TENANT_PUBLIC;
	case 401:
	case 403: return op->tenant != TENANT_PUBLIC;
	case 404: return op->path_param_count > 0;
	case 409: return op->method != METHOD_GET;
	case 412: return op->method == METHOD_PUT || op->method == METHOD_PATCH || op->method == METHOD_DELETE;
	case 415: return v->request != NULL;
	case 501: return op->handler == NULL;
	default: return true;
	}
}

static void write_headers(struct buf *b)
{
	json_key(b, "headers");
	json_open(b, '{');
	json_key(b, "RateLimit-Limit");
	write_ref(b, "headers", "RateLimit-Limit");
	json_key(b, "RateLimit-Remaining");
	write_ref(b, "headers", "RateLimit-Remaining");
	json_key(b, "X-Request-Id");
	write_ref(b, "headers", "X-Request-Id");
	json_close(b, '}');
}

static void write_success(struct buf *b, const struct op *op, const struct op_version *v, int status)
{
	const char *words = status == 204 ? NULL : body_words(v->response);
	struct buf text = {0};
	buf_z(&text, status == 201   ? "Created"
	             : status == 202 ? "Accepted; the work goes on"
	             : status == 204 ? "Done; no body"
	                             : "Done");
	if (words)
		buf_printf(&text, ". The body: %s", words);
	json_sep(b);
	buf_printf(b, "\"%d\":{\"description\":", status);
	json_str(b, buf_view(&text));
	buf_free(&text);
	write_headers(b);
	if (status != 204) {
		json_key(b, "content");
		json_open(b, '{');
		if (op->produces & PRODUCES_JSON)
			write_media(b, v->date, "json", v->response, v->response_example, false);
		if (op->produces & PRODUCES_GZIP)
			write_media(b, v->date, "gzip", NULL, NULL, false);
		if (op->produces & PRODUCES_CSV)
			write_media(b, v->date, "csv", NULL, NULL, false);
		json_close(b, '}');
	}
	buf_c(b, '}');
}

static void write_responses(struct buf *b, const struct op *op, const struct op_version *v)
{
	json_key(b, "responses");
	json_open(b, '{');
	write_success(b, op, v, op->success);
	if (op->other_success && op->other_success != op->success)
		write_success(b, op, v, op->other_success);
	for (size_t i = 0; i < ERROR_COUNT; i++) {
		if (!error_applies(errors[i].status, op, v))
			continue;
		json_sep(b);
		buf_printf(b, "\"%d\":", errors[i].status);
		write_ref(b, "responses", errors[i].name);
	}
	json_close(b, '}');
}

static void write_extensions(struct buf *b, const struct op *op, const struct op_version *v)
{
	static const char *const scopes[] = {"GROUP", "ORGANIZATION", "USER", "IP"};
	json_key(b, "x-steward-roles");
	json_open(b, '[');
	for (unsigned i = 0; i < role_count; i++)
		if (op->roles >> i & 1)
			json_z(b, role_names[i]);
	json_close(b, ']');
	json_key(b, "x-steward-rate-limit");
	json_open(b, '{');
	json_pair_z(b, "set", op->set->id);
	json_pair_z(b, "name", op->set->name);
	json_pair_z(b, "scope", scopes[op->set->scope]);
	json_pair_int(b, "capacity", op->set->capacity);
	json_pair_int(b, "refillRate", op->set->refill);
	json_pair_int(b, "refillDurationSeconds", op->set->seconds);
	json_close(b, '}');
	json_pair_z(b, "x-steward-version", v->date);
	if (op->danger)
		json_pair_z(b, "x-steward-danger", op->danger == DANGER_NAME ? "name" : "confirm");
	if (v->sunset)
		json_pair_z(b, "x-steward-sunset", v->sunset);
}

static void write_operation(struct export *x, const struct op *op, const char *path)
{
	static const char *const keys[] = {"get", "post", "put", "patch", "delete", "head"};
	const struct op_version *v = version_at(x, op);
	struct buf *b = x->b;
	json_key(b, keys[op->method]);
	json_open(b, '{');
	json_pair_z(b, "operationId", op->id);
	json_key(b, "tags");
	json_open(b, '[');
	json_z(b, op->tag);
	json_close(b, ']');
	if (op->summary)
		json_pair_z(b, "summary", op->summary);
	json_pair_z(b, "description", op->description);
	if (op->deprecated || v->sunset)
		json_pair_bool(b, "deprecated", true);
	if (op->tenant == TENANT_PUBLIC) {
		json_key(b, "security");
		json_open(b, '[');
		json_close(b, ']');
	}
	write_params(x, op, path);
	write_request(b, op, v);
	write_responses(b, op, v);
	write_extensions(b, op, v);
	json_close(b, '}');
}

static void write_path(struct export *x, unsigned first)
{
	const char *path = catalog_ops[first].path;
	for (unsigned i = 0; i < first; i++)
		if (version_at(x, &catalog_ops[i]) && same_template(catalog_ops[i].path, path))
			return; /* written with that row */
	json_sep(x->b);
	buf_printf(x->b, "\"%s%s\":", API_BASE, path);
	json_open(x->b, '{');
	for (unsigned i = first; i < catalog_op_count; i++)
		if (version_at(x, &catalog_ops[i]) && same_template(catalog_ops[i].path, path))
			write_operation(x, &catalog_ops[i], path);
	json_close(x->b, '}');
}

static void write_paths(struct export *x)
{
	json_key(x->b, "paths");
	json_open(x->b, '{');
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (version_at(x, &catalog_ops[i]))
			write_path(x, i);
	json_close(x->b, '}');
}

static void mark_ops(struct export *x)
{
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct op *op = &catalog_ops[i];
		const struct op_version *v = version_at(x, op);
		if (!v)
			continue;
		openapi_mark(x->marks, v->request);
		openapi_mark(x->marks, v->response);
		for (unsigned k = 0; k < op->path_param_count; k++)
			openapi_mark(x->marks, op->path_params[k].schema);
		for (unsigned k = 0; k < op->query_param_count; k++)
			openapi_mark(x->marks, op->query_params[k].schema);
		for (unsigned k = 0; k < op->header_param_count; k++)
			openapi_mark(x->marks, op->header_params[k].schema);
	}
}

static void write_error_responses(struct buf *b)
{
	json_key(b, "responses");
	json_open(b, '{');
	for (size_t i = 0; i < ERROR_COUNT; i++) {
		json_key(b, errors[i].name);
		json_open(b, '{');
		json_pair_z(b, "description", errors[i].words);
		json_key(b, "content");
		buf_z(b, "{\"application/json\":{\"schema\":");
		write_ref(b, "schemas", "ApiError");
		buf_z(b, "}}");
		json_close(b, '}');
	}
	json_close(b, '}');
}

/* One example for each schema name and direction. Whether a schema was written already is found by searching the
 * operations before this one. */
static void write_examples(struct export *x)
{
	struct schema_marks *marks[2] = {openapi_marks_new(), openapi_marks_new()};
	json_key(x->b, "examples");
	json_open(x->b, '{');
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct op_version *v = version_at(x, &catalog_ops[i]);
		for (int sent = 0; v && sent < 2; sent++) {
			const struct schema *s = sent ? v->request : v->response;
			const char *example = sent ? v->request_example : v->response_example;
			if (!s || !s->name || !example || !openapi_mark_one(marks[sent], s))
				continue;
			json_sep(x->b);
			buf_printf(x->b, "\"%s.%s\":{\"summary\":", s->name, sent ? "sent" : "answered");
			json_z(x->b, s->description ? s->description : s->name);
			json_key(x->b, "value");
			json_raw(x->b, str_of(example));
			buf_c(x->b, '}');
		}
	}
	json_close(x->b, '}');
	openapi_marks_free(marks[0]);
	openapi_marks_free(marks[1]);
}

static void write_components(struct export *x)
{
	static const char api_error[] =
	        "{\"type\":\"object\",\"description\":\"What every error answers with.\","
	        "\"required\":[\"detail\",\"error\",\"errorCode\",\"parameters\",\"reason\"],\"properties\":{"
	        "\"detail\":{\"type\":\"string\",\"description\":\"What is wrong, for people.\"},"
	        "\"error\":{\"type\":\"integer\",\"format\":\"int32\",\"description\":\"The HTTP status.\"},"
	        "\"errorCode\":{\"type\":\"string\",\"description\":\"Name of the failure.\"},"
	        "\"parameters\":{\"type\":\"array\",\"items\":{},\"description\":\"Further values; what they mean "
	        "depends on errorCode.\"},"
	        "\"reason\":{\"type\":\"string\",\"description\":\"The standard text of the status.\"}}}";
	static const char headers[] =
	        "{\"RateLimit-Limit\":{\"description\":\"Capacity of the bucket.\",\"schema\":{\"type\":\"integer\"}},"
	        "\"RateLimit-Remaining\":{\"description\":\"Tokens left in the "
	        "bucket.\",\"schema\":{\"type\":\"integer\"}},"
	        "\"X-Request-Id\":{\"description\":\"Names the request in the "
	        "log.\",\"schema\":{\"type\":\"string\"}}}";
	struct buf *b = x->b, url = {0};
	json_key(b, "components");
	json_open(b, '{');
	json_key(b, "schemas");
	json_open(b, '{');
	openapi_components(b, x->marks);
	json_key(b, "ApiError");
	json_raw(b, STR(api_error));
	json_close(b, '}');
	json_key(b, "headers");
	json_raw(b, STR(headers));
	json_key(b, "parameters");
	json_open(b, '{');
	for (int i = 0; i < COMMON_COUNT; i++) {
		json_key(b, common_params[i].name);
		write_param(b, &common_params[i], str_of(common_params[i].name), "query");
	}
	json_close(b, '}');
	write_error_responses(b);
	write_examples(x);
	json_key(b, "securitySchemes");
	json_open(b, '{');
	json_key(b, "serviceAccount");
	buf_z(b, "{\"type\":\"oauth2\",\"flows\":{\"clientCredentials\":{\"scopes\":{},\"tokenUrl\":");
	buf_printf(&url, "%s/api/oauth/token", x->base_url);
	json_str(b, buf_view(&url));
	buf_z(b, "}}}");
	buf_free(&url);
	json_key(b, "apiKey");
	buf_z(b, "{\"type\":\"http\",\"scheme\":\"digest\"}");
	json_close(b, '}');
	json_close(b, '}');
}

static void write_tags(struct export *x)
{
	json_key(x->b, "tags");
	json_open(x->b, '[');
	for (unsigned i = 0; i < catalog_tag_count; i++) {
		bool used = false;
		for (unsigned k = 0; k < catalog_op_count && !used; k++)
			used = version_at(x, &catalog_ops[k]) && strcmp(catalog_ops[k].tag, catalog_tags[i].name) == 0;
		if (!used)
			continue;
		json_open(x->b, '{');
		json_pair_z(x->b, "name", catalog_tags[i].name);
		json_pair_z(x->b, "description", catalog_tags[i].description);
		json_close(x->b, '}');
	}
	json_close(x->b, ']');
}

void openapi_write(struct buf *b, struct str date, const char *base_url)
{
	struct export x = {b, date, base_url, openapi_marks_new()};
	mark_ops(&x);
	json_open(b, '{');
	json_pair_z(b, "openapi", "3.0.3");
	json_key(b, "info");
	json_open(b, '{');
	json_pair_z(b, "title", "Steward Administration API");
	json_pair_z(b, "description",
	            "Administration of organizations, projects, database clusters and all that belongs to them.");
	json_pair_str(b, "version", date);
	json_key(b, "contact");
	json_open(b, '{');
	json_pair_z(b, "name", "The operator of this service");
	json_pair_z(b, "url", base_url);
	json_close(b, '}');
	json_key(b, "license");
	buf_z(b, "{\"name\":\"Apache-2.0\",\"url\":\"https://www.apache.org/licenses/LICENSE-2.0\"}");
	json_close(b, '}');
	json_key(b, "servers");
	json_open(b, '[');
	json_open(b, '{');
	json_pair_z(b, "url", base_url);
	json_close(b, '}');
	json_close(b, ']');
	json_key(b, "security");
	buf_z(b, "[{\"serviceAccount\":[]},{\"apiKey\":[]}]");
	write_tags(&x);
	write_paths(&x);
	write_components(&x);
	json_close(b, '}');
	openapi_marks_free(x.marks);
}
