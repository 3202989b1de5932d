/* The messages of a check, and the check of the event chain against its hashes. */
#include "store/check.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>

/* More messages would say nothing new. */
#define FAULTS_SHOWN 100

void check_fault(struct check *c, const char *format, ...)
{
	va_list args;
	if (++c->faults > FAULTS_SHOWN) {
		if (c->faults == FAULTS_SHOWN + 1)
			fprintf(c->out, "and more\n");
		return;
	}
	va_start(args, format);
	vfprintf(c->out, format, args);
	va_end(args);
	fputc('\n', c->out);
}

void check_list(struct check *c, struct str kind, struct str parent, const int64_t counted[3], const int64_t has[3])
{
	check_fault(c,
	            "list %.*s of \"%.*s\": counts %lld documents (%lld at its head, next position %lld), has %lld "
	            "(%lld, %lld)",
	            STR_ARG(kind), STR_ARG(parent), (long long)counted[0], (long long)counted[1], (long long)counted[2],
	            (long long)has[0], (long long)has[1], (long long)has[2]);
}

void check_block(struct check *c, struct str kind, struct str parent, int64_t level, int64_t block, int64_t counted,
                 int64_t has)
{
	check_fault(c, "list %.*s of \"%.*s\": block %lld of level %lld counts %lld documents, has %lld", STR_ARG(kind),
	            STR_ARG(parent), (long long)block, (long long)level, (long long)counted, (long long)has);
}

void check_body(struct check *c, struct str kind, struct str id, struct str body)
{
	json_error_t error;
	json_t *json = json_loadb(body.p ? body.p : "", body.n, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		check_fault(c, "document %.*s %.*s: the body is not JSON: %s", STR_ARG(kind), STR_ARG(id), error.text);
	else if (!json_is_object(json))
		check_fault(c, "document %.*s %.*s: the body is not an object", STR_ARG(kind), STR_ARG(id));
	json_decref(json);
}

void check_ref(struct check *c, struct str kind, struct str value, struct str id)
{
	check_fault(c, "reference %.*s \"%.*s\": points to %.*s, which is not there", STR_ARG(kind), STR_ARG(value),
	            STR_ARG(id));
}

void check_positions(struct check *c, struct str scope, int64_t count, int64_t first, int64_t last)
{
	check_fault(c, "events of %.*s: %lld are listed at positions %lld to %lld, or not in their order",
	            STR_ARG(scope), (long long)count, (long long)first, (long long)last);
}

int check_chain_begin(struct check *c, int chain_read)
{
	if (chain_read < 0 && chain_read != -ENOENT && chain_read != -EBADMSG)
		return chain_read;
	if (chain_read < 0)
		c->ends = (struct event_chain){.first = 1};
	if (chain_read == -EBADMSG || c->ends.forged)
		check_fault(c, "events: the ends of the log are not signed by this service");
	c->seq = c->ends.first - 1;
	memcpy(c->hash, c->ends.before, sizeof c->hash);
	return 0;
}

void check_event(struct check *c, const struct event_row *row, struct str prev, struct str stored)
{
	unsigned char hash[32];
	int64_t before = c->seq;
	c->seq = row->seq;
	if (prev.n != sizeof hash || stored.n != sizeof hash) {
		check_fault(c, "event %lld: has no hash", (long long)row->seq);
		return;
	}
	if (row->seq != before + 1 || memcmp(prev.p, c->hash, sizeof hash) != 0)
		check_fault(c, "event %lld: does not follow event %lld", (long long)row->seq, (long long)before);
	memcpy(hash, prev.p, sizeof hash);
	event_hash(hash, row, hash);
	if (memcmp(hash, stored.p, sizeof hash) != 0)
		check_fault(c, "event %lld: was changed after it was written", (long long)row->seq);
	memcpy(c->hash, stored.p, sizeof hash);
}

void check_chain_end(struct check *c)
{
	if (c->seq != c->ends.last || memcmp(c->hash, c->ends.head, sizeof c->hash) != 0)
		check_fault(c, "events: the log ends with event %lld, %lld was the last that was written",
		            (long long)c->seq, (long long)c->ends.last);
}
