/* The last step of a call: envelope, pretty printing, headers. Everything that all answers share is here. */
#include "call/call.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "call/kept_answer.h"

static void out_replace(struct call *c, struct buf *b)
{
	buf_free(&c->out);
	c->out = *b;
}

/* Fields that have nothing are shown with what the schema says. Most schemas say nothing, and their answers are not
 * read. */
static void complete(struct call *c)
{
	const struct schema *s = c->version ? c->version->response : NULL;
	if (!s || !(s->flags & SCHEMA_SHOWS) || c->is_whole || c->status >= 300 || c->produces != PRODUCES_JSON ||
	    !c->out.n)
		return;
	json_t *body = json_keep(c->arena, json_loadb(c->out.p, c->out.n, 0, NULL));
	if (!body)
		return;
	schema_add_shown(s, body);
	struct str text = json_text(c->arena, body);
	c->out.n = 0;
	buf_str(&c->out, text);
}

/* Whether the answer is one by its schema, as those of the performance advisor are: an envelope around an envelope is
 * read as an empty one. */
static bool is_enveloped(const struct call *c)
{
	const struct schema *s = c->version ? c->version->response : NULL;
	return s && c->status < 400 && schema_field(s, STR("content")) && schema_field(s, STR("status"));
}

/* An entity becomes {"content": ..., "status": ...}; a list document only gains the status. */
static void envelop(struct call *c)
{
	struct buf b = {0};
	if (is_enveloped(c))
		return;
	if (c->is_list && c->status < 400) {
		buf_add(&b, c->out.p, c->out.n - 1);
	} else {
		json_open(&b, '{');
		json_key(&b, "content");
		if (c->out.n)
			json_raw(&b, buf_view(&c->out));
		else
			json_nil(&b);
	}
	json_key(&b, "status");
	json_int(&b, c->status);
	json_close(&b, '}');
	out_replace(c, &b);
}

/* The answer in the words of the call's dialect. Links have them already. */
static void answer_turn(struct call *c)
{
	const struct vocabulary *words = c->version ? dialect_words(c->dialect, c->version->response) : NULL;
	struct buf b = {0};
	if (!words || !c->out.n)
		return;
	words_text(words, buf_view(&c->out), &b);
	out_replace(c, &b);
}

/* Whether the sentence has it in quotes, as the names of things. */
static bool is_name(struct str detail, struct str text)
{
	const char *at = detail.p, *end = detail.p + detail.n;
	while (detail.n && text.n && (at = memmem(at, (size_t)(end - at), text.p, text.n))) {
		if (at > detail.p && at[-1] == '"' && at + text.n < end && at[text.n] == '"')
			return true;
		at++;
	}
	return false;
}

/* Parameters are texts and numbers. */
static void problem_turn(struct call *c)
{
	const struct request *r = c->request;
	struct problem *p = &c->problem;
	json_t *item, *list = p->parameters.n ? json_loadb(p->parameters.p, p->parameters.n, 0, NULL) : NULL;
	size_t i;
	p->code = arena_z(c->arena, dialect_sentence(c->dialect, str_of(p->code), STR_NONE, STR_NONE, c->arena));
	p->detail = dialect_sentence(c->dialect, p->detail, r->target, r->body, c->arena);
	json_array_foreach(list, i, item)
	{
		struct str text = json_str_of(item), turned;
		turned = dialect_sentence(c->dialect, text, r->target, r->body, c->arena);
		if (turned.p != text.p && !is_name(p->detail, text))
			json_string_setn_nocheck(item, turned.p, turned.n);
	}
	if (list)
		p->parameters = json_text(c->arena, json_keep(c->arena, list));
}

static void line_begin(struct buf *b, unsigned depth)
{
	buf_c(b, '\n');
	for (unsigned i = 0; i < depth; i++)
		buf_z(b, "  ");
}

/* A string of JSON from its opening quote on. Returns where it ends. */
static size_t string_copy(struct buf *b, struct str text, size_t from)
{
	size_t i = from + 1;
	while (i < text.n && text.p[i] != '"')
		i += text.p[i] == '\\' ? 2 : 1;
	i = i < text.n ? i + 1 : text.n;
	buf_add(b, text.p + from, i - from);
	return i;
}

/* Only white space changes: parsing and writing a number again could change it. */
static void prettify(struct call *c)
{
	struct str text = buf_view(&c->out);
	struct buf b = {0};
	unsigned depth = 0;
	for (size_t i = 0; i < text.n;) {
		char at = text.p[i], next = (char)(i + 1 < text.n ? text.p[i + 1] : 0);
		if (at == '"') {
			i = string_copy(&b, text, i);
			continue;
		}
		i++;
		if ((at == '{' && next == '}') || (at == '[' && next == ']')) {
			buf_add(&b, text.p + i++ - 1, 2);
			continue;
		}
		if (at == '}' || at == ']')
			line_begin(&b, depth ? --depth : 0);
		if (at != ' ' && at != '\n' && at != '\r' && at != '\t')
			buf_c(&b, at);
		if (at == '{' || at == '[')
			line_begin(&b, ++depth);
		else if (at == ',')
			line_begin(&b, depth);
		else if (at == ':')
			buf_c(&b, ' ');
	}
	buf_c(&b, '\n');
	out_replace(c, &b);
}

static struct str media_type(struct call *c)
{
	if (c->status >= 400 || !c->version)
		return STR("application/json");
	if (c->content_type)
		return str_of(c->content_type);
	const char *form = c->produces == PRODUCES_CSV ? "csv" : c->produces == PRODUCES_GZIP ? "gzip" : "json";
	struct str stem = c->dialect ? str_of(c->dialect->media) : STR(API_MEDIA);
	enum { DATE = 10 };
	size_t n = strlen(form);
	char *p = arena_alloc(c->arena, stem.n + DATE + 1 + n);
	memcpy(p, stem.p, stem.n);
	memcpy(p + stem.n, c->version->date, DATE);
	p[stem.n + DATE] = '+';
	memcpy(p + stem.n + DATE + 1, form, n);
	return (struct str){p, stem.n + DATE + 1 + n};
}

/* "17", with the quotes. */
static struct str entity_tag(struct arena *a, int64_t revision)
{
	char text[U64_TEXT];
	struct str digits = str_from_u64((uint64_t)revision, text);
	char *p = arena_alloc(a, digits.n + 2);
	memcpy(p + 1, digits.p, digits.n);
	p[0] = p[digits.n + 1] = '"';
	return (struct str){p, digits.n + 2};
}

static void headers(struct call *c, bool has_body)
{
	struct response *r = &c->request->response;
	if (has_body && !c->relayed)
		response_header(r, "content-type", media_type(c));
	if (c->status < 400 && c->etag)
		response_header(r, "etag", entity_tag(c->arena, c->etag));
	if (c->status == 201 && c->location.n)
		response_header(r, "location", c->location);
	if (clock_is_virtual()) /* who waits for something shall know that time does not pass by itself */
		response_header(r, "x-steward-clock", STR("virtual"));
	for (size_t i = 0; i < c->extra_header_count; i++)
		response_header(r, c->extra_headers[i][0].p, c->extra_headers[i][1]);
}

/* A long answer needs room, and its other forms as much again. What a write has done is told in any case. */
static void room_ask(struct call *c)
{
	size_t forms = c->is_final ? 0 : c->pretty ? 2 : c->envelope || c->dialect;
	if (!c->problem.status && !(c->op && c->op->writes))
		(void)!call_reserve(c, forms * c->out.n);
}

void call_finish(struct call *c)
{
	struct response *r = &c->request->response;
	bool is_json = !c->content_type && !c->relayed && !c->is_final;
	room_ask(c);
	if (c->problem.status) {
		c->status = c->problem.status;
		c->out.n = 0;
		is_json = true;
		if (c->dialect)
			problem_turn(c);
		problem_write(&c->out, &c->problem);
	} else if (is_json) {
		complete(c);
		if (c->dialect)
			answer_turn(c);
	}
	if (c->status == 204)
		c->out.n = 0;
	else if (is_json && c->v1 && !c->out.n && !c->request->response.stream.read)
		buf_z(&c->out, "{}"); /* clients of that time decode every answer */
	if (is_json && c->status != 204) {
		if (c->envelope)
			envelop(c);
		if (c->pretty && c->out.n)
			prettify(c);
	}
	if (!c->is_final)
		kept_answer_put(c);
	r->status = c->status;
	r->body = buf_view(&c->out);
	headers(c, c->out.n > 0 || r->stream.read);
}
