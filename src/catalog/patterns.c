/* The schemas' patterns, compiled once with PCRE2 and its JIT. They have the meaning that JSON schema gives them:
 * searched anywhere in the text, Unicode characters, \d and \w in ASCII, $ only at the very end. Each search is
 * bounded: a pattern that backtracks badly makes the request fail instead of blocking a thread. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "catalog/formats.h"

#include "base/arena.h"
#include "base/log.h"
#include "catalog/schema.h"

#include <errno.h>
#include <pcre2.h>
#include <pthread.h>

#define MATCH_LIMIT 200000
#define DEPTH_LIMIT 20000
#define HEAP_LIMIT_KB 4096

static pcre2_code **compiled;
static pcre2_match_context *limits;
static pthread_key_t match_key;
static _Thread_local pcre2_match_data *match_of_thread;

static void match_free(void *match)
{
	pcre2_match_data_free(match);
}

/* One per thread, freed with it. */
static pcre2_match_data *match_data(void)
{
	if (!match_of_thread) {
		match_of_thread = pcre2_match_data_create(1, NULL);
		pthread_setspecific(match_key, match_of_thread);
	}
	return match_of_thread;
}

static int pattern_compile(size_t i)
{
	int error;
	PCRE2_SIZE offset;
	compiled[i] = pcre2_compile((PCRE2_SPTR)schema_patterns[i], PCRE2_ZERO_TERMINATED,
	                            PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &error, &offset, NULL);
	if (!compiled[i]) {
		PCRE2_UCHAR text[128];
		pcre2_get_error_message(error, text, sizeof text);
		log_error("pattern %s does not compile: %s at %zu", schema_patterns[i], (const char *)text, offset);
		return -EINVAL;
	}
	/* When the kernel forbids JIT, the interpreter gives the same results, slower. */
	(void)pcre2_jit_compile(compiled[i], PCRE2_JIT_COMPLETE);
	return 0;
}

int patterns_prepare(void)
{
	if (pthread_key_create(&match_key, match_free) != 0)
		return -EAGAIN;
	compiled = must_calloc(schema_pattern_count + 1, sizeof(pcre2_code *));
	limits = pcre2_match_context_create(NULL);
	if (!limits) {
		patterns_teardown();
		return -ENOMEM;
	}
	pcre2_set_match_limit(limits, MATCH_LIMIT);
	pcre2_set_depth_limit(limits, DEPTH_LIMIT);
	pcre2_set_heap_limit(limits, HEAP_LIMIT_KB);
	return 0;
}

int patterns_setup(void)
{
	int result = patterns_prepare();
	for (unsigned i = 0; i < schema_pattern_count && result == 0; i++)
		result = pattern_compile(i);
	if (result < 0)
		patterns_teardown();
	return result;
}

void patterns_teardown(void)
{
	if (!compiled)
		return;
	for (unsigned i = 0; i < schema_pattern_count; i++)
		pcre2_code_free(compiled[i]);
	free(compiled);
	compiled = NULL;
	pcre2_match_context_free(limits);
	limits = NULL;
	pcre2_match_data_free(match_of_thread);
	match_of_thread = NULL;
	pthread_key_delete(match_key);
}

bool pattern_matches(int pattern, struct str text)
{
	pcre2_match_data *match = match_data();
	PCRE2_SPTR subject = (PCRE2_SPTR)(text.p ? text.p : "");
	if (!match || (!compiled[pattern] && pattern_compile((size_t)pattern) < 0))
		return false;
	int rc = pcre2_match(compiled[pattern], subject, text.n, 0, PCRE2_NO_UTF_CHECK, match, limits);
	if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
		rc = pcre2_match(compiled[pattern], subject, text.n, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match,
		                 limits);
	return rc >= 0;
}
