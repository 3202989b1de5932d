/* The request's body: is it present when required, is it JSON, does it match its schema? */
#include "base/json.h"
#include "catalog/formats.h"
#include "gate/gate.h"

#define BODY_DEPTH 64

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct str without_space(struct str s)
{
	while (s.n && is_space(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* Whether the body is empty: no bytes, or an object without fields. */
static bool body_is_empty(struct str body)
{
	return body.n == 0 || (body.n >= 2 && body.p[0] == '{' && body.p[body.n - 1] == '}' &&
	                       without_space((struct str){body.p + 1, body.n - 2}).n == 0);
}

static bool is_date(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (i == 4 || i == 7 ? s.p[i] != '-' : s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.n == 10;
}

/* application/json or application/vnd.svc.<date>+json (a dialect has another prefix), with no parameter but
 * charset=utf-8. */
static bool media_type_fits(struct str value, struct str prefix)
{
	static const struct str suffix = {"+json", 5};
	struct str type, parameters, parameter, name, charset;
	str_cut(value, ';', &type, &parameters);
	type = str_trim(type);
	bool versioned = type.n == prefix.n + 10 + suffix.n && str_ieq((struct str){type.p, prefix.n}, prefix) &&
	                 is_date((struct str){type.p + prefix.n, 10}) &&
	                 str_ieq((struct str){type.p + prefix.n + 10, suffix.n}, suffix);
	if (!versioned && !str_ieq(type, STR("application/json")))
		return false;
	while (parameters.n) {
		str_cut(parameters, ';', &parameter, &parameters);
		parameter = str_trim(parameter);
		if (parameter.n == 0)
			continue;
		str_cut(parameter, '=', &name, &charset);
		if (charset.n > 1 && charset.p[0] == '"' && charset.p[charset.n - 1] == '"')
			charset = (struct str){charset.p + 1, charset.n - 2};
		if (!str_ieq(name, STR("charset")) || !str_ieq(charset, STR("utf-8")))
			return false;
	}
	return true;
}

/* Counted before the parser builds anything, so that later code may recurse. */
static bool too_deep(struct str body)
{
	unsigned depth = 0;
	bool in_string = false;
	for (size_t i = 0; i < body.n; i++) {
		char c = body.p[i];
		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > BODY_DEPTH)
				return true;
		} else if ((c == '}' || c == ']') && depth) {
			depth--;
		}
	}
	return false;
}

static void body_free(void *body)
{
	json_decref(body);
}

/* What is wrong with the text, without quoting it: the quote may be part of a secret, and answers are recorded. Only
 * the name of a repeated field is shown. */
static struct str json_fault(const json_error_t *error)
{
	struct str words = str_of(error->text);
	switch (json_error_code(error)) {
	case json_error_null_character:
	case json_error_null_byte_in_key: return STR("a string must not hold \\u0000");
	case json_error_numeric_overflow: return STR("a number is too large");
	case json_error_invalid_utf8: return STR("it must be UTF-8");
	case json_error_duplicate_key: break;
	default: {
		const char *piece = memmem(words.p, words.n, " near '", 7);
		words.n = piece ? (size_t)(piece - words.p) : words.n;
	}
	}
	/* The parser cuts its message at the end of its buffer, which may be inside a character. */
	while (words.n && !utf8_is_valid(words))
		words.n--;
	return words;
}

static int body_parse(struct call *c, json_t **ret_body)
{
	json_error_t error;
	struct str text = c->request->body;
	if (too_deep(text))
		return call_fail(c, 400, "INVALID_JSON", "The body must not be nested more than %d levels deep.",
		                 BODY_DEPTH);
	json_t *body = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (!body) {
		struct str fault = json_fault(&error);
		return call_fail(c, 400, "INVALID_JSON", "The body must be JSON: line %d, column %d: %.*s.", error.line,
		                 error.column, STR_ARG(fault));
	}
	arena_defer(c->arena, body_free, body);
	*ret_body = body;
	return 0;
}

/* Without this check a compressed body would only get the error that it is not JSON. */
static int encoding_check(struct call *c)
{
	struct str encoding = request_header(c->request, "content-encoding");
	if (!encoding.n || str_ieq(encoding, STR("identity")))
		return 0;
	call_fail(c, 415, "UNSUPPORTED_CONTENT_ENCODING",
	          "Content-Encoding: must be absent. The body is taken as it is, not compressed.");
	return call_fail_param(c, STR("Content-Encoding"));
}

/* A read-only name that the body has for what the path names: both must be the same. An SDK may send an empty one. */
static void name_check(const struct call *c, const struct schema *schema, const json_t *body, struct faults *faults)
{
	const struct op *op = c->op;
	const struct param *last = op->path_param_count ? &op->path_params[op->path_param_count - 1] : NULL;
	if (!last || !str_ends(str_of(op->path), STR("}")) || (op->method != METHOD_PATCH && op->method != METHOD_PUT))
		return;
	const char *field =
	        str_ends(str_of(last->name), STR("Name")) && schema_field(schema, STR("name")) ? "name" : last->name;
	const struct field *f = schema_field(schema, str_of(field));
	struct str said = json_field(body, field), meant = c->params[op->path_param_count - 1];
	if (f && f->schema->flags & SCHEMA_READ_ONLY && said.n && !str_eq(said, meant))
		faults_add(faults, c->arena, str_of(field), "must be what the path says, or absent");
}

/* What the path says need not be said again. Where both say it, the handler looks whether they agree. */
static void path_add(const struct call *c, const struct schema *schema, json_t *body)
{
	for (size_t i = 0; json_is_object(body) && i < c->op->path_param_count; i++) {
		const char *name = c->op->path_params[i].name;
		const struct field *f = schema_field(schema, str_of(name));
		if (f && f->required && f->schema->type == TYPE_STRING && !(f->schema->flags & SCHEMA_READ_ONLY) &&
		    !json_object_get(body, name))
			json_put_str(body, name, c->params[i]);
	}
}

/* From a dialect's words into ours, without what that dialect's clients may send and we do not take. */
static void body_turn(const struct call *c, const struct schema *schema, json_t *body, struct faults *faults)
{
	unsigned lenient = c->dialect->lenient;
	words_json(dialect_words(c->dialect, schema), body);
	name_check(c, schema, body, faults);
	schema_relax(schema, body, lenient & LENIENT_NULL, lenient & LENIENT_READ_ONLY);
}

/* What such a PATCH leaves out, the document has: it is checked as a whole before it is stored. */
static enum schema_use body_use(const struct call *c)
{
	if (c->op->method != METHOD_PATCH)
		return SCHEMA_CREATE;
	if (c->op->as_read)
		return SCHEMA_AS_READ;
	return c->dialect && c->dialect->partial[c->op - catalog_ops] ? SCHEMA_PARTIAL : SCHEMA_UPDATE;
}

int gate_body(struct call *c)
{
	const struct schema *schema = c->version ? c->version->request : NULL;
	struct str text = without_space(c->request->body);
	struct faults faults = {.count = 0};
	json_t *body = NULL;

	if (!schema) {
		if (body_is_empty(text))
			return 0;
		return call_fail(c, 400, "VALIDATION_ERROR", "body: this operation takes no body.");
	}
	if (text.n == 0) {
		if (!c->op->request_required)
			return 0;
		faults_add(&faults, c->arena, STR_NONE, "is required: send a JSON %s",
		           schema->type == TYPE_ARRAY ? "array" : "object");
		return call_fail_faults(c, &faults);
	}
	if (request_header_count(c->request, "content-type") != 1 ||
	    !media_type_fits(request_header(c->request, "content-type"), str_of(dialect_media(c->dialect))))
		return call_fail(c, 415, "UNSUPPORTED_MEDIA_TYPE",
		                 "The body's Content-Type must be application/json or %s%s+json.",
		                 dialect_media(c->dialect), c->version->date);
	int result = encoding_check(c);
	if (result == 0)
		result = body_parse(c, &body);
	if (result < 0)
		return result;
	if (c->dialect)
		body_turn(c, schema, body, &faults);
	path_add(c, schema, body);
	schema_check(schema, body, body_use(c), c->arena, &faults);
	for (size_t i = 0; c->dialect && i < faults.count && i < FAULTS_MAX; i++)
		words_fault(dialect_words(c->dialect, schema), &faults.list[i], c->arena);
	if (faults.count)
		return call_fail_faults(c, &faults);
	c->body = body;
	return 0;
}
