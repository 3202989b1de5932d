/* Every process reads the setting again at SIGHUP, before its next statement. */
#include "module/refused.h"

#include <utils/guc.h>

struct entry {
	bool is_id;
	uint64 value, shape;
};

/* In ascending order: shapes, then query ids. */
struct list {
	size_t count;
	struct entry entries[FLEXIBLE_ARRAY_MEMBER];
};

static char *setting;
static const struct list *list;

static int entry_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->is_id != y->is_id)
		return x->is_id ? 1 : -1;
	return x->value < y->value ? -1 : x->value > y->value;
}

static bool word_read(const char **at, struct entry *ret_entry)
{
	char *end;
	uint64 shape = strtoull(*at, &end, 16);
	if (end == *at || shape == 0)
		return false;
	*ret_entry = (struct entry){*end == '=', shape, shape};
	if (*end == '=') {
		const char *digits = end + 1;
		ret_entry->value = (uint64)strtoll(digits, &end, 10);
		if (end == digits)
			return false;
	}
	if (*end && *end != ' ')
		return false;
	*at = end + strspn(end, " ");
	return true;
}

static bool setting_check(char **value, void **extra, GucSource source)
{
	size_t words = 1;
	for (const char *p = *value; *p; p++)
		words += *p == ' ';
	/* The setting's memory is not PostgreSQL's own: guc.c frees it with free(). */
	struct list *fresh = malloc(offsetof(struct list, entries) + words * sizeof(struct entry));
	if (!fresh)
		return false;
	fresh->count = 0;
	for (const char *at = *value + strspn(*value, " "); *at;)
		if (!word_read(&at, &fresh->entries[fresh->count++])) {
			GUC_check_errdetail("Words are FINGERPRINT or FINGERPRINT=QUERYID.");
			free(fresh);
			return false;
		}
	qsort(fresh->entries, fresh->count, sizeof(struct entry), entry_compare);
	*extra = fresh;
	return true;
}

static void setting_assign(const char *value, void *extra)
{
	list = extra;
}

void refused_define(void)
{
	DefineCustomStringVariable("steward.refused", "Query shapes that are refused.", NULL, &setting, "", PGC_SIGHUP,
	                           GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, setting_check, setting_assign, NULL);
}

bool refused_any(void)
{
	return list && list->count > 0;
}

uint64 refused_shape(uint64 queryid, uint64 shape)
{
	const struct entry by_shape = {false, shape, 0}, by_id = {true, queryid, 0};
	const struct entry *found = NULL;
	if (!refused_any())
		return 0;
	if (shape)
		found = bsearch(&by_shape, list->entries, list->count, sizeof by_shape, entry_compare);
	if (!found)
		found = bsearch(&by_id, list->entries, list->count, sizeof by_id, entry_compare);
	return found ? found->shape : 0;
}
