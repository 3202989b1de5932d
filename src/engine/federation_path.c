/* A path is cut into parts, and names are matched part by part. Where a part may take more or less of a name, the
 * least is tried first; what has failed once from a place is not tried again, so a path with many stars takes no
 * longer than the product of its parts and the name. */
#include "engine/federation_path.h"

#include "base/pattern.h"

#include <errno.h>
#include <string.h>

#define NAME_BYTES 1024 /* of an object */
#define PATTERNS 4      /* of one path: each costs as much as the rest of it */
#define COLUMN_BYTES 63

static const struct {
	const char *word;
	enum path_type type;
} types[] = {{"string", PATH_STRING},
             {"int", PATH_INT},
             {"date", PATH_DATE},
             {"isodate", PATH_ISODATE},
             {"epoch_secs", PATH_EPOCH_SECONDS},
             {"epoch_millis", PATH_EPOCH_MILLIS},
             {"objectid", PATH_OBJECT_ID},
             {"uuid", PATH_UUID}};

struct reading {
	struct str text;
	size_t at;
	struct arena *arena;
	struct path_part *parts;
	size_t count, attributes, patterns;
	bool has_table;
	const char *why;
};

static bool refuse(struct reading *r, const char *why)
{
	r->why = r->why ? r->why : why;
	return false;
}

/* --- reading */

static struct path_part *part_add(struct reading *r, enum path_kind kind)
{
	if (r->count == PATH_PARTS) {
		(void)refuse(r, "has more than 64 parts");
		return NULL;
	}
	r->parts[r->count] = (struct path_part){.kind = kind};
	return &r->parts[r->count++];
}

static bool text_read(struct reading *r)
{
	char *text = arena_alloc(r->arena, r->text.n + 1);
	size_t n = 0;
	while (r->at < r->text.n && r->text.p[r->at] != '*' && r->text.p[r->at] != '{') {
		if (r->text.p[r->at] == '}')
			return refuse(r, "has a } without its {");
		if (r->text.p[r->at] == '\\' && ++r->at == r->text.n)
			return refuse(r, "ends with a backslash");
		text[n++] = r->text.p[r->at++];
	}
	struct path_part *part = part_add(r, PATH_TEXT);
	if (part)
		part->text = (struct str){text, n};
	return part;
}

static bool star_read(struct reading *r)
{
	size_t stars = 0;
	while (r->at < r->text.n && r->text.p[r->at] == '*') {
		r->at++;
		stars++;
	}
	if (stars > 2)
		return refuse(r, "has more than two * beside each other");
	return part_add(r, stars == 2 ? PATH_ANY_DEEP : PATH_ANY);
}

/* What stands between the braces; a pattern may have braces itself, in pairs. */
static bool braces_read(struct reading *r, struct str *ret_inner)
{
	size_t depth = 0, from = r->at + 1;
	for (; r->at < r->text.n; r->at++) {
		char c = r->text.p[r->at];
		if (c == '\\' && r->at + 1 < r->text.n)
			r->at++;
		depth += c == '{';
		if (c == '}' && --depth == 0) {
			*ret_inner = (struct str){r->text.p + from, r->at - from};
			r->at++;
			return true;
		}
	}
	return refuse(r, "has a { without its }");
}

static bool type_read(struct reading *r, struct str word, enum path_type *ret_type)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (str_is(word, types[i].word)) {
			*ret_type = types[i].type;
			return true;
		}
	return refuse(r, "has an attribute that is not {NAME TYPE}, with one of the types string, int, date, isodate, "
	                 "epoch_secs, epoch_millis, objectid and uuid");
}

/* "NAME", "min(NAME)" or "max(NAME)". */
static bool name_read(struct reading *r, struct str text, struct path_part *part)
{
	bool least = str_starts(text, STR("min(")), most = str_starts(text, STR("max("));
	part->kind = least ? PATH_LEAST : most ? PATH_MOST : PATH_VALUE;
	part->name = text;
	if ((least || most) && str_ends(text, STR(")")))
		part->name = (struct str){text.p + 4, text.n - 5};
	if (!part->name.n || part->name.n > COLUMN_BYTES)
		return refuse(r, "has an attribute whose name has not from 1 to 63 bytes");
	for (size_t i = 0; i < part->name.n; i++) {
		char c = part->name.p[i];
		if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
			return refuse(r, "has an attribute whose name has other than letters, digits and _");
	}
	for (size_t i = 0; i + 1 < r->count; i++)
		if (r->parts[i].kind == part->kind && str_eq(r->parts[i].name, part->name))
			return refuse(r, "names the same attribute twice");
	return true;
}

static bool pattern_check(struct reading *r, struct str pattern)
{
	const struct pattern *p;
	const char *why;
	if (!pattern.n)
		return refuse(r, "has an attribute with an empty pattern");
	if (++r->patterns > PATTERNS)
		return refuse(r, "has more than 4 attributes with patterns");
	if (pattern_parse(pattern, r->arena, &p, &why) == 0)
		return true;
	return refuse(r, arena_printf(r->arena, "has an attribute whose pattern %s", why).p);
}

static bool attribute_read(struct reading *r, struct str inner)
{
	struct str name, rest, type, pattern = STR_NONE;
	struct path_part *part;
	if (str_is(inner, "collectionName()")) {
		if (r->has_table)
			return refuse(r, "has {collectionName()} twice");
		r->has_table = true;
		return part_add(r, PATH_TABLE);
	}
	if (++r->attributes > PATH_ATTRIBUTES)
		return refuse(r, "has more than 16 attributes");
	part = part_add(r, PATH_VALUE);
	if (!part)
		return false;
	(void)str_cut(inner, ' ', &name, &rest);
	bool has_pattern = str_cut(str_trim(rest), ':', &type, &pattern);
	if (!type_read(r, str_trim(type), &part->type) || !name_read(r, name, part))
		return false;
	part->pattern = pattern;
	return !has_pattern || pattern_check(r, pattern);
}

static bool part_read(struct reading *r)
{
	struct str inner;
	if (r->text.p[r->at] == '*')
		return star_read(r);
	if (r->text.p[r->at] == '{')
		return braces_read(r, &inner) && attribute_read(r, inner);
	return text_read(r);
}

static bool is_clean(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return false;
	return true;
}

int federation_path_parse(struct str text, struct arena *a, struct federation_path *ret_path, const char **ret_why)
{
	struct reading r = {.text = arena_dup(a, text), .arena = a};
	bool good = true;
	r.parts = arena_calloc(a, PATH_PARTS, sizeof *r.parts);
	while (r.text.n && r.text.p[0] == '/')
		r.text = (struct str){r.text.p + 1, r.text.n - 1};
	if (text.n > PATH_BYTES)
		good = refuse(&r, "has more than 1024 bytes");
	else if (!is_clean(text))
		good = refuse(&r, "has signs that cannot be shown");
	while (good && r.at < r.text.n)
		good = part_read(&r);
	/* A folder is all that lies in it. */
	if (good && (!r.text.n || r.text.p[r.text.n - 1] == '/'))
		good = part_add(&r, PATH_ANY_DEEP);
	if (!good) {
		*ret_why = r.why;
		return -EINVAL;
	}
	*ret_path = (struct federation_path){.parts = r.parts, .count = r.count, .has_table = r.has_table};
	return 0;
}

struct str federation_path_prefix(const struct federation_path *p, struct arena *a)
{
	return p->count && p->parts[0].kind == PATH_TEXT ? arena_dup(a, p->parts[0].text) : STR("");
}

/* --- values */

static bool are_digits(struct str text, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
	return to > from;
}

static bool is_number(struct str text)
{
	size_t sign = text.n && text.p[0] == '-';
	return text.n <= 19 && are_digits(text, sign, text.n);
}

static bool is_hex(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (hex_value(text.p[i]) < 0)
			return false;
	return text.n > 0;
}

static unsigned digits_value(struct str text, size_t from, size_t to)
{
	unsigned value = 0;
	for (size_t i = from; i < to; i++)
		value = value * 10 + (unsigned)(text.p[i] - '0');
	return value;
}

/* "2026-11-19" */
static bool is_date(struct str text)
{
	static const unsigned days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	if (text.n != 10 || text.p[4] != '-' || text.p[7] != '-' || !are_digits(text, 0, 4) ||
	    !are_digits(text, 5, 7) || !are_digits(text, 8, 10))
		return false;
	unsigned year = digits_value(text, 0, 4), month = digits_value(text, 5, 7), day = digits_value(text, 8, 10);
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return year && month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] &&
	       (month != 2 || day < 29 || leap);
}

/* "2026-11-19T10:00:00Z", with a fraction or an offset; names of objects may have no colons ("T100000Z"). */
static bool is_moment(struct str text)
{
	if (text.n < 11 || !is_date((struct str){text.p, 10}) || (text.p[10] != 'T' && text.p[10] != ' '))
		return false;
	for (size_t i = 11; i < text.n; i++)
		if (!memchr("0123456789:.Z+-", text.p[i], 15))
			return false;
	return text.n >= 15 && text.n <= 35;
}

static bool is_uuid(struct str text)
{
	if (text.n != 36)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text.p[i] != '-' : hex_value(text.p[i]) < 0)
			return false;
	}
	return true;
}

static bool is_of_type(struct str text, enum path_type type)
{
	switch (type) {
	case PATH_STRING: return text.n > 0;
	case PATH_INT:
	case PATH_EPOCH_SECONDS:
	case PATH_EPOCH_MILLIS: return is_number(text);
	case PATH_DATE: return is_date(text);
	case PATH_ISODATE: return is_date(text) || is_moment(text);
	case PATH_OBJECT_ID: return text.n == 24 && is_hex(text);
	case PATH_UUID: return is_uuid(text);
	}
	return false;
}

/* --- matching */

struct match {
	const struct federation_path *path;
	const struct pattern *patterns[PATH_PARTS];
	struct str name;
	struct str *values;
	/* Of each part, from which places of the name it and what follows do not fit. */
	unsigned char failed[PATH_PARTS][NAME_BYTES / 8 + 1];
};

static bool part_match(struct match *m, size_t part, size_t at);

/* Where a part that is no text ends at most. */
static size_t end_find(const struct match *m, const struct path_part *part, size_t at)
{
	const char *slash = memchr(m->name.p + at, '/', m->name.n - at);
	return part->kind == PATH_ANY_DEEP || !slash ? m->name.n : (size_t)(slash - m->name.p);
}

static bool takes(const struct match *m, size_t part, size_t from, size_t to, const bool *ends)
{
	const struct path_part *p = &m->path->parts[part];
	struct str text = {m->name.p + from, to - from};
	if (p->kind == PATH_ANY || p->kind == PATH_ANY_DEEP)
		return true;
	if (p->kind == PATH_TABLE)
		return text.n > 0 && text.n <= COLUMN_BYTES;
	return is_of_type(text, p->type) && (!m->patterns[part] || ends[to - from]);
}

static bool free_match(struct match *m, size_t part, size_t at)
{
	bool ends[NAME_BYTES + 1];
	const struct path_part *p = &m->path->parts[part];
	size_t end = end_find(m, p, at);
	if (m->patterns[part])
		pattern_ends(m->patterns[part], (struct str){m->name.p + at, end - at}, ends);
	if (part + 1 == m->path->count) { /* nothing follows: it takes all, or does not fit */
		if (end < m->name.n || !takes(m, part, at, end, ends))
			return false;
		m->values[part] = (struct str){m->name.p + at, end - at};
		return true;
	}
	for (size_t to = at; to <= end; to++)
		if (takes(m, part, at, to, ends) && part_match(m, part + 1, to)) {
			m->values[part] = (struct str){m->name.p + at, to - at};
			return true;
		}
	return false;
}

static bool part_match(struct match *m, size_t part, size_t at)
{
	if (part == m->path->count)
		return at == m->name.n;
	const struct path_part *p = &m->path->parts[part];
	if (p->kind == PATH_TEXT)
		return m->name.n - at >= p->text.n && memcmp(m->name.p + at, p->text.p, p->text.n) == 0 &&
		       part_match(m, part + 1, at + p->text.n);
	unsigned char *byte = &m->failed[part][at / 8], bit = (unsigned char)(1u << at % 8);
	if (*byte & bit)
		return false;
	if (free_match(m, part, at))
		return true;
	*byte |= bit;
	return false;
}

bool federation_path_match(const struct federation_path *p, struct str name, struct arena *a,
                           struct str ret_values[PATH_PARTS])
{
	struct match *m;
	const char *why;
	for (size_t i = 0; i < PATH_PARTS; i++)
		ret_values[i] = STR("");
	if (name.n > NAME_BYTES)
		return false;
	m = arena_calloc(a, 1, sizeof *m);
	m->path = p;
	m->name = name;
	m->values = ret_values;
	for (size_t i = 0; i < p->count; i++)
		if (p->parts[i].pattern.n && pattern_parse(p->parts[i].pattern, a, &m->patterns[i], &why) < 0)
			return false;
	if (!part_match(m, 0, 0))
		return false;
	for (size_t i = 0; i < p->count; i++)
		if (p->parts[i].kind == PATH_ANY || p->parts[i].kind == PATH_ANY_DEEP)
			ret_values[i] = STR("");
	return true;
}
