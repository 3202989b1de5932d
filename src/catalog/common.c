/* The common query parameters as rows, checked and exported like any other. */
#include "catalog/common.h"

static const struct schema no_by_default = {.type = TYPE_BOOLEAN, .pattern = -1, .default_json = "false"};
static const struct schema yes_by_default = {.type = TYPE_BOOLEAN, .pattern = -1, .default_json = "true"};
static const struct schema page = {.type = TYPE_INTEGER,
                                   .format = FORMAT_INT32,
                                   .pattern = -1,
                                   .flags = SCHEMA_HAS_MIN,
                                   .min = 1,
                                   .default_json = "1"};
static const struct schema page_size = {.type = TYPE_INTEGER,
                                        .format = FORMAT_INT32,
                                        .pattern = -1,
                                        .flags = SCHEMA_HAS_MIN | SCHEMA_HAS_MAX,
                                        .min = 1,
                                        .max = PAGE_SIZE_MAX,
                                        .default_json = "100"};

const struct param common_params[] = {
        [COMMON_ENVELOPE] = {"envelope", "Wraps the answer in an object with its status.", &no_by_default, false,
                             "true", NULL},
        [COMMON_PRETTY] = {"pretty", "Returns the JSON with line breaks and indentation.", &no_by_default, false,
                           "true", NULL},
        [COMMON_PAGE] = {"pageNum", "Number of the page, counted from 1.", &page, false, "1", NULL},
        [COMMON_PAGE_SIZE] = {"itemsPerPage", "Most items that a page has.", &page_size, false, "100", NULL},
        [COMMON_INCLUDE_COUNT] = {"includeCount", "Whether the answer has totalCount.", &yes_by_default, false, "true",
                                  NULL},
};

bool common_applies(enum common which, const struct op *op)
{
	return which <= COMMON_PRETTY || op->paginated;
}
