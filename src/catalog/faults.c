/* The texts of the schema check's faults, and their paths. Nothing here runs for a body without faults. */
#include "base/buf.h"
#include "catalog/checker.h"
#include "catalog/formats.h"

#define KEY_SHOWN 64    /* bytes of a caller's own field name that an answer repeats */
#define VALUES_SHOWN 12 /* of an enumeration */
#define PATH_MAX_BYTES 2000

/* Recursive, because the chain starts at the deepest place and the path is written from the top. CHECK_DEPTH bounds
 * it. */
static void place_write(struct buf *b, const struct place *at)
{
	if (!at)
		return;
	place_write(b, at->up);
	if (!at->key.p) {
		buf_printf(b, "[%zu]", at->index);
		return;
	}
	if (b->n)
		buf_c(b, '.');
	struct str shown = utf8_prefix(at->key, KEY_SHOWN);
	buf_str(b, shown);
	if (shown.n < at->key.n)
		buf_z(b, "…");
}

static void fault_put(struct checker *c, const struct place *at, struct str text)
{
	struct faults *f = c->faults;
	struct buf path = {0};
	place_write(&path, at);
	f->list[f->count].path = arena_dup(c->arena, utf8_prefix(buf_view(&path), PATH_MAX_BYTES));
	f->list[f->count].text = text;
	f->count++;
	buf_free(&path);
}

/* True when the text of a fault is needed: not while scoring, and not when the list is full. */
static bool fault_counts(struct checker *c, unsigned weight)
{
	c->score += weight;
	if (!c->faults)
		return false;
	if (c->faults->count < FAULTS_MAX)
		return true;
	c->faults->count++;
	return false;
}

void fault_add(struct checker *c, const struct place *at, unsigned weight, const char *format, ...)
{
	if (!fault_counts(c, weight))
		return;
	va_list args;
	va_start(args, format);
	fault_put(c, at, arena_vprintf(c->arena, format, args));
	va_end(args);
}

void faults_add(struct faults *faults, struct arena *arena, struct str path, const char *format, ...)
{
	if (faults->count < FAULTS_MAX) {
		va_list args;
		va_start(args, format);
		faults->list[faults->count].path = arena_dup(arena, path);
		faults->list[faults->count].text = arena_vprintf(arena, format, args);
		va_end(args);
	}
	faults->count++;
}

bool faults_too_many(struct faults *faults, struct arena *arena, struct str path, const json_t *array, size_t most)
{
	if (json_array_size(array) <= most)
		return false;
	faults_add(faults, arena, path, "must have at most %zu items", most);
	return true;
}

/* A list of values for people. */
struct values {
	struct buf text;
	size_t shown, left;
};

static void values_add(struct values *v, struct str value)
{
	if (value.n >= 2 && value.p[0] == '"')
		value = (struct str){value.p + 1, value.n - 2};
	if (v->shown >= VALUES_SHOWN) {
		v->left++;
		return;
	}
	if (v->shown++)
		buf_z(&v->text, ", ");
	buf_str(&v->text, value);
}

static void values_put(struct checker *c, const struct place *at, struct values *v)
{
	if (v->left)
		buf_printf(&v->text, " … and %zu more", v->left);
	fault_put(c, at,
	          arena_printf(c->arena, v->shown == 1 ? "must be %.*s" : "must be one of %.*s",
	                       STR_ARG(buf_view(&v->text))));
	buf_free(&v->text);
}

static void values_add_enums(struct values *v, const struct schema *s)
{
	for (unsigned i = 0; i < s->enum_count; i++)
		values_add(v, str_of(s->enums[i]));
}

unsigned weight_enum(const struct checker *c)
{
	return c->depth <= c->trial_depth + 1 ? WEIGHT_OWN_ENUM : WEIGHT_ENUM;
}

void fault_enum(struct checker *c, const struct place *at, const struct schema *s)
{
	struct values v = {0};
	if (!fault_counts(c, weight_enum(c)))
		return;
	values_add_enums(&v, s);
	values_put(c, at, &v);
}

void fault_mapping(struct checker *c, const struct place *at, const struct schema *s)
{
	struct values v = {0};
	if (!fault_counts(c, weight_enum(c)))
		return;
	for (unsigned i = 0; i < s->mapping_count; i++)
		values_add(&v, str_of(s->mapping[i].value));
	values_put(c, at, &v);
}

void fault_choice(struct checker *c, const struct place *at, const struct schema *s)
{
	struct values v = {0};
	if (!fault_counts(c, weight_enum(c)))
		return;
	for (unsigned i = 0; i < s->branch_count; i++)
		values_add_enums(&v, s->branches[i].schema);
	values_put(c, at, &v);
}

/* Number of edits (insert, delete, replace, swap of neighbours) from a to b, ignoring case; more than `most` is
 * reported as most + 1. Both texts are at most KEY_SHOWN long. */
static unsigned edit_distance(struct str a, struct str b, unsigned most)
{
	unsigned rows[3][KEY_SHOWN + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];
	for (size_t j = 0; j <= b.n; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a.n; i++) {
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b.n; j++) {
			int x = a.p[i - 1] | 0x20, y = b.p[j - 1] | 0x20;
			unsigned best = last[j - 1] + (x != y);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && x == (b.p[j - 2] | 0x20) && y == (a.p[i - 2] | 0x20) &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			row[j] = best;
		}
		unsigned *free_row = before;
		before = last;
		last = row;
		row = free_row;
	}
	return last[b.n] > most ? most + 1 : last[b.n];
}

static const char *view_nearest(const struct checker *c, const struct view *v, struct str name)
{
	unsigned most = name.n < 6 ? 1 : name.n < 12 ? 2 : 3;
	const char *nearest = NULL;
	if (name.n > KEY_SHOWN)
		return NULL;
	for (unsigned i = v->count; i-- > 0;) {
		for (unsigned k = 0; k < v->of[i]->field_count; k++) {
			const struct field *f = &v->of[i]->fields[k];
			struct str known = str_of(f->name);
			size_t gap = known.n > name.n ? known.n - name.n : name.n - known.n;
			if (gap > most || known.n > KEY_SHOWN || known.n < 2)
				continue;
			if (c->use != SCHEMA_STORED && f->schema->flags & SCHEMA_READ_ONLY)
				continue;
			unsigned d = edit_distance(name, known, most);
			if (d <= most && (d < most || !nearest)) {
				nearest = f->name;
				if (d == 0)
					return nearest;
				most = d;
			}
		}
	}
	return nearest;
}

void fault_unknown(struct checker *c, const struct place *at, const struct view *v, struct str name)
{
	if (!fault_counts(c, WEIGHT_UNKNOWN))
		return;
	const char *nearest = view_nearest(c, v, name);
	fault_put(c, at,
	          nearest ? arena_printf(c->arena, "unknown field (did you mean %s?)", nearest) : STR("unknown field"));
}
